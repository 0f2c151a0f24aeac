// SPDX-License-Identifier: MIT
// org.tenon.nn: layers, losses and optimisers of neural networks. Images are channels last.
//
// Each primitive has an expression, or a reference and a decomposition into primitives of
// base, so it runs on every device. Fast kernels come from the backends.
#include "pack.h"

#define POINTER(name, ...) &nn_##name,
static const tn_primitive *const primitives[] = {NN_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *nn_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.nn", "0.1.0", "Tenon", .query = nn_query);
