// SPDX-License-Identifier: MIT
// Random words and numbers of every variant that this processor can run, against one
// counter at a time: edge lengths, counters near 2^32, and nothing outside is written.
#include "check.h"

#include <float.h>
#include <math.h>
#include <tenon/ops/erfinv.h>
#include <tenon/ops/threefry.h>
#include "cpu/cpu.h"

#define MOST 300
#define GUARD 0xa5a5a5a5u

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

static void encrypt(const struct cpu_counters *c, int64_t i, uint32_t out[2])
{
    uint32_t x = c->first[0] + ((uint32_t)i & c->mask[0]);
    uint32_t y = c->first[1] + ((uint32_t)i & c->mask[1]);
    TN_THREEFRY(uint32_t, x, y, c->key[0], c->key[1]);
    out[0] = x;
    out[1] = y;
}

static void check_words(const struct cpu_kernels *k, int kind, const struct cpu_counters *c,
                        int64_t n)
{
    uint32_t x[MOST + 1], y[MOST + 1], pair[2];
    for (int64_t i = 0; i <= n; i++)
        x[i] = y[i] = GUARD;
    k->random->words[kind](x, y, c, n);
    for (int64_t i = 0; i < n; i++) {
        encrypt(c, i, pair);
        uint32_t want = kind == CPU_WORDS_FOLDED ? pair[0] ^ pair[1] : pair[0];
        cr_assert(eq(u32, x[i], want), "%s words %d of %d, %d", k->name, kind, (int)n,
                  (int)i);
        cr_assert(eq(u32, y[i], kind == CPU_WORDS_BOTH ? pair[1] : GUARD));
    }
    cr_assert(eq(u32, x[n], GUARD));
    cr_assert(eq(u32, y[n], GUARD));
}

static const int64_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 64, 65, 255, MOST};
#define NUM_LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

Test(cpu_random, words_are_encrypted_counters)
{
    static const struct cpu_counters counters[] = {
        {{0, 7}, {0, 0}, {UINT32_MAX, 0}},
        {{0, 7}, {0, UINT32_MAX - MOST}, {0, UINT32_MAX}},
        {{UINT32_MAX, 0xdeadbeef}, {3, 0x80000000}, {UINT32_MAX, UINT32_MAX}},
    };
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int c = 0; c < 3 && runs_here(*k); c++)
            for (int kind = 0; kind < CPU_NUM_WORDS; kind++)
                for (int i = 0; i < NUM_LENGTHS; i++)
                    check_words(*k, kind, &counters[c], lengths[i]);
}

// The words of Random123's test vectors for Threefry-2x32 of 20 rounds.
Test(cpu_random, words_are_those_of_the_algorithms_authors)
{
    static const struct {
        uint32_t key[2], counter[2], want[2];
    } known[] = {
        {{0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe}},
        {{UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}, {0x1cb996fc, 0xbb002be7}},
        {{0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}, {0xc4923a9c, 0x483df7a0}},
    };
    for (int i = 0; i < 3; i++) {
        struct cpu_counters c = {.key = {known[i].key[0], known[i].key[1]},
                                 .first = {known[i].counter[0], known[i].counter[1]}};
        uint32_t pair[2];
        encrypt(&c, 0, pair);
        cr_assert(eq(u32, pair[0], known[i].want[0]));
        cr_assert(eq(u32, pair[1], known[i].want[1]));
    }
}

static float number_of(int unit, uint32_t w)
{
    float half = fminf((float)w * 0x1p-32f, 0x1.fffffep-1f);
    float mantissa = (float)(w >> 9) * 0x1p-23f;
    switch (unit) {
    case CPU_UNIT_23:
        return mantissa;
    case CPU_UNIT_24:
        return (float)(w >> 8) * 0x1p-24f;
    case CPU_UNIT_24_AFTER:
        return (float)((w >> 8) + 1) * 0x1p-24f;
    case CPU_UNIT_32:
        return half;
    case CPU_SIGNED_23:
        return fmaxf(mantissa * 2 - 0x1.fffffep-1f, -0x1.fffffep-1f);
    case CPU_SIGNED_32:
        return fmaxf(half * 2 - 0x1.fffffep-1f, -0x1.fffffep-1f);
    default:
        return (float)(w >> 8) * 3.7450702e-7f;
    }
}

Test(cpu_random, words_become_numbers)
{
    static const uint32_t edges[] = {0,          1,          255,        256,
                                     511,        512,        0x7fffffff, 0x80000000,
                                     0xffffff00, 0xffffff7f, 0xffffff80, UINT32_MAX};
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int unit = 0; unit < CPU_NUM_UNITS && runs_here(*k); unit++)
            for (int l = 0; l < NUM_LENGTHS; l++) {
                union {
                    uint32_t words[MOST + 1];
                    float numbers[MOST + 1];
                } at;
                uint32_t before[MOST];
                int64_t n = lengths[l];
                for (int64_t i = 0; i <= n; i++)
                    at.words[i] = GUARD;
                for (int64_t i = 0; i < n; i++)
                    at.words[i] = before[i] =
                        i < 12 ? edges[i] : (uint32_t)((uint64_t)i * 2654435761u);
                (*k)->random->unit[unit](&at, n);
                for (int64_t i = 0; i < n; i++)
                    cr_assert(eq(flt, at.numbers[i], number_of(unit, before[i])),
                              "%s unit %d of %x", (*k)->name, unit, before[i]);
                cr_assert(eq(u32, at.words[n], GUARD));
            }
}

// What is beyond 0.9966 is computed in another way, of whole groups: f32 and f64 beside the
// definition, whatever their neighbours are.
Test(cpu_random, erfinv_near_one)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int share = 0; share < 4 && runs_here(*k); share++) {
            double x[MOST], y[MOST];
            float single[MOST], of_single[MOST];
            const void *in = x, *in_single = single;
            for (int i = 0; i < MOST; i++) {
                double near = 0.9966 + (i - MOST / 2) * 1e-6,
                       beyond = 1 - ldexp(1.5, -i % 53);
                double common = sin(7.0 * i) * 0.9966;
                x[i] = i % 4 >= share ? common : i % 2 ? -near : beyond;
                single[i] = (float)x[i];
            }
            (*k)->map[TN_F64][TN_EXPR_ERFINV](y, &in, MOST, 0);
            (*k)->map[TN_F32][TN_EXPR_ERFINV](of_single, &in_single, MOST, 0);
            for (int i = 0; i < MOST; i++) {
                double want = tn_erfinv(x[i]), want_single = tn_erfinv((double)single[i]);
                double error = x[i] == 0 ? y[i] - want : (y[i] - want) / want;
                cr_assert(fabs(error) <= 4 * DBL_EPSILON || y[i] == want,
                          "%s f64 of %a: %a", (*k)->name, x[i], y[i]);
                error = (double)of_single[i] - want_single;
                cr_assert(fabs(error) <= 1.5 * (double)FLT_EPSILON * fabs(want_single) ||
                              (double)of_single[i] == want_single,
                          "%s f32 of %a: %a", (*k)->name, (double)single[i],
                          (double)of_single[i]);
            }
        }
}
