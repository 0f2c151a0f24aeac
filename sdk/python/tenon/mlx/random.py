# SPDX-License-Identifier: MIT
"""mlx.core.random."""
