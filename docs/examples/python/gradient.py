# SPDX-License-Identifier: MIT
"""A line through points, by gradient descent: a step that is traced once and replayed. Prints:

slope 2.000, offset -1.000, traced 1 time
"""

import tenon as tn

x = tn.linspace(0, 1, 20)
y = 2 * x - 1


def loss(line):
    return tn.mean((line["slope"] * x + line["offset"] - y) ** 2)


@tn.function
def step(line, rate):
    gradient = tn.grad(loss)(line)
    return tn.tree_map(lambda value, by: value - rate * by, line, gradient)


line = {"slope": tn.array(0.0), "offset": tn.array(0.0)}
for _ in range(600):
    line = step(line, 0.5)
print(f"slope {line['slope'].item():.3f}, offset {line['offset'].item():.3f}, traced {step.traces} time")
