// SPDX-License-Identifier: MIT
// nn.attention_grad/1 of f32 and halves (attention_grad.comp): two launches, of queries and
// then of keys and values, and between them a vector for each query. Halves by cooperative
// matrices where the device has them (attention_grad_matrix.comp).
#include "plan_attention.h"

#include <stdio.h>
#include <tenon/checked.h>
#include "../record.h"

#define FEW_GROUPS 128 // with fewer workgroups tiles have fewer rows, for a large device
#define OPERANDS 10    // of a launch

// --- operands --------------------------------------------------------------------------

struct attention_grad_plan {
    struct vk_attention of;
    const tn_layout *out, *gradient;
};

// in: q, k, v, out, gradient, and the mask and lengths, or NULL.
static struct attention_grad_plan attention_grad_plan_describe(const tn_layout *const in[7])
{
    const tn_layout *const of[5] = {in[0], in[1], in[2], in[5], in[6]};
    struct attention_grad_plan g = {vk_attention_describe(of), in[3], in[4]};
    return g;
}

static struct attention_grad_plan
attention_grad_plan_describe_query(const tn_kernel_query *query)
{
    const tn_layout *in[7] = {NULL};
    for (uint32_t i = 0; i < query->num_inputs && i < 7; i++)
        in[i] = &query->inputs[i];
    return attention_grad_plan_describe(in);
}

static int32_t attention_grad_accepts(const tn_kernel_query *query)
{
    struct attention_grad_plan g = attention_grad_plan_describe_query(query);
    return vk_attention_is_taken(&g.of, query->attrs) && g.out->dtype == g.of.q->dtype &&
           g.gradient->dtype == g.of.q->dtype && g.of.depth > 0 && g.of.width > 0 &&
           g.of.depth <= VK_ATTENTION_COLUMNS;
}

static uint64_t states_size(const struct vk_attention *a)
{
    uint64_t rows = tn_saturated_multiply(a->batches * a->groups, vk_attention_rows(a));
    return tn_saturated_multiply(rows, VK_VECTOR);
}

static uint64_t plan_attention_grad_scratch(const tn_kernel_query *query)
{
    struct attention_grad_plan g = attention_grad_plan_describe_query(query);
    return states_size(&g.of);
}

// --- tiles -----------------------------------------------------------------------------

// Own rows of a workgroup, rows of the other kind, invocations of a row, and vectors of a
// row in shared memory; 0: it holds whole rows, of up to HELD_COLUMNS. The first one that
// there are rows for, and that the device has memory for; else the last one.
static const struct attention_grad_plan_tile {
    uint32_t rows, others, lanes, slice;
} tiles[] = {{64, 16, 8, 0},  {32, 16, 8, 0},  {64, 64, 16, 8},
             {32, 64, 16, 8}, {32, 64, 16, 4}, {16, 32, 16, 4}};
#define HELD_COLUMNS 64

// The constants of attention_grad.comp, in the order of their ids.
struct attention_grad_plan_constants {
    uint32_t group, rows, others, slice, each, k_totals, v_totals, k_chunk, v_chunk,
        own_size, other_size, p_size, lanes, holds, has_cap, is_whole;
};
#define NUM_CONSTANTS (sizeof(struct attention_grad_plan_constants) / sizeof(uint32_t))

// Vectors of sums of an invocation, one of `lanes` that share the vectors of four rows.
static uint32_t totals_of(uint64_t columns, uint32_t lanes)
{
    uint64_t vectors = ceil_div(columns, 4ull * lanes);
    return (uint32_t)(vectors > 0 ? vectors : 1) * 4;
}

// The greatest power of 2 of which rows of `totals` fit into the memory of others.
static uint32_t chunk_of(const struct attention_grad_plan_constants *c, uint32_t totals)
{
    uint32_t chunk = c->others;
    while (chunk > 4 && chunk * c->lanes * (totals / 4) > c->other_size)
        chunk /= 2;
    return chunk;
}

