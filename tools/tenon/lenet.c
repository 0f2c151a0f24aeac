// SPDX-License-Identifier: MIT
// LeNet-5 on 28 x 28 images, channels last.
#include "lenet.h"

#include <math.h>
#include <stdio.h>

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
    const tn_ints shape = ints_of(&params[i].shape), *extents = &shape;
    double bound = 1 / sqrt(params[i].inputs);
    tn_array *key = tn_from_data(s, TN_U32, TN_SHAPE(2), words);
    return tn_op(s, "base.random_uniform", TN_IN(key),
                 tn_attrs("shape", extents, "dtype", "f32", "a", -bound, "b", bound));
}

tn_status lenet_init(tn_scope *s, uint64_t seed, tn_array **state)
{
    for (int i = 0; i < LENET_PARAMS; i++) {
        const tn_ints shape = ints_of(&params[i].shape), *extents = &shape;
        state[i] = initial_param(s, seed, i);
        for (int moment = 1; moment <= 2; moment++)
            state[moment * LENET_PARAMS + i] =
                tn_op(s, "base.full", NULL, 0,
                      tn_attrs("shape", extents, "value", 0.0, "dtype", "f32"));
    }
    state[LENET_STATE - 1] = tn_f32(s, 0);
    return tn_scope_status(s);
}

// --- the network -----------------------------------------------------------------------

static tn_array *relu(tn_scope *s, const tn_array *x)
{
    return tn_op(s, "nn.relu", TN_IN(x), TN_NO_ATTRS);
}

static tn_array *convolve(tn_scope *s, const tn_array *x, tn_array *const *p,
                          int64_t padding)
{
    return tn_op(s, "nn.conv2d", TN_IN(x, p[0], p[1]),
                 tn_attrs("padding", TN_INTS(padding, padding)));
}

static tn_array *pool(tn_scope *s, const tn_array *x)
{
    return tn_op(s, "nn.max_pool2d", TN_IN(x), tn_attrs("window", TN_INTS(2, 2)));
}

static tn_array *dense(tn_scope *s, const tn_array *x, tn_array *const *p)
{
    tn_array *product = tn_op(s, "base.matmul", TN_IN(x, p[0]), TN_NO_ATTRS);
    return tn_op(s, "base.add", TN_IN(product, p[1]), TN_NO_ATTRS);
}

// Bytes to numbers around 0, with an axis for the one channel.
static tn_array *normalise(tn_scope *s, const tn_array *images)
{
    tn_array *x = tn_op(s, "base.astype", TN_IN(images), tn_attrs("dtype", "f32"));
    x = tn_op(s, "base.subtract", TN_IN(x, tn_float(s, PIXEL_MEAN)), TN_NO_ATTRS);
    x = tn_op(s, "base.multiply", TN_IN(x, tn_float(s, 1 / PIXEL_DEVIATION)), TN_NO_ATTRS);
    return tn_op(s, "base.reshape", TN_IN(x), tn_attrs("shape", TN_INTS(-1, 28, 28, 1)));
}

tn_array *lenet_scores(tn_scope *s, tn_array *const *p, const tn_array *images)
{
    tn_array *x = normalise(s, images);
    x = pool(s, relu(s, convolve(s, x, p, 2)));     // 28 x 28 x 6, then 14 x 14 x 6
    x = pool(s, relu(s, convolve(s, x, p + 2, 0))); // 10 x 10 x 16, then 5 x 5 x 16
    x = tn_op(s, "base.reshape", TN_IN(x), tn_attrs("shape", TN_INTS(-1, 400)));
    x = relu(s, dense(s, x, p + 4));
    x = relu(s, dense(s, x, p + 6));
    return dense(s, x, p + 8);
}

// --- training --------------------------------------------------------------------------

static tn_array *mean_loss(tn_scope *s, const struct lenet_step *step)
{
    tn_array *images =
        tn_op(s, "base.take", TN_IN(step->images, step->indices), tn_attrs("axis", 0));
    tn_array *labels =
        tn_op(s, "base.take", TN_IN(step->labels, step->indices), tn_attrs("axis", 0));
    labels = tn_op(s, "base.astype", TN_IN(labels), tn_attrs("dtype", "i32"));
    tn_array *scores = lenet_scores(s, step->state, images);
    tn_array *losses = tn_op(s, "nn.cross_entropy", TN_IN(scores, labels), TN_NO_ATTRS);
    return tn_op(s, "base.mean", TN_IN(losses), TN_NO_ATTRS);
}

tn_status lenet_step(tn_scope *s, const struct lenet_step *step, tn_array **out_loss,
                     tn_array **out_state)
{
    tn_array *const *state = step->state, *gradients[LENET_PARAMS];
    tn_array *loss = mean_loss(s, step);
    tn_array *done =
        tn_op(s, "base.add", TN_IN(state[LENET_STATE - 1], tn_float(s, 1)), TN_NO_ATTRS);
    tn_status status = tn_vjp(s, &loss, NULL, 1, state, LENET_PARAMS, gradients);
    for (int i = 0; !status && i < LENET_PARAMS; i++) {
        tn_array *updated[3];
        const int m = LENET_PARAMS + i, v = 2 * LENET_PARAMS + i;
        status =
            tn_op_n(s, "nn.adam", TN_IN(state[i], gradients[i], state[m], state[v], done),
                    tn_attrs("lr", step->lr), updated, 3);
        out_state[i] = updated[0];
        out_state[m] = updated[1];
        out_state[v] = updated[2];
    }
    out_state[LENET_STATE - 1] = done;
    *out_loss = loss;
    return status;
}
