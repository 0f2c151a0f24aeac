// SPDX-License-Identifier: MIT
// Work that fails after the call that started it has returned: whoever needs what it made
// gets the failure, each time; whatever does not, goes on. TENON_TEST_BACKEND says where.
//
// The backend's table is exchanged for one in which chosen submissions fail.
#include "device/device.h"
#include <pthread.h>
#include <tenon/retain.h>
#include "../support/common.h"

static const char *backend;

// --- the table between -------------------------------------------------------------------

static struct {
    const tn_backend *real;
    const tn_host *host;
    int submissions, fail_at; // submission number fail_at fails, from 1 on
    _Atomic uint64_t failing; // value of its point: the tests use one thread, so one queue
} between;

static tn_status submit(tn_device *device, const tn_submission *what, uint64_t *out_point)
{
    tn_status status = between.real->submit(device, what, out_point);
    if (status == TN_OK && ++between.submissions == between.fail_at)
        atomic_store(&between.failing, *out_point);
    return status;
}

static tn_status wait_for(tn_device *device, uint32_t queue, uint64_t value)
{
    tn_status status = between.real->wait(device, queue, value);
    if (status == TN_OK && value == atomic_load(&between.failing))
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

static void open_backend(void)
{
    backend = getenv("TENON_TEST_BACKEND");
    char variable[96];
    need_device(backend);
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    runtime = open_with((const char *const[]){variable, NULL});
}

// --- what is expected --------------------------------------------------------------------

static tn_array *started(tn_runtime *rt, const char *op, tn_array *of)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = of ? un(s, op, of) : ramp(s, 4, 4, 1, 1);
    must(s, tn_eval_async(s, x));
    tn_array *kept = tn_keep(s, x);
    cr_assert(ne(ptr, kept, NULL));
    tn_scope_close(s);
    return kept;
}

static void is_planted(tn_scope *s, tn_status status)
{
    char name[64];
    snprintf(name, sizeof(name), "device %s:0: ", backend);
    check_status(status, TN_ERR_INTERNAL);
    check_says(tn_scope_error(s), name);
    check_says(tn_scope_error(s), "planted");
    tn_scope_clear_error(s);
}

static void has_failed(tn_runtime *rt, tn_array *kept)
{
    float got[16];
    tn_scope *s = tn_scope_open(rt);
    for (int i = 0; i < 2; i++) {
        is_planted(s, tn_read(s, kept, got, sizeof(got)));
        is_planted(s, tn_eval(s, kept));
        cr_assert(eq(ptr, tn_data(s, kept), NULL));
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

TestSuite(poison, .init = open_backend, .fini = teardown);

Test(poison, a_failure_is_told_each_time)
{
    tn_array *x = started(runtime, NULL, NULL);
    plant(runtime, 0);
    tn_array *bad = started(runtime, "negative", x);
    has_failed(runtime, bad);
    is_good(runtime, x); // although the failed work was its last use
    tn_release(bad);
    tn_release(x);
}

Test(poison, what_depends_on_it_fails_and_nothing_else)
{
    // Whoever is asked first: the last, the one between, or one that knows nothing of it.
    for (int first = 0; first < 4; first++) {
        tn_array *x = started(runtime, NULL, NULL);
        plant(runtime, 1);
        tn_array *before = started(runtime, "exp", x);
        tn_array *bad = started(runtime, "negative", x);
        tn_array *after = started(runtime, "exp", bad);
        tn_array *last = started(runtime, "negative", after);
        tn_array *other = started(runtime, "exp", before);
        if (first == 0)
            has_failed(runtime, last);
        if (first == 1)
            has_failed(runtime, after);
        if (first == 2)
            is_good(runtime, other);
        has_failed(runtime, bad);
        has_failed(runtime, after);
        has_failed(runtime, last);
        is_good(runtime, other);
        is_good(runtime, before);
        is_good(runtime, x);
        tn_array *const all[] = {x, before, bad, after, last, other};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            tn_release(all[i]);
    }
}

Test(poison, what_is_retained_fails_in_each_scope)
{
    tn_array *x = started(runtime, NULL, NULL);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *bad = tn_retain(s, un(s, "negative", x)),
             *later = tn_retain(s, un(s, "exp", bad));
    tn_scope_close(s);
    plant(runtime, 0);
    s = tn_scope_open(runtime);
    must(s, tn_eval_async(s, bad));
    tn_scope_close(s);
    has_failed(runtime, bad);
    has_failed(runtime, later);
    is_good(runtime, x);
    tn_release(bad);
    tn_release(later);
    tn_release(x);
}

Test(poison, waiting_for_what_depends_on_it_fails)
{
    tn_array *x = started(runtime, NULL, NULL);
    plant(runtime, 0);
    tn_array *bad = started(runtime, "negative", x);
    tn_scope *s = tn_scope_open(runtime);
    is_planted(s, tn_eval(s, un(s, "exp", bad)));
    must(s, tn_eval(s, un(s, "exp", x)));
    tn_scope_close(s);
    tn_release(bad);
    tn_release(x);
}

// Also where TENON_CHECK runs the launch once more beside it.
Test(poison, what_is_checked_fails_as_well)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    tn_runtime *rt = open_with((const char *const[]){variable, "TENON_CHECK=1", NULL});
    tn_array *x = started(rt, NULL, NULL);
    plant(rt, 0);
    tn_array *bad = started(rt, "negative", x);
    tn_scope *s = tn_scope_open(rt);
    is_planted(s, tn_eval(s, un(s, "exp", bad)));
    must(s, tn_eval(s, un(s, "exp", x)));
    tn_scope_close(s);
    tn_release(bad);
    tn_release(x);
    tn_runtime_close(rt);
}

// What nobody reads is still known, and not remembered without end.
Test(poison, a_long_chain_fails_from_its_first_link_on)
{
    struct device *device = plant(runtime, 0);
    tn_array *x = started(runtime, NULL, NULL);
    tn_array *first = started(runtime, "negative", x),
             *last = started(runtime, "exp", first);
    for (int i = 0; i < 10000; i++) {
        tn_array *next = started(runtime, "negative", last);
        tn_release(last);
        last = next;
        cr_assert(device->queues[device_queue_of_thread(device)].num_outcomes <= 257);
    }
    has_failed(runtime, last);
    has_failed(runtime, first);
    is_good(runtime, x);
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
Test(poison, the_next_call_of_a_function_is_not_harmed)
{
    tn_function *function;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    tn_array *x = started(runtime, NULL, NULL);
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 6; i++) {
        tn_array *out;
        plant(runtime, i % 2 ? 0 : 1000);
        must(s, tn_function_call(function, s, &x, 1, &out, 1));
        tn_array *kept = tn_keep(s, out);
        (i % 2 ? has_failed : is_good)(runtime, kept);
        tn_release(kept);
    }
    tn_scope_close(s);
    tn_release(x);
    tn_function_destroy(function);
}

// Sums go to the second device.
static tn_runtime *open_two_devices(void)
{
    struct device **devices;
    uint32_t count;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blas,null",
                                                     "TENON_KERNELS=base.sum@cpu-blas=!*",
                                                     "TENON_FALLBACK=allow", NULL});
    must(NULL, devices_open(rt, &devices, &count));
    cr_assert(eq(uint, count, 2));
    devices[0]->runs_reference = false;
    return rt;
}

