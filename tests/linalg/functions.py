# SPDX-License-Identifier: MIT
"""What pack linalg puts together: norms, powers, expm, pinv. Gradients beside differences, second ones, too;
where they are 0 by agreement; wrong arguments; batches. Values are those of tests/conformance."""

from linalg import CPU, DTYPES, EXACT, close, differences, np, numbers, positive, refused, run, tap

# What is differentiated, of x, a matrix, and the identity e.
SMOOTH = {
    "vector_norm 2": "linalg.vector_norm(x, axis=[-1])",
    "vector_norm 3": "linalg.vector_norm(x, axis=[-1], ord=3)",
    "vector_norm of a fraction": "linalg.vector_norm(x, axis=[-1], ord=0.5)",
    "vector_norm below 0": "linalg.vector_norm(x, axis=[-1], ord=-1)",
    "vector_norm inf": "linalg.vector_norm(x, axis=[-1], ord=inf)",
    "fro": "linalg.matrix_norm(x)",
    "nuc": "linalg.matrix_norm(x, nuc)",
    "spectral": "linalg.matrix_norm(x, '-2', keepdims=true)",
    "columns": "linalg.matrix_norm(x, '1')",
    "norm": "linalg.norm(x, 'inf', axis=[-2, -1])",
    "cond": "linalg.cond(x)",
    "cond fro": "linalg.cond(x, fro)",
    "matrix_power": "linalg.matrix_power(x, 5)",
    "matrix_power below 0": "linalg.matrix_power(x + 3 * e, -3)",
    "expm": "linalg.expm(x)",
    "expm of a large one": "linalg.expm(20 * x)/exp(30.0)",
    "pinv": "linalg.pinv(x)",
    "pinv of few rows": "linalg.pinv(x[..., :2, :])",
    "pinv of few columns": "linalg.pinv(x[..., :, :2])",
    "pinv of a lower rank": "linalg.pinv(x[..., :2] @ x[..., :2, :], rtol=0.0001)",
    "pinv of a Hermitian one": "linalg.pinv(x @ conjugate(x).mT + e, hermitian=true)",
}
SECOND = ["vector_norm 2", "expm", "pinv", "pinv of few rows", "matrix_power below 0"]


def loss_of(expression, rank):
    axes = {0: "", 1: "[-1]", 2: "[-2, -1]"}[rank]
    total = f"sum(l, axis={axes})" if axes else "l"
    return f"r = {expression}; l = real(r) * 0.7 + imag(r) + real(r) * real(r); {total}"


def rank_of(expression, x, given):
    return run(f"r = {expression}; r", x=x, **given)[0].ndim


def gradients_are_those_of_differences():
    for d in EXACT:
        given = {"e": np.eye(3, dtype=d)}
        x = numbers(d, 3, 3, seed=7)
        for name, expression in SMOOTH.items():
            text = loss_of(expression, rank_of(expression, x, given))

            def loss(batch, given, text=text):
                return run(text, x=batch, **given)[0]
            got, = run(text, grad="x", x=x, **given)
            want = differences(loss, x, given)
            assert np.abs(got - want).max() < 1e-6 * max(1, np.abs(want).max()), (
                f"gradient of {name} of {d}: {got}, by differences {want}")


def second_gradients_are_those_of_differences():
    for d in EXACT:
        given = {"e": np.eye(3, dtype=d), "y": numbers(d, 3, 3, seed=8)}
        x = numbers(d, 3, 3, seed=9)
        for name in SECOND:
            whole = loss_of(SMOOTH[name], 0).rsplit(";", 1)[0]
            text = f"{whole}; g = grad(sum(l), x); v = g * y; sum(real(v) - 0.3 * imag(v), axis=[-2, -1])"

            def loss(batch, given, text=text):
                return run(text, x=batch, **given)[0]
            got, = run(text, grad="x", x=x, **given)
            want = differences(loss, x, given)
            assert np.abs(got - want).max() < 1e-5 * max(1, np.abs(want).max()), (
                f"second gradient of {name} of {d}: {got}, by differences {want}")


def gradients_at_zero_are_zero():
    x = np.array([[0.0, 0, 0]])
    for norm in ([f"vector_norm(x, ord={o})" for o in ("0", "0.5", "1", "1.5", "2", "3", "inf", "-inf", "-1")]
                 + ["norm(x)", "matrix_norm(x)", "matrix_norm(x, '1')", "norm(x, 'inf')"]):
        text = f"sum(linalg.{norm})"
        got, = run(text, grad="x", x=x)
        assert np.array_equal(got, x), f"gradient of {norm}: {got}, expected zeros"
    got, = run("linalg.vector_norm(x)", grad="x", x=np.array([0, 3.0, 4]))
    assert np.allclose(got, [0, 0.6, 0.8], 1e-14, 0), got


def the_rank_is_counted():
    x = numbers("f8", 4, 5, seed=1)
    x[2] = x[0] + x[1]
    for text, want in [("x", 3), ("x, tol=100.0", 0), ("x, rtol=0.0", 4), ("x @ x.mT, hermitian=true", 3), ("x[:0]", 0)]:
        got, = run(f"linalg.matrix_rank({text})", x=x)
        assert got == want or (want == 4 and got == 3), f"matrix_rank({text}): {got}, expected {want}"
    a = positive("c16", 3, 4, 4)
    a[1] = 0
    got, = run("linalg.matrix_rank(a)", a=a)
    assert list(got) == [4, 0, 4], got


