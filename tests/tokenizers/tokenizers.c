// SPDX-License-Identifier: MIT
// Tokenizers, with the beginnings of two real vocabularies: ids are those of llama.cpp
// (fixtures/ids.txt), words are merged as their definition says, and bad metadata are
// refused with words.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "assertion.h"
#include "vocabulary_file.h"

static tn_runtime *runtime;
static struct vocabulary_file file;
static struct open_tokenizer t;

// A fixture, or a model that tools/packages/models has fetched.
static const char *fixture(const char *name)
{
    static char path[512];
    const char *models = getenv("TEST_MODELS"), *home = getenv("HOME");
    if (!strstr(name, ".gguf"))
        snprintf(path, sizeof(path), "%s/%s", getenv("TENON_TEST_FIXTURES"), name);
    else if (models)
        snprintf(path, sizeof(path), "%s/%s", models, name);
    else
        snprintf(path, sizeof(path), "%s/.cache/tenon-models/%s", home ? home : "", name);
    return path;
}

static void open_file(const char *name, const char *family)
{
    cr_assert(vocabulary_file_read(fixture(name), &file));
    if (family)
        vocabulary_file_set(&file, "tokenizer.ggml.pre", family);
    if (open_tokenizer(runtime, &file.list, &t))
        cr_fatal("%s", tn_last_error());
}

static void close_file(void)
{
    if (t.ops)
        t.ops->close(t.host, t.tokenizer);
    vocabulary_file_finish(&file);
    t = (struct open_tokenizer){0};
}

static void begin(void)
{
    if (tn_runtime_open(NULL, &runtime))
        cr_fatal("%s", tn_last_error());
}

static void end(void)
{
    close_file();
    cr_assert(eq(int, tn_runtime_close(runtime), TN_OK));
}

TestSuite(tokenizers, .init = begin, .fini = end);

static int32_t *encode(const char *text, uint64_t size, uint32_t flags, uint64_t *count)
{
    int32_t *ids = NULL;
    if (t.ops->encode(t.host, t.tokenizer, text, size, flags, &ids, count))
        cr_fatal("%s", tn_last_error());
    return ids;
}

// Texts of ids, with "|" between them.
static const char *pieces(const char *text, uint32_t flags)
{
    static char out[1024];
    uint64_t count, used = 0;
    int32_t *ids = encode(text, strlen(text), flags, &count);
    for (uint64_t i = 0; i < count; i++) {
        tn_token token;
        cr_assert(eq(int, t.ops->token(t.host, t.tokenizer, ids[i], &token, sizeof(token)),
                     TN_OK));
        used += (uint64_t)snprintf(out + used, sizeof(out) - used, "%s%s", i ? "|" : "",
                                   token.text.data);
    }
    t.host->free(t.host, ids);
    return used ? out : "";
}

// --- against llama.cpp -----------------------------------------------------------------

enum { MAX_TEXTS = 256 };

static struct {
    char *data;
    uint64_t size;
} texts[MAX_TEXTS];

static void read_text(const char *line)
{
    int index, at;
    uint64_t size;
    cr_assert(eq(int, sscanf(line, "text %d %" SCNu64 " %n", &index, &size, &at), 2));
    cr_assert(lt(int, index, MAX_TEXTS));
    texts[index].data = malloc(size + 1);
    texts[index].size = size;
    for (uint64_t i = 0; i < size; i++) {
        char digits[3] = {line[(uint64_t)at + 2 * i], line[(uint64_t)at + 2 * i + 1], 0};
        texts[index].data[i] = (char)(unsigned char)strtoul(digits, NULL, 16);
    }
}

static uint64_t hash_ids(const int32_t *ids, uint64_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)ids[i]) * UINT64_C(0x100000001b3);
    return hash;
}

// A row of ids. Opens another vocabulary when it names one.
static void compare_row(const char *line)
{
    static char open[128];
    char name[64], family[64], both[128];
    int index;
    uint32_t flags;
    uint64_t want, hash, count;
    cr_assert(eq(int,
                 sscanf(line, "ids %63s %63s %d %" SCNu32 " %" SCNu64 " %" SCNx64, name,
                        family, &index, &flags, &want, &hash),
                 6));
    snprintf(both, sizeof(both), "%.60s %.60s", name, family);
    if (strcmp(open, both) != 0) {
        close_file();
        open_file(name, strcmp(family, "-") == 0 ? NULL : family);
        memcpy(open, both, sizeof(open));
    }
    int32_t *ids = encode(texts[index].data, texts[index].size, flags, &count);
    if (count != want || hash_ids(ids, count) != hash)
        cr_fatal("%s: text %d, flags %u: %" PRIu64 " ids or others, expected %" PRIu64,
                 both, index, flags, count, want);
    t.host->free(t.host, ids);
}

