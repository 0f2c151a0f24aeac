# SPDX-License-Identifier: MIT
"""Folders of plugins in which somebody else planted links and folders, or may swap them, and files that a
command which was killed leaves behind."""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import stage
import tap
from tap import tenon

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()
KILLER = pathlib.Path(sys.argv[4]).absolute() if len(sys.argv) > 4 else None
ID = "com.acme.good"
NOBODY = 65534
LEFT = ".install-0123456789ab"  # as this command names its own
IS_ROOT = os.geteuid() == 0
NOT_ROOT = "only root can act as two users"


def run(*args, user=None, env=None):
    """The command as this user or another, whatever it gives."""
    options = {"user": user, "group": user, "extra_groups": []} if user else {}
    return subprocess.run([tap.TENON, *map(str, args)], env={**tap.ENVIRONMENT, **(env or {})}, capture_output=True,
                          text=True, timeout=100, **options)


def nobody_reaches_the_command():
    try:
        return run("--version", user=NOBODY).returncode == 0
    except PermissionError: # the build folder is in one that is root's own
        return False


def contents(folder):
    """Every name below a folder with its owner, mode, target or bytes."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        info = path.lstat()
        data = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (info.st_uid, info.st_mode, data)
    return found


def victim(name="victim"):
    """Files of somebody that nothing may touch."""
    folder = pathlib.Path(name)
    (folder / "inner").mkdir(parents=True)
    (folder / "precious").write_text("precious\n")
    (folder / "inner/more").write_text("more\n")
    return folder


def open_to(user):
    """Lets another user work below the test's folder, and gives the plugin to install."""
    os.chmod(".", 0o755)
    source = stage.stage(ID, "fixture-good", "source")
    if user:
        os.mkdir("home")
        os.chown("home", user, user)
    return source.absolute(), pathlib.Path("home" if user else ".").absolute() / "pub"


def plant_link(path, target):
    path.symlink_to(target)
    return "a link"


def plant_folder_with_link(path, target):
    path.mkdir(mode=0o700)
    (path / "inside").symlink_to(target)
    (path / ".old").symlink_to(target)
    return "a folder with links"


def plant_old(path, target):
    (path / ".old").mkdir(mode=0o700, parents=True)
    os.chmod(path, 0o700)
    shutil.copytree(target, path / ".old/com.acme.evil")
    return "a folder to be put back"


def each_user():
    return [None, NOBODY] if IS_ROOT and nobody_reaches_the_command() else [None]


# --- planted names -----------------------------------------------------------------------


def nothing_behind_a_planted_link_is_touched():
    """At each name that a store knows, as root and as a user without rights."""
    for user in each_user():
        for name in [".install-evil", LEFT, ".remove-evil", ".remove-0123456789ab", ".old", ".lock", ID]:
            with folder_of_its_own():
                (source, pub), precious = open_to(user), victim()
                pub.mkdir()
                plant_link(pub / name, precious.absolute())
                os.chown(precious, user or -1, user or -1)  # so that its user could remove it
                give(pub, user)
                before = contents(precious)
                for command in ["install", source], ["upgrade", source], ["remove", ID]:
                    done = run("plugin", *command, "--prefix", pub, user=user)
                    assert contents(precious) == before, (user, name, command)
                    assert os.path.islink(pub / name), (user, name, command)
                    if name == ID:
                        assert done.returncode == 1 and "a symbolic link" in done.stderr, (command, done)
                    elif command[0] != "remove":
                        assert done.returncode == 0, (user, name, done.stderr)


def nothing_of_another_user_is_moved_or_removed():
    if not IS_ROOT:
        return NOT_ROOT
    if not nobody_reaches_the_command():
        return "another user cannot read the build folder"
    for user, other in [(None, NOBODY), (NOBODY, 1)]:
        for plant in plant_folder_with_link, plant_old:
            for name in LEFT, ".install-evil":
                with folder_of_its_own():
                    (source, pub), precious = open_to(user), victim()
                    pub.mkdir()
                    give(pub, user)
                    plant(pub / name, precious.absolute())
                    give(pub / name, other)
                    before = contents(precious), contents(pub / name)
                    done = run("plugin", "install", source, "--prefix", pub, user=user)
                    assert done.returncode == 0, done.stderr
                    assert (contents(precious), contents(pub / name)) == before, (user, plant, name)
                    assert sorted(os.listdir(pub)) == sorted([name, ID])
                    # A plugin of somebody else is neither replaced nor removed.
                    give(pub / ID, other)
                    for command in ["install", source], ["remove", ID]:
                        done = run("plugin", *command, "--prefix", pub, user=user)
                        assert done.returncode == 1 and f"made by user {other}" in done.stderr, done.stderr
                        assert (pub / ID / "plugin.so").exists()
    return None


