// SPDX-License-Identifier: MIT
// An assembler of programs: shares common subexpressions, folds constants, simplifies, and
// drops dead instructions at the end.
#ifndef CORE_EXPR_ASSEMBLE_H
#define CORE_EXPR_ASSEMBLE_H

#include "tree.h"

#define ASSEMBLE_NONE UINT32_MAX

struct assembler {
    tn_expr_insn *insns;
    uint64_t *constants;
    uint32_t *table; // hash table of instructions: position + 1; 0: free
    uint32_t num_insns, max_insns, num_constants, max_constants, table_size;
    tn_status status; // the first failure
};

// The position of the instruction, or of an equal and cheaper one. 0 after a failure.
uint32_t assemble(struct assembler *a, int op, tn_dtype dtype, uint32_t x, uint32_t y,
                  uint32_t z);
uint32_t assemble_constant(struct assembler *a, tn_dtype dtype, uint64_t bits);
// The number `bits` (a double) times the imaginary unit, of complex dtype `dtype`.
uint32_t assemble_imaginary(struct assembler *a, tn_dtype dtype, uint64_t bits);
uint32_t assemble_cast(struct assembler *a, tn_dtype dtype, uint32_t x);

// Drops instructions and constants that no output needs, and renumbers `outputs`.
tn_status assembler_end(struct assembler *a, uint32_t *outputs, uint32_t num_outputs);
void assembler_finish(struct assembler *a);

#endif // CORE_EXPR_ASSEMBLE_H
