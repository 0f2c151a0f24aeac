// SPDX-License-Identifier: MIT
// Reads grammars in the notation of llama.cpp, GBNF.
//
//   grammar  ::= (name "::=" choice)...      on a line each; a choice may begin on the next
//                                            line, and goes on in parentheses, or with "|"
//                                            first on the next line
//   choice   ::= sequence ("|" sequence)*
//   sequence ::= (element ("*" | "+" | "?" | "{m}" | "{m,}" | "{m,n}")*)*
//   element  ::= name | "text" | [a-z] | [^a-z] | . | "(" choice ")"
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "../base/fail.h"
#include "grammar.h"

#define MOST_REPEATED 100000

struct gbnf_reader {
    struct grammar_builder *b;
    const char *text;
    uint64_t size, at;
    int depth;
};

struct gbnf_nodes {
    grammar_node *items;
    uint64_t count, room;
};

static grammar_node gbnf_read_choice(struct gbnf_reader *r, bool is_nested);

static bool nodes_add(struct gbnf_reader *r, struct gbnf_nodes *list, grammar_node node)
{
    if (!grammar_grow(&r->b->status, &list->items, list->count, 1, &list->room,
                      sizeof(node), UINT64_C(1) << 20, "elements"))
        return false;
    list->items[list->count++] = node;
    return true;
}

// --- failures --------------------------------------------------------------------------

static grammar_node gbnf_fail_at(struct gbnf_reader *r, uint64_t at, const char *expected)
{
    uint64_t line = 1, column = 1, end = at + 1;
    char got[80] = "the end";
    if (r->b->status != TN_OK)
        return -1;
    for (uint64_t i = 0; i < at; i++) {
        bool is_line = r->text[i] == '\n';
        line += is_line;
        column = is_line ? 1 : column + ((r->text[i] & 0xc0) != 0x80);
    }
    while (end < r->size && (r->text[end] & 0xc0) == 0x80)
        end++;
    if (at < r->size && r->text[at] == '\n')
        snprintf(got, sizeof(got), "the end of the line");
    else if (at < r->size)
        snprintf(got, sizeof(got), "'%.*s'", (int)(end - at < 4 ? end - at : 4),
                 r->text + at);
    r->b->status =
        lm_fail(TN_ERR_REFUSED,
                "grammar: line %" PRIu64 ", column %" PRIu64 ": got %s, expected %s", line,
                column, got, expected);
    return -1;
}

static grammar_node gbnf_fail(struct gbnf_reader *r, const char *expected)
{
    return gbnf_fail_at(r, r->at, expected);
}

// --- characters ------------------------------------------------------------------------

static char gbnf_peek(const struct gbnf_reader *r)
{
    return r->at < r->size ? r->text[r->at] : '\0';
}

static bool gbnf_is_one_of(char c, const char *list)
{
    return c && strchr(list, c);
}

static bool gbnf_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_';
}

// Skips white space and comments; ends of lines only where they do not end a rule.
static void gbnf_skip(struct gbnf_reader *r, bool with_lines)
{
    for (; r->at < r->size; r->at++) {
        char c = r->text[r->at];
        if (c == '#')
            while (r->at + 1 < r->size && r->text[r->at + 1] != '\n')
                r->at++;
        else if (c != ' ' && c != '\t' && c != '\r' && !(with_lines && c == '\n'))
            return;
    }
}

static bool gbnf_read_hex(struct gbnf_reader *r, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        char c = gbnf_peek(r);
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            gbnf_fail(r, "a hexadecimal digit");
            return false;
        }
        *out = *out << 4 | digit;
    }
    if (*out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000)) {
        r->at -= (uint64_t)digits;
        gbnf_fail(r, "a character of Unicode");
        return false;
    }
    return true;
}

