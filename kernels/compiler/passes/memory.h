// SPDX-License-Identifier: MIT
// Forwards values through memory within a block: a load through a pointer that a store or
// another load just used gives the same value.
//
// Accesses to volatile and coherent memory stay. After calls, barriers and atomic
// operations nothing is known. Two buffers may be the same memory.
#ifndef KERNELS_COMPILER_OPT_MEMORY_H
#define KERNELS_COMPILER_OPT_MEMORY_H

#include "../ir/ir.h"

enum { MOST_KNOWN = 32 };

struct memory {
    const struct ir *ir;
    struct {
        uint32_t pointer, value, root, storage;
    } known[MOST_KNOWN];
    uint32_t num, next; // next: that is overwritten when all are taken
};

void memory_forget(struct memory *memory);
// The value that a load gives, or 0. Notes what the instruction does.
uint32_t memory_access(struct memory *memory, const struct ir_inst *inst);
// Whether the instruction loads memory that does not change while the shader runs: inputs,
// push constants and uniform buffers.
bool memory_is_constant(const struct ir *ir, const struct ir_inst *inst);

#endif // KERNELS_COMPILER_OPT_MEMORY_H
