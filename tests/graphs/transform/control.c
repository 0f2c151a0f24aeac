// SPDX-License-Identifier: MIT
// cond, while_loop, scan and checkpoint on a backend: values, which branch runs,
// derivatives of both kinds, batches, plans and memory, and what is refused.
#include <tenon/control.h>
#include "../support/common.h"

static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static tn_scope *s;

static void open_scope(void)
{
    need_device(backend());
    runtime = open_on(backend());
    s = tn_scope_open(runtime);
}

static void close_scope(void)
{
    tn_scope_close(s);
    cr_assert_eq(tn_runtime_close(runtime), TN_OK, "%s", tn_last_error());
}

TestSuite(control, .init = open_scope, .fini = close_scope);

static tn_array *floats(int64_t count, const float *data)
{
    return tn_from_data(s, TN_F32, TN_SHAPE(count), data);
}
#define F32S(...)                                                                          \
    floats(sizeof((const float[]){__VA_ARGS__}) / sizeof(float),                           \
           (const float[]){__VA_ARGS__})

static void check_floats(tn_array *x, int64_t count, const float *wanted, int line)
{
    float got[64];
    cr_assert_not_null(x, "line %d: %s", line, tn_scope_error(s));
    must(s, tn_read(s, x, got, (uint64_t)count * sizeof(*got)));
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(got[i], wanted[i], 1e-5 * (1 + fabsf(wanted[i])),
                           "line %d: element %d is %g, expected %g", line, (int)i, got[i],
                           wanted[i]);
}
#define SAME(x, ...)                                                                       \
    check_floats(x, sizeof((const float[]){__VA_ARGS__}) / sizeof(float),                  \
                 (const float[]){__VA_ARGS__}, __LINE__)

// Runs `text` over all inputs that the expression names first.
static tn_array *expr(tn_scope *scope, const char *text, const tn_array *a,
                      const tn_array *b)
{
    return tn_expr(scope, text, (const tn_array *const[]){a, b}, b ? 2 : 1, TN_NO_ATTRS);
}

#define BODY(name)                                                                         \
    static tn_status name(tn_scope *scope, tn_array *const *in, uint64_t num_in,           \
                          tn_array **out, uint64_t num_out, void *user)
#define UNUSED (void)scope, (void)in, (void)num_in, (void)out, (void)num_out, (void)user

static tn_array *sum_of(const tn_array *x)
{
    return tn_op(s, "base.sum", &x, 1, TN_NO_ATTRS);
}

static tn_array *scalar(float value)
{
    return tn_from_data(s, TN_F32, TN_SCALAR, &value);
}

static tn_array *flag(int value)
{
    const uint8_t byte = value != 0;
    return tn_from_data(s, TN_BOOL, TN_SCALAR, &byte);
}

// The scope's failure has this text in it.
static void says(const char *text)
{
    cr_assert_not_null(strstr(tn_scope_error(s), text), "got: %s", tn_scope_error(s));
}

// --- cond -------------------------------------------------------------------------------

// `user` is an array of the enclosing scope.
BODY(times_weight)
{
    UNUSED;
    out[0] = expr(scope, "x, w -> x * w", in[0], user);
    return TN_OK;
}
BODY(minus_one)
{
    UNUSED;
    out[0] = expr(scope, "x -> x - 1", in[0], NULL);
    return TN_OK;
}
BODY(long_way)
{
    UNUSED;
    tn_array *x = in[0];
    for (int i = 0; i < 4; i++) // running sums are steps of their own
        x = expr(scope, "x, m -> x + m", x,
                 tn_op(scope, "base.cumsum", TN_IN(x), TN_NO_ATTRS));
    out[0] = x;
    return TN_OK;
}
BODY(wrong_dtype)
{
    UNUSED;
    out[0] = tn_op(scope, "base.astype", TN_IN(in[0]), tn_attrs("dtype", (int64_t)TN_F64));
    return TN_OK;
}
BODY(wrong_type)
{
    UNUSED;
    out[0] = tn_op(scope, "base.sum", TN_IN(in[0]), TN_NO_ATTRS);
    return TN_OK;
}

