// SPDX-License-Identifier: MIT
// Explain: plans a graph anew, only to write down how: for each node the device, the
// kernel, and why the other candidates were turned down; then the segments that came of it.
#include <string.h>
#include "../base/fail.h"
#include "plan.h"

json_t *explain_segments(const struct plan *plan)
{
    json_t *segments = json_array();
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        json_t *steps = json_array();
        for (uint32_t k = 0; k < segment->num_steps; k++) {
            const tn_step *step = &plan->steps[segment->first_step + k];
            json_array_append_new(
                steps,
                json_pack("{s:s, s:s, s:i, s:i}", "label", step->label, "kernel",
                          step->kernel    ? step->kernel->name
                          : step->program ? "expression"
                                          : "reference",
                          "instructions", step->program ? (int)step->program->num_insns : 0,
                          "inputs", (int)step->num_inputs));
        }
        json_array_append_new(segments,
                              json_pack("{s:s, s:i, s:I, s:o}", "device",
                                        plan->devices[segment->device]->name, "transfers",
                                        (int)segment->num_transfers, "arena_bytes",
                                        (json_int_t)plan->arena_size[segment->device],
                                        "steps", steps));
    }
    return segments;
}

static tn_status explain_task(tn_scope *scope, const struct task *task, char **out_json)
{
    struct plan *plan = NULL;
    json_t *nodes = json_array(), *root = json_object();
    tn_status status = nodes && root ? TN_OK : fail_memory(0);
    if (status == TN_OK)
        status = plan_create(scope->runtime, task, nodes, &plan);
    if (status == TN_ERR_UNSUPPORTED && json_array_size(nodes) > 0 &&
        json_object_set_new(root, "message", json_string(fail_text())) == 0)
        status = TN_OK; // why not is what was asked for
    if (status == TN_OK && json_object_set(root, "nodes", nodes) != 0)
        status = fail_memory(0);
    if (status == TN_OK && plan &&
        json_object_set_new(root, "segments", explain_segments(plan)) != 0)
        status = fail_memory(0);
    if (status == TN_OK) {
        char *text = json_dumps(root, JSON_INDENT(1));
        *out_json = text ? mem_strdup(text) : NULL;
        free(text);
        status = *out_json ? TN_OK : fail_memory(0);
    }
    plan_release(plan);
    json_decref(nodes);
    json_decref(root);
    return status;
}

tn_status tn_explain(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                     char **out_json)
{
    struct task task;
    if (scope->status != TN_OK)
        return scope->status;
    tn_status status = task_create(scope, arrays, (uint32_t)num_arrays, NULL, 0, &task);
    if (status == TN_OK) {
        status = explain_task(scope, &task, out_json);
        task_finish(&task);
    }
    return scope_take_failure(scope, status);
}
