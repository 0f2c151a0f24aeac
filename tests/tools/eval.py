# SPDX-License-Identifier: MIT
"""tenon eval: the language, files, printing; beside NumPy where it is installed."""

import json
import os
import struct

import tap
from tap import refused, tenon, values

try:
    import numpy
except ImportError:
    numpy = None

X = "x=[[1, 2, 3], [4, 5, 6]]"
F = "x=[[1.5, 2, 3], [4, 5, 6]]"


def numbers_and_signs():
    for text, expected in [
        ("1 + 1", 2), ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4), ("7 // 2", 3), ("-7 // 2", -4), ("-7 % 3", 2), ("7 / 2", 3.5),
        ("2.0 ** -1", 0.5), ("1 < 2", True), ("1 == 2", False), ("6 & 3 | 8", 10),
        ("6 ^ 3", 5), ("1 << 4 >> 2", 4), ("~5", -6), ("0x10", 16), ("1e3", 1000.0),
        ("- - 3", 3), (".5 + 1.", 1.5), ("10 - 4 - 3", 3), ("true", True),
        ("1.0 // 0.1", 9), ("6.0 // 0.1", 59), ("-1.0 // inf", -1), ("true // true", 1),
        ("-9223372036854775808", -2**63), ("18446744073709551615", 2**64 - 1), ("- -9223372036854775808", 2**63),
        ("0xffffffffffffffff", 2**64 - 1), ("2**63 - 1", 2**63 - 1), ("[18446744073709551615, 1][0]", 2**64 - 1)]:
        assert [int(v) if isinstance(v, str) else v for v in values("--", text)] == [expected], (text, values("--", text))
    for text, said in [
        ("18446744073709551616", "the number does not fit 64 bits"), ("-9223372036854775809", "does not fit 64 bits"),
        ("2**64", "fits neither i64 nor u64"), ("[18446744073709551615, -1]", "neither i64 nor u64 holds all"),
        ("full([2], 18446744073709551615, dtype=u64)", "is not exact as an f64"),
        ("full([2], 300, dtype=u8)", "value is 300, expected a number that u8 holds"),
        ("sum([1], [18446744073709551615])", "does not fit i64")]:
        refused("eval", "--", text, saying=said)


def numbers_beside_integers():
    u8 = "x = astype([44, 0, 255], u8); "
    assert values(u8 + "x < 300, x > -1, 44 == x, 300 == x, 2**40 >= x, x / 300, x + 2.5") == [
        [True] * 3, [True] * 3, [True, False, False], [False] * 3, [True] * 3, [44 / 300, 0, 255 / 300], [46.5, 2.5, 257.5]]
    assert values("x < 2**40, x + 300, x * 2 ** 40", "x=[1]") == [[True], [301], [2**40]]
    for text, said in [("x + 300", "'+' of u8 and 300"), ("-1 * x", "'*' of -1 and u8"), ("x ^ 2 ** 8", "'^' of u8 and 256"),
                       ("x + 2 * 150", "'+' of u8 and 300"), ("where(x, x, 300)", "'select' of u8 and 300")]:
        refused("eval", u8 + text, saying=said + ": expected a number that u8 holds")
    refused("eval", u8 + "astype(x, u64) ^ astype(x, i32)", saying="'^' of u64 and i32: expected integers that one dtype")
    for text, expected in [("9223372036854775807:", []), (":9223372036854775807", [44, 0, 255]), (":9223372036854775807:-1", []),
                           ("18446744073709551615:", []), ("::9223372036854775807", [44])]:
        assert values(u8 + f"x[{text}]") == [expected], text
    refused("eval", u8 + "x[9223372036854775808]", saying="index 9223372036854775808 is outside axis 0")


