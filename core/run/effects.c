// SPDX-License-Identifier: MIT
// The order of effects; see effects.h.
#include "effects.h"

#include "../base/fail.h"
#include "../base/memory.h"

struct effects {
    pthread_mutex_t lock; // guards `taken`
    pthread_cond_t given;
    bool taken;
    struct effect_point last[MAX_DOMAINS]; // written by the thread that has `taken`
};

tn_status effects_create(tn_runtime *runtime)
{
    struct effects *effects = mem_zalloc(sizeof(*effects));
    if (!effects)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&effects->lock, NULL);
    pthread_cond_init(&effects->given, NULL);
    runtime->effects = effects;
    return TN_OK;
}

void effects_destroy(tn_runtime *runtime)
{
    struct effects *effects = runtime->effects;
    if (!effects)
        return;
    pthread_cond_destroy(&effects->given);
    pthread_mutex_destroy(&effects->lock);
    mem_free(effects);
    runtime->effects = NULL;
}

void effects_enter(tn_runtime *runtime)
{
    struct effects *effects = runtime->effects;
    pthread_mutex_lock(&effects->lock);
    while (effects->taken)
        pthread_cond_wait(&effects->given, &effects->lock);
    effects->taken = true;
    pthread_mutex_unlock(&effects->lock);
}

void effects_leave(tn_runtime *runtime, uint64_t domains, struct effect_point last)
{
    struct effects *effects = runtime->effects;
    for (uint32_t i = 0; last.device && i < MAX_DOMAINS; i++)
        if (domains >> i & 1)
            effects->last[i] = last;
    pthread_mutex_lock(&effects->lock);
    effects->taken = false;
    pthread_cond_signal(&effects->given);
    pthread_mutex_unlock(&effects->lock);
}

struct effect_point effects_last(const tn_runtime *runtime, uint32_t domain)
{
    return runtime->effects->last[domain];
}
