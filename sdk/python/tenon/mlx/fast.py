# SPDX-License-Identifier: MIT
"""mlx.core.fast."""
