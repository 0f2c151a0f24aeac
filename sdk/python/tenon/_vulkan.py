# SPDX-License-Identifier: MIT
"""Kernels of GPUs from GLSL, compiled by the project's own compiler."""

import functools
import hashlib
import math
import re
import struct

from . import _core
from ._dtypes import as_dtype, dtype as _dtype, dtypes
from ._kernels import KernelError, Reference, Text, arrays_of, names_of, new_id, selected_devices, with_rules

# The type of an element in GLSL; bfloat16 and float8 are given as their bits, bool as a byte, 0 or 1.
_TYPES = {"bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
          "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t", "float16": "float16_t",
          "bfloat16": "uint16_t", "float32": "float", "float64": "double", "complex64": "vec2", "complex128": "dvec2",
          "float8_e4m3fn": "uint8_t", "float8_e5m2": "uint8_t"}
_NUMBER = {name: i + 1 for i, name in enumerate(dtypes)}
_WORDS = frozenset("""in out inout input output buffer uniform shared const int uint float double bool void vec2 vec3 vec4
    mat2 mat3 mat4 if else for while do switch case default break continue return struct layout true false sample sampler
    texture index main""".split())

# Capabilities of SPIR-V, and the feature of a device that has each.
_FEATURES = {9: "f16", 10: "f64", 11: "i64", 22: "i16", 39: "i8", 63: "subgroup", 65: "shuffle"}
_HEAD = """#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
"""
_MOST_PUSHED = 32

_COPY = _HEAD + """layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer source_block { %s source[]; };
layout(std430, binding = 1) writeonly buffer target_block { %s target[]; };
layout(push_constant) uniform push_block { uint count, first; };
void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 256u + gl_LocalInvocationID.x;
    if (i < count)
        target[i] = source[first + i];
}
"""
_FILL = _HEAD + """layout(local_size_x = 256) in;
layout(std430, binding = 0) writeonly buffer target_block { %s target[]; };
layout(push_constant) uniform push_block { uint count, a, b, c; uvec4 value; };
void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 256u + gl_LocalInvocationID.x;
    if (i < count)
        target[i] = %s;
}
"""
_FILLED = [("uint8_t", "uint8_t(value.x)"), ("uint16_t", "uint16_t(value.x)"), ("uint", "value.x"), ("uvec2", "value.xy"),
           ("uvec4", "value")]


def _compiled(text, name):
    code = _core.glsl(text, name)
    if not isinstance(code, bytes):
        raise RuntimeError(f"{name}: {code}")
    return code


@functools.lru_cache(maxsize=None)
def _helpers(fills):
    """The modules that copy elements, and those that fill, by size."""
    copies = [_compiled(_COPY % (kind, kind), "copy") for kind, _ in _FILLED]
    return copies + ([_compiled(_FILL % row, "fill") for row in _FILLED] if fills else [])


def _instructions(code):
    words = struct.unpack(f"<{len(code) // 4}I", code)
    at = 5
    while at < len(words):
        size = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1 : at + size]
        at += max(size, 1)


def _literal(what, key, value):
    if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z_]\w*", key, re.A):
        raise ValueError(f"{what}: template has the name {key!r}, expected one of letters, digits and _")
    if isinstance(value, _dtype):
        return _TYPES[value.name]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float) and math.isfinite(value):
        return f"({value!r})"
    if isinstance(value, str) and "\n" not in value:
        return value
    raise TypeError(f"{what}: template value {key} is {value!r}, expected a number, a dtype or a line of GLSL")


def _extents(what, shape, number):
    try:
        shape = tuple(int(n) for n in shape)
    except TypeError:
        raise ValueError(f"{what}: shape {number} is {shape!r}, expected a list of integers") from None
    if len(shape) > 8 or any(n < 0 for n in shape) or math.prod(shape) >= 2**63:
        raise ValueError(f"{what}: shape {number} is {list(shape)}, expected at most 8 extents from 0, below 2^63 in all")
    return shape


def _three(what, name, value):
    value = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(value) <= 3 or any(not isinstance(n, int) or n < 0 for n in value):
        raise ValueError(f"{what}: {name} is {value!r}, expected one to three integers from 0")
    return value


