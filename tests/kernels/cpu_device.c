// SPDX-License-Identifier: MIT
// The CPU backend's devices: loops, errors, order of submissions, buffers, threads.
// TENON_TEST_PLUGIN names the plugin.
#include "check.h"

#include <pthread.h>
#include "device_harness.h"

static const tn_plugin *cpu;
static struct device_harness harness;

static void load(void)
{
    cpu = harness_load(check_getenv("TENON_TEST_PLUGIN"));
}

static void open_device(void)
{
    load();
    harness_threads = "3"; // however many processors there are
    harness_open(&harness, cpu);
    harness_threads = NULL;
}

static void close_device(void)
{
    harness_close(&harness);
    cr_assert(eq(i64, harness_leaks(), 0));
}

TestSuite(cpu_device, .init = open_device, .fini = close_device);

static int64_t covered[1000];

static void cover(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    (void)context;
    for (int64_t i = begin; i < end; i++)
        covered[i]++;
}

static tn_status covering_kernel(const tn_cpu_call *call)
{
    call->parallel_for(call, 1000, 10, cover, NULL);
    for (int i = 0; i < 1000; i++)
        if (covered[i] != 1)
            return (call->host->fail)(call->host, TN_ERR_INTERNAL, "%d: %lld times", i,
                                      (long long)covered[i]);
    memset(covered, 0, sizeof(covered));
    return TN_OK;
}

static tn_status failing_kernel(const tn_cpu_call *call)
{
    return (call->host->fail)(call->host, TN_ERR_ARGUMENT, "axis %d is bad", 7);
}

static const tn_cpu_kernel covering = {sizeof(covering), 0, covering_kernel};
static const tn_cpu_kernel failing = {sizeof(failing), 0, failing_kernel};
static const tn_kernel covering_record = {
    .struct_size = sizeof(tn_kernel), .family = TN_FAMILY_CPU, .payload = &covering};
static const tn_kernel failing_record = {
    .struct_size = sizeof(tn_kernel), .family = TN_FAMILY_CPU, .payload = &failing};

Test(cpu_device, loops_of_others_cover_each_index_once)
{
    harness_step(&harness, 0, 0)->kernel = &covering_record;
    for (int i = 0; i < 3000; i++)
        cr_assert(harness_run(&harness) == TN_OK);
}

Test(cpu_device, a_failing_step_is_reported_by_who_waits_for_it)
{
    uint64_t bad, good;
    harness_step(&harness, 0, 0)->kernel = &failing_record;
    cr_assert(harness_run(&harness) == TN_ERR_ARGUMENT);
    cr_assert(harness_submit(&harness, TN_SUBMIT_ASYNC, &bad) == TN_OK);
    tn_executable *failing_executable = harness.executable;
    harness.executable = NULL;
    harness.steps[0].kernel = &covering_record;
    cr_assert(harness_compile(&harness) == TN_OK);
    cr_assert(harness_submit(&harness, TN_SUBMIT_ASYNC, &good) == TN_OK);
    harness_message[0] = 0;
    cr_assert(harness.backend->wait(harness.device, 0, good) == TN_OK);
    cr_assert(harness.backend->wait(harness.device, 0, bad) == TN_ERR_ARGUMENT);
    cr_assert(eq(str, (char *)(harness_message), (char *)("axis 7 is bad")));
    harness.backend->executable_destroy(harness.device, failing_executable);
}

// Only the latest are remembered one by one; the others do not count as done.
Test(cpu_device, a_failure_that_was_forgotten_is_no_success)
{
    enum { MANY = 600 };
    uint64_t points[MANY];
    harness_step(&harness, 0, 0)->kernel = &failing_record;
    cr_assert(harness_compile(&harness) == TN_OK);
    for (int i = 0; i < MANY; i++)
        cr_assert(harness_submit(&harness, TN_SUBMIT_ASYNC, &points[i]) == TN_OK);
    cr_assert(harness.backend->wait(harness.device, 0, points[MANY - 1]) ==
              TN_ERR_ARGUMENT);
    for (int i = 0; i < MANY; i++)
        cr_assert(harness.backend->wait(harness.device, 0, points[i]) != TN_OK);
    cr_assert(eq(str, (char *)(harness_message), (char *)("axis 7 is bad")));
    cr_assert(harness.backend->wait(harness.device, 0, points[0]) == TN_ERR_INTERNAL);
    check_says(harness_message, "no longer known");
}

