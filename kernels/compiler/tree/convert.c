// SPDX-License-Identifier: MIT
// Conversions between numbers: which are implicit.
#include "build.h"

static bool has_same_shape(const struct type *a, const struct type *b)
{
    return a->base < NUM_SCALARS && b->base < NUM_SCALARS && a->rows == b->rows &&
           a->columns == b->columns;
}

// The rank of a conversion. 0: the same; the smaller, the better; RANK_NONE: there is none.
// Widening keeps the value.
static uint32_t base_rank(enum base from, enum base to)
{
    uint32_t from_width = base_width(from), to_width = base_width(to);
    if (from == to)
        return RANK_EXACT;
    if (from <= TYPE_BOOL || to <= TYPE_BOOL)
        return RANK_NONE;
    if (base_is_float(from))
        return base_is_float(to) && to_width > from_width ? RANK_PROMOTION + (to_width > 32)
                                                          : RANK_NONE;
    if (base_is_int(to)) {
        bool keeps = base_is_signed(from) == base_is_signed(to);
        if (to_width < from_width || (to_width == from_width && !base_is_signed(from)))
            return RANK_NONE;
        if (to_width > from_width && keeps)
            return RANK_PROMOTION + (to_width > 32);
        return RANK_CONVERSION + 2 + (to_width > 32);
    }
    if (to == TYPE_BFLOAT16 || (to == TYPE_FLOAT16 && from_width > 16) ||
        (to == TYPE_FLOAT32 && from_width > 32))
        return RANK_NONE;
    return RANK_CONVERSION + (to == TYPE_FLOAT16 ? 4 : to == TYPE_FLOAT32 ? 5 : 6);
}

uint32_t convert_rank(struct translator *t, const struct type *from, const struct type *to)
{
    (void)t;
    if (from == to)
        return RANK_EXACT;
    return has_same_shape(from, to) ? base_rank(from->base, to->base) : RANK_NONE;
}

enum base common_base(struct translator *t, enum base a, enum base b)
{
    (void)t;
    if (base_rank(a, b) != RANK_NONE)
        return b;
    return base_rank(b, a) != RANK_NONE ? a : TYPE_VOID;
}

// Types of 8 and 16 bits that are stored only are converted to their own kind only.
static void check_narrow(struct translator *t, enum base from, enum base to,
                         const struct position *at)
{
    for (uint32_t i = 0; i < 2; i++) {
        enum base base = i == 0 ? from : to, other = i == 0 ? to : from;
        uint32_t width = base_width(base);
        if (base_is_int(base) && width == 8 && !base_is_int(other))
            extension_check(t, EXTENSION_BIT(INT8), at, "a conversion of int8_t");
        else if (base_is_int(base) && width == 16 && !base_is_int(other))
            extension_check(t, EXTENSION_BIT(INT16), at, "a conversion of int16_t");
        else if (base == TYPE_FLOAT16 && !base_is_float(other))
            extension_check(t, EXTENSION_BIT(FLOAT16), at, "a conversion of float16_t");
    }
}

struct tree_expr *convert_base(struct translator *t, struct tree_expr *from, enum base base)
{
    enum base old =
        from->type->base == TYPE_COOPMAT ? from->type->element->base : from->type->base;
    if (old == base)
        return from;
    const struct type *type = type_like(t, from->type, base);
    if (from->kind == EXPR_CONSTANT) {
        struct tree_expr *e = expr_constant(t, type, &from->at);
        for (uint32_t i = 0; i < type->components; i++)
            e->bits[i] = fold_convert(old, base, from->bits[i]);
        return e;
    }
    check_narrow(t, old, base, &from->at);
    if (from->is_spec) {
        uint32_t id = convert_spec(t, from->id, from->type, base);
        if (id != 0)
            return expr_spec(t, type, id, &from->at);
    }
    struct tree_expr *e = expr_new(t, EXPR_CONVERT, type, &from->at);
    e->left = from;
    expr_child(t, e, from);
    return e;
}

struct tree_expr *convert_to(struct translator *t, struct tree_expr *e,
                             const struct type *type, const char *what)
{
    if (e->type == type)
        return e;
    if (convert_rank(t, e->type, type) == RANK_NONE)
        fail_at(t, &e->at, "%.60s is of type '%s', expected '%s'", what,
                type_text(t, e->type), type_text(t, type));
    return convert_base(t, e, type->base);
}

// Converts specialisation constants by operations on them, only between scalars that Vulkan
// has.
uint32_t convert_spec(struct translator *t, uint32_t id, const struct type *from,
                      enum base to)
{
    enum base base = from->base;
    uint32_t type = type_id(t, type_scalar(t, to), LAYOUT_NONE);
    if (!type_is_scalar(from) || base_is_float(base) || base_is_float(to))
        return 0;
    if (base == TYPE_BOOL)
        return ir_spec_operation(
            t->ir, type, OpSelect, 3,
            (uint32_t[]){id, constant_scalar(t, to, 1), constant_scalar(t, to, 0)});
    if (to == TYPE_BOOL)
        return ir_spec_operation(t->ir, type, OpINotEqual, 2,
                                 (uint32_t[]){id, constant_scalar(t, base, 0)});
    if (base_width(base) == base_width(to))
        return ir_spec_operation(t->ir, type, OpIAdd, 2,
                                 (uint32_t[]){id, constant_scalar(t, to, 0)});
    return ir_spec_operation(t->ir, type, base_is_signed(base) ? OpSConvert : OpUConvert, 1,
                             &id);
}
