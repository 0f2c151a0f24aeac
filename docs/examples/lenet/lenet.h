// SPDX-License-Identifier: MIT
// LeNet-5 (LeCun, Bottou, Bengio and Haffner 1998), with rectifiers: the network, its loss
// and one step of Adam, as graph.
#ifndef LENET_LENET_H
#define LENET_LENET_H

#include <tenon/tenon.h>

enum {
    LENET_CLASSES = 10,
    LENET_PARAMS = 10,
    // What training carries from step to step: parameters, Adam's two moments of each, and
    // the number of steps done (f32, scalar).
    LENET_STATE = 3 * LENET_PARAMS + 1,
};

// Names and shapes of the state's arrays: "conv1.weight", "adam.m.conv1.weight", ...
#define LENET_NAME 64
const char *lenet_state_name(int i, char name[LENET_NAME]);
tn_shape lenet_state_shape(int i);

// The state before the first step, from `seed`.
tn_status lenet_init(tn_scope *scope, uint64_t seed, tn_array **state);

// Class scores (n, 10) of images (n, 28, 28) of bytes.
tn_array *lenet_scores(tn_scope *scope, tn_array *const *params, const tn_array *images);

// One step on the images and labels that `indices` picks. Gives the loss before the step
// and the new state.
struct lenet_step {
    const tn_array *images, *labels; // the whole set: u8 (n, 28, 28) and u8 (n)
    const tn_array *indices;         // i32 (batch)
    tn_array *const *state;
    double lr;
};
tn_status lenet_step(tn_scope *scope, const struct lenet_step *step, tn_array **out_loss,
                     tn_array **out_state);

#endif // LENET_LENET_H
