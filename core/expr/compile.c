// SPDX-License-Identifier: MIT
// Compiles trees to programs, in which every value has a dtype and every conversion is an
// instruction.
//
// The first pass goes from the outputs to the leaves, in reverse topological order, and
// collects the dtypes in which each node's value is wanted. A weakly typed node is computed
// in the dtype wanted (so 2 * alpha * x is all f32); any other node is computed once, in
// its own dtype, and then cast. The second pass emits instructions from the leaves up.
#include <math.h>
#include <string.h>
#include "assemble.h"

struct expr_compiler {
    const struct expr *expr;
    const struct expr_input *inputs;
    struct walk walk;
    struct value_type *types;      // by node
    uint32_t *wanted;              // first pass, by node: bits of dtypes
    uint32_t (*at)[TN_NUM_DTYPES]; // second pass, by node and dtype: the instruction
    struct assembler assembler;
    uint8_t *attr_uses; // first pass, by attribute: 1 as a float, 2 as an integer, 3 both
    bool split_attrs;   // an attribute is used as both, so there are two params for each
};

static uint32_t expr_compile_position_of(const struct expr_compiler *c,
                                         const struct expr_node *node)
{
    return walk_position(&c->walk, node);
}

static bool expr_compile_is_number(struct value_type type)
{
    return type.dtype == TN_DTYPE_NONE;
}

// The dtype in which node i is computed when its value is wanted in `wanted`. Weakly typed
// floats take any float dtype; weakly typed integers take any dtype as leaves, but are
// computed in i64 or u64 as operations.
static tn_dtype computed_as(const struct expr_compiler *c, uint32_t i, tn_dtype wanted)
{
    const struct expr_node *node = c->walk.nodes[i];
    struct value_type type = c->types[i];
    if (node->op == TREE_INPUT)
        return type_computed((struct value_type){.dtype = c->inputs[node->index].dtype});
    if (!expr_compile_is_number(type))
        return type_computed(type);
    if (node->op == TN_EXPR_SELECT)
        return wanted;
    if (type.kind == KIND_COMPLEX)
        return tn_is_complex(wanted) ? wanted : TN_COMPLEX128;
    bool is_leaf = op_table[node->op].class == TN_EXPR_CLASS_LEAF;
    if (type.kind == KIND_FLOAT) // an operation on real numbers, also beside complex ones
        return !dtype_is_inexact(wanted) ? TN_F64
               : is_leaf                 ? wanted
                                         : tn_dtype_real(wanted);
    return is_leaf && wanted != TN_BOOL ? wanted : type_to_dtype(type);
}

// The dtype of the operand of which a part is computed in `dtype`.
static tn_dtype expr_compile_whole_of(struct value_type arg, tn_dtype dtype)
{
    bool is_complex =
        expr_compile_is_number(arg) ? arg.kind == KIND_COMPLEX : tn_is_complex(arg.dtype);
    return is_complex ? tn_dtype_complex(dtype) : dtype;
}

// The dtype that operand k of node i must have when the node is computed in `dtype`. NONE:
// the result does not depend on the operand (isnan of an integer, i8 < 300).
static tn_dtype operand_dtype(const struct expr_compiler *c, uint32_t i, tn_dtype dtype,
                              uint32_t k)
{
    const struct expr_node *node = c->walk.nodes[i];
    struct value_type arg = c->types[expr_compile_position_of(c, node->args[k])];
    switch (op_table[node->op].class) {
    case TN_EXPR_CLASS_CAST:
        return expr_compile_is_number(arg) ? dtype : type_computed(arg);
    case TN_EXPR_CLASS_TEST:
        return dtype_is_inexact(type_computed(arg)) ? type_computed(arg) : TN_DTYPE_NONE;
    case TN_EXPR_CLASS_COMPARE:
        return type_compared(arg, c->types[expr_compile_position_of(c, node->args[1 - k])]);
    case TN_EXPR_CLASS_LOGIC:
        return TN_BOOL;
    case TN_EXPR_CLASS_SELECT:
        return k == 0 ? TN_BOOL : dtype;
    case TN_EXPR_CLASS_SIGN:
        return node->op == TN_EXPR_ABS ? expr_compile_whole_of(arg, dtype) : dtype;
    case TN_EXPR_CLASS_PART:
        return expr_compile_whole_of(arg, dtype);
    case TN_EXPR_CLASS_JOIN:
        return tn_dtype_real(dtype);
    default:
        return dtype;
    }
}

