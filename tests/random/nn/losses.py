# SPDX-License-Identifier: MIT
"""Losses of pack nn, and distances of vectors."""
import numpy as np
from draw import SIZED, given
from entries import entry, require, wide_float, within
from layers import log_softmax
from networks import FACTS, axis_of_float, ensure, logsigmoid

REDUCED = {'none': lambda v: v, 'mean': np.mean, 'sum': np.sum}


def reduction(d):
    return d.one([None, 'none', 'sum'])


def losses(table, styles=('share',), optional=(), fits=lambda x: True, steep=None, **attrs):
    """`table`: functions of elements by name. `styles`: of operands beside the first, of its shape; `optional`:
    of those behind, each with what is before."""
    def draw(d):
        i = d.pick(lambda x: wide_float(x) and x.size > 0 and within(-9, 9)(x) and fits(x))
        x = d.values[i]
        given_styles = [*styles, *optional[:d.number(0, len(optional))]]
        more = [d.make(x.dtype, x.shape, s) for s in given_styles]
        return [i, *more], given(reduction=reduction(d), **{k: v(d) for k, v in attrs.items()})

    def reduced(f):
        def call(*x, reduction='mean', **attrs):
            ensure(len({y.shape for y in x}) == 1)
            return REDUCED[reduction](f(*x, **attrs))
        return call
    entry(' '.join(table), {k: reduced(f) for k, f in table.items()}, draw, weight=0.5, steep=steep, **FACTS)


def one_of(*choices):
    return lambda d: d.one([None, *choices])


# --- of elements --------------------------------------------------------------------------


