// SPDX-License-Identifier: MIT
// Checks of graphs, lists of operands, and graphs made of graphs: see control.h.
#include "control.h"
#include <stdio.h>

// --- types ------------------------------------------------------------------------------

const char *type_text(const tn_type *type, char buffer[TYPE_TEXT])
{
    char shape[SHAPE_TEXT] = "";
    if (type->rank > 0)
        shape_text(type->rank, type->extent, shape);
    snprintf(buffer, TYPE_TEXT, "%s%s", dtype_text(type->dtype), shape);
    return buffer;
}

int same_type(const tn_type *a, const tn_type *b)
{
    int same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->extent[i] == b->extent[i];
    return same;
}

tn_status check_graph(const tn_host *host, const char *name, const tn_graph *graph,
                      const char *what, const tn_type *types, uint32_t count)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (!graph)
        return host->fail(host, TN_ERR_ARGUMENT, "%s is not given, expected a graph", name);
    if (graph->num_inputs > count)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%s has %u inputs, but there are %u arrays for it", name,
                          graph->num_inputs, count);
    for (uint32_t i = 0; i < graph->num_inputs; i++)
        if (!same_type(&graph->inputs[i], &types[i]))
            return host->fail(host, TN_ERR_ARGUMENT, "%s takes %s as input %u, %s %u is %s",
                              name, type_text(&graph->inputs[i], expected), i, what, i,
                              type_text(&types[i], got));
    return TN_OK;
}

tn_status check_condition(const tn_host *host, const char *name, const tn_graph *graph)
{
    char text[TYPE_TEXT];
    if (graph->num_outputs != 1)
        return host->fail(host, TN_ERR_ARGUMENT, "%s has %u outputs, expected one bool",
                          name, graph->num_outputs);
    if (graph->outputs[0].dtype != TN_BOOL || graph->outputs[0].rank != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "%s gives %s, expected one bool", name,
                          type_text(&graph->outputs[0], text));
    return TN_OK;
}

tn_status check_carried(const tn_host *host, const tn_graph *body, const tn_type *types,
                        uint32_t count)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    for (uint32_t i = 0; i < count; i++)
        if (!same_type(&body->outputs[i], &types[i]))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "output %u of the body is %s, expected %s as carried value "
                              "%u: a loop keeps the types of what it carries",
                              i, type_text(&body->outputs[i], got),
                              type_text(&types[i], expected), i);
    return TN_OK;
}

tn_status check_room(const tn_build *build, uint32_t num_inputs)
{
    if (num_inputs <= MOST_INPUTS)
        return TN_OK;
    return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                             "a derivative or a batch of %u inputs, expected at most %d",
                             num_inputs, MOST_INPUTS);
}

// --- operands ---------------------------------------------------------------------------

tn_status args_init(struct control_args *args, const tn_build *build, uint64_t room)
{
    const tn_host *host = build->host;
    *args = (struct control_args){.build = build};
    tn_status status = check_room(build, (uint32_t)(room > UINT32_MAX ? UINT32_MAX : room));
    if (status)
        return status;
    args->at = host->alloc(host, (room + 1) * sizeof(*args->at), 0);
    args->types = host->alloc(host, (room + 1) * sizeof(*args->types), 0);
    return args->at && args->types ? TN_OK : TN_ERR_MEMORY;
}

tn_status args_init_rule(struct control_args *args, const tn_build *build,
                         const tn_rule *rule, uint64_t room)
{
    const tn_host *host = build->host;
    uint64_t count = (uint64_t)rule->num_inputs + 1;
    tn_status status = args_init(args, build, room);
    if (status)
        return status;
    args->takes_part = host->alloc(host, count, 0);
    args->positions = host->alloc(host, count * sizeof(*args->positions), 0);
    return args->takes_part && args->positions ? TN_OK : TN_ERR_MEMORY;
}

void args_finish(struct control_args *args)
{
    const tn_host *host = args->build->host;
    host->free(host, args->at);
    host->free(host, args->types);
    host->free(host, args->takes_part);
    host->free(host, args->positions);
}

