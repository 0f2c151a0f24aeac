// SPDX-License-Identifier: MIT
// Reductions and pooling of every variant that this processor can run, with one
// hostile value at every position of rows and columns of every length around the vector
// widths: what only the tail of a loop meets is met here.
#include "check.h"

#include <math.h>
#include "cpu/cpu.h"
#include "../sanitized.h"
#include "cpu/ref/ops_ref.h"

#define MAX_N 141
#define MAX_CHANNELS 40
static const double planted[] = {NAN, INFINITY, -INFINITY, 3, -3, 0};
#define NUM_PLANTED (sizeof(planted) / sizeof(planted[0]))

// Called for each variant, length, position and value; `values` are numbers in [-1, 1] but
// for the one that is planted at `at`.
struct planting {
    const struct cpu_kernels *kernels;
    int64_t n, at;
    double values[MAX_N];
};
typedef void check_fn(const struct planting *p);

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

static void plant_everywhere(check_fn *check)
{
    uint32_t state = 12345;
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        struct planting p = {.kernels = *k};
        for (p.n = 1; runs_here(*k) && p.n < MAX_N; p.n += p.n < 70 || p.n > 120 ? 1 : 7)
            for (p.at = 0; p.at < p.n; p.at += IS_SANITIZED ? 5 : 1)
                for (size_t v = 0; v < NUM_PLANTED; v++) {
                    for (int64_t i = 0; i < p.n; i++) {
                        state = state * 1664525 + 1013904223;
                        p.values[i] = (double)(int32_t)(state & 0xffff0000) / 2147483648.0;
                    }
                    p.values[p.at] = planted[v];
                    check(&p);
                }
    }
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

#define EXPECT(p, what, got, want)                                                         \
    do {                                                                                   \
        double got_ = (double)(got), want_ = (double)(want);                               \
        if (!same(got_, want_))                                                            \
            cr_fatal("%s %s of %lld, %g at %lld: got %.9g, expected %.9g",                 \
                     (p)->kernels->name, what, (long long)(p)->n, (p)->values[(p)->at],    \
                     (long long)(p)->at, got_, want_);                                     \
    } while (0)

// The greatest (or least) element, a NaN being both.
static double extreme(const struct planting *p, bool is_max)
{
    double best = p->values[0];
    for (int64_t i = 1; i < p->n; i++) {
        double x = p->values[i];
        best = isnan(best) || isnan(x) ? (double)NAN
               : is_max                ? fmax(best, x)
                                       : fmin(best, x);
    }
    return best;
}

static bool beats(double a, double b, bool is_max)
{
    return (is_max ? a > b : a < b) || (isnan(a) && !isnan(b));
}

static int64_t first_extreme(const struct planting *p, bool is_max)
{
    int64_t at = 0;
    for (int64_t i = 1; i < p->n; i++)
        if (beats(p->values[i], p->values[at], is_max))
            at = i;
    return at;
}

// --- extremes of floats ----------------------------------------------------------------

static void check_float_rows(const struct planting *p)
{
    const struct cpu_reduce_kernels *r = p->kernels->reduce;
    float narrow[MAX_N];
    for (int64_t i = 0; i < p->n; i++)
        narrow[i] = (float)p->values[i];
    for (int kind = CPU_REDUCE_MAX; kind <= CPU_REDUCE_MIN; kind++) {
        bool is_max = kind == CPU_REDUCE_MAX;
        union cpu_accumulator start = {.f = is_max ? -INFINITY : INFINITY};
        union cpu_accumulator wide_acc = start, acc = start;
        r->row[kind][TN_F32](&acc, narrow, p->n);
        EXPECT(p, is_max ? "max f32" : "min f32", acc.f, extreme(p, is_max));
        r->row[kind][TN_F64](&wide_acc, p->values, p->n);
        EXPECT(p, is_max ? "max f64" : "min f64", wide_acc.f, extreme(p, is_max));
        const struct cpu_argmax_kernels *a = p->kernels->argmax;
        EXPECT(p, is_max ? "argmax f32" : "argmin f32",
               a->row[!is_max][TN_F32](narrow, p->n), first_extreme(p, is_max));
        EXPECT(p, is_max ? "argmax f64" : "argmin f64",
               a->row[!is_max][TN_F64](p->values, p->n), first_extreme(p, is_max));
    }
}

