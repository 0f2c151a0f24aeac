// SPDX-License-Identifier: MIT
// Which launches wait for those before them, and which are refused: the plan of the Vulkan
// backends by itself, with a stand-in for pipelines and no device.
#include "check.h"

#include "vulkan/record.h"
#include "segment/launches.h"
#include "segment/measure.h"
#include "dispatch/special.h"

extern const tn_kernel own_dynamic_slice_update;

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
static const uint32_t code[] = {0};
#define MODULE(name)                                                                       \
    {                                                                                      \
        name, code, sizeof(code), NULL, NULL                                               \
    }
static const tn_vulkan_module modules[] = {MODULE("copy_16"), MODULE("copy_16_i64"),
                                           MODULE("copy_8")};
static const struct vk_flavour flavour = {
    .name = "a stand-in", .modules = modules, .num_modules = 3};
static struct vk_instance instance;
static tn_device device = {.host = &host,
                           .flavour = &flavour,
                           .instance = &instance,
                           .facts = {.limits = {.struct_size = sizeof(tn_vulkan_limits),
                                                .max_groups = {1000, 100, 10},
                                                .max_push = 128,
                                                .max_constants = 16,
                                                .max_operands = 8,
                                                .max_range = UINT64_C(1) << 30},
                                     .properties = {.deviceName = "a stand-in"}}};
static struct vk_plan plan;
static struct vk_pipeline_desc described; // of the last pipeline

// What plan.c and launches.c need of the rest.
tn_status vk_pipeline_get(tn_device *owner, const struct vk_pipeline_desc *desc,
                          struct vk_ahead *ahead, bool is_helper,
                          struct vk_pipeline **out_pipeline)
{
    static struct vk_pipeline pipeline;
    static tn_vulkan_constant spec[4];
    (void)owner, (void)ahead, (void)is_helper;
    *out_pipeline = &pipeline;
    described = *desc;
    described.spec = spec;
    for (uint32_t i = 0; i < desc->num_spec && i < 4; i++)
        spec[i] = desc->spec[i];
    return TN_OK;
}

struct vk_pipeline_desc vk_pipeline_describe(const struct vk_pipeline *pipeline)
{
    (void)pipeline;
    return described;
}

tn_status vk_special_make(struct vk_plan *of)
{
    (void)of;
    return TN_OK;
}

const struct vk_pipeline *vk_special_plain(const struct vk_plan *of, uint32_t dispatch)
{
    return of->dispatches[dispatch].pipeline;
}

void vk_pipeline_release(tn_device *owner, struct vk_pipeline *pipeline)
{
    (void)owner, (void)pipeline;
}

tn_status vk_measure_plan(struct vk_plan *of, uint32_t dispatch,
                          const struct vk_pipeline_desc *desc,
                          const struct spirv_words *lists, uint32_t num_lists,
                          uint64_t number)
{
    (void)of, (void)dispatch, (void)desc, (void)lists, (void)num_lists, (void)number;
    return TN_OK;
}

static void begin(void)
{
    plan = (struct vk_plan){.device = &device};
}

static void end(void)
{
    plan_finish(&plan);
    instance.planned = NULL;
    instance.hears_launches = false;
}

struct range {
    uint32_t slot;
    uint64_t offset, size;
};

// A launch that reads one range and writes another. True: it waits.
static bool waits(struct range read, struct range written)
{
    struct vk_launch launch = {.pipeline.name = "test", .groups = 1};
    launch_bind(&launch, (struct vk_operand){read.slot, VK_READS, read.offset, read.size});
    launch_bind(&launch,
                (struct vk_operand){written.slot, VK_WRITES, written.offset, written.size});
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_OK));
    return plan.dispatches[plan.num_dispatches - 1].barrier;
}

#define ALL(slot) ((struct range){slot, 0, 64})

TestSuite(vulkan_plan, .init = begin, .fini = end);

// --- telling launches ------------------------------------------------------------------

struct told {
    uint32_t count;
    tn_planned_launch launch; // the last one, with copies of its lists
    uint32_t spec[4], push[4], constants[8];
    uint64_t ranges[6];
    char step[16];
};

