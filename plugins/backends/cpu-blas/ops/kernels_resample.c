// SPDX-License-Identifier: MIT
// nn.resample2d/1 and its transpose, for f32, channels last: each result is a sum of taps,
// elements times weights, which a table has for rows and for columns. The transpose's table
// has for each element of the images those results that it is in.
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/resample.h>
#include "kernels.h"

#define PIECE_ELEMENTS 20000 // least elements of a piece

// Taps of result i: starts[i] <= k < starts[i + 1]. The sum is divided by divisors[i].
struct taps {
    int64_t out, in;
    int64_t each; // taps of every result; 0: they differ
    bool is_identity, has_divisors;
    int32_t *starts, *positions;
    float *weights, *divisors;
};

struct resampling {
    struct taps rows, columns;
};

// --- tables -----------------------------------------------------------------------------

static tn_resample_axis cpu_resample_axis_of(const tn_cpu_call *call, int i, bool is_input)
{
    const tn_resample2d_attrs *attrs = call->attrs;
    int64_t from = call->inputs[0].layout.extent[i + 1];
    int64_t to = call->outputs[0].layout.extent[i + 1];
    double step = i ? attrs->column_step : attrs->row_step;
    tn_resample_axis a = {is_input ? to : from, is_input ? from : to, step, attrs->mode,
                          attrs->align_corners};
    if (step == 0)
        a.step = (double)a.in / (double)a.out;
    return a;
}

static uint64_t count_taps(const tn_resample_axis *a)
{
    uint64_t count = 0;
    for (int64_t i = 0; i < a->out; i++)
        count += (uint64_t)tn_resample_taps(a, i);
    return count;
}

// Bytes of an axis' table, all of its numbers of 4 bytes.
static uint64_t table_bytes(const tn_resample_axis *a)
{
    return 4 * (2 * count_taps(a) + 2 * (uint64_t)(a->in > a->out ? a->in : a->out) + 2);
}

static void fill_taps(const tn_resample_axis *a, struct taps *t)
{
    int32_t n = 0;
    for (int64_t i = 0; i < a->out; i++) {
        int64_t count = tn_resample_taps(a, i);
        t->starts[i] = n;
        t->divisors[i] = (float)tn_resample_divisor(a, i);
        t->has_divisors |= t->divisors[i] != 1;
        for (int64_t k = 0; k < count; k++, n++) {
            t->positions[n] = (int32_t)tn_resample_index(a, i, k);
            t->weights[n] = (float)tn_resample_weight(a, i, k);
        }
    }
    t->starts[a->out] = n;
}

// The taps sorted by the positions that they read. While they are filled in,
// starts[position + 1] is the number of the position's next tap.
static void fill_transpose(const tn_resample_axis *a, struct taps *t)
{
    memset(t->starts, 0, (size_t)(a->in + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = 0; k < tn_resample_taps(a, i); k++) {
            int64_t position = tn_resample_index(a, i, k);
            if (position + 2 <= a->in)
                t->starts[position + 2]++;
        }
    for (int64_t i = 2; i <= a->in; i++)
        t->starts[i] += t->starts[i - 1];
    for (int64_t i = 0; i < a->out; i++)
        for (int64_t k = 0; k < tn_resample_taps(a, i); k++) {
            int32_t n = t->starts[tn_resample_index(a, i, k) + 1]++;
            t->positions[n] = (int32_t)i;
            t->weights[n] =
                (float)(tn_resample_weight(a, i, k) / tn_resample_divisor(a, i));
        }
}

// The table of an axis in `memory`; gives what is behind it.
static void *make_taps(const tn_resample_axis *a, bool is_input, void *memory,
                       struct taps *t)
{
    uint64_t count = count_taps(a);
    *t = (struct taps){.in = is_input ? a->out : a->in,
                       .out = is_input ? a->in : a->out,
                       .is_identity = tn_resample_is_identity(a)};
    t->positions = memory;
    t->weights = (float *)(t->positions + count);
    t->starts = (int32_t *)(t->weights + count);
    t->divisors = (float *)(t->starts + t->out + 1);
    if (is_input)
        fill_transpose(a, t);
    else
        fill_taps(a, t);
    t->each = t->starts[1];
    for (int64_t i = 1; i < t->out && t->each; i++)
        t->each = t->starts[i + 1] - t->starts[i] == t->each ? t->each : 0;
    return (char *)memory + table_bytes(a);
}

static tn_status resample_prepare(const tn_cpu_call *call, bool is_input, void **out_state)
{
    tn_resample_axis rows = cpu_resample_axis_of(call, 0, is_input),
                     columns = cpu_resample_axis_of(call, 1, is_input);
    uint64_t size = sizeof(struct resampling) + table_bytes(&rows) + table_bytes(&columns);
    struct resampling *made = call->host->alloc(call->host, size, 16);
    if (!made)
        return TN_ERR_MEMORY;
    void *next = make_taps(&rows, is_input, made + 1, &made->rows);
    make_taps(&columns, is_input, next, &made->columns);
    *out_state = made;
    return TN_OK;
}

static void resample_finish(const tn_host *host, void *state)
{
    host->free(host, state);
}

// --- launches ---------------------------------------------------------------------------

struct resample_run {
    const struct resampling *by;
    const struct cpu_conv_kernels *conv;
    const float *from;
    float *to, *scratch;
    int64_t channels;
};

static void cpu_resample_divide(float *x, int64_t n, float divisor)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= divisor;
}

