// SPDX-License-Identifier: MIT
// Functions: the body is traced once for each signature of the inputs (dtypes and extents);
// later calls with this signature run the cached plan.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "../base/thread.h"
#include "../plugin/host.h"
#include "../primitive/registry.h"
#include "run.h"

// Bounds of one function's cache: bytes of host memory, and traces.
#define TRACES_LIMIT (UINT64_C(32) << 20)
#define MAX_TRACES 256
#define MAX_RECENT 16

// The trace of one signature. Constant once it is in the cache.
struct trace_entry {
    struct lru_entry entry; // key: the signature of the inputs
    struct plan *plan;
    struct value **captured; // data that the body used beside its inputs; with references
    tn_type *output_types;
    uint32_t num_captured, num_outputs, num_inputs;
};

struct tn_function {
    tn_runtime *runtime;
    tn_function_body body;
    void *user;
    uint32_t *donated; // numbers of the donated inputs, ascending
    uint32_t num_donated;
    struct lru traces;
    // The trace of a thread's last call, with a reference, so that a thread which repeats a
    // call shares no lock and no counter with others. Each place is for one thread or few.
    struct {
        char apart[LINES_APART];
        _Atomic(struct trace_entry *) entry; // NULL: none, or in use
    } recent[MAX_RECENT];
};

// Fields that an older caller's struct lacks are zero. Fields that a newer caller's struct
// has beyond this one must be zero.
static tn_status read_options(const tn_function_options *given, tn_function_options *mine)
{
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, num_donated);
    *mine = (tn_function_options){0};
    tn_status status = given
                           ? abi_struct_read(mine, sizeof(*mine), given, size,
                                             TN_END_OF(mine, flags), "tn_function_options")
                           : TN_OK;
    if (status == TN_OK && mine->flags)
        return fail(TN_ERR_ARGUMENT, "tn_function_options: flags 0x%x, expected 0",
                    mine->flags);
    return status;
}

static void entry_destroy(struct lru_entry *cached)
{
    struct trace_entry *entry = (struct trace_entry *)cached;
    plan_release(entry->plan); // first: states of its kernels may point to the data
    for (uint32_t i = 0; i < entry->num_captured; i++)
        value_release(entry->captured[i]);
    mem_free(entry->captured);
    mem_free(entry->output_types);
    mem_free(entry);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Copies the list of donated inputs, sorted.
static tn_status take_donated(tn_function *function, const tn_function_options *options)
{
    uint64_t count = options->num_donated;
    if (count > MAX_GIVEN || (count > 0 && !options->donated))
        return fail(TN_ERR_ARGUMENT,
                    "tn_function_options: %llu donated inputs%s, expected at most %u",
                    (unsigned long long)count, options->donated ? "" : " in no list",
                    MAX_GIVEN);
    uint32_t *list = function->donated = mem_alloc((count + 1) * sizeof(*list));
    if (!list)
        return TN_ERR_MEMORY;
    if (count > 0)
        memcpy(list, options->donated, count * sizeof(*list));
    qsort(list, count, sizeof(*list), compare_numbers);
    for (uint64_t i = 1; i < count; i++)
        if (list[i] == list[i - 1])
            return fail(TN_ERR_ARGUMENT, "tn_function_options: input %u is donated twice",
                        list[i]);
    function->num_donated = (uint32_t)count;
    return TN_OK;
}

tn_status tn_function_create(tn_runtime *runtime, tn_function_body body, void *user,
                             const tn_function_options *options, tn_function **out_function)
{
    if (!runtime || !body || !out_function)
        return fail(TN_ERR_ARGUMENT, "function_create: got NULL, expected a %s",
                    !runtime ? "runtime"
                    : !body  ? "body"
                             : "place for the result");
    tn_function_options mine;
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = read_options(options, &mine);
    if (status != TN_OK)
        return status;
    tn_function *function = mem_zalloc(sizeof(*function));
    if (!function)
        return TN_ERR_MEMORY;
    *function = (tn_function){.runtime = runtime, .body = body, .user = user};
    status = take_donated(function, &mine);
    if (status != TN_OK) {
        mem_free(function->donated);
        mem_free(function);
        return status;
    }
    lru_init(&function->traces, TRACES_LIMIT, MAX_TRACES, entry_destroy);
    life_add(&runtime->life, LIFE_FUNCTIONS);
    *out_function = function;
    return TN_OK;
}

void tn_function_destroy(tn_function *function)
{
    if (!function || callback_refuses(function->runtime, "tn_function_destroy"))
        return;
    for (uint32_t i = 0; i < MAX_RECENT; i++)
        lru_release(&function->traces, (struct lru_entry *)function->recent[i].entry);
    lru_finish(&function->traces);
    life_remove(&function->runtime->life, LIFE_FUNCTIONS);
    mem_free(function->donated);
    mem_free(function);
}

// --- inputs -----------------------------------------------------------------------------

// Plans of functions are made for inputs that are contiguous, at offset 0.
static bool is_plain(const tn_array *array)
{
    const struct value *value = array->value;
    return value && layout_is_plain(&value->layout);
}

// Gives the input itself when it is plain, else a plain copy. A kept array is not imported
// into the scope: a stand-in would share its data, and a donated input must have one owner.
static tn_array *plain_input(tn_scope *scope, tn_array *input, uint32_t i)
{
    if (!input || input->donated || (input->scope && input->scope != scope)) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "function_call: input %u %s", i,
                      !input           ? "is NULL"
                      : input->donated ? "was given away before and is empty now"
                                       : "belongs to another scope");
        return NULL;
    }
    if (is_plain(input))
        return input;
    if (input->scope && tn_eval_n(scope, &input, 1) != TN_OK)
        return NULL;
    return is_plain(input) ? input : read_copied(scope, input);
}

