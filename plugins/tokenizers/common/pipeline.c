// SPDX-License-Identifier: MIT
// Pipelines: reads them, and takes a text through one. Raw tokens are found first, in the
// text as it is; the text between them is normalized, and cut at normalized tokens; the
// rest goes to the tokenizer. Of all tokens the leftmost is found, and at one position the
// longest.
#include "pipeline.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tenon.tokenizer.pipeline"
#define KEY_ADDED "tenon.tokenizer.added"

// --- reading ---------------------------------------------------------------------------

static const struct {
    const char *word;
    uint32_t way;
} way_names[] = {
    {"nfc", WAY_NFC},
    {"nfd", WAY_NFD},
    {"nfkc", WAY_NFKC},
    {"nfkd", WAY_NFKD},
    {"prepend", WAY_PREPEND | WAY_REPLACE},
    {"replace", WAY_REPLACE},
    {"space-first", WAY_SPACE_FIRST},
    {"space-always", WAY_SPACE_ALWAYS},
    {"split", WAY_SPLIT},
    {"ignore-merges", WAY_IGNORE_MERGES},
    {"bytes", WAY_BYTES},
    {"fuse", WAY_FUSE},
    {"strip", WAY_STRIP},
    {"drop", WAY_DROP},
};

static uint32_t way_of(const char *word, uint64_t size)
{
    for (size_t i = 0; i < COUNT(way_names); i++)
        if (strlen(way_names[i].word) == size && memcmp(way_names[i].word, word, size) == 0)
            return way_names[i].way;
    return 0;
}

static tn_status read_ways(const tn_host *host, const char *name, tn_text words,
                           uint32_t *out)
{
    *out = WAY_GIVEN;
    for (uint64_t at = 0, end; at < words.size; at = end + 1) {
        const char *space = memchr(words.data + at, ' ', words.size - at);
        end = space ? (uint64_t)(space - words.data) : words.size;
        uint32_t way = way_of(words.data + at, end - at);
        if (!way)
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "%s: '" KEY "' says '%.*s', which this version does not know",
                              name, (int)(end - at < 64 ? end - at : 64), words.data + at);
        *out |= way;
    }
    return TN_OK;
}

// Orders tokens by text; of equal texts the largest id comes last.
static int compare_added(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    uint64_t size = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->text, y->text, size);
    if (order)
        return order;
    return x->size != y->size ? (x->size > y->size) - (x->size < y->size)
                              : (x->id > y->id) - (x->id < y->id);
}

static void sort_set(struct added_set *set)
{
    if (set->count)
        qsort(set->items, set->count, sizeof(*set->items), compare_added);
    for (uint32_t i = 0; i < set->count; i++)
        set->first[(unsigned char)set->items[i].text[0]] = true;
}

// Appends a token to its set. A token with an empty text is never found.
static tn_status add_token(const tn_host *host, struct vocabulary *v, int32_t id,
                           uint32_t flags)
{
    tn_text text = vocabulary_text(v, id);
    bool normalized = flags & ADDED_NORMALIZED;
    struct added_set *set = normalized ? &v->pipeline->normalized : &v->pipeline->raw;
    char *own = NULL;
    uint64_t size = text.size;
    tn_status status =
        normalized ? normalize(host, v->ways, text.data, size, &own, &size) : TN_OK;
    if (status == TN_OK && !own && size) {
        own = clear_alloc(host, size, 1);
        status = own ? TN_OK : TN_ERR_MEMORY;
        if (own)
            memcpy(own, text.data, size);
    }
    if (status || !size) {
        host->free(host, own);
        return status;
    }
    set->items[set->count++] = (struct added_token){own, size, id, flags};
    return TN_OK;
}

// Reads the pairs of id and flags.
static tn_status read_added(const tn_host *host, const tn_metadata_list *metadata,
                            struct vocabulary *v)
{
    struct pipeline *p = v->pipeline;
    const tn_metadata *list;
    tn_status status = read_numbers(host, metadata, KEY_ADDED, 0, &list);
    uint64_t count = list && status == TN_OK ? list->count / 2 : 0;
    if (status)
        return status;
    p->raw.items = clear_alloc(host, count, sizeof(*p->raw.items));
    p->normalized.items = clear_alloc(host, count, sizeof(*p->normalized.items));
    if (!p->raw.items || !p->normalized.items)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; status == TN_OK && i < count; i++) {
        double id = number_at(list, 2 * i), flags = number_at(list, 2 * i + 1);
        if (!(id >= 0 && id < v->facts.count && flags >= 0 && flags < 16))
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '" KEY_ADDED "': token %g with flags %g, expected 0 "
                              "to %d with 0 to 15",
                              metadata->name, id, flags, v->facts.count - 1);
        status = add_token(host, v, (int32_t)id, (uint32_t)flags);
    }
    sort_set(&p->raw);
    sort_set(&p->normalized);
    return status;
}

