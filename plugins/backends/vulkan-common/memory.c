// SPDX-License-Identifier: MIT
// Device memory: taken from the driver in blocks, given out in pieces.
//
// A block is one VkDeviceMemory with one VkBuffer over all of it, mapped for as long as it
// lives when the host can see it. Its free ranges are kept sorted and never touch: two
// neighbours are merged at once. A piece of half a block or more gets a block of its own.
// Blocks that fall empty are kept for the next piece of their size, since the driver takes
// milliseconds for a large one: up to a share of the heap, and never when memory runs out.
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_SIZE (UINT64_C(64) << 20)
#define SPARE_SHARE 8 // of the heap may lie in empty blocks: one part in this many

struct range {
    uint64_t begin, end;
};

struct vk_block {
    struct vk_block *next;
    VkDeviceMemory memory;
    VkBuffer buffer;
    unsigned char *map;
    uint64_t size;
    struct range *free;
    uint32_t num_free, max_free;
    bool staging;
    bool shared; // for pieces of less than half a block
};

static int find_type(const struct vk_facts *facts, uint32_t allowed,
                     VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < facts->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) &&
            (facts->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return (int)i;
    return -1;
}

static uint64_t heap_size(const struct vk_facts *facts, int type)
{
    return facts->memory.memoryHeaps[facts->memory.memoryTypes[type].heapIndex].size;
}

static const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT;

static VkResult create_buffer(tn_device *device, uint64_t size, VkBuffer *out)
{
    return device->vk->CreateBuffer(
        device->handle,
        &(VkBufferCreateInfo){
            .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = usage},
        NULL, out);
}

