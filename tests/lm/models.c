// SPDX-License-Identifier: MIT
// Small random models against the logits that Hugging Face's transformers give, in steps of
// all sizes; shards; generating; wrong models and calls.
#include <tenon/launches.h>
#include "fixture.h"

TestSuite(models, .init = setup, .fini = teardown);

// A model with what it should give.
struct known {
    struct fixture f;
    tn_lm *lm;
};

static void known_open(struct known *k, const char *name)
{
    k->lm = model_open(&k->f, name);
}

static void known_close(struct known *k)
{
    tn_lm_close(k->lm);
    cr_assert(eq(int, k->f.closed, 1));
}

static float *logits_of(int64_t positions)
{
    return malloc(sizeof(float) * WORDS * (size_t)positions);
}

// Compares the logits of the positions first .. first + count - 1, of which the file has
// some. Returns how many.
static int compare(const struct known *k, const char *what, const float *logits,
                   int64_t first, int64_t count)
{
    int compared = 0;
    for (int r = 0; r < k->f.num_rows; r++) {
        int64_t row = k->f.rows[r] - first;
        if (row < 0 || row >= count)
            continue;
        compared++;
        for (int64_t i = 0; i < WORDS; i++) {
            double got = (double)logits[row * WORDS + i];
            double expected = (double)k->f.logits[r][i];
            if (!(fabs(got - expected) <= 1e-4))
                cr_fatal("%s: logit %d of position %d is %.7g, expected %.7g", what, (int)i,
                         k->f.rows[r], got, expected);
        }
    }
    return compared;
}

// Appends chunks of these lengths, the last one again and again.
static void in_chunks(const struct known *k, const char *name, const int64_t *lengths)
{
    char what[96];
    snprintf(what, sizeof(what), "%s in chunks of %d", name, (int)lengths[0]);
    tn_lm_sequence *sequence = sequence_open(k->lm);
    float *logits = logits_of(POSITIONS);
    int compared = 0;
    for (int64_t done = 0, at = 0; done < POSITIONS;) {
        int64_t count = lengths[at] < POSITIONS - done ? lengths[at] : POSITIONS - done;
        lm_must(tn_lm_infer(sequence, k->f.ids + done, count, 0, logits));
        done += count;
        compared += compare(k, what, logits, done - 1, 1);
        at += lengths[at + 1] != 0;
    }
    cr_assert(eq(int, compared > 0, 1));
    free(logits);
    tn_lm_sequence_close(sequence);
}

static void whole(const struct known *k, const char *name)
{
    tn_lm_sequence *sequence = sequence_open(k->lm);
    float *logits = logits_of(POSITIONS);
    lm_must(tn_lm_infer(sequence, k->f.ids, POSITIONS, TN_LM_ALL_ROWS, logits));
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), POSITIONS));
    cr_assert(eq(int, compare(k, name, logits, 0, POSITIONS), k->f.num_rows));
    free(logits);
    tn_lm_sequence_close(sequence);
}

static const char *const names[] = {
    "llama",   "llama_tied", "llama_linear", "llama3",  "llama_yarn", "llama_yarn_factor",
    "mistral", "qwen2",      "qwen3",        "gemma",   "gemma2",     "gemma3",
    "phi3",    "phi3_short", "phi3_long",    "mixtral", "qwen2moe",   "qwen3moe"};

// Prompts of every length around the borders of chunks, 8, 64 and 512, and step by step.
Test(models, logits_are_those_of_transformers)
{
    static const int64_t chunks[][6] = {
        {1, 1, 6, 1, 0},      // 1, 2, 8, 9, 10, ...: without chunks after the third
        {6, 1, 1, 1, 7, 0},   // 6, 7, 8, 9, 16, 23
        {8, 8, 1, 47, 64, 0}, // 8, 16, 17, 64, 128, 192
        {63, 1, 1, 63, 0},    // 63, 64, 65, 128, 191
        {66, 62, 1, 0},       // 66, 128, 129, 130
        {511, 1, 1, 1, 0},    // 511, 512, 513, 514
        {513, 86, 1, 0},      // 513, 599, 600
        {600, 0},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct known k;
        known_open(&k, names[i]);
        whole(&k, names[i]);
        for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
            if (i == 0 || c % 4 == i % 4) // each model two, the first one all
                in_chunks(&k, names[i], chunks[c]);
        known_close(&k);
    }
}

