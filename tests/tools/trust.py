# SPDX-License-Identifier: MIT
"""Keys, signatures, policies, and backends that crash or hang where they are watched."""

import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

import stage
import tap
from tap import refused, tenon

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()
ID, DRIVER = "com.acme.good", "com.acme.driver"


def home(policy="signed", folder="plugins", **more):
    return {"HOME": os.getcwd(), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", "TENON_CACHE_DIR": "",
            "TENON_PLUGIN_PATH": os.path.abspath(folder), "TENON_PLUGINS_ONLY": "1", "TENON_LOG": "off",
            "TENON_TRUST": policy, **more}


def state(env, plugin_id=ID):
    rows = json.loads(tenon("plugin", "list", "--all", "--json", env=env).stdout)
    row = next(r for r in rows if r["id"] == plugin_id or r["directory"].endswith(plugin_id))
    return row["state"], row["reason"]


def keys():
    return [k["number"] for k in json.loads(tenon("trust", "list", "--json", env=home()).stdout)]


# --- keys and signatures -----------------------------------------------------------------


def keys_are_made_trusted_listed_and_removed():
    tenon("trust", "new", "acme.key", env=home())
    assert stat.S_IMODE(os.stat("acme.key").st_mode) == 0o600
    refused("trust", "new", "acme.key", env=home(), saying="exists")
    assert keys() == [] and "no key is trusted" in tenon("trust", "list", env=home()).stdout
    line = pathlib.Path("acme.pub").read_text().splitlines()[1]
    mask = os.umask(0)
    tenon("trust", "add", line, env=home())
    os.umask(mask)
    tenon("trust", "add", "acme.pub", env=home())
    (number,) = keys()
    file = pathlib.Path(f".local/share/tenon/trust/{number}.pub")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644 and line in file.read_text()
    tenon("trust", "remove", number.lower(), env=home())
    assert keys() == []
    refused("trust", "remove", number, env=home(), saying="trust list")
    refused("trust", "add", "acme.key", env=home(), saying="no public key")
    refused("trust", "add", "absent", env=home(), saying="absent")


def signatures_decide_what_is_used():
    folder = stage.stage(ID, "fixture-good")
    assert state(home())[0] == "refused" and "no signature" in state(home())[1]
    tenon("trust", "new", "acme.key", env=home())
    tenon("plugin", "sign", folder, "acme.key", env=home())
    assert "not among the 0 trusted" in state(home())[1]
    tenon("trust", "add", "acme.pub", env=home())
    assert state(home())[0] == "found"
    tenon("plugin", "verify", ID, env=home())
    first = (folder / "plugin.json.minisig").read_bytes()
    tenon("plugin", "sign", folder, "acme.key", env=home())
    assert (folder / "plugin.json.minisig").read_bytes() == first, "signing again gives the same bytes"
    tenon("trust", "remove", "acme.pub", env=home())
    assert state(home())[0] == "refused"


def signed_plugins_stay_signed_through_an_archive():
    folder = stage.stage(ID, "fixture-good", "source")
    tenon("trust", "new", "acme.key", env=home())
    tenon("trust", "add", "acme.pub", env=home())
    refused("plugin", "install", folder, "--prefix", "plugins", env=home(), saying="no signature")
    assert os.listdir("plugins") == []
    (folder / "LICENSE").write_text("mine\n")
    tenon("plugin", "sign", folder, "acme.key", env=home())
    tenon("plugin", "pack", folder, "-o", "x.tnp", env=home("checksummed"))
    tenon("plugin", "install", "x.tnp", "--prefix", "plugins", env=home())
    assert state(home())[0] == "found"
    (folder / "added").write_text("by somebody")
    refused("plugin", "pack", folder, env=home(), saying="not listed")
    for name in ["plugin.json", "plugin.json.minisig", "plugin.so", "LICENSE"]:
        path = pathlib.Path("plugins", ID, name)
        good = path.read_bytes()
        at = good.index(b"1.0.0") if name == "plugin.json" else len(good) // 2
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        refused("plugin", "verify", ID, env=home())
        path.write_bytes(good)
    tenon("plugin", "verify", ID, env=home())


