// SPDX-License-Identifier: MIT
// Kernels that plan their launches: the kit's own plan checks what it is given, and emits
// two launches, of which the second reads what the first left in scratch memory. And plans
// that break the contract.
#include "family.h"
#include <tenon/vulkan.h>
#include "../segment/draft.h"
#include "family_plan_shader.h" // family_plan_glsl_code, family_plan_spirv_code

enum { N = 1000, GAP = 3, ADD = 11 };
static const uint32_t table[4] = {2, 3, 5, 7};

// Faults of a plan.
enum wrong {
    NOTHING,
    MODULE,
    GROUPS,
    MUCH_PUSH,
    SHORT_PUSH,
    CONSTANT,
    FEW_OPERANDS,
    NO_INPUT,
    WRITTEN_INPUT,
    SCRATCH_END,
    SCRATCH_START,
    HALFWAY,
    NUM_WRONG
};
static const char *const wrong_texts[NUM_WRONG] = {
    [MODULE] = "a module that is not there",
    [GROUPS] = "more workgroups than the device takes",
    [MUCH_PUSH] = "more push constants than the device takes",
    [SHORT_PUSH] = "fewer push constants than the module's block has",
    [CONSTANT] = "a specialisation constant that the module has not",
    [FEW_OPERANDS] = "fewer operands than the module has bindings",
    [NO_INPUT] = "an input that the step has not",
    [WRITTEN_INPUT] = "writing to an input",
    [SCRATCH_END] = "more scratch memory than it has",
    [SCRATCH_START] = "scratch memory that begins at an odd byte",
    [HALFWAY] = "to fail after its first launch",
};

// How the plan shall behave, and what it observes.
static struct {
    enum wrong wrong;
    uint32_t calls;
} seen;

static void see_limits(const tn_vulkan_limits *limits)
{
    if (!limits || limits->struct_size < TN_END_OF(limits, max_range)) {
        fault_note("limits are missing, or shorter than in 1.0");
        return;
    }
    for (int axis = 0; axis < 3; axis++)
        if (limits->max_groups[axis] < 65535 || limits->max_group_size[axis] < 64)
            fault_note(
                "limits along %c are %u workgroups of %u, expected at least 65535 and 64",
                "xyz"[axis], limits -> max_groups[axis], limits -> max_group_size[axis]);
    if (limits->max_push < 128 || limits->max_constants < 16 || limits->max_operands < 4 ||
        limits->max_invocations < 128 || limits->max_shared < 16384 ||
        limits->subgroup_size == 0 || limits->max_range < (UINT64_C(1) << 27))
        fault_note("limits are below what Vulkan guarantees");
}

static void see_plan(const tn_vulkan_plan *plan)
{
    if (plan->struct_size < TN_END_OF(plan, shares) || plan->flags)
        fault_note("struct_size is %u, flags are %#x", plan->struct_size, plan->flags);
    else if (!plan->host || !plan->step || !plan->launch || !plan->shares)
        fault_note("a member is NULL");
    else if (plan->step->num_inputs != 1 || plan->step->num_outputs != 1)
        fault_note("the step has %u inputs and %u outputs, expected one each",
                   plan->step->num_inputs, plan->step->num_outputs);
    else if (plan->shares(plan, 0, 0) != 0)
        fault_note("input and output share memory, which they do not");
    see_limits(plan->limits);
}

// --- the plan --------------------------------------------------------------------------

static void launch_spoil(const tn_vulkan_plan *plan, tn_vulkan_launch *launch,
                         tn_vulkan_operand *operands)
{
    static const tn_vulkan_constant unknown = {6, 1};
    static const uint32_t much_push[1024];
    switch (seen.wrong) {
    case MODULE:
        launch->module = 1;
        break;
    case GROUPS:
        launch->groups[2] = plan->limits->max_groups[2] + 1;
        break;
    case MUCH_PUSH:
        launch->push = much_push;
        launch->num_push = plan->limits->max_push / 4 + 1;
        break;
    case SHORT_PUSH:
        launch->num_push--;
        break;
    case CONSTANT:
        launch->constants = &unknown;
        break;
    case FEW_OPERANDS:
        launch->num_operands--;
        break;
    case NO_INPUT:
        operands[0] = tn_vulkan_input(1);
        break;
    case WRITTEN_INPUT:
        operands[1] = tn_vulkan_input(0);
        operands[1].access = TN_VULKAN_WRITES;
        break;
    case SCRATCH_END:
        operands[0].size += 4;
        break;
    case SCRATCH_START:
        operands[0].offset = 4;
        operands[0].size -= 4;
        break;
    default:
        break;
    }
}

