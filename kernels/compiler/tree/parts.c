// SPDX-License-Identifier: MIT
// Parts of values, and values made of parts: a[i], a.xy, a.member, a.length(), vec4(...).
#include "build.h"

#include <string.h>

// --- elements --------------------------------------------------------------------------

// The number of elements, for a constant index; 0: not known.
static uint32_t num_parts(const struct type *type)
{
    if (type->base == TYPE_ARRAY)
        return type->length;
    return type_is_matrix(type) ? type->columns : type->rows;
}

static struct tree_expr *tree_parts_slice(struct translator *t, const struct tree_expr *of,
                                          const struct type *type, uint64_t first,
                                          const struct position *at)
{
    struct tree_expr *e = expr_new(t, EXPR_CONSTANT, type, at);
    e->bits = of->bits + first;
    return e;
}

static void check_index(struct translator *t, const struct tree_expr *left,
                        const struct tree_expr *right)
{
    if (!base_is_int(right->type->base) || !type_is_scalar(right->type))
        fail_at(t, &right->at, "an index is of type '%s', expected an integer",
                type_text(t, right->type));
    uint32_t count = num_parts(left->type);
    if (right->kind == EXPR_CONSTANT && base_is_signed(right->type->base) &&
        right->bits[0] >> 63)
        fail_at(t, &right->at, "the index %lld is negative", (long long)right->bits[0]);
    if (right->kind == EXPR_CONSTANT && count != 0 && right->bits[0] >= count)
        fail_at(t, &right->at, "the index %llu is out of range, expected less than %u",
                (unsigned long long)right->bits[0], count);
}

struct tree_expr *expr_index(struct translator *t, struct tree_expr *left,
                             struct tree_expr *right, const struct position *at)
{
    const struct type *type = left->type;
    bool has_parts = type->base == TYPE_ARRAY || type->base == TYPE_COOPMAT ||
                     type->base == TYPE_REFERENCE ||
                     (type_is_number(type) && !type_is_scalar(type));
    if (!has_parts)
        fail_at(t, at, "a value of type '%s' is indexed, expected an array or a vector",
                type_text(t, type));
    if (type->base == TYPE_REFERENCE)
        extension_check(t, EXTENSION_BIT(REFERENCE_2), at, "an index of a reference");
    check_index(t, left, right);
    const struct type *part = type->base == TYPE_REFERENCE ? type : type_part(t, type);
    if (left->kind == EXPR_CONSTANT && right->kind == EXPR_CONSTANT)
        return tree_parts_slice(t, left, part, right->bits[0] * part->components, at);
    struct tree_expr *e = expr_new(t, EXPR_INDEX, part, at);
    e->left = left;
    e->right = right;
    expr_child(t, e, left);
    expr_child(t, e, right);
    return e;
}

static uint32_t swizzle_component(char letter, uint32_t *set)
{
    static const char sets[3][4] = {
        {'x', 'y', 'z', 'w'}, {'r', 'g', 'b', 'a'}, {'s', 't', 'p', 'q'}};
    for (uint32_t i = 0; i < 12; i++)
        if (sets[i / 4][i % 4] == letter) {
            *set = i / 4;
            return i % 4;
        }
    return 4;
}

static struct tree_expr *swizzle_constant(struct translator *t, const struct tree_expr *e)
{
    struct tree_expr *value = expr_constant(t, e->type, &e->at);
    for (uint32_t i = 0; i < e->num_swizzle; i++)
        value->bits[i] = e->left->bits[e->swizzle[i]];
    return value;
}

// gl_WorkGroupSize.x: a part of a composite specialisation constant.
static struct tree_expr *swizzle_spec(struct translator *t, const struct tree_expr *e)
{
    uint32_t operands[2] = {e->left->id, e->swizzle[0]};
    uint32_t id = ir_spec_operation(t->ir, type_id(t, e->type, LAYOUT_NONE),
                                    OpCompositeExtract, 2, operands);
    return expr_spec(t, e->type, id, &e->at);
}

