// SPDX-License-Identifier: MIT
// Expressions that reduce over rows: derivatives against finite differences, batches
// against slices, and row programs that the scheduler makes of base operators.
#include "rows.h"

TestSuite(rows_rules, .init = open_runtime, .fini = teardown);

// --- derivatives and batches -----------------------------------------------------------

static tn_array *apply(tn_scope *s, const char *text, tn_array *a, tn_array *b,
                       int32_t axis)
{
    tn_array *y = tn_expr(s, text, TN_IN(a, b), tn_attrs("axis", axis));
    if (!y)
        cr_fatal("%s: %s", text, tn_scope_error(s));
    return y;
}

// The sum over the result times fixed weights, on the host in f64.
static double loss_of(const char *text, const tn_shape *shape, const tn_shape *w_shape,
                      int32_t axis, const double *x_at, const double *w_at, const double *c,
                      int64_t count)
{
    static double out[MOST];
    tn_scope *s = tn_scope_open(runtime);
    read_doubles(s,
                 apply(s, text, tn_from_data(s, TN_F64, shape, x_at),
                       tn_from_data(s, TN_F64, w_shape, w_at), axis),
                 out, count);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += c[i] * out[i];
    tn_scope_close(s);
    return sum;
}

// `which`: 0 for x, 1 for w.
static void check_gradient(int e, int k, int which)
{
    static double c[MOST], gradient[MOST];
    tn_scope *s = tn_scope_open(runtime);
    const tn_shape *shape = &shapes[k].shape;
    int32_t axis = shapes[k].axis;
    const char *text = expressions[e].text;
    tn_shape w_shape = weight_shape(shape, axis);
    int64_t count = count_of(shape), n = w_shape.extent[0], size = which ? n : count;
    fill(x, count);
    fill(w, n);
    fill(c, count);
    tn_array *in[2] = {tn_from_data(s, TN_F64, shape, x),
                       tn_from_data(s, TN_F64, &w_shape, w)};
    tn_array *y = apply(s, text, in[0], in[1], axis), *g = NULL, *t = NULL;
    tn_array *cotangent = tn_from_data(s, TN_F64, shape, c);
    must(s, tn_vjp(s, &y, &cotangent, 1, &in[which], 1, &g));
    read_doubles(s, g, gradient, size);
    double *at = which ? w : x, pushed = 0;
    for (int64_t i = 0; i < size; i++) { // forward mode: all ones
        got[i] = 1;
        pushed += gradient[i];
    }
    tn_array *ones = tn_from_data(s, TN_F64, which ? &w_shape : shape, got);
    must(s, tn_jvp(s, &y, 1, &in[which], &ones, 1, &t));
    read_doubles(s, t, want, count);
    double forward = 0;
    for (int64_t i = 0; i < count; i++)
        forward += c[i] * want[i];
    cr_assert(fabs(forward - pushed) <= 1e-9 * (1 + fabs(pushed)),
              "%s, shape %d, input %d: jvp gives %.10g, vjp %.10g", text, k, which, forward,
              pushed);
    for (int64_t i = 0; i < size; i++) {
        double kept = at[i], h = 1e-5;
        at[i] = kept + h;
        double high = loss_of(text, shape, &w_shape, axis, x, w, c, count);
        at[i] = kept - h;
        double low = loss_of(text, shape, &w_shape, axis, x, w, c, count);
        at[i] = kept;
        double expected = (high - low) / (2 * h);
        if (!(fabs(gradient[i] - expected) <= 1e-6 * (1 + fabs(expected))))
            cr_fatal("%s, shape %d: gradient of %s[%lld] is %.9g, expected %.9g", text, k,
                     which ? "w" : "x", (long long)i, gradient[i], expected);
    }
    tn_scope_close(s);
}

Test(rows_rules, derivatives_agree_with_finite_differences)
{
    if (!has_f64())
        cr_skip("differences need f64");
    for (int e = 0; e < NUM_EXPRESSIONS; e++)
        for (int k = 0; k < 5; k++)
            for (int which = 0; which < 2; which++)
                check_gradient(e, k, which);
}

