// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, the checks of arguments, and the
// graph-building helpers of the rules.
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

// The primitives and the files that define them, which meson.build reads here: X(name,
// "file") for nn_<name>. Primitives in NN_BATCHED have a hand-written batching rule
// <name>_vmap (batch.c); the rules of others are derived from their expression.
#define NN_BATCHED(X)                                                                      \
    X(cross_entropy, "loss.c")                                                             \
    X(conv2d, "conv.c")                                                                    \
    X(conv2d_input, "conv.c")                                                              \
    X(conv2d_weight, "conv.c")                                                             \
    X(max_pool2d, "pool.c")                                                                \
    X(max_pool2d_grad, "pool.c")
// Composites decompose into others when they are applied.
#define NN_COMPOSITES(X)                                                                   \
    X(conv1d, "images/convolutions.c")                                                     \
    X(conv2d_2, "images/convolutions.c")                                                   \
    X(conv3d, "images/convolutions.c")                                                     \
    X(conv_transpose1d, "images/convolutions.c")                                           \
    X(conv_transpose2d, "images/convolutions.c")                                           \
    X(conv_transpose3d, "images/convolutions.c")                                           \
    X(max_pool1d, "images/pooling.c")                                                      \
    X(max_pool2d_2, "images/pooling.c")                                                    \
    X(max_pool3d, "images/pooling.c")                                                      \
    X(avg_pool1d, "images/pooling.c")                                                      \
    X(avg_pool2d, "images/pooling.c")                                                      \
    X(avg_pool3d, "images/pooling.c")                                                      \
    X(adaptive_max_pool1d, "images/pooling.c")                                             \
    X(adaptive_max_pool2d, "images/pooling.c")                                             \
    X(adaptive_max_pool3d, "images/pooling.c")                                             \
    X(adaptive_avg_pool1d, "images/pooling.c")                                             \
    X(adaptive_avg_pool2d, "images/pooling.c")                                             \
    X(adaptive_avg_pool3d, "images/pooling.c")                                             \
    X(global_avg_pool, "images/pooling.c")                                                 \
    X(global_max_pool, "images/pooling.c")                                                 \
    X(softmin, "functions/activations.c")                                                  \
    X(glu, "functions/activations.c")                                                      \
    X(prelu, "functions/activations.c")                                                    \
    X(mse_loss, "functions/losses.c")                                                      \
    X(l1_loss, "functions/losses.c")                                                       \
    X(smooth_l1_loss, "functions/losses.c")                                                \
    X(huber_loss, "functions/losses.c")                                                    \
    X(log_cosh_loss, "functions/losses.c")                                                 \
    X(hinge_loss, "functions/losses.c")                                                    \
    X(hinge_embedding_loss, "functions/losses.c")                                          \
    X(soft_margin_loss, "functions/losses.c")                                              \
    X(binary_cross_entropy, "functions/losses.c")                                          \
    X(binary_cross_entropy_with_logits, "functions/losses.c")                              \
    X(kl_div, "functions/losses.c")                                                        \
    X(poisson_nll_loss, "functions/losses.c")                                              \
    X(gaussian_nll_loss, "functions/losses.c")                                             \
    X(normalize, "functions/distances.c")                                                  \
    X(cosine_similarity, "functions/distances.c")                                          \
    X(margin_ranking_loss, "functions/distances.c")                                        \
    X(cosine_embedding_loss, "functions/distances.c")                                      \
    X(triplet_margin_loss, "functions/distances.c")                                        \
    X(nll_loss, "functions/classes.c")                                                     \
    X(cross_entropy_2, "functions/classes.c")                                              \
    X(interpolate, "images/interpolate.c")                                                 \
    X(linear, "layers/norms.c")                                                            \
    X(batch_norm, "layers/norms.c")                                                        \
    X(instance_norm, "layers/norms.c")                                                     \
    X(lstm, "layers/recurrent.c")                                                          \
    X(gru, "layers/recurrent.c")                                                           \
    X(lstm_layers, "layers/recurrent_layers.c")                                            \
    X(gru_layers, "layers/recurrent_layers.c")                                             \
    X(rnn_layers, "layers/recurrent_layers.c")                                             \
    X(rnn, "layers/recurrent.c")                                                           \
    X(causal_conv1d, "layers/causal.c")                                                    \
    X(max_unpool1d, "images/maxima.c")                                                     \
    X(fractional_max_pool2d, "images/fractional.c")                                        \
    X(fractional_max_pool3d, "images/fractional.c")                                        \
    X(fractional_max_pool2d_with_indices, "images/fractional.c")                           \
    X(fractional_max_pool3d_with_indices, "images/fractional.c")                           \
    X(max_unpool2d, "images/maxima.c")                                                     \
    X(max_unpool3d, "images/maxima.c")                                                     \
    X(max_pool1d_with_indices, "images/pooling.c")                                         \
    X(max_pool2d_with_indices, "images/pooling.c")                                         \
    X(max_pool3d_with_indices, "images/pooling.c")                                         \
    X(adaptive_max_pool1d_with_indices, "images/pooling.c")                                \
    X(adaptive_max_pool2d_with_indices, "images/pooling.c")                                \
    X(adaptive_max_pool3d_with_indices, "images/pooling.c")                                \
    X(lp_pool1d, "images/lp_pool.c")                                                       \
    X(lp_pool2d, "images/lp_pool.c")                                                       \
    X(lp_pool3d, "images/lp_pool.c")                                                       \
    X(grid_sample, "images/sample.c")                                                      \
    X(affine_grid, "images/sample.c")                                                      \
    X(ctc_loss, "functions/ctc.c")                                                         \
    X(pixel_shuffle, "images/shuffle.c")                                                   \
    X(pixel_unshuffle, "images/shuffle.c")                                                 \
    X(channel_shuffle, "images/shuffle.c")                                                 \
    X(unfold, "images/shuffle.c")                                                          \
    X(fold, "images/shuffle.c")                                                            \
    X(dropout1d, "layers/chance.c")                                                        \
    X(dropout2d, "layers/chance.c")                                                        \
    X(dropout3d, "layers/chance.c")                                                        \
    X(alpha_dropout, "layers/chance.c")                                                    \
    X(feature_alpha_dropout, "layers/chance.c")                                            \
    X(rrelu, "layers/chance.c")                                                            \
    X(gumbel_softmax, "layers/chance.c")                                                   \
    X(bilinear, "layers/vectors.c")                                                        \
    X(embedding_bag, "layers/vectors.c")                                                   \
    X(local_response_norm, "layers/vectors.c")                                             \
    X(multi_margin_loss, "functions/labels.c")                                             \
    X(multilabel_margin_loss, "functions/labels.c")                                        \
    X(multilabel_soft_margin_loss, "functions/labels.c")                                   \
    X(pairwise_distance, "functions/distances.c")                                          \
    X(pdist, "functions/distances.c")
