// SPDX-License-Identifier: MIT
// Place: nodes become operations. A view becomes a layout of its input's memory.
// Expressions of numbers alone are folded. Each other node gets a device and an
// implementation; copies and transfers are added where the implementation needs them;
// decompositions are expanded.
#include <stdio.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../graph/rules.h"
#include "place.h"

// --- values -----------------------------------------------------------------------------

// All strides are 0: each element is the number.
static tn_status place_add_number(struct plan_work *work, const tn_type *type,
                                  uint64_t bits, int weak_kind, uint32_t *out_value)
{
    tn_layout layout = layout_contiguous(type);
    memset(layout.stride, 0, sizeof(layout.stride));
    tn_status status = work_add_value(work, &layout, 0, out_value);
    if (status != TN_OK)
        return status;
    work->values[*out_value].is_number = 1;
    work->values[*out_value].number = bits;
    work->values[*out_value].weak_kind = (uint8_t)weak_kind;
    return TN_OK;
}

tn_status place_value_for(struct plan_work *work, const struct nodes *nodes,
                          const tn_array *array, uint32_t *out_value)
{
    uint32_t *slot = &nodes->value_of[array->id];
    if (*slot == NONE && array->node->kind == NODE_NUMBER) {
        tn_status status = place_add_number(work, &array->type, array->node->number,
                                            array->weak_kind, slot);
        if (status != TN_OK)
            return status;
    }
    if (*slot == NONE)
        return fail(TN_ERR_INTERNAL, "an array has no value in the plan");
    *out_value = *slot;
    return TN_OK;
}

static tn_status place_add_output(struct plan_work *work, const tn_type *type,
                                  uint32_t device, uint32_t *out_value)
{
    tn_layout layout = layout_contiguous(type);
    return work_add_value(work, &layout, device, out_value);
}

// --- views ------------------------------------------------------------------------------

static tn_status ask_view(const struct node *node, const tn_layout *input, tn_layout *out)
{
    return rule_view(node->prim, input, &node->outputs[0].type, node->attrs, out);
}

static tn_status place_view(struct plan_work *work, const struct nodes *nodes,
                            const struct node *node)
{
    uint32_t source = NONE, view;
    tn_layout layout = {0};
    tn_status status = place_value_for(work, nodes, node->inputs[0], &source);
    if (status != TN_OK)
        return status;
    const struct plan_value *from = &work->values[source];
    if (from->is_number && from->layout.dtype == node->outputs[0].type.dtype)
        return place_add_number(work, &node->outputs[0].type, from->number, from->weak_kind,
                                &nodes->value_of[node->outputs[0].id]);
    if (from->is_number) // its bytes are asked for
        status = place_copy(work, from->device, source, &source);
    if (status != TN_OK)
        return status;
    status = ask_view(node, &work->values[source].layout, &layout);
    if (status == TN_ERR_UNSUPPORTED) {
        status = place_copy(work, work->values[source].device, source, &source);
        if (status != TN_OK) // such as: no device of TENON_BACKEND copies
            return status;
        status = ask_view(node, &work->values[source].layout, &layout);
    }
    if (status != TN_OK) {
        fail_prefix("%s: ", node->prim->record.id);
        return status == TN_ERR_UNSUPPORTED
                   ? fail(TN_ERR_INTERNAL, "%s: no view of a contiguous array",
                          node->prim->record.id)
                   : status;
    }
    status = work_add_value(work, &layout, work->values[source].device, &view);
    if (status != TN_OK)
        return status;
    struct plan_value *v = &work->values[view];
    v->base = work->values[source].base;
    v->leaf = work->values[source].leaf;
    v->producer = work->values[source].producer;
    nodes->value_of[node->outputs[0].id] = view;
    return TN_OK;
}

// --- numbers ----------------------------------------------------------------------------

static bool place_uses_index(const tn_expr_program *program)
{
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (program->insns[i].op == TN_EXPR_INDEX)
            return true;
    return false;
}

