// SPDX-License-Identifier: MIT
// Instructions of expressions.
#include "emit.h"

// --- branches --------------------------------------------------------------------------

// Whether `e` is cheaper to compute without need than a branch. Loads from buffers are not:
// they may be out of range where the condition does not hold.
static bool is_cheap(const struct tree_expr *e, uint32_t most_height)
{
    if (e->has_effects || e->height > most_height)
        return false;
    switch (e->kind) {
    case EXPR_CONSTANT:
    case EXPR_VALUE:
        return true;
    case EXPR_VARIABLE:
        return e->type->base < NUM_SCALARS && (e->symbol->storage == StorageClassFunction ||
                                               e->symbol->storage == StorageClassPrivate ||
                                               e->symbol->storage == StorageClassInput);
    case EXPR_SWIZZLE:
    case EXPR_UNARY:
    case EXPR_CONVERT:
        return is_cheap(e->left, most_height);
    case EXPR_BINARY:
        return e->op != '/' && e->op != '%' && e->type->base < NUM_SCALARS &&
               is_cheap(e->left, most_height) && is_cheap(e->right, most_height);
    default:
        return false;
    }
}

static uint32_t emit_logical(struct translator *t, const struct tree_expr *e)
{
    uint32_t left = emit_value(t, e->left);
    if (e->op == '^')
        return EMIT(t, OpLogicalNotEqual, e->type, left, emit_value(t, e->right));
    if (is_cheap(e->right, 2))
        return EMIT(t, e->op == '&' ? OpLogicalAnd : OpLogicalOr, e->type, left,
                    emit_value(t, e->right));
    struct ir_block *right_block = ir_block(t->ir), *merge = ir_block(t->ir);
    uint32_t left_end = t->ir->at->id;
    IR_EMIT(t->ir, OpSelectionMerge, 0, merge->id, 0);
    if (e->op == '&')
        IR_EMIT(t->ir, OpBranchConditional, 0, left, right_block->id, merge->id);
    else
        IR_EMIT(t->ir, OpBranchConditional, 0, left, merge->id, right_block->id);
    start_block(t, right_block);
    uint32_t right = emit_value(t, e->right);
    uint32_t right_end = t->ir->at->id;
    branch_to(t, merge);
    start_block(t, merge);
    return EMIT(t, OpPhi, e->type, left, left_end, right, right_end);
}

static uint32_t emit_select(struct translator *t, const struct tree_expr *e)
{
    uint32_t condition = emit_value(t, e->left);
    bool is_void = e->type->base == TYPE_VOID;
    if (is_cheap(e->right, 2) && is_cheap(e->third, 2) && e->type->base < NUM_SCALARS &&
        !type_is_matrix(e->type)) {
        uint32_t left = emit_value(t, e->right), right = emit_value(t, e->third);
        if (type_is_vector(e->type))
            condition = emit_splat(t, type_like(t, e->type, TYPE_BOOL), condition);
        return EMIT(t, OpSelect, e->type, condition, left, right);
    }
    struct ir_block *blocks[2] = {ir_block(t->ir), ir_block(t->ir)};
    struct ir_block *merge = ir_block(t->ir);
    uint32_t phi[4] = {0};
    IR_EMIT(t->ir, OpSelectionMerge, 0, merge->id, 0);
    IR_EMIT(t->ir, OpBranchConditional, 0, condition, blocks[0]->id, blocks[1]->id);
    for (uint32_t i = 0; i < 2; i++) {
        start_block(t, blocks[i]);
        phi[2 * i] = emit_value(t, i == 0 ? e->right : e->third);
        phi[2 * i + 1] = t->ir->at->id;
        branch_to(t, merge);
    }
    start_block(t, merge);
    return is_void ? 0 : emit(t, OpPhi, e->type, 4, phi);
}

// --- parts of values -------------------------------------------------------------------

