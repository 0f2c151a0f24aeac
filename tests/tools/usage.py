# SPDX-License-Identifier: MIT
"""Wrong usage exits with 2 and says what was expected; --help exits with 0."""

import json
import os
import subprocess

import tap
from tap import refused, tenon

COMMANDS = ["plugins", "devices", "ops", "op", "eval", "why", "graph", "chat", "header"]


def help_is_printed_for_each_command():
    listing = tenon("--help").stdout
    for command in COMMANDS:
        assert f"  {command} " in listing, command
        text = tenon(command, "--help").stdout
        assert text.startswith(f"Usage: tenon {command} ") and "Options:" in text, command
    for command in ["show", "describe", "install", "remove", "verify"]:
        assert f"tenon plugin {command} " in tenon("plugin", command, "--help").stdout
    for command in ["mlp", "lenet", "resnet", "transformer", "lora"]:
        assert f"tenon train {command} " in tenon("train", command, "--help").stdout


def unknown_names_get_the_nearest():
    refused("evla", status=2, saying="did you mean 'tenon eval'?")
    refused("plugin", "instal", status=2, saying="did you mean 'tenon plugin install'?")
    refused("plugins", "--al", status=2, saying="did you mean --all?")
    refused("train", "lenet", "--epoch", "3", status=2, saying="--epochs")
    refused("op", "matmull", saying="did you mean 'matmul'?")
    for command in ["op"], ["why", "op"]:
        refused(*command, "attention", saying="did you mean one of 'nn.attention_grad', 'nn.attention_with_sinks', 'nn.attention_with_sinks_grad', 'nn.scaled_dot_product_attention'")
    refused("op", "dot_product_att", saying="did you mean 'nn.scaled_dot_product_attention'?")
    refused("op", "reduce", saying="no operator 'reduce'")
    refused("plugin", "show", "org.tenon.bse", saying="did you mean 'org.tenon.base'?")


def wrong_usage_exits_with_two():
    refused(status=2, saying="no command")
    refused("eval", status=2, saying="too few arguments")
    refused("op", "add", "sum", status=2, saying="unexpected argument 'sum'")
    refused("eval", "1", "x", status=2, saying="NAME=FILE.npy")
    refused("eval", "x", "x=1", "x=2", status=2, saying="given twice")
    refused("plugins", "--json=3", status=2, saying="takes no value")
    refused("eval", "1", "-o", status=2, saying="needs a value")
    refused("graph", "1 + 1", status=2, saying="-o FILE")
    refused("graph", "1 + 1", "-o", "g.png", status=2, saying=".svg or .dot")
    refused("train", "resnets", status=2, saying="no command 'resnets'")
    refused("train", "transformer", status=2, saying="too few arguments")
    for option, value in [("--epochs", "0"), ("--steps", "x"), ("--lr", "-1"), ("--lr", "nan"),
                          ("--batch", "99999999999999999999"), ("--seed", "1.5")]:
        refused("train", "lenet", option, value, status=2, saying=f"{option}: got '{value}'")
    refused("train", "transformer", "text", "--sample", "-1", status=2, saying="--sample: got '-1'")


def misspelt_options_are_answered_by_every_command():
    """Each option of each command, with a dash too few or too many, with a wrong value and without one."""
    for row in json.loads(tenon("commands", "--json").stdout):
        command = row["name"].split()
        switches = [o["name"] for o in row.get("options", []) if "value" not in o]
        # All take the same way through the command: of sanitizers' slow starts, an eighth.
        for option in row.get("options", [])[::8 if tap.SANITIZED else 1]:
            name = option["name"]
            for given in f"-{name}", f"---{name}", f"----{name}", f"----{name}=3", f"--{name}z", f"--{name[:-1]}":
                if given[2:] in ["", *(o["name"] for o in row["options"])]:
                    continue
                done = refused(*command, given, status=2, saying=f"tenon: unknown option {given}; ")
                near = [o["name"] for o in row["options"] if o["name"][:-1] == name[:-1]] # top-k, top-p
                assert any(f"did you mean --{o}?" in done.stderr for o in near) or len(name) < 4, done.stderr
                assert done.stderr.count("----") == given.count("----"), done.stderr
            if "value" in option:
                refused(*command, f"--{name}", status=2, saying=f"tenon: --{name} needs a value: --{name} {option['value']}")
                refused(*command, f"--{name}", f"--{switches[0]}", status=2, saying=f"tenon: --{name} needs a value")
            elif name != "help":
                refused(*command, f"--{name}=x", status=2, saying=f"tenon: --{name} takes no value, got 'x'")
    table = [(["devices", "--timeout="], "tenon: --timeout: got ''"), (["devices", "--timeout", "x"], "tenon: --timeout: got 'x'"),
             (["doctor", "--timeout", "0"], "tenon: --timeout: got '0'"), (["devices", "--"], None),
             (["plugins", "---"], "unknown option ---;"), (["plugins", "--=3"], "unknown option --=3;"),
             (["plugins", "-"], "unexpected argument '-'"), (["plugins", "--", "--json"], "unexpected argument '--json'"),
             (["check", "--", "--timeout"], "--timeout"), (["--versio"], "did you mean tenon --version?"),
             (["----version"], "did you mean tenon --version?"), (["-help"], "did you mean tenon --help?"),
             (["plugin", "--hlp"], "did you mean tenon plugin --help?"), (["----plugins"], "options stand behind the command"),
             (["plugin", "--version"], "options stand behind the command")]
    for given, said in table:
        if said:
            done = subprocess.run([tap.TENON, *given], env=tap.ENVIRONMENT, capture_output=True, text=True)
            assert done.returncode and said in done.stderr and "no value after" not in done.stderr, done
        else:
            tenon(*given)


