// SPDX-License-Identifier: MIT
// Which of OpenBLAS' kernels suit a processor.
//
// Threads. Pure functions, but for processor_read, which asks the processor.
#ifndef OPENBLAS_PROCESSOR_H
#define OPENBLAS_PROCESSOR_H

#include <stdint.h>

// Instruction sets that the processor has and whose registers the operating system keeps.
enum {
    PROCESSOR_SSE42 = 1,
    PROCESSOR_AVX = 2,
    PROCESSOR_AVX2 = 4,   // AVX2, FMA
    PROCESSOR_AVX512 = 8, // AVX-512 F, BW, CD, DQ, VL
};

struct processor {
    char vendor[13];        // "GenuineIntel"
    uint32_t family, model; // with their extended parts, as /proc/cpuinfo has them
    uint32_t features;      // PROCESSOR_...
};

// What kernels are written for, from old to new.
enum blas_level { BLAS_LEVEL_UNKNOWN, BLAS_SSE, BLAS_AVX, BLAS_AVX2, BLAS_AVX512 };

struct processor processor_read(void);

// The newest kernels that it can run; unknown when this is no x86 processor.
enum blas_level processor_level(const struct processor *processor);

// Of kernels by OpenBLAS' name for them ("Haswell"), in any case of letters; unknown for
// names that this table lacks.
enum blas_level blas_core_level(const char *core);

// The kernels to ask for; NULL for unknown.
const char *blas_core_of(enum blas_level level);

// "AVX-512", ...
const char *blas_level_name(enum blas_level level);

// The value for OPENBLAS_CORETYPE, or NULL when OpenBLAS finds the right one itself.
const char *blas_core_for(const struct processor *processor);

#endif // OPENBLAS_PROCESSOR_H
