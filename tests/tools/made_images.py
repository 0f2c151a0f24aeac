# SPDX-License-Identifier: MIT
"""A data set in the format of Fashion-MNIST."""

import gzip
import random
import struct


def make_data(train=640, test=100):
    """Images of which the class is a bright square's place."""
    generator = random.Random(1)
    for prefix, count in [("train", train), ("t10k", test)]:
        labels, images = bytearray(), bytearray()
        for _ in range(count):
            label = generator.randrange(10)
            image = bytearray(generator.randrange(60) for _ in range(784))
            for y in range(6):
                start = (label // 5 * 14 + 4 + y) * 28 + label % 5 * 5
                image[start:start + 5] = b"\xff" * 5
            labels.append(label)
            images += image
        with gzip.open(f"{prefix}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, 28, 28) + images)
        with gzip.open(f"{prefix}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + labels)
