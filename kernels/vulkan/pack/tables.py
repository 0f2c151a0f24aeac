#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the tables of dtypes and instructions from the public headers, and writes GLSL from them.

`dtypes()` and `instructions()` are the rows of TN_DTYPES (types.h) and TN_EXPR_OPS (expr.h).
`parts()` is the text of "parts.glsl", which embed.py inserts where the file is included: a part
for each instruction and class of operand, the conversions, and the parts of every dtype.
`types()` is "dtypes.glsl", the macros of types.glsl, and `complex_f64()` "complex_functions_f64.glsl".
"""
import collections
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, '../../../sdk/include/tenon')

Dtype = collections.namedtuple('Dtype', 'name kind bytes computed')
Instruction = collections.namedtuple('Instruction', 'name operands kind dtypes')
KINDS = ('BOOL', 'SIGNED', 'UNSIGNED', 'FLOAT')
KINDS_OF = {'NONE': (), 'BOOL': ('BOOL',), 'INTEGER': ('SIGNED', 'UNSIGNED'), 'FLOAT': ('FLOAT',),
            'BITS': ('BOOL', 'SIGNED', 'UNSIGNED'), 'NUMBER': ('SIGNED', 'UNSIGNED', 'FLOAT'),
            'ROW_NUMBER': (), 'ROW_ANY': (), 'ANY': KINDS, 'ANY_COMPLEX': KINDS + ('COMPLEX',),
            'COMPLEX': ('COMPLEX',), 'PARTS': ('FLOAT',), 'FLOAT_COMPLEX': ('FLOAT', 'COMPLEX'),
            'NUMBER_COMPLEX': ('SIGNED', 'UNSIGNED', 'FLOAT', 'COMPLEX')}
SUFFIX_OF = {'BOOL': '_b', 'COMPLEX': '_c'} # of op_NAME, by the kind of its operands
REAL_OF = {'complex64': 'f32', 'complex128': 'f64'}
COMPLEX_OF = {real: name for name, real in REAL_OF.items()}
BYTES_OF = {'float': 4, 'double': 8}


def header(name):
    with open(os.path.join(HEADERS, name), encoding='utf-8') as file:
        return file.read()


def table(name, macro):
    """The rows of a table of a header, as lists of their words."""
    body = re.search(r'#define %s\(X\)((?:.*\\\n)*.*)' % macro, header(name))[1]
    return [[word.strip().strip('"') for word in row.split(', ')]
            for row in re.findall(r'X\((\w+, .*?)\)', body)]


def dtypes():
    found = {row[0]: row for row in table('types.h', 'TN_DTYPES')}
    return [Dtype(name, kind, BYTES_OF.get(type_) or int(re.search(r'\d+', type_)[0]) // 8,
                  found[computed][1])
            for _, name, type_, kind, _, computed, _ in found.values()]


def instructions():
    return [Instruction(name, int(operands), kind, dtypes_)
            for name, _, operands, kind, dtypes_ in table('expr.h', 'TN_EXPR_OPS')]


def class_of(dtype):
    """The dtype in whose GLSL type the dtype is computed: integers in at least 32 bits."""
    if dtype.kind in ('BOOL', 'FLOAT', 'FLOAT8') or dtype.bytes >= 4:
        return dtype.computed
    return {'SIGNED': 'i32', 'UNSIGNED': 'u32'}[dtype.kind]


def classes():
    return [dtype for dtype in dtypes() if class_of(dtype) == dtype.name]


def computed_as(name):
    """The names of the dtypes of a class; or of all integers ('int'), or all floats of 16 bits
    ('half'). Without floats of 8 bits, which kernels do not take."""
    def fits(dtype):
        if dtype.kind == 'FLOAT8':
            return False
        if name == 'int':
            return dtype.kind in ('SIGNED', 'UNSIGNED')
        return dtype.computed != dtype.name if name == 'half' else class_of(dtype) == name
    return [dtype.name for dtype in dtypes() if fits(dtype)]


def result_of(insn, own):
    """The name of the dtype of an instruction's result, for operands of a class."""
    if insn.kind in ('TEST', 'COMPARE', 'LOGIC'):
        return 'bool'
    names = {'PART': REAL_OF, 'JOIN': COMPLEX_OF}.get(insn.kind, {})
    return names.get(own.name, own.name)


def number(dtype, bytes_):
    """The GLSL type of a number of the dtype's kind in so many bytes, and of four of them."""
    letter, name = {'SIGNED': ('i', 'int'), 'UNSIGNED': ('u', 'uint')}.get(dtype.kind, ('', 'float'))
    if bytes_ == 4:
        return name, letter + 'vec4'
    if name == 'float':
        return 'double', 'dvec4'
    return '%s%d_t' % (name, 8 * bytes_), '%s%dvec4' % (letter, 8 * bytes_)


