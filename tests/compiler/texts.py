#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the shaders of the project that are files, or literals of C files, as a table of C.

  texts.py OUT.c OUT.h

OUT.c has `file_texts` of texts.h; OUT.h its length. The kernels of kernels/vulkan and the
generated programs are not among them: texts.c has these at hand.
"""
import ast
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'kernels/vulkan/pack'))

from embed import quoted, resolve

# A file, and the sets of macros that it is compiled with.
FILES = [
    ('sdk/examples/rmsnorm/rms_sums.comp', ['']),
    ('sdk/examples/rmsnorm/rms_rows.comp', ['']),
    ('sdk/examples/rmsnorm/rms_scale.comp', ['']),
    ('sdk/examples/axpby/axpby.comp', ['']),
    ('sdk/conformance/family/family.comp', ['']),
    ('sdk/conformance/family/plan.comp', ['']),
    ('tests/fixtures/kernels.comp',
     [name.upper() + '=1' for name in ('plain', 'strided', 'half', 'brain', 'sized', 'reads',
                                       'counted', 'pairs', 'wide', 'atomics')]),
]
# C files whose string literals that begin with #version are shaders. Those that are wrong on
# purpose are refused by both compilers.
LITERALS = ['sdk/conformance/family/group_family.c', 'tests/kernels/vulkan_kernels.c',
            'tests/check/faulty/plan.c', 'tests/kernels/compiler.c']
# Its functions are linked one by one.
PARTS = 'kernels/vulkan/program/program_parts.comp'
TEMPLATES = ['sdk/templates/kernels/shader.comp.tpl', 'sdk/templates/op-pack/shader.comp.tpl']
FILLED = {
    'LICENSE': 'MIT', 'FOR': 'acme.sum',
    'BINDINGS': '\n'.join('layout(std430, binding = %d) %s buffer B%d { float %s[]; };' % row
                          for row in [(0, 'readonly', 0, 'x'), (1, 'readonly', 1, 'y'),
                                      (2, 'writeonly', 2, 'result')]),
    'PUSH': '    uint count, x_at, y_at, out_at;\n    float alpha;',
    'GLSL_EXPR': 'choose(x[x_at + i] < alpha, max_of(x[x_at + i], y[y_at + i]), '
                 'min_of(x[x_at + i], 1e-3)) * alpha + exp(y[y_at + i])',
}


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def literals(path):
    """[(name, text)] of the variables of a C file that are shaders."""
    found = []
    pattern = r'char (\w+)\[\] =\s*((?:"(?:[^"\\\n]|\\.)*"\s*)+);'
    for name, pieces in re.findall(pattern, read(path)):
        text = ''.join(ast.literal_eval(piece)
                       for piece in re.findall(r'"(?:[^"\\\n]|\\.)*"', pieces))
        if text.startswith('#version'):
            found.append((name, text))
    return found


def filled(path):
    lines = [line for line in read(path).split('\n') if not line.startswith('%')]
    return re.sub('@([A-Z_]+)@', lambda match: FILLED[match.group(1)], '\n'.join(lines))


def collect():
    """[(name, text, macros)]"""
    texts = [(PARTS, resolve('program/program_parts.comp'), '')]
    for path, choices in FILES:
        texts += [(path + (' ' + macros if macros else ''), read(path), macros)
                  for macros in choices]
    for path in LITERALS:
        texts += [('%s %s' % (path, name), text, '') for name, text in literals(path)]
    texts += [(path, filled(path), '') for path in TEMPLATES]
    return texts


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    texts = collect()
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        file.write('#include "texts.h"\nconst struct file_text file_texts[] = {\n')
        for name, text, macros in texts:
            file.write('    {"%s",\n%s, "%s", %s},\n'
                       % (name, quoted(text if text.endswith('\n') else text + '\n'), macros,
                          'GLSL_KEEPS_FUNCTIONS' if name == PARTS else '0'))
        file.write('};\n')
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write('enum { NUM_FILE_TEXTS = %d };\n' % len(texts))


if __name__ == '__main__':
    main()
