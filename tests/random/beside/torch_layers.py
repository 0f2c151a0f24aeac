# SPDX-License-Identifier: MIT
"""Packs nn and optim by PyTorch: further rows of TORCH. Images have channels last, or first with axis 1."""
import numpy as np
import torch
import torch.nn.functional as F
from torch.optim import adadelta, adagrad, adam, adamax, rmsprop, sgd
from torch_rules import TORCH, tensor

# --- images -------------------------------------------------------------------------------


def channels(f):
    """f takes channels first."""
    def call(x, *others, axis=-1, **attrs):
        if axis == 1:
            return f(x, *others, **attrs)
        out = f(torch.movedim(x, -1, 1), *(torch.movedim(w, -1, 1) if w.ndim > 1 else w for w in others), **attrs)
        return torch.movedim(out, 1, -1)
    return call


def numbers(n, value, absent):
    value = absent if value is None else value
    value = value if isinstance(value, list) else [value]
    return value * n if len(value) == 1 else value


def around(n, padding):
    p = numbers(n, padding, 0)
    return [tuple(p[2 * i:2 * i + 2]) for i in range(n)] if len(p) == 2 * n > n else [(a, a) for a in p]


def padded(x, sides, value=0):
    return F.pad(x, [k for pair in sides[::-1] for k in pair], value=value)


def even(sides):
    """One number a side, which PyTorch's pools take."""
    if any(a != b for a, b in sides):
        raise NotImplementedError
    return [a for a, _ in sides]


def spaced(x, steps):
    out = torch.zeros(*x.shape[:2], *((s - 1) * d + 1 for s, d in zip(x.shape[2:], steps)), dtype=x.dtype)
    return out.index_put(tuple(tensor(i) for i in np.ix_(*(np.arange(s) for s in x.shape[:2]), *(
        np.arange(s) * d for s, d in zip(x.shape[2:], steps)))), x)


@channels
def convolution(x, w, bias=None, stride=None, padding=None, dilation=None, input_dilation=None, groups=1, flip=False):
    n = x.ndim - 2
    w = torch.flip(w, list(range(2, n + 2))) if flip else w
    x = spaced(x, numbers(n, input_dilation, 1)) if input_dilation else x
    f = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    return f(padded(x, around(n, padding)), w, bias, numbers(n, stride, 1), 0, numbers(n, dilation, 1), groups)


@channels
def transposed(x, w, bias=None, stride=None, padding=None, dilation=None, output_padding=None, groups=1, flip=False):
    n = x.ndim - 2
    w = torch.flip(w, list(range(2, n + 2))) if flip else w
    f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    out = f(x, w, None, numbers(n, stride, 1), 0, 0, groups, numbers(n, dilation, 1))
    more = numbers(n, output_padding, 0)
    out = padded(out, [(-a, m - b) for (a, b), m in zip(around(n, padding), more)])
    return out if bias is None else out + bias.reshape(-1, *[1] * n)


def pool(name):
    @channels
    def call(x, window, stride=None, padding=None, **attrs):
        n = x.ndim - 2
        if 'divisor_override' in attrs and n == 1:
            raise NotImplementedError
        return getattr(F, name)(x, numbers(n, window, 1), numbers(n, stride, 1) if stride else None,
                                even(around(n, padding)), **attrs)
    return call


def adaptive(name):
    return channels(lambda x, output_size: getattr(F, name)(x, numbers(x.ndim - 2, output_size, 1)))


for n in '123':
    TORCH[f'conv{n}d'], TORCH[f'conv_transpose{n}d'] = convolution, transposed
    TORCH[f'max_pool{n}d'], TORCH[f'avg_pool{n}d'] = pool(f'max_pool{n}d'), pool(f'avg_pool{n}d')
    for name in (f'adaptive_max_pool{n}d', f'adaptive_avg_pool{n}d'):
        TORCH[name] = adaptive(name)
    TORCH[f'lp_pool{n}d'] = channels(lambda x, norm_type, window, stride=None, f=getattr(F, f'lp_pool{n}d'): f(
        x, norm_type, window if len(window) > 1 else window[0], stride))


def all_but(x, axis):
    return [a for a in range(1, x.ndim) if a != axis % x.ndim]


MODES = {'nearest_exact': ['nearest-exact'] * 3, 'linear': ['linear', 'bilinear', 'trilinear'], 'cubic': [None, 'bicubic', None]}


@channels
def interpolate(x, size=None, scale_factor=None, mode='nearest', align_corners=None):
    mode = MODES[mode][x.ndim - 3] if mode in MODES else mode
    return F.interpolate(x, size, scale_factor, mode, align_corners)


def sampled(x, grid, axis=-1, mode='linear', padding_mode='zeros', align_corners=False):
    x = x if axis == 1 else torch.movedim(x, -1, 1)
    out = F.grid_sample(x, grid, 'bilinear', padding_mode, align_corners)
    return out if axis == 1 else torch.movedim(out, 1, -1)