static bool gbnf_read_escape(struct gbnf_reader *r, uint32_t *out)
{
    static const struct {
        char name;
        uint8_t digits, character;
    } escapes[] = {{'x', 2, 0},    {'u', 4, 0},    {'U', 8, 0},   {'n', 0, '\n'},
                   {'r', 0, '\r'}, {'t', 0, '\t'}, {'"', 0, '"'}, {'\\', 0, '\\'},
                   {'[', 0, '['},  {']', 0, ']'},  {'-', 0, '-'}, {'^', 0, '^'}};
    for (size_t i = 0; i < COUNT(escapes) && r->at < r->size; i++) {
        if (escapes[i].name != gbnf_peek(r))
            continue;
        r->at++;
        *out = escapes[i].character;
        return !escapes[i].digits || gbnf_read_hex(r, escapes[i].digits, out);
    }
    gbnf_fail(r, "x, u, U, n, r, t, \", \\, [, ], - or ^ behind the backslash");
    return false;
}

// Reads one character of a text or class, plain or escaped.
static bool gbnf_read_character(struct gbnf_reader *r, uint32_t *out)
{
    uint8_t c = (uint8_t)gbnf_peek(r);
    if (c == '\\') {
        r->at++;
        return gbnf_read_escape(r, out);
    }
    int size = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t value = size == 1 ? c : c & (0x7fU >> size);
    bool is_valid = c < 0x80 || (c >= 0xc2 && c < 0xf5);
    for (int i = 1; i < size && is_valid; i++) {
        uint8_t next =
            r->at + (uint64_t)i < r->size ? (uint8_t)r->text[r->at + (uint64_t)i] : 0;
        is_valid = (next & 0xc0) == 0x80;
        value = value << 6 | (next & 0x3f);
    }
    if (!is_valid) {
        gbnf_fail(r, "valid UTF-8");
        return false;
    }
    r->at += (uint64_t)size;
    *out = value;
    return true;
}

// --- elements --------------------------------------------------------------------------

static grammar_node gbnf_class_of(struct gbnf_reader *r, struct grammar_range *ranges,
                                  uint64_t count, bool is_negated)
{
    struct grammar_range *tidy = lm_alloc(count + 3, sizeof(*tidy));
    grammar_node node = -1;
    if (tidy)
        node =
            grammar_class(r->b, tidy, grammar_ranges_tidy(ranges, count, is_negated, tidy));
    else
        r->b->status = TN_ERR_MEMORY;
    free(tidy);
    return node;
}

static grammar_node read_literal(struct gbnf_reader *r)
{
    struct gbnf_nodes list = {NULL, 0, 0};
    uint32_t character;
    r->at++;
    while (r->b->status == TN_OK && gbnf_peek(r) != '"') {
        if (r->at >= r->size || gbnf_peek(r) == '\n') {
            gbnf_fail_at(r, r->at, "a '\"' that ends the text");
            break;
        }
        uint64_t from = r->at;
        bool is_escape = gbnf_peek(r) == '\\';
        if (!gbnf_read_character(r, &character))
            break;
        struct grammar_range one = {character, character};
        nodes_add(r, &list,
                  is_escape ? grammar_class(r->b, &one, 1)
                            : grammar_literal(r->b, r->text + from, r->at - from));
    }
    r->at++;
    grammar_node node = grammar_sequence(r->b, list.items, list.count);
    free(list.items);
    return node;
}

static grammar_node gbnf_read_class(struct gbnf_reader *r)
{
    struct grammar_range *ranges = NULL;
    uint64_t count = 0, room = 0;
    tn_status *status = &r->b->status;
    r->at++;
    bool is_negated = gbnf_peek(r) == '^';
    r->at += is_negated;
    while (*status == TN_OK && gbnf_peek(r) != ']') {
        struct grammar_range one;
        uint64_t from = r->at;
        if (r->at >= r->size || gbnf_peek(r) == '\n') {
            gbnf_fail(r, "a ']' that ends the class");
            break;
        }
        if (!gbnf_read_character(r, &one.first))
            break;
        one.last = one.first;
        if (gbnf_peek(r) == '-' && r->at + 1 < r->size && r->text[r->at + 1] != ']') {
            r->at++;
            if (!gbnf_read_character(r, &one.last))
                break;
        }
        if (one.last < one.first)
            gbnf_fail_at(r, from, "a range that ascends");
        else if (grammar_grow(status, &ranges, count, 1, &room, sizeof(one),
                              UINT64_C(1) << 20, "ranges of characters"))
            ranges[count++] = one;
    }
    r->at++;
    grammar_node node = *status == TN_OK ? gbnf_class_of(r, ranges, count, is_negated) : -1;
    free(ranges);
    return node;
}

