// SPDX-License-Identifier: MIT
// Choose: the implementation of one node on one device, in the documented order: what
// TENON_KERNELS says, the backend's families, predicates, priority; then the expression,
// the decomposition and the reference kernel. Each candidate turned down leaves a reason.
#include <stdio.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plugin/plugin_set.h"
#include "override.h"
#include "plan.h"

void explain_reject(struct plan_work *work, const struct device *device,
                    const char *candidate, const char *format, ...)
{
    if (!work->explain)
        return;
    char reason[512], name[256];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof(reason), format, list);
    va_end(list);
    snprintf(name, sizeof(name), "%s on %s", candidate, device->name);
    if (!work->rejected)
        work->rejected = json_array();
    json_array_append_new(work->rejected,
                          json_pack("{s:s, s:s}", "candidate", name, "reason", reason));
}

// --- predicates -------------------------------------------------------------------------

static const tn_layout *operand(const tn_layout *inputs, uint32_t num_inputs,
                                const tn_layout *outputs, uint32_t k)
{
    return k < num_inputs ? &inputs[k] : &outputs[k - num_inputs];
}

bool layout_has_rows(const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    return last < 0 || layout->stride[last] == 1 || layout->extent[last] <= 1;
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
            explain_reject(work, device, kernel->name, "the device lacks the feature %.*s",
                           (int)length, at);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

// A kernel of the copy itself takes the layout as it is, or does not run.
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
    if (rule->dtypes && !(rule->dtypes & TN_DTYPE_BIT(layout->dtype))) {
        explain_reject(work, device, kernel->name,
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
    explain_reject(work, device, kernel->name, "operand %u is not contiguous%s", k,
                   copied ? ", and no device of TENON_BACKEND can copy it" : "");
    return false;
}

static bool operands_hold(struct plan_work *work, const struct device *device,
                          const tn_kernel *kernel, const struct node *node,
                          const tn_layout *inputs, const tn_layout *outputs)
{
    tn_dtype first = TN_DTYPE_NONE;
    for (uint32_t k = 0; k < node->num_inputs + node->num_outputs; k++) {
        const tn_layout *layout = operand(inputs, node->num_inputs, outputs, k);
        if (layout->dtype == TN_DTYPE_NONE)
            continue;
        if (kernel->num_operands > 0 && kernel->operands) {
            uint32_t rule = k < kernel->num_operands ? k : kernel->num_operands - 1;
            if (!rule_holds(work, device, node, kernel, &kernel->operands[rule], layout, k))
                return false;
        }
        if (first == TN_DTYPE_NONE)
            first = layout->dtype;
        if ((kernel->flags & TN_KERNEL_SAME_DTYPE) && layout->dtype != first) {
            explain_reject(work, device, kernel->name, "needs one dtype, got %s and %s",
                           dtype_name(first), dtype_name(layout->dtype));
            return false;
        }
    }
    return true;
}

// --- the backend's word ----------------------------------------------------------------

#define FEW_VALUES 24

static void fill_values(tn_value *values, const tn_layout *layouts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = (tn_value){.layout = layouts[i]};
}

static bool step_holds(struct plan_work *work, const struct device *device,
                       const struct node *node, const tn_layout *inputs,
                       const tn_layout *outputs, const tn_kernel *kernel,
                       const tn_expr_program *program)
{
    if (!TN_HAS(device->ops, step_check))
        return true;
    uint32_t count = node->num_inputs + node->num_outputs;
    tn_value few[FEW_VALUES], *values = few;
    if (count > FEW_VALUES && !(values = mem_alloc(count * sizeof(*values))))
        return false;
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
    };
    const char *reason = "the backend declined";
    bool holds = device->ops->step_check(device->handle, &step, &reason);
    if (!holds)
        explain_reject(work, device, kernel ? kernel->name : "expression", "%s", reason);
    if (values != few)
        mem_free(values);
    return holds;
}

static bool kernel_holds(struct plan_work *work, struct device *device,
                         const struct kernel_entry *entry, const struct node *node,
                         const tn_layout *inputs, const tn_layout *outputs)
{
    const tn_kernel *kernel = &entry->kernel;
    char reason[160];
    if (overridden(work->runtime, device->ops->name, node->prim->record.id,
                   entry->plugin_id, kernel->name, reason)) {
        explain_reject(work, device, kernel->name, "%s", reason);
        return false;
    }
    if (!features_hold(work, device, kernel) ||
        !operands_hold(work, device, kernel, node, inputs, outputs))
        return false;
    tn_kernel_query query = {
        .struct_size = sizeof(query),
        .inputs = inputs,
        .outputs = outputs,
        .attrs = node->attrs,
        .num_inputs = node->num_inputs,
        .num_outputs = node->num_outputs,
    };
    if (kernel->accepts && !kernel->accepts(&query)) {
        explain_reject(work, device, kernel->name, "it does not take these shapes");
        return false;
    }
    return step_holds(work, device, node, inputs, outputs, kernel, NULL);
}

// --- the order --------------------------------------------------------------------------

static tn_status load_kernels(struct plan_work *work, struct device *device,
                              const struct prim *prim)
{
    struct hash key = {(uint64_t)(uintptr_t)prim, device->number};
    pthread_mutex_lock(&device->late_lock);
    bool loaded = map_get(&device->kernels_loaded, key) != NULL;
    pthread_mutex_unlock(&device->late_lock);
    if (loaded)
        return TN_OK;
    tn_status status =
        plugin_load_kernels(work->runtime, prim->record.id, device->ops->families);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->late_lock);
    map_put(&device->kernels_loaded, key, device);
    pthread_mutex_unlock(&device->late_lock);
    return TN_OK;
}

