# SPDX-License-Identifier: MIT
"""Reads the tables of SPIR-V: kernels/spirv.

`ops()` is SPIRV_OPS of opcode.h, {name: (number, pattern)}. `numbers()` are the named numbers of
numbers.h, with those of SPIRV_CAPABILITIES as CapabilityNAME.
"""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../spirv')


def text_of(name):
    with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
        return file.read()


def ops():
    return {name: (int(number), pattern)
            for name, number, pattern in re.findall(r'X\((\w+), (\d+), "(.*?)"\)', text_of('opcode.h'))}


def numbers():
    text = text_of('numbers.h')
    found = {name: int(value, 0) for name, value in re.findall(r'^ +(\w+) = (\w+),', text, re.M)}
    found.update(('Capability' + name, int(number)) for name, number in re.findall(r'X\((\w+), (\d+),', text))
    return found
