// SPDX-License-Identifier: MIT
// A Python process with PyTorch and MLX: reads lines "WORK TIMES", and answers each with
// seconds.
#include "bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(const struct bench *bench, int input, int output)
{
    char script[4200], threads[16];
    snprintf(script, sizeof(script), "%s/peers.py", bench->folder);
    snprintf(threads, sizeof(threads), "%d", bench->threads);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    execlp(bench->python, bench->python, script, threads, (char *)NULL);
    _exit(127);
}

void peers_start(struct peers *peers, const struct bench *bench)
{
    int ask[2], answer[2];
    char line[256] = "";
    *peers = (struct peers){0};
    if (!bench->python || pipe(ask) || pipe(answer))
        return;
    signal(SIGPIPE, SIG_IGN);
    peers->process = fork();
    if (peers->process == 0) {
        close(ask[1]);
        close(answer[0]);
        run_child(bench, ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    peers->to = fdopen(ask[1], "w");
    peers->from = fdopen(answer[0], "r");
    if (!peers->to || !peers->from || !fgets(line, sizeof(line), peers->from)) {
        peers_stop(peers);
        return;
    }
    peers->has_torch = strstr(line, "torch");
    peers->has_mlx = strstr(line, "mlx");
    fprintf(bench->out, "  beside %s", line);
}

void peers_stop(struct peers *peers)
{
    if (peers->to)
        fclose(peers->to);
    if (peers->from)
        fclose(peers->from);
    if (peers->process > 0)
        waitpid(peers->process, NULL, 0);
    *peers = (struct peers){0};
}

double peers_run(struct peers *peers, const char *work, uint64_t times)
{
    char line[256];
    if (!peers->to ||
        fprintf(peers->to, "%s %llu\n", work, (unsigned long long)times) < 0 ||
        fflush(peers->to) || !fgets(line, sizeof(line), peers->from))
        return -1;
    return strtod(line, NULL);
}
