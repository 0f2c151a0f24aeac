# SPDX-License-Identifier: MIT
"""What operators give, by PyTorch: TORCH[name] takes tensors. What only arranges elements takes them
from where NumPy's rule puts their numbers."""
import numpy as np
import rules
import torch
import torch.nn.functional as F
from rules import RULES

TORCH = {}


def by_name(names, make):
    for name in names.split():
        TORCH[name] = make(name)


def tensor(x):
    x = np.asarray(x)
    if x.dtype == np.longdouble:
        x = x.astype('f8')
    return torch.from_numpy(x.copy(order='C'))


# --- element by element -------------------------------------------------------------------

by_name('exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh '
        'arctanh sqrt rsqrt square reciprocal abs negative floor ceil trunc round isnan isinf isfinite erf '
        'erfinv erfc sigmoid relu lgamma angle real add subtract multiply divide remainder maximum '
        'minimum arctan2 hypot nextafter fmod less less_equal greater greater_equal logical_and logical_or '
        'logical_xor logical_not bitwise_and bitwise_or bitwise_xor',
        lambda name: getattr(torch, name))
TORCH.update({
    'sign': lambda x: torch.where(torch.isnan(x), x, torch.sign(x)), 'silu': F.silu, 'gelu': lambda x, approximate='none': F.gelu(x, approximate=approximate),
    'cbrt': lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
    'copy': torch.clone, 'stop_gradient': torch.detach, 'conjugate': lambda x: torch.conj(x).resolve_conj(),
    'imag': torch.imag, 'power': torch.pow, 'fdim': lambda x, y: torch.clamp(x - y, min=0),
    'floor_divide': lambda x, y: torch.floor_divide(x.detach(), y.detach()),
    'fma': lambda x, y, z: torch.addcmul(z, x, y), 'equal': torch.eq, 'not_equal': torch.ne,
    'invert': torch.bitwise_not, 'where': torch.where,
    'clip': lambda x, lo=-np.inf, hi=np.inf: torch.clamp(x, lo, hi)})
FROM = {'bool': torch.bool, 'i8': torch.int8, 'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64,
        'u8': torch.uint8, 'f16': torch.float16, 'f32': torch.float32, 'f64': torch.float64}


def astype(x, dtype):
    if x.is_floating_point() and dtype[0] in 'iu':
        return tensor(rules.astype(x.detach().numpy(), dtype))
    return x if x.is_floating_point() and dtype[0] == 'f' else x.to(FROM[dtype])


TORCH['astype'] = astype

# --- reductions, running results, orders --------------------------------------------------


