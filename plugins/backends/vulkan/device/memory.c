// SPDX-License-Identifier: MIT
// Device memory: allocated from the driver in blocks, which are divided into buffers.
//
// A block is one VkDeviceMemory with one VkBuffer over all of it, mapped as long as it
// lives if host-visible. Its free ranges are sorted and never adjacent: adjacent ranges are
// merged at once. A buffer of half a block or more gets a block of its own. Empty blocks
// are kept for reuse, since the driver takes milliseconds for a large one: up to a share of
// the heap, the least recently used are freed first, and all are freed when memory runs
// out.
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_SIZE (UINT64_C(64) << 20)
#define SPARE_SHARE 8 // empty blocks hold at most one part in this many of the heap

// If only a window of device memory is host-visible, small buffers lie in the window: the
// host reads small results without a copy on the device.
#define WINDOW_BLOCK (UINT64_C(4) << 20)
#define WINDOW_PIECE (UINT64_C(64) << 10) // bytes; larger buffers lie elsewhere
#define WINDOW_SHARE 2 // blocks take at most one part in this many of the heap

// Where others use memory in place, buffers of more bytes lie in blocks for it, which the
// host may not see. Smaller ones are read and written sooner than handed over.
#define SHARED_PIECE (UINT64_C(4) << 10)

struct vk_memory_range {
    uint64_t begin, end;
};

struct vk_block {
    struct vk_block *next;
    VkDeviceMemory memory;
    VkBuffer buffer;
    unsigned char *map;
    uint64_t size;
    uint64_t allocated; // bytes of `memory`
    bool is_exportable;
    struct vk_memory_range *free; // sorted by `begin`
    uint32_t num_free, max_free;
    uint32_t num_buffers; // in use
    enum vk_memory_kind kind;
    bool shared; // for buffers of less than half a block
    uint64_t serial;
    uint64_t emptied_at; // memory.num_emptied when the block last became empty
};

int vk_memory_find_type(const struct vk_facts *facts, uint32_t allowed,
                        VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < facts->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) &&
            (facts->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return (int)i;
    return -1;
}

