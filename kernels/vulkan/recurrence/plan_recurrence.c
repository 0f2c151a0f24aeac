// SPDX-License-Identifier: MIT
// nn.recurrence_steps/1 and nn.recurrence_grad/1 by recurrence.comp.
//
// A position waits for the one before. A launch of its own costs it 2.4 us on an H200, so
// that few units, whose weights one workgroup reads from its cache, have one launch for all
// positions, of workgroups with rows of their own; more units are dealt to workgroups, and
// each position is a launch. There an LSTM of 128 units takes 332 us for 28 positions of 64
// rows in one launch, 216 in 28, and an RNN of 128 units 127 and 138; an LSTM of 64 units
// 524 us for 128 positions of 256 rows, and 838.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/nn_attrs.h>

#define MOST_ALONE 128      // units that a workgroup has alone, of one gate
#define MOST_GATED 64       // of several
#define UNITS 16            // of a workgroup, else
#define GROUP 256           // invocations, about
#define FEW_ROWS 4          // of a workgroup
#define MANY_ROWS 16        // of one of many
#define MANY_GROUPS 128     // from so many on a workgroup has more rows
#define TILE 64             // of move/transpose.comp
#define MOST_POSITIONS 4096 // launches of a step

// Flags of recurrence.comp.
enum { BEGINS = 1, ENDS = 2, KEEPS = 4, HAS_BIAS = 8 };

struct recurrence_plan {
    const tn_vulkan_plan *plan;
    const tn_recurrence_attrs *attrs;
    uint64_t gates, length, rows, units;
    bool is_alone; // a workgroup has all units
    uint32_t tile_units, parts, tile_rows, depth;
};

static uint64_t gates_of_kind(int64_t kind)
{
    return kind == TN_RECURRENCE_LSTM ? 4 : kind == TN_RECURRENCE_GRU ? 3 : 1;
}

// Tiles: units side by side, of all gates, and parts of sums for the rest of a workgroup.
static struct recurrence_plan recurrence_tiles(const tn_vulkan_plan *plan)
{
    const tn_layout *first = &tn_step_input(plan->step, 0)->layout,
                    *w = &tn_step_input(plan->step, 1)->layout;
    struct recurrence_plan r = {.plan = plan,
                                .attrs = plan->step->attrs,
                                .length = (uint64_t)first->extent[0],
                                .rows = (uint64_t)first->extent[1],
                                .units = (uint64_t)w->extent[1],
                                .tile_units = UNITS,
                                .tile_rows = FEW_ROWS,
                                .depth = 64};
    r.gates = gates_of_kind(r.attrs->kind);
    bool is_gated = r.gates > 1;
    uint32_t most = r.units <= 64 || is_gated ? MOST_GATED : MOST_ALONE,
             widest = is_gated ? 4 : 1;
    r.is_alone = r.units <= most && most * widest <= plan->limits->max_invocations;
    if (r.is_alone) {
        r.tile_units = r.depth = most;
        r.parts = r.gates > 1 ? 1 : GROUP / most;
        return r;
    }
    r.parts = GROUP / UNITS / widest;
    if (ceil_div(r.rows, MANY_ROWS) * ceil_div(r.units, UNITS) >= MANY_GROUPS) {
        r.tile_rows = MANY_ROWS;
        r.depth = r.gates > 1 ? 32 : 64;
    }
    return r;
}

// --- launches ---------------------------------------------------------------------------

// The launch of `count` positions from `at` on, without operands and their offsets.
static struct kernel_launch positions_launch(const struct recurrence_plan *r,
                                             const char *name, uint64_t sources,
                                             uint64_t count, int64_t at, int64_t step,
                                             uint32_t flags)
{
    uint64_t slices = ceil_div(r->units, r->tile_units);
    uint64_t group = r->tile_units * r->gates * r->parts;
    struct kernel_launch launch = {.name = name,
                                   .groups = ceil_div(r->rows, r->tile_rows) * slices};
    const uint64_t constants[] = {group,
                                  r->tile_units,
                                  r->parts,
                                  r->tile_rows,
                                  r->depth,
                                  sources * r->tile_rows * r->depth / 4,
                                  group * r->tile_rows,
                                  r->attrs->kind == TN_RECURRENCE_RELU};
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        kernel_spec(&launch, (uint32_t)constants[i]);
    const uint64_t words[] = {r->rows, r->units,     slices,        count,
                              flags,   (uint64_t)at, (uint64_t)step};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(&launch, words[i]);
    return launch;
}

