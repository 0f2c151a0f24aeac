// SPDX-License-Identifier: MIT
// Symbols. A name points to its innermost declaration; leaving a scope restores the
// declaration that it hid.
#include "expr.h"

void scope_open(struct translator *t)
{
    t->depth++;
    t->scope[t->depth] = NULL;
}

void scope_close(struct translator *t)
{
    for (struct symbol *s = t->scope[t->depth]; s != NULL; s = s->next_in_scope)
        ((struct name *)s->name)->symbol = s->shadowed;
    t->depth--;
}

struct symbol *symbol_find(struct translator *t, const struct name *name)
{
    if (name->symbol == NULL && name->size > 3 && name->text[0] == 'g' &&
        name->text[1] == 'l' && name->text[2] == '_')
        return builtin_variable(t, name);
    return name->symbol;
}

static const char *kind_text(const struct symbol *symbol)
{
    static const char *const texts[] = {"variable", "constant", "member", "type",
                                        "function"};
    return texts[symbol->kind];
}

struct symbol *symbol_declare(struct translator *t, enum symbol_kind kind,
                              const struct name *name, const struct type *type,
                              const struct position *at)
{
    struct symbol *old = name->symbol;
    if (old != NULL && old->depth == t->depth)
        fail_at(t, at, "'%.60s' is declared twice: it is a %s of line %u", name->text,
                kind_text(old), old->at.line);
    if (name->size > 3 && name->text[0] == 'g' && name->text[1] == 'l' &&
        name->text[2] == '_')
        fail_at(t, at, "'%.60s' begins with gl_, which is reserved for built-in names",
                name->text);
    struct symbol *symbol = compiler_allocate(t->c, sizeof *symbol);
    symbol->kind = (uint8_t)kind;
    symbol->depth = t->depth;
    symbol->name = name;
    symbol->type = type;
    symbol->at = *at;
    symbol->shadowed = old;
    symbol->next_in_scope = t->scope[t->depth];
    t->scope[t->depth] = symbol;
    ((struct name *)name)->symbol = symbol; // the front end's member of a name
    return symbol;
}
