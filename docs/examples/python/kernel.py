# SPDX-License-Identifier: MIT
"""A primitive of one's own on a GPU: heat that spreads in a plate, a kernel in GLSL with its derivative. Run it with
TENON_BACKEND=vulkan-jit or vulkan; elsewhere `reference` computes the same. Prints:

sum 1.000, peak 0.0748
gradient of the peak: 0.0748 at the middle, 0.0000 at a corner
"""

import tenon as tn


def spread(plate):
    """What the kernel computes, with operators: each cell becomes the mean of its four neighbours."""
    return (tn.roll(plate, 1, 0) + tn.roll(plate, -1, 0) + tn.roll(plate, 1, 1) + tn.roll(plate, -1, 1)) / 4


heat = tn.vulkan_kernel(
    "example.heat",
    """
    const uint rows = x_shape[0], columns = x_shape[1];
    const uint i = gl_GlobalInvocationID.y, k = gl_GlobalInvocationID.x;
    const uint up = (i + rows - 1) % rows, down = (i + 1) % rows;
    const uint left = (k + columns - 1) % columns, right = (k + 1) % columns;
    y[i * columns + k] = (x[up * columns + k] + x[down * columns + k] + x[i * columns + left] + x[i * columns + right]) / 4;
    """,
    grid=lambda x: (x.shape[1], x.shape[0]), threads=(16, 16), reference=spread,
    vjp=lambda plate, cotangent, result: heat(cotangent))  # the mean of neighbours is its own transpose


def peak(plate, steps=8):
    for _ in range(steps):
        plate = heat(plate)
    return tn.max(plate), plate


plate = tn.zeros((32, 32))
plate[16, 16] = 1.0
value, after = peak(plate)
slope = tn.grad(lambda plate: peak(plate)[1][16, 16])(plate)
print(f"sum {tn.sum(after).item():.3f}, peak {value.item():.4f}")
print(f"gradient of the peak: {slope[16, 16].item():.4f} at the middle, {slope[0, 0].item():.4f} at a corner")
