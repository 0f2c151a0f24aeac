// SPDX-License-Identifier: MIT
// Instructions of built-in functions.
#include "emit.h"
#include "../tree/builtins.h"

static uint32_t emit_builtin_kind_of(enum base base)
{
    return base_is_float(base) ? 0 : base_is_signed(base) ? 1 : base == TYPE_BOOL ? 3 : 2;
}

static uint32_t emit_builtin_code_of(const struct tree_expr *e)
{
    return e->builtin->code[emit_builtin_kind_of((enum base)e->op)];
}

// Whether the argument is a scalar (t in the pattern) that is repeated, as others are
// vectors.
static bool is_repeated(const struct builtin *b, uint32_t argument)
{
    const char *pattern = b->pattern;
    while (*pattern++ != ':') {
    }
    for (uint32_t i = 0; i < argument; i++) {
        pattern += *pattern == '&' || *pattern == '*';
        pattern++;
        pattern += *pattern >= '2' && *pattern <= '4';
    }
    return *pattern == 't';
}

static const struct type *emit_builtin_widest(const struct tree_expr *e)
{
    const struct type *type = e->arguments[0]->type;
    for (uint32_t i = 1; i < e->number; i++)
        if (e->arguments[i]->type->rows > type->rows)
            type = e->arguments[i]->type;
    return type;
}

static void emit_arguments(struct translator *t, const struct tree_expr *e, uint32_t *out)
{
    const struct type *wide = e->number > 0 ? emit_builtin_widest(e) : NULL;
    for (uint32_t i = 0; i < e->number; i++) {
        const struct tree_expr *argument = e->arguments[i];
        if (builtin_is_lvalue(e->builtin, i)) {
            out[i] = 0;
            continue;
        }
        out[i] = emit_value(t, argument);
        if (wide->rows > 1 && type_is_scalar(argument->type) && is_repeated(e->builtin, i))
            out[i] = emit_splat(t, type_like(t, wide, argument->type->base), out[i]);
    }
}

static void store_to(struct translator *t, struct tree_expr *argument, uint32_t id)
{
    struct access access;
    access_of(t, argument, &access);
    access_store(t, &access, id);
}

// A struct of two, as the instructions with two results give it.
static uint32_t pair_type(struct translator *t, const struct type *a, const struct type *b)
{
    return ir_type(t->ir, OpTypeStruct, 2,
                   (uint32_t[]){type_id(t, a, LAYOUT_NONE), type_id(t, b, LAYOUT_NONE)});
}

static uint32_t emit_modf(struct translator *t, const struct tree_expr *e)
{
    uint32_t value = emit_value(t, e->arguments[0]);
    const struct type *second = e->arguments[1]->type;
    uint32_t both =
        ir_extended(t->ir, e->builtin->code[0], pair_type(t, e->type, second), 1, &value);
    store_to(t, e->arguments[1], EMIT(t, OpCompositeExtract, second, both, 1));
    return EMIT(t, OpCompositeExtract, e->type, both, 0);
}

static uint32_t emit_two_results(struct translator *t, const struct tree_expr *e)
{
    uint32_t operands[2];
    bool is_product = e->builtin->how == HOW_PRODUCT;
    const struct type *type = e->arguments[0]->type;
    for (uint32_t i = 0; i < 2; i++)
        operands[i] = emit_value(t, e->arguments[i]);
    uint32_t both =
        ir_emit(t->ir, e->builtin->code[0], pair_type(t, type, type), 2, operands);
    if (is_product) { // the table's outputs are the high part and the low one
        store_to(t, e->arguments[2], EMIT(t, OpCompositeExtract, type, both, 1));
        store_to(t, e->arguments[3], EMIT(t, OpCompositeExtract, type, both, 0));
        return 0;
    }
    store_to(t, e->arguments[2], EMIT(t, OpCompositeExtract, type, both, 1));
    return EMIT(t, OpCompositeExtract, type, both, 0);
}

// --- atomics and barriers --------------------------------------------------------------

