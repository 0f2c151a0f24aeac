// SPDX-License-Identifier: MIT
// Expression programs: prepared once for a step, then run in blocks of elements that stay
// in the first-level cache.
//
// Each value of a program has a *place*: a scalar, a register (a block long), or an
// operand's own memory. Inputs that lie row-major without gaps are read where they are, and
// outputs are written where they belong; an input with other strides is gathered into a
// register block by block.
#ifndef CPU_BLAS_PROGRAM_H
#define CPU_BLAS_PROGRAM_H

#include "arena.h"
#include "device.h"

enum program_action {
    ACTION_MAP,     // map(place[out], place[in ...])
    ACTION_FILL,    // repeats the scalar in[0] over a register; once a thread
    ACTION_GATHER,  // input `operand` into a register
    ACTION_SCATTER, // a register into output `operand`
    ACTION_INDEX,   // numbers of elements
    ACTION_SPREAD,  // repeats the scalar in[0] over an output that has no gaps
};

struct program_op {
    cpu_map_fn *map;
    uint16_t in[CPU_MAX_OPERANDS];
    uint16_t out;
    uint8_t action;
    uint8_t num_in;
    uint8_t scalars;
    uint8_t size_log2; // FILL, SPREAD, GATHER, SCATTER: of an element
    uint32_t operand;
};

// A place that is an operand's memory.
struct program_pointer {
    uint16_t place;
    uint16_t step;    // bytes an element; 0: one element for all
    uint32_t operand; // inputs first, then outputs
};

// A place that is a register; several places may take turns in one.
struct program_register {
    uint16_t place;
    uint16_t number;
};

// A copy whose input has its neighbours along another axis than the output: a matrix turned
// for each element of the outer axes. Its rows are the output's columns.
struct program_transposition {
    int64_t rows, columns;         // of the input; neighbours lie along a row
    int64_t in_stride, out_stride; // elements between rows, and between the output's rows
    int64_t bands;                 // of columns, in each matrix
    int64_t count;                 // bands of all matrices
    int32_t rank;                  // of the outer axes
    uint32_t size_log2;            // of an element
    int64_t extent[TN_MAX_RANK], in_step[TN_MAX_RANK], out_step[TN_MAX_RANK];
};

#define PROGRAM_MAX_PLACES 1024

struct program {
    const struct cpu_kernels *kernels;
    int64_t count; // elements
    int64_t block; // elements
    int64_t grain; // elements a thread should have at least
    uint32_t num_places, num_registers, num_once, num_fills, num_ops, num_pointers;
    struct program_op *once;  // on scalars, before everything
    struct program_op *fills; // once a thread
    struct program_op *ops;   // each block
    struct program_pointer *pointers;
    uint32_t register_bytes; // of one register
    struct program_register *registers;
    unsigned char **places; // [num_places], for thread 0
    uint64_t *scalars;      // memory of scalar places
    tn_layout *layouts;     // of operands
    unsigned char **bases;  // of operands: their first element, set before each run
    uint32_t num_operands;
    // Not NULL: the whole program is this copy of one operand into another.
    struct program_transposition *transposition;
    uint32_t copied; // which input
};

// Gives a program that lives in `arena`.
tn_status program_prepare(tn_device *device, struct arena *arena, const tn_step *step,
                          struct program **out_program);

// Sets program->transposition if that is what the step is.
tn_status program_find_transposition(struct arena *arena, const tn_step *step,
                                     struct program *program);
void program_transpose(tn_device *device, const struct program *program);

// Computes; `bases` are set.
void program_run(tn_device *device, struct program *program);

#endif // CPU_BLAS_PROGRAM_H
