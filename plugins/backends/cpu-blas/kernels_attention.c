// SPDX-License-Identifier: MIT
// nn.scaled_dot_product_attention/1 of floats, without a matrix of all scores.
//
// The queries of a group of heads are rows of one matrix, ROW_BLOCK of which are computed
// at a time, over KEY_BLOCK keys at a time: scores by a product, weights by exp() of scores
// less the greatest so far, and their product with the values is added to the output. When
// a greater score comes, what a row has so far is scaled down (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).
// Blocks of keys that no row sees are left out.
//
// Where there are too few blocks of rows for many threads, as in a step of a language
// model, the keys of a block are computed in parts, whose sums are added at the end. How
// many depends on shapes and lengths, not on the threads, and so do the results.
//
// Half floats are computed in f32: a block of rows at a time is widened.
#include <math.h>
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include "blas.h"
#include "kernels.h"

#define ROW_BLOCK 64
#define KEY_BLOCK 256
#define PART_KEYS (2 * KEY_BLOCK)     // the least of a part
#define LANES 64                      // of blocks, each with memory of its own
#define MOST_WIDTH (INT64_C(1) << 24) // of rows, so that sizes of scratch memory fit
#define FAR (INT64_C(1) << 61) // no position or window is beyond it, so that sums fit

struct attention {
    const struct blas *blas;
    const struct cpu_kernels *kernels;
    int32_t stored, dtype;           // of the operands, and what is computed in
    int64_t stored_size, element;    // bytes of an element
    const tn_tensor *mask, *lengths; // NULL: not given
    int32_t batch_rank;              // axes before those of heads
    int64_t extent[TN_MAX_RANK], k_stride[TN_MAX_RANK], v_stride[TN_MAX_RANK],
        mask_stride[TN_MAX_RANK]; // of these axes
    int64_t batches, groups, per_group, queries, keys, depth, width;
    int64_t k_head, v_head, mask_head, mask_query, mask_key, k_row, v_row;
    double scale, soft_cap;
    int64_t window; // FAR: none
    bool is_causal;
    const char *q, *k, *v;
    char *out, *scratch;
    int64_t blocks, lanes, parts; // blocks of rows of a group; parts of the keys of a block
};

// A row of a block: keys [low, high) are seen by place; the greatest score so far, and the
// sum of weights.
struct row_state {
    int64_t low, high, mask_at;
    double most, sum;
};

// A part of a block of rows. q and out are of the dtype that is computed in.
struct block {
    int64_t rows, low, high; // keys that any row sees
    const char *q, *k, *v;
    char *out, *scores, *wide; // wide: of halves, KEY_BLOCK rows of k or v
    struct row_state *states;
};

// Rows [first, first + count) of k or v, `width` elements each, in the dtype that is
// computed in. *row: elements from row to row, of the memory and then of what is returned.
static const void *read_rows(const struct attention *s, const struct block *b,
                             const char *rows, int64_t first, int64_t count, int64_t width,
                             int64_t *row)
{
    const char *from = rows + first * *row * s->stored_size;
    cpu_map_fn *widen = s->kernels->cast[s->stored][s->dtype];
    if (s->stored == s->dtype)
        return from;
    int64_t at_once = *row == width ? count : 1; // rows
    for (int64_t i = 0; i < count; i += at_once) {
        const void *in = from + i * *row * s->stored_size;
        widen(b->wide + i * width * s->element, &in, at_once * width, 0);
    }
    *row = width;
    return b->wide;
}

// The state of the same row in part p: parts are `pitch` bytes apart.
static struct row_state *state_of_part(struct row_state *state, int64_t p, int64_t pitch)
{
    return (struct row_state *)(void *)((char *)state + p * pitch);
}

