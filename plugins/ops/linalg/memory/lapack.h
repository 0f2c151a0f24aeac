// SPDX-License-Identifier: MIT
// LAPACK and BLAS of OpenBLAS, with Fortran's conventions: matrices by columns, 32-bit
// integers, arguments by address, lengths of texts behind all other arguments.
//
// The library is opened when it is first asked for (openblas/openblas.h), and never linked.
//
// Threads. Any.
#ifndef LINALG_LAPACK_H
#define LINALG_LAPACK_H

#include "../pack.h"

// X(member, name, name for complex numbers, arguments): functions, named without the letter
// of the dtype. A `void *` points to elements of the dtype. A function whose arguments
// differ for complex numbers has two members, one for each kind.
#define LAPACK_SYMBOLS(X)                                                                  \
    X(potrf, "potrf", "potrf",                                                             \
      (const char *uplo, const int *n, void *a, const int *lda, int *info, size_t))        \
    X(trsm, "trsm", "trsm",                                                                \
      (const char *side, const char *uplo, const char *trans, const char *diag,            \
       const int *m, const int *n, const void *alpha, const void *a, const int *lda,       \
       void *b, const int *ldb, size_t, size_t, size_t, size_t))                           \
    X(trsv, "trsv", "trsv",                                                                \
      (const char *uplo, const char *trans, const char *diag, const int *n, const void *a, \
       const int *lda, void *x, const int *step, size_t, size_t, size_t))                  \
    X(herk, "syrk", "herk",                                                                \
      (const char *uplo, const char *trans, const int *n, const int *k, const void *alpha, \
       const void *a, const int *lda, const void *beta, void *c, const int *ldc, size_t,   \
       size_t))                                                                            \
    X(gemm, "gemm", "gemm",                                                                \
      (const char *of_a, const char *of_b, const int *m, const int *n, const int *k,       \
       const void *alpha, const void *a, const int *lda, const void *b, const int *ldb,    \
       const void *beta, void *c, const int *ldc, size_t, size_t))                         \
    X(getrf, "getrf", "getrf",                                                             \
      (const int *m, const int *n, void *a, const int *lda, int *pivots, int *info))       \
    X(getri, "getri", "getri",                                                             \
      (const int *n, void *a, const int *lda, const int *pivots, void *work,               \
       const int *lwork, int *info))                                                       \
    X(getrs, "getrs", "getrs",                                                             \
      (const char *trans, const int *n, const int *k, const void *a, const int *lda,       \
       const int *pivots, void *b, const int *ldb, int *info, size_t))                     \
    X(geqrf, "geqrf", "geqrf",                                                             \
      (const int *m, const int *n, void *a, const int *lda, void *tau, void *work,         \
       const int *lwork, int *info))                                                       \
    X(orgqr, "orgqr", "ungqr",                                                             \
      (const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, \
       void *work, const int *lwork, int *info))                                           \
    X(gesdd, "gesdd", "gesdd",                                                             \
      (const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s,     \
       void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork,   \
       int *iwork, int *info, size_t))                                                     \
    X(gesdd_complex, "gesdd", "gesdd",                                                     \
      (const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s,     \
       void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork,   \
       void *rwork, int *iwork, int *info, size_t))                                        \
    X(syevd, "syevd", "heevd",                                                             \
      (const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, \
       void *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t,     \
       size_t))                                                                            \
    X(heevd, "syevd", "heevd",                                                             \
      (const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, \
       void *work, const int *lwork, void *rwork, const int *lrwork, int *iwork,           \
       const int *liwork, int *info, size_t, size_t))                                      \
    X(geev, "geev", "geev",                                                                \
      (const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda,        \
       void *wr, void *wi, void *vl, const int *ldvl, void *vr, const int *ldvr,           \
       void *work, const int *lwork, int *info, size_t, size_t))                           \
    X(geev_complex, "geev", "geev",                                                        \
      (const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda,        \
       void *w, void *vl, const int *ldvl, void *vr, const int *ldvr, void *work,          \
       const int *lwork, void *rwork, int *info, size_t, size_t))                          \
    X(gelsd, "gelsd", "gelsd",                                                             \
      (const int *m, const int *n, const int *k, void *a, const int *lda, void *b,         \
       const int *ldb, void *s, const void *rcond, int *rank, void *work,                  \
       const int *lwork, int *iwork, int *info))                                           \
    X(gelsd_complex, "gelsd", "gelsd",                                                     \
      (const int *m, const int *n, const int *k, void *a, const int *lda, void *b,         \
       const int *ldb, void *s, const void *rcond, int *rank, void *work,                  \
       const int *lwork, void *rwork, int *iwork, int *info))

// The functions of one dtype.
struct lapack {
#define LAPACK_MEMBER(name, of_real, of_complex, arguments) void(*name) arguments;
    LAPACK_SYMBOLS(LAPACK_MEMBER)
#undef LAPACK_MEMBER
};

// The functions of a dtype in LINALG_DTYPES; NULL when no library has them, with the reason
// in *out_why, which may be NULL.
const struct lapack *lapack_find(tn_dtype dtype, const char **out_why);

// Finds the functions for a call, and keeps fork() waiting until lapack_leave(). Fails with
// a remedy when there is no library, or no memory for its buffers.
tn_status lapack_enter(const tn_cpu_call *call, tn_dtype dtype,
                       const struct lapack **out_lapack);
void lapack_leave(void);

// Whether OpenBLAS has threads of its own, because OPENBLAS_NUM_THREADS says so or the
// application opened it first.
bool lapack_is_threaded(void);
// Bracket loops whose threads call LAPACK: each call then runs on one thread. Counted, for
// the whole process.
void lapack_limit_threads(void);
void lapack_free_threads(void);

// 1 as an element of any dtype: the element begins the constant.
extern const tn_complex128 lapack_one_f64;
extern const tn_complex64 lapack_one_f32;
static inline const void *lapack_one(tn_dtype dtype)
{
    return tn_dtype_real(dtype) == TN_F32 ? (const void *)&lapack_one_f32 : &lapack_one_f64;
}

#endif // LINALG_LAPACK_H
