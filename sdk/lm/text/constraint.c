// SPDX-License-Identifier: MIT
// Texts that are constrained by a grammar: the grammar itself, and the masks of a model's
// tokens.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../engine/tokens.h"
#include "../grammar/grammar.h"
#include "constraint.h"

struct tn_lm_grammar {
    struct grammar_network network;
    // The matcher of a text that has ended, for the next text: its sets and masks are
    // reused.
    _Atomic(struct grammar_matcher *) parked;
};

tn_status tn_lm_grammar_open(const char *text, uint64_t size, uint32_t kind,
                             tn_lm_grammar **out_grammar)
{
    if (kind != TN_LM_GBNF && kind != TN_LM_JSON_SCHEMA)
        return lm_fail(TN_ERR_ARGUMENT,
                       "a grammar of kind %u, expected TN_LM_GBNF or TN_LM_JSON_SCHEMA",
                       kind);
    struct grammar_builder *b = lm_alloc(1, sizeof(*b));
    tn_lm_grammar *grammar = lm_alloc(1, sizeof(*grammar));
    tn_status status = b && grammar ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = kind == TN_LM_GBNF ? grammar_read_gbnf(b, text, size)
                                    : grammar_read_schema(b, text, size);
    if (status == TN_OK)
        status = grammar_compile(b, &grammar->network);
    if (b)
        grammar_builder_finish(b);
    free(b);
    if (status == TN_OK)
        *out_grammar = grammar;
    else
        free(grammar);
    return status;
}

void tn_lm_grammar_close(tn_lm_grammar *grammar)
{
    if (!grammar)
        return;
    grammar_matcher_close(atomic_load(&grammar->parked));
    grammar_network_finish(&grammar->network);
    free(grammar);
}

// --- matchers --------------------------------------------------------------------------

// The parked matcher is a cache: taking it changes nothing that can be seen.
static _Atomic(struct grammar_matcher *) *parking(const tn_lm_grammar *grammar)
{
    return (_Atomic(struct grammar_matcher *) *)(uintptr_t)&grammar->parked;
}

static tn_status take_matcher(const tn_lm_grammar *grammar,
                              struct grammar_matcher **out_matcher)
{
    struct grammar_matcher *m = atomic_exchange(parking(grammar), NULL);
    if (!m)
        return grammar_matcher_open(&grammar->network, out_matcher);
    tn_status status = grammar_matcher_reset(m);
    if (status == TN_OK)
        *out_matcher = m;
    else
        grammar_matcher_close(m);
    return status;
}

static void park_matcher(const tn_lm_grammar *grammar, struct grammar_matcher *m)
{
    grammar_matcher_close(atomic_exchange(parking(grammar), m));
}

tn_status tn_lm_grammar_test(const tn_lm_grammar *grammar, const char *text, uint64_t size,
                             int32_t *out_fits)
{
    struct grammar_matcher *m = NULL;
    bool fits = false;
    tn_status status = take_matcher(grammar, &m);
    if (status != TN_OK)
        return status;
    status = grammar_matcher_append(m, text, size, &fits);
    if (status == TN_OK)
        *out_fits = !fits                        ? TN_LM_FITS_NOT
                    : grammar_matcher_may_end(m) ? TN_LM_FITS
                                                 : TN_LM_FITS_BEGIN;
    park_matcher(grammar, m);
    return status;
}

// --- vocabularies ----------------------------------------------------------------------

