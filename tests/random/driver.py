# SPDX-License-Identifier: MIT
"""Asks driver.c, which runs in a process of its own; where that dies, another one is started."""
import json
import os
import select
import subprocess

import numpy as np
from programs import NAMES
from rules import DTYPES

PATIENCE = 120  # seconds for a request: compiling for a software driver takes long


class Died(Exception):
    """The process ended, or does not answer."""


class Driver:
    def __init__(self, path, backend):
        self.path, self.backend, self.process = path, backend, None

    def start(self):
        env = dict(os.environ, TENON_BACKEND=self.backend)
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0)
        self.output = bytearray()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def died(self):
        status = self.process.poll()
        why = f'does not answer for {PATIENCE} s' if status is None else \
            f'ends by signal {-status}' if status < 0 else f'ends with {status}'
        self.stop()
        return Died('the process ' + why)

    def more(self):
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise self.died()
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            self.process.wait()
            raise self.died()
        self.output += data

    def read(self, size):
        while len(self.output) < size:
            self.more()
        data = bytes(self.output[:size])
        del self.output[:size]
        return data

    def read_line(self):
        while b'\n' not in self.output:
            self.more()
        return self.read(self.output.index(b'\n') + 1)

    def ask(self, request, arrays):
        """Gives arrays, or a message; raises Died."""
        if self.process is None:
            self.start()
        told = [{'dtype': NAMES[x.dtype], 'shape': list(x.shape)} for x in arrays]
        data = json.dumps(dict(request, arrays=told)).encode() + b'\n'
        data += b''.join(np.ascontiguousarray(x).tobytes() for x in arrays)
        try:
            while data:
                data = data[self.process.stdin.write(data):]
        except BrokenPipeError:
            self.process.wait()
            raise self.died() from None
        answer = json.loads(self.read_line())
        out = []
        for a in answer['arrays']:
            dtype = np.dtype(DTYPES[a['dtype']])
            count = int(np.prod(a['shape'], dtype='i8'))
            out.append(np.frombuffer(self.read(count * dtype.itemsize), dtype).reshape(a['shape']))
        return answer.get('error', out)
