# SPDX-License-Identifier: MIT
"""tenon train on small made-up data: same seed, resuming, interrupts, bad files; each network."""

import gzip
import json
import os
import resource
import signal
import struct
import subprocess
import time

import tap
from made_images import make_data
from tap import refused, tenon

CHECKPOINT = "lenet.safetensors"


def events(*args, **options):
    lines = tenon("train", "lenet", "--data", ".", "--json", *args, **options).stdout.splitlines()
    return [json.loads(line) for line in lines]


def losses(*args):
    return {e["step"]: e["loss"] for e in events(*args) if e["event"] == "step"}


def training_learns_and_reports():
    make_data()
    done = events("--epochs", "8", "--lr", "0.003")
    assert sum(e["event"] == "step" for e in done) == 80
    assert [e["epoch"] for e in done if e["event"] == "epoch"] == list(range(1, 9))
    assert done[-1]["event"] == "test" and done[-1]["accuracy"] > 0.8, done[-1]
    assert sum(map(sum, done[-1]["confusion"])) == 100


def the_same_seed_gives_the_same_file():
    make_data()
    first = losses("--steps", "5", "--seed", "7", "--save", "a")
    assert losses("--steps", "5", "--seed", "7", "--save", "b") == first
    assert open("a", "rb").read() == open("b", "rb").read()
    assert losses("--steps", "5", "--seed", "8", "--save", "c") != first


def resuming_continues_exactly():
    make_data()
    whole = losses("--steps", "15", "--save", "whole")
    begun = losses("--steps", "5", "--save", "part")
    rest = losses("--steps", "15", "--resume", "part")
    assert {**begun, **rest} == whole, (begun, rest, whole)
    assert sorted(rest) == list(range(6, 16))
    assert open("whole", "rb").read() == open("part", "rb").read()
    refused("train", "lenet", "--data", ".", "--resume", "part", "--seed", "9", status=2, saying="--seed 9")
    refused("train", "lenet", "--data", ".", "--resume", "part", "--batch", "9", status=2, saying="--batch 9")


def lines_are_plain_when_not_on_a_terminal():
    make_data()
    text = tenon("train", "lenet", "--data", ".", "--steps", "3").stdout
    assert "\r" not in text and "\x1b" not in text
    assert "epoch 1/1  step 3/3  loss " in text and "test accuracy" in text, text
    text = tenon("train", "lenet", "--data", ".", "--resume", CHECKPOINT, "--classify", "--test", "50").stdout
    assert "test accuracy" in text and " of 50)" in text and "the network says" in text


def an_interrupt_saves_and_says_how_to_resume():
    make_data()
    for name in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([tap.TENON, "train", "lenet", "--data", ".", "--epochs", "100000", "--json"],
                                   env=tap.ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while '"step"' not in process.stdout.readline():
            assert process.poll() is None, process.stderr.read()
        process.send_signal(name)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1, process.returncode
        assert f"Continue with: tenon train lenet --resume {CHECKPOINT}" in stderr, stderr
        step = json.loads(open(CHECKPOINT, "rb").read()[8:].split(b"}}", 1)[0].split(b'"__metadata__":')[1].split(b"}")[0] + b"}")
        assert int(step["step"]) > 0
        tenon("train", "lenet", "--data", ".", "--resume", CHECKPOINT, "--classify")


def a_full_disk_loses_no_checkpoint():
    make_data()
    tenon("train", "lenet", "--data", ".", "--steps", "2")
    before = open(CHECKPOINT, "rb").read()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    refused("train", "lenet", "--data", ".", "--steps", "4", "--resume", CHECKPOINT, preexec_fn=limit, saying="unchanged")
    assert open(CHECKPOINT, "rb").read() == before
    assert not [f for f in os.listdir(".") if f.startswith(CHECKPOINT + ".")]


def a_training_that_is_no_numbers_keeps_its_checkpoint():
    make_data()
    tenon("train", "lenet", "--data", ".", "--steps", "3", "--save", CHECKPOINT)
    good = open(CHECKPOINT, "rb").read()
    for value in b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f": # NaN, infinity
        wrong = good[:-4] + value # of the last array, a moment
        header = 8 + struct.unpack("<Q", good[:8])[0]
        for changed in wrong, good[:header] + value + good[header + 4:]:
            open(CHECKPOINT, "wb").write(changed)
            for steps in "4", "10":
                done = refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, "--steps", steps, saying="a lower learning rate")
                assert "NaN" in done.stderr or "infinit" in done.stderr, done
                assert open(CHECKPOINT, "rb").read() == changed, done


