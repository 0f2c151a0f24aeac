// SPDX-License-Identifier: MIT
// Graphs as values: a body is traced in a scope of its own, which becomes the graph. Arrays
// of the scope around it become further inputs. A graph is interned by its structure, and
// nothing of it changes from then on, so that threads share it.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "graph.h"

// Seed of a graph's key, which no other attribute's key begins with.
#define GRAPH_KEY UINT64_C(0x6772617068000001)

// Arrays of the scope around a traced body, and the inputs that stand for them.
struct capture {
    tn_captures *list;
    struct map inputs; // array of the scope around it -> input
    tn_array **own;    // by number in `list`: the input
    uint32_t num_own, max_own;
    bool is_open;       // the body says how many outputs there are
    tn_array **outputs; // that tn_graph_outputs gave, in the trace's memory
    uint64_t num_outputs;
};

static void graph_destroy(struct interned_graph *head)
{
    struct graph *graph = (struct graph *)head;
    const struct graph_owned owned = graph->owned;
    mem_free(graph->nodes);
    tn_scope_close(graph->scope); // which has the graph's memory
    if (owned.release)
        owned.release(owned.user);
}

struct hash graph_key(const tn_graph *graph)
{
    const struct hash key = {graph->hash[0], graph->hash[1]};
    const void *owned = graph_of(graph)->owned.key;
    return owned ? hash_join(key, (struct hash){(uint64_t)(uintptr_t)owned, 0}) : key;
}

// --- captures ---------------------------------------------------------------------------

static tn_status capture_add(tn_scope *scope, tn_array *outer, tn_array *input)
{
    struct capture *c = scope->capture;
    struct hash key = {(uint64_t)(uintptr_t)outer, 0};
    tn_status status =
        mem_grow((void **)&c->own, &c->max_own, c->num_own + 1, sizeof(*c->own));
    if (status == TN_OK)
        status = map_put(&c->inputs, key, input);
    if (status == TN_OK)
        c->own[c->num_own++] = input;
    return status;
}

// Appends to the caller's list, whose memory is that of the scope around the trace.
static tn_status list_append(tn_scope *outer, tn_captures *list, tn_array *array)
{
    if (list->count == list->room) {
        uint64_t room = list->room ? list->room * 2 : 16;
        tn_array **more = arena_alloc(&outer->arena, room * sizeof(*more));
        if (!more || room > MAX_GIVEN)
            return TN_ERR_MEMORY;
        if (list->count > 0)
            memcpy(more, list->arrays, list->count * sizeof(*more));
        list->arrays = more;
        list->room = room;
    }
    list->arrays[list->count++] = array;
    return TN_OK;
}

static tn_array *input_for(tn_scope *scope, const tn_array *outer)
{
    tn_array *input = leaf_create(scope, NODE_INPUT, &outer->type);
    if (!input)
        return NULL;
    input->weak_kind = outer->weak_kind;
    input->name = outer->name ? arena_strdup(&scope->arena, outer->name) : NULL;
    return input;
}

tn_array *graph_capture(tn_scope *scope, const tn_array *array)
{
    struct capture *c = scope->capture;
    tn_array *outer = array ? scope_local(scope->outer, array) : NULL;
    if (!outer) {
        if (scope->outer->status != TN_OK)
            tn_scope_fail(scope, scope->outer->status, "%s", tn_scope_error(scope->outer));
        return NULL;
    }
    tn_array *input = map_get(&c->inputs, (struct hash){(uint64_t)(uintptr_t)outer, 0});
    if (input)
        return input;
    if (outer->node->kind == NODE_NUMBER)
        return number_create(scope, outer->type.dtype, outer->node->number,
                             outer->weak_kind);
    if (!c->list) {
        char text[TYPE_TEXT];
        tn_scope_fail(scope, TN_ERR_ARGUMENT,
                      "the body uses an array, %s, of the scope around it: give it as an "
                      "input, or give a list of captures",
                      type_print(&outer->type, text));
        return NULL;
    }
    if (!(input = input_for(scope, outer)))
        return NULL;
    tn_status status = capture_add(scope, outer, input);
    if (status == TN_OK)
        status = list_append(scope->outer, c->list, outer);
    return scope_take_failure(scope, status) == TN_OK ? input : NULL;
}

