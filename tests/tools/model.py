# SPDX-License-Identifier: MIT
"""Models' files: GGUF as it is written by others is read, and what is wrong with one is told."""

import json
import os
import pathlib
import struct
import sys

import tap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
import gguf  # noqa: E402 pylint: disable=wrong-import-position

PLAIN = {"f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64"}


def show(path):
    return json.loads(tap.tenon("model", "show", path, "--json").stdout)


def files():
    if not os.path.exists("files"):
        gguf.write("files")
    return pathlib.Path("files")


def float_of(kind, value):
    return struct.unpack("<f", struct.pack("<f", value))[0] if kind == gguf.F32 else value


def metadata_of_every_kind_are_read():
    got = show(files() / "kinds.gguf")["metadata"]
    want = {key: float_of(kind, value) for key, kind, value in gguf.KINDS}
    want |= {"yes": True, "no": False, "u64": str(2**63), "bytes": "a"}  # shown as far as a terminal would
    assert got == want, (got, want)
    got = show(files() / "lists.gguf")["metadata"]
    for key, value in want.items():
        assert got["list." + key] == {"list": 2, "first": [value, value]}, (key, got["list." + key])
    assert got["list.none"] == {"list": 0, "first": []}, got
    assert got["list.texts"] == {"list": 3, "first": ["a", "", "longer than the others"]}, got


def arrays_of_every_type_have_their_shapes():
    got = {a["name"]: a for a in show(files() / "types.gguf")["arrays"]}
    for name, kind, shape in gguf.ALL_TYPES:
        array = got.pop(name)
        assert array["format"] == kind and tuple(array["shape"]) == shape, array
        assert array["bytes"] == gguf.size_of(kind, shape) and array["elements"] == shape[0] * shape[1], array
    assert not got, got
    shapes = {a["name"]: a["shape"] for a in show(files() / "shapes.gguf")["arrays"]}
    assert shapes == {"scalar": [], "none": [0, 4], "deep": [2, 3, 2, 5]}, shapes


def elements(path, tensors):
    """Blocks are read as bytes; elements of i8 as numbers."""
    for name, kind, shape in tensors:
        if kind in PLAIN - {"i8"}:
            continue
        rows = tap.values("x", f"x={path}:{name}")[0]
        flat = [v & 255 for row in (rows if isinstance(rows[0], list) else [rows]) for v in row]
        assert bytes(flat) == gguf.data_of(name, gguf.size_of(kind, shape)), name


def elements_of_all_types_are_those_of_the_file():
    elements(files() / "types.gguf", gguf.ALL_TYPES)
    for name, kind, shape in gguf.ALL_TYPES:  # copied by Tenon, and read apart from it
        if kind in PLAIN:
            tap.tenon("eval", "x", f"x={files() / 'types.gguf'}:{name}", "-o", "copy.gguf")
            assert read("copy.gguf") == ({}, [("result", gguf.TYPES[kind][0], shape,
                                               gguf.data_of(name, gguf.size_of(kind, shape)))]), name


def files_of_other_versions_alignments_and_names_are_read():
    for name in ("model.gguf", "version2.gguf"):
        model = show(files() / name)
        assert model["architecture"] == "llama" and model["name"] == "Tiny", model
        assert model["dimensions"] == {"layers": 1, "width": 32, "feed-forward": 64, "heads": 4, "key-value heads": 2,
                                       "context": 64}, model["dimensions"]
        assert model["tokenizer"] == {"model": "gpt2", "pre": "", "tokens": 3, "end": 2, "chat": False}, model
        assert model["parameters"] == 3 * 32 + 32 + 32 * 32 + 16 * 32 + 64 * 32 + 32, model["parameters"]
    elements(files() / "aligned.gguf", gguf.WEIGHTS[:2])
    assert show(files() / "empty.gguf")["arrays"] == []
    os.rename(files() / "version2.gguf", files() / "a model")  # known by its first bytes
    assert show(files() / "a model")["name"] == "Tiny"


