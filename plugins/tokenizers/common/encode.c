// SPDX-License-Identifier: MIT
// Cuts a text at special tokens, and encodes the text between them.
//
// Longer tokens are found first, in all of the text; then shorter ones in the text between
// them; of tokens of one length the leftmost. So "<|im_end|>" is never read as "<|" and
// "im_end|>".
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline.h"

#define MAX_TEXT (UINT64_C(1) << 30)

// --- groups of special tokens ----------------------------------------------------------

static int longer_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void group_add(struct special_group *group, tn_text text, uint8_t kind)
{
    unsigned char first = (unsigned char)text.data[0];
    unsigned char last = (unsigned char)text.data[text.size - 1];
    bool same = group->length == 0 || group->only_first == first;
    group->length = (uint32_t)text.size;
    group->only_first = same ? first : -1;
    group->first[first] = true;
    group->last[last] = true;
    group->has_user_defined |= kind == TN_TOKEN_USER_DEFINED;
}

// The distinct lengths of special tokens, longest first: *out_count of them.
static uint32_t *special_lengths(const tn_host *host, const struct vocabulary *v,
                                 uint32_t *out_count)
{
    uint32_t *lengths = clear_alloc(host, (uint64_t)v->facts.count, sizeof(*lengths));
    uint32_t count = 0, distinct = 0;
    for (int32_t i = 0; lengths && i < v->facts.count; i++) {
        uint64_t size = vocabulary_text(v, i).size;
        if (kind_is_special(v->kind[i]) && size > 0 && size < UINT32_MAX)
            lengths[count++] = (uint32_t)size;
    }
    if (count)
        qsort(lengths, count, sizeof(*lengths), longer_first);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || lengths[i] != lengths[distinct - 1])
            lengths[distinct++] = lengths[i];
    *out_count = distinct;
    return lengths;
}

tn_status vocabulary_group(const tn_host *host, struct vocabulary *v)
{
    uint32_t count;
    uint32_t *lengths = special_lengths(host, v, &count);
    v->groups = lengths ? clear_alloc(host, count, sizeof(*v->groups)) : NULL;
    for (int32_t i = 0; v->groups && i < v->facts.count; i++) {
        tn_text text = vocabulary_text(v, i);
        uint32_t size = text.size < UINT32_MAX ? (uint32_t)text.size : 0;
        const uint32_t *found =
            count && kind_is_special(v->kind[i])
                ? bsearch(&size, lengths, count, sizeof(size), longer_first)
                : NULL;
        if (found)
            group_add(&v->groups[found - lengths], text, v->kind[i]);
    }
    host->free(host, lengths);
    v->num_groups = v->groups ? count : 0;
    return v->groups ? TN_OK : TN_ERR_MEMORY;
}

// --- parts of a text -------------------------------------------------------------------

// A range of text, or a special token.
struct tokenizer_encode_part {
    uint64_t begin, end;
    int32_t id; // NO_TOKEN: text
};

struct tokenizer_encode_parts {
    const tn_host *host;
    struct tokenizer_encode_part *items;
    uint64_t count, capacity;
};

static tn_status parts_add(struct tokenizer_encode_parts *parts, uint64_t begin,
                           uint64_t end, int32_t id)
{
    if (parts->count == parts->capacity) {
        uint64_t capacity = 2 * parts->capacity + 8;
        struct tokenizer_encode_part *items =
            clear_alloc(parts->host, capacity, sizeof(*items));
        if (!items)
            return TN_ERR_MEMORY;
        if (parts->count)
            memcpy(items, parts->items, parts->count * sizeof(*items));
        parts->host->free(parts->host, parts->items);
        parts->items = items;
        parts->capacity = capacity;
    }
    parts->items[parts->count++] = (struct tokenizer_encode_part){begin, end, id};
    return TN_OK;
}

