// SPDX-License-Identifier: MIT
// Extents and layouts: counting with overflow checks, broadcasting, contiguity, text.
#ifndef CORE_BASE_SHAPE_H
#define CORE_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>
#include <tenon/types.h>

// Elements of a type. Types that the core accepted never overflow.
int64_t type_elements(const tn_type *type);
uint64_t type_bytes(const tn_type *type);
bool type_equal(const tn_type *a, const tn_type *b);
bool shape_equal(const tn_type *a, const tn_type *b); // extents only

// Checks dtype, rank, extents and that the bytes fit 63 bits. Records what is wrong.
tn_status type_check(const tn_type *type);

// out->extent: a and b broadcast by NumPy's rule; dtype untouched. Records both shapes.
tn_status shape_broadcast(const tn_type *a, const tn_type *b, tn_type *out);

// Row-major layout of a type, offset 0.
tn_layout layout_contiguous(const tn_type *type);
bool layout_is_contiguous(const tn_layout *layout); // whatever the offset
int64_t layout_elements(const tn_layout *layout);

// Bytes of a buffer from the first that an element of a layout has to the one after the
// last. False for a layout that reaches below the buffer's start or beyond 63 bits. At
// least one element.
struct span {
    int64_t low, high;
};
bool layout_span(const tn_layout *layout, struct span *out);

// `layout` seen with the extents of `type`: new axes and stretched ones get stride 0.
tn_layout layout_broadcast(const tn_layout *layout, const tn_type *type);

// Merges neighbouring axes that all `count` layouts (of equal extents) walk as one, and
// drops axes of extent 1. Rank 0 stays rank 0.
void layouts_collapse(tn_layout *const *layouts, uint32_t count);

// "f32[256, 512]"; returns buffer.
#define TYPE_TEXT 256
const char *type_print(const tn_type *type, char buffer[TYPE_TEXT]);
const char *shape_print(const tn_type *type, char buffer[TYPE_TEXT]); // "[256, 512]"

// "f32[2, 3] at 4 by [3, 1]": the offset and the strides in elements; returns buffer.
#define LAYOUT_TEXT 512
const char *layout_print(const tn_layout *layout, char buffer[LAYOUT_TEXT]);

#endif // CORE_BASE_SHAPE_H
