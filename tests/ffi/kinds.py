# SPDX-License-Identifier: MIT
"""Each kind of argument against a library that tells what it was passed; libraries and symbols
that are missing; numbers that do not fit; packs that were damaged."""

import hashlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import tap
from tap import refused, tenon, values

LIBRARY = os.path.abspath(sys.argv[3])


def pack(*functions, **root):
    """The text of a manifest."""
    head = {"format": 1, "id": "com.acme.kinds", "version": "1.0.0", "vendor": "Acme",
            "pack": "kinds", "library": LIBRARY}
    return json.dumps({**head, **root, "functions": list(functions)}, indent=1)


def function(name, args, **more):
    return {"name": name, "symbol": f"kinds_{name}", "dtype": "f64", "args": args,
            "outputs": [{"name": "out", "shape": []}], **more}


def make(text):
    """Makes a pack in the working directory, and gives an environment that has it."""
    pathlib.Path("kinds.json").write_text(text)
    tenon("ffi", "make", "kinds.json", "-o", "plugins")
    return {"TENON_PLUGIN_PATH": f"{os.getcwd()}/plugins:{tap.STAGING}"}


def check(text, status=0):
    """What `tenon ffi check` says of a manifest."""
    pathlib.Path("checked.json").write_text(text)
    if status:
        return tenon("ffi", "check", "checked.json", status=status).stderr
    return tenon("ffi", "check", "checked.json").stdout


def constant(value, dtype, **more):
    return {"kind": "constant", "value": value, "type": dtype, **more}


# --- kinds of arguments ----------------------------------------------------------------


def numbers_of_each_type_are_passed_by_value():
    env = make(pack(function(
        "by_value",
        [constant(-1, "i8"), constant(-2, "i16"), constant(-4, "int"), constant(-8, "long"),
         constant(200, "u8"), constant(40000, "u16"), constant(4000000000, "u32"),
         {"kind": "extent", "value": "64 * n", "type": "u64"},
         {"kind": "attribute", "name": "half", "type": "float"},
         {"kind": "input", "name": "x", "type": "double"},
         {"kind": "attribute", "name": "flag", "type": "bool"},
         {"kind": "character", "attribute": "letter", "by": "value"},
         {"kind": "attribute", "name": "count", "type": "size_t"}],
        inputs=[{"name": "x", "shape": []}, {"name": "y", "shape": ["n"]}],
        attributes=[{"name": "half", "type": "f64", "default": 0.5},
                    {"name": "flag", "type": "bool", "default": True},
                    {"name": "letter", "type": "choice", "choices": ["A", "Beta"]},
                    {"name": "count", "type": "i64"}],
        returns={"kind": "output", "type": "double"})))
    got = values("kinds.by_value(x, y, letter='Beta', count=1000)", "x=0.25", "y=[1.0, 2]", env=env)
    assert got == [-1 - 2 - 4 - 8 + 200 + 40000 + 4000000000 + 128 + 0.5 + 0.25 + 1 + 66 + 1000], got
    refused("eval", "kinds.by_value(x, y, letter='A', count=-1)", "x=0.0", "y=[1.0]", env=env,
            saying="count = -1 does not fit u64")
    refused("eval", "kinds.by_value(x, y, count=1)", "x=0.0", "y=[1.0]", env=env, saying="letter")


def types_have_the_names_of_c_too():
    for symbol, dtype, said, wrong in [
            ("kinds_by_value", "f64", "double", "f32"), ("kinds_by_value", "double", "f64", "float"),
            ({"double": "kinds_by_value"}, None, "double", "long"),
            ({"f64": "kinds_by_value"}, None, "double", "f32")]:
        alone = dict(function("alone", [{"kind": "input", "name": "x", "type": said}],
                              inputs=[{"name": "x", "shape": []}],
                              returns={"kind": "output", "type": said}), symbol=symbol)
        alone.pop("dtype")
        if dtype:
            alone["dtype"] = dtype
        check(pack(alone))
        alone["returns"]["type"] = wrong
        told = check(pack(alone), status=1)
        assert "/returns/type: got " in told and 'expected f64, the dtype of "out"' in told, told
        alone["returns"]["type"], alone["args"][0]["type"] = said, wrong
        told = check(pack(alone), status=1)
        assert "/args/0/type: got " in told and 'expected f64, the dtype of "x"' in told, told
    twice = dict(function("alone", [{"kind": "input", "name": "x"}], inputs=[{"name": "x", "shape": []}],
                          returns={"kind": "output"}), symbol={"double": "a", "f64": "b"})
    twice.pop("dtype")
    assert "got a second symbol for f64" in check(pack(twice), status=1)


