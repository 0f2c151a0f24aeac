// SPDX-License-Identifier: MIT
// Layers on several devices: the logits of one device, in prompts, steps, batches, shards
// and saved sequences; memory that is too small; a device that is lost.
//
// TENON_TEST_LOADER says where the shared object of tests/fixtures/vulkan_loader.c is,
// which makes two devices of one, and takes memory and devices away.
#include "../fixtures/vulkan_loader.h"
#include "fixture.h"
#include <dlfcn.h>
#include <tenon/lm_adapter.h>
#include <tenon/selected.h>
#include <unistd.h>

static struct vulkan_faults *faults;

static void load(void)
{
    void *loader = dlopen(getenv("TENON_TEST_LOADER"), RTLD_NOW | RTLD_GLOBAL);
    faults = loader ? dlsym(loader, "vulkan_faults") : NULL;
    if (!faults)
        cr_fatal("%s", dlerror());
    need_device("vulkan");
    *faults = (struct vulkan_faults){.num_copies = 2};
}

TestSuite(split, .init = load, .timeout = 280);

// Puts a runtime on these devices.
static void open_devices(const char *devices)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", devices);
    runtime = open_with((const char *const[]){variable, "TENON_FALLBACK=allow", NULL});
}

static tn_status try_open(struct fixture *f, const char *name, const char *split,
                          int64_t sequences, tn_lm **out)
{
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = POSITIONS + 40,
                                   .cache = "f32",
                                   .sequences = sequences,
                                   .split = split};
    fixture_open(f, name);
    return tn_lm_open_source(runtime, &f->source, &options, out);
}

static tn_lm *open_split(struct fixture *f, const char *name, const char *split,
                         int64_t sequences)
{
    tn_lm *lm = NULL;
    lm_must(try_open(f, name, split, sequences, &lm));
    return lm;
}

// --- the same logits -------------------------------------------------------------------

// What is compared: a prompt of several chunks, each row, and steps behind it.
enum { PROMPT = 75, STEPS = 3, ROWS = PROMPT + STEPS, WIDTH = 16 };

static void infer_rows(tn_lm *lm, const struct fixture *f, float *out)
{
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f->ids, PROMPT, TN_LM_ALL_ROWS, out));
    for (int i = PROMPT; i < ROWS; i++)
        lm_must(tn_lm_infer(sequence, f->ids + i, 1, 0, out + (ptrdiff_t)i * WORDS));
    tn_lm_sequence_close(sequence);
}

// The devices of the parts, "vulkan:0 0-0, cpu-blas:0 1-1".
static void parts_text(const tn_lm *lm, char *out, size_t size)
{
    tn_lm_part parts[4] = {{.struct_size = sizeof(parts[0])}};
    uint64_t count = 4;
    size_t used = 0;
    *out = 0;
    lm_must(tn_lm_parts(lm, parts, &count));
    for (uint64_t i = 0; i < count && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s %d-%d", i ? ", " : "",
                             parts[i].device, (int)parts[i].first, (int)parts[i].end - 1);
}

static void check_parts(const tn_lm *lm, const char *expected)
{
    char text[256];
    parts_text(lm, text, sizeof(text));
    if (strcmp(text, expected) != 0)
        cr_fatal("the parts are %s, expected %s", text, expected);
}

static void rows_on(const char *devices, const char *name, const char *split,
                    const char *expected, float *out)
{
    struct fixture f;
    open_devices(devices);
    tn_lm *lm = open_split(&f, name, split, 1);
    infer_rows(lm, &f, out);
    check_parts(lm, expected);
    tn_lm_close(lm);
    cr_assert(eq(int, f.closed, 1));
    tn_runtime_close(runtime);
}

// Logits of each family that the file knows, wherever the layers are.
static void compare_known(const struct fixture *f, const char *what, const float *logits)
{
    int compared = 0;
    for (int r = 0; r < f->num_rows; r++)
        for (int i = 0; f->rows[r] < ROWS && i < WORDS; i++, compared++)
            cr_assert(
                le(dbl,
                   fabs((double)logits[f->rows[r] * WORDS + i] - (double)f->logits[r][i]),
                   1e-3),
                "%s: logit %d of position %d", what, i, f->rows[r]);
    cr_assert(gt(int, compared, 0));
}

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

// --- memory ----------------------------------------------------------------------------

