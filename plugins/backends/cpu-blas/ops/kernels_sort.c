// SPDX-License-Identifier: MIT
// base.{sort,argsort,topk,partition,argpartition}/1. An array is viewed as outer x n x
// inner elements, n along the axis.
//
// An element becomes an unsigned key in whose order it is to come, with its position: in
// one word of 64 bits for dtypes of up to 32, otherwise in two; or without it, where only
// elements are wanted and the processor sorts words in vectors. Rows are sorted side by
// side, in LANES lanes that have memory of their own; of few long rows, each is cut into
// parts that are sorted side by side, and then merged.
#include "cpu/sort/sort.h"
#include "kernels.h"

#define LANES 64
#define LEAST_ROOM 128   // items of a selection
#define LEAST_PART 32768 // items of a part of a row
#define MAX_PARTS 16
#define PIECE_ITEMS 16384 // that a thread merges at once; parts are multiples of it
#define COUNT_BYTES (sizeof(uint32_t) * CPU_SORT_COUNTS) // of a sort

struct cpu_sorting {
    struct cpu_sort of;
    const struct cpu_kernels *kernels;
    bool is_partition;
    int64_t outer;
    int64_t lanes, room; // room: items that a lane sorts at once
    int64_t parts;       // of each row; above 1: without lanes
    const char *x;
    char *scratch;
    uint64_t lane_bytes;
};

// --- rows -------------------------------------------------------------------------------

// A row that is being sorted, and its memory.
struct cpu_sort_row {
    const struct cpu_sorting *s;
    const void *packed;
    void *items, *other;
    uint32_t *counts;    // for each part
    int64_t to;          // the first element of its output
    int64_t part, width; // items of a part, and of sorted ones so far
};

static struct cpu_sort_row cpu_sort_begin_row(const struct cpu_sorting *s, int64_t number,
                                              char *scratch)
{
    int64_t outer = number / s->of.inner, column = number - outer * s->of.inner;
    uint64_t item = cpu_sort_item_bytes(s->of.is_wide);
    char *items = scratch + COUNT_BYTES * (uint64_t)s->parts;
    char *other = items + (uint64_t)s->room * item, *row = other + (uint64_t)s->room * item;
    const char *from = s->x + (outer * s->of.n * s->of.inner + column) * s->of.size;
    if (s->of.inner > 1)
        s->kernels->copy[__builtin_ctz(s->of.size)](row, 1, from, s->of.inner, s->of.n);
    return (struct cpu_sort_row){.s = s,
                                 .packed = s->of.inner > 1 ? row : from,
                                 .items = items,
                                 .other = other,
                                 .counts = (uint32_t *)scratch,
                                 .to = outer * s->of.k * s->of.inner + column};
}

static void sort_row(const struct cpu_sorting *s, int64_t number, char *scratch)
{
    struct cpu_sort_row r = cpu_sort_begin_row(s, number, scratch);
    if (s->is_partition) {
        cpu_sort_partition(&s->of, r.packed, r.items, r.other, r.to);
        return;
    }
    if (cpu_sort_keys(&s->of, r.packed, r.items, r.other, r.to))
        return;
    const void *sorted =
        cpu_sort_select(&s->of, r.packed, r.items, r.other, s->room, r.counts);
    cpu_sort_write(&s->of, r.packed, sorted, r.to, 0, s->of.k);
}

// The loop runs over lanes: every so many-th row.
static void sort_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_sorting *s = context;
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t row = lane; row < s->outer * s->of.inner; row += s->lanes)
            sort_row(s, row, s->scratch + (uint64_t)lane * s->lane_bytes);
}

// --- parts of rows ----------------------------------------------------------------------

static int64_t cpu_sort_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The loop runs over parts.
static void sort_parts(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_sort_row *r = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = cpu_sort_least(part * r->part, r->s->of.n);
        int64_t last = cpu_sort_least(first + r->part, r->s->of.n);
        uint32_t *counts = r->counts + part * CPU_SORT_COUNTS;
        if (first < last)
            cpu_sort_part(&r->s->of, r->packed, r->items, r->other, first, last, counts);
    }
}

