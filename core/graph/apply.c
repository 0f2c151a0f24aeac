// SPDX-License-Identifier: MIT
// Applies primitives and expressions: checks the inputs, infers the types, makes a node.
// Computes nothing.
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../attr/internal.h"
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/number.h"
#include "../base/shape.h"
#include "../plugin/primitives.h"

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
    char names[TN_NUM_DTYPES * 8] = "";
    size_t used = 0;
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        if (tn_dtype_in(dtype, info->dtypes))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     used ? ", " : "", dtype_name(dtype));
    return fail(TN_ERR_ARGUMENT, "input %s is %s, expected %s%s", info->name,
                dtype_name(got), strchr(names, ',') ? "one of " : "", names);
}

// `num_inputs`: without runtime attributes.
static tn_status check_inputs(const struct prim *prim, const tn_array *const *inputs,
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
    *out_weak = node->num_inputs > 0;
    for (uint32_t i = 0; i < node->num_inputs; i++) {
        const tn_array *input = node->inputs[i];
        inputs[i] = (struct expr_input){input->type.dtype, input->weak_kind};
        *out_weak = *out_weak && input->weak_kind;
        if (shape_equal(&type, &input->type))
            continue;
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
        tn_status status = type_check(&type);
        if (status != TN_OK)
            return status;
        node->outputs[i].type = type;
    }
    return TN_OK;
}

// A result of weak numbers alone is a weak number again: (2 * 3) * x keeps x's dtype.
static void mark_weak(struct node *node)
{
    for (uint32_t i = 0; i < node->num_outputs; i++) {
        tn_dtype dtype = node->outputs[i].type.dtype;
        if (dtype == TN_I64)
            node->outputs[i].weak_kind = KIND_SIGNED;
        else if (dtype == TN_F64)
            node->outputs[i].weak_kind = KIND_FLOAT;
    }
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

static void give_outputs(struct node *node, tn_array **outputs)
{
    for (uint32_t i = 0; i < node->num_outputs; i++)
        outputs[i] = &node->outputs[i];
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
        node->hash = hash_join(node->hash, expr->hash);
        for (uint32_t i = 0; dtypes && i < expr->num_outputs; i++)
            node->hash = hash_u64(node->hash, (uint64_t)dtypes[i]);
        bool weak;
        status = infer_expr(expr, node, dtypes, &weak);
        if (status == TN_OK && weak && !dtypes)
            mark_weak(node);
        if (status == TN_OK)
            give_outputs(node, outputs);
    }
    if (status != TN_OK)
        fail_prefix("expression \"%s\": ", expr->text);
    return scope_take_failure(scope, status);
}

// --- primitives -------------------------------------------------------------------------

static tn_status infer_by_rule(const struct prim *prim, struct node *node)
{
    tn_type few_inputs[FEW_INPUTS], outputs[MAX_OUTPUTS] = {{0}};
    tn_type *inputs = few_inputs;
    if (node->num_inputs > FEW_INPUTS &&
        !(inputs = mem_alloc(node->num_inputs * sizeof(*inputs))))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < node->num_inputs; i++)
        inputs[i] = node->inputs[i] ? node->inputs[i]->type : (tn_type){0};
    tn_infer infer = {
        .struct_size = sizeof(infer),
        .host = prim->host,
        .types = inputs,
        .attrs = node->attrs,
        .num_inputs = node->num_inputs - prim->num_runtime,
        .num_outputs = node->num_outputs,
    };
    tn_status status = rule_infer(prim, &infer, outputs);
    if (inputs != few_inputs)
        mem_free(inputs);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        node->outputs[i].type = outputs[i];
    return status;
}

static tn_status infer_node(const struct prim *prim, struct node *node)
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
    if (status == TN_OK && weak)
        mark_weak(node);
    return status;
}

// Prefixes the message with the primitive and the application's names of its inputs:
// "base.matmul/1 (a = x, b = y): ".
static void prefix_application(const struct prim *prim, const tn_array *const *inputs,
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

tn_status graph_apply(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs)
{
    if (scope->status != TN_OK)
        return scope->status;
    tn_status status = check_inputs(prim, inputs, num_inputs - prim->num_runtime);
    if (status == TN_OK) {
        const tn_attr_table *table = prim->record.attrs.size ? &prim->record.attrs : NULL;
        struct node *node = node_create(scope, NODE_PRIM, inputs, num_inputs,
                                        prim->record.num_outputs, table, attrs);
        if (!node)
            return scope->status;
        node->prim = prim;
        node->expr = prim->expr;
        node->hash = hash_join(node->hash, prim->id_hash);
        status = infer_node(prim, node);
        if (status == TN_OK)
            give_outputs(node, outputs);
    }
    if (status != TN_OK)
        prefix_application(prim, inputs, num_inputs);
    return scope_take_failure(scope, status);
}

// --- runtime attributes -----------------------------------------------------------------

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
    bool fits = array->type.rank == 0 && array->type.dtype != TN_BOOL &&
                (field->kind == TN_ATTR_F64 || !dtype_is_float(array->type.dtype));
    if (!fits)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got %s, expected %s or a scalar of one", field->name,
                    type_print(&array->type, text), field_expects(field));
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

