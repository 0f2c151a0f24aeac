// SPDX-License-Identifier: MIT
// Takes a program's function and what it needs into the linked module. The kernel's ids
// stay; what comes from the program gets ids behind them. Types that the kernel has are
// taken from it, since a module declares a type once.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "spirv_fuser.h"

#define MAX_NESTED 64 // calls and types within each other

bool fuser_refuse(struct spirv_fuser *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(f->reason, VK_REASON, format, list);
    va_end(list);
    return false;
}

void fuser_append(struct spirv_fuser *f, struct words *to, const uint32_t *words,
                  size_t count)
{
    if (to->count + count > to->capacity) {
        size_t capacity = 2 * to->capacity + count + 256;
        uint32_t *moved = realloc(to->data, capacity * sizeof(*moved));
        f->failed = f->failed || !moved;
        if (!moved)
            return;
        to->data = moved;
        to->capacity = capacity;
    }
    if (count > 0)
        memcpy(to->data + to->count, words, count * sizeof(*words));
    to->count += count;
}

void fuser_write(struct spirv_fuser *f, struct words *to, uint32_t op,
                 const uint32_t *operands, uint32_t count)
{
    fuser_append(f, to, &(uint32_t){op | (count + 1) << 16}, 1);
    fuser_append(f, to, operands, count);
}

// Types stand before what has them, so that a result is known by its type, also
// of instructions that are not known.
void fuser_index(struct spirv_fuser *f, struct parsed_module *m, const struct vk_code *code)
{
    m->words = code->words;
    m->count = code->size / sizeof(uint32_t);
    m->bound = m->words[3];
    m->functions = m->count;
    m->at = calloc((size_t)m->bound + 1, sizeof(*m->at));
    f->failed = f->failed || !m->at;
    for (size_t at = HEADER_WORDS; m->at && at < m->count; at = next_at(m, at)) {
        uint32_t op = op_at(m, at), count = num_operands(m, at), result = count;
        if (op == OpFunction && m->functions == m->count)
            m->functions = at;
        if (spirv_is_type_op(op) || op == OpExtInstImport || op == OpLabel)
            result = 0;
        else if (count >= 2 && is_type(m, m->words[at + 1]))
            result = 1;
        if (result < count && m->words[at + 1 + result] < m->bound)
            m->at[m->words[at + 1 + result]] = (uint32_t)at;
    }
}

// --- the program -----------------------------------------------------------------------

// The function that is linked: that of the entry point, or the one which that calls. 0:
// there is none.
static uint32_t spirv_fuse_program_find_function(const struct parsed_module *m)
{
    uint32_t entry = 0;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at))
        if (op_at(m, at) == OpEntryPoint)
            entry = m->words[at + 2];
    if (!made_by(m, entry, OpFunction, 4))
        return 0;
    for (size_t at = m->at[entry]; at < m->count; at = next_at(m, at)) {
        if (op_at(m, at) == OpFunctionParameter)
            return entry;
        if (op_at(m, at) == OpFunctionCall)
            return m->words[at + 3];
    }
    return 0;
}

uint32_t fuser_find_equal(const uint32_t *in, size_t count, const uint32_t *words)
{
    size_t size = words[0] >> 16;
    for (size_t at = 0; at < count; at += in[at] >> 16)
        if (in[at] == words[0] &&
            memcmp(&in[at + 2], &words[2], (size - 2) * sizeof(uint32_t)) == 0)
            return in[at + 1];
    return 0;
}

uint32_t fuser_find_type(struct spirv_fuser *f, uint32_t op, uint32_t one, uint32_t other)
{
    const struct parsed_module *m = &f->kernel;
    uint32_t insn[] = {op | 4 << 16, 0, one, other};
    uint32_t id =
        fuser_find_equal(m->words + HEADER_WORDS, m->functions - HEADER_WORDS, insn);
    id = id ? id : fuser_find_equal(f->globals.data, f->globals.count, insn);
    if (id)
        return id;
    insn[1] = f->next_id++;
    fuser_append(f, &f->globals, insn, 4);
    return insn[1];
}

// Whether a module declares this once. Structs and arrays differ by their decorations.
static bool is_unique(uint32_t op)
{
    return op == OpExtInstImport || (spirv_is_type_op(op) && op != OpTypeStruct &&
                                     op != OpTypeArray && op != OpTypeRuntimeArray);
}

static void spirv_fuse_program_need(struct spirv_fuser *f, uint32_t id, uint32_t depth);

