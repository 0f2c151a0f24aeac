// SPDX-License-Identifier: MIT
// org.tenon.random: random numbers from keys.
//
// bits, random and standard_normal are expressions over Threefry's words, for which
// backends may have kernels; the others are made of them.
#include "pack.h"

#define POINTER(name) &random_##name,
static const tn_primitive *const primitives[] = {RANDOM_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *random_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.random", "0.1.0", "Tenon", .query = random_query);
