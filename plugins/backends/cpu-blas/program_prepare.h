// SPDX-License-Identifier: MIT
// State that the stages of preparing a program share.
#ifndef CPU_BLAS_PROGRAM_PREPARE_H
#define CPU_BLAS_PROGRAM_PREPARE_H

#include "program.h"

enum location_kind { LOCATION_SCALAR, LOCATION_REGISTER, LOCATION_POINTER };

#define NO_LOCATION UINT16_MAX

struct program_value { // the result of an instruction
    int32_t dtype;
    uint16_t location;
    uint16_t filled; // a register that repeats a uniform value, or NO_LOCATION
    bool uniform;    // equal for all elements
    bool is_input;   // its location is an input's memory
    bool is_output;  // its location is an output's memory
};

// How an instruction is run: as itself, as one fused operation (CPU_FUSED_OPS), or not at
// all.
struct fusion {
    uint32_t op;
    uint32_t num_operands;
    uint32_t operands[CPU_MAX_OPERANDS];
    bool absorbed; // part of another instruction's fused operation
};

#define PREPARE_MAX_OPS (2 * TN_EXPR_MAX_INSNS)

struct prepare {
    tn_device *device;
    struct arena *arena;
    const tn_step *step;
    const tn_expr_program *source;
    uint32_t cost; // picoseconds an element
    uint32_t num_once, num_fills, num_ops, num_pointers;
    uint16_t num_locations, num_registers;
    struct program_value values[TN_EXPR_MAX_INSNS + 1];
    struct fusion fusions[TN_EXPR_MAX_INSNS];
    struct program_op once[PREPARE_MAX_OPS], fills[PREPARE_MAX_OPS], ops[PREPARE_MAX_OPS];
    struct program_pointer pointers[PREPARE_MAX_OPS];
    uint8_t kinds[PROGRAM_MAX_LOCATIONS];
    uint16_t numbers[PROGRAM_MAX_LOCATIONS]; // the register of each register location
    uint64_t scalars[PROGRAM_MAX_LOCATIONS];
};

void prepare_init(struct prepare *p, tn_device *device, struct arena *arena,
                  const tn_step *step);

// Fills p->fusions. In program_fuse.c.
void prepare_fusions(struct prepare *p);

#endif // CPU_BLAS_PROGRAM_PREPARE_H
