// SPDX-License-Identifier: MIT
// State that the stages of preparing a program share.
#ifndef CPU_BLAS_PROGRAM_PREPARE_H
#define CPU_BLAS_PROGRAM_PREPARE_H

#include "program.h"

// Memory of row programs: LOCATION_LINE has 8 bytes, for a value of one row,
// LOCATION_RESIDENT a register for a whole row, and LOCATION_BASE is where these begin. All
// are each thread's own.
enum location_kind {
    LOCATION_SCALAR,
    LOCATION_REGISTER,
    LOCATION_POINTER,
    LOCATION_LINE,
    LOCATION_RESIDENT,
    LOCATION_BASE,
};

// For which elements a value is computed once.
enum value_scope { SCOPE_ELEMENT, SCOPE_ROW, SCOPE_ALL };

// Elements of a block of a row that takes several: a multiple of 1024, by which sums of
// rows are cut (kernels/cpu/reduce/reduce.h). Up to twice as many are one block.
#define ROW_BLOCK 1024

struct program_value { // the result of an instruction
    int32_t dtype;
    uint16_t location;
    uint16_t filled; // a register that repeats the value of a row or of all, or NO_LOCATION
    uint8_t scope;   // SCOPE_...; of all elements: "uniform"
    bool is_input;   // its location is an input's memory
    bool is_output;  // its location is an output's memory
};

// How an instruction is run: as itself, as one fused operation (CPU_FUSED_OPS), or not at
// all. A sum of two operands is of terms (CPU_SUM_...).
struct fusion {
    uint32_t op; // of a sum of terms: CPU_SUM_...
    uint32_t num_operands;
    uint32_t operands[CPU_MAX_OPERANDS];
    bool absorbed; // part of another instruction's fused operation
};

#define FUNCTION_PS 2000 // picoseconds: about what a function such as exp costs

#define PREPARE_MAX_OPS (4 * TN_EXPR_MAX_INSNS)

struct prepare {
    tn_device *device;
    struct cpu_arena *arena;
    const tn_step *step;
    const tn_expr_program *source;
    uint32_t cost; // picoseconds an element
    uint32_t num_once, num_fills, num_ops, num_pointers;
    uint16_t num_locations, num_registers;
    struct program_value values[TN_EXPR_MAX_INSNS + 1];
    struct fusion fusions[TN_EXPR_MAX_INSNS];
    struct program_op once[PREPARE_MAX_OPS], fills[PREPARE_MAX_OPS], ops[PREPARE_MAX_OPS];
    struct program_pointer pointers[PREPARE_MAX_OPS];
    // Fields of a row program.
    bool has_rows;
    bool in_place;    // an output may be in an input's memory
    bool streams;     // outputs are written past the caches
    int64_t group;    // rows of a group; 1: there are none
    bool many_blocks; // no residents: each phase computes again what it needs
    uint32_t num_residents;
    uint16_t residents;  // the LOCATION_BASE, if there are residents
    int64_t row;         // elements
    int64_t num_in_rows; // pointers `in_rows`
    uint32_t num_phases;
    uint8_t levels[TN_EXPR_MAX_INSNS]; // by instruction: reductions before it, in a chain
    // By instruction: of a reduction the accumulator, its start, and its result as an f32.
    uint16_t totals[TN_EXPR_MAX_INSNS], starts[TN_EXPR_MAX_INSNS],
        singles[TN_EXPR_MAX_INSNS];
    struct program_phase phases[TN_EXPR_MAX_INSNS + 1];
    uint8_t kinds[PROGRAM_MAX_LOCATIONS];
    uint16_t numbers[PROGRAM_MAX_LOCATIONS]; // the register of each register location
    uint64_t scalars[PROGRAM_MAX_LOCATIONS];
};

// The parts of preparing, in program_insn.c. Each gives or uses the location of a value.
void prepare_init(struct prepare *p, tn_device *device, struct cpu_arena *arena,
                  const tn_step *step);
uint16_t prepare_location(struct prepare *p, enum location_kind kind);
uint16_t prepare_pointer(struct prepare *p, uint32_t operand, uint32_t step);
struct program_op *prepare_op(struct prepare *p, enum program_action action, uint16_t out);
uint16_t prepare_filled(struct prepare *p, uint32_t v);
uint16_t prepare_converted(struct prepare *p, uint16_t from, int32_t from_dtype,
                           int32_t to_dtype, enum value_scope scope);
void prepare_number(struct prepare *p, uint32_t i, uint64_t bits);
void prepare_insn(struct prepare *p, uint32_t i);
bool prepare_may_write_directly(const struct prepare *p, const struct program_value *value);
void prepare_outputs(struct prepare *p); // of a program without rows
void prepare_registers(struct prepare *p);
uint32_t prepare_width(const struct prepare *p);
bool prepare_is_uniform(const tn_layout *layout);
bool prepare_is_contiguous(const tn_layout *layout);
static inline uint8_t log2_size(int32_t dtype)
{
    return (uint8_t)__builtin_ctz(cpu_dtype_size(dtype));
}

// Row programs, in program_rows.c; the rows of a group, if its operands lie as groups ask
// for, else 1, in program_groups.c.
int64_t prepare_group(const struct prepare *p);
bool prepare_is_repeated(const struct prepare *p, const tn_layout *layout);
void prepare_rows(struct prepare *p);
bool prepare_has_values_of_rows(const struct prepare *p);

// Fills p->fusions. In program_fuse.c.
void prepare_fusions(struct prepare *p);

#endif // CPU_BLAS_PROGRAM_PREPARE_H
