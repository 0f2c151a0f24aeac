// SPDX-License-Identifier: MIT
// Assembles programs; see assemble.h. Instructions are typed here, so simplifications keep
// every result exactly, NaN and the sign of zero included. Powers with small
// constant exponents are the exception: these become products, as in NumPy.
#include "assemble.h"

#include <math.h>
#include <string.h>

static bool assembly_is_leaf(int op)
{
    return op_table[op].class == TN_EXPR_CLASS_LEAF;
}

// --- common subexpressions -------------------------------------------------------------

static struct hash insn_hash(const tn_expr_insn *insn)
{
    struct hash h = hash_u64(hash_start(6), (uint64_t)insn->op << 32 | insn->dtype);
    return hash_u64(h, (uint64_t)insn->a << 40 ^ (uint64_t)insn->b << 20 ^ insn->c);
}

static uint32_t *assembly_slot_of(const struct assembler *a, const tn_expr_insn *insn)
{
    uint64_t i = insn_hash(insn).lo & (a->table_size - 1);
    while (a->table[i] && memcmp(&a->insns[a->table[i] - 1], insn, sizeof(*insn)) != 0)
        i = (i + 1) & (a->table_size - 1);
    return &a->table[i];
}

static tn_status assembly_make_room(struct assembler *a)
{
    tn_status status =
        mem_grow((void **)&a->insns, &a->max_insns, a->num_insns + 1, sizeof(*a->insns));
    if (status != TN_OK || (a->num_insns + 1) * 2 < a->table_size)
        return status;
    uint32_t size = a->table_size ? a->table_size * 2 : 64;
    uint32_t *table = mem_zalloc(size * sizeof(*table));
    if (!table)
        return TN_ERR_MEMORY;
    mem_free(a->table);
    a->table = table;
    a->table_size = size;
    for (uint32_t i = 0; i < a->num_insns; i++)
        *assembly_slot_of(a, &a->insns[i]) = i + 1;
    return TN_OK;
}

static uint32_t assembly_add(struct assembler *a, tn_expr_insn insn)
{
    if (a->status == TN_OK)
        a->status = assembly_make_room(a);
    if (a->status != TN_OK)
        return 0;
    uint32_t *slot = assembly_slot_of(a, &insn);
    if (!*slot) {
        a->insns[a->num_insns++] = insn;
        *slot = a->num_insns;
    }
    return *slot - 1;
}

uint32_t assemble_constant(struct assembler *a, tn_dtype dtype, uint64_t bits)
{
    uint32_t i = 0;
    while (i < a->num_constants && a->constants[i] != bits)
        i++;
    if (i == a->num_constants) {
        if (a->status == TN_OK)
            a->status = mem_grow((void **)&a->constants, &a->max_constants, i + 1,
                                 sizeof(*a->constants));
        if (a->status != TN_OK)
            return 0;
        a->constants[a->num_constants++] = bits;
    }
    return assembly_add(a, (tn_expr_insn){TN_EXPR_CONST, (uint16_t)dtype, i, 0, 0});
}

uint32_t assemble_imaginary(struct assembler *a, tn_dtype dtype, uint64_t bits)
{
    tn_dtype part = tn_dtype_real(dtype);
    uint32_t zero = assemble_constant(a, part, 0);
    return assemble(a, TN_EXPR_COMPLEX, dtype, zero,
                    assemble_constant(a, part, scalar_cast(TN_F64, part, bits)), 0);
}

// --- simplification --------------------------------------------------------------------

static bool is_constant(const struct assembler *a, uint32_t x)
{
    return a->insns[x].op == TN_EXPR_CONST;
}

static uint64_t assembly_constant_bits(const struct assembler *a, uint32_t x)
{
    return a->constants[a->insns[x].a];
}

static bool assembly_is_value(const struct assembler *a, uint32_t x, int64_t value)
{
    if (!is_constant(a, x) || a->insns[x].dtype == TN_BOOL)
        return false;
    uint64_t bits = assembly_constant_bits(a, x);
    return dtype_is_inexact(a->insns[x].dtype) ? bits == double_to_bits((double)value)
                                               : bits == (uint64_t)value;
}

// True for constant powers of two: x / y is then exactly x * (1 / y). The bounds keep the
// reciprocal from being subnormal in f32.
static bool has_exact_reciprocal(const struct assembler *a, uint32_t x, double *out)
{
    if (!is_constant(a, x) || !dtype_is_float(a->insns[x].dtype))
        return false;
    int exponent;
    double value = bits_to_double(assembly_constant_bits(a, x));
    if (fabs(frexp(value, &exponent)) != 0.5 || exponent < -100 || exponent > 100)
        return false;
    *out = 1 / value;
    return true;
}

