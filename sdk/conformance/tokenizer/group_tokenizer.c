// SPDX-License-Identifier: MIT
// Tokenizers: opened with a vocabulary of bytes, characters and a few merges that
// tokenizers of GGUF's kinds can open; with damaged metadata; and with little memory.
#include <tenon/tokenizer.h>
#include "groups.h"
#include "../kit/fake_host.h"
#include "../kit/subject.h"

enum {
    NUM_BYTES = 256,
    NUM_TOKENS = 3 + 2 * NUM_BYTES + 6, // marks, bytes, GPT-2's alphabet, words
    MAX_MERGES = 4,
    MAX_PAIRS = 8,
    MAX_ALLOCATIONS = 200,
    TEXTS = 100,
};

static const char list_name[] = "/folder/model.of-tokens";

struct tokenizers {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_tokenizer_ops *ops;
    tn_text tokens[NUM_TOKENS], merges[MAX_MERGES], model, rule;
    char bytes[NUM_BYTES][8], letters[NUM_BYTES][4];
    int64_t kinds[NUM_TOKENS], ids[3];
    double scores[NUM_TOKENS];
    tn_metadata pairs[MAX_PAIRS];
    tn_metadata_list list;
};

// --- the vocabulary --------------------------------------------------------------------

static tn_text tokenizer_group_text_of(const char *text)
{
    return (tn_text){text, strlen(text)};
}

