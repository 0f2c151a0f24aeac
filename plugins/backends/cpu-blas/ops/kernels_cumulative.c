// SPDX-License-Identifier: MIT
// base.{cumsum,cumprod,cummax,cummin}/1. An array is viewed as outer x n x inner elements,
// n along the axis.
//
// Blocks of elements are converted to a type that is computed in, run over, and converted
// to the output's. With inner = 1 a row runs into one accumulator, otherwise neighbouring
// columns run side by side. A few long rows are cut into parts by size alone: the first
// pass finds what each part adds, the second runs over all parts at once. So the result
// does not depend on the number of threads.
#include <math.h>
#include "kernels.h"

#define BLOCK 512            // elements that are converted at a time; columns side by side
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

struct running {
    const struct cpu_kernels *kernels;
    int32_t kind, from, to; // dtypes in memory
    int32_t computed;       // F32, F64, I64 or U64
    bool reverse;
    int64_t outer, n, inner, tiles, parts, part;
    const char *x;
    char *out;
    union element *starts; // [outer][parts], of the accumulators
};

// --- blocks -----------------------------------------------------------------------------

// a, then x: for a NaN, which stays, and for the greater or the lesser one.
#define NEXT_SUM(a, x) ((a) + (x))
#define NEXT_PROD(a, x) ((a) * (x))
#define NEXT_MAX(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define NEXT_MIN(a, x) ((x) < (a) || (x) != (x) ? (x) : (a))

// Runs over n elements of type T: into *acc, of type A, and with `columns` above 0 into one
// accumulator for each element.
#define RUN_LOOP(T, A, NEXT)                                                               \
    if (columns)                                                                           \
        for (int64_t k = 0; k < n; k++)                                                    \
            x[k] = (T)(acc[k] = NEXT(acc[k], (A)x[k]));                                    \
    else                                                                                   \
        for (int64_t k = 0; k < n; k++)                                                    \
        x[k] = (T)(a = NEXT(a, (A)x[k]))
#define RUN(T, A, name)                                                                    \
    static void run_##name(int32_t kind, T *x, int64_t n, A *acc, bool columns)            \
    {                                                                                      \
        A a = *acc;                                                                        \
        if (kind == SUM) {                                                                 \
            RUN_LOOP(T, A, NEXT_SUM);                                                      \
        } else if (kind == PROD) {                                                         \
            RUN_LOOP(T, A, NEXT_PROD);                                                     \
        } else if (kind == MAX) {                                                          \
            RUN_LOOP(T, A, NEXT_MAX);                                                      \
        } else {                                                                           \
            RUN_LOOP(T, A, NEXT_MIN);                                                      \
        }                                                                                  \
        if (!columns)                                                                      \
            *acc = a;                                                                      \
    }
RUN(float, double, f32)
RUN(double, double, f64)
// Sums and products of integers wrap: they are computed without a sign.
RUN(uint64_t, uint64_t, u64)
static void run_extreme_i64(int32_t kind, int64_t *x, int64_t n, int64_t *acc, bool columns)
{
    int64_t a = *acc;
    if (kind == MAX) {
        RUN_LOOP(int64_t, int64_t, NEXT_MAX);
    } else {
        RUN_LOOP(int64_t, int64_t, NEXT_MIN);
    }
    if (!columns)
        *acc = a;
}

static void run_block(const struct running *r, void *x, int64_t n, union element *acc,
                      bool columns)
{
    if (r->computed == TN_F32)
        run_f32(r->kind, x, n, &acc->d, columns);
    else if (r->computed == TN_F64)
        run_f64(r->kind, x, n, &acc->d, columns);
    else if (r->computed == TN_I64 && r->kind >= MAX)
        run_extreme_i64(r->kind, x, n, &acc->i, columns);
    else
        run_u64(r->kind, x, n, &acc->u, columns);
}

