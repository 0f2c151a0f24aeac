// SPDX-License-Identifier: MIT
// tenon bench: runs the benchmarks, a program of its own because it links OpenBLAS to
// compare with.
#include "commands.h"
#include "files/paths.h"
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 16 // benchmarks on one command line

static const char details[] =
    "Contestants take turns, medians are compared. PYTHON (or TENON_BENCH_PYTHON) is a\n"
    "Python that has torch or mlx; without it, Tenon is measured alone. NAME is matmul,\n"
    "axpby, replay, first, command or lenet; without one, all of them are made.\n"
    "@FILE as NAME: the graphs of a file that 'tenon eval --save' wrote.\n";

int cmd_bench(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    const char *rounds = NULL, *threads = NULL, *python = NULL;
    const struct option options[] = {
        {"rounds", 0, "N", "times that each contestant runs (15)", &rounds, NULL},
        {"threads", 0, "N", "threads of each contestant (2)", &threads, NULL},
        {"python", 0, "PYTHON", "a Python with torch or mlx", &python, NULL},
    };
    struct args args;
    char own[PATH_MAX];
    int failed =
        args_parse(&mine, options, COUNT(options), 0, MAX_NAMED, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (!own_path(own))
        return oops("cannot tell where this program is: %s", strerror(errno));
    setenv("TENON_BENCH_COMMAND", own, 1); // the command that is timed
    return program_run("tenon-bench", "../bench",
                       "tenon-bench is not installed: it is built when OpenBLAS is there",
                       options, COUNT(options), &args);
}
