// SPDX-License-Identifier: MIT
// Calls of functions: the body is traced once for each signature of the inputs (dtypes and
// extents, function_trace.c); later calls with this signature run the cached plan.
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "../base/thread.h"
#include "function.h"

// --- inputs -----------------------------------------------------------------------------

// Plans of functions are made for inputs that are contiguous, at offset 0.
static bool function_is_plain(const tn_array *array)
{
    const struct value *value = array_value(array);
    return value && layout_is_plain(&value->layout);
}

// Gives the input itself when it is plain, else a plain copy. An array that is counted is
// not imported into the scope: a stand-in would share its data, and a donated input must
// have one owner.
static tn_array *plain_input(tn_scope *scope, tn_array *input, uint32_t i)
{
    if (!input || input->donated || (input->scope && input->scope != scope)) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "function_call: input %u %s", i,
                      !input           ? "is NULL"
                      : input->donated ? "was donated before and is empty now"
                                       : "belongs to another scope");
        return NULL;
    }
    if (function_is_plain(input))
        return input;
    if (!array_value(input) && tn_eval_n(scope, &input, 1) != TN_OK)
        return NULL;
    return function_is_plain(input) ? input : read_copied(scope, input);
}

// Finds the donated inputs whose memory may be written: out_donated[i] is 1 for those. An
// array that is an input twice does not count. It is the one owner of its value, so the
// count of references does not tell: `donated` marks the array meanwhile.
static void find_donated(const tn_function *function, tn_array *const *inputs,
                         uint32_t num_inputs, uint8_t *out_donated)
{
    enum { ONCE = 2, AGAIN = 3 };
    memset(out_donated, 0, num_inputs);
    for (uint32_t i = 0; i < function->num_donated; i++) {
        tn_array *input = inputs[function->donated[i].input];
        out_donated[function->donated[i].input] = 1;
        input->donated = input->donated ? AGAIN : ONCE;
    }
    for (uint32_t i = 0; i < num_inputs; i++)
        if (!out_donated[i] && inputs[i]->donated)
            inputs[i]->donated = AGAIN;
    for (uint32_t i = 0; i < function->num_donated; i++) {
        uint32_t number = function->donated[i].input;
        const tn_array *input = inputs[number];
        out_donated[number] = input->donated == ONCE && value_is_sole(input->value);
    }
    for (uint32_t i = 0; i < function->num_donated; i++)
        inputs[function->donated[i].input]->donated = 0;
}

// Checks that the options' donated and carried inputs exist in this call.
static tn_status check_donated(const tn_function *function, uint32_t num_inputs,
                               uint32_t num_outputs)
{
    uint32_t count = function->num_donated;
    if (count > 0 && function->donated[count - 1].input >= num_inputs)
        return fail(TN_ERR_ARGUMENT,
                    "function_call: input %u is donated, but the call has %u inputs",
                    function->donated[count - 1].input, num_inputs);
    for (uint32_t i = 0; i < count && function->carries; i++) {
        const struct donated *d = &function->donated[i];
        if (d->output != UINT32_MAX && d->output >= num_outputs)
            return fail(TN_ERR_ARGUMENT,
                        "function_call: input %u is carried to output %u, but the call has "
                        "%u outputs",
                        d->input, d->output, num_outputs);
    }
    return TN_OK;
}

// Fails where an array is donated twice: it has one reference to take. `donated` marks the
// arrays meanwhile.
static tn_status function_check_carried(const tn_function *function,
                                        tn_array *const *inputs)
{
    uint32_t twice = UINT32_MAX;
    for (uint32_t i = 0; i < function->num_donated; i++) {
        tn_array *input = inputs[function->donated[i].input];
        twice = input->donated ? function->donated[i].input : twice;
        input->donated = 1;
    }
    for (uint32_t i = 0; i < function->num_donated; i++)
        inputs[function->donated[i].input]->donated = 0;
    return twice == UINT32_MAX
               ? TN_OK
               : fail(
                     TN_ERR_ARGUMENT,
                     "function_call: input %u is an array that another input donates, too: "
                     "what is carried can be donated once",
                     twice);
}