def matrices_are_squared_as_often_as_each_needs():
    a = np.stack([np.zeros((2, 2)), [[0.0, -90], [90, 0]], [[0.1, 0], [0, 0.2]]])
    got, = run("linalg.expm(a)", a=a)
    for i in range(3):
        alone, = run("linalg.expm(a)", a=a[i])
        assert np.array_equal(got[i], alone), f"matrix {i}: {got[i]}, alone {alone}"


def what_needs_factors_is_numpys():
    for d in DTYPES:
        x = numbers(d, 3, 4, 5, seed=2)
        for order in ("nuc", 2, -2):
            got, turned, one = run(f"linalg.matrix_norm(x, '{order}'), linalg.norm(x, '{order}', axis=[2, 0], keepdims=true), "
                                   f"linalg.norm(x[0], '{order}')", x=x)
            close(got, np.linalg.norm(x, order, (1, 2)), f"norm {order} of {d}")
            close(turned, np.linalg.norm(x, order, (2, 0), True), f"norm {order} along axes of {d}")
            close(one, np.linalg.norm(x[0], order), f"norm {order} of one {d}")
        a = numbers(d, 2, 4, 4, seed=3) + 3 * np.eye(4, dtype=d)
        for n in (-1, -2, -5):
            got, = run(f"linalg.matrix_power(a, {n})", a=a)
            close(got, np.linalg.matrix_power(a, n).astype(d), f"power {n} of {d}")
        nuc, = run("linalg.cond(a, nuc)", a=a)
        want = np.linalg.norm(a, "nuc", (1, 2)) * np.linalg.norm(np.linalg.inv(a), "nuc", (1, 2))
        close(nuc, want.astype(nuc.dtype), f"cond nuc of {d}")
    got, = run("linalg.matrix_power(a, -2)", a=np.array([[2, 0], [0, 4]], "i4"))
    close(got, np.diag([0.25, 0.0625]), "power -2 of i32")
    got, rank, none = run("linalg.pinv(a), linalg.matrix_rank(a), linalg.expm(a.mT @ a * 1.0)[:0]", a=np.zeros((2, 0, 3)))
    assert got.shape == (2, 3, 0) and list(rank) == [0, 0] and none.shape == (0, 3, 3), (got.shape, rank, none.shape)


REFUSED = [
    ("linalg.vector_norm(x, ord=nan)", "ord is nan, expected a number, inf or -inf"),
    ("linalg.vector_norm(x, axis=[2])", "axis 2 is out of range for rank 2"),
    ("linalg.matrix_norm(x, '3')", "ord is '3', expected of matrices 'fro', 'nuc', '1', '-1', '2'"),
    ("linalg.matrix_norm(x, froh)", "ord is 'froh', expected of matrices"),
    ("linalg.matrix_norm(x, ord=1)", "attribute 'ord': got 1, expected a text"),
    ("linalg.matrix_norm(x[0])", "x has shape [3], expected a matrix: at least 2 axes"),
    ("linalg.matrix_norm(x, axis=[1])", "got 1 axes, expected those of rows and columns"),
    ("linalg.matrix_norm(x, axis=[0, -2])", "axis -2 is given twice, expected rows and columns"),
    ("linalg.matrix_norm(x, axis=[0, 2])", "axis 2 is out of range for rank 2"),
    ("linalg.norm(x[0], fro)", "ord is 'fro', expected of vectors a number such as '3' or 'inf'"),
    ("linalg.norm(broadcast_to(x, [2, 2, 3]), '1')", "x has shape [2, 2, 3], expected a vector or a matrix"),
    ("linalg.norm(x, axis=[])", "got 0 axes, expected one, of vectors, or two, of matrices"),
    ("linalg.cond(x, '1')", "a has shape [2, 3], expected square matrices"),
    ("linalg.cond(x[:, :2], '4')", "p is '4', expected of matrices"),
    ("linalg.matrix_power(x, 2)", "a has shape [2, 3], expected square matrices"),
    ("linalg.matrix_power(x)", "attribute 'n' is missing, expected an integer"),
    ("linalg.expm(x)", "a has shape [2, 3], expected square matrices"),
    ("linalg.expm(astype(x, i32))", "input a is i32, expected one of f32, f64, complex64, complex128"),
    ("linalg.pinv(x[0])", "a has shape [3], expected a matrix: at least 2 axes"),
    ("linalg.pinv(x, rtol=-1)", "rtol is -1, expected at least 0"),
    ("linalg.pinv(x, hermitian=true)", "a has shape [2, 3], expected square matrices"),
    ("linalg.matrix_rank(x, tol=-0.5)", "tol is -0.5, expected at least 0"),
    ("linalg.matrix_rank(x, rtol=0.1, tol=0.1)", "got rtol and tol, expected one of them"),
]


def wrong_arguments_are_named():
    for expression, saying in REFUSED:
        refused("eval", expression, "x=[[1.0, 2, 3], [4, 5, 6]]", saying=saying, env=CPU)


def matrices_without_a_result_are_named():
    for expression, saying in [("linalg.matrix_power(x, -1)", "matrix 1 of 2 is singular"),
                               ("linalg.cond(x, '1')", "matrix 1 of 2 is singular"),
                               ("linalg.pinv(x / 0.0 * 0.0)", "matrix 0 of 2")]:
        refused("eval", expression, "x=[[[2.0, 1], [1, 2]], [[0.0, 0], [0, 0]]]", saying=saying, env=CPU)


if __name__ == "__main__":
    tap.run([wrong_arguments_are_named, matrices_without_a_result_are_named] + (
        [what_needs_factors_is_numpys, gradients_are_those_of_differences, second_gradients_are_those_of_differences, gradients_at_zero_are_zero,
         the_rank_is_counted, matrices_are_squared_as_often_as_each_needs] if np else []))
