// SPDX-License-Identifier: MIT
// What primitives without a reference must give, in plain loops.
#include "cases.h"

void oracle_same(const struct run *run, struct host_array *want)
{
    size_t size = (size_t)(want->count * tn_dtype_bytes(want->tensor.layout.dtype));
    memcpy(want->tensor.data, run->in[0].tensor.data, size);
}

// want[index] = in[map(index)], where `stride` are the input's strides by the output's
// axes.
static void gather(const struct host_array *in, const int64_t *stride, int64_t first,
                   struct host_array *want)
{
    tn_tensor seen = in->tensor;
    seen.layout.rank = want->tensor.layout.rank;
    seen.layout.offset = first;
    memcpy(seen.layout.extent, want->tensor.layout.extent, sizeof(seen.layout.extent));
    memcpy(seen.layout.stride, stride, sizeof(seen.layout.stride));
    tn_copy_region(&want->tensor, &seen);
}

void oracle_transpose(const struct run *run, struct host_array *want)
{
    const tn_layout *in = &run->in[0].tensor.layout;
    int64_t stride[TN_MAX_RANK] = {0};
    for (int32_t i = 0; i < in->rank; i++) {
        int64_t axis = case_int(run->c, "axes", (uint32_t)i, in->rank - 1 - i);
        stride[i] = in->stride[axis < 0 ? axis + in->rank : axis];
    }
    gather(&run->in[0], stride, 0, want);
}

// Strides of `in` seen with the axes of `out`: 0 where it is repeated.
static void repeated(const tn_layout *in, const tn_layout *out, int64_t *stride)
{
    int32_t shift = out->rank - in->rank;
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        stride[i] = i >= shift && i < out->rank && in->extent[i - shift] != 1
                        ? in->stride[i - shift]
                        : 0;
}

void oracle_broadcast(const struct run *run, struct host_array *want)
{
    int64_t stride[TN_MAX_RANK];
    repeated(&run->in[0].tensor.layout, &want->tensor.layout, stride);
    gather(&run->in[0], stride, 0, want);
}

void oracle_slice(const struct run *run, struct host_array *want)
{
    const tn_layout *in = &run->in[0].tensor.layout;
    int64_t stride[TN_MAX_RANK] = {0}, first = 0;
    for (int32_t i = 0; i < in->rank; i++) {
        // The cases give no start for axes that are taken from 0.
        first += case_int(run->c, "start", (uint32_t)i, 0) * in->stride[i];
        stride[i] = case_int(run->c, "step", (uint32_t)i, 1) * in->stride[i];
    }
    gather(&run->in[0], stride, first, want);
}

void oracle_sum_to(const struct run *run, struct host_array *want)
{
    const tn_layout *in = &run->in[0].tensor.layout;
    int64_t index[TN_MAX_RANK] = {0};
    tn_layout to = {.rank = in->rank};
    struct host_array sum =
        host_array_new(TN_F64, want->tensor.layout.rank, want->tensor.layout.extent);
    repeated(&want->tensor.layout, in, to.stride);
    do {
        int64_t at = tn_offset_at(&to, index);
        tn_set_f64(&sum.tensor, at,
                   tn_get_f64(&sum.tensor, at) +
                       tn_get_f64(&run->in[0].tensor, tn_offset_at(in, index)));
    } while (tn_index_next(in->rank, in->extent, index));
    for (int64_t i = 0; i < want->count; i++)
        if (tn_dtype_in(want->tensor.layout.dtype, TN_FLOAT_DTYPES))
            tn_set_f64(&want->tensor, i, host_array_get(&sum, i));
        else
            tn_set_i64(&want->tensor, i, (int64_t)host_array_get(&sum, i)); // wraps
    host_array_free(&sum);
}

void oracle_mean(const struct run *run, struct host_array *want)
{
    const tn_layout *in = &run->in[0].tensor.layout;
    int64_t index[TN_MAX_RANK] = {0}, axis = case_int(run->c, "axis", 0, -1);
    double *sum = calloc((size_t)want->count, sizeof(*sum));
    double per = (double)run->in[0].count / (double)want->count;
    if (!sum)
        abort();
    do {
        int64_t at = 0; // matrices only: one axis is kept, or none
        if (axis >= 0)
            at = index[1 - axis];
        sum[at] += tn_get_f64(&run->in[0].tensor, tn_offset_at(in, index));
    } while (tn_index_next(in->rank, in->extent, index));
    for (int64_t i = 0; i < want->count; i++)
        tn_set_f64(&want->tensor, i, sum[i] / per);
    free(sum);
}

void oracle_arange(const struct run *run, struct host_array *want)
{
    int64_t start = case_int(run->c, "start", 0, 0), step = case_int(run->c, "step", 0, 1);
    for (int64_t i = 0; i < want->count; i++)
        tn_set_f64(&want->tensor, i, (double)(start + i * step));
}

void oracle_full(const struct run *run, struct host_array *want)
{
    for (int i = 0; i < MAX_ATTRS && run->c->attrs[i].name; i++)
        if (strcmp(run->c->attrs[i].name, "value") == 0)
            for (int64_t k = 0; k < want->count; k++)
                tn_set_f64(&want->tensor, k, atof(run->c->attrs[i].text));
}

void oracle_clip(const struct run *run, struct host_array *want)
{
    bool is_float = tn_dtype_in(want->tensor.layout.dtype, TN_FLOAT_DTYPES);
    double lo = -INFINITY, hi = INFINITY;
    for (int i = 0; i < MAX_ATTRS && run->c->attrs[i].name; i++)
        *(strcmp(run->c->attrs[i].name, "lo") == 0 ? &lo : &hi) =
            atof(run->c->attrs[i].text);
    for (int64_t i = 0; i < want->count; i++) {
        double x = host_array_get(&run->in[0], i);
        x = fmax(x, is_float ? lo : ceil(lo));
        tn_set_f64(&want->tensor, i, fmin(x, is_float ? hi : floor(hi)));
    }
}