// Scores of `count` keys, and the weighed sum of as many values. False: there are too many
// rows, or no loop for the dtype, and BLAS is quicker.
static bool multiply_few_f32(const struct attention *s, const struct block *b,
                             const float *k, int64_t k_row, int64_t count)
{
    if (b->rows > CPU_FEW_ROWS)
        return false;
    s->kernels->nn->few_by_rows(
        &(struct cpu_few_rows){.a = (const float *)(const void *)b->q,
                               .b = k,
                               .c = (float *)(void *)b->scores,
                               .m = b->rows,
                               .n = count,
                               .k = s->depth,
                               .a_row = s->depth,
                               .b_row = k_row,
                               .c_row = count,
                               .scale = (float)s->scale});
    return true;
}

static bool add_few_f32(const struct attention *s, const struct block *b, const float *v,
                        int64_t v_row, int64_t count)
{
    if (b->rows > CPU_FEW_ROWS)
        return false;
    s->kernels->nn->few_by_columns(
        &(struct cpu_few_rows){.a = (const float *)(const void *)b->scores,
                               .b = v,
                               .c = (float *)(void *)b->out,
                               .m = b->rows,
                               .n = s->width,
                               .k = count,
                               .a_row = count,
                               .b_row = v_row,
                               .c_row = s->width});
    return true;
}

static bool multiply_few_f64(const struct attention *s, const struct block *b,
                             const double *k, int64_t k_row, int64_t count)
{
    (void)s, (void)b, (void)k, (void)k_row, (void)count;
    return false;
}

static bool add_few_f64(const struct attention *s, const struct block *b, const double *v,
                        int64_t v_row, int64_t count)
{
    (void)s, (void)b, (void)v, (void)v_row, (void)count;
    return false;
}

#define T float
#define NAME(word) word##_f32
#define GEMM sgemm
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

#define T double
#define NAME(word) word##_f64
#define GEMM dgemm
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

// --- blocks -----------------------------------------------------------------------------

// Which keys a query at row `row` of a group sees by its place.
static struct row_state see(const struct attention *s, int64_t row, int64_t length,
                            int64_t mask_at, int64_t first_head)
{
    int64_t query = row % s->queries, at = query + length - s->queries;
    struct row_state state = {.high = length < s->keys ? length : s->keys,
                              .most = -INFINITY};
    if (!s->lengths) {
        at = query;
        state.high = s->keys;
    }
    if (s->is_causal && at + 1 < state.high)
        state.high = at + 1;
    if (at - s->window + 1 > 0)
        state.low = at - s->window + 1;
    state.high = state.high > 0 ? state.high : 0;
    state.low = state.low < state.high ? state.low : state.high;
    state.mask_at =
        mask_at + (first_head + row / s->queries) * s->mask_head + query * s->mask_query;
    return state;
}

// How many keys there are for an index of the first axis.
static int64_t length_of(const struct attention *s, int64_t index)
{
    if (!s->lengths)
        return s->keys;
    const tn_layout *l = &s->lengths->layout;
    int64_t n = tn_get_i64(s->lengths, l->offset + (l->rank ? index * l->stride[0] : 0));
    return n > FAR ? FAR : n < -FAR ? -FAR : n;
}

// The matrices of a block of rows, and the length of its sequence.
struct unit {
    int64_t group, mask_at, length;
    int64_t begin, rows, row; // within the group, and the first one's number within all
    const char *k, *v;
};

static struct unit find_unit(const struct attention *s, int64_t number)
{
    int64_t batch = number / s->blocks / s->groups, rest = batch, index = 0;
    struct unit u = {.group = number / s->blocks % s->groups,
                     .begin = number % s->blocks * ROW_BLOCK,
                     .mask_at = s->mask ? s->mask->layout.offset : 0};
    int64_t k = u.group * s->k_head, v = u.group * s->v_head;
    for (int32_t i = s->batch_rank - 1; i >= 0; i--) {
        index = rest % s->extent[i];
        rest /= s->extent[i];
        k += index * s->k_stride[i];
        v += index * s->v_stride[i];
        u.mask_at += index * s->mask_stride[i];
    }
    int64_t all = s->per_group * s->queries;
    u.rows = all - u.begin < ROW_BLOCK ? all - u.begin : ROW_BLOCK;
    u.row = (batch * s->groups + u.group) * all + u.begin;
    u.k = s->k + k * s->stored_size;
    u.v = s->v + v * s->stored_size;
    u.length = length_of(s, index);
    return u;
}