// Memory that is the device's own and yet seen by the host needs no staging; a window of it
// (256 MiB on many cards) is not enough for everything, so then the host does without.
tn_status vk_memory_init(tn_device *device)
{
    VkBuffer probe;
    VkResult result = create_buffer(device, 65536, &probe);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkCreateBuffer");
    VkMemoryRequirements needs;
    device->vk->GetBufferMemoryRequirements(device->handle, probe, &needs);
    device->vk->DestroyBuffer(device->handle, probe, NULL);

    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const struct vk_facts *facts = &device->facts;
    int own = find_type(facts, needs.memoryTypeBits, local);
    int both = find_type(facts, needs.memoryTypeBits,
                         local | visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    if (both < 0)
        both = find_type(facts, needs.memoryTypeBits, local | visible);
    int cached = find_type(facts, needs.memoryTypeBits,
                           visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    int staging = cached >= 0 ? cached : find_type(facts, needs.memoryTypeBits, visible);
    if (own < 0 || staging < 0)
        return device->host->fail(device->host, TN_ERR_DEVICE,
                                  "%s: no memory type for storage buffers",
                                  facts->properties.deviceName);
    bool whole = both >= 0 && heap_size(facts, both) >= heap_size(facts, own);
    device->memory.type = (uint32_t)(whole ? both : own);
    device->memory.host_visible = whole;
    device->memory.host_cached = whole && (facts->memory.memoryTypes[both].propertyFlags &
                                           VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    device->memory.staging_type = (uint32_t)staging;
    return TN_OK;
}

static void block_unback(tn_device *device, struct vk_block *block)
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
    block_unback(device, block);
    device->memory.reserved -= block->size;
    free(block->free);
    free(block);
}

// *out_call is the call that failed.
static VkResult block_back(tn_device *device, struct vk_block *block, const char **out_call)
{
    *out_call = "vkCreateBuffer";
    VkResult result = create_buffer(device, block->size, &block->buffer);
    if (result != VK_SUCCESS) {
        block->buffer = VK_NULL_HANDLE;
        return result;
    }
    VkMemoryRequirements needs;
    device->vk->GetBufferMemoryRequirements(device->handle, block->buffer, &needs);
    *out_call = "vkAllocateMemory";
    result = device->vk->AllocateMemory(
        device->handle,
        &(VkMemoryAllocateInfo){
            .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
            .allocationSize = needs.size,
            .memoryTypeIndex =
                block->staging ? device->memory.staging_type : device->memory.type,
        },
        NULL, &block->memory);
    if (result != VK_SUCCESS) {
        block->memory = VK_NULL_HANDLE;
        return result;
    }
    *out_call = "vkBindBufferMemory";
    result = device->vk->BindBufferMemory(device->handle, block->buffer, block->memory, 0);
    if (result != VK_SUCCESS || !(block->staging || device->memory.host_visible))
        return result;
    void *map;
    *out_call = "vkMapMemory";
    result =
        device->vk->MapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &map);
    if (result == VK_SUCCESS)
        block->map = map;
    return result;
}

static bool is_empty(const struct vk_block *block)
{
    return block->num_free == 1 && block->free[0].end - block->free[0].begin == block->size;
}

// Gives empty blocks back to the driver until at most `keep` bytes lie in them.
static void drop_spares(tn_device *device, uint64_t keep)
{
    uint64_t kept = 0;
    for (struct vk_block **at = &device->memory.blocks; *at;) {
        struct vk_block *block = *at;
        if (!is_empty(block) || (kept += block->size) <= keep) {
            at = &block->next;
            continue;
        }
        kept -= block->size;
        *at = block->next;
        block_destroy(device, block);
    }
}

static tn_status block_create(tn_device *device, uint64_t size, bool staging,
                              struct vk_block **out_block)
{
    struct vk_block *block = calloc(1, sizeof(*block));
    struct range *ranges = calloc(8, sizeof(*ranges));
    if (!block || !ranges) {
        free(block);
        free(ranges);
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    }
    block->free = ranges;
    block->max_free = 8;
    block->num_free = 1;
    block->free[0] = (struct range){0, size};
    block->size = size;
    block->staging = staging;
    device->memory.reserved += size;
    const char *call;
    VkResult result = block_back(device, block, &call);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
        block_unback(device, block);
        drop_spares(device, 0);
        result = block_back(device, block, &call);
    }
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

// The smallest free range that is large enough, over all blocks of the kind. A large piece
// takes no more than twice what it needs.
static struct vk_block *find_range(const struct vk_memory *memory, uint64_t size,
                                   bool staging, uint32_t *out_range)
{
    struct vk_block *best = NULL;
    uint64_t best_size = UINT64_MAX;
    for (struct vk_block *block = memory->blocks; block; block = block->next) {
        bool shared = size < BLOCK_SIZE / 2;
        if (block->staging != staging || block->shared != shared)
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

static uint64_t padded(uint64_t size)
{
    return (size + VK_ALIGNMENT - 1) / VK_ALIGNMENT * VK_ALIGNMENT;
}

static tn_status take_locked(tn_device *device, uint64_t size, bool staging, tn_buffer *out)
{
    struct vk_memory *memory = &device->memory;
    uint32_t at = 0;
    struct vk_block *block = find_range(memory, size, staging, &at);
    if (!block) {
        bool shares = size < BLOCK_SIZE / 2;
        tn_status status =
            block_create(device, shares ? BLOCK_SIZE : size, staging, &block);
        if (status == TN_ERR_MEMORY &&
            shares) // a whole block is too much: just what is needed
            status = block_create(device, size, staging, &block);
        if (status != TN_OK)
            return status;
        block->shared = shares;
        at = 0;
    }
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
                       .serial = ++memory->last_serial,
                       .map = block->map ? block->map + begin : NULL};
    if (!staging) {
        memory->used += size;
        memory->peak = memory->used > memory->peak ? memory->used : memory->peak;
    }
    return TN_OK;
}

tn_status vk_memory_take(tn_device *device, uint64_t size, bool staging, tn_buffer *out)
{
    if (size == 0 || size > UINT64_MAX - VK_ALIGNMENT)
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "a buffer of %llu bytes cannot be",
                                  (unsigned long long)size);
    pthread_mutex_lock(&device->memory.lock);
    tn_status status = take_locked(device, padded(size), staging, out);
    pthread_mutex_unlock(&device->memory.lock);
    return status;
}

// Room for one more free range was made when the piece was taken from a block, unless the
// array is full; when it cannot grow, the range is lost until the block goes.
static void insert_range(struct vk_block *block, uint32_t at, struct range range)
{
    if (block->num_free == block->max_free) {
        struct range *more = realloc(block->free, 2 * block->max_free * sizeof(*more));
        if (!more)
            return;
        block->free = more;
        block->max_free *= 2;
    }
    memmove(&block->free[at + 1], &block->free[at],
            (block->num_free - at) * sizeof(block->free[0]));
    block->free[at] = range;
    block->num_free++;
}

static void give_range(struct vk_block *block, struct range range)
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
    if (!block->staging)
        memory->used -= buffer->size;
    give_range(block, (struct range){buffer->offset, buffer->offset + buffer->size});
    if (is_empty(block))
        drop_spares(device, heap_size(&device->facts, (int)memory->type) / SPARE_SHARE);
    pthread_mutex_unlock(&memory->lock);
}

void vk_memory_finish(tn_device *device)
{
    while (device->memory.blocks) {
        struct vk_block *block = device->memory.blocks;
        device->memory.blocks = block->next;
        block_destroy(device, block);
    }
}

tn_status vk_memory_info(tn_device *device, tn_memory_info *out)
{
    pthread_mutex_lock(&device->memory.lock);
    tn_memory_info info = {.struct_size = out->struct_size,
                           .used = device->memory.used,
                           .peak = device->memory.peak,
                           .reserved = device->memory.reserved};
    pthread_mutex_unlock(&device->memory.lock);
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}
