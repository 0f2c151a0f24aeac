// SPDX-License-Identifier: MIT
// Reductions of base over several last axes, which become row programs as over one axis
// where what is read is even along them.
#include "rows.h"

TestSuite(rows_axes, .init = open_runtime, .fini = teardown);

// f64 where every device has it, and how exact results in it are.
static tn_dtype dtype(void)
{
    return has_f64() ? TN_F64 : TN_F32;
}

static double bound(void)
{
    return has_f64() ? 1e-12 : 4e-5;
}

enum view { PLAIN, SWAPPED, SKIPPING };

struct axes_case {
    const char *what;
    tn_shape shape; // of the array that is normalised
    int axes;       // the last ones are reduced
    enum view view; // how it lies in memory: as it is, its last axes swapped, with gaps
                    // between indices of the first axis
    tn_shape weight;
    uint64_t steps; // 0: open
};

static const struct axes_case cases[] = {
    {"two axes", {3, 0, {48, 6, 16}}, 2, PLAIN, {2, 0, {6, 16}}, 1},
    {"three axes, a number", {4, 0, {40, 4, 3, 8}}, 3, PLAIN, {0, 0, {0}}, 1},
    {"two of four axes", {4, 0, {8, 6, 4, 24}}, 2, PLAIN, {1, 0, {1}}, 1},
    {"an axis of one", {4, 0, {48, 6, 1, 16}}, 3, PLAIN, {3, 0, {6, 1, 16}}, 1},
    {"gaps between rows", {3, 0, {48, 6, 16}}, 2, SKIPPING, {2, 0, {6, 16}}, 1},
    {"a weight for each channel", {3, 0, {48, 6, 16}}, 2, PLAIN, {2, 0, {6, 1}}, 2},
    {"a weight for each column", {3, 0, {48, 6, 16}}, 2, PLAIN, {1, 0, {16}}, 2},
    {"swapped axes", {3, 0, {48, 6, 16}}, 2, SWAPPED, {2, 0, {6, 16}}, 0},
    {"one row", {3, 0, {1, 40, 50}}, 2, PLAIN, {2, 0, {40, 50}}, 0},
    {"all axes", {2, 0, {40, 50}}, 2, PLAIN, {2, 0, {40, 50}}, 0},
    {"one element", {3, 0, {48, 1, 1}}, 2, PLAIN, {0, 0, {0}}, 0},
    {"no element", {3, 0, {48, 0, 6}}, 2, PLAIN, {0, 0, {0}}, 0},
};

static tn_ints last_axes(int axes)
{
    tn_ints out = {.given = 1, .count = (uint32_t)axes};
    for (int i = 0; i < axes; i++) // the last one first: any order is the same
        out.value[i] = -1 - i;
    return out;
}

static tn_array *over(tn_scope *s, const char *op, tn_array *a, int axes, int keepdims)
{
    tn_ints list = last_axes(axes);
    return tn_op(s, op, TN_IN(a), tn_attrs("axis", &list, "keepdims", keepdims));
}

static int64_t row_length(const tn_shape *shape, int axes)
{
    int64_t n = 1;
    for (int i = 0; i < axes; i++)
        n *= shape->extent[shape->rank - 1 - i];
    return n;
}

// An array with the values of `data`, laid out as the case says.
static tn_array *viewed(tn_scope *s, const struct axes_case *c, const double *data)
{
    static double laid[MOST];
    tn_shape shape = c->shape;
    int64_t count = count_of(&shape), last = shape.extent[shape.rank - 1];
    int64_t before = shape.rank > 1 ? shape.extent[shape.rank - 2] : 1;
    int64_t rows = c->axes < shape.rank ? shape.extent[0] : 1, n = rows ? count / rows : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / (n ? n : 1), at = i % (n ? n : 1);
        if (c->view == SWAPPED)
            at = at % last * before + at / last;
        laid[row * n * (c->view == SKIPPING ? 2 : 1) + at] = data[i];
    }
    if (c->view == SWAPPED) {
        shape.extent[shape.rank - 1] = before;
        shape.extent[shape.rank - 2] = last;
    }
    shape.extent[0] *= c->view == SKIPPING ? 2 : 1;
    tn_array *whole = array_of(s, dtype(), &shape, laid);
    must(s, tn_eval(s, whole));
    if (c->view == SWAPPED)
        return tn_op(s, "transpose", TN_IN(whole), tn_attrs("axes", TN_INTS(0, 2, 1)));
    if (c->view == SKIPPING)
        return tn_op(s, "slice", TN_IN(whole),
                     tn_attrs("start", TN_INTS(0, 0, 0), "stop",
                              TN_INTS(shape.extent[0], shape.extent[1], shape.extent[2]),
                              "step", TN_INTS(2, 1, 1)));
    return whole;
}

