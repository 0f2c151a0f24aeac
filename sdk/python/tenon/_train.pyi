# SPDX-License-Identifier: MIT
# The module in C; tenon.function(shapeless=...) is what programs use.
from collections.abc import Callable
from typing import Any

from ._core import Array

class Shapeless:
    def __init__(self, body: Callable[[list[Array]], list[Array]], num_outputs: int, strict: bool, ones: bool = False, /) -> None: ...
    def graph(self, arrays: list[Array], /) -> tuple[Any, list[Array]]: ...
    def why(self) -> str: ...
