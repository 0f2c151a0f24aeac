// SPDX-License-Identifier: MIT
// nn.attention_grad/1 of floats: the derivative of attention, without a matrix of all
// scores (after Dao et al., "FlashAttention", 2022).
//
// The queries of a group of heads are rows of one matrix, ATTENTION_ROW_BLOCK of which are
// computed at a time. Of such a block the weights of all keys are computed and kept, if
// there are not too many: then each product is made once. Else, and with a soft cap, scores
// are computed twice, tile by tile: for the greatest one and the sum of each row, and then
// for the weights. A block adds to the gradients of all keys that it sees.
//
// Where there are few groups, their blocks are dealt to splits, each with sums of its own
// for the gradients of keys and values, which are added at the end. How many depends on
// shapes, not on the threads, and so do the results.
//
// Half floats are computed in f32: a block of rows, or of keys, at a time is widened.
#include "attention.h"
#include <string.h>
#include "cpu/attention/grad.h"

#define MOST_KEPT (INT64_C(1) << 22)   // bytes of the weights of a block
#define MOST_SUMS (INT64_C(1) << 28)   // bytes of the sums of splits, for more than one
#define ITEMS 16                       // splits of groups: enough for as many threads
#define SINKS 3                        // the input, and their output
#define GRAIN 4096                     // elements of sums
#define PANEL_ROWS 32                  // the least of a group for which panels are made
#define MOST_PANELS (INT64_C(1) << 27) // bytes of all groups' panels

// --- memory: the sums of items, and then that of workers -------------------------------

static int64_t count_groups(const struct attention_gradient *g)
{
    return g->of.batches * g->of.groups;
}

// Bytes of an item's sums: the gradients of keys, and then of values.
static int64_t keys_bytes(const struct attention_gradient *g)
{
    return attention_round_up(g->of.keys * g->of.depth * g->of.element);
}

static int64_t item_bytes(const struct attention_gradient *g)
{
    return keys_bytes(g) + attention_round_up(g->of.keys * g->of.width * g->of.element);
}

// Bytes of a group's panels: keys across and along, values across.
static int64_t cpu_attention_grad_panel_bytes(const struct attention *s)
{
    return (attention_across_floats(s, s->depth) + attention_along_floats(s, s->depth) +
            attention_across_floats(s, s->width)) *
           (int64_t)sizeof(float);
}

// Whether keys and values become panels. Rows of q and of gradients are read in vectors.
static bool cpu_attention_grad_has_panels(const struct attention_gradient *g)
{
    const struct attention *s = &g->of;
    return s->dtype == TN_F32 && s->depth % 16 == 0 && s->width % 16 == 0 &&
           s->per_group * s->queries >= PANEL_ROWS && count_groups(g) > 0 &&
           cpu_attention_grad_panel_bytes(s) <= MOST_PANELS / count_groups(g);
}

// Pieces of a worker's memory for a block. The last six are for half floats, or for tiles.
enum piece { WEIGHTS, TERMS, SLOPES, Q, OUT, GRADIENT, DQ, WIDE_K, WIDE_V, NUM_PIECES };

static int64_t piece_bytes(const struct attention_gradient *g, enum piece piece)
{
    const struct attention *s = &g->of;
    int64_t weights = g->is_kept ? g->pitch : ATTENTION_KEY_BLOCK, slopes = s->soft_cap > 0;
    int64_t half = attention_is_half(s);
    const int64_t elements[NUM_PIECES] = {
        ATTENTION_ROW_BLOCK * weights,
        ATTENTION_ROW_BLOCK * ATTENTION_PITCH,
        ATTENTION_ROW_BLOCK * ATTENTION_KEY_BLOCK * slopes,
        (half || cpu_attention_grad_has_panels(g)) * ATTENTION_ROW_BLOCK * s->depth,
        half * ATTENTION_ROW_BLOCK * s->width,
        half * ATTENTION_ROW_BLOCK * s->width,
        half * ATTENTION_ROW_BLOCK * s->depth,
        half * ATTENTION_KEY_BLOCK * s->depth,
        half * ATTENTION_KEY_BLOCK * s->width};
    return attention_round_up(elements[piece] * s->element);
}

static int64_t cpu_attention_grad_worker_bytes(const struct attention_gradient *g)
{
    int64_t sum = 0;
    for (int i = 0; i < NUM_PIECES; i++)
        sum += piece_bytes(g, (enum piece)i);
    return sum;
}

static void cpu_attention_grad_lay_out(const struct attention_gradient *g, char *memory,
                                       struct attention_grad_block *b, char *halves[4])
{
    char *pieces[NUM_PIECES];
    for (int i = 0; i < NUM_PIECES; i++) {
        pieces[i] = memory;
        memory += piece_bytes(g, (enum piece)i);
    }
    b->weights = pieces[WEIGHTS];
    b->terms = pieces[TERMS];
    b->slopes = pieces[SLOPES];
    b->wide_k = pieces[WIDE_K];
    b->wide_v = pieces[WIDE_V];
    memcpy(halves, pieces + Q, 4 * sizeof(*halves)); // to DQ
}

