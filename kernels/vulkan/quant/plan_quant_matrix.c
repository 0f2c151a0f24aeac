// SPDX-License-Identifier: MIT
// Products with quantised weights on cooperative matrices, where x and the weights become
// floats of 16 bits; decision 43 has the reasons. A launch before converts x. Another one
// converts the weights, if x has many rows; if it has fewer, each subgroup decodes those of
// its columns on the way to shared memory.
#include "plan_quant.h"

#include <stdio.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/quant_attrs.h>
#include "../reduce/plan_reduce.h"

#define MATRIX_GROUP 512
#define MATRIX_SHARED 43008
#define MATRIX_AXES 6      // of batches, of matmul_matrix.comp
#define LEAST_MATRIX 32    // columns
#define LEAST_WORK 4194304 // multiplications, as of other products

// Rows of x from which on decoding the weights once is faster: with 22016 x 4096 weights of
// q4_0 512 rows take 520 us on an H200, four times the 209 of 128 rows otherwise; 128 rows
// take 279. MOST_APART: most elements of decoded weights in memory.
#define ROWS_APART 256
#define MOST_APART (UINT64_C(1) << 27)

// Sizes of quant_matrix.comp: columns of a subgroup, subgroups, rows of a tile of x.
#define OWN_COLUMNS 32
#define SUBGROUPS 16
#define TILE_ROWS 16
#define PART 8 // elements that quant.glsl reads at a time

// Workgroups that a large device has work for: 22016 x 4096 takes 58.6 us with 344 of them,
// 65.8 with 688, 70.6 with 172.
#define ENOUGH_GROUPS 256

// Workgroups that a large device has work for, of floats: where fewer have tiles, some
// share the terms of each, at least so many.
#define ENOUGH_FLOATS 256
#define MOST_SPLITS 16
#define LEAST_TERMS 128
#define SLICE 32      // terms, which those of a workgroup are a multiple of
#define MANY_TILES 64 // of 128 x 128: fewer are of 64 x 64

// Scales of mxfp4 exceed the range of f16.
static bool needs_apart(const struct quant_product *p)
{
    return strcmp(p->w.format->name, "mxfp4") == 0;
}

// Rows of x up to which other kernels are faster, which read the weights once for up to 4
// rows. On an H200 steps of 32 layers of 4096 take 6.2 ms of 4 rows without cooperative
// matrices in q4_0, 5.1 with; 6.4 and 6.4 in q8_0; 8.3 and 10.7 in q4_k. Of 8 rows and q4_0
// 12 and 5.2.
static uint64_t rows_without(const struct quant_product *p)
{
    if (needs_apart(p))
        return FEW_ROWS;
    return p->w.is_packed && p->w.format->block == 32 && p->w.format->bytes <= 20 ? 2 : 4;
}

bool quant_may_round(const struct quant_product *p)
{
    return !p->exact && p->rows > rows_without(p) && p->columns >= LEAST_MATRIX &&
           tn_saturated_multiply(p->rows * p->columns, p->terms) >= LEAST_WORK;
}

// Whether the weights become floats in memory, for all tiles.
static bool is_decoded_apart(const struct quant_product *p)
{
    return (p->rows >= ROWS_APART || needs_apart(p)) &&
           tn_saturated_multiply(p->columns, p->terms) <= MOST_APART;
}

// --- floats -----------------------------------------------------------------------------

static uint64_t quant_matrix_plan_count_tiles(const struct quant_product *p, uint32_t tile)
{
    return ceil_div(p->rows, tile) * ceil_div(p->columns, tile);
}

static uint32_t tile_of(const struct quant_product *p)
{
    return quant_matrix_plan_count_tiles(p, 128) >= MANY_TILES ? 128 : 64;
}

// Parts of the terms that workgroups compute side by side, and that are added at the end.
static uint32_t quant_matrix_plan_count_splits(const struct quant_product *p)
{
    uint64_t tiles = quant_matrix_plan_count_tiles(p, tile_of(p));
    uint32_t splits = 1;
    while (is_decoded_apart(p) && splits < MOST_SPLITS && tiles * splits < ENOUGH_FLOATS &&
           p->terms % (2 * splits * SLICE) == 0 && p->terms / splits >= 2 * LEAST_TERMS)
        splits *= 2;
    return splits;
}

// Elements of x as floats of 16 bits: where they lie in tiles, whole workgroups'.
static uint64_t count_x(const struct quant_product *p)
{
    uint64_t rows = p->rows;
    if (!is_decoded_apart(p))
        rows = ceil_div(rows, 2 * TILE_ROWS) * 2 * TILE_ROWS;
    return rows * p->terms;
}

