// SPDX-License-Identifier: MIT
// Pooling, and sums of the gradients of weights. See pool.h.
#include "variants.h"

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
            // A mask: a branch here is taken at random.
            gx[i] += f32_of_bits(bits_of_f32(g[i]) & (uint32_t)-mine);
            taken[i] = (uint8_t)(taken[i] | mine);
        }
        gx += step;
        x += step;
        out += channels;
        g += channels;
        taken += channels;
    }
}

const struct cpu_conv_kernels V(cpu_conv) = {
    .add_into_f32 = add_into_f32,
    .pool_max_f32 = pool_max_f32,
    .pool_grad_f32 = pool_grad_f32,
};
