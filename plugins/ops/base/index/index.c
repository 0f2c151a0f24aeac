// SPDX-License-Identifier: MIT
// Primitives that address elements along one axis by an array of indices: take and
// scatter_add; scatter.c has the other scatters.
#include "index.h"

static const tn_input_info take_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"indices", "integers; negative ones count from the end", TN_INPUT_CONSTANT, 0},
};
static const tn_input_info add_inputs[] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"indices", "integers; negative ones count from the end", TN_INPUT_CONSTANT, 0},
    {"updates", "what is added: x's dtype, and the extents that take would give", 0,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
const tn_in_place scatter_in_place[1] = {{.input = 0, .output = 0}};
const tn_attr_field take_fields[1] = {
    TN_I64_FIELD(tn_take_attrs, axis, 0, "axis of x that the indices count along"),
};

// Type of take's output: x's extents with `axis` replaced by the extents of the indices.
static tn_status taken_type(const tn_host *host, const tn_take_attrs *attrs,
                            const tn_type *x, const tn_type *indices, tn_type *out)
{
    int32_t axis, rank = x->rank - 1 + indices->rank;
    tn_status status = check_integers(host, "indices", indices->dtype);
    if (status == TN_OK)
        status = check_axis(host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (rank > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "the result has rank %d, expected at most %d", rank, TN_MAX_RANK);
    tn_type made = {.dtype = x->dtype};
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis)
            made.extent[made.rank++] = x->extent[i];
        for (int32_t k = 0; i == axis && k < indices->rank; k++)
            made.extent[made.rank++] = indices->extent[k];
    }
    *out = made;
    return TN_OK;
}

static tn_status take_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    tn_type out;
    tn_status status = taken_type(infer->host, infer->attrs, x, &infer->types[1], &out);
    if (status)
        return status;
    int64_t wanted = 1;
    for (int32_t i = 0; i < out.rank; i++)
        wanted = wanted && out.extent[i];
    const tn_take_attrs *attrs = infer->attrs;
    if (wanted && x->extent[tn_axis(attrs->axis, x->rank)] == 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, which has nothing to take along the axis",
                                 shape_text(x->rank, x->extent, text));
    types[0] = out;
    return TN_OK;
}

tn_status scatter_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *updates = &infer->types[2];
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_type taken;
    tn_status status = taken_type(host, infer->attrs, x, &infer->types[1], &taken);
    if (status)
        return status;
    if (updates->dtype != x->dtype)
        return host->fail(host, TN_ERR_ARGUMENT, "updates is %s, expected x's dtype %s",
                          dtype_text(updates->dtype), dtype_text(x->dtype));
    if (updates->rank != taken.rank ||
        memcmp(updates->extent, taken.extent, sizeof(int64_t) * (size_t)taken.rank) != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "updates has shape %s, expected %s",
                          shape_text(updates->rank, updates->extent, got),
                          shape_text(taken.rank, taken.extent, expected));
    types[0] = *x;
    return TN_OK;
}

// --- references -------------------------------------------------------------------------

// The index at `offset`, counted from the front of an axis of extent n. It may be out of
// range; an index beyond 63 bits is INT64_MAX.
static int64_t base_index_at(const tn_tensor *indices, int64_t offset, int64_t n)
{
    int64_t i = tn_get_i64(indices, offset);
    if (indices->layout.dtype == TN_U64 && i < 0)
        return INT64_MAX;
    return i < 0 && indices->layout.dtype != TN_U64 ? i + n : i;
}

// The two regions, of equal extents, that one index connects: an element of the array along
// the axis (`one`), to whose offset the caller adds, and the part at that index of take's
// output or scatter_add's updates (`many`). The indices' axes stand in `many` from `axis`
// on.
struct index_regions {
    tn_tensor one, many;
};

static struct index_regions regions_at(const tn_tensor *array, const tn_tensor *many,
                                       int32_t axis, int32_t index_rank,
                                       const int64_t *index)
{
    struct index_regions regions = {*array, *many};
    tn_layout *m = &regions.many.layout;
    for (int32_t k = 0; k < index_rank; k++)
        m->offset += index[k] * m->stride[axis + k];
    m->rank = array->layout.rank;
    for (int32_t i = axis + 1; i < m->rank; i++) {
        m->extent[i] = array->layout.extent[i];
        m->stride[i] = many->layout.stride[i - 1 + index_rank];
    }
    m->extent[axis] = regions.one.layout.extent[axis] = 1;
    m->stride[axis] = 0;
    return regions;
}

