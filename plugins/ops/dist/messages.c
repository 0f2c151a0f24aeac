// SPDX-License-Identifier: MIT
// send, receive, barrier and rank.
//
// A message has no derivative. Its transpose is a message back, which both members would
// have to make: the receiver has no input whose gradient would make it, and the sender
// would wait for ever where only it differentiates. A broadcast moves the same elements by
// a call that all members make, and has a derivative.
#include "pack.h"

static const tn_attr_field send_fields[] = {
    TN_REQUIRED_FIELD(tn_dist_peer_attrs, root, TN_ATTR_I64, "the rank that gets x"),
    TAG_FIELD(tn_dist_peer_attrs),
    GROUP_FIELD(tn_dist_peer_attrs),
};
static const tn_attr_field receive_fields[] = {
    TN_REQUIRED_FIELD(tn_dist_receive_attrs, shape, TN_ATTR_INTS,
                      "extents of what is sent"),
    TN_REQUIRED_FIELD(tn_dist_receive_attrs, dtype, TN_ATTR_DTYPE, "its dtype"),
    TN_REQUIRED_FIELD(tn_dist_receive_attrs, source, TN_ATTR_I64, "the rank that sends"),
    TAG_FIELD(tn_dist_receive_attrs),
    GROUP_FIELD(tn_dist_receive_attrs),
};
static const tn_attr_field group_fields[] = {
    GROUP_FIELD(tn_dist_group_attrs),
};

// --- send and receive -------------------------------------------------------------------

static tn_status check_peer(const tn_host *host, const char *name, int64_t rank,
                            int64_t tag)
{
    if (rank < 0 || rank > INT32_MAX)
        return host->fail(host, TN_ERR_ARGUMENT, "%s is %" PRId64 ", expected a rank", name,
                          rank);
    return tag >= 0 && tag <= 32767
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT,
                            "tag is %" PRId64 ", expected 0 .. 32767", tag);
}

static tn_status send_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_peer_attrs *attrs = infer->attrs;
    tn_status status = check_peer(infer->host, "root", attrs->root, attrs->tag);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_status send_run(const tn_run *run)
{
    const tn_dist_peer_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, 0,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_SEND,
                                          .peer = (int32_t)attrs->root,
                                          .tag = (int32_t)attrs->tag});
}

// A batch is one message with the batch axis first, which the other member has to expect.
TN_VMAP(send_vmap)
{
    const tn_dist_peer_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    outputs[0] = build->op(build, "dist.send", TN_IN(x),
                           tn_attrs("root", attrs->root, "tag", attrs->tag, "group",
                                    group_name(attrs->group)));
    out_axes[0] = 0;
    return built(outputs[0]);
}

static tn_status receive_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_receive_attrs *attrs = infer->attrs;
    tn_type type = {.dtype = (tn_dtype)attrs->dtype, .rank = (int32_t)attrs->shape.count};
    for (int32_t i = 0; i < type.rank; i++) {
        type.extent[i] = attrs->shape.value[i];
        if (type.extent[i] < 0)
            return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                     "axis %d of shape is %" PRId64 ", expected 0 or more",
                                     i, type.extent[i]);
    }
    tn_status status = check_peer(infer->host, "source", attrs->source, attrs->tag);
    if (status == TN_OK)
        types[0] = type;
    return status;
}

static tn_status receive_run(const tn_run *run)
{
    const tn_dist_receive_attrs *attrs = run->attrs;
    uint64_t count = 1;
    for (uint32_t i = 0; i < attrs->shape.count; i++)
        count *= (uint64_t)attrs->shape.value[i];
    return dist_run(run, attrs->group, 0,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_RECEIVE,
                                          .dtype = (tn_dtype)attrs->dtype,
                                          .count = count,
                                          .peer = (int32_t)attrs->source,
                                          .tag = (int32_t)attrs->tag});
}

// --- barrier and rank -------------------------------------------------------------------

static tn_status barrier_run(const tn_run *run)
{
    const tn_dist_group_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, 0,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_BARRIER});
}

static tn_array *barrier_again(const tn_build *build, tn_array *x, const tn_rule *rule)
{
    const tn_dist_group_attrs *attrs = rule->attrs;
    return build->op(build, "dist.barrier", TN_IN(x),
                     tn_attrs("group", group_name(attrs->group)));
}

// Values pass unchanged; derivatives do not repeat the barrier.
TN_VJP(barrier_vjp)
{
    (void)build;
    gradients[0] = cotangents[0];
    return TN_OK;
}

TN_JVP(barrier_jvp)
{
    (void)build;
    out_tangents[0] = tangents[0];
    return TN_OK;
}

TN_VMAP(barrier_vmap)
{
    outputs[0] = barrier_again(build, rule->inputs[0], rule);
    out_axes[0] = axes[0];
    return built(outputs[0]);
}

static tn_status rank_infer(const tn_infer *infer, tn_type *types)
{
    (void)infer;
    types[0] = (tn_type){.dtype = TN_I32};
    return TN_OK;
}

static tn_status rank_of_run(const tn_run *run)
{
    const tn_dist_group_attrs *attrs = run->attrs;
    const tn_run_memory *memory = tn_run_memory_of(run);
    struct group_use use;
    if (!memory)
        return dist_no_memory(run->host, false);
    tn_status status = groups_take(run->host, attrs->group, &use);
    if (status != TN_OK)
        return status;
    int32_t rank = use.facts->rank;
    groups_give(&use);
    return memory->write(run, 0, &rank, sizeof(rank));
}

const tn_primitive dist_send = {
    DIST_EFFECT,
    .id = "dist.send/1",
    .doc = "x, which another member gets by receive.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_peer_attrs, send_fields),
    .infer = send_infer,
    .run = send_run,
    .vmap = send_vmap,
};

const tn_primitive dist_receive = {
    DIST_EFFECT,
    .id = "dist.receive/1",
    .doc = "What another member gives to send, of this type.",
    .attrs = TN_ATTR_TABLE(tn_dist_receive_attrs, receive_fields),
    .infer = receive_infer,
    .run = receive_run,
};

const tn_primitive dist_barrier = {
    DIST_EFFECT,
    .id = "dist.barrier/1",
    .doc = "x, when all members have come here.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_group_attrs, group_fields),
    .infer = dist_infer_same,
    .run = barrier_run,
    .vjp = barrier_vjp,
    .jvp = barrier_jvp,
    .vmap = barrier_vmap,
};

const tn_primitive dist_rank = {
    .struct_size = sizeof(tn_primitive),
    .id = "dist.rank/1",
    .doc = "The rank of this member in a group, from 0.",
    .attrs = TN_ATTR_TABLE(tn_dist_group_attrs, group_fields),
    .infer = rank_infer,
    .run = rank_of_run,
};
