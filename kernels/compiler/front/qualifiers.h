// SPDX-License-Identifier: MIT
// Qualifiers in front of a declaration's type.
#ifndef KERNELS_COMPILER_QUALIFIERS_H
#define KERNELS_COMPILER_QUALIFIERS_H

#include "parse.h"

struct qualifiers {
    struct position at;
    bool is_const, is_uniform, is_buffer, is_shared, is_in, is_out, is_precise;
    bool is_push_constant, is_reference, is_row_major, is_column_major;
    bool has_layout, has_local_size, is_any;
    uint8_t memory;                                    // enum memory
    uint8_t layout;                                    // enum layout; LAYOUT_NONE: not said
    uint32_t set, binding, offset, align, constant_id; // UINT32_MAX: not said
    uint32_t reference_align;
};

void parse_qualifiers(struct translator *t, struct qualifiers *out);
void parse_struct(struct translator *t, struct record *record, const struct qualifiers *of);
// A block, from its name on.
void parse_block(struct translator *t, const struct qualifiers *q);
bool block_is_next(struct translator *t, const struct qualifiers *q);

#endif // KERNELS_COMPILER_QUALIFIERS_H
