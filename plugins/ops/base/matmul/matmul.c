// SPDX-License-Identifier: MIT
// matmul, as numpy.matmul: batch axes broadcast; a vector becomes a matrix with one row or
// column, whose axis is removed from the result.
#include "../pack.h"
#include <tenon/ops/program.h>

static const tn_input_info matmul_inputs[] = {
    {"a", "..., m, k; or k", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"b", "..., k, n; or k; of a's dtype", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

static tn_status matmul_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *a = &infer->types[0], *b = &infer->types[1];
    char text_a[SHAPE_TEXT], text_b[SHAPE_TEXT];
    if (a->rank == 0 || b->rank == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%s is a scalar, expected rank 1 or more: multiply scales",
                          a->rank == 0 ? "a" : "b");
    if (a->dtype != b->dtype)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "b is %s, expected a's dtype %s: convert one with astype",
                          dtype_text(b->dtype), dtype_text(a->dtype));
    shape_text(a->rank, a->extent, text_a);
    shape_text(b->rank, b->extent, text_b);
    int64_t inner_a = a->extent[a->rank - 1];
    int64_t inner_b = b->extent[b->rank > 1 ? b->rank - 2 : 0];
    if (inner_a != inner_b)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "a has shape %s and b %s: the inner extents %" PRId64
                          " and %" PRId64 " differ",
                          text_a, text_b, inner_a, inner_b);
    int32_t batches = (a->rank > b->rank ? a->rank : b->rank) - 2;
    tn_type out = {.dtype = a->dtype};
    for (int32_t i = batches - 1; i >= 0; i--) {
        int64_t extent = tn_broadcast_extent(a, b, 2, i);
        if (extent < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "a has shape %s and b %s: their batch axes do not broadcast",
                              text_a, text_b);
        out.extent[out.rank++] = extent;
    }
    if (a->rank > 1)
        out.extent[out.rank++] = a->extent[a->rank - 2];
    if (b->rank > 1)
        out.extent[out.rank++] = b->extent[b->rank - 1];
    types[0] = out;
    return TN_OK;
}

// --- reference --------------------------------------------------------------------------

// Strides of an operand as a batch of matrices. The axis that a vector lacks has stride 0.
struct base_matmul_matrix {
    int64_t batch[TN_MAX_RANK]; // by batch axis of the output; 0: broadcast
    int64_t rows, columns;      // from one row, or one column, to the next
};

static struct base_matmul_matrix matrix_of(const tn_layout *x, const tn_layout *out,
                                           int32_t batches, int is_column)
{
    struct base_matmul_matrix matrix = {{0}, 0, 0};
    int32_t own = x->rank - 2;
    if (x->rank == 1) {
        matrix.rows = is_column ? x->stride[0] : 0;
        matrix.columns = is_column ? 0 : x->stride[0];
        return matrix;
    }
    matrix.rows = x->stride[own];
    matrix.columns = x->stride[own + 1];
    for (int32_t i = 0; i < own; i++)
        if (x->extent[i] == out->extent[batches - own + i])
            matrix.batch[batches - own + i] = x->stride[i];
    return matrix;
}

// base_matmul_dot() of complex numbers.
static void complex_dot(const tn_cpu_call *call, int64_t a, int64_t step_a, int64_t b,
                        int64_t step_b, int64_t k, int64_t at)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->inputs[1];
    tn_complex128 sum = {0, 0};
    for (int64_t i = 0; i < k; i++) {
        tn_complex128 product = tn_complex_multiply(tn_get_complex(x, a + i * step_a),
                                                    tn_get_complex(y, b + i * step_b));
        sum.re += product.re;
        sum.im += product.im;
    }
    tn_set_complex(&call->outputs[0], at, sum);
}

// Stores the inner product of k elements at offset `at`. For bool, the sum is a logical or.
static void base_matmul_dot(const tn_cpu_call *call, int64_t a, int64_t step_a, int64_t b,
                            int64_t step_b, int64_t k, int64_t at)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->inputs[1], *out = &call->outputs[0];
    if (tn_is_complex(x->layout.dtype)) {
        complex_dot(call, a, step_a, b, step_b, k, at);
        return;
    }
    if (tn_dtype_in(x->layout.dtype, TN_FLOAT_DTYPES)) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += tn_get_f64(x, a + i * step_a) * tn_get_f64(y, b + i * step_b);
        tn_set_f64(out, at, sum);
        return;
    }
    int is_bool = x->layout.dtype == TN_BOOL;
    uint64_t sum = 0; // wraps
    for (int64_t i = 0; i < k; i++) {
        uint64_t product = (uint64_t)tn_get_i64(x, a + i * step_a) *
                           (uint64_t)tn_get_i64(y, b + i * step_b);
        sum = is_bool ? sum | product : sum + product;
    }
    tn_set_i64(out, at, (int64_t)sum);
}

