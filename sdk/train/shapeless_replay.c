// SPDX-License-Identifier: MIT
// Rebuilds graphs with other numbers: reads them in the order of tape_graph().
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shapeless.h"

// A graph that is being rebuilt, in the scope where its nodes are put.
struct shapeless_part {
    struct shapeless_replaying *r;
    tn_scope *scope;
    tn_array **arrays; // by number of the array
    uint32_t num_arrays;
};

static const struct shapeless_word *shapeless_replay_next(struct shapeless_replaying *r)
{
    return &r->values[(*r->at)++];
}

// The array in the scope for an array of the graph. NULL: not given, or a failure.
static tn_array *shapeless_replay_take_array(struct shapeless_part *p,
                                             const tn_array *array)
{
    const tn_host_graph_format *api = p->r->api;
    tn_graph_array shown = {0};
    shapeless_replay_next(p->r); // its number
    if (!array)
        return NULL;
    const tn_type *type = api->array_type(array);
    api->array(array, &shown);
    shapeless_replay_next(p->r); // its dtype
    if (!shown.is_number && !p->arrays[shown.number])
        tn_scope_fail(
            p->scope, TN_ERR_ARGUMENT,
            "shapeless: the body makes data of its own: give them as an input, or "
            "keep them");
    if (!shown.is_number)
        return p->arrays[shown.number];
    const struct shapeless_word *value = shapeless_replay_next(p->r);
    uint64_t bits = (uint64_t)value->i;
    if (value->kind == REAL)
        memcpy(&bits, &value->f, sizeof(bits));
    if (!p->arrays[shown.number]) {
        p->arrays[shown.number] = api->number(p->scope, type->dtype, bits);
        if (p->arrays[shown.number])
            api->set_weak(p->arrays[shown.number], (int32_t)shown.is_weak);
    }
    return p->arrays[shown.number];
}

// --- attributes -------------------------------------------------------------------------

// Memory for the attribute values of one operation.
struct shapeless_values {
    tn_attr *attrs;
    uint64_t count;
    tn_ints ints[16];
    tn_int_list int_list;
    tn_float_list float_list;
    void *lists[2];
    uint32_t num_ints;
};

static tn_status build_nested(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                              tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    return replay_graph(user, scope, inputs, outputs);
}

static const tn_graph *take_graph(struct shapeless_part *p, const tn_graph *graph)
{
    const tn_graph *made = NULL;
    tn_type *types = calloc((size_t)graph->num_inputs + 1, sizeof(*types));
    for (uint32_t k = 0; k < graph->num_inputs; k++) {
        shapeless_replay_next(p->r);
        if (types)
            types[k] = graph->inputs[k];
        for (int32_t axis = 0; axis < graph->inputs[k].rank; axis++) {
            const struct shapeless_word *extent = shapeless_replay_next(p->r);
            if (types)
                types[k].extent[axis] = extent->i;
        }
    }
    struct shapeless_replaying inner = *p->r;
    inner.graph = graph;
    if (!types)
        tn_scope_fail(p->scope, TN_ERR_MEMORY, "shapeless: out of memory");
    else
        p->r->api->graph_trace(p->scope, build_nested, &inner, types, graph->num_inputs,
                               graph->num_outputs, NULL, &made);
    free(types);
    return made;
}

static void take_list(struct shapeless_values *v, struct shapeless_replaying *r,
                      tn_attr *attr, uint64_t count)
{
    bool is_int = attr->kind == TN_ATTR_INT_LIST;
    void *list = v->lists[!is_int] = calloc(count + 1, 8);
    for (uint64_t k = 0; k < count; k++) {
        const struct shapeless_word *word = shapeless_replay_next(r);
        if (list && is_int)
            ((int64_t *)list)[k] = word->i;
        else if (list)
            ((double *)list)[k] = word->f;
    }
    v->int_list = is_int ? (tn_int_list){count, list} : v->int_list;
    v->float_list = is_int ? v->float_list : (tn_float_list){count, list};
    attr->int_list = &v->int_list;
    attr->float_list = &v->float_list;
}

