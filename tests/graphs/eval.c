// SPDX-License-Identifier: MIT
// Evaluation: values, plans found again, equal nodes computed once, memory reused.
#include "common.h"

static void an_expression_of_operators_computes(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 4, 8, 0, 1), *y = ramp(s, 4, 8, 1, 0.5f);
    tn_array *z = bin(s, "add", bin(s, "multiply", tn_float(s, 4), x),
                      bin(s, "multiply", tn_float(s, 2), y));
    float out[32];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == 4 * (float)i + 2 * (1 + 0.5f * (float)i));
    assert_int_equal(tn_array_type(z)->dtype, TN_F32);
    tn_scope_close(s);
}

static void a_plan_is_found_again_with_other_data(void **state)
{
    tn_stats before = stats_of(*state);
    for (int round = 0; round < 3; round++) {
        tn_scope *s = tn_scope_open(*state);
        tn_array *x = ramp(s, 3, 5, (float)round, 1);
        tn_array *z = un(s, "exp", bin(s, "subtract", x, tn_float(s, 17)));
        float out[15];
        must(s, tn_read(s, z, out, sizeof(out)));
        for (int i = 0; i < 15; i++)
            assert_true(fabsf(out[i] / expf((float)(round + i) - 17) - 1) < 1e-5f);
        tn_scope_close(s);
    }
    tn_stats after = stats_of(*state);
    assert_int_equal(after.plans_made - before.plans_made, 1);
    assert_int_equal(after.plan_hits - before.plan_hits, 2);
}

static void a_leaf_used_twice_is_another_graph_than_two_leaves(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 2, 2, 1, 1), *y = ramp(s, 2, 2, 10, 10);
    tn_array *xx = bin(s, "subtract", x, x), *xy = bin(s, "subtract", x, y);
    float a[4], b[4];
    must(s, tn_read(s, xx, a, sizeof(a)));
    must(s, tn_read(s, xy, b, sizeof(b)));
    for (int i = 0; i < 4; i++) {
        assert_true(a[i] == 0);
        assert_true(b[i] == -9.0f * (float)(i + 1));
    }
    tn_scope_close(s);
}

static void equal_nodes_are_computed_once(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *a = ramp(s, 16, 16, 0, 0.01f), *b = ramp(s, 16, 16, 1, -0.01f);
    tn_array *p = bin(s, "matmul", a, b), *q = bin(s, "matmul", a, b);
    tn_array *z = bin(s, "subtract", p, q);
    uint64_t before = stats_of(*state).steps;
    float out[256];
    must(s, tn_read(s, z, out, sizeof(out)));
    assert_int_equal(stats_of(*state).steps - before, 2); // one matmul, one subtraction
    for (int i = 0; i < 256; i++)
        assert_true(out[i] == 0);
    tn_scope_close(s);
}

static void views_move_no_data(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 3, 4, 0, 1);
    tn_array *t = un(s, "transpose", x);
    must(s, tn_eval(s, x));
    uint64_t before = stats_of(*state).steps;
    must(s, tn_eval(s, t));
    assert_int_equal(stats_of(*state).steps, before);
    float out[12];
    must(s, tn_read(s, t, out, sizeof(out)));
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            assert_true(out[i * 3 + k] == (float)(k * 4 + i));
    tn_scope_close(s);
}

static void a_view_of_a_view_of_a_result_is_right(void **state)
{
    tn_scope *s = tn_scope_open(*state);
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
    assert_int_equal(tn_array_type(flat)->extent[0], 6);
    float out[6];
    must(s, tn_read(s, sum, out, sizeof(out)));
    for (int i = 0; i < 6; i++)
        assert_true(out[i] == expected[i] + 0.5f);
    tn_scope_close(s);
}

static void memory_of_dead_values_is_used_again(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 256, 256, 0, 1e-5f), *y = x;
    must(s, tn_eval(s, x));
    uint64_t before = stats_of(*state).buffer_bytes;
    for (int i = 0; i < 50; i++)
        y = bin(s, "matmul", y, x);
    must(s, tn_eval(s, y));
    uint64_t used = stats_of(*state).buffer_bytes - before;
    uint64_t one = 256 * 256 * sizeof(float);
    assert_in_range(used, one, 4 * one); // the result, and two that take turns
    tn_scope_close(s);
}

