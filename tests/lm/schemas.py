# SPDX-License-Identifier: MIT
"""Random JSON schemas: what their grammars write is valid, and what is valid is in their grammars.

    schemas.py LIBTENON_LM [SCHEMAS]

TEST_SEED draws others; where TEST_JSONSCHEMA is set, each verdict is also that of the package jsonschema of PyPI.
"""

import ctypes
import fractions
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
# What a schema may be refused for, in words of the library; the rest must be read.
REFUSALS = [b"enum or const beside what is not decided", b"cannot be merged with what is beside it: ",
            b"the grammar has no text", b"valid by both alternatives", b"at most 1000 of them",
            b"required, but neither a property nor additional", b"may have one name twice"]


def is_read(schema):
    text, out = json.dumps(schema).encode(), ctypes.c_void_p()
    status = lm.tn_lm_grammar_open(text, ctypes.c_uint64(len(text)), 2, ctypes.byref(out))
    lm.tn_lm_grammar_close(out)
    assert status == 0 or any(r in lm.tn_lm_error() for r in REFUSALS), (schema, lm.tn_lm_error())
    return status == 0


def combined():
    """Schemas that hold at once, or something beside what stood alone before."""
    kind = draw.choice(["integers", "numbers", "strings", "objects", "enum", "any", "one", "tagged", "reference"])
    low = draw.randint(-30, 30)
    if kind == "integers":
        return {"allOf": [{"type": draw.choice(["integer", "number"]), "minimum": low}, {"type": "integer", "multipleOf": 3}],
                "maximum": low + draw.randint(0, 40)}
    if kind == "numbers":
        return {"allOf": [{"type": ["number", "null"], "multipleOf": draw.choice([0.5, 0.25, 0.01, 0.2])},
                          {"exclusiveMinimum": low}, {"maximum": low + 5.5}]}
    if kind == "strings":
        return {"allOf": [{"type": "string", "maxLength": 3.0}, {"minLength": draw.randint(0, 2)}],
                "pattern": draw.choice(["^[a-c]*$", "^(x|yz)+$", "^a?b{0,3}c*$"])}
    if kind == "enum":
        return {"type": draw.sample(["string", "integer", "number", "null", "array", "object"], 2),
                "enum": ["a", "abc", 1, 2.5, -7, 4.0, None, [], [1], {"k": 1}],
                draw.choice(["minLength", "minItems", "minProperties"]): 1, "maximum": 3}
    if kind == "any":
        return {"anyOf": [{"type": "integer", "minimum": low}, {"type": "string"}, {"enum": [low, "x", None]}],
                "type": ["integer", "string"], "maximum": low + 3, "maxLength": 2}
    if kind == "one":
        return {"oneOf": [{"maximum": low}, {"minimum": low + 2}], "type": "integer", "multipleOf": draw.randint(1, 4),
                "minimum": low - 9, "exclusiveMaximum": low + 9}
    if kind == "tagged":
        kinds = [{"type": "object", "properties": {"k": {"const": k}, k: {"type": "integer", "minimum": 0, "maximum": 9}},
                  "additionalProperties": False} for k in ("a", "ab", "b")]
        return {"oneOf": kinds, "discriminator": {"propertyName": "k"}}
    if kind == "reference":
        return {"$ref": "#/$defs/a%3Cb%3E", "maximum": low, "$defs": {"a<b>": {"type": "integer", "minimum": low - 3}}}
    members = {n: {"type": "integer", "minimum": 0, "maximum": 9} for n in ("a", "b", "c")}
    return {"allOf": [{"type": "object", "properties": members, "additionalProperties": draw.choice([False, {"type": "boolean"}])},
                      {"properties": {"b": {"minimum": 5}, "d": {"type": "null"}}, "required": draw.sample(["a", "b"], 1)}]}


