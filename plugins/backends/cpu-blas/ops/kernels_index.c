// SPDX-License-Identifier: MIT
// base.take/1, base.{scatter_add,scatter_set,scatter_max,scatter_min}/1 and nn.bag_sum/1.
// An array is viewed as outer x n x inner elements, n along the indexed axis; an index
// selects a run of `inner` elements.
#include <string.h>
#include "reduce_walk.h"

#define PIECE_ELEMENTS 16384 // least elements of a piece
#define INDEX_BLOCK 256      // indices, or half floats, that are converted at a time
#define REPLACE (-1)         // in place of an instruction: the result is the update itself
#define LEAST_RUN 32         // elements: with shorter runs the axis is not cut into parts

#define TAKE_BYTES 16384 // of a block that passes through a program

struct cpu_indexing {
    const struct cpu_kernels *kernels;
    struct axes outer; // of x
    int64_t n, step;   // of the axis: extent, and elements between neighbours
    int64_t inner, inner_stride;
    int64_t count; // of indices
    int64_t parts; // of a scatter: parts of the axis, for different threads
    int32_t op;    // of a scatter: the instruction that puts an update, or REPLACE
    const tn_tensor *indices;
    bool clamps;    // indices that are out of range; else they are -1
    int64_t *index; // counted from the front; NULL: each is used once, and read there
    // Function of a scatter of single elements, or NULL.
    void (*put)(void *to, const void *from, const void *index, int64_t count, int64_t n);
    const char *from;
    char *to;
    int32_t dtype;
    uint32_t size;
    const tn_cpu_call *call; // not NULL: the output passes through a program
    int64_t block;           // then: units of a block, in each worker's part of `to`
};

// Splits the axes of x at `axis`. False: the axes after `axis` cannot be merged into one
// run.
static bool cpu_index_split(const tn_layout *x, int32_t axis, struct cpu_indexing *s)
{
    struct axes rest, inner;
    tn_layout before = *x, after = *x;
    before.rank = axis;
    after.rank = x->rank - axis - 1;
    for (int32_t i = 0; i < after.rank; i++) {
        after.extent[i] = x->extent[axis + 1 + i];
        after.stride[i] = x->stride[axis + 1 + i];
    }
    reduction_split(&before, 0, &s->outer, &rest);
    reduction_split(&after, 0, &inner, &rest);
    s->n = x->extent[axis];
    s->step = x->stride[axis];
    s->inner = inner.count;
    s->inner_stride = inner.rank > 0 ? inner.stride[0] : 1;
    s->dtype = x->dtype;
    s->size = cpu_dtype_size(x->dtype);
    return inner.rank <= 1;
}

static uint64_t index_scratch(const tn_kernel_query *query)
{
    return tn_saturated_multiply((uint64_t)count_elements(&query->inputs[1]),
                                 sizeof(int64_t));
}

// Reads `n` indices from number `first` on as i64, counted from the front.
static void cpu_index_read_some(const struct cpu_indexing *s, int64_t first, int64_t n,
                                int64_t *index)
{
    int32_t dtype = s->indices->layout.dtype;
    const char *from = first_element(s->indices);
    const void *in = from + first * (int64_t)cpu_dtype_size(dtype);
    const int64_t low = s->clamps ? 0 : -1, high = s->clamps ? s->n - 1 : -1;
    const int64_t negative =
        dtype == TN_U64 ? INT64_MAX : s->n; // 2^63 and above: too large
    s->kernels->cast[dtype][TN_I64](index, &in, n, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index[i];
        at = at < 0 ? (dtype == TN_U64 ? negative : at + negative) : at;
        at = at < 0 ? low : at;
        index[i] = at >= s->n ? high : at;
    }
}

// Reads indices [begin, end).
static void read_range(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_indexing *s = context;
    (void)worker;
    for (int64_t i = begin; i < end; i += INDEX_BLOCK)
        cpu_index_read_some(s, i, end - i < INDEX_BLOCK ? end - i : INDEX_BLOCK,
                            s->index + i);
}

static void set_indices(const tn_cpu_call *call, bool clamps, struct cpu_indexing *s)
{
    s->indices = &call->inputs[1];
    s->clamps = clamps;
    s->count = count_elements(&call->inputs[1].layout);
}

