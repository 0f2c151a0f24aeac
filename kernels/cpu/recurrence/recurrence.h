// SPDX-License-Identifier: MIT
// Gates of recurrent layers: the states of a position from the sums of its gates, and the
// derivatives. Callers compute the products of matrices.
#ifndef KERNELS_CPU_RECURRENCE_H
#define KERNELS_CPU_RECURRENCE_H

#include <stdint.h>

// Rows of one position, of `units` units each. A row of gates has 4 (LSTM), 3 (GRU) or 1
// times `units` floats. Fields that a kind lacks, or that nobody reads, are NULL.
struct cpu_recurrence_rows {
    int64_t rows, units;
    const float *input_products;  // of the input and the weights of the gates
    const float *hidden_products; // of the previous h and the weights of the gates
    const float *bias; // one row for all; GRU: r, z, n for the input, n for the previous h
    const float *h_before; // previous h; GRU alone
    const float *c_before; // previous c; LSTM alone
    float *h, *c;
    float *gates;            // out: the activated gates, for the derivatives; or NULL
    float *hidden_candidate; // out: GRU: hidden product of gate n plus its bias; NULL if
                             // `gates` is
};

// Derivatives of one position, laid out as above. `dh` and `dc` hold the gradients of the
// position's new states, and become those of its previous states. The caller adds the
// products of matrices to dh.
struct cpu_recurrence_slopes {
    int64_t rows, units;
    const float *gradient; // of h
    const float *gates, *cells;
    const float *before;     // LSTM: previous c; GRU: previous h
    const float *h;          // of kinds without gates
    float *dh;               // becomes z * (gradient of h) for a GRU, else 0
    float *dc;               // LSTM alone
    float *slopes;           // out: gradients of the sums of all gates
    float *hidden_candidate; // out: GRU: gradient of the one above
};

// The product of a row of `inner` elements and panels (conv/tiles.h), which lie `stride`
// floats apart.
struct cpu_recurrence_row {
    const float *from, *panels;
    float *to;
    int64_t inner, stride, columns;
    int adds; // not 0: adds to the elements of `to`
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
