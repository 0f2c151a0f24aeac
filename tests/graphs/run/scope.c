// SPDX-License-Identifier: MIT
// Scopes: the first error stays, kept arrays outlive them, threads use one each.
#include <pthread.h>
#include "../support/common.h"

TestSuite(scope, .init = setup, .fini = teardown);

Test(scope, the_first_error_stays_and_nothing_after_it_counts)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 3, 0, 1);
    tn_array *bad = bin(s, "matmul", x, x);
    cr_assert(eq(ptr, bad, NULL));
    tn_array *more = bin(s, "add", bad, x);
    cr_assert(eq(ptr, more, NULL));
    cr_assert(eq(ptr, un(s, "no_such_thing", x), NULL));
    check_status(tn_eval(s, more), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "base.matmul");
    tn_scope_clear_error(s);
    cr_assert(eq(str, tn_scope_error(s), ""));
    must(s, tn_eval(s, un(s, "negative", x)));
    tn_scope_close(s);
}

Test(scope, messages_say_got_and_expected)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 3, 0, 1), *y = ramp(s, 4, 5, 0, 1);
    const tn_array *in = x;
    cr_assert(eq(ptr, bin(s, "add", x, y), NULL));
    check_says(tn_scope_error(s), "base.add");
    check_says(tn_scope_error(s), "[2, 3]");
    check_says(tn_scope_error(s), "[4, 5]");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_op(s, "sum", &in, 1, tn_attrs("axes", 1)), NULL));
    check_says(tn_scope_error(s), "did you mean 'axis'"); // the nearest name
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_op(s, "add", &in, 1, TN_NO_ATTRS), NULL));
    check_says(tn_scope_error(s), "got 1 inputs, expected 2");
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, un(s, "negativ", x), NULL));
    check_status(tn_scope_status(s), TN_ERR_NOT_FOUND);
    check_says(tn_scope_error(s), "negative");
    tn_scope_close(s);
}

Test(scope, shapes_that_overflow_are_refused)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t big = INT64_C(1) << 40;
    cr_assert(eq(ptr, tn_from_data(s, TN_F32, TN_SHAPE(big, big), &(float){0}), NULL));
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    cr_assert(eq(ptr, tn_from_data(s, TN_F32, TN_SHAPE(-1), &(float){0}), NULL));
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    tn_shape huge_rank = {.rank = 1000};
    cr_assert(eq(ptr, tn_from_data(s, TN_F32, &huge_rank, &(float){0}), NULL));
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_clear_error(s);
    const tn_array *x = ramp(s, 1, 1, 0, 0);
    cr_assert(
        eq(ptr, tn_op(s, "broadcast_to", &x, 1, tn_attrs("shape", TN_INTS(big, big, 1, 1))),
           NULL));
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    tn_scope_close(s);
}

Test(scope, kept_arrays_outlive_their_scope)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *kept = tn_keep(s, bin(s, "add", ramp(s, 2, 2, 0, 1), tn_float(s, 10)));
    must(s, tn_scope_status(s));
    tn_scope_close(s);
    s = tn_scope_open(runtime);
    tn_array *z = bin(s, "multiply", kept, kept);
    tn_release(kept); // the scope holds on to what its graph uses
    float out[4];
    must(s, tn_read(s, z, out, sizeof(out)));
    for (int i = 0; i < 4; i++)
        cr_assert(out[i] == (float)((10 + i) * (10 + i)));
    tn_scope_close(s);
}

Test(scope, another_scopes_array_is_an_error)
{
    tn_scope *a = tn_scope_open(runtime), *b = tn_scope_open(runtime);
    tn_array *x = ramp(a, 1, 1, 0, 0);
    cr_assert(eq(ptr, un(b, "negative", x), NULL));
    check_says(tn_scope_error(b), "tn_keep");
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

Test(scope, threads_with_a_scope_each_share_a_runtime)
{
    struct job jobs[4];
    pthread_t threads[4];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *shared = tn_keep(s, ramp(s, 8, 8, 0, 1));
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){runtime, shared, i + 1, false};
        cr_assert(eq(int, pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(jobs[i].right);
    }
    tn_release(shared);
    tn_scope_close(s);
}

Test(scope, several_runtimes_live_side_by_side)
{
    tn_runtime *other = open_with((const char *const[]){"TENON_BACKEND=null", NULL});
    tn_scope *a = tn_scope_open(runtime), *b = tn_scope_open(other);
    tn_array *x = bin(a, "add", ramp(a, 1, 1, 1, 0), tn_int(a, 1));
    tn_array *y = bin(b, "add", ramp(b, 1, 1, 1, 0), tn_int(b, 1));
    must(a, tn_eval(a, x));
    must(b, tn_eval(b, y));
    cr_assert(tn_item(a, x) == 2);
    tn_scope_close(b);
    tn_runtime_close(other);
    cr_assert(tn_item(a, un(a, "negative", x)) == -2);
    tn_scope_close(a);
}
