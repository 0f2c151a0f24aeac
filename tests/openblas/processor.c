// SPDX-License-Identifier: MIT
// The choice of OpenBLAS' kernels, by facts alone.
#include <unistd.h>
#include "check.h"
#include "openblas/environment.h"
#include "openblas/processor.h"
#include "openblas/version.h"

#define SSE PROCESSOR_SSE42
#define AVX (SSE | PROCESSOR_AVX)
#define AVX2 (AVX | PROCESSOR_AVX2)
#define AVX512 (AVX2 | PROCESSOR_AVX512)
#define V19 BLAS_VERSION(0, 3, 19)
#define V25 BLAS_VERSION(0, 3, 25)
#define INTEL "GenuineIntel"
#define AMD "AuthenticAMD"

static const struct row {
    const char *what;
    struct processor processor;
    const char *core; // NULL: left alone
    uint32_t right;   // the first version that is left alone; 0: none
} rows[] = {
    // What OpenBLAS knows, or chooses by instruction sets itself.
    {"Pentium 4", {INTEL, 15, 4, 0}, NULL},
    {"Core 2", {INTEL, 6, 0x0f, 0}, NULL},
    {"Nehalem", {INTEL, 6, 0x1a, SSE}, NULL},
    {"Sandy Bridge", {INTEL, 6, 0x2a, AVX}, NULL},
    {"Haswell", {INTEL, 6, 0x3c, AVX2}, NULL},
    {"Broadwell", {INTEL, 6, 0x4f, AVX2}, NULL},
    {"Skylake server", {INTEL, 6, 0x55, AVX512}, NULL},
    {"Ice Lake server", {INTEL, 6, 0x6a, AVX512}, NULL},
    {"Sapphire Rapids", {INTEL, 6, 0x8f, AVX512}, NULL},
    {"Sapphire Rapids, AVX-512 hidden", {INTEL, 6, 0x8f, AVX2}, NULL},
    {"Alder Lake", {INTEL, 6, 0x97, AVX2}, NULL},
    {"Rocket Lake", {INTEL, 6, 0xa7, AVX512}, NULL},
    {"Meteor Lake", {INTEL, 6, 0xaa, AVX2}, NULL},
    {"Granite Rapids", {INTEL, 6, 0xad, AVX512}, NULL},
    {"Sierra Forest", {INTEL, 6, 0xaf, AVX2}, NULL},
    {"Opteron", {AMD, 15, 5, 0}, NULL},
    {"Bulldozer", {AMD, 0x15, 1, AVX}, NULL},
    {"Excavator", {AMD, 0x15, 0x60, AVX2}, NULL},
    {"Zen", {AMD, 0x17, 1, AVX2}, NULL},
    {"Zen 2", {AMD, 0x17, 0x31, AVX2}, NULL},
    {"Zen 3", {AMD, 0x19, 0x21, AVX2}, NULL},
    {"Zen 4", {AMD, 0x19, 0x11, AVX512}, NULL},
    {"Zen 5", {AMD, 0x1a, 2, AVX512}, NULL},
    {"Hygon", {"HygonGenuine", 0x18, 0, AVX2}, NULL},
    // What it takes for a Prescott.
    {"Emerald Rapids", {INTEL, 6, 0xcf, AVX512}, "SkylakeX", V25},
    {"Emerald Rapids, AVX-512 hidden", {INTEL, 6, 0xcf, AVX2}, "Haswell", V25},
    {"Emerald Rapids, AVX2 hidden", {INTEL, 6, 0xcf, AVX}, "Sandybridge", V25},
    {"Emerald Rapids, AVX hidden", {INTEL, 6, 0xcf, SSE}, "Nehalem", V25},
    {"Raptor Lake", {INTEL, 6, 0xb7, AVX2}, "Haswell", V25},
    {"Lunar Lake", {INTEL, 6, 0xbd, AVX2}, "Haswell", V25},
    {"Arrow Lake", {INTEL, 6, 0xc6, AVX2}, "Haswell", V25},
    {"Clearwater Forest", {INTEL, 6, 0xdd, AVX2}, "Haswell", V25},
    {"Diamond Rapids", {INTEL, 19, 1, AVX512}, "SkylakeX"},
    // Zen kernels, though AVX2 is hidden.
    {"Zen 2, AVX2 hidden", {AMD, 0x17, 0x31, AVX}, "Sandybridge"},
    {"Zen 3, AVX hidden", {AMD, 0x19, 0x21, SSE}, "Nehalem"},
    {"Zen 5, AVX2 hidden", {AMD, 0x1a, 2, AVX}, NULL},
    // Vendors that it does not know.
    {"Zhaoxin", {"  Shanghai  ", 7, 0x5b, AVX2}, "Haswell"},
    {"Centaur", {"CentaurHauls", 6, 0x47, AVX512}, "SkylakeX"},
    {"an emulator", {"TCGTCGTCGTCG", 6, 6, AVX2}, "Haswell", V19},
    {"nothing known", {"", 0, 0, 0}, NULL},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void is_told(const struct row *row, uint32_t version, const char *expected)
{
    const char *core = blas_core_override(&row->processor, version);
    if (!core != !expected || (core && strcmp(core, expected) != 0))
        cr_fatal("%s, version %06x: %s, expected %s", row->what, (unsigned)version,
                 core ? core : "left alone", expected ? expected : "left alone");
}

Test(processor, each_processor_gets_its_kernels)
{
    static const uint32_t versions[] = {0,   BLAS_VERSION(0, 3, 10), V19 - 1,
                                        V19, BLAS_VERSION(0, 3, 21), V25 - 1,
                                        V25, BLAS_VERSION(0, 3, 28), BLAS_VERSION(1, 0, 0)};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < COUNT(versions); k++)
            is_told(&rows[i], versions[k],
                    rows[i].right && versions[k] >= rows[i].right ? NULL : rows[i].core);
}