static uint32_t constant_argument(struct translator *t, const struct tree_expr *e,
                                  uint32_t i)
{
    const struct tree_expr *argument = e->arguments[i];
    if (argument->kind != EXPR_CONSTANT)
        fail_at(t, &argument->at, "argument %u of '%s' is no constant", i + 1,
                e->builtin->name);
    return (uint32_t)(argument->bits[0] & 0xffffffffu);
}

// The semantics that two arguments give: storage and order.
static uint32_t semantics_argument(struct translator *t, const struct tree_expr *e,
                                   uint32_t i)
{
    enum {
        OF_VULKAN_MODEL = MemorySemanticsMakeAvailable | MemorySemanticsMakeVisible |
                          MemorySemanticsVolatile
    };
    uint32_t semantics = constant_argument(t, e, i) | constant_argument(t, e, i + 1);
    if (semantics & OF_VULKAN_MODEL && !t->has_vulkan_model)
        fail_at(t, &e->arguments[i + 1]->at,
                "these semantics of '%s' need '#pragma use_vulkan_memory_model'",
                e->builtin->name);
    return semantics;
}

// Semantics of 0 and the device's scope unless arguments say others.
static uint32_t emit_atomic(struct translator *t, const struct tree_expr *e)
{
    struct access access;
    uint32_t op = emit_builtin_code_of(e), operands[8], count = 3, values = e->number - 1;
    uint32_t scope = ScopeDevice, semantics = 0;
    uint32_t plain = op == OpAtomicCompareExchange ? 2 : op == OpAtomicLoad ? 0 : 1;
    access_of(t, e->arguments[0], &access);
    if (access.storage == StorageClassFunction || access.storage == StorageClassPrivate)
        fail_at(t, &e->at, "'%s' of a local variable, expected one in a buffer or shared",
                e->builtin->name);
    operands[0] = access_pointer(t, &access);
    if (values > plain) {
        scope = constant_argument(t, e, 1 + plain);
        semantics = semantics_argument(t, e, 2 + plain);
    } else if (t->has_vulkan_model) {
        scope = ScopeQueueFamily;
        semantics = access.memory & MEMORY_VOLATILE ? MemorySemanticsVolatile : 0;
    }
    operands[1] = memory_scope(t, scope);
    operands[2] = ir_u32(t->ir, semantics);
    if (op == OpAtomicCompareExchange)
        operands[count++] =
            ir_u32(t->ir, semantics & ~(uint32_t)(MemorySemanticsRelease |
                                                  MemorySemanticsAcquireRelease));
    // OpAtomicCompareExchange has the new value before the one that is compared.
    if (op == OpAtomicCompareExchange) {
        uint32_t compared = emit_value(t, e->arguments[1]);
        operands[count++] = emit_value(t, e->arguments[2]);
        operands[count++] = compared;
    } else if (plain == 1) {
        operands[count++] = emit_value(t, e->arguments[1]);
    }
    return emit(t, op, op == OpAtomicStore ? NULL : e->type, count, operands);
}

static void emit_barrier(struct translator *t, const struct tree_expr *e)
{
    const uint16_t *code = e->builtin->code;
    bool is_wide = code[1] == ScopeDevice && t->has_vulkan_model;
    uint32_t semantics = ir_u32(t->ir, code[0]);
    uint32_t scope = ir_u32(t->ir, is_wide ? ScopeQueueFamily : code[1]);
    if (e->builtin->how == HOW_BARRIER)
        IR_EMIT(t->ir, OpControlBarrier, 0, scope, ir_u32(t->ir, code[2]), semantics);
    else
        IR_EMIT(t->ir, OpMemoryBarrier, 0, scope, semantics);
}

static void emit_scoped_barrier(struct translator *t, const struct tree_expr *e)
{
    uint32_t last = e->number - 1;
    uint32_t semantics = ir_u32(t->ir, semantics_argument(t, e, last - 1));
    uint32_t scope = memory_scope(t, constant_argument(t, e, 0));
    if (e->builtin->how == HOW_SCOPED_BARRIER)
        IR_EMIT(t->ir, OpControlBarrier, 0, scope,
                memory_scope(t, constant_argument(t, e, 1)), semantics);
    else
        IR_EMIT(t->ir, OpMemoryBarrier, 0, scope, semantics);
}

