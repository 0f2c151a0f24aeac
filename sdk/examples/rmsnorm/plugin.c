// SPDX-License-Identifier: MIT
// An RMS norm for Vulkan, outside of Tenon's tree. Its kernels plan their launches: one for
// rows that fit a workgroup's registers, else two, which meet in scratch memory.
#include <string.h>
#include <tenon/pack.h>
#include <tenon/vulkan.h>
#include "rms_rows_shader.h" // each made from the .comp of its name, as text and as SPIR-V
#include "rms_scale_shader.h"
#include "rms_sums_shader.h"

// The core would add `axis` by itself: declared here, it is a member that the kernels read.
typedef struct rms_norm_attrs {
    double eps;
    int64_t axis;
} rms_norm_attrs;

static const tn_attr_field fields[] = {
    TN_F64_FIELD(rms_norm_attrs, eps, 1e-5, "added to the mean of the squares"),
    TN_I64_FIELD(rms_norm_attrs, axis, -1, "axis of the rows"),
};

TN_OP(rms_norm, "acme.rms_norm/1", (x, w), .attrs = TN_ATTR_TABLE(rms_norm_attrs, fields),
      TN_MEANS("x * rsqrt(mean(x * x) + eps) * w"));

// Shaders read fours of elements. A workgroup has 256 invocations of at most eight fours.
enum { GROUP = 256, MOST = 8 * GROUP };
enum { ROWS, SUMS, SCALE }; // modules, as TN_PLANNED_KERNELS lists them

struct shape {
    uint32_t rows, fours, parts; // fours of a row, and workgroups that share it
};

static struct shape shape_of(const tn_layout *x)
{
    uint32_t rows = 1, fours = (uint32_t)(x->extent[x->rank - 1] / 4);
    for (int32_t axis = 0; axis + 1 < x->rank; axis++)
        rows *= (uint32_t)x->extent[axis];
    return (struct shape){rows, fours, (fours + MOST - 1) / MOST};
}

// Rows along the last axis of x, with a weight an element; else the expression runs.
static int32_t accepts(const tn_kernel_query *query)
{
    const rms_norm_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[1], *y = &query->outputs[0];
    int32_t last = x->rank - 1;
    return last >= 0 && (attrs->axis == -1 || attrs->axis == last) && w->rank == 1 &&
           w->extent[0] == x->extent[last] && w->extent[0] % 4 == 0 &&
           (x->offset | w->offset | y->offset) % 4 == 0;
}

// A sum for each part of a row that is shared.
static uint64_t scratch_size(const tn_kernel_query *query)
{
    struct shape s = shape_of(&query->inputs[0]);
    return s.parts > 1 ? (uint64_t)s.rows * s.parts * sizeof(float) : 0;
}

// An invocation takes about four fours of its row, unless fewer than eight would share it,
// and 256 take more. The rows of a workgroup are as many as 128 invocations have.
static tn_status plan_rows(const tn_vulkan_plan *plan, const struct shape *s,
                           tn_vulkan_launch *launch)
{
    uint32_t lanes = 1; // invocations of a row
    while (lanes < GROUP && lanes < (lanes < 8 ? s->fours : s->fours / 4))
        lanes *= 2;
    uint32_t each = (s->fours + lanes - 1) / lanes, rows = lanes < 128 ? 128 / lanes : 1;
    const tn_vulkan_constant constants[] = {
        {0, rows * lanes}, {1, lanes}, {2, each}, {3, plan->limits->subgroup_size}};
    launch->module = ROWS;
    launch->constants = constants;
    launch->num_constants = 4;
    launch->constant_size = sizeof(constants[0]);
    tn_vulkan_rows(plan->limits, (s->rows + rows - 1) / rows, launch->groups);
    return plan->launch(plan, launch);
}

static tn_status plan_parts(const tn_vulkan_plan *plan, const struct shape *s,
                            tn_vulkan_launch *launch)
{
    uint64_t bytes = (uint64_t)s->rows * s->parts * sizeof(float);
    const tn_vulkan_operand sums[] = {tn_vulkan_input(0),
                                      tn_vulkan_scratch(0, bytes, TN_VULKAN_WRITES)};
    const tn_vulkan_operand scale[] = {tn_vulkan_input(0), tn_vulkan_input(1),
                                       tn_vulkan_output(0),
                                       tn_vulkan_scratch(0, bytes, TN_VULKAN_READS)};
    memcpy(launch->groups, (uint32_t[]){s->rows, s->parts, 1}, sizeof(launch->groups));
    launch->module = SUMS;
    launch->operands = sums;
    launch->num_operands = 2;
    tn_status status = plan->launch(plan, launch);
    launch->module = SCALE; // waits: it reads what SUMS writes
    launch->operands = scale;
    launch->num_operands = 4;
    return status == TN_OK ? plan->launch(plan, launch) : status;
}

static tn_status plan_norm(const tn_vulkan_plan *plan)
{
    tn_vulkan_operand xwy[] = {tn_vulkan_input(0), tn_vulkan_input(1), tn_vulkan_output(0)};
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    uint32_t x_at = (uint32_t)x->offset / 4;
    uint32_t w_at = (uint32_t)tn_step_input(plan->step, 1)->layout.offset / 4;
    uint32_t y_at = (uint32_t)tn_step_output(plan->step, 0)->layout.offset / 4;
    struct shape s = shape_of(x);
    uint32_t push[7] = {s.rows, s.fours, s.parts, x_at, w_at, y_at};
    float eps = (float)((const rms_norm_attrs *)plan->step->attrs)->eps;
    memcpy(&push[6], &eps, sizeof(eps));
    tn_vulkan_launch launch = {
        .struct_size = sizeof(launch), TN_VULKAN_PUSH(push), TN_VULKAN_OPERANDS(xwy)};
    return s.parts > 1 ? plan_parts(plan, &s, &launch) : plan_rows(plan, &s, &launch);
}

TN_PLANNED_KERNELS(rms_norm, "acme.rms_norm/1", plan_norm, (rms_rows, rms_sums, rms_scale),
                   TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)),
                   .features = "subgroup,shuffle", .accepts = accepts,
                   .scratch_size = scratch_size);

TN_PACK("com.acme.rmsnorm", "1.0.0", "Acme", TN_PRIMITIVES(&rms_norm),
        TN_KERNELS(&rms_norm_glsl, &rms_norm_spirv));
