// SPDX-License-Identifier: MIT
// The definitions of a recurrence and its derivative: a scan over positions, which carries
// the state from one position to the next.
#include "recurrence.h"
#include <tenon/ops/rules.h>

// Gate `i` of an array N, gates * H.
static tn_array *gate_part(const tn_build *build, const struct recurrence *r,
                           tn_array *gates, int64_t i)
{
    return part_of_axis(build, gates, 1, i * r->units, 1, r->units);
}

tn_array *recurrence_joined(const tn_build *build, const tn_array *const *parts,
                            uint64_t count, int64_t axis)
{
    return build->op(build, "base.concatenate/1", parts, count, tn_attrs("axis", axis));
}

static tn_array *sigmoid_gate(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.sigmoid/1", TN_IN(x), TN_NO_ATTRS);
}

tn_array *recurrence_before(const tn_build *build, const struct recurrence *r,
                            tn_array *all, tn_array *first)
{
    const int64_t one[3] = {1, r->rows, r->units};
    if (r->length == 0)
        return all;
    tn_array *rest = part_of_axis(build, all, 0, r->reverse ? 1 : 0, 1, r->length - 1);
    first = with_shape(build, "base.reshape/1", first, 3, one);
    return r->reverse ? recurrence_joined(build, TN_IN(rest, first), 0)
                      : recurrence_joined(build, TN_IN(first, rest), 0);
}

// --- forwards ---------------------------------------------------------------------------

struct recurrence_step {
    struct recurrence of;
    int keeps;
};

// An LSTM's position: gives h and c, then the stacked outputs: h, and for derivatives c and
// gates.
static tn_status lstm_position(const tn_build *build, const struct recurrence_step *s,
                               tn_array *c, tn_array *all, tn_array **outputs)
{
    tn_array *gates[4];
    for (int64_t i = 0; i < 4; i++)
        gates[i] = gate_part(build, &s->of, all, i);
    for (int64_t i = 0; i < 4; i++)
        gates[i] = i == 2 ? build->expr(build, "x -> tanh(x)", TN_IN(gates[i]), TN_NO_ATTRS)
                          : sigmoid_gate(build, gates[i]);
    outputs[1] = build->expr(build, "c, i, f, g -> f * c + i * g",
                             TN_IN(c, gates[0], gates[1], gates[2]), TN_NO_ATTRS);
    outputs[0] = outputs[2] =
        build->expr(build, "c, o -> o * tanh(c)", TN_IN(outputs[1], gates[3]), TN_NO_ATTRS);
    if (s->keeps) {
        outputs[3] = outputs[1];
        outputs[4] = recurrence_joined(build, (const tn_array *const *)gates, 4, 1);
    }
    return built(s->keeps ? outputs[4] : outputs[0]);
}

// A GRU's position: gives h, then the stacked outputs: h, and for derivatives own and
// gates.
static tn_status gru_position(const tn_build *build, const struct recurrence_step *s,
                              tn_array *h, tn_array *given, tn_array *own, tn_array *bias,
                              tn_array **outputs)
{
    tn_array *gates[3], *last = gate_part(build, &s->of, own, 2);
    last = bias ? add(build, last, bias) : last;
    for (int64_t i = 0; i < 2; i++)
        gates[i] = sigmoid_gate(build, add(build, gate_part(build, &s->of, given, i),
                                           gate_part(build, &s->of, own, i)));
    gates[2] =
        build->expr(build, "x, r, y -> tanh(x + r * y)",
                    TN_IN(gate_part(build, &s->of, given, 2), gates[0], last), TN_NO_ATTRS);
    outputs[0] = outputs[1] = build->expr(build, "h, z, n -> n + z * (h - n)",
                                          TN_IN(h, gates[1], gates[2]), TN_NO_ATTRS);
    if (s->keeps) {
        outputs[2] = last;
        outputs[3] = recurrence_joined(build, (const tn_array *const *)gates, 3, 1);
    }
    return built(s->keeps ? outputs[3] : outputs[0]);
}

// Inputs: h, and of an LSTM c; the given input of this position; w transposed; b.
static tn_status one_position(const tn_build *build, tn_array *const *inputs,
                              uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                              void *user)
{
    (void)num_outputs;
    const struct recurrence_step *s = user;
    uint64_t carries = s->of.kind == TN_RECURRENCE_LSTM ? 2 : 1;
    tn_array *h = inputs[0], *given = inputs[carries];
    tn_array *own =
        build->op(build, "base.matmul/1", TN_IN(h, inputs[carries + 1]), TN_NO_ATTRS);
    tn_array *bias = num_inputs > carries + 2 ? inputs[carries + 2] : NULL, *last = NULL;
    if (bias && s->of.kind == TN_RECURRENCE_GRU) {
        last = part_of_axis(build, bias, 0, 3 * s->of.units, 1, s->of.units);
        bias = part_of_axis(build, bias, 0, 0, 1, 3 * s->of.units);
    }
    given = bias ? add(build, given, bias) : given;
    if (s->of.kind == TN_RECURRENCE_LSTM)
        return lstm_position(build, s, inputs[1], add(build, given, own), outputs);
    if (s->of.kind == TN_RECURRENCE_GRU)
        return gru_position(build, s, h, given, own, last, outputs);
    outputs[0] = outputs[1] =
        build->expr(build,
                    s->of.kind == TN_RECURRENCE_RELU ? "x, y -> s = x + y; s <= 0 ? 0 : s"
                                                     : "x, y -> tanh(x + y)",
                    TN_IN(given, own), TN_NO_ATTRS);
    return built(outputs[0]);
}