static uint32_t emit_swizzle(struct translator *t, const struct tree_expr *e)
{
    uint32_t id = emit_value(t, e->left), shuffle[6] = {id, id};
    if (type_is_scalar(e->left->type))
        return e->num_swizzle == 1 ? id : emit_splat(t, e->type, id);
    if (e->num_swizzle == 1)
        return EMIT(t, OpCompositeExtract, e->type, id, e->swizzle[0]);
    for (uint32_t i = 0; i < e->num_swizzle; i++)
        shuffle[2 + i] = e->swizzle[i];
    return emit(t, OpVectorShuffle, e->type, 2 + e->num_swizzle, shuffle);
}

// p[i] of a reference: the address i blocks behind it.
static uint32_t emit_reference_index(struct translator *t, const struct tree_expr *e)
{
    const struct type *address = type_scalar(t, TYPE_UINT64);
    const struct record *record = e->type->record;
    uint32_t align, size = type_size(t, record->contents, record->layout, &align);
    align = record->reference_align > align ? record->reference_align : align;
    size = (size + align - 1) / align * align;
    struct tree_expr *index = convert_base(t, e->right, TYPE_INT64);
    index = convert_base(t, index, TYPE_UINT64);
    uint32_t base = EMIT(t, OpConvertPtrToU, address, emit_value(t, e->left));
    uint32_t offset = EMIT(t, OpIMul, address, emit_value(t, index),
                           constant_scalar(t, TYPE_UINT64, size));
    return EMIT(t, OpConvertUToPtr, e->type, EMIT(t, OpIAdd, address, base, offset));
}

static uint32_t value_emit_part(struct translator *t, const struct tree_expr *e)
{
    struct access access;
    if (e->kind == EXPR_INDEX && e->left->type->base == TYPE_REFERENCE)
        return emit_reference_index(t, e);
    bool is_in_memory = expr_is_lvalue(e);
    if (e->kind == EXPR_SWIZZLE && type_is_scalar(e->left->type))
        is_in_memory = false;
    if (!is_in_memory) {
        if (e->kind == EXPR_SWIZZLE)
            return emit_swizzle(t, e);
        if (e->kind == EXPR_MEMBER && e->left->type->base != TYPE_REFERENCE)
            return EMIT(t, OpCompositeExtract, e->type, emit_value(t, e->left), e->number);
        if (e->kind == EXPR_INDEX && e->right->kind == EXPR_CONSTANT)
            return EMIT(t, OpCompositeExtract, e->type, emit_value(t, e->left),
                        (uint32_t)e->right->bits[0]);
        if (e->kind == EXPR_INDEX && type_is_number(e->left->type) &&
            !type_is_matrix(e->left->type)) {
            uint32_t vector = emit_value(t, e->left);
            return EMIT(t, OpVectorExtractDynamic, e->type, vector,
                        emit_value(t, e->right));
        }
    }
    access_of(t, e, &access);
    return access_load(t, &access);
}

// --- operators -------------------------------------------------------------------------

static uint32_t emit_unary(struct translator *t, const struct tree_expr *e)
{
    uint32_t id = emit_value(t, e->left);
    enum base base = e->type->base == TYPE_COOPMAT ? e->type->element->base : e->type->base;
    if (e->op == '+')
        return id;
    if (e->op == '!')
        return EMIT(t, OpLogicalNot, e->type, id);
    if (e->op == '~')
        return EMIT(t, OpNot, e->type, id);
    uint32_t op = base_is_float(base) ? OpFNegate : OpSNegate;
    if (e->type->base == TYPE_COOPMAT || !type_is_matrix(e->type))
        return EMIT(t, op, e->type, id);
    uint32_t columns[4];
    const struct type *column = type_part(t, e->type);
    for (uint32_t i = 0; i < e->type->columns; i++)
        columns[i] = EMIT(t, op, column, EMIT(t, OpCompositeExtract, column, id, i));
    return emit(t, OpCompositeConstruct, e->type, e->type->columns, columns);
}

