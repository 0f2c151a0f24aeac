#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of SPIR-V's capabilities agrees with SPIRV-Tools: names, and the extensions that each
version of SPIR-V needs for them.

  capabilities.py SPIRV-VAL"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import sentences  # pylint: disable=wrong-import-position

VALIDATOR = sys.argv[1]
TEXT = (ROOT / "kernels/spirv/numbers.h").read_text(encoding="utf-8").replace("\\\n", " ")
ROWS = [(name, int(number), extension, 255 if minor == "NEVER" else int(minor))
        for name, number, extension, minor in
        re.findall(r"X\((\w+),\s+(\d+),\s+(\w+),\s+(\w+)\)", TEXT)]


def validate(folder, minor, number):
    """What SPIRV-Tools says of a module with a capability."""
    words = [0x07230203, 0x10000 | minor << 8, 0, 10, 0, 17 | 2 << 16, 1, 17 | 2 << 16, number,
             14 | 3 << 16, 0, 1]
    module = pathlib.Path(folder, "module.spv")
    module.write_bytes(struct.pack(f"<{len(words)}I", *words))
    done = subprocess.run([VALIDATOR, "--target-env", f"spv1.{minor}", module], timeout=60,
                          capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def each_row_agrees():
    unknown = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, number, extension, since in ROWS:
            for minor in range(3, 7):
                told = validate(folder, minor, number)
                needed = re.search(r"operand (\w+)\(\d+\) requires one of these extensions:([ \w]+)", told)
                if "Invalid capability operand" in told: # newer than the validator
                    unknown += 1
                elif extension == "CORE" or minor >= since:
                    assert not needed, (name, minor, told)
                else:
                    assert needed and needed[1] == name, (name, minor, told)
                    assert "SPV_" + extension in needed[2].split(), (name, minor, told)
    assert len(ROWS) > 60 and unknown < 2 * len(ROWS), (len(ROWS), unknown)


if __name__ == "__main__":
    sentences.run([each_row_agrees])
