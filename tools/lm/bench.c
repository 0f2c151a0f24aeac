// SPDX-License-Identifier: MIT
// tenon bench llm: tokens a second, of a prompt and one by one.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "lm.h"

#define PROMPT 512 // default positions of the prompt, and default position of the steps
#define SHORT 64   // default position of the steps of several sequences
#define MOST_SEQUENCES 256
// Seconds of warm-up, at least: a device's clocks rise with work, and plans that run often
// get specialised kernels.
#define WARM_UP 3.0

static int lm_bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Measurement and its model.
struct lm_bench_run {
    struct opened opened;
    tn_lm_sequence *sequences[MOST_SEQUENCES];
    tn_lm_item items[MOST_SEQUENCES];
    int64_t num_sequences, rounds, steps, position, prompt;
    int32_t *ids;
    float *logits; // of all sequences
    double *seconds[2];
};

// Times a prompt of the first sequence, then fills all sequences up to the position of the
// steps. Asks for the last sequence's logits, so that no queued work is timed with the
// steps.
static int lm_bench_fill(struct lm_bench_run *b, double *out_seconds)
{
    tn_status status = TN_OK;
    double begin = now();
    for (int64_t i = 0; i < b->num_sequences && status == TN_OK; i++)
        status = tn_lm_sequence_cut(b->sequences[i], 0);
    if (status == TN_OK)
        status = tn_lm_infer(b->sequences[0], b->ids, b->prompt, 0, b->logits);
    *out_seconds = now() - begin;
    for (int64_t i = 0; i < b->num_sequences && status == TN_OK; i++) {
        int64_t length = tn_lm_sequence_length(b->sequences[i]);
        if (length > b->position)
            status = tn_lm_sequence_cut(b->sequences[i], b->position);
        for (; length < b->position && status == TN_OK; length += b->prompt) {
            int64_t left = b->position - length;
            bool is_last = i == b->num_sequences - 1 && left <= b->prompt;
            status =
                tn_lm_infer(b->sequences[i], b->ids, left < b->prompt ? left : b->prompt, 0,
                            is_last ? b->logits : NULL);
        }
    }
    return status == TN_OK ? 0 : stop_lm();
}

// Steps of one token for each sequence.
static int lm_bench_step(struct lm_bench_run *b, double *out_seconds)
{
    tn_status status = TN_OK;
    double begin = now();
    for (int64_t i = 0; i < b->steps && status == TN_OK; i++) {
        for (int64_t k = 0; k < b->num_sequences; k++)
            b->items[k].ids = b->ids + i % b->prompt;
        status = tn_lm_infer_batch(b->items, (uint64_t)b->num_sequences);
    }
    *out_seconds = now() - begin;
    return status == TN_OK ? 0 : stop_lm();
}

// Runs rounds of prompt and steps, behind some for warming up. Gives medians, in tokens a
// second.
static int measure_rounds(struct lm_bench_run *b, double out_rates[2])
{
    int failed = 0;
    double begin = now(), first, then;
    do
        failed = lm_bench_fill(b, &first) || lm_bench_step(b, &then);
    while (!failed && now() - begin < WARM_UP);
    for (int64_t round = 0; round < b->rounds && !failed; round++) {
        failed = lm_bench_fill(b, &first) || lm_bench_step(b, &then);
        if (failed)
            break;
        b->seconds[0][round] = first;
        b->seconds[1][round] = then;
    }
    const int64_t tokens[] = {b->prompt, b->steps * b->num_sequences};
    for (int i = 0; i < 2 && !failed; i++) {
        qsort(b->seconds[i], (size_t)b->rounds, sizeof(double), lm_bench_compare);
        out_rates[i] = (double)tokens[i] / b->seconds[i][b->rounds / 2];
    }
    return failed;
}

