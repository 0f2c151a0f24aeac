// SPDX-License-Identifier: MIT
// Pipelines of a segment that are made on several threads, over a driver in memory: as many
// at once as threads are allowed, each once, and of several that fail the first in the
// order of the steps is told.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "segment/plan_ahead.h"

#define MAX_STEPS 40

// --- the driver ------------------------------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t num_busy, most_busy, wanted; // threads that make a pipeline
static uint32_t num_made[MAX_STEPS + 1];     // of each code
static int num_left;                         // objects that were not destroyed
static bool in_code[MAX_STEPS + 1];

// Waits until `wanted` threads are here, or some time has passed.
static void meet(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_mutex_lock(&lock);
    num_busy++;
    most_busy = num_busy > most_busy ? num_busy : most_busy;
    pthread_cond_broadcast(&changed);
    while (most_busy < wanted && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    num_busy--;
    pthread_mutex_unlock(&lock);
}

static void count(int by)
{
    pthread_mutex_lock(&lock);
    num_left += by;
    pthread_mutex_unlock(&lock);
}

#define HANDLE(type, number) ((type)(uintptr_t)(number))

static VKAPI_ATTR VkResult VKAPI_CALL
create_set_layout(VkDevice device, const VkDescriptorSetLayoutCreateInfo *info,
                  const VkAllocationCallbacks *callbacks, VkDescriptorSetLayout *out)
{
    (void)device, (void)info, (void)callbacks;
    count(1);
    *out = HANDLE(VkDescriptorSetLayout, 1);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_set_layout(VkDevice device,
                                                     VkDescriptorSetLayout layout,
                                                     const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)layout, (void)callbacks;
    count(-1);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_layout(VkDevice device,
                                                    const VkPipelineLayoutCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkPipelineLayout *out)
{
    (void)device, (void)info, (void)callbacks;
    *out = HANDLE(VkPipelineLayout, 1);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_layout(VkDevice device, VkPipelineLayout layout,
                                                 const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)layout, (void)callbacks;
}

// A module is its code's number.
static VKAPI_ATTR VkResult VKAPI_CALL create_module(VkDevice device,
                                                    const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkShaderModule *out)
{
    (void)device, (void)callbacks;
    *out = HANDLE(VkShaderModule, info->pCode[0]);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_module(VkDevice device, VkShaderModule module,
                                                 const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)module, (void)callbacks;
}

static uint32_t failing[2]; // codes that the driver refuses, the second one at once

static VKAPI_ATTR VkResult VKAPI_CALL
create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t number,
                 const VkComputePipelineCreateInfo *info,
                 const VkAllocationCallbacks *callbacks, VkPipeline *out)
{
    (void)device, (void)cache, (void)number, (void)callbacks;
    uint32_t code = (uint32_t)(uintptr_t)info->stage.module;
    if (code == failing[1])
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    meet();
    if (code == failing[0])
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    pthread_mutex_lock(&lock);
    num_made[code]++;
    pthread_mutex_unlock(&lock);
    *out = HANDLE(VkPipeline, code);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_pipeline(VkDevice device, VkPipeline pipeline,
                                                   const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)pipeline, (void)callbacks;
}

static VKAPI_ATTR void VKAPI_CALL destroy_cache(VkDevice device, VkPipelineCache cache,
                                                const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)cache, (void)callbacks;
}

static const struct vk_device_api driver = {
    .CreateDescriptorSetLayout = create_set_layout,
    .DestroyDescriptorSetLayout = destroy_set_layout,
    .CreatePipelineLayout = create_layout,
    .DestroyPipelineLayout = destroy_layout,
    .CreateShaderModule = create_module,
    .DestroyShaderModule = destroy_module,
    .CreateComputePipelines = create_pipelines,
    .DestroyPipeline = destroy_pipeline,
    .DestroyPipelineCache = destroy_cache,
};

// --- the host --------------------------------------------------------------------------

static const char *threads;           // TENON_THREADS
static _Thread_local char said[2048]; // as the core's message is

static tn_status fail(const tn_host *host, tn_status status, const char *format, ...)
{
    va_list list;
    (void)host;
    va_start(list, format);
    vsnprintf(said, sizeof(said), format, list);
    va_end(list);
    return status;
}

static void no_log(const tn_host *host, int32_t level, const char *topic,
                   const char *format, ...)
{
    (void)host, (void)level, (void)topic, (void)format;
}

