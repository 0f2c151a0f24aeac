// SPDX-License-Identifier: MIT
// Characters to preprocessing tokens: those of the C preprocessor, in which a number is
// still its spelling and a newline may be a token.
#ifndef KERNELS_COMPILER_LEX_H
#define KERNELS_COMPILER_LEX_H

#include "token.h"

enum {
    MOST_SOURCE = 16 << 20, // bytes of a text
    MOST_NAME = 1024,       // characters of a name
};

enum lexeme_kind {
    LEXEME_END,     // of the text
    LEXEME_NEWLINE, // in a directive only; it is not consumed
    LEXEME_NAME,
    LEXEME_NUMBER, // `text`: its spelling, with any letters that follow
    LEXEME_PUNCTUATOR,
    LEXEME_HASH,      // #
    LEXEME_PASTE,     // ##
    LEXEME_STRING,    // `text`: what is between "" or, in #include, <>
    LEXEME_OTHER,     // `text`: a byte that begins no token
    LEXEME_PARAMETER, // `parameter`: in the body of a macro
    LEXEME_EMPTY,     // nothing: an empty argument beside ##
};

enum {
    LEXEME_AT_LINE_START = 1,
    LEXEME_AFTER_SPACE = 2,
    LEXEME_NOT_EXPANDED = 4, // the name of a macro that it comes from itself
    LEXEME_OF_BODY = 8,      // has no position until it is read from its macro's expansion
};

struct lexeme {
    uint8_t kind, flags;
    uint32_t size; // of `text`
    struct position at;
    union {
        struct name *name;
        const char *text; // without a NUL
        uint32_t punctuator, parameter;
    };
};

// Reads one text. A backslash before a newline has been cut out of it; `splices` are where.
struct glsl_lexer {
    struct compiler *compiler;
    const char *at, *end;    // *end is a NUL
    const char *line_start;  // columns count from it
    const char *next_splice; // of those not passed yet; behind `end`: none
    const uint32_t *splices; // the offsets behind it, ended by UINT32_MAX
    const char *text;
    uint32_t line, file;
    bool in_directive; // newlines are tokens
    bool begins_line;  // nothing but space is between the line's start and `at`
};

// Begins a text, and checks it for NUL bytes. The lexer keeps what it needs of it.
void lex_begin(struct glsl_lexer *lexer, struct compiler *c, const char *text, size_t size,
               uint32_t file);
// The next token. A struct that is returned is stored in parts and copied as a whole, for
// which processors wait: where most tokens pass, lex_to().
struct lexeme lex(struct glsl_lexer *lexer);
void lex_to(struct glsl_lexer *lexer, struct lexeme *out);
// The file name of #include: "name" or <name>. LEXEME_OTHER where there is none.
struct lexeme lex_header(struct glsl_lexer *lexer);
// The rest of the line, without the spaces around it.
struct lexeme lex_rest(struct glsl_lexer *lexer);
// Skips lines up to the next one that begins with #, which is read. False: there is none.
bool lex_skip_to_directive(struct glsl_lexer *lexer, struct lexeme *hash);
struct position lex_position(const struct glsl_lexer *lexer);
// Ends the line of a directive: the one behind it has this number.
void lex_set_line(struct glsl_lexer *lexer, uint32_t line);

// The token as it is spelled: at most `room` bytes of it are written; returns its size.
size_t lexeme_spell(const struct lexeme *lexeme, char *out, size_t room);

// The value of a number. Fails where it is none.
void lexeme_number(struct compiler *c, const struct lexeme *number, struct glsl_token *out);
// The nearest double to a decimal number: digits with at most one point, and an exponent.
double decimal_to_double(const char *text, size_t size);

#endif // KERNELS_COMPILER_LEX_H
