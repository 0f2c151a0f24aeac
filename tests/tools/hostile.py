# SPDX-License-Identifier: MIT
"""Manifests, archives and model files that hold what a terminal or a shell would obey."""

import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile

import stage
import tap

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()
ID = "com.acme.good"
# A colour, a title, CSI as C1, an override, a carriage return, a line that looks like the program's own.
EVIL = "x\x1b[31m\x1b]0;t\x07\u009b2J\u202e\u2066\r\b\x7f\ntenon: all is well\U000e0041"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")


def home(**more):
    return {"HOME": os.getcwd(), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", "TENON_CACHE_DIR": "",
            "TENON_PLUGIN_PATH": os.path.abspath("plugins"), "TENON_PLUGINS_ONLY": "1", **more}


def run(*args, **more):
    """The command's output, which a terminal obeys nothing of, whatever its status."""
    done = subprocess.run([tap.TENON, *map(str, args)], env={**tap.ENVIRONMENT, **home(**more)}, capture_output=True,
                          timeout=100)
    assert done.returncode in (0, 1, 2), (args, done)
    text = (done.stdout + done.stderr).decode()  # it is UTF-8
    found = OBEYED.search(text)
    assert not found, (args, found, text)
    assert "\ntenon: all is well" not in text, (args, text)
    return text


def stage_evil(**changes):
    return stage.stage(ID, "fixture-good", **changes)


def texts_of_a_manifest_are_shown_and_not_obeyed():
    long = "abc" * 20
    cases = [{"vendor": EVIL}, {"version": EVIL[:25]}, {"id": EVIL}, {"file": EVIL}, {"vendor": EVIL * 9}, {"format": EVIL},
             {"kernels": [{"primitive": EVIL, "family": EVIL, "name": EVIL}]}, {"primitives": [{"id": EVIL}]},
             {"backends": [{"name": EVIL[:30], "default": True}]}, {"interfaces": [EVIL]}, {EVIL: EVIL},
             {"files": [{"name": EVIL, "size": 1, "sha256": "00" * 32}]}, {"abi": EVIL}, {"vendor": long}]
    shown = 0
    for number, changes in enumerate(cases):
        os.mkdir(str(number))
        os.chdir(str(number))
        stage_evil(**changes)
        for command in (["plugins", "--all"], ["plugin", "show", ID], ["plugin", "verify"], ["doctor"], ["ops"], ["why", "plugin", ID],
                        ["op", "twice"], ["why", "op", "twice"], ["eval", "twice(1)"], ["plugin", "verify", f"./plugins/{ID}"],
                        ["why", "backend", "x"], ["op", "x"], ["eval", "1+1"], ["completion", "plugins"], ["completion", "ops"],
                        ["completion", "backends"], ["plugin", "install", f"plugins/{ID}", "--prefix", "here"],
                        ["plugin", "pack", f"plugins/{ID}"]):
            shown += "\\x1b[31m" in run(*command, TENON_LOG="trace")
        os.chdir("..")
    assert shown > 40, shown


def json_is_ascii_and_says_the_same():
    stage_evil(vendor="é" + EVIL)
    for command in ["plugins", "--all"], ["plugin", "show", ID], ["doctor"], ["ops"]:
        done = subprocess.run([tap.TENON, *command, "--json"], env={**tap.ENVIRONMENT, **home()}, capture_output=True)
        assert done.stdout.isascii() and not OBEYED.search(done.stdout.decode().replace("\x7f", "")), done.stdout
        value = json.loads(done.stdout)
        if command[0] == "plugin":
            assert value["vendor"] == "é" + EVIL, value


def names_in_archives_are_shown_and_not_obeyed():
    def member(name, kind=tarfile.REGTYPE):
        info = tarfile.TarInfo(f"{ID}/{name}")
        info.type = kind
        return info
    for number, info in enumerate([member(EVIL), member(EVIL, tarfile.SYMTYPE), member(EVIL, tarfile.CHRTYPE), member("\x9b2J"),
                                   member("../" + EVIL), member("a" * 300 + EVIL)]):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1" if number == 3 else "utf-8") as tar:
            tar.addfile(info)
        data = subprocess.run(["zstd", "-q", "-c"], input=raw.getvalue(), capture_output=True, check=True).stdout
        pathlib.Path("evil.tnp").write_bytes(data)
        said = run("plugin", "install", "evil.tnp", "--prefix", "here")
        assert "evil.tnp" in said and ("\\x" in said), said


def names_of_files_are_shown_and_not_obeyed():
    name = "evil\x1b[31m\u202e"
    folder = stage.stage(ID, "fixture-good", "source")
    (folder / name).write_text("x")
    for command in ["plugin", "install", folder, "--prefix", "here"], ["plugin", "pack", folder], ["plugin", "sign", folder, "k"]:
        run("trust", "new", "k.key")
        run(*[c if c != "k" else "k.key" for c in command])
    assert "\\x1b" in run("plugin", "install", folder, "--prefix", "here")
    assert "\\x1b" in run("plugin", "install", name, "--prefix", "here")
    assert "\\x1b" in run("eval", "x", f"x={name}.npy")
    assert "\\x1b" in run("op", name) and "\\x1b" in run(name) and "\\x1b" in run("--" + name)
    assert "\\x1b" in run("eval", f"'{name}'")
    header = json.dumps({name: {"dtype": name, "shape": [1], "data_offsets": [0, 4]}}, ensure_ascii=False).encode()
    pathlib.Path("x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    assert "\\x1b" in run("eval", "x", "x=x.safetensors") or "eval" in run("eval", "--help")
    os.mkdir("plugins")
    evil = pathlib.Path("plugins", name)
    evil.mkdir()
    (evil / "plugin.json").write_text("{")
    assert "\\x1b" in run("plugins") and "\\x1b" in run("doctor")


def a_shell_executes_nothing_of_a_manifest():
    """Words that bash offers are expanded by it."""
    stage_evil(primitives=[{"id": "acme.$(touch pwned)/1"}, {"id": "acme.`touch pwned`/1"}, {"id": "acme.fine/1"}],
               backends=[{"name": "$(touch pwned)", "default": False}, {"name": "fine"}], kernels=[])
    pathlib.Path("tenon.bash").write_text(run("completion", "bash"))
    for line in "tenon op a", "tenon why backend f", "tenon plugin show c", "tenon op ", "tenon why backend ":
        program = """
            source ./tenon.bash; read -ra COMP_WORDS <<<"$1"; [[ $1 != *' ' ]] || COMP_WORDS+=('')
            COMP_WORDS[0]=$2; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tenon; printf '%s\\n' "${COMPREPLY[@]}" """
        done = subprocess.run(["bash", "-c", program, "bash", line, tap.TENON], env={**tap.ENVIRONMENT, **home()},
                              capture_output=True, text=True, check=True)
        assert not os.path.exists("pwned"), line
        if line == "tenon op a":
            assert done.stdout.split() == ["acme.fine"], done


tap.run([texts_of_a_manifest_are_shown_and_not_obeyed, json_is_ascii_and_says_the_same,
         names_in_archives_are_shown_and_not_obeyed, names_of_files_are_shown_and_not_obeyed,
         a_shell_executes_nothing_of_a_manifest])
