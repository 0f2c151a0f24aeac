# SPDX-License-Identifier: MIT
"""What the records of installed operators say (ops.json beside the manifests): dtypes of operands, which of
them have no derivative, defaults and choices of attributes; and that each operator is drawn or excused."""
import json
import os
import pathlib

import numpy as np

PACKS = ('base', 'nn', 'optim', 'fft', 'linalg', 'random')
DTYPES = {'bool': '?', 'i8': 'i1', 'i16': 'i2', 'i32': 'i4', 'i64': 'i8', 'u8': 'u1', 'u16': 'u2', 'u32': 'u4', 'u64': 'u8',
          'f16': 'f2', 'f32': 'f4', 'f64': 'f8', 'complex64': 'c8', 'complex128': 'c16'}
# Operators of PACKS that no program has, and why.
EXCUSED = {'base.print': 'an effect: its text is what it is for',
           **dict.fromkeys(('nn.lstm_layers', 'nn.gru_layers', 'nn.rnn_layers'), 'lstm, gru and rnn in a row')}
# What is written otherwise in the language, or is drawn as part of something.
WRITTEN = {'index': ['slice', 'squeeze'], 'T': ['transpose'], 'mT': ['transpose'], 'stft_back': ['stft', 'istft'],
           'lstm': ['recurrence', 'recurrence_steps', 'recurrence_grad'],
           'attention_with_sinks': ['attention_with_sinks_grad'], 'embedding_bag': ['bag_sum'], 'interpolate': ['resample2d', 'resample2d_input']}


def load():
    """Records by the name without its pack, and with it; of equal names base's counts, of revisions the last."""
    def revision(record):
        return int(record['id'].split('/')[1])
    found = {}
    for folder in os.environ.get('TENON_PLUGIN_PATH', '').split(':'):
        for file in sorted(pathlib.Path(folder).glob('*/ops.json')) if folder else []:
            for record in sorted(json.loads(file.read_text())['operators'], key=revision):
                name = record['id'].split('/')[0]
                found[name] = record
                short = name.split('.', 1)[1]
                if short not in found or found[short]['id'].split('/')[0] == name or name.startswith('base.'):
                    found[short] = record
    return found


RECORDS = load()


def dtypes_of(name, operand):
    """Those of NumPy that an operand may have."""
    inputs = RECORDS[name]['inputs']
    one = inputs[min(operand, len(inputs) - 1)]
    return {np.dtype(DTYPES[d]) for d in one['dtypes'].split() if d in DTYPES}


def taken(name, operand=0, kinds='iufbc'):
    """A test of arrays: whether the record takes its dtype, of these kinds."""
    allowed = dtypes_of(name, operand) if name in RECORDS else None

    def fits(x):
        return x.dtype.kind in kinds and (allowed is None or x.dtype in allowed)
    return fits


def constants_of(name, count):
    """The operands without a derivative, of `count`."""
    record = RECORDS.get(name)
    if not record:
        return []
    inputs = record['inputs']
    return [k for k in range(count) if inputs and 'constant' in inputs[min(k, len(inputs) - 1)].get('flags', '')]


def missing(drawn):
    """Operators of PACKS that are neither drawn nor excused; and excuses for what is none."""
    names = {n for n in RECORDS if n.split('.')[0] in PACKS and '.' in n}
    used = set(drawn) | {w for d in drawn for w in WRITTEN.get(d, [])}
    used = {RECORDS[u]['id'].split('/')[0] for u in used if u in RECORDS}
    left = sorted(n for n in names if n not in used and n not in EXCUSED)
    return left, sorted(n for n in EXCUSED if n not in names or n in used)
