// SPDX-License-Identifier: MIT
// nn.scaled_dot_product_attention/1 of floats and quant.cached_attention/1, without a
// matrix of all scores.
//
// The queries of a group of heads are rows of one matrix, ATTENTION_ROW_BLOCK of which are
// computed at a time, over ATTENTION_KEY_BLOCK keys at a time: scores by a product, weights
// by exp() of scores less the greatest so far, and their product with the values is added
// to the output. When a greater score comes, what a row has so far is scaled down (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022). Blocks of keys that no row sees are left out.
//
// Where there are too few blocks of rows for many threads, as in a step of a language
// model, the keys of a block are computed in splits, whose sums are added at the end. How
// many depends on shapes and lengths, not on the threads, and so do the results.
//
// Keys and values of f32, for more than few rows, are copied into panels first, which
// register tiles read (kernels/cpu/attention/products.c); else OpenBLAS multiplies.
//
// On AMX queries, keys and values of BF16 are multiplied as they are, in tiles that keys
// and values become first (kernels/cpu/attention/halves_tiles.h).
//
// Other half floats and blocks are computed in f32: few rows of q read keys and values
// where they lie, and for more a block of these at a time is widened.
#include "attention.h"
#include <string.h>
#include "cpu/attention/halves_tiles.h"

#define SPLIT_KEYS (2 * ATTENTION_KEY_BLOCK) // least keys of a split
#define LANES 64                             // that share the blocks, each with own memory
#define PANEL_ROWS 32                        // least rows of q for which panels are made
#define MOST_PANELS (INT64_C(1) << 27)       // bytes of all groups' panels

// --- blocks ----------------------------------------------------------------------------

// A block of rows.
struct cpu_attention_unit {
    struct attention_unit of;
    int64_t begin, rows, row; // in the group; number of the first row among all
};

static struct cpu_attention_unit find_unit(const struct attention *s, int64_t number)
{
    struct cpu_attention_unit u = {.of = attention_unit(s, number / s->blocks),
                                   .begin = number % s->blocks * ATTENTION_ROW_BLOCK};
    int64_t all = s->per_group * s->queries;
    u.rows = all - u.begin < ATTENTION_ROW_BLOCK ? all - u.begin : ATTENTION_ROW_BLOCK;
    u.row = number / s->blocks * all + u.begin;
    return u;
}

// Begins the rows of a block, and leaves split `split` of the keys that they see.
static void cpu_attention_begin_rows(const struct attention *s,
                                     const struct cpu_attention_unit *u, int64_t split,
                                     struct attention_block *b)
{
    b->low = s->keys;
    b->high = 0;
    for (int64_t i = 0; i < b->rows; i++) {
        struct attention_row *state = &b->states[i];
        *state = attention_see(s, &u->of, u->begin + i);
        bool sees = state->low < state->high;
        b->low = sees && state->low < b->low ? state->low : b->low;
        b->high = sees && state->high > b->high ? state->high : b->high;
    }
    if (b->low >= b->high)
        return;
    b->low = s->panels ? b->low / CPU_TILES_MOST * CPU_TILES_MOST : b->low;
    int64_t tiles = (b->high - b->low + ATTENTION_KEY_BLOCK - 1) / ATTENTION_KEY_BLOCK;
    int64_t size = (tiles + s->splits - 1) / s->splits * ATTENTION_KEY_BLOCK;
    b->low += split * size;
    b->high = b->high - b->low < size ? b->high : b->low + size;
}

// --- memory: of lanes, then of splits, and then of panels -------------------------------

// Whether keys and values may become tiles, on processors that have them.
static bool may_have_tiles(const struct attention *s)
{
    return s->stored == TN_BF16 && s->kv == TN_BF16 && s->depth > 0 &&
           s->depth % ATTENTION_TILE_TERMS == 0 && s->width % ATTENTION_TILE_TERMS == 0;
}

static int64_t tiled_keys(const struct attention *s)
{
    return (s->keys + ATTENTION_TILE_ROWS - 1) / ATTENTION_TILE_ROWS * ATTENTION_TILE_ROWS;
}

