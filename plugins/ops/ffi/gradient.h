// SPDX-License-Identifier: MIT
// Derivatives as a manifest states them: expressions over a function's inputs, outputs,
// attributes and cotangents, in which calls are applications of primitives.
//
//   sum     = product { ("+" | "-") product }
//   product = unary { ("*" | "/" | "@") unary }
//   unary   = "-" unary | power
//   power   = atom [ "**" unary ]
//   atom    = number | name | call | "(" sum ")"
//   call    = name { "." name } "(" argument { "," argument } ")"
//   argument = sum | name "=" (number | name | "[" numbers "]")      an attribute
//
// "g" is the cotangent of the only output, "g_NAME" that of an output of several. A call
// without a pack's name is of the pack "base"; mT(x) swaps the last two axes of x. "@" is
// base.matmul.
#ifndef FFI_GRADIENT_H
#define FFI_GRADIENT_H

#include "pack.h"

// Parses the derivative with respect to one input. The failure has the column.
tn_status gradient_parse(struct ffi_arena *arena, const char *text,
                         const struct ffi_function *function, struct ffi_gradient **out,
                         struct problem *problem);

// The vjp of the function's primitive.
tn_status gradients_build(const struct ffi_function *function, const tn_build *build,
                          const tn_rule *rule, tn_array *const *cotangents,
                          const uint64_t *wanted, tn_array **gradients);

#endif // FFI_GRADIENT_H
