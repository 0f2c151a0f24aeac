// SPDX-License-Identifier: MIT
// Caches that several sequences share. Attention over them, quant.cached_attention/1: the
// kernels of attention, with slots; of blocks that of few rows alone, for q8_0. Rows that
// are written to them, quant.cache_update/1 (updates.comp): two caches and queries are one
// launch, which the backend plans.
#include "plan_cache.h"

#include <stdio.h>
#include <string.h>
#include <tenon/ops/quant_attrs.h>
#include "../move/plan_copy.h"
#include "plan_attention.h"
#include "../record.h"

#define BLOCK 32 // elements of q8_0
#define BLOCK_BYTES 34

static bool has_blocks(const char *format)
{
    return format && format[0];
}

static struct vk_attention cache_plan_describe(const tn_quant_cached_attention_attrs *attrs,
                                               const tn_layout *const in[5])
{
    const tn_layout *const plain[5] = {in[0], in[1], in[2], NULL, in[3]};
    struct vk_attention a = vk_attention_describe(plain);
    a.is_blocks = has_blocks(attrs->format);
    a.slots = in[4];
    a.num_batch = (uint32_t)a.q->rank - 3; // also where there is one: slots have strides
    a.lengths_input = 3;
    a.slots_input = 4;
    if (a.is_blocks)
        a.width = a.width / BLOCK_BYTES * BLOCK;
    vk_attention_divide(&a);
    return a;
}

static struct vk_attention cache_plan_describe_query(const tn_kernel_query *query)
{
    const tn_layout *in[5];
    for (uint32_t i = 0; i < 5; i++)
        in[i] = &query->inputs[i];
    return cache_plan_describe(query->attrs, in);
}

static tn_attention_attrs attention_attrs(const tn_quant_cached_attention_attrs *attrs)
{
    return (tn_attention_attrs){.scale = attrs->scale,
                                .is_causal = attrs->is_causal,
                                .window = attrs->window,
                                .soft_cap = attrs->soft_cap};
}

static int32_t cached_attention_accepts(const tn_kernel_query *query)
{
    const tn_quant_cached_attention_attrs *attrs = query->attrs;
    struct vk_attention a = cache_plan_describe_query(query);
    bool is_few = vk_attention_is_few(&a);
    // Positions of rows and keys are counted as of nn.scaled_dot_product_attention.
    struct vk_attention of_floats = a;
    tn_attention_attrs own = attention_attrs(attrs);
    if (!a.is_blocks)
        return vk_attention_is_taken(&a, &own) &&
               (query->fused == 0 || (is_few && vk_attention_by_vectors(&a)));
    of_floats.k = of_floats.v = a.q;
    return strcmp(attrs->format, "q8_0") == 0 && a.q->dtype == TN_F32 && is_few &&
           vk_attention_is_taken(&of_floats, &own);
}

static uint64_t cached_attention_scratch(const tn_kernel_query *query)
{
    struct vk_attention a = cache_plan_describe_query(query);
    return vk_attention_sums(&a);
}

static tn_status cached_attention_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *in[5];
    for (uint32_t i = 0; i < 5; i++)
        in[i] = &tn_step_input(plan->step, i)->layout;
    struct vk_attention a = cache_plan_describe(plan->step->attrs, in);
    tn_attention_attrs attrs = attention_attrs(plan->step->attrs);
    a.attrs = &attrs;
    return vk_attention_plan(plan, &a);
}

// --- updates ---------------------------------------------------------------------------

#define MOST_COUNTED (INT64_C(1) << 30) // positions, slots: sums of two are integers
#define MOST_ELEMENTS 0xffffffff

static int32_t cache_update_accepts(const tn_kernel_query *query)
{
    const tn_quant_cache_update_attrs *attrs = query->attrs;
    const tn_layout *cache = &query->inputs[0], *out = &query->outputs[0];
    bool is_known = has_blocks(attrs->format) ? strcmp(attrs->format, "q8_0") == 0
                                              : cache->dtype != TN_U8;
    return is_known && out->extent[0] < MOST_COUNTED && out->extent[2] < MOST_COUNTED &&
           layout_count(out) + (uint64_t)out->offset <= MOST_ELEMENTS &&
           layout_count(&query->inputs[1]) <= MOST_ELEMENTS;
}

const char *vk_cache_kind(const tn_step *step)
{
    tn_dtype dtype = tn_step_output(step, 0)->layout.dtype;
    return dtype == TN_U8 ? "q8_0" : dtype == TN_F16 ? "f16" : "f32";
}

struct updates_region vk_cache_region(const tn_step *step)
{
    const tn_layout *rows = &tn_step_input(step, 1)->layout;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    struct updates_region r = {.n = (uint32_t)layout_count(rows),
                               .from_offset = (uint32_t)rows->offset,
                               .to_offset = (uint32_t)out->offset,
                               .length = (uint32_t)out->extent[2],
                               .most = (uint32_t)out->extent[0]};
    for (int32_t i = 0; i < UPDATES_AXES; i++) {
        if (i > 0)
            r.extent[i - 1] = (uint32_t)rows->extent[i];
        r.from_stride[i] = (uint32_t)rows->stride[i];
        r.to_stride[i] = (uint32_t)out->stride[i];
    }
    if (out->dtype == TN_U8)
        r.to_stride[UPDATES_AXES - 1] = 0; // the shader counts blocks
    return r;
}

static tn_status cache_update_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    const tn_layout *positions = &tn_step_input(step, 2)->layout;
    struct updates_region region = vk_cache_region(step);
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name,
                                   .groups = ceil_div(region.n, UPDATES_GROUP)};
    tn_status status = plan->shares(plan, 0, 0) ? TN_OK : vk_plan_copy(plan, 0, out);
    if (status != TN_OK || region.n == 0 || layout_count(out) == 0)
        return status;
    snprintf(name, sizeof(name), "updates_%s_1", vk_cache_kind(step));
    kernel_bind(&launch, tn_vulkan_data(&region, sizeof(region)));
    kernel_bind(&launch, tn_vulkan_input(2));
    kernel_bind(&launch, tn_vulkan_input(3));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, (uint64_t)positions->offset);
    kernel_push(&launch, (uint64_t)tn_step_input(step, 3)->layout.offset);
    kernel_push(&launch, (uint64_t)positions->extent[0]);
    return kernel_launch(plan, &launch);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule cached_attention_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                       // q
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ANY}, // k
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ANY}, // v
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                 // lengths
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_ANY},              // slots
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule cache_update_rules[] = {
    {TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_U8),
     TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_ANY, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_CONTIGUOUS}, // positions
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_CONTIGUOUS}, // slots
    {TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_U8),
     TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(cached_attention, "quant.cached_attention/1", cached_attention_plan,
           KERNEL_CACHED_ATTENTION, cached_attention_rules,
           .accepts = cached_attention_accepts, .scratch_size = cached_attention_scratch);
OWN_KERNEL(cache_update, "quant.cache_update/1", cache_update_plan, KERNEL_CACHE_UPDATE,
           cache_update_rules, .accepts = cache_update_accepts);