static uint32_t attr_index(const struct expr_compiler *c, const struct expr_node *node)
{
    uint32_t i = 0;
    while (c->expr->attr_names[i] != node->name)
        i++;
    return i;
}

// The dtypes in which node i is computed, as bits.
static uint32_t computed_set(const struct expr_compiler *c, uint32_t i)
{
    uint32_t set = 0;
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (c->wanted[i] >> dtype & 1)
            set |= TN_DTYPE_BIT(computed_as(c, i, dtype));
    return set;
}

static void want_operands(struct expr_compiler *c, uint32_t i)
{
    const struct expr_node *node = c->walk.nodes[i];
    if (scalars_position(c->expr, node) >= 0)
        return; // a param
    uint32_t set = computed_set(c, i);
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++) {
        if (!(set >> dtype & 1))
            continue;
        for (uint32_t k = 0; k < node->num_args; k++) {
            tn_dtype operand = operand_dtype(c, i, dtype, k);
            if (operand)
                c->wanted[expr_compile_position_of(c, node->args[k])] |=
                    TN_DTYPE_BIT(operand);
        }
        if (node->op == TREE_ATTR) {
            uint8_t *uses = &c->attr_uses[attr_index(c, node)];
            *uses |= dtype_is_inexact(dtype) ? 1 : 2;
            c->split_attrs |= *uses == 3;
        }
    }
}

// --- emitting instructions -------------------------------------------------------------

static uint32_t emit_leaf(struct expr_compiler *c, uint32_t i, tn_dtype dtype)
{
    const struct expr_node *node = c->walk.nodes[i];
    switch (node->op) {
    case TREE_INPUT:
        return assemble(&c->assembler, TN_EXPR_LOAD, dtype, node->index, 0, 0);
    case TREE_NUMBER: {
        if (node->kind == KIND_COMPLEX)
            return assemble_imaginary(&c->assembler, dtype, node->bits);
        tn_dtype from = node->kind == KIND_BOOL ? TN_BOOL : type_to_dtype(c->types[i]);
        return assemble_constant(&c->assembler, dtype,
                                 scalar_cast(from, dtype, node->bits));
    }
    case TREE_ATTR: {
        uint32_t slot = attr_index(c, node);
        if (c->attr_uses[slot] == 3 && !dtype_is_inexact(dtype))
            slot += c->expr->num_attrs;
        return assemble(&c->assembler, TN_EXPR_PARAM, dtype, slot, 0, 0);
    }
    default:
        return assemble(&c->assembler, TN_EXPR_INDEX, TN_I64, 0, 0, 0);
    }
}

static uint32_t emit_reduction(struct expr_compiler *c, int op, tn_dtype dtype,
                               uint32_t arg)
{
    struct assembler *a = &c->assembler;
    if (op != TREE_MEAN)
        return assemble(a, op, dtype, arg, 0, 0);
    uint32_t sum = assemble(a, TN_EXPR_REDUCE_SUM, dtype, arg, 0, 0);
    uint32_t extent = assemble(a, TN_EXPR_EXTENT, TN_I64, 0, 0, 0);
    return assemble(a, TN_EXPR_DIV, dtype, sum, assemble_cast(a, dtype, extent), 0);
}

static uint32_t emit_arith(struct expr_compiler *c, int op, tn_dtype dtype,
                           const uint32_t *args)
{
    struct assembler *a = &c->assembler;
    if (op == TN_EXPR_FLOOR_DIV && !dtype_is_float(dtype))
        op = TN_EXPR_DIV; // whose quotient is rounded down for integers
    if (dtype == TN_BOOL && (op == TN_EXPR_ADD || op == TN_EXPR_MUL)) // as in NumPy
        op = op == TN_EXPR_ADD ? TN_EXPR_OR : TN_EXPR_AND;
    return assemble(a, op, dtype, args[0], args[1], args[2]);
}

// A part of an operand, which may be real.
static uint32_t expr_compile_emit_part(struct expr_compiler *c, int op, tn_dtype dtype,
                                       uint32_t arg)
{
    struct assembler *a = &c->assembler;
    if (a->status == TN_OK && tn_is_complex(a->insns[arg].dtype))
        return assemble(a, op, dtype, arg, 0, 0);
    return op == TN_EXPR_IMAG ? assemble_constant(a, dtype, 0) : arg;
}

