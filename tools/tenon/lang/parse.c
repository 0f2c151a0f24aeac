// SPDX-License-Identifier: MIT
// Parses text into nodes by recursive descent.
#include "parser.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200        // of brackets, and of ** and unary operators in a row
#define MAX_SOURCE (1 << 24) // bytes

// Binary operators, loosest first; longer spellings before their prefixes.
static const struct infix {
    const char *spelling;
    const char *operator;
    int level;
} infixes[] = {
    {"==", "base.equal", 1},      {"!=", "base.not_equal", 1},
    {"<=", "base.less_equal", 1}, {">=", "base.greater_equal", 1},
    {"<<", "base.left_shift", 5}, {">>", "base.right_shift", 5},
    {"<", "base.less", 1},        {">", "base.greater", 1},
    {"|", "base.bitwise_or", 2},  {"^", "base.bitwise_xor", 3},
    {"&", "base.bitwise_and", 4}, {"+", "base.add", 6},
    {"-", "base.subtract", 6},    {"//", "base.floor_divide", 7},
    {"/", "base.divide", 7},      {"**", "base.power", 9},
    {"*", "base.multiply", 7},    {"%", "base.remainder", 7},
    {"@", "base.matmul", 7},
};
enum { LEVEL_COMPARE = 1, LEVEL_POWER = 9 };

// Properties of an array, after a dot as in NumPy: x.T, x.mT.
static const char *const properties[] = {"T", "mT"};

// --- reading characters ----------------------------------------------------------------

static void lang_parse_skip_space(struct lang_parser *p)
{
    while (isspace((unsigned char)p->source[p->at]))
        p->at++;
}

static char lang_parse_peek(struct lang_parser *p)
{
    lang_parse_skip_space(p);
    return p->source[p->at];
}

static bool lang_parse_take(struct lang_parser *p, char wanted)
{
    if (lang_parse_peek(p) != wanted)
        return false;
    p->at++;
    return true;
}

static void lang_parse_expect(struct lang_parser *p, char wanted, const char *why)
{
    if (p->failed || lang_parse_take(p, wanted))
        return;
    if (p->source[p->at])
        parse_oops(p, p->at, "expected '%c' %s, got '%c'", wanted, why, p->source[p->at]);
    else
        parse_oops(p, p->at, "expected '%c' %s, got the end", wanted, why);
}

static uint32_t name_length(const char *text)
{
    uint32_t n = 0;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_')
        return 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n;
}

// Length of names joined by dots: "acme.axpby".
static uint32_t dotted_length(const char *text)
{
    uint32_t n = name_length(text), more;
    while (n && text[n] == '.' && (more = name_length(text + n + 1)))
        n += 1 + more;
    return n;
}

// True at "name =", but not at "name ==".
static bool at_assignment(struct lang_parser *p)
{
    const char *text = p->source + p->at;
    text += name_length(text);
    while (isspace((unsigned char)*text))
        text++;
    return text[0] == '=' && text[1] != '=';
}

// --- atoms -----------------------------------------------------------------------------

static uint32_t parse_expr(struct lang_parser *p, int level);
static uint32_t lang_parse_list(struct lang_parser *p, char end, enum lang_kind kind,
                                uint32_t at);

static uint32_t add_real(struct lang_parser *p, enum lang_kind kind, uint32_t at,
                         double value)
{
    uint32_t node = lang_add(p, kind, at);
    if (node != NOTHING)
        p->tree->nodes[node].value.f = value;
    return node;
}

static uint32_t add_int(struct lang_parser *p, enum lang_kind kind, uint32_t at,
                        int64_t value)
{
    uint32_t node = lang_add(p, kind, at);
    if (node != NOTHING)
        p->tree->nodes[node].value.i = value;
    return node;
}

static uint32_t lang_parse_number(struct lang_parser *p)
{
    const char *text = p->source + p->at;
    uint32_t at = p->at;
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *int_end, *float_end;
    errno = 0;
    unsigned long long i = strtoull(text, &int_end, hex ? 16 : 10);
    int overflow = errno;
    double f = strtod(text, &float_end);
    bool whole = float_end <= int_end;
    p->at += (uint32_t)((whole ? int_end : float_end) - text);
    if (!hex && p->source[p->at] == 'j' && name_length(p->source + p->at) == 1) {
        p->at++;
        return add_real(p, LANG_IMAGINARY, at, f);
    }
    if (name_length(p->source + p->at))
        return parse_oops(p, at, "'%.*s' is no number",
                          (int)(p->at - at + name_length(p->source + p->at)), text);
    if (whole && overflow)
        return parse_oops(p, at,
                          "the number does not fit 64 bits; write it as a float: 1e19");
    return whole ? add_int(p, i > INT64_MAX ? LANG_UINT : LANG_INT, at, (int64_t)i)
                 : add_real(p, LANG_FLOAT, at, f);
}