// --- pairs of the rotary embedding -----------------------------------------------------

// Files of llama have pairs where those of Qwen have halves: the weights of Qwen in that
// order, biases and norms of heads too, are a llama with the same logits.
Test(models, pairs_are_turned_as_halves)
{
    static const char *const families[] = {"qwen2", "qwen3"};
    for (size_t i = 0; i < 2; i++) {
        struct known k;
        char keys[MOST_PAIRS][96], value[96];
        fixture_open(&k.f, families[i]);
        uint64_t count = k.f.list.count;
        memcpy(keys, k.f.keys, sizeof(keys));
        for (uint64_t p = 0; p < count; p++) {
            if (strncmp(keys[p], families[i], 5) != 0)
                continue;
            memcpy(value, k.f.values[p], sizeof(value));
            memcpy(k.f.keys[p], "llama", 5);
            memcpy(keys[p], k.f.keys[p], sizeof(keys[p]));
            fixture_set(&k.f, keys[p], value);
        }
        fixture_set(&k.f, "general.architecture", "llama");
        k.f.paired = 8;
        const tn_lm_options exact = {.struct_size = sizeof(exact), .cache = "f32"};
        lm_must(tn_lm_open_source(runtime, &k.f.source, &exact, &k.lm));
        whole(&k, families[i]);
        known_close(&k);
    }
}

// Quantised experts: the same logits step by step, where a row multiplies the matrices that
// it chose, as at once, where rows are sorted by what they chose; near to those of floats.
Test(models, experts_are_multiplied_where_they_stand_in_blocks)
{
    static const struct {
        const char *format;
        double steps, floats;                              // limits
    } rows[] = {{"q8_0", 0.05, 0.1}, {"q5_1", 1e-4, 0.3}}; // x of q8_0 is rounded, too
    enum { STEPS = 40 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct known k;
        double apart = 0;
        fixture_open(&k.f, "qwen2moe");
        k.f.format = rows[i].format;
        lm_must(tn_lm_open_source(runtime, &k.f.source, NULL, &k.lm));
        float *logits = logits_of(STEPS), row[WORDS];
        tn_lm_sequence *sequence = sequence_open(k.lm), *other = sequence_open(k.lm);
        lm_must(tn_lm_infer(sequence, k.f.ids, STEPS, TN_LM_ALL_ROWS, logits));
        for (int p = 0; p < STEPS; p++) {
            lm_must(tn_lm_infer(other, k.f.ids + p, 1, 0, row));
            for (int w = 0; w < WORDS; w++)
                apart = fmax(apart, fabs((double)row[w] - (double)logits[p * WORDS + w]));
        }
        cr_assert(le(dbl, apart, rows[i].steps), "%s", rows[i].format);
        for (int w = 0; w < WORDS; w++) // of position 0
            apart = fmax(apart, fabs((double)(logits[w] - k.f.logits[0][w])));
        cr_assert(gt(dbl, apart, 1e-3), "%s: nothing was quantised", rows[i].format);
        cr_assert(le(dbl, apart, rows[i].floats), "%s", rows[i].format);
        free(logits);
        tn_lm_sequence_close(sequence);
        tn_lm_sequence_close(other);
        known_close(&k);
    }
}

