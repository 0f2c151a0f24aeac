// SPDX-License-Identifier: MIT
// Gates of recurrent layers: see recurrence.h.
#include <tenon/ops/nn_attrs.h>
#include "variants.h"
#include "cpu/elementwise/math_f32.h"

// A quotient that is not divided yet, so that several share one division: 1 / (a b) times b
// is 1 / a. Denominators are at least 1, and products of three are far from overflow.
struct quotient {
    float over, under;
};

// exp(x) / (1 + exp(x)), of x within [-86, 20]: sigmoid(20) is 1, and exp(-86) normal, so
// that 2^n is added to its exponent; one part of ln 2 loses 2 ulp far out.
static inline struct quotient sigmoid_quotient(float x)
{
    const float y = x < -86 ? -86 : x > 20 ? 20 : x; // NaN stays NaN
    float shifted, r = reduced(y, &shifted);
    if (HAS_FMA)
        r = fma_f32(shifted - ROUNDER, -0.693147181f, y);
    const float e = f32_of_bits(bits_of_f32(exp_near(r)) + (bits_of_f32(shifted) << 23));
    return (struct quotient){e, 1 + e};
}

// tanh(x), within 5 ulp: x P(x^2) / Q(x^2), whose error is 6.7e-9 for |x| up to 9; beyond,
// tanh is 1 within half an ulp. P and Q were found by least squares of weighed errors.
static inline struct quotient tanh_quotient(float x)
{
    const float y = x < -9 ? -9 : x > 9 ? 9 : x, z = y * y; // NaN stays NaN
    float p = fma_f32(-8.48833229e-14f, z, 5.2778266e-11f);
    p = fma_f32(p, z, -2.02250358e-8f);
    p = fma_f32(p, z, 1.11542776e-5f);
    p = fma_f32(p, z, 3.10395448e-3f);
    p = fma_f32(p, z, 0.13084009f);
    p = fma_f32(p, z, 0.999999993f);
    float q = fma_f32(2.54614193e-4f, z, 2.44951728e-2f);
    q = fma_f32(q, z, 0.464173361f);
    q = fma_f32(q, z, 1);
    return (struct quotient){y * p, q};
}

static inline float tanh_of(float x)
{
    const struct quotient t = tanh_quotient(x);
    return t.over / t.under;
}

static void lstm_rows(const struct cpu_recurrence_rows *p)
{
    const int64_t units = p->units;
    const float *b = p->bias;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *x = p->input_products + row * 4 * units,
                    *y = p->hidden_products + row * 4 * units;
        const float *before = p->c_before + row * units;
        float *h = p->h + row * units, *c = p->c + row * units;
        float *gates = p->gates ? p->gates + row * 4 * units : NULL;
        VECTORIZE
        for (int64_t j = 0; j < units; j++) {
            const struct quotient qi = sigmoid_quotient(x[j] + b[j] + y[j]);
            const struct quotient qf =
                sigmoid_quotient(x[units + j] + b[units + j] + y[units + j]);
            const struct quotient qg =
                tanh_quotient(x[2 * units + j] + b[2 * units + j] + y[2 * units + j]);
            const float pair = qi.under * qf.under, of_three = 1 / (pair * qg.under);
            const float of_pair = of_three * qg.under;
            const float i = qi.over * (qf.under * of_pair);
            const float f = qf.over * (qi.under * of_pair);
            const float g = qg.over * (pair * of_three), cell = f * before[j] + i * g;
            const struct quotient qo =
                sigmoid_quotient(x[3 * units + j] + b[3 * units + j] + y[3 * units + j]);
            const struct quotient qc = tanh_quotient(cell);
            const float of_two = 1 / (qo.under * qc.under);
            const float o = qo.over * (qc.under * of_two);
            c[j] = cell;
            h[j] = o * (qc.over * (qo.under * of_two));
            if (gates) {
                gates[j] = i;
                gates[units + j] = f;
                gates[2 * units + j] = g;
                gates[3 * units + j] = o;
            }
        }
    }
}

static void gru_rows(const struct cpu_recurrence_rows *p)
{
    const int64_t units = p->units;
    const float *b = p->bias;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *x = p->input_products + row * 3 * units,
                    *y = p->hidden_products + row * 3 * units;
        const float *before = p->h_before + row * units;
        float *h = p->h + row * units;
        float *gates = p->gates ? p->gates + row * 3 * units : NULL;
        float *last = p->gates ? p->hidden_candidate + row * units : NULL;
        VECTORIZE
        for (int64_t j = 0; j < units; j++) {
            const struct quotient qr = sigmoid_quotient(x[j] + b[j] + y[j]);
            const struct quotient qz =
                sigmoid_quotient(x[units + j] + b[units + j] + y[units + j]);
            const float of_two = 1 / (qr.under * qz.under);
            const float r = qr.over * (qz.under * of_two);
            const float z = qz.over * (qr.under * of_two);
            const float own = y[2 * units + j] + b[3 * units + j];
            const float n = tanh_of(x[2 * units + j] + b[2 * units + j] + r * own);
            h[j] = n + z * (before[j] - n);
            if (gates) {
                gates[j] = r;
                gates[units + j] = z;
                gates[2 * units + j] = n;
                last[j] = own;
            }
        }
    }
}