// Applies base.scan to carried values, slices and constants in this order; its body has
// `stacks` outputs behind the carried values.
static tn_status scan_positions(const tn_build *build, tn_build_body body, void *user,
                                tn_array *const *in, const uint64_t counts[3],
                                uint64_t stacks, int64_t reverse, tn_array **results)
{
    tn_type types[12];
    uint64_t count = counts[0] + counts[1] + counts[2];
    int64_t length = 0;
    for (uint64_t i = 0; i < count; i++) {
        const tn_type *type = build->type(in[i]);
        if (!type)
            return TN_ERR_ARGUMENT;
        types[i] = *type;
        if (i < counts[0] || i >= counts[0] + counts[1])
            continue;
        length = type->extent[0];
        types[i].rank--;
        for (int32_t k = 0; k < types[i].rank; k++)
            types[i].extent[k] = type->extent[k + 1];
        types[i].extent[types[i].rank] = 0;
    }
    const tn_graph *graph =
        build->trace(build, body, user, types, count, counts[0] + stacks, NULL);
    return build->op_n(build, "base.scan/1", (const tn_array *const *)in, count,
                       tn_attrs("body", graph, "carries", (int64_t)counts[0], "slices",
                                (int64_t)counts[1], "length", length, "reverse", reverse),
                       results, 2 * counts[0] + stacks);
}

tn_status recurrence_define(const tn_build *build, const struct recurrence *r,
                            tn_array *const *in, int keeps, tn_array **outputs)
{
    struct recurrence_step step = {.of = *r, .keeps = keeps && r->gates > 1};
    int is_lstm = r->kind == TN_RECURRENCE_LSTM;
    tn_array *list[5], *results[7];
    uint64_t carries = is_lstm ? 2 : 1, count = 0, stacks = step.keeps ? 3 : 1;
    list[count++] = in[RECURRENCE_H];
    if (is_lstm)
        list[count++] = in[RECURRENCE_C];
    list[count++] = in[RECURRENCE_GIVEN];
    list[count++] = tn_move_axis(build, in[RECURRENCE_W], 0, 1);
    if (in[RECURRENCE_B])
        list[count++] = in[RECURRENCE_B];
    const uint64_t counts[3] = {carries, 1, count - carries - 1};
    tn_status status = scan_positions(build, one_position, &step, list, counts, stacks,
                                      r->reverse, results);
    if (status)
        return status;
    outputs[0] = results[carries];
    if (is_lstm)
        outputs[1] = results[1];
    for (uint64_t i = 1; i < stacks; i++)
        outputs[carries + i - 1] = results[carries + i];
    return built(outputs[0]);
}

// --- backwards --------------------------------------------------------------------------

// The gradients of an LSTM's gates, and in *dc that of the cells before this position.
static tn_array *recurrence_define_lstm_slopes(const tn_build *build,
                                               const struct recurrence *r, tn_array *dh,
                                               tn_array **dc, tn_array *const *slices)
{
    tn_array *gates[4], *slopes[4], *c = slices[1], *before = slices[2];
    for (int64_t i = 0; i < 4; i++)
        gates[i] = gate_part(build, r, slices[0], i);
    tn_array *all =
        build->expr(build, "dc, dh, c, o -> t = tanh(c); dc + dh * o * (1 - t * t)",
                    TN_IN(*dc, dh, c, gates[3]), TN_NO_ATTRS);
    slopes[0] = build->expr(build, "d, i, g -> d * g * i * (1 - i)",
                            TN_IN(all, gates[0], gates[2]), TN_NO_ATTRS);
    slopes[1] = build->expr(build, "d, f, c -> d * c * f * (1 - f)",
                            TN_IN(all, gates[1], before), TN_NO_ATTRS);
    slopes[2] = build->expr(build, "d, i, g -> d * i * (1 - g * g)",
                            TN_IN(all, gates[0], gates[2]), TN_NO_ATTRS);
    slopes[3] = build->expr(build, "dh, c, o -> dh * tanh(c) * o * (1 - o)",
                            TN_IN(dh, c, gates[3]), TN_NO_ATTRS);
    *dc = build->expr(build, "d, f -> d * f", TN_IN(all, gates[1]), TN_NO_ATTRS);
    return recurrence_joined(build, (const tn_array *const *)slopes, 4, 1);
}

