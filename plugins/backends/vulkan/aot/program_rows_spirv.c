// SPDX-License-Identifier: MIT
// The language of row programs' kernels that is SPIR-V: values are ids.
#include <stdio.h>
#include "../program/program_rows.h"
#include "program_spirv_writer.h"

#define MAX_NAME 32
#define MAX_DEPTH 4 // of nested blocks
// Scope and semantics of barriers: Workgroup; AcquireRelease, WorkgroupMemory.
#define BARRIER_SEMANTICS (MemorySemanticsAcquireRelease | MemorySemanticsWorkgroupMemory)

struct spirv_block { // an `if`, or a loop
    uint32_t end, header, next, next_value;
};

struct spirv_rows {
    struct spirv_writer *w;
    uint32_t label; // of the current block
    struct spirv_block blocks[MAX_DEPTH];
    uint32_t depth;
    uint32_t shared[TN_NUM_DTYPES];         // arrays in shared memory; 0: none yet
    uint32_t shared_pointer[TN_NUM_DTYPES]; // types of pointers to their elements
};

static struct spirv_module *rows_spirv_module_of(void *out)
{
    return ((struct spirv_rows *)out)->w->module;
}

static uint32_t uint_type(void *out)
{
    return ((struct spirv_rows *)out)->w->uint_type;
}

static uint32_t rows_spirv_type_of(void *out, tn_dtype dtype)
{
    return spirv_use(rows_spirv_module_of(out), spirv_dtypes[dtype].computed);
}

static uint32_t rows_spirv_call(void *out, const char *name, uint32_t operand)
{
    return SPIRV_CALL(rows_spirv_module_of(out), spirv_get(rows_spirv_module_of(out), name),
                      operand);
}

// --- numbers ---------------------------------------------------------------------------

static uint32_t rows_spirv_number(void *out, uint32_t value)
{
    return spirv_uint(rows_spirv_module_of(out), value);
}

static uint32_t rows_spirv_argument(void *out, uint32_t word)
{
    return spirv_write_arg(((struct spirv_rows *)out)->w, word);
}

static uint32_t group_number(void *out)
{
    return rows_spirv_call(out, "GROUP", rows_spirv_number(out, 0));
}

static uint32_t rows_spirv_invocation(void *out)
{
    bool subgroups = ((struct spirv_rows *)out)->w->class->subgroup > 0;
    return rows_spirv_call(out, subgroups ? "SUBGROUP_LANE" : "LANE",
                           rows_spirv_number(out, 0));
}

static uint32_t rows_spirv_compute(void *out, enum rows_operator operator, uint32_t a,
                                   uint32_t b)
{
    static const uint32_t ops[] = {
        [ROWS_ADD] = OpIAdd,       [ROWS_SUB] = OpISub,
        [ROWS_MUL] = OpIMul,       [ROWS_DIV] = OpUDiv,
        [ROWS_AND] = OpBitwiseAnd, [ROWS_SHIFT_RIGHT] = OpShiftRightLogical};
    return SPIRV_RESULT(rows_spirv_module_of(out), ops[operator], uint_type(out), a, b);
}

static uint32_t is_less(void *out, uint32_t a, uint32_t b)
{
    return SPIRV_RESULT(rows_spirv_module_of(out), OpULessThan,
                        rows_spirv_type_of(out, TN_BOOL), a, b);
}

static uint32_t rows_spirv_both(void *out, uint32_t a, uint32_t b)
{
    return SPIRV_RESULT(rows_spirv_module_of(out), OpLogicalAnd,
                        rows_spirv_type_of(out, TN_BOOL), a, b);
}

static uint32_t rows_spirv_choose(void *out, tn_dtype dtype, uint32_t test, uint32_t a,
                                  uint32_t b)
{
    return SPIRV_RESULT(rows_spirv_module_of(out), OpSelect, rows_spirv_type_of(out, dtype),
                        test, a, b);
}

// --- memory ----------------------------------------------------------------------------

static uint32_t rows_spirv_quarter(void *out, uint32_t index)
{
    return rows_spirv_compute(out, ROWS_SHIFT_RIGHT, index, rows_spirv_number(out, 2));
}

static void rows_spirv_load(void *out, uint32_t operand, bool four, uint32_t index,
                            uint32_t *values)
{
    struct spirv_writer *w = ((struct spirv_rows *)out)->w;
    tn_dtype dtype = spirv_operand_dtype(w, operand);
    uint32_t type = spirv_use(w->module, spirv_dtypes[dtype].loaded);
    uint32_t all =
        spirv_write_load(w, operand, four, four ? rows_spirv_quarter(out, index) : index);
    for (uint32_t lane = 0; lane < (four ? 4u : 1u); lane++) {
        uint32_t one =
            four ? SPIRV_RESULT(w->module, OpCompositeExtract, type, all, lane) : all;
        values[lane] = spirv_write_if_any(w, "DECODE", dtype, one);
    }
}

