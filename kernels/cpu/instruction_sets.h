// SPDX-License-Identifier: MIT
// Instruction sets of the processor.
#ifndef KERNELS_CPU_INSTRUCTION_SETS_H
#define KERNELS_CPU_INSTRUCTION_SETS_H

#include <stdint.h>

// Instruction sets, as bits.
enum {
    CPU_HAS_AVX2 = 1,   // AVX2, FMA, F16C
    CPU_HAS_AVX512 = 2, // AVX-512 F, BW, CD, DQ, VL
    CPU_HAS_VNNI = 8,   // AVX-512 VNNI
    CPU_HAS_AMX = 16,   // AMX-INT8 and AMX-BF16, beside AVX-512 VNNI
};

// The instruction sets that both the processor and the operating system offer: CPU_HAS_...
// Asks the system to let this process use the registers of AMX; a context switch then saves
// some 8 KB more of each thread that uses them.
uint32_t cpu_features(void);

#endif // KERNELS_CPU_INSTRUCTION_SETS_H
