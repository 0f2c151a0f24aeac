// SPDX-License-Identifier: MIT
// base.pad_constant/1 of several axes in one pass (pad.comp): by its definition each axis
// is a pass over the whole result.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/base_attrs.h>
#include "plan_copy.h"

#define GROUP 256
#define AT_ONCE 4 // as in pad.comp
#define MOST_RANK 4
#define LEAST 65536 // elements: less is a program's

// x and the border, in elements of `bytes`; axes without a border are merged with the axis
// before.
struct bordered {
    int32_t rank, padded; // axes; of them with a border
    uint64_t size[TN_MAX_RANK], before[TN_MAX_RANK], extent[TN_MAX_RANK];
    uint64_t in_offset, out_offset;
    uint32_t bytes;
};

static struct bordered pad_plan_describe(const tn_layout *x, const tn_layout *out,
                                         const tn_pad_attrs *attrs)
{
    struct bordered b = {.in_offset = (uint64_t)x->offset,
                         .out_offset = (uint64_t)out->offset,
                         .bytes = dtype_bytes(x->dtype)};
    for (int32_t axis = 0; axis < x->rank; axis++) {
        uint64_t size = (uint64_t)x->extent[axis], extent = (uint64_t)out->extent[axis];
        int32_t last = b.rank - 1;
        if (b.rank > 0 && size == extent) {
            b.size[last] *= size;
            b.before[last] *= size;
            b.extent[last] *= size;
            continue;
        }
        b.size[b.rank] = size;
        b.before[b.rank] = (uint64_t)attrs->before.value[axis];
        b.extent[b.rank++] = extent;
        b.padded += size != extent;
    }
    return b;
}

// Doubles the elements' size as often as the last axis and the offsets allow.
static void pad_plan_widen(struct bordered *b)
{
    int32_t last = b->rank - 1;
    while (b->bytes < MAX_COPIED && ((b->size[last] | b->before[last] | b->extent[last] |
                                      b->in_offset | b->out_offset) &
                                     1) == 0) {
        b->bytes *= 2;
        b->size[last] /= 2;
        b->before[last] /= 2;
        b->extent[last] /= 2;
        b->in_offset /= 2;
        b->out_offset /= 2;
    }
}

static int32_t pad_constant_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *out = &query->outputs[0];
    struct bordered b = pad_plan_describe(x, out, query->attrs);
    uint64_t n = layout_count(out);
    return b.padded > 1 && b.rank <= MOST_RANK && n >= LEAST && n <= INT32_MAX &&
           layout_count(x) > 0;
}

static tn_status pad_constant_plan(const tn_vulkan_plan *plan)
{
    const tn_value *x = tn_step_input(plan->step, 0), *out = tn_step_output(plan->step, 0);
    const tn_pad_attrs *attrs = plan->step->attrs;
    struct bordered b = pad_plan_describe(&x->layout, &out->layout, attrs);
    if (!passes_program(x) && !passes_program(out))
        pad_plan_widen(&b);
    uint64_t n = 1;
    uint32_t fill[4];
    char name[VARIANT_NAME];
    for (int32_t i = 0; i < b.rank; i++)
        n *= b.extent[i];
    kernel_fill(x->layout.dtype, attrs->value, fill);
    snprintf(name, sizeof(name), "pad_%u", b.bytes);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, GROUP * AT_ONCE)};
    kernel_spec(&launch, (uint32_t)b.rank);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, n);
    kernel_push(&launch, b.in_offset);
    kernel_push(&launch, b.out_offset);
    for (int32_t i = 1; i < MOST_RANK; i++)
        kernel_push(&launch, i < b.rank ? b.extent[i] : 1);
    for (int32_t i = 0; i < MOST_RANK; i++)
        kernel_push(&launch, i < b.rank ? b.size[i] : 1);
    for (int32_t i = 0; i < MOST_RANK; i++)
        kernel_push(&launch, b.before[i]);
    for (int32_t i = b.rank - 1; i > b.rank - 3; i--)
        kernel_push_divisor(&launch, b.extent[i]);
    for (int32_t i = 0; i < 4; i++)
        kernel_push_value(&launch, fill[i]);
    return kernel_launch(plan, &launch);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule pad_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL(pad_constant, "base.pad_constant/1", pad_constant_plan, KERNEL_OTHER, pad_rules,
           .accepts = pad_constant_accepts);
