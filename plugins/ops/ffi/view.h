// SPDX-License-Identifier: MIT
// Operands of a launch: what memory of theirs is passed to the function.
#ifndef FFI_VIEW_H
#define FFI_VIEW_H

#include "pack.h"

// One operand of one launch: the axes of an item, which is what one call takes, and those
// of the batch. Strides are in elements.
struct view {
    char *data; // of the first item
    uint32_t rank;
    int64_t extent[TN_MAX_RANK], stride[TN_MAX_RANK]; // of an item
    int64_t batch_stride[TN_MAX_RANK];
    int64_t bytes;               // of an element
    int64_t passed[TN_MAX_RANK]; // strides of the memory that is passed
    uint64_t work_offset, work_size;
    bool is_copied;
};

// Fills a cleared view; without `data` only what does not depend on it. The layout's axes
// count from the end: an item's, then the batch's.
void view_set(struct view *view, const struct operand *operand, const struct bound *bound,
              const tn_layout *layout, void *data);

// Bytes of an item without gaps; UINT64_MAX / 4 for more than 63 bits count.
uint64_t view_bytes(const struct view *view);

// Copies an item of that shape. Nothing to do when it lies there already.
void view_copy(const struct view *view, char *to, const int64_t *to_stride,
               const char *from, const int64_t *from_stride);

#endif // FFI_VIEW_H