static void take(void *context, const tn_planned_launch *launch)
{
    struct told *told = context;
    told->count++;
    told->launch = *launch;
    if (launch->num_spec > 0)
        memcpy(told->spec, launch->spec, launch->num_spec * sizeof(uint64_t));
    memcpy(told->push, launch->push, launch->num_push * sizeof(uint32_t));
    if (launch->num_constants > 0)
        memcpy(told->constants, launch->constants,
               launch->num_constants * sizeof(uint32_t));
    memcpy(told->ranges, launch->ranges, 2 * launch->num_operands * sizeof(uint64_t));
    snprintf(told->step, sizeof(told->step), "%s", launch->step);
}

static void tell_last(void)
{
    static const tn_step step = {.label = "a step"};
    cr_assert(eq(int, vk_launches_tell_one(&plan, plan.num_dispatches - 1, &step), TN_OK));
}

// A launch whose constants were appended last, or lie at a range of the buffer.
static void launch_with_constants(struct vk_operand constants, uint32_t at)
{
    struct vk_launch launch = {.pipeline.name = "test", .groups = 3};
    launch_bind(&launch, (struct vk_operand){1, VK_WRITES, 64, 32});
    launch_bind(&launch, constants);
    launch_push(&launch, at);
    launch_push(&launch, 7);
    launch_spec(&launch, 9);
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_OK));
}

Test(vulkan_plan, a_launch_is_told_with_its_constants_wherever_they_lie)
{
    static const uint32_t first[5] = {1, 2, 3, 4, 5}, second[3] = {6, 7, 8};
    struct told told = {0};
    uint32_t at;
    waits(ALL(0), ALL(1));
    tell_last(); // nobody listens
    instance.planned = take;
    instance.hears_launches = true;
    instance.planned_context = &told;
    cr_assert(eq(int, plan_constants(&plan, first, 5, &at), TN_OK));
    cr_assert(eq(int, plan_constants(&plan, second, 3, &at), TN_OK));
    cr_assert(at > 0);
    launch_with_constants((struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, 0, 0}, at);
    cr_assert(eq(int, plan_constants(&plan, first, 5, &at), TN_OK)); // of others, later
    tell_last();
    cr_assert(eq(u32, told.count, 1));
    cr_assert(eq(str, told.step, "a step"));
    cr_assert(eq(u32, told.launch.num_constants, 3));
    cr_assert(memcmp(told.constants, second, sizeof(second)) == 0);
    // Where they lie is no constant of the kernel.
    cr_assert(told.push[0] == 0 && told.push[1] == 7 && told.launch.num_push == 2);
    cr_assert(told.spec[0] == 0 && told.spec[1] == 9 && told.launch.num_spec == 1);
    cr_assert(told.ranges[0] == 64 && told.ranges[1] == 32 && told.ranges[2] == 0);
    cr_assert(told.launch.groups[0] == 3 && told.launch.groups[1] == 1);
    launch_with_constants((struct vk_operand){VK_SLOT_CONSTANTS, VK_READS, 4, 12}, 5);
    tell_last();
    cr_assert(eq(u32, told.launch.num_constants, 3));
    cr_assert(memcmp(told.constants, first + 1, 12) == 0 && told.push[0] == 5);
    waits(ALL(0), ALL(1));
    tell_last(); // without constants
    cr_assert(told.count == 3 && told.launch.num_constants == 0);
}

// --- barriers --------------------------------------------------------------------------

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
    const tn_vulkan_kernel *own = own_dynamic_slice_update.payload;
    const tn_vulkan_kernel payload = {.struct_size = sizeof(payload),
                                      .modules = modules,
                                      .num_modules = 3,
                                      .module_size = sizeof(modules[0]),
                                      .plan = own->plan};
    const tn_kernel kernel = {.family = TN_FAMILY_VULKAN_SPIRV, .payload = &payload};
    const tn_step step = {.kernel = &kernel,
                          .inputs = inputs,
                          .outputs = &output,
                          .num_inputs = 3,
                          .num_outputs = 1,
                          .value_size = sizeof(tn_value)};
    uint32_t before = plan.num_dispatches;
    plan.slots = slots;
    plan.num_slots = 4;
    cr_assert(eq(int, plan_kernel(&plan, &step), TN_OK));
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
    struct vk_launch launch = {.pipeline.name = "test", .groups = 1};
    launch_bind(&launch, (struct vk_operand){0, VK_READS, 0, (UINT64_C(1) << 30) + 4});
    cr_assert(eq(int, plan_launch(&plan, &launch), TN_ERR_UNSUPPORTED));
    check_says(message, "kernel test: operand 0 spans 1073741828 bytes");
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
        struct vk_launch launch = {.pipeline.name = "test", .groups = rows[i].groups};
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
    check_says(message, "got 101 workgroups along y, but a stand-in takes at most 100");
}

