// SPDX-License-Identifier: MIT
// org.tenon.optim: steps of optimisers, norms of gradients, schedules.
//
// Steps give new parameters and new state from the gradient and the old state. Most are one
// expression with several outputs, so a step is one pass over memory, in place where the
// caller donates its arrays.
#include "pack.h"

#define POINTER(name) &optim_##name,
static const tn_primitive *const primitives[] = {OPTIM_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *optim_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.optim", "0.1.0", "Tenon", .query = optim_query);