// Scratch memory: sums of splits, x as floats of 16 bits and the scales of its rows, and
// the weights, if they are decoded apart. Where these begin, and the end.
struct quant_offsets {
    uint64_t x, weights, end;
};

static uint64_t quant_matrix_plan_aligned(uint64_t bytes)
{
    return ceil_div(bytes, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
}

static struct quant_offsets quant_matrix_plan_offsets_of(const struct quant_product *p)
{
    uint32_t splits = quant_matrix_plan_count_splits(p);
    uint64_t sums = splits > 1 ? p->rows * p->columns * splits * sizeof(float) : 0;
    struct quant_offsets at = {.x = quant_matrix_plan_aligned(sums)};
    at.weights = at.x + quant_matrix_plan_aligned(count_x(p) * sizeof(uint16_t) +
                                                  ceil_div(p->rows, 4) * 4 * sizeof(float));
    at.end =
        at.weights + (is_decoded_apart(p) ? p->columns * p->terms * sizeof(uint16_t) : 0);
    return at;
}

uint64_t quant_matrix_scratch(const struct quant_product *p)
{
    return quant_may_round(p) ? quant_matrix_plan_offsets_of(p).end : 0;
}

// bf16 has the range of f32, and is off by less than the attribute allows. Blocks are
// decoded to f16, by fewer instructions, as x is scaled.
static const char *quant_matrix_plan_dtype_of(const tn_vulkan_limits *limits,
                                              const struct quant_product *p)
{
    bool is_apart = is_decoded_apart(p);
    if (is_apart && limits->features & TN_VULKAN_HAS_BF16_MATRICES)
        return "bf16";
    return limits->features & TN_VULKAN_HAS_F16_MATRICES && (is_apart || !needs_apart(p))
               ? "f16"
               : NULL;
}

const char *quant_matrix_dtype(const tn_vulkan_limits *limits,
                               const struct quant_product *p)
{
    if (!quant_may_round(p) || limits->subgroup_size != 32 ||
        limits->max_invocations < MATRIX_GROUP || limits->max_shared < MATRIX_SHARED ||
        ceil_div(p->columns, OWN_COLUMNS) > limits->max_groups[0] ||
        ceil_div(p->rows, TILE_ROWS) > limits->max_groups[1])
        return NULL;
    return quant_matrix_plan_dtype_of(limits, p);
}

// As the shaders' IS_PACKED: 2 where rows are read by four bytes, 3 where all of them are
// packed, too.
static uint32_t packed_rows(const struct quant_product *p)
{
    return !p->w.is_packed            ? 0
           : p->blocks->offset % 4    ? 1
           : p->columns % PACKED_ROWS ? 2
                                      : 3;
}

static tn_vulkan_operand scratch_x(const struct quant_product *p, uint16_t access)
{
    struct quant_offsets at = quant_matrix_plan_offsets_of(p);
    return tn_vulkan_scratch(at.x, at.weights - at.x, access);
}

static tn_vulkan_operand scratch_weights(const struct quant_product *p, uint16_t access)
{
    struct quant_offsets at = quant_matrix_plan_offsets_of(p);
    return tn_vulkan_scratch(at.weights, at.end - at.weights, access);
}

// x as `dtype`: in rows, or scaled in tiles.
static tn_status convert_x(const tn_vulkan_plan *plan, const struct quant_product *p,
                           const char *dtype)
{
    char name[VARIANT_NAME];
    bool is_tiled = !is_decoded_apart(p);
    snprintf(name, sizeof(name), "quant_x_%s", dtype);
    struct kernel_launch launch = {.name = name, .groups = p->rows};
    kernel_spec(&launch, is_tiled);
    kernel_spec(&launch, p->x->offset % 4 == 0);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, scratch_x(p, TN_VULKAN_WRITES));
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->terms / PART);
    kernel_push(&launch, (uint64_t)p->x->offset);
    kernel_push(&launch, count_x(p) / PART);
    return kernel_launch(plan, &launch);
}

// The weights as `dtype`.
static tn_status decode_weights(const tn_vulkan_plan *plan, const struct quant_product *p,
                                const char *dtype)
{
    char name[VARIANT_NAME];
    uint64_t strips = ceil_div(p->columns, PACKED_ROWS) * ceil_div(p->terms, 64);
    snprintf(name, sizeof(name), "quant_halves_%s_%s", p->w.format->name, dtype);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(strips * 32, 256)};
    kernel_spec(&launch, (uint32_t)(p->blocks->offset % 2));
    kernel_spec(&launch, packed_rows(p));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, scratch_weights(p, TN_VULKAN_WRITES));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms / 32);
    kernel_push(&launch, (uint64_t)p->blocks->offset / quant_unit_bytes(&p->w));
    return kernel_launch(plan, &launch);
}

