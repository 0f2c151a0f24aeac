// SPDX-License-Identifier: MIT
// recurrence, which lstm, gru and rnn are made of; recurrence_steps, into which it
// decomposes on a device, so that nothing is retained for derivatives where none are taken;
// recurrence_grad.
#include "recurrence.h"
#include <tenon/ops/rules.h>

static const char *const kinds[] = {"lstm", "gru", "tanh", "relu", NULL};
#define KIND_FIELDS                                                                        \
    TN_CHOICE_FIELD(tn_recurrence_attrs, kind, 0, kinds, "of each position"),              \
        TN_BOOL_FIELD(tn_recurrence_attrs, reverse, 0,                                     \
                      "from the last position to the first")
static const tn_attr_field recurrence_fields[] = {KIND_FIELDS};
static const tn_attr_field steps_fields[] = {
    KIND_FIELDS,
    TN_BOOL_FIELD(tn_recurrence_attrs, keeps, 1, "gives what derivatives need"),
};
static const tn_input_info recurrence_inputs[] = {
    {"given", "L, N, gates * H: what each position is given", 0, TN_FLOAT_DTYPES},
    {"w", "gates * H, H: of the position before", 0, TN_FLOAT_DTYPES},
    {"h", "N, H: what the first position has before", 0, TN_FLOAT_DTYPES},
    {"c", "N, H: cells before the first position, of an LSTM", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
    {"b", "gates * H: biases, of a GRU 4 * H: of r, z, and of n two", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
};
static const tn_input_info grad_inputs[] = {
    {"gradient", "L, N, H: of out", 0, TN_FLOAT_DTYPES},
    {"w", "gates * H, H: of the position before", 0, TN_FLOAT_DTYPES},
    {"out", "L, N, H: h of each position", 0, TN_FLOAT_DTYPES},
    {"h", "N, H: what the first position has before", 0, TN_FLOAT_DTYPES},
    {"gates", "L, N, gates * H: of an LSTM and a GRU", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"cells", "L, N, H: c of each position, of a GRU what w and b give n",
     TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
    {"c", "N, H: cells before the first position, of an LSTM", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
    {"gradient_c", "N, H: of the last c, of an LSTM", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};
static const tn_output_info recurrence_outputs[] = {
    {"out", "h of each position; of an LSTM the last c; cells or own, and gates",
     TN_OUTPUT_OPTIONAL, 0}};
static const tn_output_info grad_outputs[] = {
    {"given", "gradients of what is given and of h, and of c or own", TN_OUTPUT_OPTIONAL,
     0}};

#define ATTRS_OF(attrs) "kind", (attrs)->kind, "reverse", (attrs)->reverse

// --- types ------------------------------------------------------------------------------

static tn_status count_recurrence(const tn_infer *infer, uint64_t *out_count)
{
    int64_t kind = ((const tn_recurrence_attrs *)infer->attrs)->kind;
    *out_count = kind == TN_RECURRENCE_LSTM ? 4 : kind == TN_RECURRENCE_GRU ? 3 : 1;
    return TN_OK;
}

static tn_status count_steps(const tn_infer *infer, uint64_t *out_count)
{
    const tn_recurrence_attrs *attrs = infer->attrs;
    tn_status status = count_recurrence(infer, out_count);
    if (!attrs->keeps)
        *out_count = attrs->kind == TN_RECURRENCE_LSTM ? 2 : 1;
    return status;
}

static tn_status count_grad(const tn_infer *infer, uint64_t *out_count)
{
    int64_t kind = ((const tn_recurrence_attrs *)infer->attrs)->kind;
    *out_count = recurrence_gates(kind) > 1 ? 3 : 2;
    return TN_OK;
}

// An input and the number of its axes; -1: this kind does not have the input.
struct expected_input {
    const char *name;
    int32_t rank;
    int64_t extent[3];
};

static tn_status recurrence_check_inputs(const tn_infer *infer,
                                         const struct expected_input *expected,
                                         uint32_t count, uint32_t optional)
{
    const tn_host *host = infer->host;
    tn_dtype dtype = infer->types[0].dtype;
    for (uint32_t i = 0; i < count; i++) {
        const struct expected_input *e = &expected[i];
        int given = i < infer->num_inputs && infer->types[i].dtype;
        if (given && e->rank < 0)
            return host->fail(host, TN_ERR_ARGUMENT, "%s is not of this kind", e->name);
        if (!given && e->rank >= 0 && !(optional >> i & 1))
            return host->fail(host, TN_ERR_ARGUMENT, "%s is not given", e->name);
        if (!given)
            continue;
        tn_status status = check_dtype(host, e->name, &infer->types[i], dtype);
        if (status == TN_OK)
            status = check_extents(host, e->name, &infer->types[i], e->rank, e->extent);
        if (status)
            return status;
    }
    return TN_OK;
}

static tn_status check_first(const tn_infer *infer, const char *first,
                             struct recurrence *out)
{
    tn_status status =
        check_rank(infer->host, first, &infer->types[0], 3, "positions, rows, elements");
    if (status == TN_OK)
        status = check_rank(infer->host, "w", &infer->types[1], 2, "gates * H, H");
    if (status == TN_OK)
        *out = recurrence_of(infer->attrs, &infer->types[0], &infer->types[1]);
    return status;
}

static tn_type recurrence_type_of(const struct recurrence *r, int32_t rank, int64_t last)
{
    return rank == 3 ? (tn_type){r->dtype, 3, {r->length, r->rows, last}}
                     : (tn_type){r->dtype, 2, {r->rows, last}};
}

static tn_status recurrence_infer(const tn_infer *infer, tn_type *types)
{
    struct recurrence r;
    tn_status status = check_first(infer, "given", &r);
    if (status)
        return status;
    int64_t units = r.units, all = r.gates * units;
    int is_lstm = r.kind == TN_RECURRENCE_LSTM;
    const struct expected_input expected[] = {
        {"given", 3, {r.length, r.rows, all}},
        {"w", 2, {all, units}},
        {"h", 2, {r.rows, units}},
        {"c", is_lstm ? 2 : -1, {r.rows, units}},
        {"b", 1, {recurrence_biases(r.kind) * units}}};
    status =
        recurrence_check_inputs(infer, expected, RECURRENCE_INPUTS, 1u << RECURRENCE_B);
    if (status)
        return status;
    uint32_t next = 0;
    types[next++] = recurrence_type_of(&r, 3, units);
    if (is_lstm)
        types[next++] = recurrence_type_of(&r, 2, units);
    if (next < infer->num_outputs) {
        types[next++] = recurrence_type_of(&r, 3, units);
        types[next] = recurrence_type_of(&r, 3, all);
    }
    return TN_OK;
}

static tn_status recurrence_grad_infer(const tn_infer *infer, tn_type *types)
{
    struct recurrence r;
    tn_status status = check_first(infer, "gradient", &r);
    if (status)
        return status;
    int64_t units = r.units, all = r.gates * units;
    int is_lstm = r.kind == TN_RECURRENCE_LSTM, has_gates = r.gates > 1;
    const struct expected_input expected[] = {
        {"gradient", 3, {r.length, r.rows, units}},
        {"w", 2, {all, units}},
        {"out", 3, {r.length, r.rows, units}},
        {"h", 2, {r.rows, units}},
        {"gates", has_gates ? 3 : -1, {r.length, r.rows, all}},
        {"cells", has_gates ? 3 : -1, {r.length, r.rows, units}},
        {"c", is_lstm ? 2 : -1, {r.rows, units}},
        {"gradient_c", is_lstm ? 2 : -1, {r.rows, units}}};
    status = recurrence_check_inputs(infer, expected, GRAD_INPUTS, 1u << GRAD_OF_C);
    if (status)
        return status;
    types[0] = recurrence_type_of(&r, 3, all);
    types[1] = recurrence_type_of(&r, 2, units);
    if (has_gates)
        types[2] = recurrence_type_of(&r, is_lstm ? 2 : 3, units);
    return TN_OK;
}

// --- definition -------------------------------------------------------------------------

// Reads an application: its inputs, NULL for those not given, and its sizes.
static struct recurrence recurrence_read_rule(const tn_build *build, const tn_rule *rule,
                                              uint32_t count, tn_array **in)
{
    for (uint32_t i = 0; i < count; i++)
        in[i] = i < rule->num_inputs ? rule->inputs[i] : NULL;
    return recurrence_of(rule->attrs, build->type(in[0]), build->type(in[1]));
}

static tn_status recurrence_decompose(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs)
{
    const tn_recurrence_attrs *attrs = rule->attrs;
    uint64_t kept =
        (UINT64_C(1) << rule->num_outputs) - (attrs->kind == TN_RECURRENCE_LSTM ? 4 : 2);
    int64_t keeps = (kept & ~rule->unread) != 0;
    uint64_t count = keeps ? rule->num_outputs : attrs->kind == TN_RECURRENCE_LSTM ? 2 : 1;
    return build->op_n(build, "nn.recurrence_steps/1",
                       (const tn_array *const *)rule->inputs, rule->num_inputs,
                       tn_attrs(ATTRS_OF(attrs), "keeps", keeps), outputs, count);
}

static tn_status recurrence_steps_decompose(const tn_build *build, const tn_rule *rule,
                                            tn_array **outputs)
{
    tn_array *in[RECURRENCE_INPUTS];
    struct recurrence r = recurrence_read_rule(build, rule, RECURRENCE_INPUTS, in);
    return recurrence_define(
        build, &r, in, (int)((const tn_recurrence_attrs *)rule->attrs)->keeps, outputs);
}

static tn_status recurrence_grad_decompose(const tn_build *build, const tn_rule *rule,
                                           tn_array **outputs)
{
    tn_array *in[GRAD_INPUTS];
    struct recurrence r = recurrence_read_rule(build, rule, GRAD_INPUTS, in);
    return recurrence_grad_define(build, &r, in, outputs);
}

// --- in a trace -------------------------------------------------------------------------

// A derivative or a batch of a definition, which a rule traces and applies. Its inputs are
// the given ones of the rule, followed by cotangents.
typedef tn_status define_fn(const tn_build *build, const struct recurrence *r,
                            tn_array *const *in, tn_array **outputs);
struct traced {
    const tn_rule *rule;
    define_fn *define;
    tn_array *const *cotangents; // of a vjp
    const uint64_t *wanted;
    const int32_t *axes; // of a batch, for the given inputs
};

static tn_status define_kept(const tn_build *build, const struct recurrence *r,
                             tn_array *const *in, tn_array **outputs)
{
    return recurrence_define(build, r, in, 1, outputs);
}

static tn_status recurrence_define_given(const tn_build *build, const struct traced *t,
                                         tn_array *const *inputs, tn_array **outputs)
{
    tn_array *in[GRAD_INPUTS] = {NULL};
    for (uint32_t i = 0, next = 0; i < t->rule->num_inputs; i++)
        in[i] = t->rule->inputs[i] ? inputs[next++] : NULL;
    const struct recurrence r =
        recurrence_of(t->rule->attrs, build->type(in[0]), build->type(in[1]));
    return t->define(build, &r, in, outputs);
}

// Traces `body` over `count` arrays, and applies the graph.
static tn_status in_a_trace(const tn_build *build, tn_build_body body, struct traced *t,
                            tn_array *const *inputs, uint64_t count, tn_array **outputs,
                            uint64_t num_outputs)
{
    tn_type types[GRAD_INPUTS + RECURRENCE_OUTPUTS];
    for (uint64_t i = 0; i < count; i++)
        types[i] = *build->type(inputs[i]);
    const tn_graph *graph = build->trace(build, body, t, types, count, num_outputs, NULL);
    return graph ? build->call(build, graph, inputs, count, outputs, num_outputs)
                 : TN_ERR_ARGUMENT;
}

static uint64_t given_inputs(const tn_rule *rule, tn_array **given)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        if (rule->inputs[i])
            given[count++] = rule->inputs[i];
    return count;
}

// --- derivatives ------------------------------------------------------------------------

static tn_status vjp_body(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    const struct traced *t = user;
    tn_array *out[RECURRENCE_OUTPUTS], *of[RECURRENCE_OUTPUTS], *wrt[RECURRENCE_INPUTS];
    uint64_t count = 0, num_wrt = 0;
    tn_status status = recurrence_define_given(build, t, inputs, out);
    for (uint32_t i = 0; i < t->rule->num_outputs; i++)
        if (t->cotangents[i])
            of[count++] = out[i];
    for (uint32_t i = 0, next = 0; i < t->rule->num_inputs; i++) {
        if (t->rule->inputs[i] && wants(t->wanted, i))
            wrt[num_wrt++] = inputs[next];
        next += t->rule->inputs[i] != NULL;
    }
    (void)num_outputs;
    return status ? status
                  : build->vjp(build, of, inputs + num_inputs - count, count, wrt, num_wrt,
                               outputs);
}

// Derives the definition itself, where outputs for derivatives have gradients: in second
// derivatives.
static tn_status vjp_of_definition(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients)
{
    struct traced t = {rule, define_kept, cotangents, wanted, NULL};
    tn_array *given[RECURRENCE_INPUTS + RECURRENCE_OUTPUTS], *found[RECURRENCE_INPUTS];
    uint64_t count = given_inputs(rule, given), num_wrt = 0;
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        if (cotangents[i])
            given[count++] = cotangents[i];
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        num_wrt += rule->inputs[i] && wants(wanted, i);
    tn_status status = in_a_trace(build, vjp_body, &t, given, count, found, num_wrt);
    for (uint32_t i = 0, next = 0; i < rule->num_inputs && status == TN_OK; i++)
        if (rule->inputs[i] && wants(wanted, i))
            gradients[i] = found[next++];
    return status;
}

// Merges positions and rows to one axis.
static tn_array *merged_rows(const tn_build *build, const struct recurrence *r, tn_array *x,
                             int64_t last)
{
    const int64_t extent[2] = {r->length * r->rows, last};
    return with_shape(build, "base.reshape/1", x, 2, extent);
}

// The gradients of w and b: a product and a sum over all positions at once. `last`: for a
// GRU, the gradient of w's part of n; `slopes` has those of the other gates.
static void weight_gradients(const tn_build *build, const struct recurrence *r,
                             tn_array *slopes, tn_array *last, tn_array *out, tn_array *h,
                             const uint64_t *wanted, tn_array **gradients)
{
    const tn_attr_list first = tn_attrs("axis", TN_INTS(0));
    slopes = merged_rows(build, r, slopes, r->gates * r->units);
    last = last ? merged_rows(build, r, last, r->units) : NULL;
    if (wants(wanted, RECURRENCE_B)) {
        tn_array *sum = build->op(build, "base.sum/1", TN_IN(slopes), first);
        if (last)
            sum = recurrence_joined(
                build, TN_IN(sum, build->op(build, "base.sum/1", TN_IN(last), first)), 0);
        gradients[RECURRENCE_B] = sum;
    }
    if (last && wants(wanted, RECURRENCE_W))
        slopes = recurrence_joined(
            build, TN_IN(part_of_axis(build, slopes, 1, 0, 1, 2 * r->units), last), 1);
    if (wants(wanted, RECURRENCE_W)) {
        tn_array *before =
            merged_rows(build, r, recurrence_before(build, r, out, h), r->units);
        gradients[RECURRENCE_W] =
            build->op(build, "base.matmul/1",
                      TN_IN(tn_move_axis(build, slopes, 0, 1), before), TN_NO_ATTRS);
    }
}

TN_VJP(recurrence_vjp)
{
    tn_array *in[RECURRENCE_INPUTS], *grad[GRAD_INPUTS] = {NULL}, *out[3] = {NULL};
    struct recurrence r = recurrence_read_rule(build, rule, RECURRENCE_INPUTS, in);
    int is_lstm = r.kind == TN_RECURRENCE_LSTM, is_gru = r.kind == TN_RECURRENCE_GRU;
    uint32_t kept = is_lstm ? 2 : 1;
    for (uint32_t i = kept; i < rule->num_outputs; i++)
        if (cotangents[i])
            return vjp_of_definition(build, rule, cotangents, wanted, gradients);
    const int64_t shape[3] = {r.length, r.rows, r.units};
    grad[GRAD_GRADIENT] = cotangents[0] ? cotangents[0] : zeros(build, r.dtype, 3, shape);
    grad[GRAD_W] = in[RECURRENCE_W];
    grad[GRAD_OUT] = rule->outputs[0];
    grad[GRAD_H] = in[RECURRENCE_H];
    if (r.gates > 1) {
        grad[GRAD_CELLS] = rule->outputs[kept];
        grad[GRAD_GATES] = rule->outputs[kept + 1];
    }
    if (is_lstm) {
        grad[GRAD_C] = in[RECURRENCE_C];
        grad[GRAD_OF_C] = cotangents[1];
    }
    tn_status status =
        build->op_n(build, "nn.recurrence_grad/1", (const tn_array *const *)grad,
                    is_lstm && cotangents[1] ? 8
                    : is_lstm                ? 7
                    : is_gru                 ? 6
                                             : 4,
                    tn_attrs(ATTRS_OF((const tn_recurrence_attrs *)rule->attrs)), out,
                    r.gates > 1 ? 3 : 2);
    if (status)
        return status;
    gradients[RECURRENCE_GIVEN] = out[0];
    gradients[RECURRENCE_H] = out[1];
    if (is_lstm)
        gradients[RECURRENCE_C] = out[2];
    weight_gradients(build, &r, out[0], is_gru ? out[2] : NULL, rule->outputs[0],
                     in[RECURRENCE_H], wanted, gradients);
    return built_wanted(wanted, gradients, rule->num_inputs);
}

// --- batches ----------------------------------------------------------------------------

static tn_status slice_body(const tn_build *build, tn_array *const *inputs,
                            uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                            void *user)
{
    (void)num_inputs, (void)num_outputs;
    return recurrence_define_given(build, user, inputs, outputs);
}

static tn_status recurrence_batch_body(const tn_build *build, tn_array *const *inputs,
                                       uint64_t num_inputs, tn_array **outputs,
                                       uint64_t num_outputs, void *user)
{
    const struct traced *t = user;
    return build->vmap(build, slice_body, user, inputs, t->axes, num_inputs, outputs, NULL,
                       num_outputs);
}

static tn_status batch_definition(const tn_build *build, const tn_rule *rule,
                                  const int32_t *axes, define_fn *define,
                                  tn_array **outputs)
{
    tn_array *given[GRAD_INPUTS];
    int32_t of_given[GRAD_INPUTS];
    uint64_t count = given_inputs(rule, given);
    struct traced t = {rule, define, NULL, NULL, of_given};
    for (uint32_t i = 0, next = 0; i < rule->num_inputs; i++)
        if (rule->inputs[i])
            of_given[next++] = axes[i];
    return in_a_trace(build, recurrence_batch_body, &t, given, count, outputs,
                      rule->num_outputs);
}

// Merges an input's batch axis into its rows, in front; w and b have no batch.
static tn_array *with_batch(const tn_build *build, tn_array *x, int32_t axis, int64_t size)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type)
        return NULL;
    int32_t rank = type->rank + (axis < 0);
    x = tn_batch_whole(build, x, axis, size);
    x = rank == 4 ? tn_move_axis(build, x, 0, 1) : x;
    tn_ints shape = tn_extents(build, x);
    if (shape.count != (uint32_t)rank)
        return NULL;
    int64_t extent[3] = {shape.value[0], shape.value[1] * shape.value[2], shape.value[3]};
    int64_t state[2] = {shape.value[0] * shape.value[1], shape.value[2]};
    return rank == 4 ? with_shape(build, "base.reshape/1", x, 3, extent)
                     : with_shape(build, "base.reshape/1", x, 2, state);
}

// Maps a batch as further rows: slices that share w and b are one application.
static tn_status batch_rows(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, const char *primitive, define_fn *define,
                            tn_array **outputs, int32_t *out_axes)
{
    const uint32_t b = define == define_kept ? RECURRENCE_B : GRAD_INPUTS;
    tn_array *in[GRAD_INPUTS] = {NULL}, *out[RECURRENCE_OUTPUTS];
    if (axes[1] >= 0 || (b < rule->num_inputs && rule->inputs[b] && axes[b] >= 0))
        return batch_definition(build, rule, axes, define, outputs);
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        in[i] = i == 1 || i == b ? rule->inputs[i]
                                 : with_batch(build, rule->inputs[i], axes[i], size);
    tn_status status =
        build->op_n(build, primitive, (const tn_array *const *)in, rule->num_inputs,
                    tn_attrs(ATTRS_OF((const tn_recurrence_attrs *)rule->attrs)), out,
                    rule->num_outputs);
    for (uint32_t i = 0; i < rule->num_outputs && status == TN_OK; i++) {
        const tn_type *type = build->type(rule->outputs[i]);
        int64_t extent[4] = {size, type->extent[0], type->extent[1], type->extent[2]};
        if (type->rank == 3) {
            extent[0] = type->extent[0];
            extent[1] = size;
        }
        extent[type->rank - 1] = type->extent[type->rank - 2];
        extent[type->rank] = type->extent[type->rank - 1];
        outputs[i] = with_shape(build, "base.reshape/1", out[i], type->rank + 1, extent);
        out_axes[i] = type->rank - 2;
        status = built(outputs[i]);
    }
    return status;
}

TN_VMAP(recurrence_vmap)
{
    return batch_rows(build, rule, axes, size, "nn.recurrence/1", define_kept, outputs,
                      out_axes);
}

TN_VMAP(recurrence_grad_vmap)
{
    return batch_rows(build, rule, axes, size, "nn.recurrence_grad/1",
                      recurrence_grad_define, outputs, out_axes);
}

const tn_primitive nn_recurrence = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.recurrence/1",
    .doc = "What lstm, gru and rnn are made of: gates of what is given and of what the "
           "position before gives.",
    TN_INPUTS(recurrence_inputs),
    TN_OUTPUTS(recurrence_outputs),
    .attrs = TN_ATTR_TABLE(tn_recurrence_attrs, recurrence_fields),
    .infer = recurrence_infer,
    .decompose = recurrence_decompose,
    .vjp = recurrence_vjp,
    .vmap = recurrence_vmap,
    .count_outputs = count_recurrence,
};

const tn_primitive nn_recurrence_steps = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.recurrence_steps/1",
    .doc = "What recurrence becomes on a device.",
    TN_INPUTS(recurrence_inputs),
    TN_OUTPUTS(recurrence_outputs),
    .attrs = TN_ATTR_TABLE(tn_recurrence_attrs, steps_fields),
    .infer = recurrence_infer,
    .decompose = recurrence_steps_decompose,
    .count_outputs = count_steps,
};

const tn_primitive nn_recurrence_grad = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.recurrence_grad/1",
    .doc = "Derivatives of recurrence in what is given, and before the first position.",
    TN_INPUTS(grad_inputs),
    TN_OUTPUTS(grad_outputs),
    .attrs = TN_ATTR_TABLE(tn_recurrence_attrs, recurrence_fields),
    .infer = recurrence_grad_infer,
    .decompose = recurrence_grad_decompose,
    .vmap = recurrence_grad_vmap,
    .count_outputs = count_grad,
};
