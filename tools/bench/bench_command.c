// SPDX-License-Identifier: MIT
// Time of a run of the command, from the start of its process to its end.
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// Reads all that comes from `fd`; NULL when out of memory.
static char *bench_command_read_all(int fd)
{
    char *text = NULL, block[4096];
    size_t size = 0;
    ssize_t got;
    FILE *stream = open_memstream(&text, &size);
    while (stream && (got = read(fd, block, sizeof(block))) > 0)
        fwrite(block, 1, (size_t)got, stream);
    if (stream)
        fclose(stream);
    return text;
}

bool run_program(char *const *argv, char **out_text)
{
    posix_spawn_file_actions_t actions;
    int output[2] = {-1, -1}, status = 0;
    pid_t child;
    if (out_text && pipe2(output, O_CLOEXEC))
        return false;
    posix_spawn_file_actions_init(&actions);
    if (out_text)
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (out_text) {
        close(output[1]);
        *out_text = error ? NULL : bench_command_read_all(output[0]);
        close(output[0]);
    }
    while (!error && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return !error && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
           (!out_text || *out_text);
}

static double bench_run_command(struct contestant *self, uint64_t times)
{
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++)
        if (!run_program(self->state, NULL))
            return -1;
    return now_seconds() - begin;
}

void bench_command(struct bench *bench)
{
    char *plugins[] = {(char *)bench->tenon, (char *)"plugins", NULL};
    char *eval[] = {(char *)bench->tenon, (char *)"eval", (char *)"1+1", NULL};
    struct contestant list[] = {
        {"tenon plugins", bench_run_command, plugins, {0}, 0},
        {"tenon eval '1+1'", bench_run_command, eval, {0}, 0},
    };
    title(bench, "the command from start to end");
    contest(list, COUNT(list), bench->rounds, 3);
    report(bench, &list[0], "(at most 10 ms)");
    report(bench, &list[1], "(at most 30 ms)");
}
