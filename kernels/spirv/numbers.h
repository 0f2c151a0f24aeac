// SPDX-License-Identifier: MIT
// Enumerants of the SPIR-V specification that compute shaders need, but for instructions.
#ifndef KERNELS_SPIRV_NUMBERS_H
#define KERNELS_SPIRV_NUMBERS_H

#include <stdint.h>

enum {
    SPIRV_MAGIC = 0x07230203,
    SPIRV_MAX_BOUND = 0x3fffff, // greatest bound of ids, by the universal limits
};

// clang-format off

// X(name, number, extension, first minor version of SPIR-V that needs no extension)
#define SPIRV_CAPABILITIES(X)                                                             \
    X(Matrix, 0, CORE, 0)                                                                 \
    X(Shader, 1, CORE, 0)                                                                 \
    X(Kernel, 6, CORE, 0)                                                                 \
    X(Float16, 9, CORE, 0)                                                                \
    X(Float64, 10, CORE, 0)                                                               \
    X(Int64, 11, CORE, 0)                                                                 \
    X(Int64Atomics, 12, CORE, 0)                                                          \
    X(Int16, 22, CORE, 0)                                                                 \
    X(Int8, 39, CORE, 0)                                                                  \
    X(GroupNonUniform, 61, CORE, 0)                                                       \
    X(GroupNonUniformVote, 62, CORE, 0)                                                   \
    X(GroupNonUniformArithmetic, 63, CORE, 0)                                             \
    X(GroupNonUniformBallot, 64, CORE, 0)                                                 \
    X(GroupNonUniformShuffle, 65, CORE, 0)                                                \
    X(GroupNonUniformShuffleRelative, 66, CORE, 0)                                        \
    X(GroupNonUniformClustered, 67, CORE, 0)                                              \
    X(GroupNonUniformQuad, 68, CORE, 0)                                                   \
    X(Float8EXT, 4212, EXT_float8, NEVER)                                                 \
    X(Float8CooperativeMatrixEXT, 4213, EXT_float8, NEVER)                                \
    X(SubgroupBallotKHR, 4423, KHR_shader_ballot, NEVER)                                  \
    X(WorkgroupMemoryExplicitLayoutKHR, 4428,                                             \
      KHR_workgroup_memory_explicit_layout, NEVER)                                        \
    X(WorkgroupMemoryExplicitLayout8BitAccessKHR, 4429,                                   \
      KHR_workgroup_memory_explicit_layout, NEVER)                                        \
    X(WorkgroupMemoryExplicitLayout16BitAccessKHR, 4430,                                  \
      KHR_workgroup_memory_explicit_layout, NEVER)                                        \
    X(SubgroupVoteKHR, 4431, KHR_subgroup_vote, NEVER)                                    \
    X(StorageBuffer16BitAccess, 4433, KHR_16bit_storage, 3)                               \
    X(UniformAndStorageBuffer16BitAccess, 4434, KHR_16bit_storage, 3)                     \
    X(StoragePushConstant16, 4435, KHR_16bit_storage, 3)                                  \
    X(StorageInputOutput16, 4436, KHR_16bit_storage, 3)                                   \
    X(DeviceGroup, 4437, KHR_device_group, 3)                                             \
    X(VariablePointersStorageBuffer, 4441, KHR_variable_pointers, 3)                      \
    X(VariablePointers, 4442, KHR_variable_pointers, 3)                                   \
    X(StorageBuffer8BitAccess, 4448, KHR_8bit_storage, 5)                                 \
    X(UniformAndStorageBuffer8BitAccess, 4449, KHR_8bit_storage, 5)                       \
    X(StoragePushConstant8, 4450, KHR_8bit_storage, 5)                                    \
    X(DenormPreserve, 4464, KHR_float_controls, 4)                                        \
    X(DenormFlushToZero, 4465, KHR_float_controls, 4)                                     \
    X(SignedZeroInfNanPreserve, 4466, KHR_float_controls, 4)                              \
    X(RoundingModeRTE, 4467, KHR_float_controls, 4)                                       \
    X(RoundingModeRTZ, 4468, KHR_float_controls, 4)                                       \
    X(ShaderClockKHR, 5055, KHR_shader_clock, NEVER)                                      \
    X(BFloat16TypeKHR, 5116, KHR_bfloat16, NEVER)                                         \
    X(BFloat16DotProductKHR, 5117, KHR_bfloat16, NEVER)                                   \
    X(BFloat16CooperativeMatrixKHR, 5118, KHR_bfloat16, NEVER)                            \
    X(GroupNonUniformPartitionedNV, 5297, NV_shader_subgroup_partitioned, NEVER)          \
    X(ShaderNonUniform, 5301, EXT_descriptor_indexing, 5)                                 \
    X(RuntimeDescriptorArray, 5302, EXT_descriptor_indexing, 5)                           \
    X(VulkanMemoryModel, 5345, KHR_vulkan_memory_model, 5)                                \
    X(VulkanMemoryModelDeviceScope, 5346, KHR_vulkan_memory_model, 5)                     \
    X(PhysicalStorageBufferAddresses, 5347, KHR_physical_storage_buffer, 5)               \
    X(CooperativeMatrixNV, 5357, NV_cooperative_matrix, NEVER)                            \
    X(CooperativeMatrixReductionsNV, 5430, NV_cooperative_matrix2, NEVER)                 \
    X(CooperativeMatrixConversionsNV, 5431, NV_cooperative_matrix2, NEVER)                \
    X(CooperativeMatrixPerElementOperationsNV, 5432, NV_cooperative_matrix2, NEVER)       \
    X(CooperativeMatrixTensorAddressingNV, 5433, NV_cooperative_matrix2, NEVER)           \
    X(CooperativeMatrixBlockLoadsNV, 5434, NV_cooperative_matrix2, NEVER)                 \
    X(TensorAddressingNV, 5439, NV_tensor_addressing, NEVER)                              \
    X(AtomicFloat32MinMaxEXT, 5612, EXT_shader_atomic_float_min_max, NEVER)               \
    X(AtomicFloat64MinMaxEXT, 5613, EXT_shader_atomic_float_min_max, NEVER)               \
    X(AtomicFloat16MinMaxEXT, 5616, EXT_shader_atomic_float_min_max, NEVER)               \
    X(ExpectAssumeKHR, 5629, KHR_expect_assume, NEVER)                                    \
    X(DotProductInputAll, 6016, KHR_integer_dot_product, 6)                               \
    X(DotProductInput4x8Bit, 6017, KHR_integer_dot_product, 6)                            \
    X(DotProductInput4x8BitPacked, 6018, KHR_integer_dot_product, 6)                      \
    X(DotProduct, 6019, KHR_integer_dot_product, 6)                                       \
    X(CooperativeMatrixKHR, 6022, KHR_cooperative_matrix, NEVER)                          \
    X(ReplicatedCompositesEXT, 6024, EXT_replicated_composites, NEVER)                    \
    X(GroupNonUniformRotateKHR, 6026, KHR_subgroup_rotate, NEVER)                         \
    X(FloatControls2, 6029, KHR_float_controls2, NEVER)                                   \
    X(AtomicFloat32AddEXT, 6033, EXT_shader_atomic_float_add, NEVER)                      \
    X(AtomicFloat64AddEXT, 6034, EXT_shader_atomic_float_add, NEVER)                      \
    X(AtomicFloat16AddEXT, 6095, EXT_shader_atomic_float16_add, NEVER)