// --- panels ----------------------------------------------------------------------------

static void pack_group(const struct attention_gradient *g, int64_t group,
                       const struct attention_grad_block *b)
{
    const struct attention *s = &g->of;
    const struct attention_unit u = attention_unit(s, group);
    float *across =
        (float *)(void *)(s->panels + group * cpu_attention_grad_panel_bytes(s));
    float *along = across + attention_across_floats(s, s->depth);
    float *values = along + attention_along_floats(s, s->depth);
    for (int64_t at = 0; at < s->keys; at += ATTENTION_KEY_BLOCK) {
        const int64_t left = s->keys - at;
        const int64_t n = left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK;
        int64_t k_row = s->k_row, v_row = s->v_row;
        const float *k = attention_read_rows(s, b->wide_k, u.k, at, n, s->depth, &k_row);
        attention_pack_across(s, k, k_row, at, n, s->depth, across);
        attention_pack_along(s, k, k_row, at, n, s->depth, along);
        const float *v = attention_read_rows(s, b->wide_v, u.v, at, n, s->width, &v_row);
        attention_pack_across(s, v, v_row, at, n, s->width, values);
    }
}

// The loop runs over groups.
static void cpu_attention_grad_pack_groups(void *context, int64_t begin, int64_t end,
                                           uint32_t worker)
{
    const struct attention_gradient *g = context;
    char *memory = g->lanes + worker * cpu_attention_grad_worker_bytes(g), *halves[4];
    struct attention_grad_block b;
    cpu_attention_grad_lay_out(g, memory, &b, halves);
    for (int64_t group = begin; group < end; group++)
        pack_group(g, group, &b);
}

// --- items: splits of groups ------------------------------------------------------------

// Casts `count` elements from `from`, of dtype `in`, to dtype `out`.
static void cast_rows(const struct attention *s, int32_t in, int32_t out, const char *from,
                      char *to, int64_t count)
{
    const void *operand = from;
    s->kernels->cast[in][out](to, &operand, count, 0);
}

static const char *cpu_attention_grad_widen(const struct attention *s, const char *from,
                                            char *to, int64_t first, int64_t rows,
                                            int64_t width)
{
    from += first * width * s->stored_size;
    if (!attention_is_half(s))
        return from;
    cast_rows(s, s->stored, s->dtype, from, to, rows * width);
    return to;
}

// Computes rows [begin, begin + b->rows) of a group, whose first row is row `first` of all.
static void run_block(const struct attention_gradient *g, const struct attention_unit *unit,
                      int64_t first, int64_t begin, char *const halves[4],
                      struct attention_grad_block *b)
{
    const struct attention *s = &g->of;
    int64_t row = first + begin, size = b->rows * s->depth;
    char *dq = g->dq + row * s->depth * s->stored_size;
    b->low = s->keys;
    b->high = 0;
    for (int64_t i = 0; i < b->rows; i++) {
        struct attention_row *state = &b->states[i];
        *state = attention_see(s, unit, begin + i);
        bool sees = state->low < state->high;
        b->low = sees && state->low < b->low ? state->low : b->low;
        b->high = sees && state->high > b->high ? state->high : b->high;
    }
    b->low = s->panels ? b->low / CPU_TILES_MOST * CPU_TILES_MOST : b->low;
    b->q = cpu_attention_grad_widen(s, s->q, halves[0], row, b->rows, s->depth);
    if (s->panels) {
        const float scale = (float)s->scale;
        const void *in[] = {b->q, &scale};
        s->kernels->map[TN_F32][TN_EXPR_MUL](halves[0], in, size, 2);
        b->q = halves[0];
    }
    b->out = cpu_attention_grad_widen(s, g->out, halves[1], row, b->rows, s->width);
    b->gradient =
        cpu_attention_grad_widen(s, g->gradient, halves[2], row, b->rows, s->width);
    b->dq = attention_is_half(s) ? halves[3] : dq;
    b->to_sinks = g->to_sinks ? g->to_sinks + row * s->element : NULL;
    if (b->to_sinks)
        memset(b->to_sinks, 0, (size_t)(b->rows * s->element));
    memset(b->dq, 0, (size_t)(size * s->element));
    if (b->low < b->high)
        attention_add_gradients(g, b);
    if (attention_is_half(s))
        cast_rows(s, s->dtype, s->stored, b->dq, dq, size);
}

