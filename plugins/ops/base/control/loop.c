// SPDX-License-Identifier: MIT
// while_loop: applies a graph to carried values again and again.
#include "control.h"

static const tn_input_info loop_inputs[] = {
    {"x", "carried values, then constants", TN_INPUT_OPTIONAL | TN_INPUT_VARIADIC,
     TN_ALL_DTYPES},
};
static const tn_output_info loop_outputs[] = {{"carry", "the last carried values", 0, 0}};
static const tn_attr_field loop_fields[] = {
    TN_GRAPH_FIELD(tn_while_loop_attrs, cond, "whether to go on; not given: always"),
    TN_REQUIRED_FIELD(tn_while_loop_attrs, body, TN_ATTR_GRAPH, "new carried values"),
    TN_I64_FIELD(tn_while_loop_attrs, times, -1, "the most iterations; -1: any number"),
};

static tn_status loop_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_while_loop_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    tn_status status =
        check_graph(host, "body", attrs->body, "x", infer->types, infer->num_inputs);
    if (status)
        return status;
    if (attrs->body->num_outputs > infer->num_inputs)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "body has %u outputs, but there are %u values to carry",
                          attrs->body->num_outputs, infer->num_inputs);
    *out_count = attrs->body->num_outputs;
    return TN_OK;
}

static tn_status loop_infer(const tn_infer *infer, tn_type *types)
{
    const tn_while_loop_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    tn_status status = check_carried(host, attrs->body, infer->types, infer->num_outputs);
    if (!status && attrs->cond)
        status =
            check_graph(host, "cond", attrs->cond, "x", infer->types, infer->num_inputs);
    if (!status && attrs->cond)
        status = check_condition(host, "cond", attrs->cond);
    if (!status && attrs->times < -1)
        status =
            host->fail(host, TN_ERR_ARGUMENT,
                       "times is %" PRId64 ", expected at least 0, or -1", attrs->times);
    if (!status && !attrs->cond && attrs->times < 0)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "neither cond nor times is given: the loop would have no end");
    for (uint32_t i = 0; i < infer->num_outputs && !status; i++)
        types[i] = infer->types[i];
    return status;
}

// --- running ----------------------------------------------------------------------------

static tn_status goes_on(const tn_run *run, tn_elements *const *state, unsigned char *out)
{
    const tn_while_loop_attrs *attrs = run->attrs;
    tn_elements *flag = NULL;
    *out = 1;
    if (!attrs->cond)
        return TN_OK;
    tn_status status = run->call(run, attrs->cond, state, run->num_inputs, 0, &flag);
    if (!status)
        status = run->read(run, flag, out, 1);
    run->release(run, flag);
    return status;
}

// `state`: the carried values, each with a reference that the loop owns, then the
// constants. Each iteration donates the carried values, so that the next ones may use their
// memory. `next` has room for the carried values.
static tn_status loop_iterate(const tn_run *run, tn_elements **state, tn_elements **next)
{
    const tn_while_loop_attrs *attrs = run->attrs;
    uint32_t carried = run->num_outputs;
    for (int64_t done = 0; attrs->times < 0 || done < attrs->times; done++) {
        unsigned char again = 0;
        tn_status status = goes_on(run, state, &again);
        if (status || !again)
            return status;
        status = run->call(run, attrs->body, state, run->num_inputs, carried, next);
        for (uint32_t i = 0; i < carried; i++)
            state[i] = status ? NULL : next[i]; // the body took the old ones
        if (status)
            return status;
    }
    return TN_OK;
}

static tn_status loop_run(const tn_run *run)
{
    const tn_host *host = run->host;
    uint32_t carried = run->num_outputs;
    tn_elements **state =
        host->alloc(host, ((uint64_t)run->num_inputs + carried + 1) * sizeof(*state), 0);
    if (!state)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < run->num_inputs; i++)
        state[i] = i < carried ? run->retain(run, run->inputs[i]) : run->inputs[i];
    tn_status status = loop_iterate(run, state, state + run->num_inputs);
    for (uint32_t i = 0; i < carried; i++)
        run->outputs[i] = state[i]; // after a failure the core releases them
    host->free(host, state);
    return status;
}

