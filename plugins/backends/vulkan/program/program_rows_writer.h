// SPDX-License-Identifier: MIT
// Shared by the writers of row programs' kernels: program_rows.c and program_rows_load.c,
// which reads operands.
#ifndef VULKAN_PROGRAM_PROGRAM_ROWS_WRITER_H
#define VULKAN_PROGRAM_PROGRAM_ROWS_WRITER_H

#include "program_rows.h"

#define MOST_ELEMENTS 64 // of a lane: chunks times per_item

struct rows_writer {
    const struct rows_language *to;
    void *out;
    const tn_expr_program *program;
    const struct program_class *class;
    uint32_t num_phases;
    enum rows_scope scopes[TN_EXPR_MAX_INSNS];
    uint32_t levels[TN_EXPR_MAX_INSNS];      // reductions in the longest chain before it
    uint32_t param_words[TN_EXPR_MAX_INSNS]; // where PARAM and TAKE read
    bool needed[TN_EXPR_MAX_INSNS];          // by the phase, and not there yet
    // Values in the language; 0: not written yet.
    // Of ROWS_ALL and ROWS_ROW; of a TAKE that finds a row, where that begins.
    uint32_t rows[TN_EXPR_MAX_INSNS];
    uint32_t elements[TN_EXPR_MAX_INSNS][MOST_ELEMENTS];
    uint32_t folded[TN_EXPR_MAX_INSNS]; // by reduction: of the lane's elements
    uint32_t num_rows, extent;          // from the arguments
    uint32_t lane, invocation, row, is_row;
    uint32_t first[PROGRAM_MAX_OPERANDS]; // index of the row's first element
    uint32_t step[PROGRAM_MAX_OPERANDS];  // to the next, of STRIDED operands
    uint32_t block;                       // the loop's position; 0: there is no loop
    uint32_t at[MOST_ELEMENTS], inside[MOST_ELEMENTS]; // by chunk; inside 0: always
};

static inline uint32_t number(struct rows_writer *w, uint32_t value)
{
    return w->to->number(w->out, value);
}

static inline uint32_t compute(struct rows_writer *w, enum rows_operator operator,
                               uint32_t a, uint32_t b)
{
    return w->to->compute(w->out, operator, a, b);
}

// The position of the operand's element that is the first of chunk `c` of the row.
uint32_t rows_index(struct rows_writer *w, uint32_t operand, uint32_t c);

// Where a TAKE of one value a row, or of a row's elements, reads (the first of them).
uint32_t rows_write_position(struct rows_writer *w, uint32_t i);

// Whether the instruction is a TAKE of a row's elements, which lie from one position on.
bool rows_takes_row(const struct rows_writer *w, uint32_t i);

// Whether rows_write_loads() gives the instruction's elements: of a LOAD, or of a TAKE of a
// row's elements.
bool rows_is_loaded(const struct rows_writer *w, uint32_t i);

// Writes the loads that the phase needs, of all elements that a lane has.
void rows_write_loads(struct rows_writer *w);

// Writes a TAKE at an element's own index.
uint32_t rows_write_take(struct rows_writer *w, uint32_t i, uint32_t element);

#endif // VULKAN_PROGRAM_PROGRAM_ROWS_WRITER_H
