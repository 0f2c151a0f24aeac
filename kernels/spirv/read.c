// SPDX-License-Identifier: MIT
#include "read.h"
#include "numbers.h"

#include <string.h>

bool spirv_is_known(uint32_t op)
{
    return op != OpSwitch && spirv_pattern(op) != NULL;
}

struct spirv_ids spirv_ids_behind_result(uint32_t op, uint32_t *operands, uint32_t count,
                                         uint32_t width)
{
    struct spirv_ids ids = {spirv_pattern(op), NULL, operands, operands + count, width, 0};
    if (!ids.pattern)
        ids.pattern = "";
    while (*ids.pattern == '!' || *ids.pattern == '~' || *ids.pattern == 't' ||
           *ids.pattern == 'r')
        ids.pattern++;
    return ids;
}

struct spirv_ids spirv_ids(uint32_t op, uint32_t *operands, uint32_t count)
{
    if (!spirv_is_known(op))
        return (struct spirv_ids){"I", NULL, operands, operands + count, 1, 0};
    struct spirv_ids ids = spirv_ids_behind_result(op, operands, count, 1);
    for (const char *mark = spirv_pattern(op); mark < ids.pattern; mark++)
        ids.head += *mark == 't' || *mark == 'r';
    return ids;
}

uint32_t spirv_result_at(uint32_t op)
{
    const char *pattern = spirv_pattern(op);
    if (!pattern)
        return UINT32_MAX;
    pattern += *pattern == '!' || *pattern == '~';
    return *pattern == 'r' ? 0 : *pattern == 't' && pattern[1] == 'r' ? 1 : UINT32_MAX;
}

// --- operands ----------------------------------------------------------------------------

// The pattern of the operands that follow a mask of memory operands.
static const char *memory_pattern(uint32_t mask)
{
    uint32_t ids = (mask & MemoryAccessMakePointerAvailable ? 1U : 0U) +
                   (mask & MemoryAccessMakePointerVisible ? 1U : 0U);
    static const char patterns[2][3][4] = {{"", "i", "ii"}, {"l", "li", "lii"}};
    return patterns[!!(mask & MemoryAccessAligned)][ids];
}

static uint32_t *behind_text(uint32_t *next, const uint32_t *end)
{
    while (next < end) {
        uint32_t word = *next++;
        if (!(word & 0xff) || !(word & 0xff00) || !(word & 0xff0000) || !(word >> 24))
            break;
    }
    return next;
}

// Skips an operand that is no id. False: no ids follow.
static bool pass_literals(struct spirv_ids *ids)
{
    const char *nested;
    switch (*ids->pattern++) {
    case 'l':
        ids->next++;
        return true;
    case 's':
        ids->next = behind_text(ids->next, ids->end);
        return true;
    case 'm':
        ids->behind = ids->pattern;
        ids->pattern = memory_pattern(*ids->next++);
        return true;
    case 'o':
        nested = spirv_pattern(*ids->next++);
        ids->pattern = nested ? nested : "";
        return true;
    case '\0':
        ids->pattern = ids->behind ? ids->behind : "";
        ids->behind = NULL;
        return *ids->pattern != '\0';
    case 'L':
        ids->pattern--;
        return false;
    default: // '?', '!', '~'; 't' and 'r', which `head` counts
        return true;
    }
}

uint32_t *spirv_next_id(struct spirv_ids *ids)
{
    while (ids->next < ids->end) {
        if (ids->head > 0) {
            ids->head--;
            return ids->next++;
        }
        if (*ids->pattern == 'I')
            return ids->next++;
        if (*ids->pattern == 'i') {
            ids->pattern++;
            return ids->next++;
        }
        if (*ids->pattern == 'P') {
            if ((size_t)(ids->end - ids->next) <= ids->width)
                return NULL;
            ids->next += ids->width + 1;
            return ids->next - 1;
        }
        if (!pass_literals(ids))
            return NULL;
    }
    return NULL;
}

// --- decorations -------------------------------------------------------------------------

enum { HEADER_WORDS = 5 };

bool spirv_find_decoration(const uint32_t *words, size_t end, uint32_t id, int64_t member,
                           uint32_t decoration, uint32_t *out)
{
    uint32_t skip = member < 0 ? 0 : 1, op = skip ? OpMemberDecorate : OpDecorate;
    for (size_t at = HEADER_WORDS; at < end; at += words[at] >> 16)
        if ((words[at] & 0xffff) == op && words[at] >> 16 >= 4 + skip &&
            words[at + 1] == id && (skip == 0 || words[at + 2] == (uint32_t)member) &&
            words[at + 2 + skip] == decoration) {
            *out = words[at + 3 + skip];
            return true;
        }
    return false;
}