// The loop runs over pieces of the row.
static void merge_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_sort_row *r = context;
    int64_t n = r->s->of.n;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * PIECE_ITEMS, last = cpu_sort_least(first + PIECE_ITEMS, n);
        cpu_sort_merge(&r->s->of, r->other, r->items, r->width, first, last);
    }
}

static void write_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_sort_row *r = context;
    int64_t first = begin * PIECE_ITEMS,
            last = cpu_sort_least(end * PIECE_ITEMS, r->s->of.n);
    cpu_sort_write(&r->s->of, r->packed, r->items, r->to, first, last);
}

// Sorts each row by all threads.
static void sort_in_parts(const tn_cpu_call *call, const struct cpu_sorting *s)
{
    int64_t pieces = (s->of.n + PIECE_ITEMS - 1) / PIECE_ITEMS;
    for (int64_t number = 0; number < s->outer * s->of.inner; number++) {
        struct cpu_sort_row r = cpu_sort_begin_row(s, number, s->scratch);
        r.part = (pieces + s->parts - 1) / s->parts * PIECE_ITEMS;
        call->parallel_for(call, s->parts, 1, sort_parts, &r);
        for (r.width = r.part; r.width < s->of.n; r.width *= 2) {
            call->parallel_for(call, pieces, 1, merge_pieces, &r);
            void *swap = r.items;
            r.items = r.other;
            r.other = swap;
        }
        call->parallel_for(call, pieces, 1, write_pieces, &r);
    }
}

// --- the kernels ------------------------------------------------------------------------

// A power of 2, that grows with the number of threads.
static int64_t cpu_sort_count_parts(const struct cpu_sorting *s, int64_t threads)
{
    int64_t parts = 1;
    if (2 * s->outer * s->of.inner > threads || s->of.k < s->of.n)
        return 1;
    while (parts < threads && parts < MAX_PARTS && s->of.n / (2 * parts) >= LEAST_PART)
        parts *= 2;
    return parts;
}

static struct cpu_sorting cpu_sort_describe(const tn_layout *x, int64_t given_axis,
                                            int64_t k, uint32_t threads)
{
    int32_t axis = tn_axis(given_axis, x->rank);
    struct cpu_sorting s = {.of = {.dtype = x->dtype,
                                   .size = cpu_dtype_size(x->dtype),
                                   .inner = 1,
                                   .n = x->extent[axis]},
                            .outer = 1};
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            *(i < axis ? &s.outer : &s.of.inner) *= x->extent[i];
    s.of.k = k < 0 ? s.of.n : k;
    s.of.is_wide = s.of.size == 8;
    s.of.passes = cpu_sort_passes(s.of.size);
    s.lanes = s.outer * s.of.inner < LANES ? s.outer * s.of.inner : LANES;
    s.room = 4 * s.of.k < LEAST_ROOM ? LEAST_ROOM : 4 * s.of.k;
    // Without a selection the row is sorted at once: it never reaches this room.
    s.room = s.room < s.of.n ? s.room : s.of.n + CPU_SPLIT_SLACK;
    uint64_t items =
        tn_saturated_multiply((uint64_t)s.room, 2 * cpu_sort_item_bytes(s.of.is_wide));
    uint64_t row = s.of.inner > 1 ? (uint64_t)s.of.n * s.of.size : 0;
    s.parts = cpu_sort_count_parts(&s, threads);
    s.lane_bytes =
        tn_saturated_add(tn_saturated_add(items, row), COUNT_BYTES * (uint64_t)s.parts);
    s.lane_bytes = tn_saturated_add(s.lane_bytes, 63) & ~UINT64_C(63);
    return s;
}

static uint64_t cpu_sort_scratch_of(struct cpu_sorting s)
{
    return tn_saturated_multiply(s.lane_bytes, (uint64_t)s.lanes);
}

static void cpu_sort_start(const tn_cpu_call *call, struct cpu_sorting *s)
{
    int64_t each = s->of.n * 8;
    s->kernels = kernel_variant(call);
    s->of.quick = s->kernels->quick;
    s->x = first_element(&call->inputs[0]);
    s->scratch = call->scratch;
    if (s->outer * s->of.inner * s->of.k == 0)
        return;
    if (s->parts > 1) {
        sort_in_parts(call, s);
        return;
    }
    call->parallel_for(call, s->lanes, each > 16384 ? 1 : 1 + 16384 / (each + 1),
                       sort_lanes, s);
}