def what_this_user_left_is_put_back_and_removed():
    for user in each_user():
        with folder_of_its_own():
            (source, pub), precious = open_to(user), victim()
            assert run("plugin", "install", source, "--prefix", pub, user=user).returncode == 0
            staging = pub / LEFT
            (staging / ".old").mkdir(parents=True)
            os.rename(pub / ID, staging / ".old" / ID)
            deep = staging / "deep"
            for _ in range(40):  # far more names than a path may hold
                deep = deep / ("x" * 20)
            deep.mkdir(parents=True)
            at = os.open(deep, os.O_RDONLY)
            for _ in range(300):
                os.mkdir("y" * 20, 0o700, dir_fd=at)
                at, before = os.open("y" * 20, os.O_RDONLY, dir_fd=at), at
                os.close(before)
            os.close(at)
            (staging / "link").symlink_to(precious.absolute())
            os.chmod(staging, 0o700)
            subprocess.run(["chown", "-hR", str(user or os.geteuid()), staging], check=True)
            before = contents(precious)
            run("plugin", "remove", "com.acme.none", "--prefix", pub, user=user)
            assert os.listdir(pub) == [ID] and contents(precious) == before, os.listdir(pub)


def folders_that_others_may_change_are_refused():
    """With what to do about it, and before anything in them is touched."""
    source, pub = open_to(None)
    pub.mkdir()
    plant_old(pub / LEFT, victim().absolute())
    before = contents(pub)
    cases = [(0o777, None, "everybody", "chmod go-w"), (0o1777, None, "everybody", "chmod go-w")]
    if IS_ROOT:
        cases += [(0o775, (0, 1), "its group", "chmod go-w"), (0o755, (NOBODY, NOBODY), f"user {NOBODY}", "chown 0")]
    if IS_ROOT and shutil.which("setfacl"):
        cases.append((0o755, "acl", "access list", "setfacl -b"))
    for mode, owner, who, remedy in cases:
        if owner == "acl":
            os.chown(pub, 0, 0)
            os.chmod(pub, mode)
            if subprocess.run(["setfacl", "-m", f"u:{NOBODY}:rwx", pub], capture_output=True).returncode:
                continue  # a file system without access lists
        elif owner:
            os.chown(pub, *owner)
        if owner != "acl":
            os.chmod(pub, mode)
        for command in ["install", source], ["remove", ID]:
            done = run("plugin", *command, "--prefix", pub)
            assert done.returncode == 1 and who in done.stderr and remedy in done.stderr, (mode, owner, done)
            assert contents(pub) == before, (mode, owner)
        if owner and owner != "acl":
            os.chown(pub, 0, 0)


def links_on_the_way_are_followed_when_they_are_ones_own():
    source, _ = open_to(None)
    os.mkdir("real")
    os.mkdir("way")
    pathlib.Path("way/link").symlink_to("../real")
    assert run("plugin", "install", source, "--prefix", "way/link/pub").returncode == 0
    assert os.listdir("real/pub") == [ID]
    loop = pathlib.Path("way/loop")
    loop.symlink_to("loop")
    assert "symbolic links" in run("plugin", "install", source, "--prefix", "way/loop/pub").stderr
    if not IS_ROOT:
        return "the rest: " + NOT_ROOT
    precious = victim()
    for target in precious.absolute(), "../victim":
        planted = pathlib.Path("way/planted")
        planted.symlink_to(target)
        os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
        before = contents(precious)
        for prefix in "way/planted", "way/planted/pub", "real/../way/planted":
            for command in ["install", source], ["remove", ID]:
                done = run("plugin", *command, "--prefix", prefix)
                assert done.returncode == 1 and f"link of user {NOBODY}" in done.stderr, done
        assert contents(precious) == before
        planted.unlink()
    return None


# --- races -------------------------------------------------------------------------------


@contextlib.contextmanager
def swapping(one, other):
    """Exchanges two names all the time."""
    libc, ended = ctypes.CDLL(None, use_errno=True), threading.Event()

    def swap():
        while not ended.is_set():
            libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def a_source_that_is_swapped_for_a_link_gives_nothing_else_away():
    source, pub = open_to(None)
    (source / "shaders").mkdir()
    (source / "shaders/one").write_text("mine\n")
    os.mkdir("secrets")
    pathlib.Path("secrets/one").write_text("secret\n")
    planted = pathlib.Path("planted")
    planted.symlink_to(pathlib.Path("secrets").absolute())
    with swapping(source / "shaders", planted):
        for _ in range(40):
            done = run("plugin", "install", source, "--prefix", pub)
            assert done.returncode in (0, 1), done
            copied = pub / ID / "shaders/one"
            assert not copied.exists() or copied.read_text() == "mine\n", "it followed the link"
            assert not pub.exists() or set(os.listdir(pub)) <= {ID}, os.listdir(pub)


