# SPDX-License-Identifier: MIT
"""mlx.core's files: npy, npz, safetensors and gguf."""

import contextlib
import json
import os
import struct
import tempfile
import zipfile

from ... import _core
from . import gguf
from ..convert import convert
from ..dtypes import dtypes
from ..table import array, base, on_stream, put, wrap

_CODES = {"bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
          "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
          "complex64": "C64"}


def _is_path(file):
    return isinstance(file, (str, os.PathLike))


def _is_stream(file, method):
    return all(hasattr(file, name) for name in (method, "seek", "tell", "closed"))


@contextlib.contextmanager
def _as_path(file, suffix):
    """A path that has what is read from a file object from where it is."""
    if _is_path(file):
        yield os.fspath(file)
        return
    with tempfile.NamedTemporaryFile(suffix=suffix) as copy:
        while block := file.read(1 << 20):
            copy.write(block)
        copy.flush()
        yield copy.name


@contextlib.contextmanager
def _to_path(file, suffix):
    """A path to write to, whose bytes then go to a file object."""
    if _is_path(file):
        name = os.fspath(file)
        yield name if name.endswith(suffix) else name + suffix
        return
    with tempfile.TemporaryDirectory(prefix="tenon-mlx-") as folder:
        path = os.path.join(folder, f"part{suffix}")
        yield path
        with open(path, "rb") as part:
            while block := part.read(1 << 20):
                file.write(block)


def _known(x, what):
    """An array of mlx, of a dtype that MLX has."""
    if x.dtype.name.startswith("float8"):
        x = base.view(x, "uint8")
    if x.dtype.name not in dtypes:
        raise ValueError(f"[load] {what}: MLX has no dtype {x.dtype.name}")
    return wrap(x)


def _load_npy(file):
    with _as_path(file, ".npy") as path:
        return _known(_core.load(path)[""], path)


def _load_npz(file):
    where = file.tell() if not _is_path(file) else None
    if not zipfile.is_zipfile(file):
        raise ValueError("[load_npz] Input must be a zip file or a file-like object that can be opened with zipfile.ZipFile")
    if where is not None:
        file.seek(where)
    with zipfile.ZipFile(file) as archive:
        found = {}
        for name in archive.namelist():
            with archive.open(name) as part:
                found[name.removesuffix(".npy")] = _load_npy(part)
    return found


def _head(path):
    """The head of a file of format safetensors."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(size))


def _load_safetensors(file):
    with _as_path(file, ".safetensors") as path:
        arrays = {name: _known(x, name) for name, x in _core.load(path).items()}
        return arrays, _head(path).get("__metadata__", {})


def _load_gguf(file):
    if not _is_path(file):
        raise ValueError("[load_gguf] Input must be a string")
    return gguf.load(os.fspath(file))


_LOADERS = {"npy": _load_npy, "npz": _load_npz, "safetensors": _load_safetensors, "gguf": _load_gguf}


def load(file, /, format=None, return_metadata=False, *, stream=None):
    """The array of a file, or its arrays by name; with the metadata where they are asked for."""
    if not _is_path(file) and not _is_stream(file, "readinto"):
        raise ValueError("[load] Input must be a file-like object opened in binary mode, or string")
    if format is None:
        name = os.fspath(file) if _is_path(file) else file.name
        format = str(name).rpartition(".")[2]
        if "." not in str(name):
            raise ValueError("[load] Could not infer file format from extension")
    if format not in _LOADERS:
        raise ValueError(f"[load] Unknown file format {format}")
    has_metadata = format in ("safetensors", "gguf")
    if return_metadata and not has_metadata:
        raise ValueError(f"[load] metadata not supported for format {format}")
    with on_stream(stream):
        try:
            found = _LOADERS[format](file)
        except OSError as error:
            if not _is_path(file):
                raise
            kind = ValueError if format == "gguf" else RuntimeError
            raise kind(f"[load] Failed to open file {os.fspath(file)}: {error}") from None
    return found if not has_metadata or return_metadata else found[0]


def _check_target(file, what):
    if not _is_path(file) and not _is_stream(file, "write"):
        raise ValueError(f"[{what}] Input must be a file-like object, or string")


def _array(value):
    return value if isinstance(value, array) else wrap(convert(value))


def save(file, arr):
    """Writes an array in format npy."""
    _check_target(file, "save")
    with _to_path(file, ".npy") as path:
        _core.save(path, [""], [_array(arr)._x])


def _savez(what, file, args, kwargs, compression):
    _check_target(file, what)
    named = dict(kwargs)
    for i, x in enumerate(args):
        if f"arr_{i}" in named:
            raise ValueError(f"[{what}] Cannot use un-named variables and keyword arr_{i}")
        named[f"arr_{i}"] = x
    with _to_path(file, ".npz") as path, zipfile.ZipFile(path, "w", compression) as archive:
        for name, x in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                with _to_path(part, ".npy") as single:
                    _core.save(single, [""], [_array(x)._x])


def savez(file, *args, **kwargs):
    """Writes several arrays in format npz."""
    _savez("savez", file, args, kwargs, zipfile.ZIP_STORED)


def savez_compressed(file, *args, **kwargs):
    """Writes several arrays in format npz, compressed."""
    _savez("savez_compressed", file, args, kwargs, zipfile.ZIP_DEFLATED)


def _bytes_of(x):
    """The elements, row-major without gaps."""
    return memoryview(base.view(base.flatten(x), "uint8") if x.dtype.name != "bool" else base.astype(base.flatten(x), "uint8"))


def save_safetensors(file, arrays, metadata=None):
    """Writes arrays by name in format safetensors, with texts as metadata."""
    _check_target(file, "save_safetensors")
    metadata = metadata or {}
    if not all(isinstance(item, str) for pair in metadata.items() for item in pair):
        raise ValueError("[save_safetensors] Metadata must be texts by texts")
    head, offset = {"__metadata__": metadata or {"format": "mlx"}}, 0
    for name, x in arrays.items():
        head[name] = {"dtype": _CODES[x._x.dtype.name], "shape": list(x.shape), "data_offsets": [offset, offset + x.nbytes]}
        offset += x.nbytes
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    _core.eval([x._x for x in arrays.values()])
    with open(_with_suffix(file, ".safetensors"), "wb") if _is_path(file) else contextlib.nullcontext(file) as target:
        target.write(struct.pack("<Q", len(text)) + text)
        for x in arrays.values():
            if x.size:
                target.write(_bytes_of(x._x))


def _with_suffix(file, suffix):
    name = os.fspath(file)
    return name if name.endswith(suffix) else name + suffix


def save_gguf(file, arrays, metadata=None):
    """Writes arrays by name in format gguf, with metadata: texts, lists of texts, arrays."""
    if not _is_path(file):
        raise ValueError("[save_gguf] Input must be a string")
    gguf.save(_with_suffix(file, ".gguf"), arrays, metadata or {})


for _each in (load, save, savez, savez_compressed, save_safetensors, save_gguf):
    put(_each.__name__, _each)
