# SPDX-License-Identifier: MIT
"""mlx.core.fft over pack fft."""

from .convert import convert
from .table import base, fft_pack as pack, function

_NORMS = ("backward", "ortho", "forward")


def _check(what, a, axes, norm, sizes=()):
    if norm not in _NORMS:
        raise ValueError(f"[{what}] Unknown normalization mode '{norm}': expected one of {', '.join(_NORMS)}.")
    for axis in axes:
        if not -a.ndim <= axis < a.ndim:
            raise ValueError(f"[{what}] Invalid axis received for array with {a.ndim} dimensions.")
    if any(n is not None and n <= 0 for n in sizes):
        raise ValueError(f"[{what}] Invalid output size requested.")


def _one(name):
    apply = getattr(pack, name)

    def transform(a, n=None, axis=-1, norm="backward"):
        _check(name, a, [axis], norm, [n])
        return apply(a, n=n, axis=axis, norm=norm)

    transform.__doc__ = f"The transform {name} along an axis."
    function(transform, of="fft", name=name)


def _several(name, default):
    apply = getattr(pack, name.replace("2", "n"))

    def transform(a, s=None, axes=default, norm="backward"):
        if axes is None:
            axes = range(a.ndim) if s is None else range(a.ndim - len(s), a.ndim)
        axes = list(axes)
        if s is not None and len(s) != len(axes):
            raise ValueError(f"[{name}] Shape and axes have different sizes.")
        if not axes:
            raise ValueError(f"[{name}] The input must have at least one axis to transform along.")
        _check(name, a, axes, norm, s or ())
        return apply(a, s=None if s is None else list(s), axes=axes, norm=norm)

    transform.__doc__ = f"The transform {name} along axes."
    function(transform, of="fft", name=name)


for _name in ("fft", "ifft", "rfft", "irfft"):
    _one(_name)
    _several(f"{_name}2", (-2, -1))
    _several(f"{_name}n", None)


def _frequencies(name, n, d):
    if n <= 0 or d == 0:
        raise ValueError(f"[{name}] n is {n} and d is {d}, expected a positive number and one that is not 0.")
    return base.astype(getattr(pack, name)(n=int(n), d=float(d)), "float32")


@function(of="fft")
def fftfreq(n, d=1.0):
    """The frequencies of a transform of n samples, d apart."""
    return _frequencies("fftfreq", n, d)


@function(of="fft")
def rfftfreq(n, d=1.0):
    """The frequencies of a transform of n real samples, d apart."""
    return _frequencies("rfftfreq", n, d)


def _shift(name, a, axes):
    axes = list(range(a.ndim)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    _check(name, a, axes, "backward")
    return getattr(pack, name)(a, axes) if axes else a


@function(of="fft")
def fftshift(a, axes=None):
    """a with frequency 0 moved to the middle of axes."""
    return _shift("fftshift", convert(a), axes)


@function(of="fft")
def ifftshift(a, axes=None):
    """a with frequency 0 moved back to the beginning of axes."""
    return _shift("ifftshift", convert(a), axes)