// The product of x and the weights as floats.
static tn_status quant_matrix_plan_multiply_floats(const tn_vulkan_plan *plan,
                                                   const struct quant_product *p,
                                                   const char *dtype)
{
    char name[VARIANT_NAME];
    uint32_t tile = tile_of(p), splits = quant_matrix_plan_count_splits(p);
    snprintf(name, sizeof(name), "matmul_matrix_%s_%u_f32", dtype, tile);
    struct kernel_launch launch = {.name = name,
                                   .fixed_grid = true,
                                   .grid = {(uint32_t)ceil_div(p->columns, tile),
                                            (uint32_t)ceil_div(p->rows, tile), splits}};
    const uint32_t constants[] = {splits > 1, 1, 1, 0, 0, 0};
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        kernel_spec(&launch, constants[i]);
    kernel_bind(&launch, scratch_x(p, TN_VULKAN_READS));
    kernel_bind(&launch, scratch_weights(p, TN_VULKAN_READS));
    kernel_bind(&launch, splits > 1
                             ? tn_vulkan_scratch(0, quant_matrix_plan_offsets_of(p).x,
                                                 TN_VULKAN_WRITES)
                             : tn_vulkan_output(0));
    uint64_t terms = p->terms / splits;
    const uint64_t words[] = {p->rows,
                              p->columns,
                              terms,
                              splits,
                              0,
                              0,
                              splits > 1 ? 0 : (uint64_t)p->out->offset,
                              p->terms, // from row to row of x, and from term to term
                              1,
                              1, // and of the weights
                              p->terms};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(&launch, words[i]);
    const uint64_t batches[] = {splits, terms, terms}; // extent, and strides of both
    for (size_t i = 0; i < 3 * MATRIX_AXES; i++)
        kernel_push(&launch, i % MATRIX_AXES == 0 ? batches[i / MATRIX_AXES] : 0);
    tn_status status = kernel_launch(plan, &launch);
    return status == TN_OK && splits > 1
               ? vk_plan_sum_splits(plan, p->rows * p->columns, splits)
               : status;
}

// Subgroups of a workgroup that have columns of their own: with more of them x is read less
// often, with fewer there are enough workgroups.
static uint32_t count_across(const struct quant_product *p)
{
    uint64_t groups = ceil_div(p->rows, 2 * TILE_ROWS) * ceil_div(p->columns, OWN_COLUMNS);
    uint32_t across = 1;
    while (across < SUBGROUPS / 2 && groups / (2 * across) >= ENOUGH_GROUPS)
        across *= 2;
    return across;
}

// The product of x and the blocks.
static tn_status quant_matrix_plan_multiply_blocks(const tn_vulkan_plan *plan,
                                                   const struct quant_product *p)
{
    char name[VARIANT_NAME];
    uint32_t across = count_across(p), row_tiles = p->rows > TILE_ROWS ? 2 : 1;
    uint64_t columns = (uint64_t)across * OWN_COLUMNS;
    snprintf(name, sizeof(name), "quant_matrix_%s", p->w.format->name);
    struct kernel_launch launch = {
        .name = name,
        .fixed_grid = true,
        .grid = {(uint32_t)ceil_div(p->columns, columns),
                 (uint32_t)ceil_div(p->rows, row_tiles * TILE_ROWS), 1}};
    kernel_spec(&launch, (uint32_t)(p->blocks->offset % 2));
    kernel_spec(&launch, packed_rows(p));
    kernel_spec(&launch, across);
    kernel_spec(&launch, row_tiles);
    kernel_bind(&launch, scratch_x(p, TN_VULKAN_READS));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_push(&launch, p->rows);
    kernel_push(&launch, p->columns);
    kernel_push(&launch, p->terms);
    kernel_push(&launch, (uint64_t)p->blocks->offset / quant_unit_bytes(&p->w));
    kernel_push(&launch, (uint64_t)p->out->offset);
    kernel_push(&launch, count_x(p) / PART);
    return kernel_launch(plan, &launch);
}

tn_status quant_plan_matrices(const tn_vulkan_plan *plan, const struct quant_product *p,
                              const char *dtype)
{
    tn_status status = convert_x(plan, p, dtype);
    if (status != TN_OK || !is_decoded_apart(p))
        return status == TN_OK ? quant_matrix_plan_multiply_blocks(plan, p) : status;
    status = decode_weights(plan, p, dtype);
    return status == TN_OK ? quant_matrix_plan_multiply_floats(plan, p, dtype) : status;
}
