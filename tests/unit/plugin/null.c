// SPDX-License-Identifier: MIT
// The null backend keeps the contract of a backend.
#include "plugin/host/host.h"
#include "stage.h"

static tn_runtime *runtime;
static const tn_backend *backend;
static const tn_host *host;
static tn_device *device;

static void setup(void)
{
    stage_setup();
    const char *file = getenv("TENON_TEST_NULL");
    size_t size;
    char *bytes = stage_read(file, &size);
    stage_directory(stage_path("p/org.tenon.null"));
    stage_write(stage_path("p/org.tenon.null/org.tenon.null.so"), bytes, size);
    free(bytes);
    stage_description(stage_path("p/org.tenon.null"),
                      stage_path("p/org.tenon.null/org.tenon.null.so"));
    runtime = stage_runtime(stage_path("p"), NULL);
    struct plugin *plugin;
    check_status(plugin_backend(runtime, "null", &backend, &plugin), TN_OK);
    host = plugin_host(plugin);
    check_status(backend->device_open(host, 0, &device), TN_OK);
}

static void teardown(void)
{
    backend->device_close(device);
    tn_runtime_close(runtime);
    stage_teardown();
}

TestSuite(null, .init = setup, .fini = teardown);

Test(null, it_is_listed_but_never_the_default)
{
    cr_assert(eq(str, plugin_backend_names(runtime)[0], "null"));
    cr_assert(eq(ptr, plugin_backend_names(runtime)[1], NULL));
    cr_assert(eq(ptr, plugin_default_backends(runtime)[0], NULL));
    uint32_t count = 0;
    check_status(backend->device_count(host, &count), TN_OK);
    cr_assert(eq(uint, count, 1));
    tn_device_info info = {.struct_size = sizeof(info)};
    check_status(backend->device_info(host, 0, &info), TN_OK);
    cr_assert(eq(i64, info.flags, TN_DEVICE_COMPUTES_NOTHING | TN_DEVICE_HOST_MEMORY));
    check_status(backend->device_info(host, 1, &info), TN_ERR_ARGUMENT);
    cr_assert(eq(str, tn_last_error(),
                 "plugin org.tenon.null: device 1: there is only device 0"));
    backend->device_close(NULL);
}

Test(null, an_older_host_gets_what_it_knows)
{
    tn_device_info info;
    memset(&info, 0x55, sizeof(info));
    info.struct_size = 16;
    check_status(backend->device_info(host, 0, &info), TN_OK);
    cr_assert(eq(uint, info.struct_size, 16));
    cr_assert(eq(uint, info.num_queues, 0x55555555));
}

Test(null, an_application_gets_records_of_the_size_that_it_gives)
{
    struct {
        tn_device_summary known;
        uint64_t added;
    } newer[2];
    uint64_t count = 2;
    memset(newer, 0x55, sizeof(newer));
    newer[0].known.struct_size = sizeof(newer[0]);
    check_status(tn_devices(runtime, &newer[0].known, &count), TN_OK);
    cr_assert(eq(u64, count, 1));
    cr_assert(eq(str, newer[0].known.name, "nothing"));
    cr_assert(newer[0].added == UINT64_C(0x5555555555555555));
    tn_device_summary older = {.struct_size = 8, .index = 0x55555555};
    check_status(tn_devices(runtime, &older, &count), TN_OK);
    cr_assert(eq(uint, older.index, 0x55555555));
    tn_device_summary first = {.struct_size = 0};
    check_status(tn_devices(runtime, &first, &count), TN_OK);
    cr_assert(eq(str, first.backend, "null"));
    cr_assert(eq(sz, first.struct_size, sizeof(first)));
}

Test(null, buffers_are_cleared_memory)
{
    tn_buffer *buffer = NULL;
    char data[100], read[100];
    tn_memory_info memory = {.struct_size = sizeof(memory)};
    check_status(backend->buffer_create(device, 100, &buffer), TN_OK);
    cr_assert(eq(u64, (uintptr_t)backend->buffer_map(device, buffer) % 64, 0));
    check_status(backend->buffer_read(device, buffer, 0, read, 100), TN_OK);
    for (int i = 0; i < 100; i++)
        cr_assert(eq(chr, read[i], 0));
    memset(data, 7, sizeof(data));
    check_status(backend->buffer_write(device, buffer, 10, data, 80), TN_OK);
    check_status(backend->buffer_read(device, buffer, 9, read, 2), TN_OK);
    cr_assert(eq(chr, read[0], 0));
    cr_assert(eq(chr, read[1], 7));
    check_status(backend->memory_info(device, &memory), TN_OK);
    cr_assert(eq(u64, memory.used, 100));
    backend->buffer_destroy(device, buffer);
    backend->buffer_destroy(device, NULL);
    check_status(backend->memory_info(device, &memory), TN_OK);
    cr_assert(eq(u64, memory.used, 0));
    cr_assert(eq(u64, memory.peak, 100));
    for (int n = 1; n <= 2; n++) {
        mem_fail_nth(n);
        check_status(backend->buffer_create(device, 8, &buffer), TN_ERR_MEMORY);
    }
}

Test(null, points_count_up_and_are_reached)
{
    tn_slot slots[2] = {{.flags = TN_SLOT_READ, .size = 8}, {.flags = TN_SLOT_WRITE}};
    tn_segment segment = {.struct_size = sizeof(segment),
                          .slots = slots,
                          .num_slots = 2,
                          .step_size = sizeof(tn_step),
                          .slot_size = sizeof(tn_slot)};
    tn_executable *executable = NULL;
    check_status(backend->segment_compile(device, &segment, &executable), TN_OK);
    tn_binding bindings[2] = {{0}};
    tn_submission submission = {.struct_size = sizeof(submission),
                                .executable = executable,
                                .bindings = bindings,
                                .num_bindings = 2,
                                .binding_size = sizeof(tn_binding)};
    uint64_t first = 0, second = 0;
    check_status(backend->submit(device, &submission, &first), TN_OK);
    check_status(backend->submit(device, &submission, &second), TN_OK);
    cr_assert(second > first);
    check_status(backend->wait(device, 0, second), TN_OK);
    check_status(backend->wait(device, 0, second + 1), TN_ERR_INTERNAL);
    check_status(backend->wait(device, 0, 0), TN_OK);
    submission.num_bindings = 1;
    check_status(backend->submit(device, &submission, &first), TN_ERR_INTERNAL);
    backend->executable_destroy(device, executable);
    backend->executable_destroy(device, NULL);
    cr_assert(backend->fusion_limit(device) > 0);
    cr_assert(backend->step_check(device, NULL, NULL));
}