// Second derivatives: the gradient of a sum of gradients.
Test(rows_rules, derivatives_have_derivatives)
{
    if (!has_f64())
        cr_skip("differences need f64");
    static const char text[] = "x, w -> e = exp(x - max(x)); e / sum(e) * w";
    double at[6], c[6], h = 1e-5, ends[2][6], g2[6];
    fill(at, 6);
    fill(c, 6);
    for (int end = 0; end < 3; end++) {
        tn_scope *s = tn_scope_open(runtime);
        double moved[6];
        memcpy(moved, at, sizeof(moved));
        moved[2] += end == 0 ? -h : end == 1 ? h : 0;
        tn_array *a = tn_from_data(s, TN_F64, TN_SHAPE(2, 3), moved), *g, *gg;
        tn_array *b = tn_from_data(s, TN_F64, TN_SHAPE(2, 3), c);
        tn_array *y = apply(s, text, a, b, -1),
                 *one = tn_from_data(s, TN_F64, TN_SHAPE(2, 3), c);
        must(s, tn_vjp(s, &y, &one, 1, &a, 1, &g));
        if (end < 2) {
            read_doubles(s, g, ends[end], 6);
        } else {
            tn_array *weighted = tn_op(s, "multiply", TN_IN(g, b), TN_NO_ATTRS);
            tn_array *sum = tn_op(s, "sum", TN_IN(weighted), TN_NO_ATTRS);
            must(s, tn_vjp(s, &sum, NULL, 1, &a, 1, &gg));
            read_doubles(s, gg, g2, 6);
        }
        tn_scope_close(s);
    }
    double expected = 0;
    for (int i = 0; i < 6; i++)
        expected += c[i] * (ends[1][i] - ends[0][i]) / (2 * h);
    cr_assert(fabs(g2[2] - expected) < 1e-6 * (1 + fabs(expected)), "%g, expected %g",
              g2[2], expected);
}

// At a zero, and where two elements are the greatest.
Test(rows_rules, derivatives_at_zeros_and_ties)
{
    tn_scope *s = tn_scope_open(runtime);
    static const float data[] = {0, 2, 3, 0, 0, 5, 4, 4, 1},
                       c[9] = {1, 0, 0, 1, 0, 0, 1, 0, 0};
    static const float of_prod[] = {6, 0, 0, 0, 0, 0, 4, 4, 16};
    static const float of_max[] = {0, 0, 1, 0, 0, 1, 0.5f, 0.5f, 0};
    static const char *const texts[] = {"x -> prod(x)", "x -> max(x)"};
    for (int i = 0; i < 2; i++) {
        float out[9];
        tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(3, 3), data), *g;
        tn_array *y = tn_expr(s, texts[i], TN_IN(a), TN_NO_ATTRS);
        tn_array *one = tn_from_data(s, TN_F32, TN_SHAPE(3, 3), c);
        must(s, tn_vjp(s, &y, &one, 1, &a, 1, &g));
        must(s, tn_read(s, g, out, sizeof(out)));
        for (int k = 0; k < 9; k++)
            cr_assert(fabsf(out[k] - (i ? of_max : of_prod)[k]) < 1e-6f, "%s [%d]: %g",
                      texts[i], k, (double)out[k]);
    }
    tn_scope_close(s);
}

struct slice {
    const char *text;
    int32_t axis;
};

static tn_status slice_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    const struct slice *slice = user;
    (void)num_in, (void)num_out;
    out[0] = tn_expr(s, slice->text, TN_IN(in[0], in[1]), tn_attrs("axis", slice->axis));
    return out[0] ? TN_OK : TN_ERR_ARGUMENT;
}