// Bytes of a group's panels, keys first.
static int64_t cpu_attention_panel_bytes(const struct attention *s)
{
    int64_t panels =
        (attention_across_floats(s, s->depth) + attention_along_floats(s, s->width)) *
        (int64_t)sizeof(float);
    int64_t tiles =
        may_have_tiles(s) ? tiled_keys(s) * (s->depth + s->width) * s->stored_size : 0;
    return panels > tiles ? panels : tiles;
}

// Whether keys and values become panels, or tiles.
static bool cpu_attention_has_panels(const struct attention *s)
{
    const int64_t groups = s->batches * s->groups;
    return s->dtype == TN_F32 && s->per_group * s->queries >= PANEL_ROWS && groups > 0 &&
           cpu_attention_panel_bytes(s) <= MOST_PANELS / groups;
}

static int64_t cpu_attention_count_units(const struct attention *s)
{
    return s->batches * s->groups * s->blocks;
}

// Rows that a block has memory for: with tiles, those of whole tiles.
static int64_t rows_of_block(const struct attention *s)
{
    int64_t all = s->per_group * s->queries;
    bool is_whole = may_have_tiles(s) && all >= PANEL_ROWS;
    return all < ATTENTION_ROW_BLOCK && !is_whole ? all : ATTENTION_ROW_BLOCK;
}

static int64_t scores_bytes(const struct attention *s)
{
    return attention_round_up(rows_of_block(s) * ATTENTION_PITCH * s->element);
}

static int64_t q_bytes(const struct attention *s)
{
    return attention_is_half(s) || cpu_attention_has_panels(s)
               ? attention_round_up(rows_of_block(s) * s->depth * s->element)
               : 0;
}

// Bytes of a block of keys or values, or of the pieces of a block of weights.
static int64_t wide_bytes(const struct attention *s)
{
    int64_t width = s->depth > s->width ? s->depth : s->width;
    int64_t pieces = may_have_tiles(s) ? ATTENTION_ROW_BLOCK * ATTENTION_TILE_PITCH : 0;
    int64_t rows = ATTENTION_KEY_BLOCK * width;
    return attention_is_widened(s)
               ? attention_round_up((rows > pieces ? rows : pieces) * s->element)
               : 0;
}

static int64_t cpu_attention_sums_bytes(const struct attention *s)
{
    return attention_round_up(rows_of_block(s) * s->width * s->element);
}

static int64_t lane_bytes(const struct attention *s)
{
    return scores_bytes(s) + q_bytes(s) + wide_bytes(s) + cpu_attention_sums_bytes(s);
}

static int64_t cpu_attention_split_bytes(const struct attention *s)
{
    return attention_round_up(ATTENTION_ROW_BLOCK * (int64_t)sizeof(struct attention_row)) +
           cpu_attention_sums_bytes(s);
}

// Parts of blocks that together see at most `keys` keys.
static int64_t cpu_attention_choose_splits(const struct attention *s, int64_t keys)
{
    int64_t units = cpu_attention_count_units(s), most = keys / SPLIT_KEYS;
    int64_t wanted = units > 0 ? LANES / units : 1;
    wanted = wanted < most ? wanted : most;
    return wanted > 1 ? wanted : 1;
}

// --- blocks of rows --------------------------------------------------------------------

static void cpu_attention_divide_rows(const struct attention *s,
                                      const struct attention_block *b)
{
    for (int64_t i = 0; i < b->rows; i++)
        attention_divide(s, &b->states[i], b->out + i * s->width * s->element);
}

// Writes rows in the dtype in which they are stored.
static void narrow_rows(const struct attention *s, const char *rows, int64_t row,
                        int64_t count)
{
    const void *in = rows;
    s->kernels->cast[s->dtype][s->stored](s->out + row * s->width * s->stored_size, &in,
                                          count * s->width, 0);
}

// The queries of a block, in `room` unless they are read where they lie, and the panels or
// tiles of its group; NULL: there are none.
static void cpu_attention_read_queries(const struct attention *s, struct attention_block *b,
                                       char *room, const char *panels)
{
    const int64_t count = b->rows * s->depth;
    const void *in = b->q;
    if (panels && s->halves) {
        memcpy(room, in, (size_t)(count * s->stored_size));
        b->k_tiles = (const uint16_t *)(const void *)panels;
        b->v_tiles = b->k_tiles + tiled_keys(s) * s->depth;
    } else if (attention_is_half(s)) {
        s->kernels->cast[s->stored][s->dtype](room, &in, count, 0);
        in = room;
    }
    if (panels && !s->halves) {
        const float scale = (float)s->scale;
        const void *scaled[] = {in, &scale};
        s->kernels->map[TN_F32][TN_EXPR_MUL](room, scaled, count, 2);
        b->k_across = (const float *)(const void *)panels;
        b->v_along = b->k_across + attention_across_floats(s, s->depth);
    }
    b->q = panels || attention_is_half(s) ? room : b->q;
}

