// SPDX-License-Identifier: MIT
// The geometry of a convolution, shared by type inference, references and decompositions.
#ifndef NN_CONV_H
#define NN_CONV_H

#include "pack.h"

// x: images, height, width, channels. w: filters, rows, columns, channels / groups.
// out: images, out_height, out_width, filters. Pairs are rows, columns.
struct conv {
    int64_t images, size[2], channels;
    int64_t filters, window[2], group_channels;
    int64_t out[2];
    int64_t stride[2], padding[2], dilation[2], groups;
};

// Check the inputs of conv2d, conv2d_input and conv2d_weight, and fill *out. `x` is
// (N, H, W, C), `w` (O, kH, kW, C / groups), and `g`, the gradient of conv2d's output,
// (N, oH, oW, O).
tn_status conv_of_forward(const tn_host *host, const tn_conv2d_attrs *attrs,
                          const tn_type *x, const tn_type *w, struct conv *out);
tn_status conv_of_input(const tn_host *host, const tn_conv2d_attrs *attrs, const tn_type *g,
                        const tn_type *w, struct conv *out);
tn_status conv_of_weight(const tn_host *host, const tn_conv2d_attrs *attrs,
                         const tn_type *x, const tn_type *g, struct conv *out);

tn_status conv2d_reference(const tn_cpu_call *call);
tn_status conv2d_input_reference(const tn_cpu_call *call);
tn_status conv2d_weight_reference(const tn_cpu_call *call);

tn_status conv2d_decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs);
tn_status conv2d_input_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs);
tn_status conv2d_weight_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs);

#endif // NN_CONV_H
