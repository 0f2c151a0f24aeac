// SPDX-License-Identifier: MIT
// Random expressions.
#include "generator.h"

#include <stdio.h>
#include <string.h>

static const char *const scalar_names[] = {"bool",     "int8_t", "uint8_t", "int16_t",
                                           "uint16_t", "int",    "uint",    "int64_t",
                                           "uint64_t", "float",  "double"};
static const char *const vector_names[] = {"bvec",   "i8vec", "u8vec", "i16vec",
                                           "u16vec", "ivec",  "uvec",  "i64vec",
                                           "u64vec", "vec",   "dvec"};

uint32_t kind_bits(enum kind kind)
{
    static const uint8_t bits[] = {1, 8, 8, 16, 16, 32, 32, 64, 64, 32, 64};
    return bits[kind];
}

const char *type_name(struct shape shape)
{
    static char names[8][16];
    static uint32_t next;
    if (shape.width == 1)
        return scalar_names[shape.kind];
    char *name = names[next++ % 8];
    snprintf(name, 16, "%s%u", vector_names[shape.kind], shape.width);
    return name;
}

struct shape random_shape(struct generator *g)
{
    static const uint8_t kinds[] = {I32,  I32, I32, U32, U32, U32, F32, F32, F32,
                                    BOOL, I8,  U8,  I16, U16, I64, U64, F64};
    enum kind kind = (enum kind)kinds[random_below(g, sizeof(kinds))];
    return (struct shape){kind, chance(g, 60) ? 1 : 2 + random_below(g, 3)};
}

const struct variable *pick_variable(struct generator *g, struct shape shape,
                                     bool want_array, bool to_assign)
{
    uint32_t start = g->num_variables ? random_below(g, g->num_variables) : 0;
    for (uint32_t i = 0; i < g->num_variables; i++) {
        const struct variable *v = &g->variables[(start + i) % g->num_variables];
        if (v->shape.kind == shape.kind && v->shape.width == shape.width &&
            (v->elements > 0) == want_array && !(to_assign && v->is_constant))
            return v;
    }
    return NULL;
}

// --- leaves ----------------------------------------------------------------------------

void put_literal(struct generator *g, enum kind kind)
{
    static const uint32_t values[] = {
        0,   1,   2,   3,     5,     7,          31,         100,        127,
        128, 255, 256, 32767, 65535, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678};
    uint32_t value = values[random_below(g, sizeof(values) / sizeof(values[0]))];
    uint32_t eighths = random_below(g, 1025);
    switch (kind) {
    case BOOL:
        put(g, chance(g, 50) ? "true" : "false");
        break;
    case I32:
        if (chance(g, 50))
            put(g, chance(g, 50) ? "%u" : "(-%u)", random_below(g, 100));
        else
            put(g, "int(0x%xu)", value);
        break;
    case U32:
        put(g, chance(g, 50) ? "%uu" : "0x%xu", value);
        break;
    case I64:
    case U64:
        if (chance(g, 50)) {
            put(g, kind == I64 ? "%uL" : "%uUL", value);
            break;
        }
        put(g, "%s(packUint2x32(uvec2(%uu, %uu)))", scalar_names[kind], value,
            chance(g, 50) ? 0 : random_below(g, 1 << 16) * 65537);
        break;
    case F32:
    case F64:
        put(g, "(%.3f%s)", (double)((int)eighths - 512) / 8, kind == F64 ? "LF" : "");
        break;
    default:
        // No constant: glslang 12 folds some of these wrongly.
        put(g, "%s(%uu ^ zero)", scalar_names[kind], value & ((1u << kind_bits(kind)) - 1));
    }
}

static void put_leaf(struct generator *g, enum kind kind)
{
    if (kind == U32 && chance(g, 20)) {
        put(g, "given.d[(id * 7u + %uu) & %uu]", random_below(g, 256), GENERATED_INPUT - 1);
        return;
    }
    if (kind == U32 && chance(g, 15)) {
        put(g, chance(g, 50) ? "push.words[%u]" : "push.words[(id + %uu) & 3u]",
            random_below(g, 4));
        return;
    }
    if (kind == I32 && chance(g, 15))
        put(g, chance(g, 50) ? "spec_int" : "push.number");
    else if (kind == U32 && chance(g, 15))
        put(g, chance(g, 50) ? "spec_uint" : "id");
    else if (kind == BOOL && chance(g, 15))
        put(g, "spec_bool");
    else if (kind == F32 && chance(g, 15))
        put(g, "push.real");
    else
        put_literal(g, kind);
}

// --- variables -------------------------------------------------------------------------

static void put_index(struct generator *g, uint32_t elements)
{
    if (chance(g, 50))
        put(g, "[%u]", random_below(g, elements));
    else {
        put(g, "[(");
        put_expression(g, (struct shape){chance(g, 50) ? U32 : I32, 1}, 0);
        put(g, ") & %u]", elements - 1);
    }
}

