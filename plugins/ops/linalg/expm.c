// SPDX-License-Identifier: MIT
// The exponential function of matrices: Higham, "The scaling and squaring method for the
// matrix exponential revisited", 2005. A Pade approximant of the matrix divided by a power
// of two, squared as many times.
//
// The derivative along e is the upper right block of expm([[a, e], [0, a]]). Memory of a by
// rows is memory of its transpose by columns, whose exponential is that of a, transposed.
#include "memory/batch.h"

// --- approximants -----------------------------------------------------------------------

// Approximants of degree 3, 5, 7 and 13: the coefficients of 1, a, a^2, ... in the
// numerator; in the denominator odd powers change sign. The greatest norms of a for which
// they are exact in f32 and f64.
#define MOST_COEFFICIENTS 14
static const struct expm_degree {
    uint32_t degree;
    float single;
    double bound, c[MOST_COEFFICIENTS];
} expm_degrees[] = {
    {3, 4.258730016922831e-1f, 1.495585217958292e-2, {120, 60, 12, 1}},
    {5, 1.880152677804762f, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7,
     3.925724783138660f,
     9.504178996162932e-1,
     {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {13,
     0,
     5.371920351148152,
     {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
      129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
      960960, 16380, 182, 1}},
};

// Chooses the approximant for a norm, and how often the matrix is halved first.
static const struct expm_degree *expm_choose(double norm, bool is_single, int *out_halved)
{
    const struct expm_degree *last = &expm_degrees[is_single ? 2 : 3];
    double most = is_single ? (double)last->single : last->bound;
    *out_halved = 0;
    for (const struct expm_degree *d = expm_degrees; d < last; d++)
        if (norm <= (is_single ? (double)d->single : d->bound))
            return d;
    if (norm > most)
        *out_halved = (int)ceil(log2(norm / most));
    return last;
}

// --- one matrix -------------------------------------------------------------------------

// Parts of the room: powers of the matrix, numerator and denominator, and a spare matrix.
enum { POWER_1, POWER_2, POWER_4, POWER_6, ODD, EVEN, SPARE, PIVOTS };

// Square matrices of one call, by columns, in a thread's room.
struct expm_room {
    const struct lapack *lapack;
    int n;
    bool is_single;
    size_t parts; // numbers of a matrix; a complex element has two
    size_t step;  // numbers from one element of the diagonal to the next
    void *at[PIVOTS];
};

// EXPM_SUM(T): to = the sum of c[i] * from[i], one to three of them, and `ones` on the
// diagonal. `to` may be one of `from`.
#ifdef __clang__ // it warns of loops that sanitizers keep it from vectorising
#define EXPM_VECTORIZE
#else
#define EXPM_VECTORIZE _Pragma("GCC ivdep")
#endif
#define EXPM_TERMS(sum) EXPM_VECTORIZE for (size_t i = 0; i < r->parts; i++) sums[i] = (sum)
#define EXPM_SUM(T)                                                                        \
    const T *x = from[0], *y = from[count > 1 ? 1 : 0], *z = from[count > 2 ? 2 : 0];      \
    T *sums = to;                                                                          \
    if (count == 1)                                                                        \
        EXPM_TERMS((T)(c[0] * (double)x[i]));                                              \
    else if (count == 2)                                                                   \
        EXPM_TERMS((T)(c[0] * (double)x[i] + c[1] * (double)y[i]));                        \
    else                                                                                   \
        EXPM_TERMS((T)(c[0] * (double)x[i] + c[1] * (double)y[i] + c[2] * (double)z[i]));  \
    for (int i = 0; i < r->n; i++)                                                         \
    sums[(size_t)i * r->step] += (T)ones

static void expm_sum(const struct expm_room *r, void *to, uint32_t count,
                     const void *const *from, const double *c, double ones)
{
    if (r->is_single) {
        EXPM_SUM(float);
    } else {
        EXPM_SUM(double);
    }
}

// c = a b or, with `more`, c + a b.
static void expm_multiply(const struct expm_room *r, void *c, const void *a, const void *b,
                          bool more)
{
    const tn_complex128 none = {0, 0};
    tn_dtype real = r->is_single ? TN_F32 : TN_F64;
    r->lapack->gemm("N", "N", &r->n, &r->n, &r->n, lapack_one(real), a, &r->n, b, &r->n,
                    more ? lapack_one(real) : &none, c, &r->n, 1, 1);
}

// Sums coefficients 0, 2, ... (with `odd` 1, 3, ...) times powers of a^2; the powers above
// a^6 as a^6 times lower ones. `to` is neither a power nor SPARE.
static void expm_half(const struct expm_room *r, void *to, const struct expm_degree *d,
                      uint32_t odd)
{
    double c[MOST_COEFFICIENTS / 2] = {0};
    const void *const powers[] = {r->at[POWER_2], r->at[POWER_4], r->at[POWER_6]};
    uint32_t count = 0, low = (d->degree + 1) / 2 < 4 ? (d->degree + 1) / 2 : 4;
    for (uint32_t i = odd; i <= d->degree; i += 2)
        c[count++] = d->c[i];
    expm_sum(r, to, low - 1, powers, c + 1, c[0]);
    if (count > 4) {
        expm_sum(r, r->at[SPARE], count - 4, powers, c + 4, 0);
        expm_multiply(r, to, r->at[POWER_6], r->at[SPARE], true);
    }
}

// Replaces POWER_1 by its approximant. Returns LAPACK's info.
static int expm_approximate(const struct expm_room *r, const struct expm_degree *d,
                            int *pivots)
{
    void *const *at = r->at;
    int n = r->n, info = 0;
    expm_multiply(r, at[POWER_2], at[POWER_1], at[POWER_1], false);
    if (d->degree >= 5)
        expm_multiply(r, at[POWER_4], at[POWER_2], at[POWER_2], false);
    if (d->degree >= 7)
        expm_multiply(r, at[POWER_6], at[POWER_4], at[POWER_2], false);
    expm_half(r, at[EVEN], d, 0);
    expm_half(r, at[ODD], d, 1);
    expm_multiply(r, at[SPARE], at[POWER_1], at[ODD], false);
    const void *const both[] = {at[EVEN], at[SPARE]};
    expm_sum(r, at[POWER_1], 2, both, (const double[]){1, 1}, 0);
    expm_sum(r, at[ODD], 2, both, (const double[]){1, -1}, 0);
    r->lapack->getrf(&n, &n, at[ODD], &n, pivots, &info);
    if (info == 0)
        r->lapack->getrs("N", &n, &n, at[ODD], &n, pivots, at[POWER_1], &n, &info, 1);
    return info;
}

// EXPM_MAGNITUDES(T): the sum of magnitudes of a column of `parts` numbers, in four lanes.
#define EXPM_MAGNITUDES(T)                                                                 \
    for (; i + 4 <= parts && !is_complex; i += 4)                                          \
        for (size_t k = 0; k < 4; k++)                                                     \
            sum[k] += fabs((double)((const T *)column)[i + k]);                            \
    for (; i < parts && !is_complex; i++)                                                  \
        sum[0] += fabs((double)((const T *)column)[i]);                                    \
    for (; i < parts; i += 2)                                                              \
    sum[0] += hypot((double)((const T *)column)[i], (double)((const T *)column)[i + 1])

// The greatest column sum of magnitudes.
static double expm_norm(const struct expm_room *r, tn_dtype dtype)
{
    bool is_complex = tn_is_complex(dtype);
    size_t parts = r->parts / (size_t)r->n;
    const char *column = r->at[POWER_1];
    double most = 0;
    for (int j = 0; j < r->n; j++, column += (size_t)r->n * tn_dtype_bytes(dtype)) {
        double sum[4] = {0};
        size_t i = 0;
        if (r->is_single) {
            EXPM_MAGNITUDES(float);
        } else {
            EXPM_MAGNITUDES(double);
        }
        double all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        most = all > most ? all : most;
    }
    return most;
}

static int expm_exponentiate(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    struct matrix_view x = job_matrix(job, &job->call->outputs[0], 2, index);
    size_t numbers = tn_is_complex(a.dtype) ? 2 : 1;
    struct expm_room r = {.lapack = job->lapack,
                          .n = (int)a.rows,
                          .is_single = tn_dtype_real(a.dtype) == TN_F32,
                          .parts = (size_t)a.rows * (size_t)a.rows * numbers,
                          .step = ((size_t)a.rows + 1) * numbers};
    if (r.n == 0)
        return 0;
    if (!matrix_is_finite(a)) {
        matrix_fill_nan(x);
        return 0;
    }
    for (int part = POWER_1; part < PIVOTS; part++)
        r.at[part] = room + job->room.at[part];
    matrix_copy(matrix_by_rows(r.at[POWER_1], a.dtype, r.n, r.n), a);
    int halved;
    const struct expm_degree *d = expm_choose(expm_norm(&r, a.dtype), r.is_single, &halved);
    double factor = ldexp(1, -halved);
    if (halved > 0)
        expm_sum(&r, r.at[POWER_1], 1, (const void *const[]){r.at[POWER_1]}, &factor, 0);
    int info = expm_approximate(&r, d, (int *)(room + job->room.at[PIVOTS]));
    for (int i = 0; i < halved && info == 0; i++) {
        void *square = r.at[SPARE];
        expm_multiply(&r, square, r.at[POWER_1], r.at[POWER_1], false);
        r.at[SPARE] = r.at[POWER_1];
        r.at[POWER_1] = square;
    }
    if (info == 0)
        matrix_copy(x, matrix_by_rows(r.at[POWER_1], a.dtype, r.n, r.n));
    return info;
}

// --- calls ------------------------------------------------------------------------------

static const char *expm_explain(int code)
{
    return code > 0 ? "has an approximant that is singular" : job_refused(code);
}

static struct batch_room expm_room_of(const tn_layout *a)
{
    struct batch_room room = {.size = 0};
    uint64_t n = (uint64_t)a->extent[a->rank - 1];
    for (int part = POWER_1; part < PIVOTS; part++)
        room_add(&room, part, n * n, (uint64_t)tn_dtype_bytes(a->dtype));
    room_add(&room, PIVOTS, n, sizeof(int));
    return room;
}

static uint64_t expm_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch), expm_room_of(a).size);
}