def numbers_are_passed_by_pointer():
    by = {"by": "pointer"}
    env = make(pack(function(
        "by_pointer",
        [constant(-1, "i8", **by), constant(-2, "i16", **by),
         {"kind": "extent", "value": "n", **by}, {"kind": "attribute", "name": "wide",
                                                  "type": "long", **by},
         constant(7, "u8", **by), {"kind": "attribute", "name": "half", "type": "float", **by},
         {"kind": "attribute", "name": "half", **by}, {"kind": "character", "value": "U"},
         {"kind": "output", "name": "out"}],
        inputs=[{"name": "x", "shape": ["n"]}],
        attributes=[{"name": "wide", "type": "i64", "default": 1 << 40},
                    {"name": "half", "type": "f64", "default": 0.5}])))
    got = values("kinds.by_pointer(x)", "x=[1.0, 2, 3]", env=env)
    assert got == [-1 - 2 + 3 + (1 << 40) + 7 + 0.5 + 0.5 + 85], got


def libraries_are_set_up_before_the_first_call():
    def alone(*setup, **more):
        one = dict(function("needs", [{"kind": "input", "name": "x"}], inputs=[{"name": "x", "shape": ["..."]}],
                            outputs=[{"name": "out", "shape": ["..."]}], returns={"kind": "output"}),
                   symbol="kinds_needs_set_up")
        return pack(one, setup=list(setup), **more)
    good = {"symbol": "kinds_set_up", "args": [constant(2, "int"), {"kind": "constant", "value": 3.5}],
            "returns": {"kind": "status"}}
    assert values("kinds.needs(x)", "x=[1.0, 2]", env=make(alone(good))) == [[6, 7]]
    bad = {**good, "args": [constant(-1, "int"), constant(1, "double")]}
    for setup, saying in [(bad, "kinds_set_up returned status 1: buy a licence"),
                          ({"symbol": "kinds_absent"}, "has no symbol 'kinds_absent'")]:
        refused("eval", "kinds.needs(x)", "x=[1.0]", env=make(alone(setup, remedy="buy a licence")), saying=saying)
        assert saying in check(alone(setup, remedy="buy a licence"), status=1)
    for setup, saying in [({**good, "args": [{"kind": "input", "name": "x"}]}, "none of the kinds that a set-up call has"),
                          ({"args": []}, "/setup/0/symbol: got nothing"),
                          ({**good, "returns": {"kind": "handle"}}, "expected void or status")]:
        assert saying in check(alone(setup), status=1), check(alone(setup), status=1)


def planned(create, destroy="kinds_plan_free", **more):
    """The manifest of a function that works by a plan."""
    return pack(
        function("planned", [{"kind": "handle", "name": "plan"}, {"kind": "input", "name": "x"},
                             {"kind": "output", "name": "out"}],
                 inputs=[{"name": "x", "shape": ["...", "n"]}], outputs=[{"name": "out", "shape": ["...", 4]}],
                 handles=[{"name": "plan", "create": create, "destroy": {"symbol": destroy}, **more}],
                 returns={"kind": "status"}),
        function("counts", [{"kind": "input", "name": "x"}], inputs=[{"name": "x", "shape": []}],
                 returns={"kind": "output"}))


NEW = {"symbol": "kinds_plan_new", "args": [{"kind": "extent", "value": "n", "type": "long"}]}
OPEN = {"symbol": "kinds_plan_open", "returns": {"kind": "status"},
        "args": [{"kind": "handle", "name": "plan"}, {"kind": "input", "name": "x"},
                 {"kind": "extent", "value": "n", "type": "long"}]}


def handles_live_around_calls():
    env = make(planned(NEW))
    assert values("kinds.planned(x)", "x=[1.0, 2, 3]", env=env) == [[6, 1, 1, 1]]
    # One for all of a batch; each is freed, in the end and after a failure.
    assert values("kinds.planned(x)", "x=[[1.0], [2], [3]]", env=env) == [[[n, 1, 1, 1] for n in (1, 2, 3)]]
    assert values("a = kinds.planned(x)[0] * 0; kinds.counts(a)", "x=[1.0]", env=env) == [1000]
    refused("eval", "kinds.planned(x)", "x=[1.0, 2, 3, 4, 5]", env=make(planned(NEW, remedy="ask for less")),
            saying="kinds_plan_new gave no plan: ask for less")
    # One for each item where it is given the item's memory.
    env = make(planned(OPEN, thread_safe=False))
    got = values("kinds.planned(x)", "x=[[1.0, 2], [3, 4], [5, 6]]", env=env)[0]
    assert [row[0] for row in got] == [3, 7, 11] and all(row[2:] == [1, 1] for row in got), got
    assert sorted(row[1] for row in got) == [1, 2, 3], got
    refused("eval", "kinds.planned(x)", "x=[1.0, 2, 3, 4, 5, 6]", env=env, saying="kinds_plan_open returned status 3")


