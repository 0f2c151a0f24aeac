# SPDX-License-Identifier: MIT
"""Indices that hypothesis draws for an array of a shape."""

import numpy as np
from hypothesis import strategies as st


def index(draw, shape):
    """Numbers, slices, None, arrays of integers that broadcast, masks; in any order, around `...`."""
    together = draw(st.sampled_from([(), (2,), (3,), (2, 3), (0,)]))
    count = draw(st.integers(0, len(shape)))
    first = draw(st.integers(0, count))
    items = of_axes(draw, shape[:first], together)
    if draw(st.booleans()):
        items += [Ellipsis, *of_axes(draw, shape[len(shape) - count + first:], together)]
    else:
        items += of_axes(draw, shape[first:count], together)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


def of_axes(draw, shape, together):
    """Indices of all these axes."""
    items, axis = [], 0
    while axis < len(shape):
        extent = shape[axis]
        kind = draw(st.sampled_from(["number", "slice", "slice", "array", "mask"]))
        items += [None] * draw(st.sampled_from([0, 0, 0, 1]))
        if kind == "mask":
            axes = draw(st.integers(1, min(2, len(shape) - axis)))
            items.append(mask(draw, shape[axis:axis + axes], together))
            axis += axes
            continue
        if kind == "slice" or extent == 0:
            items.append(draw(st.slices(extent)))
        elif kind == "number":
            items.append(draw(st.integers(-extent, extent - 1)))
        else:
            items.append(positions(draw, extent, together))
        axis += 1
    return items


def positions(draw, extent, together):
    shape = draw(st.sampled_from([together, tuple(1 for _ in together), together[1:], ()]))
    count = int(np.prod(shape, dtype=int))
    values = draw(st.lists(st.integers(-extent, extent - 1), min_size=count, max_size=count))
    return np.array(values, draw(st.sampled_from(["int64", "int32", "uint8"] if min(values, default=0) >= 0 else
                                                 ["int64", "int32", "int8"]))).reshape(shape)


def mask(draw, shape, together):
    """Of as many elements as arrays beside it have, where there are so many."""
    count = int(np.prod(shape, dtype=int))
    wanted = together[-1] if together else draw(st.integers(0, count))
    chosen = draw(st.permutations(range(count)))[:wanted]
    result = np.zeros(count, bool)
    result[chosen] = True
    return result.reshape(shape)
