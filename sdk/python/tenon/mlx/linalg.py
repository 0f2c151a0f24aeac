# SPDX-License-Identifier: MIT
"""mlx.core.linalg."""
