// SPDX-License-Identifier: MIT
// The maxima of windows and their positions (maxima.c).
#ifndef NN_MAXIMA_H
#define NN_MAXIMA_H

#include "images.h"

// x, of `images`, n axes and `channels`: out[0] has the greatest element of each window
// (images, windows, channels), out[1] where it is among those of its n axes, row after row.
// An axis has `size`, `window`, `stride`, `before`, `dilation` and `out`, or with a stride
// of 0 windows of at most `window` elements that divide it into `out`.
tn_status maxima_of(const tn_build *build, tn_array *x, int64_t images, int64_t channels,
                    int32_t n, const struct spatial axes[MOST_SPATIAL], tn_array *out[2]);

#endif // NN_MAXIMA_H
