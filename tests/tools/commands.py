# SPDX-License-Identifier: MIT
"""`tenon commands`, the man pages and the completion scripts say the same as each --help."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tap
from tap import refused, run, tenon

PAGES, GLSLC = map(pathlib.Path.absolute, map(pathlib.Path, sys.argv[3:5]))
ROWS = json.loads(tenon("commands", "--json").stdout)
LEAVES = [row for row in ROWS if "options" in row]


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, **options).stdout


def scripts(shell):
    path = pathlib.Path(f"tenon.{shell}")
    path.write_text(tenon("completion", shell).stdout)
    return path


# --- the tables --------------------------------------------------------------------------


def every_command_is_described_as_its_help_says():
    assert len(LEAVES) >= 20 and len({row["name"] for row in ROWS}) == len(ROWS)
    for row in LEAVES:
        text = tenon(*row["name"].split(), "--help").stdout
        assert text.startswith(f"Usage: tenon {row['name']} {row['usage']}"), row["name"]
        assert row["details"] in text and row["summary"] in text, row["name"]
        for option in row["options"]:
            assert f"--{option['name']}" in text and option["help"] in text, option


def every_command_that_a_message_or_a_guide_names_is_there():
    root = pathlib.Path(__file__).resolve().parents[2]
    files = [*root.glob("core/**/*.c"), *root.glob("tools/tenon/**/*.c"), *root.glob("docs/*.md"),
             *root.glob("sdk/conformance/**/*.c"), root / "README.md"]
    words = {tuple(row["name"].split()) for row in ROWS}
    groups = {name[0] for name in words if len(name) > 1}
    named = 0
    for file in files:
        # In quotes, in a code block, or after a colon: "tenon plugin retry ID".
        for found in re.findall(r"(?:^  |['`:\"$] ?)tenon ([a-z]+)(?: ([a-z-]+))?", file.read_text(), re.M):
            name = found if found[0] in groups else found[:1]
            assert tuple(n for n in name if n) in words | {(g,) for g in groups}, (str(file), found)
            named += 1
    assert named > 100, named


def every_group_lists_its_commands():
    names = {row["name"] for row in ROWS}
    for row in ROWS:
        listing = None if "options" in row else tenon(*row["name"].split(), "--help").stdout
        for member in row.get("commands", []):
            assert member["name"] in names and f"  {member['word']} " in listing, member
            assert member["summary"] in tenon("commands").stdout, member


# --- man pages ---------------------------------------------------------------------------


def page_of(row):
    return PAGES / ("-".join(["tenon", *row["name"].split()]) + ".1")


def there_is_a_page_for_each_command_and_no_other():
    assert {p.name for p in PAGES.iterdir()} == {page_of(row).name for row in ROWS} | {"tenon-glslc.1"}
    for row in LEAVES:
        text = page_of(row).read_text().replace("\\-", "-").replace("\\&", "")
        for option in row["options"]:
            assert f"--{option['name']}" in text, (row["name"], option["name"])
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
            assert f"\n.SH {section}\n" in text, (row["name"], section)
    assert ".SH ENVIRONMENT" in page_of(ROWS[0]).read_text()


def the_compiler_s_page_has_its_options():
    text = (PAGES / "tenon-glslc.1").read_text().replace("\\-", "-").replace("\\&", "")
    listed = output(GLSLC, "--help")
    names = re.findall(r"^  (-\S+)", listed, re.M)
    assert len(names) > 8, listed
    for name in names:
        assert f".TP\n\\fB{name}" in text, name
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
        assert f"\n.SH {section}\n" in text, section
    assert "the subset of GLSL" in text and "2 for wrong arguments" in text, text


def pages_are_formatted_without_a_warning():
    if not shutil.which("groff"):
        return "no groff"
    for page in PAGES.iterdir():
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and not done.stderr, done.stderr
    plain = output("groff", "-man", "-Tascii", "-P-c", page_of({"name": "plugins"})).replace("\b", "")
    assert "TENON_PLUGIN_PATH" in plain, plain


def pages_pass_mandoc():
    if not shutil.which("mandoc"):
        return "no mandoc"
    for page in PAGES.iterdir():
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
        said = [line for line in done.stdout.splitlines() if "missing date" not in line]
        assert not said, said


# --- completion --------------------------------------------------------------------------


def bash(line, script):
    """What bash offers for the last word of a command line."""
    program = """
        source "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 != *' ' ]] || COMP_WORDS+=('')
        COMP_WORDS[0]=$3; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tenon
        printf '%s\\n' "${COMPREPLY[@]}" """
    said = output("bash", "-c", program, "bash", str(script), line, tap.TENON, env=tap.ENVIRONMENT)
    return said.split("\n")[:-1]


def bash_completes_commands_and_options():
    script = scripts("bash")
    for row in ROWS:
        line = " ".join(["tenon", *row["name"].split()])
        if "options" in row:
            expected = {f"--{o['name']}" for o in row["options"]}
            assert set(bash(f"{line} --", script)) == expected, row["name"]
        else:
            assert bash(f"{line} ", script) == [m["word"] for m in row["commands"]], row["name"]
    assert bash("tenon ev", script) == ["eval"]
    assert bash("tenon plugins --j", script) == ["--json"]
    assert bash("tenon eval --grad ", script) == [""]


def bash_completes_installed_names_and_files():
    script = scripts("bash")
    pathlib.Path("some file.npy").touch()
    os.mkdir("folder")
    assert bash("tenon plugin show org.tenon.ba", script) == ["org.tenon.base"]
    assert bash("tenon why plugin org.tenon.ba", script) == ["org.tenon.base"]
    assert bash("tenon why backend nul", script) == ["null"]
    assert "base.logsumexp" in bash("tenon op base.log", script)
    assert bash("tenon eval 1 -o some", script) == ["some file.npy"]
    # A folder is offered as a file and as a folder; bash shows it once.
    assert bash("tenon plugin install fo", script) == ["folder"]
    assert bash("tenon plugin install so", script) == ["some file.npy"]
    assert sorted(bash("tenon tr", script)) == ["train", "trust"]
    assert bash("tenon train le", script) == ["lenet"]


def zsh_completes():
    if not shutil.which("zsh"):
        return "no zsh"
    script = scripts("zsh")
    output("zsh", "-f", "-n", str(script))
    # The functions of zsh that show what is found print it instead.
    program = """
        compdef() { }; source ./tenon.zsh
        _describe() { print -l -- ${(P)argv[-1]} }; compadd() { shift; print -l -- $@ }; _files() { print -- files $@ }
        words=("${(@)argv[1,-1]}"); CURRENT=$#words; _tenon"""

    def offers(*words):
        return output("zsh", "-f", "-c", program, "zsh", tap.TENON, *words, env=tap.ENVIRONMENT).splitlines()
    assert "eval:evaluate an expression over arrays" in offers("")
    assert "org.tenon.base" in offers("plugin", "show", "")
    assert "--prefix:to this folder of plugins" in offers("plugin", "install", "-")
    assert offers("eval", "1", "-o", "") == ["files"]
    assert "null" in offers("why", "backend", "")
    for row in ROWS:
        if "options" in row:
            assert len(offers(*row["name"].split(), "-")) == len(row["options"]), row["name"]