// Constant folding: computes an expression now if all its inputs are numbers and it uses
// neither `index` nor complex numbers. *out_folded says whether it was computed.
static tn_status place_fold_numbers(struct plan_work *work, const struct nodes *nodes,
                                    const struct node *node, const struct plan_op *op,
                                    bool *out_folded)
{
    uint64_t inputs[TN_EXPR_MAX_INPUTS], outputs[TN_EXPR_MAX_OUTPUTS];
    *out_folded = false;
    if (place_uses_index(op->program) || (op->program->flags & TN_EXPR_ROWS) ||
        program_complex(op->program))
        return TN_OK;
    for (uint32_t i = 0; i < op->num_inputs; i++) {
        const struct plan_value *v = &work->values[op->inputs[i].value];
        if (!v->is_number)
            return TN_OK;
        inputs[i] = v->number;
    }
    program_run_scalar(op->program, inputs, op->params, 0, outputs);
    *out_folded = true;
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        tn_status status = place_add_number(work, &node->outputs[i].type, outputs[i],
                                            node->outputs[i].weak_kind,
                                            &nodes->value_of[node->outputs[i].id]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// --- operations -------------------------------------------------------------------------

static tn_status op_start(struct plan_work *work, const struct node *node, uint32_t kind,
                          uint32_t device, struct plan_op *out)
{
    *out = (struct plan_op){
        .kind = kind,
        .device = device,
        .prim = node->prim,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
    };
    char label[LABEL_SIZE];
    out->label = node_label(work, node, label);
    out->named = out->label != label;
    if (!out->named)
        out->label = arena_strdup(work->arena, label);
    if (!node->prim && work->watcher)
        out->text = arena_strdup(work->arena, node->expr->text);
    out->inputs = arena_alloc(work->arena, node->num_inputs * sizeof(*out->inputs));
    out->outputs = arena_alloc(work->arena, node->num_outputs * sizeof(*out->outputs));
    if (!out->inputs || !out->outputs || !out->label)
        return TN_ERR_MEMORY;
    if (node->attrs && kind != OP_PROGRAM) {
        void *attrs = arena_alloc(work->arena, node->table->size);
        if (!attrs)
            return TN_ERR_MEMORY;
        memcpy(attrs, node->attrs, node->table->size);
        out->attrs = attrs;
        return intern_attrs(work->interned, node->table, attrs);
    }
    return TN_OK;
}

static tn_status op_finish(struct plan_work *work, const struct nodes *nodes,
                           const struct node *node, struct plan_op *op)
{
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        tn_status status =
            place_add_output(work, &node->outputs[i].type, op->device, &op->outputs[i]);
        if (status != TN_OK)
            return status;
        nodes->value_of[node->outputs[i].id] = op->outputs[i];
    }
    return work_add_op(work, op, NULL);
}

static tn_status place_program(struct plan_work *work, const struct nodes *nodes,
                               const struct node *node, uint32_t device,
                               const struct choice *choice)
{
    struct plan_op op;
    bool folded = false;
    tn_status status = op_start(work, node, OP_PROGRAM, device, &op);
    op.program = choice->program;
    op.row_axis = node_axis(node);
    if (status == TN_OK)
        status = expr_params_in(work->arena, op.program, choice->expr, node->table,
                                node->attrs, &op.params);
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++) {
        uint32_t value = NONE;
        status = place_value_for(work, nodes, node->inputs[i], &value);
        if (status == TN_OK)
            status = place_bring(work, device, true, value, &value);
        if (status == TN_OK)
            op.inputs[i] =
                (struct operand){value, layout_broadcast(&work->values[value].layout,
                                                         &node->outputs[0].type)};
    }
    if (status == TN_OK)
        status = place_fold_numbers(work, nodes, node, &op, &folded);
    if (status != TN_OK || folded)
        return status;
    return op_finish(work, nodes, node, &op);
}

// Copies an input to contiguous memory where the kernel's operand rule needs it.
static tn_status meet_rule(struct plan_work *work, const tn_kernel *kernel, uint32_t k,
                           uint32_t device, uint32_t *value)
{
    if (!kernel)
        return TN_OK;
    const tn_layout *layout = &work->values[*value].layout;
    uint32_t needs = kernel_rule(kernel, k)->needs;
    if (needs == TN_NEEDS_ANY || layout_is_contiguous(layout) ||
        (needs == TN_NEEDS_ROWS && layout_has_rows(layout)))
        return TN_OK;
    return place_copy(work, device, *value, value);
}

