// SPDX-License-Identifier: MIT
// Tokens of an open vocabulary, and decoding.
#include <string.h>
#include "pipeline.h"

static tn_status tokenizer_decode_check_id(const tn_host *host, const struct vocabulary *v,
                                           int32_t id)
{
    if (id >= 0 && id < v->facts.count)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "token %d, expected 0 to %d", id,
                      v->facts.count - 1);
}

static bool token_ends(const struct vocabulary *v, int32_t id)
{
    for (uint64_t i = 0; i < v->facts.num_ends; i++)
        if (v->ends[i] == id)
            return true;
    return false;
}

static tn_text token_bytes(const struct vocabulary *v, int32_t id)
{
    uint64_t start = v->bytes_start[id];
    return (tn_text){v->bytes + start, v->bytes_start[id + 1] - start - 1};
}

tn_status vocabulary_token(const tn_host *host, const struct vocabulary *v, int32_t id,
                           tn_token *out, uint64_t size)
{
    tn_status status = tokenizer_decode_check_id(host, v, id);
    if (status)
        return status;
    tn_token token = {.text = vocabulary_text(v, id),
                      .bytes = token_bytes(v, id),
                      .score = v->score ? (double)v->score[id] : 0,
                      .kind = v->kind[id],
                      .flags = token_ends(v, id) ? TN_TOKEN_ENDS : 0};
    memcpy(out, &token, size < sizeof(token) ? size : sizeof(token));
    return TN_OK;
}

static bool tokenizer_decode_is_left_out(const struct vocabulary *v, int32_t id,
                                         uint32_t flags)
{
    uint8_t kind = v->kind[id];
    return !(flags & TN_DECODE_SPECIAL) &&
           (kind == TN_TOKEN_CONTROL || kind == TN_TOKEN_UNKNOWN ||
            kind == TN_TOKEN_UNUSED); // unused tokens fill an embedding's rows
}

// Gives the bytes that token `id` adds to a text. `first`: only tokens that are left out
// come before it, or, without a pipeline, a special token does.
static tn_text tokenizer_decode_decoded(const struct vocabulary *v, int32_t id,
                                        uint32_t flags, bool first)
{
    tn_text bytes = token_bytes(v, id);
    if (tokenizer_decode_is_left_out(v, id, flags))
        bytes.size = 0;
    bool strips =
        v->ways ? v->ways & (WAY_STRIP | WAY_DROP)
                : v->facts.flags & TN_TOKENIZER_ADDS_SPACE && !kind_is_special(v->kind[id]);
    if (first && strips)
        while (bytes.size && bytes.data[0] == ' ') {
            bytes.data++;
            bytes.size--;
            if (!(v->ways & WAY_DROP))
                break;
        }
    return bytes;
}

tn_status vocabulary_decode(const tn_host *host, const struct vocabulary *v,
                            const int32_t *ids, uint64_t count, uint32_t flags,
                            char **out_text, uint64_t *out_size)
{
    uint64_t most = 1, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        tn_status status = tokenizer_decode_check_id(host, v, ids[i]);
        if (status)
            return status;
        most += token_bytes(v, ids[i]).size;
    }
    char *text = host->alloc(host, most, 0);
    if (!text)
        return TN_ERR_MEMORY;
    bool first = !(flags & TN_DECODE_CONTINUES);
    for (uint64_t i = 0; i < count; i++) {
        tn_text bytes = tokenizer_decode_decoded(v, ids[i], flags, first);
        memcpy(text + size, bytes.data, bytes.size);
        size += bytes.size;
        first = v->ways ? first && tokenizer_decode_is_left_out(v, ids[i], flags)
                        : kind_is_special(v->kind[ids[i]]);
    }
    text[size] = '\0';
    *out_text = text;
    *out_size = size;
    return TN_OK;
}