// `item`: number of a group * splits + number of a split.
static void cpu_attention_grad_run_item(const struct attention_gradient *g, int64_t item,
                                        char *memory)
{
    const struct attention *s = &g->of;
    struct attention_row states[ATTENTION_ROW_BLOCK];
    double shared[ATTENTION_ROW_BLOCK];
    struct attention_grad_block b = {.states = states, .shared = shared};
    struct attention_unit unit = attention_unit(s, item / s->splits);
    char *halves[4];
    cpu_attention_grad_lay_out(g, memory, &b, halves);
    int64_t group = item / s->splits, all = s->per_group * s->queries;
    b.k = unit.k;
    b.v = unit.v;
    if (s->panels && s->splits == 1) // they are in the caches then
        pack_group(g, group, &b);
    if (s->panels) {
        b.k_across =
            (const float *)(const void *)(s->panels +
                                          group * cpu_attention_grad_panel_bytes(s));
        b.k_along = b.k_across + attention_across_floats(s, s->depth);
        b.v_across = b.k_along + attention_along_floats(s, s->depth);
    }
    b.dk = g->has_sums ? g->sums + item * item_bytes(g)
                       : g->dk + group * s->keys * s->depth * s->element;
    b.dv = g->has_sums ? b.dk + keys_bytes(g)
                       : g->dv + group * s->keys * s->width * s->element;
    memset(b.dk, 0, (size_t)(s->keys * s->depth * s->element));
    memset(b.dv, 0, (size_t)(s->keys * s->width * s->element));
    for (int64_t n = item % s->splits; n < s->blocks; n += s->splits) {
        int64_t begin = n * ATTENTION_ROW_BLOCK;
        b.rows = all - begin < ATTENTION_ROW_BLOCK ? all - begin : ATTENTION_ROW_BLOCK;
        run_block(g, &unit, group * all, begin, halves, &b);
    }
}

static void cpu_attention_grad_run_items(void *context, int64_t begin, int64_t end,
                                         uint32_t worker)
{
    const struct attention_gradient *g = context;
    for (int64_t item = begin; item < end; item++)
        cpu_attention_grad_run_item(g, item,
                                    g->lanes + worker * cpu_attention_grad_worker_bytes(g));
}

// --- sums ------------------------------------------------------------------------------

// Adds elements [begin, end) of the sums of a group's items.
static void add_range(const struct attention_gradient *g, const char *sums, char *out,
                      int64_t begin, int64_t end)
{
    const struct attention *s = &g->of;
    double wide[GRAIN / 2]; // as many floats as a range has
    char *to = attention_is_half(s) ? (char *)wide : out + begin * s->element;
    attention_add_sums(g, to, sums, begin, end, item_bytes(g));
    if (attention_is_half(s))
        cast_rows(s, s->dtype, s->stored, to, out + begin * s->stored_size, end - begin);
}

static int64_t ranges_of(int64_t elements)
{
    return (elements + GRAIN - 1) / GRAIN;
}

// Ranges of GRAIN elements: of each group those of keys, and then those of values.
static void add_items(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention_gradient *g = context;
    const struct attention *s = &g->of;
    int64_t k_count = s->keys * s->depth, v_count = s->keys * s->width;
    int64_t k_ranges = ranges_of(k_count), ranges = k_ranges + ranges_of(v_count);
    for (int64_t n = begin; n < end; n++) {
        int64_t group = n / ranges, range = n % ranges;
        bool is_k = range < k_ranges;
        int64_t count = is_k ? k_count : v_count;
        int64_t first = (is_k ? range : range - k_ranges) * GRAIN;
        const char *sums =
            g->sums + group * s->splits * item_bytes(g) + (is_k ? 0 : keys_bytes(g));
        add_range(g, sums, (is_k ? g->dk : g->dv) + group * count * s->stored_size, first,
                  count - first < GRAIN ? count : first + GRAIN);
    }
}

// --- the kernel ------------------------------------------------------------------------

static void cpu_attention_grad_describe(const tn_layout inputs[3],
                                        const tn_attention_attrs *attrs,
                                        struct attention_gradient *g)
{
    struct attention *s = &g->of;
    attention_read_shape(inputs, s);
    s->soft_cap = attrs->soft_cap;
    s->blocks = (s->per_group * s->queries + ATTENTION_ROW_BLOCK - 1) / ATTENTION_ROW_BLOCK;
    // Rows are 16 elements longer, so that their pitch is no power of two: such rows would
    // share few sets of a cache.
    g->pitch = (s->keys + 15) / 16 * 16 + 16;
    g->is_kept =
        s->soft_cap == 0 && g->pitch <= MOST_KEPT / ATTENTION_ROW_BLOCK / s->element;
    int64_t groups = count_groups(g), size = item_bytes(g);
    int64_t wanted = groups > 0 ? (ITEMS + groups - 1) / groups : 1;
    int64_t most = groups > 0 && size > 0 ? MOST_SUMS / size / groups : 1;
    wanted = wanted < most ? wanted : most;
    wanted = wanted < s->blocks ? wanted : s->blocks;
    s->splits = wanted > 1 ? wanted : 1;
    g->has_sums = s->splits > 1 || attention_is_half(s);
}

