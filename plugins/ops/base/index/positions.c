// SPDX-License-Identifier: MIT
// Indices that follow from extents (indices, diag_indices, tril_indices, triu_indices and
// their forms), conversion to and from flat indices (ravel_multi_index, unravel_index), and
// selection among arrays (choose, select).
#include "../pack.h"

static const tn_output_info position_outputs[] = {
    {"indices", "of each axis in turn, i64", 0, 0}};

// --- indices and diag_indices -----------------------------------------------------------

typedef struct {
    tn_ints dimensions;
    int64_t dtype;
} indices_attrs;

static const tn_attr_field indices_fields[] = {
    TN_REQUIRED_FIELD(indices_attrs, dimensions, TN_ATTR_INTS, "the extents of the grid"),
    TN_DTYPE_FIELD(indices_attrs, dtype, 0, "dtype; not given: i64"),
};

DECOMPOSE(indices)
{
    const indices_attrs *attrs = rule->attrs;
    const tn_ints *grid = &attrs->dimensions, none = {1, 1, {0}};
    tn_array *parts[TN_MAX_RANK];
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_I64;
    tn_status status = check_shape(build->host, grid);
    if (status)
        return status;
    for (uint32_t i = 0; i < grid->count; i++) {
        parts[i] = counted(build, grid->value[i], (int32_t)(grid->count - 1 - i));
        parts[i] = as_dtype(build, parts[i], dtype);
        parts[i] = with_shape(build, "base.broadcast_to/1", parts[i], *grid);
    }
    outputs[0] = grid->count
                     ? build->op(build, "base.stack/1", (const tn_array *const *)parts,
                                 grid->count, TN_NO_ATTRS)
                     : build->op(build, "base.full/1", NULL, 0,
                                 tn_attrs("shape", &none, "dtype", (int64_t)dtype));
    return built(outputs[0]);
}

COMPOSITE(indices, "The indices of a grid's elements: a grid for each axis, stacked.",
          .attrs = TN_ATTR_TABLE(indices_attrs, indices_fields));

typedef struct {
    int64_t n, ndim;
} diag_indices_attrs;

static const tn_attr_field diag_indices_fields[] = {
    TN_REQUIRED_FIELD(diag_indices_attrs, n, TN_ATTR_I64, "elements of the diagonal"),
    TN_I64_FIELD(diag_indices_attrs, ndim, 2, "axes of the array"),
};

static tn_status diag_indices_count(const tn_infer *infer, uint64_t *out_count)
{
    const diag_indices_attrs *attrs = infer->attrs;
    if (attrs->ndim < 1 || attrs->ndim > TN_MAX_RANK)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "ndim is %" PRId64 ", expected 1 .. %d", attrs->ndim,
                                 TN_MAX_RANK);
    *out_count = (uint64_t)attrs->ndim;
    return TN_OK;
}

static tn_status diagonal_positions(const tn_build *build, int64_t n, uint32_t count,
                                    tn_array **outputs)
{
    if (n < 0)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "n is %" PRId64 ", expected at least 0", n);
    for (uint32_t i = 0; i < count; i++)
        outputs[i] = counted(build, n, 0);
    return built(outputs[0]);
}

DECOMPOSE(diag_indices)
{
    const diag_indices_attrs *attrs = rule->attrs;
    return diagonal_positions(build, attrs->n, rule->num_outputs, outputs);
}

static const tn_input_info shape_input[] = {
    {"x", "the array whose extents count", TN_INPUT_CONSTANT, TN_ALL_DTYPES}};

static tn_status position_count_axes(const tn_infer *infer, uint64_t *out_count)
{
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    int is_square = x->rank >= 2;
    for (int32_t i = 1; i < x->rank; i++)
        is_square &= x->extent[i] == x->extent[0];
    if (!is_square)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, expected equal extents of 2 axes or more",
                                 shape_text(x->rank, x->extent, text));
    *out_count = (uint64_t)x->rank;
    return TN_OK;
}

DECOMPOSE(diag_indices_from)
{
    return diagonal_positions(build, build->type(rule->inputs[0])->extent[0],
                              rule->num_outputs, outputs);
}

