// SPDX-License-Identifier: MIT
// The intermediate form: a SPIR-V module in memory, in the terms of the SPIR-V
// specification. Types, constants and values are ids; instructions are lists in blocks,
// blocks are lists in functions. The front end builds it, passes rewrite it, spirv_write.c
// makes words of it.
//
// Control flow stays structured, as SPIR-V wants it: a block that begins a selection or a
// loop has an OpSelectionMerge or OpLoopMerge before its last instruction, and blocks are
// in an order in which dominators come first. Local variables are OpVariable in a
// function's first block until a pass makes values and phis of them.
//
// A compilation has one module, and one thread.
#ifndef KERNELS_COMPILER_IR_H
#define KERNELS_COMPILER_IR_H

#include "../base/context.h"
#include "../../spirv/read.h"

// An instruction. Operands are those behind type and result; spirv/opcode.h says which are
// ids.
struct ir_inst {
    struct ir_inst *previous, *next; // in its block, or in its section of the module
    struct ir_block *block;          // NULL: outside of blocks
    uint16_t op;                     // enum spirv_op
    uint16_t mark;                   // free for passes
    uint32_t type, id;               // 0: none
    uint32_t num_operands;
    uint32_t *operands;
};

struct ir_insts {
    struct ir_inst *first, *last;
};

// The last instruction of a finished block is its terminator, behind a merge instruction if
// there is one. Its OpLabel is not in the list.
struct ir_block {
    struct ir_block *previous, *next; // in their function
    struct ir_function *function;
    uint32_t id; // of its label
    uint32_t mark;
    struct ir_insts insts;
};

struct ir_function {
    struct ir_function *next; // called ones first
    struct ir_inst *head;     // OpFunction
    struct ir_insts parameters;
    struct ir_block *first, *last; // NULL, NULL: not defined yet
    uint32_t mark;
};

struct ir {
    struct compiler *compiler;
    uint32_t version; // of SPIR-V: 0x00010300 and on
    uint32_t bound;   // ids are below it
    // By id: the instruction that makes it (of a label NULL), and its block where it is a
    // label.
    struct ir_inst **definitions;
    struct ir_block **labels;
    uint32_t capacity; // of both
    // Sections, in the order in which they are written.
    uint32_t *capabilities;
    uint32_t num_capabilities;
    struct ir_insts extensions, imports;
    uint32_t addressing; // OpMemoryModel's; the memory model is GLSL450 or Vulkan
    uint32_t memory_model;
    struct ir_insts entry_points, modes, names, decorations;
    struct ir_insts globals; // types, constants, variables: each before its first use
    struct ir_function *functions, *last_function;
    struct ir_block *at; // where ir_emit() appends; NULL: nowhere
    struct ir_intern *interned;
    const uint8_t *shapes; // of instructions: IR_ALL_IDS, or what ir_ids() knows
};

struct ir *ir_create(struct compiler *c, uint32_t version);
uint32_t ir_new_id(struct ir *ir);

// --- the module ------------------------------------------------------------------------

// Each does nothing if the module says it already. ir_capability() fails, naming the
// capability, where the source's target lacks it; `at`: where the source needs it, or NULL.
void ir_capability(struct ir *ir, uint32_t capability, const struct position *at);
void ir_extension(struct ir *ir, const char *name);
uint32_t ir_import(struct ir *ir, const char *name); // "GLSL.std.450": its id

void ir_entry_point(struct ir *ir, const struct ir_function *function, const char *name);
void ir_mode(struct ir *ir, uint32_t op, const struct ir_function *function, uint32_t mode,
             uint32_t count,
             const uint32_t *operands); // OpExecutionMode or OpExecutionModeId
void ir_name(struct ir *ir, uint32_t id, const char *text);
void ir_decorate(struct ir *ir, uint32_t id, uint32_t decoration, uint32_t count,
                 const uint32_t *literals);
void ir_decorate_member(struct ir *ir, uint32_t id, uint32_t member, uint32_t decoration,
                        uint32_t count, const uint32_t *literals);
bool ir_is_decorated(const struct ir *ir, uint32_t id, uint32_t decoration);
bool ir_has_decorated_member(const struct ir *ir, uint32_t id, uint32_t decoration);

// --- types and constants: the same words give the same id ------------------------------

uint32_t ir_type(struct ir *ir, uint32_t op, uint32_t count, const uint32_t *operands);
// A type of its own: a struct, or an array that is decorated with a stride.
uint32_t ir_type_of_its_own(struct ir *ir, uint32_t op, uint32_t count,
                            const uint32_t *operands);
uint32_t ir_pointer(struct ir *ir, uint32_t storage_class, uint32_t type);
// A pointer to a struct that is not known yet (a buffer reference); ir_point() says what it
// points to, once.
uint32_t ir_forward_pointer(struct ir *ir, uint32_t storage_class);
void ir_point(struct ir *ir, uint32_t pointer, uint32_t storage_class, uint32_t type);

uint32_t ir_bool(struct ir *ir, bool value);
uint32_t ir_u32(struct ir *ir, uint32_t value); // of an unsigned type of 32 bits
uint32_t ir_i32(struct ir *ir, int32_t value);
// A scalar by its bits: 8 and 16-bit ones are extended to a word as SPIR-V says, 64-bit
// ones are two words, the low one first.
uint32_t ir_constant(struct ir *ir, uint32_t type, uint64_t bits);
uint32_t ir_composite(struct ir *ir, uint32_t type, uint32_t count,
                      const uint32_t *constants);
