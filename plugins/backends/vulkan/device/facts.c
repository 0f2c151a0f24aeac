// SPDX-License-Identifier: MIT
// Reads the capabilities of a physical device, and decides whether Tenon can use it.
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "matrices.h"

// The extensions of a physical device, asked for once.
struct extensions {
    VkExtensionProperties *all;
    uint32_t count;
};

// Lists the extensions: none without memory, or when the driver fails.
static struct extensions vk_facts_list_extensions(const struct vk_instance *instance,
                                                  VkPhysicalDevice physical)
{
    struct extensions list = {0};
    instance->vk.EnumerateDeviceExtensionProperties(physical, NULL, &list.count, NULL);
    list.all = calloc(list.count + 1, sizeof(*list.all));
    if (!list.all || instance->vk.EnumerateDeviceExtensionProperties(
                         physical, NULL, &list.count, list.all) < 0)
        list.count = 0;
    return list;
}

static bool vk_facts_has_extension(const void *context, const char *name)
{
    const struct extensions *list = context;
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].extensionName, name) == 0)
            return true;
    return false;
}

// Whether a queue family is better than `best`: on an H100 a submission to one without
// graphics costs the device 9 us, to others 16. It has no fewer queues.
static bool vk_facts_is_better(const VkQueueFamilyProperties *family,
                               const VkQueueFamilyProperties *best)
{
    return !best || (!(family->queueFlags & VK_QUEUE_GRAPHICS_BIT) &&
                     (best->queueFlags & VK_QUEUE_GRAPHICS_BIT) &&
                     family->queueCount > VK_MAX_QUEUES &&
                     family->timestampValidBits >= best->timestampValidBits);
}

static bool find_queue(const struct vk_instance *instance, VkPhysicalDevice physical,
                       struct vk_facts *facts)
{
    VkQueueFamilyProperties families[16];
    const VkQueueFamilyProperties *best = NULL;
    uint32_t count = 16;
    instance->vk.GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) &&
            vk_facts_is_better(&families[i], best))
            best = &families[i];
    if (!best)
        return false;
    facts->queue_family = (uint32_t)(best - families);
    facts->num_queues = best->queueCount < VK_MAX_QUEUES ? best->queueCount : VK_MAX_QUEUES;
    facts->copy_queue = best->queueCount > facts->num_queues;
    facts->timestamps = best->timestampValidBits > 0;
    return true;
}

static bool host_sees_all(const VkPhysicalDeviceMemoryProperties *memory)
{
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                         VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        if ((flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) && (flags & wanted) != wanted)
            return false;
    }
    return true;
}

// *out_operations: VkSubgroupFeatureFlags of compute shaders.
static void read_properties(const struct vk_instance *instance, VkPhysicalDevice physical,
                            const struct extensions *extensions, struct vk_facts *out,
                            uint32_t *out_operations)
{
    VkPhysicalDeviceMaintenance3Properties maintenance = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
        .pNext = &maintenance};
    VkPhysicalDeviceFloatControlsProperties floats = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
        .pNext = &subgroup};
    VkPhysicalDeviceIDProperties id = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, .pNext = &floats};
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT,
        .pNext = &id};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &id};
    if (out->properties.apiVersion >= VK_API_VERSION_1_3 ||
        vk_facts_has_extension(extensions, "VK_EXT_subgroup_size_control"))
        driver.pNext = &sizes;
    VkPhysicalDeviceProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    instance->vk.GetPhysicalDeviceProperties2(physical, &all);
    instance->vk.GetPhysicalDeviceMemoryProperties(physical, &out->memory);
    memcpy(out->share_id, id.deviceUUID, VK_UUID_SIZE);
    memcpy(out->share_id + VK_UUID_SIZE, id.driverUUID, VK_UUID_SIZE);
    bool computes = subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    *out_operations = computes ? subgroup.supportedOperations : 0;
    out->subgroup = *out_operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    out->host_sees_all = host_sees_all(&out->memory);
    out->subgroup_size = subgroup.subgroupSize;
    out->preserves_nan = (floats.shaderSignedZeroInfNanPreserveFloat16 ? 16u : 0u) |
                         (floats.shaderSignedZeroInfNanPreserveFloat32 ? 32u : 0u) |
                         (floats.shaderSignedZeroInfNanPreserveFloat64 ? 64u : 0u);
    // Shuffles are used where every subgroup has the same size, a power of two.
    out->shuffle = (*out_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) &&
                   sizes.minSubgroupSize == subgroup.subgroupSize &&
                   sizes.maxSubgroupSize == subgroup.subgroupSize &&
                   subgroup.subgroupSize >= 4 && subgroup.subgroupSize <= 128 &&
                   (subgroup.subgroupSize & (subgroup.subgroupSize - 1)) == 0;
    out->max_buffer = maintenance.maxMemoryAllocationSize;
    out->tells_budget =
        vk_facts_has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    snprintf(out->driver, sizeof(out->driver), "%.60s %.60s", driver.driverName,
             driver.driverInfo);
}

