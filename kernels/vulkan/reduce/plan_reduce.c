// SPDX-License-Identifier: MIT
// Reductions over any axes: in one dispatch, or in two if there are too few outputs to fill
// the device.
#include "plan_reduce.h"

#include <stdio.h>
#include <tenon/ops/base_attrs.h>
#include "../record.h"

// Invocations that fill a device, and the least elements of a split when an output's
// elements are split: for an invocation, and for a workgroup.
#define ENOUGH_INVOCATIONS 131072
#define MIN_CHUNK 64
#define MIN_WIDE_CHUNK 4096
#define MAX_SPLITS 512

// Appends the axes in `set`, with adjacent ones merged, from index `first` on. Returns
// their number.
static uint32_t reduce_plan_collect_axes(const tn_layout *x, uint32_t set, uint32_t first,
                                         struct reduction *out)
{
    uint32_t count = 0;
    for (int32_t axis = 0; axis < x->rank; axis++) {
        if (!(set >> axis & 1) || x->extent[axis] == 1)
            continue;
        uint32_t extent = (uint32_t)x->extent[axis], stride = (uint32_t)x->stride[axis];
        uint32_t last = count > 0 ? first + count - 1 : first;
        if (count > 0 && out->stride[last] == stride * extent) {
            out->extent[last] *= extent;
            out->stride[last] = stride;
            continue;
        }
        out->extent[first + count] = extent;
        out->stride[first + count] = stride;
        count++;
    }
    return count;
}

// Rows are shared by about as many invocations as each has elements then, so that loads of
// adjacent ones lie side by side and few sums are left to add (sums over the last axis
// on an H200, with a workgroup for each row before: 65536x128 98 us, now 21; 65536x2048
// 198, 138), and by more where there are too few rows to fill the device. A processor that
// emulates a device has nothing to win from sharing.
#define SHARED_ROW 16
static uint32_t reduce_plan_choose_lanes(uint64_t outputs, uint64_t terms, bool is_software)
{
    uint32_t lanes = 1;
    while (!is_software && terms >= SHARED_ROW && lanes < REDUCE_GROUP &&
           terms >= 4 * (uint64_t)lanes * lanes)
        lanes *= 2;
    while (lanes > 1 && lanes < REDUCE_GROUP && lanes * 2 <= terms &&
           outputs * lanes < ENOUGH_INVOCATIONS)
        lanes *= 2;
    return lanes;
}

static void choose_shape(struct reduction *r, bool is_software)
{
    uint32_t kept = r->num_kept_axes, all = kept + r->num_reduced_axes;
    bool columns = kept > 0 && r->stride[kept - 1] == 1 && r->num_outputs >= 32;
    r->lanes = columns || all == kept
                   ? 1
                   : reduce_plan_choose_lanes(r->num_outputs, r->num_reduced, is_software);
    uint64_t invocations = r->num_outputs * r->lanes;
    uint64_t wanted = ENOUGH_INVOCATIONS / (invocations ? invocations : 1);
    uint64_t most =
        r->num_reduced / (r->lanes == REDUCE_GROUP ? MIN_WIDE_CHUNK : MIN_CHUNK);
    uint64_t splits = wanted < most ? wanted : most;
    splits = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    if (splits < 2) {
        r->splits = 1;
        return;
    }
    // Cut like the kernel does, so that no split is empty.
    r->splits = (uint32_t)ceil_div(r->num_reduced, ceil_div(r->num_reduced, splits));
}

struct reduction reduction_describe(const tn_layout *x, uint32_t reduced, bool is_software)
{
    struct reduction r = {.num_outputs = 1, .num_reduced = 1};
    for (int32_t axis = 0; axis < x->rank; axis++) {
        bool is_reduced = reduced >> axis & 1;
        r.num_outputs *= is_reduced ? 1 : (uint64_t)x->extent[axis];
        r.num_reduced *= is_reduced ? (uint64_t)x->extent[axis] : 1;
    }
    r.num_kept_axes = reduce_plan_collect_axes(x, ~reduced, 0, &r);
    r.num_reduced_axes = reduce_plan_collect_axes(x, reduced, r.num_kept_axes, &r);
    choose_shape(&r, is_software);
    return r;
}