static struct attention_grad_plan_constants
attention_grad_plan_constants_of(const struct attention_grad_plan_tile *tile,
                                 const struct vk_attention *a)
{
    struct attention_grad_plan_constants c = {.group = tile->rows / 4 * tile->lanes,
                                              .rows = tile->rows,
                                              .others = tile->others,
                                              .each = tile->others / tile->lanes,
                                              .k_totals = totals_of(a->depth, tile->lanes),
                                              .v_totals = totals_of(a->width, tile->lanes),
                                              // 1 more: no bank conflicts
                                              .p_size = tile->others * (tile->rows / 4 + 1),
                                              .lanes = tile->lanes,
                                              .holds = tile->slice == 0};
    uint32_t most = c.k_totals > c.v_totals ? c.k_totals : c.v_totals;
    c.slice = c.holds ? most / 4 * c.lanes : tile->slice;
    c.is_whole = c.holds && a->depth == c.slice * 4 && a->width == c.slice * 4;
    c.own_size = tile->rows * (c.slice + 1) * (c.holds ? 2 : 1);
    c.other_size = tile->others * (c.slice + 1);
    if (c.other_size < 4 * c.lanes * (most / 4)) // 4 rows at a time
        c.other_size = 4 * c.lanes * (most / 4);
    c.k_chunk = chunk_of(&c, c.k_totals);
    c.v_chunk = chunk_of(&c, c.v_totals);
    return c;
}

static uint32_t
attention_grad_plan_shared_bytes(const struct attention_grad_plan_constants *c)
{
    uint32_t states = 2 * c->others > c->group ? 2 * c->others : c->group;
    return (c->own_size + c->other_size + c->p_size + states) * VK_VECTOR;
}

// `rows`: of all workgroups together.
static bool attention_grad_plan_choose_constants(const tn_vulkan_limits *limits,
                                                 const struct vk_attention *a,
                                                 uint64_t rows,
                                                 struct attention_grad_plan_constants *out)
{
    const uint32_t count = sizeof(tiles) / sizeof(tiles[0]);
    for (uint32_t i = 0; i < count; i++) {
        bool has_rows = ceil_div(rows, tiles[i].rows) >= FEW_GROUPS || i == count - 1;
        if (tiles[i].slice == 0 && (a->depth > HELD_COLUMNS || a->width > HELD_COLUMNS))
            continue;
        *out = attention_grad_plan_constants_of(&tiles[i], a);
        if (has_rows && out->group <= limits->max_invocations &&
            out->group <= limits->max_group_size[0] &&
            attention_grad_plan_shared_bytes(out) <= limits->max_shared)
            return true;
    }
    return false;
}

// --- launches --------------------------------------------------------------------------

// Inputs that were not given are bound to q: the shader does not read them.
static void bind_all(struct kernel_launch *launch, const struct attention_grad_plan *g,
                     bool of_keys, const uint32_t *batches)
{
    const struct vk_attention *a = &g->of;
    tn_vulkan_operand q = tn_vulkan_input(0);
    kernel_bind(launch, q);
    kernel_bind(launch, tn_vulkan_input(1));
    kernel_bind(launch, tn_vulkan_input(2));
    kernel_bind(launch, a->mask ? tn_vulkan_input(5) : q);
    kernel_bind(launch, a->lengths ? tn_vulkan_input(6) : q);
    kernel_bind(launch, tn_vulkan_input(4));
    kernel_bind(launch, tn_vulkan_scratch(0, states_size(a),
                                          of_keys ? TN_VULKAN_READS : TN_VULKAN_WRITES));
    kernel_bind(launch, a->num_batch
                            ? tn_vulkan_data(batches, a->num_batch * VK_ATTENTION_AXIS *
                                                          sizeof(*batches))
                            : q);
    kernel_bind(launch, tn_vulkan_output(of_keys ? 1 : 0));
    kernel_bind(launch, of_keys ? tn_vulkan_output(2) : tn_vulkan_input(3));
}

static void push_all(struct kernel_launch *launch, const struct attention_grad_plan *g,
                     const tn_step *step, bool of_keys)
{
    const struct vk_attention *a = &g->of;
    const uint64_t counts[] = {a->heads, a->queries, a->groups,   a->keys,
                               a->depth, a->width,   a->num_batch};
    const tn_layout *second = of_keys ? &tn_step_output(step, 2)->layout : g->out;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        kernel_push(launch, counts[i]);
    vk_attention_push_matrices(launch, a);
    kernel_push(launch, (uint64_t)g->gradient->offset);
    kernel_push(launch, (uint64_t)tn_step_output(step, of_keys ? 1 : 0)->layout.offset);
    kernel_push(launch, (uint64_t)second->offset);
    vk_attention_push_options(launch, a, step->attrs);
}

