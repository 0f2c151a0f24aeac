// SPDX-License-Identifier: MIT
// Reductions of rows and columns. reduce.h defines the order of additions, on which the
// bits of results depend.
#include <math.h>
#include <string.h>
#include "variants.h"
#include "cpu/x86.h"

typedef float v8f __attribute__((vector_size(32)));
typedef float v8f_unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef double v4d __attribute__((vector_size(32)));
typedef double v4d_unaligned __attribute__((vector_size(32), aligned(8), may_alias));

typedef int32_t v8i __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));

#define AT8(x, i) (*(const v8f_unaligned *)((x) + (i)))
#define AT4(x, i) (*(const v4d_unaligned *)((x) + (i)))

// Kind of a sum's terms: the elements of x, or a kind of CPU_SUM_... of x and y. Callers of
// the functions below pass constants, so that each kind has a loop of its own.
#define ELEMENTS CPU_SUM_ELEMENTS
#define INLINE static inline __attribute__((always_inline))

#define TERMS(name, R, T, at)                                                              \
    INLINE R name(int kind, const T *x, const T *y, int64_t i)                             \
    {                                                                                      \
        if (kind == CPU_SUM_PRODUCTS)                                                      \
            return at(x, i) * at(y, i);                                                    \
        if (kind == CPU_SUM_SQUARED_DIFFERENCES)                                           \
            return (at(x, i) - *y) * (at(x, i) - *y);                                      \
        return at(x, i);                                                                   \
    }
#define ONE(x, i) ((x)[i])
TERMS(terms_f32, v8f, float, AT8)
TERMS(terms_f64, v4d, double, AT4)
TERMS(term_f32, float, float, ONE)
TERMS(term_f64, double, double, ONE)

// The sum of terms [begin, end), a multiple of 32 and at most 1024, in 32 lanes of f32:
// with so few additions a lane loses few bits.
INLINE v8f sum_lanes_f32(int kind, const float *x, const float *y, int64_t begin,
                         int64_t end)
{
    v8f a = {0}, b = {0}, c = {0}, d = {0};
    for (int64_t i = begin; i < end; i += 32) {
        a += terms_f32(kind, x, y, i);
        b += terms_f32(kind, x, y, i + 8);
        c += terms_f32(kind, x, y, i + 16);
        d += terms_f32(kind, x, y, i + 24);
    }
    return (a + b) + (c + d);
}

INLINE double add_lanes(v8f s)
{
    return (double)((s[0] + s[4]) + (s[2] + s[6])) +
           (double)((s[1] + s[5]) + (s[3] + s[7]));
}

INLINE double sum_chunk_f32(int kind, const float *x, const float *y, int64_t begin,
                            int64_t end)
{
    return add_lanes(sum_lanes_f32(kind, x, y, begin, end));
}

INLINE void sum_terms_f32(int kind, union cpu_accumulator *acc, const float *x,
                          const float *y, int64_t n)
{
    double sum = acc->f;
    int64_t whole = n & ~INT64_C(31), i = 0;
    for (; i + 1024 <= whole; i += 1024)
        sum += sum_chunk_f32(kind, x, y, i, i + 1024);
    if (i < whole)
        sum += sum_chunk_f32(kind, x, y, i, whole);
    for (i = whole; i < n; i++)
        sum += (double)term_f32(kind, x, y, i);
    acc->f = sum;
}

INLINE void sum_terms_f64(int kind, union cpu_accumulator *acc, const double *x,
                          const double *y, int64_t n)
{
    double sum = acc->f;
    int64_t i = 0;
    while (i + 16 <= n) {
        int64_t end = i + 1024 < n ? i + 1024 : n;
        v4d a = {0}, b = {0}, c = {0}, d = {0};
        for (; i + 16 <= end; i += 16) {
            a += terms_f64(kind, x, y, i);
            b += terms_f64(kind, x, y, i + 4);
            c += terms_f64(kind, x, y, i + 8);
            d += terms_f64(kind, x, y, i + 12);
        }
        v4d s = (a + b) + (c + d);
        sum += (s[0] + s[2]) + (s[1] + s[3]);
    }
    for (; i < n; i++)
        sum += term_f64(kind, x, y, i);
    acc->f = sum;
}