// What leaves any element as it is.
static union element neutral(const struct running *r)
{
    union element e = {.u = r->kind == PROD};
    if (r->computed == TN_F32 || r->computed == TN_F64)
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

// Elements at `from`, at distances of `step` (1 or -1), as numbers in `block`.
static void load(const struct running *r, union element *block, const char *from,
                 int64_t step, int64_t n)
{
    union element packed[BLOCK];
    const void *in = from;
    if (step != 1) {
        r->kernels->copy[__builtin_ctz(cpu_dtype_size(r->from))](packed, 1, from, step, n);
        in = packed;
    }
    r->kernels->cast[r->from][r->computed](block, &in, n, 0);
}

static void store(const struct running *r, const union element *block, char *to,
                  int64_t step, int64_t n)
{
    union element packed[BLOCK];
    const void *in = block;
    void *out = step == 1 ? (void *)to : packed;
    r->kernels->cast[r->computed][r->to](out, &in, n, 0);
    if (step != 1)
        r->kernels->copy[__builtin_ctz(cpu_dtype_size(r->to))](to, step, packed, 1, n);
}

// --- rows -------------------------------------------------------------------------------

// Runs over part `part` of a row; without `writes` only into *acc. Elements count from the
// end where the run is reversed.
static void run_part(const struct running *r, int64_t row, int64_t part, union element *acc,
                     bool writes)
{
    union element block[BLOCK];
    int64_t begin = part * r->part, left = r->n - begin;
    int64_t end = begin + (left < r->part ? left : r->part);
    int64_t step = r->reverse ? -1 : 1, first = row * r->n + (r->reverse ? r->n - 1 : 0);
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK, at = first + i * step;
        load(r, block, r->x + at * cpu_dtype_size(r->from), step, n);
        run_block(r, block, n, acc, false);
        if (writes)
            store(r, block, r->out + at * cpu_dtype_size(r->to), step, n);
    }
}

static void find_totals(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct running *r = context;
    for (int64_t unit = begin; unit < end; unit++) {
        r->starts[unit] = neutral(r);
        run_part(r, unit / r->parts, unit % r->parts, &r->starts[unit], false);
    }
}

// Totals of parts become what each part begins with.
static void add_totals(const struct running *r)
{
    struct running wide = *r;
    if (wide.computed == TN_F32)
        wide.computed = TN_F64; // the accumulators
    for (int64_t row = 0; row < r->outer; row++) {
        union element acc = neutral(r), *start = r->starts + row * r->parts;
        for (int64_t k = 0; k < r->parts; k++) {
            union element total = start[k], before = acc;
            run_block(&wide, &total, 1, &acc, false);
            start[k] = before;
        }
    }
}

static void run_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct running *r = context;
    for (int64_t unit = begin; unit < end; unit++) {
        union element acc = r->parts > 1 ? r->starts[unit] : neutral(r);
        run_part(r, unit / r->parts, unit % r->parts, &acc, true);
    }
}

// --- columns ----------------------------------------------------------------------------

// The loop runs over units: up to BLOCK neighbouring columns.
static void run_columns(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct running *r = context;
    union element block[BLOCK], acc[BLOCK];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t outer = unit / r->tiles, column = unit % r->tiles * BLOCK;
        int64_t n = r->inner - column < BLOCK ? r->inner - column : BLOCK;
        for (int64_t k = 0; k < n; k++)
            acc[k] = neutral(r);
        for (int64_t i = 0; i < r->n; i++) {
            int64_t row = outer * r->n + (r->reverse ? r->n - 1 - i : i);
            int64_t at = row * r->inner + column;
            load(r, block, r->x + at * cpu_dtype_size(r->from), 1, n);
            run_block(r, block, n, acc, true);
            store(r, block, r->out + at * cpu_dtype_size(r->to), 1, n);
        }
    }
}

// --- the kernels ------------------------------------------------------------------------

static struct running describe(const tn_layout *x, const tn_cumulative_attrs *attrs)
{
    struct running r = {.outer = 1, .inner = 1, .n = 1, .parts = 1};
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
    struct running r = describe(&query->inputs[0], query->attrs);
    return r.parts > 1 ? (uint64_t)(r.outer * r.parts) * sizeof(union element) : 0;
}

static tn_status run(const tn_cpu_call *call, int32_t kind)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct running r = describe(&x->layout, call->attrs);
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
    if (r.inner > 1) {
        int64_t columns = r.inner < BLOCK ? r.inner : BLOCK;
        call->parallel_for(call, r.outer * r.tiles, 1 + PIECE_ELEMENTS / (columns * r.n),
                           run_columns, &r);
        return TN_OK;
    }
    int64_t grain = 1 + PIECE_ELEMENTS / r.part;
    if (r.parts > 1) {
        call->parallel_for(call, r.outer * r.parts, grain, find_totals, &r);
        add_totals(&r);
    }
    call->parallel_for(call, r.outer * r.parts, grain, run_rows, &r);
    return TN_OK;
}

static const tn_operand_rule rules[] = {{0, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, kind)                                                                   \
    static tn_status id(const tn_cpu_call *call)                                           \
    {                                                                                      \
        return run(call, kind);                                                            \
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
RECORD(cumsum, SUM);
RECORD(cumprod, PROD);
RECORD(cummax, MAX);
RECORD(cummin, MIN);
#undef RECORD
