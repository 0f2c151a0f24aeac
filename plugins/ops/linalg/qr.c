// SPDX-License-Identifier: MIT
// The QR factorisation.
//
// Derivatives: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions
// with application in optimum experimental design", 2010, in PyTorch's form; of a wide
// matrix, whose columns are [a1 a2] with a1 square, by r2 = q^H a2.
#include "memory/batch.h"

enum { FACTORS, TAU, FACTOR_WORK, FORM_WORK }; // parts of the room

struct qr_extents {
    int64_t m, n, k; // k: columns of q
};

static struct qr_extents qr_extents_of(int64_t m, int64_t n, const void *attrs)
{
    bool complete = ((const tn_qr_attrs *)attrs)->mode == TN_LINALG_COMPLETE;
    return (struct qr_extents){m, n, complete || m < n ? m : n};
}

static struct qr_extents layout_extents(const tn_layout *a, const void *attrs)
{
    return qr_extents_of(a->extent[a->rank - 2], a->extent[a->rank - 1], attrs);
}

static struct batch_room qr_room(const tn_layout *a, const void *attrs)
{
    const struct lapack *lapack = lapack_find(a->dtype, NULL);
    struct batch_room room = {.size = 0};
    struct qr_extents e = layout_extents(a, attrs);
    int m = (int)e.m, n = (int)e.n, columns = (int)e.k, query = -1, info = 0;
    int k = m < n ? m : n;
    uint64_t bytes = (uint64_t)tn_dtype_bytes(a->dtype);
    tn_complex128 none = {0, 0}, first = {0, 0}, second = {0, 0};
    if (lapack && k > 0) {
        lapack->geqrf(&m, &n, &none, &m, &none, &first, &query, &info);
        lapack->orgqr(&m, &columns, &k, &none, &m, &none, &second, &query, &info);
    }
    room_add(&room, FACTORS,
             tn_saturated_multiply((uint64_t)m, (uint64_t)(n > columns ? n : columns)),
             bytes);
    room_add(&room, TAU, (uint64_t)k, bytes);
    room_add_work(&room, FACTOR_WORK, a->dtype, &first);
    room_add_work(&room, FORM_WORK, a->dtype, &second);
    return room;
}

static int qr_factor(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view q = job_matrix(job, &job->call->outputs[0], 2, index);
    struct matrix_view r = job_matrix(job, &job->call->outputs[1], 2, index);
    int m = (int)a.rows, n = (int)a.columns, columns = (int)q.columns, info = 0;
    int k = m < n ? m : n;
    int first = (int)job->room.length[FACTOR_WORK],
        second = (int)job->room.length[FORM_WORK];
    char *tau = room + job->room.at[TAU];
    struct matrix_view packed =
        matrix_by_columns(room + job->room.at[FACTORS], a.dtype, m, n);
    if (k == 0) {
        matrix_fill_identity(q);
        return 0; // r has no elements
    }
    matrix_copy(packed, a);
    job->lapack->geqrf(&m, &n, packed.data, &m, tau, room + job->room.at[FACTOR_WORK],
                       &first, &info);
    if (info != 0)
        return info;
    packed.rows = r.rows;
    matrix_copy_triangle(r, packed, true);
    packed.rows = m;
    packed.columns = columns;
    job->lapack->orgqr(&m, &columns, &k, packed.data, &m, tau,
                       room + job->room.at[FORM_WORK], &second, &info);
    matrix_copy(q, packed);
    return info;
}

static uint64_t qr_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch), qr_room(a, query->attrs).size);
}

static tn_status qr_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    struct qr_extents e = layout_extents(a, call->attrs);
    struct batch_job job = job_start(call, "linalg.qr", qr_factor, a, 2,
                                     4.0 * (double)e.m * (double)e.n * (double)e.k);
    job.room = qr_room(a, call->attrs);
    return job_launch(&job, job_refused);
}

// --- types and rules --------------------------------------------------------------------

static tn_status qr_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_status status = check_matrices(infer->host, "a", a);
    if (status != TN_OK)
        return status;
    struct qr_extents e =
        qr_extents_of(a->extent[a->rank - 2], a->extent[a->rank - 1], infer->attrs);
    types[0] = types[1] = *a;
    types[0].extent[a->rank - 1] = e.k;
    types[1].extent[a->rank - 2] = e.k;
    return TN_OK;
}

// Fails where a does not determine all columns of q.
static tn_status check_derivative(const tn_build *build, const tn_rule *rule,
                                  struct qr_extents *out)
{
    const tn_type *a = build->type(rule->inputs[0]);
    if (!a)
        return TN_ERR_ARGUMENT;
    *out = qr_extents_of(a->extent[a->rank - 2], a->extent[a->rank - 1], rule->attrs);
    if (out->k <= out->n)
        return TN_OK;
    return build->host->fail(
        build->host, TN_ERR_UNSUPPORTED,
        "a has %" PRId64 " rows and %" PRId64
        " columns: of mode complete with more rows than columns there is "
        "no derivative, which mode reduced has",
        out->m, out->n);
}

