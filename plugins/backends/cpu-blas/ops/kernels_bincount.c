// SPDX-License-Identifier: MIT
// base.bincount/1 without weights, which histograms have, too: each thread counts in tables
// of its own, adjacent elements in different tables, as a count waits for the one before.
#include <string.h>
#include "kernels.h"

#define BLOCK 2048 // numbers that are read at a time
#define TABLES 4   // of a thread
#define MOST_COUNTS 8192
#define PIECE_ELEMENTS 65536

struct bincount {
    const tn_cpu_call *call;
    cpu_map_fn *widen;
    const char *from; // of numbers; NULL: a program gives them
    uint32_t size;    // bytes of a number
    int64_t n;
    uint64_t *tables; // each thread's TABLES of n + 1 counts: last of numbers out of range
};

// Numbers as i64; n for all that are out of range, as of u64 those from 2^63 on are.
static void cpu_bincount_read_numbers(const struct bincount *c, int64_t first,
                                      int64_t count, uint32_t worker, int64_t at[BLOCK])
{
    int64_t read[BLOCK];
    const void *in = c->from ? c->from + first * c->size : (const char *)read;
    if (!c->from)
        c->call->load(c->call, 0, first, count, read, worker);
    c->widen(at, &in, count, 0);
    for (int64_t i = 0; i < count; i++)
        at[i] = (uint64_t)at[i] < (uint64_t)c->n ? at[i] : c->n;
}

static void count_range(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct bincount *c = context;
    uint64_t *table = c->tables + worker * TABLES * (c->n + 1);
    uint64_t *second = table + c->n + 1, *third = second + c->n + 1,
             *fourth = third + c->n + 1;
    int64_t at[BLOCK];
    for (int64_t count; begin < end; begin += count) {
        count = end - begin < BLOCK ? end - begin : BLOCK;
        cpu_bincount_read_numbers(c, begin, count, worker, at);
        int64_t i = 0;
        for (; i + TABLES <= count; i += TABLES) {
            table[at[i]]++;
            second[at[i + 1]]++;
            third[at[i + 2]]++;
            fourth[at[i + 3]]++;
        }
        for (; i < count; i++)
            table[at[i]]++;
    }
}

static tn_status cpu_bincount(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct bincount c = {.call = call,
                         .widen = kernel_variant(call)->cast[x->layout.dtype][TN_I64],
                         .from = x->data ? first_element(x) : NULL,
                         .size = cpu_dtype_size(x->layout.dtype),
                         .n = out->layout.extent[0],
                         .tables = call->scratch};
    uint32_t tables = call->num_threads * TABLES;
    int64_t *counts = first_element(out);
    memset(c.tables, 0, tables * (size_t)(c.n + 1) * sizeof(*c.tables));
    call->parallel_for(call, x->layout.extent[0], PIECE_ELEMENTS, count_range, &c);
    for (int64_t i = 0; i < c.n; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < tables; k++)
            sum += c.tables[k * (c.n + 1) + i];
        counts[i] = (int64_t)sum;
    }
    return TN_OK;
}

static uint64_t table_scratch(const tn_kernel_query *query)
{
    uint64_t counts = (uint64_t)query->outputs[0].extent[0] + 1;
    return query->num_workers * TABLES * sizeof(uint64_t) * counts;
}

// Accepts short tables, and more numbers than they have counts.
static int32_t bincount_accepts(const tn_kernel_query *query)
{
    int64_t n = query->outputs[0].extent[0];
    bool has_weights = query->num_inputs > 1 && query->inputs[1].dtype != TN_DTYPE_NONE;
    return !has_weights && n <= MOST_COUNTS && query->inputs[0].extent[0] >= n;
}

static const tn_operand_rule rules[] = {
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0},
    {0, TN_NEEDS_ANY, 0, 0},
    {TN_DTYPE_BIT(TN_I64), TN_NEEDS_CONTIGUOUS, 0, 0},
};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cpu_bincount,
};
const tn_kernel bincount_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "base.bincount/1",
    .family = TN_FAMILY_CPU,
    .name = "tables",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = bincount_accepts,
    .scratch_size = table_scratch,
    .payload = &payload,
};