// The weight at element i of x: it broadcasts from the last axis on.
static double weight_at(const struct axes_case *c, const double *weights, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int32_t k = 0; k < c->weight.rank; k++) {
        int64_t extent = c->shape.extent[c->shape.rank - 1 - k];
        int64_t own = c->weight.extent[c->weight.rank - 1 - k];
        at += own > 1 ? i % extent * stride : 0;
        i /= extent;
        stride *= own;
    }
    return weights[at];
}

static void check_norm(const struct axes_case *c)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = count_of(&c->shape), n = row_length(&c->shape, c->axes);
    fill(x, count);
    fill(w, count_of(&c->weight));
    tn_array *a = viewed(s, c, x), *b = array_of(s, dtype(), &c->weight, w);
    must(s, tn_eval(s, b));
    tn_array *mean = over(s, "mean", a, c->axes, 1), *d = bin(s, "subtract", a, mean);
    tn_array *variance = over(s, "mean", bin(s, "multiply", d, d), c->axes, 1);
    tn_array *scale = un(s, "rsqrt", bin(s, "add", variance, tn_float(s, 1e-5)));
    tn_array *y = bin(s, "multiply", bin(s, "multiply", d, scale), b);
    uint64_t before = stats_of(runtime).steps;
    must(s, tn_eval(s, y));
    uint64_t steps = stats_of(runtime).steps - before;
    cr_assert(c->steps == 0 || steps == c->steps, "%s: %llu steps, expected %llu", c->what,
              (unsigned long long)steps, (unsigned long long)c->steps);
    read_doubles(s, y, got, count);
    for (int64_t i = 0; i < count; i++) {
        const double *row = x + i / n * n;
        double middle = sum_of(row, n) / (double)n, squares = 0;
        for (int64_t k = 0; k < n; k++)
            squares += (row[k] - middle) * (row[k] - middle);
        want[i] = (x[i] - middle) / sqrt(squares / (double)n + 1e-5) * weight_at(c, w, i);
        cr_assert(fabs(got[i] - want[i]) <= bound() * (1 + fabs(want[i])),
                  "%s: [%lld] is %g, expected %g", c->what, (long long)i, got[i], want[i]);
    }
    tn_scope_close(s);
}

Test(rows_axes, norms_over_several_axes)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_norm(&cases[i]);
}

// What reads the values of rows alone joins no reduction of uneven rows.
Test(rows_axes, values_of_uneven_rows_are_read)
{
    static const struct axes_case swapped = {"", {3, 0, {48, 6, 16}}, 2, SWAPPED, {0}, 0};
    tn_scope *s = tn_scope_open(runtime);
    enum { ROWS = 48, N = 96 };
    fill(x, ROWS * N);
    tn_array *sum = over(s, "sum", viewed(s, &swapped, x), 2, 0);
    read_doubles(s, un(s, "negative", sum), got, ROWS);
    for (int i = 0; i < ROWS; i++)
        cr_assert(fabs(got[i] + sum_of(x + i * N, N)) <= bound() * N);
    tn_scope_close(s);
}

