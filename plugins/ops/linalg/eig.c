// SPDX-License-Identifier: MIT
// Eigenvalues and eigenvectors of general matrices, a v = v diag(w), by LAPACK's geev:
// complex, even for a real matrix, with vectors of length 1.
//
// Derivatives: Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, "On the computation of
// complex-valued gradients with application to statistically optimum beamforming", 2017,
// section 4.22, in PyTorch's form: vectors keep their length and phase. Gradients of
// vectors divide by 0 where eigenvalues are equal.
#include "memory/batch.h"

enum { MATRIX, VALUES, VECTORS, WORK, REALS }; // parts of the room
enum { EIG_NOT_FINITE = INT32_MIN };

static const char *eig_job(uint32_t num_outputs)
{
    return num_outputs == 1 ? "N" : "V";
}

static struct batch_room eig_room(const tn_layout *a, uint32_t num_outputs)
{
    const struct lapack *lapack = lapack_find(a->dtype, NULL);
    const char *jobv = eig_job(num_outputs);
    struct batch_room room = {.size = 0};
    uint64_t n = (uint64_t)a->extent[a->rank - 1],
             bytes = (uint64_t)tn_dtype_bytes(a->dtype);
    int count = (int)n, query = -1, info = 0, lda = n > 0 ? count : 1;
    tn_complex128 none = {0, 0}, answer = {0, 0};
    if (lapack && tn_is_complex(a->dtype))
        lapack->geev_complex("N", jobv, &count, &none, &lda, &none, &none, &lda, &none,
                             &lda, &answer, &query, &none, &info, 1, 1);
    else if (lapack)
        lapack->geev("N", jobv, &count, &none, &lda, &none, &none, &none, &lda, &none, &lda,
                     &answer, &query, &info, 1, 1);
    room_add(&room, MATRIX, n * n, bytes);
    room_add(&room, VALUES, 2 * n, bytes);
    room_add(&room, VECTORS, jobv[0] == 'V' ? n * n : 0, bytes);
    room_add_work(&room, WORK, a->dtype, &answer);
    room_add(&room, REALS, tn_is_complex(a->dtype) ? 2 * n : 0, bytes);
    return room;
}

// Vector j of a real matrix is column j, or, where j and j + 1 are conjugates, columns j +
// i (j + 1) and their conjugates.
#define UNPACK_VECTORS(name, T, C)                                                         \
    static void name(const struct matrix_view *v, const T *packed, const T *imaginary)     \
    {                                                                                      \
        C *out = (void *)v->data;                                                          \
        for (int64_t j = 0; j < v->columns; j++, packed += v->rows) {                      \
            bool pair = imaginary[j] != 0 && j + 1 < v->columns;                           \
            const T *im = pair ? packed + v->rows : NULL;                                  \
            for (int64_t i = 0; i < v->rows; i++) {                                        \
                C *to = &out[i * v->row + j * v->column];                                  \
                *to = (C){packed[i], pair ? im[i] : 0};                                    \
                if (pair)                                                                  \
                    to[v->column] = (C){packed[i], -im[i]};                                \
            }                                                                              \
            packed += pair ? v->rows : 0;                                                  \
            j += pair;                                                                     \
        }                                                                                  \
    }
UNPACK_VECTORS(unpack_f32, float, tn_complex64)
UNPACK_VECTORS(unpack_f64, double, tn_complex128)

static int eig_decompose(const struct batch_job *job, int64_t index, char *room)
{
    const tn_cpu_call *call = job->call;
    const struct batch_room *parts = &job->room;
    struct matrix_view a = job_matrix(job, &call->inputs[0], 2, index), v = {.rows = 0};
    struct matrix_view w = job_matrix(job, &call->outputs[0], 1, index);
    const char *jobv = eig_job(call->num_outputs);
    int n = (int)a.rows, info = 0, lwork = (int)parts->length[WORK];
    struct matrix_view copy = matrix_by_columns(room + parts->at[MATRIX], a.dtype, n, n);
    struct matrix_view packed = matrix_by_columns(room + parts->at[VECTORS], a.dtype, n, n);
    struct matrix_view re = matrix_by_columns(room + parts->at[VALUES], a.dtype, n, 1),
                       im = re;
    if (n == 0)
        return 0;
    if (!matrix_is_finite(a))
        return EIG_NOT_FINITE;
    matrix_copy(copy, a);
    im.data = matrix_at(&re, n, 0);
    if (jobv[0] == 'V')
        v = job_matrix(job, &call->outputs[1], 2, index);
    if (tn_is_complex(a.dtype)) {
        job->lapack->geev_complex("N", jobv, &n, copy.data, &n, w.data, NULL, &n,
                                  packed.data, &n, room + parts->at[WORK], &lwork,
                                  room + parts->at[REALS], &info, 1, 1);
        if (info == 0 && v.rows > 0)
            matrix_copy(v, packed);
        return info;
    }
    job->lapack->geev("N", jobv, &n, copy.data, &n, re.data, im.data, NULL, &n, packed.data,
                      &n, room + parts->at[WORK], &lwork, &info, 1, 1);
    for (int64_t i = 0; i < n && info == 0; i++)
        matrix_set(&w, i, 0,
                   (tn_complex128){matrix_get(&re, i, 0).re, matrix_get(&im, i, 0).re});
    if (info == 0 && v.rows > 0 && a.dtype == TN_F32)
        unpack_f32(&v, (const void *)packed.data, (const void *)im.data);
    else if (info == 0 && v.rows > 0)
        unpack_f64(&v, (const void *)packed.data, (const void *)im.data);
    return info;
}