COMPOSITE(diag_indices, "The indices of the main diagonal of n elements.",
          TN_OUTPUTS(position_outputs), .count_outputs = diag_indices_count,
          .attrs = TN_ATTR_TABLE(diag_indices_attrs, diag_indices_fields));
COMPOSITE(diag_indices_from, "The indices of the main diagonal of x.",
          TN_INPUTS(shape_input), TN_OUTPUTS(position_outputs),
          .count_outputs = position_count_axes);

// --- triangles --------------------------------------------------------------------------

static const tn_output_info triangle_outputs[] = {
    {"rows", "i64, in row-major order", 0, 0},
    {"columns", "i64", 0, 0},
};
static const tn_attr_field triangle_fields[] = {
    TN_REQUIRED_FIELD(tn_eye_attrs, n, TN_ATTR_I64, "rows"),
    TN_I64_FIELD(tn_eye_attrs, k, 0, "the diagonal; above 0: above the main one"),
    TN_I64_FIELD(tn_eye_attrs, m, -1, "columns; -1: as many as rows"),
};
static const tn_attr_field triangle_from_fields[] = {
    TN_I64_FIELD(tn_eye_attrs, k, 0, "the diagonal; above 0: above the main one"),
};

// The sum of max(i + k, 0) for i = 0 ... n - 1.
static int64_t triangle_sum(int64_t n, int64_t k)
{
    int64_t p = n + k;
    return k >= 0 ? n * k + n * (n - 1) / 2 : p > 0 ? p * (p - 1) / 2 : 0;
}

// The positions of an n x m matrix at and below diagonal k, or at and above it.
static tn_status triangle_positions(const tn_build *build, int64_t n, int64_t m, int64_t k,
                                    int is_upper, tn_array **outputs)
{
    int64_t whole, most = INT64_C(1) << 30;
    if (n < 0 || m < 0 || n > most || m > most)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "%" PRId64 " rows and %" PRId64 " columns, expected 0 .. %" PRId64, n, m, most);
    k = k < -n - 1 ? -n - 1 : k > m + 1 ? m + 1 : k;
    whole = n * m;
    // The elements above diagonal k complement those at and below diagonal k - 1.
    int64_t below = is_upper ? k - 1 : k;
    int64_t count = triangle_sum(n, below + 1) - triangle_sum(n, below + 1 - m);
    tn_array *mask = build->expr(
        build, is_upper ? "i, j -> j - i > k" : "i, j -> j - i <= k",
        TN_IN(counted(build, n, 1), counted(build, m, 0)), tn_attrs("k", below));
    tn_array *found[3] = {NULL};
    tn_status status =
        build->op_n(build, "base.nonzero/1", TN_IN(mask),
                    tn_attrs("size", is_upper ? whole - count : count), found, 3);
    outputs[0] = found[0];
    outputs[1] = found[1];
    return status;
}

static tn_status triangle_positions_of(const tn_build *build, const tn_rule *rule,
                                       int is_upper, tn_array **outputs)
{
    const tn_eye_attrs *attrs = rule->attrs;
    if (rule->num_inputs == 0)
        return triangle_positions(build, attrs->n, attrs->m == -1 ? attrs->n : attrs->m,
                                  attrs->k, is_upper, outputs);
    const tn_type *x = build->type(rule->inputs[0]);
    if (x->rank != 2)
        return build->host->fail(build->host, TN_ERR_ARGUMENT, "x has rank %d, expected 2",
                                 x->rank);
    return triangle_positions(build, x->extent[0], x->extent[1], attrs->k, is_upper,
                              outputs);
}

DECOMPOSE(tril_indices)
{
    return triangle_positions_of(build, rule, 0, outputs);
}

DECOMPOSE(triu_indices)
{
    return triangle_positions_of(build, rule, 1, outputs);
}

#define tril_indices_from_decompose tril_indices_decompose
#define triu_indices_from_decompose triu_indices_decompose
#define TRIANGLE                                                                           \
    TN_OUTPUTS(triangle_outputs), .attrs = TN_ATTR_TABLE(tn_eye_attrs, triangle_fields)
#define TRIANGLE_FROM                                                                      \
    TN_INPUTS(shape_input), TN_OUTPUTS(triangle_outputs),                                  \
        .attrs = TN_ATTR_TABLE(tn_eye_attrs, triangle_from_fields)
