// SPDX-License-Identifier: MIT
// base.topk/1 of few elements: those that may be among the first k are found by their
// digits, and they alone are sorted (topk.comp). Long rows, where they are few, are taken
// in parts.
#include "../record.h"
#include "order.h"

#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/ops/base_attrs.h>

#define MOST_K 1024    // elements of a workgroup's list
#define SHORT_ROW 256  // elements of a row that is sorted as it is
#define LEAST_LIST 256 // elements that are listed rather than looked through once more
#define LEAST_PART 2048
#define PARTS 512 // workgroups that keep a device busy
#define ENOUGH_ROWS 256

// The rows, and the layout of the scratch memory: keys and positions of parts, twice.
struct selection {
    uint64_t rows, n, inner, k;
    uint32_t bits, key_bytes;
    uint64_t keys[2], positions[2]; // bytes
};

// Into how many parts a row of `count` elements or pairs is divided.
static uint64_t topk_plan_parts_of(const struct selection *s, uint64_t count)
{
    uint64_t least = 8 * s->k > LEAST_PART ? 8 * s->k : LEAST_PART;
    uint64_t wanted = s->rows < ENOUGH_ROWS ? ceil_div(PARTS, s->rows) : 1;
    uint64_t most = count > 2 * LEAST_PART ? count / least : 1;
    most = most > 0 ? most : 1;
    return wanted < most ? wanted : most;
}

// Fills *out. False: more bytes than 64 bits can count.
static bool measure_selection(const tn_layout *x, const tn_topk_attrs *attrs,
                              struct selection *out)
{
    int32_t axis = tn_axis(attrs->axis, x->rank);
    struct selection s = {
        .rows = 1, .inner = 1, .n = (uint64_t)x->extent[axis], .k = (uint64_t)attrs->k};
    for (int32_t i = 0; i < x->rank; i++) {
        s.rows *= i == axis ? 1 : (uint64_t)x->extent[i];
        s.inner *= i > axis ? (uint64_t)x->extent[i] : 1;
    }
    s.bits = 8 * dtype_bytes(x->dtype);
    s.key_bytes = s.bits == 64 ? 8 : 4;
    uint64_t parts = s.rows > 0 && s.k > 0 ? topk_plan_parts_of(&s, s.n) : 1;
    bool fits = true;
    // The parts of each launch have an eighth of the elements before, at most.
    for (int i = 0; i < 2 && parts > 1 && fits; i++) {
        uint64_t pairs, keys;
        fits = tn_checked_multiply(s.rows * parts, s.k, &pairs) &&
               tn_checked_multiply(pairs, s.key_bytes, &keys) &&
               tn_checked_round_up(keys, TN_VULKAN_ALIGNMENT, &s.keys[i]) &&
               tn_checked_round_up(pairs * 4, TN_VULKAN_ALIGNMENT, &s.positions[i]);
        parts = topk_plan_parts_of(&s, parts * s.k);
    }
    *out = s;
    return fits;
}

