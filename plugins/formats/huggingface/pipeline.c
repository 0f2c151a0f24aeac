// SPDX-License-Identifier: MIT
// The steps from text to tokens in tokenizer.json: normalizer, pre-tokenizer, model,
// decoder and post-processor. Steps that GGUF has no key for become words under
// "tenon.tokenizer.pipeline" (plugins/tokenizers/common/pipeline.h). An unknown step
// refuses the folder: without it the ids would differ.
#include "pipeline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "huggingface.h"

#define MARK "\xe2\x96\x81" // U+2581, which pieces have for spaces
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MOST_STEPS = 16, MOST_CUTS = 4096, MOST_WORDS = 256 };

// The steps of one member of the file, its sequences flattened.
struct steps {
    const char *part; // member of the file, for messages
    const json_t *items[MOST_STEPS];
    size_t count;
};

struct pipeline_reading {
    const struct hf *hf;
    const json_t *model;
    struct hf_pipeline *out;
    char cuts[MOST_CUTS]; // steps of the pre-tokenizer, a line each
    bool keeps_matches;   // and drops the text between matches
};

static tn_status pipeline_refuse(const struct pipeline_reading *r, const char *part,
                                 const char *got, const char *expected)
{
    return r->hf->host->fail(r->hf->host, TN_ERR_UNSUPPORTED,
                             "%s: tokenizer.json: %s: '%.200s', expected %s",
                             r->hf->folder->name, part, got, expected);
}

static const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static bool object_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(text_in(object, name), text) == 0;
}

static bool is_on(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

static bool pipeline_add_steps(const json_t *part, const char *list, int depth,
                               struct steps *out)
{
    if (!part || json_is_null(part))
        return true;
    if (!object_is(part, "type", "Sequence")) {
        if (out->count == MOST_STEPS)
            return false;
        out->items[out->count++] = part;
        return true;
    }
    bool fits = depth < 4;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(part, list), i, item) fits =
        fits && pipeline_add_steps(item, list, depth + 1, out);
    return fits;
}

static tn_status read_steps(const struct pipeline_reading *r, const char *part,
                            const char *list, struct steps *out)
{
    *out = (struct steps){.part = part};
    if (pipeline_add_steps(json_object_get(r->hf->tokenizer, part), list, 0, out))
        return TN_OK;
    return pipeline_refuse(r, part, "Sequence", "at most 16 steps, nested 4 deep");
}

static void pipeline_add_word(const struct pipeline_reading *r, const char *word)
{
    char *words = r->out->words;
    size_t used = strlen(words);
    snprintf(words + used, MOST_WORDS - used, "%s%s", used ? " " : "", word);
}

// --- the normalizer ---------------------------------------------------------------------

// Whether a step replaces `pattern`, a text and not an expression.
static bool hf_pipeline_replaces(const json_t *step, const char *pattern,
                                 const char *content)
{
    return object_is(json_object_get(step, "pattern"), "String", pattern) &&
           object_is(step, "content", content);
}

// The word of a step, and its order among words: normal forms, prepended texts, spaces.
static const char *word_of_normalizer(const json_t *step, int *position)
{
    static const char *const forms[][2] = {
        {"NFC", "nfc"}, {"NFD", "nfd"}, {"NFKC", "nfkc"}, {"NFKD", "nfkd"}};
    for (size_t i = 0; i < COUNT(forms); i++)
        if (object_is(step, "type", forms[i][0])) {
            *position = 1;
            return forms[i][1];
        }
    *position = object_is(step, "type", "Prepend") ? 2 : 3;
    if (*position == 2)
        return object_is(step, "prepend", MARK) ? "prepend" : NULL;
    return object_is(step, "type", "Replace") && hf_pipeline_replaces(step, " ", MARK)
               ? "replace"
               : NULL;
}

static tn_status read_normalizer(struct pipeline_reading *r)
{
    struct steps steps;
    int last = 0, position;
    tn_status status = read_steps(r, "normalizer", "normalizers", &steps);
    for (size_t i = 0; status == TN_OK && i < steps.count; i++) {
        const char *word = word_of_normalizer(steps.items[i], &position);
        if (!word || position <= last)
            return pipeline_refuse(
                r, steps.part, text_in(steps.items[i], "type"),
                "one of NFC, NFD, NFKC and NFKD, Prepend of U+2581, and Replace "
                "of spaces by it, each at most once and in this order");
        pipeline_add_word(r, word);
        r->out->prepends |= position == 2;
        r->out->replaces |= position == 3;
        last = position;
    }
    if (status == TN_OK && r->out->prepends && !r->out->replaces)
        return pipeline_refuse(r, steps.part, "Prepend",
                               "Replace of spaces by U+2581 behind it");
    return status;
}