// --- derivatives ------------------------------------------------------------------------

static tn_status first_inputs(const tn_build *build, tn_array *const *inputs,
                              uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                              void *user)
{
    (void)build, (void)num_inputs, (void)user;
    for (uint64_t i = 0; i < num_outputs; i++)
        outputs[i] = inputs[i];
    return TN_OK;
}

// One iteration where `cond` holds; else the values stay.
static tn_status masked_body(const tn_build *build, tn_array *const *inputs,
                             uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                             void *user)
{
    const tn_while_loop_attrs *attrs = user;
    tn_array *pred = NULL;
    struct control_args args;
    tn_status status = build->call(build, attrs->cond, inputs, num_inputs, &pred, 1);
    if (status)
        return status;
    status = args_init(&args, build, num_inputs + 1);
    if (!status) {
        args_add(&args, pred);
        for (uint64_t i = 0; i < num_inputs; i++)
            args_add(&args, inputs[i]);
        const struct control_args inner = args_behind(&args);
        const tn_graph *stay = args_trace(&inner, first_inputs, NULL, num_outputs);
        status = stay ? args_apply(&args, "base.cond/1",
                                   tn_attrs("then", attrs->body, "otherwise", stay),
                                   outputs, num_outputs)
                      : TN_ERR_ARGUMENT;
    }
    args_finish(&args);
    return status;
}

// The loop as a scan of `times` iterations, for its gradients.
struct unrolled {
    const tn_while_loop_attrs *attrs;
    uint32_t num_inputs, num_outputs;
    const uint8_t *wanted;       // by input: whether its gradient is wanted
    tn_array *const *cotangents; // by output, of the enclosing scope; NULL: not given
};

static tn_status scan_body(const tn_build *build, const struct unrolled *u,
                           tn_array *const *inputs, tn_array **results)
{
    const tn_while_loop_attrs *attrs = u->attrs;
    struct control_args args;
    tn_status status = args_init(&args, build, u->num_inputs);
    for (uint32_t i = 0; i < u->num_inputs && !status; i++)
        args_add(&args, inputs[i]);
    const tn_graph *body = attrs->body;
    if (!status && attrs->cond)
        body = args_trace(&args, masked_body, (void *)attrs, u->num_outputs);
    if (!status)
        status = body
                     ? args_apply(&args, "base.scan/1",
                                  tn_attrs("body", body, "carries", (int64_t)u->num_outputs,
                                           "length", attrs->times),
                                  results, 2 * (uint64_t)u->num_outputs)
                     : TN_ERR_ARGUMENT;
    args_finish(&args);
    return status;
}

// Inputs: x and the given cotangents; outputs: the wanted gradients.
static tn_status loop_gradients(const tn_build *build, tn_array *const *inputs,
                                uint64_t num_inputs, tn_array **outputs,
                                uint64_t num_outputs, void *user)
{
    const struct unrolled *u = user;
    tn_array *results[2 * TN_MAX_OUTPUTS], *used[TN_MAX_OUTPUTS], *wrt[TN_MAX_OUTPUTS];
    uint32_t num_used = 0, num_wrt = 0;
    tn_status status = scan_body(build, u, inputs, results);
    for (uint32_t i = 0; i < u->num_outputs && !status; i++)
        if (u->cotangents[i])
            used[num_used++] = results[i];
    for (uint32_t i = 0; i < u->num_inputs; i++)
        if (u->wanted[i])
            wrt[num_wrt++] = inputs[i];
    (void)num_inputs, (void)num_outputs;
    return status ? status
                  : build->vjp(build, used, inputs + u->num_inputs, num_used, wrt, num_wrt,
                               outputs);
}

