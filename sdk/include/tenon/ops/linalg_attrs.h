// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "linalg": for plugins that bring kernels or
// rules for these primitives. Each struct is frozen with the revision of its primitives.
//
//   // In a kernel for "linalg.cholesky/1".
//   const tn_cholesky_attrs *attrs = call->attrs;
//   bool upper = attrs->upper != 0;
//
// Matrices are the last two axes; those in front of them count matrices, and broadcast
// where there are several inputs. Elements are f32, f64, complex64 or complex128.
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_LINALG_ATTRS_H
#define TENON_OPS_LINALG_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// linalg.cholesky/1 (a: ..., n, n) -> ..., n, n: the lower triangular L with a = L L^H, or
// the upper U with a = U^H U; zeros in the other triangle. Only that triangle of a is read,
// of its diagonal the real part. A pivot that is not greater than 0: an error on the CPU;
// where a kernel cannot fail, NaN there and in what depends on it.
typedef struct tn_cholesky_attrs {
    int64_t upper; // 0 or 1; default 0
} tn_cholesky_attrs;

// tn_solve_triangular_attrs.transpose: what is solved with, as SciPy's `trans`.
enum {
    TN_LINALG_NONE = 0,      // a x = b
    TN_LINALG_TRANSPOSE = 1, // a^T x = b
    TN_LINALG_ADJOINT = 2,   // a^H x = b
};

// linalg.solve_triangular/1 (a: ..., n, n; b: ..., n, k, or n) -> ..., n, k, or ..., n: x
// of the triangle of a that `lower` names; the other is not read. A b of one axis is a
// vector. A 0 on the diagonal: an error on the CPU; where a kernel cannot fail, what a
// division by 0 gives.
typedef struct tn_solve_triangular_attrs {
    int64_t lower;         // 0 or 1; default 0
    int64_t transpose;     // TN_LINALG_...
    int64_t unit_diagonal; // 1: the diagonal counts as ones, and is not read; default 0
} tn_solve_triangular_attrs;

#endif // TENON_OPS_LINALG_ATTRS_H