// The rows of fixtures, or of models.
static void compare_rows(bool models)
{
    static char line[1 << 16];
    FILE *in = fopen(fixture("ids.txt"), "r");
    int rows = 0;
    cr_assert(ne(ptr, in, NULL));
    while (fgets(line, sizeof(line), in)) {
        if (line[0] == 't') {
            read_text(line);
        } else if (models == (strstr(line, ".gguf") != NULL)) {
            compare_row(line);
            rows++;
        }
    }
    fclose(in);
    cr_assert(gt(int, rows, models ? 100 : 1500));
    for (int i = 0; i < MAX_TEXTS; i++)
        free(texts[i].data);
}

Test(tokenizers, ids_are_those_of_llama_cpp)
{
    compare_rows(false);
}

Test(tokenizers, ids_of_a_real_model_are_too)
{
    if (access(fixture("SmolLM2-135M-Instruct.Q4_1.gguf"), R_OK) != 0)
        cr_skip("skipped: run tools/packages/models");
    compare_rows(true);
}

// --- words -----------------------------------------------------------------------------

// Merges a word as the definition says: of all pairs the first of the list of merges, the
// leftmost of equals. `at` are the ends of its parts.
static uint64_t merge_plainly(const char *word, uint64_t *at, uint64_t count)
{
    const tn_metadata *merges = tn_metadata_find(&file.list, "tokenizer.ggml.merges");
    const tn_text *list = merges->data;
    for (uint64_t rank = 0; rank < merges->count; rank++) {
        for (uint64_t i = 0; i + 1 < count; i++) {
            uint64_t from = i ? at[i - 1] : 0;
            char text[256];
            int size = snprintf(text, sizeof(text), "%.*s %.*s", (int)(at[i] - from),
                                word + from, (int)(at[i + 1] - at[i]), word + at[i]);
            if (list[rank].size != (uint64_t)size ||
                memcmp(list[rank].data, text, (size_t)size) != 0)
                continue;
            memmove(at + i, at + i + 1, (count - i - 1) * sizeof(*at));
            count--;
            rank = UINT64_MAX; // from the first merge again
            break;
        }
    }
    return count;
}

static uint32_t draw(uint32_t *state)
{
    *state = (uint32_t)(*state * UINT64_C(1664525) + 1013904223);
    return *state >> 16;
}

// Around the length from which words are merged by a heap, too.
Test(tokenizers, words_are_merged_by_rank)
{
    uint32_t state = 1;
    open_file("bpe.txt", "gpt-2");
    for (uint64_t size = 1; size <= 90; size += size < 40 ? 1 : 10) {
        char word[128];
        uint64_t at[128], count;
        for (uint64_t i = 0; i < size; i++) {
            word[i] = "etaoinshrdlu"[draw(&state) % 12];
            at[i] = i + 1;
        }
        uint64_t want = merge_plainly(word, at, size);
        int32_t *ids = encode(word, size, 0, &count);
        cr_assert(eq(u64, count, want), "%.*s", (int)size, word);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t from = i ? at[i - 1] : 0;
            cr_assert(eq(int, ids[i], t.ops->find(t.tokenizer, word + from, at[i] - from)));
        }
        t.host->free(t.host, ids);
    }
}

// A word of a million symbols takes no longer than its length allows for.
Test(tokenizers, long_words_are_merged_too, .timeout = 60)
{
    enum { SIZE = 1000000 };
    char *word = malloc(SIZE), *back;
    uint32_t state = 2;
    for (int i = 0; i < SIZE; i++)
        word[i] = "etaoinshrdlu"[draw(&state) % 12];
    static const char *const names[] = {"bpe.txt", "sentencepiece.txt"};
    for (int n = 0; n < 2; n++) {
        uint64_t count, size;
        open_file(names[n], NULL);
        int32_t *ids = encode(word, SIZE, 0, &count);
        cr_assert(eq(int, t.ops->decode(t.host, t.tokenizer, ids, count, 0, &back, &size),
                     TN_OK));
        cr_assert(eq(u64, size, SIZE));
        cr_assert(eq(int, memcmp(back, word, SIZE), 0));
        t.host->free(t.host, ids);
        t.host->free(t.host, back);
        close_file();
    }
    free(word);
}

// --- texts come back -------------------------------------------------------------------