// The batch is the last axis of x, so that it is moved; w is the same for each slice.
Test(rows_rules, batches_agree_with_slices)
{
    enum { ROWS = 3, WIDTH = 40, BATCH = 5, SLICE = ROWS * WIDTH };
    static const int32_t axes[] = {0, 1, -1, -2};
    static float data[SLICE * BATCH], weights[SLICE], whole[SLICE * BATCH], part[SLICE];
    for (int i = 0; i < SLICE * BATCH; i++)
        data[i] = (float)draw();
    for (int i = 0; i < SLICE; i++)
        weights[i] = (float)draw();
    for (int e = 0; e < NUM_EXPRESSIONS; e++)
        for (int a = 0; a < 4; a++) {
            tn_scope *s = tn_scope_open(runtime);
            struct slice slice = {expressions[e].text, axes[a]};
            tn_array *in[2] = {tn_from_data(s, TN_F32, TN_SHAPE(ROWS, WIDTH, BATCH), data),
                               tn_from_data(s, TN_F32, TN_SHAPE(ROWS, WIDTH), weights)};
            tn_array *out;
            must(s, tn_vmap_call(s, slice_body, &slice, in, (int32_t[]){2, -1}, 2, &out,
                                 (int32_t[]){0}, 1));
            must(s, tn_read(s, out, whole, sizeof(whole)));
            for (int b = 0; b < BATCH; b++) {
                float one[SLICE];
                for (int i = 0; i < SLICE; i++)
                    one[i] = data[i * BATCH + b];
                tn_array *x1 = tn_from_data(s, TN_F32, TN_SHAPE(ROWS, WIDTH), one);
                tn_array *y =
                    tn_expr(s, slice.text, TN_IN(x1, in[1]), tn_attrs("axis", slice.axis));
                must(s, tn_read(s, y, part, sizeof(part)));
                for (int i = 0; i < SLICE; i++)
                    cr_assert(fabsf(whole[b * SLICE + i] - part[i]) <= 1e-5f,
                              "%s, axis %d, slice %d [%d]: %g, expected %g", slice.text,
                              slice.axis, b, i, (double)whole[b * SLICE + i],
                              (double)part[i]);
            }
            tn_scope_close(s);
        }
}

// --- fusion ----------------------------------------------------------------------------

static tn_array *over_last(tn_scope *s, const char *op, tn_array *a, int keepdims)
{
    return tn_op(s, op, TN_IN(a), tn_attrs("axis", TN_INTS(-1), "keepdims", keepdims));
}

static tn_array *built_layer_norm(tn_scope *s, tn_array *a, tn_array *b)
{
    tn_array *d = bin(s, "subtract", a, over_last(s, "mean", a, 1));
    tn_array *var = over_last(s, "mean", bin(s, "multiply", d, d), 1);
    tn_array *scale = un(s, "rsqrt", bin(s, "add", var, tn_float(s, 1e-5)));
    return bin(s, "add", bin(s, "multiply", bin(s, "multiply", d, scale), b), b);
}

// With reductions that drop their axis, and views that bring it back.
static tn_array *built_softmax(tn_scope *s, tn_array *a, tn_array *b)
{
    tn_array *scaled = bin(s, "multiply", a, tn_float(s, 1));
    const tn_attr_list last = tn_attrs("axis", TN_INTS(-1));
    tn_array *most = tn_op(s, "expand_dims", TN_IN(over_last(s, "max", scaled, 0)), last);
    tn_array *e = un(s, "exp", bin(s, "subtract", scaled, most));
    tn_array *sum = tn_op(s, "expand_dims", TN_IN(over_last(s, "sum", e, 0)), last);
    return bin(s, "subtract", bin(s, "add", bin(s, "divide", e, sum), b), b);
}

