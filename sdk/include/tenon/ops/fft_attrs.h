// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "fft": for plugins that bring kernels or
// rules for these primitives. Each struct is frozen with the revision of its primitives.
//
//   // In a kernel for "fft.dft/1".
//   const tn_dft_attrs *attrs = call->attrs;
//   double sign = attrs->inverse ? 1 : -1;
//
// fft.dft, fft.dft_of_real and fft.dft_to_real are what kernels are written for: transforms
// along the last axis, which has at least one element. All others have numpy.fft's names
// and meanings, and are made of these three, of views, crops and borders of zeros.
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_FFT_ATTRS_H
#define TENON_OPS_FFT_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// fft.dft/1 (x: complex ..., n) -> complex ..., n: the discrete Fourier transform of each
// row,
//
//   out[k] = scale * sum over j of x[j] * exp(-2 pi i j k / n)
//
// with +2 pi i when inverse. The output may take over the memory of x.
typedef struct tn_dft_attrs {
    int64_t inverse; // 0 or 1; default 0
    double scale;    // finite; default 1
} tn_dft_attrs;

// fft.dft_of_real/1 (x: f32 or f64 ..., n) -> complex ..., n / 2 + 1: the elements
// 0 .. n / 2 of the transform, as above; the others are conjugates of these.
typedef struct tn_dft_of_real_attrs {
    double scale; // finite; default 1
} tn_dft_of_real_attrs;

// fft.dft_to_real/1 (x: complex ..., n / 2 + 1) -> f32 or f64 ..., n: the inverse transform
// of rows of n of which x has the elements 0 .. n / 2, the others being conjugates. So the
// imaginary parts of element 0, and for even n of element n / 2, do not count.
typedef struct tn_dft_to_real_attrs {
    int64_t n;    // elements of a row of the output; required
    double scale; // finite; default 1
} tn_dft_to_real_attrs;

// tn_fft_attrs.norm and tn_fftn_attrs.norm: what a transform of n elements is divided by,
// forward and inverse.
enum {
    TN_FFT_BACKWARD = 0, // 1 and n; the default
    TN_FFT_ORTHO = 1,    // sqrt(n) and sqrt(n)
    TN_FFT_FORWARD = 2,  // n and 1
};

// tn_fft_attrs.n when none is given.
#define TN_FFT_WHOLE INT64_MIN

// fft.fft/1, fft.ifft/1, fft.rfft/1, fft.irfft/1 (x): as numpy.fft's. x is cropped, or gets
// zeros behind, to n elements along the axis; of irfft to n / 2 + 1, and n is the result's
// extent. bool, integers and f64 give complex128 (irfft f64), f16, bf16 and f32 complex64.
// rfft takes no complex numbers.
typedef struct tn_fft_attrs {
    int64_t n;    // at least 1; not given: x's extent, of irfft 2 * (x's extent - 1)
    int64_t axis; // negative: from the end; default -1
    int64_t norm; // TN_FFT_...
} tn_fft_attrs;

// fft.fft2/1, fft.ifft2/1, fft.rfft2/1, fft.irfft2/1 and fft.fftn/1, fft.ifftn/1,
// fft.rfftn/1, fft.irfftn/1 (x): transforms along several axes. Of rfft2 and rfftn the one
// along the last of `axes` is of real numbers, of irfft2 and irfftn it gives them.
typedef struct tn_fftn_attrs {
    tn_ints s;    // n for each of `axes`; -1: x's extent; not given: as without n
    tn_ints axes; // each once; not given: the last two, or as many as s has, or all
    int64_t norm; // TN_FFT_...
} tn_fftn_attrs;

// fft.fftfreq/1, fft.rfftfreq/1 (no input): the frequencies of the elements of fft's result
// and of rfft's, in cycles per unit of the samples' distance, as numpy.fft's.
typedef struct tn_fftfreq_attrs {
    int64_t n;     // elements that are transformed, at least 1; required
    double d;      // distance of samples, finite and not 0; default 1
    int64_t dtype; // a float dtype; TN_DTYPE_NONE: f64
} tn_fftfreq_attrs;

// fft.fftshift/1 (x): x with element 0 of each axis in the middle, at extent / 2, and what
// was there before it moved to the start; fft.ifftshift/1 (x): the reverse.
typedef struct tn_fftshift_attrs {
    tn_ints axes; // each once; not given: all
} tn_fftshift_attrs;

#endif // TENON_OPS_FFT_ATTRS_H
