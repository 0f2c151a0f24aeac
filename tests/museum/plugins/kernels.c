// SPDX-License-Identifier: MIT
// Kernels alone, for another pack's primitive.
#include <tenon/ops/rows.h>
#include <tenon/pack.h>

typedef struct axpby_attrs {
    double alpha, beta;
} axpby_attrs;

static void row(const tn_row *r)
{
    const axpby_attrs *attrs = r->call->attrs;
    const float alpha = (float)attrs->alpha, beta = (float)attrs->beta;
    float *x = r->data[0], *y = r->data[1], *out = r->data[2];
    for (int64_t i = 0; i < r->count; i++)
        out[i * r->step[2]] = alpha * x[i * r->step[0]] + beta * y[i * r->step[1]];
}

TN_ROW_KERNEL(rows, "museum.axpby/1", row, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));

TN_PACK("org.tenon.museum.kernels", "1.0.0", "Tenon", TN_KERNELS(&rows));
