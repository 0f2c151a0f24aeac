# SPDX-License-Identifier: MIT
"""`tenon cache`: the compiled kernels on disk are listed, removed, made beforehand and shipped;
what is damaged is named, never believed, and compiled anew."""

import hashlib
import io
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import tarfile

import tap
from tap import refused, run, tenon

MAGIC = b"\x1aTCACHE2"
# Two kernels of vulkan-jit: a product, and a program.
WORK = ("exp(x @ w) + sum(x)", "x=[[1.0,2],[3,4]]", "w=[[1.0,0],[0,1]]")


def environment(**more):
    return {"TENON_CACHE_DIR": os.path.abspath("cache"), **more}


def jit(**more):
    return environment(**{"TENON_BACKEND": "vulkan-jit", **more})


def has_vulkan():
    done = subprocess.run([tap.TENON, "eval", "[1.0] + 1"], env={**tap.ENVIRONMENT, **jit()}, capture_output=True)
    shutil.rmtree("cache", ignore_errors=True)
    return done.returncode == 0


def cache(*args, **options):
    return tenon("cache", *args, env=environment(), **options)


def listed(folder="cache"):
    return json.loads(tenon("cache", "list", "--json", env={"TENON_CACHE_DIR": os.path.abspath(folder)}).stdout)


def warm(*args, **more):
    return json.loads(tenon("cache", "warm", "--json", *args, env=jit(**more)).stdout)


def entry_bytes(key=b"key", data=b"code", plugin="com.acme.gpu", kind="SPIR-V", name="acme.dot", device="",
                magic=MAGIC):
    """An entry as <tenon/cache_file.h> describes it, and its file's name."""
    texts = b"".join(t.encode(errors="surrogateescape") + b"\0" for t in (plugin, kind, name, device))
    digest = hashlib.sha256(key).digest()
    head = magic + struct.pack("=QII", len(data), len(texts), 0) + digest
    return digest.hex(), head + hashlib.sha256(head + data + texts).digest() + data + texts


def put(folder="cache", age=0, **entry):
    """Writes an entry that was used `age` days ago."""
    path = pathlib.Path(folder)
    path.mkdir(mode=0o700, exist_ok=True)
    name, content = entry_bytes(**entry)
    file = path / name
    file.write_bytes(content)
    when = int(os.stat(".").st_mtime) - age * 86400
    os.utime(file, (when, when))
    return file


# --- list --------------------------------------------------------------------------------


def an_empty_cache_is_told():
    assert "is empty" in cache("list").stdout
    assert listed() == {"folder": os.path.abspath("cache"), "entries": 0, "bytes": 0, "files": []}
    assert not os.path.exists("cache"), "looking makes none"


def each_entry_says_what_it_is():
    put(device="a GPU, driver 7")
    put(key=b"2", plugin="com.acme.b", kind="pipelines", name="", data=b"x" * 5000)
    said = cache("list").stdout
    for text in ("acme.dot", "SPIR-V", "pipelines", "a GPU, driver 7", "com.acme.b", "2 entries, 5.2 kB"):
        assert text in said, (text, said)
    files = listed()["files"]
    assert [(f["plugin"], f["kind"], f["name"], f["device"], f["state"]) for f in files] == [
        ("com.acme.b", "pipelines", "", "", "sound"),
        ("com.acme.gpu", "SPIR-V", "acme.dot", "a GPU, driver 7", "sound")], files


