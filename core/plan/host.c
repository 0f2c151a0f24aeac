// SPDX-License-Identifier: MIT
// Host operations: primitives whose `run` the host calls between the steps of a plan, and
// the plans of the graphs among their attributes.
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

// --- plans of graphs --------------------------------------------------------------------

// Seed of the key of a graph's plan, which no task's signature begins with.
#define GRAPH_PLAN UINT64_C(0x706c616e00000001)

static struct hash plan_key(const tn_graph *graph, const uint8_t *given)
{
    struct hash h = hash_join(hash_start(GRAPH_PLAN), graph_key(graph));
    return given ? hash_bytes(h, given, graph->num_inputs) : h;
}

static tn_status plan_in(tn_scope *scope, const tn_graph *graph, const uint8_t *given,
                         struct plan **out_plan)
{
    uint32_t num_inputs = graph->num_inputs;
    tn_array **arrays = arena_alloc(
        &scope->arena, ((uint64_t)num_inputs + graph->num_outputs + 1) * sizeof(*arrays));
    struct task task = {0};
    if (!arrays)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs; i++)
        if (!(arrays[i] = leaf_create(scope, NODE_INPUT, &graph->inputs[i])))
            return scope->status;
    tn_status status = graph_inline(scope, graph, arrays, num_inputs, arrays + num_inputs,
                                    graph->num_outputs);
    if (status != TN_OK)
        return fail(status, "%s", tn_scope_error(scope));
    status = task_create(scope, arrays + num_inputs, graph->num_outputs, arrays, num_inputs,
                         &task);
    task.signature = plan_key(graph, given);
    task.donated = given;
    task.num_donated = given ? num_inputs : 0;
    task.plain_outputs = true;
    if (status == TN_OK)
        status = plan_create(scope->runtime, &task, NULL, out_plan);
    task_finish(&task);
    return status;
}

tn_status graph_plan(tn_runtime *runtime, const tn_graph *graph, const uint8_t *given,
                     struct plan **out_plan)
{
    if ((*out_plan = plan_cache_get(runtime, plan_key(graph, given))))
        return TN_OK;
    tn_scope *scope = tn_scope_open(runtime);
    if (!scope)
        return TN_ERR_MEMORY;
    scope->tracing = true;
    tn_status status = plan_in(scope, graph, given, out_plan);
    tn_scope_close(scope);
    if (status == TN_OK)
        plan_cache_put(runtime, *out_plan);
    return status;
}

// --- the operation ----------------------------------------------------------------------

static void write_input(const struct plan_work *work, const struct operand *in,
                        struct host_input *out)
{
    if (in->value == NONE)
        return;
    const struct plan_value *base = &work->values[work->values[in->value].base];
    *out =
        (struct host_input){{base->home, base->home_index}, base->home_offset, in->layout};
}

static tn_status plan_graphs(struct plan_work *work, const struct plan_op *op,
                             struct plan_host *host)
{
    const tn_attr_table *table = &op->prim->record.attrs;
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_graph *graph = NULL;
        if (table->fields[i].kind == TN_ATTR_GRAPH)
            memcpy(&graph, (const char *)op->attrs + table->fields[i].offset,
                   sizeof(graph));
        if (!graph)
            continue;
        struct host_graph *g = &host->graphs[host->num_graphs];
        tn_status status = graph_plan(work->runtime, graph, NULL, &g->plan);
        if (status != TN_OK) {
            fail_prefix("%s: %s: ", op->prim->record.id, table->fields[i].name);
            return status;
        }
        g->graph = graph;
        host->num_graphs++;
    }
    return TN_OK;
}

tn_status plan_write_host(struct plan_work *work, struct plan *plan,
                          const struct plan_op *op, struct plan_host *out)
{
    *out = (struct plan_host){
        .prim = op->prim,
        .attrs = op->attrs,
        .label = arena_strdup(&plan->arena, op->label),
        .inputs = arena_alloc(&plan->arena, (op->num_inputs + 1) * sizeof(*out->inputs)),
        .outputs = arena_alloc(&plan->arena, (op->num_outputs + 1) * sizeof(*out->outputs)),
        .graphs = arena_alloc(&plan->arena, (op->prim->record.attrs.num_fields + 1) *
                                                sizeof(*out->graphs)),
        .num_inputs = op->num_inputs,
        .num_outputs = op->num_outputs,
        .first_made = work->values[op->outputs[0]].home_index,
    };
    if (!out->label || !out->inputs || !out->outputs || !out->graphs)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < op->num_inputs; i++)
        write_input(work, &op->inputs[i], &out->inputs[i]);
    for (uint32_t i = 0; i < op->num_outputs; i++)
        out->outputs[i] = work->values[op->outputs[i]].layout;
    return plan_graphs(work, op, out);
}

void plan_host_finish(struct plan_host *host)
{
    for (uint32_t i = 0; i < host->num_graphs; i++)
        plan_release(host->graphs[i].plan);
}