static tn_status plan_mix(const tn_vulkan_plan *plan)
{
    seen.calls++;
    see_plan(plan);
    if (fault_text()[0])
        return TN_OK;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *y = &tn_step_output(plan->step, 0)->layout;
    uint32_t push[] = {N, (uint32_t)x->offset, 0, (uint32_t)x->stride[0], ADD};
    const tn_vulkan_constant last[] = {{.id = 5, .value = 1}};
    tn_vulkan_operand first[] = {tn_vulkan_input(0),
                                 tn_vulkan_scratch(0, N * 4, TN_VULKAN_WRITES),
                                 tn_vulkan_data(table, sizeof(table))};
    tn_vulkan_operand second[] = {tn_vulkan_scratch(0, N * 4, TN_VULKAN_READS),
                                  tn_vulkan_output(0),
                                  tn_vulkan_data(table, sizeof(table))};
    tn_vulkan_launch launch = {.struct_size = sizeof(launch),
                               TN_VULKAN_GROUPS((N + 255) / 256, 4, 1),
                               TN_VULKAN_OPERANDS(first),
                               TN_VULKAN_PUSH(push)};
    tn_status status = plan->launch(plan, &launch);
    if (seen.wrong == HALFWAY)
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED, "the kit's plan fails");
    const uint32_t from_scratch[] = {N, 0, (uint32_t)y->offset, 1, ADD};
    launch.operands = second;
    launch.push = from_scratch;
    launch.constants = last;
    launch.num_constants = 1;
    launch.constant_size = sizeof(last[0]);
    launch_spoil(plan, &launch, second);
    tn_status after = plan->launch(plan, &launch);
    // A plan may overlook that a launch failed.
    return seen.wrong == MODULE ? TN_OK : status == TN_OK ? after : status;
}

// --- a step ----------------------------------------------------------------------------

static const tn_input_info inputs[] = {{.name = "x", .doc = "what is mixed"}};
static const tn_primitive primitive = {
    .struct_size = sizeof(primitive),
    .id = "conformance.mix/1",
    .doc = "x times a table of four numbers, in reverse, and a sum.",
    TN_INPUTS(inputs),
    .num_outputs = 1,
};
static struct draft draft;
static struct {
    tn_vulkan_module module;
    tn_vulkan_kernel payload;
    tn_kernel kernel;
} shader;

// Slots: x, y and scratch memory.
static void draft_mix(struct fixture *f, const char *family, const void *code,
                      uint64_t size)
{
    uint64_t at = f->info.buffer_alignment > TN_VULKAN_ALIGNMENT ? f->info.buffer_alignment
                                                                 : TN_VULKAN_ALIGNMENT;
    shader.module = (tn_vulkan_module){.name = "mix", .code = code, .code_size = size};
    shader.payload = (tn_vulkan_kernel){.struct_size = sizeof(shader.payload),
                                        .modules = &shader.module,
                                        .num_modules = 1,
                                        .module_size = sizeof(shader.module),
                                        .plan = plan_mix};
    shader.kernel = (tn_kernel){.struct_size = sizeof(shader.kernel),
                                .primitive = primitive.id,
                                .family = family,
                                .name = "kit",
                                .payload = &shader.payload};
    draft_start(&draft);
    for (int i = 0; i < 2; i++)
        draft_slot(&draft, 0, (N + 1) * GAP * 4);
    tn_value in = flat_value(0, TN_I32, N), out = flat_value(1, TN_I32, N);
    in.layout.stride[0] = in.layout.offset = GAP;
    out.layout.offset = 1;
    tn_step *step = draft_kernel(&draft, &primitive, &shader.kernel, &in, 1, &out);
    step->scratch_slot = draft_slot(&draft, TN_SLOT_SCRATCH, at + N * 4);
    step->scratch_offset = at;
    step->scratch_size = N * 4;
}

static void expect_mixed(struct fixture *f, tn_buffer *buffer)
{
    static uint32_t y[N + 2];
    if (!fixture_read(f, buffer, 0, y, sizeof(y)))
        return;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t k = N - 1 - i, expected = GAP * (1 + k) * table[k % 4] + ADD * table[3];
        if (y[1 + i] != expected) {
            check_fail(f->kit, "element %u is %u, expected %u", i, y[1 + i], expected);
            return;
        }
    }
    if (y[0] != 0 || y[N + 1] != N + 1)
        check_fail(f->kit, "something is written outside of the output");
}

