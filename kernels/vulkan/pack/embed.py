#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the kernels of the families, the folders beside this one, into C.

  embed.py sources OUT.c              text of every variant, for compiling at run time
  embed.py spirv OUT.c --compiler C   SPIR-V of every variant, made by tenon-glslc
  embed.py list OUT.h                 how many variants there are, and the kernels' records

All read each family's variants.txt. It names the plans, plan_*.c, each with the records that it
defines by OWN_KERNEL, and the variants, one on each line: a name, its file, and the macros that
specialise it. Braces are filled from the lists behind the bar, in every combination. *f32: all dtypes
that are computed in f32; *int: all integers; *half: floats that are stored only; *blocks: all
quantised formats; -mxfp4: without this one. -O0: not optimised. OUT.c has the tables that embedded.h
and packed.h declare, with the code packed by deflate. meson.build beside the families has the plans and
shaders from variants.txt, too.

Files are named from the folder of the families on, "program/types.glsl". An #include names a file of
its own folder, or one of another folder so.
"""
import argparse
import concurrent.futures
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile
import zlib

import formats
import tables

# Included files that are not on disk: tables.py and formats.py write their text.
MADE = {'quant/formats.glsl': formats.macros, 'program/dtypes.glsl': tables.types, 'program/needs.glsl': tables.needs, 'program/parts.glsl': tables.parts,
        'program/complex_functions_f64.glsl': tables.complex_f64}
FAMILIES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.relpath(FAMILIES) + '/'  # for messages of a build


class Text:
    """The text of a file, in pieces. #line tells where its lines come from, for errors: at the begin of
    a piece, and where it would not follow from the line before."""

    def __init__(self, file, folder):
        self.shown = os.path.basename(file) if folder is None else folder + file
        self.next = None  # number that the compiler gives the next line; None: it is elsewhere
        self.told = []  # for each open #if: whether #line was written within

    def tell(self, number):
        self.told = [True] * len(self.told)
        self.next = number
        return ['#line %d "%s"' % (number, self.shown)]

    def lines_of(self, number, line):
        """The lines to append for a line of the file."""
        lines = []
        if self.next is not None and 0 <= number - self.next <= 4:
            lines += [''] * (number - self.next)
        elif not line.startswith('#version'):  # which stays the first line
            lines += self.tell(number)
        lines.append(line)
        if self.next is not None:
            self.next = number + 1
        directive = re.match(r'#\s*(if|el|endif)', line)
        if not directive:
            return lines
        if directive.group(1) == 'if':
            self.told.append(False)
            return lines
        told = self.told.pop() if directive.group(1) == 'endif' else self.told[-1]
        if told:  # a group that is skipped keeps its #line to itself
            lines += self.tell(number + 1)
        return lines

    def begin_piece(self):
        self.next = None
        self.told = [True] * len(self.told)


def read(name):
    """The lines of a file with their numbers, without comments and blank lines."""
    if name in MADE:
        content = MADE[name]()
    else:
        with open(os.path.join(FAMILIES, name), encoding='utf-8') as file:
            content = file.read()
    content = re.sub(r'/\*.*?\*/', lambda comment: '\n' * comment.group().count('\n'), content,
                     flags=re.S)
    lines = (re.sub(r'\s*//.*', '', line).rstrip() for line in content.split('\n'))
    return [(number, line) for number, line in enumerate(lines, 1) if line]


def included(name, by):
    """The file that an #include of `name` means in the file `by`."""
    beside = os.path.join(os.path.dirname(by), name)
    return beside if beside in MADE or os.path.exists(os.path.join(FAMILIES, beside)) else name


def pieces(name, folder=None, seen=None):
    """A file with its #includes expanded, once each, as pieces: {(file, number): text}. Equal keys
    have equal texts, in whatever file they are. Errors name files in `folder`, or without any."""
    seen = set() if seen is None else seen
    found, count, text = {}, 0, Text(name, folder)
    if name in seen:
        return found
    seen.add(name)
    for number, line in read(name):
        include = re.match(r'\s*#include "(.*)"', line)
        if include:
            found.update(pieces(included(include.group(1), name), folder, seen))
            text.begin_piece()
            count += 1
        else:
            made = ''.join(made + '\n' for made in text.lines_of(number, line))
            found[name, count] = found.get((name, count), '') + made
    return found


