# SPDX-License-Identifier: MIT
"""C functions as kernels of the CPU: by address, or as text for the system's compiler."""

import ctypes
import functools
import hashlib
import inspect
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from . import _core
from ._kernels import KernelError, Text, arrays_of, new_id, with_rules

_TYPES = {"bool": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t",
          "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "f32": "float", "f64": "double"}
_HEAD = "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
_FLAGS = ("-std=gnu11", "-O3", "-shared", "-fPIC", "-Wall", "-Wno-unused", "-Werror=implicit-function-declaration",
          "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-fdiagnostics-color=never")
_ITEM = re.compile(r"\s*,?\s*(?:(in|out|inout)\s+(\w+)\s*\[[^\]]*\]|(extent)\s+[^\s,]+|(user)|->\s*(\w+)|(\w+))", re.A)
_kept = []  # libraries and functions that kernels call


def _prototype(signature):
    """The result and the parameters in C of a signature (<tenon/ffi.h>), and the number of inputs; None where it is
    wrong: the core says how."""
    parameters, inputs, result, at = [], 0, None, 0
    while at < len(signature.rstrip()):
        item = _ITEM.match(signature, at)
        if not item:
            return None
        way, kind, extent, user, gives, number = item.groups()
        name = kind or number or (gives if gives not in ("void", "status") else None)
        if name and name not in _TYPES:
            return None
        inputs += way in ("in", "inout") or bool(number)
        if way:
            parameters.append(f"{'const ' if way == 'in' else ''}{_TYPES[kind]} *")
        elif gives:
            result = {"void": "void", "status": "int32_t"}.get(gives) or _TYPES[gives]
        else:
            parameters.append("int64_t" if extent else "void *" if user else _TYPES[number])
        at = item.end()
    return (result, parameters, inputs) if result else None


def _cache():
    """A folder of this user's for compiled kernels, as the library's own cache is."""
    base = os.environ.get("TENON_CACHE_DIR")
    base = pathlib.Path(base) if base else pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tenon"
    folder = base / "c"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022:
            return folder
    except OSError:
        pass
    return _private_folder()


@functools.lru_cache(maxsize=None)
def _private_folder():
    folder = tempfile.TemporaryDirectory(prefix="tenon-c-")
    _kept.append(folder)
    return pathlib.Path(folder.name)


@functools.lru_cache(maxsize=None)
def _compiler(command):
    """The words of the compiler's command, and its version."""
    command = shlex.split(command)
    try:
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotImplementedError(f"cpu_kernel: a kernel as text needs a compiler of C, and {command[0]} does not run "
                                  f"({error}): install gcc or clang, or set CC") from None
    return command, version


def _compile(what, text, symbol, prototype, flags):
    result, parameters, _ = prototype
    command, version = _compiler(os.environ.get("CC") or "cc")
    check = (f"\n#line 1 \"signature\"\n{result} (*const tenon_signature)({', '.join(parameters) or 'void'}) "
             f"= {symbol};\n")
    source = _HEAD + '#line 1 "source"\n' + text.text + check
    flags = [*_FLAGS, *flags]
    key = hashlib.sha256("\0".join([version, *command, *flags, source]).encode()).hexdigest()
    path = _cache() / f"{key}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = os.path.join(folder, "kernel.so")
            done = subprocess.run([*command, *flags, "-x", "c", "-", "-o", made, "-lm"], input=source, text=True,
                                  capture_output=True)
            if done.returncode:
                raise _problem(what, text, symbol, prototype, done.stderr)
            os.replace(made, path)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise KernelError(f"{what}: the compiled kernel cannot be loaded: {error}") from None
    _kept.append(library)
    return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value


def _problem(what, text, symbol, prototype, messages):
    """The exception for a compiler's messages: an error in a line of the text, or a function that does not fit the signature."""
    found = re.search(r"^source:(\d+)(?::(\d+))?: (?:fatal )?error: (.*)$", messages, re.M)
    if found:
        return text.error(found[3], int(found[1]), int(found[2] or 0))
    result, parameters, _ = prototype
    if re.search(r"^signature:\d+:\d+: (?:fatal )?error", messages, re.M):
        is_there = "undeclared" not in messages
        problem = "has another type" if is_there else "is not in the text"
        return KernelError(f"{what}: the function {symbol} {problem}, expected {result} {symbol}"
                           f"({', '.join(parameters)}), as the signature says", text.file, text.first)
    return KernelError(f"{what}: the compiler failed:\n{messages.strip()}")


# What ctypes calls the types of C.
_CTYPES = {ctypes.c_float: "float", ctypes.c_double: "double", ctypes.c_void_p: "void *", None: "void"}
for _bits in (8, 16, 32, 64):
    _CTYPES[getattr(ctypes, f"c_int{_bits}")] = f"int{_bits}_t"
    _CTYPES[getattr(ctypes, f"c_uint{_bits}")] = f"uint{_bits}_t"


def _address(what, function, prototype):
    """The address of a function of ctypes or cffi, or a number that is one."""
    if isinstance(function, bool) or function is None:
        raise TypeError(f"{what}: got {function!r}, expected a function of ctypes or cffi, its address, or text of C")
    if isinstance(function, int):
        return function
    if isinstance(function, ctypes._CFuncPtr):
        if prototype:
            _check_types(what, function, prototype)
        return ctypes.cast(function, ctypes.c_void_p).value
    if type(function).__module__ == "_cffi_backend":
        import _cffi_backend

        number = _cffi_backend.FFI().cast("intptr_t", function) if hasattr(_cffi_backend, "FFI") else function
        return int(number)
    raise TypeError(f"{what}: got {type(function).__name__}, expected a function of ctypes or cffi, its address, or text of C")


def _check_types(what, function, prototype):
    """Raises where argtypes or restype of a ctypes function do not fit the signature."""
    result, parameters, _ = prototype
    given = function.argtypes
    if given is None:
        return
    names = [f"{_CTYPES.get(t._type_, '?')} *" if hasattr(t, "contents") else _CTYPES.get(t) for t in given]
    wanted = [p.replace("const ", "") for p in parameters]
    fits = len(names) == len(wanted) and all(
        n is None or n == w or (n == "void *" and w.endswith("*")) or "?" in n for n, w in zip(names, wanted))
    gives = _CTYPES.get(function.restype)
    if not fits or (gives and gives != result):
        raise TypeError(f"{what}: the function is {gives or '?'} ({', '.join(n or '?' for n in names)}), expected "
                        f"{result} ({', '.join(parameters)}), as the signature says")


class CpuKernel:
    """A C function as a function of arrays, as tenon.cpu_kernel made it."""

    def __init__(self, name, signature, id, inputs, rules):
        self.name, self.signature, self.id = name, signature, id
        self.__name__ = name.rpartition(".")[2]
        self._operator = _core.operator(id)
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(inputs)])
        self._apply_by_rules = with_rules(self.__name__, *rules)

    def __repr__(self):
        return f"<tenon cpu_kernel {self.id}: {self.signature}>"

    def __call__(self, *arrays):
        return self._apply_by_rules(self._operator, arrays_of(arrays))