#define SUMS(N)                                                                            \
    static void sum_row_##N(union cpu_accumulator *acc, const void *x, int64_t n)          \
    {                                                                                      \
        sum_terms_##N(ELEMENTS, acc, x, NULL, n);                                          \
    }                                                                                      \
    static void sum_products_##N(union cpu_accumulator *acc, const void *a, const void *b, \
                                 int64_t n)                                                \
    {                                                                                      \
        sum_terms_##N(CPU_SUM_PRODUCTS, acc, a, b, n);                                     \
    }                                                                                      \
    static void sum_squared_differences_##N(union cpu_accumulator *acc, const void *a,     \
                                            const void *b, int64_t n)                      \
    {                                                                                      \
        sum_terms_##N(CPU_SUM_SQUARED_DIFFERENCES, acc, a, b, n);                          \
    }
SUMS(f32)
SUMS(f64)

// Sums of halves, widened in registers, with the same bits as sum_row_f32 of these numbers.
#define SUM_HALVES(name, widened)                                                          \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t n)                \
    {                                                                                      \
        const uint16_t *x = x_;                                                            \
        uint16_t rest[32] = {0};                                                           \
        double sum = acc->f;                                                               \
        int64_t whole = n & ~INT64_C(31);                                                  \
        for (int64_t i = 0; i < whole;) {                                                  \
            int64_t end = whole - i < 1024 ? whole : i + 1024;                             \
            v8f a = {0}, b = {0}, c = {0}, d = {0};                                        \
            for (; i < end; i += 32) {                                                     \
                a += widened(x + i);                                                       \
                b += widened(x + i + 8);                                                   \
                c += widened(x + i + 16);                                                  \
                d += widened(x + i + 24);                                                  \
            }                                                                              \
            sum += add_lanes((a + b) + (c + d));                                           \
        }                                                                                  \
        memcpy(rest, x + whole, (size_t)(n - whole) * sizeof(*x));                         \
        for (int64_t i = whole; i < n; i += 8) {                                           \
            v8f eight = widened(rest + (i - whole));                                       \
            for (int64_t k = 0; k < 8 && i + k < n; k++)                                   \
                sum += (double)eight[k];                                                   \
        }                                                                                  \
        acc->f = sum;                                                                      \
    }

typedef uint16_t v8h_unaligned __attribute__((vector_size(16), aligned(2), may_alias));

INLINE v8f widened_bf16(const uint16_t *x)
{
    typedef uint32_t v8u __attribute__((vector_size(32)));
    return (v8f)(__builtin_convertvector(*(const v8h_unaligned *)x, v8u) << 16);
}
SUM_HALVES(sum_row_bf16, widened_bf16)

#if defined(__F16C__)
SUM_HALVES(sum_row_f16, x86_widen_f16)
#else
#define sum_row_f16 NULL
#endif

typedef float v4f __attribute__((vector_size(16)));

// The sums of the lanes of four rows, added in the same order as in sum_chunk_f32.
INLINE v4d add_lanes_of_four(const v8f *s)
{
    v4f t[4];
    for (int r = 0; r < 4; r++)
        t[r] = __builtin_shufflevector(s[r], s[r], 0, 1, 2, 3) +
               __builtin_shufflevector(s[r], s[r], 4, 5, 6, 7);
    v4f a = __builtin_shufflevector(t[0], t[1], 0, 1, 4, 5); // lanes 0 and 1 of both rows
    v4f b = __builtin_shufflevector(t[0], t[1], 2, 3, 6, 7);
    v4f c = __builtin_shufflevector(t[2], t[3], 0, 1, 4, 5);
    v4f d = __builtin_shufflevector(t[2], t[3], 2, 3, 6, 7);
    v4f ab = a + b, cd = c + d;
    v4f even = __builtin_shufflevector(ab, cd, 0, 2, 4, 6);
    v4f odd = __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
    return __builtin_convertvector(even, v4d) + __builtin_convertvector(odd, v4d);
}