static grammar_node read_call(struct gbnf_reader *r)
{
    uint64_t from = r->at;
    struct grammar_builder *b = r->b;
    while (gbnf_is_name(gbnf_peek(r)))
        r->at++;
    uint64_t size = r->at - from;
    int32_t rule = grammar_rule_find(b, r->text + from, size);
    if (rule < 0) {
        rule = grammar_rule_add(b, r->text + from, size);
        if (rule >= 0)
            b->rules[rule].used_at = from;
    }
    return rule < 0 ? -1 : grammar_call(b, rule);
}

static grammar_node gbnf_read_group(struct gbnf_reader *r)
{
    r->at++;
    if (++r->depth > GRAMMAR_DEPTH)
        return gbnf_fail(r, "fewer groups within groups: at most 128");
    grammar_node node = gbnf_read_choice(r, true);
    r->depth--;
    if (r->b->status == TN_OK && gbnf_peek(r) != ')')
        return gbnf_fail(r, "a ')' that ends the group");
    r->at++;
    return node;
}

static grammar_node read_element(struct gbnf_reader *r)
{
    static const struct grammar_range every = {0, 0x10ffff};
    struct grammar_range any = every;
    switch (gbnf_peek(r)) {
    case '"':
        return read_literal(r);
    case '[':
        return gbnf_read_class(r);
    case '(':
        return gbnf_read_group(r);
    case '.':
        r->at++;
        return gbnf_class_of(r, &any, 1, false);
    default:
        return read_call(r);
    }
}

// --- repetition ------------------------------------------------------------------------

static bool gbnf_read_number(struct gbnf_reader *r, uint32_t *out)
{
    uint64_t from = r->at, value = 0;
    for (; gbnf_peek(r) >= '0' && gbnf_peek(r) <= '9'; r->at++)
        value = value > MOST_REPEATED ? value : value * 10 + (uint64_t)(gbnf_peek(r) - '0');
    if (r->at == from)
        gbnf_fail(r, "a number");
    else if (value > MOST_REPEATED)
        gbnf_fail_at(r, from, "a number of at most 100000");
    *out = (uint32_t)value;
    return r->b->status == TN_OK;
}

static bool read_braces(struct gbnf_reader *r, uint32_t *min, uint32_t *max)
{
    uint64_t from = r->at++;
    gbnf_skip(r, false);
    *min = 0;
    if (gbnf_peek(r) != ',' && !gbnf_read_number(r, min))
        return false;
    *max = *min;
    gbnf_skip(r, false);
    if (gbnf_peek(r) == ',') {
        r->at++;
        gbnf_skip(r, false);
        *max = GRAMMAR_MANY;
        if (gbnf_peek(r) != '}' && !gbnf_read_number(r, max))
            return false;
        gbnf_skip(r, false);
    }
    if (gbnf_peek(r) != '}')
        gbnf_fail(r, "a '}' that ends the bounds");
    else if (*max < *min)
        gbnf_fail_at(r, from, "bounds that ascend");
    r->at++;
    return r->b->status == TN_OK;
}

static grammar_node read_repeated(struct gbnf_reader *r, bool is_nested)
{
    grammar_node node = read_element(r);
    for (int depth = 0; r->b->status == TN_OK; depth++) {
        uint32_t min = 0, max = GRAMMAR_MANY;
        gbnf_skip(r, is_nested);
        char c = gbnf_peek(r);
        if (!gbnf_is_one_of(c, "*+?{"))
            break;
        if (depth == 16)
            return gbnf_fail(r, "fewer repetitions of repetitions");
        if (c == '{' && !read_braces(r, &min, &max))
            break;
        if (c != '{')
            r->at++;
        min = c == '+' ? 1 : min;
        max = c == '?' ? 1 : max;
        node = grammar_repeat(r->b, node, min, max);
    }
    return node;
}

// --- rules -----------------------------------------------------------------------------

