# SPDX-License-Identifier: MIT
"""Cases of golden.py for operators that are made of others, and for running results, orders and
attention: what NumPy's functions give, or PyTorch's formulas written with NumPy."""
import math

import numpy as np

random = np.random.default_rng(11)
F4, F8, I4, I8, B1, U1 = (np.dtype(n) for n in ('f4', 'f8', 'i4', 'i8', '?', 'u1'))
SOME = (F4, F8, I4, U1, B1)
END = 2**63 - 1


def whole(dtype, shape, low=-9, high=9):
    low = 0 if dtype.kind in 'ub' else low
    return random.integers(low, 1 if dtype.kind == 'b' else high, shape, endpoint=True).astype(dtype)


def real(shape, dtype=F8):
    return random.uniform(-2, 2, shape).astype(dtype)


def arrangement(add, dtypes):
    for d in SOME:
        x = whole(d, (3, 4))
        add('base.flip', [x], np.flip(x))
        add('base.roll', [x], np.roll(x, 5), shift=[5])
        add('base.roll', [x], np.roll(x, (1, -6), (0, 1)), shift=[1, -6], axis=[0, -1])
        add('base.stack', [x, x[::-1].copy()], np.stack([x, x[::-1]], 1), axis=1)
        add('base.repeat', [x], np.repeat(x, 3), repeats=[3])
        add('base.tile', [x], np.tile(x, (2, 1, 3)), reps=[2, 1, 3])
        add('base.tril', [x], np.tril(x))
        add('base.triu', [x], np.triu(x, 1), k=1)
    x = whole(I4, (2, 3, 4))
    for axes in [(0,), (-1, 1), ()]:
        add('base.flip', [x], np.flip(x, axes), axis=list(axes))
    add('base.roll', [x], np.roll(x, 1, (1, 1, 2)), shift=[1], axis=[1, 1, 2])
    add('base.roll', [x[:0]], x[:0], shift=[3], axis=[0])
    add('base.stack', [x, x, x], np.stack([x] * 3, -1), axis=-1)
    add('base.stack', [np.array(3.5)], np.array([3.5]))
    add('base.repeat', [x], np.repeat(x, [2, 0, 0, 1], 2), repeats=[2, 0, 0, 1], axis=-1)
    add('base.repeat', [x], np.repeat(x, [0, 0, 0], 1), repeats=[0, 0, 0], axis=1)
    add('base.repeat', [x[:, :0]], np.repeat(x[:, :0], 2, 1), repeats=[2], axis=1)
    for reps in [(2,), (0, 1), (1, 1, 1, 2), (), (2, 3, 1, 2, 1, 2)]:
        add('base.tile', [x], np.tile(x, reps), reps=list(reps))
    for k in (-5, -1, 2, END):
        small = min(k, 9)
        add('base.tril', [x], np.tril(x, small), k=k)
        add('base.triu', [x], np.triu(x, small), k=k)


