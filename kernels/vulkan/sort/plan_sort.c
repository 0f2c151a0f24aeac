// SPDX-License-Identifier: MIT
// Sorts indices on the device, as pairs of a key and a position (sort.comp): few by their
// ranks, many by a radix sort.
#include "plan_sort.h"

#include <stdio.h>
#include <tenon/checked.h>

// Most indices that are ranked: one dispatch compares each with all.
#define MAX_RANKED 1024
#define MAX_TILES 256     // most tiles of a radix sort: a workgroup each
#define MIN_TILE_SHIFT 10 // log2 of a tile's indices
#define MAX_DIGIT_BITS 8

// How `count` keys of 0 .. extent are sorted, and the layout of the scratch memory.
struct sort_plan {
    uint32_t passes, digit_bits; // no passes: sorted by ranks
    uint32_t tile_shift, tiles;
    uint64_t pairs; // bytes of an array of keys, or of positions
    uint64_t bytes; // in all: keys and positions (twice for a radix sort), then counts
};

static uint32_t sort_plan_bits_of(uint64_t value)
{
    uint32_t bits = 0;
    for (; value > 0; value >>= 1)
        bits++;
    return bits;
}

// Fills *out. False: more bytes than 64 bits can count.
static bool sort_plan_describe(uint64_t count, uint64_t extent, struct sort_plan *out)
{
    uint64_t all, counts;
    *out = (struct sort_plan){.tile_shift = MIN_TILE_SHIFT};
    if (!tn_checked_multiply(count, sizeof(uint32_t), &all) ||
        !tn_checked_round_up(all, TN_VULKAN_ALIGNMENT, &out->pairs))
        return false;
    if (count <= MAX_RANKED)
        return tn_checked_multiply(out->pairs, 2, &out->bytes);
    out->passes = (uint32_t)ceil_div(sort_plan_bits_of(extent), MAX_DIGIT_BITS);
    out->digit_bits = (uint32_t)ceil_div(sort_plan_bits_of(extent), out->passes);
    while (ceil_div(count, UINT64_C(1) << out->tile_shift) > MAX_TILES)
        out->tile_shift++;
    out->tiles = (uint32_t)ceil_div(count, UINT64_C(1) << out->tile_shift);
    counts = (uint64_t)out->passes * out->tiles * 256 * sizeof(uint32_t);
    return tn_checked_multiply(out->pairs, 4, &all) &&
           tn_checked_add(all, counts, &out->bytes);
}

uint64_t vk_sort_scratch(uint64_t count, uint64_t extent)
{
    struct sort_plan s;
    return sort_plan_describe(count, extent, &s) ? s.bytes : UINT64_MAX;
}

// The keys of buffer `which`, 0 or 1, of the radix sort's two.
static tn_vulkan_operand sort_plan_keys(const struct sort_plan *s, uint32_t which,
                                        uint16_t access)
{
    return tn_vulkan_scratch(which * 2 * s->pairs, s->pairs, access);
}

// The positions that belong to these keys.
static tn_vulkan_operand sort_plan_positions(const struct sort_plan *s, uint32_t which,
                                             uint16_t access)
{
    return tn_vulkan_scratch((which * 2 + 1) * s->pairs, s->pairs, access);
}

static tn_vulkan_operand sort_plan_counts(const struct sort_plan *s, uint16_t access)
{
    return tn_vulkan_scratch(4 * s->pairs, s->bytes - 4 * s->pairs, access);
}

static void push_sorting(struct kernel_launch *launch, const tn_vulkan_plan *plan,
                         const struct vk_indices *indices, const struct sort_plan *s,
                         uint32_t pass)
{
    uint64_t offset = (uint64_t)tn_step_input(plan->step, indices->input)->layout.offset;
    kernel_push(launch, indices->count);
    kernel_push(launch, indices->extent);
    kernel_push(launch, offset + indices->first);
    kernel_push(launch, pass);
    kernel_push(launch, s->passes);
    kernel_push(launch, s->digit_bits);
    kernel_push(launch, s->tile_shift);
    kernel_push(launch, s->tiles);
}

static const char *variant_name(char name[VARIANT_NAME], const char *op,
                                const tn_vulkan_plan *plan,
                                const struct vk_indices *indices)
{
    snprintf(name, VARIANT_NAME, "sort_%s_%s", op,
             dtype_glsl(tn_step_input(plan->step, indices->input)->layout.dtype));
    return name;
}

static tn_status plan_ranks(const tn_vulkan_plan *plan, const struct vk_indices *indices,
                            const struct sort_plan *s)
{
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = variant_name(name, "rank", plan, indices),
                                   .groups = ceil_div(indices->count, 256)};
    kernel_bind(&launch, tn_vulkan_input(indices->input));
    kernel_bind(&launch, sort_plan_keys(s, 0, TN_VULKAN_WRITES));
    kernel_bind(&launch, sort_plan_positions(s, 0, TN_VULKAN_WRITES));
    push_sorting(&launch, plan, indices, s, 0);
    return kernel_launch(plan, &launch);
}

static tn_status plan_keys(const tn_vulkan_plan *plan, const struct vk_indices *indices,
                           const struct sort_plan *s)
{
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = variant_name(name, "keys", plan, indices),
                                   .groups = s->tiles};
    kernel_bind(&launch, tn_vulkan_input(indices->input));
    kernel_bind(&launch, sort_plan_keys(s, 0, TN_VULKAN_WRITES));
    kernel_bind(&launch, sort_plan_counts(s, TN_VULKAN_WRITES));
    push_sorting(&launch, plan, indices, s, 0);
    return kernel_launch(plan, &launch);
}

// A pass of the radix sort: moves the pairs to the other buffer, ordered by one digit.
static tn_status plan_radix_pass(const tn_vulkan_plan *plan,
                                 const struct vk_indices *indices,
                                 const struct sort_plan *s, uint32_t pass)
{
    uint32_t from = pass % 2, to = 1 - from;
    struct kernel_launch launch = {.name = "sort_write", .groups = s->tiles};
    kernel_bind(&launch, sort_plan_keys(s, from, TN_VULKAN_READS));
    kernel_bind(&launch, sort_plan_positions(s, from, TN_VULKAN_READS));
    kernel_bind(&launch, sort_plan_keys(s, to, TN_VULKAN_WRITES));
    kernel_bind(&launch, sort_plan_positions(s, to, TN_VULKAN_WRITES));
    kernel_bind(&launch, sort_plan_counts(s, TN_VULKAN_READS | TN_VULKAN_WRITES));
    push_sorting(&launch, plan, indices, s, pass);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_sort(const tn_vulkan_plan *plan, const struct vk_indices *indices,
                       tn_vulkan_operand *out_keys, tn_vulkan_operand *out_positions)
{
    struct sort_plan s;
    if (!sort_plan_describe(indices->count, indices->extent, &s))
        return plan->host->fail(plan->host, TN_ERR_MEMORY,
                                "%llu indices are too many to be sorted",
                                (unsigned long long)indices->count);
    tn_status status =
        s.passes == 0 ? plan_ranks(plan, indices, &s) : plan_keys(plan, indices, &s);
    for (uint32_t pass = 0; pass < s.passes && status == TN_OK; pass++)
        status = plan_radix_pass(plan, indices, &s, pass);
    *out_keys = sort_plan_keys(&s, s.passes % 2, TN_VULKAN_READS);
    *out_positions = sort_plan_positions(&s, s.passes % 2, TN_VULKAN_READS);
    return status;
}
