# SPDX-License-Identifier: MIT
"""Trains two layers on parts of a batch, a rank each, by hand and by nn.TrainStep: losses are those of one process on the
whole.

    tenon run -n 4 python3 train.py
"""
import tenon as tn

STEPS, ROWS, RATE = 20, 24, 0.2


def numbers(rows, columns, seed):
    """The same numbers on each rank."""
    return tn.random.normal(tn.array([seed, 1], dtype=tn.uint32), shape=[rows, columns])


def loss(weights, x, y):
    first, second = weights
    return tn.mean((tn.tanh(x @ first) @ second - y) ** 2)


def main():
    world = tn.dist.init()
    rank, size = world.rank, world.size
    x, y = numbers(ROWS, 8, 1), numbers(ROWS, 2, 2)
    mine = slice(rank * ROWS // size, (rank + 1) * ROWS // size)
    weights = [numbers(8, 16, 3) * 0.3, numbers(16, 2, 4) * 0.3]
    step = tn.value_and_grad(loss)
    for _ in range(STEPS):
        value, gradients = step(weights, x[mine], y[mine])
        value = tn.dist.all_reduce(value, reduction="mean")
        gradients = [tn.dist.all_reduce(g, reduction="mean") for g in gradients]
        weights = [w - RATE * g for w, g in zip(weights, gradients)]
        tn.eval(value, *weights)
        if rank == 0:
            print(float(value), flush=True)
    tn.nn.init.seed(5)
    net = tn.nn.Sequential(tn.nn.Linear(8, 16), tn.nn.Tanh(), tn.nn.Linear(16, 2))
    step = tn.nn.TrainStep(net, tn.optim.SGD(RATE), lambda net, x, y: tn.mean((net(x) - y) ** 2), group=world)
    for _ in range(STEPS):
        value = float(step(x[mine], y[mine]))
        if rank == 0:
            print(value, flush=True)


main()