def arrays_slices_and_operators():
    for text, expected in [
        ("x + 1", [[2, 3, 4], [5, 6, 7]]), ("x[1]", [4, 5, 6]), ("x[:, ::-1][0]", [3, 2, 1]),
        ("x[..., -1]", [3, 6]), ("x[0, 1:]", [2, 3]), ("x[-1, 0]", 4), ("x[:, [2, 0]]", [[3, 1], [6, 4]]),
        ("sum(x, axis=0)", [5, 7, 9]), ("sum(x, [1])", [6, 15]), ("sum(x, axis=(0, 1))", 21), ("sum(x, axis=())", [[1, 2, 3], [4, 5, 6]]), ("squeeze(expand_dims(x, axis=0), axis=0)", [[1, 2, 3], [4, 5, 6]]),
        ("x.T", [[1, 4], [2, 5], [3, 6]]), ("(x[:1] @ x.mT).T[0]", [14]), ("reshape(x, [1, 2, 3]).mT", [[[1, 4], [2, 5], [3, 6]]]),
        ("reshape(x, [1, 2, 3]).T[:, 1, 0]", [4, 5, 6]), ("base.sum(x)", 21),
        ("prod(x, axis=1, keepdims=true)", [[6], [120]]), ("prod(x)", 720), ("prod(x, axis=[])", [[1, 2, 3], [4, 5, 6]]),
        ("isinf(erfinv(x[0] - 2))", [True, False, True]),
        ("x @ transpose(x)", [[14, 32], [32, 77]]), ("max(x, axis=(1,), keepdims=true)", [[3], [6]]),
        ("reshape(x, [3, -1])", [[1, 2], [3, 4], [5, 6]]), ("astype(x, f32)[0, 0]", 1.0),
        ("astype(x, dtype='u8')[0, 0]", 1), ("where(x > 2, x, 0)", [[0, 0, 3], [4, 5, 6]]),
        ("stack([x[0], x[1]], axis=1)", [[1, 4], [2, 5], [3, 6]]), ("concatenate([x[0], x[1]])", [1, 2, 3, 4, 5, 6]), ("stack(x[0], x[1])", [[1, 2, 3], [4, 5, 6]]), ("stack([[1], [2]])", [[[1], [2]]]),
        ("einsum('ij,kj->ik', x, x)", [[14, 32], [32, 77]]), ("einsum(x, x, 'ij,ij->i')", [14, 77]), ("einsum(x, equation='ij->j')", [5, 7, 9]),
        ("take(indices=x[0, 0], x=x[1])", 5), ("topk(x[1], 2)[1]", [2, 1]), ("tile(x[0], 2)", [1, 2, 3] * 2), ("repeat(x[0], [1, 0, 2])", [1, 3, 3]), ("gather(x, [1, 0], [0, -1])", [4, 3]), ("scatter(x, 9, 0, [1, 2], mode=add)", [[1, 11, 12], [4, 5, 6]]),
        ("rope(x / 1, [0.0], none)", [[1, 2, 3], [4, 5, 6]]), ("scaled_dot_product_attention(x / 1, x / 1, x / 1, lengths=1)", [[1, 2, 3]] * 2), ("scaled_dot_product_attention(x / 1, x / 1, x / 1, none, 1)", [[1, 2, 3]] * 2),
        ("a = x[0]; b = a * 2; a + b", [3, 6, 9]), ("[x[0], x[1]]", [[1, 2, 3], [4, 5, 6]])]:
        assert values(text, X) == [expected], (text, values(text, X))
    # The greatest double in the range of i64 is a limit for the integers beyond it.
    for text, expected in [("hi", [2**63 - 1024, 5]), ("lo", [2**63 - 1, 2**63 - 1024])]:
        assert values(f"clip(x, {text}={2**63 - 1024}.0)", f"x=[{2**63 - 1}, 5]") == [expected]
    assert values("x[0], x[1, 1]", X) == [[1, 2, 3], 5]
    assert values("a, b = x[0], x[1]; b - a", X) == [[3, 3, 3]]
    step = "sgd(p, g, m, lr=0.5, momentum=0.5)"
    for text, expected in [("%s[0]", [-1.5]), ("%s[-1]", [5]), ("%s[1][0] * 2", 10)]:
        assert values(text % step, "p=[1.0]", "g=[3.0]", "m=[4.0]") == [expected], text


def long_expressions_need_no_stack():
    assert values("x" + " + x" * 4000, "x=1") == [4001]
    refused("eval", "(" * 50000 + "1" + ")" * 50000, saying="nested more than 200 deep")
    refused("eval", "--", "-" * 100000 + "1", saying="nested more than 200 deep")


