// SPDX-License-Identifier: MIT
// Products with quantised weights, and their values: quant.quantized_matmul/1,
// quant.quantized_take/1 and quant.dequantize/1 of the formats of <tenon/ops/quant.h>, as
// files have them or with packed rows. Decision 43 has the reasons.
//
// Few rows of x are read beside the weights: of packed rows by quant_packed.comp, otherwise
// by quant_matmul.comp. Many have tiles: on cooperative matrices (plan_quant_matrix.c), or
// of f32. With `exact` x is never rounded.
#include "plan_quant.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/quant.h>
#include <tenon/ops/quant_attrs.h>
#include "../record.h"

#define PART 8          // elements that quant.glsl reads at a time
#define EACH 4          // columns of an invocation, of quant_matmul.comp
#define AT_ONCE 2       // parts of a column that it loads at once, there
#define AT_MOST 4       // rows of x of a workgroup
#define GROUP 256       // invocations of a workgroup
#define ENOUGH_TILES 32 // of 64 x 64
#define MOST_COUNTED 0xffffffff
// Elements of x that all workgroups of a launch together compute or round: with more of
// them a launch of its own does it, also for a program before x. With 11008 terms and 256
// workgroups a step of 32 layers takes 2.6 ms on an H200 where each computes a gate, 2.25
// so.
#define MOST_REPEATED 1048576

// Workgroups of the kernels for packed rows that keep a large device busy, two for each
// processor of an H200, as each rounds x: 22016 x 4096 takes 18.6 us, 25.9 with 528.
#define ENOUGH_GROUPS 264
#define DOTS_SHARED 26624 // most bytes of shared memory of the kernels that multiply bytes
#define DOTS_SUBGROUP 4   // invocations that round 32 elements together
#define QUANT_ROUNDED 32  // elements that DOTS_SUBGROUP invocations round
#define ROUND_GROUP 64    // invocations of quant_round.comp

const tn_quant_format *quant_find_plain(const char *name)
{
    return tn_quant_find(name);
}

const tn_packing quant_packings[QUANT_PACKINGS] = {
#define PACKING(format) TN_QUANT_R16(format, 0),
    QUANT_PACKED(PACKING)
#undef PACKING
};

// False where the shaders do not have the format.
static bool find_weights(const char *name, struct quant_weights *out)
{
    *out = (struct quant_weights){.format = quant_find_plain(name)};
    for (size_t i = 0; !out->format && i < QUANT_PACKINGS; i++)
        if (strcmp(quant_packings[i].id, name) == 0)
            *out = (struct quant_weights){quant_find_plain(quant_packings[i].format), true};
    return out->format != NULL;
}

// Bytes of a unit, by which quant.glsl counts: words, and bytes of mxfp4, whose blocks have
// 17 of them.
uint32_t quant_unit_bytes(const struct quant_weights *w)
{
    return w->format->bytes % 2 ? 1 : 2;
}

// Whether the shaders have the format, and their 32 bits count the elements of the result
// and the units of w.
static bool is_counted(const char *format, const tn_layout *w, const tn_layout *out)
{
    struct quant_weights weights;
    return find_weights(format, &weights) &&
           (layout_count(w) + (uint64_t)w->offset) / quant_unit_bytes(&weights) <=
               MOST_COUNTED &&
           layout_count(out) <= MOST_COUNTED;
}

static int32_t dequantize_accepts(const tn_kernel_query *query)
{
    const tn_quant_dequantize_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[0];
    // Rows of several matrices are packed apart.
    return is_counted(attrs->format, w, &query->outputs[0]) &&
           (tn_quant_find(attrs->format) || w->rank == 2);
}

static int32_t quantized_take_accepts(const tn_kernel_query *query)
{
    const tn_quant_take_attrs *attrs = query->attrs;
    return is_counted(attrs->format, &query->inputs[0], &query->outputs[0]) &&
           layout_count(&query->inputs[1]) <= MOST_COUNTED / 8;
}

