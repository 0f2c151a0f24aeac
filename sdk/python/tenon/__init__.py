# SPDX-License-Identifier: MIT
"""Tenon: lazy arrays, derivatives, and every operator of the installed op packs.

    import tenon as tn
    x = tn.array([1., 2., 3.])
    print(tn.softmax(x))
    print(tn.grad(lambda x: tn.sum(x * x))(x))

`tenon.NAME` is an operator of the packs, `tenon.PACK.NAME` one of a pack; help() says what each
takes. Arrays are computed when they are read: by print, float, numpy.asarray, tenon.eval.
"""

import atexit as _atexit
import contextlib as _contextlib
import importlib as _importlib
import importlib.machinery as _machinery
import importlib.util as _importlib_util
import json as _json
import math as _math
import os as _os
import sys as _sys
import types as _types

from . import _core
from ._core import Array, DeviceError, PluginError, async_eval, eval
from ._dtypes import dtype, dtypes as _dtypes
from . import _array
from ._index import op as _op
from ._info import Info as _Info, finfo, iinfo, isdtype
from . import _operators, _plugins, _standard
from ._custom import custom_function
from ._transforms import (checkpoint, checkpoint_sequential, cond, function, grad, hessian, jacobian, jvp, scan, stop_gradient, value_and_grad, vjp, vmap,
                          while_loop)
from ._tree import flatten as tree_flatten, map_tree as tree_map, unflatten as tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:  # names that are made while the program runs, for those who check types
    from ._all import *
    from ._c import cpu_kernel
    from ._graphs import load_graph, save_graph
    from ._kernels import KernelError, expr
    from ._vulkan import vulkan_kernel
del TYPE_CHECKING

__version__ = _core.version
__array_api_version__ = "2024.12"
_atexit.register(_core.close)
_core.set_path_finder(_plugins.path)

globals().update(_dtypes)
globals().update((name, getattr(_standard, name)) for name in _standard.NAMES)
e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None


def array(object, dtype=None):
    """An array of a number, nested lists, or an array of another library, copied. Integers become
    int64, floats float32, complex numbers complex64, unless `dtype` says otherwise; elements of
    other libraries keep their dtype."""
    return _core.array(object, dtype)


def asarray(object, dtype=None, device=None, copy=None):
    """As array(); an Array of the dtype is given back as it is."""
    _standard._no_device(device)
    if isinstance(object, Array) and not copy and (dtype is None or object.dtype == dtype):
        return object
    if copy is False:
        raise ValueError("asarray: copy=False, and this object can only be copied (tenon.from_dlpack takes memory in place)")
    return _core.array(object, dtype)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of another library by its __dlpack__(), in place where the device permits. `copy`: True
    for a copy; False for none, or a BufferError."""
    _standard._no_device(device)
    return _core.from_dlpack(x, copy)


def load(path):
    """The array of a file (npy), or a dict of its arrays by name (npz, safetensors, gguf)."""
    if _os.fspath(path)[-4:] in (".npz", b".npz"):
        from ._npz import load as load_npz

        return load_npz(path)
    arrays = _core.load(path)
    return arrays[""] if list(arrays) == [""] else arrays


def save(path, arrays):
    """Writes an array, or a dict of arrays by name, in the format of the path's extension."""
    named = {"": arrays} if isinstance(arrays, Array) else arrays
    if not isinstance(named, dict) or not all(isinstance(key, str) for key in named):
        raise TypeError("save: expected an Array, or a dict of arrays whose keys are texts")
    if _os.fspath(path)[-4:] in (".npz", b".npz"):
        from ._npz import save as save_npz

        save_npz(path, {"arr_0": arrays} if named is not arrays else named)
    else:
        _core.save(path, list(named), list(named.values()))


@_contextlib.contextmanager
def device(name):
    """Within: operations are applied on a device, "vulkan:0" say, of those of TENON_BACKEND."""
    before = _core.set_device(name)
    try:
        yield
    finally:
        _core.set_device(before)


def devices():
    """Every device of every installed backend, as dicts."""
    return _core.devices()


def stats():
    """Counters since the process began: plans, steps, copies, bytes that were written; and memory()."""
    return _core.stats()


def memory():
    """Bytes of memory: `bytes` that arrays and plans have now, `peak`, the most so far, `spare`, which is kept for
    reuse, and `plans`, host memory of cached plans."""
    counted = _core.stats()
    return {key: counted[name] for key, name in
            [("bytes", "buffer_bytes"), ("peak", "buffer_peak"), ("spare", "spare_bytes"), ("plans", "plan_bytes")]}


def profile(path):
    """Writes what kernels and the host do from now on to a file, which https://ui.perfetto.dev and Chrome's
    about:tracing show; it is complete when the process ends. Before the first operation."""
    if _core.is_open():
        raise RuntimeError("tenon: profile() comes too late, an operation was applied before: call it first, or set TENON_TRACE")
    _os.environ["TENON_TRACE"] = _os.fspath(path)


def why(*trees):
    """How the graph of arrays would run: device and kernel of each step, and why others were
    turned down. A dict, as C's tn_explain describes it."""
    return _json.loads(_core.explain(tree_flatten(trees)[0], False))


