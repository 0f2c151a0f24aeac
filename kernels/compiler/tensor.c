// SPDX-License-Identifier: MIT
// Layouts and views of tensors, and cooperative matrices that are read and written by them
// (GL_NV_cooperative_matrix2).
#include "builtins.h"

enum { MOST_DIMENSIONS = 5, MOST_PARAMETERS_OF_TENSOR = 2 + MOST_DIMENSIONS };
enum { CLAMP_UNDEFINED = 0, MOST_CLAMP = 4, TENSOR_VIEW_OPERAND = 1 };

// --- types
// ------------------------------------------------------------------------------

// The parameters of a type that the source has given, all of them constants.
struct parameters {
    uint32_t count, values[MOST_PARAMETERS_OF_TENSOR];
    struct place at[MOST_PARAMETERS_OF_TENSOR];
};

static void add_parameter(struct translator *t, struct parameters *p, const struct expr *e)
{
    bool wants_bool = e->type->base == TYPE_BOOL;
    if (e->kind != EXPR_CONSTANT || !type_is_scalar(e->type) ||
        !(wants_bool || base_is_int(e->type->base)))
        fail_at(t, &e->at, "a parameter of a tensor is no constant integer or bool");
    if (p->count == MOST_PARAMETERS_OF_TENSOR)
        fail_at(t, &e->at, "a tensor has more than %u parameters", p->count);
    p->at[p->count] = e->at;
    p->values[p->count++] = e->bits[0] <= UINT16_MAX ? (uint32_t)e->bits[0] : UINT32_MAX;
}

static void check_range(struct translator *t, const struct parameters *p, uint32_t i,
                        uint32_t least, uint32_t most, const char *what)
{
    if (i < p->count && (p->values[i] < least || p->values[i] > most))
        fail_at(t, &p->at[i], "%s of a tensor is %d, expected %u to %u", what,
                (int)p->values[i], least, most);
}

static const struct type *layout_of(struct translator *t, const struct parameters *p,
                                    const struct place *at)
{
    if (p->count < 1 || p->count > 2)
        fail_at(t, at, "a tensor layout has %u parameters, expected 1 or 2", p->count);
    check_range(t, p, 0, 1, MOST_DIMENSIONS, "the number of dimensions");
    check_range(t, p, 1, CLAMP_UNDEFINED, MOST_CLAMP, "the clamp mode");
    uint32_t clamp = p->count > 1 ? p->values[1] : CLAMP_UNDEFINED;
    uint32_t ids[2] = {ir_u32(t->ir, p->values[0]), ir_u32(t->ir, clamp)};
    return type_tensor(t, TYPE_TENSOR_LAYOUT, p->values[0], 2, ids);
}

static const struct type *view_of(struct translator *t, const struct parameters *p,
                                  const struct place *at)
{
    uint32_t ids[MOST_PARAMETERS_OF_TENSOR], used = 0;
    check_range(t, p, 0, 1, MOST_DIMENSIONS, "the number of dimensions");
    uint32_t dimensions = p->count > 0 ? p->values[0] : 0;
    if (p->count < 1 || (p->count > 2 && p->count != 2 + dimensions))
        fail_at(t, at,
                "a tensor view of %u dimensions has %u parameters, expected 1, 2 or %u",
                dimensions, p->count, 2 + dimensions);
    ids[0] = ir_u32(t->ir, dimensions);
    ids[1] = ir_bool(t->ir, p->count > 1 && p->values[1] != 0);
    for (uint32_t i = 0; i < dimensions; i++) {
        uint32_t axis = p->count > 2 ? p->values[2 + i] : i;
        check_range(t, p, 2 + i, 0, dimensions - 1, "an axis");
        if (used >> axis & 1)
            fail_at(t, &p->at[2 + i], "axis %u of a tensor view is named twice", axis);
        used |= 1u << axis;
        ids[2 + i] = ir_u32(t->ir, axis);
    }
    return type_tensor(t, TYPE_TENSOR_VIEW, dimensions, 2 + dimensions, ids);
}

// tensorLayoutNV<dimensions, clamp mode> or tensorViewNV<dimensions, has dimensions, axes>
const struct type *parse_tensor(struct translator *t)
{
    const struct token *token = t->token++;
    struct parameters p = {.count = 0};
    extension_check(t, EXTENSION_BIT(MATRIX_2), &token->at, token->name->text);
    expect(t, '<', "behind a tensor's type");
    do
        add_parameter(t, &p, parse_additive(t));
    while (accept(t, ','));
    expect(t, '>', "behind the parameters of a tensor");
    return token->name->keyword == KEYWORD_tensorLayoutNV ? layout_of(t, &p, &token->at)
                                                          : view_of(t, &p, &token->at);
}

// --- functions
// ----------------------------------------------------------------------------

static bool is_view_op(uint32_t op)
{
    return op >= OpCreateTensorViewNV && op <= OpTensorViewSetClipNV;
}

