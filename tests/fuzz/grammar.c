// SPDX-License-Identifier: MIT
// Grammars and JSON schemas: each is read or refused with a message, and matches the rest
// of the input in parts as it does at once, in bounded time and memory. JSON that a
// schema's grammar has is JSON.
#include "fuzz.h"
#include <jansson.h>
#include <tenon/lm.h>

static int32_t test(const tn_lm_grammar *grammar, const char *text, size_t size)
{
    int32_t fits = -1;
    tn_status status = tn_lm_grammar_test(grammar, text, size, &fits);
    FUZZ_CHECK(status == TN_OK || (status == TN_ERR_UNSUPPORTED && tn_lm_error()[0]),
               "status %d: %s", status, tn_lm_error());
    return fits;
}

// What fits has beginnings that fit.
static void match(const tn_lm_grammar *grammar, const char *text, size_t size, bool is_json)
{
    size = size > 256 ? 256 : size;
    int32_t before = test(grammar, text, 0);
    FUZZ_CHECK(before != TN_LM_FITS_NOT, "no text begins with nothing");
    for (size_t i = 1; i <= size && before > TN_LM_FITS_NOT; i++) {
        before = test(grammar, text, i);
        json_t *value = before == TN_LM_FITS && is_json
                            ? json_loadb(text, i, JSON_DECODE_ANY, NULL)
                            : NULL;
        FUZZ_CHECK(before != TN_LM_FITS || !is_json || value, "'%.*s' is no JSON", (int)i,
                   text);
        json_decref(value);
    }
    if (size > 0 && before == TN_LM_FITS_NOT)
        FUZZ_CHECK(test(grammar, text, size) <= TN_LM_FITS_NOT, "goes on behind its end");
}

// The first byte is the kind; a zero byte ends the grammar and begins a text.
void fuzz_one(const uint8_t *data, size_t size)
{
    tn_lm_grammar *grammar = NULL;
    if (size < 1)
        return;
    uint32_t kind = data[0] % 2 ? TN_LM_GBNF : TN_LM_JSON_SCHEMA;
    const char *text = (const char *)data + 1;
    const char *zero = memchr(text, 0, size - 1);
    size_t length = zero ? (size_t)(zero - text) : size - 1;
    tn_status status = tn_lm_grammar_open(text, length, kind, &grammar);
    FUZZ_CHECK(status == TN_OK || (!grammar && tn_lm_error()[0]), "status %d", status);
    FUZZ_CHECK(status != TN_ERR_INTERNAL, "%s", tn_lm_error());
    if (grammar)
        match(grammar, zero ? zero + 1 : text, zero ? size - 2 - length : 0,
              kind == TN_LM_JSON_SCHEMA);
    tn_lm_grammar_close(grammar);
}
