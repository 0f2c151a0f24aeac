// SPDX-License-Identifier: MIT
// Fourier transforms in f64: see fft.h.
#define REAL double
#define LANES 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define REVERSED 7, 6, 5, 4, 3, 2, 1, 0
#define FOLD V(cpu_fft_fold_f64)
#define PART V(cpu_fft_part_f64)
#define RUN V(cpu_fft_f64)
#include "fft.inc.h"