TORCH.update({
    'global_avg_pool': lambda x, axis=-1, keepdims=True: x.mean(all_but(x, axis), keepdims),
    'global_max_pool': lambda x, axis=-1, keepdims=True: x.amax(all_but(x, axis), keepdims),
    'interpolate': interpolate, 'grid_sample': sampled,
    'affine_grid': lambda theta, size, align_corners=False: F.affine_grid(theta, size, align_corners),
    'pixel_shuffle': channels(F.pixel_shuffle), 'pixel_unshuffle': channels(F.pixel_unshuffle),
    'channel_shuffle': channels(lambda x, groups: F.channel_shuffle(x, groups)),
    'local_response_norm': channels(F.local_response_norm)})

# --- activations --------------------------------------------------------------------------

for name in ('relu6 selu mish logsigmoid softsign tanhshrink elu celu leaky_relu hardshrink '
             'softshrink hardtanh threshold softplus').split():
    TORCH[name] = getattr(F, name)
TORCH.update({
    # PyTorch's own have 1/6 in f32.
    'hardsigmoid': lambda x: torch.clamp(x / 6 + 0.5, 0, 1), 'hardswish': lambda x: x * torch.clamp(x + 3, 0, 6) / 6,
    'relu2': lambda x: F.relu(x) ** 2, 'squareplus': lambda x, b=4.0: (x + torch.sqrt(x * x + b)) / 2,
    'softmin': lambda x, axis=-1: F.softmin(x, axis), 'glu': lambda x, axis=-1: F.glu(x, axis),
    'prelu': lambda x, w, axis=-1: torch.where(x > 0, x, torch.movedim(torch.movedim(x, axis, -1) * w, -1, axis))})

# --- losses -------------------------------------------------------------------------------

for name in ('mse_loss l1_loss huber_loss smooth_l1_loss hinge_embedding_loss soft_margin_loss kl_div gaussian_nll_loss '
             'poisson_nll_loss margin_ranking_loss triplet_margin_loss cosine_embedding_loss multi_margin_loss '
             'multilabel_margin_loss pairwise_distance pdist').split():
    TORCH[name] = getattr(F, name)


def weighed(f):
    def call(x, y, *weights, **attrs):
        return f(x, y, **dict(zip(('weight', 'pos_weight'), weights)), **attrs)
    return call


def first_classes(f):
    """Classes at axis 1, which PyTorch wants; labels that are no class are ignored by moving them to one."""
    def call(x, labels, weight=None, axis=-1, ignore_index=-100, reduction=None, **attrs):
        x = torch.movedim(x, axis, -1)
        if labels.is_floating_point():
            labels = torch.movedim(labels, axis, -1).reshape(-1, x.shape[-1])
            shape = x.shape[:-1]
        else:
            shape = labels.shape
            known = (labels >= 0) & (labels < x.shape[-1]) & (labels != ignore_index)
            labels = torch.where(known, labels, -100).flatten().long()
        own = f(x.reshape(-1, x.shape[-1]), labels, weight, reduction=reduction, **attrs)
        return own.reshape(shape) if reduction == 'none' else own
    return call


def reduced(x, reduction='mean'):
    return x if reduction == 'none' else x.mean() if reduction == 'mean' else x.sum()


TORCH.update({
    'nll_loss': lambda *x, reduction='mean', **attrs: first_classes(F.nll_loss)(*x, reduction=reduction, **attrs),
    'cross_entropy': lambda *x, reduction='none', **attrs: first_classes(F.cross_entropy)(*x, reduction=reduction, **attrs),
    'binary_cross_entropy': weighed(F.binary_cross_entropy),
    'binary_cross_entropy_with_logits': weighed(F.binary_cross_entropy_with_logits),
    'multilabel_soft_margin_loss': weighed(F.multilabel_soft_margin_loss),
    'log_cosh_loss': lambda x, y, reduction='mean': reduced(torch.logaddexp(x - y, y - x) - np.log(2), reduction),
    'hinge_loss': lambda x, y, reduction='mean': reduced(F.relu(1 - x * y), reduction),
    'normalize': lambda x, p=2.0, axis=-1, eps=1e-12: F.normalize(x, p, axis, eps),
    'cosine_similarity': lambda x, y, axis=-1, eps=1e-8: F.cosine_similarity(x, y, axis, eps),
    'ctc_loss': lambda x, y, m, n, reduction='mean': F.ctc_loss(x, y, m, n, reduction=reduction)})

# --- layers -------------------------------------------------------------------------------


def batch_norm(x, mean, var, weight, bias, axis=-1, eps=1e-5, training=False, momentum=0.1):
    y = torch.movedim(x, axis, 1)
    after = mean, var
    if training:  # F.batch_norm changes them in place, without a derivative
        others = [a for a in range(y.ndim) if a != 1]
        after = (mean + momentum * (y.mean(others) - mean), var + momentum * (y.var(others) - var))
    out = F.batch_norm(y, None if training else mean, None if training else var, weight, bias, training, momentum, eps)
    return torch.movedim(out, 1, axis), *after


