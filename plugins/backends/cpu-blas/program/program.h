// SPDX-License-Identifier: MIT
// Expression programs: prepared once for each step, then run in blocks of elements that
// stay in the first-level cache.
//
// Each value of a program has a *location*: a scalar, a register (one block of elements),
// or an operand's own memory. A contiguous operand is used in its memory; other inputs are
// gathered into, and other outputs scattered from, a register block by block.
#ifndef CPU_BLAS_PROGRAM_H
#define CPU_BLAS_PROGRAM_H

#include "device/arena.h"
#include "device/device.h"

enum program_action {
    ACTION_MAP,     // map(out, in[0], in[1], ...)
    ACTION_FILL,    // repeats the scalar in[0] over a register; once for each thread
    ACTION_GATHER,  // copies input `cpu_operand` into a register
    ACTION_SCATTER, // copies a register to output `cpu_operand`
    ACTION_INDEX,   // writes the row-major index of each element
    ACTION_STREAM,  // copies in[0] to `out`, past the caches
    ACTION_SPREAD,  // repeats the scalar in[0] over a contiguous output
    ACTION_REPEAT,  // of groups: copies the one row of `cpu_operand` to all rows of a
                    // register
    // Folds in[0], or a sum of terms of in[0] and in[1], into the accumulator `out`, which
    // `start` begins at the row's first block. After its last one, unless `single` is
    // NO_LOCATION, the result is written there as f32.
    ACTION_REDUCE,
    ACTION_SUM_ROWS, // for groups: REDUCE of sums of f32
};

struct program_op { // 32 bytes: a block runs all of them
    union {
        cpu_map_fn *map;         // MAP
        cpu_reduce_row_fn *fold; // REDUCE of one operand
        cpu_sum_row_fn *sum;     // REDUCE of two operands
        cpu_sum_rows_fn *rows;   // SUM_ROWS
    };
    uint16_t in[CPU_MAX_OPERANDS]; // locations
    uint16_t out;
    uint16_t start, single; // REDUCE: locations
    uint16_t operand;       // GATHER, SCATTER
    uint8_t action;         // ACTION_...
    uint8_t num_in;
    uint8_t scalars;   // MAP, REDUCE: bit k: in[k] is one element for all
    uint8_t size_log2; // FILL, SPREAD, GATHER, SCATTER, STREAM: of an element
    bool once_a_row;   // MAP: one element a row
    // For groups, FILL and SPREAD: in[0] has an element for each row; REDUCE: in[1] has.
    bool by_rows;
};

// A part of a row program. Its first operations run once a row, the others for each block
// of the row. Reductions that one phase folds are finished at the beginning of the next.
struct program_phase {
    uint32_t first, num_ops; // in program.ops
    uint32_t num_row_ops;    // of these, the first ones: once a row
};

// A location in an operand's memory.
struct program_pointer {
    uint16_t location;
    uint16_t step;    // bytes from element to element; 0: one element for all
    uint16_t operand; // inputs first, then outputs
    bool in_rows;     // only the elements of one row are adjacent
};

// A location that is a register. Locations with disjoint live ranges share a register.
struct program_register {
    uint16_t location;
    uint16_t number;
};

// A copy that permutes axes: a matrix transposition for each element of the outer axes.
// Elements along `columns` are adjacent in the input, those along `rows` in the output. Or
// a copy whose rows are short, as of elements that are repeated: it goes along `columns`,
// which may have any strides, for one after the other of a few `rows`.
struct program_transposition {
    int64_t rows, columns;         // of the input's matrix
    int64_t in_stride, out_stride; // elements between the input's rows, and the output's
    int64_t in_column;             // elements between the input's columns
    int64_t band;                  // columns of a unit of work
    int64_t bands;                 // of columns, in each matrix: the units of work
    int64_t count;                 // bands of all matrices
    int32_t rank;                  // of the outer axes
    uint32_t size_log2;            // of an element
    int64_t extent[TN_MAX_RANK], in_step[TN_MAX_RANK], out_step[TN_MAX_RANK]; // outer axes
};