static void rows_spirv_store(void *out, uint32_t operand, bool four, uint32_t index,
                             const uint32_t *values)
{
    struct spirv_writer *w = ((struct spirv_rows *)out)->w;
    tn_dtype dtype = spirv_operand_dtype(w, operand);
    uint32_t encoded[4];
    for (uint32_t lane = 0; lane < (four ? 4u : 1u); lane++)
        encoded[lane] = spirv_write_if_any(w, "ENCODE", dtype, values[lane]);
    if (!four) {
        spirv_write_store(w, operand, false, index, encoded[0]);
        return;
    }
    uint32_t type = spirv_use(w->module, spirv_dtypes[dtype].loaded_four);
    uint32_t all = spirv_result(w->module, OpCompositeConstruct, type, encoded, 4);
    spirv_write_store(w, operand, true, rows_spirv_quarter(out, index), all);
}

// --- instructions ----------------------------------------------------------------------

static uint32_t rows_spirv_constant(void *out, tn_dtype dtype, uint64_t bits)
{
    return spirv_write_constant(((struct spirv_rows *)out)->w, dtype, bits);
}

static uint32_t rows_spirv_param(void *out, tn_dtype dtype, uint32_t word)
{
    return spirv_write_param(((struct spirv_rows *)out)->w, dtype, word);
}

static uint32_t rows_spirv_wide(void *out, uint32_t value)
{
    return rows_spirv_call(out, "INDEX", value);
}

static uint32_t rows_spirv_instruction(void *out, uint32_t position, const uint32_t *values)
{
    struct spirv_writer *w = ((struct spirv_rows *)out)->w;
    const tn_expr_insn *insn = &w->program->insns[position];
    const uint32_t positions[] = {insn->a, insn->b, insn->c};
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++)
        operands[i] = values[positions[i]];
    return spirv_write_operation(w, insn->op, w->program->insns[insn->a].dtype, insn->dtype,
                                 operands);
}

static uint32_t rows_spirv_fold(void *out, uint32_t op, tn_dtype dtype, uint32_t a,
                                uint32_t b)
{
    return spirv_write_operation(((struct spirv_rows *)out)->w, op, dtype, dtype,
                                 (const uint32_t[]){a, b});
}

// --- other invocations -----------------------------------------------------------------

static uint32_t rows_spirv_shuffle(void *out, tn_dtype dtype, uint32_t value, uint32_t mask)
{
    struct spirv_module *m = rows_spirv_module_of(out);
    char name[MAX_NAME];
    snprintf(name, sizeof(name), "SHUFFLE_%s", dtype_glsl(spirv_class_of(dtype)));
    return SPIRV_CALL(m, spirv_get(m, name), value, mask);
}

// Declares a global variable of a class of storage.
static uint32_t rows_spirv_declare(void *out, uint32_t type, uint32_t storage)
{
    struct spirv_module *m = rows_spirv_module_of(out);
    uint32_t pointer = spirv_new_id(m), variable = spirv_new_id(m);
    SPIRV_ADD(m, globals, OpTypePointer, pointer, storage, type);
    SPIRV_ADD(m, globals, OpVariable, pointer, variable, storage);
    return variable;
}

// A pointer to an element of the dtype's array in shared memory.
static uint32_t shared_element(void *out, tn_dtype dtype, uint32_t index)
{
    struct spirv_rows *rows = out;
    struct spirv_module *m = rows_spirv_module_of(out);
    tn_dtype class = spirv_class_of(dtype);
    uint32_t type = rows_spirv_type_of(out, class);
    if (rows->shared[class] == 0) {
        uint32_t array = spirv_new_id(m);
        uint32_t size =
            rows_spirv_number(out, rows_shared_size(rows->w->program, rows->w->class));
        SPIRV_ADD(m, globals, OpTypeArray, array, type, size);
        rows->shared[class] = rows_spirv_declare(out, array, StorageClassWorkgroup);
        rows->shared_pointer[class] = spirv_new_id(m);
        SPIRV_ADD(m, globals, OpTypePointer, rows->shared_pointer[class],
                  StorageClassWorkgroup, type);
    }
    return SPIRV_RESULT(m, OpAccessChain, rows->shared_pointer[class], rows->shared[class],
                        index);
}

static uint32_t shared_load(void *out, tn_dtype dtype, uint32_t index)
{
    uint32_t pointer = shared_element(out, dtype, index);
    return SPIRV_RESULT(rows_spirv_module_of(out), OpLoad, rows_spirv_type_of(out, dtype),
                        pointer);
}

static void shared_store(void *out, tn_dtype dtype, uint32_t index, uint32_t value)
{
    uint32_t pointer = shared_element(out, dtype, index);
    SPIRV_ADD(rows_spirv_module_of(out), code, OpStore, pointer, value);
}

static void rows_spirv_barrier(void *out)
{
    uint32_t scope = rows_spirv_number(out, ScopeWorkgroup);
    SPIRV_ADD(rows_spirv_module_of(out), code, OpControlBarrier, scope, scope,
              rows_spirv_number(out, BARRIER_SEMANTICS));
}

// --- variables and control flow ----------------------------------------------------------

static void rows_spirv_set(void *out, uint32_t variable, uint32_t value)
{
    SPIRV_ADD(rows_spirv_module_of(out), code, OpStore, variable, value);
}

