// SPDX-License-Identifier: MIT
// Instructions of expressions.
#ifndef KERNELS_COMPILER_EMIT_H
#define KERNELS_COMPILER_EMIT_H

#include "../tree/build.h"

struct access {
    uint32_t base, storage, layout;
    const struct type *type; // behind the indices, before the swizzle
    uint32_t indices[16];
    uint32_t num_indices;
    uint8_t num_swizzle, swizzle[4];
    uint8_t memory;
    uint32_t align; // bytes, of a reference
};

// instructions (instruct.c)
uint32_t emit(struct translator *t, uint32_t op, const struct type *type, uint32_t count,
              const uint32_t *operands);
#define EMIT(t, op, type, ...)                                                             \
    emit(t, op, type, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                \
         (uint32_t[]){__VA_ARGS__})
uint32_t emit_extended(struct translator *t, uint32_t number, const struct type *type,
                       uint32_t count, const uint32_t *operands);
uint32_t emit_splat(struct translator *t, const struct type *type, uint32_t id);
void start_block(struct translator *t, struct ir_block *block);
void branch_to(struct translator *t, struct ir_block *block); // unless ended

// operations on values that were emitted (binary.c, convert.c)
uint32_t emit_binary(struct translator *t, uint32_t op, const struct type *type,
                     const struct type *left_type, uint32_t left,
                     const struct type *right_type, uint32_t right);
uint32_t convert_emit(struct translator *t, uint32_t id, const struct type *from,
                      enum base to);

// variables (variable.c)
uint32_t symbol_id(struct translator *t, struct symbol *symbol); // of a variable
struct symbol *variable_local(struct translator *t, const struct name *name,
                              const struct type *type, const struct position *at);
uint32_t temporary(struct translator *t, const struct type *type); // a pointer
void decorate_pointer(struct translator *t, uint32_t id, const struct type *type);

// the memory model (memory.c)
bool memory_is_vulkan(const struct translator *t, const struct preprocessed *source);
uint8_t memory_join(uint8_t a, uint8_t b); // of two declarations, MEMORY_*
uint32_t memory_scope(struct translator *t, uint32_t scope); // its id
// Memory operands of a load or store, up to three: returns their count.
uint32_t memory_operands(struct translator *t, const struct access *a, bool is_store,
                         uint32_t *out);

// expressions (value.c), accesses to memory (access.c), calls of built-in functions
// (builtin.c)
uint32_t emit_value(struct translator *t, const struct tree_expr *e);
void emit_effects(struct translator *t, const struct tree_expr *e); // without a value
uint32_t emit_builtin(struct translator *t, const struct tree_expr *e);
void access_of(struct translator *t, const struct tree_expr *e, struct access *out);
uint32_t access_pointer(struct translator *t, struct access *access);
uint32_t access_load(struct translator *t, struct access *access);
void access_store(struct translator *t, struct access *access, uint32_t id);
void local_access(const struct type *type, uint32_t pointer, struct access *out);

// precise variables of the function (precise.c)
void precise_mark(struct translator *t, uint32_t variable);
void precise_spread(struct translator *t, struct function *f);

#endif // KERNELS_COMPILER_EMIT_H