// Rows of one chunk without a rest are summed four at a time, so that the lanes of all four
// are added as vectors.
INLINE void sum_rows_of(int kind, union cpu_accumulator *acc, const float *x,
                        const float *y, int64_t y_step, int64_t rows, int64_t n)
{
    int64_t r = 0;
    for (; r + 4 <= rows && n % 32 == 0 && n <= 1024; r += 4) {
        v8f s[4];
        for (int k = 0; k < 4; k++, x += n, y += y_step)
            s[k] = sum_lanes_f32(kind, x, y, 0, n);
        v4d sums = add_lanes_of_four(s) + 0.0; // turns -0 into 0
        memcpy(&acc[r], &sums, sizeof(sums));
    }
    for (; r < rows; r++, x += n, y += y_step) {
        acc[r].f = 0;
        sum_terms_f32(kind, &acc[r], x, y, n);
    }
}

#define SUM_ROWS(name, kind)                                                               \
    static void name(union cpu_accumulator *acc, const void *a, const void *b,             \
                     int64_t b_step, int64_t rows, int64_t n)                              \
    {                                                                                      \
        sum_rows_of(kind, acc, a, b, b_step, rows, n);                                     \
    }
SUM_ROWS(sum_rows_of_elements, ELEMENTS)
SUM_ROWS(sum_rows_of_products, CPU_SUM_PRODUCTS)
SUM_ROWS(sum_rows_of_squared_differences, CPU_SUM_SQUARED_DIFFERENCES)

// Lanes are f64, so that a product of f32 does not overflow half way between large and
// small factors.
#define ROW_PROD(name, T)                                                                  \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t n)                \
    {                                                                                      \
        const T *x = x_;                                                                   \
        double lanes[16], product = acc->f;                                                \
        int64_t i = 0;                                                                     \
        for (int k = 0; k < 16; k++)                                                       \
            lanes[k] = 1;                                                                  \
        for (; i + 16 <= n; i += 16)                                                       \
            for (int k = 0; k < 16; k++)                                                   \
                lanes[k] *= (double)x[i + k];                                              \
        for (int k = 0; k < 16; k++)                                                       \
            product *= lanes[k];                                                           \
        for (; i < n; i++)                                                                 \
            product *= (double)x[i];                                                       \
        acc->f = product;                                                                  \
    }
ROW_PROD(prod_row_f32, float)
ROW_PROD(prod_row_f64, double)

// Lanes begin with elements, since 1 + 0i times an infinite part would be NaN. If the
// result is not finite, as when one lane overflows, it is computed again without lanes.
#define COMPLEX_PRODUCT(name, T)                                                           \
    static void name(tn_complex128 *acc, const void *x_, int64_t n)                        \
    {                                                                                      \
        const T *x = x_;                                                                   \
        double re[16], im[16];                                                             \
        tn_complex128 product = *acc;                                                      \
        int64_t whole = n & ~INT64_C(15);                                                  \
        for (int k = 0; k < 16 && whole; k++) {                                            \
            re[k] = (double)x[2 * k];                                                      \
            im[k] = (double)x[2 * k + 1];                                                  \
        }                                                                                  \
        for (int64_t i = 16; i < whole; i += 16)                                           \
            for (int k = 0; k < 16; k++) {                                                 \
                double a = (double)x[2 * (i + k)], b = (double)x[2 * (i + k) + 1];         \
                double real = re[k] * a - im[k] * b;                                       \
                im[k] = re[k] * b + im[k] * a;                                             \
                re[k] = real;                                                              \
            }                                                                              \
        for (int k = 0; k < 16 && whole; k++)                                              \
            product = tn_complex_multiply(product, (tn_complex128){re[k], im[k]});         \
        if (!(fabs(product.re) + fabs(product.im) < (double)INFINITY)) {                   \
            product = *acc;                                                                \
            whole = 0;                                                                     \
        }                                                                                  \
        for (int64_t i = whole; i < n; i++)                                                \
            product = tn_complex_multiply(                                                 \
                product, (tn_complex128){(double)x[2 * i], (double)x[2 * i + 1]});         \
        *acc = product;                                                                    \
    }
