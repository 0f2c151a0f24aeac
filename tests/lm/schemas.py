# SPDX-License-Identifier: MIT
"""Random JSON schemas: what their grammars write is valid, and what is valid is in their grammars."""

import ctypes
import json
import os
import random
import re
import sys

lm = ctypes.CDLL(sys.argv[1])
lm.tn_lm_error.restype = ctypes.c_char_p
draw = random.Random(int(os.environ.get("TEST_SEED", "11")))


def grammar(schema):
    text, out = json.dumps(schema).encode(), ctypes.c_void_p()
    status = lm.tn_lm_grammar_open(text, ctypes.c_uint64(len(text)), 2, ctypes.byref(out))
    assert status == 0, (schema, lm.tn_lm_error())
    return out


def fits(of, text):
    out = ctypes.c_int32(-1)
    assert lm.tn_lm_grammar_test(of, text, ctypes.c_uint64(len(text)), ctypes.byref(out)) == 0, lm.tn_lm_error()
    return out.value


def is_decided(schema):
    """Whether the library knows that the alternatives exclude each other."""
    text, out = json.dumps(schema).encode(), ctypes.c_void_p()
    status = lm.tn_lm_grammar_open(text, ctypes.c_uint64(len(text)), 2, ctypes.byref(out))
    assert status == 0 or b"valid by both alternatives" in lm.tn_lm_error(), (schema, lm.tn_lm_error())
    lm.tn_lm_grammar_close(out)
    decided[status == 0] += 1
    return status == 0


decided = [0, 0]


def schema_of(depth):
    kind = draw.choice(["integer", "number", "string", "pattern", "enum", "boolean"]
                       + (["object", "object", "array", "tuple", "any", "one", "one"] if depth else []))
    if kind == "integer":
        low = draw.randint(-2000, 2000)
        return {"type": "integer", "minimum": low, "maximum": low + draw.randint(0, 10 ** draw.randint(0, 4))}
    if kind == "number":
        low = draw.randint(-999, 999) / 10 ** draw.randint(0, 2)
        return {"type": "number", "minimum": low,
                "exclusiveMaximum": round(low + draw.randint(1, 99) / 10 ** draw.randint(0, 2), 2)}
    if kind == "string":
        low = draw.randint(0, 3)
        return {"type": "string", "minLength": low, "maxLength": low + draw.randint(0, 4)}
    if kind == "pattern":
        return {"type": "string", "pattern": draw.choice(["^[a-c]{1,3}$", "^(x|yz)*\\d$", "a.b", "^\\w+ \\w$"])}
    if kind == "enum":
        return {"enum": draw.sample(["a", "ab", 1, -2.5, None, {"k": [1, {}]}, []], draw.randint(1, 4))}
    if kind == "boolean":
        return {"type": ["boolean", "null"]}
    if kind == "any":
        return {"anyOf": [schema_of(depth - 1) for _ in range(draw.randint(1, 3))]}
    if kind == "one":
        schema = {"oneOf": [schema_of(depth - 1) for _ in range(draw.randint(2, 3))]}
        return schema if is_decided(schema) else {"anyOf": schema["oneOf"]}
    if kind == "array":
        low = draw.randint(0, 2)
        return {"type": "array", "items": schema_of(depth - 1), "minItems": low, "maxItems": low + draw.randint(0, 2)}
    if kind == "tuple":
        return {"type": "array", "prefixItems": [schema_of(depth - 1) for _ in range(draw.randint(1, 3))],
                "items": draw.choice([False, schema_of(depth - 1)]), "minItems": draw.randint(0, 1), "maxItems": 4}
    names = draw.sample(["a", "ab", "b", "\u00e9", "q\"q"], draw.randint(1, 4))
    return {"type": "object", "properties": {n: schema_of(depth - 1) for n in names},
            "required": draw.sample(names, draw.randint(0, len(names))),
            "additionalProperties": draw.choice([False, {"type": "boolean"}])}


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def valid(schema, value):
    """What the keywords above mean, written apart from the library."""
    if schema is False:
        return False
    if "enum" in schema:
        return any(type(value) is type(e) and value == e for e in schema["enum"])
    if "anyOf" in schema:
        return any(valid(s, value) for s in schema["anyOf"])
    if "oneOf" in schema:
        return sum(valid(s, value) for s in schema["oneOf"]) == 1
    kind = schema["type"]
    if kind == "integer":
        return number(value) and value == int(value) and schema["minimum"] <= value <= schema["maximum"]
    if kind == "number":
        return number(value) and schema["minimum"] <= value < schema["exclusiveMaximum"]
    if kind == "string":
        return isinstance(value, str) and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 9999) and (
            re.search(schema.get("pattern", ""), value) is not None)
    if kind == "array":
        prefix = schema.get("prefixItems", [])
        return isinstance(value, list) and schema["minItems"] <= len(value) <= schema["maxItems"] and all(
            valid(prefix[i] if i < len(prefix) else schema["items"], v) for i, v in enumerate(value))
    if kind == "object":
        return isinstance(value, dict) and all(n in value for n in schema["required"]) and all(
            valid(schema["properties"].get(n, schema["additionalProperties"]), v) for n, v in value.items())
    return value is None or isinstance(value, bool)


