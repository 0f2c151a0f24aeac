// SPDX-License-Identifier: MIT
// Applies primitives and expressions: checks the inputs, infers the types, makes a node.
// Computes nothing.
#include "apply.h"
#include "rules.h"

#include <stdio.h>
#include <string.h>
#include "../attr/fields.h"
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"

// Up to this number of inputs, infer_by_rule() uses the stack; only variadic primitives
// have more inputs.
#define FEW_INPUTS 16
// The most bytes of input names in a message; longer lists are left out.
#define MOST_NAMES 160

// --- inputs -----------------------------------------------------------------------------

static uint32_t count_required(const tn_primitive *record)
{
    uint32_t required = 0;
    while (required < record->num_inputs &&
           !(record->inputs[required].flags & TN_INPUT_OPTIONAL))
        required++;
    return required;
}

static tn_status wrong_dtype(const tn_input_info *info, tn_dtype got)
{
    char names[TN_NUM_DTYPES * 16] = "";
    size_t used = 0;
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        if (tn_dtype_in(dtype, info->dtypes))
            used =
                (size_t)(stpcpy(stpcpy(names + used, used ? ", " : ""), dtype_name(dtype)) -
                         names);
    bool may_convert =
        tn_dtype_in(got, TN_FLOAT8_DTYPES) && (info->dtypes & TN_FLOAT_DTYPES);
    fail(TN_ERR_ARGUMENT, "input %s is %s, expected %s%s%s", info->name, dtype_name(got),
         strchr(names, ',') ? "one of " : "", names,
         may_convert ? ": convert it with base.astype first" : "");
    return fail_set_dtype(true);
}

tn_status apply_check_inputs(const struct prim *prim, const tn_array *const *inputs,
                             uint32_t num_inputs)
{
    const tn_primitive *record = &prim->record;
    uint32_t required = count_required(record);
    bool variadic = record->num_inputs > 0 &&
                    (record->inputs[record->num_inputs - 1].flags & TN_INPUT_VARIADIC);
    if (num_inputs < required || (num_inputs > record->num_inputs && !variadic))
        return fail(TN_ERR_ARGUMENT, "got %u inputs, expected %s%u (%s%s)", num_inputs,
                    variadic || required < record->num_inputs ? "at least " : "", required,
                    record->num_inputs ? record->inputs[0].name : "none",
                    record->num_inputs > 1 ? ", ..." : "");
    for (uint32_t i = 0; i < num_inputs; i++) {
        uint32_t slot = i < record->num_inputs ? i : record->num_inputs - 1;
        const tn_input_info *info = &record->inputs[slot];
        if (!inputs[i] && !(info->flags & TN_INPUT_OPTIONAL))
            return fail(TN_ERR_ARGUMENT, "input %s is NULL", info->name);
        if (inputs[i] && !tn_dtype_in(inputs[i]->type.dtype, info->dtypes))
            return wrong_dtype(info, inputs[i]->type.dtype);
    }
    return TN_OK;
}

// --- expressions ------------------------------------------------------------------------

static tn_status infer_expr(const struct expr *expr, const struct node *node,
                            const tn_dtype *dtypes, bool *out_weak)
{
    struct expr_input inputs[TN_EXPR_MAX_INPUTS];
    tn_dtype inferred[TN_EXPR_MAX_OUTPUTS];
    tn_type type = {0};
    tn_dtype checked = TN_DTYPE_NONE; // an input has the shape in this dtype
    *out_weak = node->num_inputs > 0;
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        const tn_array *input = node->inputs[i];
        inputs[i] = array_promoted(input);
        *out_weak = *out_weak && input->weak_kind;
        if (i == 0) {
            type = input->type;
            checked = type.dtype;
            continue;
        }
        if (shape_equal(&type, &input->type))
            continue;
        checked = TN_DTYPE_NONE;
        tn_status status = shape_broadcast(&type, &input->type, &type);
        if (status != TN_OK)
            return status;
    }
    if (!dtypes) {
        tn_status status = expr_infer(expr, inputs, inferred);
        if (status != TN_OK)
            return status;
        dtypes = inferred;
    }
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        type.dtype = dtypes[i];
        // Shapes that are small enough may broadcast to one that is too large.
        tn_status status = dtypes[i] == checked ? TN_OK : type_check(&type);
        if (status != TN_OK)
            return status;
        node->outputs[i].type = type;
    }
    return TN_OK;
}

