// SPDX-License-Identifier: MIT
// The orientation that cameras note in Exif: how the stored image is turned for display.
//
// Nothing in the note is trusted: a damaged or missing one means orientation 1.
#ifndef FORMATS_IMAGE_ORIENTATION_H
#define FORMATS_IMAGE_ORIENTATION_H

#include <stdint.h>

// Gives the orientation, 1 to 8, from the body of an APP1 segment: "Exif", two zero bytes,
// and a header of TIFF.
int32_t orientation_read(const uint8_t *data, uint64_t size);

// 1 where rows of the displayed image are columns of the stored one.
int32_t orientation_swaps(int32_t orientation);

// Turns a stored image of `height` rows of `width` pixels, three bytes each, into `out`, of
// as many bytes, which does not overlap `from`.
void orientation_apply(int32_t orientation, const uint8_t *from, int64_t height,
                       int64_t width, uint8_t *out);

#endif // FORMATS_IMAGE_ORIENTATION_H
