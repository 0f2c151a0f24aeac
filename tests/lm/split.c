// SPDX-License-Identifier: MIT
// Layers on several devices: the logits of one device, in prompts, steps, batches, shards,
// saved sequences and adapters.
#include "split.h"
#include <tenon/lm_adapter.h>

TestSuite(split, .init = load, .timeout = 280);

// Embedding and output are one matrix, which is on both devices; layers are alike or not.
Test(split, logits_are_those_of_transformers)
{
    static const struct {
        const char *devices, *name, *split, *parts;
    } rows[] = {
        {"cpu-blas,vulkan", "llama_tied", "1,1", "cpu-blas:0 0-0, vulkan:0 1-1"},
        {"vulkan,cpu-blas", "llama_tied", "1,1", "vulkan:0 0-0, cpu-blas:0 1-1"},
        {"vulkan,cpu-blas", "gemma2", "2,1", "vulkan:0 0-1, cpu-blas:0 2-2"},
        {"vulkan,vulkan-jit", "llama", "1,1", "vulkan:0 0-0, vulkan-jit:0 1-1"},
        {"vulkan,cpu-blas", "llama3", "0,2", "cpu-blas:0 0-1"},
        {"vulkan,cpu-blas", "llama", NULL, "vulkan:0 0-1"},
        {"vulkan", "mixtral", NULL, "vulkan:0 0-1"}, // experts of floats
    };
    float *logits = malloc(sizeof(float) * WORDS * ROWS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        fixture_open(&f, rows[i].name);
        rows_on(rows[i].devices, rows[i].name, rows[i].split, rows[i].parts, logits);
        compare_known(&f, rows[i].parts, logits);
    }
    free(logits);
}

// Where the devices are of one kind, the bits are those of one device.
Test(split, bits_of_two_devices_are_those_of_one)
{
    static const char *const names[] = {"llama_tied", "qwen3"};
    float *one = malloc(sizeof(float) * WORDS * ROWS),
          *two = malloc(sizeof(float) * WORDS * ROWS);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rows_on("vulkan:0", names[i], NULL, "vulkan:0 0-1", one);
        rows_on("vulkan:0,vulkan:1", names[i], "1,1", "vulkan:0 0-0, vulkan:1 1-1", two);
        cr_assert(eq(int, memcmp(one, two, sizeof(float) * WORDS * ROWS), 0), "%s",
                  names[i]);
    }
    free(one);
    free(two);
}

// Each device packs blocks its own way, and has caches of the elements asked for.
Test(split, blocks_and_half_floats_are_on_each_device)
{
    static const struct {
        const char *cache, *format;
        double most; // that logits differ: the CPU rounds what it multiplies by blocks
    } rows[] = {{"f16", NULL, 5e-3}, {"f32", "q8_0", 0.1}, {"f16", "q4_0", 0.1}};
    float *one = malloc(sizeof(float) * WORDS * ROWS),
          *two = malloc(sizeof(float) * WORDS * ROWS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        double most = 0, plain = 0;
        for (int k = 0; k < 2; k++) {
            open_devices(k ? "cpu-blas,vulkan" : "cpu-blas");
            tn_lm *lm =
                open_kind(&f, "llama", k ? "1,1" : NULL, 1, rows[i].cache, rows[i].format);
            infer_rows(lm, &f, k ? two : one);
            tn_lm_close(lm);
            tn_runtime_close(runtime);
        }
        for (int w = 0; w < WORDS * ROWS; w++)
            most = fmax(most, fabs((double)(one[w] - two[w])));
        for (int w = 0; w < WORDS; w++) // of position 0
            plain = fmax(plain, fabs((double)(two[w] - f.logits[0][w])));
        cr_assert(le(dbl, most, rows[i].most), "row %zu", i);
        if (rows[i].format)
            cr_assert(gt(dbl, plain, 1e-3), "row %zu: nothing is in blocks", i);
    }
    free(one);
    free(two);
}

// Steps that sequences share, with slots of caches on both devices.
static void batch_on(const char *devices, const char *split, float out[3][WORDS])
{
    struct fixture f;
    open_devices(devices);
    tn_lm *lm = open_split(&f, "llama", split, 3);
    tn_lm_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (tn_lm_item){.sequence = sequence_open(lm),
                                .ids = f.ids + 20 * i,
                                .count = 5 + 3 * i,
                                .out_logits = out[i]};
    lm_must(tn_lm_infer_batch(items, 3));
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 3; i++) {
            items[i].ids += items[i].count;
            items[i].count = 1;
        }
        lm_must(tn_lm_infer_batch(items, 3));
    }
    for (int i = 0; i < 3; i++)
        tn_lm_sequence_close(items[i].sequence);
    tn_lm_close(lm);
    tn_runtime_close(runtime);
}

