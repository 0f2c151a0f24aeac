// SPDX-License-Identifier: MIT
// Which launches wait for those before them: the plan of the Vulkan backends by itself,
// with a stand-in for pipelines and no device.
#include "check.h"

#include "kernels.h"

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
static tn_device device = {
    .host = &host,
    .facts = {.max_range = UINT64_C(1) << 30,
              .properties = {.deviceName = "a stand-in",
                             .limits = {.maxComputeWorkGroupCount = {1000, 100, 10}}}}};
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

void vk_pipeline_release(tn_device *owner, struct vk_pipeline *pipeline)
{
    (void)owner, (void)pipeline;
}

static void begin(void)
{
    plan = (struct vk_plan){.device = &device};
}

static void end(void)
{
    plan_finish(&plan);
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
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_OK));
    return plan.dispatches[plan.num_dispatches - 1].barrier;
}

#define ALL(slot) ((struct range){slot, 0, 64})

TestSuite(vulkan_plan, .init = begin, .fini = end);

Test(vulkan_plan, what_reads_a_written_range_waits)
{
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(waits(ALL(1), ALL(2)));
}

Test(vulkan_plan, what_overwrites_a_range_that_is_read_waits)
{
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(waits(ALL(2), ALL(0)));
}

Test(vulkan_plan, what_overwrites_a_written_range_waits)
{
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(waits(ALL(2), ALL(1)));
}

Test(vulkan_plan, launches_apart_do_not_wait)
{
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(not(waits(ALL(0), ALL(2))));
    cr_assert(not(waits(ALL(3), (struct range){1, 64, 64})));
    cr_assert(waits(ALL(3), (struct range){1, 60, 64}));
}

Test(vulkan_plan, one_barrier_serves_all_before_it)
{
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(waits(ALL(1), ALL(2)));
    cr_assert(not(waits(ALL(1), ALL(3))));
    cr_assert(waits(ALL(3), ALL(4)));
}

// Or planning would take the square of their number.
Test(vulkan_plan, of_many_launches_apart_some_wait)
{
    uint32_t barriers = 0;
    for (uint32_t i = 0; i < 2000; i++)
        barriers += waits(ALL(0), ALL(1 + i));
    check_within(uint, barriers, 1, 20);
    cr_assert(waits(ALL(2000), ALL(2001)));
}

Test(vulkan_plan, launches_that_alternate_between_buffers_share_descriptor_sets)
{
    for (uint32_t i = 0; i < 100; i++)
        waits(ALL(i % 2), ALL((i + 1) % 2));
    cr_assert(eq(uint, plan.num_sets, 2));
    cr_assert(eq(uint, plan.num_bindings, 4));
    cr_assert(eq(uint, plan.dispatches[98].set, 0));
    cr_assert(eq(uint, plan.dispatches[99].set, 1));
    waits(ALL(0), (struct range){1, 4, 60});
    cr_assert(eq(uint, plan.dispatches[100].set, 2));
}

Test(vulkan_plan, slots_that_are_the_same_memory_wait_for_each_other)
{
    const tn_slot slots[] = {{.size = 64}, {.size = 64}, {.alias = 1, .size = 64}};
    plan.slots = slots;
    plan.num_slots = 3;
    cr_assert(not(waits(ALL(0), ALL(1))));
    cr_assert(waits(ALL(1), ALL(2))); // 2 takes over the memory of 0
    cr_assert(waits(ALL(0), ALL(1)));
}

// x, an update of a row of it, and a start, in slots 0 to 2. The output is in slot 3.
static uint32_t dispatches_of_update(uint32_t alias)
{
    const tn_slot slots[] = {
        {.size = 128}, {.size = 16}, {.size = 8}, {.alias = alias, .size = 128}};
    const tn_layout x = {.dtype = TN_F32, .rank = 2, .extent = {8, 4}, .stride = {4, 1}};
    const tn_layout row = {.dtype = TN_F32, .rank = 2, .extent = {1, 4}, .stride = {4, 1}};
    const tn_value inputs[] = {{.slot = 0, .layout = x},
                               {.slot = 1, .layout = row},
                               {.slot = 2, .layout = {.dtype = TN_I64}}};
    const tn_value output = {.slot = 3, .layout = x};
    const tn_step step = {.inputs = inputs,
                          .outputs = &output,
                          .num_inputs = 3,
                          .num_outputs = 1,
                          .value_size = sizeof(tn_value)};
    uint32_t before = plan.num_dispatches;
    plan.slots = slots;
    plan.num_slots = 4;
    cr_assert(eq(int, vk_plan_dynamic_slice_update(&plan, &step), TN_OK));
    plan.num_slots = 0;
    return plan.num_dispatches - before;
}

Test(vulkan_plan, an_update_of_the_same_memory_copies_the_update_alone)
{
    cr_assert(eq(uint, dispatches_of_update(1), 1)); // in place of slot 0
    cr_assert(eq(uint, plan.dispatches[0].groups[0], 1));
    cr_assert(eq(uint, dispatches_of_update(0), 2)); // x is copied first
}

Test(vulkan_plan, an_operand_beyond_what_a_kernel_sees_is_refused)
{
    struct vk_launch launch = {.groups = 1};
    launch_bind(&launch, (struct vk_operand){0, VK_READS, 0, (UINT64_C(1) << 30) + 4});
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_ERR_UNSUPPORTED));
    check_says(message, "operand 0 spans 1073741828 bytes");
    check_says(message, "at most 1073741824");
    cr_assert(eq(uint, plan.num_dispatches, 0));
}

Test(vulkan_plan, workgroups_are_laid_out_with_few_empty_ones)
{
    static const struct {
        uint64_t groups;
        uint32_t x, y; // 0: refused
    } rows[] = {{1, 1, 1},      {1000, 1000, 1},     {1001, 512, 2},
                {2500, 848, 3}, {100000, 1000, 100}, {100001, 0, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct vk_launch launch = {.groups = rows[i].groups};
        uint32_t before = plan.num_dispatches;
        tn_status expected = rows[i].x ? TN_OK : TN_ERR_UNSUPPORTED;
        cr_assert(eq(int, plan_launch(&plan, &launch), expected));
        cr_assert(eq(uint, plan.num_dispatches - before, rows[i].x ? 1 : 0));
        if (!rows[i].x)
            continue;
        cr_assert(eq(uint, plan.dispatches[before].groups[0], rows[i].x));
        cr_assert(eq(uint, plan.dispatches[before].groups[1], rows[i].y));
        cr_assert(eq(uint, plan.dispatches[before].groups[2], 1));
    }
    check_says(message, "101 workgroups along y, but a stand-in takes at most 100");
}

Test(vulkan_plan, a_grid_that_the_device_does_not_take_is_refused)
{
    struct vk_launch launch = {
        .fixed_grid = 1, .groups_x = 1000, .groups_y = 100, .groups_z = 11};
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_ERR_UNSUPPORTED));
    check_says(message, "11 workgroups along z, but a stand-in takes at most 10");
    launch.groups_z = 10;
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_OK));
}
