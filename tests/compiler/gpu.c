// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { BUFFER_BYTES = 1 << 20 }; // of each buffer of the device: mapped all the time

struct gpu {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkDevice device;
    VkQueue queue;
    VkCommandPool commands;
    VkCommandBuffer command;
    VkDescriptorPool pool;
    VkDescriptorSetLayout set_layout;
    VkDescriptorSet set;
    VkBuffer buffers[GPU_MOST_BUFFERS];
    VkDeviceMemory memory;
    unsigned char *mapped;
    bool has_f16;
};

#define TRY(call)                                                                          \
    do {                                                                                   \
        VkResult result_ = (call);                                                         \
        if (result_ != VK_SUCCESS) {                                                       \
            snprintf(reason, 128, "%.*s: VkResult %d", (int)strcspn(#call, "("), #call,    \
                     (int)result_);                                                        \
            return false;                                                                  \
        }                                                                                  \
    } while (0)

// --- the device ------------------------------------------------------------------------

static bool open_device(struct gpu *gpu, char reason[128])
{
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
    TRY(vkCreateInstance(
        &(VkInstanceCreateInfo){.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                .pApplicationInfo = &app},
        NULL, &gpu->instance));
    uint32_t count = 1;
    VkResult found = vkEnumeratePhysicalDevices(gpu->instance, &count, &gpu->physical);
    if ((found != VK_SUCCESS && found != VK_INCOMPLETE) || count == 0) {
        snprintf(reason, 128, "no device");
        return false;
    }
    vkGetPhysicalDeviceProperties(gpu->physical, &gpu->properties);
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features features11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &features12};
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &features11};
    vkGetPhysicalDeviceFeatures2(gpu->physical, &features);
    gpu->has_f16 = features12.shaderFloat16;
    features.features.robustBufferAccess = VK_FALSE;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType =
                                               VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    TRY(vkCreateDevice(gpu->physical,
                       &(VkDeviceCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                             .pNext = &features,
                                             .queueCreateInfoCount = 1,
                                             .pQueueCreateInfos = &queue},
                       NULL, &gpu->device));
    vkGetDeviceQueue(gpu->device, 0, 0, &gpu->queue);
    return true;
}

static uint32_t find_memory(const struct gpu *gpu, uint32_t allowed)
{
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(gpu->physical, &memory);
    const uint32_t want =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t i = 0;
    while (i + 1 < memory.memoryTypeCount &&
           (!(allowed & 1u << i) || (memory.memoryTypes[i].propertyFlags & want) != want))
        i++;
    return i;
}

