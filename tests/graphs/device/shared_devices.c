// SPDX-License-Identifier: MIT
// Values that go from one device of Vulkan to another, by memory that both use, by the
// host's, or by what the host sees.
#include "device/device.h"
#include <stdatomic.h>
#include "shared.h"

TestSuite(shared_devices, .init = load, .fini = teardown);

static struct {
    const tn_backend *real[2];
    tn_device *second;
    tn_backend table[2];
    atomic_int reads, writes, copies;
} between;

static tn_status count_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                            void *data, uint64_t size)
{
    atomic_fetch_add(&between.reads, 1);
    return between.real[device == between.second]->buffer_read(device, buffer, offset, data,
                                                               size);
}

static tn_status count_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             const void *data, uint64_t size)
{
    atomic_fetch_add(&between.writes, size > 4); // numbers of the graph apart
    return between.real[device == between.second]->buffer_write(device, buffer, offset,
                                                                data, size);
}

static tn_status count_copy(tn_device *device, tn_buffer *from, uint64_t from_offset,
                            tn_buffer *to, uint64_t to_offset, uint64_t size)
{
    atomic_fetch_add(&between.copies, 1);
    return between.real[device == between.second]->buffer_copy(device, from, from_offset,
                                                               to, to_offset, size);
}

static void put_tables_between(tn_runtime *rt)
{
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(rt, &devices, &count));
    cr_assert(eq(uint, count, 2));
    between.second = devices[1]->handle;
    for (int i = 0; i < 2; i++) {
        between.real[i] = devices[i]->ops;
        between.table[i] = *devices[i]->ops;
        between.table[i].buffer_read = count_read;
        between.table[i].buffer_write = count_write;
        between.table[i].buffer_copy = count_copy;
        devices[i]->ops = &between.table[i];
    }
    atomic_store(&between.reads, 0);
    atomic_store(&between.writes, 0);
    atomic_store(&between.copies, 0);
}

// Doubles on the first device, and adds one on the second; `async`: by the mover.
static tn_array *on_two(tn_scope *s, const char *second, int64_t columns, bool async)
{
    char first[96];
    snprintf(first, sizeof(first), "%s:0", backend);
    must(s, tn_scope_device(s, first));
    tn_array *x = ramp(s, 1024, columns, 0, 1);
    tn_array *y = bin(s, "base.add", x, x);
    must(s, tn_eval(s, y));
    must(s, tn_scope_device(s, second));
    tn_array *z = bin(s, "base.add", y, tn_float(s, 1));
    must(s, async ? tn_eval_async(s, z) : tn_eval(s, z));
    tn_item(s, un(s, "base.sum", z)); // waits
    must(s, tn_scope_status(s));
    return z;
}

static void check_last(tn_scope *s, tn_array *z, int64_t columns)
{
    int64_t count = 1024 * columns;
    float *got = malloc((size_t)count * sizeof(*got));
    must(s, tn_read(s, z, got, (uint64_t)count * sizeof(*got)));
    cr_assert(got[0] == 1 && got[count / 2] == (float)(count + 1));
    cr_assert(got[count - 1] == (float)(2 * count - 1));
    free(got);
}

// The first device is number 0 of the backend that is tested.
static tn_runtime *open_two(const char *second, bool split_memory)
{
    char variable[160];
    faults->least_devices = 2;
    faults->split_memory = split_memory; // as of most cards: the host does not see it
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s:0,%s", backend, second);
    tn_runtime *rt = open_with((const char *const[]){variable, NULL});
    put_tables_between(rt);
    return rt;
}

static void copies_without_the_host(const char *second)
{
    tn_runtime *rt = open_two(second, true);
    for (int async = 0; async < 2; async++) {
        int reads = atomic_load(&between.reads), copies = atomic_load(&between.copies);
        tn_scope *s = tn_scope_open(rt);
        tn_array *z = on_two(s, second, 512, async); // 2 MiB
        cr_assert(eq(int, atomic_load(&between.copies), copies + 1));
        cr_assert(eq(int, atomic_load(&between.reads), reads + 1)); // of tn_item
        check_last(s, z, 512);
        tn_scope_close(s);
    }
    tn_runtime_close(rt);
}

Test(shared_devices, devices_copy_without_the_host)
{
    char second[96];
    snprintf(second, sizeof(second), "%s:1", backend);
    copies_without_the_host(second);
}

Test(shared_devices, those_of_two_plugins_do_as_well)
{
    bool is_jit = strcmp(backend, "vulkan-jit") == 0;
    need_device(is_jit ? "vulkan" : "vulkan-jit");
    copies_without_the_host(is_jit ? "vulkan:0" : "vulkan-jit:0");
}

Test(shared_devices, devices_copy_by_way_of_the_host_where_memory_is_not_shared)
{
    char second[96];
    snprintf(second, sizeof(second), "%s:1", backend);
    tn_runtime *rt = open_two(second, true);
    tn_scope *s = tn_scope_open(rt);
    check_last(s, on_two(s, second, 16, false), 16); // 64 KiB: too little
    tn_scope_close(s);
    cr_assert(eq(int, atomic_load(&between.copies), 0));
    for (int async = 0; async < 2; async++) {
        s = tn_scope_open(rt);
        tn_array *x = on_two(s, second, 512, false); // so that memory is there
        arm("vkGetMemoryFdKHR", 1, VK_ERROR_OUT_OF_HOST_MEMORY);
        faults->onwards = true;
        check_last(s, on_two(s, second, 512, async), 512);
        cr_assert(eq(int, atomic_load(&faults->num_failed), 2)); // it was tried again
        faults->nth = 0;
        faults->onwards = false;
        check_last(s, x, 512);
        tn_scope_close(s);
    }
    cr_assert(eq(int, atomic_load(&between.copies), 2)); // of what was not made to fail
    tn_runtime_close(rt);
}

Test(shared_devices, memory_that_the_host_sees_is_copied_once)
{
    char second[96];
    snprintf(second, sizeof(second), "%s:1", backend);
    tn_runtime *rt = open_two(second, false);
    for (int async = 0; async < 2; async++) {
        int reads = atomic_load(&between.reads);
        tn_scope *s = tn_scope_open(rt);
        tn_array *z = on_two(s, second, 512, async);
        // Read to where the second device has it; and tn_item.
        cr_assert(eq(int, atomic_load(&between.reads), reads + 2));
        cr_assert(eq(int, atomic_load(&between.writes), 1)); // of `ramp`
        atomic_store(&between.writes, 0);
        check_last(s, z, 512);
        tn_scope_close(s);
    }
    cr_assert(eq(int, atomic_load(&between.copies), 0));
    tn_runtime_close(rt);
}
