// SPDX-License-Identifier: MIT
// Reductions over any axes: type inference, and references in plain C.
#include "reduce.h"

#include <tenon/ops/program.h>

// --- types ------------------------------------------------------------------------------

// The result's type: the axes in `set` are removed, or have extent 1 with `keepdims`.
static tn_type base_reduce_reduced(const tn_type *x, uint32_t set, int64_t keepdims,
                                   tn_dtype dtype)
{
    tn_type type = {.dtype = dtype};
    for (int32_t i = 0; i < x->rank; i++) {
        int is_reduced = (set >> i & 1) != 0;
        if (!is_reduced || keepdims)
            type.extent[type.rank++] = is_reduced ? 1 : x->extent[i];
    }
    return type;
}

static tn_status reduce_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_reduce_attrs *attrs = infer->attrs;
    uint32_t set;
    tn_status status =
        check_axes(infer->host, "axis", &attrs->axis, infer->types[0].rank, &set);
    if (status == TN_OK)
        types[0] = base_reduce_reduced(&infer->types[0], set, attrs->keepdims, dtype);
    return status;
}

tn_status sum_infer(const tn_infer *infer, tn_type *types)
{
    tn_dtype dtype = infer->types[0].dtype;
    if (dtype == TN_BOOL || tn_dtype_in(dtype, TN_SIGNED_DTYPES))
        dtype = TN_I64;
    else if (tn_dtype_in(dtype, TN_UNSIGNED_DTYPES))
        dtype = TN_U64;
    return reduce_infer(infer, dtype, types);
}

// Dtype of mean and logsumexp: x's own where it is float or complex, f64 for integers.
static tn_dtype base_reduce_float_of(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES) ? dtype : TN_F64;
}

tn_status mean_infer(const tn_infer *infer, tn_type *types)
{
    return reduce_infer(infer, base_reduce_float_of(infer->types[0].dtype), types);
}

tn_status logsumexp_infer(const tn_infer *infer, tn_type *types)
{
    return reduce_infer(infer, base_reduce_float_of(infer->types[0].dtype), types);
}

// Fails when an output element would have no input elements: an extremum needs at least
// one.
static tn_status check_not_empty(const tn_infer *infer, uint32_t set)
{
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    int no_input = 0, no_output = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        no_input |= x->extent[i] == 0 && (set >> i & 1);
        no_output |= x->extent[i] == 0 && !(set >> i & 1);
    }
    if (!no_input || no_output)
        return TN_OK;
    return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                             "x has shape %s, expected at least one element to reduce",
                             shape_text(x->rank, x->extent, text));
}

tn_status extremum_infer(const tn_infer *infer, tn_type *types)
{
    const tn_reduce_attrs *attrs = infer->attrs;
    tn_type out;
    tn_status status = reduce_infer(infer, infer->types[0].dtype, &out);
    if (status == TN_OK)
        status = check_not_empty(infer, tn_axis_set(&attrs->axis, infer->types[0].rank));
    if (status == TN_OK)
        types[0] = out;
    return status;
}

tn_status argmax_infer(const tn_infer *infer, tn_type *types)
{
    const tn_argmax_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    uint32_t set = (UINT32_C(1) << x->rank) - 1;
    if (attrs->axis != TN_NO_AXIS) {
        int32_t axis;
        tn_status status = check_axis(infer->host, attrs->axis, x->rank, &axis);
        if (status)
            return status;
        set = UINT32_C(1) << axis;
    }
    tn_status status = check_not_empty(infer, set);
    if (status == TN_OK)
        types[0] = base_reduce_reduced(x, set, attrs->keepdims, TN_I64);
    return status;
}

// --- references -------------------------------------------------------------------------

// One element of the output, and the input elements that are reduced to it.
struct cell {
    const tn_tensor *in;
    tn_layout layout; // of the input elements: axes that are not reduced have extent 1
    int64_t count;    // of input elements
    const tn_tensor *out;
    int64_t at; // offset of the output element
};

