# SPDX-License-Identifier: MIT
"""`tenon graph` and `tenon why`: pictures as data, on one device and two; copies that a
backend without expressions needs; and that pictures, explanations and records agree."""

import json
import os
import pathlib
import re
import sys

from tap import SANITIZED, STAGING, refused, run, tenon, values

TOYS = {"TENON_PLUGIN_PATH": f"{STAGING}:{os.path.abspath(sys.argv[3])}", "TENON_FALLBACK": "allow"}
X = "x=[[1.0,2.0],[3.0,4.0]]"
LONGEST = 63  # bytes of a label


def on(backends, **more):
    return {**TOYS, "TENON_BACKEND": backends, **more}


def picture(*args, env=None):
    """Nodes, by their name, with their lines of text; edges as pairs of first lines, sorted;
    and the submissions' devices."""
    dot = tenon("graph", *args, "-o", "-", env=env or {"TENON_BACKEND": "cpu-blas"}).stdout
    nodes = {name: text.split("\\n") for name, text in
             re.findall(r'^ *(\w+) \[.*label="((?:[^"\\]|\\.)*)"\];$', dot, re.M)}
    pairs = re.findall(r"^ *(\w+) -> (\w+);$", dot, re.M)
    assert all(a in nodes and b in nodes for a, b in pairs), dot
    lone = set(nodes) - {name for pair in pairs for name in pair}
    assert not lone, (lone, dot)
    devices = re.findall(r'label="submission \d+ on ([^"]*)"', dot)
    return nodes, sorted((nodes[a][0], nodes[b][0]) for a, b in pairs), devices


def one_device_has_all_edges_and_the_names_of_inputs():
    nodes, edges, devices = picture("exp(x @ y + 1)", X, "y=[[1.0],[2.0]]")
    assert edges == [("matmul·add·exp", "output 0"), ("x", "matmul·add·exp"), ("y", "matmul·add·exp")], edges
    assert devices == ["cpu-blas:0"], devices
    assert nodes["l1"] == ["y", "f64[2, 1]"], nodes


def a_graph_as_built_has_the_names_too():
    _, edges, _ = picture("exp(x @ y + 1)", X, "y=[[1.0],[2.0]]", "--built")
    assert edges == [("1", "base.add/1"), ("base.add/1", "base.exp/1"),
                     ("base.exp/1", "output 0"), ("base.matmul/1", "base.add/1"),
                     ("x", "base.matmul/1"), ("y", "base.matmul/1")], edges


def several_outputs_each_have_an_edge():
    _, edges, _ = picture("x @ x, sin(x), x, x.T, x @ x + sin(x)", X)
    assert edges == [
        ("matmul·sin·add", "output 0"), ("matmul·sin·add", "output 1"), ("matmul·sin·add", "output 4"),
        ("x", "matmul·sin·add"), ("x", "matmul·sin·add"), ("x", "matmul·sin·add"), ("x", "output 3"), ("x", "x")], edges


def two_devices_are_joined_by_transfers():
    _, edges, devices = picture("(exp(x @ x) + 1) @ x", X, env=on("toy,cpu-blas"))
    assert edges == [
        ("base.matmul/1", "output 0"), ("base.matmul/1", "transfer to cpu-blas:0"),
        ("exp·add", "transfer to toy:0"), ("transfer to cpu-blas:0", "exp·add"),
        ("transfer to toy:0", "base.matmul/1"), ("x", "base.matmul/1"), ("x", "base.matmul/1"),
        ("x", "base.matmul/1")], edges
    assert devices == ["toy:0", "cpu-blas:0", "toy:0"], devices


def steps_of(plan):
    """(label, what it reads) of every step and transfer, in order, from an explanation."""
    leaves, labels = {}, {}
    for leaf in plan["leaves"]:
        leaves[leaf["id"]] = leaf.get("name", f"data {leaf['id']}")
    told = []
    for segment in plan["segments"]:
        for part in segment["transfers"] + segment["steps"]:
            label = part["label"]
            labels[part["id"]] = f"{label} to {part['to']}" if "to" in part else label
            reads = [leaves[i["leaf"]] if "leaf" in i else labels[i["step"]]
                     for i in part["inputs"] if "leaf" in i or "step" in i]
            told.append((labels[part["id"]], reads, part.get("kernel")))
    return told


