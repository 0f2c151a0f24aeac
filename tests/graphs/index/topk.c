// SPDX-License-Identifier: MIT
// topk, sort and argsort on each backend, against rows sorted in C: places, and the bits of
// the values. Short and long rows, in one and in several parts; ties, zeros of both signs,
// infinities, NaN.
// TENON_TEST_BACKEND says on which backend.
#include "../support/common.h"

#include <string.h>
#include <tenon/ops/reference.h>

enum { MOST = 525000 };

static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static uint64_t state = 88172645463325252;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

struct selection {
    int64_t outer, n, inner, k;
    uint32_t different; // bit patterns, at most; 0: any number of them
    tn_dtype dtypes[5];
};

#define FLOATS                                                                             \
    {                                                                                      \
        TN_F32, TN_F16, TN_F64, TN_BF16                                                    \
    }
#define ALL                                                                                \
    {                                                                                      \
        TN_F32, TN_I64, TN_U8, TN_I16, TN_BF16                                             \
    }
static const struct selection selections[] = {
    {1, 1, 1, 1, 0, ALL},
    {1, 2, 3, 1, 0, ALL},
    {700, 3, 1, 2, 0, {TN_F32, TN_BOOL, TN_U64, TN_U16}},
    {1500, 1, 1, 1, 0, {TN_F32}},
    {33, 7, 5, 7, 3, FLOATS},
    {9, 128, 1, 2, 0, ALL},
    {9, 129, 3, 8, 2, {TN_F32, TN_I32, TN_U32, TN_I8}},
    {5, 255, 1, 100, 0, FLOATS},
    {2, 256, 3, 256, 40, ALL},
    {3, 257, 1, 1, 0, ALL},
    {2, 257, 2, 257, 5, FLOATS},
    {3, 1000, 1, 5, 1, {TN_F32, TN_I64, TN_U8}}, // all are equal
    {2, 1024, 1, 1024, 0, FLOATS},
    {2, 1025, 1, 1024, 6, ALL},
    {1, 3001, 3, 64, 0, ALL},
    {260, 600, 1, 3, 4, {TN_F32, TN_I8}}, // a row in one part
    {1, 5000, 1, 10, 0, ALL},
    {3, 5000, 2, 600, 9, FLOATS},
    {1, 20000, 1, 1000, 2, ALL},
    {2, 70000, 1, 50, 0, {TN_F32, TN_F64}},
    {1, 70000, 2, 17, 1, {TN_F32, TN_U64}},
    {1, 290000, 1, 100, 0, {TN_F32, TN_BF16, TN_I8}}, // parts of parts
    {1, 290000, 1, 1024, 0, {TN_F32}},
    {1, 9000, 1, 1025, 0, ALL}, // too many for a list
    {2, 7000, 2, 3000, 3, FLOATS},
    {1, 30000, 1, 15000, 1, {TN_F32, TN_U64}},
    {300, 1100, 1, 1030, 0, {TN_F32}}, // of many rows
    {1, 100000, 2, 2000, 90, {TN_F32, TN_I16}},
    {1, 3000, 1, 2999, 0, {TN_F32}}, // by sorting all
};

// Rows around the borders of blocks, rounds and tiles; few and many tiles.
static const struct selection orders[] = {
    {3, 512, 1, 512, 0, {TN_F32}},
    {2, 513, 2, 513, 0, {TN_F64, TN_U64, TN_F16, TN_I8, TN_BOOL}},
    {3, 1024, 1, 1024, 5, {TN_F32, TN_BF16}},
    {5, 1025, 3, 1025, 0, {TN_F32, TN_I64, TN_I32}},
    {4, 2047, 1, 2047, 1, {TN_U32}}, // all are equal
    {3, 2048, 2, 2048, 0, {TN_F32, TN_I16, TN_U8}},
    {1, 2049, 3, 2049, 0, {TN_F32}},
    {16, 2049, 1, 2049, 0, {TN_F32, TN_I16}},
    {3, 12300, 1, 12300, 3, {TN_F32, TN_F16}},
    {1, 32767, 1, 32767, 0, {TN_F32}},
    {1, 32768, 1, 32768, 0, {TN_I32, TN_F64}},
    {2, 34817, 3, 34817, 0, {TN_F32, TN_BF16, TN_BOOL}},
    {1, 90001, 1, 90001, 1, {TN_F32}},
    {1, 525000, 1, 525000, 0, {TN_U8}}, // more tiles than are summed, or invocations
};

static unsigned char elements[MOST * 8], got_values[MOST * 8];
static int64_t got_places[MOST];
static struct order {
    double value;
    int64_t integer, place;
} row[MOST];

static int is_descending;
static bool is_sorting; // all, by sort and argsort

static int by_value(const struct order *a, const struct order *b)
{
    if (isnan(a->value) || isnan(b->value))
        return isnan(a->value) - isnan(b->value);
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->integer < b->integer ? -1 : a->integer > b->integer;
}

static int by_order(const void *p, const void *q)
{
    const struct order *a = p, *b = q;
    int order = by_value(a, b);
    if (order != 0)
        return is_descending ? -order : order;
    return a->place < b->place ? -1 : 1;
}

