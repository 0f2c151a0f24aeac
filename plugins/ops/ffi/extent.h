// SPDX-License-Identifier: MIT
// Expressions over extents: "n", "3 * n - 1", "max(1, min(m, n))". Read once into steps for
// a stack, which later run without allocation or recursion and check for overflow.
//
//   expression = product { ("+" | "-") product }
//   product    = atom { ("*" | "/" | "%") atom }          / rounds down
//   atom       = integer | name | "-" atom | "(" expression ")"
//              | ("min" | "max") "(" expression "," expression ")"
#ifndef FFI_EXTENT_H
#define FFI_EXTENT_H

#include "arena.h"

enum { EXTENT_MAX_DEPTH = 24 }; // of parentheses, and so of the stack

struct extent_step {
    char what;     // 'n' number, 'v' variable, '~' negation, '+', '-', '*', '/', '%', '<',
                   // '>' (the smaller, the larger of two)
    int64_t value; // of a number; number of a variable
};

struct extent {
    const char *text;
    struct extent_step *steps; // owned by the arena
    uint32_t num_steps;
};

// Gives the number of the variable `name`, or -1.
typedef int (*extent_lookup)(void *context, const char *name);

// Reads an expression. The failure says what was met and where in the text.
tn_status extent_parse(struct arena *arena, const char *text, extent_lookup lookup,
                       void *context, struct extent *out, struct problem *problem);

// The value; fails on overflow and on division by zero. `values` is by variable's number.
tn_status extent_eval(const struct extent *extent, const int64_t *values, int64_t *out,
                      struct problem *problem);

// The variable that the whole expression is, or -1.
int extent_variable(const struct extent *extent);

#endif // FFI_EXTENT_H
