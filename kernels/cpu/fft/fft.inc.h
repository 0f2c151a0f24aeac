// SPDX-License-Identifier: MIT
// Fourier transforms in one precision. Included with
//
//   REAL        float or double
//   LANES       numbers of a vector
//   EVEN, ODD   indices that take real and imaginary parts from two vectors of numbers
//   LOW, HIGH   indices that put them back
//   REVERSED    indices from the last
//   RUN, PART, FOLD   the functions' names
//
// Inverse transforms exchange the real and imaginary parts of what they read and write.
#include "variants.h"
#include "cpu/move/variants.h"

typedef REAL vector __attribute__((vector_size(CPU_FFT_LANE_BYTES)));
typedef REAL loose_vector
    __attribute__((vector_size(CPU_FFT_LANE_BYTES), aligned(sizeof(REAL)), may_alias));

// LANES complex numbers.
struct lanes {
    vector re, im;
};

#define INLINE static inline __attribute__((always_inline))

// --- memory ------------------------------------------------------------------------------

// Rows of `count` complex numbers each, `stride` numbers apart, to lanes; other lanes are
// 0.
static void load_columns(struct lanes *to, const REAL *in, int64_t rows, int64_t stride,
                         int64_t count, bool swaps)
{
    for (int64_t r = 0; r < rows; r++, in += 2 * stride) {
        REAL part[2 * LANES] = {0};
        const REAL *from = in;
        if (count < LANES) {
            memcpy(part, in, (size_t)(2 * count) * sizeof(REAL));
            from = part;
        }
        vector a = *(const loose_vector *)from, b = *(const loose_vector *)(from + LANES);
        vector even = __builtin_shufflevector(a, b, EVEN);
        vector odd = __builtin_shufflevector(a, b, ODD);
        to[r].re = swaps ? odd : even;
        to[r].im = swaps ? even : odd;
    }
}

static void store_columns(REAL *out, const struct lanes *from, int64_t rows, int64_t stride,
                          int64_t count, bool swaps, REAL scale)
{
    for (int64_t r = 0; r < rows; r++, out += 2 * stride) {
        vector even = scale * (swaps ? from[r].im : from[r].re);
        vector odd = scale * (swaps ? from[r].re : from[r].im);
        vector a = __builtin_shufflevector(even, odd, LOW);
        vector b = __builtin_shufflevector(even, odd, HIGH);
        if (count < LANES) {
            REAL part[2 * LANES];
            *(loose_vector *)part = a;
            *(loose_vector *)(part + LANES) = b;
            memcpy(out, part, (size_t)(2 * count) * sizeof(REAL));
        } else {
            *(loose_vector *)out = a;
            *(loose_vector *)(out + LANES) = b;
        }
    }
}

// to[c * to_stride + r] = from[r * from_stride + c], complex numbers.
static void transpose(REAL *to, int64_t to_stride, const REAL *from, int64_t from_stride,
                      int64_t rows, int64_t columns)
{
    if (sizeof(REAL) == sizeof(float)) {
        V(cpu_transposes)[3](to, to_stride, from, from_stride, rows, columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + 2 * (c * to_stride + r), from + 2 * (r * from_stride + c),
                   2 * sizeof(REAL));
}

// `count` rows of n complex numbers to a lane each. `room` is for n times LANES numbers.
static void load_rows(struct lanes *to, const REAL *in, int64_t n, int64_t stride,
                      int64_t count, bool swaps, REAL *room)
{
    if (count < LANES)
        memset(room, 0, (size_t)n * 2 * LANES * sizeof(REAL));
    transpose(room, LANES, in, stride, count, n);
    load_columns(to, room, n, LANES, LANES, swaps);
}

static void store_rows(REAL *out, const struct lanes *from, int64_t n, int64_t stride,
                       int64_t count, bool swaps, REAL scale, REAL *room)
{
    store_columns(room, from, n, LANES, LANES, swaps, scale);
    transpose(out, stride, room, LANES, n, count);
}

// --- butterflies -------------------------------------------------------------------------

INLINE struct lanes add(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re + b.re, a.im + b.im};
}
INLINE struct lanes subtract(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re - b.re, a.im - b.im};
}
INLINE struct lanes scaled(REAL by, struct lanes a)
{
    return (struct lanes){by * a.re, by * a.im};
}
INLINE struct lanes times(struct lanes a, REAL re, REAL im)
{
    return (struct lanes){a.re * re - a.im * im, a.re * im + a.im * re};
}
// a - i b, a + i b
INLINE struct lanes minus_i(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re + b.im, a.im - b.re};
}
INLINE struct lanes plus_i(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re - b.im, a.im + b.re};
}

