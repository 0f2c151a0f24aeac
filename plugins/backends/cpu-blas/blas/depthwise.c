// SPDX-License-Identifier: MIT
// Sizes, axes and planes of depthwise convolutions. See depthwise.h.
#include "depthwise.h"

// Elements of the result of a band that passes through a worker's memory.
#define BAND 32768
// The fewest channels, which are vectors here, and the most filters of each for which this
// is faster than products of OpenBLAS, which has f32 only.
#define LEAST_CHANNELS 4
#define MOST_FILTERS 16
// The most bytes of memory of a worker: bands have whole rows.
#define MAX_WORKER (UINT64_C(16) << 20)

void depthwise_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
                    const tn_layout *y, struct depthwise *d)
{
    *d = (struct depthwise){.dtype = x->dtype};
    conv_read(attrs, x, w, y, &d->conv);
    const struct cpu_conv *v = &d->conv;
    d->real = d->dtype == TN_F64 ? TN_F64 : TN_F32;
    d->is_narrow = d->dtype != d->real;
    d->size = (int64_t)cpu_dtype_size(d->dtype);
    d->wide = (int64_t)cpu_dtype_size(d->real);
    d->each = v->c > 0 ? v->o / v->c : 0;
    d->taps = v->kh * v->kw;
    // Weights and bias twice: as given, and packed.
    uint64_t packed = tn_saturated_multiply((uint64_t)v->o, (uint64_t)d->taps + 1);
    packed = tn_saturated_multiply(packed, 2 * (uint64_t)d->wide);
    d->fixed = tn_saturated_add(packed, 256) & ~UINT64_C(63);
}

bool depthwise_accepts(const struct depthwise *d)
{
    const struct cpu_conv *v = &d->conv;
    return v->groups == v->c && v->c >= LEAST_CHANNELS && d->taps <= CPU_DEPTHWISE_TAPS &&
           (d->dtype != TN_F32 || d->each <= MOST_FILTERS) && d->worker <= MAX_WORKER;
}

void depthwise_cut(struct depthwise *d, int64_t rows, int64_t row, bool staged)
{
    d->band = staged ? 1 + BAND / (row + 1) : 1;
    if (d->band > rows)
        d->band = rows;
    d->bands = d->band > 0 ? (rows + d->band - 1) / d->band : 0;
}

const char *depthwise_stage(const struct depthwise *d, const struct images *from,
                            int64_t image, int64_t first, int64_t rows, char *wide,
                            char *planes)
{
    int64_t pixels = rows * from->row, n = pixels * from->channels;
    const char *data =
        from->data + (image * from->rows + first) * from->row * from->channels * d->size;
    if (d->is_narrow) {
        const void *in = data;
        d->kernels->cast[d->dtype][d->real](wide, &in, n, 0);
        data = wide;
    }
    if (from->each == 1)
        return data;
    d->kernels->transpose[d->wide == 8 ? 3 : 2](planes, n / from->each, data, from->each,
                                                n / from->each, from->each);
    return planes;
}

// n elements of the operands' dtype as `real`.
static const char *depthwise_widen(const struct depthwise *d, const tn_tensor *from,
                                   int64_t n, char *wide)
{
    const void *in = first_element(from);
    if (!d->is_narrow)
        return in;
    d->kernels->cast[d->dtype][d->real](wide, &in, n, 0);
    return wide;
}

void depthwise_pack(struct depthwise *d, const tn_tensor *w, const tn_tensor *bias)
{
    cpu_transpose_fn *transpose = d->kernels->transpose[d->wide == 8 ? 3 : 2];
    int64_t channels = d->conv.c, filters = d->conv.o, all = filters * d->taps;
    char *to = d->call->scratch, *spare = to + (all + filters) * d->wide;
    const char *from = depthwise_widen(d, w, all, spare);
    for (int64_t j = 0; j < d->each; j++)
        transpose(to + j * d->taps * channels * d->wide, channels,
                  from + j * d->taps * d->wide, d->each * d->taps, channels, d->taps);
    d->weights = to;
    if (!bias)
        return;
    d->start = to + all * d->wide;
    transpose(d->start, channels, depthwise_widen(d, bias, filters, spare), d->each,
              channels, d->each);
}

// --- axes ------------------------------------------------------------------------------

struct depthwise_line {
    int64_t in, out, window, stride, padding, dilation;
};

static struct depthwise_line depthwise_line(const struct cpu_conv *v, int axis)
{
    return axis == 0 ? (struct depthwise_line){v->h, v->oh, v->kh, v->sh, v->ph, v->dh}
                     : (struct depthwise_line){v->w, v->ow, v->kw, v->sw, v->pw, v->dw};
}

struct cpu_depthwise_axis depthwise_forward(const struct cpu_conv *conv, int axis)
{
    struct depthwise_line l = depthwise_line(conv, axis);
    return (struct cpu_depthwise_axis){
        .step = 1,
        .count = l.out,
        .tap_step = 1,
        .taps = l.window,
        .from = -l.padding,
        .by_output = l.stride,
        .by_tap = l.dilation,
        .extent = l.in,
    };
}

// Output o reads position p through tap k when o * stride == p + padding - k * dilation.
// For p of r, r + stride, .. these are the same taps, every stride / gcd(stride,
// dilation)th.
struct cpu_depthwise_axis depthwise_backward(const struct cpu_conv *conv, int axis,
                                             int64_t r)
{
    struct depthwise_line l = depthwise_line(conv, axis);
    int64_t a = l.stride, b = l.dilation, tap = 0;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    int64_t step = l.stride / a;
    while (tap < step && tap < l.window &&
           (r + l.padding - tap * l.dilation) % l.stride != 0)
        tap++;
    bool any = tap < step && tap < l.window;
    return (struct cpu_depthwise_axis){
        .first = r,
        .step = l.stride,
        .count = (l.in - r + l.stride - 1) / l.stride,
        .tap = tap,
        .tap_step = step,
        .taps = any ? (l.window - 1 - tap) / step + 1 : 0,
        .from = any ? (r + l.padding - tap * l.dilation) / l.stride : 0,
        .by_output = 1,
        .by_tap = -(l.dilation / a),
        .extent = l.out,
    };
}