// x to the power of a constant as products, quotients and roots, or NONE. A product rounds
// once per factor, a power once in all. As in NumPy, x ** 0.5 is the root: NaN for
// -infinity, -0 for -0. Of integer powers only products are simplified.
static uint32_t simplify_power(struct assembler *a, tn_dtype dtype, uint32_t x, uint32_t y)
{
    if (assembly_is_value(a, y, 1))
        return x;
    uint32_t square = ASSEMBLE_NONE;
    if (assembly_is_value(a, y, 2) || assembly_is_value(a, y, 3) ||
        assembly_is_value(a, y, 4))
        square = assemble(a, TN_EXPR_MUL, dtype, x, x, 0);
    if (assembly_is_value(a, y, 3))
        return assemble(a, TN_EXPR_MUL, dtype, square, x, 0);
    if (assembly_is_value(a, y, 4))
        return assemble(a, TN_EXPR_MUL, dtype, square, square, 0);
    if (square != ASSEMBLE_NONE || !is_constant(a, y) || !dtype_is_inexact(dtype))
        return square;
    double exponent = bits_to_double(assembly_constant_bits(a, y));
    if (exponent == 0.5)
        return assemble(a, TN_EXPR_SQRT, dtype, x, 0, 0);
    if (exponent == -0.5)
        return assemble(a, TN_EXPR_RSQRT, dtype, x, 0, 0);
    if (exponent != -1 && exponent != -2)
        return ASSEMBLE_NONE;
    uint32_t one = assemble_constant(a, dtype, double_to_bits(1));
    uint32_t inverse = assemble(a, TN_EXPR_DIV, dtype, one, x, 0);
    // (1 / x)^2, because the square in 1 / x^2 overflows earlier.
    return exponent == -1 ? inverse : assemble(a, TN_EXPR_MUL, dtype, inverse, inverse, 0);
}

// The position of an equal and cheaper instruction, or NONE.
static uint32_t assembly_simplify(struct assembler *a, int op, tn_dtype dtype, uint32_t x,
                                  uint32_t y, uint32_t z)
{
    double reciprocal;
    switch (op) {
    case TN_EXPR_MUL:
        if (assembly_is_value(a, y, 1))
            return x;
        return assembly_is_value(a, x, 1) ? y : ASSEMBLE_NONE;
    case TN_EXPR_ADD: // floats: -0 + 0 is 0, so x + 0 is not x
        if (dtype_is_inexact(dtype))
            return ASSEMBLE_NONE;
        if (assembly_is_value(a, y, 0))
            return x;
        return assembly_is_value(a, x, 0) ? y : ASSEMBLE_NONE;
    case TN_EXPR_SUB:
        return assembly_is_value(a, y, 0) ? x : ASSEMBLE_NONE;
    case TN_EXPR_DIV:
        if (assembly_is_value(a, y, 1))
            return x;
        if (has_exact_reciprocal(a, y, &reciprocal))
            return assemble(a, TN_EXPR_MUL, dtype, x,
                            assemble_constant(a, dtype, double_to_bits(reciprocal)), 0);
        return ASSEMBLE_NONE;
    case TN_EXPR_POW:
        return simplify_power(a, dtype, x, y);
    case TN_EXPR_CAST: // to a real dtype: the real part
        return a->insns[x].op == TN_EXPR_COMPLEX && dtype_is_float(dtype)
                   ? assemble_cast(a, dtype, a->insns[x].a)
                   : ASSEMBLE_NONE;
    case TN_EXPR_REAL:
        return a->insns[x].op == TN_EXPR_COMPLEX ? a->insns[x].a : ASSEMBLE_NONE;
    case TN_EXPR_IMAG:
        return a->insns[x].op == TN_EXPR_COMPLEX ? a->insns[x].b : ASSEMBLE_NONE;
    case TN_EXPR_CONJ:
        return a->insns[x].op == TN_EXPR_CONJ ? a->insns[x].a : ASSEMBLE_NONE;
    case TN_EXPR_SELECT:
        if (is_constant(a, x))
            return assembly_constant_bits(a, x) ? y : z;
        return y == z ? y : ASSEMBLE_NONE;
    default:
        return ASSEMBLE_NONE;
    }
}

// Whether a constant operation has a constant result: one of complex numbers may have an
// imaginary part, which constants have not. A conversion of one keeps it at 0.
static bool is_real(const struct assembler *a, int op, tn_dtype dtype, uint32_t operand)
{
    return op == TN_EXPR_CAST ||
           (!tn_is_complex(dtype) && !tn_is_complex(a->insns[operand].dtype));
}