// An expression that reduces has an axis of its operands' extents to reduce along.
static tn_status apply_check_axis(const struct node *node)
{
    const tn_type *type = &node->outputs[0].type;
    char text[TYPE_TEXT];
    int64_t axis = -1;
    if (!node->expr || !node->expr->reduces || node_axis(node) >= 0)
        return TN_OK;
    if (type->rank == 0)
        return fail(TN_ERR_ARGUMENT,
                    "it reduces along an axis, and its operands have none");
    int index = attrs_field_index(node->table, "axis");
    memcpy(&axis,
           (const char *)node->attrs + attrs_field(node->table, (uint32_t)index)->offset,
           sizeof(axis));
    return fail(TN_ERR_ARGUMENT, "axis %lld is out of range for %s, expected %d to %d",
                (long long)axis, shape_print(type, text), -type->rank, type->rank - 1);
}

// A result of weak numbers alone is a weak number again: (2 * 3) * x keeps x's dtype.
static void mark_weak(struct node *node)
{
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        tn_dtype dtype = node->outputs[i].type.dtype;
        if (dtype == TN_I64)
            node->outputs[i].weak_kind = KIND_SIGNED;
        else if (dtype == TN_U64)
            node->outputs[i].weak_kind = KIND_UNSIGNED;
        else if (dtype == TN_F64)
            node->outputs[i].weak_kind = KIND_FLOAT;
        else if (dtype == TN_COMPLEX128)
            node->outputs[i].weak_kind = KIND_COMPLEX;
    }
}

// An operation on integer numbers is computed here, as Python would: its result is a number
// whose value is known, so that it can be checked against the dtype of the other operand.
static tn_status apply_fold_numbers(tn_scope *scope, const struct node *node,
                                    tn_array **outputs)
{
    struct expr_input inputs[TN_EXPR_MAX_INPUTS];
    int kind = 0;
    uint64_t bits = 0;
    if (node->num_outputs != 1 ||
        !tn_dtype_in(node->outputs[0].type.dtype, TN_INTEGER_DTYPES))
        return TN_OK;
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        inputs[i] = array_promoted(node->inputs[i]);
        if (!inputs[i].is_known)
            return TN_OK;
    }
    tn_status status = expr_fold(node->expr, inputs, &kind, &bits);
    if (status != TN_OK || !kind)
        return status;
    outputs[0] = number_create(scope, kind == KIND_SIGNED ? TN_I64 : TN_U64, bits, kind);
    return outputs[0] ? TN_OK : scope->status;
}

static tn_status check_expr_size(const struct expr *expr, uint32_t num_inputs)
{
    if (num_inputs != expr->num_inputs)
        return fail(TN_ERR_ARGUMENT, "got %u inputs, expected %u", num_inputs,
                    expr->num_inputs);
    if (num_inputs > TN_EXPR_MAX_INPUTS)
        return fail(TN_ERR_ARGUMENT, "an expression has at most %d inputs, got %u",
                    TN_EXPR_MAX_INPUTS, num_inputs);
    return TN_OK;
}

static void apply_give_outputs(struct node *node, tn_array **outputs)
{
    for (uint32_t i = 0; i < node->num_outputs; i++)
        outputs[i] = &node->outputs[i];
}

// Hashes an expression and the attributes that it reads, whatever table these are in: a
// derived expression has the table of its primitive, so equal ones of two primitives differ
// in it.
static struct hash hash_expr(struct hash h, const struct expr *expr,
                             const tn_attr_table *table, const void *attrs)
{
    h = hash_join(h, expr->hash);
    for (uint32_t i = 0; table && i < expr->num_attrs + expr->reduces; i++) {
        int index =
            attrs_field_index(table, i < expr->num_attrs ? expr->attr_names[i] : "axis");
        uint64_t bits;
        if (index < 0)
            continue;
        const tn_attr_field *field = attrs_field(table, (uint32_t)index);
        memcpy(&bits, (const char *)attrs + field->offset, sizeof(bits));
        h = hash_u64(hash_u64(h, field->kind), bits);
    }
    return h;
}

