# SPDX-License-Identifier: MIT
"""Optimisers and schedules: what `tenon.optim` has beside the operators of pack optim."""

from . import optimizers as _optimizers, schedules
from .optimizers import (AMSGrad, AdaDelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Lion, MultiOptimizer, Muon, Optimizer, RMSprop,
                         SGD, clip_gradients)

__all__ = ["AMSGrad", "AdaDelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "MultiOptimizer", "Muon", "Optimizer",
           "RMSprop", "SGD", "clip_gradients", "schedules"]
