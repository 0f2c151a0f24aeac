// SPDX-License-Identifier: MIT
#include "lex.h"

#include <string.h>

enum {
    CLASS_SPACE = 1,
    CLASS_LETTER = 2, // begins a name
    CLASS_DIGIT = 4,
    CLASS_SINGLE = 8, // a punctuator of its own, whatever follows
};

// Classes of the bytes of ASCII; others have none.
#define S CLASS_SPACE
#define L CLASS_LETTER
#define D CLASS_DIGIT
#define P CLASS_SINGLE
// clang-format off
static const uint8_t classes[256] = {
    ['\t'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S,
    ['0'] = D, D, D, D, D, D, D, D, D, D,
    ['A'] = L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    ['_'] = L,
    ['a'] = L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,
    ['('] = P, [')'] = P, ['['] = P, [']'] = P, ['{'] = P, ['}'] = P,
    ['~'] = P, [':'] = P, [';'] = P, [','] = P, ['?'] = P, ['.'] = P,
};
// clang-format on
#undef S
#undef L
#undef D
#undef P

static bool preprocess_lex_is(char character, int class)
{
    return classes[(unsigned char)character] & class;
}

// --- the text ---------------------------------------------------------------------------

// The number of bytes of the newline at `at`: "\n", "\r\n", or none.
static size_t newline_size(const char *at)
{
    return at[0] == '\n' ? 1 : at[0] == '\r' && at[1] == '\n' ? 2 : 0;
}

// Copies a text without its spliced newlines, in place; *end moves. Returns their offsets.
static const uint32_t *cut_splices(struct compiler *c, char *text, size_t *size)
{
    uint32_t *splices = NULL, num_splices = 0, capacity = 0;
    char *to = text, *end = text + *size;
    for (const char *from = text; from < end;) {
        const char *slash = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((slash ? slash : end) - from);
        memmove(to, from, plain);
        to += plain;
        from += plain;
        if (!slash)
            break;
        size_t newline = newline_size(slash + 1);
        if (newline == 0) {
            *to++ = *from++;
            continue;
        }
        splices = compiler_grow(c, splices, num_splices, &capacity, sizeof(*splices));
        splices[num_splices++] = (uint32_t)(to - text);
        from += 1 + newline;
    }
    *to = 0;
    *size = (size_t)(to - text);
    if (num_splices == 0)
        return NULL;
    splices = compiler_grow(c, splices, num_splices, &capacity, sizeof(*splices));
    splices[num_splices] = UINT32_MAX;
    return splices;
}

static void set_next_splice(struct glsl_lexer *l)
{
    bool has_one = l->splices && *l->splices != UINT32_MAX;
    l->next_splice = has_one ? l->text + *l->splices : l->end + 1;
}

void lex_begin(struct glsl_lexer *l, struct compiler *c, const char *text, size_t size,
               uint32_t file)
{
    *l = (struct glsl_lexer){.compiler = c, .line = 1, .file = file, .begins_line = true};
    if (size > MOST_SOURCE)
        compiler_fail(c, &(struct position){.file = file, .line = 1, .column = 1},
                      "the text has %zu bytes: expected at most %d MiB", size,
                      MOST_SOURCE >> 20);
    const char *nul = size > 0 ? memchr(text, 0, size) : NULL;
    char *copy = compiler_allocate(c, size + 2);
    if (size > 0)
        memcpy(copy, text, size);
    l->splices = cut_splices(c, copy, &size);
    l->text = l->at = l->line_start = copy;
    l->end = copy + size;
    set_next_splice(l);
    if (!nul)
        return;
    struct position at = {.file = file, .line = 1, .column = 1};
    for (const char *p = text; p < nul; p++, at.column++)
        if (*p == '\n') {
            at.line++;
            at.column = 0;
        }
    compiler_fail(c, &at, "the text has a NUL byte: expected text in UTF-8");
}

// Counts the splices in front of `at`: each ends a line of the source.
static void pass_splices(struct glsl_lexer *l)
{
    while (l->at >= l->next_splice) {
        l->line++;
        l->line_start = l->next_splice;
        l->splices++;
        set_next_splice(l);
    }
}

struct position lex_position(const struct glsl_lexer *l)
{
    return (struct position){
        .file = l->file, .line = l->line, .column = (uint32_t)(l->at - l->line_start) + 1};
}

static void pass_newline(struct glsl_lexer *l)
{
    l->at++;
    l->line++;
    l->line_start = l->at;
}

void lex_set_line(struct glsl_lexer *l, uint32_t line)
{
    pass_splices(l);
    if (*l->at == '\n')
        l->at++;
    l->line = line;
    l->line_start = l->at;
    l->begins_line = true;
}

// --- spaces and comments ----------------------------------------------------------------

static void skip_block_comment(struct glsl_lexer *l)
{
    if (l->at >= l->next_splice)
        pass_splices(l);
    struct position at = lex_position(l);
    const char *p = l->at + 2;
    while (*p != '*' || p[1] != '/') {
        if (p >= l->end)
            compiler_fail(l->compiler, &at, "the comment has no end: expected */");
        if (*p++ != '\n')
            continue;
        l->at = p - 1;
        if (l->at >= l->next_splice)
            pass_splices(l);
        pass_newline(l);
    }
    l->at = p + 2;
}

// Skips what separates tokens, newlines too where they are none themselves. Returns the
// flags of the token behind it.
static uint8_t preprocess_lex_skip_space(struct glsl_lexer *l)
{
    uint8_t flags = 0;
    for (;;) {
        if (preprocess_lex_is(*l->at, CLASS_SPACE)) {
            const char *p = l->at + 1;
            while (preprocess_lex_is(*p, CLASS_SPACE))
                p++;
            l->at = p;
        } else if (*l->at == '\n' && !l->in_directive) {
            if (l->at >= l->next_splice)
                pass_splices(l);
            pass_newline(l);
            flags |= LEXEME_AT_LINE_START;
        } else if (*l->at == '/' && l->at[1] == '/') {
            const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
            l->at = newline ? newline : l->end;
        } else if (*l->at == '/' && l->at[1] == '*') {
            skip_block_comment(l);
        } else {
            return flags;
        }
        flags |= LEXEME_AFTER_SPACE;
    }
}

bool lex_skip_to_directive(struct glsl_lexer *l, struct lexeme *hash)
{
    l->in_directive = true;
    for (;;) {
        preprocess_lex_skip_space(l);
        if (*l->at == '#') {
            lex_to(l, hash);
            return true;
        }
        while (*l->at != '\n' && l->at < l->end) {
            l->at += strcspn(l->at, "/\n");
            if (*l->at == '/') {
                const char *slash = l->at;
                preprocess_lex_skip_space(l); // a comment, perhaps of several lines
                l->at += l->at == slash;
            }
        }
        if (l->at >= l->end)
            return false;
        if (l->at >= l->next_splice)
            pass_splices(l);
        pass_newline(l);
    }
}

// --- tokens -----------------------------------------------------------------------------

static void lex_name(struct glsl_lexer *l, struct lexeme *out)
{
    const char *p = l->at;
    uint32_t hash = NAME_HASH;
    while (preprocess_lex_is(*p, CLASS_LETTER | CLASS_DIGIT))
        hash = name_hash(hash, *p++);
    size_t size = (size_t)(p - l->at);
    if (size > MOST_NAME)
        compiler_fail(l->compiler, &out->at,
                      "the name %.40s... has %zu characters: expected at most %d", l->at,
                      size, MOST_NAME);
    out->kind = LEXEME_NAME;
    out->name = compiler_name_hashed(l->compiler, l->at, size, hash);
    l->at = p;
}

// A number takes all letters and digits that follow: a wrong suffix is one error, and not
// two tokens.
static void preprocess_lex_number(struct glsl_lexer *l, struct lexeme *out)
{
    const char *p = l->at;
    bool is_hex = *p == '0' && (p[1] | 0x20) == 'x';
    while (preprocess_lex_is(*p, CLASS_LETTER | CLASS_DIGIT) || (*p == '.' && !is_hex)) {
        bool is_exponent = !is_hex && (*p | 0x20) == 'e';
        p++;
        if (is_exponent && (*p == '+' || *p == '-') && preprocess_lex_is(p[1], CLASS_DIGIT))
            p++;
    }
    out->kind = LEXEME_NUMBER;
    out->text = l->at;
    out->size = (uint32_t)(p - l->at);
    l->at = p;
}

// The number of bytes of the punctuator at `p`; 0: none.
static uint32_t punctuator_size(const char *p)
{
    switch (p[0]) {
    case '<':
    case '>':
        if (p[1] == p[0])
            return p[2] == '=' ? 3 : 2;
        return p[1] == '=' ? 2 : 1;
    case '+':
    case '-':
    case '&':
    case '|':
    case '^':
        return p[1] == p[0] || p[1] == '=' ? 2 : 1;
    case '*':
    case '/':
    case '%':
    case '=':
    case '!':
        return p[1] == '=' ? 2 : 1;
    default:
        return preprocess_lex_is(p[0], CLASS_SINGLE);
    }
}

// The text between two marks of one line. False: the second is missing.
static bool lex_quoted(struct glsl_lexer *l, char mark, struct lexeme *out)
{
    const char *p = l->at + 1;
    while (*p && *p != '\n' && *p != mark)
        p++;
    if (*p != mark)
        return false;
    out->kind = LEXEME_STRING;
    out->text = l->at + 1;
    out->size = (uint32_t)(p - out->text);
    l->at = p + 1;
    return true;
}

static void lex_punctuator(struct glsl_lexer *l, struct lexeme *out)
{
    const char *p = l->at;
    uint32_t size = punctuator_size(p);
    if (size == 0 && *p == '#') {
        size = p[1] == '#' ? 2 : 1;
        out->kind = size == 2 ? LEXEME_PASTE : LEXEME_HASH;
    } else if (size == 0 && *p == '"' && lex_quoted(l, '"', out)) {
        return;
    } else if (size == 0) {
        size = 1;
        out->kind = LEXEME_OTHER;
        out->text = p;
        out->size = 1;
    } else {
        out->kind = LEXEME_PUNCTUATOR;
        out->punctuator = (unsigned char)*p;
        if (size > 1)
            out->punctuator = PUNCTUATOR(p[0], p[1]);
        if (size > 2)
            out->punctuator = PUNCTUATOR_3(p[0], p[1], p[2]);
    }
    l->at += size;
}

void lex_to(struct glsl_lexer *l, struct lexeme *out)
{
    uint8_t flags = preprocess_lex_skip_space(l);
    out->flags = l->begins_line ? flags | LEXEME_AT_LINE_START : flags;
    l->begins_line = false;
    if (l->at >= l->next_splice)
        pass_splices(l);
    out->at = lex_position(l);
    if (preprocess_lex_is(*l->at, CLASS_LETTER))
        lex_name(l, out);
    else if (preprocess_lex_is(*l->at, CLASS_DIGIT) ||
             (*l->at == '.' && preprocess_lex_is(l->at[1], CLASS_DIGIT)))
        preprocess_lex_number(l, out);
    else if (l->at >= l->end)
        out->kind = LEXEME_END;
    else if (*l->at == '\n')
        out->kind = LEXEME_NEWLINE;
    else
        lex_punctuator(l, out);
}

struct lexeme lex(struct glsl_lexer *l)
{
    struct lexeme out = {0};
    lex_to(l, &out);
    return out;
}

struct lexeme lex_header(struct glsl_lexer *l)
{
    preprocess_lex_skip_space(l);
    if (l->at >= l->next_splice)
        pass_splices(l);
    struct lexeme out = {.kind = LEXEME_OTHER, .at = lex_position(l), .text = l->at};
    if (*l->at == '"' || *l->at == '<')
        lex_quoted(l, *l->at == '<' ? '>' : '"', &out);
    return out;
}

struct lexeme lex_rest(struct glsl_lexer *l)
{
    preprocess_lex_skip_space(l);
    if (l->at >= l->next_splice)
        pass_splices(l);
    struct lexeme out = {.kind = LEXEME_OTHER, .at = lex_position(l), .text = l->at};
    const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
    l->at = newline ? newline : l->end;
    const char *last = l->at;
    while (last > out.text && preprocess_lex_is(last[-1], CLASS_SPACE))
        last--;
    out.size = (uint32_t)(last - out.text);
    return out;
}

size_t lexeme_spell(const struct lexeme *lexeme, char *out, size_t room)
{
    char bytes[4];
    const char *text = bytes;
    size_t size = 0;
    switch (lexeme->kind) {
    case LEXEME_NAME:
        text = lexeme->name->text;
        size = lexeme->name->size;
        break;
    case LEXEME_NUMBER:
    case LEXEME_STRING:
    case LEXEME_OTHER:
        text = lexeme->text;
        size = lexeme->size;
        break;
    case LEXEME_PUNCTUATOR:
        for (uint32_t rest = lexeme->punctuator; rest; rest >>= 8)
            bytes[size++] = (char)(rest & 0xFF);
        break;
    case LEXEME_HASH:
    case LEXEME_PASTE:
        text = "##";
        size = lexeme->kind == LEXEME_PASTE ? 2 : 1;
        break;
    default:
        break;
    }
    if (room > 0)
        memcpy(out, text, size < room ? size : room);
    return size;
}