// z / |z|, and 0 of 0, of a complex number. As NumPy: of one infinite part its own sign, of
// two NaN.
static uint32_t emit_complex_sign(struct assembler *a, tn_dtype dtype, uint32_t z)
{
    tn_dtype real = tn_dtype_real(dtype);
    uint32_t part[2], is_inf[2], zero = assemble_constant(a, real, 0);
    for (int i = 0; i < 2; i++) {
        part[i] = assemble(a, i ? TN_EXPR_IMAG : TN_EXPR_REAL, real, z, 0, 0);
        is_inf[i] = assemble(a, TN_EXPR_ISINF, TN_BOOL, part[i], 0, 0);
    }
    for (int i = 0; i < 2; i++)
        part[i] = assemble(a, TN_EXPR_SELECT, real, is_inf[i],
                           assemble(a, TN_EXPR_SIGN, real, part[i], 0, 0),
                           assemble(a, TN_EXPR_SELECT, real, is_inf[1 - i], zero, part[i]));
    uint32_t both = assemble(a, TN_EXPR_AND, TN_BOOL, is_inf[0], is_inf[1], 0);
    uint32_t size =
        assemble(a, TN_EXPR_MODULUS, real,
                 assemble(a, TN_EXPR_COMPLEX, dtype, part[0], part[1], 0), 0, 0);
    uint32_t is_zero = assemble(a, TN_EXPR_EQ, TN_BOOL, size, zero, 0);
    size = assemble(a, TN_EXPR_SELECT, real, is_zero,
                    assemble_constant(a, real, double_to_bits(1)), size);
    size = assemble(a, TN_EXPR_SELECT, real, both,
                    assemble_constant(a, real, double_to_bits(NAN)), size);
    return assemble(a, TN_EXPR_COMPLEX, dtype,
                    assemble(a, TN_EXPR_DIV, real, part[0], size, 0),
                    assemble(a, TN_EXPR_DIV, real, part[1], size, 0), 0);
}

static uint32_t emit_sign(struct expr_compiler *c, int op, tn_dtype dtype, uint32_t arg)
{
    struct assembler *a = &c->assembler;
    if (op == TN_EXPR_ABS && a->status == TN_OK && tn_is_complex(a->insns[arg].dtype))
        return assemble(a, TN_EXPR_MODULUS, dtype, arg, 0, 0);
    if (op == TN_EXPR_SIGN && tn_is_complex(dtype))
        return emit_complex_sign(a, dtype, arg);
    if (op == TN_EXPR_CONJ
            ? !tn_is_complex(dtype)
            : op == TN_EXPR_ABS && !dtype_is_float(dtype) && !tn_is_signed(dtype))
        return arg;
    return assemble(a, op, dtype, arg, 0, 0);
}

// Whether every number is below (is_below) or above the operands that are compared with it,
// given by position: whether `op` holds.
static bool holds_beyond(int op, uint32_t number_at, bool is_below)
{
    bool is_less = is_below == (number_at == 0); // the left operand is the lesser one
    return op == TN_EXPR_NE || (is_less ? op == TN_EXPR_LT || op == TN_EXPR_LE
                                        : op == TN_EXPR_GT || op == TN_EXPR_GE);
}

// Compares u64 with i64: below 0 the i64 is the lesser one, else both are u64.
static uint32_t emit_mixed(struct assembler *a, int op, const uint32_t *args)
{
    uint32_t signed_at = a->insns[args[0]].dtype == TN_U64;
    uint32_t number = args[signed_at], operands[2] = {args[0], args[1]};
    operands[signed_at] = assemble_cast(a, TN_U64, number);
    bool holds = holds_beyond(op, signed_at, true);
    uint32_t below = assemble(a, holds ? TN_EXPR_LT : TN_EXPR_GE, TN_BOOL, number,
                              assemble_constant(a, TN_I64, 0), 0);
    uint32_t known = assemble(a, op, TN_BOOL, operands[0], operands[1], 0);
    return assemble(a, holds ? TN_EXPR_OR : TN_EXPR_AND, TN_BOOL, below, known, 0);
}

static uint32_t emit_comparison(struct expr_compiler *c, const struct expr_node *node,
                                const uint32_t *args)
{
    struct assembler *a = &c->assembler;
    if (a->status != TN_OK)
        return 0;
    if (args[0] == ASSEMBLE_NONE) {
        struct value_type left = c->types[expr_compile_position_of(c, node->args[0])];
        struct value_type right = c->types[expr_compile_position_of(c, node->args[1])];
        bool is_below = number_is_negative(expr_compile_is_number(left) ? left : right);
        return assemble_constant(
            a, TN_BOOL, holds_beyond(node->op, !expr_compile_is_number(left), is_below));
    }
    if (a->insns[args[0]].dtype != a->insns[args[1]].dtype)
        return emit_mixed(a, node->op, args);
    return assemble(a, node->op, TN_BOOL, args[0], args[1], 0);
}

