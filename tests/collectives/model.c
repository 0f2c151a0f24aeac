// SPDX-License-Identifier: MIT
// One process of a language model, for models.py.
//
//   model run HOW FILE [HOW FILE ...]    prints what rank 0 finds, a line each
//   model loop HOW FILE                  steps without end
//
// HOW is alone, pipeline or tensor, with layers of each rank or with a context:
// "pipeline:3,2", "pipeline@300". Ends with status 3 where a step fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tenon/lm_dist.h>

enum { WORDS = 64, PROMPT = 150, TOKENS = 6, REQUESTS = 5 };

static tn_runtime *runtime;

static int32_t kind_of(const char *how)
{
    return how[0] == 'p' ? TN_LM_PIPELINE : how[0] == 't' ? TN_LM_TENSOR : 0;
}

// Opens this process's part; NULL, with a line, where that fails. Ranks above 0 serve.
static tn_lm *open_part(const char *how, const char *file)
{
    const char *split = strchr(how, ':'), *context = strchr(how, '@');
    tn_lm *lm = NULL;
    tn_lm_rank me = {.struct_size = sizeof(me)};
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = context ? atoi(context + 1) : 256,
                                   .cache = "f32",
                                   .sequences = 3};
    const tn_lm_dist_options divided = {.struct_size = sizeof(divided),
                                        .kind = kind_of(how),
                                        .split = split ? split + 1 : NULL};
    tn_status status = tn_lm_open(runtime, file, &options, &lm);
    if (status == TN_OK && divided.kind)
        status = tn_lm_distribute(lm, &divided, &me);
    if (status == TN_OK && me.rank > 0)
        status = tn_lm_serve(lm);
    if (status == TN_OK && me.rank == 0)
        return lm;
    if (status != TN_OK)
        printf("failed: %s\n", tn_lm_error());
    fflush(stdout);
    if (status == TN_ERR_IO) // somebody is gone
        _exit(3);
    tn_lm_close(lm);
    return NULL;
}

static void must(tn_status status)
{
    if (status == TN_OK)
        return;
    printf("failed: %s\n", tn_lm_error());
    fflush(stdout);
    _exit(3);
}

static void print_row(const char *what, const float *row)
{
    printf("%s", what);
    for (int i = 0; i < WORDS; i++)
        printf(" %.9g", (double)row[i]);
    printf("\n");
}

static int best(const float *row)
{
    int found = 0;
    for (int i = 1; i < WORDS; i++)
        found = row[i] > row[found] ? i : found;
    return found;
}

// A prompt of several chunks, then tokens one by one.
static void print_logits(tn_lm *lm)
{
    tn_lm_sequence *sequence;
    int32_t ids[PROMPT];
    float row[WORDS];
    for (int i = 0; i < PROMPT; i++)
        ids[i] = (7 * i + 3) % WORDS;
    must(tn_lm_sequence_open(lm, &sequence));
    must(tn_lm_infer(sequence, ids, PROMPT, 0, row));
    print_row("logits", row);
    for (int i = 0; i < TOKENS; i++) {
        int32_t id = best(row);
        must(tn_lm_infer(sequence, &id, 1, 0, row));
        print_row("logits", row);
    }
    must(tn_lm_sequence_cut(sequence, 3));
    float all[5][WORDS];
    must(tn_lm_infer(sequence, ids, 5, TN_LM_ALL_ROWS, all[0]));
    print_row("logits", all[4]);
    tn_lm_sequence_close(sequence);
}

struct text {
    int32_t ids[TOKENS];
    int count;
};

static int32_t collect(void *context, const tn_lm_piece *piece)
{
    struct text *text = context;
    if (piece->id >= 0 && text->count < TOKENS)
        text->ids[text->count++] = piece->id;
    return 0;
}

// More requests than share caches, of unlike lengths.
static void print_batch(tn_lm *lm)
{
    struct text texts[REQUESTS] = {{{0}, 0}};
    tn_lm_generation how[REQUESTS];
    tn_lm_request requests[REQUESTS];
    int32_t ids[REQUESTS][REQUESTS];
    memset(requests, 0, sizeof(requests));
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k <= i; k++)
            ids[i][k] = (11 * i + k) % WORDS;
        how[i] = (tn_lm_generation){.struct_size = sizeof(how[i]),
                                    .ids = ids[i],
                                    .num_ids = (uint64_t)i + 1,
                                    .max_tokens = TOKENS - i % 2,
                                    .piece = collect,
                                    .context = &texts[i]};
        requests[i].how = &how[i];
    }
    must(tn_lm_generate_batch(lm, requests, REQUESTS, 3));
    for (int i = 0; i < REQUESTS; i++) {
        printf("tokens");
        for (int k = 0; k < texts[i].count; k++)
            printf(" %d", texts[i].ids[k]);
        printf("\n");
    }
}

static void print_model(const char *how, const char *file)
{
    tn_lm *lm = open_part(how, file);
    if (!lm)
        return;
    tn_lm_rank rank = {.struct_size = sizeof(rank), .size = 1};
    printf("model %s %s", how, file);
    for (int32_t i = 0; i < rank.size; i++) {
        must(tn_lm_rank_of(lm, i, &rank));
        printf(" %d-%d", (int)rank.first, (int)rank.end - 1);
    }
    printf("\n");
    print_logits(lm);
    print_batch(lm);
    tn_lm_close(lm);
}

static void loop(const char *how, const char *file)
{
    tn_lm_sequence *sequence;
    float row[WORDS];
    tn_lm_rank rank = {.struct_size = sizeof(rank)};
    printf("ready %d %s\n", (int)getpid(), strstr(getenv("TENON_RUN"), "rank="));
    fflush(stdout);
    tn_lm *lm = open_part(how, file);
    if (!lm)
        return;
    must(tn_lm_rank_of(lm, 0, &rank));
    must(tn_lm_sequence_open(lm, &sequence));
    for (int32_t id = 0;; id = (id + 1) % WORDS) {
        must(tn_lm_infer(sequence, &id, 1, 0, row));
        must(tn_lm_sequence_cut(sequence, 0));
        if (id == 1) {
            printf("steps\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || tn_runtime_open(NULL, &runtime))
        return 2;
    if (strcmp(argv[1], "loop") == 0)
        loop(argv[2], argv[3]);
    for (int i = 2; i + 1 < argc; i += 2)
        print_model(argv[i], argv[i + 1]);
    fflush(stdout);
    tn_runtime_close(runtime);
    return 0;
}