static struct tree_expr *tree_parts_swizzle(struct translator *t, struct tree_expr *left,
                                            const struct name *name,
                                            const struct position *at)
{
    uint32_t first_set = 0, set = 0;
    struct tree_expr *e = expr_new(t, EXPR_SWIZZLE, left->type, at);
    if (name->size > 4)
        fail_at(t, at, "a swizzle '%.60s' has %u components, expected at most 4",
                name->text, name->size);
    for (uint32_t i = 0; i < name->size; i++) {
        uint32_t component = swizzle_component(name->text[i], &set);
        first_set = i == 0 ? set : first_set;
        if (component >= left->type->rows || set != first_set)
            fail_at(t, at, "'%.60s' is no swizzle of type '%s'", name->text,
                    type_text(t, left->type));
        e->swizzle[i] = (uint8_t)component;
    }
    e->num_swizzle = (uint8_t)name->size;
    e->type = name->size == 1 ? type_scalar(t, left->type->base)
                              : type_vector(t, left->type->base, name->size);
    e->left = left;
    if (left->kind == EXPR_CONSTANT)
        return swizzle_constant(t, e);
    if (left->is_spec && e->num_swizzle == 1)
        return type_is_scalar(left->type) ? left : swizzle_spec(t, e);
    if (left->kind == EXPR_SWIZZLE) { // of a swizzle: one swizzle
        for (uint32_t i = 0; i < e->num_swizzle; i++)
            e->swizzle[i] = left->swizzle[e->swizzle[i]];
        e->left = left->left;
    }
    expr_child(t, e, e->left);
    return e;
}

struct tree_expr *expr_field(struct translator *t, struct tree_expr *left,
                             const struct name *name, const struct position *at)
{
    const struct type *type = left->type;
    if (type_is_number(type) && !type_is_matrix(type))
        return tree_parts_swizzle(t, left, name, at);
    if (type->base != TYPE_STRUCT && type->base != TYPE_REFERENCE)
        fail_at(t, at, "a value of type '%s' has no member '%.60s'", type_text(t, type),
                name->text);
    const struct record *record = type->record;
    uint32_t number = 0;
    uint64_t first = 0;
    while (number < record->num_members && record->members[number].name != name)
        first += record->members[number++].type->components;
    if (number == record->num_members)
        fail_at(t, at, "'%.60s' is no member of '%.60s'", name->text, type_text(t, type));
    const struct type *part = record->members[number].type;
    if (left->kind == EXPR_CONSTANT)
        return tree_parts_slice(t, left, part, first, at);
    struct tree_expr *e = expr_new(t, EXPR_MEMBER, part, at);
    e->left = left;
    e->number = number;
    expr_child(t, e, left);
    return e;
}

struct tree_expr *expr_length(struct translator *t, struct tree_expr *left,
                              const struct position *at)
{
    const struct type *type = left->type;
    if (type_is_number(type) && !type_is_scalar(type))
        return expr_uint(t, TYPE_INT32, num_parts(type), at);
    if (type->base != TYPE_ARRAY && type->base != TYPE_COOPMAT)
        fail_at(t, at, "length() of type '%s', expected an array", type_text(t, type));
    if (type->base == TYPE_ARRAY && type->length != 0)
        return expr_uint(t, TYPE_INT32, type->length, at);
    if (type->base == TYPE_ARRAY && type->length_id != 0) {
        struct tree_expr *length =
            expr_spec(t, type_scalar(t, TYPE_UINT32), type->length_id, at);
        const struct ir_inst *inst = t->ir->definitions[type->length_id];
        if (inst->type == type_id(t, type_scalar(t, TYPE_INT32), LAYOUT_NONE))
            length->type = type_scalar(t, TYPE_INT32);
        return convert_base(t, length, TYPE_INT32);
    }
    if (type->base == TYPE_ARRAY && left->kind != EXPR_MEMBER)
        fail_at(t, at, "length() of an array whose size is not known");
    struct tree_expr *e = expr_new(t, EXPR_LENGTH, type_scalar(t, TYPE_INT32), at);
    e->left = left;
    expr_child(t, e, left);
    return e;
}

// --- constructors ----------------------------------------------------------------------

static struct tree_expr *with_arguments(struct translator *t, enum expr_kind kind,
                                        const struct type *type,
                                        struct tree_expr **arguments, uint32_t count,
                                        const struct position *at)
{
    struct tree_expr *e = expr_new(t, kind, type, at);
    e->arguments = arguments;
    e->number = count;
    for (uint32_t i = 0; i < count; i++)
        expr_child(t, e, arguments[i]);
    return e;
}

static bool tree_parts_all_constant(struct tree_expr **arguments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (arguments[i]->kind != EXPR_CONSTANT)
            return false;
    return true;
}

// The arguments' components one behind the other.
static struct tree_expr *fold_flatten(struct translator *t, const struct type *type,
                                      struct tree_expr **arguments, uint32_t count,
                                      const struct position *at)
{
    struct tree_expr *e = expr_constant(t, type, at);
    uint32_t done = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < arguments[i]->type->components && done < type->components;
             j++)
            e->bits[done++] = arguments[i]->bits[j];
    return e;
}