static void comes_back(const char *text, uint64_t size, uint32_t flags,
                       uint32_t decode_flags)
{
    uint64_t count, bytes;
    char *back;
    int32_t *ids = encode(text, size, flags, &count);
    cr_assert(
        eq(int, t.ops->decode(t.host, t.tokenizer, ids, count, decode_flags, &back, &bytes),
           TN_OK));
    cr_assert(eq(u64, bytes, size), "%s", text);
    cr_assert(eq(int, memcmp(back, text, size + 1), 0), "%s", text);
    t.host->free(t.host, ids);
    t.host->free(t.host, back);
}

static const char *const samples[] = {"",
                                      " ",
                                      "  a  ",
                                      "Hello, world!\n\n\tx = 1;",
                                      "na\u00efve \u4f60\u597d \U0001f600\u200d",
                                      "a  mark  b",
                                      "<|im_start|>user\nHi<|im_end|>\n",
                                      "<s> a</s> <unk>b",
                                      "\n \n"};

Test(tokenizers, texts_come_back)
{
    static const char *const names[] = {"bpe.txt", "sentencepiece.txt"};
    for (size_t n = 0; n < 2; n++) {
        open_file(names[n], NULL);
        for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
            comes_back(samples[i], strlen(samples[i]), 0, 0);
            comes_back(samples[i], strlen(samples[i]), TN_ENCODE_PARSE_SPECIAL,
                       TN_DECODE_SPECIAL);
        }
        close_file();
    }
}

Test(tokenizers, special_tokens_are_found_when_asked_for)
{
    open_file("bpe.txt", NULL);
    cr_assert(
        eq(str, (char *)pieces("<|im_end|>a", TN_ENCODE_PARSE_SPECIAL), "<|im_end|>|a"));
    cr_assert(eq(str, (char *)pieces("<|im_end|>a", 0), "<|||im|_|end|||>|a"));
    cr_assert(eq(str, (char *)pieces("a  mark  b", 0), "a|  mark  |b"));
    close_file();
    open_file("sentencepiece.txt", NULL);
    cr_assert(eq(str,
                 (char *)pieces("a</s>a", TN_ENCODE_ADD_SPECIAL | TN_ENCODE_PARSE_SPECIAL),
                 "<s>|\u2581a|</s>|\u2581a"));
    cr_assert(eq(str, (char *)pieces("\x01", 0), "\u2581|<0x01>"));
}

Test(tokenizers, decoding_leaves_out_what_is_no_text)
{
    char *text;
    uint64_t size;
    open_file("sentencepiece.txt", NULL);
    int32_t a = t.ops->find(t.tokenizer, "\u2581a", 4);
    int32_t ids[] = {1, a, 2, a};
    cr_assert(eq(int, t.ops->decode(t.host, t.tokenizer, ids, 4, 0, &text, &size), TN_OK));
    cr_assert(eq(str, text, "aa"));
    t.host->free(t.host, text);
    cr_assert(eq(
        int,
        t.ops->decode(t.host, t.tokenizer, ids + 1, 1, TN_DECODE_CONTINUES, &text, &size),
        TN_OK));
    cr_assert(eq(str, text, " a"));
    t.host->free(t.host, text);
    ids[0] = 900;
    cr_assert(eq(int, t.ops->decode(t.host, t.tokenizer, ids, 4, 0, &text, &size),
                 TN_ERR_ARGUMENT));
    cr_assert(ne(ptr, strstr(tn_last_error(), "token 900, expected 0 to 899"), NULL), "%s",
              tn_last_error());
}

// --- facts -----------------------------------------------------------------------------

