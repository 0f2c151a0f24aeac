// SPDX-License-Identifier: MIT
// base.take_along_axis/1, and base.put_along_axis/1 of mode "set". Arrays are viewed as
// outer x n x inner elements, n along the indexed axis; indices, results and values as
// outer x count x inner.
#include <string.h>
#include "kernels.h"

#define PIECE_ELEMENTS 16384 // least elements of a piece
#define BLOCK 256            // indices that are read at a time
#define LEAST_PLAIN 16       // indices of a row that are looked at in fours
#define LEAST_COLUMNS 64     // of inner elements that are one thread's

struct cpu_along {
    const struct cpu_kernels *kernels;
    int64_t outer, n, inner, count;
    int64_t columns, tiles; // of a put: inner elements of a unit, units of an outer element
    int32_t index_dtype;
    uint32_t index_size, size;
    const char *x, *index, *values;
    char *to;
    int64_t value_step; // 0: one value for all
};

static struct cpu_along cpu_along_describe(const tn_cpu_call *call)
{
    const tn_along_axis_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout, *index = &call->inputs[1].layout;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    struct cpu_along s = {.kernels = kernel_variant(call),
                          .outer = 1,
                          .n = x->extent[axis],
                          .inner = 1,
                          .count = index->extent[axis],
                          .index_dtype = index->dtype,
                          .index_size = cpu_dtype_size(index->dtype),
                          .size = cpu_dtype_size(x->dtype),
                          .x = first_element(&call->inputs[0]),
                          .index = first_element(&call->inputs[1]),
                          .to = first_element(&call->outputs[0])};
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            *(i < axis ? &s.outer : &s.inner) *= x->extent[i];
    return s;
}

// Indices [first, first + len), counted from the front. Out of range: `clamps` them, or
// they are below 0 or from n on.
static void read_block(const struct cpu_along *s, int64_t first, int64_t len, bool clamps,
                       int64_t at[BLOCK])
{
    const void *in = s->index + first * s->index_size;
    int64_t kept = s->index_dtype == TN_U64 ? 0 : -1; // 2^63 and above are not negative
    s->kernels->cast[s->index_dtype][TN_I64](at, &in, len, 0);
    int64_t low = clamps ? 0 : INT64_MIN, high = clamps ? s->n - 1 : INT64_MAX;
    for (int64_t i = 0; i < len; i++) {
        int64_t front = at[i] < 0 ? (at[i] & kept) + s->n : at[i];
        front = front < low ? low : front;
        at[i] = front > high ? high : front;
    }
}

static int64_t cpu_along_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Takes elements of one row while no index is below 0 or out of range, four at a time, and
// gives their number: indices in i64, which are read where they are.
typedef int64_t plain_fn(const struct cpu_along *s, const void *from, void *to,
                         const void *index, int64_t len);
// For a T of each size. `column` is the inner element of the first index; `from` and `to`
// of take and put are the outer element's.
typedef void move_fn(const struct cpu_along *s, const void *from, void *to,
                     const int64_t *at, int64_t len, int64_t column);

#define MOVES(T)                                                                           \
    static int64_t take_plain_##T(const struct cpu_along *s, const void *from, void *to,   \
                                  const void *index, int64_t len)                          \
    {                                                                                      \
        const T *x = from;                                                                 \
        const uint64_t *at = index, limit = (uint64_t)s->n;                                \
        T *out = to;                                                                       \
        int64_t i = 0;                                                                     \
        for (; i + 4 <= len; i += 4) {                                                     \
            uint64_t a = at[i], b = at[i + 1], c = at[i + 2], d = at[i + 3];               \
            if (a >= limit || b >= limit || c >= limit || d >= limit)                      \
                break;                                                                     \
            T first = x[a], second = x[b], third = x[c], fourth = x[d];                    \
            out[i] = first;                                                                \
            out[i + 1] = second;                                                           \
            out[i + 2] = third;                                                            \
            out[i + 3] = fourth;                                                           \
        }                                                                                  \
        return i;                                                                          \
    }                                                                                      \
    static void take_##T(const struct cpu_along *s, const void *from, void *to,            \
                         const int64_t *at, int64_t len, int64_t column)                   \
    {                                                                                      \
        const T *x = from;                                                                 \
        T *out = to;                                                                       \
        for (int64_t i = 0; i < len && s->inner == 1; i++)                                 \
            out[i] = x[at[i]];                                                             \
        for (int64_t i = 0; i < len && s->inner > 1; i++) {                                \
            out[i] = x[at[i] * s->inner + column];                                         \
            column = column + 1 < s->inner ? column + 1 : 0;                               \
        }                                                                                  \
    }                                                                                      \
    static void put_##T(const struct cpu_along *s, const void *from, void *to,             \
                        const int64_t *at, int64_t len, int64_t column)                    \
    {                                                                                      \
        const T *value = from;                                                             \
        T *out = to;                                                                       \
        for (int64_t i = 0; i < len; i++, value += s->value_step) {                        \
            if (at[i] >= 0 && at[i] < s->n)                                                \
                out[at[i] * s->inner + column] = *value;                                   \
            column = column + 1 < s->inner ? column + 1 : 0;                               \
        }                                                                                  \
    }
