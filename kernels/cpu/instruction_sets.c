// SPDX-License-Identifier: MIT
// Detects instruction sets. CPUID tells which sets the processor has, XCR0 which registers
// the operating system saves at a context switch; a set counts when both have it (Intel 64
// and IA-32 Architectures Software Developer's Manual, volume 1, sections 14.3 and 15.2).
#include "instruction_sets.h"

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// Asks Linux for permission to use the registers of AMX. They are large, so a process has
// them on request alone (arch/x86/xstate.rst of the kernel's documentation).
static bool ask_for_tiles(void)
{
    const long request = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

// XCR0. Bits: 17 and 18 tiles, 1 SSE, 2 AVX, 5 mask registers, 6 and 7 the 512-bit
// registers.
static uint64_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

uint32_t cpu_features(void)
{
    const uint32_t osxsave = 1u << 27, fma = 1u << 12, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t avx2 = 1u << 5, vnni = 1u << 11, amx = 1u << 22 | 1u << 24 | 1u << 25;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    uint32_t a, b, c, d, features = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
        return 0;
    uint32_t first = c;
    uint64_t state = enabled_state();
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    if ((first & (fma | avx | f16c)) == (fma | avx | f16c) && (b & avx2))
        features |= CPU_HAS_AVX2;
    if (features && (state & 0xe6) == 0xe6 && (b & avx512) == avx512)
        features |= CPU_HAS_AVX512;
    if (features & CPU_HAS_AVX512 && c & vnni)
        features |= CPU_HAS_VNNI;
    if (features & CPU_HAS_VNNI && (state & 0x60000) == 0x60000 && (d & amx) == amx &&
        ask_for_tiles())
        features |= CPU_HAS_AMX;
    return features;
}
#else
uint32_t cpu_features(void)
{
    return 0;
}
#endif
