// SPDX-License-Identifier: MIT
// Eigenvalues and eigenvectors of Hermitian matrices, a v = v diag(w), by LAPACK's syevd
// and heevd (divide and conquer).
//
// Derivatives: Giles, "Collected matrix derivative results", 2008, section 3.1, for a
// Hermitian a: the gradient is Hermitian, and of a tangent only the Hermitian part counts.
// Gradients of vectors divide by 0 where eigenvalues are equal; as PyTorch's, they keep the
// phase of a complex vector.
#include "memory/batch.h"

enum { MATRIX, WORK, REALS, INTEGERS }; // parts of the room
enum { NOT_FINITE = INT32_MIN };

// LAPACK's work arrays have twice the square of this.
#define MOST 32000

static bool values_only(uint32_t num_outputs)
{
    return num_outputs == 1;
}

// Memory of a by rows is memory of its conjugate by columns: the other triangle.
static const char *uplo_of(const void *attrs)
{
    return ((const tn_eigh_attrs *)attrs)->uplo == TN_LINALG_LOWER ? "U" : "L";
}

static struct batch_room eigh_room(const tn_layout *a, uint32_t num_outputs)
{
    const struct lapack *lapack = lapack_find(a->dtype, NULL);
    struct batch_room room = {.size = 0};
    const char *jobz = values_only(num_outputs) ? "N" : "V";
    uint64_t n = (uint64_t)a->extent[a->rank - 1];
    int count = (int)n, query = -1, integers = 0, info = 0, lda = n > 0 ? count : 1;
    tn_complex128 none = {0, 0}, answer = {0, 0}, reals = {0, 0};
    room.too_large = n > MOST;
    if (lapack && !room.too_large && tn_is_complex(a->dtype))
        lapack->heevd(jobz, "L", &count, &none, &lda, &none, &answer, &query, &reals,
                      &query, &integers, &query, &info, 1, 1);
    else if (lapack && !room.too_large)
        lapack->syevd(jobz, "L", &count, &none, &lda, &none, &answer, &query, &integers,
                      &query, &info, 1, 1);
    room_add(&room, MATRIX, n * n, (uint64_t)tn_dtype_bytes(a->dtype));
    room_add_work(&room, WORK, a->dtype, &answer);
    room_add_work(&room, REALS, tn_dtype_real(a->dtype), &reals);
    room_add(&room, INTEGERS, (uint64_t)integers, sizeof(int));
    return room;
}

static int eigh_decompose(const struct batch_job *job, int64_t index, char *room)
{
    const tn_cpu_call *call = job->call;
    struct matrix_view a = job_matrix(job, &call->inputs[0], 2, index);
    struct matrix_view w = job_matrix(job, &call->outputs[0], 1, index);
    const char *jobz = values_only(call->num_outputs) ? "N" : "V";
    const char *uplo = uplo_of(call->attrs);
    const struct batch_room *parts = &job->room;
    struct matrix_view z =
        matrix_by_rows(room + parts->at[MATRIX], a.dtype, a.rows, a.rows);
    int n = (int)a.rows, info = 0, lwork = (int)parts->length[WORK];
    int lrwork = (int)parts->length[REALS], liwork = (int)parts->length[INTEGERS];
    int *integers = (int *)(room + parts->at[INTEGERS]);
    if (n == 0)
        return 0;
    matrix_copy_triangle(z, a, uplo[0] == 'L');
    if (!matrix_is_finite(z))
        return NOT_FINITE;
    if (tn_is_complex(a.dtype))
        job->lapack->heevd(jobz, uplo, &n, z.data, &n, w.data, room + parts->at[WORK],
                           &lwork, room + parts->at[REALS], &lrwork, integers, &liwork,
                           &info, 1, 1);
    else
        job->lapack->syevd(jobz, uplo, &n, z.data, &n, w.data, room + parts->at[WORK],
                           &lwork, integers, &liwork, &info, 1, 1);
    if (info == 0 && jobz[0] == 'V') {
        struct matrix_view v = job_matrix(job, &call->outputs[1], 2, index);
        matrix_copy(v, matrix_transposed(z));
        matrix_conjugate(v);
    }
    return info;
}

static uint64_t eigh_scratch(const tn_kernel_query *query)
{
    const tn_layout *a = &query->inputs[0], batch = job_batch(a, 2);
    return job_scratch(query, tn_layout_count(&batch),
                       eigh_room(a, query->num_outputs).size);
}
#define eigvalsh_scratch eigh_scratch

static const char *eigh_explain(int code)
{
    return code == NOT_FINITE ? "has a NaN or an infinity, expected finite elements"
           : code > 0         ? "has eigenvalues that LAPACK does not find"
                              : job_refused(code);
}