static void check_built(tn_array *(*build)(tn_scope *, tn_array *, tn_array *),
                        row_oracle *oracle, const tn_shape *shape, uint64_t steps)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = count_of(shape), n = shape->extent[shape->rank - 1];
    fill(x, count);
    fill(w, n);
    tn_array *a = array_of(s, TN_F32, shape, x);
    tn_array *b = array_of(s, TN_F32, TN_SHAPE(n), w);
    read_back(s, a, x, count);
    read_back(s, b, w, n);
    must(s, tn_eval(s, a, b));
    tn_array *y = build(s, a, b);
    uint64_t before = stats_of(runtime).steps;
    must(s, tn_eval(s, y));
    if (steps > 0)
        cr_assert(eq(u64, stats_of(runtime).steps - before, steps));
    read_back(s, y, got, count);
    want_rows(oracle, shape, -1, x, w, want);
    for (int64_t i = 0; i < count; i++)
        cr_assert(fabs(got[i] - want[i]) <= 4e-5 * (1 + fabs(want[i])),
                  "[%lld] is %g, expected %g", (long long)i, got[i], want[i]);
    tn_scope_close(s);
}

Test(rows_rules, norms_of_base_operators_are_one_step)
{
    static const tn_shape many[] = {
        {2, 0, {64, 100}}, {3, 0, {4, 8, 64}}, {2, 0, {5, 20000}}};
    for (int i = 0; i < 3; i++) {
        check_built(built_layer_norm, layer_norm, &many[i], 1);
        check_built(built_softmax, softmax, &many[i], 1);
    }
    // Few long rows, one element a row, no element: as it was.
    static const tn_shape others[] = {{2, 0, {1, 90000}}, {2, 0, {9, 1}}, {1, 0, {50}}};
    for (int i = 0; i < 3; i++) {
        check_built(built_layer_norm, layer_norm, &others[i], 0);
        check_built(built_softmax, softmax, &others[i], 0);
    }
}

// Without an input nothing says how long a row is.
Test(rows_rules, sums_of_what_has_no_input)
{
    tn_scope *s = tn_scope_open(runtime);
    enum { ROWS = 3, N = 64 };
    tn_array *count = tn_op(s, "arange", NULL, 0, tn_attrs("stop", (double)(ROWS * N)));
    tn_array *a = tn_op(s, "reshape", TN_IN(count), tn_attrs("shape", TN_INTS(ROWS, N)));
    tn_array *b = bin(s, "multiply", a, tn_float(s, 2));
    tn_array *sum = un(s, "sqrt", over_last(s, "sum", b, 0));
    double out[ROWS];
    read_doubles(s, sum, out, ROWS);
    for (int i = 0; i < ROWS; i++) {
        double expected = sqrt(2.0 * N * (i * N + (N - 1) / 2.0));
        cr_assert(fabs(out[i] - expected) < 1e-3 * expected, "%g, expected %g", out[i],
                  expected);
    }
    tn_scope_close(s);
}

// What rows give is read by others: outputs of one element a row, in both forms.
Test(rows_rules, values_of_rows_are_outputs)
{
    tn_scope *s = tn_scope_open(runtime);
    enum { ROWS = 48, N = 96 };
    fill(x, ROWS * N);
    tn_array *a = array_of(s, TN_F32, TN_SHAPE(ROWS, N), x);
    read_back(s, a, x, ROWS * N);
    must(s, tn_eval(s, a));
    tn_array *e = un(s, "exp", a);
    tn_array *sum = over_last(s, "sum", e, 0), *most = over_last(s, "max", e, 1);
    tn_array *log_sum = un(s, "log", sum);
    tn_array *outputs[] = {e, sum, most, log_sum};
    uint64_t before = stats_of(runtime).steps;
    must(s, tn_eval_n(s, outputs, 4));
    cr_assert(eq(u64, stats_of(runtime).steps - before, 1));
    static double sums[ROWS], greatests[ROWS], logs[ROWS];
    read_doubles(s, sum, sums, ROWS);
    read_doubles(s, most, greatests, ROWS);
    read_doubles(s, log_sum, logs, ROWS);
    for (int i = 0; i < ROWS; i++) {
        double row[N];
        for (int k = 0; k < N; k++)
            row[k] = exp(x[i * N + k]);
        cr_assert(fabs(sums[i] - sum_of(row, N)) < 1e-4);
        cr_assert(fabs(greatests[i] - greatest(row, N)) < 1e-6);
        cr_assert(fabs(logs[i] - log(sum_of(row, N))) < 1e-5);
    }
    tn_scope_close(s);
}
