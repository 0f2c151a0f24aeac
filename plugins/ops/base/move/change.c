// SPDX-License-Identifier: MIT
// Arrays with more, fewer or other elements: delete, insert, resize, diagflat, ediff1d; and
// bits in bytes: packbits, unpackbits.
#include "../pack.h"

#include <stdlib.h>

// --- delete and insert ------------------------------------------------------------------

typedef struct {
    const tn_int_list *indices;
    int64_t axis;
} change_attrs;

static const tn_attr_field change_fields[] = {
    TN_REQUIRED_FIELD(change_attrs, indices, TN_ATTR_INT_LIST,
                      "indices along the axis; negative ones count from the end"),
    TN_I64_FIELD(change_attrs, axis, TN_NO_AXIS, "the axis; not given: x flattened"),
};

// A position to delete or insert at, and its number in the list.
struct change_position {
    int64_t at;
    uint64_t number;
};

static int change_position_compare(const void *x, const void *y)
{
    const struct change_position *a = x, *b = y;
    return a->at != b->at ? (a->at > b->at) - (a->at < b->at)
                          : (a->number > b->number) - (a->number < b->number);
}

// x, the axis to change, and the positions in ascending order, below n or with
// `is_end_open` up to n; behind them room for 2 * count + 1 parts. In the host's memory.
struct change_state {
    tn_array *x;
    int32_t axis;
    int64_t n;
    uint64_t count;
    struct change_position *positions;
    tn_array **parts;
};

static tn_status change_begin(const tn_build *build, const tn_rule *rule, int is_end_open,
                              struct change_state *c)
{
    const change_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int is_flat = attrs->axis == TN_NO_AXIS;
    *c = (struct change_state){.x = is_flat ? flattened(build, rule->inputs[0])
                                            : rule->inputs[0],
                               .count = attrs->indices->count};
    tn_status status = build->type(c->x) ? check_axis(host, is_flat ? 0 : attrs->axis,
                                                      build->type(c->x)->rank, &c->axis)
                                         : TN_ERR_ARGUMENT;
    if (status)
        return status;
    c->n = build->type(c->x)->extent[c->axis];
    for (uint64_t i = 0; i < c->count; i++)
        if (attrs->indices->value[i] < -c->n ||
            attrs->indices->value[i] >= c->n + is_end_open)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "index %" PRId64 " is out of range for axis %d with %" PRId64
                              " elements",
                              attrs->indices->value[i], c->axis, c->n);
    c->positions = host->alloc(
        host,
        (c->count + 1) * sizeof(*c->positions) + (2 * c->count + 1) * sizeof(*c->parts), 0);
    if (!c->positions)
        return TN_ERR_MEMORY;
    c->parts = (tn_array **)(c->positions + c->count + 1);
    for (uint64_t i = 0; i < c->count; i++) {
        int64_t at = attrs->indices->value[i];
        c->positions[i] = (struct change_position){at < 0 ? at + c->n : at, i};
    }
    qsort(c->positions, c->count, sizeof(*c->positions), change_position_compare);
    return TN_OK;
}

DECOMPOSE(delete)
{
    struct change_state c;
    tn_status status = change_begin(build, rule, 0, &c);
    if (status)
        return status;
    uint64_t parts = 0;
    int64_t next = 0; // behind the last position
    for (uint64_t i = 0; i <= c.count; i++) {
        int64_t at = i < c.count ? c.positions[i].at : c.n;
        if (at > next || (i == c.count && parts == 0))
            c.parts[parts++] = part_of_axis(build, c.x, c.axis, next, 1, at - next);
        next = at + 1 > next ? at + 1 : next;
    }
    outputs[0] = joined(build, c.parts, parts, c.axis);
    build->host->free(build->host, c.positions);
    return built(outputs[0]);
}

// The values with x's extents and, along the axis, one value for each position; a single
// position takes any number of values.
static tn_array *insert_values(const tn_build *build, const struct change_state *c,
                               tn_array *v, int64_t *out_each)
{
    tn_ints shape = tn_extents(build, c->x);
    const tn_type *of_v = build->type(v), *x = build->type(c->x);
    int32_t at = of_v->rank - x->rank + c->axis;
    *out_each = c->count == 1 && at >= 0 ? of_v->extent[at] : 1;
    shape.value[c->axis] = (int64_t)c->count * *out_each;
    return with_shape(build, "base.broadcast_to/1", as_dtype(build, v, x->dtype), shape);
}