def archives_and_shared_objects_are_signed():
    folder = stage.stage(ID, "fixture-good", "source")
    tenon("trust", "new", "acme.key", env=home())
    tenon("trust", "add", "acme.pub", env=home())
    tenon("plugin", "pack", folder, "-o", "x.tnp", env=home("checksummed"))
    shutil.copy(stage.FIXTURES / "fixture-good.so", "x.so")
    for source, archive in ("x.tnp", "x.tnp"), ("x.so", f"{ID}-1.0.0.tnp"):
        done = refused("plugin", "install", source, "--prefix", "plugins", env=home(), saying="no signature")
        assert f"tenon plugin sign '{source}' KEYFILE" in done.stderr and ".install-" not in done.stderr, done.stderr
        tenon("plugin", "sign", source, "acme.key", env=home())
        tenon("plugin", "install", archive, "--prefix", "plugins", env=home())
        assert state(home())[0] == "found"
        tenon("plugin", "remove", ID, "--prefix", "plugins", env=home())
    before = pathlib.Path("x.tnp").read_bytes()
    tenon("plugin", "sign", "x.tnp", "acme.key", env=home())
    assert pathlib.Path("x.tnp").read_bytes() == before, "signing again gives the same bytes"
    assert sorted(os.listdir(".")) == sorted([".local", f"{ID}-1.0.0.tnp", "acme.key", "acme.pub", "plugins", "source",
                                              "x.so", "x.tnp"]), os.listdir(".")


def an_installation_is_signed_by_one_command():
    shutil.copytree(tap.STAGING, "plugins")
    count = len(os.listdir("plugins"))
    tenon("trust", "new", "our.key", env=home())
    tenon("trust", "new", "their.key", env=home())
    refused("plugin", "sign", "--all", "our.key", "--prefix", "nowhere", env=home(), saying="nowhere")
    for bad in (["x", "--prefix", "y", "z"], ["--all", "x", "y"], ["x"], ["x", "y", "--force"]):
        refused("plugin", "sign", *bad, env=home(), status=2)
    refused("eval", "1+1", env=home(), saying="")
    said = tenon("plugin", "sign", "--all", "--prefix", "plugins", "our.key", env=home()).stdout
    assert f"{count} of {count} plugins" in said, said
    refused("eval", "1+1", env=home(), saying="")
    tenon("trust", "add", "our.pub", env=home())
    done = tenon("eval", "1+1", env=home(TENON_LOG="warn"))
    assert done.stdout.split()[-1] == "2" and done.stderr == "", done
    doctor = tenon("doctor", env=home(TENON_LOG="warn"))
    assert "REFUSED" not in doctor.stdout and "no signature" not in doctor.stdout + doctor.stderr, doctor
    assert len(os.listdir("plugins")) == count and not [n for n in os.listdir("plugins") if n[0] == "."]
    # What another signed is left, what was changed is not signed.
    said = tenon("plugin", "sign", "--all", "--prefix", "plugins", "their.key", env=home()).stdout
    assert f"0 of {count} plugins" in said and said.count("left as it is") == count, said
    library = pathlib.Path("plugins/org.tenon.base/org.tenon.base.so")
    library.write_bytes(library.read_bytes() + b"x")
    done = refused("plugin", "sign", "--all", "--force", "--prefix", "plugins", "their.key", env=home())
    assert "plugins/org.tenon.base/org.tenon.base.so has" in done.stderr and ".install-" not in done.stderr, done.stderr
    assert [n for n in os.listdir("plugins") if n[0] == "."] == []


