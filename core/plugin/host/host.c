// SPDX-License-Identifier: MIT
// The tn_host table: the functions of the core that a plugin calls.
#include "host.h"

#include <tenon/graph_format.h>
#include <tenon/primitive.h>
#include <inttypes.h>
#include <string.h>
#include "../../base/fail.h"
#include "../../base/memory.h"

#define MAX_ALIGNMENT ((uint64_t)1 << 21)

static void *host_alloc(const tn_host *host, uint64_t size, uint64_t alignment)
{
    (void)host;
    if (alignment == 0)
        alignment = 16;
    if (alignment & (alignment - 1) || alignment > MAX_ALIGNMENT) {
        fail(TN_ERR_ARGUMENT, "alloc: alignment %" PRIu64 ", expected a power of two",
             alignment);
        return NULL;
    }
    if (size > INT64_MAX) {
        fail_memory(size);
        return NULL;
    }
    return mem_alloc_aligned(size, alignment);
}

static void host_free(const tn_host *host, void *memory)
{
    (void)host;
    mem_free(memory);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);
static tn_status host_fail(const tn_host *host, tn_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail_v(status, format, list);
    va_end(list);
    if (host->self->prefix)
        fail_prefix("plugin %s: ", host->self->prefix);
    return status;
}

static void host_log(const tn_host *host, int32_t level, const char *topic,
                     const char *format, ...) PRINTF_LIKE(4, 5);
static void host_log(const tn_host *host, int32_t level, const char *topic,
                     const char *format, ...)
{
    va_list list;
    va_start(list, format);
    log_write_v(host->self->runtime->config, level, topic, format, list);
    va_end(list);
}

static const char *host_config(const tn_host *host, const char *name)
{
    return config_get(host->self->runtime->config, name);
}

static void trace_event(const tn_host *host, const tn_trace_event *event)
{
    struct trace *trace = host->self->runtime->trace;
    if (trace)
        trace_kernel(trace, event->track, event->begin_ns, event->duration_ns, event->name,
                     event->detail);
}

static const tn_host_trace *trace_service(const tn_runtime *runtime)
{
    static const tn_host_trace service = {
        .struct_size = sizeof(service),
        .event = trace_event,
    };
    return runtime->trace ? &service : NULL;
}

static const void *host_query(const tn_host *host, const char *id)
{
    if (strcmp(id, TN_HOST_CACHE) == 0)
        return cache_service(host->self->runtime);
    if (strcmp(id, TN_HOST_TRACE) == 0)
        return trace_service(host->self->runtime);
    if (strcmp(id, TN_HOST_PRIMITIVES) == 0)
        return primitives_service();
    if (strcmp(id, TN_HOST_CALLBACKS) == 0)
        return callbacks_service();
    if (strcmp(id, TN_HOST_FILES) == 0)
        return files_service();
    if (strcmp(id, TN_HOST_INSTALLED) == 0)
        return installed_service();
    if (strcmp(id, TN_HOST_INTERFACES) == 0)
        return interfaces_service();
    if (strcmp(id, TN_HOST_GRAPH) == 0)
        return host->self->runtime->graph_service;
    if (strcmp(id, TN_HOST_GRAPH_FORMAT) == 0)
        return host->self->runtime->graph_format;
    return NULL;
}

const tn_host host_table = {
    .struct_size = sizeof(host_table),
    .alloc = host_alloc,
    .free = host_free,
    .fail = host_fail,
    .log = host_log,
    .config = host_config,
    .query = host_query,
};