COMPOSITE(tril_indices, "The indices at and below a diagonal of a matrix.", TRIANGLE);
COMPOSITE(triu_indices, "The indices at and above a diagonal of a matrix.", TRIANGLE);
COMPOSITE(tril_indices_from, "The indices at and below a diagonal of x.", TRIANGLE_FROM);
COMPOSITE(triu_indices_from, "The indices at and above a diagonal of x.", TRIANGLE_FROM);

// --- flat indices -----------------------------------------------------------------------

enum { RAVEL_CLIP, RAVEL_WRAP };

typedef struct {
    tn_ints dims;
    int64_t mode;  // PLACE_...
    int64_t order; // 1: the first axis varies fastest
} ravel_attrs;

static const char *const mode_names[] = {"clip", "wrap", NULL};
static const char *const order_names[] = {"C", "F", NULL};
static const tn_input_info ravel_inputs[] = {
    {"indices", "integers, an array an axis; they broadcast",
     TN_INPUT_VARIADIC | TN_INPUT_CONSTANT, 0},
};
#define CLIP_OR_WRAP(type)                                                                 \
    TN_CHOICE_FIELD(type, mode, RAVEL_CLIP, mode_names,                                    \
                    "indices out of range are the nearest ones, or begin again")
#define ORDER_FIELD                                                                        \
    TN_CHOICE_FIELD(ravel_attrs, order, 0, order_names,                                    \
                    "C: the last axis counts first; F: the first one does")
static const tn_attr_field ravel_fields[] = {
    TN_REQUIRED_FIELD(ravel_attrs, dims, TN_ATTR_INTS, "extents"),
    CLIP_OR_WRAP(ravel_attrs),
    ORDER_FIELD,
};
static const tn_attr_field unravel_fields[] = {
    {"shape", "extents", TN_ATTR_INTS, TN_ATTR_REQUIRED, offsetof(ravel_attrs, dims), 0, 0,
     NULL},
    ORDER_FIELD,
};

static tn_status position_check_shape(const tn_host *host, const tn_ints *shape)
{
    char text[SHAPE_TEXT];
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->value[i] < 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "shape is %s, expected extents of at least 1",
                              shape_text((int32_t)shape->count, shape->value, text));
    return shape->count ? TN_OK
                        : host->fail(host, TN_ERR_ARGUMENT,
                                     "shape is [], expected at least one extent");
}

DECOMPOSE(ravel_multi_index)
{
    const ravel_attrs *attrs = rule->attrs;
    tn_status status = position_check_shape(build->host, &attrs->dims);
    if (status == TN_OK && rule->num_inputs != attrs->dims.count)
        status = build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "%u arrays of indices, expected %u, one an extent",
                                   rule->num_inputs, attrs->dims.count);
    tn_array *at = NULL;
    for (uint32_t i = 0; i < attrs->dims.count && status == TN_OK; i++) {
        uint32_t axis = attrs->order ? attrs->dims.count - 1 - i : i;
        tn_array *next = rule->inputs[axis];
        status = check_integers(build->host, "indices", build->type(next)->dtype);
        if (status)
            return status;
        next = build->expr(build,
                           attrs->mode == RAVEL_WRAP
                               ? "i -> i64(i) % n"
                               : "i -> i < 0 ? 0 : i >= n ? n - 1 : i64(i)",
                           TN_IN(next), tn_attrs("n", attrs->dims.value[axis]));
        at = !at ? next
                 : build->expr(build, "a, i -> a * n + i", TN_IN(at, next),
                               tn_attrs("n", attrs->dims.value[axis]));
    }
    outputs[0] = at;
    return status ? status : built(at);
}

static tn_status unravel_count(const tn_infer *infer, uint64_t *out_count)
{
    const ravel_attrs *attrs = infer->attrs;
    *out_count = attrs->dims.count;
    return position_check_shape(infer->host, &attrs->dims);
}