MOVES(uint8_t)
MOVES(uint16_t)
MOVES(uint32_t)
MOVES(uint64_t)
#undef MOVES

// By the logarithm of the size.
static move_fn *const take_of_size[] = {take_uint8_t, take_uint16_t, take_uint32_t,
                                        take_uint64_t};
static plain_fn *const plain_of_size[] = {take_plain_uint8_t, take_plain_uint16_t,
                                          take_plain_uint32_t, take_plain_uint64_t};
static move_fn *const put_of_size[] = {put_uint8_t, put_uint16_t, put_uint32_t,
                                       put_uint64_t};

// --- take -------------------------------------------------------------------------------

// Copies the first of result elements [begin, end), of one axis without others behind it,
// row by row, while their indices need no wrap; gives how many.
static int64_t take_plain(const struct cpu_along *s, int64_t begin, int64_t end)
{
    const int64_t start = begin;
    for (int64_t n, done; begin < end; begin += done) {
        int64_t outer = begin / s->count, left = s->count - (begin - outer * s->count);
        n = cpu_along_least(end - begin, left);
        done = plain_of_size[__builtin_ctz(s->size)](s, s->x + outer * s->n * s->size,
                                                     s->to + begin * s->size,
                                                     s->index + begin * s->index_size, n);
        if (done < n)
            return begin + done - start;
    }
    return begin - start;
}

// The loop runs over the elements of the result. A block of indices may span many outer
// elements: with one index each, as of labels, reading them one by one took most of the
// time.
static void take_elements(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_along *s = context;
    int64_t row = s->count * s->inner, at[BLOCK];
    move_fn *take = take_of_size[__builtin_ctz(s->size)];
    bool is_plain = s->index_dtype == TN_I64 && s->inner == 1 && s->count >= LEAST_PLAIN;
    for (int64_t len; begin < end; begin += len) {
        begin += is_plain ? take_plain(s, begin, end) : 0;
        len = cpu_along_least(end - begin, is_plain ? s->count - begin % s->count : BLOCK);
        len = cpu_along_least(len, BLOCK);
        int64_t n;
        int64_t outer = begin / row, first = begin - outer * row;
        read_block(s, begin, len, true, at);
        for (int64_t i = 0; i < len; i += n, outer++, first = 0) {
            n = cpu_along_least(len - i, row - first);
            take(s, s->x + outer * s->n * s->inner * s->size, s->to + (begin + i) * s->size,
                 at + i, n, first ? first % s->inner : 0);
        }
    }
}

static tn_status take_along_axis(const tn_cpu_call *call)
{
    struct cpu_along s = cpu_along_describe(call);
    call->parallel_for(call, s.outer * s.count * s.inner, PIECE_ELEMENTS, take_elements,
                       &s);
    return TN_OK;
}

// --- put --------------------------------------------------------------------------------

// Puts the values of indices [first, first + len), the first of which is of inner element
// `column`.
static void cpu_along_put_run(const struct cpu_along *s, char *to, int64_t first,
                              int64_t len, int64_t column)
{
    int64_t at[BLOCK];
    move_fn *put = put_of_size[__builtin_ctz(s->size)];
    for (int64_t i = 0; i < len; i += BLOCK) {
        int64_t n = cpu_along_least(len - i, BLOCK);
        read_block(s, first + i, n, false, at);
        put(s, s->values + (first + i) * s->value_step * s->size, to, at, n,
            (column + i) % s->inner);
    }
}

