// SPDX-License-Identifier: MIT
// Least squares, by LAPACK's gelsd: of all x that minimise |a x - b|, the shortest.
// Singular values below rcond times the largest count as 0.
//
// Derivatives: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear
// least squares problems whose variables separate", 1973, with p the pseudo-inverse: p' =
// -p a' p + p p^H a'^H (1 - a p) + (1 - p a) a'^H p^H p.
#include <tenon/ops/complex.h>
#include "memory/batch.h"

enum { MATRIX, SIDES, WORK, REALS, INTEGERS, VALUES }; // parts of the room
enum { LSTSQ_NOT_FINITE = INT32_MIN };

// Extents: a is m x n, b has k columns.
struct lstsq_extents {
    int64_t m, n, k;
};

static struct lstsq_extents lstsq_extents_of(const tn_layout *a, const tn_layout *b)
{
    return (struct lstsq_extents){a->extent[a->rank - 2], a->extent[a->rank - 1],
                                  b->rank == 1 ? 1 : b->extent[b->rank - 1]};
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct batch_room lstsq_room(const tn_layout *a, const tn_layout *b)
{
    const struct lapack *lapack = lapack_find(a->dtype, NULL);
    const struct lstsq_extents e = lstsq_extents_of(a, b);
    struct batch_room room = {.size = 0};
    int m = (int)e.m, n = (int)e.n, k = (int)e.k, query = -1, info = 0, rank = 0,
        integers = 0;
    int lda = m > 0 ? m : 1, ldb = (int)larger_of(larger_of(m, n), 1);
    int64_t least = m < n ? m : n, sides;
    tn_complex128 none = {0, 0}, answer = {0, 0}, reals = {0, 0};
    uint64_t bytes = (uint64_t)tn_dtype_bytes(a->dtype);
    // LAPACK computes lengths such as n * k in integers of 32 bits.
    room.too_large = !tn_checked_multiply_extents(ldb, e.k + 64, &sides) ||
                     sides > 1 << 27 || least > 1 << 20;
    if (lapack && least > 0 && k > 0 && !room.too_large && tn_is_complex(a->dtype))
        lapack->gelsd_complex(&m, &n, &k, &none, &lda, &none, &ldb, &none, &none, &rank,
                              &answer, &query, &reals, &integers, &info);
    else if (lapack && least > 0 && k > 0 && !room.too_large)
        lapack->gelsd(&m, &n, &k, &none, &lda, &none, &ldb, &none, &none, &rank, &answer,
                      &query, &integers, &info);
    room_add(&room, MATRIX, tn_saturated_multiply((uint64_t)m, (uint64_t)n), bytes);
    room_add(&room, SIDES, tn_saturated_multiply((uint64_t)ldb, (uint64_t)k), bytes);
    room_add_work(&room, WORK, a->dtype, &answer);
    room_add_work(&room, REALS, tn_dtype_real(a->dtype), &reals);
    room_add(&room, INTEGERS, (uint64_t)integers, sizeof(int));
    room_add(&room, VALUES, (uint64_t)least, bytes);
    return room;
}

// Stores the sums of |a x - b|^2 by columns, in f64.
static void store_residuals(const struct matrix_view *a, const struct matrix_view *x,
                            const struct matrix_view *b, const struct matrix_view *out)
{
    for (int64_t c = 0; c < out->rows; c++) {
        double sum = 0;
        for (int64_t i = 0; i < a->rows; i++) {
            tn_complex128 rest = matrix_get(b, i, c);
            for (int64_t j = 0; j < a->columns; j++) {
                tn_complex128 p =
                    tn_complex_multiply(matrix_get(a, i, j), matrix_get(x, j, c));
                rest.re -= p.re;
                rest.im -= p.im;
            }
            sum += rest.re * rest.re + rest.im * rest.im;
        }
        matrix_set(out, c, 0, (tn_complex128){sum, 0});
    }
}

// The same for full rank: behind x, gelsd leaves the parts of b outside of a's range.
static void lstsq_store_tails(const struct matrix_view *sides, int64_t n,
                              const struct matrix_view *out)
{
    for (int64_t c = 0; c < out->rows; c++) {
        double sum = 0;
        for (int64_t i = n; i < sides->rows; i++) {
            tn_complex128 rest = matrix_get(sides, i, c);
            sum += rest.re * rest.re + rest.im * rest.im;
        }
        matrix_set(out, c, 0, (tn_complex128){sum, 0});
    }
}

static void fill_zeros(struct matrix_view a)
{
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.columns; j++)
            matrix_set(&a, i, j, (tn_complex128){0, 0});
}

