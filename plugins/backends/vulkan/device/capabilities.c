// SPDX-License-Identifier: MIT
#include "capabilities.h"

#include "device.h"
#include "spirv/numbers.h"

// --- features of extensions --------------------------------------------------------------

// The members of struct vk_optional.
#define OPTIONAL(X)                                                                        \
    X(atomics, "VK_EXT_shader_atomic_float",                                               \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT)                  \
    X(more_atomics, "VK_EXT_shader_atomic_float2",                                         \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT)                \
    X(dots, "VK_KHR_shader_integer_dot_product",                                           \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES)               \
    X(group_matrices, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,                           \
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV)

void *vk_optional_chain(struct vk_optional *optional, void *next, const char **extensions,
                        uint32_t *num_extensions)
{
#define CHAIN(member, name, type)                                                          \
    if (optional->member.sType) {                                                          \
        optional->member.pNext = next;                                                     \
        next = &optional->member;                                                          \
        extensions[(*num_extensions)++] = (name);                                          \
    }
    OPTIONAL(CHAIN)
#undef CHAIN
    return next;
}

void vk_optional_read(const struct vk_instance_api *vk, VkPhysicalDevice physical,
                      bool (*has)(const void *context, const char *name),
                      const void *context, struct vk_optional *out)
{
    const char *extensions[VK_MAX_OPTIONAL];
    uint32_t num_extensions = 0;
    *out = (struct vk_optional){0};
#define FIND(member, name, type)                                                           \
    if (has(context, name))                                                                \
        out->member.sType = (type);
    OPTIONAL(FIND)
#undef FIND
    VkPhysicalDeviceFeatures2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = vk_optional_chain(out, NULL, extensions, &num_extensions)};
    if (all.pNext)
        vk->GetPhysicalDeviceFeatures2(physical, &all);
}

// --- capabilities ------------------------------------------------------------------------

// A capability of atomics is the device's where buffers and shared memory have them.
#define ATOMICS(from, bits, operation)                                                     \
    (facts->optional.from.shaderBufferFloat##bits##Atomic##operation &&                    \
     facts->optional.from.shaderSharedFloat##bits##Atomic##operation)
#define SUBGROUP(operation)                                                                \
    ((facts->limits.subgroup_operations & TN_VULKAN_SUBGROUP_##operation) != 0)

// Capabilities that are not listed need features that no device is opened with.
bool vk_has_capability(const struct vk_facts *facts, uint32_t capability)
{
    const bool has_matrices = facts->f16_matrices || facts->bf16_matrices;
    const VkPhysicalDeviceCooperativeMatrix2FeaturesNV *group =
        &facts->optional.group_matrices;
    const bool has_dots = facts->optional.dots.shaderIntegerDotProduct;
    const struct {
        uint32_t number;
        bool has;
    } rows[] = {
        {CapabilityMatrix, true},
        {CapabilityShader, true},
        {CapabilityDeviceGroup, true},
        {CapabilityStorageBuffer16BitAccess, true}, // or vk_facts_read() refuses the device
        {CapabilityStorageBuffer8BitAccess, true},
        {CapabilityFloat16, facts->f16},
        {CapabilityFloat64, facts->f64},
        {CapabilityInt64, facts->i64},
        {CapabilityInt64Atomics, facts->i64_atomics},
        {CapabilityInt16, facts->i16},
        {CapabilityInt8, facts->i8},
        {CapabilityGroupNonUniform, SUBGROUP(BASIC)},
        {CapabilityGroupNonUniformVote, SUBGROUP(VOTE)},
        {CapabilityGroupNonUniformArithmetic, SUBGROUP(ARITHMETIC)},
        {CapabilityGroupNonUniformBallot, SUBGROUP(BALLOT)},
        {CapabilityGroupNonUniformShuffle, SUBGROUP(SHUFFLE)},
        {CapabilityGroupNonUniformShuffleRelative, SUBGROUP(SHUFFLE_RELATIVE)},
        {CapabilityGroupNonUniformClustered, SUBGROUP(CLUSTERED)},
        {CapabilityGroupNonUniformQuad, SUBGROUP(QUAD)},
        {CapabilityVulkanMemoryModel, facts->memory_model},
        {CapabilityVulkanMemoryModelDeviceScope, facts->memory_model},
        {CapabilityPhysicalStorageBufferAddresses, facts->addresses},
        {CapabilityCooperativeMatrixKHR, has_matrices},
        {CapabilityBFloat16TypeKHR, facts->bf16_matrices},
        {CapabilityBFloat16CooperativeMatrixKHR, facts->bf16_matrices},
        {CapabilityCooperativeMatrixReductionsNV, group->cooperativeMatrixReductions},
        {CapabilityCooperativeMatrixConversionsNV, group->cooperativeMatrixConversions},
        {CapabilityCooperativeMatrixPerElementOperationsNV,
         group->cooperativeMatrixPerElementOperations},
        {CapabilityCooperativeMatrixTensorAddressingNV,
         group->cooperativeMatrixTensorAddressing},
        {CapabilityTensorAddressingNV, group->cooperativeMatrixTensorAddressing},
        {CapabilityCooperativeMatrixBlockLoadsNV, group->cooperativeMatrixBlockLoads},
        {CapabilityAtomicFloat32AddEXT, ATOMICS(atomics, 32, Add)},
        {CapabilityAtomicFloat64AddEXT, ATOMICS(atomics, 64, Add)},
        {CapabilityAtomicFloat16AddEXT, ATOMICS(more_atomics, 16, Add)},
        {CapabilityAtomicFloat16MinMaxEXT, ATOMICS(more_atomics, 16, MinMax)},
        {CapabilityAtomicFloat32MinMaxEXT, ATOMICS(more_atomics, 32, MinMax)},
        {CapabilityAtomicFloat64MinMaxEXT, ATOMICS(more_atomics, 64, MinMax)},
        {CapabilityDotProduct, has_dots},
        {CapabilityDotProductInputAll, has_dots},
        {CapabilityDotProductInput4x8Bit, has_dots},
        {CapabilityDotProductInput4x8BitPacked, has_dots},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].number == capability)
            return rows[i].has;
    return false;
}

#undef ATOMICS
#undef SUBGROUP

#define NUMBER(name, number, extension, minor) number,
static const uint16_t known[] = {SPIRV_CAPABILITIES(NUMBER)};
#undef NUMBER
_Static_assert(sizeof(known) / sizeof(known[0]) <= VK_MAX_CAPABILITIES, "they fit");

uint32_t vk_capabilities(const struct vk_facts *facts, uint32_t out[VK_MAX_CAPABILITIES])
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (vk_has_capability(facts, known[i]))
            out[count++] = known[i];
    return count;
}

const char *vk_capability_name(uint32_t capability)
{
    return spirv_capability_name(capability);
}
