# SPDX-License-Identifier: MIT
"""Reads the tables of quantised formats from <tenon/ops/quant.h>, and writes GLSL from them.

`names()` are those of TN_QUANT_FORMATS. `macros()` is the text of "formats.glsl", which embed.py
inserts where the file is included.
"""
import re

import tables


def formats():
    """[(name, elements, bytes)] of a block."""
    return [(row[0], int(row[1]), int(row[2]))
            for row in tables.table('ops/quant.h', 'TN_QUANT_FORMATS')]


def names():
    return [name for name, *_ in formats()]


def heads():
    """{plain format: bytes of numbers of 16 bits that packed rows begin with}."""
    return {row[1]: int(row[2]) for row in tables.table('ops/quant.h', 'TN_QUANT_PACKED_FORMATS')}


def values(function):
    """The array of 16 values in a function of quant_blocks.h: each + 128, four bytes a word."""
    body = re.search(r'%s\(int32_t q\)\n{.*?= {(.*?)}' % function,
                     tables.header('ops/quant_blocks.h'), re.S)[1]
    found = [int(value) + 128 for value in body.split(',')]
    assert len(found) == 16, function
    words = [sum(byte << 8 * i for i, byte in enumerate(found[at:at + 4])) for at in range(0, 16, 4)]
    return 'uvec4(%s)' % ', '.join('0x%08xu' % word for word in words)


def macros():
    lines = ['#define %s %d' % (name, i) for i, name in enumerate(names(), 1)]
    head = heads()
    for i, (name, elements, size) in enumerate(formats()):
        lines += ['#%s FORMAT == %s' % ('elif' if i else 'if', name),
                  '#define BLOCK %du' % elements,
                  '#define IS_LARGE %d' % (elements > 32),
                  '#define BYTES %du' % size,
                  '#define UNITS %du' % (size if size % 2 else size // 2),
                  '#define PACKED_HEAD %du' % (head[name] // 2)]
    lines += ['#endif', '#define VALUES_iq4 ' + values('tn_quant_iq4_value'),
              '#define VALUES_mxfp4 ' + values('tn_quant_mxfp4_value')]
    return '\n'.join(lines) + '\n'