// Begins the rows of a block, and leaves part `part` of the keys that they see.
static void begin_rows(const struct attention *s, const struct unit *u, int64_t part,
                       struct block *b)
{
    b->low = s->keys;
    b->high = 0;
    for (int64_t i = 0; i < b->rows; i++) {
        struct row_state *state = &b->states[i];
        *state = see(s, u->begin + i, u->length, u->mask_at, u->group * s->per_group);
        bool sees = state->low < state->high;
        b->low = sees && state->low < b->low ? state->low : b->low;
        b->high = sees && state->high > b->high ? state->high : b->high;
    }
    if (b->low >= b->high)
        return;
    int64_t tiles = (b->high - b->low + KEY_BLOCK - 1) / KEY_BLOCK;
    int64_t size = (tiles + s->parts - 1) / s->parts * KEY_BLOCK;
    b->low += part * size;
    b->high = b->high - b->low < size ? b->high : b->low + size;
}

// --- memory: of lanes, and then of parts ------------------------------------------------

static int64_t round_up(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static int64_t count_units(const struct attention *s)
{
    return s->batches * s->groups * s->blocks;
}

static int64_t rows_of_block(const struct attention *s)
{
    int64_t all = s->per_group * s->queries;
    return all < ROW_BLOCK ? all : ROW_BLOCK;
}

static bool is_half(const struct attention *s)
{
    return s->stored != s->dtype;
}

static int64_t scores_bytes(const struct attention *s)
{
    return round_up(rows_of_block(s) * KEY_BLOCK * s->element);
}

static int64_t q_bytes(const struct attention *s)
{
    return is_half(s) ? round_up(rows_of_block(s) * s->depth * s->element) : 0;
}

static int64_t wide_bytes(const struct attention *s)
{
    int64_t width = s->depth > s->width ? s->depth : s->width;
    return is_half(s) ? round_up(KEY_BLOCK * width * s->element) : 0;
}

static int64_t sums_bytes(const struct attention *s)
{
    return round_up(rows_of_block(s) * s->width * s->element);
}

static int64_t lane_bytes(const struct attention *s)
{
    return scores_bytes(s) + q_bytes(s) + wide_bytes(s) + sums_bytes(s);
}

static int64_t part_bytes(const struct attention *s)
{
    return round_up(ROW_BLOCK * (int64_t)sizeof(struct row_state)) + sums_bytes(s);
}

// Parts of blocks that together see at most `keys` keys.
static int64_t choose_parts(const struct attention *s, int64_t keys)
{
    int64_t units = count_units(s), most = keys / PART_KEYS;
    int64_t wanted = units > 0 ? LANES / units : 1;
    wanted = wanted < most ? wanted : most;
    return wanted > 1 ? wanted : 1;
}

// --- blocks of rows ---------------------------------------------------------------------

static void divide_rows(const struct attention *s, const struct block *b)
{
    for (int64_t i = 0; i < b->rows; i++)
        if (s->dtype == TN_F32)
            divide_f32(s, &b->states[i], b->out + i * s->width * s->element);
        else
            divide_f64(s, &b->states[i], b->out + i * s->width * s->element);
}

// Rows as they are stored.
static void narrow_rows(const struct attention *s, const char *rows, int64_t row,
                        int64_t count)
{
    const void *in = rows;
    s->kernels->cast[s->dtype][s->stored](s->out + row * s->width * s->stored_size, &in,
                                          count * s->width, 0);
}

// Item number: the number of a block times the parts, plus that of the part.
static void run_item(const struct attention *s, int64_t item, char *lane)
{
    struct row_state states[ROW_BLOCK];
    struct unit u = find_unit(s, item / s->parts);
    char *wide_q = lane + scores_bytes(s), *wide = wide_q + q_bytes(s);
    struct block b = {.rows = u.rows,
                      .q = s->q + u.row * s->depth * s->stored_size,
                      .k = u.k,
                      .v = u.v,
                      .out = s->out + u.row * s->width * s->stored_size,
                      .scores = lane,
                      .wide = wide,
                      .states = states};
    if (is_half(s)) {
        const void *in = b.q;
        s->kernels->cast[s->stored][s->dtype](wide_q, &in, u.rows * s->depth, 0);
        b.q = wide_q;
        b.out = wide + wide_bytes(s);
    }
    if (s->parts > 1) {
        char *memory = s->scratch + s->lanes * lane_bytes(s) + item * part_bytes(s);
        b.out = memory;
        b.states = (struct row_state *)(void *)(memory + sums_bytes(s));
    }
    begin_rows(s, &u, item % s->parts, &b);
    if (s->dtype == TN_F32)
        sum_block_f32(s, &b);
    else
        sum_block_f64(s, &b);
    if (s->parts > 1)
        return;
    divide_rows(s, &b);
    if (is_half(s))
        narrow_rows(s, b.out, u.row, u.rows);
}

// The loop runs over lanes: every so many-th item.
static void run_lanes(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    for (int64_t lane = begin; lane < end; lane++)
        for (int64_t item = lane; item < count_units(s) * s->parts; item += s->lanes)
            run_item(s, item, s->scratch + lane * lane_bytes(s));
}

// Adds the parts of blocks, and writes the output.
static void add_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct attention *s = context;
    int64_t pitch = part_bytes(s);
    for (int64_t number = begin; number < end; number++) {
        char *memory = s->scratch + s->lanes * lane_bytes(s) + number * s->parts * pitch;
        struct unit u = find_unit(s, number);
        struct block b = {.rows = u.rows,
                          .out = memory,
                          .states = (struct row_state *)(void *)(memory + sums_bytes(s))};
        for (int64_t i = 0; i < u.rows; i++) {
            char *row = memory + i * s->width * s->element;
            if (s->dtype == TN_F32)
                add_parts_f32(s, &b.states[i], row, pitch);
            else
                add_parts_f64(s, &b.states[i], row, pitch);
        }
        divide_rows(s, &b);
        if (is_half(s))
            narrow_rows(s, memory, u.row, u.rows);
        else
            memcpy(s->out + u.row * s->width * s->element, memory,
                   (size_t)(u.rows * s->width * s->element));
    }
}