// X(name without "SPV_")
#define SPIRV_EXTENSIONS(X)                                                               \
    X(EXT_float8)                                                                         \
    X(KHR_shader_ballot)                                                                  \
    X(KHR_workgroup_memory_explicit_layout)                                               \
    X(KHR_subgroup_vote)                                                                  \
    X(KHR_16bit_storage)                                                                  \
    X(KHR_device_group)                                                                   \
    X(KHR_variable_pointers)                                                              \
    X(KHR_8bit_storage)                                                                   \
    X(KHR_float_controls)                                                                 \
    X(KHR_shader_clock)                                                                   \
    X(KHR_bfloat16)                                                                       \
    X(NV_shader_subgroup_partitioned)                                                     \
    X(EXT_descriptor_indexing)                                                            \
    X(KHR_vulkan_memory_model)                                                            \
    X(KHR_physical_storage_buffer)                                                        \
    X(NV_cooperative_matrix)                                                              \
    X(NV_cooperative_matrix2)                                                             \
    X(NV_tensor_addressing)                                                               \
    X(EXT_shader_atomic_float_min_max)                                                    \
    X(KHR_expect_assume)                                                                  \
    X(KHR_integer_dot_product)                                                            \
    X(KHR_cooperative_matrix)                                                             \
    X(EXT_replicated_composites)                                                          \
    X(KHR_subgroup_rotate)                                                                \
    X(KHR_float_controls2)                                                                \
    X(EXT_shader_atomic_float_add)                                                        \
    X(EXT_shader_atomic_float16_add)

