# SPDX-License-Identifier: MIT
"""Files: load, save, export.."""
