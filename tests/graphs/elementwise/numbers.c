// SPDX-License-Identifier: MIT
// Numbers without a dtype beside integer arrays, on the backend that TENON_BACKEND names:
// they compare as they are, and arithmetic with one that the dtype does not hold is an
// error.
#include <math.h>
#include <string.h>
#include "../support/common.h"

typedef __int128 wide;

static void begin(void)
{
    if (getenv("TENON_TEST_BACKEND"))
        setup_backend();
    else
        setup();
}

TestSuite(numbers, .init = begin, .fini = teardown);

static const tn_dtype integers[] = {TN_I8, TN_I16, TN_I32, TN_I64,
                                    TN_U8, TN_U16, TN_U32, TN_U64};
#define NUM_INTEGERS (sizeof(integers) / sizeof(integers[0]))

static wide least_of(tn_dtype dtype)
{
    return tn_is_signed(dtype) ? -((wide)1 << (8 * tn_dtype_bytes(dtype) - 1)) : 0;
}

static wide most_of(tn_dtype dtype)
{
    return least_of(dtype) + (((wide)1 << 8 * tn_dtype_bytes(dtype)) - 1);
}

static bool is_number(wide value)
{
    return value >= INT64_MIN && value <= (wide)UINT64_MAX;
}

static tn_array *number(tn_scope *s, wide value)
{
    return value > INT64_MAX ? tn_uint(s, (uint64_t)value) : tn_int(s, (int64_t)value);
}

// The limits of the dtype, and a value between. `out_values`: as numbers.
enum { NUM_ELEMENTS = 4 };
static tn_array *limits(tn_scope *s, tn_dtype dtype, wide *out_values)
{
    unsigned char bytes[NUM_ELEMENTS * 8] = {0};
    out_values[0] = least_of(dtype);
    out_values[1] = 5;
    out_values[2] = most_of(dtype) - 1;
    out_values[3] = most_of(dtype);
    for (size_t i = 0; i < NUM_ELEMENTS; i++)
        memcpy(bytes + i * (size_t)tn_dtype_bytes(dtype), &out_values[i],
               (size_t)tn_dtype_bytes(dtype));
    return tn_from_data(s, dtype, TN_SHAPE(NUM_ELEMENTS), bytes);
}

static const char *const comparisons[] = {"less",    "less_equal",    "equal",
                                          "greater", "greater_equal", "not_equal"};
#define NUM_COMPARISONS (sizeof(comparisons) / sizeof(comparisons[0]))

static bool holds(size_t which, wide a, wide b)
{
    const bool results[] = {a<b, a <= b, a == b, a> b, a >= b, a != b};
    return results[which];
}

// All six comparisons, computed at once. `is_left`: the number stands on the left.
static void compare_all(tn_scope *s, const tn_array *x, const wide *values,
                        const tn_array *y, wide n, bool is_left)
{
    tn_array *results[NUM_COMPARISONS];
    uint8_t got[NUM_ELEMENTS];
    for (size_t i = 0; i < NUM_COMPARISONS; i++)
        results[i] = bin(s, comparisons[i], is_left ? y : x, is_left ? x : y);
    must(s, tn_eval(s, results[0], results[1], results[2], results[3], results[4],
                    results[5]));
    for (size_t i = 0; i < NUM_COMPARISONS; i++) {
        must(s, tn_read(s, results[i], got, sizeof(got)));
        for (size_t k = 0; k < NUM_ELEMENTS; k++) {
            wide a = is_left ? n : values[k], b = is_left ? values[k] : n;
            if (got[k] != holds(i, a, b))
                cr_fatal("%s %s of %.17g and %.17g: got %d",
                         tn_dtype_name(tn_array_type(x)->dtype), comparisons[i], (double)a,
                         (double)b, got[k]);
        }
    }
}