def creation(add, dtypes):
    for n, m, k in [(3, None, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (2, 2, 7)]:
        add('base.eye', [], np.eye(n, m, k, 'f4'), n=n, m=-1 if m is None else m, k=k)
    for name, d in [('bool', B1), ('u8', U1), ('i64', I8), ('f64', F8)]:
        add('base.eye', [], np.eye(2, dtype=d), n=2, dtype=name)
    for args in [(0, 1, 5, True), (2, -3, 7, False), (1, 2, 1, True), (1, 2, 0, True), (-1e3, 1e3, 2, True)]:
        given = dict(zip(('start', 'stop', 'num', 'endpoint'), args))
        add('base.linspace', [], np.linspace(*args), 4, **given)
    add('base.linspace', [], np.linspace(0, 3, 50), 4, start=0, stop=3)
    add('base.linspace', [], np.linspace(0, 1, 4).astype('f4'), 2, start=0, stop=1, num=4, dtype='f32')
    add('base.linspace', [], np.linspace(-3, 4, 6, dtype='i4'), start=-3, stop=4, num=6, dtype='i32')
    for d in (I4, I8, U1, np.dtype('u8')):
        x = np.array([[0, 2], [1, 5]]).astype(d)
        x[0, 0] = d.type(-1 if d.kind == 'i' else 2**(8 * d.itemsize) - 1)
        hot = (x[..., None] == np.arange(3).astype(d)).astype('i8')
        add('base.one_hot', [x], hot, num_classes=3)
        add('base.one_hot', [x], np.moveaxis(hot, -1, 0).astype('f4'), num_classes=3, axis=0, dtype='f32')


def statistics(add, dtypes):
    for d in dtypes:
        x = whole(d, (3, 4, 5), -3, 3)
        add('base.argmin', [x], np.argmin(x))
        add('base.argmin', [x], np.argmin(x, -1), axis=-1)
        for axes in [None, (0,), (-1, 1)]:
            given = {} if axes is None else {'axis': list(axes)}
            add('base.all', [x], np.all(x, axes), **given)
            add('base.any', [x - x if d.kind != 'b' else x & ~x], np.any(x - x if d.kind != 'b' else x & ~x, axes), **given)
            if d != np.dtype('f2'):
                wide = np.var(x, axes)
                add('base.var', [x], wide, 32, **given)
                add('base.std', [x], np.std(x, axes, ddof=1, keepdims=True), 32, ddof=1, keepdims=True, **given)
    low = np.array([[-2**63, 5], [2**63 - 1, -2**63]])
    add('base.argmin', [low], np.argmin(low, 0), axis=0)
    nan = np.array([[1, np.nan, -3], [4, -2, -2]], 'f4')
    add('base.argmin', [nan], np.argmin(nan, 1), axis=1)
    add('base.any', [nan], np.any(nan, 0), axis=[0])
    empty = np.zeros((2, 0), 'f4')
    for axes in [(1,), (0, 1)]:
        add('base.all', [empty], np.all(empty, axes), axis=list(axes))
        add('base.any', [empty], np.any(empty, axes), axis=list(axes))
    add('base.var', [np.ones((2, 3), 'f4')], np.zeros((2,), 'f4'), axis=[1])
    add('base.var', [np.array([1, 2], 'f4')], np.array(np.inf, 'f4'), ddof=2)


def running(add, dtypes):
    functions = {'sum': np.cumsum, 'prod': np.cumprod, 'max': np.maximum.accumulate,
                 'min': np.minimum.accumulate}
    for d in dtypes:
        x = whole(d, (3, 4, 5), -2, 2)
        for name, f in functions.items():
            for axis in (0, 2, -2):
                add('base.cum' + name, [x], f(x, axis), axis=axis)
            add('base.cum' + name, [x], np.flip(f(np.flip(x, 1), 1), 1), axis=1, reverse=True)
            add('base.cum' + name, [x], f(x.ravel()))
    for shape, axis in [((70001,), 0), ((2, 1500), 1), ((300, 7), 0), ((3, 0), 1), ((0, 2), 1)]:
        x = whole(I4, shape)
        y = np.abs(real(shape))
        for name, f in functions.items():
            add('base.cum' + name, [x], f(x, axis), axis=axis)
        add('base.cumsum', [y], np.cumsum(y, axis), 1 << 10, axis=axis)
        add('base.cumsum', [y], np.flip(np.cumsum(np.flip(y, axis), axis), axis), 1 << 10, axis=axis, reverse=True)
    x = np.array([[1, np.nan, 3, -np.inf], [np.inf, 2, -np.inf, 5]], 'f4')
    for name, f in functions.items():
        add('base.cum' + name, [x], f(x, 1), axis=1)
    add('base.cummax', [np.array([-2**63, 2**63 - 1, 0])], np.array([-2**63, 2**63 - 1, 2**63 - 1]), axis=0)


def order_of(x, axis, descending=False):
    """Stable, NaN as the greatest."""
    if not descending:
        return np.argsort(x, axis, kind='stable')
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind='stable'), axis)


