// SPDX-License-Identifier: MIT
// The plan cache: by signature, the least recently used plan goes first.
#include <pthread.h>
#include "plan.h"

#define MAX_PLANS 256

struct plan_cache {
    pthread_mutex_t lock; // not held while a plan is freed
    struct map plans;
    struct plan *newest, *oldest;
    uint32_t count;
};

tn_status plan_cache_create(tn_runtime *runtime)
{
    runtime->plans = mem_zalloc(sizeof(*runtime->plans));
    if (!runtime->plans)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&runtime->plans->lock, NULL);
    return TN_OK;
}

void plan_cache_destroy(tn_runtime *runtime)
{
    struct plan_cache *cache = runtime->plans;
    if (!cache)
        return;
    for (struct plan *plan = cache->newest; plan;) {
        struct plan *next = plan->older;
        plan_release(plan);
        plan = next;
    }
    map_finish(&cache->plans);
    pthread_mutex_destroy(&cache->lock);
    mem_free(cache);
    runtime->plans = NULL;
}

static void unlink_plan(struct plan_cache *cache, struct plan *plan)
{
    *(plan->newer ? &plan->newer->older : &cache->newest) = plan->older;
    *(plan->older ? &plan->older->newer : &cache->oldest) = plan->newer;
    plan->newer = plan->older = NULL;
}

static void link_newest(struct plan_cache *cache, struct plan *plan)
{
    plan->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = plan;
    cache->newest = plan;
}

struct plan *plan_cache_get(tn_runtime *runtime, struct hash signature)
{
    struct plan_cache *cache = runtime->plans;
    pthread_mutex_lock(&cache->lock);
    struct plan *plan = map_get(&cache->plans, signature);
    if (plan) {
        plan_retain(plan);
        if (plan != cache->newest) {
            unlink_plan(cache, plan);
            link_newest(cache, plan);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    if (plan)
        atomic_fetch_add_explicit(&sched_stats(runtime)->plan_hits, 1,
                                  memory_order_relaxed);
    return plan;
}

// A plan that cannot be kept, for want of memory or because another thread made the same,
// is simply not kept.
void plan_cache_put(tn_runtime *runtime, struct plan *plan)
{
    struct plan_cache *cache = runtime->plans;
    struct plan *gone = NULL;
    pthread_mutex_lock(&cache->lock);
    if (!map_get(&cache->plans, plan->signature) &&
        map_put(&cache->plans, plan->signature, plan) == TN_OK) {
        plan_retain(plan);
        link_newest(cache, plan);
        if (++cache->count > MAX_PLANS) {
            gone = cache->oldest;
            unlink_plan(cache, gone);
            map_remove(&cache->plans, gone->signature);
            cache->count--;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    plan_release(gone);
}
