// SPDX-License-Identifier: MIT
// Operator packs whose kernel plans its launches, with one fault each in the plan; without
// a FAULT_... they have none. The name of a fault is that of the check that must find it.
//
// x times alpha, in two launches: the first one copies x to scratch memory.
#include <string.h>
#include <tenon/pack.h>
#include <tenon/vulkan.h>

TN_EXPR_OP(scaled, "faulty.scaled/1", (x), (alpha, 2), "alpha * x");

static const char scale_glsl_code[] =
    "#version 460\n"
    "layout(local_size_x = 64) in;\n"
    "layout(constant_id = 3) const uint COPIES = 0;\n"
    "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
    "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
    "layout(push_constant) uniform Push { uint count, x_at, y_at; float alpha; };\n"
    "void main() {\n"
    "    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 64u +\n"
    "             gl_LocalInvocationID.x;\n"
    "    if (i < count) y[y_at + i] = x[x_at + i] * (COPIES != 0u ? 1.0 : alpha);\n"
    "}\n";

#ifdef FAULT_KERNEL_SHADER
static const char picture_glsl_code[] =
    "// a picture\n#version 460\n#line 7 \"picture.comp\"\n"
    "layout(binding = 0) uniform sampler2D picture;\nvoid main() {}\n";
#endif

static uint64_t count_of(const tn_layout *layout)
{
    uint64_t count = 1;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        count *= (uint64_t)layout->extent[axis];
    return count;
}

static uint64_t scratch_size(const tn_kernel_query *query)
{
    uint64_t bytes = 4 * count_of(&query->outputs[0]);
#ifdef FAULT_KERNEL_PLAN_SCRATCH
    bytes -= 4;
#endif
    return bytes;
}

static tn_status plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *y = &tn_step_output(plan->step, 0)->layout;
    uint64_t count = count_of(y);
    float alpha = (float)((const scaled_attrs *)plan->step->attrs)->alpha;
    uint32_t push[40] = {(uint32_t)count, (uint32_t)x->offset, 0};
    const tn_vulkan_constant copies = {3, 1};
    tn_vulkan_operand first[] = {tn_vulkan_input(0),
                                 tn_vulkan_scratch(0, 4 * count, TN_VULKAN_WRITES)};
    tn_vulkan_operand second[] = {tn_vulkan_scratch(0, 4 * count, TN_VULKAN_READS),
                                  tn_vulkan_output(0)};
    tn_vulkan_launch launch = {.struct_size = sizeof(launch),
                               .push = push,
                               .num_push = 4,
                               .constants = &copies,
                               .num_constants = 1,
                               .constant_size = sizeof(copies),
                               TN_VULKAN_OPERANDS(first)};
    memcpy(&push[3], &alpha, sizeof(alpha));
    tn_vulkan_rows(plan->limits, (count + 63) / 64, launch.groups);
#ifdef FAULT_KERNEL_PLAN_PURE
    static uint32_t times;
    push[3] = times++;
#endif
#ifdef FAULT_KERNEL_PLAN_PURE_SLOT
    push[2] = tn_step_output(plan->step, 0)->slot;
#endif
#ifdef FAULT_KERNEL_PLAN_PUSH
    launch.num_push = 40; // more than the least that Vulkan guarantees
#endif
#ifdef FAULT_KERNEL_PLAN_GROUPS
    launch.groups[2] = 1 + 65535 * (count > 7);
#endif
#ifdef FAULT_KERNEL_PLAN_INPUT
    first[0].access = TN_VULKAN_READS | TN_VULKAN_WRITES;
#endif
#ifdef FAULT_KERNEL_PLAN_FUSED
    second[1].access = TN_VULKAN_READS | TN_VULKAN_WRITES;
#endif
#ifdef FAULT_KERNEL_PLAN_MODULE
    launch.module = 1;
#endif
#ifdef FAULT_KERNEL_PLAN_MESSAGE
    if (count > 7)
        return TN_ERR_UNSUPPORTED;
#endif
    tn_status status = plan->launch(plan, &launch);
    launch.operands = second;
    launch.num_constants = 0;
    push[1] = 0;
    push[2] = (uint32_t)y->offset;
    return status == TN_OK ? plan->launch(plan, &launch) : status;
}

static const tn_vulkan_module modules[] = {
    {.name = "scale", .code = scale_glsl_code, .code_size = sizeof(scale_glsl_code) - 1},
#ifdef FAULT_KERNEL_SHADER
    {.name = "picture",
     .code = picture_glsl_code,
     .code_size = sizeof(picture_glsl_code) - 1},
#endif
};
static const tn_vulkan_kernel payload = {.struct_size = sizeof(payload),
                                         .modules = modules,
                                         .num_modules =
                                             sizeof(modules) / sizeof(modules[0]),
                                         .module_size = sizeof(modules[0]),
                                         .plan = plan};
static const tn_operand_rule rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, 0},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_kernel planned = {.struct_size = sizeof(planned),
                                  .primitive = "faulty.scaled/1",
                                  .family = TN_FAMILY_VULKAN_GLSL,
                                  .name = "planned",
                                  .priority = 500,
                                  TN_OPERANDS(rules),
                                  .scratch_size = scratch_size,
                                  .payload = &payload};

TN_PACK("com.acme.faulty", "1.0.0", "Acme", TN_PRIMITIVES(&scaled), TN_KERNELS(&planned));
