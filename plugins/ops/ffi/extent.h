// SPDX-License-Identifier: MIT
// Expressions over extents: "n", "3 * n - 1", "max(1, min(m, n))". Parsed once to postfix
// steps, which run on a stack without allocation or recursion, and check for overflow.
//
//   expression = product { ("+" | "-") product }
//   product    = atom { ("*" | "/" | "%") atom }          / rounds down
//   atom       = integer | name | "-" atom | "(" expression ")"
//              | ("min" | "max") "(" expression "," expression ")"
#ifndef FFI_EXTENT_H
#define FFI_EXTENT_H

#include "arena.h"

enum { EXTENT_MAX_DEPTH = 24 }; // levels of nesting; bounds recursion and the stack

struct extent_step {
    char what;     // 'n' number, 'v' variable, '~' negation, '+', '-', '*', '/', '%', '<',
                   // '>' (the smaller, the larger of two)
    int64_t value; // the number, or the variable's index
};

struct extent {
    const char *text;
    struct extent_step *steps; // owned by the arena
    uint32_t num_steps;
};

// Gives the index of the variable `name`, or -1.
typedef int (*extent_lookup)(void *context, const char *name);

// Parses an expression. The failure has the column, what was got and what was expected.
tn_status extent_parse(struct ffi_arena *arena, const char *text, extent_lookup lookup,
                       void *context, struct extent *out, struct problem *problem);

// The expression's value. `values` has that of each variable. Fails on overflow and on
// division by zero.
tn_status extent_eval(const struct extent *extent, const int64_t *values, int64_t *out,
                      struct problem *problem);

// The variable's index when the expression is just a name, else -1.
int extent_variable(const struct extent *extent);

#endif // FFI_EXTENT_H
