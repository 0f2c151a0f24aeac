# SPDX-License-Identifier: MIT
"""What the array API asks of mlx.core, and a type by which signatures name what becomes an array."""

from . import devices
from .dtypes import dtypes, isdtype
from .table import put


class ArrayLike:
    """An object whose method __mlx_array__() gives an array."""

    def __init__(self, obj):
        self._obj = obj

    def __mlx_array__(self):
        return self._obj.__mlx_array__()


class NamespaceInfo:
    """What __array_namespace_info__() gives."""

    def capabilities(self):
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 8}

    def default_device(self):
        return devices.default_device()

    def devices(self):
        return tuple(devices.Device(kind, i) for kind in (devices.cpu, devices.gpu) for i in range(devices.device_count(kind)))

    def default_dtypes(self, *, device=None):
        _check(device)
        return {"real floating": dtypes["float32"], "complex floating": dtypes["complex64"], "integral": dtypes["int32"],
                "indexing": dtypes["int32"]}

    def dtypes(self, *, device=None, kind=None):
        """Dtypes of the array API by name: those that the device has, of a kind or a tuple of kinds."""
        is_on_gpu = (_check(device) or devices.default_device()).type is devices.gpu
        beyond = {"float16", "bfloat16", *(["float64"] if is_on_gpu else [])}
        return {name: dtype for name, dtype in dtypes.items() if name not in beyond and (kind is None or isdtype(dtype, kind))}


def _check(device):
    if device is not None and not isinstance(device, devices.Device):
        raise TypeError(f"__array_namespace_info__: got {device!r}, expected a Device")
    return device


ArrayLike.__module__ = "mlx.core"
put("ArrayLike", ArrayLike)
put("__array_namespace_info__", NamespaceInfo)