static tn_status take_reference(const tn_cpu_call *call)
{
    const tn_take_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *indices = &call->inputs[1];
    const tn_layout *at = &indices->layout;
    int32_t axis = tn_axis(attrs->axis, x->layout.rank);
    int64_t n = x->layout.extent[axis], index[TN_MAX_RANK] = {0};
    if (tn_layout_count(&call->outputs[0].layout) == 0)
        return TN_OK;
    do {
        int64_t i = base_index_at(indices, tn_offset_at(at, index), n);
        i = i < 0 ? 0 : i >= n ? n - 1 : i;
        struct index_regions regions =
            regions_at(x, &call->outputs[0], axis, at->rank, index);
        regions.one.layout.offset += i * x->layout.stride[axis];
        tn_copy_region(&regions.many, &regions.one);
    } while (tn_index_next(at->rank, at->extent, index));
    return TN_OK;
}

tn_status scatter_reference(const tn_cpu_call *call,
                            void (*put)(const tn_tensor *to, int64_t a,
                                        const tn_tensor *from, int64_t b))
{
    const tn_take_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *indices = &call->inputs[1];
    const tn_tensor *updates = &call->inputs[2], *out = &call->outputs[0];
    const tn_layout *at = &indices->layout;
    int32_t axis = tn_axis(attrs->axis, x->layout.rank);
    int64_t n = x->layout.extent[axis], index[TN_MAX_RANK] = {0};
    if (x->data != out->data || x->layout.offset != out->layout.offset)
        tn_copy_region(out, x); // in place, `out` has x's elements already
    if (tn_layout_count(&updates->layout) == 0)
        return TN_OK;
    do {
        int64_t i = base_index_at(indices, tn_offset_at(at, index), n),
                within[TN_MAX_RANK] = {0};
        if (i < 0 || i >= n)
            continue;
        struct index_regions r = regions_at(out, updates, axis, at->rank, index);
        r.one.layout.offset += i * out->layout.stride[axis];
        do
            put(&r.one, tn_offset_at(&r.one.layout, within), &r.many,
                tn_offset_at(&r.many.layout, within));
        while (tn_index_next(r.many.layout.rank, r.many.layout.extent, within));
    } while (tn_index_next(at->rank, at->extent, index));
    return TN_OK;
}

static void add_element(const tn_tensor *to, int64_t a, const tn_tensor *from, int64_t b)
{
    if (tn_is_complex(to->layout.dtype)) {
        tn_complex128 x = tn_get_complex(to, a), y = tn_get_complex(from, b);
        tn_set_complex(to, a, (tn_complex128){x.re + y.re, x.im + y.im});
    } else if (tn_dtype_in(to->layout.dtype, TN_FLOAT_DTYPES)) {
        tn_set_f64(to, a, tn_get_f64(to, a) + tn_get_f64(from, b));
    } else {
        tn_set_i64(to, a,
                   (int64_t)((uint64_t)tn_get_i64(to, a) + (uint64_t)tn_get_i64(from, b)));
    }
}

static tn_status scatter_add_reference(const tn_cpu_call *call)
{
    return scatter_reference(call, add_element);
}

// --- derivatives ------------------------------------------------------------------------

int is_u64(const tn_build *build, const tn_array *indices)
{
    const tn_type *type = build->type(indices);
    return type && type->dtype == TN_U64;
}

// Clamps indices as take does, so that scatter_add does not drop those out of range.
static tn_array *base_index_clamped(const tn_build *build, const tn_array *indices,
                                    int64_t n)
{
    return build->expr(build,
                       is_u64(build, indices)
                           ? "i -> i64(min(i, u64(n - 1)))"
                           : "i -> min(max(i64(i), -i64(n)), i64(n) - 1)",
                       TN_IN(indices), tn_attrs("n", n));
}

