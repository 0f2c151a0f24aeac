# SPDX-License-Identifier: MIT
"""`tenon doctor` finds each trouble that is made here, and says what to do."""

import json
import os
import pathlib
import re
import resource
import shutil
import sys

import stage
import tap
from tap import refused, run, tenon

stage.FIXTURES = pathlib.Path(sys.argv[3]).absolute()


def environment(**more):
    """Homes in the working directory, and no driver of Vulkan: it takes long to start."""
    return {"HOME": os.getcwd(), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": "", "TENON_CACHE_DIR": "",
            "TENON_PLUGINS_DISABLE": "*.vulkan*" if tap.has_plugins("org.tenon.vulkan") else "", **more}


def with_plugins(*folders, **more):
    path = ":".join([*[os.path.abspath(f) for f in folders], tap.STAGING])
    return environment(TENON_PLUGIN_PATH=path, **more)


def findings(env, wrong, *arguments):
    """All findings; the status and the count agree with `wrong`."""
    done = tenon("doctor", "--json", *arguments, status=1 if wrong else 0, env=env)
    report = json.loads(done.stdout)
    assert bool(wrong) == bool(report["wrong"]), report
    assert report["wrong"] == sum(f["kind"] == "wrong" for f in report["findings"])
    return report["findings"]


def sick(topic, saying, env, *arguments, remedy=""):
    """One of the things that are wrong is about `topic` and says so."""
    wrong = [f for f in findings(env, True, *arguments) if f["kind"] == "wrong"]
    hits = [f for f in wrong if f["topic"] == topic and saying in f["text"] and remedy in f["text"] + f["remedy"]]
    assert hits, f"expected {topic}: {saying!r} ... {remedy!r} among {json.dumps(wrong, indent=1)}"


def nothing_is_wrong_where_nothing_is():
    text = tenon("doctor", env=environment()).stdout
    assert text.startswith("tenon ") and "Nothing is wrong." in text and "WRONG" not in text, text
    assert len(text.splitlines()) < 40, "one screen"
    for topic in ("variables", "folders", "plugins", "trust", "processor", "devices", "run", "cache"):
        assert f"\n{topic}" in text, (topic, text)


def wrong_things_are_counted_and_told_with_remedies():
    done = refused("doctor", env=environment(TENON_BAKEND="x", TENON_THREADS="256"), saying="things are wrong")
    assert "WRONG  TENON_BAKEND is not a variable of Tenon; did you mean TENON_BACKEND?" in done.stdout, done.stdout
    assert "to do: unset TENON_THREADS, or lower it" in done.stdout, done.stdout


def what_could_not_be_examined_is_told():
    """A child takes two pipes; this leaves descriptors for less."""
    done = refused("doctor", env=environment(), saying="wrong",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)))
    assert "Nothing is wrong" not in done.stdout, done.stdout
    assert "was not examined: no process could be started" in done.stdout, done.stdout


# --- variables ---------------------------------------------------------------------------


def variables_with_wrong_names_and_values_are_found():
    sick("variables", "did you mean sched?", environment(TENON_LOG="off,shced=debug"))
    sick("variables", "matches no plugin", environment(TENON_PLUGINS_DISABLE="com.nobody.*"))
    sick("variables", "'x' is ignored: expected PRIMITIVE@BACKEND=PLUGIN", environment(TENON_KERNELS="x"))
    sick("variables", "TENON_DLCLOSE=2 is ignored", environment(TENON_DLCLOSE="2"))
    sick("variables", "TENON_CHECK=7 is ignored", environment(TENON_CHECK="7"))
    sick("variables", "TENON_THREADS=999 is ignored", environment(TENON_THREADS="999"))


def variables_that_keep_a_runtime_from_opening_are_found():
    sick("variables", "did you mean signed?", environment(TENON_TRUST="singed"))


def a_backend_that_is_not_there_is_found():
    sick("run", "did you mean cpu-blas?", environment(TENON_BACKEND="cpu-bals"))
    sick("processor", "TENON_THREADS=256", environment(TENON_THREADS="256"))


# --- plugins -----------------------------------------------------------------------------


