// SPDX-License-Identifier: MIT
// Graphs in Graphviz's DOT language (tn_graph_dot): as built, or as planned, coloured by
// device. A plan is drawn from its explanation, so the picture agrees with tn_explain.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "explain.h"

static const char *const colours[] = {"#cfe8ff", "#ffe3c2", "#d8f5d0", "#f6d5ef",
                                      "#fff7b8"};

static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

// Writes the name that the application gave, else "data 3": the kind and the index in it.
static void dot_write_name(FILE *out, const char *name, const char *kind, uint32_t number)
{
    if (name)
        write_escaped(out, name);
    else
        fprintf(out, "%s %u", kind, number);
}

static void dot_write_number(FILE *out, const tn_array *array)
{
    double value;
    memcpy(&value, &array->node->number, sizeof(value));
    if (dtype_is_inexact(array->type.dtype))
        fprintf(out, "%.9g", value);
    else
        fprintf(out, "%" PRId64, (int64_t)array->node->number);
}

static void write_leaf(FILE *out, const tn_array *leaf, uint32_t number)
{
    char type[TYPE_TEXT];
    fprintf(out, "  l%u [shape=box, style=rounded, label=\"", leaf->id);
    if (leaf->node->kind == NODE_NUMBER)
        dot_write_number(out, leaf);
    else
        dot_write_name(out, leaf->name, "data", number);
    fprintf(out, "\\n%s\"];\n", type_print(&leaf->type, type));
}

static void write_node(FILE *out, const struct node *node, uint32_t number)
{
    char type[TYPE_TEXT], label[LABEL_SIZE];
    char *attrs = node->table ? attrs_print(node->table, node->attrs, false) : NULL;
    if (!node->prim)
        label_set(label, node->expr->text);
    fprintf(out, "  n%u [shape=box, style=filled, fillcolor=\"#eeeeee\", label=\"", number);
    write_escaped(out, node->prim ? node->prim->record.id : label);
    if (attrs && *attrs) {
        fputs("\\n", out);
        write_escaped(out, attrs);
    }
    fprintf(out, "\\n%s\"];\n", type_print(&node->outputs[0].type, type));
    mem_free(attrs);
}

// State of drawing a task as it was built. Ids are tn_array.id.
struct dot_writer {
    FILE *out;
    uint32_t *node_of; // by id: the node that computes the array; NONE: a leaf
    bool *drawn; // by id: the array was an edge's source before; leaves are drawn then
    uint32_t num_drawn; // leaves
};

// Writes the DOT name of the node or leaf that gives the array. Draws a leaf at its first
// use.
static void write_source(struct dot_writer *b, const tn_array *array)
{
    if (b->node_of[array->id] == NONE && !b->drawn[array->id])
        write_leaf(b->out, array, b->num_drawn++);
    b->drawn[array->id] = true;
    if (b->node_of[array->id] == NONE)
        fprintf(b->out, "  l%u", array->id);
    else
        fprintf(b->out, "  n%u", b->node_of[array->id]);
}

static void write_result(struct dot_writer *b, const tn_array *array, uint32_t number)
{
    fprintf(b->out, "  o%u [shape=box, style=rounded, label=\"", number);
    dot_write_name(b->out, array->name, "output", number);
    fputs("\"];\n", b->out);
    write_source(b, array);
    fprintf(b->out, " -> o%u;\n", number);
}

static tn_status write_built(FILE *out, const struct task *task)
{
    struct dot_writer b = {.out = out,
                           .node_of = mem_alloc((task->num_ids + 1) * sizeof(*b.node_of)),
                           .drawn = mem_zalloc(task->num_ids + 1)};
    tn_status status = b.node_of && b.drawn ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        memset(b.node_of, 0xff, (task->num_ids + 1) * sizeof(*b.node_of));
    for (uint32_t i = 0; i < task->num_nodes && status == TN_OK; i++) {
        const struct node *node = task->nodes[i];
        write_node(out, node, i);
        for (uint32_t k = 0; k < node->num_outputs; k++)
            if (!node->outputs[k].value)
                b.node_of[node->outputs[k].id] = i;
        for (uint32_t k = 0; k < node->num_inputs; k++) {
            if (!node->inputs[k])
                continue;
            write_source(&b, node->inputs[k]);
            fprintf(out, " -> n%u;\n", i);
        }
    }
    for (uint32_t i = 0; i < task->num_outputs && status == TN_OK; i++)
        write_result(&b, task->outputs[i], i);
    mem_free(b.node_of);
    mem_free(b.drawn);
    return status;
}

// --- as planned ------------------------------------------------------------------------

static const char *dot_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static uint32_t dot_number_of(const json_t *object, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(object, key));
}

// Writes an edge from a source as explanations have them. A number or an empty value has
// neither "leaf" nor "step", and no edge.
static void write_edge(FILE *out, const json_t *source, char to, uint32_t number)
{
    bool is_leaf = json_object_get(source, "leaf") != NULL;
    if (is_leaf || json_object_get(source, "step"))
        fprintf(out, "  %c%u -> %c%u;\n", is_leaf ? 'l' : 's',
                dot_number_of(source, is_leaf ? "leaf" : "step"), to, number);
}