def graph(*trees):
    """The planned graph of arrays: a picture in a notebook; str() gives it in the language of Graphviz, save() writes
    x.svg or x.dot."""
    from ._pictures import Graph

    return Graph(_core.explain(tree_flatten(trees)[0], True))


def __array_namespace_info__():
    """What the array API asks of a namespace."""
    return _Info()


# --- every other operator, on first use ----------------------------------------------------------------

# The array API's names of operators that have another one here.
_ALIASES = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
            "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
            "bitwise_right_shift": "right_shift", "conj": "conjugate", "pow": "power", "absolute": "abs"}

# Packs whose operators go by their names alone, in this order.
_PACKS = ("base", "nn", "fft", "linalg", "random", "optim", "quant")


def _ids():
    """Installed operators: the newest id by pack and name."""
    table = {}
    for text in _core.operators():
        pack, _, rest = text.partition(".")
        table.setdefault(pack, {})[rest.partition("/")[0]] = text
    return table


# Packages in Python whose names stand beside a pack's operators.
_BESIDE = {"tenon.nn": "tenon._nn", "tenon.optim": "tenon._optim", "tenon.dist": "tenon._dist"}


def _near(name, names):
    """A hint at the name that is meant, perhaps: PyTorch's first, of which a similar one may be another operator."""
    import difflib

    from ._torch_names import NAMES

    if name in NAMES:
        return f"; PyTorch's '{name}' is 'tenon.{NAMES[name]}'"
    found = difflib.get_close_matches(name, [each for each in names if not each.startswith("_")], 1)
    return f"; did you mean '{found[0]}'?" if found else ""


class _Pack(_types.ModuleType):
    """The operators of one pack."""

    def __init__(self, pack, ids):
        super().__init__(f"tenon.{pack}", f"Operators of pack {pack}.")
        self.__dict__["__path__"] = []  # import tenon.nn.losses asks for a package
        self.__dict__["_ids"] = ids

        self.__dict__.update(_standard.PACKS[pack]() if pack in _standard.PACKS else {})

    def __getattr__(self, name):
        if name == "__all__":
            return dir(self)
        text = self._ids.get(_ALIASES.get(name, name)) if not name.startswith("_") else None
        if text is None and not name.startswith("_") and self.__name__ in _BESIDE:
            beside = _importlib.import_module(_BESIDE[self.__name__])
            if name in beside.__all__:
                value = self.__dict__[name] = getattr(beside, name)
                return value
        if text is None:
            raise AttributeError(f"{self.__name__} has no operator '{name}'{_near(name, dir(self))}")
        function = _operators.make(text)
        setattr(self, name, function)
        return function

    def __dir__(self):
        beside = _importlib.import_module(_BESIDE[self.__name__]).__all__ if self.__name__ in _BESIDE else ()
        return sorted({*self._ids, *beside, *(name for name in self.__dict__ if not name.startswith("_"))})


class _Finder:
    """import tenon.PACK: asked for modules that are no files."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        parent, _, pack = name.rpartition(".")
        if parent in _BESIDE:  # import tenon.nn.losses
            beside = _importlib.util.find_spec(f"{_BESIDE[parent]}.{pack}")
            return _machinery.ModuleSpec(name, _Finder) if beside and not pack.startswith("_") else None
        if parent != __name__ or pack.startswith("_") or pack not in _ids():
            return None
        return _machinery.ModuleSpec(name, _Finder)

    @staticmethod
    def create_module(spec):
        parent, _, part = spec.name.rpartition(".")
        if parent in _BESIDE:
            return _importlib.import_module(f"{_BESIDE[parent]}.{part}")
        return getattr(_sys.modules[__name__], spec.name.rpartition(".")[2])

    @staticmethod
    def exec_module(module):
        """There is nothing to execute."""


_sys.meta_path.append(_Finder)

# What lies in modules that are imported when it is first used.
_LATER = {"KernelError": "_kernels", "expr": "_kernels", "vulkan_kernel": "_vulkan", "cpu_kernel": "_c",
          "save_graph": "_graphs", "load_graph": "_graphs"}
_PARTS = ("data", "lm")  # packages


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _PARTS:
        return _importlib.import_module("." + name, __name__)
    if name in _LATER:
        value = globals()[name] = getattr(_importlib.import_module("." + _LATER[name], __name__), name)
        return value
    table = _ids()
    if name in table:
        pack = globals()[name] = _Pack(name, table[name])
        return pack
    wanted = _ALIASES.get(name, name)
    packs = [p for p in _PACKS if wanted in table.get(p, {})] or [p for p in table if wanted in table[p]]
    if not packs:
        near = _near(name, __dir__())
        raise AttributeError(f"tenon has no operator '{name}'{near or ': no installed op pack brings it'}{_plugins.refused()}")
    function = globals()[name] = _operators.make(table[packs[0]][wanted])
    return function


def __dir__():
    table = _ids()
    return sorted({*globals(), *_LATER, *_PARTS, *table, *(name for pack in _PACKS for name in table.get(pack, {}))})
