// SPDX-License-Identifier: MIT
// Applies expressions that are given as text, and the attributes that stand in them.
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/number.h"

static tn_status graph_text_parse_number(const char *name, const char *text, uint32_t *kind,
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
        return graph_text_parse_number(given->name, given->text, &field->kind, bits);
    default:
        return fail(TN_ERR_ARGUMENT, "attribute %s: got a %s, expected a number",
                    given->name,
                    given->kind == TN_ATTR_STRING  ? "text"
                    : given->kind == TN_ATTR_GRAPH ? "graph"
                                                   : "list");
    }
}

// The attribute along which an expression reduces, unless the text names it as a number.
static const char *own_axis(const struct expr *expr)
{
    for (uint32_t i = 0; i < expr->num_attrs; i++)
        if (strcmp(expr->attr_names[i], "axis") == 0)
            return NULL;
    return expr->reduces ? "axis" : NULL;
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
                                   tn_attr_list list, struct text_expr *out)
{
    uint32_t count = expr->num_attrs;
    tn_attr found;
    const char *axis = own_axis(expr);
    axis = axis && find_given(list, axis, &found) ? axis : NULL;
    count += axis != NULL;
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
        const char *name = i < expr->num_attrs ? expr->attr_names[i] : axis;
        tn_attr room;
        const tn_attr *given = find_given(list, name, &room);
        if (!given)
            return fail(TN_ERR_ARGUMENT, "\"%s\" is neither an input nor a given attribute",
                        name);
        fields[i] = (tn_attr_field){
            .name = name, .flags = TN_ATTR_REQUIRED, .offset = i * sizeof(uint64_t)};
        tn_status status = text_attr(given, &fields[i], &out->values[i]);
        if (status == TN_OK && expr->reduces && fields[i].kind == TN_ATTR_F64 &&
            strcmp(name, "axis") == 0)
            status =
                fail(TN_ERR_ARGUMENT, "attribute axis: got a float, expected an integer");
        if (status != TN_OK)
            return status;
    }
    *out->table = (tn_attr_table){(uint32_t)(count * sizeof(uint64_t)), count,
                                  sizeof(*fields), fields};
    return TN_OK;
}

tn_status text_expr_init(struct text_expr *out, tn_scope *scope, const char *text,
                         tn_attr_list attrs, uint64_t num_outputs)
{
    *out = (struct text_expr){0};
    tn_status status = life_check(&scope->runtime->life);
    struct expr_set *set = status == TN_OK ? scope_exprs(scope) : NULL;
    if (status == TN_OK)
        status = set ? expr_parse_arrow_into(set, text, &out->expr) : TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    if (out->expr->num_outputs != num_outputs)
        status = fail(TN_ERR_ARGUMENT, "has %u outputs, expected %u",
                      out->expr->num_outputs, (unsigned)num_outputs);
    if (status == TN_OK)
        status = text_attrs_create(scope, out->expr, attrs, out);
    if (status == TN_OK && out->table)
        status = expr_bind(out->expr, out->table, &out->expr);
    if (status != TN_OK)
        fail_prefix("expression \"%s\": ", text);
    return status;
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
    struct text_expr own;
    tn_array *out = NULL;
    tn_status status = text_expr_init(&own, scope, text, attrs, 1);
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    status = graph_apply_expr(scope, own.expr, inputs, (uint32_t)num_inputs, own.table,
                              own.values, NULL, &out);
    return status == TN_OK ? out : NULL;
}
