// SPDX-License-Identifier: MIT
// Weights that stay f16 or bf16, against the same ones as f32: logits, memory, and a real
// model's perplexity and tokens, where TEST_MODELS has it. On the backends of
// TENON_BACKEND.
#include <tenon/file.h>
#include "../fixture.h"

TestSuite(halves, .init = setup, .fini = teardown);

enum { SHORT = 45 };
static const tn_dtype halves[] = {TN_F16, TN_BF16};

// The logits of a prompt, all of them, and of positions one by one and by some behind it.
static void logits_of(const char *name, tn_dtype half, bool is_widened, float norm_scale,
                      float out[SHORT][WORDS], tn_lm_info *info)
{
    struct fixture f;
    tn_lm *lm = NULL;
    const tn_lm_options options = {.struct_size = sizeof(options), .cache = "f32"};
    fixture_open(&f, name);
    f.half = half;
    f.is_widened = is_widened;
    f.norm_scale = norm_scale;
    lm_must(tn_lm_open_source(runtime, &f.source, &options, &lm));
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f.ids, SHORT - 8, TN_LM_ALL_ROWS, out[0]));
    lm_must(tn_lm_infer(sequence, f.ids + SHORT - 8, 1, TN_LM_ALL_ROWS, out[SHORT - 8]));
    lm_must(tn_lm_infer(sequence, f.ids + SHORT - 7, 7, TN_LM_ALL_ROWS, out[SHORT - 7]));
    tn_lm_describe(lm, info);
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

static void check_logits(const char *name, tn_dtype half, float norm_scale)
{
    static float got[SHORT][WORDS], want[SHORT][WORDS];
    tn_lm_info info = {.struct_size = sizeof(info)}, wide = info;
    logits_of(name, half, false, norm_scale, got, &info);
    logits_of(name, half, true, norm_scale, want, &wide);
    cr_assert(lt(u64, info.weight_bytes, wide.weight_bytes * 6 / 10), "%s", name);
    for (int i = 0; i < SHORT; i++)
        for (int j = 0; j < WORDS; j++) {
            double size = fmax(1, (double)norm_scale);
            cr_assert(isfinite(want[i][j]));
            if (!(fabs((double)got[i][j] - (double)want[i][j]) <= 1e-4 * size))
                cr_fatal("%s, %s: logit %d of position %d is %.7g, expected %.7g", name,
                         tn_dtype_name(half), j, i, (double)got[i][j], (double)want[i][j]);
        }
}

