// SPDX-License-Identifier: MIT
// org.tenon.dist: collectives as primitives, over the plugin that offers tn.collective/1,
// and groups by name.
#include "pack.h"

#define POINTER(name) &dist_##name,
static const tn_primitive *const primitives[] = {DIST_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const char *const interfaces[] = {TN_IFACE_DIST, NULL};

static const void *dist_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0    ? (const void *)&ops
           : strcmp(id, TN_IFACE_DIST) == 0 ? (const void *)&dist_groups
           : strcmp(id, TN_IFACE_LIST) == 0 ? (const void *)interfaces
                                            : NULL;
}

TN_PLUGIN("org.tenon.dist", "0.1.0", "Tenon", .init = groups_init, .deinit = groups_deinit,
          .query = dist_query);