def pictures_explanations_and_records_agree():
    for backends, expression in [("cpu-blas", "exp(x @ x + 1) @ sin(x), x * 2"),
                                 ("toy,cpu-blas", "exp(transpose(x @ x)) @ transpose(x)"),
                                 ("toy-cpu,cpu-blas", "x @ transpose(x) @ broadcast_to(2.0, [2, 2])")]:
        env = on(backends)
        asked = json.loads(tenon("why", "--json", expression, X, env=env).stdout)
        tenon("eval", expression, X, env={**env, "TENON_WHY": f"{backends}.jsonl"})
        done = json.loads(tenon("why", "last", "--json", f"{backends}.jsonl").stdout)[-1]
        for part in ("nodes", "leaves", "segments", "outputs"):
            assert asked[part] == done[part], (part, asked[part], done[part])
        _, edges, devices = picture(expression, X, env=env)
        drawn = [edge for edge in edges if not edge[1].startswith("output")]
        told = steps_of(asked)
        assert sorted((read, label) for label, reads, _ in told for read in reads) == drawn, (
            told, drawn)
        assert devices == [s["device"] for s in asked["segments"] if s["steps"]], devices
        said = tenon("why", expression, X, env=env).stdout
        for label, _, kernel in told:
            assert f"{label} ({kernel})" in said if kernel else label.split(" to ")[0] in said, (
                label, said)


def a_backend_without_expressions_is_sent_none():
    for backends in ("toy,cpu-blas", "toy-cpu,cpu-blas", "toy-copies,cpu-blas"):
        (got,) = values("log(exp(transpose(x @ x)))", X, env=on(backends))
        assert [round(v, 9) for row in got for v in row] == [7, 15, 10, 22], (backends, got)


def such_a_backend_passes_its_check():
    for name in ("toy", "toy-cpu", "toy-copies", "toy-f32")[:1 if SANITIZED else None]:
        # The suite, the longest part: once here, and for the least backend below.
        parts = () if name == "toy" and not SANITIZED else ("--only", "!suite.*")
        said = tenon("check", f"com.acme.{name}", *parts, env=TOYS).stdout
        assert "PASS" in said and "0 failed" in said, said


def checks_of(name, *options):
    """What the suite, segments and queues of a backend's check gave, by outcome."""
    report = json.loads(tenon("check", f"com.acme.{name}", "--only", "[sq]*", "--json", *options, env=TOYS).stdout)
    results = [r for r in report["results"] if r["check"].split(".")[0] in ("suite", "segment", "queue")]
    return {outcome: [r for r in results if r["outcome"] == outcome] for outcome in ("pass", "fail", "skip", "warn")}


def the_least_backend_is_checked_with_its_own_kernels():
    alone, beside = checks_of("toy-f32"), checks_of("toy-f32", "--with", "cpu-blas")
    for found in (alone, beside):
        assert not found["fail"] and not found["warn"], found
        passed = [r["check"] for r in found["pass"]]
        for check in ("segment.values", "segment.order", "segment.alias", "segment.memory", "queue.order", "queue.done",
                      "queue.threads", "queue.at-once"):
            assert check in passed, (check, passed)
    # What the backend lacks is a skip; beside a backend that has it, it is computed.
    assert len(alone["skip"]) > 80 > 20 > len(beside["skip"]), (len(alone["skip"]), len(beside["skip"]))
    assert len([r for r in alone["pass"] if r["check"] == "suite.test"]) > 10, alone["pass"]


def views_are_read_by_way_of_the_host_where_no_device_copies():
    x = "x=[[1.0,2,3],[4,5,6]]"
    for expression, expected in [
            ("transpose(x)", [[1, 4], [2, 5], [3, 6]]), ("x[:, ::-1]", [[3, 2, 1], [6, 5, 4]]),
            ("x[1:, ::2]", [[4, 6]]), ("broadcast_to(x, [2, 2, 3])[:, 1]", [[4, 5, 6], [4, 5, 6]]),
            ("transpose(x @ [[1.0,0,0],[0,1,0],[0,0,1]])", [[1, 4], [2, 5], [3, 6]]), ("x[:, 3:]", [[], []])]:
        assert values(expression, x, env=on("toy")) == [expected], expression


def copy_of(backends, expression="transpose(x) @ x"):
    """Where the copy runs, and with which kernel."""
    plan = json.loads(tenon("why", "--json", expression, X, env=on(backends)).stdout)
    (node,) = [n for n in plan["nodes"] if n["op"] == "tn.copy/1"]
    steps = [s for g in plan["segments"] for s in g["steps"] if s["label"] == "tn.copy/1"]
    assert [s["kernel"] for s in steps] == [node["kernel"]], plan
    (got,) = values(expression, X, env=on(backends))
    assert got == [[10, 14], [14, 20]], got
    return node["device"], node["kernel"], node["instead_of"]


def a_copy_is_placed_as_any_step_is():
    assert copy_of("toy-cpu,cpu-blas") == ("toy-cpu:0", "reference", "")
    assert copy_of("toy-cpu") == ("toy-cpu:0", "reference", "")
    assert copy_of("toy-copies") == ("toy-copies:0", "toy-copies", "")
    assert copy_of("toy,cpu-blas") == ("cpu-blas:0", "expression", "toy:0")