static bool tokenizer_group_is_printed(unsigned c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

// "<0x0A>", and the character of GPT-2's alphabet for each byte.
static void make_bytes(struct tokenizers *t)
{
    unsigned others = 0;
    for (unsigned i = 0; i < NUM_BYTES; i++) {
        unsigned c = tokenizer_group_is_printed(i) ? i : 0x100 + others++;
        snprintf(t->bytes[i], sizeof(t->bytes[i]), "<0x%02X>", i);
        if (c < 0x80)
            snprintf(t->letters[i], sizeof(t->letters[i]), "%c", (int)c);
        else
            snprintf(t->letters[i], sizeof(t->letters[i]), "%c%c", (int)(0xc0 | c >> 6),
                     (int)(0x80 | (c & 0x3f)));
        t->tokens[3 + i] = tokenizer_group_text_of(t->bytes[i]);
        t->kinds[3 + i] = TN_TOKEN_BYTE;
        t->tokens[3 + NUM_BYTES + i] = tokenizer_group_text_of(t->letters[i]);
    }
}

static void tokenizer_group_make_list(struct tokenizers *t)
{
    static const char *const words[] = {"th",        "the",    "\u0120t",
                                        "\u0120the", "\u2581", "\u2581the"};
    static const char *const merges[] = {"t h", "th e", "\u0120 t", "\u0120 the"};
    static const char *const marks[] = {"<unk>", "<s>", "</s>"};
    for (int i = 0; i < NUM_TOKENS; i++) {
        t->kinds[i] = TN_TOKEN_NORMAL;
        t->scores[i] = -i;
    }
    for (int i = 0; i < 3; i++) {
        t->tokens[i] = tokenizer_group_text_of(marks[i]);
        t->kinds[i] = i ? TN_TOKEN_CONTROL : TN_TOKEN_UNKNOWN;
        t->ids[i] = i;
    }
    make_bytes(t);
    for (size_t i = 0; i < COUNT(words); i++)
        t->tokens[3 + 2 * NUM_BYTES + i] = tokenizer_group_text_of(words[i]);
    for (size_t i = 0; i < COUNT(merges); i++)
        t->merges[i] = tokenizer_group_text_of(merges[i]);
    t->rule = tokenizer_group_text_of("gpt-2");
    const tn_metadata pairs[MAX_PAIRS] = {
        {"tokenizer.ggml.model", &t->model, 1, TN_METADATA_TEXT, 0},
        {"tokenizer.ggml.pre", &t->rule, 1, TN_METADATA_TEXT, 0},
        {"tokenizer.ggml.tokens", t->tokens, NUM_TOKENS, TN_METADATA_TEXT, 1},
        {"tokenizer.ggml.token_type", t->kinds, NUM_TOKENS, TN_METADATA_INTEGER, 1},
        {"tokenizer.ggml.scores", t->scores, NUM_TOKENS, TN_METADATA_FLOAT, 1},
        {"tokenizer.ggml.merges", t->merges, MAX_MERGES, TN_METADATA_TEXT, 1},
        {"tokenizer.ggml.bos_token_id", &t->ids[1], 1, TN_METADATA_INTEGER, 0},
        {"tokenizer.ggml.eos_token_id", &t->ids[2], 1, TN_METADATA_INTEGER, 0},
    };
    memcpy(t->pairs, pairs, sizeof(pairs));
    t->list = (tn_metadata_list){sizeof(t->list), sizeof(tn_metadata), t->pairs, MAX_PAIRS,
                                 list_name};
}

// The value of the plugin's first selector of kind "model", or NULL.
static const char *own_model(const tn_plugin *entry)
{
    const tn_selectors *own = entry->query(TN_IFACE_SELECTORS);
    for (uint32_t i = 0; own && i < own->num_items; i++) {
        const tn_selector *s =
            (const void *)((const char *)own->items + (uint64_t)i * own->item_size);
        if (strcmp(s->interface, TN_IFACE_TOKENIZER) == 0 && strcmp(s->kind, "model") == 0)
            return s->value;
    }
    return NULL;
}

// --- the checks ------------------------------------------------------------------------

static void check_tokenizer_table(struct tokenizers *t)
{
    const tn_tokenizer_ops *o = t->ops;
    if (!TN_HAS(o, open) || !TN_HAS(o, close) || !TN_HAS(o, facts) || !TN_HAS(o, token) ||
        !TN_HAS(o, find) || !TN_HAS(o, encode) || !TN_HAS(o, decode))
        check_fail(t->kit, "a slot is NULL, or behind struct_size %u", o->struct_size);
    if (!own_model(t->subject.entry))
        check_fail(t->kit, "no selector of kind \"model\": no file finds it");
}

// Opens damaged metadata: expects a vocabulary, or a failure with a message.
static void open_damaged(struct tokenizers *t, const char *what)
{
    tn_tokenizer *const untouched = (void *)(uintptr_t)0x5a5a5a50;
    tn_tokenizer *opened = untouched;
    fake_host_reset(&t->host);
    tn_status status = t->ops->open(t->host.table, &t->list, &opened);
    check_case(t->kit);
    if (status == TN_OK) {
        t->ops->close(t->host.table, opened);
    } else {
        if (opened != untouched)
            check_fail(t->kit, "%s: open fails and writes its output", what);
        if (t->host.failures == 0)
            check_fail(t->kit, "%s: open returns %d without a message", what, status);
        else if (strncmp(t->host.text, list_name, sizeof(list_name) - 1) != 0)
            check_fail(t->kit,
                       "%s: the message does not begin with the file's name: \"%s\"", what,
                       t->host.text);
    }
    fake_host_expect_freed(t->kit, &t->host, what);
}

// Each pair is removed, gets another kind, or becomes a shorter list or one value.
static void check_tokenizer_damage(struct tokenizers *t)
{
    for (int i = 0; i < MAX_PAIRS; i++) {
        tn_metadata before = t->pairs[i];
        t->pairs[i].key = "absent";
        open_damaged(t, before.key);
        t->pairs[i] = before;
        t->pairs[i].kind = 99;
        open_damaged(t, before.key);
        t->pairs[i] = before;
        t->pairs[i].flags ^= TN_METADATA_LIST;
        t->pairs[i].count = 1;
        open_damaged(t, before.key);
        t->pairs[i] = before;
        if (before.flags & TN_METADATA_LIST) {
            for (uint64_t count = 0; count < before.count; count += before.count / 4) {
                t->pairs[i].count = count;
                open_damaged(t, before.key);
            }
        }
        t->pairs[i] = before;
    }
}

static bool open_drawn(struct tokenizers *t, tn_tokenizer **out)
{
    fake_host_reset(&t->host);
    if (t->ops->open(t->host.table, &t->list, out) == TN_OK)
        return true;
    check_skip(t->kit, "it does not open the kit's vocabulary: %.200s", t->host.text);
    return false;
}

static void tokenizer_group_expect_facts(struct tokenizers *t, const tn_tokenizer *open)
{
    const tn_tokenizer_facts *f = t->ops->facts(open);
    if (f->count != NUM_TOKENS)
        check_fail(t->kit, "facts say %d tokens, the vocabulary has %d", f->count,
                   NUM_TOKENS);
    if (f->bos != 1 || f->eos != 2)
        check_fail(t->kit, "facts say bos %d and eos %d, expected 1 and 2", f->bos, f->eos);
    for (int32_t i = -1; i <= f->count; i++) {
        tn_token token = {0};
        tn_status status = t->ops->token(t->host.table, open, i, &token, sizeof(token));
        tn_status want = i < 0 || i == f->count ? TN_ERR_ARGUMENT : TN_OK;
        if (status != want)
            check_fail(t->kit, "token %d: returns %d, expected %d", i, status, want);
        else if (status == TN_OK &&
                 t->ops->find(open, token.text.data, token.text.size) != i)
            check_fail(t->kit, "token %d, '%.40s', is not found by its text", i,
                       token.text.data);
    }
}

// Draws a text of characters of one to four bytes.
static uint64_t draw_text(struct kit *k, char *out)
{
    static const char *const parts[] = {"the",    " the",   "t",          "h",   " ",
                                        "  ",     "\n",     "\t",         "x",   "12",
                                        "\u00e9", "\u20ac", "\U0001f600", "<s>", "'s"};
    uint64_t size = 0;
    for (uint64_t left = random_below(k, 12); left > 0; left--) {
        const char *part = parts[random_below(k, COUNT(parts))];
        memcpy(out + size, part, strlen(part));
        size += strlen(part);
    }
    out[size] = '\0';
    return size;
}

static void expect_text(struct tokenizers *t, const tn_tokenizer *open, const char *text,
                        uint64_t size, bool special)
{
    int32_t *ids;
    uint64_t count, bytes;
    char *back = NULL;
    const tn_host *host = t->host.table;
    check_case(t->kit);
    if (t->ops->encode(host, open, text, size, special ? TN_ENCODE_PARSE_SPECIAL : 0, &ids,
                       &count)) {
        check_fail(t->kit, "encode of '%s' fails: %s", text, t->host.text);
        return;
    }
    bool in_range = true;
    for (uint64_t i = 0; i < count; i++)
        in_range &= ids[i] >= 0 && ids[i] < NUM_TOKENS;
    if (!in_range)
        check_fail(t->kit, "'%s' has a token that is not from 0 to %d", text,
                   NUM_TOKENS - 1);
    else if (t->ops->decode(host, open, ids, count, special ? TN_DECODE_SPECIAL : 0, &back,
                            &bytes))
        check_fail(t->kit, "decode of '%s' fails: %s", text, t->host.text);
    else if (bytes != size || memcmp(back, text, size + 1) != 0)
        check_fail(t->kit, "'%s' comes back as '%s'", text, back);
    host->free(host, back);
    host->free(host, ids);
}

static void check_tokenizer_values(struct tokenizers *t)
{
    tn_tokenizer *open;
    char text[256];
    if (!open_drawn(t, &open))
        return;
    tokenizer_group_expect_facts(t, open);
    for (int i = 0; i < TEXTS; i++) {
        uint64_t size = draw_text(t->kit, text);
        expect_text(t, open, text, size, i % 2);
    }
    t->ops->close(t->host.table, open);
    t->ops->close(t->host.table, NULL);
    fake_host_expect_freed(t->kit, &t->host, "what was encoded and freed");
}

// Opens, encodes and decodes while allocation `n` fails. False: there were fewer
// allocations.
static bool use_short_of_memory(struct tokenizers *t, uint64_t n)
{
    static const char text[] = "the the\n\xff<s>";
    tn_tokenizer *open = NULL;
    int32_t *ids = NULL;
    char *back = NULL;
    uint64_t count, size;
    const tn_host *host = t->host.table;
    fake_host_reset(&t->host);
    t->host.fail_at = n;
    tn_status status = t->ops->open(host, &t->list, &open);
    if (status == TN_OK)
        status = t->ops->encode(host, open, text, sizeof(text) - 1, 3, &ids, &count);
    if (status == TN_OK)
        status = t->ops->decode(host, open, ids, count, 0, &back, &size);
    host->free(host, back);
    host->free(host, ids);
    t->ops->close(host, open);
    check_case(t->kit);
    if (t->host.refusals > 0 && status != TN_OK && status != TN_ERR_MEMORY)
        check_fail(t->kit, "returns %d when allocation %llu fails, expected %d", status,
                   (unsigned long long)n, TN_ERR_MEMORY);
    fake_host_expect_freed(t->kit, &t->host, "a call without memory");
    return t->host.refusals > 0;
}

static void check_tokenizer_memory(struct tokenizers *t)
{
    tn_tokenizer *open;
    if (!open_drawn(t, &open))
        return;
    t->ops->close(t->host.table, open);
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(t->kit); n++)
        if (!use_short_of_memory(t, n))
            break;
}

// --- the group -------------------------------------------------------------------------

void group_tokenizer(struct kit *k)
{
    static const struct {
        const char *name;
        void (*run)(struct tokenizers *t);
    } checks[] = {{"tokenizer.table", check_tokenizer_table},
                  {"tokenizer.damage", check_tokenizer_damage},
                  {"tokenizer.values", check_tokenizer_values},
                  {"tokenizer.memory", check_tokenizer_memory}};
    struct tokenizers *t = calloc(1, sizeof(*t));
    if (!t)
        abort(); // checks run in a child process: its parent reports the abort
    t->kit = k;
    if (subject_open(&t->subject, &t->host, k)) {
        t->ops = t->subject.entry->query(TN_IFACE_TOKENIZER);
        const char *model = t->ops ? own_model(t->subject.entry) : NULL;
        t->model = tokenizer_group_text_of(model ? model : "none");
        tokenizer_group_make_list(t);
        for (size_t i = 0; t->ops && i < COUNT(checks); i++) {
            if (!check_begin(k, checks[i].name, NULL))
                continue;
            fake_host_reset(&t->host);
            checks[i].run(t);
            check_end(k);
        }
        subject_unload(&t->subject, &t->host);
        fake_host_finish(&t->host);
    }
    free(t);
}
