// SPDX-License-Identifier: MIT
// Random compute shaders that are valid, free of data races, and whose results GLSL and
// Vulkan define to the bit: every variable is set before it is read, divisors are above 0,
// shifts and indices are masked, loops are bounded, numbers are in range before they are
// converted, barriers stand in uniform flow. Floats are multiples of 1/8 of at most 64, and
// expressions of them are exact in their type, so that no order of operations matters;
// "precise" ones are rounded, in the order in which they are written.
//
// What Mesa 22.3's software driver has wrong is not generated: trunc() and roundEven() of
// doubles, int64_t of a narrower signed integer, conversions of 64-bit integers to floats.
// It also loses what a loop computes for those who read it behind the loop: an invocation
// that left before others of its vector has what their last iteration made of it (a last
// load: 0), unless a phi kept the value. The compilers differ in the values that phis keep,
// so the invocations of a vector are alike: they leave together.
//
// Each line is a statement, or begins or ends a block, so that a shader can be shortened by
// lines. Lines that end with "//!" must stay.
#ifndef TESTS_COMPILER_GENERATE_H
#define TESTS_COMPILER_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GENERATED_GROUP = 128, // invocations of a workgroup; one workgroup runs
    GENERATED_ALIKE = 4,   // neighbours with the same data: a vector of 128 bits
    GENERATED_INPUT = 256, // words of the buffer at binding 0
    GENERATED_PUSH = 8,    // words of push constants
    GENERATED_SPEC = 3,    // specialisation constants: int 0, uint 1, bool 2
};

// The text of a shader with `kernels` functions, each of which writes a digest of its
// variables: word invocation * kernels + its number of the buffer at binding 1. free() it.
char *generate_shader(uint64_t seed, uint32_t kernels);

#endif // TESTS_COMPILER_GENERATE_H
