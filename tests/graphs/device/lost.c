// SPDX-License-Identifier: MIT
// Devices that are lost while the core uses them: at each call of an evaluation in turn,
// with work on its way, and under several threads. Whoever needs what was there gets the
// error, other devices go on, and nothing is left behind. TENON_TEST_BACKEND says which.
//
// The backend's table is exchanged for one that counts and then does as the backend does.
#include "device/device.h"
#include <pthread.h>
#include <unistd.h>
#include "../support/common.h"
#include "plugin/find/plugin.h"

static const char *backend;

// --- the table between -------------------------------------------------------------------

static struct {
    const tn_backend *real;
    const tn_device_loss *loss;
    atomic_int calls, lose_at; // the device is lost in call number lose_at, from 1 on
    atomic_int objects;        // buffers and executables that exist
} between;

static void count_call(tn_device *device)
{
    if (atomic_fetch_add(&between.calls, 1) + 1 == atomic_load(&between.lose_at))
        check_status(between.loss->lose(device), TN_OK);
}

static tn_status made(tn_status status)
{
    if (status == TN_OK)
        atomic_fetch_add(&between.objects, 1);
    return status;
}

static tn_status buffer_create(tn_device *device, uint64_t size, tn_buffer **out)
{
    count_call(device);
    return made(between.real->buffer_create(device, size, out));
}

static void buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    atomic_fetch_sub(&between.objects, buffer != NULL);
    between.real->buffer_destroy(device, buffer);
}

static tn_status buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size)
{
    count_call(device);
    return between.real->buffer_write(device, buffer, offset, data, size);
}

static tn_status buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size)
{
    count_call(device);
    return between.real->buffer_read(device, buffer, offset, data, size);
}

static tn_status segment_compile(tn_device *device, const tn_segment *segment,
                                 tn_executable **out)
{
    count_call(device);
    return made(between.real->segment_compile(device, segment, out));
}

static void executable_destroy(tn_device *device, tn_executable *executable)
{
    atomic_fetch_sub(&between.objects, executable != NULL);
    between.real->executable_destroy(device, executable);
}

// Before, and once more when the work is on its way.
static tn_status submit(tn_device *device, const tn_submission *what, uint64_t *out_point)
{
    count_call(device);
    tn_status status = between.real->submit(device, what, out_point);
    if (status == TN_OK)
        count_call(device);
    return status;
}

static tn_status wait_for(tn_device *device, uint32_t queue, uint64_t value)
{
    count_call(device);
    return between.real->wait(device, queue, value);
}

static struct device *find_device(tn_runtime *rt)
{
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(rt, &devices, &count));
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(devices[i]->name, backend, strlen(backend)) == 0)
            return devices[i];
    cr_fatal("no device of %s", backend);
    return NULL;
}

// Losing it at call number `lose_at`; 0: not.
static void put_between(tn_runtime *rt, int lose_at)
{
    static tn_backend table;
    struct device *device = find_device(rt);
    between.real = device->ops;
    between.loss = device->plugin->entry->query(TN_IFACE_DEVICE_LOSS);
    cr_assert(ne(ptr, between.loss, NULL));
    table = *between.real;
    table.buffer_create = buffer_create;
    table.buffer_destroy = buffer_destroy;
    table.buffer_write = buffer_write;
    table.buffer_read = buffer_read;
    table.segment_compile = segment_compile;
    table.executable_destroy = executable_destroy;
    table.submit = submit;
    table.wait = wait_for;
    device->ops = &table;
    atomic_store(&between.calls, 0);
    atomic_store(&between.lose_at, lose_at);
    cr_assert(eq(int, atomic_load(&between.objects), 0));
}

static void lose(tn_runtime *rt)
{
    check_status(between.loss->lose(find_device(rt)->handle), TN_OK);
}

static void nothing_is_left(tn_runtime *rt)
{
    tn_runtime_close(rt);
    cr_assert(eq(int, atomic_load(&between.objects), 0));
}