static tn_status place_kernel(struct plan_work *work, const struct nodes *nodes,
                              const struct node *node, uint32_t device,
                              const struct choice *choice)
{
    struct plan_op op;
    tn_status status = op_start(work, node, choice->kind, device, &op);
    op.kernel = choice->kernel;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++) {
        uint32_t value = NONE;
        op.inputs[i] = (struct operand){.value = NONE};
        if (!node->inputs[i])
            continue;
        status = place_value_for(work, nodes, node->inputs[i], &value);
        if (status == TN_OK)
            status = place_bring(work, device, false, value, &value);
        if (status == TN_OK)
            status = prim_weak_kind(node->prim, i, node->num_inputs)
                         ? TN_OK
                         : meet_rule(work, choice->kernel, i, device, &value);
        if (status == TN_OK)
            op.inputs[i] = (struct operand){value, work->values[value].layout};
    }
    return status == TN_OK ? op_finish(work, nodes, node, &op) : status;
}

// Keeps the memory of a value that a host operation reads or gives beyond the steps around
// it: the value counts as an output, so that no step writes over it.
static void keep_memory(struct plan_work *work, uint32_t value)
{
    work->values[value].is_output = 1;
    work->values[work->values[value].base].is_output = 1;
}

static tn_status place_host(struct plan_work *work, const struct nodes *nodes,
                            const struct node *node, uint32_t device)
{
    struct plan_op op;
    tn_status status = op_start(work, node, OP_HOST, device, &op);
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++) {
        uint32_t value = NONE;
        op.inputs[i] = (struct operand){.value = NONE};
        if (!node->inputs[i])
            continue;
        status = place_value_for(work, nodes, node->inputs[i], &value);
        if (status == TN_OK)
            status = place_bring(work, device, false, value, &value);
        if (status == TN_OK && !layout_is_plain(&work->values[value].layout))
            status = place_copy(work, device, value, &value);
        if (status != TN_OK)
            return status;
        op.inputs[i] = (struct operand){value, work->values[value].layout};
        keep_memory(work, value);
    }
    if (status == TN_OK)
        status = op_finish(work, nodes, node, &op);
    for (uint32_t i = 0; i < op.num_outputs && status == TN_OK; i++)
        keep_memory(work, op.outputs[i]);
    return status;
}

// --- devices ----------------------------------------------------------------------------

// Whether the array's producer is not placed yet, as it may become one of a pair.
static bool place_is_left(const struct nodes *nodes, const tn_array *array)
{
    const struct node *node = array->node;
    return nodes->pairing && nodes->value_of[array->id] == NONE &&
           task_has(nodes->task, node) && nodes->pairing[node->position].is_made;
}

// Layouts of the operands, inputs first, as candidates will see them: numbers, outputs and
// what is not placed yet are contiguous memory; an input that was not given has dtype NONE.
static tn_status node_layouts(struct plan_work *work, const struct nodes *nodes,
                              const struct node *node, tn_value *values)
{
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        uint32_t value = NONE;
        if (!node->inputs[i]) {
            values[i] = (tn_value){0};
            continue;
        }
        bool left = place_is_left(nodes, node->inputs[i]);
        tn_status status =
            left ? TN_OK : place_value_for(work, nodes, node->inputs[i], &value);
        if (status != TN_OK)
            return status;
        if (left || work->values[value].is_number)
            values[i] = (tn_value){.layout = layout_contiguous(&node->inputs[i]->type)};
        else
            values[i] = (tn_value){.layout = work->values[value].layout};
    }
    for (uint32_t i = 0; i < node->num_outputs; i++)
        values[node->num_inputs + i] =
            (tn_value){.layout = layout_contiguous(&node->outputs[i].type)};
    return TN_OK;
}

