// SPDX-License-Identifier: MIT
// Explanations of planning as JSON: for each node the device, the kernel, and why other
// candidates were rejected; then the plan's segments with their steps and transfers, each
// with the sources of its inputs.
#include "explain.h"

#include <stdlib.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plan/watcher.h"

struct explainer {
    struct plan_watcher watcher;
    json_t *explanation;
    json_t *rejected; // a stack with an array of rejected candidates for each open begin()
    tn_runtime *runtime;
    explain_done *done; // NULL: for explain_planning, whose caller takes the explanation
};

// --- nodes -----------------------------------------------------------------------------

static const char *name_of_kernel(const struct choice *choice)
{
    switch (choice ? choice->kind : CHOICE_NONE) {
    case OP_PROGRAM:
        return "expression";
    case OP_REFERENCE:
        return "reference";
    case OP_KERNEL:
        return choice->kernel->name;
    case OP_HOST:
        return "host";
    case CHOICE_SPLIT:
    case CHOICE_DECOMPOSE:
        return "decomposition";
    default:
        return "";
    }
}

static void explain_set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

// Appends the text of a type to a list.
static void explain_add_type(json_t *types, const tn_type *type)
{
    char text[TYPE_TEXT];
    json_array_append_new(types, json_string(type_print(type, text)));
}

static json_t *explain_innermost(const struct explainer *e)
{
    size_t depth = json_array_size(e->rejected);
    return depth ? json_array_get(e->rejected, depth - 1) : NULL;
}

static void node_begins(struct plan_watcher *watcher)
{
    json_array_append_new(((struct explainer *)watcher)->rejected, json_array());
}

static void node_ends(struct plan_watcher *watcher)
{
    struct explainer *e = (struct explainer *)watcher;
    json_array_remove(e->rejected, json_array_size(e->rejected) - 1);
}

static void candidate_rejected(struct plan_watcher *watcher, const struct device *device,
                               const char *candidate, const char *reason)
{
    char name[256];
    snprintf(name, sizeof(name), "%s on %s", candidate, device->name);
    json_array_append_new(explain_innermost((struct explainer *)watcher),
                          json_pack("{s:s, s:s}", "candidate", name, "reason", reason));
}

static void node_placed(struct plan_watcher *watcher, const struct plan_work *work,
                        const struct node *node, uint32_t device, uint32_t instead_of,
                        const struct choice *choice)
{
    const struct explainer *e = (struct explainer *)watcher;
    char label[LABEL_SIZE];
    json_t *nodes = json_object_get(e->explanation, "nodes"),
           *rejected = explain_innermost(e), *types = json_array();
    for (uint32_t i = 0; i < node->num_outputs; i++)
        explain_add_type(types, &node->outputs[i].type);
    const char *op = node->prim ? node->prim->record.id : label;
    if (!node->prim)
        label_set(label, node->expr->text);
    json_t *entry =
        json_pack("{s:i, s:s, s:O, s:o, s:s, s:s, s:s, s:s, s:i}", "id",
                  (int)json_array_size(nodes), "op", op, "type", json_array_get(types, 0),
                  "types", types, "device", choice ? work->devices[device]->name : "",
                  "instead_of", instead_of != NONE ? work->devices[instead_of]->name : "",
                  "kernel", name_of_kernel(choice), "plugin",
                  choice && choice->kind == OP_KERNEL ? kernel_plugin(choice->kernel) : "",
                  "depth", (int)work->depth);
    if (!node->prim && strcmp(label, node->expr->text) != 0)
        explain_set_text(entry, "text", node->expr->text);
    explain_set_text(entry, "name", node->outputs[0].name);
    json_object_set(entry, "rejected",
                    json_array_size(rejected) > 0 ? rejected : json_null());
    json_array_append_new(nodes, entry);
}

// --- sources ---------------------------------------------------------------------------

static json_t *explain_number(const struct plan_value *v)
{
    double number;
    if (!dtype_is_inexact(v->layout.dtype))
        return json_pack("{s:I}", "number", (json_int_t)v->number);
    memcpy(&number, &v->number, sizeof(number));
    char text[32];
    snprintf(text, sizeof(text), "%.17g", number); // JSON has neither infinity nor NaN
    return number - number == 0 ? json_pack("{s:f}", "number", number)
                                : json_pack("{s:s}", "number", text);
}

