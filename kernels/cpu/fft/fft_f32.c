// SPDX-License-Identifier: MIT
// Fourier transforms in f32: see fft.h.
#define REAL float
#define REAL_BYTES 4
#define VECTOR_FMA FMA_F32
#define FOLD V(cpu_fft_fold_f32)
#define STAGE V(cpu_fft_stage_f32)
#define RUN V(cpu_fft_f32)
#include "fft.inc.h"