def huber(x, y, delta=1.0):
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def smooth_l1(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def cross_entropy_of_shares(x, y, w=1):
    return -w * (y * np.log(x) + (1 - y) * np.log1p(-x))


def cross_entropy_of_logits(x, y, w=1, positive=1):
    return -w * (positive * y * logsigmoid(x) + (1 - y) * logsigmoid(-x))


def kl_div(x, y, log_target=False):
    return np.exp(y) * (y - x) if log_target else y * (np.log(y) - x)


def poisson(x, y, log_input=True, full=False, eps=1e-8):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    more = np.where(y > 1, y * np.log(y) - y + np.log(2 * np.pi * y) / 2, 0)
    return loss + more if full else loss


def gaussian(x, y, v, full=False, eps=1e-6):
    v = np.maximum(v, eps)
    return (np.log(v) + (x - y) ** 2 / v) / 2 + (np.log(np.asarray(2 * np.pi, x.dtype)) / 2 if full else 0)


def hinge_embedding(x, y, margin=1.0):
    return np.where(y == 1, 0, np.maximum(margin - x, 0)) + np.where(y == -1, 0, x)


losses({'mse_loss': lambda x, y: (x - y) ** 2, 'l1_loss': lambda x, y: np.abs(x - y),
        'log_cosh_loss': lambda x, y: np.logaddexp(x - y, y - x) - np.log(np.asarray(2, x.dtype)),
        'hinge_loss': lambda x, y: np.maximum(1 - x * y, 0), 'soft_margin_loss': lambda x, y: -logsigmoid(x * y)})
losses({'huber_loss': huber}, delta=one_of(0.75))
losses({'smooth_l1_loss': smooth_l1}, beta=one_of(0.75))
losses({'hinge_embedding_loss': hinge_embedding}, ['sign'], margin=one_of(0.25))
losses({'binary_cross_entropy': cross_entropy_of_shares}, optional=['positive'],
       fits=lambda x: bool(np.all((x > 0.01) & (x < 0.99))))
losses({'binary_cross_entropy_with_logits': cross_entropy_of_logits}, optional=['positive', 'positive'])
losses({'kl_div': kl_div}, log_target=one_of(True))
losses({'poisson_nll_loss': poisson}, ['positive'], full=one_of(True))
losses({'poisson_nll_loss': poisson}, ['positive'], fits=lambda x: bool(np.all(x > 0.05)), log_input=lambda d: False,
       full=one_of(True))
losses({'gaussian_nll_loss': gaussian}, ['share', 'share'], eps=one_of(1.0, 0.5), full=one_of(True),
       steep=lambda x, y, v, eps=1e-6, **_: bool(np.any(v < eps)))  # slopes are those at eps, as PyTorch's
losses({'margin_ranking_loss': lambda a, b, y, margin=0.0: np.maximum(-y * (a - b) + margin, 0)}, ['share', 'sign'],
       margin=one_of(0.25))

# --- of vectors ---------------------------------------------------------------------------


def vectors(d, count):
    """Of a shape; lengths and their parts are no 0."""
    shape = d.one([(d.number(2, 4),), (d.number(1, 3), d.number(2, 4)), (2, d.number(1, 2), d.number(2, 3))])
    dtype = d.one([np.dtype('f4'), np.dtype('f8')])
    found = [d.make(dtype, shape, 'share') for _ in range(count)]
    require(all(np.all(np.abs(d.values[i]) > 1e-2) for i in found))
    return found, shape, dtype


def length(x, p=2.0, axis=-1, keepdims=False):
    return np.sum(np.abs(x) ** p, axis, keepdims=keepdims) ** (1 / np.asarray(p, x.dtype))


def cosine(x, y, axis=-1, eps=1e-8):
    sizes = [np.maximum(length(v, axis=axis), eps) for v in (x, y)]
    return np.sum(x * y, axis) / (sizes[0] * sizes[1])


def normalize(x, p=2.0, axis=-1, eps=1e-12):
    return x / np.maximum(length(x, p, axis, True), eps)


def triplet(a, p_, n, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction='mean'):
    eps = np.asarray(eps, a.dtype)
    near, far, across = (length(u - v + eps, p) for u, v in ((a, p_), (a, n), (p_, n)))
    far = np.minimum(far, across) if swap else far
    return REDUCED[reduction](np.maximum(near - far + margin, 0))


def cosine_embedding(x, y, target, margin=0.0, reduction='mean'):
    c = cosine(x, y)
    return REDUCED[reduction](np.where(target == 1, 1 - c, 0) + np.where(target == -1, np.maximum(c - margin, 0), 0))


def along(d, found, shape):
    return found, given(axis=d.one([None, d.number(-len(shape), len(shape) - 1)]))


def one_vector(d):
    found, attrs = along(d, *vectors(d, 1)[:2])
    return found, given(**attrs, p=d.one([None, 1.0, 3.0]), eps=d.one([None, 0.5]))


def two_vectors(d):
    found, attrs = along(d, *vectors(d, 2)[:2])
    return found, given(**attrs, eps=d.one([None, 0.5]))


def three_vectors(d):
    found, _, _ = vectors(d, 3)
    return found, given(margin=d.one([None, 0.25]), p=d.one([None, 1.0, 3.0]), eps=d.one([None, 0.125]), swap=d.one([None, True]),
                        reduction=reduction(d))


def two_and_signs(d):
    found, shape, dtype = vectors(d, 2)
    require(len(shape) < 3)
    return [*found, d.make(dtype, shape[:-1], 'sign')], given(margin=d.one([None, 0.25]), reduction=reduction(d))


for name, f, draw in (('normalize', normalize, one_vector), ('cosine_similarity', cosine, two_vectors),
                      ('triplet_margin_loss', triplet, three_vectors), ('cosine_embedding_loss', cosine_embedding, two_and_signs)):
    entry(name, f, draw, weight=0.5, **FACTS)
    SIZED.add(name)

# --- of classes ---------------------------------------------------------------------------


def classes(x, labels, weight, axis, ignore_index):
    """Classes last, what a label counts, and where it is."""
    x = np.moveaxis(x, axis, -1)
    ensure(labels.shape == x.shape[:-1] and (weight is None or weight.shape == x.shape[-1:]))
    known = (labels >= 0) & (labels < x.shape[-1]) & (labels != ignore_index)
    at = np.where(known, labels, 0).astype('i8')
    weights = np.ones(x.shape[-1:], x.dtype) if weight is None else weight
    return x, at, weights, np.where(known, weights[at], 0)


def reduced_by(own, share, reduction):
    return np.sum(own) / np.sum(share) if reduction == 'mean' else REDUCED[reduction](own)


def nll(x, labels, weight=None, axis=-1, ignore_index=-100, reduction='mean'):
    x, at, _, share = classes(x, labels, weight, axis, ignore_index)
    return reduced_by(-share * np.take_along_axis(x, at[..., None], -1)[..., 0], share, reduction)


def cross_entropy(logits, labels, weight=None, axis=-1, ignore_index=-100, reduction='none', label_smoothing=0.0):
    if labels.dtype.kind == 'f':
        return of_shares(logits, labels, weight, axis, reduction, label_smoothing)
    x, at, weights, share = classes(logits, labels, weight, axis, ignore_index)
    logs = log_softmax(x)
    own = -share * np.take_along_axis(logs, at[..., None], -1)[..., 0]
    known = (labels >= 0) & (labels < x.shape[-1]) & (labels != ignore_index)
    even = np.where(known, -np.sum(logs * weights, -1) / x.shape[-1], 0)
    return reduced_by((1 - label_smoothing) * own + label_smoothing * even, share, reduction)


def of_shares(logits, shares, weight, axis, reduction, smoothing):
    ensure(logits.shape == shares.shape)
    x, y = np.moveaxis(logits, axis, -1), np.moveaxis(shares, axis, -1)
    y = y * (1 - smoothing) + smoothing / np.asarray(x.shape[-1], x.dtype)
    own = -np.sum(log_softmax(x) * y * (1 if weight is None else weight), -1)
    return np.sum(own) / own.size if reduction == 'mean' else REDUCED[reduction](own)


def labelled(d):
    i, axis = axis_of_float(d)
    x = d.values[i]
    shape = x.shape
    at = axis % len(shape)
    smooth = d.one([None, None, 0.125]) if d.name == 'cross_entropy' else None
    attrs = given(axis=axis, reduction=d.one([None, 'none', 'sum', 'mean']), label_smoothing=smooth)
    weight = [d.make(x.dtype, (shape[at],), 'positive')] if d.chance(0.4) else []
    if d.name == 'cross_entropy' and d.chance(0.3):
        return [i, d.make(x.dtype, shape, 'share'), *weight], attrs
    labels = d.of(np.dtype('i4'), shape[:at] + shape[at + 1:], 'index')
    return [i, labels, *weight], given(**attrs, ignore_index=d.one([None, 1]))


def by_margin(x, target, weight=None, p=1, margin=1.0, reduction='mean'):
    ensure(target.shape == x.shape[:-1] and bool(np.all((target >= 0) & (target < x.shape[-1]))))
    own = np.take_along_axis(x, target[..., None].astype('i8'), -1)
    short = np.maximum(margin - own + x, 0) ** p / x.dtype.type(x.shape[-1])
    short = np.where(np.arange(x.shape[-1]) == target[..., None], 0, short)
    return REDUCED[reduction](np.sum(short, -1) * (1 if weight is None else weight[target]))


def of_several(x, target, reduction='mean'):
    ensure(target.shape == x.shape)
    out = np.zeros(x.shape[:-1], x.dtype)
    for at in np.ndindex(*x.shape[:-1]):
        labels = [int(t) for t in target[at]]
        labels = labels[:labels.index(-1)] if -1 in labels else labels
        others = [k for k in range(x.shape[-1]) if k not in labels]
        out[at] = sum((np.maximum(1 - x[at][t] + x[at][k], 0) for t in labels for k in others), x.dtype.type(0)) / x.shape[-1]
    return REDUCED[reduction](out)


def soft_margins(x, y, weight=None, reduction='mean'):
    return REDUCED[reduction](np.mean(cross_entropy_of_logits(x, y, 1 if weight is None else weight), -1))


def margins(d):
    shape = (*d.one([(), (d.number(1, 3),)]), 6)
    x = d.make(d.one([np.dtype('f4'), np.dtype('f8')]), shape, 'any')
    dtype, weight = d.values[x].dtype, []
    if d.name != 'multilabel_margin_loss' and d.chance(0.4):
        weight = [d.make(dtype, shape[-1:], 'positive')]
    attrs = given(reduction=reduction(d))
    if d.name == 'multilabel_soft_margin_loss':
        return [x, d.make(dtype, shape, 'share'), *weight], attrs
    if d.name == 'multilabel_margin_loss':
        return [x, d.make(np.dtype('i8'), shape, 'labels')], attrs
    return [x, d.make(np.dtype('i4'), shape[:-1], 'positive'), *weight], given(**attrs, p=d.one([None, 2]), margin=d.one([None, 0.5]))


for name, f in (('multi_margin_loss', by_margin), ('multilabel_margin_loss', of_several), ('multilabel_soft_margin_loss', soft_margins)):
    entry(name, f, margins, weight=0.5, **FACTS)
    SIZED.add(name)
entry('nll_loss', nll, labelled, weight=2, **FACTS)
entry('cross_entropy', cross_entropy, labelled, weight=2, **FACTS)
SIZED.update(('nll_loss', 'cross_entropy'))
