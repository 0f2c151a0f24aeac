# SPDX-License-Identifier: MIT
"""Graphs in files: `tenon eval --save` and `@FILE`, and what `tenon graph FILE` says of them."""

import json
import struct

from tap import refused, run, tenon, values

X, W = "x=[[1.0,2.0],[3.0,4.0]]", "w=[[0.5,1.0],[1.0,0.25]]"
LAYER = "h = tanh(x @ w + 1); sum(h), h"


def save(*args, path="a.graph"):
    tenon("eval", *args, "--save", path)
    return path


def text_of(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(json.loads(data[8:8 + length])["__metadata__"]["tenon.graph"])


def write(path, document):
    header = json.dumps({"__metadata__": {"tenon.graph": json.dumps(document)}}).encode()
    open(path, "wb").write(struct.pack("<Q", len(header)) + header)


def a_saved_expression_computes_the_same():
    save(LAYER, X, W)
    assert values("@a.graph", X, W) == values(LAYER, X, W)
    assert values("@a.graph:main", W, X) == values(LAYER, X, W)
    save(LAYER, X, W, path="b.graph")
    assert open("a.graph", "rb").read() == open("b.graph", "rb").read()


def gradients_are_saved_and_taken():
    save("sum(x ** 3)", "x=[1.0,2.0]", "--grad", "x", "--signature", "cube")
    assert values("@a.graph:cube", "x=[2,3]") == [35, [12, 27]]
    assert values("@a.graph", "x=[[2,3],[4,5]]", "--vmap", "x") == [[35, 189], [[12, 27], [48, 75]]]
    save("sum(x ** 3)", "x=[1.0,2.0]", path="b.graph")
    assert values("@b.graph", "x=[2,3]") == [35]
    assert json.loads(tenon("eval", "@b.graph", "x=[2.0,3]", "--grad", "x", "--json").stdout)["gradients"]["x"]["data"] == [12, 27]


def loops_and_attributes_come_back():
    save('while_loop(x, body="x -> x / w", times=3)', "x=8.0", "w=2.0")
    assert values("@a.graph", "x=16", "w=4") == [0.25]
    save("sum(astype(x, f16), axis=1, keepdims=true)", X)
    assert values("@a.graph", X) == [[[3], [7]]]


def a_file_is_described():
    save("sum(x ** 3) + 1", "x=[1.0,2.0]", "--grad", "x")
    file = json.loads(tenon("graph", "a.graph", "--json").stdout)
    assert file["signatures"][0]["inputs"] == [{"name": "x", "dtype": "f64", "shape": [2]}], file
    assert [o["name"] for o in file["signatures"][0]["outputs"]] == ["result", "grad.x"], file
    assert {"id": "base.power/1", "count": 1, "installed": "base.power/1"} in file["operators"], file
    shown = tenon("graph", "a.graph").stdout
    assert "signature main" in shown and "base.power/1" in shown and "grad.x" in shown, shown
    dot = tenon("graph", "@a.graph", "-o", "-").stdout
    assert dot.startswith("digraph") and "output 1" in dot, dot
    assert "base.power" in tenon("why", "@a.graph", "x=[1.0,2.0]").stdout


def an_operator_that_is_missing_is_shown_and_named():
    document = text_of(save("exp(x)", "x=1.0"))
    document["operators"] = ["base.exp/7"]
    write("new.graph", document)
    shown = json.loads(tenon("graph", "new.graph", "--json").stdout)
    assert shown["operators"] == [{"id": "base.exp/7", "count": 1, "installed": "base.exp/1"}], shown
    refused("eval", "@new.graph", "x=1", saying="base.exp/7 (base.exp/1 is installed: the file was made by a newer revision)")


def wrong_calls_say_what_a_signature_takes():
    save(LAYER, X, W)
    refused("eval", "@a.graph", X, status=2, saying="missing value 'w': signature 'main' takes x, w")
    refused("eval", "@a.graph", X, W, "y=1", status=2, saying="unknown value 'y'")
    refused("eval", "@a.graph", "x=1", W, saying="x has shape (), signature 'main' takes (2, 2)")
    refused("eval", "@a.graph:other", X, W, saying="has no signature 'other' (it has main)")
    refused("eval", "@none.graph", saying="none.graph")
    refused("eval", LAYER, X, W, "--save", "a.graph", "--json", status=2, saying="--save")
    refused("eval", LAYER, X, W, "--signature", "s", status=2, saying="--signature")
    refused("eval", LAYER, X, W, "--save", "no/a.graph", saying="no/a.graph")
    refused("graph", "1 + 1", "--json", status=2, saying="--json")
    open("text", "w").write("hello, this is no graph")
    refused("graph", "text", saying="text")


if __name__ == "__main__":
    run([a_saved_expression_computes_the_same, gradients_are_saved_and_taken, loops_and_attributes_come_back,
         a_file_is_described, an_operator_that_is_missing_is_shown_and_named,
         wrong_calls_say_what_a_signature_takes])
