// SPDX-License-Identifier: MIT
// Fourier transforms in one precision. Included with
//
//   REAL, REAL_BYTES  float or double
//   VECTOR_FMA        fused multiply-add of vectors of REAL
//   RUN, STAGE, FOLD  the functions' names
//
// Inverse transforms exchange the real and imaginary parts of operands and results.
#include "fft_vectors.h"
#include "variants.h"
#include "cpu/sizes.h"
#include "fft_lanes.inc.h"
#include "fft_passes.inc.h"

#define BLOCK (CPU_FFT_LANE_BYTES / REAL_BYTES) // columns or rows of a block of a stage

// --- rows in lanes -----------------------------------------------------------------------

INLINE struct lanes swapped(struct lanes a)
{
    return (struct lanes){a.im, a.re};
}

// Transforms x of a prime length by a convolution of length n - 1 (Rader). Returns x or y,
// as run_lanes() does.
static struct lanes *run_prime(const struct cpu_fft *plan, struct lanes *x, struct lanes *y)
{
    const REAL *spectrum = plan->spectrum;
    const int32_t *from = plan->order, *to = from + plan->n - 1;
    int64_t m = plan->n - 1;
    struct lanes first = x[0];
    for (int64_t i = 0; i < m; i++)
        y[i] = x[from[i]];
    struct lanes *z = run_lanes(plan->convolution, y, x);
    struct lanes *other = z == x ? y : x, sum = add(first, z[0]);
    for (int64_t i = 0; i < m; i++)
        z[i] = swapped(times(z[i], spectrum[2 * i], spectrum[2 * i + 1]));
    z[0] = add(z[0], swapped(first));
    struct lanes *result = run_lanes(plan->convolution, z, other);
    other = result == x ? y : x;
    other[0] = sum;
    for (int64_t i = 0; i < m; i++)
        other[to[i]] = swapped(result[i]);
    return other;
}

// Transforms x[0 .. n); y has room for n. Returns where the result is: x or y.
static struct lanes *transform_lanes(const struct cpu_fft *plan, struct lanes *x,
                                     struct lanes *y)
{
    return plan->kind == CPU_FFT_RADER ? run_prime(plan, x, y) : run_lanes(plan, x, y);
}

// Turns numbers k and n - k of Z into those of X, or back: see cpu_fft_fold.
INLINE void fold_pair(struct lanes *a, struct lanes *b, REAL re, REAL im)
{
    struct lanes even = {a->re + b->re, a->im - b->im};
    struct lanes odd = times((struct lanes){a->re - b->re, a->im + b->im}, re, im);
    *a = subtract(even, odd);
    *b = (struct lanes){even.re + odd.re, -(even.im + odd.im)};
}

// Turns n numbers Z into n + 1 numbers X.
static void fold_lanes(struct lanes *z, const REAL *factors, int64_t n)
{
    vector first = z[0].re, last = z[0].im;
    for (int64_t k = 1; 2 * k <= n; k++)
        fold_pair(&z[k], &z[n - k], factors[2 * k], factors[2 * k + 1]);
    z[0] = (struct lanes){2 * (first + last), (vector){0}};
    z[n] = (struct lanes){2 * (first - last), (vector){0}};
}

// Turns n + 1 numbers X into n numbers Z, with real and imaginary parts exchanged.
static void unfold_lanes(struct lanes *z, const REAL *factors, int64_t n)
{
    vector first = z[0].re, last = z[n].re;
    for (int64_t k = 1; 2 * k <= n; k++)
        fold_pair(&z[k], &z[n - k], factors[2 * k], -factors[2 * k + 1]);
    z[0] = (struct lanes){first + last, first - last};
    for (int64_t k = 0; k < n; k++)
        z[k] = swapped(z[k]);
}

static void rows_in_lanes(const struct cpu_fft_call *call)
{
    int64_t n = call->plan->n, of_real = call->factors != NULL && !call->is_inverse;
    int64_t to_real = call->factors != NULL && call->is_inverse;
    struct lanes *x = call->scratch, *y = x + n;
    for (int64_t r = 0; r < call->rows; r += LANES) {
        int64_t count = call->rows - r < LANES ? call->rows - r : LANES;
        load_rows(x, (const REAL *)call->in + 2 * r * call->in_row, n + to_real,
                  call->in_row, count, call->is_inverse && !to_real);
        if (to_real)
            unfold_lanes(x, call->factors, n);
        struct lanes *z = transform_lanes(call->plan, x, y);
        if (of_real)
            fold_lanes(z, call->factors, n);
        store_rows((REAL *)call->out + 2 * r * call->out_row, z, n + of_real, call->out_row,
                   count, call->is_inverse, (REAL)call->scale);
    }
}