static int64_t cpu_attention_grad_sums_bytes(const struct attention_gradient *g)
{
    return g->has_sums ? count_groups(g) * g->of.splits * item_bytes(g) : 0;
}

// `out`: the number of input `out`.
static tn_status run_gradient(const tn_cpu_call *call, uint32_t out)
{
    struct attention_gradient g = {.out = first_element(&call->inputs[out]),
                                   .gradient = first_element(&call->inputs[out + 1]),
                                   .dq = first_element(&call->outputs[0]),
                                   .dk = first_element(&call->outputs[1]),
                                   .dv = first_element(&call->outputs[2]),
                                   .sums = call->scratch};
    struct attention *s = &g.of;
    s->kernels = kernel_variant(call);
    s->q = first_element(&call->inputs[0]);
    s->k = first_element(&call->inputs[1]);
    s->v = first_element(&call->inputs[2]);
    const tn_layout in[] = {call->inputs[0].layout, call->inputs[1].layout,
                            call->inputs[2].layout};
    cpu_attention_grad_describe(in, call->attrs, &g);
    attention_read_options(call, out + 2, s);
    if (out > SINKS) {
        s->sinks = &call->inputs[SINKS];
        g.to_sinks = first_element(&call->outputs[SINKS]);
    }
    g.lanes = g.sums + cpu_attention_grad_sums_bytes(&g);
    if (count_groups(&g) == 0)
        return TN_OK;
    tn_status status = blas_enter(call, &s->blas);
    if (status)
        return status;
    if (cpu_attention_grad_has_panels(&g)) {
        s->tiles = s->kernels->tiles;
        s->panels = g.lanes + attention_round_up(call->num_threads *
                                                 cpu_attention_grad_worker_bytes(&g));
        if (s->splits > 1)
            call->parallel_for(call, count_groups(&g), 1, cpu_attention_grad_pack_groups,
                               &g);
    }
    call->parallel_for(call, count_groups(&g) * s->splits, 1, cpu_attention_grad_run_items,
                       &g);
    blas_leave();
    if (g.has_sums)
        call->parallel_for(call,
                           count_groups(&g) * (ranges_of(s->keys * s->depth) +
                                               ranges_of(s->keys * s->width)),
                           1, add_items, &g);
    return TN_OK;
}

static tn_status attention_grad(const tn_cpu_call *call)
{
    return run_gradient(call, 3);
}

static tn_status attention_with_sinks_grad(const tn_cpu_call *call)
{
    return run_gradient(call, 4);
}

static uint64_t attention_grad_scratch(const tn_kernel_query *query)
{
    struct attention_gradient g = {0};
    cpu_attention_grad_describe(query->inputs, query->attrs, &g);
    uint64_t panels =
        cpu_attention_grad_has_panels(&g)
            ? (uint64_t)(count_groups(&g) * cpu_attention_grad_panel_bytes(&g.of)) + 64
            : 0;
    return tn_saturated_add(
        tn_saturated_add((uint64_t)cpu_attention_grad_sums_bytes(&g), panels),
        tn_saturated_multiply(query->num_workers,
                              (uint64_t)cpu_attention_grad_worker_bytes(&g)));
}

static int32_t attention_grad_accepts(const tn_kernel_query *query)
{
    const tn_layout *v = &query->inputs[2];
    return attention_is_taken(query, 5, 5) && v->extent[v->rank - 1] > 0;
}

static int32_t sinks_grad_accepts(const tn_kernel_query *query)
{
    const tn_layout *v = &query->inputs[2];
    return attention_is_taken(query, 6, 6) && v->extent[v->rank - 1] > 0;
}

static const tn_operand_rule rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // q
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // k
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // v
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // out
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // gradient
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                       // lengths
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = attention_grad,
};
const tn_kernel attention_grad_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.attention_grad/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = attention_grad_accepts,
    .scratch_size = attention_grad_scratch,
    .payload = &payload,
};

static const tn_operand_rule sinks_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // q
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // k
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // v
    {TN_FLOAT_DTYPES, TN_NEEDS_ANY},                         // sinks
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // out
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // gradient
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                       // lengths
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel sinks_payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = attention_with_sinks_grad,
};
const tn_kernel attention_with_sinks_grad_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.attention_with_sinks_grad/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(sinks_rules),
    .accepts = sinks_grad_accepts,
    .scratch_size = attention_grad_scratch,
    .payload = &sinks_payload,
};
