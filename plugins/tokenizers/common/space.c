// SPDX-License-Identifier: MIT
// Spaces in vocabularies of characters: U+2581, three bytes.
#include <string.h>
#include "vocabulary.h"

static const char mark[] = "\u2581";

enum { MARK_BYTES = sizeof(mark) - 1 };

bool begins_marked(const char *text, uint64_t size)
{
    return size >= MARK_BYTES && memcmp(text, mark, MARK_BYTES) == 0;
}

uint64_t decode_spaces(const char *text, uint64_t size, char *out)
{
    uint64_t written = 0;
    for (uint64_t i = 0; i < size;) {
        bool is_mark = begins_marked(text + i, size - i);
        out[written++] = is_mark ? ' ' : text[i];
        i += is_mark ? MARK_BYTES : 1;
    }
    return written;
}

tn_status encode_spaces(const tn_host *host, const char *text, uint64_t size, bool first,
                        char **out_text, uint64_t *out_size)
{
    uint64_t spaces = first, at = 0;
    for (uint64_t i = 0; i < size; i++)
        spaces += text[i] == ' ';
    char *out = host->alloc(host, size + spaces * MARK_BYTES, 0);
    if (!out)
        return TN_ERR_MEMORY;
    if (first) {
        memcpy(out, mark, MARK_BYTES);
        at = MARK_BYTES;
    }
    for (uint64_t i = 0; i < size; i++) {
        if (text[i] != ' ') {
            out[at++] = text[i];
            continue;
        }
        memcpy(out + at, mark, MARK_BYTES);
        at += MARK_BYTES;
    }
    *out_text = out;
    *out_size = at;
    return TN_OK;
}
