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


tap.run([metadata_of_every_kind_are_read, arrays_of_every_type_have_their_shapes,
         elements_of_all_types_are_those_of_the_file, files_of_other_versions_alignments_and_names_are_read,
         a_model_in_several_files_is_one, what_is_wrong_with_a_file_is_told, every_cut_of_a_file_is_refused,
         what_gguf_cannot_hold_is_not_written, a_file_without_a_model_is_shown_too])
