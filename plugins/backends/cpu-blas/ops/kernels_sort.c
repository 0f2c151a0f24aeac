// SPDX-License-Identifier: MIT
// base.{sort,argsort,topk}/1. An array is viewed as outer x n x inner elements, n along the
// axis.
//
// An element becomes an unsigned key in whose order it is to come, with its place: in one
// word of 64 bits for dtypes of up to 32, otherwise in two. Rows are sorted side by side,
// in LANES lanes that have memory of their own; of few long rows, each is cut into parts
// that are sorted side by side, and then merged.
#include <string.h>
#include "kernels.h"

#define LANES 64
#define RUN_ITEMS 16    // so few are sorted by insertion
#define LEAST_RADIX 768 // items: fewer are sorted by merging
#define DIGIT_BITS 11
#define NUM_DIGITS (1 << DIGIT_BITS)
#define MAX_PASSES 6
#define LEAST_ROOM 1024  // items of a selection
#define LEAST_PART 32768 // items of a part of a row
#define MAX_PARTS 16
#define PIECE_ITEMS 16384 // that a thread merges at once; parts are multiples of it
#define COUNT_BYTES (sizeof(uint32_t) * MAX_PASSES * NUM_DIGITS) // of a sort

struct sorting {
    const struct cpu_kernels *kernels;
    int32_t dtype;
    uint32_t size, passes;
    bool is_wide, descending;
    int64_t outer, n, inner, k;
    int64_t lanes, room; // room: items that a lane sorts at once
    int64_t parts;       // of each row; above 1: without lanes
    const char *x;
    char *values;     // NULL: not wanted
    int64_t *indices; // NULL: not wanted
    char *scratch;
    uint64_t lane_bytes;
};

struct wide_item {
    uint64_t key, index;
};

// --- keys -------------------------------------------------------------------------------

// Bits of a float in whose order its value comes; NaN is the greatest, and both zeros are
// one.
static uint64_t float_key(uint64_t bits, uint32_t width, uint64_t infinity)
{
    uint64_t sign = UINT64_C(1) << (width - 1), size = bits & (sign - 1);
    if (size > infinity)
        return sign | (sign - 1);
    return size == 0 ? sign : bits & sign ? sign - 1 - size : sign | size;
}

// The key of element i of a packed row. The complement, cut to the width, reverses the
// order.
static inline uint64_t key_of(const struct sorting *s, const void *row, int64_t i)
{
    uint64_t bits, ones = UINT64_MAX >> (64 - 8 * s->size);
    switch (s->size) {
    case 1:
        bits = ((const uint8_t *)row)[i];
        break;
    case 2:
        bits = ((const uint16_t *)row)[i];
        break;
    case 4:
        bits = ((const uint32_t *)row)[i];
        break;
    default:
        bits = ((const uint64_t *)row)[i];
    }
    switch (s->dtype) {
    case TN_F16:
        bits = float_key(bits, 16, 0x7c00);
        break;
    case TN_BF16:
        bits = float_key(bits, 16, 0x7f80);
        break;
    case TN_F32:
        bits = float_key(bits, 32, 0x7f800000);
        break;
    case TN_F64:
        bits = float_key(bits, 64, UINT64_C(0x7ff0000000000000));
        break;
    default:
        if (tn_is_signed(s->dtype))
            bits ^= UINT64_C(1) << (8 * s->size - 1);
    }
    return s->descending ? bits ^ ones : bits;
}

#define ITEM uint64_t
#define NAME(word) word##_narrow
#define DIGIT(item, pass) ((item) >> (32 + (pass)*DIGIT_BITS) & (NUM_DIGITS - 1))
#define BEFORE(a, b) ((a) >> 32 < (b) >> 32)
static inline uint64_t item_narrow(const struct sorting *s, const void *row, int64_t i)
{
    return key_of(s, row, i) << 32 | (uint64_t)i;
}
#include "sort_items.inc.h"
#undef ITEM
#undef NAME
#undef DIGIT
#undef BEFORE

#define ITEM struct wide_item
#define NAME(word) word##_wide
#define DIGIT(item, pass) ((item).key >> ((pass)*DIGIT_BITS) & (NUM_DIGITS - 1))
#define BEFORE(a, b) ((a).key < (b).key)
static inline struct wide_item item_wide(const struct sorting *s, const void *row,
                                         int64_t i)
{
    return (struct wide_item){key_of(s, row, i), (uint64_t)i};
}
#include "sort_items.inc.h"
#undef ITEM
#undef NAME
#undef DIGIT
#undef BEFORE

// --- rows -------------------------------------------------------------------------------

// The place of the i-th element in order.
static inline uint64_t place_of(const uint64_t *narrow, const struct wide_item *wide,
                                int64_t i)
{
    return narrow ? narrow[i] & UINT32_MAX : wide[i].index;
}