// b r^-1 or b r^-H, with a square upper triangular r.
static tn_array *divided_by_triangle(const tn_build *build, tn_array *r, tn_array *b,
                                     bool is_adjoint)
{
    const tn_solve_triangular_attrs attrs = {.transpose = is_adjoint ? TN_LINALG_NONE
                                                                     : TN_LINALG_ADJOINT};
    return adjoint(build, triangular_solution(build, r, adjoint(build, b), &attrs));
}

// [g_q + q (P + P^H)] r^-H with P the upper triangle of g_r r^H - q^H g_q, its diagonal
// halved. NULL stands for zero.
static tn_array *tall_gradient(const tn_build *build, tn_array *q, tn_array *r,
                               tn_array *of_q, tn_array *of_r)
{
    tn_array *inner = of_r ? product(build, of_r, adjoint(build, r)) : NULL;
    if (of_q) {
        tn_array *other = scaled(build, product(build, adjoint(build, q), of_q), -1);
        inner = plus(build, inner, other);
    }
    inner = half_triangle(build, adjoint(build, inner));
    inner = product(build, q, plus(build, inner, adjoint(build, inner)));
    return divided_by_triangle(build, r, plus(build, of_q, inner), true);
}

TN_VJP(qr_vjp)
{
    struct qr_extents e;
    tn_array *q = rule->outputs[0], *r = rule->outputs[1];
    tn_array *of_q = cotangents[0], *of_r = cotangents[1];
    tn_status status = check_derivative(build, rule, &e);
    if (status != TN_OK || (!of_q && !of_r))
        return status;
    if (e.n <= e.k) {
        gradients[0] = tall_gradient(build, q, r, of_q, of_r);
        return TN_OK;
    }
    tn_array *r1 = columns_of(build, r, 0, e.k), *second = NULL, *first = NULL;
    if (of_r) {
        tn_array *a2 = columns_of(build, rule->inputs[0], e.k, e.n - e.k);
        tn_array *g2 = columns_of(build, of_r, e.k, e.n - e.k);
        first = columns_of(build, of_r, 0, e.k);
        second = product(build, q, g2);
        of_q = plus(build, of_q, product(build, a2, adjoint(build, g2)));
    } else {
        second = build->op(build, "base.zeros_like/1",
                           TN_IN(columns_of(build, rule->inputs[0], e.k, e.n - e.k)),
                           TN_NO_ATTRS);
    }
    gradients[0] = beside(build, tall_gradient(build, q, r1, of_q, first), second);
    return TN_OK;
}

// With w = t r^-1 and m = q^H w: q's tangent is w - q (m - s), r's is (m - s) r, where s is
// the skew-Hermitian matrix that has the elements below m's diagonal.
static void tall_tangents(const tn_build *build, tn_array *q, tn_array *r, tn_array *t,
                          tn_array **out_q, tn_array **out_r)
{
    tn_array *w = divided_by_triangle(build, r, t, false);
    tn_array *m = product(build, adjoint(build, q), w);
    tn_array *below = triangle(build, m, false, -1);
    tn_array *skew = elementwise(build, "m, h -> (m - h) * 0.5", m, adjoint(build, m));
    skew = triangle(build, triangle(build, skew, false, 0), true, 0); // its diagonal
    skew = plus(build, skew, minus(build, below, adjoint(build, below)));
    tn_array *rest = minus(build, m, skew);
    *out_q = minus(build, w, product(build, q, rest));
    *out_r = product(build, rest, r);
}

TN_JVP(qr_jvp)
{
    struct qr_extents e;
    tn_array *q = rule->outputs[0], *r = rule->outputs[1], *t = tangents[0];
    tn_status status = check_derivative(build, rule, &e);
    if (status != TN_OK || !t)
        return status;
    if (e.n <= e.k) {
        tall_tangents(build, q, r, t, &out_tangents[0], &out_tangents[1]);
        return TN_OK;
    }
    tn_array *a2 = columns_of(build, rule->inputs[0], e.k, e.n - e.k), *first;
    tall_tangents(build, q, columns_of(build, r, 0, e.k), columns_of(build, t, 0, e.k),
                  &out_tangents[0], &first);
    tn_array *second =
        plus(build, product(build, adjoint(build, out_tangents[0]), a2),
             product(build, adjoint(build, q), columns_of(build, t, e.k, e.n - e.k)));
    out_tangents[1] = beside(build, first, second);
    return TN_OK;
}

static const char *const modes[] = {"reduced", "complete", NULL};

TN_VMAP(qr_vmap)
{
    const tn_qr_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.qr/1",
                            tn_attrs("mode", modes[attrs->mode]), outputs, out_axes);
}

static const tn_output_info qr_outputs[] = {
    {"q", "orthonormal columns", 0, 0},
    {"r", "upper triangular", 0, 0},
};
static const tn_attr_field fields[] = {
    TN_CHOICE_FIELD(tn_qr_attrs, mode, TN_LINALG_REDUCED, modes,
                    "whether q has as many columns as a has rows"),
};
LAPACKS(qr, TN_INPUTS(linalg_a),
        "Matrices as products of orthonormal columns and an upper triangle.",
        TN_OUTPUTS(qr_outputs), .attrs = TN_ATTR_TABLE(tn_qr_attrs, fields));
