// SPDX-License-Identifier: MIT
// tn_eval_held_n: evaluates named arrays with those of their graph that the application
// holds, in the memory of data that nothing else refers to.
#include <tenon/checked.h>
#include <tenon/retain.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/device.h"
#include "../graph/held.h"
#include "eval.h"

// Adds the held arrays to the outputs.
static tn_status add_held(tn_scope *scope, uint32_t named, struct task *task)
{
    uint32_t held = held_outputs(task->nodes, task->num_nodes, named, 0, NULL), n = 0;
    if (held == 0)
        return TN_OK;
    tn_array **all =
        arena_alloc(&scope->scratch, ((uint64_t)task->num_outputs + held) * sizeof(*all));
    if (!all)
        return TN_ERR_MEMORY;
    for (; n < task->num_outputs; n++)
        all[n] = task->outputs[n];
    // Another thread may have released or retained some meanwhile: what was counted is the
    // most.
    uint32_t found = held_outputs(task->nodes, task->num_nodes, named, held, all + n);
    task->outputs = all;
    task->num_outputs = n + (found < held ? found : held);
    return TN_OK;
}

// The work of a moment: it loops nowhere, reads and writes little, and waits for nothing.
#define MOST_BRIEF (UINT64_C(1) << 20) // bytes

static tn_status check_brief(const struct task *task, const struct plan *plan)
{
    uint64_t bytes = 0;
    bool is_brief = plan && plan->num_hosts == 0;
    for (uint32_t i = 0; is_brief && i < plan->num_segments; i++)
        bytes = tn_saturated_add(bytes, plan->segments[i].bytes_written);
    for (uint32_t i = 0; is_brief && i < task->num_leaves; i++) {
        bytes = tn_saturated_add(bytes, type_bytes(&task->leaves[i]->type));
        is_brief = storage_is_idle(task->leaves[i]->value->storage);
    }
    return is_brief && bytes <= MOST_BRIEF
               ? TN_OK
               : fail(TN_ERR_UNSUPPORTED, "eval_held: it may take longer than a moment");
}

static tn_status find_plan(tn_scope *scope, struct task *task, uint32_t flags,
                           struct plan **out_plan)
{
    if (!(flags & TN_EVAL_BRIEF))
        return eval_find_plan(scope->runtime, task, out_plan);
    *out_plan = plan_cache_get(scope->runtime, task->signature);
    tn_status status = check_brief(task, *out_plan);
    if (status != TN_OK)
        plan_release(*out_plan);
    return status;
}

static tn_status run_taken(tn_scope *scope, struct task *task, uint32_t flags)
{
    struct plan *plan;
    uint8_t *given = arena_alloc(&scope->scratch, (uint64_t)task->num_leaves + 1);
    const struct held_graph graph = {.runtime = scope->runtime,
                                     .nodes = task->nodes,
                                     .leaves = task->leaves,
                                     .outputs = task->outputs,
                                     .num_nodes = task->num_nodes,
                                     .num_leaves = task->num_leaves,
                                     .num_outputs = task->num_outputs,
                                     .num_ids = task->num_ids};
    bool any = false;
    tn_status status = given ? held_take(&graph, given, &any) : TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    if (any)
        task_donate(task, given);
    status = find_plan(scope, task, flags, &plan);
    if (status == TN_OK) {
        status = eval_run(scope, task, plan, flags & TN_EVAL_ASYNC);
        plan_release(plan);
    }
    if (any)
        held_give(&graph);
    return status;
}

// In a scope of its own, which refers to nothing but what is computed.
static tn_status eval_inside(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                             uint32_t flags)
{
    struct task task;
    uint32_t count = 0;
    tn_array **pending = arena_alloc(&scope->scratch, num_arrays * sizeof(*pending));
    if (!pending)
        return TN_ERR_MEMORY;
    tn_status status = eval_collect(scope, arrays, num_arrays, pending, &count);
    uint32_t named = scope->epoch;
    if (status != TN_OK || count == 0)
        return status;
    status = task_order(scope, pending, count, &task);
    if (status != TN_OK)
        return status;
    status = add_held(scope, named, &task);
    if (status == TN_OK)
        status = task_number(&task, NULL, 0);
    if (status == TN_OK)
        status = eval_check_leaves(&task);
    if (status == TN_OK)
        status = run_taken(scope, &task, flags);
    task_finish(&task);
    return status;
}

static tn_status check_arrays(tn_array *const *arrays, uint64_t num_arrays, uint32_t flags)
{
    if (flags & ~(uint32_t)(TN_EVAL_ASYNC | TN_EVAL_BRIEF))
        return fail(TN_ERR_ARGUMENT,
                    "eval_held: flags are 0x%x, expected TN_EVAL_ASYNC and TN_EVAL_BRIEF",
                    flags);
    for (uint64_t i = 0; i < num_arrays; i++)
        if (!arrays[i] || arrays[i]->scope)
            return fail(TN_ERR_ARGUMENT, "eval_held: array %llu %s", (unsigned long long)i,
                        arrays[i]
                            ? "belongs to a scope: tn_retain gives one that outlives it"
                            : "is NULL");
    return TN_OK;
}

// What has its values is waited for, but where nothing may last.
static tn_status wait_held(tn_array *const *arrays, uint64_t num_arrays, uint32_t flags)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++) {
        struct storage *storage = array_value(arrays[i])->storage;
        if ((flags & TN_EVAL_BRIEF) && !storage_is_idle(storage))
            return check_brief(NULL, NULL);
        status = storage_wait_outside(storage);
    }
    return status;
}

static bool have_values(tn_array *const *arrays, uint64_t num_arrays)
{
    for (uint64_t i = 0; i < num_arrays; i++)
        if (!array_value(arrays[i]))
            return false;
    return true;
}

tn_status tn_eval_held_n(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                         uint32_t flags)
{
    tn_scope *inner = NULL;
    tn_status status =
        scope_begin(scope, "eval_held", GIVEN({"arrays", arrays, num_arrays}));
    if (status != TN_OK)
        return status;
    if (scope->tracing)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "eval_held: a function's body builds graph; it cannot "
                             "evaluate");
    status = life_check(&scope->runtime->life);
    if (status == TN_OK)
        status = check_arrays(arrays, num_arrays, flags);
    if (status == TN_OK && !have_values(arrays, num_arrays)) {
        inner = tn_scope_open(scope->runtime);
        if (inner) {
            inner->device = scope->device;
            status = eval_inside(inner, arrays, num_arrays, flags);
        }
        status = inner ? scope_take_failure(inner, status) : TN_ERR_MEMORY;
    }
    if (status == TN_OK && !(flags & TN_EVAL_ASYNC))
        status = wait_held(arrays, num_arrays, flags);
    scope_take_failure(scope, status);
    tn_scope_close(inner);
    return scope->status;
}
