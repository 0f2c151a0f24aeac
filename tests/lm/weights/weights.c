// SPDX-License-Identifier: MIT
// Loading weights: what is read, told, and in memory.
#include "../fixture.h"

TestSuite(weights, .init = setup, .fini = teardown);

// An embedding of 2.1 million elements, in blocks, that is the output, too: rows are looked
// up in what is packed for products, and nothing that loading needed is beside it.
Test(weights, a_tied_embedding_is_in_memory_once)
{
    static const char *const formats[] = {"q4_0", "q8_0"};
    enum { LARGE = 65536, WIDE = 32 };
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        tn_lm *lm = NULL;
        fixture_open_wide(&f);
        f.missing = "output.weight";
        f.format = formats[i];
        fixture_set(&f, "llama.vocab_size", "65536");
        ((struct fixture_weight *)(uintptr_t)fixture_weight(&f, "token_embd.weight"))
            ->type.extent[0] = LARGE;
        lm_must(tn_lm_open_source(runtime, &f.source, NULL, &lm));
        uint64_t at_first = stats_of(runtime).buffer_bytes;
        lm_must(tn_lm_ensure_shard(lm, 0, 1));
        tn_lm_info info = {.struct_size = sizeof(info)};
        tn_lm_describe(lm, &info);
        uint64_t more = stats_of(runtime).buffer_bytes - at_first;
        cr_expect(ge(u64, info.weight_bytes, (uint64_t)LARGE * WIDE / 2));
        cr_expect(le(u64, more, info.weight_bytes + info.weight_bytes / 16), "%s",
                  formats[i]);
        tn_lm_close(lm);
    }
}

static void note_progress(void *context, uint64_t loaded, uint64_t total)
{
    uint64_t *told = context; // loaded, total, calls
    cr_assert(told[2] == 0 || (loaded > told[0] && total == told[1]));
    cr_assert(le(u64, loaded, total));
    told[0] = loaded;
    told[1] = total;
    told[2]++;
}

// Weights of layers that were there before are not read again, and loading tells of those
// that are.
Test(weights, shards_load_only_what_changes)
{
    static const struct {
        int64_t first, last;
        const char *read; // the beginning of what is read; "": nothing
    } rows[] = {{0, 0, "blk.0."}, {0, 0, ""},       {0, 1, "blk.1."},
                {1, 1, ""},       {0, 1, "blk.0."}, {0, 1, ""}};
    struct fixture f;
    tn_lm *lm = NULL;
    uint64_t told[3];
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .progress = note_progress,
                                   .progress_context = told};
    fixture_open(&f, "llama");
    lm_must(tn_lm_open_source(runtime, &f.source, &options, &lm));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(f.loads, 0, sizeof(f.loads));
        memset(told, 0, sizeof(told));
        lm_must(tn_lm_ensure_shard(lm, rows[i].first, rows[i].last));
        cr_assert(eq(u64, told[0], told[1]));
        cr_assert(eq(int, told[2] > 0, rows[i].read[0] != 0), "row %zu", i);
        for (int w = 0; w < f.num_weights; w++) {
            const char *name = f.weights[w].name;
            if (strncmp(name, "blk.", 4) != 0)
                continue;
            bool is_read = rows[i].read[0] && strncmp(name, rows[i].read, 6) == 0;
            cr_assert(eq(int, f.loads[w], is_read), "row %zu: %s", i, name);
        }
    }
    tn_lm_close(lm);
}

// Logits of a model in q8_0, or in what its blocks stand for, whose layers are on the first
// of the backends; gives the bytes of its weights.
static uint64_t infer_on(const char *backends, bool is_decoded, float logits[12 * WORDS])
{
    struct fixture f;
    tn_lm *lm = NULL;
    tn_runtime_close(runtime);
    runtime = open_with((const char *const[]){backends, "TENON_FALLBACK=allow", NULL});
    fixture_open_wide(&f);
    f.format = "q8_0";
    f.is_decoded = is_decoded;
    lm_must(tn_lm_open_source(runtime, &f.source, NULL, &lm));
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f.ids, 12, TN_LM_ALL_ROWS, logits));
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(lm, &info);
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
    return info.weight_bytes;
}

// A backend of somebody else's has a packing of its own, with a byte more for each row:
// products read rows that are packed so.
Test(weights, the_packing_is_that_of_the_device)
{
    float want[12 * WORDS], got[12 * WORDS];
    uint64_t plain = infer_on("TENON_BACKEND=cpu-blas", false, want);
    uint64_t packed = infer_on("TENON_BACKEND=cpu-acme,cpu-blas", false, got);
    infer_on("TENON_BACKEND=cpu-blas", true, want); // x is not rounded to bytes there
    cr_expect(gt(u64, packed, plain));
    cr_expect(le(u64, packed, plain + plain / 30)); // a byte for 34 of a block, at most
    for (int i = 0; i < 12 * WORDS; i++)
        cr_assert(le(dbl, fabs((double)got[i] - (double)want[i]), 1e-2), "logit %d: %g, %g",
                  i, (double)got[i], (double)want[i]);
}
