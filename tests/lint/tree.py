# SPDX-License-Identifier: MIT
"""The files of the source tree, for the checks beside this file."""

import pathlib
import subprocess

SKIPPED = {"build", ".git", "__pycache__"}


def files(root, *suffixes):
    """Paths, relative to `root`, of files that belong to the project and end so."""
    root = pathlib.Path(root)
    listed = subprocess.run(["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root),
                             "ls-files", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if listed.returncode == 0 and (root / ".git").exists():
        paths = [pathlib.Path(line) for line in listed.stdout.splitlines()]
    else:  # an unpacked archive
        paths = [p.relative_to(root) for p in root.rglob("*")]
        paths = [p for p in paths if not SKIPPED & set(p.parts)
                 and not p.parts[0].startswith("build-")]
    return sorted(p for p in paths if (root / p).is_file()
                  and (not suffixes or p.suffix in suffixes))
