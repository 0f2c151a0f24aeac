// SPDX-License-Identifier: MIT
// Buffers whose memory other libraries use, too: exported and imported by file descriptor
// (VK_KHR_external_memory_fd), or the host's, where the device reaches it as its own
// (VK_EXT_external_memory_host). Each has memory of its own, and no block.
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// Bytes. Less of the host's memory is copied sooner than made a buffer of.
#define LEAST_HOST_MEMORY 4096
// Kernels load four elements of 32 bits at a time.
#define LOAD_ALIGNMENT 16

#define HANDLE_TYPE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

static const VkExternalMemoryBufferCreateInfo external = {
    .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
    .handleTypes = HANDLE_TYPE};

static tn_status vk_check_shares(tn_device *device)
{
    tn_status status = vk_check_lost(device);
    return status == TN_OK && !device->facts.share_fd
               ? device->host->fail(device->host, TN_ERR_UNSUPPORTED,
                                    "%s: the driver has no VK_KHR_external_memory_fd",
                                    device->facts.properties.deviceName)
               : status;
}

// A duplicate that exec() closes.
static tn_status vk_share_duplicate(tn_device *device, int fd, int *out)
{
    const tn_host *host = device->host;
    *out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (*out >= 0)
        return TN_OK;
    return errno == EBADF
               ? host->fail(host, TN_ERR_ARGUMENT, "file descriptor %d is not open", fd)
               : host->fail(host, TN_ERR_MEMORY, "no file descriptor: %s", strerror(errno));
}

// Allocates with `next` in the chain, and binds the buffer's handle.
static VkResult vk_share_allocate(tn_device *device, tn_buffer *buffer, uint64_t size,
                                  uint32_t type, const void *next, const char **out_call)
{
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .pNext = next,
        .buffer = buffer->handle};
    *out_call = "vkAllocateMemory";
    VkResult result = device->vk->AllocateMemory(
        device->handle,
        &(VkMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                .pNext = device->facts.share_dedicated ? &dedicated : next,
                                .allocationSize = size,
                                .memoryTypeIndex = type},
        NULL, &buffer->memory);
    if (result != VK_SUCCESS) {
        buffer->memory = VK_NULL_HANDLE;
        return result;
    }
    *out_call = "vkBindBufferMemory";
    return device->vk->BindBufferMemory(device->handle, buffer->handle, buffer->memory, 0);
}

// The type of memory that exports have: as that of ordinary buffers, if the driver permits.
static int own_type(const tn_device *device, uint32_t allowed)
{
    uint32_t own = device->memory.types[VK_MEMORY_OWN].index;
    return allowed >> own & 1 ? (int)own
                              : vk_memory_find_type(&device->facts, allowed,
                                                    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

// Buffers go from one device to another: what was written is visible there.
static void record_owner(tn_device *device, VkCommandBuffer commands,
                         const tn_buffer *buffer, bool gives)
{
    uint32_t mine = device->facts.queue_family, others = VK_QUEUE_FAMILY_EXTERNAL;
    const VkBufferMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
        .srcAccessMask = gives ? VK_ACCESS_MEMORY_WRITE_BIT : 0,
        .dstAccessMask = gives ? 0 : VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .srcQueueFamilyIndex = gives ? mine : others,
        .dstQueueFamilyIndex = gives ? others : mine,
        .buffer = buffer->handle,
        .size = VK_WHOLE_SIZE};
    device->vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                   VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 1,
                                   &barrier, 0, NULL);
}

// --- exporting -------------------------------------------------------------------------

static void record_export(tn_device *device, VkCommandBuffer commands,
                          const struct vk_copy *copy)
{
    vk_record_copy(device, commands, copy);
    record_owner(device, commands, copy->to, true);
}

// Makes memory for `size` bytes that can be exported.
static tn_status make_exportable(tn_device *device, uint64_t size, tn_buffer *shared,
                                 tn_buffer_fd *out)
{
    static const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = HANDLE_TYPE};
    const char *call = "vkCreateBuffer";
    VkMemoryRequirements needs;
    size = (size + VK_ALIGNMENT - 1) / VK_ALIGNMENT * VK_ALIGNMENT;
    VkResult result = vk_memory_create_buffer(device, size, &external, &shared->handle);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, call);
    device->vk->GetBufferMemoryRequirements(device->handle, shared->handle, &needs);
    int type = own_type(device, needs.memoryTypeBits);
    if (type < 0)
        return device->host->fail(device->host, TN_ERR_UNSUPPORTED,
                                  "%s: no memory type for buffers that are shared",
                                  device->facts.properties.deviceName);
    out->kind = (uint32_t)type + 1;
    out->size = needs.size;
    result = vk_share_allocate(device, shared, needs.size, (uint32_t)type, &export, &call);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && !shared->memory) {
        vk_memory_drop_spares(device);
        result =
            vk_share_allocate(device, shared, needs.size, (uint32_t)type, &export, &call);
    }
    return vk_check(device, result, call);
}

