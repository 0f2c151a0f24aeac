// SPDX-License-Identifier: MIT
// Determinants from LU factors: the product of the diagonal, times a sign for each exchange
// of rows. A matrix with NaN has the determinant NaN.
#include <tenon/ops/complex.h>
#include "memory/threads.h"

enum { FACTORS, PIVOTS }; // parts of the room

static struct batch_room det_room(const tn_layout *a)
{
    struct batch_room room = {.size = 0};
    uint64_t n = (uint64_t)a->extent[a->rank - 1];
    room_add(&room, FACTORS, n * n, (uint64_t)tn_dtype_bytes(a->dtype));
    room_add(&room, PIVOTS, n, sizeof(int));
    room_add_group(&room, a->dtype, (int64_t)n, 0);
    return room;
}

// Factors a, or its transpose, which has the same determinant.
static struct matrix_view factored_matrix(const struct batch_job *job, int64_t index,
                                          char *room)
{
    struct matrix_view a = job_matrix(job, &job->call->inputs[0], 2, index);
    int n = (int)a.rows, info = 0;
    struct matrix_view to =
        matrix_by_rows(room + job->room.at[FACTORS], a.dtype, a.rows, a.rows);
    if (!matrix_copy_numbers(to, a))
        matrix_fill_nan(to);
    else if (n > 0)
        threads_lu(job, n, n, to.data, n, (int *)(room + job->room.at[PIVOTS]), &info);
    return to;
}

static double swaps_sign(const struct batch_job *job, int64_t n, const char *room)
{
    const int *pivots = (const int *)(room + job->room.at[PIVOTS]);
    double sign = 1;
    for (int64_t i = 0; i < n; i++)
        sign = pivots[i] == i + 1 ? sign : -sign;
    return sign;
}

static bool number_is_nan(tn_complex128 v)
{
    return v.re != v.re || v.im != v.im;
}

static void store_number(const struct batch_job *job, uint32_t output, int64_t index,
                         tn_complex128 v)
{
    const tn_tensor *out = &job->call->outputs[output];
    int64_t at[TN_MAX_RANK] = {0};
    for (int32_t i = out->layout.rank - 1; i >= 0; i--) {
        at[i] = index % out->layout.extent[i];
        index /= out->layout.extent[i];
    }
    tn_set_complex(out, tn_offset_at(&out->layout, at), v);
}

static void multiply_pivots(const struct batch_job *job, int64_t index,
                            struct matrix_view lu, double sign)
{
    tn_complex128 v = {sign, 0};
    for (int64_t i = 0; i < lu.rows; i++)
        v = tn_complex_multiply(v, matrix_get(&lu, i, i));
    store_number(job, 0, index, v);
}

// A singular matrix has the sign 0 and the logarithm -inf.
static void add_logarithms(const struct batch_job *job, int64_t index,
                           struct matrix_view lu, double swaps)
{
    tn_complex128 sign = {swaps, 0}, zero = {0, 0};
    double sum = 0;
    for (int64_t i = 0; i < lu.rows; i++) {
        tn_complex128 v = matrix_get(&lu, i, i);
        double size = hypot(v.re, v.im);
        sum += log(size);
        sign = size == 0
                   ? zero
                   : tn_complex_multiply(sign, (tn_complex128){v.re / size, v.im / size});
        if (size == 0)
            break;
    }
    store_number(job, 0, index, sign);
    store_number(job, 1, index, (tn_complex128){sum, 0});
}

static int det_of_one(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view lu = factored_matrix(job, index, room);
    bool nan = lu.rows > 0 && number_is_nan(matrix_get(&lu, 0, 0));
    double sign = lu.rows == 0 || nan ? 1 : swaps_sign(job, lu.rows, room);
    if (job->call->num_outputs == 1)
        multiply_pivots(job, index, lu, sign);
    else
        add_logarithms(job, index, lu, sign);
    return 0;
}

// Stores the determinants of a group, whose diagonals have a column for each lane.
static void store_products(const struct batch_job *job, int64_t index, int64_t count,
                           int64_t n, double diagonals[][SMALL_MOST_LANES],
                           const struct small_answer *answer)
{
    const struct small_matrices to =
        job_matrices(job, &job->call->outputs[0], 0, index, count);
    for (int64_t lane = 0; lane < count; lane++) {
        double v = answer->nan[lane] ? NAN : answer->sign[lane];
        for (int64_t i = 0; i < n; i++)
            v *= diagonals[i][lane];
        if (job->dtype == TN_F32)
            *(float *)to.at[lane] = (float)v;
        else
            *(double *)to.at[lane] = v;
    }
}

static int det_of_group(const struct batch_job *job, int64_t index, int64_t count,
                        char *room, int64_t *out_failed)
{
    const tn_tensor *a = &job->call->inputs[0];
    int64_t n = a->layout.extent[a->layout.rank - 1];
    struct small_matrices from = job_matrices(job, a, 2, index, count);
    struct small_group group = job_group(job, room, n, 0);
    struct small_answer answer;
    double diagonals[SMALL_MOST_ROWS][SMALL_MOST_LANES];
    (void)out_failed;
    job->small->load(&group, &from, 0, n);
    job->small->factor(&group, &answer);
    for (int64_t i = 0; i < n; i++)
        job->small->diagonal(&group, i, diagonals[i]);
    if (job->call->num_outputs == 1)
        store_products(job, index, count, n, diagonals, &answer);
    for (int64_t lane = 0; lane < count && job->call->num_outputs == 2; lane++) {
        struct matrix_view lu = {
            (char *)&diagonals[0][lane], TN_F64, 0, n, n, SMALL_MOST_LANES, 0};
        if (answer.nan[lane])
            diagonals[0][lane] = NAN;
        add_logarithms(job, index + lane, lu, answer.sign[lane]);
    }
    return 0;
}

