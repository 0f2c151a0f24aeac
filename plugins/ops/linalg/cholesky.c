// SPDX-License-Identifier: MIT
// The Cholesky factorisation, a = L L^H or U^H U.
//
// Derivatives: Murray, "Differentiation of the Cholesky decomposition", 2016, section 3. As
// PyTorch's they assume a Hermitian a: the gradient is Hermitian, and of a tangent only the
// Hermitian part counts.
#include "memory/threads.h"

static tn_status cholesky_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_square(infer->host, "a", &infer->types[0]);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

// --- memory -----------------------------------------------------------------------------

static struct batch_job cholesky_job(const tn_cpu_call *call, job_run run)
{
    const tn_layout *l = &call->outputs[0].layout;
    double n = (double)l->extent[l->rank - 1];
    return job_start(call, "linalg.cholesky", run, l, 2, n * n * n / 3);
}

static bool cholesky_is_upper(const struct batch_job *job)
{
    return ((const tn_cholesky_attrs *)job->call->attrs)->upper != 0;
}

static const char *cholesky_explain(int code)
{
    (void)code;
    return "is not positive definite";
}

// The definition, row by row of L; for an upper factor matrices are read and written as
// their adjoints. Returns the number, from 1, of the first pivot that is not greater than
// 0.
static int cholesky_factor_plainly(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view l = job_matrix(job, &job->call->outputs[0], 2, index);
    double sign = cholesky_is_upper(job) ? -1 : 1;
    tn_complex128 *rows = (tn_complex128 *)room; // of L, in f64
    int64_t n = a.rows;
    if (sign < 0)
        a = matrix_transposed(a), l = matrix_transposed(l);
    for (int64_t i = 0; i < n; i++) {
        tn_complex128 *row = rows + i * n;
        for (int64_t j = 0; j <= i; j++) {
            const tn_complex128 *other = rows + j * n;
            tn_complex128 sum = matrix_get(&a, i, j);
            sum.im *= sign;
            for (int64_t k = 0; k < j; k++) {
                sum.re -= row[k].re * other[k].re + row[k].im * other[k].im;
                sum.im -= row[k].im * other[k].re - row[k].re * other[k].im;
            }
            if (i == j && !(sum.re > 0))
                return (int)(i + 1);
            double pivot = i == j ? sqrt(sum.re) : other[j].re;
            row[j] = i == j ? (tn_complex128){pivot, 0}
                            : (tn_complex128){sum.re / pivot, sum.im / pivot};
            matrix_set(&l, i, j, (tn_complex128){row[j].re, sign * row[j].im});
        }
        for (int64_t j = i + 1; j < n; j++)
            matrix_set(&l, i, j, (tn_complex128){0, 0});
    }
    return 0;
}

static uint64_t cholesky_reference_scratch(const tn_kernel_query *query)
{
    const tn_layout *l = &query->outputs[0];
    uint64_t n = (uint64_t)l->extent[l->rank - 1];
    return tn_saturated_multiply(n * n, sizeof(tn_complex128));
}

static tn_status cholesky_reference(const tn_cpu_call *call)
{
    struct batch_job job = cholesky_job(call, cholesky_factor_plainly);
    int64_t index = 0;
    int code = job_run_all(&job, &index);
    return code == 0 ? TN_OK : job_fail(&job, index, cholesky_explain(code));
}

// The least rows of matrices whose lower triangle is factored in a transposed copy: in
// place it would be, by columns, an upper factor, for which OpenBLAS' potrf takes up to 2
// times as long.
#define LEAST_TURNED 64
#define MOST_TURNED 600
enum { TURNED }; // part of the room

static bool cholesky_transposes(int64_t n, bool is_upper)
{
    return !is_upper && n >= LEAST_TURNED && n <= MOST_TURNED;
}

// Memory of L by rows is memory of its transpose U by columns: conj(a) = U^H U, and conj(a)
// by columns is a by rows.
static int cholesky_factor(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view l = job_matrix(job, &job->call->outputs[0], 2, index);
    int n = (int)l.rows, info = 0;
    bool is_upper = cholesky_is_upper(job);
    if (n == 0)
        return 0;
    if (cholesky_transposes(n, is_upper) && !threads_share(job, n)) {
        struct matrix_view turned =
            matrix_by_columns(room + job->room.at[TURNED], l.dtype, n, n);
        matrix_copy_triangle(turned, a, false);
        threads_cholesky(job, false, n, turned.data, &info);
        matrix_copy_triangle(l, turned, false);
    } else {
        matrix_copy_triangle(l, a, is_upper);
        threads_cholesky(job, !is_upper, n, l.data, &info);
    }
    for (int64_t i = 0; i < n && info == 0; i++) // OpenBLAS does not report NaN
        if (!(matrix_get(&l, i, i).re > 0))
            info = (int)(i + 1);
    return info;
}

