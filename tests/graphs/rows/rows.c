// SPDX-License-Identifier: MIT
// Expressions that reduce over rows: values against plain loops, and errors.
#include "rows.h"

TestSuite(rows, .init = open_runtime, .fini = teardown);

// Bounds: a few roundings of an element, and for f32 sums n roundings of a term, most of
// which cancel; half floats are computed in f32 and rounded once. Of products of numbers
// near 1 they do not cancel.
static double bound_of(tn_dtype dtype, row_oracle *oracle, int64_t n)
{
    if (dtype == TN_F32 && oracle == product)
        return 4e-5 + (double)n * 0x1p-24;
    return dtype == TN_F64 ? 1e-11 : dtype == TN_F32 ? 4e-5 : dtype == TN_F16 ? 3e-3 : 2e-2;
}

static void check_values(int e, int k, tn_dtype dtype)
{
    tn_scope *s = tn_scope_open(runtime);
    const tn_shape *shape = &shapes[k].shape;
    int32_t axis = shapes[k].axis;
    tn_shape w_shape = weight_shape(shape, axis);
    int64_t count = count_of(shape), n = w_shape.extent[0];
    fill(x, count);
    fill(w, n);
    tn_array *ax = array_of(s, dtype, shape, x), *aw = array_of(s, dtype, &w_shape, w);
    read_back(s, ax, x, count);
    read_back(s, aw, w, n);
    tn_array *y = tn_expr(s, expressions[e].text, TN_IN(ax, aw), tn_attrs("axis", axis));
    if (!y)
        cr_fatal("%s: %s", expressions[e].text, tn_scope_error(s));
    cr_assert(eq(int, tn_array_type(y)->dtype, dtype));
    must(s, tn_eval(s, y));
    read_back(s, y, got, count);
    want_rows(expressions[e].oracle, shape, axis, x, w, want);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <=
              bound_of(dtype, expressions[e].oracle, n) * (1 + fabs(want[i]))))
            cr_fatal("%s, shape %d, axis %d, dtype %d: [%lld] is %.9g, expected %.9g",
                     expressions[e].text, k, axis, (int)dtype, (long long)i, got[i],
                     want[i]);
    tn_scope_close(s);
}

// On a GPU's backends a third: each pair is a kernel to compile.
static bool is_taken(int e, int k)
{
    return on_cpu() || (e + k) % 3 == 0;
}

Test(rows, expressions_agree_with_loops)
{
    for (int e = 0; e < NUM_EXPRESSIONS; e++)
        for (int k = 0; k < NUM_SHAPES; k++)
            if (is_taken(e, k))
                check_values(e, k, TN_F32);
}

Test(rows, other_dtypes_agree_with_loops)
{
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16, TN_F64};
    for (int e = 0; e < NUM_EXPRESSIONS; e++)
        for (int k = 0; k < 6; k++)
            for (int d = 0; d < 2 + has_f64() && is_taken(e, k); d++)
                check_values(e, k, dtypes[d]);
}

enum { WIDE = 48 }; // elements of a row for which devices run row programs

Test(rows, integers_wrap_and_are_summed_in_64_bits)
{
    static int32_t data[2 * WIDE], most[2 * WIDE];
    static int64_t sums[2 * WIDE], products[2 * WIDE];
    int64_t sum[2] = {0}, product[2] = {1, 1};
    for (int i = 0; i < 2 * WIDE; i++) {
        data[i] = i % 7 == 3 ? 2000000000 : i % 5 - 7;
        sum[i / WIDE] += data[i];
        product[i / WIDE] = (int64_t)((uint64_t)product[i / WIDE] * (uint64_t)data[i]);
    }
    tn_scope *s = tn_scope_open(runtime);
    tn_array *a = tn_from_data(s, TN_I32, TN_SHAPE(2, WIDE), data);
    tn_array *all = tn_expr(s, "x -> sum(x)", TN_IN(a), TN_NO_ATTRS);
    tn_array *prod = tn_expr(s, "x -> prod(x)", TN_IN(a), TN_NO_ATTRS);
    tn_array *max = tn_expr(s, "x -> max(x) - min(x) * 0", TN_IN(a), TN_NO_ATTRS);
    tn_array *mean = tn_expr(s, "x -> mean(x)", TN_IN(a), TN_NO_ATTRS);
    cr_assert(eq(int, tn_array_type(all)->dtype, TN_I64));
    cr_assert(eq(int, tn_array_type(max)->dtype, TN_I32));
    cr_assert(eq(int, tn_array_type(mean)->dtype, TN_F64));
    must(s, tn_read(s, all, sums, sizeof(sums)));
    must(s, tn_read(s, prod, products, sizeof(products)));
    must(s, tn_read(s, max, most, sizeof(most)));
    for (int i = 0; i < 2 * WIDE; i++) {
        cr_assert(eq(long, sums[i], sum[i / WIDE]));
        cr_assert(eq(long, products[i], product[i / WIDE]));
        cr_assert(eq(int, most[i], 2000000000));
    }
    tn_scope_close(s);
}

Test(rows, a_nan_wins_in_its_row_only)
{
    static const char *const texts[] = {"x -> max(x)", "x -> min(x)", "x -> sum(x)",
                                        "x -> prod(x)", "x -> mean(x)"};
    static float data[2 * WIDE], out[2 * WIDE];
    for (int i = 0; i < 2 * WIDE; i++)
        data[i] = 1 + (float)i / 100;
    for (int at = 0; at < WIDE; at += 9)
        for (int i = 0; i < 5; i++) {
            tn_scope *s = tn_scope_open(runtime);
            float kept = data[at];
            data[at] = NAN;
            tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(2, WIDE), data);
            data[at] = kept;
            must(s,
                 tn_read(s, tn_expr(s, texts[i], TN_IN(a), TN_NO_ATTRS), out, sizeof(out)));
            cr_assert(isnan(out[0]) && isnan(out[WIDE - 1]) && !isnan(out[WIDE]), "%s, %d",
                      texts[i], at);
            tn_scope_close(s);
        }
}

