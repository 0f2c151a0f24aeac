// SPDX-License-Identifier: MIT
// Kernels of expression programs: a step's class, which determines the code; its arguments;
// and the GLSL for a class. Pure functions, without a device.
#ifndef VULKAN_PROGRAM_PROGRAM_H
#define VULKAN_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/backend.h>
#include "../device/hash.h"
#include "vulkan/launch.h"

#define PROGRAM_MAX_OPERANDS (TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS)
#define PROGRAM_GROUP 256 // invocations a workgroup

// How a kernel addresses an operand.
enum program_access {
    ACCESS_FLAT = 'F',    // contiguous; four at a time, aligned
    ACCESS_LOOSE = 'L',   // contiguous; not aligned to four
    ACCESS_SCALAR = 'S',  // one element for all
    ACCESS_ROW = 'R',     // strided; four along the last axis are adjacent and aligned
    ACCESS_REPEAT = 'B',  // strided; stride 0 along the last axis
    ACCESS_STRIDED = 'X', // strided in any other way
    ACCESS_THROUGH = 'T', // no memory: what passes between a kernel and its operand
    // Gathered from, by instruction TAKE: at a position that depends on the element beside
    // the index; at one position for all; in row programs: for all of a row; four adjacent
    // elements at a time, aligned, where these have one index.
    ACCESS_TAKEN = 'K',
    ACCESS_TAKEN_FLAT = 'k',
    ACCESS_TAKEN_REPEAT = 'b',
    ACCESS_TAKEN_FOUR = 'q',
    // As ACCESS_THROUGH, of a kernel that gives several elements at once: this one and the
    // ones behind it, by their number.
    ACCESS_PART = '0',
};

static inline bool access_is_part(char access)
{
    return access >= ACCESS_PART && access <= '9';
}

// Whether the operand has no memory.
static inline bool access_is_through(char access)
{
    return access == ACCESS_THROUGH || access_is_part(access);
}

static inline bool access_is_taken(char access)
{
    return access == ACCESS_TAKEN || access == ACCESS_TAKEN_FLAT ||
           access == ACCESS_TAKEN_REPEAT || access == ACCESS_TAKEN_FOUR;
}

// Whether the code has an operand's stride along each axis.
static inline bool access_has_strides(char access)
{
    return access == ACCESS_STRIDED || access == ACCESS_ROW || access == ACCESS_REPEAT ||
           access == ACCESS_TAKEN || access == ACCESS_TAKEN_FOUR;
}

// All that the code depends on besides the program. Dispatches that differ only in extents,
// strides, offsets and parameters share a kernel, and pass these as arguments.
struct program_class {
    uint32_t rank;     // axes of the index to split; 0: no operand has strides
    uint32_t per_item; // elements an invocation: 4, or 1 if rows are no multiple of 4, or
                       // an operand is complex
    uint32_t num_inputs, num_outputs;
    bool args_in_buffer; // too many for push constants: in a buffer after the operands
    char access[PROGRAM_MAX_OPERANDS]; // inputs, then outputs
    uint32_t lanes;                    // above 0: a row program, see program_rows.h
    uint32_t chunks, subgroup, group;
    bool loops, whole;
    bool divides;     // its arguments include constants that divide by extents
    bool is_function; // a kernel calls it, for one element: the code is a function
    uint32_t parts;   // of a function: f32 elements that the kernel gives at once; 0: one
};

// Arguments, as 32-bit words: the number of elements (of rows, and of a row's elements),
// each operand's offset, the extents (if it `divides`, then two words an axis by which it
// divides by them), the strides of each operand that needs strides, and the params, those
// of TAKE in pairs.
#define PROGRAM_MAX_ARGS                                                                   \
    (2 + PROGRAM_MAX_OPERANDS + TN_MAX_RANK * (PROGRAM_MAX_OPERANDS + 3) +                 \
     2 * TN_EXPR_MAX_INSNS)
struct program_args {
    uint32_t num_words;
    uint64_t values; // bit i: words[i] is a value; others are extents, strides and offsets
    uint32_t words[PROGRAM_MAX_ARGS];
};

// The words that extents, and constants that divide by them, take among the arguments.
static inline uint32_t program_extent_words(const struct program_class *class)
{
    return class->divides ? 3 * class->rank : class->rank;
}

// Determines a step's class and arguments. Up to `push_words` arguments go into push
// constants.
void program_classify(const tn_step *step, uint32_t push_words, struct program_class *out,
                      struct program_args *args);

// program_classify() for a program fused into a kernel; its arguments lie in a buffer.
void program_classify_function(const tn_step *step, struct program_class *out,
                               struct program_args *args);

// The hash of the code: of the program's structure and the class.
struct vk_hash program_class_hash(const tn_expr_program *program,
                                  const struct program_class *class);

// Invocations a workgroup of the class's kernel, and the elements (of a row program: the
// rows) that a workgroup computes.
uint32_t program_group(const struct program_class *class);
uint32_t program_per_group(const struct program_class *class);

// The layout of an operand: inputs first, then outputs.
const tn_layout *program_operand(const tn_step *step, uint32_t operand);
void program_add_arg(struct program_args *args, uint64_t word);
// Adds the params that a step's program reads, in the order of its instructions: of TAKE
// the number of elements and the stride. The others are values, but for those by which a
// position is divided.
void program_add_params(const tn_step *step, struct program_args *args);

// The number of elements that a step computes.
uint64_t program_elements(const tn_step *step);

// Whether the program gathers from the operand.
bool program_takes(const tn_expr_program *program, uint32_t operand);
// Whether four elements that are adjacent along the last axis are so in the operand, which
// is gathered from, and aligned. `is_even`: by instruction, whether its value is the same
// for all four.
bool program_takes_rows(const tn_step *step, uint32_t operand, const bool *is_even);
// Whether elements along the last axis are adjacent, and each fourth is aligned to four.
bool program_is_aligned(const tn_layout *layout);

// The words that the params of a program take among the arguments.
uint32_t program_count_params(const tn_expr_program *program);

// The set of dtypes (TN_DTYPE_BIT) that the program computes with, those of the parts of
// complex numbers included; dtypes that are only stored do not count.
uint32_t program_dtypes(const tn_expr_program *program);
// Whether the program has exp, log, sin, ... in f64, or any complex number of f64, which
// need functions_f64.glsl.
bool program_has_f64_function(const tn_expr_program *program);

// A string that grows. Zero is empty. `failed`: out of memory, and later text is dropped.
struct text {
    char *data;
    size_t size, capacity;
    bool failed;
};
void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_finish(struct text *text);

// Writes the kernel's GLSL, beginning with "#version". `prelude` and `complex_prelude`:
// kernels/vulkan/program/expression.glsl and complex.glsl with their includes resolved. For
// a class with is_function: a module with the function that a kernel's module calls in
// place of a store, or of a load: spirv_fuse.h says with what. Operand i is at binding i,
// the arguments come behind.
void program_write_glsl(struct text *out, const char *prelude, const char *complex_prelude,
                        const tn_expr_program *program, const struct program_class *class);

// The operand that the function takes or gives: of the program's inputs and then outputs,
// the first that has no memory.
uint32_t program_through(const struct program_class *class);

#endif // VULKAN_PROGRAM_PROGRAM_H