def orders(add, dtypes):
    def both(x, axis, descending):
        at = order_of(x, axis, descending)
        given = {'axis': axis, 'descending': descending}
        add('base.argsort', [x], at, **given)
        add('base.sort', [x], np.take_along_axis(x, at, axis), **given)
    for d in dtypes:
        x = whole(d, (3, 9, 2), -3, 3)
        both(x, 1, False)
        both(x, -1, True)
        at = order_of(x, 1, True)[:, :4]
        add('base.topk', [x], (np.take_along_axis(x, at, 1), at), k=4, axis=1)
    bits = np.array([1, np.nan, -0.0, 0, -np.inf, np.inf, np.nan, -1, 5e-324, 1e300])
    for d in ('f8', 'f4', 'f2'):
        for descending in (False, True):
            both(bits.astype(d), 0, descending)
    for n in (1, 2, 17, 255, 256, 257, 1025, 3000):
        for d in (F4, I8):
            x = whole(d, (n,), -n // 2, n)
            both(x, 0, bool(n % 2))
            for k in {0, 1, min(n, 7), min(n, 3000)}:
                at = order_of(x, 0, False)[:k]
                add('base.topk', [x], (x[at], at), k=k, axis=0, largest=False)
    x = random.integers(-2**63, 2**63 - 1, (4, 900))
    both(x, 1, False)
    both(x.view('u8'), 1, True)
    both(real((5, 1100)).astype('f4'), 0, False)
    both(x[:0], 1, False)
    both(x[:, :0], 1, False)


def gathering(add, dtypes):
    for d in SOME:
        x = whole(d, (4, 5, 3))
        at = np.array([[[0], [-1], [2]]])
        add('base.take_along_axis', [x, at], np.take_along_axis(x, at, 1), axis=1)
        i, j = np.array([[0], [3]]), np.array([1, -1, 4], 'i2')
        add('base.gather', [x, i, j], x[i, j])
        add('base.gather', [x, j % 3, i], np.transpose(x, (2, 0, 1))[j % 3, i], axes=[2, 0])
        put = x.copy()
        np.put_along_axis(put, np.repeat(np.repeat(at, 4, 0), 3, 2), whole(d, (4, 3, 3)) * 0, 1)
        add('base.put_along_axis', [x, np.repeat(np.repeat(at, 4, 0), 3, 2), np.zeros((3, 1), d)], put, axis=1)
        u = whole(d, (2, 3, 3))
        for mode, f in [('set', None), ('add', np.add), ('max', np.maximum), ('min', np.minimum)]:
            if d.kind == 'b' and mode != 'set':
                continue
            out = x.copy()
            if f:
                f.at(out, (i, j), u)
            else:
                out[i, j] = u
            add('base.scatter', [x, u, i, j], out, mode=mode)
            if f:
                flat, k = whole(d, (6,)), np.array([5, 0, -1, 0, 2, 99])
                want, kept = flat.copy(), k < 6
                f.at(want, k[kept], whole(d, (6,))[kept] * 0 + 1)
                add('base.scatter_' + mode, [flat, k, np.ones(6, d)], want)
    x = whole(I8, (4, 3))
    add('base.take_along_axis', [x, np.array([[9, -9, 1]])], np.array([[x[3, 0], x[0, 1], x[1, 2]]]), axis=0)
    add('base.gather', [x, np.array(9), np.array(-9)], x[3, 0])
    out = x.copy()
    out[1, 2] = 7
    add('base.scatter', [x, np.array([5, 7, 6]), np.array([4, 1, 1]), np.array([0, -1, -4])], out)
    big = np.array([2**63 + 1, 1], 'u8')
    add('base.gather', [x, big], x[[3, 1]])
    out = x.copy()
    out[1] += 5
    add('base.scatter', [x, np.array(5), big], out, mode='add')
    for n, m in [(7, 3000), (3000, 500)]:
        x, k, u = real((n, 2), F4), random.integers(-n, n, (m,)), real((m, 2), F4)
        u[m // 2] = np.nan
        last = x.copy()
        last[k] = u
        add('base.scatter_set', [x, k, u], last)
        for mode, f in [('max', np.maximum), ('min', np.minimum)]:
            out = x.copy()
            f.at(out, k, u)
            add('base.scatter_' + mode, [x, k, u], out)
    flags, to = whole(B1, (9,)), random.integers(0, 9, (30,))
    out, u = flags.copy(), whole(B1, (30,))
    out[to] = u
    add('base.scatter_set', [flags, to, u], out)


def einsums(add, dtypes):
    sizes = dict(zip('abcdefghij', (2, 3, 4, 5, 2, 3, 2, 3, 2, 4)))

    def case(equation, *terms, dtype=F8):
        arrays = [whole(dtype, [sizes[t] for t in term.replace('1', 'a')][:len(term)]) for term in terms]
        arrays = [x[tuple(slice(0, 1) if t == '1' else slice(None) for t in term)] for x, term in zip(arrays, terms)]
        add('base.einsum', arrays, np.einsum(equation, *arrays, optimize=False).astype(dtype), 64, equation=equation)
    for d in SOME:
        case('ab,bc->ac', 'ab', 'bc', dtype=d)
        case('ab,ab', 'ab', 'ab', dtype=d)
    for equation, *terms in [
            ('ab->ba', 'ab'), ('ab', 'ab'), ('ba', 'ab'), ('ab->', 'ab'), ('ab->b', 'ab'), ('aa', 'aa'),
            ('aa->a', 'aa'), ('abab->ab', 'abab'), ('aba', 'aba'), ('aaa->a', 'aaa'), ('a,b', 'a', 'b'),
            ('a,a', 'a', 'a'), ('a,a->a', 'a', 'a'), ('ab,cb->ca', 'ab', 'cb'), ('abc,acd->abd', 'abc', 'acd'),
            ('abc,abd->acd', 'abc', 'abd'), ('ba,cd->abcd', 'ba', 'cd'), (' a b , b c -> a c ', 'ab', 'bc'),
            ('ab,bc,cd->ad', 'ab', 'bc', 'cd'), ('ab,bc,cd,de', 'ab', 'bc', 'cd', 'de'),
            ('a,b,c->bac', 'a', 'b', 'c'), ('ab,b,a->', 'ab', 'b', 'a'), ('abc,cd,bd->a', 'abc', 'cd', 'bd'),
            ('aab,bc->ac', 'aab', 'bc'), ('ab,c->ac', 'ab', 'c'), ('ab,1b->ab', 'ab', '1b'),
            ('abcd,abde->abce', 'abcd', 'abde'), ('bA,Ac->bc', 'ba', 'ac'), ('Ab,bA', 'ab', 'ba')]:
        case(equation.replace('1', 'a'), *terms)
    x, y = whole(F8, (2, 3, 4)), whole(F8, (3, 4, 5))
    for equation, *arrays in [('...ij,...jk->...ik', x, y[:2]), ('...j,...jk', x, y), ('...->...', x), ('...ij->ji...', x),
                              ('i...,i...->...', x, x), ('...i->...', x), ('...,...', x, x[0]),
                              ('ij...,...', x, np.array(2.0)), ('...a,...b->...ab', x, x[:1]),
                              ('...ii->...i', whole(F8, (2, 3, 3)))]:
        add('base.einsum', arrays, np.einsum(equation, *arrays), 64, equation=equation)
    add('base.einsum', [np.zeros((2, 0)), np.zeros((0, 3))], np.zeros((2, 3)), equation='ij,jk')
    for equation, *dtypes in [('ab,bc->ac', I4, F4), ('ab,bc->ac', U1, I8), ('ab,bc', B1, F4), ('ab,bc', F4, F8),
                              ('ab,bc', U1, np.dtype('i1')), ('ab,bc,cd->ad', F4, B1, F8), ('ab,bc,c->a', B1, U1, I4)]:
        arrays = [whole(d, [sizes[t] for t in term]) for d, term in zip(dtypes, equation.split('->')[0].split(','))]
        add('base.einsum', arrays, np.einsum(equation, *arrays), 64, equation=equation)
    x, y, z = real((3, 40)), real((40, 50)), real((50, 2))
    add('base.einsum', [x, y, z], x @ y @ z, 1 << 8, equation='ij,jk,kl->il')


def erf(x):
    return np.vectorize(math.erf)(x)


def layers(add, dtypes):
    for d, roundings in ((F8, 16), (F4, 16)):
        x = np.concatenate([real(20) * 4, [0, -30, 30]]).astype(d)
        w = x.astype(F8)
        add('nn.gelu', [x], (0.5 * w * (1 + erf(w / np.sqrt(2)))).astype(d), roundings)
        add('nn.gelu', [x], (0.5 * w * (1 + np.tanh(np.sqrt(2 / np.pi) * (w + 0.044715 * w**3)))).astype(d),
            roundings, approximate='tanh')
        add('nn.silu', [x], (w / (1 + np.exp(-w))).astype(d), roundings)
    x = real((3, 4), F4)
    add('nn.dropout', [x], x, training=False)
    add('nn.dropout', [x], x, p=0)
    add('nn.dropout', [x], x * 0, p=1)
    for seed in (0, -7, 2**40 + 3):
        key = np.array([seed & 0xffffffff, seed >> 32 & 0xffffffff], 'u4')
        kept = threefry(key, x.size).reshape(x.shape) >= int(0.3 * 2**32)
        add('nn.dropout', [x], np.where(kept, x * np.float32(1 / 0.7), 0).astype(F4), p=0.3, seed=seed)


def group_norm(x, groups, weight, bias, axis, eps):
    """torch.nn.functional.group_norm, its channels along any axis."""
    y = np.moveaxis(x, axis, 1).astype(F8)
    parts = y.reshape(x.shape[0], groups, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)
    y = parts.reshape(y.shape)
    column = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * weight.reshape(column)
    y = y if bias is None else y + bias.reshape(column)
    return np.moveaxis(y, 1, axis).astype(x.dtype)


def groups(add, dtypes):
    for d, roundings, shape, axis, parts, affine, eps in (
            (F8, 64, (2, 3, 2, 6), -1, 3, 0, 1e-5), (F8, 64, (2, 3, 2, 6), -1, 2, 2, 0.5),
            (F4, 64, (2, 6, 3, 2), 1, 3, 0, 1e-5), (F4, 64, (2, 6, 3, 2), 1, 2, 2, 0.5),
            (F4, 64, (3, 6), -1, 2, 2, 1e-5), (F8, 64, (2, 2, 6, 3), 2, 6, 1, 1e-5),
            (np.dtype('f2'), 4, (2, 3, 6), -1, 2, 2, 1e-5), (F4, 64, (2, 6, 0), 1, 2, 1, 1e-5)):
        x, given = real(shape, d), [real(6, d) for _ in range(affine)]
        of = given + [None] * (2 - affine)
        add('nn.group_norm', [x, *given], group_norm(x, parts, *of, axis, eps), roundings,
            groups=parts, axis=axis, eps=eps)


def layer_norm_gradients(x, w, g, eps):
    """The gradients of torch.nn.functional.layer_norm over the last axis."""
    x, w, g = (a.astype(F8) for a in (x, w, g))
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    y, h = (x - x.mean(-1, keepdims=True)) * scale, g * w
    dx = (h - h.mean(-1, keepdims=True) - y * (h * y).mean(-1, keepdims=True)) * scale
    rows = tuple(range(x.ndim - 1))
    return dx, (g * y).sum(rows), g.sum(rows)


def norms(add, dtypes):
    for d, shape, eps in ((F8, (3, 7), 1e-5), (F8, (2, 3, 40), 0.5), (F4, (70, 33), 1e-5), (F4, (2, 35, 64), 1e-3),
                          (F4, (5, 1030), 1e-5), (F4, (16,), 0.1), (F4, (0, 9), 1e-5), (np.dtype('f2'), (3, 20), 0.1)):
        x, w, g = real(shape, d), real(shape[-1], d), real(shape, d)
        results = layer_norm_gradients(x, w, g, eps) if x.size else (x, np.zeros(9), np.zeros(9))
        add('nn.layer_norm_grad', [x, w, g], tuple(r.astype(d) for r in results), 8 if d.itemsize == 2 else 512, eps=eps)


def threefry(key, count):
    """First words of Threefry-2x32 of 20 rounds, of the counters 0 .. count - 1."""
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    with np.errstate(over='ignore'):
        keys = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
        a, b = np.arange(count, dtype='u4') + keys[0], np.zeros(count, 'u4') + keys[1]
        for i in range(20):
            a = a + b
            turn = np.uint32(rotations[i % 8])
            b = (b << turn | b >> np.uint32(32 - turn)) ^ a
            if i % 4 == 3:
                j = i // 4 + 1
                a, b = a + keys[j % 3], b + keys[(j + 1) % 3] + np.uint32(j)
    return a


def turned(x, frequencies, position, interleaved):
    """RoFormer's rotation; `position` broadcasts to x without its last axis."""
    pairs = len(frequencies)
    angle = position[..., None] * frequencies
    out = x.copy()
    a, b = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else \
        (slice(0, pairs), slice(pairs, 2 * pairs))
    out[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
    out[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    return out


def rotation(add, dtypes):
    x, f = real((2, 3, 4, 6)), 100.0 ** (-np.arange(3) / 3)
    t = np.arange(4.0)
    for interleaved in (False, True):
        add('nn.rope', [x, f], turned(x, f, t, interleaved), 16, interleaved=interleaved)
        add('nn.rope', [x, f[:2], np.array(5)], turned(x, f[:2], t + 5, interleaved), 64, interleaved=interleaved)
        offset = np.array([7, -2], 'i4')
        position = np.arange(3.0)[None, :, None] + offset[:, None, None]
        add('nn.rope', [x, f, offset], turned(x, f, position, interleaved), 64, interleaved=interleaved, axis=-3)
    add('nn.rope', [x[0, 0].astype('f4'), f.astype('f4')],
        turned(x[0, 0].astype('f4'), f.astype('f4'), t.astype('f4'), False).astype('f4'), 16)


def attention_weights(q, k, mask=None, lengths=None, scale=0, is_causal=False, window=0, soft_cap=0):
    """The softmax of the scores, and the derivative of scores by q k'. k has as many heads as q."""
    scale = scale or 1 / np.sqrt(q.shape[-1])
    s = q @ np.swapaxes(k, -1, -2) * scale
    slope = scale
    if soft_cap:
        s = soft_cap * np.tanh(s / soft_cap)
        slope = scale * (1 - (s / soft_cap) ** 2)
    rows, keys = s.shape[-2:]
    i, j = np.arange(rows)[:, None], np.arange(keys)
    seen = np.ones(s.shape, bool)
    if lengths is not None:
        n = np.asarray(lengths).reshape((-1,) + (1,) * (s.ndim - 1)) if np.ndim(lengths) else lengths
        i = i + n - rows
        seen = seen & (j < n)
    if is_causal:
        seen = seen & (j <= i)
    if window:
        seen = seen & (i - j < window)
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        s = s + mask
    e = np.where(seen, np.exp(s - s.max(-1, keepdims=True)), 0)
    total = e.sum(-1, keepdims=True)
    return np.where(total > 0, e / np.where(total > 0, total, 1), 0), slope


def shared_heads(q, x):
    groups = q.shape[-3] // x.shape[-3] if q.ndim > 2 else 1
    return np.repeat(x, groups, -3) if groups > 1 else x


def attention(q, k, v, *masks, **attrs):
    return attention_weights(q, shared_heads(q, k), *masks, **attrs)[0] @ shared_heads(q, v)


def attention_gradients(q, k, v, gradient, *masks, **attrs):
    def of_group(x, like):
        return x.reshape(like.shape[:-2] + (-1,) + like.shape[-2:]).sum(-3) if q.ndim > 2 else x
    wide_k = shared_heads(q, k)
    p, slope = attention_weights(q, wide_k, *masks, **attrs)
    dp = gradient @ np.swapaxes(shared_heads(q, v), -1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * slope
    return (ds @ wide_k, of_group(np.swapaxes(ds, -1, -2) @ q, k),
            of_group(np.swapaxes(p, -1, -2) @ gradient, v))


def attentions(add, dtypes):
    def case(q, k, v, mask=None, lengths=None, **attrs):
        inputs = [q, k, v, mask, None if lengths is None else np.asarray(lengths)]
        while inputs[-1] is None:
            inputs.pop()
        out = attention(q, k, v, mask, lengths, **attrs)
        add('nn.scaled_dot_product_attention', inputs, out, 256, **attrs)
        gradient = real(out.shape)
        add('nn.attention_grad', [q, k, v, out, gradient] + inputs[3:],
            attention_gradients(q, k, v, gradient, mask, lengths, **attrs), 1024, **attrs)
    q, k, v = real((2, 4, 3, 6)), real((2, 2, 5, 6)), real((2, 2, 5, 7))
    case(q[0, 0], k[0, 0], v[0, 0])
    case(q[0, :2], k[0], v[0], is_causal=True)
    case(q, k, v)
    for attrs in [{'scale': 0.3}, {'is_causal': True}, {'soft_cap': 0.5}, {'is_causal': True, 'window': 2},
                  {'window': 1, 'is_causal': True, 'soft_cap': 2.5, 'scale': -1.5}]:
        case(q, k, v, **attrs)
        case(q, k, v, lengths=4, **attrs)
    case(q, k, v, lengths=[5, 2], is_causal=True)
    case(q, k, v, lengths=np.array([0, 9], 'i4'))
    case(q[:, :, :1], k, v, lengths=[3, 4], is_causal=True, window=2)
    seen = random.random((2, 4, 3, 5)) < 0.6
    seen[0, 0, 1] = False
    case(q, k, v, mask=seen)
    case(q, k, v, mask=seen[:1, :1], lengths=3)
    case(q, k, v, mask=real((4, 1, 5)), is_causal=True)
    case(q, k, v, mask=real((5,)))
    case(real((3, 70, 8)), real((1, 80, 8)), real((1, 80, 4)), is_causal=True)
    case(real((1, 2, 65, 4)), real((1, 2, 300, 4)), real((1, 2, 300, 3)), mask=real((65, 300)), lengths=[290], window=270, is_causal=True)
    case(real((2, 3, 4)), real((2, 600, 4)) * 9, real((2, 600, 3)))


def make(add, dtypes):
    with np.errstate(all='ignore'):
        for family in (arrangement, creation, statistics, running, orders, gathering, einsums, layers, groups, norms,
                       rotation, attentions):
            family(add, dtypes)