static bool assembly_all_constant(const struct assembler *a, uint32_t num_args,
                                  const uint32_t *args)
{
    bool all = num_args > 0;
    for (uint32_t i = 0; i < num_args; i++)
        all = all && is_constant(a, args[i]);
    return all;
}

uint32_t assemble(struct assembler *a, int op, tn_dtype dtype, uint32_t x, uint32_t y,
                  uint32_t z)
{
    if (a->status != TN_OK)
        return 0;
    uint32_t args[3] = {x, y, z}, num_args = op_table[op].num_args;
    if (!assembly_is_leaf(op) && !op_reduces(op)) {
        if (assembly_all_constant(a, num_args, args) && is_real(a, op, dtype, x)) {
            uint64_t bits[3] = {0};
            for (uint32_t i = 0; i < num_args; i++)
                bits[i] = assembly_constant_bits(a, args[i]);
            return assemble_constant(
                a, dtype,
                scalar_op(op, dtype, a->insns[x].dtype, bits[0], bits[1], bits[2]));
        }
        uint32_t simpler = assembly_simplify(a, op, dtype, x, y, z);
        if (simpler != ASSEMBLE_NONE)
            return simpler;
    }
    uint32_t used = assembly_is_leaf(op) ? 1 : num_args; // a leaf has its number in `a`
    return assembly_add(a, (tn_expr_insn){(uint16_t)op, (uint16_t)dtype, x,
                                          used > 1 ? y : 0, used > 2 ? z : 0});
}

uint32_t assemble_cast(struct assembler *a, tn_dtype dtype, uint32_t x)
{
    if (a->status != TN_OK || a->insns[x].dtype == dtype)
        return x;
    return assemble(a, TN_EXPR_CAST, dtype, x, 0, 0);
}

// --- dead code -------------------------------------------------------------------------

static void assembly_mark_needed(const struct assembler *a, unsigned char *needed,
                                 const uint32_t *outputs, uint32_t num_outputs)
{
    for (uint32_t i = 0; i < num_outputs; i++)
        needed[outputs[i]] = 1;
    for (int64_t i = (int64_t)a->num_insns - 1; i >= 0; i--) {
        const tn_expr_insn *insn = &a->insns[i];
        if (!needed[i] || assembly_is_leaf(insn->op))
            continue;
        const uint32_t args[3] = {insn->a, insn->b, insn->c};
        for (uint32_t k = 0; k < op_table[insn->op].num_args; k++)
            needed[args[k]] = 1;
    }
}

// Renumbers constants in the order of their first use, and drops the others.
static void renumber_constant(struct assembler *a, tn_expr_insn *insn, uint64_t *used,
                              uint32_t *num_used)
{
    uint32_t i = 0;
    while (i < *num_used && used[i] != a->constants[insn->a])
        i++;
    if (i == *num_used)
        used[(*num_used)++] = a->constants[insn->a];
    insn->a = i;
}

tn_status assembler_end(struct assembler *a, uint32_t *outputs, uint32_t num_outputs)
{
    if (a->status != TN_OK)
        return a->status;
    unsigned char *needed = mem_zalloc(a->num_insns + 1);
    uint32_t *new_position = mem_alloc(a->num_insns * sizeof(*new_position) + 1);
    uint64_t *used = mem_alloc(a->num_constants * sizeof(*used) + 1);
    if (!needed || !new_position || !used) {
        mem_free(needed);
        mem_free(new_position);
        mem_free(used);
        return TN_ERR_MEMORY;
    }
    assembly_mark_needed(a, needed, outputs, num_outputs);
    uint32_t count = 0, num_used = 0;
    for (uint32_t i = 0; i < a->num_insns; i++) {
        if (!needed[i])
            continue;
        tn_expr_insn insn = a->insns[i];
        uint32_t num_args = op_table[insn.op].num_args;
        if (insn.op == TN_EXPR_CONST)
            renumber_constant(a, &insn, used, &num_used);
        insn.a = num_args > 0 ? new_position[insn.a] : insn.a;
        insn.b = num_args > 1 ? new_position[insn.b] : 0;
        insn.c = num_args > 2 ? new_position[insn.c] : 0;
        new_position[i] = count;
        a->insns[count++] = insn;
    }
    a->num_insns = count;
    for (uint32_t i = 0; i < num_outputs; i++)
        outputs[i] = new_position[outputs[i]];
    mem_free(a->constants);
    a->constants = used;
    a->num_constants = num_used;
    mem_free(needed);
    mem_free(new_position);
    return TN_OK;
}

void assembler_finish(struct assembler *a)
{
    mem_free(a->insns);
    mem_free(a->constants);
    mem_free(a->table);
    *a = (struct assembler){0};
}
