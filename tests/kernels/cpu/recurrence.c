// SPDX-License-Identifier: MIT
// Gates of recurrent layers and their derivatives, of every variant that this processor can
// run, against the formulas in f64: edge sizes, numbers far out, and nothing outside is
// written.
#include "check.h"

#include <math.h>
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include "cpu/cpu.h"

#define ROWS 3
#define MOST 67
#define FLOATS (ROWS * 4 * MOST + 1)
#define GUARD 12345.0f

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// Numbers of [-2, 2], some of which are far out.
static uint32_t state = 1;
static void fill(float *x, int64_t n, bool is_far)
{
    static const float far[] = {1e30f, -1e30f, 25, -25, 0, 88, -104, INFINITY, -INFINITY};
    for (int64_t i = 0; i < FLOATS; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8 & 0xffff) / 16384 - 2;
        if (is_far && state >> 24 < 24)
            x[i] = far[(state >> 24) % 9];
        x[i] = i < n ? x[i] : GUARD;
    }
}

// Sums of terms near 1 lose what these have; gates are right in their own digits.
static void near(const char *name, int kind, int64_t at, float got, double want)
{
    if (isnan(want) && isnan(got))
        return;
    if ((double)got == want || fabs((double)got - want) <= 1e-6 * (1 + fabs(want)))
        return;
    cr_fatal("%s, kind %d, element %d: %.9g, expected %.9g", name, kind, (int)at,
             (double)got, want);
}

struct recurrence_memory {
    float input_products[FLOATS], hidden_products[FLOATS], bias[FLOATS], h_before[FLOATS],
        c_before[FLOATS];
    float h[FLOATS], c[FLOATS], gates[FLOATS], hidden_candidate[FLOATS], gradient[FLOATS],
        dh[FLOATS];
    float dc[FLOATS], slopes[FLOATS], old_dh[FLOATS], old_dc[FLOATS];
};
static struct recurrence_memory m;

static const int gate_counts[] = {4, 3, 1, 1};

// The sum of gate `g`, unit `j` of a row, without what w gives a GRU's last one.
static double sum_of(int kind, int64_t units, int64_t row, int64_t g, int64_t j)
{
    int64_t at = (row * gate_counts[kind] + g) * units + j;
    float sum = m.input_products[at] + m.bias[g * units + j]; // rounded as the kernel's
    return (double)(kind == TN_RECURRENCE_GRU && g == 2 ? sum
                                                        : sum + m.hidden_products[at]);
}

static void check_unit(const char *name, int kind, int64_t units, int64_t row, int64_t j)
{
    int64_t at = row * units + j, wide = gate_counts[kind] * units, first = row * wide + j;
    double all = 0; // a NaN among the sums: infinities apart are none
    for (int g = 0; g < gate_counts[kind]; g++)
        all += 0 / (1 + exp(-sum_of(kind, units, row, g, j)));
    if (isnan(all)) { // the gates of a unit share divisions
        cr_assert(isnan(m.h[at]));
        return;
    }
    if (kind == TN_RECURRENCE_LSTM) {
        double gate[4];
        for (int g = 0; g < 4; g++) {
            double sum = sum_of(kind, units, row, g, j);
            gate[g] = g == 2 ? tanh(sum) : sigmoid(sum);
            near(name, kind, at, 20 * m.gates[first + g * units], 20 * gate[g]);
        }
        double c = gate[1] * (double)m.c_before[at] + gate[0] * gate[2];
        near(name, kind, at, m.c[at], c);
        near(name, kind, at, m.h[at], gate[3] * tanh((double)m.c[at]));
    } else if (kind == TN_RECURRENCE_GRU) {
        double r = sigmoid(sum_of(kind, units, row, 0, j));
        double z = sigmoid(sum_of(kind, units, row, 1, j));
        float own = m.hidden_products[first + 2 * units] + m.bias[3 * units + j];
        float last = m.gates[first] * own;
        double n = tanh((double)((float)sum_of(kind, units, row, 2, j) + last));
        near(name, kind, at, 20 * m.gates[first], 20 * r);
        near(name, kind, at, 20 * m.gates[first + units], 20 * z);
        near(name, kind, at, m.hidden_candidate[at], (double)own);
        near(name, kind, at, m.gates[first + 2 * units], n);
        near(name, kind, at, m.h[at], n + z * ((double)m.h_before[at] - n));
    } else {
        double sum = sum_of(kind, units, row, 0, j);
        near(name, kind, at, m.h[at],
             kind == TN_RECURRENCE_TANH ? tanh(sum) : fmax(sum, 0));
    }
}

