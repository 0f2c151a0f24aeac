# SPDX-License-Identifier: MIT
"""Plots of curves as SVG, which browsers and notebooks show."""

import html
import math

import tenon as tn

_COLOURS = ("#1f6fb4", "#d9541e", "#2e8b57", "#8a4fbf", "#7a6a3a")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 64, 16, 36, 40


def _ticks(low, high):
    """Some five round numbers from low to high."""
    span = high - low or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / 5))
    size *= next(k for k in (1, 2, 5, 10) if span / (size * k) <= 6)
    first = math.ceil(low / size - 1e-9)
    return [i * size for i in range(first, math.floor(high / size + 1e-9) + 1)] or [low]


def plot(path, curves, title="", x_label="step"):
    """Writes curves, {name: numbers}, as SVG: a number each step, from 1 on. NaN and infinities leave gaps."""
    curves = {name: [float(v) for v in (values.tolist() if isinstance(values, tn.Array) else values)] for name, values in curves.items()}
    known = [v for values in curves.values() for v in values if math.isfinite(v)]
    count = max((len(values) for values in curves.values()), default=0)
    if not known:
        raise ValueError(f"plot: no finite number in {len(curves)} curves")
    low, high = min(known), max(known)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    across, down = (WIDTH - LEFT - RIGHT) / max(count - 1, 1), (HEIGHT - TOP - BOTTOM) / (high - low)

    def at(step, value):
        return f"{LEFT + (step - 1) * across:.1f},{TOP + (high - value) * down:.1f}"

    rows = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>',
            f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{html.escape(x_label)}</text>']  # fmt: skip
    for value in _ticks(low, high):
        y = TOP + (high - value) * down
        rows += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                 f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>']  # fmt: skip
    for step in _ticks(1, max(count, 2)):
        if step >= 1 and step == int(step):
            rows.append(f'<text x="{LEFT + (step - 1) * across:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{step:.0f}</text>')
    for i, (name, values) in enumerate(curves.items()):
        colour, pieces = _COLOURS[i % len(_COLOURS)], [[]]
        for step, value in enumerate(values, 1):
            if math.isfinite(value):
                pieces[-1].append(at(step, value))
            elif pieces[-1]:
                pieces.append([])
        rows += [f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(piece)}"/>' for piece in pieces if piece]
        rows.append(f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 16 * (i + 1)}" text-anchor="end" fill="{colour}">{html.escape(name)}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*rows, "</svg>\n"]))