static uint32_t num_attr_params(const struct expr_compiler *c)
{
    return c->expr->num_attrs * (c->split_attrs ? 2 : 1);
}

static uint32_t expr_compile_emit(struct expr_compiler *c, uint32_t i, tn_dtype dtype)
{
    const struct expr_node *node = c->walk.nodes[i];
    struct assembler *a = &c->assembler;
    uint32_t args[3] = {0};
    int scalar = scalars_position(c->expr, node);
    if (scalar >= 0)
        return assemble(a, TN_EXPR_PARAM, dtype, num_attr_params(c) + (uint32_t)scalar, 0,
                        0);
    for (uint32_t k = 0; k < node->num_args; k++) {
        tn_dtype operand = operand_dtype(c, i, dtype, k);
        args[k] = operand ? c->at[expr_compile_position_of(c, node->args[k])][operand]
                          : ASSEMBLE_NONE;
    }
    bool is_float = dtype_is_float(dtype);
    switch (op_table[node->op].class) {
    case TN_EXPR_CLASS_LEAF:
        return emit_leaf(c, i, dtype);
    case TN_EXPR_CLASS_CAST:
        return assemble_cast(a, dtype, args[0]);
    case TN_EXPR_CLASS_ROUND:
        return is_float ? assemble(a, node->op, dtype, args[0], 0, 0) : args[0];
    case TN_EXPR_CLASS_SIGN:
        return emit_sign(c, node->op, dtype, args[0]);
    case TN_EXPR_CLASS_PART:
        return expr_compile_emit_part(c, node->op, dtype, args[0]);
    case TN_EXPR_CLASS_TEST:
        return args[0] == ASSEMBLE_NONE
                   ? assemble_constant(a, TN_BOOL, node->op == TN_EXPR_ISFINITE)
                   : assemble(a, node->op, TN_BOOL, args[0], 0, 0);
    case TN_EXPR_CLASS_LOGIC:
        return assemble(a,
                        node->op == TREE_ALL   ? TN_EXPR_AND
                        : node->op == TREE_ANY ? TN_EXPR_OR
                                               : TN_EXPR_NOT,
                        TN_BOOL, args[0], args[1], 0);
    case TN_EXPR_CLASS_BITS:
    case TN_EXPR_CLASS_SHIFT:
        return node->op == TN_EXPR_INVERT && dtype == TN_BOOL
                   ? assemble(a, TN_EXPR_NOT, TN_BOOL, args[0], 0, 0)
                   : assemble(a, node->op, dtype, args[0], args[1], 0);
    case TN_EXPR_CLASS_COMPARE:
        return emit_comparison(c, node, args);
    case TN_EXPR_CLASS_REDUCE:
        return emit_reduction(c, node->op, dtype, args[0]);
    default:
        return emit_arith(c, node->op, dtype, args);
    }
}

static void emit_all(struct expr_compiler *c, uint32_t i)
{
    uint32_t set = computed_set(c, i);
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (set >> dtype & 1)
            c->at[i][dtype] = expr_compile_emit(c, i, dtype);
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (c->wanted[i] >> dtype & ~(set >> dtype) & 1)
            c->at[i][dtype] =
                assemble_cast(&c->assembler, dtype, c->at[i][computed_as(c, i, dtype)]);
}

// --- compiling -------------------------------------------------------------------------

static tn_status compiler_init(struct expr_compiler *c)
{
    const struct expr *expr = c->expr;
    tn_status status = walk_init(&c->walk, expr->outputs, expr->num_outputs);
    if (status == TN_OK)
        status = walk_types(&c->walk, c->inputs, &c->types);
    if (status != TN_OK)
        return status;
    c->wanted = mem_zalloc(c->walk.count * sizeof(*c->wanted) + 1);
    c->at = mem_alloc(c->walk.count * sizeof(*c->at) + 1);
    c->attr_uses = mem_zalloc(expr->num_attrs + 1);
    return c->wanted && c->at && c->attr_uses ? TN_OK : TN_ERR_MEMORY;
}

