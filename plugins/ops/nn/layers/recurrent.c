// SPDX-License-Identifier: MIT
// lstm, gru and rnn: what x gives is one product of all positions, and a scan has what a
// position gives the next one.
#include "../pack.h"
#include <tenon/ops/rules.h>

typedef struct {
    int64_t batch_first, reverse, nonlinearity;
} recurrent_attrs;
static const char *const nonlinearities[] = {"tanh", "relu", NULL};
#define RECURRENT_FIELDS                                                                   \
    TN_BOOL_FIELD(recurrent_attrs, batch_first, 0, "x is N, L, I, and so is the result"),  \
        TN_BOOL_FIELD(recurrent_attrs, reverse, 0, "from the last position to the first")
static const tn_attr_field recurrent_fields[] = {RECURRENT_FIELDS};
static const tn_attr_field rnn_fields[] = {
    RECURRENT_FIELDS,
    TN_CHOICE_FIELD(recurrent_attrs, nonlinearity, 0, nonlinearities, "of each position"),
};
#define RECURRENT_INPUTS                                                                   \
    {"x", "L, N, I, or L, I without a batch", 0, TN_FLOAT_DTYPES},                         \
        {"w_ih", "gates * H, I: of x", 0, TN_FLOAT_DTYPES},                                \
        {"w_hh", "gates * H, H: of the position before", 0, TN_FLOAT_DTYPES},              \
        {"b_ih", "gates * H: a bias", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},                 \
        {"b_hh", "gates * H: a bias", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},                 \
    {                                                                                      \
        "h", "N, H, or H: what the first position has before; 0", TN_INPUT_OPTIONAL,       \
            TN_FLOAT_DTYPES                                                                \
    }