// A struct or an array of exactly its parts.
static struct tree_expr *tree_parts_aggregate(struct translator *t, const struct type *type,
                                              struct tree_expr **arguments, uint32_t count,
                                              const struct position *at)
{
    uint32_t wanted = type->base == TYPE_STRUCT ? type->record->num_members : type->length;
    if (type->length_id != 0)
        fail_at(t, at, "a value is made of an array with a specialised size");
    if (type->base == TYPE_ARRAY && wanted == 0 && count != 0) {
        type = type_array(t, type->element, count, 0);
        wanted = count;
    }
    if (count != wanted || count == 0)
        fail_at(t, at, "'%.60s' is made of %u values, expected %u", type_text(t, type),
                count, wanted);
    for (uint32_t i = 0; i < count; i++)
        arguments[i] = convert_to(t, arguments[i],
                                  type->base == TYPE_STRUCT ? type->record->members[i].type
                                                            : type->element,
                                  type->base == TYPE_STRUCT ? "a member" : "an element");
    if (tree_parts_all_constant(arguments, count))
        return fold_flatten(t, type, arguments, count, at);
    return with_arguments(t, EXPR_CONSTRUCT, type, arguments, count, at);
}

static struct tree_expr *fold_diagonal(struct translator *t, const struct type *type,
                                       const struct tree_expr *from,
                                       const struct position *at)
{
    struct tree_expr *e = expr_constant(t, type, at);
    bool is_matrix = type_is_matrix(from->type);
    for (uint32_t c = 0; c < type->columns; c++)
        for (uint32_t r = 0; r < type->rows; r++) {
            uint64_t one = base_is_float(type->base) ? double_bits(1) : 1;
            uint64_t bits = c != r ? 0 : is_matrix ? one : from->bits[0];
            if (is_matrix && c < from->type->columns && r < from->type->rows)
                bits = from->bits[c * from->type->rows + r];
            e->bits[c * type->rows + r] = bits;
        }
    return e;
}

static struct tree_expr *construct_of_one(struct translator *t, const struct type *type,
                                          struct tree_expr *from, const struct position *at)
{
    bool is_scalar = type_is_scalar(from->type);
    from = convert_base(t, from, type->base);
    if (from->type == type) {
        if (!expr_is_lvalue(from))
            return from;
        struct tree_expr *copy = expr_new(t, EXPR_UNARY, type, at); // no variable any more
        copy->op = '+';
        copy->left = from;
        expr_child(t, copy, from);
        return copy;
    }
    if (type_is_matrix(type) && (is_scalar || type_is_matrix(from->type))) {
        if (from->kind == EXPR_CONSTANT)
            return fold_diagonal(t, type, from, at);
        struct tree_expr *e =
            expr_new(t, is_scalar ? EXPR_DIAGONAL : EXPR_RESIZE, type, at);
        e->left = from;
        expr_child(t, e, from);
        return e;
    }
    if (is_scalar && from->kind != EXPR_CONSTANT) {
        struct tree_expr *e = expr_new(t, EXPR_SPLAT, type, at);
        e->left = from;
        expr_child(t, e, from);
        return e;
    }
    if (is_scalar) {
        struct tree_expr *e = expr_constant(t, type, at);
        for (uint32_t i = 0; i < type->components; i++)
            e->bits[i] = from->bits[0];
        return e;
    }
    if (type_is_vector(from->type) && type->rows < from->type->rows &&
        !type_is_matrix(type)) {
        struct tree_expr *e = expr_new(t, EXPR_SWIZZLE, type, at);
        e->left = from;
        e->num_swizzle = type->rows;
        for (uint32_t i = 0; i < type->rows; i++)
            e->swizzle[i] = (uint8_t)i;
        expr_child(t, e, from);
        return from->kind == EXPR_CONSTANT ? swizzle_constant(t, e) : e;
    }
    return NULL;
}

