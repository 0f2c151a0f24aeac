// SPDX-License-Identifier: MIT
// Names and what they stand for. The innermost declaration hangs on the name; leaving a
// scope puts back what it hid.
#include "../types/translator.h"

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
                              const struct place *at)
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

static void note_places(struct translator *t, uint64_t needs)
{
    for (uint32_t i = 0; i < NUM_NEEDS; i++)
        if (needs >> i & 1)
            t->need_places[i] = t->token[t->token > t->first ? -1 : 0].at;
    t->seen_needs |= needs;
}

void use_needs(struct translator *t, uint64_t needs)
{
    if ((needs & ~t->seen_needs) != 0)
        note_places(t, needs & ~t->seen_needs);
    if (t->function != NULL)
        t->function->needs |= needs;
    else
        t->needs |= needs;
}

void use_type(struct translator *t, const struct type *type)
{
    uint64_t needs = type->needs;
    if (type->narrow != 0)
        needs |= (type->narrow & NARROW_INT8 ? NEED(INT8) : 0) |
                 (type->narrow & NARROW_INT16 ? NEED(INT16) : 0) |
                 (type->narrow & NARROW_FLOAT16 ? NEED(FLOAT16) : 0);
    use_needs(t, needs);
}

// What storage of narrow types needs.
static uint64_t storage_needs(const struct symbol *symbol)
{
    uint8_t narrow = symbol->type->narrow;
    uint64_t needs = symbol->type->needs;
    bool has_8 = narrow & NARROW_INT8, has_16 = narrow & ~NARROW_INT8;
    switch (symbol->storage) {
    case STORAGE_UNIFORM:
        return needs | (has_8 ? NEED(UNIFORM_8) : 0) | (has_16 ? NEED(UNIFORM_16) : 0);
    case STORAGE_PUSH_CONSTANT:
        return needs | (has_8 ? NEED(PUSH_8) : 0) | (has_16 ? NEED(PUSH_16) : 0);
    case STORAGE_BUFFER:
        return needs | (has_8 ? NEED(BUFFER_8) : 0) | (has_16 ? NEED(BUFFER_16) : 0);
    default:
        return needs | (narrow & NARROW_INT8 ? NEED(INT8) : 0) |
               (narrow & NARROW_INT16 ? NEED(INT16) : 0) |
               (narrow & NARROW_FLOAT16 ? NEED(FLOAT16) : 0);
    }
}

static bool names_are_wanted(const struct translator *t)
{
    return t->c->source->flags & (GLSL_KEEPS_FUNCTIONS | GLSL_NOT_OPTIMISED);
}

static void make_global(struct translator *t, struct symbol *symbol)
{
    uint32_t type = type_id(t, symbol->type, symbol->layout);
    symbol->id = ir_global(t->ir, ir_pointer(t->ir, symbol->storage, type), symbol->storage,
                           symbol->initial);
    symbol->needs |= storage_needs(symbol);
    if (symbol->layout == LAYOUT_NONE)
        decorate_pointer(t, symbol->id, symbol->type);
    if (names_are_wanted(t))
        ir_name(t->ir, symbol->id, symbol->name->text);
    if (symbol->storage == STORAGE_UNIFORM || symbol->storage == STORAGE_BUFFER) {
        ir_decorate(t->ir, symbol->id, 34, 1, &symbol->set);
        ir_decorate(t->ir, symbol->id, 33, 1, &symbol->binding);
    }
}

uint32_t symbol_id(struct translator *t, struct symbol *symbol)
{
    if (symbol->id == 0)
        make_global(t, symbol);
    use_needs(t, symbol->needs);
    return symbol->id;
}

struct symbol *variable_local(struct translator *t, const struct name *name,
                              const struct type *type, const struct place *at)
{
    struct symbol *symbol = symbol_declare(t, SYMBOL_VARIABLE, name, type, at);
    symbol->storage = STORAGE_FUNCTION;
    symbol->id = temporary(t, type);
    if (names_are_wanted(t))
        ir_name(t->ir, symbol->id, name->text);
    return symbol;
}
