# SPDX-License-Identifier: MIT
"""`tenon chat` and `tenon generate` when the device of some layers is lost in the middle."""

import os
import pathlib
import subprocess
import sys

import lm
import tap
from tap import refused, tenon

LOADER = os.path.abspath(sys.argv.pop())  # tests/fixtures/vulkan_loader.c
LATE = (7, 9, 11)  # submissions, behind those that load the model: of the first reply or the second
SAID = "a\nb\n"
CHAT = ("chat", "letters.gguf", "--template", "chatml", "--temperature", "0", "--tokens", "4", "--cache", "f32")


def losing(nth, devices):
    folder = pathlib.Path("loader")
    folder.mkdir(exist_ok=True)
    if not (folder / "libvulkan.so.1").exists():
        (folder / "libvulkan.so.1").symlink_to(LOADER)
    path = os.pathsep.join(filter(None, [str(folder.resolve()), os.environ.get("LD_LIBRARY_PATH")]))
    return {"LD_LIBRARY_PATH": path, "TEST_VULKAN_LOST": f"vkQueueSubmit {nth}", "TENON_BACKEND": devices}


def a_chat_goes_on_without_a_lost_device():
    lm.gguf("letters.gguf", 1.0)
    alone = tenon(*CHAT, input=SAID, env={"TENON_BACKEND": "cpu-blas"}).stdout.splitlines()
    lost = 0
    for nth in LATE:
        done = tenon(*CHAT, input=SAID, env=losing(nth, "vulkan,cpu-blas"))
        replies = iter(done.stdout.splitlines())
        assert all(reply in replies for reply in alone), (nth, alone, done.stdout)
        lost += "device vulkan:0 was lost, with layers 0 to 1 and the caches there" in done.stderr
        if "was lost" in done.stderr:
            assert "(the conversation is read again, and the reply begins anew)" in done.stderr, done.stderr
            assert "layers of 16, 0.0 MB of weights, on cpu-blas:0 (" in done.stderr, done.stderr
    assert lost == len(LATE), lost


def without_another_device_one_sentence_says_so():
    lm.gguf("letters.gguf", 1.0)
    sentence = "the sequences of this model have ended; open a new runtime"
    done = subprocess.run([tap.TENON, *CHAT], env={**tap.ENVIRONMENT, **losing(LATE[0], "vulkan")}, input=SAID,
                          capture_output=True, text=True, timeout=200)
    told = [line for line in done.stderr.splitlines() if line.startswith("tenon: ")]
    assert done.returncode == 1 and len(told) == 1 and sentence in told[0], done
    refused("generate", "letters.gguf", "once", "--tokens", "9", env=losing(LATE[0], "vulkan"), saying=sentence)


if __name__ == "__main__":
    tap.run([a_chat_goes_on_without_a_lost_device, without_another_device_one_sentence_says_so])
