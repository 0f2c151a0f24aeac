// SPDX-License-Identifier: MIT
// Extents and layouts: counting with overflow checks, broadcasting, contiguity, text.
#include "shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <tenon/checked.h>
#include <tenon/expr.h>
#include "dtype.h"
#include "fail.h"

static int64_t shape_elements(int32_t rank, const int64_t *extent)
{
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= extent[i];
    return count;
}

int64_t type_elements(const tn_type *type)
{
    return shape_elements(type->rank, type->extent);
}

uint64_t type_bytes(const tn_type *type)
{
    return (uint64_t)type_elements(type) * dtype_size(type->dtype);
}

bool shape_equal(const tn_type *a, const tn_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->extent[i] != b->extent[i])
            return false;
    return true;
}

bool type_equal(const tn_type *a, const tn_type *b)
{
    return a->dtype == b->dtype && shape_equal(a, b);
}

tn_status type_check(const tn_type *type)
{
    if (!dtype_valid(type->dtype))
        return fail(TN_ERR_ARGUMENT, "dtype %d: expected 1 .. %d", type->dtype,
                    TN_NUM_DTYPES - 1);
    if (type->rank < 0 || type->rank > TN_MAX_RANK)
        return fail(TN_ERR_ARGUMENT, "rank %d: expected 0 .. %d", type->rank, TN_MAX_RANK);
    if (type->flags || type->reserved)
        return fail(TN_ERR_ARGUMENT, "flags 0x%x of a type: expected 0", type->flags);
    // Extents of 0 count as 1: strides are products of the other extents, which must fit as
    // well.
    int64_t bytes = (int64_t)dtype_size(type->dtype);
    bool overflow = false;
    for (int32_t i = 0; i < type->rank; i++) {
        int64_t extent = type->extent[i];
        if (extent < 0)
            return fail(TN_ERR_ARGUMENT, "extent %" PRId64 " of axis %d is negative",
                        extent, i);
        overflow |= !tn_checked_multiply_extents(bytes, extent ? extent : 1, &bytes);
    }
    char text[TYPE_TEXT];
    if (overflow)
        return fail(TN_ERR_ARGUMENT, "%s: its size in bytes does not fit 63 bits",
                    type_print(type, text));
    return TN_OK;
}

tn_status shape_broadcast(const tn_type *a, const tn_type *b, tn_type *out)
{
    int32_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t extent[TN_MAX_RANK] = {0};
    for (int32_t i = 0; i < rank; i++) {
        int32_t axis_a = i - (rank - a->rank), axis_b = i - (rank - b->rank);
        int64_t extent_a = axis_a < 0 ? 1 : a->extent[axis_a];
        int64_t extent_b = axis_b < 0 ? 1 : b->extent[axis_b];
        char text_a[TYPE_TEXT], text_b[TYPE_TEXT];
        if (extent_a != extent_b && extent_a != 1 && extent_b != 1)
            return fail(TN_ERR_ARGUMENT,
                        "shapes %s and %s do not broadcast: %" PRId64 " against %" PRId64
                        " at axis %d from the end",
                        shape_print(a, text_a), shape_print(b, text_b), extent_a, extent_b,
                        rank - i);
        extent[i] = extent_a == 1 ? extent_b : extent_a;
    }
    out->rank = rank;
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        out->extent[i] = extent[i];
    return TN_OK;
}

// --- layouts ---------------------------------------------------------------------------

tn_layout layout_contiguous(const tn_type *type)
{
    tn_layout layout = {.dtype = type->dtype, .rank = type->rank};
    int64_t stride = 1;
    for (int32_t i = type->rank - 1; i >= 0; i--) {
        layout.extent[i] = type->extent[i];
        layout.stride[i] = stride;
        stride *= type->extent[i] ? type->extent[i] : 1;
    }
    return layout;
}

int64_t layout_elements(const tn_layout *layout)
{
    return shape_elements(layout->rank, layout->extent);
}

uint64_t layout_bytes(const tn_layout *layout)
{
    return (uint64_t)layout_elements(layout) * dtype_size(layout->dtype);
}

bool layout_is_contiguous(const tn_layout *layout)
{
    int64_t expected = 1;
    bool dense = true;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        if (layout->extent[i] == 0)
            return true; // an empty view has no gaps
        if (layout->extent[i] == 1)
            continue; // the stride of a single element is never used
        dense &= layout->stride[i] == expected;
        expected *= layout->extent[i];
    }
    return dense;
}

bool layout_span(const tn_layout *layout, struct span *out)
{
    // In elements: the lowest offset, the highest one, and the reach of one axis.
    int64_t low = layout->offset, high = layout->offset, size, reach;
    for (int32_t i = 0; i < layout->rank; i++) {
        int64_t stride = layout->stride[i];
        if (stride == INT64_MIN ||
            !tn_checked_multiply_extents(stride < 0 ? -stride : stride,
                                         layout->extent[i] - 1, &reach) ||
            !tn_checked_add_signed(stride < 0 ? low : high, stride < 0 ? -reach : reach,
                                   stride < 0 ? &low : &high))
            return false;
    }
    size = (int64_t)dtype_size(layout->dtype);
    return low >= 0 && tn_checked_add_signed(high, 1, &high) &&
           tn_checked_multiply_extents(low, size, &out->low) &&
           tn_checked_multiply_extents(high, size, &out->high);
}