Test(split, sequences_share_steps)
{
    float one[3][WORDS], two[3][WORDS], mixed[3][WORDS];
    batch_on("vulkan:0", NULL, one);
    batch_on("vulkan:0,vulkan:1", "1,1", two);
    batch_on("cpu-blas,vulkan", "1,1", mixed);
    cr_assert(eq(int, memcmp(one, two, sizeof(one)), 0));
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < WORDS; w++)
            cr_assert(le(dbl, fabs((double)(one[i][w] - mixed[i][w])), 1e-3));
}

// Shards have parts of their own; the hidden state between two is the same.
Test(split, shards_are_divided_too)
{
    struct fixture f;
    float *logits = malloc(sizeof(float) * WORDS * ROWS), hidden[PROMPT * WIDTH];
    open_devices("cpu-blas,vulkan");
    tn_lm *lm = open_split(&f, "gemma2", "1,2", 1);
    lm_must(tn_lm_ensure_shard(lm, 0, 1));
    check_parts(lm, "cpu-blas:0 0-0, vulkan:0 1-1");
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer_tensor(sequence, f.ids, PROMPT, 0, hidden));
    tn_lm_sequence_close(sequence);
    lm_must(tn_lm_ensure_shard(lm, 2, 2));
    check_parts(lm, "vulkan:0 2-2");
    sequence = sequence_open(lm);
    lm_must(tn_lm_infer_tensor(sequence, hidden, PROMPT, TN_LM_ALL_ROWS, logits));
    tn_lm_sequence_close(sequence);
    compare_known(&f, "shards", logits);
    tn_lm_close(lm);
    tn_runtime_close(runtime);
    free(logits);
}

// A file does not say which device had what.
Test(split, saved_sequences_go_on_with_another_split)
{
    static const struct {
        const char *devices, *split;
    } rows[] = {
        {"vulkan:0,vulkan:1", "1,1"}, {"vulkan:0", NULL}, {"cpu-blas,vulkan", "1,1"}};
    const char *path = "split_saved.safetensors";
    float *logits = malloc(sizeof(float) * WORDS * ROWS), first[WORDS], got[WORDS];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        open_devices(rows[i].devices);
        tn_lm *lm = open_split(&f, "llama_tied", rows[i].split, 2);
        tn_lm_sequence *other = sequence_open(lm), *sequence = sequence_open(lm);
        lm_must(tn_lm_infer(other, f.ids, 3, 0, NULL));
        if (i == 0) {
            lm_must(tn_lm_infer(sequence, f.ids, PROMPT, 0, NULL));
            lm_must(tn_lm_sequence_save(sequence, path));
        } else {
            lm_must(tn_lm_sequence_restore(sequence, path));
        }
        lm_must(tn_lm_infer(sequence, f.ids + PROMPT, 1, 0, got));
        if (i == 0)
            memcpy(first, got, sizeof(got));
        for (int w = 0; w < WORDS; w++)
            cr_assert(le(dbl, fabs((double)(first[w] - got[w])), i == 2 ? 1e-3 : 0), "%s",
                      rows[i].devices);
        tn_lm_sequence_close(other);
        tn_lm_sequence_close(sequence);
        tn_lm_close(lm);
        tn_runtime_close(runtime);
    }
    unlink(path);
    free(logits);
}

// --- adapters --------------------------------------------------------------------------

static int32_t keep_loss(void *context, const tn_lm_trained *now)
{
    ((double *)context)[now->step - 1] = now->loss;
    return 0;
}

// Trains, and gives the losses and the logits behind it, saved and loaded again.
static void train_on(const char *devices, const char *split, double losses[3],
                     float out[WORDS])
{
    static const char *const weights[] = {"attn_q", "attn_v"};
    const char *path = "split_adapter.safetensors";
    struct fixture f;
    open_devices(devices);
    tn_lm *lm = open_split(&f, "llama", split, 1);
    const tn_lm_training how = {.struct_size = sizeof(how),
                                .weights = weights,
                                .num_weights = 2,
                                .rank = 2,
                                .window = 16,
                                .steps = 3,
                                .rate = 0.05,
                                .progress = keep_loss,
                                .context = losses};
    lm_must(tn_lm_train_adapter(lm, f.ids, 64, &how));
    lm_must(tn_lm_adapter_save(lm, path));
    lm_must(tn_lm_adapter_load(lm, NULL, 1));
    lm_must(tn_lm_adapter_load(lm, path, 1));
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f.ids, 10, 0, out));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
    tn_runtime_close(runtime);
    unlink(path);
}

Test(split, adapters_are_trained_and_used)
{
    double one[3], two[3];
    float logits[WORDS], split[WORDS];
    train_on("cpu-blas", NULL, one, logits);
    train_on("cpu-blas,vulkan", "1,1", two, split);
    for (int i = 0; i < 3; i++)
        cr_assert(le(dbl, fabs(one[i] - two[i]), 1e-3), "step %d", i);
    for (int w = 0; w < WORDS; w++)
        cr_assert(le(dbl, fabs((double)(logits[w] - split[w])), 1e-2), "logit %d", w);
}
