// SPDX-License-Identifier: @LICENSE@
// A kernel for nn.softmax/1, a primitive of another pack, on contiguous f32 along the last axis.
// Applications that the kernel does not take run as before. Of several kernels that fit, the one
// with the highest priority runs: 900 and more come before Tenon's own.
#define TN_KERNEL_PRIORITY 900
#include <math.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/pack.h>

// One row. Subtracts the maximum first, so that no exponential overflows.
static void softmax_row(const float *x, float *out, int64_t count)
{
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = x[i] > most || isnan(x[i]) ? x[i] : most;
    for (int64_t i = 0; i < count; i++)
        sum += out[i] = expf(x[i] - most);
    for (int64_t i = 0; i < count; i++)
        out[i] /= sum;
}

static void rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const tn_cpu_call *call = context;
    const tn_layout *layout = &call->inputs[0].layout;
    int64_t count = layout->extent[layout->rank - 1];
    const float *x = (const float *)call->inputs[0].data + layout->offset;
    float *out = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    for (int64_t row = begin; row < end; row++)
        softmax_row(x + row * count, out + row * count, count);
}

// Distributes rows over threads, at least a few thousand elements to each.
static tn_status launch(const tn_cpu_call *call)
{
    const tn_layout *layout = &call->inputs[0].layout;
    int64_t count = layout->extent[layout->rank - 1], num_rows = 1;
    for (int32_t axis = 0; axis < layout->rank - 1; axis++)
        num_rows *= layout->extent[axis];
    if (count > 0 && num_rows > 0)
        call->parallel_for(call, num_rows, 1 + 4096 / count, rows, (void *)call);
    return TN_OK;
}

// Whether the axis is the last one. TN_TAKES_... below states all other conditions.
static int32_t accepts(const tn_kernel_query *query)
{
    const tn_softmax_attrs *attrs = query->attrs;
    return attrs->axis == -1 || attrs->axis == query->inputs[0].rank - 1;
}

static TN_CPU_KERNEL(@NAME@_c, "nn.softmax/1", launch,
                     TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)), .accepts = accepts);

TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_KERNELS(&@NAME@_c));