// --- transforms in four steps
// -------------------------------------------------------------

static void *align(void *memory)
{
    uintptr_t at = (uintptr_t)memory + CPU_FFT_ALIGNMENT - 1;
    return (void *)(at & ~(uintptr_t)(CPU_FFT_ALIGNMENT - 1));
}

// LANES columns, or rows, of a block. The last block of several begins within the block
// before it; a single block may be shorter.
struct fft_group {
    int64_t block, inner; // number of the block, and the group's first lane within it
    int64_t begin;        // number of its first column
    int64_t first, end;   // [first, end): lanes that no earlier group has
};

// Finds group `index` of `size` columns. False: there is no such group.
static bool find_group(int64_t index, int64_t size, struct fft_group *out)
{
    int64_t block = index * LANES / BLOCK, inner = index * LANES - block * BLOCK;
    bool is_full = size >= BLOCK, is_last = is_full && (block + 1) * BLOCK > size;
    int64_t begin = (is_last ? size - BLOCK : block * BLOCK) + inner;
    int64_t others = is_full ? block * BLOCK : begin; // earlier groups end here
    if (size >= LANES && begin > size - LANES)
        begin = size - LANES;
    *out = (struct fft_group){block, inner, begin, others > begin ? others - begin : 0,
                              size < LANES ? size : LANES};
    return index == 0 || (size > LANES && (is_full || out->first < LANES));
}

static int64_t count_groups(int64_t size)
{
    return (size + BLOCK - 1) / BLOCK * (BLOCK / LANES);
}

// Factors of row r of a group's columns, where the plan has `bases`.
INLINE struct lanes unpack_factor_of(const struct cpu_fft *plan, const struct fft_group *g,
                                     int64_t r)
{
    const REAL *base = (const REAL *)plan->bases + 2 * (g->block * plan->first->n + r);
    const REAL *re = (const REAL *)plan->steps + 2 * r * BLOCK + g->inner, *im = re + BLOCK;
    const struct lanes by = {*(const loose_vector *)re, *(const loose_vector *)im};
    return times(by, base[0], base[1]);
}

// Whether the column stage's results are tiles: for each group of columns a vector of each
// row. Else, if the row stage is not computed in lanes, they are plain rows.
static bool is_tiled(const struct cpu_fft *plan)
{
    return plan->second->kind != CPU_FFT_FOUR_STEP;
}

// Groups of a call on one row. `shared`: other threads write to the same memory.
struct fft_groups {
    const struct cpu_fft_call *call;
    int64_t begin, end;
    bool shared;
};

// Transforms a group of columns to vectors at `to`, multiplied by their factors.
static void first_group(const struct cpu_fft_call *call, const struct fft_group *g,
                        struct lanes *x, struct lanes *to)
{
    const struct cpu_fft *plan = call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    const struct fft_source from = {call->is_inverse ? SWAPPED_ROWS : ROWS, NULL,
                                    (const REAL *)call->in + 2 * g->begin, columns};
    const struct fft_sink turned = {.form = MULTIPLIED,
                                    .lanes = to,
                                    .factors = (const REAL *)plan->steps + g->begin,
                                    .stride = columns,
                                    .apart = plan->n};
    bool is_full = g->end == LANES && plan->first->kind == CPU_FFT_LANES;
    if (is_full && !plan->bases) {
        run_rows_to(plan->first, &from, &turned, x, x + rows);
        return;
    }
    load_columns(x, from.rows, rows, columns, g->end, call->is_inverse);
    struct lanes *y = transform_lanes(plan->first, x, x + rows);
    if (plan->bases)
        for (int64_t r = 0; r < rows; r++)
            to[r] = product(y[r], unpack_factor_of(plan, g, r));
    else
        for (int64_t r = 0; r < rows; r++)
            put(&turned, r, y[r]);
}

// Transforms the columns of the input, to `between`.
static void column_stage(const struct fft_groups *groups, struct lanes *x, void *between)
{
    const struct cpu_fft *plan = groups->call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    bool tiled = is_tiled(plan);
    struct fft_group g;
    for (int64_t i = groups->begin; i < groups->end; i++) {
        if (!find_group(i, columns, &g) || (!tiled && g.first >= LANES))
            continue;
        struct lanes *to = tiled ? (struct lanes *)between + i * rows : x + 2 * rows;
        first_group(groups->call, &g, x, to);
        const struct fft_columns out = {.out = (REAL *)between + 2 * g.begin,
                                        .stride = columns,
                                        .first = g.first,
                                        .end = g.end,
                                        .scale = 1};
        if (!tiled)
            store_columns(&out, to, rows);
    }
}