tn_status graph_apply_expr(tn_scope *scope, const struct expr *expr,
                           const tn_array *const *inputs, uint32_t num_inputs,
                           const tn_attr_table *table, const void *attrs,
                           const tn_dtype *dtypes, tn_array **outputs)
{
    if (scope->status != TN_OK)
        return scope->status;
    tn_status status = check_expr_size(expr, num_inputs);
    for (uint32_t i = 0; i < num_inputs && status == TN_OK; i++)
        if (!inputs[i])
            status = fail(TN_ERR_ARGUMENT, "input %s is NULL", expr->input_names[i]);
    if (status == TN_OK) {
        struct node *node = node_create(scope, NODE_EXPR, inputs, num_inputs,
                                        expr->num_outputs, table, attrs);
        if (!node)
            return scope->status;
        node->expr = expr;
        node->typed = dtypes != NULL;
        node->hash = hash_expr(node->hash, expr, table, attrs);
        for (uint32_t i = 0; dtypes && i < expr->num_outputs; i++)
            node->hash = hash_u64(node->hash, (uint64_t)dtypes[i]);
        bool weak;
        status = infer_expr(expr, node, dtypes, &weak);
        if (status == TN_OK)
            status = apply_check_axis(node);
        if (status == TN_OK && weak && !dtypes)
            mark_weak(node);
        if (status == TN_OK)
            apply_give_outputs(node, outputs);
        if (status == TN_OK && weak && !dtypes)
            status = apply_fold_numbers(scope, node, outputs);
    }
    if (status != TN_OK)
        fail_prefix("expression \"%s\": ", expr->text);
    return scope_take_failure(scope, status);
}

// --- primitives -------------------------------------------------------------------------

// The argument of infer and count_outputs; `few` is enough for most.
struct application {
    tn_infer infer;
    tn_type *types, few[FEW_INPUTS];
};

// `num_inputs`: without runtime attributes, which infer and count_outputs do not see.
static tn_status application_init(struct application *a, const struct prim *prim,
                                  const tn_array *const *inputs, uint32_t num_inputs,
                                  const void *attrs)
{
    a->types = a->few;
    if (num_inputs > FEW_INPUTS && !(a->types = mem_alloc(num_inputs * sizeof(*a->types))))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs; i++)
        a->types[i] = inputs[i] ? inputs[i]->type : (tn_type){0};
    a->infer = (tn_infer){
        .struct_size = sizeof(a->infer),
        .host = prim->host,
        .types = a->types,
        .attrs = attrs,
        .num_inputs = num_inputs,
    };
    return TN_OK;
}

static void application_finish(struct application *a)
{
    if (a->types != a->few)
        mem_free(a->types);
}

tn_status apply_count_outputs(const struct prim *prim, const tn_array *const *inputs,
                              uint32_t num_inputs, const void *attrs, uint32_t *out_count)
{
    struct application a;
    *out_count = prim->record.num_outputs;
    if (!prim->record.count_outputs)
        return TN_OK;
    tn_status status = application_init(&a, prim, inputs, num_inputs, attrs);
    if (status != TN_OK)
        return status;
    status = rule_count_outputs(prim, &a.infer, out_count);
    application_finish(&a);
    return status;
}

static tn_status infer_by_rule(const struct prim *prim, struct node *node)
{
    struct application a;
    tn_type outputs[MAX_OUTPUTS];
    memset(outputs, 0, node->num_outputs * sizeof(*outputs));
    tn_status status = application_init(&a, prim, (const tn_array *const *)node->inputs,
                                        node->num_inputs - prim->num_runtime, node->attrs);
    if (status != TN_OK)
        return status;
    a.infer.num_outputs = node->num_outputs;
    status = rule_infer(prim, &a.infer, outputs);
    application_finish(&a);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        node->outputs[i].type = outputs[i];
    return status;
}

static tn_status infer_node(const struct prim *prim, struct node *node, bool *out_weak)
{
    bool weak = false;
    tn_status status;
    if (prim->record.infer) {
        status = infer_by_rule(prim, node);
    } else {
        for (uint32_t i = 0; i < node->num_inputs; i++)
            if (!node->inputs[i])
                return fail(TN_ERR_ARGUMENT, "input %u is not given", i);
        status = check_expr_size(prim->expr, node->num_inputs);
        if (status == TN_OK)
            status = infer_expr(prim->expr, node, NULL, &weak);
    }
    if (status == TN_OK)
        status = apply_check_axis(node);
    if (status == TN_OK && weak)
        mark_weak(node);
    *out_weak = weak;
    return status;
}

void apply_prefix(const struct prim *prim, const tn_array *const *inputs,
                  uint32_t num_inputs)
{
    const tn_primitive *record = &prim->record;
    char names[MOST_NAMES] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < num_inputs && i < record->num_inputs; i++) {
        if (!inputs[i] || !inputs[i]->name || used >= sizeof(names))
            continue;
        used +=
            (size_t)snprintf(names + used, sizeof(names) - used, "%s%s = %s",
                             used ? ", " : " (", record->inputs[i].name, inputs[i]->name);
    }
    bool fits = used < sizeof(names);
    fail_prefix("%s%s%s: ", record->id, fits ? names : "", fits && used ? ")" : "");
}