Test(numbers, comparisons_are_exact)
{
    for (size_t d = 0; d < NUM_INTEGERS; d++) {
        wide values[NUM_ELEMENTS], most = most_of(integers[d]),
                                   least = least_of(integers[d]);
        const wide tried[] = {least - 1, least, most, most + 1, (wide)1 << 40};
        for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
            tn_scope *s = tn_scope_open(runtime);
            tn_array *x = limits(s, integers[d], values);
            if (is_number(tried[i]))
                compare_all(s, x, values, number(s, tried[i]), tried[i], i % 2);
            tn_scope_close(s);
        }
    }
}

// A number whose value is not known when the graph is built.
Test(numbers, comparisons_with_computed_numbers_are_exact)
{
    for (size_t d = 0; d < NUM_INTEGERS; d++) {
        wide values[NUM_ELEMENTS];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = limits(s, integers[d], values);
        tn_array *n = tn_op(s, "base.where",
                            TN_IN(tn_bool(s, 1), tn_int(s, -1), tn_int(s, 0)), TN_NO_ATTRS);
        compare_all(s, x, values, n, -1, d % 2);
        tn_scope_close(s);
    }
}

// No dtype holds u64 and a signed one.
Test(numbers, arrays_of_two_dtypes_compare_exactly)
{
    for (size_t a = 0; a < NUM_INTEGERS; a += 3) // i8, i64 and u32 beside all
        for (size_t b = 0; b < NUM_INTEGERS; b++) {
            wide x[NUM_ELEMENTS], y[NUM_ELEMENTS];
            tn_scope *s = tn_scope_open(runtime);
            tn_array *left = limits(s, integers[a], x), *right = limits(s, integers[b], y);
            tn_array *less = bin(s, "less", left, right);
            tn_array *equal = bin(s, "equal", left, right);
            uint8_t got[2][NUM_ELEMENTS];
            must(s, tn_read(s, less, got[0], NUM_ELEMENTS));
            must(s, tn_read(s, equal, got[1], NUM_ELEMENTS));
            for (size_t k = 0; k < NUM_ELEMENTS; k++)
                if (got[0][k] != (x[k] < y[k]) || got[1][k] != (x[k] == y[k]))
                    cr_fatal("%s and %s: element %zu", tn_dtype_name(integers[a]),
                             tn_dtype_name(integers[b]), k);
            tn_scope_close(s);
        }
}

static const char *const arithmetic[] = {
    "add",        "subtract",    "multiply",    "floor_divide", "remainder",
    "power",      "maximum",     "minimum",     "bitwise_and",  "bitwise_or",
    "left_shift", "right_shift", "bitwise_xor",
};

static void refuse(tn_scope *s, const char *op, tn_dtype dtype, wide n, bool is_left)
{
    wide values[NUM_ELEMENTS];
    char text[24], *end = text + sizeof(text) - 1;
    tn_array *x = limits(s, dtype, values), *y = number(s, n);
    cr_assert(bin(s, op, is_left ? y : x, is_left ? x : y) == NULL);
    *end = '\0';
    for (wide rest = n < 0 ? -n : n; rest; rest /= 10)
        *--end = (char)('0' + (int)(rest % 10));
    check_says(tn_scope_error(s), end);
    check_says(tn_scope_error(s), tn_dtype_name(dtype));
    check_says(tn_scope_error(s), "expected a number that");
    tn_scope_clear_error(s);
}

Test(numbers, arithmetic_with_what_does_not_fit_names_both)
{
    tn_scope *s = tn_scope_open(runtime);
    wide values[NUM_ELEMENTS];
    for (size_t d = 0; d < NUM_INTEGERS; d++)
        for (size_t i = 0; i < sizeof(arithmetic) / sizeof(arithmetic[0]); i++)
            for (int beyond = 0; beyond < 4; beyond++) {
                wide n = beyond & 2 ? most_of(integers[d]) : least_of(integers[d]);
                tn_array *x = limits(s, integers[d], values);
                bin(s, arithmetic[i], x, number(s, n)); // fits
                must(s, tn_scope_status(s));
                n += beyond & 2 ? 1 : -1;
                if (is_number(n))
                    refuse(s, arithmetic[i], integers[d], n, beyond & 1);
            }
    tn_array *x = limits(s, TN_U8, values);
    cr_assert(tn_op(s, "base.where", TN_IN(tn_bool(s, 1), x, tn_int(s, 300)),
                    TN_NO_ATTRS) == NULL);
    check_says(tn_scope_error(s), "u8 and 300: expected a number that u8 holds");
    tn_scope_close(s);
}