// Rows of values: with `ids` those that they mean.
static tn_status quant_plan_values(const tn_vulkan_plan *plan, const char *format,
                                   const tn_layout *ids)
{
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    uint64_t count = layout_count(out);
    char name[VARIANT_NAME];
    struct quant_weights weights;
    if (count == 0)
        return TN_OK;
    find_weights(format, &weights);
    snprintf(name, sizeof(name), "quant_values_%s_%s", weights.format->name,
             dtype_glsl(out->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(count / PART, 256)};
    uint32_t size = ids ? dtype_bytes(ids->dtype) : 0;
    kernel_spec(&launch, (uint32_t)(w->offset % 2));
    kernel_spec(&launch, ids != NULL);
    kernel_spec(&launch, weights.is_packed);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(ids ? 1 : 0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, count / PART);
    kernel_push(&launch, (uint64_t)out->extent[out->rank - 1] / PART);
    kernel_push(&launch, w->rank > 1 ? (uint64_t)w->extent[0] : 1);
    kernel_push(&launch, (uint64_t)w->offset / quant_unit_bytes(&weights));
    kernel_push(&launch, (uint64_t)out->offset);
    kernel_push(&launch, ids ? (uint64_t)ids->offset * size : 0);
    kernel_push(&launch, size);
    kernel_push(&launch, ids && tn_dtype_in(ids->dtype, TN_SIGNED_DTYPES));
    return kernel_launch(plan, &launch);
}

static tn_status dequantize_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_dequantize_attrs *attrs = plan->step->attrs;
    return quant_plan_values(plan, attrs->format, NULL);
}

static tn_status quantized_take_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_take_attrs *attrs = plan->step->attrs;
    return quant_plan_values(plan, attrs->format, &tn_step_input(plan->step, 1)->layout);
}

// Accepts one matrix, between the plain order and the packed one.
static int32_t quantized_pack_accepts(const tn_kernel_query *query)
{
    const tn_quant_pack_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[0];
    struct quant_weights from, to;
    return find_weights(attrs->format, &from) && find_weights(attrs->to, &to) &&
           from.format == to.format && from.is_packed != to.is_packed && w->rank == 2 &&
           layout_count(w) + (uint64_t)w->offset <= MOST_COUNTED;
}

static tn_status quantized_pack_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_pack_attrs *attrs = plan->step->attrs;
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    struct quant_weights from;
    uint64_t words = layout_count(w) / 2;
    if (words == 0 || !find_weights(attrs->format, &from))
        return TN_OK;
    // Its bytes are even: quant.glsl and quant_pack.comp count words.
    tn_quant_order order = {0};
    tn_quant_unpacked(from.is_packed ? attrs->format : attrs->to, &order);
    struct kernel_launch launch = {.name = "quant_pack", .groups = ceil_div(words, 256)};
    kernel_spec(&launch, from.is_packed);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, words);
    kernel_push(&launch, (uint64_t)w->extent[1] / 2);
    kernel_push(&launch, (uint64_t)from.format->bytes / 2);
    kernel_push(&launch, (uint64_t)order.head / 2);
    kernel_push(&launch, (uint64_t)w->extent[0] / PACKED_ROWS * PACKED_ROWS);
    kernel_push(&launch, (uint64_t)w->offset);
    kernel_push(&launch, (uint64_t)tn_step_output(plan->step, 0)->layout.offset);
    for (int i = 0; i < 12; i++)
        kernel_push(&launch, (uint64_t)order.pieces[i] / 2);
    return kernel_launch(plan, &launch);
}

bool quant_describe(const char *format, bool exact, const tn_layout *x,
                    const tn_layout *blocks, const tn_layout *out,
                    struct quant_product *result)
{
    *result = (struct quant_product){.x = x, .blocks = blocks, .out = out, .exact = exact};
    result->columns = (uint64_t)blocks->extent[0];
    result->terms = (uint64_t)x->extent[x->rank - 1];
    result->rows = result->columns ? layout_count(out) / result->columns : 0;
    return find_weights(format, &result->w);
}

// Invocations that share the terms of a column: as many as have something to do at once,
// since each round of theirs waits for memory.
static uint32_t quant_plan_lanes_for(uint64_t terms)
{
    uint32_t lanes = 32;
    while (lanes < GROUP && terms / PART >= 2 * lanes * AT_ONCE)
        lanes *= 2;
    return lanes;
}

