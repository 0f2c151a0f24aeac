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

// A branch, and which of its inputs and outputs take part. The graph that is built has the
// branch's inputs, then the cotangents or tangents that are given.
struct branch {
    const tn_graph *graph;
    uint32_t num_inputs;
    const uint8_t *takes_part;   // by input: its gradient is wanted, or its tangent given
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

// Fills `args` with the inputs from `first` on and the cotangents, and `wanted`; counts the
// gradients.
static uint32_t gradient_args(const tn_rule *rule, uint32_t first,
                              tn_array *const *cotangents, const uint64_t *wanted,
                              struct args *args, uint8_t *takes_part)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < rule->num_inputs; i++) {
        args_add(args, rule->inputs[i]);
        takes_part[i - first] = wants(wanted, i) != 0;
        count += takes_part[i - first];
    }
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        if (cotangents[i])
            args_add(args, cotangents[i]);
    return count;
}

// Takes the gradients in the order of the inputs that want one.
static void give_gradients(uint32_t first, uint32_t num_inputs, const uint8_t *takes_part,
                           tn_array *const *found, tn_array **gradients)
{
    for (uint32_t i = first, k = 0; i < num_inputs; i++)
        if (takes_part[i - first])
            gradients[i] = found[k++];
}

// Gradients of a graph's inputs are outputs of one application.
static tn_status check_gradients(const tn_build *build, uint32_t count)
{
    if (count <= TN_MAX_OUTPUTS)
        return TN_OK;
    return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                             "gradients of %u inputs, expected at most %d", count,
                             TN_MAX_OUTPUTS);
}

static tn_status cond_gradients(const tn_rule *rule, tn_array *const *cotangents,
                                const uint64_t *wanted, struct args *args,
                                uint8_t *takes_part, tn_array **gradients)
{
    const tn_cond_attrs *attrs = rule->attrs;
    tn_array *found[TN_MAX_OUTPUTS] = {NULL};
    args_add(args, rule->inputs[0]);
    uint32_t count = gradient_args(rule, 1, cotangents, wanted, args, takes_part);
    tn_status status = check_gradients(args->build, count);
    if (status || count == 0)
        return status;
    struct args inner = {args->build, args->at + 1, args->types + 1, args->count - 1};
    struct branch branch = {attrs->then, rule->num_inputs - 1, takes_part, cotangents};
    const tn_graph *then = args_trace(&inner, gradient_body, &branch, count);
    branch.graph = attrs->otherwise;
    const tn_graph *otherwise = args_trace(&inner, gradient_body, &branch, count);
    if (!then || !otherwise)
        return TN_ERR_ARGUMENT;
    status = args_apply(args, "base.cond/1", tn_attrs("then", then, "otherwise", otherwise),
                        found, count);
    give_gradients(1, rule->num_inputs, takes_part, found, gradients);
    return status;
}

static tn_status cond_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    const tn_host *host = build->host;
    struct args args;
    uint8_t *takes_part = host->alloc(host, (uint64_t)rule->num_inputs + 1, 0);
    tn_status status =
        args_init(&args, build, (uint64_t)rule->num_inputs + rule->num_outputs);
    if (!status)
        status = takes_part ? cond_gradients(rule, cotangents, wanted, &args, takes_part,
                                             gradients)
                            : TN_ERR_MEMORY;
    args_finish(&args);
    host->free(host, takes_part);
    return status;
}

// Inputs x and the tangents that are given; outputs, then the tangents of float outputs.
static tn_status tangent_body(const tn_build *build, tn_array *const *inputs,
                              uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                              void *user)
{
    const struct branch *b = user;
    const tn_host *host = build->host;
    const tn_graph *g = b->graph;
    struct place out[TN_MAX_OUTPUTS];
    struct place *in = host->alloc(host, ((uint64_t)g->num_inputs + 1) * sizeof(*in), 0);
    int32_t next = (int32_t)b->num_inputs, tangent = (int32_t)g->num_outputs;
    (void)num_inputs, (void)num_outputs;
    if (!in)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < g->num_inputs; i++)
        in[i] = (struct place){(int32_t)i, b->takes_part[i] ? next++ : -1};
    for (uint32_t i = 0; i < g->num_outputs; i++)
        out[i] =
            (struct place){(int32_t)i, tn_is_float(g->outputs[i].dtype) ? tangent++ : -1};
    const struct tangents t = {g, in, out};
    tn_status status = build_tangents(build, &t, inputs, outputs);
    host->free(host, in);
    return status;
}