// 3 * x + 1
static const tn_expr_insn insns[] = {{TN_EXPR_LOAD, TN_I64, 0, 0, 0},
                                     {TN_EXPR_CONST, TN_I64, 0, 0, 0},
                                     {TN_EXPR_CONST, TN_I64, 1, 0, 0},
                                     {TN_EXPR_MUL, TN_I64, 0, 1, 0},
                                     {TN_EXPR_ADD, TN_I64, 3, 2, 0}};
static const uint64_t constants[] = {3, 1};
static const tn_dtype i64s[] = {TN_I64};
static const uint32_t outputs[] = {4};
static const tn_expr_program affine = {.struct_size = sizeof(affine),
                                       .insns = insns,
                                       .constants = constants,
                                       .input_dtypes = i64s,
                                       .output_dtypes = i64s,
                                       .outputs = outputs,
                                       .num_insns = 5,
                                       .num_constants = 2,
                                       .num_inputs = 1,
                                       .num_outputs = 1};

Test(cpu_device, submissions_keep_their_order)
{
    int64_t n = 100, expected = 0;
    tn_layout layout = harness_layout(TN_I64, 1, &n);
    uint32_t slot = harness_slot(&harness, 800);
    uint64_t point = 0;
    memset(harness_memory(&harness, slot), 0, 800);
    tn_step *step = harness_step(&harness, 1, 1);
    step->program = &affine;
    harness_set(step, 0, slot, &layout);
    harness_set(step, 1, slot, &layout); // in place
    cr_assert(harness_compile(&harness) == TN_OK);
    for (int i = 0; i < 500; i++) {
        uint64_t next;
        cr_assert(harness_submit(&harness, i % 3 ? TN_SUBMIT_ASYNC : 0, &next) == TN_OK);
        cr_assert(next > point);
        point = next;
        expected = (int64_t)((uint64_t)expected * 3 + 1);
    }
    cr_assert(harness.backend->wait(harness.device, 0, point) == TN_OK);
    for (int i = 0; i < 100; i++)
        cr_assert(eq(i64, ((int64_t *)harness_memory(&harness, slot))[i], expected));
}

// --- several queues --------------------------------------------------------------------

enum { LONG = 100000, RUNS = 30 };

struct submitter {
    uint32_t queue;
    tn_binding bindings[2]; // own
    bool is_wrong;
};

// out = 3 * x + 1 of every second element: through registers, and long enough for the pool.
static void *run_long_programs(void *context)
{
    struct submitter *s = context;
    int64_t *x = harness.backend->buffer_map(harness.device, s->bindings[0].buffer);
    const int64_t *out = harness.backend->buffer_map(harness.device, s->bindings[1].buffer);
    const tn_submission submission = {.struct_size = sizeof(submission),
                                      .executable = harness.executable,
                                      .bindings = s->bindings,
                                      .num_bindings = 2,
                                      .binding_size = sizeof(tn_binding),
                                      .queue = s->queue};
    for (int64_t run = 0; run < RUNS; run++) {
        uint64_t point;
        for (int64_t i = 0; i < LONG; i++)
            x[2 * i] = i * (run + s->queue);
        if (harness.backend->submit(harness.device, &submission, &point) != TN_OK ||
            harness.backend->wait(harness.device, s->queue, point) != TN_OK)
            s->is_wrong = true;
        for (int64_t i = 0; i < LONG; i++)
            s->is_wrong |= out[i] != 3 * i * (run + s->queue) + 1;
    }
    return NULL;
}