def tables_are_json_when_asked():
    for command in [["plugins"], ["plugins", "--all"], ["ops"], ["devices"], ["op", "sum"],
                    ["plugin", "show", "org.tenon.base"], ["why", "op", "sum"],
                    ["why", "plugin", "org.tenon.base"], ["why", "1 + 1"],
                    ["why", "backend", "null"]]:
        json.loads(tenon(*command, "--json").stdout)
    ids = [row["id"] for row in json.loads(tenon("plugins", "--json").stdout)]
    assert "org.tenon.base" in ids, ids
    brings = {row["id"]: row["brings"] for row in json.loads(tenon("plugins", "--json").stdout)}
    for plugin, said in {"org.tenon.gguf": "format gguf", "org.tenon.llama": "architectures llama, phi3, qwen2",
                         "org.tenon.bpe": "tokenizers gpt2, gemma4", "org.tenon.mpi": "collectives",
                         "org.tenon.nccl": "collectives of GPUs"}.items():
        assert plugin not in brings or ", ".join(brings[plugin]).startswith(said), (plugin, brings[plugin])
    kinds = {a["name"]: a for a in json.loads(tenon("op", "sum", "--json").stdout)["attributes"]}
    assert kinds["keepdims"]["kind"] == "bool" and kinds["keepdims"]["default"] == "false"


def operators_tell_their_rules_and_what_is_derived():
    for op, rules, derived in [("matmul", ["vjp", "jvp", "vmap"], []),
                               ("tanh", [], ["vjp", "jvp", "vmap"]),
                               ("nn.cross_entropy/1", ["vjp", "vmap"], ["jvp"]),
                               ("clip", [], ["vjp", "jvp", "vmap"]), ("full", [], [])]:
        told = json.loads(tenon("op", op, "--json").stdout)
        mine = [rule for rule in told["rules"] if rule in ("vjp", "jvp", "vmap")]
        assert (mine, told["derived"]) == (rules, derived), told
    assert "derived  vjp, jvp, vmap" in tenon("op", "tanh").stdout
    assert "takes in nn.rms_norm/1" in tenon("op", "quantized_matmul").stdout
    assert "takes in" not in tenon("op", "tanh").stdout


MANIFEST = {"format": 1, "id": "com.acme.c", "version": "1.0.0", "vendor": "Acme", "pack": "c", "library": "libm.so.6",
            "functions": [{"name": "cosine", "doc": "The cosine.", "symbol": "cos", "dtype": "f64",
                           "inputs": [{"name": "x", "shape": [], "doc": "angles"}], "outputs": [{"name": "out", "shape": []}],
                           "args": [{"kind": "input", "name": "x"}], "returns": {"kind": "output"}}]}
# Arguments with which each command prints. Those of language models are in lm.py, networks are in train.py.
PRINTS = {
    "": ["--help", "--version"], "plugins": ["", "--json"], "devices": ["", "--json"], "ops": ["", "--json"],
    "op": ["add", "add --json"], "eval": ["1+1", "1+1 --json"], "why": ["1+1", "op add", "plugin org.tenon.base --json"],
    "doctor": ["", "--json"], "run": ["--help"], "graph": ["step.graph", "1+1 -o -"], "header": ["org.tenon.base", "org.tenon.base -o -"],
    "commands": ["", "--json"], "completion": ["bash", "zsh", "fish", "plugins"], "kernels": ["--help"], "bench": ["--help"],
    "check": ["--list", "{staging}/org.tenon.pnm --only file.*", "{staging}/org.tenon.pnm --only file.* --json"],
    "cache list": ["", "--json"], "cache prune": ["--dry-run"], "cache warm": ["1+1", "1+1 --json"], "cache pack": ["--help"],
    "cache unpack": ["--help"],
    "plugin list": [""], "plugin show": ["org.tenon.base", "org.tenon.base --json"], "plugin verify": ["org.tenon.base"],
    "plugin describe": ["{staging}/org.tenon.base/org.tenon.base.so"], "plugin pack": ["{staging}/org.tenon.pnm -o p.tnp"],
    "plugin bundle": ["pnm bundled"], "plugin sign": ["p.tnp k.key"], "plugin install": ["p.tnp --prefix pre"], "plugin upgrade": ["p.tnp --prefix pre --force"],
    "plugin remove": ["org.tenon.pnm --prefix pre"], "plugin retry": ["org.tenon.cpu-blas"],
    "trust new": ["l.key"], "trust add": ["k.pub"], "trust list": ["", "--json"], "trust remove": ["k.pub"],
    "new op-pack": ["acme"], "new backend": ["back"], "new format": ["form"], "new model": ["mod"], "new kernels": ["kern --for add"],
    "model convert": ["w.safetensors x.safetensors"], "model show": ["w.safetensors", "w.safetensors --json"],
    "model quantize": ["--help"], "ffi check": ["c.json"], "ffi make": ["c.json -o made"],
}
ELSEWHERE = {"generate", "chat", "embed", "perplexity", "model imatrix", "model tokens", "train lora", "train mlp", "train lenet", "train resnet", "train transformer"}
GROUPS = {"plugin", "trust", "cache", "model", "train", "new", "ffi"}