#define PROGRAM_MAX_LOCATIONS 1024
#define NO_LOCATION UINT16_MAX

struct program {
    const struct cpu_kernels *kernels;
    int64_t count; // elements
    int64_t block; // elements
    int64_t grain; // least elements of a piece
    bool fetches;  // what the next block reads and writes is fetched during this one
    uint32_t num_locations, num_registers, num_once, num_fills, num_ops, num_pointers;
    struct program_op *once;  // first, on scalars
    struct program_op *fills; // then, once for each thread
    struct program_op *ops;   // for each block
    struct program_pointer *pointers;
    uint32_t register_bytes;            // of one register
    struct program_register *registers; // then the values of a row, then the residents
    uint64_t *scalars;  // [num_locations]: initial values of scalar locations
    uint8_t *is_scalar; // [num_locations]
    tn_layout *layouts; // of operands
    uint32_t num_operands;
    // A row program, with num_phases > 0: `count` and `grain` are rows.
    struct program_phase *phases;
    uint32_t num_phases;
    uint32_t num_lines;      // values of a row: 8 bytes each, behind the registers
    int64_t row;             // elements of a row; of a program without phases the elements
                             // within which each block lies, 0: anywhere
    uint32_t registers_end;  // bytes of all registers
    uint32_t num_residents;  // registers for whole rows, behind the values of a row
    uint32_t resident_bytes; // of one
    uint32_t resident_width; // of an element
    uint16_t residents;      // the location that says where they begin
    bool streams;            // has operations STREAM
    // Rows that each operation takes at a time, where all lie side by side: a register has
    // `group` rows, and a value of a row as many elements.
    int64_t group; // 1: rows are run one by one, in blocks
    // Not NULL: the whole program is this transposing copy.
    struct program_transposition *transposition;
    uint32_t copied; // index of the input to copy
};

// The data of a program that a run changes. Each queue has a frame of its own.
struct program_frame {
    unsigned char *
        *locations; // [num_locations]: addresses, for the thread that runs the launch
    unsigned char **bases; // addresses of the operands' first elements, set before each run
};

// Gives a program that `cpu_arena` owns. `in_place`: an output may be in an input's memory.
tn_status program_prepare(tn_device *device, struct cpu_arena *arena, const tn_step *step,
                          bool in_place, struct program **out_program);

// Sets program->transposition if the step is a copy that permutes axes.
tn_status program_find_transposition(struct cpu_arena *arena, const tn_step *step,
                                     struct program *program);
void program_transpose(struct cpu_queue *queue, const struct program *program,
                       const struct program_frame *frame);

// Why the device refuses this row program; NULL: it does not.
const char *program_rows_refused(const tn_device *device, const tn_step *step);

// Runs rows [begin, end) of a row program, one by one or in groups.
void program_run_groups(const struct program *program, unsigned char *const *bases,
                        unsigned char **locations, int64_t begin, int64_t end);
void program_run_rows(const struct program *program, unsigned char *const *bases,
                      unsigned char **locations, int64_t begin, int64_t end);

// Bytes of memory that a frame needs, aligned to 8.
uint64_t program_frame_bytes(const struct program *program);
void program_frame_init(const struct program *program, struct cpu_queue *queue,
                        void *memory, struct program_frame *out_frame);

// Runs the program. The frame is one of `queue`, and its `bases` are set.
void program_run(struct cpu_queue *queue, const struct program *program,
                 const struct program_frame *frame);

// Prepares a run in parts: computes the uniform values. The frame's `bases` are set.
void program_begin(const struct program *program, const struct program_frame *frame);

// Runs elements [begin, end) on the calling thread, which is `worker` of the queue's
// launch. The operands in the set `through` lie at `values`, from element `begin` on.
void program_run_part(struct cpu_queue *queue, const struct program *program,
                      const struct program_frame *frame, uint32_t through, void *values,
                      int64_t begin, int64_t end, uint32_t worker);

#endif // CPU_BLAS_PROGRAM_H
