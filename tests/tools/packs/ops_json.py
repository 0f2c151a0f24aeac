# SPDX-License-Identifier: MIT
"""ops.json: what operators take, told without loading their plugins; and files that lie."""

import hashlib
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # pylint: disable=wrong-import-position
from tap import refused, tenon  # pylint: disable=wrong-import-position

STAGING = pathlib.Path(tap.STAGING)
PACKS = sorted(p.parent.name for p in STAGING.glob("*/ops.json"))


def alone(folder):
    """The environment in which only the plugins of a folder are there."""
    return {"TENON_PLUGIN_PATH": str(pathlib.Path(folder).absolute()), "TENON_PLUGINS_ONLY": "1"}


def copy(folder, pack="org.tenon.base"):
    target = pathlib.Path(folder, pack)
    shutil.copytree(STAGING / pack, target)
    return target


def seal(plugin):
    """Lists ops.json as it is now."""
    manifest = json.loads((plugin / "plugin.json").read_text())
    data = (plugin / "ops.json").read_bytes()
    for entry in manifest["files"]:
        if entry["name"] == "ops.json":
            entry |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (plugin / "plugin.json").write_text(json.dumps(manifest))


def unlisted(folder, pack):
    """A copy of a pack without the file: it is loaded."""
    plugin = copy(folder, pack)
    (plugin / "ops.json").unlink()
    manifest = json.loads((plugin / "plugin.json").read_text())
    manifest["files"] = [f for f in manifest["files"] if f["name"] != "ops.json"]
    (plugin / "plugin.json").write_text(json.dumps(manifest))
    return alone(folder)


def packs_have_it():
    with_operators = [p.parent.name for p in STAGING.glob("*/plugin.json")
                      if json.loads(p.read_text())["primitives"]]
    assert PACKS == sorted(with_operators) and "org.tenon.base" in PACKS, (PACKS, with_operators)
    for pack in PACKS:
        listed = json.loads((STAGING / pack / "plugin.json").read_text())
        said = json.loads((STAGING / pack / "ops.json").read_text())
        assert "ops.json" in [f["name"] for f in listed["files"]]
        assert [o["id"] for o in said["operators"]] == [p["id"] for p in listed["primitives"]], pack


def it_says_what_the_plugin_says():
    for pack in PACKS:
        if pack in ("org.tenon.libm", "org.tenon.blas", "org.tenon.lapack", "org.tenon.linalg"):
            continue  # these need other plugins to be loaded
        loaded = unlisted("without", pack)
        here = alone(STAGING)
        assert tenon("header", pack, env=here).stdout == tenon("header", pack, env=loaded).stdout, pack
        assert json.loads(tenon("ops", "--calls", "--json", env=loaded).stdout), pack
        shutil.rmtree("without")
    loaded = unlisted("without", "org.tenon.base")
    here = alone("with")
    copy("with")
    assert tenon("ops", "--calls", env=here).stdout == tenon("ops", "--calls", env=loaded).stdout
    for name in ("sum", "base.matmul", "base.pad/1", "split", "clip", "einsum", "scan"):
        assert tenon("op", name, "--json", env=here).stdout == tenon("op", name, "--json", env=loaded).stdout


def nothing_is_loaded():
    copy("with")
    loaded = unlisted("without", "org.tenon.base")
    log = {"TENON_LOG": "plugin=debug"}
    for verb in (["header", "org.tenon.base"], ["op", "sum"], ["ops", "--calls"]):
        assert "org.tenon.base.so" not in tenon(*verb, env=alone("with") | log).stderr, verb
        assert "org.tenon.base.so" in tenon(*verb, env=loaded | log).stderr, verb


def an_installed_object_has_it():
    tenon("plugin", "install", STAGING / "org.tenon.base/org.tenon.base.so", "--prefix", "here")
    assert (pathlib.Path("here/org.tenon.base/ops.json").read_text() ==
            (STAGING / "org.tenon.base/ops.json").read_text())
    tenon("plugin", "verify", "./here/org.tenon.base")
    tenon("header", "./here/org.tenon.base/org.tenon.base.so")


def one_that_changed_is_refused():
    plugin = copy("changed")
    text = (plugin / "ops.json").read_text()
    (plugin / "ops.json").write_text(text.replace("The sum.", "The Sum."))
    refused("op", "base.add", env=alone("changed"), saying="ops.json")
    refused("header", "org.tenon.base", env=alone("changed"), saying="SHA-256")
    refused("plugin", "verify", "./changed/org.tenon.base", saying="refused")


def a_lie_is_one_sentence():
    whole = json.loads((STAGING / "org.tenon.base/ops.json").read_text())
    place = [o["id"] for o in whole["operators"]].index("base.clip/1")

    def changed(change):
        said = json.loads(json.dumps(whole))
        change(said["operators"][place])
        return json.dumps(said)

    def attribute(**values):
        return changed(lambda o: o["attributes"][0].update(values))

    rows = [
        (json.dumps(whole | {"format": 2}), '"format" is not 1'),
        (json.dumps(whole | {"operators": {}}), '"operators" is not a list'),
        (json.dumps(whole | {"operators": whole["operators"][:3]}), "says nothing of 'base.clip/1'"),
        ("{", "ops.json:1:"),
        ('{"format": 1, "format": 1}', "duplicate"),
        ("[" * 5000, "ops.json:1:"),
        (changed(lambda o: o.update(id=5)), '"id" is not a text'),
        (changed(lambda o: o.update(id="clip")), '"id" is not pack.name/revision'),
        (changed(lambda o: o.pop("doc")), '"doc" is not a text'),
        (changed(lambda o: o.update(inputs=[{}] * 65)), '"inputs" is not a list of at most 64'),
        (changed(lambda o: o.update(inputs=[1])), '"inputs" is not a list of at most 64'),
        (changed(lambda o: o["inputs"][0].update(name="a b")), '"name" is not an identifier'),
        (changed(lambda o: o["inputs"][0].update(dtypes="f32 f99")), "\"dtypes\" is not words of bool"),
        (changed(lambda o: o["inputs"][0].update(flags="often")), '"flags" is not words of optional'),
        (changed(lambda o: o.update(outputs=[])), '"outputs" is not a list of one or more'),
        (changed(lambda o: o.update(rules="vjp magic")), '"rules" is not words of decompose'),
        (changed(lambda o: o.update(pair_rules=[1])), '"pair_rules" is not a list'),
        (attribute(kind="number"), '"kind" is not a kind of attribute'),
        (attribute(kind="int", default=1.5), '"default" is not an integer'),
        (attribute(kind="bool", default=1), '"default" is not true or false'),
        (attribute(kind="float", default="many"), '"default" is not a number'),
        (attribute(kind="dtype", default="f99"), "\"default\" is not a dtype's name"),
        (attribute(kind="bits", default="xyz"), '"default" is not 1 to 16 hexadecimal digits'),
        (attribute(kind="word", default="a", choices=["b"]), '"choices" is not a list of words'),
        (attribute(kind="ints", default=[1]), '"default" is not absent'),
    ]
    plugin = copy("lying")
    for text, says in rows:
        (plugin / "ops.json").write_text(text)
        seal(plugin)
        refused("op", "base.clip/1", env=alone("lying"), saying=says)


tap.run([packs_have_it, it_says_what_the_plugin_says, nothing_is_loaded, an_installed_object_has_it,
         one_that_changed_is_refused, a_lie_is_one_sentence])
