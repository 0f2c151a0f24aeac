// SPDX-License-Identifier: MIT
// Builds SPIR-V modules: the generated instructions, and the precompiled items that they
// need.
#include "spirv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_1_3 0x00010300u
#define MAX_CAPABILITIES 8

void spirv_begin(struct spirv_module *module)
{
    *module = (struct spirv_module){.next_id = spirv_bound,
                                    .needed = calloc(num_spirv_items, sizeof(bool))};
    module->failed = !module->needed;
}

void spirv_finish(struct spirv_module *module)
{
    free(module->needed);
    free(module->decorations.words);
    free(module->globals.words);
    free(module->code.words);
}

uint32_t spirv_new_id(struct spirv_module *module)
{
    return module->next_id++;
}

uint32_t spirv_use(struct spirv_module *module, uint32_t id)
{
    if (module->failed || module->needed[id - 1])
        return id;
    const struct spirv_item *item = &spirv_items[id - 1];
    module->needed[id - 1] = true;
    for (uint32_t i = 0; i < item->num_needs; i++)
        spirv_use(module, spirv_needs[item->needs_at + i]);
    return id;
}

static int compare_name(const void *name, const void *part)
{
    return strcmp(name, ((const struct spirv_part *)part)->name);
}

static const struct spirv_part *look_up(const char *name)
{
    return bsearch(name, spirv_parts, num_spirv_parts, sizeof(struct spirv_part),
                   compare_name);
}

const struct spirv_part *spirv_find(struct spirv_module *module, const char *name)
{
    const struct spirv_part *part = look_up(name);
    if (part)
        spirv_use(module, part->id);
    return part;
}

const struct spirv_part *spirv_get(struct spirv_module *module, const char *name)
{
    const struct spirv_part *part = spirv_find(module, name);
    if (!part)
        snprintf(module->missing, sizeof(module->missing), "%s", name);
    return part ? part : &spirv_parts[0];
}

const struct spirv_part *spirv_entry(struct spirv_module *module)
{
    const struct spirv_part *part = look_up("main"); // which each module has
    spirv_use(module, part->result);
    spirv_use(module, part->type);
    return part;
}

// --- writing ---------------------------------------------------------------------------

static bool aot_spirv_reserve(struct spirv_stream *stream, size_t more)
{
    if (stream->num_words + more <= stream->capacity)
        return true;
    size_t capacity = 2 * stream->capacity + more + 256;
    uint32_t *words = realloc(stream->words, capacity * sizeof(uint32_t));
    if (!words)
        return false;
    stream->words = words;
    stream->capacity = capacity;
    return true;
}

static bool aot_spirv_append(struct spirv_stream *stream, const uint32_t *words,
                             size_t count)
{
    if (!aot_spirv_reserve(stream, count))
        return false;
    if (count > 0) // memcpy takes no NULL, even for 0 bytes
        memcpy(stream->words + stream->num_words, words, count * sizeof(uint32_t));
    stream->num_words += count;
    return true;
}

static bool append_insn(struct spirv_stream *stream, uint32_t op, const uint32_t *operands,
                        size_t count)
{
    uint32_t head = op | (uint32_t)(count + 1) << 16;
    return aot_spirv_append(stream, &head, 1) && aot_spirv_append(stream, operands, count);
}

void spirv_add(struct spirv_module *module, struct spirv_stream *stream, uint32_t op,
               const uint32_t *operands, size_t count)
{
    if (!append_insn(stream, op, operands, count))
        module->failed = true;
}

uint32_t spirv_result(struct spirv_module *module, uint32_t op, uint32_t type,
                      const uint32_t *operands, size_t count)
{
    uint32_t head[] = {op | (uint32_t)(count + 3) << 16, type, spirv_new_id(module)};
    if (!aot_spirv_append(&module->code, head, 3) ||
        !aot_spirv_append(&module->code, operands, count))
        module->failed = true;
    return head[2];
}

uint32_t spirv_call(struct spirv_module *module, const struct spirv_part *part,
                    const uint32_t *operands, size_t count)
{
    uint32_t head[] = {OpFunctionCall | (uint32_t)(count + 4) << 16, part->result,
                       spirv_new_id(module), part->id};
    if (!aot_spirv_append(&module->code, head, 4) ||
        !aot_spirv_append(&module->code, operands, count))
        module->failed = true;
    return head[2];
}