def a_model_in_several_files_is_one():
    first = files() / "split-00001-of-00003.gguf"
    model = show(first)
    assert [a["name"] for a in model["arrays"]] == [w[0] for w in gguf.WEIGHTS], model["arrays"]
    assert model["name"] == "Tiny"
    elements(first, gguf.WEIGHTS)
    os.symlink(os.path.abspath(first), "link-00001-of-00003.gguf")  # the others are beside the link, not the file
    tap.refused("model", "show", "link-00001-of-00003.gguf", saying="cannot read ./link-00002-of-00003.gguf: No such file")
    for number in (2, 3):
        os.symlink(files().absolute() / f"split-0000{number}-of-00003.gguf", f"link-0000{number}-of-00003.gguf")
    assert len(show("link-00001-of-00003.gguf")["arrays"]) == len(gguf.WEIGHTS)


def what_is_wrong_with_a_file_is_told():
    for name, (_, says) in gguf.BAD.items():
        path = files() / name
        told = tap.refused("model", "show", path, saying=f"{path}: " if says else f"{files()}/").stderr
        assert (says or "") in told, (name, says, told)
    for name, says in {"gone-00001-of-00002.gguf": "cannot read files/gone-00002-of-00002.gguf: No such file",
                       "mixed-00001-of-00002.gguf": "it says that it is split.no 0 of 2, expected 1 of 2",
                       "many-00001-of-65535.gguf": "cannot read files/many-00002-of-65535.gguf: No such file"}.items():
        tap.refused("model", "show", files() / name, saying=says)


def every_cut_of_a_file_is_refused():
    whole = gguf.GOOD["model.gguf"]
    for size in [*range(0, 60), *range(60, len(whole), 97), len(whole) - 1]:
        pathlib.Path("cut.gguf").write_bytes(whole[:size])
        tap.refused("model", "show", "cut.gguf", saying="cut.gguf: ")


def what_gguf_cannot_hold_is_not_written():
    for expression, says in {"x > 1": "'result': GGUF has no type for bool; cast before writing",
                             "reshape(x, (1, 1, 1, 1, 2))": "'result': 5 axes, a GGUF file has at most 4"}.items():
        tap.refused("eval", expression, "x=[1.0,2]", "-o", "no.gguf", saying="no.gguf: " + says)
        assert not os.path.exists("no.gguf")


def a_file_without_a_model_is_shown_too():
    tap.tenon("eval", "x", "x=[[1.0,2]]", "-o", "x.npy")
    model = show("x.npy")
    assert model["architecture"] == "" and "tokenizer" not in model, model
    assert [(a["name"], a["format"], a["shape"]) for a in model["arrays"]] == [("", "f64", [1, 2])], model
    shown = tap.tenon("model", "show", files() / "model.gguf", "--metadata").stdout
    for line in ("architecture     llama", "blk.*.attn_q.weight", "(32, 32)", "q4_0", 'tokenizer.ggml.tokens'):
        assert line in shown, (line, shown)
    assert "blk.0.attn_q.weight" in tap.tenon("model", "show", files() / "model.gguf", "--arrays").stdout