INLINE void butterfly_2(struct lanes *a)
{
    struct lanes b = a[1];
    a[1] = subtract(a[0], b);
    a[0] = add(a[0], b);
}

INLINE void butterfly_3(struct lanes *a)
{
    const REAL sine = (REAL)0.86602540378443864676; // of a third of a turn
    struct lanes sum = add(a[1], a[2]), difference = scaled(sine, subtract(a[1], a[2]));
    struct lanes middle = subtract(a[0], scaled((REAL)0.5, sum));
    a[0] = add(a[0], sum);
    a[1] = minus_i(middle, difference);
    a[2] = plus_i(middle, difference);
}

INLINE void butterfly_4(struct lanes *a)
{
    struct lanes b = add(a[0], a[2]), c = subtract(a[0], a[2]);
    struct lanes d = add(a[1], a[3]), e = subtract(a[1], a[3]);
    a[0] = add(b, d);
    a[1] = minus_i(c, e);
    a[2] = subtract(b, d);
    a[3] = plus_i(c, e);
}

INLINE void butterfly_5(struct lanes *a)
{
    const REAL c1 = (REAL)0.30901699437494742410, c2 = (REAL)-0.80901699437494742410;
    const REAL s1 = (REAL)0.95105651629515357212, s2 = (REAL)0.58778525229247312917;
    struct lanes b = add(a[1], a[4]), c = add(a[2], a[3]);
    struct lanes d = subtract(a[1], a[4]), e = subtract(a[2], a[3]);
    struct lanes f = add(a[0], add(scaled(c1, b), scaled(c2, c)));
    struct lanes g = add(a[0], add(scaled(c2, b), scaled(c1, c)));
    struct lanes h = add(scaled(s1, d), scaled(s2, e));
    struct lanes k = subtract(scaled(s2, d), scaled(s1, e));
    a[0] = add(a[0], add(b, c));
    a[1] = minus_i(f, h);
    a[2] = minus_i(g, k);
    a[3] = plus_i(g, k);
    a[4] = plus_i(f, h);
}

static void butterfly_any(int64_t radix, struct lanes *a, const REAL *roots)
{
    struct lanes b[CPU_FFT_MAX_RADIX];
    for (int64_t j = 0; j < radix; j++) {
        struct lanes sum = a[0];
        for (int64_t k = 1, at = j; k < radix; k++, at = (at + j) % radix)
            sum = add(sum, times(a[k], roots[2 * at], roots[2 * at + 1]));
        b[j] = sum;
    }
    memcpy(a, b, (size_t)radix * sizeof(*a));
}

// --- transforms in lanes -----------------------------------------------------------------

// A pass from x to y. Constant radices are inlined.
INLINE void run_pass(int64_t radix, const struct cpu_fft_pass *pass, struct lanes *y,
                     const struct lanes *x)
{
    const REAL *twiddles = pass->twiddles;
    int64_t stride = pass->stride, groups = pass->groups;
    for (int64_t p = 0; p < groups; p++, twiddles += 2 * (radix - 1))
        for (int64_t q = 0; q < stride; q++) {
            struct lanes a[CPU_FFT_MAX_RADIX];
            for (int64_t k = 0; k < radix; k++)
                a[k] = x[q + stride * (p + groups * k)];
            switch (radix) {
            case 2:
                butterfly_2(a);
                break;
            case 3:
                butterfly_3(a);
                break;
            case 4:
                butterfly_4(a);
                break;
            case 5:
                butterfly_5(a);
                break;
            default:
                butterfly_any(radix, a, pass->roots);
            }
            y[q + stride * radix * p] = a[0];
            for (int64_t j = 1; j < radix; j++)
                y[q + stride * (radix * p + j)] =
                    times(a[j], twiddles[2 * j - 2], twiddles[2 * j - 1]);
        }
}

