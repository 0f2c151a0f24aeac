# SPDX-License-Identifier: MIT
"""Files of NumPy's with several arrays (.npz): zip files with a file of format npy for each."""

import os
import tempfile
import zipfile

from . import _core
from ._core import PluginError


def load(path):
    """The arrays of a file by name. Each goes through a file of its own, since the format reads files."""
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="tenon-npz-") as folder:
            part = os.path.join(folder, "part.npy")
            for info in archive.infolist():
                if not info.filename.endswith(".npy") or info.filename[:-4] in arrays:
                    raise PluginError(f"{path}: holds {info.filename!r}, expected arrays, each once")
                with archive.open(info) as source, open(part, "wb") as target:
                    while block := source.read(1 << 20):
                        target.write(block)
                arrays[info.filename[:-4]] = _core.load(part)[""]
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise PluginError(f"{path}: a damaged file, or one that is not of format npz: {error}") from None
    return arrays


def save(path, arrays):
    """Writes a file, which appears complete or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".tenon-npz-") as parts:
        whole = os.path.join(parts, "whole.npz")
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                part = os.path.join(parts, "part.npy")
                _core.save(part, [""], [array])
                archive.write(part, f"{name}.npy")
        os.replace(whole, path)
