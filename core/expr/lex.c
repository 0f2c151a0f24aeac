// SPDX-License-Identifier: MIT
// Splits the text of an expression into tokens. Text is ASCII, and the process's locale
// does not matter.
#include "lex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/number.h"

#define MAX_TEXT (1 << 20)

static bool expr_lex_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool expr_lex_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

tn_status lex_fail(const struct lexer *lexer, const char *at, const char *format, ...)
{
    char message[256];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    const char *line = lexer->text;
    int number = 1;
    for (const char *p = lexer->text; p < at; p++)
        if (*p == '\n') {
            line = p + 1;
            number++;
        }
    // A long line is shown from 40 characters before the error.
    int column = (int)(at - line), skipped = column > 60 ? column - 40 : 0;
    int size = (int)strcspn(line + skipped, "\r\n");
    return fail(TN_ERR_ARGUMENT, "%s (line %d, column %d)\n  %.*s\n  %*s", message, number,
                column + 1, size > 76 ? 76 : size, line + skipped, column - skipped + 1,
                "^");
}

static tn_status lex_hex(struct lexer *lexer, const char *start)
{
    char *end;
    errno = 0;
    lexer->token.bits = strtoull(start, &end, 16);
    lexer->token.number_kind = KIND_UNSIGNED;
    if (end <= start + 2)
        return lex_fail(lexer, start, "hexadecimal digits are missing");
    if (errno == ERANGE)
        return lex_fail(lexer, start, "the integer does not fit 64 bits");
    lexer->next = end;
    return TN_OK;
}

// The end of a decimal number. *is_integer: the number has neither a point nor an exponent.
static const char *number_end(const char *p, bool *is_integer)
{
    *is_integer = true;
    while (expr_lex_is_digit(*p))
        p++;
    if (*p == '.') {
        *is_integer = false;
        for (p++; expr_lex_is_digit(*p);)
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        const char *q = p + 1;
        q += *q == '+' || *q == '-';
        if (expr_lex_is_digit(*q)) {
            *is_integer = false;
            for (p = q; expr_lex_is_digit(*p);)
                p++;
        }
    }
    return p;
}

static double expr_lex_to_double(const char *start, uint32_t size)
{
    char copy[400];
    uint32_t n = size < sizeof(copy) - 1 ? size : (uint32_t)sizeof(copy) - 1;
    memcpy(copy, start, n);
    copy[n] = 0;
    return text_to_double(copy, NULL);
}

// "2j", times the imaginary unit. A longer word behind the digits is left, and refused.
static void lex_imaginary(struct lexer *lexer)
{
    struct token *token = &lexer->token;
    const char *next = lexer->next;
    if (*next != 'j' || is_letter(next[1]) || expr_lex_is_digit(next[1]))
        return;
    if (token->number_kind != KIND_FLOAT)
        token->bits = double_to_bits((double)token->bits);
    token->number_kind = KIND_COMPLEX;
    lexer->next++;
}

static tn_status expr_lex_number(struct lexer *lexer, const char *start)
{
    if (start[0] == '0' && (start[1] == 'x' || start[1] == 'X')) {
        tn_status status = lex_hex(lexer, start);
        if (status != TN_OK)
            return status;
    } else {
        bool is_integer;
        lexer->next = number_end(start, &is_integer);
        uint32_t size = (uint32_t)(lexer->next - start);
        if (size > 320)
            return lex_fail(lexer, start, "the number has more than 320 digits");
        errno = 0;
        if (is_integer) {
            lexer->token.bits = strtoull(start, NULL, 10);
            lexer->token.number_kind = KIND_UNSIGNED;
        } else {
            double value = expr_lex_to_double(start, size);
            lexer->token.bits = double_to_bits(value);
            lexer->token.number_kind = KIND_FLOAT;
            if (value - value != 0)
                return lex_fail(lexer, start, "the number is larger than any f64");
        }
        if (errno == ERANGE && is_integer)
            return lex_fail(lexer, start, "the integer does not fit 64 bits");
    }
    lexer->token.kind = TOKEN_NUMBER;
    lex_imaginary(lexer);
    if (is_letter(*lexer->next) || expr_lex_is_digit(*lexer->next))
        return lex_fail(lexer, lexer->next, "a number ends here, got '%c'", *lexer->next);
    return TN_OK;
}

static tn_status lex_sign(struct lexer *lexer, const char *start)
{
    static const char *const signs[] = {
        "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
        "->", "+",  "-",  "*",  "/",  "%",  "<",  ">",  "!",  "~",
        "&",  "|",  "^",  "?",  ":",  ",",  ";",  "=",  "(",  ")"};
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        size_t size = strlen(signs[i]);
        if (strncmp(start, signs[i], size) == 0) {
            lexer->token.kind = TOKEN_SIGN;
            memcpy(lexer->token.sign, signs[i], size);
            lexer->next = start + size;
            return TN_OK;
        }
    }
    unsigned char c = (unsigned char)*start;
    if (c >= 32 && c < 127)
        return lex_fail(lexer, start, "'%c' is not part of the language of expressions", c);
    return lex_fail(lexer, start, "byte 0x%02x is not part of the language of expressions",
                    c);
}

tn_status lex_next(struct lexer *lexer)
{
    const char *p = lexer->next;
    while (expr_lex_is_space(*p))
        p++;
    lexer->token = (struct token){.kind = TOKEN_END, .at = p};
    lexer->next = p;
    tn_status status = TN_OK;
    if (is_letter(*p)) {
        while (is_letter(*lexer->next) || expr_lex_is_digit(*lexer->next))
            lexer->next++;
        lexer->token.kind = TOKEN_NAME;
    } else if (expr_lex_is_digit(*p) || (*p == '.' && expr_lex_is_digit(p[1]))) {
        status = expr_lex_number(lexer, p);
    } else if (*p) {
        status = lex_sign(lexer, p);
    }
    lexer->token.size = (uint32_t)(lexer->next - p);
    return status;
}

tn_status lex_init(struct lexer *lexer, const char *text)
{
    *lexer = (struct lexer){.text = text, .next = text};
    if (strnlen(text, MAX_TEXT) == MAX_TEXT)
        return fail(TN_ERR_ARGUMENT, "the expression's text is longer than %d bytes",
                    MAX_TEXT);
    return lex_next(lexer);
}