// --- the kernel -------------------------------------------------------------------------

// The stride of `x` along the axis that lies `behind` axes before the end (1: the last
// one); 0 where x has none, or is repeated along it.
static int64_t stride_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind && x->extent[x->rank - behind] != 1
               ? x->stride[x->rank - behind]
               : 0;
}

static int64_t extent_of(const tn_layout *x, int32_t behind)
{
    return x->rank >= behind ? x->extent[x->rank - behind] : 1;
}

// From a row of keys or values to the next one; of one row, its own length.
static int64_t row_of(const tn_layout *x)
{
    return extent_of(x, 2) == 1 ? extent_of(x, 1) : x->stride[x->rank - 2];
}

static void read_shape(const tn_layout *q, const tn_layout *k, const tn_layout *v,
                       struct attention *s)
{
    s->stored = q->dtype;
    s->dtype = tn_dtype_computed(q->dtype);
    s->stored_size = cpu_dtype_size(s->stored);
    s->element = cpu_dtype_size(s->dtype);
    s->batch_rank = q->rank > 3 ? q->rank - 3 : 0;
    s->batches = 1;
    for (int32_t i = 0; i < s->batch_rank; i++) {
        s->extent[i] = q->extent[i];
        s->batches *= q->extent[i];
        s->k_stride[i] = stride_of(k, q->rank - i);
        s->v_stride[i] = stride_of(v, q->rank - i);
    }
    s->groups = extent_of(k, 3);
    s->per_group = s->groups ? extent_of(q, 3) / s->groups : 0;
    s->queries = extent_of(q, 2);
    s->keys = extent_of(k, 2);
    s->depth = extent_of(q, 1);
    s->width = extent_of(v, 1);
    s->k_head = stride_of(k, 3);
    s->v_head = stride_of(v, 3);
    s->k_row = row_of(k);
    s->v_row = row_of(v);
    s->blocks = (s->per_group * s->queries + ROW_BLOCK - 1) / ROW_BLOCK;
    s->parts = choose_parts(s, s->keys);
    int64_t items = count_units(s) * s->parts;
    s->lanes = items < LANES ? items : LANES;
}

