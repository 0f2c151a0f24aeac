// SPDX-License-Identifier: MIT
// Chooses the implementation of one node on one device: for each kernel family that the
// backend consumes, in its order, the first kernel by priority that TENON_KERNELS allows
// and whose predicates hold (family expr/1: the node's expression); then, on the first
// device, the primitive's `run`; then the decomposition; then the reference. Watchers are
// told why each candidate was rejected.
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
                          const tn_value *values)
{
    tn_dtype first = TN_DTYPE_NONE;
    uint32_t num_runtime = node->prim ? node->prim->num_runtime : 0;
    uint32_t visible = node->num_inputs - num_runtime; // the rules count these, and outputs
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++) {
        const tn_layout *layout = &values[k].layout;
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

// Asks the backend whether it can run the node with this kernel or program.
static void ask_step(struct plan_work *work, const struct device *device,
                     const struct node *node, const tn_value *values,
                     const tn_kernel *kernel, const tn_expr_program *program,
                     bool *out_holds)
{
    *out_holds = true;
    if (!TN_HAS(device->ops, step_check))
        return;
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
}

tn_status choose_ask_accepts(struct plan_work *work, const struct device *device,
                             const tn_kernel *kernel, const tn_step *step, uint64_t fused,
                             bool *out_holds)
{
    *out_holds = true;
    if (!kernel->accepts)
        return TN_OK;
    uint32_t count = step->num_inputs + step->num_outputs;
    struct arena_mark mark = arena_mark(&work->stack);
    tn_layout *layouts = arena_alloc(&work->stack, count * sizeof(*layouts));
    if (!layouts)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        layouts[i] = step->inputs[i].layout;
    for (uint32_t i = 0; i < step->num_outputs; i++)
        layouts[step->num_inputs + i] = step->outputs[i].layout;
    const tn_kernel_query query = {
        .struct_size = sizeof(query),
        .inputs = layouts,
        .outputs = layouts + step->num_inputs,
        .attrs = step->attrs,
        .num_inputs = step->num_inputs,
        .num_outputs = step->num_outputs,
        .fused = fused,
        .num_workers = device->num_workers,
    };
    *out_holds = kernel->accepts(&query);
    arena_rewind(&work->stack, mark);
    return TN_OK;
}

static tn_status ask_kernel(struct plan_work *work, struct device *device,
                            const struct kernel_entry *entry, const struct node *node,
                            const tn_value *values, bool *out_holds)
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
        !operands_hold(work, device, kernel, node, values))
        return TN_OK;
    bool accepted;
    const tn_step step = {.attrs = node->attrs,
                          .inputs = values,
                          .outputs = values + node->num_inputs,
                          .num_inputs = node->num_inputs,
                          .num_outputs = node->num_outputs};
    tn_status status = choose_ask_accepts(work, device, kernel, &step, 0, &accepted);
    if (status != TN_OK)
        return status;
    if (!accepted)
        watch_rejected(work, device, kernel->name, "it does not take these shapes");
    else
        ask_step(work, device, node, values, kernel, NULL, out_holds);
    return TN_OK;
}

// --- the order --------------------------------------------------------------------------

static bool dtypes_hold(struct plan_work *work, const struct device *device,
                        const struct node *node, const tn_value *values)
{
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++) {
        tn_dtype dtype = values[k].layout.dtype;
        if (dtype != TN_DTYPE_NONE && !(device->info.dtypes & TN_DTYPE_BIT(dtype))) {
            watch_rejected(work, device, "every kernel", "the device has no %s",
                           dtype_name(dtype));
            return false;
        }
    }
    return true;
}

