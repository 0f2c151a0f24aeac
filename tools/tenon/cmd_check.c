// SPDX-License-Identifier: MIT
// tenon check: finds the conformance kit, a program of its own, and becomes it.
#include "commands.h"
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Where it is installed, and in a build folder.
static const char *const places[] = {"../" TN_LIBEXEC, "../../sdk/conformance"};

int cmd_check(const struct command *self, int argc, char **argv)
{
    bool json = false, list = false;
    const char *seed = NULL, *report = NULL, *only = NULL, *exceptions = NULL,
               *examples = NULL, *devices = NULL, *samples = NULL, *timeout = NULL;
    const struct option options[] = {
        {"json", 0, NULL, "print JSON", NULL, &json},
        {"list", 0, NULL, "list all checks and what each expects", NULL, &list},
        {"seed", 0, "N", "of the random cases (1)", &seed, NULL},
        {"only", 0, "GLOB", "checks to make, by name or by name and subject", &only, NULL},
        {"report", 'o', "FILE", "write the report there", &report, NULL},
        {"exceptions", 0, "FILE", "checks that are known to fail, and why", &exceptions,
         NULL},
        {"examples", 0, "FILE", "inputs for operators that random ones do not fit",
         &examples, NULL},
        {"devices", 0, "GLOB", "devices to compute on, as \"vulkan:*\" (all)", &devices,
         NULL},
        {"samples", 0, "N", "applications of each operator that are tried (24)", &samples,
         NULL},
        {"timeout", 0, "S", "seconds that one check may take (30)", &timeout, NULL},
    };
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 0, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    const struct {
        const char *name, *value;
    } given[] = {{"--seed", seed},         {"--only", only},
                 {"--report", report},     {"--exceptions", exceptions},
                 {"--examples", examples}, {"--devices", devices},
                 {"--samples", samples},   {"--timeout", timeout}};
    const char *kit_args[2 * COUNT(given) + 6] = {"tenon-conformance"};
    size_t n = 1;
    for (size_t i = 0; i < COUNT(given); i++)
        if (given[i].value) {
            kit_args[n++] = given[i].name;
            kit_args[n++] = given[i].value;
        }
    if (json)
        kit_args[n++] = "--json";
    if (list)
        kit_args[n++] = "--list";
    if (args.count) {
        kit_args[n++] = "--"; // its name may begin with a dash
        kit_args[n++] = args.items[0];
    }
    char path[PATH_MAX];
    if (!find_beside(places, COUNT(places), kit_args[0], path))
        return oops("the conformance kit (tenon-conformance) is not installed");
    fflush(NULL);
    execv(path, (char *const *)kit_args);
    return oops("%s: %s", path, strerror(errno));
}
