// SPDX-License-Identifier: MIT
// Operands of a launch as strided views: which memory is passed to the function, and
// copies.
#ifndef FFI_VIEW_H
#define FFI_VIEW_H

#include "pack.h"

// One operand of one launch: the axes of an item, which one call takes, and the axes of the
// batch. Strides are in elements.
struct view {
    char *data; // of the first item, or NULL
    uint32_t rank;
    int64_t extent[TN_MAX_RANK], stride[TN_MAX_RANK]; // of an item
    int64_t batch_stride[TN_MAX_RANK];
    int64_t bytes;               // of an element
    int64_t passed[TN_MAX_RANK]; // strides of an item in the memory that is passed
    uint64_t work_offset, work_size;
    bool is_copied; // the function gets a copy in working memory, at work_offset
};

// Fills a zeroed view. The layout's last axes are the operand's own; leading axes stand
// before them, and broadcast to those of `bound`. `data` may be NULL (function_scratch).
void view_set(struct view *view, const struct ffi_operand *operand,
              const struct bound *bound, const tn_layout *layout, void *data);

// Bytes of an item without gaps, or UINT64_MAX / 4 when the number overflows 63 bits.
uint64_t view_bytes(const struct view *view);

// Copies the elements of an item. Does nothing when source and destination are the same.
void view_copy(const struct view *view, char *to, const int64_t *to_stride,
               const char *from, const int64_t *from_stride);

#endif // FFI_VIEW_H
