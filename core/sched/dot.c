// SPDX-License-Identifier: MIT
// Pictures of graphs in Graphviz's language: as built, and as planned, coloured by device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

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

static void write_leaf(FILE *out, const tn_array *leaf)
{
    char type[TYPE_TEXT];
    fprintf(out, "  a%u [shape=box, style=rounded, label=\"%s\\n%s\"];\n", leaf->id,
            leaf->node->kind == NODE_NUMBER ? "number" : "data",
            type_print(&leaf->type, type));
}

static void write_node(FILE *out, const struct node *node, uint32_t number)
{
    char type[TYPE_TEXT];
    char *attrs = node->table ? attrs_print(node->table, node->attrs, false) : NULL;
    fprintf(out, "  n%u [shape=box, style=filled, fillcolor=\"#eeeeee\", label=\"", number);
    write_escaped(out, node->prim ? node->prim->record.id : node->expr->text);
    if (attrs && *attrs) {
        fputs("\\n", out);
        write_escaped(out, attrs);
    }
    fprintf(out, "\\n%s\"];\n", type_print(&node->outputs[0].type, type));
    mem_free(attrs);
}

static void write_built(FILE *out, const struct task *task)
{
    uint32_t *node_of = mem_alloc((task->num_ids + 1) * sizeof(*node_of));
    bool *drawn = mem_zalloc(task->num_ids + 1);
    if (!node_of || !drawn)
        goto done;
    memset(node_of, 0xff, (task->num_ids + 1) * sizeof(*node_of));
    for (uint32_t i = 0; i < task->num_nodes; i++) {
        const struct node *node = task->nodes[i];
        write_node(out, node, i);
        for (uint32_t k = 0; k < node->num_outputs; k++)
            node_of[node->outputs[k].id] = i;
        for (uint32_t k = 0; k < node->num_inputs; k++) {
            const tn_array *input = node->inputs[k];
            if (!input)
                continue;
            if (node_of[input->id] != NONE) {
                fprintf(out, "  n%u -> n%u;\n", node_of[input->id], i);
                continue;
            }
            if (!drawn[input->id])
                write_leaf(out, input);
            drawn[input->id] = true;
            fprintf(out, "  a%u -> n%u;\n", input->id, i);
        }
    }
done:
    mem_free(node_of);
    mem_free(drawn);
}

// Steps share memory, not values: an arrow goes from the last writer of what a step reads.
struct writer {
    uint32_t home, index, step;
    uint64_t offset;
};

static void write_step(FILE *out, const struct plan *plan,
                       const struct plan_segment *segment, uint32_t step)
{
    const tn_step *s = &plan->steps[step];
    char type[TYPE_TEXT];
    tn_type result = layout_type(&s->outputs[0].layout);
    fprintf(out, "  s%u [shape=box, style=filled, fillcolor=\"%s\", label=\"", step,
            colours[segment->device % (sizeof(colours) / sizeof(*colours))]);
    write_escaped(out, s->label);
    fputs("\\n", out);
    write_escaped(out, s->kernel    ? s->kernel->name
                       : s->program ? "expression"
                                    : "reference");
    fprintf(out, "\\n%s\"];\n", type_print(&result, type));
}

static void write_edges(FILE *out, const struct plan *plan,
                        const struct plan_segment *segment, uint32_t step,
                        struct writer *writers, uint32_t *num_writers)
{
    const tn_step *s = &plan->steps[step];
    for (uint32_t k = 0; k < s->num_inputs; k++) {
        if (s->inputs[k].layout.dtype == TN_DTYPE_NONE)
            continue;
        const struct plan_slot *slot = &segment->slots[s->inputs[k].slot];
        uint32_t found = NONE;
        for (uint32_t w = *num_writers; w-- > 0 && found == NONE;)
            if (writers[w].home == slot->home && writers[w].index == slot->index &&
                writers[w].offset == s->inputs[k].offset)
                found = writers[w].step;
        if (found != NONE)
            fprintf(out, "  s%u -> s%u;\n", found, step);
        else if (slot->home == HOME_LEAF)
            fprintf(out,
                    "  l%u [shape=box, style=rounded, label=\"data %u\"];\n"
                    "  l%u -> s%u;\n",
                    slot->index, slot->index, slot->index, step);
    }
    for (uint32_t k = 0; k < s->num_outputs; k++) {
        const struct plan_slot *slot = &segment->slots[s->outputs[k].slot];
        writers[(*num_writers)++] =
            (struct writer){slot->home, slot->index, step, s->outputs[k].offset};
    }
}

static void write_planned(FILE *out, const struct plan *plan)
{
    uint32_t total = 0, num_writers = 0;
    for (uint32_t i = 0; i < plan->num_steps; i++)
        total += plan->steps[i].num_outputs;
    struct writer *writers = mem_alloc((total + 1) * sizeof(*writers));
    for (uint32_t i = 0; writers && i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        fprintf(out,
                "  subgraph cluster%u { label=\"segment %u on %s\"; color=\"#888888\";\n",
                i, i, plan->devices[segment->device]->name);
        for (uint32_t k = 0; k < segment->num_steps; k++)
            write_step(out, plan, segment, segment->first_step + k);
        fputs("  }\n", out);
        for (uint32_t k = 0; k < segment->num_steps; k++)
            write_edges(out, plan, segment, segment->first_step + k, writers, &num_writers);
    }
    mem_free(writers);
}

static tn_status dot_task(tn_scope *scope, const struct task *task, bool scheduled,
                          char **out_dot)
{
    struct plan *plan = NULL;
    char *text = NULL;
    size_t size = 0;
    if (scheduled) {
        tn_status status = plan_create(scope->runtime, task, NULL, &plan);
        if (status != TN_OK)
            return status;
    }
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        plan_release(plan);
        return fail_memory(0);
    }
    fputs("digraph tenon {\n  node [fontname=\"sans-serif\", fontsize=10];\n", out);
    if (scheduled)
        write_planned(out, plan);
    else
        write_built(out, task);
    fputs("}\n", out);
    bool written = !ferror(out);
    written = fclose(out) == 0 && written;
    plan_release(plan);
    *out_dot = written ? mem_strdup(text) : NULL;
    free(text);
    return *out_dot ? TN_OK : fail_memory(size);
}

tn_status tn_graph_dot(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                       int32_t scheduled, char **out_dot)
{
    struct task task;
    if (scope->status != TN_OK)
        return scope->status;
    tn_status status = task_create(scope, arrays, (uint32_t)num_arrays, NULL, 0, &task);
    if (status == TN_OK) {
        status = dot_task(scope, &task, scheduled, out_dot);
        task_finish(&task);
    }
    return scope_take_failure(scope, status);
}
