// SPDX-License-Identifier: MIT
// nn.scaled_dot_product_attention/1 of f32 and halves (attention.comp): any strides, one
// launch; or two, where rows are so few that workgroups share the keys of a row. Few rows
// go by lines where they can, in one launch (plan_attention_few.c), halves by cooperative
// matrices where the device has them (attention_matrix.comp).
#include "plan_attention.h"

#include <math.h>
#include <stdio.h>
#include <tenon/checked.h>
#include "../record.h"

#define MOST_KEYS (INT64_C(1) << 29) // positions are int, and sums of two fit
#define FEW_GROUPS 256               // so many workgroups are enough for a large device
#define LEAST_SPLIT 64       // keys of a split, for tiles of 8 rows; twice that for 4
#define LEAST_LARGE_PART 512 // and for larger tiles
#define MOST_SPLITS 64

// Flags of the push constants, as in attention.glsl.
enum {
    IS_CAUSAL = 1,
    HAS_ADDED = 2,
    HAS_SEEN = 4,
    HAS_LENGTHS = 8,
    IS_SIGNED = 16,
    HAS_SLOTS = 32
};
#define LENGTH_SHIFT 8

// --- shapes ----------------------------------------------------------------------------

// Extent of axis `behind` the end (1: the last one), and the stride along it: 0 where there
// is none or one element.
static uint64_t attention_plan_extent_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind ? (uint64_t)x->extent[x->rank - behind] : 1;
}

static int64_t attention_plan_stride_of(const tn_layout *x, int32_t behind)
{
    return x && x->rank >= behind && x->extent[x->rank - behind] != 1
               ? x->stride[x->rank - behind]
               : 0;
}

// Parts of the keys, so that a large device has work for all its processors. Depends on the
// shapes alone, as scratch memory is sized before a device is known.
static uint64_t attention_plan_choose_splits(const struct vk_attention *a)
{
    bool is_few = vk_attention_rows(a) <= VK_ATTENTION_FEW;
    if (vk_attention_is_few(a))
        return vk_attention_few_splits(a);
    uint64_t groups =
        ceil_div(vk_attention_rows(a), is_few ? 8 : 64) * a->groups * a->batches;
    uint64_t most = a->keys / (vk_attention_rows(a) <= 4 ? 2 * LEAST_SPLIT
                               : is_few                  ? LEAST_SPLIT
                                                         : LEAST_LARGE_PART);
    uint64_t wanted = ceil_div(FEW_GROUPS * (is_few ? 3 : 1), groups);
    if (groups >= FEW_GROUPS || most < 2)
        return 1;
    most = most < MOST_SPLITS ? most : MOST_SPLITS;
    return wanted < most ? wanted : most;
}

static const tn_layout *attention_plan_given(const tn_layout *x)
{
    return x && x->dtype != TN_DTYPE_NONE ? x : NULL;
}

struct vk_attention vk_attention_describe(const tn_layout *const in[5])
{
    struct vk_attention a = {.q = in[0],
                             .k = in[1],
                             .v = in[2],
                             .mask = attention_plan_given(in[3]),
                             .lengths = attention_plan_given(in[4]),
                             .mask_input = 3,
                             .lengths_input = 4,
                             .batches = 1};
    a.num_batch = a.q->rank > 3 ? (uint32_t)a.q->rank - 3 : 0;
    for (uint32_t i = 0; i < a.num_batch; i++)
        a.batches *= (uint64_t)a.q->extent[i];
    if (a.batches == 1) // then no launch needs its strides
        a.num_batch = 0;
    a.groups = attention_plan_extent_of(a.k, 3);
    a.heads = a.groups ? attention_plan_extent_of(a.q, 3) / a.groups : 0;
    a.queries = attention_plan_extent_of(a.q, 2);
    a.keys = attention_plan_extent_of(a.k, 2);
    a.depth = attention_plan_extent_of(a.q, 1);
    a.width = attention_plan_extent_of(a.v, 1);
    a.splits = 1;
    return a;
}

void vk_attention_divide(struct vk_attention *a)
{
    if (a->batches > 0 && vk_attention_rows(a) > 0 && a->width > 0)
        a->splits = attention_plan_choose_splits(a);
}

static struct vk_attention attention_plan_describe(const tn_layout *const in[5])
{
    struct vk_attention a = vk_attention_describe(in);
    vk_attention_divide(&a);
    return a;
}

