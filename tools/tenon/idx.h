// SPDX-License-Identifier: MIT
// IDX files, in which MNIST and its relatives come, plain or compressed with gzip.
#ifndef TOOLS_TENON_IDX_H
#define TOOLS_TENON_IDX_H

#include "tool.h"

// Reads bytes with `rank` axes. On failure *out is unchanged.
int idx_read(const char *path, int32_t rank, struct host_array *out);

// Images (n, rows, columns) and labels (n), both u8.
struct image_set {
    struct host_array images, labels;
    int64_t count;
};

// Reads `prefix`-images-idx3-ubyte[.gz] and -labels-idx1-ubyte[.gz] of `directory`. Labels
// are below `num_classes`.
int image_set_read(const char *directory, const char *prefix, int num_classes,
                   struct image_set *out);
void image_set_finish(struct image_set *set);

#endif // TOOLS_TENON_IDX_H