#define WRITE_VALUES(U)                                                                    \
    for (int64_t i = begin; i < end; i++)                                                  \
    ((U *)s->values)[at + i * s->inner] = ((const U *)row)[place_of(narrow, wide, i)]

// Writes places [begin, end) in order, and the elements there, to the output's row that
// begins with element `at`.
static void write_row(const struct sorting *s, const void *row, const uint64_t *narrow,
                      const struct wide_item *wide, int64_t at, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end && s->indices; i++)
        s->indices[at + i * s->inner] = (int64_t)place_of(narrow, wide, i);
    if (!s->values)
        return;
    if (s->size == 1)
        WRITE_VALUES(uint8_t);
    else if (s->size == 2)
        WRITE_VALUES(uint16_t);
    else if (s->size == 4)
        WRITE_VALUES(uint32_t);
    else
        WRITE_VALUES(uint64_t);
}
#undef WRITE_VALUES

// A row that is being sorted, and its memory.
struct row {
    const struct sorting *s;
    const void *packed;
    void *items, *other;
    uint32_t *counts;    // for each part
    int64_t to;          // the first element of its output
    int64_t part, width; // items of a part, and of sorted ones so far
};

static struct row begin_row(const struct sorting *s, int64_t number, char *scratch)
{
    int64_t outer = number / s->inner, column = number - outer * s->inner;
    uint64_t item = s->is_wide ? sizeof(struct wide_item) : sizeof(uint64_t);
    char *items = scratch + COUNT_BYTES * (uint64_t)s->parts;
    char *other = items + (uint64_t)s->room * item, *row = other + (uint64_t)s->room * item;
    const char *from = s->x + (outer * s->n * s->inner + column) * s->size;
    if (s->inner > 1)
        s->kernels->copy[__builtin_ctz(s->size)](row, 1, from, s->inner, s->n);
    return (struct row){.s = s,
                        .packed = s->inner > 1 ? row : from,
                        .items = items,
                        .other = other,
                        .counts = (uint32_t *)scratch,
                        .to = outer * s->k * s->inner + column};
}

static void sort_row(const struct sorting *s, int64_t number, char *scratch)
{
    struct row r = begin_row(s, number, scratch);
    if (s->is_wide) {
        struct wide_item *all =
            select_wide(s, r.packed, r.items, r.other, s->room, r.counts);
        write_row(s, r.packed, NULL, all, r.to, 0, s->k);
    } else {
        uint64_t *all = select_narrow(s, r.packed, r.items, r.other, s->room, r.counts);
        write_row(s, r.packed, all, NULL, r.to, 0, s->k);
    }
}

// The loop runs over lanes: every so many-th row.
static void sort_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct sorting *s = context;
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t row = lane; row < s->outer * s->inner; row += s->lanes)
            sort_row(s, row, s->scratch + (uint64_t)lane * s->lane_bytes);
}

// --- parts of rows ----------------------------------------------------------------------

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The loop runs over parts.
static void sort_parts(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct row *r = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = least(part * r->part, r->s->n);
        int64_t last = least(first + r->part, r->s->n);
        uint32_t *counts = r->counts + part * MAX_PASSES * NUM_DIGITS;
        if (first < last && r->s->is_wide)
            sort_part_wide(r->s, r->packed, r->items, r->other, first, last, counts);
        else if (first < last)
            sort_part_narrow(r->s, r->packed, r->items, r->other, first, last, counts);
    }
}

// The loop runs over pieces of the row.
static void merge_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct row *r = context;
    int64_t n = r->s->n;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * PIECE_ITEMS, last = least(first + PIECE_ITEMS, n);
        if (r->s->is_wide)
            merge_part_wide(r->other, r->items, n, r->width, first, last);
        else
            merge_part_narrow(r->other, r->items, n, r->width, first, last);
    }
}

static void write_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct row *r = context;
    int64_t first = begin * PIECE_ITEMS, last = least(end * PIECE_ITEMS, r->s->n);
    write_row(r->s, r->packed, r->s->is_wide ? NULL : r->items,
              r->s->is_wide ? r->items : NULL, r->to, first, last);
}

