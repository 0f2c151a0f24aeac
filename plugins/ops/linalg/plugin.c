// SPDX-License-Identifier: MIT
// org.tenon.linalg: linear algebra, functions of numpy.linalg, scipy.linalg and
// mlx.core.linalg.
//
// Factorisations are primitives, whose kernels call LAPACK for one matrix after the other,
// in threads (memory/lapack.h, memory/batch.h); the other operators are composites of
// these.
#include "pack.h"

#define POINTER(name, ...) &linalg_##name,
static const tn_primitive *const primitives[] = {LINALG_FACTORISATIONS(POINTER)
                                                     LINALG_COMPOSITES(POINTER)};
#undef POINTER
#define POINTER(name, ...) &linalg_##name##_kernel,
static const tn_kernel *const kernels[] = {LINALG_FACTORISATIONS(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .kernels = kernels,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
};

static const void *linalg_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.linalg", "0.1.0", "Tenon", .query = linalg_query);
