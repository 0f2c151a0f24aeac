// SPDX-License-Identifier: MIT
// Applies primitives with runtime attributes: each becomes a scalar input.
#include "apply.h"

#include "../attr/fields.h"
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"

// Up to this number of inputs, they are on the stack; only variadic primitives have more.
#define FEW_INPUTS 16

// The inputs of a node while they are collected; `few` is enough for most.
struct given_inputs {
    const tn_array **items;
    uint32_t count;
    const tn_array *few[FEW_INPUTS];
};

static uint32_t dtypes_of(const tn_array *const *inputs, uint32_t num_inputs)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < num_inputs; i++)
        if (inputs[i] && !inputs[i]->weak_kind)
            set |= TN_DTYPE_BIT(inputs[i]->type.dtype);
    return set;
}

// Gives the scalar of a runtime attribute whose value is computed: converted to the dtype
// that such a scalar has, and a weak number as the attribute itself.
static tn_status take_computed(tn_scope *scope, const tn_attr_field *field,
                               const tn_array *array, tn_dtype dtype, uint8_t weak_kind,
                               tn_array **out)
{
    const struct expr *same;
    char text[TYPE_TEXT];
    tn_dtype given = array->type.dtype;
    uint32_t numbers =
        TN_INTEGER_DTYPES | (field->kind == TN_ATTR_F64 ? TN_FLOAT_DTYPES : 0);
    bool fits = array->type.rank == 0 && tn_dtype_in(given, numbers);
    if (!fits)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got %s, expected %s or a scalar of one", field->name,
                    type_print(&array->type, text), field_expects(field));
    if (given == dtype && array->weak_kind == weak_kind) {
        *out = (tn_array *)(uintptr_t)array; // a node's already: see graph_node()
        return TN_OK;
    }
    tn_status status = expr_parse_arrow(scope->runtime, "x -> x", &same);
    if (status == TN_OK)
        status = graph_apply_expr(scope, same, TN_IN(array), NULL, NULL, &dtype, out);
    if (status == TN_OK)
        (*out)->weak_kind = weak_kind;
    return status;
}

// Adds a scalar for each runtime attribute, and resets the attribute's field.
static tn_status add_runtime(tn_scope *scope, const struct prim *prim, void *attrs,
                             const tn_array *const *arrays, struct given_inputs *inputs)
{
    const tn_attr_table *table = &prim->record.attrs;
    uint32_t dtypes = dtypes_of(inputs->items, inputs->count);
    for (uint32_t i = 0; i < prim->num_runtime; i++) {
        const tn_attr_field *field = &table->fields[prim->runtime[i]];
        tn_dtype dtype = tn_runtime_dtype(field->kind, dtypes);
        uint8_t weak_kind = field->kind == TN_ATTR_F64 ? KIND_FLOAT : KIND_SIGNED;
        tn_array *scalar = NULL;
        const tn_array *given = arrays[prim->runtime[i]];
        tn_status status = TN_OK;
        if (given)
            status = take_computed(scope, field, given, dtype, weak_kind, &scalar);
        else if ((scalar =
                      runtime_number(scope, dtype, field_bits(field, attrs), weak_kind)))
            scalar->name = field->name;
        if (status != TN_OK || !scalar)
            return status != TN_OK ? status : scope->status;
        inputs->items[inputs->count++] = scalar;
        attrs_reset(table, prim->runtime[i], attrs);
    }
    return TN_OK;
}

tn_status apply_runtime(tn_scope *scope, const struct prim *prim,
                        const tn_array *const *inputs, uint32_t num_inputs, void *attrs,
                        const tn_array *const *arrays, tn_array **outputs,
                        uint64_t num_outputs)
{
    const tn_primitive *record = &prim->record;
    struct given_inputs all = {.items = all.few, .count = num_inputs};
    tn_status status = apply_check_inputs(prim, inputs, num_inputs);
    if (status != TN_OK) {
        apply_prefix(prim, inputs, num_inputs);
        return scope_take_failure(scope, status);
    }
    if (all.count < record->num_inputs)
        all.count = record->num_inputs;
    if (all.count + prim->num_runtime > FEW_INPUTS &&
        !(all.items = mem_alloc((all.count + prim->num_runtime) * sizeof(*all.items))))
        return scope_take_failure(scope, TN_ERR_MEMORY);
    for (uint32_t i = 0; i < all.count; i++)
        all.items[i] = i < num_inputs ? inputs[i] : NULL;
    status = add_runtime(scope, prim, attrs, arrays, &all);
    if (status != TN_OK && scope->status == TN_OK) {
        apply_prefix(prim, inputs, num_inputs);
        scope_take_failure(scope, status);
    }
    if (status == TN_OK)
        status =
            graph_apply(scope, prim, all.items, all.count, attrs, outputs, num_outputs);
    if (all.items != all.few)
        mem_free(all.items);
    return status;
}