// Sorts each row by all threads.
static void sort_in_parts(const tn_cpu_call *call, const struct sorting *s)
{
    int64_t pieces = (s->n + PIECE_ITEMS - 1) / PIECE_ITEMS;
    for (int64_t number = 0; number < s->outer * s->inner; number++) {
        struct row r = begin_row(s, number, s->scratch);
        r.part = (pieces + s->parts - 1) / s->parts * PIECE_ITEMS;
        call->parallel_for(call, s->parts, 1, sort_parts, &r);
        for (r.width = r.part; r.width < s->n; r.width *= 2) {
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
static int64_t count_parts(const struct sorting *s, int64_t threads)
{
    int64_t parts = 1;
    if (2 * s->outer * s->inner > threads || s->k < s->n)
        return 1;
    while (parts < threads && parts < MAX_PARTS && s->n / (2 * parts) >= LEAST_PART)
        parts *= 2;
    return parts;
}

static struct sorting describe(const tn_layout *x, int64_t given_axis, int64_t k,
                               uint32_t threads)
{
    int32_t axis = tn_axis(given_axis, x->rank);
    struct sorting s = {.dtype = x->dtype,
                        .size = cpu_dtype_size(x->dtype),
                        .outer = 1,
                        .inner = 1,
                        .n = x->extent[axis]};
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            *(i < axis ? &s.outer : &s.inner) *= x->extent[i];
    s.k = k < 0 ? s.n : k;
    s.is_wide = s.size == 8;
    s.passes = (8 * s.size + DIGIT_BITS - 1) / DIGIT_BITS;
    s.lanes = s.outer * s.inner < LANES ? s.outer * s.inner : LANES;
    s.room = 4 * s.k < LEAST_ROOM ? LEAST_ROOM : 4 * s.k;
    // Without a selection the row is sorted at once: it never reaches this room.
    s.room = s.room < s.n ? s.room : s.n + 1;
    uint64_t items = tn_saturated_multiply(
        (uint64_t)s.room, 2 * (s.is_wide ? sizeof(struct wide_item) : sizeof(uint64_t)));
    uint64_t row = s.inner > 1 ? (uint64_t)s.n * s.size : 0;
    s.parts = count_parts(&s, threads);
    s.lane_bytes =
        tn_saturated_add(tn_saturated_add(items, row), COUNT_BYTES * (uint64_t)s.parts);
    s.lane_bytes = tn_saturated_add(s.lane_bytes, 63) & ~UINT64_C(63);
    return s;
}

static uint64_t scratch_of(struct sorting s)
{
    return tn_saturated_multiply(s.lane_bytes, (uint64_t)s.lanes);
}

static void start(const tn_cpu_call *call, struct sorting *s)
{
    int64_t each = s->n * 8;
    s->kernels = kernel_variant(call);
    s->x = first_element(&call->inputs[0]);
    s->scratch = call->scratch;
    if (s->outer * s->inner * s->k == 0)
        return;
    if (s->parts > 1) {
        sort_in_parts(call, s);
        return;
    }
    call->parallel_for(call, s->lanes, each > 16384 ? 1 : 1 + 16384 / (each + 1),
                       sort_lanes, s);
}

static int32_t fits(const tn_kernel_query *query)
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
    return scratch_of(describe(&query->inputs[0], attrs->axis, -1, query->num_workers));
}

static uint64_t topk_scratch(const tn_kernel_query *query)
{
    const tn_topk_attrs *attrs = query->attrs;
    return scratch_of(
        describe(&query->inputs[0], attrs->axis, attrs->k, query->num_workers));
}

static tn_status sort(const tn_cpu_call *call)
{
    const tn_sort_attrs *attrs = call->attrs;
    struct sorting s =
        describe(&call->inputs[0].layout, attrs->axis, -1, call->num_threads);
    s.descending = attrs->descending != 0;
    s.values = first_element(&call->outputs[0]);
    start(call, &s);
    return TN_OK;
}

static tn_status argsort(const tn_cpu_call *call)
{
    const tn_sort_attrs *attrs = call->attrs;
    struct sorting s =
        describe(&call->inputs[0].layout, attrs->axis, -1, call->num_threads);
    s.descending = attrs->descending != 0;
    s.indices = first_element(&call->outputs[0]);
    start(call, &s);
    return TN_OK;
}

static tn_status topk(const tn_cpu_call *call)
{
    const tn_topk_attrs *attrs = call->attrs;
    struct sorting s =
        describe(&call->inputs[0].layout, attrs->axis, attrs->k, call->num_threads);
    s.descending = attrs->largest != 0;
    s.values = first_element(&call->outputs[0]);
    s.indices = first_element(&call->outputs[1]);
    start(call, &s);
    return TN_OK;
}

static const tn_operand_rule rules[] = {{0, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, scratch_rule)                                                           \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "base." #id "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "radix",                                                                   \
        .priority = 500,                                                                   \
        TN_OPERANDS(rules),                                                                \
        .accepts = fits,                                                                   \
        .scratch_size = scratch_rule,                                                      \
        .payload = &id##_payload,                                                          \
    }
RECORD(sort, sort_scratch);
RECORD(argsort, sort_scratch);
RECORD(topk, topk_scratch);
#undef RECORD