static tn_status get_fd(tn_device *device, VkDeviceMemory memory, int32_t *out)
{
    VkResult result = device->vk->GetMemoryFdKHR(
        device->handle,
        &(VkMemoryGetFdInfoKHR){.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                .memory = memory,
                                .handleType = HANDLE_TYPE},
        out);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkGetMemoryFdKHR");
    fcntl(*out, F_SETFD, FD_CLOEXEC);
    return TN_OK;
}

static tn_status export_copy(tn_device *device, const struct vk_copy *copy,
                             tn_buffer *shared, tn_buffer_fd *out)
{
    tn_status status = make_exportable(device, copy->size, shared, out);
    if (status == TN_OK)
        status = vk_run_commands(device, record_export, copy);
    return status == TN_OK ? get_fd(device, shared->memory, &out->fd) : status;
}

// The type of a file, and of devices the number of the driver. Not 0.
static uint64_t file_kind(const struct stat *file)
{
    return UINT64_C(1) << 63 | (uint64_t)(file->st_mode & S_IFMT) << 32 |
           (S_ISCHR(file->st_mode) ? (uint32_t)major(file->st_rdev) : 0);
}

// Finds out what files exports are: a driver may crash when it imports other files.
static tn_status learn_file(tn_device *device, uint64_t *out)
{
    tn_buffer shared = {.fd = -1};
    tn_buffer_fd memory = {.fd = -1};
    struct stat file;
    *out = atomic_load(&device->share_file);
    if (*out)
        return TN_OK;
    tn_status status = make_exportable(device, 1, &shared, &memory);
    if (status == TN_OK)
        status = get_fd(device, shared.memory, &memory.fd);
    vk_buffer_give_own(device, &shared);
    if (status != TN_OK)
        return status;
    if (fstat(memory.fd, &file) == 0)
        atomic_store(&device->share_file, *out = file_kind(&file));
    close(memory.fd);
    return TN_OK;
}

static bool vk_share_is_shared(const tn_buffer *buffer)
{
    return !buffer->block && buffer->fd >= 0;
}

tn_status vk_buffer_export_fd(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              uint64_t size, tn_buffer_fd *out)
{
    tn_buffer shared = {.fd = -1};
    const struct vk_copy copy = {buffer, &shared, offset, 0, size};
    tn_buffer_fd mine = {.struct_size = out->struct_size, .fd = -1};
    tn_status status = vk_check_shares(device);
    if (status != TN_OK)
        return status;
    if (vk_share_is_shared(buffer)) {
        mine.kind = buffer->kind;
        mine.size = buffer->size;
        mine.offset = offset;
        status = vk_share_duplicate(device, buffer->fd, &mine.fd);
    } else {
        status = export_copy(device, &copy, &shared, &mine);
        vk_buffer_give_own(device, &shared);
    }
    if (status == TN_OK)
        memcpy(out, &mine,
               out->struct_size < sizeof(mine) ? out->struct_size : sizeof(mine));
    return status;
}

// --- in place --------------------------------------------------------------------------

static tn_status not_in_place(tn_device *device, const char *what)
{
    return device->host->fail(
        device->host, TN_ERR_UNSUPPORTED, "%s: %s cannot be used by others in place: %s",
        device->facts.properties.deviceName, what,
        device->exports ? "the driver exports none of this kind"
                        : "this process was not started by tenon run, "
                          "and TENON_NCCL is not set");
}

tn_status vk_buffer_export(tn_device *device, tn_buffer *buffer, uint32_t wants,
                           tn_buffer_export *out)
{
    tn_buffer_export export = {.struct_size = out->struct_size, .fd = -1};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    tn_status status = vk_check_shares(device);
    if (status != TN_OK)
        return status;
    if (buffer->block)
        vk_memory_export(device, buffer, &memory, &export);
    if (!memory)
        return not_in_place(device, "this memory");
    if (wants & TN_EXPORT_MEMORY_FD)
        status = get_fd(device, memory, &export.fd);
    if (status == TN_OK)
        memcpy(out, &export,
               out->struct_size < sizeof(export) ? out->struct_size : sizeof(export));
    return status;
}