static uint64_t eig_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch),
                       eig_room(a, query->num_outputs).size);
}
#define eigvals_scratch eig_scratch

static const char *eig_explain(int code)
{
    return code == EIG_NOT_FINITE ? "has a NaN or an infinity, expected finite elements"
           : code > 0             ? "has eigenvalues that LAPACK does not find"
                                  : job_refused(code);
}

static tn_status eig_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)a->extent[a->rank - 1];
    const char *name = call->num_outputs == 1 ? "linalg.eigvals" : "linalg.eig";
    struct batch_job job = job_start(call, name, eig_decompose, a, 2, 25 * n * n * n);
    job.room = eig_room(a, call->num_outputs);
    return job_launch(&job, eig_explain);
}
#define eigvals_launch eig_launch

// --- types and rules --------------------------------------------------------------------

static tn_status eigvals_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_status status = check_square(infer->host, "a", a);
    if (status != TN_OK)
        return status;
    types[0] = *a;
    types[0].rank--;
    types[0].dtype = tn_dtype_complex(a->dtype);
    return TN_OK;
}

static tn_status eig_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = eigvals_infer(infer, types);
    if (status == TN_OK) {
        types[1] = infer->types[0];
        types[1].dtype = types[0].dtype;
    }
    return status;
}

static tn_array *general_solution(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->op(build, "linalg.solve/1", TN_IN(a, b), TN_NO_ATTRS);
}

// v^-H core v^H; its real part where a is real.
static tn_array *from_core(const tn_build *build, const tn_rule *rule, tn_array *v,
                           tn_array *core)
{
    const tn_type *a = build->type(rule->inputs[0]);
    tn_array *vh = adjoint(build, v);
    tn_array *g = general_solution(build, vh, product(build, core, vh));
    return a && !tn_is_complex(a->dtype) ? real_part(build, g) : g;
}

// Removes from each column of g the real part of its component along that column of v, so
// that the vectors keep their length.
static tn_array *along_length(const tn_build *build, tn_array *v, tn_array *gram_with_g)
{
    tn_array *lengths = real_part(build, diagonal_of(build, gram_with_g));
    return elementwise(build, "v, r -> v * r", v, as_row(build, lengths));
}

TN_VJP(eig_vjp)
{
    tn_array *w = rule->outputs[0], *v = rule->outputs[1], *core = NULL;
    if (cotangents[1]) {
        tn_array *vh = adjoint(build, v), *p = product(build, vh, cotangents[1]);
        p = minus(build, p, product(build, vh, along_length(build, v, p)));
        core = elementwise(build, "p, e -> p / conj(e)", without_diagonal(build, p),
                           value_differences(build, w));
    }
    if (cotangents[0])
        core = plus(build, core, diagonal_matrix(build, cotangents[0]));
    if (core)
        gradients[0] = from_core(build, rule, v, core);
    return TN_OK;
}

TN_JVP(eig_jvp)
{
    tn_array *w = rule->outputs[0], *v = rule->outputs[1];
    const tn_type *type = build->type(v);
    if (!tangents[0])
        return TN_OK;
    tn_array *t = in_dtype(build, tangents[0], type);
    tn_array *p = general_solution(build, v, product(build, t, v));
    out_tangents[0] = diagonal_of(build, p);
    p = elementwise(build, "p, e -> p / e", without_diagonal(build, p),
                    value_differences(build, w));
    tn_array *moved = product(build, v, p);
    out_tangents[1] = minus(
        build, moved, along_length(build, v, product(build, adjoint(build, v), moved)));
    return TN_OK;
}

TN_VMAP(eig_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.eig/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

// The vectors, which an application for values alone did not give.
static tn_array *eig_vectors(const tn_build *build, const tn_rule *rule)
{
    tn_array *wv[2] = {NULL, NULL};
    build->op_n(build, "linalg.eig/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS, wv, 2);
    return wv[1];
}

TN_VJP(eigvals_vjp)
{
    if (cotangents[0])
        gradients[0] = from_core(build, rule, eig_vectors(build, rule),
                                 diagonal_matrix(build, cotangents[0]));
    return TN_OK;
}

TN_JVP(eigvals_jvp)
{
    if (!tangents[0])
        return TN_OK;
    tn_array *v = eig_vectors(build, rule);
    tn_array *t = in_dtype(build, tangents[0], build->type(v));
    out_tangents[0] = diagonal_of(build, general_solution(build, v, product(build, t, v)));
    return TN_OK;
}

TN_VMAP(eigvals_vmap)
{
    return batched_matrices(build, rule, axes, "linalg.eigvals/1", TN_NO_ATTRS, outputs,
                            out_axes);
}

static const tn_output_info eig_outputs[] = {
    {"w", "eigenvalues, complex, in LAPACK's order", 0, 0},
    {"v", "eigenvectors, the columns, of length 1", 0, 0},
};
LAPACKS(eig, TN_INPUTS(linalg_a),
        "Eigenvalues and eigenvectors of general matrices, complex numbers.",
        TN_OUTPUTS(eig_outputs));
LAPACKS(eigvals, TN_INPUTS(linalg_a), "Eigenvalues of general matrices, complex numbers.");