static tn_status expm_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)a->extent[a->rank - 1];
    struct batch_job job =
        job_start(call, "linalg.expm", expm_exponentiate, a, 2, n * n * n * 16);
    job.room = expm_room_of(a);
    return job_launch(&job, expm_explain);
}

static tn_status expm_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_square(infer->host, "a", &infer->types[0]);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

// --- derivatives ------------------------------------------------------------------------

// The greatest magnitude of each matrix, as a constant; 1 where all elements are 0.
static tn_array *expm_size(const tn_build *build, tn_array *e)
{
    tn_array *size = build->expr(build, "e -> abs(e)", TN_IN(e), TN_NO_ATTRS);
    size = build->op(build, "base.max/1", TN_IN(size),
                     tn_attrs("axis", TN_INTS(-2, -1), "keepdims", INT64_C(1)));
    size = build->op(build, "base.stop_gradient/1", TN_IN(size), TN_NO_ATTRS);
    return build->expr(build, "s -> s == 0 ? 1 : s", TN_IN(size), TN_NO_ATTRS);
}

// The derivative is linear in e, which is scaled to magnitude 1: a large e would have the
// whole block halved more often, and each squaring loses digits.
static tn_array *expm_derivative(const tn_build *build, tn_array *a, tn_array *e)
{
    const tn_type *type = build->type(a);
    if (!type || !e)
        return NULL;
    int64_t n = type->extent[type->rank - 1];
    if (n == 0)
        return e;
    tn_array *size = expm_size(build, e);
    e = build->expr(build, "e, s -> e / s", TN_IN(e, size), TN_NO_ATTRS);
    tn_array *none = build->op(build, "base.zeros_like/1", TN_IN(a), TN_NO_ATTRS);
    tn_array *both = above(build, beside(build, a, e), beside(build, none, a));
    both = build->op(build, "linalg.expm/1", TN_IN(both), TN_NO_ATTRS);
    both = columns_of(build, rows_of(build, both, 0, n), n, n);
    return build->expr(build, "x, s -> x * s", TN_IN(both, size), TN_NO_ATTRS);
}

TN_VJP(expm_vjp)
{
    gradients[0] = expm_derivative(build, adjoint(build, rule->inputs[0]), cotangents[0]);
    return TN_OK;
}

TN_JVP(expm_jvp)
{
    out_tangents[0] = expm_derivative(build, rule->inputs[0], tangents[0]);
    return TN_OK;
}

TN_VMAP(expm_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.expm/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

LAPACKS(expm, TN_INPUTS(linalg_a), "The exponential function of square matrices.");
