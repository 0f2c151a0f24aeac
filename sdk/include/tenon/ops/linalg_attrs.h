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

// linalg.lu_factor/1 (a: ..., m, n) -> lu: ..., m, n, and pivots, i32: ..., min(m, n): as
// scipy.linalg.lu_factor. linalg.lu/1 (a) -> p, l, u with a = p l u, as scipy.linalg.lu.

// linalg.lu_permutation/1 (pivots: i32 ..., k) -> i32 ..., rows: row i of l u is row out[i]
// of a. A pivot out of range is the nearest row.
typedef struct tn_lu_permutation_attrs {
    int64_t rows; // of the factored matrices, at least k; required
} tn_lu_permutation_attrs;

// linalg.solve/1 (a: ..., n, n; b: ..., n, k, or n) -> x with a x = b; linalg.inv/1,
// linalg.adjugate/1 (a) -> as a; linalg.det/1 (a) -> ...; linalg.slogdet/1 (a) -> sign and
// logabsdet, which is real. None has attributes.

// tn_qr_attrs.mode: how many columns q has.
enum {
    TN_LINALG_REDUCED = 0,  // min(m, n); the default
    TN_LINALG_COMPLETE = 1, // m
};

// linalg.qr/1 (a: ..., m, n) -> q: ..., m, k, and r: ..., k, n.
typedef struct tn_qr_attrs {
    int64_t mode; // TN_LINALG_...
} tn_qr_attrs;

// linalg.svd/1 (a: ..., m, n) -> u, s, vh with a = u diag(s) vh; s is real, the largest
// first. linalg.svdvals/1 (a) -> s.
typedef struct tn_svd_attrs {
    int64_t full_matrices; // 0: u has min(m, n) columns, vh as many rows; default 1: square
} tn_svd_attrs;

// tn_eigh_attrs.uplo: which triangle is read.
enum {
    TN_LINALG_LOWER = 0, // "L"; the default
    TN_LINALG_UPPER = 1, // "U"
};

// linalg.eigh/1 (a: ..., n, n) -> w and v with a v = v diag(w); w is real, the least first.
// linalg.eigvalsh/1 (a) -> w.
typedef struct tn_eigh_attrs {
    int64_t uplo; // TN_LINALG_...
} tn_eigh_attrs;

// linalg.eig/1 (a: ..., n, n) -> complex w and v with a v = v diag(w), columns of v of
// length 1; linalg.eigvals/1 (a) -> w. No attributes.

// linalg.lstsq/1 (a: ..., m, n; b: ..., m, k, or m) -> x, residuals (none when m <= n),
// rank (i32) and singular values.
typedef struct tn_lstsq_attrs {
    double rcond; // default -1: the dtype's epsilon times max(m, n)
} tn_lstsq_attrs;

#endif // TENON_OPS_LINALG_ATTRS_H
