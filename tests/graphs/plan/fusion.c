// SPDX-License-Identifier: MIT
// Fusion: a graph computed at once gives what it gives when each node is computed alone, on
// the backend that TENON_BACKEND names.
#include <float.h>
#include <string.h>
#include <time.h>
#include "../support/common.h"

#define POOL 40

static uint64_t seed;

static uint32_t pick(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % n;
}

enum { MOST_SIDE = 40 };
static int64_t side = 6; // of the arrays

// What a random node computes from which arrays of the pool.
typedef struct drawn {
    const char *op;
    uint32_t x, y;
    int64_t axis;
    double factor;
    int64_t start[2]; // of the indices that a gather reads
} drawn;

// The k-th index of a gather along n elements: from 2 before the first to 2 behind the last
// as counted from either end.
static int64_t nth_index(const drawn *d, int which, int64_t k, int64_t n)
{
    return (k * 7 + d->start[which]) % (2 * n + 5) - n - 2;
}

// The element that it means.
static int64_t meant(const drawn *d, int which, int64_t k, int64_t n)
{
    int64_t i = nth_index(d, which, k, n);
    i += i < 0 ? n : 0;
    return i < 0 ? 0 : i < n ? i : n - 1;
}

// Indices along n elements: an array, or the sum of two.
static tn_array *indices(tn_scope *s, const tn_shape *shape, const drawn *d, int which,
                         int64_t n)
{
    int32_t values[MOST_SIDE * MOST_SIDE], one = 1;
    int64_t count =
        shape->rank == 1 ? shape->extent[0] : shape->extent[0] * shape->extent[1];
    bool is_sum = d->start[which] % 2;
    for (int64_t k = 0; k < count; k++)
        values[k] = (int32_t)nth_index(d, which, k, n) - is_sum;
    tn_array *i = tn_from_data(s, TN_I32, shape, values);
    return is_sum ? bin(s, "add", i, tn_from_data(s, TN_I32, TN_SHAPE(1), &one)) : i;
}

// Rows or columns, an element of each row or column, or elements by two indices each.
static tn_array *random_gather(tn_scope *s, tn_array *x, drawn *d)
{
    static const char *const gathers[] = {"take", "take_along_axis", "gather"};
    int64_t rows = tn_array_type(x)->extent[0], columns = tn_array_type(x)->extent[1];
    d->op = gathers[pick(3)];
    d->axis = (int64_t)pick(2);
    d->start[0] = (int64_t)pick(200);
    d->start[1] = (int64_t)pick(200);
    int64_t n = d->axis == 0 ? rows : columns;
    if (strcmp(d->op, "take") == 0)
        return tn_op(s, d->op, TN_IN(x, indices(s, TN_SHAPE(side), d, 0, n)),
                     tn_attrs("axis", d->axis));
    if (strcmp(d->op, "gather") == 0)
        return tn_op(s, d->op,
                     TN_IN(x, indices(s, TN_SHAPE(side, 1), d, 0, rows),
                           indices(s, TN_SHAPE(side), d, 1, columns)),
                     TN_NO_ATTRS);
    tn_array *i = d->axis == 0 ? indices(s, TN_SHAPE(side, columns), d, 0, n)
                               : indices(s, TN_SHAPE(rows, side), d, 0, n);
    return tn_op(s, d->op, TN_IN(x, i), tn_attrs("axis", d->axis));
}

