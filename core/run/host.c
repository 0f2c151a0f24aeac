// SPDX-License-Identifier: MIT
// Host operations: calls a primitive's `run` with what it needs to run graphs and to read
// elements (tn_run).
#include <string.h>
#include <tenon/run_memory.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "run.h"

// `run` comes first: the slots cast it to the whole.
struct host_call {
    tn_run_memory run;
    const struct plan *plan;
    const struct plan_host *host;
    enum run_mode mode;
    bool has_begun; // a graph was started
};

static struct host_call *run_host_call_of(const tn_run *run)
{
    return (struct host_call *)run;
}

// A tn_elements is a value.
static struct value *run_host_value_of(const tn_elements *data)
{
    return (struct value *)data;
}

#define WRONG_SIZE "%s: the data has %llu bytes, asked for %llu"

// --- slots ------------------------------------------------------------------------------

static tn_elements *slot_retain(const tn_run *run, tn_elements *data)
{
    (void)run;
    if (data)
        value_retain(run_host_value_of(data));
    return data;
}

static void slot_release(const tn_run *run, tn_elements *data)
{
    (void)run;
    value_release(run_host_value_of(data));
}

static tn_status slot_read(const tn_run *run, const tn_elements *data, void *bytes,
                           uint64_t size)
{
    const struct value *value = run_host_value_of(data);
    (void)run;
    if (!data || !bytes)
        return fail(TN_ERR_ARGUMENT, "read: %s is NULL", data ? "bytes" : "data");
    uint64_t whole = layout_bytes(&value->layout);
    if (size != whole)
        return fail(TN_ERR_ARGUMENT, WRONG_SIZE, "read", (unsigned long long)whole,
                    (unsigned long long)size);
    return storage_read(value->storage, value->offset, bytes, size);
}

static void slot_type(const tn_run *run, const tn_elements *data, tn_type *out)
{
    (void)run;
    *out = layout_type(&run_host_value_of(data)->layout);
}

static tn_status slot_write(const tn_run *run, uint32_t output, const void *bytes,
                            uint64_t size)
{
    const struct host_call *call = run_host_call_of(run);
    if (output >= run->num_outputs || run->outputs[output])
        return fail(TN_ERR_ARGUMENT, "write: output %u is none that is NULL", output);
    tn_type type = layout_type(&call->host->outputs[output]);
    uint64_t whole = type_bytes(&type);
    if (size != whole)
        return fail(TN_ERR_ARGUMENT, WRONG_SIZE, "write", (unsigned long long)whole,
                    (unsigned long long)size);
    return value_from_host(call->plan->runtime, 0, &type, bytes,
                           (struct value **)&run->outputs[output]);
}

// An output whose elements `run` writes on the device.
static tn_status make_output(const struct host_call *call, uint32_t output)
{
    const tn_run *run = &call->run.run;
    struct device **devices;
    uint32_t count;
    struct storage *storage;
    tn_type type = layout_type(&call->host->outputs[output]);
    tn_layout layout = layout_contiguous(&type);
    tn_status status = devices_open(call->plan->runtime, &devices, &count);
    if (status != TN_OK)
        return status;
    struct device *device = run->num_inputs > 0
                                ? run_host_value_of(run->inputs[0])->storage->device
                                : devices[0];
    status = storage_create(device, type_bytes(&type), QUEUE_HOST, &storage);
    if (status != TN_OK)
        return status;
    status = value_create(storage, 0, &layout, (struct value **)&run->outputs[output]);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}

static tn_status slot_export(const tn_run *run, uint32_t operand, uint32_t wants,
                             tn_run_export *out)
{
    bool is_output = operand >= run->num_inputs;
    uint32_t output = is_output ? operand - run->num_inputs : 0;
    if (is_output && output >= run->num_outputs)
        return fail(TN_ERR_ARGUMENT, "operand_export: there is no operand %u", operand);
    tn_status status = is_output && !run->outputs[output]
                           ? make_output(run_host_call_of(run), output)
                           : TN_OK;
    return status == TN_OK
               ? value_export(run_host_value_of(is_output ? run->outputs[output]
                                                          : run->inputs[operand]),
                              wants, out)
               : status;
}

static tn_status run_host_check_inputs(const tn_graph *graph, tn_elements *const *inputs,
                                       uint64_t count)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    if (count < graph->num_inputs)
        return fail(TN_ERR_ARGUMENT, "call: got %llu inputs, the graph has %u",
                    (unsigned long long)count, graph->num_inputs);
    for (uint32_t i = 0; i < graph->num_inputs; i++) {
        if (!inputs[i])
            return fail(TN_ERR_ARGUMENT, "call: input %u is NULL", i);
        tn_type type = layout_type(&run_host_value_of(inputs[i])->layout);
        if (!type_equal(&type, &graph->inputs[i]))
            return fail(TN_ERR_ARGUMENT, "call: input %u is %s, the graph takes %s", i,
                        type_print(&type, got), type_print(&graph->inputs[i], expected));
    }
    return TN_OK;
}