bool value_is_sole(const struct value *value)
{
    return atomic_load_explicit(&value->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&value->storage->refs, memory_order_acquire) == 1 &&
           value->offset == 0 && storage_is_reusable(value->storage);
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
        tn_array *input = inputs[function->donated[i]];
        out_donated[function->donated[i]] = 1;
        input->donated = input->donated ? AGAIN : ONCE;
    }
    for (uint32_t i = 0; i < num_inputs; i++)
        if (!out_donated[i] && inputs[i]->donated)
            inputs[i]->donated = AGAIN;
    for (uint32_t i = 0; i < function->num_donated; i++) {
        const tn_array *input = inputs[function->donated[i]];
        out_donated[function->donated[i]] =
            input->donated == ONCE && value_is_sole(input->value);
    }
    for (uint32_t i = 0; i < function->num_donated; i++)
        inputs[function->donated[i]]->donated = 0;
}

// What a call looks like to the body and to the plan.
struct call {
    tn_array *const *inputs; // plain
    const uint8_t *donated;  // by input, as task.donated; NULL: none
    uint32_t num_inputs, num_outputs;
};

static uint32_t device_of(const tn_array *array)
{
    return array->value->storage->device->number;
}

// The signature of a call: the inputs' devices, dtypes and extents, and which ones are
// donated.
static struct hash call_signature(const struct call *call)
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

// --- tracing ----------------------------------------------------------------------------

// A body that calls its own function again, directly or through others, would never end.
static tn_status call_body(tn_function *function, tn_scope *scope, tn_array *const *inputs,
                           uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    const struct running_body *outer = scope->bodies;
    const struct running_body own = {function, outer};
    uint32_t depth = 1;
    for (const struct running_body *b = outer; b; b = b->outer, depth++)
        if (b->function == function)
            return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                 "function_call: the function calls itself, through %u "
                                 "function%s: its graph would have no end",
                                 depth, depth == 1 ? "" : "s");
    scope->bodies = &own;
    tn_status status = body_call(function->body, function->user, scope, inputs, num_inputs,
                                 outputs, num_outputs);
    scope->bodies = outer;
    return status;
}

static tn_status trace_body(tn_function *function, tn_scope *trace, tn_array *const *inputs,
                            uint32_t num_inputs, tn_array **arguments, tn_array **outputs,
                            uint32_t num_outputs)
{
    for (uint32_t i = 0; i < num_inputs; i++) {
        if (!(arguments[i] = leaf_create(trace, NODE_INPUT, &inputs[i]->type)))
            return trace->status;
        arguments[i]->node->device = device_of(inputs[i]) + 1;
        arguments[i]->name = inputs[i]->name; // borrowed: outlives the trace
    }
    if (call_body(function, trace, arguments, num_inputs, outputs, num_outputs) != TN_OK)
        return fail(trace->status, "function: %s", tn_scope_error(trace));
    return TN_OK;
}

static tn_status entry_fill(struct trace_entry *entry, const struct task *task,
                            uint32_t num_inputs)
{
    uint32_t captured = task->num_leaves - num_inputs;
    entry->captured = mem_zalloc((captured + 1) * sizeof(*entry->captured));
    entry->output_types = mem_alloc((task->num_outputs + 1) * sizeof(tn_type));
    if (!entry->captured || !entry->output_types)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < captured; i++) {
        entry->captured[i] = task->leaves[num_inputs + i]->value;
        value_retain(entry->captured[i]);
    }
    entry->num_captured = captured;
    entry->num_inputs = num_inputs;
    entry->num_outputs = task->num_outputs;
    for (uint32_t i = 0; i < task->num_outputs; i++)
        entry->output_types[i] = task->outputs[i]->type;
    return TN_OK;
}