// The signature of a call: the inputs' devices, dtypes and extents, and which ones are
// donated.
static struct hash call_signature(const struct function_call *call)
{
    struct hash h = hash_start((uint64_t)call->num_inputs << 32 | call->num_outputs);
    for (uint32_t i = 0; call->donated && i < call->num_inputs; i += 64) {
        uint64_t bits = 0;
        for (uint32_t k = i; k < i + 64 && k < call->num_inputs; k++)
            bits |= (uint64_t)call->donated[k] << (k - i);
        h = hash_u64(h, bits);
    }
    for (uint32_t i = 0; i < call->num_inputs; i++) {
        const tn_type *type = &call->inputs[i]->type;
        h = hash_u64(h, (uint64_t)type->dtype << 32 |
                            (uint64_t)device_of(call->inputs[i]) << 16 |
                            (uint32_t)type->rank);
        for (int32_t k = 0; k < type->rank; k++)
            h = hash_u64(h, (uint64_t)type->extent[k]);
    }
    return h;
}

// Whether a call has the signature of a trace: as call_signature(), without a hash.
static bool is_traced(const struct trace_entry *entry, const struct function_call *call)
{
    if (entry->num_inputs != call->num_inputs || entry->num_outputs != call->num_outputs)
        return false;
    for (uint32_t i = 0; i < call->num_inputs; i++) {
        const struct traced_input *traced = &entry->inputs[i];
        const tn_array *input = call->inputs[i];
        bool is_donated = call->donated && call->donated[i];
        if (traced->device != device_of(input) || traced->is_donated != is_donated ||
            traced->type.dtype != input->type.dtype ||
            traced->type.rank != input->type.rank)
            return false;
        for (int32_t k = 0; k < input->type.rank; k++)
            if (traced->type.extent[k] != input->type.extent[k])
                return false;
    }
    return true;
}

// The calling thread's entry. Found once a call: thread_number() is a call, too.
static _Atomic(struct trace_entry *) *recent_entry(tn_function *function)
{
    return &function->recent[thread_number() % MAX_RECENT].entry;
}

// Gives the trace for these inputs, with a reference. When two threads trace one signature
// at the same time, the cache keeps one of the traces.
static tn_status entry_for(tn_function *function, const struct function_call *call,
                           _Atomic(struct trace_entry *) *recent,
                           struct trace_entry **out_entry)
{
    *out_entry = atomic_exchange(recent, NULL);
    if (*out_entry && is_traced(*out_entry, call))
        return TN_OK;
    struct hash signature = call_signature(call);
    lru_release(&function->traces, (struct lru_entry *)*out_entry);
    *out_entry = (struct trace_entry *)lru_get(&function->traces, signature);
    if (*out_entry)
        return TN_OK;
    return trace_make(function, call, signature, out_entry);
}

// Keeps the trace, with the reference, for the thread's next call.
static void entry_done(tn_function *function, _Atomic(struct trace_entry *) *recent,
                       struct trace_entry *entry)
{
    if (entry)
        entry = atomic_exchange(recent, entry);
    lru_release(&function->traces, (struct lru_entry *)entry);
}

// --- calling ----------------------------------------------------------------------------

// Empties donated inputs: their memory may hold outputs now.
static void give_away(const tn_function *function, tn_array *const *inputs)
{
    for (uint32_t i = 0; i < function->num_donated; i++) {
        tn_array *input = inputs[function->donated[i].input];
        if (input->donated)
            continue;
        struct value *value = input->value;
        if (!input->scope && input->node->num_outputs > 1)
            value = counted_empty(input); // values beside it may be in use
        input->donated = 1;
        input->value = NULL;
        value_release(value);
    }
}

// Whether a donated input is carried to an output: an array that outlives the scope is.
static bool is_carried(const struct donated *d, tn_array *const *inputs)
{
    return d->output != UINT32_MAX && !inputs[d->input]->scope;
}

// Gives the outputs that donated inputs are carried to. Takes these outputs' values and the
// inputs' references, on success only.
static tn_status function_carry(const tn_function *function, tn_scope *scope,
                                const struct trace_entry *entry, tn_array *const *inputs,
                                struct value **values, tn_array **outputs)
{
    tn_status status = TN_OK;
    uint32_t count = 0;
    for (; count < function->num_donated && status == TN_OK; count++) {
        const struct donated *d = &function->donated[count];
        if (!is_carried(d, inputs))
            continue;
        outputs[d->output] = counted_follow(
            scope, inputs[d->input], &entry->output_types[d->output], values[d->output]);
        status = outputs[d->output] ? TN_OK : scope->status;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct donated *d = &function->donated[i];
        if (!is_carried(d, inputs))
            continue;
        bool is_same = outputs[d->output] == inputs[d->input];
        if (status != TN_OK) {
            if (!is_same)
                tn_release(outputs[d->output]);
            continue;
        }
        if (is_same) {
            counted_fill(inputs[d->input], &entry->output_types[d->output],
                         values[d->output]);
        } else {
            value_release(values[d->output]);
            tn_release(inputs[d->input]);
        }
        values[d->output] = NULL;
    }
    return status;
}

