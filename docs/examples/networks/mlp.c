// SPDX-License-Identifier: MIT
// A perceptron of two hidden layers, by gradient descent with momentum.
#include "command.h"

#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

enum { HIDDEN = 128 };

static tn_array *scores(tn_net *n, tn_array *images)
{
    tn_scope *s = n->scope;
    tn_array *x = images_normalised(s, images);
    x = tn_reshape(s, x, TN_INTS(-1, SIDE * SIDE));
    x = tn_relu(s, tn_net_linear(n, "hidden1", x, HIDDEN));
    x = tn_relu(s, tn_net_linear(n, "hidden2", x, HIDDEN));
    return tn_net_linear(n, "out", x, CLASSES);
}

static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    return tn_net_loss(n, scores(n, batch[0]), batch[1]);
}

int train_mlp(struct asked *options)
{
    const struct network mlp = {
        .title = "A perceptron",
        .unit = "images",
        .loss = loss,
        .batch = 64,
        .epochs = 3,
        .trainer = {.optimiser = "sgd",
                    .lr = 0.05,
                    .attrs = tn_attrs("momentum", 0.9, "nesterov", 1)},
    };
    return classifier_run(&mlp, scores, options);
}