// Embeddings of their own and tied ones, joined rows, biases, experts.
Test(halves, small_models_have_the_logits_of_f32)
{
    static const char *const names[] = {"llama", "llama_tied", "gemma2",
                                        "qwen2", "phi3",       "mixtral"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check_logits(names[i], halves[i % 2], 0);
    check_logits("llama", TN_BF16, 0);
}

// Products read 1e5 and make 1e10 of it, far from what f16 has.
Test(halves, small_models_keep_large_activations)
{
    for (size_t d = 0; d < 2; d++)
        check_logits("llama", halves[d], 1e5f);
}

// Matrices have two bytes an element, a tied embedding once, and nothing that loading
// needed is beside them.
Test(halves, small_models_are_in_memory_as_in_the_file)
{
    for (size_t d = 0; d < 2; d++) {
        struct fixture f;
        tn_lm *lm = NULL;
        uint64_t bytes = 0;
        fixture_open_wide(&f);
        f.half = halves[d];
        f.missing = "output.weight";
        fixture_set(&f, "llama.vocab_size", "65536");
        ((struct fixture_weight *)(uintptr_t)fixture_weight(&f, "token_embd.weight"))
            ->type.extent[0] = 65536;
        for (int i = 0; i < f.num_weights; i++) {
            const tn_type *type = &f.weights[i].type;
            uint64_t count = type->dtype == TN_F16 ? 2 : 4;
            for (int32_t axis = 0; axis < type->rank; axis++)
                count *= (uint64_t)type->extent[axis];
            bytes += strcmp(f.weights[i].name, f.missing) != 0 ? count : 0;
        }
        lm_must(tn_lm_open_source(runtime, &f.source, NULL, &lm));
        uint64_t at_first = stats_of(runtime).buffer_bytes;
        lm_must(tn_lm_ensure_shard(lm, 0, 1));
        tn_lm_info info = {.struct_size = sizeof(info)};
        tn_lm_describe(lm, &info);
        uint64_t more = stats_of(runtime).buffer_bytes - at_first;
        cr_expect(eq(u64, info.weight_bytes, bytes));
        cr_expect(le(u64, more, bytes + bytes / 16));
        tn_lm_close(lm);
    }
}

// --- a real model -----------------------------------------------------------------------

#define REAL "SmolLM2-135M-Instruct.Q4_1.gguf"

// The weights of a file, its matrices rounded to `half`, and as f32 again or so.
struct real {
    tn_file *file;
    tn_dtype half;
    bool is_widened;
};

static uint64_t real_index(const struct real *real, const char *name)
{
    uint64_t i = 0;
    while (tn_file_name(real->file, i) && strcmp(tn_file_name(real->file, i), name) != 0)
        i++;
    return i;
}

static int32_t real_find(const tn_lm_source *source, const char *name, tn_type *out_type,
                         const char **out_format)
{
    const struct real *real = source->context;
    uint64_t i = real_index(real, name);
    if (!tn_file_name(real->file, i))
        return 0;
    *out_type = *tn_file_type(real->file, i);
    *out_format = NULL;
    if (tn_file_format(real->file, i))
        out_type->extent[out_type->rank - 1] = tn_file_columns(real->file, i);
    out_type->dtype = out_type->rank < 2 || real->is_widened ? TN_F32 : real->half;
    return 1;
}

static tn_array *real_load(const tn_lm_source *source, tn_scope *scope, const char *name)
{
    const struct real *real = source->context;
    const char *format = tn_file_format(real->file, real_index(real, name));
    tn_array *array = tn_file_array(scope, real->file, name);
    if (format)
        array = tn_op(scope, "quant.dequantize", TN_IN(array), tn_attrs("format", format));
    const tn_type *type = tn_array_type(array);
    if (!array || type->rank < 2)
        return array;
    array = tn_op(scope, "base.astype", TN_IN(array),
                  tn_attrs("dtype", tn_dtype_name(real->half)));
    if (real->is_widened) // a program of both would not round
        must(scope, tn_eval(scope, array));
    return real->is_widened
               ? tn_op(scope, "base.astype", TN_IN(array), tn_attrs("dtype", "f32"))
               : array;
}

static tn_lm *real_open(struct real *real, const char *path)
{
    const tn_lm_options options = {.struct_size = sizeof(options), .context = 400};
    tn_lm *lm = NULL;
    must(NULL, tn_file_open(runtime, path, NULL, &real->file));
    const tn_lm_source source = {.struct_size = sizeof(source),
                                 .metadata = tn_file_metadata(real->file),
                                 .context = real,
                                 .find = real_find,
                                 .load = real_load};
    lm_must(tn_lm_open_source(runtime, &source, &options, &lm));
    return lm;
}

static int64_t best_of(const float *logits, int64_t words)
{
    int64_t best = 0;
    for (int64_t i = 1; i < words; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

// How far the best logit is from the next one.
static double lead(const float *logits, int64_t words)
{
    int64_t best = best_of(logits, words);
    double next = -INFINITY;
    for (int64_t i = 0; i < words; i++)
        next = i != best ? fmax(next, (double)logits[i]) : next;
    return (double)logits[best] - next;
}

// The surprise at `ids` behind `first`, in nats a token.
static double surprise(const float *logits, int64_t words, const int32_t *ids,
                       int64_t first, int64_t count)
{
    double all = 0;
    for (int64_t i = first; i < count; i++) {
        const float *row = logits + (i - 1) * words;
        double most = (double)row[best_of(row, words)], sum = 0;
        for (int64_t j = 0; j < words; j++)
            sum += exp((double)row[j] - most);
        all += most + log(sum) - (double)row[ids[i]];
    }
    return all / (double)(count - first);
}

static const char text[] =
    "The lighthouse stood at the end of a long spit of gravel, and in winter the sea came "
    "over it on both sides. Nobody had lived there since the lamp was made automatic, but "
    "the garden wall had been kept in repair by a man from the village, who said that a "
    "wall is the last thing to give up on. He grew nothing behind it. On clear days one "
    "could see the mountains across the water, and he would sit with his back against the "
    "stones and name them, from north to south, as his mother had taught him to.";

// What both say to each of `chosen` tokens behind `prompt` ones, to a quarter of them one
// by one, and to all of the text. Tells where they differ, and where f32 would not go on
// so.
static void check_pair(tn_lm *lm, tn_lm *other, const int32_t *ids, uint64_t count,
                       const int32_t *all, uint64_t prompt, uint64_t chosen, tn_dtype half,
                       int *others_of_f32)
{
    const uint64_t apart = chosen / 4, behind = prompt + apart;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(lm, &info);
    int64_t words = info.vocabulary;
    double near = half == TN_F16 ? 0.1 : 0.25;
    size_t rows = chosen + prompt > count ? chosen + prompt : count;
    float *want = malloc(rows * (size_t)words * sizeof(float));
    float *got = malloc(rows * (size_t)words * sizeof(float));
    tn_lm_sequence *a = sequence_open(lm), *b = sequence_open(other);
    lm_must(tn_lm_infer(a, all, (int64_t)(prompt + chosen), TN_LM_ALL_ROWS, want));
    lm_must(tn_lm_infer(b, all, (int64_t)prompt, TN_LM_ALL_ROWS, got));
    for (uint64_t i = prompt; i < behind; i++)
        lm_must(tn_lm_infer(b, all + i, 1, TN_LM_ALL_ROWS, got + i * (uint64_t)words));
    lm_must(tn_lm_infer(b, all + behind, (int64_t)(chosen - apart), TN_LM_ALL_ROWS,
                        got + behind * (uint64_t)words));
    int others = 0;
    for (uint64_t i = prompt; i < prompt + chosen; i++) {
        const float *row = want + (i - 1) * (uint64_t)words;
        int64_t is = best_of(got + (i - 1) * (uint64_t)words, words);
        *others_of_f32 += best_of(row, words) != all[i];
        if (is == best_of(row, words))
            continue;
        fprintf(stderr, "%s: token %d of %d is %d, of f32 %d, which leads by %g\n",
                tn_dtype_name(half), (int)(i - prompt), (int)chosen, (int)is,
                (int)best_of(row, words), lead(row, words));
        cr_expect(lt(dbl, lead(row, words), near));
        others++;
    }
    cr_expect(le(int, others, 4));
    lm_must(tn_lm_sequence_cut(a, 0));
    lm_must(tn_lm_sequence_cut(b, 0));
    lm_must(tn_lm_infer(a, ids, (int64_t)count, TN_LM_ALL_ROWS, want));
    lm_must(tn_lm_infer(b, ids, (int64_t)count, TN_LM_ALL_ROWS, got));
    double of_f32 = exp(surprise(want, words, ids, 1, (int64_t)count));
    double of_half = exp(surprise(got, words, ids, 1, (int64_t)count));
    fprintf(stderr, "%s: perplexity %.5f, of f32 %.5f\n", tn_dtype_name(half), of_half,
            of_f32);
    cr_expect(le(dbl, fabs(of_half - of_f32), 0.002 * of_f32));
    tn_lm_sequence_close(a);
    tn_lm_sequence_close(b);
    free(want);
    free(got);
}

// The first words of the text, and the tokens that the model with f32 chooses behind them:
// alike for weights that were rounded to f16 and to bf16.
enum { PROMPT = 14, CHOSEN = 200 };
static const int32_t greedy[PROMPT + CHOSEN] = {
    504,   33059, 9318,  418,   260,   1112,  282,   253,   986,   38969, 282,   19282,
    28,    354,   22600, 2678,  338,   761,   719,   2837,  288,   2037,  260,   4051,
    282,   260,   5432,  282,   3906,  8094,  30,    378,   5432,  436,   253,   1379,
    282,   10288, 284,   9675,  28,    253,   1379,  837,   260,   3426,  761,   719,
    10832, 411,   260,   9734,  30,    198,   198,   504,   5432,  436,   1137,  288,
    325,   45812, 28,    284,   4325,  617,   14997, 624,   20928, 736,   325,   33814,
    288,   11930, 260,   3605,  9146,  282,   260,   41849, 30,    378,   5432,  366,
    761,   719,   7956,  260,   5575,  28,    284,   502,   761,   719,   7956,  260,
    33059, 30,    1069,  761,   719,   7956,  260,   5575,  28,    284,   502,   761,
    719,   7956,  260,   33059, 30,    198,   198,   504,   5432,  366,   761,   719,
    7956,  260,   5575,  28,    284,   502,   761,   719,   7956,  260,   33059, 30,
    1069,  761,   719,   7956,  260,   5575,  28,    284,   502,   761,   719,   7956,
    260,   33059, 30,    1069,  761,   719,   7956,  260,   5575,  28,    284,   502,
    761,   719,   7956,  260,   33059, 30,    198,   198,   504,   5432,  366,   761,
    719,   7956,  260,   5575,  28,    284,   502,   761,   719,   7956,  260,   33059,
    30,    1069,  761,   719,   7956,  260,   5575,  28,    284,   502,   761,   719,
    7956,  260,   33059, 30,    1069,  761,   719,   7956,  260,   5575,  28,    284,
    502,   761,   719,   7956,  260,   33059, 30,    198,   198,   504};

static void check_real(const char *path, tn_dtype half)
{
    struct real wide = {.half = half, .is_widened = true}, narrow = {.half = half};
    tn_lm *lm = real_open(&wide, path), *other = real_open(&narrow, path);
    int32_t *ids, *start;
    uint64_t count, prompt;
    int others = 0;
    lm_must(tn_lm_tokenize(lm, text, strlen(text), 0, &ids, &count));
    lm_must(tn_lm_tokenize(lm, text, 60, 0, &start, &prompt));
    cr_assert(prompt == PROMPT && memcmp(start, greedy, PROMPT * sizeof(*start)) == 0);
    check_pair(lm, other, ids, count, greedy, PROMPT, CHOSEN, half, &others);
    cr_expect(le(int, others, 2)); // near ties, which another order of sums decides
    tn_lm_free(ids);
    tn_lm_free(start);
    tn_lm_close(lm);
    tn_lm_close(other);
    tn_file_close(wide.file);
    tn_file_close(narrow.file);
}

// A llama that is wide enough for what multiplies many rows, with a prompt of many.
static tn_lm *broad_open(struct fixture *f, tn_dtype half, bool is_widened)
{
    static const struct {
        const char *name;
        int64_t rows, columns;
    } extents[] = {{"embd", WORDS, 256},   {"output.weight", WORDS, 256},
                   {"attn_q", 256, 256},   {"attn_k.", 128, 256},
                   {"attn_v.", 128, 256},  {"attn_output", 256, 256},
                   {"ffn_gate", 768, 256}, {"ffn_up", 768, 256},
                   {"ffn_down", 256, 768}, {"norm", 256, 0}};
    const tn_lm_options options = {.struct_size = sizeof(options), .context = POSITIONS};
    tn_lm *lm = NULL;
    fixture_open(f, "llama");
    f->half = half;
    f->is_widened = is_widened;
    fixture_set(f, "llama.embedding_length", "256");
    fixture_set(f, "llama.feed_forward_length", "768");
    fixture_set(f, "llama.attention.key_length", "64");
    fixture_set(f, "llama.attention.value_length", "64");
    for (int i = 0; i < f->num_weights; i++)
        for (size_t k = 0; k < sizeof(extents) / sizeof(extents[0]); k++)
            if (strstr(f->weights[i].name, extents[k].name)) {
                f->weights[i].type.extent[0] = extents[k].rows;
                f->weights[i].type.extent[1] = extents[k].columns;
            }
    lm_must(tn_lm_open_source(runtime, &f->source, &options, &lm));
    return lm;
}

Test(halves, small_models_say_what_they_say_in_f32)
{
    for (size_t d = 0; d < 2; d++) {
        struct fixture wide, narrow;
        tn_lm *lm = broad_open(&wide, halves[d], true);
        tn_lm *other = broad_open(&narrow, halves[d], false);
        int others = 0; // these tokens are any
        check_pair(lm, other, wide.ids, 240, wide.ids, 160, 48, halves[d], &others);
        tn_lm_close(lm);
        tn_lm_close(other);
    }
}

Test(halves, a_real_model_says_what_it_says_in_f32)
{
    char path[512];
    const char *folder = getenv("TEST_MODELS");
    snprintf(path, sizeof(path), "%s/" REAL, folder ? folder : "/nowhere");
    FILE *file = fopen(path, "rb");
    if (!file)
        cr_skip("run tools/packages/models");
    fclose(file);
    check_real(path, TN_F16);
    check_real(path, TN_BF16);
}
