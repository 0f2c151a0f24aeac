// SPDX-License-Identifier: MIT
// base.{cumsum,cumprod,cummax,cummin}/1: by columns, or by rows, of which a few long ones
// are cut into parts and take two dispatches (cumulative.comp).
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/base_attrs.h>

#define LEAST_INNER 32 // adjacent elements from which on columns are run along
#define FEW_ROWS 64    // so few are cut into parts
#define LEAST_PART 4096
#define MAX_PARTS 256 // as many as a workgroup has invocations
#define ACCUMULATOR_BYTES 8

struct cumulative_running {
    uint64_t outer, n, inner, parts, part;
    bool columns;
};

static struct cumulative_running cumulative_plan_describe(const tn_layout *x,
                                                          const tn_cumulative_attrs *attrs)
{
    struct cumulative_running r = {.outer = 1, .n = 1, .inner = 1, .parts = 1};
    int32_t axis = attrs->axis == TN_NO_AXIS ? -1 : tn_axis(attrs->axis, x->rank);
    for (int32_t i = 0; i < x->rank; i++)
        *(axis < 0 || i == axis ? &r.n
          : i < axis            ? &r.outer
                                : &r.inner) *= (uint64_t)x->extent[i];
    r.columns = r.inner >= LEAST_INNER;
    r.part = r.n;
    if (!r.columns && r.outer * r.inner < FEW_ROWS && r.n >= 2 * LEAST_PART) {
        r.part = ceil_div(r.n, MAX_PARTS);
        r.part = r.part < LEAST_PART ? LEAST_PART : r.part;
        r.parts = ceil_div(r.n, r.part);
    }
    return r;
}

static uint64_t cumulative_scratch(const tn_kernel_query *query)
{
    struct cumulative_running r = cumulative_plan_describe(&query->inputs[0], query->attrs);
    return r.parts > 1 ? r.outer * r.inner * r.parts * ACCUMULATOR_BYTES : 0;
}

static tn_status plan_pass(const tn_vulkan_plan *plan, const struct cumulative_running *r,
                           bool totals)
{
    const tn_step *step = plan->step;
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    const tn_cumulative_attrs *attrs = step->attrs;
    const char *op = step->kernel->primitive + strlen("base.");
    tn_vulkan_operand written = tn_vulkan_output(0), parts = written;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "%.*s_%s", (int)strcspn(op, "/"), op,
             dtype_glsl(x->layout.dtype));
    if (r->parts > 1) {
        parts = tn_vulkan_scratch(0, r->outer * r->inner * r->parts * ACCUMULATOR_BYTES,
                                  totals ? TN_VULKAN_WRITES : TN_VULKAN_READS);
    }
    struct kernel_launch launch = {.name = name};
    uint64_t rows = r->outer * r->inner;
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, totals ? parts : written); // bound, but not written
    kernel_bind(&launch, parts);
    kernel_push(&launch, r->outer);
    kernel_push(&launch, r->n);
    kernel_push(&launch, r->inner);
    kernel_push(&launch, r->parts);
    kernel_push(&launch, r->part);
    kernel_push(&launch, (uint64_t)x->layout.offset);
    kernel_push(&launch, (uint64_t)out->layout.offset);
    kernel_spec(&launch, r->columns);
    kernel_spec(&launch, totals);
    kernel_spec(&launch, attrs->reverse != 0);
    launch.groups = r->columns ? ceil_div(rows, 256) : rows * r->parts;
    return kernel_launch(plan, &launch);
}

static tn_status cumulative_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    if (layout_count(x) == 0)
        return TN_OK;
    struct cumulative_running r = cumulative_plan_describe(x, plan->step->attrs);
    tn_status status = r.parts > 1 ? plan_pass(plan, &r, true) : TN_OK;
    return status == TN_OK ? plan_pass(plan, &r, false) : status;
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(cumsum, "base.cumsum/1", cumulative_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = cumulative_scratch);
OWN_KERNEL(cumprod, "base.cumprod/1", cumulative_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = cumulative_scratch);
OWN_KERNEL(cummax, "base.cummax/1", cumulative_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = cumulative_scratch);
OWN_KERNEL(cummin, "base.cummin/1", cumulative_plan, KERNEL_OTHER, contiguous_rules,
           .scratch_size = cumulative_scratch);
