// SPDX-License-Identifier: MIT
// The product of one row and panels (conv/tiles.h), four panels at a time: with one panel
// an addition would wait for the one before it in the same sum. A product and its sum are
// rounded once where the processor can.
#include "variants.h"
#include "cpu/lanes.h"
#include "cpu/sizes.h"

#define AT_ONCE 4
#define WIDTH (2 * LANES)

OF_SIZES void multiply_panels(const struct cpu_recurrence_row *p, int64_t first,
                              const int count)
{
    const float *panels = p->panels + first / WIDTH * p->stride;
    vector sums[AT_ONCE][2] = {{{0}}};
    for (int64_t e = 0; e < p->inner; e++) {
        const float value = p->from[e];
        const float *at = panels + e * WIDTH;
#pragma GCC unroll 4
        for (int i = 0; i < count; i++, at += p->stride) {
            sums[i][0] += value * *(const vector *)(const void *)at;
            sums[i][1] += value * *(const vector *)(const void *)(at + LANES);
        }
    }
    for (int i = 0; i < count; i++, first += WIDTH) {
        float *to = p->to + first;
        const int64_t left = p->columns - first, n = left < WIDTH ? left : WIDTH;
        if (n == WIDTH && !p->adds) {
            memcpy(to, sums[i], sizeof(sums[i]));
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            to[j] = (p->adds ? to[j] : 0) + sums[i][j / LANES][j % LANES];
    }
}

void V(cpu_recurrence_row)(const struct cpu_recurrence_row *p)
{
    int64_t first = 0;
    for (; first + (AT_ONCE - 1) * WIDTH < p->columns; first += AT_ONCE * WIDTH)
        multiply_panels(p, first, AT_ONCE);
    if (first + 2 * WIDTH < p->columns)
        multiply_panels(p, first, 3);
    else if (first + WIDTH < p->columns)
        multiply_panels(p, first, 2);
    else if (first < p->columns)
        multiply_panels(p, first, 1);
}
