// SPDX-License-Identifier: MIT
// The instructions of SPIR-V that the compiler makes, as one table. Names and numbers are
// those of the SPIR-V specification 1.6 and its registered extensions.
//
// A pattern has a character for each operand behind the instruction's first word:
//   t  the result's type    r  the result    i  an id    l  a literal    s  a string
//   I  ids to the end       L  literals to the end
//   m  memory operands: a mask, the alignment where bit 1 is set, then ids
//   P  pairs of a literal and an id to the end (OpSwitch; literals as wide as the selector)
// An instruction that has effects, so that it stays although nobody reads its result, is
// marked by
// '!' in front.
#ifndef KERNELS_COMPILER_OPCODE_H
#define KERNELS_COMPILER_OPCODE_H

#include <stdint.h>

#define SPIRV_OPS(X)                                                                       \
    X(Undef, 1, "tr")                                                                      \
    X(Name, 5, "is")                                                                       \
    X(MemberName, 6, "ils")                                                                \
    X(Extension, 10, "s")                                                                  \
    X(ExtInstImport, 11, "rs")                                                             \
    X(ExtInst, 12, "trilI")                                                                \
    X(MemoryModel, 14, "ll")                                                               \
    X(EntryPoint, 15, "lisI")                                                              \
    X(ExecutionMode, 16, "ilL")                                                            \
    X(Capability, 17, "l")                                                                 \
    X(TypeVoid, 19, "r")                                                                   \
    X(TypeBool, 20, "r")                                                                   \
    X(TypeInt, 21, "rll")                                                                  \
    X(TypeFloat, 22, "rlL")                                                                \
    X(TypeVector, 23, "ril")                                                               \
    X(TypeMatrix, 24, "ril")                                                               \
    X(TypeArray, 28, "rii")                                                                \
    X(TypeRuntimeArray, 29, "ri")                                                          \
    X(TypeStruct, 30, "rI")                                                                \
    X(TypePointer, 32, "rli")                                                              \
    X(TypeFunction, 33, "riI")                                                             \
    X(TypeForwardPointer, 39, "il")

#define SPIRV_OP_ENUM(name, number, pattern) Op##name = number,
enum spirv_op { SPIRV_OPS(SPIRV_OP_ENUM) };
#undef SPIRV_OP_ENUM

#endif // KERNELS_COMPILER_OPCODE_H
