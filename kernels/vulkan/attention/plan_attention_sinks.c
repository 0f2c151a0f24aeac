// SPDX-License-Identifier: MIT
// nn.attention_with_sinks/1 with a window: the keys of a row in two splits or more, whose
// sums attention_combine.comp joins with the sink's. Without a window it is attention over
// a key more.
#include "plan_attention.h"

#include "../record.h"

// The inputs: q, k, v, sinks, mask, lengths.
static struct vk_attention windowed_attention(const tn_layout *const in[6])
{
    const tn_layout *plain[5] = {in[0], in[1], in[2], in[4], in[5]};
    struct vk_attention a = vk_attention_describe(plain);
    a.mask_input = 4;
    a.lengths_input = 5;
    a.sinks = in[3];
    vk_attention_divide(&a);
    a.splits = a.splits > 1 ? a.splits : 2;
    return a;
}

static struct vk_attention query_with_sinks(const tn_kernel_query *query)
{
    const tn_layout *in[6] = {NULL};
    for (uint32_t i = 0; i < query->num_inputs && i < 6; i++)
        in[i] = &query->inputs[i];
    return windowed_attention(in);
}

static int32_t sinks_accepts(const tn_kernel_query *query)
{
    const tn_attention_attrs *attrs = query->attrs;
    struct vk_attention a = query_with_sinks(query);
    return attrs->window > 0 && a.sinks->dtype == a.q->dtype &&
           vk_attention_is_taken(&a, attrs);
}

static uint64_t sinks_scratch(const tn_kernel_query *query)
{
    struct vk_attention a = query_with_sinks(query);
    return vk_attention_sums(&a);
}

static tn_status sinks_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *in[6] = {NULL};
    for (uint32_t i = 0; i < plan->step->num_inputs && i < 6; i++)
        in[i] = &tn_step_input(plan->step, i)->layout;
    struct vk_attention a = windowed_attention(in);
    a.attrs = plan->step->attrs;
    return vk_attention_plan(plan, &a);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule sinks_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                         // q
    {HALF_OR_F32, TN_NEEDS_ANY},                         // k
    {HALF_OR_F32, TN_NEEDS_ANY},                         // v
    {HALF_OR_F32, TN_NEEDS_ANY},                         // sinks
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                   // lengths
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(attention_with_sinks, "nn.attention_with_sinks/1", sinks_plan, KERNEL_OTHER,
           sinks_rules, .accepts = sinks_accepts, .scratch_size = sinks_scratch);
