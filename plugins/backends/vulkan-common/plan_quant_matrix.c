// SPDX-License-Identifier: MIT
// Products with quantised weights on matrix units, where x and the weights become floats of
// 16 bits; decision 43 has the reasons. x does so in a launch before. So do the weights,
// where x has many rows; where it has fewer, they do in each tile, on the way to shared
// memory.
#include "plan_quant.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/quant_attrs.h>

#define MATRIX_GROUP 128
#define MATRIX_SHARED 20480
#define MATRIX_AXES 6      // of batches, of matmul_matrix.comp
#define LEAST_MATRIX 32    // columns
#define LEAST_WORK 4194304 // multiplications, as of other products
#define SLICE 32           // terms, which those of a workgroup are a multiple of

// Rows of x from which on decoding the weights once is faster: with 22016 x 4096 weights of
// q4_0 512 rows take 629 us on an H200, 901 in tiles; 128 rows 412, 282. And as many
// elements of the weights as that memory may have.
#define ROWS_APART 256
#define MOST_APART (UINT64_C(1) << 27)

// Workgroups that a large device has work for: where fewer have tiles, some share the terms
// of each, at least so many. Tiles of blocks need more workgroups, as they wait longer: on
// an H200 32 rows of x and 4096 x 4096 weights of q4_0 took 35 us, 47 with 256 workgroups;
// later 29, and 48 where x is read as f32 and the workgroup that is done last adds the
// parts.
#define ENOUGH_FLOATS 256
#define ENOUGH_BLOCKS 512
#define MOST_PARTS 16
#define LEAST_TERMS 128
#define MANY_TILES 64 // of 128 x 128: fewer are of 64 x 64

// Whether shape and attributes let x become floats of 16 bits.
static bool may_round(const struct quant_product *p)
{
    return !p->exact && p->rows > FEW_ROWS && p->columns >= LEAST_MATRIX &&
           tn_saturated_multiply(p->rows * p->columns, p->terms) >= LEAST_WORK;
}

// Whether the weights become floats in memory, for all tiles.
static bool is_decoded_apart(const struct quant_product *p)
{
    return p->rows >= ROWS_APART &&
           tn_saturated_multiply(p->columns, p->terms) <= MOST_APART;
}

static uint64_t count_tiles(const struct quant_product *p, uint32_t tile)
{
    return ceil_div(p->rows, tile) * ceil_div(p->columns, tile);
}

static uint32_t tile_of(const struct quant_product *p)
{
    return is_decoded_apart(p) && count_tiles(p, 128) >= MANY_TILES ? 128 : 64;
}

// Parts of the terms that have workgroups of their own, and are added in the end.
static uint32_t count_parts(const struct quant_product *p)
{
    uint64_t enough = is_decoded_apart(p) ? ENOUGH_FLOATS : ENOUGH_BLOCKS;
    uint64_t tiles = count_tiles(p, tile_of(p));
    uint32_t parts = 1;
    while (parts < MOST_PARTS && tiles * parts < enough &&
           p->terms % (2 * parts * SLICE) == 0 && p->terms / parts >= 2 * LEAST_TERMS)
        parts *= 2;
    return parts;
}

// Scratch memory: sums of parts, x as floats of 16 bits, and the weights, if they are
// decoded apart. Where these begin, and the end.
struct places {
    uint64_t x, weights, end;
};

static uint64_t aligned(uint64_t bytes)
{
    return ceil_div(bytes, SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT;
}

static struct places places_of(const struct quant_product *p)
{
    uint32_t parts = count_parts(p);
    uint64_t sums = parts > 1 ? p->rows * p->columns * parts * sizeof(float) : 0;
    struct places at = {.x = aligned(sums)};
    at.weights = at.x + aligned(p->rows * p->terms * sizeof(uint16_t));
    at.end =
        at.weights + (is_decoded_apart(p) ? p->columns * p->terms * sizeof(uint16_t) : 0);
    return at;
}

uint64_t quant_matrix_scratch(const struct quant_product *p)
{
    return may_round(p) ? places_of(p).end : 0;
}

// bf16 has the range of f32, and is off by less than the attribute allows; f16 has not.
const char *quant_matrix_dtype(const tn_vulkan_limits *limits,
                               const struct quant_product *p)
{
    if (!may_round(p) || limits->subgroup_size != 32 ||
        limits->max_invocations < MATRIX_GROUP || limits->max_shared < MATRIX_SHARED ||
        ceil_div(p->columns, 64) > limits->max_groups[0] ||
        ceil_div(p->rows, 64) > limits->max_groups[1])
        return NULL;
    return limits->features & TN_VULKAN_HAS_BF16_MATRICES  ? "bf16"
           : limits->features & TN_VULKAN_HAS_F16_MATRICES ? "f16"
                                                           : NULL;
}

// As the shaders' IS_PACKED: 2 where rows are read by four bytes.
static uint32_t packed_rows(const struct quant_product *p)
{
    return !p->w.is_packed ? 0 : p->blocks->offset % 4 == 0 ? 2 : 1;
}

static tn_vulkan_operand scratch_x(const struct quant_product *p, uint16_t access)
{
    struct places at = places_of(p);
    return tn_vulkan_scratch(at.x, at.weights - at.x, access);
}

static tn_vulkan_operand scratch_weights(const struct quant_product *p, uint16_t access)
{
    struct places at = places_of(p);
    return tn_vulkan_scratch(at.weights, at.end - at.weights, access);
}

// x as `dtype`.
static tn_status convert_x(const tn_vulkan_plan *plan, const struct quant_product *p,
                           const char *dtype)
{
    char name[VARIANT_NAME];
    uint64_t pairs = p->rows * p->terms / 2;
    snprintf(name, sizeof(name), "quant_x_%s", dtype);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(pairs, 256)};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, scratch_x(p, TN_VULKAN_WRITES));
    kernel_push(&launch, pairs);
    kernel_push(&launch, (uint64_t)p->x->offset);
    return kernel_launch(plan, &launch);
}

