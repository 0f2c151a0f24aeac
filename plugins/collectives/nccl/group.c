// SPDX-License-Identifier: MIT
// Whether the libraries are found, the GPU of this process, and the communicator.
#include "group.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_CLOSING_MS = 3000,
    LEAST_BYTES = 65537 // of a member's array: fewer are quicker through the host's memory
};

// --- libraries --------------------------------------------------------------------------

// Without a backend of Vulkan no memory can be shared with CUDA.
static bool uses_vulkan(const tn_host *host)
{
    const char *backend = host->config(host, "TENON_BACKEND");
    return !backend || !*backend || strstr(backend, "vulkan");
}

tn_status nccl_ready(const tn_host *host, char *why, uint64_t size)
{
    const char *name = host->config(host, "TENON_NCCL");
    bool is_wanted = name && *name, is_off = is_wanted && strcmp(name, "off") == 0;
    if (is_off || (!is_wanted && !uses_vulkan(host))) {
        snprintf(why, size, "%s", is_off ? "TENON_NCCL is off" : "no backend of Vulkan");
        return TN_ERR_UNSUPPORTED;
    }
    if (nccl_library_open(is_wanted ? name : NULL, why, size))
        return TN_OK;
    return is_wanted ? TN_ERR_NOT_FOUND : TN_ERR_UNSUPPORTED;
}

static uint64_t least_bytes(const tn_host *host)
{
    const char *text = host->config(host, "TENON_NCCL_LEAST");
    return text && *text ? strtoull(text, NULL, 10) : LEAST_BYTES;
}

tn_status nccl_group_open(const tn_host *host, const tn_collective *base,
                          const tn_host *base_host, tn_group *group, tn_device_group **out)
{
    char why[NCCL_REASON];
    const tn_group_facts *facts = base->facts(group);
    tn_device_group *g = calloc(1, sizeof(*g));
    if (!g)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    *g = (tn_device_group){.base = base,
                           .base_host = base_host,
                           .group = group,
                           .rank = facts->rank,
                           .size = facts->size,
                           .least = least_bytes(host),
                           .library = nccl_library_open(NULL, why, sizeof(why))};
    *out = g;
    return TN_OK;
}

