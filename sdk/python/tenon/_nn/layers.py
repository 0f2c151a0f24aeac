# SPDX-License-Identifier: MIT
"""Layers of networks. Channels are the last axis, as MLX's; `axis=1` makes them PyTorch's order."""

import math

import tenon as tn

from . import init
from .activations import gelu_approx, gelu_fast_approx, step
from .module import Module


def _given(value, count):
    return [value] * count if isinstance(value, int) else list(value)


def _padding(padding, window, dilation):
    """Zeros for attribute `padding`: "same" keeps extents at stride 1."""
    if padding == "valid":
        return [0] * len(window)
    if padding != "same":
        return padding
    total = [d * (k - 1) for k, d in zip(window, dilation)]
    return [side for t in total for side in (t // 2, t - t // 2)]


class Identity(Module):
    """x."""

    def __init__(self, *unused, **names):
        pass

    def forward(self, x):
        return x


class Linear(Module):
    """x @ weight.T + bias; weight: (out, in)."""

    def __init__(self, input_dims, output_dims, bias=True):
        self.weight = init.uniform_of(input_dims, [output_dims, input_dims])
        if bias:
            self.bias = init.uniform_of(input_dims, [output_dims])

    def forward(self, x):
        return tn.nn.linear(x, self.weight, vars(self).get("bias"))

    def _describe(self):
        out, inputs = self.weight.shape
        return f"{inputs}, {out}, bias={'bias' in vars(self)}"


class Bilinear(Module):
    """x1 @ weight[o] @ x2 + bias for each output o."""

    def __init__(self, input1_dims, input2_dims, output_dims, bias=True):
        self.weight = init.uniform_of(input1_dims, [output_dims, input1_dims, input2_dims])
        if bias:
            self.bias = init.uniform_of(input1_dims, [output_dims])

    def forward(self, x1, x2):
        return tn.nn.bilinear(x1, x2, self.weight, vars(self).get("bias"))


class Embedding(Module):
    """Rows of weight: (num_embeddings, dims)."""

    def __init__(self, num_embeddings, dims):
        self.weight = init.normal(0.0, 1.0 / math.sqrt(dims))([num_embeddings, dims])

    def forward(self, x):
        return tn.take(self.weight, x, 0)

    def as_linear(self, x):
        """x @ weight.T: scores of all rows."""
        return tn.nn.linear(x, self.weight)

    def _describe(self):
        return "{}, {}".format(*self.weight.shape)


class EmbeddingBag(Module):
    """The sum, mean or maximum of the rows of weight that a bag names: x is N, L, a bag a row, or L with offsets."""

    def __init__(self, num_embeddings, dims, mode="mean", padding_idx=None):
        self.weight = init.normal(0.0, 1.0 / math.sqrt(dims))([num_embeddings, dims])
        self.mode, self.padding_idx = mode, padding_idx

    def forward(self, x, offsets=None, per_sample_weights=None):
        more = {} if self.padding_idx is None else {"padding_idx": self.padding_idx}
        return tn.nn.embedding_bag(x, self.weight, offsets, per_sample_weights, mode=self.mode, **more)

    def _describe(self):
        return "{}, {}, mode={!r}".format(*self.weight.shape, self.mode)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors."""

    def __init__(self, axis=-1, eps=1e-8):
        self.axis, self.eps = axis, eps

    def forward(self, x1, x2):
        return tn.nn.cosine_similarity(x1, x2, axis=self.axis, eps=self.eps)


class PairwiseDistance(Module):
    """The norm of the difference of vectors."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return tn.nn.pairwise_distance(x1, x2, p=self.p, eps=self.eps, keepdim=self.keepdim)


# --- convolutions --------------------------------------------------------------------------------


class _Conv(Module):
    AXES, TRANSPOSED = 2, False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 output_padding=0, axis=-1):
        self.window, self.dilation = _given(kernel_size, self.AXES), _given(dilation, self.AXES)
        self.stride, self.groups, self.axis = _given(stride, self.AXES), groups, axis
        self.output_padding = _given(output_padding, self.AXES)
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{type(self).__name__}: {in_channels} channels to {out_channels} in {groups} groups, "
                             "expected numbers of channels that these divide")
        self.padding = _padding(padding if isinstance(padding, str) else _given(padding, self.AXES), self.window, self.dilation)
        first, last = (in_channels, out_channels // groups) if self.TRANSPOSED else (out_channels, in_channels // groups)
        # weight: (out, window..., in / groups); of the transposes (in, window..., out / groups)
        shape = [first, last, *self.window] if axis == 1 else [first, *self.window, last]
        terms = math.prod(self.window) * (out_channels if self.TRANSPOSED else in_channels) // groups
        self.weight = init.uniform_of(terms, shape)
        if bias:
            self.bias = init.uniform_of(terms, [out_channels])

    def forward(self, x):
        name = f"conv{'_transpose' if self.TRANSPOSED else ''}{self.AXES}d"
        more = {"output_padding": self.output_padding} if self.TRANSPOSED else {}
        return getattr(tn.nn, name)(x, self.weight, vars(self).get("bias"), stride=self.stride, padding=self.padding,
                                    dilation=self.dilation, groups=self.groups, axis=self.axis, **more)

    def _describe(self):
        return (f"weight={list(self.weight.shape)}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"groups={self.groups}, bias={'bias' in vars(self)}")


def _family(base, doc, names):
    """Classes of one kind, a number of axes each."""
    made = {}
    for name, fields in names.items():
        made[name] = type(name, (base,), {"__doc__": doc, "__module__": base.__module__, **fields})
    return made


_CONV_DOC = """A convolution over N, ..., C. kernel_size, stride, padding, dilation: one number, or one an axis; padding: also "same", "valid"."""
globals().update(_family(_Conv, _CONV_DOC, {
    f"Conv{'Transpose' if t else ''}{n}d": {"AXES": n, "TRANSPOSED": t} for n in (1, 2, 3) for t in (False, True)}))


# --- normalisation -------------------------------------------------------------------------------


class LayerNorm(Module):
    """The last axis less its mean, over its deviation, times weight plus bias."""

    def __init__(self, dims, eps=1e-5, affine=True, bias=True):
        self.dims, self.eps = dims, eps
        if affine:
            self.weight = tn.ones([dims])
        if affine and bias:
            self.bias = tn.zeros([dims])

    def forward(self, x):
        own = vars(self)
        weight = own.get("weight")
        weight = tn.ones([self.dims], dtype=x.dtype) if weight is None else weight
        return tn.nn.layer_norm(x, weight, own["bias"] if "bias" in own else tn.zeros([self.dims], dtype=weight.dtype),
                                eps=self.eps)

    def _describe(self):
        return f"{self.dims}, eps={self.eps}"


class RMSNorm(Module):
    """The last axis over its root mean square, times weight."""

    def __init__(self, dims, eps=1e-5):
        self.weight, self.eps = tn.ones([dims]), eps

    def forward(self, x):
        return tn.nn.rms_norm(x, self.weight, eps=self.eps)

    def _describe(self):
        return f"{self.weight.shape[0]}, eps={self.eps}"


class GroupNorm(Module):
    """Groups of neighbouring channels, as PyTorch's (MLX: pytorch_compatible=True), less their mean, over their deviation, times
    weight plus bias."""

    def __init__(self, num_groups, dims, eps=1e-5, affine=True, axis=-1):
        if num_groups < 1 or dims % num_groups:
            raise ValueError(f"GroupNorm: {dims} channels in {num_groups} groups, expected a number that these divide")
        self.num_groups, self.eps, self.axis = num_groups, eps, axis
        if affine:
            self.weight, self.bias = tn.ones([dims]), tn.zeros([dims])

    def forward(self, x):
        own = vars(self)
        return tn.nn.group_norm(x, own.get("weight"), own.get("bias"), groups=self.num_groups, eps=self.eps, axis=self.axis)


class InstanceNorm(Module):
    """Each channel of each sample less its mean, over its deviation."""

    def __init__(self, dims, eps=1e-5, affine=False, axis=-1):
        self.dims, self.eps, self.axis = dims, eps, axis
        if affine:
            self.weight, self.bias = tn.ones([dims]), tn.zeros([dims])

    def forward(self, x):
        own = vars(self)
        return tn.nn.instance_norm(x, own.get("weight"), own.get("bias"), eps=self.eps, axis=self.axis)


class BatchNorm(Module):
    """Each channel less the batch's mean, over its deviation; after eval() by running statistics, which are buffers."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, axis=-1):
        self.eps, self.momentum, self.axis = eps, momentum, axis
        if affine:
            self.weight, self.bias = tn.ones([num_features]), tn.zeros([num_features])
        if track_running_stats:
            self.buffer("running_mean", tn.zeros([num_features]))
            self.buffer("running_var", tn.ones([num_features]))

    def forward(self, x):
        own = vars(self)
        running = [own.get("running_mean"), own.get("running_var")]
        uses_batch = self.training or running[0] is None
        y, mean, var = tn.nn.batch_norm(x, *running, own.get("weight"), own.get("bias"), training=uses_batch,
                                        momentum=self.momentum, eps=self.eps, axis=self.axis)
        if uses_batch and running[0] is not None:
            self.running_mean, self.running_var = tn.stop_gradient(mean), tn.stop_gradient(var)
        return y


# --- random --------------------------------------------------------------------------------------


def take_key(module):
    """A key of random numbers for a call; the module's buffer is the next one."""
    keys = tn.random.split(module.key)
    module.key = keys[0]
    return keys[1]


class Dropout(Module):
    """In training, zeros in place of elements with probability p, the others over 1 - p. Its key of random numbers is a
    buffer: each call draws others, in a function that is replayed too."""

    def __init__(self, p=0.5):
        if not 0 <= p < 1:
            raise ValueError(f"{type(self).__name__}: p is {p}, expected 0 <= p < 1")
        self.p = p
        self.buffer("key", init.next_key())

    def _shape(self, x):
        return x.shape

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return tn.where(self._draw(x), x * (1 / (1 - self.p)), tn.zeros([], dtype=x.dtype))

    def _draw(self, x):
        """Which elements are kept."""
        return tn.random.bernoulli(take_key(self), p=1 - self.p, shape=list(self._shape(x)))

    def _describe(self):
        return f"p={self.p}"


class _ChannelDropout(Dropout):
    """In training, zeros in place of whole channels, the last axis, of each sample."""

    def _shape(self, x):
        if x.ndim < 2:
            raise ValueError(f"{type(self).__name__}: got {x.ndim} axes, expected N, ..., C")
        return (x.shape[0], *[1] * (x.ndim - 2), x.shape[-1])


globals().update(_family(_ChannelDropout, _ChannelDropout.__doc__, {f"Dropout{n}d": {} for n in (1, 2, 3)}))


class AlphaDropout(Dropout):
    """In training, SELU's least value in place of elements with probability p, then mean and deviation as before."""

    LEAST = -1.7580993408473766  # -scale * alpha of SELU

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        kept = self._draw(x)
        scale = ((1 - self.p) * (1 + self.p * self.LEAST**2)) ** -0.5
        y = tn.where(kept, x, tn.full([], self.LEAST, dtype=x.dtype))
        return scale * y - scale * self.LEAST * self.p


class FeatureAlphaDropout(AlphaDropout):
    """AlphaDropout of whole channels, the last axis, of each sample."""

    _shape = _ChannelDropout._shape


class RReLU(Dropout):
    """x, where it is negative times a slope: in training one by chance for each element, else the mean of the bounds."""

    def __init__(self, lower=1 / 8, upper=1 / 3):
        super().__init__(0.0)
        self.lower, self.upper = lower, upper

    def forward(self, x):
        if not self.training:
            return tn.where(x >= 0, x, x * ((self.lower + self.upper) / 2))
        slopes = tn.random.uniform(take_key(self), tn.array(self.lower), tn.array(self.upper), shape=list(x.shape), dtype=x.dtype)
        return tn.where(x >= 0, x, x * slopes)

    def _describe(self):
        return f"{self.lower:.4g}, {self.upper:.4g}"


# --- pooling -------------------------------------------------------------------------------------


class _Pool(Module):
    """return_indices: of maxima, where they were, too, for MaxUnpool."""

    OPERATOR = "max_pool2d"

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, axis=-1, return_indices=False, **more):
        self.attributes = {"window": kernel_size, "stride": kernel_size if stride is None else stride, "padding": padding,
                           "ceil_mode": ceil_mode, "axis": axis, **more}
        self._add_indices(return_indices)

    def _add_indices(self, wanted):
        if wanted and "max" not in self.OPERATOR:
            raise TypeError(f"{type(self).__name__}: means have no indices")
        self.return_indices = wanted

    def _pool(self, x, **attributes):
        return getattr(tn.nn, self.OPERATOR + ("_with_indices" if self.return_indices else ""))(x, **attributes)

    def forward(self, x):
        axes = int(self.OPERATOR[-2])
        return self._pool(x, **{key: _given(value, axes) if key in ("window", "stride", "padding", "dilation") else value
                                for key, value in self.attributes.items()})

    def _describe(self):
        return ", ".join(f"{key}={value}" for key, value in self.attributes.items())


class _AdaptivePool(_Pool):
    def __init__(self, output_size, axis=-1, return_indices=False):
        self.attributes = {"output_size": output_size, "axis": axis}
        self._add_indices(return_indices)

    def forward(self, x):
        size = _given(self.attributes["output_size"], int(self.OPERATOR[-2]))
        return self._pool(x, output_size=size, axis=self.attributes["axis"])


globals().update(_family(_Pool, "Windows of N, ..., C: their greatest elements, or means.", {
    f"{kind.capitalize()}Pool{n}d": {"OPERATOR": f"{kind}_pool{n}d"} for kind in ("max", "avg") for n in (1, 2, 3)}))
globals().update(_family(_AdaptivePool, "Windows that give so many outputs.", {
    f"Adaptive{kind.capitalize()}Pool{n}d": {"OPERATOR": f"adaptive_{kind}_pool{n}d"} for kind in ("max", "avg") for n in (1, 2, 3)}))


class Upsample(Module):
    """Other extents: a size, or so many times x's: "nearest", "linear", "cubic"."""

    def __init__(self, scale_factor=None, mode="nearest", align_corners=False, size=None, axis=-1):
        if (scale_factor is None) == (size is None):
            raise ValueError("Upsample: expected one of scale_factor and size")
        self.attributes = {"mode": mode, "align_corners": align_corners, "axis": axis}
        self.scale, self.size = scale_factor, size

    def forward(self, x):
        axes = x.ndim - 2
        more = {"size": _given(self.size, axes)} if self.size is not None else {
            "scale_factor": [self.scale] * axes if isinstance(self.scale, (int, float)) else list(self.scale)}
        return tn.nn.interpolate(x, **more, **self.attributes)


# --- activations ---------------------------------------------------------------------------------


class _Activation(Module):
    OPERATOR, NAMES = "relu", ()

    def __init__(self, *args, **names):
        if len(args) > len(self.NAMES) or not set(names) <= set(self.NAMES):
            raise TypeError(f"{type(self).__name__}: expected at most {list(self.NAMES)}")
        self.attributes = {**dict(zip(self.NAMES, args)), **names}

    def forward(self, x):
        return getattr(tn, self.OPERATOR)(x, **self.attributes)

    def _describe(self):
        return ", ".join(f"{key}={value}" for key, value in self.attributes.items())


_ACTIVATIONS = {
    "ReLU": ("relu",), "ReLU2": ("relu2",), "ReLU6": ("relu6",), "LeakyReLU": ("leaky_relu", "negative_slope"), "ELU": ("elu", "alpha"), "CELU": ("celu", "alpha"),
    "SELU": ("selu",), "SiLU": ("silu",), "GLU": ("glu", "axis"), "Mish": ("mish",), "Tanh": ("tanh",), "Sigmoid": ("sigmoid",),
    "LogSigmoid": ("logsigmoid",), "Softplus": ("softplus", "beta", "threshold"), "Softsign": ("softsign",), "Softmax": ("softmax", "axis"),
    "LogSoftmax": ("log_softmax", "axis"), "Softmin": ("softmin", "axis"), "Hardswish": ("hardswish",), "HardTanh": ("hardtanh", "min_val", "max_val"),
    "Hardsigmoid": ("hardsigmoid",), "Squareplus": ("squareplus", "b"), "Threshold": ("threshold", "threshold", "value"), "HardShrink": ("hardshrink", "lambd"), "Softshrink": ("softshrink", "lambd"), "Tanhshrink": ("tanhshrink",),
}  # fmt: skip
for _name, (_operator, *_names) in _ACTIVATIONS.items():
    globals().update(_family(_Activation, f"{_operator} of its argument.", {_name: {"OPERATOR": _operator, "NAMES": tuple(_names)}}))


class GELU(Module):
    """x times the normal distribution's function of x: "none" exactly, "tanh" or "precise" by tanh, "fast" by the logistic one."""

    def __init__(self, approximate="none"):
        if approximate not in ("none", "tanh", "precise", "fast"):
            raise ValueError(f"GELU: approximate is {approximate!r}, expected 'none', 'tanh', 'precise' or 'fast'")
        self.approximate = approximate

    def forward(self, x):
        if self.approximate == "fast":
            return gelu_fast_approx(x)
        return gelu_approx(x) if self.approximate != "none" else tn.nn.gelu(x)

    def _describe(self):
        return f"approximate={self.approximate!r}"


class PReLU(Module):
    """x, where it is negative times a slope that is learnt."""

    def __init__(self, num_parameters=1, init=0.25):
        self.weight = tn.full([num_parameters], init, dtype=tn.float32)

    def forward(self, x):
        return tn.nn.prelu(x, self.weight)


class Step(Module):
    """1 from a threshold on, 0 below; its derivative is 0."""

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    def forward(self, x):
        return step(x, self.threshold)


class Softmax2d(Module):
    """Softmax of the channels of N, ..., C."""

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        return tn.softmax(x, axis=self.axis)


class Flatten(Module):
    """Axes from `start` on as one."""

    def __init__(self, start=1):
        self.start = start

    def forward(self, x):
        return tn.reshape(x, [*x.shape[: self.start], -1])


NAMES = [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Module) and name[0] != "_" and value is not Module]
