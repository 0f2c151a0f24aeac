// SPDX-License-Identifier: MIT
// Patches of the input of a convolution as rows of a matrix, and back. All arrays are
// row-major, channels last, of f32.
#ifndef KERNELS_CPU_PATCHES_H
#define KERNELS_CPU_PATCHES_H

#include <stdint.h>

struct cpu_conv {
    int64_t n, h, w, c;             // input
    int64_t oh, ow, o;              // output
    int64_t kh, kw;                 // window
    int64_t sh, sw, ph, pw, dh, dw; // stride, padding, dilation
    int64_t groups, cg, og;         // input and output channels of a group
    int64_t k;                      // elements of a patch of a group
    int64_t pixels;                 // output pixels of all images
    int64_t tile;                   // patches in a tile
};

// im2col: writes the patches of group `g` for output pixels [first, first + count).
void cpu_conv_gather(const struct cpu_conv *conv, const float *x, int64_t g, int64_t first,
                     int64_t count, float *patches);

// col2im: adds patches to the elements of x from which cpu_conv_gather reads them.
void cpu_conv_scatter(const struct cpu_conv *conv, float *x, int64_t g, int64_t first,
                      int64_t count, const float *patches);

#endif // KERNELS_CPU_PATCHES_H
