# SPDX-License-Identifier: MIT
"""mlx.core.fft."""
