// SPDX-License-Identifier: MIT
// Compiled programs: interned by their contents, and checked against the ABI's limits.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "../attr/attrs.h"
#include "tree.h"

// Every interned or copied program lies in one of these; expr_params relies on this.
struct interned_program {
    tn_expr_program program; // first, so that pointers convert
    uint8_t *param_is_float; // by param: 1 when an instruction loads the param as a float
    uint32_t complex_dtypes; // the set of those in instructions
};

// The name is left out: equal programs of several expressions are one program.
static struct hash expr_program_hash(const tn_expr_program *p)
{
    struct hash h = hash_start(0x70726f67);
    h = hash_u64(h, (uint64_t)p->num_insns << 32 | p->num_constants);
    h = hash_u64(h, (uint64_t)p->num_inputs << 32 | p->num_outputs);
    h = hash_u64(h, p->num_params);
    for (uint32_t i = 0; i < p->num_insns; i++) {
        const tn_expr_insn *insn = &p->insns[i];
        h = hash_u64(h, (uint64_t)insn->op << 48 | (uint64_t)insn->dtype << 32 | insn->a);
        h = hash_u64(h, (uint64_t)insn->b << 32 | insn->c);
    }
    for (uint32_t i = 0; i < p->num_constants; i++)
        h = hash_u64(h, p->constants[i]);
    for (uint32_t i = 0; i < p->num_inputs; i++)
        h = hash_u64(h, (uint64_t)p->input_dtypes[i]);
    for (uint32_t i = 0; i < p->num_outputs; i++)
        h = hash_u64(h, (uint64_t)p->output_dtypes[i] << 32 | p->outputs[i]);
    return h;
}

static tn_status expr_program_check_limits(const tn_expr_program *p)
{
    if (p->num_insns > TN_EXPR_MAX_INSNS)
        return fail(TN_ERR_UNSUPPORTED,
                    "it needs %u instructions, at most %d fit a program: split it into "
                    "several expressions",
                    p->num_insns, TN_EXPR_MAX_INSNS);
    if (p->num_inputs > TN_EXPR_MAX_INPUTS)
        return fail(TN_ERR_UNSUPPORTED,
                    "it reads %u inputs, at most %d fit a program: split it into several "
                    "expressions",
                    p->num_inputs, TN_EXPR_MAX_INPUTS);
    if (p->num_outputs == 0 || p->num_outputs > TN_EXPR_MAX_OUTPUTS)
        return fail(TN_ERR_UNSUPPORTED, "it has %u outputs, expected 1 to %d",
                    p->num_outputs, TN_EXPR_MAX_OUTPUTS);
    return TN_OK;
}

// Programs come from the core alone, so a malformed one is an internal error.
static tn_status check_insns(const tn_expr_program *p)
{
    for (uint32_t i = 0; i < p->num_insns; i++) {
        const tn_expr_insn *insn = &p->insns[i];
        bool ok = insn->op < TN_EXPR_NUM_OPS && dtype_valid(insn->dtype) &&
                  insn->dtype == tn_dtype_computed(insn->dtype);
        uint32_t num_args = ok ? op_table[insn->op].num_args : 0;
        ok = ok && (num_args < 1 || insn->a < i) && (num_args < 2 || insn->b < i) &&
             (num_args < 3 || insn->c < i);
        if (insn->op == TN_EXPR_LOAD)
            ok = ok && insn->a < p->num_inputs;
        else if (insn->op == TN_EXPR_CONST)
            ok = ok && insn->a < p->num_constants;
        else if (insn->op == TN_EXPR_PARAM)
            ok = ok && insn->a < p->num_params;
        else if (insn->op == TN_EXPR_TAKE)
            ok = ok && insn->a < p->num_inputs && insn->b < i &&
                 insn->c + UINT64_C(1) < p->num_params &&
                 tn_dtype_in(p->insns[insn->b].dtype, TN_INTEGER_DTYPES);
        if (!ok)
            return fail(TN_ERR_INTERNAL, "instruction %u of a program is malformed", i);
    }
    for (uint32_t i = 0; i < p->num_outputs; i++)
        if (p->outputs[i] >= p->num_insns)
            return fail(TN_ERR_INTERNAL, "output %u of a program is malformed", i);
    return TN_OK;
}

