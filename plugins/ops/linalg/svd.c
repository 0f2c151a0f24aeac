// SPDX-License-Identifier: MIT
// Singular values and vectors, a = u diag(s) vh.
//
// Derivatives: Giles, "Collected matrix derivative results", 2008, section 3.2. Complex
// vectors, determined up to a phase, follow PyTorch's choice: u and vh share changes of
// phase equally. Gradients of vectors divide by 0 where singular values are equal or 0.
#include "svd.h"

#include <tenon/ops/complex.h>

// LAPACK's work arrays have some five times the smaller extent's square.
#define MOST 16000

void svd_room_add(struct batch_room *room, tn_dtype dtype, const char *jobz, int64_t m,
                  int64_t n)
{
    const struct lapack *lapack = lapack_find(dtype, NULL);
    uint64_t least = (uint64_t)(m < n ? m : n), most = (uint64_t)(m < n ? n : m);
    uint64_t bytes = (uint64_t)tn_dtype_bytes(dtype), reals = 0;
    int rows = (int)n, columns = (int)m, query = -1, info = 0, integer = 0;
    int k = (int)least, vt = jobz[0] == 'A' ? columns : k;
    tn_complex128 answer = {0, 0}, none = {0, 0};
    room->too_large |= least > MOST;
    if (tn_is_complex(dtype)) {
        uint64_t square = least * least;
        reals = jobz[0] == 'N' ? 7 * least : 5 * square + 7 * least;
        if (jobz[0] != 'N' && 2 * most * least + 2 * square + least > reals)
            reals = 2 * most * least + 2 * square + least;
    }
    if (lapack && k > 0 && !room->too_large && tn_is_complex(dtype))
        lapack->gesdd_complex(jobz, &rows, &columns, &none, &rows, &none, &none, &rows,
                              &none, &vt, &answer, &query, &none, &integer, &info, 1);
    else if (lapack && k > 0 && !room->too_large)
        lapack->gesdd(jobz, &rows, &columns, &none, &rows, &none, &none, &rows, &none, &vt,
                      &answer, &query, &integer, &info, 1);
    room_add(room, SVD_MATRIX, tn_saturated_multiply((uint64_t)m, (uint64_t)n), bytes);
    room_add_work(room, SVD_WORK, dtype, &answer);
    room_add(room, SVD_REALS, reals, (uint64_t)tn_dtype_bytes(tn_dtype_real(dtype)));
    room_add(room, SVD_INTEGERS, 8 * least, sizeof(int));
}

int svd_run(const struct batch_job *job, struct matrix_view a, const char *jobz, void *s,
            void *u, void *vh, char *room)
{
    const struct batch_room *parts = &job->room;
    int rows = (int)a.columns, columns = (int)a.rows, info = 0;
    int lwork = (int)parts->length[SVD_WORK], k = rows < columns ? rows : columns;
    int vt = jobz[0] == 'A' ? columns : k;
    char *copy = room + parts->at[SVD_MATRIX], *work = room + parts->at[SVD_WORK];
    int *integers = (int *)(room + parts->at[SVD_INTEGERS]);
    if (!matrix_is_finite(a))
        return SVD_NOT_FINITE;
    matrix_copy(matrix_by_rows(copy, a.dtype, a.rows, a.columns), a);
    if (tn_is_complex(a.dtype))
        job->lapack->gesdd_complex(jobz, &rows, &columns, copy, &rows, s, vh, &rows, u, &vt,
                                   work, &lwork, room + parts->at[SVD_REALS], integers,
                                   &info, 1);
    else
        job->lapack->gesdd(jobz, &rows, &columns, copy, &rows, s, vh, &rows, u, &vt, work,
                           &lwork, integers, &info, 1);
    return info;
}

const char *svd_explain(int code)
{
    return code == SVD_NOT_FINITE ? "has a NaN or an infinity, expected finite elements"
           : code > 0             ? "has singular values that LAPACK does not find"
                                  : job_refused(code);
}

// --- memory -----------------------------------------------------------------------------

static const char *jobz_of(const struct batch_job *job)
{
    if (job->call->num_outputs == 1)
        return "N";
    return ((const tn_svd_attrs *)job->call->attrs)->full_matrices ? "A" : "S";
}