// Appends the program's instruction at a word, and before it what it needs.
static void spirv_fuse_program_take(struct spirv_fuser *f, struct words *to, size_t at,
                                    uint32_t depth)
{
    const struct parsed_module *m = &f->program;
    uint32_t op = op_at(m, at), count = num_operands(m, at);
    struct spirv_ids ids = ids_at(m, at);
    if (!spirv_is_known(op)) {
        (void)fuser_refuse(f, "meets a program with an instruction %u, which is not known",
                           op);
        return;
    }
    for (const uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        spirv_fuse_program_need(f, *id, depth + 1);
    size_t begin = to->count;
    fuser_append(f, to, &m->words[at], (size_t)count + 1);
    if (f->failed || f->reason[0])
        return;
    uint32_t *words = &to->data[begin], result = spirv_result_at(op), equal = 0;
    ids = spirv_ids(op, words + 1, count);
    for (uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        *id = f->map[*id];
    if (is_unique(op)) {
        equal = fuser_find_equal(f->kernel.words + HEADER_WORDS,
                                 f->kernel.functions - HEADER_WORDS, words);
        equal = equal ? equal : fuser_find_equal(to->data, begin, words);
    }
    if (equal) {
        f->map[m->words[at + 1]] = equal;
        to->count = begin;
    } else if (result != UINT32_MAX) {
        f->is_written[m->words[at + 1 + result]] = true;
    }
}

// Appends a function to the code, behind those that it calls.
static void take_function(struct spirv_fuser *f, size_t at, uint32_t depth)
{
    struct words own = {0};
    uint32_t op;
    do {
        op = op_at(&f->program, at);
        spirv_fuse_program_take(f, &own, at, depth);
        at = next_at(&f->program, at);
    } while (op != OpFunctionEnd && at < f->program.count);
    fuser_append(f, &f->code, own.data, own.count);
    free(own.data);
}

// Gives an id of the program one in the linked module, and writes what makes it if that
// stands outside of functions or is a function.
static void spirv_fuse_program_need(struct spirv_fuser *f, uint32_t id, uint32_t depth)
{
    const struct parsed_module *m = &f->program;
    if (f->failed || f->reason[0] || f->map[id] != 0)
        return;
    if (depth > MAX_NESTED) {
        (void)fuser_refuse(f, "meets a program whose calls nest more than %d times",
                           MAX_NESTED);
        return;
    }
    f->map[id] = f->next_id++;
    size_t at = m->at[id];
    if (at >= m->functions && op_at(m, at) == OpFunction)
        take_function(f, at, depth);
    else if (at != 0 && at < m->functions)
        spirv_fuse_program_take(
            f, op_at(m, at) == OpExtInstImport ? &f->imports : &f->globals, at, depth);
}

// The decorations of what was written, with the bindings of the launch.
static void take_decorations(struct spirv_fuser *f)
{
    const struct parsed_module *m = &f->program;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        uint32_t op = op_at(m, at), id = m->words[at + 1];
        if ((op != OpDecorate && op != OpMemberDecorate) || !f->is_written[id])
            continue;
        size_t begin = f->decorations.count;
        fuser_append(f, &f->decorations, &m->words[at], (size_t)num_operands(m, at) + 1);
        if (f->failed)
            return;
        uint32_t *words = &f->decorations.data[begin];
        words[1] = f->map[id];
        if (op == OpDecorate && words[2] == DecorationBinding)
            words[3] = words[3] < f->fused->num_bindings ? f->fused->bindings[words[3]] : 0;
    }
}

bool fuser_take_program(struct spirv_fuser *f)
{
    const struct parsed_module *m = &f->program;
    uint32_t function = spirv_fuse_program_find_function(m),
             num_params = f->fused->is_output ? 2 : 1;
    const uint32_t *words = made_by(m, function, OpFunction, 4);
    const uint32_t *type =
        words ? made_by(m, words[3], OpTypeFunction, 2 + num_params) : NULL;
    if (!type)
        return fuser_refuse(f, "meets a program without a function");
    f->map = calloc(m->bound, sizeof(*f->map));
    f->is_written = calloc(m->bound, sizeof(*f->is_written));
    f->failed = f->failed || !f->map || !f->is_written;
    spirv_fuse_program_need(f, function, 0);
    if (f->failed || f->reason[0])
        return false;
    take_decorations(f);
    f->function = f->map[function];
    f->result_type = f->map[type[1]];
    f->number_type = f->map[type[2]];
    f->element_type = f->map[f->fused->is_output ? type[3] : type[1]];
    return !f->failed;
}