// A module may define a constant twice, so remembering the first few constants is enough.
uint32_t spirv_uint(struct spirv_module *module, uint32_t value)
{
    for (uint32_t i = 0; i < module->num_constants; i++)
        if (module->constants[i][0] == value)
            return module->constants[i][1];
    uint32_t id = spirv_new_id(module);
    uint32_t type = spirv_get(module, "ITEM")->result;
    SPIRV_ADD(module, globals, OpConstant, type, id, value);
    if (module->num_constants < SPIRV_KEPT_CONSTANTS) {
        uint32_t *kept = module->constants[module->num_constants++];
        kept[0] = value;
        kept[1] = id;
    }
    return id;
}

// --- linking ---------------------------------------------------------------------------

static bool append_capabilities(const struct spirv_module *module, struct spirv_stream *out)
{
    uint32_t seen[MAX_CAPABILITIES] = {CapabilityShader}, count = 1;
    for (uint32_t i = 0; i < num_spirv_items; i++) {
        uint32_t capability = spirv_items[i].capability, at = 0;
        if (!module->needed[i] || capability == 0)
            continue;
        while (at < count && seen[at] != capability)
            at++;
        if (at == count && count < MAX_CAPABILITIES)
            seen[count++] = capability;
    }
    bool ok = true;
    for (uint32_t i = 0; i < count; i++)
        ok = ok && append_insn(out, OpCapability, &seen[i], 1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t text[16] = {0};
        const char *name = spirv_capability_extension(seen[i], VERSION_1_3);
        if (!name || strlen(name) >= sizeof(text))
            continue;
        memcpy(text, name, strlen(name));
        ok = ok && append_insn(out, OpExtension, text, strlen(name) / 4 + 1);
    }
    return ok;
}

static bool append_entry(const struct spirv_module *module, struct spirv_stream *out,
                         uint32_t entry, uint32_t group_size)
{
    uint32_t operands[16] = {ExecutionModelGLCompute, entry}, count = 4;
    memcpy(&operands[2], "main", 4);
    for (uint32_t i = 0; i < num_spirv_items && count < 16; i++)
        if (module->needed[i] && spirv_items[i].is_input)
            operands[count++] = i + 1;
    return append_insn(out, OpMemoryModel,
                       SPIRV_LIST(AddressingModelLogical, MemoryModelGLSL450)) &&
           append_insn(out, OpEntryPoint, operands, count) &&
           append_insn(out, OpExecutionMode,
                       SPIRV_LIST(entry, ExecutionModeLocalSize, group_size, 1, 1));
}

static bool aot_spirv_is_function(const struct spirv_item *item)
{
    return (spirv_words[item->at] & 0xffffu) == OpFunction;
}

enum section { DECORATIONS, GLOBALS, FUNCTIONS };

static bool append_items(const struct spirv_module *module, struct spirv_stream *out,
                         enum section section)
{
    bool ok = true;
    for (uint32_t i = 1; i < num_spirv_items && ok; i++) {
        const struct spirv_item *item = &spirv_items[i];
        if (!module->needed[i])
            continue;
        if (section == DECORATIONS)
            ok = aot_spirv_append(out, spirv_words + item->decorations_at,
                                  item->num_decoration_words);
        else if (aot_spirv_is_function(item) == (section == FUNCTIONS))
            ok = aot_spirv_append(out, spirv_words + item->at, item->num_words);
    }
    return ok;
}

static bool append_stream(struct spirv_stream *out, const struct spirv_stream *from)
{
    return from->num_words == 0 || aot_spirv_append(out, from->words, from->num_words);
}

uint32_t *spirv_link(const struct spirv_module *module, uint32_t entry, uint32_t group_size,
                     size_t *out_size)
{
    if (module->failed)
        return NULL;
    struct spirv_stream out = {0};
    const struct spirv_item *import = &spirv_items[0];
    uint32_t header[] = {SPIRV_MAGIC, VERSION_1_3, 0, module->next_id, 0};
    bool ok = aot_spirv_append(&out, header, 5) && append_capabilities(module, &out) &&
              aot_spirv_append(&out, spirv_words + import->at, import->num_words) &&
              append_entry(module, &out, entry, group_size) &&
              append_items(module, &out, DECORATIONS) &&
              append_stream(&out, &module->decorations) &&
              append_items(module, &out, GLOBALS) &&
              append_stream(&out, &module->globals) && append_stream(&out, &module->code) &&
              append_items(module, &out, FUNCTIONS);
    if (!ok) {
        free(out.words);
        return NULL;
    }
    *out_size = out.num_words * sizeof(uint32_t);
    return out.words;
}