static uint32_t reduce_plan_reduced_axes(const char *primitive, const void *attrs,
                                         int32_t rank)
{
    if (strcmp(primitive, "base.argmax/1") != 0)
        return tn_axis_set(&((const tn_reduce_attrs *)attrs)->axis, rank);
    int64_t axis = ((const tn_argmax_attrs *)attrs)->axis;
    return axis == TN_NO_AXIS ? (UINT32_C(1) << rank) - 1
                              : UINT32_C(1) << tn_axis(axis, rank);
}

uint32_t reduction_axes(const tn_step *step)
{
    return reduce_plan_reduced_axes(step->kernel->primitive, step->attrs,
                                    tn_step_input(step, 0)->layout.rank);
}

const char *reduction_name(const tn_step *step, uint32_t *length)
{
    const char *name = step->kernel->primitive + strlen("base.");
    *length = (uint32_t)strcspn(name, "/");
    return name;
}

uint32_t reduction_second_lanes(const struct reduction *first)
{
    return first->splits >= 64 && first->num_outputs < 4096 ? REDUCE_GROUP : 1;
}

// Most bytes of a partial result: two numbers of 8 bytes.
#define ACCUMULATOR_BYTES 16

uint64_t reduction_splits_bytes(const struct reduction *r)
{
    return r->num_outputs * r->splits * ACCUMULATOR_BYTES;
}

// An upper bound, for the largest number of splits: the query does not say which primitive
// asks, so its attributes cannot be read.
static uint64_t reduce_scratch(const tn_kernel_query *query)
{
    uint64_t outputs = layout_count(&query->outputs[0]);
    uint64_t elements = layout_count(&query->inputs[0]);
    if (outputs == 0 || elements / outputs < 2 * MIN_CHUNK)
        return 0;
    uint64_t most = ENOUGH_INVOCATIONS / outputs;
    uint64_t splits = elements / outputs / MIN_CHUNK;
    splits = splits < most ? splits : most;
    splits = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    return splits < 2 ? 0 : splits * outputs * ACCUMULATOR_BYTES;
}

static void push_reduction(struct kernel_launch *launch, const struct reduction *r,
                           int64_t in_offset, int64_t out_offset)
{
    kernel_push(launch, r->num_outputs);
    kernel_push(launch, r->num_reduced);
    kernel_push(launch, r->splits);
    kernel_push(launch, (uint64_t)in_offset);
    kernel_push(launch, (uint64_t)out_offset);
    for (int i = 0; i < TN_MAX_RANK; i++)
        kernel_push(launch, r->extent[i]);
    for (int i = 0; i < TN_MAX_RANK; i++)
        kernel_push(launch, r->stride[i]);
}

static void reduce_plan_set_shape(struct kernel_launch *launch, const struct reduction *r,
                                  bool to_partial, bool from_partial)
{
    kernel_spec(launch, r->num_kept_axes);
    kernel_spec(launch, r->num_reduced_axes);
    kernel_spec(launch, r->lanes);
    kernel_spec(launch, to_partial);
    kernel_spec(launch, from_partial);
    uint64_t units = r->num_outputs * r->splits;
    launch->groups = ceil_div(units, REDUCE_GROUP / r->lanes);
}

// The second dispatch: reduces the partial results of `first` to the outputs.
static tn_status plan_second(const tn_vulkan_plan *plan, const char *name,
                             const struct reduction *first, tn_vulkan_operand partial)
{
    struct reduction second = {.num_outputs = first->num_outputs,
                               .num_reduced = first->splits,
                               .splits = 1,
                               .lanes = reduction_second_lanes(first)};
    second.extent[0] = (uint32_t)first->num_reduced; // the divisor of a mean
    struct kernel_launch launch = {.name = name};
    partial.access = TN_VULKAN_READS;
    kernel_bind(&launch, partial);
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, partial);
    push_reduction(&launch, &second, 0, tn_step_output(plan->step, 0)->layout.offset);
    reduce_plan_set_shape(&launch, &second, false, true);
    return kernel_launch(plan, &launch);
}

