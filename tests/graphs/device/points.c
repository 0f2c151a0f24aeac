// SPDX-License-Identifier: MIT
// Work of two devices, started without waiting: whoever starts it waits for no device, each
// device waits for the other's work, and failures go where the work goes.
// TENON_TEST_BACKEND: the device beside the CPU.
#include "base/fail.h"
#include "device/mover.h"
#include "device/outcome.h"
#include "graph/graph.h"
#include "primitive/prim_set.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/pack.h>
#include <time.h>
#include "../support/common.h"

#define N 64

// --- a gate: y = x + 1 on the CPU, when it is open -------------------------------------

static struct {
    atomic_bool is_open, gave_up, fails;
    atomic_int entered;
} gate;

static tn_status gate_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static void pass_gate(void)
{
    for (int i = 0; i < 5000 && !atomic_load(&gate.is_open); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!atomic_load(&gate.is_open))
        atomic_store(&gate.gave_up, true);
}

static tn_status gate_reference(const tn_cpu_call *call)
{
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    float *y = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    atomic_fetch_add(&gate.entered, 1);
    pass_gate();
    if (atomic_load(&gate.fails))
        return call->host->fail(call->host, TN_ERR_INTERNAL, "planted");
    for (int i = 0; i < N; i++)
        y[i] = x[i] + 1;
    return TN_OK;
}

TN_OP(gate_op, "test.gate/1", (x), .infer = gate_infer, .reference = gate_reference);

// --- the tables between: they count who waits, and hold copies while the gate is shut --

static struct {
    const tn_backend *real[2];
    struct device *device[2];
    tn_backend table[2];
    pthread_t application;
    atomic_int waits; // by the thread of the application
    atomic_int signals;
} between;

static tn_status count_wait(int which, tn_device *device, uint32_t queue, uint64_t value)
{
    if (pthread_equal(pthread_self(), between.application))
        atomic_fetch_add(&between.waits, 1);
    return between.real[which]->wait(device, queue, value);
}

static tn_status wait_first(tn_device *device, uint32_t queue, uint64_t value)
{
    return count_wait(0, device, queue, value);
}

static tn_status wait_second(tn_device *device, uint32_t queue, uint64_t value)
{
    return count_wait(1, device, queue, value);
}

// The CPU runs work whose inputs are there on the calling thread: a copy that ends before
// the work is submitted would let the application into the gate.
static tn_status hold_copy(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           void *data, uint64_t size)
{
    if (!pthread_equal(pthread_self(), between.application))
        pass_gate();
    return between.real[0]->buffer_read(device, buffer, offset, data, size);
}

static tn_status count_signal(tn_device *device, uint64_t value)
{
    atomic_fetch_add(&between.signals, 1);
    return between.real[device == between.device[1]->handle]->signal(device, value);
}

static void put_tables_between(tn_runtime *rt)
{
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(rt, &devices, &count));
    cr_assert(eq(uint, count, 2));
    for (int i = 0; i < 2; i++) {
        between.device[i] = devices[i];
        between.real[i] = devices[i]->ops;
        between.table[i] = *devices[i]->ops;
        between.table[i].wait = i ? wait_second : wait_first;
        between.table[i].signal = count_signal;
        if (i == 0)
            between.table[i].buffer_read = hold_copy;
        devices[i]->ops = &between.table[i];
    }
    between.application = pthread_self();
    atomic_store(&between.waits, 0);
}

// --- the runtime -----------------------------------------------------------------------

static bool waits_for_host; // of both devices

static void open_two(void)
{
    const char *backend = getenv("TENON_TEST_BACKEND");
    char variable[96];
    need_device(backend);
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s,cpu-blas", backend);
    runtime = open_with((const char *const[]){variable, "TENON_FALLBACK=allow", NULL});
    must(NULL, prim_register(runtime, NULL, &gate_op));
    put_tables_between(runtime);
    waits_for_host = device_has_host_points(between.device[0]) &&
                     device_has_host_points(between.device[1]);
    atomic_store(&gate.is_open, true); // tests may share a process
    atomic_store(&gate.gave_up, false);
    atomic_store(&gate.fails, false);
    atomic_store(&gate.entered, 0);
    atomic_store(&between.signals, 0);
}

TestSuite(points, .init = open_two, .fini = teardown);

static tn_array *twice(tn_scope *s, tn_array *x)
{
    return bin(s, "add", x, x);
}

