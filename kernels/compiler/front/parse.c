// SPDX-License-Identifier: MIT
// Tokens as the parser reads them, and errors.
#include "../types/translator.h"

#include <stdio.h>

void fail_at(struct translator *t, const struct place *at, const char *format, ...)
{
    char text[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    compiler_fail(t->c, at, "%s", text);
}

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

static const char *punctuator_text(struct translator *t, uint32_t punctuator)
{
    char *text = compiler_allocate(t->c, 8);
    text[0] = '\'';
    uint32_t size = 1;
    for (; punctuator != 0; punctuator >>= 8)
        text[size++] = (char)(punctuator & 255);
    text[size] = '\'';
    return text;
}

const char *token_text(struct translator *t, const struct token *token)
{
    if (token->kind == TOKEN_END)
        return "the end of the source";
    if (token->kind == TOKEN_PUNCTUATOR)
        return punctuator_text(t, token->punctuator);
    if (token->kind != TOKEN_NAME)
        return "a number";
    char *text = compiler_allocate(t->c, 64);
    snprintf(text, 64, "'%.60s'", token->name->text);
    return text;
}

// The place behind the last token that was read: where something is missing.
static struct place behind_last(const struct translator *t)
{
    return t->token->at;
}

void expect(struct translator *t, uint32_t punctuator, const char *after)
{
    if (accept(t, punctuator))
        return;
    struct place at = behind_last(t);
    fail_at(t, &at, "found %s, expected %s %s", token_text(t, t->token),
            punctuator_text(t, punctuator), after);
}

const struct name *expect_identifier(struct translator *t, const char *what)
{
    const struct token *token = t->token;
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
