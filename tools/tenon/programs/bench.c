// SPDX-License-Identifier: MIT
// tenon bench: runs the benchmarks, a program of its own.
#include "../../lm/given.h"
#include "commands.h"
#include "files/paths.h"
#include "lm.h"
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMED 16 // benchmarks on one command line

enum { OWN = 3 }; // the first options, which are not of llm alone

static const char details[] =
    "Contestants take turns, medians are compared. PYTHON (or TENON_BENCH_PYTHON) is a\n"
    "Python that has torch or mlx; without it, Tenon is measured alone. NAME is matmul,\n"
    "axpby, replay, first, command, ops (single operators, in a table) or lenet; without\n"
    "one, these are made; or cpu or gpu, a table of what people run, beside PyTorch, with\n"
    "--threads 1, 16 or all, --only PART-OF-NAME, --json, --markdown and --quick.\n"
    "@FILE as NAME: the graphs of a file that 'tenon eval --save' wrote.\n"
    "llm MODEL: tokens a second of a language model, for a prompt of 512 and one by one;\n"
    "'llm --random layers=22,width=2048,heads=32,kv_heads=4,inner=5632,format=q4_0' of "
    "one\n"
    "with random weights.\n";

static const char missing[] = "tenon-bench is not installed beside the command";

int cmd_bench(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    struct lm_parsed line;
    char own[PATH_MAX];
    // Tables of cases have options of their own.
    if (argc > 1 && (strcmp(argv[1], "cpu") == 0 || strcmp(argv[1], "gpu") == 0))
        return program_run("tenon-bench", "../bench", missing, NULL, 0,
                           &(struct args){.items = argv + 1, .count = argc - 1});
    int failed = lm_parse(&mine, FOR_BENCH, 0, MAX_NAMED, argc, argv, &line);
    if (failed || line.args.help_shown)
        return failed;
    if (line.args.count > 0 && strcmp(line.args.items[0], "llm") == 0) {
        if (lm_is_given(&line, "threads"))
            setenv("TENON_THREADS", lm_text(&line, "threads"), 1);
        line.args.items++;
        line.args.count--;
        return lm_run("bench", &line);
    }
    for (size_t i = OWN; i < line.count; i++)
        if (lm_is_given(&line, line.options[i].name))
            return misuse(
                "--random, --tokens, --context, --sequences, --prompt, --position, "
                "--cache, --parallel, --split and --json are for 'bench llm'");
    if (!own_path(own))
        return oops("cannot tell where this program is: %s", strerror(errno));
    setenv("TENON_BENCH_COMMAND", own, 1); // the command that is timed
    return program_run("tenon-bench", "../bench", missing, line.options, OWN, &line.args);
}
