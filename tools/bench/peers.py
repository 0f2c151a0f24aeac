# SPDX-License-Identifier: MIT
"""PyTorch and MLX on the CPU for tenon-bench: reads "PEER WORK TIMES", prints seconds."""

import os
import sys
import time

THREADS = sys.argv[1]
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = THREADS
names, work = [], {}

try:
    import torch

    torch.set_num_threads(int(THREADS))
    names.append(f"torch {torch.__version__}")
    tx = torch.arange(256 * 512, dtype=torch.float32).reshape(256, 512) % 31 * 0.25
    ty = tx.clone()

    def torch_axpby(times):
        with torch.no_grad():
            for _ in range(times):
                4.0 * tx + 2.0 * ty

    work["torch axpby"] = torch_axpby
    rows = torch.rand(4096, 1024) * 2 - 1
    weight, bias = torch.rand(1024), torch.rand(1024)

    def torch_softmax(times):
        with torch.no_grad():
            for _ in range(times):
                torch.softmax(rows, -1)

    def torch_layer_norm(times):
        with torch.no_grad():
            for _ in range(times):
                torch.nn.functional.layer_norm(rows, (1024,), weight, bias)

    work["torch softmax"] = torch_softmax
    work["torch layer_norm"] = torch_layer_norm
except ImportError:
    pass

try:
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

print(", ".join(names) or "no peers", flush=True)
for line in sys.stdin:
    name, times = line.rsplit(" ", 1)
    begin = time.perf_counter()
    work[name](int(times))
    print(time.perf_counter() - begin, flush=True)
