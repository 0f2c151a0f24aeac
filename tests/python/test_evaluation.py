# SPDX-License-Identifier: MIT
"""When and where arrays are computed: what is held, in place, beside threads, signals, fork, at the end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import tenon as tn


def counted(step, times):
    """What `times` calls of step add to the counters of plans and of bytes written, and their times."""
    before, times_of = tn.stats(), []
    for i in range(times):
        begin = time.perf_counter()
        step(i)
        times_of.append(time.perf_counter() - begin)
    after = tn.stats()
    return {name: after[name] - before[name] for name in ("plans_made", "bytes_written", "buffer_bytes", "transfers")}, times_of


READERS = {"eval": tn.eval, "float": float, "async": lambda y: (tn.async_eval(y), tn.eval(y)), "if": bool}


@pytest.mark.parametrize("reader", READERS)
def test_a_step_computes_what_is_held(reader):
    caches = [tn.zeros([64]) + float(i) for i in range(60)]
    total = tn.array(0.0)
    tn.eval(caches, total)

    def step(_):
        nonlocal total
        for i, cache in enumerate(caches):
            caches[i] = cache * 0.5 + 1.0
        total = total + caches[-1][0]
        READERS[reader](total)

    counted(step, 10)
    many = 200 if reader != "eval" else 1000
    counts, times = counted(step, many // 5 if "TEST_SANITIZER" in os.environ else many)
    assert counts["plans_made"] == 0
    assert counts["buffer_bytes"] < 60 * 64 * 4  # in the memory of the step before
    assert counts["bytes_written"] / len(times) == 60 * 64 * 4 + 2 * 4 or counts["bytes_written"] / len(times) < 61 * 64 * 4 + 64
    half = len(times) // 2
    assert sorted(times[half:])[half // 2] < 3 * sorted(times[:half])[half // 2]  # constant time
    for i, cache in enumerate(caches):
        assert abs(cache[0].item() - 2.0) < 1e-3


N = 50000


def update(x, i):
    x[i % N] = 1.0


def add_slice(x, i):
    x[i % 100 : i % 100 + 10] += 1.0


def add(x, i):
    x += 1.0


IN_PLACE = [(update, 8), (add_slice, 84), (add, 4 * N)]  # a number is four bytes, too


@pytest.mark.parametrize("call,most", IN_PLACE, ids=["item", "slice", "all"])
def test_updates_in_a_loop_copy_nothing(call, most):
    x = tn.zeros([N])
    tn.eval(x)

    def step(i):
        call(x, i)
        tn.eval(x)

    counted(step, 5)
    counts, _ = counted(step, 50)
    assert counts["bytes_written"] <= 50 * most
    assert counts["buffer_bytes"] == 0


def test_an_update_leaves_others_what_they_hold():
    x = tn.zeros([4])
    y = x + 0.0
    other, part, lazy = tn.array(x), x[1:3], x * 2.0
    memory = memoryview(x)
    for i in range(4):
        x[i] = float(i)
        x += 1.0
        tn.eval(x)
    assert x.tolist() == [4, 4, 4, 4]
    assert [v.tolist() for v in (y, other, part, lazy, memory)] == [[0] * 4, [0] * 4, [0] * 2, [0] * 4, [0] * 4]


IN_PLACE_OPERATORS = [
    ("+=", [1.0, 2.0], 2.0, [3, 4]), ("-=", [1.0, 2.0], 2.0, [-1, 0]), ("*=", [1.0, 2.0], 2.0, [2, 4]),
    ("/=", [1.0, 2.0], 2.0, [0.5, 1]), ("//=", [5.0, 7.0], 2.0, [2, 3]), ("%=", [5.0, 8.0], 3.0, [2, 2]),
    ("**=", [2.0, 3.0], 2.0, [4, 9]), ("&=", [3, 6], 2, [2, 2]), ("|=", [3, 4], 1, [3, 5]), ("^=", [3, 4], 1, [2, 5]),
    ("<<=", [1, 2], 2, [4, 8]), (">>=", [4, 8], 2, [1, 2]),
    ("@=", [[1.0, 2.0], [3.0, 4.0]], tn.array([[0.0, 1.0], [1.0, 0.0]]), [[2, 1], [4, 3]]),
    ("+=", [1, 2], tn.array([1, 2], dtype="int16"), [2, 4]),
]


@pytest.mark.parametrize("text,x,y,expected", IN_PLACE_OPERATORS)
def test_in_place_operators(text, x, y, expected):
    x = tn.array(x)
    other, dtype = x, x.dtype
    scope = {"x": x, "y": y}
    exec(f"x {text} y", scope)
    assert scope["x"] is other and other.tolist() == expected and other.dtype == dtype


IN_PLACE_ERRORS = [(tn.zeros([2]), tn.zeros([3, 2]), ValueError, "another shape"),
                   (tn.zeros([2], dtype="int32"), 0.5, TypeError, "int32 cannot take|i32 cannot take"),
                   (tn.zeros([2]), "text", TypeError, "unsupported operand"), (tn.zeros([2]), None, TypeError, "unsupported")]


@pytest.mark.parametrize("x,y,kind,says", IN_PLACE_ERRORS, ids=range(len(IN_PLACE_ERRORS)))
def test_in_place_errors(x, y, kind, says):
    before = x.tolist()
    with pytest.raises(kind, match=says):
        x += y
    assert x.tolist() == before


def test_a_body_changes_nothing_outside():
    x = tn.zeros([2])

    def body(y):
        x[0] = y[0]
        return y

    with pytest.raises(ValueError, match="body of a function changes an array"):
        tn.function(body)(x + 1.0)
    assert x.tolist() == [0, 0]


def test_derivatives_are_by_the_arguments():
    def f(x):
        x *= 3.0
        x[0] = 0.0
        return tn.sum(x * x)

    x = tn.array([1.0, 2.0])
    assert tn.grad(f)(x).tolist() == [0, 36] and x.tolist() == [1, 2]
    value, pull = tn.vjp(f, x)
    assert (value.item(), pull(tn.array(1.0))[0].tolist()) == (36, [0, 36])
    assert [v.item() for v in tn.jvp(f, [x], [x])] == [36, 72]


def test_a_derivative_outlives_what_is_read():
    x = tn.array([2.0, 3.0])
    value, pull = tn.vjp(lambda x: tn.sum(x * x * x), x)
    tn.eval(value)
    other = value + 1.0
    assert (other.item(), pull(tn.array(1.0))[0].tolist()) == (36, [12, 27])


# --- functions -------------------------------------------------------------------------------------------------


def test_a_function_within_a_derivative():
    f = tn.function(lambda x: x * x)
    x = tn.array([3.0, 4.0])
    f(x)
    assert tn.grad(lambda x: tn.sum(f(x)))(x).tolist() == [6, 8]
    assert tn.jvp(lambda x: tn.sum(f(x)), [x], [x])[1].item() == 50
    assert tn.vmap(f)(x).tolist() == [9, 16]
    assert tn.grad(lambda x: tn.sum(tn.grad(lambda x: tn.sum(f(x) * x))(x)))(x).tolist() == [18, 24]


SIGNATURES = [
    (lambda: [(1.0,), (2.0,)], 1), (lambda: [(True,), (False,), (True,)], 2), (lambda: [("a",), ("b",), ("a",)], 2),
    (lambda: [({"a": 1.0, "b": 2.0},), ({"b": 1.0, "a": 2.0},)], 1), (lambda: [({"a": 1.0},), ({"b": 1.0},)], 2),
    (lambda: [([1.0],), ((1.0,),)], 2), (lambda: [([1.0, None],), ([1.0],), (None,)], 3),
    (lambda: [(tn.zeros([2]),), (tn.zeros([3]),), (tn.zeros([2]),), (tn.zeros([1, 2]),)], 3),
    (lambda: [(tn.zeros([2]),), (tn.zeros([2], dtype="int32"),)], 2),
    (lambda: [([[1.0] * 300],), ([[2.0] * 300],), ([[2.0] * 299],)], 2), (lambda: [("x", i % 100) for i in range(200)], 1),
    (lambda: [(f"{i % 100}",) for i in range(200)], 100),
]


@pytest.mark.parametrize("calls,traces", SIGNATURES, ids=range(len(SIGNATURES)))
def test_signatures(calls, traces):
    f = tn.function(lambda *args, **named: tn.zeros([1]))
    for args in calls():
        f(*args)
    assert f.traces == traces
    g = tn.function(lambda **named: named["x"])
    assert [g(x=1.0).item(), g(x=2.0).item(), g.traces] == [1, 2, 1]


def test_static_values_are_told_apart():
    f = tn.function(lambda x, s: x * (1.0 / s if s else tn.copysign(tn.array(1.0), s)), static=1)
    x = tn.array(2.0)
    assert [f(x, s).item() for s in (0.0, -0.0, 2.0, 2, True)] == [2, -2, 1, 1, 2] and f.traces == 5
    g = tn.function(lambda n: tn.zeros([n]), static=[0])
    assert [g(2).shape, g(3).shape, g(2).shape, g.traces] == [(2,), (3,), (2,), 2]


def test_results_have_their_structure():
    import collections

    Pair = collections.namedtuple("Pair", "a b")
    f = tn.function(lambda x, t: {"p": Pair(x, [x + 1.0, None]), "t": t, "none": None, "e": ()})
    for value in (1.0, 2.0):
        r = f(tn.array(value), (tn.array(5.0), {"k": 6.0}))
        assert type(r["p"]) is Pair and r["none"] is None and r["e"] == () and type(r["p"].b) is list
        assert [r["p"].a.item(), r["p"].b[0].item(), r["t"][0].item(), r["t"][1]["k"].item()] == [value, value + 1, 5, 6]


def test_many_arguments_and_results():
    f = tn.function(lambda xs: [x + 1.0 for x in xs])
    xs = [tn.array(float(i)) for i in range(100)]
    for _ in range(3):
        assert [y.item() for y in f(xs)] == [i + 1 for i in range(100)]
    assert f.traces == 1


FUNCTION_ERRORS = [(lambda: tn.function(lambda x: x)(object.__new__(type("C", (), {"__hash__": None}))), TypeError, "can it be hashed"),
                   (lambda: tn.function(lambda x: x)({1: 1.0, "a": 2.0}), TypeError, "cannot be sorted"),
                   (lambda: tn.function(lambda x: x, donate="x"), TypeError, "numbers of positional"),
                   (lambda: tn.function(lambda x: x, static=-1), TypeError, "numbers of positional"),
                   (lambda: tn.function(lambda x: x / "text")(1.0), TypeError, "unsupported"),
                   (lambda: tn.tree_unflatten(tn.tree_flatten([1, 2])[1], [1]), ValueError, "more leaves than 1"),
                   (lambda: tn.tree_unflatten(3, [1]), TypeError, "no structure")]


@pytest.mark.parametrize("call,kind,says", FUNCTION_ERRORS, ids=range(len(FUNCTION_ERRORS)))
def test_function_errors(call, kind, says):
    with pytest.raises(kind, match=says):
        call()


def test_deep_trees_are_an_error():
    tree = 1.0
    for _ in range(100000):
        tree = [tree]
    for call in (tn.tree_flatten, tn.function(lambda x: x), tn.eval):
        with pytest.raises(RecursionError):
            call(tree)
    while isinstance(tree, list):  # CPython frees deeper ones with recursion of its own
        tree = tree.pop()


def test_donated_arguments():
    f = tn.function(lambda x, y: x + y, donate=0)
    x, y = tn.zeros([1000]), tn.ones([1000])
    tn.eval(x, y)
    x = f(x, y)
    before = tn.stats()["buffer_bytes"]
    for _ in range(20):
        old, x = x, f(x, y)
    assert tn.stats()["buffer_bytes"] <= before and x[0].item() == 21
    with pytest.raises(ValueError, match="donated"):
        old.tolist()


# --- threads, signals, processes ---------------------------------------------------------------------------------


def test_other_threads_run_while_one_computes():
    # One product of 1000 x 1000 after the other, each of what the one before gave.
    x = tn.full([1000, 1000], 1e-3)
    tn.eval(x)
    y = x
    for _ in range(30):
        y = y @ x
    count, done = 0, threading.Event()

    def work():
        tn.eval(y)
        y.tolist()
        done.set()

    thread = threading.Thread(target=work)
    begin = time.perf_counter()
    thread.start()
    while not done.is_set():
        count += 1
        time.sleep(0.001)
    thread.join()
    assert count > min(20, (time.perf_counter() - begin) * 100)


def test_a_value_stays_while_it_is_used():
    x = tn.full([300, 300], 0.01)
    tn.eval(x)
    y, stop = x @ x, threading.Event()

    def work():
        while not stop.is_set():
            y[0, 0] = 1.0

    thread = threading.Thread(target=work)
    thread.start()
    f = tn.function(lambda a: a + a)
    for _ in range(20):
        tn.eval(y)
        f(y)
        y.tolist()
    stop.set()
    thread.join()
    assert y[0, 0].item() == 1


def run(text, timeout=60, env=None):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=timeout,
                          env=env or dict(os.environ))


LONG = {
    "eval": "tn.eval(work())", "item": "float(work()[0, 0])", "function": "tn.function(lambda: work())()",
    "loop": "tn.eval(tn.while_loop(None, lambda x: tn.sin(x), X[0], times=10**7))",
    "suddenly": "f = tn.function(lambda n: tn.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] @ X), (tn.array(0), X))); "
                "[f(tn.array(0)) for _ in range(3)]; f(tn.array(600))",
    "read": "y = work(12); tn.async_eval(y); y.tolist()",
    "derivative": "tn.grad(lambda x: (lambda y: y * float(y))(tn.sum(work() * x)))(X)",
}


@pytest.mark.parametrize("what", LONG)
def test_a_signal_interrupts_waiting(what):
    done = run(f"""
        import os, signal, sys, threading, time
        import tenon as tn
        X = tn.full([1500, 1500], 1e-3)
        tn.eval(X)
        def work(times=600):
            y = X
            for _ in range(times):
                y = y @ X
            return y
        begin = []
        def interrupt():
            time.sleep(0.3)
            begin.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {LONG[what]}
            print("not interrupted")
        except KeyboardInterrupt:
            print("late" if time.perf_counter() - begin[0] > 0.5 else "interrupted")
        x = tn.array([1.0, 2.0])
        print((x + x).tolist(), float(tn.sum(tn.full([600, 600], 1.0) @ tn.full([600, 600], 1.0))))
        sys.stdout.flush()
        os._exit(0)  # what was left goes on
    """)
    assert (done.stdout, done.stderr) == ("interrupted\n[2.0, 4.0] 216000000.0\n", "")


def test_the_end_waits_for_what_was_left():
    done = run("""
        import os, signal, threading, time
        import tenon as tn
        X = tn.full([1000, 1000], 1e-3)
        y = X
        for _ in range(15):
            y = y @ X
        threading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGINT))).start()
        try:
            tn.eval(y)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_fork_ends_in_a_sentence_and_spawn_works(tmp_path):
    path = tmp_path / "workers.py"
    path.write_text(textwrap.dedent("""
        import multiprocessing, sys
        import tenon as tn
        X = tn.array([1.0, 2.0])

        def work(_):
            try:
                return (tn.sum(X) * 2.0).item()
            except Exception as error:
                return f"{type(error).__name__}: {error}"

        if __name__ == "__main__":
            X.tolist()
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                print(*set(pool.map(work, range(4))))
            print((X + X).tolist())
    """))
    results = [subprocess.run([sys.executable, path, how], capture_output=True, text=True, timeout=60)
               for how in ("fork", "spawn")]
    assert [r.stderr for r in results] == ["", ""]
    assert "fork" in results[0].stdout.splitlines()[0] and "spawn" in results[0].stdout.splitlines()[0]
    assert results[0].stdout.splitlines()[1] == "[2.0, 4.0]"
    assert results[1].stdout == "6.0\n[2.0, 4.0]\n"


