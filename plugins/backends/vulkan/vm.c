// SPDX-License-Identifier: MIT
// Programs as words for the interpreter kernel: registers are given out by last use, and
// what depends on the step (extents, strides, parameters) is in the words as well.
#include "vm.h"

#include <stdlib.h>

#define MAX_OPERANDS 24 // bindings of the interpreter
#define DO_STORE 255u
_Static_assert(TN_EXPR_NUM_OPS <= 64, "operations in use are a set of 64 bits");
#define HEADER_WORDS 11
#define OPERAND_WORDS 11

enum class {
    CLASS_F32,
    CLASS_INT,
    CLASS_UINT,
    CLASS_BOOL,
    CLASS_I64,
    CLASS_U64,
    CLASS_F64
};

static const uint8_t dtype_class[TN_NUM_DTYPES] = {
    [TN_BOOL] = CLASS_BOOL, [TN_I8] = CLASS_INT,   [TN_I16] = CLASS_INT,
    [TN_I32] = CLASS_INT,   [TN_I64] = CLASS_I64,  [TN_U8] = CLASS_UINT,
    [TN_U16] = CLASS_UINT,  [TN_U32] = CLASS_UINT, [TN_U64] = CLASS_U64,
    [TN_F16] = CLASS_F32,   [TN_BF16] = CLASS_F32, [TN_F32] = CLASS_F32,
    [TN_F64] = CLASS_F64,
};

static const uint8_t op_operands[] = {
#define OPERANDS(name, text, operands) operands,
    TN_EXPR_OPS(OPERANDS)
#undef OPERANDS
};

struct assembler {
    const tn_step *step;
    uint32_t *words;
    uint32_t num_words;
    uint16_t last_use[TN_EXPR_MAX_INSNS]; // position after which a result is dead
    uint16_t reg[TN_EXPR_MAX_INSNS];
    bool taken[TN_EXPR_MAX_INSNS + 1];
    uint32_t num_registers;
    bool wide;
};

static void add(struct assembler *as, uint64_t word)
{
    as->words[as->num_words++] = (uint32_t)word;
}

static bool is_wide(tn_dtype dtype)
{
    return dtype == TN_I64 || dtype == TN_U64 || dtype == TN_F64;
}

static bool needs_wide(const tn_expr_program *program)
{
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (is_wide(program->insns[i].dtype))
            return true;
    return false;
}

static void find_last_uses(struct assembler *as)
{
    const tn_expr_program *program = as->step->program;
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        uint32_t operands[] = {insn->a, insn->b, insn->c};
        as->last_use[i] = (uint16_t)i;
        for (uint32_t k = 0; k < op_operands[insn->op]; k++)
            as->last_use[operands[k]] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < program->num_outputs; i++)
        as->last_use[program->outputs[i]] = UINT16_MAX;
}

static uint16_t take_register(struct assembler *as)
{
    uint16_t at = 0;
    while (as->taken[at])
        at++;
    as->taken[at] = true;
    if (at >= as->num_registers)
        as->num_registers = at + 1u;
    return at;
}

// The operands' registers are free for the result where they die here: every lane is read
// before it is written.
static void release_dead(struct assembler *as, uint32_t position)
{
    const tn_expr_insn *insn = &as->step->program->insns[position];
    uint32_t operands[] = {insn->a, insn->b, insn->c};
    for (uint32_t k = 0; k < op_operands[insn->op]; k++)
        if (as->last_use[operands[k]] == position)
            as->taken[as->reg[operands[k]]] = false;
}

static uint64_t constant_bits(tn_dtype dtype, uint64_t bits)
{
    if (dtype != TN_F32)
        return bits;
    double value;
    memcpy(&value, &bits, sizeof(value));
    float narrow = (float)value;
    uint32_t word;
    memcpy(&word, &narrow, sizeof(word));
    return word;
}