// `item`: number of a block * splits + number of a split.
static void cpu_attention_run_item(const struct attention *s, int64_t item, char *lane,
                                   const char *panels)
{
    struct attention_row states[ATTENTION_ROW_BLOCK];
    struct cpu_attention_unit u = find_unit(s, item / s->splits);
    char *wide_q = lane + scores_bytes(s), *wide = wide_q + q_bytes(s);
    struct attention_block b = {.rows = u.rows,
                                .q = s->q + u.row * s->depth * s->stored_size,
                                .k = u.of.k,
                                .v = u.of.v,
                                .out = s->out + u.row * s->width * s->stored_size,
                                .scores = lane,
                                .wide = wide,
                                .states = states};
    if (attention_is_half(s))
        b.out = wide + wide_bytes(s);
    cpu_attention_read_queries(s, &b, wide_q, panels);
    if (s->splits > 1) {
        char *memory =
            s->scratch + s->lanes * lane_bytes(s) + item * cpu_attention_split_bytes(s);
        b.out = memory;
        b.states = (struct attention_row *)(void *)(memory + cpu_attention_sums_bytes(s));
    }
    cpu_attention_begin_rows(s, &u, item % s->splits, &b);
    attention_sum_block(s, &b);
    if (s->splits > 1)
        return;
    cpu_attention_divide_rows(s, &b);
    if (attention_is_half(s))
        narrow_rows(s, b.out, u.row, u.rows);
}

// The loop runs over lanes: each computes every n-th item, of n lanes.
static void run_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t item = lane; item < cpu_attention_count_units(s) * s->splits;
             item += s->lanes) {
            int64_t group = item / s->splits / s->blocks;
            cpu_attention_run_item(
                s, item, s->scratch + lane * lane_bytes(s),
                s->panels ? s->panels + group * cpu_attention_panel_bytes(s) : NULL);
        }
}

// Adds the splits of blocks, and writes the output.
static void add_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    int64_t pitch = cpu_attention_split_bytes(s);
    for (int64_t number = begin; number < end; number++) {
        char *memory = s->scratch + s->lanes * lane_bytes(s) + number * s->splits * pitch;
        struct cpu_attention_unit u = find_unit(s, number);
        struct attention_block b = {
            .rows = u.rows,
            .out = memory,
            .states =
                (struct attention_row *)(void *)(memory + cpu_attention_sums_bytes(s))};
        for (int64_t i = 0; i < u.rows; i++) {
            char *row = memory + i * s->width * s->element;
            attention_add_splits(s, &b.states[i], row, pitch);
        }
        cpu_attention_divide_rows(s, &b);
        if (attention_is_half(s))
            narrow_rows(s, memory, u.row, u.rows);
        else
            memcpy(s->out + u.row * s->width * s->element, memory,
                   (size_t)(u.rows * s->width * s->element));
    }
}

// --- panels ----------------------------------------------------------------------------

static int64_t key_blocks(const struct attention *s)
{
    return (s->keys + ATTENTION_KEY_BLOCK - 1) / ATTENTION_KEY_BLOCK;
}

