# SPDX-License-Identifier: MIT
"""The files of the source tree, for the checks beside this file.

Frozen header sets (tests/museum/MAJOR.MINOR) are left out: they stay as they once were. So are
the hostile inputs of tests/fuzz/corpus.
"""

import pathlib
import re
import shutil
import subprocess

SKIPPED = {"build", ".git", "__pycache__"}
FROZEN = re.compile(r"tests/museum/\d+\.\d+/|tests/fuzz/corpus/")


def known_to_git(root):
    """Paths of the files of a checkout; None where there is no checkout or no git."""
    if not (root / ".git").exists() or not shutil.which("git"):
        return None
    listed = subprocess.run(["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root),
                             "ls-files", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [pathlib.Path(line) for line in listed.stdout.splitlines()] \
        if listed.returncode == 0 else None


def files(root, *suffixes):
    """Paths, relative to `root`, of files that belong to the project and end so."""
    root = pathlib.Path(root)
    paths = known_to_git(root)
    if paths is None:  # an unpacked archive, or a machine without git
        paths = [p.relative_to(root) for p in root.rglob("*")]
        paths = [p for p in paths if not SKIPPED & set(p.parts)
                 and not p.parts[0].startswith("build-")]
    return sorted(p for p in paths if (root / p).is_file() and not FROZEN.match(p.as_posix())
                  and (not suffixes or p.suffix in suffixes))
