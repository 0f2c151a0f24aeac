// SPDX-License-Identifier: MIT
// The maxima of windows and their positions (maxima.c).
#ifndef NN_MAXIMA_H
#define NN_MAXIMA_H

#include "images.h"

// x has `images`, n axes and `channels`: out[0] is the greatest element of each window
// (images, windows, channels), out[1] its flat position in the n axes, in row-major order.
// `axes` have `size`, `window`, `stride`, `before`, `dilation` and `out`; with stride 0,
// windows of at most `window` elements divide the axis into `out`.
tn_status maxima_of(const tn_build *build, tn_array *x, int64_t images, int64_t channels,
                    int32_t n, const struct spatial axes[MOST_SPATIAL], tn_array *out[2]);

#endif // NN_MAXIMA_H
