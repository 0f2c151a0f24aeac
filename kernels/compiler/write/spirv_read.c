// SPDX-License-Identifier: MIT
// The words' instructions, put into their lists. spirv_read_check.c looks at what they say.
#include "spirv_read.h"
#include "../ir/intern.h"
#include "../../spirv/numbers.h"
#include "spirv_read_check.h"

#include <string.h>

struct spirv_reader_state {
    struct compiler *c;
    struct ir *ir;
    struct ir_function *function; // that is being read, or NULL
    struct ir_block *block;       // that is being read, or NULL
};

enum { HEADER_WORDS = 5, MOST_IDS = 1 << 22 };

static void spirv_read_header(struct spirv_reader_state *r, const uint32_t *words,
                              size_t num_words)
{
    if (num_words < HEADER_WORDS || words[0] != SPIRV_MAGIC)
        compiler_fail(r->c, NULL, "no SPIR-V: expected a header that begins with 0x%08x",
                      (unsigned)SPIRV_MAGIC);
    if (words[1] < 0x00010000 || words[1] > 0x00010600)
        compiler_fail(r->c, NULL, "SPIR-V of version 0x%08x, expected 1.0 to 1.6",
                      words[1]);
    if (words[3] == 0 || words[3] > MOST_IDS)
        compiler_fail(r->c, NULL, "a bound of %u ids, expected 1 to %d", words[3],
                      MOST_IDS);
    r->ir = ir_create(r->c, words[1]);
    ir_reserve_ids(r->ir, words[3]);
}

static uint32_t result_of(struct spirv_reader_state *r, uint32_t id)
{
    if (id == 0 || id >= r->ir->bound)
        compiler_fail(r->c, NULL, "a result with id %u, expected 1 to %u", id,
                      r->ir->bound - 1);
    if (r->ir->definitions[id] || r->ir->labels[id])
        compiler_fail(r->c, NULL, "id %u is defined twice", id);
    return id;
}

// Makes an instruction of its words, which do not count the first one.
static struct ir_inst *make_inst(struct spirv_reader_state *r, uint32_t op, uint32_t count,
                                 const uint32_t *words)
{
    const char *pattern = spirv_pattern(op);
    if (!pattern)
        compiler_fail(r->c, NULL, "an instruction with number %u, which is not known", op);
    pattern += *pattern == '!' || *pattern == '~';
    uint32_t used = 0, has_type = *pattern == 't', has_result = pattern[has_type] == 'r';
    if (count < has_type + has_result)
        compiler_fail(r->c, NULL, "Op%s has %u operands, expected more", spirv_op_name(op),
                      count);
    uint32_t type = has_type ? words[used++] : 0;
    uint32_t id = has_result ? result_of(r, words[used++]) : 0;
    if (has_type && (type == 0 || type >= r->ir->bound))
        compiler_fail(r->c, NULL, "Op%s has the type %u, expected an id below %u",
                      spirv_op_name(op), type, r->ir->bound);
    return ir_inst(r->ir, op, type, id, count - used, words + used);
}

// Drops the operands of an entry point behind its name.
static void drop_interface(struct spirv_reader_state *r, struct ir_inst *entry)
{
    uint32_t end = 2;
    while (end < entry->num_operands && memchr(&entry->operands[end], 0, 4) == NULL)
        end++;
    if (end >= entry->num_operands)
        compiler_fail(r->c, NULL, "OpEntryPoint without a name");
    entry->num_operands = end + 1;
}

static struct ir_insts *spirv_read_section_of(struct ir *ir, uint32_t op)
{
    switch (op) {
    case OpExtension:
        return &ir->extensions;
    case OpExtInstImport:
        return &ir->imports;
    case OpEntryPoint:
        return &ir->entry_points;
    case OpExecutionMode:
    case OpExecutionModeId:
        return &ir->modes;
    case OpName:
    case OpMemberName:
        return &ir->names;
    case OpDecorate:
    case OpDecorateId:
    case OpMemberDecorate:
        return &ir->decorations;
    case OpUndef:
    case OpVariable:
    case OpTypeCooperativeMatrixKHR:
    case OpTypeCooperativeMatrixNV:
    case OpTypeTensorLayoutNV:
    case OpTypeTensorViewNV:
        return &ir->globals;
    default:
        return op >= OpTypeVoid && op <= OpSpecConstantOp ? &ir->globals : NULL;
    }
}

static void note_decoration(struct spirv_reader_state *r, const struct ir_inst *inst)
{
    uint32_t head = inst->op == OpMemberDecorate ? 3 : 2;
    if (inst->num_operands < head)
        compiler_fail(r->c, NULL, "Op%s has %u operands, expected %u",
                      spirv_op_name(inst->op), inst->num_operands, head);
    if (inst->op == OpMemberDecorate)
        ir_note_decoration(r->ir, inst->operands[0], IR_MEMBER | inst->operands[2]);
    else
        ir_note_decoration(r->ir, inst->operands[0], inst->operands[1]);
}

