// SPDX-License-Identifier: MIT
// Products with quantised weights, and their values: quant.quantized_matmul/1,
// quant.quantized_take/1 and quant.dequantize/1 of the formats of <tenon/ops/quant.h>, as
// files have them or with packed rows. Decision 43 has the reasons.
//
// Few rows of x are read beside the weights: of packed rows by quant_packed.comp, otherwise
// by quant_matmul.comp. Many have tiles: on matrix units, where x and the weights become
// floats of 16 bits, or of f32. With `exact` x is never rounded.
#include "kernels.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/quant.h>
#include <tenon/ops/quant_attrs.h>

#define PART 8          // elements that quant.glsl reads at a time
#define FEW_ROWS 8      // of x, at most, where weights are read for some rows at a time
#define EACH 4          // columns of an invocation, of quant_matmul.comp
#define AT_ONCE 2       // parts of a column that it loads at once, there
#define AT_MOST 4       // rows of x of a workgroup, there
#define GROUP 256       // invocations of a workgroup
#define ENOUGH_TILES 32 // of 64 x 64
#define MOST_COUNTED 0xffffffff
// Elements of x that a program computes for all workgroups of a launch: with more of them a
// launch of its own is as fast on a large device, by estimate.
#define MOST_REPEATED 1048576

// Of the kernels for packed rows: invocations that read a block of 16 rows, which are a
// strand; strands of a workgroup; workgroups that keep a large device busy.
#define PACKED_ROWS TN_QUANT_PACKED_ROWS
#define STRANDS 16
#define ENOUGH_GROUPS 256
#define DOTS_SHARED 28672 // bytes of shared memory, at most, of those of bytes
// On matrix units.
#define MATRIX_GROUP 128
#define MATRIX_SHARED 20480
#define MATRIX_PUSH 29     // words, of matmul_matrix.comp
#define A_OFFSET_WORD 4    // of these: where x begins
#define LEAST_MATRIX 32    // columns
#define LEAST_WORK 4194304 // multiplications, as of other products
#define MANY_TILES 128     // of 128 x 128: as many as a large device has processors
// Of tiles of 64 x 64: workgroups that a large device has work for, and terms of one, at
// least; their terms are multiples of a slice.
#define ENOUGH_PARTS 512
#define LEAST_TERMS 256
#define SLICE 32

// A matrix of blocks by its format's name.
struct weights {
    const tn_quant_format *format; // the plain one
    bool is_packed;
};

// False where the shaders do not have the format.
static bool find_weights(const char *name, struct weights *out)
{
    const tn_quant_format *format = tn_quant_find(name);
    *out = (struct weights){.format = format};
    for (uint32_t i = 0; !out->format && (format = tn_quant_at(i)); i++) {
        const char *packed = tn_quant_packed(format->name, "vulkan");
        if (packed && strcmp(packed, name) == 0)
            *out = (struct weights){format, true};
    }
    return out->format != NULL;
}

// Bytes of a unit, by which quant.glsl counts: words, and bytes of mxfp4, whose blocks have
// 17 of them.
static uint32_t unit_bytes(const struct weights *w)
{
    return w->format->bytes % 2 ? 1 : 2;
}

// The order of packed rows. Its bytes are even: quant.glsl and quant_pack.comp count words.
static tn_quant_order order_of(const tn_quant_format *format)
{
    tn_quant_order order = {0};
    tn_quant_unpacked(tn_quant_packed(format->name, "vulkan"), &order);
    return order;
}

// Whether the shaders have the format, and their 32 bits count the elements of the result
// and the units of w.
static bool is_counted(const char *format, const tn_layout *w, const tn_layout *out)
{
    struct weights weights;
    return find_weights(format, &weights) &&
           (layout_count(w) + (uint64_t)w->offset) / unit_bytes(&weights) <= MOST_COUNTED &&
           layout_count(out) <= MOST_COUNTED;
}

