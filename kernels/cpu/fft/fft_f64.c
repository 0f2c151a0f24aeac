// SPDX-License-Identifier: MIT
// Fourier transforms in f64: see fft.h.
#define REAL double
#define REAL_BYTES 8
#define VECTOR_FMA FMA_F64
#define FOLD V(cpu_fft_fold_f64)
#define STAGE V(cpu_fft_stage_f64)
#define RUN V(cpu_fft_f64)
#include "fft.inc.h"
