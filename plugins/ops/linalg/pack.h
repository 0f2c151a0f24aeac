// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, the checks of arguments, and
// pieces of graph for rules.
#ifndef LINALG_PACK_H
#define LINALG_PACK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/linalg_attrs.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// Primitives that have a kernel, and their files, which meson.build reads here:
// X(name, "file") for linalg_<name> and linalg_<name>_kernel.
#define LINALG_FACTORISATIONS(X)                                                           \
    X(cholesky, "cholesky.c")                                                              \
    X(solve_triangular, "triangular.c")                                                    \
    X(lu_factor, "lu.c")                                                                   \
    X(lu_permutation, "permutation.c")                                                     \
    X(solve, "solve.c")                                                                    \
    X(inv, "solve.c")                                                                      \
    X(det, "det.c")                                                                        \
    X(slogdet, "det.c")                                                                    \
    X(adjugate, "adjugate.c")                                                              \
    X(qr, "qr.c")                                                                          \
    X(svd, "svd.c")                                                                        \
    X(svdvals, "svd.c")                                                                    \
    X(eigh, "eigh.c")                                                                      \
    X(eigvalsh, "eigh.c")                                                                  \
    X(eig, "eig.c")                                                                        \
    X(eigvals, "eig.c")                                                                    \
    X(lstsq, "lstsq.c")                                                                    \
    X(expm, "expm.c")
// Composites: X(name, "file") for linalg_<name>.
#define LINALG_COMPOSITES(X)                                                               \
    X(lu, "lu.c")                                                                          \
    X(tri_inv, "inverse.c")                                                                \
    X(cholesky_inv, "inverse.c")                                                           \
    X(vector_norm, "norms.c")                                                              \
    X(matrix_norm, "norms.c")                                                              \
    X(norm, "norms.c")                                                                     \
    X(cond, "norms.c")                                                                     \
    X(matrix_power, "power.c")                                                             \
    X(matrix_rank, "pinv.c")                                                               \
    X(pinv, "pinv.c")
#define LINALG_DECLARE(name, ...) extern const tn_primitive linalg_##name;
LINALG_FACTORISATIONS(LINALG_DECLARE)
LINALG_COMPOSITES(LINALG_DECLARE)
#undef LINALG_DECLARE
#define LINALG_DECLARE(name, ...) extern const tn_kernel linalg_##name##_kernel;
LINALG_FACTORISATIONS(LINALG_DECLARE)
#undef LINALG_DECLARE

// The record of a primitive with a kernel, and the kernel's. Uses functions NAME_infer,
// NAME_vjp, NAME_jvp and NAME_vmap, a definition, NAME_launch and NAME_scratch. Further
// fields of the primitive may follow.
#define FACTORISATION(stem, definition, room, sentence, ...)                               \
    const tn_primitive linalg_##stem = {.struct_size = sizeof(tn_primitive),               \
                                        .id = "linalg." #stem "/1",                        \
                                        .doc = sentence,                                   \
                                        .infer = stem##_infer,                             \
                                        .reference = definition,                           \
                                        .reference_scratch = room,                         \
                                        .vjp = stem##_vjp,                                 \
                                        .jvp = stem##_jvp,                                 \
                                        .vmap = stem##_vmap,                               \
                                        __VA_ARGS__};                                      \
    const tn_kernel linalg_##stem##_kernel = {                                             \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "linalg." #stem "/1",                                                 \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "lapack",                                                                  \
        .priority = 500,                                                                   \
        TN_OPERANDS(linalg_operands),                                                      \
        .accepts = lapack_accepts,                                                         \
        .scratch_size = stem##_scratch,                                                    \
        .payload = &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel),            \
                                          .launch = stem##_launch},                        \
    }
// FACTORISATION() for a primitive that LAPACK defines: the reference is the kernel, on one
// thread. `takes` are its inputs.
#define LAPACKS(stem, takes, sentence, ...)                                                \
    static tn_status stem##_define(const tn_cpu_call *call)                                \
    {                                                                                      \
        return job_define(call, stem##_launch);                                            \
    }                                                                                      \
    static uint64_t stem##_define_scratch(const tn_kernel_query *query)                    \
    {                                                                                      \
        return job_define_scratch(query, stem##_scratch);                                  \
    }                                                                                      \
    FACTORISATION(stem, stem##_define, stem##_define_scratch, sentence, takes, __VA_ARGS__)
enum { LINALG_MOST_OUTPUTS = 4 };
// The record of a composite.
#define COMPOSITE(stem, sentence, ...)                                                     \
    const tn_primitive linalg_##stem = {.struct_size = sizeof(tn_primitive),               \
                                        .id = "linalg." #stem "/1",                        \
                                        .doc = sentence,                                   \
                                        .decompose = stem##_decompose,                     \
                                        __VA_ARGS__}
#define DECOMPOSE(stem)                                                                    \
    static tn_status stem##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)

#define LINALG_DTYPES (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) | TN_COMPLEX_DTYPES)
// Operands of the kernels: LINALG_DTYPES, and integers for pivots and ranks, of any
// strides.
extern const tn_operand_rule linalg_operands[1];
extern const tn_input_info linalg_a[1]; // the input list "a"

// `accepts` of kernels: whether LAPACK was found.
int32_t lapack_accepts(const tn_kernel_query *query);

// --- checks (check.c) -------------------------------------------------------------------

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT]);

