// SPDX-License-Identifier: MIT
// Shared by the writers of GLSL: program_glsl.c (elementwise programs) and
// program_rows_glsl.c (row programs) and program_function_glsl.c (programs beside kernels).
#ifndef VULKAN_PROGRAM_PROGRAM_GLSL_H
#define VULKAN_PROGRAM_PROGRAM_GLSL_H

#include "program.h"

// Stands behind the prelude, whose lines have names of files: for errors.
#define GLSL_PROGRAM_LINES "#line 1 \"program\"\n"

struct glsl_writer {
    struct text *out;
    const tn_expr_program *program;
    const struct program_class *class;
    uint32_t first_extent, first_stride, first_param; // in the arguments
    uint32_t num_args;
};

static inline tn_dtype glsl_operand_dtype(const struct glsl_writer *w, uint32_t operand)
{
    uint32_t inputs = w->class->num_inputs;
    return operand < inputs ? w->program->input_dtypes[operand]
                            : w->program->output_dtypes[operand - inputs];
}

// Fills *w for an elementwise program: where its arguments are.
void glsl_begin(struct glsl_writer *w, struct text *out, const tn_expr_program *program,
                const struct program_class *class);

// The function element(): the number of an element, its inputs as C_, its outputs.
void glsl_write_element(const struct glsl_writer *w);

// at<i>, where operand i has element `i` of the elements in row-major order, and step<i>,
// the stride to the next, of those that have one.
void glsl_write_positions(const struct glsl_writer *w);

// The definitions that the prelude asks for; the operands and arguments: B, V, A(i).
void glsl_write_needs(const struct glsl_writer *w);
void glsl_write_bindings(const struct glsl_writer *w);

// Values, as text without a semicolon: the bits of a program's constant, the param at a
// word of the arguments, an instruction with operands that are no leaf and reduce nothing,
// on operands of dtype `from` with these names.
void glsl_write_constant(const struct glsl_writer *w, tn_dtype dtype, uint64_t bits);
void glsl_write_param(const struct glsl_writer *w, tn_dtype dtype, uint32_t at);
// How far an index of `dtype` leads, its number of elements and stride being at `at`.
void glsl_write_taken(const struct glsl_writer *w, tn_dtype dtype, const char *index,
                      uint32_t at);
void glsl_write_operation(const struct glsl_writer *w, uint32_t op, tn_dtype from,
                          tn_dtype dtype, const char *const *names);

#endif // VULKAN_PROGRAM_PROGRAM_GLSL_H
