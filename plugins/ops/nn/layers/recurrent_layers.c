// SPDX-License-Identifier: MIT
// lstm_layers, gru_layers and rnn_layers: stacked layers, in one direction or both, with
// dropout between them, as PyTorch's modules, whose order the weights have.
#include "../pack.h"
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/rules.h>

typedef struct {
    int64_t layers, bidirectional, batch_first, biases, nonlinearity, projected, training,
        seed;
    double dropout;
} layers_attrs;
static const char *const of_rnn[] = {"tanh", "relu", NULL};
#define LAYERS_FIELDS(...)                                                                 \
    {                                                                                      \
        TN_I64_FIELD(layers_attrs, layers, 1,                                              \
                     "layers, each over what the one before "                              \
                     "gives"),                                                             \
            TN_BOOL_FIELD(layers_attrs, bidirectional, 0,                                  \
                          "each layer has two directions, side by side in its result"),    \
            TN_BOOL_FIELD(layers_attrs, batch_first, 0,                                    \
                          "x is N, L, I, and so is the result"),                           \
            TN_BOOL_FIELD(layers_attrs, biases, 1, "each direction has b_ih and b_hh"),    \
            TN_F64_FIELD(layers_attrs, dropout, 0,                                         \
                         "the share that is dropped between layers, in training"),         \
            TN_BOOL_FIELD(layers_attrs, training, 0, "true: dropout"),                     \
            __VA_ARGS__ TN_RUNTIME_I64_FIELD(layers_attrs, seed, 0, "which are dropped")   \
    }
#define NONLINEARITY                                                                       \
    TN_CHOICE_FIELD(layers_attrs, nonlinearity, 0, of_rnn, "of each position"),
#define PROJECTED                                                                          \
    TN_BOOL_FIELD(layers_attrs, projected, 0, "each direction has w_hr, which makes h"),
static const tn_attr_field layers_fields[] = LAYERS_FIELDS();
static const tn_attr_field lstm_layers_fields[] = LAYERS_FIELDS(PROJECTED);
static const tn_attr_field rnn_layers_fields[] = LAYERS_FIELDS(NONLINEARITY);

#define X_INPUT                                                                            \
    {                                                                                      \
        "x", "L, N, I, or L, I without a batch", 0, TN_FLOAT_DTYPES                        \
    }
#define H_INPUT                                                                            \
    {                                                                                      \
        "h", "layers * directions, N, H: before the first position; 0", TN_INPUT_OPTIONAL, \
            TN_FLOAT_DTYPES                                                                \
    }
#define WEIGHTS_INPUT                                                                      \
    {                                                                                      \
        "weights", "of each layer, of each direction: w_ih, w_hh, b_ih, b_hh; w_hr",       \
            TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC, TN_FLOAT_DTYPES                         \
    }
static const tn_input_info layers_inputs[] = {X_INPUT, H_INPUT, WEIGHTS_INPUT};
static const tn_input_info lstm_layers_inputs[] = {
    X_INPUT,
    H_INPUT,
    {"c", "layers * directions, N, H: cells; 0", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    WEIGHTS_INPUT,
};
static const tn_output_info layers_outputs[] = {
    {"out", "L, N, directions * H: of the last layer", 0, 0},
    {"h", "layers * directions, N, H: of the last positions", 0, 0},
    {"c", "layers * directions, N, H: of the last positions", 0, 0},
};

// An application: the input where weights begin, and the number of weights of a direction.
struct stack {
    const tn_build *build;
    const tn_rule *rule;
    const layers_attrs *attrs;
    const char *primitive;
    int64_t kind, directions;
    int64_t elements[2]; // of h, and of c
    uint32_t states, first, each;
};

static tn_status recurrent_layers_check_weights(struct stack *s)
{
    const tn_host *host = s->build->host;
    const layers_attrs *attrs = s->attrs;
    // The last input is the seed; without weights it is one that is not given.
    int64_t got = (int64_t)s->rule->num_inputs - 1 - s->first;
    got -= got == 1 && !s->rule->inputs[s->first];
    if (attrs->layers < 1 || attrs->layers > INT32_MAX)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "layers is %" PRId64 ", expected at least 1", attrs->layers);
    if (!(attrs->dropout >= 0 && attrs->dropout <= 1))
        return host->fail(host, TN_ERR_ARGUMENT, "dropout is %g, expected 0 to 1",
                          attrs->dropout);
    int64_t expected = attrs->layers * s->directions * s->each;
    if (got != expected)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %" PRId64 " weights, expected %" PRId64 ": %" PRId64
                          " layers of %" PRId64 " directions with %u",
                          got > 0 ? got : 0, expected, attrs->layers, s->directions,
                          s->each);
    for (uint32_t i = 0; i < (uint32_t)expected; i++)
        if (!s->rule->inputs[s->first + i])
            return host->fail(host, TN_ERR_ARGUMENT, "weights %u is not given", i);
    uint32_t last = s->first + s->each - 1; // w_hr
    const tn_type *w = s->build->type(s->rule->inputs[s->first + 1]);
    s->elements[0] = s->elements[1] = w->rank == 2 ? w->extent[1] : 0;
    if (attrs->projected) {
        w = s->build->type(s->rule->inputs[last]);
        s->elements[1] = w->rank == 2 ? w->extent[1] : 0;
    }
    return TN_OK;
}

