// SPDX-License-Identifier: MIT
// The geometry of pooling, shared by type inference, references and decompositions.
#ifndef NN_POOL_H
#define NN_POOL_H

#include "pack.h"

// Extents of x (images, size, channels) and of the output, and the attributes. Pairs are
// rows, columns.
struct nn_pool {
    int64_t images, size[2], channels;
    int64_t window[2], stride[2], padding[2];
    int64_t out[2];
};

// Checks x and the attributes, and fills *out.
tn_status pool_of(const tn_host *host, const tn_pool2d_attrs *attrs, const tn_type *x,
                  struct nn_pool *out);

tn_status max_pool2d_decompose(const tn_build *build, const tn_rule *rule,
                               tn_array **outputs);
tn_status max_pool2d_jvp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *tangents, tn_array **out_tangents);
tn_status max_pool2d_grad_decompose(const tn_build *build, const tn_rule *rule,
                                    tn_array **outputs);

// The attributes for another call, stored in `items`; absent ones are left out.
tn_attr_list pool_attrs(const tn_pool2d_attrs *attrs, tn_attr items[3]);

#endif // NN_POOL_H
