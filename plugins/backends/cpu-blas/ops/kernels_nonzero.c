// SPDX-License-Identifier: MIT
// base.nonzero/1 of masks: a bit an element and counts of pieces first, then the indices of
// each piece from where its first one goes.
#include <string.h>
#include "kernels.h"

#define BLOCK 4096 // elements that become bits at a time
#define PIECE 32768

struct choosing {
    const tn_cpu_call *call;
    const uint8_t *mask; // NULL: a program gives it
    uint64_t *bits;
    int64_t *counts; // of pieces; then the number of the first index of each
    int64_t n, size;
    int32_t rank;
    const int64_t *extent;
    int64_t *out[TN_MAX_RANK];
};

static int64_t count_pieces(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

// 64 bytes of 0 or 1 as bits, eight at a time by a product.
static uint64_t mask_bits(const uint8_t *from)
{
    uint64_t word = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t eight;
        memcpy(&eight, from + 8 * k, sizeof(eight));
        word |= eight * UINT64_C(0x0102040810204080) >> 56 << 8 * k;
    }
    return word;
}

// The loop runs over pieces.
static void count_bits(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct choosing *c = context;
    uint8_t block[BLOCK];
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * PIECE, last = first + PIECE < c->n ? first + PIECE : c->n;
        int64_t count = 0;
        for (int64_t at = first; at < last; at += BLOCK) {
            int64_t n = last - at < BLOCK ? last - at : BLOCK;
            const uint8_t *from = c->mask ? c->mask + at : block;
            if (!c->mask)
                c->call->load(c->call, 0, at, n, block, worker);
            for (int64_t i = 0; i < n; i += 64) {
                uint8_t rest[64] = {0};
                if (n - i < 64)
                    memcpy(rest, from + i, (size_t)(n - i));
                uint64_t word = mask_bits(n - i < 64 ? rest : from + i);
                c->bits[(at + i) / 64] = word;
                count += __builtin_popcountll(word);
            }
        }
        c->counts[piece] = count;
    }
}

// Where the walk over elements is.
struct nonzero_cursor {
    int64_t at;                 // the number of the next index
    int64_t row_end;            // the first element behind the row of the last axis
    int64_t index[TN_MAX_RANK]; // of that row, along the axes before
};

static void start_at(const struct choosing *c, int64_t element, struct nonzero_cursor *p)
{
    int64_t row = c->extent[c->rank - 1], outer = element / row;
    p->row_end = (outer + 1) * row;
    for (int32_t axis = c->rank - 2; axis >= 0; axis--) {
        p->index[axis] = outer % c->extent[axis];
        outer /= c->extent[axis];
    }
}

static void next_row(const struct choosing *c, struct nonzero_cursor *p)
{
    p->row_end += c->extent[c->rank - 1];
    for (int32_t axis = c->rank - 2; axis >= 0; axis--) {
        if (++p->index[axis] < c->extent[axis])
            return;
        p->index[axis] = 0;
    }
}

// Writes the indices of the bits of `word`, of elements of one row: bit 0 has index `first`
// along the last axis.
static void put_bits(const struct choosing *c, struct nonzero_cursor *p, uint64_t word,
                     int64_t first)
{
    int64_t *last = c->out[c->rank - 1] + p->at, n = 0, room = c->size - p->at;
    int64_t count = __builtin_popcountll(word);
    count = count < room ? count : room;
    for (; n < count; n++, word &= word - 1)
        last[n] = first + __builtin_ctzll(word);
    for (int32_t axis = 0; axis < c->rank - 1; axis++)
        for (int64_t i = 0; i < count; i++)
            c->out[axis][p->at + i] = p->index[axis];
    p->at += count;
}

// The loop runs over pieces.
static void put_pieces(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct choosing *c = context;
    int64_t row = c->extent[c->rank - 1], last = end * PIECE < c->n ? end * PIECE : c->n;
    struct nonzero_cursor p = {.at = c->counts[begin]};
    start_at(c, begin * PIECE, &p);
    for (int64_t at = begin * PIECE; at < last && p.at < c->size; at += 64) {
        uint64_t word = c->bits[at / 64];
        while (p.row_end - at < 64) {
            int64_t left = p.row_end - at; // bits of this row, above 0
            uint64_t here = left > 0 ? word & ((UINT64_C(1) << left) - 1) : 0;
            if (here)
                put_bits(c, &p, here, at - (p.row_end - row));
            word &= ~here;
            if (p.row_end >= last)
                break;
            next_row(c, &p);
        }
        if (word)
            put_bits(c, &p, word, at - (p.row_end - row));
    }
}

static uint64_t choosing_scratch(const tn_kernel_query *query)
{
    int64_t pieces = count_pieces(count_elements(&query->inputs[0]));
    return tn_saturated_multiply((uint64_t)pieces, PIECE / 8 + sizeof(int64_t));
}

static tn_status cpu_nonzero(const tn_cpu_call *call)
{
    const tn_bounded_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout;
    int64_t n = count_elements(x), pieces = count_pieces(n), total = 0;
    struct choosing c = {.call = call,
                         .mask =
                             call->inputs[0].data ? first_element(&call->inputs[0]) : NULL,
                         .bits = call->scratch,
                         .n = n,
                         .size = attrs->size,
                         .rank = x->rank,
                         .extent = x->extent};
    if (pieces > 0)
        c.counts = (int64_t *)(c.bits + pieces * (PIECE / 64));
    for (int32_t axis = 0; axis < c.rank; axis++)
        c.out[axis] = first_element(&call->outputs[axis]);
    if (n > 0)
        call->parallel_for(call, pieces, 1, count_bits, &c);
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t count = c.counts[piece];
        c.counts[piece] = total;
        total += count;
    }
    if (n > 0)
        call->parallel_for(call, pieces, 1, put_pieces, &c);
    for (int32_t axis = 0; axis < c.rank; axis++)
        for (int64_t i = total; i < c.size; i++)
            c.out[axis][i] = (int64_t)attrs->fill_value;
    *(int64_t *)first_element(&call->outputs[c.rank]) = total;
    return TN_OK;
}

static const tn_operand_rule rules[] = {
    {TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0},
    {TN_DTYPE_BIT(TN_I64), TN_NEEDS_CONTIGUOUS, 0, 0},
};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cpu_nonzero,
};
const tn_kernel nonzero_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "base.nonzero/1",
    .family = TN_FAMILY_CPU,
    .name = "bits",
    .priority = 500,
    TN_OPERANDS(rules),
    .scratch_size = choosing_scratch,
    .payload = &payload,
};
