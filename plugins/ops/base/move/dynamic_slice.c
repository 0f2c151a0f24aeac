// SPDX-License-Identifier: MIT
// dynamic_slice and dynamic_slice_update: parts of an array whose first index is an array,
// so that one plan serves all positions.
//
// On axis i the part begins at start[i], counted from the end when negative, and then
// clamped to 0 ... extent - size: the part always fits.
#include "../pack.h"

#include <tenon/ops/copies.h>

static const tn_attr_field dynamic_slice_fields[] = {
    TN_INTS_FIELD(tn_dynamic_slice_attrs, sizes,
                  "extents of the part, for the first axes; others are taken whole"),
};
#define START_DOC                                                                          \
    "integers, the first index on each of the first axes, or one number; clamped"
static const tn_input_info slice_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"start", START_DOC, TN_INPUT_CONSTANT, 0},
};
static const tn_input_info update_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"update", "what replaces the part: x's dtype and rank", 0, TN_ALL_DTYPES},
    {"start", START_DOC, TN_INPUT_CONSTANT, 0},
};
static const tn_in_place update_in_place[] = {{.update = 1 + 1}};

// --- types ------------------------------------------------------------------------------

static tn_status check_start(const tn_host *host, const tn_type *start, int32_t rank)
{
    char text[SHAPE_TEXT];
    tn_status status = check_integers(host, "start", start->dtype);
    if (status)
        return status;
    if (start->rank > 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "start has shape %s, expected a number or a list",
                          shape_text(start->rank, start->extent, text));
    int64_t count = start->rank ? start->extent[0] : 1;
    if (count > rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "start has %" PRId64 " values, expected at most %d, x's rank",
                          count, rank);
    return TN_OK;
}

static tn_status dynamic_slice_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_ints *sizes = &((const tn_dynamic_slice_attrs *)infer->attrs)->sizes;
    const tn_type *x = &infer->types[0];
    tn_type out = *x;
    tn_status status = check_start(host, &infer->types[1], x->rank);
    if (status)
        return status;
    if (!sizes->given)
        return host->fail(host, TN_ERR_ARGUMENT, "sizes is not given");
    if ((int32_t)sizes->count > x->rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "sizes has %u values, expected at most %d, x's rank",
                          sizes->count, x->rank);
    for (uint32_t i = 0; i < sizes->count; i++) {
        if (sizes->value[i] < 0 || sizes->value[i] > x->extent[i])
            return host->fail(host, TN_ERR_ARGUMENT,
                              "sizes[%u] is %" PRId64 ", expected 0 to %" PRId64
                              ", x's extent",
                              i, sizes->value[i], x->extent[i]);
        out.extent[i] = sizes->value[i];
    }
    types[0] = out;
    return TN_OK;
}

static tn_status dynamic_slice_update_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *update = &infer->types[1];
    char got[SHAPE_TEXT], most[SHAPE_TEXT];
    tn_status status = check_start(host, &infer->types[2], x->rank);
    if (status)
        return status;
    if (update->dtype != x->dtype)
        return host->fail(host, TN_ERR_ARGUMENT, "update is %s, expected x's dtype %s",
                          dtype_text(update->dtype), dtype_text(x->dtype));
    int fits = update->rank == x->rank;
    for (int32_t i = 0; i < x->rank && fits; i++)
        fits = update->extent[i] <= x->extent[i];
    if (!fits)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "update has shape %s, expected at most x's, %s",
                          shape_text(update->rank, update->extent, got),
                          shape_text(x->rank, x->extent, most));
    types[0] = *x;
    return TN_OK;
}

// --- references -------------------------------------------------------------------------

// Entry `i` of `start` on an axis of extent n: the first index of a part of `size`.
static int64_t first_index(const tn_tensor *start, int32_t i, int64_t n, int64_t size)
{
    int64_t stride = start->layout.rank ? start->layout.stride[0] : 0;
    int64_t at = tn_get_i64(start, start->layout.offset + i * stride);
    if (start->layout.dtype == TN_U64 && at < 0)
        return n - size; // start is beyond 63 bits
    if (at < 0)
        at = at < -n ? 0 : at + n;
    return at < n - size ? at : n - size;
}

