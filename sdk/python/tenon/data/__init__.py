# SPDX-License-Identifier: MIT
"""Data for training: files read as arrays, and batches, shuffled and made ahead by a thread. Arrays of npy, npz and
safetensors come by tenon.load."""

from .batches import Batches, progress
from .files import fashion_mnist, read_csv, read_idx, read_images, read_text
from .plots import plot

__all__ = ["Batches", "fashion_mnist", "plot", "progress", "read_csv", "read_idx", "read_images", "read_text"]