static tn_status eigh_launch(const tn_cpu_call *call)
{
    const tn_layout *a = &call->inputs[0].layout;
    double n = (double)a->extent[a->rank - 1];
    const char *name = values_only(call->num_outputs) ? "linalg.eigvalsh" : "linalg.eigh";
    struct batch_job job = job_start(call, name, eigh_decompose, a, 2, 9 * n * n * n);
    job.room = eigh_room(a, call->num_outputs);
    return job_launch(&job, eigh_explain);
}
#define eigvalsh_launch eigh_launch

// --- types and rules --------------------------------------------------------------------

static tn_status eigvalsh_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    tn_status status = check_square(infer->host, "a", a);
    if (status != TN_OK)
        return status;
    types[0] = *a;
    types[0].rank--;
    types[0].dtype = tn_dtype_real(a->dtype);
    return TN_OK;
}

static tn_status eigh_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = eigvalsh_infer(infer, types);
    if (status == TN_OK)
        types[1] = infer->types[0];
    return status;
}

// v diag(x) v^H.
static tn_array *from_values(const tn_build *build, tn_array *v, tn_array *x)
{
    tn_array *columns = elementwise(build, "v, x -> v * x", v, as_row(build, x));
    return product(build, columns, adjoint(build, v));
}

// v (diag(g_w) + v^H g_v / (w_j - w_i)) v^H, of which the Hermitian part.
TN_VJP(eigh_vjp)
{
    tn_array *w = rule->outputs[0], *v = rule->outputs[1], *g = cotangents[1];
    if (!g && !cotangents[0])
        return TN_OK;
    if (!g) {
        gradients[0] = from_values(build, v, cotangents[0]);
        return TN_OK;
    }
    g = product(build, adjoint(build, v), g);
    g = elementwise(build, "g, e -> g / e", without_diagonal(build, g),
                    value_differences(build, w));
    if (cotangents[0])
        g = plus(build, g, diagonal_matrix(build, cotangents[0]));
    g = product(build, product(build, v, g), adjoint(build, v));
    gradients[0] = hermitian_part(build, g);
    return TN_OK;
}

// w: the diagonal of v^H t v. v: v times the rest of v^H t v, divided by differences of w.
TN_JVP(eigh_jvp)
{
    tn_array *w = rule->outputs[0], *v = rule->outputs[1];
    if (!tangents[0])
        return TN_OK;
    tn_array *p = product(
        build, product(build, adjoint(build, v), hermitian_part(build, tangents[0])), v);
    out_tangents[0] = real_part(build, diagonal_of(build, p));
    p = elementwise(build, "p, e -> p / e", without_diagonal(build, p),
                    value_differences(build, w));
    out_tangents[1] = product(build, v, p);
    return TN_OK;
}

static const char *const triangles[] = {"L", "U", NULL};

TN_VMAP(eigh_vmap)
{
    const tn_eigh_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.eigh/1",
                            tn_attrs("uplo", triangles[attrs->uplo]), outputs, out_axes);
}

// The vectors, which an application for values alone did not give.
static tn_array *eigh_vectors(const tn_build *build, const tn_rule *rule)
{
    const tn_eigh_attrs *attrs = rule->attrs;
    tn_array *wv[2] = {NULL, NULL};
    build->op_n(build, "linalg.eigh/1", TN_IN(rule->inputs[0]),
                tn_attrs("uplo", triangles[attrs->uplo]), wv, 2);
    return wv[1];
}

TN_VJP(eigvalsh_vjp)
{
    if (cotangents[0])
        gradients[0] = from_values(build, eigh_vectors(build, rule), cotangents[0]);
    return TN_OK;
}

TN_JVP(eigvalsh_jvp)
{
    if (!tangents[0])
        return TN_OK;
    tn_array *v = eigh_vectors(build, rule);
    tn_array *terms = elementwise(build, "v, w -> real(conj(v) * w)", v,
                                  product(build, hermitian_part(build, tangents[0]), v));
    out_tangents[0] =
        build->op(build, "base.sum/1", TN_IN(terms), tn_attrs("axis", TN_INTS(-2)));
    return TN_OK;
}

TN_VMAP(eigvalsh_vmap)
{
    const tn_eigh_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.eigvalsh/1",
                            tn_attrs("uplo", triangles[attrs->uplo]), outputs, out_axes);
}

static const tn_output_info eigh_outputs[] = {
    {"w", "eigenvalues, the least first", 0, 0},
    {"v", "eigenvectors, the columns", 0, 0},
};
static const tn_attr_field fields[] = {
    TN_CHOICE_FIELD(tn_eigh_attrs, uplo, TN_LINALG_LOWER, triangles,
                    "which triangle of a is read"),
};
LAPACKS(eigh, TN_INPUTS(linalg_a), "Eigenvalues and eigenvectors of Hermitian matrices.",
        TN_OUTPUTS(eigh_outputs), .attrs = TN_ATTR_TABLE(tn_eigh_attrs, fields));
LAPACKS(eigvalsh, TN_INPUTS(linalg_a),
        "Eigenvalues of Hermitian matrices, the least first.",
        .attrs = TN_ATTR_TABLE(tn_eigh_attrs, fields));