def handles_are_freed_when_a_call_fails():
    # The library tells at the process' end what is left.
    for create in (NEW, OPEN):
        done = refused("eval", "kinds.planned(x)", "x=[-1.0, 2]", env=make(planned(create)),
                       saying="kinds_planned returned status 1")
        assert "plans left" not in done.stderr, done.stderr
    done = tenon("eval", "kinds.planned(x)", "x=[1.0]", env=make(planned(NEW, destroy="kinds_plan_keep")))
    assert "kinds: 1 plans left" in done.stderr, done.stderr


def wrong_handles_are_shown_at_their_field():
    wrong = [(planned({"symbol": "kinds_plan_new", "returns": {"kind": "void"}}), "nothing gives the handle"),
             (planned({"symbol": "kinds_plan_new", "args": [{"kind": "handle", "name": "plam"}]}), 'did you mean "plan"'),
             (planned({"args": []}), "/handles/0/create/symbol: got nothing"),
             (planned(NEW, destroy="kinds_gone"), "has no symbol 'kinds_gone'"),
             (planned(NEW).replace('"kind": "handle"', '"kind": "handel"'), 'did you mean "handle"')]
    for text, saying in wrong:
        assert saying in check(text, status=1), check(text, status=1)


def strides_are_those_of_the_memory_or_of_a_copy():
    env = make(pack(function(
        "strides",
        [{"kind": "input", "name": "rows"}, {"kind": "extent", "value": "m", "type": "long"},
         {"kind": "extent", "value": "n", "type": "long"},
         {"kind": "stride", "of": "rows", "type": "long"}, {"kind": "input", "name": "columns"},
         {"kind": "stride", "of": "columns", "type": "long"}, {"kind": "input", "name": "vector"},
         {"kind": "stride", "of": "vector", "type": "long"}, {"kind": "output", "name": "out"}],
        inputs=[{"name": "rows", "shape": ["m", "n"], "layout": "rows"},
                {"name": "columns", "shape": ["m", "n"], "layout": "columns"},
                {"name": "vector", "shape": ["m"], "layout": "strided"}],
        outputs=[{"name": "out", "shape": [4]}])))
    x, v = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12.5]], [1, 2, 3, 4, 5, 6.5]

    def strides(rows, columns, vector):
        got = values(f"kinds.strides({rows}, {columns}, {vector})", f"x={x}", f"v={v}", env=env)[0]
        expected = values(f"sum({rows}) + 10 * sum({columns}) + 100 * {columns_of} * sum({vector})",
                          f"x={x}", f"v={v}")[0]
        assert math.isclose(got[3], expected), (got, expected)
        return got[:3]

    columns_of = 4
    assert strides("x", "x", "v[:3]") == [4, 3, 1]  # columns: a copy
    assert strides("x", "x", "v[::2]") == [4, 3, 2]
    assert strides("x", "x", "v[2::-1]") == [4, 3, 1]  # backwards: a copy
    columns_of = 3
    assert strides("x[:, 1:]", "x[:, :3]", "v[1::2]") == [4, 3, 2]
    assert strides("x[:, ::-1][:, 1:]", "x[:, :3]", "v[3:]") == [3, 3, 1]
    assert strides("transpose(x)[:3, :]", "transpose(x)[:3, :]", "v[:3]") == [3, 4, 1]
    assert strides("broadcast_to(x[0, :3], shape=[3, 3])", "transpose(x)[1:, :]",
                   "broadcast_to(v[2], shape=[3])") == [3, 4, 1]


DESTROYS = function(
    "destroys",
    [{"kind": "input", "name": "x"}, {"kind": "work", "name": "work"},
     {"kind": "work", "name": "iwork"}, {"kind": "extent", "value": "n", "type": "long"},
     {"kind": "output", "name": "out"}, {"kind": "status"}],
    inputs=[{"name": "x", "shape": ["...", "n"], "destroyed": True}],
    outputs=[{"name": "out", "shape": ["..."]}],
    work=[{"name": "work", "count": "w"}, {"name": "iwork", "dtype": "i32", "count": "n"}],
    extents={"w": "2 * n"}, returns={"kind": "status"},
    messages={"positive": "too many", "negative": "too few"})


