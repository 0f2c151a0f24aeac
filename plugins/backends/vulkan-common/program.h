// SPDX-License-Identifier: MIT
// Elementwise programs as kernels: what of a step decides the code (its class), what are
// mere arguments, and the GLSL for a class. Pure: no device is needed.
#ifndef VULKAN_COMMON_PROGRAM_H
#define VULKAN_COMMON_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/backend.h>
#include "hash.h"

#define PROGRAM_MAX_OPERANDS (TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS)
#define PROGRAM_GROUP 256 // invocations a workgroup

// How an operand is reached.
enum program_access {
    ACCESS_FLAT = 'F',    // element i lies at offset + i; four at a time, aligned
    ACCESS_LOOSE = 'L',   // the same, unaligned
    ACCESS_SCALAR = 'S',  // one element for all
    ACCESS_ROW = 'R',     // strided, but four along the last axis are adjacent and aligned
    ACCESS_REPEAT = 'B',  // strided, and equal along the last axis
    ACCESS_STRIDED = 'X', // anything else
};

// What the code depends on, besides the program. Everything else is an argument: dispatches
// that differ only in extents, strides, offsets and parameters share one kernel.
struct program_class {
    uint32_t rank;     // of the index to take apart; 0: none is STRIDED, ROW or REPEAT
    uint32_t per_item; // elements an invocation: 4, or 1 when the last extent is odd
    uint32_t num_inputs, num_outputs;
    bool args_in_buffer; // more than fit push constants: in a buffer after the operands
    char access[PROGRAM_MAX_OPERANDS]; // inputs, then outputs
};

// Arguments, as 32-bit words: elements, an offset per operand, the extents, the strides of
// each operand that needs some, and the params.
#define PROGRAM_MAX_ARGS                                                                   \
    (1 + PROGRAM_MAX_OPERANDS + TN_MAX_RANK * (PROGRAM_MAX_OPERANDS + 1) +                 \
     2 * TN_EXPR_MAX_INSNS)
struct program_args {
    uint32_t num_words;
    uint32_t words[PROGRAM_MAX_ARGS];
};

// Sorts a step into its class and lists its arguments. Up to `push_words` of them go into
// push constants.
void program_classify(const tn_step *step, uint32_t push_words, struct program_class *out,
                      struct program_args *args);

// Identity of the code: of a program (structure alone, not its name), and with its class.
struct vk_hash program_hash(const tn_expr_program *program);
struct vk_hash program_class_hash(const tn_expr_program *program,
                                  const struct program_class *class);

// Elements of a step.
uint64_t program_elements(const tn_step *step);

// Set of dtypes that it computes with (not merely stores), by TN_DTYPE_BIT; and whether it
// has exp, log, sin, ... in f64, which functions_f64.glsl is for.
uint32_t program_dtypes(const tn_expr_program *program);
bool program_has_f64_function(const tn_expr_program *program);

// Text that grows. Zero is empty; `failed` once memory ran out, and then the rest is lost.
struct text {
    char *data;
    size_t size, capacity;
    bool failed;
};
void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_finish(struct text *text);

// Writes the kernel: "#version ..." on. `prelude` is the resolved
// kernels/glsl/expression.glsl.
void program_write_glsl(struct text *out, const char *prelude,
                        const tn_expr_program *program, const struct program_class *class);

// "f32"; as types.glsl has them.
const char *dtype_glsl(tn_dtype dtype);
uint32_t dtype_bytes(tn_dtype dtype);

#endif // VULKAN_COMMON_PROGRAM_H