def wild(depth):
    """Any keywords at all, of which many say nothing together."""
    values = ["a", "ab", "", "xyx", 0, 1, -2, 2.5, 12, None, True, [], [1], ["a", 1], {}, {"a": 1}, {"b": "a"}]
    some = {"type": lambda: draw.choice(["integer", "number", "string", "object", "array", "null", ["string", "number"],
                                         ["object", "array", "null"], ["integer", "boolean"]]),
            "enum": lambda: draw.sample(values, 6), "const": lambda: draw.choice(values),
            "minimum": lambda: draw.randint(-5, 3), "maximum": lambda: draw.randint(0, 20) / 2,
            "exclusiveMinimum": lambda: draw.randint(-9, 1), "multipleOf": lambda: draw.choice([1, 2, 0.5, 3]),
            "minLength": lambda: draw.randint(0, 2), "maxLength": lambda: draw.randint(0, 4) * 1.0,
            "pattern": lambda: draw.choice(["a", "^[ab]*$", "^(x|yz)*x?$", "b$", "^a"]),
            "minItems": lambda: draw.randint(0, 2), "maxItems": lambda: draw.randint(0, 3),
            "minProperties": lambda: draw.randint(0, 2), "maxProperties": lambda: draw.randint(0, 3),
            "required": lambda: draw.sample(["a", "b", "c"], draw.randint(0, 2))}
    if depth:
        parts = lambda: [wild(depth - 1) for _ in range(draw.randint(1, 3))]
        some |= {"anyOf": parts, "oneOf": parts, "allOf": parts, "items": lambda: wild(depth - 1), "prefixItems": parts,
                 "additionalProperties": lambda: draw.choice([True, False, wild(depth - 1)]),
                 "properties": lambda: {n: wild(depth - 1) for n in draw.sample(["a", "b", "c"], 2)}}
    return draw.choice([True, False]) if draw.random() < 0.03 else {k: some[k]() for k in draw.sample(list(some), draw.randint(1, 4))}


def schema_of(depth):
    kind = draw.choice(["integer", "number", "string", "pattern", "enum", "boolean", "multiple", "length"]
                       + (["object", "object", "counted", "array", "tuple", "any", "one", "one"] if depth else []))
    if kind == "multiple":
        step, low = draw.choice([2, 3, 7, 10, 25, 64, 0.5, 0.25, 0.01, 1.5, 1000, 12345]), draw.randint(-500, 500)
        schema = {"type": draw.choice(["integer", "number"]), "multipleOf": step}
        ends = draw.choice([{}, {"minimum": low}, {"exclusiveMaximum": low},
                            {"minimum": low, "maximum": low + draw.randint(0, 100) * step}])
        schema |= ends
        return schema if is_read(schema) else {"type": "null"}
    if kind == "length":
        low = draw.randint(0, 3)
        schema = {"type": "string", "pattern": draw.choice(["^[a-c]{1,3}$", "^(x|yz)*\\d$", "^a{2}b*c{0,2}$", "^\\w+ \\w$"]),
                  "minLength": low, "maxLength": low + draw.randint(0, 4)}
        return schema if is_read(schema) else {"type": "null"}
    if kind == "counted":
        names = draw.sample(["a", "ab", "b", "c", "d"], draw.randint(1, 5))
        least = draw.randint(0, 2)
        schema = {"type": "object", "properties": {n: {"type": "boolean"} for n in names},
                  "required": draw.sample(names, draw.randint(0, 1)),
                  "additionalProperties": draw.choice([False, {"type": "null"}]),
                  "minProperties": least, "maxProperties": least + draw.randint(0, 2)}
        return schema if is_read(schema) else {"type": "null"}
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


def equal(x, y):
    if isinstance(x, bool) or isinstance(y, bool) or type(x) is not type(y) and not (number(x) and number(y)):
        return x is y
    if isinstance(x, list):
        return len(x) == len(y) and all(map(equal, x, y))
    return x.keys() == y.keys() and all(equal(x[k], y[k]) for k in x) if isinstance(x, dict) else x == y


