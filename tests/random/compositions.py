#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random compositions of operators: values, both derivatives, batches, replays of functions and
donation, beside NumPy and differences; with --torch also beside PyTorch.

A failure is told with the command that repeats it, and the smallest program that still fails.
Exit status 1 with failures, 77 without NumPy."""
import argparse
import collections
import os
import pathlib
import sys
import time
import warnings

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')  # NumPy's, of matrices of a few rows
try:
    import numpy as np
except ImportError:
    print('1..0 # SKIP NumPy is not installed')
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / 'conformance'), str(HERE / 'nn'), str(HERE / 'beside')]
import compare  # noqa: E402
import findings  # noqa: E402
import records  # noqa: E402
from cases import KINDS, draw_case  # noqa: E402
from driver import Driver  # noqa: E402
from entries import covered  # noqa: E402
from operators import OPERATORS  # noqa: E402
from shrink import command, shrink, verdict  # noqa: E402

# A GPU is given more, as its functions have errors of some units in the last place.
SLACK = {'cpu-blas': 1, 'vulkan': 4, 'vulkan-jit': 4}
# A device's kernels do not have all: the others run on the CPU.
BACKENDS = {'vulkan': 'vulkan,cpu-blas', 'vulkan-jit': 'vulkan-jit,cpu-blas'}


def kind_text(kind):
    way, derive = kind
    return {'value': 'evaluated', 'vmap': 'mapped over a batch', 'call': 'called again and again'}[way] + (
        {'vjp': ', reverse mode', 'jvp': ', forward mode'}[derive] if derive else '')


class Run:
    def __init__(self, args):
        self.args, self.driver = args, Driver(args.driver, BACKENDS.get(args.backend, args.backend))
        self.failures, self.counts, self.reached = collections.Counter(), collections.Counter(), set()
        self.compared = collections.Counter()
        self.beside = __import__('beside_torch') if args.torch else None

    def judge(self, case):
        slack = compare.SLACK * SLACK.get(self.args.backend, 4)
        answers = self.driver.ask(*case.request())
        wrong = compare.check(case, answers, slack, 0 if self.beside else 2)
        if wrong or not self.beside:
            return wrong
        told, wrong = self.beside.check(case, answers, slack)
        self.compared[told] += 1
        if case.derive and not wrong and told != 'compared':
            wrong = compare.check(case, answers, slack)
        return wrong

    def one(self, number):
        kind = KINDS[number % len(KINDS)]
        case = draw_case(self.args.seed, number, self.args.most, self.beside.TORCH if self.beside else None)
        self.counts[kind] += 1
        wrong = verdict(case, self.judge)
        if not wrong:
            self.reached |= case.program.operators()
            return
        self.failures[kind] += 1
        beside = ' --torch' if self.args.torch else ''
        print(f'# seed {self.args.seed}, case {number}, {kind_text(kind)}: --seed {self.args.seed} --only {number} '
              f'--most {self.args.most} --backend {self.args.backend}{beside}')
        case, wrong = shrink(case, wrong, self.judge)
        print('# ' + wrong.replace('\n', '\n# ') + '\n#   ' + command(case).replace('\n', '\n# '))
        sys.stdout.flush()

    def report(self):
        for kind in KINDS:
            if self.counts.get(kind):
                count, failed = self.counts.pop(kind), self.failures[kind]
                told = f'{count} programs {kind_text(kind)}, on {self.args.backend}'
                print(f'not ok - {told}: {failed} differ' if failed else f'ok - {told}')
        if self.beside:
            print('# beside PyTorch: ' + ', '.join(f'{n} {told}' for told, n in self.compared.most_common()))
        self.report_operators()

    def report_operators(self):
        """Those of PACKS that no program had, which a few cases leave many of."""
        left, _ = records.missing(self.reached)
        print(f'# {len(self.reached)} operators were reached; not: ' + ' '.join(left))


def check_vocabulary():
    """Each operator of the packs' records is drawn or excused."""
    left, stale = records.missing(covered(n for _, names, _ in OPERATORS for n in names))
    for name in left:
        print(f'# {name} is neither drawn nor excused (records.py)')
    for name in stale:
        print(f'# {name} is excused, but drawn or no operator')
    print(('not ok' if left or stale else 'ok') + f' - operators of {", ".join(records.PACKS)} are drawn')
    return bool(left or stale)


def check_findings(driver):
    wrong = findings.check(driver)
    for line in wrong:
        print('# ' + line)
    print(('not ok' if wrong else 'ok') + f' - {len(findings.FINDINGS)} findings of earlier runs')
    return bool(wrong)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('driver', help='the program made of driver.c')
    parser.add_argument('--backend', default='cpu-blas')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=500)
    parser.add_argument('--first', type=int, default=0, help='number of the first case')
    parser.add_argument('--most', type=int, default=45, help='tries to add an operator, of a program')
    parser.add_argument('--only', type=int, help='number of the one case')
    parser.add_argument('--torch', action='store_true', help='programs of what PyTorch has, compared with it, too')
    return parser.parse_args()


def main():
    args = arguments()
    warnings.simplefilter('ignore')
    run, began = Run(args), time.time()
    numbers = [args.only] if args.only is not None else range(args.first, args.first + args.count)
    for number in numbers:
        run.one(number)
        if args.count > 2000 and (number + 1) % 1000 == 0:
            print(f'# {number + 1} cases, {sum(run.failures.values())} differ, {time.time() - began:.0f} s', flush=True)
    left = check_findings(run.driver)
    run.driver.stop()
    kinds = len(run.counts) + 2
    run.report()
    left = check_vocabulary() or left
    print(f'# NumPy {np.__version__}, {len(numbers)} cases in {time.time() - began:.1f} s')
    print(f'1..{kinds}')
    return 1 if run.failures or left else 0


if __name__ == '__main__':
    sys.exit(main())
