// SPDX-License-Identifier: MIT
// Caches of all elements, sequences that share steps, and sequences in files.
#include <tenon/lm_adapter.h>
#include "fixture.h"
#include <unistd.h>

TestSuite(sequences, .init = setup, .fini = teardown);

// A model with caches of these elements, which so many sequences share; "wide" is a llama
// with one head of 32 elements, as blocks need.
static tn_lm *cached_open(struct fixture *f, const char *name, const char *cache,
                          int64_t sequences, int64_t context)
{
    static const char *const keys[] = {"llama.attention.key_length",
                                       "llama.attention.value_length",
                                       "llama.rope.dimension_count"};
    tn_lm *lm = NULL;
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = context,
                                   .cache = cache,
                                   .sequences = sequences};
    bool is_wide = strcmp(name, "wide") == 0;
    fixture_open(f, is_wide ? "llama" : name);
    if (is_wide) {
        fixture_set(f, "llama.attention.head_count", "1");
        fixture_set(f, "llama.attention.head_count_kv", "1");
        for (int i = 0; i < 3; i++)
            fixture_set(f, keys[i], "32");
        for (int i = 0; i < f->num_weights; i++)
            if (strstr(f->weights[i].name, "attn_k") ||
                strstr(f->weights[i].name, "attn_v"))
                f->weights[i].type.extent[0] = 32;
    }
    lm_must(tn_lm_open_source(runtime, &f->source, &options, &lm));
    return lm;
}