// The gradients of a GRU's gates, and in *own that of w's and b's part of n.
static tn_array *recurrence_define_gru_slopes(const tn_build *build,
                                              const struct recurrence *r, tn_array *dh,
                                              tn_array *const *slices, tn_array **own)
{
    tn_array *gates[3], *slopes[3], *y = slices[1], *before = slices[2];
    for (int64_t i = 0; i < 3; i++)
        gates[i] = gate_part(build, r, slices[0], i);
    slopes[2] = build->expr(build, "dh, z, n -> dh * (1 - z) * (1 - n * n)",
                            TN_IN(dh, gates[1], gates[2]), TN_NO_ATTRS);
    slopes[1] = build->expr(build, "dh, z, n, h -> dh * (h - n) * z * (1 - z)",
                            TN_IN(dh, gates[1], gates[2], before), TN_NO_ATTRS);
    slopes[0] = build->expr(build, "d, r, y -> d * y * r * (1 - r)",
                            TN_IN(slopes[2], gates[0], y), TN_NO_ATTRS);
    *own = build->expr(build, "d, r -> d * r", TN_IN(slopes[2], gates[0]), TN_NO_ATTRS);
    return recurrence_joined(build, (const tn_array *const *)slopes, 3, 1);
}

// Inputs: the gradients of h, and of an LSTM c; slices: the gradient of out, gates, cells
// and the states before, or out; w. Outputs: the carried gradients, then those of gates,
// and own.
static tn_status one_position_back(const tn_build *build, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs,
                                   uint64_t num_outputs, void *user)
{
    const struct recurrence *r = user;
    uint64_t carries = r->kind == TN_RECURRENCE_LSTM ? 2 : 1;
    tn_array *const *slices = inputs + carries + 1;
    tn_array *w = inputs[num_inputs - 1], *all, *own = NULL, *dc = inputs[1];
    tn_array *dh = add(build, inputs[0], inputs[carries]);
    if (r->kind == TN_RECURRENCE_LSTM)
        own = all = recurrence_define_lstm_slopes(build, r, dh, &dc, slices);
    else if (r->kind == TN_RECURRENCE_GRU)
        all = recurrence_define_gru_slopes(build, r, dh, slices, &own);
    else
        own = all = build->expr(build,
                                r->kind == TN_RECURRENCE_RELU ? "d, h -> h <= 0 ? 0 : d"
                                                              : "d, h -> d * (1 - h * h)",
                                TN_IN(dh, slices[0]), TN_NO_ATTRS);
    outputs[carries] = all;
    if (r->kind == TN_RECURRENCE_GRU) {
        tn_array *both = part_of_axis(build, all, 1, 0, 1, 2 * r->units);
        outputs[carries + 1] = own;
        own = recurrence_joined(build, TN_IN(both, own), 1);
    }
    outputs[0] = build->op(build, "base.matmul/1", TN_IN(own, w), TN_NO_ATTRS);
    if (r->kind == TN_RECURRENCE_LSTM)
        outputs[1] = dc;
    if (r->kind == TN_RECURRENCE_GRU)
        outputs[0] = build->expr(build, "p, d, z -> p + d * z",
                                 TN_IN(outputs[0], dh, gate_part(build, r, slices[0], 1)),
                                 TN_NO_ATTRS);
    (void)num_outputs;
    return built(outputs[0]);
}

tn_status recurrence_grad_define(const tn_build *build, const struct recurrence *r,
                                 tn_array *const *in, tn_array **outputs)
{
    struct recurrence of = *r;
    int is_lstm = r->kind == TN_RECURRENCE_LSTM, is_gru = r->kind == TN_RECURRENCE_GRU;
    const int64_t state[2] = {r->rows, r->units};
    tn_array *list[7], *results[6];
    uint64_t count = 0, carries = is_lstm ? 2 : 1, stacks = is_gru ? 2 : 1;
    list[count++] = zeros(build, r->dtype, 2, state);
    if (is_lstm)
        list[count++] = in[GRAD_OF_C] ? in[GRAD_OF_C] : zeros(build, r->dtype, 2, state);
    list[count++] = in[GRAD_GRADIENT];
    if (is_lstm || is_gru) {
        list[count++] = in[GRAD_GATES];
        list[count++] = in[GRAD_CELLS];
        list[count++] = is_lstm ? recurrence_before(build, r, in[GRAD_CELLS], in[GRAD_C])
                                : recurrence_before(build, r, in[GRAD_OUT], in[GRAD_H]);
    } else {
        list[count++] = in[GRAD_OUT];
    }
    list[count++] = in[GRAD_W];
    const uint64_t counts[3] = {carries, count - carries - 1, 1};
    tn_status status = scan_positions(build, one_position_back, &of, list, counts, stacks,
                                      !r->reverse, results);
    if (status)
        return status;
    outputs[0] = results[carries];
    outputs[1] = results[0];
    if (is_lstm || is_gru)
        outputs[2] = is_lstm ? results[1] : results[carries + 1];
    return built(outputs[0]);
}
