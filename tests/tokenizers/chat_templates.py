#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the list of known chat templates, and what the tests compare with.

  chat_templates.py SOURCE... [--check]

By hand, in a virtual environment that has jinja2 and gguf, with a C compiler. A SOURCE is an archive of
llama-cpp-python's sources, a wheel of PyPI with files *.jinja or the beginning of a GGUF file in it, a GGUF file, or a
folder of *.jinja. Each template is run by Jinja as transformers does it, on conversations with and
without a system message, of several turns, with a reply to come; a template is listed under the first family of
sdk/lm/text/template.c that writes the same bytes. Some have conversations that Jinja refuses or Tenon cannot write: the list says which,
and Tenon refuses them. Writes sdk/lm/text/template_list.h and tests/tokenizers/chat_templates.h; with --check
nothing, and fails where these are not what it would write. What is not listed is printed, with what Jinja writes.
"""

import argparse
import ctypes
import datetime
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import gguf
import jinja2
import jinja2.ext
import jinja2.sandbox

TOP = pathlib.Path(__file__).resolve().parents[2]
DAY = datetime.datetime(2026, 3, 7, 12, 0, 0)
BOS, EOS = "<s>", "</s>"

BEGINS, NO_SYSTEM, NEEDS_SYSTEM, SYSTEM_FIRST, ALTERNATES = 2, 4, 8, 16, 32
FLAGS = {BEGINS: "BEGINS", NO_SYSTEM: "NO_SYSTEM", NEEDS_SYSTEM: "NEEDS_SYSTEM", SYSTEM_FIRST: "SYSTEM_FIRST",
         ALTERNATES: "ALTERNATES"}

# Conversations as (role, text): s, u, a. The first of each kind are those of the tests.
PLAIN = [
    [("u", "Hi")],
    [("u", "Hi"), ("a", "Yo"), ("u", "More")],
    [("u", " a\n"), ("a", "\n <think>\nhm\n</think>\n\n\t Yo \n"), ("u", "\n b  "), ("a", "x</think>  y </think>\n z"), ("u", "c")],
    [("u", "\u3000ü\u00a0"), ("a", "\x1fé\u2003"), ("u", "{{ 1 }}"), ("a", "'\"\\n"), ("u", "\u2028.\x85")],
    [("u", "1"), ("a", "2"), ("u", "3"), ("a", "4"), ("u", "5"), ("a", "6"), ("u", "7")],
]
SYSTEM = [[("s", "Be brief."), *PLAIN[0]], [("s", "Be brief."), *PLAIN[1]], [("s", "\n Be\n\tbrief. \n"), *PLAIN[2]],
          [("s", "\u00a0{% s %}\u3000"), *PLAIN[3]], [("s", "S"), *PLAIN[4]]]
TURNS = [[("u", "1"), ("u", "2")], [("u", "1"), ("a", "2"), ("a", "3"), ("u", "4")]]
LATE_SYSTEM = [[("u", "1"), ("a", "2"), ("s", "S"), ("u", "3")], [("s", "S"), ("s", "T"), ("u", "3")]]
NAMES = {"s": "system", "u": "user", "a": "assistant"}


class Refused(Exception):
    """A conversation that one of both has no text for."""


# --- Jinja ------------------------------------------------------------------------------

def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Generation(jinja2.ext.Extension):
    """{% generation %}, which marks what an assistant said, and writes what is in it."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def compiled(text):
    """As transformers does it."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                               extensions=[jinja2.ext.loopcontrols, Generation])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = DAY.strftime
    return environment.from_string(text)


def run(template, text, talk):
    has_parts = "['content'][0]['type']" in text # of models that read images
    messages = [{"role": NAMES[role], "content": [{"type": "text", "text": words}] if has_parts else words}
                for role, words in talk]
    try:
        return template.render(messages=messages, tools=None, documents=None, add_generation_prompt=True,
                               bos_token=BOS, eos_token=EOS, unk_token="<unk>", pad_token="<pad>")
    except (jinja2.exceptions.TemplateError, TypeError) as error:
        raise Refused(str(error)) from error


# --- Tenon ------------------------------------------------------------------------------

class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("text", ctypes.c_char_p), ("front", ctypes.c_char_p)]


class Template(ctypes.Structure):
    _fields_ = [("family", ctypes.c_void_p), ("flags", ctypes.c_uint32), ("system", ctypes.c_char_p),
                ("system_size", ctypes.c_uint64), ("now", ctypes.c_int64)]


class Tenon:
    """sdk/lm/text/template.c, and the finding of a template's own system message."""

    def __init__(self, folder):
        library = pathlib.Path(folder) / "template.so"
        # find_system is of one file alone: seen by another name.
        source = (f'#include "{TOP}/sdk/lm/text/template.c"\n#undef COUNT\n#include "{TOP}/sdk/lm/text/template_known.c"\n'
                  "void own_system(const char *text, uint64_t size, struct chat_template *out)\n"
                  "{\n    if (chat_template_finds_system(out))\n        find_system(text, size, out);\n}\n")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-lnettle"],
                       input=source.encode(), check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.chat_template_write.restype = ctypes.c_char_p
        self.library.chat_template_find.restype = ctypes.c_bool
        names = ctypes.create_string_buffer(4096)
        self.library.chat_template_names(names, ctypes.c_uint64(4096))
        self.families = names.value.decode().split(", ")

    def template(self, family, text, flags):
        found = Template()
        assert self.library.chat_template_find(family.encode(), ctypes.byref(found))
        self.text = text.encode() # borrowed
        self.library.own_system(self.text, ctypes.c_uint64(len(self.text)), ctypes.byref(found))
        found.flags, found.now = flags, int(DAY.timestamp()) # of noon here
        return found

    def write(self, template, talk):
        messages = (Message * len(talk))(*[Message(NAMES[role].encode(), words.encode(), None) for role, words in talk])
        out, size = ctypes.create_string_buffer(1 << 16), ctypes.c_uint64()
        wrong = self.library.chat_template_write(ctypes.byref(template), messages, ctypes.c_uint64(len(talk)), True, out,
                                                 ctypes.c_uint64(1 << 16), ctypes.byref(size), None, None)
        if wrong:
            raise Refused(wrong.decode())
        return out.raw[:size.value].decode()


