// SPDX-License-Identifier: MIT
// The texts that are read, ends of lines, and what is found where something else is
// expected.
#include "preprocess.h"

bool preprocess_is_end(const struct lexeme *token)
{
    return token->kind == LEXEME_NEWLINE || token->kind == LEXEME_END;
}

void preprocess_fail_found(struct preprocessor *pp, const struct lexeme *token,
                           const char *what, const char *expected)
{
    char text[61];
    size_t size = lexeme_spell(token, text, sizeof(text) - 1);
    if (preprocess_is_end(token))
        compiler_fail(pp->compiler, &token->at, "%s ends here: expected %s", what,
                      expected);
    compiler_fail(pp->compiler, &token->at, "'%.*s' is in %s: expected %s", cut(size), text,
                  what, expected);
}

void preprocess_end_line(struct preprocessor *pp, struct glsl_lexer *l, const char *what)
{
    struct lexeme token = lex(l);
    if (!preprocess_is_end(&token))
        preprocess_fail_found(pp, &token, what, "the end of the line");
}

void preprocess_begin_input(struct preprocessor *pp, const char *name, const char *text,
                            size_t size, uint32_t number)
{
    struct input *input = compiler_allocate(pp->compiler, sizeof(*input));
    input->previous = pp->input;
    input->name = name;
    input->number = number;
    input->num_conditions = pp->num_conditions;
    lex_begin(&input->lexer, pp->compiler, text, size, compiler_file(pp->compiler, name));
    pp->input = input;
    pp->num_inputs++;
}

void preprocess_no_version(struct preprocessor *pp, const struct position *at)
{
    compiler_fail(
        pp->compiler, at,
        "the source begins without #version: expected #version 450 or #version 460");
}