tn_status vk_point_export_fd(tn_device *device, tn_point point, int32_t *out_fd)
{
    int fd = -1;
    if (!device->exports || !device->facts.share_timelines)
        return not_in_place(device, "timelines");
    tn_status status = vk_check_lost(device);
    if (status == TN_OK)
        status = vk_hand_over(device, point.queue, point.value);
    if (status != TN_OK || !out_fd)
        return status;
    VkResult result = device->vk->GetSemaphoreFdKHR(
        device->handle,
        &(VkSemaphoreGetFdInfoKHR){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                   .semaphore = device->queues[point.queue].timeline,
                                   .handleType =
                                       VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT},
        &fd);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkGetSemaphoreFdKHR");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    *out_fd = fd;
    return TN_OK;
}

// --- importing -------------------------------------------------------------------------

static void record_import(tn_device *device, VkCommandBuffer commands,
                          const struct vk_copy *copy)
{
    record_owner(device, commands, copy->to, false);
}

// Drivers take the file descriptor when they succeed. When they fail some have closed it
// all the same: it is closed here if it still is the file that it was.
static void close_if_left(int fd, const struct stat *was)
{
    struct stat is;
    if (fstat(fd, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino)
        close(fd);
}

static tn_status vk_share_refuse(tn_device *device, const tn_buffer_fd *memory,
                                 const char *why)
{
    return device->host->fail(
        device->host, TN_ERR_ARGUMENT,
        "file descriptor %d as memory of %llu bytes and kind %u: %s: expected what an "
        "export by this device gave, with its size and kind",
        memory->fd, (unsigned long long)memory->size, memory->kind, why);
}

static tn_status import_memory(tn_device *device, const tn_buffer_fd *memory, uint32_t type,
                               tn_buffer *buffer)
{
    const char *call;
    struct stat file = {0};
    VkImportMemoryFdInfoKHR import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                      .handleType = HANDLE_TYPE};
    uint64_t expected;
    tn_status status = learn_file(device, &expected);
    if (status == TN_OK)
        status = vk_share_duplicate(device, memory->fd, &import.fd);
    if (status != TN_OK)
        return status;
    bool is_other = fstat(import.fd, &file) || file_kind(&file) != expected;
    if (is_other || (S_ISREG(file.st_mode) && file.st_size >= 0 &&
                     (uint64_t)file.st_size < memory->size)) {
        close(import.fd);
        return vk_share_refuse(device, memory,
                               is_other ? "it is another kind of file" : "it is shorter");
    }
    VkResult result = vk_share_allocate(device, buffer, memory->size, type, &import, &call);
    if (!buffer->memory)
        close_if_left(import.fd, &file);
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST ||
        result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_TOO_MANY_OBJECTS)
        return vk_check(device, result, call);
    char why[128];
    snprintf(why, sizeof(why), "%s: %s", call, vk_result_name(result));
    return vk_share_refuse(device, memory, why);
}

static tn_status choose_type(tn_device *device, const tn_buffer_fd *memory,
                             const tn_buffer *buffer, uint32_t *out)
{
    VkMemoryRequirements needs;
    device->vk->GetBufferMemoryRequirements(device->handle, buffer->handle, &needs);
    int type = memory->kind ? (int)(memory->kind - 1) % 32
                            : own_type(device, needs.memoryTypeBits);
    if (needs.size > memory->size)
        return vk_share_refuse(device, memory, "buffers of this size need more");
    if (type < 0 || memory->kind > device->facts.memory.memoryTypeCount ||
        !(needs.memoryTypeBits >> type & 1))
        return vk_share_refuse(device, memory, "the device has no such memory for buffers");
    *out = (uint32_t)type;
    return TN_OK;
}

static tn_status vk_share_map(tn_device *device, tn_buffer *buffer)
{
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    void *map;
    if ((device->facts.memory.memoryTypes[buffer->kind - 1].propertyFlags & wanted) !=
        wanted)
        return TN_OK;
    VkResult result =
        device->vk->MapMemory(device->handle, buffer->memory, 0, VK_WHOLE_SIZE, 0, &map);
    if (result == VK_SUCCESS)
        buffer->map = map;
    return vk_check(device, result, "vkMapMemory");
}

static tn_status make_import(tn_device *device, const tn_buffer_fd *memory,
                             tn_buffer *buffer)
{
    uint32_t type = 0;
    if (memory->size == 0 || memory->size > device->facts.max_buffer)
        return vk_share_refuse(device, memory, "a buffer cannot have this size");
    VkResult result =
        vk_memory_create_buffer(device, memory->size, &external, &buffer->handle);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkCreateBuffer");
    tn_status status = choose_type(device, memory, buffer, &type);
    if (status == TN_OK)
        status = import_memory(device, memory, type, buffer);
    if (status != TN_OK)
        return status;
    buffer->kind = type + 1;
    status = vk_share_map(device, buffer);
    if (status == TN_OK)
        status = vk_run_commands(device, record_import, &(struct vk_copy){.to = buffer});
    return status == TN_OK ? vk_share_duplicate(device, memory->fd, &buffer->fd) : status;
}