def exact(value):
    return fractions.Fraction(str(value))


OF_TYPE = {"integer": lambda v: number(v) and v == int(v), "number": number, "string": lambda v: isinstance(v, str),
           "boolean": lambda v: isinstance(v, bool), "null": lambda v: v is None, "array": lambda v: isinstance(v, list),
           "object": lambda v: isinstance(v, dict)}
# Each keyword: whether it is of this value, and whether the value is valid by it.
KEYWORDS = {
    "type": (lambda v: True, lambda s, k, v: any(OF_TYPE[t](v) for t in (k if isinstance(k, list) else [k]))),
    "enum": (lambda v: True, lambda s, k, v: any(equal(v, e) for e in k)),
    "const": (lambda v: True, lambda s, k, v: equal(v, k)),
    "anyOf": (lambda v: True, lambda s, k, v: any(valid(a, v) for a in k)),
    "oneOf": (lambda v: True, lambda s, k, v: sum(valid(a, v) for a in k) == 1),
    "allOf": (lambda v: True, lambda s, k, v: all(valid(a, v) for a in k)),
    "$ref": (lambda v: True, lambda s, k, v: valid(s["$defs"]["a<b>"], v)),
    "minimum": (number, lambda s, k, v: v >= k),
    "maximum": (number, lambda s, k, v: v <= k),
    "exclusiveMinimum": (number, lambda s, k, v: v > k),
    "exclusiveMaximum": (number, lambda s, k, v: v < k),
    "multipleOf": (number, lambda s, k, v: exact(v) % exact(k) == 0),
    "minLength": (OF_TYPE["string"], lambda s, k, v: len(v) >= k),
    "maxLength": (OF_TYPE["string"], lambda s, k, v: len(v) <= k),
    "pattern": (OF_TYPE["string"], lambda s, k, v: re.search(k, v) is not None),
    "minItems": (OF_TYPE["array"], lambda s, k, v: len(v) >= k),
    "maxItems": (OF_TYPE["array"], lambda s, k, v: len(v) <= k),
    "prefixItems": (OF_TYPE["array"], lambda s, k, v: all(map(valid, k, v))),
    "items": (OF_TYPE["array"], lambda s, k, v: all(valid(k, e) for e in v[len(s.get("prefixItems", [])):])),
    "minProperties": (OF_TYPE["object"], lambda s, k, v: len(v) >= k),
    "maxProperties": (OF_TYPE["object"], lambda s, k, v: len(v) <= k),
    "required": (OF_TYPE["object"], lambda s, k, v: all(n in v for n in k)),
    "properties": (OF_TYPE["object"], lambda s, k, v: all(valid(k[n], e) for n, e in v.items() if n in k)),
    "additionalProperties": (OF_TYPE["object"], lambda s, k, v: all(
        valid(k, e) for n, e in v.items() if n not in s.get("properties", {}))),
}


def valid(schema, value):
    """What the keywords above mean, written apart from the library."""
    if isinstance(schema, bool):
        return schema
    return all(KEYWORDS[key][1](schema, given, value) for key, given in schema.items()
               if key in KEYWORDS and KEYWORDS[key][0](value))


def checked(schema, value):
    """valid, which is also what jsonschema says where that is asked for."""
    mine = valid(schema, value)
    if os.environ.get("TEST_JSONSCHEMA"):
        import jsonschema # its own multipleOf divides in binary
        def multiple(validator, of, given, schema):
            if number(given) and exact(given) % exact(of):
                yield jsonschema.ValidationError("")
        kind = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"multipleOf": multiple})
        assert kind(schema).is_valid(value) == mine, (schema, value, mine)
    return mine


def written(of):
    """A text of the grammar, drawn byte by byte; None where it grows too long."""
    text = b""
    likely = [bytes([c]) for c in b'"}],:0123456789.- abcdtrulefsnkxyzq_\\\xc3\xa9{[']
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