// The loop runs over units: some columns of inner elements, for one outer element. So of
// equal indices the last one is put last.
static void put_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_along *s = context;
    int64_t row = s->inner * s->size;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t outer = unit / s->tiles, column = unit % s->tiles * s->columns;
        int64_t width = cpu_along_least(s->columns, s->inner - column);
        int64_t first = outer * s->count * s->inner;
        const char *from = s->x + outer * s->n * row;
        char *to = s->to + outer * s->n * row;
        bool is_whole = width == s->inner;
        if (from != to && is_whole)
            memcpy(to, from, (size_t)(s->n * row));
        for (int64_t i = 0; i < s->n && from != to && !is_whole; i++)
            memcpy(to + i * row + column * s->size, from + i * row + column * s->size,
                   (size_t)width * s->size);
        if (is_whole)
            cpu_along_put_run(s, to, first, s->count * s->inner, 0);
        for (int64_t i = 0; i < s->count && !is_whole; i++)
            cpu_along_put_run(s, to, first + i * s->inner + column, width, column);
    }
}

static tn_status put_along_axis(const tn_cpu_call *call)
{
    struct cpu_along s = cpu_along_describe(call);
    int64_t values = count_elements(&call->inputs[2].layout);
    int64_t each = (s.n + s.count) * s.inner;
    if (s.outer * s.inner == 0)
        return TN_OK;
    s.values = first_element(&call->inputs[2]);
    s.value_step = values == 1 ? 0 : 1;
    s.columns = s.inner;
    if (s.outer < call->num_threads && each > 2 * PIECE_ELEMENTS) {
        s.columns = (s.inner + call->num_threads - 1) / call->num_threads;
        s.columns =
            cpu_along_least(s.columns < LEAST_COLUMNS ? LEAST_COLUMNS : s.columns, s.inner);
    }
    s.tiles = (s.inner + s.columns - 1) / s.columns;
    call->parallel_for(call, s.outer * s.tiles, 1 + PIECE_ELEMENTS / (each / s.tiles + 1),
                       put_units, &s);
    return TN_OK;
}

// --- records ----------------------------------------------------------------------------

// Nothing broadcasts but one value.
static int32_t cpu_along_fits(const tn_kernel_query *query)
{
    const tn_along_axis_attrs *attrs = query->attrs;
    const tn_layout *x = &query->inputs[0], *index = &query->inputs[1];
    int32_t axis = tn_axis(attrs->axis, x->rank);
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && index->extent[i] != x->extent[i])
            return 0;
    return 1;
}

static int32_t fits_put(const tn_kernel_query *query)
{
    const tn_along_axis_attrs *attrs = query->attrs;
    const tn_layout *index = &query->inputs[1], *values = &query->inputs[2];
    bool is_whole = values->rank == index->rank;
    for (int32_t i = 0; i < index->rank && is_whole; i++)
        is_whole = values->extent[i] == index->extent[i];
    return attrs->mode == TN_SCATTER_SET && cpu_along_fits(query) &&
           (is_whole || count_elements(values) == 1);
}

// Elements of 1 to 8 bytes.
#define MOVED (TN_ALL_DTYPES & ~TN_DTYPE_BIT(TN_COMPLEX128))
static const tn_operand_rule take_rules[] = {{MOVED, TN_NEEDS_CONTIGUOUS},
                                             {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {MOVED, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule put_rules[] = {{MOVED, TN_NEEDS_CONTIGUOUS},
                                            {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                            {MOVED, TN_NEEDS_CONTIGUOUS},
                                            {MOVED, TN_NEEDS_CONTIGUOUS}};

#define RECORD(id, rules, predicate)                                                       \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = "base." #id "/1",                          \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = "along",                                        \
                                   .priority = 500,                                        \
                                   TN_OPERANDS(rules),                                     \
                                   .accepts = predicate,                                   \
                                   .payload = &id##_payload}
RECORD(take_along_axis, take_rules, cpu_along_fits);
RECORD(put_along_axis, put_rules, fits_put);
#undef RECORD
