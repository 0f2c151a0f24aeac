// SPDX-License-Identifier: MIT
// A Python process with PyTorch and MLX, peers.py, which says what it answers.
#include "bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void peers_run_child(const struct bench *bench, const char *device, int input,
                            int output)
{
    char script[4200], threads[16];
    snprintf(script, sizeof(script), "%s/peers.py", bench->folder);
    snprintf(threads, sizeof(threads), "%d", bench->threads);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    execlp(bench->python, bench->python, script, threads, device, (char *)NULL);
    _exit(127);
}

void peers_start(struct peers *peers, const struct bench *bench, const char *device)
{
    int ask[2], answer[2];
    *peers = (struct peers){.names = "no peers"};
    if (!bench->python || pipe(ask) || pipe(answer))
        return;
    signal(SIGPIPE, SIG_IGN);
    peers->process = fork();
    if (peers->process == 0) {
        close(ask[1]);
        close(answer[0]);
        peers_run_child(bench, device, ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    peers->to = fdopen(ask[1], "w");
    peers->from = fdopen(answer[0], "r");
    if (!peers->to || !peers->from ||
        !fgets(peers->names, sizeof(peers->names), peers->from)) {
        peers_stop(peers);
        return;
    }
    peers->names[strcspn(peers->names, "\n")] = '\0';
    peers->has_torch = strstr(peers->names, "torch");
    peers->has_mlx = strstr(peers->names, "mlx");
}

void peers_stop(struct peers *peers)
{
    if (peers->to)
        fclose(peers->to);
    if (peers->from)
        fclose(peers->from);
    if (peers->process > 0)
        waitpid(peers->process, NULL, 0);
    *peers = (struct peers){.names = "no peers"};
}

json_t *peers_ask(struct peers *peers, json_t *request, const void *data, uint64_t size)
{
    char *line = NULL;
    size_t room = 0;
    json_t *answer = NULL;
    if (peers->to && request && json_dumpf(request, peers->to, JSON_COMPACT) == 0 &&
        fputc('\n', peers->to) != EOF &&
        fwrite(data ? data : "", 1, size, peers->to) == size && fflush(peers->to) == 0 &&
        getline(&line, &room, peers->from) > 0)
        answer = json_loads(line, 0, NULL);
    free(line);
    json_decref(request);
    return answer;
}

double peers_run(struct peers *peers, const char *work, uint64_t times)
{
    json_t *answer = peers_ask(
        peers, json_pack("{s:s, s:I}", "work", work, "times", (json_int_t)times), NULL, 0);
    json_t *seconds = json_object_get(answer, "seconds");
    double took = seconds ? json_number_value(seconds) : -1;
    json_decref(answer);
    return took;
}