def axes_of(x, axis):
    """All axes from the front; an empty list where nothing is reduced."""
    given = range(x.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    return [a % x.ndim for a in given]


def reduction(f):
    def apply(x, axis=None, keepdims=False, **attrs):
        axes = axes_of(x, axis)
        return f(x, dim=axes, keepdim=keepdims, **attrs) if axes else f(x[None], dim=[0], keepdim=False, **attrs)
    return apply


def one_by_one(f):
    def apply(x, dim, keepdim):
        for a in sorted(dim, reverse=True):
            x = f(x, dim=a, keepdim=keepdim)
        return x
    return reduction(apply)


def scattered(f):
    def apply(x, dim, keepdim, ddof=0):
        return f(x, dim=dim, keepdim=keepdim, correction=ddof)
    return reduction(apply)


def argument(f):
    def apply(x, axis=None, keepdims=False):
        out = f(x) if axis is None else f(x, dim=axis, keepdim=keepdims)
        return out.reshape([1] * x.ndim) if axis is None and keepdims else out
    return apply


def running(f):
    def apply(x, axis=None, reverse=False):
        x, axis = (x.flatten(), 0) if axis is None else (x, axis)
        out = f(torch.flip(x, [axis]) if reverse else x, axis)
        out = out if torch.is_tensor(out) else out.values
        return torch.flip(out, [axis]) if reverse else out
    return apply


def ordered(what):
    def apply(x, axis=-1, descending=False):
        return getattr(torch.sort(x, dim=axis, descending=descending, stable=True), what)
    return apply


def topk(x, k, axis=-1, largest=True):
    values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


TORCH.update({
    'sum': reduction(torch.sum), 'mean': reduction(torch.mean), 'max': reduction(torch.amax),
    'min': reduction(torch.amin), 'prod': one_by_one(torch.prod), 'all': one_by_one(torch.all),
    'any': one_by_one(torch.any), 'var': scattered(torch.var), 'std': scattered(torch.std),
    'logsumexp': reduction(torch.logsumexp), 'argmax': argument(torch.argmax), 'argmin': argument(torch.argmin),
    'cumsum': running(torch.cumsum), 'cumprod': running(torch.cumprod), 'cummax': running(torch.cummax),
    'cummin': running(torch.cummin), 'sort': ordered('values'), 'argsort': ordered('indices'), 'topk': topk})

# --- arranging ----------------------------------------------------------------------------


def arranged(name):
    def apply(x, **attrs):
        out = RULES[name].function(np.arange(x.numel()).reshape(x.shape), **attrs)
        if isinstance(out, tuple):
            return tuple(x.flatten()[tensor(o)] for o in out)
        return x.flatten()[tensor(out)]
    return apply


by_name('index slice repeat split', arranged)


def dynamic_slice(x, start, sizes):
    return x[rules.begin_of(x, start.numpy(), sizes)]


def dynamic_slice_update(x, update, start):
    out = x.clone()
    out[rules.begin_of(x, start.numpy(), update.shape)] = update
    return out


def slice_update(x, update, start, stop, step):
    out = x.clone()
    out[rules.slices(start, stop, step)] = update
    return out


def pad(x, before, after, value=0):
    return F.pad(x, [n for pair in list(zip(before, after))[::-1] for n in pair], value=value)


TORCH.update({
    'reshape': lambda x, shape: x.reshape(shape),
    'transpose': lambda x, axes=None: x.permute(axes or list(range(x.ndim))[::-1]),
    'T': lambda x: x.permute(list(range(x.ndim))[::-1]), 'mT': lambda x: x.mT,
    'flip': lambda x, axis=None: torch.flip(x, axes_of(x, axis)),
    'roll': lambda x, shift, axis=None: torch.roll(x, shift, axis) if axis is not None else torch.roll(x, shift[0]),
    'tile': lambda x, reps: torch.tile(x, reps), 'pad': pad,
    'expand_dims': lambda x, axis: x.unsqueeze(axis[0]), 'squeeze': lambda x, axis: x.squeeze(tuple(axis)),
    'broadcast_to': lambda x, shape: x.expand(shape), 'tril': lambda x, k=0: torch.tril(x, k),
    'triu': lambda x, k=0: torch.triu(x, k), 'sum_to': lambda x, shape: x.sum_to_size(shape),
    'concatenate': lambda *x, axis: torch.cat(x, axis), 'stack': lambda *x, axis: torch.stack(x, axis),
    'dynamic_slice': dynamic_slice, 'dynamic_slice_update': dynamic_slice_update, 'slice_update': slice_update})


def made(name):
    return lambda *arrays, **attrs: tensor(RULES[name].function(*[a.numpy() for a in arrays], **attrs))


by_name('arange full eye linspace fftfreq rfftfreq one_hot blas.iamax tgamma left_shift right_shift', made)

# --- indexing -----------------------------------------------------------------------------


def take_along_axis(x, indices, axis=-1):
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    return torch.gather(x, axis, tensor(rules.clamped(indices.numpy(), x.shape[axis])).expand(shape))


def gather(x, *indices, axes=None):
    axes = list(range(len(indices))) if axes is None else axes
    order = axes + [a for a in range(x.ndim) if a not in axes]
    return x.permute(order)[tuple(tensor(rules.clamped(i.numpy(), x.shape[a])) for i, a in zip(indices, axes))]


def put(out, at, updates, mode):
    """Writes updates at places of the first axis, one behind the other."""
    kept, at = rules.inside(at.numpy(), out.shape[0])
    for k in zip(*np.nonzero(np.atleast_1d(kept))):
        where = int(np.atleast_1d(at)[k])
        u = updates[k] if kept.ndim else updates
        old = out[where]
        new = {'set': lambda: u, 'add': lambda: old + u, 'max': lambda: torch.maximum(old, u),
               'min': lambda: torch.minimum(old, u)}[mode]()
        out = torch.cat([out[:where], new[None], out[where + 1:]])
    return out


def scatter_along(name):
    def apply(x, indices, updates, axis=0):
        n = indices.ndim
        updates = torch.movedim(updates, list(range(axis, axis + n)), list(range(n)))
        return torch.movedim(put(torch.movedim(x, axis, 0), indices, updates, name.split('_')[1]), 0, axis)
    return apply


def put_along_axis(x, indices, values, axis=-1, mode='set'):
    """Column by column along the axis."""
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    x = torch.movedim(x, axis, 0)
    at, values = (torch.movedim(a.expand(shape), axis, 0).reshape(shape[axis], -1) for a in (indices, values))
    columns = [put(c, i, v, mode) for c, i, v in zip(x.reshape(x.shape[0], -1).T, at.T, values.T)]
    out = torch.stack(columns, 1).reshape(x.shape) if columns else x.clone()
    return torch.movedim(out, 0, axis)


TORCH.update({
    'put_along_axis': put_along_axis, 'take': lambda x, i, axis=0: torch.movedim(
        torch.movedim(x, axis, 0)[tensor(rules.clamped(i.numpy(), x.shape[axis]))], list(range(i.ndim)),
        list(range(axis % x.ndim, axis % x.ndim + i.ndim))),
    'take_along_axis': take_along_axis, 'gather': gather,
    'scatter': lambda x, updates, i, mode='set': put(x, i, updates, mode)})
by_name('scatter_add scatter_max scatter_min scatter_set', scatter_along)

# --- products -----------------------------------------------------------------------------

TORCH.update({
    'matmul': torch.matmul, 'einsum': lambda *x, equation: torch.einsum(equation, *x), 'blas.dot': torch.dot,
    'blas.nrm2': torch.linalg.norm, 'blas.asum': lambda x: x.abs().sum(),
    'blas.gemv': lambda a, x, y, alpha=1, beta=1: torch.addmv(y, a, x, alpha=alpha, beta=beta),
    'blas.gemm': lambda a, b, c, alpha=1, beta=1: torch.addmm(c, a, b, alpha=alpha, beta=beta),
    'blas.ger': lambda x, y, a, alpha=1: torch.addr(a, x, y, alpha=alpha),
    'blas.axpby': lambda x, y, alpha=1, beta=1: alpha * x + beta * y,
    'potrf': lambda a: torch.linalg.cholesky(a) + torch.triu(a, 1), 'linalg.eigvalsh': torch.linalg.eigvalsh,
    'linalg.solve': torch.linalg.solve, 'linalg.inv': torch.linalg.inv, 'linalg.det': torch.linalg.det,
    'linalg.cholesky': torch.linalg.cholesky})

# --- layers -------------------------------------------------------------------------------


def group_norm(x, weight, bias, groups, eps=1e-5, axis=-1):
    x = torch.movedim(x, axis, -1)
    y = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)  # F.group_norm loses digits of equal elements
    y = (y - y.mean((1, 3), True)) / torch.sqrt(y.var((1, 3), correction=0, keepdim=True) + eps)
    return torch.movedim(y.reshape(x.shape) * weight + bias, -1, axis)