static uint32_t program_flags(const tn_expr_program *p)
{
    uint32_t flags = 0;
    for (uint32_t i = 0; i < p->num_insns; i++)
        if (op_reduces(p->insns[i].op) || p->insns[i].op == TN_EXPR_EXTENT)
            flags |= TN_EXPR_ROWS;
        else if (p->insns[i].op == TN_EXPR_TAKE)
            flags |= TN_EXPR_TAKES;
    return flags;
}

static const void *expr_program_copy(struct arena *arena, const void *bytes, size_t size)
{
    void *to = arena_alloc(arena, size ? size : 1);
    if (to && size)
        memcpy(to, bytes, size);
    return to;
}

static struct interned_program *make_interned(struct arena *arena, const tn_expr_program *p,
                                              struct hash hash)
{
    struct interned_program *interned = arena_alloc(arena, sizeof(*interned));
    if (!interned)
        return NULL;
    tn_expr_program *own = &interned->program;
    *own = *p;
    own->struct_size = sizeof(*own);
    own->flags = program_flags(p);
    own->reserved = 0;
    own->hash[0] = hash.lo;
    own->hash[1] = hash.hi;
    own->insns = expr_program_copy(arena, p->insns, p->num_insns * sizeof(*p->insns));
    own->constants =
        expr_program_copy(arena, p->constants, p->num_constants * sizeof(*p->constants));
    own->input_dtypes =
        expr_program_copy(arena, p->input_dtypes, p->num_inputs * sizeof(*p->input_dtypes));
    own->output_dtypes = expr_program_copy(arena, p->output_dtypes,
                                           p->num_outputs * sizeof(*p->output_dtypes));
    own->outputs =
        expr_program_copy(arena, p->outputs, p->num_outputs * sizeof(*p->outputs));
    own->name = arena_strdup(arena, p->name ? p->name : "program");
    interned->param_is_float = arena_alloc(arena, p->num_params + 1);
    if (!own->insns || !own->constants || !own->input_dtypes || !own->output_dtypes ||
        !own->outputs || !own->name || !interned->param_is_float)
        return NULL;
    interned->complex_dtypes = 0;
    for (uint32_t i = 0; i < p->num_insns; i++)
        interned->complex_dtypes |= TN_DTYPE_BIT(p->insns[i].dtype) & TN_COMPLEX_DTYPES;
    for (uint32_t i = 0; i < p->num_insns; i++)
        if (p->insns[i].op == TN_EXPR_PARAM && dtype_is_inexact(p->insns[i].dtype))
            interned->param_is_float[p->insns[i].a] = 1;
    return interned;
}

uint32_t program_complex(const tn_expr_program *program)
{
    return ((const struct interned_program *)program)->complex_dtypes;
}

const tn_expr_program *program_copy(struct arena *arena, const tn_expr_program *program)
{
    const struct hash hash = {program->hash[0], program->hash[1]};
    const struct interned_program *interned = make_interned(arena, program, hash);
    return interned ? &interned->program : NULL;
}

tn_status program_intern(struct expr_set *set, const tn_expr_program *program,
                         const tn_expr_program **out_program)
{
    struct hash hash = expr_program_hash(program);
    struct interned_program *interned = lookup_get(&set->programs, hash);
    tn_status status = TN_OK;
    if (!interned) {
        status = expr_program_check_limits(program);
        if (status == TN_OK)
            status = check_insns(program);
        if (status != TN_OK)
            return status;
        pthread_mutex_lock(&set->lock);
        interned = lookup_get(&set->programs, hash);
        if (!interned) {
            interned = make_interned(&set->arena, program, hash);
            status = interned ? lookup_put(&set->programs, hash, interned) : TN_ERR_MEMORY;
            expr_set_mark_full(set);
        }
        pthread_mutex_unlock(&set->lock);
    }
    if (status == TN_OK)
        *out_program = &interned->program;
    return status;
}