// Reads the indices as i64, counted from the front. Out of range: clamped, or -1.
static void read_indices(const tn_cpu_call *call, struct cpu_indexing *s)
{
    s->index = call->scratch;
    call->parallel_for(call, s->count, PIECE_ELEMENTS, read_range, s);
}

// --- take ------------------------------------------------------------------------------

// Four at a time: a loop of one load and one store takes from 1.2 to 2 cycles, depending on
// where its code lies.
#define TAKE_ELEMENTS(T)                                                                   \
    static void take_##T(const struct cpu_indexing *s, const char *from, char *to,         \
                         const int64_t *index, int64_t n)                                  \
    {                                                                                      \
        const int64_t step = s->step;                                                      \
        const T *x = (const void *)from;                                                   \
        T *out = (void *)to;                                                               \
        int64_t i = 0;                                                                     \
        for (; i + 4 <= n; i += 4) {                                                       \
            T a = x[index[i] * step], b = x[index[i + 1] * step];                          \
            T c = x[index[i + 2] * step], d = x[index[i + 3] * step];                      \
            out[i] = a;                                                                    \
            out[i + 1] = b;                                                                \
            out[i + 2] = c;                                                                \
            out[i + 3] = d;                                                                \
        }                                                                                  \
        for (; i < n; i++)                                                                 \
            out[i] = x[index[i] * step];                                                   \
    }
TAKE_ELEMENTS(uint8_t)
TAKE_ELEMENTS(uint16_t)
TAKE_ELEMENTS(uint32_t)
TAKE_ELEMENTS(uint64_t)
TAKE_ELEMENTS(tn_complex128)

static void take_elements(const struct cpu_indexing *s, const char *from, char *to,
                          const int64_t *index, int64_t n)
{
    if (s->size == 1)
        take_uint8_t(s, from, to, index, n);
    else if (s->size == 2)
        take_uint16_t(s, from, to, index, n);
    else if (s->size == 4)
        take_uint32_t(s, from, to, index, n);
    else if (s->size == 8)
        take_uint64_t(s, from, to, index, n);
    else
        take_tn_complex128(s, from, to, index, n);
}

static void take_runs(const struct cpu_indexing *s, const char *from, char *to,
                      const int64_t *index, int64_t n)
{
    int64_t bytes = s->inner * s->size, step = s->step * s->size;
    cpu_copy_fn *copy = s->kernels->copy[__builtin_ctz(s->size)];
    for (int64_t i = 0; i < n; i++, to += bytes) {
        if (s->inner_stride == 1)
            memcpy(to, from + index[i] * step, (size_t)bytes);
        else
            copy(to, 1, from + index[i] * step, s->inner_stride, s->inner);
    }
}

// The loop runs over units: an index, for one outer element.
static void take_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_indexing *s = context;
    int64_t read[INDEX_BLOCK];
    while (begin < end) {
        const int64_t *index = read;
        int64_t outer = begin / s->count, first = begin - outer * s->count;
        int64_t left = s->count - first, n = end - begin < left ? end - begin : left;
        const char *from = s->from + axes_offset(&s->outer, outer) * s->size;
        char *to = s->to + begin * s->inner * s->size;
        if (s->call) {
            n = n < s->block ? n : s->block;
            to = s->to + worker * s->block * s->inner * s->size;
        }
        if (s->index) {
            index = s->index + first;
        } else {
            n = n < INDEX_BLOCK ? n : INDEX_BLOCK;
            cpu_index_read_some(s, first, n, read);
        }
        if (s->inner == 1)
            take_elements(s, from, to, index, n);
        else
            take_runs(s, from, to, index, n);
        if (s->call)
            s->call->store(s->call, 0, begin * s->inner, n * s->inner, to, worker);
        begin += n;
    }
}

// Units of a block that passes through a program: it stays in the first-level cache, if it
// is more than one unit.
static int64_t cpu_index_take_block(const struct cpu_indexing *s)
{
    return TAKE_BYTES / (s->inner * s->size + 1) + 1;
}

static uint64_t cpu_index_take_scratch(const tn_kernel_query *query)
{
    const tn_take_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0];
    struct cpu_indexing s;
    (void)cpu_index_split(x, tn_axis(attrs->axis, x->rank), &s);
    uint64_t bytes = s.outer.count > 1 ? index_scratch(query) : 0;
    if (!query->fused)
        return bytes;
    uint64_t block = tn_saturated_multiply((uint64_t)cpu_index_take_block(&s),
                                           (uint64_t)s.inner * (uint64_t)s.size);
    return tn_saturated_add(tn_saturated_add(bytes, 64),
                            tn_saturated_multiply(block, query->num_workers));
}

