#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs tests of the Vulkan backends with two plugins that differ in their kernel compiler: what
they compute has the same bits.

  pair.py PLUGIN OTHER PROGRAM[:PATTERN]...

PROGRAM is a test of tests/kernels, PATTERN a filter of Criterion's. Lavapipe runs with one thread,
so that floats are summed in one order.
"""
import os
import subprocess
import sys
import tempfile


def run(plugin, program, pattern, folder, name):
    """The lines that the tests record, or an exit with what they say."""
    path = os.path.join(folder, name)
    env = dict(os.environ, TENON_TEST_PLUGIN=plugin, TENON_TEST_DIGESTS=path, LP_NUM_THREADS='1',
               CRITERION_JOBS='1', TENON_VULKAN_VALIDATION='')
    done = subprocess.run([program] + (['--filter', pattern] if pattern else []), env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit('%s with %s failed:\n%s' % (program, plugin, done.stdout[-4000:]))
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return file.read().splitlines()


def compare(one, other):
    """How many of the results differ; prints the first few."""
    differ = [(at, a, b) for at, (a, b) in enumerate(zip(one, other)) if a != b]
    for at, a, b in differ[:20]:
        print('  result %d: %s, the other: %s' % (at, a, b.rpartition(' ')[2]))
    return len(differ) + abs(len(one) - len(other))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    failed = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for at, word in enumerate(sys.argv[3:]):
            program, _, pattern = word.partition(':')
            one = run(sys.argv[1], program, pattern, folder, 'one%d' % at)
            other = run(sys.argv[2], program, pattern, folder, 'other%d' % at)
            count = compare(one, other)
            print('%s %s: %d of %d results differ'
                  % (os.path.basename(program), pattern, count, len(one)), flush=True)
            failed += count
            total += len(one)
    if total == 0:
        print('no device is here, or no test ran')
        sys.exit(77)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