// --- the pre-tokenizer ------------------------------------------------------------------

#define LLAMA3 "llama-bpe" // smaug-bpe has the same expression

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define OTHERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LINES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+\nbytes\n"
#define HAN "/[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+\n"

static const char llama3[] = "/" CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}{1,3}" OTHERS LINES;
static const char qwen2[] = "/" CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}" OTHERS LINES;
static const char seed_coder[] = "/" CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}{1}"
                                 "| ?[^\\s\\p{L}\\p{N}\\r\\n]+" LINES;
static const char minicpm5[] =
    "/\\p{N}{1,3}\n/" CONTRACTIONS "|" BEFORE "\\p{L}+|\\p{N}+" OTHERS LINES;
static const char qwen35[] = "/" CONTRACTIONS "|" BEFORE "[\\p{L}\\p{M}]+|\\p{N}"
                             "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" LINES;
static const char gpt4o[] =
    "/" BEFORE UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE UPPER "+" LOWER "*" CONTRACTIONS
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES;
static const char tekken[] = "/" BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER
                             "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES;
static const char deepseek3[] =
    "/\\p{N}{1,3}\n/[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+\n"
    "/[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" LINES;
static const char deepseek_coder[] =
    "/[\\r\\n]\n/\\s?\\p{L}+\n/\\s?\\p{P}+\n" HAN "digits\nbytes\n";
// Letters with two cases, as DeepSeek LLM lists them.
#define CASED_LETTERS                                                                      \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"                     \
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386"         \
    "\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"              \
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"                    \
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"                    \
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"               \
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"              \
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102"              \
    "\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d"                \
    "\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"         \
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"                     \
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"                    \
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"                         \
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"                      \
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
#define DEEPSEEK_LLM(numbers)                                                              \
    "/[\\r\\n]\n/\\s?[" CASED_LETTERS "]+\n"                                               \
    "/\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+\n/\\s+$\n" HAN     \
        numbers "\nbytes\n"
static const char bloom[] =
    "/ ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+\nbytes\n";

// Pre-tokenizers as lines, the rule that cuts alike, and its names in GGUF: where merges
// apply to every word (`obeys`), and where a word that is a token is not cut (`ignores`);
// NULL: llama.cpp has no such name.
static const struct {
    const char *cuts, *rule, *obeys, *ignores;
    bool covers; // matches cover all of a text
} known[] = {
    {"words\n", "gpt-2", "gpt-2", NULL, true},
    {"digits\nwords\n", "smollm", "smollm", NULL, true},
    {llama3, LLAMA3, "smaug-bpe", LLAMA3, true},
    {qwen2, "qwen2", "qwen2", NULL, true},
    {seed_coder, "seed-coder", "seed-coder", NULL, true},
    {minicpm5, "minicpm5", NULL, "minicpm5", false},
    {qwen35, "qwen35", "qwen35", NULL, true},
    {gpt4o, "gpt-4o", "gpt-4o", NULL, true},
    {tekken, "tekken", NULL, "tekken", true},
    {deepseek3, "deepseek-v3", "deepseek-v3", NULL, false},
    {deepseek_coder, "deepseek-coder", "deepseek-coder", NULL, false},
    {DEEPSEEK_LLM("numbers"), "deepseek-llm", "deepseek-llm", NULL, false},
    {DEEPSEEK_LLM("digits"), "deepseek-llm-folder", "deepseek-llm", NULL, false},
    {bloom, "bloom", "bloom", NULL, false},
    {"punctuation\nwords\nnumbers\n/[0-9][0-9][0-9]\n", "falcon-folder", "falcon", NULL,
     false},
};

// Appends a line; line ends in an expression become escapes.
static void add_cut(struct pipeline_reading *r, const char *before, const char *text)
{
    size_t used = strlen(r->cuts);
    used += (size_t)snprintf(r->cuts + used, MOST_CUTS - used, "%s", before);
    for (; *text && used + 4 < MOST_CUTS; text++) {
        bool is_end = *text == '\r' || *text == '\n';
        if (is_end)
            r->cuts[used++] = '\\';
        r->cuts[used++] = !is_end ? *text : *text == '\r' ? 'r' : 'n';
    }
    memcpy(r->cuts + used, used + 1 < MOST_CUTS ? "\n" : "", used + 1 < MOST_CUTS ? 2 : 1);
}

