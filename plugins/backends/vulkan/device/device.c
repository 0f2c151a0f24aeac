// SPDX-License-Identifier: MIT
// Opens and closes devices.
#include "device.h"

#include <stdio.h>

#define MAX_EXTENSIONS (5 + VK_MAX_OPTIONAL)
static uint32_t vk_device_list_extensions(const struct vk_facts *facts, const char **out)
{
    uint32_t count = 0;
    if (facts->share_fd)
        out[count++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
    if (facts->share_timelines)
        out[count++] = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;
    if (facts->host_alignment)
        out[count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (facts->f16_matrices || facts->bf16_matrices)
        out[count++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    if (facts->bf16_matrices)
        out[count++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
    return count;
}

// Enables all features that kernels of this backend or of op packs may use, where the
// device has them.
static VkResult create_logical(tn_device *device)
{
    const struct vk_facts *facts = &device->facts;
    VkPhysicalDeviceVulkan12Features has12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features has11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &has12};
    VkPhysicalDeviceFeatures2 has = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &has11};
    device->instance->vk.GetPhysicalDeviceFeatures2(device->physical, &has);
    const char *extensions[MAX_EXTENSIONS];
    uint32_t num_extensions = vk_device_list_extensions(facts, extensions);
    struct vk_optional optional = facts->optional;
    void *chain = vk_optional_chain(&optional, NULL, extensions, &num_extensions);
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
        .pNext = chain,
        .shaderBFloat16Type = VK_TRUE,
        .shaderBFloat16CooperativeMatrix = VK_TRUE};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .pNext = facts->bf16_matrices ? &bfloat16 : chain,
        .cooperativeMatrix = VK_TRUE};
    VkPhysicalDeviceVulkan12Features want12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = facts->f16_matrices || facts->bf16_matrices ? &matrices : chain,
        .timelineSemaphore = VK_TRUE,
        .storageBuffer8BitAccess = VK_TRUE,
        .shaderInt8 = facts->i8,
        .shaderFloat16 = facts->f16,
        .descriptorBindingStorageBufferUpdateAfterBind = facts->update_after_bind,
        .shaderBufferInt64Atomics = facts->i64_atomics,
        .shaderSharedInt64Atomics = facts->i64_atomics,
        .vulkanMemoryModel = facts->memory_model,
        .vulkanMemoryModelDeviceScope = facts->memory_model,
        .scalarBlockLayout = has12.scalarBlockLayout,
        .bufferDeviceAddress = facts->addresses,
        .shaderSubgroupExtendedTypes = has12.shaderSubgroupExtendedTypes,
    };
    VkPhysicalDeviceVulkan11Features want11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .pNext = &want12,
        .storageBuffer16BitAccess = VK_TRUE,
    };
    VkPhysicalDeviceFeatures2 want = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &want11,
        .features = {.shaderInt64 = facts->i64,
                     .shaderFloat64 = facts->f64,
                     .shaderInt16 = facts->i16,
                     .shaderStorageBufferArrayDynamicIndexing =
                         has.features.shaderStorageBufferArrayDynamicIndexing},
    };
    static const float priorities[VK_MAX_QUEUES + 1] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    return device->instance->vk.CreateDevice(
        device->physical,
        &(VkDeviceCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
            .pNext = &want,
            .queueCreateInfoCount = 1,
            .pQueueCreateInfos =
                &(VkDeviceQueueCreateInfo){.sType =
                                               VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = facts->queue_family,
                                           .queueCount = vk_num_queues(device),
                                           .pQueuePriorities = priorities},
            .enabledExtensionCount = num_extensions,
            .ppEnabledExtensionNames = extensions,
        },
        NULL, &device->handle);
}

// Processes that were started together may move arrays between devices without a copy,
// where a library does so. Software drivers lose nothing by it, and are what tests have.
static bool wants_exports(const tn_device *device)
{
    const uint32_t nvidia = 0x10de;
    const VkPhysicalDeviceProperties *properties = &device->facts.properties;
    const char *run = device->host->config(device->host, "TENON_RUN"),
               *nccl = device->host->config(device->host, "TENON_NCCL");
    if (nccl && *nccl)
        return strcmp(nccl, "off") != 0;
    return run && *run &&
           (properties->vendorID == nvidia ||
            properties->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU);
}

