# SPDX-License-Identifier: MIT
"""Texts while they are generated: iterators that compute the next token when it is asked for."""

import difflib
from typing import Any, Callable, Iterator, NamedTuple

from .. import _lm
from .grammar import choose

ADD_SPECIAL, PARSE_SPECIAL, WHOLE = 1, 2, 4
_REASONS = (None, "end", "stop", "length", "full", "cancelled")
_NAMES = ("max_tokens", "stop", "schema", "grammar", "images", "top", *_lm.SAMPLING)


class Token(NamedTuple):
    """One token that was generated. `text` is empty while a character, or what may become a stop word, is not complete."""

    id: int
    text: str
    log_probability: float
    top: tuple[tuple[int, float], ...]  # the most probable tokens in its place, with their log probabilities


def request(prompt, flags, images, max_tokens, stop, schema, grammar, top, sampling, what="generate"):
    """A request as the module in C takes it. `sampling`: sampling options by name."""
    for name in sampling:
        if name not in _lm.SAMPLING:
            near = difflib.get_close_matches(name, _NAMES, 1, 0.5)
            raise TypeError(f"{what}: no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(_NAMES)}"))
    text = prompt if isinstance(prompt, str) else None
    ids = None if text is not None or prompt is None else list(prompt)
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    given = {name: value for name, value in sampling.items() if value is not None}
    return (text, ids, flags, 0 if max_tokens is None else _count(what, max_tokens), stops, top, choose(schema, grammar), tuple(images), given)


def _count(what, max_tokens):
    if max_tokens < 1:
        raise ValueError(f"{what}: max_tokens is {max_tokens}, expected at least 1, or None: no bound")
    return max_tokens


class Generation:
    """A text that is being generated: iterating gives its pieces, and computes a token when it is asked for. It ends when the
    model ends its text, at a stop word, behind max_tokens tokens, or when the context is full; a loop that is left, and
    close(), end it, too. Ctrl-C raises KeyboardInterrupt, and ends it."""

    def __init__(self, stream: Any, finish: Callable[[], None] = lambda: None):
        self._stream, self._finish = stream, finish
        self._pieces: list[str] = []
        self._result = None
        self.ids: list[int] = []  # tokens so far

    def _next(self) -> Token:
        if self._stream is None:
            raise StopIteration
        try:
            _, token, text, log_probability, top = next(self._stream)
        except BaseException:
            self._end()
            raise
        if token >= 0:
            self.ids.append(token)
        self._pieces.append(text)
        return Token(token, text, log_probability, top)

    def _end(self):
        stream, self._stream = self._stream, None
        if stream is not None:
            self._result = (stream.outcome() or [None])[0]
            self._finish()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            text = self._next().text
            if text:
                return text

    def tokens(self) -> Iterator[Token]:
        """Iterates over tokens, with their probabilities, rather than pieces of text. Text that waited for the end, because it
        might have become a stop word, comes with a token whose id is -1."""
        while self._stream is not None:
            try:
                token = self._next()
            except StopIteration:
                return
            yield token

    def read(self) -> str:
        """The rest of the text."""
        return "".join(self)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def reason(self) -> str | None:
        """Why it ended: "end", the model ended its text; "stop", a stop word; "length", max_tokens; "full", the context;
        "cancelled". None: it has not ended."""
        if self._stream is not None:
            return None
        return _REASONS[self._result[0]] if self._result else "cancelled"

    @property
    def statistics(self) -> dict[str, float]:
        """Once it has ended: how many tokens there were, and how long they took."""
        names = ("prompt_tokens", "tokens", "prompt_seconds", "seconds")
        return dict(zip(names, self._result[1:])) if self._result else {}

    def close(self) -> None:
        """Ends it."""
        if self._stream is not None:
            try:
                self._stream.close()
            finally:
                self._end()

    def __enter__(self) -> "Generation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self):
        if getattr(self, "_stream", None) is not None:
            self.close()


class Batch:
    """Texts that are generated together: iterating gives pairs of a prompt's index and a piece of its text, as they come."""

    def __init__(self, stream: Any, count: int):
        self._stream = stream
        self._pieces: list[list[str]] = [[] for _ in range(count)]
        self._results: list[Any] = []
        self.ids: list[list[int]] = [[] for _ in range(count)]  # tokens so far, of each text

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        while self._stream is not None:
            try:
                index, token, text, _, _ = next(self._stream)
            except BaseException:
                self._end()
                raise
            if token >= 0:
                self.ids[index].append(token)
            if text:
                self._pieces[index].append(text)
                return index, text
        raise StopIteration

    def _end(self):
        stream, self._stream = self._stream, None
        if stream is not None:
            self._results = stream.outcome() or []

    def read(self) -> list[str]:
        """All of the texts, once they have ended."""
        for _ in self:
            pass
        return self.texts

    @property
    def texts(self) -> list[str]:
        """The texts so far."""
        return ["".join(pieces) for pieces in self._pieces]

    @property
    def reasons(self) -> list[str | None]:
        """Why each text ended, as Generation.reason; empty before all have."""
        return [_REASONS[result[0]] for result in self._results]

    def close(self) -> None:
        """Ends all of them."""
        if self._stream is not None:
            try:
                self._stream.close()
            finally:
                self._end()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
