// SPDX-License-Identifier: MIT
// OpenBLAS, opened when it is first needed: loading it costs several milliseconds and
// starts threads, and most commands never multiply matrices.
#ifndef CPU_BLAS_BLAS_H
#define CPU_BLAS_BLAS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/kernel.h>
#include "device.h"

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

// Around a launch that calls it, on threads of its device. On failure, recorded, there is
// nothing to leave: no library, or no memory for so many threads.
tn_status blas_enter(const tn_cpu_call *call, const struct blas **out_blas);
void blas_leave(void);

// What the library is, and what is wrong with it.
void blas_details(tn_device_details *out);

// Takes back what entering kept for the device.
void blas_close(tn_device *device);

// Whether OpenBLAS spreads a product over threads of its own: then ours keep away. It is so
// where OPENBLAS_NUM_THREADS says so, or the application opened it first.
bool blas_is_threaded(void);

#endif // CPU_BLAS_BLAS_H