# --- comparing --------------------------------------------------------------------------

def without_begin(text, flags):
    return text[len(BOS):] if flags & BEGINS else text


def spared(family, talk):
    """smolvlm: a reply begins with the space that stands in front of it in the form, which is left out."""
    trims = {"smolvlm", "idefics3"}
    return [(role, words.strip() if role == "a" else words) for role, words in talk] if family in trims else talk


def first_difference(tenon, candidate, jinja, text, talks):
    """None, or (talk, Jinja's text, Tenon's) of the first that differ. What Jinja refuses differs from any text."""
    family, flags = candidate
    own = tenon.template(family, text, flags)
    for talk in talks:
        talk = spared(family, talk)
        try:
            expected = without_begin(run(jinja, text, talk), flags)
        except Refused as error:
            expected = error
        try:
            got = tenon.write(own, talk)
        except Refused as error:
            got = error
        if isinstance(expected, Refused) and isinstance(got, Refused):
            continue
        if got != expected:
            return talk, expected, got
    return None


def begins(jinja, text):
    """Whether the template writes the token that begins a text."""
    for talk in (PLAIN[0], SYSTEM[0]):
        try:
            return BEGINS if run(jinja, text, talk).startswith(BOS) else 0
        except Refused as error:
            refused = error
    raise refused


def with_limits(tenon, jinja, text, family, flags):
    """The flags with those that refuse what both would write differently; None where that is not enough."""
    plain, system = (first_difference(tenon, (family, flags), jinja, text, talks) for talks in (PLAIN, SYSTEM))
    if plain and system:
        return None
    flags |= (NO_SYSTEM if system else 0) | (NEEDS_SYSTEM if plain else 0)
    turns = [[*SYSTEM[4][:1], *talk] for talk in TURNS] if plain else TURNS
    late = [] if system else LATE_SYSTEM[1:] if plain else LATE_SYSTEM
    for flag, talks in ((ALTERNATES, turns), (SYSTEM_FIRST, late)):
        if first_difference(tenon, (family, flags), jinja, text, talks):
            flags |= flag
    every = [*PLAIN, *SYSTEM, *turns, *late]
    written = [talk for talk in every if not refuses(tenon, (family, flags), text, talk)]
    return None if first_difference(tenon, (family, flags), jinja, text, written) else flags


