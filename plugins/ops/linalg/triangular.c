// SPDX-License-Identifier: MIT
// Systems with triangular matrices, op(a) x = b.
//
// Derivatives: Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation", 2008, section 2.3, with respect to the triangle that is
// read.
#include <tenon/ops/complex.h>
#include "memory/threads.h"

static tn_status solve_triangular_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0], *b = &infer->types[1];
    tn_status status = check_square(infer->host, "a", a);
    return status == TN_OK ? check_system(infer->host, a, b, &types[0]) : status;
}

// --- memory -----------------------------------------------------------------------------

struct triangular_system {
    struct matrix_view a, b, x;
};

// The rank of b's matrices: b of one axis is a column, and so is x.
static int32_t core_of_b(const struct batch_job *job)
{
    return job->call->inputs[1].layout.rank == 1 ? 1 : 2;
}

static struct triangular_system triangular_matrices_of(const struct batch_job *job,
                                                       int64_t index)
{
    int32_t core = core_of_b(job);
    return (struct triangular_system){job_matrix(job, &job->call->inputs[0], 2, index),
                                      job_matrix(job, &job->call->inputs[1], core, index),
                                      job_matrix(job, &job->call->outputs[0], core, index)};
}

static struct batch_job triangular_job(const tn_cpu_call *call, job_run run)
{
    const tn_layout *out = &call->outputs[0].layout, *a = &call->inputs[0].layout;
    int32_t core = call->inputs[1].layout.rank == 1 ? 1 : 2;
    double n = (double)a->extent[a->rank - 1];
    double columns = core == 2 ? (double)out->extent[out->rank - 1] : 1;
    return job_start(call, "linalg.solve_triangular", run, out, core, n * n * columns);
}

static const char *triangular_explain(int code)
{
    (void)code;
    return "is singular: there is a 0 on its diagonal";
}

static bool has_zero_pivot(const struct matrix_view *a,
                           const tn_solve_triangular_attrs *attrs)
{
    for (int64_t i = 0; i < a->rows && !attrs->unit_diagonal; i++) {
        tn_complex128 v = matrix_get(a, i, i);
        if (v.re == 0 && v.im == 0)
            return true;
    }
    return false;
}

// The definition: one row of x after the other, beginning where the triangle has one
// element. op(a) is a or its transpose, conjugated where `sign` is -1.
static int triangular_solve_plainly(const struct batch_job *job, int64_t index, char *room)
{
    const tn_solve_triangular_attrs *attrs = job->call->attrs;
    struct triangular_system m = triangular_matrices_of(job, index);
    bool lower = (attrs->lower != 0) == (attrs->transpose == TN_LINALG_NONE);
    double sign = attrs->transpose == TN_LINALG_ADJOINT ? -1 : 1;
    tn_complex128 *x = (tn_complex128 *)room;
    int64_t n = m.a.rows;
    if (has_zero_pivot(&m.a, attrs))
        return 1;
    if (attrs->transpose != TN_LINALG_NONE)
        m.a = matrix_transposed(m.a);
    for (int64_t c = 0; c < m.b.columns; c++)
        for (int64_t step = 0; step < n; step++) {
            int64_t i = lower ? step : n - 1 - step;
            tn_complex128 sum = matrix_get(&m.b, i, c);
            for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++) {
                tn_complex128 v = matrix_get(&m.a, i, k);
                v = tn_complex_multiply((tn_complex128){v.re, sign * v.im}, x[k]);
                sum.re -= v.re;
                sum.im -= v.im;
            }
            tn_complex128 pivot = matrix_get(&m.a, i, i);
            pivot.im *= sign;
            x[i] = attrs->unit_diagonal ? sum : tn_complex_divide(sum, pivot);
            matrix_set(&m.x, i, c, x[i]);
        }
    return 0;
}

static uint64_t solve_triangular_reference_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0];
    return (uint64_t)a->extent[a->rank - 1] * sizeof(tn_complex128);
}

static tn_status solve_triangular_reference(const tn_cpu_call *call)
{
    struct batch_job job = triangular_job(call, triangular_solve_plainly);
    int64_t index = 0;
    int code = job_run_all(&job, &index);
    return code == 0 ? TN_OK : job_fail(&job, index, triangular_explain(code));
}

// Whether LAPACK can read the matrix in place: rows without gaps between elements.
static bool is_by_rows(const tn_layout *a)
{
    int64_t n = a->extent[a->rank - 1], row = a->stride[a->rank - 2];
    return a->stride[a->rank - 1] == 1 && row >= n && row < INT32_MAX;
}

