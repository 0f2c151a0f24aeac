// SPDX-License-Identifier: MIT
// Work that fails after the call that started it has returned: whoever needs what it made
// gets the failure, each time; whatever does not, goes on: poison BACKEND
//
// The backend's table is exchanged for one in which chosen submissions fail.
#include "sched/device.h"
#undef fail // cmocka has a macro of this name
#include <pthread.h>
#include "common.h"

static const char *backend;

// --- the table between -------------------------------------------------------------------

static struct {
    const tn_backend *real;
    const tn_host *host;
    int submissions, fail_at; // submission number fail_at fails, from 1 on
    _Atomic uint64_t failing; // its point
} between;

static tn_status submit(tn_device *device, const tn_submission *what, uint64_t *out_point)
{
    tn_status status = between.real->submit(device, what, out_point);
    if (status == TN_OK && ++between.submissions == between.fail_at)
        atomic_store(&between.failing, *out_point);
    return status;
}

static tn_status wait_for(tn_device *device, uint64_t point)
{
    tn_status status = between.real->wait(device, point);
    if (status == TN_OK && point == atomic_load(&between.failing))
        return (between.host->fail)(between.host, TN_ERR_INTERNAL, "planted");
    return status;
}

// The next submission but `later` to the first device fails.
static struct device *plant(tn_runtime *rt, int later)
{
    static tn_backend table;
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(rt, &devices, &count));
    if (devices[0]->ops != &table) {
        between.real = devices[0]->ops;
        between.host = devices[0]->host;
        table = *between.real;
        table.submit = submit;
        table.wait = wait_for;
        devices[0]->ops = &table;
    }
    between.submissions = 0;
    between.fail_at = 1 + later;
    atomic_store(&between.failing, UINT64_MAX);
    return devices[0];
}

static int open_backend(void **state)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    *state = open_with((const char *const[]){variable, NULL});
    return 0;
}

// --- what is expected --------------------------------------------------------------------

static tn_array *started(tn_runtime *rt, const char *op, tn_array *of)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = of ? un(s, op, of) : ramp(s, 4, 4, 1, 1);
    must(s, tn_eval_async(s, x));
    tn_array *kept = tn_keep(s, x);
    assert_non_null(kept);
    tn_scope_close(s);
    return kept;
}

static void is_planted(tn_scope *s, tn_status status)
{
    char name[64];
    snprintf(name, sizeof(name), "device %s:0: ", backend);
    assert_int_equal(status, TN_ERR_INTERNAL);
    assert_message(tn_scope_error(s), name);
    assert_message(tn_scope_error(s), "planted");
    tn_scope_clear_error(s);
}

static void has_failed(tn_runtime *rt, tn_array *kept)
{
    float got[16];
    tn_scope *s = tn_scope_open(rt);
    for (int i = 0; i < 2; i++) {
        is_planted(s, tn_read(s, kept, got, sizeof(got)));
        is_planted(s, tn_eval(s, kept));
        assert_null(tn_data(s, kept));
        is_planted(s, tn_scope_status(s));
        is_planted(s, tn_eval(s, un(s, "exp", kept)));
        is_planted(s, tn_read(s, un(s, "sum", kept), got, sizeof(got[0])));
    }
    tn_scope_close(s);
}

static void is_good(tn_runtime *rt, tn_array *kept)
{
    float got[16];
    tn_scope *s = tn_scope_open(rt);
    must(s, tn_read(s, kept, got, sizeof(got)));
    must(s, tn_read(s, un(s, "exp", kept), got, sizeof(got)));
    tn_scope_close(s);
}

// --- tests -------------------------------------------------------------------------------

static void a_failure_is_told_each_time(void **state)
{
    tn_array *x = started(*state, NULL, NULL);
    plant(*state, 0);
    tn_array *bad = started(*state, "negative", x);
    has_failed(*state, bad);
    is_good(*state, x); // although the failed work was its last use
    tn_release(bad);
    tn_release(x);
}

static void what_depends_on_it_fails_and_nothing_else(void **state)
{
    // Whoever is asked first: the last, the one between, or one that knows nothing of it.
    for (int first = 0; first < 4; first++) {
        tn_array *x = started(*state, NULL, NULL);
        plant(*state, 1);
        tn_array *before = started(*state, "exp", x);
        tn_array *bad = started(*state, "negative", x);
        tn_array *after = started(*state, "exp", bad);
        tn_array *last = started(*state, "negative", after);
        tn_array *other = started(*state, "exp", before);
        if (first == 0)
            has_failed(*state, last);
        if (first == 1)
            has_failed(*state, after);
        if (first == 2)
            is_good(*state, other);
        has_failed(*state, bad);
        has_failed(*state, after);
        has_failed(*state, last);
        is_good(*state, other);
        is_good(*state, before);
        is_good(*state, x);
        tn_array *const all[] = {x, before, bad, after, last, other};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            tn_release(all[i]);
    }
}

static void waiting_for_what_depends_on_it_fails(void **state)
{
    tn_array *x = started(*state, NULL, NULL);
    plant(*state, 0);
    tn_array *bad = started(*state, "negative", x);
    tn_scope *s = tn_scope_open(*state);
    is_planted(s, tn_eval(s, un(s, "exp", bad)));
    must(s, tn_eval(s, un(s, "exp", x)));
    tn_scope_close(s);
    tn_release(bad);
    tn_release(x);
}