def drawn(schema):
    """A value that may be valid by a combined schema."""
    return draw.choice([draw.randint(-40, 40), draw.randint(-400, 400) / 4, draw.randint(-4000, 4000) / 100, "", "a", "bc", "yzx",
                        "abbc", None, [], [1], {"k": 1}, {"a": 1, "b": 7}, {"a": 1, "b": 2}, {"b": 7, "c": 0, "d": None}, {"a": 3},
                        {"b": 6, "x": True}, {"k": "a", "a": 1}, {"k": "ab"}, {"k": "b", "a": 1}, {}, {"a": 1}])


# Texts that fit patterns, by how these begin.
FITTING = {"^[": ["a", "abc", "bb"], "^(": ["7", "x1", "yz2", "xyzx7"], "a.": ["..a\u00e9b..", "a b"], "^\\": ["a b", "one 2"],
           "^a": ["aa", "aab", "aabbc", "aacc"]}


def instance(schema):
    """A value that may be valid, with members in the schema's order."""
    if schema.keys() & {"multipleOf"}:
        step = schema["multipleOf"]
        value = draw.randint(-50, 50) * exact(step) + (exact(schema.get("minimum", 0)) // exact(step)) * exact(step)
        return int(value) if value.denominator == 1 else float(value)
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
            return draw.choice(FITTING[schema["pattern"][:2]])
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


def wide(kind):
    """oneOf of many alternatives that exclude each other."""
    if kind == "constants":
        return {"oneOf": [{"const": f"k{i}"} for i in range(300)]}
    return {"oneOf": [{"type": "integer", "minimum": 10 * i, "exclusiveMaximum": 10 * i + 10} for i in range(300)]}


def check_one(schema, values, whole=True, times=3):
    """`whole`: the grammar has each valid value."""
    of, written_ones = grammar(schema), 0
    for value in values:
        text = json.dumps(value, ensure_ascii=False).encode()
        is_valid = checked(schema, value)
        assert fits(of, text) != 2 or is_valid, (schema, text)
        assert fits(of, text) == 2 or not whole or not is_valid or not is_written(schema, value), (schema, text)
    for _ in range(times):
        text = written(of)
        if text is not None:
            written_ones += 1
            assert checked(schema, json.loads(text)), (schema, text)
    lm.tn_lm_grammar_close(of)
    return written_ones


def is_written(schema, value):
    """Whether the grammar has such a value if it is valid: not whole numbers with a point, nor what lacks its tag."""
    has_tag = "discriminator" not in schema or not isinstance(value, dict) or "k" in value
    return has_tag and not (isinstance(value, float) and value == int(value))


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 120
    texts = read = read_wild = 0
    for _ in range(count):
        schema = schema_of(2)
        if not is_read(schema):
            continue
        of = grammar(schema)
        for indent in (None, 2):
            value = instance(schema)
            if checked(schema, value):
                text = json.dumps(value, ensure_ascii=False, indent=indent).encode()
                assert fits(of, text) == 2, (schema, text)
        text = written(of)
        if text is not None:
            texts += 1
            assert checked(schema, json.loads(text)), (schema, text)
        lm.tn_lm_grammar_close(of)
    for _ in range(count):
        schema = combined()
        if is_read(schema):
            read += 1
            texts += check_one(schema, [drawn(schema) for _ in range(30)])
    for _ in range(count):
        schema = wild(2)
        if is_read(schema):
            read_wild += 1
            check_one(schema, [drawn(schema) for _ in range(20)], False, 4)
    for kind, value in (("constants", "k299"), ("ranges", 2999)):
        check_one(wide(kind), [value, "k300", 3000, 0])
    assert texts > count, texts
    assert min(decided) > 3, decided
    assert read > count * 3 // 4 and read_wild > count // 3, (read, read_wild)
    print(f"1..1\nok 1 - {texts} texts that grammars wrote are valid; of {sum(decided)} oneOf {decided[1]} are read, "
          f"of {count} combined {read}, of as many wild {read_wild}")


main()
