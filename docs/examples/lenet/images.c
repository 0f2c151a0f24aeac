// SPDX-License-Identifier: MIT
// An IDX file: two zero bytes, a type, the number of axes, big-endian extents, elements.
#include "images.h"
#include "fail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/checked.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_BYTES (INT64_C(1) << 31) // of elements
#define MAX_RATIO 1032               // to which deflate compresses at best

static bool read_exactly(gzFile file, void *data, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        unsigned step = size - done > 1 << 20 ? 1 << 20 : (unsigned)(size - done);
        int got = gzread(file, (char *)data + done, step);
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

static int read_shape(const char *path, gzFile file, int32_t rank, struct bytes *array)
{
    unsigned char start[4], extent[4];
    if (!read_exactly(file, start, 4) || start[0] || start[1])
        return fail("%s: not an IDX file", path);
    if (start[2] != 8)
        return fail("%s: elements of type 0x%02x; expected unsigned bytes (0x08)", path,
                    start[2]);
    if (start[3] != rank)
        return fail("%s: %d axes; expected %d", path, start[3], rank);
    array->shape.rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        if (!read_exactly(file, extent, 4))
            return fail("%s: truncated header", path);
        array->shape.extent[i] = (int64_t)extent[0] << 24 | (int64_t)extent[1] << 16 |
                                 (int64_t)extent[2] << 8 | extent[3];
    }
    return 0;
}

// Memory is taken for what the file can hold only.
static bool can_hold(const char *path, uint64_t bytes)
{
    struct stat info;
    return stat(path, &info) || !S_ISREG(info.st_mode) ||
           bytes / MAX_RATIO <= (uint64_t)info.st_size;
}

// "(2, 3)" into `text`. Returns `text`.
#define SHAPE_TEXT 80
static const char *shape_text(const tn_shape *shape, char text[SHAPE_TEXT])
{
    int used = snprintf(text, SHAPE_TEXT, "(");
    for (int32_t i = 0; i < shape->rank; i++)
        used += snprintf(text + used, SHAPE_TEXT - (size_t)used, "%s%" PRId64,
                         i ? ", " : "", shape->extent[i]);
    snprintf(text + used, SHAPE_TEXT - (size_t)used, ")");
    return text;
}

static bool count_elements(struct bytes *array)
{
    int64_t product = 1;
    for (int32_t i = 0; i < array->shape.rank; i++)
        if (!tn_checked_multiply_extents(product, array->shape.extent[i], &product))
            return false;
    array->count = (uint64_t)product;
    return product <= MAX_BYTES;
}

static int read_elements(const char *path, gzFile file, struct bytes *array)
{
    char text[SHAPE_TEXT], extra;
    if (!count_elements(array))
        return fail("%s: shape %s has more than %" PRId64 " bytes", path,
                    shape_text(&array->shape, text), MAX_BYTES);
    bool fits = can_hold(path, array->count);
    array->data = fits ? malloc(array->count ? array->count : 1) : NULL;
    if (fits && !array->data)
        return fail_memory();
    if (!fits || !read_exactly(file, array->data, array->count))
        return fail("%s: truncated or damaged: expected %" PRIu64 " bytes for shape %s",
                    path, array->count, shape_text(&array->shape, text));
    if (gzread(file, &extra, 1) != 0)
        return fail("%s: damaged: more behind the %" PRIu64 " bytes of shape %s", path,
                    array->count, shape_text(&array->shape, text));
    return 0;
}

void bytes_finish(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

int idx_read(const char *path, int32_t rank, struct bytes *out)
{
    struct bytes array = {0};
    errno = 0;
    gzFile file = gzopen(path, "rb"); // reads plain files too
    if (!file)
        return fail("cannot read %s: %s", path, strerror(errno ? errno : ENOMEM));
    int failed = read_shape(path, file, rank, &array);
    if (!failed)
        failed = read_elements(path, file, &array);
    gzclose(file);
    if (failed)
        bytes_finish(&array);
    else
        *out = array;
    return failed;
}

// The file with or without ".gz".
static int read_part(const char *directory, const char *prefix, const char *part,
                     int32_t rank, struct bytes *out)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s-%s-idx%d-ubyte.gz", directory, prefix, part,
                 rank) >= (int)sizeof(path))
        return fail("%.100s...: the name is too long", directory);
    if (access(path, F_OK))
        path[strlen(path) - 3] = '\0';
    int failed = 0;
    if (access(path, F_OK))
        failed = fail("no %s.gz; install the Debian package dataset-fashion-mnist, or give "
                      "--data DIR",
                      path);
    else
        failed = idx_read(path, rank, out);
    return failed;
}

static int check_set(const char *directory, const char *prefix, int num_classes,
                     const struct image_set *set)
{
    const tn_shape *shape = &set->images.shape;
    if (shape->extent[1] != 28 || shape->extent[2] != 28)
        return fail("%s: %s images of %" PRId64 " x %" PRId64 "; expected 28 x 28",
                    directory, prefix, shape->extent[1], shape->extent[2]);
    if (set->count != set->labels.shape.extent[0] || set->count < 1)
        return fail("%s: %" PRId64 " %s images with %" PRId64 " labels", directory,
                    set->count, prefix, set->labels.shape.extent[0]);
    const uint8_t *labels = set->labels.data;
    for (int64_t i = 0; i < set->count; i++)
        if (labels[i] >= num_classes)
            return fail("%s: %s label %" PRId64 " is %d; expected 0 to %d", directory,
                        prefix, i, labels[i], num_classes - 1);
    return 0;
}

int image_set_read(const char *directory, const char *prefix, int num_classes,
                   struct image_set *out)
{
    struct image_set set = {0};
    int failed = read_part(directory, prefix, "images", 3, &set.images);
    if (!failed)
        failed = read_part(directory, prefix, "labels", 1, &set.labels);
    set.count = set.images.shape.extent[0];
    if (!failed)
        failed = check_set(directory, prefix, num_classes, &set);
    if (failed)
        image_set_finish(&set);
    else
        *out = set;
    return failed;
}

void image_set_finish(struct image_set *set)
{
    bytes_finish(&set->images);
    bytes_finish(&set->labels);
    *set = (struct image_set){0};
}