static void write_edges(FILE *out, const json_t *step)
{
    size_t i;
    json_t *source;
    json_array_foreach(json_object_get(step, "inputs"), i, source)
        write_edge(out, source, 's', dot_number_of(step, "id"));
}

static void write_end(FILE *out, char kind, uint32_t number, const json_t *entry,
                      const char *what)
{
    fprintf(out, "  %c%u [shape=box, style=rounded, label=\"", kind, number);
    dot_write_name(out, dot_text_of(entry, "name"), what, number);
    fprintf(out, "\\n%s\"];\n", dot_text_of(entry, "type"));
}

static void dot_write_transfer(FILE *out, const json_t *transfer)
{
    fprintf(out, "  s%u [shape=ellipse, label=\"%s to ", dot_number_of(transfer, "id"),
            dot_text_of(transfer, "label"));
    write_escaped(out, dot_text_of(transfer, "to"));
    fprintf(out, "\\n%" JSON_INTEGER_FORMAT " bytes\"];\n",
            json_integer_value(json_object_get(transfer, "bytes")));
    write_edges(out, transfer);
}

static void dot_write_step(FILE *out, const json_t *step, uint32_t device)
{
    fprintf(out, "  s%u [shape=box, style=filled, fillcolor=\"%s\", label=\"",
            dot_number_of(step, "id"),
            colours[device % (sizeof(colours) / sizeof(*colours))]);
    write_escaped(out, dot_text_of(step, "label"));
    fputs("\\n", out);
    write_escaped(out, dot_text_of(step, "kernel"));
    fprintf(out, "\\n%s\"];\n", dot_text_of(step, "type"));
}

static void write_segment(FILE *out, const json_t *segment, const struct plan *plan)
{
    uint32_t id = dot_number_of(segment, "id");
    size_t i;
    json_t *part;
    const json_t *steps = json_object_get(segment, "steps");
    json_array_foreach(json_object_get(segment, "transfers"), i, part)
        dot_write_transfer(out, part);
    if (json_array_size(steps) == 0)
        return;
    fprintf(out, "  subgraph cluster%u { label=\"submission %u on ", id, id + 1);
    write_escaped(out, dot_text_of(segment, "device"));
    fputs("\"; color=\"#888888\";\n", out);
    json_array_foreach(steps, i, part) dot_write_step(out, part, plan->segments[id].device);
    fputs("  }\n", out);
    json_array_foreach(steps, i, part) write_edges(out, part);
}

static void write_planned(FILE *out, const json_t *explanation, const struct plan *plan)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(explanation, "leaves"), i, part)
        write_end(out, 'l', (uint32_t)i, part, "data");
    json_array_foreach(json_object_get(explanation, "segments"), i, part)
        write_segment(out, part, plan);
    json_array_foreach(json_object_get(explanation, "outputs"), i, part)
    {
        write_end(out, 'o', (uint32_t)i, part, "output");
        write_edge(out, json_object_get(part, "source"), 'o', (uint32_t)i);
    }
}

static tn_status write_plan(FILE *out, tn_scope *scope, struct task *task)
{
    struct plan *plan = NULL;
    json_t *explanation = NULL;
    tn_status status = explain_planning(scope->runtime, task, &plan, &explanation);
    if (status == TN_OK)
        write_planned(out, explanation, plan);
    plan_release(plan);
    json_decref(explanation);
    return status;
}

// --- tn_graph_dot ----------------------------------------------------------------------

static tn_status dot_task(tn_scope *scope, struct task *task, bool planned, char **out_dot)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fail_memory(0);
    fputs("digraph tenon {\n  node [fontname=\"sans-serif\", fontsize=10];\n", out);
    tn_status status = planned ? write_plan(out, scope, task) : write_built(out, task);
    fputs("}\n", out);
    bool written = !ferror(out);
    written = fclose(out) == 0 && written;
    if (status == TN_OK) {
        *out_dot = written ? mem_strdup(text) : NULL;
        status = *out_dot ? TN_OK : fail_memory(size);
    }
    free(text);
    return status;
}

tn_status tn_graph_dot(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                       int32_t planned, char **out_dot)
{
    struct task task;
    tn_status status = scope_begin(
        scope, "graph_dot", GIVEN({"arrays", arrays, num_arrays}, {"out_dot", out_dot, 1}));
    if (status != TN_OK)
        return status;
    tn_array **locals = scope_locals(scope, "graph_dot", arrays, num_arrays);
    if (!locals)
        return scope->status;
    status = task_create(scope, locals, (uint32_t)num_arrays, NULL, 0, &task);
    if (status == TN_OK) {
        status = dot_task(scope, &task, planned, out_dot);
        task_finish(&task);
    }
    mem_free(locals);
    return scope_take_failure(scope, status);
}
