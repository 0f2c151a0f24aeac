// SPDX-License-Identifier: MIT
// base.{cumsum,cumprod,cummax,cummin}/1. An array is viewed as outer x n x inner elements,
// n along the axis.
//
// Blocks of elements are converted to a type that is computed in, run over, and converted
// to the output's. With inner = 1 a row runs into one accumulator, four rows at a time, so
// that one sum does not wait for another; otherwise adjacent columns run side by side.
// A few long rows are cut into parts by size alone: the first pass finds what each part
// adds, the second runs over all parts at once. So the result does not depend on the number
// of threads. Sums of complex numbers along columns are those of their parts.
#include <math.h>
#include "kernels.h"

#define BLOCK 512            // elements that are converted at a time; columns side by side
#define SIDE 4               // rows that run side by side
#define ROW_BLOCK 256        // elements of each
#define PART 32768           // elements of a part of a long row
#define FEW_ROWS 8           // so few rows are cut into parts
#define PIECE_ELEMENTS 16384 // least elements of a piece

enum { SUM, PROD, MAX, MIN };

union element {
    float f;
    double d;
    int64_t i;
    uint64_t u;
};

// A complex number: its parts.
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

// The accumulator of a row.
union total {
    double d;
    int64_t i;
    uint64_t u;
    pair z;
};

struct cpu_cumulative_running {
    const struct cpu_kernels *kernels;
    int32_t kind, from, to; // dtypes in memory
    int32_t computed;       // F32 (columns), F64, I64, U64 or COMPLEX128
    bool reverse;
    int64_t outer, n, inner, tiles, parts, part;
    const char *x;
    char *out;
    union total *starts; // [outer][parts]
};

// --- blocks -----------------------------------------------------------------------------

// The accumulator `a` after element `x`: a NaN in it stays.
#define NEXT_SUM(a, x) ((a) + (x))
#define NEXT_PROD(a, x) ((a) * (x))
#define NEXT_MAX(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define NEXT_MIN(a, x) ((x) < (a) || (x) != (x) ? (x) : (a))

// Runs over n elements of columns side by side: each has an accumulator.
#define COLUMNS_LOOP(T, A, NEXT)                                                           \
    for (int64_t k = 0; k < n; k++)                                                        \
    x[k] = (T)(acc[k] = NEXT(acc[k], (A)x[k]))
#define COLUMNS(T, A, name)                                                                \
    static void columns_##name(int32_t kind, T *x, int64_t n, A *acc)                      \
    {                                                                                      \
        if (kind == SUM) {                                                                 \
            COLUMNS_LOOP(T, A, NEXT_SUM);                                                  \
        } else if (kind == PROD) {                                                         \
            COLUMNS_LOOP(T, A, NEXT_PROD);                                                 \
        } else if (kind == MAX) {                                                          \
            COLUMNS_LOOP(T, A, NEXT_MAX);                                                  \
        } else {                                                                           \
            COLUMNS_LOOP(T, A, NEXT_MIN);                                                  \
        }                                                                                  \
    }
COLUMNS(float, double, f32)
COLUMNS(double, double, f64)
// Sums and products of integers wrap: they are computed without a sign.
COLUMNS(uint64_t, uint64_t, u64)
static void columns_extreme_i64(int32_t kind, int64_t *x, int64_t n, int64_t *acc)
{
    if (kind == MAX) {
        COLUMNS_LOOP(int64_t, int64_t, NEXT_MAX);
    } else {
        COLUMNS_LOOP(int64_t, int64_t, NEXT_MIN);
    }
}

// The product of tn_complex_multiply(). Terms of x alone wait for no product before.
static inline pair multiply_pairs(pair a, pair x)
{
    const pair real = __builtin_shufflevector(x, x, 0, 0), imaginary = {-x[1], x[1]};
    return a * real + __builtin_shufflevector(a, a, 1, 0) * imaginary;
}

// Products, the first of which is the number itself: 1 + 0i times infinity has a NaN.
static void columns_complex(pair *x, int64_t n, pair *acc, bool is_first)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = acc[k] = is_first ? x[k] : multiply_pairs(acc[k], x[k]);
}

