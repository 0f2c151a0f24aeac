// SPDX-License-Identifier: MIT
// Nodes of expressions, and which of them can be written to.
#include "expr.h"

struct tree_expr *expr_new(struct translator *t, enum expr_kind kind,
                           const struct type *type, const struct position *at)
{
    struct tree_expr *e = compiler_allocate(t->c, sizeof *e);
    e->kind = (uint8_t)kind;
    e->type = type;
    e->at = *at;
    return e;
}

void expr_child(struct translator *t, struct tree_expr *parent,
                const struct tree_expr *child)
{
    if (child->height >= parent->height)
        parent->height = child->height + 1;
    if (parent->height > MOST_HEIGHT)
        fail_at(t, &parent->at, "the expression nests deeper than %d levels", MOST_HEIGHT);
    parent->has_effects = parent->has_effects || child->has_effects;
}

struct tree_expr *expr_constant(struct translator *t, const struct type *type,
                                const struct position *at)
{
    if (type->components > MOST_COMPONENTS)
        fail_at(t, at,
                "a constant of type '%s' is too large: expected at most %d components",
                type_text(t, type), MOST_COMPONENTS);
    struct tree_expr *e = expr_new(t, EXPR_CONSTANT, type, at);
    e->bits = compiler_allocate(t->c, (type->components + 1) * sizeof *e->bits);
    return e;
}

struct tree_expr *expr_uint(struct translator *t, enum base base, uint64_t bits,
                            const struct position *at)
{
    struct tree_expr *e = expr_constant(t, type_scalar(t, base), at);
    e->bits[0] = bits;
    return e;
}

struct tree_expr *expr_spec(struct translator *t, const struct type *type, uint32_t id,
                            const struct position *at)
{
    struct tree_expr *e = expr_new(t, EXPR_VALUE, type, at);
    e->id = id;
    e->is_spec = true;
    return e;
}

struct tree_expr *expr_variable(struct translator *t, struct symbol *symbol,
                                const struct position *at)
{
    if (symbol->kind == SYMBOL_MEMBER) {
        struct tree_expr *e = expr_new(t, EXPR_MEMBER, symbol->type, at);
        e->left = expr_variable(t, symbol->block, at);
        e->number = symbol->member;
        expr_child(t, e, e->left);
        return e;
    }
    if (symbol->kind == SYMBOL_VALUE) {
        struct tree_expr *e = expr_new(t, EXPR_CONSTANT, symbol->type, at);
        *e = *symbol->value;
        e->at = *at;
        e->name = symbol->name;
        return e;
    }
    struct tree_expr *e = expr_new(t, EXPR_VARIABLE, symbol->type, at);
    e->symbol = symbol;
    return e;
}

bool expr_is_constant(const struct tree_expr *e)
{
    return e->kind == EXPR_CONSTANT || e->is_spec;
}

bool expr_is_lvalue(const struct tree_expr *e)
{
    while (e->kind == EXPR_MEMBER || e->kind == EXPR_INDEX || e->kind == EXPR_SWIZZLE) {
        if (e->left->type->base == TYPE_REFERENCE)
            return true;
        e = e->left;
    }
    return e->kind == EXPR_VARIABLE;
}

static void tree_expr_check_writable(struct translator *t, const struct tree_expr *e,
                                     uint8_t memory, const char *what,
                                     const struct name *name)
{
    if (memory & MEMORY_READONLY)
        fail_at(t, &e->at, "'%.60s' is readonly, expected something that %s can write",
                name->text, what);
}

void expr_check_lvalue(struct translator *t, const struct tree_expr *e, const char *what)
{
    const struct tree_expr *at = e;
    for (;; e = e->left) {
        if (e->kind == EXPR_SWIZZLE) {
            for (uint32_t i = 0; i < e->num_swizzle; i++)
                for (uint32_t j = 0; j < i; j++)
                    if (e->swizzle[i] == e->swizzle[j])
                        fail_at(t, &e->at, "a component is written twice by %s", what);
        } else if (e->kind == EXPR_MEMBER) {
            const struct type_member *member = &e->left->type->record->members[e->number];
            tree_expr_check_writable(t, e, member->memory, what, member->name);
            if (e->left->type->base == TYPE_REFERENCE)
                return;
        } else if (e->kind != EXPR_INDEX) {
            break;
        } else if (e->left->type->base == TYPE_REFERENCE) {
            return;
        }
    }
    if (e->name != NULL)
        fail_at(t, &at->at, "'%.60s' is constant, expected something that %s can write",
                e->name->text, what);
    if (e->kind != EXPR_VARIABLE)
        fail_at(t, &at->at, "a value is no variable, expected something that %s can write",
                what);
    tree_expr_check_writable(t, at, e->symbol->memory, what, e->symbol->name);
    if (e->symbol->is_readonly)
        fail_at(t, &at->at, "'%.60s' is constant, expected something that %s can write",
                e->symbol->name->text, what);
    if (at->type->base == TYPE_STRUCT && at->type->record->layout != LAYOUT_NONE)
        fail_at(t, &at->at, "'%.60s' is a block, expected one of its members",
                e->symbol->name->text);
}