static struct vk_attention attention_plan_describe_query(const tn_kernel_query *query)
{
    const tn_layout *in[5] = {NULL};
    for (uint32_t i = 0; i < query->num_inputs && i < 5; i++)
        in[i] = &query->inputs[i];
    return attention_plan_describe(in);
}

uint64_t vk_attention_sums(const struct vk_attention *a)
{
    uint64_t vectors = tn_saturated_multiply(a->splits, ceil_div(a->width, 4) + 1);
    uint64_t rows =
        a->batches * a->groups * vk_attention_rows(a); // as many as the output has
    return a->splits == 1
               ? 0
               : tn_saturated_multiply(tn_saturated_multiply(rows, vectors), VK_VECTOR);
}

bool vk_attention_is_taken(const struct vk_attention *a, const tn_attention_attrs *attrs)
{
    if (a->k->dtype != a->q->dtype || a->v->dtype != a->q->dtype ||
        (a->mask && a->mask->dtype != TN_BOOL && a->mask->dtype != a->q->dtype))
        return false;
    return a->keys < (uint64_t)MOST_KEYS && a->queries < (uint64_t)MOST_KEYS &&
           a->width <= VK_ATTENTION_COLUMNS && (attrs->window < MOST_KEYS || !a->lengths);
}

static int32_t attention_accepts(const tn_kernel_query *query)
{
    struct vk_attention a = attention_plan_describe_query(query);
    // The kernel for few rows alone writes by elements, as programs take them.
    return vk_attention_is_taken(&a, query->attrs) &&
           (query->fused == 0 || (vk_attention_is_few(&a) && vk_attention_by_vectors(&a)));
}

static uint64_t plan_attention_scratch(const tn_kernel_query *query)
{
    struct vk_attention a = attention_plan_describe_query(query);
    return vk_attention_sums(&a);
}

// --- tiles -----------------------------------------------------------------------------

// Invocations, rows and keys of a workgroup, and vectors of a key in shared memory. A list
// for many rows, one for many causal rows, one for few rows; of a list the first tile that
// fits the device's shared memory is taken.
struct attention_plan_tile {
    uint32_t group, rows, keys, slice;
};
static const struct attention_plan_tile
    many[] = {{256, 64, 64, 8}, {256, 64, 64, 4}, {128, 8, 64, 4}},
    causal[] = {{128, 64, 32, 8}, {256, 64, 64, 4}, {128, 8, 64, 4}},
    some[] = {{128, 8, 64, 32}, {128, 8, 64, 16}, {128, 8, 64, 8}, {128, 8, 64, 4}},
    four[] = {{128, 4, 128, 32}, {128, 4, 128, 16}, {128, 4, 128, 8}, {128, 4, 128, 4}};
#define SHORT_SLICE 8 // longer slices are for keys that fill them
// Values of so few columns, where queries see the keys before them, have tiles of fewer
// keys, more of which nobody sees: on an H200 64x6x256x64 takes 237 us, 304 in larger
// tiles, and 8x16x1024x64 842 and 1167; but 1457 and 1380 where all is seen.
#define NARROW 64

// The constants of attention.comp, in the order of their ids.
struct attention_plan_constants {
    uint32_t group, rows, keys, slice, each, columns, totals, q_pitch, has_q, v_keys,
        q_size, k_size, p_size;
};
#define NUM_CONSTANTS (sizeof(struct attention_plan_constants) / sizeof(uint32_t))

static uint32_t attention_plan_shared_bytes(const struct attention_plan_constants *c)
{
    return (c->q_size + c->k_size + c->p_size + c->group) * VK_VECTOR;
}

static struct attention_plan_constants
attention_plan_constants_of(const struct attention_plan_tile *tile,
                            const struct vk_attention *a, bool has_q)
{
    uint32_t lanes = tile->group / (tile->rows / 4), columns = 16;
    while (columns * 4 < a->width)
        columns *= 2;
    uint32_t own = columns < lanes ? columns : lanes;
    uint32_t depth = (uint32_t)ceil_div(a->depth, 4ull * tile->slice) * tile->slice;
    bool is_many = tile->rows > 8;
    struct attention_plan_constants c = {.group = tile->group,
                                         .rows = tile->rows,
                                         .keys = tile->keys,
                                         .slice = tile->slice,
                                         .each = tile->keys / lanes,
                                         .columns = own,
                                         .totals = columns / own * 4,
                                         .q_pitch = (has_q ? depth : tile->slice) + 1,
                                         .has_q = has_q,
                                         .k_size = tile->keys * (tile->slice + 1)};
    c.q_size = c.rows * c.q_pitch;
    c.p_size = c.keys * (c.rows / 4 + is_many); // 1 more: no bank conflicts
    // The greatest power of 2 of which the values fit into the memory of keys.
    c.v_keys = is_many ? c.keys : 0;
    while (c.v_keys * columns > c.k_size)
        c.v_keys /= 2;
    return c;
}