int32_t vk_dequantize_accepts(const tn_kernel_query *query)
{
    const tn_quant_dequantize_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[0];
    // Rows of several matrices are packed apart.
    return is_counted(attrs->format, w, &query->outputs[0]) &&
           (tn_quant_find(attrs->format) || w->rank == 2);
}

int32_t vk_quantized_take_accepts(const tn_kernel_query *query)
{
    const tn_quant_take_attrs *attrs = query->attrs;
    return is_counted(attrs->format, &query->inputs[0], &query->outputs[0]) &&
           layout_count(&query->inputs[1]) <= MOST_COUNTED / 8;
}

// Rows of values: with `ids` those that they mean.
static tn_status plan_values(const tn_vulkan_plan *plan, const char *format,
                             const tn_layout *ids)
{
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    uint64_t count = layout_count(out);
    char name[VARIANT_NAME];
    struct weights weights;
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
    kernel_push(&launch, (uint64_t)w->offset / unit_bytes(&weights));
    kernel_push(&launch, (uint64_t)out->offset);
    kernel_push(&launch, ids ? (uint64_t)ids->offset * size : 0);
    kernel_push(&launch, size);
    kernel_push(&launch, ids && tn_dtype_in(ids->dtype, TN_SIGNED_DTYPES));
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_dequantize(const tn_vulkan_plan *plan)
{
    const tn_quant_dequantize_attrs *attrs = plan->step->attrs;
    return plan_values(plan, attrs->format, NULL);
}

tn_status vk_plan_quantized_take(const tn_vulkan_plan *plan)
{
    const tn_quant_take_attrs *attrs = plan->step->attrs;
    return plan_values(plan, attrs->format, &tn_step_input(plan->step, 1)->layout);
}

// Of one matrix, between the plain order and the packed one.
int32_t vk_quantized_pack_accepts(const tn_kernel_query *query)
{
    const tn_quant_pack_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[0];
    struct weights from, to;
    return find_weights(attrs->format, &from) && find_weights(attrs->to, &to) &&
           from.format == to.format && from.is_packed != to.is_packed && w->rank == 2 &&
           layout_count(w) + (uint64_t)w->offset <= MOST_COUNTED;
}

tn_status vk_plan_quantized_pack(const tn_vulkan_plan *plan)
{
    const tn_quant_pack_attrs *attrs = plan->step->attrs;
    const tn_layout *w = &tn_step_input(plan->step, 0)->layout;
    struct weights from;
    uint64_t words = layout_count(w) / 2;
    if (words == 0 || !find_weights(attrs->format, &from))
        return TN_OK;
    const tn_quant_order order = order_of(from.format);
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

// A product of x, rows by terms, with the transposed matrix of w, columns by terms.
struct product {
    struct weights w;
    const tn_layout *x, *blocks, *out;
    uint64_t rows, columns, terms;
    bool exact;
};

static bool describe(const char *format, bool exact, const tn_layout *x,
                     const tn_layout *blocks, const tn_layout *out, struct product *result)
{
    *result = (struct product){.x = x, .blocks = blocks, .out = out, .exact = exact};
    result->columns = (uint64_t)blocks->extent[0];
    result->terms = (uint64_t)x->extent[x->rank - 1];
    result->rows = result->columns ? layout_count(out) / result->columns : 0;
    return find_weights(format, &result->w);
}

// Invocations that share the terms of a column: as many as have something to do at once,
// since each round of theirs waits for memory.
static uint32_t lanes_for(uint64_t terms)
{
    uint32_t lanes = 32;
    while (lanes < GROUP && terms / PART >= 2 * lanes * AT_ONCE)
        lanes *= 2;
    return lanes;
}

// Whether all rows of w are packed, and sixteen of their bytes can be read at once.
static bool is_all_packed(const struct product *p)
{
    return p->w.is_packed && p->columns % PACKED_ROWS == 0 && p->blocks->offset % 16 == 0;
}

// Rows of x that a workgroup computes at once.
static uint64_t rows_at_once(const struct product *p)
{
    return p->rows == 1 ? 1 : AT_MOST;
}

// Strands that share the blocks of 16 rows: as few as keep a device busy, unless each still
// has as many blocks as it loads at once.
static uint32_t strands_for(const struct product *p)
{
    bool is_large = p->w.format->block > 32;
    uint64_t blocks = p->terms / (uint64_t)p->w.format->block, at_once = is_large ? 1 : 4;
    uint64_t groups = p->columns / PACKED_ROWS;
    uint32_t strands = 1, most = is_large && p->rows > 1 ? STRANDS / 2 : STRANDS;
    while (strands < most && strands < blocks &&
           (blocks >= 2 * strands * at_once || groups * strands / STRANDS < ENOUGH_GROUPS))
        strands *= 2;
    return strands;
}

// Workgroups where the weights are read for few rows.
static uint64_t few_groups(const struct product *p)
{
    uint64_t columns = is_all_packed(p) ? STRANDS / strands_for(p) * PACKED_ROWS
                                        : GROUP / lanes_for(p->terms) * EACH;
    return ceil_div(p->rows, rows_at_once(p)) * ceil_div(p->columns, columns);
}

// Whether x may pass through a program, which all who share a row compute anew.
static bool may_repeat(const struct product *p)
{
    if (p->rows == 0 || p->terms == 0 || p->rows > FEW_ROWS || p->terms > MOST_REPEATED)
        return false;
    uint64_t sharing = is_all_packed(p) ? 1 : GROUP / lanes_for(p->terms);
    return few_groups(p) <= MOST_REPEATED / p->terms / sharing;
}

int32_t vk_quantized_matmul_accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    const tn_layout *w = &query->inputs[1], *out = &query->outputs[0];
    struct product p;
    return is_counted(attrs->format, w, out) &&
           layout_count(&query->inputs[0]) <= MOST_COUNTED &&
           describe(attrs->format, attrs->exact, &query->inputs[0], w, out, &p) &&
           (!(query->fused & 1) || may_repeat(&p));
}

// --- on matrix units --------------------------------------------------------------------

// Whether shape and attributes let x become floats of 16 bits.
static bool may_round(const struct product *p)
{
    return !p->exact && p->rows > FEW_ROWS && p->columns >= LEAST_MATRIX &&
           tn_saturated_multiply(p->rows * p->columns, p->terms) >= LEAST_WORK;
}

// Whether there are enough tiles of 128 x 128, of x as bf16, for a large device.
static bool has_large_tiles(const struct product *p)
{
    return ceil_div(p->rows, 128) * ceil_div(p->columns, 128) >= MANY_TILES &&
           p->rows > 64 && p->columns > 64;
}

// Tiles of 64 x 64, which read x as it is.
static uint64_t small_tiles(const struct product *p)
{
    return ceil_div(p->rows, 64) * ceil_div(p->columns, 64);
}

// Workgroups that share the terms of a small tile.
static uint64_t parts_of_terms(const struct product *p)
{
    uint64_t parts = 1;
    while (!has_large_tiles(p) && small_tiles(p) * parts < ENOUGH_PARTS &&
           p->terms >= 2 * parts * LEAST_TERMS)
        parts *= 2;
    return parts;
}

// Bytes of x as bf16, or of the sums of all parts.
static uint64_t matrix_scratch(const struct product *p)
{
    uint64_t parts = parts_of_terms(p);
    if (has_large_tiles(p))
        return tn_saturated_multiply(p->rows, p->terms) * sizeof(uint16_t);
    return parts == 1 ? 0
                      : tn_saturated_multiply(p->rows * p->columns, parts * sizeof(float));
}

uint64_t vk_quantized_matmul_scratch(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    struct product p;
    if (!describe(attrs->format, attrs->exact, &query->inputs[0], &query->inputs[1],
                  &query->outputs[0], &p) ||
        !may_round(&p))
        return 0;
    return matrix_scratch(&p);
}

// The dtype of the units that a product runs on; NULL: on none. bf16 has the range of f32,
// and is off by less than the attribute allows; f16 has not.
static const char *matrix_dtype(const tn_vulkan_limits *limits, const struct product *p)
{
    // Tiles of 64 read x four elements at a time.
    if (!may_round(p) || limits->subgroup_size != 32 || p->x->offset % 4 != 0 ||
        limits->max_invocations < MATRIX_GROUP || limits->max_shared < MATRIX_SHARED ||
        ceil_div(p->columns, 64) > limits->max_groups[0] ||
        ceil_div(p->rows, 64) > limits->max_groups[1])
        return NULL;
    return limits->features & TN_VULKAN_HAS_BF16_MATRICES  ? "bf16"
           : limits->features & TN_VULKAN_HAS_F16_MATRICES ? "f16"
                                                           : NULL;
}

// x as bf16, in scratch memory.
static tn_status convert_x(const tn_vulkan_plan *plan, const struct product *p)
{
    uint64_t pairs = p->rows * p->terms / 2;
    struct kernel_launch launch = {.name = "quant_x_bf16", .groups = ceil_div(pairs, 256)};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_scratch(0, matrix_scratch(p), TN_VULKAN_WRITES));
    kernel_push(&launch, pairs);
    kernel_push(&launch, (uint64_t)p->x->offset);
    return kernel_launch(plan, &launch);
}