static void check_slopes_of_unit(const char *name, int kind, int64_t units, int64_t row,
                                 int64_t j)
{
    int64_t at = row * units + j, wide = gate_counts[kind] * units, first = row * wide + j;
    double d = (double)m.gradient[at] + (double)m.old_dh[at], gate[4], want[4];
    for (int g = 0; g < gate_counts[kind]; g++)
        gate[g] = (double)m.gates[first + g * units];
    if (kind == TN_RECURRENCE_LSTM) {
        double t = tanh((double)m.c[at]), before = (double)m.c_before[at];
        double all = (double)m.old_dc[at] + d * gate[3] * (1 - t * t);
        want[0] = all * gate[2] * gate[0] * (1 - gate[0]);
        want[1] = all * before * gate[1] * (1 - gate[1]);
        want[2] = all * gate[0] * (1 - gate[2] * gate[2]);
        want[3] = d * t * gate[3] * (1 - gate[3]);
        near(name, kind, at, m.dc[at], all * gate[1]);
        near(name, kind, at, m.dh[at], 0);
    } else if (kind == TN_RECURRENCE_GRU) {
        want[2] = d * (1 - gate[1]) * (1 - gate[2] * gate[2]);
        want[1] = d * ((double)m.h_before[at] - gate[2]) * gate[1] * (1 - gate[1]);
        want[0] = want[2] * (double)m.hidden_candidate[at] * gate[0] * (1 - gate[0]);
        near(name, kind, at, m.hidden_products[at], want[2] * gate[0]);
        near(name, kind, at, m.dh[at], d * gate[1]);
    } else {
        double h = (double)m.h[at];
        want[0] = kind == TN_RECURRENCE_TANH ? d * (1 - h * h) : h <= 0 ? 0 : d;
        near(name, kind, at, m.dh[at], 0);
    }
    for (int g = 0; g < gate_counts[kind]; g++)
        near(name, kind, at, m.slopes[first + g * units], want[g]);
}

static void guards(const float *const *all, const int64_t *counts, int n)
{
    for (int i = 0; i < n; i++)
        cr_assert(eq(flt, all[i][counts[i]], GUARD));
}

static void check_rows(const struct cpu_kernels *k, int kind, int64_t units, bool is_far)
{
    int64_t n = ROWS * units, wide = gate_counts[kind] * n;
    fill(m.input_products, wide, is_far);
    fill(m.hidden_products, wide, is_far);
    fill(m.bias, 4 * units, false);
    fill(m.h_before, n, false);
    fill(m.c_before, n, false);
    float *const results[] = {m.h, m.c, m.hidden_candidate, m.gates};
    for (int i = 0; i < 4; i++)
        fill(results[i], i == 3 ? wide : n, false);
    bool has_gates = gate_counts[kind] > 1;
    k->recurrence->rows[kind](
        &(struct cpu_recurrence_rows){.rows = ROWS,
                                      .units = units,
                                      .input_products = m.input_products,
                                      .hidden_products = m.hidden_products,
                                      .bias = m.bias,
                                      .h_before = m.h_before,
                                      .c_before = m.c_before,
                                      .h = m.h,
                                      .c = m.c,
                                      .gates = has_gates ? m.gates : NULL,
                                      .hidden_candidate = m.hidden_candidate});
    for (int64_t i = 0; i < n; i++)
        check_unit(k->name, kind, units, i / units, i % units);
    guards((const float *const[]){m.h, m.c, m.hidden_candidate, m.gates},
           (const int64_t[]){n, n, n, wide}, 4);
}