Test(cpu_device, queues_share_the_pool)
{
    enum { THREADS = 4 };
    static struct submitter submitters[THREADS];
    pthread_t threads[THREADS];
    int64_t n = LONG;
    tn_layout x = harness_layout(TN_I64, 1, &n), out = x;
    x.stride[0] = 2;
    tn_step *step = harness_step(&harness, 1, 1);
    step->program = &affine;
    harness_set(step, 0, harness_slot(&harness, 16 * LONG), &x);
    harness_set(step, 1, harness_slot(&harness, 8 * LONG), &out);
    cr_assert(harness_compile(&harness) == TN_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct submitter *s = &submitters[i];
        s->queue = i % 2;
        for (int k = 0; k < 2; k++)
            cr_assert(harness.backend->buffer_create(harness.device, 16 * LONG,
                                                     &s->bindings[k].buffer) == TN_OK);
        cr_assert(pthread_create(&threads[i], NULL, run_long_programs, s) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(eq(int, submitters[i].is_wrong, 0));
        for (int k = 0; k < 2; k++)
            harness.backend->buffer_destroy(harness.device,
                                            submitters[i].bindings[k].buffer);
    }
}

Test(cpu_device, buffers_are_used_again_and_counted)
{
    tn_memory_info info = {.struct_size = sizeof(info)};
    tn_buffer *a, *b;
    for (uint64_t size = 1; size < (UINT64_C(1) << 26); size = size * 3 + 1) {
        cr_assert(harness.backend->buffer_create(harness.device, size, &a) == TN_OK);
        unsigned char *bytes = harness.backend->buffer_map(harness.device, a);
        cr_assert(eq(u64, (uintptr_t)bytes % 64, 0));
        bytes[0] = bytes[size - 1] = 1;
        harness.backend->buffer_destroy(harness.device, a);
        cr_assert(harness.backend->buffer_create(harness.device, size, &b) == TN_OK);
        cr_assert(a == b);
        harness.backend->memory_info(harness.device, &info);
        uint64_t most = size < (UINT64_C(1) << 20) ? size + size / 4 + 64 : size + 8192;
        cr_assert(info.used >= size && info.used <= most);
        harness.backend->buffer_destroy(harness.device, b);
    }
    // As many bytes as a system has addresses: what is idle there is nothing's.
    if (harness.backend->buffer_create(harness.device, UINT64_C(1) << 46, &a) == TN_OK)
        harness.backend->buffer_destroy(harness.device, a);
    cr_assert(harness.backend->buffer_create(harness.device, UINT64_MAX, &a) ==
              TN_ERR_MEMORY);
    harness.backend->memory_info(harness.device, &info);
    cr_assert(info.used == 0);
}

// Bytes of the system that are taken for buffers of the device, used or idle.
static uint64_t reserved(void)
{
    tn_memory_info info = {.struct_size = sizeof(info)};
    harness.backend->memory_info(harness.device, &info);
    return info.reserved;
}

Test(cpu_device, large_idle_buffers_serve_smaller_ones_or_make_room)
{
    const uint64_t size = UINT64_C(12) << 20;
    tn_buffer *a, *b;
    cr_assert(harness.backend->buffer_create(harness.device, size, &a) == TN_OK);
    harness.backend->buffer_destroy(harness.device, a);
    cr_assert(harness.backend->buffer_create(harness.device, size - size / 8, &b) == TN_OK);
    cr_assert(a == b);
    harness.backend->buffer_destroy(harness.device, b);
    cr_assert(reserved() >= size);
    cr_assert(harness.backend->buffer_create(harness.device, 2 * size, &a) == TN_OK);
    cr_assert(reserved() >= 2 * size && reserved() <= 2 * size + 8192);
    cr_assert(harness.backend->buffer_create(harness.device, size, &b) == TN_OK);
    cr_assert(reserved() >= 3 * size && reserved() <= 3 * size + 2 * 8192);
    harness.backend->buffer_destroy(harness.device, a);
    harness.backend->buffer_destroy(harness.device, b);
}

TestSuite(cpu_no_device, .init = load);

Test(cpu_no_device, a_bad_number_of_threads_is_an_error)
{
    const tn_backend *backend = cpu->query(TN_IFACE_BACKEND);
    static const char *const bad[] = {"0", "-1", "many", "4x", "99999999999999999999"};
    tn_device *device = NULL;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        harness_threads = bad[i];
        cr_assert(backend->device_open(&harness_host, 0, &device) == TN_ERR_ARGUMENT);
        check_says(harness_message, bad[i]);
    }
    harness_threads = "3";
    cr_assert(backend->device_open(&harness_host, 0, &device) == TN_OK);
    backend->device_close(device);
    harness_threads = NULL;
    cr_assert(harness_leaks() == 0);
}