// Sums of terms have the bits of the sum of the terms.
#define CHECK_TERMS(p, T, dtype, a, b)                                                     \
    do {                                                                                   \
        static const char *const names[] = {"sum of products", "sum of squares"};          \
        const struct cpu_reduce_kernels *r = (p)->kernels->reduce;                         \
        volatile T difference;                                                             \
        T terms[MAX_N];                                                                    \
        for (int kind = 0; kind < CPU_NUM_SUMS; kind++) {                                  \
            union cpu_accumulator acc = {.f = 0.3}, want = {.f = 0.3};                     \
            for (int64_t i = 0; i < (p)->n; i++) {                                         \
                difference = (a)[i] - (b)[0];                                              \
                terms[i] =                                                                 \
                    kind == CPU_SUM_PRODUCTS ? (a)[i] * (b)[i] : difference * difference;  \
            }                                                                              \
            r->row[CPU_REDUCE_SUM][dtype](&want, terms, (p)->n);                           \
            r->sum[kind][dtype](&acc, a, b, (p)->n);                                       \
            EXPECT(p, names[kind], acc.f, want.f);                                         \
        }                                                                                  \
    } while (0)

static void check_terms(const struct planting *p)
{
    double wide[MAX_N];
    float narrow[MAX_N], other[MAX_N];
    for (int64_t i = 0; i < p->n; i++) {
        narrow[i] = (float)p->values[i];
        wide[i] = p->values[p->n - 1 - i] + 0.1;
        other[i] = (float)wide[i];
    }
    CHECK_TERMS(p, float, TN_F32, narrow, other);
    CHECK_TERMS(p, double, TN_F64, p->values, wide);
}

Test(cpu_reductions, sums_of_terms_have_the_bits_of_sums)
{
    plant_everywhere(check_terms);
}

// Sums of several rows at once have the bits of sums row by row: the planted row is the
// third.
static void check_sums_of_rows(const struct planting *p)
{
    enum { ROWS = 7 };
    static const char *const names[] = {"products", "squares", "elements"};
    const struct cpu_reduce_kernels *r = p->kernels->reduce;
    static float a[ROWS * MAX_N], b[ROWS * MAX_N];
    for (int64_t i = 0; i < ROWS * p->n; i++) {
        a[i] = (float)(i % 11) * 0.37f - 1;
        b[i] = (float)(i % 7) * 0.21f - 0.4f;
    }
    for (int64_t i = 0; i < p->n; i++)
        a[2 * p->n + i] = (float)p->values[i];
    for (int kind = 0; kind <= CPU_NUM_SUMS; kind++) {
        bool single = kind == CPU_SUM_SQUARED_DIFFERENCES;
        union cpu_accumulator acc[ROWS];
        r->sum_rows[kind](acc, a, b, single ? 1 : p->n, ROWS, p->n);
        for (int64_t i = 0; i < ROWS; i++) {
            union cpu_accumulator want = {.f = 0};
            if (kind == CPU_SUM_ELEMENTS)
                r->row[CPU_REDUCE_SUM][TN_F32](&want, a + i * p->n, p->n);
            else
                r->sum[kind][TN_F32](&want, a + i * p->n, b + i * (single ? 1 : p->n),
                                     p->n);
            EXPECT(p, names[kind], acc[i].f, want.f);
        }
    }
}

Test(cpu_reductions, sums_of_rows_have_the_bits_of_sums)
{
    plant_everywhere(check_sums_of_rows);
}

// Derivatives of layer norm beside plain loops in f64: the planted row is the third of six,
// and what is no number there is none in all of its row, and in the sums.
static bool is_near(double got, double want)
{
    return isfinite(want) ? fabs(got - want) <= 1e-4 * (1 + fabs(want)) : !isfinite(got);
}