// The part of `whole` that begins at `start`, with the extents of `part`.
static tn_tensor dynamic_slice_part_of(const tn_tensor *whole, const tn_tensor *start,
                                       const tn_layout *part)
{
    tn_tensor found = *whole;
    int64_t count = tn_layout_count(&start->layout);
    for (int32_t i = 0; i < part->rank; i++) {
        int64_t n = whole->layout.extent[i];
        if (i < count)
            found.layout.offset +=
                first_index(start, i, n, part->extent[i]) * whole->layout.stride[i];
        found.layout.extent[i] = part->extent[i];
    }
    return found;
}

tn_status dynamic_slice_reference(const tn_cpu_call *call)
{
    const tn_tensor *out = &call->outputs[0];
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    tn_tensor from =
        dynamic_slice_part_of(&call->inputs[0], &call->inputs[1], &out->layout);
    tn_copy_view(call, out, &from);
    return TN_OK;
}

tn_status dynamic_slice_update_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *update = &call->inputs[1];
    const tn_tensor *out = &call->outputs[0];
    if (x->data != out->data || x->layout.offset != out->layout.offset)
        tn_copy_view(call, out, x); // in place, `out` has x's elements already
    if (tn_layout_count(&update->layout) == 0)
        return TN_OK;
    tn_tensor to = dynamic_slice_part_of(out, &call->inputs[2], &update->layout);
    tn_copy_view(call, &to, update);
    return TN_OK;
}

// --- decomposition and batching ---------------------------------------------------------
//
// Both gather along one axis at a time. With a batch, arrays have the batch as axis 0 in
// front of those of a slice, `start` included; without, `size` is 0.

struct dynamic_slice_parts {
    const tn_build *build;
    tn_array *start; // i64, [size,] entries; counted from the front
    int64_t size;    // of the batch; 0: none
    int64_t entries;
};

// `start` as i64 of rank 1, or 2 with the batch in front.
static struct dynamic_slice_parts parts_begin(const tn_build *build, tn_array *start,
                                              int64_t size)
{
    struct dynamic_slice_parts p = {build, start, size, 1};
    const tn_type *type = build->type(start);
    int32_t batch_rank = size > 0;
    if (!type)
        return p;
    if (type->rank > batch_rank)
        p.entries = type->extent[batch_rank];
    tn_ints shape = {.count = 1 + (uint32_t)batch_rank, .given = 1};
    shape.value[0] = size;
    shape.value[batch_rank] = p.entries;
    p.start = with_shape(build, "base.reshape/1", start, shape);
    return p;
}

// The first index on an axis of extent n of a part of `count`: i64, [1] or [size, 1].
static tn_array *dynamic_slice_first_of(const struct dynamic_slice_parts *p, int32_t axis,
                                        int64_t n, int64_t count)
{
    const tn_build *build = p->build;
    const tn_type *type = build->type(p->start);
    const tn_ints from = {.count = p->size > 0 ? 2 : 1,
                          .given = 1,
                          .value = {p->size > 0 ? TN_SLICE_END : axis, axis}};
    tn_ints to = from;
    to.value[to.count - 1] = axis + 1;
    tn_array *entry = build->op(build, "base.slice/1", TN_IN(p->start),
                                tn_attrs("start", &from, "stop", &to));
    int64_t last = n - count;
    if (type && type->dtype == TN_U64)
        return build->expr(build, "s -> i64(min(s, u64(last)))", TN_IN(entry),
                           tn_attrs("last", last));
    return build->expr(build,
                       "s -> j = max(i64(s), -i64(n)); "
                       "min(select(j < 0, j + i64(n), j), i64(last))",
                       TN_IN(entry), tn_attrs("n", n, "last", last));
}

// Replaces `axis` of a slice of x by its elements at `at`: i64 indices in range, of shape
// [count] or [size, count].
static tn_array *dynamic_slice_gathered(const struct dynamic_slice_parts *p, tn_array *x,
                                        tn_array *at, int32_t axis)
{
    const tn_build *build = p->build;
    tn_ints shape = tn_extents(build, x);
    if (p->size == 0)
        return build->op(build, "base.take/1", TN_IN(x, at),
                         tn_attrs("axis", (int64_t)axis));
    // Slice b of the joined slices begins at b * n along the axis.
    int64_t n = shape.value[axis + 1];
    tn_array *slice = with_shape(build, "base.reshape/1", counted(build, p->size, 0),
                                 ints_of(2, (int64_t[]){p->size, 1}));
    at = build->expr(build, "i, b -> b * i64(n) + i", TN_IN(at, slice), tn_attrs("n", n));
    tn_array *taken =
        build->op(build, "base.take/1", TN_IN(joined_batch(build, x, 0, axis), at),
                  tn_attrs("axis", (int64_t)axis));
    return tn_move_axis(build, taken, axis, 0);
}

