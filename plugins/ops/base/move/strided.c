// SPDX-License-Identifier: MIT
// Views of memory: view (the same bytes as another dtype) and as_strided (elements at any
// distances, which may overlap).
#include "../pack.h"

// --- view -------------------------------------------------------------------------------

typedef struct {
    int64_t dtype;
} view_attrs;

static const tn_attr_field view_fields[] = {
    TN_REQUIRED_FIELD(view_attrs, dtype, TN_ATTR_DTYPE, "dtype of the result"),
};

static tn_status view_infer(const tn_infer *infer, tn_type *types)
{
    const view_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0];
    tn_dtype to = (tn_dtype)attrs->dtype;
    int64_t from_bytes = tn_dtype_bytes(x->dtype), to_bytes = tn_dtype_bytes(to), bytes;
    if (to == TN_BOOL && x->dtype != TN_BOOL)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x is %s, and not all of its bytes are bool",
                          dtype_text(x->dtype));
    tn_type made = *x;
    made.dtype = to;
    if (from_bytes != to_bytes && x->rank == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x is a scalar of %" PRId64 " bytes, and %s has %" PRId64,
                          from_bytes, dtype_text(to), to_bytes);
    if (from_bytes != to_bytes) {
        int64_t *last = &made.extent[x->rank - 1];
        if (!tn_checked_multiply_extents(*last, from_bytes, &bytes) || bytes % to_bytes)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "the last axis has %" PRId64 " elements of %" PRId64
                              " bytes, no multiple of the %" PRId64 " of %s",
                              *last, from_bytes, to_bytes, dtype_text(to));
        *last = bytes / to_bytes;
    }
    types[0] = made;
    return TN_OK;
}

// Converts `count` elements of `from` bytes to a number of elements of `to` bytes. False:
// it is not whole.
static int view_recount(int64_t count, int64_t from, int64_t to, int64_t *out)
{
    *out = count * from / to; // the elements are in memory: no overflow
    return count * from % to == 0;
}

static tn_status view_view(const tn_view *view, tn_layout *out)
{
    const tn_layout *in = view->input;
    int64_t from = tn_dtype_bytes(in->dtype), to = tn_dtype_bytes(view->output->dtype);
    tn_layout made = *in;
    made.dtype = view->output->dtype;
    int32_t last = in->rank - 1;
    if (tn_layout_count(in) == 0) {
        memcpy(made.extent, view->output->extent, sizeof(made.extent));
        made.offset = 0;
        *out = made;
        return TN_OK;
    }
    if (from != to && in->extent[last] > 1 && in->stride[last] != 1)
        return TN_ERR_UNSUPPORTED;
    for (int32_t i = 0; i < in->rank && from != to; i++) {
        made.extent[i] = view->output->extent[i];
        if (i == last)
            made.stride[i] = 1;
        else if (in->extent[i] > 1 &&
                 !view_recount(in->stride[i], from, to, &made.stride[i]))
            return TN_ERR_UNSUPPORTED;
    }
    if (from != to && !view_recount(in->offset, from, to, &made.offset))
        return TN_ERR_UNSUPPORTED;
    *out = made;
    return TN_OK;
}

// The bits of another dtype have no derivative.
static tn_array *view_slope(const tn_build *build, const tn_rule *rule, tn_array *slope)
{
    const tn_type *x = build->type(rule->inputs[0]);
    const view_attrs *attrs = rule->attrs;
    return x && x->dtype == (tn_dtype)attrs->dtype ? slope : NULL;
}

TN_VJP(view_vjp)
{
    gradients[0] = view_slope(build, rule, cotangents[0]);
    return TN_OK;
}

TN_JVP(view_jvp)
{
    out_tangents[0] = view_slope(build, rule, tangents[0]);
    return TN_OK;
}

TN_VMAP(view_vmap)
{
    const view_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    outputs[0] = build->op(build, "base.view/1", TN_IN(x), tn_attrs("dtype", attrs->dtype));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive base_view = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.view/1",
    .doc = "The same bytes as elements of another dtype.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(view_attrs, view_fields),
    .infer = view_infer,
    .view = view_view,
    .vjp = view_vjp,
    .jvp = view_jvp,
    .vmap = view_vmap,
};

// --- as_strided -------------------------------------------------------------------------

typedef struct {
    tn_ints shape, strides;
    int64_t offset;
} strided_attrs;