// Reads the escape behind a backslash, and moves past it. Returns the byte, or -1.
static int take_escape(struct lang_parser *p)
{
    static const char escapes[] = "\"\"''\\\\n\nt\tr\r";
    const char *text = p->source + p->at;
    if (text[0] == 'x' && isxdigit((unsigned char)text[1]) &&
        isxdigit((unsigned char)text[2])) {
        const char hex[3] = {text[1], text[2], '\0'};
        p->at += 3;
        return (int)strtol(hex, NULL, 16);
    }
    for (size_t i = 0; text[0] && i + 1 < sizeof(escapes); i += 2)
        if (escapes[i] == text[0]) {
            p->at++;
            return (unsigned char)escapes[i + 1];
        }
    return -1;
}

// A string in either quotes, with the escapes \" \' \\ \n \t \r \xHH.
static uint32_t parse_string(struct lang_parser *p)
{
    uint32_t at = p->at, node = NOTHING;
    char quote = p->source[p->at++], *text = malloc(strlen(p->source + p->at) + 1);
    size_t length = 0;
    if (!text)
        return parse_oops(p, at, "out of memory");
    while (!p->failed && p->source[p->at] && p->source[p->at] != quote) {
        int byte = (unsigned char)p->source[p->at++];
        uint32_t escape = p->at - 1;
        if (byte == '\\')
            byte = take_escape(p);
        if (byte <= 0)
            parse_oops(p, escape,
                       byte ? "expected one of \\\\ \\\" \\' \\n \\t \\r \\xHH"
                            : "a string holds no zero byte");
        text[length++] = (char)byte;
    }
    if (!p->failed && !p->source[p->at])
        parse_oops(p, at, "the string has no end");
    if (!p->failed) {
        p->at++;
        node = lang_add(p, LANG_TEXT, at);
        lang_set_text(p, node, text, length);
    }
    free(text);
    return node;
}