static tn_status loop_unroll(const tn_rule *rule, tn_array *const *cotangents,
                             const uint64_t *wanted, struct control_args *args,
                             tn_array **gradients)
{
    const tn_build *build = args->build;
    struct unrolled u = {rule->attrs, rule->num_inputs, rule->num_outputs, args->takes_part,
                         cotangents};
    tn_array *found[TN_MAX_OUTPUTS] = {NULL};
    uint32_t count = args_add_gradients(args, rule, 0, cotangents, wanted);
    if (count > TN_MAX_OUTPUTS || 2 * rule->num_outputs > TN_MAX_OUTPUTS)
        return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                 "gradients of %u inputs by %u carried values, expected at "
                                 "most %d and %d",
                                 count, rule->num_outputs, TN_MAX_OUTPUTS,
                                 TN_MAX_OUTPUTS / 2);
    const tn_graph *graph = args_trace(args, loop_gradients, &u, count);
    tn_status status = graph
                           ? build->call(build, graph, args->at, args->count, found, count)
                           : TN_ERR_ARGUMENT;
    if (!status)
        args_give_gradients(args, rule, 0, found, gradients);
    return status;
}

static tn_status while_loop_vjp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *cotangents, const uint64_t *wanted,
                                tn_array **gradients)
{
    const tn_while_loop_attrs *attrs = rule->attrs;
    struct control_args args;
    if (attrs->times < 0)
        return build->host->fail(
            build->host, TN_ERR_UNSUPPORTED,
            "a loop without a bound has no reverse-mode derivative, as it "
            "would keep any number of values: give `times`, the most "
            "iterations, or use base.scan");
    tn_status status =
        args_init_rule(&args, build, rule, (uint64_t)rule->num_inputs + rule->num_outputs);
    if (!status)
        status = loop_unroll(rule, cotangents, wanted, &args, gradients);
    args_finish(&args);
    return status;
}

// --- tangents ---------------------------------------------------------------------------

// The operands of a loop with tangents: carried values, the tangents of its floats,
// constants, the given tangents of constants. `at` has the positions of each input and its
// tangent.
struct pushed {
    const tn_while_loop_attrs *attrs;
    const struct control_position *at;
};

static tn_status pushed_cond(const tn_build *build, tn_array *const *inputs,
                             uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                             void *user)
{
    const struct pushed *p = user;
    const tn_host *host = build->host;
    const tn_graph *cond = p->attrs->cond;
    tn_array **at = host->alloc(host, ((uint64_t)cond->num_inputs + 1) * sizeof(*at), 0);
    if (!at)
        return TN_ERR_MEMORY;
    (void)num_inputs;
    for (uint32_t i = 0; i < cond->num_inputs; i++)
        at[i] = inputs[p->at[i].value];
    tn_status status = build->call(build, cond, at, cond->num_inputs, outputs, num_outputs);
    host->free(host, at);
    return status;
}

// Adds inputs [from, end) and their tangents: the given ones of constants, and all of
// carried floats, as the body may give each of them one.
static void loop_push_args(const tn_rule *rule, tn_array *const *tangents,
                           struct control_args *args, uint32_t from, uint32_t end)
{
    const tn_build *build = args->build;
    struct control_position *at = args->positions;
    for (uint32_t i = from; i < end; i++) {
        at[i] = (struct control_position){(int32_t)args->count, -1};
        args_add(args, rule->inputs[i]);
    }
    for (uint32_t i = from; i < end; i++) {
        const tn_type *type = build->type(rule->inputs[i]);
        tn_array *tangent = tangents[i];
        if (!tangent && i < rule->num_outputs && type && tn_is_float(type->dtype))
            tangent = zeros_like(build, rule->inputs[i], type->dtype);
        if (!tangent)
            continue;
        at[i].other = (int32_t)args->count;
        args_add(args, tangent);
    }
}

static tn_status loop_push(const tn_rule *rule, tn_array *const *tangents,
                           struct control_args *args, tn_array **out_tangents)
{
    const tn_while_loop_attrs *attrs = rule->attrs;
    const struct control_position *at = args->positions;
    struct pushed p = {attrs, at};
    const struct tangents t = {attrs->body, at, at};
    tn_array *outputs[2 * TN_MAX_OUTPUTS];
    uint32_t count = rule->num_outputs;
    loop_push_args(rule, tangents, args, 0, rule->num_outputs);
    loop_push_args(rule, tangents, args, rule->num_outputs, rule->num_inputs);
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        count += at[i].other >= 0;
    const tn_graph *cond = NULL, *body = args_trace_tangents(args, &t, count);
    if (attrs->cond)
        cond = args_trace(args, pushed_cond, &p, 1);
    if (!body || (attrs->cond && !cond))
        return TN_ERR_ARGUMENT;
    tn_status status = args_apply(
        args, "base.while_loop/1",
        tn_attrs("cond", cond, "body", body, "times", attrs->times), outputs, count);
    for (uint32_t i = 0; i < rule->num_outputs && !status; i++)
        if (at[i].other >= 0)
            out_tangents[i] = outputs[at[i].other];
    return status;
}