static tn_status cond_tangents(const tn_rule *rule, tn_array *const *tangents,
                               struct args *args, uint8_t *takes_part,
                               tn_array **out_tangents)
{
    const tn_cond_attrs *attrs = rule->attrs;
    tn_array *outputs[2 * TN_MAX_OUTPUTS];
    uint32_t count = rule->num_outputs;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        args_add(args, rule->inputs[i]);
    for (uint32_t i = 1; i < rule->num_inputs; i++)
        if ((takes_part[i - 1] = tangents[i] != NULL))
            args_add(args, tangents[i]);
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        count += tn_is_float(attrs->then->outputs[i].dtype) ? 1 : 0;
    struct args inner = {args->build, args->at + 1, args->types + 1, args->count - 1};
    struct branch branch = {attrs->then, rule->num_inputs - 1, takes_part, NULL};
    const tn_graph *then = args_trace(&inner, tangent_body, &branch, count);
    branch.graph = attrs->otherwise;
    const tn_graph *otherwise = args_trace(&inner, tangent_body, &branch, count);
    if (!then || !otherwise)
        return TN_ERR_ARGUMENT;
    tn_status status =
        args_apply(args, "base.cond/1", tn_attrs("then", then, "otherwise", otherwise),
                   outputs, count);
    for (uint32_t i = 0, k = rule->num_outputs; i < rule->num_outputs && !status; i++)
        if (tn_is_float(attrs->then->outputs[i].dtype))
            out_tangents[i] = outputs[k++];
    return status;
}

static tn_status cond_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_host *host = build->host;
    struct args args;
    uint8_t *takes_part = host->alloc(host, (uint64_t)rule->num_inputs + 1, 0);
    tn_status status = args_init(&args, build, 2 * (uint64_t)rule->num_inputs);
    if (!status)
        status = takes_part ? cond_tangents(rule, tangents, &args, takes_part, out_tangents)
                            : TN_ERR_MEMORY;
    args_finish(&args);
    host->free(host, takes_part);
    return status;
}

// --- batches ----------------------------------------------------------------------------

// A graph for slices of inputs, those with batched[i].
struct batch {
    const tn_graph *graph;
    const uint8_t *batched;
    int64_t size;
};

static tn_status batch_body(const tn_build *build, tn_array *const *inputs,
                            uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                            void *user)
{
    const struct batch *b = user;
    (void)num_inputs, (void)num_outputs;
    return build_batch(build, b->graph, inputs, b->batched, b->size, outputs);
}

// Adds the inputs from `first` on, each with its batch axis in front.
static void batch_args(const tn_rule *rule, uint32_t first, const int32_t *axes,
                       struct args *args, uint8_t *batched)
{
    for (uint32_t i = first; i < rule->num_inputs; i++) {
        batched[i - first] = axes[i] >= 0;
        args_add(args, axes[i] < 0
                           ? rule->inputs[i]
                           : tn_move_axis(args->build, rule->inputs[i], axes[i], 0));
    }
}

// One condition for each slice: both branches run.
static tn_status choose_slices(const tn_build *build, const tn_rule *rule, int32_t axis,
                               const struct args *args, const tn_graph *then,
                               const tn_graph *otherwise, tn_array **outputs)
{
    tn_array *a[TN_MAX_OUTPUTS], *b[TN_MAX_OUTPUTS];
    uint32_t n = rule->num_outputs;
    tn_array *pred = tn_move_axis(build, rule->inputs[0], axis, 0);
    tn_status status = build->call(build, then, args->at, args->count, a, n);
    if (!status)
        status = build->call(build, otherwise, args->at, args->count, b, n);
    for (uint32_t i = 0; i < n && !status; i++) {
        const tn_type *type = build->type(a[i]);
        tn_array *wide = type ? tn_batch_first(build, pred, 0, type->rank) : NULL;
        outputs[i] = build->op(build, "base.where/1", TN_IN(wide, a[i], b[i]), TN_NO_ATTRS);
        status = built(outputs[i]);
    }
    return status;
}

