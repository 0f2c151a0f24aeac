// SPDX-License-Identifier: MIT
// Diagonals: diagonal and trace, which are views, and diag. Differences along an axis:
// diff.
#include "../pack.h"

typedef struct {
    int64_t offset, axis1, axis2;
    int64_t dtype; // trace
} diagonal_attrs;

static const tn_attr_field diagonal_fields[] = {
    TN_I64_FIELD(diagonal_attrs, offset, 0, "above 0: above the main diagonal"),
    TN_I64_FIELD(diagonal_attrs, axis1, 0, "axis of the rows"),
    TN_I64_FIELD(diagonal_attrs, axis2, 1, "axis of the columns"),
};
static const tn_attr_field trace_fields[] = {
    TN_I64_FIELD(diagonal_attrs, offset, 0, "above 0: above the main diagonal"),
    TN_I64_FIELD(diagonal_attrs, axis1, 0, "axis of the rows"),
    TN_I64_FIELD(diagonal_attrs, axis2, 1, "axis of the columns"),
    TN_DTYPE_FIELD(diagonal_attrs, dtype, 0, "dtype of the sum; not given: as sum has it"),
};

// The diagonal of two axes as the last axis: rows and columns are merged, and elements at
// distance m + 1 taken.
static tn_status move_diagonal_of(const tn_build *build, tn_array *x, int64_t offset,
                                  int64_t axis1, int64_t axis2, tn_array **out)
{
    const tn_host *host = build->host;
    int32_t rank = build->type(x)->rank, rows, columns;
    tn_ints order = {.given = 1};
    tn_status status = check_axis(host, axis1, rank, &rows);
    if (status == TN_OK)
        status = check_axis(host, axis2, rank, &columns);
    if (status == TN_OK && rows == columns)
        status = host->fail(host, TN_ERR_ARGUMENT, "axis1 and axis2 are both %d", rows);
    if (status)
        return status;
    for (int32_t i = 0; i < rank; i++)
        if (i != rows && i != columns)
            order.value[order.count++] = i;
    order.value[order.count++] = rows;
    order.value[order.count++] = columns;
    x = turned(build, x, &order);
    tn_ints shape = tn_extents(build, x);
    if (shape.count < 2)
        return TN_ERR_ARGUMENT;
    int64_t n = shape.value[rank - 2], m = shape.value[rank - 1];
    int64_t above = offset > m ? m : offset < -n ? -n : offset;
    int64_t left = above < 0 ? n + above : n, right = above > 0 ? m - above : m;
    int64_t count = left < right ? left : right;
    shape.count--;
    shape.value[rank - 2] = n * m;
    *out = part_of_axis(build, with_shape(build, "base.reshape/1", x, shape), rank - 2,
                        count == 0  ? 0
                        : above < 0 ? -above * m
                                    : above,
                        m + 1, count);
    return built(*out);
}

DECOMPOSE(diagonal)
{
    const diagonal_attrs *attrs = rule->attrs;
    return move_diagonal_of(build, rule->inputs[0], attrs->offset, attrs->axis1,
                            attrs->axis2, outputs);
}

DECOMPOSE(trace)
{
    const diagonal_attrs *attrs = rule->attrs;
    tn_status status = move_diagonal_of(build, rule->inputs[0], attrs->offset, attrs->axis1,
                                        attrs->axis2, outputs);
    if (status)
        return status;
    if (attrs->dtype)
        outputs[0] = cast(build, outputs[0], (tn_dtype)attrs->dtype);
    outputs[0] =
        build->op(build, "base.sum/1", TN_IN(outputs[0]), tn_attrs("axis", TN_INTS(-1)));
    if (attrs->dtype)
        outputs[0] = cast(build, outputs[0], (tn_dtype)attrs->dtype);
    return built(outputs[0]);
}

COMPOSITE(diagonal, "The diagonal of two axes, as the last axis of the result.",
          TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(diagonal_attrs, diagonal_fields));
COMPOSITE(trace, "The sum of the diagonal of two axes.", TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(diagonal_attrs, trace_fields));

// --- diag -------------------------------------------------------------------------------

static const tn_attr_field diag_fields[] = {
    TN_I64_FIELD(tn_diagonal_attrs, k, 0, "the diagonal; above 0: above the main one"),
};

