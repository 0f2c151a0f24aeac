// SPDX-License-Identifier: MIT
// A set of programs, with layouts, that stands for all that the core hands to a Vulkan
// backend: every instruction in every dtype, conversions, chains with parameters and
// constants, row programs, programs beside a kernel. Their order and numbers are fixed.
#ifndef TESTS_COMPILER_PROGRAMS_H
#define TESTS_COMPILER_PROGRAMS_H

#include <stdbool.h>
#include <tenon/backend.h>

#define CASE_INSNS 64
#define CASE_OPERANDS 12

struct program_case {
    char name[96]; // "program ADD f32 rows with gaps"
    tn_expr_program program;
    tn_expr_insn insns[CASE_INSNS];
    uint64_t constants[8], params[4];
    tn_dtype inputs[CASE_OPERANDS], outputs[CASE_OPERANDS];
    uint32_t positions[CASE_OPERANDS];
    tn_value values[CASE_OPERANDS]; // inputs, then outputs: layouts
    tn_step step;                   // of the program, over `values`
    bool is_rows;
    uint32_t subgroup; // of a row program: the device's
    bool is_function;  // its last output passes to a kernel, or its first input comes from
                       // one
    bool is_exact;     // same bits whatever compiler: it calls nothing of the driver's that
                       // is approximate
};

// Case `number`, from 0. False: there are no more. The case points into itself.
bool program_case_make(uint32_t number, struct program_case *out);

#endif // TESTS_COMPILER_PROGRAMS_H
