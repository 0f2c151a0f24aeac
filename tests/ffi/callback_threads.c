// SPDX-License-Identifier: MIT
// Callbacks on several threads, and how they come and go while graphs hold them.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "callbacks.h"

// --- coming and going ------------------------------------------------------------------

static void a_removed_callback_fails_in_graphs_that_hold_it_until_it_is_back(void **state)
{
    tn_scope *s = tn_scope_open(*state);
    add(*state, "app.step/1", "f64 -> f64", (function)plus, NULL);
    tn_array *x = tn_f64(s, 2), *y = tn_op(s, "app.step", TN_IN(x), TN_NO_ATTRS);
    assert_int_equal(tn_callback_remove(*state, "app.step/1"), TN_OK);
    assert_int_equal(tn_callback_remove(*state, "app.step/1"), TN_ERR_NOT_FOUND);
    has(tn_last_error(), "no callback 'app.step/1' is registered");
    assert_int_not_equal(tn_eval(s, y), TN_OK);
    has(tn_scope_error(s), "the callback app.step/1 was removed: add it again");
    tn_scope_clear_error(s);
    assert_int_equal(
        tn_callback_add(*state, "app.step/1", "f64 f64 -> f64", (function)plus, NULL),
        TN_ERR_ARGUMENT);
    has(tn_last_error(), "got \"f64 f64 -> f64\", expected the signature");
    add(*state, "app.step/1", "f64 -> f64", (function)negated, NULL);
    expect(s, y, (double[]){-2}, 1);
    assert_int_equal(
        tn_callback_add(*state, "app.step/1", "f64 -> f64", (function)plus, NULL),
        TN_ERR_REFUSED);
    has(tn_last_error(), "app.step/1 is registered already: remove it first");
    tn_scope_close(s);
}

static void runtimes_have_their_own(void **state)
{
    tn_runtime *other = NULL;
    assert_int_equal(tn_runtime_open(NULL, &other), TN_OK);
    add(*state, "app.step/1", "f64 -> f64", (function)plus, NULL);
    add(other, "app.step/1", "f64 -> f64", (function)negated, NULL);
    tn_scope *a = tn_scope_open(*state), *b = tn_scope_open(other);
    expect(a, tn_op(a, "app.step", TN_IN(tn_f64(a, 2)), TN_NO_ATTRS), (double[]){3}, 1);
    expect(b, tn_op(b, "app.step", TN_IN(tn_f64(b, 2)), TN_NO_ATTRS), (double[]){-2}, 1);
    tn_scope_close(b);
    tn_runtime_close(other);
    expect(a, tn_op(a, "app.step", TN_IN(tn_f64(a, 5)), TN_NO_ATTRS), (double[]){6}, 1);
    tn_scope_close(a);
}

// --- threads ---------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 25, ELEMENTS = 2000 };

static double counted(double x, void *user)
{
    atomic_fetch_add((_Atomic int64_t *)user, 1);
    return x + 1;
}

// Not thread-safe: what TSan watches.
static double counted_plainly(double x, void *user)
{
    *(int64_t *)user += 1;
    return x + 1;
}

static void *evaluate(void *runtime)
{
    for (int round = 0; round < ROUNDS; round++) {
        tn_scope *s = tn_scope_open(runtime);
        double data[ELEMENTS], got[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++)
            data[i] = i;
        tn_array *x = f64s(s, *TN_SHAPE(ELEMENTS), data);
        tn_array *y = tn_op(s, "app.counted", TN_IN(x), TN_NO_ATTRS);
        tn_array *z = tn_op(s, "app.plain", TN_IN(y), TN_NO_ATTRS);
        tn_status status = tn_read(s, z, got, sizeof(got));
        bool right = status == TN_OK;
        for (int i = 0; i < ELEMENTS && right; i++)
            right = got[i] == i + 2;
        tn_scope_close(s);
        if (!right)
            return (void *)"wrong";
    }
    return NULL;
}

static void many_threads_call_at_once_and_serial_ones_one_at_a_time(void **state)
{
    _Atomic int64_t count = 0;
    int64_t plain = 0;
    pthread_t threads[THREADS];
    add(*state, "app.counted/1", "f64 user -> f64", (function)counted, &count);
    assert_int_equal(add_flags(*state, TN_CALLBACK_SERIAL, "app.plain/1", "f64 user -> f64",
                               (function)counted_plainly, &plain),
                     TN_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate, *state), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(count, THREADS * ROUNDS * ELEMENTS);
    assert_int_equal(plain, THREADS * ROUNDS * ELEMENTS);
}

static double outer(double x, void *user)
{
    tn_scope *s = tn_scope_open(user);
    double y = tn_item(s, tn_op(s, "app.step", TN_IN(tn_f64(s, x)), TN_NO_ATTRS));
    tn_scope_close(s);
    return y;
}

static void a_serial_callback_may_evaluate_another_in_another_runtime(void **state)
{
    tn_runtime *other = NULL;
    assert_int_equal(tn_runtime_open(NULL, &other), TN_OK);
    assert_int_equal(add_flags(other, TN_CALLBACK_SERIAL, "app.step/1", "f64 -> f64",
                               (function)plus, NULL),
                     TN_OK);
    assert_int_equal(add_flags(*state, TN_CALLBACK_SERIAL, "app.outer/1", "f64 user -> f64",
                               (function)outer, other),
                     TN_OK);
    tn_scope *s = tn_scope_open(*state);
    expect(s, tn_op(s, "app.outer", TN_IN(tn_f64(s, 1)), TN_NO_ATTRS), (double[]){2}, 1);
    tn_scope_close(s);
    tn_runtime_close(other);
}

// What a removed callback must not touch again.
static double poisoned(double x, void *user)
{
    double *memory = user;
    usleep(10);
    return x + *memory;
}

static void *evaluate_until_removed(void *runtime)
{
    tn_status status = TN_OK;
    for (int round = 0; status == TN_OK && round < 100000; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y = tn_op(s, "app.poisoned", TN_IN(tn_f64(s, round)), TN_NO_ATTRS);
        status = tn_eval(s, y);
        tn_scope_close(s);
    }
    return (void *)(intptr_t)status;
}

static void after_removing_nobody_is_in_the_function(void **state)
{
    pthread_t threads[THREADS];
    double *memory = malloc(sizeof(*memory));
    *memory = 1;
    add(*state, "app.poisoned/1", "f64 user -> f64", (function)poisoned, memory);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, evaluate_until_removed, *state),
                         0);
    usleep(20000);
    assert_int_equal(tn_callback_remove(*state, "app.poisoned/1"), TN_OK);
    free(memory); // ASan and TSan see who still uses it
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        assert_int_not_equal((intptr_t)status, TN_OK);
    }
}

static void *add_the_same(void *runtime)
{
    return (void *)(intptr_t)tn_callback_add(runtime, "app.race/1", "f64 -> f64",
                                             (function)plus, NULL);
}

static void of_threads_that_add_one_id_one_wins(void **state)
{
    pthread_t threads[THREADS];
    int good = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_the_same, *state), 0);
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        good += (intptr_t)status == TN_OK;
    }
    assert_int_equal(good, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_removed_callback_fails_in_graphs_that_hold_it_until_it_is_back),
        TEST(runtimes_have_their_own),
        TEST(many_threads_call_at_once_and_serial_ones_one_at_a_time),
        TEST(a_serial_callback_may_evaluate_another_in_another_runtime),
        TEST(after_removing_nobody_is_in_the_function),
        TEST(of_threads_that_add_one_id_one_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