def dtypes_are_numpys():
    for text, expected in [("x + 1", "i64"), ("x + 1.5", "f64"), ("x / 2", "f64"),
                           ("astype(x, f32) * 2", "f32"), ("astype(x, f32) * 2.5", "f32"),
                           ("astype(x, u8) + astype(x, i8)", "i16"), ("x > 1", "bool"),
                           ("astype(x, f16) + astype(x, bf16)", "f32"), ("[true, false]", "bool")]:
        result = json.loads(tenon("eval", "--json", text, X).stdout)["results"][0]
        assert result["dtype"] == expected, (text, result["dtype"])


def mistakes_are_shown_with_a_caret():
    for text, message, column in [
        ("x + zebra", "unknown name 'zebra'", 4), ("x +", "got the end", 3), ("x ) 1", "got ')'", 2),
        ("x @ x", "matmul", 2), ("x[5]", "outside axis 0", 2), ("x[0, 0, 0]", "3 indices", 1),
        ("1 < 2 < 3", "do not chain", 6), ("summ(x)", "did you mean sum", 0), ("x[0:1:0]", "cannot be 0", 2),
        ("sum(x, 1, true, f32, 3)", "too many arguments", 21), ("sum(x, axes=[0])", "did you mean 'axis'", 0), ("'abc", "no end", 0),
        (r"sum(x, 'a\q')", r"expected one of \\", 9), (r"sum(x, 'a\x00')", "no zero byte", 9), ("sum(x, [true])", "expected a number here", 8),
        ("[[1], [1, 2]]", "has 2 elements", 6), ("[1, [2]]", "expected", 1), ("99999999999999999999", "64 bits", 0),
        ("x.Q", "expected '(' after it, or .T or .mT", 0), ("x[0].mT", "last two axes", 5), ("(x).Q", "got '.Q'", 4),
        ("y = x + .5; sgd(y, y, y) + 1", "got the operator's 2 outputs", 12),
        ("y = x + .5; sgd(y, y, y)[2]", "output 2 of 2: expected -2 .. 1", 25),
        ("split(x)", "got neither sections nor indices", 0), ("split(x, 2)[2]", "output 2 of 2", 12), ("split(x, 5)", "no multiple of 5", 0),
        ("y = x + .5; sgd(y, y, y)[0, 0]", "by one whole number", 24), ("x $ 2", "'$'", 2), ("a, b = 1", "2 names for 1", 0), ("sum(axis=0, x)", "come before", 12), ("take(x, 0, x=x)", "'x' is given twice", 11),
        ("einsum('ij,jk', x, x)", "column 4: 'j' has extent 2", 0), ("sum(none)", "unknown name 'none'", 4), ("einsum('a', 'b', x)", "a string is no array", 12)]:
        stderr = refused("eval", text, X, saying=message).stderr.rstrip("\n").split("\n")
        assert stderr[-1] == "  " + " " * column + "^", (text, stderr)


def gradients_are_printed():
    done = json.loads(tenon("eval", "--json", "x ** 3 + 2 * y", "x=2.0", "y=1.0", "--grad", "x,y").stdout)
    assert done["results"][0]["data"] == 10 and done["gradients"]["x"]["data"] == 12
    assert done["gradients"]["y"]["data"] == 2
    done = json.loads(tenon("eval", "--json", "x * x", "x=[1.0, 2, 3]", "--grad", "x").stdout)
    assert done["gradients"]["x"]["data"] == [2, 4, 6]
    assert "d/dx f64 ()\n12." in tenon("eval", "x ** 3", "x=2.0", "--grad", "x").stdout
    refused("eval", "x", "x=1.0", "--grad", "z", status=2, saying="no value is named 'z'")
    refused("eval", "x", "x=1", "--grad", "x", saying="floating-point")
    refused("eval", "x, x", "x=1.0", "--grad", "x", status=2, saying="one result")