// The memory type with these flags, one that is not device-local where there is one.
static int find_host_type(const struct vk_facts *facts, uint32_t allowed,
                          VkMemoryPropertyFlags wanted)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < facts->memory.memoryTypeCount; i++)
        if (!(facts->memory.memoryTypes[i].propertyFlags &
              VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            others |= UINT32_C(1) << i;
    int found = vk_memory_find_type(facts, allowed & others, wanted);
    return found >= 0 ? found : vk_memory_find_type(facts, allowed, wanted);
}

static uint64_t heap_size(const struct vk_facts *facts, int type)
{
    return facts->memory.memoryHeaps[facts->memory.memoryTypes[type].heapIndex].size;
}

VkResult vk_memory_create_buffer(tn_device *device, uint64_t size, const void *next,
                                 VkBuffer *out)
{
    VkResult result = device->vk->CreateBuffer(
        device->handle,
        &(VkBufferCreateInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                              .pNext = next,
                              .size = size,
                              .usage = VK_BUFFER_USAGES},
        NULL, out);
    if (result != VK_SUCCESS)
        *out = VK_NULL_HANDLE;
    return result;
}

static struct vk_memory_type memory_type(const struct vk_facts *facts, int index)
{
    VkMemoryPropertyFlags flags = facts->memory.memoryTypes[index].propertyFlags;
    return (struct vk_memory_type){.index = (uint32_t)index,
                                   .is_mapped =
                                       (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0,
                                   .block_size = BLOCK_SIZE,
                                   .max_bytes = UINT64_MAX};
}

// Drivers export fewer types of memory: NVIDIA's none that is host-visible.
static void set_shared_type(tn_device *device)
{
    const struct vk_facts *facts = &device->facts;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkBuffer probe;
    VkMemoryRequirements needs;
    if (vk_memory_create_buffer(device, 65536, &external, &probe) != VK_SUCCESS)
        return;
    device->vk->GetBufferMemoryRequirements(device->handle, probe, &needs);
    device->vk->DestroyBuffer(device->handle, probe, NULL);
    int own = vk_memory_find_type(facts, needs.memoryTypeBits,
                                  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    uint32_t mapped = device->memory.types[VK_MEMORY_OWN].index;
    if (device->memory.types[VK_MEMORY_OWN].is_mapped &&
        (needs.memoryTypeBits >> mapped & 1))
        own = (int)mapped;
    if (own < 0)
        return;
    device->memory.types[VK_MEMORY_SHARED] = memory_type(facts, own);
    device->memory.types[VK_MEMORY_SHARED].is_mapped = (uint32_t)own == mapped;
}

// `own`: device-local; `both`: device-local and host-visible, or -1; `staging`: host
// memory. If all device memory is host-visible, no staging is needed, until the bus has no
// addresses left for it: blocks are of `own` then. If only a window is (256 MiB on many
// cards), the window is for small buffers.
static void vk_memory_set_types(tn_device *device, int own, int both, int staging)
{
    const struct vk_facts *facts = &device->facts;
    struct vk_memory *memory = &device->memory;
    bool whole = both >= 0 && heap_size(facts, both) >= heap_size(facts, own);
    memory->types[VK_MEMORY_OWN] = memory_type(facts, whole ? both : own);
    memory->types[VK_MEMORY_OWN].is_mapped = whole;
    memory->types[VK_MEMORY_OWN].unmapped = (uint32_t)own;
    memory->types[VK_MEMORY_STAGING] = memory_type(facts, staging);
    memory->host_cached = whole && (facts->memory.memoryTypes[both].propertyFlags &
                                    VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    if (whole || both < 0)
        return;
    memory->types[VK_MEMORY_WINDOW] = memory_type(facts, both);
    memory->types[VK_MEMORY_WINDOW].block_size = WINDOW_BLOCK;
    memory->types[VK_MEMORY_WINDOW].max_bytes = heap_size(facts, both) / WINDOW_SHARE;
}

bool vk_memory_is_mapped(const tn_device *device)
{
    return device->memory.types[VK_MEMORY_OWN].is_mapped ||
           device->memory.types[VK_MEMORY_WINDOW].is_mapped;
}

tn_status vk_memory_init(tn_device *device)
{
    VkBuffer probe;
    VkResult result = vk_memory_create_buffer(device, 65536, NULL, &probe);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkCreateBuffer");
    VkMemoryRequirements needs;
    device->vk->GetBufferMemoryRequirements(device->handle, probe, &needs);
    device->vk->DestroyBuffer(device->handle, probe, NULL);

    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const struct vk_facts *facts = &device->facts;
    int own = vk_memory_find_type(facts, needs.memoryTypeBits, local);
    int both = vk_memory_find_type(facts, needs.memoryTypeBits,
                                   local | visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (both < 0)
        both = vk_memory_find_type(facts, needs.memoryTypeBits, local | visible);
    int staging = find_host_type(facts, needs.memoryTypeBits,
                                 visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (staging < 0)
        staging = find_host_type(facts, needs.memoryTypeBits, visible);
    if (own < 0 || staging < 0)
        return device->host->fail(device->host, TN_ERR_DEVICE,
                                  "%s: no memory type for storage buffers",
                                  facts->properties.deviceName);
    vk_memory_set_types(device, own, both, staging);
    if (device->exports)
        set_shared_type(device);
    return TN_OK;
}

static void block_release_memory(tn_device *device, struct vk_block *block)
{
    if (block->buffer)
        device->vk->DestroyBuffer(device->handle, block->buffer, NULL);
    if (block->memory)
        device->vk->FreeMemory(device->handle, block->memory, NULL);
    block->buffer = VK_NULL_HANDLE;
    block->memory = VK_NULL_HANDLE;
}

static void block_destroy(tn_device *device, struct vk_block *block)
{
    block_release_memory(device, block);
    device->memory.num_freed++;
    device->memory.reserved -= block->size;
    device->memory.types[block->kind].reserved -= block->size;
    free(block->free);
    free(block);
}

// Allocates the block's buffer and memory of a type, and maps the memory where it is to be
// mapped. *out_call names the call that failed.
static VkResult block_allocate_memory(tn_device *device, struct vk_block *block,
                                      uint32_t type, bool is_mapped, const char **out_call)
{
    const VkExternalMemoryHandleTypeFlags kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kind};
    const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = kind};
    block->is_exportable = block->kind == VK_MEMORY_SHARED;
    *out_call = "vkCreateBuffer";
    VkResult result = vk_memory_create_buffer(
        device, block->size, block->is_exportable ? &external : NULL, &block->buffer);
    if (result != VK_SUCCESS)
        return result;
    VkMemoryRequirements needs;
    device->vk->GetBufferMemoryRequirements(device->handle, block->buffer, &needs);
    block->allocated = needs.size;
    *out_call = "vkAllocateMemory";
    result = device->vk->AllocateMemory(device->handle,
                                        &(VkMemoryAllocateInfo){
                                            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .pNext = block->is_exportable ? &export : NULL,
                                            .allocationSize = needs.size,
                                            .memoryTypeIndex = type,
                                        },
                                        NULL, &block->memory);
    if (result != VK_SUCCESS) {
        block->memory = VK_NULL_HANDLE;
        return result;
    }
    *out_call = "vkBindBufferMemory";
    result = device->vk->BindBufferMemory(device->handle, block->buffer, block->memory, 0);
    if (result != VK_SUCCESS || !is_mapped)
        return result;
    void *map;
    *out_call = "vkMapMemory";
    result =
        device->vk->MapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &map);
    if (result == VK_SUCCESS)
        block->map = map;
    return result;
}

static bool is_out_of_memory(VkResult result)
{
    return result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
           result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_MEMORY_MAP_FAILED;
}

static bool vk_memory_is_empty(const struct vk_block *block)
{
    return block->num_free == 1 && block->free[0].end - block->free[0].begin == block->size;
}

// Frees empty blocks, the longest empty first, until they hold at most `keep` bytes. The
// lock is held.
static void drop_spares(tn_device *device, uint64_t keep)
{
    for (;;) {
        struct vk_block **oldest = NULL;
        uint64_t kept = 0;
        for (struct vk_block **at = &device->memory.blocks; *at; at = &(*at)->next) {
            if (!vk_memory_is_empty(*at))
                continue;
            kept += (*at)->size;
            if (!oldest || (*at)->emptied_at < (*oldest)->emptied_at)
                oldest = at;
        }
        if (kept <= keep)
            return;
        struct vk_block *block = *oldest;
        *oldest = block->next;
        block_destroy(device, block);
    }
}

// Falls back to device memory that is not host-visible: a driver may run out of addresses
// of the bus before it runs out of memory.
static VkResult allocate_seen_or_not(tn_device *device, struct vk_block *block,
                                     const char **out_call)
{
    const struct vk_memory_type *type = &device->memory.types[block->kind];
    VkResult result =
        block_allocate_memory(device, block, type->index, type->is_mapped, out_call);
    if (!is_out_of_memory(result) || block->kind != VK_MEMORY_OWN ||
        type->unmapped == type->index)
        return result;
    block_release_memory(device, block);
    return block_allocate_memory(device, block, type->unmapped, false, out_call);
}

// Frees empty blocks if there is no room.
static VkResult block_allocate(tn_device *device, struct vk_block *block,
                               const char **out_call)
{
    VkResult result = allocate_seen_or_not(device, block, out_call);
    if (!is_out_of_memory(result))
        return result;
    block_release_memory(device, block);
    drop_spares(device, 0);
    return allocate_seen_or_not(device, block, out_call);
}

static tn_status block_create(tn_device *device, uint64_t size, enum vk_memory_kind kind,
                              struct vk_block **out_block)
{
    struct vk_memory_type *type = &device->memory.types[kind];
    if (size > type->max_bytes - type->reserved)
        return TN_ERR_MEMORY; // only the window has a limit: the caller takes other memory
    struct vk_block *block = calloc(1, sizeof(*block));
    struct vk_memory_range *ranges = calloc(8, sizeof(*ranges));
    if (!block || !ranges) {
        free(block);
        free(ranges);
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    }
    block->free = ranges;
    block->max_free = 8;
    block->num_free = 1;
    block->free[0] = (struct vk_memory_range){0, size};
    block->size = size;
    block->kind = kind;
    block->serial = ++device->memory.last_serial;
    type->reserved += size;
    device->memory.reserved += size;
    const char *call;
    VkResult result = block_allocate(device, block, &call);
    if (result != VK_SUCCESS) {
        char what[128];
        snprintf(what, sizeof(what), "%s for %llu bytes beside %llu in use", call,
                 (unsigned long long)size, (unsigned long long)device->memory.used);
        block_destroy(device, block);
        return vk_fail(device, result, what);
    }
    block->next = device->memory.blocks;
    device->memory.blocks = block;
    *out_block = block;
    return TN_OK;
}

// Best fit over all blocks of the kind. A block of its own is at most twice as large as its
// buffer.
static struct vk_block *find_range(const struct vk_memory *memory, uint64_t size,
                                   enum vk_memory_kind kind, uint32_t *out_range)
{
    bool shared = size < memory->types[kind].block_size / 2;
    struct vk_block *best = NULL;
    uint64_t best_size = UINT64_MAX;
    for (struct vk_block *block = memory->blocks; block; block = block->next) {
        if (block->kind != kind || block->shared != shared)
            continue;
        for (uint32_t i = 0; i < block->num_free; i++) {
            uint64_t room = block->free[i].end - block->free[i].begin;
            if (room < size || room >= best_size || (!shared && room / 2 > size))
                continue;
            best = block;
            best_size = room;
            *out_range = i;
        }
    }
    return best;
}

static uint64_t vk_memory_padded(uint64_t size)
{
    return (size + VK_ALIGNMENT - 1) / VK_ALIGNMENT * VK_ALIGNMENT;
}

// Makes room for the free ranges of one buffer more: there is at most one more of them than
// buffers, so freeing a buffer needs no memory.
static bool reserve_ranges(struct vk_block *block)
{
    if (block->num_buffers + 2 <= block->max_free)
        return true;
    struct vk_memory_range *more =
        realloc(block->free, 2 * block->max_free * sizeof(*more));
    if (!more)
        return false;
    block->free = more;
    block->max_free *= 2;
    return true;
}

static tn_status take_locked(tn_device *device, uint64_t size, enum vk_memory_kind kind,
                             tn_buffer *out)
{
    struct vk_memory *memory = &device->memory;
    uint32_t at = 0;
    struct vk_block *block = find_range(memory, size, kind, &at);
    if (!block) {
        uint64_t block_size = memory->types[kind].block_size;
        bool shares = size < block_size / 2;
        tn_status status = block_create(device, shares ? block_size : size, kind, &block);
        // No memory for an ordinary block: try one of just this size.
        if (status == TN_ERR_MEMORY && shares && kind != VK_MEMORY_WINDOW)
            status = block_create(device, size, kind, &block);
        if (status != TN_OK)
            return status;
        block->shared = shares;
        at = 0;
    }
    if (!reserve_ranges(block))
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    block->num_buffers++;
    uint64_t begin = block->free[at].begin;
    block->free[at].begin += size;
    if (block->free[at].begin == block->free[at].end) {
        block->num_free--;
        memmove(&block->free[at], &block->free[at + 1],
                (block->num_free - at) * sizeof(block->free[0]));
    }
    *out = (tn_buffer){.block = block,
                       .handle = block->buffer,
                       .offset = begin,
                       .size = size,
                       .serial = block->serial,
                       .map = block->map ? block->map + begin : NULL};
    if (kind != VK_MEMORY_STAGING) {
        memory->used += size;
        memory->peak = memory->used > memory->peak ? memory->used : memory->peak;
    }
    return TN_OK;
}

// Whether a buffer of this size lies in exportable memory; a small one does if that is
// host-visible.
static bool is_for_others(const tn_device *device, uint64_t size)
{
    const struct vk_memory_type *type = &device->memory.types[VK_MEMORY_SHARED];
    return type->max_bytes > 0 && (size > SHARED_PIECE || type->is_mapped);
}

tn_status vk_memory_take(tn_device *device, uint64_t size, enum vk_memory_kind kind,
                         tn_buffer *out)
{
    if (size == 0 || size > UINT64_MAX - VK_ALIGNMENT)
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "a buffer of %llu bytes cannot be",
                                  (unsigned long long)size);
    tn_status status = TN_ERR_MEMORY;
    pthread_mutex_lock(&device->memory.lock);
    if (kind == VK_MEMORY_OWN && is_for_others(device, size))
        status = take_locked(device, vk_memory_padded(size), VK_MEMORY_SHARED, out);
    if (kind == VK_MEMORY_OWN && size <= WINDOW_PIECE &&
        device->memory.types[VK_MEMORY_WINDOW].max_bytes > 0)
        status = take_locked(device, vk_memory_padded(size), VK_MEMORY_WINDOW, out);
    if (status == TN_ERR_MEMORY)
        status = take_locked(device, vk_memory_padded(size), kind, out);
    pthread_mutex_unlock(&device->memory.lock);
    return status;
}

// Inserts a free range at index `at`. reserve_ranges() made room for it.
static void insert_range(struct vk_block *block, uint32_t at, struct vk_memory_range range)
{
    memmove(&block->free[at + 1], &block->free[at],
            (block->num_free - at) * sizeof(block->free[0]));
    block->free[at] = range;
    block->num_free++;
}

// Frees a range, merged with adjacent free ones.
static void give_range(struct vk_block *block, struct vk_memory_range range)
{
    uint32_t at = 0;
    while (at < block->num_free && block->free[at].begin < range.begin)
        at++;
    bool joins_left = at > 0 && block->free[at - 1].end == range.begin;
    bool joins_right = at < block->num_free && block->free[at].begin == range.end;
    if (joins_left && joins_right) {
        block->free[at - 1].end = block->free[at].end;
        block->num_free--;
        memmove(&block->free[at], &block->free[at + 1],
                (block->num_free - at) * sizeof(block->free[0]));
    } else if (joins_left) {
        block->free[at - 1].end = range.end;
    } else if (joins_right) {
        block->free[at].begin = range.begin;
    } else {
        insert_range(block, at, range);
    }
}

void vk_memory_give(tn_device *device, tn_buffer *buffer)
{
    struct vk_memory *memory = &device->memory;
    struct vk_block *block = buffer->block;
    pthread_mutex_lock(&memory->lock);
    if (block->kind != VK_MEMORY_STAGING)
        memory->used -= buffer->size;
    block->num_buffers--;
    give_range(block,
               (struct vk_memory_range){buffer->offset, buffer->offset + buffer->size});
    if (vk_memory_is_empty(block)) {
        int own = (int)memory->types[VK_MEMORY_OWN].index;
        block->emptied_at = ++memory->num_emptied;
        drop_spares(device, heap_size(&device->facts, own) / SPARE_SHARE);
    }
    pthread_mutex_unlock(&memory->lock);
}

void vk_memory_drop_spares(tn_device *device)
{
    pthread_mutex_lock(&device->memory.lock);
    drop_spares(device, 0);
    pthread_mutex_unlock(&device->memory.lock);
}

uint64_t vk_memory_next_serial(tn_device *device)
{
    pthread_mutex_lock(&device->memory.lock);
    uint64_t serial = ++device->memory.last_serial;
    pthread_mutex_unlock(&device->memory.lock);
    return serial;
}

void vk_memory_finish(tn_device *device)
{
    while (device->memory.blocks) {
        struct vk_block *block = device->memory.blocks;
        device->memory.blocks = block->next;
        block_destroy(device, block);
    }
}

// Bytes that the heap of the device's own memory can still give: by the driver's budget,
// which knows of other programs, or else all that the blocks have not taken. Each is a
// guess.
static uint64_t heap_left(const tn_device *device)
{
    const struct vk_memory_type *own = &device->memory.types[VK_MEMORY_OWN];
    uint32_t heap = device->facts.memory.memoryTypes[own->index].heapIndex;
    uint64_t size = device->facts.memory.memoryHeaps[heap].size;
    uint64_t left = size > own->reserved ? size - own->reserved : 0;
    if (!device->facts.tells_budget)
        return left;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    device->instance->vk.GetPhysicalDeviceMemoryProperties2(
        device->physical,
        &(VkPhysicalDeviceMemoryProperties2){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
            .pNext = &budget});
    uint64_t may = budget.heapBudget[heap], has = budget.heapUsage[heap];
    uint64_t rest = may > has ? may - has : 0;
    return rest < left ? rest : left;
}

tn_status vk_memory_info(tn_device *device, tn_memory_info *out)
{
    pthread_mutex_lock(&device->memory.lock);
    uint64_t own = device->memory.types[VK_MEMORY_OWN].reserved, used = device->memory.used;
    uint64_t available = heap_left(device) + (own > used ? own - used : 0);
    tn_memory_info info = {.struct_size = out->struct_size,
                           .used = device->memory.used,
                           .peak = device->memory.peak,
                           .reserved = device->memory.reserved,
                           .available = available ? available : 1};
    pthread_mutex_unlock(&device->memory.lock);
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

void vk_memory_export(tn_device *device, const tn_buffer *buffer,
                      VkDeviceMemory *out_memory, tn_buffer_export *out)
{
    const struct vk_block *block = buffer->block;
    *out_memory = block->is_exportable ? block->memory : VK_NULL_HANDLE;
    out->memory = block->serial;
    out->size = block->allocated;
    out->offset = buffer->offset;
    pthread_mutex_lock(&device->memory.lock);
    out->num_freed = device->memory.num_freed;
    pthread_mutex_unlock(&device->memory.lock);
}