static uint32_t rows_spirv_get(void *out, tn_dtype dtype, uint32_t variable)
{
    return SPIRV_RESULT(rows_spirv_module_of(out), OpLoad, rows_spirv_type_of(out, dtype),
                        variable);
}

static uint32_t rows_spirv_variable(void *out, tn_dtype dtype, uint32_t value)
{
    uint32_t id =
        rows_spirv_declare(out, rows_spirv_type_of(out, dtype), StorageClassPrivate);
    rows_spirv_set(out, id, value);
    return id;
}

static void rows_spirv_begin_block(struct spirv_rows *rows, uint32_t label)
{
    SPIRV_ADD(rows_spirv_module_of(rows), code, OpLabel, label);
    rows->label = label;
}

static void rows_spirv_branch(struct spirv_rows *rows, uint32_t label)
{
    SPIRV_ADD(rows_spirv_module_of(rows), code, OpBranch, label);
}

static void begin_if(void *out, uint32_t test)
{
    struct spirv_rows *rows = out;
    struct spirv_module *m = rows_spirv_module_of(out);
    struct spirv_block *block = &rows->blocks[rows->depth++];
    uint32_t body = spirv_new_id(m);
    block->end = spirv_new_id(m);
    SPIRV_ADD(m, code, OpSelectionMerge, block->end, 0);
    SPIRV_ADD(m, code, OpBranchConditional, test, body, block->end);
    rows_spirv_begin_block(rows, body);
}

static void end_if(void *out)
{
    struct spirv_rows *rows = out;
    uint32_t end = rows->blocks[--rows->depth].end;
    rows_spirv_branch(rows, end);
    rows_spirv_begin_block(rows, end);
}

static uint32_t begin_loop(void *out, uint32_t stop, uint32_t step)
{
    struct spirv_rows *rows = out;
    struct spirv_module *m = rows_spirv_module_of(out);
    struct spirv_block *block = &rows->blocks[rows->depth++];
    uint32_t test = spirv_new_id(m), body = spirv_new_id(m), i = spirv_new_id(m);
    uint32_t before = rows->label, zero = rows_spirv_number(out, 0);
    *block = (struct spirv_block){spirv_new_id(m), spirv_new_id(m), spirv_new_id(m),
                                  spirv_new_id(m)};
    rows_spirv_branch(rows, block->header);
    rows_spirv_begin_block(rows, block->header);
    SPIRV_ADD(m, code, OpPhi, uint_type(out), i, zero, before, block->next_value,
              block->next);
    SPIRV_ADD(m, code, OpLoopMerge, block->end, block->next, 0);
    rows_spirv_branch(rows, test);
    rows_spirv_begin_block(rows, test);
    uint32_t more = is_less(out, i, stop);
    SPIRV_ADD(m, code, OpBranchConditional, more, body, block->end);
    rows_spirv_begin_block(rows, body);
    SPIRV_ADD(m, code, OpIAdd, uint_type(out), block->next_value, i, step);
    return i;
}

static void end_loop(void *out)
{
    struct spirv_rows *rows = out;
    const struct spirv_block block = rows->blocks[--rows->depth];
    rows_spirv_branch(rows, block.next);
    rows_spirv_begin_block(rows, block.next);
    rows_spirv_branch(rows, block.header);
    rows_spirv_begin_block(rows, block.end);
}

static const struct rows_language spirv = {
    .number = rows_spirv_number,
    .argument = rows_spirv_argument,
    .group_number = group_number,
    .invocation = rows_spirv_invocation,
    .compute = rows_spirv_compute,
    .is_less = is_less,
    .both = rows_spirv_both,
    .choose = rows_spirv_choose,
    .load = rows_spirv_load,
    .store = rows_spirv_store,
    .constant = rows_spirv_constant,
    .param = rows_spirv_param,
    .wide = rows_spirv_wide,
    .instruction = rows_spirv_instruction,
    .fold = rows_spirv_fold,
    .shuffle = rows_spirv_shuffle,
    .shared_load = shared_load,
    .shared_store = shared_store,
    .barrier = rows_spirv_barrier,
    .variable = rows_spirv_variable,
    .get = rows_spirv_get,
    .set = rows_spirv_set,
    .begin_if = begin_if,
    .end_if = end_if,
    .begin_loop = begin_loop,
    .end_loop = end_loop,
};

uint32_t program_write_rows_spirv(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    struct spirv_rows rows = {.w = w};
    const struct spirv_part *model = spirv_entry(m);
    uint32_t entry = spirv_new_id(m);
    w->words.num_args = rows_first_param(w->class) + program_count_params(w->program);
    spirv_declare_push(w);
    SPIRV_ADD(m, code, OpFunction, model->result, entry, 0, model->type);
    rows_spirv_begin_block(&rows, spirv_new_id(m));
    if (!program_write_rows(&spirv, &rows, w->program, w->class))
        m->failed = true;
    spirv_add(m, &m->code, OpReturn, NULL, 0);
    spirv_add(m, &m->code, OpFunctionEnd, NULL, 0);
    return entry;
}
