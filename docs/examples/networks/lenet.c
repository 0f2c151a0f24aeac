// SPDX-License-Identifier: MIT
// LeNet-5 (LeCun, Bottou, Bengio and Haffner 1998), with rectifiers, by Adam.
#include "command.h"

#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

static tn_array *convolve(tn_net *n, const char *name, tn_array *x, int64_t filters,
                          int64_t padding)
{
    x = tn_relu(n->scope, tn_net_conv2d(n, name, x, filters, 5, 1, padding));
    return tn_net_max_pool(n, x, 2, 2, 0);
}

static tn_array *scores(tn_net *n, tn_array *images)
{
    tn_scope *s = n->scope;
    tn_array *x = images_normalised(s, images);
    x = convolve(n, "conv1", x, 6, 2);  // 28 x 28 x 6, then 14 x 14 x 6
    x = convolve(n, "conv2", x, 16, 0); // 10 x 10 x 16, then 5 x 5 x 16
    x = tn_reshape(s, x, TN_INTS(-1, 400));
    x = tn_relu(s, tn_net_linear(n, "fc1", x, 120));
    x = tn_relu(s, tn_net_linear(n, "fc2", x, 84));
    return tn_net_linear(n, "fc3", x, CLASSES);
}

static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    return tn_net_loss(n, scores(n, batch[0]), batch[1]);
}

int train_lenet(struct asked *options)
{
    const struct network lenet = {
        .title = "LeNet-5",
        .unit = "images",
        .loss = loss,
        .batch = 64,
        .epochs = 3,
        .trainer = {.optimiser = "adam", .lr = 1e-3},
    };
    return classifier_run(&lenet, scores, options);
}