// d sum(c * y) / d wrt
static void grads_of(tn_array *y, tn_array *c, tn_array *const *wrt, uint64_t n,
                     tn_array **g)
{
    tn_array *loss = sum_of(expr(s, "y, c -> y * c", y, c));
    must(s, tn_vjp(s, &loss, NULL, 1, wrt, n, g));
}

Test(control, a_condition_gives_one_branch_and_its_gradients)
{
    for (int taken = 0; taken < 2; taken++) {
        tn_array *x = F32S(1, 2, 3), *w = F32S(2, 4, 8), *y, *g[2];
        must(s,
             tn_cond_call(s, flag(taken), times_weight, minus_one, w, TN_ARRAYS(x), &y, 1));
        grads_of(y, F32S(1, 1, 10), (tn_array *[]){x, w}, 2, g);
        if (taken) {
            SAME(y, 2, 8, 24);
            SAME(g[0], 2, 4, 80);
            SAME(g[1], 1, 2, 30);
        } else {
            SAME(y, 0, 1, 2);
            SAME(g[0], 1, 1, 10);
            SAME(g[1], 0, 0, 0);
        }
    }
    // one plan of the whole and one of each branch serve both values of the flag
    cr_assert_leq(stats_of(runtime).plans_made, 16);
}

Test(control, only_the_taken_branch_runs)
{
    uint64_t steps[2];
    for (int taken = 0; taken < 2; taken++) {
        tn_array *x = F32S(1, 2, 3), *y;
        must(s,
             tn_cond_call(s, flag(taken), long_way, minus_one, NULL, TN_ARRAYS(x), &y, 1));
        uint64_t before = stats_of(runtime).steps;
        must(s, tn_eval(s, y));
        steps[taken] = stats_of(runtime).steps - before;
    }
    cr_assert_eq(steps[0], 1, "got %d", (int)steps[0]);
    cr_assert_geq(steps[1], 4, "got %d", (int)steps[1]);
}

Test(control, a_condition_has_tangents_and_batches)
{
    tn_array *x = F32S(1, 2, 3), *w = F32S(2, 4, 8), *y, *t;
    must(s, tn_cond_call(s, flag(1), times_weight, minus_one, w, TN_ARRAYS(x), &y, 1));
    must(s, tn_jvp(s, &y, 1, (tn_array *[]){x, w},
                   (tn_array *[]){F32S(1, 1, 1), F32S(1, 0, 1)}, 2, &t));
    SAME(t, 3, 4, 11);
}

static tn_array *weights;
BODY(cond_of_slice)
{
    UNUSED;
    return tn_cond_call(scope, in[1], times_weight, minus_one, weights, TN_ARRAYS(in[0]),
                        out, 1);
}

Test(control, slices_choose_for_themselves)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6}), *y;
    tn_array *flags = tn_from_data(s, TN_BOOL, TN_SHAPE(2), (uint8_t[]){1, 0});
    weights = F32S(2, 4, 8);
    must(s, tn_vmap_call(s, cond_of_slice, NULL, (tn_array *[]){x, flags}, NULL, 2, &y,
                         NULL, 1));
    SAME(y, 2, 8, 24, 3, 4, 5);
    must(s, tn_vmap_call(s, cond_of_slice, NULL, (tn_array *[]){x, flag(1)},
                         (int32_t[]){0, -1}, 2, &y, NULL, 1));
    SAME(y, 2, 8, 24, 8, 20, 48);
}