Test(processor, what_is_asked_for_is_as_new_as_the_processor)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].core)
            cr_assert(eq(uint, blas_core_level(rows[i].core),
                         processor_level(&rows[i].processor)));
    cr_assert(eq(uint, blas_core_level("PRESCOTT"), BLAS_SSE));
    cr_assert(eq(uint, blas_core_level("neoversev9"), BLAS_LEVEL_UNKNOWN));
    cr_assert(eq(uint, blas_core_level(""), BLAS_LEVEL_UNKNOWN));
}

// Compilers ask the same questions of the same processor.
Test(processor, this_processor_is_read_as_the_compiler_does)
{
#if defined(__x86_64__)
    struct processor p = processor_read();
    cr_assert(
        eq(int, !!(p.features & PROCESSOR_SSE42), !!__builtin_cpu_supports("sse4.2")));
    cr_assert(eq(int, !!(p.features & PROCESSOR_AVX), !!__builtin_cpu_supports("avx")));
    cr_assert(eq(int, !!(p.features & PROCESSOR_AVX2),
                 __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
    cr_assert(eq(int, !!(p.features & PROCESSOR_AVX512),
                 __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512cd") &&
                     __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl")));
#endif
}

// --- variables -------------------------------------------------------------------------

static void is(const char *name, const char *value)
{
    const char *now = getenv(name), *seen = environment_get(name);
    if (!value) {
        cr_assert(eq(ptr, now, NULL));
        cr_assert(eq(ptr, seen, NULL));
    } else {
        cr_assert(eq(str, now, value));
        cr_assert(eq(str, seen, value));
    }
}

Test(processor, variables_are_there_for_a_while)
{
    setenv("TEST_SET", "the user's", 1);
    setenv("TEST_FORCED", "8", 1);
    unsetenv("TEST_NEW");
    unsetenv("TEST_NONE");
    const struct variable variables[] = {{"TEST_SET", "ours", false},
                                         {"TEST_FORCED", "1", true},
                                         {"TEST_NEW", "new", false},
                                         {"TEST_NONE", NULL, false},
                                         {"TEST_NEW2", "", false}};
    for (int i = 0; i < 2; i++) {
        struct environment e = environment_add(variables, COUNT(variables));
        is("TEST_SET", "the user's");
        is("TEST_FORCED", "1");
        is("TEST_NEW", "new");
        is("TEST_NONE", NULL);
        is("TEST_NEW2", "");
        is("PATH", getenv("PATH"));
        environment_restore(&e);
        is("TEST_SET", "the user's");
        is("TEST_FORCED", "8");
        is("TEST_NEW", NULL);
        is("TEST_NEW2", NULL);
    }
}

Test(processor, a_variable_that_another_sets_meanwhile_stays)
{
    const struct variable variables[] = {{"TEST_NEW", "new", false}};
    struct environment e = environment_add(variables, 1);
    setenv("TEST_OTHER", "kept", 1);
    environment_restore(&e);
    is("TEST_OTHER", "kept");
    unsetenv("TEST_NEW");
}

Test(processor, an_empty_environment_is_fine)
{
    char **all = environ;
    environ = NULL;
    const struct variable variables[] = {{"TEST_NEW", "new", false}};
    struct environment e = environment_add(variables, 1);
    is("TEST_NEW", "new");
    environment_restore(&e);
    is("TEST_NEW", NULL);
    environ = all;
}
