// SPDX-License-Identifier: MIT
// Callbacks on several threads, and how they come and go while graphs hold them.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>
#include "callbacks.h"

// --- coming and going ------------------------------------------------------------------

TestSuite(callback_threads, .init = open_runtime, .fini = close_runtime);

Test(callback_threads, a_removed_callback_fails_in_graphs_that_hold_it_until_it_is_back)
{
    tn_scope *s = tn_scope_open(runtime);
    add(runtime, "app.step/1", "f64 -> f64", (function)plus, NULL);
    tn_array *x = tn_f64(s, 2), *y = tn_op(s, "app.step", TN_IN(x), TN_NO_ATTRS);
    check_status(tn_callback_remove(runtime, "app.step/1"), TN_OK);
    check_status(tn_callback_remove(runtime, "app.step/1"), TN_ERR_NOT_FOUND);
    check_says(tn_last_error(), "no callback 'app.step/1' is registered");
    cr_assert(ne(int, tn_eval(s, y), TN_OK));
    check_says(tn_scope_error(s), "the callback app.step/1 was removed: add it again");
    tn_scope_clear_error(s);
    check_status(
        tn_callback_add(runtime, "app.step/1", "f64 f64 -> f64", (function)plus, NULL),
        TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "got \"f64 f64 -> f64\", expected the signature");
    add(runtime, "app.step/1", "f64 -> f64", (function)negated, NULL);
    expect(s, y, (double[]){-2}, 1);
    check_status(tn_callback_add(runtime, "app.step/1", "f64 -> f64", (function)plus, NULL),
                 TN_ERR_REFUSED);
    check_says(tn_last_error(), "app.step/1 is registered already: remove it first");
    tn_scope_close(s);
}

Test(callback_threads, runtimes_have_their_own)
{
    tn_runtime *other = NULL;
    check_status(tn_runtime_open(NULL, &other), TN_OK);
    add(runtime, "app.step/1", "f64 -> f64", (function)plus, NULL);
    add(other, "app.step/1", "f64 -> f64", (function)negated, NULL);
    tn_scope *a = tn_scope_open(runtime), *b = tn_scope_open(other);
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

static void *evaluate(void *rt)
{
    for (int round = 0; round < ROUNDS; round++) {
        tn_scope *s = tn_scope_open(rt);
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

Test(callback_threads, many_threads_call_at_once_and_serial_ones_one_at_a_time)
{
    _Atomic int64_t count = 0;
    int64_t plain = 0;
    pthread_t threads[THREADS];
    add(runtime, "app.counted/1", "f64 user -> f64", (function)counted, &count);
    check_status(add_flags(runtime, TN_CALLBACK_SERIAL, "app.plain/1", "f64 user -> f64",
                           (function)counted_plainly, &plain),
                 TN_OK);
    for (int i = 0; i < THREADS; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, evaluate, runtime), 0));
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        cr_assert(eq(ptr, wrong, NULL));
    }
    cr_assert(eq(i64, count, THREADS * ROUNDS * ELEMENTS));
    cr_assert(eq(i64, plain, THREADS * ROUNDS * ELEMENTS));
}

static double outer(double x, void *user)
{
    tn_scope *s = tn_scope_open(user);
    double y = tn_item(s, tn_op(s, "app.step", TN_IN(tn_f64(s, x)), TN_NO_ATTRS));
    tn_scope_close(s);
    return y;
}

Test(callback_threads, a_serial_callback_may_evaluate_another_in_another_runtime)
{
    tn_runtime *other = NULL;
    check_status(tn_runtime_open(NULL, &other), TN_OK);
    check_status(add_flags(other, TN_CALLBACK_SERIAL, "app.step/1", "f64 -> f64",
                           (function)plus, NULL),
                 TN_OK);
    check_status(add_flags(runtime, TN_CALLBACK_SERIAL, "app.outer/1", "f64 user -> f64",
                           (function)outer, other),
                 TN_OK);
    tn_scope *s = tn_scope_open(runtime);
    expect(s, tn_op(s, "app.outer", TN_IN(tn_f64(s, 1)), TN_NO_ATTRS), (double[]){2}, 1);
    tn_scope_close(s);
    tn_runtime_close(other);
}

// --- using the runtime that calls ------------------------------------------------------

#define REFUSED "a callback evaluates in the runtime that called it"

