# SPDX-License-Identifier: MIT
"""mlx.core over Tenon: programs of MLX run unchanged, with PyPI's pure-Python `mlx` and `mlx-lm`.

    python -m tenon.mlx program.py            python -m tenon.mlx -m mlx_lm generate ...

    import tenon.mlx
    tenon.mlx.install()                       # before any import of mlx.core
    import mlx.core as mx, mlx.nn as nn

Layout. `array` (array.py) is a class of its own: an object that holds an immutable array of tenon, `_x`. Functions stand
in a table (table.py): each is written once over arrays of tenon, and the table takes arrays apart, wraps results, and
takes `stream=`. core.py makes the module of it.

    table.py        the table: function(), wrap(), unwrapped(), operators of packs by name
    dtypes.py       Dtype, categories, promotion              convert.py      anything -> array of tenon; operands of one dtype
    array.py        the class                                 index.py        x[...], x[...] = v, x.at[...]
    printing.py     text of arrays                            elementwise.py  one element at a time, operators
    einsum.py       sums of products by an equation           convolutions.py channels last
    reduce.py       reductions, scans, sorting, searching     shapes.py       shapes, joining, splitting, gathering, padding
    create.py       arrays of numbers                         products.py     matmul and its like
    quantized.py    quantize, quantized_matmul, ...           random.py linalg.py fft.py fast.py   mlx.core's modules
    trees.py        lists, tuples and dicts of arrays         transforms/     eval, grad, vmap, compile, ...
    devices.py      devices, streams, memory                  distributed.py  a group of one
    disk/           files.py: load, save; gguf.py; export.py: functions as files, pictures of graphs
"""

import importlib
import importlib.util
import sys
import types
import warnings


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    value = getattr(importlib.import_module(__name__ + ".core").core, name)
    globals()[name] = value
    return value


def _package():
    """The package mlx of PyPI, whose Python part needs no library; an empty one where it is not installed."""
    try:
        found = importlib.util.find_spec("mlx")
    except ValueError:
        found = None
    if found is not None:
        return importlib.import_module("mlx")
    package = sys.modules["mlx"] = types.ModuleType("mlx")
    package.__path__ = []
    return package


def _check_release(version):
    from importlib import metadata

    for name in ("mlx", "mlx-lm"):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        if found.split(".")[:2] != version.split(".")[:2]:
            warnings.warn(f"tenon.mlx has the names and meanings of mlx {version}, and {name} {found} is installed: "
                          f"pip install {name}=={version}", RuntimeWarning, stacklevel=3)


def install(exact=False):
    """Puts Tenon's mlx.core in the place of MLX's, for the whole process. An ImportError where MLX's was imported
    before. `exact`: products with quantised weights never round x."""
    from . import core as made, quantized

    if exact:
        quantized.set_exact()

    before = sys.modules.get("mlx.core")
    if before is made.core:
        return
    if before is not None:
        raise ImportError(f"tenon.mlx.install(): mlx.core was imported before, from {getattr(before, '__file__', 'elsewhere')}: call "
                          "install() before the first import of mlx.core, or run the program by python -m tenon.mlx")
    _check_release(made.VERSION)
    package = _package()
    sys.modules.update(made.modules())
    package.core = made.core
