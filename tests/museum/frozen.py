# SPDX-License-Identifier: MIT
"""What the museum and tools/freeze-abi know of frozen header sets: tests/museum/MAJOR.MINOR/.
There is none before the first release.

A set has include/ (sdk/include as it was), plugins/ and application.c (written for it),
SHA256SUMS of them all, and RELEASED once the minor has been released.
"""

import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADERS = ROOT / "sdk/include"
SUMS, RELEASED = "SHA256SUMS", "RELEASED"
# Records that grow without a struct_size: whoever lists them gives the size of one.
SIZED_ELSEWHERE = {"struct tn_attr_field", "struct tn_slot", "struct tn_run_memory"}
# Never crosses the ABI: it is how TN_PLUGIN writes a tn_note.
OWN_SIDE = {"struct tn_note_image"}

CONSTANTS = re.compile(r'^#define (TN_\w+) ("[^"]*"|\d+|U?INT64_\w+(?:\(\w+\))?)[ \t]*$', re.M)

sys.path.insert(0, str(ROOT / "tests/headers"))
import pin_offsets  # noqa: E402


def version(include):
    """(major, minor) of a header set."""
    text = (include / "tenon/plugin.h").read_text()
    return tuple(int(re.search(rf"^#define TN_ABI_{part} (\d+)$", text, re.M)[1])
                 for part in ("MAJOR", "MINOR"))


def name(numbers):
    return ".".join(map(str, numbers))


def sets(museum=HERE):
    """The folders of a museum's frozen sets, oldest first."""
    found = [p for p in museum.iterdir() if re.fullmatch(r"\d+\.\d+", p.name)]
    return sorted(found, key=lambda p: tuple(map(int, p.name.split("."))))


# --- nothing in a set changes ----------------------------------------------------------


def hashes(folder):
    """{path: SHA-256} of a set's files."""
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and p.name != SUMS}


def write_sums(folder):
    lines = [f"{digest}  {path}\n" for path, digest in hashes(folder).items()]
    (folder / SUMS).write_text("".join(lines))


def damage(folder):
    """Sentences about files that are not as they were frozen."""
    lines = (folder / SUMS).read_text().splitlines() if (folder / SUMS).exists() else []
    frozen = {path: digest for digest, path in (line.split("  ", 1) for line in lines)}
    now = hashes(folder)
    if not frozen:
        return [f"{folder}: has no {SUMS}"]
    return [f"{folder}/{path}: " + ("is missing" if path not in now else
                                    "was not frozen" if path not in frozen else
                                    "was edited after it was frozen")
            for path in sorted(frozen | now) if frozen.get(path) != now.get(path)]


# --- later headers only add ------------------------------------------------------------


def declarations(include):
    """{struct: [member declaration]}, {constant: value}, {function: declaration}."""
    structs, constants, functions = {}, {}, {}
    for header in sorted(include.glob("tenon/**/*.h")):
        text = pin_offsets.COMMENTS.sub(" ", header.read_text())
        for found in CONSTANTS.finditer(text):
            constants[found[1]] = found[2]
        text = pin_offsets.DIRECTIVES.sub("", text)
        for found in re.finditer(r"struct\s+(\w+)\s*\{", text):
            members = pin_offsets.split(pin_offsets.block(text, found.end() - 1), ";")
            structs["struct " + found[1]] = [" ".join(m.split()) for m in members]
        for found in re.finditer(r"\bTN_API\s([^;{]*?(\w+)\s*\([^;{]*\));", text):
            functions[found[2]] = " ".join(found[1].split())
    return structs, constants, functions


def same_member(old, new):
    """Padding may get a meaning, as zero goes on meaning what it did."""
    if re.search(r"\breserved\w*(\[\d+\])?$", old):
        return old.split()[0] == new.split()[0]
    return old == new


def changed_declarations(old, new):
    old_structs, old_constants, old_functions = declarations(old)
    new_structs, new_constants, new_functions = declarations(new)
    wrong = []
    for struct, members in old_structs.items():
        later = new_structs.get(struct, [])
        for i, member in enumerate(members):
            if i >= len(later) or not same_member(member, later[i]):
                now = later[i] if i < len(later) else "nothing"
                wrong.append(f"{struct}: `{member}` became `{now}`")
                break
    versions = {"TN_ABI_MAJOR", "TN_ABI_MINOR", "TN_VERSION"}
    for what, before, after in (("constant", old_constants, new_constants),
                                ("function", old_functions, new_functions)):
        wrong += [f"{what} {k}: `{v}` became `{after.get(k, 'nothing')}`"
                  for k, v in before.items() if k not in versions and after.get(k) != v]
    return wrong


def pins(include, compiler):
    structs, enumerators = pin_offsets.scan(include)
    text = pin_offsets.measure(structs, enumerators, include, compiler)
    found = re.findall(r"PIN\((.*?) == (?:INT64_C\()?(-?\d+)", text)
    growing = SIZED_ELSEWHERE | OWN_SIDE | {s for s, m in structs if "struct_size" in m}
    return {what: int(value) for what, value in found}, growing


def disagreements(old, new, compiler):
    """Sentences about what plugins built with the headers in `old` would find changed in
    `new`: moved or retyped members, structs that grew though nobody can know, constants."""
    wrong = changed_declarations(old, new)
    (before, _), (after, growing) = pins(old, compiler), pins(new, compiler)
    for what, value in before.items():
        now = after.get(what)
        size_of = re.fullmatch(r"sizeof\((.*)\)", what)
        if size_of and now is not None and now > value and size_of[1] in growing:
            continue
        if now != value and not re.search(r", reserved\w*\)$", what):
            wrong.append(f"{what} was {value} and is {now}")
    return wrong


def additions(old, new, compiler):
    """What `new` has and `old` lacks: members, structs, enumerators."""
    return sorted(set(pins(new, compiler)[0]) - set(pins(old, compiler)[0]))