def instance_norm(x, weight, bias, axis=-1, eps=1e-5):
    return torch.movedim(F.instance_norm(torch.movedim(x, axis, 1), None, None, weight, bias, True, 0.1, eps), 1, axis)


def recurrent(f):
    def call(x, w, u, b, c, *state, reverse=False, batch_first=False, nonlinearity='tanh'):
        x = x.transpose(0, 1) if batch_first else x
        x = torch.flip(x, [0]) if reverse else x
        state = tuple(s[None] for s in state)
        many = f if callable(f) else getattr(torch, f'rnn_{nonlinearity}')
        out, *last = many(x, state if len(state) > 1 else state[0], [w, u, b, c], True, 1, 0.0, False, False, False)
        out = torch.flip(out, [0]) if reverse else out
        return (out.transpose(0, 1) if batch_first else out), *(s[0] for s in last)
    return call


def causal(x, w, bias, state, groups, dilation):
    whole = torch.cat([state, x], 1)
    return convolution(whole, w, bias, dilation=[dilation], groups=groups), whole[:, x.shape[1]:]


TORCH.update({
    'linear': F.linear, 'bilinear': F.bilinear, 'batch_norm': batch_norm, 'instance_norm': instance_norm,
    'lstm': recurrent(torch.lstm), 'gru': recurrent(torch.gru), 'rnn': recurrent(None), 'causal_conv1d': causal,
    'embedding_bag': lambda x, w, mode='mean': F.embedding_bag(x.long(), w, mode=mode)})

# --- optimisers, in functions that are differentiated ---------------------------------------


def step_of(f, states, counts, fixed, names=()):
    """`states`: where the operands behind the gradient go; `names`: attributes whose absence has a default."""
    def call(*arrays, **attrs):
        p, g = arrays[0].clone(), arrays[1]
        given = {s: [a.clone()] for s, a in zip(states, arrays[2:])}
        step = torch.tensor(float(arrays[-1].detach()) - 1 if counts else 1.0, dtype=torch.float64)
        f([p], [g], **given, state_steps=[step], **{**fixed, **names, **attrs}, foreach=False, differentiable=True, maximize=False)
        return p, *(given[s][0] for s in states)
    return call


MOMENTS = {'lr': 1e-3, 'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-8, 'weight_decay': 0.0}
PLAIN = {'lr': 1e-2, 'alpha': 0.99, 'eps': 1e-8, 'weight_decay': 0.0, 'momentum': 0.0}


def amsgrad(*arrays, decoupled=False, **attrs):
    return step_of(adam.adam, ['exp_avgs', 'exp_avg_sqs', 'max_exp_avg_sqs'], True, {
        'amsgrad': True, 'decoupled_weight_decay': decoupled}, MOMENTS)(*arrays, **attrs)


ADAM = ['exp_avgs', 'exp_avg_sqs'], True, {'amsgrad': False, 'max_exp_avg_sqs': []}
TORCH.update({
    'optim.adam': step_of(adam.adam, *ADAM, MOMENTS),
    'optim.adamw': step_of(adam.adam, *ADAM, {**MOMENTS, 'weight_decay': 0.01, 'decoupled_weight_decay': True}),
    'optim.amsgrad': amsgrad,
    'optim.adamax': step_of(adamax.adamax, ['exp_avgs', 'exp_infs'], True, {}, {**MOMENTS, 'lr': 2e-3}),
    'optim.adagrad': step_of(adagrad.adagrad, ['state_sums'], True, {}, {'lr': 1e-2, 'lr_decay': 0.0, 'weight_decay': 0.0, 'eps': 1e-10}),
    'optim.adadelta': step_of(adadelta.adadelta, ['square_avgs', 'acc_deltas'], False, {}, {
        'lr': 1.0, 'rho': 0.9, 'eps': 1e-6, 'weight_decay': 0.0}),
    'optim.rmsprop': step_of(rmsprop.rmsprop, ['square_avgs'], False, {
        'centered': False, 'grad_avgs': [], 'momentum_buffer_list': []}, PLAIN),
    'optim.global_norm': lambda *g: torch.sqrt(sum((x * x).sum() for x in g))})


def sgd_step(p, g, m, step, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    """PyTorch's has no momentum before its first step, and none to keep without momentum."""
    if nesterov and (momentum <= 0 or dampening != 0):
        raise NotImplementedError  # PyTorch refuses these
    after, kept = p.clone(), [m.clone() if float(step.detach()) > 1 else None]
    sgd.sgd([after], [g], kept, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=False, foreach=False)
    return after, kept[0] if momentum else g + weight_decay * p


TORCH['optim.sgd'] = sgd_step
