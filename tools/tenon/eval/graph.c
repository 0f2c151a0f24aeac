// SPDX-License-Identifier: MIT
// tenon graph: draws an expression's graph, as built and as planned.
#include "commands.h"
#include "base/file.h"
#include "save.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char details[] =
    "With -o, writes Graphviz's language when FILE ends in .dot, else runs Graphviz (the\n"
    "program dot) to make an SVG. Nodes are coloured by device. @FILE:SIGNATURE is a "
    "saved\n"
    "graph, whose values may be left out here.\n"
    "\n"
    "Without -o, says what is in a file of graphs ('tenon eval --save' makes one): its\n"
    "signatures, the operators and their revisions, and the constants.\n"
    "\n"
    "  tenon graph 'relu(x @ y + 1)' x=x.npy y=y.npy -o g.svg\n"
    "  tenon graph 'x * 2 + 1' x=[1,2] --both -o g.svg      g-built.svg, g-planned.svg\n"
    "  tenon graph step.graph\n"
    "  tenon graph @step.graph -o step.svg\n";

extern char **environ;

// --- Graphviz --------------------------------------------------------------------------

// Runs `dot -Tsvg` from one open file to another, without a shell.
static int run_dot(FILE *input, FILE *output)
{
    char *const argv[] = {(char *)"dot", (char *)"-Tsvg", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions))
        return oops_memory();
    posix_spawn_file_actions_adddup2(&actions, fileno(input), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(output), STDOUT_FILENO);
    int error = posix_spawnp(&child, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT)
        return oops("SVG needs the program dot: install the package graphviz, or write "
                    "-o FILE.dot");
    if (error)
        return oops("cannot run dot: %s", strerror(error));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return oops("cannot run dot; is the package graphviz installed?");
    return WEXITSTATUS(status) ? oops("dot failed with status %d", WEXITSTATUS(status)) : 0;
}

static int write_svg(const char *path, const char *dot)
{
    struct new_file file;
    FILE *input = tmpfile();
    if (!input || fputs(dot, input) < 0 || fflush(input) || fseek(input, 0, SEEK_SET)) {
        if (input)
            fclose(input);
        return oops("cannot write a temporary file: %s", strerror(errno));
    }
    int failed = new_file_open(&file, path);
    if (!failed) {
        failed = run_dot(input, file.stream);
        if (failed)
            new_file_abandon(&file);
        else
            failed = new_file_commit(&file);
    }
    fclose(input);
    return failed;
}

// --- drawing ---------------------------------------------------------------------------

static int eval_graph_draw(struct session *session, bool planned, const char *path)
{
    char *dot = NULL;
    if (tn_graph_dot(session->scope, session->results.items, session->results.count,
                     planned, &dot))
        return oops_scope(session->scope);
    int failed = strcmp(path, "-") == 0 || ends_with(path, ".dot") ? text_write(path, dot)
                                                                   : write_svg(path, dot);
    tn_text_free(dot);
    return failed;
}

// Draws "g.svg" as "g-built.svg" or "g-planned.svg".
static int draw_named(struct session *session, bool planned, const char *path)
{
    char *name = NULL;
    size_t stem = strlen(path) - 4; // both endings have four characters
    if (asprintf(&name, "%.*s%s%s", (int)stem, path, planned ? "-planned" : "-built",
                 path + stem) < 0)
        return oops_memory();
    int failed = eval_graph_draw(session, planned, name);
    if (!failed)
        say("%s\n", name);
    free(name);
    return failed;
}

int cmd_graph(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    const char *output = NULL;
    bool built = false, planned = false, both = false, as_json = false;
    const struct option options[] = {
        {"output", 'o', "FILE", "a name ending in .svg or .dot; - is .dot on the output",
         &output, NULL},
        {"planned", 0, NULL, "as it will run (this is the default)", NULL, &planned},
        {"built", 0, NULL, "as the expression says", NULL, &built},
        {"both", 0, NULL, "both, in two files", NULL, &both},
        {"json", 0, NULL, "say what is in a file as JSON", NULL, &as_json},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (built + planned + both > 1)
        return misuse("--built, --planned and --both exclude each other");
    bool is_file = args.items[0][0] == '@' || access(args.items[0], F_OK) == 0;
    if (as_json && (output || !is_file))
        return misuse("--json is for what is in a file of graphs: tenon graph FILE --json");
    if (!output && is_file && args.count == 1 && !built && !planned && !both)
        return graph_inspect(args.items[0], as_json);
    if (!output)
        return misuse("graph needs -o FILE.svg or -o FILE.dot, or a file of graphs");
    bool named = ends_with(output, ".svg") || ends_with(output, ".dot");
    if (!named && (both || strcmp(output, "-") != 0))
        return misuse("-o %s: expected a name ending in .svg or .dot", output);
    struct session session;
    failed = session_open_drawn(&session, args.items, args.count);
    if (failed)
        return failed;
    if (both)
        failed = draw_named(&session, false, output);
    if (!failed)
        failed = both ? draw_named(&session, true, output)
                      : eval_graph_draw(&session, !built, output);
    session_close(&session);
    return failed;
}