// The plan for these inputs, with a reference. `given` has room for the graph's inputs.
static tn_status find_plan(const struct host_call *call, const tn_graph *graph,
                           tn_elements *const *inputs, uint64_t num_given, uint8_t *given,
                           struct plan **out_plan)
{
    bool any = false;
    for (uint32_t i = 0; i < graph->num_inputs; i++) {
        given[i] = i < num_given && value_is_sole(run_host_value_of(inputs[i]));
        any |= given[i];
    }
    for (uint32_t i = 0; !any && i < call->host->num_graphs; i++)
        if (call->host->graphs[i].graph == graph) {
            *out_plan = call->host->graphs[i].plan;
            plan_retain(*out_plan);
            return TN_OK;
        }
    return graph_plan(call->plan->runtime, graph, any ? given : NULL, out_plan);
}

static tn_status host_run_graph(struct host_call *call, const tn_graph *graph,
                                tn_elements *const *inputs, uint64_t num_given,
                                tn_elements **outputs)
{
    struct plan *plan = NULL;
    bool has_begun = false;
    uint64_t num_values = (uint64_t)graph->num_inputs + graph->num_outputs;
    struct value **values = mem_zalloc((num_values + 1) * sizeof(*values));
    uint8_t *given = mem_alloc((uint64_t)graph->num_inputs + 1);
    tn_status status = values && given ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = find_plan(call, graph, inputs, num_given, given, &plan);
    for (uint32_t i = 0; i < graph->num_inputs && status == TN_OK; i++)
        values[i] = run_host_value_of(inputs[i]);
    if (status == TN_OK)
        status = plan_run(plan, values, values + graph->num_inputs, call->mode, &has_begun);
    for (uint32_t i = 0; i < graph->num_outputs && status == TN_OK; i++)
        outputs[i] = (tn_elements *)values[graph->num_inputs + i];
    call->has_begun |= has_begun;
    plan_release(plan);
    mem_free(given);
    mem_free(values);
    return status;
}

static tn_status slot_call(const tn_run *run, const tn_graph *graph,
                           tn_elements *const *inputs, uint64_t num_inputs,
                           uint64_t num_given, tn_elements **outputs)
{
    tn_status status = graph && outputs && (inputs || !num_inputs)
                           ? TN_OK
                           : fail(TN_ERR_ARGUMENT, "call: the %s NULL",
                                  !graph     ? "graph is"
                                  : !outputs ? "outputs are"
                                             : "inputs are");
    if (status == TN_OK && num_given > num_inputs)
        status = fail(TN_ERR_ARGUMENT, "call: gives %llu of %llu inputs away",
                      (unsigned long long)num_given, (unsigned long long)num_inputs);
    if (status != TN_OK)
        return status;
    status = run_host_check_inputs(graph, inputs, num_inputs);
    if (status == TN_OK)
        status = host_run_graph(run_host_call_of(run), graph, inputs, num_given, outputs);
    for (uint64_t i = 0; i < num_given; i++)
        value_release(run_host_value_of(inputs[i]));
    return status;
}

// --- the call ---------------------------------------------------------------------------

static const char *run_host_owner(const struct prim *prim)
{
    return prim->plugin_id ? prim->plugin_id : "the application";
}

static tn_status run_host_check_outputs(const struct plan_host *host,
                                        struct value *const *outputs)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    for (uint32_t i = 0; i < host->num_outputs; i++) {
        if (!outputs[i])
            return fail(TN_ERR_INTERNAL, "run of %s leaves output %u NULL",
                        run_host_owner(host->prim), i);
        tn_type type = layout_type(&outputs[i]->layout),
                wanted = layout_type(&host->outputs[i]);
        if (!type_equal(&type, &wanted))
            return fail(TN_ERR_INTERNAL, "run of %s gives %s for output %u, infer %s",
                        run_host_owner(host->prim), type_print(&type, got), i,
                        type_print(&wanted, expected));
    }
    return TN_OK;
}

tn_status host_run(const struct plan *plan, const struct plan_host *host,
                   struct value *const *inputs, struct value **outputs, enum run_mode mode,
                   bool *out_has_begun)
{
    struct host_call call = {
        .run = {.run = {.struct_size = sizeof(call.run),
                        .host = host->prim->host,
                        .attrs = host->attrs,
                        .inputs = (tn_elements *const *)inputs,
                        .outputs = (tn_elements **)outputs,
                        .num_inputs = host->num_inputs,
                        .num_outputs = host->num_outputs,
                        .call = slot_call,
                        .read = slot_read,
                        .retain = slot_retain,
                        .release = slot_release},
                .type = slot_type,
                .write = slot_write,
                .operand_export = slot_export},
        .plan = plan,
        .host = host,
        .mode = mode,
    };
    fail_clear();
    tn_status status = fail_from(host->prim->record.run(&call.run.run), "rule run of %s",
                                 run_host_owner(host->prim));
    if (status == TN_OK)
        status = run_host_check_outputs(host, outputs);
    if (status != TN_OK)
        fail_prefix("%s: ", host->prim->record.id);
    *out_has_begun = call.has_begun;
    return status; // outputs of a failed run are the record's, which is emptied
}
