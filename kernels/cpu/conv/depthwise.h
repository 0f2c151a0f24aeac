// SPDX-License-Identifier: MIT
// Convolutions that give each channel filters of its own ("depthwise"), and their
// gradients. Pixels are rows of adjacent channels; all elements are f32, or all are f64.
//
// A product of an output and a tap reads one source pixel. Its position is linear in both
// along each axis, so that one description serves the forward pass and the gradient of the
// input, which with a stride s consists of s convolutions along the axis.
#ifndef KERNELS_CPU_DEPTHWISE_H
#define KERNELS_CPU_DEPTHWISE_H

#include <stdint.h>

// The most taps of a window.
#define CPU_DEPTHWISE_TAPS 1024

// One axis: output i of `count` is at first + i * step, and tap j of `taps`, which is
// number tap + j * tap_step of the window, reads for it from + i * by_output + j * by_tap
// of the source. What lies outside of [0, extent) is not read. by_output is at least 1.
struct cpu_depthwise_axis {
    int64_t first, step, count;
    int64_t tap, tap_step, taps;
    int64_t from, by_output, by_tap;
    int64_t extent;
};

// Strides are in elements. Weights are `channels` elements for each tap of the window, row
// by row, whose rows have `window` taps.
struct cpu_depthwise {
    const void *from, *weights;
    const void *start; // what sums start with, for each channel; NULL: 0
    void *to;
    int64_t channels, window;
    int64_t from_row, from_pixel;
    int64_t to_row, to_pixel;
    int64_t start_row, start_pixel; // 0, or those of `to` when `start` is `to`
};

// The gradient of the weights: to[tap] += x[position of i and tap] * g[i].
struct cpu_depthwise_sums {
    const void *x, *g;
    void *to; // as the weights above
    int64_t channels, window;
    int64_t x_row, x_pixel;
    int64_t g_row, g_pixel;
};

// The loops of one variant for one dtype. Each runs output `row` of axis y, and all of x.
struct cpu_depthwise_kernels {
    void (*row)(const struct cpu_depthwise *p, const struct cpu_depthwise_axis *y,
                const struct cpu_depthwise_axis *x, int64_t row);
    void (*sums)(const struct cpu_depthwise_sums *p, const struct cpu_depthwise_axis *y,
                 const struct cpu_depthwise_axis *x, int64_t row);
};

#endif // KERNELS_CPU_DEPTHWISE_H
