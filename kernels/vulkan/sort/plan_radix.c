// SPDX-License-Identifier: MIT
// base.sort/1, and the radix sort of base.argsort/1 (radix.comp): a workgroup sorts a short
// row at once; longer rows are moved in tiles, digit by digit.
#include "../record.h"
#include "radix.h"

#include <stdio.h>
#include <tenon/checked.h>

#define ROUNDS 8 // elements of an invocation
#define TILE (256 * ROUNDS)
#define DIGITS 256
#define LEAST_ROW 513     // elements of a row: shorter ones are sorted by a network
#define LEAST_TILED 32768 // elements of all rows, where these are longer than a tile
#define MOST_SUMMED 64    // tiles of a row whose counts each workgroup adds itself

// The layout of the scratch memory: keys and positions, twice, and counts.
struct radix {
    const struct vk_order *order;
    bool has_positions, scans;
    uint32_t passes, buffers;
    uint64_t tiles;                                  // of a row
    uint64_t keys, positions, counts, totals, bytes; // totals: words before them
};

bool vk_radix_suits(const struct vk_order *o)
{
    uint64_t least = (uint64_t)LEAST_TILED * (o->bits == 64 ? 16 : 1);
    return o->n >= LEAST_ROW && (o->n <= TILE || o->rows * o->n >= least);
}

// Fills *out. False: more bytes than 64 bits can count.
static bool radix_plan_measure(const struct vk_order *o, bool positions, struct radix *out)
{
    struct radix r = {.order = o, .has_positions = positions, .passes = o->bits / 8};
    r.tiles = ceil_div(o->n, TILE);
    r.scans = r.tiles > MOST_SUMMED;
    r.buffers = r.passes > 2 ? 2 : r.passes - 1;
    r.keys = o->keys;
    r.positions = positions ? o->positions : 0;
    uint64_t pairs, words;
    bool fits = true;
    if (r.tiles > 1) {
        fits = tn_checked_multiply(o->rows * DIGITS, r.tiles, &words) &&
               tn_checked_add(words, r.scans ? o->rows * DIGITS : 0, &r.counts) &&
               tn_checked_multiply(r.counts, sizeof(uint32_t), &r.counts) &&
               tn_checked_add(r.keys, r.positions, &pairs) &&
               tn_checked_multiply(pairs, r.buffers, &pairs) &&
               tn_checked_add(pairs, r.counts, &r.bytes);
        r.totals = r.scans ? words : 0;
    }
    *out = r;
    return fits;
}

uint64_t vk_radix_scratch(const struct vk_order *o, bool positions)
{
    struct radix r;
    return radix_plan_measure(o, positions, &r) ? r.bytes : UINT64_MAX;
}

// --- launches --------------------------------------------------------------------------

static tn_vulkan_operand radix_plan_counts_of(const struct radix *r, uint16_t access)
{
    return tn_vulkan_scratch(r->buffers * (r->keys + r->positions), r->counts, access);
}

// Keys, or with `is_key` false positions, that lie between passes `pass` - 1 and `pass`;
// `unused` where there are none.
static tn_vulkan_operand radix_plan_pairs_of(const struct radix *r, uint32_t pass,
                                             bool is_key, tn_vulkan_operand unused)
{
    if (pass == 0 || pass == r->passes || (!is_key && !r->has_positions))
        return unused;
    uint64_t at = (pass - 1) % 2 * (r->keys + r->positions);
    return is_key ? tn_vulkan_scratch(at, r->keys, unused.access)
                  : tn_vulkan_scratch(at + r->keys, r->positions, unused.access);
}

static void push_radix(struct kernel_launch *launch, const tn_vulkan_plan *plan,
                       const struct radix *r, uint32_t pass)
{
    const struct vk_order *o = r->order;
    kernel_push(launch, o->rows);
    kernel_push(launch, o->n);
    kernel_push(launch, o->inner);
    kernel_push(launch, r->tiles);
    kernel_push(launch, 8 * pass);
    kernel_push(launch, r->scans ? 1 : DIGITS);
    kernel_push(launch, r->scans ? r->tiles : 1);
    kernel_push(launch, r->totals);
    kernel_push(launch, (uint64_t)tn_step_input(plan->step, 0)->layout.offset);
    kernel_push(launch, (uint64_t)tn_step_output(plan->step, o->output)->layout.offset);
}

// The constants of radix.comp, in the order of their ids.
static void radix_plan_specify(struct kernel_launch *launch, const tn_vulkan_plan *plan,
                               const struct radix *r, uint32_t pass)
{
    const tn_vulkan_limits *limits = plan->limits;
    uint64_t rounds = r->order->n <= TILE / 2 ? ROUNDS / 2 : ROUNDS; // few pipelines
    kernel_spec(launch, (uint32_t)rounds);
    vk_order_specify(launch, r->order->dtype, r->order->descending);
    kernel_spec(launch, pass == 0);
    kernel_spec(launch, pass + 1 == r->passes);
    kernel_spec(launch, r->has_positions);
    // Only on devices with shuffles subgroups have the size that limits tell.
    kernel_spec(launch, limits->subgroup_size >= 32 &&
                            (limits->subgroup_operations & TN_VULKAN_SUBGROUP_SHUFFLE));
    kernel_spec(launch, TILE);
}