def matched(tenon, jinja, text):
    """(family, flags) with the fewest conversations refused, or (None, why not)."""
    try:
        begin = begins(jinja, text)
    except Refused as error:
        return None, str(error)
    found = [(family, with_limits(tenon, jinja, text, family, begin)) for family in tenon.families]
    found = [(family, flags) for family, flags in found if flags is not None]
    if found:
        return min(found, key=lambda row: bin(row[1] & (NO_SYSTEM | NEEDS_SYSTEM)).count("1"))
    return None, run_or_refusal(jinja, text, PLAIN[1]) + " | " + run_or_refusal(jinja, text, SYSTEM[1])


def run_or_refusal(jinja, text, talk):
    try:
        return repr(run(jinja, text, talk))
    except Refused as error:
        return f"refused: {error}"


def refuses(tenon, candidate, text, talk):
    try:
        tenon.write(tenon.template(candidate[0], text, candidate[1]), talk)
    except Refused:
        return True
    return False


# --- sources ----------------------------------------------------------------------------

def of_gguf(data, name):
    """The template of the beginning of a GGUF file: its text follows its key."""
    key = b"tokenizer.chat_template"
    at = data.find(len(key).to_bytes(8, "little") + key)
    if at < 0:
        return []
    at += 8 + len(key)
    assert int.from_bytes(data[at:at + 4], "little") == gguf.GGUFValueType.STRING
    size = int.from_bytes(data[at + 4:at + 12], "little")
    return [(name, data[at + 12:at + 12 + size].decode())]


def of_cases(data, name):
    """The templates within llama.cpp's tests: literals of C that Python reads as well."""
    literal = r'("(?:[^"\\]|\\.)*")'
    found = re.findall(r"/\* \.name= \*/ " + literal + r",\s*/\* \.template_str= \*/ " + literal, data.decode())
    return [(f"{name}: {json.loads(title)}", json.loads(text.replace(r"\'", "'"))) for title, text in found]


def of_file(path, data, package):
    name = f"{package}: {pathlib.PurePath(path).stem}"
    if path.endswith(".jinja") and not path.endswith("_training.jinja"):
        return [(name, data().decode())]
    if path.endswith("tests/test-chat-template.cpp"):
        return of_cases(data(), f"{package}: test")
    content = data() if not path.endswith((".py", ".so", ".json")) else b""
    return of_gguf(content, package) if content[:4] == b"GGUF" else []


def of_source(path):
    package = re.sub(r"[-_][0-9.]+(-py.*)?$", "", re.sub(r"\.(tar\.gz|whl|gguf)$", "", path.name))
    if path.is_dir():
        return [(f"{package}: {p.stem}", p.read_bytes().decode()) for p in sorted(path.glob("*.jinja"))]
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            wanted = [m for m in archive if m.isfile() and ("/models/templates/" in m.name or
                                                            m.name.endswith("tests/test-chat-template.cpp"))]
            return [t for m in wanted for t in of_file(m.name, lambda m=m: archive.extractfile(m).read(), "llama.cpp")]
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return [t for n in archive.namelist() for t in of_file(n, lambda n=n: archive.read(n), package)]
    with open(path, "rb") as file:
        return of_gguf(file.read(1 << 26), package)


# --- writing ----------------------------------------------------------------------------

def c_text(text):
    out = ""
    for byte in text.encode():
        out += {10: "\\n", 34: '\\"', 92: "\\\\"}.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
    return f'"{out}"'


def flag_text(flags):
    return " | ".join(f"TEMPLATE_{text}" for flag, text in FLAGS.items() if flags & flag) or "0"


