// SPDX-License-Identifier: MIT
// base.concatenate/1, base.slice_update/1, base.dynamic_slice/1 and
// base.dynamic_slice_update/1: copies between strided regions.
#include "plan_copy.h"

#include <stdio.h>
#include <tenon/ops/base_attrs.h>
#include "../record.h"

// An entry of a start that is an array: it moves one side of a copy along one axis.
struct copy_plan_entry {
    uint32_t number;       // of the entry
    uint32_t extent, most; // of the axis; of the part's first index
    int64_t stride;        // elements
};

// A copy between two strided regions of equal extents; offsets and strides in elements.
struct plan_copying {
    uint32_t bytes; // of an element
    int32_t rank;
    uint64_t extent[TN_MAX_RANK];
    int64_t from_stride[TN_MAX_RANK], to_stride[TN_MAX_RANK];
    int64_t from_offset, to_offset;
    tn_vulkan_operand from, to; // the memory: an input, and the output
    uint32_t start;             // the input that is the start, with entries
    bool is_single;             // elements are not moved in pairs
    bool start_is_to;           // the start moves the region to write, else the one to read
    uint32_t num_entries;
    struct copy_plan_entry entries[TN_MAX_RANK];
};

// Describes a copy of an input without axes of one element, and with adjacent axes merged
// where both sides allow.
static struct plan_copying copy_plan_describe(const tn_vulkan_plan *plan, uint32_t input,
                                              const tn_layout *to)
{
    const tn_layout *from = &tn_step_input(plan->step, input)->layout;
    struct plan_copying c = {.from = tn_vulkan_input(input),
                             .to = tn_vulkan_output(0),
                             .bytes = dtype_bytes(to->dtype),
                             .is_single =
                                 passes_program(tn_step_input(plan->step, input)) ||
                                 passes_program(tn_step_output(plan->step, 0)),
                             .from_offset = from->offset,
                             .to_offset = to->offset};
    for (int32_t axis = 0; axis < to->rank; axis++) {
        int64_t extent = to->extent[axis], last = c.rank - 1;
        if (extent == 1)
            continue;
        if (c.rank > 0 && c.from_stride[last] == from->stride[axis] * extent &&
            c.to_stride[last] == to->stride[axis] * extent)
            c.extent[last] *= (uint64_t)extent;
        else
            c.extent[last = c.rank++] = (uint64_t)extent;
        c.from_stride[last] = from->stride[axis];
        c.to_stride[last] = to->stride[axis];
    }
    return c;
}

// Whether two adjacent elements can be copied as one, everywhere.
static bool can_double(const struct plan_copying *c)
{
    int32_t last = c->rank - 1;
    uint64_t odd = (uint64_t)c->from_offset | (uint64_t)c->to_offset;
    if (c->rank == 0 || c->from_stride[last] != 1 || c->to_stride[last] != 1 ||
        c->bytes == MAX_COPIED || c->is_single)
        return false;
    for (int32_t i = 0; i < last; i++)
        odd |= (uint64_t)c->from_stride[i] | (uint64_t)c->to_stride[i];
    for (uint32_t i = 0; i < c->num_entries; i++)
        odd |= (uint64_t)c->entries[i].stride;
    return ((odd | c->extent[last]) & 1) == 0;
}

// Doubles the elements' size as often as possible: wide elements copy faster.
static void copy_plan_widen(struct plan_copying *c)
{
    while (can_double(c)) {
        c->bytes *= 2;
        c->from_offset /= 2;
        c->to_offset /= 2;
        c->extent[c->rank - 1] /= 2;
        for (int32_t i = 0; i < c->rank - 1; i++) {
            c->from_stride[i] /= 2;
            c->to_stride[i] /= 2;
        }
        for (uint32_t i = 0; i < c->num_entries; i++)
            c->entries[i].stride /= 2;
    }
}

// The part of a launch that reads the start; its data are the entries, in `words`.
static void add_start(const tn_vulkan_plan *plan, const struct plan_copying *c,
                      uint32_t words[4 * TN_MAX_RANK], struct kernel_launch *launch)
{
    const tn_layout *start = &tn_step_input(plan->step, c->start)->layout;
    for (uint32_t i = 0; i < c->num_entries; i++) {
        const struct copy_plan_entry *e = &c->entries[i];
        const uint32_t row[] = {e->number, e->extent, e->most, (uint32_t)e->stride};
        memcpy(&words[4 * i], row, sizeof(row));
    }
    kernel_spec(launch, c->num_entries);
    kernel_spec(launch, c->start_is_to);
    kernel_bind(launch, tn_vulkan_input(c->start));
    kernel_bind(launch, tn_vulkan_data(words, c->num_entries * 4 * sizeof(words[0])));
    kernel_push(launch, (uint64_t)start->offset);
    kernel_push(launch, start->rank > 0 ? (uint64_t)start->stride[0] : 0);
}