static bool add_split(struct pipeline_reading *r, const json_t *step)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const char *expression = json_string_value(json_object_get(pattern, "Regex"));
    bool is_kept = object_is(step, "behavior", "Removed") && is_on(step, "invert");
    if (object_is(pattern, "String", " ") &&
        object_is(step, "behavior", "MergedWithPrevious"))
        return r->out->replaces; // replaced spaces leave nothing to split at
    if (!expression || (!is_kept && !object_is(step, "behavior", "Isolated")))
        return false;
    r->keeps_matches |= is_kept;
    add_cut(r, "/", expression);
    return true;
}

static bool pipeline_add_bytes(struct pipeline_reading *r, const json_t *step)
{
    const json_t *words = json_object_get(step, "use_regex");
    if (is_on(step, "add_prefix_space")) {
        if (r->cuts[0]) // the space would stand before each word
            return false;
        pipeline_add_word(r, "space-always");
        r->out->spaces = true;
    }
    r->out->is_bytes = true;
    add_cut(r, !words || json_is_true(words) ? "words" : "bytes", "");
    return true;
}

static bool add_metaspace(struct pipeline_reading *r, const json_t *step)
{
    const json_t *split = json_object_get(step, "split");
    const char *scheme = text_in(step, "prepend_scheme");
    bool always = *scheme ? strcmp(scheme, "always") == 0
                          : !json_is_false(json_object_get(step, "add_prefix_space"));
    bool first = strcmp(scheme, "first") == 0;
    if (!object_is(step, "replacement", MARK) || r->cuts[0])
        return false;
    if (always || first)
        pipeline_add_word(r, always ? "space-always" : "space-first");
    if (!json_is_false(split))
        pipeline_add_word(r, "split");
    r->out->spaces |= always || first;
    r->out->replaces = true;
    add_cut(r, "metaspace", "");
    return true;
}

static bool add_digits(struct pipeline_reading *r, const json_t *step)
{
    add_cut(r, is_on(step, "individual_digits") ? "digits" : "numbers", "");
    return true;
}

static bool add_punctuation(struct pipeline_reading *r, const json_t *step)
{
    add_cut(r, "punctuation", "");
    return object_is(step, "behavior", "Contiguous");
}

static tn_status read_cuts(struct pipeline_reading *r)
{
    static const struct {
        const char *type;
        bool (*add)(struct pipeline_reading *r, const json_t *step);
    } types[] = {{"Split", add_split},
                 {"ByteLevel", pipeline_add_bytes},
                 {"Metaspace", add_metaspace},
                 {"Digits", add_digits},
                 {"Punctuation", add_punctuation}};
    struct steps steps;
    tn_status status = read_steps(r, "pre_tokenizer", "pretokenizers", &steps);
    for (size_t i = 0; status == TN_OK && i < steps.count; i++) {
        bool is_known = false;
        for (size_t k = 0; k < COUNT(types) && !is_known; k++)
            is_known = object_is(steps.items[i], "type", types[k].type) &&
                       types[k].add(r, steps.items[i]);
        if (!is_known) {
            char *text = json_dumps(steps.items[i], JSON_COMPACT | JSON_ENSURE_ASCII);
            status = pipeline_refuse(
                r, steps.part, text ? text : "",
                "a step of a pre-tokenizer that is known, such as Split by an "
                "expression, Digits, ByteLevel or Metaspace");
            free(text);
        }
    }
    return status;
}

static tn_status name_cuts(struct pipeline_reading *r)
{
    bool ignores = is_on(r->model, "ignore_merges");
    struct hf_pipeline *out = r->out;
    for (size_t i = 0; i < COUNT(known) && out->is_bytes; i++) {
        const char *name = ignores ? known[i].ignores : known[i].obeys;
        if (strcmp(known[i].cuts, r->cuts) != 0 || (r->keeps_matches && !known[i].covers))
            continue;
        out->name = out->spaces ? NULL : name;
        bool says_all = out->name && (strcmp(out->name, known[i].rule) == 0 ||
                                      strcmp(known[i].rule, LLAMA3) == 0);
        out->rule = says_all ? NULL : known[i].rule;
        return TN_OK;
    }
    out->name = "default";
    if (!out->is_bytes && out->replaces &&
        (!r->cuts[0] || strcmp(r->cuts, "metaspace\n") == 0))
        return TN_OK;
    return pipeline_refuse(
        r, "pre_tokenizer", r->cuts[0] ? r->cuts : "none",
        "one of the known: that of GPT-2, Llama 3, Qwen2, Qwen3.5, GPT-4o, Tekken, "
        "DeepSeek-V3, DeepSeek Coder, StarCoder, Falcon or BLOOM, or Metaspace");
}

// --- the model and the decoder ----------------------------------------------------------

