// SPDX-License-Identifier: MIT
// Evaluation of arrays: makes a task, finds or makes its plan, and runs it. Also
// tn_runtime_stats.
#include <string.h>
#include <tenon/stats.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "eval.h"

static tn_status eval_find_plan(tn_runtime *runtime, struct task *task,
                                struct plan **out_plan)
{
    *out_plan = plan_cache_get(runtime, task->signature);
    if (*out_plan)
        return TN_OK;
    tn_status status = plan_create(runtime, task, NULL, out_plan);
    if (status == TN_OK)
        plan_cache_put(runtime, *out_plan);
    return status;
}

static tn_status run_task(tn_scope *scope, const struct task *task, struct plan *plan,
                          bool async)
{
    uint64_t count = (uint64_t)task->num_leaves + task->num_outputs;
    struct value **values = arena_alloc(&scope->scratch, count * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    struct value **outputs = values + task->num_leaves;
    for (uint32_t i = 0; i < task->num_leaves; i++)
        values[i] = task->leaves[i]->value;
    bool has_begun = false;
    tn_status status =
        plan_run(plan, values, outputs, async ? RUN_ASYNC : RUN_WAIT, &has_begun);
    for (uint32_t i = 0; status == TN_OK && i < task->num_outputs; i++) {
        tn_status set = scope_set_value(scope, task->outputs[i], outputs[i]);
        status = status == TN_OK ? set : status;
    }
    return status;
}

tn_status eval_check_leaves(const struct task *task)
{
    for (uint32_t i = 0; i < task->num_leaves; i++)
        if (!task->leaves[i]->value)
            return fail(TN_ERR_ARGUMENT,
                        "eval: an array depends on what stands for a slice in vmap, which "
                        "has no data");
    return TN_OK;
}

static tn_status eval_compute(tn_scope *scope, tn_array *const *arrays, uint32_t num_arrays,
                              bool async)
{
    struct task task;
    struct plan *plan;
    tn_status status = task_create(scope, arrays, num_arrays, NULL, 0, &task);
    if (status != TN_OK)
        return status;
    status = eval_check_leaves(&task);
    if (status == TN_OK)
        status = eval_find_plan(scope->runtime, &task, &plan);
    if (status == TN_OK) {
        status = run_task(scope, &task, plan, async);
        plan_release(plan);
    }
    task_finish(&task);
    return status;
}

tn_status eval_number(tn_scope *scope, const tn_array *number, struct value **out)
{
    unsigned char element[DTYPE_MAX_SIZE] = {0};
    dtype_store_bits(number->type.dtype, element, number->node->number);
    return value_from_host(scope->runtime, scope_data_device(scope), &number->type, element,
                           out);
}

// Gives the arrays that need a plan to be evaluated, each once. Numbers are written at
// once.
static tn_status eval_collect(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                              tn_array **pending, uint32_t *out_count)
{
    uint32_t count = 0, epoch = ++scope->epoch;
    for (uint64_t i = 0; i < num_arrays; i++) {
        tn_array *array = scope_local(scope, arrays[i]);
        if (!array && scope->status == TN_OK)
            return fail(TN_ERR_ARGUMENT, "eval: array %llu is NULL", (unsigned long long)i);
        if (!array)
            return scope->status;
        if (array->value || array->mark == epoch)
            continue;
        array->mark = epoch;
        if (array->node->kind != NODE_NUMBER) {
            pending[count++] = array;
            continue;
        }
        struct value *value;
        tn_status status = eval_number(scope, array, &value);
        if (status == TN_OK)
            status = scope_set_value(scope, array, value);
        if (status != TN_OK)
            return status;
    }
    *out_count = count;
    return TN_OK;
}

static tn_status run_eval_arrays(tn_scope *scope, tn_array *const *arrays,
                                 uint64_t num_arrays, bool async)
{
    uint32_t count = 0;
    tn_status status = scope_begin(scope, "eval", GIVEN({"arrays", arrays, num_arrays}));
    if (status != TN_OK)
        return status;
    if (scope->tracing)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "eval: a function's body builds graph; it cannot evaluate");
    struct arena_mark mark = arena_mark(&scope->scratch);
    tn_array **pending = arena_alloc(&scope->scratch, num_arrays * sizeof(*pending));
    if (!pending)
        return scope_take_failure(scope, TN_ERR_MEMORY);
    status = life_check(&scope->runtime->life);
    if (status == TN_OK)
        status = eval_collect(scope, arrays, num_arrays, pending, &count);
    if (status == TN_OK && count > 0)
        status = eval_compute(scope, pending, count, async);
    arena_rewind(&scope->scratch, mark);
    return scope_take_failure(scope, status);
}

static tn_status wait_arrays(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays)
{
    for (uint64_t i = 0; i < num_arrays; i++) {
        const tn_array *array = scope_local(scope, arrays[i]);
        tn_status status = storage_wait_written(array->value->storage);
        if (status != TN_OK)
            return scope_take_failure(scope, status);
    }
    return TN_OK;
}

tn_status tn_eval_n(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays)
{
    tn_status status = run_eval_arrays(scope, arrays, num_arrays, false);
    return status == TN_OK ? wait_arrays(scope, arrays, num_arrays) : status;
}

tn_status tn_eval_async_n(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays)
{
    return run_eval_arrays(scope, arrays, num_arrays, true);
}

void tn_runtime_trim(tn_runtime *runtime, uint32_t flags)
{
    if (fail_if_null("runtime_trim", "the runtime", runtime) != TN_OK)
        return;
    devices_trim(runtime, flags);
    if (flags & TN_TRIM_PEAK)
        atomic_store(&device_stats(runtime)->used_peak, 0);
}

void tn_runtime_stats(const tn_runtime *runtime, tn_stats *out)
{
    if (fail_if_null("runtime_stats", "the runtime", runtime) != TN_OK)
        return;
    tn_stats mine = {
        .struct_size = sizeof(mine),
        .plans_made = stats_sum(runtime, STATS_PLANS_MADE),
        .plan_hits = stats_sum(runtime, STATS_PLAN_HITS),
        .submissions = stats_sum(runtime, STATS_SUBMISSIONS),
        .steps = stats_sum(runtime, STATS_STEPS),
        .transfers = stats_sum(runtime, STATS_TRANSFERS),
        .buffer_bytes = device_used_bytes(runtime),
        .buffer_peak = (uint64_t)device_stats(runtime)->used_peak,
        .checked = stats_sum(runtime, STATS_CHECKED),
        .differing = stats_sum(runtime, STATS_DIFFERING),
        .spare_bytes = device_spare_bytes(runtime),
        .plan_bytes = plan_cache_bytes(runtime),
        .bytes_written = stats_sum(runtime, STATS_WRITTEN),
        .traces_made = runtime->traces_made,
        .traces_dropped = runtime->traces_dropped,
        .traces_held = runtime->traces_held,
        .cache_found = runtime->cache_found,
        .cache_missed = runtime->cache_missed,
        .cache_unstored = runtime->cache_unstored,
    };
    if (!out)
        return;
    uint32_t size = out->struct_size ? out->struct_size : TN_END_OF(out, differing);
    size = size < sizeof(mine) ? size : sizeof(mine);
    mine.struct_size = size;
    memcpy(out, &mine, size);
}
