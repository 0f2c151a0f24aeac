// SPDX-License-Identifier: MIT
// Buffers, with a free list for each size class, four to each power of two. Small buffers
// have the size of their class, which wastes at most a fifth. Large ones come from mmap(),
// on huge pages where the system has them, and have whole pages: those that are kept are
// mostly large, such as the weights of a model, so that nothing is lost with them.
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

// Bytes. Buffers of this size and more come from mmap().
#define MAPPED_FROM (UINT64_C(1) << 20)
#define HUGE_PAGE (UINT64_C(2) << 20)
#define PAGE UINT64_C(4096)
#define MAX_IDLE (UINT64_C(1) << 30) // most bytes in the free lists
#define MAX_SIZE (UINT64_C(1) << 46)

// The bytes of a new buffer that holds `size`. Of small ones they are those of a class: 64,
// 80, 96, 112, 128, 160 ...
static uint64_t capacity_for(uint64_t size)
{
    uint64_t units = size < 64 ? 64 : size;
    uint64_t least = UINT64_C(1) << (63 - __builtin_clzll(units)), step = least / 4;
    uint64_t capacity = least + (units - least + step - 1) / step * step;
    if (capacity < MAPPED_FROM)
        return capacity;
    return (units + sizeof(tn_buffer) + PAGE - 1) / PAGE * PAGE - sizeof(tn_buffer);
}

// The largest class whose size is at most this capacity.
static uint32_t cpu_buffer_class_of(uint64_t capacity)
{
    uint32_t power = 63 - (uint32_t)__builtin_clzll(capacity);
    uint64_t least = UINT64_C(1) << power;
    return (power - 6) * 4 + (uint32_t)((capacity - least) / (least / 4));
}

static tn_buffer *map_memory(uint64_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (size >= HUGE_PAGE)
        madvise(memory, size, MADV_HUGEPAGE); // a hint: failure costs speed only
    return memory;
}

// Returns a buffer's memory to the system. The lock is held.
static void cpu_buffer_give_back(tn_device *device, tn_buffer *buffer)
{
    device->memory.info.reserved -= buffer->capacity;
    if (buffer->is_mapped)
        munmap(buffer, sizeof(*buffer) + buffer->capacity);
    else
        device->host->free(device->host, buffer);
}

// Returns all idle buffers to the system. The lock is held, or the device is closing.
static void drop_idle(tn_device *device)
{
    for (uint32_t i = 0; i < CPU_SIZE_CLASSES; i++) {
        while (device->memory.free[i]) {
            tn_buffer *buffer = device->memory.free[i];
            device->memory.free[i] = buffer->next;
            cpu_buffer_give_back(device, buffer);
        }
    }
    device->memory.idle = 0;
}

tn_status cpu_memory_init(tn_device *device)
{
    device->memory.info.struct_size = sizeof(device->memory.info);
    if (pthread_mutex_init(&device->memory.lock, NULL))
        return device->host->fail(device->host, TN_ERR_MEMORY, "no mutex for buffers");
    return TN_OK;
}

void cpu_memory_finish(tn_device *device)
{
    drop_idle(device);
    pthread_mutex_destroy(&device->memory.lock);
}

// The buffer at *at, which is taken out of its list.
static tn_buffer *take_at(struct cpu_memory *memory, tn_buffer **at)
{
    tn_buffer *buffer = *at;
    *at = buffer->next;
    memory->idle -= buffer->capacity;
    return buffer;
}

// An idle buffer of at least this capacity, of its class or the next one; NULL: none. Small
// ones of one class are alike.
static tn_buffer *take_idle(struct cpu_memory *memory, uint64_t capacity)
{
    uint32_t class = cpu_buffer_class_of(capacity),
             last = class + (capacity >= MAPPED_FROM);
    for (; class <= last; class ++)
        for (tn_buffer **at = &memory->free[class]; *at; at = &(*at)->next)
            if ((*at)->capacity >= capacity)
                return take_at(memory, at);
    return NULL;
}

// The lock is held, but released while the host allocates.
static tn_buffer *cpu_buffer_allocate(tn_device *device, uint64_t size)
{
    pthread_mutex_unlock(&device->memory.lock);
    tn_buffer *buffer = device->host->alloc(device->host, size, CPU_ALIGNMENT);
    pthread_mutex_lock(&device->memory.lock);
    return buffer;
}