// Checks states, which have an axis of layers and directions in front of a layer's own
// axes.
static tn_status check_states(const struct stack *s)
{
    static const char *const names[] = {"h", "c"};
    const tn_type *x = s->build->type(s->rule->inputs[0]);
    char text[SHAPE_TEXT];
    if (x->rank != 2 && x->rank != 3)
        return s->build->host->fail(s->build->host, TN_ERR_ARGUMENT,
                                    "x has shape %s, expected 2 axes, L, I, or 3: %s",
                                    shape_text(x, text),
                                    s->attrs->batch_first ? "N, L, I" : "L, N, I");
    int is_batch = x->rank == 3;
    for (uint32_t i = 0; i < s->states; i++) {
        tn_array *given = s->rule->inputs[1 + i];
        const int64_t extent[3] = {s->attrs->layers * s->directions,
                                   is_batch ? x->extent[s->attrs->batch_first ? 0 : 1]
                                            : s->elements[i],
                                   s->elements[i]};
        tn_status status = given
                               ? check_extents(s->build->host, names[i],
                                               s->build->type(given), 2 + is_batch, extent)
                               : TN_OK;
        if (status)
            return status;
    }
    return TN_OK;
}

// State `number` of an input of states; NULL where the input is not given.
static tn_array *state_at(const struct stack *s, tn_array *states, int64_t number)
{
    if (!states)
        return NULL;
    const tn_type *type = s->build->type(states);
    return with_shape(s->build, "base.reshape/1",
                      part_of_axis(s->build, states, 0, number, 1, 1), type->rank - 1,
                      type->extent + 1);
}

// One direction of a layer: its result, and its last states in `last`.
static tn_status run_direction(const struct stack *s, tn_array *x, int64_t number,
                               int64_t is_back, tn_array **out, tn_array *last[2])
{
    tn_array *in[8] = {x}, *results[3];
    uint32_t first = s->first + (uint32_t)number * s->each,
             has_w_hr = s->attrs->projected != 0;
    for (uint32_t i = 0; i < s->each - has_w_hr; i++)
        in[1 + i] = s->rule->inputs[first + i];
    if (has_w_hr)
        in[7] = s->rule->inputs[first + s->each - 1];
    for (uint32_t i = 0; i < s->states; i++)
        in[5 + i] = state_at(s, s->rule->inputs[1 + i], number);
    const tn_attr_list attrs =
        s->kind == TN_RECURRENCE_TANH
            ? tn_attrs("batch_first", s->attrs->batch_first, "reverse", is_back,
                       "nonlinearity", s->attrs->nonlinearity)
            : tn_attrs("batch_first", s->attrs->batch_first, "reverse", is_back);
    tn_status status =
        s->build->op_n(s->build, s->primitive, (const tn_array *const *)in,
                       has_w_hr ? 8 : 5 + s->states, attrs, results, 1 + s->states);
    *out = results[0];
    for (uint32_t i = 0; i < s->states && status == TN_OK; i++) {
        tn_ints shape = tn_extents(s->build, results[1 + i]);
        const tn_ints row = tn_ints_after(1, &shape);
        last[i] = with_shape(s->build, "base.reshape/1", results[1 + i], (int32_t)row.count,
                             row.value);
    }
    return status;
}