tn_status pipeline_init(const tn_host *host, const tn_metadata_list *metadata,
                        struct vocabulary *v)
{
    tn_text words;
    if (!tn_metadata_text(tn_metadata_find(metadata, KEY), &words))
        return TN_OK;
    tn_status status = read_ways(host, metadata->name, words, &v->ways);
    if (status)
        return status;
    v->pipeline = clear_alloc(host, 1, sizeof(*v->pipeline));
    return v->pipeline ? read_added(host, metadata, v) : TN_ERR_MEMORY;
}

tn_status pipeline_texts(const tn_host *host, const struct vocabulary *v,
                         tn_text **out_texts, uint64_t *out_bytes)
{
    const struct added_set *set = v->pipeline ? &v->pipeline->normalized : NULL;
    *out_texts = clear_alloc(host, set ? (uint64_t)v->facts.count : 0, sizeof(tn_text));
    *out_bytes = 0;
    for (uint32_t i = 0; *out_texts && set && i < set->count; i++) {
        (*out_texts)[set->items[i].id] = (tn_text){set->items[i].text, set->items[i].size};
        *out_bytes += set->items[i].size;
    }
    return *out_texts ? TN_OK : TN_ERR_MEMORY;
}

static void set_finish(const tn_host *host, struct added_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        host->free(host, set->items[i].text);
    host->free(host, set->items);
}

void pipeline_finish(const tn_host *host, struct vocabulary *v)
{
    if (!v->pipeline)
        return;
    set_finish(host, &v->pipeline->raw);
    set_finish(host, &v->pipeline->normalized);
    host->free(host, v->pipeline);
}

// --- finding tokens --------------------------------------------------------------------

