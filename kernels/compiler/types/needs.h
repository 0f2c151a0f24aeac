// SPDX-License-Identifier: MIT
// What a shader needs of the device, as a table; and what its #extension lines allow.
#ifndef KERNELS_COMPILER_NEEDS_H
#define KERNELS_COMPILER_NEEDS_H

#include "../ir/ir.h"
#include "../preprocess/extension.h"

struct translator;
struct preprocessed;

// clang-format off

// X(name, name of the capability)
#define NEEDS(X)                                                                          \
    X(FLOAT16, Float16)                                                                   \
    X(FLOAT64, Float64)                                                                   \
    X(INT64, Int64)                                                                       \
    X(INT64_ATOMICS, Int64Atomics)                                                        \
    X(INT16, Int16)                                                                       \
    X(INT8, Int8)                                                                         \
    X(GROUP, GroupNonUniform)                                                             \
    X(GROUP_VOTE, GroupNonUniformVote)                                                    \
    X(GROUP_ARITHMETIC, GroupNonUniformArithmetic)                                        \
    X(GROUP_BALLOT, GroupNonUniformBallot)                                                \
    X(GROUP_SHUFFLE, GroupNonUniformShuffle)                                              \
    X(GROUP_SHUFFLE_RELATIVE, GroupNonUniformShuffleRelative)                             \
    X(GROUP_CLUSTERED, GroupNonUniformClustered)                                          \
    X(GROUP_QUAD, GroupNonUniformQuad)                                                    \
    X(BUFFER_16, StorageBuffer16BitAccess)                                                \
    X(UNIFORM_16, UniformAndStorageBuffer16BitAccess)                                     \
    X(PUSH_16, StoragePushConstant16)                                                     \
    X(BUFFER_8, StorageBuffer8BitAccess)                                                  \
    X(UNIFORM_8, UniformAndStorageBuffer8BitAccess)                                       \
    X(PUSH_8, StoragePushConstant8)                                                       \
    X(BFLOAT16, BFloat16TypeKHR)                                                          \
    X(BFLOAT16_DOT, BFloat16DotProductKHR)                                                \
    X(BFLOAT16_MATRIX, BFloat16CooperativeMatrixKHR)                                      \
    X(VULKAN_MODEL, VulkanMemoryModel)                                                    \
    X(VULKAN_DEVICE_SCOPE, VulkanMemoryModelDeviceScope)                                  \
    X(PHYSICAL, PhysicalStorageBufferAddresses)                                           \
    X(MATRIX_REDUCTIONS, CooperativeMatrixReductionsNV)                                   \
    X(MATRIX_CONVERSIONS, CooperativeMatrixConversionsNV)                                 \
    X(MATRIX_PER_ELEMENT, CooperativeMatrixPerElementOperationsNV)                        \
    X(MATRIX_TENSORS, CooperativeMatrixTensorAddressingNV)                                \
    X(MATRIX_BLOCK_LOADS, CooperativeMatrixBlockLoadsNV)                                  \
    X(TENSOR_ADDRESSING, TensorAddressingNV)                                              \
    X(ATOMIC_MINMAX_32, AtomicFloat32MinMaxEXT)                                           \
    X(ATOMIC_MINMAX_64, AtomicFloat64MinMaxEXT)                                           \
    X(ATOMIC_MINMAX_16, AtomicFloat16MinMaxEXT)                                           \
    X(DOT_ALL, DotProductInputAll)                                                        \
    X(DOT_4X8, DotProductInput4x8Bit)                                                     \
    X(DOT_PACKED, DotProductInput4x8BitPacked)                                            \
    X(DOT, DotProduct)                                                                    \
    X(MATRIX, CooperativeMatrixKHR)                                                       \
    X(ATOMIC_ADD_32, AtomicFloat32AddEXT)                                                 \
    X(ATOMIC_ADD_64, AtomicFloat64AddEXT)                                                 \
    X(ATOMIC_ADD_16, AtomicFloat16AddEXT)

#define NEED_INDEX(name, capability) NEED_INDEX_##name,
enum need_index { NEEDS(NEED_INDEX) NUM_NEEDS };
#undef NEED_INDEX
#define NEED(name) ((uint64_t)1 << NEED_INDEX_##name)

// clang-format on

_Static_assert(NUM_NEEDS <= 64, "they are a set of bits");

// Declares the capabilities and extensions of SPIR-V.
void needs_declare(struct translator *t, uint64_t needs);

// Reads the #extension lines.
void extensions_read(struct translator *t, const struct preprocessed *source);
// GLSL's name of the first extension of a set.
const char *extension_text(uint64_t extensions);
// Fails where none of the set is on: "WHAT needs #extension ...".
void extension_check(struct translator *t, uint64_t any_of, const struct position *at,
                     const char *what);

#endif // KERNELS_COMPILER_NEEDS_H