static tn_status make_vocabulary(tn_lm *model)
{
    const tn_tokenizer_facts *facts = model->tokens->facts(model->tokenizer);
    int32_t count = (int32_t)model->facts->vocabulary;
    tn_text *texts = lm_alloc((uint64_t)count, sizeof(*texts));
    tn_status status = texts ? TN_OK : TN_ERR_MEMORY;
    for (int32_t i = 0; i < count && i < facts->count && status == TN_OK; i++) {
        tn_token token;
        status = lm_fail_core(model->tokens->token(model->tokens_host, model->tokenizer, i,
                                                   &token, sizeof(token)));
        bool is_text = status == TN_OK && !(token.flags & TN_TOKEN_ENDS) &&
                       (token.kind == TN_TOKEN_NORMAL || token.kind == TN_TOKEN_BYTE ||
                        token.kind == TN_TOKEN_USER_DEFINED);
        if (is_text)
            texts[i] = token.bytes;
    }
    if (status == TN_OK)
        status = grammar_vocabulary_make(texts, count, &model->vocabulary);
    free(texts);
    return status;
}

static tn_status find_vocabulary(tn_lm *model,
                                 const struct grammar_vocabulary **out_vocabulary)
{
    static atomic_uint_fast64_t serials;
    tn_status status = lm_tokenizer(model);
    if (status != TN_OK)
        return status;
    lm_tokenizer_lock(model);
    if (!model->vocabulary) {
        status = make_vocabulary(model);
        model->serial = atomic_fetch_add(&serials, 1) + 1;
    }
    lm_tokenizer_unlock(model);
    *out_vocabulary = model->vocabulary;
    return status;
}

// --- texts -----------------------------------------------------------------------------

struct lm_held {
    const tn_lm_grammar *grammar;
    struct grammar_matcher *matcher;
    const struct grammar_vocabulary *vocabulary;
    tn_lm *model;
    uint64_t *mask; // the tokens that may come next, ends of texts included
};

tn_status lm_held_open(const tn_lm_grammar *grammar, tn_lm *model, struct lm_held **out)
{
    struct lm_held *held = lm_alloc(1, sizeof(*held));
    if (!held)
        return TN_ERR_MEMORY;
    held->grammar = grammar;
    held->model = model;
    held->mask = lm_alloc(((uint64_t)model->facts->vocabulary + 63) / 64, sizeof(uint64_t));
    tn_status status =
        held->mask ? find_vocabulary(model, &held->vocabulary) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = take_matcher(grammar, &held->matcher);
    if (status == TN_OK)
        *out = held;
    else
        lm_held_close(held);
    return status;
}

void lm_held_close(struct lm_held *held)
{
    if (!held)
        return;
    if (held->matcher)
        park_matcher(held->grammar, held->matcher);
    free(held->mask);
    free(held);
}

tn_status lm_held_mask(struct lm_held *held, const uint64_t **out_mask)
{
    const uint64_t *mask;
    const tn_lm *model = held->model;
    const tn_tokenizer_facts *facts = model->tokens->facts(model->tokenizer);
    uint64_t words = ((uint64_t)model->facts->vocabulary + 63) / 64, any = 0;
    tn_status status =
        grammar_matcher_mask(held->matcher, held->vocabulary, model->serial, &mask);
    if (status != TN_OK)
        return status;
    memcpy(held->mask, mask, words * sizeof(*mask));
    for (uint64_t i = 0; grammar_matcher_may_end(held->matcher) && i < facts->num_ends; i++)
        if (facts->ends[i] < model->facts->vocabulary)
            held->mask[facts->ends[i] / 64] |= UINT64_C(1) << facts->ends[i] % 64;
    for (uint64_t i = 0; i < words; i++)
        any |= held->mask[i];
    if (!any)
        return lm_fail(TN_ERR_UNSUPPORTED,
                       "no token of the vocabulary continues a text of the grammar");
    *out_mask = held->mask;
    return TN_OK;
}

tn_status lm_held_append(struct lm_held *held, const char *text, uint64_t size,
                         bool *out_is_over)
{
    bool fits = false;
    tn_status status = grammar_matcher_append(held->matcher, text, size, &fits);
    if (status == TN_OK && !fits)
        status = lm_fail(TN_ERR_INTERNAL, "a token was drawn that its grammar forbids");
    *out_is_over = status == TN_OK && !grammar_matcher_may_go_on(held->matcher);
    return status;
}
