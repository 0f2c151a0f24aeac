// SPDX-License-Identifier: MIT
// The loops of depthwise convolutions, each variant beside the definition, over channels
// around the widths of vectors, windows, strides and edges. Elements are small integers, so
// that each order of a sum is exact.
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include "cpu/cpu.h"

#define MOST 70 // channels

static uint64_t state = 88172645463325252u;

static int64_t between(int64_t low, int64_t high)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (int64_t)((state >> 16) % (uint64_t)(high - low + 1));
}

// `count` elements between canaries.
#define CANARY 12345
static void *make(int64_t count, bool is_f64, bool is_drawn)
{
    char *data = malloc((size_t)(count + 2) * (is_f64 ? 8 : 4));
    for (int64_t i = 0; i < count + 2; i++) {
        double value = i == 0 || i == count + 1 ? CANARY : is_drawn ? between(-3, 3) : 0;
        if (is_f64)
            ((double *)(void *)data)[i] = value;
        else
            ((float *)(void *)data)[i] = (float)value;
    }
    return data;
}

static double at(const void *data, bool is_f64, int64_t i)
{
    return is_f64 ? ((const double *)data)[i + 1] : (double)((const float *)data)[i + 1];
}

static void *first_of(void *data, bool is_f64)
{
    return (char *)data + (is_f64 ? 8 : 4);
}

struct work {
    struct cpu_depthwise_axis y, x;
    int64_t channels, window, rows; // taps of a row and of a column of the window
    int64_t outputs[2];             // extents of what is written, or of the gradient
    void *from, *weights, *start, *g;
    bool is_f64;
};

static struct cpu_depthwise_axis draw_axis(int64_t window, int64_t *output)
{
    struct cpu_depthwise_axis a = {.extent = between(1, 21), .count = between(1, 20)};
    a.tap = between(0, window - 1);
    a.tap_step = between(1, 2);
    a.taps = between(0, (window - 1 - a.tap) / a.tap_step + 1);
    a.first = between(0, 2);
    a.step = between(1, 2);
    a.from = between(-6, 6);
    a.by_output = between(1, 3);
    a.by_tap = between(-2, 2);
    if (a.by_tap == 0)
        a.by_tap = 1;
    *output = a.first + (a.count - 1) * a.step + 1;
    return a;
}

static bool reads(const struct cpu_depthwise_axis *a, int64_t i, int64_t j, int64_t *place)
{
    *place = a->from + i * a->by_output + j * a->by_tap;
    return place[0] >= 0 && place[0] < a->extent;
}

// The element of channel c that output (i, k) should have.
static double want(const struct work *w, int64_t i, int64_t k, int64_t c)
{
    double sum = w->start ? at(w->start, w->is_f64, c) : 0;
    int64_t row, column;
    for (int64_t j = 0; j < w->y.taps; j++)
        for (int64_t l = 0; l < w->x.taps; l++)
            if (reads(&w->y, i, j, &row) && reads(&w->x, k, l, &column)) {
                int64_t tap = (w->y.tap + j * w->y.tap_step) * w->window + w->x.tap +
                              l * w->x.tap_step;
                sum +=
                    at(w->from, w->is_f64, (row * w->x.extent + column) * w->channels + c) *
                    at(w->weights, w->is_f64, tap * w->channels + c);
            }
    return sum;
}

static void check_rows(const struct work *w, const struct cpu_depthwise_kernels *loops,
                       const char *name)
{
    int64_t count = w->outputs[0] * w->outputs[1] * w->channels;
    void *to = make(count, w->is_f64, false);
    struct cpu_depthwise p = {
        .from = first_of(w->from, w->is_f64),
        .weights = first_of(w->weights, w->is_f64),
        .start = w->start ? first_of(w->start, w->is_f64) : NULL,
        .to = first_of(to, w->is_f64),
        .channels = w->channels,
        .window = w->window,
        .from_row = w->x.extent * w->channels,
        .from_pixel = w->channels,
        .to_row = w->outputs[1] * w->channels,
        .to_pixel = w->channels,
    };
    for (int64_t i = 0; i < w->y.count; i++)
        loops->row(&p, &w->y, &w->x, i);
    for (int64_t i = 0; i < w->y.count; i++)
        for (int64_t k = 0; k < w->x.count; k++)
            for (int64_t c = 0; c < w->channels; c++) {
                int64_t place = ((w->y.first + i * w->y.step) * w->outputs[1] + w->x.first +
                                 k * w->x.step) *
                                    w->channels +
                                c;
                double got = at(to, w->is_f64, place), expected = want(w, i, k, c);
                if (got != expected)
                    cr_fatal("%s, %d channels: row %d, column %d, channel %d is %g, "
                             "expected %g",
                             name, (int)w->channels, (int)i, (int)k, (int)c, got, expected);
            }
    cr_assert(eq(dbl, at(to, w->is_f64, -1), CANARY));
    cr_assert(eq(dbl, at(to, w->is_f64, count), CANARY));
    free(to);
}

