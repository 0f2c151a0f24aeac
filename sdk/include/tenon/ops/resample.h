// SPDX-License-Identifier: MIT
// Which elements of an axis a result of nn.resample2d is made of, and by which weights: for
// references and kernels, which have to agree. Numbers are computed in f64.
//
// An axis of `in` elements becomes one of `out`. Result i is the sum of its taps, each an
// element of x times a weight, in the order of k, divided by tn_resample_divisor(). A tap
// that would be beyond the axis is of the axis's first or last element.
//
//   tn_resample_axis a = {.in = 28, .out = 50, .step = .56, .mode = TN_RESAMPLE_LINEAR};
//   for (int64_t i = 0; i < a.out; i++) {
//       double sum = 0;
//       for (int64_t k = 0; k < tn_resample_taps(&a, i); k++)
//           sum += x[tn_resample_index(&a, i, k)] * tn_resample_weight(&a, i, k);
//       y[i] = sum / tn_resample_divisor(&a, i);
//   }
//
// The transpose, which is the derivative by x, adds y[i] * weight / divisor to x[position]
// in place of that: sorted by positions, its taps are a table of the same kind.
//
// Threads. Pure functions: any thread.
#ifndef TENON_OPS_RESAMPLE_H
#define TENON_OPS_RESAMPLE_H

#include <stdint.h>

// tn_resample2d_attrs.mode: the element at or before a position; the nearest; on lines
// between two; on cubics through four; the mean of part i of `out` parts, which may share
// an element with the next one.
enum {
    TN_RESAMPLE_NEAREST,
    TN_RESAMPLE_NEAREST_EXACT,
    TN_RESAMPLE_LINEAR,
    TN_RESAMPLE_CUBIC,
    TN_RESAMPLE_PARTS
};

// An axis, rows or columns of images. The caller has checked extents and the step:
// positions are computed in f64, exact below 2^52.
typedef struct tn_resample_axis {
    int64_t in, out;       // elements of x, and results; both at least 1
    double step;           // elements of x from a result to the next
    int64_t mode;          // TN_RESAMPLE_...
    int64_t align_corners; // of LINEAR and CUBIC: result 0 is element 0
} tn_resample_axis;

// The greatest integer that is no more than `x`, of which the integer part fits 64 bits.
// (C's floor would need the library of mathematics where a kernel includes this header
// alone.)
static inline double tn_resample_floor(double x)
{
    double whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

// Whether results are x's elements as they are: such an axis has one tap of weight 1 a
// result, so that an element's infinity or NaN reaches no other one.
static inline int32_t tn_resample_is_identity(const tn_resample_axis *a)
{
    return a->in == a->out && (a->step == 1 || a->mode == TN_RESAMPLE_PARTS);
}

// Where result i lies between x's elements: 1.25 is a quarter of the way from element 1 to
// element 2. PyTorch's: with `align_corners` the first and the last results lie on the
// first and the last elements, else elements are as wide as 1, and x's ends are results'
// ends. Of PARTS it has no meaning.
static inline double tn_resample_at(const tn_resample_axis *a, int64_t i)
{
    if (a->mode == TN_RESAMPLE_NEAREST ||
        (a->align_corners && a->mode >= TN_RESAMPLE_LINEAR))
        return (double)i * a->step;
    double at = ((double)i + 0.5) * a->step;
    if (a->mode == TN_RESAMPLE_NEAREST_EXACT)
        return at;
    at -= 0.5;
    return a->mode == TN_RESAMPLE_LINEAR && at < 0 ? 0 : at;
}

// How many taps result i has: 1, 2 or 4; of PARTS as many as the part has elements, which
// is no more than in / out rounded down, and 2.
static inline int64_t tn_resample_taps(const tn_resample_axis *a, int64_t i)
{
    if (a->mode == TN_RESAMPLE_PARTS)
        return ((i + 1) * a->in + a->out - 1) / a->out - i * a->in / a->out;
    if (tn_resample_is_identity(a) || a->mode < TN_RESAMPLE_LINEAR)
        return 1;
    return a->mode == TN_RESAMPLE_LINEAR ? 2 : 4;
}

// The element of tap k, 0 <= k < tn_resample_taps(). Two taps of a result may be of one
// element, at an end of the axis.
static inline int64_t tn_resample_index(const tn_resample_axis *a, int64_t i, int64_t k)
{
    if (a->mode == TN_RESAMPLE_PARTS)
        return i * a->in / a->out + k;
    if (tn_resample_is_identity(a))
        return i;
    double element = tn_resample_floor(tn_resample_at(a, i)) +
                     (double)(a->mode == TN_RESAMPLE_CUBIC ? k - 1 : k);
    return element < 0 ? 0 : element >= (double)a->in ? a->in - 1 : (int64_t)element;
}

// The weight of tap k: of LINEAR one less the distance; of CUBIC the cubic convolution of
// Keys with a of -0.75, as PyTorch's; of others 1.
static inline double tn_resample_weight(const tn_resample_axis *a, int64_t i, int64_t k)
{
    if (tn_resample_taps(a, i) == 1 || a->mode == TN_RESAMPLE_PARTS)
        return 1;
    double at = tn_resample_at(a, i), t = at - tn_resample_floor(at);
    if (a->mode == TN_RESAMPLE_LINEAR)
        return k ? t : 1 - t;
    t = k == 0 ? t + 1 : k == 1 ? t : k == 2 ? 1 - t : 2 - t; // the distance
    return k == 1 || k == 2 ? (1.25 * t - 2.25) * t * t + 1
                            : ((-0.75 * t + 3.75) * t - 6) * t + 3;
}

// The divisor of result i's sum: of PARTS its taps, so that the mean of equal elements is
// that element; else 1.
static inline double tn_resample_divisor(const tn_resample_axis *a, int64_t i)
{
    return a->mode == TN_RESAMPLE_PARTS ? (double)tn_resample_taps(a, i) : 1;
}

#endif // TENON_OPS_RESAMPLE_H