// A matrix with x on diagonal k: row i has x[i] at column i + k. Elements of the diagonal
// are width + 1 apart, so they are a column of a matrix whose rows are longer by one.
static tn_status diag_matrix(const tn_build *build, tn_array *x, int64_t k, tn_array **out)
{
    int64_t n = build->type(x)->extent[0], width, longer, all;
    if (k == INT64_MIN || !tn_checked_add_signed(n, k > 0 ? k : -k, &width) ||
        !tn_checked_add_signed(width, 1, &longer) ||
        !tn_checked_multiply_extents(width, longer, &all))
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT,
            "%" PRId64 " elements on diagonal %" PRId64 " are no matrix", n, k);
    int64_t row = k < 0 ? -k - 1 : 0, column = k < 0 ? longer + k : k;
    x = with_shape(build, "base.reshape/1", x, ints_of(2, (int64_t[]){n, 1}));
    x = build->op(build, "base.pad_constant/1", TN_IN(x),
                  tn_attrs("before", TN_INTS(row, column), "after",
                           TN_INTS(width - n - row, width - column)));
    x = with_shape(build, "base.reshape/1", x, ints_of(1, &all));
    x = part_of_axis(build, x, 0, 0, 1, width * width);
    *out = with_shape(build, "base.reshape/1", x, ints_of(2, (int64_t[]){width, width}));
    return built(*out);
}

DECOMPOSE(diag)
{
    const tn_diagonal_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (x->rank == 1)
        return diag_matrix(build, rule->inputs[0], attrs->k, outputs);
    if (x->rank == 2)
        return move_diagonal_of(build, rule->inputs[0], attrs->k, 0, 1, outputs);
    return build->host->fail(build->host, TN_ERR_ARGUMENT, "x has rank %d, expected 1 or 2",
                             x->rank);
}

COMPOSITE(diag, "A diagonal of a matrix, or the matrix with the vector x on one.",
          TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(tn_diagonal_attrs, diag_fields));

// --- diff -------------------------------------------------------------------------------

typedef struct {
    int64_t n, axis;
} diff_attrs;

static const tn_input_info diff_inputs[] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"prepend", "put in front of x along the axis; a scalar is one element",
     TN_INPUT_OPTIONAL, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"append", "put behind x, likewise", TN_INPUT_OPTIONAL,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_attr_field diff_fields[] = {
    TN_I64_FIELD(diff_attrs, n, 1, "how many times differences are taken"),
    TN_I64_FIELD(diff_attrs, axis, -1, "the axis"),
};

// `part` to be joined to x: a scalar gets x's extents, and extent 1 along the axis.
static tn_array *diff_beside(const tn_build *build, tn_array *x, tn_array *part,
                             int32_t axis)
{
    const tn_type *type = build->type(part);
    if (!type || type->rank)
        return part;
    tn_ints shape = tn_extents(build, x);
    shape.value[axis] = 1;
    return with_shape(build, "base.broadcast_to/1", part, shape);
}

DECOMPOSE(diff)
{
    const diff_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *parts[3];
    const tn_type *type = build->type(x);
    uint64_t count = 0;
    int32_t axis;
    tn_status status = check_axis(build->host, attrs->axis, type->rank, &axis);
    if (status == TN_OK && attrs->n < 0)
        status = build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "n is %" PRId64 ", expected at least 0", attrs->n);
    if (status)
        return status;
    if (rule->num_inputs > 1 && rule->inputs[1])
        parts[count++] = diff_beside(build, x, rule->inputs[1], axis);
    parts[count++] = x;
    if (rule->num_inputs > 2 && rule->inputs[2])
        parts[count++] = diff_beside(build, x, rule->inputs[2], axis);
    if (count > 1)
        x = joined(build, parts, count, axis);
    const char *text = type->dtype == TN_BOOL ? "a, b -> a != b" : "a, b -> a - b";
    for (int64_t i = 0; i < attrs->n && build->type(x) && build->type(x)->extent[axis];
         i++) {
        int64_t n = build->type(x)->extent[axis];
        x = build->expr(build, text,
                        TN_IN(part_of_axis(build, x, axis, 1, 1, n - 1),
                              part_of_axis(build, x, axis, 0, 1, n - 1)),
                        TN_NO_ATTRS);
    }
    outputs[0] = x;
    return built(x);
}

COMPOSITE(diff, "Differences of neighbours along an axis.", TN_INPUTS(diff_inputs),
          .attrs = TN_ATTR_TABLE(diff_attrs, diff_fields));