static int lstsq_call(const struct batch_job *job, struct matrix_view a, char *room,
                      void *s, int *rank, struct lstsq_extents e)
{
    const struct batch_room *parts = &job->room;
    const tn_lstsq_attrs *attrs = job->call->attrs;
    int m = (int)e.m, n = (int)e.n, k = (int)e.k, info = 0,
        lwork = (int)parts->length[WORK];
    int ldb = (int)larger_of(m, n), *integers = (int *)(room + parts->at[INTEGERS]);
    void *sides = room + parts->at[SIDES], *work = room + parts->at[WORK];
    bool single = tn_dtype_real(a.dtype) == TN_F32;
    double epsilon = single ? 0x1p-23 : 0x1p-52;
    double bound = attrs->rcond >= 0 ? attrs->rcond : epsilon * (double)larger_of(m, n);
    float bound_f32 = (float)bound;
    const void *rcond = single ? (const void *)&bound_f32 : &bound;
    if (tn_is_complex(a.dtype))
        job->lapack->gelsd_complex(&m, &n, &k, a.data, &m, sides, &ldb, s, rcond, rank,
                                   work, &lwork, room + parts->at[REALS], integers, &info);
    else
        job->lapack->gelsd(&m, &n, &k, a.data, &m, sides, &ldb, s, rcond, rank, work,
                           &lwork, integers, &info);
    return info;
}

static int lstsq_solve(const struct batch_job *job, int64_t index, char *room)
{
    const tn_cpu_call *call = job->call;
    int32_t core = call->inputs[1].layout.rank == 1 ? 1 : 2;
    struct matrix_view a = job_matrix(job, &call->inputs[0], 2, index);
    struct matrix_view b = job_matrix(job, &call->inputs[1], core, index);
    struct matrix_view x = job_matrix(job, &call->outputs[0], core, index);
    struct matrix_view residuals = job_matrix(job, &call->outputs[1], 1, index);
    struct matrix_view s = job_matrix(job, &call->outputs[3], 1, index);
    const struct lstsq_extents e = {a.rows, a.columns, b.columns};
    int64_t least = e.m < e.n ? e.m : e.n, longest = larger_of(e.m, e.n);
    int rank = 0, info = 0;
    if (!matrix_is_finite(a) || !matrix_is_finite(b))
        return LSTSQ_NOT_FINITE;
    struct matrix_view packed =
        matrix_by_columns(room + job->room.at[MATRIX], a.dtype, e.m, e.n);
    struct matrix_view sides =
        matrix_by_columns(room + job->room.at[SIDES], a.dtype, longest, e.k);
    if (least > 0 && e.k > 0) {
        matrix_copy(packed, a);
        sides.rows = e.m;
        matrix_copy(sides, b);
        info = lstsq_call(job, packed, room, s.data, &rank, e);
        sides.rows = e.n;
        matrix_copy(x, sides);
    } else {
        fill_zeros(x);
        fill_zeros(s);
    }
    if (info == 0 && residuals.rows > 0 && rank == e.n && rank > 0) {
        sides.rows = e.m;
        lstsq_store_tails(&sides, e.n, &residuals);
    } else if (info == 0 && residuals.rows > 0) {
        store_residuals(&a, &x, &b, &residuals);
    }
    const tn_tensor *out = &call->outputs[2];
    ((int32_t *)out->data)[out->layout.offset + index] = rank;
    return info;
}

static uint64_t lstsq_scratch(const tn_kernel_query *query)
{
    const tn_layout *b = &query->inputs[1];
    const tn_layout batch = job_batch(&query->outputs[0], b->rank == 1 ? 1 : 2);
    return job_scratch(query, tn_layout_count(&batch),
                       lstsq_room(&query->inputs[0], b).size);
}

static const char *lstsq_explain(int code)
{
    return code == LSTSQ_NOT_FINITE
               ? "has a NaN or an infinity in a or b, expected finite elements"
           : code > 0 ? "has singular values that LAPACK does not find"
                      : job_refused(code);
}

