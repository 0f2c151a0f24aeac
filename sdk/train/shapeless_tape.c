// SPDX-License-Identifier: MIT
// Graphs as tapes: see shapeless.h.
#include <stdlib.h>
#include <string.h>
#include "shapeless.h"

void tape_finish(struct shapeless_tape *tape)
{
    free(tape->words);
    *tape = (struct shapeless_tape){.words = NULL};
}

static void shapeless_tape_put(struct shapeless_tape *tape,
                               const struct shapeless_word *word)
{
    if (tape->count == tape->room && !tape->failed) {
        uint64_t room = tape->room ? 2 * tape->room : 256;
        struct shapeless_word *more = realloc(tape->words, room * sizeof(*more));
        tape->failed = !more;
        tape->words = more ? more : tape->words;
        tape->room = more ? room : tape->room;
    }
    if (!tape->failed)
        tape->words[tape->count++] = *word;
}

static void put_exact(struct shapeless_tape *tape, const char *owner, uint64_t value)
{
    shapeless_tape_put(
        tape, &(struct shapeless_word){.kind = EXACT, .i = (int64_t)value, .owner = owner});
}

static void put_whole(struct shapeless_tape *tape, const char *owner, const char *name,
                      int64_t value)
{
    shapeless_tape_put(tape, &(struct shapeless_word){
                                 .kind = WHOLE, .i = value, .owner = owner, .name = name});
}

static void put_real(struct shapeless_tape *tape, const char *owner, const char *name,
                     double value)
{
    shapeless_tape_put(tape, &(struct shapeless_word){
                                 .kind = REAL, .f = value, .owner = owner, .name = name});
}

static uint64_t shapeless_hash(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = text ? text : ""; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return hash;
}

// Appends an operand: the number of its array, or a known scalar.
static void shapeless_tape_put_array(const tn_host_graph_format *api,
                                     struct shapeless_tape *tape, const char *owner,
                                     const tn_array *array)
{
    tn_graph_array shown = {0};
    if (!array) {
        put_exact(tape, owner, UINT64_MAX);
        return;
    }
    const tn_type *type = api->array_type(array);
    api->array(array, &shown);
    if (shown.number >= tape->num_arrays)
        tape->num_arrays = shown.number + 1;
    put_exact(tape, owner, shown.number);
    put_exact(tape, owner,
              (uint64_t)type->dtype << 2 | shown.is_weak << 1 | shown.is_number);
    if (!shown.is_number)
        return;
    double value;
    memcpy(&value, &shown.bits, sizeof(value));
    if (tn_is_float(type->dtype) || tn_is_complex(type->dtype))
        put_real(tape, owner, NULL, value);
    else
        put_whole(tape, owner, NULL, (int64_t)shown.bits);
}

static void put_field(const tn_host_graph_format *api, struct shapeless_tape *tape,
                      const char *owner, const tn_attr_field *field, const void *attrs)
{
    const void *at = (const char *)attrs + field->offset;
    const void *pointer;
    int64_t i;
    double f;
    memcpy(&i, at, sizeof(i));
    memcpy(&f, at, sizeof(f));
    memcpy(&pointer, at, sizeof(pointer));
    if (field->kind == TN_ATTR_I64) {
        put_whole(tape, owner, field->name, i);
    } else if (field->kind == TN_ATTR_F64) {
        put_real(tape, owner, field->name, f);
    } else if (field->kind == TN_ATTR_INTS) {
        const tn_ints *ints = at;
        put_exact(tape, owner, (uint64_t)ints->count << 1 | (ints->given != 0));
        for (uint32_t k = 0; k < ints->count; k++)
            put_whole(tape, owner, field->name, ints->value[k]);
    } else if (field->kind < TN_ATTR_STRING) {
        put_exact(tape, owner, (uint64_t)i);
    } else if (!pointer) {
        put_exact(tape, owner, UINT64_MAX);
    } else if (field->kind == TN_ATTR_STRING) {
        put_exact(tape, owner, shapeless_hash(pointer));
    } else if (field->kind == TN_ATTR_INT_LIST) {
        const tn_int_list *list = pointer;
        put_exact(tape, owner, list->count);
        for (uint64_t k = 0; k < list->count; k++)
            put_whole(tape, owner, field->name, list->value[k]);
    } else if (field->kind == TN_ATTR_FLOAT_LIST) {
        const tn_float_list *list = pointer;
        put_exact(tape, owner, list->count);
        for (uint64_t k = 0; k < list->count; k++)
            put_real(tape, owner, field->name, list->value[k]);
    } else {
        const tn_graph *graph = pointer;
        put_exact(tape, owner, graph->num_inputs);
        for (uint32_t k = 0; k < graph->num_inputs; k++) {
            const tn_type *type = &graph->inputs[k];
            put_exact(tape, owner, (uint64_t)type->dtype << 8 | (uint32_t)type->rank);
            for (int32_t axis = 0; axis < type->rank; axis++)
                put_whole(tape, owner, field->name, type->extent[axis]);
        }
        tape_graph(api, graph, tape);
    }
}

bool node_has_field(const tn_graph_node *node, const tn_attr_field *field)
{
    bool has = node->primitive && !(field->flags & TN_ATTR_RUNTIME);
    if (!node->primitive && node->flags & TN_NODE_REDUCES)
        has = strcmp(field->name, "axis") == 0;
    for (uint64_t i = 0; i < node->num_attr_names && !has; i++)
        has = strcmp(field->name, node->attr_names[i]) == 0;
    return has;
}

static void put_node(const tn_host_graph_format *api, const tn_graph_node *node,
                     struct shapeless_tape *tape)
{
    const char *owner = node->primitive ? node->primitive : node->expr;
    put_exact(tape, owner, shapeless_hash(owner));
    put_exact(tape, owner, node->num_inputs << 8 | node->flags);
    for (uint64_t i = 0; i < node->num_inputs; i++)
        shapeless_tape_put_array(api, tape, owner, node->inputs[i]);
    put_exact(tape, owner, node->num_outputs);
    for (uint64_t i = 0; i < node->num_outputs; i++)
        shapeless_tape_put_array(
            api, tape, owner,
            (const tn_array *)((const char *)node->outputs + i * node->array_size));
    for (uint32_t i = 0; node->table && i < node->table->num_fields; i++)
        if (node_has_field(node, &node->table->fields[i]))
            put_field(api, tape, owner, &node->table->fields[i], node->attrs);
}

void tape_graph(const tn_host_graph_format *api, const tn_graph *graph,
                struct shapeless_tape *tape)
{
    tn_graph_node node;
    put_exact(tape, NULL, graph->num_inputs);
    for (uint64_t i = 0; i < graph->num_nodes; i++) {
        api->node(graph, i, &node);
        put_node(api, &node, tape);
    }
    put_exact(tape, NULL, UINT64_MAX - graph->num_nodes);
    for (uint64_t end = graph->num_nodes; end < (uint64_t)graph->num_nodes + 2; end++) {
        api->node(graph, end, &node); // outputs, then inputs
        for (uint64_t i = 0; i < node.num_inputs; i++)
            shapeless_tape_put_array(api, tape, NULL, node.inputs[i]);
    }
}
