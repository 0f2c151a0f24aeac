// SPDX-License-Identifier: MIT
// A residual network as of CIFAR (He, Zhang, Ren and Sun 2015), of 14 layers, by gradient
// descent with momentum and decay.
#include "command.h"

#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

enum {
    STAGES = 3,
    BLOCKS = 2,
    WIDTH = 16
}; // filters of the first stage; twice as many next

// A convolution without bias, and batch norm.
static tn_array *convolve(tn_net *n, const char *name, tn_array *x, int64_t filters,
                          int64_t size, int64_t stride)
{
    tn_net_enter(n, name, 0);
    x = tn_net_conv(n, "conv", x,
                    &(tn_net_conv_options){.outputs = filters,
                                           .size = TN_INTS(size),
                                           .stride = TN_INTS(stride),
                                           .padding = TN_INTS(size / 2),
                                           .no_bias = 1});
    x = tn_net_batch_norm(n, "norm", x);
    tn_net_leave(n);
    return x;
}

static tn_array *block(tn_net *n, tn_array *x, int64_t filters, int64_t stride)
{
    tn_array *y = tn_relu(n->scope, convolve(n, "a", x, filters, 3, stride));
    y = convolve(n, "b", y, filters, 3, 1);
    if (stride != 1) // another shape
        x = convolve(n, "shortcut", x, filters, 1, stride);
    return tn_relu(n->scope, tn_add(n->scope, x, y));
}

static tn_array *scores(tn_net *n, tn_array *images)
{
    tn_array *x = images_normalised(n->scope, images);
    x = tn_relu(n->scope, convolve(n, "first", x, WIDTH, 3, 1));
    for (int i = 0; i < STAGES * BLOCKS; i++) {
        tn_net_enter(n, "block%", i);
        x = block(n, x, WIDTH << i / BLOCKS, i > 0 && i % BLOCKS == 0 ? 2 : 1);
        tn_net_leave(n);
    }
    return tn_net_linear(n, "out", tn_net_global_avg_pool(n, x), CLASSES);
}

static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    return tn_net_loss(n, scores(n, batch[0]), batch[1]);
}

int train_resnet(struct asked *options)
{
    const struct network resnet = {
        .title = "A residual network",
        .unit = "images",
        .loss = loss,
        .batch = 64,
        .epochs = 1,
        .trainer = {.optimiser = "sgd",
                    .lr = 0.05,
                    .attrs = tn_attrs("momentum", 0.9, "weight_decay", 5e-4)},
    };
    return classifier_run(&resnet, scores, options);
}
