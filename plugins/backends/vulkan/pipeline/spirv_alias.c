// SPDX-License-Identifier: MIT
#include "spirv_alias.h"
#include "spirv_preserve.h"

#include <stdlib.h>
#include <string.h>
#include "spirv/numbers.h"
#include "spirv/opcode.h"

#define HEADER 5
#define BOUND 3 // word of the header: ids are less
#define DECORATE_WORDS 3
#define MOST_BINDINGS 64
#define MOST_IDS 0x3fffffu // SPIR-V specification, 2.17

enum id_flags { ID_READ_ONLY = 1, ID_IS_BLOCK = 2, ID_IS_TOLD = 4, ID_IS_BUFFER = 8 };

struct aliaser {
    uint32_t bound;
    uint8_t *flags;              // of each id
    uint32_t *pointee, *binding; // of types of pointers; of variables
    size_t annotations;          // words before the first decoration or type
    size_t functions;            // and before the first function; 0: not whole instructions
    uint64_t written;            // bindings, a bit each
    uint32_t num_buffers;        // variables to decorate
};

static uint8_t decoration_flag(uint32_t decoration)
{
    switch (decoration) {
    case DecorationNonWritable:
        return ID_READ_ONLY;
    case DecorationBufferBlock:
        return ID_IS_BLOCK;
    case DecorationRestrict:
    case DecorationAliased:
        return ID_IS_TOLD;
    default:
        return 0;
    }
}

static void read_variable(struct aliaser *a, uint32_t type, uint32_t id, uint32_t class)
{
    uint32_t block = type < a->bound ? a->pointee[type] : 0;
    uint8_t of_block = block < a->bound ? a->flags[block] : 0;
    if (class != StorageClassStorageBuffer &&
        !(class == StorageClassUniform && of_block & ID_IS_BLOCK))
        return;
    if (!((a->flags[id] | of_block) & ID_READ_ONLY) && a->binding[id] < MOST_BINDINGS)
        a->written |= UINT64_C(1) << a->binding[id];
    if (!(a->flags[id] & ID_IS_TOLD)) {
        a->flags[id] |= ID_IS_BUFFER;
        a->num_buffers++;
    }
}

// Reads an instruction before the functions.
static void read_instruction(struct aliaser *a, const uint32_t *insn)
{
    uint32_t op = insn[0] & 0xffffu, length = insn[0] >> 16;
    uint32_t id = length > 1 ? insn[1] : a->bound;
    if (op == OpDecorate && length >= 3 && id < a->bound) {
        a->flags[id] |= decoration_flag(insn[2]);
        if (insn[2] == DecorationBinding && length >= 4)
            a->binding[id] = insn[3];
    } else if (op == OpMemberDecorate && length >= 4 && id < a->bound) {
        a->flags[id] |= insn[3] == DecorationNonWritable ? ID_READ_ONLY : 0;
    } else if (op == OpTypePointer && length >= 4 && id < a->bound) {
        a->pointee[id] = insn[3];
    } else if (op == OpVariable && length >= 4 && insn[2] < a->bound) {
        read_variable(a, id, insn[2], insn[3]);
    }
}

static void read_module(struct aliaser *a, const uint32_t *words, size_t num_words)
{
    size_t length;
    for (size_t at = HEADER; at < num_words; at += length) {
        uint32_t op = words[at] & 0xffffu;
        length = words[at] >> 16;
        if (length == 0 || length > num_words - at)
            return;
        if (op == OpFunction) {
            a->functions = at;
            return;
        }
        bool is_annotation = op == OpDecorate || op == OpMemberDecorate;
        if (!a->annotations && (is_annotation || (op >= OpTypeVoid && op <= OpVariable)))
            a->annotations = at;
        read_instruction(a, words + at);
    }
}

static bool makes_read_only(const uint32_t *insn)
{
    uint32_t op = insn[0] & 0xffffu, length = insn[0] >> 16;
    return (op == OpDecorate && length >= 3 && insn[2] == DecorationNonWritable) ||
           (op == OpMemberDecorate && length >= 4 && insn[3] == DecorationNonWritable);
}

static bool write_module(const struct aliaser *a, const struct vk_code *code,
                         struct vk_code *out)
{
    size_t size = code->size + sizeof(uint32_t) * DECORATE_WORDS * a->num_buffers;
    uint32_t *to = malloc(size);
    if (!to)
        return false;
    memcpy(to, code->words, a->annotations * sizeof(*to));
    size_t n = a->annotations;
    for (uint32_t id = 0; id < a->bound; id++) {
        if (!(a->flags[id] & ID_IS_BUFFER))
            continue;
        to[n++] = (uint32_t)DECORATE_WORDS << 16 | OpDecorate;
        to[n++] = id;
        to[n++] = DecorationAliased;
    }
    size_t length;
    for (size_t at = a->annotations; at < a->functions; at += length) {
        length = code->words[at] >> 16;
        if (makes_read_only(code->words + at))
            continue;
        memcpy(to + n, code->words + at, length * sizeof(*to));
        n += length;
    }
    memcpy(to + n, code->words + a->functions, code->size - a->functions * sizeof(*to));
    n += code->size / sizeof(*to) - a->functions;
    *out = (struct vk_code){
        .words = to, .size = n * sizeof(*to), .release = spirv_release_words};
    return true;
}

static bool several(uint64_t bits)
{
    return (bits & (bits - (bits != 0))) != 0;
}

bool spirv_alias_buffers(const struct vk_code *code, struct vk_code *out)
{
    bool has_header = code->size >= HEADER * sizeof(uint32_t);
    struct aliaser a = {.bound = has_header ? code->words[BOUND] : 0};
    *out = (struct vk_code){.words = code->words, .size = code->size};
    if (a.bound == 0 || a.bound > MOST_IDS)
        return true;
    a.flags = calloc(a.bound, sizeof(*a.flags));
    a.pointee = calloc(a.bound, sizeof(*a.pointee));
    a.binding = calloc(a.bound, sizeof(*a.binding));
    bool done = a.flags && a.pointee && a.binding;
    if (done) {
        read_module(&a, code->words, code->size / 4);
        if (a.functions > 0 && several(a.written) && a.num_buffers > 0)
            done = write_module(&a, code, out);
    }
    free(a.flags);
    free(a.pointee);
    free(a.binding);
    return done;
}