COMPLEX_PRODUCT(complex64_product, float)
COMPLEX_PRODUCT(complex128_product, double)

static void complex64_sum(tn_complex128 *acc, const void *x_, int64_t n)
{
    const float *x = x_;
    int64_t whole = 2 * n & ~INT64_C(31), end;
    for (int64_t i = 0; i < whole; i = end) {
        end = whole - i < 1024 ? whole : i + 1024;
        v8f s = sum_lanes_f32(ELEMENTS, x, NULL, i, end);
        acc->re += (double)((s[0] + s[4]) + (s[2] + s[6]));
        acc->im += (double)((s[1] + s[5]) + (s[3] + s[7]));
    }
    for (int64_t i = whole; i < 2 * n; i += 2) {
        acc->re += (double)x[i];
        acc->im += (double)x[i + 1];
    }
}

static void complex128_sum(tn_complex128 *acc, const void *x_, int64_t n)
{
    const double *x = x_;
    int64_t whole = 2 * n & ~INT64_C(15);
    v4d s[4] = {{0}};
    for (int64_t i = 0; i < whole; i += 16)
        for (int k = 0; k < 4; k++)
            s[k] += AT4(x, i + 4 * k);
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    acc->re += s[0][0] + s[0][2];
    acc->im += s[0][1] + s[0][3];
    for (int64_t i = whole; i < 2 * n; i += 2) {
        acc->re += x[i];
        acc->im += x[i + 1];
    }
}

#define ROW_INT(name, T, A, expression)                                                    \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t n)                \
    {                                                                                      \
        const T *x = x_;                                                                   \
        A a = (A)acc->i;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                  \
            A b = (A)x[i];                                                                 \
            a = expression;                                                                \
        }                                                                                  \
        acc->i = (int64_t)a;                                                               \
    }

// The greatest or the least element, by `compare`, computed in T instead of the wider A, so
// that a vector has more lanes.
#define ROW_INT_EXTREME(name, T, A, compare)                                               \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t n)                \
    {                                                                                      \
        const T *x = x_;                                                                   \
        A a = (A)acc->i;                                                                   \
        if (n <= 0)                                                                        \
            return;                                                                        \
        T best = x[0];                                                                     \
        for (int64_t i = 1; i < n; i++)                                                    \
            best = x[i] compare best ? x[i] : best;                                        \
        acc->i = (int64_t)((A)best compare a ? (A)best : a);                               \
    }

// The greatest or the least element, by `compare`. A mask collects which lanes had a NaN,
// so that the loop needs only one comparison for the extreme; a NaN then wins at the end.
#define ROW_FLOAT_EXTREME(name, T, V, M, LOOSE, compare)                                   \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t n)                \
    {                                                                                      \
        enum { WIDTH = sizeof(V) / sizeof(T) };                                            \
        const T *x = x_;                                                                   \
        T best = (T)acc->f;                                                                \
        V lanes[4];                                                                        \
        M nans = {0};                                                                      \
        bool nan = false;                                                                  \
        int64_t i = 0;                                                                     \
        for (int k = 0; k < 4; k++)                                                        \
            lanes[k] = best - (V){0};                                                      \
        for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {                                       \
            for (int k = 0; k < 4; k++) {                                                  \
                V y = *(const LOOSE *)(x + i + k * WIDTH);                                 \
                M wins = y compare lanes[k];                                               \
                lanes[k] = (V)(((M)y & wins) | ((M)lanes[k] & ~wins));                     \
                nans |= y != y;                                                            \
            }                                                                              \
        }                                                                                  \
        for (int k = 1; k < 4; k++) {                                                      \
            M wins = lanes[k] compare lanes[0];                                            \
            lanes[0] = (V)(((M)lanes[k] & wins) | ((M)lanes[0] & ~wins));                  \
        }                                                                                  \
        for (int k = 0; k < WIDTH; k++) {                                                  \
            T y = lanes[0][k];                                                             \
            best = y compare best ? y : best;                                              \
            nan |= nans[k] != 0;                                                           \
        }                                                                                  \
        for (; i < n; i++) {                                                               \
            best = x[i] compare best ? x[i] : best;                                        \
            nan |= x[i] != x[i];                                                           \
        }                                                                                  \
        acc->f = nan || acc->f != acc->f ? (double)NAN : (double)best;                     \
    }