// --- what a plan asks for --------------------------------------------------------------

// The launches that `plan_rows` emits; the last one may be wrong.
static const tn_vulkan_launch *wanted;
static uint32_t num_wanted;
static tn_status plan_result;
static bool is_silent; // the plan hides that a launch failed

static tn_status plan_wanted(const tn_vulkan_plan *face)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < num_wanted; i++)
        status = face->launch(face, &wanted[i]);
    if (plan_result != TN_OK)
        return face->host->fail(face->host, plan_result, "this plan fails");
    return is_silent ? TN_OK : status;
}

static const tn_vulkan_module foreign[] = {MODULE("sum"), MODULE("scale"), MODULE(NULL)};

static tn_status plan_step_with(const tn_vulkan_launch *launches, uint32_t count)
{
    const tn_layout row = {.dtype = TN_F32, .rank = 1, .extent = {8}, .stride = {1}};
    const tn_value inputs[] = {{.slot = 0, .layout = row},
                               {.layout = {.dtype = TN_DTYPE_NONE}}};
    const tn_value output = {.slot = 1, .layout = row};
    const tn_vulkan_kernel payload = {.struct_size = sizeof(payload),
                                      .modules = foreign,
                                      .num_modules = 3,
                                      .module_size = sizeof(modules[0]),
                                      .plan = plan_wanted};
    const tn_kernel kernel = {.primitive = "acme.norm/1",
                              .family = TN_FAMILY_VULKAN_SPIRV,
                              .name = "norm",
                              .payload = &payload};
    const tn_step step = {.struct_size = sizeof(step),
                          .kernel = &kernel,
                          .inputs = inputs,
                          .outputs = &output,
                          .num_inputs = 2,
                          .num_outputs = 1,
                          .scratch_slot = 2,
                          .value_size = sizeof(tn_value),
                          .scratch_size = 1024,
                          .plugin = "com.acme.norm"};
    wanted = launches;
    num_wanted = count;
    return plan_kernel(&plan, &step);
}

#define LAUNCH(...)                                                                        \
    {                                                                                      \
        .struct_size = sizeof(tn_vulkan_launch), __VA_ARGS__                               \
    }
#define ON(...)                                                                            \
    TN_VULKAN_GROUPS(1, 1, 1),                                                             \
        .operands = (const tn_vulkan_operand[]){__VA_ARGS__},                              \
        .operand_size = sizeof(tn_vulkan_operand),                                         \
        .num_operands =                                                                    \
            sizeof((tn_vulkan_operand[]){__VA_ARGS__}) / sizeof(tn_vulkan_operand)

Test(vulkan_plan, launches_of_a_plan_wait_for_each_other_through_scratch_memory)
{
    const uint32_t entries[] = {1, 2, 3, 4};
    const tn_vulkan_launch launches[] = {
        LAUNCH(ON(tn_vulkan_input(0), tn_vulkan_scratch(0, 256, VK_WRITES))),
        LAUNCH(ON(tn_vulkan_input(1), tn_vulkan_scratch(256, 768, VK_WRITES))),
        LAUNCH(ON(tn_vulkan_scratch(0, 256, VK_READS), tn_vulkan_output(0)),
               TN_VULKAN_PUSH(entries)),
        LAUNCH(TN_VULKAN_GROUPS(1, 0, 1)),
        LAUNCH(ON(tn_vulkan_data(entries, 8), tn_vulkan_scratch(0, 256, VK_READS))),
        LAUNCH(ON(tn_vulkan_data(entries, 16))),
    };
    cr_assert(eq(int, plan_step_with(launches, 6), TN_OK));
    cr_assert(eq(uint, plan.num_dispatches, 5)); // one has no workgroups
    const bool waiting[] = {false, false, true, false, false};
    for (uint32_t i = 0; i < 5; i++)
        cr_assert(eq(int, plan.dispatches[i].barrier, waiting[i]), "launch %u", i);
    cr_assert(eq(uint, plan.dispatches[2].num_push, 4));
    cr_assert(plan.push[plan.dispatches[2].first_push + 3] == 4);
    const struct vk_operand *data = &plan.operands[plan.dispatches[4].first_operand];
    cr_assert(data->slot == VK_SLOT_CONSTANTS && data->size == 16);
    cr_assert(eq(uint, (unsigned)data->offset, TN_VULKAN_ALIGNMENT));
    cr_assert(eq(uint, plan.constants[TN_VULKAN_ALIGNMENT / 4 + 3], 4));
    // What is not given is some memory.
    cr_assert(eq(uint, plan.operands[plan.dispatches[1].first_operand].slot, 1));
}