// The source of a value: {"leaf"}, {"step", "output"} or {"number"}; {} when it has no
// elements.
static json_t *explain_source(const struct plan_work *work, uint32_t value)
{
    const struct plan_value *v = &work->values[value];
    if (v->is_number)
        return explain_number(v);
    uint32_t producer = work->values[v->base].producer, output = 0;
    if (v->leaf != NONE)
        return json_pack("{s:i}", "leaf", (int)v->leaf);
    if (producer == NONE)
        return json_object();
    const struct plan_op *op = &work->ops[producer];
    while (output + 1 < op->num_outputs && op->outputs[output] != v->base)
        output++;
    return json_pack("{s:i, s:i}", "step", (int)producer, "output", (int)output);
}

static json_t *explain_inputs(const struct plan_work *work, const struct plan_op *op)
{
    json_t *inputs = json_array();
    for (uint32_t i = 0; i < op->num_inputs; i++)
        if (op->inputs[i].value != NONE)
            json_array_append_new(inputs, explain_source(work, op->inputs[i].value));
    return inputs;
}

// --- steps and transfers ---------------------------------------------------------------

static json_t *explain_transfer(const struct plan_work *work, const struct plan *plan,
                                uint32_t id, const struct plan_transfer *t)
{
    const struct plan_op *op = &work->ops[id];
    bool upload = t->from.home == HOME_NONE;
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:o}", "id", (int)id, "label", op->label,
                     "from", upload ? "" : plan->devices[t->from_device]->name, "to",
                     plan->devices[t->to_device]->name, "bytes", (json_int_t)t->size,
                     "inputs", explain_inputs(work, op));
}

static json_t *explain_step(const struct plan_work *work, uint32_t id)
{
    const struct plan_op *op = &work->ops[id];
    const struct choice choice = {op->kind, op->kernel};
    json_t *types = json_array();
    for (uint32_t i = 0; i < op->num_outputs; i++) {
        tn_type type = layout_type(&work->values[op->outputs[i]].layout);
        explain_add_type(types, &type);
    }
    json_t *step =
        json_pack("{s:i, s:s, s:s, s:s, s:O, s:o, s:i, s:i, s:o}", "id", (int)id, "label",
                  op->label, "kernel", name_of_kernel(&choice), "plugin",
                  op->kind == OP_KERNEL ? kernel_plugin(op->kernel) : "", "type",
                  json_array_get(types, 0), "types", types, "outputs", (int)op->num_outputs,
                  "instructions", op->program ? (int)op->program->num_insns : 0, "inputs",
                  explain_inputs(work, op));
    explain_set_text(step, "text", op->text);
    return step;
}

static json_t *explain_segments(const struct plan_work *work, const struct plan *plan)
{
    json_t *segments = json_array();
    uint32_t id = 0;
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        json_t *transfers = json_array(), *steps = json_array();
        for (uint32_t k = 0; k < segment->num_transfers; k++, id++)
            json_array_append_new(
                transfers, explain_transfer(work, plan, id,
                                            &plan->transfers[segment->first_transfer + k]));
        for (uint32_t k = 0; k < segment->num_hosts + segment->num_steps; k++, id++)
            json_array_append_new(steps, explain_step(work, id));
        json_array_append_new(segments,
                              json_pack("{s:i, s:s, s:I, s:o, s:o}", "id", (int)i, "device",
                                        plan->devices[segment->device]->name, "arena_bytes",
                                        (json_int_t)plan->arena_size[segment->device],
                                        "transfers", transfers, "steps", steps));
    }
    return segments;
}

static json_t *explain_leaves(const struct plan_work *work)
{
    json_t *leaves = json_array();
    for (uint32_t i = 0; i < work->task->num_leaves; i++) {
        const tn_array *leaf = work->task->leaves[i];
        const struct value *value = leaf->value;
        uint32_t named = leaf->node->device ? leaf->node->device - 1 : 0;
        char type[TYPE_TEXT];
        json_t *entry = json_pack(
            "{s:i, s:s, s:s, s:b}", "id", (int)i, "type", type_print(&leaf->type, type),
            "device", work->devices[value ? value->storage->device->number : named]->name,
            "donated", task_donates(work->task, i));
        explain_set_text(entry, "name", leaf->name);
        json_array_append_new(leaves, entry);
    }
    return leaves;
}