static tn_status cond_batch(const tn_rule *rule, const int32_t *axes, int64_t size,
                            struct args *args, uint8_t *batched, tn_array **outputs)
{
    const tn_build *build = args->build;
    const tn_cond_attrs *attrs = rule->attrs;
    args_add(args, rule->inputs[0]);
    batch_args(rule, 1, axes, args, batched);
    struct args inner = {build, args->at + 1, args->types + 1, args->count - 1};
    struct batch batch = {attrs->then, batched, size};
    const tn_graph *then = args_trace(&inner, batch_body, &batch, rule->num_outputs);
    batch.graph = attrs->otherwise;
    const tn_graph *otherwise = args_trace(&inner, batch_body, &batch, rule->num_outputs);
    if (!then || !otherwise)
        return TN_ERR_ARGUMENT;
    if (axes[0] >= 0)
        return choose_slices(build, rule, axes[0], &inner, then, otherwise, outputs);
    return args_apply(args, "base.cond/1", tn_attrs("then", then, "otherwise", otherwise),
                      outputs, rule->num_outputs);
}

tn_status cond_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_host *host = build->host;
    struct args args;
    uint8_t *batched = host->alloc(host, (uint64_t)rule->num_inputs + 1, 0);
    tn_status status = args_init(&args, build, rule->num_inputs);
    if (!status)
        status =
            batched ? cond_batch(rule, axes, size, &args, batched, outputs) : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
    args_finish(&args);
    host->free(host, batched);
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

// The gradients are one application, in which the body is computed again: it shares no node
// with the forward pass.
static tn_status checkpoint_gradients(const tn_rule *rule, tn_array *const *cotangents,
                                      const uint64_t *wanted, struct args *args,
                                      uint8_t *takes_part, tn_array **gradients)
{
    const tn_checkpoint_attrs *attrs = rule->attrs;
    tn_array *found[TN_MAX_OUTPUTS] = {NULL};
    uint32_t count = gradient_args(rule, 0, cotangents, wanted, args, takes_part);
    tn_status status = check_gradients(args->build, count);
    if (status || count == 0)
        return status;
    struct branch branch = {attrs->body, rule->num_inputs, takes_part, cotangents};
    const tn_graph *graph = args_trace(args, gradient_body, &branch, count);
    if (!graph)
        return TN_ERR_ARGUMENT;
    status = args_apply(args, "base.checkpoint/1", tn_attrs("body", graph), found, count);
    give_gradients(0, rule->num_inputs, takes_part, found, gradients);
    return status;
}

static tn_status checkpoint_vjp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *cotangents, const uint64_t *wanted,
                                tn_array **gradients)
{
    const tn_host *host = build->host;
    struct args args;
    uint8_t *takes_part = host->alloc(host, (uint64_t)rule->num_inputs + 1, 0);
    tn_status status =
        args_init(&args, build, (uint64_t)rule->num_inputs + rule->num_outputs);
    if (!status)
        status = takes_part ? checkpoint_gradients(rule, cotangents, wanted, &args,
                                                   takes_part, gradients)
                            : TN_ERR_MEMORY;
    args_finish(&args);
    host->free(host, takes_part);
    return status;
}

tn_status checkpoint_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_checkpoint_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    struct args args;
    uint8_t *batched = host->alloc(host, (uint64_t)rule->num_inputs + 1, 0);
    tn_status status = args_init(&args, build, rule->num_inputs);
    if (!status && batched) {
        batch_args(rule, 0, axes, &args, batched);
        struct batch batch = {attrs->body, batched, size};
        const tn_graph *graph = args_trace(&args, batch_body, &batch, rule->num_outputs);
        status = graph ? args_apply(&args, "base.checkpoint/1", tn_attrs("body", graph),
                                    outputs, rule->num_outputs)
                       : TN_ERR_ARGUMENT;
    }
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
    args_finish(&args);
    host->free(host, batched);
    return batched ? status : TN_ERR_MEMORY;
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