tn_status vk_buffer_import_fd(tn_device *device, const tn_buffer_fd *memory,
                              tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    tn_status status = vk_check_shares(device);
    if (status != TN_OK)
        return status;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
    *buffer = (tn_buffer){
        .size = memory->size, .serial = vk_memory_next_serial(device), .fd = -1};
    status = make_import(device, memory, buffer);
    if (status != TN_OK) {
        vk_buffer_give_own(device, buffer);
        host->free(host, buffer);
        return status;
    }
    *out_buffer = buffer;
    return TN_OK;
}

// --- the host's memory -----------------------------------------------------------------

static tn_status copy_instead(tn_device *device, const tn_buffer_import *import,
                              const char *why)
{
    return device->host->fail(
        device->host, TN_ERR_UNSUPPORTED,
        "%s uses no memory of the host in place, %llu bytes at %p: %s",
        device->facts.properties.deviceName, (unsigned long long)import->size,
        import->memory, why);
}

// NULL, or the reason why this memory is no buffer of the device.
static const char *reason_against(const tn_device *device, const tn_buffer_import *import)
{
    const struct vk_facts *facts = &device->facts;
    uint64_t needed = facts->properties.limits.minStorageBufferOffsetAlignment;
    bool acts_as_gpu =
        facts->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU && !device->is_software;
    if (!facts->host_alignment || !device->memory.host_cached || acts_as_gpu)
        return "its own is faster";
    if (facts->host_alignment > (uint64_t)sysconf(_SC_PAGESIZE))
        return "the driver takes larger pages than the system's";
    if (import->size < LEAST_HOST_MEMORY)
        return "less than 4096 bytes are copied sooner";
    if (import->size > facts->max_buffer)
        return "it is more than a buffer may have";
    if ((uintptr_t)import->memory % (needed < LOAD_ALIGNMENT ? LOAD_ALIGNMENT : needed))
        return needed > LOAD_ALIGNMENT
                   ? "its address is aligned to less than the device needs"
                   : "its address is no multiple of 16";
    return NULL;
}

// Memory types that can import this host memory, are coherent, and suit the buffer.
static int host_type(tn_device *device, const void *memory, VkBuffer buffer)
{
    VkMemoryHostPointerPropertiesEXT types = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkMemoryRequirements needs;
    if (device->vk->GetMemoryHostPointerPropertiesEXT(
            device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, memory,
            &types) != VK_SUCCESS)
        return -1;
    device->vk->GetBufferMemoryRequirements(device->handle, buffer, &needs);
    return vk_memory_find_type(&device->facts, types.memoryTypeBits & needs.memoryTypeBits,
                               VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
}

// Whole pages around the memory: no kernel reaches bytes that are not bound.
static tn_status import_pages(tn_device *device, const tn_buffer_import *import,
                              tn_buffer *buffer)
{
    static const VkExternalMemoryBufferCreateInfo pages = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
    uint64_t page = device->facts.host_alignment;
    uint64_t below = (uintptr_t)import->memory % page;
    uint64_t size = (below + import->size + page - 1) / page * page;
    void *first = (char *)import->memory - below;
    const VkImportMemoryHostPointerInfoEXT host = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = first};
    const char *call = "vkCreateBuffer";
    VkResult result = vk_memory_create_buffer(device, size, &pages, &buffer->handle);
    int type = result == VK_SUCCESS ? host_type(device, first, buffer->handle) : -1;
    if (result == VK_SUCCESS && type < 0)
        return copy_instead(device, import, "the driver cannot map it");
    if (result == VK_SUCCESS)
        result = vk_share_allocate(device, buffer, size, (uint32_t)type, &host, &call);
    buffer->offset = below;
    buffer->map = import->memory;
    if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST)
        return vk_check(device, result, call);
    return copy_instead(device, import, vk_result_name(result));
}

tn_status vk_buffer_import(tn_device *device, const tn_buffer_import *import,
                           tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    tn_status status = vk_check_lost(device);
    const char *why = reason_against(device, import);
    if (status == TN_OK && why)
        status = copy_instead(device, import, why);
    if (status != TN_OK)
        return status;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
    *buffer = (tn_buffer){
        .size = import->size, .serial = vk_memory_next_serial(device), .fd = -1};
    status = import_pages(device, import, buffer);
    if (status != TN_OK) {
        vk_buffer_give_own(device, buffer);
        host->free(host, buffer);
        return status;
    }
    *out_buffer = buffer;
    return TN_OK;
}