// Applies a primitive that has runtime attributes. Their scalars are behind the record's
// inputs, also where some of these are left out.
static tn_status apply_runtime(tn_scope *scope, const struct prim *prim,
                               const tn_array *const *inputs, uint32_t num_inputs,
                               void *attrs, const tn_array *const *arrays,
                               tn_array **outputs)
{
    const tn_primitive *record = &prim->record;
    struct given_inputs all = {.items = all.few, .count = num_inputs};
    tn_status status = check_inputs(prim, inputs, num_inputs);
    if (status != TN_OK) {
        prefix_application(prim, inputs, num_inputs);
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
        prefix_application(prim, inputs, num_inputs);
        scope_take_failure(scope, status);
    }
    if (status == TN_OK)
        status = graph_apply(scope, prim, all.items, all.count, attrs, outputs);
    if (all.items != all.few)
        mem_free(all.items);
    return status;
}

// --- by name ----------------------------------------------------------------------------

static tn_status apply_by_name(tn_scope *scope, const char *name,
                               const tn_array *const *inputs, uint64_t num_inputs,
                               tn_attr_list list, tn_array **outputs, uint64_t num_outputs)
{
    const struct prim *prim;
    if (scope_begin(scope, "op",
                    GIVEN({"inputs", inputs, num_inputs}, {"outputs", outputs, num_outputs},
                          {"attrs.items", list.items, list.count})) != TN_OK)
        return scope ? scope->status : TN_ERR_ARGUMENT;
    tn_status status = life_check(&scope->runtime->life);
    if (status == TN_OK)
        status = name ? prim_find(scope->runtime, name, &prim)
                      : fail(TN_ERR_ARGUMENT, "the primitive's name is NULL");
    if (status != TN_OK)
        return scope_take_failure(scope, status);
    if (num_outputs != prim->record.num_outputs)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "%s: has %u outputs, the call asks for %llu", prim->record.id,
                             prim->record.num_outputs, (unsigned long long)num_outputs);
    _Alignas(16) unsigned char small[512];
    void *attrs = small;
    const tn_array *arrays[MAX_ATTR_FIELDS] = {NULL};
    uint32_t size = prim->record.attrs.size;
    if (size > sizeof(small) && !(attrs = mem_alloc(size)))
        return scope_take_failure(scope, TN_ERR_MEMORY);
    if (size > 0 || list.count > 0)
        status = attrs_fill(&scope->interned, &prim->record.attrs, list, attrs, arrays);
    if (status != TN_OK) {
        fail_prefix("%s: ", prim->record.id);
        scope_take_failure(scope, status);
    } else if (prim->num_runtime) {
        status = apply_runtime(scope, prim, inputs, (uint32_t)num_inputs, attrs, arrays,
                               outputs);
    } else {
        status = graph_apply(scope, prim, inputs, (uint32_t)num_inputs, attrs, outputs);
    }
    if (attrs != small)
        mem_free(attrs);
    return scope->status != TN_OK ? scope->status : status;
}

tn_status tn_op_n(tn_scope *scope, const char *name, const tn_array *const *inputs,
                  uint64_t num_inputs, tn_attr_list attrs, tn_array **outputs,
                  uint64_t num_outputs)
{
    return apply_by_name(scope, name, inputs, num_inputs, attrs, outputs, num_outputs);
}

tn_array *tn_op(tn_scope *scope, const char *name, const tn_array *const *inputs,
                uint64_t num_inputs, tn_attr_list attrs)
{
    tn_array *out = NULL;
    tn_status status = apply_by_name(scope, name, inputs, num_inputs, attrs, &out, 1);
    return status == TN_OK ? out : NULL;
}

// --- expressions given as text ---------------------------------------------------------

struct text_attrs { // the attributes of an expression that has no primitive
    tn_attr_table *table;
    uint64_t *values;
};

static tn_status parse_number(const char *name, const char *text, uint32_t *kind,
                              uint64_t *bits)
{
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 0);
    *kind = TN_ATTR_I64;
    *bits = (uint64_t)whole;
    if (*text && !*end && errno == 0)
        return TN_OK;
    double value = text_to_double(text, &end);
    *kind = TN_ATTR_F64;
    memcpy(bits, &value, sizeof(value));
    return *text && !*end ? TN_OK
                          : fail(TN_ERR_ARGUMENT,
                                 "attribute %s: got \"%s\", expected a number", name, text);
}

