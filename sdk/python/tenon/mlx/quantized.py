# SPDX-License-Identifier: MIT
"""Quantised arrays.."""