// A random node over earlier arrays: all of 6x6 or broadcastable to it.
static tn_array *random_node(tn_scope *s, tn_array **pool, int count, drawn *d)
{
    static const char *const unary[] = {"negative", "abs",   "square",
                                        "tanh",     "floor", "sin"};
    static const char *const binary[] = {"add", "subtract", "multiply", "maximum",
                                         "minimum"};
    static const char *const reductions[] = {"sum", "max", "min"};
    // Of the newest often, so that chains grow.
    d->x = pick(3) == 0 ? (uint32_t)count - 1 : pick((uint32_t)count);
    d->y = pick((uint32_t)count);
    tn_array *x = pool[d->x], *y = pool[d->y];
    switch (pick(13)) {
    case 0:
    case 1:
    case 2:
        return un(s, d->op = unary[pick(6)], x);
    case 3:
        return un(s, d->op = "transpose", x);
    case 4:
        if (tn_array_type(x)->extent[1] != tn_array_type(y)->extent[0])
            return un(s, d->op = "cos", x);
        return bin(s, d->op = "matmul", x, un(s, "tanh", y));
    case 5:
        d->axis = (int64_t)pick(2);
        d->op = reductions[pick(3)];
        return tn_op(s, d->op, TN_IN(x), tn_attrs("axis", TN_INTS(d->axis), "keepdims", 1));
    case 6:
        d->op = "scale";
        d->factor = 0.25 * (double)pick(8);
        return bin(s, "multiply", x, tn_float(s, d->factor));
    case 7:
        d->op = "maximum";
        return tn_op(s, "where", TN_IN(bin(s, "less", x, y), y, x), TN_NO_ATTRS);
    case 8:
    case 9:
    case 10:
        return random_gather(s, x, d);
    default:
        return bin(s, d->op = binary[pick(5)], x, y);
    }
}

// The values of an array computed alone, and how far from each a fused program may be that
// adds the terms of sums in another order. A sum is off by the bound on its rounding
// errors; what reads it passes that on by its slope, and a floor by its jumps: sin(21.8
// + 1.6e-5) is off by much more than a last digit of its own value.
typedef struct shadow {
    int64_t rows, columns;
    float value[MOST_SIDE * MOST_SIDE];
    double error[MOST_SIDE * MOST_SIDE];
} shadow;

static shadow shadows[POOL];

typedef struct span {
    double low, high;
} span;

// What an element may be; rows and columns of one are broadcast.
static span span_at(const shadow *x, int64_t row, int64_t column)
{
    int64_t k = (x->rows == 1 ? 0 : row) * x->columns + (x->columns == 1 ? 0 : column);
    return (span){(double)x->value[k] - x->error[k], (double)x->value[k] + x->error[k]};
}

static span span_product(span x, span y)
{
    double a = x.low * y.low, b = x.low * y.high, c = x.high * y.low, d = x.high * y.high;
    return (span){fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d))};
}

static double span_most(span x)
{
    return fmax(fabs(x.low), fabs(x.high));
}

static span span_unary(const char *op, double factor, span x)
{
    double least = x.low <= 0 && x.high >= 0 ? 0 : fmin(fabs(x.low), fabs(x.high));
    if (strcmp(op, "negative") == 0)
        return (span){-x.high, -x.low};
    if (strcmp(op, "abs") == 0)
        return (span){least, span_most(x)};
    if (strcmp(op, "square") == 0)
        return (span){least * least, span_most(x) * span_most(x)};
    if (strcmp(op, "tanh") == 0)
        return (span){tanh(x.low), tanh(x.high)};
    if (strcmp(op, "floor") == 0)
        return (span){floor(x.low), floor(x.high)};
    if (strcmp(op, "scale") == 0)
        return (span){x.low * factor, x.high * factor};
    // The slope of sin and cos is one at most.
    double middle = (x.low + x.high) / 2, reach = fmin((x.high - x.low) / 2, 2);
    cr_assert(strcmp(op, "sin") == 0 || strcmp(op, "cos") == 0);
    middle = *op == 's' ? sin(middle) : cos(middle);
    return (span){middle - reach, middle + reach};
}

static span span_binary(const char *op, span x, span y)
{
    if (strcmp(op, "add") == 0)
        return (span){x.low + y.low, x.high + y.high};
    if (strcmp(op, "subtract") == 0)
        return (span){x.low - y.high, x.high - y.low};
    if (strcmp(op, "multiply") == 0)
        return span_product(x, y);
    if (strcmp(op, "maximum") == 0)
        return (span){fmax(x.low, y.low), fmax(x.high, y.high)};
    cr_assert(strcmp(op, "minimum") == 0);
    return (span){fmin(x.low, y.low), fmin(x.high, y.high)};
}