// Fails unless the input `name` is of matrices that LAPACK can count: its integers have 32
// bits.
tn_status check_matrices(const tn_host *host, const char *name, const tn_type *type);
// check_matrices(), and fails unless the matrices are square.
tn_status check_square(const tn_host *host, const char *name, const tn_type *type);

// Broadcasts the axes in front of the matrices of a and b, and leaves room for `core` axes
// behind them: *out gets the rank of both together, and a's dtype. Fails when they do not
// broadcast. `core_b` is 1 when b is a vector, else 2.
tn_status check_batches(const tn_host *host, const tn_type *a, const tn_type *b,
                        int32_t core_b, tn_type *out);

// Gives the type of x in a x = b, for checked matrices a. A b with one axis is a vector.
tn_status check_system(const tn_host *host, const tn_type *a, const tn_type *b,
                       tn_type *out);

// --- graph building (graph.c) -----------------------------------------------------------

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// Whether a vjp has to give the gradient of input `input`: one bit an input.
static inline bool wants(const uint64_t *wanted, uint32_t input)
{
    return (wanted[input / 64] >> input % 64 & 1) != 0;
}

tn_array *product(const tn_build *build, tn_array *a, tn_array *b); // a @ b
tn_array *conjugate(const tn_build *build, tn_array *a);  // of a real array, a itself
tn_array *transposed(const tn_build *build, tn_array *a); // swaps the last two axes
tn_array *adjoint(const tn_build *build, tn_array *a);
// The elements on and below diagonal k or, with `upper`, on and above it.
tn_array *triangle(const tn_build *build, tn_array *a, bool upper, int64_t k);
tn_array *scaled(const tn_build *build, tn_array *a, double factor);
tn_array *plus(const tn_build *build, tn_array *a, tn_array *b);  // NULL: zero
tn_array *minus(const tn_build *build, tn_array *a, tn_array *b); // neither is NULL
// (a + a's adjoint) / 2.
tn_array *hermitian_part(const tn_build *build, tn_array *a);
// The lower triangle with half the diagonal.
tn_array *half_triangle(const tn_build *build, tn_array *a);
// x with an axis of extent 1 behind the last, and without it again.
tn_array *as_column(const tn_build *build, tn_array *x);
tn_array *as_vector(const tn_build *build, tn_array *x);

// Rows, or columns, [first, first + count) of matrices: views.
tn_array *rows_of(const tn_build *build, tn_array *a, int64_t first, int64_t count);
tn_array *columns_of(const tn_build *build, tn_array *a, int64_t first, int64_t count);
// Joins b behind the columns of a, or below its rows.
tn_array *beside(const tn_build *build, tn_array *a, tn_array *b);
tn_array *above(const tn_build *build, tn_array *a, tn_array *b);
// A diagonal matrix for each vector of x, and the diagonals of square matrices.
tn_array *diagonal_matrix(const tn_build *build, tn_array *x);
tn_array *diagonal_of(const tn_build *build, tn_array *a);
// w_j - w_i for the values in each row of w; 1 on the diagonal.
tn_array *value_differences(const tn_build *build, tn_array *w);
tn_array *without_diagonal(const tn_build *build, tn_array *a);
// The identity of n rows, of dtype `dtype`.
tn_array *identity(const tn_build *build, int64_t n, tn_dtype dtype);
tn_array *real_part(const tn_build *build, tn_array *a); // of a real array, a itself
// x converted to the dtype of `type`.
tn_array *in_dtype(const tn_build *build, tn_array *x, const tn_type *type);
// x[..., None, :] and x[..., :, None], which broadcast over rows, and over columns.
tn_array *as_row(const tn_build *build, tn_array *x);
tn_array *elementwise(const tn_build *build, const char *expression, tn_array *a,
                      tn_array *b);

// op(a)^-1 b; `transpose` is TN_LINALG_NONE ...
tn_array *triangular_solution(const tn_build *build, tn_array *a, tn_array *b,
                              const tn_solve_triangular_attrs *attrs);

// The vmap of a primitive with one input of matrices: applies it with the batch axis in
// front, as in all outputs.
tn_status batched_matrices(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                           const char *primitive, tn_attr_list attrs, tn_array **outputs,
                           int32_t *out_axes);

// The inputs of a system a x = b with the batch axis in front, padded by axes of extent 1
// where a slice has fewer axes. Returns whether a slice's b is a vector: *out_b has it as a
// column.
bool batched_system(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    tn_array **out_a, tn_array **out_b);

#endif // LINALG_PACK_H