tn_status place_fallback(struct plan_work *work, const struct node *node, uint32_t wanted,
                         uint32_t device)
{
    const char *policy = config_get(work->runtime->config, "TENON_FALLBACK");
    char label[LABEL_SIZE];
    const char *name = node_label(work, node, label);
    if (policy && strcmp(policy, "allow") == 0)
        return TN_OK;
    if (policy && strcmp(policy, "error") == 0)
        return fail(TN_ERR_UNSUPPORTED,
                    "%s: %s cannot run it and TENON_FALLBACK=error forbids %s", name,
                    work->devices[wanted]->name, work->devices[device]->name);
    if (!work->warned)
        log_write(work->runtime->config, TN_LOG_WARN, "sched",
                  "%s runs on %s, not on %s; `tenon why` tells the reason, "
                  "TENON_FALLBACK=allow silences this",
                  name, work->devices[device]->name, work->devices[wanted]->name);
    work->warned = true;
    return TN_OK;
}

tn_status place_fail(struct plan_work *work, const struct node *node)
{
    watch_placed(work, node, 0, NONE, NULL);
    char label[LABEL_SIZE], type[TYPE_TEXT], list[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < work->num_devices && used < sizeof(list) - 1; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 work->devices[i]->name);
    return fail(TN_ERR_UNSUPPORTED,
                "%s giving %s runs on none of the selected devices (%s): `tenon why` tells "
                "the reasons; add a backend to TENON_BACKEND",
                node_label(work, node, label), type_print(&node->outputs[0].type, type),
                list);
}

static tn_status place_on_device(struct plan_work *work, const struct nodes *nodes,
                                 const struct node *node, tn_value *values)
{
    tn_status status = node_layouts(work, nodes, node, values);
    uint32_t wanted = node->device ? node->device - 1 : 0;
    for (uint32_t n = 0; n < work->num_devices && status == TN_OK; n++) {
        uint32_t i = n == 0 ? wanted : n <= wanted ? n - 1 : n; // the others in their order
        struct choice choice;
        status = choose(work, work->devices[i], node, values, &choice);
        if (status != TN_OK || choice.kind == CHOICE_NONE)
            continue;
        watch_placed(work, node, i, i != wanted ? wanted : NONE, &choice);
        if (i != wanted && (status = place_fallback(work, node, wanted, i)) != TN_OK)
            return status;
        if (choice.kind == OP_PROGRAM)
            return place_program(work, nodes, node, i, &choice);
        if (choice.kind == OP_HOST)
            return place_host(work, nodes, node, i);
        if (choice.kind == CHOICE_DECOMPOSE || choice.kind == CHOICE_SPLIT)
            return place_decomposed(work, nodes, node, choice.kind == CHOICE_SPLIT);
        return place_kernel(work, nodes, node, i, &choice);
    }
    return status == TN_OK ? place_fail(work, node) : status;
}

// Chooses a kernel for the node on its wanted device, without telling watchers why others
// were not taken.
static tn_status choose_quietly(struct plan_work *work, const struct nodes *nodes,
                                const struct node *node, struct choice *out)
{
    uint32_t device = node->device ? node->device - 1 : 0;
    uint32_t count = node->num_inputs + node->num_outputs;
    struct arena_mark mark = arena_mark(&work->stack);
    tn_value *values = arena_alloc(&work->stack, count * sizeof(*values));
    struct plan_watcher *watcher = work->watcher;
    *out = (struct choice){.kind = CHOICE_NONE};
    if (!values)
        return TN_ERR_MEMORY;
    work->watcher = NULL;
    tn_status status = node_layouts(work, nodes, node, values);
    if (status == TN_OK)
        status = choose(work, work->devices[device], node, values, out);
    work->watcher = watcher;
    arena_rewind(&work->stack, mark);
    return status;
}

tn_status place_kernel_plugin(struct plan_work *work, const struct nodes *nodes,
                              const struct node *node, const char **out_plugin)
{
    struct choice choice;
    tn_status status = choose_quietly(work, nodes, node, &choice);
    *out_plugin =
        status == TN_OK && choice.kind == OP_KERNEL ? kernel_plugin(choice.kernel) : NULL;
    return status;
}

