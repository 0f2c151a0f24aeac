// SPDX-License-Identifier: MIT
// The batching rule of functions with a batch ("..."): one more axis in front of the batch.
#include <string.h>
#include <tenon/ops/rules.h>
#include "rules.h"

// The attributes in struct `values` as a list, to apply the primitive again.
static tn_attr_list attrs_of(const struct ffi_function *function, const void *values,
                             tn_attr items[MAX_ATTRS])
{
    for (uint32_t i = 0; i < function->num_fields; i++) {
        const tn_attr_field *field = &function->fields[i];
        const char *bytes = (const char *)values + field->offset;
        items[i] = (tn_attr){.name = field->name, .kind = field->kind};
        memcpy(field->kind == TN_ATTR_F64 ? (void *)&items[i].f : (void *)&items[i].i,
               bytes, sizeof(int64_t));
    }
    return TN_ATTR_LIST(items, function->num_fields);
}

// The number of the batch's axes, the new one included.
static tn_status count_lead(const struct ffi_function *function, const tn_build *build,
                            const tn_rule *rule, const int32_t *axes, int32_t *out_lead)
{
    *out_lead = 0;
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        const struct ffi_operand *input = &function->operands[i];
        const tn_type *type = build->type(rule->inputs[i]);
        if (input->lead == LEAD_NONE && axes[i] >= 0)
            return build->host->fail(build->host, TN_ERR_UNSUPPORTED,
                                     "vmap: '%s' takes no batch, expected one that is the "
                                     "same for all",
                                     input->name);
        if (input->lead == LEAD_NONE || !type)
            continue;
        int32_t lead = type->rank - (int32_t)input->rank + (axes[i] < 0);
        *out_lead = lead > *out_lead ? lead : *out_lead;
    }
    return TN_OK;
}

tn_status function_vmap(const struct ffi_function *function, const tn_build *build,
                        const tn_rule *rule, const int32_t *axes, tn_array **outputs,
                        int32_t *out_axes)
{
    tn_attr items[MAX_ATTRS];
    tn_array *inputs[MAX_INPUTS] = {NULL};
    int32_t lead = 0;
    tn_status status = count_lead(function, build, rule, axes, &lead);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        int32_t rank = lead + (int32_t)function->operands[i].rank;
        inputs[i] = axes[i] < 0 ? rule->inputs[i]
                                : tn_batch_first(build, rule->inputs[i], axes[i], rank);
    }
    for (uint32_t i = 0; i < function->num_outputs; i++)
        out_axes[i] = 0;
    return build->op_n(build, function->id, (const tn_array *const *)inputs,
                       function->num_inputs, attrs_of(function, rule->attrs, items),
                       outputs, function->num_outputs);
}
