// SPDX-License-Identifier: MIT
// The plan cache: plans by task signature, evicted least recently used first.
#include "plan.h"

struct plan_cache {
    struct lru plans;
};

// Waits for all runs first: an executable may be destroyed only when no submission uses it.
static void destroy_executables(struct plan *plan)
{
    if (life_is_inherited(&plan->runtime->life)) // the devices are the parent's
        return;
    for (uint32_t i = 0; plan->last_use && i < plan->num_devices; i++) {
        struct device *device = plan->devices[i];
        for (uint32_t queue = 0; queue < device->num_queues; queue++)
            device_drain(device, (tn_point){.queue = queue,
                                            .value = *plan_last_use(plan, i, queue)});
    }
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        const struct device *device = plan->devices[segment->device];
        if (segment->executable)
            device->ops->executable_destroy(device->handle, segment->executable);
    }
}

static void plan_destroy(struct lru_entry *entry)
{
    struct plan *plan = (struct plan *)entry;
    destroy_executables(plan);
    for (uint32_t i = 0; i < MAX_IDLE_RUNS; i++)
        mem_free(atomic_load(&plan->idle[i].record));
    for (uint32_t i = 0; plan->hosts && i < plan->num_hosts; i++)
        plan_host_finish(&plan->hosts[i]);
    mem_free(plan->segments);
    mem_free(plan->storages);
    intern_refs_release(&plan->interned);
    arena_finish(&plan->arena);
    mem_free(plan);
}

void plan_retain(struct plan *plan)
{
    lru_retain(&plan->entry);
}

void plan_release(struct plan *plan)
{
    if (plan)
        lru_release(&plan->runtime->plans->plans, &plan->entry);
}

tn_status plan_cache_create(tn_runtime *runtime)
{
    runtime->plans = mem_zalloc(sizeof(*runtime->plans));
    if (!runtime->plans)
        return TN_ERR_MEMORY;
    lru_init(&runtime->plans->plans, PLAN_CACHE_LIMIT, MAX_PLANS, plan_destroy);
    return TN_OK;
}

void plan_cache_destroy(tn_runtime *runtime)
{
    if (!runtime->plans)
        return;
    lru_finish(&runtime->plans->plans);
    mem_free(runtime->plans);
    runtime->plans = NULL;
}

struct plan *plan_cache_get(tn_runtime *runtime, struct hash signature)
{
    struct plan *plan = (struct plan *)lru_get(&runtime->plans->plans, signature);
    if (plan)
        stats_count(runtime, STATS_PLAN_HITS, 1);
    return plan;
}

void plan_cache_put(tn_runtime *runtime, struct plan *plan)
{
    lru_put(&runtime->plans->plans, &plan->entry);
}

uint64_t plan_cache_bytes(const tn_runtime *runtime)
{
    return lru_bytes(&runtime->plans->plans);
}
