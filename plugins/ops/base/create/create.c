// SPDX-License-Identifier: MIT
// Primitives without inputs, as arange and full. Attributes give the type; an expression
// over the element's index gives the elements.
#include "../pack.h"

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
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32;
    if (!status)
        status = check_holds(infer->host, "value", attrs->value, dtype);
    if (status)
        return status;
    types[0] = (tn_type){.dtype = dtype, .rank = (int32_t)attrs->shape.count};
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

// --- eye --------------------------------------------------------------------------------

static const tn_attr_field eye_fields[] = {
    TN_REQUIRED_FIELD(tn_eye_attrs, n, TN_ATTR_I64, "rows"),
    TN_I64_FIELD(tn_eye_attrs, m, -1, "columns; -1: as many as rows"),
    TN_I64_FIELD(tn_eye_attrs, k, 0, "the diagonal; above 0: above the main one"),
    TN_DTYPE_FIELD(tn_eye_attrs, dtype, 0, "dtype; not given: f32"),
};

static tn_status eye_infer(const tn_infer *infer, tn_type *types)
{
    const tn_eye_attrs *attrs = infer->attrs;
    int64_t columns = attrs->m == -1 ? attrs->n : attrs->m;
    if (attrs->n < 0 || columns < 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "n is %" PRId64 " and m %" PRId64
                                 ", expected n at least 0 "
                                 "and m at least 0, or -1",
                                 attrs->n, attrs->m);
    types[0] =
        (tn_type){attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32, 2, {attrs->n, columns}};
    return TN_OK;
}

DECOMPOSE(eye)
{
    const tn_eye_attrs *attrs = rule->attrs;
    int64_t columns = attrs->m == -1 ? attrs->n : attrs->m;
    int64_t k = attrs->k > columns ? columns : attrs->k < -attrs->n ? -attrs->n : attrs->k;
    tn_array *on = build->expr(
        build, "i, j -> j - i == i64(k)",
        TN_IN(counted(build, attrs->n, 1), counted(build, columns, 0)), tn_attrs("k", k));
    outputs[0] = cast(build, on, attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32);
    return built(outputs[0]);
}

DECOMPOSED(eye, tn_eye_attrs, eye_fields, "Ones on a diagonal of a matrix, else zeros.",
           .num_inputs = 0);

// --- one_hot ----------------------------------------------------------------------------

static const tn_input_info one_hot_inputs[] = {
    {"x", "integers: class numbers", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field one_hot_fields[] = {
    TN_REQUIRED_FIELD(tn_one_hot_attrs, num_classes, TN_ATTR_I64, "extent of the new axis"),
    TN_I64_FIELD(tn_one_hot_attrs, axis, -1, "axis of the result that is new"),
    TN_DTYPE_FIELD(tn_one_hot_attrs, dtype, 0, "dtype; not given: i64"),
};

static tn_status one_hot_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_one_hot_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    tn_status status = check_integers(host, "x", x->dtype);
    if (status)
        return status;
    if (attrs->num_classes < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "num_classes is %" PRId64 ", expected at least 0",
                          attrs->num_classes);
    if (x->rank == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "x has rank %d, expected at most %d",
                          x->rank, TN_MAX_RANK - 1);
    status = check_axis(host, attrs->axis, x->rank + 1, &axis);
    if (status)
        return status;
    types[0] = (tn_type){attrs->dtype ? (tn_dtype)attrs->dtype : TN_I64, x->rank + 1, {0}};
    for (int32_t i = 0; i <= x->rank; i++)
        types[0].extent[i] = i == axis ? attrs->num_classes : x->extent[i - (i > axis)];
    return TN_OK;
}

DECOMPOSE(one_hot)
{
    const tn_one_hot_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    int32_t axis = tn_axis(attrs->axis, x->rank + 1);
    tn_array *column = build->op(build, "base.expand_dims/1", TN_IN(rule->inputs[0]),
                                 tn_attrs("axis", TN_INTS((int64_t)axis)));
    // A u64 beyond 63 bits is no class: i64() would make it negative.
    tn_array *on = build->expr(
        build, x->dtype == TN_U64 ? "x, i -> x == u64(i)" : "x, i -> i64(x) == i",
        TN_IN(column, counted(build, attrs->num_classes, x->rank - axis)), TN_NO_ATTRS);
    outputs[0] = cast(build, on, attrs->dtype ? (tn_dtype)attrs->dtype : TN_I64);
    return built(outputs[0]);
}

DECOMPOSED(one_hot, tn_one_hot_attrs, one_hot_fields,
           "1 at the index that x names along a new axis, else 0.",
           TN_INPUTS(one_hot_inputs));

// --- linspace ---------------------------------------------------------------------------

static const tn_attr_field linspace_fields[] = {
    TN_REQUIRED_FIELD(tn_linspace_attrs, start, TN_ATTR_F64, "the first value"),
    TN_REQUIRED_FIELD(tn_linspace_attrs, stop, TN_ATTR_F64, "the last value"),
    TN_I64_FIELD(tn_linspace_attrs, num, 50, "how many"),
    TN_BOOL_FIELD(tn_linspace_attrs, endpoint, 1, "whether stop is among them"),
    TN_DTYPE_FIELD(tn_linspace_attrs, dtype, 0, "dtype; not given: f64"),
};

static tn_status linspace_infer(const tn_infer *infer, tn_type *types)
{
    const tn_linspace_attrs *attrs = infer->attrs;
    if (!isfinite(attrs->start) || !isfinite(attrs->stop) || attrs->num < 0)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "start is %g, stop %g and num %" PRId64
                                 ", expected finite numbers and num at least 0",
                                 attrs->start, attrs->stop, attrs->num);
    types[0] = (tn_type){attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64, 1, {attrs->num}};
    return TN_OK;
}

DECOMPOSE(linspace)
{
    const tn_linspace_attrs *attrs = rule->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F64;
    int64_t parts = attrs->num - (attrs->endpoint != 0);
    double step =
        parts > 0 ? attrs->stop / (double)parts - attrs->start / (double)parts : 0;
    int64_t last = attrs->endpoint && parts > 0 ? parts : -1; // index of the element `stop`
    tn_array *x = build->expr(
        build, "i -> select(i == i64(last), f64(stop), f64(start) + f64(i) * f64(step))",
        TN_IN(counted(build, attrs->num, 0)),
        tn_attrs("start", attrs->start, "stop", attrs->stop, "step", step, "last", last));
    if (!tn_is_float(dtype))
        x = build->expr(build, "x -> floor(x)", TN_IN(x), TN_NO_ATTRS);
    outputs[0] = dtype == TN_F64 ? x : cast(build, x, dtype);
    return built(outputs[0]);
}

DECOMPOSED(linspace, tn_linspace_attrs, linspace_fields,
           "Numbers at equal distances from start to stop.", .num_inputs = 0);
