# SPDX-License-Identifier: MIT
"""Functions before those of the table, for the steps by which language models decode."""
