// SPDX-License-Identifier: MIT
// all_gather, all_to_all and broadcast. Derivatives as in reduce.c.
#include <tenon/checked.h>
#include "pack.h"

const tn_input_info dist_x[1] = {{"x", "this member's array", 0, DTYPES_ALL}};

static const tn_attr_field sized_fields[] = {
    GROUP_FIELD(tn_dist_group_attrs),
    SIZE_FIELD(tn_dist_group_attrs),
};
static const tn_attr_field broadcast_fields[] = {
    TN_I64_FIELD(tn_dist_peer_attrs, root, 0, "the rank whose array all get"),
    GROUP_FIELD(tn_dist_peer_attrs),
};

tn_status dist_infer_same(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status dist_check_size(const tn_infer *infer)
{
    const tn_dist_group_attrs *attrs = infer->attrs;
    return attrs->size >= 1
               ? TN_OK
               : infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                   "size is %" PRId64 ", expected at least 1", attrs->size);
}

// --- all_gather -------------------------------------------------------------------------

static tn_status all_gather_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_group_attrs *attrs = infer->attrs;
    tn_type type = infer->types[0];
    tn_status status = dist_check_size(infer);
    if (type.rank == 0)
        type.rank = 1, type.extent[0] = 1;
    if (status == TN_OK &&
        !tn_checked_multiply_extents(type.extent[0], attrs->size, &type.extent[0]))
        status =
            infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                              "size is %" PRId64 ": the result is too large", attrs->size);
    if (status == TN_OK)
        types[0] = type;
    return status;
}

static tn_status all_gather_run(const tn_run *run)
{
    const tn_dist_group_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, attrs->size,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_ALL_GATHER});
}

static tn_array *dist_gather_sized(const tn_build *build, const char *primitive,
                                   tn_array *x, const tn_dist_group_attrs *attrs)
{
    return build->op(build, primitive, TN_IN(x),
                     tn_attrs("group", group_name(attrs->group), "size", attrs->size));
}

TN_VJP(all_gather_vjp)
{
    tn_array *g =
        dist_gather_sized(build, "dist.reduce_scatter", cotangents[0], rule->attrs);
    const tn_ints shape = tn_extents(build, rule->inputs[0]);
    gradients[0] = build->op(build, "base.reshape", TN_IN(g), tn_attrs("shape", &shape));
    return built(gradients[0]);
}

TN_JVP(all_gather_jvp)
{
    out_tangents[0] = dist_gather_sized(build, "dist.all_gather", tangents[0], rule->attrs);
    return built(out_tangents[0]);
}

// The batch axis goes behind axis 0, which a scalar gets with extent 1.
TN_VMAP(all_gather_vmap)
{
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    if (type && type->rank == 1)
        x = build->op(build, "base.expand_dims", TN_IN(x), tn_attrs("axis", TN_INTS(0)));
    else
        x = tn_move_axis(build, x, axes[0], 1);
    outputs[0] = dist_gather_sized(build, "dist.all_gather", x, rule->attrs);
    out_axes[0] = 1;
    return built(outputs[0]);
}

// --- all_to_all -------------------------------------------------------------------------

static tn_status all_to_all_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_group_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    tn_status status = dist_check_size(infer);
    if (status == TN_OK && (x->rank < 1 || x->extent[0] % attrs->size))
        status = infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                   "axis 0 has %" PRId64
                                   " elements, expected a multiple of size, %" PRId64,
                                   x->rank < 1 ? 1 : x->extent[0], attrs->size);
    if (status == TN_OK)
        types[0] = *x;
    return status;
}

static tn_status all_to_all_run(const tn_run *run)
{
    const tn_dist_group_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, attrs->size,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_ALL_TO_ALL});
}

TN_VJP(all_to_all_vjp)
{
    gradients[0] = dist_gather_sized(build, "dist.all_to_all", cotangents[0], rule->attrs);
    return built(gradients[0]);
}

TN_JVP(all_to_all_jvp)
{
    out_tangents[0] = dist_gather_sized(build, "dist.all_to_all", tangents[0], rule->attrs);
    return built(out_tangents[0]);
}

TN_VMAP(all_to_all_vmap)
{
    outputs[0] =
        dist_gather_sized(build, "dist.all_to_all",
                          tn_move_axis(build, rule->inputs[0], axes[0], 1), rule->attrs);
    out_axes[0] = 1;
    return built(outputs[0]);
}

// --- broadcast --------------------------------------------------------------------------

static tn_status broadcast_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_peer_attrs *attrs = infer->attrs;
    if (attrs->root < 0 || attrs->root > INT32_MAX)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "root is %" PRId64 ", expected a rank", attrs->root);
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status broadcast_run(const tn_run *run)
{
    const tn_dist_peer_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, 0,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_BROADCAST,
                                          .peer = (int32_t)attrs->root});
}

static tn_array *broadcast_again(const tn_build *build, tn_array *x,
                                 const tn_dist_peer_attrs *attrs)
{
    return build->op(build, "dist.broadcast", TN_IN(x),
                     tn_attrs("root", attrs->root, "group", group_name(attrs->group)));
}

// The root's array gets the sum of all members' gradients, the other arrays none.
TN_VJP(broadcast_vjp)
{
    const tn_dist_peer_attrs *attrs = rule->attrs;
    tn_array *g = dist_reduced(build, cotangents[0], "sum", attrs->group);
    tn_array *rank =
        build->op(build, "dist.rank", NULL, 0, tn_attrs("group", group_name(attrs->group)));
    gradients[0] = build->expr(build, "g, rank -> where(rank == root, g, 0)",
                               TN_IN(g, rank), tn_attrs("root", attrs->root));
    return built(gradients[0]);
}

TN_JVP(broadcast_jvp)
{
    out_tangents[0] = broadcast_again(build, tangents[0], rule->attrs);
    return built(out_tangents[0]);
}

TN_VMAP(broadcast_vmap)
{
    outputs[0] = broadcast_again(build, rule->inputs[0], rule->attrs);
    out_axes[0] = axes[0];
    return built(outputs[0]);
}

const tn_primitive dist_all_gather = {
    DIST_EFFECT,
    .id = "dist.all_gather/1",
    .doc = "The arrays of all members, joined along axis 0 in the order of their ranks; of "
           "scalars a list.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_group_attrs, sized_fields),
    .infer = all_gather_infer,
    .run = all_gather_run,
    .vjp = all_gather_vjp,
    .jvp = all_gather_jvp,
    .vmap = all_gather_vmap,
};

const tn_primitive dist_all_to_all = {
    DIST_EFFECT,
    .id = "dist.all_to_all/1",
    .doc = "Block i of axis 0 is what member i has in the block with this member's rank.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_group_attrs, sized_fields),
    .infer = all_to_all_infer,
    .run = all_to_all_run,
    .vjp = all_to_all_vjp,
    .jvp = all_to_all_jvp,
    .vmap = all_to_all_vmap,
};

const tn_primitive dist_broadcast = {
    DIST_EFFECT,
    .id = "dist.broadcast/1",
    .doc = "The array of one member, for all; the others give one of the same type.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_peer_attrs, broadcast_fields),
    .infer = broadcast_infer,
    .run = broadcast_run,
    .vjp = broadcast_vjp,
    .jvp = broadcast_jvp,
    .vmap = broadcast_vmap,
};
