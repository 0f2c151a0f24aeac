// SPDX-License-Identifier: MIT
// The memory model: scopes, and what loads and stores of coherent memory say.
#include "emit.h"

// As glslang does: with cooperative matrices the model is Vulkan's.
bool memory_is_vulkan(const struct translator *t, const struct preprocessed *source)
{
    const struct glsl_token *token = source->tokens.items;
    if (source->uses_vulkan_memory_model)
        return true;
    if (!(t->extensions & EXTENSION_BIT(MATRIX)))
        return false;
    while (token->kind != TOKEN_END &&
           !(token->kind == TOKEN_NAME && token->name->keyword == KEYWORD_coopmat))
        token++;
    return token->kind != TOKEN_END;
}

// The wider one of two scopes holds where both are said.
uint8_t memory_join(uint8_t a, uint8_t b)
{
    uint8_t flags = (uint8_t)((a | b) & ~MEMORY_SCOPE), scope = a & MEMORY_SCOPE;
    if (!(a & MEMORY_COHERENT) || (b & MEMORY_COHERENT && (b & MEMORY_SCOPE) < scope))
        scope = b & MEMORY_SCOPE;
    return flags | scope;
}

uint32_t memory_scope(struct translator *t, uint32_t scope)
{
    if (scope == MEMORY_SCOPE_DEVICE && t->has_vulkan_model)
        use_needs(t, NEED(VULKAN_DEVICE_SCOPE));
    return ir_u32(t->ir, scope);
}

static uint32_t coherent_scope(const struct access *a)
{
    uint32_t scope = a->memory >> MEMORY_SCOPE_AT;
    if (!(a->memory & MEMORY_COHERENT))
        return ScopeWorkgroup; // shared memory
    return scope != 0 ? scope : ScopeQueueFamily;
}

uint32_t memory_operands(struct translator *t, const struct access *a, bool is_store,
                         uint32_t *out)
{
    uint32_t mask = 0, count = 1;
    bool is_coherent = a->memory & MEMORY_COHERENT || a->storage == StorageClassWorkgroup;
    if (a->memory & MEMORY_VOLATILE)
        mask |= MemoryAccessVolatile;
    if (a->storage == StorageClassPhysicalStorageBuffer) {
        mask |= MemoryAccessAligned;
        out[count++] = a->align;
    }
    if (t->has_vulkan_model && is_coherent) {
        mask |= MemoryAccessNonPrivatePointer | (is_store ? MemoryAccessMakePointerAvailable
                                                          : MemoryAccessMakePointerVisible);
        out[count++] = memory_scope(t, coherent_scope(a));
    } else if (t->has_vulkan_model && a->memory & MEMORY_NONPRIVATE) {
        mask |= MemoryAccessNonPrivatePointer;
    }
    out[0] = mask;
    return mask == 0 ? 0 : count;
}
