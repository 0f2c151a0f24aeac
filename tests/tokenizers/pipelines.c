// SPDX-License-Identifier: MIT
// Pipelines of tokenizers: what folders.py cannot ask for. Users' text within a
// conversation, long runs of marks, damaged metadata, and memory that ends.
#include <stdlib.h>
#include <string.h>
#include "assertion.h"
#include "vocabulary_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(text)                                                                         \
    {                                                                                      \
        text, sizeof(text) - 1                                                             \
    }
#define MARK "\u2581"

enum { UNKNOWN, BEGIN, ROLE, TAG, FIRST_PIECE };

static const tn_text tokens[] = {TEXT("<unk>"),  TEXT("<s>"),    TEXT("<r>"), TEXT("<tag>"),
                                 TEXT(MARK),     TEXT("a"),      TEXT("b"),   TEXT("ab"),
                                 TEXT(MARK "a"), TEXT("\u0120"), TEXT("<"),   TEXT(">"),
                                 TEXT("s"),      TEXT("\u00e9")};
static const int64_t kinds[COUNT(tokens)] = {2, 3, 3, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double scores[COUNT(tokens)] = {0, 0, 0, 0, 0, 0, 0, -1, -2, 0, 0, 0, 0, 0};
static const tn_text merges[] = {TEXT("a b"), TEXT(MARK " a")};
// id, flags: the role is looked for in normalized text, the tag takes white space.
static int64_t added[] = {BEGIN, 0, ROLE, 8, TAG, 3};
#define tag_flags added[5]

static tn_text model, words;
static tn_metadata pairs[] = {
    {"tokenizer.ggml.model", &model, 1, TN_METADATA_TEXT, 0},
    {"tokenizer.ggml.tokens", tokens, COUNT(tokens), TN_METADATA_TEXT, TN_METADATA_LIST},
    {"tokenizer.ggml.token_type", kinds, COUNT(kinds), TN_METADATA_INTEGER,
     TN_METADATA_LIST},
    {"tokenizer.ggml.scores", scores, COUNT(scores), TN_METADATA_FLOAT, TN_METADATA_LIST},
    {"tokenizer.ggml.merges", merges, COUNT(merges), TN_METADATA_TEXT, TN_METADATA_LIST},
    {"tenon.tokenizer.pipeline", &words, 1, TN_METADATA_TEXT, 0},
    {"tenon.tokenizer.added", added, COUNT(added), TN_METADATA_INTEGER, TN_METADATA_LIST},
    {"tokenizer.ggml.pre", &(const tn_text)TEXT("gpt-2"), 1, TN_METADATA_TEXT, 0},
};
enum { ADDED_PAIR = 6 };
static const tn_metadata_list list = {sizeof(list), sizeof(pairs[0]), pairs, COUNT(pairs),
                                      "made"};
static tn_runtime *runtime;
static struct open_tokenizer t;

static tn_status open_with(const char *kind, const char *ways)
{
    model = (tn_text){kind, strlen(kind)};
    words = (tn_text){ways, strlen(ways)};
    t.tokenizer = NULL;
    return open_tokenizer(runtime, &list, &t);
}

static void open_made(const char *kind, const char *ways)
{
    if (open_with(kind, ways))
        cr_fatal("%s", tn_last_error());
}

static void close_made(void)
{
    if (t.tokenizer)
        t.ops->close(t.host, t.tokenizer);
    t = (struct open_tokenizer){0};
}

static void begin(void)
{
    if (tn_runtime_open(NULL, &runtime))
        cr_fatal("%s", tn_last_error());
}

static void end(void)
{
    close_made();
    cr_assert(eq(int, tn_runtime_close(runtime), TN_OK));
}

TestSuite(pipelines, .init = begin, .fini = end, .timeout = 60);

// How often `id` is among the ids of a text, of which bytes from .. to - 1 are a user's.
static int times(int32_t id, const char *text, uint64_t from, uint64_t to)
{
    const tn_text_range plain = {from, to};
    int32_t *ids;
    uint64_t count;
    int found = 0;
    if (t.ops->encode_mixed(t.host, t.tokenizer, text, strlen(text), &plain, 1, 0, &ids,
                            &count))
        cr_fatal("%s", tn_last_error());
    for (uint64_t i = 0; i < count; i++)
        found += ids[i] == id;
    t.host->free(t.host, ids);
    return found;
}

// Tokens that are looked for in the text as it is, and in normalized text: shorter where
// letters and marks become one character, longer where spaces become U+2581.
Test(pipelines, a_users_text_makes_no_control_token)
{
    static const struct {
        const char *kind, *ways;
    } rows[] = {{"gpt2", ""},         {"gpt2", "nfc"},          {"gpt2", "nfd"},
                {"llama", "replace"}, {"llama", "nfc replace"}, {"llama", "nfkd replace"}};
    static const char text[] = "e\u0301e\u0301 <r> <s> \u00e9\u00e9 <r><s> e\u0301";
    const char *second = strstr(strstr(text, "<r>") + 1, "<r>");
    uint64_t at = (uint64_t)(second - text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_made(rows[i].kind, rows[i].ways);
        for (int32_t id = BEGIN; id <= ROLE; id++) {
            cr_assert(eq(int, times(id, text, 0, 0), 2), "%s", rows[i].ways);
            cr_assert(eq(int, times(id, text, 0, at), 1), "%s", rows[i].ways);
            cr_assert(eq(int, times(id, text, at, at + 6), 1), "%s", rows[i].ways);
            cr_assert(eq(int, times(id, text, at + 6, strlen(text)), 2), "%s",
                      rows[i].ways);
            cr_assert(eq(int, times(id, text, at + 1, at + 5), 1), "%s", rows[i].ways);
        }
        close_made();
    }
}

// A mark of a conversation's form that the file calls user-defined: two ranges that touch
// within it say that it is a user's.
Test(pipelines, ranges_that_touch_part_a_users_token)
{
    static const char *const ways[] = {"", "nfc", "prepend strip"};
    static const char text[] = "e\u0301 <tag> e\u0301 <tag>";
    const uint64_t second = sizeof(text) - 6;
    for (size_t i = 0; i < 2 * COUNT(ways); i++) {
        const tn_text_range touching[] = {{0, second + 2}, {second + 2, second + 5}};
        int32_t *ids;
        uint64_t count, found = 0;
        tag_flags = i % 2 ? 8 : 0;
        open_made("llama", ways[i / 2]);
        cr_assert(eq(int, times(TAG, text, 0, sizeof(text) - 1), 2));
        cr_assert(eq(int,
                     t.ops->encode_mixed(t.host, t.tokenizer, text, sizeof(text) - 1,
                                         touching, 2, 0, &ids, &count),
                     TN_OK));
        for (uint64_t k = 0; k < count; k++)
            found += ids[k] == TAG;
        cr_assert(eq(u64, found, 1), "%s", ways[i / 2]);
        t.host->free(t.host, ids);
        close_made();
    }
    tag_flags = 3;
}

static void decodes(const int32_t *ids, uint64_t count, uint32_t flags, const char *want)
{
    char *text;
    uint64_t size;
    if (t.ops->decode(t.host, t.tokenizer, ids, count, flags, &text, &size))
        cr_fatal("%s", tn_last_error());
    cr_assert(eq(str, text, (char *)want));
    t.host->free(t.host, text);
}

Test(pipelines, spaces_in_front_are_taken_away_once)
{
    static const int32_t ids[] = {BEGIN, 4, 8, BEGIN, 8};
    static const struct {
        const char *ways, *text, *shown;
    } rows[] = {{"replace", "  a a", "<s>  a<s> a"},
                {"prepend strip", " a a", "<s>  a<s> a"},
                {"space-first drop", " a a", "<s>  a<s> a"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_made("llama", rows[i].ways);
        decodes(ids, COUNT(ids), 0, rows[i].text);
        decodes(ids, COUNT(ids), TN_DECODE_SPECIAL, rows[i].shown);
        decodes(ids + 2, 1, TN_DECODE_CONTINUES, " a");
        close_made();
    }
}

// Marks are put in order in linear time.
Test(pipelines, long_runs_of_marks_are_put_in_order)
{
    enum { PAIRS = 200000, BYTES = 1 + 4 * PAIRS };
    char *text = malloc(BYTES);
    int32_t *ids;
    uint64_t count;
    text[0] = 'a';
    for (int i = 0; i < PAIRS; i++)
        memcpy(text + 1 + 4 * i, "\u0301\u0323", 4);
    open_made("gpt2", "nfc");
    cr_assert(
        eq(int, t.ops->encode(t.host, t.tokenizer, text, BYTES, 0, &ids, &count), TN_OK));
    t.host->free(t.host, ids);
    free(text);
}

Test(pipelines, what_is_damaged_is_refused_with_words)
{
    static const int64_t far[] = {COUNT(tokens), 0}, strange[] = {BEGIN, 16};
    static const struct {
        const char *ways;
        const int64_t *added;
        tn_status status;
        const char *says;
    } rows[] = {
        {"nfc backwards", added, TN_ERR_UNSUPPORTED,
         "says 'backwards', which this version"},
        {"nfc  replace", added, TN_ERR_UNSUPPORTED, "says '', which"},
        {"", far, TN_ERR_REFUSED, "token 14 with flags 0, expected 0 to 13 with 0 to 15"},
        {"", strange, TN_ERR_REFUSED, "token 1 with flags 16, expected 0 to 13"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const tn_metadata before = pairs[ADDED_PAIR];
        pairs[ADDED_PAIR].data = rows[i].added;
        pairs[ADDED_PAIR].count = 2;
        cr_assert(eq(int, open_with("gpt2", rows[i].ways), rows[i].status), "%zu", i);
        cr_assert(ne(ptr, strstr(tn_last_error(), rows[i].says), NULL), "%s",
                  tn_last_error());
        pairs[ADDED_PAIR] = before;
    }
}

// --- a host whose allocations may fail -----------------------------------------------

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

static tn_status use(void)
{
    static const char text[] = "a  <tag> e\u0301\u0323<r> ab\xff<s>b";
    const tn_text_range plain = {0, 9};
    tn_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    char *back = NULL;
    uint64_t count, size;
    tn_status status = t.ops->open(&poor, &list, &tokenizer);
    if (status)
        return status;
    status = t.ops->encode_mixed(&poor, tokenizer, text, sizeof(text) - 1, &plain, 1, 0,
                                 &ids, &count);
    if (status == TN_OK)
        status = t.ops->decode(&poor, tokenizer, ids, count, 0, &back, &size);
    poor.free(&poor, ids);
    poor.free(&poor, back);
    t.ops->close(&poor, tokenizer);
    return status;
}

Test(pipelines, each_allocation_may_fail)
{
    static const char *const kinds_of[] = {"gpt2", "llama"};
    for (size_t i = 0; i < COUNT(kinds_of); i++) {
        open_made(kinds_of[i], "nfc prepend space-always bytes");
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
            cr_assert(status == TN_OK || status == TN_ERR_MEMORY, "allocation %d",
                      (int)fail_at);
        }
        cr_assert(gt(u64, fail_at, 20));
        close_made();
    }
}
