// SPDX-License-Identifier: MIT
// Accesses to memory: pointers to parts of variables, loads and stores, and the values of
// types whose form in memory is not that in registers.
#include "emit.h"

#include <string.h>

static uint32_t lowest_bit(uint32_t value)
{
    return value & (~value + (value != 0));
}

static void push_index(struct translator *t, struct access *a, uint32_t index,
                       const struct type *type)
{
    if (a->num_indices == sizeof a->indices / sizeof a->indices[0])
        access_pointer(t, a);
    a->indices[a->num_indices++] = index;
    a->type = type;
}

static void narrow_align(struct access *a, uint32_t bytes)
{
    uint32_t align = lowest_bit(bytes);
    if (align != 0 && align < a->align)
        a->align = align;
}

void local_access(const struct type *type, uint32_t pointer, struct access *out)
{
    memset(out, 0, sizeof *out);
    out->base = pointer;
    out->storage = StorageClassFunction;
    out->type = type;
}

// Accesses the block that a reference points to.
static void access_contents(struct translator *t, const struct tree_expr *reference,
                            struct access *a)
{
    const struct record *record = reference->type->record;
    memset(a, 0, sizeof *a);
    a->base = emit_value(t, reference);
    a->storage = StorageClassPhysicalStorageBuffer;
    a->layout = record->layout;
    a->type = record->contents;
    a->align = record->reference_align;
}

static void access_member(struct translator *t, const struct tree_expr *e, struct access *a)
{
    if (e->left->type->base == TYPE_REFERENCE)
        access_contents(t, e->left, a);
    else
        access_of(t, e->left, a);
    uint32_t align;
    if (a->layout != LAYOUT_NONE)
        type_id(t, a->type, a->layout); // has measured its members
    const struct type_member *member = &e->left->type->record->members[e->number];
    a->memory = memory_join(a->memory, member->memory);
    if (a->layout != LAYOUT_NONE) {
        type_size(t, a->type, a->layout, &align);
        a->layout = a->layout % NUM_LAYOUTS + (member->is_row_major ? LAYOUT_ROW_MAJOR : 0);
        narrow_align(a, member->byte);
    }
    push_index(t, a, ir_i32(t->ir, (int32_t)e->number), member->type);
}

// v.xz[i]
static void index_of_swizzle(struct translator *t, struct access *a, uint32_t index)
{
    uint32_t parts[4];
    for (uint32_t i = 0; i < a->num_swizzle; i++)
        parts[i] = ir_u32(t->ir, a->swizzle[i]);
    const struct type *type = type_vector(t, TYPE_UINT32, a->num_swizzle);
    uint32_t table =
        ir_composite(t->ir, type_id(t, type, LAYOUT_NONE), a->num_swizzle, parts);
    a->num_swizzle = 0;
    push_index(t, a,
               EMIT(t, OpVectorExtractDynamic, type_scalar(t, TYPE_UINT32), table, index),
               type_part(t, a->type));
}

static void access_index(struct translator *t, const struct tree_expr *e, struct access *a)
{
    access_of(t, e->left, a);
    uint32_t index = emit_value(t, e->right);
    if (a->num_swizzle != 0) {
        index_of_swizzle(t, a, index);
        return;
    }
    // The first element is aligned as the whole is.
    bool is_first = e->right->kind == EXPR_CONSTANT && e->right->bits[0] == 0;
    if (!is_first && a->layout != LAYOUT_NONE && a->type->base == TYPE_ARRAY)
        narrow_align(a, type_stride(t, a->type->element, a->layout));
    else if (!is_first && a->layout != LAYOUT_NONE)
        narrow_align(a, base_width(a->type->base) / 8);
    push_index(t, a, index, e->type);
}

static void access_swizzle(struct translator *t, const struct tree_expr *e,
                           struct access *a)
{
    access_of(t, e->left, a);
    if (type_is_scalar(e->left->type) && e->num_swizzle == 1)
        return;
    if (a->num_swizzle != 0) { // a swizzle of a swizzle, through an index
        uint8_t outer[4];
        memcpy(outer, a->swizzle, sizeof outer);
        for (uint32_t i = 0; i < e->num_swizzle; i++)
            a->swizzle[i] = outer[e->swizzle[i]];
        a->num_swizzle = e->num_swizzle;
    } else {
        memcpy(a->swizzle, e->swizzle, sizeof a->swizzle);
        a->num_swizzle = e->num_swizzle;
    }
    if (a->num_swizzle == 1) {
        a->num_swizzle = 0;
        narrow_align(a, base_width(a->type->base) / 8);
        push_index(t, a, ir_u32(t->ir, a->swizzle[0]), e->type);
    }
}

// An index of a reference: an address behind it, in elements.
static void access_reference(struct translator *t, const struct tree_expr *e,
                             struct access *a)
{
    local_access(e->type, temporary(t, e->type), a);
    access_store(t, a, emit_value(t, e));
}

void access_of(struct translator *t, const struct tree_expr *e, struct access *out)
{
    if (e->kind == EXPR_VARIABLE) {
        memset(out, 0, sizeof *out);
        out->base = symbol_id(t, e->symbol);
        out->storage = e->symbol->storage;
        out->layout = e->symbol->layout;
        out->type = e->type;
        out->memory = e->symbol->memory;
        out->align = 16;
    } else if (e->kind == EXPR_MEMBER) {
        access_member(t, e, out);
    } else if (e->kind == EXPR_INDEX && e->left->type->base == TYPE_REFERENCE) {
        access_reference(t, e, out);
    } else if (e->kind == EXPR_INDEX) {
        access_index(t, e, out);
    } else if (e->kind == EXPR_SWIZZLE) {
        access_swizzle(t, e, out);
    } else { // a value: through a variable
        uint32_t value = emit_value(t, e);
        local_access(e->type, temporary(t, e->type), out);
        access_store(t, out, value);
    }
}

