# SPDX-License-Identifier: MIT
"""What mlx.core reads and writes: arrays, functions, pictures of graphs."""