static uint64_t sorted_width(uint64_t least)
{
    uint64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

static void push_selection(struct kernel_launch *launch, const tn_step *step,
                           const struct selection *s, uint64_t count, uint64_t parts,
                           uint64_t most)
{
    kernel_push(launch, s->rows);
    kernel_push(launch, s->n);
    kernel_push(launch, s->inner);
    kernel_push(launch, count);
    kernel_push(launch, parts);
    kernel_push(launch, ceil_div(count, parts));
    kernel_push(launch, s->k);
    kernel_push(launch, most);
    kernel_push(launch, s->n <= SHORT_ROW ? sorted_width(s->n) : 0);
    kernel_push(launch, (uint64_t)tn_step_input(step, 0)->layout.offset);
    kernel_push(launch, (uint64_t)tn_step_output(step, 0)->layout.offset);
    kernel_push(launch, (uint64_t)tn_step_output(step, 1)->layout.offset);
}

// --- many ------------------------------------------------------------------------------

#define DIGIT_BITS(bits) ((bits) == 64 ? 9 : 10) // DIGIT of variants.txt

// How the digits of rows are counted, behind the pairs that are collected and sorted.
struct counting {
    struct vk_order order;
    uint64_t levels, words, bytes; // of digits; of counts; of all scratch memory
};

static uint64_t position_bits(uint64_t value)
{
    uint64_t bits = 0;
    for (; value > 0; value >>= 1)
        bits++;
    return bits;
}

static bool measure_counting(const struct selection *s, tn_dtype dtype, bool largest,
                             struct counting *out)
{
    uint64_t digit = DIGIT_BITS(s->bits), bytes;
    struct counting c = {.order = {.rows = s->rows,
                                   .inner = s->inner,
                                   .n = s->k,
                                   .dtype = dtype,
                                   .descending = largest,
                                   .from_pairs = true,
                                   .output = 1}};
    c.levels = ceil_div(s->bits, digit) + ceil_div(position_bits(s->n), digit);
    bool fits = vk_order_measure(&c.order) &&
                tn_checked_multiply(s->rows, (c.levels << digit) + 1, &c.words) &&
                c.words <= UINT32_MAX && tn_checked_multiply(c.words, 4, &bytes) &&
                tn_checked_add(bytes, c.order.bytes, &c.bytes);
    *out = c;
    return fits;
}

enum phase { PHASE_CLEAR, PHASE_COUNT, PHASE_COLLECT, PHASE_VALUES };

static tn_status plan_phase(const tn_vulkan_plan *plan, const struct selection *s,
                            const struct counting *c, enum phase phase, uint32_t level)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "topk_large_%u", s->bits);
    uint64_t parts = s->rows < PARTS ? ceil_div(PARTS, s->rows) : 1;
    uint64_t most = ceil_div(s->n, LEAST_PART);
    parts = parts < most ? parts : most;
    tn_vulkan_operand counts =
        tn_vulkan_scratch(c->order.bytes, c->words * 4, TN_VULKAN_READS | TN_VULKAN_WRITES);
    tn_vulkan_operand positions = tn_vulkan_output(1), unused = tn_vulkan_output(0);
    positions.access = phase == PHASE_VALUES ? TN_VULKAN_READS : TN_VULKAN_WRITES;
    bool collects = phase == PHASE_COLLECT;
    struct kernel_launch launch = {.name = name, .groups = s->rows * parts};
    if (phase == PHASE_CLEAR)
        launch.groups = ceil_div(c->words, 256);
    if (phase == PHASE_VALUES)
        launch.groups = ceil_div(s->rows * s->k, 256);
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, counts);
    for (int i = 0; i < 2; i++)
        kernel_bind(&launch, collects
                                 ? vk_order_pairs(&c->order, 1, i == 0, TN_VULKAN_WRITES)
                                 : unused);
    kernel_bind(&launch, positions);
    kernel_bind(&launch, unused);
    push_selection(&launch, plan->step, s, s->n, parts, level);
    kernel_spec(&launch, phase);
    vk_order_specify(&launch, c->order.dtype, c->order.descending);
    kernel_spec(&launch, (uint32_t)c->levels);
    return kernel_launch(plan, &launch);
}

static tn_status plan_many(const tn_vulkan_plan *plan, const struct selection *s,
                           const struct counting *c)
{
    tn_status status = plan_phase(plan, s, c, PHASE_CLEAR, 0);
    for (uint32_t level = 0; level < c->levels && status == TN_OK; level++)
        status = plan_phase(plan, s, c, PHASE_COUNT, level);
    if (status == TN_OK)
        status = plan_phase(plan, s, c, PHASE_COLLECT, 0);
    if (status == TN_OK)
        status = vk_plan_order(plan, &c->order);
    return status == TN_OK ? plan_phase(plan, s, c, PHASE_VALUES, 0) : status;
}

// --- few -------------------------------------------------------------------------------