def attention(q, k, v, mask=None, lengths=None, sinks=None, scale=None, is_causal=False, soft_cap=0, window=0):
    if lengths is not None:
        raise NotImplementedError
    if q.ndim > 2:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    s = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    s = soft_cap * torch.tanh(s / soft_cap) if soft_cap else s
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    seen = (j <= i if is_causal else j >= 0) & (i - j < window if window else j >= 0)
    seen = seen & mask if mask is not None and mask.dtype == torch.bool else seen
    s = s if mask is None or mask.dtype == torch.bool else s + mask
    s = s.masked_fill(~seen, -1e30)  # rows of which nothing is seen become 0
    if sinks is not None:
        s = torch.cat([s, sinks[:, None, None].expand(*s.shape[:-1], 1)], -1)
    p = torch.softmax(s, -1)[..., :k.shape[-2]]
    return p.masked_fill(~seen, 0) @ v


def rope(x, frequencies, interleaved=False, axis=-2):
    x = torch.movedim(x, axis, -2)
    angle = torch.arange(x.shape[-2]).to(x.dtype)[:, None] * frequencies
    n = frequencies.shape[0]
    pair = x[..., :2 * n].unflatten(-1, (n, 2) if interleaved else (2, n))
    a, b = pair.unbind(-1 if interleaved else -2)
    turned = torch.stack([a * torch.cos(angle) - b * torch.sin(angle), a * torch.sin(angle) + b * torch.cos(angle)],
                         -1 if interleaved else -2)
    return torch.movedim(torch.cat([turned.flatten(-2), x[..., 2 * n:]], -1), -2, axis)