Test(control, branches_of_two_types_are_refused)
{
    tn_array *x = F32S(1, 2), *y;
    cr_assert_eq(
        tn_cond_call(s, flag(1), minus_one, wrong_dtype, NULL, TN_ARRAYS(x), &y, 1),
        TN_ERR_ARGUMENT);
    says("output 0 is f32[2] by then and f64[2] by otherwise");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_cond_call(s, flag(1), minus_one, wrong_type, NULL, TN_ARRAYS(x), &y, 1),
                 TN_ERR_ARGUMENT);
    says("output 0 is f32[2] by then and f32 by otherwise");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_cond_call(s, x, minus_one, minus_one, NULL, TN_ARRAYS(x), &y, 1),
                 TN_ERR_ARGUMENT);
    says("pred is f32, expected bool");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_op_n(s, "base.cond", TN_IN(flag(1), x), TN_NO_ATTRS, &y, 1),
                 TN_ERR_ARGUMENT);
    says("'then' is missing, expected a graph");
}

// --- while_loop -------------------------------------------------------------------------

BODY(is_large)
{
    UNUSED;
    out[0] = expr(scope, "x -> x > 1", in[0], NULL);
    return TN_OK;
}
BODY(halve_and_count)
{
    UNUSED;
    out[0] = expr(scope, "x -> x / 2", in[0], NULL);
    out[1] = expr(scope, "n, one -> n + one", in[1], tn_i64(scope, 1));
    return TN_OK;
}
BODY(halve)
{
    UNUSED;
    out[0] = expr(scope, "x -> x / 2", in[0], NULL);
    return TN_OK;
}
BODY(multiply)
{
    UNUSED;
    out[0] = expr(scope, "x, w -> x * w", in[0], user);
    return TN_OK;
}

Test(control, a_loop_runs_as_long_as_its_condition_holds)
{
    for (int i = 0; i < 2; i++) {
        tn_array *x = tn_f32(s, i ? 0.5f : 100), *y[2];
        must(s, tn_while_call(s, is_large, halve_and_count, NULL, -1,
                              TN_ARRAYS(x, tn_i64(s, 0)), y));
        cr_assert_eq(tn_item(s, y[1]), i ? 0 : 7);
        cr_assert_float_eq(tn_item(s, y[0]), i ? 0.5 : 0.78125, 1e-6);
    }
}

Test(control, a_loop_with_a_bound_has_gradients)
{
    // without a condition: x w^3. With one: it stops after two of at most five.
    tn_array *x = F32S(2), *w = F32S(0.5f), *y, *g[2];
    must(s, tn_while_call(s, NULL, multiply, w, 3, TN_ARRAYS(x), &y));
    SAME(y, 0.25f);
    grads_of(y, F32S(1), (tn_array *[]){x, w}, 2, g);
    SAME(g[0], 0.125f);
    SAME(g[1], 1.5f);
    tn_array *z = tn_f32(s, 3), *one = tn_op(s, "base.sum", TN_IN(w), TN_NO_ATTRS);
    must(s, tn_while_call(s, is_large, multiply, one, 5, TN_ARRAYS(z), &y));
    cr_assert_float_eq(tn_item(s, y), 0.75, 1e-6);
    must(s, tn_vjp(s, &y, NULL, 1, (tn_array *[]){z, w}, 2, g));
    cr_assert_float_eq(tn_item(s, g[0]), 0.25, 1e-6);
    SAME(g[1], 3);
}

Test(control, a_loop_without_a_bound_has_tangents_alone)
{
    tn_array *x = scalar(3), *w = scalar(0.5f), *y, *g;
    must(s, tn_while_call(s, is_large, multiply, w, -1, TN_ARRAYS(x), &y));
    must(s, tn_jvp(s, &y, 1, (tn_array *[]){x, w},
                   (tn_array *[]){tn_f32(s, 1), tn_f32(s, 2)}, 2, &g));
    cr_assert_float_eq(tn_item(s, g), 0.25 + 2 * 3, 1e-5); // x w^2: w^2 dx + 2 x w dw
    cr_assert_eq(tn_vjp(s, &y, NULL, 1, &x, 1, &g), TN_ERR_UNSUPPORTED);
    says("a loop without a bound has no reverse-mode derivative");
}