// Memory of a by rows is memory of its transpose m by columns, and so is x's: x^T op(a)^T =
// b^T, with op(a)^T = m, m^T or m^H.
static int triangular_solve(const struct batch_job *job, int64_t index, char *room)
{
    const tn_solve_triangular_attrs *attrs = job->call->attrs;
    static const char *const names[] = {"N", "T", "C"};
    struct triangular_system m = triangular_matrices_of(job, index);
    int n = (int)m.a.rows, k = (int)m.b.columns, lda = n, step = 1;
    const char *uplo = attrs->lower ? "U" : "L", *diag = attrs->unit_diagonal ? "U" : "N";
    if (n == 0 || k == 0)
        return 0;
    if (has_zero_pivot(&m.a, attrs))
        return 1;
    if (is_by_rows(&job->call->inputs[0].layout)) {
        lda = (int)m.a.row;
    } else {
        struct matrix_view packed = matrix_by_rows(room, m.a.dtype, n, n);
        matrix_copy(packed, m.a);
        m.a = packed;
    }
    matrix_copy(m.x, m.b);
    if (k > 1) {
        threads_triangular(job, uplo, names[attrs->transpose], diag, k, n, m.a.data, lda,
                           m.x.data);
        return 0;
    }
    // Solves m^T x = b, m x = b, or conj(m) x = b, the last one through conjugates.
    bool conjugated = attrs->transpose == TN_LINALG_ADJOINT && tn_is_complex(job->dtype);
    if (conjugated)
        matrix_conjugate(m.x);
    job->lapack->trsv(uplo, attrs->transpose == TN_LINALG_NONE ? "T" : "N", diag, &n,
                      m.a.data, &lda, m.x.data, &step, 1, 1, 1);
    if (conjugated)
        matrix_conjugate(m.x);
    return 0;
}

static void mark_zero_pivots(const struct batch_job *job, const struct small_group *group,
                             struct small_answer *answer)
{
    double pivots[SMALL_MOST_LANES];
    for (int64_t i = 0; i < group->n; i++) {
        job->small->diagonal(group, i, pivots);
        for (int64_t lane = 0; lane < job->small->lanes; lane++)
            if (pivots[lane] == 0)
                answer->zero[lane] = 1;
    }
}

// Reads op(a), whose other triangle may have anything.
static int triangular_group(const struct batch_job *job, int64_t index, int64_t count,
                            char *room, int64_t *out_failed)
{
    const tn_solve_triangular_attrs *attrs = job->call->attrs;
    const tn_cpu_call *call = job->call;
    int32_t core = core_of_b(job);
    bool turned = attrs->transpose != TN_LINALG_NONE;
    struct triangular_system m = triangular_matrices_of(job, index);
    struct small_matrices a = job_matrices(job, &call->inputs[0], 2, index, count);
    struct small_matrices b = job_matrices(job, &call->inputs[1], core, index, count);
    struct small_matrices x = job_matrices(job, &call->outputs[0], core, index, count);
    struct small_group group = job_group(job, room, m.a.rows, m.b.columns);
    struct small_answer answer = {.zero = {0}};
    if (turned)
        a.row = m.a.column, a.column = m.a.row;
    job->small->load(&group, &a, 0, m.a.rows);
    if (!attrs->unit_diagonal)
        mark_zero_pivots(job, &group, &answer);
    int code = job_group_zero(&answer, index, count, out_failed);
    if (code != 0)
        return code;
    job->small->load(&group, &b, m.a.rows, m.b.columns);
    job->small->solve(&group, (attrs->lower != 0) != turned, attrs->unit_diagonal != 0);
    job->small->store(&group, &x, m.a.rows, m.b.columns, count);
    return 0;
}

static struct batch_room triangular_room(const tn_layout *a, const tn_layout *b)
{
    struct batch_room room = {.size = 0};
    uint64_t n = (uint64_t)a->extent[a->rank - 1];
    int64_t columns = b->rank == 1 ? 1 : b->extent[b->rank - 1];
    if (!is_by_rows(a))
        room_add(&room, 0, n * n, (uint64_t)tn_dtype_bytes(a->dtype));
    if (columns > 0)
        room_add_group(&room, a->dtype, (int64_t)n, columns);
    return room;
}

static uint64_t solve_triangular_scratch(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0], *b = &query->inputs[1];
    const tn_layout batch = job_batch(out, b->rank == 1 ? 1 : 2);
    return job_scratch(query, tn_layout_count(&batch),
                       triangular_room(&query->inputs[0], b).size);
}

static tn_status solve_triangular_launch(const tn_cpu_call *call)
{
    struct batch_job job = triangular_job(call, triangular_solve);
    job.room = triangular_room(&call->inputs[0].layout, &call->inputs[1].layout);
    job_use_groups(&job, triangular_group);
    return job_launch(&job, triangular_explain);
}