void args_add(struct control_args *args, tn_array *array)
{
    const tn_type *type = args->build->type(array);
    args->types[args->count] = type ? *type : (tn_type){0};
    args->at[args->count++] = array;
}

void args_add_slices(struct control_args *args, tn_array *array)
{
    args_add(args, array);
    tn_type *type = &args->types[args->count - 1];
    for (int32_t i = 1; i < type->rank; i++)
        type->extent[i - 1] = type->extent[i];
    if (type->rank > 0)
        type->extent[--type->rank] = 0;
}

const tn_graph *args_trace(const struct control_args *args, tn_build_body body, void *user,
                           uint64_t num_outputs)
{
    return args->build->trace(args->build, body, user, args->types, args->count,
                              num_outputs, NULL);
}

tn_status args_apply(const struct control_args *args, const char *primitive,
                     tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs)
{
    return args->build->op_n(args->build, primitive, (const tn_array *const *)args->at,
                             args->count, attrs, outputs, num_outputs);
}

// --- tangents ---------------------------------------------------------------------------

// `room` has space for three lists of the graph's inputs.
static tn_status tangents_in(const tn_build *build, const struct tangents *t,
                             tn_array *const *inputs, tn_array **room, tn_array **outputs)
{
    const tn_graph *g = t->graph;
    tn_array **values = room, **wrt = values + g->num_inputs, **given = wrt + g->num_inputs;
    tn_array *results[TN_MAX_OUTPUTS], *pushed[TN_MAX_OUTPUTS], *floats[TN_MAX_OUTPUTS];
    uint32_t num_wrt = 0, num_floats = 0;
    for (uint32_t i = 0; i < g->num_inputs; i++) {
        values[i] = inputs[t->in[i].value];
        if (t->in[i].other < 0)
            continue;
        wrt[num_wrt] = values[i];
        given[num_wrt++] = inputs[t->in[i].other];
    }
    tn_status status =
        build->call(build, g, values, g->num_inputs, results, g->num_outputs);
    for (uint32_t i = 0; i < g->num_outputs && !status; i++)
        if (t->out[i].other >= 0)
            floats[num_floats++] = results[i];
    if (!status)
        status = build->jvp(build, floats, num_floats, wrt, given, num_wrt, pushed);
    for (uint32_t i = 0, k = 0; i < g->num_outputs && !status; i++) {
        outputs[t->out[i].value] = results[i];
        if (t->out[i].other >= 0)
            outputs[t->out[i].other] = pushed[k++];
    }
    return status;
}

tn_status build_tangents(const tn_build *build, const struct tangents *t,
                         tn_array *const *inputs, tn_array **outputs)
{
    const tn_host *host = build->host;
    tn_array **room =
        host->alloc(host, (3 * (uint64_t)t->graph->num_inputs + 1) * sizeof(*room), 0);
    tn_status status = room ? tangents_in(build, t, inputs, room, outputs) : TN_ERR_MEMORY;
    host->free(host, room);
    return status;
}

static tn_status tangents_body(const tn_build *build, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    return build_tangents(build, user, inputs, outputs);
}

const tn_graph *args_trace_tangents(const struct control_args *args,
                                    const struct tangents *t, uint64_t num_outputs)
{
    return args_trace(args, tangents_body, (void *)t, num_outputs);
}

// --- gradients --------------------------------------------------------------------------

uint32_t args_add_gradients(struct control_args *args, const tn_rule *rule, uint32_t first,
                            tn_array *const *cotangents, const uint64_t *wanted)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < rule->num_inputs; i++) {
        args_add(args, rule->inputs[i]);
        args->takes_part[i - first] = wants(wanted, i) != 0;
        count += args->takes_part[i - first];
    }
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        if (cotangents[i])
            args_add(args, cotangents[i]);
    return count;
}

