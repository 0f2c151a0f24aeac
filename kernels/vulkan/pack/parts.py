#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Splits program/program_parts.comp into parts, from which backends link programs at run time.

  parts.py COMPILER OUT.c

Compiles the file with tenon-glslc and writes the types, constants, variables and functions of the
module as items, each with the ids that it needs, and the names of the parts: struct spirv_item
and struct spirv_part of parts.h. Ids are renumbered: the ids of items come first, from 1.
"""
import os
import subprocess
import sys
import tempfile

import spirv
from embed import FOLDER, resolve
from tables import dtypes

OPS = spirv.ops()
PATTERNS = {number: pattern.lstrip('!~').replace('?', '') for number, pattern in OPS.values()}
NUMBERS = spirv.numbers()


def numbers_of(*names):
    return (OPS[name][0] for name in names)


CAPABILITY, IMPORT, DECORATE, MEMBER_DECORATE = numbers_of('Capability', 'ExtInstImport', 'Decorate', 'MemberDecorate')
NAME, TYPE_INT, TYPE_FLOAT, TYPE_POINTER = numbers_of('Name', 'TypeInt', 'TypeFloat', 'TypePointer')
VARIABLE, FUNCTION, FUNCTION_END = numbers_of('Variable', 'Function', 'FunctionEnd')
SHUFFLE_XOR, = numbers_of('GroupNonUniformShuffleXor')
# What is passed over: what a linked module says itself; source, strings, lines, names of members.
PASSED = set(numbers_of('EntryPoint', 'MemoryModel', 'Extension', 'ExecutionMode', 'Source', 'SourceExtension',
                        'MemberName', 'String', 'Line', 'NoLine', 'ModuleProcessed'))
INPUT, STORAGE_BUFFER = NUMBERS['StorageClassInput'], NUMBERS['StorageClassStorageBuffer']
CAPABILITY_OF = {(TYPE_FLOAT, 64): NUMBERS['CapabilityFloat64'], (TYPE_INT, 64): NUMBERS['CapabilityInt64'],
                 (TYPE_INT, 16): NUMBERS['CapabilityStorageBuffer16BitAccess'],
                 (TYPE_INT, 8): NUMBERS['CapabilityStorageBuffer8BitAccess']}
SHADER, SUBGROUPS = NUMBERS['CapabilityShader'], NUMBERS['CapabilityGroupNonUniform']
SHUFFLE = NUMBERS['CapabilityGroupNonUniformShuffle']
BUILT_IN = NUMBERS['DecorationBuiltIn']
SUBGROUP_BUILT_INS = {NUMBERS['BuiltIn' + name] for name in
                      ('SubgroupSize', 'NumSubgroups', 'SubgroupId', 'SubgroupLocalInvocationId')}


def id_positions(number, count):
    """Positions of the ids among `count` operands."""
    if number not in PATTERNS:
        sys.exit('parts.py does not know the operands of SPIR-V instruction %d' % number)
    pattern, found = PATTERNS[number], []
    if pattern[-1:] in ('I', 'L'):
        pattern += pattern[-1] * count
    for position, mark in zip(range(count), pattern):
        if mark in 'triI':
            found.append(position)
        elif mark not in 'lL':
            break # operands of memory have scopes in the Vulkan memory model alone
    return found


def text_of(words):
    data = b''.join(word.to_bytes(4, 'little') for word in words)
    return data.split(b'\0')[0].decode()


class Item:
    """A type, constant or variable, or a function: its instructions and decorations."""

    def __init__(self, id_, instructions):
        self.id = id_
        self.instructions = instructions
        self.decorations = []
        self.capability = 0
        self.needs = []

    @property
    def op(self):
        return self.instructions[0][0]

    @property
    def operands(self):
        return self.instructions[0][1]

    def is_function(self):
        return self.op == FUNCTION


class Module:
    def __init__(self, words):
        self.items = []
        self.names = {}
        self.capabilities = []
        self.decorations = []
        self.read(words)
        self.by_id = {item.id: item for item in self.items}
        self.sort_decorations()
        for item in self.items:
            self.find_needs(item)

    def read(self, words):
        at, function = 5, None
        while at < len(words):
            op, size = words[at] & 0xffff, words[at] >> 16
            operands = words[at + 1:at + size]
            at += size
            if op == CAPABILITY:
                self.capabilities.append(operands[0])
            elif op == NAME:
                self.names[operands[0]] = text_of(operands[1:])
            elif op in (DECORATE, MEMBER_DECORATE):
                self.decorations.append((op, operands))
            elif op in PASSED:
                pass
            elif op == FUNCTION:
                function = Item(operands[1], [(op, operands)])
                self.items.append(function)
            elif function:
                function.instructions.append((op, operands))
                function = None if op == FUNCTION_END else function
            else:
                id_ = operands[PATTERNS[op].index('r')]
                self.items.append(Item(id_, [(op, operands)]))

    def sort_decorations(self):
        owner = {}
        for item in self.items:
            for op, operands in item.instructions:
                for position in id_positions(op, len(operands)):
                    if operands[position] not in self.by_id:
                        owner[operands[position]] = item
            owner[item.id] = item
        for op, operands in self.decorations:
            owner[operands[0]].decorations.append((op, operands))

    def find_needs(self, item):
        item.capability = CAPABILITY_OF.get((item.op, (item.operands + [0, 0])[1]), 0) \
            if item.op in (TYPE_INT, TYPE_FLOAT) else 0
        if any(op == SHUFFLE_XOR for op, _ in item.instructions):
            item.capability = SHUFFLE
        if any(operands[1] == BUILT_IN and operands[2] in SUBGROUP_BUILT_INS
               for op, operands in item.decorations if op == DECORATE):
            item.capability = SUBGROUPS
        needs = {operands[position] for op, operands in item.instructions
                 for position in id_positions(op, len(operands))}
        item.needs = sorted(id_ for id_ in needs if id_ in self.by_id and id_ != item.id)

    def renumber(self):
        """Numbers the items 1, 2, ... in their order, then the ids inside of functions."""
        new = {item.id: at + 1 for at, item in enumerate(self.items)}
        def number(id_):
            return new.setdefault(id_, len(new) + 1)
        for item in self.items:
            for op, operands in item.instructions:
                for position in id_positions(op, len(operands)):
                    operands[position] = number(operands[position])
            for _, operands in item.decorations:
                operands[0] = number(operands[0])
            item.needs = sorted(new[id_] for id_ in item.needs)
            item.id = new[item.id]
        self.names = {new[id_]: name for id_, name in self.names.items() if id_ in new}
        self.by_id = {item.id: item for item in self.items}
        return len(new) + 1

    def find(self, op, *operands):
        """The item with these operands behind its result; None stands for any operand."""
        for item in self.items:
            rest = item.operands[1:]
            if item.op == op and len(rest) >= len(operands) and \
               all(want in (None, got) for want, got in zip(operands, rest)):
                return item
        sys.exit('program_parts.comp lacks an instruction %d %s' % (op, operands))


def words_of(instructions):
    return [word for op, operands in instructions
            for word in [op | (len(operands) + 1) << 16] + operands]


def parts(module):
    """{name: (id, result type, function type)} of the functions in capitals."""
    found = {}
    for item in module.items:
        name = module.names.get(item.id, '').split('(')[0]
        if item.is_function() and (name[:1].isupper() or name == 'main'):
            found[name] = (item.id, item.operands[0], item.operands[3])
    return found


def memory_types(module, functions):
    """For each dtype its types: pointers to a buffer of ones and to one; of fours, to four;
    then S_, SV_, W_, WV_, C_. What a complex dtype does not have is 0."""
    rows = [[0] * 9]
    variables = {module.names.get(item.id): item for item in module.items
                 if item.op == VARIABLE}
    for dtype in (row.name for row in dtypes()):
        row = []
        stored = []
        for name in ('ones_', 'fours_'):
            if name + dtype not in variables:
                stored.append(0)
                row += [0, 0]
                continue
            block = variables[name + dtype].operands[0]
            struct = module.by_id[module.by_id[block].operands[2]]
            element = module.by_id[struct.operands[1]].operands[1]
            stored.append(element)
            row += [block, module.find(TYPE_POINTER, STORAGE_BUFFER, element).id]
        _, computed, signature = functions['TYPES_' + dtype]
        loaded = module.by_id[signature].operands[2:4]
        rows.append(row + stored + loaded + [computed])
    return rows


def write(out, module, bound):
    functions = parts(module)
    data, needs, lines = [], [], []
    for item in module.items:
        is_input = item.op == VARIABLE and item.operands[2] == INPUT
        fields = []
        for instructions in (item.instructions, item.decorations):
            words = words_of(instructions)
            fields += [len(data), len(words)]
            data += words
        fields += [len(needs), len(item.needs), item.capability, int(is_input)]
        needs += item.needs
        lines.append('    {%s},\n' % ', '.join(str(field) for field in fields))
    with open(out, 'w', encoding='utf-8') as file:
        def table(kind, name, values):
            file.write('const %s %s[] = {\n' % (kind, name))
            for at in range(0, len(values), 12):
                file.write(','.join(str(value) for value in values[at:at + 12]) + ',\n')
            file.write('};\n')
        file.write('#include "parts.h"\n')
        table('uint32_t', 'spirv_words', data)
        table('uint16_t', 'spirv_needs', needs)
        file.write('const struct spirv_item spirv_items[] = {\n%s};\n' % ''.join(lines))
        file.write('const unsigned num_spirv_items = %d;\n' % len(lines))
        file.write('const unsigned spirv_bound = %d;\n' % bound)
        file.write('const struct spirv_part spirv_parts[] = {\n')
        for name in sorted(functions):
            file.write('    {"%s", %d, %d, %d},\n' % ((name,) + functions[name]))
        file.write('};\nconst unsigned num_spirv_parts = %d;\n' % len(functions))
        file.write('const struct spirv_dtype spirv_dtypes[] = {\n')
        for row in memory_types(module, functions):
            file.write('    {%s},\n' % ', '.join(str(id_) for id_ in row))
        file.write('};\n')


def compile_parts(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'program_parts.comp')
        with open(source, 'w', encoding='utf-8') as file:
            file.write(resolve('program/program_parts.comp', FOLDER))
        subprocess.run([compiler, '--functions', source, '-o', source + '.spv'], check=True)
        with open(source + '.spv', 'rb') as file:
            data = file.read()
    return [int.from_bytes(data[at:at + 4], 'little') for at in range(0, len(data), 4)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    module = Module(compile_parts(sys.argv[1]))
    unknown = set(module.capabilities) - set(CAPABILITY_OF.values()) - {SHADER, SUBGROUPS, SHUFFLE}
    if unknown or module.items[0].op != IMPORT or module.items[1].op == IMPORT:
        sys.exit('parts.py does not know capabilities %s, or another import' % unknown)
    write(sys.argv[2], module, module.renumber())


if __name__ == '__main__':
    main()