static void check_norm_gradients(const struct planting *p)
{
    enum { ROWS = 6 };
    static float x[ROWS * MAX_N], g[ROWS * MAX_N], w[MAX_N], dx[ROWS * MAX_N];
    static double sums[2 * MAX_N];
    float dw[MAX_N] = {0}, db[MAX_N] = {0};
    memset(sums, 0, sizeof(sums));
    for (int64_t i = 0; i < ROWS * p->n; i++) {
        x[i] = (float)(i % 11) * 0.37f - 1;
        g[i] = (float)(i % 7) * 0.21f - 0.4f;
        w[i % p->n] = (float)(i % 5) * 0.3f - 0.5f;
    }
    for (int64_t i = 0; i < p->n; i++)
        x[2 * p->n + i] = fabs(p->values[i]) < 1e6 ? (float)p->values[i] : NAN;
    p->kernels->layer_norm_grad(&(struct cpu_norm_grad){.x = x,
                                                        .g = g,
                                                        .weight = w,
                                                        .dx = dx,
                                                        .dweight = dw,
                                                        .dbias = db,
                                                        .rows = ROWS,
                                                        .n = p->n,
                                                        .eps = 0.1});
    for (int64_t r = 0; r < ROWS; r++) {
        const float *row = x + r * p->n, *gradient = g + r * p->n;
        double n = (double)p->n, mean = 0, square = 0, h = 0, hy = 0;
        for (int64_t i = 0; i < p->n; i++)
            mean += (double)row[i] / n;
        for (int64_t i = 0; i < p->n; i++)
            square += ((double)row[i] - mean) * ((double)row[i] - mean) / n;
        double scale = 1 / sqrt(square + 0.1);
        for (int64_t i = 0; i < p->n; i++) {
            double y = ((double)row[i] - mean) * scale, t = (double)gradient[i];
            h += t * (double)w[i] / n;
            hy += t * (double)w[i] * y / n;
            sums[i] += t * y;
            sums[p->n + i] += t;
        }
        for (int64_t i = 0; i < p->n; i++) {
            double y = ((double)row[i] - mean) * scale, t = (double)gradient[i];
            double want = (t * (double)w[i] - h - y * hy) * scale;
            double got = (double)dx[r * p->n + i];
            EXPECT(p, "gradient of x", is_near(got, want) ? want : got, want);
        }
    }
    for (int64_t i = 0; i < p->n; i++) {
        EXPECT(p, "gradient of the weight", is_near((double)dw[i], sums[i]), 1);
        EXPECT(p, "gradient of the bias", is_near((double)db[i], sums[p->n + i]), 1);
    }
}

Test(cpu_reductions, gradients_of_layer_norm_agree_with_loops)
{
    plant_everywhere(check_norm_gradients);
}

// The places in the columns of three rows, of which the second is the planted one: at once,
// and as a first row that more follow.
static void check_places(const struct planting *p, bool is_max, tn_dtype dtype,
                         const void *x, size_t size)
{
    cpu_argmax_columns_fn *fold = p->kernels->argmax->columns[!is_max][dtype];
    const char *second = (const char *)x + (size_t)p->n * size;
    double best[MAX_N], begun[MAX_N];
    int32_t at[MAX_N], begun_at[MAX_N];
    fold(best, at, x, 0, 3, p->n, p->n);
    fold(begun, begun_at, x, 0, 1, p->n, p->n);
    fold(begun, begun_at, second, 1, 2, p->n, p->n);
    for (int64_t i = 0; i < p->n; i++) {
        EXPECT(p, "place in a column", at[i], beats(p->values[i], 0, is_max));
        EXPECT(p, "place in parts of a column", begun_at[i], at[i]);
    }
}

// Columns: the planted row is the second of three.
static void check_float_columns(const struct planting *p)
{
    const struct cpu_reduce_kernels *r = p->kernels->reduce;
    double wide[3 * MAX_N] = {0};
    float narrow[3 * MAX_N] = {0};
    for (int64_t i = 0; i < p->n; i++) {
        wide[p->n + i] = p->values[i];
        narrow[p->n + i] = (float)p->values[i];
    }
    for (int kind = CPU_REDUCE_MAX; kind <= CPU_REDUCE_MIN; kind++) {
        bool is_max = kind == CPU_REDUCE_MAX;
        check_places(p, is_max, TN_F32, narrow, sizeof(*narrow));
        check_places(p, is_max, TN_F64, wide, sizeof(*wide));
        union cpu_accumulator acc[MAX_N], wide_acc[MAX_N];
        for (int64_t i = 0; i < p->n; i++)
            acc[i].f = wide_acc[i].f = is_max ? -INFINITY : INFINITY;
        r->columns[kind][TN_F32](acc, narrow, 3, p->n, p->n);
        r->columns[kind][TN_F64](wide_acc, wide, 3, p->n, p->n);
        for (int64_t i = 0; i < p->n; i++) {
            double x = p->values[i];
            double want = isnan(x) ? x : is_max ? fmax(x, 0) : fmin(x, 0);
            EXPECT(p, is_max ? "max columns f32" : "min columns f32", acc[i].f, want);
            EXPECT(p, is_max ? "max columns f64" : "min columns f64", wide_acc[i].f, want);
        }
    }
}