def gradients_are_part_of_expressions():
    assert values("y = sum((x @ w) ** 2); w - 0.125 * grad(y, w), grad(y, x)", "x=[[1.0, 2]]", "w=[3.0, 4]") == [
        [0.25, -1.5], [[66, 88]]]
    assert values("g = grad(x ** 3, x); h, k = grad(g * y, x, y); h, k", "x=2.0", "y=5.0") == [60, 12]
    for expression, saying in (("grad(x)", "got 1"), ("grad(1, x)", "this one is i64"),
                               ("grad(x * 1j, x)", "take real()"), ("grad(x, y=x)", "a name"),
                               ("grad(x, 'x')", "no array"), ("grad(print(x), x)", "has an effect")):
        refused("eval", expression, "x=2.0", saying=saying)


def what_is_printed_comes_in_order():
    done = tenon("eval", 'print(y, text="a b") + exp(print(x * 2, text="c"))', "x=[0.0, 0]", "y=[[1, 2]]")
    assert done.stderr.splitlines() == ["a b i64[1,2] 1 2", "c f64[2] 0 0"], done.stderr
    assert "2." in done.stdout
    done = tenon("eval", "sum(print(x))", "x=" + json.dumps([True] * 40))
    assert done.stderr == "bool[40]" + " 1" * 32 + " ...\n", done.stderr
    assert tenon("eval", "print(x)", "x=[]").stderr == "f64[0]\n"
    refused("eval", "sum(print(x))", "x=1.0", "--grad", "x", saying="base.print/1 has an effect (tn.output)")
    refused("eval", "print(x)", "x=[1.0]", "--vmap", "x", saying="has an effect")


def graphs_are_texts():
    def told(*words):
        return [r["data"] for r in json.loads(tenon("eval", "--json", *words).stdout)["results"]]
    branches = 'cond(p, x, then="y -> y * 2 + w", otherwise="y -> y - 1")'
    for taken, expected in [("true", [12, 14]), ("false", [0, 1])]:
        assert told(branches, f"p={taken}", "x=[1.0, 2]", "w=10.0") == [expected]
    assert told('while_loop(x, 0, cond="x, n -> x > 1", body="x, n -> x / 2, n + 1")', "x=100.0") == [0.78125, 7]
    scan = 'scan(c, x, body="c, x -> c + x, c * x", carries=1, slices=1)'
    assert told(scan, "c=1.0", "x=[1.0, 2, 3]") == [7, [1, 4, 12], [1, 2, 4]]
    done = json.loads(tenon("eval", "--json", 'while_loop(x, body="x -> x * x", times=2)', "x=2.0", "--grad", "x").stdout)
    assert done["results"][0]["data"] == 16 and done["gradients"]["x"]["data"] == 32
    for text, message in [('while_loop(x, body="x -> x, x", times=2)', "body has 2 outputs, but there are 1 values"),
                          ('while_loop(x, body="x -> [x, x]", times=2)', "expected f64 as carried value 0"),
                          ('while_loop(x, body="x -> x /", times=2)', "expected an operand"),
                          ('while_loop(x, body="x, y -> x", times=2)', "there are 1 arrays for the names"),
                          ('while_loop(x, body="x + 1", times=2)', 'a graph is a text such as "x -> x / 2"'),
                          ('while_loop(x, body=3, times=2)', "attribute 'body': got 3, expected a graph"),
                          ('while_loop(x, body="2 -> 2", times=2)', "expected names before '->'"),
                          ('while_loop(x, body="x -> z", times=2)', "unknown name 'z'"),
                          ('while_loop(x, body="x -> split([x, x], 2)[0] + sgd(x, x, x)", times=2)', "2 outputs")]:
        refused("eval", text, "x=2.0", saying=message)
    assert "the host calls it" in tenon("why", 'while_loop(x, body="x -> x * x", times=2)', "x=2.0").stdout
    assert "runs it between the steps" in tenon("op", "while_loop").stdout


