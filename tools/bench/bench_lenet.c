// SPDX-License-Identifier: MIT
// Training LeNet-5 on Fashion-MNIST, beside PyTorch with the same batch size.
#include "bench.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EPOCH_STEPS 937 // of batches of 64

struct lenet {
    struct bench *bench;
    bool torch;
    char save[64];
};

// Value of "seconds" in the last event "trained"; -1: there is none.
static double seconds_in(char *text)
{
    double seconds = -1;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *event = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(event, "event"));
        if (kind && strcmp(kind, "trained") == 0)
            seconds = json_number_value(json_object_get(event, "seconds"));
        json_decref(event);
    }
    return seconds;
}

static double run_training(struct contestant *self, uint64_t times)
{
    struct lenet *l = self->state;
    char steps[32], threads[16], script[4200], *text = NULL;
    snprintf(steps, sizeof(steps), "%llu", (unsigned long long)times);
    snprintf(threads, sizeof(threads), "%d", l->bench->threads);
    snprintf(script, sizeof(script), "%s/lenet_torch.py", l->bench->folder);
    char *ours[] = {(char *)l->bench->tenon,
                    (char *)"train",
                    (char *)"lenet",
                    (char *)"--steps",
                    steps,
                    (char *)"--save",
                    l->save,
                    (char *)"--json",
                    NULL};
    char *theirs[] = {(char *)l->bench->python, script, steps, threads, NULL};
    double seconds = run_program(l->torch ? theirs : ours, &text) ? seconds_in(text) : -1;
    free(text);
    unlink(l->save);
    return seconds;
}

void bench_lenet(struct bench *bench)
{
    struct lenet states[] = {{.bench = bench}, {.bench = bench, .torch = true}};
    struct contestant list[] = {{"tenon, a step", run_training, &states[0], {0}, 0},
                                {"PyTorch, a step", run_training, &states[1], {0}, 0}};
    size_t count = bench->python ? 2 : 1;
    snprintf(states[0].save, sizeof(states[0].save), "/tmp/tenon-bench-%d.safetensors",
             (int)getpid());
    strcpy(states[1].save, states[0].save);
    title(bench, "LeNet-5, batch 64, %d threads (at most 1.2 times PyTorch)",
          bench->threads);
    contest(list, count, bench->rounds < 3 ? bench->rounds : 3, 300);
    for (size_t i = 0; i < count; i++)
        report(bench, &list[i], "%.1f s an epoch, %.2f times the last line",
               list[i].median * EPOCH_STEPS, list[i].median / list[count - 1].median);
}