// --- graphs ------------------------------------------------------------------------------

static tn_runtime *open_alone(void)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    return open_with((const char *const[]){variable, NULL});
}

// cpu-blas first, which has no kernel for sums, and here no references either.
static tn_runtime *open_second(void)
{
    char variable[96];
    struct device **devices;
    uint32_t count;
    snprintf(variable, sizeof(variable), "TENON_BACKEND=cpu-blas,%s", backend);
    tn_runtime *rt = open_with((const char *const[]){
        variable, "TENON_KERNELS=base.sum@cpu-blas=!*", "TENON_FALLBACK=allow", NULL});
    must(NULL, devices_open(rt, &devices, &count));
    cr_assert(eq(uint, count, 2));
    devices[0]->runs_reference = false;
    return rt;
}

// Where there are two devices: there, here, and there again.
static tn_array *build(tn_scope *s)
{
    tn_array *x = ramp(s, 8, 8, 0, 1);
    return un(s, "exp", un(s, "sum", un(s, "negative", x)));
}

static tn_status evaluate(tn_runtime *rt)
{
    float got;
    tn_scope *s = tn_scope_open(rt);
    tn_status status = tn_read(s, build(s), &got, sizeof(got));
    tn_scope_close(s);
    return status;
}

// The message is the scope's, or without one the thread's.
static void is_lost(tn_status status, const tn_scope *s)
{
    char name[64];
    const char *text = s ? tn_scope_error(s) : tn_last_error();
    snprintf(name, sizeof(name), "device %s:0: ", backend);
    check_status(status, TN_ERR_DEVICE);
    check_says(text, name);
    check_says(text, "lost");
    check_says(text, "open a new runtime");
}

// What needs no sum stays where it is.
static void the_other_computes(tn_runtime *rt)
{
    float got[4];
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 2, 2, 1, 1);
    must(s, tn_read(s, bin(s, "add", x, x), got, sizeof(got)));
    cr_assert(got[0] == 2 && got[3] == 8);
    tn_scope_close(s);
}

static int check_each_call(tn_runtime *(*open)(void))
{
    for (int n = 1;; n++) {
        tn_runtime *rt = open();
        put_between(rt, n);
        tn_status status = evaluate(rt);
        if (atomic_load(&between.calls) < n) { // it is over before
            must(NULL, status);
            nothing_is_left(rt);
            return n - 1;
        }
        is_lost(status, NULL);
        is_lost(evaluate(rt), NULL);
        if (open == open_second)
            the_other_computes(rt);
        nothing_is_left(rt);
    }
}

static void find_backend(void)
{
    backend = getenv("TENON_TEST_BACKEND");
    need_device(backend);
}

TestSuite(lost, .init = find_backend, .timeout = 120);

Test(lost, it_may_be_lost_in_each_call)
{
    cr_assert(check_each_call(open_alone) >= 6);
}

Test(lost, it_may_be_lost_between_two_others)
{
    tn_runtime *rt = open_second();
    evaluate(rt);
    cr_assert(stats_of(rt).transfers > 0);
    tn_runtime_close(rt);
    cr_assert(check_each_call(open_second) >= 6);
}

Test(lost, another_runtime_computes_on)
{
    tn_runtime *rt = open_alone(), *before = open_alone();
    must(NULL, evaluate(before));
    put_between(rt, 0);
    must(NULL, evaluate(rt));
    lose(rt);
    is_lost(evaluate(rt), NULL);
    must(NULL, evaluate(before));
    tn_runtime *after = open_alone();
    must(NULL, evaluate(after));
    is_lost(evaluate(rt), NULL);
    tn_runtime_close(before);
    tn_runtime_close(after);
    nothing_is_left(rt);
}

// --- what was there ----------------------------------------------------------------------