static void add_insn(struct assembler *as, uint32_t position)
{
    const tn_step *step = as->step;
    const tn_expr_program *program = step->program;
    const tn_expr_insn *insn = &program->insns[position];
    uint32_t num = op_operands[insn->op];
    tn_dtype operand_dtype =
        num > 0 ? (tn_dtype)program->insns[insn->a].dtype : insn->dtype;
    if (insn->op == TN_EXPR_SELECT)
        operand_dtype = insn->dtype;
    tn_dtype dtype =
        insn->op == TN_EXPR_LOAD ? program->input_dtypes[insn->a] : insn->dtype;
    release_dead(as, position);
    as->reg[position] = take_register(as);
    add(as, insn->op | (uint32_t)dtype_class[insn->dtype] << 8 |
                (uint32_t)dtype_class[operand_dtype] << 12 | (uint32_t)dtype << 16);
    add(as, as->reg[position]);
    if (insn->op == TN_EXPR_LOAD) {
        add(as, insn->a);
        add(as, 0);
    } else if (insn->op == TN_EXPR_CONST || insn->op == TN_EXPR_PARAM) {
        const uint64_t *from =
            insn->op == TN_EXPR_CONST ? program->constants : step->params;
        uint64_t bits = constant_bits(insn->dtype, from[insn->a]);
        add(as, bits);
        add(as, bits >> 32);
    } else {
        uint32_t a = num > 0 ? as->reg[insn->a] : 0, b = num > 1 ? as->reg[insn->b] : 0;
        add(as, a | b << 16);
        add(as, num > 2 ? as->reg[insn->c] : 0);
    }
    if (as->last_use[position] == position) // nobody wants it
        as->taken[as->reg[position]] = false;
}

static void add_store(struct assembler *as, uint32_t output)
{
    const tn_expr_program *program = as->step->program;
    add(as, DO_STORE | (uint32_t)program->output_dtypes[output] << 16);
    add(as, 0);
    add(as, as->reg[program->outputs[output]] | (program->num_inputs + output) << 16);
    add(as, 0);
}

static void add_operand(struct assembler *as, const tn_layout *layout, char access,
                        tn_dtype dtype)
{
    uint32_t kind = access == ACCESS_SCALAR                           ? 2
                    : access == ACCESS_FLAT || access == ACCESS_LOOSE ? 1
                                                                      : 0;
    add(as, (uint64_t)layout->offset);
    add(as, kind);
    add(as, (uint64_t)dtype);
    for (int32_t axis = 0; axis < TN_MAX_RANK; axis++)
        add(as, axis < layout->rank ? (uint64_t)layout->stride[axis] : 0);
}

static void assemble(struct assembler *as, const struct program_class *class)
{
    const tn_step *step = as->step;
    const tn_expr_program *program = step->program;
    const tn_layout *common = &step->outputs[0].layout;
    add(as, program_elements(step));
    add(as, (uint64_t)common->rank);
    for (int32_t axis = 0; axis < TN_MAX_RANK; axis++)
        add(as, axis < common->rank ? (uint64_t)common->extent[axis] : 1);
    add(as, (program->num_insns + program->num_outputs) |
                (program->num_inputs + program->num_outputs) << 16);
    for (uint32_t i = 0; i < program->num_inputs; i++)
        add_operand(as, &step->inputs[i].layout, class->access[i],
                    program->input_dtypes[i]);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        add_operand(as, &step->outputs[i].layout, class->access[program->num_inputs + i],
                    program->output_dtypes[i]);
    find_last_uses(as);
    for (uint32_t i = 0; i < program->num_insns; i++)
        add_insn(as, i);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        add_store(as, i);
}

// A few sizes of register files, so that there are few pipelines.
static uint32_t round_registers(uint32_t num)
{
    uint32_t size = 4;
    while (size < num)
        size *= 2;
    return size;
}

// Operations that come and go together, so that there are few pipelines: by first and last.
static const struct op_group {
    uint8_t first, last;
} op_groups[] = {
    {TN_EXPR_LOAD, TN_EXPR_RSQRT}, {TN_EXPR_EXP, TN_EXPR_LOG1P},
    {TN_EXPR_SIN, TN_EXPR_TAN},    {TN_EXPR_ASIN, TN_EXPR_ATAN},
    {TN_EXPR_SINH, TN_EXPR_ERF},   {TN_EXPR_ISNAN, TN_EXPR_MUL},
    {TN_EXPR_DIV, TN_EXPR_MOD},    {TN_EXPR_POW, TN_EXPR_ATAN2},
    {TN_EXPR_MIN, TN_EXPR_SHR},    {TN_EXPR_EQ, TN_EXPR_SELECT},
};