Test(control, a_body_that_changes_types_is_refused)
{
    tn_array *x = F32S(1, 2, 3), *y;
    cr_assert_eq(tn_while_call(s, NULL, wrong_type, NULL, 3, TN_ARRAYS(x), &y),
                 TN_ERR_ARGUMENT);
    says("output 0 of the body is f32, expected f32[3] as carried value 0");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_while_call(s, NULL, wrong_dtype, NULL, 3, TN_ARRAYS(x), &y),
                 TN_ERR_ARGUMENT);
    says("output 0 of the body is f64[3], expected f32[3] as carried value 0");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_while_call(s, minus_one, minus_one, NULL, 3, TN_ARRAYS(x), &y),
                 TN_ERR_ARGUMENT);
    says("cond gives f32[3], expected one bool");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_while_call(s, NULL, minus_one, NULL, -1, TN_ARRAYS(x), &y),
                 TN_ERR_ARGUMENT);
    says("the loop would have no end");
}

BODY(loop_of_slice)
{
    UNUSED;
    return tn_while_call(scope, is_large, halve_and_count, NULL, -1,
                         (tn_array *[]){in[0], tn_i64(scope, 0)}, 2, out);
}

Test(control, slices_stop_for_themselves)
{
    int64_t counts[3];
    tn_array *x = F32S(100, 0.5f, 5), *y[2];
    must(s, tn_vmap_call(s, loop_of_slice, NULL, &x, NULL, 1, y, NULL, 2));
    SAME(y[0], 0.78125f, 0.5f, 0.625f);
    must(s, tn_read(s, y[1], counts, sizeof(counts)));
    cr_assert(counts[0] == 7 && counts[1] == 0 && counts[2] == 3);
}

BODY(inner_condition)
{
    UNUSED;
    tn_array *large = expr(scope, "x -> x > 4", in[0], NULL);
    return tn_cond_call(scope, large, halve, minus_one, NULL, in, 1, out, 1);
}

Test(control, a_condition_within_a_loop)
{
    tn_array *x = tn_f32(s, 10), *y; // 10 5 2.5 1.5 0.5
    must(s, tn_while_call(s, is_large, inner_condition, NULL, -1, TN_ARRAYS(x), &y));
    cr_assert_float_eq(tn_item(s, y), 0.5, 1e-6);
}

BODY(put_row)
{
    UNUSED;
    tn_array *row =
        tn_op(scope, "base.full", NULL, 0, tn_attrs("shape", TN_INTS(1, 16), "value", 3.0));
    out[0] =
        tn_op(scope, "base.dynamic_slice_update", TN_IN(in[0], row, in[1]), TN_NO_ATTRS);
    out[1] = expr(scope, "n, one -> n + one", in[1], tn_i64(scope, 1));
    return TN_OK;
}

Test(control, a_loop_updates_in_place)
{
    tn_array *x = tn_op(s, "base.full", NULL, 0, tn_attrs("shape", TN_INTS(64, 16))), *y[2];
    tn_array *start = tn_from_data(s, TN_I64, TN_SCALAR, (int64_t[]){0});
    must(s, tn_eval(s, x));
    must(s, tn_while_call(s, NULL, put_row, NULL, 40, TN_ARRAYS(x, start), y));
    uint64_t before = stats_of(runtime).bytes_written;
    must(s, tn_eval(s, y[0]));
    // the first iteration copies 4096 bytes, as x is the application's; others write a row
    uint64_t written = stats_of(runtime).bytes_written - before;
    cr_assert_leq(written, 2 * 4096 + 40 * 400, "wrote %llu", (unsigned long long)written);
    cr_assert_float_eq(tn_item(s, sum_of(y[0])), 40 * 16 * 3, 1e-3);
}

