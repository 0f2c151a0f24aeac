// SPDX-License-Identifier: MIT
// cond and checkpoint: primitives that apply one graph to their inputs.
#include "control.h"

// --- cond -------------------------------------------------------------------------------

static const tn_input_info cond_inputs[] = {
    {"pred", "one bool", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_BOOL)},
    {"x", "what the branches take", TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_output_info cond_outputs[] = {{"out", "what the branch gives", 0, 0}};
static const tn_attr_field cond_fields[] = {
    TN_REQUIRED_FIELD(tn_cond_attrs, then, TN_ATTR_GRAPH, "the branch where pred holds"),
    TN_REQUIRED_FIELD(tn_cond_attrs, otherwise, TN_ATTR_GRAPH, "the other branch"),
};

static tn_status cond_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_cond_attrs *attrs = infer->attrs;
    if (!attrs->then)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "then is not given, expected a graph");
    *out_count = attrs->then->num_outputs;
    return TN_OK;
}

static tn_status cond_infer(const tn_infer *infer, tn_type *types)
{
    const tn_cond_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    char a[TYPE_TEXT], b[TYPE_TEXT];
    const tn_type *x = infer->types + 1;
    if (infer->types[0].rank != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "pred is %s, expected one bool",
                          type_text(&infer->types[0], a));
    tn_status status =
        check_graph(host, "then", attrs->then, "x", x, infer->num_inputs - 1);
    if (!status)
        status =
            check_graph(host, "otherwise", attrs->otherwise, "x", x, infer->num_inputs - 1);
    if (status)
        return status;
    if (attrs->then->num_outputs != attrs->otherwise->num_outputs)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "then has %u outputs and otherwise %u, expected as many",
                          attrs->then->num_outputs, attrs->otherwise->num_outputs);
    for (uint32_t i = 0; i < infer->num_outputs; i++) {
        types[i] = attrs->then->outputs[i];
        if (!same_type(&types[i], &attrs->otherwise->outputs[i]))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "output %u is %s by then and %s by otherwise, expected one "
                              "type",
                              i, type_text(&types[i], a),
                              type_text(&attrs->otherwise->outputs[i], b));
    }
    return TN_OK;
}

static tn_status cond_run(const tn_run *run)
{
    const tn_cond_attrs *attrs = run->attrs;
    unsigned char pred = 0;
    tn_status status = run->read(run, run->inputs[0], &pred, sizeof(pred));
    if (status)
        return status;
    return run->call(run, pred ? attrs->then : attrs->otherwise, run->inputs + 1,
                     run->num_inputs - 1, 0, run->outputs);
}

// --- derivatives ------------------------------------------------------------------------

// Applies cond to branches that the caller built; NULL: building one failed.
static tn_status cond_apply(const struct control_args *args, const tn_graph *then,
                            const tn_graph *otherwise, tn_array **outputs, uint32_t count)
{
    if (!then || !otherwise)
        return TN_ERR_ARGUMENT;
    return args_apply(args, "base.cond/1", tn_attrs("then", then, "otherwise", otherwise),
                      outputs, count);
}

// A branch, and the inputs and outputs that take part. The graph of its gradients has the
// branch's inputs, then the given cotangents.
struct branch {
    const tn_graph *graph;
    uint32_t num_inputs;
    const uint8_t *takes_part;   // by input: whether its gradient is wanted
    tn_array *const *cotangents; // by output, of the enclosing scope; NULL: not given
};

static tn_status gradient_body(const tn_build *build, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    const struct branch *b = user;
    tn_array *cotangents[TN_MAX_OUTPUTS] = {NULL};
    uint32_t next = b->num_inputs;
    (void)num_inputs, (void)num_outputs;
    for (uint32_t i = 0; i < b->graph->num_outputs; i++)
        cotangents[i] = b->cotangents[i] ? inputs[next++] : NULL;
    return build_gradients(build, b->graph, inputs, b->num_inputs, cotangents,
                           b->takes_part, outputs);
}

// A graph of gradients is one application, so its outputs are bounded.
static tn_status check_gradients(const tn_build *build, uint32_t count)
{
    if (count <= TN_MAX_OUTPUTS)
        return TN_OK;
    return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                             "gradients of %u inputs, expected at most %d", count,
                             TN_MAX_OUTPUTS);
}