def expressions_are_mapped():
    def told(*words):
        return json.loads(tenon("eval", "--json", *words).stdout)
    x = "x=[[1.0, 5], [7, 2]]"
    assert told("x @ w", x, "w=[1.0, 10]", "--vmap", "x")["results"][0]["data"] == [51, 27]
    done = told("max(x), 3", x, "--vmap", "x")
    assert [r["data"] for r in done["results"]] == [[5, 7], [3, 3]]
    done = told("max(x * x) + y", x, "y=[1.0, 2]", "--vmap", "x,y", "--grad", "x,y")
    assert done["results"][0]["data"] == [26, 51]
    assert done["gradients"]["x"]["data"] == [[0, 10], [14, 0]]
    assert done["gradients"]["y"]["data"] == [1, 1]
    refused("eval", "x", "x=1.0", "--vmap", "x", status=2, saying="x is a single number")
    refused("eval", "x", "x=[1.0]", "--vmap", "z", status=2, saying="no value is named 'z'")
    refused("eval", "x + y", "x=[1.0]", "y=[1.0, 2]", "--vmap", "x,y", saying="expected 1 as input 0")


def files_go_in_and_out():
    tenon("eval", "x * 2", F, "-o", "out.npy")
    assert values("y", "y=out.npy") == [[[3, 4, 6], [8, 10, 12]]]
    before = open("out.npy", "rb").read()
    refused("eval", "astype(x, bf16)", F, "-o", "out.npy", saying="cast")
    refused("eval", "x", F, "-o", "missing/out.npy", saying="missing/out.npy")
    refused("eval", "x, x", F, "-o", "out.npy", status=2, saying="got 2, results")
    refused("eval", "sum(x)", F, "-o", "out.npy", "--grad", "x", status=2, saying="got 2, results")
    assert open("out.npy", "rb").read() == before and os.listdir(".") == ["out.npy"]
    refused("eval", "y", "y=absent.npy", saying="absent.npy: No such file")
    refused("eval", "y", "y=absent/photo.png", saying="cannot read absent/photo.png: No such file")
    open("bad.npy", "wb").write(before[:-1])
    refused("eval", "y", "y=bad.npy", saying="truncated")
    open("text", "w").write("hello")
    refused("eval", "y", "y=text", saying="text: expected a name whose extension says the format")


def sizes_that_no_machine_has_are_refused():
    for text, says in [("I=broadcast_to(i,[576460752303423504]); J=broadcast_to(i+1,[576460752303423504]); "
                        "a=take(x,I); b=take(x,J); sum(a*b)", "bytes were asked for"),
                       ("I=broadcast_to(i,[576460752303423504]); J=broadcast_to(i+1,[576460752303423504]); "
                        "K=broadcast_to(i+2,[576460752303423504]); L=broadcast_to(i+3,[576460752303423504]); "
                        "a=take(x,I); b=take(x,J); c=take(x,K); d=take(x,L); sum(a*b*c*d)", "do not fit 64 bits"),
                       ("full([9223372036854775807], 1.0)", "does not fit 63 bits"),
                       ("pad(x, before=[9223372036854775807], after=[0])", "overflows"),
                       ("C=broadcast_to(x,[400000000000000000]); concatenate(C,C,C)", "does not fit 63 bits"),
                       ("reshape(x, [9223372036854775807, 3])", "do not fill"),
                       ("x[::-9223372036854775807] + full([2305843009213693951], 1)", "does not fit 63 bits"),
                       ("A=broadcast_to(x,[4294967296,1]); B=broadcast_to(x,[1,4294967296]); sum(A+B)", "does not fit 63 bits"),
                       ("A=broadcast_to(x,[4294967296,1]); B=broadcast_to(x,[1,4294967296]); sum(exp(A)*exp(B))", "does not fit")]:
        refused("eval", text, "x=[1.0]", "i=[0]", saying=says)