static tn_status while_loop_jvp(const tn_build *build, const tn_rule *rule,
                                tn_array *const *tangents, tn_array **out_tangents)
{
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, 2 * (uint64_t)rule->num_inputs);
    if (!status)
        status = loop_push(rule, tangents, &args, out_tangents);
    args_finish(&args);
    return status;
}

// --- batches ----------------------------------------------------------------------------

struct loop_slices {
    const tn_while_loop_attrs *attrs;
    const uint8_t *batched; // by input; all carried values have the batch
    int64_t size;
};

// Whether each slice continues: bools of extent `size`.
static tn_array *loop_going(const tn_build *build, const struct loop_slices *s,
                            tn_array *const *inputs)
{
    tn_array *pred = NULL;
    tn_status status =
        build_batch(build, s->attrs->cond, inputs, s->batched, s->size, &pred);
    return status ? NULL : pred;
}

static tn_status any_cond(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    tn_array *pred = loop_going(build, user, inputs);
    tn_array *ones =
        build->op(build, "base.astype/1", TN_IN(pred), tn_attrs("dtype", (int64_t)TN_I64));
    tn_array *count = build->op(build, "base.sum/1", TN_IN(ones), TN_NO_ATTRS);
    (void)num_inputs, (void)num_outputs;
    outputs[0] = build->expr(build, "n -> n > 0", TN_IN(count), TN_NO_ATTRS);
    return built(outputs[0]);
}

// A slice whose loop is over keeps its values while others continue.
static tn_status slices_body(const tn_build *build, tn_array *const *inputs,
                             uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                             void *user)
{
    const struct loop_slices *s = user;
    (void)num_inputs;
    tn_status status =
        build_batch(build, s->attrs->body, inputs, s->batched, s->size, outputs);
    if (status || !s->attrs->cond)
        return status;
    return choose_by_slice(build, loop_going(build, s, inputs), outputs, inputs,
                           num_outputs, outputs);
}

tn_status while_loop_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                          int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_while_loop_attrs *attrs = rule->attrs;
    struct control_args args;
    tn_status status = args_init_rule(&args, build, rule, rule->num_inputs);
    for (uint32_t i = 0; i < rule->num_inputs && !status; i++) {
        args.takes_part[i] = i < rule->num_outputs || axes[i] >= 0;
        args_add(&args, args.takes_part[i]
                            ? tn_batch_whole(build, rule->inputs[i], axes[i], size)
                            : rule->inputs[i]);
    }
    if (!status) {
        struct loop_slices s = {attrs, args.takes_part, size};
        const tn_graph *cond = attrs->cond ? args_trace(&args, any_cond, &s, 1) : NULL;
        const tn_graph *body = args_trace(&args, slices_body, &s, rule->num_outputs);
        status =
            body && (cond || !attrs->cond)
                ? args_apply(&args, "base.while_loop/1",
                             tn_attrs("cond", cond, "body", body, "times", attrs->times),
                             outputs, rule->num_outputs)
                : TN_ERR_ARGUMENT;
    }
    batch_in_front(rule, out_axes);
    args_finish(&args);
    return status;
}

const tn_primitive base_while_loop = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.while_loop/1",
    .role = TN_ROLE_WHILE_LOOP,
    .doc = "Applies a graph to carried values again and again: as long as another graph "
           "says so, or a number of times.",
    TN_INPUTS(loop_inputs),
    TN_OUTPUTS(loop_outputs),
    .attrs = TN_ATTR_TABLE(tn_while_loop_attrs, loop_fields),
    .infer = loop_infer,
    .vjp = while_loop_vjp,
    .jvp = while_loop_jvp,
    .vmap = while_loop_vmap,
    .count_outputs = loop_count,
    .run = loop_run,
};