Test(tokenizers, facts_are_those_of_the_metadata)
{
    tn_token token = {.score = 7};
    open_file("bpe.txt", NULL);
    const tn_tokenizer_facts *f = t.ops->facts(t.tokenizer);
    int32_t end = t.ops->find(t.tokenizer, "<|im_end|>", 10);
    cr_assert(eq(str, (char *)f->name, "bpe (smollm)"));
    cr_assert(eq(int, f->eos, end));
    cr_assert(eq(int, f->eot, end));
    cr_assert(eq(int, f->bos, t.ops->find(t.tokenizer, "<|im_start|>", 12)));
    cr_assert(eq(int, f->unknown, -1));
    cr_assert(eq(u32, f->flags, 0));
    cr_assert(eq(int, t.ops->find(t.tokenizer, "no token", 8), -1));
    // <|endoftext|>, <|im_end|>, <repo_name>'s kin
    cr_assert(ge(u64, f->num_ends, 2));
    cr_assert(
        eq(int, t.ops->token(t.host, t.tokenizer, end, &token, sizeof(token)), TN_OK));
    cr_assert(eq(int, token.kind, TN_TOKEN_CONTROL));
    cr_assert(eq(u32, token.flags, TN_TOKEN_ENDS));
    // A caller with an older, shorter record keeps what is behind it.
    token.score = 7;
    cr_assert(eq(int,
                 t.ops->token(t.host, t.tokenizer, end, &token, offsetof(tn_token, score)),
                 TN_OK));
    cr_assert(token.score > 6);
    cr_assert(eq(int, t.ops->token(t.host, t.tokenizer, -1, &token, sizeof(token)),
                 TN_ERR_ARGUMENT));
    close_file();
    open_file("sentencepiece.txt", NULL);
    f = t.ops->facts(t.tokenizer);
    cr_assert(eq(u32, f->flags, TN_TOKENIZER_ADDS_BOS | TN_TOKENIZER_ADDS_SPACE));
    cr_assert(eq(int, f->count, 900));
    cr_assert(eq(int, t.ops->token(t.host, t.tokenizer, 13, &token, sizeof(token)), TN_OK));
    cr_assert(eq(str, (char *)token.bytes.data, "\n"));
    cr_assert(eq(int, token.kind, TN_TOKEN_BYTE));
}

// --- threads ---------------------------------------------------------------------------

static void *encode_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        comes_back(samples[3], strlen(samples[3]), 0, 0);
    return NULL;
}

Test(tokenizers, threads_share_one)
{
    pthread_t threads[4];
    open_file("bpe.txt", NULL);
    for (int i = 0; i < 4; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, encode_often, NULL), 0));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

// --- failures --------------------------------------------------------------------------

static void refused(const char *name, void (*spoil)(tn_metadata *pair), const char *key,
                    tn_status status, const char *words)
{
    cr_assert(vocabulary_file_read(fixture(name), &file));
    tn_metadata *pair = (tn_metadata *)(uintptr_t)tn_metadata_find(&file.list, key);
    cr_assert(ne(ptr, pair, NULL), "%s", key);
    tn_metadata before = *pair;
    spoil(pair);
    cr_assert(eq(int, open_tokenizer(runtime, &file.list, &t), status), "%s", key);
    *pair = before;
    cr_assert(ne(ptr, strstr(tn_last_error(), words), NULL), "%s", tn_last_error());
    t = (struct open_tokenizer){0};
    close_file();
}

static void hide(tn_metadata *pair)
{
    pair->key = "nothing";
}
static void single(tn_metadata *pair)
{
    pair->flags = 0;
    pair->count = 1;
}
static void empty(tn_metadata *pair)
{
    pair->count = 0;
}
static void short_list(tn_metadata *pair)
{
    pair->count = 5;
}
static void no_space(tn_metadata *pair)
{
    static const tn_text bad[] = {{"a b", 3}, {" ab", 3}};
    pair->data = bad;
    pair->count = 2;
}
static void strange_kind(tn_metadata *pair)
{
    static int64_t bad[2048] = {[3] = 9};
    pair->data = bad;
}
static void byte_kind(tn_metadata *pair)
{
    static int64_t bad[2048] = {[20] = TN_TOKEN_BYTE};
    pair->data = bad;
}
static void not_a_number(tn_metadata *pair)
{
    static double bad[2048];
    bad[3] = (double)__builtin_nanf("");
    pair->data = bad;
}
static void unknown_family(tn_metadata *pair)
{
    static const tn_text bad = {"nothing-known", 13};
    pair->data = &bad;
}

Test(tokenizers, bad_metadata_are_refused_with_words)
{
    static const char b[] = "bpe.txt", s[] = "sentencepiece.txt";
    static const char tokens[] = "tokenizer.ggml.tokens",
                      merges[] = "tokenizer.ggml.merges",
                      kinds[] = "tokenizer.ggml.token_type",
                      scores[] = "tokenizer.ggml.scores", pre[] = "tokenizer.ggml.pre";
    tn_status no = TN_ERR_REFUSED;
    refused(b, hide, tokens, no,
            "'tokenizer.ggml.tokens' is absent, expected a list of texts");
    refused(b, single, tokens, no, "is one value of kind text, expected a list");
    refused(b, empty, tokens, no, "has 0 tokens, expected 1 to");
    refused(b, hide, merges, no, "'tokenizer.ggml.merges' is absent");
    refused(b, no_space, merges, no, "merge 1 is ' ab', expected two texts with a space");
    refused(b, short_list, kinds, no, "is a list of 5 of kind integer, expected a list of");
    refused(b, strange_kind, kinds, no, "of token 3 is 9, expected 1 to 6");
    refused(b, byte_kind, kinds, no, "expected a byte such as <0x0A>");
    refused(s, hide, scores, no, "'tokenizer.ggml.scores' is absent, expected a score");
    refused(s, not_a_number, scores, no, "of token 3 is nan, expected a finite f32");
    refused(b, unknown_family, pre, TN_ERR_UNSUPPORTED,
            "is 'nothing-known', expected one of: gpt-2, phi-2");
}