// Memory for a binding that is not looked at. A result that passes through a program is
// bound but where it is written.
static tn_vulkan_operand unused(const tn_vulkan_plan *plan)
{
    return kernel_plan_is_own(plan) ? kernel_counters(1) : tn_vulkan_output(0);
}

// The constants and words of matmul_matrix.comp, in front of the strides of w and batches.
static void push_matrices(struct kernel_launch *launch, const struct product *p)
{
    const uint32_t constants[] = {
        0, 1, 1, 0, 0, 0, (uint32_t)(p->blocks->offset % 2), p->w.is_packed};
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        kernel_spec(launch, constants[i]);
    const uint64_t words[] = {p->rows,
                              p->columns,
                              p->terms,
                              1,
                              0,
                              (uint64_t)p->blocks->offset / unit_bytes(&p->w),
                              (uint64_t)p->out->offset,
                              p->terms, // from row to row of x, and from term to term
                              1,
                              0, // of w
                              0};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(launch, words[i]);
}

// By tiles of 64, of whose terms workgroups take parts: those of one are added by the last
// one that is done, as counters tell.
static tn_status plan_small_tiles(const tn_vulkan_plan *plan, const struct product *p,
                                  const char *dtype)
{
    char name[VARIANT_NAME];
    uint64_t parts = kernel_plan_is_own(plan) ? parts_of_terms(p) : 1;
    uint64_t terms = ceil_div(p->terms / SLICE, parts) * SLICE;
    tn_vulkan_operand out = tn_vulkan_output(0);
    bool is_split = parts > 1 && terms < p->terms;
    snprintf(name, sizeof(name), "quant_matrix_%s_%s_64", p->w.format->name, dtype);
    struct kernel_launch launch = {.name = name,
                                   .fixed_grid = true,
                                   .grid = {(uint32_t)ceil_div(p->columns, 64),
                                            (uint32_t)ceil_div(p->rows, 64),
                                            (uint32_t)ceil_div(p->terms, terms)}};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, out);
    kernel_bind(&launch, is_split ? tn_vulkan_scratch(0, matrix_scratch(p),
                                                      TN_VULKAN_READS | TN_VULKAN_WRITES)
                                  : unused(plan));
    kernel_bind(&launch, is_split ? kernel_counters(small_tiles(p)) : unused(plan));
    push_matrices(&launch, p);
    launch.push[A_OFFSET_WORD] = (uint32_t)p->x->offset;
    kernel_push(&launch, launch.grid[2]);
    kernel_push(&launch, terms);
    while (launch.num_push < MATRIX_PUSH)
        kernel_push(&launch, 0);
    return kernel_launch(plan, &launch);
}

