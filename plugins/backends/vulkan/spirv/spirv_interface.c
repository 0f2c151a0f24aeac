// SPDX-License-Identifier: MIT
// Reflects a SPIR-V module: sizes of its types as they lie in memory, values of its
// constants as a launch specialises them. Numbers are those of the SPIR-V specification.
//
// A hostile module may nest types without end: only the first MAX_TYPES are read.
#include "spirv_interface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "spirv/numbers.h"
#include "spirv/read.h"

#define HEADER_WORDS 5
#define MAX_TYPES 4096 // types that are visited for one module
#define MAX_DEPTH 16

struct interface_module {
    const uint32_t *words;
    uint64_t count;
    uint32_t bound;
    uint32_t *at; // by id: the first word of the instruction that makes it; 0: none
    const struct spirv_wants *wants;
    uint32_t num_types; // visited
    bool is_unknown;    // a size cannot be told: the number of elements is computed, say
};

// One instruction: `count` operands behind its first word.
struct insn {
    uint32_t op, count;
    const uint32_t *operands;
};

static struct insn read_insn(const struct interface_module *m, uint64_t at)
{
    return (struct insn){m->words[at] & 0xffff, (m->words[at] >> 16) - 1,
                         &m->words[at + 1]};
}

// The instructions one after the other; *at begins at 0.
static bool next_insn(const struct interface_module *m, uint64_t *at, struct insn *out)
{
    *at += *at ? m->words[*at] >> 16 : HEADER_WORDS;
    if (*at >= m->count)
        return false;
    *out = read_insn(m, *at);
    return true;
}

// The instruction that makes an id; op 0: there is none with so many operands.
static struct insn spirv_interface_made_by(const struct interface_module *m, uint32_t id,
                                           uint32_t operands)
{
    if (id < m->bound && m->at[id] != 0) {
        struct insn insn = read_insn(m, m->at[id]);
        if (insn.count >= operands)
            return insn;
    }
    return (struct insn){0, 0, NULL};
}

static void index_ids(struct interface_module *m)
{
    struct insn insn;
    for (uint64_t at = 0; next_insn(m, &at, &insn);) {
        uint32_t operand = insn.op >= OpTypeBool && insn.op <= OpTypePointer ? 0 : 1;
        bool known = operand == 0 ||
                     (insn.op >= OpConstant && insn.op <= OpSpecConstantComposite) ||
                     insn.op == OpVariable;
        if (known && insn.count > operand && insn.operands[operand] < m->bound)
            m->at[insn.operands[operand]] = (uint32_t)at;
    }
}

static bool find_decoration(const struct interface_module *m, uint32_t id, int64_t member,
                            uint32_t decoration, uint32_t *out)
{
    return spirv_find_decoration(m->words, m->count, id, member, decoration, out);
}

// The value of a constant of 32 bits as the launch specialises it. False: it is computed.
static bool constant_value(const struct interface_module *m, uint32_t id, uint32_t *out)
{
    struct insn insn = spirv_interface_made_by(m, id, 3);
    uint32_t spec_id;
    if (insn.op != OpConstant && insn.op != OpSpecConstant)
        return false;
    *out = insn.operands[2];
    if (insn.op == OpSpecConstant && find_decoration(m, id, -1, DecorationSpecId, &spec_id))
        for (uint32_t i = 0; i < m->wants->num_spec; i++)
            if (m->wants->spec[i].id == spec_id)
                *out = m->wants->spec[i].value;
    return true;
}

static uint64_t spirv_interface_size_of(struct interface_module *m, uint32_t type,
                                        uint32_t depth);

