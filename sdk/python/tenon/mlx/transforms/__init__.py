# SPDX-License-Identifier: MIT
"""MLX's transforms of functions over trees: derivatives, batches, checkpoints, rules of one's own; and evaluation."""

from . import batches, bodies, compiled, evaluation, gradients  # noqa: F401: fill the table
from .nodes import is_deriving, traced  # noqa: F401: for others
