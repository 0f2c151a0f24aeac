// SPDX-License-Identifier: MIT
// The sizes of a convolution, from its attributes and operands.
#include "conv.h"

// Entry `i` (0: rows, 1: columns) of a list of two, or the only entry.
static int64_t blas_conv_pair(const tn_ints *list, uint32_t i, int64_t absent)
{
    if (!list->given || list->count == 0)
        return absent;
    return list->value[list->count > i ? i : 0];
}

void conv_read(const tn_conv2d_attrs *attrs, const tn_layout *x, const tn_layout *w,
               const tn_layout *out, struct cpu_conv *conv)
{
    int64_t groups = attrs->groups > 0 ? attrs->groups : 1;
    *conv = (struct cpu_conv){
        .n = x->extent[0],
        .h = x->extent[1],
        .w = x->extent[2],
        .c = x->extent[3],
        .oh = out->extent[1],
        .ow = out->extent[2],
        .o = out->extent[3],
        .kh = w->extent[1],
        .kw = w->extent[2],
        .sh = blas_conv_pair(&attrs->stride, 0, 1),
        .sw = blas_conv_pair(&attrs->stride, 1, 1),
        .ph = blas_conv_pair(&attrs->padding, 0, 0),
        .pw = blas_conv_pair(&attrs->padding, 1, 0),
        .dh = blas_conv_pair(&attrs->dilation, 0, 1),
        .dw = blas_conv_pair(&attrs->dilation, 1, 1),
        .groups = groups,
        .cg = x->extent[3] / groups,
        .og = out->extent[3] / groups,
    };
    conv->k = conv->kh * conv->kw * conv->cg;
    conv->pixels = conv->n * conv->oh * conv->ow;
    conv->tile = conv->k > 0 ? CONV_TILE / conv->k : CONV_TILE;
}

bool conv_accepts(const struct cpu_conv *conv)
{
    return conv->k <= CONV_TILE / 4 && conv->o <= INT32_MAX && conv->c <= INT32_MAX &&
           blas_open();
}
