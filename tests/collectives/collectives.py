#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of `tenon run` on this machine, by each MPI that is installed: right values; who failed is told.

    collectives.py TENON MEMBER [LAUNCHER...]    without launchers: those of Debian's packages
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sentences import run  # noqa: E402 pylint: disable=wrong-import-position

TENON, MEMBER = map(os.path.abspath, sys.argv[1:3])
LAUNCHERS = sys.argv[3:] or [name for name in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(name)]
WITHIN = 5  # seconds in which a failure is known


def started(launcher, ranks, *command, options=(), env=None):
    return subprocess.Popen([TENON, "run", "-n", str(ranks), "--launcher", launcher, "--allow-root", *options, *command],
                            env={**os.environ, "TENON_BACKEND": "cpu-blas", **(env or {})}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ended(process, seconds=60):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        raise AssertionError(f"it hangs:\n{out}{err}") from None
    return process.returncode, out, err


def version_of(launcher):
    return subprocess.run([launcher, "--version"], capture_output=True, text=True, check=True).stdout


def of_each(check):
    """A test of each launcher; those that fail are named."""
    def test():
        if not LAUNCHERS:
            return "no MPI is installed"
        for launcher in LAUNCHERS:
            try:
                check(launcher)
            except AssertionError as fault:
                raise AssertionError(f"{launcher}: {fault}") from fault
        return None
    test.__name__ = check.__name__
    return test


def member(launcher, ranks, mode, status, seconds=60, **options):
    got, out, err = ended(started(launcher, ranks, MEMBER, mode, **options), seconds)
    assert got == status, f"{mode}: status {got}, expected {status}:\n{out}{err}"
    return out, err


# --- values ------------------------------------------------------------------------------

@of_each
def every_collective_gives_what_it_must(launcher):
    for ranks in (1, 2, 4) if launcher == LAUNCHERS[0] else (3,):
        out, _ = member(launcher, ranks, "values", 0)
        assert all(f"rank {i} of {ranks}: right" in out for i in range(ranks)), out
    out, _ = member(launcher, 3, "values", 0, env={"TENON_MPI_MESSAGES": "1"})
    assert out.count("of 3: right") == 3, out


@of_each
def who_computes_is_waited_for(launcher):
    out, err = member(launcher, 2, "slow", 0)
    assert "rank 0 waited" in out and "rank 1 waited" in out and not re.search("failed|stopped", err), out + err


def of_python(name):
    """The command of a program in Python beside this one; None where the package is not built."""
    has = subprocess.run([sys.executable, "-c", "import tenon"], capture_output=True, check=False).returncode == 0
    return (sys.executable, str(pathlib.Path(__file__).with_name(name))) if has else None


@of_each
def groups_in_python_do_what_they_must(launcher):
    if script := of_python("groups.py"):
        got, out, err = ended(started(launcher, 2, *script))
        assert got == 137 and "rank 0: right" in out and "rank 1: right" not in out, out + err


@of_each
def training_over_ranks_has_the_losses_of_one_process(launcher):
    if not (script := of_python("train.py")):
        return
    losses = []
    for ranks in (1, 3):
        got, out, err = ended(started(launcher, ranks, *script))
        assert got == 0, out + err
        losses.append([float(line) for line in out.split()])
    alone, together = losses
    assert len(alone) == 40 and alone[19] < 0.7 * alone[0] and alone[39] < 0.8 * alone[20], alone
    assert all(abs(a - b) <= 1e-6 * a for a, b in zip(alone, together)), losses


# --- `tenon train` -----------------------------------------------------------------------

def training(folder, ranks, steps, *options, before=()):
    """`tenon train transformer` of several processes; `before`: words in front of it."""
    text = pathlib.Path(folder, "text")
    text.write_text(pathlib.Path(__file__).read_text()[:4000])
    return started(LAUNCHERS[0], ranks, *before, TENON, "train", "transformer", str(text), "--steps", str(steps), "--batch", "4", "--json",
                   "--save", f"{folder}/saved.safetensors", *options)


def trained(folder, ranks, steps, *options):
    """Its status, what it tells of its start and its steps, and stderr."""
    got, out, err = ended(training(folder, ranks, steps, *options))
    return got, [event for event in map(json.loads, out.splitlines()) if event["event"] in ("start", "step")], err


def training_by_the_command_is_that_of_one_process():
    if not LAUNCHERS:
        return "no MPI is installed"
    with tempfile.TemporaryDirectory() as folder:
        (status, alone, err), (other, together, more) = (trained(folder, ranks, 4) for ranks in (1, 2))
        assert status == other == 0 and alone[0] == together[0] and len(alone) == len(together) == 5, err + more
        assert all(abs(a["loss"] - b["loss"]) <= 1e-6 * a["loss"] for a, b in zip(alone[1:], together[1:])), (alone, together)
        got, _, err = trained(folder, 3, 4)
        assert got != 0 and "a batch of 4 rows for 3 processes, expected a multiple" in err, err
    return None


def adapters_are_trained_by_several_processes():
    if not LAUNCHERS:
        return "no MPI is installed"
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
    import lm  # pylint: disable=import-outside-toplevel,import-error
    lm.gguf("letters.gguf", 1.0)
    pathlib.Path("text").write_text("once upon a time there was a model. " * 4)
    losses = []
    for ranks in (1, 2):
        got, out, err = ended(started(LAUNCHERS[0], ranks, TENON, "train", "lora", "letters.gguf", "text", "--steps", "3", "--window", "6",
                                      "--batch", "2", "--rate", "0.02", "--json", "-o", f"{ranks}.safetensors"))
        assert got == 0 and pathlib.Path(f"{ranks}.safetensors").exists(), out + err
        losses.append([json.loads(line)["loss"] for line in out.splitlines()])
    assert len(losses[0]) == 3 and all(abs(a - b) < 4e-6 for a, b in zip(*losses)), losses
    return None


def who_is_lost_leaves_a_checkpoint_of_the_last_step():
    if not LAUNCHERS:
        return "no MPI is installed"
    with tempfile.TemporaryDirectory() as folder:
        note = f'case $TENON_RUN in rank=1*) echo $$ >{folder}/pid; esac; exec "$@"'
        process = training(folder, 2, 1000000, before=("sh", "-c", note, "sh"))
        while '"step"' not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
        os.kill(int(pathlib.Path(folder, "pid").read_text()), signal.SIGKILL)
        got, _, err = ended(process)
        found = re.search(r"rank 1 was ended by signal 9 \(Killed\).*; .*saved.safetensors has step (\d+)", err)
        assert got == 137 and found and int(found[1]) > 0, err
        got, steps, err = trained(folder, 1, int(found[1]) + 1, "--resume", f"{folder}/saved.safetensors")
        assert got == 0 and steps[0]["first"] == int(found[1]) and len(steps) == 2, (steps, err)
    return None


# --- members that disagree ---------------------------------------------------------------

@of_each
def shapes_that_differ_are_told(launcher):
    out, _ = member(launcher, 3, "shapes", 3)
    assert "rank 0 failed" in out and "rank 1 failed" in out and "rank 2 failed" in out, out
    assert out.count("members disagree: call 1 of rank") == 3, out
    assert "call 1 of rank 0 is all_reduce (sum) of 4 f32, of rank 1 all_reduce (sum) of 5 f32" in out, out


@of_each
def orders_that_differ_are_told(launcher):
    out, _ = member(launcher, 2, "order", 3)
    assert "call 1 of rank 0 is all_reduce (sum) of 1 f32, of rank 1 all_gather of 1 f32" in out, out
    assert "call 1 of rank 1 is all_gather of 1 f32, of rank 0 all_reduce (sum) of 1 f32" in out, out


@of_each
def who_ends_its_program_is_told(launcher):
    out, _ = member(launcher, 2, "leaves", 3)
    assert "call 2 of rank 0 is all_reduce (sum) of 4 f32, of rank 1 the end of its program" in out, out
    out, _ = member(launcher, 2, "exits", 3)
    assert "rank 1 ended (status 0); rank 0 was in all_reduce (sum) of 4 f32" in out, out


def staged_as_version(folder, version):
    """The plugin for MPI, which says that it is another version."""
    staged = pathlib.Path(os.environ["TENON_PLUGIN_PATH"].split(":")[0])
    mine = pathlib.Path(folder, "org.tenon.mpi")
    shutil.copytree(staged / "org.tenon.mpi", mine)
    code = mine / "org.tenon.mpi.so"
    old = b"org.tenon.mpi 0.1.0, ABI"
    assert old in code.read_bytes()
    code.write_bytes(code.read_bytes().replace(old, b"org.tenon.mpi %s, ABI" % version.encode()))
    manifest = json.loads((mine / "plugin.json").read_text())
    for file in manifest["files"]:
        file["sha256"] = hashlib.sha256((mine / file["name"]).read_bytes()).hexdigest()
    (mine / "plugin.json").write_text(json.dumps(manifest))


def as_rank_1(variables):
    """A command that runs another with variables for rank 1 alone."""
    return ("sh", "-c", f'case "$TENON_RUN" in rank=1*) export {variables};; esac; exec "$@"', "sh")


@of_each
def versions_and_backends_that_differ_are_told(launcher):
    with tempfile.TemporaryDirectory() as folder:
        staged_as_version(folder, "0.0.9")
        got, out, err = ended(started(launcher, 2, *as_rank_1(f"TENON_PLUGIN_PATH={folder}:$TENON_PLUGIN_PATH"), MEMBER, "slow"))
        saying = "members are of different versions: rank 0 has org.tenon.mpi 0.1.0, ABI minor 0, rank 1 org.tenon.mpi 0.0.9"
        assert got == 3 and out.count(saying) == 2, out + err
    got, out, err = ended(started(launcher, 2, *as_rank_1("TENON_BACKEND=cpu-blas,null"), MEMBER, "slow", env={"TEST_SECONDS": "0"}))
    assert got == 0 and "TENON_BACKEND of rank 0 is 'cpu-blas', of rank 1 'cpu-blas,null'" in err, out + err


def plugins_that_differ_are_told():
    if not LAUNCHERS:
        return "no MPI is installed"
    staged = pathlib.Path(os.environ["TENON_PLUGIN_PATH"].split(":")[0])
    with tempfile.TemporaryDirectory() as folder:
        mine = pathlib.Path(folder, "org.tenon.base")
        shutil.copytree(staged / "org.tenon.base", mine)
        manifest = json.loads((mine / "plugin.json").read_text())
        (mine / "plugin.json").write_text(json.dumps({**manifest, "version": "99.0.0"}))
        got, out, err = ended(started(LAUNCHERS[0], 2, *as_rank_1(f"TENON_PLUGIN_PATH={folder}:$TENON_PLUGIN_PATH"), MEMBER, "slow"))
        assert got == 3 and out.count("plugins of different versions: rank 0 has org.tenon.base 0.1.0, rank 1 99.0.0") == 2, out + err
    got, out, err = ended(started(LAUNCHERS[0], 2, *as_rank_1("TENON_PLUGINS_DISABLE=org.tenon.null"), MEMBER, "slow", env={"TEST_SECONDS": "0"}))
    assert got == 0 and "rank 1 lacks 1 of rank 0, the first is org.tenon.null" in err, out + err
    return None


def who_is_started_by_a_launcher_finds_its_library():
    for launcher in LAUNCHERS:
        mpich = "HYDRA" in version_of(launcher)
        words = [launcher, "-n", "2", *([] if mpich else ["--allow-run-as-root", "--oversubscribe"]), MEMBER, "slow"]
        for name in (None, *(["libmpi.so.40"] if mpich and len(LAUNCHERS) > 1 else [])):
            env = {**os.environ, "TEST_SECONDS": "0", **({"TENON_MPI": name} if name else {})}
            done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
            said = "PMI_SIZE is 2, and Open MPI" if name else "rank 1 waited"
            assert (done.returncode != 0) == bool(name) and said in done.stdout, (words, done)


@of_each
def messages_of_another_size_are_told(launcher):
    out, _ = member(launcher, 2, "receives", 3)
    assert "receive from rank 0: got 3 elements, expected 4" in out, out


@of_each
def members_that_wait_for_each_other_are_told(launcher):
    out, _ = member(launcher, 3, "late", 0)
    assert out.count("right") == 3, out
    out, _ = member(launcher, 3, "awaits", 0)
    receives, sends = r"rank (?P<first>\d) waits to receive from rank \d", r"rank (?P<first>\d) waits until what it sends is received by rank \d"
    ring, of_ring = (r"%s \(tag %d\), which waits .* rank \d \(tag %d\), which waits .* rank (?P=first) \(tag %d\)$" % (words, *3 * [tag])
                     for words, tag in ((receives, 0), (sends, 3)))
    behind = r", which%s waits in all_reduce \(sum\) of [13] f32$"
    for case, words in (("nothing", receives + r" \(tag 0\)" + behind % ""), ("ring", ring), ("receivers", of_ring),
                        ("tag", receives + r" \(tag 5\)" + behind % " sent it a message with tag 7 and"),
                        ("large", r"rank \d waits .*which sent it a message with tag 7")):
        found = re.findall(rf"^{case} of (\d), (.*) s: .*members disagree: {words}", out, re.M)
        assert {rank for rank, *_ in found} == {"0", "1", "2"} and all(float(seconds) < 2 * WITHIN for _, seconds, *_ in found), (case, out)


@of_each
def who_ends_the_group_tells_the_others(launcher):
    out, _ = member(launcher, 2, "aborts", 3)
    assert re.search("rank 1 failed: .*rank 0 ended the group: the group was ended: enough", out) and out.count("failed") == 2, out


@of_each
def deadlines_end_calls(launcher):
    out, _ = member(launcher, 2, "deadline", 3)
    assert "rank 0 failed: " in out and "all_reduce (sum) of 4 f32 did not end within the deadline of 300 ms" in out, out


# --- members that fail -------------------------------------------------------------------

class Members:
    """Processes that have come as far as to say "ready"; what they say."""

    def __init__(self, launcher, ranks, mode, **options):
        self.process, self.lines, self.pids = started(launcher, ranks, MEMBER, mode, **options), [], {}
        while len(self.pids) < ranks:
            if found := re.match(r"ready (\d+) (\d+)", self.line()):
                self.pids[int(found[1])] = int(found[2])

    def line(self):
        line = self.process.stdout.readline()
        assert line, f"it ended: {''.join(self.lines)}{self.process.stderr.read()}"
        self.lines.append(line)
        return line


KILLED, STOPPED = "was ended by signal 9 (Killed)", "is stopped by signal 19 (Stopped (signal))"


def failing(launcher, ranks, number, words, status):
    """Sends rank 1 a signal; all others name it in time."""
    members = Members(launcher, ranks, "loop")
    os.kill(members.pids[1], number)
    began, told = time.monotonic(), set()
    while len(told) < ranks - 1:
        if found := re.match(r"rank (\d+) failed: .*rank 1 " + re.escape(words), members.line()):
            told.add(int(found[1]))
    took = time.monotonic() - began
    got, out, err = ended(members.process)
    assert took < WITHIN, f"known after {took:.1f} s"
    assert got == status and f"rank 1 on {os.uname().nodename} {words}" in err, (got, out, err)
    assert not pathlib.Path(f"/proc/{members.pids[1]}").exists(), "rank 1 is still there"


@of_each
def who_is_killed_is_named(launcher):
    failing(launcher, 3, signal.SIGKILL, KILLED, 137)


@of_each
def who_is_stopped_is_named(launcher):
    failing(launcher, 3, signal.SIGSTOP, STOPPED, 1)


def failing_in_halves(launcher, mode, number, words):
    """Rank 1 of four fails, whose half has rank 3, which names it; the other half does, too, where the library ends with a rank,
    or says that it goes on without it, or has ended by itself."""
    by_messages = mode == "halves" and number == signal.SIGKILL  # the other half's calls may never wait long
    env = {"TEST_SIGNAL": str(int(number)), "TENON_MPI_MESSAGES": str(int(by_messages))}
    members = Members(launcher, 4, mode, env=env, options=("--grace", "6"))
    began, told = time.monotonic(), set()
    if mode not in ("splits", "introduces"):
        os.kill(members.pids[1], number)
    goes_on = "(Open MPI) 5" in version_of(launcher) and mode in ("halves", "pending")
    while 3 not in told if goes_on or mode == "introduces" else len(told) < 3:
        if found := re.match(r"rank (\d+) failed: .*rank 1 " + re.escape(words), members.line()):
            told.add(int(found[1]))
            assert time.monotonic() - began < WITHIN, f"rank {found[1]} knows after {time.monotonic() - began:.1f} s"
    _, out, err = ended(members.process)
    assert not goes_on or f"rank 1 {words}; groups without it go on" in err, out + err


def in_halves(name, mode, number, words):
    @of_each
    def test(launcher):
        failing_in_halves(launcher, mode, number, words)
    test.__name__ = name
    return test


FAILING_IN_HALVES = [in_halves(f"who is {how} {when} is named", mode, number, words)
                     for mode, when in (("halves", "behind a split"), ("pending", "while a part waits"), ("splits", "in a split"))
                     for how, number, words in (("killed", signal.SIGKILL, KILLED), ("stopped", signal.SIGSTOP, STOPPED))]
FAILING_IN_HALVES += [in_halves("who is killed while a new part is introduced is named", "introduces", signal.SIGKILL, KILLED)]


@of_each
def who_fails_when_all_leave_is_named(launcher):
    number, words = ((signal.SIGKILL, KILLED), (signal.SIGSTOP, STOPPED))[(LAUNCHERS.index(launcher) + 1) % 2]
    began = time.monotonic()
    _, out, err = ended(started(launcher, 3, MEMBER, "ends", env={"TEST_SIGNAL": str(int(number))}))
    assert f"rank 1 on {os.uname().nodename} {words}" in err and time.monotonic() - began < 2 * WITHIN, (time.monotonic() - began, out, err)


@of_each
def who_fails_before_it_joins_is_named(launcher):
    how, words, status = (("exit 0", "ended (status 0)", 3), ("kill -9 $$", "was ended by signal 9 (Killed)", 137))[LAUNCHERS.index(launcher) % 2]
    script = f'case "$TENON_RUN" in rank=1*) {how};; esac; exec "$0" loop'
    began = time.monotonic()
    got, out, err = ended(started(launcher, 3, "sh", "-c", script, MEMBER))
    assert got == status and time.monotonic() - began < WITHIN, (got, time.monotonic() - began, out, err)
    for rank in (0, 2):
        assert f"rank 1 {words}; rank {rank} was joining the world" in out, out + err


@of_each
def survivors_go_on_where_the_library_can(launcher):
    if "(Open MPI) 5" in version_of(launcher):
        out, _ = member(launcher, 3, "shrinks", 9)
        assert "rank 0 goes on among 2" in out and "rank 2 goes on among 2" in out, out
    else:
        out, _ = member(launcher, 3, "shrinks", 9)
        assert "cannot go on without a member: Open MPI 5 can" in out, out


# --- the command -------------------------------------------------------------------------

@of_each
def statuses_are_those_of_the_ranks(launcher):
    assert ended(started(launcher, 2, "true"))[0] == 0
    got, _, err = ended(started(launcher, 2, "sh", "-c", "exit 7"))
    assert got == 7 and "ended with status 7" in err, err
    got, _, err = ended(started(launcher, 1, "no-such-program"))
    assert got == 127 and "cannot run no-such-program" in err, err


@of_each
def ranks_that_do_not_end_are_ended(launcher):
    script = 'case "$TENON_RUN" in rank=0*) exit 5;; esac; sleep 600'
    began = time.monotonic()
    got, _, err = ended(started(launcher, 2, "sh", "-c", script, options=("--grace", "1")))
    assert got == 5 and time.monotonic() - began < 20 and "they are ended now" in err, err


@of_each
def each_rank_has_its_device(launcher):
    show = ("sh", "-c", 'echo "$TENON_BACKEND"')
    _, out, _ = ended(started(launcher, 2, *show, options=("--devices", "nobody:%?,cpu-blas")))
    assert sorted(out.split()) == ["nobody:0?,cpu-blas", "nobody:1?,cpu-blas"], out
    _, out, _ = ended(started(launcher, 2, *show, options=("--devices", "cpu-blas,vulkan:3")))
    assert sorted(out.split()) == ["cpu-blas", "vulkan:3"], out
    got, _, err = ended(started(launcher, 2, *show, options=("--devices", "vulkan:0")))
    assert got == 1 and "has no device for rank 1" in err, err
    got, _, err = ended(started(launcher, 2, *show, options=("--devices", "cpu-blas:%")))
    assert got == 1 and "backend cpu-blas has devices 0 to 0, got 1" in err and "rank 1 would have cpu-blas:1" in err, err


def what_cannot_be_started_is_told():
    def refused(*args, status, saying, env=None):
        done = subprocess.run([TENON, "run", *args], env={**os.environ, **(env or {})}, capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == status and saying in done.stderr, done
    refused("true", status=2, saying="-n is missing")
    refused("-n", "0", "true", status=2, saying="-n: got '0'")
    refused("-n", "2", status=2, saying="the command to run is missing")
    refused("-n", "3", "--hosts", "a:1,b:1", "true", status=2, saying="has places for 2 ranks, expected 3")
    refused("-n", "2", "--devices", "vulkan:0,vulkan:0", "true", status=2, saying="'vulkan:0' is given twice")
    refused("-n", "2", "true", status=1, saying="apt install openmpi-bin", env={"PATH": "/nowhere"})
    refused("-n", "2", "--launcher", "/bin/true", "true", status=1, saying="is no launcher of Open MPI or MPICH")
    refused("--as-rank", "true", status=1, saying="tells no rank")


run([every_collective_gives_what_it_must, who_computes_is_waited_for, shapes_that_differ_are_told, orders_that_differ_are_told, versions_and_backends_that_differ_are_told, plugins_that_differ_are_told,
     who_is_started_by_a_launcher_finds_its_library, who_fails_when_all_leave_is_named,
     groups_in_python_do_what_they_must, training_over_ranks_has_the_losses_of_one_process,
     training_by_the_command_is_that_of_one_process, adapters_are_trained_by_several_processes, who_is_lost_leaves_a_checkpoint_of_the_last_step, who_ends_its_program_is_told, messages_of_another_size_are_told, members_that_wait_for_each_other_are_told,
     who_ends_the_group_tells_the_others, deadlines_end_calls, who_is_killed_is_named,
     who_is_stopped_is_named, *FAILING_IN_HALVES, who_fails_before_it_joins_is_named, survivors_go_on_where_the_library_can, statuses_are_those_of_the_ranks, ranks_that_do_not_end_are_ended, each_rank_has_its_device,
     what_cannot_be_started_is_told], at_once=5)