// Asks for a row program with the layouts that it will have, the row's axis last.
static void try_rows(struct plan_work *work, struct device *device, const struct node *node,
                     const tn_value *values, const tn_expr_program *program,
                     bool *out_holds)
{
    tn_value moved[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    int32_t axis = node_axis(node);
    if (program_complex(program)) {
        watch_rejected(work, device, "expression", "row programs have no complex numbers");
        return;
    }
    if (!(device->info.flags & TN_DEVICE_ROWS)) {
        watch_rejected(work, device, "expression", "the device runs no row programs");
        return;
    }
    for (uint32_t i = 0; i < node->num_inputs + node->num_outputs; i++) {
        tn_layout layout = values[i].layout;
        if (i < node->num_inputs)
            layout = layout_broadcast(&layout, &node->outputs[0].type);
        moved[i] = (tn_value){.layout = layout_axis_last(layout, axis)};
    }
    ask_step(work, device, node, moved, NULL, program, out_holds);
}

// out->kind stays CHOICE_NONE when the device does not run the program.
static tn_status try_expr(struct plan_work *work, struct device *device,
                          const struct node *node, const tn_value *values,
                          struct choice *out)
{
    struct expr_types types;
    bool holds = false;
    node_types(node, &types);
    tn_status status = node_program_expr(node, &out->expr);
    if (status == TN_OK)
        status = expr_compile(out->expr, types.inputs, types.outputs, &out->program);
    if (status != TN_OK)
        return status;
    uint32_t missing = program_complex(out->program) & ~device->info.dtypes;
    if (missing)
        watch_rejected(work, device, "expression", "the device has no %s",
                       dtype_name(__builtin_ctz(missing)));
    else if (out->program->flags & TN_EXPR_ROWS)
        try_rows(work, device, node, values, out->program, &holds);
    else
        ask_step(work, device, node, values, NULL, out->program, &holds);
    if (holds)
        out->kind = OP_PROGRAM;
    return TN_OK;
}

// Loads the plugins that bring kernels of the kernel family. Plugins of a later family are
// not loaded when an earlier one has a kernel.
static tn_status load_family(struct plan_work *work, struct device *device,
                             const char *family, const struct prim *prim)
{
    size_t mixed = ((uintptr_t)prim >> 6) + ((uintptr_t)family >> 2);
    size_t slot = mixed % (sizeof(work->recent) / sizeof(work->recent[0]));
    if (work->recent[slot].prim == prim && work->recent[slot].family == family)
        return TN_OK;
    tn_status status = device_load_kernels(device, prim, family);
    if (status == TN_OK) {
        work->recent[slot].prim = prim;
        work->recent[slot].family = family;
    }
    return status;
}

static tn_status try_family(struct plan_work *work, struct device *device,
                            const char *family, const struct node *node,
                            const tn_value *values, const struct kernel_entry **out_entry)
{
    *out_entry = NULL;
    if (!node->prim)
        return TN_OK;
    tn_status loaded = load_family(work, device, family, node->prim);
    if (loaded != TN_OK)
        return loaded;
    const struct kernel_entry *entry =
        __atomic_load_n(&node->prim->kernels, __ATOMIC_ACQUIRE);
    for (; entry; entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE)) {
        bool holds = false;
        tn_status status = TN_OK;
        if (strcmp(entry->kernel.family, family) == 0)
            status = ask_kernel(work, device, entry, node, values, &holds);
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
                 const tn_value *values, struct choice *out)
{
    *out = (struct choice){.kind = CHOICE_NONE};
    if (!dtypes_hold(work, device, node, values))
        return TN_OK;
    for (const char *const *family = device->ops->families; *family; family++) {
        if (strcmp(*family, TN_FAMILY_EXPR) == 0) {
            tn_status status = TN_OK;
            if (node->expr)
                status = try_expr(work, device, node, values, out);
            if (status != TN_OK || out->kind == OP_PROGRAM)
                return status;
            continue;
        }
        const struct kernel_entry *entry;
        tn_status status = try_family(work, device, *family, node, values, &entry);
        if (status != TN_OK)
            return status;
        if (entry) {
            *out = (struct choice){.kind = OP_KERNEL, .kernel = &entry->kernel};
            return TN_OK;
        }
    }
    if (node->prim && node->prim->record.run && device->number == 0)
        out->kind = OP_HOST;
    else if (node->prim && node->prim->record.decompose)
        out->kind = CHOICE_DECOMPOSE;
    else if (node->expr && node->expr->reduces && device->runs_expr)
        out->kind = CHOICE_SPLIT;
    else if (!node->prim)
        return TN_OK;
    else if (node->prim->record.reference && device->runs_reference)
        out->kind = OP_REFERENCE;
    else
        watch_rejected(work, device, node->prim->record.id,
                       "it has no kernel that %s can run%s", device->ops->name,
                       node->prim->record.reference ? "; its reference runs on the CPU only"
                                                    : "");
    return TN_OK;
}