DECOMPOSE(insert)
{
    struct change_state c;
    tn_status status = change_begin(build, rule, 1, &c);
    if (status)
        return status;
    uint64_t parts = 0;
    int64_t next = 0, each;
    tn_array *values = insert_values(build, &c, rule->inputs[1], &each);
    for (uint64_t i = 0; i <= c.count; i++) {
        int64_t at = i < c.count ? c.positions[i].at : c.n;
        if (at > next || (i == c.count && parts == 0))
            c.parts[parts++] = part_of_axis(build, c.x, c.axis, next, 1, at - next);
        if (i < c.count)
            c.parts[parts++] = part_of_axis(build, values, c.axis,
                                            (int64_t)c.positions[i].number * each, 1, each);
        next = at;
    }
    outputs[0] = joined(build, c.parts, parts, c.axis);
    build->host->free(build->host, c.positions);
    return built(outputs[0]);
}

static const tn_input_info insert_inputs[] = {
    {"x", "the array", 0, TN_ALL_DTYPES},
    {"values", "one an index along the axis; they broadcast, and become x's dtype", 0,
     TN_ALL_DTYPES},
};
COMPOSITE(delete, "x without the elements at these indices of an axis.",
          TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(change_attrs, change_fields));
COMPOSITE(insert, "x with values put before these indices of an axis.",
          TN_INPUTS(insert_inputs), .attrs = TN_ATTR_TABLE(change_attrs, change_fields));

// --- resize, diagflat, ediff1d ----------------------------------------------------------

static const tn_attr_field resize_fields[] = {
    TN_REQUIRED_FIELD(tn_shape_attrs, shape, TN_ATTR_INTS, "extents of the result"),
};

DECOMPOSE(resize)
{
    const tn_shape_attrs *attrs = rule->attrs;
    tn_status status = check_shape(build->host, &attrs->shape);
    if (status)
        return status;
    tn_array *x = flattened(build, rule->inputs[0]);
    tn_type wanted = {.rank = (int32_t)attrs->shape.count};
    memcpy(wanted.extent, attrs->shape.value, sizeof(wanted.extent));
    int64_t n = x ? build->type(x)->extent[0] : 0, count = type_count(&wanted);
    if (n == 0 && count > 0)
        x = with_shape(build, "base.broadcast_to/1",
                       build->scalar(build, build->type(rule->inputs[0])->dtype, 0),
                       ints_of(1, &count));
    if (n > 0 && count > n)
        x = build->op(build, "base.tile/1", TN_IN(x),
                      tn_attrs("reps", TN_INTS((count - 1) / n + 1)));
    x = with_shape(build, "base.reshape/1", part_of_axis(build, x, 0, 0, 1, count),
                   attrs->shape);
    outputs[0] = x;
    return built(x);
}

COMPOSITE(resize, "x's elements in order under other extents, again from the first one.",
          TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(tn_shape_attrs, resize_fields));

static const tn_attr_field diagflat_fields[] = {
    TN_I64_FIELD(tn_diagonal_attrs, k, 0, "the diagonal; above 0: above the main one"),
};

DECOMPOSE(diagflat)
{
    const tn_diagonal_attrs *attrs = rule->attrs;
    outputs[0] = build->op(build, "base.diag/1", TN_IN(flattened(build, rule->inputs[0])),
                           tn_attrs("k", attrs->k));
    return built(outputs[0]);
}

COMPOSITE(diagflat, "The matrix with x's elements on a diagonal.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(tn_diagonal_attrs, diagflat_fields));

static const tn_input_info ediff1d_inputs[] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"to_end", "put behind the differences", TN_INPUT_OPTIONAL, TN_ALL_DTYPES},
    {"to_begin", "put in front", TN_INPUT_OPTIONAL, TN_ALL_DTYPES},
};

DECOMPOSE(ediff1d)
{
    tn_array *parts[3];
    uint64_t count = 0;
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    for (uint32_t i = 2; i < 5; i++) { // to_begin, the differences, to_end
        tn_array *part = i % 3 < rule->num_inputs ? rule->inputs[i % 3] : NULL;
        if (!part)
            continue;
        part = as_dtype(build, flattened(build, part), dtype);
        parts[count++] =
            i == 3 ? build->op(build, "base.diff/1", TN_IN(part), TN_NO_ATTRS) : part;
    }
    outputs[0] = count > 1 ? joined(build, parts, count, 0) : parts[0];
    return built(outputs[0]);
}

COMPOSITE(ediff1d, "Differences of neighbours of x flattened.", TN_INPUTS(ediff1d_inputs));

// --- bits -------------------------------------------------------------------------------

typedef struct {
    int64_t axis;
    int64_t count;
    int64_t bitorder; // 1: the first bit is the lowest
} bits_attrs;

static const char *const bit_orders[] = {"big", "little", NULL};
#define BIT_AXIS                                                                           \
    TN_I64_FIELD(bits_attrs, axis, TN_NO_AXIS, "the axis; not given: x flattened")
