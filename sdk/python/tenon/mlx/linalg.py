# SPDX-License-Identifier: MIT
"""mlx.core.linalg over pack linalg."""

from .convert import astype, inexact, operands
from .dtypes import of_name
from .table import MODULES, base, function, linalg_pack as pack, put

_REAL, _ALL = ("float32", "float64"), ("float32", "float64", "complex64")


def _floats(what, *arrays, dtypes=_ALL):
    for a in arrays:
        if a.dtype.name not in dtypes:
            raise ValueError(f"[linalg::{what}] Arrays must have type {', '.join(dtypes)}. Received array with type "
                             f"{a.dtype.name}.")


def _square(what, a, dtypes=_ALL):
    _floats(what, a, dtypes=dtypes)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"[linalg::{what}] Inputs must be square matrices. Received array with shape {a.shape}.")


def _uint32(x):
    return astype(x, of_name("uint32").tenon)


@function(of="linalg")
def norm(a, ord=None, axis=None, keepdims=False):
    """The norm of vectors or matrices."""
    a = inexact(a)
    axes = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if isinstance(ord, str) and ord not in ("f", "fro", "nuc"):
        raise ValueError(f"[linalg::norm] Invalid ord value '{ord}' for matrix norm.")
    if ord is None or axes is None and a.ndim > 2:
        if ord is not None:
            raise ValueError("[linalg::norm] Received too many axes for norm.")
        squares = base.square(base.abs(a) if a.dtype.kind == "c" else a)
        return base.sqrt(base.sum(squares, axes, keepdims=keepdims))
    axes = list(range(a.ndim)) if axes is None else axes
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"[linalg::norm] Invalid ord value '{ord}' for vector norm.")
        return pack.norm(a, ord=repr(float(ord)), axis=axes, keepdims=keepdims)
    if len(axes) != 2:
        raise ValueError("[linalg::norm] Received too many axes for norm.")
    named = "fro" if ord == "f" else ord if isinstance(ord, str) else repr(float(ord))
    return pack.norm(a, ord=named, axis=axes, keepdims=keepdims)


@function(of="linalg")
def qr(a):
    """Matrices as products of one with orthonormal columns and a triangle."""
    _floats("qr", a)
    return pack.qr(a)


@function(of="linalg")
def svd(a, compute_uv=True):
    """Singular values, with the vectors on both sides unless these are not wanted."""
    _floats("svd", a)
    return pack.svd(a, full_matrices=True) if compute_uv else pack.svdvals(a)


@function(of="linalg")
def inv(a):
    """The inverse of square matrices."""
    _square("inv", a)
    return pack.inv(a)


@function(of="linalg")
def tri_inv(a, upper=False):
    """The inverse of triangular matrices."""
    _square("tri_inv", a)
    return pack.tri_inv(a, upper=upper)


@function(of="linalg")
def cholesky(a, upper=False):
    """The triangular factor of positive definite matrices."""
    _square("cholesky", a)
    return pack.cholesky(a, upper=upper)


@function(of="linalg")
def cholesky_inv(a, upper=False):
    """The inverse of the matrices that triangular factors are of."""
    _square("cholesky", a)
    return pack.cholesky_inv(a, upper=upper)


@function(of="linalg")
def pinv(a):
    """The pseudo-inverse."""
    _floats("pinv", a)
    return pack.pinv(a)


@function(of="linalg")
def cross(a, b, axis=-1):
    """The cross product of vectors of 2 or 3 elements along an axis."""
    a, b = operands(a, b)
    sizes = [x.shape[axis] if -x.ndim <= axis < x.ndim else 0 for x in (a, b)]
    if any(n not in (2, 3) for n in sizes):
        raise ValueError("[linalg::cross] The specified axis must have size 2 or 3.")

    def three(x, n):
        if n == 3:
            return x
        return base.pad(x, before=[0] * x.ndim, after=[int(i == axis % x.ndim) for i in range(x.ndim)])

    return base.cross(three(a, sizes[0]), three(b, sizes[1]), axis=axis)


@function(of="linalg")
def eig(a):
    """Eigenvalues and eigenvectors of square matrices, complex numbers."""
    _square("eig", a)
    return tuple(astype(x, of_name("complex64").tenon) for x in pack.eig(a))


@function(of="linalg")
def eigvals(a):
    """Eigenvalues of square matrices, complex numbers."""
    _square("eigvals", a)
    return astype(pack.eigvals(a), of_name("complex64").tenon)


@function(of="linalg")
def eigh(a, UPLO="L"):
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    _square("eigh", a)
    return pack.eigh(a, uplo=UPLO)


@function(of="linalg")
def eigvalsh(a, UPLO="L"):
    """Eigenvalues of Hermitian matrices, of which one triangle is read."""
    _square("eigvalsh", a)
    return pack.eigvalsh(a, uplo=UPLO)


@function(of="linalg")
def lu(a):
    """The order of rows and the two triangles of matrices: a is l[p, :] @ u."""
    _floats("lu", a, dtypes=_REAL)
    _, pivots = pack.lu_factor(a)
    order = base.argsort(pack.lu_permutation(pivots, a.shape[-2]), axis=-1)
    _, lower, upper = pack.lu(a)
    return _uint32(order), lower, upper


@function(of="linalg")
def lu_factor(a):
    """The two triangles of matrices in one, and which row each was exchanged with."""
    _floats("lu_factor", a, dtypes=_REAL)
    factors, pivots = pack.lu_factor(a)
    return factors, _uint32(pivots)


@function(of="linalg")
def solve(a, b):
    """What a times gives b."""
    _square("solve", a, _REAL)
    _floats("solve", b, dtypes=_REAL)
    if b.ndim < 1 or (b.shape[-1] if b.ndim == 1 else b.shape[-2]) != a.shape[-1] and b.shape[-1] != a.shape[-1]:
        raise ValueError(f"[linalg::solve] Last dimension of first input with shape {a.shape} must match second to last "
                         f"dimension of second input with shape {b.shape}.")
    if b.ndim == 1 or b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]:
        return base.squeeze(pack.solve(a, base.expand_dims(b, -1)), -1)
    return pack.solve(a, b)


@function(of="linalg")
def solve_triangular(a, b, *, upper=False):
    """What a triangular matrix times gives b."""
    _square("solve_triangular", a, _REAL)
    _floats("solve_triangular", b, dtypes=_REAL)
    return pack.solve_triangular(a, b, lower=not upper)


@function(of="linalg")
def det(a):
    """The determinant of square matrices."""
    a = inexact(a)
    _square("det", a, _REAL)
    return pack.det(a)


@function(of="linalg")
def slogdet(a):
    """The sign of the determinant of square matrices and the logarithm of its size."""
    a = inexact(a)
    _square("slogdet", a, _REAL)
    return pack.slogdet(a)


put("matrix_norm", MODULES["linalg"]["norm"])