// Two orders of n terms: each is off by n/2 last digits of the sum of their sizes at most.
static span span_sum(const span *terms, int64_t n)
{
    span sum = {0, 0};
    double sizes = 0;
    for (int64_t i = 0; i < n; i++) {
        sum.low += terms[i].low;
        sum.high += terms[i].high;
        sizes += span_most(terms[i]);
    }
    double off = n > 1 ? (double)n * (double)FLT_EPSILON * sizes : 0;
    return (span){sum.low - off, sum.high + off};
}

static span span_reduction(const char *op, const span *terms, int64_t n)
{
    if (strcmp(op, "sum") == 0 || strcmp(op, "matmul") == 0)
        return span_sum(terms, n);
    span most = terms[0];
    for (int64_t i = 1; i < n; i++)
        most = span_binary(strcmp(op, "max") == 0 ? "maximum" : "minimum", most, terms[i]);
    return most;
}

// What a gather finds for an element.
static span span_gathered(const drawn *d, int64_t row, int64_t column)
{
    const shadow *x = &shadows[d->x];
    if (strcmp(d->op, "gather") == 0)
        return span_at(x, meant(d, 0, row, x->rows), meant(d, 1, column, x->columns));
    bool is_take = strcmp(d->op, "take") == 0;
    if (d->axis == 0)
        return span_at(x, meant(d, 0, is_take ? row : row * x->columns + column, x->rows),
                       column);
    return span_at(x, row, meant(d, 0, is_take ? column : row * side + column, x->columns));
}

static span span_of(const drawn *d, int64_t row, int64_t column)
{
    const shadow *x = &shadows[d->x], *y = &shadows[d->y];
    span terms[MOST_SIDE];
    if (strcmp(d->op, "transpose") == 0)
        return span_at(x, column, row);
    if (strcmp(d->op, "take") == 0 || strcmp(d->op, "take_along_axis") == 0 ||
        strcmp(d->op, "gather") == 0)
        return span_gathered(d, row, column);
    if (strcmp(d->op, "matmul") == 0) {
        for (int64_t k = 0; k < x->columns; k++)
            terms[k] = span_product(span_at(x, row, k),
                                    span_unary("tanh", 0, span_at(y, k, column)));
        return span_reduction(d->op, terms, x->columns);
    }
    if (strcmp(d->op, "sum") == 0 || strcmp(d->op, "max") == 0 ||
        strcmp(d->op, "min") == 0) {
        int64_t n = d->axis == 0 ? x->rows : x->columns;
        for (int64_t k = 0; k < n; k++)
            terms[k] = d->axis == 0 ? span_at(x, k, column) : span_at(x, row, k);
        return span_reduction(d->op, terms, n);
    }
    static const char *const binary[] = {"add", "subtract", "multiply", "maximum",
                                         "minimum"};
    for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++)
        if (strcmp(d->op, binary[i]) == 0)
            return span_binary(d->op, span_at(x, row, column), span_at(y, row, column));
    return span_unary(d->op, d->factor, span_at(x, row, column));
}

// The shadow of array `i`, which `d` computed, or which was given.
static void cast_shadow(tn_scope *s, tn_array *x, int i, const drawn *d)
{
    const tn_type *type = tn_array_type(x);
    shadow *to = &shadows[i];
    to->rows = type->extent[0];
    to->columns = type->extent[1];
    must(s, tn_read(s, x, to->value, (uint64_t)(to->rows * to->columns) * 4));
    memset(to->error, 0, sizeof(to->error));
    for (int64_t k = 0; d && k < to->rows * to->columns; k++) {
        span may = span_of(d, k / to->columns, k % to->columns);
        double value = (double)to->value[k];
        double error = fmax(may.high - value, value - may.low);
        // A node of equal operands rounds equally in both.
        if (!(may.low < may.high))
            continue;
        error += (double)FLT_EPSILON * (1 + fabs(value));
        to->error[k] = error >= 0 ? error : (double)INFINITY;
    }
}

