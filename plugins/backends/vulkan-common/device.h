// SPDX-License-Identifier: MIT
// What both Vulkan plugins share: instance, device, memory, pipelines, segments. The one
// thing that tells the plugins apart is struct vk_flavour.
//
// Threads. A device's queue, memory, shaders and staging each have a lock of their own and
// none is held while another is taken.
#ifndef VULKAN_COMMON_DEVICE_H
#define VULKAN_COMMON_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include <tenon/plugin.h>
#include "api.h"
#include "hash.h"

#define VK_TOPIC "vulkan"
#define VK_ALIGNMENT 256 // of values in memory; no device asks for more
#define VK_MAX_PUSH 32   // words: what every device has
#define VK_MAX_OPERANDS 32
#define VK_MAX_SPEC 16

struct vk_plan;

// SPIR-V, and who frees it.
struct vk_code {
    const uint32_t *words;
    uint64_t size;                         // bytes
    void (*release)(struct vk_code *code); // NULL: static
};

// A plugin's own part.
struct vk_flavour {
    const char *name;       // "vulkan-jit"
    const char *own_family; // of the kernels in own_kernels.h
    const char *const *families;
    uint32_t fusion_limit;

    // The code of one of our kernels, by its name in kernels/glsl/variants.txt.
    tn_status (*variant)(tn_device *device, const char *name, struct vk_code *out);

    // NULL when a program can run, else why not (static).
    const char *(*program_refused)(tn_device *device, const tn_expr_program *program);

    // Adds the launches of a program's step.
    tn_status (*plan_program)(struct vk_plan *plan, const tn_step *step);

    // Third parties' GLSL; NULL: no compiler here.
    tn_status (*compile)(tn_device *device, const char *name, const char *text,
                         uint64_t size, struct vk_code *out);
};

// --- instance.c --------------------------------------------------------------------------

// One a runtime: made when its devices are first asked for, destroyed by vk_deinit.
struct vk_instance {
    struct vk_instance *next;
    const tn_host *host;
    char reason[VK_REASON]; // why there are no devices; "": there are
    struct vk_loader loader;
    struct vk_instance_api vk;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    atomic_uint num_messages;  // of the validation layers
    VkPhysicalDevice *devices; // those that can be used
    uint32_t num_devices;
};

tn_status vk_instance_get(const tn_host *host, struct vk_instance **out_instance);
void vk_deinit(const tn_host *host);
tn_status vk_device_count(const tn_host *host, uint32_t *out_count);
tn_status vk_device_info(const tn_host *host, uint32_t index, tn_device_info *out);

// What a physical device can do.
struct vk_facts {
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    char driver[128];
    bool f16, f64, i64, i16, i8, subgroup, update_after_bind, coopmat;
    bool timestamps;
    uint32_t subgroup_size;
    uint64_t max_range; // bytes of a storage buffer that a kernel can see
    uint64_t max_buffer;
    uint32_t queue_family;
    char reason[64]; // "has no timeline semaphores"; "": can be used
};
// False when Tenon cannot use it; out->reason says why.
bool vk_facts_read(const struct vk_instance *instance, VkPhysicalDevice physical,
                   struct vk_facts *out);

// --- device.c --------------------------------------------------------------------------

struct vk_block; // memory.c

struct vk_memory {
    pthread_mutex_t lock;
    struct vk_block *blocks;
    uint32_t type, staging_type; // indices of memory types
    bool host_visible;           // what `type` gives can be mapped
    bool host_cached;            // and is read at the speed of memory, not of the bus
    uint64_t used, peak, reserved;
    uint64_t last_serial;
};

struct vk_staging {
    pthread_mutex_t lock;
    tn_buffer *buffer; // NULL until needed
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
};

struct vk_pipeline {
    struct vk_pipeline *next; // of the same bucket
    struct vk_hash key;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
    uint32_t num_bindings;
};
#define VK_PIPELINE_BUCKETS 256

struct vk_shaders {
    pthread_mutex_t lock;
    VkPipelineCache cache;
    struct vk_pipeline *buckets[VK_PIPELINE_BUCKETS];
    uint32_t num_made; // since the cache was last stored
};

struct tn_device {
    const tn_host *host;
    const struct vk_flavour *flavour;
    struct vk_instance *instance; // borrowed
    const struct vk_device_api *vk;
    struct vk_device_api api;
    struct vk_facts facts;
    VkPhysicalDevice physical;
    VkDevice handle;
    VkQueue queue;
    pthread_mutex_t queue_lock;
    VkCommandPool pool; // [device]: commands of executables
    VkSemaphore timeline;
    uint64_t point; // [device]: the last submitted
    atomic_bool lost;
    bool is_software; // kernels are chosen for a processor that acts as a GPU
    struct vk_memory memory;
    struct vk_staging staging;
    struct vk_shaders shaders;
    const tn_host_trace *trace; // NULL: no trace is written
    char track[64];             // "vulkan:0"
};