// Rows that devices cut into parts: the first of equal elements, or the first NaN, wherever
// the parts end.
Test(rows, the_first_of_the_best_elements_of_a_long_row)
{
    enum { LONG = 300001 };
    static const int64_t places[] = {0, 1, 32767, 33333, 33334, 66667, 150000, LONG - 1};
    static float data[2 * LONG];
    for (int i = 0; i < 2 * LONG; i++)
        data[i] = (float)(i % 1000) - 1000;
    for (int i = 0; i < (int)(sizeof(places) / sizeof(*places)); i++)
        for (int hostile = 0; hostile < 3; hostile++) {
            int64_t at = places[i], out[2];
            float best = hostile == 0 ? 5.0f : hostile == 1 ? INFINITY : NAN;
            float *row = data + LONG, kept = row[at], last = row[LONG - 1];
            row[at] = row[LONG - 1] = best;
            tn_scope *s = tn_scope_open(runtime);
            tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(2, LONG), data);
            row[LONG - 1] = last;
            row[at] = kept;
            tn_array *y = tn_op(s, "base.argmax/1", TN_IN(a), tn_attrs("axis", -1));
            must(s, tn_read(s, y, out, sizeof(out)));
            cr_assert(out[0] == 999 && out[1] == at, "%d at %lld: got %lld and %lld",
                      hostile, (long long)at, (long long)out[0], (long long)out[1]);
            tn_scope_close(s);
        }
}

// An operand that broadcasts counts once for each element, and index is that of the array:
// for rows of a few elements, and for rows that are a row program, along both axes.
static void check_counts(int64_t rows, int64_t columns)
{
    static float zeros[WIDE * WIDE], column[WIDE], out[WIDE * WIDE];
    tn_scope *s = tn_scope_open(runtime);
    for (int64_t i = 0; i < rows; i++)
        column[i] = (float)(i + 2);
    uint64_t bytes = (uint64_t)(rows * columns) * sizeof(float);
    tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(rows, columns), zeros);
    tn_array *b = tn_from_data(s, TN_F32, TN_SHAPE(rows, 1), column);
    tn_array *y = tn_expr(s, "x, y -> x + sum(y)", TN_IN(a, b), TN_NO_ATTRS);
    must(s, tn_read(s, y, out, bytes));
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert(eq(flt, out[i], (float)columns * column[i / columns]));
    y = tn_expr(s, "x -> x + max(f32(index))", TN_IN(a), tn_attrs("axis", 0));
    must(s, tn_read(s, y, out, bytes));
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert(eq(flt, out[i], (float)((rows - 1) * columns + i % columns)));
    y = tn_expr(s, "x -> f32(index) - max(x)", TN_IN(a), tn_attrs("axis", 0));
    must(s, tn_read(s, y, out, bytes));
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert(eq(flt, out[i], (float)i));
    y = tn_expr(s, "x -> f32(index) - min(f32(index) + x)", TN_IN(a), TN_NO_ATTRS);
    must(s, tn_read(s, y, out, bytes));
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert(eq(flt, out[i], (float)(i % columns)));
    tn_scope_close(s);
}

Test(rows, reductions_count_each_element_of_the_row)
{
    check_counts(3, 4);
    check_counts(WIDE, WIDE - 1);
}

// --- errors ----------------------------------------------------------------------------

Test(rows, what_is_wrong_is_told)
{
    static const struct {
        const char *text, *message;
        int axis; // 99: not given
        int rank;
    } cases[] = {
        {"x -> sum(2)", "'sum' of a constant", 99, 2},
        {"x -> x * max(eps)", "'max' of a constant", 99, 2},
        {"x -> mean(x, x)", "'mean' takes 1 argument, got 2", 99, 2},
        {"x -> max()", "'max' takes 1 or 2 arguments, got 0", 99, 2},
        {"x -> max(x, x, x)", "'max' takes 1 or 2 arguments, got 3", 99, 2},
        {"x -> sum(x)", "axis 2 is out of range for [3, 4], expected -2 to 1", 2, 2},
        {"x -> sum(x)", "axis -3 is out of range for [3, 4], expected -2 to 1", -3, 2},
        {"x -> sum(x)", "its operands have none", 99, 0},
        {"x -> x + 1", "got 1 attributes, expected 0", 1, 2},
    };
    static const float data[12] = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        const tn_shape shape = {.rank = cases[i].rank, .extent = {3, 4}};
        tn_array *a = tn_from_data(s, TN_F32, &shape, data);
        tn_array *y = cases[i].axis == 99 ? tn_expr(s, cases[i].text, TN_IN(a), TN_NO_ATTRS)
                                          : tn_expr(s, cases[i].text, TN_IN(a),
                                                    tn_attrs("axis", cases[i].axis));
        if (y || !strstr(tn_scope_error(s), cases[i].message))
            cr_fatal("%s: %s", cases[i].text, y ? "no error" : tn_scope_error(s));
        tn_scope_close(s);
    }
    tn_scope *s = tn_scope_open(runtime);
    tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(3, 4), data);
    if (tn_expr(s, "x -> sum(x)", TN_IN(a), tn_attrs("axis", 0.5)) ||
        !strstr(tn_scope_error(s), "axis: got a float, expected an integer"))
        cr_fatal("got \"%s\"", tn_scope_error(s) ? tn_scope_error(s) : "no error");
    tn_scope_close(s);
}