def along(f):
    """A norm of the last axis, for rows along any."""
    def call(x, *others, eps=1e-5, axis=-1):
        y = torch.movedim(x, axis, -1)
        return torch.movedim(f(y, y.shape[-1:], *(o.flatten() for o in others), eps=eps), -1, axis)
    return call


def sgd(p, g, m, lr, momentum, weight_decay):
    m = momentum * m + g + weight_decay * p
    return p - lr * m, m


def adam(p, g, m, v, step, lr):
    m, v, step = torch.lerp(g, m, 0.9), torch.lerp(g * g, v, 0.999), step.detach()
    return p - lr * m / (1 - 0.9 ** step) / (torch.sqrt(v / (1 - 0.999 ** step)) + 1e-8), m, v


TORCH.update({
    'softmax': lambda x, axis=-1: torch.softmax(x, axis), 'log_softmax': lambda x, axis=-1: torch.log_softmax(x, axis),
    'layer_norm': along(F.layer_norm), 'rms_norm': along(F.rms_norm), 'group_norm': group_norm,
    'attention_with_sinks': lambda q, k, v, sinks, mask=None, **attrs: attention(q, k, v, mask, None, sinks, **attrs),
    'scaled_dot_product_attention': attention, 'rope': rope, 'sgd': sgd, 'adam': adam,
    'dropout': lambda x, p=0.5, training=True: F.dropout(x, p, training)})


def transform(name):
    def apply(x, n=None, axis=None, norm=None):
        given = {} if axis is None else {'n': n, 'dim': axis}
        return getattr(torch.fft, name)(x, norm=norm, **given)
    return apply


by_name('fft ifft rfft irfft fft2 ifft2 fftn ifftn rfft2 rfftn irfft2 irfftn', transform)
by_name('fftshift ifftshift', lambda name: lambda x, axes=None: getattr(torch.fft, name)(x, axes))

# --- graphs as attributes -----------------------------------------------------------------

WORDS = {'sin': torch.sin, 'tanh': torch.tanh, 'maximum': torch.maximum}


def body_of(text):
    names, value = text.split('->')
    return eval(f'lambda {names}: ({value})', dict(WORDS))  # noqa: S307: a text of layers.py


def while_loop(x, body, times):
    for _ in range(times):
        x = body_of(body)(x)
    return x


def scan(carry, x, body, reverse=False, **_):
    out, before = [None] * len(x), [None] * len(x)
    for i in range(len(x))[::-1 if reverse else 1]:
        before[i] = carry
        carry, out[i] = body_of(body)(carry, x[i])
    return carry, torch.stack(out), torch.stack(before)


TORCH.update({
    'cond': lambda pred, x, then, otherwise: body_of(then if pred else otherwise)(x), 'while_loop': while_loop,
    'checkpoint': lambda x, body: body_of(body)(x), 'scan': scan})