void args_give_gradients(const struct control_args *args, const tn_rule *rule,
                         uint32_t first, tn_array *const *found, tn_array **gradients)
{
    for (uint32_t i = first, k = 0; i < rule->num_inputs; i++)
        if (args->takes_part[i - first])
            gradients[i] = found[k++];
}

tn_status build_gradients(const tn_build *build, const tn_graph *graph,
                          tn_array *const *inputs, uint32_t num_inputs,
                          tn_array *const *cotangents, const uint8_t *wanted,
                          tn_array **gradients)
{
    const tn_host *host = build->host;
    tn_array *outputs[TN_MAX_OUTPUTS], *given[TN_MAX_OUTPUTS], *used[TN_MAX_OUTPUTS];
    uint32_t num_used = 0, num_wrt = 0;
    tn_array **wrt = host->alloc(host, ((uint64_t)num_inputs + 1) * sizeof(*wrt), 0);
    if (!wrt)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs; i++)
        if (wanted[i])
            wrt[num_wrt++] = inputs[i];
    tn_status status =
        build->call(build, graph, inputs, num_inputs, outputs, graph->num_outputs);
    for (uint32_t i = 0; i < graph->num_outputs && !status; i++)
        if (cotangents[i]) {
            used[num_used] = outputs[i];
            given[num_used++] = cotangents[i];
        }
    if (!status)
        status = build->vjp(build, used, given, num_used, wrt, num_wrt, gradients);
    host->free(host, wrt);
    return status;
}

// --- batches ----------------------------------------------------------------------------

static tn_status call_graph(const tn_build *build, tn_array *const *inputs,
                            uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                            void *user)
{
    return build->call(build, user, inputs, num_inputs, outputs, num_outputs);
}

tn_status build_batch(const tn_build *build, const tn_graph *graph, tn_array *const *inputs,
                      const uint8_t *batched, int64_t size, tn_array **outputs)
{
    const tn_host *host = build->host;
    int any = 0;
    int32_t *axes = host->alloc(host, ((uint64_t)graph->num_inputs + 1) * sizeof(*axes), 0);
    if (!axes)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < graph->num_inputs; i++) {
        axes[i] = batched[i] ? 0 : -1;
        any |= batched[i];
    }
    tn_status status =
        any ? build->vmap(build, call_graph, (void *)graph, inputs, axes, graph->num_inputs,
                          outputs, NULL, graph->num_outputs)
            : build->call(build, graph, inputs, graph->num_inputs, outputs,
                          graph->num_outputs);
    host->free(host, axes);
    for (uint32_t i = 0; i < graph->num_outputs && !any && !status; i++)
        outputs[i] = tn_batch_whole(build, outputs[i], -1, size);
    return status;
}

// A graph for slices of inputs; batched[i]: input i has a batch.
struct base_control_batch {
    const tn_graph *graph;
    const uint8_t *batched;
    int64_t size;
};

static tn_status base_control_batch_body(const tn_build *build, tn_array *const *inputs,
                                         uint64_t num_inputs, tn_array **outputs,
                                         uint64_t num_outputs, void *user)
{
    const struct base_control_batch *b = user;
    (void)num_inputs, (void)num_outputs;
    return build_batch(build, b->graph, inputs, b->batched, b->size, outputs);
}

const tn_graph *args_trace_batch(const struct control_args *args, const tn_graph *graph,
                                 const uint8_t *batched, int64_t size, uint64_t num_outputs)
{
    struct base_control_batch batch = {graph, batched, size};
    return args_trace(args, base_control_batch_body, &batch, num_outputs);
}

tn_status choose_by_slice(const tn_build *build, tn_array *pred, tn_array *const *a,
                          tn_array *const *b, uint64_t count, tn_array **outputs)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        const tn_type *type = build->type(a[i]);
        tn_array *wide = type ? tn_batch_first(build, pred, 0, type->rank) : NULL;
        outputs[i] = build->op(build, "base.where/1", TN_IN(wide, a[i], b[i]), TN_NO_ATTRS);
        status = built(outputs[i]);
    }
    return status;
}