def what_is_no_sound_entry_is_named_and_not_believed():
    def flip(at):
        return lambda whole: whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]

    def texts(made):  # texts that are not four, or not ended, in an entry whose checksum is right
        def change(whole):
            head = MAGIC + struct.pack("=QII", 4, len(made), 0) + whole[24:56]
            return head + hashlib.sha256(head + b"code" + made).digest() + b"code" + made
        return change

    changes = [lambda whole: b"", lambda whole: whole[:-1], lambda whole: whole[:50], lambda whole: whole + b"x",
               lambda whole: entry_bytes(key=b"other")[1], *map(flip, (0, 8, 16, 20, 24, 56, 88, -2)),
               *map(texts, (b"", b"a\0b\0c\0", b"a\0b\0c\0d", b"a\0b\0c\0d\0e\0"))]
    for number, change in enumerate(changes):
        file = put(key=b"%d" % number)
        file.write_bytes(change(file.read_bytes()))
    files = listed()["files"]
    assert len(files) == len(changes) and {f["state"] for f in files} == {"damaged"}, files
    assert {f["kind"] + f["plugin"] + f["name"] + f["device"] for f in files} == {""}, files
    shutil.rmtree("cache")
    put(key=b"a", magic=b"\x1aTCACHE1")
    sound = put(key=b"b", data=b"")
    sound.rename("whole")
    os.symlink("../whole", sound)
    os.mkdir(f"cache/{'0' * 64}")
    pathlib.Path("cache", "note.txt").write_text("mine")
    pathlib.Path("cache", ".tmp-1-1").write_text("half")
    said, files = cache("list").stdout, listed()["files"]
    assert sorted(f["state"] for f in files) == ["another version", "being written", "unknown", "unknown", "unknown"], files
    assert "0 entries, 0 B" in said and "5 other files" in said, said


def control_characters_in_an_entry_do_not_reach_the_terminal():
    put(name="a\x1b[31mred\nline")
    put(key=b"2", name="no \udcff UTF-8")
    pathlib.Path("cache", "no \udcfe UTF-8").write_text("")
    said = cache("list").stdout
    assert "\x1b" not in said and "red\nline" not in said, said
    assert "no \\xff UTF-8" in said and "no \\xfe UTF-8" in said, said
    assert {f["name"] for f in listed()["files"]} == {"a\x1b[31mred\nline", "no \\xff UTF-8", ""}


def a_folder_that_cannot_be_used_is_an_error():
    commands = [("list",), ("prune",), ("warm", "1 + 1"), ("pack", "a.tnc"), ("unpack", "a.tnc")]
    for command in commands:
        pathlib.Path("cache").write_text("a file")
        refused("cache", *command, env=environment(), saying="Not a directory")
        os.remove("cache")
        os.mkdir("cache")
        os.chmod("cache", 0o777)
        refused("cache", *command, env=environment(), saying="others can change it")
        os.rmdir("cache")
    nowhere = {"TENON_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": ""}
    refused("cache", "list", env=nowhere, saying="HOME is unset")
    home = {"TENON_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": os.path.abspath("home")}
    assert tenon("cache", "list", env=home).stdout.startswith(os.path.abspath("home/.cache/tenon"))
    for target in ("/proc/tenon", "/dev/null/tenon"):
        refused("cache", "warm", "1 + 1", env={"TENON_CACHE_DIR": target}, saying="/tenon")


# --- prune -------------------------------------------------------------------------------


def prune_removes_what_the_options_say():
    # Four entries of about 1 kB, used 0, 10, 20 and 30 days ago.
    def fill():
        shutil.rmtree("cache", ignore_errors=True)
        for age in (0, 10, 20, 30):
            put(key=b"%d" % age, age=age, name=f"age{age}", data=b"x" * 900)
        put(key=b"note", kind="quarantine", plugin="com.acme.bad", name="", age=90)
        name, whole = entry_bytes(key=b"damaged")
        pathlib.Path("cache", name).write_bytes(whole[:-1])
        put(key=b"old version", magic=b"\x1aTCACHE1")
        for file, age in (("note.txt", 99), (".tmp-1-1", 99), (".tmp-2-1", 0)):
            pathlib.Path("cache", file).write_text("x")
            when = int(os.stat(".").st_mtime) - age * 86400
            os.utime(f"cache/{file}", (when, when))

    for options, left in [((), (0, 10, 20, 30)), (("--older-than", "15"), (0, 10)), (("--older-than", "0"), ()),
                          (("--max-size", "3000"), (0, 10)), (("--max-size", "3K"), (0, 10)), (("--max-size", "0"), ()),
                          (("--max-size", "1G"), (0, 10, 20, 30)), (("--all",), ()),
                          (("--older-than", "25", "--max-size", "2500"), (0, 10))]:
        fill()
        if options == ("--all",):
            before = sorted(os.listdir("cache"))
            assert "would remove 7 files" in cache("prune", "--dry-run", *options).stdout
            assert sorted(os.listdir("cache")) == before
        cache("prune", *options)
        files = listed()["files"]
        kept = {f["name"] for f in files if f["kind"] == "SPIR-V"}
        if options == ("--older-than", "0"):
            kept -= {"age0"}  # used just now: in this second, or before
        assert kept == {f"age{age}" for age in left}, (options, files)
        others = {f["file"] for f in files if f["state"] != "sound"}
        assert others == {"note.txt", ".tmp-2-1"}, (options, others)
        assert [f["plugin"] for f in files if f["kind"] == "quarantine"] == ["com.acme.bad"], options
    for wrong in ("x", "1T", "-1", "1KB", "", "99999999999999999999", "99999999999G"):
        refused("cache", "prune", "--max-size", wrong, env=environment(), status=2, saying="--max-size")
    refused("cache", "prune", "--older-than", "soon", env=environment(), status=2, saying="--older-than")


