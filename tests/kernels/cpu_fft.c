// SPDX-License-Identifier: MIT
// Fourier transforms of every variant that this processor can run, against the sum that
// defines them: every short length, long ones of each kind of plan, rows apart and in
// place.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include "cpu/cpu.h"

#define GUARD 0.625 // between and behind the rows

struct transform {
    int64_t n, rows, in_row, out_row;
    bool is_f64, is_inverse;
};

// What a run needs. Numbers are kept as double, too.
struct run {
    struct transform what;
    const struct cpu_fft *plan;
    void *memory, *scratch, *in, *out;
    double *given; // 2 * in_row * rows
};

static void *aligned(uint64_t bytes)
{
    uint64_t rounded = (bytes + CPU_FFT_ALIGNMENT) / CPU_FFT_ALIGNMENT * CPU_FFT_ALIGNMENT;
    void *memory = aligned_alloc(CPU_FFT_ALIGNMENT, rounded);
    cr_assert(ne(ptr, memory, NULL));
    memset(memory, 0xff, rounded); // NaN wherever nothing is written
    return memory;
}

static void put(const struct run *r, void *numbers, int64_t at, double value)
{
    if (r->what.is_f64)
        ((double *)numbers)[at] = value;
    else
        ((float *)numbers)[at] = (float)value;
}

static double get(const struct run *r, const void *numbers, int64_t at)
{
    return r->what.is_f64 ? ((const double *)numbers)[at]
                          : (double)((const float *)numbers)[at];
}

static cpu_fft_fn *function_of(const struct cpu_kernels *kernels, bool is_f64)
{
    return is_f64 ? kernels->fft_f64 : kernels->fft_f32;
}

static struct run run_new(const struct cpu_kernels *kernels, const struct transform *what)
{
    struct run r = {.what = *what};
    uint64_t size = what->is_f64 ? sizeof(double) : sizeof(float);
    uint64_t in = (uint64_t)(2 * what->in_row * what->rows) + 2;
    uint64_t out = (uint64_t)(2 * what->out_row * what->rows) + 2;
    uint32_t state = (uint32_t)what->n;
    const struct cpu_fft_rows of = {what->n, what->rows, what->is_f64};
    struct cpu_fft_size need = cpu_fft_measure(&of);
    r.memory = aligned(need.plan);
    r.scratch = aligned(need.scratch);
    r.in = aligned(in * size);
    r.out = aligned(out * size);
    r.given = calloc(in, sizeof(double));
    cr_assert(ne(ptr, r.given, NULL));
    r.plan = cpu_fft_plan(r.memory, &of, function_of(kernels, what->is_f64), r.scratch);
    cr_assert(eq(u64, r.plan->scratch, need.scratch));
    cr_assert(eq(int, need.stage > 0, r.plan->kind == CPU_FFT_FOUR_STEP));
    for (uint64_t i = 0; i < in; i++) {
        state = state * 1664525 + 1013904223;
        r.given[i] = (double)(int32_t)(state & 0xffffff00) / 2147483648.0;
        put(&r, r.in, (int64_t)i, r.given[i]);
    }
    for (uint64_t i = 0; i < out; i++)
        put(&r, r.out, (int64_t)i, GUARD);
    return r;
}

static void run_free(struct run *r)
{
    free(r->memory);
    free(r->scratch);
    free(r->in);
    free(r->out);
    free(r->given);
}

static void run_call(const struct run *r, const struct cpu_kernels *kernels, void *out)
{
    const struct cpu_fft_call call = {.plan = r->plan,
                                      .in = r->in,
                                      .out = out,
                                      .rows = r->what.rows,
                                      .in_row = r->what.in_row,
                                      .out_row = r->what.out_row,
                                      .scale = 0.5,
                                      .is_inverse = r->what.is_inverse,
                                      .scratch = r->scratch};
    function_of(kernels, r->what.is_f64)(&call);
}

// The distance of element k of a row from the sum that defines it.
static double error_of(const struct run *r, const void *out, int64_t row, int64_t k)
{
    const double *x = r->given + 2 * row * r->what.in_row;
    long double re = 0, im = 0;
    double turn = r->what.is_inverse ? 2 * M_PI : -2 * M_PI;
    int64_t n = r->what.n, at = 2 * (row * r->what.out_row + k);
    for (int64_t j = 0, p = 0; j < n; j++, p = (p + k) % n) {
        double angle = turn * (double)p / (double)n, c = cos(angle), s = sin(angle);
        re += x[2 * j] * c - x[2 * j + 1] * s;
        im += x[2 * j] * s + x[2 * j + 1] * c;
    }
    return hypot(get(r, out, at) - (double)re / 2, get(r, out, at + 1) - (double)im / 2);
}

