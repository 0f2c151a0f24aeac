// SPDX-License-Identifier: MIT
#include "preprocess.h"

#include <stdlib.h>
#include <string.h>

static _Noreturn void fail_token(struct preprocessor *pp, const struct lexeme *token)
{
    unsigned char byte = token->kind == LEXEME_HASH    ? '#'
                         : token->kind == LEXEME_PASTE ? '#'
                         : token->kind == LEXEME_OTHER ? (unsigned char)token->text[0]
                                                       : '"';
    if (token->kind == LEXEME_STRING || byte == '"')
        compiler_fail(pp->compiler, &token->at,
                      "a string is in the code: the language has none");
    if (byte < 0x20 || byte >= 0x7f)
        compiler_fail(pp->compiler, &token->at,
                      "the byte 0x%02X is in the code: expected ASCII outside of comments",
                      byte);
    compiler_fail(pp->compiler, &token->at, "the character '%c' begins no token", byte);
}

// --- as text ----------------------------------------------------------------------------

static void preprocess_write_bytes(struct compiler *c, struct preprocessed_text *out,
                                   const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        out->text = compiler_grow(c, out->text, out->size, &out->capacity, 1);
        out->text[out->size++] = text[i];
    }
}

static void write_token(struct compiler *c, const struct lexeme *token)
{
    struct preprocessed_text *out = c->text;
    if (out->size > 0) {
        bool is_same_line =
            token->at.line == out->last.line && token->at.file == out->last.file;
        preprocess_write_bytes(c, out, is_same_line ? " " : "\n", 1);
    }
    out->last = token->at;
    char bytes[64];
    size_t size = lexeme_spell(token, bytes, sizeof(bytes));
    char *text = bytes;
    if (size > sizeof(bytes)) {
        text = compiler_allocate(c, size);
        lexeme_spell(token, text, size);
    }
    preprocess_write_bytes(c, out, text, size);
}

static void preprocess_work(struct compiler *c, void *context)
{
    char **out = context;
    struct preprocessed result;
    preprocess(c, &result);
    struct preprocessed_text *text = c->text;
    preprocess_write_bytes(c, text, "\n", 2);
    *out = malloc(text->size);
    if (!*out)
        compiler_fail(c, NULL, "out of memory: no %u bytes", text->size);
    memcpy(*out, text->text, text->size);
}

char *glsl_preprocess(const struct glsl_source *source, struct glsl_result *result)
{
    *result = (struct glsl_result){0};
    struct preprocessed_text text = {0};
    struct compiler c = {.source = source, .result = result, .text = &text};
    char *out = NULL;
    return compiler_run(&c, preprocess_work, &out) ? out : NULL;
}

// --- tokens -----------------------------------------------------------------------------

static void preprocess_append(struct preprocessor *pp, const struct lexeme *token)
{
    struct tokens *tokens = &pp->out->tokens;
    tokens->items = compiler_grow(pp->compiler, tokens->items, tokens->count,
                                  &pp->max_tokens, sizeof(*tokens->items));
    struct glsl_token *out = &tokens->items[tokens->count++];
    out->at = token->at;
    if (pp->compiler->text && token->kind != LEXEME_END)
        write_token(pp->compiler, token);
    switch (token->kind) {
    case LEXEME_NAME:
        out->kind = TOKEN_NAME;
        out->name = token->name;
        break;
    case LEXEME_PUNCTUATOR:
        out->kind = TOKEN_PUNCTUATOR;
        out->punctuator = token->punctuator;
        break;
    case LEXEME_NUMBER:
        lexeme_number(pp->compiler, token, out);
        break;
    case LEXEME_END:
        out->kind = TOKEN_END;
        break;
    default:
        fail_token(pp, token);
    }
}

// Ends the innermost text. False: it was the last one.
static bool end_input(struct preprocessor *pp)
{
    struct input *input = pp->input;
    if (pp->num_conditions > input->num_conditions)
        compiler_fail(pp->compiler, &pp->conditions[pp->num_conditions - 1].at,
                      "the condition has no end: expected #endif");
    if (!input->previous)
        return false;
    pp->input = input->previous;
    pp->num_inputs--;
    return true;
}

void preprocess(struct compiler *c, struct preprocessed *out)
{
    struct preprocessor *pp = compiler_allocate(c, sizeof(*pp));
    pp->compiler = c;
    pp->out = out;
    *out = (struct preprocessed){0};
    pp->defined = compiler_name(c, "defined", strlen("defined"));
    preprocess_directive_names(pp);
    const struct glsl_source *source = c->source;
    preprocess_begin_input(pp, source->name ? source->name : "", source->text, source->size,
                           0);
    struct lexeme token;
    // About as many as the text has: room that is copied less often.
    pp->max_tokens = (uint32_t)source->size / 16 + 16;
    out->tokens.items = compiler_allocate(c, pp->max_tokens * sizeof(*out->tokens.items));
    do {
        preprocess_next(pp, &token);
        bool is_directive = token.kind == LEXEME_HASH && token.flags & LEXEME_AT_LINE_START;
        if (is_directive) {
            preprocess_directive(pp);
            continue;
        }
        if (!out->version)
            preprocess_no_version(pp, &token.at);
        if (token.kind != LEXEME_END)
            preprocess_append(pp, &token);
    } while (token.kind != LEXEME_END || end_input(pp));
    preprocess_append(pp, &token);
    out->tokens.count--;
}