static tn_status cond_gradients(const tn_rule *rule, tn_array *const *cotangents,
                                const uint64_t *wanted, struct control_args *args,
                                tn_array **gradients)
{
    const tn_cond_attrs *attrs = rule->attrs;
    tn_array *found[TN_MAX_OUTPUTS] = {NULL};
    args_add(args, rule->inputs[0]);
    uint32_t count = args_add_gradients(args, rule, 1, cotangents, wanted);
    tn_status status = check_gradients(args->build, count);
    if (status || count == 0)
        return status;
    const struct control_args inner = args_behind(args);
    struct branch branch = {attrs->then, rule->num_inputs - 1, args->takes_part,
                            cotangents};
    const tn_graph *then = args_trace(&inner, gradient_body, &branch, count);
    branch.graph = attrs->otherwise;
    const tn_graph *otherwise = args_trace(&inner, gradient_body, &branch, count);
    status = cond_apply(args, then, otherwise, found, count);
    args_give_gradients(args, rule, 1, found, gradients);
    return status;
}

static tn_status cond_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    struct control_args args;
    tn_status status =
        args_init_rule(&args, build, rule, (uint64_t)rule->num_inputs + rule->num_outputs);
    if (!status)
        status = cond_gradients(rule, cotangents, wanted, &args, gradients);
    args_finish(&args);
    return status;
}

// The branches take x and the given tangents; they give their outputs, then the tangents of
// float outputs.
static tn_status cond_tangents(const tn_rule *rule, tn_array *const *tangents,
                               struct control_args *args, tn_array **out_tangents)
{
    const tn_cond_attrs *attrs = rule->attrs;
    tn_array *outputs[2 * TN_MAX_OUTPUTS];
    struct control_position *in = args->positions, out[TN_MAX_OUTPUTS];
    uint32_t count = rule->num_outputs;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        args_add(args, rule->inputs[i]);
    for (uint32_t i = 0; i + 1 < rule->num_inputs; i++) {
        in[i] = (struct control_position){(int32_t)i,
                                          tangents[i + 1] ? (int32_t)args->count - 1 : -1};
        if (tangents[i + 1])
            args_add(args, tangents[i + 1]);
    }
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out[i] = (struct control_position){
            (int32_t)i, tn_is_float(attrs->then->outputs[i].dtype) ? (int32_t)count++ : -1};
    const struct control_args inner = args_behind(args);
    struct tangents t = {attrs->then, in, out};
    const tn_graph *then = args_trace_tangents(&inner, &t, count);
    t.graph = attrs->otherwise;
    const tn_graph *otherwise = args_trace_tangents(&inner, &t, count);
    tn_status status = cond_apply(args, then, otherwise, outputs, count);
    for (uint32_t i = 0; i < rule->num_outputs && !status; i++)
        if (out[i].other >= 0)
            out_tangents[i] = outputs[out[i].other];
    return status;
}

static tn_status cond_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, 2 * (uint64_t)rule->num_inputs);
    if (!status)
        status = cond_tangents(rule, tangents, &args, out_tangents);
    args_finish(&args);
    return status;
}

// --- batches ----------------------------------------------------------------------------

// Adds the inputs from `first` on, each with its batch axis in front.
static void cond_batch_args(const tn_rule *rule, uint32_t first, const int32_t *axes,
                            struct control_args *args)
{
    for (uint32_t i = first; i < rule->num_inputs; i++) {
        args->takes_part[i - first] = axes[i] >= 0;
        args_add(args, axes[i] < 0
                           ? rule->inputs[i]
                           : tn_move_axis(args->build, rule->inputs[i], axes[i], 0));
    }
}

// One condition for each slice: both branches run.
static tn_status choose_slices(const tn_build *build, const tn_rule *rule, int32_t axis,
                               const struct control_args *args, const tn_graph *then,
                               const tn_graph *otherwise, tn_array **outputs)
{
    tn_array *a[TN_MAX_OUTPUTS], *b[TN_MAX_OUTPUTS];
    uint32_t n = rule->num_outputs;
    tn_array *pred = tn_move_axis(build, rule->inputs[0], axis, 0);
    tn_status status = build->call(build, then, args->at, args->count, a, n);
    if (!status)
        status = build->call(build, otherwise, args->at, args->count, b, n);
    return status ? status : choose_by_slice(build, pred, a, b, n, outputs);
}

static tn_status cond_batch(const tn_rule *rule, const int32_t *axes, int64_t size,
                            struct control_args *args, tn_array **outputs)
{
    const tn_cond_attrs *attrs = rule->attrs;
    args_add(args, rule->inputs[0]);
    cond_batch_args(rule, 1, axes, args);
    const struct control_args inner = args_behind(args);
    const uint8_t *batched = args->takes_part;
    uint32_t count = rule->num_outputs;
    const tn_graph *then = args_trace_batch(&inner, attrs->then, batched, size, count);
    const tn_graph *otherwise =
        args_trace_batch(&inner, attrs->otherwise, batched, size, count);
    if (axes[0] >= 0 && then && otherwise)
        return choose_slices(args->build, rule, axes[0], &inner, then, otherwise, outputs);
    return cond_apply(args, then, otherwise, outputs, count);
}

