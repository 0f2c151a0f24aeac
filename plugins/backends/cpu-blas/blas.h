// SPDX-License-Identifier: MIT
// OpenBLAS, opened when it is first needed: loading it costs several milliseconds and
// starts threads, and most commands never multiply matrices.
#ifndef CPU_BLAS_BLAS_H
#define CPU_BLAS_BLAS_H

#include <stdbool.h>
#include <stdint.h>

enum { BLAS_ROW_MAJOR = 101, BLAS_NO_TRANS = 111, BLAS_TRANS = 112 };

struct blas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c,
                  int ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                  const double *a, int lda, const double *b, int ldb, double beta,
                  double *c, int ldc);
};

// The library, or NULL when it is not installed. Any thread.
const struct blas *blas_open(void);

// Around calls from several threads of ours at once: OpenBLAS keeps to the calling thread
// in between. May be used by several threads. NULL (and then nothing to leave) when there
// is no library.
const struct blas *blas_enter(void);
void blas_leave(void);

#endif // CPU_BLAS_BLAS_H
