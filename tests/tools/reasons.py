# SPDX-License-Identifier: MIT
"""Each reason of core/plugin/find/reason.h for which a plugin is not loaded is made to happen here,
and `tenon why` says it in a sentence with its remedy; so it does for operators and backends
that such plugins have. Functions are named after their codes."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import stage
import tap
from stage import stage as staged
from tap import refused, run, tenon

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()
QUARANTINE = pathlib.Path(sys.argv[4]).absolute()
CORE = pathlib.Path(__file__).resolve().parents[2] / "core/plugin/find"


def environment(**more):
    return {"TENON_PLUGIN_PATH": f"{os.path.abspath('plugins')}:{tap.STAGING}", "TENON_LOG": "off",
            "HOME": os.getcwd(), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", "TENON_CACHE_DIR": "", **more}


def remedy(code):
    """What core/plugin/find/reason.c says helps, with the holes open."""
    text = (CORE / "reason.c").read_text()
    found = re.search(rf"\[REASON_{code}\] =\s+((?:\"[^\"]*\"\s*)+)", text)
    joined = "".join(re.findall(r'"([^"]*)"', found[1]))
    return ".+".join(re.escape(part) for part in joined.split("%s"))


def says(code, saying, plugin="com.acme.good", **more):
    """`why plugin` says that it is not used, why, and what to do."""
    said = tenon("why", "plugin", plugin, env=environment(**more)).stdout
    assert re.search(rf"is not used \(\w+\): .*{saying}.*: {remedy(code)}", said), (saying, remedy(code), said)
    return said


# --- what stands in the file system ------------------------------------------------------


def reason_path():
    said = tenon("plugins", env=environment(TENON_PLUGIN_PATH="relative")).stdout
    assert re.search(f"the entry 'relative' of the plugin path is not absolute: {remedy('PATH')}", said), said


def reason_read():
    (staged("com.acme.good", "fixture-good") / "plugin.so").unlink()
    says("READ", "No such file or directory")


def reason_link():
    folder = staged("com.acme.good", "fixture-good")
    (folder / "plugin.so").rename("elsewhere.so")
    (folder / "plugin.so").symlink_to(pathlib.Path("elsewhere.so").absolute())
    says("LINK", "plugin.so is a symbolic link")


def reason_owner():
    if os.geteuid():
        return "only root can give files away"
    folder = staged("com.acme.good", "fixture-good")
    os.chown(folder / "plugin.so", 12345, 12345)
    says("OWNER", "belongs to user 12345")


def reason_writable():
    folder = staged("com.acme.good", "fixture-good")
    os.chmod(folder, 0o777)
    says("WRITABLE", "can be changed by everybody")


def reason_manifest():
    folder = staged("com.acme.good", "fixture-good")
    (folder / "plugin.json").write_text('{"format": 1')
    says("MANIFEST", "line 1")


def reason_hash():
    folder = staged("com.acme.good", "fixture-good")
    with open(folder / "plugin.so", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    says("HASH", "has SHA-256 .* the manifest says")


# --- what stands in the binary -----------------------------------------------------------


def reason_elf():
    staged("com.acme.entry", "fixture-no-note")
    says("ELF", "", "com.acme.entry")


def reason_identity():
    staged("com.acme.good", "fixture-good", version="9.9.9")
    says("IDENTITY", "9.9.9")


def reason_abi():
    staged("com.acme.good", "fixture-good", abi={"major": 1, "minor_min": 7, "minor_max": 9})
    says("ABI", r"1\.7.*1\.9")


def reason_sanitizer():
    now = json.loads((staged("com.acme.good", "fixture-good", "now") / "plugin.json").read_text())["sanitizer"]
    staged("com.acme.good", "fixture-good", sanitizer=2 if now != 2 else 1)
    says("SANITIZER", "sanitizer|instrumented")


def reason_dlopen():
    staged("com.acme.unresolved", "fixture-unresolved")
    says("DLOPEN", "nobody_has_this", "com.acme.unresolved")


def reason_proc():
    staged("com.acme.good", "fixture-good")
    without = ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode:
        return "only root can run a command without /proc"
    done = subprocess.run([*without, tap.TENON, "why", "plugin", "com.acme.good"], env={**tap.ENVIRONMENT, **environment()},
                          capture_output=True, text=True, timeout=100, check=False)
    assert re.search(f"opened through /proc, which is not mounted: {remedy('PROC')}", done.stdout), done
    return None


def reason_contract():
    staged("com.acme.entry", "fixture-no-symbol")
    says("CONTRACT", "exports no tn_plugin_v1", "com.acme.entry")


def reason_init():
    staged("com.acme.fails", "fixture-init-fails")
    says("INIT", "the frobnicator is out of order", "com.acme.fails")


def reason_record():
    staged("com.acme.half", "fixture-no-submit")
    says("RECORD", "its backend lacks 'device_count'", "com.acme.half")


# --- what the user says ------------------------------------------------------------------


def reason_disabled():
    staged("com.acme.good", "fixture-good")
    says("DISABLED", "disabled by TENON_PLUGINS_DISABLE", TENON_PLUGINS_DISABLE="com.acme.*")


def reason_shadowed():
    staged("com.acme.good", "fixture-good")
    staged("com.acme.good", "fixture-good-1.9", "newer")
    path = ":".join(os.path.abspath(p) for p in ("plugins", "newer"))
    says("SHADOWED", r"1\.0\.0 in .* is shadowed by 1\.9\.0", TENON_PLUGIN_PATH=path)


def reason_acl():
    folder = staged("com.acme.good", "fixture-good")
    if not shutil.which("setfacl"):
        return "no setfacl"
    if subprocess.run(["setfacl", "-m", "u:12345:rwx", folder / "plugin.so"], stderr=subprocess.DEVNULL).returncode:
        return "this file system has no access control lists"
    says("ACL", "can be changed by user 12345, by its access control list")
    return None


def reason_unsigned():
    staged("com.acme.good", "fixture-good")
    says("UNSIGNED", "has no signature", TENON_TRUST="signed")


def reason_key():
    folder = staged("com.acme.good", "fixture-good")
    lines = ["untrusted comment: x", base64.b64encode(b"ED" + bytes(72)).decode(), "trusted comment: y",
             base64.b64encode(bytes(64)).decode()]
    (folder / "plugin.json.minisig").write_text("\n".join(lines) + "\n")
    says("KEY", "is signed by key 0000000000000000", TENON_TRUST="signed")


def reason_signature():
    folder = staged("com.acme.good", "fixture-good")
    (folder / "plugin.json.minisig").write_text("no signature\n")
    says("SIGNATURE", "is no signature of minisign", TENON_TRUST="signed")


def quarantine():
    staged("com.acme.driver", "fixture-driver")
    subprocess.run([QUARANTINE, "com.acme.driver", "it crashed (Aborted)"], check=True,
                   env={**tap.ENVIRONMENT, **environment()})


def reason_quarantined():
    quarantine()
    says("QUARANTINED", r"is in quarantine: it crashed \(Aborted\)", "com.acme.driver")


def every_reason_has_a_function():
    codes = re.findall(r"^    REASON_(\w+),", (CORE / "reason.h").read_text(), re.M)
    assert len(codes) > 20
    for code in codes:
        assert code == "NONE" or f"reason_{code.lower()}" in globals(), code


# --- operators and backends of plugins that are not used -----------------------------------


def a_missing_operator_names_the_plugin_that_has_it():
    staged("com.acme.good", "fixture-good")
    assert "comes from plugin com.acme.good" in tenon("why", "op", "fixture.twice", env=environment()).stdout
    disabled = environment(TENON_PLUGINS_DISABLE="com.acme.*")
    for question in (["why", "op", "fixture.twice"], ["why", "fixture.twice([1.0])"], ["op", "twice"]):
        refused(*question, env=disabled, saying="take 'com.acme.*' out of TENON_PLUGINS_DISABLE")
    os.chmod("plugins/com.acme.good", 0o777)
    for question in (["why", "op", "twice"], ["eval", "twice([1.0])"]):
        refused(*question, env=environment(), saying="twice")


def an_operator_of_an_incompatible_plugin_is_told():
    staged("com.acme.good", "fixture-good", abi={"major": 1, "minor_min": 7, "minor_max": 9})
    refused("why", "op", "fixture.twice", env=environment(), saying="rebuild the plugin with this version's SDK")
    refused("why", "twice([1.0])", env=environment(), saying="rebuild the plugin with this version's SDK")


def an_operator_of_an_unsigned_plugin_is_told():
    staged("com.acme.good", "fixture-good")
    refused("why", "op", "fixture.twice", env=environment(TENON_TRUST="signed"), saying="tenon plugin sign")


def an_operator_whose_library_is_missing_is_told():
    if not tap.has_plugins("org.tenon.ffi"):
        return "the plugin org.tenon.ffi is not built"
    system = pathlib.Path("/lib/x86_64-linux-gnu/libm.so.6")
    if not system.exists():
        return "the C library is elsewhere"
    os.mkdir("lent")
    shutil.copyfile(system, "lent/liblent.so.1")
    manifest = {"format": 1, "id": "com.acme.lent", "version": "1.0.0", "vendor": "Acme", "license": "MIT",
                "doc": "One function.", "pack": "lent", "library": "liblent.so.1", "functions": [{
                    "name": "gamma", "doc": "The gamma function.", "symbol": {"f32": "tgammaf", "f64": "tgamma"},
                    "inputs": [{"name": "x", "shape": ["..."], "doc": "numbers"}],
                    "outputs": [{"name": "out", "shape": ["..."], "doc": "of the shape of x"}],
                    "args": [{"kind": "input", "name": "x", "by": "value"}], "returns": {"kind": "output"}}]}
    pathlib.Path("lent.json").write_text(json.dumps(manifest))
    lent = f"{os.getcwd()}/lent:{os.environ.get('LD_LIBRARY_PATH', '')}"
    tenon("ffi", "make", "lent.json", "-o", "plugins", env=environment(LD_LIBRARY_PATH=lent))
    assert "comes from plugin com.acme.lent" in tenon("why", "op", "lent.gamma", env=environment(LD_LIBRARY_PATH=lent)).stdout
    done = refused("why", "op", "lent.gamma", env=environment(), saying="liblent.so.1")
    assert "comes from plugin com.acme.lent" in done.stdout, done.stdout


def a_misspelt_operator_gets_the_nearest():
    refused("why", "op", "sofmax", saying="did you mean 'softmax'?")
    refused("why", "sofmax([1.0])", saying="did you mean softmax?")


def a_backend_that_is_not_listed_is_told():
    quarantine()
    refused("why", "backend", "frobnicator", env=environment(), saying="is in quarantine: it crashed (Aborted)")
    refused("eval", "1 + 1", env=environment(TENON_BACKEND="frobnicator"), saying="is in quarantine")
    refused("why", "backend", "null", env={"TENON_PLUGINS_DISABLE": "*.null"}, saying="out of TENON_PLUGINS_DISABLE")
    refused("why", "backend", "nul", saying="did you mean 'null'?")
    refused("why", "backend", "null:9", saying="null has no device 9: it has 1, numbered from 0")
    assert "null:0, nothing, is not used" in tenon("why", "backend", "null:0").stdout


def a_backend_without_devices_says_why():
    staged("com.acme.driver", "fixture-driver")
    assert "the frobnicator is not plugged in: plug it in" in tenon("why", "backend", "frobnicator", env=environment()).stdout
    refused("why", "backend", "frobnicator:0", env=environment(), saying="not plugged in")


# --- kernels and devices of nodes ----------------------------------------------------------

PRODUCT = ("why", "x @ x", "x=[[1.0, 2], [3, 4]]")


def the_chosen_kernel_is_named_with_its_plugin():
    said = tenon(*PRODUCT).stdout
    assert re.search(r"base.matmul/1, giving f64\[2, 2\], runs on cpu-blas:0 with kernel '\w+' of org.tenon.cpu-blas\.", said), said
    said = tenon(*PRODUCT, env={"TENON_KERNELS": "base.matmul=!*"}).stdout
    assert "its reference kernel" in said and 'TENON_KERNELS says "base.matmul=!*"' in said, said


def a_node_that_falls_back_says_from_where_and_what_helps():
    env = {"TENON_BACKEND": "vulkan-jit,cpu-blas", "TENON_KERNELS": "base.matmul@vulkan-jit=!*"}
    if subprocess.run([tap.TENON, "eval", "[1.0] + 1"], env={**tap.ENVIRONMENT, "TENON_BACKEND": "vulkan-jit"},
                      capture_output=True).returncode:
        return "no device of vulkan-jit"
    said = tenon(*PRODUCT, env=env).stdout
    assert "It falls back: vulkan-jit:0 comes first" in said and "To change where a node runs" in said, said
    done = refused(*PRODUCT, env={**env, "TENON_FALLBACK": "error"}, saying="TENON_FALLBACK=error forbids")
    assert 'TENON_KERNELS says "base.matmul@vulkan-jit=!*"' in done.stdout, done.stdout
    done = refused(*PRODUCT, env={**env, "TENON_BACKEND": "vulkan-jit"}, saying="runs on none of the selected devices")
    assert "runs nowhere." in done.stdout and "TENON_KERNELS says" in done.stdout, done.stdout
    assert "Name one more backend in TENON_BACKEND" in done.stdout, done.stdout


run([reason_path, reason_read, reason_link, reason_owner, reason_writable, reason_acl, reason_manifest, reason_hash, reason_elf,
     reason_identity, reason_abi, reason_sanitizer, reason_dlopen, reason_proc, reason_contract, reason_init, reason_record,
     reason_disabled, reason_shadowed, reason_unsigned, reason_key, reason_signature, reason_quarantined,
     every_reason_has_a_function, a_missing_operator_names_the_plugin_that_has_it,
     an_operator_of_an_incompatible_plugin_is_told, an_operator_of_an_unsigned_plugin_is_told,
     an_operator_whose_library_is_missing_is_told, a_misspelt_operator_gets_the_nearest, a_backend_that_is_not_listed_is_told, a_backend_without_devices_says_why,
     the_chosen_kernel_is_named_with_its_plugin, a_node_that_falls_back_says_from_where_and_what_helps])