static void read_options(const tn_cpu_call *call, struct attention *s)
{
    const tn_attention_attrs *attrs = call->attrs;
    const tn_layout *q = &call->inputs[0].layout;
    s->scale = attrs->scale != 0 ? attrs->scale : 1 / sqrt((double)s->depth);
    s->soft_cap = attrs->soft_cap;
    s->is_causal = attrs->is_causal != 0;
    s->window = attrs->window > 0 && attrs->window < FAR ? attrs->window : FAR;
    s->mask = call->num_inputs > 3 && call->inputs[3].data ? &call->inputs[3] : NULL;
    s->lengths = call->num_inputs > 4 && call->inputs[4].data ? &call->inputs[4] : NULL;
    if (!s->mask)
        return;
    const tn_layout *mask = &s->mask->layout;
    for (int32_t i = 0; i < s->batch_rank; i++)
        s->mask_stride[i] = stride_of(mask, q->rank - i);
    s->mask_head = stride_of(mask, 3);
    s->mask_query = stride_of(mask, 2);
    s->mask_key = stride_of(mask, 1);
}

// Parts of the keys that there are: no more than memory was asked for.
static int64_t count_parts(const struct attention *s)
{
    int64_t most = 0, sequences = s->lengths && s->lengths->layout.rank ? s->extent[0] : 1;
    for (int64_t i = 0; i < sequences; i++) {
        int64_t length = length_of(s, i);
        most = length > most ? length : most;
    }
    return choose_parts(s, most < s->keys ? most : s->keys);
}

static tn_status attention(const tn_cpu_call *call)
{
    struct attention s = {.kernels = kernel_variant(call),
                          .q = first_element(&call->inputs[0]),
                          .k = first_element(&call->inputs[1]),
                          .v = first_element(&call->inputs[2]),
                          .out = first_element(&call->outputs[0]),
                          .scratch = call->scratch};
    read_shape(&call->inputs[0].layout, &call->inputs[1].layout, &call->inputs[2].layout,
               &s);
    if (count_units(&s) * s.width == 0)
        return TN_OK;
    read_options(call, &s);
    s.parts = count_parts(&s);
    tn_status status = blas_enter(call, &s.blas);
    if (status)
        return status;
    call->parallel_for(call, s.lanes, 1, run_lanes, &s);
    blas_leave();
    if (s.parts > 1)
        call->parallel_for(call, count_units(&s), 1, add_units, &s);
    return TN_OK;
}

static uint64_t attention_scratch(const tn_kernel_query *query)
{
    struct attention s = {0};
    read_shape(&query->inputs[0], &query->inputs[1], &query->inputs[2], &s);
    int64_t parts = s.parts > 1 ? count_units(&s) * s.parts : 0;
    return (uint64_t)(s.lanes * lane_bytes(&s) + parts * part_bytes(&s));
}

// BLAS counts in int, and takes no rows that overlap.
static int32_t attention_accepts(const tn_kernel_query *query)
{
    struct attention s = {0};
    int32_t dtype = query->inputs[0].dtype;
    for (int i = 1; i < 3; i++)
        if (query->inputs[i].dtype != dtype)
            return 0;
    if (query->num_inputs > 3 && query->inputs[3].dtype != TN_DTYPE_NONE &&
        query->inputs[3].dtype != TN_BOOL && query->inputs[3].dtype != dtype)
        return 0;
    read_shape(&query->inputs[0], &query->inputs[1], &query->inputs[2], &s);
    return s.depth > 0 && s.depth <= MOST_WIDTH && s.width <= MOST_WIDTH &&
           s.k_row >= s.depth && s.v_row >= s.width && s.k_row <= INT32_MAX &&
           s.v_row <= INT32_MAX && blas_open() != NULL;
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
    .launch = attention,
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