// Loads LANES rows of tiles, from row `begin` on, as a vector for each column; in place if
// the tiles have LANES rows. Also reads memory behind the rows.
static void load_tiles(struct lanes *to, const struct lanes *tiles, int64_t begin,
                       int64_t rows, int64_t columns)
{
    struct fft_group g;
    for (int64_t i = 0; i < count_groups(columns); i++) {
        const struct lanes *from = tiles + i * rows + begin;
        vector re[LANES], im[LANES];
        if (!find_group(i, columns, &g))
            continue;
        for (int64_t k = 0; k < LANES; k++)
            re[k] = from[k].re;
        transpose_components(re);
        for (int64_t k = 0; k < LANES; k++)
            im[k] = from[k].im;
        for (int64_t k = 0; k < LANES; k++)
            to[g.begin + k].re = re[k];
        transpose_components(im);
        for (int64_t k = 0; k < LANES; k++)
            to[g.begin + k].im = im[k];
    }
}

// Transforms LANES rows of `between` that are too long for lanes, one by one, and writes
// them as columns.
static void long_rows(const struct cpu_fft_call *call, const struct fft_group *g,
                      const REAL *between, REAL *room)
{
    const struct cpu_fft *plan = call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    const struct cpu_fft_call inner = {.plan = plan->second,
                                       .in = between + 2 * (g->begin + g->first) * columns,
                                       .out = room,
                                       .rows = g->end - g->first,
                                       .in_row = columns,
                                       .out_row = columns,
                                       .scale = call->scale,
                                       .scratch = align(room + 2 * LANES * columns)};
    RUN(&inner);
    REAL *out = (REAL *)call->out + 2 * (g->begin + g->first);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < inner.rows; r++) {
            const REAL *from = room + 2 * (r * columns + c);
            REAL *to = out + 2 * (c * rows + r);
            to[call->is_inverse] = from[0];
            to[!call->is_inverse] = from[1];
        }
}

// Transforms the rows of a group in x and writes lanes from `first` on as columns.
static void second_group(const struct cpu_fft_call *call, const struct fft_group *g,
                         int64_t first, struct lanes *x, struct lanes *y)
{
    const struct cpu_fft *plan = call->plan;
    REAL *out = (REAL *)call->out + 2 * g->begin, scale = (REAL)call->scale;
    int64_t rows = plan->first->n;
    if (first == 0 && g->end == LANES && plan->second->kind == CPU_FFT_LANES) {
        const struct fft_sink to = {.form = call->is_inverse ? SWAPPED_ROWS : ROWS,
                                    .rows = out,
                                    .stride = rows,
                                    .scale = scale};
        run_lanes_to(plan->second, x, y, 0, &to);
        return;
    }
    const struct fft_columns to = {out, rows, first, g->end, call->is_inverse, scale};
    store_columns(&to, transform_lanes(plan->second, x, y), plan->second->n);
}

// Transforms the rows of `between` and writes them as columns.
static void row_stage(const struct fft_groups *groups, struct lanes *x, void *between)
{
    const struct cpu_fft_call *call = groups->call;
    const struct cpu_fft *plan = call->plan;
    int64_t rows = plan->first->n, columns = plan->second->n;
    struct fft_group g;
    for (int64_t i = groups->begin; i < groups->end; i++) {
        if (!find_group(i, rows, &g) || g.first >= LANES)
            continue;
        if (!is_tiled(plan)) {
            long_rows(call, &g, between, (REAL *)x);
            continue;
        }
        struct lanes *y = x + columns + LANES;
        struct lanes *to = rows == LANES && columns % LANES == 0 ? between : x;
        load_tiles(to, between, g.begin, rows, columns);
        second_group(call, &g, groups->shared ? g.first : 0, to, y);
    }
}

void STAGE(const struct cpu_fft_stage *stage)
{
    const int64_t each = BLOCK / LANES;
    const struct fft_groups groups = {stage->call, stage->begin * each, stage->end * each,
                                      true};
    if (stage->is_row_stage)
        row_stage(&groups, stage->scratch, stage->call->scratch);
    else
        column_stage(&groups, stage->scratch, stage->call->scratch);
}

// Prefetches the row behind a short row.
static void prefetch_row(const REAL *row, int64_t n)
{
    if (n * 2 * (int64_t)sizeof(REAL) <= SHORT_ROW)
        for (int64_t i = 0; i < n; i += BLOCK / 2)
            prefetch_behind(row, n + i);
}