// Block `number` of the keys of a group. `wide`: a lane's memory.
static void pack_block(const struct attention *s, int64_t group, int64_t number, char *wide,
                       char *panels)
{
    const struct attention_unit u = attention_unit(s, group);
    const int64_t first = number * ATTENTION_KEY_BLOCK;
    const int64_t left = (u.length < s->keys ? u.length : s->keys) - first;
    const int64_t count = left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK;
    float *across = (float *)(void *)panels;
    float *along = across + attention_across_floats(s, s->depth);
    int64_t k_row = s->k_row, v_row = s->v_row;
    if (count <= 0)
        return;
    if (s->halves) {
        uint16_t *tiles = (uint16_t *)(void *)panels;
        s->halves->pack_keys(tiles + first * s->depth,
                             (const uint16_t *)(const void *)u.k + first * k_row, k_row,
                             count, s->depth);
        s->halves->pack_values(tiles + tiled_keys(s) * s->depth + first * s->width,
                               (const uint16_t *)(const void *)u.v + first * v_row, v_row,
                               count, s->width);
        return;
    }
    const float *rows = attention_read_rows(s, wide, u.k, first, count, s->depth, &k_row);
    attention_pack_across(s, rows, k_row, first, count, s->depth, across);
    rows = attention_read_rows(s, wide, u.v, first, count, s->width, &v_row);
    attention_pack_along(s, rows, v_row, first, count, s->width, along);
}

// The loop runs over lanes: each packs every n-th block of all groups, of n lanes.
static void pack_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    const int64_t blocks = key_blocks(s);
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t n = lane; n < s->batches * s->groups * blocks; n += s->lanes)
            pack_block(s, n / blocks, n % blocks, s->scratch + lane * lane_bytes(s),
                       s->panels + n / blocks * cpu_attention_panel_bytes(s));
}

// The loop runs over lanes: each computes every n-th group, whose panels are cached then.
static void run_groups(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    for (int64_t lane = begin; lane < end; lane++) {
        char *memory = s->scratch + lane * lane_bytes(s);
        char *panels = s->panels + lane * cpu_attention_panel_bytes(s);
        for (int64_t group = lane; group < s->batches * s->groups; group += s->lanes) {
            for (int64_t i = 0; i < key_blocks(s); i++)
                pack_block(s, group, i, memory, panels);
            for (int64_t i = 0; i < s->blocks; i++)
                cpu_attention_run_item(s, group * s->blocks + i, memory, panels);
        }
    }
}

// --- the kernel ------------------------------------------------------------------------

static void cpu_attention_read_shape(const tn_layout *inputs, struct attention *s)
{
    attention_read_shape(inputs, s);
    s->blocks = (s->per_group * s->queries + ATTENTION_ROW_BLOCK - 1) / ATTENTION_ROW_BLOCK;
    s->splits = cpu_attention_choose_splits(s, s->keys);
    int64_t items = cpu_attention_count_units(s) * s->splits;
    s->lanes = items < LANES ? items : LANES;
}

// Scratch memory before the panels, for the greatest number of splits.
static int64_t memory_before_panels(const struct attention *s)
{
    int64_t splits = s->splits > 1 ? cpu_attention_count_units(s) * s->splits : 0;
    return attention_round_up(s->lanes * lane_bytes(s) +
                              splits * cpu_attention_split_bytes(s));
}

// The number of splits of the keys, at most as many as scratch memory was sized for.
static int64_t cpu_attention_count_splits(const struct attention *s)
{
    int64_t most = 0, sequences = s->lengths && s->lengths->layout.rank ? s->extent[0] : 1;
    for (int64_t i = 0; i < sequences; i++) {
        int64_t length = attention_length(s, i);
        most = length > most ? length : most;
    }
    return cpu_attention_choose_splits(s, most < s->keys ? most : s->keys);
}

static tn_status run_attention(const tn_cpu_call *call, struct attention *s)
{
    const int64_t groups = s->batches * s->groups, splits = cpu_attention_count_splits(s);
    bool by_groups = false;
    if (cpu_attention_has_panels(s)) {
        s->tiles = s->kernels->tiles;
        if (may_have_tiles(s) && call->cpu_features & TN_CPU_AMX)
            s->halves = attention_halves_pick();
        s->panels = s->scratch + memory_before_panels(s);
        by_groups = splits == 1 && groups >= 2 * call->num_threads;
        if (!by_groups)
            call->parallel_for(call, s->lanes, 1, pack_lanes, s);
    }
    s->splits = splits;
    tn_status status = blas_enter(call, &s->blas);
    if (status)
        return status;
    if (by_groups) {
        s->lanes = s->lanes < groups ? s->lanes : groups;
        call->parallel_for(call, s->lanes, 1, run_groups, s);
    } else {
        call->parallel_for(call, s->lanes, 1, run_lanes, s);
    }
    blas_leave();
    if (s->splits > 1)
        call->parallel_for(call, cpu_attention_count_units(s), 1, add_units, s);
    return TN_OK;
}