// Bytes that all layers of a model need: parts tell it.
static uint64_t needed(const char *name, uint64_t *out_last)
{
    struct fixture f;
    tn_lm_part parts[2] = {{.struct_size = sizeof(parts[0])}};
    uint64_t count = 2;
    open_devices("cpu-blas,vulkan");
    tn_lm *lm = open_split(&f, name, "1,1", 1);
    lm_must(tn_lm_parts(lm, parts, &count));
    cr_assert(eq(u64, count, 2));
    tn_lm_close(lm);
    tn_runtime_close(runtime);
    *out_last = parts[1].weight_bytes + parts[1].cache_bytes;
    return parts[0].weight_bytes + parts[0].cache_bytes + *out_last;
}

// The heap that leaves so much for layers.
static uint64_t heap_for(uint64_t bytes)
{
    return bytes * 8 / 7 + 8;
}

Test(split, layers_are_divided_by_memory)
{
    struct fixture f;
    uint64_t last, all = needed("llama", &last);
    float *logits = malloc(sizeof(float) * WORDS * ROWS);
    const struct {
        uint64_t heap;
        const char *parts;
    } rows[] = {{heap_for(all), "vulkan:0 0-1"},
                {heap_for(all - 16), "vulkan:0 0-0, cpu-blas:0 1-1"},
                {heap_for(all - last), "vulkan:0 0-0, cpu-blas:0 1-1"},
                {heap_for(all - last - 16), "cpu-blas:0 0-1"}};
    fixture_open(&f, "llama");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        faults->heap_size = rows[i].heap;
        rows_on("vulkan,cpu-blas", "llama", NULL, rows[i].parts, logits);
        compare_known(&f, rows[i].parts, logits);
    }
    free(logits);
}