static bool put_variable(struct generator *g, struct shape shape)
{
    const struct variable *v;
    static const char letters[] = "xyzw";
    if (chance(g, 25) && (v = pick_variable(g, shape, true, false))) {
        put(g, "%s", v->name);
        put_index(g, v->elements);
        return true;
    }
    if (chance(g, 35)) { // a swizzle of a vector
        struct shape wider = {shape.kind, 2 + random_below(g, 3)};
        v = pick_variable(g, wider, false, false);
        if (v && shape.width == 1 && wider.width != 3 && chance(g, 30)) {
            put(g, "%s", v->name);
            put_index(g, wider.width);
            return true;
        }
        if (v) {
            put(g, "%s.", v->name);
            for (uint32_t i = 0; i < shape.width; i++)
                put(g, "%c", letters[random_below(g, wider.width)]);
            return true;
        }
    }
    v = pick_variable(g, shape, false, false);
    if (v)
        put(g, "%s", v->name);
    return v != NULL;
}

// What has no operands of the same shape: a variable, a literal, an input.
static void put_simple(struct generator *g, struct shape shape)
{
    if (chance(g, 75) && put_variable(g, shape))
        return;
    if (shape.width == 1) {
        put_leaf(g, shape.kind);
        return;
    }
    put(g, "%s(", type_name(shape));
    for (uint32_t i = 0; i < shape.width; i++) {
        put(g, i ? ", " : "");
        put_simple(g, (struct shape){shape.kind, 1});
    }
    put(g, ")");
}

// --- operations ------------------------------------------------------------------------

static void put_binary(struct generator *g, const char *op, struct shape shape,
                       uint32_t depth)
{
    put(g, "(");
    put_expression(g, shape, depth);
    put(g, " %s ", op);
    // A scalar with a vector, at times.
    bool scalar = shape.width > 1 && chance(g, 20);
    put_expression(g, scalar ? (struct shape){shape.kind, 1} : shape, depth);
    put(g, ")");
}

static void put_call(struct generator *g, const char *name, uint32_t count,
                     struct shape shape, uint32_t depth)
{
    put(g, "%s(", name);
    for (uint32_t i = 0; i < count; i++) {
        put(g, i ? ", " : "");
        put_expression(g, shape, depth);
    }
    put(g, ")");
}

// x by a number of 0 .. most, in the shape's own type: "(x op (y & most))".
static void put_masked(struct generator *g, const char *op, struct shape shape,
                       uint32_t most, bool plus_one, uint32_t depth)
{
    const char *type = scalar_names[shape.kind];
    put(g, "(");
    put_expression(g, shape, depth);
    put(g, " %s ((", op);
    put_expression(g, shape, depth);
    put(g, " & %s(%u))", type, most);
    put(g, plus_one ? " + %s(1)))" : "))", type);
}

// Quotients of what is not negative, by 1 .. 16. For signed operands, the sign's bit is
// cut.
static void put_division(struct generator *g, struct shape shape, uint32_t depth)
{
    const char *type = scalar_names[shape.kind];
    bool quotient = chance(g, 50);
    // glslang 12 folds remainders of 8, 16 and 64 bits wrongly: these are no constants.
    bool folds = kind_bits(shape.kind) == 32;
    put(g, folds ? "((" : "(((");
    put_expression(g, shape, depth);
    if (!folds)
        put(g, " ^ %s(id))", type);
    put(g, " & %s(%u)) %s ((", type, kind_bits(shape.kind) == 8 ? 127 : 32767,
        quotient ? "/" : "%");
    put_expression(g, shape, depth);
    put(g, " & %s(15)) + %s(1)))", type, type);
}

// Functions that have 32 bits only.
static void put_bits(struct generator *g, struct shape shape, uint32_t depth)
{
    struct shape other = {shape.kind == I32 ? U32 : I32, shape.width};
    switch (random_below(g, shape.kind == I32 ? 6 : 4)) {
    case 0:
        put_call(g, "bitfieldReverse", 1, shape, depth);
        break;
    case 1:
        put(g, "bitfieldExtract(");
        put_expression(g, shape, depth);
        put(g, ", %u, %u)", random_below(g, 17), random_below(g, 16));
        break;
    case 2:
        put(g, "bitfieldInsert(");
        put_expression(g, shape, depth);
        put(g, ", ");
        put_expression(g, shape, depth);
        put(g, ", int(");
        put_expression(g, (struct shape){U32, 1}, 0);
        put(g, " & 15u), %u)", random_below(g, 16));
        break;
    case 3:
        put(g, "%s(", type_name(shape));
        put_call(g, "bitCount", 1, other, depth);
        put(g, ")");
        break;
    case 4:
        put_call(g, "findLSB", 1, chance(g, 50) ? other : shape, depth);
        break;
    default:
        put_call(g, "findMSB", 1, chance(g, 50) ? other : shape, depth);
    }
}

