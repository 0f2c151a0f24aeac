// SPDX-License-Identifier: MIT
// LeNet-5 on 28 x 28 images, channels last.
#include "lenet.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

// Parameters in order; `inputs` is how many values each output sums, for initialisation.
static const struct {
    const char *name;
    tn_shape shape;
    double inputs;
} params[LENET_PARAMS] = {
    {"conv1.weight", {4, 0, {6, 5, 5, 1}}, 25},   {"conv1.bias", {1, 0, {6}}, 25},
    {"conv2.weight", {4, 0, {16, 5, 5, 6}}, 150}, {"conv2.bias", {1, 0, {16}}, 150},
    {"fc1.weight", {2, 0, {400, 120}}, 400},      {"fc1.bias", {1, 0, {120}}, 400},
    {"fc2.weight", {2, 0, {120, 84}}, 120},       {"fc2.bias", {1, 0, {84}}, 120},
    {"fc3.weight", {2, 0, {84, 10}}, 84},         {"fc3.bias", {1, 0, {10}}, 84},
};

// Mean and standard deviation of Fashion-MNIST's training pixels, of 255.
#define PIXEL_MEAN 72.94
#define PIXEL_DEVIATION 90.02

// --- state -----------------------------------------------------------------------------

const char *lenet_state_name(int i, char name[LENET_NAME])
{
    static const char *const kinds[] = {"", "adam.m.", "adam.v."};
    if (i == LENET_STATE - 1)
        snprintf(name, LENET_NAME, "adam.step");
    else
        snprintf(name, LENET_NAME, "%s%s", kinds[i / LENET_PARAMS],
                 params[i % LENET_PARAMS].name);
    return name;
}

tn_shape lenet_state_shape(int i)
{
    return i == LENET_STATE - 1 ? (tn_shape){0} : params[i % LENET_PARAMS].shape;
}

static tn_ints ints_of(const tn_shape *shape)
{
    tn_ints ints = {.count = (uint32_t)shape->rank, .given = 1};
    for (int32_t i = 0; i < shape->rank; i++)
        ints.value[i] = shape->extent[i];
    return ints;
}

// Uniform in +-1/sqrt(inputs), each parameter from its own key.
static tn_array *initial_param(tn_scope *s, uint64_t seed, int i)
{
    const uint32_t words[2] = {(uint32_t)seed,
                               (uint32_t)(seed >> 32) ^ ((uint32_t)i << 16)};
    const tn_ints shape = ints_of(&params[i].shape);
    const double bound = 1 / sqrt(params[i].inputs);
    tn_random_uniform_options options = tn_random_uniform_defaults();
    options.shape = &shape;
    options.dtype = TN_F32;
    options.a = -bound;
    options.b = bound;
    return tn_random_uniform(s, tn_from_data(s, TN_U32, TN_SHAPE(2), words), &options);
}

static tn_array *zeros(tn_scope *s, const tn_shape *shape)
{
    const tn_ints extents = ints_of(shape);
    tn_full_options options = tn_full_defaults();
    options.shape = &extents;
    options.value = 0;
    options.dtype = TN_F32;
    return tn_full(s, &options);
}

tn_status lenet_init(tn_scope *s, uint64_t seed, tn_array **state)
{
    for (int i = 0; i < LENET_PARAMS; i++) {
        state[i] = initial_param(s, seed, i);
        for (int moment = 1; moment <= 2; moment++)
            state[moment * LENET_PARAMS + i] = zeros(s, &params[i].shape);
    }
    state[LENET_STATE - 1] = tn_f32(s, 0);
    return tn_scope_status(s);
}

// --- the network -----------------------------------------------------------------------

static tn_array *convolve(tn_scope *s, const tn_array *x, tn_array *const *p,
                          int64_t padding)
{
    tn_conv2d_options options = tn_conv2d_defaults();
    options.padding = TN_INTS(padding, padding);
    return tn_conv2d(s, x, p[0], p[1], &options);
}

static tn_array *pool(tn_scope *s, const tn_array *x)
{
    tn_max_pool2d_options options = tn_max_pool2d_defaults();
    options.window = TN_INTS(2, 2);
    return tn_max_pool2d(s, x, &options);
}

static tn_array *dense(tn_scope *s, const tn_array *x, tn_array *const *p)
{
    return tn_add(s, tn_matmul(s, x, p[0]), p[1]);
}

// Bytes to numbers around 0, with an axis for the one channel.
static tn_array *normalise(tn_scope *s, const tn_array *images)
{
    tn_array *x = tn_subtract(s, tn_astype(s, images, TN_F32), tn_float(s, PIXEL_MEAN));
    x = tn_multiply(s, x, tn_float(s, 1 / PIXEL_DEVIATION));
    return tn_reshape(s, x, TN_INTS(-1, 28, 28, 1));
}

tn_array *lenet_scores(tn_scope *s, tn_array *const *p, const tn_array *images)
{
    tn_array *x = normalise(s, images);
    x = pool(s, tn_relu(s, convolve(s, x, p, 2)));     // 28 x 28 x 6, then 14 x 14 x 6
    x = pool(s, tn_relu(s, convolve(s, x, p + 2, 0))); // 10 x 10 x 16, then 5 x 5 x 16
    x = tn_reshape(s, x, TN_INTS(-1, 400));
    x = tn_relu(s, dense(s, x, p + 4));
    x = tn_relu(s, dense(s, x, p + 6));
    return dense(s, x, p + 8);
}

// --- training --------------------------------------------------------------------------

static tn_array *mean_loss(tn_scope *s, const struct lenet_step *step)
{
    tn_array *images = tn_take(s, step->images, step->indices, 0);
    tn_array *labels = tn_take(s, step->labels, step->indices, 0);
    labels = tn_astype(s, labels, TN_I32);
    tn_array *scores = lenet_scores(s, step->state, images);
    return tn_mean(s, tn_cross_entropy(s, scores, labels, NULL, NULL), NULL, false);
}

tn_status lenet_step(tn_scope *s, const struct lenet_step *step, tn_array **out_loss,
                     tn_array **out_state)
{
    tn_array *const *state = step->state, *gradients[LENET_PARAMS];
    tn_array *loss = mean_loss(s, step);
    tn_array *done = tn_add(s, state[LENET_STATE - 1], tn_float(s, 1));
    tn_adam_options options = tn_adam_defaults();
    options.lr = step->lr;
    tn_status status = tn_vjp(s, &loss, NULL, 1, state, LENET_PARAMS, gradients);
    for (int i = 0; !status && i < LENET_PARAMS; i++) {
        const int m = LENET_PARAMS + i, v = 2 * LENET_PARAMS + i;
        status = tn_adam(s, state[i], gradients[i], state[m], state[v], done, &options,
                         &out_state[i], &out_state[m], &out_state[v]);
    }
    out_state[LENET_STATE - 1] = done;
    *out_loss = loss;
    return status;
}
