// SPDX-License-Identifier: MIT
// rope: rotary position embedding.
#include "pack.h"

static const tn_input_info rope_inputs[] = {
    {"x", "vectors along the last axis, at positions along another one", 0,
     TN_FLOAT_DTYPES},
    {"frequencies", "radians from one position to the next, for each pair", 0,
     TN_FLOAT_DTYPES},
    {"offset",
     "integers: position of the first vector, one or one for each index of axis 0",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field rope_fields[] = {
    TN_BOOL_FIELD(tn_rope_attrs, interleaved, 0, "pairs are neighbours, not halves"),
    TN_I64_FIELD(tn_rope_attrs, axis, -2, "axis of positions"),
};

static tn_status rope_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_rope_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0], *frequencies = &infer->types[1];
    const tn_type *offset = infer->num_inputs > 2 ? &infer->types[2] : NULL;
    char text[SHAPE_TEXT];
    int32_t axis = tn_axis(attrs->axis, x->rank);
    if (x->rank < 2 || axis < 0 || axis == x->rank - 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64
                          " and x has shape %s, expected rank 2 or more and "
                          "an axis before the last",
                          attrs->axis, shape_text(x, text));
    tn_status status =
        check_rank(host, "frequencies", frequencies, 1, "one for each pair of elements");
    if (status)
        return status;
    if (2 * frequencies->extent[0] > x->extent[x->rank - 1])
        return host->fail(host, TN_ERR_ARGUMENT,
                          "frequencies has %" PRId64 " values, expected at most %" PRId64
                          ", half of x's last axis",
                          frequencies->extent[0], x->extent[x->rank - 1] / 2);
    if (offset && offset->dtype) {
        if (!tn_dtype_in(offset->dtype, TN_INTEGER_DTYPES))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "offset is %s, expected an integer dtype",
                              tn_dtype_name(offset->dtype));
        if (offset->rank > 1 ||
            (offset->rank == 1 && (x->rank < 3 || offset->extent[0] != x->extent[0])))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "offset has shape %s, expected [], or [%" PRId64
                              "] for the first of 3 or more axes",
                              shape_text(offset, text), x->extent[0]);
    }
    types[0] = *x;
    return TN_OK;
}

// The offsets of positions, with as many axes as x; NULL: none.
static tn_array *rope_offsets(const tn_build *build, const tn_rule *rule, const tn_type *x)
{
    tn_array *offset = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    const tn_type *type = offset ? build->type(offset) : NULL;
    int64_t column[TN_MAX_RANK] = {x->extent[0], 1, 1, 1, 1, 1, 1, 1};
    if (type && type->rank == 1)
        offset = with_shape(build, "base.reshape/1", offset, x->rank, column);
    return type ? offset : NULL;
}

// The positions, with the extents of x up to the last axis: 1 for axes that belong neither
// to positions nor to offsets, and for the last axis.
static tn_array *rope_positions(const tn_build *build, const tn_rule *rule,
                                const tn_type *x)
{
    const tn_rope_attrs *attrs = rule->attrs;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    tn_array *offset = rope_offsets(build, rule, x), *at;
    if (offset && x->extent[axis] == 1)
        return offset;
    at = counted(build, x->extent[axis], x->rank - 1 - axis);
    return offset ? build->expr(build, "t, o -> t + i64(o)", TN_IN(at, offset), TN_NO_ATTRS)
                  : at;
}

static tn_array *join_axis(const tn_build *build, tn_array *const *parts, uint64_t count,
                           int64_t axis)
{
    return build->op(build, "base.concatenate/1", (const tn_array *const *)parts, count,
                     tn_attrs("axis", axis));
}

static tn_array *rope_rounded(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    return dtype_of(build, x) == dtype ? x : cast(build, x, dtype);
}