// Also where TENON_CHECK runs the launch once more beside it.
static void what_is_checked_fails_as_well(void **state)
{
    char variable[96];
    (void)state;
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    tn_runtime *rt = open_with((const char *const[]){variable, "TENON_CHECK=1", NULL});
    struct shadow *shadow = rt->shadow;
    assert_non_null(shadow);
    rt->shadow = NULL; // what is checked does not fail out of sight
    tn_array *x = started(rt, NULL, NULL);
    plant(rt, 0);
    tn_array *bad = started(rt, "negative", x);
    rt->shadow = shadow;
    tn_scope *s = tn_scope_open(rt);
    is_planted(s, tn_eval(s, un(s, "exp", bad)));
    must(s, tn_eval(s, un(s, "exp", x)));
    tn_scope_close(s);
    tn_release(bad);
    tn_release(x);
    tn_runtime_close(rt);
}

// What nobody reads is still known, and not remembered without end.
static void a_long_chain_fails_from_its_first_link_on(void **state)
{
    struct device *device = plant(*state, 0);
    tn_array *x = started(*state, NULL, NULL);
    tn_array *first = started(*state, "negative", x), *last = started(*state, "exp", first);
    for (int i = 0; i < 10000; i++) {
        tn_array *next = started(*state, "negative", last);
        tn_release(last);
        last = next;
        assert_true(device->num_fates <= 1025);
    }
    has_failed(*state, last);
    has_failed(*state, first);
    is_good(*state, x);
    tn_release(last);
    tn_release(first);
    tn_release(x);
}

static tn_status body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                      tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)user, (void)num_inputs, (void)num_outputs;
    const tn_array *x = inputs[0];
    outputs[0] = bin(s, "matmul", bin(s, "matmul", bin(s, "matmul", x, x), x), x);
    return TN_OK;
}

// A replay has memory of its own, which the failed one used before it.
static void the_next_call_of_a_function_is_not_harmed(void **state)
{
    tn_function *function;
    must(NULL, tn_function_create(*state, body, NULL, NULL, &function));
    tn_array *x = started(*state, NULL, NULL);
    tn_scope *s = tn_scope_open(*state);
    for (int i = 0; i < 6; i++) {
        tn_array *out;
        plant(*state, i % 2 ? 0 : 1000);
        must(s, tn_function_call(function, s, &x, 1, &out, 1));
        tn_array *kept = tn_keep(s, out);
        (i % 2 ? has_failed : is_good)(*state, kept);
        tn_release(kept);
    }
    tn_scope_close(s);
    tn_release(x);
    tn_function_destroy(function);
}

static void what_goes_to_another_device_is_looked_at(void **state)
{
    (void)state;
    struct device **devices;
    uint32_t count;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blas,null",
                                                     "TENON_KERNELS=base.sum@cpu-blas=!*",
                                                     "TENON_FALLBACK=allow", NULL});
    must(NULL, devices_open(rt, &devices, &count));
    assert_int_equal(count, 2);
    devices[0]->runs_reference = false;
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    must(s, tn_eval(s, un(s, "sum", un(s, "negative", x))));
    assert_true(stats_of(rt).transfers > 0);
    for (int later = 0; later < 2; later++) {
        plant(rt, later); // before the sum, and after it
        tn_array *all = un(s, "exp", un(s, "sum", un(s, "negative", x)));
        tn_status status = tn_eval_async(s, all);
        assert_int_equal(status == TN_OK, later == 1);
        float got;
        status = status == TN_OK ? tn_read(s, all, &got, sizeof(got)) : status;
        assert_int_equal(status, TN_ERR_INTERNAL);
        assert_message(tn_scope_error(s), "planted");
        tn_scope_clear_error(s);
    }
    must(s, tn_eval(s, un(s, "exp", un(s, "sum", un(s, "negative", x)))));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

// --- threads -----------------------------------------------------------------------------

struct reader {
    pthread_t thread;
    tn_runtime *runtime;
    tn_array *bad, *good;
    int wrong;
};

static void *read_both(void *context)
{
    struct reader *self = context;
    float got[16];
    for (int i = 0; i < 50; i++) {
        tn_scope *s = tn_scope_open(self->runtime);
        self->wrong += tn_read(s, self->good, got, sizeof(got)) != TN_OK;
        self->wrong += tn_read(s, self->bad, got, sizeof(got)) != TN_ERR_INTERNAL;
        tn_scope_close(s);
    }
    return NULL;
}

static void many_threads_are_told(void **state)
{
    struct reader readers[4];
    tn_array *x = started(*state, NULL, NULL);
    plant(*state, 0);
    tn_array *bad = started(*state, "negative", x), *after = started(*state, "exp", bad);
    tn_array *good = started(*state, "exp", x);
    for (int i = 0; i < 4; i++) {
        readers[i] =
            (struct reader){.runtime = *state, .bad = i % 2 ? bad : after, .good = good};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_both, &readers[i]),
                         0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].wrong, 0);
    }
    tn_array *const all[] = {x, bad, after, good};
    for (size_t i = 0; i < 4; i++)
        tn_release(all[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_backend, teardown)

int main(int argc, char **argv)
{
    backend = argc > 1 ? argv[1] : "null";
    const struct CMUnitTest tests[] = {
        TEST(a_failure_is_told_each_time),
        TEST(what_depends_on_it_fails_and_nothing_else),
        TEST(waiting_for_what_depends_on_it_fails),
        TEST(a_long_chain_fails_from_its_first_link_on),
        TEST(the_next_call_of_a_function_is_not_harmed),
        TEST(many_threads_are_told),
        cmocka_unit_test(what_is_checked_fails_as_well),
        cmocka_unit_test(what_goes_to_another_device_is_looked_at),
    };
    return cmocka_run_group_tests_name(backend, tests, NULL, NULL);
}