// To and fro: 2 (2 (2 x) + 1) + 1, twice on the CPU. The nodes are matrices of N elements.
static tn_array *to_and_fro(tn_scope *s, tn_array *x)
{
    tn_array *y = un(s, "test.gate", twice(s, twice(s, x)));
    return un(s, "test.gate", twice(s, y));
}

static float after(float x)
{
    return 2 * (4 * x + 1) + 1;
}

static void reads(tn_scope *s, tn_array *y, float first)
{
    float got[N];
    must(s, tn_read(s, y, got, sizeof(got)));
    for (int i = 0; i < N; i++)
        if (got[i] != after(first + (float)i))
            cr_fatal("element %d is %g, expected %g", i, (double)got[i],
                     (double)after(first + (float)i));
}

static void must_wait_for_host(void)
{
    if (!waits_for_host)
        cr_skip("a device does not wait for the host: %s", getenv("TENON_TEST_BACKEND"));
}

// --- tests -----------------------------------------------------------------------------

Test(points, who_starts_work_on_two_devices_waits_for_none)
{
    must_wait_for_host();
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 1, N, 3, 1), *y = to_and_fro(s, x);
    atomic_store(&gate.is_open, false);
    must(s, tn_eval_async(s, y)); // the CPU's work cannot end before this returns
    cr_assert(eq(int, atomic_load(&between.waits), 0));
    atomic_store(&gate.is_open, true);
    cr_assert(eq(u64, stats_of(runtime).transfers, 3));
    reads(s, y, 3);
    cr_assert(not(atomic_load(&gate.gave_up)));
    cr_assert(eq(int, atomic_load(&gate.entered), 2));
    cr_assert(eq(int, atomic_load(&between.signals), 6)); // two devices a copy
    tn_scope_close(s);
}

static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = to_and_fro(s, in[0]);
    return tn_scope_status(s);
}

Test(points, calls_of_a_function_follow_each_other_without_a_wait)
{
    must_wait_for_host();
    tn_function *function;
    tn_array *out[8];
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    tn_scope *s = tn_scope_open(runtime);
    for (int round = 0; round < 2; round++) { // traced, then replayed
        tn_array *x[8];
        for (int i = 0; i < 8; i++)
            x[i] = ramp(s, 1, N, (float)i, 1);
        atomic_store(&gate.is_open, false);
        atomic_store(&between.waits, 0);
        for (int i = 0; i < 8; i++)
            must(s, tn_function_call(function, s, &x[i], 1, &out[i], 1));
        cr_assert(eq(int, atomic_load(&between.waits), 0));
        atomic_store(&gate.is_open, true);
        for (int i = 7; i >= 0; i--)
            reads(s, out[i], (float)i);
    }
    cr_assert(not(atomic_load(&gate.gave_up)));
    tn_scope_close(s);
    tn_function_destroy(function);
}

// y = the gate's result of x, and z in the memory of x, which was donated.
static tn_status body_that_overwrites(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                      tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = un(s, "test.gate", in[0]);
    out[1] = bin(s, "add", in[0], tn_float(s, 100));
    return tn_scope_status(s);
}

Test(points, what_is_copied_is_not_overwritten_before)
{
    const uint32_t donated = 0;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = &donated, .num_donated = 1};
    tn_function *function;
    must(NULL,
         tn_function_create(runtime, body_that_overwrites, NULL, &options, &function));
    for (int round = 0; round < 20; round++) {
        float got[2][N];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = twice(s, ramp(s, 1, N, (float)round, 1)), *out[2];
        must(s, tn_eval_async(s, x));
        must(s, tn_function_call(function, s, &x, 1, out, 2));
        must(s, tn_read(s, out[1], got[1], sizeof(got[1])));
        must(s, tn_read(s, out[0], got[0], sizeof(got[0])));
        for (int i = 0; i < N; i++) {
            float want = 2 * ((float)round + (float)i);
            cr_assert(eq(flt, got[0][i], want + 1));
            cr_assert(eq(flt, got[1][i], want + 100));
        }
        tn_scope_close(s);
    }
    tn_function_destroy(function);
}

// The sum of `count` results of the gate, of x, 2 x, 3 x, ...: each is copied to and fro.
static tn_array *fan_out(tn_scope *s, tn_array *x, int count)
{
    tn_array *sum = NULL;
    for (int i = 1; i <= count; i++) {
        tn_array *y = un(s, "test.gate", bin(s, "multiply", x, tn_float(s, i)));
        sum = sum ? bin(s, "add", sum, y) : y;
    }
    return sum;
}

static tn_status body_that_fans_out(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                    tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = fan_out(s, in[0], *(const int *)user);
    return tn_scope_status(s);
}