static const char *config(const tn_host *host, const char *name)
{
    (void)host;
    return strcmp(name, "TENON_THREADS") == 0 ? threads : NULL;
}

static const void *no_service(const tn_host *host, const char *id)
{
    (void)host, (void)id;
    return NULL;
}

static const tn_host host = {.struct_size = sizeof(host),
                             .fail = fail,
                             .log = no_log,
                             .config = config,
                             .query = no_service};

// --- a segment -------------------------------------------------------------------------

static tn_device device;
static struct vk_instance instance;
static uint32_t codes[MAX_STEPS];     // of each step
static uint32_t constants[MAX_STEPS]; // that its pipeline is specialised by
static tn_step steps[MAX_STEPS];
static uint32_t words[MAX_STEPS + 1];
static bool code_fails;

// A code is compiled by one thread at a time.
static tn_status get_code(tn_device *of, void *context, struct vk_code *out)
{
    uint32_t code = *(const uint32_t *)context;
    (void)of;
    pthread_mutex_lock(&lock);
    bool twice = in_code[code];
    in_code[code] = true;
    pthread_mutex_unlock(&lock);
    if (twice)
        return fail(&host, TN_ERR_INTERNAL, "two threads compile code %u", code);
    usleep(1000);
    pthread_mutex_lock(&lock);
    in_code[code] = false;
    pthread_mutex_unlock(&lock);
    if (code_fails && code == failing[0])
        return fail(&host, TN_ERR_REFUSED, "code %u: line 1", code);
    words[code] = code;
    *out = (struct vk_code){.words = &words[code], .size = 4};
    return TN_OK;
}

static tn_status plan_step(struct vk_plan *plan, const tn_step *step)
{
    uint32_t number = (uint32_t)(step - steps);
    tn_vulkan_constant spec = {0, constants[number]};
    const struct vk_pipeline_desc desc = {.name = "a kernel",
                                          .key = {codes[number], 7},
                                          .num_spec = 1,
                                          .spec = &spec,
                                          .code = get_code,
                                          .context = &codes[number]};
    return plan_add(plan, &desc, NULL, NULL, (const uint32_t[]){1, 1, 1});
}

static void open_device(void)
{
    device = (tn_device){.host = &host,
                         .vk = &driver,
                         .instance = &instance,
                         .facts = {.limits = {.max_groups = {1, 1, 1}, .max_range = 1024}}};
    pthread_mutex_init(&device.shaders.lock, NULL);
    pthread_cond_init(&device.shaders.made, NULL);
    device.shaders.cache = HANDLE(VkPipelineCache, 1);
    for (uint32_t i = 0; i < MAX_STEPS; i++) {
        steps[i] = (tn_step){.struct_size = sizeof(tn_step)};
        codes[i] = i + 1;
        constants[i] = 0;
    }
    memset(num_made, 0, sizeof(num_made));
    memset(failing, 0, sizeof(failing));
    num_busy = most_busy = 0;
    num_left = 0;
    wanted = 1;
    code_fails = false;
    said[0] = '\0';
    threads = "1";
}

// Nothing is left of a device whose pipelines are destroyed.
static void close_device(void)
{
    vk_shaders_finish(&device);
    cr_assert(eq(int, num_left, 0));
    cr_assert(eq(ptr, device.shaders.making, NULL));
    pthread_cond_destroy(&device.shaders.made);
    pthread_mutex_destroy(&device.shaders.lock);
}

static tn_status plan_all(uint32_t num_steps, struct vk_plan *plan)
{
    const tn_segment segment = {.struct_size = sizeof(segment),
                                .steps = steps,
                                .num_steps = num_steps,
                                .step_size = sizeof(tn_step)};
    *plan = (struct vk_plan){.device = &device};
    return vk_ahead_plan(&segment, plan_step, plan);
}

TestSuite(vulkan_ahead, .init = open_device, .fini = close_device);

// --- tests -----------------------------------------------------------------------------