// Rows of adjacent elements are computed by a row program, which reads them once (an H200
// 65536x2048: 274 us, 618 by this kernel); short rows and few long ones are not (64x262144:
// 186 us, 88), nor is a reduction that is fused.
#define LEAST_ROW 32
static int32_t logsumexp_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    int32_t last = x->rank - 1;
    uint32_t reduced = reduce_plan_reduced_axes("base.logsumexp/1", query->attrs, x->rank);
    if (query->fused || last < 0 || reduced != UINT32_C(1) << last || x->stride[last] != 1)
        return true;
    uint64_t rows = layout_count(&query->outputs[0]), terms = (uint64_t)x->extent[last];
    return terms < LEAST_ROW || (rows < 2 * REDUCE_FEW_ROWS && terms >= REDUCE_LONG_ROW);
}

static tn_status reduce_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_input(step, 0)->layout;
    struct reduction r = reduction_describe(x, reduction_axes(step),
                                            plan->limits->features & TN_VULKAN_IS_SOFTWARE);
    if (r.num_outputs == 0)
        return TN_OK;
    char name[VARIANT_NAME];
    uint32_t length;
    const char *op = reduction_name(step, &length);
    snprintf(name, sizeof(name), "reduce_%.*s_%s", (int)length, op, dtype_glsl(x->dtype));
    bool is_split = r.splits > 1;
    // The result or its splits are written; the shader does not access the other.
    tn_vulkan_operand out = tn_vulkan_output(0), splits = tn_vulkan_data(&r, 4);
    if (is_split)
        out = splits = tn_vulkan_scratch(0, reduction_splits_bytes(&r), TN_VULKAN_WRITES);
    else if (!passes_program(tn_step_output(step, 0)))
        splits = out;
    struct kernel_launch launch = {.name = name};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, out);
    kernel_bind(&launch, splits);
    push_reduction(&launch, &r, x->offset, tn_step_output(step, 0)->layout.offset);
    reduce_plan_set_shape(&launch, &r, is_split, false);
    tn_status status = kernel_launch(plan, &launch);
    return status == TN_OK && is_split ? plan_second(plan, name, &r, splits) : status;
}

tn_status vk_plan_sum_splits(const tn_vulkan_plan *plan, uint64_t n, uint32_t count)
{
    char name[VARIANT_NAME];
    tn_dtype dtype = tn_step_output(plan->step, 0)->layout.dtype;
    snprintf(name, sizeof(name), "reduce_sum_%s", dtype_glsl(dtype));
    struct reduction splits = {.num_outputs = n, .num_reduced = n, .splits = count};
    uint64_t bytes = dtype == TN_F64 ? 8 : 4;
    return plan_second(plan, name, &splits,
                       tn_vulkan_scratch(0, n * count * bytes, TN_VULKAN_READS));
}

// --- records ---------------------------------------------------------------------------

// With TN_OPERAND_FUSES: inputs of which each element is read about once, and outputs that
// are written by the kernel's last launch, once.
static const tn_operand_rule passing_rules[] = {{0, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
OWN_KERNEL(argmax, "base.argmax/1", reduce_plan, KERNEL_REDUCTION, passing_rules,
           .scratch_size = reduce_scratch);

// A reduction for each row of TN_REDUCTIONS, by the dtypes that the table says. Of complex
// numbers only those exist that need no order: the others' types refuse them.
#define REDUCTION(name, dtypes, ...)                                                       \
    static const tn_operand_rule name##_rules[] = {                                        \
        {dtypes, TN_NEEDS_ANY, TN_OPERAND_FUSES}};                                         \
    OWN_KERNEL(name, "base." #name "/1", reduce_plan, KERNEL_REDUCTION, name##_rules,      \
               .scratch_size = reduce_scratch, __VA_ARGS__);
#define REDUCTION_OF_ALL(name)                                                             \
    REDUCTION(name, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, .accepts = NULL)
#define REDUCTION_OF_FLOAT(name) REDUCTION(name, TN_FLOAT_DTYPES, .accepts = name##_accepts)
#define REDUCTION_RECORD(name, dtypes) REDUCTION_OF_##dtypes(name)
TN_REDUCTIONS(REDUCTION_RECORD)
#undef REDUCTION_RECORD
#undef REDUCTION_OF_FLOAT
#undef REDUCTION_OF_ALL
#undef REDUCTION
