// SPDX-License-Identifier: MIT
// The device of a table of cases, and the processor's arithmetic peak in f32: fused
// multiply-adds on registers alone, with the widest vectors that TENON_CPU allows.
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PEAK_TIMES 2000000 // of a loop: a few ms
#define PEAK_ROUNDS 5

// NAME(n) computes twelve independent chains of n multiply-adds, and returns their sum, so
// that the compiler keeps them.
#define PEAK(NAME, TARGET, VECTOR, SET, MULTIPLY_ADD, FIRST)                               \
    __attribute__((target(TARGET))) static float NAME(uint64_t n)                          \
    {                                                                                      \
        VECTOR a[12], b = SET(0.999f), c = SET(1e-3f);                                     \
        for (int k = 0; k < 12; k++)                                                       \
            a[k] = SET((float)k);                                                          \
        for (uint64_t i = 0; i < n; i++)                                                   \
            for (int k = 0; k < 12; k++)                                                   \
                a[k] = MULTIPLY_ADD(a[k], b, c);                                           \
        for (int k = 1; k < 12; k++)                                                       \
            a[0] = MULTIPLY_ADD(a[k], b, a[0]);                                            \
        return FIRST(a[0]);                                                                \
    }

#if defined(__x86_64__)
#include <immintrin.h>
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)

static int choose_peak(float (**out)(uint64_t))
{
    const char *cap = getenv("TENON_CPU");
    bool is_avx2 = cap && strcmp(cap, "avx2") == 0;
    *out = NULL;
    if (cap && strcmp(cap, "baseline") == 0)
        return 0;
    if (!is_avx2 && __builtin_cpu_supports("avx512f"))
        *out = peak_avx512;
    else if (__builtin_cpu_supports("fma"))
        *out = peak_avx2;
    return *out == peak_avx512 ? 16 : 8;
}
#else
static int choose_peak(float (**out)(uint64_t))
{
    *out = NULL;
    return 0;
}
#endif
#undef PEAK

struct peak {
    pthread_t thread;
    float (*run)(uint64_t);
    volatile float kept;
};

static void *run_peak(void *self)
{
    struct peak *p = self;
    p->kept = p->run(PEAK_TIMES);
    return NULL;
}

// Operations a second of `count` threads at once; 0: not known here.
static double measure_peak(int count)
{
    struct peak *all = calloc((size_t)count, sizeof(*all));
    float (*run)(uint64_t);
    int width = choose_peak(&run), started = 0;
    double least = 0;
    for (int round = 0; all && run && round < PEAK_ROUNDS; round++) {
        double begin = now_seconds();
        for (started = 0; started < count; started++) {
            all[started].run = run;
            if (pthread_create(&all[started].thread, NULL, run_peak, &all[started]))
                break;
        }
        for (int i = 0; i < started; i++)
            pthread_join(all[i].thread, NULL);
        double took = now_seconds() - begin;
        least = least == 0 || took < least ? took : least;
    }
    free(all);
    return least > 0 ? 2.0 * 12 * width * started * (double)PEAK_TIMES / least : 0;
}

char *bench_machine(const struct bench *bench)
{
    tn_device_summary all[32];
    uint64_t count = COUNT(all);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    all[0].struct_size = sizeof(all[0]);
    if (!out)
        return NULL;
    if (tn_devices(bench->runtime, all, &count))
        failed_run(NULL);
    else
        for (uint64_t i = 0; i < count && i < COUNT(all); i++)
            if (all[i].selected == 1)
                fprintf(out, "%s: %s (%s)", all[i].backend, all[i].name, all[i].driver);
    double peak = bench->pinned && !bench->quick ? measure_peak(bench->threads) : 0;
    if (bench->pinned)
        fprintf(out, ", threads: %d", bench->threads);
    if (peak > 0)
        fprintf(out, ", peak of multiply-adds in f32: %.0f GFLOP/s", peak * 1e-9);
    fclose(out);
    return text;
}