tn_array *take_kept(const tn_build *build, tn_array *g, tn_array *indices, const tn_type *x,
                    const tn_take_attrs *attrs)
{
    int32_t axis = tn_axis(attrs->axis, x->rank);
    tn_ints column = tn_extents(build, indices), shape = ints_of(axis, x->extent);
    for (uint32_t i = 0; i < column.count; i++)
        shape.value[shape.count++] = column.value[i];
    for (int32_t i = axis + 1; i < x->rank; i++) {
        column.value[column.count++] = 1;
        shape.value[shape.count++] = x->extent[i];
    }
    if (x->extent[axis] == 0) // all updates are dropped
        return build->op(
            build, "base.full/1", NULL, 0,
            tn_attrs("shape", (const tn_ints *)&shape, "dtype", (int64_t)x->dtype));
    tn_array *taken =
        build->op(build, "base.take/1", TN_IN(g, indices), tn_attrs("axis", attrs->axis));
    tn_array *kept =
        build->expr(build,
                    is_u64(build, indices) ? "i -> i < u64(n)"
                                           : "i -> i64(i) >= -i64(n) & i64(i) < i64(n)",
                    TN_IN(indices), tn_attrs("n", x->extent[axis]));
    return build->expr(build, "k, t -> select(k, t, 0)",
                       TN_IN(with_shape(build, "base.reshape/1", kept, column), taken),
                       TN_NO_ATTRS);
}

static tn_status take_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    const tn_take_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *g = build->type(cotangents[0]);
    if (!wants(wanted, 0))
        return TN_OK;
    tn_array *zeros = zeros_like(build, rule->inputs[0], g ? g->dtype : TN_F32);
    tn_array *indices = base_index_clamped(build, rule->inputs[1],
                                           x->extent[tn_axis(attrs->axis, x->rank)]);
    gradients[0] =
        build->op(build, "base.scatter_add/1", TN_IN(zeros, indices, cotangents[0]),
                  tn_attrs("axis", attrs->axis));
    return built(gradients[0]);
}

static tn_status take_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_take_attrs *attrs = rule->attrs;
    if (!tangents[0])
        return TN_OK;
    out_tangents[0] = build->op(build, "base.take/1", TN_IN(tangents[0], rule->inputs[1]),
                                tn_attrs("axis", attrs->axis));
    return built(out_tangents[0]);
}

static tn_status scatter_add_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    if (wants(wanted, 0))
        gradients[0] = cotangents[0];
    if (wants(wanted, 2))
        gradients[2] = take_kept(build, cotangents[0], rule->inputs[1],
                                 build->type(rule->inputs[0]), rule->attrs);
    return wants(wanted, 2) ? built(gradients[2]) : TN_OK;
}

static tn_status scatter_add_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_take_attrs *attrs = rule->attrs;
    if (!tangents[2]) {
        out_tangents[0] = tangents[0];
        return TN_OK;
    }
    const tn_type *t = build->type(tangents[2]);
    const tn_array *x =
        tangents[0] ? tangents[0] : zeros_like(build, rule->inputs[0], t->dtype);
    out_tangents[0] =
        build->op(build, "base.scatter_add/1", TN_IN(x, rule->inputs[1], tangents[2]),
                  tn_attrs("axis", attrs->axis));
    return built(out_tangents[0]);
}

// --- batching ---------------------------------------------------------------------------

// Turns indices into slices of n elements into indices into all `size` slices joined, where
// slice b starts at b * n. An index out of range becomes the slice's nearest, or with
// `is_dropped` the first behind all slices.
static tn_array *joined_indices(const tn_build *build, tn_array *indices, int32_t axis,
                                int64_t size, int64_t n, int is_dropped)
{
    indices = tn_move_axis(build, indices, axis, 0);
    const tn_type *type = build->type(indices);
    if (!type)
        return NULL;
    tn_ints column = {.count = (uint32_t)type->rank, .given = 1, .value = {size}};
    for (int32_t i = 1; i < type->rank; i++)
        column.value[i] = 1;
    tn_array *slice = build->op(build, "base.arange/1", NULL, 0,
                                tn_attrs("stop", size, "dtype", (int64_t)TN_I64));
    slice = with_shape(build, "base.reshape/1", slice, column);
    int is_large = is_u64(build, indices);
    if (is_dropped)
        return build->expr(build,
                           is_large
                               ? "i, b -> select(i < u64(n), b * i64(n) + i64(i), i64(all))"
                               : "i, b -> j = i64(i); k = select(j < 0, j + i64(n), j); "
                                 "select(k >= 0 & k < i64(n), b * i64(n) + k, i64(all))",
                           TN_IN(indices, slice), tn_attrs("n", n, "all", size * n));
    return build->expr(build,
                       is_large ? "i, b -> b * i64(n) + i64(min(i, u64(n - 1)))"
                                : "i, b -> j = min(max(i64(i), -i64(n)), i64(n) - 1); "
                                  "b * i64(n) + select(j < 0, j + i64(n), j)",
                       TN_IN(indices, slice), tn_attrs("n", n));
}