// --- subgroups -------------------------------------------------------------------------

static uint32_t emit_group(struct translator *t, const struct tree_expr *e)
{
    uint32_t operands[MOST_ARGUMENTS], count = 0;
    operands[count++] = ir_u32(t->ir, ScopeSubgroup);
    if (e->builtin->how == HOW_GROUP_REDUCE)
        operands[count++] = e->builtin->number;
    emit_arguments(t, e, operands + count);
    count += e->number;
    if (e->builtin->how == HOW_GROUP_REDUCE &&
        e->builtin->number == GroupOperationClusteredReduce)
        operands[count - 1] = ir_u32(t->ir, constant_argument(t, e, 1));
    if (e->builtin->how == HOW_GROUP_QUAD)
        operands[count++] = ir_u32(t->ir, e->builtin->number);
    return emit(t, emit_builtin_code_of(e), e->type, count, operands);
}

// --- matrices --------------------------------------------------------------------------

static uint32_t builtin_emit_matrix_product(struct translator *t, const struct tree_expr *e)
{
    const struct type *column = type_part(t, e->type);
    uint32_t left = emit_value(t, e->arguments[0]), right = emit_value(t, e->arguments[1]);
    uint32_t columns[4];
    for (uint32_t i = 0; i < e->type->columns; i++) {
        uint32_t a = EMIT(t, OpCompositeExtract, column, left, i);
        uint32_t b = EMIT(t, OpCompositeExtract, column, right, i);
        columns[i] = EMIT(t, OpFMul, column, a, b);
    }
    return emit(t, OpCompositeConstruct, e->type, e->type->columns, columns);
}

static uint32_t emit_plain(struct translator *t, const struct tree_expr *e)
{
    uint32_t operands[MOST_ARGUMENTS];
    const struct builtin *b = e->builtin;
    emit_arguments(t, e, operands);
    if (e->number > 0)
        use_type(t, e->arguments[0]->type);
    switch (b->how) {
    case HOW_EXTENDED:
        return emit_extended(t, emit_builtin_code_of(e), e->type, e->number, operands);
    case HOW_MATRIX_EXTENDED:
        return emit_extended(t, b->code[0], e->type, e->number, operands);
    case HOW_MATRIX:
        return emit(t, b->code[0], e->type, e->number, operands);
    case HOW_MIX_BOOL:
        return EMIT(t, OpSelect, e->type, operands[2], operands[1], operands[0]);
    case HOW_DOT:
        return emit(t, type_is_scalar(e->arguments[0]->type) ? OpFMul : OpDot, e->type, 2,
                    operands);
    default:
        if (emit_builtin_code_of(e) == OpBitcast && e->type == e->arguments[0]->type)
            return operands[0];
        return emit(t, e->op == TYPE_VOID ? b->code[0] : emit_builtin_code_of(e), e->type,
                    e->number, operands);
    }
}

static uint32_t emit_dot(struct translator *t, const struct tree_expr *e)
{
    enum { SWAPPED = 1, PACKED = 2 };
    uint32_t operands[MOST_ARGUMENTS], count = e->number;
    emit_arguments(t, e, operands);
    if (e->builtin->number & SWAPPED) { // the signed operand is the first one
        uint32_t first = operands[0];
        operands[0] = operands[1];
        operands[1] = first;
    }
    if (e->builtin->number & PACKED)
        operands[count++] = PackedVectorFormat4x8Bit;
    use_type(t, e->arguments[0]->type);
    return emit(t, e->builtin->code[0], e->type, count, operands);
}

// --- cooperative matrices --------------------------------------------------------------

static uint32_t emit_builtin_word(struct translator *t, struct tree_expr *e)
{
    return emit_value(t, convert_base(t, e, TYPE_UINT32));
}