static bool lang_parse_is_word(const char *text, uint32_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static uint32_t parse_argument(struct lang_parser *p)
{
    lang_parse_skip_space(p);
    uint32_t at = p->at, length = name_length(p->source + at);
    if (!length || !at_assignment(p))
        return parse_expr(p, 1);
    p->at += length;
    lang_parse_take(p, '=');
    uint32_t child = parse_expr(p, 1);
    uint32_t node = p->failed ? NOTHING : lang_add(p, LANG_KEYWORD, at);
    lang_set_text(p, node, p->source + at, length);
    lang_set_children(p, node, &child, 1);
    return node;
}

static uint32_t lang_parse_call(struct lang_parser *p, uint32_t at, uint32_t length)
{
    struct children list = {0};
    while (!p->failed && lang_parse_peek(p) != ')') {
        lang_push(p, &list, parse_argument(p));
        if (!lang_parse_take(p, ','))
            break;
    }
    lang_parse_expect(p, ')', "after the arguments");
    uint32_t node = lang_add_parent(p, LANG_APPLY, at, &list);
    lang_set_text(p, node, p->source + at, length);
    return node;
}

static bool is_property(const char *text, uint32_t length)
{
    for (size_t i = 0; i < COUNT(properties); i++)
        if (lang_parse_is_word(text, length, properties[i]))
            return true;
    return false;
}

static uint32_t lang_parse_name(struct lang_parser *p)
{
    uint32_t at = p->at, length = dotted_length(p->source + at);
    const char *text = p->source + at;
    p->at += length;
    if (lang_parse_take(p, '('))
        return lang_parse_call(p, at, length);
    uint32_t first = name_length(text);
    if (first < length && !is_property(text + first + 1, name_length(text + first + 1)))
        return parse_oops(p, at,
                          "'%.*s' is an operator: expected '(' after it, or .T or .mT of "
                          "an array",
                          (int)length, text);
    length = first;
    p->at = at + first; // parse_postfix parses the dot
    if (lang_parse_is_word(text, length, "true") ||
        lang_parse_is_word(text, length, "True"))
        return add_int(p, LANG_BOOL, at, 1);
    if (lang_parse_is_word(text, length, "false") ||
        lang_parse_is_word(text, length, "False"))
        return add_int(p, LANG_BOOL, at, 0);
    if (lang_parse_is_word(text, length, "inf"))
        return add_real(p, LANG_FLOAT, at, INFINITY);
    if (lang_parse_is_word(text, length, "nan"))
        return add_real(p, LANG_FLOAT, at, NAN);
    if (lang_parse_is_word(text, length, "pi"))
        return add_real(p, LANG_FLOAT, at, 3.14159265358979323846);
    uint32_t node = lang_add(p, LANG_NAME, at);
    lang_set_text(p, node, text, length);
    return node;
}

static uint32_t lang_parse_atom(struct lang_parser *p)
{
    char c = lang_parse_peek(p);
    uint32_t at = p->at;
    if (isdigit((unsigned char)c) ||
        (c == '.' && isdigit((unsigned char)p->source[at + 1])))
        return lang_parse_number(p);
    if (c == '\'' || c == '"')
        return parse_string(p);
    if (name_length(p->source + at))
        return lang_parse_name(p);
    if (lang_parse_take(p, '('))
        return lang_parse_list(p, ')', LANG_TUPLE, at);
    if (lang_parse_take(p, '['))
        return lang_parse_list(p, ']', LANG_LIST, at);
    if (!c)
        return parse_oops(p, at, "expected an operand, got the end");
    return parse_oops(p, at, "expected an operand, got '%c'", c);
}

// --- indices ---------------------------------------------------------------------------

// Parses one bound of a slice: a node of kind NONE when left out.
static uint32_t parse_bound(struct lang_parser *p)
{
    char c = lang_parse_peek(p);
    if (c == ':' || c == ',' || c == ']')
        return lang_add(p, LANG_NONE, p->at);
    return parse_expr(p, 1);
}

static uint32_t parse_index(struct lang_parser *p)
{
    lang_parse_skip_space(p);
    uint32_t at = p->at;
    if (strncmp(p->source + at, "...", 3) == 0) {
        p->at += 3;
        return lang_add(p, LANG_ELLIPSIS, at);
    }
    uint32_t bounds[3] = {parse_bound(p), NOTHING, NOTHING};
    if (p->failed || !lang_parse_take(p, ':')) {
        if (!p->failed && p->tree->nodes[bounds[0]].kind == LANG_NONE)
            return parse_oops(p, p->at, "expected an index");
        return bounds[0];
    }
    bounds[1] = parse_bound(p);
    if (!p->failed)
        bounds[2] =
            lang_parse_take(p, ':') ? parse_bound(p) : lang_add(p, LANG_NONE, p->at);
    uint32_t node = p->failed ? NOTHING : lang_add(p, LANG_SLICE, at);
    lang_set_children(p, node, bounds, 3);
    return node;
}

// Parses "[index, ...]" after `node`.
static uint32_t parse_indices(struct lang_parser *p, uint32_t node)
{
    struct children list = {0};
    uint32_t at = p->at++;
    lang_push(p, &list, node);
    do
        lang_push(p, &list, parse_index(p));
    while (!p->failed && lang_parse_take(p, ',') && lang_parse_peek(p) != ']');
    lang_parse_expect(p, ']', "after the index");
    return lang_add_parent(p, LANG_INDEX, at, &list);
}

// Parses ".property" after `node`.
static uint32_t parse_property(struct lang_parser *p, uint32_t node)
{
    uint32_t at = ++p->at, length = name_length(p->source + at);
    if (!is_property(p->source + at, length))
        return parse_oops(p, at, "an array has .T and .mT, got '.%.*s'", (int)length,
                          p->source + at);
    p->at += length;
    uint32_t property = lang_add(p, LANG_PROPERTY, at);
    lang_set_text(p, property, p->source + at, length);
    lang_set_children(p, property, &node, 1);
    return property;
}

static uint32_t lang_parse_postfix(struct lang_parser *p)
{
    uint32_t node = lang_parse_atom(p);
    while (!p->failed) {
        char c = lang_parse_peek(p);
        if (c == '[')
            node = parse_indices(p, node);
        else if (c == '.' && name_length(p->source + p->at + 1))
            node = parse_property(p, node);
        else
            break;
    }
    return p->failed ? NOTHING : node;
}

// --- operators -------------------------------------------------------------------------

static const struct infix *peek_infix(struct lang_parser *p)
{
    lang_parse_skip_space(p);
    for (size_t i = 0; i < COUNT(infixes); i++)
        if (strncmp(p->source + p->at, infixes[i].spelling, strlen(infixes[i].spelling)) ==
            0)
            return &infixes[i];
    return NULL;
}

static uint32_t add_apply(struct lang_parser *p, const char *operator, uint32_t at,
                          const uint32_t *operands, uint32_t count)
{
    uint32_t node = p->failed ? NOTHING : lang_add(p, LANG_APPLY, at);
    lang_set_text(p, node, operator, strlen(operator));
    lang_set_children(p, node, operands, count);
    return node;
}

static uint32_t lang_parse_unary(struct lang_parser *p)
{
    char c = lang_parse_peek(p);
    uint32_t at = p->at, operand;
    if (++p->depth > MAX_DEPTH)
        return parse_oops(p, at, "nested more than %d deep", MAX_DEPTH);
    if (c != '-' && c != '+' && c != '~') {
        operand = lang_parse_postfix(p);
    } else {
        p->at++;
        // As in Python, ** binds more tightly than a sign on its left.
        operand = parse_expr(p, LEVEL_POWER);
        if (c == '~')
            operand = add_apply(p, "base.invert", at, &operand, 1);
        if (c == '-' && !p->failed) {
            uint32_t node = lang_add(p, LANG_NEGATE, at);
            lang_set_children(p, node, &operand, 1);
            operand = node;
        }
    }
    p->depth--;
    return p->failed ? NOTHING : operand;
}

// Parses operators of `level` and tighter.
static uint32_t parse_expr(struct lang_parser *p, int level)
{
    uint32_t left = lang_parse_unary(p);
    bool compared = false;
    const struct infix *infix;
    while (!p->failed && (infix = peek_infix(p)) && infix->level >= level) {
        uint32_t at = p->at;
        if (infix->level == LEVEL_COMPARE && compared)
            return parse_oops(p, at, "comparisons do not chain: write (a < b) & (b < c)");
        compared |= infix->level == LEVEL_COMPARE;
        p->at += (uint32_t)strlen(infix->spelling);
        // ** groups to the right, the others to the left.
        p->depth++;
        uint32_t right = p->depth > MAX_DEPTH
                             ? parse_oops(p, at, "nested more than %d deep", MAX_DEPTH)
                             : parse_expr(p, infix->level + (infix->level != LEVEL_POWER));
        p->depth--;
        left = add_apply(p, infix->operator, at, (uint32_t[]){left, right}, 2);
    }
    return left;
}

// --- lists and statements --------------------------------------------------------------

// Parses items up to `end`. "(a)" is a; "(a,)" and "()" are tuples.
static uint32_t lang_parse_list(struct lang_parser *p, char end, enum lang_kind kind,
                                uint32_t at)
{
    struct children list = {0};
    bool comma = false;
    while (!p->failed && lang_parse_peek(p) != end) {
        lang_push(p, &list, parse_expr(p, 1));
        comma = !p->failed && lang_parse_take(p, ',');
        if (!comma)
            break;
    }
    lang_parse_expect(p, end, "at the end of the list");
    if (!p->failed && kind == LANG_TUPLE && list.count == 1 && !comma) {
        uint32_t only = list.items[0];
        free(list.items);
        return only;
    }
    return lang_add_parent(p, kind, at, &list);
}

// True at "name, name =".
static bool at_targets(struct lang_parser *p)
{
    struct lang_parser ahead = *p;
    for (;;) {
        lang_parse_skip_space(&ahead);
        uint32_t length = name_length(ahead.source + ahead.at);
        if (!length)
            return false;
        if (at_assignment(&ahead))
            return true;
        ahead.at += length;
        if (!lang_parse_take(&ahead, ','))
            return false;
    }
}

static void parse_targets(struct lang_parser *p, struct children *list)
{
    do {
        lang_parse_skip_space(p);
        uint32_t at = p->at, length = name_length(p->source + at);
        uint32_t node = lang_add(p, LANG_NAME, at);
        lang_set_text(p, node, p->source + at, length);
        p->at += length;
        lang_push(p, list, node);
    } while (!p->failed && lang_parse_take(p, ','));
    lang_parse_take(p, '=');
}

static void lang_parse_statement(struct lang_parser *p)
{
    struct children targets = {0}, values = {0};
    lang_parse_skip_space(p);
    uint32_t at = p->at;
    if (at_targets(p))
        parse_targets(p, &targets);
    do
        lang_push(p, &values, parse_expr(p, 1));
    while (!p->failed && lang_parse_take(p, ',') && lang_parse_peek(p) &&
           lang_parse_peek(p) != ';');
    uint32_t value = lang_add_parent(p, LANG_TUPLE, at, &values);
    lang_push(p, &targets, value);
    lang_add_parent(p, LANG_ASSIGN, at, &targets);
}

int lang_parse(const char *source, struct lang_tree *out)
{
    struct lang_tree tree = {.source = source};
    struct lang_parser p = {.tree = &tree, .source = source};
    if (strlen(source) > MAX_SOURCE)
        return oops("the expression is longer than %d bytes", MAX_SOURCE);
    if (!lang_parse_peek(&p))
        return oops("the expression is empty");
    while (!p.failed && lang_parse_peek(&p)) {
        lang_parse_statement(&p);
        if (!p.failed && !lang_parse_take(&p, ';') && lang_parse_peek(&p))
            parse_oops(&p, p.at, "expected an operator, ',' or ';', got '%c'",
                       p.source[p.at]);
    }
    if (p.failed) {
        lang_tree_finish(&tree);
        return EXIT_OOPS;
    }
    *out = tree;
    return 0;
}