static const tn_input_info recurrent_inputs[] = {RECURRENT_INPUTS};
static const tn_input_info lstm_inputs[] = {
    RECURRENT_INPUTS,
    {"c", "N, H, or H: cells before the first position; 0", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
};
static const tn_output_info lstm_outputs[] = {
    {"out", "L, N, H: h of each position", 0, 0},
    {"h", "N, H: of the last position", 0, 0},
    {"c", "N, H: of the last position", 0, 0},
};

enum { LSTM, GRU, RNN };
static const int64_t gate_counts[] = {4, 3, 1};

struct recurrence {
    int kind;
    int64_t hidden;
    int64_t nonlinearity;
};

// Gate `i` of N, gates * H.
static tn_array *gate_of(const tn_build *build, const struct recurrence *r, tn_array *gates,
                         int64_t i)
{
    return part_of_axis(build, gates, 1, i * r->hidden, 1, r->hidden);
}

static tn_array *sigmoid_of(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.sigmoid/1", TN_IN(x), TN_NO_ATTRS);
}

// Inputs: h, for lstm c; the product of x at this position; w_hh turned, for gru b_hh.
static tn_status one_position(const tn_build *build, tn_array *const *inputs,
                              uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                              void *user)
{
    const struct recurrence *r = user;
    uint64_t carries = r->kind == LSTM ? 2 : 1;
    tn_array *h = inputs[0], *given = inputs[carries];
    tn_array *own =
        build->op(build, "base.matmul/1", TN_IN(h, inputs[carries + 1]), TN_NO_ATTRS);
    if (r->kind == GRU) {
        if (num_inputs > carries + 2)
            own = add(build, own, inputs[carries + 2]);
        tn_array *gates[2];
        for (int64_t i = 0; i < 2; i++)
            gates[i] = sigmoid_of(
                build, add(build, gate_of(build, r, given, i), gate_of(build, r, own, i)));
        outputs[0] =
            build->expr(build, "h, r, z, x, y -> n = tanh(x + r * y); n + z * (h - n)",
                        TN_IN(h, gates[0], gates[1], gate_of(build, r, given, 2),
                              gate_of(build, r, own, 2)),
                        TN_NO_ATTRS);
    } else if (r->kind == RNN) {
        outputs[0] = build->expr(build,
                                 r->nonlinearity ? "x, y -> s = x + y; s <= 0 ? 0 : s"
                                                 : "x, y -> tanh(x + y)",
                                 TN_IN(given, own), TN_NO_ATTRS);
    } else {
        tn_array *all = add(build, given, own), *gates[4];
        for (int64_t i = 0; i < 4; i++)
            gates[i] = gate_of(build, r, all, i);
        for (int64_t i = 0; i < 4; i++)
            gates[i] = i == 2 ? gates[i] : sigmoid_of(build, gates[i]);
        outputs[1] =
            build->expr(build, "c, i, f, g -> f * c + i * tanh(g)",
                        TN_IN(inputs[1], gates[0], gates[1], gates[2]), TN_NO_ATTRS);
        outputs[0] = build->expr(build, "c, o -> o * tanh(c)", TN_IN(outputs[1], gates[3]),
                                 TN_NO_ATTRS);
    }
    outputs[num_outputs - 1] = outputs[0];
    return built(outputs[0]);
}

// --- inputs -----------------------------------------------------------------------------

static tn_array *recurrent_input(const tn_rule *rule, uint32_t i)
{
    return i < rule->num_inputs ? rule->inputs[i] : NULL;
}

static tn_status check_recurrent(const tn_build *build, const tn_rule *rule,
                                 const struct recurrence *r, int64_t batch)
{
    static const char *const names[] = {"x", "w_ih", "w_hh", "b_ih", "b_hh", "h", "c"};
    const tn_type *x = build->type(rule->inputs[0]);
    int64_t gates = gate_counts[r->kind] * r->hidden, features = x->extent[x->rank - 1];
    int32_t is_batch = x->rank == 3;
    const int64_t state[2] = {is_batch ? batch : r->hidden, r->hidden};
    const int64_t shapes[][2] = {
        {0},     {gates, features},    {gates, r->hidden},  {gates},
        {gates}, {state[0], state[1]}, {state[0], state[1]}};
    const int32_t ranks[] = {0, 2, 2, 1, 1, 1 + is_batch, 1 + is_batch};
    for (uint32_t i = 1; i < (r->kind == LSTM ? 7u : 6u); i++) {
        tn_array *input = recurrent_input(rule, i);
        if (!input)
            continue;
        tn_status status = check_dtype(build->host, names[i], build->type(input), x->dtype);
        if (status == TN_OK)
            status = check_extents(build->host, names[i], build->type(input), ranks[i],
                                   shapes[i]);
        if (status)
            return status;
    }
    return TN_OK;
}

static tn_array *state_of(const tn_build *build, tn_array *given, tn_dtype dtype,
                          const int64_t shape[2])
{
    return given ? with_shape(build, "base.reshape/1", given, 2, shape)
                 : zeros(build, dtype, 2, shape);
}

// x times w_ih and biases of all positions, L, N, gates * H. A gru's hidden bias is within
// its gate.
static tn_array *product_of_x(const tn_build *build, const tn_rule *rule, tn_array *x,
                              int kind)
{
    tn_array *bias = recurrent_input(rule, 3), *hidden = recurrent_input(rule, 4);
    if (hidden && kind != GRU)
        bias = bias ? add(build, bias, hidden) : hidden;
    tn_array *in[3] = {x, rule->inputs[1], bias};
    return build->op(build, "nn.linear/1", (const tn_array *const *)in, bias ? 3 : 2,
                     TN_NO_ATTRS);
}

static tn_status scan_positions(const tn_build *build, const tn_rule *rule,
                                struct recurrence *r, tn_array *given,
                                const int64_t state[2], tn_array **results)
{
    const recurrent_attrs *attrs = rule->attrs;
    const tn_type *of_given = build->type(given);
    uint64_t count = 0, carries = r->kind == LSTM ? 2 : 1;
    tn_array *in[5];
    tn_type types[5];
    if (!of_given)
        return TN_ERR_ARGUMENT;
    tn_dtype dtype = of_given->dtype;
    for (uint32_t i = 0; i < carries; i++)
        in[count++] = state_of(build, recurrent_input(rule, 5 + i), dtype, state);
    in[count++] = given;
    in[count++] = tn_move_axis(build, rule->inputs[2], 0, 1);
    if (r->kind == GRU && recurrent_input(rule, 4))
        in[count++] = recurrent_input(rule, 4);
    for (uint64_t i = 0; i < count; i++) {
        const tn_type *type = build->type(in[i]);
        if (!type)
            return TN_ERR_ARGUMENT;
        types[i] = *type;
    }
    types[carries] = (tn_type){
        .dtype = dtype, .rank = 2, .extent = {state[0], gate_counts[r->kind] * r->hidden}};
    const tn_graph *body =
        build->trace(build, one_position, r, types, count, carries + 1, NULL);
    return build->op_n(build, "base.scan/1", (const tn_array *const *)in, count,
                       tn_attrs("body", body, "carries", (int64_t)carries, "slices",
                                (int64_t)1, "length", of_given->extent[0], "reverse",
                                attrs->reverse),
                       results, 2 * carries + 1);
}

static tn_status recurrent(const tn_build *build, const tn_rule *rule, int kind,
                           tn_array **outputs)
{
    const recurrent_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[2]);
    struct recurrence r = {.kind = kind, .nonlinearity = attrs->nonlinearity};
    tn_array *input = rule->inputs[0], *results[5];
    char text[SHAPE_TEXT];
    if (x->rank != 2 && x->rank != 3)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT, "x has shape %s, expected 2 axes, L, I, or 3: %s",
            shape_text(x, text), attrs->batch_first ? "N, L, I" : "L, N, I");
    int is_batch = x->rank == 3, is_turned = is_batch && attrs->batch_first;
    int64_t batch = is_batch ? x->extent[is_turned ? 0 : 1] : 1;
    r.hidden = w->rank == 2 ? w->extent[1] : 0;
    tn_status status = check_recurrent(build, rule, &r, batch);
    if (status)
        return status;
    const int64_t state[2] = {batch, r.hidden};
    if (!is_batch) {
        int64_t whole[3] = {x->extent[0], 1, x->extent[1]};
        input = with_shape(build, "base.reshape/1", input, 3, whole);
    }
    tn_array *given = product_of_x(build, rule, input, kind);
    given = is_turned ? tn_move_axis(build, given, 1, 0) : given;
    status = scan_positions(build, rule, &r, given, state, results);
    if (status)
        return status;
    uint64_t carries = kind == LSTM ? 2 : 1;
    outputs[0] = results[carries];
    if (is_turned)
        outputs[0] = tn_move_axis(build, outputs[0], 1, 0);
    for (uint64_t i = 0; i < carries; i++)
        outputs[1 + i] =
            is_batch ? results[i]
                     : with_shape(build, "base.reshape/1", results[i], 1, &state[1]);
    if (!is_batch) {
        int64_t rows[2] = {x->extent[0], r.hidden};
        outputs[0] = with_shape(build, "base.reshape/1", outputs[0], 2, rows);
    }
    return built(outputs[0]);
}