static bool attention_plan_choose_constants(const tn_vulkan_limits *limits,
                                            const struct vk_attention *a,
                                            struct attention_plan_constants *out)
{
    uint64_t rows = vk_attention_rows(a);
    const struct attention_plan_tile *tiles = rows <= 4                  ? four
                                              : rows <= VK_ATTENTION_FEW ? some
                                              : a->attrs->is_causal && a->width <= NARROW
                                                  ? causal
                                                  : many;
    uint32_t count = rows > VK_ATTENTION_FEW ? sizeof(many) / sizeof(many[0])
                                             : sizeof(some) / sizeof(some[0]);
    for (uint32_t i = 0; i < 2 * count; i++) {
        // Whole rows of q first, if they are short enough not to crowd out the rest.
        bool has_q = i % 2 == 0;
        uint32_t slice = tiles[i / 2].slice;
        if ((has_q && a->depth > VK_ATTENTION_COLUMNS) ||
            (slice > SHORT_SLICE && slice * 4 > a->depth))
            continue;
        *out = attention_plan_constants_of(&tiles[i / 2], a, has_q);
        if (out->group <= limits->max_invocations &&
            out->group <= limits->max_group_size[0] &&
            attention_plan_shared_bytes(out) <= limits->max_shared)
            return true;
    }
    return false;
}

// --- launches --------------------------------------------------------------------------

bool vk_attention_by_lines(const tn_layout *x, uint64_t elements)
{
    int64_t line = (int64_t)elements;
    bool fits = attention_plan_extent_of(x, 1) > 0 &&
                attention_plan_extent_of(x, 1) % elements == 0 &&
                attention_plan_stride_of(x, 1) == 1 && x->offset % line == 0;
    for (int32_t behind = 2; behind <= x->rank; behind++)
        fits = fits && attention_plan_stride_of(x, behind) % line == 0;
    return fits;
}

bool vk_attention_by_vectors(const struct vk_attention *a)
{
    const tn_layout *all[] = {a->q, a->k, a->v};
    bool fits = a->depth % 4 == 0 && a->width % 4 == 0;
    for (int i = 0; i < 3; i++) {
        const tn_layout *x = all[i];
        fits = fits && x->offset % 4 == 0 &&
               (attention_plan_stride_of(x, 1) == 1 || attention_plan_extent_of(x, 1) == 1);
        for (int32_t behind = 2; behind <= x->rank; behind++)
            fits = fits && attention_plan_stride_of(x, behind) % 4 == 0;
    }
    return fits;
}

static uint32_t flags_of(const struct vk_attention *a, const tn_attention_attrs *attrs)
{
    uint32_t flags = attrs->is_causal ? IS_CAUSAL : 0;
    if (a->mask)
        flags |= a->mask->dtype == TN_BOOL ? HAS_SEEN : HAS_ADDED;
    if (a->lengths) {
        flags |= HAS_LENGTHS;
        flags |= (uint32_t)tn_dtype_bytes(a->lengths->dtype) << LENGTH_SHIFT;
        if (tn_dtype_in(a->lengths->dtype, TN_SIGNED_DTYPES))
            flags |= IS_SIGNED;
    }
    return a->slots ? flags | HAS_SLOTS : flags;
}

// Where a matrix begins, and its strides: from head to head, row to row, and by elements.
static void push_matrix(struct kernel_launch *launch, const tn_layout *x)
{
    kernel_push(launch, x ? (uint64_t)x->offset : 0);
    for (int32_t behind = 3; behind > 0; behind--)
        kernel_push(launch, (uint64_t)attention_plan_stride_of(x, behind));
}

