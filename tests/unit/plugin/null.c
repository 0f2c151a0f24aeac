// SPDX-License-Identifier: MIT
// The null backend keeps the contract of a backend.
#include "plugin/host.h"
#include "stage.h"

static tn_runtime *runtime;
static const tn_backend *backend;
static const tn_host *host;
static tn_device *device;

static int setup(void **state)
{
    if (stage_setup(state))
        return 1;
    const char *file = getenv("TENON_TEST_NULL");
    char *json;
    size_t size;
    char *bytes = stage_read(file, &size);
    stage_directory(stage_path("p/org.tenon.null"));
    stage_write(stage_path("p/org.tenon.null/org.tenon.null.so"), bytes, size);
    free(bytes);
    if (tn_plugin_describe(stage_path("p/org.tenon.null/org.tenon.null.so"), &json))
        return 1;
    stage_write(stage_path("p/org.tenon.null/plugin.json"), json, strlen(json));
    tn_text_free(json);
    runtime = stage_runtime(stage_path("p"), NULL);
    struct plugin *plugin;
    if (plugin_backend(runtime, "null", &backend, &plugin) != TN_OK)
        return 1;
    host = plugin_host(plugin);
    return backend->device_open(host, 0, &device);
}

static int teardown(void **state)
{
    backend->device_close(device);
    tn_runtime_close(runtime);
    return stage_teardown(state);
}

static void it_is_listed_but_never_the_default(void **state)
{
    (void)state;
    assert_string_equal(plugin_backend_names(runtime)[0], "null");
    assert_null(plugin_backend_names(runtime)[1]);
    assert_null(plugin_default_backends(runtime)[0]);
    uint32_t count = 0;
    assert_int_equal(backend->device_count(host, &count), TN_OK);
    assert_int_equal(count, 1);
    tn_device_info info = {.struct_size = sizeof(info)};
    assert_int_equal(backend->device_info(host, 0, &info), TN_OK);
    assert_int_equal(info.flags, TN_DEVICE_COMPUTES_NOTHING | TN_DEVICE_HOST_MEMORY);
    assert_int_equal(backend->device_info(host, 1, &info), TN_ERR_ARGUMENT);
    assert_string_equal(tn_last_error(),
                        "plugin org.tenon.null: device 1: there is only device 0");
    backend->device_close(NULL);
}

static void an_older_host_gets_what_it_knows(void **state)
{
    (void)state;
    tn_device_info info;
    memset(&info, 0x55, sizeof(info));
    info.struct_size = 16;
    assert_int_equal(backend->device_info(host, 0, &info), TN_OK);
    assert_int_equal(info.struct_size, 16);
    assert_int_equal(info.reserved, 0x55555555);
}

static void an_application_gets_records_of_the_size_that_it_gives(void **state)
{
    (void)state;
    struct {
        tn_device_summary known;
        uint64_t added;
    } newer[2];
    uint64_t count = 2;
    memset(newer, 0x55, sizeof(newer));
    newer[0].known.struct_size = sizeof(newer[0]);
    assert_int_equal(tn_devices(runtime, &newer[0].known, &count), TN_OK);
    assert_int_equal(count, 1);
    assert_string_equal(newer[0].known.name, "nothing");
    assert_true(newer[0].added == UINT64_C(0x5555555555555555));
    tn_device_summary older = {.struct_size = 8, .index = 0x55555555};
    assert_int_equal(tn_devices(runtime, &older, &count), TN_OK);
    assert_int_equal(older.index, 0x55555555);
    tn_device_summary first = {.struct_size = 0};
    assert_int_equal(tn_devices(runtime, &first, &count), TN_OK);
    assert_string_equal(first.backend, "null");
    assert_int_equal(first.struct_size, sizeof(first));
}

static void buffers_are_cleared_memory(void **state)
{
    (void)state;
    tn_buffer *buffer = NULL;
    char data[100], read[100];
    tn_memory_info memory = {.struct_size = sizeof(memory)};
    assert_int_equal(backend->buffer_create(device, 100, &buffer), TN_OK);
    assert_int_equal((uintptr_t)backend->buffer_map(device, buffer) % 64, 0);
    assert_int_equal(backend->buffer_read(device, buffer, 0, read, 100), TN_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(read[i], 0);
    memset(data, 7, sizeof(data));
    assert_int_equal(backend->buffer_write(device, buffer, 10, data, 80), TN_OK);
    assert_int_equal(backend->buffer_read(device, buffer, 9, read, 2), TN_OK);
    assert_int_equal(read[0], 0);
    assert_int_equal(read[1], 7);
    assert_int_equal(backend->memory_info(device, &memory), TN_OK);
    assert_int_equal(memory.used, 100);
    backend->buffer_destroy(device, buffer);
    backend->buffer_destroy(device, NULL);
    assert_int_equal(backend->memory_info(device, &memory), TN_OK);
    assert_int_equal(memory.used, 0);
    assert_int_equal(memory.peak, 100);
    for (int n = 1; n <= 2; n++) {
        mem_fail_nth(n);
        assert_int_equal(backend->buffer_create(device, 8, &buffer), TN_ERR_MEMORY);
    }
}

static void points_count_up_and_are_reached(void **state)
{
    (void)state;
    tn_slot slots[2] = {{.flags = TN_SLOT_READ, .size = 8}, {.flags = TN_SLOT_WRITE}};
    tn_segment segment = {.struct_size = sizeof(segment),
                          .slots = slots,
                          .num_slots = 2,
                          .step_size = sizeof(tn_step),
                          .slot_size = sizeof(tn_slot)};
    tn_executable *executable = NULL;
    assert_int_equal(backend->segment_compile(device, &segment, &executable), TN_OK);
    tn_binding bindings[2] = {{0}};
    tn_submission submission = {.struct_size = sizeof(submission),
                                .executable = executable,
                                .bindings = bindings,
                                .num_bindings = 2};
    uint64_t first = 0, second = 0;
    assert_int_equal(backend->submit(device, &submission, &first), TN_OK);
    assert_int_equal(backend->submit(device, &submission, &second), TN_OK);
    assert_true(second > first);
    assert_int_equal(backend->wait(device, second), TN_OK);
    assert_int_equal(backend->wait(device, second + 1), TN_ERR_INTERNAL);
    submission.num_bindings = 1;
    assert_int_equal(backend->submit(device, &submission, &first), TN_ERR_INTERNAL);
    backend->executable_destroy(device, executable);
    backend->executable_destroy(device, NULL);
    assert_true(backend->fusion_limit(device) > 0);
    assert_true(backend->step_check(device, NULL, NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_listed_but_never_the_default),
        TEST(an_older_host_gets_what_it_knows),
        TEST(an_application_gets_records_of_the_size_that_it_gives),
        TEST(buffers_are_cleared_memory),
        TEST(points_count_up_and_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
