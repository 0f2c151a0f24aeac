// SPDX-License-Identifier: MIT
// Chooses the implementation of one node on one device: for each family that the backend
// consumes, in its order, the first kernel by priority that TENON_KERNELS allows and whose
// predicates hold (family expr/1: the node's expression); then the decomposition; then the
// reference. Watchers are told why each candidate was rejected.
#include <stdio.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "override.h"
#include "watcher.h"

static void watch_rejected(const struct plan_work *work, const struct device *device,
                           const char *candidate, const char *format, ...)
    PRINTF_LIKE(4, 5);

// Tells the watcher, if any. The reason is formatted as by printf.
static void watch_rejected(const struct plan_work *work, const struct device *device,
                           const char *candidate, const char *format, ...)
{
    if (!work->watcher)
        return;
    char reason[512];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof(reason), format, list);
    va_end(list);
    work->watcher->ops->rejected(work->watcher, device, candidate, reason);
}

// --- predicates -------------------------------------------------------------------------

// Operand k: inputs come before outputs.
static const tn_layout *operand(const tn_layout *inputs, uint32_t num_inputs,
                                const tn_layout *outputs, uint32_t k)
{
    return k < num_inputs ? &inputs[k] : &outputs[k - num_inputs];
}

static bool has_feature(const char *features, const char *name, size_t length)
{
    for (const char *at = features; *at;) {
        size_t size = strcspn(at, ",");
        if (size == length && memcmp(at, name, length) == 0)
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

static bool features_hold(struct plan_work *work, const struct device *device,
                          const tn_kernel *kernel)
{
    for (const char *at = kernel->features; at && *at;) {
        size_t length = strcspn(at, ",");
        if (!has_feature(device->info.features, at, length)) {
            watch_rejected(work, device, kernel->name, "the device lacks the feature %.*s",
                           (int)length, at);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

// Whether an operand may be copied to contiguous memory first. Kernels of the copy itself
// (tn.copy/1) have to take the layout as it is.
static bool may_copy(struct plan_work *work, const struct device *device,
                     const struct node *node, const tn_layout *layout)
{
    return node->prim != prim_copy(work->runtime) &&
           copy_is_possible(work, device->number, layout);
}

static bool rule_holds(struct plan_work *work, const struct device *device,
                       const struct node *node, const tn_kernel *kernel,
                       const tn_operand_rule *rule, const tn_layout *layout, uint32_t k)
{
    if (!(rule->dtypes & TN_DTYPE_BIT(layout->dtype))) {
        watch_rejected(work, device, kernel->name,
                       "operand %u is %s, which it does not take", k,
                       dtype_name(layout->dtype));
        return false;
    }
    bool met = rule->needs == TN_NEEDS_ANY ||
               (rule->needs == TN_NEEDS_ROWS ? layout_has_rows(layout)
                                             : layout_is_contiguous(layout));
    if (met)
        return true;
    bool copied = !(kernel->flags & TN_KERNEL_NO_COPIES);
    if (copied && may_copy(work, device, node, layout))
        return true;
    watch_rejected(work, device, kernel->name, "operand %u is not contiguous%s", k,
                   copied ? ", and no device of TENON_BACKEND can copy it" : "");
    return false;
}

static bool operands_hold(struct plan_work *work, const struct device *device,
                          const tn_kernel *kernel, const struct node *node,
                          const tn_layout *inputs, const tn_layout *outputs)
{
    tn_dtype first = TN_DTYPE_NONE;
    uint32_t num_runtime = node->prim ? node->prim->num_runtime : 0;
    uint32_t visible = node->num_inputs - num_runtime; // the rules count these, and outputs
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++) {
        const tn_layout *layout = operand(inputs, node->num_inputs, outputs, k);
        if (layout->dtype == TN_DTYPE_NONE || (k >= visible && k < node->num_inputs))
            continue;
        const tn_operand_rule *rule =
            kernel_rule(kernel, k < visible ? k : k - num_runtime);
        if (!rule_holds(work, device, node, kernel, rule, layout, k))
            return false;
        if (first == TN_DTYPE_NONE)
            first = layout->dtype;
        if ((kernel->flags & TN_KERNEL_SAME_DTYPE) && layout->dtype != first) {
            watch_rejected(work, device, kernel->name, "needs one dtype, got %s and %s",
                           dtype_name(first), dtype_name(layout->dtype));
            return false;
        }
    }
    return true;
}

// --- the backend's step_check ----------------------------------------------------------

static void fill_values(tn_value *values, const tn_layout *layouts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = (tn_value){.layout = layouts[i]};
}

// Asks the backend whether it can run the node with this kernel or program.
static tn_status ask_step(struct plan_work *work, const struct device *device,
                          const struct node *node, const tn_layout *inputs,
                          const tn_layout *outputs, const tn_kernel *kernel,
                          const tn_expr_program *program, bool *out_holds)
{
    *out_holds = true;
    if (!TN_HAS(device->ops, step_check))
        return TN_OK;
    uint32_t count = node->num_inputs + node->num_outputs;
    struct arena_mark mark = arena_mark(&work->stack);
    tn_value *values = arena_alloc(&work->stack, count * sizeof(*values));
    if (!values)
        return TN_ERR_MEMORY;
    fill_values(values, inputs, node->num_inputs);
    fill_values(values + node->num_inputs, outputs, node->num_outputs);
    tn_step step = {
        .struct_size = sizeof(step),
        .primitive = node->prim ? &node->prim->record : NULL,
        .attrs = node->attrs,
        .kernel = kernel,
        .program = program,
        .inputs = values,
        .outputs = values + node->num_inputs,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
        .value_size = sizeof(*values),
    };
    const char *reason = "the backend declined";
    *out_holds = device->ops->step_check(device->handle, &step, &reason);
    if (!*out_holds)
        watch_rejected(work, device, kernel ? kernel->name : "expression", "%s", reason);
    arena_rewind(&work->stack, mark);
    return TN_OK;
}

static tn_status ask_kernel(struct plan_work *work, struct device *device,
                            const struct kernel_entry *entry, const struct node *node,
                            const tn_layout *inputs, const tn_layout *outputs,
                            bool *out_holds)
{
    const tn_kernel *kernel = &entry->kernel;
    *out_holds = false;
    char reason[160];
    if (overridden(work->runtime, device->ops->name, node->prim->record.id,
                   entry->plugin_id, kernel->name, reason)) {
        watch_rejected(work, device, kernel->name, "%s", reason);
        return TN_OK;
    }
    if (!features_hold(work, device, kernel) ||
        !operands_hold(work, device, kernel, node, inputs, outputs))
        return TN_OK;
    tn_kernel_query query = {
        .struct_size = sizeof(query),
        .inputs = inputs,
        .outputs = outputs,
        .attrs = node->attrs,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
    };
    if (kernel->accepts && !kernel->accepts(&query)) {
        watch_rejected(work, device, kernel->name, "it does not take these shapes");
        return TN_OK;
    }
    return ask_step(work, device, node, inputs, outputs, kernel, NULL, out_holds);
}

// --- the order --------------------------------------------------------------------------

static bool dtypes_hold(struct plan_work *work, const struct device *device,
                        const struct node *node, const tn_layout *inputs,
                        const tn_layout *outputs)
{
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++) {
        tn_dtype dtype = operand(inputs, node->num_inputs, outputs, k)->dtype;
        if (dtype != TN_DTYPE_NONE && !(device->info.dtypes & TN_DTYPE_BIT(dtype))) {
            watch_rejected(work, device, "every kernel", "the device has no %s",
                           dtype_name(dtype));
            return false;
        }
    }
    return true;
}

// Asks for a row program with the layouts that it will have, the row's axis last.
static tn_status try_rows(struct plan_work *work, struct device *device,
                          const struct node *node, const tn_layout *inputs,
                          const tn_layout *outputs, const tn_expr_program *program,
                          bool *out_holds)
{
    tn_layout layouts[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    int32_t axis = node_axis(node);
    if (!(device->info.flags & TN_DEVICE_ROWS)) {
        watch_rejected(work, device, "expression", "the device runs no row programs");
        return TN_OK;
    }
    for (uint32_t i = 0; i < node->num_inputs; i++)
        layouts[i] =
            layout_axis_last(layout_broadcast(&inputs[i], &node->outputs[0].type), axis);
    for (uint32_t i = 0; i < node->num_outputs; i++)
        layouts[node->num_inputs + i] = layout_axis_last(outputs[i], axis);
    return ask_step(work, device, node, layouts, layouts + node->num_inputs, NULL, program,
                    out_holds);
}

static tn_status try_expr(struct plan_work *work, struct device *device,
                          const struct node *node, const tn_layout *inputs,
                          const tn_layout *outputs, bool *out_holds)
{
    struct expr_types types;
    const tn_expr_program *program;
    const struct expr *expr;
    *out_holds = false;
    node_types(node, &types);
    tn_status status = node_program_expr(node, &expr);
    if (status == TN_OK)
        status = expr_compile(expr, types.inputs, types.outputs, &program);
    if (status != TN_OK)
        return status;
    if (program->flags & TN_EXPR_ROWS)
        return try_rows(work, device, node, inputs, outputs, program, out_holds);
    return ask_step(work, device, node, inputs, outputs, NULL, program, out_holds);
}

static tn_status try_family(struct plan_work *work, struct device *device,
                            const char *family, const struct node *node,
                            const tn_layout *inputs, const tn_layout *outputs,
                            const struct kernel_entry **out_entry)
{
    const struct kernel_entry *entry =
        node->prim ? __atomic_load_n(&node->prim->kernels, __ATOMIC_ACQUIRE) : NULL;
    *out_entry = NULL;
    for (; entry; entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE)) {
        bool holds = false;
        tn_status status = TN_OK;
        if (strcmp(entry->kernel.family, family) == 0)
            status = ask_kernel(work, device, entry, node, inputs, outputs, &holds);
        if (status != TN_OK)
            return status;
        if (holds) {
            *out_entry = entry;
            return TN_OK;
        }
    }
    return TN_OK;
}

tn_status choose(struct plan_work *work, struct device *device, const struct node *node,
                 const tn_layout *inputs, const tn_layout *outputs, struct choice *out)
{
    *out = (struct choice){.kind = CHOICE_NONE};
    if (!dtypes_hold(work, device, node, inputs, outputs))
        return TN_OK;
    for (const char *const *family = device->ops->families; *family; family++) {
        if (strcmp(*family, TN_FAMILY_EXPR) == 0) {
            bool holds = false;
            tn_status status = TN_OK;
            if (node->expr)
                status = try_expr(work, device, node, inputs, outputs, &holds);
            if (status != TN_OK)
                return status;
            if (holds) {
                out->kind = OP_PROGRAM;
                return TN_OK;
            }
            continue;
        }
        const struct kernel_entry *entry;
        tn_status status = try_family(work, device, *family, node, inputs, outputs, &entry);
        if (status != TN_OK)
            return status;
        if (entry) {
            *out = (struct choice){OP_KERNEL, &entry->kernel};
            return TN_OK;
        }
    }
    if (node->prim && node->prim->record.decompose)
        out->kind = CHOICE_DECOMPOSE;
    else if (node->expr && node->expr->reduces && device->runs_expr)
        out->kind = CHOICE_SPLIT;
    else if (!node->prim)
        return TN_OK;
    else if (node->prim->record.reference && device->runs_reference)
        out->kind = OP_REFERENCE;
    else
        watch_rejected(
            work, device, node->prim->record.id,
            "no kernel of the families that %s consumes is left%s", device->ops->name,
            node->prim->record.reference ? "; its reference runs on the CPU only" : "");
    return TN_OK;
}
