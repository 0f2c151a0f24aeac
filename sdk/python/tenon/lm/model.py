# SPDX-License-Identifier: MIT
"""Models: opening one, generating, chatting, embedding, adapters."""

import contextlib
import os
import weakref
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from .. import _core, _lm
from .generation import ADD_SPECIAL, PARSE_SPECIAL, WHOLE, Batch, Generation, request
from .sequence import Image, Sequence, floats, mark_images, read_image

_POOLINGS = {"mean": 0, "last": 1, "first": 2}
_UNIT = 1


class Step(NamedTuple):
    """What a training says behind each step."""

    step: int
    steps: int
    loss: float
    seconds: float


def _existing(path):
    os.stat(path)  # raises FileNotFoundError with the path
    return os.fspath(path)


def open(path: str | os.PathLike, *, context: int = 0, cache: str | None = None, sequences: int = 1, split: str | None = None,
         adapter: str | os.PathLike | None = None, adapter_scale: float = 1.0, vision: str | os.PathLike | None = None) -> "Model":
    """The model of a file (GGUF) or of a folder (Hugging Face's, MLX's). Weights are loaded when it is first used.

    context: positions that a text has room for; 0: the model's, at most 4096. cache: "f16", "f32" or "q8_0". sequences: texts that are
    generated at once share steps, as many. split: layers of each device of TENON_BACKEND, "16,14". adapter: a file or folder of LoRA.
    vision: the file of the vision encoder, of a model in GGUF."""
    model = Model(path, context=context, cache=cache, sequences=sequences, split=split)
    if adapter is not None:
        model.load_adapter(adapter, adapter_scale)
    if vision is not None:
        model._lm.vision(_existing(vision))
    return model


def _content(content, where):
    """Text and images of a message's content: a text, or a list of parts as of OpenAI and transformers."""
    if isinstance(content, str):
        return content, []
    texts, images = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(part["text"])
        elif kind == "image":
            images.append(part.get("image", part.get("path")))
        else:
            raise ValueError(f"{where}: a part of type {kind!r}, expected \"text\" or \"image\"")
    return "".join(texts), images


def _read_messages(messages):
    """Tuples (role, text, number of images), and the images."""
    if isinstance(messages, str):
        return ((("user", messages, 0),), [])
    if not isinstance(messages, Iterable) or isinstance(messages, Mapping):
        raise TypeError(f"chat: got {type(messages).__name__}, expected a text or a list of messages")
    read, images = [], []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            raise TypeError(f"chat: message {i} is {message!r}, expected a dict with role and content")
        text, more = _content(message["content"], f"chat: message {i}")
        read.append((message["role"], text, len(more)))
        images += more
    return tuple(read), images