def folders_that_are_wrong_are_found():
    os.makedirs("open")
    os.chmod("open", 0o777)
    pathlib.Path("file").touch()
    sick("folders", "can be changed by others", with_plugins("open"), remedy=f"chmod go-w '{os.getcwd()}/open'")
    sick("folders", "No such file", with_plugins("absent"), remedy="take it out of TENON_PLUGIN_PATH")
    sick("folders", "Not a directory", with_plugins("file"), remedy="let this user read it")
    sick("folders", "'here' is not absolute", environment(TENON_PLUGIN_PATH=f"here:{tap.STAGING}"))
    if os.geteuid() == 0:
        os.makedirs("others")
        os.chown("others", 12345, 12345)
        sick("folders", "belongs to user 12345", with_plugins("others"))


def plugins_that_are_refused_are_found():
    folder = stage.stage("com.acme.good", "fixture-good")
    with open(folder / "plugin.so", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")  # of the same size: only the hash tells
    sick("plugins", "has SHA-256", with_plugins("plugins"), remedy="reinstall the plugin")
    (folder / "plugin.json").write_text("{")
    sick("plugins", "plugin.json", with_plugins("plugins"), remedy="generate its plugin.json again")


def duplicates_and_disabled_ones_are_noted():
    stage.stage("com.acme.good", "fixture-good", "one")
    stage.stage("com.acme.good", "fixture-good-1.9", "two")
    notes = [f["text"] for f in findings(with_plugins("one", "two"), False) if f["kind"] == "note"]
    assert any("1.0.0" in n and "is shadowed by 1.9.0" in n for n in notes), notes
    notes = [f["text"] for f in findings(environment(TENON_PLUGINS_DISABLE="*.null"), False)]
    assert any("org.tenon.null is disabled by TENON_PLUGINS_DISABLE" in n for n in notes), notes


def having_no_plugin_is_wrong():
    sick("plugins", "there is nothing to compute with",
         environment(TENON_PLUGIN_PATH="", TENON_PLUGINS_ONLY="1", TENON_PLUGINS_DISABLE=""))


def trust_without_keys_is_wrong():
    sick("trust", "no key is trusted", environment(TENON_TRUST="signed"), remedy="tenon trust add KEY")
    notes = [f for f in findings(environment(TENON_TRUST="any"), False) if f["topic"] == "trust"]
    assert notes[0]["kind"] == "note" and "unset TENON_TRUST" in notes[0]["text"], notes


# --- devices -----------------------------------------------------------------------------


def a_backend_without_a_device_is_wrong_only_when_it_is_wanted():
    stage.stage("com.acme.driver", "fixture-driver")
    said = [f for f in findings(with_plugins("plugins"), False) if "frobnicator" in f["text"]]
    assert said[0]["kind"] == "note" and "plug it in" in said[0]["text"], said
    sick("devices", "not plugged in", with_plugins("plugins", TENON_BACKEND="frobnicator"), remedy="plug it in")
    findings(with_plugins("plugins", TENON_BACKEND="frobnicator?,cpu-blas"), False)


def a_driver_that_crashes_or_hangs_is_found():
    stage.stage("com.acme.driver", "fixture-driver")
    env = with_plugins("plugins", TENON_TEST_DRIVER="crash")
    sick("devices", "com.acme.driver crashed (Aborted) while", env, remedy="'tenon devices --probe'")
    tenon("devices", "--probe", env=env)
    notes = [f["text"] for f in findings(env, True) if f["topic"] == "plugins"]
    assert any("com.acme.driver is in quarantine" in n for n in notes), notes
    shutil.rmtree(".cache", ignore_errors=True)
    env = with_plugins("plugins", TENON_TEST_DRIVER="hang")
    sick("devices", "com.acme.driver did not answer within 1 s", env, "--timeout", "1")


def a_machine_without_openblas_is_found():
    if not tap.has_plugins("org.tenon.cpu-blas"):
        return "cpu-blas is not built"
    os.mkdir("broken")
    pathlib.Path("broken/libopenblas.so.0").write_text("no library")
    env = environment(LD_LIBRARY_PATH=f"{os.getcwd()}/broken:{os.environ.get('LD_LIBRARY_PATH', '')}")
    sick("libraries", "many times slower", env, remedy="apt install libopenblas0")


def old_kernels_of_openblas_are_found():
    if not tap.has_plugins("org.tenon.cpu-blas"):
        return "cpu-blas is not built"
    said = [f["text"] for f in findings(environment(), False) if f["topic"] == "libraries"]
    assert len(said) == 1 and re.search(r"OpenBLAS [\d.]+, \w+ kernels, 1 thread$", said[0]), said
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        return "this processor has no AVX2"
    sick("libraries", "Prescott kernels (SSE) on a processor with AVX", environment(OPENBLAS_CORETYPE="Prescott"),
         remedy="unset OPENBLAS_CORETYPE")
    said = findings(environment(OPENBLAS_CORETYPE="Prescott"), True)
    assert [f["kind"] for f in said if f["topic"] == "libraries"] == ["wrong"], said
    text = tenon("devices", env=environment(OPENBLAS_CORETYPE="Prescott")).stdout
    assert "Prescott kernels, 1 thread" in text and "unset OPENBLAS_CORETYPE" in text, text


def each_topic_is_told_once():
    topics = [f["topic"] for f in findings(environment(TENON_PLUGINS_DISABLE=""), False)]
    runs = [t for i, t in enumerate(topics) if i == 0 or topics[i - 1] != t]
    assert len(runs) == len(set(runs)), runs


def drivers_of_vulkan_are_listed():
    if not tap.has_plugins("org.tenon.vulkan"):
        return "no Vulkan backend is built"
    env = environment(TENON_PLUGINS_DISABLE="", VK_DRIVER_FILES="/nonexistent", VK_ICD_FILENAMES="/nonexistent")
    said = [f for f in findings(env, False) if f["topic"] == "Vulkan"]
    assert "/nonexistent" in said[0]["text"], said
    sick("devices", "found no driver", {**env, "TENON_BACKEND": "vulkan"}, remedy="mesa-vulkan-drivers")


# --- cache -------------------------------------------------------------------------------


def a_cache_that_cannot_be_used_is_found():
    os.mkdir("shared")
    os.chmod("shared", 0o777)
    pathlib.Path("file").touch()
    here = os.getcwd()
    sick("cache", "others can change it", environment(TENON_CACHE_DIR=f"{here}/shared"), remedy="chmod 0700")
    sick("cache", "is no folder", environment(TENON_CACHE_DIR=f"{here}/file"), remedy="TENON_CACHE_DIR")
    sick("cache", "Not a directory", environment(TENON_CACHE_DIR=f"{here}/file/below"), remedy="TENON_CACHE_DIR")
    sick("cache", "nothing can be kept there", environment(TENON_CACHE_DIR="/proc/tenon"), remedy="TENON_CACHE_DIR") \
        if os.geteuid() == 0 else \
        sick("cache", "cannot be written", environment(TENON_CACHE_DIR="/proc/tenon"), remedy="TENON_CACHE_DIR")
    os.makedirs("mine/kept", mode=0o700)
    os.chmod("mine", 0o700)
    pathlib.Path("mine/entry").write_bytes(b"x" * 1500000)
    said = [f for f in findings(environment(TENON_CACHE_DIR=f"{here}/mine"), False) if f["topic"] == "cache"]
    assert "1 file, 1.5 MB" in said[0]["text"], said
    if os.access("/", os.W_OK):
        said = findings(environment(TENON_CACHE_DIR="/tenon-that-is-not-there"), False)
        assert any("made when something is compiled" in f["text"] for f in said), said


run([nothing_is_wrong_where_nothing_is, wrong_things_are_counted_and_told_with_remedies,
     what_could_not_be_examined_is_told, variables_with_wrong_names_and_values_are_found, variables_that_keep_a_runtime_from_opening_are_found,
     a_backend_that_is_not_there_is_found, folders_that_are_wrong_are_found, plugins_that_are_refused_are_found,
     duplicates_and_disabled_ones_are_noted, having_no_plugin_is_wrong, trust_without_keys_is_wrong,
     a_backend_without_a_device_is_wrong_only_when_it_is_wanted, a_driver_that_crashes_or_hangs_is_found,
     a_machine_without_openblas_is_found, old_kernels_of_openblas_are_found, each_topic_is_told_once, drivers_of_vulkan_are_listed,
     a_cache_that_cannot_be_used_is_found])
