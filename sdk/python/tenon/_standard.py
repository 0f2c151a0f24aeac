# SPDX-License-Identifier: MIT
"""Functions whose arguments the array API and NumPy order otherwise than the operators, or that
give named tuples: thin layers over the operators, each with the standard's signature."""

import builtins
import collections
import math as _math
import operator as _operator

from . import _core
from ._core import Array
from ._dtypes import as_dtype, dtypes
from ._index import op

_SCALARS = (bool, int, float, complex)


def _array(x):
    return x if isinstance(x, Array) else _core.array(x)


def _extents(shape):
    return [_operator.index(n) for n in shape] if isinstance(shape, (tuple, list)) else [_operator.index(shape)]


def _no_device(device):
    if device not in (None, "default"):
        raise ValueError(f"device {device!r}: expected \"default\", or a block of `with tenon.device(...)`")


# --- creation ----------------------------------------------------------------------------------------


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from start (0) to before stop; int64 where all are integers."""
    _no_device(device)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = dtypes["int64" if builtins.all(isinstance(v, int) for v in (start, stop, step)) else "float32"]
    dtype = as_dtype(dtype)
    if not builtins.all(map(_math.isfinite, (start, stop, step))):
        raise ValueError(f"arange: start is {start}, stop {stop} and step {step}, expected finite numbers")
    count = max(0, -int((start - stop) // step)) if step else op("arange")(start, stop, step)
    # Computed from the count in the widest dtype, so that steps are exact and each number is in range.
    wide = "float64" if dtype.kind == "f" else "int64"
    if dtype.kind in "iu" and builtins.all(isinstance(v, int) for v in (start, stop, step)):
        x = op("arange")(0, count, 1, "int64") * step + start if count else op("zeros")([0], "int64")
    else:
        x = op("arange")(0, count, 1, "float64") * float(step) + float(start) if count else op("zeros")([0], wide)
    return op("astype")(x, dtype)


def eye(n_rows, n_cols=None, /, k=0, dtype=None, device=None):
    """Ones on a diagonal, zeros elsewhere."""
    _no_device(device)
    columns = n_rows if n_cols is None else n_cols
    return op("eye")(n_rows, columns, max(-n_rows, min(k, columns)), dtype)


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of one number; of its dtype unless told otherwise."""
    _no_device(device)
    value = _core.array(fill_value, dtype)
    return op("broadcast_to")(value, _extents(shape))


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """As full(), of the shape and dtype of x."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def _filled(name, doc):
    def function(shape, *, dtype=None, device=None):
        _no_device(device)
        return op(name)(_extents(shape), dtype)

    def like(x, /, *, dtype=None, device=None):
        _no_device(device)
        return op(name)(list(x.shape), x.dtype if dtype is None else dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"An array of {doc}; float32 unless told otherwise."
    like.__name__ = like.__qualname__ = f"{name}_like"
    like.__doc__ = f"An array of {doc}, of the shape and dtype of x."
    return function, like


zeros, zeros_like = _filled("zeros", "zeros")
ones, ones_like = _filled("ones", "ones")
empty, empty_like = _filled("empty", "zeros")


def linspace(start, stop, /, num=50, *, dtype=None, device=None, endpoint=True):
    """num numbers from start to stop, evenly spaced."""
    _no_device(device)
    if dtype is None:
        dtype = "complex64" if isinstance(start, complex) or isinstance(stop, complex) else "float32"
    dtype = as_dtype(dtype)
    if dtype.kind == "c":
        half = "float32" if dtype.name == "complex64" else "float64"
        parts = [linspace(getattr(complex(start), p), getattr(complex(stop), p), num, dtype=half, endpoint=endpoint)
                 for p in ("real", "imag")]
        return op("astype")(parts[0] + parts[1] * 1j, dtype)
    return op("astype")(op("linspace")(float(start), float(stop), num, endpoint, "float64"), dtype)


def meshgrid(*arrays, indexing="xy", sparse=False):
    """Coordinates of a grid, an array for each of `arrays`."""
    return list(op("meshgrid")(list(arrays), indexing, sparse)) if arrays else []


# --- manipulation --------------------------------------------------------------------------------------


def broadcast_arrays(*arrays):
    """The arrays with one shape."""
    return list(op("broadcast_arrays")(list(arrays)))


def broadcast_to(x, /, shape):
    """x repeated along new axes and axes of extent 1."""
    return op("broadcast_to")(x, _extents(shape))


def concat(arrays, /, axis=0):
    """Arrays joined along an axis, of one dtype together; None: flattened."""
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [op("flatten")(x) for x in arrays], 0
    dtype = result_type(*arrays)
    return op("concatenate")([x if x.dtype is dtype else op("astype")(x, dtype) for x in arrays], axis)


def stack(arrays, /, axis=0):
    """Arrays joined along a new axis, of one dtype together."""
    arrays = list(arrays)
    dtype = result_type(*arrays)
    return op("stack")([x if x.dtype is dtype else op("astype")(x, dtype) for x in arrays], axis)


def expand_dims(x, /, axis=0):
    """x with new axes of extent 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for a in axes:
        if not -x.ndim - len(axes) <= a < x.ndim + len(axes):
            raise IndexError(f"expand_dims: axis {a} of a result of {x.ndim + len(axes)} axes")
    return op("expand_dims")(x, axes)


