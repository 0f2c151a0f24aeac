// SPDX-License-Identifier: MIT
// What the two halves of program_spirv share: arguments, and one element.
#ifndef VULKAN_PROGRAM_SPIRV_WRITER_H
#define VULKAN_PROGRAM_SPIRV_WRITER_H

#include "program_spirv.h"

struct spirv_writer {
    struct spirv_module *module;
    const tn_expr_program *program;
    const struct program_class *class;
    uint32_t first_extent, first_stride, first_param; // in the arguments
    uint32_t num_args;
    uint32_t uint_type, bool_type;
    uint32_t push, push_word;  // the push constants, the type of a pointer to a word
    uint32_t args_buffer;      // of the arguments, where they are in one
    uint32_t element, outputs; // the function of one element, the struct that it returns
    uint32_t ones[PROGRAM_MAX_OPERANDS], fours[PROGRAM_MAX_OPERANDS]; // 0: not declared yet
    uint32_t item, at[PROGRAM_MAX_OPERANDS], step[PROGRAM_MAX_OPERANDS]; // values in main
};

// Value of word `index` of the arguments.
uint32_t spirv_write_arg(struct spirv_writer *w, uint32_t index);

// The function of one element: (uint index, C_ of each input) -> struct of C_ of outputs.
void spirv_write_element(struct spirv_writer *w);

// A part that there is only for the dtypes that need it, called on `value`; without it,
// `value`.
uint32_t spirv_write_if_any(struct spirv_writer *w, const char *name, tn_dtype dtype,
                            uint32_t value);

#endif // VULKAN_PROGRAM_SPIRV_WRITER_H