// The gate of the expert that all positions use: a vector, or a matrix of one row, as files
// of GGUF have it today.
Test(models, a_shared_gate_may_be_a_matrix_of_one_row)
{
    struct known k;
    fixture_open(&k.f, "qwen2moe");
    int changed = 0;
    for (int i = 0; i < k.f.num_weights; i++) {
        tn_type *type = &k.f.weights[i].type;
        if (!strstr(k.f.weights[i].name, "ffn_gate_inp_shexp"))
            continue;
        cr_assert(eq(int, type->rank, 1));
        *type = (tn_type){.dtype = type->dtype, .rank = 2, .extent = {1, type->extent[0]}};
        changed++;
    }
    cr_assert(eq(int, changed, 2));
    const tn_lm_options exact = {.struct_size = sizeof(exact), .cache = "f32"};
    lm_must(tn_lm_open_source(runtime, &k.f.source, &exact, &k.lm));
    whole(&k, "qwen2moe");
    known_close(&k);
}

enum { SHORT = 12 };

// Logits of a llama of width 32, of whose heads `rotary` elements are turned; see
// `paired` and `format` of struct fixture.
static void logits_of_order(const char *rotary, int64_t paired, const char *format,
                            const char *order, float *out)
{
    struct known k;
    fixture_open_wide(&k.f);
    fixture_set(&k.f, "llama.rope.dimension_count", rotary);
    fixture_set(&k.f, "tenon.rope", order);
    k.f.paired = paired;
    k.f.format = format;
    lm_must(tn_lm_open_source(runtime, &k.f.source, NULL, &k.lm));
    tn_lm_sequence *sequence = sequence_open(k.lm);
    lm_must(tn_lm_infer(sequence, k.f.ids, SHORT, TN_LM_ALL_ROWS, out));
    tn_lm_sequence_close(sequence);
    known_close(&k);
}

// The same model in both orders gives the same bits: of whole heads and of their beginning,
// with elements and with blocks.
Test(models, pairs_and_halves_give_the_same_bits)
{
    static const struct {
        const char *rotary;
        int64_t paired;
        const char *format;
    } rows[] = {{"8", 8, NULL}, {"4", 4, NULL}, {"8", 8, "q8_0"}, {"4", 4, "q4_0"}};
    float halves[SHORT * WORDS], pairs[SHORT * WORDS], wrong[SHORT * WORDS];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        logits_of_order(rows[i].rotary, 0, rows[i].format, "halves", halves);
        logits_of_order(rows[i].rotary, rows[i].paired, rows[i].format, NULL, pairs);
        if (memcmp(halves, pairs, sizeof(pairs)) != 0)
            cr_fatal("row %zu: logits of pairs differ", i);
        logits_of_order(rows[i].rotary, 0, rows[i].format, NULL, wrong);
        cr_assert(eq(int, memcmp(halves, wrong, sizeof(wrong)) != 0, 1)); // order counts
    }
}

// --- steps and launches ----------------------------------------------------------------

enum { DECODED = 3, MOST_SEQUENCES = 32, DECODED_WORDS = DECODED * MOST_SEQUENCES * WORDS };

static void count_launch(void *context, const tn_planned_launch *launch)
{
    (void)launch;
    ++*(uint64_t *)context;
}

// What is decoded by what. `is_decoded`: by weights that are the blocks' values.
struct decoding {
    const char *layers, *format, *cache;
    int64_t context, sequences;
    bool is_decoded;
    const tn_launches *launches; // NULL: on the CPU
    const tn_host *host;
};

// One token of each sequence.
static void decode_step(const struct fixture *f, const struct decoding *d, int step,
                        tn_lm_sequence *const *sequences, float *logits)
{
    tn_lm_item items[MOST_SEQUENCES];
    for (int64_t i = 0; i < d->sequences; i++, logits += WORDS)
        items[i] = (tn_lm_item){.sequence = sequences[i],
                                .ids = f->ids + step + 5 * i,
                                .count = 1,
                                .out_logits = logits};
    lm_must(tn_lm_infer_batch(items, (uint64_t)d->sequences));
}

