// SPDX-License-Identifier: MIT
// base.concatenate/1, base.slice_update/1, base.dynamic_slice/1 and
// base.dynamic_slice_update/1: copies between strided regions.
#include "kernels.h"

#include <stdio.h>

// An entry of a start that is an array: it moves one side of a copy along one axis.
struct entry {
    uint32_t number;       // of the entry
    uint32_t extent, most; // of the axis; of the part's first index
    int64_t stride;        // elements
};

// A copy between two strided regions of equal extents; offsets and strides in elements.
struct copying {
    uint32_t bytes; // of an element
    int32_t rank;
    uint64_t extent[TN_MAX_RANK];
    int64_t from_stride[TN_MAX_RANK], to_stride[TN_MAX_RANK];
    int64_t from_offset, to_offset;
    const tn_value *start; // NULL: none
    bool start_is_to;      // it moves the region that is written, else the one that is read
    uint32_t num_entries;
    struct entry entries[TN_MAX_RANK];
};

// Describes a copy without axes of one element, and with neighbours merged where both sides
// allow.
static struct copying describe(const tn_layout *from, const tn_layout *to)
{
    struct copying c = {.bytes = dtype_bytes(to->dtype),
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
static bool can_double(const struct copying *c, const tn_value *from, const tn_value *to)
{
    int32_t last = c->rank - 1;
    uint64_t odd = (uint64_t)c->from_offset | (uint64_t)c->to_offset;
    if (c->rank == 0 || c->from_stride[last] != 1 || c->to_stride[last] != 1 ||
        c->bytes == MAX_COPIED || from->offset % MAX_COPIED || to->offset % MAX_COPIED)
        return false;
    for (int32_t i = 0; i < last; i++)
        odd |= (uint64_t)c->from_stride[i] | (uint64_t)c->to_stride[i];
    for (uint32_t i = 0; i < c->num_entries; i++)
        odd |= (uint64_t)c->entries[i].stride;
    return ((odd | c->extent[last]) & 1) == 0;
}

// Doubles the elements' size as often as possible: wide elements copy faster.
static void widen(struct copying *c, const tn_value *from, const tn_value *to)
{
    while (can_double(c, from, to)) {
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

// The part of a launch that reads the start; its constants are the entries.
static tn_status add_start(struct vk_plan *plan, const struct copying *c,
                           struct vk_launch *launch)
{
    uint32_t words[4 * TN_MAX_RANK], at;
    const tn_layout *start = &c->start->layout;
    for (uint32_t i = 0; i < c->num_entries; i++) {
        const struct entry *e = &c->entries[i];
        const uint32_t row[] = {e->number, e->extent, e->most, (uint32_t)e->stride};
        memcpy(&words[4 * i], row, sizeof(row));
    }
    tn_status status = plan_constants(plan, words, 4 * c->num_entries, &at);
    launch_spec(launch, c->num_entries);
    launch_spec(launch, c->start_is_to);
    launch_bind(launch, plan_operand(c->start, VK_READS));
    launch_bind(launch, (struct vk_operand){.slot = VK_SLOT_CONSTANTS, .access = VK_READS});
    launch_push(launch, (uint64_t)start->offset);
    launch_push(launch, start->rank > 0 ? (uint64_t)start->stride[0] : 0);
    launch_push(launch, at / 4);
    return status;
}

static tn_status plan_copying(struct vk_plan *plan, struct copying *c, const tn_value *from,
                              const tn_value *to)
{
    char name[VARIANT_NAME];
    uint64_t n = 1;
    widen(c, from, to);
    for (int32_t i = 0; i < c->rank; i++)
        n *= c->extent[i];
    if (c->num_entries > 0)
        snprintf(name, sizeof(name), "copy_%u_%s", c->bytes,
                 dtype_glsl(c->start->layout.dtype));
    else
        snprintf(name, sizeof(name), "copy_%u", c->bytes);
    struct vk_launch launch = {.pipeline = {.name = name}, .groups = ceil_div(n, 256)};
    launch_spec(&launch, (uint32_t)c->rank);
    launch_bind(&launch, plan_operand(from, VK_READS));
    launch_bind(&launch, plan_operand(to, VK_WRITES));
    launch_push(&launch, n);
    launch_push(&launch, (uint64_t)c->from_offset);
    launch_push(&launch, (uint64_t)c->to_offset);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, i < c->rank ? c->extent[i] : 1);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, (uint64_t)c->from_stride[i]);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, (uint64_t)c->to_stride[i]);
    tn_status status = c->num_entries > 0 ? add_start(plan, c, &launch) : TN_OK;
    return status == TN_OK ? plan_launch(plan, &launch) : status;
}

tn_status vk_plan_copy(struct vk_plan *plan, const tn_value *from, const tn_value *to,
                       const tn_layout *region)
{
    if (layout_count(region) == 0)
        return TN_OK;
    struct copying c = describe(&from->layout, region);
    return plan_copying(plan, &c, from, to);
}

bool vk_is_in_place(const struct vk_plan *plan, const tn_step *step)
{
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    return plan_memory(plan, x->slot) == plan_memory(plan, out->slot) &&
           x->offset == out->offset && x->layout.offset == out->layout.offset;
}

tn_status vk_plan_concatenate(struct vk_plan *plan, const tn_step *step)
{
    const tn_concatenate_attrs *attrs = step->attrs;
    const tn_value *out = tn_step_output(step, 0);
    int32_t axis = tn_axis(attrs->axis, out->layout.rank);
    tn_layout region = out->layout;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < step->num_inputs && status == TN_OK; i++) {
        region.extent[axis] = tn_step_input(step, i)->layout.extent[axis];
        status = vk_plan_copy(plan, tn_step_input(step, i), out, &region);
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

tn_status vk_plan_slice_update(struct vk_plan *plan, const tn_step *step)
{
    const tn_slice_attrs *attrs = step->attrs;
    const tn_value *x = tn_step_input(step, 0), *update = tn_step_input(step, 1);
    const tn_value *out = tn_step_output(step, 0);
    tn_status status =
        vk_is_in_place(plan, step) ? TN_OK : vk_plan_copy(plan, x, out, &out->layout);
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
    return vk_plan_copy(plan, update, out, &region);
}

// --- parts that begin at an array -------------------------------------------------------

// Lists the entries of `start` that can move a part of `whole` with these extents: where
// the part fills its axis, it begins at 0.
static void set_start(struct copying *c, const tn_value *start, const tn_layout *whole,
                      const tn_layout *part)
{
    uint64_t count = layout_count(&start->layout);
    c->start = start;
    for (uint32_t i = 0; i < count && i < (uint32_t)part->rank; i++)
        if (part->extent[i] < whole->extent[i])
            c->entries[c->num_entries++] =
                (struct entry){.number = i,
                               .extent = (uint32_t)whole->extent[i],
                               .most = (uint32_t)(whole->extent[i] - part->extent[i]),
                               .stride = whole->stride[i]};
}

tn_status vk_plan_dynamic_slice(struct vk_plan *plan, const tn_step *step)
{
    const tn_value *x = tn_step_input(step, 0), *out = tn_step_output(step, 0);
    if (layout_count(&out->layout) == 0)
        return TN_OK;
    struct copying c = describe(&x->layout, &out->layout);
    set_start(&c, tn_step_input(step, 1), &x->layout, &out->layout);
    return plan_copying(plan, &c, x, out);
}

tn_status vk_plan_dynamic_slice_update(struct vk_plan *plan, const tn_step *step)
{
    const tn_value *x = tn_step_input(step, 0), *update = tn_step_input(step, 1);
    const tn_value *out = tn_step_output(step, 0);
    tn_status status =
        vk_is_in_place(plan, step) ? TN_OK : vk_plan_copy(plan, x, out, &out->layout);
    if (status != TN_OK || layout_count(&update->layout) == 0)
        return status;
    tn_layout region = out->layout;
    memcpy(region.extent, update->layout.extent, sizeof(region.extent));
    struct copying c = describe(&update->layout, &region);
    c.start_is_to = true;
    set_start(&c, tn_step_input(step, 2), &out->layout, &update->layout);
    return plan_copying(plan, &c, update, out);
}