#define NN_PRIMITIVES(X)                                                                   \
    X(relu, "activation.c")                                                                \
    X(softmax, "norm.c")                                                                   \
    X(log_softmax, "norm.c")                                                               \
    X(layer_norm, "norm.c")                                                                \
    X(layer_norm_grad, "norm_grad.c")                                                      \
    X(rms_norm, "norm.c")                                                                  \
    X(group_norm, "norm.c")                                                                \
    X(sgd, "optimiser.c")                                                                  \
    X(adam, "optimiser.c")                                                                 \
    X(gelu, "gelu.c")                                                                      \
    X(silu, "gelu.c")                                                                      \
    X(dropout, "dropout.c")                                                                \
    X(rope, "rope.c")                                                                      \
    X(scaled_dot_product_attention, "attention.c")                                         \
    X(attention_grad, "attention.c")                                                       \
    X(attention_with_sinks, "attention.c")                                                 \
    X(attention_with_sinks_grad, "attention.c")                                            \
    X(bag_sum, "layers/vectors.c")                                                         \
    X(recurrence, "layers/recurrence.c")                                                   \
    X(recurrence_steps, "layers/recurrence.c")                                             \
    X(recurrence_grad, "layers/recurrence.c")                                              \
    X(mean_pool2d, "images/mean_pool.c")                                                   \
    X(mean_pool2d_input, "images/mean_pool.c")                                             \
    X(resample2d, "images/resample.c")                                                     \
    X(resample2d_input, "images/resample.c")                                               \
    X(relu6, "functions/activations.c")                                                    \
    X(relu2, "functions/activations.c")                                                    \
    X(selu, "functions/activations.c")                                                     \
    X(mish, "functions/activations.c")                                                     \
    X(hardswish, "functions/activations.c")                                                \
    X(hardsigmoid, "functions/activations.c")                                              \
    X(logsigmoid, "functions/activations.c")                                               \
    X(softsign, "functions/activations.c")                                                 \
    X(tanhshrink, "functions/activations.c")                                               \
    X(leaky_relu, "functions/activations.c")                                               \
    X(elu, "functions/activations.c")                                                      \
    X(celu, "functions/activations.c")                                                     \
    X(hardshrink, "functions/activations.c")                                               \
    X(softshrink, "functions/activations.c")                                               \
    X(squareplus, "functions/activations.c")                                               \
    X(softplus, "functions/activations.c")                                                 \
    X(hardtanh, "functions/activations.c")                                                 \
    X(threshold, "functions/activations.c")                                                \
    NN_COMPOSITES(X)                                                                       \
    NN_BATCHED(X)
