// SPDX-License-Identifier: MIT
// Pooling, and weighted sums of pixels or rows, as resampling and bags of embeddings need.
#ifndef KERNELS_CPU_POOL_H
#define KERNELS_CPU_POOL_H

#include <stdint.h>

// The part of a window that lies within an image: `rows` rows, `row` floats apart, of
// `columns` adjacent pixels with `channels` floats each. `divisor` divides their sum.
struct cpu_window {
    int64_t rows, columns, row, channels;
    float divisor;
};

// The loops of one variant, on f32.
struct cpu_conv_kernels {
    // acc[j] += x[j].
    void (*add_into_f32)(float *acc, const float *x, int64_t n);
    // acc = max(acc, x) for one element of a pooling window, over a row of output pixels
    // with channels last: the input's pixel for output pixel p is at x + p * step. NaNs
    // win.
    void (*pool_max_f32)(float *acc, const float *x, int64_t pixels, int64_t channels,
                         int64_t step);
    // acc += x, with pixels as for pool_max_f32.
    void (*pool_add_f32)(float *acc, const float *x, int64_t pixels, int64_t channels,
                         int64_t step);
    // out = the means of windows whose first elements are at x + p * step, for output pixel
    // p, summed in row-major order.
    void (*pool_mean_f32)(float *out, const float *x, int64_t pixels, int64_t step,
                          const struct cpu_window *window);
    // The transpose of pool_add_f32: to += g * share, where the pixel of output pixel p is
    // at to + p * step.
    void (*pool_share_f32)(float *to, const float *g, int64_t pixels, int64_t channels,
                           int64_t step, float share);
    // out[j] = the sum over k < taps of x[positions[k] * step + j] * weights[k], in the
    // order of k, for j < n. `out` overlaps no part of x that is read.
    void (*blend_f32)(float *out, const float *x, const int32_t *positions,
                      const float *weights, int64_t taps, int64_t step, int64_t n);
    // out[i] = the sum of x[positions[k]] * weights[k] over starts[i] <= k < starts[i + 1],
    // for i < n. `each`: 1 or 2 if all sums have that many terms, else 0.
    void (*blend_points_f32)(float *out, const float *x, const int32_t *starts,
                             const int32_t *positions, const float *weights, int64_t each,
                             int64_t n);
    // The gradient of max pooling, for one element of the window as in pool_max_f32. The
    // first element of a window that is NaN or equals the maximum `out` gets the gradient:
    // where taken is 0, gx += g and taken = 1. Call it for the window's elements in
    // row-major order, with `taken` 0 at first.
    void (*pool_grad_f32)(float *gx, const float *x, const float *out, const float *g,
                          uint8_t *taken, int64_t pixels, int64_t channels, int64_t step);
};

#endif // KERNELS_CPU_POOL_H