static bool make_buffers(struct gpu *gpu, char reason[128])
{
    VkMemoryRequirements needs = {0};
    for (uint32_t i = 0; i < GPU_MOST_BUFFERS; i++) {
        TRY(vkCreateBuffer(
            gpu->device,
            &(VkBufferCreateInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  .size = BUFFER_BYTES,
                                  .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT},
            NULL, &gpu->buffers[i]));
        vkGetBufferMemoryRequirements(gpu->device, gpu->buffers[i], &needs);
    }
    TRY(vkAllocateMemory(
        gpu->device,
        &(VkMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                .allocationSize =
                                    GPU_MOST_BUFFERS * (VkDeviceSize)BUFFER_BYTES,
                                .memoryTypeIndex = find_memory(gpu, needs.memoryTypeBits)},
        NULL, &gpu->memory));
    for (uint32_t i = 0; i < GPU_MOST_BUFFERS; i++)
        TRY(vkBindBufferMemory(gpu->device, gpu->buffers[i], gpu->memory,
                               i * (VkDeviceSize)BUFFER_BYTES));
    void *mapped;
    TRY(vkMapMemory(gpu->device, gpu->memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    gpu->mapped = mapped;
    return true;
}

static bool make_set(struct gpu *gpu, char reason[128])
{
    VkDescriptorSetLayoutBinding bindings[GPU_MOST_BUFFERS];
    for (uint32_t i = 0; i < GPU_MOST_BUFFERS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    TRY(vkCreateDescriptorSetLayout(
        gpu->device,
        &(VkDescriptorSetLayoutCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = GPU_MOST_BUFFERS,
            .pBindings = bindings},
        NULL, &gpu->set_layout));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, GPU_MOST_BUFFERS};
    TRY(vkCreateDescriptorPool(gpu->device,
                               &(VkDescriptorPoolCreateInfo){
                                   .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                   .maxSets = 1,
                                   .poolSizeCount = 1,
                                   .pPoolSizes = &size},
                               NULL, &gpu->pool));
    TRY(vkAllocateDescriptorSets(
        gpu->device,
        &(VkDescriptorSetAllocateInfo){.sType =
                                           VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                       .descriptorPool = gpu->pool,
                                       .descriptorSetCount = 1,
                                       .pSetLayouts = &gpu->set_layout},
        &gpu->set));
    for (uint32_t i = 0; i < GPU_MOST_BUFFERS; i++) {
        const VkDescriptorBufferInfo info = {gpu->buffers[i], 0, BUFFER_BYTES};
        vkUpdateDescriptorSets(
            gpu->device, 1,
            &(VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                    .dstSet = gpu->set,
                                    .dstBinding = i,
                                    .descriptorCount = 1,
                                    .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                    .pBufferInfo = &info},
            0, NULL);
    }
    return true;
}

static bool make_commands(struct gpu *gpu, char reason[128])
{
    TRY(vkCreateCommandPool(gpu->device,
                            &(VkCommandPoolCreateInfo){
                                .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT},
                            NULL, &gpu->commands));
    TRY(vkAllocateCommandBuffers(
        gpu->device,
        &(VkCommandBufferAllocateInfo){.sType =
                                           VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = gpu->commands,
                                       .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                       .commandBufferCount = 1},
        &gpu->command));
    return true;
}

struct gpu *gpu_open(void)
{
    char reason[128] = "";
    struct gpu *gpu = calloc(1, sizeof(*gpu));
    if (gpu && open_device(gpu, reason) && make_buffers(gpu, reason) &&
        make_set(gpu, reason) && make_commands(gpu, reason))
        return gpu;
    fprintf(stderr, "no device of Vulkan: %s\n", reason);
    if (gpu)
        gpu_close(gpu);
    return NULL;
}

void gpu_close(struct gpu *gpu)
{
    if (gpu->device) {
        vkDestroyCommandPool(gpu->device, gpu->commands, NULL);
        vkDestroyDescriptorPool(gpu->device, gpu->pool, NULL);
        vkDestroyDescriptorSetLayout(gpu->device, gpu->set_layout, NULL);
        for (uint32_t i = 0; i < GPU_MOST_BUFFERS; i++)
            vkDestroyBuffer(gpu->device, gpu->buffers[i], NULL);
        vkFreeMemory(gpu->device, gpu->memory, NULL);
        vkDestroyDevice(gpu->device, NULL);
    }
    if (gpu->instance)
        vkDestroyInstance(gpu->instance, NULL);
    free(gpu);
}

const char *gpu_name(const struct gpu *gpu)
{
    return gpu->properties.deviceName;
}

bool gpu_has_f16(const struct gpu *gpu)
{
    return gpu->has_f16;
}

// --- a run -----------------------------------------------------------------------------

struct pipeline {
    VkShaderModule module;
    VkPipelineLayout layout;
    VkPipeline handle;
};

static bool make_pipeline(struct gpu *gpu, const struct gpu_job *job, struct pipeline *out,
                          char reason[128])
{
    TRY(vkCreateShaderModule(
        gpu->device,
        &(VkShaderModuleCreateInfo){.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                    .codeSize = job->num_words * sizeof(uint32_t),
                                    .pCode = job->words},
        NULL, &out->module));
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, job->push_size};
    TRY(vkCreatePipelineLayout(gpu->device,
                               &(VkPipelineLayoutCreateInfo){
                                   .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                   .setLayoutCount = 1,
                                   .pSetLayouts = &gpu->set_layout,
                                   .pushConstantRangeCount = job->push_size > 0,
                                   .pPushConstantRanges = &range},
                               NULL, &out->layout));
    VkSpecializationMapEntry entries[GPU_MOST_SPEC];
    for (uint32_t i = 0; i < job->num_spec; i++)
        entries[i] = (VkSpecializationMapEntry){job->spec_ids[i], 4 * i, 4};
    const VkSpecializationInfo spec = {.mapEntryCount = job->num_spec,
                                       .pMapEntries = entries,
                                       .dataSize = job->num_spec * sizeof(uint32_t),
                                       .pData = job->spec_values};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = out->module,
                  .pName = "main",
                  .pSpecializationInfo = &spec},
        .layout = out->layout};
    TRY(vkCreateComputePipelines(gpu->device, VK_NULL_HANDLE, 1, &info, NULL,
                                 &out->handle));
    return true;
}