Test(poison, what_goes_to_another_device_is_looked_at)
{
    tn_runtime *rt = open_two_devices();
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 8, 8, 0, 1);
    must(s, tn_eval(s, un(s, "sum", un(s, "negative", x))));
    cr_assert(stats_of(rt).transfers > 0);
    for (int later = 0; later < 2; later++) {
        plant(rt, later); // before the sum, and after it
        tn_array *all = un(s, "exp", un(s, "sum", un(s, "negative", x)));
        tn_status status = tn_eval_async(s, all);
        cr_assert(eq(int, status == TN_OK, later == 1));
        float got;
        status = status == TN_OK ? tn_read(s, all, &got, sizeof(got)) : status;
        check_status(status, TN_ERR_INTERNAL);
        check_says(tn_scope_error(s), "planted");
        tn_scope_clear_error(s);
    }
    must(s, tn_eval(s, un(s, "exp", un(s, "sum", un(s, "negative", x)))));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

// Two submissions to the first device, with a sum on the second between that waits for
// neither; the second finds in the plan's memory what the first left there.
Test(poison, a_plan_fails_from_the_failed_submission_on)
{
    tn_runtime *rt = open_two_devices();
    tn_scope *s = tn_scope_open(rt);
    for (int later = 0; later <= 2; later++) {
        tn_array *x = ramp(s, 8, 8, 0, 1), *y = bin(s, "matmul", x, x);
        y = bin(s, "matmul", bin(s, "multiply", y, un(s, "sum", x)), y);
        plant(rt, later);
        float got[64];
        tn_status status = tn_eval_async(s, y);
        cr_assert(status != TN_OK || between.submissions == 2);
        status = status == TN_OK ? tn_read(s, y, got, sizeof(got)) : status;
        cr_assert(eq(int, status, later < 2 ? TN_ERR_INTERNAL : TN_OK));
        tn_scope_clear_error(s);
    }
    tn_scope_close(s);
    tn_runtime_close(rt);
}

// --- threads -----------------------------------------------------------------------------

struct poison_reader {
    pthread_t thread;
    tn_runtime *runtime;
    tn_array *bad, *good;
    int wrong;
};

static void *read_both(void *context)
{
    struct poison_reader *self = context;
    float got[16];
    for (int i = 0; i < 50; i++) {
        tn_scope *s = tn_scope_open(self->runtime);
        self->wrong += tn_read(s, self->good, got, sizeof(got)) != TN_OK;
        self->wrong += tn_read(s, self->bad, got, sizeof(got)) != TN_ERR_INTERNAL;
        tn_scope_close(s);
    }
    return NULL;
}

Test(poison, many_threads_are_told)
{
    struct poison_reader readers[4];
    tn_array *x = started(runtime, NULL, NULL);
    plant(runtime, 0);
    tn_array *bad = started(runtime, "negative", x), *after = started(runtime, "exp", bad);
    tn_array *good = started(runtime, "exp", x);
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct poison_reader){
            .runtime = runtime, .bad = i % 2 ? bad : after, .good = good};
        cr_assert(
            eq(int, pthread_create(&readers[i].thread, NULL, read_both, &readers[i]), 0));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(readers[i].thread, NULL);
        cr_assert(eq(int, readers[i].wrong, 0));
    }
    tn_array *const all[] = {x, bad, after, good};
    for (size_t i = 0; i < 4; i++)
        tn_release(all[i]);
}