// Decodes some tokens one by one, and gives their logits. Returns the launches that a step
// takes: on a GPU those that are planned for it.
static uint64_t decode(const struct decoding *d, float *logits)
{
    struct fixture f;
    tn_lm *lm = NULL;
    tn_lm_sequence *sequences[MOST_SEQUENCES];
    uint64_t planned = 0, before = 0;
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = d->context,
                                   .cache = d->cache,
                                   .sequences = d->sequences};
    fixture_open_wide(&f);
    fixture_set(&f, "llama.block_count", d->layers);
    if (strcmp(d->cache, "q8_0") == 0) {
        fixture_set(&f, "llama.attention.head_count", "1");
        fixture_set(&f, "llama.attention.head_count_kv", "1");
        fixture_set(&f, "llama.attention.key_length", "32");
        fixture_set(&f, "llama.attention.value_length", "32");
        fixture_set(&f, "llama.rope.dimension_count", "32");
        for (int i = 0; i < f.num_weights; i++)
            if (strstr(f.weights[i].name, "attn_k.") ||
                strstr(f.weights[i].name, "attn_v."))
                f.weights[i].type.extent[0] = 32;
    }
    f.format = d->format;
    f.is_decoded = d->is_decoded;
    lm_must(tn_lm_open_source(runtime, &f.source, &options, &lm));
    for (int64_t i = 0; i < d->sequences; i++)
        sequences[i] = sequence_open(lm);
    if (d->launches)
        cr_assert(eq(int, d->launches->watch(d->host, count_launch, &planned), TN_OK));
    for (int i = 0; i < DECODED; i++) {
        before = stats_of(runtime).steps;
        decode_step(&f, d, i, sequences, logits + i * d->sequences * WORDS);
    }
    if (d->launches)
        cr_assert(eq(int, d->launches->watch(d->host, NULL, NULL), TN_OK));
    for (int64_t i = 0; i < d->sequences; i++)
        tn_lm_sequence_close(sequences[i]);
    tn_lm_close(lm);
    return d->launches ? planned : stats_of(runtime).steps - before;
}

// Launches of each layer more, and the logits with two.
static uint64_t launches_of_a_layer(const char *backend, struct decoding d, float *logits)
{
    char first[64], plugin[64];
    snprintf(first, sizeof(first), "TENON_BACKEND=%s%s", backend ? backend : "cpu-blas",
             backend ? ",cpu-blas" : "");
    snprintf(plugin, sizeof(plugin), "org.tenon.%s", backend ? backend : "");
    const char *variables[] = {first, "TENON_FALLBACK=allow", NULL};
    runtime = open_with(variables);
    if (backend && tn_provider_load(runtime, TN_IFACE_LAUNCHES, plugin,
                                    (const void **)&d.launches, &d.host))
        cr_fatal("%s", tn_last_error());
    d.layers = "1";
    uint64_t one = decode(&d, logits);
    d.layers = "2";
    uint64_t two = decode(&d, logits);
    tn_runtime_close(runtime);
    return two - one;
}