// Transforms x[0 .. n), with y for as many. Gives where the result is, x or y.
static struct lanes *run_lanes(const struct cpu_fft *plan, struct lanes *x, struct lanes *y)
{
    for (int32_t i = 0; i < plan->num_passes; i++) {
        const struct cpu_fft_pass *pass = &plan->passes[i];
        switch (pass->radix) {
        case 2:
            run_pass(2, pass, y, x);
            break;
        case 3:
            run_pass(3, pass, y, x);
            break;
        case 4:
            run_pass(4, pass, y, x);
            break;
        case 5:
            run_pass(5, pass, y, x);
            break;
        default:
            run_pass(pass->radix, pass, y, x);
        }
        struct lanes *z = x;
        x = y;
        y = z;
    }
    return x;
}

static void rows_in_lanes(const struct cpu_fft_call *call)
{
    int64_t n = call->plan->n;
    struct lanes *x = call->scratch, *y = x + n;
    for (int64_t r = 0; r < call->rows; r += LANES) {
        int64_t count = call->rows - r < LANES ? call->rows - r : LANES;
        load_rows(x, (const REAL *)call->in + 2 * r * call->in_row, n, call->in_row, count,
                  call->is_inverse, (REAL *)y);
        struct lanes *z = run_lanes(call->plan, x, y);
        store_rows((REAL *)call->out + 2 * r * call->out_row, z, n, call->out_row, count,
                   call->is_inverse, (REAL)call->scale, (REAL *)(z == x ? y : x));
    }
}

// --- transforms in parts -----------------------------------------------------------------

static void *align(void *memory)
{
    uintptr_t at = (uintptr_t)memory + CPU_FFT_ALIGNMENT - 1;
    return (void *)(at & ~(uintptr_t)(CPU_FFT_ALIGNMENT - 1));
}

// Multiplies row r by steps[r] and base r of the block.
static void turn(const struct cpu_fft *plan, struct lanes *x, int64_t block)
{
    int64_t rows = plan->first->n;
    const struct lanes *steps = plan->steps;
    const REAL *bases = (const REAL *)plan->bases + 2 * block * rows;
    for (int64_t r = 0; r < rows; r++) {
        struct lanes by = times(steps[r], bases[2 * r], bases[2 * r + 1]), a = x[r];
        x[r].re = a.re * by.re - a.im * by.im;
        x[r].im = a.re * by.im + a.im * by.re;
    }
}

// Transforms the columns of `in`, as rows of second->n numbers.
static void first_part(const struct cpu_fft_part *part, REAL *out)
{
    const struct cpu_fft *plan = part->call->plan;
    const REAL *in = part->call->in;
    bool swaps = part->call->is_inverse;
    struct lanes *x = part->scratch;
    int64_t rows = plan->first->n, columns = plan->second->n;
    for (int64_t c = part->begin * LANES; c < part->end * LANES && c < columns;
         c += LANES) {
        int64_t count = columns - c < LANES ? columns - c : LANES;
        load_columns(x, in + 2 * c, rows, columns, count, swaps);
        struct lanes *y = run_lanes(plan->first, x, x + rows);
        turn(plan, y, c / LANES);
        store_columns(out + 2 * c, y, rows, columns, count, false, 1);
    }
}