static tn_status take(const tn_cpu_call *call)
{
    const tn_take_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout;
    struct cpu_indexing s = {.kernels = kernel_variant(call)};
    cpu_index_split(x, tn_axis(attrs->axis, x->rank), &s);
    if (count_elements(&call->outputs[0].layout) == 0)
        return TN_OK;
    set_indices(call, true, &s);
    if (s.outer.count > 1)
        read_indices(call, &s);
    s.from = first_element(&call->inputs[0]);
    if (call->outputs[0].data) {
        s.to = first_element(&call->outputs[0]);
    } else {
        s.call = call;
        s.block = cpu_index_take_block(&s);
        int64_t bytes = s.index ? s.count * (int64_t)sizeof(int64_t) : 0;
        s.to = (char *)call->scratch + (bytes + 63) / 64 * 64;
    }
    call->parallel_for(call, s.outer.count * s.count, 1 + PIECE_ELEMENTS / s.inner,
                       take_units, &s);
    return TN_OK;
}

static int32_t take_accepts(const tn_kernel_query *query)
{
    const tn_take_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0];
    struct cpu_indexing s;
    return cpu_index_split(x, tn_axis(attrs->axis, x->rank), &s);
}

// --- bags -------------------------------------------------------------------------------

// Memory of a worker for one bag: its positions, counted from the front, as the loop takes
// them, and weights of 1.
static uint64_t bag_bytes(uint64_t length)
{
    return tn_saturated_multiply(tn_saturated_add(length, 3) & ~UINT64_C(3), 16);
}

static uint64_t bag_scratch(const tn_kernel_query *query)
{
    return tn_saturated_multiply(bag_bytes((uint64_t)query->inputs[1].extent[1]),
                                 query->num_workers);
}

static void sum_bags(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_indexing *s = context;
    const int64_t length = s->indices->layout.extent[1], width = s->inner;
    int64_t *index =
        (int64_t *)(void *)((char *)s->index + worker * bag_bytes((uint64_t)length));
    int32_t *positions = (int32_t *)(void *)(index + length);
    float *ones = (float *)(void *)(positions + length), *to = (float *)(void *)s->to;
    for (int64_t k = 0; k < length; k++)
        ones[k] = 1;
    for (int64_t bag = begin; bag < end; bag++) {
        cpu_index_read_some(s, bag * length, length, index);
        for (int64_t k = 0; k < length; k++)
            positions[k] = (int32_t)index[k];
        s->kernels->conv->blend_f32(to + bag * width, (const float *)(const void *)s->from,
                                    positions, ones, length, width, width);
    }
}

static tn_status bag_sum(const tn_cpu_call *call)
{
    const tn_layout *weight = &call->inputs[0].layout;
    struct cpu_indexing s = {.kernels = kernel_variant(call),
                             .n = weight->extent[0],
                             .inner = weight->extent[1],
                             .index = call->scratch,
                             .from = first_element(&call->inputs[0]),
                             .to = first_element(&call->outputs[0])};
    set_indices(call, true, &s);
    const int64_t read = call->inputs[1].layout.extent[1] * s.inner;
    call->parallel_for(call, call->outputs[0].layout.extent[0],
                       1 + PIECE_ELEMENTS / (read + 1), sum_bags, &s);
    return TN_OK;
}

// Positions of the loop are 32 bits, and it adds one row after the other: sums of many lose
// digits that base.sum keeps.
#define MOST_ROWS 128
static int32_t bag_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].extent[0] > 0 && query->inputs[0].extent[0] < INT32_MAX &&
           query->inputs[1].extent[1] > 0 && query->inputs[1].extent[1] <= MOST_ROWS;
}

// --- scatters --------------------------------------------------------------------------

struct cpu_copying {
    cpu_copy_fn *copy;
    struct axes axes; // of x
    const char *from;
    char *to;
    uint32_t size;
};

static void cpu_index_copy_elements(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    (void)worker;
    const struct cpu_copying *c = context;
    int32_t last = c->axes.rank - 1;
    int64_t row = last < 0 ? 1 : c->axes.extent[last];
    int64_t stride = last < 0 ? 1 : c->axes.stride[last];
    while (begin < end) {
        int64_t left = row - begin % row, n = end - begin < left ? end - begin : left;
        c->copy(c->to + begin * c->size, 1,
                c->from + axes_offset(&c->axes, begin) * c->size, stride, n);
        begin += n;
    }
}