// Dropout between layers, with a seed for each layer.
static tn_array *dropped_between(const struct stack *s, tn_array *x, int64_t layer)
{
    const double p = s->attrs->dropout;
    if (!s->attrs->training || p == 0)
        return x;
    if (p == 1)
        return s->build->expr(s->build, "x -> select(true, 0, x)", TN_IN(x), TN_NO_ATTRS);
    const tn_ints shape = tn_extents(s->build, x);
    tn_array *seed =
        s->build->expr(s->build, "s, n -> s + n",
                       TN_IN(s->rule->inputs[s->rule->num_inputs - 1],
                             s->build->scalar(s->build, TN_I64, (double)layer)),
                       TN_NO_ATTRS);
    return s->build->expr(s->build, "x, b -> select(b >= u32(least), x * scale, 0)",
                          TN_IN(x, words_of_seed(s->build, seed, &shape)),
                          tn_attrs("least", floor(p * 4294967296.0), "scale", 1 / (1 - p)));
}

static tn_array *side_by_side(const tn_build *build, tn_array *const *parts, uint64_t count,
                              int64_t axis)
{
    return count == 1
               ? parts[0]
               : build->op(build, "base.concatenate/1", (const tn_array *const *)parts,
                           count, tn_attrs("axis", axis));
}

static tn_status recurrent_run_layers(const struct stack *s, tn_array **last,
                                      tn_array **outputs)
{
    const int64_t count = s->attrs->layers * s->directions;
    tn_array *x = s->rule->inputs[0], *sides[2], *states[2];
    for (int64_t layer = 0; layer < s->attrs->layers; layer++) {
        for (int64_t side = 0; side < s->directions; side++) {
            int64_t number = layer * s->directions + side;
            tn_status status = run_direction(s, x, number, side, &sides[side], states);
            for (uint32_t i = 0; i < s->states && status == TN_OK; i++)
                last[i * count + number] = states[i];
            if (status)
                return status;
        }
        x = side_by_side(s->build, sides, (uint64_t)s->directions, -1);
        if (layer + 1 < s->attrs->layers)
            x = dropped_between(s, x, layer);
    }
    outputs[0] = x;
    for (uint32_t i = 0; i < s->states; i++)
        outputs[1 + i] = side_by_side(s->build, last + i * count, (uint64_t)count, 0);
    return built(outputs[0]);
}

static tn_status recurrent_layers(const tn_build *build, const tn_rule *rule, int64_t kind,
                                  const char *primitive, tn_array **outputs)
{
    const layers_attrs *attrs = rule->attrs;
    struct stack s = {.build = build,
                      .rule = rule,
                      .attrs = attrs,
                      .primitive = primitive,
                      .kind = kind,
                      .directions = attrs->bidirectional ? 2 : 1,
                      .states = kind == TN_RECURRENCE_LSTM ? 2 : 1,
                      .each = (attrs->biases ? 4 : 2) + (attrs->projected != 0)};
    s.first = 1 + s.states;
    tn_status status = recurrent_layers_check_weights(&s);
    if (status == TN_OK)
        status = check_states(&s);
    if (status)
        return status;
    uint64_t count = (uint64_t)(attrs->layers * s.directions) * s.states;
    tn_array **last = build->host->alloc(build->host, count * sizeof(tn_array *), 0);
    if (!last)
        return TN_ERR_MEMORY;
    status = recurrent_run_layers(&s, last, outputs);
    build->host->free(build->host, last);
    return status;
}

DECOMPOSE(lstm_layers)
{
    return recurrent_layers(build, rule, TN_RECURRENCE_LSTM, "nn.lstm/1", outputs);
}
DECOMPOSE(gru_layers)
{
    return recurrent_layers(build, rule, TN_RECURRENCE_GRU, "nn.gru/1", outputs);
}
DECOMPOSE(rnn_layers)
{
    return recurrent_layers(build, rule, TN_RECURRENCE_TANH, "nn.rnn/1", outputs);
}

COMPOSITE(lstm_layers, "lstm_layers/1",
          "Layers of lstm in one direction or both, with dropout between them.",
          TN_INPUTS(lstm_layers_inputs), TN_OUTPUTS(layers_outputs),
          .attrs = TN_ATTR_TABLE(layers_attrs, lstm_layers_fields));
COMPOSITE(gru_layers, "gru_layers/1",
          "Layers of gru in one direction or both, with dropout between them.",
          TN_INPUTS(layers_inputs), .outputs = layers_outputs, .num_outputs = 2,
          .output_size = sizeof(tn_output_info),
          .attrs = TN_ATTR_TABLE(layers_attrs, layers_fields));
COMPOSITE(rnn_layers, "rnn_layers/1",
          "Layers of rnn in one direction or both, with dropout between them.",
          TN_INPUTS(layers_inputs), .outputs = layers_outputs, .num_outputs = 2,
          .output_size = sizeof(tn_output_info),
          .attrs = TN_ATTR_TABLE(layers_attrs, rnn_layers_fields));
