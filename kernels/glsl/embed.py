#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the kernels of this folder into C.

  embed.py sources OUT.c OUT.h              text of every variant, for compiling at run time
  embed.py spirv OUT.c OUT.h --compiler C   SPIR-V of every variant, made by tenon-glslc

Both read variants.txt. OUT.c has the table that embedded.h declares; OUT.h its length.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

import tables

# Included files that are not on disk: tables.py writes their text.
MADE = {'needs.glsl': tables.needs, 'parts.glsl': tables.parts,
        'complex_functions_f64.glsl': tables.complex_f64}
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.relpath(HERE) + '/'  # for messages of a build


class Text:
    """A text made of several files. #line tells where its lines come from, for errors."""

    def __init__(self, folder):
        self.folder = folder
        self.lines = []
        self.next = None  # (file, number) that the compiler gives the next line
        self.told = []  # for each open #if: whether #line was written within

    def tell(self, file, number):
        self.lines.append('#line %d "%s%s"' % (number, self.folder, file))
        self.told = [True] * len(self.told)
        self.next = (file, number)

    def add(self, file, number, line):
        known, at = self.next or (None, 0)
        if known == file and 0 <= number - at <= 4:
            self.lines += [''] * (number - at)
        elif not line.startswith('#version'):  # which stays the first line
            self.tell(file, number)
        self.lines.append(line)
        if self.next:
            self.next = (file, number + 1)
        directive = re.match(r'#\s*(if|el|endif)', line)
        if not directive:
            return
        if directive.group(1) == 'if':
            self.told.append(False)
            return
        told = self.told.pop() if directive.group(1) == 'endif' else self.told[-1]
        if told:  # a group that is skipped keeps its #line to itself
            self.tell(file, number + 1)


def add_file(text, name, seen):
    """Appends a file with its #includes expanded, once each, and without comments."""
    if name in seen:
        return
    seen.add(name)
    if name in MADE:
        content = MADE[name]()
    else:
        with open(os.path.join(HERE, name), encoding='utf-8') as file:
            content = file.read()
    content = re.sub(r'/\*.*?\*/', lambda comment: '\n' * comment.group().count('\n'), content,
                     flags=re.S)
    for number, line in enumerate(content.split('\n'), 1):
        include = re.match(r'\s*#include "(.*)"', line)
        if include:
            add_file(text, include.group(1), seen)
            continue
        line = re.sub(r'\s*//.*', '', line).rstrip()
        if line:
            text.add(name, number, line)


def resolve(name, folder=''):
    """The text of a kernel's file, to be compiled without any other. Errors name files in `folder`."""
    text = Text(folder)
    add_file(text, name, set())
    return '\n'.join(text.lines) + '\n'


def expand(choices):
    """Replaces *CLASS by the dtypes that are computed in it, *int by all integers and so on."""
    return [name for choice in choices
            for name in (tables.computed_as(choice[1:]) if choice[0] == '*' else [choice])]


def read_variants():
    """[(name, file, [(macro, value)], optimisation)] from lines like
    reduce_{op}_{in}: reduce.comp OP={op} IN={in} -O0 | op=sum,max in=*f32,f64"""
    variants = []
    with open(os.path.join(HERE, 'variants.txt'), encoding='utf-8') as file:
        for line in file:
            line = line.split('#')[0].strip()
            if not line:
                continue
            pattern, _, lists = line.partition('|')
            name, _, rest = pattern.partition(':')
            words = rest.split()
            keys = [item.split('=')[0] for item in lists.split()]
            values = [expand(item.split('=')[1].split(',')) for item in lists.split()]
            for choice in itertools.product(*values):
                given = dict(zip(keys, choice))
                defines = [tuple(word.format(**given).partition('=')[::2])
                           for word in words[1:] if word[0] != '-']
                optimisation = next((word for word in words if word[0] == '-'), '-O')
                variants.append((name.strip().format(**given), words[0], defines, optimisation))
    names = [variant[0] for variant in variants]
    assert len(set(names)) == len(names), 'variants.txt names one variant twice'
    return sorted(variants)


def quoted(text):
    lines = text.split('\n')
    return '\n'.join('    "%s\\n"' % line.replace('\\', '\\\\').replace('"', '\\"')
                     for line in lines[:-1])


def write_sources(out):
    variants = read_variants()
    files = sorted({variant[1] for variant in variants})
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "embedded.h"\n')
        file.write('const char glsl_expression[] =\n%s;\n' % quoted(resolve('expression.glsl')))
        file.write('const char glsl_complex[] =\n%s;\n' % quoted(resolve('complex.glsl')))
        file.write('const char glsl_products[] =\n%s;\n' % quoted(resolve('matmul_products.comp')))
        for index, name in enumerate(files):
            file.write('static const char text%d[] =\n%s;\n' % (index, quoted(resolve(name))))
        file.write('const tn_vulkan_module glsl_modules[] = {\n')
        for name, source, defines, _ in variants:
            text = ' '.join('%s=%s' % define for define in defines)
            file.write('    {"%s", text%d, sizeof(text%d) - 1, 0, "%s"},\n'
                       % (name, files.index(source), files.index(source), text))
        file.write('};\n')


def compile_one(compiler, folder, variant):
    """Compiles one variant to NAME.spv. Errors are the compiler's, and name the kernel's files."""
    name, source, defines, optimisation = variant
    flags = ['-D%s=%s' % define for define in defines]
    flags += [optimisation] if optimisation == '-O0' else []
    done = subprocess.run([compiler, os.path.join(folder, source), '-o',
                           os.path.join(folder, name + '.spv')] + flags)
    return done.returncode == 0


def compile_all(compiler, folder, variants):
    for source in {variant[1] for variant in variants}:
        with open(os.path.join(folder, source), 'w', encoding='utf-8') as file:
            file.write(resolve(source, FOLDER))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        compiled = threads.map(lambda variant: compile_one(compiler, folder, variant), variants)
        wrong = [variant[0] for variant, ok in zip(variants, compiled) if not ok]
    if wrong:
        sys.exit('%s failed for %s' % (os.path.basename(compiler), ', '.join(wrong)))


def write_words(file, index, path):
    with open(path, 'rb') as code:
        data = code.read()
    words = [int.from_bytes(data[at:at + 4], 'little') for at in range(0, len(data), 4)]
    file.write('static const uint32_t code%d[] = {\n' % index)
    for at in range(0, len(words), 12):
        file.write(','.join(str(word) for word in words[at:at + 12]) + ',\n')
    file.write('};\n')


def write_spirv(compiler, out):
    with tempfile.TemporaryDirectory() as folder:
        variants = read_variants()
        names = [name for name, *_ in variants]
        compile_all(compiler, folder, variants)
        with open(out, 'w', encoding='utf-8') as file:
            file.write('#include "embedded.h"\n')
            for index, name in enumerate(names):
                write_words(file, index, os.path.join(folder, name + '.spv'))
            file.write('const tn_vulkan_module spirv_modules[] = {\n')
            for index, name in enumerate(names):
                file.write('    {"%s", code%d, sizeof(code%d), 0, 0},\n' % (name, index, index))
            file.write('};\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('what', choices=['sources', 'spirv'])
    parser.add_argument('out')
    parser.add_argument('header')
    parser.add_argument('--compiler', help='tenon-glslc, for spirv')
    args = parser.parse_args()
    with open(args.header, 'w', encoding='utf-8') as file:
        file.write('enum { NUM_MODULES = %d };\n' % len(read_variants()))
    if args.what == 'sources':
        write_sources(args.out)
    else:
        write_spirv(args.compiler, args.out)


if __name__ == '__main__':
    main()