// clang-format on

#define SPIRV_CAPABILITY_ENUM(name, number, extension, minor) Capability##name = number,
enum spirv_capability { SPIRV_CAPABILITIES(SPIRV_CAPABILITY_ENUM) };
#undef SPIRV_CAPABILITY_ENUM

// The name of a capability, such as "Float16"; NULL: unknown.
const char *spirv_capability_name(uint32_t capability);
// The extension, "SPV_...", that a module of a version (at least 0x00010300) needs for a
// capability; NULL: none.
const char *spirv_capability_extension(uint32_t capability, uint32_t version);

enum spirv_storage {
    StorageClassUniformConstant = 0,
    StorageClassInput = 1,
    StorageClassUniform = 2,
    StorageClassOutput = 3,
    StorageClassWorkgroup = 4,
    StorageClassPrivate = 6,
    StorageClassFunction = 7,
    StorageClassPushConstant = 9,
    StorageClassStorageBuffer = 12,
    StorageClassPhysicalStorageBuffer = 5349,
};

enum spirv_decoration {
    DecorationRelaxedPrecision = 0,
    DecorationSpecId = 1,
    DecorationBlock = 2,
    DecorationBufferBlock = 3,
    DecorationRowMajor = 4,
    DecorationColMajor = 5,
    DecorationArrayStride = 6,
    DecorationMatrixStride = 7,
    DecorationBuiltIn = 11,
    DecorationRestrict = 19,
    DecorationAliased = 20,
    DecorationVolatile = 21,
    DecorationCoherent = 23,
    DecorationNonWritable = 24,
    DecorationNonReadable = 25,
    DecorationBinding = 33,
    DecorationDescriptorSet = 34,
    DecorationOffset = 35,
    DecorationFPRoundingMode = 39,
    DecorationFPFastMathMode = 40,
    DecorationNoContraction = 42,
    DecorationAlignment = 44,
    DecorationNoSignedWrap = 4469,
    DecorationNoUnsignedWrap = 4470,
    DecorationNonUniform = 5300,
    DecorationRestrictPointer = 5355,
    DecorationAliasedPointer = 5356,
};

enum spirv_built_in {
    BuiltInNumWorkgroups = 24,
    BuiltInWorkgroupSize = 25,
    BuiltInWorkgroupId = 26,
    BuiltInLocalInvocationId = 27,
    BuiltInGlobalInvocationId = 28,
    BuiltInLocalInvocationIndex = 29,
    BuiltInSubgroupSize = 36,
    BuiltInNumSubgroups = 38,
    BuiltInSubgroupId = 40,
    BuiltInSubgroupLocalInvocationId = 41,
    BuiltInSubgroupEqMask = 4416,
    BuiltInSubgroupGeMask = 4417,
    BuiltInSubgroupGtMask = 4418,
    BuiltInSubgroupLeMask = 4419,
    BuiltInSubgroupLtMask = 4420,
    BuiltInDeviceIndex = 4438,
    BuiltInWarpsPerSMNV = 5374,
    BuiltInSMCountNV = 5375,
    BuiltInWarpIDNV = 5376,
    BuiltInSMIDNV = 5377,
};

enum spirv_mode {
    ExecutionModeLocalSize = 17,
    ExecutionModeLocalSizeId = 38,
    ExecutionModeSubgroupUniformControlFlowKHR = 4421,
    ExecutionModeDenormPreserve = 4459,
    ExecutionModeDenormFlushToZero = 4460,
    ExecutionModeSignedZeroInfNanPreserve = 4461,
    ExecutionModeRoundingModeRTE = 4462,
    ExecutionModeRoundingModeRTZ = 4463,
    ExecutionModeMaximallyReconvergesKHR = 6023,
};