// One sentence says what is missing and what would fit.
Test(split, what_does_not_fit_is_refused_with_what_would)
{
    uint64_t last, all = needed("llama", &last);
    struct fixture f;
    tn_lm *lm = NULL;
    const struct {
        const char *devices, *split;
        int64_t sequences;
        uint64_t heap;
        const char *parts[6];
    } rows[] = {
        {"vulkan",
         NULL,
         1,
         heap_for(all - 1000),
         {"llama: does not fit: no room for layer 1 of 2 on vulkan:0, which has ",
          "0.0 MB are missing; what fits: a context of 320, caches of f16, layer 0 alone, "
          "all of it with cpu-blas behind the others in TENON_BACKEND"}},
        {"vulkan", NULL, 4, heap_for(all), {"what fits: ", "one sequence in place of 4, "}},
        {"vulkan",
         NULL,
         1,
         4096,
         {"no room for layers 0 to 1 of 2 on vulkan:0",
          "what fits: all of it with cpu-blas behind the others in TENON_BACKEND"}},
        {"vulkan,cpu-blas",
         "2,0",
         1,
         heap_for(all - 1000),
         {"no room for layers 0 to 1 of 2 on vulkan:0", "caches of f16, another split"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        faults->heap_size = rows[i].heap;
        open_devices(rows[i].devices);
        lm = open_split(&f, "llama", rows[i].split, rows[i].sequences);
        tn_lm_sequence *sequence = NULL;
        cr_assert(eq(int, tn_lm_sequence_open(lm, &sequence), TN_ERR_MEMORY));
        for (int k = 0; rows[i].parts[k]; k++)
            check_says(tn_lm_error(), rows[i].parts[k]);
        uint64_t count = 0;
        cr_assert(eq(int, tn_lm_parts(lm, NULL, &count), TN_ERR_MEMORY));
        tn_lm_close(lm);
        tn_runtime_close(runtime);
    }
    // What is proposed does fit.
    faults->heap_size = heap_for(all - 1000);
    open_devices("vulkan");
    const tn_lm_options options = {
        .struct_size = sizeof(options), .context = 320, .cache = "f32"};
    fixture_open(&f, "llama");
    lm_must(tn_lm_open_source(runtime, &f.source, &options, &lm));
    lm_must(tn_lm_ensure_shard(lm, 0, 1));
    tn_lm_close(lm);
    lm = open_split(&f, "llama", NULL, 1);
    lm_must(tn_lm_ensure_shard(lm, 0, 0));
    tn_lm_close(lm);
    tn_runtime_close(runtime);
}

Test(split, splits_that_cannot_be_meant_are_refused)
{
    static const struct {
        const char *split, *message;
    } rows[] = {
        {"1", "a split of '1' for 2 layers on 2 devices: it has fewer layers than the "
              "model"},
        {"2,1", "a split of '2,1' for 2 layers on 2 devices: it has more layers than the "
                "model"},
        {"1,0,1", "a split of '1,0,1' for 2 layers on 2 devices: it names more devices "
                  "than there are"},
        {"half", "a split of 'half' for 2 layers on 2 devices: expected numbers of "
                 "layers, separated by commas"},
    };
    open_devices("cpu-blas,vulkan");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        tn_lm *lm = open_split(&f, "llama", rows[i].split, 1);
        cr_assert(eq(int, tn_lm_ensure_shard(lm, 0, 1), TN_ERR_ARGUMENT));
        check_message(rows[i].message);
        tn_lm_close(lm);
    }
    tn_runtime_close(runtime);
}

// Memory that the driver does not give, at each allocation in turn: a message, and a model
// that loads when there is memory again.
Test(split, memory_that_ends_while_layers_are_loaded)
{
    int failed = 0;
    for (uint64_t n = 1; n <= 3; n++) {
        struct fixture f;
        float logits[WORDS];
        open_devices("vulkan:0,vulkan:1");
        tn_lm *lm = open_split(&f, "llama", "1,1", 1);
        uint64_t count = 0;
        lm_must(tn_lm_parts(lm, NULL, &count)); // opens the devices
        faults->call = "vkAllocateMemory";
        faults->result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
        faults->onwards = true;
        atomic_store(&faults->num_calls, 0);
        faults->nth = n;
        tn_lm_sequence *sequence = NULL;
        tn_status status = tn_lm_sequence_open(lm, &sequence);
        if (status == TN_OK)
            status = tn_lm_infer(sequence, f.ids, 9, 0, logits);
        faults->nth = 0;
        faults->onwards = false;
        if (status != TN_OK) {
            failed++;
            check_status(status, TN_ERR_MEMORY);
            check_says(tn_lm_error(), "vulkan:");
        }
        tn_lm_sequence_close(sequence);
        sequence = sequence_open(lm);
        lm_must(tn_lm_infer(sequence, f.ids, 9, 0, logits));
        tn_lm_sequence_close(sequence);
        tn_lm_close(lm);
        tn_runtime_close(runtime);
    }
    cr_assert(gt(int, failed, 0));
}

// --- a lost device ---------------------------------------------------------------------

// In each submission of a step: all sequences of the model end with one sentence, others of
// the runtime go on, and the layers find another place.
Test(split, a_lost_device_ends_the_sequences_that_had_layers_there)
{
    float before[WORDS], after[WORDS], got[WORDS];
    int lost[2] = {0};
    for (uint64_t n = 1; n <= 4; n++) {
        struct fixture f, g;
        char sentence[256];
        open_devices("vulkan:0,vulkan:1,cpu-blas");
        tn_lm *lm = open_split(&f, "llama", NULL, 2),
              *alone = open_split(&g, "llama", "0,0,2", 1);
        tn_lm_close(lm);
        lm = open_split(&f, "llama", "1,1", 2);
        tn_lm_sequence *first = sequence_open(lm), *second = sequence_open(lm),
                       *other = sequence_open(alone);
        lm_must(tn_lm_infer(first, f.ids, 9, 0, before));
        lm_must(tn_lm_infer(second, f.ids, 5, 0, NULL));
        lm_must(tn_lm_infer(other, f.ids, 5, 0, NULL));
        faults->call = "vkQueueSubmit";
        faults->result = VK_ERROR_DEVICE_LOST;
        atomic_store(&faults->num_calls, 0);
        faults->nth = n;
        tn_status status = TN_OK;
        for (int i = 9; i < 40 && status == TN_OK; i++)
            status = tn_lm_infer(first, f.ids + i, 1, 0, got);
        faults->nth = 0;
        check_status(status, TN_ERR_DEVICE);
        bool is_first = strstr(tn_lm_error(), "device vulkan:0 ") != NULL;
        lost[!is_first]++;
        snprintf(sentence, sizeof(sentence),
                 "device vulkan:%d was lost, with layer %d and the caches there: the "
                 "sequences of this model have ended; close them, and tn_lm_ensure_shard "
                 "places the layers on vulkan:%d, cpu-blas:0",
                 !is_first, !is_first, is_first);
        check_message(sentence);
        check_status(tn_lm_infer(first, f.ids, 1, 0, got), TN_ERR_DEVICE);
        check_message(sentence);
        check_status(tn_lm_infer(second, f.ids + 5, 1, 0, got), TN_ERR_DEVICE);
        check_message(sentence);
        // A model that has no layers there goes on.
        lm_must(tn_lm_infer(other, f.ids + 5, 4, 0, after));
        for (int w = 0; w < WORDS; w++)
            cr_assert(le(dbl, fabs((double)(before[w] - after[w])), 1e-3));
        check_status(tn_lm_ensure_shard(lm, 0, 1), TN_ERR_ARGUMENT);
        check_message("the layers of a model that has 2 sequences cannot change");
        tn_lm_sequence_close(first);
        tn_lm_sequence_close(second);
        // The split that was asked for has no place for its layers.
        check_status(tn_lm_ensure_shard(lm, 0, 1), TN_ERR_DEVICE);
        snprintf(
            sentence, sizeof(sentence),
            "layer %d of 2 cannot be on vulkan:%d, which was lost: open a new runtime, "
            "or divide the layers by memory",
            !is_first, !is_first);
        check_message(sentence);
        tn_lm_close(lm);
        tn_lm_sequence_close(other);
        tn_lm_close(alone);
        tn_runtime_close(runtime);
    }
    cr_assert(gt(int, lost[0], 0));
    cr_assert(gt(int, lost[1], 0));
}

// Divided by memory, the layers go where there is room.
Test(split, the_layers_of_a_lost_device_find_another_place)
{
    struct fixture f;
    float before[WORDS], after[WORDS];
    open_devices("vulkan:0,cpu-blas");
    tn_lm *lm = open_split(&f, "llama", NULL, 1);
    tn_lm_sequence *sequence = sequence_open(lm);
    check_parts(lm, "vulkan:0 0-1");
    lm_must(tn_lm_infer(sequence, f.ids, 9, 0, before));
    faults->call = "vkQueueSubmit";
    faults->result = VK_ERROR_DEVICE_LOST;
    atomic_store(&faults->num_calls, 0);
    faults->nth = 1;
    check_status(tn_lm_infer(sequence, f.ids + 9, 1, 0, after), TN_ERR_DEVICE);
    faults->nth = 0;
    check_message("device vulkan:0 was lost, with layers 0 to 1 and the caches there: the "
                  "sequences of this model have ended; close them, and "
                  "tn_lm_ensure_shard places the layers on cpu-blas:0");
    tn_lm_sequence_close(sequence);
    lm_must(tn_lm_ensure_shard(lm, 0, 1));
    check_parts(lm, "cpu-blas:0 0-1");
    sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f.ids, 9, 0, after));
    for (int w = 0; w < WORDS; w++)
        cr_assert(le(dbl, fabs((double)(before[w] - after[w])), 1e-3));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
    tn_runtime_close(runtime);
}

