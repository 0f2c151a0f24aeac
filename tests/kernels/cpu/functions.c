// SPDX-License-Identifier: MIT
// Functions with loops of their own, and sums over windows, of every variant that this
// processor can run: errors in units of the last place, edges, and what does not divide by
// the width of vectors.
#include "check.h"

#include <float.h>
#include <math.h>
#include "cpu/cpu.h"

#define COUNT 4099
#define BOUND 1.0 // units in the last place

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

// The error of `got` in units of the last place of a float of `digits` bits, whose least
// number is 2^least.
static double error_of(long double got, long double want, int digits, int least)
{
    int exponent;
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    frexpl(want, &exponent);
    exponent = exponent - digits < least ? least : exponent - digits;
    return (double)(fabsl(got - want) / ldexpl(1, exponent));
}

static uint64_t next_word(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11 ^ *state << 43;
}

// Zero, infinity and NaN keep their sign; the least and the greatest numbers.
static const double edges[] = {
    0.0,      -0.0,    INFINITY, -INFINITY, NAN,     0x1p-149,  -0x1p-149, FLT_MIN,
    -FLT_MAX, FLT_MAX, -8,       27,        DBL_MIN, 0x1p-1074, DBL_MAX,   -1,
    0.5,      8,       -0.5,     -34.5,     34.9,    36,        -171.5,    7.9999995};
#define NUM_EDGES ((int)(sizeof(edges) / sizeof(edges[0])))

static void check_f32(const char *name, const char *function, cpu_map_fn *map,
                      long double (*right)(long double), float least, float most)
{
    float x[COUNT], y[COUNT + 1];
    uint64_t state = 33;
    const void *in = x;
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)next_word(&state);
        memcpy(&x[i], &bits, sizeof(bits));
        if (i % 2)
            x[i] = least + (most - least) * (float)bits * 0x1p-32f;
        if (i < NUM_EDGES)
            x[i] = (float)edges[i];
    }
    y[COUNT] = 7;
    map(y, &in, COUNT, 0);
    for (int i = 0; i < COUNT; i++) {
        float want = (float)right((long double)x[i]);
        double error = isinf(want) || isinf(y[i])
                           ? (want == y[i] ? 0 : 99)
                           : error_of(y[i], right((long double)x[i]), 24, -149);
        cr_assert(error <= BOUND && !signbit(y[i]) == !signbit(want), "%s %s(%a): %a", name,
                  function, (double)x[i], (double)y[i]);
    }
    cr_assert(eq(flt, y[COUNT], 7));
}

// tgammal has no result at poles, and one sign at both zeros.
static long double right_gamma(long double x)
{
    return x == 0 ? 1 / x : x < 0 && x == floorl(x) ? (long double)NAN : tgammal(x);
}

Test(cpu_functions, f32_is_within_a_unit)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        if (runs_here(*k)) {
            check_f32((*k)->name, "cbrt", (*k)->functions->cbrt_f32, cbrtl, -100, 100);
            check_f32((*k)->name, "gamma", (*k)->functions->gamma_f32, right_gamma, -40,
                      40);
        }
}

Test(cpu_functions, f64_is_within_a_unit)
{
    static double x[COUNT], y[COUNT];
    uint64_t state = 5;
    const void *in = x;
    for (int i = 0; i < COUNT; i++) {
        uint64_t bits = next_word(&state);
        memcpy(&x[i], &bits, sizeof(bits));
        x[i] = i < NUM_EDGES ? edges[i] : i % 2 ? 1 + 8 * (double)bits * 0x1p-64 : x[i];
    }
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (!runs_here(*k))
            continue;
        (*k)->functions->cbrt_f64(y, &in, COUNT, 0);
        for (int i = 0; i < COUNT; i++)
            cr_assert(error_of(y[i], cbrtl((long double)x[i]), 53, -1074) <= BOUND &&
                          !signbit(y[i]) == !signbit(x[i]),
                      "%s cbrt(%a): %a", (*k)->name, x[i], y[i]);
    }
}

