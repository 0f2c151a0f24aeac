// SPDX-License-Identifier: MIT
// Convolutions that give each channel filters of its own ("depthwise"), and their
// gradients. Pixels are rows of adjacent channels; all elements are f32, or all are f64.
//
// An output and a tap determine one source pixel, whose position along each axis is linear
// in both. So one description serves the forward pass and the gradient of the input, which
// with a stride s consists of s convolutions along the axis.
#ifndef KERNELS_CPU_DEPTHWISE_H
#define KERNELS_CPU_DEPTHWISE_H

#include <stdint.h>

// The most taps of a window.
#define CPU_DEPTHWISE_TAPS 1024

// One axis: output i of `count` is at first + i * step. Tap j of `taps`, which is number
// tap + j * tap_step of the window, reads source position from + i * by_output + j * by_tap
// for output i. Positions outside of [0, extent) are not read. by_output is at least 1.
struct cpu_depthwise_axis {
    int64_t first, step, count;
    int64_t tap, tap_step, taps;
    int64_t from, by_output, by_tap;
    int64_t extent;
};

// A convolution. Strides are in elements. The weights have `channels` elements for each tap
// of the window, row by row; a row of the window has `window` taps.
struct cpu_depthwise {
    const void *from, *weights;
    const void *start; // initial value of each channel's sum; NULL: 0
    void *to;
    int64_t channels, window;
    int64_t from_row, from_pixel;
    int64_t to_row, to_pixel;
    int64_t start_row, start_pixel; // strides: 0, or those of `to` when `start` is `to`
};

// The gradient of the weights: to[tap] += x[source position of i and tap] * g[i].
struct cpu_depthwise_sums {
    const void *x, *g;
    void *to; // laid out as the weights of struct cpu_depthwise
    int64_t channels, window;
    int64_t x_row, x_pixel;
    int64_t g_row, g_pixel;
};

// The loops of one variant for one dtype. Each computes output row `row` of axis y, with
// all outputs of axis x.
struct cpu_depthwise_kernels {
    void (*row)(const struct cpu_depthwise *p, const struct cpu_depthwise_axis *y,
                const struct cpu_depthwise_axis *x, int64_t row);
    void (*sums)(const struct cpu_depthwise_sums *p, const struct cpu_depthwise_axis *y,
                 const struct cpu_depthwise_axis *x, int64_t row);
};

#endif // KERNELS_CPU_DEPTHWISE_H
