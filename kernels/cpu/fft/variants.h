// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_FFT_VARIANTS_H
#define KERNELS_CPU_FFT_VARIANTS_H

#include "fft.h"
#include "cpu/variant.h"

extern cpu_fft_fn V(cpu_fft_f32), V(cpu_fft_f64);
extern cpu_fft_stage_fn V(cpu_fft_stage_f32), V(cpu_fft_stage_f64);
extern cpu_fft_fold_fn V(cpu_fft_fold_f32), V(cpu_fft_fold_f64);

#endif // KERNELS_CPU_FFT_VARIANTS_H
