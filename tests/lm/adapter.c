// SPDX-License-Identifier: MIT
// Adapters: trained, written, read and used, with small random models.
#include <math.h>
#include <tenon/file.h>
#include <tenon/lm_adapter.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TestSuite(adapter, .init = setup, .fini = teardown);

// Mean surprise of ids[1 .. count - 1], in nats, by inference.
static double surprise(tn_lm *lm, const int32_t *ids, int64_t count)
{
    static float logits[POSITIONS * WORDS];
    double sum = 0;
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, ids, count - 1, TN_LM_ALL_ROWS, logits));
    tn_lm_sequence_close(sequence);
    for (int64_t i = 0; i + 1 < count; i++) {
        double all = 0;
        for (int64_t k = 0; k < WORDS; k++)
            all += exp((double)logits[i * WORDS + k]);
        sum += log(all) - (double)logits[i * WORDS + ids[i + 1]];
    }
    return sum / (double)(count - 1);
}

struct losses {
    double items[300];
    int count, end; // ends after so many; 0: goes on
};

static int32_t note(void *context, const tn_lm_trained *now)
{
    struct losses *l = context;
    cr_assert(eq(i64, now->step, l->count + 1));
    l->items[l->count++] = now->loss;
    return l->count == l->end;
}

static void train(tn_lm *lm, const char *name, const int32_t *ids, int64_t count,
                  int64_t steps, struct losses *l)
{
    static const char *const weights[] = {"attn_q", "attn_k", "attn_v", "ffn_down"};
    static const char *const fused[] = {"attn_qkv", "ffn_up"};
    bool is_fused = strcmp(name, "phi3") == 0;
    const tn_lm_training how = {.struct_size = sizeof(how),
                                .weights = is_fused ? fused : weights,
                                .num_weights = is_fused ? COUNT(fused) : COUNT(weights),
                                .rank = 4,
                                .window = count - 1,
                                .steps = steps,
                                .rate = 0.02,
                                .seed = 3,
                                .progress = note,
                                .context = l};
    memset(l, 0, sizeof(*l));
    lm_must(tn_lm_train_adapter(lm, ids, (uint64_t)count, &how));
    cr_assert(eq(i64, l->count, steps));
}

// What a training says is the surprise that inference gives, before any step, after those
// that were made, and with the adapter that was written and read again: of weights in f16
// and in blocks, and of rows that the file has in pairs.
Test(adapter, losses_are_those_of_inference)
{
    enum { TOKENS = 41 };
    static const struct {
        const char *name, *format, *file;
        int64_t paired;
    } rows[] = {{"llama", NULL, "adapter.safetensors", 0},
                {"llama", NULL, "adapter.gguf", 8},
                {"llama", NULL, "peft/", 8},
                {"phi3", NULL, "peft/", 0},
                {"qwen2", "q8_0", "adapter.safetensors", 0},
                {"gemma2", NULL, "adapter.safetensors", 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f, g;
        struct losses first, more;
        tn_lm *lm = NULL, *other = NULL;
        fixture_open(&f, rows[i].name);
        f.paired = rows[i].paired;
        f.format = rows[i].format;
        g = f;
        g.source.context = &g;
        g.list.entries = g.pairs;
        const tn_lm_options exact = {.struct_size = sizeof(exact), .cache = "f32"};
        lm_must(tn_lm_open_source(runtime, &f.source, &exact, &lm));
        lm_must(tn_lm_open_source(runtime, &g.source, &exact, &other));
        double before = surprise(lm, f.ids, TOKENS);
        train(lm, rows[i].name, f.ids, TOKENS, 60, &first);
        double after = surprise(lm, f.ids, TOKENS);
        lm_must(tn_lm_adapter_save(lm, rows[i].file));
        lm_must(tn_lm_adapter_load(other, rows[i].file, 1));
        double again = surprise(other, f.ids, TOKENS);
        train(other, rows[i].name, f.ids, TOKENS, 1, &more);
        lm_must(tn_lm_adapter_load(other, rows[i].file, 0));
        double none = surprise(other, f.ids, TOKENS);
        double near = rows[i].format ? 2e-2 : 1e-4; // products of blocks round x
        if (fabs(first.items[0] - before) > near || fabs(after - again) > 1e-5 ||
            fabs(more.items[0] - after) > near || after > 0.5 * before ||
            fabs(none - before) > 1e-5)
            cr_fatal("%s: %g and %g before, %g after, %g and %g read again, %g without",
                     rows[i].name, first.items[0], before, after, again, more.items[0],
                     none);
        tn_lm_close(lm);
        tn_lm_close(other);
        unlink(rows[i].file);
        unlink("peft/adapter_config.json");
        unlink("peft/adapter_model.safetensors");
        rmdir("peft");
    }
}

Test(adapter, a_seed_gives_the_same_adapter_and_a_callback_ends_a_training)
{
    struct losses l[3];
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        tn_lm *lm = model_open(&f, "qwen3");
        const tn_lm_training how = {.struct_size = sizeof(how),
                                    .steps = 20,
                                    .window = 16,
                                    .seed = i == 2,
                                    .progress = note,
                                    .context = &l[i]};
        l[i] = (struct losses){.end = 7};
        lm_must(tn_lm_train_adapter(lm, f.ids, POSITIONS, &how));
        cr_assert(eq(int, l[i].count, 7));
        tn_lm_close(lm);
    }
    cr_assert(eq(int, memcmp(l[0].items, l[1].items, 7 * sizeof(double)), 0));
    cr_assert(ne(int, memcmp(l[0].items, l[2].items, 7 * sizeof(double)), 0));
}