def a_full_output_is_an_error_of_every_command():
    names = {row["name"] for row in json.loads(tenon("commands", "--json").stdout)}
    assert names == set(PRINTS) | ELSEWHERE | GROUPS, names ^ (set(PRINTS) | ELSEWHERE | GROUPS)
    home = {"HOME": os.getcwd(), "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
    tenon("eval", "x + 1", "x=[1.0]", "--save", "step.graph")
    tenon("eval", "x + 1", "x=[1.0]", "-o", "w.safetensors")
    tenon("trust", "new", "k.key")
    with open("c.json", "w") as file:
        json.dump(MANIFEST, file)
    with open("/dev/full", "w") as full:
        for name, uses in PRINTS.items():
            if name.startswith("ffi") and not tap.has_plugins("org.tenon.ffi"):
                continue
            for words in uses:
                given = [*name.split(), *words.format(staging=tap.STAGING).split()]
                done = subprocess.run([tap.TENON, *given], env={**tap.ENVIRONMENT, **home}, stdout=full, stderr=subprocess.PIPE, text=True)
                assert done.returncode == 1 and done.stderr.endswith(": cannot write the output\n"), done


def why_says_sentences():
    assert "runs on" in tenon("why", "x @ y", "x=[[1.0]]", "y=[[2.0]]").stdout
    assert "is used" in tenon("why", "plugin", "org.tenon.base").stdout
    assert "comes from plugin org.tenon.base" in tenon("why", "op", "add").stdout
    disabled = tenon("why", "plugin", "org.tenon.nn", env={"TENON_PLUGINS_DISABLE": "*.nn"})
    assert "is not used (disabled)" in disabled.stdout, disabled.stdout
    refused("why", "op", "conv2d", env={"TENON_PLUGINS_DISABLE": "*.nn"}, saying="org.tenon.nn")


def a_backend_says_why_it_has_no_device():
    assert "is used" in tenon("why", "backend", "cpu-blas").stdout
    assert "TENON_BACKEND=null:0 uses it" in tenon("why", "backend", "null").stdout
    refused("why", "backend", status=2, saying="usage: tenon why backend NAME")
    refused("why", "backend", "vulcan", saying="no backend is named 'vulcan'")
    os.mkdir("broken")
    open("broken/libvulkan.so.1", "w").write("no library")
    settings = [({"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"},
                 ["found no driver", "mesa-vulkan-drivers", "correct VK_DRIVER_FILES=/nonexistent"]),
                ({"LD_LIBRARY_PATH": os.path.abspath("broken")},
                 ["loader cannot be opened", "libvulkan.so.1", "install libvulkan1"])]
    backends = [b for b in ("vulkan", "vulkan-jit") if tap.has_plugins("org.tenon." + b)]
    for backend in backends:
        for env, parts in settings:
            told = [tenon("why", "backend", backend, env=env).stdout,
                    tenon("devices", env=env).stdout,
                    refused("eval", "1 + 1", env={**env, "TENON_BACKEND": backend},
                            saying=f"backend {backend} has no device here: ").stderr]
            for text in told:
                assert all(part in text for part in parts), (backend, env, text)
            assert f"{backend} has no device: " in told[0] and told[2].count("\n") == 1, told
            # Listed as optional, its absence harms nothing.
            text = tenon("eval", "1 + 1", env={**env, "TENON_BACKEND": f"{backend}?,cpu-blas"})
            assert text.stdout.split()[-1] == "2", text
    return None if backends else "no Vulkan backend is built"


def graphs_are_written():
    tenon("graph", "softmax(x) + 1", "x=[1.0, 2]", "-o", "g.dot")
    assert open("g.dot").read().lstrip().startswith("digraph")
    refused("graph", "x + 1", "x=1", "-o", "g.svg", env={"PATH": "/nonexistent"}, saying="graphviz")
    refused("graph", "x + 1", "x=1", "-o", "no/g.dot", saying="no/g.dot")


tap.run([help_is_printed_for_each_command, unknown_names_get_the_nearest,
         wrong_usage_exits_with_two, misspelt_options_are_answered_by_every_command,
         tables_are_json_when_asked,
         operators_tell_their_rules_and_what_is_derived, a_full_output_is_an_error_of_every_command,
         why_says_sentences, a_backend_says_why_it_has_no_device, graphs_are_written])