// What the metadata leave out, or have wrong in a way that does no harm.
Test(tokenizers, ids_that_do_not_exist_are_left_out)
{
    static const int64_t far = 1 << 30;
    cr_assert(vocabulary_file_read(fixture("bpe.txt"), &file));
    tn_metadata *pair = (tn_metadata *)(uintptr_t)tn_metadata_find(
        &file.list, "tokenizer.ggml.bos_token_id");
    tn_metadata before = *pair;
    pair->data = &far;
    cr_assert(eq(int, open_tokenizer(runtime, &file.list, &t), TN_OK));
    *pair = before;
    cr_assert(eq(int, t.ops->facts(t.tokenizer)->bos, -1));
}

// A host whose allocations may fail.
static tn_host poor;
static const tn_host *rich;
static uint64_t calls, fail_at, live;

static void *poor_alloc(const tn_host *host, uint64_t size, uint64_t alignment)
{
    (void)host;
    if (++calls == fail_at)
        return NULL;
    void *memory = rich->alloc(rich, size, alignment);
    live += memory != NULL;
    return memory;
}

static void poor_free(const tn_host *host, void *memory)
{
    (void)host;
    live -= memory != NULL;
    rich->free(rich, memory);
}

// Opens, encodes and decodes; the first failure counts.
static tn_status use(void)
{
    static const char text[] =
        "a longer text than 32 bytes<|im_end|>\xff aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    tn_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    char *back = NULL;
    uint64_t count, size;
    tn_status status = t.ops->open(&poor, &file.list, &tokenizer);
    if (status)
        return status;
    status = t.ops->encode(&poor, tokenizer, text, sizeof(text) - 1, 3, &ids, &count);
    if (status == TN_OK)
        status = t.ops->decode(&poor, tokenizer, ids, count, 0, &back, &size);
    poor.free(&poor, ids);
    poor.free(&poor, back);
    t.ops->close(&poor, tokenizer);
    return status;
}

Test(tokenizers, each_allocation_may_fail)
{
    static const char *const names[] = {"bpe.txt", "sentencepiece.txt"};
    for (int n = 0; n < 2; n++) {
        int slower = 0;
        open_file(names[n], NULL);
        rich = t.host;
        poor = *t.host;
        poor.alloc = poor_alloc;
        poor.free = poor_free;
        for (fail_at = 1;; fail_at++) {
            calls = 0;
            tn_status status = use();
            cr_assert(eq(u64, live, 0), "allocation %d", (int)fail_at);
            if (calls < fail_at)
                break;
            slower += status == TN_OK;
            cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d",
                      (int)fail_at);
        }
        // PCRE2 makes no code for one of the two expressions, and interprets.
        cr_assert(le(int, slower, n ? 0 : 20));
        cr_assert(gt(u64, fail_at, 15));
        close_file();
    }
}

static int warnings;

static void count_warnings(const tn_host *host, int32_t level, const char *topic,
                           const char *format, ...)
{
    (void)host, (void)topic, (void)format;
    warnings += level == TN_LOG_WARN;
}

Test(tokenizers, a_wrong_id_is_one_warning)
{
    static const int64_t far = 1 << 30;
    tn_tokenizer *tokenizer = NULL;
    open_file("bpe.txt", NULL);
    rich = t.host;
    poor = *t.host;
    poor.alloc = poor_alloc;
    poor.free = poor_free;
    poor.log = count_warnings;
    vocabulary_file_set(&file, "tokenizer.ggml.bos_token_id", "two");
    tn_metadata *pair = (tn_metadata *)(uintptr_t)tn_metadata_find(
        &file.list, "tokenizer.ggml.bos_token_id");
    tn_metadata before = *pair, number = *pair;
    number.kind = TN_METADATA_INTEGER;
    number.data = &far;
    for (int i = 0; i < 2; i++) {
        *pair = i == 0 ? before : number;
        warnings = 0;
        cr_assert(eq(int, t.ops->open(&poor, &file.list, &tokenizer), TN_OK));
        cr_expect(eq(int, warnings, 1));
        cr_expect(eq(int, t.ops->facts(tokenizer)->bos, -1));
        t.ops->close(&poor, tokenizer);
    }
    *pair = before;
}
