// SPDX-License-Identifier: MIT
// tenon bench llm: tokens a second, of a prompt and one by one.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "lm.h"

#define PROMPT 512

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Seconds of `count` tokens at once, or one by one behind what the sequence has.
static int measure(const struct opened *opened, const int32_t *ids, int64_t count,
                   bool at_once, float *logits, double *out_seconds)
{
    double begin = now();
    tn_status status = TN_OK;
    if (at_once)
        status = tn_lm_infer(opened->sequence, ids, count, 0, logits);
    for (int64_t i = 0; !at_once && i < count && status == TN_OK; i++)
        status = tn_lm_infer(opened->sequence, ids + i, 1, 0, logits);
    *out_seconds = now() - begin;
    return status == TN_OK ? 0 : stop_lm();
}

// Rounds of both, the first of which only warms up. Medians, in tokens a second.
static int measure_rounds(const struct opened *opened, int64_t rounds, int64_t steps,
                          const int32_t *ids, float *logits, double out_rates[2])
{
    double *seconds[2] = {calloc((size_t)rounds, sizeof(double)),
                          calloc((size_t)rounds, sizeof(double))};
    int failed = seconds[0] && seconds[1] ? 0 : stop_memory();
    for (int64_t round = -1; round < rounds && !failed; round++) {
        double first, then;
        failed = tn_lm_sequence_cut(opened->sequence, 0) ? stop_lm() : 0;
        if (!failed)
            failed = measure(opened, ids, PROMPT, true, logits, &first);
        if (!failed)
            failed = measure(opened, ids, steps, false, logits, &then);
        if (failed || round < 0)
            continue;
        seconds[0][round] = first;
        seconds[1][round] = then;
    }
    for (int i = 0; i < 2 && !failed; i++) {
        qsort(seconds[i], (size_t)rounds, sizeof(double), compare);
        out_rates[i] = (double)(i ? steps : PROMPT) / seconds[i][rounds / 2];
    }
    free(seconds[0]);
    free(seconds[1]);
    return failed;
}

int run_bench(const struct given *given)
{
    struct given mine = *given;
    struct opened opened;
    double rates[2];
    int64_t rounds = given->rounds ? given->rounds : 5;
    int64_t steps = given->tokens ? given->tokens : 64;
    mine.context = given->context ? given->context : PROMPT + steps;
    if (given->random ? given->num_items != 0 : given->num_items != 1) {
        stop("bench llm: expected a model, or --random DIMENSIONS");
        return 2;
    }
    if (open_model(&mine, &opened))
        return 1;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened.lm, &info);
    int64_t most = PROMPT > steps ? PROMPT : steps;
    int32_t *ids = malloc(sizeof(*ids) * (size_t)most);
    float *logits = malloc(sizeof(*logits) * (size_t)info.vocabulary);
    int failed = ids && logits ? 0 : stop_memory();
    for (int64_t i = 0; !failed && i < most; i++)
        ids[i] = (int32_t)(i * 7919 % info.vocabulary);
    if (!failed)
        failed = measure_rounds(&opened, rounds, steps, ids, logits, rates);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    if (!failed)
        printf(given->json
                   ? "{\"prompt\": %.2f, \"decode\": %.2f, \"gigabytes_per_second\": "
                     "%.3f, \"resident_megabytes\": %.1f}\n"
                   : "prompt of 512: %.1f tokens a second; one by one: %.1f, %.1f GB of "
                     "weights a second; %.0f MB resident\n",
               rates[0], rates[1], 1e-9 * rates[1] * (double)info.weight_bytes,
               1.024e-3 * (double)used.ru_maxrss);
    if (!failed)
        tell_model(&opened);
    free(ids);
    free(logits);
    close_model(&opened);
    return failed;
}
