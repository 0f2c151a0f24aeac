// SPDX-License-Identifier: MIT
// Shared by both Vulkan plugins: instance, device, memory, pipelines, segments. The plugins
// differ only in struct vk_flavour.
//
// Threads. A device's queues, memory, shaders and staging have a lock each, and so has each
// executable. The order, where a lock is held while another is taken: executable or
// staging, then queue; executable, then memory.
#ifndef VULKAN_DEVICE_DEVICE_H
#define VULKAN_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/backend.h>
#include <tenon/plugin.h>
#include <tenon/vulkan.h>
#include <time.h>
#include "api.h"
#include "capabilities.h"
#include "hash.h"

#define VK_TOPIC "vulkan"
#define VK_ALIGNMENT TN_VULKAN_ALIGNMENT // devices that need more are refused
#define VK_MAX_PUSH 32                   // words: Vulkan's guaranteed minimum
#define VK_MOST_PUSH 64                  // words of a launch, where the device takes them
#define VK_MAX_OPERANDS 32
#define VK_MAX_SPEC 64 // specialisation constants of a launch
#define VK_MAX_QUEUES 4

struct vk_plan;
struct vk_group_kind;     // groups.h
struct tn_planned_launch; // <tenon/launches.h>
struct tn_launch_cost;

// SPIR-V, and the function that frees it.
struct vk_code {
    const uint32_t *words;
    uint64_t size;                         // bytes
    void (*release)(struct vk_code *code); // NULL: static data
};

// Where the two plugins differ. Static.
struct vk_flavour {
    const char *name; // "vulkan-jit"
    const char *const *families;
    uint32_t fusion_limit; // instructions

    // The modules of the kernels of kernels/vulkan, sorted by name: the variants of its
    // variants.txt.
    const tn_vulkan_module *modules;
    uint32_t num_modules;
    tn_status (*unpack)(const tn_host *host, uint32_t module, void *out_code); // their code

    // The text of matmul_products.comp, compiled for the products that share a launch; it
    // gives NULL if there is no memory. NULL: none do.
    const char *(*products)(void);
    // The same of matmul_joint.comp, for products whose results one program reads.
    const char *(*joint)(void);
    const struct vk_group_kind *siblings; // reductions that share a launch; NULL: none do

    bool takes; // programs have instruction TAKE

    // NULL if the program can run, else the reason (static).
    const char *(*program_refused)(tn_device *device, const tn_expr_program *program);

    // Plans a step with a program.
    tn_status (*plan_program)(struct vk_plan *plan, const tn_step *step);

    // Gives the code of a program for its class; `context`: a struct program_source.
    tn_status (*program_code)(tn_device *device, void *context, struct vk_code *out);

    // Compiles a module of family vulkan.glsl/1, which is not packed; `name` is for
    // messages. NULL: this plugin has no compiler, and its own modules are SPIR-V.
    tn_status (*compile)(tn_device *device, const char *name,
                         const tn_vulkan_module *module, struct vk_code *out);
};

// --- instance.c --------------------------------------------------------------------------

// One for each runtime: created when its devices are first asked for, destroyed by
// vk_deinit.
struct vk_instance {
    struct vk_instance *next;
    const tn_host *host;
    char reason[VK_REASON]; // why there are no devices; "": there are some
    struct vk_loader loader;
    struct vk_instance_api vk;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger;
    atomic_uint num_messages;  // of the validation layers
    VkPhysicalDevice *devices; // the usable ones
    uint32_t num_devices;
    // <tenon/launches.h>: gets each launch that is planned (launches.c), and asks to
    // measure some (measure.c); NULL: the application did not ask.
    bool hears_launches; // the application asked for one of the two
    void (*planned)(void *context, const struct tn_planned_launch *launch);
    void *planned_context;
    uint64_t (*wanted)(void *context, const struct tn_planned_launch *launch);
    void (*measured)(void *context, uint64_t number, const struct tn_launch_cost *cost);
    void *measure_context;
};

