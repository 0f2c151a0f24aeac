// SPDX-License-Identifier: MIT
// Cuts text into words, by PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <inttypes.h>
#include <pcre2.h>
#include "bpe.h"

// PCRE2 allocates from the host.
static void *take_memory(PCRE2_SIZE size, void *data)
{
    const tn_host *host = data;
    return host->alloc(host, size, 0);
}

static void give_memory(void *memory, void *data)
{
    const tn_host *host = data;
    host->free(host, memory);
}

static tn_status bpe_words_compile(const tn_host *host, struct splitter *s,
                                   const char *expression)
{
    int error = 0;
    PCRE2_SIZE position = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(s->context);
    if (!context)
        return TN_ERR_MEMORY;
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR)(const void *)expression, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &position, context);
    pcre2_compile_context_free(context);
    if (!code && error == PCRE2_ERROR_HEAP_FAILED)
        return TN_ERR_MEMORY;
    if (!code)
        return host->fail(host, TN_ERR_INTERNAL,
                          "PCRE2's error %d at byte %zu of the expression %s", error,
                          (size_t)position, expression);
    // Where executable memory is forbidden PCRE2 interprets.
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    s->codes[s->num_codes++] = code;
    return TN_OK;
}

tn_status splitter_init(const tn_host *host, const struct bpe_family *family,
                        struct splitter *out)
{
    tn_status status = TN_OK;
    *out = (struct splitter){.context = pcre2_general_context_create(
                                 take_memory, give_memory, (void *)(uintptr_t)host)};
    if (!out->context)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; status == TN_OK && i < MAX_EXPRESSIONS; i++)
        if (family->expressions[i])
            status = bpe_words_compile(host, out, family->expressions[i]);
    if (status)
        splitter_finish(out);
    return status;
}

void splitter_finish(struct splitter *s)
{
    for (uint32_t i = 0; i < s->num_codes; i++)
        pcre2_code_free(s->codes[i]);
    pcre2_general_context_free(s->context);
    *s = (struct splitter){0};
}

// A text that is being cut.
struct cut {
    const tn_host *host;
    const struct splitter *splitter;
    pcre2_match_data *match;
    const char *pattern, *text;
    take_word *take;
    void *state;
};

// Finds the next match of an expression in the text from `begin` to `end`, starting at
// `at`: *out_found, *out_from and *out_to.
static tn_status bpe_words_find(const struct cut *c, pcre2_code *code, uint64_t begin,
                                uint64_t end, uint64_t at, bool *out_found,
                                uint64_t *out_from, uint64_t *out_to)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)(const void *)(c->pattern + begin);
    int found = pcre2_jit_match(code, subject, end - begin, at - begin, 0, c->match, NULL);
    if (found == PCRE2_ERROR_JIT_BADOPTION || found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(code, subject, end - begin, at - begin,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, c->match, NULL);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
        return c->host->fail(c->host, TN_ERR_MEMORY,
                             "PCRE2's error %d at byte %" PRIu64 " of a text of %" PRIu64,
                             found, at, end);
    const PCRE2_SIZE *positions = pcre2_get_ovector_pointer(c->match);
    *out_found = found >= 0 && positions[1] > positions[0]; // no expression matches nothing
    *out_from = begin + positions[0];
    *out_to = begin + positions[1];
    return TN_OK;
}

// Cuts the text from `begin` to `end` by the expressions from number `level` on.
static tn_status bpe_words_cut(const struct cut *c, uint32_t level, uint64_t begin,
                               uint64_t end)
{
    uint64_t at = begin, from = begin, to = begin;
    tn_status status = TN_OK;
    if (level == c->splitter->num_codes)
        return c->take(c->state, c->text + begin, end - begin);
    while (status == TN_OK && at < end) {
        bool found = false;
        status = bpe_words_find(c, c->splitter->codes[level], begin, end, at, &found, &from,
                                &to);
        if (status == TN_OK && !found)
            return bpe_words_cut(c, level + 1, at, end);
        if (status == TN_OK && from > at)
            status = bpe_words_cut(c, level + 1, at, from);
        if (status == TN_OK)
            status = bpe_words_cut(c, level + 1, from, to);
        at = to;
    }
    return status;
}

tn_status splitter_run(const tn_host *host, const struct splitter *s, const char *pattern,
                       const char *text, uint64_t size, take_word *take, void *state)
{
    struct cut c = {.host = host,
                    .splitter = s,
                    .match = pcre2_match_data_create(1, s->context),
                    .pattern = pattern,
                    .text = text,
                    .take = take,
                    .state = state};
    if (!c.match)
        return TN_ERR_MEMORY;
    tn_status status = bpe_words_cut(&c, 0, 0, size);
    pcre2_match_data_free(c.match);
    return status;
}
