# SPDX-License-Identifier: MIT
"""Texts that a model reads and goes on with, images, drawing tokens from logits."""

import array
import os
import weakref
from typing import Any, Iterable

from .. import _core, _lm
from .._index import op
from .generation import ADD_SPECIAL, PARSE_SPECIAL, Generation, request

ALL_ROWS = 1


def floats(data, *shape):
    """An Array of bytes of float32."""
    return op("reshape")(_core.array(array.array("f", data)), list(shape))


class Image:
    """A picture that a model has read; Model.image() makes one, which any number of prompts may have."""

    def __init__(self, image: Any, width: int):
        self._lm, self._width = image, width

    @property
    def info(self) -> dict[str, int]:
        """height, width; rows and columns of tiles beside that of the whole; tiles; tokens; positions in a sequence."""
        return self._lm.info()

    def rows(self) -> _core.Array:
        """What stands in the place of its mark: float32 (tokens, width of the model)."""
        return floats(self._lm.rows(), -1, self._width)


def read_image(model, image):
    """The image in C of a path, an array of bytes (height, width, 3), or a Pillow image."""
    if isinstance(image, Image):
        return image._lm
    if isinstance(image, (str, os.PathLike)):
        os.stat(image)  # raises FileNotFoundError with the path
        return model.image(os.fspath(image), None, 0, 0)
    if hasattr(image, "convert") and hasattr(image, "tobytes"):
        image = image.convert("RGB")
        return model.image(None, image.tobytes(), image.height, image.width)
    try:
        view = memoryview(image)
    except TypeError:
        raise TypeError(f"image: got {type(image).__name__}, expected a path, an array (height, width, 3) of bytes, or an image") from None
    if view.format != "B" or view.ndim != 3 or view.shape[2] != 3:
        raise ValueError(f"image: got elements {view.format!r} of shape {view.shape}, expected bytes (height, width, 3)")
    return model.image(None, view.tobytes(), *view.shape[:2])


def mark_images(model, prompt, images):
    """A prompt with a mark in front for each image, where it has none."""
    if not images or not isinstance(prompt, str):
        return prompt
    mark = model.image_mark()
    return prompt if mark in prompt else mark * len(images) + prompt


class Sequence:
    """A text that the model reads and goes on with, which keeps what attention needs of it. One thread at a time uses it."""

    def __init__(self, model: Any):
        self._model, self._lm = model, model._lm.sequence()
        self._running: Any = None  # a weak reference to the last Generation

    def __len__(self) -> int:
        """The positions that it has."""
        return self._lm.length()

    def generate(self, prompt: str | Iterable[int] | None = None, *, max_tokens: int | None = 256, stop: str | Iterable[str] = (),
                 schema: Any = None, grammar: Any = None, images: Iterable[Any] = (), top: int = 0, raw: bool = False,
                 **sampling: Any) -> Generation:
        """Appends a prompt, if there is one, and what the model goes on with; options as of Model.generate()."""
        read = [read_image(self._model._lm, image) for image in images]
        flags = 0 if raw else PARSE_SPECIAL if len(self) else ADD_SPECIAL | PARSE_SPECIAL
        generation = Generation(self._lm.generate(request(
            mark_images(self._model._lm, prompt, read), flags | (PARSE_SPECIAL if read else 0), read, max_tokens, stop, schema, grammar, top, sampling)))
        self._running = weakref.ref(generation)
        return generation

    def infer(self, tokens: str | Iterable[int], *, all: bool = False, images: Iterable[Any] = ()) -> _core.Array:
        """Appends tokens, or a text, and gives the logits behind the last one, float32 (vocabulary,); all=True: behind each."""
        ids = self._model.tokenize(tokens, special=not len(self)) if isinstance(tokens, str) else tokens
        read = tuple(read_image(self._model._lm, image) for image in images)
        logits = self._lm.infer(ids, ALL_ROWS if all else 0, read or None)
        return floats(logits, *((-1,) if all else ()), self._model.info["vocabulary"])

    def infer_shard(self, input: Any, *, all: bool = False) -> _core.Array:
        """Appends positions to the layers that are loaded (Model.load_layers): `input` are tokens where the first layer is one of them,
        else the hidden state. The hidden state, float32 (positions, width), where the last layer is none of them, else logits."""
        info = self._model.info
        given = input if info["first"] == 0 else bytes(memoryview(op("astype")(_core.array(input, None), "float32")))
        out = self._lm.infer_tensor(given, ALL_ROWS if all else 0)
        if info["end"] < info["layers"]:
            return floats(out, -1, info["width"])
        return floats(out, *((-1,) if all else ()), info["vocabulary"])

    def cut(self, length: int) -> None:
        """Forgets the positions from `length` on."""
        self._lm.cut(length)

    def save(self, path: str | os.PathLike) -> None:
        """Writes what it has to a file, which load() goes on from, with the same model, adapter and caches."""
        self._lm.save(os.fspath(path))

    def load(self, path: str | os.PathLike) -> None:
        """Reads a file that save() wrote, in place of what the sequence has."""
        os.stat(path)
        self._lm.restore(os.fspath(path))

    def close(self) -> None:
        """Frees its memory, and ends what it generates."""
        running = self._running and self._running()
        if running:
            running.close()
        self._lm.close()

    def __enter__(self) -> "Sequence":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def infer_batch(items: Iterable[tuple[Sequence, Iterable[int]]]) -> list[_core.Array]:
    """Appends tokens to several sequences at once, and gives the logits behind each one's last. The last tokens of sequences that
    share caches (open(sequences=)) go through the model together, so that weights are read once for all."""
    items = list(items)
    for item in items:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], Sequence):
            raise TypeError(f"infer_batch: got {item!r}, expected pairs (Sequence, tokens)")
    return [floats(row, -1) for row in _lm.infer_batch([(sequence._lm, tokens) for sequence, tokens in items])]


class Sampler:
    """Draws tokens from logits; options as of Model.generate()."""

    def __init__(self, vocabulary: int, **sampling: Any):
        self._lm = _lm.Sampler(request(None, 0, (), None, (), None, None, 0, sampling, "Sampler")[-1], vocabulary)

    def sample(self, logits: Any, last: Iterable[int] = ()) -> tuple[int, float]:
        """A token, and the logarithm of the probability that it had. `last`: the tokens before, for penalties."""
        if isinstance(logits, _core.Array):
            logits = op("astype")(logits, "float32")
        return self._lm.sample(memoryview(logits).cast("B"), last)