static uint32_t emit_assign(struct translator *t, const struct tree_expr *e)
{
    struct access access;
    access_of(t, e->left, &access);
    uint32_t value = emit_value(t, e->right);
    if (e->op != 0) {
        uint32_t old = access_load(t, &access);
        value = emit_binary(t, e->op, e->type, e->type, old, e->right->type, value);
    }
    access_store(t, &access, value);
    return value;
}

static uint32_t emit_increment(struct translator *t, const struct tree_expr *e)
{
    struct access access;
    access_of(t, e->left, &access);
    uint32_t old = access_load(t, &access);
    uint32_t value = emit_binary(t, e->op, e->type, e->type, old, e->type,
                                 constant_splat(t, e->type, 1));
    access_store(t, &access, value);
    return e->number ? old : value;
}

static uint32_t emit_length(struct translator *t, const struct tree_expr *e)
{
    const struct type *type = type_scalar(t, TYPE_UINT32);
    uint32_t id;
    if (e->left->type->base == TYPE_COOPMAT) {
        id = EMIT(t, OpCooperativeMatrixLengthKHR, type,
                  type_id(t, e->left->type, LAYOUT_NONE));
    } else {
        struct access access;
        access_of(t, e->left, &access);
        // The last index is the member's, which OpArrayLength takes as an operand of its
        // own.
        access.num_indices--;
        access.type = e->left->left->type->base == TYPE_REFERENCE
                          ? e->left->left->type->record->contents
                          : e->left->left->type;
        id = EMIT(t, OpArrayLength, type, access_pointer(t, &access), e->left->number);
    }
    return EMIT(t, OpBitcast, e->type, id);
}

static uint32_t emit_convert(struct translator *t, const struct tree_expr *e)
{
    uint32_t id = emit_value(t, e->left);
    const struct type *from = e->left->type, *to = e->type;
    if (from->base == TYPE_REFERENCE || to->base == TYPE_REFERENCE) {
        bool is_pair = type_is_vector(from) || type_is_vector(to);
        uint32_t op = is_pair || from->base == to->base ? OpBitcast
                      : to->base == TYPE_REFERENCE      ? OpConvertUToPtr
                                                        : OpConvertPtrToU;
        return EMIT(t, op, to, id);
    }
    if (to->base == TYPE_COOPMAT && from->element == to->element) {
        use_needs(t, NEED(MATRIX_CONVERSIONS));
        return EMIT(t, OpCooperativeMatrixConvertNV, to, id);
    }
    return convert_emit(t, id, from,
                        to->base == TYPE_COOPMAT ? to->element->base : to->base);
}

// --- constructors ----------------------------------------------------------------------

static uint32_t emit_diagonal(struct translator *t, const struct type *type, uint32_t id)
{
    const struct type *column = type_part(t, type);
    uint32_t zero = constant_splat(t, type_scalar(t, type->base), 0), columns[4];
    for (uint32_t c = 0; c < type->columns; c++) {
        uint32_t parts[4] = {zero, zero, zero, zero};
        parts[c] = id;
        columns[c] = emit(t, OpCompositeConstruct, column, type->rows, parts);
    }
    return emit(t, OpCompositeConstruct, type, type->columns, columns);
}

// The common part of another matrix; the rest is the identity's.
static uint32_t emit_resize(struct translator *t, const struct type *type,
                            const struct type *from, uint32_t id)
{
    const struct type *column = type_part(t, type), *scalar = type_scalar(t, type->base);
    uint32_t columns[4];
    for (uint32_t c = 0; c < type->columns; c++) {
        uint32_t parts[4];
        for (uint32_t r = 0; r < type->rows; r++)
            parts[r] = c < from->columns && r < from->rows
                           ? EMIT(t, OpCompositeExtract, scalar, id, c, r)
                           : constant_splat(t, scalar, c == r);
        columns[c] = emit(t, OpCompositeConstruct, column, type->rows, parts);
    }
    return emit(t, OpCompositeConstruct, type, type->columns, columns);
}

