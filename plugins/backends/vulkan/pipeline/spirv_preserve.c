// SPDX-License-Identifier: MIT
// The capability and its extension stand behind the module's own, the modes behind the last
// entry point: of the layout of a module (SPIR-V specification, 2.4) these are the
// positions.
#include "spirv_preserve.h"

#include <stdlib.h>
#include <string.h>
#include "spirv/numbers.h"
#include "spirv/opcode.h"

#define HEADER 5
#define WITH_FLOAT_CONTROLS 0x00010400u // SPIR-V 1.4 has them without the extension
#define MAX_WIDTHS 3
#define MAX_ENTRIES 4
#define MODE_WORDS 4 // OpExecutionMode, its entry point, mode and width

struct preserver {
    uint32_t widths[MAX_WIDTHS], num_widths;
    uint32_t entries[MAX_ENTRIES], num_entries;
    size_t capabilities_end, entries_end; // words
    bool is_done;                         // the module sets the mode, or is beyond us
};

static void add_width(struct preserver *p, const struct vk_facts *facts, uint32_t width)
{
    for (uint32_t i = 0; i < p->num_widths; i++)
        if (p->widths[i] == width) // a module may name a capability twice
            return;
    if (facts->preserves_nan & width)
        p->widths[p->num_widths++] = width;
}

static void take_capability(struct preserver *p, const struct vk_facts *facts,
                            uint32_t capability)
{
    p->is_done = p->is_done || capability == CapabilitySignedZeroInfNanPreserve;
    if (capability == CapabilityFloat16)
        add_width(p, facts, 16);
    if (capability == CapabilityFloat64)
        add_width(p, facts, 64);
}

static struct preserver read_module(const struct vk_facts *facts, const uint32_t *words,
                                    size_t num_words)
{
    struct preserver p = {0};
    add_width(&p, facts, 32);
    for (size_t at = HEADER; at < num_words; at += words[at] >> 16) {
        uint32_t op = words[at] & 0xffffu;
        size_t end = at + (words[at] >> 16);
        if (op == OpCapability) {
            take_capability(&p, facts, words[at + 1]);
            p.capabilities_end = end;
        } else if (op == OpEntryPoint) {
            p.is_done = p.is_done || p.num_entries == MAX_ENTRIES;
            if (!p.is_done)
                p.entries[p.num_entries++] = words[at + 2];
            p.entries_end = end;
        } else if (op >= OpTypeVoid) {
            break;
        }
    }
    p.is_done = p.is_done || p.num_widths == 0 || p.num_entries == 0;
    return p;
}

void spirv_release_words(struct vk_code *code)
{
    free((void *)code->words);
}

static size_t write_capability(uint32_t *to, uint32_t version)
{
    static const char name[24] = "SPV_KHR_float_controls"; // whole words, ended by zeros
    to[0] = 2u << 16 | OpCapability;
    to[1] = CapabilitySignedZeroInfNanPreserve;
    if (version >= WITH_FLOAT_CONTROLS)
        return 2;
    to[2] = (1 + sizeof(name) / 4) << 16 | OpExtension;
    memcpy(&to[3], name, sizeof(name));
    return 3 + sizeof(name) / 4;
}

bool spirv_preserve_nan(const struct vk_facts *facts, const struct vk_code *code,
                        struct vk_code *out)
{
    const uint32_t *words = code->words;
    size_t num_words = code->size / 4;
    struct preserver p = read_module(facts, words, num_words);
    *out = (struct vk_code){.words = words, .size = code->size};
    if (p.is_done)
        return true;
    uint32_t *to =
        malloc(code->size + 64 + sizeof(*to) * MODE_WORDS * p.num_widths * p.num_entries);
    if (!to)
        return false;
    size_t n = p.capabilities_end, between = p.entries_end - n;
    memcpy(to, words, n * 4);
    n += write_capability(to + n, words[1]);
    memcpy(to + n, words + p.capabilities_end, between * 4);
    n += between;
    for (uint32_t i = 0; i < p.num_widths * p.num_entries; i++) {
        const uint32_t mode[MODE_WORDS] = {
            MODE_WORDS << 16 | OpExecutionMode, p.entries[i / p.num_widths],
            ExecutionModeSignedZeroInfNanPreserve, p.widths[i % p.num_widths]};
        memcpy(to + n, mode, sizeof(mode));
        n += MODE_WORDS;
    }
    memcpy(to + n, words + p.entries_end, (num_words - p.entries_end) * 4);
    n += num_words - p.entries_end;
    *out = (struct vk_code){.words = to, .size = n * 4, .release = spirv_release_words};
    return true;
}
