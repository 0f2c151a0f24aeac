// SPDX-License-Identifier: MIT
// Convolutions: what the three kernels share. All arrays are row-major, channels last.
//
// Patches of the input are laid out as rows (im2col), in tiles that stay in the
// second-level cache, and OpenBLAS multiplies them. Tiles run across images, so that small
// images make large products.
#ifndef CPU_BLAS_CONV_H
#define CPU_BLAS_CONV_H

#include <tenon/ops/nn_attrs.h>
#include "blas.h"
#include "kernels.h"

// Floats of a tile of patches, on the stack of the thread that fills it.
#define CONV_TILE 32768

struct conv {
    int64_t n, h, w, c; // input
    int64_t oh, ow, o;  // output
    int64_t kh, kw;     // window
    int64_t sh, sw, ph, pw, dh, dw;
    int64_t groups, cg, og; // channels and outputs of a group
    int64_t k;              // elements of a patch of a group
    int64_t pixels;         // of the output, in all images
    int64_t tile;           // patches in a tile
    const struct blas *blas;
};

// Fills *conv from the layouts of the input, the weights and the output.
void conv_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
               const tn_layout *out, struct conv *conv);

// Can the kernels take it? A patch has to fit into a tile.
bool conv_accepts(const struct conv *conv);

// Lays out the patches of group `g` for output pixels [first, first + count).
void conv_gather(const struct conv *conv, const float *x, int64_t g, int64_t first,
                 int64_t count, float *patches);

// Adds patches back to where they came from.
void conv_scatter(const struct conv *conv, float *x, int64_t g, int64_t first,
                  int64_t count, const float *patches);

#endif // CPU_BLAS_CONV_H