// The first of items low .. high - 1 whose byte `at` is at least `byte`; their texts agree
// before it.
static uint32_t lower_bound(const struct added_set *set, uint32_t low, uint32_t high,
                            uint64_t at, int byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((unsigned char)set->items[middle].text[at] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Finds the longest token at the beginning of a text, or NULL.
static const struct added_token *added_at(const struct added_set *set, const char *text,
                                          uint64_t size)
{
    const struct added_token *found = NULL;
    uint32_t low = 0, high = set->count;
    if (!set->first[(unsigned char)text[0]])
        return NULL;
    for (uint64_t at = 0; low < high; at++) {
        while (low < high && set->items[low].size == at)
            found = &set->items[low++];
        if (at == size)
            break;
        low = lower_bound(set, low, high, at, (unsigned char)text[at]);
        high = lower_bound(set, low, high, at, (unsigned char)text[at] + 1);
    }
    return found;
}

// --- encoding ---------------------------------------------------------------------------

// A text that is being cut at the tokens of a set: the call's, or a normalized part of it.
struct cutting {
    const struct encode_call *call;
    const struct added_set *set;
    const struct encode_input *input; // the call's, or that of the part
    uint64_t begin;                   // of the part, in the call's text
};

// Whether a token that occurs at a position may be taken there.
static bool tokenizer_pipeline_is_taken(const struct cutting *c,
                                        const struct added_token *token, uint64_t at)
{
    const struct encode_input *input = c->input;
    uint64_t end = at + token->size;
    return input_allows(input, c->call->v->kind[token->id], at, end) &&
           (!(token->flags & ADDED_ALONE) || is_alone(input->text, input->size, at, end));
}

static tn_status take_text(const struct cutting *c, uint64_t from, uint64_t to);

// Adds the text before a token, then the token, which takes adjacent white space as its
// flags say. *taken: bytes done so far. A token within white space behind this one is
// taken, too.
static tn_status tokenizer_pipeline_take_token(const struct cutting *c,
                                               const struct added_token *token, uint64_t at,
                                               uint64_t *taken)
{
    const char *text = c->input->text;
    uint64_t from = at, to = at + token->size;
    tn_status status = TN_OK;
    if (token->flags & ADDED_STRIPS_LEFT && at > *taken)
        from -= spaces_before(text + *taken, at - *taken);
    if (token->flags & ADDED_STRIPS_RIGHT)
        to += spaces_behind(text + to, c->input->size - to);
    if (from > *taken)
        status = take_text(c, *taken, from);
    *taken = to;
    return status ? status : ids_add(c->call->out, token->id);
}

static tn_status tokenizer_pipeline_cut(const struct cutting *c)
{
    const char *text = c->input->text;
    uint64_t size = c->input->size, taken = 0;
    tn_status status = TN_OK;
    for (uint64_t at = 0; status == TN_OK && at < size;) {
        const struct added_token *token = added_at(c->set, text + at, size - at);
        if (token && tokenizer_pipeline_is_taken(c, token, at))
            status = tokenizer_pipeline_take_token(c, token, at, &taken);
        at += token ? token->size : 1;
    }
    return status || taken == size ? status : take_text(c, taken, size);
}

// Changes *size, a number of bytes of text, to the size of these bytes normalized.
static tn_status normalized_size(const struct encode_call *call, const char *text,
                                 uint64_t *size)
{
    char *formed = NULL;
    tn_status status =
        *size ? normalize(call->host, call->v->ways, text, *size, &formed, size) : TN_OK;
    call->host->free(call->host, formed);
    return status;
}

// Maps the plain ranges within bytes from .. to - 1 of the call's text to positions in the
// normalized bytes; the caller frees *out_ranges.
static tn_status map_plain(const struct encode_call *call, uint64_t from, uint64_t to,
                           tn_text_range **out_ranges, uint64_t *out_count)
{
    const struct encode_input *input = call->input;
    uint64_t first = plain_behind(input, from), count = 0;
    while (first + count < input->num_plain && input->plain[first + count].begin < to)
        count++;
    tn_text_range *ranges = clear_alloc(call->host, count, sizeof(*ranges));
    tn_status status = ranges ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t i = 0; status == TN_OK && i < count; i++) {
        const tn_text_range *range = &input->plain[first + i];
        ranges[i].begin = range->begin > from ? range->begin - from : 0;
        ranges[i].end = (range->end < to ? range->end : to) - from;
        status = normalized_size(call, input->text + from, &ranges[i].begin);
        if (status == TN_OK)
            status = normalized_size(call, input->text + from, &ranges[i].end);
    }
    *out_ranges = ranges;
    *out_count = count;
    return status;
}

// Takes the text between raw tokens: normalizes it, and cuts it at normalized tokens.
static tn_status take_raw(const struct cutting *c, uint64_t from, uint64_t to)
{
    const struct encode_call *call = c->call;
    const struct added_set *set = &call->v->pipeline->normalized;
    struct encode_input part = {
        .text = c->input->text + from, .size = to - from, .flags = c->input->flags};
    const struct cutting next = {.call = call, .set = set, .input = &part, .begin = from};
    char *formed = NULL;
    tn_text_range *plain = NULL;
    tn_status status =
        normalize(call->host, call->v->ways, part.text, part.size, &formed, &part.size);
    if (status == TN_OK && set->count)
        status = map_plain(call, from, to, &plain, &part.num_plain);
    part.text = formed ? formed : part.text;
    part.plain = plain;
    if (status == TN_OK)
        status = tokenizer_pipeline_cut(&next);
    call->host->free(call->host, plain);
    call->host->free(call->host, formed);
    return status;
}

static tn_status take_text(const struct cutting *c, uint64_t from, uint64_t to)
{
    const struct encode_call *call = c->call;
    const struct vocabulary *v = call->v;
    const char *text = c->input->text + from;
    if (c->set == &v->pipeline->raw)
        return take_raw(c, from, to);
    bool space = v->ways & WAY_SPACE_ALWAYS ||
                 (v->ways & WAY_SPACE_FIRST && c->begin == 0 && from == 0);
    bool has_one = *text == ' ' || (v->marks_spaces && begins_marked(text, to - from));
    return call->v->part(call->tokenizer, call->state, text, to - from, space && !has_one,
                         call->out);
}

tn_status pipeline_encode(const struct encode_call *call)
{
    const struct cutting all = {
        .call = call, .set = &call->v->pipeline->raw, .input = call->input};
    return tokenizer_pipeline_cut(&all);
}