// exp(u) * v, one element a row, beside the greatest square of the row: before it or
// behind, with the row's axis or without; of rows that are too short for some devices, too.
Test(rows_axes, what_has_an_element_a_row_joins_the_row)
{
    static const struct {
        int64_t columns;
        bool keeps, is_first, is_wanted;
        uint64_t steps; // 0: open
    } table[] = {{96, false, false, false, 1}, {96, false, true, false, 1},
                 {96, true, true, true, 1},    {96, true, false, true, 1},
                 {3, true, true, false, 0},    {1, true, false, true, 0}};
    enum { ROWS = 24 };
    for (size_t t = 0; t < sizeof(table) / sizeof(*table); t++) {
        int64_t n = table[t].columns;
        tn_scope *s = tn_scope_open(runtime);
        fill(x, ROWS * n);
        fill(w, 2 * ROWS);
        const tn_shape *one = table[t].keeps ? TN_SHAPE(ROWS, 1) : TN_SHAPE(ROWS);
        tn_array *a = array_of(s, dtype(), TN_SHAPE(ROWS, n), x);
        tn_array *u = array_of(s, dtype(), one, w),
                 *v = array_of(s, dtype(), one, w + ROWS);
        must(s, tn_eval(s, a, u, v));
        tn_array *single = bin(s, "multiply", un(s, "exp", u), v);
        tn_array *most = over(s, "max", un(s, "square", a), 1, table[t].keeps);
        tn_array *outputs[] = {table[t].is_first ? bin(s, "subtract", single, most)
                                                 : bin(s, "subtract", most, single),
                               single};
        uint64_t before = stats_of(runtime).steps;
        must(s, tn_eval_n(s, outputs, table[t].is_wanted ? 2 : 1));
        uint64_t steps = stats_of(runtime).steps - before;
        cr_assert(table[t].steps == 0 || steps == table[t].steps, "%zu: %llu steps", t,
                  (unsigned long long)steps);
        read_doubles(s, outputs[0], got, ROWS);
        for (int64_t i = 0; i < ROWS; i++) {
            double sign = table[t].is_first ? -1 : 1, squares = 0;
            for (int64_t k = 0; k < n; k++)
                squares = fmax(squares, x[i * n + k] * x[i * n + k]);
            double expected = sign * (squares - exp(w[i]) * w[ROWS + i]);
            cr_assert(fabs(got[i] - expected) <= bound() * (1 + fabs(expected)),
                      "%zu: [%lld] is %g, expected %g", t, (long long)i, got[i], expected);
        }
        tn_scope_close(s);
    }
}

// Rows of one and of two axes in one graph; elements and values of rows, with and without
// their axes, as outputs; two arrays that meet in a reduction.
Test(rows_axes, groups_keep_to_one_kind_of_row)
{
    tn_scope *s = tn_scope_open(runtime);
    enum { ROWS = 24, B = 5, N = 16, EACH = B * N };
    fill(x, ROWS * EACH);
    fill(w, ROWS * EACH);
    tn_array *a = array_of(s, dtype(), TN_SHAPE(ROWS, B, N), x);
    tn_array *b = array_of(s, dtype(), TN_SHAPE(ROWS, B, N), w);
    must(s, tn_eval(s, a, b));
    tn_array *e = un(s, "exp", a), *f = un(s, "square", b);
    tn_array *product = bin(s, "multiply", e, f);
    tn_array *both = over(s, "sum", product, 2, 0), *most = over(s, "max", e, 2, 1);
    tn_array *short_rows = over(s, "sum", e, 1, 0);
    tn_array *shares = bin(s, "divide", product, over(s, "sum", product, 2, 1));
    tn_array *outputs[] = {both, most, short_rows, shares};
    must(s, tn_eval_n(s, outputs, 4));
    static double sums[ROWS], greatests[ROWS], shorts[ROWS * B];
    read_doubles(s, both, sums, ROWS);
    read_doubles(s, most, greatests, ROWS);
    read_doubles(s, short_rows, shorts, ROWS * B);
    read_doubles(s, shares, got, ROWS * EACH);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int k = 0; k < EACH; k++)
            sum += exp(x[i * EACH + k]) * w[i * EACH + k] * w[i * EACH + k];
        cr_assert(fabs(sums[i] - sum) <= bound() * sum);
        cr_assert(fabs(greatests[i] - exp(greatest(x + i * EACH, EACH))) < bound());
        for (int k = 0; k < EACH; k++) {
            double share = exp(x[i * EACH + k]) * w[i * EACH + k] * w[i * EACH + k] / sum;
            cr_assert(fabs(got[i * EACH + k] - share) <= bound() * share);
        }
        for (int k = 0; k < B; k++) {
            double part = 0;
            for (int j = 0; j < N; j++)
                part += exp(x[(i * B + k) * N + j]);
            cr_assert(fabs(shorts[i * B + k] - part) <= bound() * part);
        }
    }
    tn_scope_close(s);
}
