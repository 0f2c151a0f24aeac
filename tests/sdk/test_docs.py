#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Guides are followed word for word: their files are written, their commands run in a clean folder
with an installed Tenon, and what they print is compared with what the guide shows.

A fenced block in a guide is one of three things:
  ```sh           commands, each after "$ ", and what they print; a line "..." stands for any lines,
                  "…" for any text within one; where nothing is shown, nothing is compared
  what a paragraph that ends in `FILE`: is followed by   the contents of that file, written there
  what one that ends in "in `FILE`:" is followed by      a piece of that file, which is there
"""

import pathlib
import re
import shlex
import sys

import bench

GUIDES = ["first-op-pack.md", "backend-guide.md", "format-guide.md", "model-guide.md", "plugins.md", "deploy.md", "models-in-c.md",
          "training.md"]


def blocks(text):
    """(line number, kind, argument, lines) of each fenced block."""
    found, caption, opened, ended = [], "", None, False
    for number, line in enumerate(text.splitlines(), 1):
        if opened is not None and line == "```":
            found.append((*opened, lines))
            opened, caption = None, ""
        elif opened is not None:
            lines.append(line)
        elif line.startswith("```"):
            language, lines = line[3:], []
            if language == "sh":
                opened = (number, "commands", "")
            elif match := re.search(r"(\bin )?`([^`]+)`:$", caption):
                opened = (number, "piece" if match[1] else "file", match[2])
            else:
                raise ValueError(f"line {number}: neither commands nor a file")
        elif line:
            caption = line if ended else f"{caption} {line}"
        ended = not line
    return found


def commands(lines):
    """(command, the lines shown) of a block; a command goes on after a backslash."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return found


def pattern(shown):
    """The regular expression of what is shown."""
    parts = []
    for line in shown:
        parts.append("(?:.*\n)*?" if line == "..."
                     else "[^\n]*".join(map(re.escape, line.split("…"))) + "\n")
    return "".join(parts)


class Guide(bench.Bench):
    def install_for_guides(self):
        """Tenon installs"""
        self.install()
        # `tenon check` leaves the suite out: test_new.py checks the same backend with it.
        self.installed("tenon-suite").unlink()
        del self.env["XDG_DATA_HOME"], self.env["XDG_CACHE_HOME"]

    def begin(self, name):
        self.home = self.folder / name / "you"
        (self.home / "work").mkdir(parents=True)
        self.env["HOME"] = str(self.home)
        self.state = self.folder / name / "state"
        self.state.write_text(f"cd {shlex.quote(str(self.home / 'work'))}\n")

    def where(self, file):
        folder = re.search(r"^cd (.*)$", self.state.read_text(), re.M)[1]
        return pathlib.Path(shlex.split(folder)[0], file)

    def shell(self, command):
        """Runs one command where the last one left off. What it printed, on both streams."""
        script = (f". {self.state}\n{{ {command}\n}} 2>&1\nstatus=$?\n"
                  f"{{ echo cd \"$(printf %q \"$PWD\")\"; export -p; }} >{self.state}\n"
                  "exit $status\n")
        done = self.finished("bash", "-c", script)
        return done.returncode, done.stdout.replace(str(self.home), "/home/you")

    def follow_commands(self, lines):
        for command, shown in commands(lines):
            status, printed = self.shell(command)
            printed = "".join(l.rstrip() + "\n" for l in printed.splitlines())
            may_fail = any("error: " in l or l.startswith("tenon: ") for l in shown)
            assert status == 0 or may_fail, f"$ {command}\n  status {status}\n{printed}"
            assert not shown or re.fullmatch(pattern(shown), printed), \
                f"$ {command}\nprinted\n{printed}\nand the guide shows\n" + "\n".join(shown)

    def follow_readme(self):
        """The README's commands print what it shows"""
        self.begin("README.md")
        for block in re.findall(r"^```sh\n(.*?)^```$", (self.args.source / "README.md").read_text(), re.M | re.S):
            self.follow_commands(block.splitlines())

    def follow(self, name):
        self.begin(name)
        guide = (self.args.source / "docs" / name).read_text()
        for line, kind, file, lines in blocks(guide):
            text = "\n".join(lines) + "\n"
            try:
                if kind == "commands":
                    self.follow_commands(lines)
                elif kind == "file":
                    self.where(file).write_text(text)
                else:
                    assert text in self.where(file).read_text(), f"{file} has no such piece"
            except AssertionError as error:
                raise AssertionError(f"docs/{name}, the block of line {line}: {error}") from None


def tests_of(guide):
    return [(each.__doc__, each, ()) for each in (guide.install_for_guides, guide.follow_readme)] + [
        (f"{name} can be followed word for word", guide.follow, (name,)) for name in GUIDES]


if __name__ == "__main__":
    sys.exit(bench.run(tests_of, Guide))
