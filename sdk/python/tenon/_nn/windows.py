# SPDX-License-Identifier: MIT
"""Layers that move or choose elements: borders, windows, shuffles of channels, pooling by other norms and its inverse."""

import tenon as tn

from . import init
from .layers import _family, _given, take_key
from .module import Module


class _Operator(Module):
    """A layer without parameters: an operator of pack nn and its attributes."""

    OPERATOR, NAMES, REQUIRED = "", (), 1

    def __init__(self, *args, axis=-1, **names):
        given = {**dict(zip(self.NAMES, args)), **names, "axis": axis}
        if len(args) > len(self.NAMES) or not set(names) <= set(self.NAMES[len(args):]) or not set(self.NAMES[:self.REQUIRED]) <= set(given):
            raise TypeError(f"{type(self).__name__}: expected {', '.join(self.NAMES)} and axis"
                            + (f", at least {', '.join(self.NAMES[:self.REQUIRED])}" if self.REQUIRED else ""))
        self.attributes = {key: value for key, value in given.items() if value is not None}

    def forward(self, x):
        return getattr(tn.nn, self.OPERATOR)(x, **self.attributes)

    def _describe(self):
        return ", ".join(f"{key}={value}" for key, value in self.attributes.items())


class PixelShuffle(_Operator):
    """Channels as pixels: upscale_factor times as many rows and columns."""

    OPERATOR, NAMES = "pixel_shuffle", ("upscale_factor",)


class PixelUnshuffle(_Operator):
    """Pixels as channels: downscale_factor times as few rows and columns."""

    OPERATOR, NAMES = "pixel_unshuffle", ("downscale_factor",)


class ChannelShuffle(_Operator):
    """Channels in the order in which the first of each of `groups` groups comes first."""

    OPERATOR, NAMES = "channel_shuffle", ("groups",)


class LocalResponseNorm(_Operator):
    """x over a power of the squares of `size` neighbouring channels."""

    OPERATOR, NAMES = "local_response_norm", ("size", "alpha", "beta", "k")


class _Windows(_Operator):
    """Attributes of windows: one number, or one an axis."""

    SPREAD = ("window", "stride", "padding", "dilation", "output_size")

    def __init__(self, *args, kernel_size=None, **names):
        more = {} if kernel_size is None else {"window": kernel_size}
        super().__init__(*args, **more, **names)
        axes = int(self.OPERATOR[-2]) if self.OPERATOR[-1] == "d" and self.OPERATOR[-2].isdigit() else 2
        self.attributes = {key: _given(value, axes) if key in self.SPREAD else value for key, value in self.attributes.items()}


class Unfold(_Windows):
    """Windows of images as rows: N, L, C * elements."""

    OPERATOR, NAMES = "unfold", ("window", "dilation", "padding", "stride")


class Fold(_Windows):
    """Images from rows of windows, whose elements are added: the transpose of Unfold."""

    OPERATOR, NAMES, REQUIRED = "fold", ("output_size", "window", "dilation", "padding", "stride"), 2


class _LPPool(_Windows):
    NAMES, REQUIRED = ("norm_type", "window", "stride", "ceil_mode"), 2


globals().update(_family(_LPPool, "Windows of N, ..., C: roots of the sums of their elements' powers norm_type.", {
    f"LPPool{n}d": {"OPERATOR": f"lp_pool{n}d"} for n in (1, 2, 3)}))


class _MaxUnpool(_Windows):
    NAMES = ("window", "stride", "padding")

    def forward(self, x, indices, output_size=None):
        more = {} if output_size is None else {"output_size": list(output_size)}
        return getattr(tn.nn, self.OPERATOR)(x, indices, **self.attributes, **more)


globals().update(_family(_MaxUnpool, "Zeros, and maxima where a pooling with return_indices=True took them from.", {
    f"MaxUnpool{n}d": {"OPERATOR": f"max_unpool{n}d"} for n in (1, 2, 3)}))


class _FractionalMaxPool(_Windows):
    """Its key of random numbers is a buffer, as a dropout's."""

    NAMES = ("window", "output_size", "output_ratio", "return_indices")

    def __init__(self, *args, **names):
        super().__init__(*args, **names)
        if self.attributes.pop("return_indices", False):
            self.OPERATOR += "_with_indices"
        if ("output_size" in self.attributes) == ("output_ratio" in self.attributes):
            raise ValueError(f"{type(self).__name__}: expected one of output_size and output_ratio")
        self.buffer("key", init.next_key())

    def forward(self, x):
        channels = x.shape[self.attributes["axis"]]
        samples = tn.random.uniform(take_key(self), tn.array(0.0), tn.array(1.0), shape=[x.shape[0], channels, x.ndim - 2], dtype=x.dtype)
        return getattr(tn.nn, self.OPERATOR)(x, samples, **self.attributes)


globals().update(_family(_FractionalMaxPool, "The greatest elements of windows that lie by chance.", {
    f"FractionalMaxPool{n}d": {"OPERATOR": f"fractional_max_pool{n}d"} for n in (2, 3)}))


class _GlobalPool(_Operator):
    NAMES, REQUIRED = ("keepdims",), 0


globals().update(_family(_GlobalPool, "Each channel of each sample as one number.", {
    f"Global{kind.capitalize()}Pool": {"OPERATOR": f"global_{kind}_pool"} for kind in ("avg", "max")}))


class _Pad(Module):
    AXES, MODE = 2, "constant"

    def __init__(self, padding, value=0.0, axis=-1):
        if self.MODE != "constant" and value != 0:
            raise TypeError(f"{type(self).__name__} takes no value")
        self.padding = _given(padding, 2 * self.AXES)
        if len(self.padding) != 2 * self.AXES:
            raise ValueError(f"{type(self).__name__}: {len(self.padding)} numbers, expected one, or {2 * self.AXES}: "
                             "before and after, of the last axis first")
        self.value, self.axis = value, axis

    def forward(self, x):
        if x.ndim != self.AXES + 2:
            raise ValueError(f"{type(self).__name__}: got {x.ndim} axes, expected {self.AXES + 2}")
        sides = [(self.padding[2 * i], self.padding[2 * i + 1]) for i in reversed(range(self.AXES))]
        sides = [(0, 0), (0, 0), *sides] if self.axis == 1 else [(0, 0), *sides, (0, 0)]
        more = {"value": self.value} if self.MODE == "constant" else {}
        return tn.pad(x, before=[b for b, _ in sides], after=[a for _, a in sides], mode=self.MODE, **more)

    def _describe(self):
        return f"{self.padding}" + (f", value={self.value}" if self.MODE == "constant" else "")


_BORDERS = {"ConstantPad": "constant", "ZeroPad": "constant", "ReflectionPad": "reflect", "ReplicationPad": "edge", "CircularPad": "wrap"}
globals().update(_family(_Pad, "A border: a number, or before and after of each axis, of the last one first, as PyTorch's.", {
    f"{name}{n}d": {"AXES": n, "MODE": mode} for name, mode in _BORDERS.items() for n in (1, 2, 3)}))


class Unflatten(Module):
    """One axis as several."""

    def __init__(self, axis, shape):
        self.axis, self.shape = axis, list(shape)

    def forward(self, x):
        axis = self.axis % x.ndim
        return tn.reshape(x, [*x.shape[:axis], *self.shape, *x.shape[axis + 1 :]])

    def _describe(self):
        return f"{self.axis}, {self.shape}"


NAMES = [name for name, value in globals().items()
         if isinstance(value, type) and issubclass(value, Module) and name[0] != "_" and value.__module__ == __name__]
