// SPDX-License-Identifier: MIT
// Arrays whose memory the kit owns: in any layout, with canaries around and between their
// elements.
#ifndef CONFORMANCE_KIT_ARRAY_H
#define CONFORMANCE_KIT_ARRAY_H

#include <tenon/ops/reference.h>
#include "kit.h"

// Memory layouts. REPEATED is for inputs only: stride 0 along the first axis.
enum layout_kind { PLAIN, SHIFTED, TRANSPOSED, GAPS, REVERSED, REPEATED, NUM_LAYOUTS };
extern const char *const layout_names[NUM_LAYOUTS];

struct array {
    tn_tensor tensor;                   // data NULL: the input is not given
    int64_t count;                      // elements
    unsigned char *memory, *is_element; // owned; is_element: 1 for each byte of an element
    uint64_t size;                      // bytes of `memory`, and of `is_element`
};

// Gives an array with every byte, elements included, set to `poison`. Aborts when out of
// memory.
struct array array_new(const tn_type *type, enum layout_kind kind, unsigned char poison);
void array_free(struct array *array);

tn_type array_type(const struct array *array);
// Copies elements between arrays of the same extents and dtype.
void array_copy(struct array *to, const struct array *from);
// Gives a copy in another layout. For REPEATED, `from` is first made constant along axis 0.
struct array array_laid_out(struct array *from, enum layout_kind kind);

// True when every byte outside of the elements still holds `poison`.
bool array_guards_hold(const struct array *array, unsigned char poison);

double array_get(const struct array *array, int64_t i);
void array_set(struct array *array, int64_t i, double value);
tn_complex128 array_get_complex(const struct array *array, int64_t i);
void array_set_complex(struct array *array, int64_t i, tn_complex128 value);
// Fills with uniform random numbers in [lo, hi]: whole for integers and within their range,
// 0 or 1 for bool.
void array_fill(struct kit *k, struct array *array, double lo, double hi);

// The largest finite magnitude, or 0.
double array_largest(const struct array *array);

// Returns NULL when all elements agree within `tolerance` times the greater of `least` and
// the largest magnitude in `want`, else a message in static memory. NaN agrees with NaN, an
// infinity with the same infinity, and any two complex numbers that are not finite with
// each other. Unless `spread` is NULL, element i may differ by spread[i] more; if that is
// INFINITY, from NaN too.
const char *array_compare(const struct array *got, const struct array *want,
                          double tolerance, double least, const double *spread);

// Writes types as "f32[2,3] i64[3]". Returns `out`.
const char *types_text(char *out, size_t size, const tn_type *types, uint32_t count);

#endif // CONFORMANCE_KIT_ARRAY_H