// Scalars of all arguments, as many as fit.
static uint32_t flatten_scalars(struct translator *t, const struct tree_expr *e,
                                uint32_t *out)
{
    const struct type *scalar = type_scalar(t, e->type->base);
    uint32_t count = 0, most = e->type->components;
    for (uint32_t i = 0; i < e->number && count < most; i++) {
        const struct type *type = e->arguments[i]->type;
        uint32_t id = emit_value(t, e->arguments[i]);
        for (uint32_t c = 0; c < type->columns && count < most; c++)
            for (uint32_t r = 0; r < type->rows && count < most; r++)
                out[count++] = type_is_scalar(type) ? id
                               : type_is_matrix(type)
                                   ? EMIT(t, OpCompositeExtract, scalar, id, c, r)
                                   : EMIT(t, OpCompositeExtract, scalar, id, r);
    }
    return count;
}

static uint32_t emit_flatten(struct translator *t, const struct tree_expr *e)
{
    const struct type *type = e->type;
    uint32_t parts[16], columns[4], components = 0;
    bool is_whole = !type_is_matrix(type); // vectors of whole scalars and vectors
    for (uint32_t i = 0; i < e->number; i++) {
        components += e->arguments[i]->type->components;
        is_whole = is_whole && !type_is_matrix(e->arguments[i]->type);
    }
    if (is_whole && components == type->components) {
        for (uint32_t i = 0; i < e->number; i++)
            parts[i] = emit_value(t, e->arguments[i]);
        return emit(t, OpCompositeConstruct, type, e->number, parts);
    }
    uint32_t count = flatten_scalars(t, e, parts);
    if (!type_is_matrix(type))
        return emit(t, OpCompositeConstruct, type, count, parts);
    for (uint32_t c = 0; c < type->columns; c++)
        columns[c] = emit(t, OpCompositeConstruct, type_part(t, type), type->rows,
                          parts + c * type->rows);
    return emit(t, OpCompositeConstruct, type, type->columns, columns);
}

static uint32_t emit_construct(struct translator *t, const struct tree_expr *e)
{
    if (e->kind == EXPR_FLATTEN)
        return emit_flatten(t, e);
    if (e->kind == EXPR_CONSTRUCT) {
        uint32_t *parts = compiler_allocate(t->c, (e->number + 1) * sizeof *parts);
        for (uint32_t i = 0; i < e->number; i++)
            parts[i] = emit_value(t, e->arguments[i]);
        return emit(t, OpCompositeConstruct, e->type, e->number, parts);
    }
    uint32_t id = emit_value(t, e->left);
    if (e->kind == EXPR_DIAGONAL)
        return emit_diagonal(t, e->type, id);
    if (e->kind == EXPR_RESIZE)
        return emit_resize(t, e->type, e->left->type, id);
    if (e->type->base == TYPE_COOPMAT)
        return EMIT(t, OpCompositeConstruct, e->type, id);
    return emit_splat(t, e->type, id);
}

// --- calls -----------------------------------------------------------------------------

// Whether a variable can be passed itself, without a copy: it is local, and no other
// parameter is the same one.
static bool passes_itself(const struct tree_expr *e, uint32_t number)
{
    const struct tree_expr *argument = e->arguments[number];
    if (argument->kind != EXPR_VARIABLE ||
        argument->symbol->storage != StorageClassFunction ||
        argument->type != e->function->parameters[number].type)
        return false;
    for (uint32_t i = 0; i < e->number; i++) {
        const struct tree_expr *other = e->arguments[i];
        while (other->kind == EXPR_MEMBER || other->kind == EXPR_INDEX ||
               other->kind == EXPR_SWIZZLE)
            other = other->left;
        if (i != number && e->function->parameters[i].is_out &&
            other->kind == EXPR_VARIABLE && other->symbol == argument->symbol)
            return false;
    }
    return true;
}