ROW_FLOAT_EXTREME(max_row_f32, float, v8f, v8i, v8f_unaligned, >)
ROW_FLOAT_EXTREME(min_row_f32, float, v8f, v8i, v8f_unaligned, <)
ROW_FLOAT_EXTREME(max_row_f64, double, v4d, v4l, v4d_unaligned, >)
ROW_FLOAT_EXTREME(min_row_f64, double, v4d, v4l, v4d_unaligned, <)

// Reductions of columns, a tile of partial results (`part`, of type P) at a time. Sums of
// floats are added to the f64 accumulators every 64 rows, other reductions at the end.
// `start` is a part's first value, computed of a, the accumulator; `step` is its next
// value, of a, the part, and b, the element; `flush` is the assignment that stores a part.
#define COLUMN_TILE 256
#define COLUMNS(name, T, P, member, max_rows, start, step, flush)                          \
    static void name(union cpu_accumulator *acc, const void *x_, int64_t rows,             \
                     int64_t columns, int64_t stride)                                      \
    {                                                                                      \
        const T *x = x_;                                                                   \
        P part[COLUMN_TILE];                                                               \
        for (int64_t j0 = 0; j0 < columns; j0 += COLUMN_TILE) {                            \
            int64_t n = columns - j0 < COLUMN_TILE ? columns - j0 : COLUMN_TILE;           \
            for (int64_t r0 = 0; r0 < rows; r0 += max_rows) {                              \
                int64_t r1 = r0 + max_rows < rows ? r0 + max_rows : rows;                  \
                for (int64_t j = 0; j < n; j++) {                                          \
                    P a = (P)acc[j0 + j].member;                                           \
                    (void)a;                                                               \
                    part[j] = start;                                                       \
                }                                                                          \
                int64_t r = r0;                                                            \
                for (; r + 4 <= r1; r += 4) { /* in order, in registers */                 \
                    const T *row = x + r * stride + j0;                                    \
                    const T *second = row + stride, *third = second + stride;              \
                    const T *fourth = third + stride;                                      \
                    for (int64_t j = 0; j < n; j++) {                                      \
                        P a = part[j], b = (P)row[j];                                      \
                        a = step;                                                          \
                        b = (P)second[j];                                                  \
                        a = step;                                                          \
                        b = (P)third[j];                                                   \
                        a = step;                                                          \
                        b = (P)fourth[j];                                                  \
                        part[j] = step;                                                    \
                    }                                                                      \
                }                                                                          \
                for (; r < r1; r++) {                                                      \
                    const T *row = x + r * stride + j0;                                    \
                    for (int64_t j = 0; j < n; j++) {                                      \
                        P a = part[j], b = (P)row[j];                                      \
                        part[j] = step;                                                    \
                    }                                                                      \
                }                                                                          \
                for (int64_t j = 0; j < n; j++)                                            \
                    acc[j0 + j].member flush part[j];                                      \
            }                                                                              \
        }                                                                                  \
    }
COLUMNS(sum_columns_f32, float, float, f, 64, 0, a + b, +=)
COLUMNS(sum_columns_f64, double, double, f, 64, 0, a + b, +=)
COLUMNS(prod_columns_f32, float, double, f, rows, a, a *b, =)
COLUMNS(prod_columns_f64, double, double, f, rows, a, a *b, =)
COLUMNS(max_columns_f32, float, float, f, rows, a, b != b ? b : (b > a ? b : a), =)
COLUMNS(min_columns_f32, float, float, f, rows, a, b != b ? b : (b < a ? b : a), =)
COLUMNS(max_columns_f64, double, double, f, rows, a, b != b ? b : (b > a ? b : a), =)
COLUMNS(min_columns_f64, double, double, f, rows, a, b != b ? b : (b < a ? b : a), =)