def tensors_of_safetensors_can_be_named():
    header = b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
    open("m.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    assert values("w * 2", "w=m.safetensors:w") == [[2, 4]]
    refused("eval", "w", "w=m.safetensors:v", saying="holds no array 'v'")


def all_that_is_computed_goes_into_safetensors():
    assert tenon("eval", "sum(x * y)", F, "y=2.0", "--grad", "x,y", "-o", "all.safetensors").stdout == ""
    assert values("r", "r=all.safetensors:result") == [43]
    assert values("g", "g=all.safetensors:grad.x") == [[[2, 2, 2], [2, 2, 2]]]
    assert values("g", "g=all.safetensors:grad.y") == [21.5]
    before = open("all.safetensors", "rb").read()
    refused("eval", "sum(x)", F, "--grad", "z", "-o", "all.safetensors", status=2, saying="named 'z'")
    assert open("all.safetensors", "rb").read() == before
    tenon("eval", "sgd(x, x, x, lr=1.0)", F, "-o", "all.safetensors")
    assert values("a, b", "a=all.safetensors:result.0", "b=all.safetensors:result.1")[1] == [[1.5, 2, 3], [4, 5, 6]]


def a_limit_on_file_sizes_leaves_the_old_file():
    import resource
    tenon("eval", "x", "x=1", "-o", "out.npy")
    before = open("out.npy", "rb").read()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    refused("eval", "full([10000], 1.0)", "-o", "out.npy", preexec_fn=limit, saying="unchanged")
    assert open("out.npy", "rb").read() == before and os.listdir(".") == ["out.npy"]


def printing_is_numpys():
    for text, expected in [
        ("[1.0, 2.5, 3]", "f64 (3,)\n[1.  2.5 3. ]"), ("[[1, 20], [300, 4]]", "i64 (2, 2)\n[[  1  20]\n [300   4]]"),
        ("[1e-5, 1e10]", "f64 (2,)\n[1.e-05 1.e+10]"), ("[nan, inf, -inf, 1.5]", "f64 (4,)\n[ nan  inf -inf  1.5]"),
        ("[true, false]", "bool (2,)\n[ true false]"), ("[]", "f64 (0,)\n[]"),
        ("astype(0.1, f32)", "f32 ()\n0.1"), ("arange(0, 2000)", "i64 (2000,)\n[   0    1    2 ... 1997 1998 1999]")]:
        assert tenon("eval", text).stdout == expected + "\n", (text, tenon("eval", text).stdout)


def numpy_agrees():
    if not numpy:
        return "NumPy is not installed"
    print("# seed 5")
    random = numpy.random.default_rng(5)
    x, y = random.normal(size=(4, 5)).astype("f4"), random.normal(size=(5, 3)).astype("f4")
    numpy.save("x.npy", x)
    numpy.save("y.npy", numpy.asfortranarray(y))
    numpy.save("b.npy", x.astype(">f8"))
    for text, expected in [("x @ y", x @ y), ("exp(x) + x ** 2", numpy.exp(x) + x**2), ("b[1:, ::-2]", x.astype("f8")[1:, ::-2]),
                           ("mean(x, axis=0)", x.mean(0)), ("transpose(y)", y.T), ("x > 0", x > 0),
                           ("argmax(x, axis=1)", x.argmax(1)), ("split(x, 2)[1]", numpy.split(x, 2)[1]),
                           ("split(x, indices=[1, 3], axis=1)[1]", numpy.split(x, [1, 3], 1)[1]),
                           ("a, b, c = split(x, 3, axis=1, uneven=true); concatenate(c, a, axis=1)",
                            numpy.concatenate([numpy.array_split(x, 3, 1)[i] for i in (2, 0)], 1)), ("concatenate(x, x, axis=1)", numpy.concatenate([x, x], 1))]:
        tenon("eval", text, "x=x.npy", "y=y.npy", "b=b.npy", "-o", "out.npy")
        got = numpy.load("out.npy")
        assert got.dtype == expected.dtype and got.shape == expected.shape, text
        assert numpy.allclose(got, expected, rtol=1e-5, atol=1e-6), text
    big = random.normal(size=(60, 70))
    numpy.save("x.npy", big)
    shown = tenon("eval", "x", "x=x.npy").stdout.split("\n", 1)[1]
    assert shown.rstrip() == numpy.array2string(big), shown


tap.run([numbers_and_signs, numbers_beside_integers, arrays_slices_and_operators, long_expressions_need_no_stack, dtypes_are_numpys,
         mistakes_are_shown_with_a_caret, gradients_are_printed,
         gradients_are_part_of_expressions, what_is_printed_comes_in_order, graphs_are_texts, expressions_are_mapped, files_go_in_and_out,
         tensors_of_safetensors_can_be_named, sizes_that_no_machine_has_are_refused, all_that_is_computed_goes_into_safetensors, a_limit_on_file_sizes_leaves_the_old_file, printing_is_numpys,
         numpy_agrees])