// Checks the inputs and the number of outputs that the caller asks for.
static tn_status check_application(const struct prim *prim, const tn_array *const *inputs,
                                   uint32_t num_inputs, const void *attrs,
                                   uint64_t num_outputs)
{
    uint32_t count = 0;
    tn_status status = apply_check_inputs(prim, inputs, num_inputs - prim->num_runtime);
    if (status == TN_OK)
        status = apply_count_outputs(prim, inputs, num_inputs - prim->num_runtime, attrs,
                                     &count);
    if (status == TN_OK && count != num_outputs)
        status = fail(TN_ERR_ARGUMENT, "has %u outputs, the call asks for %llu", count,
                      (unsigned long long)num_outputs);
    return status;
}

static tn_status try_node(tn_scope *scope, const struct prim *prim,
                          const tn_array *const *inputs, uint32_t num_inputs,
                          const void *attrs, tn_array **outputs, uint64_t num_outputs)
{
    tn_status status = check_application(prim, inputs, num_inputs, attrs, num_outputs);
    if (status == TN_OK && prim_is_composite(prim)) {
        status = rule_expand(scope, prim, inputs, num_inputs, attrs, outputs,
                             (uint32_t)num_outputs);
    } else if (status == TN_OK) {
        const tn_attr_table *table = prim->record.attrs.size ? &prim->record.attrs : NULL;
        struct node *node = node_create(scope, NODE_PRIM, inputs, num_inputs,
                                        (uint32_t)num_outputs, table, attrs);
        if (!node)
            return scope->status;
        node->prim = prim;
        node->expr = prim->expr;
        node->hash = hash_join(node->hash, prim->id_hash);
        node_order_effects(scope, node);
        bool weak = false;
        status = infer_node(prim, node, &weak);
        if (status == TN_OK)
            apply_give_outputs(node, outputs);
        if (status == TN_OK && weak)
            status = apply_fold_numbers(scope, node, outputs);
    }
    return status;
}

// --- failures ---------------------------------------------------------------------------

// Dtypes to try: `dtype` for input `which`, or for all inputs (`which` is num_inputs), and
// `rest` for the others.
struct trial_dtypes {
    uint32_t which;
    tn_dtype dtype, rest; // rest TN_DTYPE_NONE: the inputs' own dtypes
};

// Whether the primitive takes inputs of the same shapes with these dtypes.
__attribute__((cold)) static bool takes_dtypes(tn_scope *trial, const struct prim *prim,
                                               const tn_array *const *inputs,
                                               uint32_t num_inputs, const void *attrs,
                                               uint64_t num_outputs,
                                               const struct trial_dtypes *dtypes)
{
    uint64_t room = (num_inputs + num_outputs) * sizeof(tn_array *);
    tn_array **given = arena_alloc(&trial->arena, room);
    for (uint32_t i = 0; i < num_inputs && given; i++) {
        bool is_chosen = dtypes->which == i || dtypes->which == num_inputs;
        tn_dtype other = is_chosen ? dtypes->dtype : dtypes->rest;
        tn_type type = inputs[i] ? inputs[i]->type : (tn_type){0};
        type.dtype = other ? other : type.dtype;
        given[i] = inputs[i] ? leaf_create(trial, NODE_INPUT, &type) : NULL;
        if (given[i] && !other)
            given[i]->weak_kind = inputs[i]->weak_kind;
    }
    tn_status status = given ? try_node(trial, prim, (const tn_array *const *)given,
                                        num_inputs, attrs, given + num_inputs, num_outputs)
                             : TN_ERR_MEMORY;
    tn_scope_clear_error(trial);
    return status == TN_OK;
}