def resolve(name, folder=None):
    """The text of a kernel's file, to be compiled without any other. Errors name files in `folder`,
    or without any."""
    return ''.join(pieces(name, folder).values())


def expand(choices):
    """Replaces *CLASS by the dtypes that are computed in it, *int by all integers and so on, without
    those that have a - in front."""
    def members(choice):
        if choice[0] != '*':
            return [choice]
        return formats.names() if choice == '*blocks' else tables.computed_as(choice[1:])
    left_out = {choice[1:] for choice in choices if choice[0] == '-'}
    return [name for choice in choices if choice[0] != '-' for name in members(choice)
            if name not in left_out]


def read_lines():
    """[(family, line)] of what every family's variants.txt says."""
    lines = []
    for path in sorted(glob.glob(os.path.join(FAMILIES, '*', 'variants.txt'))):
        family = os.path.basename(os.path.dirname(path))
        with open(path, encoding='utf-8') as file:
            said = (line.split('#')[0].strip() for line in file)
            lines += [(family, line) for line in said if line]
    return lines


def read_records():
    """The identifiers of all records that plans define."""
    return [record for _, line in read_lines() if line.startswith('plan_')
            for record in line.partition(':')[2].split()]


def read_variants():
    """[(name, file, [(macro, value)], optimisation)] of all families, by name, from lines like
    reduce_{op}_{in}: reduce.comp OP={op} IN={in} -O0 | op=sum,max in=*f32,f64"""
    variants = []
    for family, line in read_lines():
        if not line.startswith('plan_'):
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
                variants.append((name.strip().format(**given), family + '/' + words[0], defines,
                                 optimisation))
    names = [variant[0] for variant in variants]
    assert len(set(names)) == len(names), 'the parts of variants.txt name one variant twice'
    return sorted(variants)


def quoted(text):
    lines = text.split('\n')
    return '\n'.join('    "%s\\n"' % line.replace('\\', '\\\\').replace('"', '\\"')
                     for line in lines[:-1])


def packed(data, level=9):
    """A raw deflate stream, as packed.h unpacks it."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    return deflate.compress(data) + deflate.flush()


def write_bytes(file, name, data):
    """An array as a string literal: compilers read these fastest."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    escaped = [plain.get(byte, '\\%03o' % byte) for byte in range(256)]
    file.write('const unsigned char %s[] =\n' % name)
    for at in range(0, len(data), 64):
        file.write('"%s"\n' % ''.join(map(escaped.__getitem__, data[at:at + 64])))
    file.write(';\n')


class Texts:
    """All texts behind one another, each piece once, and where they are."""

    def __init__(self):
        self.text = ''
        self.begin = {}

    def add(self, name):
        """The [(begin, size)] of a file's text."""
        positions = []
        for key, text in pieces(name).items():
            if key not in self.begin:
                self.begin[key] = len(self.text)
                self.text += text
            begin = self.begin[key]
            if positions and sum(positions[-1]) == begin:
                positions[-1] = (positions[-1][0], positions[-1][1] + len(text))
            else:
                positions.append((begin, len(text)))
        return positions

    def add_head(self, name):
        """The begin of a file's text, which is whole and ends with a NUL."""
        begin = len(self.text)
        positions = self.add(name)
        if len(positions) > 1:  # it includes what lies elsewhere already
            begin = len(self.text)
            self.text += resolve(name)
        self.text += '\0'
        return begin


