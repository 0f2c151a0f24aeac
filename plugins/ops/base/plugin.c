// SPDX-License-Identifier: MIT
// org.tenon.base: NumPy's operators, from which all other packs build their rules.
//
// Elementwise primitives are one-line expressions; views change layouts only; the others
// have a reference in plain C, a decomposition, or both. Fast kernels come from the
// backends.
#include "pack.h"

#define POINTER(name, ...) &base_##name,
static const tn_primitive *const primitives[] = {BASE_UNARY(POINTER) BASE_BINARY(POINTER)
                                                     BASE_PRIMITIVES(POINTER)};
#undef POINTER

#define KERNEL(op)                                                                         \
    static const tn_cpu_kernel op##_launch = {                                             \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = op##_reference,                                                          \
    };                                                                                     \
    static const tn_kernel op##_kernel = {                                                 \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "base." #op "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "move",                                                                    \
        .priority = 50,                                                                    \
        .payload = &op##_launch,                                                           \
    };
BASE_CPU_KERNELS(KERNEL)
#undef KERNEL
#define POINTER(op) &op##_kernel,
static const tn_kernel *const kernels[] = {BASE_CPU_KERNELS(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .kernels = kernels,
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *base_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.base", "0.1.0", "Tenon", .query = base_query);
