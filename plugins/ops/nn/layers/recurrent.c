// SPDX-License-Identifier: MIT
// lstm, gru and rnn: one product multiplies x at all positions, and recurrence computes the
// states.
#include "recurrence.h"
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
    {"w_hr", "P, H: makes of a position's H elements h, of P; w_hh is gates * H, P then",
     TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_output_info lstm_outputs[] = {
    {"out", "L, N, H: h of each position", 0, 0},
    {"h", "N, H: of the last position", 0, 0},
    {"c", "N, H: of the last position", 0, 0},
};

// Sizes of the composite: units, and elements of h, which are equal without w_hr.
struct layer {
    int64_t kind, hidden, out;
    tn_array *w_hr; // NULL: none
};

// --- inputs -----------------------------------------------------------------------------

static tn_array *recurrent_input(const tn_rule *rule, uint32_t i)
{
    return i < rule->num_inputs ? rule->inputs[i] : NULL;
}

static tn_status check_recurrent(const tn_build *build, const tn_rule *rule,
                                 const struct layer *r, int64_t batch)
{
    static const char *const names[] = {"x",    "w_ih", "w_hh", "b_ih",
                                        "b_hh", "h",    "c",    "w_hr"};
    const tn_type *x = build->type(rule->inputs[0]);
    int64_t gates = recurrence_gates(r->kind) * r->hidden,
            features = x->extent[x->rank - 1];
    int32_t is_batch = x->rank == 3;
    const int64_t shapes[][2] = {{0},
                                 {gates, features},
                                 {gates, r->out},
                                 {gates},
                                 {gates},
                                 {is_batch ? batch : r->out, r->out},
                                 {is_batch ? batch : r->hidden, r->hidden},
                                 {r->out, r->hidden}};
    const int32_t ranks[] = {0, 2, 2, 1, 1, 1 + is_batch, 1 + is_batch, 2};
    for (uint32_t i = 1; i < (r->kind == TN_RECURRENCE_LSTM ? 8u : 6u); i++) {
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

static tn_array *recurrent_state_of(const tn_build *build, tn_array *given, tn_dtype dtype,
                                    const int64_t shape[2])
{
    return given ? with_shape(build, "base.reshape/1", given, 2, shape)
                 : zeros(build, dtype, 2, shape);
}

// The biases of recurrence: those of x and of h, added where both enter one sum. NULL:
// none.
static tn_array *biases_of(const tn_build *build, const tn_rule *rule,
                           const struct layer *r, tn_dtype dtype)
{
    tn_array *x = recurrent_input(rule, 3), *h = recurrent_input(rule, 4), *in[3];
    tn_array *both = x && h ? add(build, x, h) : x ? x : h;
    const int64_t units = r->hidden;
    if (!both || r->kind != TN_RECURRENCE_GRU)
        return both;
    in[0] = part_of_axis(build, both, 0, 0, 1, 2 * units);
    in[1] =
        x ? part_of_axis(build, x, 0, 2 * units, 1, units) : zeros(build, dtype, 1, &units);
    in[2] =
        h ? part_of_axis(build, h, 0, 2 * units, 1, units) : zeros(build, dtype, 1, &units);
    return build->op(build, "base.concatenate/1", (const tn_array *const *)in, 3,
                     tn_attrs("axis", (int64_t)0));
}

// Rows (..., K) times w, M, K, transposed: (..., M).
static tn_array *multiply_transposed(const tn_build *build, tn_array *rows, tn_array *w)
{
    return build->op(build, "base.matmul/1", TN_IN(rows, tn_move_axis(build, w, 0, 1)),
                     TN_NO_ATTRS);
}

// x times w_ih at all positions, L, N, gates * H, as one product of rows.
static tn_array *product_of_x(const tn_build *build, const tn_rule *rule, tn_array *x)
{
    tn_ints shape = tn_extents(build, x);
    const int64_t *e = shape.value, rows[2] = {e[0] * e[1], e[2]};
    const tn_type *w = build->type(rule->inputs[1]);
    const int64_t whole[3] = {e[0], e[1], w->extent[0]};
    x = with_shape(build, "base.reshape/1", x, 2, rows);
    x = multiply_transposed(build, x, rule->inputs[1]);
    return with_shape(build, "base.reshape/1", x, 3, whole);
}

// --- w_hr -------------------------------------------------------------------------------

// h is a product of the units' outputs by w_hr, so the gates of the next position take the
// units' outputs by w_hh times w_hr. The product of h before the first position is added to
// that position's input, in L, N, gates * H.
static tn_array *with_first(const tn_build *build, tn_array *given, tn_array *h,
                            tn_array *w_hh, int64_t reverse)
{
    tn_ints shape = tn_extents(build, given);
    const int64_t *e = shape.value, row[3] = {1, e[1], e[2]};
    const int64_t at = reverse ? e[0] - 1 : 0;
    tn_array *first = part_of_axis(build, given, 0, at, 1, 1);
    tn_array *own = multiply_transposed(build, h, w_hh);
    first = add(build, first, with_shape(build, "base.reshape/1", own, 3, row));
    tn_array *rest = part_of_axis(build, given, 0, reverse ? 0 : 1, 1, e[0] - 1);
    return reverse ? recurrence_joined(build, TN_IN(rest, first), 0)
                   : recurrence_joined(build, TN_IN(first, rest), 0);
}

// --- the layer --------------------------------------------------------------------------

// Applies recurrence to the product of x, L, N, gates * H, and states of these shapes.
// results[0] becomes h of each position; *first: h before the first position.
static tn_status run_recurrence(const tn_build *build, const tn_rule *rule,
                                const struct layer *r, tn_array *given,
                                const int64_t shapes[2][2], tn_array **first,
                                tn_array **results)
{
    const recurrent_attrs *attrs = rule->attrs;
    tn_dtype dtype = build->type(rule->inputs[0])->dtype;
    int is_lstm = r->kind == TN_RECURRENCE_LSTM, is_gru = r->kind == TN_RECURRENCE_GRU;
    tn_array *h = recurrent_input(rule, 5), *w = rule->inputs[2];
    *first = recurrent_state_of(build, h, dtype, shapes[0]);
    if (r->w_hr && h && tn_extents(build, given).value[0] > 0)
        given = with_first(build, given, *first, w, attrs->reverse);
    if (r->w_hr)
        w = build->op(build, "base.matmul/1", TN_IN(w, r->w_hr), TN_NO_ATTRS);
    tn_array *in[] = {
        given, w, r->w_hr ? zeros(build, dtype, 2, shapes[1]) : *first,
        is_lstm ? recurrent_state_of(build, recurrent_input(rule, 6), dtype, shapes[1])
                : NULL,
        biases_of(build, rule, r, dtype)};
    tn_status status =
        build->op_n(build, "nn.recurrence/1", (const tn_array *const *)in,
                    in[4]   ? 5
                    : in[3] ? 4
                            : 3,
                    tn_attrs("kind", r->kind, "reverse", attrs->reverse), results,
                    is_lstm  ? 4
                    : is_gru ? 3
                             : 1);
    if (status == TN_OK && r->w_hr)
        results[0] = multiply_transposed(build, results[0], r->w_hr);
    return status;
}

static tn_status layers_recurrent(const tn_build *build, const tn_rule *rule, int64_t kind,
                                  tn_array **outputs)
{
    const recurrent_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[2]);
    struct layer r = {.kind = kind};
    char text[SHAPE_TEXT];
    if (x->rank != 2 && x->rank != 3)
        return build->host->fail(
            build->host, TN_ERR_ARGUMENT, "x has shape %s, expected 2 axes, L, I, or 3: %s",
            shape_text(x, text), attrs->batch_first ? "N, L, I" : "L, N, I");
    int is_batch = x->rank == 3, is_batch_first = is_batch && attrs->batch_first;
    int64_t batch = is_batch ? x->extent[is_batch_first ? 0 : 1] : 1;
    r.hidden = r.out = w->rank == 2 ? w->extent[1] : 0;
    r.w_hr = kind == TN_RECURRENCE_LSTM ? recurrent_input(rule, 7) : NULL;
    if (r.w_hr && build->type(r.w_hr)->rank == 2)
        r.hidden = build->type(r.w_hr)->extent[1];
    tn_status status = check_recurrent(build, rule, &r, batch);
    if (status)
        return status;
    const int64_t shapes[2][2] = {{batch, r.out}, {batch, r.hidden}};
    const int64_t length = x->extent[is_batch_first ? 1 : 0];
    const int64_t whole[3] = {length, 1, x->extent[x->rank - 1]};
    tn_array *input = rule->inputs[0], *results[4], *states[2];
    input = is_batch_first ? tn_move_axis(build, input, 1, 0)
            : is_batch     ? input
                           : with_shape(build, "base.reshape/1", input, 3, whole);
    status = run_recurrence(build, rule, &r, product_of_x(build, rule, input), shapes,
                            &states[0], results);
    if (status)
        return status;
    states[1] = results[1];
    if (length > 0)
        states[0] =
            part_of_axis(build, results[0], 0, attrs->reverse ? 0 : length - 1, 1, 1);
    for (uint64_t i = 0; i < (kind == TN_RECURRENCE_LSTM ? 2 : 1); i++)
        outputs[1 + i] = with_shape(build, "base.reshape/1", states[i], 1 + is_batch,
                                    is_batch ? shapes[i] : &shapes[i][1]);
    const int64_t rows[2] = {length, r.out};
    outputs[0] = is_batch_first ? tn_move_axis(build, results[0], 1, 0)
                 : is_batch     ? results[0]
                                : with_shape(build, "base.reshape/1", results[0], 2, rows);
    return built(outputs[0]);
}

DECOMPOSE(lstm)
{
    return layers_recurrent(build, rule, TN_RECURRENCE_LSTM, outputs);
}
DECOMPOSE(gru)
{
    return layers_recurrent(build, rule, TN_RECURRENCE_GRU, outputs);
}
DECOMPOSE(rnn)
{
    return layers_recurrent(build, rule,
                            ((const recurrent_attrs *)rule->attrs)->nonlinearity
                                ? TN_RECURRENCE_RELU
                                : TN_RECURRENCE_TANH,
                            outputs);
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