// Lets elements on their way to other machines arrive first; waits at most MOST_CLOSING_MS
// for other members.
static void comm_close(tn_device_group *g)
{
    int state = g->comm ? g->library->nccl.CommFinalize(g->comm) : NCCL_OK;
    for (int i = 0; i < MOST_CLOSING_MS && state == NCCL_IN_PROGRESS; i++) {
        if (g->library->nccl.CommError(g->comm, &state) != NCCL_OK)
            break;
        if (state == NCCL_IN_PROGRESS)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (g->comm && state == NCCL_OK)
        g->library->nccl.CommDestroy(g->comm);
    else if (g->comm)
        g->library->nccl.CommAbort(g->comm);
    g->comm = NULL;
}

void nccl_group_close(const tn_host *host, tn_device_group *g)
{
    struct nccl_context context;
    (void)host;
    if (!g)
        return;
    if (g->has_device && nccl_context_begin(g, &context)) {
        nccl_forget(g, &g->memories);
        nccl_forget(g, &g->timelines);
        comm_close(g);
        g->library->cuda.StreamDestroy(g->stream);
        nccl_context_end(g, &context);
        g->library->cuda.PrimaryRelease(g->device);
    }
    free(g->memories.all);
    free(g->timelines.all);
    free(g);
}

// --- the GPU ----------------------------------------------------------------------------

bool nccl_context_begin(tn_device_group *g, struct nccl_context *context)
{
    context->before = NULL;
    g->library->cuda.CtxGetCurrent(&context->before);
    return g->library->cuda.CtxSetCurrent(g->context) == CUDA_OK;
}

void nccl_context_end(tn_device_group *g, const struct nccl_context *context)
{
    g->library->cuda.CtxSetCurrent(context->before);
}

static bool device_refuse(tn_device_group *g, const char *what, int code)
{
    snprintf(g->refused, sizeof(g->refused), "%s: %.180s", what,
             cuda_error(g->library, code));
    return false;
}

static bool device_by_uuid(tn_device_group *g, const uint8_t uuid[NCCL_UUID], int *out)
{
    unsigned char found[NCCL_UUID];
    int count = 0, device, code = g->library->cuda.Init(0);
    if (!code)
        code = g->library->cuda.DeviceGetCount(&count);
    for (int i = 0; i < count && !code; i++) {
        code = g->library->cuda.DeviceGet(&device, i);
        if (!code)
            code = g->library->cuda.DeviceGetUuid(found, device);
        if (!code && memcmp(found, uuid, sizeof(found)) == 0) {
            *out = device;
            return true;
        }
    }
    if (code && code != CUDA_NO_DEVICE)
        return device_refuse(g, "CUDA does not start", code);
    snprintf(g->refused, sizeof(g->refused),
             "none of CUDA's %d devices is that of the arrays (CUDA_VISIBLE_DEVICES)",
             count);
    return false;
}

// Finds the GPU's location: its bus, and a hash of its machine.
static void find_location(tn_device_group *g)
{
    char bus[16] = "?", name[256] = "";
    uint64_t hash = UINT64_C(14695981039346656037);
    g->library->cuda.DeviceGetBus(bus, sizeof(bus), g->device);
    gethostname(name, sizeof(name) - 1);
    for (const char *c = name; *c; c++)
        hash = (hash % (UINT64_C(1) << 56) ^ (unsigned char)*c) * 31 % (UINT64_C(1) << 56);
    snprintf(g->location, sizeof(g->location), "%.13s %014llx", bus,
             (unsigned long long)hash);
}

bool nccl_find_device(tn_device_group *g, const uint8_t uuid[NCCL_UUID])
{
    struct nccl_context context;
    if (g->refused[0] || g->has_device)
        return !g->refused[0] && memcmp(uuid, g->uuid, NCCL_UUID) == 0;
    if (!device_by_uuid(g, uuid, &g->device))
        return false;
    int code = g->library->cuda.PrimaryRetain(&g->context, g->device);
    if (code)
        return device_refuse(g, "CUDA has no context", code);
    bool has_context = nccl_context_begin(g, &context);
    code = g->library->cuda.StreamCreate(&g->stream, CUDA_NON_BLOCKING);
    if (has_context)
        nccl_context_end(g, &context);
    if (code || !has_context) {
        g->library->cuda.PrimaryRelease(g->device);
        return device_refuse(g, "CUDA has no stream", code);
    }
    memcpy(g->uuid, uuid, NCCL_UUID);
    find_location(g);
    g->has_device = true;
    return true;
}

// --- the communicator -------------------------------------------------------------------

tn_status nccl_break(const tn_host *host, tn_device_group *g, tn_status status,
                     const char *format, ...)
{
    char text[NCCL_REASON];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (g->comm)
        g->library->nccl.CommAbort(g->comm);
    g->comm = NULL;
    g->is_broken = true;
    g->base->abort(g->base_host, g->group, text);
    return host->fail(host, status, "%s", text);
}

// Gives all members rank 0's id of the communicator.
static tn_status share_id(const tn_host *host, tn_device_group *g, nccl_id *id)
{
    struct {
        nccl_id id;
        int32_t code;
    } all = {.code = 0};
    tn_collective_work *work;
    if (g->rank == 0)
        all.code = g->library->nccl.GetUniqueId(&all.id);
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .flags = TN_COLLECTIVE_ASIDE,
                                     .kind = TN_COLLECTIVE_BROADCAST,
                                     .dtype = TN_U8,
                                     .count = sizeof(all),
                                     .input = &all,
                                     .output = &all};
    tn_status status = g->base->start(g->base_host, g->group, &call, &work);
    if (status == TN_OK)
        status = g->base->wait(g->base_host, work);
    if (status == TN_OK && all.code != NCCL_OK)
        status = nccl_break(host, g, TN_ERR_IO, "NCCL makes no communicator: %s",
                            g->library->nccl.GetErrorString(all.code));
    *id = all.id;
    return status;
}

tn_status nccl_connect(const tn_host *host, tn_device_group *g,
                       const tn_collective_call *call)
{
    nccl_id id = {{0}};
    nccl_config config = {
        .size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_CONFIG_VERSION};
    tn_status status = g->comm ? TN_OK : share_id(host, g, &id);
    if (g->comm || status != TN_OK)
        return status;
    int code = g->library->nccl.CommInit(&g->comm, g->size, id, g->rank, &config);
    status = nccl_settle(host, g, call, code, false);
    if (status == TN_OK && g->rank == 0)
        host->log(host, TN_LOG_INFO, "collective", "%s connects %d GPUs",
                  g->library->version, g->size);
    return status;
}