def fish_completes():
    if not shutil.which("fish"):
        return "no fish"
    script = scripts("fish")
    os.symlink(tap.TENON, "tenon")
    environment = {**tap.ENVIRONMENT, "HOME": os.getcwd(), "PATH": f"{os.getcwd()}:{os.environ['PATH']}"}

    def offers(line):
        program = f"source {script}; complete -C '{line}'"
        return [o.split("\t")[0] for o in output("fish", "--no-config", "-c", program, env=environment).splitlines()]
    output("fish", "--no-config", "-n", str(script), env=environment)
    assert offers("tenon ") == [m["word"] for m in sorted(ROWS[0]["commands"], key=lambda m: m["word"])]
    assert offers("tenon plugin show org.tenon.ba") == ["org.tenon.base"]
    assert "--prefix" in offers("tenon plugin install --")
    assert offers("tenon why backend nul") == ["null"]
    assert offers("tenon train ") == ["lenet", "lora", "mlp", "resnet", "transformer"]


def wrong_shells_get_the_nearest():
    refused("completion", "bas", status=2, saying="did you mean bash?")
    refused("completion", "powershell", status=2, saying="expected bash, zsh, fish")


run([every_command_is_described_as_its_help_says, every_command_that_a_message_or_a_guide_names_is_there,
     every_group_lists_its_commands,
     there_is_a_page_for_each_command_and_no_other, the_compiler_s_page_has_its_options,
     pages_are_formatted_without_a_warning, pages_pass_mandoc,
     bash_completes_commands_and_options, bash_completes_installed_names_and_files, zsh_completes, fish_completes,
     wrong_shells_get_the_nearest])
