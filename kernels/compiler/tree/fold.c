// SPDX-License-Identifier: MIT
// Constants: their values, and operations on them. Floats of every width are computed as
// double and rounded once, when the constant is made; integers are kept extended from their
// width to 64 bits.
#include "build.h"

#include <math.h>
#include <string.h>

double bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int64_t tree_fold_signed_of(uint64_t bits)
{
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t unsigned_of(int64_t value)
{
    return (uint64_t)value;
}

// Reduced to the width of a base, and extended again.
uint64_t fold_wrap(enum base base, uint64_t bits)
{
    uint32_t width = base_width(base);
    if (!base_is_int(base) || width == 64)
        return bits;
    uint64_t mask = ((uint64_t)1 << width) - 1;
    bits &= mask;
    return base_is_signed(base) && bits >> (width - 1) ? bits | ~mask : bits;
}

static double tree_fold_to_double(enum base base, uint64_t bits)
{
    if (base_is_float(base))
        return bits_double(bits);
    return base_is_signed(base) ? (double)tree_fold_signed_of(bits) : (double)bits;
}

// Out of range a float has no integer; this gives the nearest one.
static uint64_t double_to_int(enum base base, double value)
{
    if (value != value)
        return 0;
    if (base_is_signed(base) || value < 0)
        return value <= -9223372036854775808.0  ? (uint64_t)1 << 63
               : value >= 9223372036854775808.0 ? ~(uint64_t)0 >> 1
                                                : unsigned_of((int64_t)value);
    return value >= 18446744073709551616.0 ? ~(uint64_t)0 : (uint64_t)value;
}

uint64_t fold_convert(enum base from, enum base to, uint64_t bits)
{
    if (from == to)
        return bits;
    if (to == TYPE_BOOL)
        return base_is_float(from) ? bits_double(bits) != 0 : bits != 0;
    if (from == TYPE_BOOL)
        return base_is_float(to) ? double_bits(bits != 0) : bits != 0;
    if (base_is_float(to))
        return double_bits(tree_fold_to_double(from, bits));
    if (base_is_float(from))
        return fold_wrap(to, double_to_int(to, bits_double(bits)));
    return fold_wrap(to, bits);
}

// --- operations ------------------------------------------------------------------------

static uint64_t fold_int_division(enum base base, uint32_t op, uint64_t a, uint64_t b)
{
    if (b == 0)
        return fold_wrap(base, ~(uint64_t)0);
    if (!base_is_signed(base))
        return op == '/' ? a / b : a % b;
    if (b == ~(uint64_t)0) // the one quotient that could overflow
        return op == '/' ? fold_wrap(base, ~a + (a != 0)) : 0;
    int64_t x = tree_fold_signed_of(a), y = tree_fold_signed_of(b);
    return unsigned_of(op == '/' ? x / y : x % y);
}

static uint64_t tree_fold_negated(uint64_t bits)
{
    return bits == 0 ? 0 : ~bits + 1;
}

// Without unsigned overflow, by halves.
static uint64_t tree_fold_add(uint64_t a, uint64_t b)
{
    uint64_t low = (a & 0xffffffffu) + (b & 0xffffffffu);
    uint64_t high = (a >> 32) + (b >> 32) + (low >> 32);
    return (high & 0xffffffffu) << 32 | (low & 0xffffffffu);
}

static uint64_t tree_fold_multiply(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xffffffffu, b0 = b & 0xffffffffu;
    uint64_t low = a0 * b0;
    uint64_t cross = ((a >> 32) * b0 & 0xffffffffu) + (a0 * (b >> 32) & 0xffffffffu);
    return tree_fold_add(low, (cross & 0xffffffffu) << 32);
}

static bool tree_fold_int(enum base base, uint32_t op, uint64_t a, uint64_t b,
                          uint64_t *out)
{
    bool is_signed = base_is_signed(base);
    uint64_t count = b & 63;
    switch (op) {
    case '+':
        *out = tree_fold_add(a, b);
        break;
    case '-':
        *out = tree_fold_add(a, tree_fold_negated(b));
        break;
    case '*':
        *out = tree_fold_multiply(a, b);
        break;
    case '/':
    case '%':
        *out = fold_int_division(base, op, a, b);
        break;
    case '&':
        *out = a & b;
        break;
    case '|':
        *out = a | b;
        break;
    case '^':
        *out = a ^ b;
        break;
    case PUNCTUATOR('<', '<'):
        *out = count == 0 ? a : (a & (~(uint64_t)0 >> count)) << count;
        break;
    case PUNCTUATOR('>', '>'):
        *out = a >> count;
        if (is_signed && a >> 63 && count != 0)
            *out |= ~(~(uint64_t)0 >> count);
        break;
    default:
        return false;
    }
    *out = fold_wrap(base, *out);
    return true;
}

static bool fold_float(uint32_t op, double a, double b, uint64_t *out)
{
    double value;
    switch (op) {
    case '+':
        value = a + b;
        break;
    case '-':
        value = a - b;
        break;
    case '*':
        value = a * b;
        break;
    case '/':
        value = b != 0                         ? a / b
                : a == 0 || a != a             ? (double)NAN
                : (a < 0) != (signbit(b) != 0) ? -(double)INFINITY
                                               : (double)INFINITY;
        break;
    default:
        return false;
    }
    *out = double_bits(value);
    return true;
}

static bool fold_comparison(enum base base, uint32_t op, uint64_t a, uint64_t b,
                            uint64_t *out)
{
    bool less, equal;
    if (base_is_float(base)) {
        less = bits_double(a) < bits_double(b);
        equal = bits_double(a) == bits_double(b);
    } else {
        less =
            base_is_signed(base) ? tree_fold_signed_of(a) < tree_fold_signed_of(b) : a < b;
        equal = a == b;
    }
    switch (op) {
    case '<':
        *out = less;
        return true;
    case PUNCTUATOR('<', '='):
        *out = less || equal;
        return true;
    case '>':
        *out = base_is_float(base) ? bits_double(a) > bits_double(b) : !less && !equal;
        return true;
    case PUNCTUATOR('>', '='):
        *out = base_is_float(base) ? bits_double(a) >= bits_double(b) : !less;
        return true;
    default:
        return false;
    }
}

static struct tree_expr *fold_equality(struct translator *t, uint32_t op,
                                       const struct tree_expr *left,
                                       const struct tree_expr *right,
                                       const struct position *at)
{
    struct tree_expr *e = expr_constant(t, type_scalar(t, TYPE_BOOL), at);
    bool is_equal = true;
    for (uint32_t i = 0; i < left->type->components; i++)
        is_equal =
            is_equal && (base_is_float(left->type->base)
                             ? bits_double(left->bits[i]) == bits_double(right->bits[i])
                             : left->bits[i] == right->bits[i]);
    e->bits[0] = is_equal == (op == PUNCTUATOR('=', '='));
    return e;
}

// `type`: of the result. NULL: it is not folded.
struct tree_expr *fold_binary(struct translator *t, uint32_t op, const struct type *type,
                              const struct tree_expr *left, const struct tree_expr *right,
                              const struct position *at)
{
    enum base base = left->type->base;
    bool is_equality = op == PUNCTUATOR('=', '=') || op == PUNCTUATOR('!', '=');
    if (is_equality && left->type->base < NUM_SCALARS)
        return fold_equality(t, op, left, right, at);
    if (is_equality || type->base >= NUM_SCALARS ||
        (op == '*' && (type_is_matrix(left->type) || type_is_matrix(right->type))))
        return NULL;
    struct tree_expr *e = expr_constant(t, type, at);
    for (uint32_t i = 0; i < type->components; i++) {
        uint64_t a = left->bits[type_is_scalar(left->type) ? 0 : i];
        uint64_t b = right->bits[type_is_scalar(right->type) ? 0 : i];
        bool is_done = fold_comparison(base, op, a, b, &e->bits[i]);
        if (!is_done && base_is_float(base))
            is_done = fold_float(op, bits_double(a), bits_double(b), &e->bits[i]);
        else if (!is_done)
            is_done = tree_fold_int(base, op, a, b, &e->bits[i]);
        if (!is_done)
            return NULL;
    }
    return e;
}

struct tree_expr *fold_unary(struct translator *t, uint32_t op,
                             const struct tree_expr *from, const struct position *at)
{
    struct tree_expr *e = expr_constant(t, from->type, at);
    for (uint32_t i = 0; i < from->type->components; i++) {
        uint64_t bits = from->bits[i];
        if (op == '!')
            bits = !bits;
        else if (op == '~')
            bits = fold_wrap(from->type->base, ~bits);
        else if (base_is_float(from->type->base))
            bits = double_bits(-bits_double(bits));
        else
            bits = fold_wrap(from->type->base, tree_fold_negated(bits));
        e->bits[i] = bits;
    }
    return e;
}

// --- constants of SPIR-V ---------------------------------------------------------------

// Rounded to nearest even: to 5 or 8 bits of exponent, and 10 or 7 bits of significand.
static uint32_t narrow_float(double value, int exponent_bits, int bits)
{
    uint32_t sign = signbit(value) ? 0x8000u : 0;
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    uint32_t infinity = ((1u << exponent_bits) - 1) << bits;
    if (value != value)
        return sign | infinity | 1u << (bits - 1);
    double size = fabs(value);
    if (size == 0)
        return sign;
    if (isinf(size))
        return sign | infinity;
    frexp(size, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    double units = nearbyint(ldexp(size, bits - exponent)); // a carry moves the exponent
    if (exponent > bias)
        return sign | infinity;
    uint32_t whole = (uint32_t)units;
    return sign | (whole + ((uint32_t)(exponent + bias - 1) << bits));
}

uint64_t constant_bits(enum base base, uint64_t bits)
{
    float narrow = 0;
    uint32_t word;
    switch (base) {
    case TYPE_FLOAT32:
        narrow = (float)bits_double(bits);
        memcpy(&word, &narrow, sizeof word);
        return word;
    case TYPE_FLOAT16:
        return narrow_float(bits_double(bits), 5, 10);
    case TYPE_BFLOAT16:
        return narrow_float(bits_double(bits), 8, 7);
    default:
        return base_width(base) == 64 ? bits : bits & 0xffffffffu;
    }
}

uint32_t constant_scalar(struct translator *t, enum base base, uint64_t bits)
{
    if (base == TYPE_BOOL)
        return ir_bool(t->ir, bits != 0);
    return ir_constant(t->ir, type_id(t, type_scalar(t, base), LAYOUT_NONE),
                       constant_bits(base, bits));
}

static uint32_t tree_fold_composite(struct translator *t, const struct type *type,
                                    const uint64_t *bits)
{
    uint32_t count = type->base == TYPE_STRUCT  ? type->record->num_members
                     : type->base == TYPE_ARRAY ? type->length
                     : type_is_matrix(type)     ? type->columns
                                                : type->rows;
    uint32_t *parts = compiler_allocate(t->c, (count + 1) * sizeof *parts);
    for (uint32_t i = 0; i < count; i++) {
        const struct type *part =
            type->base == TYPE_STRUCT ? type->record->members[i].type : type_part(t, type);
        parts[i] = constant_id(t, part, bits);
        bits += part->components;
    }
    return ir_composite(t->ir, type_id(t, type, LAYOUT_NONE), count, parts);
}

uint32_t constant_id(struct translator *t, const struct type *type, const uint64_t *bits)
{
    if (type->base < NUM_SCALARS && type_is_scalar(type))
        return constant_scalar(t, type->base, bits[0]);
    return tree_fold_composite(t, type, bits);
}

uint32_t constant_splat(struct translator *t, const struct type *type, double value)
{
    uint64_t one = fold_convert(TYPE_FLOAT64, type->base, double_bits(value));
    uint64_t bits[16];
    for (uint32_t i = 0; i < 16; i++)
        bits[i] = one;
    return constant_id(t, type, bits);
}
