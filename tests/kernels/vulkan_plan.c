// SPDX-License-Identifier: MIT
// Which launches wait for those before them: the plan of the Vulkan backends by itself,
// with a stand-in for pipelines and no device.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "plan.h"

static char message[256];

static tn_status keep_message(const tn_host *host, tn_status status, const char *format,
                              ...)
{
    va_list arguments;
    (void)host;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return status;
}

static const tn_host host = {.struct_size = sizeof(host), .fail = keep_message};
static tn_device device = {.host = &host, .facts = {.max_range = UINT64_C(1) << 30}};
static struct vk_plan plan;

// What plan.c needs of the rest.
tn_status vk_pipeline_get(tn_device *owner, const struct vk_pipeline_desc *desc,
                          struct vk_pipeline **out_pipeline)
{
    static struct vk_pipeline pipeline;
    (void)owner, (void)desc;
    *out_pipeline = &pipeline;
    return TN_OK;
}

static int begin(void **unused)
{
    (void)unused;
    plan = (struct vk_plan){.device = &device};
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    plan_finish(&plan);
    return 0;
}

struct range {
    uint32_t slot;
    uint64_t offset, size;
};

// A launch that reads one range and writes another. True: it waits.
static bool waits(struct range read, struct range written)
{
    struct vk_launch launch = {.groups = 1};
    launch_bind(&launch, (struct vk_operand){read.slot, VK_READS, read.offset, read.size});
    launch_bind(&launch,
                (struct vk_operand){written.slot, VK_WRITES, written.offset, written.size});
    assert_int_equal(plan_launch(&plan, &launch), TN_OK);
    return plan.dispatches[plan.num_dispatches - 1].barrier;
}

#define ALL(slot) ((struct range){slot, 0, 64})

static void what_reads_a_written_range_waits(void **unused)
{
    (void)unused;
    assert_false(waits(ALL(0), ALL(1)));
    assert_true(waits(ALL(1), ALL(2)));
}

static void what_overwrites_a_range_that_is_read_waits(void **unused)
{
    (void)unused;
    assert_false(waits(ALL(0), ALL(1)));
    assert_true(waits(ALL(2), ALL(0)));
}

static void what_overwrites_a_written_range_waits(void **unused)
{
    (void)unused;
    assert_false(waits(ALL(0), ALL(1)));
    assert_true(waits(ALL(2), ALL(1)));
}

static void launches_apart_do_not_wait(void **unused)
{
    (void)unused;
    assert_false(waits(ALL(0), ALL(1)));
    assert_false(waits(ALL(0), ALL(2)));
    assert_false(waits(ALL(3), (struct range){1, 64, 64}));
    assert_true(waits(ALL(3), (struct range){1, 60, 64}));
}

static void one_barrier_serves_all_before_it(void **unused)
{
    (void)unused;
    assert_false(waits(ALL(0), ALL(1)));
    assert_true(waits(ALL(1), ALL(2)));
    assert_false(waits(ALL(1), ALL(3)));
    assert_true(waits(ALL(3), ALL(4)));
}

// Or planning would take the square of their number.
static void of_many_launches_apart_some_wait(void **unused)
{
    uint32_t barriers = 0;
    (void)unused;
    for (uint32_t i = 0; i < 2000; i++)
        barriers += waits(ALL(0), ALL(1 + i));
    assert_in_range(barriers, 1, 20);
    assert_true(waits(ALL(2000), ALL(2001)));
}

static void slots_that_may_be_the_same_memory_wait_for_each_other(void **unused)
{
    const tn_slot slots[] = {{.size = 64}, {.size = 64}, {.alias = 1, .size = 64}};
    (void)unused;
    plan.slots = slots;
    plan.num_slots = 3;
    assert_false(waits(ALL(0), ALL(1)));
    assert_true(waits(ALL(1), ALL(2))); // 2 takes over the memory of 0
    assert_true(waits(ALL(0), ALL(1)));
}

static void an_operand_beyond_what_a_kernel_sees_is_refused(void **unused)
{
    (void)unused;
    struct vk_launch launch = {.groups = 1};
    launch_bind(&launch, (struct vk_operand){0, VK_READS, 0, (UINT64_C(1) << 30) + 4});
    assert_int_equal(plan_launch(&plan, &launch), TN_ERR_UNSUPPORTED);
    assert_non_null(strstr(message, "operand 0 spans 1073741828 bytes"));
    assert_non_null(strstr(message, "at most 1073741824"));
    assert_int_equal(plan.num_dispatches, 0);
}

static void more_workgroups_than_a_grid_holds_are_refused(void **unused)
{
    (void)unused;
    struct vk_launch launch = {.groups = UINT64_C(65535) * 65535 + 1};
    assert_int_equal(plan_launch(&plan, &launch), TN_ERR_UNSUPPORTED);
    launch.groups = 65536;
    assert_int_equal(plan_launch(&plan, &launch), TN_OK);
    assert_int_equal(plan.dispatches[0].groups[0], 65535);
    assert_int_equal(plan.dispatches[0].groups[1], 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_reads_a_written_range_waits),
        TEST(what_overwrites_a_range_that_is_read_waits),
        TEST(what_overwrites_a_written_range_waits),
        TEST(launches_apart_do_not_wait),
        TEST(one_barrier_serves_all_before_it),
        TEST(of_many_launches_apart_some_wait),
        TEST(slots_that_may_be_the_same_memory_wait_for_each_other),
        TEST(an_operand_beyond_what_a_kernel_sees_is_refused),
        TEST(more_workgroups_than_a_grid_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