static void tanh_rows(const struct cpu_recurrence_rows *p)
{
    const int64_t units = p->units;
    const float *b = p->bias;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *x = p->input_products + row * units,
                    *y = p->hidden_products + row * units;
        float *h = p->h + row * units;
        VECTORIZE
        for (int64_t j = 0; j < units; j++)
            h[j] = tanh_of(x[j] + b[j] + y[j]);
    }
}

static void relu_rows(const struct cpu_recurrence_rows *p)
{
    const int64_t units = p->units;
    const float *b = p->bias;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *x = p->input_products + row * units,
                    *y = p->hidden_products + row * units;
        float *h = p->h + row * units;
        VECTORIZE
        for (int64_t j = 0; j < units; j++) {
            const float sum = x[j] + b[j] + y[j];
            h[j] = sum <= 0 ? 0 : sum;
        }
    }
}

// --- derivatives ------------------------------------------------------------------------

static void gates_lstm_slopes(const struct cpu_recurrence_slopes *p)
{
    const int64_t units = p->units;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *gates = p->gates + row * 4 * units, *c = p->cells + row * units;
        const float *before = p->before + row * units, *g = p->gradient + row * units;
        float *dh = p->dh + row * units, *dc = p->dc + row * units;
        float *slopes = p->slopes + row * 4 * units;
        VECTORIZE
        for (int64_t j = 0; j < units; j++) {
            const float i = gates[j], f = gates[units + j], n = gates[2 * units + j];
            const float o = gates[3 * units + j], t = tanh_of(c[j]), of_h = g[j] + dh[j];
            const float d = dc[j] + of_h * o * (1 - t * t);
            slopes[j] = d * n * i * (1 - i);
            slopes[units + j] = d * before[j] * f * (1 - f);
            slopes[2 * units + j] = d * i * (1 - n * n);
            slopes[3 * units + j] = of_h * t * o * (1 - o);
            dc[j] = d * f;
            dh[j] = 0;
        }
    }
}

static void gates_gru_slopes(const struct cpu_recurrence_slopes *p)
{
    const int64_t units = p->units;
    for (int64_t row = 0; row < p->rows; row++) {
        const float *gates = p->gates + row * 3 * units, *own = p->cells + row * units;
        const float *before = p->before + row * units, *g = p->gradient + row * units;
        float *dh = p->dh + row * units, *last = p->hidden_candidate + row * units;
        float *slopes = p->slopes + row * 3 * units;
        VECTORIZE
        for (int64_t j = 0; j < units; j++) {
            const float r = gates[j], z = gates[units + j], n = gates[2 * units + j];
            const float d = g[j] + dh[j], of_n = d * (1 - z) * (1 - n * n);
            slopes[j] = of_n * own[j] * r * (1 - r);
            slopes[units + j] = d * (before[j] - n) * z * (1 - z);
            slopes[2 * units + j] = of_n;
            last[j] = of_n * r;
            dh[j] = d * z;
        }
    }
}

static void tanh_slopes(const struct cpu_recurrence_slopes *p)
{
    const float *h = p->h, *gradient = p->gradient;
    const int64_t count = p->rows * p->units;
    float *dh = p->dh, *slopes = p->slopes;
    VECTORIZE
    for (int64_t j = 0; j < count; j++) {
        slopes[j] = (gradient[j] + dh[j]) * (1 - h[j] * h[j]);
        dh[j] = 0;
    }
}

static void relu_slopes(const struct cpu_recurrence_slopes *p)
{
    const float *h = p->h, *gradient = p->gradient;
    const int64_t count = p->rows * p->units;
    float *dh = p->dh, *slopes = p->slopes;
    VECTORIZE
    for (int64_t j = 0; j < count; j++) {
        slopes[j] = h[j] <= 0 ? 0 : gradient[j] + dh[j];
        dh[j] = 0;
    }
}

const struct cpu_recurrence_kernels V(cpu_recurrence) = {
    .rows = {[TN_RECURRENCE_LSTM] = lstm_rows,
             [TN_RECURRENCE_GRU] = gru_rows,
             [TN_RECURRENCE_TANH] = tanh_rows,
             [TN_RECURRENCE_RELU] = relu_rows},
    .slopes = {[TN_RECURRENCE_LSTM] = gates_lstm_slopes,
               [TN_RECURRENCE_GRU] = gates_gru_slopes,
               [TN_RECURRENCE_TANH] = tanh_slopes,
               [TN_RECURRENCE_RELU] = relu_slopes},
};
