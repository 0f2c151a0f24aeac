// SPDX-License-Identifier: MIT
// Copies that permute axes, in tiles, so that neither reads nor writes are scattered.
#include "plan_transpose.h"

#include <stdio.h>
#include "vulkan/launch.h"
#include "../pipeline/module.h"

#define MAX_OTHER 6   // axes besides the two that the tiles lie in
#define MIN_EXTENT 32 // least extent of both axes of the tiles
#define MAX_AXES (MAX_OTHER + 2)

// The axes of a copy, without those of extent 1, and with adjacent ones merged.
struct transposition {
    uint32_t num_axes;
    uint64_t extent[TN_MAX_RANK], from[TN_MAX_RANK], to[TN_MAX_RANK]; // strides
    uint32_t fast; // the axis on which the source has stride 1
};

static bool is_plain_copy(const tn_step *step)
{
    const tn_expr_program *program = step->program;
    return program && program->num_insns == 1 && program->num_inputs == 1 &&
           program->num_outputs == 1 && program->insns[0].op == TN_EXPR_LOAD &&
           program->input_dtypes[0] == program->output_dtypes[0];
}

static void transpose_plan_collect_axes(const tn_layout *from, const tn_layout *to,
                                        struct transposition *out)
{
    for (int32_t axis = 0; axis < to->rank; axis++) {
        uint64_t extent = (uint64_t)to->extent[axis];
        uint64_t a = (uint64_t)from->stride[axis], b = (uint64_t)to->stride[axis];
        uint32_t last = out->num_axes > 0 ? out->num_axes - 1 : 0;
        if (extent == 1)
            continue;
        if (out->num_axes > 0 && out->from[last] == a * extent &&
            out->to[last] == b * extent) {
            out->extent[last] *= extent;
            out->from[last] = a;
            out->to[last] = b;
            continue;
        }
        out->extent[out->num_axes] = extent;
        out->from[out->num_axes] = a;
        out->to[out->num_axes++] = b;
    }
}

// Whether the copy has stride 1 on its last axis, the source on another, and both axes are
// long enough for tiles.
static bool find_transposition(const tn_layout *from, const tn_layout *to,
                               struct transposition *out)
{
    *out = (struct transposition){0};
    transpose_plan_collect_axes(from, to, out);
    if (out->num_axes < 2 || out->num_axes > MAX_AXES)
        return false;
    uint32_t last = out->num_axes - 1;
    if (out->to[last] != 1 || out->from[last] < 2 || out->extent[last] < MIN_EXTENT)
        return false;
    for (uint32_t axis = 0; axis < last; axis++)
        if (out->from[axis] == 1 && out->extent[axis] >= MIN_EXTENT) {
            out->fast = axis;
            return true;
        }
    return false;
}

bool plan_is_transpose(const tn_step *step)
{
    struct transposition transposition;
    return is_plain_copy(step) &&
           find_transposition(&tn_step_input(step, 0)->layout,
                              &tn_step_output(step, 0)->layout, &transposition);
}

static void push_other_axes(struct vk_launch *launch,
                            const struct transposition *transposition)
{
    const uint64_t *const lists[] = {transposition->extent, transposition->from,
                                     transposition->to};
    for (int list = 0; list < 3; list++) {
        uint32_t count = 0;
        for (uint32_t axis = 0; axis + 1 < transposition->num_axes; axis++)
            if (axis != transposition->fast) {
                launch_push(launch, lists[list][axis]);
                count++;
            }
        for (; count < MAX_OTHER; count++)
            launch_push(launch, 0);
    }
}

tn_status plan_transpose(struct vk_plan *plan, const tn_step *step)
{
    const tn_layout *from = &tn_step_input(step, 0)->layout,
                    *to = &tn_step_output(step, 0)->layout;
    struct transposition transposition;
    find_transposition(from, to, &transposition);
    uint32_t last = transposition.num_axes - 1, bytes = dtype_bytes(to->dtype);
    uint64_t tile = bytes >= 8 ? 32 : 64;
    uint64_t tiles = ceil_div(transposition.extent[last], tile) *
                     ceil_div(transposition.extent[transposition.fast], tile);
    for (uint32_t axis = 0; axis < last; axis++)
        tiles *= axis == transposition.fast ? 1 : transposition.extent[axis];
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "transpose_%u", bytes);
    struct vk_launch launch = {.groups = tiles};
    if (!module_find_own(plan->device, name, &launch.pipeline))
        return plan->device->host->fail(plan->device->host, TN_ERR_INTERNAL,
                                        "no module named %s", name);
    launch_spec(&launch, transposition.num_axes - 2);
    launch_bind(&launch, plan_operand(tn_step_input(step, 0), VK_READS));
    launch_bind(&launch, plan_operand(tn_step_output(step, 0), VK_WRITES));
    const uint64_t words[] = {tiles,
                              transposition.extent[transposition.fast],
                              transposition.extent[last],
                              transposition.from[last],
                              transposition.to[transposition.fast],
                              (uint64_t)from->offset,
                              (uint64_t)to->offset};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        launch_push(&launch, words[i]);
    push_other_axes(&launch, &transposition);
    return plan_launch(plan, &launch);
}
