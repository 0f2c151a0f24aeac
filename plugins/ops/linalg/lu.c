// SPDX-License-Identifier: MIT
// LU factors with row exchanges: p a = l u, with l and u in one matrix.
//
// Derivatives: those of the square part come from l^-1 (p t) u^-1, whose triangles belong
// to l and u; rows below it and columns beside it follow by l u = p a.
#include "memory/threads.h"

enum { FACTORS, PIVOTS }; // parts of the room

static struct batch_room lu_room(const tn_layout *a)
{
    struct batch_room room = {.size = 0};
    uint64_t m = (uint64_t)a->extent[a->rank - 2], n = (uint64_t)a->extent[a->rank - 1];
    room_add(&room, FACTORS, tn_saturated_multiply(m, n),
             (uint64_t)tn_dtype_bytes(a->dtype));
    room_add(&room, PIVOTS, m < n ? m : n, sizeof(int));
    return room;
}

static int lu_factor_one(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view lu = job_matrix(job, &job->call->outputs[0], 2, index);
    struct matrix_view out = job_matrix(job, &job->call->outputs[1], 1, index);
    struct matrix_view packed =
        matrix_by_columns(room + job->room.at[FACTORS], a.dtype, a.rows, a.columns);
    int *pivots = (int *)(room + job->room.at[PIVOTS]);
    int m = (int)a.rows, n = (int)a.columns, info = 0;
    if (out.rows == 0)
        return 0;
    // With NaN, OpenBLAS may look for its pivot outside of the matrix.
    bool nan = !matrix_copy_numbers(packed, a);
    if (nan) {
        matrix_fill_nan(lu);
    } else {
        threads_lu(job, m, n, packed.data, m, pivots, &info);
        matrix_copy(lu, packed);
    }
    for (int64_t i = 0; i < out.rows; i++)
        *(int32_t *)matrix_at(&out, i, 0) = nan ? (int32_t)i : pivots[i] - 1;
    return info < 0 ? info : 0; // a pivot of 0 is no failure
}

static uint64_t lu_factor_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch), lu_room(a).size);
}

static tn_status lu_factor_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double m = (double)a->extent[a->rank - 2], n = (double)a->extent[a->rank - 1];
    struct batch_job job =
        job_start(call, "linalg.lu_factor", lu_factor_one, a, 2, m * n * (m < n ? m : n));
    job.room = lu_room(a);
    return job_launch(&job, job_refused);
}

// --- types and rules --------------------------------------------------------------------

static tn_status lu_factor_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_status status = check_matrices(infer->host, "a", a);
    if (status != TN_OK)
        return status;
    int64_t m = a->extent[a->rank - 2], n = a->extent[a->rank - 1];
    types[0] = *a;
    types[1] = *a;
    types[1].dtype = TN_I32;
    types[1].rank = a->rank - 1;
    types[1].extent[a->rank - 2] = m < n ? m : n;
    return TN_OK;
}

// Extents of the matrices: m rows, n columns, k of the smaller.
struct lu_extents {
    int64_t m, n, k;
    tn_dtype dtype;
    int32_t reserved; // 0
};

static struct lu_extents lu_extents_of(const tn_type *a)
{
    int64_t m = a->extent[a->rank - 2], n = a->extent[a->rank - 1];
    return (struct lu_extents){m, n, m < n ? m : n, a->dtype, 0};
}

// p as a matrix: row i has a 1 in column permutation[i].
static tn_array *permutation_matrix(const tn_build *build, tn_array *pivots,
                                    const struct lu_extents *e)
{
    tn_array *order =
        build->op(build, "linalg.lu_permutation/1", TN_IN(pivots), tn_attrs("rows", e->m));
    return build->op(build, "base.one_hot/1", TN_IN(order),
                     tn_attrs("num_classes", e->m, "dtype", (int64_t)e->dtype));
}

static tn_array *unit_lower(const tn_build *build, tn_array *lu, const struct lu_extents *e)
{
    return elementwise(
        build, "a, b -> a + b", triangle(build, columns_of(build, lu, 0, e->k), false, -1),
        build->op(build, "base.eye/1", NULL, 0,
                  tn_attrs("n", e->m, "m", e->k, "dtype", (int64_t)e->dtype)));
}

static tn_array *upper_factor(const tn_build *build, tn_array *lu,
                              const struct lu_extents *e)
{
    return triangle(build, rows_of(build, lu, 0, e->k), true, 0);
}

// l^-1 b or l^-H b, and u^-1 b or u^-H b, of the square part of lu.
static tn_array *by_lower(const tn_build *build, tn_array *square, tn_array *b,
                          bool adjoint)
{
    return triangular_solution(
        build, square, b,
        &(const tn_solve_triangular_attrs){.lower = 1,
                                           .transpose =
                                               adjoint ? TN_LINALG_ADJOINT : TN_LINALG_NONE,
                                           .unit_diagonal = 1});
}

static tn_array *by_upper(const tn_build *build, tn_array *square, tn_array *b,
                          bool adjoint)
{
    return triangular_solution(
        build, square, b,
        &(const tn_solve_triangular_attrs){.transpose = adjoint ? TN_LINALG_ADJOINT
                                                                : TN_LINALG_NONE});
}

// b u^-1 or b u^-H.
static tn_array *divided_by_upper(const tn_build *build, tn_array *square, tn_array *b,
                                  bool is_adjoint)
{
    return adjoint(build, by_upper(build, square, adjoint(build, b), !is_adjoint));
}

