// SPDX-License-Identifier: MIT
// Arrays of a graph: uploaded, and as views made by the pack `base` whose elements are not
// in row-major order.
#include "graph_data.h"

tn_array *graph_data(tn_scope *scope, const struct array *array)
{
    tn_type type = array_type(array);
    tn_shape shape = {.rank = type.rank};
    memcpy(shape.extent, type.extent, sizeof(shape.extent));
    struct array plain = array_new(&type, PLAIN, 0);
    array_copy(&plain, array);
    const char *first = (const char *)plain.tensor.data +
                        plain.tensor.layout.offset * tn_dtype_bytes(type.dtype);
    tn_array *made = tn_from_data(scope, type.dtype, &shape, first);
    array_free(&plain);
    return made;
}

// Uploads an array of type `type` that holds the elements of `from` at the offsets given by
// `layout`, whose axes are the axes of `from`. Bytes between the elements are 0x5a.
static tn_array *graph_data_upload(tn_scope *scope, const tn_type *type,
                                   const struct array *from, const tn_layout *layout)
{
    struct array whole = array_new(type, PLAIN, 0x5a);
    tn_tensor part = whole.tensor;
    part.layout = *layout;
    part.layout.offset += whole.tensor.layout.offset;
    if (from->count)
        tn_copy_region(&part, &from->tensor);
    tn_array *made = graph_data(scope, &whole);
    array_free(&whole);
    return made;
}

static tn_array *graph_data_transposed(tn_scope *scope, const struct array *array)
{
    tn_type type = array_type(array), turned = type;
    tn_layout layout = array->tensor.layout;
    tn_ints axes = {.count = (uint32_t)type.rank, .given = 1};
    int64_t stride = 1;
    for (int32_t i = 0; i < type.rank; i++) {
        turned.extent[i] = type.extent[type.rank - 1 - i];
        axes.value[i] = type.rank - 1 - i;
        layout.stride[i] = stride;
        stride *= type.extent[i];
    }
    layout.offset = 0;
    return tn_op(scope, "base.transpose",
                 TN_IN(graph_data_upload(scope, &turned, array, &layout)),
                 tn_attrs("axes", (const tn_ints *)&axes));
}

// View that starts at `first` on each axis and takes every `step`-th element; -1 reverses.
static tn_array *graph_data_sliced(tn_scope *scope, const struct array *array,
                                   int64_t first, int64_t step)
{
    tn_type wide = array_type(array);
    tn_layout layout = array->tensor.layout;
    tn_ints start = {.count = (uint32_t)wide.rank, .given = 1}, stop = start, by = start;
    int64_t stride = 1;
    layout.offset = 0;
    for (int32_t i = wide.rank - 1; i >= 0; i--) {
        int64_t n = wide.extent[i];
        wide.extent[i] = step > 0 ? first + n * step : n;
        layout.stride[i] = stride * step;
        layout.offset += (step > 0 || n == 0 ? first : n - 1) * stride;
        stride *= wide.extent[i];
        start.value[i] = step > 0 ? first : INT64_MAX; // INT64_MAX: no bound
        stop.value[i] = INT64_MAX;
        by.value[i] = step;
    }
    return tn_op(scope, "base.slice",
                 TN_IN(graph_data_upload(scope, &wide, array, &layout)),
                 tn_attrs("start", (const tn_ints *)&start, "stop", (const tn_ints *)&stop,
                          "step", (const tn_ints *)&by));
}

static tn_array *graph_data_repeated(tn_scope *scope, const struct array *array)
{
    struct array one = *array;
    tn_ints shape = {.count = (uint32_t)one.tensor.layout.rank, .given = 1};
    memcpy(shape.value, one.tensor.layout.extent, sizeof(shape.value));
    if (one.tensor.layout.extent[0] > 0) {
        one.count /= one.tensor.layout.extent[0];
        one.tensor.layout.extent[0] = 1;
    }
    return tn_op(scope, "base.broadcast_to", TN_IN(graph_data(scope, &one)),
                 tn_attrs("shape", (const tn_ints *)&shape));
}

tn_array *graph_laid_out(tn_scope *scope, const struct array *array, enum layout_kind kind)
{
    if (array->tensor.layout.rank == 0)
        return graph_data(scope, array);
    switch (kind) {
    case SHIFTED:
        return graph_data_sliced(scope, array, 1, 1);
    case GAPS:
        return graph_data_sliced(scope, array, 1, 2);
    case REVERSED:
        return graph_data_sliced(scope, array, 0, -1);
    case TRANSPOSED:
        return graph_data_transposed(scope, array);
    case REPEATED:
        return graph_data_repeated(scope, array);
    default:
        return graph_data(scope, array);
    }
}