// Transforms `count` rows that are too long for lanes, one by one, and writes them as
// columns of `out`.
static void long_rows(const struct cpu_fft_call *call, const REAL *in, REAL *out,
                      int64_t count, REAL *room)
{
    const struct cpu_fft *plan = call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    const struct cpu_fft_call part = {.plan = plan->second,
                                      .in = in,
                                      .out = room,
                                      .rows = count,
                                      .in_row = columns,
                                      .out_row = columns,
                                      .scale = call->scale,
                                      .scratch = align(room + 2 * LANES * columns)};
    RUN(&part);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < count; r++) {
            const REAL *from = room + 2 * (r * columns + c);
            REAL *to = out + 2 * (c * rows + r);
            to[call->is_inverse] = from[0];
            to[!call->is_inverse] = from[1];
        }
}

// Transforms the rows of `between` and writes them as columns.
static void second_part(const struct cpu_fft_part *part, const REAL *between)
{
    const struct cpu_fft_call *call = part->call;
    const struct cpu_fft *plan = call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    REAL *out = call->out;
    struct lanes *x = part->scratch;
    for (int64_t r = part->begin * LANES; r < part->end * LANES && r < rows; r += LANES) {
        int64_t count = rows - r < LANES ? rows - r : LANES;
        if (plan->second->kind != CPU_FFT_LANES) {
            long_rows(call, between + 2 * r * columns, out + 2 * r, count, (REAL *)x);
            continue;
        }
        load_rows(x, between + 2 * r * columns, columns, columns, count, false,
                  (REAL *)(x + columns));
        struct lanes *y = run_lanes(plan->second, x, x + columns);
        store_columns(out + 2 * r, y, columns, rows, count, call->is_inverse,
                      (REAL)call->scale);
    }
}

void PART(const struct cpu_fft_part *part)
{
    if (part->is_second)
        second_part(part, part->call->scratch);
    else
        first_part(part, part->call->scratch);
}

static void row_in_parts(const struct cpu_fft_call *call, const REAL *in, REAL *out)
{
    struct cpu_fft_call row = *call;
    row.in = in;
    row.out = out;
    struct cpu_fft_part part = {.call = &row,
                                .end = cpu_fft_blocks(call->plan, false),
                                .scratch =
                                    align((REAL *)call->scratch + 2 * call->plan->n)};
    PART(&part);
    part.is_second = true;
    part.end = cpu_fft_blocks(call->plan, true);
    PART(&part);
}

// --- convolutions ------------------------------------------------------------------------

