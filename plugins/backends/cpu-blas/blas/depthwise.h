// SPDX-License-Identifier: MIT
// Depthwise convolutions (as many groups as channels): what the kernels of the forward pass
// and of both gradients share.
//
// f32 and f64 are read and written where they are. Other floats become f32 in bands, some
// rows of an image that stay in the second-level cache, and so do operands with several
// filters for each channel: their filters become planes, one behind the other, each with
// adjacent channels as the loops want them.
#ifndef CPU_BLAS_DEPTHWISE_H
#define CPU_BLAS_DEPTHWISE_H

#include "conv.h"

// An operand of images: x with C channels, or the output (or its gradient) with C * each.
struct images {
    const char *data;
    int64_t rows, row, channels; // of an image; pixels of a row
    int64_t each;                // planes
};

struct depthwise {
    struct cpu_conv conv;
    const tn_cpu_call *call; // NULL: only sizes are asked for
    const struct cpu_kernels *kernels;
    const struct cpu_depthwise_kernels *loops;
    tn_dtype dtype, real; // of the operands; what is computed in
    int64_t size, wide;   // bytes of each
    int64_t each, taps;   // filters of a channel; taps of a filter
    int64_t band;         // rows of the result, or for weights of the gradient, at a time
    int64_t bands;        // of an image
    bool is_narrow;       // dtype is not `real`
    struct images from, to;
    char *weights, *start;  // planes of `real`, packed; NULL: no bias
    char *workers;          // scratch memory of the workers
    uint64_t fixed, worker; // bytes of what is packed; of a worker
    uint64_t buffer[4];     // bytes of a worker's buffers
};

// Fills what depends on layouts. `x` and `y` are the layouts of the input and of the output
// of the forward pass.
void depthwise_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
                    const tn_layout *y, struct depthwise *d);

// Whether the kernels take the convolution.
bool depthwise_accepts(const struct depthwise *d);

// Cuts results of `rows` rows of `row` elements into bands. `staged`: they pass through a
// worker's memory.
void depthwise_cut(struct depthwise *d, int64_t rows, int64_t row, bool staged);

// Rows [first, first + rows) of an image as planes of `real`: in place where they are that
// already, else in `wide` and `planes`.
const char *depthwise_stage(const struct depthwise *d, const struct images *from,
                            int64_t image, int64_t first, int64_t rows, char *wide,
                            char *planes);

// The filters and the bias (or NULL) as planes of taps of `real`, at the start of scratch
// memory, which takes d->fixed bytes.
void depthwise_pack(struct depthwise *d, const tn_tensor *w, const tn_tensor *bias);

// The axis of the forward pass (0: rows, 1: columns), and that of outputs r, r + stride, ..
// of the gradient of the input.
struct cpu_depthwise_axis depthwise_forward(const struct cpu_conv *conv, int axis);
struct cpu_depthwise_axis depthwise_backward(const struct cpu_conv *conv, int axis,
                                             int64_t r);

#endif // CPU_BLAS_DEPTHWISE_H