uint64_t plain_behind(const struct encode_input *input, uint64_t begin)
{
    uint64_t low = 0, high = input->num_plain;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (input->plain[middle].end <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool input_allows(const struct encode_input *input, uint8_t kind, uint64_t begin,
                  uint64_t end)
{
    uint64_t at = plain_behind(input, begin);
    const tn_text_range *plain = input->plain;
    if (kind != TN_TOKEN_USER_DEFINED)
        return input->flags & TN_ENCODE_PARSE_SPECIAL &&
               (at == input->num_plain || plain[at].begin >= end);
    for (; at + 1 < input->num_plain && plain[at].end < end; at++)
        if (plain[at].end == plain[at + 1].begin)
            return false;
    return true;
}

// The special token of `group` that begins at `from`, or NO_TOKEN.
static int32_t special_at(const struct vocabulary *v, const struct special_group *group,
                          const struct encode_input *input, uint64_t from)
{
    const char *at = input->text + from;
    if (!group->first[(unsigned char)at[0]] ||
        !group->last[(unsigned char)at[group->length - 1]])
        return NO_TOKEN;
    int32_t id = vocabulary_find(v, at, group->length);
    if (id == NO_TOKEN || id >= v->facts.count || !kind_is_special(v->kind[id]))
        return NO_TOKEN;
    return input_allows(input, v->kind[id], from, from + group->length) ? id : NO_TOKEN;
}

// Finds the next token of `group` from `at` on that ends before `end`. Returns its id, and
// its position in *out_at; or NO_TOKEN.
static int32_t special_next(const struct vocabulary *v, const struct special_group *group,
                            const struct encode_input *input, uint64_t at, uint64_t end,
                            uint64_t *out_at)
{
    const char *text = input->text;
    for (; end - at >= group->length; at++) {
        if (group->only_first >= 0) {
            const char *next =
                memchr(text + at, group->only_first, end - at - group->length + 1);
            if (!next)
                return NO_TOKEN;
            at = (uint64_t)(next - text);
        }
        int32_t id = special_at(v, group, input, at);
        if (id != NO_TOKEN) {
            *out_at = at;
            return id;
        }
    }
    return NO_TOKEN;
}

static bool tokenizer_encode_is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Appends the parts of a range of text that is cut at the tokens of `group`.
static tn_status cut_part(const struct vocabulary *v, const struct special_group *group,
                          const struct encode_input *input,
                          struct tokenizer_encode_part part,
                          struct tokenizer_encode_parts *out)
{
    const char *text = input->text;
    uint64_t at = part.begin, found;
    tn_status status = TN_OK;
    while (status == TN_OK && at < part.end) {
        int32_t id = special_next(v, group, input, at, part.end, &found);
        if (id == NO_TOKEN)
            return parts_add(out, at, part.end, NO_TOKEN);
        if (found > at)
            status = parts_add(out, at, found, NO_TOKEN);
        at = found + group->length;
        if (status == TN_OK)
            status = parts_add(out, found, at, id);
        while (v->strips[id] && at < part.end && tokenizer_encode_is_white(text[at]))
            at++;
    }
    return status;
}

// Cuts a text at special tokens into *out; the caller frees out->items.
static tn_status cut_text(const tn_host *host, const struct vocabulary *v,
                          const struct encode_input *input,
                          struct tokenizer_encode_parts *out)
{
    uint64_t size = input->size;
    bool control = input->flags & TN_ENCODE_PARSE_SPECIAL;
    struct tokenizer_encode_parts next = {.host = host};
    *out = next;
    tn_status status = size ? parts_add(out, 0, size, NO_TOKEN) : TN_OK;
    for (uint32_t g = 0; status == TN_OK && g < v->num_groups; g++) {
        const struct special_group *group = &v->groups[g];
        if (!control && !group->has_user_defined)
            continue;
        next.count = 0;
        for (uint64_t i = 0; status == TN_OK && i < out->count; i++) {
            struct tokenizer_encode_part part = out->items[i];
            status = part.id == NO_TOKEN ? cut_part(v, group, input, part, &next)
                                         : parts_add(&next, part.begin, part.end, part.id);
        }
        struct tokenizer_encode_parts swap = *out;
        *out = next;
        next = swap;
    }
    host->free(host, next.items);
    return status;
}

// --- encoding --------------------------------------------------------------------------

tn_status ids_grow(struct ids *ids)
{
    uint64_t capacity = ids->capacity + ids->capacity / 2 + 16;
    int32_t *data = clear_alloc(ids->host, capacity, sizeof(*data));
    if (!data)
        return TN_ERR_MEMORY;
    if (ids->count)
        memcpy(data, ids->data, ids->count * sizeof(*data));
    ids->host->free(ids->host, ids->data);
    ids->data = data;
    ids->capacity = capacity;
    return TN_OK;
}

static tn_status encode_parts(const struct encode_call *call,
                              const struct tokenizer_encode_parts *parts)
{
    const char *text = call->input->text;
    bool first = true; // at the beginning of the text, or behind a special token
    tn_status status = TN_OK;
    for (uint64_t i = 0; status == TN_OK && i < parts->count; i++) {
        const struct tokenizer_encode_part *p = &parts->items[i];
        if (p->id == NO_TOKEN)
            status = call->v->part(
                call->tokenizer, call->state, text + p->begin, p->end - p->begin,
                first && call->v->facts.flags & TN_TOKENIZER_ADDS_SPACE, call->out);
        else
            status = ids_add(call->out, p->id);
        first = p->id != NO_TOKEN;
    }
    return status;
}

// Encodes a text without a pipeline, as llama.cpp does.
static tn_status encode_text(const struct encode_call *call)
{
    struct tokenizer_encode_parts parts = {.host = call->host};
    tn_status status = cut_text(call->host, call->v, call->input, &parts);
    if (status == TN_OK)
        status = encode_parts(call, &parts);
    call->host->free(call->host, parts.items);
    return status;
}

static tn_status tokenizer_encode_check_input(const tn_host *host,
                                              const struct encode_input *input)
{
    uint64_t at = 0;
    if (input->size > MAX_TEXT)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "a text of %" PRIu64 " bytes, expected at most %" PRIu64,
                          input->size, MAX_TEXT);
    for (uint64_t i = 0; i < input->num_plain; i++) {
        const tn_text_range *range = &input->plain[i];
        if (range->begin < at || range->end < range->begin || range->end > input->size)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "plain range %" PRIu64 " is %" PRIu64 " to %" PRIu64
                              ", expected one from %" PRIu64 " to %" PRIu64,
                              i, range->begin, range->end, at, input->size);
        at = range->end;
    }
    return TN_OK;
}

tn_status vocabulary_encode(const struct encode_call *call, int32_t **out_ids,
                            uint64_t *out_count)
{
    const tn_host *host = call->host;
    const tn_tokenizer_facts *facts = &call->v->facts;
    uint32_t adds = call->input->flags & TN_ENCODE_ADD_SPECIAL ? facts->flags : 0;
    struct ids ids = {.host = host};
    struct encode_call whole = *call;
    whole.out = &ids;
    tn_status status = tokenizer_encode_check_input(host, call->input);
    if (status == TN_OK)
        status = ids_grow(&ids); // even an empty text has an array
    if (status == TN_OK && adds & TN_TOKENIZER_ADDS_BOS)
        status = ids_add(&ids, facts->bos);
    if (status == TN_OK)
        status = call->v->pipeline ? pipeline_encode(&whole) : encode_text(&whole);
    if (status == TN_OK && adds & TN_TOKENIZER_ADDS_EOS)
        status = ids_add(&ids, facts->eos);
    if (status) {
        host->free(host, ids.data);
        return status;
    }
    *out_ids = ids.data;
    *out_count = ids.count;
    return TN_OK;
}