static void run_columns_block(const struct cpu_cumulative_running *r, void *x, int64_t n,
                              union element *acc, bool is_first)
{
    if (r->computed == TN_COMPLEX128)
        columns_complex(x, n, (pair *)acc, is_first);
    else if (r->computed == TN_F32)
        columns_f32(r->kind, x, n, &acc->d);
    else if (r->computed == TN_F64)
        columns_f64(r->kind, x, n, &acc->d);
    else if (r->computed == TN_I64 && r->kind >= MAX)
        columns_extreme_i64(r->kind, x, n, &acc->i);
    else
        columns_u64(r->kind, x, n, &acc->u);
}

// Runs over n elements of each of `count` rows, SIDE or 1, from `in` to `out`, which may be
// one. In MEMBER of `acc` each row has its accumulator.
#define ROWS_LOOP(T, MEMBER, NEXT)                                                         \
    do {                                                                                   \
        const T *p = in[0], *q = in[1], *r = in[2], *s = in[3];                            \
        T *to0 = out[0], *to1 = out[1], *to2 = out[2], *to3 = out[3];                      \
        T a = acc[0].MEMBER, b = acc[1].MEMBER, c = acc[2].MEMBER, d = acc[3].MEMBER;      \
        for (int64_t k = 0; k < n && count == 1; k++)                                      \
            to0[k] = a = NEXT(a, p[k]);                                                    \
        for (int64_t k = 0; k < n && count > 1; k++) {                                     \
            to0[k] = a = NEXT(a, p[k]);                                                    \
            to1[k] = b = NEXT(b, q[k]);                                                    \
            to2[k] = c = NEXT(c, r[k]);                                                    \
            to3[k] = d = NEXT(d, s[k]);                                                    \
        }                                                                                  \
        acc[0].MEMBER = a, acc[1].MEMBER = b, acc[2].MEMBER = c, acc[3].MEMBER = d;        \
    } while (0)
#define ROWS(T, MEMBER, name)                                                              \
    static void rows_##name(int32_t kind, const void *const *in, void *const *out,         \
                            int64_t count, int64_t n, union total *acc)                    \
    {                                                                                      \
        if (kind == SUM)                                                                   \
            ROWS_LOOP(T, MEMBER, NEXT_SUM);                                                \
        else if (kind == PROD)                                                             \
            ROWS_LOOP(T, MEMBER, NEXT_PROD);                                               \
        else if (kind == MAX)                                                              \
            ROWS_LOOP(T, MEMBER, NEXT_MAX);                                                \
        else                                                                               \
            ROWS_LOOP(T, MEMBER, NEXT_MIN);                                                \
    }
ROWS(double, d, f64)
ROWS(uint64_t, u, u64)
static void rows_extreme_i64(int32_t kind, const void *const *in, void *const *out,
                             int64_t count, int64_t n, union total *acc)
{
    if (kind == MAX)
        ROWS_LOOP(int64_t, i, NEXT_MAX);
    else
        ROWS_LOOP(int64_t, i, NEXT_MIN);
}

// Rows whose bit is set in `fresh` begin with their first number itself.
static void rows_complex(int32_t kind, const void *const *in, void *const *out,
                         int64_t count, int64_t n, union total *acc, uint32_t fresh)
{
    const void *rest[SIDE] = {NULL};
    void *to[SIDE] = {NULL};
    if (kind == SUM) {
        ROWS_LOOP(pair, z, NEXT_SUM);
        return;
    }
    for (int64_t k = 0; k < count && n > 0; k++) {
        const pair *x = in[k];
        acc[k].z = fresh >> k & 1 ? x[0] : multiply_pairs(acc[k].z, x[0]);
        *(pair *)out[k] = acc[k].z;
        rest[k] = x + 1;
        to[k] = (pair *)out[k] + 1;
    }
    in = rest;
    out = to;
    n--;
    ROWS_LOOP(pair, z, multiply_pairs);
}

static void run_rows_block(const struct cpu_cumulative_running *r, const void *const *in,
                           void *const *out, int64_t count, int64_t n, union total *acc,
                           uint32_t fresh)
{
    if (r->computed == TN_COMPLEX128)
        rows_complex(r->kind, in, out, count, n, acc, fresh);
    else if (r->computed == TN_F64)
        rows_f64(r->kind, in, out, count, n, acc);
    else if (r->computed == TN_I64 && r->kind >= MAX)
        rows_extreme_i64(r->kind, in, out, count, n, acc);
    else
        rows_u64(r->kind, in, out, count, n, acc);
}

