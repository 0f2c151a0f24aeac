// SPDX-License-Identifier: MIT
// The push constants become a block of its own type: the members that it had, then an array
// for each list. What was declared before stays, unused, so that types stand before what
// has them.
#include "spirv_push.h"

#include <stdlib.h>
#include <string.h>
#include "spirv_fuser.h"

#define WITH_VARIABLES 0x00010400u // from SPIR-V 1.4 on, entry points list all variables
#define MAX_MEMBERS 256            // of the block

struct pusher {
    struct spirv_fuser f; // for its module, its words, its failures
    const struct spirv_pushed *lists;
    uint32_t num_lists;
    uint32_t *list_of; // by id: of a variable that goes the number of its list, from 1
    // Ids: the push constants' variable; their block's type before, 0: there were none; and
    // now; what points to a word of them.
    uint32_t variable, old_block, block, word;
    uint32_t members[MAX_MEMBERS]; // types
    uint32_t num_members, num_old;
};

// --- what is there -----------------------------------------------------------------------

static bool spirv_push_take_block(struct pusher *p, const uint32_t *words)
{
    const struct parsed_module *m = &p->f.kernel;
    const uint32_t *pointer = made_by(m, words[0], OpTypePointer, 3);
    const uint32_t *block = pointer ? made_by(m, pointer[2], OpTypeStruct, 1) : NULL;
    if (!block || p->old_block != 0)
        return fuser_refuse(&p->f, "has push constants that are no block, or several");
    p->variable = words[1];
    p->old_block = pointer[2];
    p->num_old = num_operands(m, m->at[pointer[2]]) - 1;
    if (p->num_old + p->num_lists > MAX_MEMBERS)
        return fuser_refuse(&p->f, "has %u members of push constants, expected at most %u",
                            p->num_old, MAX_MEMBERS - p->num_lists);
    for (uint32_t i = 0; i < p->num_old; i++)
        p->members[i] = block[1 + i];
    p->num_members = p->num_old;
    return true;
}

static bool spirv_push_find_variables(struct pusher *p)
{
    const struct parsed_module *m = &p->f.kernel;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        const uint32_t *words = &m->words[at + 1];
        uint32_t binding;
        if (op_at(m, at) != OpVariable)
            continue;
        if (words[2] == StorageClassPushConstant) {
            if (!spirv_push_take_block(p, words))
                return false;
        } else if (spirv_find_decoration(m->words, m->functions, words[1], -1,
                                         DecorationBinding, &binding)) {
            for (uint32_t i = 0; i < p->num_lists; i++)
                if (p->lists[i].binding == binding)
                    p->list_of[words[1]] = i + 1;
        }
    }
    return true;
}

// --- what is declared --------------------------------------------------------------------

static void spirv_push_write_global(struct pusher *p, uint32_t op, const uint32_t *operands,
                                    uint32_t count)
{
    fuser_write(&p->f, &p->f.globals, op, operands, count);
}

static void spirv_push_decorate(struct pusher *p, uint32_t op, const uint32_t *operands,
                                uint32_t count)
{
    fuser_write(&p->f, &p->f.decorations, op, operands, count);
}

static uint32_t spirv_push_write_constant(struct pusher *p, uint32_t type, uint32_t value)
{
    const uint32_t words[] = {type, p->f.next_id++, value};
    spirv_push_write_global(p, OpConstant, words, 3);
    return words[1];
}

// The decorations that the block had, for the new one.
static void copy_decorations(struct pusher *p)
{
    const struct parsed_module *m = &p->f.kernel;
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        uint32_t op = op_at(m, at);
        size_t begin = p->f.decorations.count;
        if ((op != OpDecorate && op != OpMemberDecorate) ||
            m->words[at + 1] != p->old_block)
            continue;
        fuser_append(&p->f, &p->f.decorations, &m->words[at], m->words[at] >> 16);
        if (!p->f.failed)
            p->f.decorations.data[begin + 1] = p->block;
    }
}