class VulkanKernel:
    """A kernel of GPUs, as tenon.vulkan_kernel made it. Called with arrays; keywords stand for what was given when it
    was made."""

    def __init__(self, name, source, inputs, outputs, header, options, reference, rules):
        self.name, what = name, f"vulkan_kernel {name}"
        self._what = what
        self.inputs = names_of(what, "inputs", inputs)
        self.outputs = names_of(what, "outputs", outputs, 1)
        for word in (*self.inputs, *self.outputs):
            if word in _WORDS or word.startswith(("gl_", "tenon_")) or word + "_shape" in self.inputs + self.outputs:
                raise ValueError(f"{what}: '{word}' is a word of GLSL or of the text around the kernel: use another name")
        if set(self.inputs) & set(self.outputs):
            raise ValueError(f"{what}: {', '.join(set(self.inputs) & set(self.outputs))} is an input and an output")
        self._source, self._header = Text(source, name), Text(header, f"{name} (header)")
        self._options = options
        self._reference = Reference(what, reference) if reference else None
        self._variants = {}
        self.__name__ = name.rpartition(".")[2]
        self._apply_by_rules = with_rules(self.__name__, *rules)

    def __repr__(self):
        return f"<tenon vulkan_kernel {self.name}({', '.join(self.inputs)}) -> {', '.join(self.outputs)}>"

    def __call__(self, *arrays, **options):
        unknown = set(options) - set(self._options)
        if unknown:
            raise TypeError(f"{self._what}: got an unexpected argument {', '.join(sorted(unknown))}")
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{self._what}: {len(arrays)} arrays for the inputs {', '.join(self.inputs)}")
        given = {**self._options, **{key: value for key, value in options.items() if value is not None}}
        return self._apply_by_rules(lambda *x: self._apply(arrays_of(x), given), arrays_of(arrays))

    # --- one application ---

    def _apply(self, arrays, given):
        what = self._what
        value = {key: v(*arrays) if callable(v) and key != "template" else v for key, v in given.items()}
        types = self._types(arrays, value)
        threads = _three(what, "threads", value["threads"]) if value["threads"] else (256,)
        grid = value["grid"] if value["grid"] is not None else math.prod(types[0][0])
        grid = _three(what, "grid", grid)
        if math.prod(grid) >= 2**32:
            raise ValueError(f"{what}: grid is {grid}, expected fewer than 2^32 threads in all")
        if 0 in grid and any(math.prod(shape) for shape, _ in types):
            raise ValueError(f"{what}: grid is {grid}, which computes nothing")
        threads += (1,) * (3 - len(threads))
        sizes = grid + (1,) * (3 - len(grid))
        if not all(threads) or math.prod(threads) > 1024:
            raise ValueError(f"{what}: threads are {threads}, expected 1 to 1024 in all")
        variant = self._variant(arrays, types, threads, len(grid) == 1, value)
        if variant.has_barrier and any(n % t for n, t in zip(sizes, threads)):
            raise ValueError(f"{what}: grid {grid} is no multiple of threads {threads}, and the kernel has a barrier, which "
                             "all threads of a group have to reach")
        words = variant.words([x.shape for x in arrays] + [shape for shape, _ in types], sizes)
        groups = [-(-n // t) for n, t in zip(sizes, threads)]
        flags = (value["init_value"] is not None) + 2 * variant.in_rows
        launch = [flags, variant.code, *groups, len(words), *words, len(types)]
        for shape, name in types:
            launch += [_NUMBER[name], len(shape), *shape]
        for _, name in types if value["init_value"] is not None else []:
            launch += _fill_words(what, value["init_value"], name)
        outputs = self._launch(variant.id, arrays, launch, types)
        return outputs[0] if len(outputs) == 1 else outputs

    def _launch(self, id, arrays, launch, types):
        if self._reference:
            return _core.apply_shader(id, arrays, launch, self._reference.graph(arrays, types), len(types))
        before = _core.set_device(self._device())
        try:
            return _core.apply_shader(id, arrays, launch, None, len(types))
        finally:
            _core.set_device(before)

    def _types(self, arrays, value):
        what, count = self._what, len(self.outputs)
        shapes, kinds = value["shapes"], value["dtypes"]
        if (shapes is None or kinds is None) and not arrays:
            raise ValueError(f"{what}: a kernel without inputs needs shapes and dtypes")
        if shapes is not None and not isinstance(shapes, (list, tuple)):
            raise ValueError(f"{what}: shapes is {shapes!r}, expected a list with a shape for each output")
        shapes = [arrays[0].shape] * count if shapes is None else list(shapes)
        kinds = [arrays[0].dtype] * count if kinds is None else kinds if isinstance(kinds, (list, tuple)) else [kinds]
        if shapes and all(isinstance(n, int) for n in shapes):
            shapes = [shapes]
        for got, key in [(shapes, "shapes"), (kinds, "dtypes")]:
            if len(got) != count:
                raise ValueError(f"{what}: {len(got)} {key} for {count} outputs, {', '.join(self.outputs)}")
        return [(_extents(what, shape, i), as_dtype(kind).name) for i, (shape, kind) in enumerate(zip(shapes, kinds))]

    def _device(self):
        """The device that the kernel is applied on: the chosen one where that is of Vulkan, else the first that is."""
        before = _core.current_device()
        if before and before.startswith("vulkan"):
            return before
        devices = selected_devices()
        for name in devices:
            if name.startswith("vulkan"):
                return before if name == devices[0] and not before else name
        raise NotImplementedError(f"{self._what}: none of the selected devices ({', '.join(devices)}) is of Vulkan: name one "
                                  "in TENON_BACKEND, or give the kernel reference=, a function that computes the same")

    # --- one variant of the text ---

    def _variant(self, arrays, types, threads, is_line, value):
        kinds = tuple((x.dtype.name, x.ndim) for x in arrays) + tuple((name, len(shape)) for shape, name in types)
        template = dict(value["template"] or {})
        defines = tuple(sorted((key, _literal(self._what, key, template[key])) for key in template))
        fills = value["init_value"] is not None
        key = kinds, threads, is_line, defines, fills
        if key not in self._variants:
            self._variants[key] = _Variant(self, kinds, threads, is_line, defines, fills)
        return self._variants[key]


# Formats of struct for the elements of dtypes; complex numbers are two.
_FORMATS = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
            "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "complex64": "ff", "complex128": "dd"}


def _fill_words(what, value, name):
    """The bits of a number as an element of a dtype, in four words."""
    try:
        if name == "bfloat16":
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            data = struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
        elif name in _FORMATS:
            parts = (complex(value).real, complex(value).imag) if name.startswith("complex") else (value,)
            data = struct.pack("<" + _FORMATS[name], *parts)
        elif value == 0:
            data = b""
        else:
            raise ValueError("0 alone can be given")
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{what}: init_value is {value!r}, which is no {name}: {error}") from None
    return list(struct.unpack("<4I", data.ljust(16, b"\0")))


class _Variant:
    """The kernel for some dtypes, numbers of axes, threads and template values: a primitive of its own."""

    def __init__(self, kernel, kinds, threads, is_line, defines, fills):
        self.kernel = kernel
        text = f"{kernel._header.text}\n{kernel._source.text}"
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
        self.has_barrier = "barrier(" in plain.lower().replace(" ", "")
        self.in_rows = is_line and not re.search(r"\bgl_(GlobalInvocationID|WorkGroupID|NumWorkGroups)\b", plain)
        names = kernel.inputs + kernel.outputs
        self.sized = [i for i, name in enumerate(names) if re.search(rf"\b{name}_size\b", plain)]
        self.shaped = [i for i, name in enumerate(names) if kinds[i][1] and re.search(rf"\b{name}_shape\b", plain)]
        pushed = 3 + len(self.sized) + sum(kinds[i][1] for i in self.shaped)
        if pushed > _MOST_PUSHED:
            raise ValueError(f"{kernel._what}: its shapes are {pushed} words with the grid, expected at most {_MOST_PUSHED}: "
                             "pass some as an array")
        code = self._compile(self._text(names, kinds, threads, defines))
        features = sorted({_FEATURES[w[0]] for op, w in _instructions(code) if op == 17 and w[0] in _FEATURES})
        self.pushes = any(op == 59 and w[2] == 9 for op, w in _instructions(code))
        self.code = int.from_bytes(hashlib.sha256(code).digest()[:7], "little")
        self.id = new_id("vulkan_kernel", kernel.name)
        _core.define_shader(self.id, "A kernel in GLSL.", kernel.inputs, kernel.outputs, ",".join(features),
                            [code, *_helpers(fills)], self.code, kernel._reference is not None)

    def _text(self, names, kinds, threads, defines):
        header = kernel_lines = self.kernel._header.text.split("\n")
        extensions = [line for line in kernel_lines if line.lstrip().startswith("#extension")]
        header = ["" if line in extensions else line for line in kernel_lines]
        lines = [_HEAD + "\n".join(extensions)]
        lines += [f"#define {key} {value}" for key, value in defines]
        lines.append("layout(local_size_x = %d, local_size_y = %d, local_size_z = %d) in;" % threads)
        for i, (name, (kind, rank)) in enumerate(zip(names, kinds)):
            access = "readonly " if i < len(self.kernel.inputs) else ""
            lines.append(f"layout(std430, set = 0, binding = {i}) {access}buffer tenon_{name} {{ {_TYPES[kind]} {name}[]; }};")
            lines.append(f"#define {name}_ndim {rank}")
        members = "uint tenon_grid[3];" + "".join(f" uint {names[i]}_size;" for i in self.sized)
        members += "".join(f" uint {names[i]}_shape[{kinds[i][1]}];" for i in self.shaped)
        lines.append(f"layout(push_constant) uniform tenon_push {{ {members} }};")
        lines += ['#line 1 "header"', *header, '#line 1 "kernel"', "void main()", "{"]
        if self.in_rows:
            lines.append("uint index = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * gl_WorkGroupSize.x"
                         " + gl_LocalInvocationID.x;\nif (index >= tenon_grid[0]) return;")
        else:
            lines.append("if (gl_GlobalInvocationID.x >= tenon_grid[0] || gl_GlobalInvocationID.y >= tenon_grid[1] ||"
                         " gl_GlobalInvocationID.z >= tenon_grid[2]) return;\n"
                         "uint index = gl_GlobalInvocationID.x + tenon_grid[0] * (gl_GlobalInvocationID.y + tenon_grid[1] *"
                         " gl_GlobalInvocationID.z);")
        lines += ["{", '#line 1 "source"', self.kernel._source.text, '#line 1 "end"', "}", "}", ""]
        return "\n".join(lines)

    def _compile(self, text):
        code = _core.glsl(text, "kernel")
        if isinstance(code, bytes):
            return code
        message, file, line, column = code
        if file == "header":
            raise self.kernel._header.error(message, line, column)
        if file == "source":
            raise self.kernel._source.error(message, line, column)
        if file == "end":  # the text ends within a statement
            raise self.kernel._source.error(message, self.kernel._source.text.count("\n") + 1, 0)
        raise KernelError(f"{self.kernel._what}: error in the text around the kernel, line {line}: {message}\n"
                          f"{(text.split(chr(10)) + [''])[max(line - 1, 0)]}")

    def words(self, shapes, grid):
        """The push constants, in the order of their block in GLSL."""
        sizes = [math.prod(shapes[i]) for i in self.sized]
        words = [*grid, *sizes, *(n for i in self.shaped for n in shapes[i])]
        if any(n >= 2**32 for n in words):
            raise ValueError(f"{self.kernel._what}: an extent or a size is {max(words)}, expected fewer than 2^32")
        return words if self.pushes else []


def vulkan_kernel(name, source, *, inputs=("x",), outputs=("y",), header="", grid=None, threads=(256,), shapes=None,
                  dtypes=None, template=None, init_value=None, reference=None, vjp=None, jvp=None, vmap=None):
    """A kernel of GPUs, written in GLSL and compiled by Tenon's own compiler (docs/glsl.md), as a function of arrays:

        scale = tenon.vulkan_kernel("acme.scale", "y[index] = T(factor) * x[index];",
                                    template={"T": tenon.float32, "factor": 3})
        y = scale(x)

    `source` is the body of main(), in which each input and output is an array of its elements, row-major without gaps;
    `header` stands before it, for functions and shared memory. For an array x there are x_shape[i], x_size and x_ndim,
    `index` is the number of the invocation, first axis of the grid fastest.

    `shapes` and `dtypes` are those of the outputs, by default the first input's; `grid` the number of invocations along
    one to three axes, by default one for each element of the first output; `threads` those of a workgroup; `template`
    macros: numbers, dtypes, texts; `init_value` what outputs are filled with first. Each but `template` may be a function
    of the arrays, and each may be given with the call instead.

    `vjp`, `jvp` and `vmap` are rules as those of tenon.custom_function. `reference` is a function of Python that computes
    the same, for devices that are not of Vulkan and, without rules, for derivatives and batches. A text that does not
    compile is a tenon.KernelError that shows the line."""
    for key, text in [("source", source), ("header", header)]:
        if not isinstance(text, str):
            raise TypeError(f"vulkan_kernel {name}: {key} is {type(text).__name__}, expected a text of GLSL")
    new_name = str(name)
    options = {"grid": grid, "threads": threads, "shapes": shapes, "dtypes": dtypes, "template": template,
               "init_value": init_value}
    return VulkanKernel(new_name, source, inputs, outputs, header, options, reference, (vjp, jvp, vmap))