// From another type, whose values fit.
static void put_conversion(struct generator *g, struct shape shape, uint32_t depth)
{
    struct shape from = {(enum kind)random_below(g, NUM_KINDS), shape.width};
    bool to_wide = kind_bits(shape.kind) == 64 && !is_float(shape.kind);
    if (from.kind == shape.kind)
        from.kind = shape.kind == U32 ? I32 : U32;
    if (to_wide && (is_signed(from.kind) || is_float(from.kind)))
        from.kind = shape.kind == U64 ? I64 : U64;
    if (is_float(shape.kind) && !is_float(from.kind) && from.kind != BOOL)
        from.kind = chance(g, 50) ? U8 : U32;
    if (is_float(from.kind) && !is_float(shape.kind) && shape.kind != BOOL &&
        shape.kind != I32)
        from.kind = U32;
    put(g, "%s(", type_name(shape));
    if (is_float(shape.kind) && from.kind == U32) {
        put(g, "(");
        put_expression(g, from, depth);
        put(g, " & 63u)");
    } else if (is_float(shape.kind) && from.kind == U8) {
        put(g, "(");
        put_expression(g, from, depth);
        put(g, " & uint8_t(63))");
    } else if (is_float(from.kind))
        put_value(g, from, depth);
    else
        put_expression(g, from, depth);
    put(g, ")");
}

static void put_integer(struct generator *g, struct shape shape, uint32_t depth)
{
    static const char *const ops[] = {"+", "-", "*", "&", "|", "^", "+", "-"};
    uint32_t what = random_below(g, 16);
    if (what < 7)
        put_binary(g, ops[random_below(g, 8)], shape, depth);
    else if (what == 7)
        put_masked(g, chance(g, 50) ? "<<" : ">>", shape, kind_bits(shape.kind) - 1, false,
                   depth);
    else if (what == 8)
        put_division(g, shape, depth);
    else if (what == 9)
        put_call(g, chance(g, 50) ? "min" : "max", 2, shape, depth);
    else if (what == 10) {
        put(g, chance(g, 50) ? "(~" : "(-");
        put_expression(g, shape, depth);
        put(g, ")");
    } else if (what == 11 && kind_bits(shape.kind) == 32)
        put_bits(g, shape, depth);
    else if (what == 12 && is_signed(shape.kind) && kind_bits(shape.kind) == 32)
        put_call(g, chance(g, 50) ? "abs" : "sign", 1, shape, depth);
    else
        put_conversion(g, shape, depth);
}

// Sums of at most two products of at most two sums of two simple ones: exact in a float.
void put_sum(struct generator *g, struct shape shape)
{
    static const char *const functions[] = {"abs", "floor", "ceil", "-", "", ""};
    bool two = chance(g, 40);
    uint32_t function = random_below(g, 6);
    put(g, "%s(", functions[function]);
    put_simple(g, shape);
    if (two) {
        put(g, chance(g, 50) ? " + " : " - ");
        put_simple(g, shape);
    }
    put(g, ")");
}

static void put_product(struct generator *g, struct shape shape)
{
    put_sum(g, shape);
    if (chance(g, 50)) {
        put(g, " * ");
        put_sum(g,
                shape.width > 1 && chance(g, 30) ? (struct shape){shape.kind, 1} : shape);
    }
}

static void put_exact(struct generator *g, struct shape shape, uint32_t depth)
{
    uint32_t what = random_below(g, 8);
    if (what == 0)
        put_conversion(g, shape, depth);
    else if (what == 1) {
        put(g, chance(g, 50) ? "min(" : "max(");
        put_sum(g, shape);
        put(g, ", ");
        put_sum(g, shape);
        put(g, ")");
    } else {
        put(g, "(");
        put_product(g, shape);
        if (chance(g, 50)) {
            put(g, chance(g, 50) ? " + " : " - ");
            put_product(g, shape);
        }
        put(g, ")");
    }
}

// Rounded: divisions, and products of products. Magnitudes are below 2^30.
static void put_rounded(struct generator *g, struct shape shape)
{
    const char *suffix = shape.kind == F64 ? "LF" : "";
    put(g, "(");
    put_product(g, shape);
    if (chance(g, 50)) {
        put(g, " / (abs(");
        put_sum(g, shape);
        put(g, ") + 0.75%s)", suffix);
    } else {
        put(g, " * ");
        put_sum(g, shape);
        put(g, " * 0.1%s", suffix);
    }
    put(g, chance(g, 50) ? " + " : " - ");
    put_sum(g, shape);
    put(g, ")");
}