static void run_mix(struct fixture *f)
{
    static uint32_t x[(N + 1) * GAP];
    tn_binding bindings[3];
    uint64_t point;
    for (uint32_t i = 0; i < COUNT(x); i++)
        x[i] = i;
    tn_executable *executable = fixture_compile(f, &draft.segment);
    for (uint32_t i = 0; i < 3 && executable; i++) {
        bindings[i] = (tn_binding){fixture_buffer(f, draft.slots[i].size), 0};
        if (!bindings[i].buffer ||
            (i < 2 && !fixture_write(f, bindings[i].buffer, 0, x, sizeof(x))))
            return;
    }
    if (executable && fixture_submit(f, executable, bindings, 3, 0, &point) &&
        fixture_wait(f, point))
        expect_mixed(f, bindings[1].buffer);
}

// --- checks ----------------------------------------------------------------------------

static bool can_run(struct fixture *f, const char *family)
{
    uint32_t dtypes = f->info.dtypes ? f->info.dtypes : TN_ALL_DTYPES;
    memset(&seen, 0, sizeof(seen));
    fault_clear();
    return fixture_consumes(f, family) && fixture_computes(f) &&
           dtypes & TN_DTYPE_BIT(TN_I32);
}

static void check_plan_family(struct fixture *f, const char *family, const void *code,
                              uint64_t size)
{
    if (!can_run(f, family)) {
        check_skip(f->kit, "it does not run %s", family);
        return;
    }
    draft_mix(f, family, code, size);
    run_mix(f);
    if (!check_failed(f->kit) && seen.calls == 0)
        check_fail(f->kit, "the plan is not called");
    if (fault_text()[0])
        check_fail(f->kit, "tn_vulkan_plan: %s", fault_text());
}

void check_glsl_plan(struct fixture *f)
{
    check_plan_family(f, TN_FAMILY_VULKAN_GLSL, family_plan_glsl_code,
                      sizeof(family_plan_glsl_code) - 1);
}

void check_spirv_plan(struct fixture *f)
{
    check_plan_family(f, TN_FAMILY_VULKAN_SPIRV, family_plan_spirv_code,
                      sizeof(family_plan_spirv_code));
}

static void plan_expect_refusal(struct fixture *f)
{
    uint64_t live = f->host.live;
    const char *what = wrong_texts[seen.wrong];
    tn_executable *executable = NULL;
    check_case(f->kit);
    fixture_listen(f);
    tn_status status = f->backend->segment_compile(f->device, &draft.segment, &executable);
    fixture_heard(f, status, "segment_compile");
    if (status == TN_OK) {
        check_fail(f->kit, "a plan that asks for %s is compiled", what);
        f->backend->executable_destroy(f->device, executable);
    } else if (f->host.live > live) {
        check_fail(f->kit, "a plan that asks for %s is refused, and %llu blocks are left",
                   what, (unsigned long long)(f->host.live - live));
    } else if (seen.wrong == HALFWAY && status != TN_ERR_UNSUPPORTED) {
        check_fail(f->kit, "a plan fails with status %d, but segment_compile with %d",
                   TN_ERR_UNSUPPORTED, status);
    }
}

void check_wrong_plans(struct fixture *f)
{
    bool is_glsl = can_run(f, TN_FAMILY_VULKAN_GLSL);
    if (!is_glsl && !can_run(f, TN_FAMILY_VULKAN_SPIRV)) {
        check_skip(f->kit, "it takes no kernels that plan their launches");
        return;
    }
    if (is_glsl)
        draft_mix(f, TN_FAMILY_VULKAN_GLSL, family_plan_glsl_code,
                  sizeof(family_plan_glsl_code) - 1);
    else
        draft_mix(f, TN_FAMILY_VULKAN_SPIRV, family_plan_spirv_code,
                  sizeof(family_plan_spirv_code));
    for (int wrong = NOTHING + 1; wrong < NUM_WRONG; wrong++) {
        seen.wrong = (enum wrong)wrong;
        plan_expect_refusal(f);
    }
    seen.wrong = NOTHING;
    run_mix(f); // no refused plan has damaged the device
}