// Each time, and not the first time only.
static void cannot_be_had(tn_runtime *rt, tn_array *kept)
{
    float got[64];
    for (int i = 0; i < 2; i++) {
        tn_scope *s = tn_scope_open(rt);
        is_lost(tn_read(s, kept, got, sizeof(got)), s);
        tn_scope_close(s);
        s = tn_scope_open(rt);
        cr_assert(eq(ptr, tn_data(s, kept), NULL));
        is_lost(tn_scope_status(s), s);
        tn_scope_close(s);
        s = tn_scope_open(rt);
        is_lost(tn_eval(s, kept), s);
        tn_scope_close(s);
        s = tn_scope_open(rt);
        is_lost(tn_eval(s, un(s, "negative", kept)), s);
        tn_scope_close(s);
    }
}

Test(lost, what_was_there_cannot_be_had)
{
    for (int waited = 0; waited < 2; waited++) {
        tn_runtime *rt = open_alone();
        put_between(rt, 0);
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = un(s, "negative", ramp(s, 8, 8, 0, 1));
        if (waited)
            must(s, tn_eval(s, x));
        must(s, tn_eval_async(s, x));
        tn_array *kept = tn_keep(s, x);
        tn_scope_close(s);
        lose(rt);
        cannot_be_had(rt, kept);
        tn_release(kept);
        nothing_is_left(rt);
    }
}

Test(lost, what_depends_on_it_elsewhere_fails_alone)
{
    float got;
    tn_runtime *rt = open_second();
    put_between(rt, 0);
    tn_scope *s = tn_scope_open(rt);
    tn_array *there = un(s, "sum", ramp(s, 8, 8, 0, 1));
    tn_array *here = un(s, "exp", ramp(s, 1, 1, 0, 1));
    must(s, tn_eval_async(s, there, here));
    tn_array *kept_there = tn_keep(s, there), *kept_here = tn_keep(s, here);
    tn_scope_close(s);
    lose(rt);
    for (int i = 0; i < 2; i++) {
        s = tn_scope_open(rt);
        is_lost(tn_read(s, bin(s, "add", kept_here, kept_there), &got, sizeof(got)), s);
        tn_scope_close(s);
        s = tn_scope_open(rt);
        must(s, tn_read(s, bin(s, "add", kept_here, kept_here), &got, sizeof(got)));
        cr_assert(got == 2);
        tn_scope_close(s);
    }
    tn_release(kept_here);
    tn_release(kept_there);
    nothing_is_left(rt);
}

Test(lost, memory_of_the_lost_is_given_back_at_once)
{
    tn_runtime *rt = open_alone();
    put_between(rt, 0);
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = un(s, "negative", ramp(s, 64, 64, 0, 1));
    must(s, tn_eval_async(s, x));
    int before = atomic_load(&between.objects);
    lose(rt);
    check_status(tn_eval(s, x), TN_ERR_DEVICE);
    tn_scope_close(s);
    cr_assert(atomic_load(&between.objects) <= before - 2); // the leaf, and x
    nothing_is_left(rt);
}

// --- threads -----------------------------------------------------------------------------

struct user {
    tn_runtime *rt;
    tn_status status;
};

static void *evaluate_until_lost(void *context)
{
    struct user *user = context;
    while (user->status == TN_OK)
        user->status = evaluate(user->rt);
    return NULL;
}

Test(lost, threads_that_use_it_all_get_the_error)
{
    enum { THREADS = 3 };
    struct user users[THREADS];
    pthread_t threads[THREADS];
    tn_runtime *rt = open_alone();
    put_between(rt, 0);
    must(NULL, evaluate(rt));
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){rt, TN_OK};
        cr_assert(
            eq(int, pthread_create(&threads[i], NULL, evaluate_until_lost, &users[i]), 0));
    }
    usleep(20000);
    lose(rt);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        check_status(users[i].status, TN_ERR_DEVICE);
    }
    nothing_is_left(rt);
}
