// SPDX-License-Identifier: MIT
// Shared by the writers of GLSL: program_glsl.c (values), program_glsl_kernel.c
// (elementwise programs, and those fused into kernels) and program_rows_glsl.c (row
// programs).
#ifndef VULKAN_PROGRAM_PROGRAM_GLSL_H
#define VULKAN_PROGRAM_PROGRAM_GLSL_H

#include "program_writer.h"

// Stands behind the prelude, whose lines have names of files: for errors.
#define GLSL_PROGRAM_LINES "#line 1 \"program\"\n"

struct glsl_writer {
    struct text *out;
    const tn_expr_program *program;
    const struct program_class *class;
    struct program_words words;
};

static inline tn_dtype glsl_operand_dtype(const struct glsl_writer *w, uint32_t operand)
{
    uint32_t inputs = w->class->num_inputs;
    return operand < inputs ? w->program->input_dtypes[operand]
                            : w->program->output_dtypes[operand - inputs];
}

// The function element(): the number of an element, its inputs as C_, its outputs.
void glsl_write_element(struct glsl_writer *w);

// The definitions that the prelude asks for; the operands and arguments: B, V, A(i).
void glsl_write_needs(const struct glsl_writer *w);
void glsl_write_bindings(const struct glsl_writer *w);

// Values, as text without a semicolon: the bits of a program's constant, the param at a
// word of the arguments, an instruction that is neither leaf nor reduction, on operands of
// dtype `from` with these names.
void glsl_write_constant(const struct glsl_writer *w, tn_dtype dtype, uint64_t bits);
void glsl_write_param(const struct glsl_writer *w, tn_dtype dtype, uint32_t at);
// The distance from index 0, in elements, to which an index of `dtype` leads; the number of
// elements and their stride are at word `at` of the arguments.
void glsl_write_taken(const struct glsl_writer *w, tn_dtype dtype, const char *index,
                      uint32_t at);
void glsl_write_operation(const struct glsl_writer *w, uint32_t op, tn_dtype from,
                          tn_dtype dtype, const char *const *names);
// The qualifier of a result, and a blank: sums of floats are neither reordered nor
// contracted.
const char *glsl_qualifier(uint32_t op, tn_dtype dtype);

// program_write_glsl() for a class of rows.
void program_write_rows_glsl(struct text *out, const char *prelude,
                             const tn_expr_program *program,
                             const struct program_class *class);

#endif // VULKAN_PROGRAM_PROGRAM_GLSL_H
