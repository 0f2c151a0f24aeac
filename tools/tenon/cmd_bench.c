// SPDX-License-Identifier: MIT
// tenon bench: runs the benchmarks, which are a program of their own: it links OpenBLAS to
// compare with, and the command does not.
#include "commands.h"
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAMED 16 // benchmarks

// Where the program lies as seen from the command: beside it, where it is installed, and in
// a build folder.
static const char *const places[] = {
    ".",
    ("../" TN_LIBEXEC), // one name
    "../bench",
};

static const char details[] =
    "Contestants take turns, medians are compared. PYTHON (or TENON_BENCH_PYTHON) is a\n"
    "Python that has torch or mlx; without it, Tenon is measured alone. NAME is matmul,\n"
    "axpby, replay, first, command or lenet; without one, all of them are made.\n";

// Gives the arguments for the program, which reads them once more.
static int read_arguments(const struct command *self, int argc, char **argv,
                          const char *out[12 + MAX_NAMED], bool *out_help)
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
    int failed =
        args_parse(&mine, options, COUNT(options), 0, MAX_NAMED, argc, argv, &args);
    *out_help = args.help_shown;
    if (failed || args.help_shown)
        return failed;
    const char *const values[] = {"--rounds", rounds,     "--threads",
                                  threads,    "--python", python};
    size_t n = 0;
    out[n++] = "tenon-bench";
    for (size_t i = 0; i < COUNT(values); i += 2)
        if (values[i + 1]) {
            out[n++] = values[i];
            out[n++] = values[i + 1];
        }
    for (int i = 0; i < args.count; i++)
        out[n++] = args.items[i];
    return 0;
}

int cmd_bench(const struct command *self, int argc, char **argv)
{
    char own[PATH_MAX], path[PATH_MAX];
    const char *arguments[12 + MAX_NAMED] = {NULL};
    bool help;
    int failed = read_arguments(self, argc, argv, arguments, &help);
    if (failed || help)
        return failed;
    if (!own_path(own))
        return oops("cannot tell where this program is: %s", strerror(errno));
    setenv("TENON_BENCH_COMMAND", own, 1); // which command to time
    if (!find_beside(places, COUNT(places), arguments[0], path))
        return oops("tenon-bench is not installed: it is built when OpenBLAS is there");
    execv(path, (char *const *)arguments);
    return oops("cannot run %s: %s", path, strerror(errno));
}