// Whether words that are equal mean the same thing, for ever.
static bool can_intern(const struct ir *ir, const struct ir_inst *inst)
{
    switch (inst->op) {
    case OpTypeArray:
    case OpTypeRuntimeArray:
        return !ir_is_decorated(ir, inst->id, DecorationArrayStride);
    case OpTypeStruct:
    case OpTypeForwardPointer:
    case OpVariable:
    case OpSpecConstant:
    case OpSpecConstantTrue:
    case OpSpecConstantFalse:
    case OpSpecConstantComposite:
        return false;
    default:
        return true;
    }
}

static void read_global(struct spirv_reader_state *r, uint32_t op, uint32_t count,
                        const uint32_t *words)
{
    struct ir *ir = r->ir;
    if (op == OpCapability || op == OpMemoryModel) {
        if (count != (op == OpCapability ? 1U : 2U))
            compiler_fail(r->c, NULL, "Op%s has %u operands", spirv_op_name(op), count);
        if (op == OpCapability) {
            ir_capability(ir, words[0], NULL);
        } else {
            ir->addressing = words[0];
            ir->memory_model = words[1];
        }
        return;
    }
    struct ir_insts *section = spirv_read_section_of(ir, op);
    if (!section)
        compiler_fail(r->c, NULL, "Op%s outside of a function", spirv_op_name(op));
    struct ir_inst *inst = make_inst(r, op, count, words);
    ir_append(section, inst);
    if (section == &ir->decorations)
        note_decoration(r, inst);
    else if (op == OpEntryPoint)
        drop_interface(r, inst);
    else if (section == &ir->globals) {
        check_global(ir, inst);
        if (can_intern(ir, inst))
            ir_intern(ir, inst);
    }
}

// --- functions ---------------------------------------------------------------------------

static void begin_function(struct spirv_reader_state *r, uint32_t count,
                           const uint32_t *words)
{
    if (r->function)
        compiler_fail(r->c, NULL, "OpFunction inside of a function");
    r->function = compiler_allocate(r->c, sizeof(*r->function));
    r->function->head = make_inst(r, OpFunction, count, words);
    ir_add_function(r->ir, r->function);
}

static void spirv_read_begin_block(struct spirv_reader_state *r, uint32_t count,
                                   const uint32_t *words)
{
    if (r->block || count != 1)
        compiler_fail(r->c, NULL, "OpLabel in a block that has no end");
    struct ir_block *block = compiler_allocate(r->c, sizeof(*block));
    block->id = result_of(r, words[0]);
    r->ir->labels[block->id] = block;
    ir_append_block(r->ir, r->function, block);
    r->block = block;
}

static void end_function(struct spirv_reader_state *r)
{
    if (r->block)
        compiler_fail(r->c, NULL, "OpFunctionEnd in a block that has no end");
    if (!r->function->first)
        compiler_fail(r->c, NULL, "a function without a body");
    r->function = NULL;
}

static void read_in_function(struct spirv_reader_state *r, uint32_t op, uint32_t count,
                             const uint32_t *words)
{
    if (op == OpLabel) {
        spirv_read_begin_block(r, count, words);
    } else if (op == OpFunctionEnd) {
        end_function(r);
    } else if (op == OpFunctionParameter && !r->function->first) {
        ir_append(&r->function->parameters, make_inst(r, op, count, words));
    } else if (!r->block) {
        compiler_fail(r->c, NULL, "Op%s outside of a block",
                      spirv_op_name(op) ? spirv_op_name(op) : "?");
    } else {
        struct ir_inst *inst = make_inst(r, op, count, words);
        ir_insert(r->block, NULL, inst);
        if (spirv_is_end(op))
            r->block = NULL;
    }
}

static bool spirv_read_is_left_out(uint32_t op)
{
    return op <= OpSourceExtension ? op != OpUndef
                                   : op == OpString || op == OpLine || op == OpNoLine ||
                                         op == OpModuleProcessed;
}

struct ir *spirv_read(struct compiler *c, const uint32_t *words, size_t num_words)
{
    struct spirv_reader_state r = {.c = c};
    spirv_read_header(&r, words, num_words);
    for (size_t at = HEADER_WORDS; at < num_words;) {
        uint32_t op = words[at] & 0xffff, size = words[at] >> 16;
        if (size == 0 || size > num_words - at)
            compiler_fail(c, NULL, "an instruction of %u words, where %zu are left", size,
                          num_words - at);
        const uint32_t *operands = words + at + 1;
        at += size;
        if (spirv_read_is_left_out(op))
            continue;
        if (op == OpFunction)
            begin_function(&r, size - 1, operands);
        else if (r.function)
            read_in_function(&r, op, size - 1, operands);
        else
            read_global(&r, op, size - 1, operands);
    }
    if (r.function)
        compiler_fail(c, NULL, "the module ends in a function");
    r.ir->at = NULL;
    check_module(r.ir);
    return r.ir;
}