Test(cpu_reductions, extremes_see_a_hostile_value_wherever_it_stands)
{
    plant_everywhere(check_float_rows);
    plant_everywhere(check_float_columns);
}

// --- products --------------------------------------------------------------------------

// As a row, and as the second of three rows, the others being 2 and -1.
static void check_products(const struct planting *p)
{
    const struct cpu_reduce_kernels *r = p->kernels->reduce;
    double wide[3 * MAX_N], want = 0.5;
    float narrow[3 * MAX_N];
    union cpu_accumulator acc = {.f = 0.5}, columns[MAX_N], wide_columns[MAX_N];
    for (int64_t i = 0; i < p->n; i++) {
        double x = isfinite(p->values[i]) ? copysign(1, p->values[i]) : p->values[i];
        x = i == p->at && p->values[i] == 0 ? 0 : x;
        narrow[i] = 2;
        narrow[2 * p->n + i] = -1;
        narrow[p->n + i] = (float)x;
        want *= x;
        columns[i].f = wide_columns[i].f = 0.5;
    }
    for (int64_t i = 0; i < 3 * p->n; i++)
        wide[i] = (double)narrow[i];
    r->row[CPU_REDUCE_PROD][TN_F32](&acc, narrow + p->n, p->n);
    EXPECT(p, "prod f32", acc.f, want);
    acc.f = 0.5;
    r->row[CPU_REDUCE_PROD][TN_F64](&acc, wide + p->n, p->n);
    EXPECT(p, "prod f64", acc.f, want);
    r->columns[CPU_REDUCE_PROD][TN_F32](columns, narrow, 3, p->n, p->n);
    r->columns[CPU_REDUCE_PROD][TN_F64](wide_columns, wide, 3, p->n, p->n);
    for (int64_t i = 0; i < p->n; i++) {
        EXPECT(p, "prod columns f32", columns[i].f, -wide[p->n + i]);
        EXPECT(p, "prod columns f64", wide_columns[i].f, -wide[p->n + i]);
    }
}

Test(cpu_reductions, products_see_a_hostile_value_wherever_it_stands)
{
    plant_everywhere(check_products);
}

// --- extremes of integers --------------------------------------------------------------

// The planted NaN and infinities become the ends of the dtype's range.
static void check_integer_rows(const struct planting *p)
{
    if (p->n > 70)
        return;
    for (int32_t dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES))
            continue;
        uint64_t x[MAX_N] = {0};
        uint32_t size = cpu_dtype_size(dtype);
        bool has_sign = tn_is_signed(dtype);
        int64_t most = 0, least = 0, most_at = 0, least_at = 0;
        for (int64_t i = 0; i < p->n; i++) {
            char *element = (char *)x + i * size;
            int64_t got = 0;
            double scaled = p->values[i] * 20;
            cpu_ref_cast(TN_F64, dtype, element, &scaled);
            cpu_ref_cast(dtype, TN_I64, &got, element);
            bool above = has_sign ? got > most : (uint64_t)got > (uint64_t)most;
            bool below = has_sign ? got < least : (uint64_t)got < (uint64_t)least;
            most_at = i == 0 || above ? i : most_at;
            least_at = i == 0 || below ? i : least_at;
            most = i == most_at ? got : most;
            least = i == least_at ? got : least;
        }
        EXPECT(p, "argmax", p->kernels->argmax->row[0][dtype](x, p->n), most_at);
        EXPECT(p, "argmin", p->kernels->argmax->row[1][dtype](x, p->n), least_at);
        union cpu_accumulator high = {.i = has_sign ? INT64_MIN : 0};
        union cpu_accumulator low = {.i = has_sign ? INT64_MAX : -1};
        p->kernels->reduce->row[CPU_REDUCE_MAX][dtype](&high, x, p->n);
        p->kernels->reduce->row[CPU_REDUCE_MIN][dtype](&low, x, p->n);
        if (high.i != most || low.i != least)
            cr_fatal("%s max and min of %lld of dtype %d: %lld and %lld, expected %lld and "
                     "%lld",
                     p->kernels->name, (long long)p->n, dtype, (long long)high.i,
                     (long long)low.i, (long long)most, (long long)least);
    }
}