tn_status vk_instance_get(const tn_host *host, struct vk_instance **out_instance);
void vk_deinit(const tn_host *host);
tn_status vk_device_count(const tn_host *host, uint32_t *out_count);
tn_status vk_device_info(const tn_host *host, uint32_t index, tn_device_info *out);

// The capabilities of a physical device. Constant.
struct vk_facts {
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    char driver[128];
    bool f16, f64, i64, i16, i8, subgroup, shuffle, update_after_bind;
    bool f16_matrices, bf16_matrices; // TN_VULKAN_HAS_F16_MATRICES, ...
    bool f16_group_matrices, bf16_group_matrices;
    bool fast_dots;               // TN_VULKAN_HAS_DOTS
    bool i64_atomics;             // on buffers and shared memory
    bool memory_model, addresses; // Vulkan's, with device scope; of buffers
    struct vk_optional optional;
    uint32_t preserves_nan; // widths of floats with SignedZeroInfNanPreserve: 16 | 32 | 64
    bool timestamps;
    uint32_t subgroup_size;
    uint64_t max_buffer; // bytes of an allocation
    uint32_t queue_family;
    uint32_t num_queues; // 1 to VK_MAX_QUEUES
    bool copy_queue;     // the family has one more queue, which only copies
    // Device memory is host-visible and cached: no copy to or from the host is queued.
    bool host_sees_all;
    bool tells_budget; // VK_EXT_memory_budget
    // Buffers can be of memory that others use by file descriptor; only in an allocation
    // made for the one buffer.
    bool share_fd, share_dedicated;
    bool share_timelines; // timelines can be exported by file descriptor
    uint8_t share_id[32]; // as tn_device_info has it
    // Buffers can be the host's memory, which the device reaches as fast as its own: the
    // alignment of its address and size, in bytes, or 0.
    uint64_t host_alignment;
    tn_vulkan_limits limits; // for plans of kernels
    char reason[64];         // "has no timeline semaphores"; "": usable
};
// False when Tenon cannot use it; out->reason says why.
bool vk_facts_read(const struct vk_instance *instance, VkPhysicalDevice physical,
                   struct vk_facts *out);

// --- device.c and status.c -------------------------------------------------------------

struct vk_block; // memory.c

enum vk_memory_kind {
    VK_MEMORY_OWN,     // device-local; host-visible as well if all of it is
    VK_MEMORY_WINDOW,  // device-local and host-visible, a limited part (PCIe BAR)
    VK_MEMORY_STAGING, // host memory
    VK_MEMORY_SHARED,  // device-local, and exportable; where the device exports
    VK_NUM_MEMORIES,
};

struct vk_memory_type {
    uint32_t index;    // of Vulkan's memory types
    uint32_t unmapped; // of VK_MEMORY_OWN: the type where that of `index` has no room left
    bool is_mapped;    // host-visible
    uint64_t block_size; // bytes of an ordinary block
    uint64_t max_bytes;  // limit of `reserved`; 0: the device has no such memory
    uint64_t reserved;   // bytes in blocks
};

struct vk_memory {
    pthread_mutex_t lock; // guards the fields that change after vk_memory_init
    struct vk_block *blocks;
    struct vk_memory_type types[VK_NUM_MEMORIES];
    bool host_cached; // VK_MEMORY_OWN is mapped, and cached by the host: fast to read
    uint64_t used, peak, reserved;
    uint64_t last_serial; // of the block made last
    uint64_t num_emptied; // times that a block became empty
    uint64_t num_freed;   // blocks that were given back to the driver
};

// For copies between the host and memory that is not host-visible.
struct vk_staging {
    pthread_mutex_t lock; // held over a copy
    tn_buffer *buffer;    // NULL until needed
    VkCommandPool pool;
    VkCommandBuffer commands;
};

#define VK_MOST_HELD 8 // submissions that are handed over together
#define VK_NUM_JOINED 4
#define VK_NUM_SIGNALLED 64