// Captures of earlier bodies come first, in their order.
static tn_status capture_earlier(tn_scope *trace)
{
    const tn_captures *list = trace->capture->list;
    for (uint64_t i = 0; list && i < list->count; i++) {
        tn_array *input = input_for(trace, list->arrays[i]);
        tn_status status =
            input ? capture_add(trace, list->arrays[i], input) : trace->status;
        if (status != TN_OK)
            return scope_take_failure(trace, status);
    }
    return TN_OK;
}

// --- tracing ----------------------------------------------------------------------------

tn_status body_call(tn_function_body body, void *user, tn_scope *scope,
                    tn_array *const *inputs, uint64_t num_inputs, tn_array **outputs,
                    uint64_t num_outputs)
{
    fail_clear();
    for (uint64_t i = 0; i < num_outputs; i++)
        outputs[i] = NULL;
    scope_take_failure(scope, body(scope, inputs, num_inputs, outputs, num_outputs, user));
    for (uint64_t i = 0; i < num_outputs && scope->status == TN_OK; i++) {
        if (!outputs[i])
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "the body left output %llu NULL",
                          (unsigned long long)i);
        else
            outputs[i] = scope_local(scope, outputs[i]);
    }
    return scope->status;
}

// Numbers the arrays, as struct graph says. Gives a hash of the structure.
struct numbering {
    struct hash hash;
    uint32_t epoch, num_ids;
};

static void traced_number_array(struct numbering *n, tn_array *array)
{
    array->mark = n->epoch;
    array->id = n->num_ids++;
}

static void number_leaf(struct numbering *n, tn_array *leaf)
{
    traced_number_array(n, leaf);
    n->hash = hash_u64(n->hash, (uint64_t)leaf->weak_kind << 32 | leaf->node->kind);
    n->hash =
        hash_u64(n->hash, (uint64_t)leaf->type.dtype << 32 | (uint32_t)leaf->type.rank);
    for (int32_t i = 0; i < leaf->type.rank; i++)
        n->hash = hash_u64(n->hash, (uint64_t)leaf->type.extent[i]);
    n->hash = hash_u64(n->hash, leaf->node->number);
}

static void number_use(struct numbering *n, tn_array *array)
{
    if (array && array->mark != n->epoch)
        number_leaf(n, array);
    n->hash = hash_u64(n->hash, array ? array->id : UINT64_MAX);
}

static void traced_number_graph(struct graph *graph)
{
    tn_graph *g = &graph->head.graph;
    struct numbering n = {.hash = hash_start(GRAPH_KEY), .epoch = ++graph->scope->epoch};
    n.hash = hash_u64(n.hash, (uint64_t)g->num_inputs << 32 | g->num_outputs);
    for (uint32_t i = 0; i < g->num_inputs; i++)
        number_leaf(&n, graph->inputs[i]);
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        struct node *node = graph->nodes[i];
        n.hash = hash_join(n.hash, node->hash);
        for (uint32_t k = 0; k < node->num_inputs; k++)
            number_use(&n, node->inputs[k]);
        for (uint32_t k = 0; k < node->num_outputs; k++)
            traced_number_array(&n, &node->outputs[k]);
    }
    for (uint32_t i = 0; i < g->num_outputs; i++)
        number_use(&n, graph->outputs[i]);
    graph->num_ids = n.num_ids;
    g->hash[0] = n.hash.lo;
    g->hash[1] = n.hash.hi;
}

static const tn_type *types_of(struct arena *arena, tn_array *const *arrays, uint32_t count)
{
    tn_type *types = arena_alloc(arena, (count + 1) * sizeof(*types));
    for (uint32_t i = 0; types && i < count; i++)
        types[i] = arrays[i]->type;
    return types;
}

// The graph of what was built from `inputs` to `outputs`; takes the scope, on success only.
static tn_status graph_create(tn_scope *trace, tn_array **inputs, uint32_t num_inputs,
                              tn_array **outputs, uint32_t num_outputs,
                              struct graph **out_graph)
{
    struct graph *graph = arena_alloc(&trace->arena, sizeof(*graph));
    if (!graph)
        return TN_ERR_MEMORY;
    *graph = (struct graph){
        .head = {.graph = {.struct_size = sizeof(tn_graph),
                           .inputs = types_of(&trace->arena, inputs, num_inputs),
                           .outputs = types_of(&trace->arena, outputs, num_outputs),
                           .num_inputs = num_inputs,
                           .num_outputs = num_outputs},
                 .destroy = graph_destroy},
        .runtime = trace->runtime,
        .scope = trace,
        .inputs = inputs,
        .outputs = outputs,
    };
    tn_graph *g = &graph->head.graph;
    if (!g->inputs || !g->outputs)
        return TN_ERR_MEMORY;
    tn_status status =
        graph_order(trace, outputs, num_outputs, TO_DATA, &graph->nodes, &g->num_nodes);
    if (status != TN_OK)
        return status;
    traced_number_graph(graph);
    life_remove(&trace->runtime->life, LIFE_SCOPES);
    trace->frozen = true;
    *out_graph = graph;
    return TN_OK;
}

