// SPDX-License-Identifier: MIT
// Shared by all files of the front end: errors, and the capabilities that the code needs.
#include "translator.h"

#include <stdio.h>

void fail_at(struct translator *t, const struct position *at, const char *format, ...)
{
    char text[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    compiler_fail(t->c, at, "%s", text);
}

const char *punctuator_text(struct translator *t, uint32_t punctuator)
{
    char *text = compiler_allocate(t->c, 8);
    text[0] = '\'';
    uint32_t size = 1;
    for (; punctuator != 0; punctuator >>= 8)
        text[size++] = (char)(punctuator & 255);
    text[size] = '\'';
    return text;
}

const char *token_text(struct translator *t, const struct glsl_token *token)
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

static void note_positions(struct translator *t, uint64_t needs)
{
    for (uint32_t i = 0; i < NUM_NEEDS; i++)
        if (needs >> i & 1)
            t->need_positions[i] = t->token[t->token > t->first ? -1 : 0].at;
    t->seen_needs |= needs;
}

void use_needs(struct translator *t, uint64_t needs)
{
    if ((needs & ~t->seen_needs) != 0)
        note_positions(t, needs & ~t->seen_needs);
    *(t->function_needs != NULL ? t->function_needs : &t->needs) |= needs;
}

void use_type(struct translator *t, const struct type *type)
{
    uint64_t needs = type->needs;
    if (type->narrow != 0)
        needs |= (type->narrow & NARROW_INT8 ? NEED(INT8) : 0) |
                 (type->narrow & NARROW_INT16 ? NEED(INT16) : 0) |
                 (type->narrow & NARROW_FLOAT16 ? NEED(FLOAT16) : 0);
    use_needs(t, needs);
}