// One row of an image from its rows, of `width` elements.
static void make_row(const struct resample_run *run, const float *image, int64_t at,
                     int64_t width, float *out)
{
    const struct taps *t = &run->by->rows;
    int32_t first = t->starts[at];
    run->conv->blend_f32(out, image, t->positions + first, t->weights + first,
                         t->starts[at + 1] - first, width, width);
    if (t->has_divisors)
        cpu_resample_divide(out, width, t->divisors[at]);
}

static void make_columns(const struct resample_run *run, const float *row, float *out)
{
    const struct taps *t = &run->by->columns;
    int64_t channels = run->channels;
    if (channels == 1)
        run->conv->blend_points_f32(out, row, t->starts, t->positions, t->weights, t->each,
                                    t->out);
    for (int64_t i = 0; i < t->out && channels != 1; i++) {
        int32_t first = t->starts[i];
        run->conv->blend_f32(out + i * channels, row, t->positions + first,
                             t->weights + first, t->starts[i + 1] - first, channels,
                             channels);
    }
    for (int64_t i = 0; i < t->out && t->has_divisors; i++)
        cpu_resample_divide(out + i * channels, channels, t->divisors[i]);
}

// Whether row `at` has one tap, that of the row before.
static bool is_the_same(const struct taps *t, int64_t at)
{
    return t->each == 1 && at > 0 && t->positions[at] == t->positions[at - 1] &&
           t->weights[at] == t->weights[at - 1];
}

static void resample_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct resample_run *run = context;
    const struct taps *rows = &run->by->rows, *columns = &run->by->columns;
    int64_t width = columns->in * run->channels, wide = columns->out * run->channels;
    float *between = run->scratch + worker * width;
    for (int64_t i = begin; i < end; i++) {
        const float *image = run->from + i / rows->out * rows->in * width;
        float *out = run->to + i * wide;
        if (i > begin && is_the_same(rows, i % rows->out)) {
            memcpy(out, out - wide, (size_t)wide * sizeof(float));
        } else if (columns->is_identity) {
            make_row(run, image, i % rows->out, width, out);
        } else if (rows->is_identity) {
            make_columns(run, image + i % rows->out * width, out);
        } else {
            make_row(run, image, i % rows->out, width, between);
            make_columns(run, between, out);
        }
    }
}

static tn_status resample_launch(const tn_cpu_call *call)
{
    const tn_layout *x = &call->inputs[0].layout, *out = &call->outputs[0].layout;
    struct resample_run run = {
        .by = call->state,
        .conv = kernel_variant(call)->conv,
        .from = first_element(&call->inputs[0]),
        .to = first_element(&call->outputs[0]),
        .scratch = call->scratch,
        .channels = x->extent[3],
    };
    int64_t row = out->extent[2] * out->extent[3];
    if (count_elements(out) > 0)
        call->parallel_for(call, out->extent[0] * out->extent[1],
                           1 + PIECE_ELEMENTS / (row + 1), resample_rows, &run);
    return TN_OK;
}

static uint64_t resample_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    uint64_t row = tn_saturated_multiply((uint64_t)x->extent[2], (uint64_t)x->extent[3]);
    return tn_saturated_multiply(tn_saturated_multiply(row, sizeof(float)),
                                 query->num_workers);
}

// Positions and counts of taps are 32 bits.
static int32_t resample_accepts(const tn_kernel_query *query)
{
    for (int i = 1; i < 3; i++)
        if (query->inputs[0].extent[i] > INT32_MAX / 8 ||
            query->outputs[0].extent[i] > INT32_MAX / 8)
            return 0;
    return 1;
}

static const tn_operand_rule f32_images[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
};
#define RESAMPLE_KERNEL(of, is_input)                                                      \
    static tn_status of##_prepare(const tn_cpu_call *call, void **out_state)               \
    {                                                                                      \
        return resample_prepare(call, is_input, out_state);                                \
    }                                                                                      \
    static const tn_cpu_kernel of##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = resample_launch,                                                         \
        .prepare = of##_prepare,                                                           \
        .finish = resample_finish,                                                         \
    };                                                                                     \
    const tn_kernel of##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "nn." #of "/1",                                                       \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "taps",                                                                    \
        .priority = 500,                                                                   \
        TN_OPERANDS(f32_images),                                                           \
        .payload = &of##_payload,                                                          \
        .scratch_size = resample_scratch,                                                  \
        .accepts = resample_accepts,                                                       \
    }
RESAMPLE_KERNEL(resample2d, false);
RESAMPLE_KERNEL(resample2d_input, true);