def warnings_are_said_once():
    for folder in "plugins", "others":
        for name in "fixture-good", "fixture-driver":
            stage.stage({"fixture-good": ID}.get(name, DRIVER), name, folder)
    two = home(TENON_LOG="warn", TENON_PLUGIN_PATH=f"{os.path.abspath('plugins')}:{os.path.abspath('others')}")
    for command in ["plugins"], ["ops"], ["plugin", "list", "--json"]:
        (line,) = tenon(*command, env=two).stderr.splitlines()
        assert "4 of 4 plugins are refused" in line and "'tenon plugins'" in line, line
        assert f"tenon plugin sign --all --prefix {os.path.abspath('plugins')} KEYFILE" in line, line
    assert tenon("plugins", env=two).stdout.count("has no signature") == 4, "each, where it was asked for"
    tenon("trust", "new", "our.key", env=home())
    tenon("trust", "add", "our.pub", env=home())
    for folder in "plugins", "others":
        tenon("plugin", "sign", "--all", "--prefix", folder, "our.key", env=home())
    assert tenon("plugins", env=two).stderr == ""
    extra = stage.stage("com.acme.fails", "fixture-init-fails")
    (line,) = tenon("plugins", env=two).stderr.splitlines()
    assert f"{extra.absolute()} has no signature" in line and f"tenon plugin sign '{extra.absolute()}' KEYFILE" in line, line


def packagers_sign_what_they_build():
    """With -Dsigning-key=FILE: as plugins are staged, and once more after they were installed."""
    glue = pathlib.Path(__file__).resolve().parents[2] / "sdk/glue/tenon-plugin"
    tenon("trust", "new", "our.key", env=home())
    tenon("trust", "add", "our.pub", env=home())
    pathlib.Path("LICENSE").write_text("ours\n")
    source = stage.FIXTURES / "fixture-good.so"

    def build(*arguments, **more):
        subprocess.run([sys.executable, glue, *arguments], check=True, env={**tap.ENVIRONMENT, **more})
    common = ["stage", "--tenon", tap.TENON, "--id", ID, "--directory", "plugins", "--license", "LICENSE"]
    build(*common, "--sign", "our.key", source)
    assert state(home())[0] == "found" and state(home())[1] == ""
    build(*common, source)
    assert not os.path.exists(f"plugins/{ID}/plugin.json.minisig"), "that of the manifest before"
    assert state(home("checksummed"))[0] == "found" and state(home())[0] == "refused"
    prefix, staged = pathlib.Path("/opt/x"), pathlib.Path("dest/opt/x/plugins", ID)
    staged.mkdir(parents=True)
    shutil.copy(source, staged / f"{ID}.so")
    build("manifest", "--tenon", tap.TENON, "--sign", "our.key", "--", prefix / "plugins" / ID / f"{ID}.so",
          MESON_INSTALL_PREFIX=str(prefix), MESON_INSTALL_DESTDIR_PREFIX=os.path.abspath("dest/opt/x"))
    assert state(home(folder="dest/opt/x/plugins"))[0] == "found"


def policies_differ():
    folder = stage.stage(ID, "fixture-good")
    (folder / "LICENSE").write_text("mine\n")
    manifest = json.loads((folder / "plugin.json").read_text())
    manifest["files"].append({"name": "LICENSE", "size": 5, "sha256": "00" * 32})
    (folder / "plugin.json").write_text(json.dumps(manifest))
    tenon("plugin", "verify", ID, env=home("any"))
    done = refused("plugin", "verify", ID, env=home("checksummed"))
    assert "LICENSE has SHA-256" in done.stdout, done.stdout
    refused("plugin", "list", env=home("singed"), saying="did you mean signed?")


def minisign_takes_our_signatures_and_we_take_its():
    if not shutil.which("minisign"):
        return "minisign is not installed"
    folder = stage.stage(ID, "fixture-good")
    tenon("trust", "new", "ours.key", env=home())
    tenon("plugin", "sign", folder, "ours.key", env=home())
    manifest = folder / "plugin.json"
    subprocess.run(["minisign", "-Vm", manifest, "-p", "ours.pub"], check=True, capture_output=True)
    subprocess.run(["minisign", "-Sm", manifest, "-s", "ours.key"], check=True, capture_output=True, input=b"\n")
    tenon("trust", "add", "ours.pub", env=home())
    assert state(home())[0] == "found", "its signature with our key"
    tenon("trust", "remove", "ours.pub", env=home())
    subprocess.run(["minisign", "-GW", "-s", "its.key", "-p", "its.pub"], check=True, capture_output=True)
    tenon("trust", "add", "its.pub", env=home())
    for legacy in [[], ["-l"]]:
        subprocess.run(["minisign", "-S", *legacy, "-m", manifest, "-s", "its.key"], check=True, capture_output=True)
        assert state(home())[0] == "found", "its signature with its key"
    tenon("plugin", "sign", folder, "its.key", env=home())
    assert state(home())[0] == "found", "our signature with its key"
    subprocess.run(["minisign", "-Vm", manifest, "-p", "its.pub"], check=True, capture_output=True)


