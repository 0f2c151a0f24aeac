// SPDX-License-Identifier: MIT
// Evaluation: values, plans found again, equal nodes computed once, memory reused.
#include "../support/common.h"

TestSuite(eval, .init = setup, .fini = teardown);

Test(eval, an_expression_of_operators_computes)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 4, 8, 0, 1), *y = ramp(s, 4, 8, 1, 0.5f);
    tn_array *z = bin(s, "add", bin(s, "multiply", tn_float(s, 4), x),
                      bin(s, "multiply", tn_float(s, 2), y));
    float out[32];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 32; i++)
        cr_assert(out[i] == 4 * (float)i + 2 * (1 + 0.5f * (float)i));
    cr_assert(eq(int, tn_array_type(z)->dtype, TN_F32));
    tn_scope_close(s);
}

Test(eval, a_plan_is_found_again_with_other_data)
{
    tn_stats before = stats_of(runtime);
    for (int round = 0; round < 3; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 3, 5, (float)round, 1);
        tn_array *z = un(s, "exp", bin(s, "subtract", x, tn_float(s, 17)));
        float out[15];
        must(s, tn_read(s, z, out, sizeof(out)));
        for (int i = 0; i < 15; i++)
            cr_assert(fabsf(out[i] / expf((float)(round + i) - 17) - 1) < 1e-5f);
        tn_scope_close(s);
    }
    tn_stats after = stats_of(runtime);
    cr_assert(eq(u64, after.plans_made - before.plans_made, 1));
    cr_assert(eq(u64, after.plan_hits - before.plan_hits, 2));
}

// Of equal texts: attributes in another order, and derivatives of operators whose tables of
// attributes differ.
Test(eval, equal_expressions_with_other_attributes_are_other_graphs)
{
    const float one = 1, two = 2;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SCALAR, &two), *out[3], *slope;
    tn_array *y = tn_expr(s, "x -> a * x + b", TN_IN(x), tn_attrs("a", 3.0, "b", 10.0));
    cr_assert(eq(dbl, tn_item(s, y), 16));
    y = tn_expr(s, "x -> a * x + b", TN_IN(x), tn_attrs("b", 3.0, "a", 10.0));
    cr_assert(eq(dbl, tn_item(s, y), 23));
    tn_array *g = tn_from_data(s, TN_F32, TN_SCALAR, &one);
    must(s, tn_op_n(s, "optim.lion", TN_IN(x, g, g), tn_attrs("lr", 0.5), out, 2));
    must(s, tn_vjp(s, out, NULL, 1, &x, 1, &slope));
    cr_assert(eq(dbl, tn_item(s, slope), 1));
    must(s, tn_op_n(s, "optim.adamw", TN_IN(x, g, g, g, g), tn_attrs("lr", 0.5), out, 3));
    must(s, tn_vjp(s, out, NULL, 1, &x, 1, &slope));
    cr_assert(fabs(tn_item(s, slope) - 0.995) < 1e-6);
    tn_scope_close(s);
}

Test(eval, a_leaf_used_twice_is_another_graph_than_two_leaves)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 1, 1), *y = ramp(s, 2, 2, 10, 10);
    tn_array *xx = bin(s, "subtract", x, x), *xy = bin(s, "subtract", x, y);
    float a[4], b[4];
    must(s, tn_read(s, xx, a, sizeof(a)));
    must(s, tn_read(s, xy, b, sizeof(b)));
    for (int i = 0; i < 4; i++) {
        cr_assert(a[i] == 0);
        cr_assert(b[i] == -9.0f * (float)(i + 1));
    }
    tn_scope_close(s);
}

Test(eval, equal_nodes_are_computed_once)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *a = ramp(s, 16, 16, 0, 0.01f), *b = ramp(s, 16, 16, 1, -0.01f);
    tn_array *p = bin(s, "matmul", a, b), *q = bin(s, "matmul", a, b);
    tn_array *z = bin(s, "subtract", p, q);
    uint64_t before = stats_of(runtime).steps;
    float out[256];
    must(s, tn_read(s, z, out, sizeof(out)));
    cr_assert(eq(u64, stats_of(runtime).steps - before, 1)); // a matmul that subtracts
    for (int i = 0; i < 256; i++)
        cr_assert(out[i] == 0);
    tn_scope_close(s);
}

Test(eval, views_move_no_data)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 3, 4, 0, 1);
    tn_array *t = un(s, "transpose", x);
    must(s, tn_eval(s, x));
    uint64_t before = stats_of(runtime).steps;
    must(s, tn_eval(s, t));
    cr_assert(eq(u64, stats_of(runtime).steps, before));
    float out[12];
    must(s, tn_read(s, t, out, sizeof(out)));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            cr_assert(out[i * 3 + k] == (float)(k * 4 + i));
    tn_scope_close(s);
}

