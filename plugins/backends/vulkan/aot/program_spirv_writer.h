// SPDX-License-Identifier: MIT
// Shared by program_spirv.c (main), program_spirv_element.c (the function of one element),
// program_function_spirv.c (the function that a kernel calls) and program_rows_spirv.c.
#ifndef VULKAN_AOT_PROGRAM_SPIRV_WRITER_H
#define VULKAN_AOT_PROGRAM_SPIRV_WRITER_H

#include "program_spirv.h"

struct spirv_writer {
    struct spirv_module *module;
    const tn_expr_program *program;
    const struct program_class *class;
    uint32_t first_extent, first_stride, first_param; // word indices in the arguments
    uint32_t num_args;
    uint32_t uint_type, bool_type;
    uint32_t push, push_word;  // ids: the push constants, the type of a pointer to a word
    uint32_t args_buffer;      // id of the buffer with the arguments, if args_in_buffer
    uint32_t element, outputs; // ids: the function of one element, the struct it returns
    // Ids of buffers; 0: none yet.
    uint32_t ones[PROGRAM_MAX_OPERANDS], fours[PROGRAM_MAX_OPERANDS];
    // Ids of values in main, or in the function that a kernel calls.
    uint32_t item, at[PROGRAM_MAX_OPERANDS], step[PROGRAM_MAX_OPERANDS];
};

// Loads word `index` of the arguments; returns the value's id.
uint32_t spirv_write_arg(struct spirv_writer *w, uint32_t index);

// Writes the function of one element: (uint index, C_ of each input) -> struct of C_ of
// outputs. C_ and the like are the types of types.glsl.
void spirv_write_element(struct spirv_writer *w);

// Instructions and values, by the names of the parts. write_operation: instruction `op` on
// operands of dtype `from`; also CAST.
uint32_t spirv_write_constant(struct spirv_writer *w, tn_dtype dtype, uint64_t bits);
uint32_t spirv_write_param(struct spirv_writer *w, tn_dtype dtype, uint32_t *word);
uint32_t spirv_write_operation(struct spirv_writer *w, uint32_t op, tn_dtype from,
                               tn_dtype dtype, const uint32_t *operands);
// The dtype that shaders compute `dtype` in: integers have at least 32 bits.
tn_dtype spirv_class_of(tn_dtype dtype);

// Declarations of the arguments, for num_args words. Loads and stores, of W_ types: an
// element of an operand, or with `four` a vector.
void spirv_declare_push(struct spirv_writer *w);
uint32_t spirv_write_load(struct spirv_writer *w, uint32_t operand, bool four,
                          uint32_t index);
void spirv_write_store(struct spirv_writer *w, uint32_t operand, bool four, uint32_t index,
                       uint32_t value);
tn_dtype spirv_operand_dtype(const struct spirv_writer *w, uint32_t operand);

// A writer for a module that was begun: where the arguments are.
struct spirv_writer spirv_begin_program(struct spirv_module *module,
                                        const tn_expr_program *program,
                                        const struct program_class *class);

// Sets at[i] and step[i]: where operand i has element `item`, and the stride to the next.
void spirv_write_positions(struct spirv_writer *w);

// program_write_spirv() for a class of rows, and for a function.
uint32_t program_write_rows_spirv(struct spirv_writer *w);
uint32_t program_write_function_spirv(struct spirv_writer *w);

// Calls part `name` of this dtype on `value` if there is one; else returns `value`. Only
// the dtypes that need the conversion have the part.
uint32_t spirv_write_if_any(struct spirv_writer *w, const char *name, tn_dtype dtype,
                            uint32_t value);

#endif // VULKAN_AOT_PROGRAM_SPIRV_WRITER_H