typedef void (*fold_fn)(const struct cell *cell);

// Calls `fold` for each element of the output.
static void for_each_cell(const tn_cpu_call *call, uint32_t set, int64_t keepdims,
                          fold_fn fold)
{
    const tn_tensor *in = &call->inputs[0], *out = &call->outputs[0];
    struct cell cell = {.in = in, .layout = in->layout, .out = out};
    int64_t outer[TN_MAX_RANK], out_stride[TN_MAX_RANK] = {0}, index[TN_MAX_RANK] = {0};
    int32_t rank = in->layout.rank, from = 0;
    for (int32_t i = 0; i < rank; i++) {
        int is_reduced = (set >> i & 1) != 0;
        outer[i] = is_reduced ? 1 : in->layout.extent[i];
        cell.layout.extent[i] = is_reduced ? in->layout.extent[i] : 1;
        if (!is_reduced)
            out_stride[i] = out->layout.stride[from];
        from += !is_reduced || keepdims;
    }
    cell.count = tn_layout_count(&cell.layout);
    if (tn_layout_count(&out->layout) == 0)
        return;
    do {
        cell.layout.offset = tn_offset_at(&in->layout, index);
        cell.at = out->layout.offset;
        for (int32_t i = 0; i < rank; i++)
            cell.at += index[i] * out_stride[i];
        fold(&cell);
    } while (tn_index_next(rank, outer, index));
}

static tn_status base_reduce(const tn_cpu_call *call, fold_fn fold)
{
    const tn_reduce_attrs *attrs = call->attrs;
    uint32_t set = tn_axis_set(&attrs->axis, call->inputs[0].layout.rank);
    for_each_cell(call, set, attrs->keepdims, fold);
    return TN_OK;
}

// Runs `statement` for each input element of the cell; `at` is the element's offset.
#define FOR_EACH(cell, at, statement)                                                      \
    do {                                                                                   \
        int64_t index_[TN_MAX_RANK] = {0};                                                 \
        if ((cell)->count > 0)                                                             \
            do {                                                                           \
                int64_t at = tn_offset_at(&(cell)->layout, index_);                        \
                statement;                                                                 \
            } while (tn_index_next((cell)->layout.rank, (cell)->layout.extent, index_));   \
    } while (0)

static int base_reduce_is_float(const struct cell *cell)
{
    return tn_dtype_in(cell->in->layout.dtype, TN_FLOAT_DTYPES);
}

static void fold_sum(const struct cell *cell)
{
    double f = 0;
    uint64_t i = 0; // wraps
    tn_complex128 sum = {0, 0};
    if (tn_is_complex(cell->in->layout.dtype)) {
        FOR_EACH(cell, at,
                 sum =
                     tn_complex_operation(TN_EXPR_ADD, sum, tn_get_complex(cell->in, at)));
        tn_set_complex(cell->out, cell->at, sum);
    } else if (base_reduce_is_float(cell)) {
        FOR_EACH(cell, at, f += tn_get_f64(cell->in, at));
        tn_set_f64(cell->out, cell->at, f);
    } else {
        FOR_EACH(cell, at, i += (uint64_t)tn_get_i64(cell->in, at));
        tn_set_i64(cell->out, cell->at, (int64_t)i);
    }
}

static void fold_prod(const struct cell *cell)
{
    double f = 1;
    uint64_t i = 1; // wraps
    tn_complex128 product = {1, 0};
    if (tn_is_complex(cell->in->layout.dtype)) {
        FOR_EACH(cell, at,
                 product = tn_complex_multiply(product, tn_get_complex(cell->in, at)));
        tn_set_complex(cell->out, cell->at, product);
    } else if (base_reduce_is_float(cell)) {
        FOR_EACH(cell, at, f *= tn_get_f64(cell->in, at));
        tn_set_f64(cell->out, cell->at, f);
    } else {
        FOR_EACH(cell, at, i *= (uint64_t)tn_get_i64(cell->in, at));
        tn_set_i64(cell->out, cell->at, (int64_t)i);
    }
}