// Work that is held back: its contents, and how it is recorded into commands of several
// submissions.
struct vk_held {
    VkCommandBuffer commands;
    void (*record)(tn_device *device, VkCommandBuffer commands, const void *context);
    const void *context;
};

// Commands into which held work is recorded: several command buffers cost the device 8 us
// each, dispatches of one 2.4.
struct vk_joined {
    VkCommandBuffer commands[VK_NUM_JOINED];
    uint64_t points[VK_NUM_JOINED]; // of their last submissions
    uint32_t next;
    VkCommandPool pool; // made when first needed
};

struct vk_queue {
    pthread_mutex_t lock; // held over vkQueueSubmit and the choice of its point's value
    VkQueue handle;
    VkSemaphore timeline;
    _Atomic uint64_t point;   // value of the last submission
    _Atomic uint64_t given;   // of the last that the driver has: later ones are held back
    _Atomic uint64_t reached; // highest value known to be reached
    struct vk_held held[VK_MOST_HELD]; // under the lock, as the fields behind
    uint32_t num_held;
    struct vk_joined joined;
    uint64_t signalled[VK_NUM_SIGNALLED]; // the last points that the driver has: a ring
    uint32_t num_signalled;
    struct vk_staging staging;
};

// Source of a pipeline, for others of the same code (special.c) and for watchers of
// launches. Owned by the pipeline.
struct vk_source;

struct vk_pipeline {
    struct vk_pipeline *next; // in the bucket
    struct vk_source *source;
    uint32_t num_users;                // reference count: dispatches of executables
    uint64_t size;                     // bytes of its code, as SPIR-V
    uint64_t driver_ns;                // that vkCreateComputePipelines took
    struct vk_pipeline *older, *newer; // in the LRU list of pipelines without users
    struct vk_hash key;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline handle;
    uint32_t num_bindings;
};
#define VK_PIPELINE_BUCKETS 256

// Limits of a device's pipelines. While one is exceeded, pipelines without users are
// evicted, the least recently used first. Pipelines with users stay.
#define VK_MAX_PIPELINES 512
#define VK_MAX_PIPELINE_BYTES (UINT64_C(64) << 20)
// Limits of the driver's pipeline cache: replaced by an empty one after so many pipelines,
// and not loaded from disk with more bytes.
#define VK_MAX_CACHED 2048
#define VK_MAX_CACHE_BYTES (UINT64_C(32) << 20)

// A pipeline that a thread is making, on that thread's stack.
struct vk_making {
    struct vk_making *next;
    struct vk_hash key, code; // of the pipeline, and of its code
    bool in_code;             // the code is being compiled
};

struct vk_shaders {
    pthread_mutex_t lock; // guards the fields below, and num_users and lists of pipelines
    pthread_cond_t made;  // something has been made, or could not be
    struct vk_making *making;
    VkPipelineCache cache;
    struct vk_pipeline *buckets[VK_PIPELINE_BUCKETS];
    struct vk_pipeline *oldest, *newest; // LRU list of pipelines without users
    uint32_t num_pipelines;
    uint64_t size;          // bytes of the pipelines' code
    uint32_t num_made;      // pipelines compiled with `cache`
    uint32_t num_compiling; // threads that compile with `cache`
    atomic_uint num_loaded; // codes that were found in the disk cache
    atomic_uint num_fresh;  // threads that want code compiled, not loaded
};

struct tn_device {
    const tn_host *host;
    const struct vk_flavour *flavour;
    struct vk_instance *instance;   // borrowed
    const struct vk_device_api *vk; // &api
    struct vk_device_api api;
    struct vk_facts facts;
    VkPhysicalDevice physical;
    VkDevice handle;
    struct vk_queue queues[VK_MAX_QUEUES + 1]; // vk_num_queues() of them
    VkSemaphore host_timeline;                 // signalled by vk_signal
    VkCommandPool host_pool;                   // of host_commands
    VkCommandBuffer host_commands; // makes visible what the host wrote before it signalled
    atomic_bool waits_for_host;    // some work waited for the host; never cleared
    atomic_bool lost;              // never cleared
    _Atomic uint64_t share_file;   // what files its exports are (share.c); 0: not known yet
    bool exports; // others may use blocks and timelines in place: these are exportable
    // A software driver, not told to act as a GPU: no polling, no tiled transposition, and
    // programs beside products of any size.
    bool is_software;
    struct vk_memory memory;
    struct vk_shaders shaders;
    const tn_host_trace *trace; // NULL: no trace is written
    char track[64];             // "vulkan:0"
};

