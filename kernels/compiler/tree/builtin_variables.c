// SPDX-License-Identifier: MIT
// Variables that the device gives, declared when they are first named.
#include "expr.h"

#include <string.h>

struct builtin_variable {
    const char *name;
    uint8_t base, rows;
    uint32_t number; // BuiltIn of SPIR-V
    uint64_t needs, extensions;
};

// Sorted by name.
static const struct builtin_variable variables[] = {
    {"gl_GlobalInvocationID", TYPE_UINT32, 3, BuiltInGlobalInvocationId, 0, 0},
    {"gl_LocalInvocationID", TYPE_UINT32, 3, BuiltInLocalInvocationId, 0, 0},
    {"gl_LocalInvocationIndex", TYPE_UINT32, 1, BuiltInLocalInvocationIndex, 0, 0},
    {"gl_NumSubgroups", TYPE_UINT32, 1, BuiltInNumSubgroups, NEED(GROUP),
     EXTENSION_BIT(GROUP_BASIC)},
    {"gl_NumWorkGroups", TYPE_UINT32, 3, BuiltInNumWorkgroups, 0, 0},
    {"gl_SubgroupEqMask", TYPE_UINT32, 4, BuiltInSubgroupEqMask, NEED(GROUP_BALLOT),
     EXTENSION_BIT(GROUP_BALLOT)},
    {"gl_SubgroupGeMask", TYPE_UINT32, 4, BuiltInSubgroupGeMask, NEED(GROUP_BALLOT),
     EXTENSION_BIT(GROUP_BALLOT)},
    {"gl_SubgroupGtMask", TYPE_UINT32, 4, BuiltInSubgroupGtMask, NEED(GROUP_BALLOT),
     EXTENSION_BIT(GROUP_BALLOT)},
    {"gl_SubgroupID", TYPE_UINT32, 1, BuiltInSubgroupId, NEED(GROUP),
     EXTENSION_BIT(GROUP_BASIC)},
    {"gl_SubgroupInvocationID", TYPE_UINT32, 1, BuiltInSubgroupLocalInvocationId,
     NEED(GROUP), EXTENSION_BIT(GROUP_BASIC)},
    {"gl_SubgroupLeMask", TYPE_UINT32, 4, BuiltInSubgroupLeMask, NEED(GROUP_BALLOT),
     EXTENSION_BIT(GROUP_BALLOT)},
    {"gl_SubgroupLtMask", TYPE_UINT32, 4, BuiltInSubgroupLtMask, NEED(GROUP_BALLOT),
     EXTENSION_BIT(GROUP_BALLOT)},
    {"gl_SubgroupSize", TYPE_UINT32, 1, BuiltInSubgroupSize, NEED(GROUP),
     EXTENSION_BIT(GROUP_BASIC)},
    {"gl_WorkGroupID", TYPE_UINT32, 3, BuiltInWorkgroupId, 0, 0},
    {"gl_WorkGroupSize", TYPE_UINT32, 3, BuiltInWorkgroupSize, 0, 0},
};

// Numbers that the extensions name.
static const struct {
    const char *name;
    int32_t value;
    uint64_t extensions;
} numbers[] = {
    {"gl_ScopeDevice", 1, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_ScopeWorkgroup", 2, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_ScopeSubgroup", 3, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_ScopeInvocation", 4, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_ScopeQueueFamily", 5, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsRelaxed", 0, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsAcquire", 0x2, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsRelease", 0x4, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsAcquireRelease", 0x8, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsMakeAvailable", 0x2000, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsMakeVisible", 0x4000, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_SemanticsVolatile", 0x8000, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_StorageSemanticsNone", 0, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_StorageSemanticsBuffer", 0x40, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_StorageSemanticsShared", 0x100, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_StorageSemanticsImage", 0x800, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_StorageSemanticsOutput", 0x1000, EXTENSION_BIT(MEMORY_SCOPE)},
    {"gl_MatrixUseA", 0, EXTENSION_BIT(MATRIX)},
    {"gl_MatrixUseB", 1, EXTENSION_BIT(MATRIX)},
    {"gl_MatrixUseAccumulator", 2, EXTENSION_BIT(MATRIX)},
    {"gl_MatrixOperandsNone", 0, EXTENSION_BIT(MATRIX)},
    {"gl_MatrixOperandsSaturatingAccumulation", 0x10, EXTENSION_BIT(MATRIX)},
    {"gl_CooperativeMatrixLayoutRowMajor", 0, EXTENSION_BIT(MATRIX)},
    {"gl_CooperativeMatrixLayoutColumnMajor", 1, EXTENSION_BIT(MATRIX)},
    {"gl_CooperativeMatrixReduceRowNV", 1, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixReduceColumnNV", 2, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixReduceRowAndColumnNV", 3, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixReduce2x2NV", 4, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixClampModeUndefinedNV", 0, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixClampModeConstantNV", 1, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixClampModeClampToEdgeNV", 2, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixClampModeRepeatNV", 3, EXTENSION_BIT(MATRIX_2)},
    {"gl_CooperativeMatrixClampModeMirrorRepeatNV", 4, EXTENSION_BIT(MATRIX_2)},
};

// As if declared outside of all scopes.
static struct symbol *builtin_variable_make(struct translator *t, const struct name *name,
                                            enum symbol_kind kind, const struct type *type)
{
    struct symbol *symbol = compiler_allocate(t->c, sizeof *symbol);
    symbol->kind = (uint8_t)kind;
    symbol->name = name;
    symbol->type = type;
    symbol->is_readonly = true;
    ((struct name *)name)->symbol = symbol;
    return symbol;
}

static struct symbol *make_number(struct translator *t, const struct name *name)
{
    for (uint32_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(numbers[i].name, name->text) != 0)
            continue;
        struct position at = t->token[-1].at;
        extension_check(t, numbers[i].extensions, &at, name->text);
        const struct type *type = type_scalar(t, TYPE_INT32);
        struct symbol *symbol = builtin_variable_make(t, name, SYMBOL_VALUE, type);
        symbol->value = expr_uint(t, TYPE_INT32, (uint64_t)numbers[i].value, &at);
        return symbol;
    }
    return NULL;
}

struct symbol *builtin_variable(struct translator *t, const struct name *name)
{
    const struct builtin_variable *variable = NULL;
    for (uint32_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (strcmp(variables[i].name, name->text) == 0)
            variable = &variables[i];
    if (variable == NULL)
        return make_number(t, name);
    struct position at = t->token[-1].at;
    extension_check(t, variable->extensions, &at, name->text);
    const struct type *type = variable->rows == 1
                                  ? type_scalar(t, variable->base)
                                  : type_vector(t, variable->base, variable->rows);
    bool is_size = variable->number == BuiltInWorkgroupSize;
    struct symbol *symbol =
        builtin_variable_make(t, name, is_size ? SYMBOL_VALUE : SYMBOL_VARIABLE, type);
    symbol->builtin = variable;
    if (is_size)
        return symbol;
    symbol->storage = StorageClassInput;
    symbol->needs = variable->needs;
    symbol->id = ir_global(
        t->ir, ir_pointer(t->ir, StorageClassInput, type_id(t, type, LAYOUT_NONE)),
        StorageClassInput, 0);
    ir_decorate(t->ir, symbol->id, DecorationBuiltIn, 1, &variable->number);
    return symbol;
}
