// SPDX-License-Identifier: MIT
// Counts who refers to the counted arrays of a graph that is about to be computed.
//
// A node is spent by the evaluation when each of its outputs gets a value, or is referred
// to by spent nodes and the evaluation's own scope alone: it refers to its inputs no more.
// A leaf that spent nodes alone refer to may be written over.
//
// Threads. All is decided under tn_runtime.counted_lock, and spent nodes are marked as
// taken before it is released. Who referred to something of the graph before is counted, so
// nothing is taken from under it; who comes to a spent node later waits for its value.
#include "held.h"

#include "../base/shape.h"
#include "../device/device.h"
#include "counted.h"

uint32_t held_outputs(struct node *const *nodes, uint32_t num_nodes, uint32_t named,
                      uint32_t most, tn_array **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < num_nodes; i++) {
        const struct counted *c = nodes[i]->counted;
        for (uint32_t k = 0; c && k < nodes[i]->num_outputs; k++) {
            tn_array *local = &nodes[i]->outputs[k];
            if (local->value || local->mark == named ||
                !counted_is_held(&c->node.outputs[k]))
                continue;
            if (count < most)
                out[count] = local;
            count++;
        }
    }
    return count;
}

// References of spent nodes, by tn_array.id; of outputs AN_OUTPUT.
#define AN_OUTPUT UINT32_MAX

static uint64_t refs_of(const tn_array *counted)
{
    return atomic_load_explicit(&counted->refs, memory_order_acquire);
}

static bool is_spent(const struct node *node, const uint32_t *edges)
{
    const struct counted *c = node->counted;
    if (!c || c->is_data || c->taken_by)
        return false;
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        uint32_t spent = edges[node->outputs[i].id];
        if (!node->outputs[i].value && spent != AN_OUTPUT &&
            refs_of(&c->node.outputs[i]) != UINT64_C(1) + spent)
            return false;
    }
    return true;
}

// From users to inputs.
static void find_spent(const struct held_graph *graph, uint32_t *edges)
{
    for (uint32_t i = graph->num_nodes; i > 0; i--) {
        const struct node *node = graph->nodes[i - 1];
        if (!is_spent(node, edges))
            continue;
        node->counted->taken_by = graph;
        for (uint32_t k = 0; k < node->num_inputs; k++)
            if (node->inputs[k] && edges[node->inputs[k]->id] != AN_OUTPUT)
                edges[node->inputs[k]->id]++;
    }
}

// Two refer to a value: the counted array, and what stands for it.
static bool is_sole(const tn_array *leaf, const uint32_t *edges)
{
    const struct counted *c = leaf->node->counted;
    const struct value *value = leaf->value;
    if (!c || !value || edges[leaf->id] == AN_OUTPUT)
        return false;
    const tn_array *counted = &c->node.outputs[leaf->output];
    return counted->value == value && refs_of(counted) == UINT64_C(1) + edges[leaf->id] &&
           atomic_load_explicit(&value->refs, memory_order_acquire) == 2 &&
           atomic_load_explicit(&value->storage->refs, memory_order_acquire) == 1 &&
           value->offset == 0 && layout_is_plain(&value->layout) &&
           storage_is_reusable(value->storage);
}

tn_status held_take(const struct held_graph *graph, uint8_t *given, bool *out_any)
{
    uint32_t *edges = mem_zalloc((graph->num_ids + UINT64_C(1)) * sizeof(*edges));
    bool any = false;
    if (!edges)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < graph->num_outputs; i++)
        edges[graph->outputs[i]->id] = AN_OUTPUT;
    counted_lock(graph->runtime);
    find_spent(graph, edges);
    for (uint32_t i = 0; i < graph->num_leaves; i++) {
        given[i] = is_sole(graph->leaves[i], edges);
        any = any || given[i];
    }
    counted_unlock(graph->runtime);
    mem_free(edges);
    if (!any)
        held_give(graph);
    *out_any = any;
    return TN_OK;
}

void held_give(const struct held_graph *graph)
{
    counted_lock(graph->runtime);
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        if (graph->nodes[i]->counted && graph->nodes[i]->counted->taken_by == graph)
            graph->nodes[i]->counted->taken_by = NULL;
    pthread_cond_broadcast(&graph->runtime->counted_given);
    counted_unlock(graph->runtime);
}
