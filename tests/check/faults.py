#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each planted fault is found by the check of its name; plugins without one pass.

    faults.py KIT NAME=PLUGIN ...     a NAME of "-": it has no fault, "-GLOB": by these checks, which
                                      alone are made; "CHECK+WHAT": one of several that the same
                                      check has to find
"""

import concurrent.futures
import json
import subprocess
import sys


def run(kit, *args):
    """The kit's report, and its exit status."""
    done = subprocess.run([kit, *args, "--json", "--timeout", "10", "--devices", "cpu*"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    try:
        return json.loads(done.stdout), done.returncode
    except ValueError:
        return {"results": [], "error": done.stderr}, done.returncode


def check(kit, name, plugin, names):
    """What is wrong with the kit's verdict, or None."""
    if name.startswith("-"):
        report, status = run(kit, plugin, *(["--only", name[1:]] if name[1:] else []))
        wrong = [r["check"] + ": " + r["detail"] for r in report["results"]
                 if r["outcome"] in ("fail", "warn")]
        missing = names - {r["check"] for r in report["results"]}
        if missing:
            wrong.append(f"not checked: {sorted(missing)}")
        return "; ".join(wrong) or (f"status {status}" if status else None)
    name = name.split("+")[0]
    report, status = run(kit, plugin, "--only", name)
    found = [r for r in report["results"] if r["check"] == name and r["outcome"] == "fail"]
    others = [r for r in report["results"] if r["outcome"] == "fail" and r not in found]
    if not found:
        return f"not found (status {status}): {report['results'] or report.get('error')}"
    if others:
        return f"other checks fail too: {others}"
    return None if status == 1 else f"status {status}, expected 1"


def main():
    kit, pairs = sys.argv[1], [a.split("=", 1) for a in sys.argv[2:]]
    source_names, current = {}, None
    for name, plugin in pairs:  # the faults after a sane plugin are of its source
        if name.startswith("-"):
            current = source_names.setdefault(plugin, set())
        else:
            current.add(name.split("+")[0])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check, kit, name, plugin, source_names.get(plugin, set()))
                for name, plugin in pairs]
        print(f"1..{len(pairs)}")
        for number, ((name, plugin), job) in enumerate(zip(pairs, jobs), 1):
            wrong = job.result()
            what = f"{plugin.rsplit('/', 1)[-1]} " + ("passes" if name.startswith("-") else "is found")
            print(f"{'not ok' if wrong else 'ok'} {number} - {what}", flush=True)
            if wrong:
                print(f"# {wrong}")


if __name__ == "__main__":
    main()
