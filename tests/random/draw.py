# SPDX-License-Identifier: MIT
"""What operators.py chooses from: arrays that fit, axes, numbers."""
import numpy as np


# Of packs without rules for these.
NO_DERIVATIVES = {'fdim', 'tgamma', 'potrf', 'nextafter', 'blas.iamax', 'cbrt', 'divmod',
                  'linalg.eigvalsh', 'linalg.cholesky'}  # these two: of a Hermitian matrix

NO_BATCHES = {'blas.axpby', 'blas.dot', 'blas.gemv', 'blas.ger', 'blas.nrm2', 'blas.asum', 'blas.iamax', 'blas.gemm'}
# What they give of NaN and infinities is not told element by element.
FINITE = {'blas.iamax', 'einsum', 'convolve', 'correlate', 'scaled_dot_product_attention', 'cross_entropy', 'rope', 'conv2d', 'max_pool2d', 'group_norm', 'linalg.solve', 'linalg.inv',
          'linalg.det', 'linalg.eigvalsh', 'linalg.cholesky', 'linalg.matrix_power', 'linalg.svdvals',
          'linalg.vector_norm', 'linalg.matrix_norm'}
# Whose operands have one dtype, so that another signature cannot mix them.
STRICT = {'matmul', 'addmm', 'einsum', 'concatenate', 'stack', 'scatter', 'scatter_add', 'scatter_max', 'scatter_min',
          'scatter_set', 'put_along_axis', 'slice_update', 'dynamic_slice_update', 'hypot', 'copysign', 'nextafter',
          'fmod', 'fdim', 'fma', 'linalg.solve', 'scaled_dot_product_attention', 'rope', 'sgd', 'adam', 'layer_norm',
          'rms_norm', 'group_norm', 'conv2d', 'scan', *NO_BATCHES}


# Whose extents mean something, or decide how many results there are: another signature cannot change them.
SIZED = {'cross', 'histogram', 'searchsorted', 'digitize', 'interp', 'unstack', 'slice_update', 'insert', 'layer_norm_grad', 'partition', 'argpartition', 'conv2d_input', 'conv2d_weight',
         *(f'fractional_max_pool{n}d{which}' for n in '23' for which in ('', '_with_indices')), *NO_BATCHES}


class Retry(Exception):
    """No array fits, or what came out is of no use."""


class Number:
    """A literal, which takes the dtype of the array beside it."""

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return f'({self.value})' if self.value < 0 else str(self.value)


class Draw:
    """What the functions below choose from: values[i] is array i. `make` adds an input."""

    def __init__(self, random, values, make):
        self.random, self.values, self.make = random, values, make

    def one(self, things):
        if len(things) == 0:
            raise Retry
        return things[self.random.integers(len(things))]

    def chance(self, share):
        return self.random.random() < share

    def number(self, low, high):
        return int(self.random.integers(low, high, endpoint=True))

    def pick(self, fits=lambda x: True):
        """An array that fits; later ones twice as often as the first."""
        found = [i for i, x in enumerate(self.values) if fits(x)]
        return self.one(found + found[len(found) // 2:])

    def of(self, dtype, shape, style='any', fits=lambda x: True):
        """An array of this type: one that is there, or a new input."""
        found = [i for i, x in enumerate(self.values)
                 if x.dtype == dtype and x.shape == tuple(shape) and fits(x)]
        return self.one(found) if found and self.chance(0.7) else self.make(dtype, shape, style)

    def like(self, i, fits=lambda x: True):
        """An array that broadcasts with array i."""
        def both(x):
            try:
                shape = np.broadcast_shapes(x.shape, self.values[i].shape)
            except ValueError:
                return False
            return np.prod(shape) <= 600 and fits(x)
        return self.pick(both)

    def axis(self, i):
        """An axis of array i, from the front or from behind."""
        n = self.values[i].ndim
        if n == 0:
            raise Retry
        return self.number(-n, n - 1)

    def axes(self, i):
        """Some axes, each once; none: None."""
        n = self.values[i].ndim
        if self.chance(0.3):
            return None
        chosen = self.random.permutation(n)[:self.number(0, n)]
        return [int(a) - (n if self.chance(0.3) else 0) for a in chosen]

    def indices(self, shape, extent):
        """Integers, some of them negative, few out of range."""
        beyond = 2 if self.chance(0.2) else 0
        return self.random.integers(-extent - beyond, extent + beyond, shape, endpoint=False)


def is_float(x):
    return x.dtype.kind == 'f'


def is_wide(x):
    return x.dtype.kind == 'f' and x.dtype.itemsize > 2


def is_int(x):
    return x.dtype.kind in 'iu'


def is_bool(x):
    return x.dtype.kind == 'b'


def is_number(x):
    return x.dtype.kind in 'iuf'


def is_real(x):
    return x.dtype.kind in 'iufb'


def is_signed(x):
    return x.dtype.kind in 'if'


def is_complex(x):
    return x.dtype.kind == 'c'


def given(**attrs):
    return {k: v for k, v in attrs.items() if v is not None}
