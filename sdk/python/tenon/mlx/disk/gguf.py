# SPDX-License-Identifier: MIT
"""Files of format gguf as MLX reads and writes them: metadata with their dtypes, blocks of 4 and 8 bits as weights,
scales and biases."""

import mmap
import struct

from ... import _core
from ..convert import convert
from ..dtypes import of_name
from ..table import array, base, wrap

_MAGIC, _VERSION, _ALIGNMENT = b"GGUF", 3, 32
_TEXT, _LIST = 8, 9
# Types of metadata: struct's letter, and the dtype.
_VALUES = {0: ("B", "uint8"), 1: ("b", "int8"), 2: ("H", "uint16"), 3: ("h", "int16"), 4: ("I", "uint32"), 5: ("i", "int32"),
           6: ("f", "float32"), 7: ("?", "bool"), 10: ("Q", "uint64"), 11: ("q", "int64"), 12: ("d", "float32")}
# Types of tensors: dtypes of elements, and blocks of 32 as (name, bytes, bits).
_ELEMENTS = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 30: "bfloat16"}
_BLOCKS = {2: ("q4_0", 18, 4), 3: ("q4_1", 20, 4), 8: ("q8_0", 34, 8)}


class _Reader:
    """Reads a file's head in order."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise RuntimeError("[load_gguf] The file ends within its head. Perhaps an incomplete download or corrupt file?")
        self.at += count
        return self.data[self.at - count:self.at]

    def numbers(self, letters):
        return struct.unpack(f"<{letters}", self.take(struct.calcsize(f"<{letters}")))

    def text(self):
        return self.take(self.numbers("Q")[0]).decode("utf-8", "replace")

    def value(self):
        kind, = self.numbers("I")
        if kind == _TEXT:
            return self.text()
        if kind == _LIST:
            kind, count = self.numbers("IQ")
            if kind == _TEXT:
                return [self.text() for _ in range(count)]
            letter, name = self._known(kind)
            size = struct.calcsize(f"<{letter}")
            if count > len(self.data) // size:
                self.take(count * size)
            return wrap(convert(list(self.numbers(f"{count}{letter}")), of_name(name).tenon))
        letter, name = self._known(kind)
        return wrap(convert(self.numbers(letter)[0], of_name(name).tenon))

    @staticmethod
    def _known(kind):
        if kind not in _VALUES:
            raise RuntimeError(f"[load_gguf] Received unexpected type {kind}.")
        return _VALUES[kind]


def _elements(raw, name, shape):
    """An array of little-endian bytes."""
    if not len(raw):
        return base.zeros(list(shape), dtype=name)
    return base.reshape(base.view(_core.array(raw), name), list(shape))


def _blocks(raw, kind, shape):
    """Weights of 32 bits, scales and biases of a tensor in blocks of 32."""
    name, size, bits = _BLOCKS[kind]
    if shape[-1] % 32:
        raise RuntimeError(f"[load_gguf] a tensor of {name} has incompatible last dim shape: {shape[-1]}")
    blocks = base.reshape(_core.array(raw), [-1, size])
    head = size - 4 * bits
    scales = base.view(blocks[:, :2], "float16")
    bytes_ = blocks[:, head:]
    if bits == 8:
        packed, biases = base.bitwise_xor(bytes_, convert(128, bytes_.dtype)), base.multiply(scales, convert(-128.0, scales.dtype))
    else:
        low, high = base.bitwise_and(bytes_, convert(15, bytes_.dtype)), base.right_shift(bytes_, convert(4, bytes_.dtype))
        each = base.concatenate([low, high], -1)
        packed = base.bitwise_or(each[:, ::2], base.left_shift(each[:, 1::2], convert(4, bytes_.dtype)))
        biases = base.view(blocks[:, 2:4], "float16") if name == "q4_1" else base.multiply(scales, convert(-8.0, scales.dtype))
    few = [*shape[:-1], shape[-1] // 32]
    words = base.view(base.reshape(packed, [-1, 4]), "uint32")
    return (base.reshape(words, [*shape[:-1], shape[-1] * bits // 32]), base.reshape(scales, few), base.reshape(biases, few))


def load(path):
    """The arrays of a file by name, and its metadata."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        head = _Reader(mapped)
        magic, version, num_tensors, num_values = head.numbers("4sIQQ")
        if magic != _MAGIC or version not in (2, 3):
            raise RuntimeError(f"[load_gguf] {path} is no file of format gguf, version 2 or 3.")
        metadata = {head.text(): head.value() for _ in range(num_values)}
        tensors = [_tensor(head) for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment")
        alignment = _ALIGNMENT if alignment is None else int(alignment.item())
        begin = -(-head.at // alignment) * alignment
        arrays = {}
        for name, shape, kind, offset in tensors:
            size = _bytes(shape, kind)
            if size is None:
                raise RuntimeError(f"[load_gguf] {path}: tensor '{name}' has a quantised format that MLX keeps no blocks of; "
                                   "tenon.load and tenon.quant.dequantize read it.")
            raw = mapped[begin + offset:begin + offset + size]
            if len(raw) != size:
                raise RuntimeError(f"[load_gguf] Tensor '{name}' extends past the end of the file. Perhaps an incomplete "
                                   "download or corrupt file?")
            if kind in _ELEMENTS:
                arrays[name] = wrap(_elements(raw, _ELEMENTS[kind], shape))
                continue
            stem = name.removesuffix(".weight")
            for key, x in zip((name, f"{stem}.scales", f"{stem}.biases"), _blocks(raw, kind, shape)):
                arrays[key] = wrap(x)
    return arrays, metadata


def _tensor(head):
    name = head.text()
    rank, = head.numbers("I")
    shape = head.numbers(f"{rank}Q")[::-1]
    kind, offset = head.numbers("IQ")
    return name, shape, kind, offset


def _bytes(shape, kind):
    """The bytes of a tensor; None for what is neither elements nor blocks that MLX keeps."""
    count = 1
    for n in shape:
        count *= n
    if kind in _ELEMENTS:
        return count * of_name(_ELEMENTS[kind]).size
    return count // 32 * _BLOCKS[kind][1] if kind in _BLOCKS else None


def _packed(value, key):
    """A value of metadata with its type."""
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return struct.pack("<IIQ", _LIST, _TEXT, len(value)) + b"".join(map(_text, value))
    x = value._x if isinstance(value, array) else None
    kinds = [kind for kind, (_, name) in _VALUES.items() if x is not None and name == x.dtype.name]
    if not kinds or x.ndim > 1:
        raise ValueError(f"[save_gguf] Unsupported metadata {key}: expected a text, texts, or an array of at most one axis "
                         "of integers, bools or float32.")
    numbers = x.tolist() if x.ndim else [x.item()]
    packed = struct.pack(f"<{len(numbers)}{_VALUES[kinds[0]][0]}", *numbers)
    return struct.pack("<I", kinds[0]) + packed if x.ndim == 0 else struct.pack("<IIQ", _LIST, kinds[0], x.size) + packed


def _text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def save(path, arrays, metadata):
    """Writes arrays by name and metadata."""
    of_dtype = {name: kind for kind, name in _ELEMENTS.items() if name != "bfloat16"}
    head = [struct.pack("<4sIQQ", _MAGIC, _VERSION, len(arrays), len(metadata))]
    head += [_text(key) + _packed(value, key) for key, value in metadata.items()]
    offset = 0
    for name, x in arrays.items():
        if x._x.dtype.name not in of_dtype:
            raise ValueError(f"[save_gguf] dtype {x._x.dtype.name} is not supported")
        shape = x.shape or (1,)
        head.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], of_dtype[x._x.dtype.name], offset))
        offset += -(-x.nbytes // _ALIGNMENT) * _ALIGNMENT
    with open(path, "wb") as file:
        file.write(b"".join(head))
        for x in arrays.values():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            if x.size:
                file.write(memoryview(base.view(base.flatten(x._x), "uint8")))
