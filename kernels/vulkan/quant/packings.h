// SPDX-License-Identifier: MIT
// The packings that the shaders read, pack, and look up rows of: those whose blocks are
// arranged as they were, with scales in front or behind. Of other formats plain rows are
// read.
#ifndef KERNELS_VULKAN_QUANT_PACKINGS_H
#define KERNELS_VULKAN_QUANT_PACKINGS_H

#include <tenon/packing.h>

// X(the plain format).
#define QUANT_PACKED(X) X(q4_0) X(q4_1) X(q8_0) X(q4_k) X(q5_k) X(q6_k)
enum {
#define PACKING(format) QUANT_PACKING_##format,
    QUANT_PACKED(PACKING) QUANT_PACKINGS
#undef PACKING
};

// For tn_backend.packings (plan_quant.c).
extern const tn_packing quant_packings[QUANT_PACKINGS];

#endif // KERNELS_VULKAN_QUANT_PACKINGS_H