// Binds the next operand, and pushes where its first element lies.
static void bind_with_offset(struct kernel_launch *launch, const tn_vulkan_plan *plan,
                             tn_vulkan_operand operand)
{
    const tn_value *value = operand.kind == TN_VULKAN_INPUT
                                ? tn_step_input(plan->step, operand.index)
                                : tn_step_output(plan->step, operand.index);
    kernel_bind(launch, operand);
    kernel_push(launch, (uint64_t)value->layout.offset);
}

static tn_vulkan_operand recurrence_plan_carried(uint32_t output)
{
    return operand_for(tn_vulkan_output(output), TN_VULKAN_READS | TN_VULKAN_WRITES);
}

static bool recurrence_has(const tn_step *step, uint32_t input)
{
    return input < step->num_inputs && tn_step_input(step, input)->layout.dtype;
}

static void recurrence_variant(const struct recurrence_plan *r, const char *form,
                               char out[VARIANT_NAME])
{
    static const char *const kinds[] = {"lstm", "gru", "rnn", "rnn"};
    snprintf(out, VARIANT_NAME, "recurrence_%s%s_%s", form, kinds[r->attrs->kind],
             dtype_glsl(tn_step_input(r->plan->step, 0)->layout.dtype));
}

// --- forwards ---------------------------------------------------------------------------

static uint64_t transposed_bytes(const tn_layout *w)
{
    return (layout_count(w) * dtype_bytes(w->dtype) + 3) / 4 * 4;
}

// Transposes w into scratch memory, so that weights of adjacent units are adjacent.
static tn_status transpose_weights(const struct recurrence_plan *r)
{
    const tn_layout *w = &tn_step_input(r->plan->step, 1)->layout;
    uint64_t wide = r->gates * r->units,
             tiles = ceil_div(wide, TILE) * ceil_div(r->units, TILE);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "transpose_%u", dtype_bytes(w->dtype));
    struct kernel_launch launch = {.name = name, .groups = tiles};
    kernel_spec(&launch, 0);
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_scratch(0, transposed_bytes(w), TN_VULKAN_WRITES));
    const uint64_t words[] = {tiles, r->units, wide, r->units, wide, (uint64_t)w->offset,
                              0};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(&launch, words[i]);
    for (int i = 0; i < 18; i++) // extents and strides of 6 axes that the copy lacks
        kernel_push(&launch, i < 6);
    return kernel_launch(r->plan, &launch);
}

static tn_status plan_positions(const struct recurrence_plan *r, uint64_t count, int64_t at,
                                int64_t step, uint32_t flags)
{
    const tn_vulkan_plan *plan = r->plan;
    const tn_step *of = plan->step;
    bool is_lstm = r->attrs->kind == TN_RECURRENCE_LSTM,
         is_gru = r->attrs->kind == TN_RECURRENCE_GRU;
    uint32_t kept = is_lstm ? 2 : 1; // where outputs for derivatives begin
    bool has_bias = recurrence_has(of, 4), keeps = of->num_outputs > kept;
    char name[VARIANT_NAME];
    recurrence_variant(r, "", name);
    flags |= (has_bias ? HAS_BIAS : 0) | (keeps ? KEEPS : 0);
    struct kernel_launch launch = positions_launch(r, name, 1, count, at, step, flags);
    bind_with_offset(&launch, plan, tn_vulkan_input(0));
    kernel_bind(&launch,
                tn_vulkan_scratch(0, transposed_bytes(&tn_step_input(of, 1)->layout),
                                  TN_VULKAN_READS));
    kernel_push(&launch, 0);
    bind_with_offset(&launch, plan, tn_vulkan_input(2));
    bind_with_offset(&launch, plan, tn_vulkan_input(has_bias ? 4 : 2));
    bind_with_offset(&launch, plan, recurrence_plan_carried(0));
    uint32_t pushed = 4; // offsets of operands that only some kinds have
    if (is_lstm || is_gru) {
        bind_with_offset(&launch, plan, tn_vulkan_output(keeps ? kept : 0));
        bind_with_offset(&launch, plan, tn_vulkan_output(keeps ? kept + 1 : 0));
        pushed -= 2;
    }
    if (is_lstm) {
        bind_with_offset(&launch, plan, tn_vulkan_input(3));
        bind_with_offset(&launch, plan, recurrence_plan_carried(1));
        pushed -= 2;
    }
    for (; pushed > 0; pushed--)
        kernel_push(&launch, 0);
    return kernel_launch(plan, &launch);
}