static struct attention begin_attention(const tn_cpu_call *call)
{
    struct attention s = {.kernels = kernel_variant(call),
                          .q = first_element(&call->inputs[0]),
                          .k = first_element(&call->inputs[1]),
                          .v = first_element(&call->inputs[2]),
                          .out = first_element(&call->outputs[0]),
                          .scratch = call->scratch};
    const tn_layout in[] = {call->inputs[0].layout, call->inputs[1].layout,
                            call->inputs[2].layout};
    cpu_attention_read_shape(in, &s);
    return s;
}

static tn_status cpu_attention(const tn_cpu_call *call)
{
    struct attention s = begin_attention(call);
    if (cpu_attention_count_units(&s) * s.width == 0)
        return TN_OK;
    attention_read_options(call, 3, &s);
    return run_attention(call, &s);
}

static tn_status attention_with_sinks(const tn_cpu_call *call)
{
    struct attention s = begin_attention(call);
    if (cpu_attention_count_units(&s) * s.width == 0)
        return TN_OK;
    attention_read_options(call, 4, &s);
    s.sinks = &call->inputs[3];
    return run_attention(call, &s);
}

static tn_status cached_attention(const tn_cpu_call *call)
{
    const tn_quant_cached_attention_attrs *attrs = call->attrs;
    struct attention s = begin_attention(call);
    if (cpu_attention_count_units(&s) * s.width == 0)
        return TN_OK;
    attention_read_score(&(tn_attention_attrs){attrs->scale, attrs->is_causal,
                                               attrs->window, attrs->soft_cap},
                         &s);
    s.lengths = &call->inputs[3];
    s.slots = &call->inputs[4];
    s.quant = quant_variant(call);
    while (tn_quant_at(s.format) != tn_quant_find("q8_0"))
        s.format++;
    return run_attention(call, &s);
}

static uint64_t attention_scratch(const tn_kernel_query *query)
{
    struct attention s = {0};
    cpu_attention_read_shape(query->inputs, &s);
    int64_t panels = cpu_attention_has_panels(&s)
                         ? s.batches * s.groups * cpu_attention_panel_bytes(&s)
                         : 0;
    return (uint64_t)(memory_before_panels(&s) + panels);
}

static int32_t attention_accepts(const tn_kernel_query *query)
{
    return attention_is_taken(query, 3, 3);
}

static int32_t sinks_accept(const tn_kernel_query *query)
{
    return attention_is_taken(query, 4, 4);
}

// Keys and values of floats are of q's dtype.
static int32_t cached_accepts(const tn_kernel_query *query)
{
    const tn_quant_cached_attention_attrs *attrs = query->attrs;
    bool is_blocks = query->inputs[1].dtype == TN_U8;
    return attention_fits(query) &&
           (is_blocks
                ? query->inputs[0].dtype == TN_F32 && strcmp(attrs->format, "q8_0") == 0
                : query->inputs[0].dtype == query->inputs[1].dtype);
}

static const tn_operand_rule rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // q
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // k
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // v
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                       // lengths
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cpu_attention,
};
const tn_kernel scaled_dot_product_attention_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.scaled_dot_product_attention/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = attention_accepts,
    .scratch_size = attention_scratch,
    .payload = &payload,
};

static const tn_operand_rule sinks_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                  // q
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // k
    {TN_FLOAT_DTYPES, TN_NEEDS_ROWS},                        // v
    {TN_FLOAT_DTYPES, TN_NEEDS_ANY},                         // sinks
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                       // lengths
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel sinks_payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = attention_with_sinks,
};
const tn_kernel attention_with_sinks_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.attention_with_sinks/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(sinks_rules),
    .accepts = sinks_accept,
    .scratch_size = attention_scratch,
    .payload = &sinks_payload,
};

static const tn_operand_rule cached_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},                 // q
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ROWS}, // k
    {TN_FLOAT_DTYPES | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ROWS}, // v
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                      // lengths
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                      // slots
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
};
static const tn_cpu_kernel cached_payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cached_attention,
};
const tn_kernel cached_attention_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "quant.cached_attention/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(cached_rules),
    .accepts = cached_accepts,
    .scratch_size = attention_scratch,
    .payload = &cached_payload,
};
