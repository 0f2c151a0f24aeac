# SPDX-License-Identifier: MIT
"""Each variable of docs/environment.md does what its row says, and a wrong value is told with
what was expected. Functions are named after their variables: tests/lint looks for them."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

import tap
from tap import has_mpi, refused, run, tenon

ADD = ("eval", "[1.0, 2.0] + 1")
PRODUCT = ("eval", "x @ x", "x=[[1.0, 2], [3, 4]]")
SOFTMAX = ("why", "softmax(x)", "x=[1.0, 2]")


def warned(*args, saying, env):
    """It works, and warns."""
    done = tenon(*args, env=env)
    assert saying in done.stderr, (saying, done.stderr)
    return done


def quiet(*args, env):
    done = tenon(*args, env=env)
    assert done.stderr == "", done.stderr
    return done


def has_vulkan():
    done = subprocess.run([tap.TENON, *ADD], env={**tap.ENVIRONMENT, "TENON_BACKEND": "vulkan-jit"},
                          capture_output=True)
    return done.returncode == 0


def home(**more):
    """An environment in which the user's plugins are in the working directory."""
    return {"XDG_DATA_HOME": os.path.abspath("data"), **more}


def install(plugin="org.tenon.base", where="data/tenon/plugins"):
    folder = pathlib.Path(where, plugin)
    shutil.copytree(pathlib.Path(tap.STAGING, plugin), folder)
    return folder


# --- which devices -----------------------------------------------------------------------


def tenon_backend_is_a_list_in_order():
    def device(value):
        return json.loads(tenon("why", "x @ x", "x=[[1.0]]", "--json", env={"TENON_BACKEND": value}).stdout)["nodes"][0]["device"]
    assert device("cpu-blas") == "cpu-blas:0"
    assert device("null,cpu-blas") == "null:0"
    assert device("cpu-blas,null") == "cpu-blas:0"
    assert device("") == "cpu-blas:0", "empty is as good as unset"


def tenon_backend_takes_numbers_of_devices():
    quiet(*ADD, env={"TENON_BACKEND": "cpu-blas:0"})
    refused(*ADD, env={"TENON_BACKEND": "cpu-blas:1"}, saying="has devices 0 to 0, got 1")
    refused(*ADD, env={"TENON_BACKEND": "cpu-blas:x"}, saying="expected a device number after the colon")
    if has_vulkan():
        quiet(*ADD, env={"TENON_BACKEND": "vulkan-jit:0,cpu-blas"})
        refused(*ADD, env={"TENON_BACKEND": "vulkan-jit:99"}, saying="has devices 0 to ")


def tenon_backend_may_name_what_is_absent():
    quiet(*ADD, env={"TENON_BACKEND": "some-backend?,cpu-blas"})
    quiet(*ADD, env={"TENON_BACKEND": "cpu-blas:7?,cpu-blas"})
    refused(*ADD, env={"TENON_BACKEND": "some-backend,cpu-blas"}, saying="'some-backend' is not known")
    refused(*ADD, env={"TENON_BACKEND": "some-backend?"}, saying="none of these is present")


def tenon_backend_misspelt_gets_the_nearest():
    refused(*ADD, env={"TENON_BACKEND": "cpu-bals"}, saying="did you mean cpu-blas?")
    refused(*ADD, env={"TENON_BACKEND": "cpu"}, saying="did you mean cpu-blas?")
    refused(*ADD, env={"TENON_BACKEND": "blas"}, saying="did you mean cpu-blas?")
    warned(*ADD, env={"TENON_BACKEND": "cpu-bals?,cpu-blas"}, saying="did you mean cpu-blas?")
    refused(*ADD, env={"TENON_BACKEND": "cpu-blas,,null"}, saying="expected a backend's name")


def tenon_fallback_says_what_falling_back_means():
    if not has_vulkan():
        return "no device of vulkan-jit"
    env = {"TENON_BACKEND": "vulkan-jit,cpu-blas", "TENON_KERNELS": "base.matmul@vulkan-jit=!*"}
    warned(*PRODUCT, env=env, saying="base.matmul/1 runs on cpu-blas:0, not on vulkan-jit:0")
    quiet(*PRODUCT, env={**env, "TENON_FALLBACK": "allow"})
    refused(*PRODUCT, env={**env, "TENON_FALLBACK": "error"}, saying="TENON_FALLBACK=error forbids cpu-blas:0")
    refused(*PRODUCT, env={**env, "TENON_BACKEND": "vulkan-jit"}, saying="runs on none of the selected devices")