// out[j] = scale * a[j] * b[j]; parts of a and of out are exchanged on request. Not a plain
// loop: of that, gcc makes fused multiply-adds where it has them.
static void multiply(REAL *out, const REAL *a, const REAL *b, int64_t n, bool swaps_in,
                     bool swaps_out, REAL scale)
{
    for (int64_t j = 0; j < n; j += LANES) {
        struct lanes x, y;
        int64_t count = n - j < LANES ? n - j : LANES;
        load_columns(&x, a + 2 * j, 1, 0, count, swaps_in);
        load_columns(&y, b + 2 * j, 1, 0, count, false);
        x = (struct lanes){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
        store_columns(out + 2 * j, &x, 1, 0, count, swaps_out, scale);
    }
}

static void row_by_chirp(const struct cpu_fft_call *call, const REAL *in, REAL *out)
{
    const struct cpu_fft *plan = call->plan;
    int64_t n = plan->n, m = plan->convolution->n;
    REAL *room = call->scratch;
    struct cpu_fft_call part = {.plan = plan->convolution,
                                .in = room,
                                .out = room,
                                .rows = 1,
                                .scale = 1,
                                .scratch = align(room + 2 * m)};
    multiply(room, in, plan->chirp, n, call->is_inverse, false, 1);
    memset(room + 2 * n, 0, (size_t)(2 * (m - n)) * sizeof(REAL));
    RUN(&part);
    multiply(room, room, plan->spectrum, m, false, false, 1);
    part.is_inverse = true;
    RUN(&part);
    multiply(out, room, plan->chirp, n, false, call->is_inverse, (REAL)call->scale);
}

void RUN(const struct cpu_fft_call *call)
{
    if (call->plan->kind == CPU_FFT_LANES) {
        rows_in_lanes(call);
        return;
    }
    for (int64_t r = 0; r < call->rows; r++) {
        const REAL *in = (const REAL *)call->in + 2 * r * call->in_row;
        REAL *out = (REAL *)call->out + 2 * r * call->out_row;
        if (call->plan->kind == CPU_FFT_PARTS)
            row_in_parts(call, in, out);
        else
            row_by_chirp(call, in, out);
    }
}

// --- real numbers ------------------------------------------------------------------------

// `count` numbers in reverse order; other lanes are 0.
static struct lanes load_reversed(const REAL *in, int64_t count)
{
    struct lanes a;
    if (count < LANES) {
        REAL part[2 * LANES] = {0};
        for (int64_t i = 0; i < count; i++)
            memcpy(part + 2 * i, in + 2 * (count - 1 - i), 2 * sizeof(REAL));
        load_columns(&a, part, 1, 0, LANES, false);
        return a;
    }
    load_columns(&a, in, 1, 0, LANES, false);
    a.re = __builtin_shufflevector(a.re, a.re, REVERSED);
    a.im = __builtin_shufflevector(a.im, a.im, REVERSED);
    return a;
}

static void store_reversed(REAL *out, struct lanes a, int64_t count)
{
    if (count < LANES) {
        REAL part[2 * LANES];
        store_columns(part, &a, 1, 0, LANES, false, 1);
        for (int64_t i = 0; i < count; i++)
            memcpy(out + 2 * (count - 1 - i), part + 2 * i, 2 * sizeof(REAL));
        return;
    }
    a.re = __builtin_shufflevector(a.re, a.re, REVERSED);
    a.im = __builtin_shufflevector(a.im, a.im, REVERSED);
    store_columns(out, &a, 1, 0, LANES, false, 1);
}

static void fold_row(const struct cpu_fft_fold *fold, const REAL *in, REAL *out)
{
    int64_t half = fold->half, inverse = fold->is_inverse;
    const REAL *turns = fold->turns;
    bool has_ends = fold->begin == 0 && fold->end > 0;
    REAL first = 0, last = 0;
    if (has_ends) {
        first = in[0];
        last = in[inverse ? 2 * half : 1];
    }
    for (int64_t k = fold->begin > 1 ? fold->begin : 1; k < fold->end; k += LANES) {
        int64_t left = fold->end - k, count = left < LANES ? left : LANES;
        int64_t other = 2 * (half - k - count + 1);
        struct lanes a, b = load_reversed(in + other, count), by;
        load_columns(&a, in + 2 * k, 1, 0, count, false);
        load_columns(&by, turns + 2 * k, 1, 0, count, false);
        by.im = inverse ? -by.im : by.im;
        struct lanes even = {a.re + b.re, a.im - b.im}, odd = {a.re - b.re, a.im + b.im};
        odd = (struct lanes){odd.re * by.re - odd.im * by.im,
                             odd.re * by.im + odd.im * by.re};
        a = subtract(even, odd);
        b = (struct lanes){even.re + odd.re, -(even.im + odd.im)};
        store_columns(out + 2 * k, &a, 1, 0, count, false, 1);
        store_reversed(out + other, b, count);
    }
    if (!has_ends)
        return;
    if (inverse) {
        out[0] = first + last;
        out[1] = first - last;
        return;
    }
    out[0] = 2 * (first + last);
    out[2 * half] = 2 * (first - last);
    out[1] = out[2 * half + 1] = 0;
}

void FOLD(const struct cpu_fft_fold *fold)
{
    for (int64_t r = 0; r < fold->rows; r++)
        fold_row(fold, (const REAL *)fold->in + 2 * r * fold->in_row,
                 (REAL *)fold->out + 2 * r * fold->out_row);
}
