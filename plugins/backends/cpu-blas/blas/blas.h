// SPDX-License-Identifier: MIT
// OpenBLAS, loaded on first use: loading takes several milliseconds and starts threads, and
// most commands never multiply matrices.
#ifndef CPU_BLAS_BLAS_H
#define CPU_BLAS_BLAS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/kernel.h>
#include "cpu/matmul/gemm.h"
#include "device/device.h"

// The library, or NULL when it is not installed. Any thread.
const struct blas *blas_open(void);

// Bracket the part of a launch that calls OpenBLAS, on any threads of its device.
// blas_enter fails, with a message, without a library or without memory for so many
// threads; then blas_leave is not called.
tn_status blas_enter(const tn_cpu_call *call, const struct blas **out_blas);
void blas_leave(void);

// Describes the library, and warns if it is missing or slow.
void blas_details(tn_device_details *out);

// Releases the buffers that blas_enter reserved for the device.
void blas_close(tn_device *device);

// Whether OpenBLAS spreads a product over threads of its own, because OPENBLAS_NUM_THREADS
// says so or the application loaded it first. Then products are not split over the pool.
bool blas_is_threaded(void);

#endif // CPU_BLAS_BLAS_H