#define BIT_ORDER                                                                          \
    TN_CHOICE_FIELD(bits_attrs, bitorder, 0, bit_orders,                                   \
                    "whether the first bit of a byte is the highest or the lowest")
static const tn_attr_field packbits_fields[] = {BIT_AXIS, BIT_ORDER};
static const tn_attr_field unpackbits_fields[] = {
    BIT_AXIS,
    TN_I64_FIELD(bits_attrs, count, TN_SLICE_END,
                 "how many; negative: all but so many; more than there are: zeros behind"),
    BIT_ORDER,
};

// x, flattened without an axis, and padded with zeros until the axis has `n` elements.
static tn_status bits_axis(const tn_build *build, const tn_rule *rule, tn_array **out,
                           int32_t *out_axis)
{
    const bits_attrs *attrs = rule->attrs;
    int is_flat = attrs->axis == TN_NO_AXIS;
    *out = is_flat ? flattened(build, rule->inputs[0]) : rule->inputs[0];
    return build->type(*out) ? check_axis(build->host, is_flat ? 0 : attrs->axis,
                                          build->type(*out)->rank, out_axis)
                             : TN_ERR_ARGUMENT;
}

static tn_array *bits_filled(const tn_build *build, tn_array *x, int32_t axis, int64_t more)
{
    const tn_ints shape = tn_extents(build, x);
    tn_ints before = {shape.count, 1, {0}}, after = before;
    after.value[axis] = more;
    return more <= 0 ? x
                     : build->op(build, "base.pad_constant/1", TN_IN(x),
                                 tn_attrs("before", (const tn_ints *)&before, "after",
                                          (const tn_ints *)&after));
}

DECOMPOSE(packbits)
{
    const bits_attrs *attrs = rule->attrs;
    tn_array *x, *bit[8];
    int32_t axis;
    tn_status status = bits_axis(build, rule, &x, &axis);
    if (status == TN_OK && build->type(x)->dtype != TN_BOOL)
        status = check_integers(build->host, "x", build->type(x)->dtype);
    if (status)
        return status;
    int64_t n = build->type(x)->extent[axis];
    x = bits_filled(build, x, axis, (8 - n % 8) % 8);
    for (int64_t i = 0; i < 8; i++)
        bit[attrs->bitorder ? 7 - i : i] = part_of_axis(build, x, axis, i, 8, (n + 7) / 8);
    outputs[0] = build->expr(
        build,
        "a, b, c, d, e, f, g, h -> u8(bool(a)) << 7 | u8(bool(b)) << 6 | u8(bool(c)) << 5 "
        "| u8(bool(d)) << 4 | u8(bool(e)) << 3 | u8(bool(f)) << 2 | u8(bool(g)) << 1 "
        "| u8(bool(h))",
        (const tn_array *const *)bit, 8, TN_NO_ATTRS);
    return built(outputs[0]);
}

DECOMPOSE(unpackbits)
{
    const bits_attrs *attrs = rule->attrs;
    tn_array *x;
    int32_t axis;
    tn_status status = bits_axis(build, rule, &x, &axis);
    if (status)
        return status;
    if (build->type(x)->dtype != TN_U8)
        return build->host->fail(build->host, TN_ERR_ARGUMENT, "x is %s, expected u8",
                                 dtype_text(build->type(x)->dtype));
    int64_t n = build->type(x)->extent[axis] * 8, count = attrs->count;
    int32_t behind = build->type(x)->rank - 1 - axis;
    x = build->op(build, "base.repeat/1", TN_IN(x),
                  tn_attrs("repeats", TN_INT_LIST(8), "axis", (int64_t)axis));
    x = build->expr(build,
                    attrs->bitorder ? "x, i -> x >> u8(i % 8) & 1"
                                    : "x, i -> x >> u8(7 - i % 8) & 1",
                    TN_IN(x, counted(build, n, behind)), TN_NO_ATTRS);
    count = count == TN_SLICE_END ? n : count < -n ? 0 : count < 0 ? n + count : count;
    outputs[0] = count <= n ? part_of_axis(build, x, axis, 0, 1, count)
                            : bits_filled(build, x, axis, count - n);
    return built(outputs[0]);
}

COMPOSITE(packbits, "Eight bits of an axis in a byte: u8.", TN_INPUTS(base_x),
          .attrs = TN_ATTR_TABLE(bits_attrs, packbits_fields));
COMPOSITE(unpackbits, "The bits of bytes along an axis: u8.", TN_INPUTS(base_x),
          .attrs = TN_ATTR_TABLE(bits_attrs, unpackbits_fields));