DECOMPOSE(lstm)
{
    return recurrent(build, rule, LSTM, outputs);
}
DECOMPOSE(gru)
{
    return recurrent(build, rule, GRU, outputs);
}
DECOMPOSE(rnn)
{
    return recurrent(build, rule, RNN, outputs);
}

COMPOSITE(lstm, "lstm/1", "Long short-term memory, gates i, f, g, o: one layer.",
          TN_INPUTS(lstm_inputs), TN_OUTPUTS(lstm_outputs),
          .attrs = TN_ATTR_TABLE(recurrent_attrs, recurrent_fields));
COMPOSITE(gru, "gru/1", "Gated recurrent units, gates r, z, n: one layer.",
          TN_INPUTS(recurrent_inputs), .outputs = lstm_outputs, .num_outputs = 2,
          .output_size = sizeof(tn_output_info),
          .attrs = TN_ATTR_TABLE(recurrent_attrs, recurrent_fields));
COMPOSITE(rnn, "rnn/1", "A recurrent layer: tanh or relu of x and what was before.",
          TN_INPUTS(recurrent_inputs), .outputs = lstm_outputs, .num_outputs = 2,
          .output_size = sizeof(tn_output_info),
          .attrs = TN_ATTR_TABLE(recurrent_attrs, rnn_fields));