// Whether all rows of w are packed, and sixteen of their bytes can be read at once.
static bool is_all_packed(const struct quant_product *p)
{
    return p->w.is_packed && p->columns % PACKED_ROWS == 0 && p->blocks->offset % 16 == 0;
}

// Rows of x that a workgroup computes at once. The kernel of bytes takes up to two.
static uint64_t rows_at_once(const struct quant_product *p, bool in_bytes)
{
    return p->rows == 1 ? 1 : p->rows == 2 && in_bytes ? 2 : AT_MOST;
}

// Groups of 16 packed rows that a workgroup takes.
static uint64_t groups_each(const struct quant_product *p)
{
    return ceil_div(p->columns / PACKED_ROWS, ENOUGH_GROUPS);
}

// Workgroups where the weights are read for `at_once` rows.
static uint64_t few_groups(const struct quant_product *p, uint64_t at_once)
{
    uint64_t columns = is_all_packed(p) ? groups_each(p) * PACKED_ROWS
                                        : GROUP / quant_plan_lanes_for(p->terms) * EACH;
    return ceil_div(p->rows, at_once) * ceil_div(p->columns, columns);
}

// Elements of x that all workgroups together read.
static uint64_t count_read(const struct quant_product *p)
{
    uint64_t at_once = rows_at_once(p, is_all_packed(p) && !p->exact);
    return tn_saturated_multiply(few_groups(p, at_once) * at_once, p->terms);
}

// Whether x may have a prologue, which is computed again wherever an element is read.
static bool quant_plan_may_repeat(const struct quant_product *p)
{
    uint64_t sharing = is_all_packed(p) ? 1 : GROUP / quant_plan_lanes_for(p->terms);
    return p->rows > 0 && p->terms > 0 && p->rows <= FEW_ROWS &&
           count_read(p) <= MOST_REPEATED / sharing;
}

// Whether x is rounded in a launch before, where the device multiplies bytes. With sums in
// f32 each workgroup computes a prologue, then.
static bool rounds_apart(const struct quant_product *p)
{
    return !p->exact && p->rows > 0 && p->terms > 0 && p->rows <= FEW_ROWS &&
           is_all_packed(p) && count_read(p) > MOST_REPEATED;
}

// Rounded x in scratch memory: bytes, and scales behind them.
static uint64_t rounded_bytes(const struct quant_product *p)
{
    return ceil_div(p->rows * p->terms, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
}

static uint64_t rounded_scales(const struct quant_product *p)
{
    return p->rows * p->terms / QUANT_ROUNDED * sizeof(float);
}

static uint64_t quantized_matmul_scratch(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    struct quant_product p;
    if (!quant_describe(attrs->format, attrs->exact, &query->inputs[0], &query->inputs[1],
                        &query->outputs[0], &p))
        return 0;
    uint64_t rounded = rounds_apart(&p) ? rounded_bytes(&p) + rounded_scales(&p) : 0;
    uint64_t matrices = quant_matrix_scratch(&p);
    return rounded > matrices ? rounded : matrices;
}

static int32_t quantized_matmul_accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[1], *out = &query->outputs[0];
    struct quant_product p;
    return is_counted(attrs->format, w, out) &&
           layout_count(&query->inputs[0]) <= MOST_COUNTED &&
           quant_describe(attrs->format, attrs->exact, &query->inputs[0], w, out, &p) &&
           (!(query->fused & 1) ||
            (!quant_may_round(&p) && (quant_plan_may_repeat(&p) || rounds_apart(&p))));
}

// --- in f32, and in bytes ---------------------------------------------------------------

static bool has_dots(const tn_vulkan_limits *limits)
{
    return limits->features & TN_VULKAN_HAS_DOTS && limits->max_shared >= DOTS_SHARED &&
           limits->subgroup_operations & TN_VULKAN_SUBGROUP_SHUFFLE &&
           limits->subgroup_size >= DOTS_SUBGROUP;
}

// How x comes to the product: as quant_packed.comp's X_KIND.
struct packed_x {
    uint32_t kind;
    bool in_fours;
    tn_vulkan_operand x, beside;
    uint64_t offset, beside_offset;
    double eps;
};
enum { X_FLOATS, X_NORMED, X_ROUNDED };

