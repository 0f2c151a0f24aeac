// SPDX-License-Identifier: MIT
// The command `tenon`: arrays, plugins and their reasons from a shell.
#include "base/shortened.h"
#include "cache/commands.h"
#include "complete/commands.h"
#include "devices/commands.h"
#include "doctor/commands.h"
#include "eval/commands.h"
#include "header/commands.h"
#include "kernels/commands.h"
#include "model/commands.h"
#include "new/commands.h"
#include "ops/commands.h"
#include "plugins/commands.h"
#include "programs/commands.h"
#include "run/commands.h"
#include "why/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
    {"plugins", "[--all] [--json]", "list the installed plugins", NULL, cmd_plugins},
    {"plugin", "COMMAND ...", "install, verify, pack, sign one plugin", NULL, cmd_plugin},
    {"trust", "COMMAND ...", "say whose signatures count", NULL, cmd_trust},
    {"cache", "COMMAND ...", "list, prune, warm, ship the compiled kernels on disk", NULL,
     cmd_cache},
    {"kernels", "'EXPR'|@FILE [NAME=VALUE ...] [--launches] [--measure] [--json]",
     "count the kernels that a graph needs",
     "Plans as 'tenon cache warm' does and runs nothing, then says which kernels the\n"
     "launches share: how many there would be with all constants and extents in the code,\n"
     "how many of these differ, and how many the device compiles. For backends that tell\n"
     "their launches: vulkan and vulkan-jit. --measure runs the graph once, and says what\n"
     "it costs that they share: the time of each kernel's launches, and that of launches "
     "of\n"
     "code with the constants and extents in it. Values of a saved graph that are not "
     "given\n"
     "are zeros.\n"
     "\n"
     "  TENON_BACKEND=vulkan tenon kernels 'softmax(x @ w)' x=x.npy w=w.npy\n"
     "  TENON_BACKEND=vulkan tenon kernels @step.graph --launches\n",
     cmd_kernels},
    {"devices", "[--probe] [--timeout S] [--json]",
     "list the devices of every installed backend", NULL, cmd_devices},
    {"ops", "[PATTERN] [--calls] [--json]", "list the operators of the installed plugins",
     NULL, cmd_ops},
    {"op", "NAME [--json]", "describe one operator: inputs, attributes, kernels, rules",
     NULL, cmd_op},
    {"eval", "'EXPR'|@FILE [NAME=VALUE ...]", "evaluate an expression over arrays", NULL,
     cmd_eval},
    {"why", "'EXPR' [NAME=VALUE ...] | plugin ID | op NAME | backend NAME | last FILE",
     "say why something runs where it runs", NULL, cmd_why},
    {"doctor", "[--json] [--timeout S]",
     "say what is installed, what is wrong and what to do", NULL, cmd_doctor},
    {"check", "PLUGIN.so|DIR|ID [--json] [--seed N] [--only GLOB] ...",
     "check a plugin in processes of its own",
     "Looks at the file, starts the plugin under hosts of many kinds, and compares its\n"
     "operators and devices with their definitions. What crashes or hangs is a finding.\n"
     "The status is 0 when all passed, 1 when a check failed, 2 for wrong usage.\n"
     "\n"
     "  tenon check build/com.acme.axpby.so\n"
     "  tenon check com.acme.axpby --only 'kernel.*'\n"
     "  tenon check --list\n",
     cmd_check},
    {"graph", "'EXPR' [NAME=VALUE ...] -o FILE | FILE",
     "draw an expression's graph, or say what is in a file of graphs", NULL, cmd_graph},
    {"model", "COMMAND ...", "say what is in a model's file", NULL, cmd_model},
    {"bench", "[NAME ...] [--rounds N] [--threads N] [--python PYTHON]",
     "measure Tenon beside its peers", NULL, cmd_bench},
    {"train", "COMMAND ...", "train a network, or adapt a language model", NULL, cmd_train},
    {"generate", "MODEL PROMPT ... [--tokens N] [--temperature T]",
     "continue a text with a language model", NULL, cmd_lm},
    {"chat", "MODEL [--system TEXT] [--temperature T]", "talk with a language model", NULL,
     cmd_lm},
    {"embed", "MODEL TEXT ... [--pooling mean|last|cls]",
     "write texts as vectors, by a language model", NULL, cmd_lm},
    {"perplexity", "MODEL FILE [--tokens N] [--context N]",
     "measure how well a language model predicts a text", NULL, cmd_lm},
    {"run", "-n N [--hosts LIST] [--devices LIST] COMMAND ...",
     "start a command as several processes, and watch them", NULL, cmd_run},
    {"new", "op-pack|kernels|backend|format NAME", "begin a plugin of your own", NULL,
     cmd_new},
    {"ffi", "make|check MANIFEST", "make op packs from manifests of C functions", NULL,
     cmd_ffi},
    {"header", "ID|FILE.so [-o FILE]", "write the C header of a plugin's operators", NULL,
     cmd_header},
    {"commands", "[--json]", "list all commands; --json with their options", NULL,
     cmd_commands},
    {"completion", "bash|zsh|fish|plugins|ops|backends",
     "write a script that completes commands in a shell", NULL, cmd_completion},
};

static const char about[] =
    "Tenon: arrays and networks on backends that are plugins.\n"
    "\n"
    "  tenon eval 'sum(x * x, axis=1)' x=[[1,2],[3,4]]    compute something\n"
    "  tenon plugins                                      what is installed\n"
    "  tenon train lenet                                  train on real images\n"
    "\n"
    "TENON_BACKEND chooses backends (\"vulkan,cpu-blas\"), TENON_PLUGIN_PATH adds plugins.";

static int tenon_run(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("tenon %s\n", TN_VERSION);
        return 0;
    }
    static const struct command_group group = {"tenon", about, commands, COUNT(commands)};
    return commands_run(&group, argc, argv);
}

// Opens /dev/null for each standard stream that the caller closed, in a mode in which using
// the stream still fails. Otherwise the next opened file would get the stream's number, and
// printed text would go there.
static void reserve_standard_streams(void)
{
    static const int unusable[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", unusable[fd]); // the lowest free number: fd
}

int main(int argc, char **argv)
{
    reserve_standard_streams();
    // Exceeding a limit on file sizes becomes an error that is reported.
    signal(SIGXFSZ, SIG_IGN);
    tell_shortened_files();
    int status = tenon_run(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        status = status ? status : oops_output();
    if (status && oops_text()[0])
        complain(oops_text());
    return status;
}