// --- scan -------------------------------------------------------------------------------

// carry' = carry * k + x; y = carry * x
BODY(recurrence)
{
    UNUSED;
    out[0] = tn_expr(scope, "c, k, x -> c * k + x", TN_IN(in[0], user, in[1]), TN_NO_ATTRS);
    out[1] = expr(scope, "c, x -> c * x", in[0], in[1]);
    return TN_OK;
}

static void scan_recurrence(tn_array *c, tn_array *x, tn_array *k, int reverse,
                            tn_array **out)
{
    must(s, tn_scan_call(s, recurrence, k,
                         &(tn_scan_call_options){.carries = 1, .reverse = reverse},
                         TN_ARRAYS(c, x), out, 2));
}

Test(control, a_scan_carries_and_stacks)
{
    tn_array *x = F32S(1, 2, 3), *k = scalar(2), *out[2];
    scan_recurrence(scalar(1), x, k, 0, out); // carries 1 3 8 19
    SAME(out[1], 1, 6, 24);
    cr_assert_float_eq(tn_item(s, out[0]), 19, 1e-5);
    scan_recurrence(scalar(1), x, k, 1, out); // 1 5 12 25
    SAME(out[1], 12, 10, 3);
    cr_assert_float_eq(tn_item(s, out[0]), 25, 1e-5);
}

// The same by hand, for three positions.
static void unrolled(tn_array *c, tn_array *x, tn_array *k, tn_array **loss)
{
    tn_array *sum = scalar(0);
    for (int64_t i = 0; i < 3; i++) {
        tn_array *part = tn_op(s, "base.slice", TN_IN(x),
                               tn_attrs("start", TN_INTS(i), "stop", TN_INTS(i + 1)));
        tn_array *at = tn_op(s, "base.sum", TN_IN(part), TN_NO_ATTRS);
        tn_array *y = expr(s, "c, x -> c * x", c, at);
        sum = tn_expr(s, "s, y -> s + y * y", TN_IN(sum, y), TN_NO_ATTRS);
        c = tn_expr(s, "c, k, x -> c * k + x", TN_IN(c, k, at), TN_NO_ATTRS);
    }
    *loss = expr(s, "s, c -> s + c", sum, c);
}

Test(control, a_scan_has_first_and_second_derivatives)
{
    tn_array *c = scalar(1), *x = F32S(1, 2, 3), *k = scalar(2), *out[2], *loss[2],
             *g[2][3], *again[2];
    scan_recurrence(c, x, k, 0, out);
    loss[0] = expr(s, "s, c -> s + c", sum_of(expr(s, "y -> y * y", out[1], NULL)), out[0]);
    unrolled(c, x, k, &loss[1]);
    for (int i = 0; i < 2; i++) {
        must(s, tn_vjp(s, &loss[i], NULL, 1, (tn_array *[]){c, x, k}, 3, g[i]));
        tn_array *total =
            expr(s, "a, b -> a + b", sum_of(expr(s, "g -> g * g", g[i][1], NULL)),
                 expr(s, "a, b -> a * b", g[i][0], g[i][2]));
        must(s, tn_vjp(s, &total, NULL, 1, &k, 1, &again[i]));
    }
    must(s, tn_eval(s, g[0][0], g[0][1], g[0][2], g[1][0], g[1][1], g[1][2], again[0],
                    again[1]));
    for (int i = 0; i < 3; i++) {
        double a = tn_item(s, sum_of(g[0][i])), b = tn_item(s, sum_of(g[1][i]));
        cr_assert_float_eq(a, b, 1e-4 * (1 + fabs(b)), "gradient %d: %g, expected %g", i, a,
                           b);
    }
    double a = tn_item(s, again[0]), b = tn_item(s, again[1]);
    cr_assert_float_eq(a, b, 1e-4 * (1 + fabs(b)), "second: %g, expected %g", a, b);
    tn_array *t[2];
    for (int i = 0; i < 2; i++)
        must(s, tn_jvp(s, &loss[i], 1, (tn_array *[]){x, k},
                       (tn_array *[]){F32S(1, -1, 0.5f), scalar(1)}, 2, &t[i]));
    a = tn_item(s, t[0]), b = tn_item(s, t[1]);
    cr_assert_float_eq(a, b, 1e-4 * (1 + fabs(b)), "tangent: %g, expected %g", a, b);
}