static void starts_many_copies(tn_function *function, int count)
{
    float got[N], sum = (float)(count * (count + 1) / 2);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 1, N, 3, 1), *y = NULL;
    atomic_store(&gate.is_open, false); // no copy ends before all are queued
    if (function)
        must(s, tn_function_call(function, s, &x, 1, &y, 1));
    else
        must(s, tn_eval_async(s, y = fan_out(s, x, count)));
    atomic_store(&gate.is_open, true);
    must(s, tn_read(s, y, got, sizeof(got)));
    for (int i = 0; i < N; i++)
        cr_assert(eq(flt, got[i], sum * (float)(3 + i) + (float)count));
    tn_scope_close(s);
}

// Work may depend on more copies into its arena than it has slots and the plan segments.
Test(points, work_depends_on_any_number_of_copies, .timeout = 60)
{
    static const int counts[] = {2, 4, 6, 8, 16, 48};
    must_wait_for_host();
    for (size_t row = 0; row < sizeof(counts) / sizeof(counts[0]); row++) {
        int count = counts[row];
        tn_function *function;
        must(NULL,
             tn_function_create(runtime, body_that_fans_out, &count, NULL, &function));
        starts_many_copies(NULL, count);
        starts_many_copies(function, count);
        tn_function_destroy(function);
    }
    cr_assert(not(atomic_load(&gate.gave_up)));
}

Test(points, a_failure_goes_with_the_copy_and_no_further)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *good = to_and_fro(s, ramp(s, 1, N, 1, 1));
    must(s, tn_eval_async(s, good));
    reads(s, good, 1);
    atomic_store(&gate.fails, true);
    tn_array *bad = twice(s, un(s, "test.gate", twice(s, ramp(s, 1, N, 5, 1))));
    tn_status status = tn_eval_async(s, bad); // or the CPU failed at once
    float got[N];
    for (int i = 0; i < 2; i++) {
        if (status == TN_OK || i > 0)
            check_status(tn_read(s, bad, got, sizeof(got)), TN_ERR_INTERNAL);
        check_says(tn_scope_error(s), "planted");
        tn_scope_clear_error(s);
    }
    atomic_store(&gate.fails, false);
    tn_array *later = to_and_fro(s, ramp(s, 1, N, 2, 1));
    must(s, tn_eval_async(s, later));
    reads(s, later, 2);
    reads(s, good, 1);
    tn_scope_close(s);
}

// What a device other than the work's own waits for, without a copy.
Test(points, a_point_of_another_device_can_be_waited_for)
{
    must_wait_for_host();
    uint64_t value = 0, none = 0;
    tn_scope *s = tn_scope_open(runtime);
    atomic_store(&gate.is_open, false);
    must(s, tn_scope_device(s, "cpu-blas"));
    tn_array *y = un(s, "test.gate", ramp(s, 1, N, 0, 1));
    must(s, tn_eval_async(s, y));
    struct move *move = move_create(0);
    move->to = between.device[0];
    move->after = between.device[1];
    move->after_point = outcome_point(y->value->storage->outcome);
    must(NULL, mover_add(runtime, move, &value, &none));
    const tn_point point = {.queue = between.device[0]->num_queues, .value = value};
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    cr_assert(not(device_has_reached(between.device[0], point)));
    atomic_store(&gate.is_open, true);
    must(NULL, device_wait(between.device[0], point));
    cr_assert(
        device_has_reached(between.device[1], outcome_point(y->value->storage->outcome)));
    cr_assert(not(atomic_load(&gate.gave_up)));
    tn_scope_close(s);
}

Test(points, closing_ends_the_copies_first)
{
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 8; i++)
        must(s, tn_eval_async(s, to_and_fro(s, ramp(s, 1, N, (float)i, 1))));
    tn_scope_close(s);
} // teardown() closes the runtime

static void *evaluate_often(void *context)
{
    float first = *(const float *)context;
    for (int round = 0; round < 20; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y[3];
        for (int i = 0; i < 3; i++) {
            y[i] = to_and_fro(s, ramp(s, 1, N, first + (float)i, 1));
            must(s, i == 1 ? tn_eval(s, y[i]) : tn_eval_async(s, y[i]));
        }
        for (int i = 2; i >= 0; i--)
            reads(s, y[i], first + (float)i);
        tn_scope_close(s);
    }
    return NULL;
}

Test(points, threads_evaluate_on_two_devices_at_once)
{
    pthread_t threads[4];
    float first[4] = {0, 1000, 2000, 3000};
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, evaluate_often, &first[i]), 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