static json_t *explain_outputs(const struct plan_work *work)
{
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < work->task->num_outputs; i++) {
        const tn_array *output = work->task->outputs[i];
        char type[TYPE_TEXT];
        json_t *entry =
            json_pack("{s:s, s:o}", "type", type_print(&output->type, type), "source",
                      explain_source(work, work->value_of[output->id]));
        explain_set_text(entry, "name", output->name);
        json_array_append_new(outputs, entry);
    }
    return outputs;
}

static void plan_made(struct plan_watcher *watcher, const struct plan_work *work,
                      const struct plan *plan)
{
    json_t *explanation = ((struct explainer *)watcher)->explanation;
    json_object_set_new(explanation, "leaves", explain_leaves(work));
    json_object_set_new(explanation, "segments", explain_segments(work, plan));
    json_object_set_new(explanation, "outputs", explain_outputs(work));
}

// --- watchers --------------------------------------------------------------------------

static void explainer_destroy(struct explainer *e)
{
    json_decref(e->explanation);
    json_decref(e->rejected);
    mem_free(e);
}

static void plan_finished(struct plan_watcher *watcher, const struct plan *plan)
{
    struct explainer *e = (struct explainer *)watcher;
    e->done(e->runtime, e->explanation, plan);
    explainer_destroy(e);
}

static struct explainer *explainer_create(tn_runtime *runtime)
{
    static const struct plan_watcher_ops ops = {
        .begin = node_begins,
        .end = node_ends,
        .rejected = candidate_rejected,
        .placed = node_placed,
        .planned = plan_made,
        .finish = plan_finished,
    };
    struct explainer *e = mem_zalloc(sizeof(*e));
    if (!e)
        return NULL;
    *e = (struct explainer){.watcher = {&ops},
                            .explanation = json_object(),
                            .rejected = json_array(),
                            .runtime = runtime};
    if (!e->rejected || json_object_set_new(e->explanation, "nodes", json_array()) != 0) {
        fail_memory(0);
        explainer_destroy(e);
        return NULL;
    }
    return e;
}

struct plan_watcher *explain_for(tn_runtime *runtime, explain_done *done)
{
    struct explainer *e = explainer_create(runtime);
    if (!e)
        return NULL;
    e->done = done;
    return &e->watcher;
}

tn_status explain_planning(tn_runtime *runtime, struct task *task, struct plan **out_plan,
                           json_t **out_explanation)
{
    struct explainer *e = explainer_create(runtime);
    if (!e)
        return TN_ERR_MEMORY;
    tn_status status = plan_create(runtime, task, &e->watcher, out_plan);
    *out_explanation = json_incref(e->explanation);
    explainer_destroy(e);
    return status;
}

// --- tn_explain ------------------------------------------------------------------------

static tn_status explain_task(tn_scope *scope, struct task *task, char **out_json)
{
    struct plan *plan = NULL;
    json_t *explanation = NULL;
    tn_status status = explain_planning(scope->runtime, task, &plan, &explanation);
    if (status == TN_ERR_UNSUPPORTED &&
        json_array_size(json_object_get(explanation, "nodes")) > 0)
        status = json_object_set_new(explanation, "message", json_string(fail_text())) == 0
                     ? TN_OK // the rejected candidates are the explanation
                     : fail_memory(0);
    if (status == TN_OK) {
        char *text = json_dumps(explanation, JSON_INDENT(1));
        *out_json = text ? mem_strdup(text) : NULL;
        free(text);
        status = *out_json ? TN_OK : fail_memory(0);
    }
    plan_release(plan);
    json_decref(explanation);
    return status;
}

tn_status tn_explain(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                     char **out_json)
{
    struct task task;
    tn_status status = scope_begin(
        scope, "explain", GIVEN({"arrays", arrays, num_arrays}, {"out_json", out_json, 1}));
    if (status != TN_OK)
        return status;
    tn_array **locals = scope_locals(scope, "explain", arrays, num_arrays);
    if (!locals)
        return scope->status;
    status = task_create(scope, locals, (uint32_t)num_arrays, NULL, 0, &task);
    if (status == TN_OK) {
        status = explain_task(scope, &task, out_json);
        task_finish(&task);
    }
    mem_free(locals);
    return scope_take_failure(scope, status);
}
