// SPDX-License-Identifier: MIT
// Primitives without inputs: arange and full. Their attributes give the type; an expression
// over the element's index gives the elements.
#include "pack.h"

// --- arange -----------------------------------------------------------------------------

static const tn_attr_field arange_fields[] = {
    TN_F64_FIELD(tn_arange_attrs, start, 0, "the first value"),
    TN_REQUIRED_FIELD(tn_arange_attrs, stop, TN_ATTR_F64, "where to stop before"),
    TN_F64_FIELD(tn_arange_attrs, step, 1, "distance between values"),
    TN_DTYPE_FIELD(tn_arange_attrs, dtype, 0,
                   "dtype; not given: i64 when all three are whole, else f64"),
};

static tn_status arange_infer(const tn_infer *infer, tn_type *types)
{
    const tn_arange_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    if (!isfinite(attrs->start) || !isfinite(attrs->stop) || !isfinite(attrs->step) ||
        attrs->step == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "start is %g, stop %g and step %g, expected finite numbers and a "
                          "step that is not 0",
                          attrs->start, attrs->stop, attrs->step);
    double count = ceil((attrs->stop - attrs->start) / attrs->step);
    if (count >= 4611686018427387904.0)
        return host->fail(host, TN_ERR_ARGUMENT, "%g elements are too many", count);
    int whole = trunc(attrs->start) == attrs->start && trunc(attrs->stop) == attrs->stop &&
                trunc(attrs->step) == attrs->step;
    tn_dtype dtype = (tn_dtype)attrs->dtype;
    if (dtype == TN_DTYPE_NONE)
        dtype = whole ? TN_I64 : TN_F64;
    types[0] = (tn_type){dtype, 1, {count > 0 ? (int64_t)count : 0}};
    return TN_OK;
}

const tn_primitive base_arange = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "base.arange/1",
    .doc = "start, start + step, ... up to but without stop.",
    .attrs = TN_ATTR_TABLE(tn_arange_attrs, arange_fields),
    .expr = "start + index * step",
    .infer = arange_infer,
};

// --- full -------------------------------------------------------------------------------

static const tn_attr_field full_fields[] = {
    TN_REQUIRED_FIELD(tn_full_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_F64_FIELD(tn_full_attrs, value, 0, "what every element is"),
    TN_DTYPE_FIELD(tn_full_attrs, dtype, 0, "dtype; not given: f32"),
};

static tn_status full_infer(const tn_infer *infer, tn_type *types)
{
    const tn_full_attrs *attrs = infer->attrs;
    tn_status status = check_shape(infer->host, &attrs->shape);
    if (status)
        return status;
    types[0] = (tn_type){.dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32,
                         .rank = (int32_t)attrs->shape.count};
    memcpy(types[0].extent, attrs->shape.value, sizeof(types[0].extent));
    return TN_OK;
}

const tn_primitive base_full = {
    .struct_size = sizeof(tn_primitive),
    .flags = TN_PRIM_OWN_TYPE,
    .id = "base.full/1",
    .doc = "An array whose elements are all one value.",
    .attrs = TN_ATTR_TABLE(tn_full_attrs, full_fields),
    .expr = "value",
    .infer = full_infer,
};
