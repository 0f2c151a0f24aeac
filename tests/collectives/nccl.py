#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes whose arrays of Vulkan go from one to another by NCCL, which a library plays: values; what is missing.

    nccl.py TENON MEMBER FAKE
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sentences import run  # noqa: E402 pylint: disable=wrong-import-position

TENON, MEMBER, FAKE = map(os.path.abspath, sys.argv[1:4])
LAUNCHER = next((name for name in ("mpirun.openmpi", "mpirun.mpich", "mpirun") if shutil.which(name)), None)
FOLDER = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
for name in ("libnccl.so.2", "libcuda.so.1"):
    pathlib.Path(FOLDER.name, name).symlink_to(FAKE)
UUID = subprocess.run([MEMBER, "uuid"], capture_output=True, text=True, check=False).stdout


def needed(check):
    """A test that needs MPI and a device that shares memory."""
    def test():
        if not LAUNCHER:
            return "no MPI is installed"
        return check() if len(UUID) == 32 else "the device shares no memory"
    test.__name__ = check.__name__
    return test


def ended(ranks, mode, seconds=60, **env):
    env = {**os.environ, "LD_LIBRARY_PATH": FOLDER.name + ":" + os.environ.get("LD_LIBRARY_PATH", ""), "FAKE_CUDA_UUID": UUID,
           "TENON_NCCL_LEAST": "1", **env}
    with subprocess.Popen([TENON, "run", "-n", str(ranks), "--launcher", LAUNCHER, "--allow-root", MEMBER, mode], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
            raise AssertionError(f"it hangs:\n{out}{err}") from None
    return process.returncode, out, err


def calls(err):
    """By rank of the world's communicator: calls that NCCL got."""
    return {int(rank): int(count) for rank, count in re.findall(r"fake NCCL: rank (\d+) of \d+ made (\d+) calls", err)}


@needed
def every_collective_gives_what_it_must():
    for ranks in (2, 4):
        got, out, err = ended(ranks, "values")
        assert got == 0 and all(f"rank {i} of {ranks}: right" in out for i in range(ranks)), out + err
        made = [int(count) for count in re.findall(rf"rank \d+ of {ranks} made (\d+) calls", err)]
        assert len(made) == ranks and min(made) > 40, err


@needed
def what_members_disagree_on_is_told():
    got, out, err = ended(3, "shapes")
    assert got == 3 and "is all_reduce (sum) of 4 f32, of rank 1 all_reduce (sum) of 5 f32" in out, out + err


@needed
def who_does_not_come_is_told():
    got, out, err = ended(2, "exits")
    assert got == 3 and "rank 1 ended (status 0); rank 0 was in" in out, out + err
    got, out, err = ended(2, "deadline")
    assert got == 3 and "did not end within the deadline of 300 ms" in out, out + err


@needed
def errors_of_nccl_end_the_group():
    got, out, err = ended(2, "loop", FAKE_NCCL="error")
    assert got == 3 and "NCCL 2.27.99: rank 1: a fake system error" in out and "rank 0 failed: " in out, out + err


@needed
def who_is_killed_meanwhile_is_named():
    began = time.monotonic()
    got, out, err = ended(3, "loop", FAKE_NCCL="dies")
    assert got == 137 and out.count("rank 1 was ended by signal 9 (Killed)") == 2, out + err
    assert time.monotonic() - began < 20, "it takes long"


@needed
def one_gpu_for_two_ranks_goes_through_the_host():
    got, out, err = ended(2, "slow", FAKE_NCCL="same-gpu", TEST_SECONDS="0.1")
    assert got == 0 and not calls(err) and "another rank has the same GPU" in err, out + err
    got, out, err = ended(2, "slow", FAKE_NCCL="same-gpu", TENON_NCCL="libnccl.so.2")
    assert got == 3 and "ranks 0 and 1 have the same GPU" in out, out + err


@needed
def small_arrays_go_through_the_host():
    got, out, err = ended(2, "values", TENON_NCCL_LEAST="65537")
    assert got == 0 and out.count(": right") == 2 and 0 < max(calls(err).values()) < 10, out + err


@needed
def what_is_missing_is_told():
    got, out, err = ended(2, "slow", TEST_SECONDS="0.1", TENON_NCCL="off")
    assert got == 0 and not calls(err), out + err
    got, out, err = ended(2, "slow", TENON_NCCL="/nowhere/libnccl.so.2")
    assert got == 3 and out.count("pip install nvidia-nccl-cu13") == 2, out + err
    got, out, err = ended(2, "slow", TENON_NCCL="libnccl.so.2", FAKE_CUDA_UUID="00" * 16, TEST_SECONDS="0.1")
    assert got == 0 and "none of CUDA's 1 devices is that of the arrays" in err, out + err


run([every_collective_gives_what_it_must, what_members_disagree_on_is_told, who_does_not_come_is_told, errors_of_nccl_end_the_group,
     who_is_killed_meanwhile_is_named, one_gpu_for_two_ranks_goes_through_the_host, what_is_missing_is_told,
     small_arrays_go_through_the_host], at_once=4)
