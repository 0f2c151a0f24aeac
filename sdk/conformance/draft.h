// SPDX-License-Identifier: MIT
// Segments made by hand, as the core makes them: programs of a few instructions, and steps
// that run them.
#ifndef CONFORMANCE_DRAFT_H
#define CONFORMANCE_DRAFT_H

#include "bench.h"

enum { DRAFT_STEPS = 64, DRAFT_SLOTS = 80, DRAFT_OPERANDS = 4, PROGRAM_INSNS = 8 };

// A program with what it points to. Not to be moved.
struct program {
    tn_expr_program record;
    tn_expr_insn insns[PROGRAM_INSNS];
    tn_dtype inputs[2], output;
    uint32_t result;
};

// out = x * params[0] + params[1]; for bool: !x.
void program_affine(struct program *p, tn_dtype dtype);
// out = x * params[0] + y; for bool: x ^ y.
void program_combine(struct program *p, tn_dtype dtype);
// out = one operation of up to three operands that are x, y and x < y.
void program_single(struct program *p, uint16_t op, uint32_t operands, tn_dtype operand,
                    tn_dtype result);

// A parameter's or constant's 8 bytes.
uint64_t word_of(tn_dtype dtype, int64_t value);

// A segment that is being written. Not to be moved.
struct draft {
    tn_segment segment;
    tn_step steps[DRAFT_STEPS];
    tn_value inputs[DRAFT_STEPS][DRAFT_OPERANDS], outputs[DRAFT_STEPS];
    uint64_t params[DRAFT_STEPS][2];
    tn_slot slots[DRAFT_SLOTS];
};

void draft_start(struct draft *d);
uint32_t draft_slot(struct draft *d, uint32_t flags, uint64_t size);

// `count` elements without gaps from the slot's first byte on.
tn_value flat_value(uint32_t slot, tn_dtype dtype, int64_t count);
// All layouts with neighbouring axes joined where all allow it.
void values_merge(tn_value *values, uint32_t count);

// The next step: a program of one or two inputs, and its params as whole numbers.
tn_step *draft_program(struct draft *d, const struct program *program, const tn_value *in,
                       const tn_value *out, int64_t a, int64_t b);
// The next step: a kernel.
tn_step *draft_kernel(struct draft *d, const tn_primitive *primitive,
                      const tn_kernel *kernel, const tn_value *in, uint32_t num_inputs,
                      const tn_value *out);

#endif // CONFORMANCE_DRAFT_H
