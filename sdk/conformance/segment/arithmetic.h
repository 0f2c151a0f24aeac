// SPDX-License-Identifier: MIT
// Arithmetic that segments and queues are checked with: elements of 4 bytes, and two
// operations on them. A backend that runs programs (expr/1) computes in i32. For one that
// runs none, sums of f32 or i32 take their place: by a kernel of base.add/1 that the plugin
// brings for a family of its own, or, with cpu.c/1, by one of the kit's.
#ifndef CONFORMANCE_SEGMENT_ARITHMETIC_H
#define CONFORMANCE_SEGMENT_ARITHMETIC_H

#include "draft.h"

struct arithmetic {
    const tn_kernel *kernel; // kernel of the sum; NULL: programs are used
    tn_dtype dtype;          // TN_I32 or TN_F32
    struct draft_program affine, combine;
};

// arithmetic_find chooses programs or a kernel that the backend runs; `m` must not be
// moved. False: it runs neither. arithmetic_begin then skips the running check.
bool arithmetic_find(const struct fixture *f, struct arithmetic *m);
bool arithmetic_begin(struct fixture *f, struct arithmetic *m);

// `count` elements at the start of the slot.
tn_value arithmetic_value(const struct arithmetic *m, uint32_t slot, int64_t count);

// These append out = a * x + b, and out = a * x + y; a kernel of sums: x + x, and x + y.
tn_step *draft_affine(struct draft *d, const struct arithmetic *m, const tn_value *x,
                      const tn_value *out, uint32_t a, uint32_t b);
tn_step *draft_combine(struct draft *d, const struct arithmetic *m, const tn_value *x_and_y,
                       const tn_value *out, uint32_t a);

// Expected results of these two for single elements, as bits in memory.
uint32_t affine_of(const struct arithmetic *m, uint32_t x, uint32_t a, uint32_t b);
uint32_t combine_of(const struct arithmetic *m, uint32_t x, uint32_t y, uint32_t a);
// affine_of, applied `times` times.
uint32_t affine_repeated(const struct arithmetic *m, uint32_t x, uint32_t a, uint32_t b,
                         int times);

// The element that represents integer n, below 2^24; and the number that an element
// represents.
uint32_t element_of(const struct arithmetic *m, uint32_t n);
double element_value(const struct arithmetic *m, uint32_t element);

#endif // CONFORMANCE_SEGMENT_ARITHMETIC_H
