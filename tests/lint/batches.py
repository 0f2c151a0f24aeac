# SPDX-License-Identifier: MIT
"""tools/unity/unity.py: which pairs of files share a batch, and that those that do compile.

    batches.py UNITY COMPILER...
"""

import pathlib
import subprocess
import sys
import tempfile

HEADERS = {
    "own.h": "#pragma once\nstruct held { int of; };\nenum { MOST = 3 };\nstatic inline int twice(int four) { return four * 2; }\n",
    "other.h": "#pragma once\nextern int limit(int);\n",
    "mark.h": "#ifndef MARK\n#define MARK\n#define SIZE 4\n#endif\n",
    "over.h": "#pragma once\n#define NAME g\n#include \"again.inc.h\"\n",
    "again.inc.h": "static int NAME(void) { return 1; }\n#undef NAME\n",
}

# (the first file, the second, whether they share a batch)
PAIRS = [
    ("static int f(void);\nint a(void) { return f(); }\nstatic int f(void) { return 1; }\n",
     "int b(void) { int g = 2; return g; }\n", True),
    ("static int f(void) { return 1; }\nint a(void) { return f(); }\n",
     "static long f(void) { return 2; }\nlong b(void) { return f(); }\n", False),
    # A function that is shared by its declaration.
    ("int b(void);\nint a(void) { return b(); }\n", "int b(void);\nint b(void) { return 2; }\n", True),
    # Variables: alone, behind an initialiser, with a function's type, of a type that has no name.
    ("static int n;\nint a(void) { return n++; }\n", "static int n;\nint b(void) { return n++; }\n", False),
    ("static const int k[] = {1, 2}, m[2][2] = {{1}, {2}}, n = 3;\nint a(void) { return k[0] + m[0][0] + n; }\n",
     "int b(void) { int n = 2; return n; }\n", False),
    ("static int (*n)(void);\nint a(void) { return n ? n() : 0; }\n", "int b(int n);\nint b(int n) { return n; }\n", False),
    ("static struct { int of; } n;\nint a(void) { return n.of; }\n", "int b(int n);\nint b(int n) { return n; }\n", False),
    # A member is no name of its own; what a string or a comment says neither.
    ("static int n;\nint a(void) { return n++; }\n",
     'struct s { int of; };\nint b(const struct s *s) { return s -> of; } // n\nconst char *c = "n";\n', True),
    ("static int of;\nint a(void) { return of++; }\n",
     '#include "own.h"\nint b(const struct held *s) { return s->of + MOST; }\n', True),
    # Types, enumerators and macros.
    ("struct s { int x; };\nint a(struct s *s) { return s->x; }\n",
     "struct s { long x; };\nlong b(struct s *s) { return s->x; }\n", False),
    ("struct s;\nint a(struct s *s) { return !s; }\n", "struct s { long x; };\nlong b(struct s *s) { return s->x; }\n", True),
    ("typedef int t;\nint a(t x) { return x; }\n", "typedef long t;\nlong b(t x) { return x; }\n", False),
    ("enum { RED, BLUE };\nint a(void) { return BLUE; }\n", "enum { BLUE };\nint b(void) { return BLUE; }\n", False),
    ("#define K 2\nint a(void) { return K; }\n", "int b(int K) { return K; }\n", False),
    ("#define K 2\nint a(void) { return K; }\n#undef K\n", "int b(int K) { return K; }\n", True),
    # Names in headers count for files that do not include them; one that both include is no matter.
    ('#include "own.h"\nint a(void) { return twice(MOST); }\n', "static int twice(void) { return 2; }\nint b(void) { return twice(); }\n", False),
    ('#include "own.h"\nint a(void) { return twice(MOST); }\n', '#include "own.h"\nint b(void) { return twice(2); }\n', True),
    ("static int four;\nint a(void) { return four++; }\n", '#include "own.h"\nint b(void) { return twice(2); }\n', False),
    ("static int limit(void) { return 1; }\nint a(void) { return limit(); }\n",
     '#include "other.h"\nint b(void) { return limit(2); }\n', False),
    ('#include "mark.h"\nint a(void) { return SIZE; }\n', "enum { SIZE = 2 };\nint b(void) { return SIZE; }\n", False),
    # What includes a header twice has names that only the preprocessor knows.
    ('#define NAME f\n#include "again.inc.h"\nint a(void) { return f(); }\n', "int b(void) { return 2; }\n", False),
    ('#include "over.h"\nint a(void) { return g(); }\n', "int b(void) { return 2; }\n", False),
]


def filled(folder, texts, count):
    """The batches of the sources with these texts, and the finished process."""
    sources, outputs = [], []
    for i, text in enumerate(texts):
        sources.append(folder / f"{i}.c")
        sources[-1].write_text(text)
    for i in range(count):
        outputs.append(folder / "made" / f"{i}.c")
    (folder / "made").mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, sys.argv[1], folder / "made.d", *outputs, "--", *sources], capture_output=True, text=True, check=False)
    return outputs, done


def compile_all(files):
    for file in files:
        done = subprocess.run([*sys.argv[2:], "-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only", file],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{file.read_text()}{done.stderr}"


def check_pair(folder, first, second, together):
    outputs, done = filled(folder, [first, second], 2)
    assert done.returncode == 0, done.stderr
    held = [file.read_text().count("#include") for file in outputs]
    assert held == ([2, 0] if together else [1, 1]), f"{first}---\n{second}: got {held} files in batches"
    compile_all(outputs)


def check_too_few(folder):
    _, done = filled(folder, ["static int f;\nint *a = &f;\n", "static int f;\nint *b = &f;\n"], 1)
    assert done.returncode == 1 and "1.c: each of 1 batches has 14 files or one that shares a name with it" in done.stderr, done.stderr


def check_unchanged(folder):
    """A batch whose files stay is not written: what was compiled of it stays as well."""
    texts = ["int a(void) { return 1; }\n", "int b(void) { return 1; }\n"]
    outputs, _ = filled(folder, texts, 1)
    before = outputs[0].stat().st_mtime_ns
    filled(folder, [texts[0], "int b(void) { return 2; }\n"], 1)
    assert outputs[0].stat().st_mtime_ns == before, "the batch was written again"


def check_headers(folder):
    """A change of a header divides its readers anew."""
    filled(folder, ['#include "own.h"\nint a(void) { return twice(MOST); }\n'], 1)
    output, read = (folder / "made.d").read_text().split(": ")
    assert output.endswith("0.c") and f"{folder.resolve()}/own.h" in read.split(), (output, read)


def main():
    checks = [lambda folder, row=row: check_pair(folder, *row) for row in PAIRS] + [check_too_few, check_unchanged, check_headers]
    for check in checks:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for header, text in HEADERS.items():
                (folder / header).write_text(text)
            check(folder)


main()