Test(eval, a_view_of_a_view_of_a_result_is_right)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = un(s, "negative", ramp(s, 4, 6, 0, 1));
    const tn_array *in = x;
    tn_array *sliced = tn_op(
        s, "slice", &in, 1,
        tn_attrs("start", TN_INTS(1, 5), "stop", TN_INTS(3, 0), "step", TN_INTS(1, -2)));
    tn_array *t = un(s, "transpose", sliced);
    in = t;
    tn_array *flat = tn_op(s, "reshape", &in, 1, tn_attrs("shape", TN_INTS(-1)));
    tn_array *sum = bin(s, "add", flat, tn_float(s, 0.5));
    const float expected[] = {-11, -17, -9, -15, -7, -13};
    cr_assert(eq(i64, tn_array_type(flat)->extent[0], 6));
    float out[6];
    must(s, tn_read(s, sum, out, sizeof(out)));
    for (int i = 0; i < 6; i++)
        cr_assert(out[i] == expected[i] + 0.5f);
    tn_scope_close(s);
}

Test(eval, memory_of_dead_values_is_used_again)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 256, 256, 0, 1e-5f), *y = x;
    must(s, tn_eval(s, x));
    uint64_t before = stats_of(runtime).buffer_bytes;
    for (int i = 0; i < 50; i++)
        y = bin(s, "matmul", y, x);
    must(s, tn_eval(s, y));
    uint64_t used = stats_of(runtime).buffer_bytes - before;
    uint64_t one = 256 * 256 * sizeof(float);
    check_within(u64, used, one, 4 * one); // the result, and two that take turns
    tn_scope_close(s);
}

static tn_array *kept(int64_t count)
{
    tn_scope *s = tn_scope_open(runtime);
    const tn_array *one = tn_f32(s, 1);
    tn_array *kept =
        tn_keep(s, tn_op(s, "broadcast_to", &one, 1, tn_attrs("shape", TN_INTS(count))));
    tn_scope_close(s);
    return kept;
}

// Spare buffers do not count, and may count again later. Small ones are counted in advance.
Test(eval, the_peak_is_the_most_in_use_at_once)
{
    enum { ONE = 4 << 20, SMALL = 128 << 10 }; // bytes
    tn_release(kept(ONE / 4));
    tn_array *two = kept(2 * ONE / 4);
    check_within(u64, stats_of(runtime).buffer_peak, 2 * ONE, 2 * ONE + SMALL);
    tn_array *one = kept(ONE / 4);
    uint64_t peak = stats_of(runtime).buffer_peak;
    check_within(u64, peak, 3 * ONE, 3 * ONE + SMALL);
    check_within(u64, stats_of(runtime).buffer_bytes, 3 * ONE, 3 * ONE + 64);
    tn_release(one);
    check_within(u64, stats_of(runtime).buffer_bytes, 2 * ONE, 2 * ONE + 64);
    one = kept(ONE / 4);
    cr_assert(eq(u64, stats_of(runtime).buffer_peak, peak));
    tn_release(one);
    tn_release(two);
    cr_assert(eq(u64, stats_of(runtime).buffer_bytes, 0));
    cr_assert(eq(u64, stats_of(runtime).buffer_peak, peak));
}

// Each link of the chain is read by the next one and by a sum. In the order of the outputs
// all sums come last, and with them the links would live until then.
Test(eval, what_reads_large_memory_last_does_not_wait)
{
    enum { LINKS = 8, ONE = 2 << 20, OTHERS = 2 << 20 }; // bytes
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = ramp(s, 256, 256, 0, 1e-6f), *link = ramp(s, 2048, 256, 0, 1e-6f);
    tn_array *sums[LINKS];
    must(s, tn_eval(s, w, link));
    tn_array *last = link, *links[LINKS];
    for (int i = 0; i < LINKS; i++)
        last = links[i] = bin(s, "matmul", last, w);
    for (int i = 0; i < LINKS; i++)
        sums[i] = un(s, "sum", links[i]);
    tn_array *first = un(s, "max", last);
    must(s, tn_eval(s, first, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6],
                    sums[7]));
    cr_assert(lt(u64, stats_of(runtime).buffer_peak, 4 * ONE + OTHERS));
    float value;
    must(s, tn_read(s, sums[0], &value, sizeof(value)));
    cr_assert(value > 0);
    tn_scope_close(s);
}

Test(eval, arrays_without_elements_evaluate)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(0, 4), NULL);
    tn_array *z = bin(s, "add", x, tn_float(s, 1));
    const tn_array *in = z;
    tn_array *sum = tn_op(s, "sum", &in, 1, TN_NO_ATTRS);
    must(s, tn_eval(s, z, sum));
    cr_assert(eq(i64, tn_array_type(z)->extent[0], 0));
    cr_assert(tn_item(s, sum) == 0);
    tn_scope_close(s);
}

