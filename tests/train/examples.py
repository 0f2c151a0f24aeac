#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples of <tenon/train.h> learn, and stay short. usage: examples.py SOURCES TRANSFORMER LSTM"""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

MOST_LINES = 90  # without blank ones and comments
# A sanitizer sees in few steps what it sees in many; what they learn is for the build without.
IS_SANITIZED = 'TEST_SANITIZER' in os.environ


def lines_of(path):
    return sum(1 for line in path.read_text().splitlines() if line.strip() and not line.strip().startswith('//'))


def run(program, *args, folder):
    done = subprocess.run([program, *args], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, (args, done.stderr.decode())
    losses = [float(x) for x in re.findall(r'loss ([\d.]+)', done.stderr.decode())]
    return losses, done.stdout


def transformer(program, folder):
    text = pathlib.Path(folder, 'text')
    text.write_text(''.join(f'{i % 7}, {i % 7 + 1}, {i % 7 + 2}.\n' for i in range(400)))
    losses, sampled = run(program, 'text', '12' if IS_SANITIZED else '120', 'kept', folder=folder)
    assert IS_SANITIZED or losses[-1] < 1 and 2 * losses[-1] < losses[0], losses
    assert len(sampled) == 200 and (IS_SANITIZED or len(re.findall(rb'\d, \d', sampled)) > 8), sampled
    size = os.path.getsize(os.path.join(folder, 'kept'))
    assert size > 3 * 4 * 100000, size  # parameters and both moments


def lstm(program, folder):
    draw = random.Random(5)
    for name, count in (('train', 640), ('t10k', 128)):
        labels = [draw.randrange(10) for _ in range(count)]
        images = bytearray()
        for label in labels:  # a bar whose place is the class
            for row in range(8):
                images += bytes(250 if row == label % 5 and (column > 3) == (label > 4) else draw.randrange(40)
                                for column in range(8))
        pathlib.Path(folder, name + '-images-idx3-ubyte').write_bytes(struct.pack('>IIII', 0x803, count, 8, 8) + images)
        pathlib.Path(folder, name + '-labels-idx1-ubyte').write_bytes(struct.pack('>II', 0x801, count) + bytes(labels))
    _, printed = run(program, '.', '20' if IS_SANITIZED else '200', folder=folder)
    accuracy = float(printed.split()[1])
    assert IS_SANITIZED or accuracy > 0.9, printed
    assert pathlib.Path(folder, 'lstm.svg').read_text().count('<polyline') == 1
    damaged = pathlib.Path(folder, 't10k-labels-idx1-ubyte')
    damaged.write_bytes(damaged.read_bytes()[:-3])
    done = subprocess.run([program, '.', '1'], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1 and b't10k-labels-idx1-ubyte: the extents say 128' in done.stderr, done


def main():
    sources = pathlib.Path(sys.argv[1])
    print('1..3')
    for name in ('transformer', 'lstm'):
        assert lines_of(sources / (name + '.c')) <= MOST_LINES, name
    print('ok 1 - examples are short')
    for i, (name, program) in enumerate(((transformer, os.path.abspath(sys.argv[2])), (lstm, os.path.abspath(sys.argv[3])))):
        with tempfile.TemporaryDirectory() as folder:
            name(program, folder)
        print(f'ok {i + 2} - {name.__name__} learns')


main()