def tenon_fallback_misspelt_gets_the_nearest():
    warned(*ADD, env={"TENON_FALLBACK": "wran"}, saying="did you mean warn?")


def tenon_threads_is_how_many_run():
    env = {"TENON_LOG": "cpu-blas=info"}
    warned(*ADD, env={**env, "TENON_THREADS": "3"}, saying="cpu-blas: 3 threads")
    told = int(re.search(r"cpu-blas: (\d+) thread", warned(*ADD, env=env, saying="cpu-blas: ").stderr)[1])
    assert 1 <= told <= len(os.sched_getaffinity(0)), told  # fewer by a quota: tests/kernels/processors.c
    warned(*ADD, env={"TENON_THREADS": "many"}, saying="TENON_THREADS=many is ignored: expected an integer")
    for wrong in ("0", "257", "999", "5000", "-1", "2x", "99999999999999999999"):
        warned(*ADD, env={"TENON_THREADS": wrong}, saying=f"TENON_THREADS={wrong} is ignored: expected an integer from 1 to 256")


def tenon_cpu_caps_the_instructions():
    flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text() + "\nflags :", re.M)[1].split())
    capped = {"baseline": True, "avx2": {"avx2", "fma", "f16c"} <= flags, "avx512": {"avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags}
    for most, present in capped.items():
        if not present:
            print(f"# skipped: {most}, which this processor has not")
            continue
        product = ("eval", "matmul(x, x)", "x=[[1.0, 2.0], [3.0, 4.0]]")
        assert "7" in warned(*product, env={"TENON_LOG": "cpu-blas=info", "TENON_CPU": most}, saying=f" {most} kernels,").stdout


def tenon_cpu_stream_is_what_passes_the_caches():
    env = {"TENON_LOG": "cpu-blas=info"}
    norm = ("eval", "sum(rms_norm(broadcast_to([1.0], shape=[64, 64]), broadcast_to([1.0], shape=[64]))) > 4095")
    assert "true" in warned(*norm, env={**env, "TENON_CPU_STREAM": "1000"}, saying="norms of 1000 bytes past the caches").stdout
    warned(*norm, env=env, saying="bytes past the caches")
    for wrong in ("0", "-1", "many", "1e6", "99999999999999999999"):
        warned(*ADD, env={"TENON_CPU_STREAM": wrong}, saying=f"TENON_CPU_STREAM={wrong} is ignored: expected an integer from 1 to")


def tenon_graph_limit_bounds_what_a_file_becomes():
    loops = "; ".join(f'x{i + 1} = while_loop(x{i}, body="x -> x + 1", times=1)' for i in range(300))
    tenon("eval", f"{loops}; x300", "x0=1.0", "--save", "loops.graph")
    call = ("eval", "@loops.graph", "x0=2")
    assert "302" in tenon(*call).stdout
    refused(*call, env={"TENON_GRAPH_LIMIT": "1000000"}, saying="more than 1000000 bytes; TENON_GRAPH_LIMIT=BYTES raises")
    assert "302" in tenon(*call, env={"TENON_GRAPH_LIMIT": "10000000"}).stdout
    for wrong in ("0", "-1", "many", "1e6", "99999999999999999999"):
        warned(*ADD, env={"TENON_GRAPH_LIMIT": wrong}, saying=f"TENON_GRAPH_LIMIT={wrong} is ignored: expected an integer from 1 to")


def tenon_lm_memory_is_what_a_model_may_have():
    model = ("bench", "llm", "--random", "layers=2,width=64,heads=4,kv_heads=2,inner=128,vocabulary=64,context=64",
             "--prompt", "4", "--tokens", "2", "--position", "8")
    refused(*model, env={"TENON_LM_MEMORY": "1000"}, saying="which has 0.0 MB of memory for layers: 0.1 MB are missing")
    assert "resident" in tenon(*model, env={"TENON_LM_MEMORY": "100000"}).stdout


# --- which kernels -----------------------------------------------------------------------


def tenon_kernels_takes_and_refuses():
    def kernel(rule):
        nodes = json.loads(tenon("why", *PRODUCT[1:], "--json", env={"TENON_KERNELS": rule}).stdout)["nodes"]
        return nodes[-1]["kernel"], str(nodes)
    first = kernel("")[0]
    name, said = kernel(f"base.matmul=!*/{first}")
    assert name != first and "TENON_KERNELS says" in said, said
    assert kernel("base.matmul=!org.tenon.cpu-blas")[0] != first
    assert kernel(f"base.matmul@null=!*/{first}")[0] == first
    assert kernel(f"base.matmul/1@cpu-*=org.tenon.*/{name}")[0] == name
    assert kernel(f"base.sum=!*;base.*=!*/{first}")[0] == name


def tenon_kernels_misspelt_gets_the_nearest():
    for rule, saying in [("nn.softmx=!*", "'nn.softmx' matches no primitive; did you mean nn.softmax/1?"),
                         ("nn.softmax@cpu-bals=!*", "'cpu-bals' matches no backend; did you mean cpu-blas?"),
                         ("nn.softmax=org.tenon.cpublas", "did you mean org.tenon.cpu-blas?"),
                         ("nn.softmax=!org.tenon.cpu-blas/row", "matches no plugin and no kernel"),
                         ("nn.softmax", "'nn.softmax' is ignored: expected PRIMITIVE@BACKEND=PLUGIN")]:
        warned(*SOFTMAX, env={"TENON_KERNELS": rule}, saying=saying)
    quiet(*SOFTMAX, env={"TENON_KERNELS": "nn.*=!org.tenon.cpu-blas;*@cpu-blas=!*/rows"})


def tenon_check_runs_kernels_twice():
    warned(*PRODUCT, env={"TENON_CHECK": "1", "TENON_LOG": "check=info"}, saying="1 launches checked, 0 differ")
    warned(*PRODUCT, env={"TENON_CHECK": "0.000001", "TENON_LOG": "check=info"}, saying="0 launches checked")
    for wrong in ("2", "-1", "often", "nan"):
        warned(*ADD, env={"TENON_CHECK": wrong}, saying=f"TENON_CHECK={wrong} is ignored: expected a number from 0 to 1")


# --- which plugins -----------------------------------------------------------------------


def tenon_plugin_path_comes_first():
    folder = install(where="here")
    env = {"TENON_PLUGIN_PATH": f"{os.path.abspath('here')}:{tap.STAGING}"}
    shown = json.loads(tenon("plugin", "show", "org.tenon.base", "--json", env=env).stdout)
    assert shown["directory"] == str(folder.absolute()), shown
    assert "shadowed" in tenon("plugins", "--all", env=env).stdout


def tenon_plugin_path_wrong_is_told():
    warned("plugins", env={"TENON_PLUGIN_PATH": f"/nowhere:{tap.STAGING}"}, saying="/nowhere: No such file")
    done = tenon("plugins", env={"TENON_PLUGIN_PATH": f"here:{tap.STAGING}"})
    assert "the entry 'here' of the plugin path is not absolute" in done.stdout, done.stdout


def tenon_plugins_only_hides_the_others():
    install()
    env = home(TENON_PLUGIN_PATH="", TENON_LOG="off")
    assert "org.tenon.base" in tenon("plugins", env=env).stdout
    assert "no plugins found" in tenon("plugins", env={**env, "TENON_PLUGINS_ONLY": "1"}).stdout
    assert "org.tenon.base" in tenon("plugins", env={**env, "TENON_PLUGINS_ONLY": "0"}).stdout
    warned(*ADD, env={"TENON_PLUGINS_ONLY": "yes"}, saying="TENON_PLUGINS_ONLY=yes is ignored: expected 0 or 1")


def tenon_plugins_disable_takes_globs():
    for globs in ("org.tenon.nn", "*.nn", "com.*,org.tenon.n?"):
        env = {"TENON_PLUGINS_DISABLE": globs, "TENON_LOG": "error"}
        refused("eval", "softmax([1.0])", env=env, saying="disabled by TENON_PLUGINS_DISABLE")
    warned(*ADD, env={"TENON_PLUGINS_DISABLE": "org.tenon.nnn"}, saying="did you mean org.tenon.nn?")


def tenon_trust_is_what_a_plugin_has_to_prove():
    folder = install()
    env = home(TENON_PLUGIN_PATH="", TENON_PLUGINS_DISABLE="org.tenon.x*", TENON_LOG="off")
    with open(next(folder.glob("*.so")), "ab") as file:
        file.write(b"more")
    refused("op", "add", env=env, saying="the manifest says")
    refused("op", "add", env={**env, "TENON_TRUST": "checksummed"}, saying="the manifest says")
    tenon("op", "add", env={**env, "TENON_TRUST": "any"})
    refused("op", "add", env={**env, "TENON_TRUST": "signed"}, saying="tenon plugin sign")
    refused(*ADD, env={"TENON_TRUST": "singed"}, saying="did you mean signed?")


def tenon_dlclose_unloads():
    def unloaded(value):
        done = tenon(*ADD, env={"TENON_DLCLOSE": value, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": os.path.abspath(f"ld{value}")})
        assert done.stderr == "", done.stderr
        return sum(p.read_text().count("destroying link map") for p in pathlib.Path(".").glob(f"ld{value}.*"))
    if not unloaded("1"):
        return "this C library does not tell what it unloads"
    assert unloaded("1") > unloaded("0")
    warned(*ADD, env={"TENON_DLCLOSE": "2"}, saying="TENON_DLCLOSE=2 is ignored: expected 0 or 1")


# --- what is told and kept ---------------------------------------------------------------


def tenon_log_has_levels_by_topic():
    assert "debug: plugin: loaded" in tenon(*ADD, env={"TENON_LOG": "debug"}).stderr
    assert "debug: plugin: loaded" in tenon(*ADD, env={"TENON_LOG": "off,plugin=debug"}).stderr
    assert tenon(*ADD, env={"TENON_LOG": "debug,plugin=off,device=off,cpu-blas=off"}).stderr == ""
    assert tenon(*ADD, env={"TENON_LOG": "off", "TENON_THREADS": "many"}).stderr == ""


def tenon_log_misspelt_gets_the_nearest():
    warned(*ADD, env={"TENON_LOG": "wran"}, saying="did you mean warn?")
    warned(*ADD, env={"TENON_LOG": "sched=dbug"}, saying="did you mean debug?")
    warned(*ADD, env={"TENON_LOG": "shced=debug"}, saying="no topic is named 'shced'; did you mean sched?")
    quiet(*ADD, env={"TENON_LOG": "com.acme.thing=debug"})


def tenon_trace_is_a_timeline():
    quiet(*ADD, env={"TENON_TRACE": "run.json"})
    trace = json.loads(pathlib.Path("run.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert any(e.get("ph") in ("X", "B") for e in events), events
    refused(*ADD, env={"TENON_TRACE": "no/such/run.json"}, saying="TENON_TRACE: cannot write no/such/run.json")


def tenon_why_keeps_what_was_decided():
    quiet(*ADD, env={"TENON_WHY": "why.jsonl"})
    assert "base.add" in tenon("why", "last", "why.jsonl").stdout
    refused(*ADD, env={"TENON_WHY": "no/such/file"}, saying="TENON_WHY: cannot write no/such/file")


def tenon_cache_dir_keeps_compiled_code():
    warned(*ADD, env={"TENON_CACHE_DIR": "cache"}, saying="TENON_CACHE_DIR=cache is ignored: expected an absolute path")
    assert not os.path.exists("cache")
    if not has_vulkan():
        return "no device of vulkan-jit"
    env = {"TENON_BACKEND": "vulkan-jit", "TENON_CACHE_DIR": os.path.abspath("a/cache")}
    quiet(*ADD, env=env)
    assert stat.S_IMODE(os.stat("a/cache").st_mode) == 0o700 and os.listdir("a/cache")
    os.chmod("a/cache", 0o777)
    warned(*ADD, env={**env, "TENON_LOG": "cache=info"}, saying="others can change it")


# --- collectives -------------------------------------------------------------------------

REDUCE = ("eval", "dist.all_reduce(x)", "x=[1, 2]")


def tenon_mpi_names_the_library():
    said = refused(*REDUCE, env={"TENON_MPI": "libnone.so"}, saying="no MPI library can be opened (libnone.so").stderr
    assert "apt install openmpi-bin" in said, said


def tenon_mpi_messages_shares_no_memory():
    if not has_mpi("mpirun"):
        return "no MPI is installed"
    for value, saying in (("0", "2 members share memory"), ("1", "2 members agree by messages")):
        warned("run", "-n", "2", "--allow-root", tap.TENON, *REDUCE, saying=saying,
               env={"TENON_MPI_MESSAGES": value, "TENON_LOG": "collective=info"})


def tenon_nccl_names_the_library():
    if not has_mpi():
        return "no MPI is installed"
    assert subprocess.run([tap.TENON, *REDUCE], env={**tap.ENVIRONMENT, "TENON_NCCL": "off"}, capture_output=True).returncode == 0
    said = refused(*REDUCE, env={"TENON_NCCL": "libnone.so"}, saying="rank 0: ").stderr
    assert "CUDA's driver cannot be opened" in said or "pip install nvidia-nccl-cu13" in said, said


def tenon_nccl_least_is_taken():
    # What it does is in tests/collectives/nccl.py, where there is a library of GPUs.
    if not has_mpi():
        return "no MPI is installed"
    done = subprocess.run([tap.TENON, *REDUCE], env={**tap.ENVIRONMENT, "TENON_NCCL_LEAST": "1"}, capture_output=True, text=True)
    assert done.returncode == 0 and "TENON_NCCL_LEAST" not in done.stderr, done


def tenon_run_tells_where_failures_are_told():
    if not has_mpi():
        return "no MPI is installed"
    warned(*REDUCE, env={"TENON_RUN": "rank=0 size=1 watch=999:1"}, saying="nobody watches this rank's group")


# --- Vulkan ------------------------------------------------------------------------------


def tenon_vulkan_validation_loads_the_layer():
    if not has_vulkan():
        return "no device of vulkan-jit"
    env = {"TENON_BACKEND": "vulkan-jit", "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": os.path.abspath("ld")}
    said = tenon(*ADD, env={**env, "TENON_VULKAN_VALIDATION": "1"}).stderr
    loaded = any("khronos_validation" in p.read_text() for p in pathlib.Path(".").glob("ld.*"))
    assert loaded or "VALIDATION is set, but" in said, said
    warned(*ADD, env={"TENON_VULKAN_VALIDATION": "on"}, saying="is ignored: expected 0 or 1")


def tenon_vulkan_as_gpu_takes_kernels_for_gpus():
    if not has_vulkan():
        return "no device of vulkan-jit"
    tenon("eval", "broadcast_to([1.0], shape=[64, 64])", "-o", "x.npy")
    env = {"TENON_BACKEND": "vulkan-jit", "TENON_LOG": "vulkan=debug", "TENON_VULKAN_AS_GPU": "1"}
    warned("eval", "transpose(astype(x, f32))", "x=x.npy", env=env, saying="the pipeline transpose")
    warned(*ADD, env={"TENON_VULKAN_AS_GPU": "yes"}, saying="is ignored: expected 0 or 1")


def tenon_vulkan_matrices_chooses_among_kernels():
    if not has_vulkan():
        return "no device of vulkan-jit"
    # More multiplications than products without matrix units keep.
    tenon("eval", "astype(broadcast_to([0.5], shape=[256, 256]), f16)", "-o", "x.npy")
    wanted = None
    for word in (None, "none", "khr", "nv2"):
        env = {"TENON_BACKEND": "vulkan-jit", **({"TENON_VULKAN_MATRICES": word} if word else {})}
        said = tenon("eval", "sum(matmul(x, x))", "x=x.npy", env=env).stdout
        wanted = wanted or said
        assert said == wanted, (word, said)
    warned(*ADD, env={"TENON_VULKAN_MATRICES": "khr2"}, saying="none, khr or nv2; did you mean khr?")


# --- one rule ----------------------------------------------------------------------------

# Of each variable that takes one of several values: a wrong one, and what is told of it.
IGNORED = {"TENON_PLUGINS_ONLY": ("on", "0 or 1"), "TENON_MPI_MESSAGES": ("yes", "0 or 1"), "TENON_DLCLOSE": ("-1", "0 or 1"),
           "TENON_VULKAN_VALIDATION": ("true", "0 or 1"), "TENON_VULKAN_AS_GPU": ("2", "0 or 1"),
           "TENON_VULKAN_MATRICES": ("0", "none, khr or nv2"),
           "TENON_FALLBACK": ("never", "error, warn or allow"), "TENON_THREADS": ("999", "an integer from 1 to 256"),
           "TENON_CPU": ("sse", "baseline, avx2, avx512 or amx"), "TENON_CPU_STREAM": ("all", "an integer from 1 to"), "TENON_GRAPH_LIMIT": ("none", "an integer from 1 to"),
           "TENON_LM_MEMORY": ("most", "an integer from 1 to"), "TENON_NCCL_LEAST": ("all", "an integer from 1 to"),
           "TENON_CHECK": ("1.5", "a number from 0 to 1"), "TENON_CACHE_DIR": ("cache", "an absolute path")}
# What takes names, files or lists, or says whom to trust, has tests of its own above.
OTHERS = {"TENON_BACKEND", "TENON_PLUGIN_PATH", "TENON_PLUGINS_DISABLE", "TENON_TRUST", "TENON_KERNELS", "TENON_LOG",
          "TENON_TRACE", "TENON_WHY", "TENON_MPI", "TENON_NCCL", "TENON_RUN"}


def wrong_values_are_ignored_with_what_was_expected():
    document = pathlib.Path(__file__).resolve().parents[2] / "docs/environment.md"
    documented = set(re.findall(r"^\| `(TENON_\w+)` \|", document.read_text(), re.M))
    assert documented == set(IGNORED) | OTHERS, documented ^ (set(IGNORED) | OTHERS)
    for name, (value, expected) in IGNORED.items():
        done = warned(*ADD, env={name: value}, saying=f"{name}={value} is ignored: expected ")
        assert expected in done.stderr and done.stdout == tenon(*ADD).stdout, done


# --- names -------------------------------------------------------------------------------


def an_installation_that_lacks_is_told():
    env = {"TENON_PLUGIN_PATH": "", "TENON_PLUGINS_ONLY": "1"}
    for args in [ADD, ("eval", "softmax([1.0])"), ("why", "1 + 1"), ("op", "add"), ("ops", "add")]:
        refused(*args, env=env, saying="TENON_PLUGIN_PATH, which is empty: set it")
    os.mkdir("none")
    env["TENON_PLUGIN_PATH"] = os.path.abspath("none")
    refused(*ADD, env=env, saying=f"no plugin was found in {os.path.abspath('none')}: install some")
    refused(*ADD, env={**env, "TENON_BACKEND": "cpu-blas"}, saying="no plugin was found in")
    tenon("eval", "1 + 1", "--save", "a.graph")
    refused("eval", "@a.graph", env=env, saying="no installed plugin offers the interface 'tn.graph_format/1'")
    install(where="none")
    refused("eval", "acme.smooth(1.0)", env=env, saying="no plugin that was found has the pack 'acme'")


def a_relative_path_of_libtenon_is_told():
    traced = subprocess.run([tap.TENON], env={**tap.ENVIRONMENT, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True,
                            check=True).stdout
    library = pathlib.Path(re.search(r"libtenon\.so\S* => (\S+)", traced)[1])
    os.makedirs("moved/tenon/plugins")
    shutil.copy(library, f"moved/{library.name}")
    warned(*ADD, env={"LD_LIBRARY_PATH": "moved"}, saying=f"libtenon was loaded by the relative path moved/{library.name}: plugins are "
           "looked for in")
    done = tenon(*ADD, env={"LD_LIBRARY_PATH": os.path.abspath("moved")})
    assert "relative" not in done.stderr, done


def unknown_variables_get_the_nearest():
    warned(*ADD, env={"TENON_BAKEND": "null"}, saying="TENON_BAKEND is not a variable of Tenon; did you mean TENON_BACKEND?")
    warned(*ADD, env={"TENON_SOMETHING_ELSE": "1"}, saying="TENON_SOMETHING_ELSE is not a variable of Tenon")


run([tenon_backend_is_a_list_in_order, tenon_backend_takes_numbers_of_devices, tenon_backend_may_name_what_is_absent,
     tenon_backend_misspelt_gets_the_nearest, tenon_fallback_says_what_falling_back_means,
     tenon_fallback_misspelt_gets_the_nearest, tenon_threads_is_how_many_run,
     tenon_cpu_caps_the_instructions, tenon_cpu_stream_is_what_passes_the_caches, tenon_graph_limit_bounds_what_a_file_becomes, tenon_lm_memory_is_what_a_model_may_have,
     tenon_kernels_takes_and_refuses,
     tenon_kernels_misspelt_gets_the_nearest, tenon_check_runs_kernels_twice, tenon_plugin_path_comes_first,
     tenon_plugin_path_wrong_is_told, tenon_plugins_only_hides_the_others, tenon_plugins_disable_takes_globs,
     tenon_trust_is_what_a_plugin_has_to_prove, tenon_dlclose_unloads, tenon_log_has_levels_by_topic,
     tenon_log_misspelt_gets_the_nearest, tenon_trace_is_a_timeline, tenon_why_keeps_what_was_decided,
     tenon_cache_dir_keeps_compiled_code, tenon_mpi_names_the_library, tenon_mpi_messages_shares_no_memory, tenon_nccl_names_the_library, tenon_nccl_least_is_taken,
     tenon_run_tells_where_failures_are_told,
     tenon_vulkan_validation_loads_the_layer,
     tenon_vulkan_as_gpu_takes_kernels_for_gpus, tenon_vulkan_matrices_chooses_among_kernels,
     wrong_values_are_ignored_with_what_was_expected,
     an_installation_that_lacks_is_told, a_relative_path_of_libtenon_is_told, unknown_variables_get_the_nearest])