static void check_words(struct translator *t, const struct builtin *b,
                        struct expr **arguments, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < count; i++)
        if (!base_is_int(arguments[i]->type->base) || !type_is_scalar(arguments[i]->type))
            fail_at(t, &arguments[i]->at,
                    "argument %u of '%s' is of type '%s', expected 'uint'", i + 1, b->name,
                    type_text(t, arguments[i]->type));
}

static const struct type *check_create(struct translator *t, const struct builtin *b,
                                       struct expr **arguments, uint32_t count)
{
    struct parameters p = {.count = 0};
    if (count == 0)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        add_parameter(t, &p, arguments[i]);
    return is_view_op(b->code[0]) ? view_of(t, &p, &arguments[0]->at)
                                  : layout_of(t, &p, &arguments[0]->at);
}

// The table's number: so many words for each dimension, or 16 and so many words.
static const struct type *check_set(struct translator *t, const struct builtin *b,
                                    struct expr **arguments, uint32_t count)
{
    bool is_view = is_view_op(b->code[0]);
    if (count == 0)
        return NULL;
    const struct type *type = arguments[0]->type;
    if (type->base != (is_view ? TYPE_TENSOR_VIEW : TYPE_TENSOR_LAYOUT))
        fail_at(t, &arguments[0]->at, "'%s' has an argument of type '%s', expected '%s'",
                b->name, type_text(t, type), is_view ? "tensorViewNV" : "tensorLayoutNV");
    uint32_t wanted = b->number >= 16 ? b->number - 16u : b->number * type->length;
    if (count != 1 + wanted)
        fail_at(t, &arguments[0]->at, "'%s' of %u dimensions has %u arguments, expected %u",
                b->name, type->length, count, 1 + wanted);
    check_words(t, b, arguments, 1, count);
    return type;
}

// matrix, array, first element, layout, and perhaps a view
static const struct type *check_transfer(struct translator *t, const struct builtin *b,
                                         struct expr **arguments, uint32_t count)
{
    if (count < 4 || count > 5)
        return NULL;
    coopmat_check_memory(t, b, arguments);
    check_words(t, b, arguments, 2, 3);
    for (uint32_t i = 3; i < count; i++)
        if (arguments[i]->type->base != (i == 3 ? TYPE_TENSOR_LAYOUT : TYPE_TENSOR_VIEW))
            fail_at(t, &arguments[i]->at,
                    "argument %u of '%s' is of type '%s', expected '%s'", i + 1, b->name,
                    type_text(t, arguments[i]->type),
                    i == 3 ? "tensorLayoutNV" : "tensorViewNV");
    return type_scalar(t, TYPE_VOID);
}

const struct type *tensor_check(struct translator *t, const struct builtin *b,
                                struct expr **arguments, uint32_t count)
{
    if (b->how == HOW_TENSOR_CREATE)
        return check_create(t, b, arguments, count);
    if (b->how == HOW_TENSOR_SET)
        return check_set(t, b, arguments, count);
    return check_transfer(t, b, arguments, count);
}

static uint32_t emit_set(struct translator *t, const struct expr *e)
{
    uint32_t operands[1 + 2 * MOST_DIMENSIONS];
    for (uint32_t i = 0; i < e->number; i++)
        operands[i] = emit_value(t, i == 0 ? e->arguments[0]
                                           : convert_base(t, e->arguments[i], TYPE_UINT32));
    return emit(t, e->builtin->code[0], e->type, e->number, operands);
}

static uint32_t emit_transfer(struct translator *t, const struct expr *e)
{
    struct access memory, target;
    bool is_load = e->builtin->how == HOW_TENSOR_LOAD, has_view = e->number > 4;
    uint32_t operands[9], count = 0, id = 0;
    coopmat_memory(t, e, &memory);
    uint32_t matrix = emit_value(t, e->arguments[0]); // a load keeps what is clipped
    operands[count++] = access_pointer(t, &memory);
    operands[count++] = matrix;
    operands[count++] = emit_value(t, e->arguments[3]);
    uint32_t view = has_view ? emit_value(t, e->arguments[4]) : 0;
    uint32_t of_memory = memory_operands(t, &memory, !is_load, operands + count);
    count += of_memory > 0 ? of_memory : 1; // a mask of 0
    operands[count++] = has_view ? TENSOR_VIEW_OPERAND : 0;
    if (has_view)
        operands[count++] = view;
    const struct type *type = is_load ? e->arguments[0]->type : NULL;
    id = emit(t, e->builtin->code[0], type, count, operands);
    if (!is_load)
        return 0;
    access_of(t, e->arguments[0], &target);
    access_store(t, &target, id);
    return 0;
}

uint32_t emit_tensor(struct translator *t, const struct expr *e)
{
    if (e->builtin->how == HOW_TENSOR_CREATE)
        return emit(t, e->builtin->code[0], e->type, 0, NULL);
    return e->builtin->how == HOW_TENSOR_SET ? emit_set(t, e) : emit_transfer(t, e);
}
