# SPDX-License-Identifier: MIT
"""One of two processes: tenon.dist and mx.distributed of tenon.mlx. Prints "rank 0: right" when all was as it must.

    tenon run -n 2 python3 groups.py
"""
import math
import os
import signal
import threading
import time

import tenon as tn
from tenon.mlx import core

mx = core.core


def raises(kind, words, call):
    """The call fails with an exception of this kind that says these words."""
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")


def collectives(world):
    rank = world.rank
    x = tn.array([1.0, 2.0]) * (rank + 1)
    assert (world.name, world.size, "MPI" in world.library) == ("world", 2, True)
    cases = [(world.all_reduce(x), [3, 6]), (world.all_reduce(x, "mean"), [1.5, 3]), (world.all_reduce(x, "product"), [2, 8]),
             (world.all_gather(x), [1, 2, 2, 4]), (world.reduce_scatter(x), [[3], [6]][rank]), (world.broadcast(x, root=1), [2, 4]),
             (world.all_to_all(x), [[1, 2], [2, 4]][rank])]
    for number, (got, expected) in enumerate(cases):
        assert got.tolist() == expected, (number, got, expected)
    for count in (1, 3000):  # few elements travel with what members agree on
        z = tn.full([count], 1 + 2j, dtype="complex64") * (rank + 1)
        assert world.all_reduce(z).tolist() == [3 + 6j] * count
        assert world.all_reduce(z, "product").tolist() == [2 * (1 + 2j) ** 2] * count
        assert world.broadcast(tn.full([count], rank, dtype="int8"), root=1).tolist() == [1] * count
        assert world.all_gather(tn.full([count], rank, dtype="bool")).tolist() == [False] * count + [True] * count
    sent = world.send(x, to=1, tag=5) if rank == 0 else world.receive([2], "float32", source=0, tag=5)
    assert sent.tolist() == [1, 2]
    world.barrier()
    averages = world.average({"a": x, "b": [tn.array(float(rank)), tn.ones([2, 3]) * rank], "c": tn.array([rank, 2.0], dtype="float16")},
                             bucket_bytes=24)
    assert [averages["a"].tolist(), averages["b"][0].item(), averages["c"].tolist()] == [[1.5, 3], 0.5, [0.5, 2]], averages
    assert averages["b"][1].tolist() == [[0.5] * 3] * 2
    # The sum of all members' losses: each has the sum times its own x.
    gradient = tn.grad(lambda v: tn.sum(world.all_reduce(v) * x))(x)
    assert gradient.tolist() == [3, 6], gradient
    batch = tn.vmap(world.all_reduce)(tn.stack([x, x]))
    assert batch.tolist() == [[3, 6], [3, 6]], batch
    derivatives(world)
    rows = tn.vmap(lambda v: world.send(v, to=1))(tn.stack([x, 2 * x])) if rank == 0 else world.receive([2, 2], "float32", source=0)
    assert rows.tolist() == [[1, 2], [2, 4]], rows


def derivatives(world):
    """Those of reductions that are not linear, beside zeros and infinities, too; of all_reduce and a block of reduce_scatter."""
    rank, inf = world.rank, math.inf
    for reduction, members, expected in [("product", [[3, 0, 0, 2], [4, 5, 0, 0]], [[8, 10, 0, 0], [6, 0, 0, 4]]),
                                         ("maximum", [[3, 1, 5, 2], [4, 1, 2, inf]], [[0, 1, 2, 0], [2, 1, 0, 2]]),
                                         ("minimum", [[-inf, 1, 5, 2], [4, 1, 2, 3]], [[2, 1, 0, 2], [0, 1, 2, 0]])]:
        x, t = tn.array(members[rank], dtype="float32"), tn.array([1.0, 10.0, 100.0, 1000.0])
        slope = tn.grad(lambda v, r=reduction: tn.sum(world.all_reduce(v, r)))(x)
        assert slope.tolist() == expected[rank], (reduction, slope)
        slope = tn.grad(lambda v, r=reduction: tn.sum(world.reduce_scatter(v, r)))(x)
        assert slope.tolist() == [value / 2 for value in expected[rank]], (reduction, slope)
        totals = [(a + b) / 2 * 10**i for i, (a, b) in enumerate(zip(*expected))]
        assert tn.jvp(lambda v, r=reduction: world.all_reduce(v, r), [x], [t])[1].tolist() == totals, reduction
        tangent = tn.jvp(lambda v, r=reduction: world.reduce_scatter(v, r), [x], [t])[1]
        assert tangent.tolist() == totals[2 * rank:2 * rank + 2], (reduction, tangent)