static tn_status plan_row(const tn_vulkan_plan *plan, const struct radix *r)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "radix_row_%u", r->order->bits);
    struct kernel_launch launch = {.name = name, .groups = r->order->rows};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(r->order->output));
    kernel_bind(&launch, tn_vulkan_output(r->order->output));
    push_radix(&launch, plan, r, 0);
    radix_plan_specify(&launch, plan, r, 0);
    return kernel_launch(plan, &launch);
}

static tn_status plan_count(const tn_vulkan_plan *plan, const struct radix *r,
                            uint32_t pass)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "radix_count_%u", r->order->bits);
    struct kernel_launch launch = {.name = name, .groups = r->order->rows * r->tiles};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, radix_plan_pairs_of(r, pass, true, tn_vulkan_input(0)));
    kernel_bind(&launch, radix_plan_counts_of(r, TN_VULKAN_WRITES));
    push_radix(&launch, plan, r, pass);
    radix_plan_specify(&launch, plan, r, pass);
    return kernel_launch(plan, &launch);
}

static tn_status plan_scan(const tn_vulkan_plan *plan, const struct radix *r, uint32_t pass)
{
    struct kernel_launch launch = {.name = "radix_scan", .groups = r->order->rows * DIGITS};
    kernel_bind(&launch, radix_plan_counts_of(r, TN_VULKAN_READS | TN_VULKAN_WRITES));
    push_radix(&launch, plan, r, pass);
    return kernel_launch(plan, &launch);
}

static tn_status radix_plan_write(const tn_vulkan_plan *plan, const struct radix *r,
                                  uint32_t pass)
{
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "radix_write_%u", r->order->bits);
    tn_vulkan_operand out = tn_vulkan_output(r->order->output);
    struct kernel_launch launch = {.name = name, .groups = r->order->rows * r->tiles};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, out);
    kernel_bind(&launch, out);
    kernel_bind(&launch, radix_plan_pairs_of(r, pass, true, tn_vulkan_input(0)));
    kernel_bind(&launch, radix_plan_pairs_of(r, pass, false, tn_vulkan_input(0)));
    kernel_bind(&launch, radix_plan_pairs_of(r, pass + 1, true, out));
    kernel_bind(&launch, radix_plan_pairs_of(r, pass + 1, false, out));
    kernel_bind(&launch, radix_plan_counts_of(r, TN_VULKAN_READS));
    push_radix(&launch, plan, r, pass);
    radix_plan_specify(&launch, plan, r, pass);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_radix(const tn_vulkan_plan *plan, const struct vk_order *o,
                        bool positions)
{
    struct radix r;
    if (!radix_plan_measure(o, positions, &r))
        return plan->host->fail(plan->host, TN_ERR_MEMORY,
                                "%llu elements are too many to be sorted",
                                (unsigned long long)(o->rows * o->n));
    if (r.tiles == 1)
        return plan_row(plan, &r);
    tn_status status = TN_OK;
    for (uint32_t pass = 0; pass < r.passes && status == TN_OK; pass++) {
        status = plan_count(plan, &r, pass);
        if (status == TN_OK && r.scans)
            status = plan_scan(plan, &r, pass);
        if (status == TN_OK)
            status = radix_plan_write(plan, &r, pass);
    }
    return status;
}

// --- base.sort/1 -----------------------------------------------------------------------

static bool describe_sort(const tn_layout *x, const tn_sort_attrs *attrs,
                          struct vk_order *out)
{
    return vk_order_describe(x, attrs, out) && vk_radix_suits(out);
}

// Other rows are sorted by the decomposition.
static int32_t sort_accepts(const tn_kernel_query *query)
{
    struct vk_order o;
    return describe_sort(&query->inputs[0], query->attrs, &o);
}

static uint64_t radix_plan_sort_scratch(const tn_kernel_query *query)
{
    struct vk_order o;
    bool fits = describe_sort(&query->inputs[0], query->attrs, &o);
    return fits ? vk_radix_scratch(&o, false) : UINT64_MAX;
}

static tn_status sort_plan(const tn_vulkan_plan *plan)
{
    const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
    struct vk_order o;
    if (layout_count(x) == 0)
        return TN_OK;
    if (!describe_sort(x, plan->step->attrs, &o))
        return plan->host->fail(plan->host, TN_ERR_INTERNAL,
                                "sort: rows it did not accept");
    return vk_plan_radix(plan, &o, false);
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(sort, "base.sort/1", sort_plan, KERNEL_OTHER, contiguous_rules,
           .accepts = sort_accepts, .scratch_size = radix_plan_sort_scratch);
