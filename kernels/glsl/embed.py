#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the kernels of this folder into C.

  embed.py sources OUT.c OUT.h              text of every variant, for compiling at run time
  embed.py spirv OUT.c OUT.h --compiler C   SPIR-V of every variant, made by tenon-glslc

Both read variants.txt. OUT.c has the tables that embedded.h and packed.h declare, with the code
packed by deflate; OUT.h their length.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile
import zlib

import tables

# Included files that are not on disk: tables.py writes their text.
MADE = {'needs.glsl': tables.needs, 'parts.glsl': tables.parts,
        'complex_functions_f64.glsl': tables.complex_f64}
HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    """The text of a file, without comments, indentation and blank lines."""
    if name in MADE:
        text = MADE[name]()
    else:
        with open(os.path.join(HERE, name), encoding='utf-8') as file:
            text = file.read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    lines = (re.sub(r'\s*//.*', '', line).strip() for line in text.split('\n'))
    return [line + '\n' for line in lines if line]


def pieces(name, seen=None):
    """A file with its #includes expanded, once each, as pieces: {(file, number): text}. Equal keys
    have equal texts, in whatever file they are."""
    seen = set() if seen is None else seen
    found, number = {}, 0
    if name in seen:
        return found
    seen.add(name)
    for line in read(name):
        include = re.match(r'#include "(.*)"', line)
        if include:
            found.update(pieces(include.group(1), seen))
            number += 1
        else:
            found[name, number] = found.get((name, number), '') + line
    return found


def resolve(name):
    """The text of a file with its #includes expanded, once each, and without comments."""
    return ''.join(pieces(name).values())


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


def packed(data):
    """A raw deflate stream, as packed.h unpacks it."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    return deflate.compress(data) + deflate.flush()


def write_bytes(file, name, data):
    """An array as a string literal: compilers read these fastest."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    escaped = [plain.get(byte, '\\%03o' % byte) for byte in range(256)]
    file.write('const unsigned char %s[] =\n' % name)
    for at in range(0, len(data), 64):
        file.write('"%s"\n' % ''.join(escaped[byte] for byte in data[at:at + 64]))
    file.write(';\n')


class Texts:
    """All texts behind one another, each piece once, and where they are."""

    def __init__(self):
        self.text = ''
        self.begin = {}

    def add(self, name):
        """The [(begin, size)] of a file's text."""
        places = []
        for key, text in pieces(name).items():
            if key not in self.begin:
                self.begin[key] = len(self.text)
                self.text += text
            begin = self.begin[key]
            if places and sum(places[-1]) == begin:
                places[-1] = (places[-1][0], places[-1][1] + len(text))
            else:
                places.append((begin, len(text)))
        return places

    def add_head(self, name):
        """The begin of a file's text, which is whole and ends with a NUL."""
        places = self.add(name)
        if len(places) > 1:
            sys.exit('%s includes what lies elsewhere already' % name)
        self.text += '\0'
        return places[0][0]


def write_sources(out):
    texts = Texts()
    heads = [texts.add_head(name) for name in ('expression.glsl', 'complex.glsl')]
    variants = read_variants()
    places = {name: texts.add(name) for name in sorted({variant[1] for variant in variants})}
    data = texts.text.encode()
    assert len(data) == len(texts.text), 'kernels are ASCII outside of comments'
    first, count = {}, 0
    with open(out, 'w', encoding='utf-8') as file:
        file.write('#include "packed.h"\n')
        write_bytes(file, 'glsl_packed', packed(data))
        file.write('const struct glsl_texts glsl_texts = {sizeof(glsl_packed) - 1, %d, %d, %d};\n'
                   % (len(data), *heads))
        file.write('const struct glsl_piece glsl_pieces[] = {\n')
        for name, list_ in places.items():
            first[name] = count
            count += len(list_)
            file.write('    %s, // %s\n' % (', '.join('{%d, %d}' % place for place in list_), name))
        file.write('};\nconst uint16_t glsl_first_piece[] = {\n    %s};\n' % ', '.join(
            str(first[source]) for _, source, *_ in variants))
        file.write('const tn_vulkan_module glsl_modules[] = {\n')
        for name, source, defines, _ in variants:
            file.write('    {"%s", 0, %d, 0, "%s"},\n'
                       % (name, sum(size for _, size in places[source]),
                          ' '.join('%s=%s' % define for define in defines)))
        file.write('};\n')


def compile_one(compiler, folder, variant):
    """The size of a variant's code and the packed code, or None after an error. Errors are the
    compiler's, in the text of resolve()."""
    name, source, defines, optimisation = variant
    made = os.path.join(folder, name + '.spv')
    flags = ['-D%s=%s' % define for define in defines]
    flags += [optimisation] if optimisation == '-O0' else []
    done = subprocess.run([compiler, os.path.join(folder, source), '-o', made] + flags)
    if done.returncode != 0:
        return None
    with open(made, 'rb') as file:
        words = file.read()
    return len(words), packed(words)


def compile_all(compiler, folder, variants):
    """What compile_one() gives, for each variant."""
    for source in {variant[1] for variant in variants}:
        with open(os.path.join(folder, source), 'w', encoding='utf-8') as file:
            file.write(resolve(source))
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
        file.write('const tn_vulkan_module spirv_modules[] = {\n')
        for (name, *_), (size, _) in zip(variants, compiled):
            file.write('    {"%s", 0, %d, 0, 0},\n' % (name, size))
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
