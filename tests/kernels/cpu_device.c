// SPDX-License-Identifier: MIT
// The CPU backend's devices: loops, errors, order of submissions, buffers, threads:
// cpu_device CPU-BLAS.so
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include "bench_host.h"

static const tn_plugin *cpu;
static struct bench bench;

static int open_device(void **unused)
{
    (void)unused;
    bench_open(&bench, cpu);
    return 0;
}

static int close_device(void **unused)
{
    (void)unused;
    bench_close(&bench);
    return bench_leaks() == 0 ? 0 : -1;
}

static int64_t covered[1000];

static void cover(void *context, int64_t begin, int64_t end)
{
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

static void loops_of_others_cover_each_index_once(void **unused)
{
    (void)unused;
    bench_step(&bench, 0, 0)->kernel = &covering_record;
    for (int i = 0; i < 3000; i++)
        assert_int_equal(bench_run(&bench), TN_OK);
}

static void a_failing_step_is_reported_by_who_waits_for_it(void **unused)
{
    uint64_t bad, good;
    (void)unused;
    bench_step(&bench, 0, 0)->kernel = &failing_record;
    assert_int_equal(bench_run(&bench), TN_ERR_ARGUMENT);
    assert_int_equal(bench_submit(&bench, TN_SUBMIT_ASYNC, &bad), TN_OK);
    tn_executable *failing_executable = bench.executable;
    bench.executable = NULL;
    bench.steps[0].kernel = &covering_record;
    assert_int_equal(bench_compile(&bench), TN_OK);
    assert_int_equal(bench_submit(&bench, TN_SUBMIT_ASYNC, &good), TN_OK);
    bench_message[0] = 0;
    assert_int_equal(bench.backend->wait(bench.device, good), TN_OK);
    assert_int_equal(bench.backend->wait(bench.device, bad), TN_ERR_ARGUMENT);
    assert_string_equal(bench_message, "axis 7 is bad");
    bench.backend->executable_destroy(bench.device, failing_executable);
}

// Only the latest are remembered one by one; the others do not count as done.
static void a_failure_that_was_forgotten_is_no_success(void **unused)
{
    enum { MANY = 600 };
    uint64_t points[MANY];
    (void)unused;
    bench_step(&bench, 0, 0)->kernel = &failing_record;
    assert_int_equal(bench_compile(&bench), TN_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(bench_submit(&bench, TN_SUBMIT_ASYNC, &points[i]), TN_OK);
    assert_int_equal(bench.backend->wait(bench.device, points[MANY - 1]), TN_ERR_ARGUMENT);
    for (int i = 0; i < MANY; i++)
        assert_int_not_equal(bench.backend->wait(bench.device, points[i]), TN_OK);
    assert_string_equal(bench_message, "axis 7 is bad");
    assert_int_equal(bench.backend->wait(bench.device, points[0]), TN_ERR_INTERNAL);
    assert_non_null(strstr(bench_message, "no longer known"));
}

static void submissions_keep_their_order(void **unused)
{
    static const tn_expr_insn insns[] = {{TN_EXPR_LOAD, TN_I64, 0, 0, 0},
                                         {TN_EXPR_CONST, TN_I64, 0, 0, 0},
                                         {TN_EXPR_CONST, TN_I64, 1, 0, 0},
                                         {TN_EXPR_MUL, TN_I64, 0, 1, 0},
                                         {TN_EXPR_ADD, TN_I64, 3, 2, 0}};
    static const uint64_t constants[] = {3, 1};
    static const tn_dtype i64s[] = {TN_I64};
    static const uint32_t outputs[] = {4};
    static const tn_expr_program program = {.struct_size = sizeof(program),
                                            .insns = insns,
                                            .constants = constants,
                                            .input_dtypes = i64s,
                                            .output_dtypes = i64s,
                                            .outputs = outputs,
                                            .num_insns = 5,
                                            .num_constants = 2,
                                            .num_inputs = 1,
                                            .num_outputs = 1};
    int64_t n = 100, expected = 0;
    tn_layout layout = bench_layout(TN_I64, 1, &n);
    uint32_t slot = bench_slot(&bench, 800);
    uint64_t point = 0;
    (void)unused;
    memset(bench_memory(&bench, slot), 0, 800);
    tn_step *step = bench_step(&bench, 1, 1);
    step->program = &program;
    bench_set(step, 0, slot, &layout);
    bench_set(step, 1, slot, &layout); // in place
    assert_int_equal(bench_compile(&bench), TN_OK);
    for (int i = 0; i < 500; i++) {
        uint64_t next;
        assert_int_equal(bench_submit(&bench, i % 3 ? TN_SUBMIT_ASYNC : 0, &next), TN_OK);
        assert_true(next > point);
        point = next;
        expected = (int64_t)((uint64_t)expected * 3 + 1);
    }
    assert_int_equal(bench.backend->wait(bench.device, point), TN_OK);
    for (int i = 0; i < 100; i++)
        assert_true(((int64_t *)bench_memory(&bench, slot))[i] == expected);
}

static void buffers_are_used_again_and_counted(void **unused)
{
    tn_memory_info info = {.struct_size = sizeof(info)};
    tn_buffer *a, *b;
    (void)unused;
    for (uint64_t size = 1; size < (UINT64_C(1) << 26); size = size * 3 + 1) {
        assert_int_equal(bench.backend->buffer_create(bench.device, size, &a), TN_OK);
        unsigned char *bytes = bench.backend->buffer_map(bench.device, a);
        assert_int_equal((uintptr_t)bytes % 64, 0);
        bytes[0] = bytes[size - 1] = 1;
        bench.backend->buffer_destroy(bench.device, a);
        assert_int_equal(bench.backend->buffer_create(bench.device, size, &b), TN_OK);
        assert_ptr_equal(a, b);
        bench.backend->memory_info(bench.device, &info);
        assert_true(info.used >= size && info.used <= size + size / 4 + 64);
        bench.backend->buffer_destroy(bench.device, b);
    }
    assert_int_equal(bench.backend->buffer_create(bench.device, UINT64_MAX, &a),
                     TN_ERR_MEMORY);
    bench.backend->memory_info(bench.device, &info);
    assert_int_equal(info.used, 0);
}

static void a_bad_number_of_threads_is_an_error(void **unused)
{
    const tn_backend *backend = cpu->query(TN_IFACE_BACKEND);
    static const char *const bad[] = {"0", "-1", "many", "4x", "99999999999999999999"};
    tn_device *device = NULL;
    (void)unused;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bench_threads = bad[i];
        assert_int_equal(backend->device_open(&bench_host, 0, &device), TN_ERR_ARGUMENT);
        assert_non_null(strstr(bench_message, bad[i]));
    }
    bench_threads = "3";
    assert_int_equal(backend->device_open(&bench_host, 0, &device), TN_OK);
    backend->device_close(device);
    bench_threads = NULL;
    assert_int_equal(bench_leaks(), 0);
}

#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CPU-BLAS.so\n", argv[0]);
        return 2;
    }
    cpu = bench_load(argv[1]);
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(loops_of_others_cover_each_index_once),
        WITH_DEVICE(a_failing_step_is_reported_by_who_waits_for_it),
        WITH_DEVICE(a_failure_that_was_forgotten_is_no_success),
        WITH_DEVICE(submissions_keep_their_order),
        WITH_DEVICE(buffers_are_used_again_and_counted),
        cmocka_unit_test(a_bad_number_of_threads_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