static tn_status lstsq_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout, *b = &call->inputs[1].layout;
    const struct lstsq_extents e = lstsq_extents_of(a, b);
    double work = (double)e.m * (double)e.n * (double)(e.m < e.n ? e.m : e.n) * 8;
    struct batch_job job = job_start(call, "linalg.lstsq", lstsq_solve,
                                     &call->outputs[0].layout, b->rank == 1 ? 1 : 2, work);
    job.room = lstsq_room(a, b);
    return job_launch(&job, lstsq_explain);
}

// --- types and rules --------------------------------------------------------------------

static tn_status lstsq_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0], *b = &infer->types[1];
    const tn_lstsq_attrs *attrs = infer->attrs;
    tn_status status = check_matrices(infer->host, "a", a);
    if (status == TN_OK && attrs->rcond != attrs->rcond)
        status = infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                   "rcond is NaN, expected a number; below 0: a default");
    tn_type x;
    if (status == TN_OK)
        status = check_system(infer->host, a, b, &x);
    if (status != TN_OK)
        return status;
    int64_t m = a->extent[a->rank - 2], n = a->extent[a->rank - 1];
    int32_t batch = x.rank - (b->rank == 1 ? 1 : 2);
    types[0] = x;
    types[1] = types[2] = types[3] = x;
    types[1].dtype = types[3].dtype = tn_dtype_real(a->dtype);
    types[2].dtype = TN_I32;
    types[1].rank = types[3].rank = batch + 1;
    types[2].rank = batch;
    types[1].extent[batch] = m <= n ? 0 : b->rank == 1 ? 1 : b->extent[b->rank - 1];
    types[3].extent[batch] = m < n ? m : n;
    return TN_OK;
}

static tn_status least_squares(const tn_build *build, const tn_rule *rule, tn_array *a,
                               tn_array *b, tn_array **out)
{
    return build->op_n(build, "linalg.lstsq/1", TN_IN(a, b),
                       tn_attrs("rcond", ((const tn_lstsq_attrs *)rule->attrs)->rcond), out,
                       4);
}

// Arrays that the rules share: a and its pseudo-inverse p, b and x as matrices, and the
// residual b - a x.
struct lstsq_parts {
    tn_array *a, *p, *b, *x, *rest;
    bool vector, overdetermined;
    bool reserved[6]; // false
};

static bool lstsq_parts_of(const tn_build *build, const tn_rule *rule,
                           struct lstsq_parts *out)
{
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    if (!a || !b)
        return false;
    tn_array *all[4] = {NULL, NULL, NULL, NULL};
    int64_t m = a->extent[a->rank - 2];
    *out = (struct lstsq_parts){.a = rule->inputs[0],
                                .b = rule->inputs[1],
                                .x = rule->outputs[0],
                                .vector = b->rank == 1,
                                .overdetermined = m > a->extent[a->rank - 1]};
    if (least_squares(build, rule, out->a, identity(build, m, a->dtype), all) != TN_OK)
        return false;
    out->p = all[0];
    if (out->vector) {
        out->b = as_column(build, out->b);
        out->x = as_column(build, out->x);
    }
    out->rest = minus(build, out->b, product(build, out->a, out->x));
    return true;
}

// u diag(g) vh: the gradient by way of the singular values.
static tn_array *values_gradient(const tn_build *build, const tn_rule *rule, tn_array *g)
{
    tn_array *usv[3] = {NULL, NULL, NULL};
    build->op_n(build, "linalg.svd/1", TN_IN(rule->inputs[0]),
                tn_attrs("full_matrices", INT64_C(0)), usv, 3);
    return product(build, elementwise(build, "u, g -> u * g", usv[0], as_row(build, g)),
                   usv[2]);
}

// With h = p^H g: h for b, and for a -h x^H + r (p h)^H + (1 - p a)-part: h^.. (p^H x) (g -
// p a g)^H, r being what is left of b.
static void solution_gradients(const tn_build *build, const struct lstsq_parts *s,
                               tn_array *g, tn_array **of_a, tn_array **of_b)
{
    tn_array *ph = adjoint(build, s->p), *h = product(build, ph, g);
    tn_array *first = product(build, h, adjoint(build, s->x));
    tn_array *second = product(build, s->rest, adjoint(build, product(build, s->p, h)));
    tn_array *outside = minus(build, g, product(build, s->p, product(build, s->a, g)));
    tn_array *third = product(build, product(build, ph, s->x), adjoint(build, outside));
    *of_a = plus(build, minus(build, second, first), third);
    *of_b = h;
}

