// SPDX-License-Identifier: MIT
// tenon bench: runs the benchmarks, which are a program of their own: it links OpenBLAS to
// compare with, and the command does not.
#include "commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the program lies as seen from the command: beside it, where it is installed, and in
// a build folder.
static const char *const places[] = {
    "tenon-bench",
    "../libexec/tenon/tenon-bench",
    "../bench/tenon-bench",
};

int cmd_bench(const struct command *self, int argc, char **argv)
{
    char own[PATH_MAX], path[PATH_MAX + 64];
    (void)self;
    (void)argc;
    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (length <= 0)
        return oops("cannot tell where this program is: %s", strerror(errno));
    own[length] = '\0';
    setenv("TENON_BENCH_COMMAND", own, 1); // which command to time
    *strrchr(own, '/') = '\0';
    for (size_t i = 0; i < COUNT(places); i++) {
        snprintf(path, sizeof(path), "%s/%s", own, places[i]);
        if (access(path, X_OK) == 0) {
            execv(path, argv);
            return oops("cannot run %s: %s", path, strerror(errno));
        }
    }
    return oops("tenon-bench is not installed: it is built when OpenBLAS is there");
}
