// SPDX-License-Identifier: MIT
// Convolutions: shared by the forward kernel and the kernels of its two gradients. All
// arrays are row-major, channels last.
//
// Patches of the input become the rows of a matrix (im2col), in tiles that stay in the
// second-level cache, and OpenBLAS multiplies the tiles. A tile may span images, so that
// small images make large products.
#ifndef CPU_BLAS_CONV_H
#define CPU_BLAS_CONV_H

#include <tenon/ops/nn_attrs.h>
#include "blas.h"
#include "ops/kernels.h"

// Floats of a tile of patches, on the stack of the thread that fills the tile.
#define CONV_TILE 32768

struct conv {
    int64_t n, h, w, c;             // input
    int64_t oh, ow, o;              // output
    int64_t kh, kw;                 // window
    int64_t sh, sw, ph, pw, dh, dw; // stride, padding, dilation
    int64_t groups, cg, og;         // input and output channels of a group
    int64_t k;                      // elements of a patch of a group
    int64_t pixels;                 // of the output, in all images
    int64_t tile;                   // patches in a tile
    const struct blas *blas;
};

// Fills *conv from the layouts of the input, the weights and the output.
void conv_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
               const tn_layout *out, struct conv *conv);

// Whether the kernels can compute this convolution: OpenBLAS is there, and a tile holds at
// least four patches.
bool conv_accepts(const struct conv *conv);

// im2col: writes the patches of group `g` for output pixels [first, first + count).
void conv_gather(const struct conv *conv, const float *x, int64_t g, int64_t first,
                 int64_t count, float *patches);

// col2im: adds patches to the elements of x from which conv_gather reads them.
void conv_scatter(const struct conv *conv, float *x, int64_t g, int64_t first,
                  int64_t count, const float *patches);

#endif // CPU_BLAS_CONV_H
