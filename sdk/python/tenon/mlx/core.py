# SPDX-License-Identifier: MIT
"""The module mlx.core: every name of the table, and those that MLX has and this package has not, which say so."""

import difflib
import math
import types

from . import array as _array  # noqa: F401: fills the type
from . import convolutions, create, einsum, elementwise, products, reduce, shapes  # noqa: F401: fill the table
from . import devices, distributed, fast, fft, info, linalg, quantized, random, transforms  # noqa: F401
from .disk import export, files  # noqa: F401
from . import dtypes as _dtypes
from .steps import quick  # noqa: F401: before functions of the table
from .table import MODULES, NAMES

VERSION = "0.32.2"  # of MLX's release whose names and meanings these are


class _Module(types.ModuleType):
    """A module that names what is nearest to a name that it has not."""

    def __getattr__(self, name):
        near = difflib.get_close_matches(name, list(self.__dict__), 1)
        hint = f"; did you mean '{near[0]}'?" if near and not name.startswith("__") else ""
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'{hint}")


def _made(name, doc, values):
    module = _Module(name, doc)
    module.__dict__.update(values)
    return module


def _constants():
    names = {name: value for name, value in _dtypes.dtypes.items() if name != "bool"}
    names.update(_dtypes.categories, bool_=_dtypes.bool_, Dtype=_dtypes.Dtype, DtypeCategory=_dtypes.DtypeCategory, finfo=_dtypes.finfo,
                 iinfo=_dtypes.iinfo, issubdtype=_dtypes.issubdtype, isdtype=_dtypes.isdtype)
    names.update(pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, euler_gamma=0.5772156649015329, newaxis=None, __version__=VERSION)
    return names


core = _made("mlx.core", "mlx.core by Tenon.", {**_constants(), **NAMES})
for _name, _values in MODULES.items():
    setattr(core, _name, _made(f"mlx.core.{_name}", f"mlx.core.{_name} by Tenon.", _values))
core.__file__ = __file__
core.__path__ = []  # import mlx.core.fast asks for a package


def modules():
    """The modules by the names under which programs import them."""
    return {"mlx.core": core, **{f"mlx.core.{name}": getattr(core, name) for name in MODULES}}