tn_status cond_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, rule->num_inputs);
    if (!status)
        status = cond_batch(rule, axes, size, &args, outputs);
    batch_in_front(rule, out_axes);
    args_finish(&args);
    return status;
}

const tn_primitive base_cond = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.cond/1",
    .role = TN_ROLE_COND,
    .doc = "What one of two graphs gives for x: that which pred chooses, and only it runs.",
    TN_INPUTS(cond_inputs),
    TN_OUTPUTS(cond_outputs),
    .attrs = TN_ATTR_TABLE(tn_cond_attrs, cond_fields),
    .infer = cond_infer,
    .vjp = cond_vjp,
    .jvp = cond_jvp,
    .vmap = cond_vmap,
    .count_outputs = cond_count,
    .run = cond_run,
};

// --- checkpoint -------------------------------------------------------------------------

static const tn_input_info checkpoint_inputs[] = {
    {"x", "what the body takes", TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC, TN_ALL_DTYPES},
};
static const tn_attr_field checkpoint_fields[] = {
    TN_REQUIRED_FIELD(tn_checkpoint_attrs, body, TN_ATTR_GRAPH, "what is computed"),
};

static tn_status checkpoint_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_checkpoint_attrs *attrs = infer->attrs;
    tn_status status =
        check_graph(infer->host, "body", attrs->body, "x", infer->types, infer->num_inputs);
    if (!status)
        *out_count = attrs->body->num_outputs;
    return status;
}

static tn_status checkpoint_infer(const tn_infer *infer, tn_type *types)
{
    const tn_checkpoint_attrs *attrs = infer->attrs;
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        types[i] = attrs->body->outputs[i];
    return TN_OK;
}

static tn_status checkpoint_decompose(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs)
{
    const tn_checkpoint_attrs *attrs = rule->attrs;
    return build->call(build, attrs->body, rule->inputs, rule->num_inputs, outputs,
                       rule->num_outputs);
}

// The gradients are one application that computes the body again: it shares no node with
// the forward pass.
static tn_status checkpoint_gradients(const tn_rule *rule, tn_array *const *cotangents,
                                      const uint64_t *wanted, struct control_args *args,
                                      tn_array **gradients)
{
    const tn_checkpoint_attrs *attrs = rule->attrs;
    tn_array *found[TN_MAX_OUTPUTS] = {NULL};
    uint32_t count = args_add_gradients(args, rule, 0, cotangents, wanted);
    tn_status status = check_gradients(args->build, count);
    if (status || count == 0)
        return status;
    struct branch branch = {attrs->body, rule->num_inputs, args->takes_part, cotangents};
    const tn_graph *graph = args_trace(args, gradient_body, &branch, count);
    if (!graph)
        return TN_ERR_ARGUMENT;
    status = args_apply(args, "base.checkpoint/1", tn_attrs("body", graph), found, count);
    args_give_gradients(args, rule, 0, found, gradients);
    return status;
}

static tn_status checkpoint_vjp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *cotangents, const uint64_t *wanted,
                                tn_array **gradients)
{
    struct control_args args;
    tn_status status =
        args_init_rule(&args, build, rule, (uint64_t)rule->num_inputs + rule->num_outputs);
    if (!status)
        status = checkpoint_gradients(rule, cotangents, wanted, &args, gradients);
    args_finish(&args);
    return status;
}

tn_status checkpoint_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_checkpoint_attrs *attrs = rule->attrs;
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, rule->num_inputs);
    if (!status) {
        cond_batch_args(rule, 0, axes, &args);
        const tn_graph *graph =
            args_trace_batch(&args, attrs->body, args.takes_part, size, rule->num_outputs);
        status = graph ? args_apply(&args, "base.checkpoint/1", tn_attrs("body", graph),
                                    outputs, rule->num_outputs)
                       : TN_ERR_ARGUMENT;
    }
    batch_in_front(rule, out_axes);
    args_finish(&args);
    return status;
}

const tn_primitive base_checkpoint = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.checkpoint/1",
    .role = TN_ROLE_CHECKPOINT,
    .doc = "What a graph gives for x; its derivative computes the graph again instead of "
           "keeping what lies between.",
    TN_INPUTS(checkpoint_inputs),
    TN_OUTPUTS(cond_outputs),
    .attrs = TN_ATTR_TABLE(tn_checkpoint_attrs, checkpoint_fields),
    .infer = checkpoint_infer,
    .decompose = checkpoint_decompose,
    .vjp = checkpoint_vjp,
    .vmap = checkpoint_vmap,
    .count_outputs = checkpoint_count,
};
