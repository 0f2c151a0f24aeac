#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes nn_values.py: what PyTorch's functions give, computed in f64. Run by hand, with PyTorch installed:
make_nn.py > nn_values.py"""
import torch
import torch.nn.functional as F
from golden_nn import numbers

cases = []


def add(name, inputs, f, torch_inputs=None, **attrs):
    """`inputs`: shapes of numbers(), or lists of values, or None. `f` gets tensors."""
    given = [None if x is None else torch.tensor(numbers(i, x) if isinstance(x, tuple) else x)
             for i, x in enumerate(inputs)]
    given = [x.double() if x is not None and x.is_floating_point() else x for x in given]
    results = f(*given)
    results = results if isinstance(results, (tuple, list)) else (results,)
    cases.append((name, inputs, attrs, [(list(r.shape), [float(f'{v:.13g}') if r.is_floating_point() else v for v in r.flatten().tolist()])
                                        for r in results]))


def last(x, *channels_first):
    """A tensor, and further ones, with axis 1 moved to the end."""
    out = [None if t is None else t.movedim(1, -1) for t in (x, *channels_first)]
    return out if channels_first else out[0]


def first(*tensors):
    return [None if t is None else t.movedim(-1, 1) for t in tensors]


# --- convolutions -------------------------------------------------------------------------

def convolution(n, x, w, bias=False, transpose=False, **attrs):
    """Channels first, and the same with channels last."""
    f = getattr(F, f'conv_transpose{n}d' if transpose else f'conv{n}d')
    theirs = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
    pads = theirs.pop('padding', 0)
    turned, steps = theirs.pop('flip', False), theirs.pop('input_dilation', None)

    def call(x, w, b=None):
        if turned:
            w = w.flip(*range(2, n + 2))
        if steps:
            wide = x.new_zeros(*x.shape[:2], *((s - 1) * d + 1 for s, d in zip(x.shape[2:], steps)))
            wide[(slice(None), slice(None), *(slice(None, None, d) for d in steps))] = x
            x = wide
        if isinstance(pads, tuple) and len(pads) == 2 * n:
            if transpose:
                out = f(x, w, b, **theirs)
                return out[(..., *(slice(pads[2 * i], out.shape[i + 2] - pads[2 * i + 1]) for i in range(n)))]
            return f(F.pad(x, [p for i in reversed(range(n)) for p in pads[2 * i:2 * i + 2]]), w, b, **theirs)
        return f(x, w, b, padding=pads, **theirs)
    name = ('conv_transpose' if transpose else 'conv') + f'{n}d'
    groups = attrs.get('groups', 1)
    shapes = [x, w] + ([(w[1] * groups if transpose else w[0],)] if bias else [])
    add(name, shapes, call, axis=1, **attrs)
    moved = [(s[0], *s[2:], s[1]) for s in shapes[:2]] + shapes[2:]
    add(name, moved, lambda x, w, b=None: last(call(*first(x, w), b)), **attrs)


convolution(1, (2, 3, 7), (4, 3, 3), True)
convolution(1, (1, 4, 9), (4, 2, 2), stride=2, padding=1, dilation=2, groups=2)
convolution(1, (1, 2, 5), (2, 2, 3), padding=[2, 0])
convolution(1, (1, 3, 6), (3, 1, 4), True, padding=[3, 0], groups=3, flip=True)
convolution(1, (1, 2, 4), (1, 2, 3), padding=2, input_dilation=[3])
convolution(2, (1, 2, 5, 4), (2, 2, 3, 2), True)
convolution(2, (1, 2, 5, 6), (2, 1, 2, 3), stride=[2, 1], padding=[1, 0, 0, 2], groups=2)
convolution(2, (1, 2, 3, 3), (1, 2, 2, 2), flip=True, padding=1, input_dilation=[2, 1])
convolution(3, (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), True)
convolution(3, (1, 4, 4, 3, 4), (2, 2, 2, 3, 2), stride=[2, 1, 1], padding=1, dilation=[2, 1, 1], groups=2)
convolution(3, (1, 2, 4, 3, 3), (4, 1, 3, 2, 2), True, padding=[2, 0, 1, 0, 0, 0], groups=2)
convolution(1, (2, 3, 4), (3, 2, 3), True, True)
convolution(1, (1, 2, 4), (2, 1, 2), True, True, stride=3, padding=1, output_padding=2, groups=2)
convolution(1, (1, 2, 3), (2, 2, 2), False, True, stride=2, dilation=3, output_padding=2)
convolution(1, (1, 1, 4), (1, 1, 3), False, True, stride=2, padding=[0, 2])
convolution(2, (1, 2, 3, 2), (2, 2, 2, 3), True, True)
convolution(2, (1, 4, 2, 3), (4, 1, 3, 2), True, True, stride=[2, 3], padding=[1, 0], output_padding=[1, 2], groups=2)
convolution(2, (1, 2, 2, 3), (2, 1, 3, 2), False, True, stride=2, padding=[0, 1, 2, 0], dilation=[1, 2], flip=True)
convolution(3, (1, 2, 2, 3, 2), (2, 2, 2, 2, 3), True, True)
convolution(3, (1, 2, 2, 2, 2), (2, 1, 3, 2, 2), False, True, stride=2, padding=1, output_padding=1, groups=2)

# --- pooling ------------------------------------------------------------------------------

def pooling(name, x, **attrs):
    theirs = {'kernel_size' if k == 'window' else k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}

    def call(x):
        if name.startswith('global'):
            axes = tuple(range(2, x.ndim))
            return x.mean(axes, keepdim=True) if 'avg' in name else x.amax(axes, keepdim=True)
        return getattr(F, name)(x, **theirs)
    add(name, [x], call, axis=1, **attrs)
    add(name, [(x[0], *x[2:], x[1])], lambda x: last(call(*first(x))), **attrs)


for kind in ('max', 'avg'):
    pooling(f'{kind}_pool1d', (2, 2, 7), window=[3], stride=2)
    pooling(f'{kind}_pool1d', (1, 2, 6), window=4, stride=3, padding=2, ceil_mode=True)
    pooling(f'{kind}_pool2d', (1, 2, 5, 6), window=2)
    pooling(f'{kind}_pool2d', (1, 3, 5, 7), window=[3, 2], stride=[2, 3], padding=[1, 0], ceil_mode=True)
    pooling(f'{kind}_pool2d', (1, 1, 4, 4), window=3, stride=2, padding=1, ceil_mode=True)
    pooling(f'{kind}_pool2d', (1, 1, 2, 4), window=3, stride=2, ceil_mode=True)
    pooling(f'{kind}_pool3d', (1, 2, 3, 4, 5), window=2)
    pooling(f'{kind}_pool3d', (1, 2, 4, 3, 5), window=[3, 2, 2], stride=[2, 1, 3], padding=[1, 0, 1], ceil_mode=True)
    pooling(f'adaptive_{kind}_pool1d', (2, 2, 7), output_size=[3])
    pooling(f'adaptive_{kind}_pool1d', (1, 2, 2), output_size=[5])
    pooling(f'adaptive_{kind}_pool2d', (1, 2, 4, 6), output_size=[2, 3])
    pooling(f'adaptive_{kind}_pool2d', (1, 2, 5, 7), output_size=[3, 2])
    pooling(f'adaptive_{kind}_pool3d', (1, 2, 3, 5, 4), output_size=[2, 3, 4])
    pooling(f'global_{kind}_pool', (2, 3, 2, 5))
pooling('avg_pool1d', (1, 2, 6), window=3, stride=2, padding=1, count_include_pad=False)
pooling('avg_pool2d', (1, 2, 5, 6), window=[3, 4], stride=2, padding=[1, 2], count_include_pad=False, ceil_mode=True)
pooling('avg_pool2d', (1, 2, 5, 4), window=3, stride=1, padding=1, divisor_override=5)
pooling('avg_pool3d', (1, 1, 4, 3, 3), window=[3, 2, 2], stride=2, padding=[1, 1, 0], count_include_pad=False)
pooling('avg_pool3d', (1, 1, 4, 3, 3), window=2, divisor_override=3)

for n, x, attrs in [(1, (2, 2, 9), {'window': 3, 'stride': 2, 'dilation': 2}), (2, (1, 2, 6, 7), {'window': [2, 3], 'stride': 1, 'padding': [0, 1],
                                                                                              'dilation': [3, 2]}),
                    (2, (1, 1, 5, 6), {'window': 2, 'stride': 2, 'padding': 1, 'dilation': 2, 'ceil_mode': True}),
                    (2, (1, 1, 4, 1), {'window': [3, 1], 'stride': 2, 'dilation': 2, 'ceil_mode': True}),
                    (3, (1, 2, 4, 5, 3), {'window': 2, 'stride': 1, 'dilation': [2, 3, 1]})]:
    pooling(f'max_pool{n}d', x, **attrs)


def places(name, x, **attrs):
    """Max pooling with the places of maxima."""
    theirs = {'kernel_size' if k == 'window' else k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}

    def call(x):
        return getattr(F, name)(x, **theirs, return_indices=True)
    add(name + '_with_indices', [x], call, axis=1, **attrs)
    add(name + '_with_indices', [(x[0], *x[2:], x[1])], lambda x: [last(t) for t in call(*first(x))], **attrs)


places('max_pool1d', (2, 2, 7), window=3, stride=2)


def fractional(n, x, samples, window, out):
    """Maxima of windows by these numbers of each plane, and their places."""
    name = f'fractional_max_pool{n}d'

    def call(x, s):
        return getattr(F, name)(x, tuple(window), output_size=tuple(out), _random_samples=s, return_indices=True)
    attrs = dict(window=window, output_size=out)
    add(name, [x, samples], lambda x, s: call(x, s)[0], axis=1, **attrs)
    add(name + '_with_indices', [(x[0], *x[2:], x[1]), samples], lambda x, s: [last(t) for t in call(*first(x), s)], **attrs)


fractional(2, (1, 2, 7, 6), [[[0.3, 0.7], [0.1, 0.55]]], [2, 3], [4, 2])
fractional(2, (2, 1, 5, 5), [[[0.95, 0.0]], [[0.5, 0.25]]], [1, 2], [1, 3])
fractional(3, (1, 2, 5, 4, 6), [[[0.3, 0.8, 0.6], [0.1, 0.55, 0.9]]], [2, 1, 3], [3, 2, 2])
places('max_pool2d', (1, 2, 5, 6), window=[3, 2], stride=[2, 3], padding=[1, 1], ceil_mode=True)
places('max_pool2d', (1, 2, 6, 7), window=2, stride=1, dilation=[2, 3])
places('max_pool3d', (1, 2, 4, 3, 5), window=[3, 2, 2], stride=[2, 1, 3], padding=[1, 0, 1])
places('adaptive_max_pool1d', (2, 2, 7), output_size=[3])
places('adaptive_max_pool2d', (1, 2, 5, 7), output_size=[3, 2])
places('adaptive_max_pool3d', (1, 2, 3, 5, 4), output_size=[2, 3, 4])


def unpooling(n, x, indices, size=None, **attrs):
    theirs = {'kernel_size' if k == 'window' else k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}

    def call(x, i):
        return getattr(F, f'max_unpool{n}d')(x, i, **theirs, **({'output_size': size} if size else {}))
    more = {'output_size': size} if size else {}
    add(f'max_unpool{n}d', [x, indices], call, axis=1, **attrs, **more)
    turned = torch.tensor(indices).movedim(1, -1).tolist()
    add(f'max_unpool{n}d', [(x[0], *x[2:], x[1]), turned], lambda x, i: last(call(*first(x, i))), **attrs, **more)


unpooling(1, (1, 2, 3), [[[0, 3, 4], [1, 2, 5]]], window=2)
unpooling(2, (1, 1, 2, 2), [[[[0, 3], [9, 14]]]], window=2)
unpooling(2, (1, 1, 2, 2), [[[[6, 8], [16, 18]]]], [5, 5], window=3, stride=2)
unpooling(3, (1, 1, 1, 2, 1), [[[[[1], [6]]]]], window=[1, 2, 2])
for n, x, attrs in [(1, (2, 2, 7), {'window': 3, 'stride': 2}), (2, (1, 2, 5, 6), {'window': [2, 3]}),
                    (2, (1, 2, 5, 6), {'window': 2, 'ceil_mode': True}), (3, (1, 1, 4, 3, 5), {'window': 2, 'stride': 1})]:
    for p in (2.0, 1.0, 4.0):
        pooling(f'lp_pool{n}d', x, norm_type=p, **attrs)

# --- places that data give -----------------------------------------------------------------

GRID = [[[[-1.0, -1.0], [0.25, -0.5], [0.875, 1.0]], [[1.5, 0.25], [-2.5, 3.0], [0.0, 0.0]]]]
for mode in ('bilinear', 'nearest', 'bicubic'):
    for around in ('zeros', 'border', 'reflection'):
        for corners in (False, True):
            def sample(x, g, m=mode, a=around, c=corners):
                return F.grid_sample(x, g, m, a, c)
            more = {'mode': mode, 'padding_mode': around, 'align_corners': corners}
            add('grid_sample', [(1, 2, 3, 4), GRID], sample, axis=1, **more)
            if mode != 'bicubic':
                add('grid_sample', [(2, 2, 3, 4, 1), (2, 1, 3, 2, 3)], lambda x, g, f=sample: last(f(*first(x), g)), **more)
add('grid_sample', [(2, 3, 2, 3), (2, 4, 1, 2)], lambda x, g: last(F.grid_sample(*first(x), g, align_corners=False)))
for size in ([2, 3, 4, 5], [2, 1, 1, 3], [2, 2, 3, 2, 4]):
    for corners in (False, True):
        add('affine_grid', [(2, len(size) - 2, len(size) - 1)], lambda t, s=tuple(size), c=corners: F.affine_grid(t, s, align_corners=c),
            size=size, align_corners=corners)

# --- moves of channels and windows --------------------------------------------------------

for name, x, attrs in [('pixel_shuffle', (2, 8, 2, 3), {'upscale_factor': 2}), ('pixel_shuffle', (1, 9, 2, 1), {'upscale_factor': 3}),
                       ('pixel_unshuffle', (2, 2, 4, 6), {'downscale_factor': 2}), ('channel_shuffle', (2, 6, 2, 3), {'groups': 3})]:
    add(name, [x], lambda x, f=getattr(F, name), a=attrs: f(x, *a.values()), axis=1, **attrs)
    add(name, [(x[0], *x[2:], x[1])], lambda x, f=getattr(F, name), a=attrs: last(f(*first(x), *a.values())), **attrs)


def columns(name, x, **attrs):
    theirs = {'kernel_size' if k == 'window' else k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
    f = getattr(F, name)
    add(name, [x], lambda x: f(x, **theirs), axis=1, **attrs)
    add(name, [(x[0], *x[2:], x[1])], lambda x: last(f(*first(x), **theirs)), **attrs)


columns('unfold', (2, 2, 4, 5), window=[2, 3])
columns('unfold', (1, 3, 5, 6), window=[2, 2], stride=[2, 1], padding=[1, 0], dilation=[1, 2])
columns('fold', (2, 12, 9), output_size=[4, 5], window=[2, 3])
columns('fold', (1, 8, 9), output_size=[4, 5], window=[2, 2], stride=[2, 1], padding=[1, 0], dilation=[1, 2])

# --- activations --------------------------------------------------------------------------

X = (3, 7)
WIDE = [-100.0, -21.5, -6.25, -3.0, -1.0, -0.5, -0.125, 0.0, 0.125, 0.5, 1.0, 3.0, 6.0, 6.25, 21.5, 100.0]
for name in 'relu6 selu mish hardswish hardsigmoid logsigmoid softsign tanhshrink leaky_relu elu celu hardshrink softshrink ' \
            'softplus hardtanh silu'.split():
    add(name, [WIDE], getattr(F, name))
add('relu2', [WIDE], lambda x: x.relu() ** 2)
add('squareplus', [WIDE], lambda x: (x + (x * x + 4).sqrt()) / 2)
add('gelu', [X], lambda x: x * torch.sigmoid(1.702 * x), approximate='sigmoid')
for name, attrs in [('leaky_relu', {'negative_slope': 0.2}), ('elu', {'alpha': 1.5}), ('celu', {'alpha': 2.0}),
                    ('hardshrink', {'lambd': 1.0}), ('softshrink', {'lambd': 1.0}), ('softplus', {'beta': 2.0, 'threshold': 5.0}),
                    ('hardtanh', {'min_val': -2.0, 'max_val': 0.5}), ('threshold', {'threshold': 0.125, 'value': -7.0})]:
    add(name, [WIDE], lambda x, f=getattr(F, name), a=attrs: f(x, **a), **attrs)
add('softmin', [X], lambda x: F.softmin(x, 0), axis=0)
add('glu', [(2, 6)], F.glu)
add('glu', [(4, 3)], lambda x: F.glu(x, 0), axis=0)
add('prelu', [(2, 3, 4), (3,)], F.prelu, axis=1)
add('prelu', [(2, 3, 4), (4,)], lambda x, w: last(F.prelu(x.movedim(-1, 1), w)))
add('prelu', [(2, 3), (1,)], F.prelu)

# --- losses -------------------------------------------------------------------------------

SIGNS = [[1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0]]
SHARES = [[0.5, 0.25, 0.125, 0.0], [1.0, 0.75, 0.0, 0.5]]
COUNTS = [[0.0, 1.0, 2.0, 5.0], [3.0, 0.0, 1.0, 7.0]]
P = (2, 4)
REDUCTIONS = ('none', 'mean', 'sum')


def losses(name, inputs, f=None, **attrs):
    f = f or getattr(F, name)
    for reduction in REDUCTIONS[1:] if attrs else REDUCTIONS:
        def call(*x, r=reduction):
            return f(*x, reduction=r, **attrs)
        add(name, inputs, call, **({} if reduction == 'mean' else {'reduction': reduction}), **attrs)


def reduced(f):
    return lambda *x, reduction, **attrs: {'none': lambda v: v, 'mean': torch.mean, 'sum': torch.sum}[reduction](f(*x, **attrs))


def weighted(f, **names):
    """A function whose operands from the third on are called otherwise."""
    return lambda x, y, *more, **attrs: f(x, y, **{k: more[v] for k, v in names.items() if more[v] is not None}, **attrs)


losses('mse_loss', [P, P])
losses('l1_loss', [P, P])
losses('smooth_l1_loss', [P, P])
losses('smooth_l1_loss', [P, P], beta=2.5)
losses('smooth_l1_loss', [P, P], beta=0.0)
losses('huber_loss', [P, P])
losses('huber_loss', [P, P], delta=2.5)
losses('log_cosh_loss', [P, P], reduced(lambda x, y: torch.logaddexp(x - y, y - x) - torch.tensor(2.0).double().log()))
losses('hinge_loss', [P, SIGNS], reduced(lambda x, y: (1 - x * y).relu()))
losses('hinge_embedding_loss', [P, SIGNS])
losses('hinge_embedding_loss', [P, SIGNS], margin=0.5)
losses('soft_margin_loss', [P, SIGNS])
losses('binary_cross_entropy', [SHARES, SHARES])
losses('binary_cross_entropy', [SHARES, SHARES[::-1], P], weighted(F.binary_cross_entropy, weight=0))
losses('binary_cross_entropy_with_logits', [P, SHARES])
losses('binary_cross_entropy_with_logits', [P, SHARES, P, (4,)],
       weighted(F.binary_cross_entropy_with_logits, weight=0, pos_weight=1))
losses('binary_cross_entropy_with_logits', [P, SHARES, None, [3.0]],
       weighted(F.binary_cross_entropy_with_logits, weight=0, pos_weight=1))
losses('kl_div', [P, SHARES])
losses('kl_div', [P, P], log_target=True)
add('kl_div', [P, SHARES], lambda x, y: F.kl_div(x, y, reduction='batchmean'), reduction='batchmean')
losses('poisson_nll_loss', [P, COUNTS])
losses('poisson_nll_loss', [P, COUNTS], full=True)
losses('poisson_nll_loss', [SHARES, COUNTS], log_input=False)
losses('gaussian_nll_loss', [P, P, SHARES])
losses('gaussian_nll_loss', [P, P, [[0.5], [2.0]]], full=True, eps=0.75)
add('normalize', [(3, 4)], lambda x: F.normalize(x, dim=-1))
add('normalize', [(3, 4)], lambda x: F.normalize(x, 1, 0), p=1.0, axis=0)
add('normalize', [[[0.0, 0.0], [3.0, 4.0]]], lambda x: F.normalize(x, 3, 1), p=3.0)
add('cosine_similarity', [(3, 4), (3, 4)], lambda x, y: F.cosine_similarity(x, y, -1))
add('cosine_similarity', [(3, 4), (3, 4)], lambda x, y: F.cosine_similarity(x, y, 0), axis=0)
losses('margin_ranking_loss', [P, P, SIGNS])
losses('margin_ranking_loss', [P, P, SIGNS], margin=1.5)
losses('cosine_embedding_loss', [(3, 4), (3, 4), [1.0, -1.0, 1.0]])
losses('cosine_embedding_loss', [(3, 4), (3, 4), [1.0, -1.0, -1.0]], margin=0.25)
losses('triplet_margin_loss', [(3, 4)] * 3)
losses('triplet_margin_loss', [(3, 4)] * 3, margin=2.0, p=1.0, swap=True)

losses('multi_margin_loss', [(3, 4), [2, 0, 3]])
losses('multi_margin_loss', [(3, 4), [2, 0, 3], [0.5, 2.0, 1.0, 0.25]], lambda x, y, w, **a: F.multi_margin_loss(x, y, weight=w, **a), p=2,
       margin=0.5)
losses('multi_margin_loss', [(4,), 1])
losses('multilabel_margin_loss', [(3, 4), [[2, 0, -1, 3], [-1, 1, 2, 3], [3, 1, 2, 0]]])
losses('multilabel_margin_loss', [(4,), [0, 3, -1, 1]])
losses('multilabel_soft_margin_loss', [P, SHARES])
losses('multilabel_soft_margin_loss', [P, SHARES, (4,)])
for given in ({}, {'p': 1.0}, {'p': 3.0, 'keepdim': True}, {'p': 1.5, 'eps': 0.25}):
    add('pairwise_distance', [(3, 4), (3, 4)], lambda x, y, a=given: F.pairwise_distance(x, y, **a), **given)
add('pairwise_distance', [(2, 3, 4), (4,)], F.pairwise_distance)
add('pdist', [(4, 3)], F.pdist)
add('pdist', [(3, 2)], lambda x: F.pdist(x, 1.0), p=1.0)

LOGS = (torch.tensor(numbers(0, (7, 3, 4))).log_softmax(-1) * 64).round().div(64).tolist()
SPOKEN = [[1, 2, 2, 3], [2, 1, 1, 0], [3, 3, 0, 0]]
for reduction in REDUCTIONS:
    add('ctc_loss', [LOGS, SPOKEN, [7, 6, 5], [4, 3, 2]], lambda *x, r=reduction: F.ctc_loss(*x, reduction=r), reduction=reduction)
add('ctc_loss', [LOGS, SPOKEN, [7, 4, 3], [4, 4, 1]], lambda *x: F.ctc_loss(*x, reduction='sum', zero_infinity=True), reduction='sum',
    zero_infinity=True)
add('ctc_loss', [LOGS, [1, 2, 2, 3, 2, 1, 3], [7, 7, 6], [4, 1, 2]], lambda *x: F.ctc_loss(*x, reduction='none'), reduction='none')
add('ctc_loss', [LOGS, [[0, 1], [1, 1], [2, 0]], [7, 7, 1], [2, 2, 0]], lambda *x: F.ctc_loss(*x, blank=3, reduction='none'), blank=3,
    reduction='none')
add('ctc_loss', [[t[0] for t in LOGS], [1, 3, 2], 7, 3], lambda l, y, t, n: F.ctc_loss(l, y, t, n, reduction='none'), reduction='none')

LABELS = [2, 0, 3, 2, 1, 2]
logits = (6, 4)
losses('nll_loss', [logits, LABELS])
losses('nll_loss', [logits, LABELS], ignore_index=2)
losses('nll_loss', [logits, LABELS, [0.5, 2.0, 1.0, 0.25]], lambda x, y, w, **a: F.nll_loss(x, y, w, **a), ignore_index=0)
add('nll_loss', [(2, 3, 4), [[0, 1, 2, 1], [2, 0, 1, 0]]], F.nll_loss, axis=1)
for given in ({}, {'ignore_index': 2}, {'label_smoothing': 0.1}, {'label_smoothing': 0.25, 'ignore_index': 0}):
    for weight in (None, [0.5, 2.0, 0.0, 0.25]):
        for reduction in REDUCTIONS:
            add('cross_entropy', [logits, LABELS] + ([weight] if weight else []),
                lambda x, y, w=None, r=reduction, a=given: F.cross_entropy(x, y, w, reduction=r, **a),
                **({} if reduction == 'none' else {'reduction': reduction}), **given)
add('cross_entropy', [P, SHARES], lambda x, y: F.cross_entropy(x, y, reduction='mean'), reduction='mean')
add('cross_entropy', [P, SHARES, (4,)], lambda x, y, w: F.cross_entropy(x, y, w, reduction='none', label_smoothing=0.5),
    label_smoothing=0.5)
add('cross_entropy', [(2, 3, 4), [[0, 1, 2, 1], [2, 0, 1, 0]]],
    lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), axis=1, label_smoothing=0.1, reduction='mean')

# --- layers -------------------------------------------------------------------------------

add('linear', [(2, 3, 4), (5, 4), (5,)], F.linear)
add('linear', [(4,), (2, 4)], F.linear)


def batch_norm(x, mean=None, var=None, weight=None, bias=None, **attrs):
    mean, var = (None if t is None else t.clone() for t in (mean, var))
    out = F.batch_norm(x, mean, var, weight, bias, **attrs)
    if mean is None:
        axes = [a for a in range(x.ndim) if a != 1]
        return out, x.mean(axes), x.var(axes)
    return out, mean, var


def last_norm(*x, **attrs):
    out, mean, var = batch_norm(*first(x[0]), *x[1:], **attrs)
    return last(out), mean, var


add('bilinear', [(3, 2), (3, 4), (5, 2, 4), (5,)], F.bilinear)
add('bilinear', [(2, 3, 2), (2, 3, 3), (2, 2, 3)], F.bilinear)
IDS, BAGS = [[1, 3, 0], [4, 4, 2]], [0, 3, 3, 5]
for mode in ('sum', 'mean', 'max'):
    def bag(x, w, offsets=None, factors=None, m=mode, **attrs):
        return F.embedding_bag(x, w, offsets, mode=m, per_sample_weights=factors, **attrs)
    add('embedding_bag', [IDS, (5, 3)], bag, mode=mode)
    add('embedding_bag', [sum(IDS, []), (5, 3), BAGS], bag, mode=mode)
    add('embedding_bag', [IDS, (5, 3)], lambda x, w, f=bag: f(x, w, padding_idx=4), mode=mode, padding_idx=-1)
    add('embedding_bag', [sum(IDS, []), (5, 3), BAGS], lambda x, w, o, f=bag: f(x, w, o, padding_idx=0), mode=mode, padding_idx=0)
add('embedding_bag', [IDS, (5, 3), None, (2, 3)], lambda *x: bag(*x, m='sum'), mode='sum')
add('embedding_bag', [sum(IDS, []), (5, 3), BAGS, (6,)], lambda *x: bag(*x, m='sum'), mode='sum')
add('local_response_norm', [(2, 5, 3)], lambda x: F.local_response_norm(x, 3), axis=1, size=3)
add('local_response_norm', [(2, 2, 3, 6)], lambda x: last(F.local_response_norm(*first(x), 4, 0.5, 0.25, 2.0)), size=4, alpha=0.5, beta=0.25,
    k=2.0)
add('rrelu', [WIDE], F.rrelu)

MEANS, VARS = [0.5, -1.0, 2.0], [1.0, 0.25, 4.0]
add('batch_norm', [(4, 3), MEANS, VARS], last_norm)
add('batch_norm', [(2, 3, 4), MEANS, VARS, (3,), (3,)], batch_norm, axis=1)
add('batch_norm', [(2, 2, 3, 3), MEANS, VARS, (3,), (3,)], lambda *x: last_norm(*x, training=True), training=True)
add('batch_norm', [(2, 3, 4), MEANS, VARS], lambda *x: batch_norm(*x, training=True, momentum=0.75, eps=0.5), axis=1,
    training=True, momentum=0.75, eps=0.5)
add('batch_norm', [(5, 3)], lambda x: last_norm(x, training=True), training=True)
add('instance_norm', [(2, 3, 5), (3,), (3,)], lambda x, w, b: F.instance_norm(x, None, None, w, b), axis=1)
add('instance_norm', [(2, 2, 3, 3)], lambda x: last(F.instance_norm(*first(x), eps=0.25)), eps=0.25)

for mode in ('nearest', 'nearest_exact', 'linear', 'cubic', 'area'):
    names = {'nearest_exact': ['nearest-exact'] * 3, 'linear': ['linear', 'bilinear', 'trilinear'],
             'cubic': [None, 'bicubic', None]}.get(mode, [mode] * 3)
    for n, x, sizes in [(1, (2, 2, 5), [[3], [8]]), (2, (1, 2, 3, 4), [[5, 6], [2, 7], [6, 8]]), (3, (1, 1, 2, 3, 2), [[3, 4, 5]])]:
        for size in sizes:
            for corners in (False, True) if mode in ('linear', 'cubic') else (None,):
                if names[n - 1]:
                    def call(x, s=tuple(size), m=names[n - 1], c=corners):
                        return F.interpolate(x, s, mode=m, align_corners=c)
                    more = {'align_corners': True} if corners else {}
                    add('interpolate', [x], call, size=size, mode=mode, axis=1, **more)
add('interpolate', [(1, 5, 2)], lambda x: last(F.interpolate(*first(x), scale_factor=1.7, mode='linear')), scale_factor=[1.7],
    mode='linear')
add('interpolate', [(1, 5, 4, 2)], lambda x: last(F.interpolate(*first(x), scale_factor=(0.6, 2.3))), scale_factor=[0.6, 2.3])


def recurrent(kind, gates, n, batch_first=False, reverse=False, states=True, biases=True, **attrs):
    """One layer: the last one of two directions where it runs in reverse."""
    def call(x, w, u, b=None, c=None, *state):
        cell = getattr(torch.nn, kind.upper())(3, 2, bias=biases, batch_first=batch_first, bidirectional=reverse, dtype=torch.double,
                                               **attrs)
        for name, value in zip(('weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'), (w, u, b, c)):
            if value is not None:
                getattr(cell, name + ('_l0_reverse' if reverse else '_l0')).data = value
        given = [torch.stack([s] * (2 if reverse else 1)) for s in state]
        out, last_state = cell(x, *([tuple(given) if kind == 'lstm' else given[0]] if given else []))
        last_state = last_state if isinstance(last_state, tuple) else (last_state,)
        return [t.detach() for t in (out[..., -2:], *(s[-1] for s in last_state))]
    x = (4, 3) if n == 0 else (n, 4, 3) if batch_first else (4, n, 3)
    inputs = [x, (gates * 2, 3), (gates * 2, 2)] + ([(gates * 2,), (gates * 2,)] if biases else [None, None] if states else [])
    state = (2,) if n == 0 else (n, 2)
    inputs += [state] * (0 if not states else 2 if kind == 'lstm' else 1)
    add(kind, inputs, call, **{k: True for k, v in (('batch_first', batch_first), ('reverse', reverse)) if v}, **attrs)


for kind, gates in (('lstm', 4), ('gru', 3), ('rnn', 1)):
    recurrent(kind, gates, 2)
    recurrent(kind, gates, 3, batch_first=True, states=False)
    recurrent(kind, gates, 1, reverse=True)
    recurrent(kind, gates, 0, biases=False)
recurrent('rnn', 1, 2, nonlinearity='relu')


def recurrent_layers(kind, gates, number, bidirectional, batch_first=False, **attrs):
    """A module of several layers; its parameters come in the order of ours."""
    sides = 2 if bidirectional else 1

    def call(x, *rest):
        cell = getattr(torch.nn, kind.upper())(3, 2, num_layers=number, batch_first=batch_first, bidirectional=bidirectional,
                                               dtype=torch.double, **attrs)
        states = 2 if kind == 'lstm' else 1
        for p, value in zip(cell.parameters(), rest[states:]):
            p.data = value
        out, last_state = cell(x, tuple(rest[:2]) if kind == 'lstm' else rest[0])
        return [t.detach() for t in (out, *(last_state if kind == 'lstm' else [last_state]))]
    inputs = [(2, 3, 3) if batch_first else (3, 2, 3)] + [(number * sides, 2, 2)] * (2 if kind == 'lstm' else 1)
    for n in range(number):
        inputs += [(gates * 2, 3 if n == 0 else 2 * sides), (gates * 2, 2), (gates * 2,), (gates * 2,)] * sides
    add(kind + '_layers', inputs, call, layers=number, **{k: True for k, v in (('bidirectional', bidirectional), ('batch_first', batch_first)) if v},
        **attrs)


for kind, gates in (('lstm', 4), ('gru', 3), ('rnn', 1)):
    recurrent_layers(kind, gates, 2, True)
    recurrent_layers(kind, gates, 2, False, batch_first=True)
recurrent_layers('rnn', 1, 1, True, nonlinearity='relu')


def causal(x, w, b=None, state=None, axis=1, dilation=1, groups=1):
    x, w, state = (x, w, state) if axis == 1 else first(x, w, state)
    before = (w.shape[2] - 1) * dilation
    whole = torch.cat([x.new_zeros(*x.shape[:2], before) if state is None else state, x], 2)
    out = F.conv1d(whole, w, b, dilation=dilation, groups=groups), whole[..., whole.shape[-1] - before:]
    return out if axis == 1 else tuple(last(t) for t in out)


add('causal_conv1d', [(2, 5, 3), (3, 4, 1), (3,)], lambda *x: causal(*x, axis=-1, groups=3), groups=3)
add('causal_conv1d', [(1, 2, 3), (4, 2, 3), (4,), (1, 2, 4)], lambda *x: causal(*x, dilation=2), axis=1, dilation=2)
add('causal_conv1d', [(1, 2, 3), (2, 2, 2), None, (1, 2, 1)], causal, axis=1)


def sunk(q, k, v, sinks, mask=None, causal=False, scale=None):
    """Attention with a column of sinks that has no value."""
    k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    column = sinks[:, None, None].expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1] @ v


add('attention_with_sinks', [(2, 3, 4), (2, 5, 4), (2, 5, 3), (2,)], sunk)
add('attention_with_sinks', [(2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 5), (4,)], lambda *x: sunk(*x, causal=True, scale=0.25),
    is_causal=True, scale=0.25)
add('attention_with_sinks', [(2, 3, 4), (2, 5, 4), (2, 5, 3), (2,), (3, 5)], sunk)

# --- the file -----------------------------------------------------------------------------

print('# SPDX-License-Identifier: MIT')
print(f'"""What functions of PyTorch {torch.__version__.split("+")[0]} give; printed by make_nn.py. A case: the operator, '
      'shapes of inputs or their\nvalues, attributes, and shapes and values of the results."""')
print('CASES = [')
for case in cases:
    print(f'    {case},')
print(']')