static int build(tn_scope *s, tn_array **pool, uint64_t from, bool alone)
{
    float step = 6 / (float)side;
    int count = 0;
    seed = from;
    pool[count++] = ramp(s, side, side, -1, 0.07f * step * step);
    pool[count++] = ramp(s, side, 1, 0.5f, -0.3f * step);
    pool[count++] = ramp(s, 1, side, 2, -0.6f * step);
    for (int i = 0; alone && i < count; i++)
        cast_shadow(s, pool[i], i, NULL);
    while (count < POOL) {
        drawn d = {0};
        tn_array *x = random_node(s, pool, count, &d);
        const tn_type *type = tn_array_type(x);
        must(s, tn_scope_status(s));
        if (type->rank != 2)
            continue;
        if (type->extent[0] != side && type->extent[0] != 1)
            continue;
        if (alone) {
            must(s, tn_eval(s, x));
            cast_shadow(s, x, count, &d);
        }
        pool[count++] = x;
    }
    must(s, tn_scope_status(s));
    return count;
}

// Compares array `i` with its shadow.
static void compare(tn_scope *s, tn_array *x, uint64_t from, int i)
{
    const tn_type *type = tn_array_type(x);
    const shadow *alone = &shadows[i];
    static float got[MOST_SIDE * MOST_SIDE];
    uint64_t n = (uint64_t)(type->extent[0] * type->extent[1]);
    must(s, tn_read(s, x, got, n * 4));
    for (uint64_t k = 0; k < n; k++) {
        // Same operations in the same order: only sums inside kernels may be regrouped.
        float want = alone->value[k];
        double bound = 1e-5 * (1 + fabs((double)want)) + alone->error[k];
        if (!(fabs((double)got[k] - (double)want) <= bound) &&
            !(isnan(got[k]) && isnan(want)) && got[k] != want)
            cr_fatal("seed %llu: array %d (%s) [%llu]: got %g, expected %g within %g",
                     (unsigned long long)from, i, tn_array_op(x), (unsigned long long)k,
                     (double)got[k], (double)want, bound);
    }
}

TestSuite(fusion, .init = setup, .fini = teardown);

static void compare_random_graphs(uint64_t rounds)
{
    const char *given = getenv("TEST_SEED");
    uint64_t first = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u + 1;
    const char *limit = getenv("TEST_ROUNDS");
    rounds = limit ? strtoull(limit, NULL, 0) : rounds;
    fprintf(stderr, "# seed %llu\n", (unsigned long long)first);
    for (uint64_t round = 0; round < rounds; round++) {
        tn_array *at_once[POOL], *alone[POOL];
        uint64_t from = first + round * 7919;
        tn_scope *a = tn_scope_open(runtime), *b = tn_scope_open(runtime);
        int count = build(a, at_once, from, false);
        cr_assert(eq(int, build(b, alone, from, true), count));
        // The last ones, and some from the middle, are wanted: the rest may be fused away.
        tn_array *wanted[] = {at_once[count - 1], at_once[count - 2],
                              at_once[pick((uint32_t)count)], at_once[count - 3]};
        must(a, tn_eval_n(a, wanted, 4));
        compare(a, at_once[count - 1], from, count - 1);
        compare(a, at_once[count - 2], from, count - 2);
        compare(a, at_once[count - 3], from, count - 3);
        tn_scope_close(a);
        tn_scope_close(b);
    }
}

Test(fusion, random_graphs_compute_the_same_fused_and_alone)
{
    compare_random_graphs(150);
}

// Rows that are long enough for row programs.
Test(fusion, random_graphs_of_longer_rows_do_so_too)
{
    side = MOST_SIDE;
    compare_random_graphs(60);
    side = 6;
}

Test(fusion, a_chain_of_expressions_is_one_step)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 32, 32, 0, 0.01f), *y = x;
    for (int i = 0; i < 5; i++)
        y = bin(s, "add", bin(s, "multiply", y, tn_float(s, 0.5)), un(s, "tanh", x));
    uint64_t before = stats_of(runtime).steps;
    must(s, tn_eval(s, y));
    cr_assert(eq(u64, stats_of(runtime).steps - before, 1));
    tn_scope_close(s);
}