uint32_t ir_null(struct ir *ir, uint32_t type);
uint32_t ir_undefined(struct ir *ir, uint32_t type);
// Specialisation constants: OpSpecConstant, OpSpecConstantTrue or False by the type,
// decorated with the number; composites of them; and operations on them (OpSpecConstantOp).
uint32_t ir_spec_constant(struct ir *ir, uint32_t type, uint64_t bits, uint32_t spec_id);
uint32_t ir_spec_composite(struct ir *ir, uint32_t type, uint32_t count,
                           const uint32_t *constants);
uint32_t ir_spec_operation(struct ir *ir, uint32_t type, uint32_t op, uint32_t count,
                           const uint32_t *operands);

// A variable outside of functions; initial: 0: none.
uint32_t ir_global(struct ir *ir, uint32_t pointer_type, uint32_t storage_class,
                   uint32_t initial);

// --- functions -------------------------------------------------------------------------

// A function without blocks, behind the other functions. parameters: its parameters' ids
// come back.
struct ir_function *ir_function(struct ir *ir, uint32_t result, uint32_t count,
                                const uint32_t *types, uint32_t *parameters);
// A block, not in a function yet: it can be branched to.
struct ir_block *ir_block(struct ir *ir);
// Appends the block to the function, and appends to it from now on.
void ir_append_block(struct ir *ir, struct ir_function *function, struct ir_block *block);
// A local variable, in the first block of the function that is being written.
uint32_t ir_local(struct ir *ir, uint32_t pointer_type);

// Appends an instruction to the current block. type 0: it has neither type nor result.
// Returns the result's id, or 0.
uint32_t ir_emit(struct ir *ir, uint32_t op, uint32_t type, uint32_t count,
                 const uint32_t *operands);
#define IR_EMIT(ir, op, type, ...)                                                         \
    ir_emit(ir, op, type, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),            \
            (uint32_t[]){__VA_ARGS__})
// An instruction of GLSL.std.450.
uint32_t ir_extended(struct ir *ir, uint32_t number, uint32_t type, uint32_t count,
                     const uint32_t *operands);
// Whether the current block has its terminator.
bool ir_is_ended(const struct ir *ir);

// --- for passes ------------------------------------------------------------------------

// Puts an instruction into a block; before: NULL: last.
void ir_insert(struct ir_block *block, struct ir_inst *before, struct ir_inst *inst);
// Takes an instruction out of its block, or out of a section of the module.
void ir_remove(struct ir_inst *inst);
void ir_remove_from(struct ir_insts *section, struct ir_inst *inst);
void ir_append(struct ir_insts *section, struct ir_inst *inst);
// An instruction in no list; `id` is defined by it.
struct ir_inst *ir_inst(struct ir *ir, uint32_t op, uint32_t type, uint32_t id,
                        uint32_t count, const uint32_t *operands);
// Gives an instruction other operands.
void ir_set_operands(struct ir *ir, struct ir_inst *inst, uint32_t count,
                     const uint32_t *operands);
// Makes a type or a constant that is in the module known to ir_type() and so on.
void ir_intern(struct ir *ir, struct ir_inst *inst);
// Raises the bound to `bound`.
void ir_reserve_ids(struct ir *ir, uint32_t bound);

// The type of a value's members, or 0: there is no such member. A vector, an array, ...
uint32_t ir_member_type(const struct ir *ir, uint32_t type, uint32_t index);
// How many members; 0: none, or as many as the device says.
uint32_t ir_num_members(const struct ir *ir, uint32_t type);

static inline struct ir_inst *ir_definition(const struct ir *ir, uint32_t id)
{
    return ir->definitions[id];
}

// Memory of zeros for the work of one pass: until ir_scratch_reset(), which the order of
// the passes calls between them. It is used again, so that it stays in caches.
void *ir_scratch(struct ir *ir, size_t size);
void *ir_scratch_raw(struct ir *ir, size_t size); // not cleared
void ir_scratch_reset(struct ir *ir);

// The operands of an instruction that are ids, one after the other:
//   struct spirv_ids ids = ir_ids(ir, inst);
//   for (uint32_t *id; (id = ir_next_id(&ids)) != NULL;)
enum { IR_NUM_SHAPES = 512, IR_ALL_IDS = 0x80 };
struct spirv_ids ir_ids(const struct ir *ir, const struct ir_inst *inst);
// ir_ids() for loops over all instructions of a function.
static inline struct spirv_ids ir_ids_quick(const struct ir *ir, const struct ir_inst *inst)
{
    if (inst->op >= IR_NUM_SHAPES || ir->shapes[inst->op] != IR_ALL_IDS)
        return ir_ids(ir, inst);
    return (struct spirv_ids){
        "I", NULL, inst->operands, inst->operands + inst->num_operands, 1, 0};
}
// ir_ids() of an instruction whose operands may be too many or too few.
struct spirv_ids ir_ids_by_pattern(const struct ir *ir, const struct ir_inst *inst);

static inline uint32_t *ir_next_id(struct spirv_ids *ids)
{
    if (ids->next == ids->end)
        return NULL;
    return *ids->pattern == 'I' ? ids->next++ : spirv_next_id(ids);
}

// Whether the instruction does more than make its result.
bool ir_has_effects(const struct ir *ir, const struct ir_inst *inst);
// Whether equal operands give an equal result, wherever the instruction stands.
bool ir_is_pure(const struct ir *ir, const struct ir_inst *inst);

// Rewrites the module: inlines, forwards loads and stores, folds constants, joins equal
// values, drops dead code, numbers the ids anew. The result computes the same bits. Nothing
// is added to the module behind it: it is written.
void ir_optimise(struct ir *ir);

// The module's words, in *result, by malloc. What no entry point needs is written as well.
void spirv_write(const struct ir *ir, struct glsl_result *result);

#endif // KERNELS_COMPILER_IR_H
