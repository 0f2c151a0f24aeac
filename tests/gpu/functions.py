# SPDX-License-Identifier: MIT
"""PyTorch on CUDA, the peer of functions.c: for each case, median microseconds of a call and its wait.

Chains are CUDA graphs; f32 products are f32 (no TF32).
"""

import sys
import time

import torch

CHAIN = 200
if not torch.cuda.is_available():
    sys.exit("no CUDA device")
torch.backends.cuda.matmul.allow_tf32 = False
device = torch.device("cuda")


def filled(*shape):
    return torch.full(shape, 1 / 1024, device=device)


def chain(rows, size):
    """A graph of CHAIN dependent products, rows x size by size x size; gives its replay."""
    y = filled(size, size)
    x = filled(rows, size)

    def body():
        out = x
        for _ in range(CHAIN):
            out = out @ y
        return out

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph.replay, CHAIN


def case(name):
    if name == "negative":
        x = filled(1 << 27)
        return lambda: -x, 1
    if name in ("add", "small"):
        x, y = (filled(1 << 27 if name == "add" else 1024) for _ in range(2))
        return lambda: x + y, 1
    if name.endswith(("softmax", "layer_norm")):
        size = 128 if name.startswith("short") else 2048
        x, w = filled(65536, size), filled(size)
        if name.endswith("softmax"):
            return lambda: torch.softmax(x, -1), 1
        return lambda: torch.nn.functional.layer_norm(x, (size,), w, w), 1
    if name.startswith("product"):
        _, m, k, n, dtype = name.split("_")
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
        x, y = filled(int(m), int(k)).to(dtype), filled(int(k), int(n)).to(dtype)
        return lambda: x @ y, 1
    if name.startswith("training"):
        dtype = torch.float32 if name.endswith("f32") else torch.float16
        q, k, v = (filled(1, heads, 4096, 128).to(dtype).requires_grad_() for heads in (32, 8, 8))

        def train():
            with torch.enable_grad():
                y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                torch.autograd.grad(y, (q, k, v), y.detach())
        return train, 1
    if name.startswith(("prefill", "decode")):
        dtype = torch.float32 if name.endswith("f32") else torch.float16
        is_prefill = name.startswith("prefill")
        batch = 32 if name == "decode_batch" else 1
        q = filled(batch, 32, 4096 if is_prefill else 1, 128).to(dtype)
        k = filled(batch, 8, 4096, 128).to(dtype)
        return lambda: torch.nn.functional.scaled_dot_product_attention(
            q, k, k, is_causal=is_prefill, enable_gqa=True), 1
    rows, size = {"chain64": (64, 64), "chain10": (10, 512), "chain1024": (64, 1024)}[name]
    return chain(rows, size)


print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}", flush=True)
with torch.no_grad():
    for line in sys.stdin:
        run, divide = case(line.strip())
        times = []
        for i in range(-5, 201):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            torch.cuda.synchronize()
            if i >= 0:
                times.append(time.perf_counter() - begin)
        times.sort()
        del run
        torch.cuda.empty_cache()
        print(times[len(times) // 2] * 1e6 / divide, flush=True)