def a_full_output_is_an_error():
    make_data()
    with open("/dev/full", "w") as full:
        for more in [], ["--json"]:
            done = subprocess.run([tap.TENON, "train", "lenet", "--data", ".", "--steps", "2", *more], env=tap.ENVIRONMENT, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
            assert done.returncode == 1 and "cannot write" in done.stderr, done


def links_are_followed_and_devices_stay():
    make_data()
    tenon("train", "lenet", "--data", ".", "--steps", "1", "--save", "whole")
    os.symlink("kept", "link")
    open("kept", "w").close()
    tenon("train", "lenet", "--data", ".", "--steps", "1", "--save", "link")
    assert os.path.islink("link") and open("kept", "rb").read() == open("whole", "rb").read()
    refused("train", "lenet", "--data", ".", "--steps", "1", "--save", "/dev/null", saying="/dev/null: expected a regular file")
    assert not os.path.isfile("/dev/null")


def every_network_learns_and_resumes():
    make_data()
    for network, last, most in (("mlp", 8, 2.1), ("resnet", 4, 2.9)):
        def run(steps, *args):
            lines = tenon("train", network, "--data", ".", "--batch", "8", "--steps", str(steps), "--test", "20", "--json", *args)
            return [e["loss"] for e in map(json.loads, lines.stdout.splitlines()) if e["event"] == "step"]
        whole = run(last, "--save", "whole")
        assert len(whole) == last and min(whole[-2:]) < most, whole
        assert run(2, "--save", "part") + run(last, "--resume", "part") == whole
        assert open("whole", "rb").read() == open("part", "rb").read()
        refused("train", "lenet", "--data", ".", "--resume", "whole", saying=f"a checkpoint of network '{network}', expected 'lenet'")


def a_transformer_goes_on_with_a_text():
    with open("text", "w") as text:
        text.write("".join(f"{i % 7}, {i % 7 + 1}.\n" for i in range(200)))
    done = tenon("train", "transformer", "text", "--steps", "12", "--batch", "4", "--lr", "0.01", "--sample", "50")
    losses = [float(line.split("loss ")[1].split()[0]) for line in done.stdout.splitlines() if "loss" in line]
    assert len(losses) == 12 and losses[-1] < losses[0] - 1, losses
    again = tenon("train", "transformer", "text", "--resume", "transformer.safetensors", "--steps", "12", "--sample", "50")
    assert again.stdout.split("saved")[1] == done.stdout.split("saved")[1], again.stdout
    refused("train", "transformer", "absent", saying="absent: No such file or directory")
    refused("train", "transformer", "transformer.safetensors.gone", saying="No such file")
    with open("short", "w") as text:
        text.write("abc")
    refused("train", "transformer", "short", status=2, saying="--batch 32 is more than the ")
    refused("train", "transformer", "text", "--resume", "transformer.safetensors", "--seed", "4", status=2, saying="--seed 4")


def damaged_files_are_refused():
    make_data()
    tenon("train", "lenet", "--data", ".", "--steps", "1")
    good = open(CHECKPOINT, "rb").read()
    open(CHECKPOINT, "wb").write(good[:-100])
    refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, saying=CHECKPOINT)
    assert open(CHECKPOINT, "rb").read() == good[:-100]
    open(CHECKPOINT, "wb").write(good.replace(b'fc3.bias"', b'fc3.bios"'))
    refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, saying=f"parameter 'fc3.bias' is not in {CHECKPOINT}: the file is another model's")
    open(CHECKPOINT, "wb").write(good.replace(b'"step":"1"', b'"step":"x"'))
    refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, saying="'step' is 'x', expected a whole number")
    for old, new, saying in [
            (b'"shape":[10]', b'"shape":[99]', "'fc3.bias': its shape of f32 needs 396 bytes, data_offsets give 40"),
            (b'"shape":[10]', b'"shape":[5,2]', f"parameter 'fc3.bias' is f32[5, 2] in {CHECKPOINT}, its layer wants f32[10]"),
            (b'"F32","shape":[10]', b'"I32","shape":[10]', "'fc3.bias' is i32, expected f32"),
            (b"tenon.train/1", b"tenon.other/1", "format 'tenon.other/1'"),
            (b'"note.network":"lenet"', b'"note.network":"mlp"', "a checkpoint of network 'mlp', expected 'lenet'"),
            (b'"note.lr":"0', b'"note.lr":"-', "note 'lr'"),
            (b'"note.batch":"64"', b'"note.batch":"-4"', "note 'batch': got '-4'"),
            (b'"optim.0.fc3.bias"', b'"optim.7.fc3.bias"', "'optim.7.fc3.bias' is the state of no parameter"),
            (b'"notes":"network batch lr"', b'"notes":"network batch rate"', "its notes name 'rate', which is absent")]:
        assert old in good, old
        changed = bytearray(good.replace(old, new, 1))
        changed[:8] = struct.pack("<Q", struct.unpack("<Q", good[:8])[0] + len(new) - len(old))
        open(CHECKPOINT, "wb").write(changed)
        refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, saying=saying)
    for damaged, saying in [(good[:7], "not a safetensors file"), (b"\xff" * 64, "not a safetensors file"),
                            (good + b"more", "the arrays cover")]:
        open(CHECKPOINT, "wb").write(damaged)
        refused("train", "lenet", "--data", ".", "--resume", CHECKPOINT, saying=saying)
    refused("train", "lenet", "--data", ".", "--resume", ".", saying="it is a directory")
    refused("train", "lenet", "--data", "absent", saying="dataset-fashion-mnist")
    refused("train", "lenet", "--data", ".", "--classify", status=2, saying="--resume FILE")
    refused("train", "lenet", "--data", ".", "--batch", "641", status=2, saying="--batch 641")
    labels = gzip.open("t10k-labels-idx1-ubyte.gz", "rb").read()
    with gzip.open("t10k-labels-idx1-ubyte.gz", "wb") as file:
        file.write(labels[:-2] + b"\x0a" + labels[-1:])
    refused("train", "lenet", "--data", ".", saying="t10k labels: row 98 has 10, expected 0 to 9")
    with gzip.open("t10k-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">II", 0x801, 99) + labels[8:-1])
    refused("train", "lenet", "--data", ".", saying="100 t10k images with 99 labels")
    images = open("train-images-idx3-ubyte.gz", "rb").read()
    open("train-images-idx3-ubyte.gz", "wb").write(images[:len(images) // 2])
    refused("train", "lenet", "--data", ".", "--save", "new", saying="truncated or damaged")
    assert not os.path.exists("new")


if tap.has_plugins("org.tenon.cpu-blas", "org.tenon.nn"):
    tap.run([training_learns_and_reports, the_same_seed_gives_the_same_file, resuming_continues_exactly,
             lines_are_plain_when_not_on_a_terminal, an_interrupt_saves_and_says_how_to_resume,
             a_full_disk_loses_no_checkpoint, a_training_that_is_no_numbers_keeps_its_checkpoint, a_full_output_is_an_error, every_network_learns_and_resumes, a_transformer_goes_on_with_a_text, links_are_followed_and_devices_stay, damaged_files_are_refused])
else:
    print("1..0 # SKIP needs org.tenon.cpu-blas and org.tenon.nn")