// Calls a body that says by tn_graph_outputs what its outputs are.
static tn_status open_body_call(tn_scope *trace, const struct trace_request *request,
                                tn_array *const *arguments)
{
    trace->capture->is_open = true;
    fail_clear();
    scope_take_failure(trace, request->body(trace, arguments, request->num_inputs, NULL, 0,
                                            request->user));
    if (trace->status == TN_OK && !trace->capture->outputs)
        tn_scope_fail(trace, TN_ERR_ARGUMENT,
                      "the body gave no outputs: expected a call of tn_graph_outputs");
    return trace->status;
}

tn_status tn_graph_outputs(tn_scope *scope, tn_array *const *outputs, uint64_t num_outputs)
{
    tn_status status =
        scope_begin(scope, "graph_outputs", GIVEN({"outputs", outputs, num_outputs}));
    if (status != TN_OK)
        return status;
    struct capture *c = scope->capture;
    if (!c || !c->is_open || c->outputs)
        return tn_scope_fail(
            scope, TN_ERR_ARGUMENT,
            "graph_outputs: expected one call, in the scope of a body that is "
            "traced with TN_OUTPUTS_ANY");
    tn_array **all = arena_alloc(&scope->arena, (num_outputs + 1) * sizeof(*all));
    if (!all)
        return scope_take_failure(scope, TN_ERR_MEMORY);
    for (uint64_t i = 0; i < num_outputs; i++) {
        if (!outputs[i])
            return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                 "graph_outputs: output %llu is NULL",
                                 (unsigned long long)i);
        all[i] = scope_local(scope, outputs[i]);
    }
    c->outputs = all;
    c->num_outputs = num_outputs;
    return scope->status;
}

// Calls the body. Gives the graph's inputs: the arguments, then inputs for the arrays of
// the scope around it that the body used.
static tn_status traced_run_body(tn_scope *trace, const struct trace_request *request,
                                 tn_array ***out_inputs, uint32_t *out_count,
                                 tn_array **outputs)
{
    uint64_t count = request->num_inputs;
    tn_array **arguments = arena_alloc(&trace->arena, (count + 1) * sizeof(*arguments));
    if (!arguments)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        tn_status status = type_check(&request->inputs[i]);
        if (status != TN_OK)
            return fail_prefix("input %llu: ", (unsigned long long)i), status;
        if (!(arguments[i] = leaf_create(trace, NODE_INPUT, &request->inputs[i])))
            return trace->status;
    }
    tn_status status = capture_earlier(trace);
    if (status == TN_OK)
        status = outputs ? body_call(request->body, request->user, trace, arguments, count,
                                     outputs, request->num_outputs)
                         : open_body_call(trace, request, arguments);
    const struct capture *c = trace->capture;
    tn_array **all = arena_alloc(&trace->arena, (count + c->num_own + 1) * sizeof(*all));
    if (status != TN_OK || !all)
        return status != TN_OK ? status : TN_ERR_MEMORY;
    memcpy(all, arguments, count * sizeof(*all));
    if (c->num_own > 0)
        memcpy(all + count, c->own, c->num_own * sizeof(*all));
    *out_inputs = all;
    *out_count = (uint32_t)count + c->num_own;
    return TN_OK;
}