// Every `step`th element of the first and the last row; guards.
static void expect_right(const struct run *r, const void *out, const char *name,
                         int64_t step)
{
    const struct transform *t = &r->what;
    // Errors grow with the logarithm of n, the sums with its square root.
    double bound = sqrt((double)t->n) * (t->is_f64 ? 2e-14 : 2e-6);
    for (int64_t row = 0; row<t->rows; row += t->rows> 1 ? t->rows - 1 : 1)
        for (int64_t k = 0; k < t->n; k += step) {
            double error = error_of(r, out, row, k);
            if (!(error <= bound))
                cr_fatal("%s: element %lld of row %lld of %lld: an error of %g, bound %g",
                         name, (long long)k, (long long)row, (long long)t->n, error, bound);
        }
    for (int64_t row = 0; out == r->out && row < t->rows; row++)
        for (int64_t at = 2 * (row * t->out_row + t->n); at < 2 * (row + 1) * t->out_row;
             at++)
            cr_assert(eq(dbl, get(r, out, at), GUARD), "%s writes behind a row of %lld",
                      name, (long long)t->n);
}

// Whether the variant rounds products and sums at once, as all of x86 but the baseline do.
static bool has_fma(const struct cpu_kernels *kernels)
{
    return kernels->needs != 0;
}

static void check_transform(const struct transform *t, int64_t step)
{
    void *first = NULL;
    struct run kept = {0};
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (((*k)->needs & cpu_features()) != (*k)->needs)
            continue;
        struct run r = run_new(*k, t);
        uint64_t bytes = (uint64_t)(2 * t->out_row * t->rows) * (t->is_f64 ? 8 : 4);
        run_call(&r, *k, r.out);
        if (first && has_fma(*k)) {
            cr_assert(eq(int, memcmp(first, r.out, bytes), 0), "%s: other bits for %lld",
                      (*k)->name, (long long)t->n);
            run_free(&r);
            continue;
        }
        expect_right(&r, r.out, (*k)->name, step);
        if (t->in_row == t->out_row) {
            run_call(&r, *k, r.in); // in place
            expect_right(&r, r.in, (*k)->name, step);
        }
        run_free(&kept);
        kept = r;
        first = r.out;
    }
    run_free(&kept);
}

Test(cpu_fft, short_rows_of_every_length_are_transformed)
{
    for (int64_t n = 1; n < 150; n++)
        for (int kind = 0; kind < 4; kind++) {
            int64_t rows = 1 + (n + kind) % 4 * 6, more = (n + kind) % 3;
            check_transform(&(struct transform){n, rows, n + more, n + kind % 2 * more,
                                                kind > 1, (kind + n) % 2},
                            1 + n / 40);
        }
}

// Blocks of both stages from the last to the first, each in memory of its own, give the
// bits of the whole.
Test(cpu_fft, blocks_of_parts_are_transformed_in_any_order)
{
    static const int64_t lengths[] = {130, 1024, 5000, 1048576 * 2};
    const struct cpu_kernels *const *best = cpu_variants();
    while (((*best)->needs & cpu_features()) != (*best)->needs)
        best++;
    const struct cpu_kernels *k = *best;
    for (int i = 0; i < 8; i++) {
        bool is_f64 = i % 2;
        int64_t n = lengths[i / 2];
        struct run r = run_new(k, &(struct transform){n, 1, n, n, is_f64, i > 3});
        uint64_t bytes = (uint64_t)n * (is_f64 ? 16 : 8);
        struct cpu_fft_size need = cpu_fft_measure(&(struct cpu_fft_rows){n, 1, is_f64});
        void *whole = aligned(bytes), *between = aligned(need.between);
        const struct cpu_fft_call call = {.plan = r.plan,
                                          .in = r.in,
                                          .out = r.out,
                                          .rows = 1,
                                          .scale = 0.5,
                                          .is_inverse = i > 3,
                                          .scratch = between};
        struct cpu_fft_stage stage = {.call = &call};
        run_call(&r, k, whole);
        cr_assert(eq(int, r.plan->kind, CPU_FFT_FOUR_STEP));
        for (int second = 0; second < 2; second++)
            for (int64_t left = cpu_fft_blocks(r.plan, second); left > 0;
                 left = stage.begin) {
                stage.is_row_stage = second;
                stage.end = left;
                stage.begin = left > 3 ? left - 3 : 0;
                stage.scratch = aligned(need.stage);
                (is_f64 ? k->fft_stage_f64 : k->fft_stage_f32)(&stage);
                free(stage.scratch);
            }
        cr_assert(eq(int, memcmp(whole, r.out, bytes), 0), "%lld", (long long)n);
        free(whole);
        free(between);
        run_free(&r);
    }
}

// In lanes and in four steps, at borders between them; a prime of each, whose convolution
// is.
Test(cpu_fft, long_rows_are_transformed)
{
    static const int64_t lengths[] = {256,   341,   1000,  1009,   1024,
                                      2003,  2048,  2062,  4096,   10007,
                                      16384, 59049, 65536, 100003, 2097152};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int kind = 0; kind < 2; kind++) {
            int64_t n = lengths[i];
            if (n > 1000000 && kind) // the same plan
                continue;
            check_transform(
                &(struct transform){n, n < 5000 ? 3 : 1, n + 1, n + 1, kind, i % 2},
                n < 20000 ? 1 + n / 12 : n / 2 + 1);
        }
}