// `num_steps` steps use `num_codes` codes in turn.
Test(vulkan_ahead, as_many_at_once_as_threads_are_allowed)
{
    static const struct {
        const char *threads;
        uint32_t num_steps, num_codes, at_once;
    } rows[] = {
        {"1", 12, 12, 1}, {"2", 12, 12, 2}, {"4", 12, 12, 4},
        {"4", 3, 3, 3},   {"4", 12, 2, 2},  {"3", 40, 40, 3},
        {"9", 1, 1, 1},   {"4", 2, 1, 1},   {"200", 40, 40, 16},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct vk_plan plan;
        open_device();
        threads = rows[i].threads;
        wanted = rows[i].at_once;
        for (uint32_t k = 0; k < rows[i].num_steps; k++)
            codes[k] = 1 + k % rows[i].num_codes;
        cr_assert(eq(int, plan_all(rows[i].num_steps, &plan), TN_OK), "row %zu: %s", i,
                  said);
        cr_assert(eq(uint, most_busy, rows[i].at_once), "row %zu", i);
        cr_assert(eq(uint, plan.num_dispatches, rows[i].num_steps), "row %zu", i);
        for (uint32_t k = 0; k < rows[i].num_steps; k++)
            cr_assert(plan.dispatches[k].pipeline->handle == HANDLE(VkPipeline, codes[k]) &&
                          plan.dispatches[k].step == k,
                      "row %zu: step %u", i, k);
        for (uint32_t k = 1; k <= rows[i].num_codes; k++)
            cr_assert(eq(uint, num_made[k], 1), "row %zu: code %u", i, k);
        plan_finish(&plan);
        if (i + 1 < sizeof(rows) / sizeof(*rows))
            close_device();
    }
}

// Pipelines of one code with other constants are made at once; the code is not compiled so.
Test(vulkan_ahead, one_code_is_compiled_by_one_thread_at_a_time)
{
    struct vk_plan plan;
    threads = "4";
    wanted = 4;
    for (uint32_t i = 0; i < 12; i++) {
        codes[i] = 1;
        constants[i] = i;
    }
    cr_assert(eq(int, plan_all(12, &plan), TN_OK), "%s", said);
    cr_assert(eq(uint, num_made[1], 12));
    cr_assert(eq(uint, most_busy, 4));
    plan_finish(&plan);
}

// The fifth step fails last, and is the one that is told: the ninth failed on a helper.
Test(vulkan_ahead, the_first_failure_in_the_order_of_steps_is_told)
{
    static const struct {
        const char *threads;
        bool in_code;
        tn_status status;
        const char *says;
    } rows[] = {
        {"1", false, TN_ERR_MEMORY, "kernel a kernel: vkCreateComputePipelines"},
        {"4", false, TN_ERR_MEMORY, "kernel a kernel: vkCreateComputePipelines"},
        {"1", true, TN_ERR_REFUSED, "code 5: line 1"},
        {"4", true, TN_ERR_REFUSED, "code 5: line 1"},
    };
    char first[sizeof(said)] = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct vk_plan plan;
        open_device();
        threads = rows[i].threads;
        failing[0] = 5;
        failing[1] = 9;
        code_fails = rows[i].in_code;
        cr_assert(eq(int, plan_all(12, &plan), rows[i].status), "row %zu: %s", i, said);
        cr_assert(strstr(said, rows[i].says) != NULL, "row %zu: %s", i, said);
        cr_assert(eq(uint, plan.num_dispatches, 4), "row %zu", i);
        if (i % 2 == 0) // one thread or four: the message is the same
            memcpy(first, said, sizeof(said));
        cr_assert(eq(str, said, first), "row %zu", i);
        plan_finish(&plan);
        if (i + 1 < sizeof(rows) / sizeof(*rows))
            close_device();
    }
}

// Two segments on one device share what they have in common.
static void *plan_again(void *context)
{
    struct vk_plan *plan = context;
    tn_status *status = calloc(1, sizeof(*status));
    *status = plan_all(MAX_STEPS, plan);
    return status;
}

Test(vulkan_ahead, segments_of_several_threads_make_each_pipeline_once)
{
    struct vk_plan plans[3];
    pthread_t others[3];
    threads = "3";
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(eq(int, pthread_create(&others[i], NULL, plan_again, &plans[i]), 0));
    for (uint32_t i = 0; i < 3; i++) {
        void *status;
        pthread_join(others[i], &status);
        cr_assert(eq(int, *(tn_status *)status, TN_OK));
        free(status);
        cr_assert(eq(uint, plans[i].num_dispatches, MAX_STEPS));
    }
    for (uint32_t k = 1; k <= MAX_STEPS; k++)
        cr_assert(eq(uint, num_made[k], 1), "code %u", k);
    for (uint32_t i = 0; i < 3; i++)
        plan_finish(&plans[i]);
}