def list_text(rows):
    out = io.StringIO()
    out.write("// SPDX-License-Identifier: MIT\n// The templates that are known; made by tests/tokenizers/chat_templates.py.\n"
              "#ifndef LM_TEMPLATE_LIST_H\n#define LM_TEMPLATE_LIST_H\n\n// clang-format off\n"
              "static const struct known_template known_templates[] = {\n")
    for digest, (family, flags, name) in sorted(rows.items(), key=lambda row: (row[1][0], row[1][2])):
        out.write(f'    {{"{digest}", "{family}",\n     {flag_text(flags)}}}, // {name}\n')
    out.write("};\n// clang-format on\n\n#endif // LM_TEMPLATE_LIST_H\n")
    return out.getvalue()


CASES = [*PLAIN[:4], *SYSTEM[:4], TURNS[0], LATE_SYSTEM[0]]


def written_case(tenon, family, flags, jinja, text, talk):
    talk = spared(family, talk)
    if refuses(tenon, (family, flags), text, talk):
        return "REFUSED"
    if tenon.template(family, text, flags).system and talk[0][0] != "s":
        return "OWN_SYSTEM"
    written = run(jinja, text, talk)
    return c_text(written.removeprefix(BOS))


def cases_text(tenon, cases):
    """What Jinja wrote, of one template for each family and kind."""
    out = io.StringIO()
    out.write("// SPDX-License-Identifier: MIT\n// What Jinja writes of each family of templates; made by chat_templates.py.\n"
              "#ifndef TOKENIZERS_CHAT_TEMPLATES_H\n#define TOKENIZERS_CHAT_TEMPLATES_H\n\n"
              "#include <stdint.h>\n\n"
              f"#define NOW INT64_C({int(DAY.replace(tzinfo=datetime.timezone.utc).timestamp())}) // {DAY}, UTC\n"
              "#define REFUSED NULL\n#define OWN_SYSTEM \"\" // the text has one that is in the template: not compared\n\n"
              f"enum {{ NUM_TALKS = {len(CASES)} }};\n\n"
              "// clang-format off\nstatic const struct {\n    const char *roles; // a letter for each message\n"
              "    const char *texts[8];\n} talks[NUM_TALKS] = {\n")
    for talk in CASES:
        out.write(f'    {{"{"".join(role for role, _ in talk)}", {{{", ".join(c_text(words) for _, words in talk)}}}}},\n')
    out.write("};\n\nstatic const struct {\n    const char *family;\n    uint32_t flags;\n"
              "    const char *texts[NUM_TALKS]; // of the talks\n} rendered[] = {\n")
    for (family, flags), (jinja, text) in sorted(cases.items()):
        out.write(f'    {{"{family}", {flag_text(flags)}, {{\n')
        for talk in CASES:
            out.write(f"     {written_case(tenon, family, flags, jinja, text, talk)},\n")
        out.write("     }},\n")
    out.write("};\n// clang-format on\n\n#endif // TOKENIZERS_CHAT_TEMPLATES_H\n")
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    rows, cases, unlisted = {}, {}, 0
    with tempfile.TemporaryDirectory() as folder:
        tenon = Tenon(folder)
        for name, text in [template for source in arguments.sources for template in of_source(source)]:
            text = text.removesuffix("\n")
            digest = hashlib.sha256(text.encode()).hexdigest()
            try:
                jinja = compiled(text)
                family, flags = matched(tenon, jinja, text)
            except jinja2.exceptions.TemplateSyntaxError as error:
                family, flags = None, str(error)
            if not family:
                unlisted += 1
                print(f"{name}: not listed: {flags}")
            elif digest not in rows:
                rows[digest] = family, flags, name
                cases.setdefault((family, flags & ~BEGINS), (jinja, text))
        files = {TOP / "sdk/lm/text/template_list.h": list_text(rows),
                 TOP / "tests/tokenizers/chat_templates.h": cases_text(tenon, cases)}
    print(f"{len(rows)} texts listed of {len({f for f, _ in cases})} families; {unlisted} templates not listed")
    for path, text in files.items():
        if not arguments.check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path} is not what these sources give")


if __name__ == "__main__":
    main()
