// SPDX-License-Identifier: MIT
// The adjugate, with a adjugate(a) = det(a): the transposed cofactors, which a singular
// matrix has, too. It is the derivative of the determinant.
//
// Computed from the inverse where a is far from singular; else from the singular value
// decomposition: det(u vh) v diag(c) u^H, where c_i is the product of all s but s_i.
#include <tenon/ops/complex.h>
#include "svd.h"

enum { PIVOTS = SVD_PARTS, WORK, VALUES, LEFT, RIGHT }; // further parts of the room

static struct batch_room adjugate_room(const tn_layout *a)
{
    const struct lapack *lapack = lapack_find(a->dtype, NULL);
    struct batch_room room = {.size = 0};
    int64_t n = a->extent[a->rank - 1];
    uint64_t bytes = (uint64_t)tn_dtype_bytes(a->dtype), count = (uint64_t)n;
    int rows = (int)n, query = -1, info = 0, pivot = 1, lda = n > 0 ? rows : 1;
    tn_complex128 none = {0, 0}, answer = {0, 0};
    svd_room_add(&room, a->dtype, "S", n, n);
    if (lapack)
        lapack->getri(&rows, &none, &lda, &pivot, &answer, &query, &info);
    room_add(&room, PIVOTS, count, sizeof(int));
    room_add_work(&room, WORK, a->dtype, &answer);
    room_add(&room, VALUES, count, bytes);
    room_add(&room, LEFT, count * count, bytes);
    room_add(&room, RIGHT, count * count, bytes);
    return room;
}

// The determinant of LAPACK's factors.
static tn_complex128 determinant_of_factors(const struct matrix_view *lu, const int *pivots)
{
    tn_complex128 v = {1, 0};
    for (int64_t i = 0; i < lu->rows; i++) {
        v = tn_complex_multiply(v, matrix_get(lu, i, i));
        if (pivots[i] != i + 1)
            v = (tn_complex128){-v.re, -v.im};
    }
    return v;
}

static double greatest_row_sum(const struct matrix_view *a)
{
    double most = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < a->columns; j++) {
            tn_complex128 v = matrix_get(a, i, j);
            sum += hypot(v.re, v.im);
        }
        most = sum > most ? sum : most;
    }
    return most;
}

// Fills x from the inverse. False: a is too close to singular.
static bool by_inverse(const struct batch_job *job, struct matrix_view a,
                       struct matrix_view x, char *room)
{
    int n = (int)a.rows, info = 0, lwork = (int)job->room.length[WORK];
    int *pivots = (int *)(room + job->room.at[PIVOTS]);
    double epsilon = tn_dtype_real(a.dtype) == TN_F32 ? 0x1p-23 : 0x1p-52;
    matrix_copy(x, a);
    job->lapack->getrf(&n, &n, x.data, &n, pivots, &info);
    if (info != 0)
        return false;
    tn_complex128 det = determinant_of_factors(&x, pivots);
    job->lapack->getri(&n, x.data, &n, pivots, room + job->room.at[WORK], &lwork, &info);
    double condition = greatest_row_sum(&a) * greatest_row_sum(&x);
    if (info != 0 || !(condition * sqrt(epsilon) < 0.01))
        return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            matrix_set(&x, i, j, tn_complex_multiply(det, matrix_get(&x, i, j)));
    return true;
}

// The determinant of `a`, in `room` memory of its size.
static tn_complex128 determinant_of(const struct batch_job *job, struct matrix_view a,
                                    void *factors, char *room)
{
    int n = (int)a.rows, info = 0, *pivots = (int *)(room + job->room.at[PIVOTS]);
    struct matrix_view lu = matrix_by_rows(factors, a.dtype, n, n);
    matrix_copy(lu, a);
    job->lapack->getrf(&n, &n, factors, &n, pivots, &info);
    return determinant_of_factors(&lu, pivots);
}

static double adjugate_value_at(const struct matrix_view *s, int64_t i)
{
    return matrix_get(s, i, 0).re;
}

