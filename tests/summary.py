#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums up the logs that tools/run-tests left in a folder.

Counts test cases (those within TAP tests too). A test that crashed, timed out or ended
early counts as failed even when every case it printed had passed. Exit status 1 when
anything failed, or when nothing was tested at all.
"""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree

FAILED = {"FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"}


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


# What tests print, and XML has not.
CONTROLS = dict.fromkeys(i for i in range(32) if chr(i) not in "\t\n\r")


def suites(path):
    text = path.read_text(errors="replace").translate(CONTROLS)
    return xml.etree.ElementTree.fromstring(text).iter("testsuite")


def sum_log(log, counts, failures):
    """One run of `meson test`: LOG.json has a line a test, LOG.junit.xml a case a case."""
    cases = collections.Counter()
    tests = [json.loads(line) for line in log.read_text().splitlines()]
    for suite in suites(log.with_suffix(".junit.xml")):
        for case in suite.iter("testcase"):
            result = outcome(case)
            cases[result] += 1
            if result == "failed":
                failures.append(f"{log.stem}: {suite.get('name')}: {case.get('name')}")
    broken = [t for t in tests if t["result"] in FAILED]
    counts.update(cases)
    if cases["failed"] < len(broken):  # some failed outside of all their cases
        counts["failed"] += len(broken) - cases["failed"]
        failures += [f"{log.stem}: {t['name']}: {t['result'].lower()}" for t in broken]
    return len(broken)


def main():
    out = pathlib.Path(sys.argv[1])
    counts, failures, broken = collections.Counter(), [], {}
    for log in sorted(out.glob("*.json")):
        broken[log.stem] = sum_log(log, counts, failures)
    facts = out / "facts"
    for line in facts.read_text().splitlines() if facts.exists() else []:
        kind, what = line.split(" ", 1)
        if kind == "status" and not broken.get(what):  # meson failed, and no test did
            kind, what = "fail", f"{what}: meson test"
        if kind != "status":
            counts[{"pass": "passed", "fail": "failed", "skip": "skipped"}[kind]] += 1
        if kind == "fail":
            failures.append(what)

    if failures:
        print("Failed:", *sorted(set(failures)), sep="\n  ")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