// Wraps the values that function_carry() did not take in arrays of the scope. Takes all of
// them, also on failure.
static tn_status function_adopt(tn_scope *scope, tn_status status,
                                const struct trace_entry *entry, struct value **values,
                                tn_array **outputs)
{
    for (uint32_t i = 0; i < entry->num_outputs; i++) {
        if (!values[i])
            continue; // carried
        tn_array *array =
            status == TN_OK ? leaf_create(scope, NODE_DATA, &entry->output_types[i]) : NULL;
        if (!array) {
            value_release(values[i]);
            status = scope->status;
            continue;
        }
        status = scope_set_value(scope, array, values[i]);
        outputs[i] = array;
    }
    return status;
}

// `inputs`: as the caller gave them.
static tn_status function_replay(tn_function *function, tn_scope *scope,
                                 const struct function_call *call, tn_array *const *inputs,
                                 const struct trace_entry *entry, tn_array **outputs)
{
    uint32_t num_inputs = call->num_inputs;
    bool has_begun = false;
    size_t count = (size_t)num_inputs + entry->num_captured + entry->num_outputs;
    struct value **values = arena_alloc(&scope->scratch, count * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    struct value **results = values + num_inputs + entry->num_captured;
    for (uint32_t i = 0; i < num_inputs; i++)
        values[i] = call->inputs[i]->value;
    for (uint32_t i = 0; i < entry->num_captured; i++)
        values[num_inputs + i] = entry->captured[i];
    tn_status status = plan_run(entry->plan, values, results, RUN_START, &has_begun);
    if (status == TN_OK || has_begun) {
        give_away(function, call->inputs);
        give_away(function, inputs); // those of which a plain copy was made
    }
    if (status != TN_OK)
        return status;
    if (function->carries)
        status = function_carry(function, scope, entry, inputs, results, outputs);
    return function_adopt(scope, status, entry, results, outputs);
}

static tn_status call_checked(tn_function *function, tn_scope *scope,
                              tn_array *const *inputs, uint32_t num_inputs,
                              tn_array **outputs, uint32_t num_outputs)
{
    struct trace_entry *entry = NULL;
    tn_array **plain =
        arena_alloc(&scope->scratch, ((size_t)num_inputs + 1) * sizeof(*plain));
    uint8_t *donated = arena_alloc(&scope->scratch, (size_t)num_inputs + 1);
    if (!plain || !donated)
        return TN_ERR_MEMORY;
    tn_status status = check_donated(function, num_inputs, num_outputs);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < num_inputs && scope->status == TN_OK; i++)
        plain[i] = plain_input(scope, inputs[i], i);
    status = scope->status;
    if (status == TN_OK && function->carries)
        status = function_check_carried(function, inputs);
    if (status != TN_OK)
        return status;
    if (function->num_donated > 0)
        find_donated(function, plain, num_inputs, donated);
    const struct function_call call = {plain, function->num_donated > 0 ? donated : NULL,
                                       num_inputs, num_outputs};
    _Atomic(struct trace_entry *) *recent = recent_entry(function);
    status = entry_for(function, &call, recent, &entry);
    if (status == TN_OK)
        status = function_replay(function, scope, &call, inputs, entry, outputs);
    entry_done(function, recent, entry);
    return status;
}

tn_status tn_function_call(tn_function *function, tn_scope *scope, tn_array *const *inputs,
                           uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    tn_status status =
        scope_begin(scope, "function_call",
                    GIVEN({"the function", function, 1}, {"inputs", inputs, num_inputs},
                          {"outputs", outputs, num_outputs}));
    if (status != TN_OK)
        return status;
    if (scope->tracing)
        return trace_inline(function, scope, inputs, num_inputs, outputs, num_outputs);
    if (life_check(&scope->runtime->life) != TN_OK)
        return scope_take_failure(scope, TN_ERR_ARGUMENT);
    struct arena_mark mark = arena_mark(&scope->scratch);
    status = call_checked(function, scope, inputs, (uint32_t)num_inputs, outputs,
                          (uint32_t)num_outputs);
    arena_rewind(&scope->scratch, mark);
    return scope_take_failure(scope, status);
}
