#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the files that some tests need to be built. Names, --suite and --no-suite choose tests
as with "meson test"; where both names and suites are given, tests of either are chosen."""

import argparse
import json
import os
import subprocess


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    told = json.loads(subprocess.run(["meson", "introspect", args.build, "--tests", "--targets"],
                                     check=True, capture_output=True, text=True).stdout)
    files = {t["id"]: t["filename"] for t in told["targets"]}
    suites = {t["name"]: {s.split(":")[-1] for s in t["suite"]} for t in told["tests"]}
    chosen = [t for t in told["tests"]
              if (t["name"] in args.names or suites[t["name"]] & set(args.suite))
              and not suites[t["name"]] & set(args.no_suite)]
    absent = set(args.names) | set(args.suite)
    absent -= set(suites).union(*suites.values())
    if absent or not chosen:
        parser.error(f"no such tests: {', '.join(sorted(absent))}")
    needed = {file for test in chosen for target in test["depends"] for file in files[target]}
    for file in sorted(needed):
        print(os.path.relpath(file, args.build))


if __name__ == "__main__":
    main()