static tn_status plan_copying(const tn_vulkan_plan *plan, struct plan_copying *c)
{
    char name[VARIANT_NAME];
    uint32_t words[4 * TN_MAX_RANK];
    uint64_t n = 1;
    copy_plan_widen(c);
    for (int32_t i = 0; i < c->rank; i++)
        n *= c->extent[i];
    if (c->num_entries > 0)
        snprintf(name, sizeof(name), "copy_%u_%s", c->bytes,
                 dtype_glsl(tn_step_input(plan->step, c->start)->layout.dtype));
    else
        snprintf(name, sizeof(name), "copy_%u", c->bytes);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, 256)};
    kernel_spec(&launch, (uint32_t)c->rank);
    kernel_bind(&launch, c->from);
    kernel_bind(&launch, c->to);
    kernel_push(&launch, n);
    kernel_push(&launch, (uint64_t)c->from_offset);
    kernel_push(&launch, (uint64_t)c->to_offset);
    for (int32_t i = 1; i < TN_MAX_RANK; i++)
        kernel_push(&launch, i < c->rank ? c->extent[i] : 1);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        kernel_push(&launch, (uint64_t)c->from_stride[i]);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        kernel_push(&launch, (uint64_t)c->to_stride[i]);
    for (int32_t i = c->rank - 1; i > c->rank - 3; i--)
        kernel_push_divisor(&launch, i >= 0 ? c->extent[i] : 1);
    if (c->num_entries > 0)
        add_start(plan, c, words, &launch);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_copy(const tn_vulkan_plan *plan, uint32_t from, const tn_layout *region)
{
    if (layout_count(region) == 0)
        return TN_OK;
    struct plan_copying c = copy_plan_describe(plan, from, region);
    return plan_copying(plan, &c);
}

static tn_status concatenate_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_concatenate_attrs *attrs = step->attrs;
    const tn_value *out = tn_step_output(step, 0);
    int32_t axis = tn_axis(attrs->axis, out->layout.rank);
    tn_layout region = out->layout;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < step->num_inputs && status == TN_OK; i++) {
        region.extent[axis] = tn_step_input(step, i)->layout.extent[axis];
        status = vk_plan_copy(plan, i, &region);
        region.offset += region.extent[axis] * region.stride[axis];
    }
    return status;
}

// The first index of the slice start:stop:step of an axis, by Python's rules.
static int64_t slice_start(const tn_ints *start, uint32_t axis, int64_t extent,
                           int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    if (axis >= start->count || start->value[axis] == TN_SLICE_END)
        return step > 0 ? 0 : extent - 1;
    int64_t at = start->value[axis] + (start->value[axis] < 0 ? extent : 0);
    return at < low ? low : at > high ? high : at;
}

static tn_status slice_update_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_slice_attrs *attrs = step->attrs;
    const tn_value *update = tn_step_input(step, 1), *out = tn_step_output(step, 0);
    tn_status status =
        plan->shares(plan, 0, 0) ? TN_OK : vk_plan_copy(plan, 0, &out->layout);
    if (status != TN_OK)
        return status;
    tn_layout region = out->layout;
    for (int32_t axis = 0; axis < region.rank; axis++) {
        uint32_t i = (uint32_t)axis;
        int64_t by = i < attrs->step.count && attrs->step.value[i] != TN_SLICE_END
                         ? attrs->step.value[i]
                         : 1;
        region.offset +=
            slice_start(&attrs->start, i, region.extent[axis], by) * region.stride[axis];
        region.stride[axis] *= by;
        region.extent[axis] = update->layout.extent[axis];
    }
    return vk_plan_copy(plan, 1, &region);
}

// --- parts that begin at an array -------------------------------------------------------

// Lists the entries of `start` that can move a part of `whole` with these extents: where
// the part fills its axis, it begins at 0.
static void set_start(const tn_vulkan_plan *plan, struct plan_copying *c, uint32_t start,
                      const tn_layout *whole, const tn_layout *part)
{
    uint64_t count = layout_count(&tn_step_input(plan->step, start)->layout);
    c->start = start;
    for (uint32_t i = 0; i < count && i < (uint32_t)part->rank; i++)
        if (part->extent[i] < whole->extent[i])
            c->entries[c->num_entries++] = (struct copy_plan_entry){
                .number = i,
                .extent = (uint32_t)whole->extent[i],
                .most = (uint32_t)(whole->extent[i] - part->extent[i]),
                .stride = whole->stride[i]};
}

static tn_status dynamic_slice_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    if (layout_count(&out->layout) == 0)
        return TN_OK;
    struct plan_copying c = copy_plan_describe(plan, 0, &out->layout);
    set_start(plan, &c, 1, &x->layout, &out->layout);
    return plan_copying(plan, &c);
}

static tn_status dynamic_slice_update_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_value *update = tn_step_input(step, 1), *out = tn_step_output(step, 0);
    tn_status status =
        plan->shares(plan, 0, 0) ? TN_OK : vk_plan_copy(plan, 0, &out->layout);
    if (status != TN_OK || layout_count(&update->layout) == 0)
        return status;
    tn_layout region = out->layout;
    memcpy(region.extent, update->layout.extent, sizeof(region.extent));
    struct plan_copying c = copy_plan_describe(plan, 1, &region);
    c.start_is_to = true;
    set_start(plan, &c, 2, &out->layout, &update->layout);
    return plan_copying(plan, &c);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule joined_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
// Elements that are only moved, by their size, may be of any dtype.
static const tn_operand_rule moved_rules[] = {{TN_ALL_DTYPES, TN_NEEDS_ANY}};
static const tn_operand_rule dynamic_slice_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule dynamic_update_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY}};
OWN_KERNEL(concatenate, "base.concatenate/1", concatenate_plan, KERNEL_OTHER, joined_rules);
OWN_KERNEL(slice_update, "base.slice_update/1", slice_update_plan, KERNEL_OTHER,
           moved_rules);
OWN_KERNEL(dynamic_slice, "base.dynamic_slice/1", dynamic_slice_plan, KERNEL_OTHER,
           dynamic_slice_rules);
OWN_KERNEL(dynamic_slice_update, "base.dynamic_slice_update/1", dynamic_slice_update_plan,
           KERNEL_UPDATE, dynamic_update_rules);