static void write_lists(struct pusher *p, uint32_t integer)
{
    for (uint32_t i = 0; i < p->num_lists; i++) {
        uint32_t length = spirv_push_write_constant(p, integer, p->lists[i].count);
        uint32_t array = p->f.next_id++, member = p->num_members++;
        spirv_push_write_global(p, OpTypeArray, (const uint32_t[]){array, integer, length},
                                3);
        spirv_push_decorate(p, OpDecorate,
                            (const uint32_t[]){array, DecorationArrayStride, 4}, 3);
        spirv_push_decorate(
            p, OpMemberDecorate,
            (const uint32_t[]){p->block, member, DecorationOffset, p->lists[i].first * 4},
            4);
        p->members[member] = array;
    }
}

// Declares the block with the lists, and the variable anew.
static void spirv_push_write_block(struct pusher *p, uint32_t integer)
{
    uint32_t words[1 + MAX_MEMBERS], pointer;
    p->block = p->f.next_id++;
    if (p->old_block)
        copy_decorations(p);
    else
        spirv_push_decorate(p, OpDecorate, (const uint32_t[]){p->block, DecorationBlock},
                            2);
    write_lists(p, integer);
    words[0] = p->block;
    for (uint32_t i = 0; i < p->num_members; i++)
        words[1 + i] = p->members[i];
    spirv_push_write_global(p, OpTypeStruct, words, 1 + p->num_members);
    pointer = fuser_find_type(&p->f, OpTypePointer, StorageClassPushConstant, p->block);
    p->variable = p->old_block ? p->variable : p->f.next_id++;
    spirv_push_write_global(
        p, OpVariable, (const uint32_t[]){pointer, p->variable, StorageClassPushConstant},
        3);
}

// --- what reads them ---------------------------------------------------------------------