static uint64_t plan_topk_scratch(const tn_kernel_query *query)
{
    const tn_topk_attrs *attrs = query->attrs;
    struct selection s;
    struct counting c;
    if (!measure_selection(&query->inputs[0], attrs, &s))
        return UINT64_MAX;
    if (s.k <= MOST_K)
        return s.keys[0] + s.positions[0] + s.keys[1] + s.positions[1];
    return measure_counting(&s, query->inputs[0].dtype, false, &c) ? c.bytes : UINT64_MAX;
}

// If most elements of the rows are wanted, the decomposition sorts them.
static int32_t topk_accepts(const tn_kernel_query *query)
{
    const tn_topk_attrs *attrs = query->attrs;
    tn_dtype dtype = query->inputs[0].dtype;
    struct selection s;
    struct counting c;
    if (tn_is_complex(dtype) || tn_dtype_in(dtype, TN_FLOAT8_DTYPES) ||
        !measure_selection(&query->inputs[0], attrs, &s))
        return 0;
    return s.k <= MOST_K || (2 * s.k <= s.n && measure_counting(&s, dtype, false, &c));
}

// Binds keys and positions of buffer `which`, 0 or 1; `unused` without pairs.
static void bind_parts(struct kernel_launch *launch, const struct selection *s,
                       bool has_pairs, uint32_t which, tn_vulkan_operand unused)
{
    uint64_t at = which * (s->keys[0] + s->positions[0]);
    uint16_t access = unused.access;
    kernel_bind(launch, has_pairs ? tn_vulkan_scratch(at, s->keys[which], access) : unused);
    kernel_bind(launch, has_pairs ? tn_vulkan_scratch(at + s->keys[which],
                                                      s->positions[which], access)
                                  : unused);
}

// Number `number` of the launches: of rows of `count` elements or pairs, in parts.
static tn_status topk_plan_launch(const tn_vulkan_plan *plan, const struct selection *s,
                                  uint32_t number, uint64_t count, uint64_t parts)
{
    const tn_topk_attrs *attrs = plan->step->attrs;
    tn_dtype dtype = tn_step_input(plan->step, 0)->layout.dtype;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "topk_%u", s->bits);
    struct kernel_launch launch = {.name = name, .groups = s->rows * parts};
    if (s->n <= SHORT_ROW)
        launch.groups = ceil_div(s->rows, MOST_K / sorted_width(s->n));
    kernel_bind(&launch, tn_vulkan_input(0));
    bind_parts(&launch, s, number > 0, 1 - number % 2, tn_vulkan_input(0));
    bind_parts(&launch, s, parts > 1, number % 2, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_bind(&launch, tn_vulkan_output(1));
    uint64_t most = 2 * sorted_width(s->k);
    most = most < LEAST_LIST ? LEAST_LIST : most < MOST_K ? most : MOST_K;
    push_selection(&launch, plan->step, s, count, parts, most);
    kernel_spec(&launch, number > 0);
    vk_order_specify(&launch, dtype, attrs->largest != 0);
    kernel_spec(&launch, parts > 1);
    return kernel_launch(plan, &launch);
}

static tn_status topk_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    const tn_topk_attrs *attrs = plan->step->attrs;
    struct selection s;
    if (layout_count(x) == 0 || attrs->k == 0)
        return TN_OK;
    if (!measure_selection(x, attrs, &s))
        return plan->host->fail(plan->host, TN_ERR_MEMORY,
                                "%llu elements are too many to be sorted",
                                (unsigned long long)layout_count(x));
    uint64_t count = s.n, parts;
    struct counting c;
    if (s.k > MOST_K)
        return measure_counting(&s, x->dtype, attrs->largest != 0, &c)
                   ? plan_many(plan, &s, &c)
                   : TN_ERR_MEMORY;
    tn_status status;
    uint32_t number = 0;
    do {
        parts = topk_plan_parts_of(&s, count);
        status = topk_plan_launch(plan, &s, number++, count, parts);
        count = parts * s.k;
    } while (parts > 1 && status == TN_OK);
    return status;
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(topk, "base.topk/1", topk_plan, KERNEL_OTHER, contiguous_rules,
           .accepts = topk_accepts, .scratch_size = plan_topk_scratch);