tn_status vk_device_open(const tn_host *host, uint32_t index,
                         const struct vk_flavour *flavour, tn_device **out_device);
void vk_device_close(tn_device *device);

// Records a failed Vulkan call, by its name, with the device and what helps. After
// VK_ERROR_DEVICE_LOST the device is lost.
tn_status vk_fail(tn_device *device, VkResult result, const char *call);

// The same, when `result` is one: TN_OK for VK_SUCCESS.
tn_status vk_check(tn_device *device, VkResult result, const char *call);

// TN_OK as long as the device is not lost. Nothing works on a lost one.
tn_status vk_check_lost(tn_device *device);

// The same, once the driver was asked: for what calls nothing that would tell.
tn_status vk_ask_lost(tn_device *device);

// Notes that the device is lost: all that VK_ERROR_DEVICE_LOST does, whoever says it. What
// the driver still runs is waited for as ever, by vk_wait and vk_device_close.
tn_status vk_lose(tn_device *device);
extern const tn_device_loss vk_device_loss; // of both plugins

// --- memory.c and buffer.c -------------------------------------------------------------

struct tn_buffer {
    struct vk_block *block;
    VkBuffer handle;    // the block's
    uint64_t offset;    // bytes within it
    uint64_t size;      // as taken
    uint64_t serial;    // of no other buffer of this device, ever
    unsigned char *map; // first byte, or NULL
};

tn_status vk_memory_init(tn_device *device);
void vk_memory_finish(tn_device *device);
tn_status vk_memory_take(tn_device *device, uint64_t size, bool staging, tn_buffer *out);
void vk_memory_give(tn_device *device, tn_buffer *buffer);
tn_status vk_memory_info(tn_device *device, tn_memory_info *out);

tn_status vk_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer);
// One that the host can write, whatever the device: for arguments and staging.
tn_status vk_buffer_create_visible(tn_device *device, uint64_t size,
                                   tn_buffer **out_buffer);
void vk_buffer_destroy(tn_device *device, tn_buffer *buffer);
tn_status vk_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                          const void *data, uint64_t size);
tn_status vk_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                         uint64_t size);
void *vk_buffer_map(tn_device *device, tn_buffer *buffer);

// --- shader.c --------------------------------------------------------------------------

struct vk_pipeline_desc {
    const char *name;   // a variant's, unless `code` is given
    struct vk_hash key; // of the code; zero: of the name
    uint32_t num_bindings;
    uint32_t num_push; // words
    uint32_t num_spec; // specialisation constants 0 ..
    uint32_t spec[VK_MAX_SPEC];
    const char *entry; // NULL: "main"
    // How to come by the code when the pipeline is not there yet. NULL: flavour->variant.
    tn_status (*code)(tn_device *device, void *context, struct vk_code *out);
    void *context;
};

tn_status vk_shaders_init(tn_device *device);
void vk_shaders_finish(tn_device *device);
// Finds or makes it. It lives as long as the device.
tn_status vk_pipeline_get(tn_device *device, const struct vk_pipeline_desc *desc,
                          struct vk_pipeline **out_pipeline);

// --- segment.c and queue.c -------------------------------------------------------------

int32_t vk_step_check(tn_device *device, const tn_step *step, const char **out_reason);
uint32_t vk_fusion_limit(tn_device *device);
tn_status vk_segment_compile(tn_device *device, const tn_segment *segment,
                             tn_executable **out_executable);
void vk_executable_destroy(tn_device *device, tn_executable *executable);
tn_status vk_submit(tn_device *device, const tn_submission *submission,
                    uint64_t *out_point);
tn_status vk_wait(tn_device *device, uint64_t point);

// The slots of tn_backend that both plugins fill alike.
#define VK_COMMON_SLOTS                                                                    \
    .device_count = vk_device_count, .device_info = vk_device_info,                        \
    .device_close = vk_device_close, .step_check = vk_step_check,                          \
    .fusion_limit = vk_fusion_limit, .buffer_create = vk_buffer_create,                    \
    .buffer_destroy = vk_buffer_destroy, .buffer_write = vk_buffer_write,                  \
    .buffer_read = vk_buffer_read, .buffer_map = vk_buffer_map,                            \
    .segment_compile = vk_segment_compile, .executable_destroy = vk_executable_destroy,    \
    .submit = vk_submit, .wait = vk_wait, .memory_info = vk_memory_info

#endif // VULKAN_COMMON_DEVICE_H