static int32_t cpu_sort_fits(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    for (int32_t i = 0; i < x->rank; i++)
        if (x->extent[i] >= UINT32_MAX)
            return 0;
    return 1;
}

static uint64_t sort_scratch(const tn_kernel_query *query)
{
    const tn_sort_attrs *attrs = query->attrs;
    return cpu_sort_scratch_of(
        cpu_sort_describe(&query->inputs[0], attrs->axis, -1, query->num_workers));
}

static uint64_t topk_scratch(const tn_kernel_query *query)
{
    const tn_topk_attrs *attrs = query->attrs;
    return cpu_sort_scratch_of(
        cpu_sort_describe(&query->inputs[0], attrs->axis, attrs->k, query->num_workers));
}

static tn_status sort(const tn_cpu_call *call)
{
    const tn_sort_attrs *attrs = call->attrs;
    struct cpu_sorting s =
        cpu_sort_describe(&call->inputs[0].layout, attrs->axis, -1, call->num_threads);
    s.of.descending = attrs->descending != 0;
    s.of.values = first_element(&call->outputs[0]);
    cpu_sort_start(call, &s);
    return TN_OK;
}

static tn_status argsort(const tn_cpu_call *call)
{
    const tn_sort_attrs *attrs = call->attrs;
    struct cpu_sorting s =
        cpu_sort_describe(&call->inputs[0].layout, attrs->axis, -1, call->num_threads);
    s.of.descending = attrs->descending != 0;
    s.of.indices = first_element(&call->outputs[0]);
    cpu_sort_start(call, &s);
    return TN_OK;
}

static tn_status topk(const tn_cpu_call *call)
{
    const tn_topk_attrs *attrs = call->attrs;
    struct cpu_sorting s = cpu_sort_describe(&call->inputs[0].layout, attrs->axis, attrs->k,
                                             call->num_threads);
    s.of.descending = attrs->largest != 0;
    s.of.values = first_element(&call->outputs[0]);
    s.of.indices = first_element(&call->outputs[1]);
    cpu_sort_start(call, &s);
    return TN_OK;
}

// A row is one thread's.
static struct cpu_sorting describe_partition(const tn_layout *x, const void *attributes)
{
    const tn_partition_attrs *attrs = attributes;
    struct cpu_sorting s = cpu_sort_describe(x, attrs->axis, -1, 1);
    s.is_partition = true;
    s.of.kth = attrs->kth < 0 ? attrs->kth + s.of.n : attrs->kth;
    return s;
}

static uint64_t partition_scratch(const tn_kernel_query *query)
{
    return cpu_sort_scratch_of(describe_partition(&query->inputs[0], query->attrs));
}

static tn_status partition(const tn_cpu_call *call)
{
    struct cpu_sorting s = describe_partition(&call->inputs[0].layout, call->attrs);
    s.of.values = first_element(&call->outputs[0]);
    cpu_sort_start(call, &s);
    return TN_OK;
}

static tn_status argpartition(const tn_cpu_call *call)
{
    struct cpu_sorting s = describe_partition(&call->inputs[0].layout, call->attrs);
    s.of.indices = first_element(&call->outputs[0]);
    cpu_sort_start(call, &s);
    return TN_OK;
}

static const tn_operand_rule rules[] = {{0, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, kernel_name, scratch_rule)                                              \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "base." #id "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = kernel_name,                                                               \
        .priority = 500,                                                                   \
        TN_OPERANDS(rules),                                                                \
        .accepts = cpu_sort_fits,                                                          \
        .scratch_size = scratch_rule,                                                      \
        .payload = &id##_payload,                                                          \
    }
RECORD(sort, "radix", sort_scratch);
RECORD(argsort, "radix", sort_scratch);
RECORD(topk, "radix", topk_scratch);
RECORD(partition, "select", partition_scratch);
RECORD(argpartition, "select", partition_scratch);
#undef RECORD
