// SPDX-License-Identifier: MIT
// Memory and timelines of Vulkan that CUDA has imported, each once.
#include "group.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void nccl_forget(tn_device_group *g, struct nccl_imports *imports)
{
    for (uint32_t i = 0; i < imports->count; i++) {
        const struct nccl_import *import = &imports->all[i];
        if (import->address)
            g->library->cuda.MemFree(import->address);
        if (import->memory)
            g->library->cuda.DestroyMemory(import->memory);
        if (import->semaphore)
            g->library->cuda.DestroySemaphore(import->semaphore);
    }
    imports->count = 0;
}

static const struct nccl_import *import_find(const struct nccl_imports *imports,
                                             uint32_t device, uint64_t number)
{
    for (uint32_t i = 0; i < imports->count; i++)
        if (imports->all[i].device == device && imports->all[i].number == number)
            return &imports->all[i];
    return NULL;
}

// Makes room for one more entry, which the caller counts in `count`; NULL: memory is out.
static struct nccl_import *import_new(struct nccl_imports *imports, uint32_t device,
                                      uint64_t number)
{
    if (imports->count == imports->room) {
        uint32_t room = imports->room ? 2 * imports->room : 8;
        struct nccl_import *more = realloc(imports->all, room * sizeof(*more));
        if (!more)
            return NULL;
        imports->all = more;
        imports->room = room;
    }
    struct nccl_import *import = &imports->all[imports->count];
    *import = (struct nccl_import){.device = device, .number = number};
    return import;
}

static tn_status import_failed(const tn_host *host, const tn_device_group *g,
                               const char *what, int code)
{
    return host->fail(host, TN_ERR_DEVICE, "CUDA cannot use Vulkan's %s: %s", what,
                      cuda_error(g->library, code));
}

// CUDA takes the file descriptor on success only.
static tn_status import_memory(const tn_host *host, tn_device_group *g,
                               const tn_run_export *export)
{
    struct nccl_import *import = import_new(&g->memories, export->number, export->memory);
    if (!import) {
        close(export->memory_fd);
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    }
    int code = g->library->cuda.ImportMemory(
        &import->memory, &(cuda_memory_handle){.type = CUDA_OPAQUE_FD,
                                               .handle.fd = export->memory_fd,
                                               .size = export->size});
    if (code) {
        close(export->memory_fd);
        return import_failed(host, g, "memory", code);
    }
    code = g->library->cuda.MapMemory(&import->address, import->memory,
                                      &(cuda_memory_range){.size = export->size});
    if (code) {
        g->library->cuda.DestroyMemory(import->memory);
        return import_failed(host, g, "memory", code);
    }
    g->memories.count++;
    return TN_OK;
}

static tn_status import_timeline(const tn_host *host, tn_device_group *g,
                                 const tn_run_export *export)
{
    struct nccl_import *import = import_new(&g->timelines, export->number, export->queue);
    if (!import) {
        close(export->point_fd);
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    }
    int code = g->library->cuda.ImportSemaphore(
        &import->semaphore,
        &(cuda_semaphore_handle){.type = CUDA_TIMELINE_FD, .handle.fd = export->point_fd});
    if (code) {
        close(export->point_fd);
        return import_failed(host, g, "timeline", code);
    }
    g->timelines.count++;
    return TN_OK;
}

// Imports the memory and timeline of an operand, as far as CUDA has not imported them
// before, by file descriptors that the device exports.
static tn_status import_missing(const tn_host *host, tn_device_group *g, const tn_run *run,
                                uint32_t operand, tn_run_export *export)
{
    uint32_t wants = 0;
    if (!import_find(&g->memories, export->number, export->memory))
        wants |= TN_EXPORT_MEMORY_FD;
    if (export->value && !import_find(&g->timelines, export->number, export->queue))
        wants |= TN_EXPORT_POINT_FD;
    if (!wants)
        return TN_OK;
    tn_status status = tn_run_memory_of(run)->operand_export(run, operand, wants, export);
    if (status != TN_OK)
        return status;
    if (wants & TN_EXPORT_MEMORY_FD)
        status = import_memory(host, g, export);
    if (export->point_fd >= 0 && status == TN_OK &&
        !import_find(&g->timelines, export->number, export->queue))
        status = import_timeline(host, g, export);
    else if (export->point_fd >= 0)
        close(export->point_fd);
    return status;
}

tn_status nccl_operand(const tn_host *host, tn_device_group *g, const tn_run *run,
                       uint32_t operand, cuda_address *out)
{
    tn_run_export export = {.struct_size = sizeof(export)};
    tn_status status = tn_run_memory_of(run)->operand_export(run, operand, 0, &export);
    // At operand 0 alone: an address that was given must hold until the call is made.
    if (status == TN_OK && operand == 0 && export.num_freed != g->num_freed) {
        nccl_forget(g, &g->memories); // some may be freed by now
        g->num_freed = export.num_freed;
    }
    if (status == TN_OK)
        status = import_missing(host, g, run, operand, &export);
    if (status != TN_OK)
        return status;
    *out = import_find(&g->memories, export.number, export.memory)->address + export.offset;
    if (!export.value)
        return TN_OK;
    cuda_semaphore *semaphore =
        import_find(&g->timelines, export.number, export.queue)->semaphore;
    int code = g->library->cuda.Wait(
        &semaphore, &(cuda_semaphore_value){.value = export.value}, 1, g->stream);
    return code ? import_failed(host, g, "timeline", code) : TN_OK;
}