// out = x, unless both are the same memory.
static void start_from_x(const tn_cpu_call *call, const struct cpu_indexing *s)
{
    const tn_tensor *x = &call->inputs[0];
    struct cpu_copying c = {.copy = s->kernels->copy[__builtin_ctz(s->size)],
                            .from = first_element(x),
                            .to = s->to,
                            .size = s->size};
    struct axes none;
    if (c.from == c.to)
        return;
    reduction_split(&x->layout, 0, &c.axes, &none);
    call->parallel_for(call, c.axes.count, PIECE_ELEMENTS, cpu_index_copy_elements, &c);
}

// to = op(to, from). Half floats are computed in f32; rounding twice gives the same as
// rounding once.
static void cpu_index_put_run(const struct cpu_indexing *s, char *to, const char *from,
                              int64_t n)
{
    float a[INDEX_BLOCK], b[INDEX_BLOCK];
    const void *in[] = {to, from}, *wide[] = {a, b};
    if (s->op == REPLACE) {
        memcpy(to, from, (size_t)n * s->size);
        return;
    }
    if (tn_dtype_computed(s->dtype) == s->dtype) {
        s->kernels->map[s->dtype][s->op](to, in, n, 0);
        return;
    }
    for (int64_t i = 0; i < n; i += INDEX_BLOCK) {
        int64_t m = n - i < INDEX_BLOCK ? n - i : INDEX_BLOCK;
        in[0] = to + i * cpu_dtype_size(s->dtype);
        in[1] = from + i * cpu_dtype_size(s->dtype);
        s->kernels->cast[s->dtype][TN_F32](a, &in[0], m, 0);
        s->kernels->cast[s->dtype][TN_F32](b, &in[1], m, 0);
        s->kernels->map[TN_F32][s->op](a, wide, m, 0);
        s->kernels->cast[TN_F32][s->dtype](to + i * cpu_dtype_size(s->dtype), &wide[0], m,
                                           0);
    }
}

// Scatters runs of one element: `count` updates along an axis of n, as their indices stand
// in memory. Updates out of range go to `nowhere`, without a branch, which masks make
// unpredictable.
typedef void put_elements_fn(void *to, const void *from, const void *index, int64_t count,
                             int64_t n);
#define PUT_ELEMENTS(name, T, I, put)                                                      \
    static void name(void *to, const void *from, const void *index, int64_t count,         \
                     int64_t n)                                                            \
    {                                                                                      \
        const T *x = from;                                                                 \
        const I *at = index;                                                               \
        T nowhere = *x, *out = to;                                                         \
        for (int64_t i = 0; i < count; i++) {                                              \
            int64_t front = at[i] < 0 ? at[i] + n : at[i];                                 \
            T *target = (uint64_t)front < (uint64_t)n ? &out[front] : &nowhere;            \
            *target put x[i];                                                              \
        }                                                                                  \
    }