// Elements of any bits, with those that compare in their own way.
static void draw_elements(const struct selection *c, tn_dtype dtype)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    tn_tensor x = {elements, {.dtype = dtype}};
    int64_t bytes = tn_dtype_bytes(dtype), count = c->outer * c->n * c->inner;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = draw();
        if (dtype == TN_BOOL)
            bits &= 1;
        memcpy(elements + i * bytes, &bits, (size_t)bytes);
        if (draw() % 8 == 0 && tn_is_float(dtype))
            tn_set_f64(&x, i, special[draw() % 7]);
        if (c->different > 0 && i >= c->different)
            memcpy(elements + i * bytes,
                   elements + (int64_t)(draw() % c->different) * bytes, (size_t)bytes);
    }
}

// Whether value `to` has the bits of an element. A program that moves what was sorted may
// make a NaN quiet.
static bool is_same(tn_dtype dtype, int64_t to, int64_t element)
{
    const tn_tensor x = {elements, {.dtype = dtype}}, y = {got_values, {.dtype = dtype}};
    int64_t bytes = tn_dtype_bytes(dtype);
    if (is_sorting && tn_is_float(dtype) && isnan(tn_get_f64(&x, element)))
        return isnan(tn_get_f64(&y, to));
    return memcmp(got_values + to * bytes, elements + element * bytes, (size_t)bytes) == 0;
}

static void compare_row(const struct selection *c, tn_dtype dtype, int64_t outer,
                        int64_t inner)
{
    const tn_tensor x = {elements, {.dtype = dtype}};
    int64_t from = outer * c->n * c->inner + inner;
    for (int64_t i = 0; i < c->n; i++) {
        bool is_float = tn_is_float(dtype);
        int64_t at = from + i * c->inner;
        row[i] = (struct order){is_float ? tn_get_f64(&x, at) : 0,
                                is_float ? 0 : tn_get_i64(&x, at), i};
        if (dtype == TN_U64) // in the order of signed ones
            row[i].integer = (int64_t)((uint64_t)row[i].integer ^ UINT64_C(1) << 63);
    }
    qsort(row, (size_t)c->n, sizeof(row[0]), by_order);
    for (int64_t i = 0; i < c->k; i++) {
        int64_t to = (outer * c->k + i) * c->inner + inner;
        if (got_places[to] != row[i].place ||
            !is_same(dtype, to, from + row[i].place * c->inner))
            cr_fatal("%s %s %lldx%lldx%lld, k %lld, row %lld, %lld: got %lld at %lld, "
                     "expected %lld",
                     backend(), tn_dtype_name(dtype), (long long)c->outer, (long long)c->n,
                     (long long)c->inner, (long long)c->k, (long long)outer,
                     (long long)inner, (long long)got_places[to], (long long)i,
                     (long long)row[i].place);
    }
}

// The first elements and their places; or all, by operators of their own.
static void apply(tn_scope *s, const struct selection *c, const tn_array *x,
                  tn_array *out[2])
{
    int64_t axis = 1, descends = is_descending;
    if (!is_sorting) {
        must(s, tn_op_n(s, "topk", &x, 1,
                        tn_attrs("k", c->k, "axis", axis, "largest", descends), out, 2));
        return;
    }
    tn_attr_list list = tn_attrs("axis", axis, "descending", descends);
    out[0] = tn_op(s, "sort", TN_IN(x), list);
    out[1] = tn_op(s, "argsort", TN_IN(x), list);
}

static void check(const struct selection *c, tn_dtype dtype)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *out[2];
    draw_elements(c, dtype);
    const tn_array *x =
        tn_from_data(s, dtype, TN_SHAPE(c->outer, c->n, c->inner), elements);
    apply(s, c, x, out);
    uint64_t count = (uint64_t)(c->outer * c->k * c->inner);
    must(s, tn_eval(s, out[0], out[1]));
    must(s, tn_read(s, out[0], got_values, count * (uint64_t)tn_dtype_bytes(dtype)));
    must(s, tn_read(s, out[1], got_places, count * sizeof(got_places[0])));
    for (int64_t outer = 0; outer < c->outer; outer++)
        for (int64_t inner = 0; inner < c->inner; inner++)
            compare_row(c, dtype, outer, inner);
    tn_scope_close(s);
}

static void check_all(const struct selection *table, size_t count, bool sorts)
{
    is_sorting = sorts;
    for (size_t i = 0; i < count; i++)
        for (size_t d = 0; d < 5 && table[i].dtypes[d] != TN_DTYPE_NONE; d++) {
            is_descending = (i + d) % 3 != 0;
            check(&table[i], table[i].dtypes[d]);
        }
}

static void open_backend(void)
{
    need_device(backend());
    runtime = open_on(backend());
}

TestSuite(topk, .init = open_backend, .fini = teardown);

Test(topk, the_first_are_those_of_a_stable_sort)
{
    check_all(selections, sizeof(selections) / sizeof(selections[0]), false);
}

Test(topk, all_are_those_of_a_stable_sort)
{
    check_all(orders, sizeof(orders) / sizeof(orders[0]), true);
}
