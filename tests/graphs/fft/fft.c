// SPDX-License-Identifier: MIT
// Fourier transforms in graphs: plans that are made once and replayed, by threads at once;
// memory that is donated; batches; allocations that fail while plans are made. And the
// generated header. Values are beside NumPy's in tests/tools/fft.py.
#include <pthread.h>
#include <tenon/ops/fft.h>
#include "base/memory.h"
#include "../support/common.h"

#define ROWS 6
#define MOST 128

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(fft, .init = open_cpu, .fini = teardown);

static double number(int64_t i)
{
    return (double)((i * i * 7 + 3 * i) % 31) - 15;
}

// ROWS rows of n whole numbers.
static tn_array *numbers(tn_scope *s, int64_t n)
{
    double data[ROWS * MOST];
    for (int64_t i = 0; i < ROWS * n; i++)
        data[i] = number(i);
    return tn_from_data(s, TN_F64, TN_SHAPE(ROWS, n), data);
}

static void check_numbers(const double *got, int64_t n)
{
    for (int64_t i = 0; i < ROWS * n; i++)
        cr_assert(le(dbl, fabs(got[i] - number(i)), 1e-12), "element %d of rows of %d",
                  (int)i, (int)n);
}

// There and back, of real numbers and of complex ones, along both axes.
static tn_status round_trip(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    tn_rfft_options real = tn_rfft_defaults();
    tn_irfft_options back = tn_irfft_defaults();
    (void)num_in, (void)num_out, (void)user;
    real.norm = back.norm = "ortho";
    back.n = tn_array_type(in[0])->extent[1];
    tn_array *x = tn_irfft(s, tn_rfft(s, in[0], &real), &back);
    tn_array *z = tn_ifftn(s, tn_fft2(s, x, NULL), NULL);
    out[0] = tn_expr(s, "z -> real(z)", TN_IN(z), TN_NO_ATTRS);
    return TN_OK;
}

Test(fft, what_goes_there_and_back_is_the_same)
{
    static const int64_t lengths[] = {1, 2, 7, 64, 74, 101};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = numbers(s, lengths[i]), *y = NULL;
        double got[ROWS * MOST];
        round_trip(s, &x, 1, &y, 1, NULL);
        must(s, tn_read(s, y, got, sizeof(double) * (size_t)(ROWS * lengths[i])));
        check_numbers(got, lengths[i]);
        tn_scope_close(s);
    }
}

