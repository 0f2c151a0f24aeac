#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Old plugins on this Tenon, this tree's plugins on old hosts, and both beside a next minor.

    museum.py TENON STAGING LIBRARY SANITIZE CC...

Frozen header sets and their plugins are in MAJOR.MINOR/ (tools/freeze-abi). A copy of them, with
today's headers frozen where they are not yet, is the museum that is visited; the headers of a next
minor are made here, by giving every table one more member.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import frozen  # noqa: E402
import tap  # noqa: E402
from tap import refused, tenon, values  # noqa: E402

LIBRARY = pathlib.Path(sys.argv[3]).resolve()
SANITIZE = [] if sys.argv[4] == "none" else [f"-fsanitize={sys.argv[4]}"]
CC = sys.argv[5:]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="tenon-museum-"))
MUSEUM = WORK / "museum"
TREE = ["org.tenon.null", "org.tenon.cpu-blas", "org.tenon.base", "org.tenon.nn"]


# --- building --------------------------------------------------------------------------


def compile_(include, source, out, *flags):
    """Compiles one file with the headers in `include` alone."""
    done = subprocess.run([*CC, "-std=gnu11", "-O1", "-Wall", *SANITIZE, f"-I{include}",
                           str(source), "-o", str(out), *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, f"{source} with {include}: {done.stdout}"
    return out


def plugin(include, source, out, *defines):
    out.parent.mkdir(parents=True, exist_ok=True)
    return compile_(include, source, out, "-shared", "-fPIC", "-fvisibility=hidden", *defines,
                    "-lm")


def plugins(include, sources, folder):
    """Every plugin in the folder `sources`, built in parallel."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda s: plugin(include, s, folder / f"org.tenon.museum.{s.stem}.so"),
                             sorted(sources.glob("*.c"))))


def stage(files, folder, env=None):
    """Folders as installed plugins have them; their manifests are made by this tenon."""
    for file in files:
        place = folder / file.stem
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
        tenon("plugin", "describe", file, "-o", place / "plugin.json", env=env or {})
        for path in (folder, place, place / file.name, place / "plugin.json"):
            path.chmod(0o755 if path.is_dir() else 0o644)
    return {"TENON_PLUGIN_PATH": f"{folder}:{tap.STAGING}"}


def once(function):
    """Its result is made when it is first asked for."""
    made = {}

    def ask(*args):
        if args not in made:
            made[args] = function(*args)
        return made[args]
    return ask


@once
def old_plugins(folder):
    return plugins(folder / "include", folder / "plugins", WORK / folder.name)


@once
def tree_plugins():
    own = plugins(frozen.HEADERS, HERE / "plugins", WORK / "tree")
    return own + [pathlib.Path(tap.STAGING, i, f"{i}.so") for i in TREE if tap.has_plugins(i)]


@once
def old_host(include):
    return compile_(include, HERE / "host.c", WORK / f"host-{len(list(WORK.glob('host-*')))}",
                    "-ldl")


def add_to_tables(text):
    """Gives each struct that may grow a last member. (tn_note stands twice in its header, tn_run grows at the end
    of tn_run_memory.)"""
    for found in reversed(list(re.finditer(r"struct (\w+) \{", text))):
        body = frozen.pin_offsets.block(text, found.end() - 1)
        grows = "struct_size;" in body or f"struct {found[1]}" in frozen.SIZED_ELSEWHERE
        if grows and found[1] not in ("tn_note", "tn_note_image", "tn_run", "content"):
            end = found.end() + len(body)
            text = f"{text[:end]}    uint64_t museum;\n{text[end:]}"
    return text


@once
def tomorrow():
    """The headers of the next minor."""
    include = WORK / "tomorrow"
    shutil.copytree(frozen.HEADERS, include)
    for header in include.rglob("*.h"):
        text = re.sub(r"(#define TN_ABI_MINOR) (\d+)",
                      lambda m: f"{m[1]} {int(m[2]) + 1}", header.read_text())
        header.write_text(add_to_tables(text))
    return include


@once
def newer(name, *defines):
    """newer.c, as a plugin of the next minor."""
    return plugin(tomorrow(), HERE / "newer.c", WORK / "newer" / f"org.tenon.museum.{name}.so",
                  *([] if any("_ID=" in d for d in defines) else [f'-DNEWER_ID="{name}"']),
                  *defines)


def today():
    return frozen.version(frozen.HEADERS)


def needs_next():
    return f"-DNEWER_MIN={today()[1] + 1}"


def visit(host, files, status=0):
    """What an emulated host says of plugins."""
    done = subprocess.run([str(host), *map(str, files)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == status, f"status {done.returncode}, expected {status}: {done.stdout}"
    return done.stdout


# --- freezing --------------------------------------------------------------------------


def freeze(museum, *options):
    """The exit status of tools/freeze-abi, and what it says."""
    done = subprocess.run([sys.executable, frozen.ROOT / "tools/freeze-abi", "--museum", museum,
                           *options, "--cc", *CC], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def open_museum():
    MUSEUM.mkdir()
    for folder in frozen.sets():
        shutil.copytree(folder, MUSEUM / folder.name)
    if not (MUSEUM / frozen.name(today())).exists():
        status, said = freeze(MUSEUM)
        assert status == 0, said


def freezing_is_done_once_and_a_release_is_final():
    museum, name = pathlib.Path("fresh").resolve(), frozen.name(today())
    steps = [  # options, status, what is said
        (["--check"], 1, "is not frozen"),
        ([], 0, f"{museum / name}: "),
        ([], 1, "--force freezes it again"),
        (["--check"], 0, "is frozen as it is"),
        (["--release"], 0, ""),
        (["--force"], 1, "is released and final"),
        (["--check"], 0, "is frozen as it is"),
    ]
    for options, status, saying in steps:
        done = freeze(museum, *options)
        assert done[0] == status and saying in done[1], (options, done)
    assert frozen.damage(museum / name) == []


def a_set_that_fell_behind_is_found_and_frozen_again():
    museum, name = pathlib.Path("behind").resolve(), frozen.name(today())
    assert freeze(museum)[0] == 0
    (museum / name / "plugins/reference.c").write_text("// as it was\n")
    for options in (["--check"], ["--release"]):
        status, said = freeze(museum, *options)
        assert status == 1 and "plugins/reference.c" in said, said
    assert freeze(museum, "--force")[0] == 0 and freeze(museum, "--check")[0] == 0


def headers_that_break_an_older_set_are_not_frozen():
    museum = pathlib.Path("older").resolve()
    shutil.copytree(frozen.sets(MUSEUM)[-1], museum / "0.9")
    header = museum / "0.9/include/tenon/status.h"
    header.write_text(header.read_text().replace("TN_ERR_MEMORY = -4", "TN_ERR_MEMORY = -9"))
    status, said = freeze(museum)
    assert status == 1 and "plugins of ABI 0.9" in said and "TN_ERR_MEMORY" in said, said
    assert [folder.name for folder in frozen.sets(museum)] == ["0.9"]


# --- frozen files ----------------------------------------------------------------------


def frozen_files_are_as_they_were_frozen():
    damage = [sentence for folder in frozen.sets(MUSEUM) for sentence in frozen.damage(folder)]
    assert not damage, damage


def an_edited_a_missing_and_an_added_file_are_found():
    copy = pathlib.Path("1.0")
    shutil.copytree(frozen.sets(MUSEUM)[0], copy)
    with open(copy / "include/tenon/status.h", "a") as file:
        file.write("\n")
    (copy / "application.c").unlink()
    (copy / "plugins/new.c").write_text("")
    found = [sentence.split(": ")[1] for sentence in frozen.damage(copy)]
    assert found == ["is missing", "was edited after it was frozen", "was not frozen"], found


def these_headers_only_add_to_frozen_ones():
    for folder in frozen.sets(MUSEUM):
        wrong = frozen.disagreements(folder / "include", frozen.HEADERS, CC)
        final = (folder / frozen.RELEASED).exists()
        assert not wrong, (folder.name, wrong, "it is final" if final else "it is not released "
                           "yet: if this is meant, run tools/freeze-abi --force")
    newest = frozen.sets(MUSEUM)[-1]
    added = frozen.additions(newest / "include", frozen.HEADERS, CC)
    for line in added:
        print(f"# since {newest.name} was frozen: {line}")
    final = (newest / frozen.RELEASED).exists() and newest.name == frozen.name(today())
    assert not (added and final), f"{newest.name} is released: raise TN_ABI_MINOR"


def headers_that_break_plugins_are_found():
    """A member moved, retyped, dropped; a struct that must not grow; a constant; a function."""
    for header, old, new, saying in [
        ("host.h", "tn_host_self *self;", "uint64_t added;\n    tn_host_self *self;",
         "tn_host, self"),
        ("backend.h", "void (*device_close)(tn_device *device);",
         "int32_t (*device_close)(tn_device *device);", "int32_t (*device_close)"),
        ("plugin.h", "uint32_t num_kernels;", "", "became `nothing`"),
        ("types.h", "} tn_type;", "    int64_t added;\n} tn_type;", "sizeof(struct tn_type)"),
        ("kernel.h", '"cpu.c/1"', '"cpu.c/2"', "TN_FAMILY_CPU"),
        ("status.h", "TN_ERR_MEMORY = -4", "TN_ERR_MEMORY = -9", "TN_ERR_MEMORY"),
        ("tenon.h", "void tn_release(tn_array *array)",
         "void tn_release(tn_array *array, int32_t now)", "tn_release")]:
        shutil.rmtree("broken", ignore_errors=True)
        shutil.copytree(frozen.HEADERS, "broken")
        path = pathlib.Path("broken/tenon", header)
        text = path.read_text()
        assert old in text, (header, old)
        path.write_text(text.replace(old, new, 1))
        wrong = "; ".join(frozen.disagreements(frozen.HEADERS, pathlib.Path("broken"), CC))
        assert saying in wrong, (header, new, wrong)
    assert not frozen.disagreements(frozen.HEADERS, tomorrow(), CC)


# --- old plugins on this Tenon ---------------------------------------------------------


VECTORS = ["x=[1, 2, 3]", "y=[2, 3, 4]"]
FLOATS = "x=[1.0, 2.0, 3.0]"


def use_packs(env):
    """What the museum's plugins compute, on the default backend and on the museum's own."""
    for backend in ({}, {"TENON_BACKEND": "museum"}):
        at = {"env": {**env, **backend}}
        for text, expected in [
            ("museum.axpby(astype(x, f32), astype(y, f32), alpha=2, beta=3)", [[8, 13, 18]]),
            ("museum.cube(astype(x, f32)) + 1", [[2, 9, 28]]),
            ("museum.count(x, limit=1)", [2]),
            ("museum.count(x, limit=2, side='below', strict=false)", [2]),
            ("a, b = museum.ends(x); a, b", [1, 3])]:
            got = values(text, *VECTORS, **at)
            assert got == expected, (text, backend, got)
        done = tenon("eval", "--json", "sum(museum.cube(x))", FLOATS, "--grad", "x", **at)
        slope = json.loads(done.stdout)["gradients"]["x"]["data"]
        assert slope == [3, 12, 27], (backend, slope)
        for text, kernel in [("museum.axpby(astype(x, f32), astype(y, f32))", "rows"),
                             ("museum.cube(astype(x, f32))", "cubes")]:
            why = tenon("why", text, *VECTORS, **at).stdout
            assert kernel in why, (text, backend, why)


def use_plugins(env):
    use_packs(env)
    devices = json.loads(tenon("devices", "--json", env=env).stdout)
    assert any(d["backend"] == "museum" and d["name"] == "exhibit" for d in devices), devices
    for file in old_plugins(frozen.sets(MUSEUM)[0]):
        state = json.loads(tenon("plugin", "show", file.stem, "--json", env=env).stdout)
        assert state["state"] in ("found", "loaded"), state


def plugins_of_each_frozen_set_work_here():
    for folder in frozen.sets(MUSEUM):
        use_plugins(stage(old_plugins(folder), WORK / f"{folder.name}-staged"))


def use_application(folder, env):
    """Its results, from plugins of its set."""
    application = compile_(folder / "include", folder / "application.c",
                           WORK / f"application-{folder.name}", str(LIBRARY),
                           f"-Wl,-rpath,{LIBRARY.parent}")
    done = subprocess.run([str(application)], env={**tap.ENVIRONMENT, **env}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("hello from the museum; "), done.stdout
    assert done.stdout.endswith("125 1000 3375, 375 1500 3375\n"), done.stdout


def an_application_of_each_frozen_set_works_here():
    for folder in frozen.sets(MUSEUM):
        use_application(folder, stage(old_plugins(folder), WORK / f"{folder.name}-staged"))


# --- this tree's plugins on old hosts --------------------------------------------------


def plugins_of_this_tree_work_on_each_frozen_host():
    for folder in frozen.sets(MUSEUM):
        text = visit(old_host(folder / "include"), tree_plugins())
        assert text.count("works: ") == len(tree_plugins()), text


def plugins_of_each_frozen_set_work_on_each_other_ones_host():
    for folder in frozen.sets(MUSEUM):
        for other in frozen.sets(MUSEUM):
            visit(old_host(folder / "include"), old_plugins(other))


# --- the next minor --------------------------------------------------------------------


def all_plugins_work_on_a_host_of_the_next_minor():
    files = tree_plugins() + [f for folder in frozen.sets(MUSEUM) for f in old_plugins(folder)]
    visit(old_host(tomorrow()), files + [newer("wide"), newer("careless", "-DNEWER_CARELESS")])


def core_of(include, folder):
    """libtenon, compiled as the build does it but with other headers."""
    folder.mkdir()
    build = LIBRARY.parents[1]
    commands = json.loads((build / "compile_commands.json").read_text())

    def one(entry):
        words = shlex.split(entry["command"])
        out = str(folder / entry["output"].replace("/", "-"))
        for option in ("-MQ", "-MF", "-o"):
            words[words.index(option) + 1] = out + (".d" if option == "-MF" else "")
        words = [f"-I{include}" if w.endswith("sdk/include") else w for w in words
                 if w != "-Werror"]
        subprocess.run([*words, "-O0"], cwd=entry["directory"], check=True)
        return out
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(one, [c for c in commands if c["output"].startswith("core/")]))
    subprocess.run([*CC, "-shared", "-o", str(folder / "libtenon.so.0"), *objects,
                    "-Wl,-soname,libtenon.so.0", "-ljansson", "-lsodium", "-lnettle", "-lm", "-lpthread"],
                   check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


def frozen_plugins_and_applications_work_on_a_core_of_the_next_minor():
    if SANITIZE:
        return "the core of the next minor has no sanitizer"
    later = core_of(tomorrow(), WORK / "core")
    demanding = stage([newer("demanding", needs_next())], WORK / "demanding-staged", later)
    assert values("museum.twice(x)", *VECTORS[:1], env={**demanding, **later}) == [[2, 4, 6]]
    for folder in frozen.sets(MUSEUM):
        env = {**stage(old_plugins(folder), WORK / f"{folder.name}-later", later), **later}
        use_plugins(env)
        use_application(folder, env)


def plugins_of_the_next_minor_work_on_older_hosts():
    wide = newer("wide")
    env = stage([wide], WORK / "wide-staged")
    assert values("museum.twice(astype(x, f32))", *VECTORS[:1], env=env) == [[2, 4, 6]]
    why = tenon("why", "museum.twice(astype(x, f32))", *VECTORS[:1], env=env).stdout
    assert "doubles" in why, why
    others = plugins(tomorrow(), HERE / "plugins", WORK / "later-plugins")
    use_plugins(stage(others, WORK / "later-plugins-staged"))
    for folder in frozen.sets(MUSEUM):
        visit(old_host(folder / "include"), [wide, *others])


def both_ranges(host, host_minor):
    major, minor = today()
    return (f"speaks ABI {major}.{minor + 1} to {major}.{minor + 1}, this {host} {major}.0 to "
            f"{major}.{host_minor}")


def a_plugin_that_needs_the_next_minor_is_refused_with_both_ranges():
    file = newer("demanding", needs_next())
    refused("plugin", "describe", file, saying=both_ranges("Tenon", today()[1]))
    for folder in frozen.sets(MUSEUM):
        said = visit(old_host(folder / "include"), [file], status=3)
        assert both_ranges("host", folder.name.split(".")[1]) in said, said


def the_same_plugin_installed_is_refused_when_it_is_used():
    file = newer("demanding", needs_next())
    env = stage([newer("demanding.twin", '-DNEWER_ID="demanding"')], WORK / "installed")
    place = (WORK / "installed/org.tenon.museum.demanding.twin").rename(
        WORK / "installed/org.tenon.museum.demanding")
    (place / "org.tenon.museum.demanding.twin.so").unlink()
    shutil.copy(file, place)
    manifest = json.loads((place / "plugin.json").read_text())
    manifest["abi"]["minor_min"] = today()[1] + 1
    manifest["file"] = file.name
    manifest["files"] = [{"name": file.name, "size": file.stat().st_size,
                          "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}]
    (place / "plugin.json").write_text(json.dumps(manifest))
    refused("eval", "museum.twice(1.0)", env=env, saying=both_ranges("Tenon", today()[1]))


def a_set_byte_that_older_hosts_do_not_know_is_refused():
    for table in ("PLUGIN", "OPS", "PRIMITIVE", "KERNEL", "CPU_KERNEL"):
        file = newer(f"set-{table.lower().replace('_', '-')}", f"-DNEWER_{table}=1")
        if table in ("PLUGIN", "OPS"):
            refused("plugin", "describe", file, saying=" is set, ")
        else:  # records are looked at when they are registered: all of them count, or none
            env = stage([file], WORK / f"{file.stem}-staged")
            said = tenon("eval", "museum.twice(1.0)", env=env, status=1).stderr
            assert "refused: " in said and " is set, " in said, said
        for folder in frozen.sets(MUSEUM):
            said = visit(old_host(folder / "include"), [file], status=3)
            assert "refused: " in said and " is set, which this host" in said, said


def a_plugin_that_reads_past_older_tables_is_caught():
    file = newer("careless", "-DNEWER_CARELESS")
    for folder in frozen.sets(MUSEUM):
        said = visit(old_host(folder / "include"), [file], status=1)
        assert "touched what is beyond the tables" in said, said


if __name__ == "__main__":
    try:
        open_museum()
        tap.run([freezing_is_done_once_and_a_release_is_final,
                 a_set_that_fell_behind_is_found_and_frozen_again,
                 headers_that_break_an_older_set_are_not_frozen,
                 frozen_files_are_as_they_were_frozen,
                 an_edited_a_missing_and_an_added_file_are_found,
                 these_headers_only_add_to_frozen_ones,
                 headers_that_break_plugins_are_found,
                 plugins_of_each_frozen_set_work_here,
                 an_application_of_each_frozen_set_works_here,
                 plugins_of_this_tree_work_on_each_frozen_host,
                 plugins_of_each_frozen_set_work_on_each_other_ones_host,
                 all_plugins_work_on_a_host_of_the_next_minor,
                 frozen_plugins_and_applications_work_on_a_core_of_the_next_minor,
                 plugins_of_the_next_minor_work_on_older_hosts,
                 a_plugin_that_needs_the_next_minor_is_refused_with_both_ranges,
                 the_same_plugin_installed_is_refused_when_it_is_used,
                 a_set_byte_that_older_hosts_do_not_know_is_refused,
                 a_plugin_that_reads_past_older_tables_is_caught])
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