// The neutral element of the operation; of complex numbers, for sums.
static union element cpu_cumulative_neutral(const struct cpu_cumulative_running *r)
{
    union element e = {.u = r->kind == PROD};
    if (r->computed == TN_COMPLEX128)
        e.d = 0;
    else if (r->computed == TN_F32 || r->computed == TN_F64)
        e.d = r->kind == SUM    ? 0
              : r->kind == PROD ? 1
              : r->kind == MAX  ? -INFINITY
                                : INFINITY;
    else if (r->kind == MAX && r->computed == TN_I64)
        e.i = INT64_MIN;
    else if (r->kind == MIN)
        e.u = r->computed == TN_I64 ? INT64_MAX : UINT64_MAX;
    return e;
}

// Casts n elements, at most BLOCK; halves and f64 by way of f32.
static void cpu_cumulative_convert(const struct cpu_cumulative_running *r, int32_t from,
                                   int32_t to, void *out, const void *in, int64_t n)
{
    float single[BLOCK];
    const void *source = in;
    if (!r->kernels->cast[from][to]) {
        r->kernels->cast[from][TN_F32](single, &source, n, 0);
        source = single;
        from = TN_F32;
    }
    r->kernels->cast[from][to](out, &source, n, 0);
}

// --- rows -------------------------------------------------------------------------------

// Parts of rows that run side by side: SIDE or 1, each of `n` elements. Elements count from
// the end where the run is reversed.
struct running_side {
    int64_t first[SIDE], count, n;
    union total acc[SIDE];
    uint32_t fresh; // bit k: acc[k] holds no number yet
};

static union total neutral_total(const struct cpu_cumulative_running *r)
{
    union total t = {.z = {0, 0}};
    t.u = cpu_cumulative_neutral(r).u;
    return t;
}

// Elements [i, i + n) of x as numbers: where they lie, or converted in `block`.
static const void *cpu_cumulative_load(const struct cpu_cumulative_running *r,
                                       union total *block, int64_t i, int64_t n)
{
    const char *from = r->x + i * cpu_dtype_size(r->from);
    union total packed[ROW_BLOCK];
    const void *in = from;
    if (r->reverse) {
        r->kernels->copy[__builtin_ctz(cpu_dtype_size(r->from))](packed, 1, from, -1, n);
        in = packed;
    } else if (r->from == r->computed) {
        return from;
    }
    cpu_cumulative_convert(r, r->from, r->computed, block, in, n);
    return block;
}

static void cpu_cumulative_store(const struct cpu_cumulative_running *r,
                                 const union total *block, int64_t i, int64_t n)
{
    char *to = r->out + i * cpu_dtype_size(r->to);
    union total packed[ROW_BLOCK];
    cpu_cumulative_convert(r, r->computed, r->to, r->reverse ? (void *)packed : to, block,
                           n);
    if (r->reverse)
        r->kernels->copy[__builtin_ctz(cpu_dtype_size(r->to))](to, -1, packed, 1, n);
}

// Prefetches elements [i, i + n), which the processor does not foresee for adjacent rows.
static void cpu_cumulative_fetch(const struct cpu_cumulative_running *r, int64_t i,
                                 int64_t n)
{
    const char *x = r->x + i * cpu_dtype_size(r->from);
    const char *out = r->out + i * cpu_dtype_size(r->to);
    for (int64_t at = 0; at < n * cpu_dtype_size(r->from); at += 64)
        __builtin_prefetch(x + at);
    for (int64_t at = 0; at < n * cpu_dtype_size(r->to); at += 64)
        __builtin_prefetch(out + at);
}

