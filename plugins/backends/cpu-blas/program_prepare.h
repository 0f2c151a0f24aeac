// SPDX-License-Identifier: MIT
// What the stages of preparing a program share.
#ifndef CPU_BLAS_PROGRAM_PREPARE_H
#define CPU_BLAS_PROGRAM_PREPARE_H

#include "program.h"

enum place_kind { PLACE_SCALAR, PLACE_REGISTER, PLACE_POINTER };

#define NO_PLACE UINT16_MAX

struct value { // of an instruction
    int32_t dtype;
    uint16_t place;
    uint16_t filled; // a register that repeats a uniform value; or NO_PLACE
    bool uniform;    // the same for all elements
    bool is_input;   // its place is an input's memory
    bool is_output;  // its place is an output's memory
};

// What an instruction is run as: itself, or part of a fused one.
struct fusion {
    uint32_t op;
    uint32_t num_operands;
    uint32_t operands[CPU_MAX_OPERANDS];
    bool absorbed; // another instruction does its work
};

#define PREPARE_MAX_OPS (2 * TN_EXPR_MAX_INSNS)

struct prepare {
    tn_device *device;
    struct arena *arena;
    const tn_step *step;
    const tn_expr_program *source;
    uint32_t cost; // picoseconds an element
    uint32_t num_once, num_fills, num_ops, num_pointers;
    uint16_t num_places, num_registers;
    struct value values[TN_EXPR_MAX_INSNS + 1];
    struct fusion fusions[TN_EXPR_MAX_INSNS];
    struct program_op once[PREPARE_MAX_OPS], fills[PREPARE_MAX_OPS], ops[PREPARE_MAX_OPS];
    struct program_pointer pointers[PREPARE_MAX_OPS];
    uint8_t kinds[PROGRAM_MAX_PLACES];
    uint16_t numbers[PROGRAM_MAX_PLACES]; // registers of places
    uint64_t scalars[PROGRAM_MAX_PLACES];
};

void prepare_init(struct prepare *p, tn_device *device, struct arena *arena,
                  const tn_step *step);

// Fills fusions.
void prepare_fusions(struct prepare *p);

uint16_t prepare_place(struct prepare *p, enum place_kind kind);
struct program_op *prepare_op(struct prepare *p, enum program_action action, uint16_t out);

#endif // CPU_BLAS_PROGRAM_PREPARE_H