// The weights as `dtype`.
static tn_status decode_weights(const tn_vulkan_plan *plan, const struct quant_product *p,
                                const char *dtype)
{
    char name[VARIANT_NAME];
    uint64_t rows = ceil_div(p->columns, PACKED_ROWS) * PACKED_ROWS, parts = p->terms / 32;
    snprintf(name, sizeof(name), "quant_halves_%s_%s", p->w.format->name, dtype);
    struct kernel_launch launch = {.name = name, .groups = ceil_div(rows * parts, 256)};
    kernel_spec(&launch, (uint32_t)(p->blocks->offset % 2));
    kernel_spec(&launch, packed_rows(p));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, scratch_weights(p, TN_VULKAN_WRITES));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_push(&launch, p->columns);
    kernel_push(&launch, parts);
    kernel_push(&launch, (uint64_t)p->blocks->offset / quant_unit_bytes(&p->w));
    return kernel_launch(plan, &launch);
}

// The product of x and the weights: blocks, or floats.
static tn_status multiply(const tn_vulkan_plan *plan, const struct quant_product *p,
                          const char *dtype)
{
    char name[VARIANT_NAME];
    bool is_apart = is_decoded_apart(p);
    uint32_t tile = tile_of(p), parts = count_parts(p);
    if (is_apart)
        snprintf(name, sizeof(name), "matmul_matrix_%s_%u_f32", dtype, tile);
    else
        snprintf(name, sizeof(name), "quant_matrix_%s_%s", p->w.format->name, dtype);
    struct kernel_launch launch = {.name = name,
                                   .fixed_grid = true,
                                   .grid = {(uint32_t)ceil_div(p->columns, tile),
                                            (uint32_t)ceil_div(p->rows, tile), parts}};
    const uint32_t constants[] = {parts > 1, 1, 1, 0, 0, 0};
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        kernel_spec(&launch, constants[i]);
    kernel_bind(&launch, scratch_x(p, TN_VULKAN_READS));
    if (is_apart) {
        kernel_bind(&launch, scratch_weights(p, TN_VULKAN_READS));
    } else {
        kernel_spec(&launch, (uint32_t)(p->blocks->offset % 2));
        kernel_spec(&launch, packed_rows(p));
        kernel_bind(&launch, tn_vulkan_input(1));
    }
    kernel_bind(&launch, parts > 1 ? tn_vulkan_scratch(0, places_of(p).x, TN_VULKAN_WRITES)
                                   : tn_vulkan_output(0));
    if (!is_apart)
        kernel_bind(&launch, tn_vulkan_input(1));
    uint64_t terms = p->terms / parts;
    uint64_t from = (uint64_t)p->blocks->offset / quant_unit_bytes(&p->w);
    const uint64_t words[] = {p->rows,
                              p->columns,
                              terms,
                              parts,
                              0,
                              is_apart ? 0 : from,
                              parts > 1 ? 0 : (uint64_t)p->out->offset,
                              p->terms, // from row to row of x, and from term to term
                              1,
                              1, // and of the weights
                              p->terms};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        kernel_push(&launch, words[i]);
    const uint64_t batches[] = {parts, terms, terms}; // extent, and strides of both
    for (size_t i = 0; i < 3 * MATRIX_AXES; i++)
        kernel_push(&launch, i % MATRIX_AXES == 0 ? batches[i / MATRIX_AXES] : 0);
    tn_status status = kernel_launch(plan, &launch);
    return status == TN_OK && parts > 1
               ? vk_plan_sum_parts(plan, p->rows * p->columns, parts)
               : status;
}

tn_status quant_plan_matrices(const tn_vulkan_plan *plan, const struct quant_product *p,
                              const char *dtype)
{
    tn_status status = convert_x(plan, p, dtype);
    if (status == TN_OK && is_decoded_apart(p))
        status = decode_weights(plan, p, dtype);
    return status == TN_OK ? multiply(plan, p, dtype) : status;
}
