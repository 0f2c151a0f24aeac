// SPDX-License-Identifier: MIT
// OpenBLAS chooses its kernels by family and model, and by instruction sets among the
// models that its authors foresaw. For later ones it falls back on Prescott: SSE3. Versions
// since 0.3.10 agree in what is left alone here (0.3.21 was given each family and model by
// faulting CPUID); of later ones some know more models, and lose nothing by being told:
// kernels after SkylakeX differ from it in bfloat16 only, which Tenon computes in f32.
#include "processor.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#if defined(__x86_64__)
#include <cpuid.h>

// Register state that the operating system saves: XCR0.
static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static uint32_t read_features(uint32_t leaf1_ecx)
{
    const uint32_t avx_state = 0x6, avx512_state = 0xe6;
    const uint32_t avx512 =
        bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | (uint32_t)bit_AVX512VL;
    uint32_t a, b, c, d, features = leaf1_ecx & bit_SSE4_2 ? PROCESSOR_SSE42 : 0;
    if (!(leaf1_ecx & bit_OSXSAVE) || !(leaf1_ecx & bit_AVX) ||
        (saved_state() & avx_state) != avx_state)
        return features;
    features |= PROCESSOR_AVX;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) ||
        !(leaf1_ecx & bit_FMA))
        return features;
    features |= PROCESSOR_AVX2;
    if ((b & avx512) == avx512 && (saved_state() & avx512_state) == avx512_state)
        features |= PROCESSOR_AVX512;
    return features;
}

struct processor processor_read(void)
{
    struct processor processor = {0};
    uint32_t a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d))
        return processor;
    memcpy(processor.vendor, &b, 4);
    memcpy(processor.vendor + 4, &d, 4);
    memcpy(processor.vendor + 8, &c, 4);
    __get_cpuid(1, &a, &b, &c, &d);
    processor.family = a >> 8 & 15;
    processor.model = a >> 4 & 15;
    if (processor.family == 6 || processor.family == 15)
        processor.model |= a >> 12 & 0xf0;
    if (processor.family == 15)
        processor.family += a >> 20 & 255;
    processor.features = read_features(c);
    return processor;
}
#else
struct processor processor_read(void)
{
    return (struct processor){0}; // elsewhere OpenBLAS asks the operating system
}
#endif

enum blas_level processor_level(const struct processor *p)
{
    return p->features & PROCESSOR_AVX512  ? BLAS_AVX512
           : p->features & PROCESSOR_AVX2  ? BLAS_AVX2
           : p->features & PROCESSOR_AVX   ? BLAS_AVX
           : p->features & PROCESSOR_SSE42 ? BLAS_SSE
                                           : BLAS_LEVEL_UNKNOWN;
}

// The first of a level is the one to ask for: each version of OpenBLAS has it.
static const struct {
    const char *name;
    enum blas_level level;
} cores[] = {
    {"SkylakeX", BLAS_AVX512},
    {"Cooperlake", BLAS_AVX512},
    {"SapphireRapids", BLAS_AVX512},
    {"Haswell", BLAS_AVX2},
    {"Zen", BLAS_AVX2},
    {"Excavator", BLAS_AVX2},
    {"Sandybridge", BLAS_AVX},
    {"Bulldozer", BLAS_AVX},
    {"Piledriver", BLAS_AVX},
    {"Steamroller", BLAS_AVX},
    {"Nehalem", BLAS_SSE},
    {"Prescott", BLAS_SSE},
    {"Core2", BLAS_SSE},
    {"Penryn", BLAS_SSE},
    {"Dunnington", BLAS_SSE},
    {"Atom", BLAS_SSE},
    {"Nano", BLAS_SSE},
    {"Opteron", BLAS_SSE},
    {"Opteron_SSE3", BLAS_SSE},
    {"Barcelona", BLAS_SSE},
    {"Bobcat", BLAS_SSE},
    {"Katmai", BLAS_SSE},
    {"Coppermine", BLAS_SSE},
    {"Northwood", BLAS_SSE},
    {"Banias", BLAS_SSE},
    {"Athlon", BLAS_SSE},
};
#define NUM_CORES (sizeof(cores) / sizeof(cores[0]))

enum blas_level blas_core_level(const char *core)
{
    for (size_t i = 0; i < NUM_CORES; i++)
        if (strcasecmp(cores[i].name, core) == 0)
            return cores[i].level;
    return BLAS_LEVEL_UNKNOWN;
}

const char *blas_level_name(enum blas_level level)
{
    static const char *const names[] = {"unknown", "SSE", "AVX", "AVX2", "AVX-512"};
    return names[level];
}

// Whether OpenBLAS 0.3.10 and later choose by instruction sets, or for this very model.
static bool is_foreseen(const struct processor *p)
{
    if (strcmp(p->vendor, "GenuineIntel") == 0)
        return p->family == 6 && p->model >= 0x10 && p->model < 0xb0;
    if (strcmp(p->vendor, "AuthenticAMD") == 0 || strcmp(p->vendor, "HygonGenuine") == 0)
        // Zen kernels are chosen by family, also where a hypervisor hides AVX2.
        return p->family < 0x17 || p->family > 0x19 || (p->features & PROCESSOR_AVX2);
    return false;
}

const char *blas_core_of(enum blas_level level)
{
    for (size_t i = 0; i < NUM_CORES; i++)
        if (cores[i].level == level)
            return cores[i].name;
    return NULL;
}

const char *blas_core_for(const struct processor *processor)
{
    return is_foreseen(processor) ? NULL : blas_core_of(processor_level(processor));
}