static tn_status plan_packed(const tn_vulkan_plan *plan, const struct quant_product *p,
                             const struct packed_x *x, const tn_vulkan_operand w)
{
    char name[VARIANT_NAME];
    bool in_bytes = has_dots(plan->limits) && !p->exact;
    uint64_t at_once = rows_at_once(p, in_bytes);
    snprintf(name, sizeof(name), "quant_packed_%s_%u%s", p->w.format->name,
             (uint32_t)at_once, in_bytes ? "_dots" : "");
    struct kernel_launch launch = {.name = name, .groups = few_groups(p, at_once)};
    kernel_spec(&launch, x->in_fours);
    kernel_spec(&launch, x->kind);
    kernel_bind(&launch, x->x);
    kernel_bind(&launch, w);
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, x->in_fours ? x->x : w);
    kernel_bind(&launch, w);
    kernel_bind(&launch, x->kind == X_FLOATS ? w : x->beside);
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, p->columns / PACKED_ROWS);
    kernel_push(&launch, groups_each(p));
    kernel_push(&launch, x->offset);
    kernel_push(&launch, (uint64_t)p->blocks->offset / 16);
    kernel_push(&launch, (uint64_t)p->out->offset);
    kernel_push(&launch, x->beside_offset);
    kernel_push_float(&launch, x->eps);
    return kernel_launch(plan, &launch);
}

static tn_status plan_rounded(const tn_vulkan_plan *plan, const struct quant_product *p)
{
    uint64_t bytes = rounded_bytes(p), scales = rounded_scales(p);
    uint64_t eights = p->rows * p->terms / PART;
    struct kernel_launch launch = {.name = "quant_round",
                                   .groups = ceil_div(eights, ROUND_GROUP)};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_scratch(0, bytes, TN_VULKAN_WRITES));
    kernel_bind(&launch, tn_vulkan_scratch(bytes, scales, TN_VULKAN_WRITES));
    kernel_push(&launch, eights);
    kernel_push(&launch, (uint64_t)p->x->offset);
    tn_status status = kernel_launch(plan, &launch);
    const struct packed_x x = {
        .kind = X_ROUNDED,
        .x = tn_vulkan_scratch(bytes, scales, TN_VULKAN_READS),
        .beside = tn_vulkan_scratch(0, bytes, TN_VULKAN_READS),
    };
    return status == TN_OK ? plan_packed(plan, p, &x, tn_vulkan_input(1)) : status;
}

static tn_status plan_few_packed(const tn_vulkan_plan *plan, const struct quant_product *p,
                                 bool in_fours)
{
    if (rounds_apart(p) && has_dots(plan->limits))
        return plan_rounded(plan, p);
    const struct packed_x x = {.kind = X_FLOATS,
                               .in_fours = in_fours,
                               .x = tn_vulkan_input(0),
                               .offset = (uint64_t)p->x->offset};
    return plan_packed(plan, p, &x, tn_vulkan_input(1));
}

// The variant's name and workgroups, of quant_matmul.comp.
static void choose_product(struct kernel_launch *launch, const struct quant_product *p,
                           char name[VARIANT_NAME])
{
    if (p->rows <= FEW_ROWS) {
        uint64_t at_once = rows_at_once(p, false);
        snprintf(name, VARIANT_NAME, "quant_matmul_%s_few_%u", p->w.format->name,
                 (uint32_t)at_once);
        launch->groups = few_groups(p, at_once);
        kernel_spec(launch, quant_plan_lanes_for(p->terms));
        return;
    }
    uint64_t tiles = ceil_div(p->rows, 64) * ceil_div(p->columns, 64);
    uint32_t tile = tiles >= ENOUGH_TILES ? 64 : 16;
    snprintf(name, VARIANT_NAME, "quant_matmul_%s_%u", p->w.format->name, tile);
    launch->groups = ceil_div(p->rows, tile) * ceil_div(p->columns, tile);
}