static bool dtypes_hold(struct plan_work *work, const struct device *device,
                        const struct node *node, const tn_layout *inputs,
                        const tn_layout *outputs)
{
    for (uint32_t k = 0; device->info.dtypes && k < node->num_inputs + node->num_outputs;
         k++) {
        tn_dtype dtype = operand(inputs, node->num_inputs, outputs, k)->dtype;
        if (dtype != TN_DTYPE_NONE && !(device->info.dtypes & TN_DTYPE_BIT(dtype))) {
            explain_reject(work, device, "every kernel", "the device has no %s",
                           dtype_name(dtype));
            return false;
        }
    }
    return true;
}

static tn_status try_expr(struct plan_work *work, struct device *device,
                          const struct node *node, const tn_layout *inputs,
                          const tn_layout *outputs, bool *out_holds)
{
    struct expr_input dtypes[TN_EXPR_MAX_INPUTS];
    tn_dtype results[TN_EXPR_MAX_OUTPUTS];
    const tn_expr_program *program;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        dtypes[i] =
            (struct expr_input){node->inputs[i]->type.dtype, node->inputs[i]->weak_kind};
    for (uint32_t i = 0; i < node->num_outputs; i++)
        results[i] = node->outputs[i].type.dtype;
    *out_holds = false;
    tn_status status = expr_compile(node->expr, dtypes, results, &program);
    if (status == TN_OK)
        *out_holds = step_holds(work, device, node, inputs, outputs, NULL, program);
    return status;
}

static const struct kernel_entry *try_family(struct plan_work *work, struct device *device,
                                             const char *family, const struct node *node,
                                             const tn_layout *inputs,
                                             const tn_layout *outputs)
{
    const struct kernel_entry *entry =
        node->prim ? __atomic_load_n(&node->prim->kernels, __ATOMIC_ACQUIRE) : NULL;
    for (; entry; entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE))
        if (strcmp(entry->kernel.family, family) == 0 &&
            kernel_holds(work, device, entry, node, inputs, outputs))
            return entry;
    return NULL;
}

tn_status choose(struct plan_work *work, struct device *device, const struct node *node,
                 const tn_layout *inputs, const tn_layout *outputs, struct choice *out)
{
    *out = (struct choice){.kind = CHOICE_NONE};
    if (!dtypes_hold(work, device, node, inputs, outputs))
        return TN_OK;
    tn_status loaded = node->prim ? load_kernels(work, device, node->prim) : TN_OK;
    if (loaded != TN_OK)
        return loaded;
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
        const struct kernel_entry *entry =
            try_family(work, device, *family, node, inputs, outputs);
        if (entry) {
            *out = (struct choice){OP_KERNEL, &entry->kernel};
            return TN_OK;
        }
    }
    if (!node->prim)
        return TN_OK;
    if (node->prim->record.decompose)
        out->kind = CHOICE_DECOMPOSE;
    else if (node->prim->record.reference && device->runs_reference)
        out->kind = OP_REFERENCE;
    else
        explain_reject(
            work, device, node->prim->record.id,
            "no kernel of the families that %s consumes is left%s", device->ops->name,
            node->prim->record.reference ? "; its reference runs on the CPU only" : "");
    return TN_OK;
}