static tn_status recurrence_steps_plan(const tn_vulkan_plan *plan)
{
    const struct recurrence_plan r = recurrence_tiles(plan);
    const int64_t at = r.attrs->reverse ? (int64_t)r.length - 1 : 0,
                  step = r.attrs->reverse ? -1 : 1;
    uint64_t each = r.is_alone ? r.length : 1;
    tn_status status = transpose_weights(&r);
    for (uint64_t n = 0; n < r.length && status == TN_OK; n += each)
        status =
            plan_positions(&r, each, at + (int64_t)n * step, step, n == 0 ? BEGINS : 0);
    return status;
}

static uint64_t recurrence_steps_scratch(const tn_kernel_query *query)
{
    return transposed_bytes(&query->inputs[1]);
}

// --- backwards --------------------------------------------------------------------------

// Inputs of recurrence_grad.
enum { GRADIENT, W, OUT, FIRST_H, MADE, CELLS, FIRST_C, OF_LAST };

static tn_status plan_positions_back(const struct recurrence_plan *r, uint64_t count,
                                     int64_t at, int64_t step, uint32_t flags)
{
    const tn_vulkan_plan *plan = r->plan;
    bool is_lstm = r->attrs->kind == TN_RECURRENCE_LSTM,
         is_gru = r->attrs->kind == TN_RECURRENCE_GRU;
    bool has_last = recurrence_has(plan->step, OF_LAST);
    char name[VARIANT_NAME];
    recurrence_variant(r, "back_", name);
    flags |= has_last ? HAS_BIAS : 0;
    struct kernel_launch launch =
        positions_launch(r, name, r->gates, count, at, step, flags);
    kernel_push(&launch, r->attrs->reverse ? r->length - 1 : 0);
    bind_with_offset(&launch, plan, tn_vulkan_input(GRADIENT));
    bind_with_offset(&launch, plan, tn_vulkan_input(W));
    bind_with_offset(&launch, plan, recurrence_plan_carried(0));
    bind_with_offset(&launch, plan, recurrence_plan_carried(1));
    bind_with_offset(&launch, plan, tn_vulkan_input(is_lstm || is_gru ? MADE : OUT));
    if (!is_lstm && !is_gru) {
        for (int i = 0; i < 5; i++)
            kernel_push(&launch, 0);
        return kernel_launch(plan, &launch);
    }
    bind_with_offset(&launch, plan, tn_vulkan_input(CELLS));
    bind_with_offset(&launch, plan, tn_vulkan_input(is_lstm ? FIRST_C : FIRST_H));
    if (is_gru)
        kernel_push(&launch, 0);
    bind_with_offset(&launch, plan,
                     tn_vulkan_input(is_gru     ? OUT
                                     : has_last ? OF_LAST
                                                : CELLS));
    if (is_lstm)
        kernel_push(&launch, 0);
    bind_with_offset(&launch, plan, recurrence_plan_carried(2));
    return kernel_launch(plan, &launch);
}

// The last launch has no position: it computes the gradients of the initial states.
static tn_status recurrence_grad_plan(const tn_vulkan_plan *plan)
{
    const struct recurrence_plan r = recurrence_tiles(plan);
    const int64_t at = r.attrs->reverse ? 0 : (int64_t)r.length - 1,
                  step = r.attrs->reverse ? 1 : -1;
    uint64_t all = r.length + 1, each = r.is_alone ? all : 1;
    tn_status status = TN_OK;
    for (uint64_t n = 0; n < all && status == TN_OK; n += each)
        status = plan_positions_back(&r, each, at + (int64_t)n * step, step,
                                     (n == 0 ? BEGINS : 0) | (n + each == all ? ENDS : 0));
    return status;
}

// --- records ----------------------------------------------------------------------------

// Accepts no empty axis of positions, nor more launches than a recorded run should have.
static int32_t recurrence_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].extent[0] > 0 && query->inputs[0].extent[0] <= MOST_POSITIONS;
}

static const tn_operand_rule recurrence_rules[] = {{HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(recurrence_steps, "nn.recurrence_steps/1", recurrence_steps_plan, KERNEL_OTHER,
           recurrence_rules, .flags = TN_KERNEL_SAME_DTYPE, .accepts = recurrence_accepts,
           .scratch_size = recurrence_steps_scratch);
OWN_KERNEL(recurrence_grad, "nn.recurrence_grad/1", recurrence_grad_plan, KERNEL_OTHER,
           recurrence_rules, .flags = TN_KERNEL_SAME_DTYPE, .accepts = recurrence_accepts);