static int by_singular_values(const struct batch_job *job, struct matrix_view a,
                              struct matrix_view x, char *room)
{
    int64_t n = a.rows;
    struct matrix_view s = {
        room + job->room.at[VALUES], tn_dtype_real(a.dtype), 0, n, 1, 1, 1};
    struct matrix_view u = matrix_by_rows(room + job->room.at[LEFT], a.dtype, n, n);
    struct matrix_view vh = matrix_by_rows(room + job->room.at[RIGHT], a.dtype, n, n);
    int code = svd_run(job, a, "S", s.data, u.data, vh.data, room);
    if (code != 0)
        return code;
    char *factors = room + job->room.at[SVD_MATRIX];
    tn_complex128 turn = tn_complex_multiply(determinant_of(job, u, factors, room),
                                             determinant_of(job, vh, factors, room));
    for (int64_t i = 0; i < n * n; i++)
        matrix_set(&x, i / n, i % n, (tn_complex128){0, 0});
    for (int64_t k = 0; k < n; k++) {
        double others = 1;
        for (int64_t i = 0; i < n; i++)
            others *= i == k ? 1 : adjugate_value_at(&s, i);
        for (int64_t i = 0; i < n && others != 0; i++) {
            tn_complex128 v = matrix_get(&vh, k, i);
            v = tn_complex_multiply(turn, (tn_complex128){v.re * others, -v.im * others});
            for (int64_t j = 0; j < n; j++) {
                tn_complex128 w = matrix_get(&u, j, k), sum = matrix_get(&x, i, j);
                w = tn_complex_multiply(v, (tn_complex128){w.re, -w.im});
                matrix_set(&x, i, j, (tn_complex128){sum.re + w.re, sum.im + w.im});
            }
        }
    }
    return 0;
}

static int adjugate_one(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view x = job_matrix(job, &job->call->outputs[0], 2, index);
    if (a.rows == 0)
        return 0;
    if (!matrix_is_finite(a)) {
        matrix_fill_nan(x);
        return 0;
    }
    return by_inverse(job, a, x, room) ? 0 : by_singular_values(job, a, x, room);
}

static uint64_t adjugate_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch), adjugate_room(a).size);
}

static tn_status adjugate_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)a->extent[a->rank - 1];
    struct batch_job job =
        job_start(call, "linalg.adjugate", adjugate_one, a, 2, 3 * n * n * n);
    job.room = adjugate_room(a);
    return job_launch(&job, svd_explain);
}

// --- types and rules --------------------------------------------------------------------

static tn_status adjugate_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_square(infer->host, "a", &infer->types[0]);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_array *of_matrix(const tn_build *build, const char *primitive, tn_array *a)
{
    return build->op(build, primitive, TN_IN(a), TN_NO_ATTRS);
}

static tn_array *sum_of_elements(const tn_build *build, tn_array *a)
{
    return build->op(build, "base.sum/1", TN_IN(a),
                     tn_attrs("axis", TN_INTS(-2, -1), "keepdims", INT64_C(1)));
}

// The derivative of the product of determinant and inverse, so a must be invertible.
TN_VJP(adjugate_vjp)
{
    tn_array *a = rule->inputs[0], *g = cotangents[0];
    if (!g)
        return TN_OK;
    tn_array *x = of_matrix(build, "linalg.inv/1", a), *xh = adjoint(build, x);
    tn_array *d = as_column(build, as_column(build, of_matrix(build, "linalg.det/1", a)));
    tn_array *of_d =
        sum_of_elements(build, elementwise(build, "x, g -> conj(x) * g", x, g));
    tn_array *through = product(build, product(build, xh, g), xh);
    gradients[0] = build->expr(build, "d, s, x, t -> conj(d) * (s * x - t)",
                               TN_IN(d, of_d, xh, through), TN_NO_ATTRS);
    return TN_OK;
}

TN_JVP(adjugate_jvp)
{
    tn_array *a = rule->inputs[0], *t = tangents[0];
    if (!t)
        return TN_OK;
    tn_array *x = of_matrix(build, "linalg.inv/1", a);
    tn_array *d = as_column(build, as_column(build, of_matrix(build, "linalg.det/1", a)));
    tn_array *trace = sum_of_elements(
        build, elementwise(build, "x, t -> x * t", x, transposed(build, t)));
    tn_array *through = product(build, product(build, x, t), x);
    out_tangents[0] = build->expr(build, "d, s, x, t -> d * (s * x - t)",
                                  TN_IN(d, trace, x, through), TN_NO_ATTRS);
    return TN_OK;
}

TN_VMAP(adjugate_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.adjugate/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

LAPACKS(adjugate, TN_INPUTS(linalg_a),
        "The transposed cofactors of matrices, of singular ones too: a out = det(a).");