// Operations on numbers alone give numbers, as in Python.
Test(numbers, operations_on_numbers_are_exact)
{
    static const struct {
        const char *op;
        wide a, b, result;
    } cases[] = {
        {"add", 200, 100, 300},
        {"power", 2, 40, (wide)1 << 40},
        {"power", 2, 63, (wide)1 << 63},
        {"power", -2, 63, -((wide)1 << 63)},
        {"power", -1, INT64_MAX, -1},
        {"subtract", (wide)1 << 63, 1, INT64_MAX},
        {"multiply", (wide)1 << 62, 2, (wide)1 << 63},
        {"floor_divide", -7, 2, -4},
        {"floor_divide", INT64_MIN, -1, (wide)1 << 63},
        {"remainder", -7, 3, 2},
        {"left_shift", 1, 63, (wide)1 << 63},
        {"right_shift", -5, 70, -1},
        {"bitwise_or", INT64_MIN, 1, INT64_MIN + 1},
        {"maximum", -1, UINT64_MAX, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y = bin(s, cases[i].op, number(s, cases[i].a), number(s, cases[i].b));
        uint64_t got = 0;
        must(s, tn_read(s, y, &got, sizeof(got)));
        bool is_above = cases[i].result > INT64_MAX;
        cr_assert(tn_array_type(y)->dtype == (is_above ? TN_U64 : TN_I64), "%zu", i);
        cr_assert(got == (uint64_t)cases[i].result, "%zu", i);
        tn_scope_close(s);
    }
}

Test(numbers, operations_on_numbers_that_overflow_are_refused)
{
    static const struct {
        const char *op;
        wide a, b;
    } cases[] = {{"power", 2, 64},
                 {"power", 3, INT64_MAX},
                 {"multiply", (wide)1 << 63, 2},
                 {"multiply", UINT64_MAX, UINT64_MAX},
                 {"add", UINT64_MAX, 1},
                 {"subtract", INT64_MIN, 1},
                 {"left_shift", 1, 64}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        cr_assert(bin(s, cases[i].op, number(s, cases[i].a), number(s, cases[i].b)) ==
                  NULL);
        check_says(tn_scope_error(s), "fits neither i64 nor u64");
        tn_scope_close(s);
    }
}

// Numbers that are attributes.
Test(numbers, elements_of_full_and_pad_fit_the_dtype)
{
    static const struct {
        tn_dtype dtype;
        double value;
        bool fits;
    } cases[] = {
        {TN_U8, 300, false},     {TN_U8, -1, false},        {TN_U8, 255, true},
        {TN_U8, -0.5, true},     {TN_I8, -128, true},       {TN_I8, 128, false},
        {TN_I32, NAN, false},    {TN_U64, INFINITY, false}, {TN_U64, 0x1p64, false},
        {TN_I64, -0x1p63, true}, {TN_I64, 0x1p63, false},   {TN_F16, 1e9, true}};
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_dtype dtype = cases[i / 2].dtype;
        const tn_array *zero = tn_scalar(s, dtype, 0);
        const tn_array *x = un(s, "negative", zero);
        x = tn_op(s, "base.reshape", &x, 1, tn_attrs("shape", TN_INTS(1)));
        tn_array *made = i % 2
                             ? tn_op(s, "base.pad", &x, 1,
                                     tn_attrs("before", TN_INTS(1), "after", TN_INTS(0),
                                              "value", cases[i / 2].value))
                             : tn_op(s, "base.full", NULL, 0,
                                     tn_attrs("shape", TN_INTS(2), "value",
                                              cases[i / 2].value, "dtype", (int64_t)dtype));
        if (!made == cases[i / 2].fits)
            cr_fatal("%zu: %s", i, tn_scope_error(s));
        if (!made)
            check_says(tn_scope_error(s), tn_dtype_name(dtype));
        tn_scope_close(s);
    }
}