void vk_attention_push_matrices(struct kernel_launch *launch, const struct vk_attention *a)
{
    uint32_t first = launch->num_push;
    push_matrix(launch, a->q);
    push_matrix(launch, a->k);
    push_matrix(launch, a->v);
    if (a->new_k) { // as attention_few.comp has them
        launch->push[first + 2] = (uint32_t)a->start->offset;
        kernel_push(launch, (uint64_t)a->new_k->offset);
        kernel_push(launch, (uint64_t)attention_plan_stride_of(a->new_k, 3));
        kernel_push(launch, (uint64_t)a->new_v->offset);
        kernel_push(launch, (uint64_t)attention_plan_stride_of(a->new_v, 3));
        return;
    }
    if (!a->slots) {
        push_matrix(launch, a->mask);
        return;
    }
    kernel_push(launch, (uint64_t)a->slots->offset); // as attention.glsl has it
    kernel_push(launch, 0);
    kernel_push(launch, (uint64_t)a->k->extent[0] - 1);
    kernel_push(launch, (uint64_t)a->slots->stride[0]);
}

void vk_attention_push_options(struct kernel_launch *launch, const struct vk_attention *a,
                               const tn_attention_attrs *attrs)
{
    const tn_layout *lengths = a->lengths;
    double scale =
        attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)(a->depth > 0 ? a->depth : 1));
    kernel_push(launch, lengths ? (uint64_t)lengths->offset : 0);
    kernel_push(launch, lengths && lengths->rank ? (uint64_t)lengths->stride[0] : 0);
    kernel_push(launch, flags_of(a, attrs));
    kernel_push(launch, attrs->window < MOST_KEYS ? (uint64_t)attrs->window : 0);
    kernel_push_float(launch, scale);
    kernel_push_float(launch, attrs->soft_cap);
}

void vk_attention_batches(const struct vk_attention *a, uint32_t *out)
{
    const tn_layout *all[] = {a->q, a->k, a->v, a->mask};
    for (uint32_t i = 0; i < a->num_batch; i++) {
        int32_t behind = a->q->rank - (int32_t)i;
        out[i * VK_ATTENTION_AXIS] = (uint32_t)a->q->extent[i];
        for (uint32_t j = 0; j < 4; j++)
            out[i * VK_ATTENTION_AXIS + 1 + j] =
                (uint32_t)attention_plan_stride_of(all[j], behind);
    }
}

void vk_attention_push(struct kernel_launch *launch, const struct vk_attention *a,
                       const tn_layout *out)
{
    const uint64_t counts[] = {a->heads, a->queries, a->groups, a->keys,
                               a->depth, a->width,   a->splits, a->num_batch};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        kernel_push(launch, counts[i]);
    vk_attention_push_matrices(launch, a);
    kernel_push(launch, (uint64_t)out->offset);
    vk_attention_push_options(launch, a, a->attrs);
}

// A cache: an output that is read, too.
static tn_vulkan_operand attention_plan_written(uint32_t output)
{
    tn_vulkan_operand operand = tn_vulkan_output(output);
    operand.access |= TN_VULKAN_READS;
    return operand;
}

void vk_attention_bind(struct kernel_launch *launch, const struct vk_attention *a,
                       const uint32_t *batches)
{
    bool is_seen = a->mask && a->mask->dtype == TN_BOOL;
    tn_vulkan_operand q = tn_vulkan_input(0), out = tn_vulkan_output(0);
    tn_vulkan_operand sums =
        tn_vulkan_scratch(0, vk_attention_sums(a), TN_VULKAN_READS | TN_VULKAN_WRITES);
    // q of a launch that writes rows, too, may have no memory.
    tn_vulkan_operand none = a->new_k ? tn_vulkan_input(VK_ATTENTION_START) : q;
    bool is_split = a->splits > 1;
    kernel_bind(launch, q);
    if (a->new_k) {
        kernel_bind(launch, attention_plan_written(1));
        kernel_bind(launch, attention_plan_written(2));
        kernel_bind(launch, tn_vulkan_input(VK_ATTENTION_NEW_K));
        kernel_bind(launch, tn_vulkan_input(VK_ATTENTION_NEW_V));
    } else {
        kernel_bind(launch, tn_vulkan_input(1));
        kernel_bind(launch, tn_vulkan_input(2));
        kernel_bind(launch, a->mask && !is_seen ? tn_vulkan_input(a->mask_input) : q);
        kernel_bind(launch, is_seen    ? tn_vulkan_input(a->mask_input)
                            : a->slots ? tn_vulkan_input(a->slots_input)
                                       : q);
    }
    kernel_bind(launch, a->lengths ? tn_vulkan_input(a->lengths_input) : none);
    kernel_bind(launch, is_split ? sums : out); // one binding: it is written as either
    kernel_bind(launch, a->num_batch
                            ? tn_vulkan_data(batches, a->num_batch * VK_ATTENTION_AXIS *
                                                          sizeof(*batches))
                            : none);
}