// Primes in lanes, whose convolutions are; factors that are primes, and factors of which
// the last vector begins within the one before; more rows and fewer than lanes.
Test(cpu_fft, primes_and_parts_of_odd_lengths_are_transformed)
{
    static const int64_t lengths[] = {37, 97, 194, 251, 289, 360, 407, 733, 997, 1009};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int kind = 0; kind < 4; kind++) {
            int64_t n = lengths[i];
            check_transform(
                &(struct transform){n, kind < 2 ? 17 : 2, n, n, kind % 2, kind % 3 == 0},
                1 + n / 12);
        }
}

// --- real numbers ------------------------------------------------------------------------

#define REAL_ROWS 3

// The end first, as another thread might.
static void fold_in_two(const struct cpu_kernels *kernels, bool is_f64,
                        struct cpu_fft_fold fold)
{
    cpu_fft_fold_fn *run = is_f64 ? kernels->fft_fold_f64 : kernels->fft_fold_f32;
    int64_t end = fold.half / 2 + 1;
    fold.begin = end / 3;
    fold.end = end;
    run(&fold);
    fold.begin = 0;
    fold.end = end / 3;
    run(&fold);
}

// Rows of 2 * half real numbers to half + 1 complex ones, `there`, and to real ones again.
static void run_real(const struct run *r, const struct cpu_kernels *kernels,
                     const void *factors, void *there, void *back)
{
    int64_t half = r->what.n;
    struct cpu_fft_call call = {.plan = r->plan,
                                .in = r->in,
                                .out = there,
                                .rows = REAL_ROWS,
                                .in_row = half,
                                .out_row = half + 1,
                                .scale = 0.5,
                                .scratch = r->scratch};
    struct cpu_fft_fold fold = {.half = half,
                                .factors = factors,
                                .in = there,
                                .out = there,
                                .rows = REAL_ROWS,
                                .in_row = half + 1,
                                .out_row = half + 1};
    function_of(kernels, r->what.is_f64)(&call);
    fold_in_two(kernels, r->what.is_f64, fold);
    fold.out = back;
    fold.out_row = half;
    fold.is_inverse = true;
    fold_in_two(kernels, r->what.is_f64, fold);
    call.in = call.out = back;
    call.out_row = half;
    call.is_inverse = true;
    call.scale = 0.5 / (double)half;
    function_of(kernels, r->what.is_f64)(&call);
}

static void expect_real(const struct run *r, const void *there, const void *back,
                        int64_t step)
{
    int64_t half = r->what.n, n = 2 * half;
    double bound = sqrt((double)n) * (r->what.is_f64 ? 2e-14 : 2e-6);
    for (int64_t i = 0; i < REAL_ROWS * n; i++)
        cr_assert(le(dbl, fabs(get(r, back, i) - r->given[i]), bound), "%lld",
                  (long long)n);
    for (int64_t row = 0; row < REAL_ROWS; row++)
        for (int64_t k = 0; k <= half;
             k += k + step <= half || k == half ? step : half - k) {
            double re = 0, im = 0;
            for (int64_t j = 0, p = 0; j < n; j++, p = (p + k) % n) {
                double angle = -2 * M_PI * (double)p / (double)n;
                re += r->given[row * n + j] * cos(angle);
                im += r->given[row * n + j] * sin(angle);
            }
            int64_t at = 2 * (row * (half + 1) + k);
            double error = hypot(get(r, there, at) - re, get(r, there, at + 1) - im);
            cr_assert(le(dbl, error, bound), "element %lld of %lld", (long long)k,
                      (long long)n);
            if (k % half == 0)
                cr_assert(eq(dbl, get(r, there, at + 1), 0));
        }
}

static void check_real(int64_t half, bool is_f64, int64_t step)
{
    void *first = NULL, *factors = aligned((uint64_t)(half / 2 + 1) * 16);
    uint64_t bytes = (uint64_t)((half + 1) * REAL_ROWS) * (is_f64 ? 16 : 8);
    cpu_fft_unpack_factors(factors, half, is_f64);
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (((*k)->needs & cpu_features()) != (*k)->needs)
            continue;
        struct run r = run_new(
            *k, &(struct transform){half, REAL_ROWS, half, half + 1, is_f64, false});
        void *back = aligned(bytes);
        run_real(&r, *k, factors, r.out, back);
        bool same = first && has_fma(*k);
        if (same)
            cr_assert(eq(int, memcmp(first, r.out, bytes), 0), "%s: other bits for %lld",
                      (*k)->name, (long long)half);
        else
            expect_real(&r, r.out, back, step);
        free(back);
        if (same) {
            run_free(&r);
            continue;
        }
        free(first);
        first = r.out;
        r.out = NULL;
        run_free(&r);
    }
    free(first);
    free(factors);
}

Test(cpu_fft, real_rows_are_transformed_as_half_as_many_complex_numbers)
{
    static const int64_t longer[] = {128, 500, 1013, 1024, 4096};
    for (int64_t half = 1; half < 75; half++)
        for (int kind = 0; kind < 2; kind++)
            check_real(half, kind, 1);
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        for (int kind = 0; kind < 2; kind++)
            check_real(longer[i], kind, 1 + longer[i] / 20);
}
