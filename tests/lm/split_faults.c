// SPDX-License-Identifier: MIT
// Layers on several devices: memory that is too small, splits that cannot be meant, and a
// device that is lost.
#include "split.h"
#include <tenon/selected.h>

TestSuite(split_faults, .init = load, .timeout = 280);

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

Test(split_faults, layers_are_divided_by_memory)
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
Test(split_faults, what_does_not_fit_is_refused_with_what_would)
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

Test(split_faults, splits_that_cannot_be_meant_are_refused)
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
Test(split_faults, memory_that_ends_while_layers_are_loaded)
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
Test(split_faults, a_lost_device_ends_the_sequences_that_had_layers_there)
{
    float before[WORDS], after[WORDS], got[WORDS];
    int lost[2] = {0};
    for (uint64_t n = 1; n <= 4; n++) {
        struct fixture f, g;
        char sentence[256];
        open_devices("vulkan:0,vulkan:1,cpu-blas");
        tn_lm *lm = open_split(&f, "llama", "1,1", 2),
              *alone = open_split(&g, "llama", "0,0,2", 1);
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
Test(split_faults, the_layers_of_a_lost_device_find_another_place)
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

Test(split_faults, devices_tell_their_memory)
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