static tn_array *sliced_parts(const struct dynamic_slice_parts *p, tn_array *x,
                              const tn_type *out)
{
    const tn_build *build = p->build;
    int32_t batch_rank = p->size > 0;
    for (int32_t i = 0; i < out->rank; i++) {
        tn_ints now = tn_extents(build, x);
        int64_t n = now.value[i + batch_rank], count = out->extent[i];
        if (count == n) // the whole axis begins at 0
            continue;
        tn_array *at = i < p->entries
                           ? build->expr(build, "s, k -> s + k",
                                         TN_IN(dynamic_slice_first_of(p, i, n, count),
                                               counted(build, count, 0)),
                                         TN_NO_ATTRS)
                           : NULL;
        if (at) {
            x = dynamic_slice_gathered(p, x, at, i);
            continue;
        }
        tn_ints stop = {.count = (uint32_t)(i + batch_rank + 1), .given = 1};
        for (uint32_t k = 0; k < stop.count; k++)
            stop.value[k] = TN_SLICE_END;
        stop.value[i + batch_rank] = count;
        x = build->op(build, "base.slice/1", TN_IN(x), tn_attrs("stop", &stop));
    }
    return build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS);
}

// A condition on the indices of one axis, of shape [n] or [size, n], with the axes of x.
static tn_array *dynamic_slice_along_axis(const struct dynamic_slice_parts *p,
                                          tn_array *condition, int32_t axis, int32_t rank,
                                          int64_t n)
{
    tn_ints column = {.given = 1};
    if (p->size > 0)
        column.value[column.count++] = p->size;
    for (int32_t i = 0; i < rank; i++)
        column.value[column.count++] = i == axis ? n : 1;
    return with_shape(p->build, "base.reshape/1", condition, column);
}

// Spreads `update` over each axis that it does not fill, and keeps x's elements outside.
static tn_array *updated_parts(const struct dynamic_slice_parts *p, tn_array *x,
                               tn_array *update, const tn_type *slice, const tn_type *part)
{
    const tn_build *build = p->build;
    tn_array *inside = NULL;
    tn_array *zero = build->scalar(build, TN_I64, 0);
    for (int32_t i = 0; i < slice->rank; i++) {
        int64_t n = slice->extent[i], count = part->extent[i];
        if (count == n)
            continue;
        tn_array *first = i < p->entries ? dynamic_slice_first_of(p, i, n, count) : zero;
        tn_array *from = build->expr(build, "i, s -> i - s",
                                     TN_IN(counted(build, n, 0), first), TN_NO_ATTRS);
        if (p->size > 0 && i >= p->entries)
            from = with_shape(build, "base.broadcast_to/1", from,
                              ints_of(2, (int64_t[]){p->size, n}));
        tn_array *hit = build->expr(build, "i -> i >= 0 & i < i64(count)", TN_IN(from),
                                    tn_attrs("count", count));
        hit = dynamic_slice_along_axis(p, hit, i, slice->rank, n);
        inside = inside
                     ? build->expr(build, "a, b -> a & b", TN_IN(inside, hit), TN_NO_ATTRS)
                     : hit;
        from = build->expr(build, "i -> min(max(i, 0), i64(last))", TN_IN(from),
                           tn_attrs("last", count - 1));
        update = dynamic_slice_gathered(p, update, from, i);
    }
    return inside ? build->expr(build, "i, u, x -> select(i, u, x)",
                                TN_IN(inside, update, x), TN_NO_ATTRS)
                  : build->expr(build, "u -> u", TN_IN(update), TN_NO_ATTRS);
}

static int dynamic_slice_is_empty(const tn_type *type)
{
    int empty = 0;
    for (int32_t i = 0; i < type->rank; i++)
        empty |= type->extent[i] == 0;
    return empty;
}

