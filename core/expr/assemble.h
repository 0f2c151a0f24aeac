// SPDX-License-Identifier: MIT
// An assembler of programs: an instruction that is there already is not made again, what
// constants give is computed at once, what nobody reads is left out.
#ifndef CORE_EXPR_ASSEMBLE_H
#define CORE_EXPR_ASSEMBLE_H

#include "tree.h"

#define ASSEMBLE_NONE UINT32_MAX

struct assembler {
    tn_expr_insn *insns;
    uint64_t *constants;
    uint32_t *table; // positions + 1 by content
    uint32_t num_insns, max_insns, num_constants, max_constants, table_size;
    tn_status status; // the first failure
};

// The position of the instruction. After a failure: 0, harmless.
uint32_t assemble(struct assembler *a, int op, tn_dtype dtype, uint32_t x, uint32_t y,
                  uint32_t z);
uint32_t assemble_constant(struct assembler *a, tn_dtype dtype, uint64_t bits);
uint32_t assemble_cast(struct assembler *a, tn_dtype dtype, uint32_t x);

// Leaves out what no output needs, and renumbers `outputs`.
tn_status assembler_end(struct assembler *a, uint32_t *outputs, uint32_t num_outputs);
void assembler_finish(struct assembler *a);

#endif // CORE_EXPR_ASSEMBLE_H