// What the gradient of tap (j, l) and channel c should be.
static double want_sum(const struct work *w, int64_t j, int64_t l, int64_t c)
{
    double sum = 0;
    int64_t row, column;
    for (int64_t i = 0; i < w->y.count; i++)
        for (int64_t k = 0; k < w->x.count; k++)
            if (reads(&w->y, i, j, &row) && reads(&w->x, k, l, &column))
                sum +=
                    at(w->from, w->is_f64, (row * w->x.extent + column) * w->channels + c) *
                    at(w->g, w->is_f64,
                       ((w->y.first + i * w->y.step) * w->outputs[1] + w->x.first +
                        k * w->x.step) *
                               w->channels +
                           c);
    return sum;
}

static void check_sums(const struct work *w, const struct cpu_depthwise_kernels *loops,
                       const char *name)
{
    int64_t count = w->rows * w->window * w->channels;
    void *to = make(count, w->is_f64, false);
    struct cpu_depthwise_sums p = {
        .x = first_of(w->from, w->is_f64),
        .g = first_of(w->g, w->is_f64),
        .to = first_of(to, w->is_f64),
        .channels = w->channels,
        .window = w->window,
        .x_row = w->x.extent * w->channels,
        .x_pixel = w->channels,
        .g_row = w->outputs[1] * w->channels,
        .g_pixel = w->channels,
    };
    for (int64_t i = 0; i < w->y.count; i++)
        loops->sums(&p, &w->y, &w->x, i);
    for (int64_t j = 0; j < w->y.taps; j++)
        for (int64_t l = 0; l < w->x.taps; l++)
            for (int64_t c = 0; c < w->channels; c++) {
                int64_t tap = (w->y.tap + j * w->y.tap_step) * w->window + w->x.tap +
                              l * w->x.tap_step;
                double got = at(to, w->is_f64, tap * w->channels + c);
                if (got != want_sum(w, j, l, c))
                    cr_fatal("%s, %d channels: the sum of tap %d, channel %d is %g, "
                             "expected %g",
                             name, (int)w->channels, (int)tap, (int)c, got,
                             want_sum(w, j, l, c));
            }
    cr_assert(eq(dbl, at(to, w->is_f64, -1), CANARY));
    cr_assert(eq(dbl, at(to, w->is_f64, count), CANARY));
    free(to);
}

Test(cpu_depthwise, each_variant_agrees_with_the_definition)
{
    for (int round = 0; round < 300; round++) {
        struct work w = {.channels = between(1, MOST), .is_f64 = round % 3 == 0};
        w.rows = between(1, 7);
        w.window = between(1, 7);
        w.y = draw_axis(w.rows, &w.outputs[0]);
        w.x = draw_axis(w.window, &w.outputs[1]);
        w.from = make(w.y.extent * w.x.extent * w.channels, w.is_f64, true);
        w.weights = make(w.rows * w.window * w.channels, w.is_f64, true);
        w.start = round % 2 ? make(w.channels, w.is_f64, true) : NULL;
        w.g = make(w.outputs[0] * w.outputs[1] * w.channels, w.is_f64, true);
        for (const struct cpu_kernels *const *v = cpu_variants(); *v; v++) {
            if ((*v)->needs & ~cpu_features())
                continue;
            const struct cpu_depthwise_kernels *loops =
                w.is_f64 ? (*v)->depthwise_f64 : (*v)->depthwise_f32;
            check_rows(&w, loops, (*v)->name);
            check_sums(&w, loops, (*v)->name);
        }
        free(w.from);
        free(w.weights);
        free(w.start);
        free(w.g);
    }
}