static struct tree_expr *construct_number(struct translator *t, const struct type *type,
                                          struct tree_expr **arguments, uint32_t count,
                                          const struct position *at)
{
    uint32_t components = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct type *from = arguments[i]->type;
        if (!type_is_number(from))
            fail_at(t, &arguments[i]->at,
                    "'%s' is made of a value of type '%s', expected a number",
                    type_text(t, type), type_text(t, from));
        if (components >= type->components)
            fail_at(t, &arguments[i]->at, "'%s' is made of too many values, expected %u",
                    type_text(t, type), type->components);
        components += from->components;
    }
    struct tree_expr *e = count == 1 ? construct_of_one(t, type, arguments[0], at) : NULL;
    if (e != NULL)
        return e;
    if (components < type->components)
        fail_at(t, at, "'%s' is made of %u components, expected %u", type_text(t, type),
                components, type->components);
    for (uint32_t i = 0; i < count; i++) {
        if (type_is_matrix(type) && type_is_matrix(arguments[i]->type))
            fail_at(t, &arguments[i]->at, "a matrix is made of a matrix and others");
        arguments[i] = convert_base(t, arguments[i], type->base);
    }
    if (type_is_scalar(type)) { // of a vector: its first component
        e = expr_new(t, EXPR_SWIZZLE, type, at);
        e->left = arguments[0];
        e->num_swizzle = 1;
        expr_child(t, e, e->left);
        if (type_is_matrix(e->left->type))
            fail_at(t, at, "a scalar is made of a matrix, expected one of its components");
        return e->left->kind == EXPR_CONSTANT ? swizzle_constant(t, e) : e;
    }
    if (tree_parts_all_constant(arguments, count))
        return fold_flatten(t, type, arguments, count, at);
    return with_arguments(t, EXPR_FLATTEN, type, arguments, count, at);
}

// References are made of addresses, and addresses of references.
static struct tree_expr *construct_reference(struct translator *t, const struct type *type,
                                             struct tree_expr *from,
                                             const struct position *at)
{
    enum base base = from->type->base;
    bool is_pair =
        type_is_vector(from->type) && from->type->rows == 2 && base == TYPE_UINT32;
    bool is_address = type_is_scalar(from->type) && base == TYPE_UINT64;
    if (type->base == TYPE_REFERENCE && type_is_scalar(from->type) && base_is_int(base) &&
        from->kind == EXPR_CONSTANT) {
        from = convert_base(t, from, TYPE_UINT64);
        is_address = true;
    }
    bool is_fine =
        type->base == TYPE_REFERENCE
            ? is_pair || is_address || base == TYPE_REFERENCE
            : type == type_scalar(t, TYPE_UINT64) || type == type_vector(t, TYPE_UINT32, 2);
    if (!is_fine)
        fail_at(t, at, "'%s' is made of a value of type '%s', expected an address",
                type_text(t, type), type_text(t, from->type));
    struct tree_expr *e = expr_new(t, EXPR_CONVERT, type, at);
    e->left = from;
    expr_child(t, e, from);
    return e;
}

static struct tree_expr *construct_coopmat(struct translator *t, const struct type *type,
                                           struct tree_expr *from,
                                           const struct position *at)
{
    const struct type *element = type->element;
    if (from->type->base != TYPE_COOPMAT) {
        if (!type_is_number(from->type) || !type_is_scalar(from->type))
            fail_at(t, at, "a cooperative matrix is made of type '%s', expected a number",
                    type_text(t, from->type));
        struct tree_expr *e = expr_new(t, EXPR_SPLAT, type, at);
        e->left = convert_base(t, from, element->base);
        expr_child(t, e, e->left);
        return e;
    }
    from = convert_base(t, from, element->base);
    if (from->type == type)
        return from;
    const struct type *other = from->type;
    if (other->scope != type->scope || other->matrix_rows != type->matrix_rows ||
        other->matrix_columns != type->matrix_columns)
        fail_at(t, at, "a cooperative matrix is made of one of another size or scope");
    extension_check(t, EXTENSION_BIT(MATRIX_2), at, "a matrix of another use");
    struct tree_expr *e = expr_new(t, EXPR_CONVERT, type, at);
    e->left = from;
    expr_child(t, e, from);
    return e;
}

struct tree_expr *expr_construct(struct translator *t, const struct type *type,
                                 struct tree_expr **arguments, uint32_t count,
                                 const struct position *at)
{
    if (type->base == TYPE_STRUCT || type->base == TYPE_ARRAY)
        return tree_parts_aggregate(t, type, arguments, count, at);
    if (count == 0)
        fail_at(t, at, "'%s' is made of no values, expected at least one",
                type_text(t, type));
    if (type->base == TYPE_VOID)
        fail_at(t, at, "a value of type 'void' is made");
    if (count == 1 && type->base == TYPE_COOPMAT)
        return construct_coopmat(t, type, arguments[0], at);
    if (count == 1 &&
        (type->base == TYPE_REFERENCE || arguments[0]->type->base == TYPE_REFERENCE))
        return construct_reference(t, type, arguments[0], at);
    if (!type_is_number(type))
        fail_at(t, at, "'%.60s' is made of %u values, expected one", type_text(t, type),
                count);
    return construct_number(t, type, arguments, count, at);
}
