// SPDX-License-Identifier: MIT
// org.tenon.quant: products with weights of a few bits an element, in the block formats of
// <tenon/ops/quant.h>, and conversions to and from such weights.
#include "pack.h"

#define POINTER(name) &quant_##name,
static const tn_primitive *const primitives[] = {QUANT_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_kernel *const kernels[] = {&quant_quantize_kernel,
                                           &quant_cache_update_kernel};

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .kernels = kernels,
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *quant_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.quant", "0.1.0", "Tenon", .query = quant_query);