// On the backend TEST_LM_BACKEND, or the CPU: queries, keys and values are one product, and
// so are gate and up; casts to caches of f16 are launches of others. On a GPU the results
// are those of the blocks' values on the CPU.
Test(launches, of_a_layer_are_few)
{
    static const struct {
        const char *cache;
        int64_t context, sequences; // context 512: parts of the keys on GPUs
        uint64_t most, most_gpu;    // of a layer
        double error;
        const char *gpu_format; // q4_0: norms are part of products, which round
    } rows[] = {
        {"f32", 512, 1, 11, 7, 1e-3, "q5_0"},  {"f16", 512, 1, 12, 7, 1e-3, "q5_0"},
        {"f16", 40, 5, 13, 8, 1e-3, "q5_0"},   {"f16", 512, 32, 13, 9, 1e-3, "q5_0"},
        {"q8_0", 512, 4, 12, 8, 3e-2, "q5_0"}, {"f16", 512, 1, 12, 5, 1e-1, "q4_0"},
    };
    static float plain[DECODED_WORDS], logits[DECODED_WORDS];
    const char *backend = getenv("TEST_LM_BACKEND");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decoding d = {.layers = "2",
                             .format = rows[i].gpu_format,
                             .cache = rows[i].cache,
                             .context = rows[i].context,
                             .sequences = rows[i].sequences,
                             .is_decoded = true};
        runtime = open_on("cpu-blas");
        decode(&d, plain);
        tn_runtime_close(runtime);
        d.is_decoded = false;
        d.format = backend ? rows[i].gpu_format : "q4_0";
        uint64_t count = launches_of_a_layer(backend, d, logits);
        cr_expect(le(u64, count, backend ? rows[i].most_gpu : rows[i].most),
                  "caches of %s, %d sequences", rows[i].cache, (int)rows[i].sequences);
        for (int k = 0; backend && k < DECODED * rows[i].sequences * WORDS; k++)
            cr_assert(le(dbl, fabs((double)logits[k] - (double)plain[k]), rows[i].error),
                      "caches of %s, %d sequences: logit %d is %g, on the CPU %g",
                      rows[i].cache, (int)rows[i].sequences, k, (double)logits[k],
                      (double)plain[k]);
    }
}

// --- shards, cuts ----------------------------------------------------------------------

// Hidden states go from one shard to the next.
Test(models, shards_give_what_the_whole_gives)
{
    enum { COUNT_IDS = 75, WIDTH = 16 };
    struct known k;
    float hidden[COUNT_IDS * WIDTH], *logits;
    known_open(&k, "llama_tied");
    logits = logits_of(COUNT_IDS);
    lm_must(tn_lm_ensure_shard(k.lm, 0, 0));
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(k.lm, &info);
    uint64_t first_bytes = info.weight_bytes;
    cr_assert(eq(i64, info.first, 0));
    cr_assert(eq(i64, info.end, 1));
    tn_lm_sequence *sequence = sequence_open(k.lm);
    cr_assert(eq(int, tn_lm_ensure_shard(k.lm, 1, 1), TN_ERR_ARGUMENT));
    check_message("the layers of a model that has 1 sequence cannot change");
    cr_assert(eq(int, tn_lm_infer(sequence, k.f.ids, 1, 0, logits), TN_ERR_ARGUMENT));
    check_message("layers 0 to 0 of 2 are loaded, expected all: "
                  "tn_lm_infer_tensor runs a shard");
    lm_must(tn_lm_infer_tensor(sequence, k.f.ids, 70, 0, hidden));
    lm_must(tn_lm_infer_tensor(sequence, k.f.ids + 70, 5, 0, hidden + 70 * WIDTH));
    tn_lm_sequence_close(sequence);
    lm_must(tn_lm_ensure_shard(k.lm, 1, 1));
    sequence = sequence_open(k.lm);
    lm_must(tn_lm_infer_tensor(sequence, hidden, COUNT_IDS, TN_LM_ALL_ROWS, logits));
    compare(&k, "shards", logits, 0, COUNT_IDS);
    tn_lm_sequence_close(sequence);
    lm_must(tn_lm_ensure_shard(k.lm, 0, 1));
    tn_lm_describe(k.lm, &info);
    cr_assert(gt(u64, info.weight_bytes, first_bytes));
    free(logits);
    whole(&k, "the whole behind shards");
    known_close(&k);
}