uint32_t access_pointer(struct translator *t, struct access *a)
{
    if (a->num_indices == 0)
        return a->base;
    uint32_t operands[17], type = type_id(t, a->type, a->layout);
    operands[0] = a->base;
    memcpy(operands + 1, a->indices, a->num_indices * sizeof a->indices[0]);
    a->base = ir_emit(t->ir, OpAccessChain, ir_pointer(t->ir, a->storage, type),
                      a->num_indices + 1, operands);
    a->num_indices = 0;
    return a->base;
}

// --- forms in memory -------------------------------------------------------------------

static uint32_t emit_access_reform(struct translator *t, uint32_t id,
                                   const struct type *type, uint32_t from, uint32_t to);

static uint32_t reform_parts(struct translator *t, uint32_t id, const struct type *type,
                             uint32_t from, uint32_t to)
{
    uint32_t count = type->base == TYPE_STRUCT ? type->record->num_members : type->length;
    if (count == 0 || type->components == COMPONENTS_UNKNOWN)
        fail_at(t, &t->token->at,
                "a value of type '%s' is copied, expected one of known size",
                type_text(t, type));
    uint32_t *parts = compiler_allocate(t->c, count * sizeof *parts);
    for (uint32_t i = 0; i < count; i++) {
        const struct type_member *member =
            type->base == TYPE_STRUCT ? &type->record->members[i] : NULL;
        const struct type *part = member != NULL ? member->type : type->element;
        uint32_t row_major = member != NULL && member->is_row_major ? LAYOUT_ROW_MAJOR : 0;
        uint32_t inside =
            from == LAYOUT_NONE || member == NULL ? from : from % NUM_LAYOUTS + row_major;
        uint32_t outside =
            to == LAYOUT_NONE || member == NULL ? to : to % NUM_LAYOUTS + row_major;
        uint32_t value = ir_emit(t->ir, OpCompositeExtract, type_id(t, part, inside), 2,
                                 (uint32_t[]){id, i});
        parts[i] = emit_access_reform(t, value, part, inside, outside);
    }
    return ir_emit(t->ir, OpCompositeConstruct, type_id(t, type, to), count, parts);
}

// A value of one layout's form in another's.
static uint32_t emit_access_reform(struct translator *t, uint32_t id,
                                   const struct type *type, uint32_t from, uint32_t to)
{
    if (type_id(t, type, from) == type_id(t, type, to))
        return id;
    if (type->base == TYPE_BOOL) {
        const struct type *stored = type_like(t, type, TYPE_UINT32);
        uint32_t zero = constant_splat(t, stored, 0);
        if (to == LAYOUT_NONE)
            return EMIT(t, OpINotEqual, type, id, zero);
        return EMIT(t, OpSelect, stored, id, constant_splat(t, stored, 1), zero);
    }
    return reform_parts(t, id, type, from, to);
}

// --- loads and stores ------------------------------------------------------------------

// Storage of 8 and 16 bits is read and written by scalars and vectors; more needs
// arithmetic.
static void use_memory(struct translator *t, const struct type *type)
{
    if (type->base < NUM_SCALARS)
        use_needs(t, type->needs);
    else
        use_type(t, type);
}

uint32_t access_load(struct translator *t, struct access *a)
{
    uint32_t operands[5], type = type_id(t, a->type, a->layout);
    operands[0] = access_pointer(t, a);
    uint32_t count = 1 + memory_operands(t, a, false, operands + 1);
    uint32_t id = ir_emit(t->ir, OpLoad, type, count, operands);
    use_memory(t, a->type);
    if (a->layout != LAYOUT_NONE)
        id = emit_access_reform(t, id, a->type, a->layout, LAYOUT_NONE);
    if (a->num_swizzle == 0)
        return id;
    uint32_t shuffle[6] = {id, id};
    for (uint32_t i = 0; i < a->num_swizzle; i++)
        shuffle[2 + i] = a->swizzle[i];
    return emit(t, OpVectorShuffle, type_vector(t, a->type->base, a->num_swizzle),
                2 + a->num_swizzle, shuffle);
}

static void store_whole(struct translator *t, struct access *a, uint32_t id)
{
    uint32_t operands[6];
    if (a->layout != LAYOUT_NONE)
        id = emit_access_reform(t, id, a->type, LAYOUT_NONE, a->layout);
    operands[0] = access_pointer(t, a);
    operands[1] = id;
    uint32_t count = 2 + memory_operands(t, a, true, operands + 2);
    ir_emit(t->ir, OpStore, 0, count, operands);
    use_memory(t, a->type);
}

void access_store(struct translator *t, struct access *a, uint32_t id)
{
    if (a->num_swizzle == 0) {
        store_whole(t, a, id);
        return;
    }
    const struct type *part = type_part(t, a->type);
    for (uint32_t i = 0; i < a->num_swizzle; i++) {
        struct access component = *a;
        component.num_swizzle = 0;
        narrow_align(&component, base_width(part->base) / 8);
        push_index(t, &component, ir_u32(t->ir, a->swizzle[i]), part);
        store_whole(t, &component, EMIT(t, OpCompositeExtract, part, id, i));
    }
}