static grammar_node gbnf_read_sequence(struct gbnf_reader *r, bool is_nested)
{
    struct gbnf_nodes list = {NULL, 0, 0};
    gbnf_skip(r, is_nested);
    while (r->b->status == TN_OK && r->at < r->size &&
           (gbnf_is_name(gbnf_peek(r)) || gbnf_is_one_of(gbnf_peek(r), "\"[(."))) {
        nodes_add(r, &list, read_repeated(r, is_nested));
        gbnf_skip(r, is_nested);
    }
    if (gbnf_is_one_of(gbnf_peek(r), "<!"))
        gbnf_fail(r, "texts and classes of characters: tokens by name or id are not known");
    grammar_node node = grammar_sequence(r->b, list.items, list.count);
    free(list.items);
    return node;
}

// Whether "|" comes next, possibly on the next line.
static bool is_bar(struct gbnf_reader *r, bool is_nested)
{
    uint64_t at = r->at;
    gbnf_skip(r, true);
    bool found = gbnf_peek(r) == '|';
    if (!found && !is_nested)
        r->at = at;
    return found;
}

static grammar_node gbnf_read_choice(struct gbnf_reader *r, bool is_nested)
{
    struct gbnf_nodes list = {NULL, 0, 0};
    nodes_add(r, &list, gbnf_read_sequence(r, is_nested));
    while (r->b->status == TN_OK && is_bar(r, is_nested)) {
        r->at++;
        gbnf_skip(r, true);
        nodes_add(r, &list, gbnf_read_sequence(r, is_nested));
    }
    grammar_node node = grammar_choice(r->b, list.items, list.count);
    free(list.items);
    return node;
}

// Whether a rule begins here: a name, and "::=".
static bool is_rule(struct gbnf_reader *r)
{
    uint64_t at = r->at;
    while (gbnf_is_name(gbnf_peek(r)))
        r->at++;
    bool has_name = r->at > at;
    gbnf_skip(r, true);
    bool found = has_name && r->size - r->at >= 3 && !memcmp(r->text + r->at, "::=", 3);
    r->at = at;
    return found;
}

// Skips to the body of a rule, which may begin on a later line; an empty body ends where
// the next rule begins.
static void skip_to_body(struct gbnf_reader *r)
{
    uint64_t at = r->at;
    gbnf_skip(r, true);
    if (is_rule(r))
        r->at = at;
}

static void gbnf_read_rule(struct gbnf_reader *r)
{
    uint64_t from = r->at;
    if (!gbnf_is_name(gbnf_peek(r))) {
        gbnf_fail(r, "the name of a rule");
        return;
    }
    grammar_node call = read_call(r);
    gbnf_skip(r, true);
    if (r->b->status == TN_OK && (r->size - r->at < 3 || memcmp(r->text + r->at, "::=", 3)))
        gbnf_fail(r, "'::='");
    if (r->b->status != TN_OK)
        return;
    int32_t rule = r->b->nodes[call].first;
    if (r->b->rules[rule].body >= 0) {
        gbnf_fail_at(r, from, "a rule that is not there yet");
        return;
    }
    r->at += 3;
    skip_to_body(r);
    grammar_node body = gbnf_read_choice(r, false);
    gbnf_skip(r, false);
    if (r->b->status == TN_OK && r->at < r->size && gbnf_peek(r) != '\n')
        gbnf_fail(r, "an element, '|' or the end of the line");
    r->b->rules[rule].body = body;
}

tn_status grammar_read_gbnf(struct grammar_builder *b, const char *text, uint64_t size)
{
    struct gbnf_reader r = {.b = b, .text = text, .size = size};
    grammar_rule_add(b, "root", 4);
    for (gbnf_skip(&r, true); b->status == TN_OK && r.at < size; gbnf_skip(&r, true))
        gbnf_read_rule(&r);
    if (b->status == TN_OK && b->rules[0].body < 0)
        b->status = lm_fail(TN_ERR_REFUSED, "grammar: got no rule 'root', expected one, "
                                            "with which a text begins");
    for (uint64_t i = 0; i < b->num_rules && b->status == TN_OK; i++)
        if (b->rules[i].body < 0)
            gbnf_fail_at(&r, b->rules[i].used_at, "the name of a rule that is defined");
    return b->status;
}