// Returns idle large buffers to the system, the largest first, until the memory of the new
// one is taken from them: buffers whose sizes are no longer asked for do not stay beside
// those that are. The lock is held.
static void cpu_buffer_make_room(tn_device *device, uint64_t capacity)
{
    struct cpu_memory *memory = &device->memory;
    uint64_t given = 0;
    for (uint32_t i = CPU_SIZE_CLASSES;
         i > cpu_buffer_class_of(MAPPED_FROM) && given < capacity; i--)
        while (memory->free[i - 1] && given < capacity) {
            tn_buffer *buffer = take_at(memory, &memory->free[i - 1]);
            given += buffer->capacity;
            cpu_buffer_give_back(device, buffer);
        }
}

// Allocates a new buffer. When memory is short, frees the idle buffers and tries again.
static tn_buffer *take_new(tn_device *device, uint64_t capacity)
{
    bool is_mapped = capacity >= MAPPED_FROM;
    uint64_t size = sizeof(tn_buffer) + capacity;
    tn_buffer *buffer;

    if (is_mapped) {
        cpu_buffer_make_room(device, capacity);
        buffer = map_memory(size);
        if (!buffer) {
            drop_idle(device);
            buffer = map_memory(size);
        }
    } else {
        buffer = cpu_buffer_allocate(device, size);
        if (!buffer) {
            drop_idle(device);
            buffer = cpu_buffer_allocate(device, size);
        }
    }
    if (!buffer)
        return NULL;
    *buffer =
        (tn_buffer){.capacity = capacity, .bytes = buffer->inside, .is_mapped = is_mapped};
    device->memory.info.reserved += capacity;
    return buffer;
}

tn_status cpu_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    struct cpu_memory *memory = &device->memory;

    if (size > MAX_SIZE)
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "a buffer of %llu bytes is more than any machine has",
                                  (unsigned long long)size);
    uint64_t capacity = capacity_for(size);
    pthread_mutex_lock(&memory->lock);
    tn_buffer *buffer = take_idle(memory, capacity);
    if (!buffer)
        buffer = take_new(device, capacity);
    if (buffer) {
        buffer->next = NULL;
        memory->info.used += buffer->capacity;
        if (memory->info.peak < memory->info.used)
            memory->info.peak = memory->info.used;
    }
    pthread_mutex_unlock(&memory->lock);
    if (!buffer)
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "out of memory for a buffer of %llu bytes",
                                  (unsigned long long)size);
    *out_buffer = buffer;
    return TN_OK;
}

void cpu_buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    struct cpu_memory *memory = &device->memory;
    if (!buffer)
        return;
    if (buffer->is_imported) {
        device->host->free(device->host, buffer);
        return;
    }
    pthread_mutex_lock(&memory->lock);
    memory->info.used -= buffer->capacity;
    bool keep = memory->idle + buffer->capacity <= MAX_IDLE;
    if (keep) {
        tn_buffer **first = &memory->free[cpu_buffer_class_of(buffer->capacity)];
        buffer->next = *first;
        *first = buffer;
        memory->idle += buffer->capacity;
    } else {
        cpu_buffer_give_back(device, buffer);
    }
    pthread_mutex_unlock(&memory->lock);
}

tn_status cpu_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           const void *data, uint64_t size)
{
    (void)device;
    memcpy(buffer->bytes + offset, data, size);
    return TN_OK;
}

tn_status cpu_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                          uint64_t size)
{
    (void)device;
    memcpy(data, buffer->bytes + offset, size);
    return TN_OK;
}

// Kernels take operands at any multiple of an element's size, as views begin there, too.
tn_status cpu_buffer_import(tn_device *device, const tn_buffer_import *import,
                            tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), CPU_ALIGNMENT);
    if (!buffer)
        return TN_ERR_MEMORY;
    *buffer =
        (tn_buffer){.capacity = import->size, .bytes = import->memory, .is_imported = true};
    *out_buffer = buffer;
    return TN_OK;
}

void *cpu_buffer_map(tn_device *device, tn_buffer *buffer)
{
    (void)device;
    return buffer->bytes;
}

// Bytes that the system can give without swapping; 0 where it does not tell.
static uint64_t system_available(void)
{
    char line[128];
    uint64_t kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && !kilobytes && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) != 1)
            kilobytes = 0;
    if (file)
        fclose(file);
    return kilobytes <= UINT64_MAX / 1024 ? kilobytes * 1024 : 0;
}

tn_status cpu_memory_info(tn_device *device, tn_memory_info *out)
{
    uint32_t size = out->struct_size;
    uint64_t available = system_available();
    pthread_mutex_lock(&device->memory.lock);
    tn_memory_info info = device->memory.info;
    pthread_mutex_unlock(&device->memory.lock);
    if (available)
        info.available = available + (info.reserved - info.used);
    if (size > sizeof(info))
        size = sizeof(info);
    info.struct_size = size;
    memcpy(out, &info, size);
    return TN_OK;
}