Test(cpu_reductions, integers_at_the_ends_of_their_range_are_found)
{
    plant_everywhere(check_integer_rows);
}

// --- long rows -------------------------------------------------------------------------

// Two equal extremes among equal elements, and a NaN behind them: places in every part.
static void check_long(const struct cpu_kernels *kernels, tn_dtype dtype, int64_t at)
{
    enum { COUNT = 20011 };
    static double room[COUNT];
    const size_t size = (size_t)cpu_dtype_size(dtype);
    for (int which = 0; which < 2; which++) {
        double plain = which, extreme = 1 - which, nan = (double)NAN;
        char *x = (char *)room;
        for (int64_t i = 0; i < COUNT; i++)
            cpu_ref_cast(TN_F64, dtype, x + (size_t)i * size,
                         i == at || i == COUNT - 1 ? &extreme : &plain);
        int64_t got = kernels->argmax->row[which][dtype](x, COUNT);
        cr_assert(got == at, "%s dtype %d: got %lld, expected %lld", kernels->name, dtype,
                  (long long)got, (long long)at);
        if (!tn_is_float(dtype))
            continue;
        cpu_ref_cast(TN_F64, dtype, x + (size_t)(COUNT - 3) * size, &nan);
        got = kernels->argmax->row[which][dtype](x, COUNT);
        cr_assert(got == COUNT - 3, "%s dtype %d: got %lld, not the NaN", kernels->name,
                  dtype, (long long)got);
    }
}

Test(cpu_reductions, places_in_long_rows_are_the_first)
{
    static const int64_t at[] = {0, 1, 63, 64, 1023, 1024, 8191, 8192, 8193, 16384, 20000};
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (tn_dtype dtype = TN_BOOL; runs_here(*k) && dtype <= TN_F64; dtype++)
            for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
                if ((*k)->argmax->row[0][dtype])
                    check_long(*k, dtype, at[i]);
}

// --- pooling ---------------------------------------------------------------------------

// The row is channels of one pixel, folded into a window that holds 0 so far.
static void check_pool(const struct planting *p)
{
    float acc[MAX_CHANNELS] = {0}, x[MAX_CHANNELS];
    if (p->n > MAX_CHANNELS)
        return;
    for (int64_t i = 0; i < p->n; i++)
        x[i] = (float)p->values[i];
    p->kernels->conv->pool_max_f32(acc, x, 1, p->n, p->n);
    for (int64_t i = 0; i < p->n; i++)
        EXPECT(p, "pooled", acc[i], isnan(x[i]) ? (double)NAN : fmax(p->values[i], 0));
    memset(x, 0, sizeof(x)); // a NaN that is there stays
    p->kernels->conv->pool_max_f32(acc, x, 1, p->n, p->n);
    for (int64_t i = 0; i < p->n; i++)
        EXPECT(p, "pooled on", acc[i],
               isnan(p->values[i]) ? (double)NAN : fmax(p->values[i], 0));
}

Test(cpu_reductions, pooling_sees_a_hostile_value_wherever_it_stands)
{
    plant_everywhere(check_pool);
}

// --- products with few rows ------------------------------------------------------------

#define MOST_ROWS (CPU_FEW_ROWS + 3)
#define GAP 3 // elements from the end of a row to the next row
struct few {
    float a[MOST_ROWS * (40 + GAP)], b[140 * (140 + GAP)], c[MOST_ROWS * (140 + GAP)];
};

static struct cpu_few_rows few_of(struct few *x, int64_t m, int64_t n, int64_t k,
                                  bool by_rows)
{
    struct cpu_few_rows p = {.a = x->a, .b = x->b, .c = x->c, .m = m, .n = n, .k = k};
    uint32_t state = (uint32_t)(m * 10007 + n * 101 + k);
    p.a_row = k + GAP;
    p.b_row = (by_rows ? k : n) + GAP;
    p.c_row = n + GAP;
    p.scale = 0.3f;
    float *const parts[] = {x->a, x->b, x->c};
    const size_t counts[] = {sizeof(x->a) / 4, sizeof(x->b) / 4, sizeof(x->c) / 4};
    for (int part = 0; part < 3; part++)
        for (size_t i = 0; i < counts[part]; i++) {
            state = state * 1664525 + 1013904223;
            parts[part][i] = (float)(int32_t)(state & 0xffffff00) / 2147483648.0f;
        }
    return p;
}