static void save_arrays(const char *path, const char *const *names, uint64_t count,
                        int64_t rank, int64_t columns)
{
    tn_array *arrays[4];
    float zeros[4096] = {0};
    tn_scope *scope = tn_scope_open(runtime);
    for (uint64_t i = 0; i < count; i++)
        arrays[i] = strstr(names[i], "lora_b") || strstr(names[i], "lora_B")
                        ? tn_from_data(scope, TN_F32, TN_SHAPE(32, rank), zeros)
                        : tn_from_data(scope, TN_F32, TN_SHAPE(rank, columns), zeros);
    tn_save(scope, path, arrays, names, count, NULL);
    cr_assert(eq(int, (int)tn_scope_status(scope), TN_OK));
    tn_scope_close(scope);
}

Test(adapter, files_that_do_not_fit_leave_the_adapter_as_it_was)
{
    static const struct {
        const char *names[4];
        int64_t columns;
        const char *message;
    } rows[] = {
        {{"blk.0.attn_q.weight.lora_a"},
         16,
         "bad.safetensors: blk.0.attn_q.weight has .lora_a, but no .lora_b"},
        {{"blk.0.attn_q.weight.lora_b"},
         16,
         "bad.safetensors: has 0 arrays ....lora_a and 1 ....lora_b, expected pairs"},
        {{"blk.7.attn_q.weight.lora_a", "blk.7.attn_q.weight.lora_b"},
         16,
         "bad.safetensors: adds to blk.7.attn_q.weight, which no product of the loaded "
         "layers "
         "has"},
        {{"blk.0.attn_norm.weight.lora_a", "blk.0.attn_norm.weight.lora_b"},
         16,
         "bad.safetensors: adds to blk.0.attn_norm.weight, which no product of the loaded "
         "layers has"},
        {{"blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b"},
         17,
         "bad.safetensors: blk.0.attn_q.weight.lora_a and .lora_b are f32 of rank 2 and "
         "f32 of "
         "rank 2, expected floats of [r, 16] and [32, r]"},
        {{"bias"},
         16,
         "bad.safetensors: the array 'bias' is none of an adapter: expected ....lora_a and "
         "....lora_b"},
    };
    struct fixture f;
    struct losses l;
    tn_lm *lm = model_open(&f, "llama");
    train(lm, "llama", f.ids, 33, 5, &l);
    double trained = surprise(lm, f.ids, 33);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t count = 0;
        while (rows[i].names[count])
            count++;
        save_arrays("bad.safetensors", rows[i].names, count, 2, rows[i].columns);
        cr_assert(
            eq(int, (int)tn_lm_adapter_load(lm, "bad.safetensors", 1), TN_ERR_REFUSED));
        check_message(rows[i].message);
    }
    unlink("bad.safetensors");
    cr_assert(eq(dbl, surprise(lm, f.ids, 33), trained));
    tn_lm_close(lm);
}