// The type of a dynamic_slice of `x`.
static tn_type sliced_type(const tn_type *x, const tn_dynamic_slice_attrs *attrs)
{
    tn_type out = *x;
    for (uint32_t i = 0; i < attrs->sizes.count; i++)
        out.extent[i] = attrs->sizes.value[i];
    return out;
}

static tn_status dynamic_slice_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs)
{
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_type out = sliced_type(x, rule->attrs);
    struct dynamic_slice_parts p = parts_begin(build, rule->inputs[1], 0);
    if (dynamic_slice_is_empty(&out))
        outputs[0] =
            with_shape(build, "base.broadcast_to/1", build->scalar(build, x->dtype, 0),
                       ints_of(out.rank, out.extent));
    else
        outputs[0] = sliced_parts(&p, rule->inputs[0], &out);
    return built(outputs[0]);
}

static tn_status dynamic_slice_update_decompose(const tn_build *build, const tn_rule *rule,
                                                tn_array **outputs)
{
    const tn_type *x = build->type(rule->inputs[0]), *update = build->type(rule->inputs[1]);
    if (!x || !update)
        return TN_ERR_ARGUMENT;
    struct dynamic_slice_parts p = parts_begin(build, rule->inputs[2], 0);
    outputs[0] = dynamic_slice_is_empty(update)
                     ? build->expr(build, "x -> x", TN_IN(rule->inputs[0]), TN_NO_ATTRS)
                     : updated_parts(&p, rule->inputs[0], rule->inputs[1], x, update);
    return built(outputs[0]);
}

// `start` of one slice, with a 0 in front for the batch axis.
static tn_array *start_in_batch(const tn_build *build, tn_array *start)
{
    const tn_type *type = build->type(start);
    if (!type)
        return NULL;
    int64_t entries = type->rank ? type->extent[0] : 1;
    tn_array *zero =
        with_shape(build, "base.broadcast_to/1", build->scalar(build, type->dtype, 0),
                   ints_of(1, (int64_t[]){1}));
    tn_array *list = with_shape(build, "base.reshape/1", start, ints_of(1, &entries));
    return build->op(build, "base.concatenate/1", TN_IN(zero, list), TN_NO_ATTRS);
}

// One start for all slices: the same primitive, over the whole batch axis. A start for each
// slice: gathers.
tn_status dynamic_slice_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    const tn_dynamic_slice_attrs *attrs = rule->attrs;
    const tn_type *out = build->type(rule->outputs[0]);
    tn_array *x = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_ints slice = tn_extents(build, rule->outputs[0]);
    tn_ints sizes = tn_ints_after(size, &attrs->sizes), whole = tn_ints_after(size, &slice);
    out_axes[0] = 0;
    if (axes[1] < 0) {
        outputs[0] = build->op(build, "base.dynamic_slice/1",
                               TN_IN(x, start_in_batch(build, rule->inputs[1])),
                               tn_attrs("sizes", &sizes));
    } else if (size == 0 || dynamic_slice_is_empty(out)) {
        outputs[0] = with_shape(build, "base.broadcast_to/1",
                                build->scalar(build, out->dtype, 0), whole);
    } else {
        struct dynamic_slice_parts p =
            parts_begin(build, tn_move_axis(build, rule->inputs[1], axes[1], 0), size);
        outputs[0] = sliced_parts(&p, x, out);
    }
    return built(outputs[0]);
}

tn_status dynamic_slice_update_vmap(const tn_build *build, const tn_rule *rule,
                                    const int32_t *axes, int64_t size, tn_array **outputs,
                                    int32_t *out_axes)
{
    tn_array *x = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_array *update = tn_batch_whole(build, rule->inputs[1], axes[1], size);
    const tn_type *given = build->type(update);
    if (!given)
        return TN_ERR_ARGUMENT;
    tn_type part = {.dtype = given->dtype, .rank = given->rank - 1};
    memcpy(part.extent, given->extent + 1, sizeof(int64_t) * (size_t)part.rank);
    out_axes[0] = 0;
    if (axes[2] < 0) {
        outputs[0] = build->op(build, "base.dynamic_slice_update/1",
                               TN_IN(x, update, start_in_batch(build, rule->inputs[2])),
                               TN_NO_ATTRS);
    } else if (size == 0 || dynamic_slice_is_empty(&part)) {
        outputs[0] = x;
    } else {
        struct dynamic_slice_parts p =
            parts_begin(build, tn_move_axis(build, rule->inputs[2], axes[2], 0), size);
        outputs[0] = updated_parts(&p, x, update, build->type(rule->outputs[0]), &part);
    }
    return built(outputs[0]);
}