// The derivatives of x0 x1 x2 x3 where some factors are 0, and derivatives of these.
Test(eval, products_have_derivatives_where_factors_are_zero)
{
    static const struct {
        float x[4], first[4], second[4]; // second: of first[0]
    } rows[] = {
        {{2, 3, 4, 5}, {60, 40, 30, 24}, {0, 20, 15, 12}},
        {{0, 3, 4, 5}, {60, 0, 0, 0}, {0, 20, 15, 12}},
        {{0, 3, 0, 5}, {0, 0, 0, 0}, {0, 0, 15, 0}},
        {{0, 0, 0, 5}, {0, 0, 0, 0}, {0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(4), rows[i].x), *first, *second;
        tn_array *product = un(s, "prod", x);
        must(s, tn_vjp(s, &product, NULL, 1, &x, 1, &first));
        tn_array *one = tn_op(s, "slice", TN_IN(first), tn_attrs("stop", TN_INTS(1)));
        must(s, tn_vjp(s, &one, NULL, 1, &x, 1, &second));
        float got[2][4];
        must(s, tn_read(s, first, got[0], sizeof(got[0])));
        must(s, tn_read(s, second, got[1], sizeof(got[1])));
        for (int order = 0; order < 2; order++)
            for (int k = 0; k < 4; k++) {
                float want = order ? rows[i].second[k] : rows[i].first[k];
                if (got[order][k] != want && !(isnan(got[order][k]) && isnan(want)))
                    cr_fatal("row %zu, derivative %d of factor %d: got %g, expected %g", i,
                             order + 1, k, (double)got[order][k], (double)want);
            }
        tn_scope_close(s);
    }
}

Test(eval, several_outputs_share_one_plan)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    tn_array *a = un(s, "negative", x), *b = bin(s, "add", a, tn_float(s, 1)),
             *c = bin(s, "multiply", b, a);
    uint64_t before = stats_of(runtime).submissions;
    must(s, tn_eval(s, a, b, c, a, x));
    cr_assert(eq(u64, stats_of(runtime).submissions - before, 1));
    float va[64], vb[64], vc[64];
    must(s, tn_read(s, a, va, sizeof(va)));
    must(s, tn_read(s, b, vb, sizeof(vb)));
    must(s, tn_read(s, c, vc, sizeof(vc)));
    for (int i = 0; i < 64; i++)
        cr_assert(va[i] == -(float)i && vb[i] == va[i] + 1 && vc[i] == va[i] * vb[i]);
    tn_scope_close(s);
}

Test(eval, numbers_keep_the_dtype_of_what_they_meet)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *h = tn_scalar(s, TN_F16, 1.5), *i = tn_i32(s, 3);
    tn_array *a = bin(s, "multiply", tn_float(s, 2), h);
    tn_array *b = bin(s, "multiply", tn_int(s, 2), i);
    tn_array *c = bin(s, "multiply", bin(s, "add", tn_int(s, 1), tn_int(s, 1)), h);
    tn_array *d = bin(s, "divide", i, tn_int(s, 2));
    cr_assert(eq(int, tn_array_type(a)->dtype, TN_F16));
    cr_assert(eq(int, tn_array_type(b)->dtype, TN_I32));
    cr_assert(eq(int, tn_array_type(c)->dtype, TN_F16));
    cr_assert(eq(int, tn_array_type(d)->dtype, TN_F64));
    must(s, tn_eval(s, a, b, c, d));
    cr_assert(tn_item(s, a) == 3 && tn_item(s, b) == 6 && tn_item(s, c) == 3);
    cr_assert(tn_item(s, d) == 1.5);
    tn_scope_close(s);
}

Test(eval, asynchronous_evaluation_is_waited_for_by_reading)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 128, 128, 0, 1e-4f), *y = x;
    for (int i = 0; i < 20; i++) {
        y = bin(s, "matmul", y, x);
        must(s, tn_eval_async(s, y));
    }
    tn_array *again = x;
    for (int i = 0; i < 20; i++)
        again = bin(s, "matmul", again, x);
    float a[128 * 128], b[128 * 128];
    must(s, tn_read(s, y, a, sizeof(a)));
    must(s, tn_read(s, again, b, sizeof(b)));
    cr_assert(eq(mem, bytes_of(a, sizeof(a)), bytes_of(b, sizeof(a))));
    tn_scope_close(s);
}

Test(eval, the_null_backend_runs_any_graph)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=null", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    tn_array *z = bin(s, "matmul", un(s, "exp", x), x);
    must(s, tn_eval(s, z));
    cr_assert(eq(i64, tn_array_type(z)->extent[1], 8));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(eval, an_unknown_backend_is_an_error_with_the_nearest_name)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blass", NULL});
    tn_scope *s = tn_scope_open(rt);
    cr_assert(eq(ptr, tn_from_data(s, TN_F32, TN_SHAPE(1), &(float){1}), NULL));
    check_status(tn_scope_status(s), TN_ERR_NOT_FOUND);
    check_says(tn_scope_error(s), "cpu-blas");
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(eval, a_missing_backend_with_a_question_mark_is_passed_over)
{
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=nothing?,null", NULL});
    tn_scope *s = tn_scope_open(rt);
    must(s, tn_eval(s, ramp(s, 1, 1, 0, 0)));
    tn_scope_close(s);
    tn_runtime_close(rt);
}
