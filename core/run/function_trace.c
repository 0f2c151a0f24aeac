// SPDX-License-Identifier: MIT
// Making functions, and tracing their bodies, once for each signature. A function keeps the
// latest traces; the others go with their plans.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plugin/host/host.h"
#include "../primitive/registry.h"
#include "function.h"

// Bounds of one function's cache: bytes of host memory, and traces where the options say
// nothing.
#define TRACES_LIMIT (UINT64_C(32) << 20)
#define USUAL_TRACES 256

// Fields that an older caller's struct lacks are zero. Fields that a newer caller's struct
// has beyond this one must be zero.
static tn_status function_trace_read_options(const tn_function_options *given,
                                             tn_function_options *mine)
{
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, max_traces);
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
    if (entry->runtime)
        atomic_fetch_sub_explicit(&entry->runtime->traces_held, 1, memory_order_relaxed);
    mem_free(entry->captured);
    mem_free(entry->inputs);
    mem_free(entry->output_types);
    mem_free(entry);
}

static int by_input(const void *a, const void *b)
{
    const struct donated *x = a, *y = b;
    return x->input < y->input ? -1 : x->input > y->input;
}

static int by_output(const void *a, const void *b)
{
    const struct donated *x = a, *y = b;
    return x->output < y->output ? -1 : x->output > y->output;
}

// Copies the list of donated inputs, sorted by their numbers in the end.
static tn_status take_donated(tn_function *function, const tn_function_options *options)
{
    uint64_t count = options->num_donated;
    if (count > MAX_GIVEN || (count > 0 && !options->donated))
        return fail(TN_ERR_ARGUMENT,
                    "tn_function_options: %llu donated inputs%s, expected at most %u",
                    (unsigned long long)count, options->donated ? "" : " in no list",
                    MAX_GIVEN);
    struct donated *list = function->donated = mem_alloc((count + 1) * sizeof(*list));
    if (!list)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        list[i].input = options->donated[i];
        list[i].output = options->carried_to ? options->carried_to[i] : UINT32_MAX;
        function->carries |= list[i].output != UINT32_MAX;
    }
    qsort(list, count, sizeof(*list), by_output);
    for (uint64_t i = 1; i < count; i++)
        if (list[i].output == list[i - 1].output && list[i].output != UINT32_MAX)
            return fail(TN_ERR_ARGUMENT,
                        "tn_function_options: inputs %u and %u are carried to output %u",
                        list[i - 1].input, list[i].input, list[i].output);
    qsort(list, count, sizeof(*list), by_input);
    for (uint64_t i = 1; i < count; i++)
        if (list[i].input == list[i - 1].input)
            return fail(TN_ERR_ARGUMENT, "tn_function_options: input %u is donated twice",
                        list[i].input);
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
                             : "pointer for the result");
    tn_function_options mine;
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = function_trace_read_options(options, &mine);
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
    uint64_t most = mine.max_traces ? mine.max_traces : USUAL_TRACES;
    lru_init(&function->traces, TRACES_LIMIT,
             most < UINT32_MAX ? (uint32_t)most : UINT32_MAX, entry_destroy);
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

static tn_status function_trace_body(tn_function *function, tn_scope *trace,
                                     tn_array *const *inputs, uint32_t num_inputs,
                                     tn_array **arguments, tn_array **outputs,
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
                            const struct function_call *call)
{
    uint32_t num_inputs = call->num_inputs, captured = task->num_leaves - num_inputs;
    entry->captured = mem_zalloc((captured + 1) * sizeof(*entry->captured));
    entry->inputs = mem_alloc((num_inputs + 1) * sizeof(*entry->inputs));
    entry->output_types = mem_alloc((task->num_outputs + 1) * sizeof(tn_type));
    if (!entry->captured || !entry->inputs || !entry->output_types)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs; i++)
        entry->inputs[i] =
            (struct traced_input){call->inputs[i]->type, device_of(call->inputs[i]),
                                  call->donated && call->donated[i]};
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

static tn_status trace_signature(tn_function *function, const struct function_call *call,
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
    tn_status status = arrays
                           ? function_trace_body(function, trace, call->inputs, num_inputs,
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
        status = entry_fill(entry, &task, call);
    task_finish(&task);
    tn_scope_close(trace);
    return status;
}

// The types of a call's inputs, for people; cut where they are many.
static const char *function_trace_print_inputs(const struct function_call *call, char *text,
                                               size_t size)
{
    char type[TYPE_TEXT];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < call->num_inputs && used + 1 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 type_print(&call->inputs[i]->type, type));
    return text;
}

// Traces that are dropped are told of when the first one is, and each time their number has
// doubled.
static void function_trace_tell(tn_function *function, const struct function_call *call,
                                uint32_t num_dropped)
{
    const struct config *config = function->runtime->config;
    char inputs[200];
    log_write(config, TN_LOG_INFO, "sched", "function: traced for %s",
              function_trace_print_inputs(call, inputs, sizeof(inputs)));
    if (num_dropped == 0)
        return;
    atomic_fetch_add_explicit(&function->runtime->traces_dropped, num_dropped,
                              memory_order_relaxed);
    uint64_t before = atomic_fetch_add(&function->num_dropped, num_dropped);
    if ((before & (before + num_dropped)) != 0 && before != 0)
        return;
    log_write(config, TN_LOG_WARN, "sched",
              "function: %" PRIu64 " traces dropped, of more than %" PRIu32
              " or over %" PRIu64
              " MiB; calls with other shapes, now %s, are traced and planned "
              "again: pad the inputs to fewer shapes, or raise max_traces of "
              "tn_function_options",
              before + num_dropped, function->traces.max_count, TRACES_LIMIT >> 20, inputs);
}

tn_status trace_make(tn_function *function, const struct function_call *call,
                     struct hash signature, struct trace_entry **out_entry)
{
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
    entry->runtime = function->runtime;
    atomic_fetch_add_explicit(&entry->runtime->traces_made, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->runtime->traces_held, 1, memory_order_relaxed);
    entry->entry.bytes = sizeof(*entry) + entry->plan->entry.bytes;
    function_trace_tell(function, call, lru_put(&function->traces, &entry->entry));
    *out_entry = entry;
    return TN_OK;
}

// Within a trace the body builds its graph there.
tn_status trace_inline(tn_function *function, tn_scope *scope, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    tn_array **locals = scope_locals(scope, "function_call", inputs, num_inputs);
    if (!locals)
        return scope->status;
    tn_status status = call_body(function, scope, locals, num_inputs, outputs, num_outputs);
    mem_free(locals);
    return status;
}