static void compiler_finish(struct expr_compiler *c)
{
    assembler_finish(&c->assembler);
    mem_free(c->attr_uses);
    mem_free(c->at);
    mem_free(c->wanted);
    mem_free(c->types);
    walk_finish(&c->walk);
}

static tn_status make_program(struct expr_compiler *c, const tn_dtype *given_dtypes,
                              const tn_expr_program **out_program)
{
    const struct expr *expr = c->expr;
    tn_dtype input_dtypes[TN_EXPR_MAX_INPUTS], output_dtypes[TN_EXPR_MAX_OUTPUTS];
    uint32_t outputs[TN_EXPR_MAX_OUTPUTS], roots[TN_EXPR_MAX_OUTPUTS];
    tn_dtype computed[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < expr->num_inputs; i++)
        input_dtypes[i] = c->inputs[i].dtype;
    for (uint32_t i = 0; i < expr->num_outputs; i++) {
        roots[i] = expr_compile_position_of(c, expr->outputs[i]);
        output_dtypes[i] =
            given_dtypes ? given_dtypes[i] : type_to_dtype(c->types[roots[i]]);
        computed[i] = type_computed((struct value_type){.dtype = output_dtypes[i]});
        c->wanted[roots[i]] |= TN_DTYPE_BIT(computed[i]);
    }
    for (int64_t i = (int64_t)c->walk.count - 1; i >= 0; i--)
        want_operands(c, i);
    for (uint32_t i = 0; i < c->walk.count; i++)
        emit_all(c, i);
    for (uint32_t i = 0; i < expr->num_outputs; i++)
        outputs[i] = c->at[roots[i]][computed[i]];
    tn_status status = assembler_end(&c->assembler, outputs, expr->num_outputs);
    if (status != TN_OK)
        return status;
    tn_expr_program program = {
        .struct_size = sizeof(program),
        .insns = c->assembler.insns,
        .num_insns = c->assembler.num_insns,
        .constants = c->assembler.constants,
        .num_constants = c->assembler.num_constants,
        .num_params = num_attr_params(c) + expr->num_scalars,
        .input_dtypes = input_dtypes,
        .num_inputs = expr->num_inputs,
        .output_dtypes = output_dtypes,
        .outputs = outputs,
        .num_outputs = expr->num_outputs,
        .name = expr->text,
    };
    return program_intern(expr_set_of(expr), &program, out_program);
}

static tn_status expr_compile_program(const struct expr *expr,
                                      const struct expr_input *inputs,
                                      const tn_dtype *output_dtypes,
                                      const tn_expr_program **out_program)
{
    struct expr_compiler compiler = {.expr = expr, .inputs = inputs};
    if (expr->num_inputs > TN_EXPR_MAX_INPUTS || expr->num_outputs > TN_EXPR_MAX_OUTPUTS)
        return fail(
            TN_ERR_UNSUPPORTED,
            "expression '%.80s' has %u inputs and %u outputs, at most %d and %d fit "
            "a program: split it into several",
            expr->text, expr->num_inputs, expr->num_outputs, TN_EXPR_MAX_INPUTS,
            TN_EXPR_MAX_OUTPUTS);
    tn_status status = compiler_init(&compiler);
    if (status == TN_OK)
        status = make_program(&compiler, output_dtypes, out_program);
    compiler_finish(&compiler);
    if (status != TN_OK && status != TN_ERR_MEMORY)
        fail_prefix("expression '%.80s': ", expr->text);
    return status;
}

tn_status expr_compile(const struct expr *expr, const struct expr_input *inputs,
                       const tn_dtype *output_dtypes, const tn_expr_program **out_program)
{
    struct expr_set *set = expr_set_of(expr);
    struct hash key = {0};
    uint64_t outputs = 0;
    for (uint32_t i = 0; output_dtypes && i < expr->num_outputs; i++)
        outputs = outputs << 5 | (uint64_t)output_dtypes[i];
    const tn_expr_program *program = NULL;
    if (expr_dtypes_key(expr, inputs, 5, &key)) {
        key = hash_u64(key, outputs); // 0: output dtypes as inferred
        program = lookup_get(&set->compiled, key);
    }
    if (!program) {
        tn_status status = expr_compile_program(expr, inputs, output_dtypes, &program);
        if (status != TN_OK)
            return status;
        pthread_mutex_lock(&set->lock);
        status = lookup_put(&set->compiled, key, (void *)program);
        pthread_mutex_unlock(&set->lock);
        if (status != TN_OK)
            return status;
    }
    *out_program = program;
    return TN_OK;
}
