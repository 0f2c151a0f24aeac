// SPDX-License-Identifier: MIT
// Opening and closing a runtime: its parts one after the other, and back.
#include "base/runtime.h"

#include <inttypes.h>
#include <string.h>
#include "attr/intern.h"
#include "base/fail.h"
#include "base/memory.h"
#include "check/checking.h"
#include "device/device.h"
#include "expr/expr.h"
#include "file/file.h"
#include "graph/graph.h"
#include "plan/override.h"
#include "plan/plan.h"
#include "plugin/host/host.h"
#include "plugin/plugin_set.h"
#include "primitive/prim_set.h"
#include "run/effects.h"
#include "transform/build.h"
#include "watch/why_log.h"

// The caller's options as this build knows them: what an older caller lacks is zero, and
// what a newer one adds must be.
static tn_status runtime_read_options(const tn_runtime_options *given,
                                      tn_runtime_options *mine)
{
    *mine = (tn_runtime_options){0};
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, variables);
    if (given)
        memcpy(mine, given, size < sizeof(*mine) ? size : sizeof(*mine));
    for (uint32_t i = sizeof(*mine); i < size; i++)
        if (((const unsigned char *)given)[i])
            return fail(TN_ERR_UNSUPPORTED,
                        "tn_runtime_options: byte %" PRIu32
                        " is set, which this version (%zu "
                        "bytes) does not know",
                        i, sizeof(*mine));
    if (mine->flags)
        return fail(TN_ERR_ARGUMENT, "tn_runtime_options: flags 0x%" PRIx32 ", expected 0",
                    mine->flags);
    return TN_OK;
}

static tn_status runtime_open_parts(tn_runtime *runtime, const tn_runtime_options *options)
{
    tn_status status = life_begin(&runtime->life);
    if (status == TN_OK)
        status = config_create(options->variables, &runtime->config);
    if (status == TN_OK)
        status = trace_create(runtime->config, &runtime->trace);
    if (status == TN_OK)
        status = intern_set_create(&runtime->interned);
    if (status == TN_OK)
        status = expr_set_create(runtime);
    if (status == TN_OK)
        status = prim_set_create(runtime);
    if (status == TN_OK)
        status = prim_register_own(runtime);
    if (status == TN_OK)
        status = plugin_set_create(runtime, options->plugin_path);
    if (status == TN_OK)
        status = device_set_create(runtime);
    runtime->graph_service = &graph_service;
    runtime->graph_format = &graph_format_service;
    if (status == TN_OK)
        status = plan_cache_create(runtime);
    if (status == TN_OK)
        status = effects_create(runtime);
    if (status == TN_OK)
        status = checker_create(runtime);
    if (status == TN_OK)
        status = why_log_create(runtime);
    if (status == TN_OK)
        overrides_check(runtime);
    return status;
}

static void runtime_destroy(tn_runtime *runtime)
{
    why_log_destroy(runtime);
    plan_cache_destroy(runtime);
    device_set_destroy(runtime);
    effects_destroy(runtime);
    checker_destroy(runtime);
    plugin_set_destroy(runtime);
    prim_set_destroy(runtime);
    expr_set_destroy(runtime);
    intern_set_destroy(runtime->interned);
    trace_destroy(runtime->trace, runtime->config);
    config_destroy(runtime->config);
    pthread_cond_destroy(&runtime->counted_returned);
    pthread_mutex_destroy(&runtime->counted_lock);
    mem_free(runtime);
}

tn_status tn_runtime_open(const tn_runtime_options *options, tn_runtime **out_runtime)
{
    tn_status given = fail_if_null("runtime_open", "out_runtime", out_runtime);
    if (given != TN_OK)
        return given;
    *out_runtime = NULL;
    fail_clear();
    tn_runtime_options mine;
    tn_status status = runtime_read_options(options, &mine);
    if (status != TN_OK)
        return status;
    tn_runtime *runtime = mem_zalloc(sizeof(*runtime));
    if (!runtime)
        return TN_ERR_MEMORY;
    pthread_mutex_init(&runtime->counted_lock, NULL);
    pthread_cond_init(&runtime->counted_returned, NULL);
    status = runtime_open_parts(runtime, &mine);
    if (status != TN_OK) {
        runtime_destroy(runtime);
        return status;
    }
    *out_runtime = runtime;
    return TN_OK;
}

// A child of fork() cannot close the runtime: its threads are the parent's and may hold
// locks, and devices belong to the parent. Its memory is the parent's until written to, and
// goes with the process. The list keeps it reachable for leak checkers.
static void runtime_abandon(tn_runtime *runtime)
{
    static tn_runtime *_Atomic abandoned;
    runtime->next = atomic_exchange(&abandoned, runtime);
}

tn_status tn_runtime_close(tn_runtime *runtime)
{
    if (!runtime)
        return TN_OK;
    if (life_is_inherited(&runtime->life)) {
        runtime_abandon(runtime);
        return TN_OK;
    }
    if (callback_refuses(runtime, "tn_runtime_close"))
        return TN_ERR_ARGUMENT;
    tn_status status = life_check_unused(&runtime->life);
    if (status == TN_OK)
        runtime_destroy(runtime);
    else // most callers take no notice of the status
        log_write(runtime->config, TN_LOG_ERROR, "sched", "%s", fail_text());
    return status;
}

const char *tn_config(const tn_runtime *runtime, const char *name)
{
    return runtime && name ? config_get(runtime->config, name) : NULL;
}