static tn_status plan_matrices(const tn_vulkan_plan *plan, const struct product *p,
                               const char *dtype)
{
    char name[VARIANT_NAME];
    if (strcmp(dtype, "bf16") != 0 || !has_large_tiles(p))
        return plan_small_tiles(plan, p, dtype);
    snprintf(name, sizeof(name), "quant_matrix_%s_bf16_128", p->w.format->name);
    struct kernel_launch launch = {
        .name = name,
        .fixed_grid = true,
        .grid = {(uint32_t)ceil_div(p->columns, 128), (uint32_t)ceil_div(p->rows, 128), 1}};
    kernel_bind(&launch, tn_vulkan_scratch(0, matrix_scratch(p), TN_VULKAN_READS));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    push_matrices(&launch, p);
    while (launch.num_push < MATRIX_PUSH) // batches
        kernel_push(&launch, 0);
    tn_status status = convert_x(plan, p);
    return status == TN_OK ? kernel_launch(plan, &launch) : status;
}

// --- in f32, and in bytes ---------------------------------------------------------------

static tn_status plan_packed(const tn_vulkan_plan *plan, const struct product *p,
                             bool in_fours)
{
    char name[VARIANT_NAME];
    bool has_dots = plan->limits->features & TN_VULKAN_HAS_DOTS &&
                    plan->limits->max_shared >= DOTS_SHARED;
    snprintf(name, sizeof(name), "quant_packed_%s_%u%s", p->w.format->name,
             (uint32_t)rows_at_once(p), has_dots && !p->exact ? "_dots" : "");
    struct kernel_launch launch = {.name = name, .groups = few_groups(p)};
    kernel_spec(&launch, in_fours);
    kernel_spec(&launch, strands_for(p));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(in_fours ? 0 : 1));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, p->columns / PACKED_ROWS);
    kernel_push(&launch, (uint64_t)p->x->offset);
    kernel_push(&launch, (uint64_t)p->blocks->offset / 16);
    kernel_push(&launch, (uint64_t)p->out->offset);
    return kernel_launch(plan, &launch);
}

