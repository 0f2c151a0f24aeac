// SPDX-License-Identifier: MIT
// The queues of the Vulkan backends over a driver in memory that has three: what several
// threads submit runs in its order and after what it waits for, and the driver's objects
// are never used by two threads, nor changed while they are pending. Small work is handed
// over together.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "segment/backend.h"
#include "segment/executable.h"

#define NUM_QUEUES 3
#define MAX_PENDING 4096

// --- the driver ------------------------------------------------------------------------

struct set {
    const uint64_t *in;
    uint64_t *out;
    atomic_int pending;
};
struct pool {
    atomic_int busy;
};
struct commands {
    struct pool *pool;
    struct set *sets[VK_MOST_HELD];
    uint32_t num_sets;
};
struct entry {
    struct set *sets[VK_MOST_HELD];
    uint32_t num_sets;
    uint64_t value;
    uint32_t num_waits;
    struct queue *waits[NUM_QUEUES];
    uint64_t values[NUM_QUEUES];
};
struct queue { // and its semaphore
    atomic_int busy;
    uint64_t submitted, reached;       // points
    uint64_t given, run;               // entries
    struct entry entries[MAX_PENDING]; // a ring
};

static struct queue queues[NUM_QUEUES];
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gpu_changed = PTHREAD_COND_INITIALIZER;
static bool gpu_paused, gpu_ends;
static atomic_int num_errors, num_sleepers;

static void error_if(bool wrong, const char *what)
{
    if (wrong && atomic_fetch_add(&num_errors, 1) == 0)
        printf("# %s\n", what);
}

static void enter(atomic_int *busy, const char *what)
{
    error_if(atomic_fetch_add(busy, 1) != 0, what);
}

static void leave(atomic_int *busy)
{
    atomic_fetch_sub(busy, 1);
}

static bool can_run(const struct entry *entry)
{
    for (uint32_t i = 0; i < entry->num_waits; i++)
        if (entry->waits[i]->reached < entry->values[i])
            return false;
    return true;
}

// A dispatch adds one.
static bool run_one(struct queue *queue)
{
    struct entry *entry = &queue->entries[queue->run % MAX_PENDING];
    if (queue->run == queue->given || !can_run(entry))
        return false;
    for (uint32_t i = 0; i < entry->num_sets; i++) {
        *entry->sets[i]->out = *entry->sets[i]->in + 1;
        atomic_fetch_sub(&entry->sets[i]->pending, 1);
    }
    queue->run++;
    queue->reached = entry->value;
    return true;
}

static void *gpu(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gpu_lock);
    while (!gpu_ends) {
        bool ran = false;
        for (uint32_t i = 0; i < NUM_QUEUES && !gpu_paused; i++)
            ran |= run_one(&queues[i]);
        if (ran)
            pthread_cond_broadcast(&gpu_changed);
        else
            pthread_cond_wait(&gpu_changed, &gpu_lock);
    }
    pthread_mutex_unlock(&gpu_lock);
    return NULL;
}