// Tones, each of which is one element of its row's transform; threads share a row.
Test(fft, long_rows_are_shared_by_threads, .init = NULL, .fini = NULL)
{
    enum { N = 1 << 17, TONES = 2 };
    static const int64_t tone[TONES] = {3, N / 2 - 7};
    tn_runtime *rt =
        open_with((const char *const[]){"TENON_BACKEND=cpu-blas", "TENON_THREADS=3", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_complex128 *z = malloc(TONES * N * sizeof(*z)),
                  *got = malloc(TONES * N * sizeof(*z));
    for (int64_t i = 0; i < TONES * N; i++) {
        double angle = 2 * M_PI * (double)(tone[i / N] * (i % N) % N) / N;
        z[i] = (tn_complex128){cos(angle), sin(angle)};
    }
    tn_array *x = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(TONES, N), z);
    tn_array *real = tn_expr(s, "x -> real(x)", TN_IN(x), TN_NO_ATTRS);
    tn_array *there[] = {tn_fft(s, x, NULL), tn_rfft(s, real, NULL)};
    tn_array *back[] = {
        tn_expr(s, "y, x -> abs(y - x)", TN_IN(tn_ifft(s, there[0], NULL), x), TN_NO_ATTRS),
        tn_expr(s, "y, x -> abs(y - x)", TN_IN(tn_irfft(s, there[1], NULL), real),
                TN_NO_ATTRS)};
    for (int i = 0; i < 2; i++) {
        int64_t n = i ? N / 2 + 1 : N;
        double peak = i ? N / 2 : N, error = 1;
        must(s, tn_read(s, there[i], got, (uint64_t)(TONES * n) * sizeof(*got)));
        for (int64_t k = 0; k < TONES * n; k++) {
            double want = k % n == tone[k / n] ? peak : 0;
            cr_assert(le(dbl, hypot(got[k].re - want, got[k].im), 1e-8), "element %lld",
                      (long long)k);
        }
        must(s, tn_read(s, un(s, "max", back[i]), &error, sizeof(error)));
        cr_assert(le(dbl, error, 1e-13));
    }
    free(z);
    free(got);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

struct caller {
    tn_function *function;
    pthread_t thread;
};

static void *call_often(void *context)
{
    struct caller *caller = context;
    for (int i = 0; i < 20; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = numbers(s, 74), *y = NULL;
        double got[ROWS * 74];
        must(s, tn_function_call(caller->function, s, &x, 1, &y, 1));
        must(s, tn_read(s, y, got, sizeof(got)));
        check_numbers(got, 74);
        tn_scope_close(s);
    }
    return NULL;
}

Test(fft, threads_share_the_plans_of_a_function)
{
    struct caller callers[3] = {0};
    tn_function *f = NULL;
    must(NULL, tn_function_create(runtime, round_trip, NULL, NULL, &f));
    callers[0].function = f;
    call_often(&callers[0]);
    uint64_t made = stats_of(runtime).plans_made;
    for (int i = 0; i < 3; i++) {
        callers[i].function = f;
        pthread_create(&callers[i].thread, NULL, call_often, &callers[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i].thread, NULL);
    cr_assert(eq(u64, stats_of(runtime).plans_made, made));
    tn_function_destroy(f);
}

static tn_status transformed(tn_scope *s, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_fft(s, in[0], NULL);
    return TN_OK;
}

// A transform in the memory of its input needs none of its own.
Test(fft, what_is_given_away_is_transformed_in_place)
{
    enum { N = 1 << 15 };
    const uint32_t first = 0;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &first, .num_donated = 1};
    uint64_t peak[2];
    for (int gives = 0; gives < 2; gives++) {
        tn_runtime *rt = open_on("cpu-blas");
        tn_function *f = NULL;
        tn_scope *s = tn_scope_open(rt);
        tn_array *y = NULL, *x = tn_op(s, "full", NULL, 0,
                                       tn_attrs("shape", TN_INTS(16, N), "value", 1.0,
                                                "dtype", "complex128"));
        tn_complex128 got;
        must(NULL, tn_function_create(rt, transformed, NULL, gives ? &options : NULL, &f));
        must(s, tn_eval(s, x));
        must(s, tn_function_call(f, s, &x, 1, &y, 1));
        must(s, tn_read(s,
                        tn_op(s, "slice", TN_IN(y),
                              tn_attrs("start", TN_INTS(15, 0), "stop", TN_INTS(16, 1))),
                        &got, sizeof(got)));
        cr_assert(eq(dbl, got.re, N));
        cr_assert(eq(dbl, got.im, 0));
        peak[gives] = stats_of(rt).buffer_peak;
        tn_function_destroy(f);
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
    cr_assert(le(u64, peak[1] + 16 * N * 16 * 9 / 10, peak[0]), "%llu and %llu bytes",
              (unsigned long long)peak[0], (unsigned long long)peak[1]);
}

// Columns, mapped: rows of the transposed array.
Test(fft, slices_are_transformed_as_each_alone)
{
    const int32_t in_axis = 0, out_axis = 1;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = numbers(s, 10), *y = NULL;
    must(s, tn_vmap_call(s, transformed, NULL, &x, &in_axis, 1, &y, &out_axis, 1));
    tn_fft_options columns = tn_fft_defaults();
    columns.axis = 0;
    tn_array *want = tn_fft(s, un(s, "transpose", x), &columns);
    tn_array *d = tn_expr(s, "a, b -> abs(a - b)", TN_IN(y, want), TN_NO_ATTRS);
    double most = 1;
    must(s, tn_read(s, un(s, "max", d), &most, sizeof(most)));
    cr_assert(le(dbl, most, 1e-13));
    tn_scope_close(s);
}

// Each length is a new plan, whose allocations fail in turn: of a step, its tables and the
// memory in which these are made.
Test(fft, allocations_that_fail_leave_nothing)
{
    int64_t n = 1;
    int fine = 0;
    for (int64_t failing = 1; fine < 8; failing++, n = n % 110 + 1) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = numbers(s, n + 10), *y = NULL;
        double got[ROWS * MOST];
        uint64_t bytes = sizeof(double) * (uint64_t)(ROWS * (n + 10));
        must(s, tn_eval(s, x));
        mem_fail_nth(failing);
        round_trip(s, &x, 1, &y, 1, NULL);
        tn_status status = tn_read(s, y, got, bytes);
        mem_fail_nth(0);
        fine = status == TN_OK ? fine + 1 : 0;
        if (status != TN_OK) {
            check_status(status, TN_ERR_MEMORY);
            tn_scope_clear_error(s);
            round_trip(s, &x, 1, &y, 1, NULL);
            must(s, tn_read(s, y, got, bytes));
        }
        check_numbers(got, n + 10);
        tn_scope_close(s);
    }
}