// Within 12 units of itself and of 1, by exponents up to 2^40 and about poles and zeros.
Test(cpu_functions, lgamma_of_f64_is_within_its_bound)
{
    static double x[COUNT], y[COUNT];
    uint64_t state = 9;
    const void *in = x;
    for (int i = 0; i < COUNT; i++) {
        double fraction = (double)next_word(&state) * 0x1p-64;
        x[i] = i % 3 == 0   ? 9 * fraction
               : i % 3 == 1 ? 60 * fraction - 40
                            : ldexp(1 + fraction, (int)(next_word(&state) % 340) - 300);
        x[i] = i < NUM_EDGES ? edges[i] : x[i];
    }
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (!runs_here(*k))
            continue;
        (*k)->functions->lgamma_f64(y, &in, COUNT, 0);
        for (int i = 0; i < COUNT; i++) {
            long double want = lgammal((long double)x[i]);
            double error = error_of(y[i], want, 53, -52); // at least an ulp of 1
            bool is_right = isinf((double)want) ? y[i] == (double)want : error <= 12;
            cr_assert(is_right, "%s lgamma(%a): %a", (*k)->name, x[i], y[i]);
        }
    }
}

// --- sums over windows -------------------------------------------------------------------

#define MOST_PART 37
#define MOST_M 1100

// Whole numbers, whose sums are exact.
static void check_windows(const struct cpu_kernels *k, int64_t part, int64_t m)
{
    static _Alignas(64) double rows[(MOST_PART + MOST_M) * 16], out[MOST_PART * 16 + 16];
    static _Alignas(64) float narrow[(MOST_PART + MOST_M) * 16], sums[MOST_PART * 16 + 16];
    static double v[MOST_M];
    static float w[MOST_M];
    int64_t wide = k->windows->lanes_f64, lanes = k->windows->lanes_f32;
    for (int64_t i = 0; i < (part + m - 1) * 16; i++)
        narrow[i] = (float)(rows[i] = (double)(i * 7919 % 23) - 11);
    for (int64_t j = 0; j < m; j++)
        w[j] = (float)(v[j] = (double)(j * 31 % 13) - 6);
    out[part * wide] = sums[part * lanes] = 99;
    // In two pieces, as two threads have them.
    const struct cpu_windows of_f64 = {rows, v, out, m}, of_f32 = {narrow, w, sums, m};
    k->windows->sum_f64(&of_f64, 0, part / 3);
    k->windows->sum_f64(&of_f64, part / 3, part);
    k->windows->sum_f32(&of_f32, 0, part / 3);
    k->windows->sum_f32(&of_f32, part / 3, part);
    for (int64_t i = 0; i < part * lanes; i++) {
        double want = 0, narrower = 0;
        for (int64_t j = 0; j < m; j++) {
            want += i < part * wide ? rows[i + j * wide] * v[j] : 0;
            narrower += (double)narrow[i + j * lanes] * (double)w[j];
        }
        cr_assert(i >= part * wide || out[i] == want, "%s f64 %d %d: %g, %g", k->name,
                  (int)part, (int)i, out[i], want);
        cr_assert(eq(dbl, (double)sums[i], narrower), "%s f32 %d %d", k->name, (int)part,
                  (int)i);
    }
    cr_assert(eq(dbl, out[part * wide], 99));
    cr_assert(eq(flt, sums[part * lanes], 99));
}

Test(cpu_functions, windows_are_summed)
{
    static const int64_t parts[] = {1, 7, 8, 9, MOST_PART},
                         terms[] = {1, 6, 8, 13, 600, MOST_M};
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int p = 0; p < 5 && runs_here(*k); p++)
            for (int t = 0; t < 6; t++)
                check_windows(*k, parts[p], terms[t]);
}