static bool record(struct gpu *gpu, const struct gpu_job *job,
                   const struct pipeline *pipeline, char reason[128])
{
    TRY(vkBeginCommandBuffer(
        gpu->command,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO}));
    vkCmdBindPipeline(gpu->command, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    vkCmdBindDescriptorSets(gpu->command, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout,
                            0, 1, &gpu->set, 0, NULL);
    if (job->push_size > 0)
        vkCmdPushConstants(gpu->command, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           job->push_size, job->push);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_SHADER_READ_BIT |
                                                      VK_ACCESS_SHADER_WRITE_BIT};
    for (uint32_t i = 0; i < (job->times ? job->times : 1); i++) {
        if (i > 0)
            vkCmdPipelineBarrier(gpu->command, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0,
                                 NULL, 0, NULL);
        vkCmdDispatch(gpu->command, job->groups[0], job->groups[1], job->groups[2]);
    }
    TRY(vkEndCommandBuffer(gpu->command));
    return true;
}

static bool submit(struct gpu *gpu, char reason[128])
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &gpu->command};
    TRY(vkQueueSubmit(gpu->queue, 1, &info, VK_NULL_HANDLE));
    TRY(vkQueueWaitIdle(gpu->queue));
    return true;
}

bool gpu_run(struct gpu *gpu, const struct gpu_job *job, char reason[128])
{
    struct pipeline pipeline = {0};
    for (uint32_t i = 0; i < job->num_buffers; i++) {
        if (job->sizes[i] > BUFFER_BYTES) {
            snprintf(reason, 128, "a buffer of %zu bytes, expected at most %d",
                     job->sizes[i], BUFFER_BYTES);
            return false;
        }
        memcpy(gpu->mapped + (size_t)i * BUFFER_BYTES, job->buffers[i], job->sizes[i]);
    }
    bool done = make_pipeline(gpu, job, &pipeline, reason) &&
                record(gpu, job, &pipeline, reason) && submit(gpu, reason);
    for (uint32_t i = 0; done && i < job->num_buffers; i++)
        memcpy(job->buffers[i], gpu->mapped + (size_t)i * BUFFER_BYTES, job->sizes[i]);
    vkDestroyPipeline(gpu->device, pipeline.handle, NULL);
    vkDestroyPipelineLayout(gpu->device, pipeline.layout, NULL);
    vkDestroyShaderModule(gpu->device, pipeline.module, NULL);
    return done;
}

static int compare_bits(const struct gpu_job *job, const struct gpu_job *other,
                        uint32_t *buffer, size_t *word, uint32_t got[2])
{
    for (uint32_t i = 0; i < job->num_buffers; i++)
        for (size_t at = 0; at + 4 <= job->sizes[i]; at += 4) {
            memcpy(&got[0], (const char *)job->buffers[i] + at, 4);
            memcpy(&got[1], (const char *)other->buffers[i] + at, 4);
            if (got[0] == got[1])
                continue;
            *buffer = i;
            *word = at / 4;
            return 0;
        }
    return 1;
}

int gpu_run_pair(struct gpu *gpu, const struct gpu_job *job, const uint32_t *other,
                 size_t num_other, uint32_t *buffer, size_t *word, uint32_t got[2],
                 char reason[128])
{
    struct gpu_job second = *job;
    second.words = other;
    second.num_words = num_other;
    for (uint32_t i = 0; i < job->num_buffers; i++) {
        second.buffers[i] = malloc(job->sizes[i] + 1);
        if (!second.buffers[i])
            abort();
        memcpy(second.buffers[i], job->buffers[i], job->sizes[i]);
    }
    int same = -1;
    if (gpu_run(gpu, job, reason) && gpu_run(gpu, &second, reason))
        same = compare_bits(job, &second, buffer, word, got);
    for (uint32_t i = 0; i < job->num_buffers; i++)
        free(second.buffers[i]);
    return same;
}