static tn_status trace_signature(tn_function *function, const struct call *call,
                                 struct trace_entry *entry)
{
    uint32_t num_inputs = call->num_inputs, num_outputs = call->num_outputs;
    struct task task = {0};
    tn_scope *trace = tn_scope_open(function->runtime);
    if (!trace)
        return TN_ERR_MEMORY;
    trace->tracing = true;
    tn_array **arrays =
        arena_alloc(&trace->arena, (num_inputs + num_outputs + 1) * sizeof(*arrays));
    tn_status status = arrays ? trace_body(function, trace, call->inputs, num_inputs,
                                           arrays, arrays + num_inputs, num_outputs)
                              : TN_ERR_MEMORY;
    if (status == TN_OK)
        status =
            task_create(trace, arrays + num_inputs, num_outputs, arrays, num_inputs, &task);
    task.donated = call->donated;
    task.num_donated = call->donated ? num_inputs : 0;
    task.first_captured = num_inputs;
    if (status == TN_OK)
        status = plan_create(function->runtime, &task, NULL, &entry->plan);
    if (status == TN_OK)
        status = entry_fill(entry, &task, num_inputs);
    task_finish(&task);
    tn_scope_close(trace);
    return status;
}

static _Atomic(struct trace_entry *) *recent_place(tn_function *function)
{
    return &function->recent[thread_number() % MAX_RECENT].entry;
}

// Gives the trace for these inputs, with a reference. When two threads trace one signature
// at the same time, the cache keeps one of the traces.
static tn_status entry_for(tn_function *function, const struct call *call,
                           struct trace_entry **out_entry)
{
    struct hash signature = call_signature(call);
    *out_entry = atomic_exchange(recent_place(function), NULL);
    if (*out_entry && hash_equal((*out_entry)->entry.key, signature))
        return TN_OK;
    lru_release(&function->traces, (struct lru_entry *)*out_entry);
    *out_entry = (struct trace_entry *)lru_get(&function->traces, signature);
    if (*out_entry)
        return TN_OK;
    struct trace_entry *entry = mem_zalloc(sizeof(*entry));
    if (!entry)
        return TN_ERR_MEMORY;
    entry->entry.key = signature;
    atomic_init(&entry->entry.refs, 1);
    tn_status status = trace_signature(function, call, entry);
    if (status != TN_OK) {
        entry_destroy(&entry->entry);
        return status;
    }
    entry->entry.bytes = sizeof(*entry) + entry->plan->entry.bytes;
    lru_put(&function->traces, &entry->entry);
    *out_entry = entry;
    return TN_OK;
}

// Keeps the trace, with the reference, for the thread's next call.
static void entry_done(tn_function *function, struct trace_entry *entry)
{
    if (entry)
        entry = atomic_exchange(recent_place(function), entry);
    lru_release(&function->traces, (struct lru_entry *)entry);
}

// --- calling ----------------------------------------------------------------------------

// Empties donated inputs: their memory may hold outputs now.
static void give_away(const tn_function *function, tn_array *const *inputs)
{
    for (uint32_t i = 0; i < function->num_donated; i++) {
        tn_array *input = inputs[function->donated[i]];
        if (input->donated)
            continue;
        input->donated = 1;
        value_release(input->value);
        input->value = NULL;
    }
}

// Wraps the values in arrays of the scope. Takes all values, also on failure.
static tn_status adopt(tn_scope *scope, const struct trace_entry *entry,
                       struct value **values, tn_array **outputs)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < entry->num_outputs; i++) {
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
static tn_status replay(tn_function *function, tn_scope *scope, const struct call *call,
                        tn_array *const *inputs, const struct trace_entry *entry,
                        tn_array **outputs)
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
    return status == TN_OK ? adopt(scope, entry, results, outputs) : status;
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
    if (function->num_donated > 0 &&
        function->donated[function->num_donated - 1] >= num_inputs)
        return fail(TN_ERR_ARGUMENT,
                    "function_call: input %u is donated, but the call has %u inputs",
                    function->donated[function->num_donated - 1], num_inputs);
    for (uint32_t i = 0; i < num_inputs && scope->status == TN_OK; i++)
        plain[i] = plain_input(scope, inputs[i], i);
    if (scope->status != TN_OK)
        return scope->status;
    if (function->num_donated > 0)
        find_donated(function, plain, num_inputs, donated);
    const struct call call = {plain, function->num_donated > 0 ? donated : NULL, num_inputs,
                              num_outputs};
    tn_status status = entry_for(function, &call, &entry);
    if (status == TN_OK)
        status = replay(function, scope, &call, inputs, entry, outputs);
    entry_done(function, entry);
    return status;
}

// Within a trace the body builds its graph there.
static tn_status call_inline(tn_function *function, tn_scope *scope,
                             tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs)
{
    tn_array **locals = scope_locals(scope, "function_call", inputs, num_inputs);
    if (!locals)
        return scope->status;
    tn_status status = call_body(function, scope, locals, num_inputs, outputs, num_outputs);
    mem_free(locals);
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
        return call_inline(function, scope, inputs, num_inputs, outputs, num_outputs);
    if (life_check(&scope->runtime->life) != TN_OK)
        return scope_take_failure(scope, TN_ERR_ARGUMENT);
    struct arena_mark mark = arena_mark(&scope->scratch);
    status = call_checked(function, scope, inputs, (uint32_t)num_inputs, outputs,
                          (uint32_t)num_outputs);
    arena_rewind(&scope->scratch, mark);
    return scope_take_failure(scope, status);
}
