// SPDX-License-Identifier: MIT
// Words of a module. They are counted first, so that the buffer is made once.
#include "../ir/ir.h"
#include "../../spirv/numbers.h"

#include <stdlib.h>
#include <string.h>

struct spirv_writer_state {
    const struct ir *ir;
    uint32_t *at; // NULL: words are counted
    size_t num_words;
};

// The tool's number of Khronos' register: 0: none was asked for.
enum { GENERATOR = 0 };

static void spirv_write_put(struct spirv_writer_state *w, const uint32_t *words,
                            size_t count)
{
    if (w->at && count) {
        memcpy(w->at, words, count * sizeof(*words));
        w->at += count;
    }
    w->num_words += count;
}

static void put_head(struct spirv_writer_state *w, uint32_t op, size_t num_words)
{
    if (num_words > UINT16_MAX)
        compiler_fail(w->ir->compiler, NULL,
                      "an instruction %s of %zu words, expected at most %u",
                      spirv_op_name(op), num_words, UINT16_MAX);
    spirv_write_put(w, &(uint32_t){(uint32_t)num_words << 16 | op}, 1);
}

static void put_inst(struct spirv_writer_state *w, const struct ir_inst *inst)
{
    put_head(w, inst->op, 1U + !!inst->type + !!inst->id + inst->num_operands);
    spirv_write_put(w, &inst->type, !!inst->type);
    spirv_write_put(w, &inst->id, !!inst->id);
    spirv_write_put(w, inst->operands, inst->num_operands);
}

static void put_all(struct spirv_writer_state *w, const struct ir_insts *insts)
{
    for (const struct ir_inst *inst = insts->first; inst; inst = inst->next)
        put_inst(w, inst);
}

// Whether an entry point lists the variable: up to 1.3 those of inputs and outputs, then
// all.
static bool is_interface(const struct ir *ir, const struct ir_inst *inst)
{
    return inst->op == OpVariable &&
           (ir->version >= 0x00010400 || inst->operands[0] == StorageClassInput ||
            inst->operands[0] == StorageClassOutput);
}

static void put_entry_point(struct spirv_writer_state *w, const struct ir_inst *entry)
{
    const struct ir_inst *first = w->ir->globals.first;
    size_t count = 0;
    for (const struct ir_inst *inst = first; inst; inst = inst->next)
        count += is_interface(w->ir, inst);
    put_head(w, OpEntryPoint, 1 + entry->num_operands + count);
    spirv_write_put(w, entry->operands, entry->num_operands);
    for (const struct ir_inst *inst = first; inst; inst = inst->next)
        spirv_write_put(w, &inst->id, is_interface(w->ir, inst));
}

static void spirv_write_put_function(struct spirv_writer_state *w,
                                     const struct ir_function *function)
{
    put_inst(w, function->head);
    put_all(w, &function->parameters);
    for (const struct ir_block *block = function->first; block; block = block->next) {
        put_head(w, OpLabel, 2);
        spirv_write_put(w, &block->id, 1);
        put_all(w, &block->insts);
    }
    put_head(w, OpFunctionEnd, 1);
}

static void put_module(struct spirv_writer_state *w)
{
    const struct ir *ir = w->ir;
    const uint32_t head[] = {SPIRV_MAGIC, ir->version, GENERATOR, ir->bound, 0};
    spirv_write_put(w, head, 5);
    for (uint32_t i = 0; i < ir->num_capabilities; i++) {
        put_head(w, OpCapability, 2);
        spirv_write_put(w, &ir->capabilities[i], 1);
    }
    put_all(w, &ir->extensions);
    put_all(w, &ir->imports);
    put_head(w, OpMemoryModel, 3);
    spirv_write_put(w, (uint32_t[]){ir->addressing, ir->memory_model}, 2);
    for (const struct ir_inst *inst = ir->entry_points.first; inst; inst = inst->next)
        put_entry_point(w, inst);
    put_all(w, &ir->modes);
    put_all(w, &ir->names);
    put_all(w, &ir->decorations);
    put_all(w, &ir->globals);
    for (const struct ir_function *f = ir->functions; f; f = f->next)
        if (f->first)
            spirv_write_put_function(w, f);
}

void spirv_write(const struct ir *ir, struct glsl_result *result)
{
    struct spirv_writer_state count = {.ir = ir};
    put_module(&count);
    uint32_t *words = malloc(count.num_words * sizeof(*words));
    if (!words)
        compiler_fail(ir->compiler, NULL, "out of memory for %zu words of SPIR-V",
                      count.num_words);
    put_module(&(struct spirv_writer_state){.ir = ir, .at = words});
    result->words = words;
    result->num_words = count.num_words;
}
