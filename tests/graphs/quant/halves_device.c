// SPDX-License-Identifier: MIT
// Products of f32 with weights of f16 and bf16, on the backend that TENON_TEST_BACKEND
// names: nothing but the sum is rounded.
#include <math.h>
#include <stdlib.h>
#include <tenon/ops/reference.h>
#include "quant_matrix.h"

TestSuite(halves_device, .init = open_device, .fini = teardown);

// x is `rows` by k, from element `x_skipped` of its memory on, w n by k, from `w_skipped`.
struct product {
    int64_t rows, n, k, x_skipped, w_skipped;
};

static const tn_dtype halves[] = {TN_F16, TN_BF16};

static float value_of(tn_dtype dtype, uint16_t bits)
{
    return dtype == TN_F16 ? tn_f32_of_f16(bits) : tn_f32_of_bf16(bits);
}

// Halves of any bits but those of no number, and of magnitudes that sums in f32 bear.
static uint16_t any_half(tn_dtype dtype)
{
    uint16_t bits;
    do
        bits = (uint16_t)next_bits();
    while (fabsf(value_of(dtype, bits)) > 70000 || isnan(value_of(dtype, bits)) ||
           (dtype == TN_BF16 && fabsf(value_of(dtype, bits)) < 1e-6f));
    return bits;
}

static tn_array *skipped(tn_scope *s, tn_array *all, int64_t from, int64_t rows,
                         int64_t columns)
{
    tn_array *part =
        tn_op(s, "base.slice", TN_IN(all),
              tn_attrs("start", TN_INTS(from), "stop", TN_INTS(from + rows * columns)));
    return tn_op(s, "base.reshape", TN_IN(part), tn_attrs("shape", TN_INTS(rows, columns)));
}

// With `has_program` something is computed of the result at once.
static void run(const struct product *p, tn_dtype dtype, const float *x, const uint16_t *w,
                int has_program, float *got)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in =
        skipped(s, tn_from_data(s, TN_F32, TN_SHAPE(p->x_skipped + p->rows * p->k), x),
                p->x_skipped, p->rows, p->k);
    tn_array *matrix =
        skipped(s, tn_from_data(s, dtype, TN_SHAPE(p->w_skipped + p->n * p->k), w),
                p->w_skipped, p->n, p->k);
    tn_array *y = tn_op(s, "quant.quantized_matmul", TN_IN(in, matrix), TN_NO_ATTRS);
    if (has_program)
        y = tn_expr(s, "y -> y * 2", TN_IN(y), TN_NO_ATTRS);
    must(s, tn_read(s, y, got, (size_t)(p->rows * p->n) * sizeof(*got)));
    tn_scope_close(s);
}

// By how much of the sum of all magnitudes a sum may be off. Matrix units cut what they
// add, 16 terms of either float of x at a time, and bf16 has 16 bits of x in both.
static double tolerance(const struct product *p, tn_dtype dtype)
{
    bool has_units = strncmp(getenv("TENON_TEST_BACKEND"), "vulkan", 6) == 0;
    if (!has_units || p->rows <= 16)
        return 1e-6;
    return (dtype == TN_BF16 ? 0x1p-16 : 1e-6) + (double)p->k / 8 * 0x1p-23;
}