def keys_with_passwords_are_read():
    if not shutil.which("minisign"):
        return "minisign is not installed"
    folder = stage.stage(ID, "fixture-good")
    subprocess.run(["minisign", "-G", "-s", "p.key", "-p", "p.pub"], check=True, capture_output=True,
                   input=b"open sesame\nopen sesame\n")
    tenon("trust", "add", "p.pub", env=home())
    refused("plugin", "sign", folder, "p.key", env=home(), input="wrong\n", saying="password is wrong")
    tenon("plugin", "sign", folder, "p.key", env=home(), input="open sesame\n")
    assert state(home())[0] == "found"


def damaged_keys_are_refused():
    folder = stage.stage(ID, "fixture-good")
    tenon("trust", "new", "acme.key", env=home())
    comment, line = pathlib.Path("acme.key").read_text().splitlines()
    for bad in ["", line[:-8], line[:120] + ("A" if line[120] != "A" else "B") + line[121:], "?" * len(line)]:
        pathlib.Path("bad.key").write_text(f"{comment}\n{bad}\n")
        refused("plugin", "sign", folder, "bad.key", env=home(), saying="bad.key")
    assert not (folder / "plugin.json.minisig").exists()


# --- probing -----------------------------------------------------------------------------


def driver(how, **more):
    return home("checksummed", TENON_TEST_DRIVER=how, **more)


def backends_that_crash_are_left_alone_until_they_change():
    folder = stage.stage(DRIVER, "fixture-driver")
    assert "com.acme.driver: it crashed (Aborted)" in tenon("devices", "--probe", env=driver("crash")).stderr
    assert "in quarantine: it crashed (Aborted) while it listed its devices" in state(driver("crash"), DRIVER)[1]
    tenon("devices", env=driver("crash"))
    cache = pathlib.Path(".cache/tenon")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in cache.iterdir()} == {0o600}
    with open(folder / "plugin.so", "ab") as file:  # mended
        file.write(b"\0")
    shutil.move(folder / "plugin.so", "mended.so")
    shutil.rmtree(folder)
    tenon("plugin", "install", "mended.so", "--prefix", "plugins", env=driver("absent"))
    assert state(driver("absent"), DRIVER) == ("found", "")
    assert "plug it in" in tenon("devices", "--probe", env=driver("absent")).stdout
    assert state(driver("absent"), DRIVER) == ("found", ""), "having no device is no fault"


def details_of_devices_end_within_their_fields():
    stage.stage(DRIVER, "fixture-driver")
    listed = json.loads(tenon("devices", "--json", env=driver("wordy")).stdout)
    first, second = [d for d in listed if d["device"].startswith("frobnicator")]
    assert (first["libraries"], first["warning"], first["remedy"]) == ("l" * 127, "w" * 255, "r" * 191), first
    assert (second["libraries"], second["remedy"]) == ("", ""), second
    assert "device_details of com.acme.driver failed" in second["warning"], second


def backends_that_hang_are_ended_and_may_be_tried_again():
    stage.stage(DRIVER, "fixture-driver")
    for how in "hang", "mute":
        start = time.monotonic()
        tenon("devices", "--probe", "--timeout", "1", env=driver(how))
        assert time.monotonic() - start < 30
        assert "within 1 s" in state(driver(how), DRIVER)[1]
        tenon("plugin", "retry", DRIVER, env=driver("absent"))
        assert state(driver("absent"), DRIVER)[0] == "found"
    refused("plugin", "retry", "com.acme.none", env=driver("absent"), saying="com.acme.none")


