// SPDX-License-Identifier: MIT
// org.tenon.base: the operators that NumPy has, and that all other packs are built from.
//
// Elementwise ones are one-line expressions; views change layouts only; the rest have a
// reference in plain C, a decomposition, or both. Fast kernels come from the backends.
#include "pack.h"

#define POINTER(name, ...) &base_##name,
static const tn_primitive *const primitives[] = {BASE_UNARY(POINTER) BASE_BINARY(POINTER)
                                                     BASE_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.base", "0.1.0", "Tenon", .query = query);
