// SPDX-License-Identifier: MIT
// An operator over a graph: applies it again and again until its result changes by less
// than a tolerance, in a norm that a text names. It is built from base.while_loop and runs
// on every device; forward-mode derivatives and batching follow from that.
#include <math.h>
#include <string.h>
#include <tenon/pack.h>

typedef struct fixpoint_attrs {
    const tn_graph *body;
    const char *norm;
    double tolerance;
} fixpoint_attrs;

static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(fixpoint_attrs, body, TN_ATTR_GRAPH, "gives a better x from x"),
    TN_STRING_FIELD(fixpoint_attrs, norm, "\"max\" (the default) or \"sum\""),
    TN_F64_FIELD(fixpoint_attrs, tolerance, 1e-6, "of the change in that norm"),
};

// The body's further inputs are what it used of the scope around it.
static const tn_input_info inputs[] = {
    {"x", "where to begin, then the body's constants", TN_INPUT_VARIADIC, 0},
};

static int same_type(const tn_type *a, const tn_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(a->extent[0])) == 0;
}

static tn_status infer(const tn_infer *infer, tn_type *types)
{
    const fixpoint_attrs *attrs = infer->attrs;
    const tn_graph *body = attrs->body;
    const tn_host *host = infer->host;
    if (body->num_inputs > infer->num_inputs || body->num_outputs != 1)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "body has %u inputs and %u outputs, expected at most %u and 1",
                          body->num_inputs, body->num_outputs, infer->num_inputs);
    if (!tn_is_float(infer->types[0].dtype) ||
        !same_type(&body->outputs[0], &infer->types[0]))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "body gives another type than x, or x is no float");
    if (attrs->norm && strcmp(attrs->norm, "max") != 0 && strcmp(attrs->norm, "sum") != 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "norm is \"%s\", expected \"max\" or \"sum\"", attrs->norm);
    types[0] = infer->types[0];
    return TN_OK;
}

// The loop carries x and the norm of its last change.
static tn_status moves(const tn_build *build, tn_array *const *in, uint64_t num_in,
                       tn_array **out, uint64_t num_out, void *user)
{
    const fixpoint_attrs *attrs = user;
    (void)num_in, (void)num_out;
    out[0] = build->expr(build, "change -> change > tolerance", TN_IN(in[1]),
                         tn_attrs("tolerance", attrs->tolerance));
    return TN_OK;
}

static tn_status improve(const tn_build *build, tn_array *const *in, uint64_t num_in,
                         tn_array **out, uint64_t num_out, void *user)
{
    const fixpoint_attrs *attrs = user;
    const char *norm =
        attrs->norm && strcmp(attrs->norm, "sum") == 0 ? "base.sum" : "base.max";
    tn_array *operands[64] = {in[0]}; // decompose gives no more
    (void)num_out;
    for (uint64_t i = 2; i < num_in; i++)
        operands[i - 1] = in[i];
    build->call(build, attrs->body, operands, num_in - 1, out, 1);
    tn_array *change =
        build->expr(build, "x, y -> abs(y - x)", TN_IN(in[0], out[0]), TN_NO_ATTRS);
    out[1] = build->op(build, norm, TN_IN(change), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const fixpoint_attrs *attrs = rule->attrs;
    const tn_array *operands[64];
    tn_array *results[2];
    tn_type types[64];
    uint32_t count = rule->num_inputs + 1;
    if (count > 64)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "the body has %u inputs, expected at most 62", count - 1);
    for (uint32_t i = 0; i < count; i++) {
        operands[i] =
            i == 1 ? build->scalar(build, build->type(rule->inputs[0])->dtype, INFINITY)
                   : rule->inputs[i > 1 ? i - 1 : 0];
        if (!operands[i])
            return TN_ERR_ARGUMENT;
        types[i] = *build->type(operands[i]);
    }
    const tn_graph *cond = build->trace(build, moves, (void *)attrs, types, count, 1, NULL);
    const tn_graph *body =
        build->trace(build, improve, (void *)attrs, types, count, 2, NULL);
    tn_status status = cond && body
                           ? build->op_n(build, "base.while_loop", operands, count,
                                         tn_attrs("cond", cond, "body", body), results, 2)
                           : TN_ERR_ARGUMENT;
    outputs[0] = status ? NULL : results[0];
    return status;
}

static const tn_primitive fixpoint = {
    .struct_size = sizeof(fixpoint),
    .id = "acme.fixpoint/1",
    .doc = "What a graph, applied to x again and again, comes to.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(fixpoint_attrs, fields),
    .infer = infer,
    .decompose = decompose,
};

TN_PACK("com.acme.fixpoint", "1.0.0", "Acme", TN_PRIMITIVES(&fixpoint));