static tn_status trace_in(tn_scope *trace, const struct trace_request *request,
                          struct graph **out_graph)
{
    tn_array **inputs = NULL;
    uint32_t count = 0;
    bool is_open = request->num_outputs == TN_OUTPUTS_ANY;
    uint64_t num_outputs = is_open ? 0 : request->num_outputs;
    tn_array **outputs = NULL;
    if (!is_open &&
        !(outputs = arena_alloc(&trace->arena, (num_outputs + 1) * sizeof(*outputs))))
        return TN_ERR_MEMORY;
    tn_status status = traced_run_body(trace, request, &inputs, &count, outputs);
    if (is_open) {
        outputs = trace->capture->outputs;
        num_outputs = trace->capture->num_outputs;
    }
    // Arrays that the outer scope gets from here on are none of the graph's.
    trace->outer = NULL;
    trace->capture = NULL;
    trace->bodies = NULL;
    if (status != TN_OK)
        return status;
    return graph_create(trace, inputs, count, outputs, (uint32_t)num_outputs, out_graph);
}

tn_status graph_trace(tn_scope *scope, const struct trace_request *request,
                      const tn_graph **out_graph)
{
    struct capture capture = {.list = request->captures};
    struct graph *graph = NULL;
    tn_scope *trace = tn_scope_open(scope->runtime);
    if (!trace) {
        if (request->owned.release)
            request->owned.release(request->owned.user);
        return scope_take_failure(scope, TN_ERR_MEMORY);
    }
    trace->tracing = true;
    trace->outer = scope;
    trace->capture = &capture;
    trace->bodies = scope->bodies;
    tn_status status = trace_in(trace, request, &graph);
    map_finish(&capture.inputs);
    mem_free(capture.own);
    if (status != TN_OK) {
        if (trace->status != TN_OK)
            fail(status, "graph: %s", tn_scope_error(trace));
        trace->frozen = false;
        tn_scope_close(trace);
        if (request->owned.release)
            request->owned.release(request->owned.user);
        return scope_take_failure(scope, status);
    }
    graph->owned = request->owned;
    return scope_take_failure(scope,
                              intern_graph(&scope->interned, &graph->head,
                                           graph_key(&graph->head.graph), out_graph));
}

tn_status tn_graph_trace(tn_scope *scope, tn_function_body body, void *user,
                         const tn_type *inputs, uint64_t num_inputs, uint64_t num_outputs,
                         tn_captures *captures, const tn_graph **out_graph)
{
    const struct trace_request request = {body,        user,     inputs, num_inputs,
                                          num_outputs, captures, {0}};
    tn_status status =
        scope_begin(scope, "graph_trace",
                    GIVEN({"inputs", inputs, num_inputs}, {"the body", (void *)body, 1},
                          {"out_graph", out_graph, 1}));
    if (status != TN_OK)
        return status;
    if (num_outputs > MAX_GIVEN && num_outputs != TN_OUTPUTS_ANY)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "graph_trace: %llu outputs, expected at most %u",
                             (unsigned long long)num_outputs, MAX_GIVEN);
    return graph_trace(scope, &request, out_graph);
}

const tn_graph *tn_graph_retain(const tn_graph *graph)
{
    if (!graph)
        return NULL;
    intern_graph_retain(graph);
    life_add(&graph_of(graph)->runtime->life, LIFE_GRAPHS);
    return graph;
}

void tn_graph_release(const tn_graph *graph)
{
    if (!graph)
        return;
    struct life *life = &graph_of(graph)->runtime->life;
    intern_graph_release(graph);
    life_remove(life, LIFE_GRAPHS);
}

// --- applying ---------------------------------------------------------------------------

// The array that stands for one of the graph's. NULL with the scope's failure set.
static tn_array *traced_stand_in(tn_scope *scope, tn_array **map, const tn_array *array)
{
    if (!map[array->id] && array->node->kind == NODE_NUMBER)
        map[array->id] =
            number_create(scope, array->type.dtype, array->node->number, array->weak_kind);
    return map[array->id];
}

// `inputs` has room for the node's.
static tn_status copy_node(tn_scope *scope, tn_array **map, const struct node *node,
                           const tn_array **inputs)
{
    for (uint32_t i = 0; i < node->num_inputs; i++)
        inputs[i] = node->inputs[i] ? traced_stand_in(scope, map, node->inputs[i]) : NULL;
    struct node *copy = scope->status != TN_OK
                            ? NULL
                            : node_create(scope, node->kind, inputs, node->num_inputs,
                                          node->num_outputs, node->table, node->attrs);
    if (!copy)
        return scope->status;
    copy->prim = node->prim;
    copy->expr = node->expr;
    copy->hash = node->hash;
    if (node->device) // the body chose it
        copy->device = node->device;
    node_order_effects(scope, copy);
    copy->typed = node->typed;
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        copy->outputs[i].type = node->outputs[i].type;
        copy->outputs[i].weak_kind = node->outputs[i].weak_kind;
        copy->outputs[i].name = node->outputs[i].name;
        map[node->outputs[i].id] = &copy->outputs[i];
    }
    return TN_OK;
}