def a_copy_that_no_device_makes_is_an_error_with_reasons():
    done = refused("eval", "transpose(x) @ x", X, env=on("toy"),
                   saying="base.matmul/1 giving f64[2, 2] runs on none of the selected devices (toy:0)")
    assert "tenon why" in done.stderr
    said = tenon("why", "transpose(x) @ x", X, env=on("toy"), status=1).stdout
    assert "no device of TENON_BACKEND can copy it" in said, said
    refused("eval", "transpose(x) @ x", X, env=on("toy,cpu-blas", TENON_FALLBACK="error"),
            saying="tn.copy/1: toy:0 cannot run it and TENON_FALLBACK=error forbids cpu-blas:0")


def numbers_are_uploaded_where_no_expression_writes_them():
    expression = "x @ broadcast_to(2.0, [2, 2])"
    for backends in ("toy", "toy-cpu", "toy-copies", "toy,cpu-blas"):
        assert values(expression, X, env=on(backends)) == [[[6, 6], [14, 14]]]
    said = tenon("why", expression, X, env=on("toy")).stdout
    assert "upload of 2 to toy:0, 32 bytes" in said, said


def a_value_travels_once_to_each_device():
    plan = json.loads(tenon("why", "--json", "exp(x), sin(x) @ x, max(x)", X,
                            env=on("toy,cpu-blas")).stdout)
    moved = [t["inputs"] for s in plan["segments"] for t in s["transfers"] if t["to"] == "cpu-blas:0"]
    assert moved == [[{"leaf": 0}]], moved


def transfers_and_uploads_are_in_the_trace():
    tenon("eval", "exp(x @ broadcast_to(2.0, [2, 2]))", X,
          env=on("toy,cpu-blas", TENON_TRACE="run.json"))
    events = json.loads(pathlib.Path("run.json").read_text())["traceEvents"]
    told = [(e["name"], e["args"]) for e in events if e["name"] in ("upload", "transfer")]
    assert told == [("upload", {"bytes": 32, "from": "", "to": "toy:0"}),
                    ("transfer", {"bytes": 32, "from": "toy:0", "to": "cpu-blas:0"})], told


def labels_are_short_and_the_text_is_there_when_asked_for():
    expression = 'exp(random_normal(k, shape=[3], dtype="f64")) + 1'
    key = 'k=astype([1, 2], dtype="u32")'
    env = {"TENON_BACKEND": "cpu-blas"}
    plan = json.loads(tenon("why", "--json", expression, key, env=env).stdout)
    steps = [s for g in plan["segments"] for s in g["steps"]]
    assert all(len(e.get("op", e.get("label")).encode()) <= LONGEST for e in plan["nodes"] + steps)
    assert any(s["label"].startswith(("base.random_normal/1", "random_normal·")) for s in steps), steps
    texts = [n["text"] for n in plan["nodes"] if "text" in n]
    assert texts and all(len(t) > LONGEST for t in texts), plan
    short = tenon("why", expression, key, env=env).stdout
    full = tenon("why", "--full", expression, key, env=env).stdout
    assert texts[0] not in short and "…" in short and texts[0] in full, short
    assert max(map(len, short.splitlines())) < 200, short


def a_long_chain_has_a_label_with_an_end():
    plan = json.loads(tenon("why", "--json", "sin(" * 30 + "x" + ")" * 30, X,
                            env={"TENON_BACKEND": "cpu-blas"}).stdout)
    (step,) = plan["segments"][0]["steps"]
    assert step["label"].startswith("sin·sin·") and step["label"].endswith("·…"), step
    assert len(step["label"].encode()) <= LONGEST and step["text"].count("base.sin/1") == 30, step


run([one_device_has_all_edges_and_the_names_of_inputs, a_graph_as_built_has_the_names_too,
     several_outputs_each_have_an_edge, two_devices_are_joined_by_transfers,
     pictures_explanations_and_records_agree, a_backend_without_expressions_is_sent_none,
     such_a_backend_passes_its_check, the_least_backend_is_checked_with_its_own_kernels,
     views_are_read_by_way_of_the_host_where_no_device_copies,
     a_copy_is_placed_as_any_step_is, a_copy_that_no_device_makes_is_an_error_with_reasons,
     numbers_are_uploaded_where_no_expression_writes_them, a_value_travels_once_to_each_device,
     transfers_and_uploads_are_in_the_trace,
     labels_are_short_and_the_text_is_there_when_asked_for, a_long_chain_has_a_label_with_an_end])