// Runs over parts side by side; without `writes` only into side->acc.
static void run_side(const struct cpu_cumulative_running *r, struct running_side *side,
                     bool writes)
{
    union total block[SIDE][ROW_BLOCK];
    bool is_direct = writes && r->to == r->computed && !r->reverse;
    for (int64_t i = 0; i < side->n; i += ROW_BLOCK) {
        int64_t n = side->n - i < ROW_BLOCK ? side->n - i : ROW_BLOCK;
        const void *in[SIDE] = {NULL};
        void *out[SIDE] = {NULL};
        for (int64_t k = 0; k < side->count; k++) {
            int64_t at = side->first[k] + (r->reverse ? -i : i);
            if (!r->reverse && i + 2 * n <= side->n)
                cpu_cumulative_fetch(r, at + n, n);
            in[k] = cpu_cumulative_load(r, block[k], at, n);
            out[k] = is_direct ? r->out + at * cpu_dtype_size(r->to) : (void *)block[k];
        }
        run_rows_block(r, in, out, side->count, n, side->acc, i ? 0 : side->fresh);
        for (int64_t k = 0; k < side->count && writes && !is_direct; k++)
            cpu_cumulative_store(r, block[k], side->first[k] + (r->reverse ? -i : i), n);
    }
}

static int64_t part_length(const struct cpu_cumulative_running *r, int64_t unit)
{
    int64_t left = r->n - unit % r->parts * r->part;
    return left < r->part ? left : r->part;
}

// How many units from `unit` on, before `end`, run side by side: those of one length.
static int64_t count_side(const struct cpu_cumulative_running *r, int64_t unit, int64_t end)
{
    for (int64_t k = 1; k < SIDE; k++)
        if (unit + k >= end || part_length(r, unit + k) != part_length(r, unit))
            return 1;
    return SIDE;
}

// Runs over units [begin, end), parts of rows.
static void cpu_cumulative_run_units(const struct cpu_cumulative_running *r, int64_t begin,
                                     int64_t end, bool writes)
{
    for (int64_t first = begin; first < end;) {
        struct running_side side = {.count = count_side(r, first, end),
                                    .n = part_length(r, first)};
        for (int64_t k = 0; k < side.count; k++) {
            int64_t unit = first + k, i = unit % r->parts * r->part;
            side.first[k] = unit / r->parts * r->n + (r->reverse ? r->n - 1 - i : i);
            bool is_begun = writes && unit % r->parts;
            side.acc[k] = is_begun ? r->starts[unit] : neutral_total(r);
            side.fresh |= (uint32_t)!is_begun << k;
        }
        run_side(r, &side, writes);
        for (int64_t k = 0; k < side.count && !writes; k++)
            r->starts[first + k] = side.acc[k];
        first += side.count;
    }
}

static void find_totals(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    cpu_cumulative_run_units(context, begin, end, false);
}

// Turns the totals of parts into the values that parts begin with.
static void add_totals(const struct cpu_cumulative_running *r)
{
    for (int64_t row = 0; row < r->outer; row++) {
        union total acc[SIDE] = {neutral_total(r)}, *start = r->starts + row * r->parts;
        for (int64_t k = 0; k < r->parts; k++) {
            union total total = start[k];
            start[k] = acc[0];
            run_rows_block(r, (const void *const[SIDE]){&total}, (void *[SIDE]){&total}, 1,
                           1, acc, k == 0);
        }
    }
}

static void cpu_cumulative_run_rows(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    (void)worker;
    cpu_cumulative_run_units(context, begin, end, true);
}

// --- columns ----------------------------------------------------------------------------

// The loop runs over units: up to BLOCK adjacent columns.
static void cpu_cumulative_run_columns(void *context, int64_t begin, int64_t end,
                                       uint32_t worker)
{
    (void)worker;
    const struct cpu_cumulative_running *r = context;
    union {
        union element real[BLOCK];
        pair complex[BLOCK];
    } block, acc;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t outer = unit / r->tiles, column = unit % r->tiles * BLOCK;
        int64_t n = r->inner - column < BLOCK ? r->inner - column : BLOCK;
        for (int64_t k = 0; k < n; k++)
            acc.real[k] = cpu_cumulative_neutral(r);
        for (int64_t i = 0; i < r->n; i++) {
            int64_t row = outer * r->n + (r->reverse ? r->n - 1 - i : i);
            int64_t at = row * r->inner + column;
            cpu_cumulative_convert(r, r->from, r->computed, &block,
                                   r->x + at * cpu_dtype_size(r->from), n);
            run_columns_block(r, &block, n, acc.real, i == 0);
            cpu_cumulative_convert(r, r->computed, r->to,
                                   r->out + at * cpu_dtype_size(r->to), &block, n);
        }
    }
}

