// SPDX-License-Identifier: MIT
// A cpu.c/1 kernel: BLAS where BLAS can, a loop over strides everywhere else.
//
// A kernel may be given any layout that its operand rules allow: gaps, strides of 0
// (broadcast), negative strides, a first element that is not the buffer's first. This one
// takes them all, so that the host never copies an input for it.
#include "axpby.h"

#include <cblas.h>
#include <stdbool.h>
#include <string.h>

// The pieces in which threads take work: y is copied and then updated while it is in cache.
#define PIECE 8192

struct work {
    float *out;
    const float *x, *y;
    float alpha, beta;
    int32_t rank;
    const int64_t *extent; // of the output
    int64_t x_stride[TN_MAX_RANK], y_stride[TN_MAX_RANK];
};

static bool same_extents(const tn_layout *a, const tn_layout *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof(a->extent[0])) == 0;
}

static bool is_contiguous(const tn_layout *layout)
{
    int64_t expected = 1;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        if (layout->extent[i] != 1 && layout->stride[i] != expected)
            return false;
        expected *= layout->extent[i];
    }
    return true;
}

static int64_t count_of(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

static float *first_of(const tn_tensor *tensor)
{
    return (float *)tensor->data + tensor->layout.offset;
}

// Elements [begin, end) with BLAS, which writes its result over y: so y goes to the output
// first, unless it lies there already (the in-place pair of the primitive).
static void run_blas(void *context, int64_t begin, int64_t end)
{
    const struct work *work = context;
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t n = end - i < PIECE ? end - i : PIECE;
        if (work->out != work->y)
            memcpy(work->out + i, work->y + i, (size_t)n * sizeof(float));
        cblas_saxpby((blasint)n, work->alpha, work->x + i, 1, work->beta, work->out + i, 1);
    }
}

// The strides with which `layout` is walked along the axes of `out`: aligned at the last
// axis, 0 where it is broadcast.
static void walk_strides(const tn_layout *layout, const tn_layout *out, int64_t *stride)
{
    for (int32_t i = 0; i < out->rank; i++) {
        int32_t axis = i - (out->rank - layout->rank);
        stride[i] = axis < 0 || layout->extent[axis] == 1 ? 0 : layout->stride[axis];
    }
}

// Elements [begin, end) of the output, which is contiguous, from inputs of any strides: row
// by row, with one place computed a row.
static void run_strided(void *context, int64_t begin, int64_t end)
{
    const struct work *work = context;
    int32_t last = work->rank - 1;
    int64_t columns = work->rank ? work->extent[last] : 1;
    int64_t x_step = work->rank ? work->x_stride[last] : 0;
    int64_t y_step = work->rank ? work->y_stride[last] : 0;

    for (int64_t i = begin, n; i < end; i += n) {
        int64_t column = i % columns, rest = i / columns;
        int64_t x = column * x_step, y = column * y_step;
        for (int32_t axis = last - 1; axis >= 0; axis--) {
            x += rest % work->extent[axis] * work->x_stride[axis];
            y += rest % work->extent[axis] * work->y_stride[axis];
            rest /= work->extent[axis];
        }
        n = columns - column < end - i ? columns - column : end - i;
        for (int64_t k = 0; k < n; k++)
            work->out[i + k] = work->alpha * work->x[x + k * x_step] +
                               work->beta * work->y[y + k * y_step];
    }
}

static tn_status launch(const tn_cpu_call *call)
{
    const axpby_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout, *y = &call->inputs[1].layout;
    const tn_layout *out = &call->outputs[0].layout;
    struct work work = {
        .out = first_of(&call->outputs[0]),
        .x = first_of(&call->inputs[0]),
        .y = first_of(&call->inputs[1]),
        .alpha = (float)attrs->alpha,
        .beta = (float)attrs->beta,
        .rank = out->rank,
        .extent = out->extent,
    };
    // To BLAS a factor of 0 means "do not read"; to the expression 0 * NaN is NaN. Kernels
    // of one primitive agree, so these cases go to the loop.
    bool blas = same_extents(x, out) && same_extents(y, out) && is_contiguous(x) &&
                is_contiguous(y) && work.alpha != 0 && work.beta != 0;
    if (!blas) {
        walk_strides(x, out, work.x_stride);
        walk_strides(y, out, work.y_stride);
    }
    call->parallel_for(call, count_of(out), PIECE, blas ? run_blas : run_strided, &work);
    return TN_OK;
}

const tn_kernel axpby_cpu = {
    .struct_size = sizeof(tn_kernel),
    .flags = TN_KERNEL_SAME_DTYPE,
    .primitive = "acme.axpby/1",
    .family = TN_FAMILY_CPU,
    .name = "cblas",
    .priority = 500,
    .num_operands = 1, // one rule, for x, y and the output
    .operands =
        &(const tn_operand_rule){.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_ANY},
    .payload =
        &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel), .launch = launch},
};