static void check_halves(struct product p, tn_dtype dtype)
{
    int64_t in_x = p.x_skipped + p.rows * p.k, in_w = p.w_skipped + p.n * p.k;
    float *x = malloc((size_t)(in_x + 1) * sizeof(*x));
    uint16_t *w = malloc((size_t)(in_w + 1) * sizeof(*w));
    float *got = malloc((size_t)(p.rows * p.n + 1) * sizeof(*got));
    for (int64_t i = 0; i < in_x; i++)
        x[i] = (float)next_bits() / 8388608 - 1;
    for (int64_t i = 0; i < in_w; i++)
        w[i] = any_half(dtype);
    for (int has_program = 0; has_program < 2; has_program++) {
        run(&p, dtype, x, w, has_program, got);
        int64_t step = p.rows > 100 ? 29 : 1;
        for (int64_t row = 0; row < p.rows; row += step)
            for (int64_t column = 0; column < p.n; column++) {
                double sum = 0, size = 0;
                for (int64_t i = 0; i < p.k; i++) {
                    double term =
                        (double)x[p.x_skipped + row * p.k + i] *
                        (double)value_of(dtype, w[p.w_skipped + column * p.k + i]);
                    sum += term;
                    size += fabs(term);
                }
                double found = (double)got[row * p.n + column] / (has_program ? 2 : 1);
                if (!(fabs(found - sum) <= tolerance(&p, dtype) * size + 1e-30))
                    cr_fatal("%s, %d x %d x %d: row %d, column %d is %g, expected %g",
                             tn_dtype_name(dtype), (int)p.rows, (int)p.k, (int)p.n,
                             (int)row, (int)column, found, sum);
            }
    }
    free(x);
    free(w);
    free(got);
}

// One row, few and many; terms that fill nothing that kernels read at once, rows and
// weights that begin anywhere; tiles of all sizes.
Test(halves_device, products_are_those_of_the_values)
{
    static const struct product all[] = {
        {1, 37, 1120, 0, 0},   {1, 5, 8, 0, 0},       {1, 3, 1, 0, 0},
        {1, 70, 33, 1, 1},     {2, 37, 64, 0, 8},     {3, 21, 264, 4, 0},
        {5, 40, 576, 3, 0},    {8, 16, 4128, 0, 0},   {9, 33, 40, 0, 0},
        {12, 64, 72, 0, 4},    {13, 20, 31, 0, 0},    {17, 36, 48, 0, 0},
        {18, 35, 36, 0, 0},    {40, 64, 96, 0, 4},    {40, 65, 30, 2, 3},
        {70, 132, 68, 4, 8},   {190, 730, 31, 0, 0},  {130, 260, 32, 0, 0},
        {520, 1030, 12, 1, 0}, {516, 1032, 12, 0, 0}, {1030, 1032, 12, 0, 0},
        {1540, 1412, 8, 0, 0}, {1, 0, 16, 0, 0},      {0, 4, 16, 0, 0},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t d = 0; d < 2; d++)
            check_halves(all[i], halves[d]);
    for (size_t d = 0; d < 2; d++) { // no terms: zeros
        float got[6] = {1, 1, 1, 1, 1, 1};
        const struct product none = {2, 3, 0, 0, 0};
        run(&none, halves[d], got, (const uint16_t[1]){0}, 0, got);
        for (int i = 0; i < 6; i++)
            cr_assert(eq(flt, got[i], 0));
    }
}

// Sizes that matrix units take: tiles that are not full, terms in parts, and those that end
// within a slice.
Test(halves_device, many_rows_are_those_of_the_values)
{
    static const struct product all[] = {
        {40, 520, 256, 1, 8},  {130, 264, 136, 0, 0},  {33, 4100, 40, 0, 0},
        {300, 250, 72, 4, 16}, {64, 72, 1024, 0, 0},   {129, 129, 1032, 0, 0},
        {96, 640, 4096, 0, 0}, {520, 1090, 776, 0, 0},
    };
    size_t count = sizeof(all) / sizeof(all[0]) - (getenv("TEST_LARGE") ? 0 : 2);
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < 2; d++)
            check_halves(all[i], halves[d]);
}