static tn_array *base_index_take(const tn_build *build, tn_array *x, tn_array *indices,
                                 int64_t axis)
{
    return build->op(build, "base.take/1", TN_IN(x, indices), tn_attrs("axis", axis));
}

// Indices without a batch: one take behind x's batch axis. Only indices with a batch: one
// take, whose result has the batch first among the indices' axes. Both: one take from the
// joined slices of x.
tn_status take_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_take_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *indices = rule->inputs[1];
    int32_t rank = build->type(x)->rank - (axes[0] >= 0);
    int32_t axis = tn_axis(attrs->axis, rank);
    out_axes[0] = axes[1] < 0 ? 0 : axis;
    if (axes[1] < 0) {
        outputs[0] =
            base_index_take(build, tn_move_axis(build, x, axes[0], 0), indices, axis + 1);
    } else if (axes[0] < 0) {
        outputs[0] =
            base_index_take(build, x, tn_move_axis(build, indices, axes[1], 0), axis);
    } else {
        tn_ints whole = tn_extents(build, tn_move_axis(build, x, axes[0], 0));
        indices = joined_indices(build, indices, axes[1], size, whole.value[axis + 1], 0);
        outputs[0] =
            base_index_take(build, joined_batch(build, x, axes[0], axis), indices, axis);
    }
    return built(outputs[0]);
}

static tn_array *base_index_scattered(const tn_build *build, const char *primitive,
                                      tn_array *x, tn_array *indices, tn_array *updates,
                                      int64_t axis)
{
    return build->op(build, primitive, TN_IN(x, indices, updates), tn_attrs("axis", axis));
}

tn_status scatter_vmap(const tn_build *build, const tn_rule *rule, const char *primitive,
                       const int32_t *axes, int64_t size, tn_array **outputs,
                       int32_t *out_axes)
{
    const tn_take_attrs *attrs = rule->attrs;
    tn_array *x = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_array *updates = tn_batch_whole(build, rule->inputs[2], axes[2], size);
    tn_ints slice = tn_extents(build, rule->outputs[0]);
    int32_t axis = tn_axis(attrs->axis, (int32_t)slice.count);
    if (axis < 0)
        return TN_ERR_ARGUMENT;
    if (axes[1] < 0) {
        outputs[0] =
            base_index_scattered(build, primitive, x, rule->inputs[1], updates, axis + 1);
        out_axes[0] = 0;
        return built(outputs[0]);
    }
    tn_array *all = base_index_scattered(
        build, primitive, joined_batch(build, x, 0, axis),
        joined_indices(build, rule->inputs[1], axes[1], size, slice.value[axis], 1),
        tn_move_axis(build, updates, 0, axis), axis);
    tn_ints shape = {.count = slice.count + 1, .given = 1};
    for (int32_t i = 0; i < (int32_t)shape.count; i++)
        shape.value[i] = i == axis ? size : slice.value[i - (i > axis)];
    outputs[0] = with_shape(build, "base.reshape/1", all, shape);
    out_axes[0] = axis;
    return built(outputs[0]);
}

tn_status scatter_add_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                           int64_t size, tn_array **outputs, int32_t *out_axes)
{
    return scatter_vmap(build, rule, "base.scatter_add/1", axes, size, outputs, out_axes);
}

const tn_primitive base_take = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.take/1",
    .doc = "The elements of x at the indices along an axis; out of range: the nearest.",
    .role = TN_ROLE_TAKE,
    TN_INPUTS(take_inputs),
    .attrs = TN_ATTR_TABLE(tn_take_attrs, take_fields),
    .infer = take_infer,
    .reference = take_reference,
    .vjp = take_vjp,
    .jvp = take_jvp,
    .vmap = take_vmap,
};

const tn_primitive base_scatter_add = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.scatter_add/1",
    .doc = "x plus updates at the indices along an axis; out of range: dropped.",
    TN_INPUTS(add_inputs),
    .attrs = TN_ATTR_TABLE(tn_take_attrs, take_fields),
    .in_place = scatter_in_place,
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .infer = scatter_infer,
    .reference = scatter_add_reference,
    .vjp = scatter_add_vjp,
    .jvp = scatter_add_jvp,
    .vmap = scatter_add_vmap,
};