def type_of(dtype):
    """The macros of types.glsl for a dtype, as [(name, text)]."""
    name, bits = dtype.name, dtype._replace(kind='UNSIGNED')
    if dtype.kind == 'COMPLEX':
        vector = {8: 'vec2', 16: 'dvec2'}[dtype.bytes]
        return [('S', vector), ('W', vector), ('C', vector), ('FROM', '(w)'), ('TO', '(c)'), ('WRAP', '(c)')]
    is_bits = dtype.kind == 'BOOL' or dtype.computed != name  # in memory, and as loaded
    stored = number(bits if is_bits else dtype, dtype.bytes)
    loaded = number(bits if is_bits else dtype, max(dtype.bytes, 4))
    computed, from_, to, wrap = loaded[0], '(w)', '(c)', '(c)'
    if dtype.kind == 'BOOL':
        computed, from_, to = 'bool', '((w) != 0u)', '((c) ? 1u : 0u)'
    elif is_bits:
        computed, from_, to = 'float', name + '_value(w)', name + '_bits(c)'
    elif dtype.bytes < 4:
        wrap = {'SIGNED': 'bitfieldExtract(int(c), 0, %d)' % (8 * dtype.bytes),
                'UNSIGNED': '(uint(c) & 0x%xu)' % (256 ** dtype.bytes - 1)}[dtype.kind]
    own = [('UNSIGNED', number(bits, max(dtype.bytes, 4))[0])] if dtype.kind in ('SIGNED', 'UNSIGNED') else []
    return [('S', stored[0]), ('SV', stored[1]), ('W', loaded[0]), ('WV', loaded[1]), ('C', computed),
            ('FROM', from_), ('TO', to), ('WRAP', wrap)] + own


def types():
    taken = {'FROM': '(w)', 'TO': '(c)', 'WRAP': '(c)'}
    return ''.join('#define %s_%s%s %s\n' % (macro, dtype.name, taken.get(macro, ''), text)
                   for dtype in dtypes() for macro, text in type_of(dtype))


def operation_parts():
    for insn in instructions():
        for own in classes():
            if own.kind not in KINDS_OF[insn.dtypes] or insn.kind == 'SELECT':
                continue
            type_, suffix = 'C_' + own.name, SUFFIX_OF.get(own.kind, '')
            types, values = [type_] * insn.operands, ['a', 'b', 'c'][:insn.operands]
            if insn.kind == 'SHIFT':
                types.append('uint')
                values.append('int(c)')
            is_sum = insn.name in ('ADD', 'SUB') and own.kind in ('FLOAT', 'COMPLEX')
            yield '%s_%d(%s, %s_%s, %s, op_%s%s(%s))' % (
                'SUM' if is_sum else 'PART', len(types), 'C_' + result_of(insn, own), insn.name, own.name,
                ', '.join(types), insn.name, suffix, ', '.join(values))
    # SPIR-V selects scalars by a bool, and vectors by a vector of them.
    for own in classes():
        if own.kind == 'COMPLEX':
            yield 'PART_3(C_{0}, SELECT_{0}, bool, C_{0}, C_{0}, a ? b : c)'.format(own.name)


def cast(source, target):
    """The conversion from a class to a dtype; None where the one to the dtype's class suffices, or
    where it is that of a real part."""
    if 'COMPLEX' in (source.kind, target.kind) and target.kind != 'BOOL':
        return 'C_%s(a)' % target.name if source.kind == target.kind else None
    if target.kind == 'BOOL':
        by_bits = source.kind == 'COMPLEX' or source.name == 'f32'
        return 'to_bool(a)' if by_bits else '!(a == C_%s(0))' % source.name
    saturates = source.kind == 'FLOAT' and target.kind != 'FLOAT'
    extends = source.kind == 'SIGNED' and source.bytes < target.bytes and target.kind != 'FLOAT'
    if saturates or extends:
        return 'to_%s(a)' % target.name
    return 'C_%s(a)' % target.name if class_of(target) == target.name else None


def cast_parts():
    for source in classes():
        for target in dtypes():
            is_narrow = class_of(target) != target.name
            how = cast(source, target) if source != target else None
            if how and (not is_narrow or source.kind == 'FLOAT') and target.computed == target.name:
                yield 'PART_1(C_%s, CAST_%s_%s, C_%s, %s)' % (target.name, source.name, target.name,
                                                             source.name, how)


def dtype_parts():
    for dtype in dtypes():
        name = dtype.name
        if dtype.kind in ('SIGNED', 'UNSIGNED') and class_of(dtype) != name:
            yield 'PART_1(C_%s, NARROW_%s, C_%s, WRAP_%s(a))' % (name, name, name, name)
        if dtype.kind == 'BOOL' or dtype.computed != name:
            yield 'PART_1(C_%s, DECODE_%s, W_%s, FROM_%s(a))' % (name, name, name, name)
            yield 'PART_1(W_%s, ENCODE_%s, C_%s, TO_%s(a))' % (name, name, name, name)
        four = 'W' if dtype.kind == 'COMPLEX' else 'WV'
        yield 'PART_2(C_%s, TYPES_%s, W_%s, %s_%s, C_%s(0))' % (name, name, name, four, name, name)


def complex_f64():
    """complex_functions.glsl for dvec2."""
    with open(os.path.join(HERE, '../program/complex_functions.glsl'), encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'\b(vec[23])\b', r'd\1', re.sub(r'\bfloat\b', 'double', text))
    text = re.sub(r'\b(infinity|not_a_number)\(', r'\1_f64(', text)
    return re.sub(r'(?<![\w.])(\d+\.\d+(?:e[+-]?\d+)?)', r'\1LF', text)


def needs():
    return '#define NEED_FLOAT8\n#define NEED_COMPLEX_NUMBERS\n' + ''.join('#define NEED_%s\n' % insn.name for insn in instructions())


def parts():
    lines = [*operation_parts(), *cast_parts(), *dtype_parts()]
    buffers = ['%s(%s)' % ('ONES' if dtype.kind == 'COMPLEX' else 'BUFFERS', dtype.name)
               for dtype in dtypes()]
    return '#define TABLE_PARTS %s\n#define TABLE_BUFFERS %s\n' % (
        ' '.join(lines), ' '.join(buffers))