static int svd_decompose(const struct batch_job *job, int64_t index, char *room)
{
    const tn_tensor *outputs = job->call->outputs;
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    bool values_only = job->call->num_outputs == 1;
    struct matrix_view s = job_matrix(job, &outputs[values_only ? 0 : 1], 1, index), u, vh;
    if (values_only)
        return s.rows == 0 ? 0 : svd_run(job, a, "N", s.data, NULL, NULL, room);
    u = job_matrix(job, &outputs[0], 2, index);
    vh = job_matrix(job, &outputs[2], 2, index);
    if (s.rows > 0)
        return svd_run(job, a, jobz_of(job), s.data, u.data, vh.data, room);
    matrix_fill_identity(u);
    matrix_fill_identity(vh);
    return 0;
}

static struct batch_room svd_room(const tn_layout *a, const char *jobz)
{
    struct batch_room room = {.size = 0};
    svd_room_add(&room, a->dtype, jobz, a->extent[a->rank - 2], a->extent[a->rank - 1]);
    return room;
}

static uint64_t svd_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    const tn_svd_attrs *attrs = query->attrs;
    const char *jobz = query->num_outputs == 1 ? "N" : attrs->full_matrices ? "A" : "S";
    return job_scratch(query, tn_layout_count(&batch), svd_room(a, jobz).size);
}
#define svdvals_scratch svd_scratch

static tn_status svd_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double m = (double)a->extent[a->rank - 2], n = (double)a->extent[a->rank - 1];
    const char *name = call->num_outputs == 1 ? "linalg.svdvals" : "linalg.svd";
    struct batch_job job =
        job_start(call, name, svd_decompose, a, 2, 10 * m * n * (m < n ? m : n));
    job.room = svd_room(a, jobz_of(&job));
    return job_launch(&job, svd_explain);
}
#define svdvals_launch svd_launch

// --- types ------------------------------------------------------------------------------

static tn_status svdvals_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_status status = check_matrices(infer->host, "a", a);
    if (status != TN_OK)
        return status;
    int64_t m = a->extent[a->rank - 2], n = a->extent[a->rank - 1];
    types[0] = *a;
    types[0].dtype = tn_dtype_real(a->dtype);
    types[0].rank--;
    types[0].extent[a->rank - 2] = m < n ? m : n;
    return TN_OK;
}

static tn_status svd_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_type s;
    tn_status status = svdvals_infer(infer, &s);
    if (status != TN_OK)
        return status;
    bool full = ((const tn_svd_attrs *)infer->attrs)->full_matrices != 0;
    int64_t k = s.extent[s.rank - 1];
    types[0] = types[2] = *a;
    types[1] = s;
    types[0].extent[a->rank - 1] = full ? a->extent[a->rank - 2] : k;
    types[2].extent[a->rank - 2] = full ? a->extent[a->rank - 1] : k;
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

// The factors of an application, without vectors that a does not determine, and the
// divisors: s_j^2 - s_i^2, 1 on the diagonal.
struct svd_factors {
    tn_array *u, *s, *vh, *differences;
    int64_t m, n, k;
    bool is_complex;
    bool reserved[7]; // false
};

static bool factors_of(const tn_build *build, const tn_rule *rule, struct svd_factors *out)
{
    const tn_type *a = build->type(rule->inputs[0]), *s = build->type(rule->outputs[1]);
    if (!a || !s)
        return false;
    *out = (struct svd_factors){.m = a->extent[a->rank - 2],
                                .n = a->extent[a->rank - 1],
                                .k = s->extent[s->rank - 1],
                                .s = rule->outputs[1],
                                .is_complex = tn_is_complex(a->dtype)};
    out->u = columns_of(build, rule->outputs[0], 0, out->k);
    out->vh = rows_of(build, rule->outputs[2], 0, out->k);
    tn_array *squares = build->expr(build, "s -> s * s", TN_IN(out->s), TN_NO_ATTRS);
    out->differences = build->expr(build, "r, c, e -> r - c + e",
                                   TN_IN(as_row(build, squares), as_column(build, squares),
                                         identity(build, out->k, s->dtype)),
                                   TN_NO_ATTRS);
    return true;
}

