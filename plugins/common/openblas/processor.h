// SPDX-License-Identifier: MIT
// Chooses the OpenBLAS kernels that suit a processor.
//
// Threads. Any. All functions are pure but processor_read, which executes CPUID.
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

// Instruction sets that kernels are written for, oldest first.
enum blas_level { BLAS_LEVEL_UNKNOWN, BLAS_SSE, BLAS_AVX, BLAS_AVX2, BLAS_AVX512 };

struct processor processor_read(void);

// The newest level that the processor can run; BLAS_LEVEL_UNKNOWN on other architectures
// than x86.
enum blas_level processor_level(const struct processor *processor);

// The level of the kernels that OpenBLAS calls `core` ("Haswell", in any case of letters);
// BLAS_LEVEL_UNKNOWN for a name that is not in the table.
enum blas_level blas_core_level(const char *core);

// OpenBLAS' name of kernels of this level that every version has; NULL for
// BLAS_LEVEL_UNKNOWN.
const char *blas_core_name(enum blas_level level);

// "AVX-512" and so on, for messages.
const char *blas_level_name(enum blas_level level);

// The value to set OPENBLAS_CORETYPE to; NULL when OpenBLAS of this version (version.h; 0:
// unknown) chooses the right kernels itself.
const char *blas_core_override(const struct processor *processor, uint32_t version);

#endif // OPENBLAS_PROCESSOR_H
