// SPDX-License-Identifier: MIT
// Extents and layouts: counting with overflow checks, broadcasting, contiguity, text.
#ifndef CORE_BASE_SHAPE_H
#define CORE_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>
#include <tenon/types.h>

// Elements and bytes of a type. No overflow for types that passed type_check.
int64_t type_elements(const tn_type *type);
uint64_t type_bytes(const tn_type *type);
bool type_equal(const tn_type *a, const tn_type *b);
bool shape_equal(const tn_type *a, const tn_type *b); // extents only

// TN_ERR_ARGUMENT unless dtype, rank and extents are valid and the bytes fit 63 bits.
tn_status type_check(const tn_type *type);

// Writes rank and extents of `a` and `b` broadcast by NumPy's rule; out->dtype stays. The
// message of a failure has both shapes.
tn_status shape_broadcast(const tn_type *a, const tn_type *b, tn_type *out);

// Row-major layout of a type, offset 0.
tn_layout layout_contiguous(const tn_type *type);
bool layout_is_contiguous(const tn_layout *layout);         // whatever the offset
static inline bool layout_is_plain(const tn_layout *layout) // contiguous, offset 0
{
    return layout->offset == 0 && layout_is_contiguous(layout);
}
int64_t layout_elements(const tn_layout *layout);
uint64_t layout_bytes(const tn_layout *layout); // of its elements, each counted

// The range [low, high) of a buffer's bytes that the elements of a layout lie in. False for
// a layout that reaches below the buffer's start or beyond 63 bits. The layout has at least
// one element.
struct span {
    int64_t low, high;
};
bool layout_span(const tn_layout *layout, struct span *out);

// `layout` broadcast to the extents of `type`: new and stretched axes get stride 0.
tn_layout layout_broadcast(const tn_layout *layout, const tn_type *type);

// Merges adjacent axes that can be one axis in all `count` layouts (of equal extents), and
// drops axes of extent 1. Rank 0 stays rank 0.
void layouts_collapse(tn_layout *const *layouts, uint32_t count);

// The same elements with axis `axis` moved behind the others.
tn_layout layout_axis_last(tn_layout layout, int32_t axis);
// Makes the axes from number `rank` - 1 on one axis, of extent 1 when there are none. False
// when their elements are not evenly spaced.
bool layout_fold(tn_layout *layout, int32_t rank);
// layouts_collapse for all axes but the last, along which the extents may differ. At most
// TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS layouts, of rank 1 at least.
void layouts_collapse_rows(tn_layout *const *layouts, uint32_t count);

// "f32[256, 512]"; returns buffer.
#define TYPE_TEXT 256
const char *type_print(const tn_type *type, char buffer[TYPE_TEXT]);
const char *shape_print(const tn_type *type, char buffer[TYPE_TEXT]); // "[256, 512]"

// "f32[2, 3] at 4 by [3, 1]": the offset and the strides in elements; returns buffer.
#define LAYOUT_TEXT 512
const char *layout_print(const tn_layout *layout, char buffer[LAYOUT_TEXT]);

// True when each row is contiguous: the last axis has stride 1 or one element at most.
bool layout_has_rows(const tn_layout *layout);

#endif // CORE_BASE_SHAPE_H
