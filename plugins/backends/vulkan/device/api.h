// SPDX-License-Identifier: MIT
// Vulkan's functions, found at run time. The loader is not linked: it is opened when
// devices are first asked for.
#ifndef VULKAN_DEVICE_API_H
#define VULKAN_DEVICE_API_H

#define VK_NO_PROTOTYPES
#include <stdbool.h>
#include "matrices.h"
#include <vulkan/vulkan_core.h>

#define VK_GLOBAL_FUNCTIONS(X)                                                             \
    X(CreateInstance)                                                                      \
    X(EnumerateInstanceLayerProperties)                                                    \
    X(EnumerateInstanceExtensionProperties)                                                \
    X(EnumerateInstanceVersion)

#define VK_INSTANCE_FUNCTIONS(X)                                                           \
    X(DestroyInstance)                                                                     \
    X(EnumeratePhysicalDevices)                                                            \
    X(EnumerateDeviceExtensionProperties)                                                  \
    X(GetPhysicalDeviceProperties)                                                         \
    X(GetPhysicalDeviceProperties2)                                                        \
    X(GetPhysicalDeviceFeatures2)                                                          \
    X(GetPhysicalDeviceMemoryProperties)                                                   \
    X(GetPhysicalDeviceMemoryProperties2)                                                  \
    X(GetPhysicalDeviceExternalBufferProperties)                                           \
    X(GetPhysicalDeviceExternalSemaphoreProperties)                                        \
    X(GetPhysicalDeviceQueueFamilyProperties)                                              \
    X(CreateDevice)                                                                        \
    X(GetDeviceProcAddr)                                                                   \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)                                     \
    X(GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV)                    \
    X(CreateDebugUtilsMessengerEXT)                                                        \
    X(DestroyDebugUtilsMessengerEXT)

#define VK_DEVICE_FUNCTIONS(X)                                                             \
    X(DestroyDevice)                                                                       \
    X(GetDeviceQueue)                                                                      \
    X(QueueSubmit)                                                                         \
    X(DeviceWaitIdle)                                                                      \
    X(AllocateMemory)                                                                      \
    X(FreeMemory)                                                                          \
    X(MapMemory)                                                                           \
    X(GetMemoryFdKHR)                                                                      \
    X(GetSemaphoreFdKHR)                                                                   \
    X(GetMemoryHostPointerPropertiesEXT)                                                   \
    X(CreateBuffer)                                                                        \
    X(DestroyBuffer)                                                                       \
    X(GetBufferMemoryRequirements)                                                         \
    X(BindBufferMemory)                                                                    \
    X(CreateSemaphore)                                                                     \
    X(DestroySemaphore)                                                                    \
    X(WaitSemaphores)                                                                      \
    X(GetSemaphoreCounterValue)                                                            \
    X(SignalSemaphore)                                                                     \
    X(CreateCommandPool)                                                                   \
    X(DestroyCommandPool)                                                                  \
    X(AllocateCommandBuffers)                                                              \
    X(FreeCommandBuffers)                                                                  \
    X(BeginCommandBuffer)                                                                  \
    X(EndCommandBuffer)                                                                    \
    X(CmdBindPipeline)                                                                     \
    X(CmdBindDescriptorSets)                                                               \
    X(CmdPushConstants)                                                                    \
    X(CmdDispatch)                                                                         \
    X(CmdPipelineBarrier)                                                                  \
    X(CmdCopyBuffer)                                                                       \
    X(CmdWriteTimestamp)                                                                   \
    X(CmdResetQueryPool)                                                                   \
    X(CreateQueryPool)                                                                     \
    X(DestroyQueryPool)                                                                    \
    X(GetQueryPoolResults)                                                                 \
    X(CreateShaderModule)                                                                  \
    X(DestroyShaderModule)                                                                 \
    X(CreateDescriptorSetLayout)                                                           \
    X(DestroyDescriptorSetLayout)                                                          \
    X(CreatePipelineLayout)                                                                \
    X(DestroyPipelineLayout)                                                               \
    X(CreatePipelineCache)                                                                 \
    X(DestroyPipelineCache)                                                                \
    X(GetPipelineCacheData)                                                                \
    X(CreateComputePipelines)                                                              \
    X(DestroyPipeline)                                                                     \
    X(CreateDescriptorPool)                                                                \
    X(DestroyDescriptorPool)                                                               \
    X(AllocateDescriptorSets)                                                              \
    X(UpdateDescriptorSets)

#define VK_MEMBER(name) PFN_vk##name name;
struct vk_loader {
    void *library; // NULL: not open
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    VK_GLOBAL_FUNCTIONS(VK_MEMBER)
};
struct vk_instance_api {
    VK_INSTANCE_FUNCTIONS(VK_MEMBER)
};
struct vk_device_api {
    VK_DEVICE_FUNCTIONS(VK_MEMBER)
};
#undef VK_MEMBER

// Bytes of a text that says why something cannot be used, and the remedy.
#define VK_REASON 512

// Opens libvulkan.so.1. False when there is none; then `reason` says why.
bool vk_loader_open(struct vk_loader *loader, char reason[VK_REASON]);
void vk_loader_close(struct vk_loader *loader);

// Fills a table; functions of extensions that are not enabled stay NULL.
void vk_instance_api_load(const struct vk_loader *loader, VkInstance instance,
                          struct vk_instance_api *out);
void vk_device_api_load(const struct vk_instance_api *instance, VkDevice device,
                        struct vk_device_api *out);

// "VK_ERROR_OUT_OF_DEVICE_MEMORY".
const char *vk_result_name(VkResult result);

#endif // VULKAN_DEVICE_API_H