// A pointer to the array's element with which a transfer begins.
static void matrix_element(struct translator *t, const struct tree_expr *call,
                           struct access *out)
{
    struct tree_expr *array = call->arguments[1];
    struct tree_expr *e = expr_new(t, EXPR_INDEX, type_part(t, array->type), &array->at);
    e->left = array;
    e->right = call->arguments[2];
    access_of(t, e, out);
    if (out->storage != StorageClassWorkgroup &&
        out->storage != StorageClassStorageBuffer &&
        out->storage != StorageClassPhysicalStorageBuffer)
        fail_at(t, &array->at, "'%s' of a variable, expected memory of a buffer or shared",
                call->builtin->name);
}

static uint32_t emit_matrix_transfer(struct translator *t, const struct tree_expr *e)
{
    struct access memory;
    bool is_load = e->builtin->how == HOW_COOPMAT_LOAD;
    uint32_t operands[8], count = 0, value = 0;
    matrix_element(t, e, &memory);
    if (!is_load)
        value = emit_value(t, e->arguments[0]);
    operands[count++] = access_pointer(t, &memory);
    if (!is_load)
        operands[count++] = value;
    uint32_t stride = emit_builtin_word(t, e->arguments[3]);
    operands[count++] = emit_builtin_word(t, e->arguments[4]);
    operands[count++] = stride;
    count += memory_operands(t, &memory, !is_load, operands + count);
    if (!is_load) {
        ir_emit(t->ir, e->builtin->code[0], 0, count, operands);
        return 0;
    }
    uint32_t id = emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands);
    store_to(t, e->arguments[0], id);
    return 0;
}

static uint32_t emit_multiply(struct translator *t, const struct tree_expr *e)
{
    static const uint32_t is_signed[3] = {
        CooperativeMatrixOperandsMatrixASignedComponentsKHR,
        CooperativeMatrixOperandsMatrixBSignedComponentsKHR,
        CooperativeMatrixOperandsMatrixCSignedComponentsKHR |
            CooperativeMatrixOperandsMatrixResultSignedComponentsKHR};
    uint32_t operands[4], mask = 0;
    for (uint32_t i = 0; i < 3; i++) {
        operands[i] = emit_value(t, e->arguments[i]);
        if (base_is_signed(e->arguments[i]->type->element->base))
            mask |= is_signed[i];
    }
    if (e->number == 4) {
        const struct tree_expr *extra = e->arguments[3];
        if (extra->kind != EXPR_CONSTANT)
            fail_at(t, &extra->at, "the operands of 'coopMatMulAdd' are no constant");
        mask |= (uint32_t)extra->bits[0];
    }
    operands[3] = mask;
    return emit(t, e->builtin->code[0], e->type, mask != 0 ? 4 : 3, operands);
}

static uint32_t emit_coopmat(struct translator *t, const struct tree_expr *e)
{
    return e->builtin->how == HOW_COOPMAT_MULTIPLY ? emit_multiply(t, e)
                                                   : emit_matrix_transfer(t, e);
}

// --- tensors ---------------------------------------------------------------------------

static uint32_t emit_set(struct translator *t, const struct tree_expr *e)
{
    uint32_t operands[MOST_ARGUMENTS];
    if (e->builtin->number == 0)
        return emit(t, e->builtin->code[0], e->type, 0, NULL);
    operands[0] = emit_value(t, e->arguments[0]);
    for (uint32_t i = 1; i < e->number; i++)
        operands[i] = emit_value(t, convert_base(t, e->arguments[i], TYPE_UINT32));
    return emit(t, e->builtin->code[0], e->type, e->number, operands);
}