class Model:
    """A language model. Any thread may use it; texts that are generated at the same time are computed apart."""

    def __init__(self, path: str | os.PathLike, *, context: int = 0, cache: str | None = None, sequences: int = 1, split: str | None = None):
        self._lm = _lm.Model(_existing(path), context, cache, sequences, split)
        self._idle: list[Any] = []  # sequences in C that generate nothing; the last one used is the last
        self._running: weakref.WeakSet[Any] = weakref.WeakSet()

    # --- generating ---

    def _take(self):
        try:
            return self._idle.pop()
        except IndexError:
            return self._lm.sequence()

    def _start(self, given, is_kept):
        sequence = self._take()
        try:
            if not is_kept:
                sequence.cut(0)
            stream = sequence.generate(given)
        except BaseException:
            self._idle.append(sequence)
            raise
        generation = Generation(stream, lambda: self._idle.append(sequence))
        self._running.add(generation)
        return generation

    def generate(self, prompt: str | Iterable[int], *, max_tokens: int | None = 256, stop: str | Iterable[str] = (), schema: Any = None,
                 grammar: Any = None, images: Iterable[Any] = (), top: int = 0, raw: bool = False, **sampling: Any) -> Generation:
        """Goes on with a prompt, a text or a list of tokens: an iterator over pieces of text.

        max_tokens: at most so many; None: until the model ends its text. stop: texts that end it. schema: the text is JSON that is valid
        by a JSON schema (a dict, a text, or a class of Pydantic). grammar: a Grammar that constrains it, or a text in GBNF. images: paths,
        arrays or Images, in front of the prompt or at its marks. top: Generation.tokens() tells of as many tokens in place of each.
        raw: the prompt has no beginning that the model's prompts have, and "<|im_end|>" in it is text.

        How tokens are drawn: temperature (0: the most probable one, whatever else is said), top_k, top_p, min_p, repetition_penalty
        of the last repetition_context (64) tokens, presence_penalty, frequency_penalty, logit_bias (a dict of numbers by token), seed."""
        read = [read_image(self._lm, image) for image in images]
        flags = (0 if raw else ADD_SPECIAL | PARSE_SPECIAL) | (PARSE_SPECIAL if read else 0)
        return self._start(request(mark_images(self._lm, prompt, read), flags, read, max_tokens, stop, schema, grammar, top, sampling), False)

    def chat(self, messages: str | Iterable[Mapping[str, Any]], *, template: str | None = None, max_tokens: int | None = 256,
             stop: str | Iterable[str] = (), schema: Any = None, grammar: Any = None, images: Iterable[Any] = (), top: int = 0,
             **sampling: Any) -> Generation:
        """The assistant's reply to a conversation: dicts with role ("system", "user", "assistant") and content, a text or a list of
        parts {"type": "text", "text": ...} and {"type": "image", "image": path or array}; or one text of the user. Options as of
        generate(); `images` stand in front of the first message. What of the conversation was read before is not read again.

        template: the form of the conversation ("chatml"), where that of the model is not known."""
        read, found = _read_messages(messages)
        front = [read_image(self._lm, image) for image in images]
        if front and read:
            read = ((*read[0][:2], read[0][2] + len(front)), *read[1:])
        all_images = front + [read_image(self._lm, image) for image in found]
        ids = self._lm.chat(read, template, False)
        return self._start(request(ids, WHOLE, all_images, max_tokens, stop, schema, grammar, top, sampling, "chat"), True)

    def generate_batch(self, prompts: Iterable[str | Iterable[int]], *, at_once: int = 0, max_tokens: int | None = 256,
                       stop: str | Iterable[str] = (), schema: Any = None, grammar: Any = None, raw: bool = False, **sampling: Any) -> Batch:
        """Goes on with several prompts, which share steps, as many as open(sequences=) says or `at_once`: an iterator over pairs of a
        prompt's place and a piece of its text. Options as of generate(). When one ends the next takes its room."""
        flags = 0 if raw else ADD_SPECIAL | PARSE_SPECIAL
        given = tuple(request(prompt, flags, (), max_tokens, stop, schema, grammar, 0, sampling, "generate_batch") for prompt in prompts)
        batch = Batch(self._lm.batch(given, at_once), len(given))
        self._running.add(batch)
        return batch

    def sequence(self) -> Sequence:
        """An empty sequence: a text to go on with, whose logits can be read."""
        return Sequence(self)

    def image(self, image: Any) -> Image:
        """Reads an image, a path or an array (height, width, 3) of bytes, for any number of prompts."""
        return Image(read_image(self._lm, image), self.info["width"])

    # --- texts and tokens ---

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text, as a prompt begins; special=False: of a text within, in which "<|im_end|>" is text."""
        return self._lm.tokenize(text, ADD_SPECIAL | PARSE_SPECIAL if special else 0)

    def detokenize(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without those that are no text."""
        return self._lm.detokenize(tokens).decode("utf-8", "replace")

    def is_end(self, token: int) -> bool:
        """Whether a token ends what the model says."""
        return self._lm.is_end(token)

    def chat_text(self, messages: str | Iterable[Mapping[str, Any]], *, template: str | None = None) -> str:
        """The text of a conversation, as the model was trained to read one: for people to read."""
        return self._lm.chat(_read_messages(messages)[0], template, True)

    def chat_tokens(self, messages: str | Iterable[Mapping[str, Any]], *, template: str | None = None) -> list[int]:
        """The tokens of a conversation, up to the beginning of the assistant's reply."""
        return self._lm.chat(_read_messages(messages)[0], template, False)

    def embed(self, texts: str | Iterable[str], *, pooling: str = "mean", normalize: bool = True) -> _core.Array:
        """The embedding of a text, float32 (width,), or of several, (texts, width): the hidden states behind the last layer, of which
        `pooling` is the "mean", the "last" or the "first". normalize: of length 1, so that products are cosines."""
        if pooling not in _POOLINGS:
            raise ValueError(f"embed: pooling is {pooling!r}, expected {', '.join(map(repr, _POOLINGS))}")
        is_one = isinstance(texts, str)
        sequence = self._take()
        try:
            rows = [sequence.embed(self._lm.tokenize(text, ADD_SPECIAL), _POOLINGS[pooling], _UNIT if normalize else 0)
                    for text in ([texts] if is_one else texts)]
        finally:
            self._idle.append(sequence)
        return floats(b"".join(rows), *(() if is_one else (len(rows),)), self.info["width"])

    # --- adapters and layers ---

    def _end_texts(self):
        """Sequences are closed before a model changes."""
        for running in list(self._running):
            running.close()
        while self._idle:
            self._idle.pop().close()

    def load_adapter(self, path: str | os.PathLike | None, scale: float = 1.0) -> None:
        """Puts a LoRA adapter, a file or a folder of PEFT's, in the place of the one that the model has; None: none. What is
        being generated ends; sequence()s are closed before."""
        self._end_texts()
        self._lm.load_adapter(None if path is None else _existing(path), scale)

    def save_adapter(self, path: str | os.PathLike) -> None:
        """Writes the adapter: .safetensors or .gguf, or a folder, whose name ends with "/", as PEFT's."""
        self._lm.save_adapter(os.fspath(path))

    def train_adapter(self, text: str | Iterable[int], *, steps: int = 100, rank: int = 8, alpha: float | None = None, window: int = 128,
                      rate: float = 3e-4, seed: int = 0, weights: Iterable[str] = ("attn_q", "attn_v"),
                      progress: Callable[[Step], object] | None = None) -> list[float]:
        """Trains a LoRA adapter on a text, or tokens, or goes on with the one that the model has; gives the losses. Each step reads
        `window` tokens, drawn at random. progress: called with a Step behind each. Ctrl-C ends it: the model has what was trained."""
        self._end_texts()
        tokens = self.tokenize(text) if isinstance(text, str) else text
        options = {"steps": steps, "rank": rank, "window": window, "rate": rate, "seed": seed, "alpha": 2.0 * rank if alpha is None else alpha}
        losses = []
        with contextlib.closing(self._lm.train(tokens, tuple(weights), options)) as stream:
            for row in stream:
                step = Step(*row)
                losses.append(step.loss)
                if progress is not None:
                    progress(step)
        return losses

    def load_layers(self, first: int, last: int) -> None:
        """Loads the weights of layers first .. last alone, for Sequence.infer_shard(); the embedding goes with the first one, the output
        with the last."""
        self._end_texts()
        self._lm.shard(first, last)

    def save_importance(self, text: str | Iterable[int], path: str | os.PathLike, *, window: int = 0) -> None:
        """Reads a text, and writes how important the columns of products are for quantising the model (`tenon model quantize`)."""
        self._end_texts()
        self._lm.importance(self.tokenize(text) if isinstance(text, str) else text, window, os.fspath(path))

    # --- what is known ---

    @property
    def info(self) -> dict[str, Any]:
        """name, architecture, layers, width, vocabulary, context, trained (positions), weight_bytes, cache_bytes (of a sequence), ..."""
        return self._lm.info()

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of its file, by the keys of GGUF."""
        return self._lm.metadata()

    def parts(self) -> list[dict[str, Any]]:
        """Which device has which layers, first .. end - 1, and bytes."""
        return self._lm.parts()

    def __repr__(self) -> str:
        try:
            i = self.info
        except ValueError:
            return "<tenon.lm.Model, closed>"
        return f"<tenon.lm.Model {i['name'] or i['architecture']}: {i['layers']} layers of {i['width']}, {i['vocabulary']} tokens>"

    def close(self) -> None:
        """Frees its memory; what it generates ends, and its sequences and images are closed."""
        self._end_texts()
        self._lm.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
