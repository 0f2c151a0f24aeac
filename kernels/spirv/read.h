// SPDX-License-Identifier: MIT
// Iteration over the operands of SPIR-V instructions that are ids.
#ifndef KERNELS_SPIRV_READ_H
#define KERNELS_SPIRV_READ_H

#include "opcode.h"

#include <stddef.h>

// Iterates over the operands of an instruction that are ids:
//   struct spirv_ids ids = spirv_ids(op, operands, count);
//   for (uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
struct spirv_ids {
    const char *pattern, *behind; // behind: rest of the pattern behind 'm', or NULL
    uint32_t *next, *end;
    uint32_t width; // words of a literal of OpSwitch
    uint32_t head;  // ids at the front that are left: result type, result
};

// Whether the opcode alone determines which operands are ids. For OpSwitch it does not: its
// literals are as wide as its selector.
bool spirv_is_known(uint32_t op);

// Begins an iteration. `operands` are the `count` words behind the instruction's first
// word, and may be too many or too few. For an instruction that is not known
// (spirv_is_known) it gives all words, since any may be an id.
struct spirv_ids spirv_ids(uint32_t op, uint32_t *operands, uint32_t count);
// Begins an iteration over operands without result type and result. `width`: words of a
// literal of OpSwitch.
struct spirv_ids spirv_ids_behind_result(uint32_t op, uint32_t *operands, uint32_t count,
                                         uint32_t width);
// The next operand that is an id, within `operands`; NULL: there are no more.
uint32_t *spirv_next_id(struct spirv_ids *ids);

// The position of the result's id among the operands; UINT32_MAX: there is no result.
uint32_t spirv_result_at(uint32_t op);

// Finds the literal of a decoration of an id, or of a struct's member unless `member` is
// negative. `words` are a whole module up to word `end`. False: there is no such
// decoration.
bool spirv_find_decoration(const uint32_t *words, size_t end, uint32_t id, int64_t member,
                           uint32_t decoration, uint32_t *out);

#endif // KERNELS_SPIRV_READ_H
