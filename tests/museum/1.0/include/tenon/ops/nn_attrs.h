// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "nn", frozen with each primitive's revision.
//
// Threads. Plain data.
#ifndef TENON_OPS_NN_ATTRS_H
#define TENON_OPS_NN_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// nn.conv2d/1 (x: N,H,W,C; w: O,kH,kW,C/groups; optional bias: O): correlation, as in
// PyTorch and MLX; the layout is MLX's (channels last). Lists of two (rows, columns), or of
// one for both; not given: stride and dilation 1, padding 0.
// nn.conv2d_input/1 (gradient, w) and nn.conv2d_weight/1 (x, gradient) are its transposes;
// `extent` gives the rows and columns of what they rebuild.
typedef struct tn_conv2d_attrs {
    tn_ints stride;
    tn_ints padding;
    tn_ints dilation;
    tn_ints extent;
    int64_t groups; // 1
} tn_conv2d_attrs;

// nn.max_pool2d/1 (x: N,H,W,C); stride not given: the window. nn.max_pool2d_grad/1 (x, out,
// gradient): the gradient goes to the first maximum of each window.
typedef struct tn_pool2d_attrs {
    tn_ints window;
    tn_ints stride;
    tn_ints padding; // of minus infinity
} tn_pool2d_attrs;

// nn.softmax/1, nn.log_softmax/1. Input: x.
typedef struct tn_softmax_attrs {
    int64_t axis; // -1
} tn_softmax_attrs;

// nn.cross_entropy/1 (logits: ..., classes; labels: integers ...): the loss of each sample.
typedef struct tn_cross_entropy_attrs {
    int64_t reserved; // 0
} tn_cross_entropy_attrs;

// nn.sgd/1 (p, g, m) -> p, m: m' = momentum * m + g + weight_decay * p; p' = p - lr * m'.
typedef struct tn_sgd_attrs {
    double lr;
    double momentum;
    double weight_decay;
} tn_sgd_attrs;

// nn.adam/1 (p, g, m, v, step: f32 scalar, from 1) -> p, m, v (Kingma and Ba 2015, with
// decoupled weight decay).
typedef struct tn_adam_attrs {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
} tn_adam_attrs;

#endif // TENON_OPS_NN_ATTRS_H