// Makes an input a weak number where it was one in the trace, and no weak number where it
// was none: the dtypes in the graph were inferred so. NULL with the scope's failure set.
static tn_array *fit_weak(tn_scope *scope, const tn_array *input, tn_array *given)
{
    const struct expr *same;
    tn_array *fitted = NULL;
    if (!given || given->weak_kind == input->weak_kind)
        return given;
    tn_status status = expr_parse_arrow(scope->runtime, "x -> x", &same);
    if (status == TN_OK)
        status = graph_apply_expr(scope, same, TN_IN(given), NULL, NULL, &input->type.dtype,
                                  &fitted);
    if (scope_take_failure(scope, status) == TN_OK)
        fitted->weak_kind = input->weak_kind;
    return fitted;
}

static tn_status traced_take_inputs(tn_scope *scope, const struct graph *graph,
                                    tn_array *const *inputs, uint64_t num_inputs,
                                    tn_array **map)
{
    const tn_graph *g = &graph->head.graph;
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (num_inputs < g->num_inputs)
        return fail(TN_ERR_ARGUMENT, "got %llu inputs, the graph has %u",
                    (unsigned long long)num_inputs, g->num_inputs);
    for (uint32_t i = 0; i < g->num_inputs; i++) {
        if (!inputs[i])
            return fail(TN_ERR_ARGUMENT, "input %u is NULL", i);
        if (!type_equal(&inputs[i]->type, &g->inputs[i]))
            return fail(TN_ERR_ARGUMENT, "input %u is %s, the graph takes %s", i,
                        type_print(&inputs[i]->type, got),
                        type_print(&g->inputs[i], expected));
        map[i] = fit_weak(scope, graph->inputs[i], scope_local(scope, inputs[i]));
        if (!map[i])
            return scope->status;
    }
    return TN_OK;
}

static tn_status copy_graph(tn_scope *scope, const struct graph *graph,
                            tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs)
{
    const tn_graph *g = &graph->head.graph;
    uint32_t most = 1;
    for (uint32_t i = 0; i < g->num_nodes; i++)
        if (graph->nodes[i]->num_inputs > most)
            most = graph->nodes[i]->num_inputs;
    tn_array **map = mem_zalloc(((uint64_t)graph->num_ids + 1) * sizeof(*map));
    const tn_array **operands = mem_alloc(most * sizeof(*operands));
    tn_status status = map && operands ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = traced_take_inputs(scope, graph, inputs, num_inputs, map);
    for (uint32_t i = 0; i < g->num_nodes && status == TN_OK; i++)
        status = copy_node(scope, map, graph->nodes[i], operands);
    for (uint32_t i = 0; i < g->num_outputs && status == TN_OK; i++)
        if (!(outputs[i] = traced_stand_in(scope, map, graph->outputs[i])))
            status = scope->status;
    mem_free(operands);
    mem_free(map);
    return status;
}

tn_status graph_inline(tn_scope *scope, const tn_graph *graph, tn_array *const *inputs,
                       uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    tn_status status =
        num_outputs == graph->num_outputs
            ? intern_hold_graph(&scope->interned, graph)
            : fail(TN_ERR_ARGUMENT, "asked for %llu outputs, the graph has %u",
                   (unsigned long long)num_outputs, graph->num_outputs);
    if (status == TN_OK)
        status = copy_graph(scope, graph_of(graph), inputs, num_inputs, outputs);
    if (status != TN_OK && scope->status == TN_OK)
        fail_prefix("graph_call: ");
    return scope_take_failure(scope, status);
}

tn_status tn_graph_call(tn_scope *scope, const tn_graph *graph, tn_array *const *inputs,
                        uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs)
{
    tn_status status =
        scope_begin(scope, "graph_call",
                    GIVEN({"the graph", graph, 1}, {"inputs", inputs, num_inputs},
                          {"outputs", outputs, num_outputs}));
    if (status != TN_OK)
        return status;
    return graph_inline(scope, graph, inputs, num_inputs, outputs, num_outputs);
}
