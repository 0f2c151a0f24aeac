// SPDX-License-Identifier: MIT
// Shared by formats of images: one array without a name, bytes [height, width, 3], red,
// green and blue; bounds of its size.
//
// Nothing in a file is trusted.
#ifndef FORMATS_IMAGE_H
#define FORMATS_IMAGE_H

#include <tenon/format.h>

// The most pixels of an image, and the most of its height and width: its bytes stay below
// 2^29.
#define IMAGE_MOST_PIXELS (INT64_C(1) << 27)
#define IMAGE_MOST_SIDE 65535
#define IMAGE_CHANNELS 3

// Gives a content with an image of this size, for image_close. `offset` of its bytes where
// the file stores them as they are, else 0. TN_ERR_REFUSED: it is empty, or too large.
tn_status image_list(const tn_host *host, const tn_format_source *source, uint64_t height,
                     uint64_t width, uint64_t offset,
                     const tn_format_content **out_content);
void image_close(const tn_host *host, const tn_format_content *content);

#endif // FORMATS_IMAGE_H
