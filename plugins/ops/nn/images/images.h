// SPDX-License-Identifier: MIT
// Shared by convolutions and pooling of 1 to 3 dimensions: lists of attributes, and the
// order of axes.
#ifndef NN_IMAGES_H
#define NN_IMAGES_H

#include "../pack.h"
#include <tenon/ops/resample.h>

#define MOST_SPATIAL 3 // axes beside those of images and channels

// Extents and attributes of one axis beside those of images and channels.
struct spatial {
    int64_t size;          // of x
    int64_t window;        // elements
    int64_t stride;        // from one window to the next
    int64_t before, after; // padding
    int64_t dilation;      // from one element of a window to the next
    int64_t out;           // windows
};

// The letter of axis i of n: L of vectors, H and W of images, D, H and W of volumes.
static inline char letter_of(int32_t n, int32_t i)
{
    return "LHWDHW"[n * (n - 1) / 2 + i];
}

// Fills the numbers of `n` axes from a list with one number for all, or one for each axis;
// `absent` where it is not given. Fails on a number below `least` or above INT32_MAX.
tn_status read_numbers(const tn_host *host, const char *name, const tn_ints *list,
                       int32_t n, int64_t absent, int64_t least, int64_t out[MOST_SPATIAL]);
// Reads padding: one number for all axes, one for each, or two for each: before and behind.
tn_status read_padding(const tn_host *host, const tn_ints *list, int32_t n,
                       struct spatial axes[MOST_SPATIAL]);

// Fails where all windows together have more than 2^48 elements: products of extents fit.
tn_status check_elements(const tn_host *host, int32_t n,
                         const struct spatial axes[MOST_SPATIAL]);

// Checks x, with `n` axes beside images and channels; channels are axis `axis`, 1 or the
// last.
tn_status check_images(const tn_host *host, const char *input, const tn_type *type,
                       int32_t n, int64_t axis);

// Moves axis 1 of an array of rank n + 2 to the end where `axis` is 1, and back.
tn_array *channels_last(const tn_build *build, tn_array *x, int32_t n, int64_t axis);
tn_array *channels_back(const tn_build *build, tn_array *x, int32_t n, int64_t axis);

// x, channels last, padded with `value`: before and after of each of `n` axes. Numbers
// below 0 count as 0.
tn_array *padded_images(const tn_build *build, tn_array *x, int32_t n,
                        const struct spatial axes[MOST_SPATIAL], double value);

// Merges the `size` slices along `axis` into the axis of images; and splits x, made of
// these, with the batch in front and slices of type `slice`.
tn_array *merge_batch(const tn_build *build, tn_array *x, int32_t axis, int64_t size);
tn_array *split_batch(const tn_build *build, tn_array *x, const tn_array *slice,
                      int64_t size);

// An axis: its extents, and the distance of results in elements of x.
struct resampled_axis {
    int64_t in, out;
    double step;
};

// x resampled along `n` axes from `first` on (resample.c): columns and rows, then depth.
tn_array *resampled(const tn_build *build, tn_array *x, int32_t n, int32_t first,
                    const struct resampled_axis axes[MOST_SPATIAL], int64_t mode,
                    int64_t align_corners);

#define AXIS_FIELD(type)                                                                   \
    TN_I64_FIELD(type, axis, -1, "of channels: the last one, or 1, as PyTorch has it")

#endif // NN_IMAGES_H
