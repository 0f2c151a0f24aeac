// SPDX-License-Identifier: MIT
// Tokens of the expression language.
#ifndef CORE_EXPR_LEX_H
#define CORE_EXPR_LEX_H

#include "tree.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN };

struct token {
    enum token_kind kind;
    const char *at; // first character, in the lexer's text
    uint32_t size;
    char sign[3];        // SIGN: "+", "**", ...
    uint8_t number_kind; // NUMBER: a dtype_kind
    uint64_t bits;       // NUMBER
};

struct lexer {
    const char *text, *next;
    struct token token; // the current token; `next` is behind it
};

tn_status lex_init(struct lexer *lexer, const char *text);
tn_status lex_next(struct lexer *lexer);
static inline bool lex_is(const struct lexer *lexer, const char *sign)
{
    const char *have = lexer->token.sign;
    return lexer->token.kind == TOKEN_SIGN && have[0] == sign[0] && have[1] == sign[1];
}

// Records a syntax error at `at`: the message with line and column, and the line of text
// with a caret.
tn_status lex_fail(const struct lexer *lexer, const char *at, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif // CORE_EXPR_LEX_H