static int bench_open(struct lm_bench_run *b, const tn_lm_info *info)
{
    size_t vocabulary = (size_t)info->vocabulary;
    b->ids = malloc(sizeof(*b->ids) * (size_t)b->prompt);
    b->logits = malloc(sizeof(*b->logits) * vocabulary * (size_t)b->num_sequences);
    for (int i = 0; i < 2; i++)
        b->seconds[i] = calloc((size_t)b->rounds, sizeof(double));
    if (!b->ids || !b->logits || !b->seconds[0] || !b->seconds[1])
        return stop_memory();
    for (int64_t i = 0; i < b->prompt; i++)
        b->ids[i] = (int32_t)(i * 7919 % info->vocabulary);
    b->sequences[0] = b->opened.sequence;
    for (int64_t i = 0; i < b->num_sequences; i++) {
        if (i > 0 && tn_lm_sequence_open(b->opened.lm, &b->sequences[i]))
            return stop_lm();
        b->items[i] = (tn_lm_item){.sequence = b->sequences[i],
                                   .count = 1,
                                   .out_logits = b->logits + (size_t)i * vocabulary};
    }
    return 0;
}

static void bench_close(struct lm_bench_run *b)
{
    for (int64_t i = 1; i < b->num_sequences; i++)
        tn_lm_sequence_close(b->sequences[i]);
    close_model(&b->opened);
    free(b->ids);
    free(b->logits);
    free(b->seconds[0]);
    free(b->seconds[1]);
}

static void print_rates(const struct lm_bench_run *b, const tn_lm_info *info, bool json,
                        const double rates[2])
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double weights =
        1e-9 * rates[1] / (double)b->num_sequences * (double)info->weight_bytes;
    double resident = 1.024e-3 * (double)used.ru_maxrss;
    if (json)
        printf("{\"prompt\": %.2f, \"decode\": %.2f, \"gigabytes_per_second\": %.3f, "
               "\"resident_megabytes\": %.1f, \"sequences\": %" PRId64
               ", \"position\": %" PRId64 ", \"cache\": \"%s\"}\n",
               rates[0], rates[1], weights, resident, b->num_sequences, b->position,
               info->cache);
    else if (b->num_sequences > 1)
        printf("prompt of %" PRId64 ": %.1f tokens a second; %" PRId64
               " sequences from position "
               "%" PRId64 " on, caches of %s: %.1f together, %.1f each; %.0f MB resident\n",
               b->prompt, rates[0], b->num_sequences, b->position, info->cache, rates[1],
               rates[1] / (double)b->num_sequences, resident);
    else
        printf("prompt of %" PRId64
               ": %.1f tokens a second; one by one from position %" PRId64
               " on, caches of %s: %.1f, %.1f GB of weights a second; %.0f MB resident\n",
               b->prompt, rates[0], b->position, info->cache, rates[1], weights, resident);
}

int run_bench(const struct lm_options *given)
{
    struct lm_options mine = *given;
    struct lm_bench_run b = {.num_sequences = given->sequences ? given->sequences : 1,
                             .rounds = given->rounds ? given->rounds : 5,
                             .steps = given->tokens ? given->tokens : 64,
                             .prompt = given->prompt ? given->prompt : PROMPT};
    double rates[2];
    b.position = given->position >= 0  ? given->position
                 : b.num_sequences > 1 ? SHORT
                                       : b.prompt;
    if (b.num_sequences > MOST_SEQUENCES) {
        stop("--sequences is %" PRId64 ", expected at most %d", b.num_sequences,
             MOST_SEQUENCES);
        return 2;
    }
    int64_t most = b.position > b.prompt ? b.position : b.prompt;
    mine.context = given->context ? given->context : most + b.steps;
    if (given->random ? given->num_items != 0 : given->num_items != 1) {
        stop("bench llm: expected a model, or --random DIMENSIONS");
        return 2;
    }
    if (open_model(&mine, &b.opened))
        return 1;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(b.opened.lm, &info);
    int failed = bench_open(&b, &info) || measure_rounds(&b, rates);
    if (!failed) {
        print_rates(&b, &info, given->json, rates);
        tell_model(&b.opened);
    }
    bench_close(&b);
    return failed;
}