tn_status place_with_kernel(struct plan_work *work, const struct nodes *nodes,
                            const struct node *node, const char *plugin, bool *out_done)
{
    uint32_t device = node->device ? node->device - 1 : 0;
    struct choice choice;
    tn_status status = choose_quietly(work, nodes, node, &choice);
    *out_done = status == TN_OK && choice.kind == OP_KERNEL &&
                (!plugin || strcmp(kernel_plugin(choice.kernel), plugin) == 0);
    if (!*out_done)
        return status;
    watch_begin(work);
    watch_placed(work, node, device, NONE, &choice);
    status = place_kernel(work, nodes, node, device, &choice);
    watch_end(work);
    return status;
}

tn_status place_node(struct plan_work *work, const struct nodes *nodes,
                     const struct node *node)
{
    if (node->prim && (node->prim->record.flags & TN_PRIM_VIEW))
        return place_view(work, nodes, node);
    uint32_t count = node->num_inputs + node->num_outputs;
    struct arena_mark mark = arena_mark(&work->stack);
    tn_value *values = arena_alloc(&work->stack, count * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    watch_begin(work);
    tn_status status = place_on_device(work, nodes, node, values);
    watch_end(work);
    arena_rewind(&work->stack, mark);
    return status;
}

// --- plan_place -------------------------------------------------------------------------

tn_status place_nodes(struct plan_work *work, const struct nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->task->num_nodes; i++) {
        const struct node *node = nodes->task->nodes[i];
        tn_status status = TN_OK;
        uint32_t same = nodes->same_as ? nodes->same_as[i] : i;
        bool is_merged = nodes->pairing && nodes->pairing[i].is_made;
        if (nodes->pairing && nodes->pairing[i].rule)
            status = place_pair(work, nodes, i, &is_merged);
        if (same == i && !is_merged && status == TN_OK)
            status = place_node(work, nodes, node);
        for (uint32_t k = 0; same != i && k < node->num_outputs; k++)
            nodes->value_of[node->outputs[k].id] =
                nodes->value_of[nodes->task->nodes[same]->outputs[k].id];
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// An argument of a traced function has no data yet: it will be contiguous.
static tn_status place_leaf(struct plan_work *work, const tn_array *leaf, uint32_t number)
{
    tn_layout layout = layout_contiguous(&leaf->type);
    uint32_t device = leaf->node->device ? leaf->node->device - 1 : 0, value;
    if (leaf->value) {
        layout = leaf->value->layout;
        device = leaf->value->storage->device->number;
    }
    tn_status status = work_add_value(work, &layout, device, &value);
    if (status != TN_OK)
        return status;
    work->values[value].leaf = number;
    work->value_of[leaf->id] = value;
    return TN_OK;
}

// Gives the value on the first device, contiguous and from its memory's first byte on.
static tn_status place_plain(struct plan_work *work, uint32_t value, uint32_t *out_value)
{
    tn_status status = place_bring(work, 0, false, value, &value);
    if (status == TN_OK && !layout_is_plain(&work->values[value].layout))
        status = place_copy(work, 0, value, &value);
    *out_value = value;
    return status;
}

// An output needs memory on a device, so a number is written to device 0.
static tn_status plan_place_output(struct plan_work *work, const struct nodes *nodes,
                                   const tn_array *output)
{
    uint32_t value = NONE;
    tn_status status = place_value_for(work, nodes, output, &value);
    if (status == TN_OK && work->values[value].is_number)
        status = place_copy(work, 0, value, &value);
    if (status == TN_OK && work->task->plain_outputs)
        status = place_plain(work, value, &value);
    if (status != TN_OK)
        return status;
    nodes->value_of[output->id] = value;
    work->values[value].is_output = 1;
    work->values[work->values[value].base].is_output = 1;
    return TN_OK;
}

tn_status plan_place(struct plan_work *work)
{
    const struct task *task = work->task;
    struct pairing *pairing;
    struct nodes nodes = {task, work->value_of, work->same_as, NULL};
    tn_status status = place_find_pairs(&nodes, &pairing);
    nodes.pairing = pairing;
    for (uint32_t i = 0; i < task->num_leaves && status == TN_OK; i++)
        status = place_leaf(work, task->leaves[i], i);
    if (status == TN_OK)
        status = place_nodes(work, &nodes);
    for (uint32_t i = 0; i < task->num_outputs && status == TN_OK; i++)
        status = plan_place_output(work, &nodes, task->outputs[i]);
    mem_free(pairing);
    return status;
}
