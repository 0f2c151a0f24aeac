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
#include "cpu/conv/patches.h"
#include "ops/kernels.h"

// Floats of a tile of patches, on the stack of the thread that fills the tile.
#define CONV_TILE 32768

// Fills *conv from the layouts of the input, the weights and the output.
void conv_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
               const tn_layout *out, struct cpu_conv *conv);

// Whether the kernels can compute this convolution: OpenBLAS is there, and a tile holds at
// least four patches.
bool conv_accepts(const struct cpu_conv *conv);

#endif // CPU_BLAS_CONV_H