TN_VJP(lstsq_vjp)
{
    struct lstsq_parts s;
    tn_array *of_a = NULL, *of_b = NULL, *g = cotangents[0], *of_rest = cotangents[1];
    if ((!g && !of_rest && !cotangents[3]) || !lstsq_parts_of(build, rule, &s))
        return TN_OK;
    if (g)
        solution_gradients(build, &s, s.vector ? as_column(build, g) : g, &of_a, &of_b);
    if (of_rest && s.overdetermined) {
        tn_array *twice =
            elementwise(build, "r, g -> 2 * r * g", s.rest, as_row(build, of_rest));
        of_b = plus(build, of_b, twice);
        of_a = plus(build, of_a,
                    scaled(build, product(build, twice, adjoint(build, s.x)), -1));
    }
    if (cotangents[3])
        of_a = plus(build, of_a, values_gradient(build, rule, cotangents[3]));
    gradients[0] = of_a;
    gradients[1] = of_b && s.vector ? as_vector(build, of_b) : of_b;
    return TN_OK;
}

// p (t_b - t_a x) + p p^H t_a^H r + (1 - p a) t_a^H p^H x.
TN_JVP(lstsq_jvp)
{
    struct lstsq_parts s;
    tn_array *ta = tangents[0], *t = tangents[1];
    if ((!ta && !t) || !lstsq_parts_of(build, rule, &s))
        return TN_OK;
    t = t && s.vector ? as_column(build, t) : t;
    if (ta)
        t = plus(build, t, scaled(build, product(build, ta, s.x), -1));
    tn_array *of_x = product(build, s.p, t);
    if (s.overdetermined)
        out_tangents[1] =
            build->op(build, "base.sum/1",
                      TN_IN(elementwise(build, "r, t -> 2 * real(conj(r) * t)", s.rest, t)),
                      tn_attrs("axis", TN_INTS(-2)));
    if (ta) {
        tn_array *th = adjoint(build, ta), *ph = adjoint(build, s.p),
                 *usv[3] = {NULL, NULL, NULL};
        tn_array *second =
            product(build, s.p, product(build, ph, product(build, th, s.rest)));
        tn_array *third = product(build, th, product(build, ph, s.x));
        third = minus(build, third, product(build, s.p, product(build, s.a, third)));
        of_x = plus(build, of_x, plus(build, second, third));
        build->op_n(build, "linalg.svd/1", TN_IN(s.a),
                    tn_attrs("full_matrices", INT64_C(0)), usv, 3);
        tn_array *terms = elementwise(build, "u, w -> real(conj(u) * w)", usv[0],
                                      product(build, ta, adjoint(build, usv[2])));
        out_tangents[3] =
            build->op(build, "base.sum/1", TN_IN(terms), tn_attrs("axis", TN_INTS(-2)));
    }
    out_tangents[0] = s.vector ? as_vector(build, of_x) : of_x;
    return TN_OK;
}

TN_VMAP(lstsq_vmap)
{
    tn_array *a, *b;
    bool vector = batched_system(build, rule, axes, &a, &b);
    tn_status status = least_squares(build, rule, a, b, outputs);
    if (vector)
        outputs[0] = as_vector(build, outputs[0]);
    out_axes[0] = 0; // as the core has filled in for the others
    return status;
}

static const tn_input_info lstsq_inputs[] = {
    {"a", "matrices", 0, LINALG_DTYPES},
    {"b", "right-hand sides, columns of matrices; one vector if it has one axis", 0,
     LINALG_DTYPES},
};
static const tn_output_info lstsq_outputs[] = {
    {"x", "the shortest of the best solutions", 0, 0},
    {"residuals",
     "the squared lengths of a x - b; none where a has no more rows than columns", 0, 0},
    {"rank", "singular values that count", 0, 0},
    {"s", "singular values of a, the largest first", 0, 0},
};
static const tn_attr_field fields[] = {
    TN_F64_FIELD(
        tn_lstsq_attrs, rcond, -1,
        "singular values below this fraction of the largest count as 0; below 0: the "
        "dtype's epsilon times the larger extent"),
};
LAPACKS(lstsq, TN_INPUTS(lstsq_inputs), "The solution of a x = b by least squares.",
        TN_OUTPUTS(lstsq_outputs), .attrs = TN_ATTR_TABLE(tn_lstsq_attrs, fields));
