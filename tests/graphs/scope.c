// SPDX-License-Identifier: MIT
// Scopes: the first error stays, kept arrays outlive them, threads use one each.
#include <pthread.h>
#include "common.h"

static void the_first_error_stays_and_nothing_after_it_counts(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 2, 3, 0, 1);
    tn_array *bad = bin(s, "matmul", x, x);
    assert_null(bad);
    tn_array *more = bin(s, "add", bad, x);
    assert_null(more);
    assert_null(un(s, "no_such_thing", x));
    assert_int_equal(tn_eval(s, more), TN_ERR_ARGUMENT);
    assert_message(tn_scope_error(s), "base.matmul");
    tn_scope_clear_error(s);
    assert_string_equal(tn_scope_error(s), "");
    must(s, tn_eval(s, un(s, "negative", x)));
    tn_scope_close(s);
}

static void messages_say_got_and_expected(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *x = ramp(s, 2, 3, 0, 1), *y = ramp(s, 4, 5, 0, 1);
    const tn_array *in = x;
    assert_null(bin(s, "add", x, y));
    assert_message(tn_scope_error(s), "base.add");
    assert_message(tn_scope_error(s), "[2, 3]");
    assert_message(tn_scope_error(s), "[4, 5]");
    tn_scope_clear_error(s);
    assert_null(tn_op(s, "sum", &in, 1, tn_attrs("axes", 1)));
    assert_message(tn_scope_error(s), "did you mean 'axis'"); // the nearest name
    tn_scope_clear_error(s);
    assert_null(tn_op(s, "add", &in, 1, TN_NO_ATTRS));
    assert_message(tn_scope_error(s), "got 1 inputs, expected 2");
    tn_scope_clear_error(s);
    assert_null(un(s, "negativ", x));
    assert_int_equal(tn_scope_status(s), TN_ERR_NOT_FOUND);
    assert_message(tn_scope_error(s), "negative");
    tn_scope_close(s);
}

static void shapes_that_overflow_are_refused(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    int64_t big = INT64_C(1) << 40;
    assert_null(tn_from_data(s, TN_F32, TN_SHAPE(big, big), &(float){0}));
    assert_int_equal(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    assert_null(tn_from_data(s, TN_F32, TN_SHAPE(-1), &(float){0}));
    assert_int_equal(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    tn_shape huge_rank = {.rank = 1000};
    assert_null(tn_from_data(s, TN_F32, &huge_rank, &(float){0}));
    assert_int_equal(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    const tn_array *x = ramp(s, 1, 1, 0, 0);
    assert_null(
        tn_op(s, "broadcast_to", &x, 1, tn_attrs("shape", TN_INTS(big, big, 1, 1))));
    assert_int_equal(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_close(s);
}

static void kept_arrays_outlive_their_scope(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    tn_array *kept = tn_keep(s, bin(s, "add", ramp(s, 2, 2, 0, 1), tn_float(s, 10)));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    s = tn_scope_open(*state);
    tn_array *z = bin(s, "multiply", kept, kept);
    tn_release(kept); // the scope holds on to what its graph uses
    float out[4];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == (float)((10 + i) * (10 + i)));
    tn_scope_close(s);
}

static void another_scopes_array_is_an_error(void **state)
{
    tn_scope *a = tn_scope_open(*state), *b = tn_scope_open(*state);
    tn_array *x = ramp(a, 1, 1, 0, 0);
    assert_null(un(b, "negative", x));
    assert_message(tn_scope_error(b), "tn_keep");
    tn_scope_close(a);
    tn_scope_close(b);
}

struct job {
    tn_runtime *rt;
    tn_array *shared;
    int number;
    bool right;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    job->right = true;
    for (int round = 0; round < 50; round++) {
        tn_scope *s = tn_scope_open(job->rt);
        tn_array *z = bin(s, "add", bin(s, "multiply", job->shared, tn_int(s, job->number)),
                          tn_int(s, round % 5));
        float out[64];
        if (tn_read(s, z, out, sizeof(out)) != TN_OK)
            job->right = false;
        for (int i = 0; i < 64 && job->right; i++)
            job->right = out[i] == (float)(i * job->number + round % 5);
        tn_scope_close(s);
    }
    return NULL;
}

static void threads_with_a_scope_each_share_a_runtime(void **state)
{
    struct job jobs[4];
    pthread_t threads[4];
    tn_scope *s = tn_scope_open(*state);
    tn_array *shared = tn_keep(s, ramp(s, 8, 8, 0, 1));
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){*state, shared, i + 1, false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].right);
    }
    tn_release(shared);
    tn_scope_close(s);
}

static void several_runtimes_live_side_by_side(void **state)
{
    tn_runtime *other = open_with((const char *const[]){"TENON_BACKEND=null", NULL});
    tn_scope *a = tn_scope_open(*state), *b = tn_scope_open(other);
    tn_array *x = bin(a, "add", ramp(a, 1, 1, 1, 0), tn_int(a, 1));
    tn_array *y = bin(b, "add", ramp(b, 1, 1, 1, 0), tn_int(b, 1));
    must(a, tn_eval(a, x));
    must(b, tn_eval(b, y));
    assert_true(tn_item(a, x) == 2);
    tn_scope_close(b);
    tn_runtime_close(other);
    assert_true(tn_item(a, un(a, "negative", x)) == -2);
    tn_scope_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_stays_and_nothing_after_it_counts),
        cmocka_unit_test(messages_say_got_and_expected),
        cmocka_unit_test(shapes_that_overflow_are_refused),
        cmocka_unit_test(kept_arrays_outlive_their_scope),
        cmocka_unit_test(another_scopes_array_is_an_error),
        cmocka_unit_test(threads_with_a_scope_each_share_a_runtime),
        cmocka_unit_test(several_runtimes_live_side_by_side),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
