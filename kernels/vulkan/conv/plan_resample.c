// SPDX-License-Identifier: MIT
// nn.resample2d/1 and its transpose by resample.comp, which gets taps as a table, since
// positions between elements are numbers of f64.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/resample.h>

#define MOST_RESULTS 4096 // rows and columns whose taps are in the table
#define WORDS 3           // of a result

static tn_resample_axis resample_axis(const tn_resample2d_attrs *attrs, int i, int64_t in,
                                      int64_t out)
{
    double step = i ? attrs->column_step : attrs->row_step;
    tn_resample_axis a = {in, out, step, attrs->mode, attrs->align_corners};
    if (step == 0)
        a.step = (double)in / (double)out;
    return a;
}

// The first tap may lie before the axis: the shader clamps its position.
static void write_taps(const tn_resample_axis *a, uint32_t *words)
{
    for (int64_t i = 0; i < a->out; i++, words += WORDS) {
        int64_t count = tn_resample_taps(a, i);
        double at = tn_resample_at(a, i), low = tn_resample_floor(at);
        float between = (float)(at - low);
        int32_t first = (int32_t)tn_resample_index(a, i, 0);
        if (count > 1 && a->mode != TN_RESAMPLE_PARTS)
            first = (int32_t)(low < (double)a->in ? low : (double)a->in) - (count == 4);
        words[0] = (uint32_t)first;
        words[1] = (uint32_t)count;
        memcpy(&words[2], &between, sizeof(between));
    }
}

static tn_status plan_resample(const tn_vulkan_plan *plan, bool is_input)
{
    const tn_step *step = plan->step;
    const tn_resample2d_attrs *attrs = step->attrs;
    const tn_layout *from = &tn_step_input(step, 0)->layout,
                    *out = &tn_step_output(step, 0)->layout;
    const tn_layout *images = is_input ? out : from, *results = is_input ? from : out;
    uint32_t words[WORDS * MOST_RESULTS];
    uint64_t count = 0, n = layout_count(out);
    for (int i = 0; i < 2; i++) {
        const tn_resample_axis a =
            resample_axis(attrs, i, images->extent[i + 1], results->extent[i + 1]);
        write_taps(&a, words + WORDS * count);
        count += (uint64_t)a.out;
    }
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "resample_%s%s", is_input ? "share_" : "",
             dtype_glsl(from->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, 256)};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_data(words, count * WORDS * sizeof(words[0])));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, n);
    kernel_push(&launch, (uint64_t)from->offset);
    kernel_push(&launch, (uint64_t)out->offset);
    kernel_push(&launch, (uint64_t)from->extent[3]);
    for (int axis = 1; axis < 3; axis++)
        kernel_push(&launch, (uint64_t)from->extent[axis]);
    for (int axis = 1; axis < 3; axis++)
        kernel_push(&launch, (uint64_t)out->extent[axis]);
    kernel_push(&launch, attrs->mode == TN_RESAMPLE_PARTS);
    return kernel_launch(plan, &launch);
}

static tn_status resample2d_plan(const tn_vulkan_plan *plan)
{
    return plan_resample(plan, false);
}

static tn_status resample2d_input_plan(const tn_vulkan_plan *plan)
{
    return plan_resample(plan, true);
}

// --- records ---------------------------------------------------------------------------

// Whether the table has room for rows and columns of `results`, and the shader's integers
// for the elements of both.
static int32_t fits_table(const tn_layout *images, const tn_layout *results)
{
    return results->extent[1] <= MOST_RESULTS && results->extent[2] <= MOST_RESULTS &&
           results->extent[1] + results->extent[2] <= MOST_RESULTS &&
           layout_count(images) <= INT32_MAX && layout_count(results) <= INT32_MAX;
}

static int32_t resample2d_accepts(const tn_kernel_query *query)
{
    return fits_table(&query->inputs[0], &query->outputs[0]);
}

static int32_t resample2d_input_accepts(const tn_kernel_query *query)
{
    return fits_table(&query->outputs[0], &query->inputs[0]);
}

static const tn_operand_rule resample_rules[] = {{HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(resample2d, "nn.resample2d/1", resample2d_plan, KERNEL_OTHER, resample_rules,
           .accepts = resample2d_accepts);
OWN_KERNEL(resample2d_input, "nn.resample2d_input/1", resample2d_input_plan, KERNEL_OTHER,
           resample_rules, .accepts = resample2d_input_accepts);