static tn_status read_model(struct pipeline_reading *r)
{
    static const struct {
        const char *member, *word;
    } flags[] = {{"ignore_merges", "ignore-merges"},
                 {"byte_fallback", "bytes"},
                 {"fuse_unk", "fuse"}};
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < COUNT(empty); i++)
        if (*text_in(r->model, empty[i]))
            return pipeline_refuse(r, empty[i], text_in(r->model, empty[i]), "none");
    if (json_number_value(json_object_get(r->model, "dropout")) > 0)
        return pipeline_refuse(r, "dropout", "above 0", "none: ids would be drawn");
    for (size_t i = 0; i < COUNT(flags); i++)
        if (is_on(r->model, flags[i].member))
            pipeline_add_word(r, flags[i].word);
    return TN_OK;
}

// Tells how leading white space is removed: "", "strip" or "drop"; NULL: a step is unknown.
static const char *word_of_decoder(const struct pipeline_reading *r,
                                   const struct steps *steps)
{
    const char *word = steps->count || !(r->out->prepends || r->out->spaces) ? "" : "strip";
    bool is_fused = false;
    for (size_t i = 0; i < steps->count; i++) {
        const json_t *step = steps->items[i];
        bool strips = object_is(step, "type", "Strip");
        if (object_is(step, "type", "Metaspace"))
            word = object_is(step, "prepend_scheme", "never") ? "" : "drop";
        else if (strips && is_fused && object_is(step, "content", " ") &&
                 json_integer_value(json_object_get(step, "start")) == 1 &&
                 json_integer_value(json_object_get(step, "stop")) == 0)
            word = "strip";
        else if (strips || (!object_is(step, "type", "Fuse") &&
                            !object_is(step, "type", "ByteFallback") &&
                            !(object_is(step, "type", "Replace") &&
                              hf_pipeline_replaces(step, MARK, " "))))
            return NULL;
        is_fused |= object_is(step, "type", "Fuse");
    }
    return word;
}

static tn_status read_decoder(struct pipeline_reading *r)
{
    struct steps steps;
    tn_status status = read_steps(r, "decoder", "decoders", &steps);
    const char *type = steps.count ? text_in(steps.items[0], "type") : "ByteLevel";
    if (status != TN_OK)
        return status;
    if (r->out->is_bytes)
        return steps.count <= 1 && strcmp(type, "ByteLevel") == 0
                   ? TN_OK
                   : pipeline_refuse(r, steps.part, type,
                                     "ByteLevel, as the pre-tokenizer is");
    const char *word = word_of_decoder(r, &steps);
    if (!word)
        return pipeline_refuse(
            r, steps.part, type,
            "Metaspace, or Replace of U+2581 by a space, ByteFallback, Fuse, and "
            "Strip of one space at the beginning");
    if (*word)
        pipeline_add_word(r, word);
    return TN_OK;
}

// --- the post-processor -----------------------------------------------------------------

// Notes a token that is put in front of a text, or behind it; false where one is noted.
static bool pipeline_add_end(struct hf_pipeline *out, bool behind, const char *token)
{
    const char **position = behind ? &out->end : &out->begin;
    bool is_first = *token && !*position;
    *position = token;
    return is_first;
}

static bool read_template(struct hf_pipeline *out, const json_t *step)
{
    size_t i;
    json_t *piece;
    bool behind = false, fits = true;
    json_array_foreach(json_object_get(step, "single"), i, piece)
    {
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (special)
            fits = fits && pipeline_add_end(out, behind, text_in(special, "id"));
        else
            behind = true;
    }
    return fits;
}

static tn_status read_post(struct pipeline_reading *r)
{
    struct steps steps;
    tn_status status = read_steps(r, "post_processor", "processors", &steps);
    for (size_t i = 0; status == TN_OK && i < steps.count; i++) {
        const json_t *step = steps.items[i];
        bool is_known = object_is(step, "type", "ByteLevel");
        if (object_is(step, "type", "TemplateProcessing"))
            is_known = read_template(r->out, step);
        if (!is_known)
            status = pipeline_refuse(
                r, steps.part, text_in(step, "type"),
                "ByteLevel, and TemplateProcessing with at most one token in "
                "front of a text and one behind it");
    }
    return status;
}

tn_status hf_read_pipeline(const struct hf *hf, struct hf_pipeline *out)
{
    struct pipeline_reading r = {
        .hf = hf, .model = json_object_get(hf->tokenizer, "model"), .out = out};
    *out = (struct hf_pipeline){.name = NULL};
    tn_status status = read_normalizer(&r);
    if (status == TN_OK)
        status = read_cuts(&r);
    if (status == TN_OK)
        status = name_cuts(&r);
    if (status == TN_OK)
        status = read_model(&r);
    if (status == TN_OK)
        status = read_decoder(&r);
    return status == TN_OK ? read_post(&r) : status;
}