static void emit_tensor_transfer(struct translator *t, const struct tree_expr *e)
{
    struct access memory;
    bool is_load = e->builtin->how == HOW_COOPMAT_LOAD_TENSOR;
    uint32_t operands[12], count = 3, mask = 0;
    uint32_t value = emit_value(t, e->arguments[0]);
    matrix_element(t, e, &memory);
    operands[0] = access_pointer(t, &memory);
    operands[1] = value;
    operands[2] = emit_value(t, e->arguments[3]);
    uint32_t num_memory = memory_operands(t, &memory, !is_load, operands + count);
    count += num_memory > 0 ? num_memory : 1; // a mask of 0
    uint32_t at_mask = count++;
    for (uint32_t i = 4; i < e->number; i++) {
        const struct tree_expr *argument = e->arguments[i];
        bool is_view = argument->kind != EXPR_FUNCTION;
        mask |= is_view ? TensorAddressingOperandsTensorView
                        : TensorAddressingOperandsDecodeFunc;
        operands[count++] =
            is_view ? emit_value(t, argument) : argument->function->ir->head->id;
        if (!is_view)
            use_needs(t, NEED(MATRIX_BLOCK_LOADS));
    }
    operands[at_mask] = mask;
    if (is_load)
        store_to(t, e->arguments[0],
                 emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands));
    else
        ir_emit(t->ir, e->builtin->code[0], 0, count, operands);
}

static void emit_per_element(struct translator *t, const struct tree_expr *e)
{
    const struct function *f = e->arguments[2]->function;
    uint32_t operands[MOST_ARGUMENTS], count = 2;
    operands[0] = emit_value(t, e->arguments[1]);
    operands[1] = f->ir->head->id;
    for (uint32_t i = 3; i < e->number; i++) { // row, column and element come before them
        struct tree_expr *argument = e->arguments[i];
        if (argument->type->base != TYPE_COOPMAT)
            argument = convert_to(t, argument, f->parameters[i].type, "an argument");
        operands[count++] = emit_value(t, argument);
    }
    store_to(t, e->arguments[0],
             emit(t, e->builtin->code[0], e->arguments[0]->type, count, operands));
}

static void emit_reduce(struct translator *t, const struct tree_expr *e)
{
    const struct tree_expr *mask = e->arguments[2];
    if (mask->kind != EXPR_CONSTANT)
        fail_at(t, &mask->at, "the kind of a reduction is no constant");
    uint32_t value = emit_value(t, e->arguments[1]);
    store_to(t, e->arguments[0],
             EMIT(t, e->builtin->code[0], e->arguments[0]->type, value,
                  (uint32_t)mask->bits[0], e->arguments[3]->function->ir->head->id));
}

static uint32_t emit_tensor(struct translator *t, const struct tree_expr *e)
{
    switch (e->builtin->how) {
    case HOW_TENSOR:
        return emit_set(t, e);
    case HOW_COOPMAT_REDUCE:
        emit_reduce(t, e);
        return 0;
    case HOW_COOPMAT_PER_ELEMENT:
        emit_per_element(t, e);
        return 0;
    case HOW_COOPMAT_TRANSPOSE:
        store_to(t, e->arguments[0],
                 EMIT(t, e->builtin->code[0], e->arguments[0]->type,
                      emit_value(t, e->arguments[1])));
        return 0;
    default:
        emit_tensor_transfer(t, e);
        return 0;
    }
}

// --- all of them -----------------------------------------------------------------------

uint32_t emit_builtin(struct translator *t, const struct tree_expr *e)
{
    const struct builtin *b = e->builtin;
    use_needs(t, b->needs);
    switch (b->how) {
    case HOW_MODF:
        return emit_modf(t, e);
    case HOW_CARRY:
    case HOW_PRODUCT:
        return emit_two_results(t, e);
    case HOW_ATOMIC:
        return emit_atomic(t, e);
    case HOW_BARRIER:
    case HOW_FENCE:
        emit_barrier(t, e);
        return 0;
    case HOW_SCOPED_BARRIER:
    case HOW_SCOPED_FENCE:
        emit_scoped_barrier(t, e);
        return 0;
    case HOW_GROUP:
    case HOW_GROUP_REDUCE:
    case HOW_GROUP_QUAD:
        return emit_group(t, e);
    case HOW_MATRIX_PRODUCT:
        return builtin_emit_matrix_product(t, e);
    case HOW_COOPMAT_LOAD:
    case HOW_COOPMAT_STORE:
    case HOW_COOPMAT_MULTIPLY:
        return emit_coopmat(t, e);
    case HOW_DOT_INTEGER:
        return emit_dot(t, e);
    default:
        return b->how >= HOW_TENSOR ? emit_tensor(t, e) : emit_plain(t, e);
    }
}