def write_sources(out):
    texts = Texts()
    heads = [texts.add_head(name) for name in (
        'program/expression.glsl', 'program/complex.glsl', 'matmul/matmul_products.comp',
        'matmul/matmul_joint.comp', 'reduce/reduce_op.glsl', 'reduce/reduce_loop.glsl')]
    variants = read_variants()
    positions = {name: texts.add(name)
              for name in sorted({variant[1] for variant in variants}, key=os.path.basename)}
    data = texts.text.encode()
    assert len(data) == len(texts.text), 'kernels are ASCII outside of comments'
    first, count = {}, 0
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "packed.h"\n')
        write_bytes(file, 'glsl_packed', packed(data))
        file.write('const struct glsl_texts glsl_texts = {sizeof(glsl_packed) - 1, %s};\n'
                   % ', '.join(str(size) for size in (len(data), *heads)))
        file.write('const struct glsl_piece glsl_pieces[] = {\n')
        for name, list_ in positions.items():
            first[name] = count
            count += len(list_)
            file.write('    %s, // %s\n' % (
                ', '.join('{%d, %d}' % position for position in list_), os.path.basename(name)))
        file.write('};\nconst uint16_t glsl_first_piece[] = {\n    %s};\n' % ', '.join(
            str(first[source]) for _, source, *_ in variants))
        file.write('const tn_vulkan_module own_modules[] = {\n')
        for name, source, defines, _ in variants:
            file.write('    {"%s", 0, %d, 0, "%s"},\n'
                       % (name, sum(size for _, size in positions[source]),
                          ' '.join('%s=%s' % define for define in defines)))
        file.write('};\n')


def flat(source):
    """A file's name in a folder that has all of them."""
    return source.replace('/', '-')


def compile_one(compiler, folder, variant):
    """The size of a variant's code and the packed code, or None after an error. Errors are the
    compiler's, and name the kernel's files."""
    name, source, defines, optimisation = variant
    made = os.path.join(folder, name + '.spv')
    flags = ['-D%s=%s' % define for define in defines]
    flags += [optimisation] if optimisation == '-O0' else []
    done = subprocess.run([compiler, os.path.join(folder, flat(source)), '-o', made] + flags)
    if done.returncode != 0:
        return None
    with open(made, 'rb') as file:
        words = file.read()
    return len(words), packed(words, 7) # 0.6 % larger than by 9, in half the time


def compile_all(compiler, folder, variants):
    """What compile_one() gives, for each variant."""
    for source in {variant[1] for variant in variants}:
        with open(os.path.join(folder, flat(source)), 'w', encoding='utf-8') as file:
            file.write(resolve(source, FOLDER))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        compiled = list(threads.map(lambda variant: compile_one(compiler, folder, variant),
                                    variants))
    wrong = [variant[0] for variant, made in zip(variants, compiled) if not made]
    if wrong:
        sys.exit('%s failed for %s' % (os.path.basename(compiler), ', '.join(wrong)))
    return compiled


def write_spirv(compiler, out):
    variants = read_variants()
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_all(compiler, folder, variants)
    begin = list(itertools.accumulate((len(stream) for _, stream in compiled), initial=0))
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "packed.h"\n')
        write_bytes(file, 'spirv_packed', b''.join(stream for _, stream in compiled))
        file.write('const uint32_t spirv_streams[] = {\n    %s};\n' % ', '.join(map(str, begin)))
        file.write('const tn_vulkan_module own_modules[] = {\n')
        for (name, *_), (size, _) in zip(variants, compiled):
            file.write('    {"%s", 0, %d, 0, 0},\n' % (name, size))
        file.write('};\n')


def write_list(out):
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#ifndef MODULES_H\n#define MODULES_H\n')
        file.write('enum { NUM_MODULES = %d };\n' % len(read_variants()))
        file.write('#define OWN_KERNELS(X) %s\n' % ' '.join('X(%s)' % name for name in read_records()))
        file.write('#endif\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('what', choices=['sources', 'spirv', 'list'])
    parser.add_argument('out')
    parser.add_argument('--compiler', help='tenon-glslc, for spirv')
    args = parser.parse_args()
    if args.what == 'list':
        write_list(args.out)
    elif args.what == 'sources':
        write_sources(args.out)
    else:
        write_spirv(args.compiler, args.out)


if __name__ == '__main__':
    main()