// --- derivatives ------------------------------------------------------------------------

static tn_array *update_of(const tn_build *build, const tn_array *x, const tn_array *update,
                           const tn_array *start)
{
    return build->op(build, "base.dynamic_slice_update/1", TN_IN(x, update, start),
                     TN_NO_ATTRS);
}

static tn_status dynamic_slice_vjp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients)
{
    const tn_type *type = build->type(cotangents[0]);
    if (!wants(wanted, 0))
        return TN_OK;
    tn_array *zeros = zeros_like(build, rule->inputs[0], type ? type->dtype : TN_F32);
    gradients[0] = update_of(build, zeros, cotangents[0], rule->inputs[1]);
    return built(gradients[0]);
}

static tn_status dynamic_slice_jvp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_dynamic_slice_attrs *attrs = rule->attrs;
    if (!tangents[0])
        return TN_OK;
    out_tangents[0] =
        build->op(build, "base.dynamic_slice/1", TN_IN(tangents[0], rule->inputs[1]),
                  tn_attrs("sizes", &attrs->sizes));
    return built(out_tangents[0]);
}

static tn_status dynamic_slice_update_vjp(const tn_build *build, const tn_rule *rule,
                                          tn_array *const *cotangents,
                                          const uint64_t *wanted, tn_array **gradients)
{
    const tn_type *type = build->type(cotangents[0]);
    tn_ints sizes = tn_extents(build, rule->inputs[1]);
    if (wants(wanted, 0))
        gradients[0] =
            update_of(build, cotangents[0],
                      zeros_like(build, rule->inputs[1], type ? type->dtype : TN_F32),
                      rule->inputs[2]);
    if (wants(wanted, 1))
        gradients[1] =
            build->op(build, "base.dynamic_slice/1", TN_IN(cotangents[0], rule->inputs[2]),
                      tn_attrs("sizes", &sizes));
    return built_wanted(wanted, gradients, 2);
}

static tn_status dynamic_slice_update_jvp(const tn_build *build, const tn_rule *rule,
                                          tn_array *const *tangents,
                                          tn_array **out_tangents)
{
    if (!tangents[0] && !tangents[1])
        return TN_OK;
    const tn_type *type = build->type(tangents[0] ? tangents[0] : tangents[1]);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    const tn_array *x =
        tangents[0] ? tangents[0] : zeros_like(build, rule->inputs[0], dtype);
    const tn_array *update =
        tangents[1] ? tangents[1] : zeros_like(build, rule->inputs[1], dtype);
    out_tangents[0] = update_of(build, x, update, rule->inputs[2]);
    return built(out_tangents[0]);
}

// --- records ----------------------------------------------------------------------------

const tn_primitive base_dynamic_slice = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.dynamic_slice/1",
    .doc = "A part of x of the given sizes that begins at the indices `start`, clamped so "
           "that "
           "it fits.",
    TN_INPUTS(slice_inputs),
    .attrs = TN_ATTR_TABLE(tn_dynamic_slice_attrs, dynamic_slice_fields),
    .infer = dynamic_slice_infer,
    .reference = dynamic_slice_reference,
    .decompose = dynamic_slice_decompose,
    .vjp = dynamic_slice_vjp,
    .jvp = dynamic_slice_jvp,
    .vmap = dynamic_slice_vmap,
};

const tn_primitive base_dynamic_slice_update = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.dynamic_slice_update/1",
    .doc = "x with a part replaced that begins at the indices `start`, clamped so that the "
           "update fits.",
    TN_INPUTS(update_inputs),
    .in_place = update_in_place,
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .infer = dynamic_slice_update_infer,
    .reference = dynamic_slice_update_reference,
    .decompose = dynamic_slice_update_decompose,
    .vjp = dynamic_slice_update_vjp,
    .jvp = dynamic_slice_update_jvp,
    .vmap = dynamic_slice_update_vmap,
};