struct user {
    tn_runtime *runtime;
    tn_array *array; // kept
    tn_function *function;
    _Atomic int refused, other;
    sem_t may_read;
};

static void count(struct user *user, tn_scope *s, tn_status status)
{
    bool refused = status == TN_ERR_ARGUMENT && strstr(tn_scope_error(s), REFUSED);
    atomic_fetch_add(refused ? &user->refused : &user->other, 1);
    tn_scope_clear_error(s);
}

// Twice, with a plan that there is already and with one that has to be made.
static double evaluates(double x, void *user_)
{
    struct user *user = user_;
    double read = 0;
    tn_scope *s = tn_scope_open(user->runtime);
    tn_array *a = tn_scalar(s, TN_F64, 3);
    count(user, s, tn_eval(s, tn_expr(s, "x -> x * 2", TN_IN(user->array), TN_NO_ATTRS)));
    count(user, s, tn_eval(s, tn_expr(s, "x -> x * 3 + 1", TN_IN(a), TN_NO_ATTRS)));
    tn_read(s, user->array, &read, sizeof(read)); // evaluated before
    tn_scope_close(s);
    return x + read;
}

static void make_user(struct user *user, tn_runtime *rt)
{
    *user = (struct user){.runtime = rt};
    tn_scope *s = tn_scope_open(rt);
    user->array = tn_keep(s, tn_from_data(s, TN_F64, TN_SHAPE(), &(double){5}));
    cr_assert(ne(ptr, user->array, NULL));
    check_status(tn_eval(s, tn_expr(s, "x -> x * 2", TN_IN(user->array), TN_NO_ATTRS)),
                 TN_OK);
    tn_scope_close(s);
    sem_init(&user->may_read, 0, 0);
}

Test(callback_threads, evaluating_in_the_runtime_that_calls_is_refused_on_every_thread)
{
    struct user user;
    double data[ELEMENTS], got[ELEMENTS];
    make_user(&user, runtime);
    add(runtime, "app.evaluates/1", "f64 user -> f64", (function)evaluates, &user);
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = i;
    for (int many = 0; many < 2; many++) // on this thread; on those of the pool as well
        for (int async = 0; async < 2; async++) { // on the queue's
            int64_t n = many ? ELEMENTS : 1;
            tn_scope *s = tn_scope_open(runtime);
            user.refused = user.other = 0;
            tn_array *x = f64s(s, *TN_SHAPE(n), data);
            tn_array *y = tn_op(s, "app.evaluates", TN_IN(x), TN_NO_ATTRS);
            check_status(async ? tn_eval_async(s, y) : tn_eval(s, y), TN_OK);
            check_status(tn_read(s, y, got, (uint64_t)n * sizeof(*got)), TN_OK);
            for (int64_t i = 0; i < n; i++)
                cr_assert(got[i] == data[i] + 5);
            cr_assert(eq(i64, user.refused, 2 * n));
            cr_assert(eq(int, user.other, 0));
            tn_scope_close(s);
        }
    tn_release(user.array);
}

static double reads_later(double x, void *user_)
{
    struct user *user = user_;
    double read;
    sem_wait(&user->may_read);
    tn_scope *s = tn_scope_open(user->runtime);
    count(user, s, tn_read(s, user->array, &read, sizeof(read)));
    tn_scope_close(s);
    return x;
}

Test(callback_threads, waiting_for_what_a_callback_is_part_of_is_refused)
{
    struct user user;
    make_user(&user, runtime);
    tn_release(user.array);
    add(runtime, "app.reads/1", "f64 user -> f64", (function)reads_later, &user);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(), &(double){1});
    user.array = tn_keep(s, tn_op(s, "app.reads", TN_IN(x), TN_NO_ATTRS));
    cr_assert(ne(ptr, user.array, NULL));
    sem_post(&user.may_read);
    expect(s, user.array, (double[]){1}, 1);
    cr_assert(eq(int, user.refused, 1));
    tn_release(user.array);
    tn_scope_close(s);
}

static double by_way_of(double x, void *user_)
{
    struct user *user = user_;
    tn_scope *s = tn_scope_open(user->runtime);
    tn_array *array = tn_scalar(s, TN_F64, x);
    double y = tn_item(s, tn_op(s, "app.evaluates", TN_IN(array), TN_NO_ATTRS));
    tn_scope_close(s);
    return y;
}