def written(of):
    """A text of the grammar, drawn byte by byte; None where it grows too long."""
    text = b""
    likely = [bytes([c]) for c in b'"}],:0123456789.- abctrulefsnkxyzq_\\\xc3\xa9{[']
    while len(text) < 400:
        now = fits(of, text)
        if now == 2 and draw.random() < 0.5:
            return text
        for byte in draw.sample(likely, len(likely)):
            if fits(of, text + byte):
                text += byte
                break
        else:
            assert now == 2, text
            return text
    return None


def instance(schema):
    """A value that is valid, with members in the schema's order."""
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if "anyOf" in schema or "oneOf" in schema:
        return instance(draw.choice(schema.get("anyOf") or schema["oneOf"]))
    kind = schema["type"]
    if kind == "integer":
        return draw.randint(schema["minimum"], schema["maximum"])
    if kind == "number":
        low, high = schema["minimum"], schema["exclusiveMaximum"]
        return draw.choice([low, round(low + (high - low) * draw.random() * 0.9, 3)])
    if kind == "string":
        if "pattern" in schema:
            return {"^[": "abc", "^(": "xyzx7", "a.": "..a\u00e9b..", "^\\": "one 2"}[schema["pattern"][:2]]
        return "".join(draw.choice("ab \u00e9\"\\\n") for _ in range(draw.randint(schema["minLength"], schema["maxLength"])))
    if kind == "array":
        prefix = schema.get("prefixItems", [])
        most = schema["maxItems"] if schema["items"] else min(len(prefix), schema["maxItems"])
        return [instance(prefix[i] if i < len(prefix) else schema["items"])
                for i in range(draw.randint(schema["minItems"], most))]
    if kind == "object":
        value = {n: instance(s) for n, s in schema["properties"].items()
                 if n in schema["required"] or draw.random() < 0.5}
        return value | ({"abc": True} if schema["additionalProperties"] else {})
    return draw.choice([True, None])


def main():
    texts = 0
    for _ in range(120):
        schema = schema_of(2)
        of = grammar(schema)
        for indent in (None, 2):
            value = instance(schema)
            if valid(schema, value):
                text = json.dumps(value, ensure_ascii=False, indent=indent).encode()
                assert fits(of, text) == 2, (schema, text)
        text = written(of)
        if text is not None:
            texts += 1
            assert valid(schema, json.loads(text)), (schema, text)
        lm.tn_lm_grammar_close(of)
    assert texts > 60, texts
    assert min(decided) > 5, decided
    print(f"1..1\nok 1 - {texts} texts that grammars wrote are valid; of {sum(decided)} oneOf {decided[1]} are read")


main()
