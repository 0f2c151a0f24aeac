#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the man pages: tenon(1) and one for each command, from what `tenon commands --json`
says and the table of docs/environment.md; tenon-glslc(1) from its --help.

pages.py --tenon COMMAND --glslc COMMAND --environment environment.md --version 0.1.0 -o DIRECTORY
"""

import argparse
import json
import os
import pathlib
import re
import subprocess


def escaped(text):
    """Text as roff prints it: every sign stands for itself."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def inline(markdown):
    """One line of Markdown: `code` is bold, links are their text."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    parts = re.split(r"`([^`]*)`", text)
    return "".join(f"\\fB{escaped(p)}\\fR" if i % 2 else escaped(p) for i, p in enumerate(parts))


def paragraphs(text):
    """Paragraphs of running text; lines that start with two spaces are shown as they are."""
    lines, shown = [], False
    for line in text.rstrip("\n").split("\n"):
        is_shown = line.startswith("  ")
        if is_shown and not shown:
            lines += [".PP", ".nf", ".RS 4"]
        elif shown and not is_shown:
            lines += [".RE", ".fi", ".PP"]
        if line.strip():
            lines.append(escaped(line[2:] if is_shown else line))
        elif lines and lines[-1] != ".PP" and not is_shown:
            lines.append(".PP")
        shown = is_shown
    lines += [".RE", ".fi"] if shown else []
    return [line for i, line in enumerate(lines)
            if line != ".PP" or (0 < i < len(lines) - 1 and lines[i + 1] not in (".PP",))]


def sentence(text):
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def page_name(command):
    return "-".join(["tenon", *command.split()])


def head(name, summary, version):
    return [f'.\\" Made from the command\'s own help by tools/man/pages.py.',
            f'.TH {name.upper()} 1 "" "tenon {version}" "Tenon"',
            ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]


def options(command):
    lines = [".SH OPTIONS"]
    for option in command["options"]:
        names = [f"\\-{option['letter']}"] if "letter" in option else []
        names.append("\\-\\-" + escaped(option["name"]))
        value = f" \\fI{escaped(option['value'])}\\fR" if "value" in option else ""
        lines += [".TP", ", ".join(f"\\fB{n}\\fR" for n in names) + value,
                  escaped(sentence(option["help"]))]
    return lines


def group_options(group):
    lines = [".SH OPTIONS", ".TP", "\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "List the commands."]
    return lines + ([] if group["name"] else [".TP", "\\fB\\-\\-version\\fR", "Print the version."])


def members(group):
    lines = [".SH COMMANDS"]
    for member in group["commands"]:
        lines += [".TP", f".BR {escaped(page_name(member['name']))} (1)",
                  escaped(sentence(member["summary"]))]
    return lines


def glslc(text, version):
    """The page of tenon-glslc: its help is a usage, paragraphs, options, the exit status."""
    usage, about, listed, ends = re.fullmatch(
        r"usage: tenon-glslc (.*?)\n\n(.*?)\n\n((?:  .*\n)+)\nExit status: (.*)\n", text, re.S).groups()
    lines = [*head("tenon-glslc", "compile a compute shader to SPIR-V", version),
             ".SH SYNOPSIS", f"\\fBtenon\\-glslc\\fR {escaped(usage)}",
             ".SH DESCRIPTION", *paragraphs(about), ".SH OPTIONS"]
    for line in listed.splitlines():
        option = re.match(r"  (-\S+(?: [A-Z]+)?)  +(.*)", line)
        lines += [".TP", f"\\fB{escaped(option[1])}\\fR"] if option else []
        lines.append(escaped(option[2] if option else line.strip()))
    return "\n".join([*lines, ".SH EXIT STATUS", escaped(ends), *see_also(["tenon-check", "tenon-new"])]) + "\n"


def status():
    return [".SH EXIT STATUS", ".TP", "0", "All went well.", ".TP", "1",
            "It failed; one message on the standard error says what was got and expected.",
            ".TP", "2", "Wrong usage."]


def see_also(names):
    return [".SH SEE ALSO", *[f".BR {escaped(n)} (1)" + ("," if i + 1 < len(names) else "")
                              for i, n in enumerate(names)]]


def variables(table):
    """The rows of docs/environment.md."""
    lines = [".SH ENVIRONMENT"]
    for row in table.splitlines():
        cells = [c.strip() for c in row.strip().strip("|").split(" | ")]
        if not row.startswith("| `TENON_"):
            continue
        name, meaning, example = cells[:3]
        lines += [".TP", f".B {escaped(name.strip('`'))}", inline(sentence(meaning)),
                  f"Example: {inline(example)}"]
    assert len(lines) > 1, "no table of variables"
    return lines


def leaf(command, version):
    name = page_name(command["name"])
    words = escaped(f"tenon {command['name']}")
    return [*head(name, command["summary"], version),
            ".SH SYNOPSIS", f"\\fB{words}\\fR {escaped(command['usage'])}",
            ".SH DESCRIPTION", escaped(sentence(command["summary"])),
            *([".PP"] if command["details"] else []), *paragraphs(command["details"]),
            *options(command), *status()]


def group(command, version, table):
    name = page_name(command["name"])
    summary = command.get("summary", "arrays, plugins and their reasons from a shell")
    words = escaped(" ".join(["tenon", *command["name"].split()]))
    lines = [*head(name, summary, version),
             ".SH SYNOPSIS", f"\\fB{words}\\fR \\fICOMMAND\\fR ...",
             ".SH DESCRIPTION", *paragraphs(command["about"]), *members(command),
             *group_options(command), *status()]
    return lines + (variables(table) if not command["name"] else [])


def related(command, rows):
    """The group that a command is in, and what else is in it."""
    for row in rows:
        names = [m["name"] for m in row.get("commands", [])]
        if command["name"] in names:
            others = [n for n in names if n != command["name"]] if row["name"] else []
            return [page_name(n) for n in [row["name"], *others]]
    return [page_name(m["name"]) for m in command["commands"]]


def pages(rows, version, table):
    for row in rows:
        lines = group(row, version, table) if "commands" in row else leaf(row, version)
        yield f"{page_name(row['name'])}.1", "\n".join(lines + see_also(related(row, rows))) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--glslc", required=True)
    parser.add_argument("--environment", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("-o", dest="directory", required=True)
    given = parser.parse_args()
    said = subprocess.run([given.tenon, "commands", "--json"], check=True, capture_output=True,
                          env={**os.environ, "TENON_LOG": "off"}, text=True).stdout
    directory = pathlib.Path(given.directory)
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.1"):
        old.unlink()
    table = pathlib.Path(given.environment).read_text()
    for name, text in pages(json.loads(said), given.version, table):
        (directory / name).write_text(text)
    text = subprocess.run([given.glslc, "--help"], check=True, capture_output=True, text=True).stdout
    (directory / "tenon-glslc.1").write_text(glslc(text, given.version))


if __name__ == "__main__":
    main()