// Bytes of a struct: of one without offsets, which lies in shared memory, the sum.
static uint64_t size_of_struct(struct interface_module *m, struct insn insn, uint32_t depth)
{
    uint64_t end = 0, sum = 0;
    for (uint32_t i = 1; i < insn.count; i++) {
        uint64_t size = spirv_interface_size_of(m, insn.operands[i], depth + 1);
        uint32_t offset, stride;
        struct insn member = spirv_interface_made_by(m, insn.operands[i], 3);
        if (member.op == OpTypeMatrix &&
            find_decoration(m, insn.operands[0], i - 1, DecorationMatrixStride, &stride))
            size = (uint64_t)member.operands[2] * stride;
        sum += (size + 3) / 4 * 4;
        if (find_decoration(m, insn.operands[0], i - 1, DecorationOffset, &offset))
            end = offset + size > end ? offset + size : end;
    }
    return end ? end : sum;
}

static uint64_t size_of_array(struct interface_module *m, struct insn insn, uint32_t depth)
{
    uint32_t length, stride;
    uint64_t size = spirv_interface_size_of(m, insn.operands[1], depth + 1);
    if (!constant_value(m, insn.operands[2], &length)) {
        m->is_unknown = true;
        return 0;
    }
    if (find_decoration(m, insn.operands[0], -1, DecorationArrayStride, &stride))
        size = stride;
    return size > UINT32_MAX ? size : size * length;
}

// Bytes of a type in memory. 0 with is_unknown: it cannot be told.
static uint64_t spirv_interface_size_of(struct interface_module *m, uint32_t type,
                                        uint32_t depth)
{
    struct insn insn = spirv_interface_made_by(m, type, 1);
    if (depth > MAX_DEPTH || ++m->num_types > MAX_TYPES) {
        m->is_unknown = true;
        return 0;
    }
    switch (insn.op) {
    case OpTypeBool:
        return 4;
    case OpTypeInt:
    case OpTypeFloat:
        return insn.count >= 2 ? insn.operands[1] / 8 : 0;
    case OpTypeVector:
    case OpTypeMatrix:
        return insn.count >= 3 ? (uint64_t)(insn.operands[2] & 0xff) *
                                     spirv_interface_size_of(m, insn.operands[1], depth + 1)
                               : 0;
    case OpTypeArray:
        return insn.count >= 3 ? size_of_array(m, insn, depth) : 0;
    case OpTypeStruct:
        return size_of_struct(m, insn, depth);
    default:
        m->is_unknown = true;
        return 0;
    }
}

// Bytes of what the module's variables of a storage class point to: together, or of the
// largest. *out_count: the number of variables.
static uint64_t size_of_class(struct interface_module *m, uint32_t class, bool together,
                              uint32_t *out_count)
{
    uint64_t sum = 0, most = 0;
    struct insn insn;
    *out_count = 0;
    m->is_unknown = false;
    for (uint64_t at = 0; next_insn(m, &at, &insn);) {
        if (insn.op != OpVariable || insn.count < 3 || insn.operands[2] != class)
            continue;
        struct insn pointer = spirv_interface_made_by(m, insn.operands[0], 3);
        if (pointer.op != OpTypePointer)
            continue;
        uint64_t size = spirv_interface_size_of(m, pointer.operands[2], 0);
        (*out_count)++;
        sum += size < UINT32_MAX ? size : UINT32_MAX;
        most = size > most ? size : most;
    }
    return together ? sum : most;
}

// --- comparing -------------------------------------------------------------------------

static bool check_push(struct interface_module *m, char *reason)
{
    uint32_t count, pushed = m->wants->num_push * 4;
    uint64_t size = size_of_class(m, StorageClassPushConstant, false, &count);
    if (count == 0 && pushed > 0)
        snprintf(reason, VK_REASON,
                 "has no push-constant block, but the launch pushes %u bytes", pushed);
    else if (count > 0 && (m->is_unknown || (size + 3) / 4 * 4 != pushed))
        snprintf(reason, VK_REASON,
                 "has a push-constant block of %llu bytes, but the launch pushes %u",
                 (unsigned long long)size, pushed);
    else
        return true;
    return false;
}

