#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the compiler's version as a header: its name, the project's version, and a hash of the
compiler's sources, since any of them may change what it makes. Caches of compiled shaders have
the version in their keys.

  version.py VERSION OUT.h DEPFILE
"""
import hashlib
import pathlib
import sys


def main():
    version, out, depfile = sys.argv[1:]
    folder = pathlib.Path(__file__).resolve().parent
    kernels = folder.parent
    sources = sorted(path for top in (folder, kernels / 'spirv') for path in top.rglob('*.[ch]')
                     if folder / 'tool' not in path.parents)
    code = hashlib.sha256()
    for source in sources:
        name = source.relative_to(kernels).as_posix()
        code.update(name.encode() + b'\0' + source.read_bytes())
    pathlib.Path(out).write_text('#define GLSL_COMPILER_VERSION "tenon-glslc %s %s"\n'
                                 % (version, code.hexdigest()[:12]), encoding='utf-8')
    names = [str(source).replace(' ', '\\ ') for source in sources]
    pathlib.Path(depfile).write_text('%s: %s\n' % (out, ' '.join(names)), encoding='utf-8')


if __name__ == '__main__':
    main()