static tn_array *skew_part(const tn_build *build, tn_array *a)
{
    return minus(build, a, adjoint(build, a));
}

// b without its part in the space of u's columns.
static tn_array *outside_of(const tn_build *build, tn_array *u, tn_array *b)
{
    return minus(build, b, product(build, u, product(build, adjoint(build, u), b)));
}

// a with a zero diagonal; that of a real a is 0 already.
static tn_array *off_diagonal(const tn_build *build, const struct svd_factors *f,
                              tn_array *a)
{
    return f->is_complex ? minus(build, a, diagonal_matrix(build, diagonal_of(build, a)))
                         : a;
}

// The gradient between u and vh: equal to PyTorch's svd_backward where the loss does not
// depend on phases, and always the transpose of the rule for tangents.
static tn_array *core_gradient(const tn_build *build, const struct svd_factors *f,
                               tn_array *of_u, tn_array *of_s, tn_array *of_vh)
{
    tn_array *rotation_u = NULL, *rotation_v = NULL, *sum = NULL, *phase = NULL;
    if (of_u) {
        rotation_u = skew_part(build, product(build, adjoint(build, f->u), of_u));
        phase = diagonal_of(build, rotation_u);
        sum = elementwise(build, "a, s -> a * s", rotation_u, as_row(build, f->s));
    }
    if (of_vh) {
        rotation_v = skew_part(build, product(build, f->vh, adjoint(build, of_vh)));
        tn_array *other = scaled(build, diagonal_of(build, rotation_v), -1);
        phase = plus(build, phase, other);
        sum = plus(build, sum,
                   elementwise(build, "a, s -> a * s", rotation_v, as_column(build, f->s)));
    }
    if (sum)
        sum = off_diagonal(build, f,
                           elementwise(build, "a, e -> a / e", sum, f->differences));
    if (of_s)
        sum = plus(build, sum,
                   diagonal_matrix(build, in_dtype(build, of_s, build->type(f->u))));
    if (f->is_complex && phase) {
        phase = elementwise(build, "t, s -> t / (4 * s)", phase, f->s);
        sum = plus(build, sum, diagonal_matrix(build, phase));
    }
    return sum;
}

TN_VJP(svd_vjp)
{
    struct svd_factors f;
    tn_array *of_u = cotangents[0], *of_s = cotangents[1], *of_vh = cotangents[2];
    if ((!of_u && !of_s && !of_vh) || !factors_of(build, rule, &f))
        return TN_OK;
    of_u = of_u ? columns_of(build, of_u, 0, f.k) : NULL;
    of_vh = of_vh ? rows_of(build, of_vh, 0, f.k) : NULL;
    tn_array *g = core_gradient(build, &f, of_u, of_s, of_vh);
    g = product(build, f.u, g);
    if (of_u && f.m > f.k)
        g = plus(build, g,
                 outside_of(build, f.u,
                            elementwise(build, "a, s -> a / s", of_u, as_row(build, f.s))));
    g = product(build, g, f.vh);
    if (of_vh && f.n > f.k) {
        tn_array *b = elementwise(build, "a, s -> a / s", of_vh, as_column(build, f.s));
        b = adjoint(build, outside_of(build, adjoint(build, f.vh), adjoint(build, b)));
        g = plus(build, g, product(build, f.u, b));
    }
    gradients[0] = g;
    return TN_OK;
}

