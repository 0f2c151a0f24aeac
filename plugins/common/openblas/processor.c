// SPDX-License-Identifier: MIT
// OpenBLAS chooses its kernels by CPU family and model and, among the models known to its
// authors, by instruction sets. For other models it falls back to Prescott (SSE3). Versions
// since 0.3.10 choose alike for the models in last_wrong_version(); 0.3.21 was tested with
// each family and model by faulting CPUID. Later versions choose by instruction sets for
// more and more of the other models. Overriding a right choice costs little: kernels newer
// than SkylakeX differ from SkylakeX in bfloat16 only, which Tenon computes in f32.
#include "processor.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include "version.h"

#if defined(__x86_64__)
#include <cpuid.h>

// XCR0: the register state that the operating system saves.
static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static uint32_t openblas_processor_read_features(uint32_t leaf1_ecx)
{
    // Bits of XCR0: SSE and AVX; the same with the mask and both ZMM parts of AVX-512.
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
    processor.features = openblas_processor_read_features(c);
    return processor;
}
#else
struct processor processor_read(void)
{
    // On other architectures OpenBLAS asks the operating system.
    return (struct processor){0};
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

// Kernels by OpenBLAS' names. Every version of OpenBLAS has the first of each level, so
// that name is the one to ask for.
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

#define NONE 0
#define EACH UINT32_MAX

// The last version of OpenBLAS that chooses the wrong kernels for this processor, NONE or
// EACH. Known for 0.3.10 to 0.3.28.
static uint32_t last_wrong_version(const struct processor *p)
{
    if (strcmp(p->vendor, "GenuineIntel") == 0)
        return p->family != 6 || p->model < 0x10 ? EACH
               : p->model < 0xb0                 ? NONE
                                                 : BLAS_VERSION(0, 3, 24);
    if (strcmp(p->vendor, "AuthenticAMD") == 0 || strcmp(p->vendor, "HygonGenuine") == 0)
        // Zen kernels are chosen by family alone, even where a hypervisor hides AVX2.
        return p->family < 0x17 || p->family > 0x19 || (p->features & PROCESSOR_AVX2)
                   ? NONE
                   : EACH;
    if (strcmp(p->vendor, "CentaurHauls") == 0 || strcmp(p->vendor, "  Shanghai  ") == 0)
        return EACH;
    return BLAS_VERSION(0, 3, 18);
}

const char *blas_core_name(enum blas_level level)
{
    for (size_t i = 0; i < NUM_CORES; i++)
        if (cores[i].level == level)
            return cores[i].name;
    return NULL;
}

const char *blas_core_override(const struct processor *processor, uint32_t version)
{
    uint32_t wrong = last_wrong_version(processor);
    return wrong == NONE || version > wrong ? NULL
                                            : blas_core_name(processor_level(processor));
}
