# SPDX-License-Identifier: MIT
"""Activations as functions, under MLX's names where the operators have others."""

import tenon as tn


def gelu_approx(x):
    """GELU by tanh."""
    return tn.nn.gelu(x, approximate="tanh")


def gelu_fast_approx(x):
    """GELU by the logistic function: x * sigmoid(1.702 * x)."""
    return x * tn.sigmoid(1.702 * x)


def hard_shrink(x, lambd=0.5):
    """x, where it is between -lambd and lambd 0."""
    return tn.nn.hardshrink(x, lambd=lambd)


def hard_tanh(x, min_val=-1.0, max_val=1.0):
    """x between two bounds."""
    return tn.nn.hardtanh(x, min_val=min_val, max_val=max_val)


def log_sigmoid(x):
    """The logarithm of the logistic function."""
    return tn.nn.logsigmoid(x)


def sigmoid(x):
    """The logistic function."""
    return tn.sigmoid(x)


def step(x, threshold=0.0):
    """1 from a threshold on, 0 below."""
    return tn.astype(x >= threshold, x.dtype)


def tanh(x):
    """The hyperbolic tangent."""
    return tn.tanh(x)


NAMES = ["gelu_approx", "gelu_fast_approx", "hard_shrink", "hard_tanh", "log_sigmoid", "sigmoid", "step", "tanh"]