static uint32_t emit_value_pass(struct translator *t, const struct tree_expr *e,
                                uint32_t number, struct access *access)
{
    const struct parameter *p = &e->function->parameters[number];
    const struct tree_expr *argument = e->arguments[number];
    struct access local;
    if (parameter_is_by_value(p))
        return emit_value(t, argument);
    if (p->is_out && passes_itself(e, number))
        return symbol_id(t, argument->symbol);
    local_access(p->type, temporary(t, p->type), &local);
    if (p->is_out)
        access_of(t, argument, access);
    if (p->is_in) {
        uint32_t value = p->is_out ? access_load(t, access) : emit_value(t, argument);
        if (argument->type != p->type)
            value = convert_emit(t, value, argument->type, p->type->base);
        access_store(t, &local, value);
    }
    return local.base;
}

static uint32_t value_emit_call(struct translator *t, const struct tree_expr *e)
{
    const struct function *f = e->function;
    struct access *accesses = compiler_allocate(t->c, (e->number + 1) * sizeof *accesses);
    uint32_t operands[MOST_PARAMETERS + 1];
    operands[0] = f->ir->head->id;
    for (uint32_t i = 0; i < e->number; i++)
        operands[1 + i] = emit_value_pass(t, e, i, &accesses[i]);
    uint32_t id = emit(t, OpFunctionCall, e->type, 1 + e->number, operands);
    for (uint32_t i = 0; i < e->number; i++) {
        const struct parameter *p = &f->parameters[i];
        struct access local;
        if (!p->is_out || passes_itself(e, i))
            continue;
        local_access(p->type, operands[1 + i], &local);
        uint32_t value = access_load(t, &local);
        if (p->type != e->arguments[i]->type)
            value = convert_emit(t, value, p->type, e->arguments[i]->type->base);
        access_store(t, &accesses[i], value);
    }
    return id;
}

// --- values ----------------------------------------------------------------------------

uint32_t emit_value(struct translator *t, const struct tree_expr *e)
{
    struct access access;
    switch (e->kind) {
    case EXPR_CONSTANT:
        if (e->type->narrow != 0 || e->type->needs != 0)
            use_type(t, e->type);
        return constant_id(t, e->type, e->bits);
    case EXPR_VALUE:
        use_needs(t, e->type->needs);
        return e->id;
    case EXPR_VARIABLE:
        access_of(t, e, &access);
        return access_load(t, &access);
    case EXPR_MEMBER:
    case EXPR_INDEX:
    case EXPR_SWIZZLE:
        return value_emit_part(t, e);
    case EXPR_UNARY:
        return emit_unary(t, e);
    case EXPR_BINARY: {
        uint32_t left = emit_value(t, e->left);
        return emit_binary(t, e->op, e->type, e->left->type, left, e->right->type,
                           emit_value(t, e->right));
    }
    case EXPR_LOGICAL:
        return emit_logical(t, e);
    case EXPR_ASSIGN:
        return emit_assign(t, e);
    case EXPR_INCREMENT:
        return emit_increment(t, e);
    case EXPR_CONVERT:
        return emit_convert(t, e);
    case EXPR_CALL:
        return value_emit_call(t, e);
    case EXPR_BUILTIN:
        return emit_builtin(t, e);
    case EXPR_SELECT:
        return emit_select(t, e);
    case EXPR_COMMA:
        emit_effects(t, e->left);
        return emit_value(t, e->right);
    case EXPR_LENGTH:
        return emit_length(t, e);
    case EXPR_FUNCTION:
        fail_at(t, &e->at, "'%.60s' is a function, expected a value",
                e->function->name->text);
    default:
        return emit_construct(t, e);
    }
}

void emit_effects(struct translator *t, const struct tree_expr *e)
{
    if (e->has_effects || e->type->base == TYPE_VOID)
        emit_value(t, e);
}
