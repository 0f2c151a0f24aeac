// SPDX-License-Identifier: MIT
// Gates of recurrent layers: the states of a position from the sums of its gates, and the
// derivatives. Callers compute the products of matrices before or behind.
#ifndef KERNELS_CPU_RECURRENCE_H
#define KERNELS_CPU_RECURRENCE_H

#include <stdint.h>

// Rows of one position, of `units` units each; gates of a row are 4, 3 or 1 times as many.
// What kinds do not have, or nothing reads, is NULL.
struct cpu_recurrence_rows {
    int64_t rows, units;
    const float *given;    // sums of gates
    const float *own;      // of what the position before gives
    const float *bias;     // of a row, of a GRU 4: r, z, given and own of n
    const float *h_before; // a GRU's
    const float *c_before; // an LSTM's
    float *h, *c;
    float *gates; // all of them, or NULL
    float *last;  // a GRU's: own + the last bias, of n, or NULL
};

// The same of derivatives. `dh` and `dc` are gradients of what a position gives the next
// one, and become those of what this position was given.
struct cpu_recurrence_slopes {
    int64_t rows, units;
    const float *gradient; // of h
    const float *gates, *cells;
    const float *before; // an LSTM's c, a GRU's h
    const float *h;      // of kinds without gates
    float *dh;           // a GRU's becomes the part that z hands on, others' 0
    float *dc;           // an LSTM's
    float *slopes;       // of all gates
    float *last;         // a GRU's: of own of the last gate
};

// A row by panels of tiles (conv/tiles.h), `stride` floats from one to the next.
struct cpu_recurrence_row {
    const float *from, *panels;
    float *to;
    int64_t inner, stride, columns;
    int adds; // to what is there
};

typedef void cpu_recurrence_row_fn(const struct cpu_recurrence_row *p);
typedef void cpu_recurrence_fn(const struct cpu_recurrence_rows *p);
typedef void cpu_recurrence_slopes_fn(const struct cpu_recurrence_slopes *p);

// The loops of one variant, by TN_RECURRENCE_... of <tenon/ops/nn_attrs.h>.
struct cpu_recurrence_kernels {
    cpu_recurrence_fn *rows[4];
    cpu_recurrence_slopes_fn *slopes[4];
};

#endif // KERNELS_CPU_RECURRENCE_H
