// SPDX-License-Identifier: MIT
// Counts who refers to the counted arrays of a graph that is about to be computed.
//
// A node is spent by the evaluation when each of its outputs gets a value, or is referred
// to by spent nodes alone: it refers to its inputs no more. A leaf that spent nodes alone
// refer to may be written over. Another evaluation that runs refers to its outputs and to
// the values of its leaves, so their memory stays as long as it runs.
#include "held.h"

#include "../base/shape.h"
#include "../device/device.h"
#include "counted.h"

uint32_t held_outputs(struct node *const *nodes, uint32_t num_nodes, uint32_t named,
                      uint32_t most, tn_array **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < num_nodes; i++) {
        for (uint32_t k = 0; k < nodes[i]->num_outputs; k++) {
            tn_array *array = &nodes[i]->outputs[k];
            if (array->value || array->mark == named || !counted_is_held(array))
                continue;
            if (count < most)
                out[count] = array;
            count++;
        }
    }
    return count;
}

bool held_is_taken(struct node *const *nodes, uint32_t num_nodes)
{
    for (uint32_t i = 0; i < num_nodes; i++)
        if (counted_of(nodes[i]->outputs)->taken_by)
            return true;
    return false;
}

// References of spent nodes, by tn_array.id; of outputs AN_OUTPUT.
#define AN_OUTPUT UINT32_MAX

static uint64_t refs_of(const tn_array *counted)
{
    return atomic_load_explicit(&counted->refs, memory_order_acquire);
}

static bool is_spent(const struct node *node, const uint32_t *edges)
{
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        uint32_t spent = edges[node->outputs[i].id];
        if (!node->outputs[i].value && spent != AN_OUTPUT &&
            refs_of(&node->outputs[i]) != spent)
            return false;
    }
    return true;
}

static bool is_sole(const tn_array *leaf, const uint32_t *edges)
{
    const struct value *value = leaf->value;
    return edges[leaf->id] != AN_OUTPUT && refs_of(leaf) == edges[leaf->id] &&
           value_is_sole(value) && layout_is_plain(&value->layout);
}

// Walks from readers to inputs. A node's `position` is 1 when it is spent.
void held_find(struct held_graph *graph, uint32_t *edges)
{
    for (uint32_t i = 0; i < graph->num_outputs; i++)
        edges[graph->outputs[i]->id] = AN_OUTPUT;
    for (uint32_t i = graph->num_nodes; i > 0; i--) {
        struct node *node = graph->nodes[i - 1];
        node->position = is_spent(node, edges);
        for (uint32_t k = 0; node->position && k < node->num_inputs; k++)
            if (node->inputs[k] && edges[node->inputs[k]->id] != AN_OUTPUT)
                edges[node->inputs[k]->id]++;
    }
    graph->donates = false;
    for (uint32_t i = 0; i < graph->num_leaves; i++) {
        graph->donated[i] = is_sole(graph->leaves[i], edges);
        graph->donates |= graph->donated[i];
    }
}

static bool graph_held_is_donated(const struct held_graph *graph, uint32_t leaf)
{
    return graph->donates && graph->donated[leaf];
}

void held_begin(struct held_graph *graph)
{
    for (uint32_t i = 0; i < graph->num_outputs; i++)
        counted_refer(graph->outputs[i]);
    for (uint32_t i = 0; i < graph->num_leaves; i++) {
        graph->values[i] = graph->leaves[i]->value;
        value_retain(graph->values[i]);
        if (graph_held_is_donated(graph, i))
            counted_refer(graph->leaves[i]);
    }
    for (uint32_t i = 0; graph->donates && i < graph->num_nodes; i++) {
        struct node *node = graph->nodes[i];
        for (uint32_t k = 0; k < node->num_outputs; k++)
            counted_refer(&node->outputs[k]);
        if (node->position)
            counted_of(node->outputs)->taken_by = graph;
    }
}

// Drops the references to nodes, which still exist, and empties the donated leaves.
static void held_let_go(const struct held_graph *graph, struct settling *s, bool is_over)
{
    for (uint32_t i = 0; i < graph->num_leaves; i++) {
        tn_array *leaf = graph->donated[i] ? graph->leaves[i] : NULL;
        if (leaf && is_over) {
            leaf->donated = 1;
            leaf->value = NULL;
        }
        if (leaf)
            settling_drop(s, leaf, 1);
    }
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        struct node *node = graph->nodes[i];
        struct counted *c = counted_of(node->outputs);
        if (c->taken_by == graph)
            c->taken_by = NULL;
        for (uint32_t k = 0; k < node->num_outputs; k++)
            settling_drop(s, &node->outputs[k], 1);
    }
    pthread_cond_broadcast(&graph->runtime->counted_returned);
}

void held_end(const struct held_graph *graph, struct value *const *results, bool is_over)
{
    struct settling s = {.runtime = graph->runtime};
    counted_lock(graph->runtime);
    for (uint32_t i = 0; results && i < graph->num_outputs; i++)
        settling_fill(&s, graph->outputs[i], results[i]);
    if (graph->donates)
        held_let_go(graph, &s, is_over);
    for (uint32_t i = 0; i < graph->num_outputs; i++)
        settling_drop(&s, graph->outputs[i], 1);
    settling_end(&s);
    for (uint32_t i = 0; results && i < graph->num_outputs; i++)
        value_release(results[i]);
    for (uint32_t i = 0; i < graph->num_leaves; i++) {
        if (is_over && graph_held_is_donated(graph, i))
            value_release(graph->values[i]); // that of the leaf
        value_release(graph->values[i]);
    }
}

void held_unmark(struct node *const *nodes, uint32_t num_nodes, tn_array *const *arrays,
                 uint64_t num_arrays)
{
    for (uint32_t i = 0; i < num_nodes; i++) {
        struct node *node = nodes[i];
        node->mark = 0;
        for (uint32_t k = 0; k < node->num_inputs; k++)
            if (node->inputs[k])
                node->inputs[k]->mark = 0;
        for (uint32_t k = 0; k < node->num_outputs; k++)
            node->outputs[k].mark = 0;
    }
    for (uint64_t i = 0; i < num_arrays; i++)
        arrays[i]->mark = 0;
}