static double apart(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < WORDS; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

// Logits of positions one by one behind a chunk and within one, of which the last are kept.
static void logits_with(const char *name, const char *cache, int64_t sequences,
                        float out[3][WORDS], uint64_t *out_bytes)
{
    struct fixture f;
    tn_lm *lm = cached_open(&f, name, cache, sequences, 700);
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_sequence *sequence = sequence_open(lm);
    tn_lm_describe(lm, &info);
    *out_bytes = info.cache_bytes;
    cr_assert(eq(int, strcmp(info.cache, cache), 0));
    lm_must(tn_lm_infer(sequence, f.ids, 520, 0, out[0])); // parts of keys
    lm_must(tn_lm_infer(sequence, f.ids + 520, 1, 0, out[1]));
    lm_must(tn_lm_infer(sequence, f.ids + 521, 20, 0, out[2]));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

Test(sequences, caches_of_all_elements_give_near_logits)
{
    static const struct {
        const char *name, *cache;
        int64_t sequences;
        double least, most; // difference from f32
        double bytes;       // share of those of f32
    } rows[] = {
        {"llama", "f32", 3, 0, 1e-5, 1},
        {"llama", "f16", 1, 1e-6, 3e-3, 0.5},
        {"llama", "f16", 2, 1e-6, 3e-3, 0.5},
        {"mistral", "f32", 2, 0, 1e-5, 1},
        {"qwen3", "f16", 1, 1e-6, 3e-3, 0.5},
        {"wide", "q8_0", 1, 1e-5, 3e-2, 34.0 / 128},
        {"wide", "q8_0", 3, 1e-5, 3e-2, 34.0 / 128},
        {"wide", "f16", 3, 1e-6, 3e-3, 0.5},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float exact[3][WORDS], got[3][WORDS];
        uint64_t all, bytes;
        logits_with(rows[i].name, "f32", 1, exact, &all);
        logits_with(rows[i].name, rows[i].cache, rows[i].sequences, got, &bytes);
        cr_assert(lt(dbl, fabs((double)bytes / (double)all - rows[i].bytes), 1e-9));
        for (int k = 0; k < 3; k++) {
            double error = apart(exact[k], got[k]);
            if (!(error >= rows[i].least && error <= rows[i].most))
                cr_fatal("row %zu, logits %d: differ by %g, expected %g to %g", i, k, error,
                         rows[i].least, rows[i].most);
        }
    }
}

Test(sequences, wrong_options_are_refused)
{
    static const struct {
        const char *cache;
        int64_t sequences;
        const char *message;
    } rows[] = {
        {"f8", 0, "caches of 'f8', expected f16, f32 or q8_0"},
        {"q8_0", 0,
         "caches of q8_0 need heads of a multiple of 32 elements, this model's have 8"},
        {NULL, -1, "-1 sequences that share caches, expected 0 to 1024"},
        {NULL, 1025, "1025 sequences that share caches, expected 0 to 1024"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        tn_lm *lm = NULL;
        const tn_lm_options options = {.struct_size = sizeof(options),
                                       .cache = rows[i].cache,
                                       .sequences = rows[i].sequences};
        fixture_open(&f, "llama");
        cr_assert(
            eq(int, tn_lm_open_source(runtime, &f.source, &options, &lm), TN_ERR_ARGUMENT));
        check_message(rows[i].message);
        cr_assert(eq(int, f.closed, 1));
    }
}

// --- steps of several ------------------------------------------------------------------

enum { TEXTS = 6, ROUNDS = 5 };
static const int64_t firsts[TEXTS] = {3, 70, 9, 1, 20, 129};

// What each text gives alone: logits behind the prompt, and behind tokens one by one.
static void alone(const char *name, const char *cache, float out[TEXTS][ROUNDS][WORDS])
{
    struct fixture f;
    tn_lm *lm = cached_open(&f, name, cache, 1, 150);
    for (int t = 0; t < TEXTS; t++) {
        tn_lm_sequence *sequence = sequence_open(lm);
        lm_must(tn_lm_infer(sequence, f.ids + t, firsts[t], 0, out[t][0]));
        for (int r = 1; r < ROUNDS; r++)
            lm_must(tn_lm_infer(sequence, f.ids + 300 + 7 * t + r, 1, 0, out[t][r]));
        tn_lm_sequence_close(sequence);
    }
    tn_lm_close(lm);
}

// The texts at once, of which some come later; one of them is broken in between.
static void together(const char *name, const char *cache, int64_t slots, double most,
                     float expected[TEXTS][ROUNDS][WORDS])
{
    struct fixture f;
    tn_lm *lm = cached_open(&f, name, cache, slots, 150);
    tn_lm_sequence *sequences[TEXTS];
    for (int t = 0; t < TEXTS; t++)
        sequences[t] = sequence_open(lm);
    for (int step = 0; step < ROUNDS + 1; step++) { // texts of odd numbers begin later
        tn_lm_item items[TEXTS];
        float got[TEXTS][WORDS];
        int count = 0, texts[TEXTS], round[TEXTS];
        for (int t = TEXTS - 1; t >= 0; t--) {
            round[count] = step - t % 2;
            texts[count] = t;
            if (round[count] < 0 || round[count] >= ROUNDS)
                continue;
            bool is_first = round[count] == 0;
            items[count] = (tn_lm_item){
                .sequence = sequences[t],
                .ids = is_first ? f.ids + t : f.ids + 300 + 7 * t + round[count],
                .count = is_first ? firsts[t] : 1,
                .out_logits = got[count],
                .status = TN_ERR_INTERNAL};
            count++;
        }
        lm_must(tn_lm_infer_batch(items, (uint64_t)count));
        for (int i = 0; i < count; i++) {
            double error = apart(got[i], expected[texts[i]][round[i]]);
            if (!(error <= most) || items[i].status != TN_OK)
                cr_fatal("%s, caches of %s, %d slots: round %d of text %d differs by %g",
                         name, cache, (int)slots, round[i], texts[i], error);
        }
    }
    for (int t = 0; t < TEXTS; t++) {
        cr_assert(eq(i64, tn_lm_sequence_length(sequences[t]), firsts[t] + ROUNDS - 1));
        tn_lm_sequence_close(sequences[t]);
    }
    tn_lm_close(lm);
}

// All in the same arrays, or in several; a step of 6, and of 3 behind the others.
Test(sequences, steps_of_several_give_what_each_gives_alone)
{
    static const struct {
        const char *name, *cache;
        int64_t slots;
        double error; // a key between two halves may become either of them: 7e-5 with AVX2
    } rows[] = {{"llama", "f32", 8, 1e-5},   {"qwen3", "f32", 6, 1e-5},
                {"mistral", "f16", 7, 1e-4}, {"wide", "q8_0", 16, 1e-5},
                {"qwen2", "f32", 4, 1e-5},   {"llama", "f32", 1, 1e-5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static float expected[TEXTS][ROUNDS][WORDS];
        alone(rows[i].name, rows[i].cache, expected);
        together(rows[i].name, rows[i].cache, rows[i].slots, rows[i].error, expected);
    }
}

Test(sequences, an_item_that_fails_takes_no_other_one_down)
{
    struct fixture f;
    tn_lm *lm = cached_open(&f, "llama", "f32", 4, 20);
    tn_lm_sequence *s[4];
    float expected[WORDS], got[4][WORDS];
    const int32_t wrong = WORDS;
    for (int i = 0; i < 4; i++)
        s[i] = sequence_open(lm);
    lm_must(tn_lm_infer(s[0], f.ids, 20, 0, NULL)); // full
    lm_must(tn_lm_infer(s[1], f.ids, 5, 0, NULL));
    lm_must(tn_lm_infer(s[1], f.ids + 5, 1, 0, expected));
    lm_must(tn_lm_sequence_cut(s[1], 5));
    tn_lm_item items[] = {{s[0], f.ids, 1, got[0], 0, 0},
                          {s[1], f.ids + 5, 1, got[1], 0, 0},
                          {s[2], &wrong, 1, got[2], 0, 0},
                          {s[3], f.ids, 2, NULL, 0, 0},
                          {s[1], f.ids, 1, NULL, 0, 0}};
    cr_assert(eq(int, tn_lm_infer_batch(items, 5), TN_ERR_ARGUMENT));
    check_message("1 positions are too many: the context has 20, of which 0 are left");
    const tn_status statuses[] = {TN_ERR_ARGUMENT, TN_OK, TN_ERR_ARGUMENT, TN_OK,
                                  TN_ERR_ARGUMENT};
    const int64_t lengths[] = {20, 6, 0, 2};
    for (int i = 0; i < 5; i++)
        cr_assert(eq(int, items[i].status, statuses[i]));
    for (int i = 0; i < 4; i++)
        cr_assert(eq(i64, tn_lm_sequence_length(s[i]), lengths[i]));
    cr_assert(lt(dbl, apart(got[1], expected), 1e-5));
    lm_must(tn_lm_infer_batch(items, 0));
    for (int i = 0; i < 4; i++)
        tn_lm_sequence_close(s[i]);
    tn_lm_close(lm);
}

// --- texts at once ---------------------------------------------------------------------

struct told {
    int32_t ids[32];
    int count, most;
};

static int32_t tell(void *context, const tn_lm_piece *piece)
{
    struct told *told = context;
    told->ids[told->count++] = piece->id;
    return told->most && told->count == told->most;
}

// More requests than sequences: each has the tokens that it has alone; one is refused, and
// one ends itself.
Test(sequences, requests_are_generated_as_alone)
{
    enum { REQUESTS = 7, REFUSED = 2, ENDING = 4 };
    static const int64_t tokens[REQUESTS] = {20, 3, 5, 11, 0, 1, 9};
    struct fixture f;
    tn_lm *lm = cached_open(&f, "llama", "f32", 3, 60);
    tn_lm_request requests[REQUESTS];
    tn_lm_result results[REQUESTS];
    tn_lm_generation hows[REQUESTS];
    struct told told[REQUESTS] = {{.count = 0}}, expected[REQUESTS] = {{.count = 0}};
    tn_lm_sampling draws[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        draws[i] = (tn_lm_sampling){
            .struct_size = sizeof(draws[i]), .temperature = i % 2, .seed = (uint64_t)i};
        hows[i] = (tn_lm_generation){.struct_size = sizeof(hows[i]),
                                     .ids = f.ids + i,
                                     .num_ids = i == REFUSED ? 61 : (uint64_t)(5 + 3 * i),
                                     .max_tokens = tokens[i],
                                     .sampling = &draws[i],
                                     .piece = tell,
                                     .context = &expected[i]};
        expected[i].most = told[i].most = i == ENDING ? 6 : 0;
        tn_lm_sequence *sequence = sequence_open(lm);
        cr_assert(eq(int, tn_lm_generate(sequence, &hows[i], NULL),
                     i == REFUSED ? TN_ERR_ARGUMENT : TN_OK));
        tn_lm_sequence_close(sequence);
    }
    for (int64_t at_once = 0; at_once < 6; at_once += 5) {
        for (int i = 0; i < REQUESTS; i++) {
            told[i].count = 0;
            hows[i].context = &told[i];
            results[i] = (tn_lm_result){.struct_size = sizeof(results[i])};
            requests[i] = (tn_lm_request){
                .how = &hows[i], .out_result = &results[i], .status = TN_ERR_INTERNAL};
        }
        cr_assert(eq(int, tn_lm_generate_batch(lm, requests, REQUESTS, at_once),
                     TN_ERR_ARGUMENT));
        check_message(
            "61 positions are too many: the context has 60, of which 60 are left");
        for (int i = 0; i < REQUESTS; i++) {
            if (i == REFUSED) {
                cr_assert(eq(int, requests[i].status, TN_ERR_ARGUMENT));
                continue;
            }
            cr_assert(eq(int, requests[i].status, TN_OK));
            cr_assert(
                eq(u32, results[i].reason, i == ENDING ? TN_LM_CANCELLED : TN_LM_LENGTH));
            cr_assert(eq(i64, results[i].tokens, i == ENDING ? 6 : tokens[i]));
            cr_assert(eq(int, told[i].count, expected[i].count));
            cr_assert(eq(int, memcmp(told[i].ids, expected[i].ids, sizeof(told[i].ids)), 0),
                      "request %d", i);
        }
    }
    tn_lm_close(lm);
}

// --- files -----------------------------------------------------------------------------

static char path[] = "/tmp/tenon-sequence-XXXXXX";

static void write_file(const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert(eq(sz, fwrite(data, 1, size, file), size));
    fclose(file);
}

static size_t read_file(char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t size = fread(data, 1, room, file);
    cr_assert(lt(sz, size, room));
    fclose(file);
    return size;
}

// A restored sequence goes on with the same bits, in another model with more room.
static void goes_on(const char *name, const char *cache, int64_t slots)
{
    struct fixture f, g;
    float expected[WORDS], got[WORDS];
    tn_lm *lm = cached_open(&f, name, cache, slots, 150);
    tn_lm *other = cached_open(&g, name, cache, slots, 200);
    tn_lm_sequence *first = sequence_open(lm), *saved = sequence_open(lm);
    tn_lm_sequence *beside = sequence_open(other), *restored = sequence_open(other);
    lm_must(tn_lm_infer(first, f.ids + 9, 4, 0, NULL));
    lm_must(tn_lm_infer(saved, f.ids, 100, 0, NULL));
    lm_must(tn_lm_sequence_save(saved, path));
    lm_must(tn_lm_infer(saved, f.ids + 100, 1, 0, expected));
    lm_must(tn_lm_infer(beside, f.ids + 9, 4, 0, NULL));
    lm_must(tn_lm_infer(restored, f.ids + 50, 120, 0, NULL)); // is replaced
    lm_must(tn_lm_sequence_restore(restored, path));
    cr_assert(eq(i64, tn_lm_sequence_length(restored), 100));
    lm_must(tn_lm_infer(restored, f.ids + 100, 1, 0, got));
    cr_assert(lt(dbl, apart(got, expected), 1e-6), "%s, caches of %s", name, cache);
    lm_must(tn_lm_infer(first, f.ids + 13, 1, 0, expected)); // the neighbour is as it was
    lm_must(tn_lm_infer(beside, f.ids + 13, 1, 0, got));
    cr_assert(lt(dbl, apart(got, expected), 1e-6));
    tn_lm_sequence_close(first);
    tn_lm_sequence_close(saved);
    tn_lm_sequence_close(beside);
    tn_lm_sequence_close(restored);
    tn_lm_close(lm);
    tn_lm_close(other);
}

Test(sequences, saved_ones_go_on)
{
    static const struct {
        const char *name, *cache;
        int64_t slots;
    } rows[] = {{"llama", "f32", 1},
                {"qwen3", "f16", 1},
                {"llama", "f16", 2},
                {"wide", "q8_0", 1},
                {"wide", "q8_0", 3}};
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        goes_on(rows[i].name, rows[i].cache, rows[i].slots);
    unlink(path);
}

// Restores what is in the file, which must fail and leave the sequence as it is.
static void refused(tn_lm_sequence *sequence, tn_status status, const char *message)
{
    tn_status got = tn_lm_sequence_restore(sequence, path);
    const char *text = tn_lm_error();
    if (got == TN_OK)
        cr_fatal("the file was taken, expected status %d: ...%s", (int)status,
                 message ? message : "");
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), 7));
    if (got != status || (message && !strstr(text, message)))
        cr_fatal("status %d: %s\nexpected %d: ...%s", (int)got, text, (int)status,
                 message ? message : "");
}

static tn_lm *adapted_open(struct fixture *f, uint64_t seed)
{
    tn_lm *lm = cached_open(f, "llama", "f16", 1, 60);
    const tn_lm_training how = {
        .struct_size = sizeof(how), .steps = 2, .window = 16, .seed = seed};
    if (seed)
        lm_must(tn_lm_train_adapter(lm, f->ids, POSITIONS, &how));
    return lm;
}

// A cache is of the weights that it was computed with, those of an adapter among them.
Test(sequences, saved_ones_belong_to_their_adapter)
{
    struct fixture f, g;
    close(mkstemp(path));
    for (uint64_t saved = 0; saved < 3; saved++)
        for (uint64_t read = 0; read < 3; read++) {
            tn_lm *lm = adapted_open(&f, saved), *other = adapted_open(&g, read);
            tn_lm_sequence *first = sequence_open(lm), *second = sequence_open(other);
            lm_must(tn_lm_infer(first, f.ids, 9, 0, NULL));
            lm_must(tn_lm_infer(second, g.ids, 7, 0, NULL));
            lm_must(tn_lm_sequence_save(first, path));
            if (saved == read)
                lm_must(tn_lm_sequence_restore(second, path));
            else
                refused(second, TN_ERR_REFUSED,
                        saved  ? ": was saved with another adapter: "
                        : read ? ": was saved with another adapter: none, expected "
                               : NULL);
            tn_lm_sequence_close(first);
            tn_lm_sequence_close(second);
            tn_lm_close(lm);
            tn_lm_close(other);
        }
    unlink(path);
}

// Files that are cut at any place, have a byte changed in front of the arrays, or belong to
// something else.
Test(sequences, wrong_files_are_refused)
{
    static const struct {
        const char *name, *cache;
        int64_t context;
        tn_status status;
        const char *message;
    } rows[] = {
        {"llama_tied", "f16", 60, TN_ERR_REFUSED, "was saved with another model"},
        {"llama", "f32", 60, TN_ERR_REFUSED,
         "has caches of other elements: f16, expected "
         "f32"},
        {"llama", "f16", 30, TN_ERR_ARGUMENT, "has 40 positions, the context has 30"},
    };
    enum { ROOM = 65536 };
    static char data[ROOM], changed[ROOM];
    struct fixture f;
    close(mkstemp(path));
    tn_lm *lm = cached_open(&f, "llama", "f16", 1, 60);
    tn_lm_sequence *sequence = sequence_open(lm);
    cr_assert(eq(int, tn_lm_sequence_save(sequence, path), TN_ERR_ARGUMENT));
    lm_must(tn_lm_infer(sequence, f.ids, 40, 0, NULL));
    lm_must(tn_lm_sequence_save(sequence, path));
    lm_must(tn_lm_sequence_cut(sequence, 7));
    size_t size = read_file(data, ROOM);
    for (size_t cut = 0; cut < size; cut += 1 + size / 40) {
        write_file(data, cut);
        refused(sequence, TN_ERR_REFUSED, NULL);
    }
    // The numbers in front are the header's length, and its text.
    size_t header =
        8 + (size_t)(unsigned char)data[0] + 256 * (size_t)(unsigned char)data[1];
    int took = 0;
    for (size_t at = 0; at < header; at += 7) { // some bytes say nothing: spaces, names
        memcpy(changed, data, size);
        changed[at] = (char)(changed[at] ^ 1);
        write_file(changed, size);
        tn_status status = tn_lm_sequence_restore(sequence, path);
        took += status == TN_OK;
        lm_must(tn_lm_sequence_cut(sequence, 7));
    }
    cr_assert(eq(int, took, 0));
    write_file(data, size);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture g;
        tn_lm *other = cached_open(&g, rows[i].name, rows[i].cache, 1, rows[i].context);
        tn_lm_sequence *own = sequence_open(other);
        lm_must(tn_lm_infer(own, g.ids, 7, 0, NULL));
        refused(own, rows[i].status, rows[i].message);
        tn_lm_sequence_close(own);
        tn_lm_close(other);
    }
    unlink(path);
    refused(sequence, TN_ERR_IO, "No such file");
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

// Where a saved file has the ids.
static char *find_ids(char *data, size_t size, const int32_t *ids, size_t count)
{
    char *at = memmem(data, size, ids, count * sizeof(*ids));
    cr_assert(ne(ptr, at, NULL), "the file has no ids");
    return at;
}

// Files with one id altered: those of no token are refused wherever they stand, -1 (the
// position of a row that is no token's) and the numbers of images' rows are not.
Test(sequences, saved_ids_are_of_the_vocabulary)
{
    enum { LENGTH = 40, ROOM = 65536 };
    static const struct {
        int32_t id;
        bool is_known;
    } rows[] = {{WORDS, false},     {WORDS + 1, false}, {1 << 20, false},
                {INT32_MAX, false}, {-2, false},        {INT32_MIN + (1 << 30), false},
                {0, true},          {WORDS - 1, true},  {-1, true},
                {INT32_MIN, true}};
    static const int places[] = {0, LENGTH / 2, LENGTH - 1};
    static char data[ROOM];
    char message[64];
    struct fixture f;
    close(mkstemp(path));
    tn_lm *lm = cached_open(&f, "llama", "f16", 1, 60);
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f.ids, LENGTH, 0, NULL));
    lm_must(tn_lm_sequence_save(sequence, path));
    size_t size = read_file(data, ROOM);
    char *ids = find_ids(data, size, f.ids, LENGTH);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int k = 0; k < 3; k++) {
            char *at = ids + (size_t)places[k] * sizeof(int32_t);
            lm_must(tn_lm_sequence_cut(sequence, 7));
            memcpy(at, &rows[i].id, sizeof(int32_t));
            write_file(data, size);
            memcpy(at, &f.ids[places[k]], sizeof(int32_t));
            snprintf(message, sizeof(message), "token %d is %d, expected -1 to %d",
                     places[k], (int)rows[i].id, WORDS - 1);
            if (rows[i].is_known)
                lm_must(tn_lm_sequence_restore(sequence, path));
            else
                refused(sequence, TN_ERR_REFUSED, message);
        }
    unlink(path);
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}