enum spirv_model {
    ExecutionModelGLCompute = 5,
};

enum spirv_addressing {
    AddressingModelLogical = 0,
    AddressingModelPhysicalStorageBuffer64 = 5348,
};

enum spirv_memory_model {
    MemoryModelGLSL450 = 1,
    MemoryModelVulkan = 3,
};

enum spirv_scope {
    ScopeCrossDevice = 0,
    ScopeDevice = 1,
    ScopeWorkgroup = 2,
    ScopeSubgroup = 3,
    ScopeInvocation = 4,
    ScopeQueueFamily = 5,
};

enum spirv_semantics_bits {
    MemorySemanticsRelaxed = 0x0,
    MemorySemanticsAcquire = 0x2,
    MemorySemanticsRelease = 0x4,
    MemorySemanticsAcquireRelease = 0x8,
    MemorySemanticsSequentiallyConsistent = 0x10,
    MemorySemanticsUniformMemory = 0x40,
    MemorySemanticsSubgroupMemory = 0x80,
    MemorySemanticsWorkgroupMemory = 0x100,
    MemorySemanticsCrossWorkgroupMemory = 0x200,
    MemorySemanticsAtomicCounterMemory = 0x400,
    MemorySemanticsImageMemory = 0x800,
    MemorySemanticsOutputMemory = 0x1000,
    MemorySemanticsMakeAvailable = 0x2000,
    MemorySemanticsMakeVisible = 0x4000,
    MemorySemanticsVolatile = 0x8000,
};

enum spirv_memory_access_bits {
    MemoryAccessNone = 0x0,
    MemoryAccessVolatile = 0x1,
    MemoryAccessAligned = 0x2,
    MemoryAccessNontemporal = 0x4,
    MemoryAccessMakePointerAvailable = 0x8,
    MemoryAccessMakePointerVisible = 0x10,
    MemoryAccessNonPrivatePointer = 0x20,
};

enum spirv_function_control_bits {
    FunctionControlNone = 0x0,
    FunctionControlInline = 0x1,
    FunctionControlDontInline = 0x2,
    FunctionControlPure = 0x4,
    FunctionControlConst = 0x8,
};

enum spirv_selection_control_bits {
    SelectionControlNone = 0x0,
    SelectionControlFlatten = 0x1,
    SelectionControlDontFlatten = 0x2,
};

enum spirv_loop_control_bits {
    LoopControlNone = 0x0,
    LoopControlUnroll = 0x1,
    LoopControlDontUnroll = 0x2,
    LoopControlDependencyInfinite = 0x4,
    LoopControlDependencyLength = 0x8,
    LoopControlMinIterations = 0x10,
    LoopControlMaxIterations = 0x20,
    LoopControlIterationMultiple = 0x40,
    LoopControlPeelCount = 0x80,
    LoopControlPartialCount = 0x100,
};

enum spirv_group_operation {
    GroupOperationReduce = 0,
    GroupOperationInclusiveScan = 1,
    GroupOperationExclusiveScan = 2,
    GroupOperationClusteredReduce = 3,
    GroupOperationPartitionedReduceNV = 6,
    GroupOperationPartitionedInclusiveScanNV = 7,
    GroupOperationPartitionedExclusiveScanNV = 8,
};

enum spirv_matrix_layout {
    CooperativeMatrixLayoutRowMajorKHR = 0,
    CooperativeMatrixLayoutColumnMajorKHR = 1,
};

enum spirv_matrix_use {
    CooperativeMatrixUseMatrixAKHR = 0,
    CooperativeMatrixUseMatrixBKHR = 1,
    CooperativeMatrixUseMatrixAccumulatorKHR = 2,
};