static tn_status device_init(tn_device *device, uint32_t index)
{
    device->physical = device->instance->devices[index];
    if (!vk_facts_read(device->instance, device->physical, &device->facts))
        return device->host->fail(device->host, TN_ERR_DEVICE, "%s %s",
                                  device->facts.properties.deviceName,
                                  device->facts.reason);
    device->exports =
        device->facts.share_fd && !device->facts.share_dedicated && wants_exports(device);
    snprintf(device->track, sizeof(device->track), "%s:%u", device->flavour->name, index);
    device->trace = device->host->query(device->host, TN_HOST_TRACE);
    VkResult result = create_logical(device);
    if (result != VK_SUCCESS) {
        device->handle = NULL;
        return vk_fail(device, result, "vkCreateDevice");
    }
    vk_device_api_load(&device->instance->vk, device->handle, &device->api);
    device->vk = &device->api;
    tn_status status = vk_host_init(device);
    for (uint32_t i = 0; i < vk_num_queues(device) && status == TN_OK; i++)
        status = vk_queue_init(device, i);
    return status == TN_OK ? vk_memory_init(device) : status;
}

// TENON_VULKAN_AS_GPU lets tests run the paths for GPUs on a software driver.
static bool is_software(const tn_device *device)
{
    const char *value = device->host->config(device->host, "TENON_VULKAN_AS_GPU");
    bool as_gpu = value && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
    return device->facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU && !as_gpu;
}

// TENON_VULKAN_MATRICES lets either kind of cooperative matrices run alone.
static uint32_t unwanted_matrices(const tn_device *device)
{
    const uint32_t of_subgroups = TN_VULKAN_HAS_F16_MATRICES | TN_VULKAN_HAS_BF16_MATRICES,
                   of_groups =
                       TN_VULKAN_HAS_F16_GROUP_MATRICES | TN_VULKAN_HAS_BF16_GROUP_MATRICES;
    const char *value = device->host->config(device->host, "TENON_VULKAN_MATRICES");
    if (!value)
        return 0;
    return (strcmp(value, "khr") == 0 ? 0 : of_subgroups) |
           (strcmp(value, "nv2") == 0 ? 0 : of_groups);
}

tn_status vk_device_open(const tn_host *host, uint32_t index,
                         const struct vk_flavour *flavour, tn_device **out_device)
{
    struct vk_instance *instance;
    tn_status status = vk_instance_get(host, &instance);
    if (status != TN_OK)
        return status;
    if (index >= instance->num_devices)
        return host->fail(host, TN_ERR_NOT_FOUND, "Vulkan device %u: there are %u%s%s",
                          index, instance->num_devices, *instance->reason ? ": " : "",
                          instance->reason);
    tn_device *device = host->alloc(host, sizeof(*device), 0);
    if (!device)
        return TN_ERR_MEMORY;
    *device = (tn_device){.host = host, .flavour = flavour, .instance = instance};
    for (uint32_t i = 0; i <= VK_MAX_QUEUES; i++) {
        pthread_mutex_init(&device->queues[i].lock, NULL);
        pthread_mutex_init(&device->queues[i].staging.lock, NULL);
    }
    pthread_mutex_init(&device->memory.lock, NULL);
    pthread_mutex_init(&device->shaders.lock, NULL);
    pthread_cond_init(&device->shaders.made, NULL);
    status = device_init(device, index);
    if (status != TN_OK) {
        vk_device_close(device);
        return status;
    }
    device->is_software = is_software(device);
    if (!device->is_software)
        device->facts.limits.features &= ~(uint32_t)TN_VULKAN_IS_SOFTWARE;
    device->facts.limits.features &= ~unwanted_matrices(device);
    *out_device = device;
    return TN_OK;
}

static void destroy_objects(tn_device *device)
{
    const struct vk_device_api *vk = device->vk;
    vk_wait_idle(device);
    for (uint32_t i = 0; i < vk_num_queues(device); i++) {
        vk_staging_finish(device, &device->queues[i].staging);
        vk_queue_finish(device, i);
    }
    vk_host_finish(device);
    vk_memory_finish(device);
    vk->DestroyDevice(device->handle, NULL);
}

void vk_device_close(tn_device *device)
{
    if (!device)
        return;
    if (device->handle)
        destroy_objects(device);
    for (uint32_t i = 0; i <= VK_MAX_QUEUES; i++) {
        pthread_mutex_destroy(&device->queues[i].lock);
        pthread_mutex_destroy(&device->queues[i].staging.lock);
    }
    pthread_mutex_destroy(&device->memory.lock);
    pthread_mutex_destroy(&device->shaders.lock);
    pthread_cond_destroy(&device->shaders.made);
    device->host->free(device->host, device);
}