tn_status vk_device_open(const tn_host *host, uint32_t index,
                         const struct vk_flavour *flavour, tn_device **out_device);
void vk_device_close(tn_device *device);

// Reports a failed Vulkan call by its name, with the device and a remedy.
// VK_ERROR_DEVICE_LOST marks the device lost.
tn_status vk_fail(tn_device *device, VkResult result, const char *call);

// TN_OK for VK_SUCCESS, else vk_fail().
tn_status vk_check(tn_device *device, VkResult result, const char *call);

// TN_ERR_DEVICE, with a message, once the device is known to be lost; else TN_OK.
tn_status vk_check_lost(tn_device *device);

// vk_check_lost() after asking the driver. For operations that call no Vulkan function,
// such as reading mapped memory.
tn_status vk_ask_lost(tn_device *device);

// Marks the device lost, as VK_ERROR_DEVICE_LOST does. vk_wait and vk_device_close still
// wait for the work that the driver runs.
tn_status vk_lose(tn_device *device);

// Answers both plugins' queries beside the interfaces that each has of its own.
const void *vk_query(const char *id);

// The queues that compute, and then the one that only copies, if there is one.
static inline uint32_t vk_num_queues(const tn_device *device)
{
    return device->facts.num_queues + device->facts.copy_queue;
}

// Whether work may wait for points that the host signals, TN_DEVICE_HOST_POINTS: copies to
// and from the host never queue behind such work.
static inline bool vk_has_host_points(const struct vk_facts *facts)
{
    return facts->copy_queue || facts->host_sees_all;
}

static inline uint64_t vk_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

// --- memory.c and buffer.c -------------------------------------------------------------

struct tn_buffer {
    struct vk_block *block; // NULL: a buffer of share.c, which has its own memory
    VkBuffer handle;        // the block's
    uint64_t offset;        // bytes within the block
    uint64_t size;          // bytes, rounded up to VK_ALIGNMENT
    uint64_t serial;        // the block's; never used again on this device
    unsigned char *map;     // host address of the first byte; NULL: not host-visible
    VkDeviceMemory memory;  // without a block
    int fd;                 // without a block: file descriptor of the memory, or -1
    uint32_t kind;          // without a block: as tn_buffer_fd has it
};

#define VK_BUFFER_USAGES                                                                   \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |               \
     VK_BUFFER_USAGE_TRANSFER_DST_BIT)

tn_status vk_memory_init(tn_device *device);
void vk_memory_finish(tn_device *device);
tn_status vk_memory_take(tn_device *device, uint64_t size, enum vk_memory_kind kind,
                         tn_buffer *out);
void vk_memory_give(tn_device *device, tn_buffer *buffer);
// Gives all empty blocks back to the driver.
void vk_memory_drop_spares(tn_device *device);
// Where a buffer lies: the memory, its bytes and number, and how many such memories were
// given back so far. VK_NULL_HANDLE in *out_memory: it cannot be exported.
void vk_memory_export(tn_device *device, const tn_buffer *buffer,
                      VkDeviceMemory *out_memory, tn_buffer_export *out);
// A number for a buffer without a block.
uint64_t vk_memory_next_serial(tn_device *device);
// A buffer of storage, not bound; `next` is chained. VK_NULL_HANDLE on failure.
VkResult vk_memory_create_buffer(tn_device *device, uint64_t size, const void *next,
                                 VkBuffer *out);
// The first of the allowed types that has the flags; -1: none.
int vk_memory_find_type(const struct vk_facts *facts, uint32_t allowed,
                        VkMemoryPropertyFlags wanted);
