// SPDX-License-Identifier: MIT
// Shared by ir.c and types.c: tables of what the module has, by its words.
#ifndef KERNELS_COMPILER_IR_INTERN_H
#define KERNELS_COMPILER_IR_INTERN_H

#include "ir.h"

enum {
    NUM_SHAPES = IR_NUM_SHAPES,
    SHAPE_MEMORY = 0x40, // memory operands follow the ids
    SHAPE_ALL = IR_ALL_IDS,
    SHAPE_OTHER = 0xff, // the pattern says which
};
enum { IS_PURE = 1, HAS_EFFECTS = 2 };

struct ir_intern {
    struct ir_inst **slots; // types and constants, hashed; a power of two, or none
    uint32_t num_slots, num_used;
    uint64_t *decorated; // id << 32 | decoration, hashed in the same way; 0: free
    uint32_t num_pairs, num_decorated;
    uint32_t u32, i32, boolean; // types; 0: not made yet
    uint32_t capability_capacity;
    // By instruction below NUM_SHAPES: how many operands at the front are ids, where no
    // others are, or SHAPE_*; and IS_PURE, HAS_EFFECTS.
    uint8_t shapes[NUM_SHAPES], kinds[NUM_SHAPES];
    struct ir_inst *last_local; // the variable that ir_local() made last
    unsigned char *scratch;
    size_t scratch_size, scratch_used;
};

// Notes a decoration of an id, or, with IR_MEMBER, of a member of it.
enum { IR_MEMBER = 1 << 30 };
void ir_note_decoration(struct ir *ir, uint32_t id, uint32_t decoration);
void ir_add_function(struct ir *ir, struct ir_function *function);

#endif // KERNELS_COMPILER_IR_INTERN_H