def read(path):
    """A small reader: the texts of a file, and its tensors as (name, type, shape, bytes)."""
    data = pathlib.Path(path).read_bytes()
    at = 24

    def take(code):
        nonlocal at
        value = struct.unpack_from("<" + code, data, at)[0]
        at += struct.calcsize(code)
        return value

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return data[at - size:at].decode()

    magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", data)
    assert (magic, version) == (b"GGUF", 3), (magic, version)
    metadata = {}
    for _ in range(pairs):
        key = text()
        assert take("I") == gguf.TEXT
        metadata[key] = text()
    records = []
    for _ in range(tensors):
        name, extents = text(), [take("Q") for _ in range(take("I"))]
        records.append((name, tuple(reversed(extents)), take("I"), take("Q")))
    begin = -(-at // 32) * 32
    sizes = {number: (elements, size) for number, elements, size in gguf.TYPES.values()}
    arrays = []
    for name, shape, number, offset in records:
        count = 1
        for extent in shape:
            count *= extent
        size = count // sizes[number][0] * sizes[number][1]
        arrays.append((name, number, shape, data[begin + offset:begin + offset + size]))
    return metadata, arrays


# --- files written anew ---------------------------------------------------------------

LAYERS = 8


def floats_of(name, count):
    """Between -1 and 1, other ones of each name."""
    state, out = sum(name.encode()) * 7919 + 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(struct.unpack("<f", struct.pack("<f", state / 2**31 - 1))[0])
    return out


def model_of_floats(path, changes=(), **shapes):
    """A model of LAYERS layers, of few rows each, as f32; `changes` are values of elements: {(name, index): value}."""
    weights = {"token_embd.weight": (3, 512), "output.weight": (3, 512), "output_norm.weight": (512,), "ids": (4,)}
    for i in range(LAYERS):
        weights |= {f"blk.{i}.{part}.weight": (2, 256) for part in ("attn_q", "attn_v", "ffn_down", "ffn_gate_inp", "attn_output")}
        weights |= {f"blk.{i}.attn_norm.weight": (256,), f"blk.{i}.attn_q.bias": (2,), f"blk.{i}.ffn_up.weight": (2, 64),
                    f"blk.{i}.attn_k.weight": (2, 20)}
    weights |= shapes
    for name in [n for n, shape in weights.items() if shape is None]:
        del weights[name]
    old = gguf.data_of

    def data(name, size):
        if name == "ids":
            return bytes(range(size))
        values = floats_of(name, size // 4)
        for (of, index), value in dict(changes).items():
            if of == name:
                values[index] = value
        return struct.pack(f"<{size // 4}f", *values)

    gguf.data_of = data
    metadata = [pair if pair[0] != "llama.block_count" else (pair[0], pair[1], LAYERS) for pair in gguf.MODEL]
    pathlib.Path(path).write_bytes(gguf.gguf(metadata, [(n, "i32" if n == "ids" else "f32", w) for n, w in weights.items()]))
    gguf.data_of = old
    return path


def formats_of(path):
    return {a["name"]: a["format"] for a in show(path)["arrays"]}


# Of each mixture: general.file_type, and formats of layers 0 to 7, or of one array.
MIXTURES = {
    "q4_0": (2, {"attn_v": "q4_0 " * 8, "ffn_down": "q4_0 " * 8, "token_embd": "q4_0", "output": "q6_k"}),
    "q8_0": (7, {"attn_v": "q8_0 " * 8, "ffn_up": "q8_0 " * 8, "token_embd": "q8_0", "output": "q8_0"}),
    "q4_k_m": (15, {"attn_v": "q6_k q4_k q4_k q6_k q4_k q4_k q6_k q6_k", "ffn_down": "q6_k q4_k q4_k q6_k q4_k q4_k q6_k q6_k",
                    "attn_q": "q4_k " * 8, "ffn_up": "q5_0 " * 8, "attn_k": "f16 " * 8, "ffn_gate_inp": "f32 " * 8,
                    "attn_norm": "f32 " * 8, "token_embd": "q4_k", "output": "q6_k", "output_norm": "f32"}),
    "q4_k_s": (14, {"attn_v": "q5_k " * 4 + "q4_k " * 4, "ffn_down": "q5_k " + "q4_k " * 7}),
    "q2_k": (10, {"attn_v": "q3_k " * 8, "attn_output": "q3_k " * 8, "attn_q": "q2_k " * 8, "ffn_up": "q4_0 " * 8}),
    "q3_k_m": (12, {"attn_v": "q5_k " * 2 + "q4_k " * 6, "ffn_down": "q4_k " * 8, "attn_output": "q4_k " * 8}),
    "q5_k_m": (17, {"attn_v": "q6_k q5_k q5_k q6_k q5_k q5_k q6_k q6_k", "ffn_up": "q5_1 " * 8}),
    "iq4_xs": (30, {"attn_v": "iq4_xs " * 8, "ffn_down": "q5_k " + "iq4_xs " * 7, "ffn_up": "iq4_nl " * 8}),
    "mxfp4": (38, {"attn_v": "mxfp4 " * 8, "output": "q8_0"}),
}


def mixtures_give_each_array_its_format():
    model_of_floats("f32.gguf")
    for mixture, (number, wants) in MIXTURES.items():
        told = tap.tenon("model", "quantize", "f32.gguf", "small.gguf", "--format", mixture)
        got = formats_of("small.gguf")
        assert show("small.gguf")["metadata"]["general.file_type"] == number, mixture
        assert got["ids"] == "i32" and got["blk.0.attn_q.bias"] == "f32"
        for part, want in wants.items():
            want = want.split()
            names = [f"{part}.weight"] if len(want) == 1 else [f"blk.{i}.{part}.weight" for i in range(LAYERS)]
            assert [got[n] for n in names] == want, (mixture, part, [got[n] for n in names])
        assert "8 arrays have rows of 20" in told.stderr and "they become f16" in told.stderr, told.stderr
        assert "small.gguf: " in told.stdout and "bits a weight" in told.stdout, told.stdout
    tap.tenon("model", "quantize", model_of_floats("tied.gguf", **{"output.weight": None}), "small.gguf", "--format", "q4_0")
    assert formats_of("small.gguf")["token_embd.weight"] == "q6_k"


def values_survive_and_so_does_what_is_no_weight():
    model_of_floats("f32.gguf")
    tap.tenon("model", "quantize", "f32.gguf", "small.gguf", "--format", "q8_0")
    again = tap.tenon("model", "convert", "small.gguf", "back.gguf", "--type", "f32")
    assert not again.stderr, again.stderr
    for name, most in {"blk.3.attn_v.weight": 0.005, "output.weight": 0.005, "blk.2.attn_norm.weight": 0, "blk.1.attn_q.bias": 0}.items():
        got = tap.values("x", f"x=back.gguf:{name}")[0]
        got = [v for row in got for v in row] if isinstance(got[0], list) else got
        assert all(abs(a - b) <= most for a, b in zip(got, floats_of(name, len(got)))), name
    for path in ("small.gguf", "back.gguf"):
        metadata, want = show(path)["metadata"], show("f32.gguf")["metadata"]
        assert {k: v for k, v in metadata.items() if k not in ("general.file_type", "general.quantization_version")} == {
            k: v for k, v in want.items() if k != "general.file_type"}, metadata
    for kind in ("f16", "bf16"):
        told = tap.tenon("model", "convert", "f32.gguf", "half.gguf", "--type", kind)
        assert told.stderr == f"tenon: note: 58 arrays are rounded to {kind}\n", told.stderr
        got = formats_of("half.gguf")
        assert got["output.weight"] == kind and got["output_norm.weight"] == "f32", got
    assert "blocks already (q8_0, say)" in tap.tenon("model", "quantize", "small.gguf", "s.gguf", "--format", "q4_0").stderr


def names_choose_formats():
    model_of_floats("f32.gguf")
    tap.tenon("model", "quantize", "f32.gguf", "small.gguf", "--format", "q4_0",
              "--tensor", "blk.1.attn_v.weight=f16,*attn_v*=q6_k,output.weight=q8_0,blk.?.ffn_up.weight=q4_k")
    got = formats_of("small.gguf")
    wants = {"blk.1.attn_v.weight": "f16", "blk.0.attn_v.weight": "q6_k", "output.weight": "q8_0", "blk.7.ffn_up.weight": "q5_0",
             "blk.0.attn_q.weight": "q4_0"}
    assert {n: got[n] for n in wants} == wants, got


def imatrix(path, **changes):
    """Sums by which the first half of each block counts, of some arrays of model_of_floats()."""
    arrays = {f"blk.{i}.attn_v.weight": 256 for i in range(LAYERS)} | changes
    old, tensors = gguf.data_of, []
    for name, columns in arrays.items():
        tensors += [(name + ".in_sum2", "f32", (1, columns)), (name + ".counts", "f32", (1, 1))]
    gguf.data_of = lambda name, size: struct.pack(f"<{size // 4}f", *(
        [4.0] if name.endswith("counts") else [4.0 if k % 32 < 16 else 0.004 for k in range(size // 4)]))
    pathlib.Path(path).write_bytes(gguf.gguf([("general.type", gguf.TEXT, "imatrix")], tensors))
    gguf.data_of = old


def errors_count_where_an_imatrix_says():
    model_of_floats("f32.gguf")
    imatrix("im.gguf")
    errors = {}
    for out, more in ("plain.gguf", ()), ("counted.gguf", ("--imatrix", "im.gguf")):
        told = tap.tenon("model", "quantize", "f32.gguf", out, "--format", "q4_0", *more).stderr
        assert ("are not in im.gguf: all their columns count alike" in told) == bool(more), told
        for part in "attn_v", "attn_q":
            errors[out, part] = 0.0
            for layer in range(LAYERS):
                name = f"blk.{layer}.{part}.weight"
                got = [v for row in tap.values("dequantize(x, format=q4_0)", f"x={out}:{name}")[0] for v in row]
                errors[out, part] += sum((a - b) ** 2 for k, (a, b) in enumerate(zip(got, floats_of(name, 512))) if k % 32 < 16)
    assert errors["counted.gguf", "attn_v"] < 0.8 * errors["plain.gguf", "attn_v"], errors
    assert errors["counted.gguf", "attn_q"] == errors["plain.gguf", "attn_q"], errors
    for changes, says in (({"blk.0.attn_v.weight": 64}, "'blk.0.attn_v.weight.in_sum2' has 1 sums of 64 columns and 1 counts, expected 1 or 1 of 256"),):
        imatrix("bad.gguf", **changes)
        tap.refused("model", "quantize", "f32.gguf", "y.gguf", "--format", "q4_0", "--imatrix", "bad.gguf", saying=says)
    tap.refused("model", "quantize", "f32.gguf", "y.gguf", "--format", "q4_0", "--imatrix", "f32.gguf",
                saying="f32.gguf: has no importance of an array of f32.gguf")


def several_files_become_one():
    told = tap.tenon("model", "convert", files() / "split-00001-of-00003.gguf", "one.gguf")
    model = show("one.gguf")
    assert [(a["name"], a["format"]) for a in model["arrays"]] == [w[:2] for w in gguf.WEIGHTS], model["arrays"]
    elements("one.gguf", gguf.WEIGHTS)
    assert not [k for k in model["metadata"] if k.startswith("split")] and not told.stderr, told.stderr
    told = tap.tenon("model", "convert", model_of_floats("f32.gguf"), "x.safetensors", "--type", "f16")
    assert "files of safetensors hold arrays alone: 14 pairs of metadata" in told.stderr, told.stderr
    assert formats_of("x.safetensors")["blk.0.attn_v.weight"] == "f16"


def texts_become_tokens():
    vocabulary = ["<unk>", "<s>", "▁", "a", "b", "ab", "▁ab", "<0x0A>", "<|end|>"]
    metadata = [("tokenizer.ggml.model", gguf.TEXT, "llama"), ("tokenizer.ggml.tokens", (gguf.LIST, gguf.TEXT), vocabulary),
                ("tokenizer.ggml.scores", (gguf.LIST, gguf.F32), [0.0, 0.0, -9.0, -9.0, -9.0, -1.0, -2.0, 0.0, 0.0]),
                ("tokenizer.ggml.token_type", (gguf.LIST, gguf.I32), [2, 3, 1, 1, 1, 1, 1, 6, 3]),
                ("tokenizer.ggml.bos_token_id", gguf.U32, 1), ("tokenizer.ggml.eos_token_id", gguf.U32, 8)]
    pathlib.Path("words.gguf").write_bytes(gguf.gguf(metadata))
    shown = tap.tenon("model", "tokens", "words.gguf", "ab ab\n<|end|>", "--special").stdout
    assert shown.splitlines() == ['      1  "<s>"  control', '      6  " ab"', '      6  " ab"', '      7  "\\n"  byte',
                                  '      8  "<|end|>"  control'], shown
    got = json.loads(tap.tenon("model", "tokens", "words.gguf", "b", "--raw", "--json").stdout)
    assert got == [{"id": 2, "text": " ", "kind": "normal"}, {"id": 4, "text": "b", "kind": "normal"}], got
    tap.refused("model", "tokens", files() / "kinds.gguf", "x", saying="kinds.gguf has no vocabulary that can be read")


# Arguments behind "model", and what is said.
REFUSED = {
    ("convert", "f32.gguf", "x.npz"): "x.npz: expected a name that ends with .gguf or .safetensors",
    ("convert", "f32.gguf", "x.gguf", "--type", "q4_0"): "--type is 'q4_0', expected f32, f16 or bf16",
    ("quantize", "f32.gguf", "x.gguf"): "--format is not given, expected one of q4_0, q4_1,",
    ("quantize", "f32.gguf", "x.gguf", "--format", "q4_2"): "--format is 'q4_2', expected one of q4_0, q4_1,",
    ("quantize", "f32.gguf", "x.safetensors", "--format", "q4_0"): "expected a name that ends with .gguf",
    ("quantize", "f32.gguf", "x.gguf", "--format", "q4_0", "--tensor", "output.weight"): "expected PATTERN=FORMAT",
    ("quantize", "f32.gguf", "x.gguf", "--format", "q4_0", "--tensor", "output.weight=q9"): "expected PATTERN=FORMAT",
    ("quantize", "f32.gguf", "x.gguf", "--format", "q4_0", "--tensor", "nothing=q8_0"): "'nothing' is no matrix of f32.gguf",
    ("quantize", "nan.gguf", "x.gguf", "--format", "q4_0"): "nan.gguf: 'blk.2.attn_v.weight' has a value of nan, which q4_0 cannot hold",
    ("quantize", "nan.gguf", "x.gguf", "--format", "q4_k_m"): "has a value of nan, which q4_k cannot hold",
    ("convert", "large.gguf", "x.gguf", "--type", "f16"): "'output.weight' has a value of 1e+06, which f16 cannot hold",
    ("convert", "cut.gguf", "x.gguf"): "cut.gguf: ",
    ("convert", "nowhere.gguf", "x.gguf"): "nowhere.gguf: No such file",
    ("convert", "f32.gguf", "no/x.gguf"): "cannot write no/x.gguf: No such file",
    ("convert", "f32.gguf", "full.gguf"): "cannot write full.gguf: No space left on device",
}


def what_cannot_be_written_is_told_and_leaves_nothing():
    model_of_floats("f32.gguf")
    model_of_floats("nan.gguf", {("blk.2.attn_v.weight", 300): float("nan")})
    model_of_floats("large.gguf", {("output.weight", 7): 1e6})
    pathlib.Path("cut.gguf").write_bytes(pathlib.Path("f32.gguf").read_bytes()[:-100])
    os.symlink("/dev/full", "full.gguf")
    pathlib.Path("x.gguf").write_bytes(b"old")
    before = sorted(os.listdir())
    for words, says in REFUSED.items():
        misused = says.startswith("--") or "expected" in says or "no matrix" in says
        tap.refused("model", *words, status=2 if misused else 1, saying=says)
        assert sorted(os.listdir()) == before and pathlib.Path("x.gguf").read_bytes() == b"old", words
    tap.tenon("model", "convert", "nan.gguf", "x.gguf", "--type", "bf16")  # which holds them
    tap.tenon("model", "convert", "f32.gguf", "f32.gguf", "--type", "f16")  # in place of what is read
    assert formats_of("f32.gguf")["output.weight"] == "f16"


tap.run([metadata_of_every_kind_are_read, arrays_of_every_type_have_their_shapes,
         elements_of_all_types_are_those_of_the_file, files_of_other_versions_alignments_and_names_are_read,
         a_model_in_several_files_is_one, what_is_wrong_with_a_file_is_told, every_cut_of_a_file_is_refused,
         what_gguf_cannot_hold_is_not_written, a_file_without_a_model_is_shown_too,
         mixtures_give_each_array_its_format, values_survive_and_so_does_what_is_no_weight, names_choose_formats,
         errors_count_where_an_imatrix_says,
         several_files_become_one, texts_become_tokens, what_cannot_be_written_is_told_and_leaves_nothing])