def a_store_that_is_swapped_for_a_link_leads_nowhere():
    if not IS_ROOT:
        return NOT_ROOT
    source, pub = open_to(None)
    precious = victim()
    pub.mkdir()
    plant_old(precious / LEFT, pathlib.Path("source").absolute())  # its owner could remove this
    planted = pathlib.Path("planted")
    planted.symlink_to(precious.absolute())
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    before, codes = contents(precious), set()
    with swapping(pub, planted):
        for _ in range(40):
            for command in ["install", source], ["remove", ID]:
                codes.add(run("plugin", *command, "--prefix", pub).returncode)
                assert contents(precious) == before, command
    assert codes <= {0, 1}, codes
    return None


# --- killed ------------------------------------------------------------------------------


def killed_at_each_step(command, check, env=None, limit=400):
    """Runs a command that ends before its n-th change of files, for each n, then once more as a whole."""
    left = 0
    for step in range(1, limit):
        env = {**(env or {}), "LD_PRELOAD": str(KILLER), "KILL_AT": str(step)}
        done = run(*command, env=env)
        assert done.returncode in (0, 77), done
        left += check(done.returncode == 0)
        if done.returncode == 0:
            return step, left
    raise AssertionError("it never came to its end")


def a_command_that_is_killed_leaves_no_file():
    if not KILLER:
        return "the killer is not built for sanitizers"
    for nameless in "1", "0":  # a file system that has files without names, and one that has not
        for old in False, True:
            with folder_of_its_own():
                if old:
                    pathlib.Path("x.npy").write_text("old")

                def check(is_whole):
                    others = set(os.listdir(".")) - {"x.npy"}
                    assert not is_whole or (not others and pathlib.Path("x.npy").exists()), others
                    assert is_whole or not old or pathlib.Path("x.npy").read_text("latin1")[:3] in ("old", "\x93NU")
                    if not is_whole:
                        pathlib.Path("x.npy").write_text("old") if old else pathlib.Path("x.npy").unlink(missing_ok=True)
                    return bool(others)
                steps, left = killed_at_each_step(["eval", "1+1", "-o", "x.npy"], check,
                                                  env={"KILL_NAMELESS": nameless})
                assert steps > 3, steps
                # Replacing takes two steps, with a name of its own between them: one run leaves it, and the next,
                # when it is killed before it removes that.
                assert nameless == "0" or left <= 2 * old, (old, left)
    return None


def folders_of_commands_that_are_killed_are_removed_by_the_next():
    if not KILLER:
        return "the killer is not built for sanitizers"
    source, _ = open_to(None)
    os.mkdir("tmp")
    os.mkdir("work")

    def check_pack(is_whole):
        assert not is_whole or os.listdir("tmp") == [], os.listdir("tmp")
        return 0
    killed_at_each_step(["plugin", "pack", source, "-o", "x.tnp"], check_pack, env={"TMPDIR": os.path.abspath("tmp")})
    os.chdir("work")

    def check_new(is_whole):
        names = os.listdir(".")
        assert not is_whole or names == ["demo"], names
        if "demo" in names and not is_whole:
            shutil.rmtree("demo")
        return 0
    killed_at_each_step(["new", "op-pack", "demo"], check_new)
    return None


def one_that_is_still_writing_keeps_its_file():
    """What is locked is no leftover."""
    os.mkfifo("pipe")
    kept, left = pathlib.Path(".tenon-save-0000000000000001"), pathlib.Path(".tenon-save-0000000000000002")
    kept.write_text("x")
    left.write_text("x")
    pathlib.Path(".tenon-save-0000000000000003").symlink_to("pipe")
    with open(kept) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tenon("eval", "1", "-o", "x.npy")
        assert kept.exists() and not left.exists()
    assert os.path.islink(".tenon-save-0000000000000003")
    tenon("eval", "1", "-o", "x.npy")
    assert not kept.exists()


# --- the harness -------------------------------------------------------------------------


@contextlib.contextmanager
def folder_of_its_own(counter=[0]):
    counter[0] += 1
    before = os.getcwd()
    os.mkdir(f"{before}/{counter[0]}")
    os.chmod(before, 0o755)
    os.chdir(f"{before}/{counter[0]}")
    try:
        yield
    finally:
        os.chdir(before)
        subprocess.run(["rm", "-rf", str(counter[0])], check=True)


def give(path, user):
    """A tree to a user; links themselves, not where they lead."""
    if user:
        subprocess.run(["chown", "-hR", f"{user}:{user}", path], check=True)


tap.run([nothing_behind_a_planted_link_is_touched, nothing_of_another_user_is_moved_or_removed,
         what_this_user_left_is_put_back_and_removed, folders_that_others_may_change_are_refused,
         links_on_the_way_are_followed_when_they_are_ones_own,
         a_source_that_is_swapped_for_a_link_gives_nothing_else_away, a_store_that_is_swapped_for_a_link_leads_nowhere,
         a_command_that_is_killed_leaves_no_file, folders_of_commands_that_are_killed_are_removed_by_the_next,
         one_that_is_still_writing_keeps_its_file])
