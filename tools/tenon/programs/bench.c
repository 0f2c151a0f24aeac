// SPDX-License-Identifier: MIT
// tenon bench: runs the benchmarks, a program of its own because it links OpenBLAS to
// compare with.
#include "commands.h"
#include "files/paths.h"
#include "lm.h"
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 16 // benchmarks on one command line

static const char details[] =
    "Contestants take turns, medians are compared. PYTHON (or TENON_BENCH_PYTHON) is a\n"
    "Python that has torch or mlx; without it, Tenon is measured alone. NAME is matmul,\n"
    "axpby, replay, first, command, norms, ops (single operators, in a table) or lenet;\n"
    "without one, all of them are made.\n"
    "@FILE as NAME: the graphs of a file that 'tenon eval --save' wrote.\n"
    "llm MODEL: tokens a second of a language model, for a prompt of 512 and one by one;\n"
    "'llm --random layers=22,width=2048,heads=32,groups=4,inner=5632,format=q4_0' of one\n"
    "with random weights.\n";

int cmd_bench(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    const char *rounds = NULL, *threads = NULL, *python = NULL, *random = NULL,
               *tokens = NULL, *context = NULL, *sequences = NULL, *position = NULL,
               *cache = NULL, *split = NULL;
    bool json = false;
    const struct option options[] = {
        {"rounds", 0, "N", "times that each contestant runs (15)", &rounds, NULL},
        {"threads", 0, "N", "threads of each contestant (2)", &threads, NULL},
        {"python", 0, "PYTHON", "a Python with torch or mlx", &python, NULL},
        {"random", 0, "DIMENSIONS", "llm: a model of random weights", &random, NULL},
        {"tokens", 0, "N", "llm: tokens one by one (64)", &tokens, NULL},
        {"context", 0, "N", "llm: positions that there is room for", &context, NULL},
        {"sequences", 0, "N", "llm: sequences that share each step (1)", &sequences, NULL},
        {"position", 0, "N", "llm: where steps are measured (512; of several, 64)",
         &position, NULL},
        {"cache", 0, "TYPE", "llm: elements of the caches: f16, f32, q8_0", &cache, NULL},
        {"split", 0, "LIST", "llm: layers of each device of TENON_BACKEND, 16,14", &split,
         NULL},
        {"json", 0, NULL, "llm: print JSON", NULL, &json},
    };
    enum { OWN = 3 }; // options of the other benchmarks
    struct args args;
    char own[PATH_MAX];
    int failed =
        args_parse(&mine, options, COUNT(options), 0, MAX_NAMED, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (args.count > 0 && strcmp(args.items[0], "llm") == 0) {
        if (threads)
            setenv("TENON_THREADS", threads, 1);
        threads = python = NULL;
        args.items++;
        args.count--;
        return lm_run("bench", options, COUNT(options), &args);
    }
    if (random || tokens || context || sequences || position || cache || split || json)
        return misuse("--random, --tokens, --context, --sequences, --position, --cache, "
                      "--split and --json are for 'bench llm'");
    if (!own_path(own))
        return oops("cannot tell where this program is: %s", strerror(errno));
    setenv("TENON_BENCH_COMMAND", own, 1); // the command that is timed
    return program_run("tenon-bench", "../bench",
                       "tenon-bench is not installed: it is built when OpenBLAS is there",
                       options, OWN, &args);
}