static tn_status attention_plan_launch_tiles(const tn_vulkan_plan *plan,
                                             const struct vk_attention *a,
                                             const char *suffix)
{
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint32_t batches[VK_ATTENTION_AXES * VK_ATTENTION_AXIS];
    struct attention_plan_constants constants;
    uint32_t values[NUM_CONSTANTS];
    if (!attention_plan_choose_constants(plan->limits, a, &constants))
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED,
                                "attention needs workgroups of 128 invocations with 16384 "
                                "bytes of shared memory, the device has %u with %u",
                                plan->limits->max_invocations, plan->limits->max_shared);
    snprintf(name, sizeof(name), "attention_%s%s", dtype_glsl(out->dtype), suffix);
    vk_attention_batches(a, batches);
    memcpy(values, &constants, sizeof(values));
    for (uint32_t i = 0; i < NUM_CONSTANTS; i++)
        kernel_spec(&launch, values[i]);
    vk_attention_bind(&launch, a, batches);
    vk_attention_push(&launch, a, out);
    launch.groups =
        ceil_div(vk_attention_rows(a), constants.rows) * a->splits * a->groups * a->batches;
    return kernel_launch(plan, &launch);
}

// --- cooperative matrices ----------------------------------------------------------------

// Fewer keys leave cooperative matrices empty, and fewer multiplications take the time of a
// launch either way.
#define LEAST_MATRIX_KEYS 32
#define LEAST_MATRIX_WORK 4194304
#define MATRIX_OPERATIONS                                                                  \
    (TN_VULKAN_SUBGROUP_VOTE | TN_VULKAN_SUBGROUP_ARITHMETIC | TN_VULKAN_SUBGROUP_SHUFFLE)

static const struct vk_matrix_tile matrix_tiles[] = {{64, 64, 14336}, {128, 128, 45056}};

static bool has_matrices(const tn_vulkan_limits *limits, tn_dtype dtype,
                         const struct vk_matrix_tile *tile)
{
    uint32_t needed = dtype == TN_F16    ? TN_VULKAN_HAS_F16_MATRICES
                      : dtype == TN_BF16 ? TN_VULKAN_HAS_BF16_MATRICES
                                         : 0;
    return (limits->features & needed) != 0 && limits->subgroup_size == 32 &&
           (limits->subgroup_operations & MATRIX_OPERATIONS) == MATRIX_OPERATIONS &&
           limits->max_shared >= tile->shared &&
           limits->max_invocations >= 2 * tile->rows &&
           limits->max_group_size[0] >= 2 * tile->rows;
}

const struct vk_matrix_tile *
vk_attention_choose_matrix(const tn_vulkan_limits *limits, const struct vk_attention *a,
                           const struct vk_matrix_tile tiles[2])
{
    uint64_t widest = a->depth > a->width ? a->depth : a->width;
    uint64_t rows = vk_attention_rows(a);
    const struct vk_matrix_tile *tile = &tiles[widest > tiles[0].columns];
    uint64_t work = tn_saturated_multiply(tn_saturated_multiply(rows, a->keys),
                                          widest * a->groups * a->batches);
    if (widest > tile->columns || rows <= VK_ATTENTION_FEW || a->keys < LEAST_MATRIX_KEYS ||
        work < LEAST_MATRIX_WORK || !has_matrices(limits, a->q->dtype, tile))
        return NULL;
    return vk_attention_by_lines(a->q, VK_MATRIX_LINE) &&
                   vk_attention_by_lines(a->k, VK_MATRIX_LINE) &&
                   vk_attention_by_lines(a->v, VK_MATRIX_LINE)
               ? tile
               : NULL;
}