// Whether an instruction has the id of a variable that goes, or of the push constants.
static bool names_variable(const struct pusher *p, size_t at)
{
    const struct parsed_module *m = &p->f.kernel;
    struct spirv_ids ids = ids_at(m, at);
    for (const uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
        if (*id < m->bound &&
            (p->list_of[*id] != 0 || (p->old_block && *id == p->variable)))
            return true;
    return false;
}

// An access chain into a list becomes one into the push constants.
static bool spirv_push_rewrite(struct pusher *p, size_t at, const uint32_t *members)
{
    const struct parsed_module *m = &p->f.kernel;
    const uint32_t *words = &m->words[at + 1];
    uint32_t op = op_at(m, at), count = num_operands(m, at);
    bool is_chain = op == OpAccessChain || op == OpInBoundsAccessChain;
    uint32_t list = is_chain && words[2] < m->bound ? p->list_of[words[2]] : 0;
    if (!is_chain || count < 4 || (list > 0 && count != 5))
        return fuser_refuse(&p->f,
                            "reaches its arguments by an instruction %u, expected that it "
                            "loads their elements",
                            op);
    if (list == 0)
        fuser_append(&p->f, &p->f.body, &m->words[at], count + 1);
    else
        fuser_write(
            &p->f, &p->f.body, op,
            (const uint32_t[]){p->word, words[1], p->variable, members[list - 1], words[4]},
            5);
    return true;
}

static bool spirv_push_rewrite_functions(struct pusher *p)
{
    const struct parsed_module *m = &p->f.kernel;
    uint32_t members[MAX_MEMBERS], integer = fuser_find_type(&p->f, OpTypeInt, 32, 0);
    p->word = fuser_find_type(&p->f, OpTypePointer, StorageClassPushConstant, integer);
    for (uint32_t i = 0; i < p->num_lists; i++)
        members[i] = spirv_push_write_constant(p, integer, p->num_members + i);
    spirv_push_write_block(p, integer);
    for (size_t at = m->functions; at < m->count && !p->f.failed; at = next_at(m, at)) {
        if (!names_variable(p, at))
            fuser_append(&p->f, &p->f.body, &m->words[at], m->words[at] >> 16);
        else if (!spirv_push_rewrite(p, at, members))
            return false;
    }
    return !p->f.failed;
}

// --- the module --------------------------------------------------------------------------

static bool spirv_push_is_gone(const struct pusher *p, uint32_t id)
{
    return id < p->f.kernel.bound && p->list_of[id] != 0;
}

// An entry point without the variables that are gone, and with the push constants.
static void spirv_push_write_entry(struct pusher *p, struct words *out, size_t at)
{
    const struct parsed_module *m = &p->f.kernel;
    size_t begin = out->count, end = next_at(m, at), name = at + 3;
    while (name < end && memchr(&m->words[name], 0, sizeof(uint32_t)) == NULL)
        name++;
    name = name < end ? name + 1 : end;
    fuser_append(&p->f, out, &m->words[at], name - at);
    for (; name < end; name++)
        if (!spirv_push_is_gone(p, m->words[name]))
            fuser_append(&p->f, out, &m->words[name], 1);
    if (!p->old_block && m->words[1] >= WITH_VARIABLES)
        fuser_append(&p->f, out, &p->variable, 1);
    if (!p->f.failed)
        out->data[begin] = OpEntryPoint | (uint32_t)(out->count - begin) << 16;
}

static void spirv_push_assemble(struct pusher *p, struct words *out)
{
    const struct parsed_module *m = &p->f.kernel;
    bool is_decorated = false;
    fuser_append(&p->f, out, m->words, HEADER_WORDS);
    for (size_t at = HEADER_WORDS; at < m->functions; at = next_at(m, at)) {
        const uint32_t *words = &m->words[at + 1];
        uint32_t op = op_at(m, at);
        bool describes = op == OpName || op == OpDecorate;
        bool declares = op == OpVariable && (spirv_push_is_gone(p, words[1]) ||
                                             words[2] == StorageClassPushConstant);
        // Every variable that goes is decorated with its binding.
        if (op == OpDecorate && !is_decorated) {
            is_decorated = true;
            fuser_append(&p->f, out, p->f.decorations.data, p->f.decorations.count);
        }
        if (op == OpEntryPoint)
            spirv_push_write_entry(p, out, at);
        else if (!declares && !(describes && spirv_push_is_gone(p, words[0])))
            fuser_append(&p->f, out, &m->words[at], m->words[at] >> 16);
    }
    fuser_append(&p->f, out, p->f.globals.data, p->f.globals.count);
    fuser_append(&p->f, out, p->f.body.data, p->f.body.count);
    if (!p->f.failed)
        out->data[3] = p->f.next_id;
}

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

bool spirv_push(const struct vk_code *code, const struct spirv_pushed *lists,
                uint32_t num_lists, struct vk_code *out, char reason[VK_REASON])
{
    struct pusher p = {.f.reason = reason, .lists = lists, .num_lists = num_lists};
    struct words words = {0};
    reason[0] = '\0';
    fuser_index(&p.f, &p.f.kernel, code);
    p.f.next_id = p.f.kernel.bound;
    p.list_of = calloc((size_t)p.f.kernel.bound + 1, sizeof(*p.list_of));
    p.f.failed |= !p.list_of;
    bool done =
        !p.f.failed && spirv_push_find_variables(&p) && spirv_push_rewrite_functions(&p);
    if (done && p.f.next_id > SPIRV_MAX_BOUND)
        done = fuser_refuse(&p.f, "has %u ids with its arguments, expected at most %u",
                            p.f.next_id, SPIRV_MAX_BOUND);
    if (done)
        spirv_push_assemble(&p, &words);
    free(p.list_of);
    free(p.f.globals.data);
    free(p.f.decorations.data);
    free(p.f.body.data);
    free(p.f.kernel.at);
    if (p.f.failed)
        (void)fuser_refuse(&p.f, "cannot be given its arguments: out of memory");
    if (!done || p.f.failed) {
        free(words.data);
        return false;
    }
    *out = (struct vk_code){.words = words.data,
                            .size = words.count * sizeof(uint32_t),
                            .release = release_words};
    return true;
}