def nothing_is_left_of_a_probe_that_is_interrupted():
    stage.stage(DRIVER, "fixture-driver")
    probe = subprocess.Popen([tap.TENON, "devices", "--probe"], env={**os.environ, **driver("hang")},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = pathlib.Path(f"/proc/{probe.pid}/task/{probe.pid}/children")
    if not children.exists():
        probe.kill()
        return "this kernel does not list children"
    while not (found := children.read_text().split()):
        time.sleep(0.01)
    probe.kill()
    probe.wait()
    end = time.monotonic() + 20
    while os.path.exists(f"/proc/{found[0]}/exe") and time.monotonic() < end:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{found[0]}/exe"), "the child goes on for ever"
    return None


def what_setfacl_lets_others_write_is_refused():
    if not shutil.which("setfacl"):
        return "no setfacl"
    folder = stage.stage("com.acme.good", "fixture-good")
    if subprocess.run(["setfacl", "-m", "u:12345:rw", folder / "plugin.so"], stderr=subprocess.DEVNULL).returncode:
        return "this file system has no access control lists"
    assert "can be changed by user 12345" in tenon("plugin", "verify", folder.absolute(), status=1).stdout
    subprocess.run(["setfacl", "-b", folder / "plugin.so"], check=True)
    tenon("plugin", "verify", folder.absolute())


def child_in_driver(process):
    """The child that has loaded the driver; None where the kernel does not list children."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        return None
    while True:
        for child in children.read_text().split():
            try:
                if f"{DRIVER}/" in pathlib.Path(f"/proc/{child}/maps").read_text():
                    return int(child)
            except OSError:
                pass
        time.sleep(0.01)


def probes_that_others_end_are_no_fault_of_the_backend():
    stage.stage(DRIVER, "fixture-driver")
    # A sanitizer would make an exit of the last of the signals.
    plain = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0"}
    for end in signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGSTOP, signal.SIGSEGV:
        probe = subprocess.Popen([tap.TENON, "devices", "--probe", "--timeout", "2"], env={**os.environ, **plain, **driver("hang")},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        child = child_in_driver(probe)
        if not child:
            probe.kill()
            return "this kernel does not list children"
        os.kill(child, end)
        is_own = end == signal.SIGSEGV
        said = probe.communicate(timeout=60)[1] # the listing that follows has no such driver
        assert probe.returncode == 0, said
        assert ("no fault of its own" in said) != is_own, said
        assert state(driver("absent"), DRIVER)[0] == ("refused" if is_own else "found"), (end, said)
    return None


def a_damaged_cache_is_no_quarantine():
    stage.stage(DRIVER, "fixture-driver")
    tenon("devices", "--probe", env=driver("crash"))
    entries = list(pathlib.Path(".cache/tenon").iterdir())
    assert len(entries) == 2, "the plugin's, and that there are any"
    for entry in entries:
        whole = entry.read_bytes()
        for damaged in [b"", whole[:-1], whole + b"x", bytes([whole[0] ^ 1]) + whole[1:], whole[:-1] + bytes([whole[-1] ^ 1])]:
            entry.write_bytes(damaged)
            assert state(driver("absent"), DRIVER)[0] == "found", len(damaged)
        entry.write_bytes(whole)
        assert state(driver("absent"), DRIVER)[0] == "refused"
    tenon("devices", "--probe", env=driver("crash"))
    assert state(driver("absent"), DRIVER)[0] == "refused"
    os.chmod(".cache/tenon", 0o777)
    assert state(driver("absent"), DRIVER)[0] == "found", "a cache that others can change is not believed"


tap.run([keys_are_made_trusted_listed_and_removed, signatures_decide_what_is_used,
         signed_plugins_stay_signed_through_an_archive, archives_and_shared_objects_are_signed,
         an_installation_is_signed_by_one_command, warnings_are_said_once,
         packagers_sign_what_they_build, policies_differ,
         minisign_takes_our_signatures_and_we_take_its, keys_with_passwords_are_read, damaged_keys_are_refused,
         nothing_is_left_of_a_probe_that_is_interrupted,
         backends_that_crash_are_left_alone_until_they_change, backends_that_hang_are_ended_and_may_be_tried_again,
         details_of_devices_end_within_their_fields,
         a_damaged_cache_is_no_quarantine, probes_that_others_end_are_no_fault_of_the_backend, what_setfacl_lets_others_write_is_refused])
