// SPDX-License-Identifier: MIT
// Reading instructions of SPIR-V: which of their operands are ids.
#ifndef KERNELS_SPIRV_READ_H
#define KERNELS_SPIRV_READ_H

#include "opcode.h"

#include <stddef.h>

// The operands of an instruction that are ids, one after the other:
//   struct spirv_ids ids = spirv_ids(op, operands, count);
//   for (uint32_t *id; (id = spirv_next_id(&ids)) != NULL;)
struct spirv_ids {
    const char *pattern, *behind; // behind: where the pattern goes on, or NULL
    uint32_t *next, *end;
    uint32_t width; // words of a literal of OpSwitch
    uint32_t head;  // how many come first: the type and the result
};

// Whether the instruction alone says which of its operands are ids. OpSwitch does not: its
// literals are as wide as its selector.
bool spirv_is_known(uint32_t op);

// Operands are those behind the instruction's first word, and may be too many or too few.
// Of an instruction that is not known all are given: any may be an id.
struct spirv_ids spirv_ids(uint32_t op, uint32_t *operands, uint32_t count);
// The same, of operands without the type and the result.
struct spirv_ids spirv_ids_behind_result(uint32_t op, uint32_t *operands, uint32_t count,
                                         uint32_t width);
// NULL: there are no more.
uint32_t *spirv_next_id(struct spirv_ids *ids);

// The position of the result's id among the operands, or UINT32_MAX: there is none.
uint32_t spirv_result_at(uint32_t op);

// The literal of a decoration of an id; of a member of a struct unless `member` is
// negative. `words` are a module's, up to word `end`. False: it has none.
bool spirv_find_decoration(const uint32_t *words, size_t end, uint32_t id, int64_t member,
                           uint32_t decoration, uint32_t *out);

#endif // KERNELS_SPIRV_READ_H