// The variant's name and workgroups, of quant_matmul.comp.
static void choose_product(struct kernel_launch *launch, const struct product *p,
                           char name[VARIANT_NAME])
{
    if (p->rows <= FEW_ROWS) {
        snprintf(name, VARIANT_NAME, "quant_matmul_%s_few_%u", p->w.format->name,
                 (uint32_t)rows_at_once(p));
        launch->groups = few_groups(p);
        kernel_spec(launch, lanes_for(p->terms));
        return;
    }
    uint64_t tiles = ceil_div(p->rows, 64) * ceil_div(p->columns, 64);
    uint32_t tile = tiles >= ENOUGH_TILES ? 64 : 16;
    snprintf(name, VARIANT_NAME, "quant_matmul_%s_%u", p->w.format->name, tile);
    launch->groups = ceil_div(p->rows, tile) * ceil_div(p->columns, tile);
}

static tn_status plan_floats(const tn_vulkan_plan *plan, const struct product *p,
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
    kernel_push(&launch, (uint64_t)p->blocks->offset / unit_bytes(&p->w));
    kernel_push(&launch, (uint64_t)p->out->offset);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_quantized_matmul(const tn_vulkan_plan *plan)
{
    const tn_quant_matmul_attrs *attrs = plan->step->attrs;
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct product p;
    if (!describe(attrs->format, attrs->exact, x, &tn_step_input(plan->step, 1)->layout,
                  &tn_step_output(plan->step, 0)->layout, &p) ||
        layout_count(p.out) == 0)
        return TN_OK;
    const char *dtype = matrix_dtype(plan->limits, &p);
    bool in_fours = x->offset % 4 == 0 && !passes_program(tn_step_input(plan->step, 0));
    return dtype                                     ? plan_matrices(plan, &p, dtype)
           : p.rows <= FEW_ROWS && is_all_packed(&p) ? plan_packed(plan, &p, in_fours)
                                                     : plan_floats(plan, &p, in_fours);
}