static tn_status attention_grad_plan_launch(const tn_vulkan_plan *plan,
                                            const struct attention_grad_plan *g,
                                            bool of_keys, const char *suffix)
{
    const struct vk_attention *a = &g->of;
    uint64_t units = a->batches * a->groups,
             rows = of_keys ? a->keys : vk_attention_rows(a);
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint32_t batches[VK_ATTENTION_AXES * VK_ATTENTION_AXIS];
    struct attention_grad_plan_constants constants;
    uint32_t values[NUM_CONSTANTS];
    if (!attention_grad_plan_choose_constants(plan->limits, a, units * rows, &constants))
        return plan->host->fail(
            plan->host, TN_ERR_UNSUPPORTED,
            "the derivative of attention of %d columns needs workgroups of 64 invocations "
            "with 16384 bytes of shared memory, the device has %u with %u",
            (int)(a->depth > a->width ? a->depth : a->width), plan->limits->max_invocations,
            plan->limits->max_shared);
    constants.has_cap = ((const tn_attention_attrs *)plan->step->attrs)->soft_cap > 0;
    snprintf(name, sizeof(name), "attention_grad_%s_%s%s", of_keys ? "keys" : "queries",
             dtype_glsl(a->q->dtype), suffix);
    vk_attention_batches(a, batches);
    memcpy(values, &constants, sizeof(values));
    for (uint32_t i = 0; i < NUM_CONSTANTS; i++)
        kernel_spec(&launch, values[i]);
    bind_all(&launch, g, of_keys, batches);
    push_all(&launch, g, plan->step, of_keys);
    launch.groups = ceil_div(rows, constants.rows) * units;
    return kernel_launch(plan, &launch);
}

// --- cooperative matrices ----------------------------------------------------------------

static const struct vk_matrix_tile matrix_tiles[] = {{64, 64, 24064}, {128, 128, 45568}};

static tn_status attention_grad_plan_launch_matrix(const tn_vulkan_plan *plan,
                                                   const struct attention_grad_plan *g,
                                                   const struct vk_matrix_tile *tile,
                                                   bool of_keys)
{
    const struct vk_attention *a = &g->of;
    const tn_attention_attrs *attrs = plan->step->attrs;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint32_t batches[VK_ATTENTION_AXES * VK_ATTENTION_AXIS];
    uint64_t rows = of_keys ? a->keys : vk_attention_rows(a);
    snprintf(name, sizeof(name), "attention_grad_matrix_%s_%s_%u",
             of_keys ? "keys" : "queries", dtype_glsl(a->q->dtype), tile->columns);
    vk_attention_batches(a, batches);
    kernel_spec(&launch, a->depth == tile->columns && a->width == tile->columns);
    kernel_spec(&launch, attrs->soft_cap > 0);
    kernel_spec(&launch, a->mask != NULL);
    bind_all(&launch, g, of_keys, batches);
    push_all(&launch, g, plan->step, of_keys);
    launch.groups = ceil_div(rows, tile->rows) * a->batches * a->groups;
    return kernel_launch(plan, &launch);
}

// ---------------------------------------------------------------------------------------

// Whether the operands beside q, k and v begin at multiples of `elements`.
static bool begins_by(const tn_step *step, const struct attention_grad_plan *g,
                      int64_t elements)
{
    bool fits = g->out->offset % elements == 0 && g->gradient->offset % elements == 0;
    for (uint32_t i = 0; i < 3; i++)
        fits = fits && tn_step_output(step, i)->layout.offset % elements == 0;
    return fits;
}

static tn_status attention_grad_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *in[7] = {NULL};
    for (uint32_t i = 0; i < step->num_inputs && i < 7; i++)
        in[i] = &tn_step_input(step, i)->layout;
    struct attention_grad_plan g = attention_grad_plan_describe(in);
    if (plan->limits->max_operands < OPERANDS)
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED,
                                "the derivative of attention needs launches of %d "
                                "operands, the device takes %u",
                                OPERANDS, plan->limits->max_operands);
    const struct vk_matrix_tile *matrix =
        begins_by(step, &g, VK_MATRIX_LINE)
            ? vk_attention_choose_matrix(plan->limits, &g.of, matrix_tiles)
            : NULL;
    bool is_by_vectors = vk_attention_by_vectors(&g.of) && begins_by(step, &g, 4);
    const char *suffix = is_by_vectors ? "_vectors" : "";
    tn_status status = TN_OK;
    for (int of_keys = 0; of_keys < 2 && status == TN_OK; of_keys++)
        status = matrix ? attention_grad_plan_launch_matrix(plan, &g, matrix, of_keys)
                        : attention_grad_plan_launch(plan, &g, of_keys, suffix);
    return status;
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule attention_grad_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                         // q
    {HALF_OR_F32, TN_NEEDS_ANY},                         // k
    {HALF_OR_F32, TN_NEEDS_ANY},                         // v
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},                  // out
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},                  // gradient
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                   // lengths
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(attention_grad, "nn.attention_grad/1", attention_grad_plan, KERNEL_OTHER,
           attention_grad_rules, .accepts = attention_grad_accepts,
           .scratch_size = plan_attention_grad_scratch);