def flip(x, /, axis=None):
    """x in reverse order along axes."""
    return op("flip")(x, axis)


def permute_dims(x, /, axes):
    """Axes in another order."""
    return op("transpose")(x, axes)


def repeat(x, repeats, /, axis=None):
    """Each element several times, as often along an axis as `repeats` says."""
    if isinstance(repeats, Array):
        repeats = repeats.tolist()
    return op("repeat")(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape; one extent may be -1."""
    return op("reshape")(x, _extents(shape))


def roll(x, /, shift, axis=None):
    """Elements moved along axes, those from the end to the front."""
    return op("roll")(x, shift, axis)


def squeeze(x, /, axis=None):
    """x without axes of extent 1."""
    return op("squeeze")(x, axis)


def tile(x, repetitions, /):
    """x side by side."""
    return op("tile")(x, list(repetitions))


def unstack(x, /, axis=0):
    """The parts of x along an axis."""
    return op("unstack")(x, axis) if x.shape[axis] else ()


# --- sorting, searching, sets ----------------------------------------------------------------------------


def sort(x, /, axis=-1, descending=False, stable=True):
    """x in order; NaN counts as greatest."""
    return op("sort")(x, axis, descending)


def argsort(x, /, axis=-1, descending=False, stable=True):
    """The indices that sort x."""
    return op("argsort")(x, axis, descending)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where x2's elements go in x1, which is sorted, or sorted by `sorter`."""
    x1, x2 = _array(x1), _array(x2)
    if sorter is not None:
        x1 = op("take")(x1, sorter)
    dtype = result_type(x1, x2)
    return op("searchsorted")(op("astype")(x1, dtype), op("astype")(x2, dtype), side)


def nonzero(x, /, *, size=None, fill_value=0):
    """The indices of nonzero elements, an array an axis. Without `size` the number is computed
    first; with it, it is the most, and last comes how many there are."""
    if size is not None:
        return op("nonzero")(x, size=size, fill_value=fill_value)
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes")
    count = _count(op("count_nonzero")(x), "nonzero")
    found = op("nonzero")(x, size=max(count, 1))[:-1]
    return found if count else tuple(i[:0] for i in found)


def _count(count, name):
    if _core.is_tracing():
        raise ValueError(f"{name}: within a traced body the number of results is not known: give size=")
    return int(count)


_UNIQUE = {"unique_all": ("values", "indices", "inverse_indices", "counts"), "unique_counts": ("values", "counts"),
           "unique_inverse": ("values", "inverse_indices")}
_BY_ELEMENT = ("inverse_indices",)


def _unique(name):
    fields = _UNIQUE.get(name)
    kind = collections.namedtuple(f"{name}_result", fields) if fields else None

    def function(x, /, *, size=None, fill_value=0):
        if size is not None:
            return op(name)(x, size=size, fill_value=fill_value)
        if x.size == 0:
            shapes = [x.shape if f in _BY_ELEMENT else (0,) for f in fields or ("values",)]
            parts = [op("zeros")(list(s), x.dtype if k == 0 else "int64") for k, s in enumerate(shapes)]
            return kind(*parts) if kind else parts[0]
        *parts, count = op(name)(x, size=x.size)
        count = _count(count, name)
        if not fields:
            return parts[0][:count]
        return kind(*(p if f in _BY_ELEMENT else p[:count] for f, p in zip(fields, parts)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The different elements of x, sorted, and what the name says; see nonzero() for `size`."
    return function


unique_all, unique_counts, unique_inverse, unique_values = map(
    _unique, ("unique_all", "unique_counts", "unique_inverse", "unique_values"))


# --- elementwise and reductions --------------------------------------------------------------------------


def clip(x, /, min=None, max=None):
    """x, with what is below min or above max replaced by them."""
    for bound in (min, max):
        if isinstance(bound, Array) and bound.dtype is not x.dtype:
            raise TypeError(f"clip: a bound of {bound.dtype.name} for an array of {x.dtype.name}")
    x = x if min is None else op("maximum")(x, min)
    return x if max is None else op("minimum")(x, max)


def _reduction(name):
    def function(x, /, axis=None, dtype=None, keepdims=False):
        return op(name)(x, axis, keepdims, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {name} over axes, as operator base.{name}; `dtype` is that of the result."
    return function


sum, prod, mean = map(_reduction, ("sum", "prod", "mean"))


def diff(x, /, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours, n times."""
    return op("diff")(x, prepend, append, n, axis)


def _spread(name):
    def function(x, /, axis=None, correction=0.0, keepdims=False, dtype=None):
        return op(name)(x, axis, keepdims, correction, dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As operator {name}; `correction` is its ddof."
    return function


var, std = _spread("var"), _spread("std")


def matmul(x1, x2, /):
    """Products of matrices, of one dtype together."""
    x1, x2 = _array(x1), _array(x2)
    if x1.dtype is not x2.dtype:
        dtype = result_type(x1, x2)
        x1, x2 = op("astype")(x1, dtype), op("astype")(x2, dtype)
    return op("matmul")(x1, x2)


def where(condition, x1, x2, /):
    """x1 where the condition holds, else x2."""
    return op("where")(condition, x1, x2)


def einsum(equation, *arrays):
    """Sums of products by an equation: einsum("ij,jk->ik", a, b)."""
    return op("einsum")(list(arrays), equation=equation)


def tensordot(x1, x2, /, axes=2):
    """Sums of products over axes: so many last and first ones, or two lists."""
    if isinstance(axes, int):
        return op("tensordot")(x1, x2, axes)
    return op("tensordot")(x1, x2, axes_a=list(axes[0]), axes_b=list(axes[1]))


# --- dtypes ------------------------------------------------------------------------------------------------


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements of x converted to a dtype."""
    _no_device(device)
    return x.astype(dtype, copy)


def result_type(*operands):
    """The dtype that operands (arrays, dtypes, numbers of Python) have together."""
    result, numbers = None, []
    for x in operands:
        if isinstance(x, _SCALARS):
            numbers.append(x)
            continue
        dtype = x.dtype if isinstance(x, Array) else as_dtype(x)
        if result is None:
            result = dtype
        elif dtype is not result:
            result = op("add" if "bool" not in (dtype.name, result.name) else "multiply")(
                op("zeros")([], result), op("zeros")([], dtype)).dtype
    if result is None:
        raise ValueError("result_type: at least one array or dtype is expected")
    for x in numbers:
        if result.name != "bool" or not isinstance(x, bool):
            result = op("add")(op("zeros")([], result), type(x)(0)).dtype
    return result


def can_cast(from_, to, /):
    """Whether promotion takes a dtype, or that of an array, to another."""
    try:
        return result_type(getattr(from_, "dtype", from_), to) is as_dtype(to)
    except ValueError:
        return False


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes have together."""
    arrays = [op("zeros")(list(shape), "bool") for shape in shapes]
    return op("broadcast_arrays")(arrays)[0].shape if arrays else ()


NAMES = [name for name, value in list(globals().items()) if callable(value) and not name.startswith("_")
         and name not in ("Array", "as_dtype", "op")]


# --- packs ---------------------------------------------------------------------------------------------------


def _named(name, fields):
    kind = collections.namedtuple(f"{name}_result", fields)

    def decorate(function):
        def wrapper(*args, **kwargs):
            return kind(*function(*args, **kwargs))

        wrapper.__name__ = wrapper.__qualname__ = name
        wrapper.__doc__ = function.__doc__
        wrapper.__wrapped__ = function
        return wrapper

    return decorate


def _linalg():
    def pack(name):
        return _core.operator(f"linalg.{name}/1")

    @_named("eigh", ("eigenvalues", "eigenvectors"))
    def eigh(x, /):
        """Eigenvalues and vectors of Hermitian matrices."""
        return pack("eigh")(x)

    @_named("qr", ("Q", "R"))
    def qr(x, /, *, mode="reduced"):
        """Q with orthonormal columns and R upper triangular, x = Q @ R."""
        return pack("qr")(x, mode)

    @_named("slogdet", ("sign", "logabsdet"))
    def slogdet(x, /):
        """The determinant's sign and the logarithm of its absolute value."""
        return pack("slogdet")(x)

    @_named("svd", ("U", "S", "Vh"))
    def svd(x, /, *, full_matrices=True):
        """U, singular values and Vh, x = U @ diag(S) @ Vh."""
        return pack("svd")(x, full_matrices=full_matrices)

    def pinv(x, /, *, rtol=None):
        """The pseudo-inverses of matrices; singular values up to rtol of the greatest count as 0."""
        if not isinstance(rtol, Array):
            return pack("pinv")(x, rtol=rtol)
        if rtol.size == 1:
            return pack("pinv")(x, rtol=rtol.item())
        # One bound a matrix: by the singular values themselves.
        u, s, vh = pack("svd")(x, full_matrices=False)
        least = op("max")(s, -1, True) * op("expand_dims")(rtol, -1)
        inverse = op("where")(s > least, 1 / op("where")(s > least, s, 1), 0)
        turned = op("conjugate")(op("matrix_transpose")(vh)) * op("expand_dims")(inverse, -2)
        return op("matmul")(turned, op("conjugate")(op("matrix_transpose")(u)))

    def matrix_rank(x, /, *, rtol=None):
        """The numbers of singular values above rtol times the greatest."""
        if not isinstance(rtol, Array):
            return pack("matrix_rank")(x, rtol=rtol)
        s = pack("svdvals")(x)
        return op("count_nonzero")(s > op("max")(s, -1, True) * op("expand_dims")(rtol, -1), -1)

    def solve(x1, x2, /):
        """The x of x1 @ x = x2."""
        dtype = result_type(x1, x2)
        return pack("solve")(op("astype")(x1, dtype), op("astype")(x2, dtype))

    def order_text(order):
        """The text that the operators take for a number."""
        return order if order is None or isinstance(order, str) else repr(float(order))

    def matrix_norm(x, /, *, keepdims=False, ord="fro"):
        """Norms of matrices: \"fro\", \"nuc\", 1, 2, inf and their negatives."""
        return pack("matrix_norm")(x, ord=order_text(ord), keepdims=keepdims)

    def norm(x, ord=None, axis=None, keepdims=False):
        """Norms of vectors and matrices as NumPy's: ord is a number, \"fro\" or \"nuc\"."""
        return pack("norm")(x, order_text(ord), axis, keepdims)

    def cond(a, p=None):
        """Condition numbers, by the norm p: None (as 2), a number, \"fro\" or \"nuc\"."""
        return pack("cond")(a, order_text(p))

    def cross(x1, x2, /, *, axis=-1):
        """Products of vectors of three elements."""
        return op("cross")(x1, x2, axis)

    def diagonal(x, /, *, offset=0):
        """The diagonals of the last two axes."""
        return op("diagonal")(x, offset, -2, -1)

    def matrix_transpose(x, /):
        """The last two axes swapped."""
        return op("matrix_transpose")(x)

    def outer(x1, x2, /):
        """All products of two vectors' elements."""
        return op("outer")(x1, x2)

    def trace(x, /, *, offset=0, dtype=None):
        """The sum of the diagonal of the last two axes."""
        return op("sum")(op("diagonal")(x, offset, -2, -1), -1, False, dtype)

    def vecdot(x1, x2, /, *, axis=-1):
        """Sums of products along an axis, of x1's conjugate."""
        return op("vecdot")(x1, x2, axis)

    return {f.__name__: f for f in (eigh, qr, slogdet, svd, pinv, matrix_rank, solve, matrix_norm, norm, cond, cross, diagonal, matmul, matrix_transpose, outer, trace,
                                    vecdot)} | {"tensordot": tensordot}


def _fft():
    def frequencies(name):
        def function(n, /, *, d=1.0, dtype=None, device=None):
            _no_device(device)
            return op("astype")(_core.operator(f"fft.{name}/1")(n, d), dtype or "float32")

        function.__name__ = function.__qualname__ = name
        function.__doc__ = "The frequencies of a transform of n samples, d apart."
        return function

    return {name: frequencies(name) for name in ("fftfreq", "rfftfreq")}


PACKS = {"linalg": _linalg, "fft": _fft}