Test(control, a_scan_over_no_positions_gives_what_it_carries)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        tn_array *c = scalar(3), *k = scalar(2), *out[2], *g[3], *t;
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(0), NULL), *total;
        scan_recurrence(c, x, k, reverse, out);
        SAME(out[0], 3);
        cr_assert_float_eq(tn_item(s, sum_of(out[1])), 0, 1e-6);
        total = expr(s, "a, b -> a * 5 + b", out[0], sum_of(out[1]));
        must(s, tn_vjp(s, &total, NULL, 1, (tn_array *[]){c, k, x}, 3, g));
        SAME(g[0], 5);
        SAME(g[1], 0);
        cr_assert_float_eq(tn_item(s, sum_of(g[2])), 0, 1e-6);
        must(s, tn_jvp(s, &total, 1, (tn_array *[]){c, k},
                       (tn_array *[]){scalar(7), scalar(1)}, 2, &t));
        SAME(t, 35);
    }
}

Test(control, a_loop_of_no_iterations_has_derivatives)
{
    tn_array *x = F32S(2, 3), *w = scalar(0.5f), *y, *g[2], *t;
    must(s, tn_while_call(s, NULL, multiply, w, 0, TN_ARRAYS(x), &y));
    SAME(y, 2, 3);
    grads_of(y, F32S(1, 4), (tn_array *[]){x, w}, 2, g);
    SAME(g[0], 1, 4);
    SAME(g[1], 0);
    must(s, tn_jvp(s, &y, 1, (tn_array *[]){x, w}, (tn_array *[]){F32S(6, 7), scalar(1)}, 2,
                   &t));
    SAME(t, 6, 7);
    must(s, tn_while_call(s, is_large, multiply, w, 0, TN_ARRAYS(scalar(9)), &y));
    must(s, tn_vjp(s, &y, NULL, 1, &w, 1, g));
    SAME(g[0], 0);
}

BODY(scan_of_slice)
{
    UNUSED;
    return tn_scan_call(scope, recurrence, user, &(tn_scan_call_options){.carries = 1}, in,
                        2, out, 2);
}

Test(control, slices_are_scanned)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3, 2), (float[]){1, 0, 2, 1, 3, 1}),
             *y[2];
    must(s, tn_vmap_call(s, scan_of_slice, scalar(2), (tn_array *[]){F32S(1, 2), x},
                         (int32_t[]){0, 1}, 2, y, NULL, 2));
    SAME(y[0], 19, 19);
    SAME(y[1], 1, 6, 24, 0, 4, 9);
    tn_array *none = tn_from_data(s, TN_F32, TN_SHAPE(0, 2), NULL);
    must(s, tn_vmap_call(s, scan_of_slice, scalar(2), (tn_array *[]){F32S(1, 2), none},
                         (int32_t[]){0, 1}, 2, y, NULL, 2));
    SAME(y[0], 1, 2);
}

