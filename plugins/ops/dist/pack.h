// SPDX-License-Identifier: MIT
// Shared by this pack's files: its primitives, its groups, and running a collective.
#ifndef DIST_PACK_H
#define DIST_PACK_H

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/collective.h>
#include <tenon/collective_device.h>
#include <tenon/dist.h>
#include <tenon/ops/dist_attrs.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>
#include <tenon/run_memory.h>

// The primitives, dist_<name>: X(name).
#define DIST_PRIMITIVES(X)                                                                 \
    X(all_reduce)                                                                          \
    X(all_reduce_start)                                                                    \
    X(all_reduce_finish)                                                                   \
    X(reduce_scatter)                                                                      \
    X(all_gather)                                                                          \
    X(all_to_all)                                                                          \
    X(broadcast)                                                                           \
    X(send)                                                                                \
    X(receive)                                                                             \
    X(barrier)                                                                             \
    X(rank)
#define DIST_DECLARE(name) extern const tn_primitive dist_##name;
DIST_PRIMITIVES(DIST_DECLARE)
#undef DIST_DECLARE

// Initialisers of all records but dist.rank/1: collectives run in the order in which they
// were built, on every member.
#define DIST_EFFECT DIST_EFFECT_OF(0)
#define DIST_EFFECT_OF(more)                                                               \
    .struct_size = sizeof(tn_primitive), .flags = TN_PRIM_EFFECT | (more),                 \
    .effects = TN_EFFECTS_COMMUNICATION

// The names of TN_COLLECTIVE_SUM, ...
extern const char *const dist_reductions[];

#define REDUCTION_FIELD(type)                                                              \
    TN_CHOICE_FIELD(type, reduction, TN_COLLECTIVE_SUM, dist_reductions,                   \
                    "how elements are reduced")
#define GROUP_FIELD(type)                                                                  \
    TN_STRING_FIELD(type, group, "name of a group; world if not given")
#define SIZE_FIELD(type) TN_REQUIRED_FIELD(type, size, TN_ATTR_I64, "members of the group")
#define TAG_FIELD(type)                                                                    \
    TN_I64_FIELD(type, tag, 0, "0 .. 32767: tells messages between two members apart")
#define DTYPES_ALL (TN_ALL_DTYPES)

// The input list of primitives that take one array.
extern const tn_input_info dist_x[1];

// Type of the output is that of the input.
tn_status dist_infer_same(const tn_infer *infer, tn_type *types);

// --- groups.c ---------------------------------------------------------------------------

extern const tn_dist dist_groups;

tn_status groups_init(const tn_host *host);
void groups_deinit(const tn_host *host);

// A group in use: no other thread of this process uses it until groups_give().
struct group_use {
    const tn_collective *table;
    const tn_host *host; // of the table's plugin
    tn_group *group;
    const tn_group_facts *facts;
    struct runtime_groups *runtime;
    struct named_group *entry;
    const struct device_use *devices;
};

tn_status groups_take(const tn_host *host, const char *name, struct group_use *out);
void groups_give(struct group_use *use);

// --- devices.c --------------------------------------------------------------------------

// A plugin that moves memory of devices between a group's members, all of which have it.
struct device_use {
    const tn_device_collective *table; // NULL: no such plugin
    const tn_host *host;               // of the table's plugin
    tn_device_group *group;
};

// Opens the device part of a group if all members have a plugin for it. All members call
// this. Where a member requires a plugin that is missing, it fails on all of them.
tn_status device_use_open(const tn_host *host, const tn_collective *table,
                          const tn_host *table_host, tn_group *group,
                          struct device_use *out);
void device_use_close(struct device_use *use);

// --- run.c ------------------------------------------------------------------------------

// Runs a collective on the input and output of `run`. `call` has all that its kind needs
// but dtype, count and memory. `size`: the number of members that the graph expects; 0:
// any.
tn_status dist_run(const tn_run *run, const char *group, int64_t size,
                   tn_collective_call *call);

uint64_t dist_elements(const tn_type *type);

// Allocates `bytes` bytes by malloc(), which the caller frees by free().
tn_status dist_take_memory(const tn_host *host, uint64_t bytes, void **out);

// Fails because the host lacks <tenon/run_memory.h>, or, where it `knows` that, for want of
// memory.
tn_status dist_no_memory(const tn_host *host, bool knows);

// --- rules ------------------------------------------------------------------------------

// Fails where dtype does not have the reduction in the attributes (reduce.c).
tn_status dist_check_reduction(const tn_infer *infer, tn_dtype dtype);

// all_reduce of `x` over the group of `like`, by `reduction` ("sum"); NULL for NULL.
tn_array *dist_reduced(const tn_build *build, tn_array *x, const char *reduction,
                       const char *group);

// The attribute `group` for another application: NULL becomes "", as named attributes take
// no NULL.
static inline const char *group_name(const char *group)
{
    return group ? group : "";
}

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

#endif // DIST_PACK_H