static const tn_attr_field strided_fields[] = {
    TN_REQUIRED_FIELD(strided_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_REQUIRED_FIELD(strided_attrs, strides, TN_ATTR_INTS,
                      "distance of neighbours along each axis, in elements of x flattened"),
    TN_I64_FIELD(strided_attrs, offset, 0, "the element of x flattened that is the first"),
};

// The first and the last element of x that are read. False: they exceed 63 bits.
static int strided_span(const strided_attrs *attrs, int64_t *out_low, int64_t *out_high)
{
    int64_t low = attrs->offset, high = attrs->offset;
    for (uint32_t i = 0; i < attrs->shape.count; i++) {
        int64_t stride = attrs->strides.value[i], reach;
        uint64_t size = stride < 0 ? (uint64_t) - (stride + 1) + 1 : (uint64_t)stride,
                 product;
        if (!tn_checked_multiply(size, (uint64_t)attrs->shape.value[i] - 1, &product) ||
            product > INT64_MAX)
            return 0;
        reach = stride < 0 ? -(int64_t)product : (int64_t)product;
        if (!tn_checked_add_signed(stride < 0 ? low : high, reach,
                                   stride < 0 ? &low : &high))
            return 0;
    }
    *out_low = low;
    *out_high = high;
    return 1;
}

static tn_status as_strided_infer(const tn_infer *infer, tn_type *types)
{
    const strided_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0];
    int64_t low, high, count = type_count(x);
    tn_status status = check_shape(host, &attrs->shape);
    if (status)
        return status;
    if (attrs->strides.count != attrs->shape.count)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "shape has %u extents and strides %u, expected as many",
                          attrs->shape.count, attrs->strides.count);
    tn_type made = {.dtype = x->dtype, .rank = (int32_t)attrs->shape.count};
    memcpy(made.extent, attrs->shape.value, sizeof(made.extent));
    int is_empty = type_count(&made) == 0;
    if (!is_empty && !strided_span(attrs, &low, &high))
        return host->fail(host, TN_ERR_ARGUMENT, "strides reach elements beyond 2^63");
    if (!is_empty && (low < 0 || high >= count))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "it reads elements %" PRId64 " to %" PRId64
                          " of x, which has %" PRId64,
                          low, high, count);
    types[0] = made;
    return TN_OK;
}

static tn_status as_strided_view(const tn_view *view, tn_layout *out)
{
    const strided_attrs *attrs = view->attrs;
    const tn_layout *in = view->input;
    int64_t expected = 1;
    *out = (tn_layout){.dtype = in->dtype,
                       .rank = view->output->rank,
                       .offset = in->offset + attrs->offset};
    for (int32_t i = 0; i < out->rank; i++) {
        out->extent[i] = view->output->extent[i];
        out->stride[i] = attrs->strides.value[i];
    }
    if (tn_layout_count(out) == 0) { // no element is read, whatever the offset
        out->offset = 0;
        return TN_OK;
    }
    for (int32_t i = in->rank - 1; i >= 0; i--) {
        if (in->extent[i] != 1 && in->stride[i] != expected)
            return TN_ERR_UNSUPPORTED;
        expected *= in->extent[i];
    }
    return TN_OK;
}

static tn_array *strided_apply(const tn_build *build, const tn_array *x,
                               const tn_ints *shape, const tn_ints *strides, int64_t offset)
{
    return build->op(build, "base.as_strided/1", TN_IN(x),
                     tn_attrs("shape", shape, "strides", strides, "offset", offset));
}

// Each element of x gets the cotangents of all positions that read it.
TN_VJP(as_strided_vjp)
{
    const strided_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    int32_t rank = (int32_t)attrs->shape.count;
    if (!x)
        return TN_ERR_ARGUMENT;
    tn_array *at = build->scalar(build, TN_I64, 0);
    for (int32_t i = 0; i < rank; i++)
        at = build->expr(build, "at, i -> at + i * stride",
                         TN_IN(at, counted(build, attrs->shape.value[i], rank - 1 - i)),
                         tn_attrs("stride", attrs->strides.value[i]));
    at = build->expr(build, "at -> at + i64(offset)", TN_IN(at),
                     tn_attrs("offset", attrs->offset));
    const tn_ints flat = {1, 1, {type_count(x)}};
    tn_array *none = build->op(build, "base.full/1", NULL, 0,
                               tn_attrs("shape", &flat, "dtype", (int64_t)x->dtype));
    tn_array *sums =
        build->op(build, "base.scatter_add/1", TN_IN(none, at, cotangents[0]), TN_NO_ATTRS);
    gradients[0] =
        with_shape(build, "base.reshape/1", sums, tn_extents(build, rule->inputs[0]));
    return built(gradients[0]);
}

TN_JVP(as_strided_jvp)
{
    const strided_attrs *attrs = rule->attrs;
    out_tangents[0] =
        strided_apply(build, tangents[0], &attrs->shape, &attrs->strides, attrs->offset);
    return built(out_tangents[0]);
}

TN_VMAP(as_strided_vmap)
{
    const strided_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    const tn_type *type = build->type(x);
    if (!type)
        return TN_ERR_ARGUMENT;
    const tn_ints shape = tn_ints_after(size, &attrs->shape);
    const tn_ints strides =
        tn_ints_after(size ? type_count(type) / size : 0, &attrs->strides);
    outputs[0] = strided_apply(build, x, &shape, &strides, attrs->offset);
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive base_as_strided = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_VIEW,
    .id = "base.as_strided/1",
    .doc = "Elements of x, flattened, at any distances along each axis; they may overlap.",
    TN_INPUTS(base_any_x),
    .attrs = TN_ATTR_TABLE(strided_attrs, strided_fields),
    .infer = as_strided_infer,
    .view = as_strided_view,
    .vjp = as_strided_vjp,
    .jvp = as_strided_jvp,
    .vmap = as_strided_vmap,
};