#define NN_DECLARE(name, ...) extern const tn_primitive nn_##name;
NN_PRIMITIVES(NN_DECLARE)
#undef NN_DECLARE
#define NN_DECLARE(name, ...)                                                              \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes);
NN_BATCHED(NN_DECLARE)
#undef NN_DECLARE
tn_status layer_norm_vjp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *cotangents, const uint64_t *wanted,
                         tn_array **gradients); // norm_grad.c

// The head of a decomposition; and the record of composite "nn." `id`, with function
// NAME_decompose. Further fields may follow.
#define DECOMPOSE(name)                                                                    \
    static tn_status name##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)
#define COMPOSITE(name, text, sentence, ...)                                               \
    const tn_primitive nn_##name = {.struct_size = sizeof(tn_primitive),                   \
                                    .id = "nn." text,                                      \
                                    .doc = sentence,                                       \
                                    .decompose = name##_decompose,                         \
                                    __VA_ARGS__}

// --- checks (common/check.c)
// -------------------------------------------------------------------

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT]);

// Fails unless input `input` is a float array with the axes that `axes` describes.
tn_status check_float(const tn_host *host, const char *input, const tn_type *type);
tn_status check_dtype(const tn_host *host, const char *input, const tn_type *type,
                      tn_dtype expected);
tn_status check_rank(const tn_host *host, const char *input, const tn_type *type,
                     int32_t rank, const char *axes);
// Fails unless `type` has exactly these extents.
tn_status check_extents(const tn_host *host, const char *input, const tn_type *type,
                        int32_t rank, const int64_t *extent);

// Reads attribute `name` as rows and columns: two values, one for both, or `absent` when
// not given. Fails on more values, and on a value below `least` or above INT32_MAX.
tn_status read_pair(const tn_host *host, const char *name, const tn_ints *list,
                    int64_t absent, int64_t least, int64_t out[2]);

// Gives `axis` counted from the front; fails when it is out of range for `rank`.
tn_status axis_within(const tn_host *host, int64_t axis, int32_t rank, int32_t *out);

// --- graph building ---------------------------------------------------------------------

// Whether a vjp has to give the gradient of input `input`: one bit an input.
static inline int wants(const uint64_t *wanted, uint32_t input)
{
    return (wanted[input / 64] >> input % 64 & 1) != 0;
}

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

// Status of a vjp: fails when a wanted gradient is NULL.
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

// Applies reshape or broadcast_to ("base.reshape/1") with these extents.
tn_array *with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                     int32_t rank, const int64_t *extent);
// Elements first, first + step, ... of `axis`, `count` of them: a view.
tn_array *part_of_axis(const tn_build *build, const tn_array *x, int32_t axis,
                       int64_t first, int64_t step, int64_t count);
// 0, 1, ... n - 1 along an axis that has `behind` axes of extent 1 behind it: i64.
tn_array *counted(const tn_build *build, int64_t n, int32_t behind);
tn_array *zeros(const tn_build *build, tn_dtype dtype, int32_t rank, const int64_t *extent);
tn_array *cast(const tn_build *build, const tn_array *x, tn_dtype dtype);
tn_array *add(const tn_build *build, const tn_array *x, const tn_array *y);

// Random u32 words of these extents, which follow from the seed, an i64 scalar (dropout.c).
tn_array *words_of_seed(const tn_build *build, tn_array *seed, const tn_ints *shape);

// Rows, columns and channels of images (N, H, W, C): a strided block of each image.
struct window {
    int64_t row, column, channel;    // the first
    int64_t rows, columns, channels; // their number
    int64_t row_step, column_step;   // from one row, or one column, to the next
};
tn_array *window_slice(const tn_build *build, const tn_array *image,
                       const struct window *window);
tn_array *window_update(const tn_build *build, const tn_array *image,
                        const tn_array *update, const struct window *window);

// Adds a border of `value` to images, or removes a border: rows and columns on each side.
tn_array *pad_image(const tn_build *build, tn_array *image, const int64_t border[2],
                    double value);
tn_array *crop_image(const tn_build *build, tn_array *image, const int64_t border[2]);

#endif // NN_PACK_H