// Whether a rule that failed succeeds with other dtypes alone: another dtype for one input,
// for all, or for one while the others are f32 or i64. The thread's message stays.
__attribute__((cold)) static bool is_about_dtypes(const tn_scope *scope,
                                                  const struct prim *prim,
                                                  const tn_array *const *inputs,
                                                  uint32_t num_inputs, const void *attrs,
                                                  uint64_t num_outputs)
{
    static const tn_dtype rests[] = {TN_DTYPE_NONE, TN_F32, TN_I64};
    static _Thread_local bool is_trying; // operators of a composite do not ask again
    uint32_t first = num_inputs <= FEW_INPUTS ? 0 : num_inputs;
    uint32_t num_tries = 3 * (num_inputs + 1 - first) * TN_NUM_DTYPES;
    char text[FAIL_TEXT_SIZE];
    bool found = false;
    if (is_trying || !(prim->record.infer || prim_is_composite(prim)))
        return false;
    fail_save(text);
    is_trying = true;
    tn_scope *trial = tn_scope_open(scope->runtime);
    for (uint32_t i = 0; i < num_tries && trial && !found; i++) {
        struct trial_dtypes dtypes = {.which = first + i / TN_NUM_DTYPES / 3,
                                      .dtype = i % TN_NUM_DTYPES,
                                      .rest = rests[i / TN_NUM_DTYPES % 3]};
        found = takes_dtypes(trial, prim, inputs, num_inputs, attrs, num_outputs, &dtypes);
    }
    tn_scope_close(trial);
    is_trying = false;
    fail_restore(text);
    return found;
}

static tn_status apply_node(tn_scope *scope, const struct prim *prim,
                            const tn_array *const *inputs, uint32_t num_inputs,
                            const void *attrs, tn_array **outputs, uint64_t num_outputs)
{
    if (scope->status != TN_OK)
        return scope->status;
    tn_status status =
        try_node(scope, prim, inputs, num_inputs, attrs, outputs, num_outputs);
    if (status == TN_OK)
        return status;
    // The scope has the failure of an operator within a composite.
    bool is_dtype = scope->status ? scope->is_about_dtype : fail_is_dtype();
    if (status == TN_ERR_ARGUMENT && !is_dtype)
        is_dtype = is_about_dtypes(scope, prim, inputs, num_inputs, attrs, num_outputs);
    fail_set_dtype(is_dtype);
    scope->is_about_dtype = is_dtype;
    apply_prefix(prim, inputs, num_inputs);
    return scope_take_failure(scope, status);
}

// --- the dtype of the result ------------------------------------------------------------

// Gives the array converted, or the array itself where it has the dtype.
static tn_status apply_cast(tn_scope *scope, const tn_array *array, tn_dtype dtype,
                            tn_array **out)
{
    const struct expr *same;
    *out = (tn_array *)(uintptr_t)array; // a node's already: see graph_node()
    if (array->type.dtype == dtype)
        return TN_OK;
    tn_status status = expr_parse_arrow(scope->runtime, "x -> x", &same);
    return status == TN_OK
               ? graph_apply_expr(scope, same, TN_IN(array), NULL, NULL, &dtype, out)
               : status;
}

// Applies the primitive in the dtype that an attribute gives: see TN_ATTR_RESULT.
static tn_status apply_in_dtype(tn_scope *scope, const struct prim *prim, tn_dtype dtype,
                                const tn_array *const *inputs, uint32_t num_inputs,
                                const void *attrs, tn_array **outputs, uint64_t num_outputs)
{
    const tn_attr_table *table = &prim->record.attrs;
    const tn_array **given = arena_alloc(&scope->arena, num_inputs * sizeof(*given));
    void *rest = arena_alloc(&scope->arena, table->size);
    if (!given || !rest)
        return scope_take_failure(scope, TN_ERR_MEMORY);
    memcpy(given, inputs, num_inputs * sizeof(*given));
    memcpy(rest, attrs, table->size);
    attrs_reset(table, prim->result_dtype - 1, rest);
    tn_array *first = NULL;
    tn_status status = apply_cast(scope, inputs[0], dtype, &first);
    given[0] = first;
    if (status == TN_OK)
        status = apply_node(scope, prim, given, num_inputs, rest, outputs, num_outputs);
    for (uint64_t i = 0; i < num_outputs && status == TN_OK; i++) {
        bool is_part = tn_is_complex(dtype) && !tn_is_complex(outputs[i]->type.dtype);
        status = apply_cast(scope, outputs[i], is_part ? tn_dtype_real(dtype) : dtype,
                            &outputs[i]);
    }
    return status;
}

tn_status graph_apply(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs, uint64_t num_outputs)
{
    int64_t dtype = 0;
    if (prim->result_dtype && num_inputs && inputs[0])
        memcpy(&dtype,
               (const char *)attrs +
                   prim->record.attrs.fields[prim->result_dtype - 1].offset,
               sizeof(dtype));
    return dtype && scope->status == TN_OK
               ? apply_in_dtype(scope, prim, (tn_dtype)dtype, inputs, num_inputs, attrs,
                                outputs, num_outputs)
               : apply_node(scope, prim, inputs, num_inputs, attrs, outputs, num_outputs);
}