// Makes b one of another kind, and its values what is then read. Rows of blocks have the
// scale 2^-7.
static void encode_few(struct few *x, struct cpu_few_rows *p, int32_t kind, bool by_rows)
{
    static uint8_t encoded[sizeof(x->b)];
    int64_t rows = by_rows ? p->n : p->k, columns = by_rows ? p->k : p->n, row = p->b_row;
    p->kind = kind;
    if (kind == CPU_FEW_F32)
        return;
    p->b = encoded;
    p->b_row = kind == CPU_FEW_Q8_0 ? columns / 32 * 34 + GAP : row;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *value = &x->b[i * row + j];
            if (kind != CPU_FEW_Q8_0) {
                bool is_f16 = kind == CPU_FEW_F16;
                uint16_t half = is_f16 ? tn_f16_of_f32(*value) : tn_bf16_of_f32(*value);
                memcpy(encoded + 2 * (i * row + j), &half, sizeof(half));
                *value = is_f16 ? tn_f32_of_f16(half) : tn_f32_of_bf16(half);
                continue;
            }
            uint8_t *block = encoded + i * p->b_row + j / 32 * 34;
            int8_t q = (int8_t)(*value * 127);
            memcpy(block, (const uint8_t[]){0, 0x20}, 2);
            memcpy(block + 2 + j % 32, &q, 1);
            *value = (float)q / 128;
        }
}

// What the loops make, beside sums in f64 and beside what another variant made; what lies
// between rows stays.
static void check_few(const struct cpu_kernels *kernels, int64_t m, int64_t n, int64_t k,
                      bool by_rows, int32_t kind, struct few *first)
{
    static struct few got, before;
    struct cpu_few_rows p = few_of(&got, m, n, k, by_rows);
    encode_few(&got, &p, kind, by_rows);
    before = got;
    (by_rows ? kernels->few->by_rows : kernels->few->by_columns)(&p);
    for (int64_t i = 0; i < m * p.c_row; i++) {
        int64_t row = i / p.c_row, column = i % p.c_row;
        double want = (double)before.c[i];
        if (column < n && by_rows)
            want = 0;
        for (int64_t j = 0; j < k && column < n; j++)
            want +=
                (double)p.a[row * p.a_row + j] *
                (double)got.b[by_rows ? column * (k + GAP) + j : j * (n + GAP) + column];
        if (column < n && by_rows)
            want *= (double)p.scale;
        cr_assert(fabs((double)got.c[i] - want) <= (column < n ? 1e-5 : 0),
                  "%s, %lld x %lld x %lld by %s, kind %d: [%lld] is %g, expected %g",
                  kernels->name, (long long)m, (long long)n, (long long)k,
                  by_rows ? "rows" : "columns", kind, (long long)i, (double)got.c[i], want);
    }
    if (first->a[0] == 0)
        *first = got;
    cr_assert(memcmp(first, &got, sizeof(got)) == 0, "%s has other bits", kernels->name);
}

static void check_few_of_kind(int64_t m, int64_t n, int64_t k, int32_t kind)
{
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        static struct few first;
        memset(&first, 0, sizeof(first));
        if (kind == CPU_FEW_Q8_0 && (by_rows ? k : n) % 32)
            continue;
        for (const struct cpu_kernels *const *v = cpu_variants(); *v; v++)
            if (runs_here(*v))
                check_few(*v, m, n, k, by_rows, kind, &first);
    }
}

Test(cpu_reductions, products_of_few_rows_agree_in_all_variants)
{
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 17, 31, 32, 33, 64, 65, 71, 96, 129};
    static const int64_t depths[] = {1, 3, 7, 15, 31, 32};
    for (int64_t m = 1; m <= MOST_ROWS; m++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            for (size_t j = 0; j < sizeof(depths) / sizeof(*depths); j++)
                for (int32_t kind = CPU_FEW_F32; kind <= CPU_FEW_Q8_0; kind++)
                    check_few_of_kind(m, sizes[i], depths[j], kind);
}
