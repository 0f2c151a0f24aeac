// SPDX-License-Identifier: MIT
// Builds segments by hand, as the core would: expression programs of a few instructions,
// and steps that run them.
#ifndef CONFORMANCE_SEGMENT_DRAFT_H
#define CONFORMANCE_SEGMENT_DRAFT_H

#include "../kit/fixture.h"

enum { DRAFT_STEPS = 64, DRAFT_SLOTS = 80, DRAFT_OPERANDS = 4, PROGRAM_INSNS = 8 };

// An expression program, and the arrays that `record` points to: it must not be moved.
struct draft_program {
    tn_expr_program record;
    tn_expr_insn insns[PROGRAM_INSNS];
    tn_dtype inputs[2], output;
    uint32_t result;
};

// Results of a program whose two inputs are a table and indices: the table's element at the
// index; in rows, that less the sum of the row; the element at the row's greatest index,
// plus the index.
enum take_form { TAKE_ELEMENT, TAKE_CENTRED, TAKE_AT_MOST };

// out = x * params[0] + params[1]; for bool: !x.
void program_affine(struct draft_program *p, tn_dtype dtype);
// out = x * params[0] + y; for bool: x ^ y.
void program_combine(struct draft_program *p, tn_dtype dtype);
// out = one instruction on up to three operands, which are x, y and x < y.
void program_single(struct draft_program *p, uint16_t op, uint32_t operands,
                    tn_dtype operand, tn_dtype result);

// Both dtypes of TAKE_AT_MOST are TN_I32. The step's params are those of TAKE.
void program_take(struct draft_program *p, enum take_form form, tn_dtype table,
                  tn_dtype indices);

// A segment under construction. Its tables point into the struct: it must not be moved.
struct draft {
    tn_segment segment;
    tn_step steps[DRAFT_STEPS];
    tn_value inputs[DRAFT_STEPS][DRAFT_OPERANDS], outputs[DRAFT_STEPS];
    uint64_t params[DRAFT_STEPS][2];
    tn_slot slots[DRAFT_SLOTS];
};

void draft_start(struct draft *d);
uint32_t draft_slot(struct draft *d, uint32_t flags, uint64_t size);

// A value of `count` contiguous elements at the start of the slot.
tn_value flat_value(uint32_t slot, tn_dtype dtype, int64_t count);
// Merges adjacent axes in all `count` layouts, where every layout allows it.
void values_merge(tn_value *values, uint32_t count);

// Appends a step that runs a program of one or two inputs; `a` and `b` are its parameters.
tn_step *draft_program(struct draft *d, const struct draft_program *program,
                       const tn_value *in, const tn_value *out, int64_t a, int64_t b);
// Appends a step that runs a kernel.
tn_step *draft_kernel(struct draft *d, const tn_primitive *primitive,
                      const tn_kernel *kernel, const tn_value *in, uint32_t num_inputs,
                      const tn_value *out);

#endif // CONFORMANCE_SEGMENT_DRAFT_H
