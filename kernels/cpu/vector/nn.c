// SPDX-License-Identifier: MIT
// Kernels of neural networks: logsumexp, sums, and pooling. See reduce.h.
#include <math.h>
#include "variant.h"
#include "math_f32.h"

static float row_max(const float *x, int64_t n)
{
    union cpu_accumulator acc = {.f = -INFINITY};
    V(cpu_reductions).row[CPU_REDUCE_MAX][TN_F32](&acc, x, n);
    return (float)acc.f;
}

// Writes exp(x[i] - shift) to out[i], and returns their sum.
static double exp_row(float *out, const float *x, float shift, int64_t n)
{
    union cpu_accumulator acc = {.f = 0};
    VECTORIZE for (int64_t i = 0; i < n; i++)
    {
        out[i] = v_EXP(x[i] - shift);
    }
    V(cpu_reductions).row[CPU_REDUCE_SUM][TN_F32](&acc, out, n);
    return acc.f;
}

// The sum of exp(x[i] - shift), a block of exponentials at a time.
static double sum_exp(const float *x, float shift, int64_t n)
{
    float part[256];
    double sum = 0;
    for (int64_t i = 0; i < n; i += 256)
        sum += exp_row(part, x + i, shift, n - i < 256 ? n - i : 256);
    return sum;
}

static float logsumexp_f32(const float *x, int64_t n)
{
    float most = row_max(x, n);
    float shift = isfinite(most) ? most : 0;
    return (float)(shift + log(sum_exp(x, shift, n)));
}

static void add_into_f32(float *acc, const float *x, int64_t n)
{
    VECTORIZE for (int64_t i = 0; i < n; i++)
    {
        acc[i] += x[i];
    }
}

static void pool_max_f32(float *acc, const float *x, int64_t pixels, int64_t channels,
                         int64_t step)
{
    for (int64_t p = 0; p < pixels; p++, acc += channels, x += step) {
        VECTORIZE for (int64_t i = 0; i < channels; i++)
        {
            float a = acc[i], b = x[i];
            float most = b > a ? b : a;
            acc[i] = b != b ? b : most;
        }
    }
}

static void pool_grad_f32(float *gx, const float *x, const float *out, const float *g,
                          uint8_t *taken, int64_t pixels, int64_t channels, int64_t step)
{
    for (int64_t p = 0; p < pixels; p++) {
        for (int64_t i = 0; i < channels; i++) {
            int equal = (x[i] == out[i]) | (x[i] != x[i]);
            int mine = equal & !taken[i];
            gx[i] += mine ? g[i] : 0;
            taken[i] = (uint8_t)(taken[i] | mine);
        }
        gx += step;
        x += step;
        out += channels;
        g += channels;
        taken += channels;
    }
}

const struct cpu_nn_kernels V(cpu_nn) = {
    .few_by_rows = V(cpu_few_by_rows),
    .few_by_columns = V(cpu_few_by_columns),
    .logsumexp_f32 = logsumexp_f32,
    .sum_exp_f32 = sum_exp,
    .add_into_f32 = add_into_f32,
    .pool_max_f32 = pool_max_f32,
    .pool_grad_f32 = pool_grad_f32,
};