Test(vulkan_plan, what_a_launch_may_not_have_is_refused_with_kernel_and_numbers)
{
    const uint32_t words[33] = {0};
    const tn_vulkan_constant constants[17] = {{0, 0}};
    const struct {
        tn_vulkan_launch launch;
        const char *says;
        tn_status status; // 0: REFUSED
    } rows[] = {
        {{.struct_size = 8}, "a launch of 8 bytes, expected at least", 0},
        {LAUNCH(.module = 3), "a launch of module 3, but it has 3", 0},
        {LAUNCH(.groups = {5}), "5 x 0 x 0 workgroups, expected 5 x 1 x 1", 0},
        {LAUNCH(TN_VULKAN_GROUPS(1000, 100, 11)),
         "got 11 workgroups along z, but a stand-in takes at most 10", TN_ERR_UNSUPPORTED},
        {LAUNCH(TN_VULKAN_PUSH(words)),
         "got 33 words of push constants, but a stand-in takes at most 32",
         TN_ERR_UNSUPPORTED},
        {LAUNCH(TN_VULKAN_CONSTANTS(constants)),
         "got 17 specialisation constants, but a stand-in takes at most 16",
         TN_ERR_UNSUPPORTED},
        {LAUNCH(.num_operands = 9, .operand_size = sizeof(tn_vulkan_operand)),
         "got 9 operands, but a stand-in takes at most 8", TN_ERR_UNSUPPORTED},
        {LAUNCH(.num_push = 1), "1 words of push constants at no address", 0},
        {LAUNCH(.num_constants = 1, .constants = constants), "without their size", 0},
        {LAUNCH(ON(tn_vulkan_input(2))), "operand 0 is input 2, but the step has 2", 0},
        {LAUNCH(ON(tn_vulkan_output(1))), "operand 0 is output 1, but the step has 1", 0},
        {LAUNCH(ON(tn_vulkan_output(0), {TN_VULKAN_INPUT, VK_WRITES, 0, 0, 0, NULL})),
         "operand 1 writes to input 0", 0},
        {LAUNCH(ON({TN_VULKAN_OUTPUT, 0, 0, 0, 0, NULL})), "has access 0", 0},
        {LAUNCH(ON({9, VK_READS, 0, 0, 0, NULL})), "is of kind 9, expected 1 to 4", 0},
        {LAUNCH(ON(tn_vulkan_scratch(512, 516, VK_READS))),
         "bytes 512 to 1028 of the scratch memory, but scratch_size gave 1024", 0},
        {LAUNCH(ON(tn_vulkan_scratch(UINT64_MAX - 255, 512, VK_READS))),
         "but scratch_size gave 1024", 0},
        {LAUNCH(ON(tn_vulkan_scratch(128, 512, VK_READS))),
         "512 bytes of scratch memory from byte 128 on, expected multiples of 4 and 256",
         0},
        {LAUNCH(ON(tn_vulkan_data(words, 6))), "is 6 bytes of data", 0},
        {LAUNCH(ON(tn_vulkan_data(NULL, 8))), "8 bytes of data at no address", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_status expected = rows[i].status ? rows[i].status : TN_ERR_REFUSED;
        is_silent = i % 2; // a plan that goes on does not help
        tn_status status = plan_step_with(&rows[i].launch, 1);
        cr_assert(eq(int, status, expected), "%s: %s", rows[i].says, message);
        check_says(message, "kernel com.acme.norm/norm of acme.norm/1: ");
        check_says(message, rows[i].says);
        cr_assert(eq(uint, plan.num_dispatches, 0));
    }
    is_silent = false;
}

Test(vulkan_plan, a_plan_that_fails_halfway_fails_the_step)
{
    const tn_vulkan_launch good = LAUNCH(ON(tn_vulkan_input(0), tn_vulkan_output(0)));
    plan_result = TN_ERR_ARGUMENT;
    cr_assert(eq(int, plan_step_with(&good, 1), TN_ERR_ARGUMENT));
    check_says(message, "this plan fails");
    plan_result = TN_OK;
    cr_assert(eq(uint, plan.num_dispatches, 1)); // plan_finish releases it
}
