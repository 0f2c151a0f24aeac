// SPDX-License-Identifier: MIT
// Making a plan: the stages in order.
#include "plan.h"

#include <string.h>
#include "../base/fail.h"
#include "../plugin/host.h"
#include "record.h"

static tn_status work_start(struct plan_work *work, struct plan *plan)
{
    uint32_t num_ids = work->task->num_ids, num_nodes = work->task->num_nodes;
    tn_status status = devices_open(work->runtime, &work->devices, &work->num_devices);
    if (status != TN_OK)
        return status;
    plan->devices = work->devices;
    plan->num_devices = work->num_devices;
    work->value_of = mem_alloc((num_ids + 1) * sizeof(*work->value_of));
    work->same_as = mem_alloc((num_nodes + 1) * sizeof(*work->same_as));
    work->exprs = expr_set_hold(work->runtime);
    if (!work->value_of || !work->same_as || !work->exprs)
        return TN_ERR_MEMORY;
    memset(work->value_of, 0xff, (num_ids + 1) * sizeof(*work->value_of));
    return TN_OK;
}

static struct plan *plan_new(tn_runtime *runtime, const struct task *task)
{
    struct plan *plan = mem_zalloc(sizeof(*plan));
    if (!plan)
        return NULL;
    plan->runtime = runtime;
    plan->signature = task->signature;
    plan->num_leaves = task->num_leaves;
    atomic_init(&plan->refs, 1);
    pthread_mutex_init(&plan->lock, NULL);
    return plan;
}

static tn_status simplify(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_simplify(work);
}

static tn_status place(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_place(work);
}

static tn_status fuse(struct plan_work *work, struct plan *plan)
{
    (void)plan;
    return plan_fuse(work);
}

static const struct stage {
    const char *name;
    tn_status (*run)(struct plan_work *work, struct plan *plan);
} stages[] = {
    {"open devices", work_start},
    {"simplify", simplify},
    {"place", place},
    {"fuse", fuse},
    {"order", plan_order},
    {"assign", plan_assign},
    {"compile", plan_compile},
};

static tn_status run_stages(struct plan_work *work, struct plan *plan)
{
    uint64_t whole = trace_begin(work->runtime);
    tn_status status = TN_OK;
    for (size_t i = 0; i < sizeof(stages) / sizeof(*stages) && status == TN_OK; i++) {
        uint64_t begin = trace_begin(work->runtime);
        status = stages[i].run(work, plan);
        trace_end(work->runtime, begin, stages[i].name, "\"operations\":%u", work->num_ops);
    }
    trace_end(work->runtime, whole, "plan", "\"nodes\":%u,\"steps\":%u,\"transfers\":%u",
              work->task->num_nodes, plan->num_steps, plan->num_transfers);
    return status;
}

static tn_status make(tn_runtime *runtime, const struct task *task, json_t *explain,
                      struct plan **out_plan)
{
    struct plan *plan = plan_new(runtime, task);
    if (!plan)
        return TN_ERR_MEMORY;
    struct plan_work work = {
        .runtime = runtime, .arena = &plan->arena, .task = task, .explain = explain};
    tn_status status = TN_OK;
    if (explain && json_object_set_new(explain, "nodes", json_array()) != 0)
        status = fail_memory(0);
    if (status == TN_OK)
        status = run_stages(&work, plan);
    if (status == TN_OK && explain)
        explain_plan(&work, plan);
    work_finish(&work);
    if (status != TN_OK) {
        plan_release(plan);
        return status;
    }
    atomic_fetch_add_explicit(&sched_stats(runtime)->plans_made, 1, memory_order_relaxed);
    *out_plan = plan;
    return TN_OK;
}

tn_status plan_create(tn_runtime *runtime, const struct task *task, json_t *explain,
                      struct plan **out_plan)
{
    tn_status status = callback_check(runtime);
    if (status != TN_OK)
        return status;
    if (explain || !runtime->record)
        return make(runtime, task, explain, out_plan);
    explain = json_object();
    status = explain ? make(runtime, task, explain, out_plan) : fail_memory(0);
    if (explain)
        record_plan(runtime, explain, status == TN_OK ? *out_plan : NULL);
    json_decref(explain);
    return status;
}

void plan_retain(struct plan *plan)
{
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
}

static void destroy_executables(struct plan *plan)
{
    if (life_is_inherited(&plan->runtime->life)) // the devices are the parent's
        return;
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        struct plan_segment *segment = &plan->segments[i];
        if (!segment->executable)
            continue;
        struct device *device = plan->devices[segment->device];
        device_settle(device, segment->last_point);
        pthread_mutex_lock(&device->lock);
        device->ops->executable_destroy(device->handle, segment->executable);
        pthread_mutex_unlock(&device->lock);
    }
}

void plan_release(struct plan *plan)
{
    if (!plan || atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1)
        return;
    destroy_executables(plan);
    for (uint32_t i = 0; plan->arenas && i < plan->num_devices; i++)
        storage_release(plan->arenas[i]);
    mem_free(plan->segments);
    mem_free(plan->storages);
    pthread_mutex_destroy(&plan->lock);
    arena_finish(&plan->arena);
    mem_free(plan);
}