static bool has_spec_id(const struct interface_module *m, uint32_t id)
{
    struct insn insn;
    for (uint64_t at = 0; next_insn(m, &at, &insn);)
        if (insn.op == OpDecorate && insn.count >= 3 &&
            insn.operands[1] == DecorationSpecId && insn.operands[2] == id)
            return true;
    return false;
}

static bool check_constants(const struct interface_module *m, char *reason)
{
    const tn_vulkan_constant *spec = m->wants->spec;
    for (uint32_t i = 0; i < m->wants->num_spec; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (spec[j].id == spec[i].id) {
                snprintf(reason, VK_REASON,
                         "is launched with two values of specialisation constant %u",
                         spec[i].id);
                return false;
            }
        if (!has_spec_id(m, spec[i].id)) {
            snprintf(reason, VK_REASON,
                     "has no specialisation constant %u, which the launch gives a value",
                     spec[i].id);
            return false;
        }
    }
    return true;
}

// The size of a workgroup that is made of constants. False: none is, or it is computed.
static bool find_group_size(const struct interface_module *m, uint32_t size[3])
{
    struct insn insn;
    for (uint64_t at = 0; next_insn(m, &at, &insn);) {
        const uint32_t *ids = NULL;
        if (insn.op == OpExecutionModeId && insn.count >= 5 &&
            insn.operands[1] == ExecutionModeLocalSizeId)
            ids = &insn.operands[2];
        if (insn.op == OpDecorate && insn.count >= 3 &&
            insn.operands[1] == DecorationBuiltIn &&
            insn.operands[2] == BuiltInWorkgroupSize) {
            struct insn made = spirv_interface_made_by(m, insn.operands[0], 5);
            if (made.op == OpConstantComposite || made.op == OpSpecConstantComposite)
                ids = &made.operands[2];
        }
        if (ids)
            return constant_value(m, ids[0], &size[0]) &&
                   constant_value(m, ids[1], &size[1]) &&
                   constant_value(m, ids[2], &size[2]);
    }
    return false;
}

static bool check_shared(struct interface_module *m, const struct vk_facts *facts,
                         char *reason)
{
    uint32_t count, most = facts->limits.max_shared;
    uint64_t size = size_of_class(m, StorageClassWorkgroup, true, &count);
    if (m->is_unknown || size <= most)
        return true;
    snprintf(reason, VK_REASON,
             "needs %llu bytes of shared memory, but a workgroup has at most %u here",
             (unsigned long long)size, most);
    return false;
}

bool spirv_group_fits(const struct vk_facts *facts, const uint32_t size[3],
                      char reason[VK_REASON])
{
    const tn_vulkan_limits *limits = &facts->limits;
    bool fits = true;
    for (int i = 0; i < 3; i++)
        fits = fits && size[i] > 0 && size[i] <= limits->max_group_size[i];
    uint64_t plane = fits ? (uint64_t)size[0] * size[1] : 0;
    if (fits && plane <= limits->max_invocations &&
        plane * size[2] <= limits->max_invocations)
        return true;
    snprintf(reason, VK_REASON,
             "has workgroups of %ux%ux%u, the device takes %u invocations", size[0],
             size[1], size[2], limits->max_invocations);
    return false;
}

bool spirv_interface_fits(const struct vk_facts *facts, const struct vk_code *code,
                          const struct spirv_wants *wants, char reason[VK_REASON])
{
    struct interface_module m = {.words = code->words,
                                 .count = code->size / 4,
                                 .bound = code->words[3],
                                 .wants = wants};
    uint32_t size[3];
    m.at = calloc(m.bound, sizeof(*m.at));
    if (!m.at) {
        snprintf(reason, VK_REASON, "cannot be checked: out of memory");
        return false;
    }
    index_ids(&m);
    bool fits = check_push(&m, reason) && check_constants(&m, reason) &&
                (!find_group_size(&m, size) || spirv_group_fits(facts, size, reason)) &&
                check_shared(&m, facts, reason);
    free(m.at);
    return fits;
}
