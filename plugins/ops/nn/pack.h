// SPDX-License-Identifier: MIT
// What the files of this pack share: the list of its primitives, checks, and pieces of
// graph.
#ifndef NN_PACK_H
#define NN_PACK_H

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/reference.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// The primitives; and those of them with a batching rule by hand, <name>_vmap (batch.c):
// the others' are derived from expressions. X(name)
#define NN_BATCHED(X)                                                                      \
    X(softmax)                                                                             \
    X(log_softmax)                                                                         \
    X(cross_entropy)                                                                       \
    X(conv2d)                                                                              \
    X(conv2d_input)                                                                        \
    X(conv2d_weight)                                                                       \
    X(max_pool2d)                                                                          \
    X(max_pool2d_grad)
#define NN_PRIMITIVES(X)                                                                   \
    X(relu)                                                                                \
    X(sgd)                                                                                 \
    X(adam)                                                                                \
    NN_BATCHED(X)
#define NN_DECLARE(name) extern const tn_primitive nn_##name;
NN_PRIMITIVES(NN_DECLARE)
#undef NN_DECLARE
#define NN_DECLARE(name)                                                                   \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes);
NN_BATCHED(NN_DECLARE)
#undef NN_DECLARE

// --- checks (check.c) -------------------------------------------------------------------

#define SHAPE_TEXT 200
// "[256, 512]"; returns buffer.
const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT]);

tn_status check_float(const tn_host *host, const char *input, const tn_type *type);
tn_status check_dtype(const tn_host *host, const char *input, const tn_type *type,
                      tn_dtype expected);
tn_status check_rank(const tn_host *host, const char *input, const tn_type *type,
                     int32_t rank, const char *axes);
// Fails unless `type` has exactly these extents.
tn_status check_extents(const tn_host *host, const char *input, const tn_type *type,
                        int32_t rank, const int64_t *extent);

// Rows and columns of an attribute: two values, one for both, or `absent` when not given.
// Fails when there are more, or one is less than `least`.
tn_status read_pair(const tn_host *host, const char *name, const tn_ints *list,
                    int64_t absent, int64_t least, int64_t out[2]);

// --- pieces -----------------------------------------------------------------------------

static inline int wants(const uint64_t *wanted, uint32_t input)
{
    return (wanted[input / 64] >> input % 64 & 1) != 0;
}

// What a rule that built `array` returns: the failure has been recorded already.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// The same for a vjp: fails when a wanted gradient was not built.
static inline tn_status built_wanted(const uint64_t *wanted, tn_array *const *gradients,
                                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (wants(wanted, i) && !gradients[i])
            return TN_ERR_ARGUMENT;
    return TN_OK;
}

// The dtype of an array; F32 for NULL.
tn_dtype dtype_of(const tn_build *build, const tn_array *array);

// reshape or broadcast_to ("base.reshape/1") with these extents.
tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     int32_t rank, const int64_t *extent);
tn_array *zeros(const tn_build *build, tn_dtype dtype, int32_t rank, const int64_t *extent);
tn_array *cast(const tn_build *build, const tn_array *x, tn_dtype dtype);
tn_array *reduce_axis(const tn_build *build, const char *primitive, const tn_array *x,
                      int64_t axis);
tn_array *add(const tn_build *build, const tn_array *x, const tn_array *y);

// A rectangle of rows and columns of an image (N, H, W, C), of some of its channels.
struct window {
    int64_t row, column, channel;    // the first
    int64_t rows, columns, channels; // how many
    int64_t row_step, column_step;   // their distance
};
tn_array *window_slice(const tn_build *build, const tn_array *image,
                       const struct window *window);
tn_array *window_update(const tn_build *build, const tn_array *image,
                        const tn_array *update, const struct window *window);

// An image with a border of `value`, and without one.
tn_array *pad_image(const tn_build *build, tn_array *image, const int64_t border[2],
                    double value);
tn_array *crop_image(const tn_build *build, tn_array *image, const int64_t border[2]);

#endif // NN_PACK_H