// --- rules ------------------------------------------------------------------------------

// The part of a matrix that is read.
static tn_array *read_part(const tn_build *build, tn_array *a,
                           const tn_solve_triangular_attrs *attrs)
{
    int64_t k = attrs->unit_diagonal ? (attrs->lower ? -1 : 1) : 0;
    return triangle(build, a, !attrs->lower, k);
}

// op(a).
static tn_array *operated_matrix(const tn_build *build, tn_array *a, int64_t transpose)
{
    if (transpose == TN_LINALG_NONE)
        return a;
    return transpose == TN_LINALG_ADJOINT ? adjoint(build, a) : transposed(build, a);
}

// op(a)^-H b. No system has a's conjugate, so it solves for conjugates.
static tn_array *adjoint_solution(const tn_build *build, tn_array *a, tn_array *b,
                                  const tn_solve_triangular_attrs *attrs)
{
    tn_solve_triangular_attrs back = *attrs;
    back.transpose =
        attrs->transpose == TN_LINALG_NONE ? TN_LINALG_ADJOINT : TN_LINALG_NONE;
    if (attrs->transpose != TN_LINALG_TRANSPOSE)
        return triangular_solution(build, a, b, &back);
    return conjugate(build, triangular_solution(build, a, conjugate(build, b), &back));
}

static bool has_vector_side(const tn_build *build, const tn_rule *rule)
{
    const tn_type *b = build->type(rule->inputs[1]);
    return b && b->rank == 1;
}

// g' = op(a)^-H g for b, and -g' x^H for op(a).
TN_VJP(solve_triangular_vjp)
{
    const tn_solve_triangular_attrs *attrs = rule->attrs;
    tn_array *g = cotangents[0], *x = rule->outputs[0];
    bool vector = has_vector_side(build, rule);
    if (!g)
        return TN_OK;
    if (vector) {
        g = as_column(build, g);
        x = as_column(build, x);
    }
    g = adjoint_solution(build, rule->inputs[0], g, attrs);
    gradients[1] = vector ? as_vector(build, g) : g;
    if (!wants(wanted, 0))
        return TN_OK;
    tn_array *of_a = scaled(build, product(build, g, adjoint(build, x)), -1);
    gradients[0] = read_part(build, operated_matrix(build, of_a, attrs->transpose), attrs);
    return TN_OK;
}

// op(a)^-1 (t_b - op(t_a) x).
TN_JVP(solve_triangular_jvp)
{
    const tn_solve_triangular_attrs *attrs = rule->attrs;
    tn_array *t = tangents[1], *x = rule->outputs[0];
    bool vector = has_vector_side(build, rule);
    if (vector) {
        t = t ? as_column(build, t) : NULL;
        x = as_column(build, x);
    }
    if (tangents[0]) {
        tn_array *of_a =
            operated_matrix(build, read_part(build, tangents[0], attrs), attrs->transpose);
        t = plus(build, t, scaled(build, product(build, of_a, x), -1));
    }
    if (!t)
        return TN_OK;
    t = triangular_solution(build, rule->inputs[0], t, attrs);
    out_tangents[0] = vector ? as_vector(build, t) : t;
    return TN_OK;
}

TN_VMAP(solve_triangular_vmap)
{
    const tn_solve_triangular_attrs *attrs = rule->attrs;
    tn_array *a, *b;
    bool vector = batched_system(build, rule, axes, &a, &b);
    tn_array *x = triangular_solution(build, a, b, attrs);
    outputs[0] = vector ? as_vector(build, x) : x;
    out_axes[0] = 0;
    return built(outputs[0]);
}

static const tn_input_info inputs[] = {
    {"a", "triangular matrices", 0, LINALG_DTYPES},
    {"b", "right-hand sides, columns of matrices; one vector if it has one axis", 0,
     LINALG_DTYPES},
};
static const char *const transposes[] = {"none", "transpose", "adjoint", NULL};
static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(tn_solve_triangular_attrs, lower, 0, "which triangle of a is read"),
    TN_CHOICE_FIELD(tn_solve_triangular_attrs, transpose, TN_LINALG_NONE, transposes,
                    "what of a is solved with"),
    TN_BOOL_FIELD(tn_solve_triangular_attrs, unit_diagonal, 0,
                  "whether the diagonal counts as ones, and is not read"),
};
FACTORISATION(solve_triangular, solve_triangular_reference,
              solve_triangular_reference_scratch,
              "The solution of a x = b, a^T x = b or a^H x = b with triangular matrices a.",
              TN_INPUTS(inputs), .attrs = TN_ATTR_TABLE(tn_solve_triangular_attrs, fields));