static uint64_t group_of(uint32_t op)
{
    uint64_t set = 0;
    for (size_t i = 0; i < sizeof(op_groups) / sizeof(op_groups[0]); i++)
        for (uint32_t k = op_groups[i].first;
             op >= op_groups[i].first && op <= op_groups[i].last && k <= op_groups[i].last;
             k++)
            set |= UINT64_C(1) << k;
    return set;
}

// What the program uses, as specialisation constants: the driver leaves out the rest.
static void add_uses(struct vk_launch *launch, const tn_step *step,
                     const struct program_class *class)
{
    const uint32_t words = TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_U32) |
                           TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_I64) |
                           TN_DTYPE_BIT(TN_U64) | TN_DTYPE_BIT(TN_F64);
    const tn_expr_program *program = step->program;
    uint64_t operations = group_of(TN_EXPR_LOAD) | group_of(TN_EXPR_ADD);
    uint32_t classes = 0, dtypes = 0;
    for (uint32_t i = 0; i < program->num_insns; i++) {
        operations |= group_of(program->insns[i].op);
        classes |= UINT32_C(1) << dtype_class[program->insns[i].dtype];
    }
    for (uint32_t i = 0; i < program->num_inputs; i++)
        dtypes |= TN_DTYPE_BIT(program->input_dtypes[i]);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        dtypes |= TN_DTYPE_BIT(program->output_dtypes[i]);
    dtypes = dtypes & ~words ? TN_ALL_DTYPES : words;
    launch_spec(launch, (uint32_t)operations);
    launch_spec(launch, (uint32_t)(operations >> 32));
    launch_spec(launch, classes);
    launch_spec(launch, dtypes);
    launch_spec(launch, class->rank > 0);
}

static tn_status launch(struct vk_plan *plan, const tn_step *step,
                        const struct program_class *class, const struct assembler *as)
{
    uint32_t at;
    tn_status status = plan_constants(plan, as->words, as->num_words, &at);
    if (status != TN_OK)
        return status;
    struct vk_launch launch = {
        .pipeline = {.name = as->wide ? "program_wide" : "program_narrow",
                     .num_array = MAX_OPERANDS}};
    launch_spec(&launch, round_registers(as->num_registers));
    add_uses(&launch, step, class);
    for (uint32_t i = 0; i < step->num_inputs; i++)
        launch_bind(&launch, plan_operand(&step->inputs[i], VK_READS));
    for (uint32_t i = 0; i < step->num_outputs; i++)
        launch_bind(&launch, plan_operand(&step->outputs[i], VK_WRITES));
    while (launch.num_operands < MAX_OPERANDS) // every element of the array must be valid
        launch_bind(&launch, launch.operands[0]);
    launch_bind(&launch,
                (struct vk_operand){.slot = VK_SLOT_CONSTANTS, .access = VK_READS});
    launch_push(&launch, at);
    uint64_t per_group = (uint64_t)PROGRAM_GROUP * (as->wide ? 1 : 4);
    launch.groups = (program_elements(step) + per_group - 1) / per_group;
    return plan_launch(plan, &launch);
}

tn_status vm_plan_program(struct vk_plan *plan, const tn_step *step)
{
    const tn_expr_program *program = step->program;
    struct program_class class;
    struct program_args args;
    program_classify(step, VK_MAX_PUSH, &class, &args);
    uint32_t most = HEADER_WORDS +
                    OPERAND_WORDS * (program->num_inputs + program->num_outputs) +
                    4 * (program->num_insns + program->num_outputs);
    struct assembler as = {.step = step, .wide = needs_wide(program)};
    as.words = malloc(most * sizeof(uint32_t));
    if (!as.words)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    assemble(&as, &class);
    tn_status status = launch(plan, step, &class, &as);
    free(as.words);
    return status;
}
