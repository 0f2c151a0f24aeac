# SPDX-License-Identifier: MIT
"""Packing, installing and upgrading plugins, archives that are hostile, and processes that are killed."""

import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import threading

import stage
import tap
from tap import refused, tenon

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()
KILLER = pathlib.Path(sys.argv[4]).absolute() if len(sys.argv) > 4 else None
ID = "com.acme.good"


def version(version_, folder):
    """A plugin's folder with a shared object, a licence and a file in a folder."""
    directory = stage.stage(ID, "fixture-good-" + version_, folder)
    (directory / "LICENSE").write_text("do as you like\n")
    (directory / "shaders").mkdir()
    (directory / "shaders/one.glsl").write_text("void main() {}\n" * 100)
    return directory


def installed(prefix="here"):
    return json.loads(pathlib.Path(prefix, ID, "plugin.json").read_text())["version"]


def pack(directory, name):
    tenon("plugin", "pack", directory, "-o", name)
    return name


# --- archives ----------------------------------------------------------------------------


def archives_are_the_same_bytes_whoever_makes_them():
    first = version("1.9", "one")
    second = pathlib.Path("two", ID)
    second.parent.mkdir()
    second.mkdir()
    for name in ["shaders", "plugin.so", "LICENSE", "plugin.json"]:  # another order, other modes
        if (first / name).is_dir():
            shutil.copytree(first / name, second / name)
        else:
            shutil.copyfile(first / name, second / name)
            os.chmod(second / name, 0o600 | (first / name).stat().st_mode & 0o100)
    os.utime(second / "LICENSE", (1e9, 1e9))
    tenon("plugin", "pack", first, "-o", "a.tnp", env={"TZ": "Asia/Tokyo"})
    mask = os.umask(0o077)
    tenon("plugin", "pack", second, "-o", "b.tnp", env={"TZ": "America/Lima", "LC_ALL": "C"})
    os.umask(mask)
    assert pathlib.Path("a.tnp").read_bytes() == pathlib.Path("b.tnp").read_bytes()
    data = subprocess.run(["zstd", "-dc", "a.tnp"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == [ID, *(f"{ID}/{n}" for n in (
        "LICENSE", "plugin.json", "plugin.so", "shaders", "shaders/one.glsl"))], members
    assert {(m.uid, m.gid, m.mtime) for m in members} == {(0, 0, 0)}
    assert {m.mode for m in members} == {0o755, 0o644}


def archives_folders_and_shared_objects_are_installed():
    folder = version("1.9", "source")
    archive = pack(folder, "x.tnp")
    for source in [archive, folder, stage.FIXTURES / "fixture-good-1.9.so"]:
        prefix = "to-" + pathlib.Path(source).suffix[1:]
        tenon("plugin", "install", source, "--prefix", prefix)
        assert os.listdir(prefix) == [ID] and installed(prefix) == "1.9.0"
        tenon("plugin", "verify", f"./{prefix}/{ID}")
    files = json.loads(pathlib.Path("to-tnp", ID, "plugin.json").read_text())["files"]
    assert [f["name"] for f in files] == ["LICENSE", "plugin.so", "shaders/one.glsl"], "each file is listed"
    assert "shaders" not in json.loads((folder / "plugin.json").read_text()), "the source is as it was"


def what_is_not_there_cannot_be_removed():
    refused("plugin", "remove", ID, "--prefix", "nowhere", saying="nowhere: No such file")
    assert not os.path.exists("nowhere")
    os.mkdir("here")
    refused("plugin", "remove", ID, "--prefix", "here", saying="is not installed in here")
    tenon("plugin", "install", version("1.9", "source"), "--prefix", "here")
    tenon("plugin", "remove", ID, "--prefix", "here")
    assert os.listdir("here") == []


def home_and_prefix_exclude_each_other():
    refused("plugin", "install", "x", "--user", "--prefix", "here", status=2, saying="exclude each other")
    tenon("plugin", "install", version("1.9", "source"), "--user", env={"XDG_DATA_HOME": os.path.abspath("data")})
    assert installed("data/tenon/plugins") == "1.9.0"


def older_versions_replace_newer_ones_by_force_alone():
    old, new = version("1.9", "old"), version("1.10", "new")
    refused("plugin", "upgrade", new, "--prefix", "here", saying="is not installed")
    tenon("plugin", "install", old, "--prefix", "here")
    assert "1.10.0, before 1.9.0" in tenon("plugin", "upgrade", new, "--prefix", "here").stdout
    for command in "install", "upgrade":
        refused("plugin", command, old, "--prefix", "here", saying="1.9.0 is older; --force")
        assert installed() == "1.10.0"
    tenon("plugin", "upgrade", new, "--prefix", "here")
    tenon("plugin", "upgrade", old, "--force", "--prefix", "here")
    assert installed() == "1.9.0" and os.listdir("here") == [ID]


def a_changed_byte_in_any_file_is_found():
    tenon("plugin", "install", version("1.9", "source"), "--prefix", "here")
    env = {"TENON_PLUGIN_PATH": os.path.abspath("here"), "TENON_PLUGINS_ONLY": "1"}
    for path in sorted(pathlib.Path("here", ID).rglob("*")):
        if path.is_dir():
            continue
        good = path.read_bytes()
        at = good.index(b"1.9.0") if path.name == "plugin.json" else len(good) // 2
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        done = refused("plugin", "verify", ID, env=env)
        said = done.stdout + done.stderr
        assert "REFUSED" in said and ("SHA-256" in said or path.name == "plugin.json"), said
        if path.name != "plugin.json":
            assert path.name in said, said
            refused("op", "twice", env=env, saying=path.name)
        path.write_bytes(good)
    tenon("plugin", "verify", ID, env=env)


# --- hostile archives --------------------------------------------------------------------


def member(name, data=b"", kind=tarfile.REGTYPE, mode=0o644, link="", size=None):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.size = kind, mode, link, len(data) if size is None else size
    return info, data


def write(name, members, compress=("zstd", "-q", "-f", "-c"), cut=None):
    """An archive as somebody else may make it: of bytes that tarfile would not write, too."""
    raw = b"".join(info.tobuf(tarfile.GNU_FORMAT) + data + b"\0" * (-len(data) % 512) for info, data in members)
    raw += b"\0" * 1024
    data = subprocess.run(compress, input=raw, capture_output=True, check=True).stdout
    pathlib.Path(name).write_bytes(data[:cut])
    return name


def good_members():
    folder = version("1.9", "good-source")
    tenon("plugin", "pack", folder, "-o", "good.tnp")
    raw = subprocess.run(["zstd", "-dc", "good.tnp"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return [(m, tar.extractfile(m).read() if m.isfile() else b"") for m in tar.getmembers()]


def refuse_archive(name, saying):
    done = refused("plugin", "install", name, "--prefix", "here", saying=saying)
    assert name in done.stderr, done.stderr
    assert os.listdir("here") == [], (name, os.listdir("here"))
    assert not os.path.exists("outside") and not os.path.exists("/tmp/tenon-outside")


def hostile_archives_are_refused_and_leave_nothing():
    good = good_members()
    inside = {"a symbolic link": member(f"{ID}/l", kind=tarfile.SYMTYPE, link="../../outside"),
              "a hard link": member(f"{ID}/l", kind=tarfile.LNKTYPE, link="../../outside"),
              "a device": member(f"{ID}/d", kind=tarfile.CHRTYPE), "a pipe": member(f"{ID}/f", kind=tarfile.FIFOTYPE),
              "setuid": member(f"{ID}/s", b"x", mode=0o4755), "leads out": member(f"{ID}/../../outside", b"x"),
              "an absolute path": member("/tmp/tenon-outside", b"x"), "hidden": member(f"{ID}/.hidden", b"x"),
              "'..' leads": member("../outside", b"x"), "is there twice": member(f"{ID}/LICENSE", b"x"),
              "letter case": member(f"{ID}/license", b"x"), "backslash": member(f"{ID}/a\\b", b"x"),
              "more than 8 folders deep": member(f"{ID}/" + "x/" * 100 + "y", b""),
              "not in a folder with the rest": member("com.acme.other/x", b"x"),
              "not listed": member(f"{ID}/extra", b"x"), "255 bytes": member(f"{ID}/" + "x/" * 120 + "yyyyyyyyyyyyyyyy", b"")}
    for number, (saying, bad) in enumerate(inside.items()):
        refuse_archive(write(f"bad{number}.tnp", [*good, bad]), saying)
    manifest = next(data for info, data in good if info.name == f"{ID}/plugin.json")
    refuse_archive(write("other.tnp", [member("com.acme.evil/plugin.json", manifest)]), "have to be the same")
    tenon("plugin", "install", "good.tnp", "--prefix", "there")


def what_unpacking_would_refuse_is_not_packed():
    folder = version("1.9", "deep-source")
    deep = folder / ("x/" * 8)
    deep.mkdir(parents=True)
    (deep / "y").write_text("deep")
    refused("plugin", "pack", folder, "-o", "deep.tnp", saying="more than 8 folders deep")
    assert not os.path.exists("deep.tnp")


def archives_that_are_too_much_are_refused():
    zeros = bytes(64 << 20)
    refuse_archive(write("bomb.tnp", [member(f"{ID}/zeros", zeros)]), "times its size")
    refuse_archive(write("lie.tnp", [member(f"{ID}/huge", b"", size=1 << 40)]), "times its size")
    many = [member(f"{ID}/{i}") for i in range(5000)]
    refuse_archive(write("many.tnp", many), "more than 4096 files")
    again = [member(ID, kind=tarfile.DIRTYPE)] * 5000
    refuse_archive(write("again.tnp", again), "more than 4096 files")


def archives_that_are_cut_or_of_another_kind_are_refused():
    good = good_members()
    size = pathlib.Path(write("x.tnp", good)).stat().st_size
    for cut in [0, 1, 3, 10, size // 2, size - 5]:
        refuse_archive(write("cut.tnp", good, cut=cut), "")
    refuse_archive(write("gzip.tnp", good, ["gzip", "-c"]), "is no")
    refuse_archive(write("plain.tnp", good, ["cat"]), "not compressed by zstd")
    refuse_archive(write("empty.tnp", []), "is empty")
    pathlib.Path("text.tnp").write_text("hello\n" * 1000)
    refuse_archive("text.tnp", "is no")
    refuse_archive("absent.tnp", "cannot read absent.tnp")


def the_part_for_archives_is_loaded_for_archives_alone():
    """The command works without it, and says what is missing."""
    archive = pack(version("1.9", "one"), "x.tnp")
    alone = pathlib.Path("bin/tenon")
    alone.parent.mkdir()
    shutil.copy2(tap.TENON, alone)
    core = pathlib.Path(tap.TENON).parents[2] / "core"
    env = {**tap.ENVIRONMENT, "LD_LIBRARY_PATH": str(core)}
    run = lambda *args: subprocess.run([alone.absolute(), "plugin", *args], env=env,
                                       capture_output=True, text=True, timeout=60)
    done = run("install", archive, "--prefix", "here")
    assert done.returncode == 1 and "tenon-archive.so" in done.stderr, done
    assert not pathlib.Path("here").exists() or not os.listdir("here"), os.listdir("here")
    pathlib.Path("libexec/tenon").mkdir(parents=True)
    pathlib.Path("libexec/tenon/tenon-archive.so").write_text("no shared object\n")
    done = run("pack", "one/" + ID, "-o", "y.tnp")
    assert done.returncode == 1 and "tenon-archive.so" in done.stderr, done
    assert not pathlib.Path("y.tnp").exists()
    done = run("install", "one/" + ID, "--prefix", "here")
    assert done.returncode == 0 and installed(), done


# --- killed, at once, meanwhile ----------------------------------------------------------


def an_upgrade_that_is_killed_leaves_a_version_that_works():
    if not KILLER:
        return "the killer is not built for sanitizers"
    old, new = pack(version("1.9", "old"), "old.tnp"), pack(version("1.10", "new"), "new.tnp")
    for exchange in "1", "0":
        seen, step = set(), 0
        while True:
            step += 1
            tenon("plugin", "install", old, "--force", "--prefix", "here")
            assert os.listdir("here") == [ID], "what was left is removed"
            env = {**tap.ENVIRONMENT, "LD_PRELOAD": str(KILLER), "KILL_AT": str(step), "KILL_EXCHANGE": exchange}
            done = subprocess.run([tap.TENON, "plugin", "upgrade", new, "--prefix", "here"], env=env,
                                  capture_output=True, text=True)
            assert done.returncode in (0, 77), done.stderr
            if exchange == "0" and not os.path.exists(f"here/{ID}"):  # between the two renames
                refused("plugin", "remove", "com.acme.none", "--prefix", "here")
                assert installed() == "1.9.0", "it was put back"
            tenon("plugin", "verify", f"./here/{ID}")
            seen.add(installed())
            if done.returncode == 0:
                break
        assert step > 20 and seen == {"1.9.0", "1.10.0"}, (step, seen)


def a_key_whose_making_is_killed_is_whole_or_not_there():
    if not KILLER:
        return "the killer is not built for sanitizers"
    for nameless in "1", "0":
        seen, step = set(), 0
        while True:
            step += 1
            folder = pathlib.Path(f"keys-{nameless}-{step}")
            folder.mkdir()
            env = {**tap.ENVIRONMENT, "LD_PRELOAD": str(KILLER), "KILL_AT": str(step), "KILL_NAMELESS": nameless}
            done = subprocess.run([tap.TENON, "trust", "new", f"{folder}/acme.key"], env=env, capture_output=True, text=True)
            assert done.returncode in (0, 77), done.stderr
            sizes = {"acme.pub": 56, "acme.key": 212}
            for path in folder.glob("acme.*"):
                comment, line, end = path.read_text().split("\n")
                assert comment.startswith("untrusted comment: ") and not end, path
                assert len(line) == sizes[path.name], (path, len(line))
                assert path.stat().st_mode & 0o777 == (0o600 if path.suffix == ".key" else 0o644), path
            seen.add(len(list(folder.glob("acme.*"))))
            if done.returncode == 0:
                break
        assert seen == {0, 1, 2}, seen
        refused("trust", "new", f"{folder}/acme.key", saying="exists")
        assert sorted(os.listdir(folder)) == ["acme.key", "acme.pub"], os.listdir(folder)


def many_at_once_wait_for_each_other():
    archives = [pack(version(v, v), f"{v}.tnp") for v in ("1.9", "1.10")] * 4
    running = [subprocess.Popen([tap.TENON, "plugin", "install", a, "--force", "--prefix", "here"], env=tap.ENVIRONMENT,
                                stdout=subprocess.DEVNULL) for a in archives]
    assert [p.wait(100) for p in running] == [0] * len(running)
    assert os.listdir("here") == [ID]
    tenon("plugin", "verify", f"./here/{ID}")


def readers_never_miss_a_plugin_that_is_upgraded():
    archives = [pack(version(v, v), f"{v}.tnp") for v in ("1.9", "1.10")]
    tenon("plugin", "install", archives[0], "--prefix", "here")
    env = {"TENON_PLUGIN_PATH": os.path.abspath("here"), "TENON_PLUGINS_ONLY": "1", "TENON_LOG": "off"}
    ended, failures, reads = threading.Event(), [], [0]

    def read():
        while not ended.is_set():
            rows = json.loads(tenon("plugin", "list", "--json", env=env).stdout)
            if [(r["id"], r["state"]) for r in rows] != [(ID, "found")]:
                failures.append(rows)
            shown = tenon("op", "twice", "--json", env=env)
            if "com.acme" not in shown.stdout:
                failures.append(shown.stdout)
            reads[0] += 1

    def guarded():
        try:
            read()
        except Exception as error:
            failures.append(error)
    reader = threading.Thread(target=guarded)
    reader.start()
    for i in range(100):
        tenon("plugin", "install", archives[(i + 1) % 2], "--force", "--prefix", "here")
    ended.set()
    reader.join()
    assert not failures and reads[0] > 5, (failures[:3], reads)


# --- listing -----------------------------------------------------------------------------


def two_hundred_plugins_are_listed_and_none_is_loaded():
    source = stage.stage(ID, "fixture-good", "source")
    manifest = (source / "plugin.json").read_text()
    for i in range(200):
        folder = pathlib.Path(f"many/com.acme.p{i}")
        folder.mkdir(parents=True)
        os.link(source / "plugin.so", folder / "plugin.so")
        (folder / "plugin.json").write_text(manifest.replace(ID, folder.name))
    env = {"TENON_PLUGIN_PATH": os.path.abspath("many"), "TENON_PLUGINS_ONLY": "1", "LD_DEBUG": "files",
           "LD_DEBUG_OUTPUT": os.path.abspath("loaded")}
    rows = json.loads(tenon("plugin", "list", "--json", env=env).stdout)
    assert len(rows) == 200 and {r["state"] for r in rows} == {"found"}, rows[:1]
    opened = "".join(p.read_text() for p in pathlib.Path(".").glob("loaded.*"))
    assert "libtenon.so" in opened and "plugin.so" not in opened, "nothing of a plugin is loaded"
    assert "libarchive" not in opened, "libarchive is loaded for archives alone"


def listing_runs_no_code_of_a_plugin():
    marked = "com.acme.marks"
    stage.stage(marked, "fixture-marks")
    mark = pathlib.Path("mark").absolute()
    env = {"TENON_PLUGIN_PATH": os.path.abspath("plugins"), "TENON_PLUGINS_ONLY": "1", "FIXTURE_MARK": str(mark)}
    for command in (["plugins"], ["plugins", "--all", "--json"], ["plugin", "list"], ["plugin", "show", marked], ["plugin", "verify"],
                    ["ops"], ["ops", "--json"], ["ops", "twi"], ["ops", "*twice"], ["commands"], ["trust", "list"],
                    ["completion", "ops"], ["completion", "plugins"], ["completion", "backends"], ["completion", "bash"],
                    ["plugin", "pack", f"plugins/{marked}"], ["plugin", "install", f"plugins/{marked}", "--prefix", "here"],
                    ["plugin", "remove", marked, "--prefix", "here"]):
        tenon(*command, env=env)
        assert not mark.exists(), command
    (row,) = json.loads(tenon("ops", "twice", "--json", env=env).stdout)
    assert row["plugin"] == marked and "twice" in row["id"], row
    for command in ["ops", "--calls"], ["op", "twice"]:
        tenon(*command, env=env)
        assert mark.exists(), "it leaves its mark when it is loaded"
        mark.unlink()
    assert "twice(x)" in tenon("ops", "--calls", env=env).stdout


tap.run([archives_are_the_same_bytes_whoever_makes_them, archives_folders_and_shared_objects_are_installed,
         what_is_not_there_cannot_be_removed, home_and_prefix_exclude_each_other, older_versions_replace_newer_ones_by_force_alone,
         a_changed_byte_in_any_file_is_found, hostile_archives_are_refused_and_leave_nothing,
         archives_that_are_too_much_are_refused, what_unpacking_would_refuse_is_not_packed,
         archives_that_are_cut_or_of_another_kind_are_refused,
         the_part_for_archives_is_loaded_for_archives_alone,
         an_upgrade_that_is_killed_leaves_a_version_that_works, a_key_whose_making_is_killed_is_whole_or_not_there,
         many_at_once_wait_for_each_other,
         readers_never_miss_a_plugin_that_is_upgraded, two_hundred_plugins_are_listed_and_none_is_loaded, listing_runs_no_code_of_a_plugin])
