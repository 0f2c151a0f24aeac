#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the files that some tests need to be built: needed.py BUILD-FOLDER [--suite SUITE] [NAME...]"""

import argparse
import json
import os
import subprocess


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--suite")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    told = json.loads(subprocess.run(["meson", "introspect", args.build, "--tests", "--targets"],
                                     check=True, capture_output=True, text=True).stdout)
    files = {t["id"]: t["filename"] for t in told["targets"]}
    chosen = [t for t in told["tests"]
              if t["name"] in args.names or any(s.split(":")[-1] == args.suite for s in t["suite"])]
    absent = set(args.names) - {t["name"] for t in chosen}
    if absent or not chosen:
        parser.error(f"no such tests: {', '.join(sorted(absent)) or args.suite}")
    needed = {file for test in chosen for target in test["depends"] for file in files[target]}
    for file in sorted(needed):
        print(os.path.relpath(file, args.build))


if __name__ == "__main__":
    main()