// A sequence that is cut goes on as one that never had more.
Test(models, sequences_are_cut)
{
    struct known k;
    known_open(&k, "qwen3");
    float *logits = logits_of(64);
    tn_lm_sequence *sequence = sequence_open(k.lm), *other = sequence_open(k.lm);
    lm_must(tn_lm_infer(sequence, k.f.ids + 100, 200, 0, NULL));
    cr_assert(eq(int, tn_lm_sequence_cut(sequence, 201), TN_ERR_ARGUMENT));
    check_message("cut to 201 positions, of a sequence that has 200");
    lm_must(tn_lm_sequence_cut(sequence, 0));
    lm_must(tn_lm_infer(sequence, k.f.ids, 32, 0, NULL));
    lm_must(tn_lm_infer(other, k.f.ids + 7, 40, 0, NULL)); // beside it
    lm_must(tn_lm_infer(sequence, k.f.ids + 32, 34, TN_LM_ALL_ROWS, logits));
    cr_assert(eq(int, compare(&k, "cut", logits, 32, 34), 4));
    free(logits);
    tn_lm_sequence_close(other);
    tn_lm_sequence_close(sequence);
    known_close(&k);
}

// --- wrong models and calls ------------------------------------------------------------

Test(models, wrong_models_are_refused_with_what_is_wrong)
{
    static const struct {
        const char *key, *value, *missing, *misshapen;
        tn_status status;
        const char *message; // its beginning
        const char *model;   // NULL: llama
    } rows[] = {
        {NULL, NULL, "blk.1.ffn_up.weight", NULL, TN_ERR_REFUSED,
         "llama: the weight blk.1.ffn_up.weight is missing"},
        {NULL, NULL, NULL, "blk.0.attn_k.weight", TN_ERR_REFUSED,
         "llama: the weight blk.0.attn_k.weight has shape [17, 16], expected [16, 16]"},
        {NULL, NULL, "token_embd.weight", NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: token_embd.weight is missing, or no matrix"},
        {"general.architecture", "perceptron", NULL, NULL, TN_ERR_NOT_FOUND,
         "llama: the architecture 'perceptron': "},
        {"general.architecture", NULL, NULL, NULL, TN_ERR_REFUSED,
         "llama: general.architecture is missing: no model"},
        {"llama.block_count", NULL, NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: llama.block_count is missing"},
        {"llama.block_count", "0", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: llama.block_count is 0, expected 1 to 4096"},
        {"llama.block_count", "two", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: llama.block_count is no integer, expected 1 to "
         "4096"},
        {"llama.attention.head_count_kv", "3", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: 4 heads of 8 share 3 of keys with values of 8, "
         "expected a multiple"},
        {"llama.attention.layer_norm_rms_epsilon", "-1", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: llama.attention.layer_norm_rms_epsilon is out of "
         "range, expected a "
         "positive number"},
        {"llama.rope.dimension_count", "7", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: llama: 7 elements of a head are turned with base 10000, "
         "expected an even number"},
        {"llama.rope.scaling.type", "spiral", NULL, NULL, TN_ERR_UNSUPPORTED,
         "plugin org.tenon.llama: llama: llama.rope.scaling.type is not known with these "
         "numbers, expected none"},
        {"llama.attention.causal", "false", NULL, NULL, TN_ERR_UNSUPPORTED,
         "plugin org.tenon.llama: llama: llama.attention.causal is false, expected true"},
        {"llama.hidden_activation", "mish", NULL, NULL, TN_ERR_UNSUPPORTED,
         "plugin org.tenon.llama: llama: llama.hidden_activation is 'mish', expected silu, "
         "relu"},
        {NULL, NULL, "blk.2.post_ffw_norm.weight", NULL, TN_ERR_REFUSED,
         "gemma2: the weight blk.2.post_ffw_norm.weight is missing", "gemma2"},
        {"gemma2.attn_logit_softcapping", "-1", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.gemma: gemma2: gemma2.attn_logit_softcapping is out of range",
         "gemma2"},
        {NULL, NULL, "blk.1.ffn_gate_inp.weight", NULL, TN_ERR_REFUSED,
         "mixtral: the weight blk.1.ffn_gate.weight is missing", "mixtral"},
        {NULL, NULL, NULL, "blk.1.ffn_up_exps.weight", TN_ERR_REFUSED,
         "mixtral: the weight blk.1.ffn_up_exps.weight has shape [5, 32, 16], expected [4, "
         "32, 16]",
         "mixtral"},
        {"llama.expert_used_count", "5", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.llama: mixtral: llama.expert_used_count is 5, expected 1 to 4",
         "mixtral"},
        {"llama.expert_gating_func", "2", NULL, NULL, TN_ERR_UNSUPPORTED,
         "plugin org.tenon.llama: mixtral: llama.expert_gating_func is 2, expected 1",
         "mixtral"},
        {"gemma3.attention.sliding_window_pattern", "0", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.gemma: gemma3: gemma3.attention.sliding_window_pattern is 0",
         "gemma3"},
        {"gemma3.attention.sliding_window", "-1", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.gemma: gemma3: gemma3.attention.sliding_window is -1", "gemma3"},
        {NULL, NULL, "rope_factors_short.weight", NULL, TN_ERR_REFUSED,
         "phi3_long: the weight rope_factors_short.weight is missing", "phi3_long"},
        {NULL, NULL, NULL, "blk.0.attn_qkv.weight", TN_ERR_REFUSED,
         "phi3_long: the weight blk.0.attn_qkv.weight has shape [65, 32], expected [64, "
         "32]",
         "phi3_long"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        tn_lm *lm = NULL;
        fixture_open(&f, rows[i].model ? rows[i].model : "llama");
        f.missing = rows[i].missing;
        f.misshapen = rows[i].misshapen;
        if (rows[i].key)
            fixture_set(&f, rows[i].key, rows[i].value);
        tn_status status = tn_lm_open_source(runtime, &f.source, NULL, &lm);
        const char *message = tn_lm_error();
        if (status != rows[i].status ||
            strncmp(message, rows[i].message, strlen(rows[i].message)) != 0 || lm ||
            f.closed != 1)
            cr_fatal("row %zu: status %d, closed %d times: %s\nexpected %d: %s", i,
                     (int)status, f.closed, message, (int)rows[i].status, rows[i].message);
    }
}

Test(models, wrong_calls_are_refused_and_change_nothing)
{
    struct fixture f;
    tn_lm *lm = NULL;
    fixture_open(&f, "llama");
    const tn_lm_options options = {.struct_size = sizeof(options), .context = 20};
    lm_must(tn_lm_open_source(runtime, &f.source, &options, &lm));
    tn_lm_sequence *sequence = sequence_open(lm);
    int32_t ids[32] = {0};
    float logits[WORDS];
    ids[3] = WORDS;
    cr_assert(eq(int, tn_lm_infer(sequence, ids, 5, 0, logits), TN_ERR_ARGUMENT));
    check_message("token 3 is 32, expected 0 to 31");
    ids[3] = 1;
    cr_assert(eq(int, tn_lm_infer(sequence, ids, 21, 0, logits), TN_ERR_ARGUMENT));
    check_message("21 positions are too many: the context has 20, of which 20 are left");
    cr_assert(eq(int, tn_lm_infer(sequence, ids, 0, 0, logits), TN_ERR_ARGUMENT));
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), 0));
    lm_must(tn_lm_infer(sequence, ids, 20, 0, logits)); // full to the last position
    cr_assert(eq(int, tn_lm_infer(sequence, ids, 1, 0, logits), TN_ERR_ARGUMENT));
    check_message("1 positions are too many: the context has 20, of which 0 are left");
    cr_assert(eq(int, tn_lm_ensure_shard(lm, 1, 2), TN_ERR_ARGUMENT));
    check_message("layers 1 to 2 of a model whose last one is 1");
    int32_t *tokens;
    uint64_t count;
    cr_assert(eq(int, tn_lm_tokenize(lm, "a", 1, 0, &tokens, &count), TN_ERR_NOT_FOUND));
    check_message("llama has no vocabulary: tokenizer.ggml.model is missing");
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}
