# SPDX-License-Identifier: MIT
"""PyTorch and MLX for tenon-bench: peers.py THREADS [cpu|cuda].

A line of JSON is a request, a line of JSON the answer: {"do": "case", "expression", "inputs"} prepares an
expression, "run" calls it and waits "times" times and gives "seconds", "compare" takes elements of a result of
Tenon behind the line. "work" instead of "do" runs one of the fixed pieces of work below.
"""

import json
import math
import os
import sys
import time

THREADS = int(sys.argv[1])
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(THREADS)
names, work = [], {}
asked, answers = sys.stdin.buffer, sys.stdout

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
    from torch import nn
    from torch.nn import functional as F

    if DEVICE == "cuda" and not torch.cuda.is_available():
        raise ImportError
    torch.set_num_threads(THREADS)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device = torch.device(DEVICE)
    names.append(f"torch {torch.__version__}" +
                 (f" on {torch.cuda.get_device_name()}" if DEVICE == "cuda" else f", {THREADS} threads"))
except ImportError:
    torch = None

if torch:
    DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
              "i64": torch.int64, "u32": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
              "bool": torch.bool, "complex64": torch.complex64, "complex128": torch.complex128}
    # Differences over the greatest element: a few roundings of a sum, in the dtype of the result.
    ALLOWED = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 4e-2, "complex64": 1e-4, "complex128": 1e-10}

    # --- what expressions may call, beside torch and torch.nn.functional ------------------

    true, false = True, False

    def vjp(y, g, *xs):
        return torch.autograd.grad(y, xs, g)

    def grad(y, *xs):
        return torch.autograd.grad(y, xs)

    def nchw(x):
        return x.permute(0, 3, 1, 2)

    def nhwc(x):
        return x.permute(0, 2, 3, 1)

    def first(x):
        return x.movedim(-1, 1)

    def last(x):
        return x.movedim(1, -1)

    def conv2d(x, w, b=None, **attrs):
        return nhwc(F.conv2d(nchw(x), nchw(w), b, **attrs))

    def conv2d_grad(g, x, w, which, padding):
        """The gradient of images (which 0) or of filters (1) alone."""
        mask = [which == 0, which == 1, False]
        given = torch.ops.aten.convolution_backward(nchw(g), nchw(x), nchw(w), None, [1, 1], [padding] * 2,
                                                    [1, 1], False, [0, 0], 1, mask)
        return nhwc(given[which])

    def max_pool2d(x, window):
        return nhwc(F.max_pool2d(nchw(x), window))

    def group_norm(x, w, b, groups):
        return nhwc(F.group_norm(nchw(x), groups, w, b))

    def layer_norm(x, w, b):
        return F.layer_norm(x, w.shape, w, b)

    def rms_norm(x, w):
        return F.rms_norm(x, w.shape, w, 1e-5)

    def softmax(x):
        return torch.softmax(x, -1)

    def log_softmax(x):
        return torch.log_softmax(x, -1)

    def cross_entropy(x, t):
        return F.cross_entropy(x.flatten(0, -2), t.flatten(), reduction="none").reshape(t.shape)

    def scaled_dot_product_attention(q, k, v, is_causal):
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])

    def transpose(x, axes):
        return x.permute(axes)

    def concatenate(*xs, axis):
        return torch.cat(xs, axis)

    def stack(*xs, axis):
        return torch.stack(xs, axis)

    def take(x, i, axis):
        return F.embedding(i, x)

    def chain(x, w, times):
        for _ in range(times):
            for one in w:
                x = 0.86 * (x @ one)
        return x

    def by_numpy(function, *xs):
        """The result of a NumPy function, for operators that PyTorch lacks."""
        return torch.from_numpy(numpy.asarray(function(*(x.numpy() for x in xs))))

    def hadamard(x):
        n = x.shape[-1]
        for width in (1 << i for i in range(n.bit_length() - 1)):
            pairs = x.reshape(-1, n // (2 * width), 2, width)
            x = torch.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), 2)
        return x.reshape(-1, n) * n ** -0.5

    def adam(p, g, m, v):
        if "adam" not in state:
            state["adam"] = torch.optim.Adam([p], fused=True)
        p.grad = g
        state["adam"].step()
        return p

    # --- inputs, as case_array() makes them ------------------------------------------------

    def units_by_numpy(count, seed):
        out = numpy.empty(count, dtype=numpy.float32)
        for begin in range(0, count, 1 << 16):
            h = numpy.arange(begin, min(begin + (1 << 16), count), dtype=numpy.uint32)
            h *= numpy.uint32(0x9E3779B1)
            h ^= numpy.uint32(seed)
            h ^= h >> numpy.uint32(15)
            h *= numpy.uint32(0x85EBCA77)
            h ^= h >> numpy.uint32(13)
            out[begin:begin + len(h)] = (h >> numpy.uint32(8)).astype(numpy.float32)
        out *= numpy.float32(1 / (1 << 24))
        return torch.from_numpy(out)

    def units(count, seed):
        if numpy and DEVICE == "cpu":
            return units_by_numpy(count, seed)
        i = torch.arange(count, dtype=torch.int64, device=device)
        h = (i * 0x9E3779B1 & 0xFFFFFFFF) ^ seed
        del i
        h ^= h >> 15
        h *= 0x85EBCA77 - (1 << 32)  # the low half of the product is the same
        h &= 0xFFFFFFFF
        h ^= h >> 13
        return (h >> 8).to(torch.float32) / (1 << 24)

    def make_input(told, index):
        shape, dtype = told["shape"], DTYPES[told["dtype"]]
        u = units(math.prod(shape) * (2 if dtype.is_complex else 1), (index + 1) * 0x51ED270B & 0xFFFFFFFF)
        if told["below"]:
            u = (u * told["below"]).to(torch.int64)
        else:
            u = u.mul_(told["scale"]).add_(told["offset"])
        if dtype.is_complex:
            u = torch.view_as_complex(u.reshape(-1, 2))
        return u.to(dtype).reshape(shape)

    # --- requests ----------------------------------------------------------------------------

    state = {}

    def wait():
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def compile_case(text, names):
        """A function of "a = 1; a, b": its last expression is the result."""
        *first, last = text.split(";")
        lines = [f"def case({', '.join(names)}):"] + ["    " + line.strip() for line in (*first, "return " + last.strip())]
        scope = {**vars(F), **vars(torch), **OWN}
        exec("\n".join(lines), scope)
        return scope["case"]

    def flat(result):
        return [y for x in result for y in flat(x)] if isinstance(result, (tuple, list)) else [result]

    def call_case():
        with torch.set_grad_enabled(state["grad"]):
            return flat(state["call"](*state["inputs"]))

    def do_case(request):
        state.clear()
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        inputs = [make_input(told, i) for i, told in enumerate(request["inputs"])]
        text = request["expression"]
        state["grad"] = "grad(" in text or "vjp(" in text
        if state["grad"]:
            inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
        state["call"] = compile_case(text, [told["name"] for told in request["inputs"]])
        state["inputs"] = inputs
        state["results"] = call_case()
        wait()
        return {}

    def do_run(request):
        call, inputs = state["call"], state["inputs"]
        state.pop("results", None)
        with torch.set_grad_enabled(state["grad"]):
            if request["times"] > 1:
                call(*inputs)
            wait()
            begin = time.perf_counter()
            for _ in range(request["times"]):
                call(*inputs)
                wait()
            return {"seconds": time.perf_counter() - begin}

    def do_compare(request):
        dtype = DTYPES[request["dtype"]]
        count, stride = request["count"], request["stride"]
        data = bytearray(asked.read(-(-count // stride) * dtype.itemsize))
        got = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        if "results" not in state:
            state["results"] = call_case()
        theirs = state["results"][request["index"]].detach()
        if theirs.numel() != count:
            return {"error": f"{theirs.numel()} elements for {count}", "good": False}
        want = theirs.contiguous().reshape(-1)[::stride].cpu()
        wide = torch.complex128 if dtype.is_complex else torch.float64
        got, want = got.to(wide), want.to(wide)
        same = (got == want) | (got.isnan() & want.isnan())
        if bool(same.all()):
            return {"error": 0.0, "good": True}
        got, want = got[~same], want
        finite = want[want.abs() != math.inf].nan_to_num()
        most = float(finite.abs().max()) if finite.numel() else 0.0
        error = float((got - want[~same]).abs().max()) / max(most, 1e-30)
        allowed = request["allowed"] or ALLOWED.get(request["dtype"], 0)
        return {"error": error if math.isfinite(error) else 1e30, "good": error <= allowed}

    OWN = {name: value for name, value in globals().items() if not name.startswith("_")}
    DO = {"case": do_case, "run": do_run, "compare": do_compare}

    # --- fixed work --------------------------------------------------------------------------

    if DEVICE == "cpu":
        tx = torch.arange(256 * 512, dtype=torch.float32).reshape(256, 512) % 31 * 0.25
        ty = tx.clone()

        def torch_axpby(times):
            with torch.no_grad():
                for _ in range(times):
                    4.0 * tx + 2.0 * ty

        work["torch axpby"] = torch_axpby

try:
    if DEVICE != "cpu":
        raise ImportError
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    names.append(f"mlx {mx.__version__}")
    mxx = mx.arange(256 * 512).astype(mx.float32).reshape(256, 512) % 31 * 0.25
    mxy = mxx + 0
    mx.eval(mxx, mxy)

    def mlx_axpby(times):
        for _ in range(times):
            mx.eval(4.0 * mxx + 2.0 * mxy)

    work["mlx axpby"] = mlx_axpby
except ImportError:
    pass

print(", ".join(names) or "no peers", file=answers, flush=True)
for line in iter(asked.readline, b""):
    request = json.loads(line)
    try:
        if "work" in request:
            begin = time.perf_counter()
            work[request["work"]](request["times"])
            answer = {"seconds": time.perf_counter() - begin}
        else:
            answer = DO[request["do"]](request)
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(answer), file=answers, flush=True)