tn_status program_cast(tn_runtime *runtime, tn_dtype from, tn_dtype to,
                       const tn_expr_program **out_program)
{
    const struct expr *identity;
    tn_status status = expr_parse_arrow(runtime, "x -> x", &identity);
    if (status != TN_OK)
        return status;
    return expr_compile(identity, &(struct expr_input){.dtype = from}, &to, out_program);
}

int32_t expr_axis(const tn_attr_table *table, const void *attrs, int32_t rank)
{
    int index = table ? attrs_field_index(table, "axis") : -1;
    int64_t axis = -1;
    if (index >= 0)
        memcpy(&axis, (const char *)attrs + attrs_field(table, (uint32_t)index)->offset,
               sizeof(axis));
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

// --- params ----------------------------------------------------------------------------

static uint64_t param_bits(const tn_attr_field *field, const void *attrs, bool as_float)
{
    uint64_t bits;
    memcpy(&bits, (const char *)attrs + field->offset, sizeof(bits));
    tn_dtype from = field->kind == TN_ATTR_F64    ? TN_F64
                    : field->kind == TN_ATTR_BITS ? TN_U64
                                                  : TN_I64;
    return scalar_cast(from, as_float ? TN_F64 : from == TN_U64 ? TN_U64 : TN_I64, bits);
}

// A number, or the attribute in the struct, as the bits of a double.
static uint64_t leaf_as_float(const struct expr_node *node, const tn_attr_table *table,
                              const void *attrs)
{
    if (node->op == TREE_ATTR)
        return param_bits(
            attrs_field(table, (uint32_t)attrs_field_index(table, node->name)), attrs,
            true);
    return scalar_cast(type_to_dtype((struct value_type){.kind = node->kind}), TN_F64,
                       node->bits);
}

tn_status expr_params(const tn_expr_program *program, const struct expr *expr,
                      const tn_attr_table *table, const void *attrs, uint64_t *params)
{
    const struct interned_program *interned = (const struct interned_program *)program;
    uint32_t count = program->num_params - expr->num_scalars;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = expr->attr_names[i % expr->num_attrs];
        int index = table ? attrs_field_index(table, name) : -1;
        if (index < 0)
            return fail(TN_ERR_ARGUMENT, "expression '%.80s': attribute '%s' is not given",
                        expr->text, name);
        const tn_attr_field *field = attrs_field(table, (uint32_t)index);
        if (field->kind == TN_ATTR_INTS || field->kind > TN_ATTR_BITS)
            return fail(TN_ERR_ARGUMENT,
                        "expression '%.80s': attribute '%s' is a %s, expected a number",
                        expr->text, name,
                        field->kind == TN_ATTR_STRING  ? "text"
                        : field->kind == TN_ATTR_GRAPH ? "graph"
                                                       : "list");
        params[i] = param_bits(field, attrs, interned->param_is_float[i]);
    }
    for (uint32_t i = 0; i < expr->num_scalars; i++) {
        const struct expr_node *node = expr->scalars[i];
        uint64_t args[3] = {0};
        for (uint32_t k = 0; k < node->num_args; k++)
            args[k] = leaf_as_float(node->args[k], table, attrs);
        params[count + i] = scalar_op(node->op, TN_F64, TN_F64, args[0], args[1], args[2]);
    }
    return TN_OK;
}

tn_status expr_params_in(struct arena *arena, const tn_expr_program *program,
                         const struct expr *expr, const tn_attr_table *table,
                         const void *attrs, const uint64_t **out_params)
{
    *out_params = NULL;
    if (program->num_params == 0)
        return TN_OK;
    uint64_t *params = arena_alloc(arena, program->num_params * sizeof(*params));
    if (!params)
        return TN_ERR_MEMORY;
    *out_params = params;
    return expr_params(program, expr, table, attrs, params);
}