// Rotates the pairs' first elements and second elements separately, and joins them.
static tn_array *rotate_separately(const tn_build *build, const tn_rule *rule, tn_type type)
{
    const tn_rope_attrs *attrs = rule->attrs;
    int32_t last = type.rank - 1;
    int64_t pairs = build->type(rule->inputs[1])->extent[0];
    tn_array *in[2], *out[2];
    tn_array *angle = build->expr(
        build, type.dtype == TN_F64 ? "t, f -> f64(t) * f64(f)" : "t, f -> f32(t) * f32(f)",
        TN_IN(rope_positions(build, rule, &type), rule->inputs[1]), TN_NO_ATTRS);
    for (int64_t i = 0; i < 2; i++)
        in[i] =
            part_of_axis(build, rule->inputs[0], last, attrs->interleaved ? i : i * pairs,
                         attrs->interleaved ? 2 : 1, pairs);
    out[0] = build->expr(build, "a, b, r -> a * cos(r) - b * sin(r)",
                         TN_IN(in[0], in[1], angle), TN_NO_ATTRS);
    out[1] = build->expr(build, "a, b, r -> a * sin(r) + b * cos(r)",
                         TN_IN(in[0], in[1], angle), TN_NO_ATTRS);
    for (int i = 0; i < 2; i++) {
        out[i] = rope_rounded(build, out[i], type.dtype);
        if (attrs->interleaved)
            out[i] = build->op(build, "base.expand_dims/1", TN_IN(out[i]),
                               tn_attrs("axis", TN_INTS(-1)));
    }
    type.extent[last] = pairs * 2;
    return with_shape(build, "base.reshape/1", join_axis(build, out, 2, -1), type.rank,
                      type.extent);
}

// Rotates each element of halves with the other one of its pair: an inserted axis of two in
// front of the last one separates the pairs, so one program writes both. The first elements
// are rotated the other way.
static tn_array *rotate_halves(const tn_build *build, const tn_rule *rule, tn_type type)
{
    int32_t last = type.rank - 1;
    int64_t pairs = build->type(rule->inputs[1])->extent[0];
    tn_array *at = rope_positions(build, rule, &type);
    tn_array *x = part_of_axis(build, rule->inputs[0], last, 0, 1, 2 * pairs);
    tn_type halves = type;
    halves.extent[last] = 2;
    halves.extent[halves.rank++] = pairs;
    x = with_shape(build, "base.reshape/1", x, halves.rank, halves.extent);
    at = build->op(build, "base.expand_dims/1", TN_IN(at), tn_attrs("axis", TN_INTS(-1)));
    tn_array *f = build->op(build, "base.broadcast_to/1", TN_IN(rule->inputs[1]),
                            tn_attrs("shape", TN_INTS(2, pairs)));
    tn_array *angle = build->expr(
        build,
        type.dtype == TN_F64
            ? "t, f -> r = f64(i64(t)) * f64(f); select(index // p % 2 == 0, -r, r)"
            : "t, f -> r = f32(i64(t)) * f32(f); select(index // p % 2 == 0, -r, r)",
        TN_IN(at, f), tn_attrs("p", pairs));
    const tn_array *other =
        build->op(build, "base.flip/1", TN_IN(x), tn_attrs("axis", TN_INTS(-2)));
    tn_array *out = build->expr(build, "a, b, r -> a * cos(r) + b * sin(r)",
                                TN_IN(x, other, angle), TN_NO_ATTRS);
    type.extent[last] = 2 * pairs;
    return with_shape(build, "base.reshape/1", rope_rounded(build, out, type.dtype),
                      type.rank, type.extent);
}

static tn_status rope_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    const tn_rope_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    const tn_type *frequencies = build->type(rule->inputs[1]);
    if (!x || !frequencies)
        return TN_ERR_ARGUMENT;
    int32_t last = x->rank - 1;
    int64_t pairs = frequencies->extent[0], extent = x->extent[last];
    int32_t at_once = !attrs->interleaved && x->rank < TN_MAX_RANK;
    tn_array *parts[2] = {(at_once ? rotate_halves : rotate_separately)(build, rule, *x)};
    outputs[0] = parts[0];
    if (extent > 2 * pairs) {
        parts[1] =
            part_of_axis(build, rule->inputs[0], last, 2 * pairs, 1, extent - 2 * pairs);
        outputs[0] = join_axis(build, parts, 2, last);
    }
    return built(outputs[0]);
}

const tn_primitive nn_rope = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.rope/1",
    .doc = "x with pairs of elements rotated by angles that grow with the position.",
    TN_INPUTS(rope_inputs),
    .attrs = TN_ATTR_TABLE(tn_rope_attrs, rope_fields),
    .infer = rope_infer,
    .decompose = rope_decompose,
};