// --- the devices themselves ------------------------------------------------------------

Test(split, devices_tell_their_memory)
{
    tn_selected_device devices[3] = {{.struct_size = sizeof(devices[0])}};
    uint64_t count = 3;
    faults->heap_size = 100 << 20;
    open_devices("vulkan:1,cpu-blas");
    must(NULL, tn_selected_devices(runtime, devices, &count));
    cr_assert(eq(u64, count, 2));
    cr_assert(eq(int, strcmp(devices[0].device, "vulkan:1"), 0));
    cr_assert(eq(int, strcmp(devices[1].device, "cpu-blas:0"), 0));
    cr_assert(eq(u64, devices[0].available, 100 << 20));
    cr_assert(gt(u64, devices[1].available, 0));
    cr_assert(le(u64, devices[1].available, devices[1].memory_size));
    cr_assert(eq(uint, devices[0].is_lost, 0));
    // An older caller's records, one of which is asked for.
    struct {
        uint32_t struct_size, flags;
        char device[96];
    } old[2] = {{.struct_size = sizeof(old[0])}};
    count = 1;
    must(NULL, tn_selected_devices(runtime, (tn_selected_device *)(void *)old, &count));
    cr_assert(eq(u64, count, 2));
    cr_assert(eq(int, strcmp(old[0].device, "vulkan:1"), 0));
    cr_assert(eq(int, old[1].device[0], 0));
    check_status(tn_selected_devices(NULL, devices, &count), TN_ERR_ARGUMENT);
    check_status(tn_selected_devices(runtime, devices, NULL), TN_ERR_ARGUMENT);
    tn_runtime_close(runtime);
    open_devices("vulkan:7");
    check_status(tn_selected_devices(runtime, devices, &count), TN_ERR_NOT_FOUND);
    tn_runtime_close(runtime);
}
