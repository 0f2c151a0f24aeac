// SPDX-License-Identifier: MIT
// The recurrence that nn.lstm, nn.gru and nn.rnn are made of: its primitives
// (recurrence.c), and their definitions (recurrence_define.c).
#ifndef NN_RECURRENCE_H
#define NN_RECURRENCE_H

#include "../pack.h"

// Inputs of recurrence and of recurrence_steps.
enum { RECURRENCE_GIVEN, RECURRENCE_W, RECURRENCE_H, RECURRENCE_C, RECURRENCE_B };
#define RECURRENCE_INPUTS 5
// Inputs of recurrence_grad.
enum { GRAD_GRADIENT, GRAD_W, GRAD_OUT, GRAD_H, GRAD_GATES, GRAD_CELLS, GRAD_C, GRAD_OF_C };
#define GRAD_INPUTS 8
#define RECURRENCE_OUTPUTS 4 // at most

// Sizes of an application: positions, rows, units.
struct recurrence {
    int64_t kind, reverse, gates; // gates of a unit
    int64_t length, rows, units;
    tn_dtype dtype;
};

// The number of gates of a unit, and of biases.
static inline int64_t recurrence_gates(int64_t kind)
{
    return kind == TN_RECURRENCE_LSTM ? 4 : kind == TN_RECURRENCE_GRU ? 3 : 1;
}

static inline int64_t recurrence_biases(int64_t kind)
{
    return kind <= TN_RECURRENCE_GRU ? 4 : 1;
}

// Sizes of an application from the types of input 0, L,N,..., and input 1, w.
static inline struct recurrence recurrence_of(const tn_recurrence_attrs *attrs,
                                              const tn_type *first, const tn_type *w)
{
    return (struct recurrence){.kind = attrs->kind,
                               .reverse = attrs->reverse,
                               .gates = recurrence_gates(attrs->kind),
                               .length = first->extent[0],
                               .rows = first->extent[1],
                               .units = w->extent[1],
                               .dtype = first->dtype};
}

// Joins parts along an axis.
tn_array *recurrence_joined(const tn_build *build, const tn_array *const *parts,
                            uint64_t count, int64_t axis);

// States before each position: `first` (N,H), then `all` (L,N,H) without the last; or
// reversed.
tn_array *recurrence_before(const tn_build *build, const struct recurrence *r,
                            tn_array *all, tn_array *first);

// The definitions, by base.scan. `in`: RECURRENCE_INPUTS or GRAD_INPUTS arrays, NULL: not
// given. `keeps`: gives the outputs for derivatives, too.
tn_status recurrence_define(const tn_build *build, const struct recurrence *r,
                            tn_array *const *in, int keeps, tn_array **outputs);
tn_status recurrence_grad_define(const tn_build *build, const struct recurrence *r,
                                 tn_array *const *in, tn_array **outputs);

#endif // NN_RECURRENCE_H