static tn_status attention_plan_launch_matrix(const tn_vulkan_plan *plan,
                                              const struct vk_attention *a,
                                              const struct vk_matrix_tile *tile)
{
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint32_t batches[VK_ATTENTION_AXES * VK_ATTENTION_AXIS];
    snprintf(name, sizeof(name), "attention_matrix_%s_%u", dtype_glsl(out->dtype),
             tile->columns);
    vk_attention_batches(a, batches);
    kernel_spec(&launch, a->depth == tile->columns && a->width == tile->columns);
    kernel_spec(&launch, a->attrs->soft_cap > 0);
    kernel_spec(&launch, a->mask != NULL);
    vk_attention_bind(&launch, a, batches);
    vk_attention_push(&launch, a, out);
    launch.groups =
        ceil_div(vk_attention_rows(a), tile->rows) * a->splits * a->groups * a->batches;
    return kernel_launch(plan, &launch);
}

// ---------------------------------------------------------------------------------------

static tn_status launch_combine(const tn_vulkan_plan *plan, const struct vk_attention *a,
                                const char *suffix)
{
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    char name[VARIANT_NAME];
    struct kernel_launch launch = {.name = name};
    uint64_t rows = a->batches * a->groups * vk_attention_rows(a);
    snprintf(name, sizeof(name), "attention_combine_%s%s%s", dtype_glsl(out->dtype), suffix,
             a->sinks ? "_sinks" : "");
    kernel_bind(&launch, tn_vulkan_scratch(0, vk_attention_sums(a), TN_VULKAN_READS));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, rows);
    kernel_push(&launch, a->width);
    kernel_push(&launch, a->splits);
    kernel_push(&launch, (uint64_t)out->offset);
    if (a->sinks) {
        kernel_bind(&launch, tn_vulkan_input(3));
        kernel_push(&launch, a->queries);
        kernel_push(&launch, a->groups * a->heads);
        kernel_push(&launch, (uint64_t)a->sinks->offset);
        kernel_push(&launch, (uint64_t)attention_plan_stride_of(a->sinks, 1));
    }
    launch.groups = rows;
    return kernel_launch(plan, &launch);
}

tn_status vk_attention_plan(const tn_vulkan_plan *plan, const struct vk_attention *a)
{
    const tn_layout *out = &tn_step_output(plan->step, 0)->layout;
    bool is_by_vectors = vk_attention_by_vectors(a) && out->offset % 4 == 0;
    const char *suffix = is_by_vectors ? "_vectors" : "";
    const struct vk_matrix_tile *matrix =
        out->offset % VK_MATRIX_LINE == 0
            ? vk_attention_choose_matrix(plan->limits, a, matrix_tiles)
            : NULL;
    if (!matrix && !a->sinks && (is_by_vectors || a->is_blocks) && vk_attention_is_few(a) &&
        plan->limits->max_operands >= VK_ATTENTION_FEW_OPERANDS) {
        tn_status status = vk_attention_launch_few(plan, a);
        return status == TN_OK && a->splits > 1 && !vk_attention_few_combines(plan, a)
                   ? launch_combine(plan, a, suffix)
                   : status;
    }
    if (a->is_blocks)
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED,
                                "attention over blocks binds %d operands, the device %u",
                                VK_ATTENTION_FEW_OPERANDS, plan->limits->max_operands);
    tn_status status = matrix ? attention_plan_launch_matrix(plan, a, matrix)
                              : attention_plan_launch_tiles(plan, a, suffix);
    return status == TN_OK && a->splits > 1 ? launch_combine(plan, a, suffix) : status;
}

struct vk_attention vk_attention_of(const tn_step *step)
{
    const tn_layout *in[VK_ATTENTION_APPENDS] = {NULL};
    for (uint32_t i = 0; i < step->num_inputs && i < VK_ATTENTION_APPENDS; i++)
        in[i] = &tn_step_input(step, i)->layout;
    struct vk_attention a = attention_plan_describe(in);
    a.attrs = step->attrs;
    a.new_k = in[VK_ATTENTION_NEW_K];
    a.new_v = in[VK_ATTENTION_NEW_V];
    a.start = in[VK_ATTENTION_START];
    return a;
}

static tn_status attention_plan(const tn_vulkan_plan *plan)
{
    struct vk_attention a = vk_attention_of(plan->step);
    return vk_attention_plan(plan, &a);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule attention_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                         // q
    {HALF_OR_F32, TN_NEEDS_ANY},                         // k
    {HALF_OR_F32, TN_NEEDS_ANY},                         // v
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                   // lengths
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
OWN_KERNEL(attention, "nn.scaled_dot_product_attention/1", attention_plan, KERNEL_ATTENTION,
           attention_rules, .accepts = attention_accepts,
           .scratch_size = plan_attention_scratch);
