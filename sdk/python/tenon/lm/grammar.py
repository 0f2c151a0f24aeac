# SPDX-License-Identifier: MIT
"""What constrains a text while it is generated: grammars, and schemas of JSON."""

import json
from typing import Any

from .. import _lm

_GBNF, _SCHEMA = 1, 2
_FITS = ("no", "begins", "fits")


class Grammar:
    """A grammar in the notation of llama.cpp (GBNF), whose rule `root` is the text; docs/grammars.md has what is known. Any
    number of texts may be constrained by one. A text that is no grammar is a ValueError with line and column."""

    def __init__(self, text: str):
        self._lm = _lm.Grammar(text, _GBNF)

    @classmethod
    def of_schema(cls, schema: Any) -> "Grammar":
        """The JSON that is valid by a schema: a dict, its JSON as a text, or a class of Pydantic. {}: any JSON."""
        if hasattr(schema, "model_json_schema"):
            schema = schema.model_json_schema()
        grammar = cls.__new__(cls)
        grammar._lm = _lm.Grammar(schema if isinstance(schema, str) else json.dumps(schema), _SCHEMA)
        return grammar

    def fits(self, text: str) -> str:
        """"fits": it is a text of the grammar. "begins": one begins so, and goes on. "no": none does."""
        return _FITS[self._lm.fits(text)]


def choose(schema, grammar):
    """The grammar in C that the options of generate() say; None: none."""
    if schema is not None and grammar is not None:
        raise TypeError("generate: got schema and grammar, expected one of them")
    if schema is not None:
        return Grammar.of_schema(schema)._lm
    if grammar is None:
        return None
    return (grammar if isinstance(grammar, Grammar) else Grammar(grammar))._lm
