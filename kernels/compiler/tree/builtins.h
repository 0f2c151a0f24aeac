// SPDX-License-Identifier: MIT
// Built-in functions: one table says what they take and how they are made.
#ifndef KERNELS_COMPILER_BUILTINS_H
#define KERNELS_COMPILER_BUILTINS_H

#include "build.h"

// How a call becomes instructions. `code` is by kind of operand: float, signed, unsigned,
// bool.
enum how {
    HOW_OP,             // opcode: code
    HOW_EXTENDED,       // number of GLSL.std.450: code
    HOW_MIX_BOOL,       // selects
    HOW_DOT,            // of scalars a product
    HOW_MODF,           // code: number of the form that makes a struct
    HOW_CARRY,          // opcode whose struct has the result, then an output
    HOW_PRODUCT,        // opcode whose struct has the low part, then the high one
    HOW_ATOMIC,         // opcode of pointer, scope, semantics, values
    HOW_BARRIER,        // code: semantics, execution scope, memory scope
    HOW_FENCE,          // code: semantics, scope
    HOW_SCOPED_BARRIER, // the arguments say
    HOW_SCOPED_FENCE,
    HOW_GROUP,        // opcode of the subgroup's scope, then the operands
    HOW_GROUP_REDUCE, // the same; `number`: kind of group operation
    HOW_GROUP_QUAD,   // the same; `number`: direction
    HOW_MATRIX,       // opcode of matrices
    HOW_MATRIX_EXTENDED,
    HOW_MATRIX_PRODUCT, // component by component
    HOW_DOT_INTEGER,    // `number`: 1: operands change places; 2: of bytes in words
    HOW_COOPMAT_LOAD,   // from here on coopmat_check() says whether arguments fit
    HOW_COOPMAT_STORE,
    HOW_COOPMAT_MULTIPLY,
    HOW_TENSOR, // `number`: how many values: 1: one a dimension; 2: two; 3: 1; 4: 4
    HOW_COOPMAT_LOAD_TENSOR,
    HOW_COOPMAT_STORE_TENSOR,
    HOW_COOPMAT_REDUCE,
    HOW_COOPMAT_PER_ELEMENT,
    HOW_COOPMAT_TRANSPOSE,
};

// The pattern is the result, a colon, and the arguments:
//   T  a scalar or vector of the class   t  a scalar of it, repeated where T is a vector
//   s  a scalar of it, as it is          B I U F  of T's size: bool, int, uint, float
//   b i u f d h l L v c C k K  bool, int, uint, float, double, float16_t, int64_t,
//      uint64_t, void, int8_t, uint8_t, int16_t, uint16_t; with a digit: a vector
//   V  a vector of the class             &  before an output   *  before a pointer
//   ?  in front: the emitter checks
struct builtin {
    char name[32], pattern[12]; // texts inside: pointers would need relocations
    uint32_t classes;           // bits of enum base
    uint8_t how;                // enum how
    uint8_t number;
    uint16_t code[4];
    uint64_t extensions; // any of them; 0: none
    uint64_t needs;
};

enum { MOST_ARGUMENTS = 12 };

extern const struct builtin builtin_table[];
extern const uint32_t builtin_table_size;

// Whether an argument is passed as an lvalue: it is written, or is a pointer.
bool builtin_is_lvalue(const struct builtin *b, uint32_t argument);
// Types of calls whose patterns begin with '?', from HOW_COOPMAT_LOAD on (coopmat.c), and
// from HOW_TENSOR on (tensor.c). NULL: the arguments do not fit.
const struct type *coopmat_check(struct translator *t, const struct builtin *b,
                                 struct tree_expr **arguments, uint32_t count);
const struct type *tensor_check(struct translator *t, const struct builtin *b,
                                struct tree_expr **arguments, uint32_t count);
// Fails unless the first arguments are a matrix and memory that it can be in.
void coopmat_check_memory(struct translator *t, const struct builtin *b,
                          struct tree_expr **arguments);

#endif // KERNELS_COMPILER_BUILTINS_H