static tn_status matmul_reference(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout, *b = &call->inputs[1].layout;
    const tn_layout *out = &call->outputs[0].layout;
    int32_t has_rows = a->rank > 1, has_columns = b->rank > 1;
    int32_t batches = out->rank - has_rows - has_columns;
    struct base_matmul_matrix left = matrix_of(a, out, batches, 0);
    struct base_matmul_matrix right = matrix_of(b, out, batches, 1);
    int64_t index[TN_MAX_RANK] = {0}, k = a->extent[a->rank - 1];
    if (tn_layout_count(out) == 0)
        return TN_OK;
    do {
        int64_t from_a = a->offset, from_b = b->offset;
        for (int32_t i = 0; i < batches; i++) {
            from_a += index[i] * left.batch[i];
            from_b += index[i] * right.batch[i];
        }
        if (has_rows)
            from_a += index[batches] * left.rows;
        if (has_columns)
            from_b += index[batches + has_rows] * right.columns;
        base_matmul_dot(call, from_a, left.columns, from_b, right.rows, k,
                        tn_offset_at(out, index));
    } while (tn_index_next(out->rank, out->extent, index));
    return TN_OK;
}

// --- derivatives ------------------------------------------------------------------------

static tn_array *base_matmul_build(const tn_build *build, const tn_array *a,
                                   const tn_array *b)
{
    return build->op(build, "base.matmul/1", TN_IN(a, b), TN_NO_ATTRS);
}

// x with its last two axes swapped.
static tn_array *base_matmul_swapped(const tn_build *build, const tn_array *x)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    tn_ints axes = {.count = (uint32_t)type->rank, .given = 1};
    for (int32_t i = 0; i < type->rank; i++)
        axes.value[i] = i;
    axes.value[type->rank - 2] = type->rank - 1;
    axes.value[type->rank - 1] = type->rank - 2;
    return build->op(build, "base.transpose/1", TN_IN(x), tn_attrs("axes", &axes));
}

static tn_array *base_matmul_with_axis(const tn_build *build, const tn_array *x,
                                       int64_t axis)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x),
                     tn_attrs("axis", TN_INTS(axis)));
}

static tn_array *without_axis(const tn_build *build, const tn_array *x, int64_t axis)
{
    return build->op(build, "base.squeeze/1", TN_IN(x), tn_attrs("axis", TN_INTS(axis)));
}

// The conjugate of a complex x; x itself for other dtypes.
static tn_array *base_matmul_conjugate(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    return type && tn_is_complex(type->dtype)
               ? build->op(build, "base.conjugate/1", TN_IN(x), TN_NO_ATTRS)
               : x;
}

// x as one matrix, whose rows are those of all batches.
static tn_array *as_one_matrix(const tn_build *build, tn_array *x)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type || type->rank == 2)
        return x;
    int64_t rows = 1;
    for (int32_t i = 0; i < type->rank - 1; i++)
        rows *= type->extent[i]; // at most the number of x's elements
    return build->op(build, "base.reshape/1", TN_IN(x),
                     tn_attrs("shape", TN_INTS(rows, type->extent[type->rank - 1])));
}

// The gradient of b, from matrices a and g. It has the batch axes of both, which the core
// sums to b's own; where b is one matrix for all of a's, one product suffices.
static tn_array *right_gradient(const tn_build *build, tn_array *a, const tn_array *b,
                                tn_array *g)
{
    // An array that could not be built is NULL, and its use fails.
    if (a && b && build->type(b)->rank == 2 && build->type(a)->rank > 2) {
        a = as_one_matrix(build, a);
        g = as_one_matrix(build, g);
    }
    return base_matmul_build(
        build, base_matmul_swapped(build, base_matmul_conjugate(build, a)), g);
}