// A training that runs away is an error, as is one of a model that is no numbers; the
// adapter, and the file, are those from before.
Test(adapter, a_training_that_runs_away_changes_nothing)
{
    static const struct {
        double rate;
        int64_t steps;
        const char *wrong, *message;
    } rows[] = {
        {1e38, 9, NULL, "step 2 of 9: the loss is nan: a lower rate may help"},
        {1e300, 1, NULL, "the adapter's blk.0.attn_q.weight.lora_a: value 0 of 64 is "},
        {1e-3, 1, "output_norm.weight",
         "step 1 of 1: the loss is nan: weights of the model, or of its adapter, are NaN "
         "or infinite, or too large"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fixture f;
        struct losses l;
        tn_lm *lm = model_open(&f, "llama");
        f.wrong = rows[i].wrong;
        const tn_lm_training how = {
            .window = 8, .steps = rows[i].steps, .rate = rows[i].rate};
        double before = 0;
        if (!f.wrong) {
            train(lm, "llama", f.ids, 33, 5, &l);
            before = surprise(lm, f.ids, 33);
        }
        cr_assert(eq(int, tn_lm_train_adapter(lm, f.ids, 33, &how), TN_ERR_REFUSED));
        // A rate of 1e300 gives an infinity, or NaN where products are not fused.
        check_says(tn_lm_error(), rows[i].message);
        if (!f.wrong)
            cr_assert(eq(dbl, surprise(lm, f.ids, 33), before));
        tn_lm_close(lm);
    }
}

static void write_config(const char *text)
{
    FILE *file = fopen("peft/adapter_config.json", "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static const struct {
    const char *config, *names[3], *message; // NULL: it is read
} folders[] = {
#define OWN(part, end) "base_model.model.model.layers.0." part ".lora_" end
#define LORA "{\"peft_type\": \"LORA\", \"r\": 2"
    {LORA ", \"lora_alpha\": 4}",
     {OWN("self_attn.q_proj", "A.weight"), OWN("self_attn.q_proj", "B.weight")},
     NULL},
    {LORA ", \"use_rslora\": true, \"bias\": \"none\", \"modules_to_save\": null}",
     {OWN("self_attn.q_proj", "A.default.weight"),
      OWN("self_attn.q_proj", "B.default.weight"),
      "base_model.model.lm_head.base_layer.weight"},
     NULL},
    {LORA "}",
     {OWN("self_attn.x_proj", "A.weight")},
     "peft/: the array "
     "'base_model.model.model.layers.0.self_attn.x_proj.lora_A.weight' "
     "is none of an adapter: expected ....lora_A.weight and ....lora_B.weight"},
    {LORA "}",
     {OWN("self_attn.q_proj", "A.weight")},
     "peft/: blk.0.attn_q.weight has .lora_a, but no .lora_b"},
    {LORA, {NULL}, "peft/adapter_config.json: line 1: '}' expected near end of file"},
    {"{\"peft_type\": \"IA3\"}",
     {NULL},
     "peft/adapter_config.json: peft_type is IA3, expected LORA"},
    {"{}", {NULL}, "peft/adapter_config.json: peft_type is missing, expected LORA"},
    {LORA ", \"use_dora\": true}",
     {NULL},
     "peft/adapter_config.json: use_dora is true, expected false"},
    {LORA ", \"bias\": \"all\"}",
     {NULL},
     "peft/adapter_config.json: bias is all, expected none"},
    {LORA ", \"alpha_pattern\": {\"q_proj\": 3}}",
     {NULL},
     "peft/adapter_config.json: alpha_pattern is not empty"},
    {LORA ", \"lora_alpha\": \"x\"}",
     {OWN("self_attn.q_proj", "A.weight"), OWN("self_attn.q_proj", "B.weight")},
     "peft/adapter_config.json: lora_alpha is no positive number"},
#undef LORA
#undef OWN
};

// Names of both ages of PEFT, what alpha stands for, and what else a folder may ask for.
Test(adapter, folders_of_peft_are_read_or_refused)
{
    struct fixture f;
    tn_lm *lm = model_open(&f, "llama");
    cr_assert(eq(int, mkdir("peft", 0700), 0));
    cr_assert(ne(int, (int)tn_lm_adapter_load(lm, "peft/", 1), TN_OK));
    check_message("peft/adapter_config.json: No such file or directory: expected what PEFT "
                  "writes beside adapter_model.safetensors");
    for (size_t i = 0; i < COUNT(folders); i++) {
        uint64_t count = 0;
        while (count < 3 && folders[i].names[count])
            count++;
        write_config(folders[i].config);
        if (count)
            save_arrays("peft/adapter_model.safetensors", folders[i].names, count, 2, 16);
        tn_status status = tn_lm_adapter_load(lm, "peft/", 1);
        if (folders[i].message)
            check_message(folders[i].message);
        else if (status != TN_OK)
            cr_fatal("row %zu: %s", i, tn_lm_error());
        cr_assert(eq(int, status == TN_OK, !folders[i].message));
    }
    unlink("peft/adapter_config.json");
    unlink("peft/adapter_model.safetensors");
    rmdir("peft");
    tn_lm_close(lm);
}

Test(adapter, wrong_trainings_are_refused)
{
    static const char *const unknown[] = {"attn_q", "attn_x"};
    const struct {
        tn_lm_training how;
        uint64_t count;
        const char *message;
    } rows[] = {
        {{.weights = unknown, .num_weights = 2},
         9,
         "no product has a weight blk.N.attn_x.weight to adapt"},
        {{.rank = -1},
         9,
         "rank -1, 100 steps of 128 tokens, rate 0.0003, flags 0x0: expected positive "
         "numbers, a window of at most 640 tokens, and no flags"},
        {{.window = 641},
         9,
         "rank 8, 100 steps of 641 tokens, rate 0.0003, flags 0x0: expected positive "
         "numbers, a window of at most 640 tokens, and no flags"},
        {{.steps = 1}, 1, "1 tokens to train on, expected two or more"},
    };
    struct fixture f;
    tn_lm *lm = model_open(&f, "llama");
    for (size_t i = 0; i < COUNT(rows); i++) {
        tn_lm_training how = rows[i].how;
        how.struct_size = sizeof(how);
        cr_assert(eq(int, (int)tn_lm_train_adapter(lm, f.ids, rows[i].count, &how),
                     TN_ERR_ARGUMENT));
        check_message(rows[i].message);
    }
    cr_assert(eq(int, (int)tn_lm_train_adapter(lm, (const int32_t[]){1, WORDS}, 2, NULL),
                 TN_ERR_ARGUMENT));
    cr_assert(eq(int, (int)tn_lm_adapter_save(lm, "none.gguf"), TN_ERR_ARGUMENT));
    check_message("none.gguf: the model has no adapter to write");
    tn_lm_sequence *sequence = sequence_open(lm);
    cr_assert(eq(int, (int)tn_lm_adapter_load(lm, NULL, 1), TN_ERR_ARGUMENT));
    check_message("the adapter of a model that has 1 sequence cannot change");
    tn_lm_sequence_close(sequence);
    lm_must(tn_lm_ensure_shard(lm, 0, 0));
    cr_assert(eq(int, (int)tn_lm_train_adapter(lm, f.ids, 9, NULL), TN_ERR_ARGUMENT));
    check_message("layers 0 to 0 of 2 are loaded, expected all");
    tn_lm_close(lm);
}