// An upper factor is the transpose of the lower factor of the transposed matrix.
static int cholesky_group(const struct batch_job *job, int64_t index, int64_t count,
                          char *room, int64_t *out_failed)
{
    const tn_cpu_call *call = job->call;
    const tn_layout *l = &call->outputs[0].layout;
    int64_t n = l->extent[l->rank - 1];
    struct small_matrices from = job_matrices(job, &call->inputs[0], 2, index, count);
    struct small_matrices to = job_matrices(job, &call->outputs[0], 2, index, count);
    struct small_group group = job_group(job, room, n, 0);
    struct small_answer answer;
    if (cholesky_is_upper(job)) {
        int64_t row = from.row;
        from.row = from.column, from.column = row;
        row = to.row;
        to.row = to.column, to.column = row;
    }
    job->small->load(&group, &from, 0, n);
    job->small->cholesky(&group, &answer);
    int code = job_group_zero(&answer, index, count, out_failed);
    if (code == 0)
        job->small->store(&group, &to, 0, n, count);
    return code;
}

static struct batch_room cholesky_room(const tn_layout *l, const tn_cholesky_attrs *attrs)
{
    struct batch_room room = {.size = 0};
    int64_t n = l->extent[l->rank - 1];
    if (cholesky_transposes(n, attrs->upper != 0))
        room_add(&room, TURNED, (uint64_t)(n * n), (uint64_t)tn_dtype_bytes(l->dtype));
    room_add_group(&room, l->dtype, n, 0);
    return room;
}

static uint64_t cholesky_scratch(const tn_kernel_query *query)
{
    const tn_layout *l = &query->outputs[0], batch = job_batch(l, 2);
    return job_scratch(query, tn_layout_count(&batch), cholesky_room(l, query->attrs).size);
}

static tn_status cholesky_launch(const tn_cpu_call *call)
{
    struct batch_job job = cholesky_job(call, cholesky_factor);
    job.room = cholesky_room(&call->outputs[0].layout, call->attrs);
    job_use_groups(&job, cholesky_group);
    return job_launch(&job, cholesky_explain);
}

// --- rules ------------------------------------------------------------------------------

static tn_array *factor_solution(const tn_build *build, tn_array *l, tn_array *b,
                                 int64_t transpose)
{
    return triangular_solution(
        build, l, b,
        &(const tn_solve_triangular_attrs){.lower = 1, .transpose = transpose});
}

// The factor L of an application; conjugates and transposes are views or cheap.
static tn_array *lower_factor(const tn_build *build, const tn_rule *rule)
{
    bool upper = ((const tn_cholesky_attrs *)rule->attrs)->upper != 0;
    return upper ? adjoint(build, rule->outputs[0]) : rule->outputs[0];
}

// L^-H (P + P^H) L^-1 / 2 with P the lower triangle of L^H g, its diagonal halved.
TN_VJP(cholesky_vjp)
{
    bool upper = ((const tn_cholesky_attrs *)rule->attrs)->upper != 0;
    tn_array *l = lower_factor(build, rule), *g = cotangents[0];
    if (!g)
        return TN_OK;
    g = upper ? adjoint(build, g) : g;
    tn_array *p = half_triangle(build, product(build, adjoint(build, l), g));
    tn_array *s = factor_solution(build, l, hermitian_part(build, p), TN_LINALG_ADJOINT);
    gradients[0] =
        adjoint(build, factor_solution(build, l, adjoint(build, s), TN_LINALG_ADJOINT));
    return TN_OK;
}

// L times the lower triangle of L^-1 t L^-H, its diagonal halved.
TN_JVP(cholesky_jvp)
{
    bool upper = ((const tn_cholesky_attrs *)rule->attrs)->upper != 0;
    tn_array *l = lower_factor(build, rule);
    if (!tangents[0])
        return TN_OK;
    tn_array *x =
        factor_solution(build, l, hermitian_part(build, tangents[0]), TN_LINALG_NONE);
    tn_array *m = factor_solution(build, l, adjoint(build, x), TN_LINALG_NONE);
    tn_array *t = product(build, l, half_triangle(build, m));
    out_tangents[0] = upper ? adjoint(build, t) : t;
    return TN_OK;
}

TN_VMAP(cholesky_vmap)
{
    const tn_cholesky_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.cholesky/1",
                            tn_attrs("upper", attrs->upper), outputs, out_axes);
}

static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(tn_cholesky_attrs, upper, 0, "whether the factor is upper triangular"),
};
FACTORISATION(cholesky, cholesky_reference, cholesky_reference_scratch,
              "The triangular factor of a Hermitian positive definite matrix, of which one "
              "triangle is read.",
              TN_INPUTS(linalg_a), .attrs = TN_ATTR_TABLE(tn_cholesky_attrs, fields));
