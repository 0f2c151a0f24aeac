// SPDX-License-Identifier: MIT
// plan_create: runs the stages in order.
#include "place.h"

#include <string.h>
#include "../base/fail.h"
#include "../plugin/host/host.h"
#include "fuse/fuse.h"

// Loads all plugins that planning needs, backends and kernels, so that no later stage loads
// code.
static tn_status plan_work_start(struct plan_work *work, struct plan *plan)
{
    uint32_t num_ids = work->task->num_ids, num_nodes = work->task->num_nodes;
    tn_status status = devices_open(work->runtime, &work->devices, &work->num_devices);
    if (status != TN_OK)
        return status;
    plan->devices = work->devices;
    plan->num_devices = work->num_devices;
    uint32_t num_queues = work->num_devices * TN_MAX_QUEUES;
    plan->last_use = arena_alloc(&plan->arena, num_queues * sizeof(*plan->last_use));
    if (!plan->last_use)
        return TN_ERR_MEMORY;
    work->value_of = mem_alloc((num_ids + 1) * sizeof(*work->value_of));
    work->same_as = mem_alloc((num_nodes + 1) * sizeof(*work->same_as));
    work->exprs = expr_set_hold(work->runtime);
    if (!work->value_of || !work->same_as || !work->exprs)
        return TN_ERR_MEMORY;
    memset(work->value_of, 0xff, (num_ids + 1) * sizeof(*work->value_of));
    // About as many as there will be: tables that grow are copied.
    status = mem_grow((void **)&work->values, &work->max_values, num_ids + 1,
                      sizeof(*work->values));
    if (status == TN_OK)
        status = mem_grow((void **)&work->ops, &work->max_ops, num_nodes + 1,
                          sizeof(*work->ops));
    return status;
}

static struct plan *plan_new(tn_runtime *runtime, const struct task *task)
{
    struct plan *plan = mem_zalloc(sizeof(*plan));
    if (!plan)
        return NULL;
    plan->runtime = runtime;
    plan->interned.set = runtime->interned;
    plan->entry.key = task->signature;
    atomic_init(&plan->entry.refs, 1);
    return plan;
}

static tn_status stage_simplify(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_simplify(work);
}

static tn_status stage_place(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_place(work);
}

static tn_status stage_fuse(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_fuse(work);
}

static tn_status stage_epilogues(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    tn_status status = plan_narrow(work);
    if (status == TN_OK)
        status = plan_recompute(work);
    return status == TN_OK ? plan_epilogues(work) : status;
}

static const struct stage {
    const char *name;
    tn_status (*run)(struct plan_work *work, struct plan *plan);
} stages[] = {
    {"prepare", plan_work_start}, {"simplify", stage_simplify},   {"place", stage_place},
    {"fuse", stage_fuse},         {"epilogues", stage_epilogues}, {"order", plan_order},
    {"assign", plan_assign},      {"compile", plan_compile},
};

static tn_status plan_run_stages(struct plan_work *work, struct plan *plan)
{
    uint64_t whole = trace_begin(work->runtime->trace);
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof(stages) / sizeof(*stages) && status == TN_OK; i++) {
        uint64_t begin = trace_begin(work->runtime->trace);
        status = stages[i].run(work, plan);
        trace_end(work->runtime->trace, begin, stages[i].name, "\"operations\":%u",
                  work->num_ops);
    }
    trace_end(work->runtime->trace, whole, "plan",
              "\"nodes\":%u,\"steps\":%u,\"transfers\":%u", work->task->num_nodes,
              plan->num_steps, plan->num_transfers);
    return status;
}

// Host memory of the plan. Backends do not tell the size of executables: 512 bytes a step
// are an estimate.
static uint64_t count_bytes(const struct plan *plan)
{
    return sizeof(*plan) + plan->arena.bytes +
           plan->num_segments * (uint64_t)sizeof(*plan->segments) +
           plan->num_storages * (uint64_t)sizeof(*plan->storages) +
           plan->num_steps * (uint64_t)512;
}

static tn_status stage_make(tn_runtime *runtime, struct task *task,
                            struct plan_watcher *watcher, struct plan **out_plan)
{
    struct plan *plan = plan_new(runtime, task);
    if (!plan)
        return TN_ERR_MEMORY;
    struct plan_work work = {.runtime = runtime,
                             .arena = &plan->arena,
                             .interned = &plan->interned,
                             .task = task,
                             .watcher = watcher};
    tn_status status = plan_run_stages(&work, plan);
    if (status == TN_OK && watcher)
        watcher->ops->planned(watcher, &work, plan);
    work_finish(&work);
    plan->num_leaves = task->num_leaves;
    if (status != TN_OK) {
        plan_release(plan);
        return status;
    }
    stats_count(runtime, STATS_PLANS_MADE, 1);
    plan->entry.bytes = count_bytes(plan);
    *out_plan = plan;
    return TN_OK;
}

tn_status plan_create(tn_runtime *runtime, struct task *task, struct plan_watcher *watcher,
                      struct plan **out_plan)
{
    tn_status status = callback_check(runtime);
    if (status != TN_OK)
        return status;
    if (watcher || !runtime->watch_plan)
        return stage_make(runtime, task, watcher, out_plan);
    if (!(watcher = runtime->watch_plan(runtime)))
        return TN_ERR_MEMORY;
    status = stage_make(runtime, task, watcher, out_plan);
    watcher->ops->finish(watcher, status == TN_OK ? *out_plan : NULL);
    return status;
}
