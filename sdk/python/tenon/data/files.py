# SPDX-License-Identifier: MIT
"""Files of data as arrays. Whatever is wrong with one is told with its path. npy, npz, safetensors: tenon.load."""

import array
import csv
import gzip
import os
import sys
import zlib

import tenon as tn

_IDX = {0x08: ("uint8", "B", 1), 0x09: ("int8", "b", 1), 0x0B: ("int16", "h", 2), 0x0C: ("int32", "i", 4), 0x0D: ("float32", "f", 4),
        0x0E: ("float64", "d", 8)}  # fmt: skip


def _bytes(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip: {error}") from error


def read_idx(path):
    """The array of an IDX file (MNIST's format), gzipped or not."""
    data = _bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX:
        raise ValueError(f"{path}: no IDX file: begins with {data[:4].hex(' ') or 'nothing'}, expected 00 00, then a type of "
                         + ", ".join(f"{kind:02x}" for kind in _IDX))
    dtype, code, size = _IDX[data[2]]
    rank, begin = data[3], 4 + 4 * data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    count = 1
    for extent in shape:
        count *= extent
    if len(data) < begin or len(data) - begin != count * size:
        raise ValueError(f"{path}: {max(len(data) - begin, 0)} bytes of elements, expected {count * size} for {dtype} of shape {tuple(shape)}")
    elements = array.array(code, data[begin:])
    if size > 1 and sys.byteorder == "little":
        elements.byteswap()
    return tn.reshape(tn.array(elements), shape) if count else tn.zeros(shape, dtype=dtype)


def read_csv(path, header=None, dtype=None, delimiter=","):
    """Columns of numbers: f32 (rows, columns), or with a header a dict of columns by name. header: None: there is one
    where the first line has no numbers only."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if not rows:
        raise ValueError(f"{path}: no rows")

    def number(text):
        try:
            return float(text)
        except ValueError:
            return None

    has_header = header if header is not None else any(number(text) is None for text in rows[0])
    names, rows = (rows[0], rows[1:]) if has_header else (None, rows)
    width, first = len(names or rows[0]), 1 + has_header
    numbers = array.array("d")
    for line, row in enumerate(rows, first):
        if len(row) != width:
            raise ValueError(f"{path}, row {line}: {len(row)} columns, expected {width}")
        for column, text in enumerate(row):
            value = number(text)
            if value is None:
                raise ValueError(f"{path}, row {line}, column {column + 1}: {text!r} is no number")
            numbers.append(value)
    table = tn.astype(tn.reshape(tn.array(numbers), [len(rows), width]), dtype or tn.float32) if rows else tn.zeros([0, width])
    if names is None:
        return table
    if len(set(names)) != len(names):
        raise ValueError(f"{path}: two columns have one name")
    return {name: table[:, i] for i, name in enumerate(names)}


def read_text(path, vocabulary=None):
    """The characters of a text as numbers, int32, and the vocabulary: a sorted text, in which they are positions."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = vocabulary or "".join(sorted(set(text)))
    position = {c: i for i, c in enumerate(known)}
    strange = next((c for c in text if c not in position), None)
    if strange is not None:
        raise ValueError(f"{path}: {strange!r} is not in the vocabulary of {len(known)} characters")
    numbers = array.array("i", [position[c] for c in text])
    return tn.array(numbers) if numbers else tn.zeros([0], dtype=tn.int32), known


def read_images(paths, size=None):
    """Pictures (png, jpg, ppm, whatever format is installed) as one array, uint8 (N, height, width, channels). paths: files, or a
    folder, whose files are taken by name; size: (height, width) that all are resampled to; without it all have one size."""
    if isinstance(paths, (str, os.PathLike)):
        paths = sorted(os.path.join(paths, name) for name in os.listdir(paths))
    pictures = []
    for path in paths:
        picture = tn.load(path)
        if picture.ndim != 3 or picture.dtype != tn.uint8:
            raise ValueError(f"{path}: {picture.dtype} of shape {picture.shape}, expected a picture: uint8 (height, width, channels)")
        if size is not None and picture.shape[:2] != tuple(size):
            mode = "parts" if all(new <= old for new, old in zip(size, picture.shape)) else "linear"  # means, or lines between pixels
            resampled = tn.nn.resample2d(tn.expand_dims(tn.astype(picture, tn.float32), 0), list(size), mode=mode)
            picture = tn.astype(tn.clip(tn.round(resampled[0]), 0, 255), tn.uint8)
        if pictures and picture.shape != pictures[0].shape:
            raise ValueError(f"{path}: a picture of shape {picture.shape}, expected {pictures[0].shape} as the first one has"
                             + ("" if size else ": give a size"))
        pictures.append(picture)
    if not pictures:
        raise ValueError("read_images: no pictures")
    return tn.stack(pictures, axis=0)


def fashion_mnist(folder="/usr/share/datasets/fashion-mnist", part="train"):
    """(images, labels) of Fashion-MNIST, or MNIST, uint8: part "train" or "test". Debian: dataset-fashion-mnist."""
    if part not in ("train", "test"):
        raise ValueError(f"fashion_mnist: part is {part!r}, expected 'train' or 'test'")
    stem = {"train": "train", "test": "t10k"}[part]

    def read(name):
        path = os.path.join(folder, f"{stem}-{name}")
        return read_idx(path if os.path.exists(path) else path + ".gz")

    images, labels = read("images-idx3-ubyte"), read("labels-idx1-ubyte")
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise ValueError(f"{folder}: images of shape {images.shape} and labels of {labels.shape}, expected (N, H, W) and (N,)")
    return images, labels
