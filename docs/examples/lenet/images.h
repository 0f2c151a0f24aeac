// SPDX-License-Identifier: MIT
// Images with labels in IDX files, in which MNIST and its relatives come, plain or
// compressed with gzip.
#ifndef LENET_IMAGES_H
#define LENET_IMAGES_H

#include <stdint.h>
#include <tenon/tenon.h>

// Bytes of a shape, row-major without gaps.
struct bytes {
    tn_shape shape;
    uint64_t count;
    uint8_t *data; // owned
};

void bytes_finish(struct bytes *bytes);

// Reads bytes with `rank` axes. On failure *out is unchanged.
int idx_read(const char *path, int32_t rank, struct bytes *out);

// Images (n, rows, columns) and labels (n).
struct image_set {
    struct bytes images, labels;
    int64_t count;
};

// Reads `prefix`-images-idx3-ubyte[.gz] and -labels-idx1-ubyte[.gz] of `directory`. Labels
// are below `num_classes`.
int image_set_read(const char *directory, const char *prefix, int num_classes,
                   struct image_set *out);
void image_set_finish(struct image_set *set);

#endif // LENET_IMAGES_H