#define INTEGER_SUMS(N, T, A)                                                              \
    ROW_INT(sum_row_##N, T, A, a + b)                                                      \
    ROW_INT(prod_row_##N, T, A, a *b)                                                      \
    COLUMNS(sum_columns_##N, T, A, i, rows, 0, a + b, += (int64_t))                        \
    COLUMNS(prod_columns_##N, T, A, i, rows, a, a *b, = (int64_t))
#define INTEGER_EXTREMES(N, T, A)                                                          \
    ROW_INT_EXTREME(max_row_##N, T, A, >)                                                  \
    ROW_INT_EXTREME(min_row_##N, T, A, <)                                                  \
    COLUMNS(max_columns_##N, T, A, i, rows, a, b > a ? b : a, = (int64_t))                 \
    COLUMNS(min_columns_##N, T, A, i, rows, a, b < a ? b : a, = (int64_t))
#define INTEGER(N, T, A)                                                                   \
    INTEGER_SUMS(N, T, A)                                                                  \
    INTEGER_EXTREMES(N, T, A)
INTEGER_EXTREMES(bool, uint8_t, int64_t)
INTEGER(i8, int8_t, int64_t)
INTEGER(i16, int16_t, int64_t)
INTEGER(i32, int32_t, int64_t)
INTEGER_EXTREMES(i64, int64_t, int64_t)
INTEGER(u8, uint8_t, uint64_t)
INTEGER(u16, uint16_t, uint64_t)
INTEGER(u32, uint32_t, uint64_t)
INTEGER(u64, uint64_t, uint64_t)
// Sums and products wrap, so that signed and unsigned integers have the same bits.
#define sum_row_bool sum_row_u8
#define prod_row_bool prod_row_u8
#define sum_columns_bool sum_columns_u8
#define prod_columns_bool prod_columns_u8
#define sum_row_i64 sum_row_u64
#define prod_row_i64 prod_row_u64
#define sum_columns_i64 sum_columns_u64
#define prod_columns_i64 prod_columns_u64

#define ALL_OF(kind, shape)                                                                \
    [TN_BOOL] = kind##_##shape##_bool, [TN_I8] = kind##_##shape##_i8,                      \
    [TN_I16] = kind##_##shape##_i16, [TN_I32] = kind##_##shape##_i32,                      \
    [TN_I64] = kind##_##shape##_i64, [TN_U8] = kind##_##shape##_u8,                        \
    [TN_U16] = kind##_##shape##_u16, [TN_U32] = kind##_##shape##_u32,                      \
    [TN_U64] = kind##_##shape##_u64, [TN_F32] = kind##_##shape##_f32,                      \
    [TN_F64] = kind##_##shape##_f64
#define ALL(kind, shape)                                                                   \
    {                                                                                      \
        ALL_OF(kind, shape)                                                                \
    }

const struct cpu_reduce_kernels V(cpu_reductions) = {
    .row = {{ALL_OF(sum, row), [TN_F16] = sum_row_f16, [TN_BF16] = sum_row_bf16},
            ALL(max, row),
            ALL(min, row),
            ALL(prod, row)},
    .columns = {ALL(sum, columns), ALL(max, columns), ALL(min, columns),
                ALL(prod, columns)},
    .sum = {[CPU_SUM_PRODUCTS] = {[TN_F32] = sum_products_f32, [TN_F64] = sum_products_f64},
            [CPU_SUM_SQUARED_DIFFERENCES] = {[TN_F32] = sum_squared_differences_f32,
                                             [TN_F64] = sum_squared_differences_f64}},
    .sum_rows = {[CPU_SUM_PRODUCTS] = sum_rows_of_products,
                 [CPU_SUM_SQUARED_DIFFERENCES] = sum_rows_of_squared_differences,
                 [CPU_SUM_ELEMENTS] = sum_rows_of_elements},
    .complex_product = {complex64_product, complex128_product},
    .complex_sum = {complex64_sum, complex128_sum},
};