static uint64_t det_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch), det_room(a).size);
}
#define slogdet_scratch det_scratch

static tn_status det_launch_as(const tn_cpu_call *call, const char *name)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)a->extent[a->rank - 1];
    struct batch_job job = job_start(call, name, det_of_one, a, 2, n * n * n * 2 / 3);
    job.room = det_room(a);
    job_use_groups(&job, det_of_group);
    return job_launch(&job, job_refused);
}

static tn_status det_launch(const tn_cpu_call *call)
{
    return det_launch_as(call, "linalg.det");
}

static tn_status slogdet_launch(const tn_cpu_call *call)
{
    return det_launch_as(call, "linalg.slogdet");
}

// --- types and rules --------------------------------------------------------------------

static tn_status det_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = check_square(infer->host, "a", &infer->types[0]);
    if (status == TN_OK) {
        types[0] = infer->types[0];
        types[0].rank -= 2;
    }
    return status;
}

static tn_status slogdet_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = det_infer(infer, types);
    if (status == TN_OK) {
        types[1] = types[0];
        types[1].dtype = tn_dtype_real(types[0].dtype);
    }
    return status;
}

static tn_array *inverse_of(const tn_build *build, tn_array *a)
{
    return build->op(build, "linalg.inv/1", TN_IN(a), TN_NO_ATTRS);
}

// Reshapes numbers, one for each matrix, to matrices of one element.
static tn_array *numbers_as_matrices(const tn_build *build, tn_array *x)
{
    return as_column(build, as_column(build, x));
}

// g times the conjugated cofactors, which a singular a has, too.
TN_VJP(det_vjp)
{
    if (!cotangents[0])
        return TN_OK;
    tn_array *cofactors = adjoint(
        build, build->op(build, "linalg.adjugate/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS));
    gradients[0] = build->expr(build, "g, c -> g * c",
                               TN_IN(numbers_as_matrices(build, cotangents[0]), cofactors),
                               TN_NO_ATTRS);
    return TN_OK;
}

// The trace of a @ b.
static tn_array *trace_of_product(const tn_build *build, tn_array *a, tn_array *b)
{
    tn_array *terms =
        build->expr(build, "a, b -> a * b", TN_IN(a, transposed(build, b)), TN_NO_ATTRS);
    return build->op(build, "base.sum/1", TN_IN(terms), tn_attrs("axis", TN_INTS(-2, -1)));
}

TN_JVP(det_jvp)
{
    if (tangents[0])
        out_tangents[0] = trace_of_product(
            build,
            build->op(build, "linalg.adjugate/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS),
            tangents[0]);
    return TN_OK;
}

TN_VMAP(det_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.det/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

// c a^-H: c is the logarithm's cotangent, less i times Im(conj(g) sign) for the sign's g.
TN_VJP(slogdet_vjp)
{
    const tn_type *type = build->type(rule->outputs[0]);
    tn_array *c = cotangents[1];
    if (!type)
        return TN_OK;
    if (cotangents[0] && tn_is_complex(type->dtype)) {
        tn_array *turn = build->expr(build, "g, s -> imag(conj(g) * s) * -1j",
                                     TN_IN(cotangents[0], rule->outputs[0]), TN_NO_ATTRS);
        c = plus(build, c, turn);
    }
    if (c)
        gradients[0] =
            build->expr(build, "c, x -> c * x",
                        TN_IN(numbers_as_matrices(build, c),
                              adjoint(build, inverse_of(build, rule->inputs[0]))),
                        TN_NO_ATTRS);
    return TN_OK;
}

TN_JVP(slogdet_jvp)
{
    const tn_type *type = build->type(rule->outputs[0]);
    if (!tangents[0] || !type)
        return TN_OK;
    tn_array *z = trace_of_product(build, inverse_of(build, rule->inputs[0]), tangents[0]);
    bool is_complex = tn_is_complex(type->dtype);
    out_tangents[1] =
        is_complex ? build->expr(build, "z -> real(z)", TN_IN(z), TN_NO_ATTRS) : z;
    if (is_complex)
        out_tangents[0] = build->expr(build, "z, s -> imag(z) * s * 1j",
                                      TN_IN(z, rule->outputs[0]), TN_NO_ATTRS);
    return TN_OK;
}

TN_VMAP(slogdet_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.slogdet/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

static const tn_output_info slogdet_outputs[] = {
    {"sign", "the determinant divided by its magnitude; 0 where that is 0", 0, 0},
    {"logabsdet", "the logarithm of the determinant's magnitude", 0, 0},
};
LAPACKS(det, TN_INPUTS(linalg_a), "The determinant of matrices.");
LAPACKS(slogdet, TN_INPUTS(linalg_a),
        "The sign of determinants, and the logarithm of their magnitude.",
        TN_OUTPUTS(slogdet_outputs));