enum spirv_matrix_operands_bits {
    CooperativeMatrixOperandsNoneKHR = 0x0,
    CooperativeMatrixOperandsMatrixASignedComponentsKHR = 0x1,
    CooperativeMatrixOperandsMatrixBSignedComponentsKHR = 0x2,
    CooperativeMatrixOperandsMatrixCSignedComponentsKHR = 0x4,
    CooperativeMatrixOperandsMatrixResultSignedComponentsKHR = 0x8,
    CooperativeMatrixOperandsSaturatingAccumulationKHR = 0x10,
};

enum spirv_matrix_reduce_bits {
    CooperativeMatrixReduceRow = 0x1,
    CooperativeMatrixReduceColumn = 0x2,
    CooperativeMatrixReduce2x2 = 0x4,
};

enum spirv_tensor_operands_bits {
    TensorAddressingOperandsNone = 0x0,
    TensorAddressingOperandsTensorView = 0x1,
    TensorAddressingOperandsDecodeFunc = 0x2,
};

enum spirv_clamp_mode {
    TensorClampModeUndefined = 0,
    TensorClampModeConstant = 1,
    TensorClampModeClampToEdge = 2,
    TensorClampModeRepeat = 3,
    TensorClampModeRepeatMirrored = 4,
};

enum spirv_float_encoding {
    FPEncodingBFloat16KHR = 0,
    FPEncodingFloat8E4M3EXT = 4214,
    FPEncodingFloat8E5M2EXT = 4215,
};

enum spirv_dot_format {
    PackedVectorFormat4x8Bit = 0,
};

// Instructions of GLSL.std.450.
enum spirv_glsl {
    GlslRound = 1,
    GlslRoundEven = 2,
    GlslTrunc = 3,
    GlslFAbs = 4,
    GlslSAbs = 5,
    GlslFSign = 6,
    GlslSSign = 7,
    GlslFloor = 8,
    GlslCeil = 9,
    GlslFract = 10,
    GlslRadians = 11,
    GlslDegrees = 12,
    GlslSin = 13,
    GlslCos = 14,
    GlslTan = 15,
    GlslAsin = 16,
    GlslAcos = 17,
    GlslAtan = 18,
    GlslSinh = 19,
    GlslCosh = 20,
    GlslTanh = 21,
    GlslAsinh = 22,
    GlslAcosh = 23,
    GlslAtanh = 24,
    GlslAtan2 = 25,
    GlslPow = 26,
    GlslExp = 27,
    GlslLog = 28,
    GlslExp2 = 29,
    GlslLog2 = 30,
    GlslSqrt = 31,
    GlslInverseSqrt = 32,
    GlslDeterminant = 33,
    GlslMatrixInverse = 34,
    GlslModf = 35,
    GlslModfStruct = 36,
    GlslFMin = 37,
    GlslUMin = 38,
    GlslSMin = 39,
    GlslFMax = 40,
    GlslUMax = 41,
    GlslSMax = 42,
    GlslFClamp = 43,
    GlslUClamp = 44,
    GlslSClamp = 45,
    GlslFMix = 46,
    GlslIMix = 47,
    GlslStep = 48,
    GlslSmoothStep = 49,
    GlslFma = 50,
    GlslFrexp = 51,
    GlslFrexpStruct = 52,
    GlslLdexp = 53,
    GlslPackSnorm4x8 = 54,
    GlslPackUnorm4x8 = 55,
    GlslPackSnorm2x16 = 56,
    GlslPackUnorm2x16 = 57,
    GlslPackHalf2x16 = 58,
    GlslPackDouble2x32 = 59,
    GlslUnpackSnorm2x16 = 60,
    GlslUnpackUnorm2x16 = 61,
    GlslUnpackHalf2x16 = 62,
    GlslUnpackSnorm4x8 = 63,
    GlslUnpackUnorm4x8 = 64,
    GlslUnpackDouble2x32 = 65,
    GlslLength = 66,
    GlslDistance = 67,
    GlslCross = 68,
    GlslNormalize = 69,
    GlslFaceForward = 70,
    GlslReflect = 71,
    GlslRefract = 72,
    GlslFindILsb = 73,
    GlslFindSMsb = 74,
    GlslFindUMsb = 75,
    GlslNMin = 79,
    GlslNMax = 80,
    GlslNClamp = 81,
};

#endif // KERNELS_SPIRV_NUMBERS_H
