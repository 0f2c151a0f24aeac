// SPDX-License-Identifier: MIT
// tenon check: executes the conformance kit in place of this process.
#include "commands.h"
#include "program.h"

int cmd_check(const struct command *self, int argc, char **argv)
{
    bool json = false, list = false;
    const char *seed = NULL, *report = NULL, *only = NULL, *exceptions = NULL,
               *examples = NULL, *devices = NULL, *with = NULL, *samples = NULL,
               *timeout = NULL;
    const struct option options[] = {
        {"json", 0, NULL, "print JSON", NULL, &json},
        {"list", 0, NULL, "list all checks and what each expects", NULL, &list},
        {"seed", 0, "N", "seed of the random cases (1)", &seed, NULL},
        {"only", 0, "GLOB", "checks by name, or name and subject; '!GLOB': all others",
         &only, NULL},
        {"report", 'o', "FILE", "write the report there", &report, NULL},
        {"exceptions", 0, "FILE", "checks that are known to fail, and why", &exceptions,
         NULL},
        {"examples", 0, "FILE", "inputs for operators that random ones do not fit",
         &examples, NULL},
        {"devices", 0, "GLOB", "devices to compute on, as \"vulkan:*\" (all)", &devices,
         NULL},
        {"with", 0, "BACKENDS",
         "backends that run what a checked one does not, as cpu-blas", &with, NULL},
        {"samples", 0, "N", "applications of each operator that are tried (24)", &samples,
         NULL},
        {"timeout", 0, "S", "seconds that one check may take (30)", &timeout, NULL},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 0, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    return program_run("tenon-conformance", "../../sdk/conformance",
                       "the conformance kit (tenon-conformance) is not installed", options,
                       COUNT(options), &args);
}