def prune_beside_running_programs_disturbs_none():
    if not has_vulkan():
        return "no device of vulkan-jit"
    expected = tenon("eval", *WORK, env=jit()).stdout
    programs = [subprocess.Popen([tap.TENON, "eval", *WORK], env={**tap.ENVIRONMENT, **jit()}, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    while any(p.poll() is None for p in programs):
        cache("prune", "--all")
    for program in programs:
        out, said = program.communicate()
        assert program.returncode == 0 and out == expected and not said, (out, said)


# --- warm --------------------------------------------------------------------------------


def warm_compiles_what_eval_needs_and_runs_nothing():
    if not has_vulkan():
        return "no device of vulkan-jit"
    first, again = warm(*WORK), warm(*WORK)
    assert first["compiled"] == 3 and first["found"] == 0, first
    assert again["compiled"] == 0 and again["found"] == 3, again
    files = listed()["files"]
    sources = [f["name"] for f in files if f["kind"] == "SPIR-V"]
    assert len(sources) == 3 and all(sources), sources
    assert first["entries"] == again["entries"] == len(files)
    before = {p.name: p.read_bytes() for p in pathlib.Path("cache").iterdir()}
    tenon("eval", *WORK, env=jit())
    after = {p.name for p in pathlib.Path("cache").iterdir()}
    assert set(before) == after, "eval needs nothing else"
    assert "compiled 0 kernels" in tenon("cache", "warm", *WORK, env=jit()).stdout
    # Nothing runs: an effect is not seen.
    assert "printed" not in tenon("cache", "warm", "print(x, text='printed')", "x=[1.0]", env=environment()).stdout


def warm_counts_kernels_alone():
    if not has_vulkan():
        return "no device of vulkan-jit"
    for backends in ("vulkan-jit", "cpu-blas,vulkan-jit", "vulkan-jit,cpu-blas"):
        shutil.rmtree("cache", ignore_errors=True)
        done = warm("exp(arange(4, stop=8) * 1.5)", TENON_BACKEND=backends)
        kernels = [f for f in listed()["files"] if f["kind"] == "SPIR-V"]
        assert done["compiled"] == len(kernels) == (backends[0] == "v") and done["found"] == 0, (backends, done)


def warm_takes_saved_graphs_without_values():
    if not has_vulkan():
        return "no device of vulkan-jit"
    tenon("eval", *WORK, "--save", "work.graph", env=environment())
    assert warm("@work.graph")["compiled"] == 3
    assert warm("@work.graph", "x=[[5.0,6],[7,8]]")["found"] == 3
    tenon("eval", "@work.graph", *WORK[1:], env=jit())
    assert warm("@work.graph")["compiled"] == 0
    refused("cache", "warm", "@work.graph", "y=1", env=jit(), saying="unknown value 'y'", status=2)
    refused("cache", "warm", "@absent.graph", env=jit(), saying="absent.graph")


def warm_of_a_loop_compiles_its_body():
    if not has_vulkan():
        return "no device of vulkan-jit"
    loop = ("while_loop(x, body='x -> tanh(x) * 2', times=3)", "x=[1.0,2]")
    assert warm(*loop)["compiled"] > 0
    before = set(os.listdir("cache"))
    tenon("eval", *loop, env=jit())
    assert set(os.listdir("cache")) == before


def warm_fails_as_eval_does():
    refused("cache", "warm", "x +", env=environment())
    refused("cache", "warm", "x + 1", env=environment(), saying="x")
    refused("cache", "warm", "1 + 1", env=environment(TENON_BACKEND="absent"), saying="absent")
    said = tenon("cache", "warm", "x @ x", "x=[[1.0]]", env=environment(TENON_BACKEND="cpu-blas")).stdout
    assert "compiled 0 kernels" in said and "come compiled" in said.replace("\n", " "), said
    if not has_vulkan():
        return "no device of vulkan-jit"
    refused("cache", "warm", *WORK, env=jit(TENON_KERNELS="base.matmul=!*"), saying="runs on none of the selected devices")
    return None


# --- damage ------------------------------------------------------------------------------


def a_damaged_entry_is_compiled_anew():
    if not has_vulkan():
        return "no device of vulkan-jit"
    expected = tenon("eval", *WORK, env=jit()).stdout
    good = {p: p.read_bytes() for p in pathlib.Path("cache").iterdir()}
    sources = {f["file"] for f in listed()["files"] if f["kind"] == "SPIR-V"}
    assert len(sources) == 3 and len(good) == 4
    for what, damage in [("empty", lambda b: b""), ("cut", lambda b: b[:-1]), ("header only", lambda b: b[:88]),
                         ("half a header", lambda b: b[:40]), ("a bit of the code", lambda b: b[:100] + bytes([b[100] ^ 4]) + b[101:]),
                         ("a bit of the key", lambda b: b[:30] + bytes([b[30] ^ 128]) + b[31:]),
                         ("a bit of the size", lambda b: b[:8] + bytes([b[8] ^ 1]) + b[9:]),
                         ("the version before", lambda b: b"\x1aTCACHE1" + b[8:]), ("longer", lambda b: b + b"\0"),
                         ("zeros", lambda b: bytes(len(b))), ("another's", lambda b: entry_bytes(data=b"x" * 64)[1])]:
        for path, content in good.items():
            path.write_bytes(damage(content))
        done = tenon("eval", *WORK, env=jit())
        assert done.stdout == expected and done.stderr == "", (what, done)
        for path, content in good.items():
            if path.name in sources:
                assert path.read_bytes() == content, f"{what}: the entry is replaced"
    # A sound entry whose data is no SPIR-V: the checksum is right, the plugin looks.
    path = next(p for p in good if p.name in sources)
    head, texts = good[path][:56], good[path][struct.unpack("=Q", good[path][8:16])[0] + 88:]
    head = head[:8] + struct.pack("=Q", 64) + head[16:]
    path.write_bytes(head + hashlib.sha256(head + b"x" * 64 + texts).digest() + b"x" * 64 + texts)
    assert {f["state"] for f in listed()["files"]} == {"sound"}
    assert tenon("eval", *WORK, env=jit()).stdout == expected
    assert path.read_bytes() == good[path]


def instructions(data):
    """Where the instructions of a module begin, in bytes."""
    at, found = 20, []
    while at < len(data):
        found.append(at)
        at += 4 * (struct.unpack_from("=I", data, at)[0] >> 16)
    return found


def what_a_driver_refuses_is_compiled_anew():
    if not has_vulkan():
        return "no device of vulkan-jit"
    right = tenon("eval", *WORK, env=jit()).stdout
    sound = {path: path.read_bytes() for path in pathlib.Path("cache").iterdir()}
    kinds = {f["file"]: f["kind"] for f in listed()["files"]}
    for path in (p for p in sound if kinds[p.name] == "SPIR-V"):
        size = struct.unpack_from("=Q", sound[path], 8)[0]
        places = instructions(sound[path][88:88 + size])
        for at in (places[0], places[len(places) // 2]):
            for each, whole in sound.items():
                each.write_bytes(whole)
                if kinds[each.name] == "pipelines":
                    each.unlink()
            data = bytearray(sound[path][88:])
            struct.pack_into("=I", data, at, 0xffffffff)  # an instruction that ends behind the module
            path.write_bytes(sound[path][:56] + hashlib.sha256(sound[path][:56] + data).digest() + data)
            assert {f["state"] for f in listed()["files"]} == {"sound"}
            done = tenon("eval", *WORK, env=jit())
            assert done.stdout == right, (path, at, done)
            assert "its code in the cache was refused, and is compiled anew" in done.stderr, (path, at, done)
            assert path.read_bytes() == sound[path], f"{path}, {at}: the entry is replaced"
    return None


def without_room_programs_compile_each_time_and_warm_says_so():
    if not has_vulkan():
        return "no device of vulkan-jit"
    expected = tenon("eval", *WORK, env=jit()).stdout
    shutil.rmtree("cache")
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))}
    done = tenon("eval", *WORK, env=jit(), **small)
    assert done.stdout == expected and done.stderr == "", done
    assert not [f for f in listed()["files"] if f["kind"] == "SPIR-V"] and not list(pathlib.Path("cache").glob(".tmp*"))
    refused("cache", "warm", *WORK, env=jit(), saying="3 of 3 compiled kernels could not be stored", **small)
    if os.geteuid() == 0:
        return None  # root writes where it may not
    put("full")
    tenon("cache", "pack", "a.tnc", env={"TENON_CACHE_DIR": os.path.abspath("full")})
    os.chmod("cache", 0o500)
    assert tenon("eval", *WORK, env=jit()).stdout == expected
    refused("cache", "warm", *WORK, env=jit(), saying="cannot be written")
    refused("cache", "unpack", "a.tnc", env=environment(), saying="Permission denied")
    os.chmod("cache", 0o700)
    return None


# --- pack and unpack ---------------------------------------------------------------------


def a_warm_cache_is_shipped():
    if not has_vulkan():
        return "no device of vulkan-jit"
    warm(*WORK)
    put(key=b"note", kind="quarantine")
    assert "packed 4 entries" in cache("pack", "warm.tnc").stdout
    cache("pack", "again.tnc")
    assert pathlib.Path("warm.tnc").read_bytes() == pathlib.Path("again.tnc").read_bytes(), "the same bytes each time"
    shutil.move("cache", "packed")
    assert "added 4 entries" in cache("unpack", "warm.tnc").stdout
    for path in pathlib.Path("cache").iterdir():
        assert path.read_bytes() == pathlib.Path("packed", path.name).read_bytes() and path.stat().st_mode & 0o777 == 0o600
    assert len(os.listdir("cache")) == 4, "the note stays where it is"
    assert warm(*WORK)["found"] == 3
    assert "added 0 entries, 0 B" in cache("unpack", "warm.tnc").stdout


def unpacking_mends_what_is_damaged_and_keeps_what_is_there():
    mine, other = put(data=b"mine"), put(key=b"2")
    cache("pack", "a.tnc")
    mine.write_bytes(entry_bytes(data=b"changed")[1])
    whole = other.read_bytes()
    other.write_bytes(whole[:-3])
    said = cache("unpack", "a.tnc").stdout
    assert "added 1 entry" in said and "1 were there" in said, said
    assert other.read_bytes() == whole and mine.read_bytes() == entry_bytes(data=b"changed")[1]


def archive(*members, name="bad.tnc"):
    """A tar compressed by zstd of (name, content) pairs, or of TarInfos."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for member in members:
            info, content = (member, b"") if isinstance(member, tarfile.TarInfo) else (tarfile.TarInfo(member[0]), member[1])
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    pathlib.Path("bad.tar").write_bytes(raw.getvalue())
    subprocess.run(["zstd", "-q", "-f", "bad.tar", "-o", name], check=True)
    return name


def link(name, kind, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def hostile_archives_end_in_an_error():
    if not shutil.which("zstd"):
        return "no zstd"
    name, good = entry_bytes()
    fine = (f"tenon-cache/{name}", good)
    put(key=b"before")
    before = listed()
    note = entry_bytes(key=b"n", kind="quarantine")
    for members, saying in [
            ([fine, ("tenon-cache/../../evil", b"x")], "evil"),
            ([("/etc/evil", b"x")], "evil"),
            ([fine, ("tenon-cache/readme", b"hello")], "no sound entry"),
            ([fine, (f"tenon-cache/{'0' * 64}", good)], "no sound entry of a cache (damaged)"),
            ([fine, (f"tenon-cache/{name}", good)], "twice"),
            ([fine, (f"tenon-cache/{'1' * 64}", b"")], "no sound entry"),
            ([(f"tenon-cache/{name}", good[:-1])], "no sound entry"),
            ([(f"tenon-cache/{name}", entry_bytes(magic=b"\x1aTCACHE1")[1])], "another version"),
            ([(f"tenon-cache/{note[0]}", note[1])], "note of a plugin that crashed"),
            ([(f"tenon-cache/{name}/below", good)], "no sound entry"),
            ([(f"other/{name}", good)], "holds no folder 'tenon-cache'"),
            ([fine, (f"other/{name}", good)], "not in a folder with the rest: 'tenon cache pack'"),
            ([("tenon-cache", good)], "not in a folder"),
            ([fine, link("tenon-cache/a", tarfile.SYMTYPE, "/etc/passwd")], "a symbolic link"),
            ([fine, link("tenon-cache/a", tarfile.LNKTYPE, fine[0])], "a hard link"),
            ([fine, link("tenon-cache/a", tarfile.CHRTYPE, "")], "a device"),
            ([fine, ("tenon-cache/big", bytes(20 << 20))], "makes more than"),
            ([], "is empty")]:
        refused("cache", "unpack", archive(*members), env=environment(), saying=saying)
        assert listed() == before, (saying, "nothing was added")
        assert not list(pathlib.Path("cache").glob(".unpack*")), saying
    pathlib.Path("text.tnc").write_text("hello")
    refused("cache", "unpack", "text.tnc", env=environment(), saying="is no cache archive")
    refused("cache", "unpack", "absent.tnc", env=environment(), saying="absent.tnc")
    whole = pathlib.Path(archive(fine, name="good.tnc")).read_bytes()
    pathlib.Path("cut.tnc").write_bytes(whole[:len(whole) // 2])
    refused("cache", "unpack", "cut.tnc", env=environment(), saying="cut.tnc")
    assert listed() == before
    cache("unpack", "good.tnc")
    assert listed()["entries"] == before["entries"] + 1
    refused("plugin", "install", "good.tnc", saying="good.tnc", env=environment(XDG_DATA_HOME=os.path.abspath("data")))


def there_has_to_be_something_to_pack():
    refused("cache", "pack", "a.tnc", env=environment(), saying="nothing to pack")
    put(key=b"note", kind="quarantine")
    refused("cache", "pack", "a.tnc", env=environment(), saying="nothing to pack")
    assert not os.path.exists("a.tnc")
    put()
    refused("cache", "pack", "no/such/a.tnc", env=environment(), saying="no/such")


run([an_empty_cache_is_told,
     each_entry_says_what_it_is,
     what_is_no_sound_entry_is_named_and_not_believed,
     control_characters_in_an_entry_do_not_reach_the_terminal,
     a_folder_that_cannot_be_used_is_an_error,
     prune_removes_what_the_options_say,
     prune_beside_running_programs_disturbs_none,
     warm_compiles_what_eval_needs_and_runs_nothing,
     warm_counts_kernels_alone,
     warm_takes_saved_graphs_without_values,
     warm_of_a_loop_compiles_its_body,
     warm_fails_as_eval_does,
     a_damaged_entry_is_compiled_anew, what_a_driver_refuses_is_compiled_anew,
     without_room_programs_compile_each_time_and_warm_says_so,
     a_warm_cache_is_shipped,
     unpacking_mends_what_is_damaged_and_keeps_what_is_there,
     hostile_archives_end_in_an_error,
     there_has_to_be_something_to_pack])
