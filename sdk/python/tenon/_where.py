# SPDX-License-Identifier: MIT
"""The line of the application that is running, for messages."""

import os
import sys


def line():
    """Its file and number, as "train.py:12": the innermost frame that is not of this package."""
    frame = sys._getframe(0)
    folder = os.path.dirname(__file__)
    while frame and os.path.dirname(frame.f_code.co_filename) == folder:
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else "?"
