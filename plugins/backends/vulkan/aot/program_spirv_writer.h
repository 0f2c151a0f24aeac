// SPDX-License-Identifier: MIT
// Shared by program_spirv_values.c (values, loads and stores), program_spirv.c (kernels of
// elementwise programs, and the functions that kernels call) and program_rows_spirv.c.
#ifndef VULKAN_AOT_PROGRAM_SPIRV_WRITER_H
#define VULKAN_AOT_PROGRAM_SPIRV_WRITER_H

#include "../program/program_writer.h"
#include "program_spirv.h"

struct spirv_writer {
    struct spirv_module *module;
    const tn_expr_program *program;
    const struct program_class *class;
    struct program_words words;
    uint32_t uint_type, bool_type;
    uint32_t push, push_word; // ids: the push constants, the type of a pointer to a word
    uint32_t args_buffer;     // id of the buffer with the arguments, if args_in_buffer
    // Ids of buffers; 0: none yet.
    uint32_t ones[PROGRAM_MAX_OPERANDS], fours[PROGRAM_MAX_OPERANDS];
};

// Loads word `index` of the arguments; returns the value's id.
uint32_t spirv_write_arg(struct spirv_writer *w, uint32_t index);

// Instructions and values, by the names of the parts. spirv_write_operation: instruction
// `op` on operands of dtype `from`; also CAST.
uint32_t spirv_write_constant(struct spirv_writer *w, tn_dtype dtype, uint64_t bits);
uint32_t spirv_write_param(struct spirv_writer *w, tn_dtype dtype, uint32_t word);
uint32_t spirv_write_operation(struct spirv_writer *w, uint32_t op, tn_dtype from,
                               tn_dtype dtype, const uint32_t *operands);
// The dtype that shaders compute `dtype` in: integers have at least 32 bits.
tn_dtype spirv_class_of(tn_dtype dtype);

// Declarations of the arguments, for words.num_args of them. Loads and stores, of W_ types:
// an element of an operand, or with `four` a vector.
void spirv_declare_push(struct spirv_writer *w);
uint32_t spirv_write_load(struct spirv_writer *w, uint32_t operand, bool four,
                          uint32_t index);
void spirv_write_store(struct spirv_writer *w, uint32_t operand, bool four, uint32_t index,
                       uint32_t value);
tn_dtype spirv_operand_dtype(const struct spirv_writer *w, uint32_t operand);

// Calls part `name` of this dtype on `value` if there is one; else returns `value`. Only
// the dtypes that need the conversion have the part.
uint32_t spirv_write_if_any(struct spirv_writer *w, const char *name, tn_dtype dtype,
                            uint32_t value);

// The kernel of a class of rows, behind a writer that was begun.
uint32_t program_write_rows_spirv(struct spirv_writer *w);

#endif // VULKAN_AOT_PROGRAM_SPIRV_WRITER_H