// Reads one attribute, and adds it unless it has its default.
static void take_field(struct shapeless_part *p, struct shapeless_values *v,
                       const tn_attr_field *field, const void *attrs)
{
    const void *pointer, *at = (const char *)attrs + field->offset;
    tn_attr attr = {.name = field->name, .kind = field->kind};
    bool is_default = false;
    memcpy(&pointer, at, sizeof(pointer));
    if (field->kind == TN_ATTR_INTS) {
        const tn_ints *ints = at;
        tn_ints *own = &v->ints[v->num_ints++ % 16];
        shapeless_replay_next(p->r);
        *own = *ints;
        for (uint32_t k = 0; k < ints->count; k++)
            own->value[k] = shapeless_replay_next(p->r)->i;
        attr.ints = own;
        is_default = !ints->given;
    } else if (field->kind < TN_ATTR_STRING) {
        const struct shapeless_word *word = shapeless_replay_next(p->r);
        attr.i = word->i;
        attr.f = word->f;
        is_default = field->kind == TN_ATTR_F64
                         ? memcmp(&attr.f, &field->default_f, sizeof(attr.f)) == 0
                         : attr.i == field->default_i;
    } else {
        const struct shapeless_word *word = shapeless_replay_next(p->r);
        is_default = !pointer;
        attr.text = pointer;
        if (pointer &&
            (field->kind == TN_ATTR_INT_LIST || field->kind == TN_ATTR_FLOAT_LIST))
            take_list(v, p->r, &attr, (uint64_t)word->i);
        else if (pointer && field->kind == TN_ATTR_GRAPH)
            attr.graph = take_graph(p, pointer);
    }
    if (!is_default || field->flags & TN_ATTR_REQUIRED)
        v->attrs[v->count++] = attr;
}

// --- operations -------------------------------------------------------------------------

static void take_runtime(const tn_graph_node *node, const tn_array **inputs,
                         uint64_t *num_inputs, struct shapeless_values *v)
{
    uint64_t count = 0, at;
    for (uint32_t i = 0; node->primitive && i < node->table->num_fields; i++)
        count += (node->table->fields[i].flags & TN_ATTR_RUNTIME) != 0;
    at = *num_inputs -= count;
    for (uint32_t i = 0; count && i < node->table->num_fields; i++)
        if (node->table->fields[i].flags & TN_ATTR_RUNTIME)
            v->attrs[v->count++] = (tn_attr){.name = node->table->fields[i].name,
                                             .kind = TN_ATTR_ARRAY,
                                             .array = inputs[at++]};
}

static tn_status shapeless_replay_apply(struct shapeless_part *p, const tn_graph_node *node,
                                        const tn_array **inputs, struct shapeless_values *v,
                                        tn_array **outputs)
{
    const tn_host_graph_format *api = p->r->api;
    uint64_t num_inputs = node->num_inputs;
    tn_dtype dtypes[TN_MAX_OUTPUTS];
    char text[4096];
    if (node->table)
        take_runtime(node, inputs, &num_inputs, v);
    const tn_attr_list attrs = TN_ATTR_LIST(v->attrs, v->count);
    if (api->scope_status(p->scope))
        return api->scope_status(p->scope);
    if (node->primitive) {
        while (num_inputs && !inputs[num_inputs - 1])
            num_inputs--;
        return api->op_n(p->scope, node->primitive, inputs, num_inputs, attrs, outputs,
                         node->num_outputs);
    }
    for (uint64_t i = 0; i < node->num_outputs; i++)
        dtypes[i] = api->array_type((const tn_array *)((const char *)node->outputs +
                                                       i * node->array_size))
                        ->dtype;
    char *whole = text;
    size_t size = strlen(node->expr) + 64;
    for (uint64_t i = 0; i < num_inputs; i++)
        size += strlen(node->input_names[i]) + 2;
    if (size > sizeof(text) && !(whole = malloc(size)))
        return tn_scope_fail(p->scope, TN_ERR_MEMORY, "shapeless: out of memory");
    size_t used = 0;
    whole[0] = 0;
    for (uint64_t i = 0; i < num_inputs; i++)
        used += (size_t)snprintf(whole + used, size - used, "%s%s", i ? ", " : "",
                                 node->input_names[i]);
    snprintf(whole + used, size - used, " -> %s", node->expr);
    tn_status status = api->expr_n(p->scope, whole, inputs, num_inputs, attrs,
                                   node->flags & TN_NODE_TYPED ? dtypes : NULL, outputs,
                                   node->num_outputs);
    if (whole != text)
        free(whole);
    return status;
}