#define PUT_BOTH(name, T, put)                                                             \
    PUT_ELEMENTS(name##_by_i32, T, int32_t, put)                                           \
    PUT_ELEMENTS(name##_by_i64, T, int64_t, put)
PUT_BOTH(add_f32, float, +=)
PUT_BOTH(add_f64, double, +=)
PUT_BOTH(add_32, uint32_t, +=) // integers wrap
PUT_BOTH(add_64, uint64_t, +=)
PUT_BOTH(set_8, uint8_t, =)
PUT_BOTH(set_16, uint16_t, =)
PUT_BOTH(set_32, uint32_t, =)
PUT_BOTH(set_64, uint64_t, =)
PUT_BOTH(set_128, tn_complex128, =)
#undef PUT_ELEMENTS
#undef PUT_BOTH

// The loop for runs of one element; NULL: there is none.
static put_elements_fn *elements_put(const struct cpu_indexing *s)
{
    static put_elements_fn *const set[][2] = {{set_8_by_i32, set_8_by_i64},
                                              {set_16_by_i32, set_16_by_i64},
                                              {set_32_by_i32, set_32_by_i64},
                                              {set_64_by_i32, set_64_by_i64},
                                              {set_128_by_i32, set_128_by_i64}};
    static put_elements_fn *const add[TN_NUM_DTYPES][2] = {
        [TN_F32] = {add_f32_by_i32, add_f32_by_i64},
        [TN_F64] = {add_f64_by_i32, add_f64_by_i64},
        [TN_I32] = {add_32_by_i32, add_32_by_i64},
        [TN_U32] = {add_32_by_i32, add_32_by_i64},
        [TN_I64] = {add_64_by_i32, add_64_by_i64},
        [TN_U64] = {add_64_by_i32, add_64_by_i64},
    };
    int32_t index = s->indices->layout.dtype;
    if (s->inner != 1 || (index != TN_I32 && index != TN_I64))
        return NULL;
    return s->op == REPLACE       ? set[__builtin_ctz(s->size)][index == TN_I64]
           : s->op == TN_EXPR_ADD ? add[s->dtype][index == TN_I64]
                                  : NULL;
}

// The loop runs over units: a part of the axis, for one outer element. A unit adds the
// updates of its part in the order of the indices, so the result does not depend on the
// number of parts.
static void scatter_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_indexing *s = context;
    int64_t bytes = s->inner * s->size, part = (s->n + s->parts - 1) / s->parts;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t outer = unit / s->parts, low = unit % s->parts * part, high = low + part;
        char *to = s->to + outer * s->n * bytes;
        const char *from = s->from + outer * s->count * bytes;
        if (s->put) {
            s->put(to, from, first_element(s->indices), s->count, s->n);
            continue;
        }
        for (int64_t i = 0; i < s->count; i++)
            if (s->index[i] >= low && s->index[i] < high)
                cpu_index_put_run(s, to + s->index[i] * bytes, from + i * bytes, s->inner);
    }
}

static tn_status cpu_index_scatter(const tn_cpu_call *call, int32_t op)
{
    const tn_take_attrs *attrs = call->attrs;
    const tn_layout *out = &call->outputs[0].layout;
    struct cpu_indexing s = {.kernels = kernel_variant(call), .parts = 1, .op = op};
    cpu_index_split(out, tn_axis(attrs->axis, out->rank), &s);
    s.to = first_element(&call->outputs[0]);
    if (count_elements(out) == 0)
        return TN_OK;
    start_from_x(call, &s);
    set_indices(call, false, &s);
    s.put = elements_put(&s);
    if (s.count == 0)
        return TN_OK;
    if (!s.put)
        read_indices(call, &s);
    s.from = first_element(&call->inputs[2]);
    int64_t each = s.count * s.inner;
    if (s.outer.count < call->num_threads && s.inner >= LEAST_RUN &&
        each > 2 * PIECE_ELEMENTS)
        s.parts = call->num_threads;
    call->parallel_for(call, s.outer.count * s.parts,
                       1 + PIECE_ELEMENTS / (each / s.parts + 1), scatter_units, &s);
    return TN_OK;
}

// --- records ---------------------------------------------------------------------------

#define NUMBERS (TN_INTEGER_DTYPES | TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES)
static const tn_operand_rule take_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule scatter_rules[] = {
    {NUMBERS, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {NUMBERS, TN_NEEDS_CONTIGUOUS},
};
static const tn_operand_rule set_rules[] = {
    {0, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {0, TN_NEEDS_CONTIGUOUS},
};

static const tn_operand_rule bag_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
};

#define RECORD(pack, id, rules, ...)                                                       \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = pack "." #id "/1",                         \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = "runs",                                         \
                                   .priority = 500,                                        \
                                   TN_OPERANDS(rules),                                     \
                                   .payload = &id##_payload,                               \
                                   __VA_ARGS__}
RECORD("base", take, take_rules, .accepts = take_accepts,
       .scratch_size = cpu_index_take_scratch);
#define SCATTER(id, op, rules)                                                             \
    static tn_status id(const tn_cpu_call *call)                                           \
    {                                                                                      \
        return cpu_index_scatter(call, op);                                                \
    }                                                                                      \
    RECORD("base", id, rules, .scratch_size = index_scratch)
SCATTER(scatter_add, TN_EXPR_ADD, scatter_rules);
SCATTER(scatter_set, REPLACE, set_rules);
SCATTER(scatter_max, TN_EXPR_MAX, scatter_rules);
SCATTER(scatter_min, TN_EXPR_MIN, scatter_rules);
#undef SCATTER
RECORD("nn", bag_sum, bag_rules, .accepts = bag_accepts, .scratch_size = bag_scratch);
#undef RECORD
