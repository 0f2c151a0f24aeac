// SPDX-License-Identifier: MIT
// The core's own primitives: tn.custom/1 and its like (custom.c), and tn.copy/1, its
// input's elements in order. The scheduler inserts a copy where a kernel needs an operand
// in another layout. Plugins may bring kernels for tn.copy/1. The primitive is found by its
// full id alone, and no list of primitives has it.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "registry.h"

static char *primitive_own_element(const tn_tensor *tensor, int64_t offset, size_t size)
{
    return (char *)tensor->data + offset * (int64_t)size;
}

// Copies the row that begins at element `from` to `to`, and gives the end of the copy.
static char *copy_row(char *to, const tn_tensor *in, int64_t from, int64_t extent,
                      int64_t stride, size_t size)
{
    if (stride == 1) {
        memcpy(to, primitive_own_element(in, from, size), (size_t)extent * size);
        return to + (size_t)extent * size;
    }
    for (int64_t i = 0; i < extent; i++, to += size)
        memcpy(to, primitive_own_element(in, from + i * stride, size), size);
    return to;
}

// The reference of tn.copy/1. Its output is contiguous, as all outputs are.
static tn_status copy_elements(const tn_cpu_call *call)
{
    const tn_tensor *in = call->inputs;
    const tn_layout *layout = &in->layout;
    int64_t at[TN_MAX_RANK] = {0}, from = layout->offset;
    size_t size = dtype_size(layout->dtype);
    char *to = primitive_own_element(call->outputs, call->outputs->layout.offset, size);
    int32_t last = layout->rank - 1;
    int64_t extent = last < 0 ? 1 : layout->extent[last];
    int64_t rows = extent ? layout_elements(layout) / extent : 0;
    for (int64_t row = 0; row < rows; row++) {
        to = copy_row(to, in, from, extent, last < 0 ? 1 : layout->stride[last], size);
        for (int32_t i = last; i-- > 0;) { // count up the outer axes, the last one fastest
            from += layout->stride[i];
            if (++at[i] < layout->extent[i])
                break;
            from -= at[i] * layout->stride[i];
            at[i] = 0;
        }
    }
    return TN_OK;
}

static const tn_input_info inputs[] = {{"x", "what is copied", 0, TN_ALL_DTYPES}};

static const tn_primitive copy = {
    .struct_size = sizeof(copy),
    .id = "tn.copy/1",
    .doc = "The elements of x, row-major without gaps.",
    TN_INPUTS(inputs),
    .expr = "x",
    .reference = copy_elements,
};

tn_status prim_register_own(tn_runtime *runtime)
{
    struct prim_set *set = runtime->prims;
    tn_status status = prim_register(runtime, NULL, &copy);
    if (status != TN_OK)
        return status;
    set->copy = set->prims[--set->num_prims]; // off the list; by_id still has it
    for (uint32_t given = 0; given < CUSTOM_SETS && status == TN_OK; given++) {
        status = custom_register(runtime, given);
        set->num_prims -= status == TN_OK;
    }
    return status;
}

const struct prim *prim_copy(const tn_runtime *runtime)
{
    return runtime->prims->copy;
}