ENDS = {
    "lazy": "y = x + x", "in flight": "y = x @ x; tn.async_eval(y)", "exported": "m = memoryview(x @ x)",
    "cycle": "c = []; c.append(c); c.append(x @ x); f = tn.function(lambda a: (f, a)[1]); f(x)",
    "function": "f = tn.function(lambda a: a @ x); y = f(x)", "raised": "1 / 0", "thread": "import threading\nt = threading.Thread("
    "target=lambda: [tn.eval(x @ x) for _ in range(20)]); t.start()",
    "daemon": "import threading\nt = threading.Thread(target=lambda: [tn.eval(x @ x) for _ in range(10**6)], daemon=True); t.start()",
    "global": "import builtins; builtins.kept = x + x; tn.eval(builtins.kept)", "pull": "v, p = tn.vjp(lambda a: tn.sum(a @ a), x); tn.eval(v)",
    }


@pytest.mark.parametrize("how", ENDS)
def test_the_process_ends(how):
    done = run("import tenon as tn\nx = tn.full([100, 100], 0.01)\ntn.eval(x)\n" + ENDS[how].replace("", ""))
    assert done.returncode == (1 if how == "raised" else 0), (done.returncode, done.stderr)
    assert "Fatal" not in done.stderr and (how == "raised" or done.stderr == "")