// Whether any memory that kernels write is host-visible.
bool vk_memory_is_mapped(const tn_device *device);
tn_status vk_memory_info(tn_device *device, tn_memory_info *out);

tn_status vk_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer);
// A host-visible buffer, on any device: for constants.
tn_status vk_buffer_create_visible(tn_device *device, uint64_t size,
                                   tn_buffer **out_buffer);
void vk_buffer_destroy(tn_device *device, tn_buffer *buffer);
// Releases the handle and the memory of a buffer without a block.
void vk_buffer_give_own(tn_device *device, tn_buffer *buffer);
tn_status vk_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                          const void *data, uint64_t size);
tn_status vk_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                         uint64_t size);
void *vk_buffer_map(tn_device *device, tn_buffer *buffer);
void vk_staging_finish(tn_device *device, struct vk_staging *staging);

// Commands that the host waits for, on an idle queue if there is one.
struct vk_copy {
    const tn_buffer *from, *to;
    uint64_t from_offset, to_offset, size; // bytes
};
typedef void vk_record(tn_device *device, VkCommandBuffer commands,
                       const struct vk_copy *copy);
vk_record vk_record_copy;
tn_status vk_run_commands(tn_device *device, vk_record *record, const struct vk_copy *copy);
tn_status vk_buffer_read_after(tn_device *device, tn_buffer *buffer, uint64_t offset,
                               void *data, uint64_t size, tn_point after);
tn_status vk_buffer_copy(tn_device *device, tn_buffer *from, uint64_t from_offset,
                         tn_buffer *to, uint64_t to_offset, uint64_t size);

// --- share.c ---------------------------------------------------------------------------

tn_status vk_buffer_export_fd(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              uint64_t size, tn_buffer_fd *out);
tn_status vk_buffer_import_fd(tn_device *device, const tn_buffer_fd *memory,
                              tn_buffer **out_buffer);
tn_status vk_buffer_import(tn_device *device, const tn_buffer_import *import,
                           tn_buffer **out_buffer);
tn_status vk_buffer_export(tn_device *device, tn_buffer *buffer, uint32_t wants,
                           tn_buffer_export *out);
tn_status vk_point_export_fd(tn_device *device, tn_point point, int32_t *out_fd);

// --- queue.c ---------------------------------------------------------------------------

tn_status vk_wait(tn_device *device, uint32_t queue, uint64_t value);
tn_status vk_signal(tn_device *device, uint64_t value);
// Gives the driver what is held back up to a point, so that others can wait for the point.
tn_status vk_hand_over(tn_device *device, uint32_t queue, uint64_t value);

tn_status vk_timeline_create(tn_device *device, VkSemaphore *out);
tn_status vk_queue_init(tn_device *device, uint32_t index);
void vk_queue_finish(tn_device *device, uint32_t index);
// Whether a point is reached; false as well if the driver's answer is an error.
bool vk_queue_has_reached(tn_device *device, uint32_t index, uint64_t value);
// The semaphore that orders work behind the host.
tn_status vk_host_init(tn_device *device);
void vk_host_finish(tn_device *device);
// A pool whose command buffers are recorded one by one, and a command buffer of it.
tn_status vk_pool_create(tn_device *device, VkCommandPool *out);
tn_status vk_commands_create(tn_device *device, VkCommandPool pool, VkCommandBuffer *out);
// Submits commands after `waits`, points of this or other queues, or of the host. Work with
// `record` may be held back while the queue is busy, until its point is waited for or more
// work comes; its context lives until its point is reached.
struct vk_work {
    struct vk_held work; // without `record`: it is never held back
    const tn_point *waits;
    uint32_t num_waits;
};
tn_status vk_queue_submit(tn_device *device, uint32_t index, const struct vk_work *work,
                          uint64_t *out_value);
// Waits until all queues are idle.
VkResult vk_wait_idle(tn_device *device);

#endif // VULKAN_DEVICE_DEVICE_H