static tn_array *lu_square_of(const tn_build *build, tn_array *lu,
                              const struct lu_extents *e)
{
    return rows_of(build, columns_of(build, lu, 0, e->k), 0, e->k);
}

// The gradient of p a. For columns beside u1, u2 = l^-1 a2: g2 = l^-H g is a2's gradient,
// and -g2 u2^H is added to l's; rows below l1, l2 = a2 u^-1, likewise.
TN_VJP(lu_factor_vjp)
{
    tn_array *g = cotangents[0], *lu = rule->outputs[0];
    const tn_type *type = build->type(rule->inputs[0]);
    if (!g || !type)
        return TN_OK;
    const struct lu_extents e = lu_extents_of(type);
    tn_array *square = lu_square_of(build, lu, &e), *g1 = lu_square_of(build, g, &e);
    tn_array *of_l = triangle(build, g1, false, -1), *of_u = triangle(build, g1, true, 0);
    tn_array *rest = NULL;
    if (e.n > e.k) {
        tn_array *u2 = columns_of(build, lu, e.k, e.n - e.k);
        rest = by_lower(build, square, columns_of(build, g, e.k, e.n - e.k), true);
        of_l = minus(build, of_l,
                     triangle(build, product(build, rest, adjoint(build, u2)), false, -1));
    } else if (e.m > e.k) {
        tn_array *l2 = rows_of(build, lu, e.k, e.m - e.k);
        rest = divided_by_upper(build, square, rows_of(build, g, e.k, e.m - e.k), true);
        of_u = minus(build, of_u,
                     triangle(build, product(build, adjoint(build, l2), rest), true, 0));
    }
    const struct lu_extents s = {e.k, e.k, e.k, e.dtype, 0};
    tn_array *l = unit_lower(build, square, &s), *u = upper_factor(build, square, &s);
    tn_array *inner =
        plus(build, triangle(build, product(build, adjoint(build, l), of_l), false, -1),
             triangle(build, product(build, of_u, adjoint(build, u)), true, 0));
    inner = divided_by_upper(build, square, by_lower(build, square, inner, true), true);
    if (rest)
        inner = e.n > e.k ? beside(build, inner, rest) : above(build, inner, rest);
    tn_array *p = permutation_matrix(build, rule->outputs[1], &e);
    gradients[0] = product(build, transposed(build, p), inner);
    return TN_OK;
}

TN_JVP(lu_factor_jvp)
{
    tn_array *lu = rule->outputs[0];
    const tn_type *type = build->type(rule->inputs[0]);
    if (!tangents[0] || !type)
        return TN_OK;
    const struct lu_extents e = lu_extents_of(type), s = {e.k, e.k, e.k, e.dtype, 0};
    tn_array *t =
        product(build, permutation_matrix(build, rule->outputs[1], &e), tangents[0]);
    tn_array *square = lu_square_of(build, lu, &e), *t1 = lu_square_of(build, t, &e);
    tn_array *inner =
        divided_by_upper(build, square, by_lower(build, square, t1, false), false);
    tn_array *l = unit_lower(build, square, &s), *u = upper_factor(build, square, &s);
    tn_array *of_l = product(build, l, triangle(build, inner, false, -1));
    tn_array *of_u = product(build, triangle(build, inner, true, 0), u);
    tn_array *out = plus(build, of_l, of_u);
    if (e.n > e.k) {
        tn_array *u2 = columns_of(build, lu, e.k, e.n - e.k);
        tn_array *t2 =
            minus(build, columns_of(build, t, e.k, e.n - e.k), product(build, of_l, u2));
        out = beside(build, out, by_lower(build, square, t2, false));
    } else if (e.m > e.k) {
        tn_array *l2 = rows_of(build, lu, e.k, e.m - e.k);
        tn_array *t2 =
            minus(build, rows_of(build, t, e.k, e.m - e.k), product(build, l2, of_u));
        out = above(build, out, divided_by_upper(build, square, t2, false));
    }
    out_tangents[0] = out;
    return TN_OK;
}

TN_VMAP(lu_factor_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.lu_factor/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

static const tn_output_info lu_factor_outputs[] = {
    {"lu", "u in the upper triangle, l below, whose diagonal is ones", 0, 0},
    {"pivots", "row i was exchanged with row pivots[i], one after the other", 0, 0},
};
LAPACKS(lu_factor, TN_INPUTS(linalg_a),
        "LU factors of matrices with their rows exchanged, in one matrix.",
        TN_OUTPUTS(lu_factor_outputs));

DECOMPOSE(lu)
{
    const tn_type *type = build->type(rule->inputs[0]);
    tn_array *factors[2] = {NULL, NULL};
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_status status = build->op_n(build, "linalg.lu_factor/1", TN_IN(rule->inputs[0]),
                                   TN_NO_ATTRS, factors, 2);
    if (status != TN_OK)
        return status;
    const struct lu_extents e = lu_extents_of(type);
    outputs[0] = transposed(build, permutation_matrix(build, factors[1], &e));
    outputs[1] = unit_lower(build, factors[0], &e);
    outputs[2] = upper_factor(build, factors[0], &e);
    return built(outputs[2]);
}

static const tn_output_info lu_outputs[] = {
    {"p", "the permutation", 0, 0},
    {"l", "lower triangular, with ones on the diagonal", 0, 0},
    {"u", "upper triangular", 0, 0},
};
COMPOSITE(lu, "Matrices as products p l u of a permutation and two triangles.",
          TN_INPUTS(linalg_a), TN_OUTPUTS(lu_outputs));