def destroyed_inputs_are_copies_and_work_arrays_have_their_sizes():
    env = make(pack(DESTROYS))
    assert values("kinds.destroys(x), x", "x=[[1.0, 2], [3, 4]]", env=env) == [
        [3, 7], [[1, 2], [3, 4]]]
    assert values("kinds.destroys(x)", "x=[1.0]", env=env) == [1]


def a_status_is_an_error_with_what_it_means():
    env = make(pack(DESTROYS))
    refused("eval", "kinds.destroys(x)", "x=[1.0, 2, 3]", env=env,
            saying="kinds.destroys/1: kinds_destroys returned status 3: too many")
    refused("eval", "kinds.destroys(x)", "x=[1.0, 2, 3, 4]", env=env,
            saying="kinds_destroys returned status -4: too few")
    refused("eval", "kinds.destroys(x)", "x=[1.0, 2, 3, 4, 5]", env=env,
            saying="kinds_destroys returned status 55: too many")
    env = make(pack({**DESTROYS, "fails": "positive"}))
    assert values("kinds.destroys(x)", "x=[1.0, 2, 3, 4]", env=env) == [10]
    env = make(pack({**DESTROYS, "fails": "negative"}))
    assert values("kinds.destroys(x)", "x=[1.0, 2, 3]", env=env) == [6]


def functions_that_are_not_thread_safe_are_called_one_at_a_time():
    env = make(pack(function("alone", [{"kind": "input", "name": "x", "by": "value"}],
                             inputs=[{"name": "x", "shape": ["..."]}],
                             outputs=[{"name": "out", "shape": ["..."]}],
                             returns={"kind": "output"}, thread_safe=False)))
    env["TENON_THREADS"] = "4"
    text = "x = broadcast_to(1.0, shape=[40, 1000]); max(kinds.alone(x) + kinds.alone(-x))"
    assert values(text, env=env) == [0]


# --- what does not fit -----------------------------------------------------------------


def extents_above_2_to_the_31_are_refused_where_the_function_takes_an_int():
    text = ("x = broadcast_to(astype(1, f32), shape=[3000000000]); "
            "blas.dot(x, x)")
    refused("eval", text, saying="blas.dot/1: n = 3000000000 does not fit argument 0 of cblas_sdot, i32")
    text = ("x = broadcast_to(1.0, shape=[65536, 65536]); blas.axpby(x, 1.0)")
    refused("eval", text, saying="size = 4294967296 does not fit argument 0 of cblas_daxpby, i32")
    text = "x = broadcast_to(1.0, shape=[1, 60000]); lapack.eigvalsh(broadcast_to(x, [60000, 60000]))"
    refused("eval", text.replace("60000", "70000000"), saying="does not fit argument")


# --- what is missing -------------------------------------------------------------------


