// SPDX-License-Identifier: MIT
// Shared by program_spirv.c (main) and program_spirv_element.c (the function of one
// element).
#ifndef VULKAN_PROGRAM_SPIRV_WRITER_H
#define VULKAN_PROGRAM_SPIRV_WRITER_H

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
    // Ids of values in main.
    uint32_t item, at[PROGRAM_MAX_OPERANDS], step[PROGRAM_MAX_OPERANDS];
};

// Loads word `index` of the arguments; returns the value's id.
uint32_t spirv_write_arg(struct spirv_writer *w, uint32_t index);

// Writes the function of one element: (uint index, C_ of each input) -> struct of C_ of
// outputs. C_ and the like are the types of types.glsl.
void spirv_write_element(struct spirv_writer *w);

// Calls part `name` of this dtype on `value` if there is one; else returns `value`. Only
// the dtypes that need the conversion have the part.
uint32_t spirv_write_if_any(struct spirv_writer *w, const char *name, tn_dtype dtype,
                            uint32_t value);

#endif // VULKAN_PROGRAM_SPIRV_WRITER_H