static void row_in_four_steps(const struct cpu_fft_call *call, const REAL *in, REAL *out)
{
    const struct cpu_fft *plan = call->plan;
    struct cpu_fft_call row = *call;
    row.in = in;
    row.out = out;
    void *scratch = (char *)call->scratch + plan->between;
    const struct fft_groups first = {&row, 0, count_groups(plan->second->n), false};
    const struct fft_groups second = {&row, 0, count_groups(plan->first->n), false};
    prefetch_row(in, plan->n);
    column_stage(&first, scratch, call->scratch);
    prefetch_row(out, plan->n);
    row_stage(&second, scratch, call->scratch);
}

// --- convolutions ------------------------------------------------------------------------

// out[j] = scale * a[j] * b[j]; swaps_in exchanges the real and imaginary parts of a,
// swaps_out those of out.
static void multiply(REAL *out, const REAL *a, const REAL *b, int64_t n, bool swaps_in,
                     bool swaps_out, REAL scale)
{
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        struct lanes x = product(load(a + 2 * j, swaps_in), load(b + 2 * j, false));
        store(out + 2 * j, scaled(scale, x), swaps_out);
    }
    if (j == n)
        return;
    struct lanes x =
        product(load_some(a + 2 * j, n - j, swaps_in), load_some(b + 2 * j, n - j, false));
    store_some(out + 2 * j, scaled(scale, x), 0, n - j, swaps_out);
}

static void row_by_chirp(const struct cpu_fft_call *call, const REAL *in, REAL *out)
{
    const struct cpu_fft *plan = call->plan;
    int64_t n = plan->n, m = plan->convolution->n;
    REAL *room = call->scratch;
    struct cpu_fft_call inner = {.plan = plan->convolution,
                                 .in = room,
                                 .out = room,
                                 .rows = 1,
                                 .scale = 1,
                                 .scratch = align(room + 2 * m)};
    multiply(room, in, plan->chirp, n, call->is_inverse, false, 1);
    memset(room + 2 * n, 0, (size_t)(2 * (m - n)) * sizeof(REAL));
    RUN(&inner);
    multiply(room, room, plan->spectrum, m, false, false, 1);
    inner.is_inverse = true;
    RUN(&inner);
    multiply(out, room, plan->chirp, n, false, call->is_inverse, (REAL)call->scale);
}

void RUN(const struct cpu_fft_call *call)
{
    if (call->plan->kind == CPU_FFT_LANES || call->plan->kind == CPU_FFT_RADER) {
        rows_in_lanes(call);
        return;
    }
    for (int64_t r = 0; r < call->rows; r++) {
        const REAL *in = (const REAL *)call->in + 2 * r * call->in_row;
        REAL *out = (REAL *)call->out + 2 * r * call->out_row;
        if (call->plan->kind == CPU_FFT_FOUR_STEP)
            row_in_four_steps(call, in, out);
        else
            row_by_chirp(call, in, out);
    }
}

// --- real numbers ------------------------------------------------------------------------

// Loads `count` numbers in reverse order; other lanes are 0.
static struct lanes load_reversed(const REAL *in, int64_t count)
{
    struct lanes a;
    if (count < LANES) {
        REAL numbers[2 * LANES] = {0};
        for (int64_t i = 0; i < count; i++)
            memcpy(numbers + 2 * i, in + 2 * (count - 1 - i), 2 * sizeof(REAL));
        return load(numbers, false);
    }
    a = load(in, false);
    a.re = __builtin_shufflevector(a.re, a.re, REVERSED);
    a.im = __builtin_shufflevector(a.im, a.im, REVERSED);
    return a;
}

static void store_reversed(REAL *out, struct lanes a, int64_t count)
{
    if (count < LANES) {
        REAL numbers[2 * LANES];
        store(numbers, a, false);
        for (int64_t i = 0; i < count; i++)
            memcpy(out + 2 * (count - 1 - i), numbers + 2 * i, 2 * sizeof(REAL));
        return;
    }
    a.re = __builtin_shufflevector(a.re, a.re, REVERSED);
    a.im = __builtin_shufflevector(a.im, a.im, REVERSED);
    store(out, a, false);
}

static void fold_row(const struct cpu_fft_fold *fold, const REAL *in, REAL *out)
{
    int64_t half = fold->half, inverse = fold->is_inverse;
    const REAL *factors = fold->factors;
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
        load_columns(&by, factors + 2 * k, 1, 0, count, false);
        by.im = inverse ? -by.im : by.im;
        struct lanes even = {a.re + b.re, a.im - b.im}, odd = {a.re - b.re, a.im + b.im};
        odd = product(odd, by);
        a = subtract(even, odd);
        b = (struct lanes){even.re + odd.re, -(even.im + odd.im)};
        if (count < LANES)
            store_some(out + 2 * k, a, 0, count, false);
        else
            store(out + 2 * k, a, false);
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