// Of what check_rows left; hidden_products is written as `hidden_candidate`.
static void check_slopes(const struct cpu_kernels *k, int kind, int64_t units)
{
    int64_t n = ROWS * units, wide = gate_counts[kind] * n;
    bool is_gru = kind == TN_RECURRENCE_GRU;
    fill(m.gradient, n, false);
    fill(m.dh, n, false);
    fill(m.dc, n, false);
    fill(m.slopes, wide, false);
    fill(m.hidden_products, n, false);
    memcpy(m.old_dh, m.dh, sizeof(m.dh));
    memcpy(m.old_dc, m.dc, sizeof(m.dc));
    k->recurrence->slopes[kind](
        &(struct cpu_recurrence_slopes){.rows = ROWS,
                                        .units = units,
                                        .gradient = m.gradient,
                                        .gates = m.gates,
                                        .cells = is_gru ? m.hidden_candidate : m.c,
                                        .before = is_gru ? m.h_before : m.c_before,
                                        .h = m.h,
                                        .dh = m.dh,
                                        .dc = m.dc,
                                        .slopes = m.slopes,
                                        .hidden_candidate = m.hidden_products});
    for (int64_t i = 0; i < n; i++)
        check_slopes_of_unit(k->name, kind, units, i / units, i % units);
    guards((const float *const[]){m.dh, m.dc, m.slopes, m.hidden_products},
           (const int64_t[]){n, n, wide, n}, 4);
}

// A row by panels beside the same by tiles.
static void check_row(const struct cpu_kernels *k, int64_t columns, int64_t inner, int adds)
{
    static _Alignas(64) float panels[CPU_TILES_MOST * 8 * 16];
    float from[16], want[MOST * 4], got[MOST * 4 + 1];
    const int64_t width = k->tiles->width;
    for (int64_t i = 0; i < (int64_t)(sizeof(panels) / sizeof(*panels)); i++)
        panels[i] = (float)(i % 37) / 16 - 1;
    for (int64_t i = 0; i < inner; i++)
        from[i] = (float)(i % 5) - 1.5f;
    for (int64_t i = 0; i <= columns; i++)
        want[i] = got[i] = i < columns ? 0.25f : GUARD;
    for (int64_t at = 0; at < columns; at += width)
        k->tiles->rows(
            &(struct cpu_tiles_rows){.from = from,
                                     .weights = panels + at * inner,
                                     .to = want + at,
                                     .rows = 1,
                                     .pixels = 1,
                                     .columns = columns - at < width ? columns - at : width,
                                     .taps_y = 1,
                                     .taps_x = 1,
                                     .run = inner,
                                     .adds = adds});
    k->recurrence_row(&(struct cpu_recurrence_row){.from = from,
                                                   .panels = panels,
                                                   .to = got,
                                                   .inner = inner,
                                                   .stride = inner * width,
                                                   .columns = columns,
                                                   .adds = adds});
    for (int64_t i = 0; i < columns; i++)
        cr_assert(eq(flt, got[i], want[i]), "%s, %d columns", k->name, (int)columns);
    cr_assert(eq(flt, got[columns], GUARD));
}

Test(cpu_recurrence, a_row_is_that_of_tiles)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int64_t columns = 1; columns < 8 * (*k)->tiles->width && runs_here(*k);
             columns++)
            for (int64_t inner = 0; inner <= 16; inner += 4)
                check_row(*k, columns, inner, (int)(columns & 1));
}

static const int64_t sizes[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, MOST};

Test(cpu_recurrence, gates_and_their_slopes)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int kind = 0; kind < 4 && runs_here(*k); kind++)
            for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                for (int round = 0; round < 4; round++) {
                    check_rows(*k, kind, sizes[i], round & 1);
                    if (!(round & 1))
                        check_slopes(*k, kind, sizes[i]);
                }
}
