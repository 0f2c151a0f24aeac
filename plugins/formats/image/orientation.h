// SPDX-License-Identifier: MIT
// The orientation that cameras note in Exif: how stored pixels are turned to be looked at.
//
// Nothing in the note is trusted: what is damaged, or missing, is orientation 1.
#ifndef FORMATS_IMAGE_ORIENTATION_H
#define FORMATS_IMAGE_ORIENTATION_H

#include <stdint.h>

// Gives the orientation, 1 to 8, of what is behind the marker and the length of a segment
// APP1: "Exif", two zero bytes, and a header of TIFF.
int32_t orientation_read(const uint8_t *data, uint64_t size);

// 1 where rows of what is looked at are columns of what is stored.
int32_t orientation_swaps(int32_t orientation);

// Turns an image of three bytes a pixel, stored as `height` rows of `width`: `out` has as
// many bytes, and does not overlap `from`.
void orientation_apply(int32_t orientation, const uint8_t *from, int64_t height,
                       int64_t width, uint8_t *out);

#endif // FORMATS_IMAGE_ORIENTATION_H