def groups(world):
    reverse = world.split(0, key=-world.rank)
    assert (reverse.rank, reverse.size) == (1 - world.rank, 2)
    alone = world.split(world.rank)
    assert alone.all_reduce(tn.array(5)).item() == 5
    assert (world.split(-world.rank) is None) == (world.rank == 1)
    raises(ValueError, "of rank 1 all_reduce (sum) of 2 f32" if world.rank == 0 else "of rank 0 all_reduce (sum) of 1 f32",
           lambda: world.split(0).all_reduce(tn.ones(world.rank + 1)).tolist())
    late = world.split(0)
    late.set_deadline(0.2)
    if world.rank == 0:
        raises(OSError, "within the deadline of 200 ms", lambda: late.all_reduce(tn.ones(1)).tolist())
    else:
        time.sleep(0.5)
    ended = world.split(0)
    ended.abort("enough")
    raises(OSError, "the group was ended: enough", lambda: ended.all_reduce(tn.ones(1)).tolist())
    ended_while_it_waits(world)
    raises(LookupError, "no group has the name 'nobody'", lambda: tn.dist.Group("nobody"))
    assert world.all_reduce(tn.array(1)).item() == 2


def ended_while_it_waits(world):
    """A call that waits for a member who does not come is ended by another thread, which waits for nothing."""
    waiting = world.split(0)
    if world.rank == 0:
        thread = threading.Timer(0.2, waiting.abort, ["enough"])
        thread.start()
        raises(OSError, "the group was ended: enough", lambda: waiting.all_reduce(tn.ones(1)).tolist())
        thread.join()
    else:
        time.sleep(0.5)


def mlx():
    world = mx.distributed.init(strict=True, backend="mpi")
    rank = world.rank()
    assert world.size() == 2 and mx.distributed.is_available() and mx.distributed.init() is world
    x = mx.array([1.0, 2.0]) * (rank + 1)
    z = mx.array([1 + 2j, 3 - 1j]) * (rank + 1)
    cases = [(mx.distributed.all_sum(x), [3, 6]), (mx.distributed.all_max(x, group=world), [2, 4]), (mx.distributed.all_min(x), [1, 2]),
             (mx.distributed.all_max(z), [2 + 4j, 6 - 2j]), (mx.distributed.all_gather(x), [1, 2, 2, 4]),
             (mx.distributed.sum_scatter(x), [[3], [6]][rank]), (world.split(0, 1 - rank).rank(), 1 - rank),
             (mx.distributed.all_sum(x, group=world.split(rank)), x.tolist())]
    for number, (got, expected) in enumerate(cases):
        assert (got.tolist() if isinstance(got, mx.array) else got) == expected, (number, got, expected)
    got = mx.distributed.send(x, 1) if rank == 0 else mx.distributed.recv_like(x, 0)
    assert got.tolist() == [1, 2]
    # MLX's gradient of a sum over members is that of the own loss; of a gather, of the own part.
    for collective, expected in [(mx.distributed.all_sum, [1, 2]), (mx.distributed.all_gather, [[1, 2], [1, 2]][rank])]:
        weights = mx.array([1.0, 2.0] * (1 if collective is mx.distributed.all_sum else 2))
        slope = mx.grad(lambda v, f=collective, w=weights: (f(v) * w).sum())(x)
        assert slope.tolist() == expected, slope
    for backend in ("ring", "nccl", "jaccl"):
        raises(RuntimeError, f"Couldn't initialize distributed backend '{backend}': tenon.mlx has 'mpi' alone",
               lambda b=backend: mx.distributed.init(strict=True, backend=b))
        assert mx.distributed.init(backend=backend).size() == 1
    raises(ValueError, "Invalid rank=2 for a group of size=2", lambda: mx.distributed.send(x, 2))
    raises(ValueError, "The first dimension must be divisible", lambda: mx.distributed.sum_scatter(mx.ones(3)))


def lost(world):
    """A member that is killed is named, and the other goes on where MPI can."""
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raises(OSError, "rank 1 was ended by signal 9 (Killed)", lambda: world.all_reduce(tn.ones(1)).tolist())
    try:
        world.all_reduce(tn.ones(1)).tolist()
    except tn.dist.RankError as error:
        assert error.rank == 1, error
    if world.can_shrink:
        left = world.shrink()
        assert (left.rank, left.size, left.all_reduce(tn.array(7)).item()) == (0, 1, 7)
    else:
        raises(NotImplementedError, "cannot go on without a member", world.shrink)


def main():
    world = tn.dist.init()
    collectives(world)
    groups(world)
    mlx()
    lost(world)
    print("rank 0: right", flush=True)
    os._exit(0)


main()
