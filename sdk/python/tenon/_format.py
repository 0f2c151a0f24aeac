# SPDX-License-Identifier: MIT
"""Arrays as text, as NumPy writes them: shortest digits that tell a number from its neighbours,
one width for all, and the middle of large arrays left out."""

import math
import struct

from . import _core
from ._index import get

THRESHOLD, EDGE, WIDTH = 1000, 3, 75


def _shortest(value, narrow):
    """The shortest decimal that reads back as the number."""
    if not narrow or not math.isfinite(value):
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return repr(float(text))
    return repr(value)


def _decimals(value, narrow):
    """The digits after the point that a number needs, at most 8."""
    text = _shortest(value, narrow)
    if "e" in text:
        text = f"{value:.8f}"
    return min(len(text.partition(".")[2].rstrip("0")), 8)


def _float_texts(values, narrow):
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    if finite and (max(finite) >= 1e8 or min(finite) < 1e-4 or max(finite) / min(finite) > 1000 * 1e5):
        digits = max(len(f"{float(_shortest(v, narrow)):.8e}".partition("e")[0].rstrip("0")) - 2 for v in finite)
        return [f"{v:.{max(digits, 1)}e}" if math.isfinite(v) else repr(v) for v in values]
    most = max([_decimals(v, narrow) for v in finite], default=0)
    texts = []
    for v in values:
        if not math.isfinite(v):
            texts.append(repr(v))
            continue
        text = f"{v:.{_decimals(v, narrow)}f}"
        text = text if "." in text else text + "."
        texts.append(text + " " * (most - len(text.partition(".")[2])))
    return texts


def _texts(values, dtype):
    if dtype.kind == "b":
        return [str(v) for v in values]
    if dtype.kind in "iu":
        return [str(v) for v in values]
    narrow = dtype.name not in ("float64", "complex128")
    if dtype.kind == "c":
        re = _float_texts([v.real for v in values], narrow)
        im = _float_texts([v.imag for v in values], narrow)
        return [f"{a}{'' if b.startswith('-') else '+'}{b}j" for a, b in zip(re, im)]
    return _float_texts(values, narrow)


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


def _join(texts, shape, short, indent):
    """Nested brackets around the texts of an iterator, in row-major order."""
    if not shape:
        return next(texts)
    parts = []
    for i in range(shape[0]):
        if short[0] and i == EDGE:
            parts.append("...")
        parts.append(_join(texts, shape[1:], short[1:], indent + 1))
    if len(shape) > 1:
        gap = ",\n" + "\n" * (len(shape) - 2) + " " * (indent + 1)
        return "[" + gap.join(parts) + "]"
    lines, line = [], ""
    for k, part in enumerate(parts):
        part += "," if k + 1 < len(parts) else ""
        if line and len(line) + len(part) + 1 + indent > WIDTH:
            lines.append(line)
            line = part
        else:
            line = f"{line} {part}" if line else part
    lines.append(line)
    return "[" + ("\n" + " " * (indent + 1)).join(lines) + "]"


def text(x, indent=0):
    """The elements, in brackets."""
    if x.size == 0:
        return "[]"
    part, short = _edges(x)
    values = []
    _flat(part.tolist(), part.ndim, values)
    texts = _texts(values, x.dtype)
    width = max(map(len, texts)) if x.ndim else 0
    return _join(iter([t.rjust(width) for t in texts]), part.shape, short, indent)


def representation(x):
    if getattr(x, "ndim", None) is None:
        return object.__repr__(x)
    try:
        body = text(x, len("array("))
    except ValueError as error:
        if "within the body" not in str(error):
            raise
        return f"<{x.dtype.name}{list(x.shape)} within a traced body>"
    tail = "" if x.dtype.name in ("float32", "int64", "bool") and x.size else f", dtype={x.dtype.name}"
    shape = f", shape={x.shape}" if x.size == 0 and x.ndim > 1 else ""
    return f"array({body}{shape}{tail})"