TN_JVP(svd_jvp)
{
    struct svd_factors f;
    tn_array *t = tangents[0];
    if (!t || !factors_of(build, rule, &f))
        return TN_OK;
    if (((const tn_svd_attrs *)rule->attrs)->full_matrices && f.m != f.n)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "with full_matrices and %" PRId64 " rows and %" PRId64
                                 " columns there is no tangent: vectors that a does not "
                                 "determine, which full_matrices=false leaves out",
                                 f.m, f.n);
    tn_array *v = adjoint(build, f.vh), *tv = product(build, t, v);
    tn_array *p = product(build, adjoint(build, f.u), tv), *q = adjoint(build, p);
    out_tangents[1] = real_part(build, diagonal_of(build, p));
    // u^H u' and v^H v', which are skew-Hermitian.
    tn_array *const both[] = {p, q, as_row(build, f.s), as_column(build, f.s),
                              f.differences};
    const tn_array *const *in = (const tn_array *const *)both;
    tn_array *rotation_u =
        build->expr(build, "p, q, r, c, e -> (p * r + c * q) / e", in, 5, TN_NO_ATTRS);
    tn_array *rotation_v =
        build->expr(build, "p, q, r, c, e -> (c * p + q * r) / e", in, 5, TN_NO_ATTRS);
    // Their diagonals are 0; complex ones have half of the phase's change each.
    tn_array *diagonal_u = diagonal_matrix(build, diagonal_of(build, rotation_u));
    tn_array *diagonal_v = diagonal_matrix(build, diagonal_of(build, rotation_v));
    rotation_u = minus(build, rotation_u, diagonal_u);
    rotation_v = minus(build, rotation_v, diagonal_v);
    if (f.is_complex) {
        tn_array *phase = elementwise(build, "p, s -> complex(0 * s, imag(p) / (2 * s))",
                                      diagonal_of(build, p), f.s);
        rotation_u = plus(build, rotation_u, diagonal_matrix(build, phase));
        rotation_v = minus(build, rotation_v, diagonal_matrix(build, phase));
    }
    tn_array *of_u = product(build, f.u, rotation_u), *of_v = product(build, v, rotation_v);
    if (f.m > f.k)
        of_u =
            plus(build, of_u,
                 outside_of(build, f.u,
                            elementwise(build, "a, s -> a / s", tv, as_row(build, f.s))));
    if (f.n > f.k) {
        tn_array *tu = product(build, adjoint(build, t), f.u);
        of_v =
            plus(build, of_v,
                 outside_of(build, v,
                            elementwise(build, "a, s -> a / s", tu, as_row(build, f.s))));
    }
    out_tangents[0] = of_u;
    out_tangents[2] = adjoint(build, of_v);
    return TN_OK;
}

TN_VMAP(svd_vmap)
{
    const tn_svd_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.svd/1",
                            tn_attrs("full_matrices", attrs->full_matrices), outputs,
                            out_axes);
}

// The vectors, which an application for values alone did not give.
static tn_status svd_vectors(const tn_build *build, const tn_rule *rule, tn_array **out)
{
    return build->op_n(build, "linalg.svd/1", TN_IN(rule->inputs[0]),
                       tn_attrs("full_matrices", INT64_C(0)), out, 3);
}

TN_VJP(svdvals_vjp)
{
    tn_array *usv[3] = {NULL, NULL, NULL};
    if (!cotangents[0])
        return TN_OK;
    tn_status status = svd_vectors(build, rule, usv);
    if (status == TN_OK)
        gradients[0] = product(
            build,
            elementwise(build, "u, g -> u * g", usv[0], as_row(build, cotangents[0])),
            usv[2]);
    return status;
}

TN_JVP(svdvals_jvp)
{
    tn_array *usv[3] = {NULL, NULL, NULL};
    if (!tangents[0])
        return TN_OK;
    tn_status status = svd_vectors(build, rule, usv);
    if (status != TN_OK)
        return status;
    // The diagonal of u^H t v.
    tn_array *terms = elementwise(build, "u, w -> real(conj(u) * w)", usv[0],
                                  product(build, tangents[0], adjoint(build, usv[2])));
    out_tangents[0] =
        build->op(build, "base.sum/1", TN_IN(terms), tn_attrs("axis", TN_INTS(-2)));
    return TN_OK;
}

TN_VMAP(svdvals_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.svdvals/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

static const tn_output_info svd_outputs[] = {
    {"u", "orthonormal columns", 0, 0},
    {"s", "singular values, the largest first", 0, 0},
    {"vh", "orthonormal rows", 0, 0},
};
static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(tn_svd_attrs, full_matrices, 1, "whether u and vh are square"),
};
LAPACKS(svd, TN_INPUTS(linalg_a), "Singular values and vectors of matrices.",
        TN_OUTPUTS(svd_outputs), .attrs = TN_ATTR_TABLE(tn_svd_attrs, fields));
LAPACKS(svdvals, TN_INPUTS(linalg_a), "Singular values of matrices, the largest first.");