// Magnitudes of x that halves do not have: neither is lost in the largest.
Test(halves_device, x_is_not_rounded)
{
    static const struct product sizes[] = {{1, 40, 64, 0, 0}, {40, 64, 64, 0, 0}};
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < 2; i++) {
            const struct product *p = &sizes[i];
            static float x[40 * 64], got[40 * 64];
            static uint16_t w[64 * 64];
            memset(w, 0, sizeof(w));
            for (int64_t j = 0; j < p->rows * p->k; j++)
                x[j] = j % 64 == 0 ? 1e5f : j % 64 == 1 ? 1.0009765f : -1e30f;
            for (int64_t j = 0; j < p->n; j++) // x[0], or x[1], or both
                for (int64_t k = 0; k < 2; k++)
                    w[j * p->k + k] =
                        (j + 1) >> k & 1 ? halves[d] == TN_F16 ? 0x3c00 : 0x3f80 : 0;
            run(p, halves[d], x, w, 0, got);
            for (int64_t j = 0; j < p->rows * p->n; j++) {
                int64_t of = (j % p->n + 1) & 3;
                float want = (of & 1 ? 1e5f : 0) + (of & 2 ? 1.0009765f : 0);
                cr_assert(eq(flt, got[j], want));
            }
        }
}

// The same where matrix units multiply: 1e5 beside 1.0009765 in a row, and rows of other
// magnitudes beside.
Test(halves_device, large_x_gives_no_infinity)
{
    enum { ROWS = 160, N = 264, K = 136 };
    static const float magnitudes[] = {1e5f, 1, 3e-30f, 2e30f};
    static float x[ROWS * K], got[ROWS * N];
    static uint16_t w[N * K];
    const struct product p = {ROWS, N, K, 0, 0};
    for (size_t d = 0; d < 2; d++) {
        for (int64_t j = 0; j < ROWS * K; j++)
            x[j] = magnitudes[j / K % 4] * (j % K == 5 ? 1 : 1.0009765e-5f);
        for (int64_t j = 0; j < N * K; j++) // x[5], or x[6], or both
            w[j] = j % K == 5 + j / K % 3 || (j % K == 5 && j / K % 3 == 2)
                       ? (uint16_t)(halves[d] == TN_F16 ? 0x3c00 : 0x3f80)
                       : 0;
        run(&p, halves[d], x, w, 0, got);
        for (int64_t j = 0; j < ROWS * N; j++) {
            const float *row = x + j / N * K;
            float want = j % N % 3 == 0   ? row[5]
                         : j % N % 3 == 1 ? row[6]
                                          : row[5] + row[7];
            cr_assert(fabsf(got[j] - want) <= 0x1p-16f * want,
                      "%s: element %d is %g, not %g", tn_dtype_name(halves[d]), (int)j,
                      (double)got[j], (double)want);
        }
    }
}

// What is no number, in x and in w, at the ends of tiles, is where the reference has it.
Test(halves_device, what_is_no_number_stays_in_its_place)
{
    static const int64_t rows[] = {1, 6, 40, 1600};
    static const uint16_t strange[2][3] = {{0x7c00, 0xfc00, 0x7e01},
                                           {0x7f80, 0xff80, 0x7fc1}};
    enum { N = 68, K = 40 };
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < 4; i++) {
            static float x[1600 * K], got[1600 * N];
            static uint16_t w[N * K];
            const struct product p = {rows[i], N, K, 0, 0};
            for (int64_t j = 0; j < p.rows * K; j++)
                x[j] = 1;
            for (int64_t j = 0; j < N * K; j++)
                w[j] = 0;
            int64_t own = p.rows - 1;
            x[own * K + K - 1] = INFINITY;          // times 0 is no number
            w[0 * K] = strange[d][0];               // inf, but for the last row
            w[(N - 1) * K + K - 2] = strange[d][1]; // -inf
            w[33 * K + 7] = strange[d][2];
            run(&p, halves[d], x, w, 0, got);
            for (int64_t j = 0; j < p.rows * N; j++) {
                int64_t column = j % N;
                float y = got[j];
                bool fits = j / N == own || column == 33 ? isnan(y)
                            : column == 0                ? isinf(y) && y > 0
                            : column == N - 1            ? isinf(y) && y < 0
                                                         : y == 0;
                cr_assert(fits, "%s, %d rows: element %d is %g", tn_dtype_name(halves[d]),
                          (int)p.rows, (int)j, (double)y);
            }
        }
}
