// SPDX-License-Identifier: MIT
// Choosing the memory of operands that is passed to a function, and copying operands whose
// layout the function does not take.
#include "view.h"

#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/reference.h>

static int64_t at_least_1(int64_t n)
{
    return n > 1 ? n : 1;
}

// Strides of an item without gaps, in the layout that the function takes.
static void set_packed_strides(const struct ffi_operand *operand, const struct view *view,
                               int64_t *stride)
{
    int64_t size = 1;
    if (operand->layout == LAYOUT_COLUMNS) {
        stride[0] = 1;
        stride[1] = at_least_1(view->extent[0]);
        return;
    }
    for (int64_t i = (int64_t)view->rank - 1; i >= 0; i--) {
        stride[i] = size;
        size *= at_least_1(view->extent[i]);
    }
}

// Whether the function takes axis `i` of the item with its stride.
static bool axis_suits(const struct ffi_operand *operand, const struct view *view,
                       uint32_t i, const int64_t *packed)
{
    if (view->extent[i] <= 1 || view->stride[i] == packed[i])
        return true;
    bool is_leading = (operand->layout == LAYOUT_ROWS && i == 0) ||
                      (operand->layout == LAYOUT_COLUMNS && i == 1);
    if (is_leading)
        return view->stride[i] >= packed[i];
    return operand->layout == LAYOUT_STRIDED && view->stride[i] >= 1;
}

static void choose_memory(const struct ffi_operand *operand, struct view *view)
{
    int64_t packed[TN_MAX_RANK] = {0};
    set_packed_strides(operand, view, packed);
    view->is_copied = operand->is_destroyed;
    for (uint32_t i = 0; i < view->rank; i++)
        view->is_copied |= !axis_suits(operand, view, i, packed);
    for (uint32_t i = 0; i < view->rank; i++) {
        bool keeps = !view->is_copied && view->extent[i] > 1;
        view->passed[i] = keeps ? view->stride[i] : packed[i];
    }
}

void view_set(struct view *view, const struct ffi_operand *operand,
              const struct bound *bound, const tn_layout *layout, void *data)
{
    int32_t lead = bound->lead_rank, given = layout->rank - (int32_t)operand->rank;
    view->bytes = tn_dtype_bytes(layout->dtype);
    view->data = data ? (char *)data + layout->offset * view->bytes : NULL;
    view->rank = 0;
    for (int32_t i = 0; operand->lead != LEAD_NONE && i < lead; i++) {
        int32_t axis = given - lead + i;
        int64_t stride = axis >= 0 && layout->extent[axis] != 1 ? layout->stride[axis] : 0;
        if (operand->lead == LEAD_BATCH) {
            view->batch_stride[i] = stride;
        } else {
            view->extent[view->rank] = bound->lead[i];
            view->stride[view->rank++] = stride;
        }
    }
    for (uint32_t i = 0; i < operand->rank; i++) {
        view->extent[view->rank] = layout->extent[given + (int32_t)i];
        view->stride[view->rank++] = layout->stride[given + (int32_t)i];
    }
    choose_memory(operand, view);
}

uint64_t view_bytes(const struct view *view)
{
    int64_t count = view->bytes;
    for (uint32_t i = 0; i < view->rank; i++)
        if (!tn_checked_multiply_extents(count, view->extent[i], &count))
            return UINT64_MAX / 4;
    return (uint64_t)count;
}

// --- copies ----------------------------------------------------------------------------

static void ffi_view_copy_run(char *to, int64_t to_step, const char *from,
                              int64_t from_step, int64_t n, int64_t bytes)
{
    if (to_step == bytes && from_step == bytes) {
        memmove(to, from, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

void view_copy(const struct view *view, char *to, const int64_t *to_stride,
               const char *from, const int64_t *from_stride)
{
    int64_t index[TN_MAX_RANK] = {0};
    if (view_bytes(view) == 0 ||
        (to == from && !memcmp(to_stride, from_stride, view->rank * sizeof(int64_t))))
        return;
    if (view->rank == 0) {
        memcpy(to, from, (size_t)view->bytes);
        return;
    }
    int32_t last = (int32_t)view->rank - 1;
    do {
        int64_t a = 0, b = 0;
        for (int32_t i = 0; i < last; i++) {
            a += index[i] * to_stride[i];
            b += index[i] * from_stride[i];
        }
        ffi_view_copy_run(to + a * view->bytes, to_stride[last] * view->bytes,
                          from + b * view->bytes, from_stride[last] * view->bytes,
                          view->extent[last], view->bytes);
    } while (tn_index_next(last, view->extent, index));
}
