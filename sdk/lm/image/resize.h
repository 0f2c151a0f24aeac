// SPDX-License-Identifier: MIT
// Resizing images of bytes, to the bit as Pillow does: models were trained on its pixels.
//
// Each axis is resized alone, the horizontal one first: a byte is a sum of bytes times
// weights, which are whole numbers of 2^-22, rounded and clamped to 0 .. 255. Where an
// image becomes smaller, the filter is widened by the same factor.
//
// Threads. Pure functions of their arguments: any thread.
#ifndef LM_RESIZE_H
#define LM_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

// An image of three bytes a pixel, row by row.
struct image {
    uint8_t *bytes;
    int64_t height, width;
};

// Gives `from` with another height and width, all from 1 to 65536, by a filter of
// <tenon/vision.h>. `out->bytes` is for free(). False: out of memory; *out is unchanged.
bool image_resize(const struct image *from, int64_t height, int64_t width, uint32_t filter,
                  struct image *out);

#endif // LM_RESIZE_H