def a_missing_library_is_told_with_its_remedy():
    alone = function("alone", [{"kind": "input", "name": "x", "by": "value"}],
                     inputs=[{"name": "x", "shape": ["..."]}],
                     outputs=[{"name": "out", "shape": ["..."]}], returns={"kind": "output"})
    text = pack(alone, library=["libnowhere.so.9", "libnowhere.so"],
                remedy="install nowhere (Debian: apt install libnowhere9)")
    pathlib.Path("kinds.json").write_text(text)
    line = 1 + text[:text.index('"library"')].count("\n")
    refused("ffi", "check", "kinds.json",
            saying=f"kinds.json:{line}: /library: library 'libnowhere.so.9' or 'libnowhere.so' "
                   "cannot be opened")
    env = make(text)
    assert "com.acme.kinds" in tenon("plugins", env=env).stdout
    for arguments in (("eval", "kinds.alone(x)", "x=1.0"), ("why", "op", "kinds.alone")):
        done = subprocess.run([tap.TENON, *arguments], env={**tap.ENVIRONMENT, **env},
                              capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert "library 'libnowhere.so.9' or 'libnowhere.so' cannot be opened" in said, said
        assert "install nowhere (Debian: apt install libnowhere9)" in said, said
    # What is empty needs no library.
    assert values("kinds.alone(x[:0])", "x=[1.0]", env=env) == [[]]


def a_missing_symbol_is_told():
    text = pack(function("alone", [{"kind": "input", "name": "x", "by": "value"}],
                         symbol={"f64": "kinds_alone", "f32": "kinds_alonef"}, dtype=None,
                         inputs=[{"name": "x", "shape": ["..."]}],
                         outputs=[{"name": "out", "shape": ["..."]}],
                         returns={"kind": "output"})).replace('   "dtype": null,\n', "")
    pathlib.Path("kinds.json").write_text(text)
    line = 1 + text[:text.index('"kinds_alonef"')].count("\n")
    refused("ffi", "check", "kinds.json",
            saying=f"kinds.json:{line}: /functions/0/symbol/f32: library '{LIBRARY}' has no symbol "
                   "'kinds_alonef'")
    env = make(text)
    refused("eval", "kinds.alone(astype(x, f32))", "x=1.0", env=env,
            saying="has no symbol 'kinds_alonef': install a version that has it")
    assert values("kinds.alone(x)", "x=1.0", env=env) == [1]


def a_wrong_manifest_makes_and_changes_nothing():
    env = make(pack(DESTROYS))
    before = pathlib.Path("plugins/com.acme.kinds/com.acme.kinds.so").read_bytes()
    text = pack(DESTROYS).replace('"kind": "work"', '"kind": "wrok"', 1)
    pathlib.Path("kinds.json").write_text(text)
    line = 1 + text[:text.index("wrok")].count("\n")
    for command in "check", "make":
        more = ["-o", "plugins"] if command == "make" else []
        refused("ffi", command, "kinds.json", *more,
                saying=f'kinds.json:{line}: /functions/0/args/1/kind: got "wrok", expected one of')
    assert pathlib.Path("plugins/com.acme.kinds/com.acme.kinds.so").read_bytes() == before
    assert values("kinds.destroys(x)", "x=[1.0]", env=env) == [1]
    refused("ffi", "make", "nowhere.json", saying="nowhere.json: No such file")
    refused("ffi", "make", ".", saying="is no file")
    refused("ffi", "make", status=2, saying="")
    pathlib.Path("huge.json").write_text(" " * ((1 << 20) + 1))
    refused("ffi", "check", "huge.json", saying="got 1048577 bytes, expected at most 1048576")


def packs_are_made_in_tmpdir_and_leave_nothing_there():
    pathlib.Path("kinds.json").write_text(pack(DESTROYS))
    os.mkdir("tmp")
    tenon("ffi", "make", "kinds.json", "-o", "plugins", env={"TMPDIR": "tmp"})
    assert os.listdir("tmp") == []
    refused("ffi", "make", "kinds.json", "-o", "plugins", env={"TMPDIR": "nowhere"},
            saying="cannot make a folder in nowhere: No such file")


def a_pack_whose_manifest_was_cut_off_is_refused():
    env = make(pack(DESTROYS))
    strip = shutil.which("strip")
    if not strip:
        return "strip is not installed"
    os.mkdir("cut")
    shutil.copy("plugins/com.acme.kinds/com.acme.kinds.so", "cut/com.acme.kinds.so")
    subprocess.run([strip, "cut/com.acme.kinds.so"], check=True)
    shutil.copy("cut/com.acme.kinds.so", "plugins/com.acme.kinds/com.acme.kinds.so")
    said = tenon("why", "plugin", "com.acme.kinds", env=env).stdout
    assert "bytes, the manifest says" in said, said
    # Even when somebody describes it anew.
    cut_off = "its manifest was cut off, by strip perhaps: make it again with `tenon ffi make`"
    refused("plugin", "describe", "cut/com.acme.kinds.so", saying=cut_off)
    code, manifest = pathlib.Path("cut/com.acme.kinds.so"), pathlib.Path("plugins/com.acme.kinds/plugin.json")
    whole = json.loads(manifest.read_text())
    whole["files"][0] |= {"size": code.stat().st_size, "sha256": hashlib.sha256(code.read_bytes()).hexdigest()}
    manifest.write_text(json.dumps(whole))
    refused("eval", "kinds.destroys(x)", "x=[1.0]", env=env,
            saying=cut_off)
    return None


tap.run([
    numbers_of_each_type_are_passed_by_value, types_have_the_names_of_c_too, numbers_are_passed_by_pointer,
    libraries_are_set_up_before_the_first_call, handles_live_around_calls,
    handles_are_freed_when_a_call_fails, wrong_handles_are_shown_at_their_field,
    strides_are_those_of_the_memory_or_of_a_copy,
    destroyed_inputs_are_copies_and_work_arrays_have_their_sizes,
    a_status_is_an_error_with_what_it_means,
    functions_that_are_not_thread_safe_are_called_one_at_a_time,
    extents_above_2_to_the_31_are_refused_where_the_function_takes_an_int,
    a_missing_library_is_told_with_its_remedy, a_missing_symbol_is_told,
    a_wrong_manifest_makes_and_changes_nothing,
    packs_are_made_in_tmpdir_and_leave_nothing_there,
    a_pack_whose_manifest_was_cut_off_is_refused])