// Whether element a comes before b in max's order: NaN first, then the greater one.
static int is_above(const tn_tensor *x, int64_t a, int64_t b)
{
    if (tn_dtype_in(x->layout.dtype, TN_FLOAT_DTYPES)) {
        double u = tn_get_f64(x, a), v = tn_get_f64(x, b);
        return u > v || (isnan(u) && !isnan(v));
    }
    if (x->layout.dtype == TN_U64)
        return (uint64_t)tn_get_i64(x, a) > (uint64_t)tn_get_i64(x, b);
    return tn_get_i64(x, a) > tn_get_i64(x, b);
}

// Whether element a comes before b in min's order: NaN first, then the smaller one.
static int base_reduce_is_below(const tn_tensor *x, int64_t a, int64_t b)
{
    if (tn_dtype_in(x->layout.dtype, TN_FLOAT_DTYPES) && isnan(tn_get_f64(x, a)))
        return !isnan(tn_get_f64(x, b));
    if (tn_dtype_in(x->layout.dtype, TN_FLOAT_DTYPES) && isnan(tn_get_f64(x, b)))
        return 0;
    return is_above(x, b, a);
}

static void copy_element(const struct cell *cell, int64_t at)
{
    memcpy(tn_element(cell->out, cell->at), tn_element(cell->in, at),
           (size_t)tn_dtype_bytes(cell->in->layout.dtype));
}

static void fold_max(const struct cell *cell)
{
    int64_t best = cell->layout.offset;
    FOR_EACH(cell, at, if (is_above(cell->in, at, best)) best = at);
    copy_element(cell, best);
}

static void fold_min(const struct cell *cell)
{
    int64_t best = cell->layout.offset;
    FOR_EACH(cell, at, if (base_reduce_is_below(cell->in, at, best)) best = at);
    copy_element(cell, best);
}

static void fold_argmax(const struct cell *cell)
{
    int64_t best = cell->layout.offset, best_number = 0, number = 0;
    FOR_EACH(
        cell, at, if (is_above(cell->in, at, best)) {
            best = at;
            best_number = number;
        } number++);
    tn_set_i64(cell->out, cell->at, best_number);
}

static void fold_logsumexp(const struct cell *cell)
{
    double most = -INFINITY, sum = 0;
    FOR_EACH(cell, at, {
        double v = tn_get_f64(cell->in, at);
        most = isnan(v) || v > most ? v : most;
    });
    double shift = isfinite(most) ? most : 0;
    FOR_EACH(cell, at, sum += exp(tn_get_f64(cell->in, at) - shift));
    tn_set_f64(cell->out, cell->at, shift + log(sum));
}

tn_status sum_reference(const tn_cpu_call *call)
{
    return base_reduce(call, fold_sum);
}

tn_status prod_reference(const tn_cpu_call *call)
{
    return base_reduce(call, fold_prod);
}

tn_status max_reference(const tn_cpu_call *call)
{
    return base_reduce(call, fold_max);
}

tn_status min_reference(const tn_cpu_call *call)
{
    return base_reduce(call, fold_min);
}

tn_status logsumexp_reference(const tn_cpu_call *call)
{
    return base_reduce(call, fold_logsumexp);
}

tn_status argmax_reference(const tn_cpu_call *call)
{
    const tn_argmax_attrs *attrs = call->attrs;
    int32_t rank = call->inputs[0].layout.rank;
    uint32_t set = (UINT32_C(1) << rank) - 1;
    if (attrs->axis != TN_NO_AXIS)
        set = UINT32_C(1) << tn_axis(attrs->axis, rank);
    for_each_cell(call, set, attrs->keepdims, fold_argmax);
    return TN_OK;
}