DECOMPOSE(unravel_index)
{
    const ravel_attrs *attrs = rule->attrs;
    int64_t inner = 1;
    tn_status status =
        check_integers(build->host, "x", build->type(rule->inputs[0])->dtype);
    if (status)
        return status;
    for (uint32_t i = 0; i < attrs->dims.count; i++) {
        uint32_t axis = attrs->order ? i : attrs->dims.count - 1 - i;
        int64_t n = attrs->dims.value[axis];
        outputs[axis] =
            build->expr(build, "x -> i64(x) // inner % n", TN_IN(rule->inputs[0]),
                        tn_attrs("inner", inner, "n", n));
        if (!tn_checked_multiply_extents(inner, n, &inner))
            return build->host->fail(build->host, TN_ERR_ARGUMENT, "shape overflows");
    }
    return built(outputs[0]);
}

static const tn_input_info unravel_inputs[] = {
    {"x", "integers: numbers of elements", TN_INPUT_CONSTANT, 0}};
COMPOSITE(ravel_multi_index, "The numbers of elements that have these indices: i64.",
          TN_INPUTS(ravel_inputs), .attrs = TN_ATTR_TABLE(ravel_attrs, ravel_fields));
COMPOSITE(unravel_index, "The indices of elements that have these numbers.",
          TN_INPUTS(unravel_inputs), TN_OUTPUTS(position_outputs),
          .attrs = TN_ATTR_TABLE(ravel_attrs, unravel_fields),
          .count_outputs = unravel_count);

// --- choose and select ------------------------------------------------------------------

typedef struct {
    int64_t mode;
} choose_attrs;

static const tn_attr_field choose_fields[] = {CLIP_OR_WRAP(choose_attrs)};
static const tn_input_info choose_inputs[] = {
    {"x", "integers: the number of a choice", TN_INPUT_CONSTANT, 0},
    {"choices", "arrays; all broadcast", TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};

DECOMPOSE(choose)
{
    const choose_attrs *attrs = rule->attrs;
    uint32_t n = rule->num_inputs - 1;
    tn_array *x = rule->inputs[0], *result = NULL;
    tn_status status = build->type(x)->dtype == TN_BOOL
                           ? TN_OK
                           : check_integers(build->host, "x", build->type(x)->dtype);
    if (status)
        return status;
    if (attrs->mode == RAVEL_WRAP)
        x = build->expr(build, "x -> i64(x) % n", TN_IN(x), tn_attrs("n", (int64_t)n));
    for (int32_t i = (int32_t)n - 1; i >= 0; i--)
        result = build->expr(
            build, "x, c, r -> x <= i ? c : r",
            TN_IN(x, rule->inputs[1 + i], result ? result : rule->inputs[1 + i]),
            tn_attrs("i", (int64_t)i));
    outputs[0] = result;
    return built(result);
}

COMPOSITE(choose, "At each element that of the choice which x names.",
          TN_INPUTS(choose_inputs), .attrs = TN_ATTR_TABLE(choose_attrs, choose_fields));

typedef struct {
    double default_value;
} select_attrs;

static const tn_attr_field select_fields[] = {
    TN_F64_FIELD(select_attrs, default_value, 0, "where no condition holds"),
};
static const tn_input_info select_inputs[] = {
    {"arrays", "a condition, what to take where it holds, the next condition, ...",
     TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};

DECOMPOSE(select)
{
    const select_attrs *attrs = rule->attrs;
    uint32_t n = rule->num_inputs;
    if (n % 2)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "got %u arrays, expected pairs of a condition and a choice", n);
    tn_dtype dtype = build->type(rule->inputs[1])->dtype;
    for (uint32_t i = 3; i < n; i += 2)
        dtype = tn_dtype_promote(dtype, build->type(rule->inputs[i])->dtype);
    if (attrs->default_value != trunc(attrs->default_value) &&
        tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        dtype = TN_F64;
    tn_array *result = build->scalar(build, dtype, attrs->default_value);
    for (uint32_t i = n; i > 0; i -= 2)
        result = build->expr(
            build, "c, x, r -> bool(c) ? x : r",
            TN_IN(rule->inputs[i - 2], as_dtype(build, rule->inputs[i - 1], dtype), result),
            TN_NO_ATTRS);
    outputs[0] = result;
    return built(result);
}

COMPOSITE(select, "At each element the choice of the first condition that holds there.",
          TN_INPUTS(select_inputs), .attrs = TN_ATTR_TABLE(select_attrs, select_fields));