Test(control, a_scan_says_what_does_not_fit)
{
    tn_array *out[2];
    cr_assert_eq(tn_scan_call(s, recurrence, scalar(1),
                              &(tn_scan_call_options){.carries = 1},
                              (tn_array *[]){F32S(1, 2), F32S(1, 2)}, 2, out, 2),
                 TN_OK);
    cr_assert_eq(tn_scan_call(s, wrong_type, NULL, &(tn_scan_call_options){.carries = 1},
                              (tn_array *[]){F32S(1, 2), F32S(1, 2)}, 2, out, 1),
                 TN_ERR_ARGUMENT);
    says("output 0 of the body is f32, expected f32[2]");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_scan_call(s, wrong_dtype, NULL,
                              &(tn_scan_call_options){.carries = 1, .length = 2},
                              TN_ARRAYS(F32S(1, 2)), out, 1),
                 TN_ERR_ARGUMENT);
    says("output 0 of the body is f64[2], expected f32[2]");
    tn_scope_clear_error(s);
    cr_assert_eq(tn_scan_call(s, multiply, scalar(1), NULL,
                              (tn_array *[]){F32S(1, 2), F32S(1, 2, 3)}, 2, out, 1),
                 TN_ERR_ARGUMENT);
    says("x 1 is f32[3], expected 2 slices");
}

// --- checkpoint -------------------------------------------------------------------------

BODY(deep_chain)
{
    UNUSED;
    tn_array *x = in[0];
    for (int i = 0; i < 10; i++)
        x = tn_op(scope, "base.matmul", TN_IN(expr(scope, "x -> sin(x)", x, NULL), in[1]),
                  TN_NO_ATTRS);
    out[0] = x;
    return TN_OK;
}

static uint64_t arena_bytes(tn_array *y)
{
    char *text = NULL;
    must(s, tn_explain(s, &y, 1, &text));
    uint64_t most = 0;
    for (const char *at = text; (at = strstr(at, "\"arena_bytes\": "));) {
        at += strlen("\"arena_bytes\": ");
        uint64_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    tn_text_free(text);
    return most;
}

Test(control, a_checkpoint_computes_again_and_keeps_less)
{
    uint64_t bytes[2];
    double sums[2];
    for (int i = 0; i < 2; i++) {
        // Values of more than 128 KiB: smaller ones keep their memory for some steps more.
        tn_array *x = ramp(s, 2304, 16, 0, 1e-4f), *w = ramp(s, 16, 16, 0.1f, -0.001f), *g;
        tn_array *y = x;
        for (int k = 0; k < 3; k++)
            if (i)
                must(s, tn_checkpoint_call(s, deep_chain, NULL, TN_ARRAYS(y, w), &y, 1));
            else
                must(s, deep_chain(s, (tn_array *[]){y, w}, 2, &y, 1, NULL));
        tn_array *loss = sum_of(y);
        must(s, tn_vjp(s, &loss, NULL, 1, &w, 1, &g));
        bytes[i] = arena_bytes(g);
        sums[i] = tn_item(s, sum_of(g));
    }
    cr_assert_float_eq(sums[0], sums[1], 1e-3 * fabs(sums[0]), "%g, expected %g", sums[1],
                       sums[0]);
    cr_assert_lt(bytes[1] * 3, bytes[0] * 2, "%llu bytes with, %llu without",
                 (unsigned long long)bytes[1], (unsigned long long)bytes[0]);
}

// --- functions --------------------------------------------------------------------------

BODY(loops)
{
    UNUSED;
    return tn_while_call(scope, is_large, halve_and_count, NULL, -1,
                         (tn_array *[]){in[0], tn_i64(scope, 0)}, 2, out);
}

Test(control, a_function_replays_its_loops)
{
    tn_function *f = NULL;
    must(NULL, tn_function_create(runtime, loops, NULL, NULL, &f));
    uint64_t made = 0;
    for (int i = 0; i < 5; i++) {
        tn_array *out[2];
        must(s, tn_function_call(f, s, (tn_array *[]){scalar((float)(1 << i))}, 1, out, 2));
        cr_assert_eq(tn_item(s, out[1]), i);
        if (i == 2)
            made = stats_of(runtime).plans_made;
    }
    cr_assert_eq(stats_of(runtime).plans_made, made);
    tn_function_destroy(f);
}
