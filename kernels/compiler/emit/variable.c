// SPDX-License-Identifier: MIT
// Variables: global ones are made when they are first used.
#include "emit.h"

// A variable of references says that they may refer to the same memory.
void decorate_pointer(struct translator *t, uint32_t id, const struct type *type)
{
    while (type->base == TYPE_ARRAY)
        type = type->element;
    if (type->base == TYPE_REFERENCE)
        ir_decorate(t->ir, id, DecorationAliasedPointer, 0, NULL);
}

uint32_t temporary(struct translator *t, const struct type *type)
{
    if (type_is_unsized(type))
        fail_at(t, &t->token->at, "an array without a size is a value");
    use_type(t, type);
    uint32_t id = ir_local(
        t->ir, ir_pointer(t->ir, StorageClassFunction, type_id(t, type, LAYOUT_NONE)));
    decorate_pointer(t, id, type);
    return id;
}

// Capabilities that storage of narrow types needs.
static uint64_t storage_needs(const struct symbol *symbol)
{
    uint8_t narrow = symbol->type->narrow;
    uint64_t needs = symbol->type->needs;
    bool has_8 = narrow & NARROW_INT8, has_16 = narrow & ~NARROW_INT8;
    switch (symbol->storage) {
    case StorageClassUniform:
        return needs | (has_8 ? NEED(UNIFORM_8) : 0) | (has_16 ? NEED(UNIFORM_16) : 0);
    case StorageClassPushConstant:
        return needs | (has_8 ? NEED(PUSH_8) : 0) | (has_16 ? NEED(PUSH_16) : 0);
    case StorageClassStorageBuffer:
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
    if (symbol->storage == StorageClassUniform ||
        symbol->storage == StorageClassStorageBuffer) {
        ir_decorate(t->ir, symbol->id, DecorationDescriptorSet, 1, &symbol->set);
        ir_decorate(t->ir, symbol->id, DecorationBinding, 1, &symbol->binding);
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
                              const struct type *type, const struct position *at)
{
    struct symbol *symbol = symbol_declare(t, SYMBOL_VARIABLE, name, type, at);
    symbol->storage = StorageClassFunction;
    symbol->id = temporary(t, type);
    if (names_are_wanted(t))
        ir_name(t->ir, symbol->id, name->text);
    return symbol;
}
