// SPDX-License-Identifier: MIT
// Products of matrices of floats by a BLAS that callers have: functions of the CBLAS
// interface.
#ifndef KERNELS_CPU_GEMM_H
#define KERNELS_CPU_GEMM_H

// Numbers of the CBLAS interface.
enum { BLAS_ROW_MAJOR = 101, BLAS_NO_TRANS = 111, BLAS_TRANS = 112 };

struct blas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c,
                  int ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                  const double *a, int lda, const double *b, int ldb, double beta,
                  double *c, int ldc);
    // Products of complex numbers; alpha and beta point to complex numbers.
    void (*cgemm)(int order, int trans_a, int trans_b, int m, int n, int k,
                  const void *alpha, const void *a, int lda, const void *b, int ldb,
                  const void *beta, void *c, int ldc);
    void (*zgemm)(int order, int trans_a, int trans_b, int m, int n, int k,
                  const void *alpha, const void *a, int lda, const void *b, int ldb,
                  const void *beta, void *c, int ldc);
};

#endif // KERNELS_CPU_GEMM_H