// Both gradients have the result's batch axes here: the core sums the gradient of a
// broadcast operand to the operand's extents.
static tn_status matmul_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    tn_array *a = rule->inputs[0], *b = rule->inputs[1], *g = cotangents[0];
    int is_row = build->type(a)->rank == 1, is_column = build->type(b)->rank == 1;
    if (is_row && is_column) { // the result is a scalar
        for (uint32_t i = 0; i < 2; i++)
            if (wants(wanted, i))
                gradients[i] =
                    build->expr(build, "g, x -> g * x",
                                TN_IN(g, base_matmul_conjugate(build, rule->inputs[1 - i])),
                                TN_NO_ATTRS);
        return built_wanted(wanted, gradients, 2);
    }
    if (is_row) {
        a = base_matmul_with_axis(build, a, 0);
        g = base_matmul_with_axis(build, g, -2);
    }
    if (is_column) {
        b = base_matmul_with_axis(build, b, 1);
        g = base_matmul_with_axis(build, g, -1);
    }
    if (wants(wanted, 0))
        gradients[0] = base_matmul_build(
            build, g, base_matmul_swapped(build, base_matmul_conjugate(build, b)));
    if (wants(wanted, 1))
        gradients[1] = right_gradient(build, a, b, g);
    if (wants(wanted, 0) && is_row)
        gradients[0] = without_axis(build, gradients[0], -2);
    if (wants(wanted, 1) && is_column)
        gradients[1] = without_axis(build, gradients[1], -1);
    return built_wanted(wanted, gradients, 2);
}

static tn_status matmul_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    tn_array *left = NULL, *right = NULL;
    if (tangents[0])
        left = base_matmul_build(build, tangents[0], rule->inputs[1]);
    if (tangents[1])
        right = base_matmul_build(build, rule->inputs[0], tangents[1]);
    if (tangents[0] && tangents[1])
        left = build->expr(build, "x, y -> x + y", TN_IN(left, right), TN_NO_ATTRS);
    out_tangents[0] = tangents[0] ? left : right;
    return built(out_tangents[0]);
}

// x as matrices: a vector gets axis `new_axis`. A batch axis (-1: none) comes first; behind
// it axes of extent 1 pad x to rank `rank`, so that x's own batch axes broadcast.
static tn_array *batch_matrices(const tn_build *build, tn_array *x, int32_t batch,
                                int64_t new_axis, int32_t rank)
{
    int32_t own = build->type(x)->rank - (batch >= 0);
    if (batch > 0)
        x = tn_move_axis(build, x, batch, 0);
    if (own == 1)
        x = base_matmul_with_axis(build, x, new_axis);
    return batch >= 0 ? tn_batch_first(build, x, 0, rank) : x;
}

// A batch of vectors is one matrix when the other operand has no batch. Otherwise the batch
// is one more batch axis of matmul.
tn_status matmul_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes)
{
    tn_array *a = rule->inputs[0], *b = rule->inputs[1];
    int32_t rank_a = build->type(a)->rank - (axes[0] >= 0);
    int32_t rank_b = build->type(b)->rank - (axes[1] >= 0);
    (void)size;
    out_axes[0] = 0;
    if (axes[1] < 0 && rank_a == 1) {
        outputs[0] = base_matmul_build(build, tn_move_axis(build, a, axes[0], 0), b);
        out_axes[0] = rank_b > 2 ? rank_b - 2 : 0;
    } else if (axes[0] < 0 && rank_b == 1) {
        outputs[0] = base_matmul_build(build, a, tn_move_axis(build, b, axes[1], 1));
        out_axes[0] = rank_a - 1;
    } else {
        int32_t rank = rank_a > rank_b ? rank_a : rank_b;
        rank = rank < 2 ? 3 : rank + 1;
        outputs[0] = base_matmul_build(build, batch_matrices(build, a, axes[0], -2, rank),
                                       batch_matrices(build, b, axes[1], -1, rank));
        if (rank_a == 1)
            outputs[0] = without_axis(build, outputs[0], -2);
        if (rank_b == 1)
            outputs[0] = without_axis(build, outputs[0], -1);
    }
    return built(outputs[0]);
}

const tn_primitive base_matmul = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.matmul/1",
    .doc = "The matrix product of the last two axes; others are batches and broadcast.",
    TN_INPUTS(matmul_inputs),
    .infer = matmul_infer,
    .reference = matmul_reference,
    .vjp = matmul_vjp,
    .jvp = matmul_jvp,
    .vmap = matmul_vmap,
};