static void set_paused(bool paused)
{
    pthread_mutex_lock(&gpu_lock);
    gpu_paused = paused;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

#define HANDLE(type, object) ((type)(uintptr_t)(object))
#define OBJECT(type, handle) ((struct type *)(uintptr_t)(handle))

static VKAPI_ATTR VkResult VKAPI_CALL queue_submit(VkQueue handle, uint32_t count,
                                                   const VkSubmitInfo *info, VkFence fence)
{
    struct queue *queue = OBJECT(queue, handle);
    const VkTimelineSemaphoreSubmitInfo *timeline = info->pNext;
    (void)count, (void)fence;
    enter(&queue->busy, "two threads submit to one queue");
    pthread_mutex_lock(&gpu_lock);
    struct entry entry = {.value = timeline->pSignalSemaphoreValues[0],
                          .num_waits = info->waitSemaphoreCount};
    for (uint32_t i = 0; i < entry.num_waits; i++) {
        entry.waits[i] = OBJECT(queue, info->pWaitSemaphores[i]);
        entry.values[i] = timeline->pWaitSemaphoreValues[i];
    }
    for (uint32_t c = 0; c < info->commandBufferCount; c++) {
        const struct commands *commands = OBJECT(commands, info->pCommandBuffers[c]);
        for (uint32_t i = 0; i < commands->num_sets; i++) {
            atomic_fetch_add(&commands->sets[i]->pending, 1);
            entry.sets[entry.num_sets++] = commands->sets[i];
        }
    }
    error_if(entry.value != queue->submitted + entry.num_sets, "points are not in order");
    queue->entries[queue->given++ % MAX_PENDING] = entry;
    queue->submitted = entry.value;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
    leave(&queue->busy);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL counter_value(VkDevice device, VkSemaphore semaphore,
                                                    uint64_t *out)
{
    (void)device;
    pthread_mutex_lock(&gpu_lock);
    *out = OBJECT(queue, semaphore)->reached;
    pthread_mutex_unlock(&gpu_lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device,
                                                      const VkSemaphoreWaitInfo *info,
                                                      uint64_t timeout)
{
    (void)device, (void)timeout;
    pthread_mutex_lock(&gpu_lock);
    atomic_fetch_add(&num_sleepers, 1);
    while (OBJECT(queue, info->pSemaphores[0])->reached < info->pValues[0])
        pthread_cond_wait(&gpu_changed, &gpu_lock);
    atomic_fetch_sub(&num_sleepers, 1);
    pthread_mutex_unlock(&gpu_lock);
    return VK_SUCCESS;
}

#define MAKES(name, info_type, type, handle_type)                                          \
    static VKAPI_ATTR VkResult VKAPI_CALL name(VkDevice device, const info_type *info,     \
                                               const VkAllocationCallbacks *callbacks,     \
                                               handle_type *out)                           \
    {                                                                                      \
        (void)device, (void)info, (void)callbacks;                                         \
        *out = HANDLE(handle_type, calloc(1, sizeof(struct type)));                        \
        return *out ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;                            \
    }
MAKES(create_pool, VkCommandPoolCreateInfo, pool, VkCommandPool)
MAKES(create_sets, VkDescriptorPoolCreateInfo, set, VkDescriptorPool) // of one set

static VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkCommandPool pool,
                                               const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)callbacks;
    free(OBJECT(pool, pool));
}

static VKAPI_ATTR void VKAPI_CALL destroy_sets(VkDevice device, VkDescriptorPool pool,
                                               const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)callbacks;
    error_if(atomic_load(&OBJECT(set, pool)->pending) != 0, "a pending set is destroyed");
    free(OBJECT(set, pool));
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_set(VkDevice device,
                                                   const VkDescriptorSetAllocateInfo *info,
                                                   VkDescriptorSet *out)
{
    (void)device;
    *out = HANDLE(VkDescriptorSet, info->descriptorPool);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_commands(
    VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out)
{
    (void)device;
    struct commands *commands = calloc(1, sizeof(*commands));
    if (!commands)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    commands->pool = OBJECT(pool, info->commandPool);
    enter(&commands->pool->busy, "two threads use one pool");
    leave(&commands->pool->busy);
    *out = HANDLE(VkCommandBuffer, commands);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_commands(VkDevice device, VkCommandPool pool,
                                                uint32_t count,
                                                const VkCommandBuffer *commands)
{
    (void)device, (void)pool, (void)count;
    free(OBJECT(commands, *commands));
}

static VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands,
                                            const VkCommandBufferBeginInfo *info)
{
    (void)info;
    enter(&OBJECT(commands, commands)->pool->busy, "two threads use one pool");
    OBJECT(commands, commands)->num_sets = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL end(VkCommandBuffer commands)
{
    leave(&OBJECT(commands, commands)->pool->busy);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL update_sets(VkDevice device, uint32_t count,
                                              const VkWriteDescriptorSet *writes,
                                              uint32_t num_copies,
                                              const VkCopyDescriptorSet *copies)
{
    (void)device, (void)num_copies, (void)copies;
    for (uint32_t i = 0; i < count; i++) {
        struct set *set = OBJECT(set, writes[i].dstSet);
        const VkDescriptorBufferInfo *info = writes[i].pBufferInfo;
        uint64_t *at = (uint64_t *)(uintptr_t)info->buffer + info->offset / 8;
        error_if(atomic_load(&set->pending) != 0, "a pending set is changed");
        if (writes[i].dstBinding == 0)
            set->in = at;
        else
            set->out = at;
    }
}

static VKAPI_ATTR void VKAPI_CALL bind_sets(VkCommandBuffer commands,
                                            VkPipelineBindPoint point,
                                            VkPipelineLayout layout, uint32_t first,
                                            uint32_t count, const VkDescriptorSet *sets,
                                            uint32_t num_offsets, const uint32_t *offsets)
{
    (void)point, (void)layout, (void)first, (void)count, (void)num_offsets, (void)offsets;
    struct commands *object = OBJECT(commands, commands);
    object->sets[object->num_sets++] = OBJECT(set, sets[0]);
}

static VKAPI_ATTR void VKAPI_CALL bind_pipeline(VkCommandBuffer commands,
                                                VkPipelineBindPoint point,
                                                VkPipeline pipeline)
{
    (void)commands, (void)point, (void)pipeline;
}

static VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                           uint32_t z)
{
    (void)commands, (void)x, (void)y, (void)z;
}

static VKAPI_ATTR void VKAPI_CALL pipeline_barrier(
    VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
    VkDependencyFlags flags, uint32_t num_memory, const VkMemoryBarrier *memory,
    uint32_t num_buffers, const VkBufferMemoryBarrier *buffers, uint32_t num_images,
    const VkImageMemoryBarrier *images)
{
    (void)commands, (void)from, (void)to, (void)flags, (void)num_memory, (void)memory;
    (void)num_buffers, (void)buffers, (void)num_images, (void)images;
}

static const struct vk_device_api driver = {
    .QueueSubmit = queue_submit,
    .GetSemaphoreCounterValue = counter_value,
    .WaitSemaphores = wait_semaphores,
    .CreateCommandPool = create_pool,
    .DestroyCommandPool = destroy_pool,
    .CreateDescriptorPool = create_sets,
    .DestroyDescriptorPool = destroy_sets,
    .AllocateDescriptorSets = allocate_set,
    .AllocateCommandBuffers = allocate_commands,
    .FreeCommandBuffers = free_commands,
    .BeginCommandBuffer = begin,
    .EndCommandBuffer = end,
    .UpdateDescriptorSets = update_sets,
    .CmdBindDescriptorSets = bind_sets,
    .CmdBindPipeline = bind_pipeline,
    .CmdDispatch = dispatch,
    .CmdPipelineBarrier = pipeline_barrier,
};

// --- a device and an executable --------------------------------------------------------

static tn_status no_message(const tn_host *host, tn_status status, const char *format, ...)
{
    (void)host, (void)format;
    return status;
}
static const tn_host host = {.struct_size = sizeof(host), .fail = no_message};

static tn_device device;
static struct vk_pipeline pipeline;
static pthread_t gpu_thread;

static void open_device(void)
{
    device = (tn_device){.host = &host,
                         .vk = &driver,
                         .facts = {.num_queues = NUM_QUEUES, .update_after_bind = true}};
    pthread_mutex_init(&device.shaders.lock, NULL);
    pthread_cond_init(&device.shaders.made, NULL);
    for (uint32_t i = 0; i < NUM_QUEUES; i++) {
        queues[i].submitted = queues[i].reached = queues[i].given = queues[i].run = 0;
        pthread_mutex_init(&device.queues[i].lock, NULL);
        device.queues[i].handle = HANDLE(VkQueue, &queues[i]);
        device.queues[i].timeline = HANDLE(VkSemaphore, &queues[i]);
    }
    gpu_paused = gpu_ends = false;
    cr_assert(pthread_create(&gpu_thread, NULL, gpu, NULL) == 0);
}

static void close_device(void)
{
    pthread_mutex_lock(&gpu_lock);
    gpu_ends = true;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
    cr_assert(pthread_join(gpu_thread, NULL) == 0);
}

TestSuite(vulkan_queues, .init = open_device, .fini = close_device);

// One dispatch from slot 0 to slot 1.
static tn_executable *make_executable(void)
{
    tn_executable *e = calloc(1, sizeof(*e));
    cr_assert(e != NULL);
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->trace_lock, NULL);
    e->num_slots = 2;
    e->wanted = calloc(2, sizeof(*e->wanted));
    e->plan = (struct vk_plan){.device = &device,
                               .num_dispatches = 1,
                               .num_operands = 2,
                               .num_sets = 1,
                               .num_bindings = 2};
    e->plan.dispatches = calloc(1, sizeof(*e->plan.dispatches));
    e->plan.operands = calloc(2, sizeof(*e->plan.operands));
    cr_assert(e->wanted && e->plan.dispatches && e->plan.operands);
    pipeline.num_users = 3; // one for good
    e->plan.dispatches[0] = (struct vk_dispatch){.pipeline = &pipeline, .num_operands = 2};
    e->plan.operands[0] = (struct vk_operand){0, VK_READS, 0, 8};
    e->plan.operands[1] = (struct vk_operand){1, VK_WRITES, 0, 8};
    return e;
}

static tn_status submit(tn_executable *executable, tn_buffer *from, tn_buffer *to,
                        const tn_point *after, tn_point *out)
{
    const tn_binding bindings[] = {{from, 0}, {to, 0}};
    return vk_submit(&device,
                     &(tn_submission){.struct_size = sizeof(tn_submission),
                                      .executable = executable,
                                      .bindings = bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding),
                                      .waits = after,
                                      .num_waits = after != NULL,
                                      .queue = out->queue},
                     &out->value);
}

// --- tests -----------------------------------------------------------------------------

#define NUM_CELLS 25
#define NUM_THREADS 6

struct thread {
    pthread_t handle;
    uint32_t number;
    tn_executable *executable;
    uint64_t memory[NUM_CELLS];
    tn_buffer cells[NUM_CELLS];
    bool good;
};

static void make_cells(struct thread *t)
{
    for (uint32_t i = 0; i < NUM_CELLS; i++)
        t->cells[i] = (tn_buffer){.handle = HANDLE(VkBuffer, t->memory),
                                  .offset = 8 * i,
                                  .size = 8,
                                  .serial = t->number + 1};
}

// From cell to cell, each run in another queue and after the one before it.
static void *add_along_the_cells(void *context)
{
    struct thread *t = context;
    t->good = true;
    for (uint64_t round = 0; round < 200 && t->good; round++) {
        tn_point last = {0};
        t->memory[0] = round;
        for (uint32_t i = 0; i + 1 < NUM_CELLS && t->good; i++) {
            tn_point point = {.queue = (uint32_t)(t->number + round + i) % NUM_QUEUES};
            t->good = submit(t->executable, &t->cells[i], &t->cells[i + 1],
                             i > 0 ? &last : NULL, &point) == TN_OK;
            last = point;
        }
        t->good = t->good && vk_wait(&device, last.queue, last.value) == TN_OK &&
                  t->memory[NUM_CELLS - 1] == round + NUM_CELLS - 1;
    }
    return NULL;
}

Test(vulkan_queues, threads_share_executables_and_queues)
{
    static struct thread threads[NUM_THREADS];
    tn_executable *executables[2] = {make_executable(), make_executable()};
    for (uint32_t i = 0; i < NUM_THREADS; i++) {
        threads[i] = (struct thread){.number = i, .executable = executables[i % 2]};
        make_cells(&threads[i]);
        cr_assert(pthread_create(&threads[i].handle, NULL, add_along_the_cells,
                                 &threads[i]) == 0);
    }
    for (uint32_t i = 0; i < NUM_THREADS; i++)
        pthread_join(threads[i].handle, NULL);
    for (uint32_t i = 0; i < NUM_THREADS; i++)
        cr_assert(threads[i].good);
    for (uint32_t i = 0; i < 2; i++)
        vk_executable_destroy(&device, executables[i]);
    cr_assert(atomic_load(&num_errors) == 0);
}

static void *submit_one_more(void *context)
{
    struct thread *t = context;
    tn_point point = {0};
    t->good = submit(t->executable, &t->cells[VK_MAX_RECORDINGS],
                     &t->cells[VK_MAX_RECORDINGS + 1], NULL, &point) == TN_OK &&
              vk_wait(&device, point.queue, point.value) == TN_OK;
    return NULL;
}

// All recordings are pending: one submission waits, and the next need not wait for it.
Test(vulkan_queues, who_waits_for_a_recording_holds_nobody_up)
{
    static struct thread t;
    tn_point point = {0};
    t = (struct thread){.executable = make_executable()};
    make_cells(&t);
    set_paused(true);
    for (uint32_t i = 0; i < VK_MAX_RECORDINGS; i++)
        cr_assert(submit(t.executable, &t.cells[i], &t.cells[i + 1], NULL, &point) ==
                  TN_OK);
    cr_assert(pthread_create(&t.handle, NULL, submit_one_more, &t) == 0);
    while (atomic_load(&num_sleepers) == 0)
        usleep(100);
    cr_assert(submit(t.executable, &t.cells[0], &t.cells[1], NULL, &point) == TN_OK);
    cr_assert(t.executable->num_recordings == VK_MAX_RECORDINGS);
    set_paused(false);
    cr_assert(vk_wait(&device, point.queue, point.value) == TN_OK);
    pthread_join(t.handle, NULL);
    cr_assert(t.good);
    vk_executable_destroy(&device, t.executable);
    cr_assert(atomic_load(&num_errors) == 0);
}

// Outputs that alternate, and one made anew in the same place: nothing is written again.
Test(vulkan_queues, recordings_are_kept_for_the_choices_of_buffers)
{
    static struct thread t;
    tn_point point = {0};
    t = (struct thread){.executable = make_executable()};
    for (uint32_t i = 0; i < 60; i++) {
        make_cells(&t);
        cr_assert(submit(t.executable, &t.cells[0], &t.cells[1 + i % 3], NULL, &point) ==
                  TN_OK);
        cr_assert(vk_wait(&device, point.queue, point.value) == TN_OK);
    }
    cr_assert(t.executable->num_recordings == 3);
    for (uint32_t i = 0; i < 20; i++) {
        cr_assert(submit(t.executable, &t.cells[0], &t.cells[1 + i], NULL, &point) ==
                  TN_OK);
        cr_assert(vk_wait(&device, point.queue, point.value) == TN_OK);
    }
    cr_assert(t.executable->num_recordings == VK_KEPT_RECORDINGS);
    vk_executable_destroy(&device, t.executable);
    cr_assert(atomic_load(&num_errors) == 0);
}

// While the queue is busy, small work is handed over together; what is waited for is.
Test(vulkan_queues, small_work_for_a_busy_queue_is_handed_over_together)
{
    static struct thread t;
    tn_point point = {0};
    enum { COUNT = VK_MAX_RECORDINGS };
    t = (struct thread){.executable = make_executable()};
    make_cells(&t);
    set_paused(true);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert(submit(t.executable, &t.cells[i], &t.cells[i + 1], NULL, &point) ==
                  TN_OK);
    cr_assert(point.value == COUNT && queues[0].submitted < COUNT);
    cr_assert(queues[0].given <= 3 + COUNT / VK_MOST_HELD);
    set_paused(false);
    cr_assert(vk_wait(&device, point.queue, point.value) == TN_OK);
    cr_assert(t.memory[COUNT] == COUNT);
    // Work of another queue that waits for some that is held back.
    tn_point other = {.queue = 1};
    set_paused(true);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert(submit(t.executable, &t.cells[i], &t.cells[i + 1], NULL, &point) ==
                  TN_OK);
    cr_assert(submit(t.executable, &t.cells[4], &t.cells[5], &point, &other) == TN_OK);
    cr_assert(queues[0].submitted == point.value);
    set_paused(false);
    cr_assert(vk_wait(&device, other.queue, other.value) == TN_OK);
    vk_executable_destroy(&device, t.executable);
    cr_assert(atomic_load(&num_errors) == 0);
}
