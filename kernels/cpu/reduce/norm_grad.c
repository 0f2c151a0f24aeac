// SPDX-License-Identifier: MIT
// Derivatives of layer norm, a few rows at a time, in one pass over memory.
#include <math.h>
#include "variants.h"

typedef float v16f __attribute__((vector_size(64)));
typedef float v16f_loose __attribute__((vector_size(64), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define AT(x, i) (*(v16f_loose *)((x) + (i)))
#define READ(x, i) (*(const v16f_loose *)((x) + (i)))
#define WIDTH 16
#define CHUNK 1024 // terms that are added in f32

INLINE double add_lanes(v16f a)
{
    double even = 0, odd = 0;
    for (int i = 0; i < WIDTH; i += 4) {
        even += (double)(a[i] + a[i + 2]);
        odd += (double)(a[i + 1] + a[i + 3]);
    }
    return even + odd;
}

// Statistics of a row: the mean, one over the standard deviation, and the means of h and of
// h times the normalised x, where h is the gradient times the weight.
struct norm_row {
    float mean, scale, h, hx;
};

INLINE double sum_row(const float *x, int64_t n)
{
    double sum = 0;
    int64_t i = 0, whole = n & ~(int64_t)(2 * WIDTH - 1);
    while (i < whole) {
        int64_t end = i + CHUNK < whole ? i + CHUNK : whole;
        v16f a = {0}, b = {0};
        for (; i < end; i += 2 * WIDTH) {
            a += READ(x, i);
            b += READ(x, i + WIDTH);
        }
        sum += add_lanes(a + b);
    }
    for (; i < n; i++)
        sum += (double)x[i];
    return sum;
}

// The sums of squares of x - mean, of h, and of h times x - mean.
INLINE void sum_terms(const float *x, const float *g, const float *w, float mean, int64_t n,
                      double sums[3])
{
    int64_t i = 0, whole = n & ~(int64_t)(WIDTH - 1);
    sums[0] = sums[1] = sums[2] = 0;
    while (i < whole) {
        int64_t end = i + CHUNK < whole ? i + CHUNK : whole;
        v16f squares = {0}, h = {0}, hx = {0};
        for (; i < end; i += WIDTH) {
            v16f d = READ(x, i) - mean, t = READ(g, i) * READ(w, i);
            squares += d * d;
            h += t;
            hx += t * d;
        }
        sums[0] += add_lanes(squares);
        sums[1] += add_lanes(h);
        sums[2] += add_lanes(hx);
    }
    for (; i < n; i++) {
        float d = x[i] - mean, t = g[i] * w[i];
        sums[0] += (double)(d * d);
        sums[1] += (double)t;
        sums[2] += (double)(t * d);
    }
}

INLINE struct norm_row read_row(const struct cpu_norm_grad *p, int64_t row)
{
    const float *x = p->x + row * p->n, *g = p->g + row * p->n;
    double count = (double)p->n, sums[3], scale;
    float mean = (float)(sum_row(x, p->n) / count);
    sum_terms(x, g, p->weight, mean, p->n, sums);
    scale = 1 / sqrt(sums[0] / count + p->eps);
    return (struct norm_row){mean, (float)scale, (float)(sums[1] / count),
                             (float)(sums[2] * scale / count)};
}

// Writes dx of `rows` rows, a constant, and adds their terms to dweight and dbias.
INLINE void write_rows(const struct cpu_norm_grad *p, int64_t first,
                       const struct norm_row *r, int rows)
{
    const float *x = p->x + first * p->n, *g = p->g + first * p->n;
    float *dx = p->dx + first * p->n;
    int64_t i = 0;
    for (; i + WIDTH <= p->n; i += WIDTH) {
        v16f w = READ(p->weight, i), dw = READ(p->dweight, i), db = READ(p->dbias, i);
        for (int k = 0; k < rows; k++) {
            int64_t at = k * p->n + i;
            v16f t = READ(g, at), y = (READ(x, at) - r[k].mean) * r[k].scale;
            AT(dx, at) = (t * w - r[k].h - y * r[k].hx) * r[k].scale;
            dw += t * y;
            db += t;
        }
        AT(p->dweight, i) = dw;
        AT(p->dbias, i) = db;
    }
    for (; i < p->n; i++)
        for (int k = 0; k < rows; k++) {
            int64_t at = k * p->n + i;
            float t = g[at], y = (x[at] - r[k].mean) * r[k].scale;
            dx[at] = (t * p->weight[i] - r[k].h - y * r[k].hx) * r[k].scale;
            p->dweight[i] += t * y;
            p->dbias[i] += t;
        }
}

void V(cpu_layer_norm_grad)(const struct cpu_norm_grad *p)
{
    enum { ROWS = 4 };
    struct norm_row r[ROWS];
    int64_t first = 0;
    for (; first + ROWS <= p->rows; first += ROWS) {
        for (int k = 0; k < ROWS; k++)
            r[k] = read_row(p, first + k);
        write_rows(p, first, r, ROWS);
    }
    for (; first < p->rows; first++) {
        r[0] = read_row(p, first);
        write_rows(p, first, r, 1);
    }
}
