// SPDX-License-Identifier: MIT
// Tokens as the parser reads them.
#include "parse.h"

bool next_is(const struct translator *t, uint32_t punctuator)
{
    return t->token->kind == TOKEN_PUNCTUATOR && t->token->punctuator == punctuator;
}

bool next_is_keyword(const struct translator *t, enum keyword keyword)
{
    return t->token->kind == TOKEN_NAME && t->token->name->keyword == keyword;
}

bool accept(struct translator *t, uint32_t punctuator)
{
    bool is_next = next_is(t, punctuator);
    t->token += is_next;
    return is_next;
}

bool accept_keyword(struct translator *t, enum keyword keyword)
{
    bool is_next = next_is_keyword(t, keyword);
    t->token += is_next;
    return is_next;
}

// The position behind the last token that was read: where something is missing.
static struct position behind_last(const struct translator *t)
{
    return t->token->at;
}

void expect(struct translator *t, uint32_t punctuator, const char *after)
{
    if (accept(t, punctuator))
        return;
    struct position at = behind_last(t);
    fail_at(t, &at, "found %s, expected %s %s", token_text(t, t->token),
            punctuator_text(t, punctuator), after);
}

const struct name *expect_identifier(struct translator *t, const char *what)
{
    const struct glsl_token *token = t->token;
    if (token->kind != TOKEN_NAME)
        fail_at(t, &token->at, "found %s, expected %s", token_text(t, token), what);
    if (token->name->keyword >= KEYWORDS_TAKEN)
        fail_at(t, &token->at, "'%.60s' is reserved or not supported, expected %s",
                token->name->text, what);
    if (token->name->keyword != KEYWORD_NONE)
        fail_at(t, &token->at, "'%.60s' is a keyword, expected %s", token->name->text,
                what);
    t->token++;
    return token->name;
}

void enter_level(struct translator *t)
{
    if (++t->level > MOST_LEVELS)
        fail_at(t, &t->token->at, "the source nests deeper than %d levels", MOST_LEVELS);
}