// Over a bus the host's memory is slower than the device's own: a copy pays.
static void read_host_import(const struct vk_instance *instance, VkPhysicalDevice physical,
                             const struct extensions *extensions, struct vk_facts *out)
{
    VkPhysicalDeviceType type = out->properties.deviceType;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    if ((type != VK_PHYSICAL_DEVICE_TYPE_CPU &&
         type != VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) ||
        !vk_facts_has_extension(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
        return;
    instance->vk.GetPhysicalDeviceProperties2(
        physical,
        &(VkPhysicalDeviceProperties2){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &host});
    out->host_alignment = host.minImportedHostPointerAlignment;
}

// Whether buffers of memory that others use by file descriptor can be made.
static void read_sharing(const struct vk_instance *instance, VkPhysicalDevice physical,
                         const struct extensions *extensions, struct vk_facts *out)
{
    VkExternalMemoryFeatureFlags wanted = VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT |
                                          VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    VkExternalBufferProperties has = {.sType =
                                          VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    instance->vk.GetPhysicalDeviceExternalBufferProperties(
        physical,
        &(VkPhysicalDeviceExternalBufferInfo){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
            .usage = VK_BUFFER_USAGES,
            .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT},
        &has);
    VkExternalMemoryFeatureFlags features =
        has.externalMemoryProperties.externalMemoryFeatures;
    out->share_fd =
        (features & wanted) == wanted &&
        vk_facts_has_extension(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    out->share_dedicated = features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
}

// Whether others can wait for timelines by file descriptor.
static void read_timeline_sharing(const struct vk_instance *instance,
                                  VkPhysicalDevice physical,
                                  const struct extensions *extensions, struct vk_facts *out)
{
    const VkSemaphoreTypeCreateInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkExternalSemaphoreProperties has = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
    if (!vk_facts_has_extension(extensions, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME))
        return;
    instance->vk.GetPhysicalDeviceExternalSemaphoreProperties(
        physical,
        &(VkPhysicalDeviceExternalSemaphoreInfo){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
            .pNext = &timeline,
            .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT},
        &has);
    out->share_timelines =
        has.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}

// Whether subgroups multiply matrices of 16x16x16 of a component, with sums in f32.
static bool vk_facts_multiplies(const struct vk_instance *instance,
                                VkPhysicalDevice physical, VkComponentTypeKHR component)
{
    VkCooperativeMatrixPropertiesKHR all[64];
    uint32_t count = sizeof(all) / sizeof(all[0]);
    for (uint32_t i = 0; i < count; i++)
        all[i] = (VkCooperativeMatrixPropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    if (!instance->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
        instance->vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count,
                                                                     all) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (all[i].MSize == 16 && all[i].NSize == 16 && all[i].KSize == 16 &&
            all[i].AType == component && all[i].BType == component &&
            all[i].CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            all[i].ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            !all[i].saturatingAccumulation && all[i].scope == VK_SCOPE_SUBGROUP_KHR)
            return true;
    return false;
}

// Matrices are used where the memory model is Vulkan's, as their modules say, and every
// subgroup has the same size.
static void read_matrices(const struct vk_instance *instance, VkPhysicalDevice physical,
                          const struct extensions *extensions, struct vk_facts *out)
{
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &matrices};
    if (!out->shuffle ||
        !vk_facts_has_extension(extensions, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        return;
    if (vk_facts_has_extension(extensions, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        matrices.pNext = &bfloat16;
    instance->vk.GetPhysicalDeviceFeatures2(
        physical,
        &(VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &v12});
    bool usable = matrices.cooperativeMatrix && v12.vulkanMemoryModel &&
                  v12.vulkanMemoryModelDeviceScope;
    out->f16_matrices =
        usable && v12.shaderFloat16 &&
        vk_facts_multiplies(instance, physical, VK_COMPONENT_TYPE_FLOAT16_KHR);
    out->bf16_matrices =
        usable && bfloat16.shaderBFloat16Type && bfloat16.shaderBFloat16CooperativeMatrix &&
        vk_facts_multiplies(instance, physical, VK_COMPONENT_TYPE_BFLOAT16_KHR);
}

// Whether workgroups of 128 invocations multiply matrices of a component, of any multiples
// of 32x32x16, with sums in f32.
static bool multiplies_in_groups(const struct vk_instance *instance,
                                 VkPhysicalDevice physical, VkComponentTypeKHR component)
{
    VkCooperativeMatrixFlexibleDimensionsPropertiesNV all[64];
    uint32_t count = sizeof(all) / sizeof(all[0]);
    for (uint32_t i = 0; i < count; i++)
        all[i] = (VkCooperativeMatrixFlexibleDimensionsPropertiesNV){
            .sType =
                VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV};
    if (!instance->vk.GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV ||
        instance->vk.GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(
            physical, &count, all) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (all[i].MGranularity && 32 % all[i].MGranularity == 0 && all[i].NGranularity &&
            32 % all[i].NGranularity == 0 && all[i].KGranularity &&
            16 % all[i].KGranularity == 0 && all[i].AType == component &&
            all[i].BType == component && all[i].CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            all[i].ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            !all[i].saturatingAccumulation && all[i].scope == VK_SCOPE_WORKGROUP_KHR &&
            all[i].workgroupInvocations == 128)
            return true;
    return false;
}

static void read_group_matrices(const struct vk_instance *instance,
                                VkPhysicalDevice physical, struct vk_facts *out)
{
    const VkPhysicalDeviceCooperativeMatrix2FeaturesNV *has = &out->optional.group_matrices;
    VkPhysicalDeviceCooperativeMatrix2PropertiesNV most = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV};
    if (!out->f16_matrices && !out->bf16_matrices) // what the extension extends is off
        out->optional.group_matrices = (VkPhysicalDeviceCooperativeMatrix2FeaturesNV){0};
    if (!has->cooperativeMatrixWorkgroupScope ||
        !has->cooperativeMatrixFlexibleDimensions ||
        !has->cooperativeMatrixPerElementOperations ||
        !has->cooperativeMatrixTensorAddressing)
        return;
    instance->vk.GetPhysicalDeviceProperties2(
        physical,
        &(VkPhysicalDeviceProperties2){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &most});
    if (most.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize < 128 ||
        most.cooperativeMatrixFlexibleDimensionsMaxDimension < 128)
        return;
    out->f16_group_matrices =
        out->f16_matrices &&
        multiplies_in_groups(instance, physical, VK_COMPONENT_TYPE_FLOAT16_KHR);
    out->bf16_group_matrices =
        out->bf16_matrices &&
        multiplies_in_groups(instance, physical, VK_COMPONENT_TYPE_BFLOAT16_KHR);
}

static const char *vk_facts_read_features(const struct vk_instance *instance,
                                          VkPhysicalDevice physical, struct vk_facts *out)
{
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &v11};
    instance->vk.GetPhysicalDeviceFeatures2(physical, &all);
    out->f64 = all.features.shaderFloat64;
    out->i64 = all.features.shaderInt64;
    out->i16 = all.features.shaderInt16;
    out->i8 = v12.shaderInt8;
    out->f16 = v12.shaderFloat16;
    out->i64_atomics =
        out->i64 && v12.shaderBufferInt64Atomics && v12.shaderSharedInt64Atomics;
    // GLSL's atomics have device scope, which is invalid with vulkanMemoryModel alone.
    out->memory_model = v12.vulkanMemoryModel && v12.vulkanMemoryModelDeviceScope;
    out->addresses = v12.bufferDeviceAddress;
    out->update_after_bind = v12.descriptorBindingStorageBufferUpdateAfterBind;
    if (!v12.timelineSemaphore)
        return "has no timeline semaphores";
    if (!v11.storageBuffer16BitAccess || !v12.storageBuffer8BitAccess)
        return "has no 8 and 16-bit storage buffers";
    return NULL;
}

// Whether products of bytes are faster than those of floats, or nothing is fast.
static bool has_fast_dots(const struct vk_instance *instance, VkPhysicalDevice physical,
                          const struct vk_facts *facts)
{
    VkPhysicalDeviceShaderIntegerDotProductProperties dots = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    if (!facts->optional.dots.shaderIntegerDotProduct)
        return false;
    instance->vk.GetPhysicalDeviceProperties2(
        physical,
        &(VkPhysicalDeviceProperties2){
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &dots});
    return dots.integerDotProduct4x8BitPackedSignedAccelerated ||
           facts->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static void set_limits(struct vk_facts *facts, uint32_t subgroup_operations)
{
    const VkPhysicalDeviceLimits *has = &facts->properties.limits;
    bool software = facts->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    tn_vulkan_limits *out = &facts->limits;
    *out = (tn_vulkan_limits){
        .struct_size = sizeof(*out),
        .features =
            (facts->f16 ? TN_VULKAN_HAS_F16 : 0u) | (facts->f64 ? TN_VULKAN_HAS_F64 : 0u) |
            (facts->i8 ? TN_VULKAN_HAS_I8 : 0u) | (facts->i16 ? TN_VULKAN_HAS_I16 : 0u) |
            (facts->i64 ? TN_VULKAN_HAS_I64 : 0u) |
            (software ? TN_VULKAN_IS_SOFTWARE : 0u) |
            (facts->fast_dots ? TN_VULKAN_HAS_DOTS : 0u) |
            (facts->f16_matrices ? TN_VULKAN_HAS_F16_MATRICES : 0u) |
            (facts->bf16_matrices ? TN_VULKAN_HAS_BF16_MATRICES : 0u) |
            (facts->f16_group_matrices ? TN_VULKAN_HAS_F16_GROUP_MATRICES : 0u) |
            (facts->bf16_group_matrices ? TN_VULKAN_HAS_BF16_GROUP_MATRICES : 0u),
        .max_invocations = has->maxComputeWorkGroupInvocations,
        .max_shared = has->maxComputeSharedMemorySize,
        .max_push = has->maxPushConstantsSize < VK_MOST_PUSH * 4 ? has->maxPushConstantsSize
                                                                 : VK_MOST_PUSH * 4,
        .max_constants = VK_MAX_SPEC,
        .max_operands = has->maxPerStageDescriptorStorageBuffers < VK_MAX_OPERANDS
                            ? has->maxPerStageDescriptorStorageBuffers
                            : VK_MAX_OPERANDS,
        .subgroup_size = facts->subgroup_size,
        .subgroup_operations = subgroup_operations,
        .max_range = has->maxStorageBufferRange,
    };
    memcpy(out->max_groups, has->maxComputeWorkGroupCount, sizeof(out->max_groups));
    memcpy(out->max_group_size, has->maxComputeWorkGroupSize, sizeof(out->max_group_size));
}

bool vk_facts_read(const struct vk_instance *instance, VkPhysicalDevice physical,
                   struct vk_facts *out)
{
    *out = (struct vk_facts){0};
    instance->vk.GetPhysicalDeviceProperties(physical, &out->properties);
    uint32_t version = out->properties.apiVersion;
    if (version < VK_API_VERSION_1_2) {
        snprintf(out->reason, sizeof(out->reason), "has Vulkan %u.%u, 1.2 is needed",
                 VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
        return false;
    }
    uint32_t subgroup_operations;
    struct extensions extensions = vk_facts_list_extensions(instance, physical);
    read_properties(instance, physical, &extensions, out, &subgroup_operations);
    read_sharing(instance, physical, &extensions, out);
    read_timeline_sharing(instance, physical, &extensions, out);
    read_host_import(instance, physical, &extensions, out);
    read_matrices(instance, physical, &extensions, out);
    vk_optional_read(&instance->vk, physical, vk_facts_has_extension, &extensions,
                     &out->optional);
    read_group_matrices(instance, physical, out);
    out->fast_dots = has_fast_dots(instance, physical, out);
    const char *reason = vk_facts_read_features(instance, physical, out);
    set_limits(out, subgroup_operations);
    if (!reason && !find_queue(instance, physical, out))
        reason = "has no queue that computes";
    if (!reason && out->properties.limits.minStorageBufferOffsetAlignment > VK_ALIGNMENT)
        reason = "aligns storage buffers to more than 256 bytes";
    free(extensions.all);
    snprintf(out->reason, sizeof(out->reason), "%s", reason ? reason : "");
    return !reason;
}