static void arrays_without_elements_evaluate(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(0, 4), NULL);
    tn_array *z = bin(s, "add", x, tn_float(s, 1));
    const tn_array *in = z;
    tn_array *sum = tn_op(s, "sum", &in, 1, TN_NO_ATTRS);
    must(s, tn_eval(s, z, sum));
    assert_int_equal(tn_array_type(z)->extent[0], 0);
    assert_true(tn_item(s, sum) == 0);
    tn_scope_close(s);
}

static void several_outputs_share_one_plan(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    tn_array *a = un(s, "negative", x), *b = bin(s, "add", a, tn_float(s, 1)),
             *c = bin(s, "multiply", b, a);
    uint64_t before = stats_of(*state).submissions;
    must(s, tn_eval(s, a, b, c, a, x));
    assert_int_equal(stats_of(*state).submissions - before, 1);
    float va[64], vb[64], vc[64];
    must(s, tn_read(s, a, va, sizeof(va)));
    must(s, tn_read(s, b, vb, sizeof(vb)));
    must(s, tn_read(s, c, vc, sizeof(vc)));
    for (int i = 0; i < 64; i++)
        assert_true(va[i] == -(float)i && vb[i] == va[i] + 1 && vc[i] == va[i] * vb[i]);
    tn_scope_close(s);
}

static void numbers_keep_the_dtype_of_what_they_meet(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *h = tn_scalar(s, TN_F16, 1.5), *i = tn_i32(s, 3);
    tn_array *a = bin(s, "multiply", tn_float(s, 2), h);
    tn_array *b = bin(s, "multiply", tn_int(s, 2), i);
    tn_array *c = bin(s, "multiply", bin(s, "add", tn_int(s, 1), tn_int(s, 1)), h);
    tn_array *d = bin(s, "divide", i, tn_int(s, 2));
    assert_int_equal(tn_array_type(a)->dtype, TN_F16);
    assert_int_equal(tn_array_type(b)->dtype, TN_I32);
    assert_int_equal(tn_array_type(c)->dtype, TN_F16);
    assert_int_equal(tn_array_type(d)->dtype, TN_F64);
    must(s, tn_eval(s, a, b, c, d));
    assert_true(tn_item(s, a) == 3 && tn_item(s, b) == 6 && tn_item(s, c) == 3);
    assert_true(tn_item(s, d) == 1.5);
    tn_scope_close(s);
}

static void asynchronous_evaluation_is_waited_for_by_reading(void **state)
{
    tn_scope *s = tn_scope_open(*state);
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
    assert_memory_equal(a, b, sizeof(a));
    tn_scope_close(s);
}

static void the_null_backend_runs_any_graph(void **state)
{
    (void)state;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=null", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    tn_array *z = bin(s, "matmul", un(s, "exp", x), x);
    must(s, tn_eval(s, z));
    assert_int_equal(tn_array_type(z)->extent[1], 8);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

static void an_unknown_backend_is_an_error_with_the_nearest_name(void **state)
{
    (void)state;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blass", NULL});
    tn_scope *s = tn_scope_open(rt);
    assert_null(tn_from_data(s, TN_F32, TN_SHAPE(1), &(float){1}));
    assert_int_equal(tn_scope_status(s), TN_ERR_NOT_FOUND);
    assert_message(tn_scope_error(s), "cpu-blas");
    tn_scope_close(s);
    tn_runtime_close(rt);
}

static void a_missing_backend_with_a_question_mark_is_passed_over(void **state)
{
    (void)state;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=nothing?,null", NULL});
    tn_scope *s = tn_scope_open(rt);
    must(s, tn_eval(s, ramp(s, 1, 1, 0, 0)));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_of_operators_computes),
        cmocka_unit_test(a_plan_is_found_again_with_other_data),
        cmocka_unit_test(a_leaf_used_twice_is_another_graph_than_two_leaves),
        cmocka_unit_test(equal_nodes_are_computed_once),
        cmocka_unit_test(views_move_no_data),
        cmocka_unit_test(a_view_of_a_view_of_a_result_is_right),
        cmocka_unit_test(memory_of_dead_values_is_used_again),
        cmocka_unit_test(arrays_without_elements_evaluate),
        cmocka_unit_test(several_outputs_share_one_plan),
        cmocka_unit_test(numbers_keep_the_dtype_of_what_they_meet),
        cmocka_unit_test(asynchronous_evaluation_is_waited_for_by_reading),
        cmocka_unit_test(the_null_backend_runs_any_graph),
        cmocka_unit_test(an_unknown_backend_is_an_error_with_the_nearest_name),
        cmocka_unit_test(a_missing_backend_with_a_question_mark_is_passed_over),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
