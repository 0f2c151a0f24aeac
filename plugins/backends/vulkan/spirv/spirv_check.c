// SPDX-License-Identifier: MIT
// Scans a SPIR-V module once for its instructions, and once for its calls. Numbers are
// those of the SPIR-V specification, 1.5.
#include "spirv_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "spirv/numbers.h"
#include "spirv/read.h"
#include "spirv_interface.h"

#define NEWEST 0x00010500u // SPIR-V 1.5: what Vulkan 1.2 takes
#define HEADER_WORDS 5

struct spirv_reader {
    const struct vk_facts *facts;
    const struct spirv_wants *wants;
    const uint32_t *words;
    uint64_t count;
    uint32_t entry;         // id of the entry point's function; 0: not found
    unsigned char *defined; // bit set by id: functions with a definition
    bool in_function;
    char *reason;
};

static bool spirv_check_refuse(struct spirv_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool spirv_check_refuse(struct spirv_reader *r, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(r->reason, VK_REASON, format, list);
    va_end(list);
    return false;
}

static bool check_header(struct spirv_reader *r, uint64_t size)
{
    const uint32_t *words = r->words;
    if (size < HEADER_WORDS * 4 || size % 4 != 0)
        return spirv_check_refuse(
            r, "is no SPIR-V: %llu bytes, expected a multiple of 4, 20 at least",
            (unsigned long long)size);
    if ((uintptr_t)words % 4 != 0)
        return spirv_check_refuse(r, "is not aligned to 4 bytes");
    if (words[0] != SPIRV_MAGIC)
        return spirv_check_refuse(r, "is no SPIR-V: it begins with 0x%08x, expected 0x%08x",
                                  words[0], SPIRV_MAGIC);
    if (words[1] > NEWEST || words[1] < 0x00010000u)
        return spirv_check_refuse(r, "is SPIR-V %u.%u, expected 1.0 to 1.5",
                                  words[1] >> 16 & 255, words[1] >> 8 & 255);
    if (words[3] == 0 || words[3] > SPIRV_MAX_BOUND)
        return spirv_check_refuse(r, "has a bound of %u ids, expected 1 to %u", words[3],
                                  SPIRV_MAX_BOUND);
    return true;
}

static bool check_capability(struct spirv_reader *r, uint32_t capability)
{
    const char *name = vk_capability_name(capability);
    if (vk_has_capability(r->facts, capability))
        return true;
    return spirv_check_refuse(
        r, "needs the capability %s%s(%u of SPIR-V), which the device has not",
        name ? name : "", name ? " " : "", capability);
}

static bool check_decoration(struct spirv_reader *r, const uint32_t *operands)
{
    if (operands[1] == DecorationBinding && operands[2] >= r->wants->num_bindings)
        return spirv_check_refuse(r, "has a binding %u, but the launch has %u operands",
                                  operands[2], r->wants->num_bindings);
    if (operands[1] == DecorationDescriptorSet && operands[2] != 0)
        return spirv_check_refuse(r, "has a descriptor set %u, expected 0", operands[2]);
    return true;
}

static void spirv_check_read_entry(struct spirv_reader *r, const uint32_t *operands,
                                   uint32_t count)
{
    const char *name = (const char *)&operands[2];
    size_t room = (count - 2) * sizeof(uint32_t);
    const char *wanted = r->wants->entry ? r->wants->entry : "main";
    if (operands[0] == ExecutionModelGLCompute && strnlen(name, room) < room &&
        strcmp(name, wanted) == 0)
        r->entry = operands[1];
}

static bool spirv_check_read_function(struct spirv_reader *r, const uint32_t *operands)
{
    uint32_t id = operands[1];
    if (r->in_function || id >= r->words[3])
        return spirv_check_refuse(r, "is damaged: a function begins where none may");
    r->in_function = true;
    r->defined[id / 8] |= (unsigned char)(1u << id % 8);
    return true;
}

// Checks one instruction, which has `count` operands after its first word.
static bool read_instruction(struct spirv_reader *r, uint32_t op, const uint32_t *operands,
                             uint32_t count)
{
    switch (op) {
    case OpCapability:
        return count < 1 || check_capability(r, operands[0]);
    case OpEntryPoint:
        if (count >= 3)
            spirv_check_read_entry(r, operands, count);
        return true;
    case OpExecutionMode:
        return count < 5 || operands[1] != ExecutionModeLocalSize ||
               spirv_group_fits(r->facts, &operands[2], r->reason);
    case OpDecorate:
        return count < 3 || check_decoration(r, operands);
    case OpFunction:
        return count >= 4 ? spirv_check_read_function(r, operands)
                          : spirv_check_refuse(r, "is damaged: a function without a type");
    case OpFunctionEnd:
        if (!r->in_function)
            return spirv_check_refuse(r, "is damaged: a function ends that did not begin");
        r->in_function = false;
        return true;
    default:
        return true;
    }
}

static bool spirv_check_is_defined(const struct spirv_reader *r, uint32_t id)
{
    return id < r->words[3] && (r->defined[id / 8] >> id % 8 & 1);
}

static bool read_instructions(struct spirv_reader *r)
{
    for (uint64_t at = HEADER_WORDS, size; at < r->count; at += size) {
        size = r->words[at] >> 16;
        if (size == 0 || size > r->count - at)
            return spirv_check_refuse(
                r, "is cut off: word %llu of %llu begins an instruction of %llu",
                (unsigned long long)at, (unsigned long long)r->count,
                (unsigned long long)size);
        if (!read_instruction(r, r->words[at] & 0xffff, &r->words[at + 1],
                              (uint32_t)size - 1))
            return false;
    }
    return !r->in_function || spirv_check_refuse(r, "is cut off within a function");
}

// Checks calls and the entry point after the scan, since functions may be called before
// they are defined.
static bool spirv_check_calls(struct spirv_reader *r)
{
    for (uint64_t at = HEADER_WORDS; at < r->count; at += r->words[at] >> 16)
        if ((r->words[at] & 0xffff) == OpFunctionCall &&
            (r->words[at] >> 16 < 4 || !spirv_check_is_defined(r, r->words[at + 3])))
            return spirv_check_refuse(r,
                                      "is cut off: a function that it calls is not there");
    const char *name = r->wants->entry ? r->wants->entry : "main";
    if (r->entry == 0)
        return spirv_check_refuse(r, "has no entry point \"%.100s\" for compute", name);
    return spirv_check_is_defined(r, r->entry) ||
           spirv_check_refuse(
               r, "is cut off: the function of entry point \"%.100s\" is not there", name);
}

bool vk_spirv_check(const struct vk_facts *facts, const struct vk_code *code,
                    const struct spirv_wants *wants, char reason[VK_REASON])
{
    struct spirv_reader r = {.facts = facts,
                             .wants = wants,
                             .words = code->words,
                             .count = code->size / 4,
                             .reason = reason};
    if (!check_header(&r, code->size))
        return false;
    r.defined = calloc(r.words[3] / 8 + 1, 1);
    if (!r.defined)
        return spirv_check_refuse(&r, "cannot be checked: out of memory");
    bool fine = read_instructions(&r) && spirv_check_calls(&r);
    free(r.defined);
    return fine && spirv_interface_fits(facts, code, wants, reason);
}
