// SPDX-License-Identifier: MIT
// Images with labels in IDX files, in which MNIST and its relatives come, plain or gzipped.
#include "command.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <tenon/ops/base.h>

// Mean and standard deviation of Fashion-MNIST's training pixels, of 255.
#define PIXEL_MEAN 72.94
#define PIXEL_DEVIATION 90.02

static int read_part(tn_runtime *runtime, const char *folder, const char *prefix,
                     const char *part, int32_t rank, tn_table *out)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s-%s-idx%d-ubyte.gz", folder, prefix, part,
                 rank) >= (int)sizeof(path))
        return fail("%.100s...: the name is too long", folder);
    if (access(path, F_OK))
        path[strlen(path) - 3] = '\0';
    if (access(path, F_OK))
        return fail("no %s.gz; install the Debian package dataset-fashion-mnist, or give "
                    "--data DIR",
                    path);
    int failed = failed_call(tn_table_read(runtime, path, out));
    if (!failed && (out->shape.rank != rank || out->dtype != TN_U8))
        failed = fail("%s: %s of %d axes, expected bytes of %d", path,
                      tn_dtype_name(out->dtype), out->shape.rank, rank);
    return failed;
}

int images_read(tn_runtime *runtime, const char *folder, const char *prefix,
                tn_table tables[2])
{
    folder = folder ? folder : "/usr/share/datasets/fashion-mnist";
    int failed = read_part(runtime, folder, prefix, "images", 3, &tables[0]);
    if (!failed)
        failed = read_part(runtime, folder, prefix, "labels", 1, &tables[1]);
    if (failed)
        return failed;
    const int64_t *extent = tables[0].shape.extent, count = extent[0];
    char name[256];
    if (extent[1] != SIDE || extent[2] != SIDE)
        return fail("%s: %s images of %" PRId64 " x %" PRId64 "; expected %d x %d", folder,
                    prefix, extent[1], extent[2], SIDE, SIDE);
    if (count != tables[1].shape.extent[0] || count < 1)
        return fail("%s: %" PRId64 " %s images with %" PRId64 " labels", folder, count,
                    prefix, tables[1].shape.extent[0]);
    snprintf(name, sizeof(name), "%.200s: %s labels", folder, prefix);
    return failed_call(tn_table_check(&tables[1], name, 0, CLASSES - 1));
}

tn_array *images_normalised(tn_scope *s, tn_array *images)
{
    tn_array *x = tn_subtract(s, tn_astype(s, images, TN_F32), tn_float(s, PIXEL_MEAN));
    x = tn_multiply(s, x, tn_float(s, 1 / PIXEL_DEVIATION));
    return tn_reshape(s, x, TN_INTS(-1, SIDE, SIDE, 1));
}
