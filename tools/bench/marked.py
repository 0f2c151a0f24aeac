# SPDX-License-Identifier: MIT
"""Tables that commands write into documents."""

import pathlib
import re
import sys


def update(document, command, lines):
    """Puts lines between the two lines of a document that name the command in a comment."""
    path, mark = pathlib.Path(document), f"<!-- {command} -->\n"
    text, count = re.subn(f"{mark}.*?{mark}", lambda _: f"{mark}{lines}\n{mark}", path.read_text(), flags=re.S)
    if count != 1:
        sys.exit(f"{path}: expected a table between two lines {mark.strip()}")
    path.write_text(text)