static tn_status plan_floats(const tn_vulkan_plan *plan, const struct quant_product *p,
                             bool in_fours)
{
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    kernel_spec(&launch, (uint32_t)(p->blocks->offset % 2));
    kernel_spec(&launch, in_fours);
    kernel_spec(&launch, p->w.is_packed);
    choose_product(&launch, p, name);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    if (p->rows <= FEW_ROWS)
        kernel_bind(&launch, tn_vulkan_input(in_fours ? 0 : 1));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, (uint64_t)p->x->offset);
    kernel_push(&launch, (uint64_t)p->blocks->offset / quant_unit_bytes(&p->w));
    kernel_push(&launch, (uint64_t)p->out->offset);
    return kernel_launch(plan, &launch);
}

static tn_status quantized_matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_matmul_attrs *attrs = plan->step->attrs;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct quant_product p;
    if (!quant_describe(attrs->format, attrs->exact, x,
                        &tn_step_input(plan->step, 1)->layout,
                        &tn_step_output(plan->step, 0)->layout, &p) ||
        layout_count(p.out) == 0)
        return TN_OK;
    const char *dtype = quant_matrix_dtype(plan->limits, &p);
    bool in_fours = x->offset % 4 == 0 && !passes_program(tn_step_input(plan->step, 0));
    return dtype                                     ? quant_plan_matrices(plan, &p, dtype)
           : p.rows <= FEW_ROWS && is_all_packed(&p) ? plan_few_packed(plan, &p, in_fours)
                                                     : plan_floats(plan, &p, in_fours);
}

// --- with a norm ------------------------------------------------------------------------

// Whether one kernel computes it: other products are left to the decomposition.
static int32_t normed_matmul_accepts(const tn_kernel_query *query)
{
    const tn_quant_normed_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[2];
    struct quant_product p;
    return is_counted(attrs->format, w, &query->outputs[0]) &&
           layout_count(x) <= MOST_COUNTED &&
           quant_describe(attrs->format, false, x, w, &query->outputs[0], &p) &&
           p.rows <= FEW_ROWS && p.terms > 0 && is_all_packed(&p) && !quant_may_round(&p) &&
           (p.rows == 1 || count_read(&p) <= MOST_REPEATED) &&
           query->inputs[1].offset % 4 == 0;
}

static tn_status normed_matmul_plan(const tn_vulkan_plan *plan)
{
    const tn_quant_normed_attrs *attrs = plan->step->attrs;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct quant_product p;
    if (!quant_describe(attrs->format, false, x, &tn_step_input(plan->step, 2)->layout,
                        &tn_step_output(plan->step, 0)->layout, &p) ||
        layout_count(p.out) == 0)
        return TN_OK;
    const struct packed_x packed = {
        .kind = X_NORMED,
        .in_fours = x->offset % 4 == 0,
        .x = tn_vulkan_input(0),
        .beside = tn_vulkan_input(1),
        .offset = (uint64_t)x->offset,
        .beside_offset = (uint64_t)tn_step_input(plan->step, 1)->layout.offset / 4,
        .eps = attrs->eps};
    return plan_packed(plan, &p, &packed, tn_vulkan_input(2));
}

// --- records ---------------------------------------------------------------------------

// Rules of quantised weights; results are rows in memory.
static const tn_operand_rule values_rules[] = {
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_F64), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule bytes_rules[] = {{TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
                                              {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule quantized_take_rules[] = {
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule quantized_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule normed_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL(dequantize, "quant.dequantize/1", dequantize_plan, KERNEL_OTHER, values_rules,
           .accepts = dequantize_accepts);
OWN_KERNEL(quantized_pack, "quant.pack/1", quantized_pack_plan, KERNEL_OTHER, bytes_rules,
           .accepts = quantized_pack_accepts);
OWN_KERNEL(quantized_take, "quant.quantized_take/1", quantized_take_plan, KERNEL_OTHER,
           quantized_take_rules, .accepts = quantized_take_accepts);
OWN_KERNEL(quantized_matmul, "quant.quantized_matmul/1", quantized_matmul_plan,
           KERNEL_PRODUCT, quantized_matmul_rules, .accepts = quantized_matmul_accepts,
           .scratch_size = quantized_matmul_scratch);
OWN_KERNEL(normed_matmul, "quant.normed_matmul/1", normed_matmul_plan, KERNEL_PRODUCT,
           normed_matmul_rules, .accepts = normed_matmul_accepts);
