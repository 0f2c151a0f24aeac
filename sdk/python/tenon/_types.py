# SPDX-License-Identifier: MIT
"""Types for annotations: what functions take beside arrays. The package itself does not import this file."""

from collections.abc import Sequence
from typing import Any, Protocol, Union

from ._core import Array
from ._dtypes import dtype


class SupportsDLPack(Protocol):
    """An array of another library."""

    def __dlpack__(self) -> Any: ...


class SupportsArray(Protocol):
    """What NumPy makes an array of."""

    def __array__(self) -> Any: ...


ArrayLike = Union[Array, complex, Sequence[Any], SupportsDLPack, SupportsArray]
DTypeLike = Union[dtype, str, type]