// --- the kernels ------------------------------------------------------------------------

static struct cpu_cumulative_running
cpu_cumulative_describe(const tn_layout *x, const tn_cumulative_attrs *attrs)
{
    struct cpu_cumulative_running r = {.outer = 1, .inner = 1, .n = 1, .parts = 1};
    int32_t axis = attrs->axis == TN_NO_AXIS ? -1 : tn_axis(attrs->axis, x->rank);
    for (int32_t i = 0; i < x->rank; i++)
        *(axis < 0 || i == axis ? &r.n : i < axis ? &r.outer : &r.inner) *= x->extent[i];
    r.part = r.n;
    r.tiles = (r.inner + BLOCK - 1) / BLOCK;
    if (r.inner == 1 && r.outer < FEW_ROWS && r.n > 2 * PART) {
        r.part = PART;
        r.parts = (r.n + PART - 1) / PART;
    }
    r.reverse = attrs->reverse != 0;
    return r;
}

static uint64_t running_scratch(const tn_kernel_query *query)
{
    struct cpu_cumulative_running r =
        cpu_cumulative_describe(&query->inputs[0], query->attrs);
    return r.parts > 1 ? (uint64_t)(r.outer * r.parts) * sizeof(union total) : 0;
}

static tn_status cpu_cumulative_run(const tn_cpu_call *call, int32_t kind)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct cpu_cumulative_running r = cpu_cumulative_describe(&x->layout, call->attrs);
    r.kernels = kernel_variant(call);
    r.kind = kind;
    r.from = x->layout.dtype;
    r.to = out->layout.dtype;
    r.computed = tn_is_float(r.from)                       ? tn_dtype_computed(r.from)
                 : tn_dtype_in(r.from, TN_UNSIGNED_DTYPES) ? TN_U64
                                                           : TN_I64;
    r.x = first_element(x);
    r.out = first_element(out);
    r.starts = call->scratch;
    if (r.outer * r.n * r.inner == 0)
        return TN_OK;
    if (tn_is_complex(r.from) && r.inner > 1 && kind == SUM) {
        r.from = r.to = r.computed = tn_dtype_real(r.from);
        r.inner *= 2; // at most the number of bytes
        r.tiles = (r.inner + BLOCK - 1) / BLOCK;
    } else if (tn_is_complex(r.from)) {
        r.computed = TN_COMPLEX128;
    }
    if (r.inner > 1) {
        int64_t columns = r.inner < BLOCK ? r.inner : BLOCK;
        call->parallel_for(call, r.outer * r.tiles, 1 + PIECE_ELEMENTS / (columns * r.n),
                           cpu_cumulative_run_columns, &r);
        return TN_OK;
    }
    r.computed = r.computed == TN_F32 ? TN_F64 : r.computed; // as accumulators are
    int64_t grain = 1 + PIECE_ELEMENTS / r.part;
    if (r.outer * r.parts >= SIDE * 2)
        grain = (grain + SIDE - 1) / SIDE * SIDE;
    if (r.parts > 1) {
        call->parallel_for(call, r.outer * r.parts, grain, find_totals, &r);
        add_totals(&r);
    }
    call->parallel_for(call, r.outer * r.parts, grain, cpu_cumulative_run_rows, &r);
    return TN_OK;
}

static const tn_operand_rule numbers[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule ordered[] = {{0, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, kind, rules)                                                            \
    static tn_status id(const tn_cpu_call *call)                                           \
    {                                                                                      \
        return cpu_cumulative_run(call, kind);                                             \
    }                                                                                      \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "base." #id "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "blocks",                                                                  \
        .priority = 500,                                                                   \
        TN_OPERANDS(rules),                                                                \
        .scratch_size = running_scratch,                                                   \
        .payload = &id##_payload,                                                          \
    }
RECORD(cumsum, SUM, numbers);
RECORD(cumprod, PROD, numbers);
RECORD(cummax, MAX, ordered);
RECORD(cummin, MIN, ordered);
#undef RECORD