static void put_relation(struct generator *g, const char *op, struct shape shape,
                         uint32_t depth)
{
    // glslang 12 folds vector == vector to more than one bool, which no other constant
    // equals: of two bools one is no constant.
    bool is_bool = shape.kind == BOOL && shape.width == 1;
    put(g, "(");
    put_expression(g, shape, depth);
    put(g, " %s %s", op, is_bool ? "(zero == 0u && " : "");
    put_expression(g, shape, depth);
    put(g, is_bool ? "))" : ")");
}

static void put_compare(struct generator *g, uint32_t depth)
{
    static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
    struct shape shape = random_shape(g);
    uint32_t op = random_below(g, 6);
    if (shape.kind == BOOL || shape.width > 1)
        op = 4 + op % 2;
    put_relation(g, ops[op], shape, depth);
}

static void put_bool(struct generator *g, struct shape shape, uint32_t depth)
{
    static const char *const relations[] = {"lessThan", "greaterThanEqual", "equal",
                                            "notEqual"};
    static const char *const ops[] = {"&&", "||", "^^"};
    struct shape of = {(enum kind)(1 + random_below(g, NUM_KINDS - 1)), shape.width};
    if (shape.width > 1) {
        if (chance(g, 30))
            put_call(g, "not", 1, shape, depth);
        else
            put_call(g, relations[random_below(g, 4)], 2, of, depth);
        return;
    }
    uint32_t what = random_below(g, 8);
    if (what < 4)
        put_compare(g, depth);
    else if (what == 4)
        put_call(g, chance(g, 50) ? "any" : "all", 1,
                 (struct shape){BOOL, 2 + random_below(g, 3)}, depth);
    else if (what == 5) {
        put(g, "(!");
        put_expression(g, shape, depth);
        put(g, ")");
    } else if (what == 6)
        put_relation(g, chance(g, 50) ? "==" : "!=", shape, depth);
    else
        put_binary(g, ops[random_below(g, 3)], shape, depth);
}

static bool put_helper_call(struct generator *g, struct shape shape)
{
    if (g->is_helper)
        return false;
    for (uint32_t i = 0; i < g->num_helpers; i++) {
        const struct helper *h = &g->helpers[i];
        if (!h->is_pure || h->result.kind != shape.kind || h->result.width != shape.width)
            continue;
        put(g, "%s(", h->name);
        for (uint32_t k = 0; k < h->num_params; k++) {
            put(g, k ? ", " : "");
            put_argument(g, h->params[k], 0);
        }
        put(g, ")");
        return true;
    }
    return false;
}

static void put_choice(struct generator *g, struct shape shape, uint32_t depth)
{
    bool by_function = chance(g, 30);
    struct shape condition = {BOOL, by_function ? shape.width : 1};
    put(g, by_function ? "mix(" : "(");
    if (!by_function) {
        put_expression(g, condition, depth);
        put(g, " ? ");
    }
    put_expression(g, shape, depth);
    put(g, by_function ? ", " : " : ");
    put_expression(g, shape, depth);
    if (by_function) {
        put(g, ", ");
        put_expression(g, condition, depth);
    }
    put(g, ")");
}

static void put_operation(struct generator *g, struct shape shape, uint32_t depth)
{
    // Choices of 8 and 16 bits by mix() have no overload.
    bool can_mix = kind_bits(shape.kind) >= 32 || shape.kind == BOOL;
    uint32_t what = random_below(g, 20);
    if (what < 3)
        put_simple(g, shape);
    else if (what == 3 && put_helper_call(g, shape))
        return;
    else if (what == 4 && can_mix && !(is_float(shape.kind) && depth > 0) &&
             kind_bits(shape.kind) == 32)
        put_choice(g, shape, depth);
    else if (shape.kind == BOOL)
        put_bool(g, shape, depth);
    else if (!is_float(shape.kind))
        put_integer(g, shape, depth);
    else if (g->is_precise && chance(g, 70))
        put_rounded(g, shape);
    else
        put_exact(g, shape, depth);
}

void put_expression(struct generator *g, struct shape shape, uint32_t depth)
{
    bool is_precise = g->is_precise;
    if (depth == 0) {
        put_simple(g, shape);
        return;
    }
    // Floats that a comparison reads, say, are values of no precise variable.
    g->is_precise = is_precise && is_float(shape.kind);
    put_operation(g, shape, depth - 1);
    g->is_precise = is_precise;
}

void put_argument(struct generator *g, struct shape shape, uint32_t depth)
{
    bool is_precise = g->is_precise;
    g->is_precise = false; // parameters are not
    put_value(g, shape, depth);
    g->is_precise = is_precise;
}

void put_value(struct generator *g, struct shape shape, uint32_t depth)
{
    if (is_float(shape.kind)) {
        put(g, "fit(");
        put_expression(g, shape, depth);
        put(g, ")");
    } else
        put_expression(g, shape, depth);
}
