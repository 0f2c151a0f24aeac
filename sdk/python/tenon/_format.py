# SPDX-License-Identifier: MIT
"""Arrays as text, as NumPy writes them: shortest digits that tell a number from its neighbours,
one width for all, and the middle of large arrays left out."""

import decimal
import math
import struct

from . import _core
from ._index import get

THRESHOLD, EDGE, WIDTH, DIGITS = 1000, 3, 75, 8



def _code(dtype):
    """The format of struct of a number of the dtype, or of one that holds it; None: Python's own."""
    return {"float16": "e", "float64": None, "complex128": None}.get(dtype.name, "f")


def _decimal(value, code):
    """The shortest decimal that reads back as the number of the dtype, as Python's number."""
    if code is None or not math.isfinite(value):
        return value
    for digits in range(9):
        text = float(f"{value:.{digits}e}")
        try:
            if struct.unpack(code, struct.pack(code, text))[0] == value:
                return text
        except OverflowError:  # rounded up beyond the dtype's greatest number
            continue
    return value


def _digits(value, code):
    """The shortest digits of a number, and the decimal exponent of the first digit."""
    _, digits, exponent = decimal.Decimal(repr(_decimal(value, code))).as_tuple()
    text = "".join(map(str, digits))
    return text.rstrip("0"), exponent + len(text) - 1 if value else 0


def _positional(value, code):
    """The absolute value without an exponent, with at most DIGITS digits behind the point and no trailing zeros."""
    digits, exponent = _digits(abs(value), code)
    if len(digits) - 1 - exponent > DIGITS:
        return f"{abs(value):.{DIGITS}f}".rstrip("0")
    if exponent < 0:
        return f"0.{'0' * (-1 - exponent)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return f"{digits[:exponent + 1]}.{digits[exponent + 1:]}"


def _decimals(value, code):
    """The digits behind the point that a number with an exponent needs, at most DIGITS."""
    digits = _digits(abs(value), code)[0]
    return len(digits if len(digits) <= DIGITS else f"{abs(value):.{DIGITS}e}".partition("e")[0].replace(".", "").rstrip("0")) - 1


def _scientific(value, decimals):
    """The absolute value's significand as a text of so many decimals, and its exponent."""
    mantissa, _, exponent = f"{abs(value):.{decimals}e}".partition("e")
    return mantissa if decimals else mantissa + ".", int(exponent)


def _sign(value, always):
    return "-" if math.copysign(1, value) < 0 else "+" if always else ""


def _float_texts(values, code, always_signed=False):
    """Numbers of one width, each with a sign where `always_signed`."""
    finite = [v for v in values if math.isfinite(v)]
    sizes = [abs(v) for v in finite if v != 0]
    if sizes and (max(sizes) >= 1e8 or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1000):
        decimals = max(0, *(_decimals(v, code) for v in finite))
        parts = [_scientific(v, decimals) for v in finite]
        width = max(2, *(len(str(abs(e))) for _, e in parts))
        texts = iter([f"{m}e{'-' if e < 0 else '+'}{abs(e):0{width}d}" for m, e in parts])
    else:
        parts = [_positional(v, code) for v in finite]
        end = max((len(p.partition(".")[2]) for p in parts), default=0)
        texts = iter([p + " " * (end - len(p.partition(".")[2])) for p in parts])
    result = []
    for v in values:
        if math.isfinite(v):
            result.append(_sign(v, always_signed) + next(texts))
        else:
            result.append("+" * always_signed + "nan" if math.isnan(v) else _sign(v, always_signed) + "inf")
    width = max(map(len, result), default=0)
    return [t.rjust(width) for t in result]


def _complex_texts(values, code):
    re = _float_texts([v.real for v in values], code)
    im = _float_texts([v.imag for v in values], code, True)
    return [f"{a}{b.rstrip()}j{' ' * (len(b) - len(b.rstrip()))}" for a, b in zip(re, im)]


def _texts(values, x):
    dtype = x.dtype
    if dtype.kind == "b":
        return [str(v).rjust(5 if x.ndim else 0) for v in values]
    if dtype.kind in "iu":
        texts = [str(v) for v in values]
        width = max(map(len, texts), default=0)
        return [t.rjust(width) for t in texts]
    return (_complex_texts if dtype.kind == "c" else _float_texts)(values, _code(dtype))


def _edges(x):
    """The array without its middle, and which axes were shortened."""
    short = [n > 2 * EDGE and x.size > THRESHOLD for n in x.shape]
    for axis, cut in enumerate(short):
        if cut:
            kept = [*range(EDGE), *range(x.shape[axis] - EDGE, x.shape[axis])]
            x = get(x, (slice(None),) * axis + (kept,))
    return x, short


def _flat(nested, rank, out):
    if rank == 0:
        out.append(nested)
    else:
        for item in nested:
            _flat(item, rank - 1, out)


def _lines(words, separator, indent, width):
    """Words of one row, broken where they do not fit."""
    lines, line = [], indent
    for k, word in enumerate(words):
        if len(line) + len(word) > width and len(line) > len(indent):
            lines.append(line.rstrip())
            line = indent
        line += word + (separator if k + 1 < len(words) else "")
    return "\n".join([*lines, line])


def _join(texts, shape, short, separator, indent, width):
    """Nested brackets around the texts of an iterator, in row-major order."""
    if not shape:
        return next(texts)
    inner, parts = indent + " ", []
    for i in range(shape[0]):
        if short[0] and i == EDGE:
            parts.append("...")
        parts.append(_join(texts, shape[1:], short[1:], separator, inner, width - 1))
    if len(shape) == 1:
        room = width - max(len(separator.rstrip()), 1)
        body = _lines(parts, separator, inner, room)
    else:
        gap = separator.rstrip() + "\n" * (len(shape) - 1)
        body = gap.join(inner + part for part in parts)
    return "[" + body[len(inner):] + "]"


def _body(x, separator, indent):
    if x.size == 0:
        return "[]"
    part, short = _edges(x)
    values = []
    _flat(part.tolist(), part.ndim, values)
    return _join(iter(_texts(values, x)), part.shape, short, separator, indent, WIDTH)


def _number(x):
    """An array without axes, as Python writes numbers, of the digits that the dtype needs."""
    value, code = x.item(), _code(x.dtype)
    if x.dtype.kind == "c":
        return str(complex(_decimal(value.real, code), _decimal(value.imag, code)))
    return str(_decimal(value, code) if x.dtype.kind == "f" else value)


def text(x):
    """The elements, in brackets; within the body of a vmap those of all slices."""
    batch = _core.batch_of(x)
    if batch is not None:
        return f"<each slice of {text(batch)}>"
    return _body(x, " ", "") if x.ndim else _number(x)


def representation(x):
    if getattr(x, "ndim", None) is None:
        return object.__repr__(x)
    try:
        body = _body(x, ", ", " " * len("array("))
    except ValueError as error:
        if "within the body" not in str(error):
            raise
        return f"<{x.dtype.name}{list(x.shape)} within a traced body>"
    shape = f", shape={x.shape}" if x.size == 0 and x.ndim > 1 else ""
    body = f"array({body}{shape}"
    if x.dtype.name in ("float32", "int64", "complex64", "bool") and x.size:
        return body + ")"
    kind = f"dtype={x.dtype.name})"
    last = len(body) + 1 - (body.rfind("\n") + 1)
    return f"{body},{' ' if last + len(kind) + 1 <= WIDTH else chr(10) + ' ' * len('array(')}{kind}"
