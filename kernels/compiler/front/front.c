// SPDX-License-Identifier: MIT
#include "front.h"
#include "parse.h"

void translate(struct compiler *c, const struct preprocessed *source, struct ir *ir)
{
    struct translator *t = compiler_allocate(c, sizeof *t);
    t->c = c;
    t->ir = ir;
    t->first = t->token = source->tokens.items;
    t->last_initial = &t->initials;
    t->default_layout[0] = LAYOUT_STD140;
    t->default_layout[1] = LAYOUT_STD430;
    t->name_length = compiler_name(c, "length", 6);
    t->name_main = compiler_name(c, "main", 4);
    for (uint32_t i = 0; i < 3; i++)
        t->local_size.id[i] = UINT32_MAX;
    extensions_read(t, source);
    t->has_vulkan_model = memory_is_vulkan(t, source);
    while (t->token->kind != TOKEN_END)
        if (!accept(t, ';'))
            parse_declaration(t);
    functions_finish(t);
    local_size_finish(t);
    if (t->has_vulkan_model)
        t->needs |= NEED(VULKAN_MODEL);
    ir_capability(ir, CapabilityShader, NULL);
    needs_declare(t, t->needs);
    ir->addressing = t->needs & NEED(PHYSICAL) ? AddressingModelPhysicalStorageBuffer64
                                               : AddressingModelLogical;
    ir->memory_model = t->has_vulkan_model ? MemoryModelVulkan : MemoryModelGLSL450;
}