def cpu_kernel(name, signature, function, *, symbol=None, flags=(), serial=False, vjp=None, jvp=None, vmap=None):
    """A C function as a function of arrays, by a signature (docs/ffi.md, "Callbacks"):

        clip = tenon.cpu_kernel("acme.clip", "f32 f32 f32 -> f32",
                                "float clip(float x, float lo, float hi) { return fminf(fmaxf(x, lo), hi); }")
        rows = tenon.cpu_kernel("acme.rows", "in f64[m, n] out f64[m] extent m extent n -> void", library.rows)

    `function` is a function of ctypes or cffi, an address, or text of C, which the system's compiler (CC, else cc)
    compiles with `flags`: the function is `symbol`, or what the name ends in, and its type has to be that of the
    signature. What was compiled is kept in the cache folder by a hash. Numbers alone make an elementwise function, which
    vmap maps; `serial` says that it is not thread-safe. `vjp`, `jvp` and `vmap` are rules as those of
    tenon.custom_function. On devices other than a CPU's it falls back as TENON_FALLBACK says."""
    what = f"cpu_kernel {name}"
    if not isinstance(signature, str):
        raise TypeError(f"{what}: the signature is {signature!r}, expected a text")
    prototype = _prototype(signature)
    id = new_id("cpu_kernel", name)
    symbol = symbol or name.partition("/")[0].rpartition(".")[2]
    if isinstance(function, str):
        if not prototype:  # the core says what is wrong
            _core.define_callback(id, signature, 1, False)
            raise ValueError(f"{what}: signature {signature!r} has a type that text of C cannot have")
        address = _compile(what, Text(function, name), symbol, prototype, flags)
    else:
        address = _address(what, function, prototype)
        _kept.append(function)
    _core.define_callback(id, signature, address, serial)
    return CpuKernel(name, signature, id, prototype[2] if prototype else 0, (vjp, jvp, vmap))