static tn_status replay_node(struct shapeless_part *p, const tn_graph_node *node)
{
    const tn_host_graph_format *api = p->r->api;
    struct shapeless_values v = {.count = 0};
    tn_array *outputs[TN_MAX_OUTPUTS] = {NULL};
    const tn_array **inputs = calloc(node->num_inputs + 1, sizeof(*inputs));
    v.attrs =
        calloc((size_t)(node->table ? node->table->num_fields : 0) + 1, sizeof(*v.attrs));
    if (!inputs || !v.attrs || node->num_outputs > TN_MAX_OUTPUTS)
        tn_scope_fail(p->scope, TN_ERR_MEMORY, "shapeless: out of memory");
    shapeless_replay_next(p->r), shapeless_replay_next(p->r);
    for (uint64_t i = 0; inputs && i < node->num_inputs; i++)
        inputs[i] = shapeless_replay_take_array(p, node->inputs[i]);
    shapeless_replay_next(p->r);
    for (uint64_t i = 0; i < node->num_outputs; i++)
        shapeless_replay_next(p->r), shapeless_replay_next(p->r);
    for (uint32_t i = 0; v.attrs && node->table && i < node->table->num_fields; i++)
        if (node_has_field(node, &node->table->fields[i]))
            take_field(p, &v, &node->table->fields[i], node->attrs);
    tn_status status = tn_scope_status(p->scope);
    if (status == TN_OK)
        status = shapeless_replay_apply(p, node, inputs, &v, outputs);
    for (uint64_t i = 0; i < node->num_outputs && status == TN_OK; i++) {
        tn_graph_array shown = {0};
        api->array((const tn_array *)((const char *)node->outputs + i * node->array_size),
                   &shown);
        api->set_weak(outputs[i], (int32_t)shown.is_weak);
        p->arrays[shown.number] = outputs[i];
    }
    free(v.lists[0]);
    free(v.lists[1]);
    free(v.attrs);
    free(inputs);
    return status;
}

// The greatest number of an array of this graph, plus one.
static uint32_t count_arrays(const struct shapeless_replaying *r)
{
    uint32_t most = 0;
    tn_graph_array shown = {0};
    tn_graph_node node;
    for (uint64_t n = 0; n < (uint64_t)r->graph->num_nodes + 2; n++) {
        r->api->node(r->graph, n, &node);
        for (uint64_t i = 0; i < node.num_inputs + node.num_outputs; i++) {
            const tn_array *array =
                i < node.num_inputs
                    ? node.inputs[i]
                    : (const tn_array *)((const char *)node.outputs +
                                         (i - node.num_inputs) * node.array_size);
            if (array)
                r->api->array(array, &shown);
            if (array && shown.number >= most)
                most = shown.number + 1;
        }
    }
    return most;
}

// Makes an input weak again that was weak in the graph: it took its dtype from the other
// operand.
static tn_array *weak_input(const tn_host_graph_format *api, tn_scope *scope,
                            tn_array *input)
{
    tn_array *out = NULL;
    if (api->expr_n(scope, "x -> x", TN_IN(input), TN_NO_ATTRS,
                    &api->array_type(input)->dtype, &out, 1) == TN_OK)
        api->set_weak(out, 1);
    return out;
}

tn_status replay_graph(struct shapeless_replaying *r, tn_scope *scope,
                       tn_array *const *inputs, tn_array **outputs)
{
    tn_graph_node node;
    struct shapeless_part p = {.r = r, .scope = scope, .num_arrays = count_arrays(r)};
    p.arrays = calloc((size_t)p.num_arrays + 1, sizeof(*p.arrays));
    if (!p.arrays)
        return tn_scope_fail(scope, TN_ERR_MEMORY, "shapeless: out of memory");
    tn_status status = tn_scope_status(scope);
    shapeless_replay_next(r);
    r->api->node(r->graph, (uint64_t)r->graph->num_nodes + 1, &node);
    for (uint64_t i = 0; i < node.num_inputs; i++) {
        tn_graph_array shown = {0};
        r->api->array(node.inputs[i], &shown);
        p.arrays[shown.number] =
            shown.is_weak ? weak_input(r->api, scope, inputs[i]) : inputs[i];
    }
    for (uint64_t n = 0; n < r->graph->num_nodes && status == TN_OK; n++) {
        r->api->node(r->graph, n, &node);
        status = replay_node(&p, &node);
    }
    shapeless_replay_next(r);
    r->api->node(r->graph, r->graph->num_nodes, &node);
    for (uint64_t i = 0; i < node.num_inputs && status == TN_OK; i++) {
        outputs[i] = shapeless_replay_take_array(&p, node.inputs[i]);
        status = tn_scope_status(scope);
    }
    r->api->node(r->graph, (uint64_t)r->graph->num_nodes + 1, &node);
    for (uint64_t i = 0; i < node.num_inputs && status == TN_OK; i++)
        shapeless_replay_next(r),
            shapeless_replay_next(r); // skips the inputs, which are not numbers
    free(p.arrays);
    return status;
}