tn_layout layout_broadcast(const tn_layout *layout, const tn_type *type)
{
    tn_layout out = {.dtype = layout->dtype, .rank = type->rank, .offset = layout->offset};
    for (int32_t i = 0; i < type->rank; i++) {
        int32_t axis = i - (type->rank - layout->rank);
        bool same = axis >= 0 && layout->extent[axis] == type->extent[i];
        out.extent[i] = type->extent[i];
        out.stride[i] = same ? layout->stride[axis] : 0;
    }
    return out;
}

// True when axes `outer` and `inner` collapse into one axis in every layout.
static bool shape_merges(tn_layout *const *layouts, uint32_t count, int32_t outer,
                         int32_t inner)
{
    for (uint32_t k = 0; k < count; k++) {
        const tn_layout *layout = layouts[k];
        if (layout->stride[outer] != layout->extent[inner] * layout->stride[inner])
            return false;
    }
    return true;
}

static void shape_copy_axis(tn_layout *layout, int32_t to, int32_t from)
{
    layout->extent[to] = layout->extent[from];
    layout->stride[to] = layout->stride[from];
}

void layouts_collapse(tn_layout *const *layouts, uint32_t count)
{
    if (count == 0)
        return;
    int32_t rank = layouts[0]->rank, kept = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (layouts[0]->extent[i] == 1)
            continue;
        bool merge = kept > 0 && shape_merges(layouts, count, kept - 1, i);
        for (uint32_t k = 0; k < count; k++) {
            tn_layout *layout = layouts[k];
            if (!merge) {
                shape_copy_axis(layout, kept, i);
                continue;
            }
            layout->extent[kept - 1] *= layout->extent[i];
            layout->stride[kept - 1] = layout->stride[i];
        }
        kept += !merge;
    }
    for (uint32_t k = 0; k < count; k++) {
        layouts[k]->rank = kept;
        for (int32_t i = kept; i < rank; i++)
            layouts[k]->extent[i] = layouts[k]->stride[i] = 0;
    }
}

tn_layout layout_axis_last(tn_layout layout, int32_t axis)
{
    int64_t extent = layout.extent[axis], stride = layout.stride[axis];
    int32_t last = layout.rank - 1;
    for (int32_t i = axis; i < last; i++)
        shape_copy_axis(&layout, i, i + 1);
    layout.extent[last] = extent;
    layout.stride[last] = stride;
    return layout;
}

bool layout_fold(tn_layout *layout, int32_t rank)
{
    int64_t extent = 1, stride = 1;
    bool even = true;
    for (int32_t i = layout->rank - 1; i >= rank - 1; i--) {
        int64_t n = layout->extent[i], step = layout->stride[i];
        layout->extent[i] = layout->stride[i] = 0;
        even = even && (n == 1 || extent == 1 || step == extent * stride);
        stride = extent == 1 && n > 1 ? step : stride;
        extent *= n;
    }
    layout->rank = rank;
    layout->extent[rank - 1] = extent;
    layout->stride[rank - 1] = stride;
    return even;
}

void layouts_collapse_rows(tn_layout *const *layouts, uint32_t count)
{
    int64_t extent[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    int64_t stride[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    for (uint32_t k = 0; k < count; k++) {
        layouts[k]->rank--;
        extent[k] = layouts[k]->extent[layouts[k]->rank];
        stride[k] = layouts[k]->stride[layouts[k]->rank];
    }
    layouts_collapse(layouts, count);
    for (uint32_t k = 0; k < count; k++) {
        layouts[k]->extent[layouts[k]->rank] = extent[k];
        layouts[k]->stride[layouts[k]->rank] = stride[k];
        layouts[k]->rank++;
    }
}

// --- text ------------------------------------------------------------------------------

// At most 8 extents of 20 characters: always fits TYPE_TEXT.
static const char *base_shape_print(const char *dtype, const tn_type *type,
                                    char buffer[TYPE_TEXT])
{
    int at = snprintf(buffer, TYPE_TEXT, "%s[", dtype);
    int32_t rank = type->rank < 0 ? 0 : type->rank > TN_MAX_RANK ? TN_MAX_RANK : type->rank;
    for (int32_t i = 0; i < rank; i++)
        at += snprintf(buffer + at, (size_t)(TYPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       type->extent[i]);
    snprintf(buffer + at, (size_t)(TYPE_TEXT - at), "]");
    return buffer;
}

const char *type_print(const tn_type *type, char buffer[TYPE_TEXT])
{
    return base_shape_print(dtype_name(type->dtype), type, buffer);
}

const char *shape_print(const tn_type *type, char buffer[TYPE_TEXT])
{
    return base_shape_print("", type, buffer);
}

// At most 8 strides of 20 characters and an offset: always fits LAYOUT_TEXT.
const char *layout_print(const tn_layout *layout, char buffer[LAYOUT_TEXT])
{
    tn_type type = {.dtype = layout->dtype, .rank = layout->rank}, strides = type;
    char text[TYPE_TEXT], by[TYPE_TEXT];
    for (int32_t i = 0; i < TN_MAX_RANK; i++) {
        type.extent[i] = layout->extent[i];
        strides.extent[i] = layout->stride[i];
    }
    snprintf(buffer, LAYOUT_TEXT, "%s at %" PRId64 " by %s", type_print(&type, text),
             layout->offset, shape_print(&strides, by));
    return buffer;
}

bool layout_has_rows(const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    return last < 0 || layout->stride[last] == 1 || layout->extent[last] <= 1;
}
