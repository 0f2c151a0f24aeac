# SPDX-License-Identifier: MIT
"""Operators that move elements take every dtype, and give what they give of f64; those that add and multiply take
complex numbers. What is not in the first table is in NUMBERS or OTHERS, or takes no array."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import tap  # noqa: E402

X = "[[1.0, 2, 0, 3], [4, 5, 6, 7]]"
MOVES = """stack([x, x]) concatenate([x, x]) hstack(x, x) vstack(x, x) dstack(x, x) column_stack(x, x) split(x, 2, axis=1)[1]
unstack(x)[1] flip(x) rot90(x) roll(x, 2) repeat(x, 2) repeat(x, [1, 2], axis=0) tile(x, [2, 1])
pad(x, before=[1, 0], after=[0, 1]) pad(x, before=[1, 0], after=[0, 1], mode=reflect) pad(x, before=[1, 0], after=[0, 1], mode=edge)
pad_constant(x, before=[1, 0], after=[0, 1]) moveaxis(x, [0], [1]) swapaxes(x, 0, 1) matrix_transpose(x) flatten(x)
unflatten(x, 1, [2, -1]) atleast_1d(x) atleast_2d(x) atleast_3d(x) broadcast_arrays(x, x[:1])[1] delete(x, [0], axis=1)
insert(x, x, [1, 1, 0, 0], axis=1) resize(x, [11]) zeros_like(x) ones_like(x) empty_like(x) full_like(x, 2) meshgrid(x[0], x[1])[1]
as_strided(x, [2, 2], [1, 1]) tril(x) triu(x) diag(x[0]) diag(x) diagonal(x) diagflat(x) take(x, [0, 1], axis=1)
take_along_axis(x, [[0, 1], [1, 0]], axis=1) put_along_axis(x, [[0, 1], [1, 0]], x[:, :2], axis=1) gather(x, [0, 1], [1, 0])
scatter(x, x[0, :2], [0, 1], [1, 0]) scatter_set(x, [0], x[1:]) choose([0, 1, 0, 1], x[0], x[1])
select([true, false, true, false], x[0]) boolean_mask(x, [true, false], size=2)[0] where(x != 0, x, x[1:]) slice(x, start=[1]) copy(x)
broadcast_to(x, [2, 2, 4]) expand_dims(x, [0]) squeeze(x[:1]) reshape(x, [8]) transpose(x) dynamic_slice(x, [0, 1], [1, 2])
slice_update(x, x[:1], start=[1], stop=[2]) dynamic_slice_update(x, x[:1], [1, 0]) stop_gradient(x) trim_zeros(x[0], size=4)[0]
astype(x, f32) equal(x, x) not_equal(x, x) array_equal(x, x)"""
NUMBERS = """sum(x) prod(x) mean(x) all(x) any(x) var(x) std(x) count_nonzero(x) cumsum(x) cumprod(x) nansum(x) nanprod(x) nanmean(x)
nanvar(x) nanstd(x) nancumsum(x) nancumprod(x) cumulative_sum(x, 1) cumulative_prod(x, 1) diff(x) ediff1d(x) gradient(x, axis=[0])
average(x) einsum('ij,kj->ik', x, x) tensordot(x, transpose(x), 1) dot(x, transpose(x)) inner(x, x) outer(x, x) vecdot(x, x)
vdot(x, x) matvec(x, x[0]) vecmat(x[:, 0], x) kron(x, x) cross(x[:, :3], x[:, :3]) addmm(x[:, :2], x, transpose(x)) trace(x)
convolve(x[0], x[1]) correlate(x[0], x[1]) scatter_add(x, [0], x[:1]) scatter(x, x[0, :2], [0, 1], [1, 0], mode=add)
put_along_axis(x, [[0], [1]], x[:, :1], axis=1, mode=add) sigmoid(x) round(x) isclose(x, x) allclose(x, x) nan_to_num(x) isinf(x)
isnan(x) isfinite(x) iscomplex(x) isreal(x) square(x) negative(x) abs(x) sqrt(x) exp(x) expm1(x) log1p(x) sin(x) cos(x) tan(x)
arctan(x) sinh(x) cosh(x) tanh(x) arcsinh(x) sinc(x) add(x, x) subtract(x, x) multiply(x, x) logical_and(x, x) logical_or(x, x)
logical_xor(x, x) logical_not(x) positive(x) real(x) imag(x) conjugate(x) angle(x) vander(x[0]) cov(x) sum_to(x, [1, 4])
matmul(x, transpose(x)) reciprocal(x + 1) rsqrt(x + 1) exp2(x) log(x + 1) log2(x + 1) log10(x + 1) arcsin(x / 9) arccos(x / 9)
arccosh(x + 1) arctanh(x / 9) power(x + 1, x) divide(x, x + 1) nonzero(x, size=9)[0] argwhere(x, size=9)[0] degrees(x) radians(x)
sign(x) unique_all(x, size=9)[1] unique_counts(x, size=9)[1] unique_inverse(x, size=9)[1] unique_values(x, size=9)[0]"""
# What needs an order, bits, whole numbers or a lattice: of complex numbers nothing.
OTHERS = """floor ceil trunc cbrt erf erfinv invert isposinf isneginf bitwise_count floor_divide remainder maximum minimum arctan2
fmax fmin heaviside logaddexp logaddexp2 hypot bitwise_and bitwise_or bitwise_xor left_shift right_shift less less_equal greater
greater_equal clip print divmod gamma lgamma digamma trigamma i0e i1e i0 view max min minmax ptp logsumexp argmax argmin cummax
cummin logcumsumexp sort argsort topk partition argpartition lexsort searchsorted digitize isin bincount histogram histogram2d
histogramdd interp intersect1d setdiff1d setxor1d median quantile percentile
nanmedian nanquantile nanpercentile nanmax nanmin nanargmax nanargmin signbit copysign nextafter fmod modf frexp ldexp gcd lcm
packbits unpackbits hadamard_transform unwrap scatter_max scatter_min corrcoef one_hot ravel_multi_index unravel_index
diag_indices_from tril_indices_from triu_indices_from random_bits random_uniform random_normal cond while_loop scan checkpoint
arange full eye linspace zeros ones empty tri hanning hamming blackman bartlett kaiser indices diag_indices tril_indices triu_indices
logspace geomspace""".split()
BACKEND = sys.argv[3]
NAME = re.compile(r"\bx\b")


def calls_of(table):
    """Its calls, between which there is space outside of brackets."""
    calls, depth = [""], 0
    for c in table + " ":
        depth += (c in "([") - (c in ")]")
        if not c.isspace() or depth:
            calls[-1] += c
        elif calls[-1]:
            calls.append("")
    return calls[:-1]


def compare(calls, dtype, tolerance):
    """Each call of numbers that `dtype` holds is what it is of f64."""
    terms = [f"allclose(astype({NAME.sub('y', c)}, f64), astype({c}, f64), rtol={tolerance}, atol={tolerance})"
             for c in calls]
    for i in range(0, len(terms), 40):
        out = tap.tenon("eval", f"y = astype(x, {dtype}); " + ", ".join(terms[i:i + 40]), f"x={X}",
                        env={"TENON_BACKEND": BACKEND}).stdout
        wrong = [c for c, line in zip(calls[i:], out.splitlines()[1::2]) if line != "true"]
        assert not wrong, f"{dtype}: differs from f64: " + "; ".join(wrong)


def what_moves_elements_takes_every_dtype():
    if BACKEND != "cpu-blas":  # whose kernels move bytes alike
        return compare(calls_of(MOVES), "f8_e4m3", 0)
    for dtype in ("f8_e4m3", "f8_e5m2", "bf16", "u8", "complex64", "complex128"):
        compare(calls_of(MOVES), dtype, 0)


def what_adds_and_multiplies_takes_complex_numbers():
    for dtype in ("complex64", "complex128"):
        compare(calls_of(NUMBERS), dtype, 1e-4 if dtype == "complex64" else 1e-12)


def every_operator_is_in_a_table():
    named = {c.split("(")[0] for c in calls_of(MOVES) + calls_of(NUMBERS)} | set(OTHERS)
    ours = {i.split(".")[1] for i in tap.tenon("ops").stdout.split() if i.startswith("base.")}
    ours = {i.split("/")[0] for i in ours}
    assert ours == named, f"in no table: {sorted(ours - named)}; no operators: {sorted(named - ours)}"


if __name__ == "__main__":
    tap.run([what_moves_elements_takes_every_dtype] + ([] if BACKEND != "cpu-blas" else [
        what_adds_and_multiplies_takes_complex_numbers, every_operator_is_in_a_table]))
