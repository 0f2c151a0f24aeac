// SPDX-License-Identifier: MIT
// Kernels of row programs (TN_EXPR_ROWS): their classes, and the generator that writes them
// in either language, through a table of functions.
//
// A row is computed by `lanes` invocations of a workgroup of `group`, a power of two each.
// Lane k has the elements k * per_item .. + per_item of each chunk of lanes * per_item
// elements. There are `chunks` chunks, written out, so that what is computed of each
// element stays in registers from one phase to the next, and the row is read once. Longer
// rows (`loops`) are read again by each phase, `chunks` chunks at a time.
//
// A phase is the work between two reductions, in the longest chain: it computes what its
// reductions need, or the outputs, then folds the elements of each lane, then the lanes.
// With `subgroup`, the size of the device's subgroups, lanes are folded by shuffles, and
// only rows of several subgroups need shared memory and a barrier for each phase. Without,
// shared memory does all of it, by 16 lanes at a time.
#ifndef VULKAN_PROGRAM_PROGRAM_ROWS_H
#define VULKAN_PROGRAM_PROGRAM_ROWS_H

#include "program.h"

// Facts of the device that the class of a row program depends on, besides the step.
struct rows_device {
    uint32_t subgroup;  // invocations of each subgroup that can shuffle; 0: it cannot
    uint32_t max_group; // invocations a workgroup
    bool is_software;   // compiles slowly: short code
};

// Why the step would be slower than what the core makes of it without row programs, or
// cannot run; static text. NULL: it runs.
const char *program_rows_refused(const tn_step *step);

// program_classify() for row programs that are not refused.
void program_classify_rows(const tn_step *step, const struct rows_device *device,
                           uint32_t push_words, struct program_class *out,
                           struct program_args *args);

// The number of rows that a step computes.
uint64_t program_rows(const tn_step *step);

// --- writing kernels -------------------------------------------------------------------

// Whether `position` reduces; the number of reductions.
bool rows_is_reduction(const tn_expr_program *program, uint32_t position);
uint32_t rows_count_reductions(const tn_expr_program *program);

// Scope in which an instruction's value is the same.
enum rows_scope { ROWS_ALL, ROWS_ROW, ROWS_ELEMENT };

// Finds the scopes of all instructions, by how the class reads the inputs.
void rows_find_scopes(const tn_expr_program *program, const struct program_class *class,
                      enum rows_scope scopes[TN_EXPR_MAX_INSNS]);

// Whether the code has an operand's strides along the axes of rows; along the row's.
static inline bool rows_has_strides(char access)
{
    return access != ACCESS_SCALAR && access != ACCESS_TAKEN_FLAT;
}

static inline bool rows_has_step(char access)
{
    return access == ACCESS_STRIDED || access == ACCESS_TAKEN;
}

// Elements of each array in shared memory.
uint32_t rows_shared_size(const tn_expr_program *program,
                          const struct program_class *class);

enum rows_operator { ROWS_ADD, ROWS_SUB, ROWS_MUL, ROWS_DIV, ROWS_AND, ROWS_SHIFT_RIGHT };

// A language to write in. Values are numbers that its functions give, 0 is none; unsigned
// integers unless a dtype says otherwise, in the type that the dtype is computed in.
struct rows_language {
    uint32_t (*number)(void *out, uint32_t value);
    uint32_t (*argument)(void *out, uint32_t word);
    uint32_t (*group_number)(void *out);
    // This invocation's number in its workgroup. With subgroups each has adjacent numbers.
    uint32_t (*invocation)(void *out);
    uint32_t (*compute)(void *out, enum rows_operator operator, uint32_t a, uint32_t b);
    uint32_t (*is_less)(void *out, uint32_t a, uint32_t b); // bool
    uint32_t (*both)(void *out, uint32_t a, uint32_t b);    // of bools
    uint32_t (*choose)(void *out, tn_dtype dtype, uint32_t test, uint32_t a, uint32_t b);

    // Elements of an operand from `index` on: one, or four at a multiple of 4.
    void (*load)(void *out, uint32_t operand, bool four, uint32_t index, uint32_t *values);
    void (*store)(void *out, uint32_t operand, bool four, uint32_t index,
                  const uint32_t *values);

    uint32_t (*constant)(void *out, tn_dtype dtype, uint64_t bits); // as in a program
    uint32_t (*param)(void *out, tn_dtype dtype, uint32_t word);
    uint32_t (*wide)(void *out, uint32_t value); // as an i64
    // How far the element at an index, a value of `dtype`, lies behind that at index 0; the
    // number of elements and their stride are at `word` of the arguments. NULL in a
    // language whose backend gets no TAKE.
    uint32_t (*taken)(void *out, tn_dtype dtype, uint32_t index, uint32_t word);
    // Instruction `position`, which is neither a leaf nor a reduction, of `values` by
    // position.
    uint32_t (*instruction)(void *out, uint32_t position, const uint32_t *values);
    uint32_t (*fold)(void *out, uint32_t op, tn_dtype dtype, uint32_t a, uint32_t b);

    uint32_t (*shuffle)(void *out, tn_dtype dtype, uint32_t value, uint32_t mask);
    uint32_t (*shared_load)(void *out, tn_dtype dtype, uint32_t index);
    void (*shared_store)(void *out, tn_dtype dtype, uint32_t index, uint32_t value);
    void (*barrier)(void *out);

    // A variable, which starts as `value`.
    uint32_t (*variable)(void *out, tn_dtype dtype, uint32_t value);
    uint32_t (*get)(void *out, tn_dtype dtype, uint32_t variable);
    void (*set)(void *out, uint32_t variable, uint32_t value);
    void (*begin_if)(void *out, uint32_t test);
    void (*end_if)(void *out);
    // for (i = 0; i < end; i += step): gives i.
    uint32_t (*begin_loop)(void *out, uint32_t end, uint32_t step);
    void (*end_loop)(void *out);
};

// Writes main's body. False when out of memory.
bool program_write_rows(const struct rows_language *language, void *out,
                        const tn_expr_program *program, const struct program_class *class);

// The word of the arguments at which the params begin.
uint32_t rows_first_param(const struct program_class *class);

#endif // VULKAN_PROGRAM_PROGRAM_ROWS_H