static tn_status text_attr(const tn_attr *given, tn_attr_field *field, uint64_t *bits)
{
    field->kind = given->kind;
    if (given->kind == TN_ATTR_TEXT && !given->text)
        return fail(TN_ERR_ARGUMENT, "attribute %s: the text is NULL", given->name);
    switch (given->kind) {
    case TN_ATTR_F64:
        memcpy(bits, &given->f, sizeof(*bits));
        return TN_OK;
    case TN_ATTR_BOOL:
    case TN_ATTR_I64:
        memcpy(bits, &given->i, sizeof(*bits));
        return TN_OK;
    case TN_ATTR_TEXT:
        return parse_number(given->name, given->text, &field->kind, bits);
    default:
        return fail(TN_ERR_ARGUMENT, "attribute %s: got a %s, expected a number",
                    given->name, given->kind == TN_ATTR_STRING ? "text" : "list");
    }
}

static const tn_attr *find_given(tn_attr_list list, const char *name, tn_attr *room)
{
    for (uint64_t i = 0; i < list.count; i++) {
        const tn_attr *given = attr_list_item(list, i, room);
        if (given->name && strcmp(given->name, name) == 0)
            return given;
    }
    return NULL;
}

// Makes the attribute table of one node, in the scope's arena: one 8-byte field for each
// name in the text that is no input.
static tn_status text_attrs_create(tn_scope *scope, const struct expr *expr,
                                   tn_attr_list list, struct text_attrs *out)
{
    uint32_t count = expr->num_attrs;
    if (count != list.count)
        return fail(TN_ERR_ARGUMENT, "got %llu attributes, expected %u",
                    (unsigned long long)list.count, count);
    if (count > MAX_EXPR_ATTRS)
        return fail(TN_ERR_ARGUMENT, "got %u attributes, at most %d are allowed", count,
                    MAX_EXPR_ATTRS);
    if (count == 0)
        return TN_OK;
    tn_status checked = attr_list_check(list);
    if (checked != TN_OK)
        return checked;
    tn_attr_field *fields = arena_alloc(&scope->arena, count * sizeof(*fields));
    out->table = arena_alloc(&scope->arena, sizeof(*out->table));
    out->values = arena_alloc(&scope->arena, count * sizeof(uint64_t));
    if (!fields || !out->table || !out->values)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        tn_attr room;
        const tn_attr *given = find_given(list, expr->attr_names[i], &room);
        if (!given)
            return fail(TN_ERR_ARGUMENT, "\"%s\" is neither an input nor a given attribute",
                        expr->attr_names[i]);
        fields[i] = (tn_attr_field){.name = expr->attr_names[i],
                                    .flags = TN_ATTR_REQUIRED,
                                    .offset = i * sizeof(uint64_t)};
        tn_status status = text_attr(given, &fields[i], &out->values[i]);
        if (status != TN_OK)
            return status;
    }
    *out->table = (tn_attr_table){(uint32_t)(count * sizeof(uint64_t)), count,
                                  sizeof(*fields), fields};
    return TN_OK;
}

tn_array *tn_expr(tn_scope *scope, const char *text, const tn_array *const *inputs,
                  uint64_t num_inputs, tn_attr_list attrs)
{
    if (scope_begin(scope, "expr",
                    GIVEN({"inputs", inputs, num_inputs},
                          {"attrs.items", attrs.items, attrs.count})) != TN_OK)
        return NULL;
    if (!text) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "expr: the text is NULL");
        return NULL;
    }
    const struct expr *expr = NULL;
    struct text_attrs own = {0};
    tn_array *out = NULL;
    tn_status status = life_check(&scope->runtime->life);
    struct expr_set *set = status == TN_OK ? scope_exprs(scope) : NULL;
    if (status == TN_OK)
        status = set ? expr_parse_arrow_into(set, text, &expr) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        if (expr->num_outputs != 1)
            status = fail(TN_ERR_ARGUMENT, "has %u outputs, expected 1", expr->num_outputs);
        if (status == TN_OK)
            status = text_attrs_create(scope, expr, attrs, &own);
        if (status == TN_OK && own.table)
            status = expr_bind(expr, own.table, &expr);
        if (status != TN_OK)
            fail_prefix("expression \"%s\": ", text);
    }
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    status = graph_apply_expr(scope, expr, inputs, (uint32_t)num_inputs, own.table,
                              own.values, NULL, &out);
    return status == TN_OK ? out : NULL;
}