Test(fusion, a_value_needed_elsewhere_is_written_by_the_fused_program)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 4, 4, 0, 1);
    tn_array *h = bin(s, "add", x, tn_float(s, 1)); // needed by relu and by the matmul
    tn_array *r = bin(s, "maximum", h, tn_float(s, 3));
    tn_array *z = bin(s, "matmul", r, h);
    uint64_t before = stats_of(runtime).steps;
    float out[16];
    must(s, tn_read(s, z, out, sizeof(out)));
    cr_assert(eq(u64, stats_of(runtime).steps - before, 2));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            float want = 0;
            for (int j = 0; j < 4; j++)
                want += fmaxf((float)(i * 4 + j + 1), 3) * (float)(j * 4 + k + 1);
            cr_assert(out[i * 4 + k] == want);
        }
    tn_scope_close(s);
}

Test(fusion, a_value_read_through_a_view_is_not_fused_into_its_reader)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *h = un(s, "negative", ramp(s, 5, 5, 0, 1));
    tn_array *z = bin(s, "subtract", h, un(s, "transpose", h));
    float out[25];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            cr_assert(out[i * 5 + k] == (float)(k * 5 + i) - (float)(i * 5 + k));
    tn_scope_close(s);
}

// Numbers that are rounded when they become floats, some of them twice if by way of f64.
static const uint64_t rounded[] = {
    1152921573326323713,
    (uint64_t)-1152921573326323713,
    (UINT64_C(1) << 24) + 1,
    (UINT64_C(1) << 53) + 1,
    (uint64_t)INT64_MAX,
    (uint64_t)INT64_MIN,
    UINT64_MAX,
    2049, // halfway between two of f16
    2051,
    65519,
    65520,
    257, // halfway between two of bf16
    259,
};

// 1 * number in `dtype`: as a fused number (by its place in the graph or as a literal).
static tn_array *times(tn_scope *s, tn_dtype dtype, uint64_t number, bool is_signed,
                       bool is_literal)
{
    const uint16_t ones[] = {[TN_F16] = 0x3c00, [TN_BF16] = 0x3f80};
    const float one_f32 = 1;
    const double one_f64 = 1;
    const void *one = dtype == TN_F64   ? (const void *)&one_f64
                      : dtype == TN_F32 ? (const void *)&one_f32
                                        : (const void *)&ones[dtype];
    tn_array *x = un(s, "abs", tn_from_data(s, dtype, TN_SHAPE(1), one));
    char text[64];
    if (!is_literal)
        return bin(s, "multiply", x, tn_int(s, (int64_t)number));
    snprintf(text, sizeof(text), is_signed ? "x -> x * %lld" : "x -> x * %llu",
             (long long)number);
    return tn_expr(s, text, TN_IN(x), TN_NO_ATTRS);
}

Test(fusion, numbers_are_fused_as_casts_convert_them)
{
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (size_t i = 0; i < sizeof(rounded) / sizeof(*rounded); i++)
        for (size_t k = 0; k < sizeof(dtypes) / sizeof(*dtypes); k++)
            for (int how = 0; how < 2; how++) {
                bool is_signed = rounded[i] != UINT64_MAX;
                uint64_t got = 0, want = 0, size = (uint64_t)tn_dtype_bytes(dtypes[k]);
                if (!is_signed && how == 0)
                    continue; // a number of a graph is an i64
                tn_scope *s = tn_scope_open(runtime);
                tn_array *number =
                    tn_from_data(s, is_signed ? TN_I64 : TN_U64, TN_SHAPE(1), &rounded[i]);
                tn_array *cast = tn_op(s, "base.astype", TN_IN(number),
                                       tn_attrs("dtype", (int64_t)dtypes[k]));
                must(s, tn_read(s, cast, &want, size));
                must(s, tn_read(s, times(s, dtypes[k], rounded[i], is_signed, how == 1),
                                &got, size));
                if (got != want)
                    cr_fatal("%lld as %s, %s: got 0x%llx, expected 0x%llx",
                             (long long)rounded[i], tn_dtype_name(dtypes[k]),
                             how ? "a literal" : "a number", (unsigned long long)got,
                             (unsigned long long)want);
                tn_scope_close(s);
            }
}