Test(callback_threads, so_it_is_by_way_of_another_runtime)
{
    struct user user, middle = {0};
    make_user(&user, runtime);
    check_status(tn_runtime_open(NULL, &middle.runtime), TN_OK);
    add(middle.runtime, "app.evaluates/1", "f64 user -> f64", (function)evaluates, &user);
    add(runtime, "app.by_way_of/1", "f64 user -> f64", (function)by_way_of, &middle);
    tn_scope *s = tn_scope_open(runtime);
    expect(s, tn_op(s, "app.by_way_of", TN_IN(tn_f64(s, 1)), TN_NO_ATTRS), (double[]){6},
           1);
    cr_assert(eq(int, user.refused, 2));
    tn_release(user.array);
    tn_scope_close(s);
    tn_runtime_close(middle.runtime);
}

static double changes(double x, void *user_)
{
    struct user *user = user_;
    user->refused += tn_callback_remove(user->runtime, "app.changes/1") == TN_ERR_ARGUMENT;
    check_says(tn_last_error(),
               "callback app.changes/1: a callback changes one of the runtime");
    user->refused += tn_callback_add(user->runtime, "app.changes/1", "f64 user -> f64",
                                     (function)changes, user) == TN_ERR_ARGUMENT;
    tn_function_destroy(user->function);
    tn_runtime_close(user->runtime);
    return x + 1;
}

static tn_status doubled(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                         tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = tn_expr(s, "x -> x + x", TN_IN(inputs[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

static void expect_doubled(tn_scope *s, tn_function *f)
{
    tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(), &(double){4}), *y;
    check_status(tn_function_call(f, s, &x, 1, &y, 1), TN_OK);
    expect(s, y, (double[]){8}, 1);
}

Test(callback_threads, a_callback_neither_changes_callbacks_nor_closes_its_runtime)
{
    struct user user = {.runtime = runtime};
    check_status(tn_function_create(runtime, doubled, NULL, NULL, &user.function), TN_OK);
    add(runtime, "app.changes/1", "f64 user -> f64", (function)changes, &user);
    tn_scope *s = tn_scope_open(runtime);
    expect_doubled(s, user.function);
    expect(s, tn_op(s, "app.changes", TN_IN(tn_f64(s, 1)), TN_NO_ATTRS), (double[]){2}, 1);
    cr_assert(eq(int, user.refused, 2));
    expect_doubled(s, user.function);
    tn_scope_close(s);
    tn_function_destroy(user.function);
    check_status(tn_callback_remove(runtime, "app.changes/1"), TN_OK);
}

// --- removing while others call --------------------------------------------------------

// What a removed callback must not touch again.
static double poisoned(double x, void *user)
{
    double *memory = user;
    usleep(10);
    return x + *memory;
}

static void *evaluate_until_removed(void *rt)
{
    tn_status status = TN_OK;
    for (int round = 0; status == TN_OK && round < 100000; round++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *y = tn_op(s, "app.poisoned", TN_IN(tn_f64(s, round)), TN_NO_ATTRS);
        status = tn_eval(s, y);
        tn_scope_close(s);
    }
    return (void *)(intptr_t)status;
}

Test(callback_threads, after_removing_nobody_is_in_the_function)
{
    pthread_t threads[THREADS];
    double *memory = malloc(sizeof(*memory));
    *memory = 1;
    add(runtime, "app.poisoned/1", "f64 user -> f64", (function)poisoned, memory);
    for (int i = 0; i < THREADS; i++)
        cr_assert(
            eq(int, pthread_create(&threads[i], NULL, evaluate_until_removed, runtime), 0));
    usleep(20000);
    check_status(tn_callback_remove(runtime, "app.poisoned/1"), TN_OK);
    free(memory); // ASan and TSan see who still uses it
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        cr_assert(ne(int, (intptr_t)status, TN_OK));
    }
}

static void *add_the_same(void *rt)
{
    return (void *)(intptr_t)tn_callback_add(rt, "app.race/1", "f64 -> f64", (function)plus,
                                             NULL);
}

Test(callback_threads, of_threads_that_add_one_id_one_wins)
{
    pthread_t threads[THREADS];
    int good = 0;
    for (int i = 0; i < THREADS; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, add_the_same, runtime), 0));
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        good += (intptr_t)status == TN_OK;
    }
    cr_assert(eq(int, good, 1));
}
