// SPDX-License-Identifier: MIT
// What primitives without a reference must give, in plain loops.
#include "cases.h"

enum { MAX_ROW = 100 }; // elements of a row

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

// --- rows ------------------------------------------------------------------------------

// What a row of n elements gives, in `out`; w and b: factors and terms by position.
typedef void row_oracle(const double *x, const double *w, const double *b, double *out,
                        int64_t n);

static double mean_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static void log_softmax_row(const double *x, const double *w, const double *b, double *out,
                            int64_t n)
{
    double most = -INFINITY, sum = 0;
    (void)w, (void)b;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] - most - log(sum);
}

static void softmax_row(const double *x, const double *w, const double *b, double *out,
                        int64_t n)
{
    log_softmax_row(x, w, b, out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = exp(out[i]);
}

static void rms_norm_row(const double *x, const double *w, const double *b, double *out,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] * x[i];
    double scale = 1 / sqrt(mean_of(out, n) + 1e-5);
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] * scale * w[i] + (b ? b[i] : 0);
}

static void layer_norm_row(const double *x, const double *w, const double *b, double *out,
                           int64_t n)
{
    double d[MAX_ROW], mean = mean_of(x, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = x[i] - mean;
    rms_norm_row(d, w, b, out, n);
}

// The elements of input `i` along a row: of its only axis, or the same one.
static const double *factors(const struct run *run, uint32_t i, double *out, int64_t n)
{
    if (run->c->num_inputs <= i)
        return NULL;
    for (int64_t k = 0; k < n; k++)
        out[k] = host_array_get(&run->in[i], run->in[i].count > 1 ? k : 0);
    return out;
}

static void each_row(const struct run *run, row_oracle *of, struct host_array *want)
{
    const tn_layout *in = &run->in[0].tensor.layout;
    int64_t index[TN_MAX_RANK] = {0}, outer[TN_MAX_RANK];
    int64_t axis = case_int(run->c, "axis", 0, -1);
    axis += axis < 0 ? in->rank : 0;
    double x[MAX_ROW], out[MAX_ROW], w[MAX_ROW], b[MAX_ROW];
    int64_t n = in->extent[axis], to = want->tensor.layout.stride[axis];
    if (n > MAX_ROW)
        abort();
    memcpy(outer, in->extent, sizeof(outer));
    outer[axis] = 1;
    do {
        int64_t at = tn_offset_at(in, index);
        for (int64_t i = 0; i < n; i++)
            x[i] = tn_get_f64(&run->in[0].tensor, at + i * in->stride[axis]);
        of(x, factors(run, 1, w, n), factors(run, 2, b, n), out, n);
        at = tn_offset_at(&want->tensor.layout, index);
        for (int64_t i = 0; i < n; i++)
            tn_set_f64(&want->tensor, at + i * to, out[i]);
    } while (tn_index_next(in->rank, outer, index));
}

void oracle_softmax(const struct run *run, struct host_array *want)
{
    each_row(run, softmax_row, want);
}

void oracle_log_softmax(const struct run *run, struct host_array *want)
{
    each_row(run, log_softmax_row, want);
}

void oracle_rms_norm(const struct run *run, struct host_array *want)
{
    each_row(run, rms_norm_row, want);
}

void oracle_layer_norm(const struct run *run, struct host_array *want)
{
    each_row(run, layer_norm_row, want);
}
