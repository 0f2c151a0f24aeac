// SPDX-License-Identifier: MIT
// Pooling and weighted sums of pixels: see pool.h.
#include "cpu/lanes.h"
#include "variants.h"

// Runs the loop over pixels p with a copy for step 2, the stride of most windows: with a
// constant step the compiler loads adjacent elements as vectors.
#define OF_STEP(step, ...)                                                                 \
    do {                                                                                   \
        if ((step) == 2) {                                                                 \
            enum { at_step = 2 };                                                          \
            VECTORIZE for (int64_t p = 0; p < pixels; p++) __VA_ARGS__                     \
        } else {                                                                           \
            const int64_t at_step = step;                                                  \
            VECTORIZE for (int64_t p = 0; p < pixels; p++) __VA_ARGS__                     \
        }                                                                                  \
    } while (0)

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
    if (channels == 1) {
        OF_STEP(step, {
            float a = acc[p], b = x[p * at_step];
            float most = b > a ? b : a;
            acc[p] = b != b ? b : most;
        });
        return;
    }
    for (int64_t p = 0; p < pixels; p++, acc += channels, x += step) {
        VECTORIZE for (int64_t i = 0; i < channels; i++)
        {
            float a = acc[i], b = x[i];
            float most = b > a ? b : a;
            acc[i] = b != b ? b : most;
        }
    }
}

// Where step == channels (stride 1), a tap reads adjacent elements for all pixels.
static void pool_add_f32(float *acc, const float *x, int64_t pixels, int64_t channels,
                         int64_t step)
{
    if (step == channels) {
        add_into_f32(acc, x, pixels * channels);
        return;
    }
    if (channels == 1) {
        OF_STEP(step, { acc[p] += x[p * at_step]; });
        return;
    }
    for (int64_t p = 0; p < pixels; p++, acc += channels, x += step)
        add_into_f32(acc, x, channels);
}

// Writes `count` vectors of channels of the mean of one window.
INLINE void mean_vectors(float *out, const float *x, const struct cpu_window *w, int count)
{
    vector sum[4] = {0};
    for (int64_t y = 0; y < w->rows; y++)
        for (int64_t at = 0; at < w->columns; at++)
            for (int k = 0; k < count; k++)
                sum[k] += *(const loose *)(x + y * w->row + at * w->channels + k * LANES);
    for (int k = 0; k < count; k++)
        *(loose *)(out + k * LANES) = sum[k] / w->divisor;
}

static void pool_mean_f32(float *out, const float *x, int64_t pixels, int64_t step,
                          const struct cpu_window *w)
{
    int64_t channels = w->channels;
    for (int64_t p = 0; p < pixels; p++, out += channels, x += step) {
        int64_t i = 0;
        for (; i + 4 * LANES <= channels; i += 4 * LANES)
            mean_vectors(out + i, x + i, w, 4);
        for (; i + LANES <= channels; i += LANES)
            mean_vectors(out + i, x + i, w, 1);
        for (; i < channels; i++) {
            float sum = 0;
            for (int64_t y = 0; y < w->rows; y++)
                for (int64_t at = 0; at < w->columns; at++)
                    sum += x[y * w->row + at * channels + i];
            out[i] = sum / w->divisor;
        }
    }
}

static void blend_f32(float *out, const float *x, const int32_t *positions,
                      const float *weights, int64_t taps, int64_t step, int64_t n)
{
    const float *a = x + (taps > 0 ? positions[0] * step : 0);
    const float *b = x + (taps > 1 ? positions[1] * step : 0);
    if (taps == 0) {
        VECTORIZE for (int64_t j = 0; j < n; j++)
        {
            out[j] = 0;
        }
    } else if (taps == 1) {
        VECTORIZE for (int64_t j = 0; j < n; j++)
        {
            out[j] = a[j] * weights[0];
        }
    } else {
        VECTORIZE for (int64_t j = 0; j < n; j++)
        {
            out[j] = a[j] * weights[0] + b[j] * weights[1];
        }
    }
    for (int64_t k = 2; k < taps; k++) {
        const float *c = x + positions[k] * step;
        VECTORIZE for (int64_t j = 0; j < n; j++)
        {
            out[j] += c[j] * weights[k];
        }
    }
}

static void blend_points_f32(float *out, const float *x, const int32_t *starts,
                             const int32_t *positions, const float *weights, int64_t each,
                             int64_t n)
{
    if (each == 1) {
        VECTORIZE for (int64_t i = 0; i < n; i++)
        {
            out[i] = x[positions[i]] * weights[i];
        }
        return;
    }
    if (each == 2) {
        VECTORIZE for (int64_t i = 0; i < n; i++)
        {
            out[i] = x[positions[2 * i]] * weights[2 * i] +
                     x[positions[2 * i + 1]] * weights[2 * i + 1];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t k = starts[i], end = starts[i + 1];
        float sum = k < end ? x[positions[k]] * weights[k] : 0;
        for (k++; k < end; k++)
            sum += x[positions[k]] * weights[k];
        out[i] = sum;
    }
}

static void scale_into_f32(float *acc, const float *x, int64_t n, float factor)
{
    VECTORIZE for (int64_t i = 0; i < n; i++)
    {
        acc[i] += x[i] * factor;
    }
}

static void pool_share_f32(float *to, const float *g, int64_t pixels, int64_t channels,
                           int64_t step, float share)
{
    if (step == channels) {
        scale_into_f32(to, g, pixels * channels, share);
        return;
    }
    if (channels == 1) {
        VECTORIZE for (int64_t p = 0; p < pixels; p++)
        {
            to[p * step] += g[p] * share;
        }
        return;
    }
    for (int64_t p = 0; p < pixels; p++, g += channels, to += step)
        scale_into_f32(to, g, channels, share);
}

static void pool_grad_f32(float *gx, const float *x, const float *out, const float *g,
                          uint8_t *taken, int64_t pixels, int64_t channels, int64_t step)
{
    for (int64_t p = 0; p < pixels; p++) {
        for (int64_t i = 0; i < channels; i++) {
            int equal = (x[i] == out[i]) | (x[i] != x[i]);
            int mine = equal & !taken[i];
            // A mask, since a branch here would be unpredictable.
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
    .pool_add_f32 = pool_add_f32,
    .pool_mean_f32 = pool_mean_f32,
    .pool_share_f32 = pool_share_f32,
    .blend_f32 = blend_f32,
    .blend_points_f32 = blend_points_f32,
    .pool_grad_f32 = pool_grad_f32,
};
