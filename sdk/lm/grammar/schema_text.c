// SPDX-License-Identifier: MIT
// Strings of JSON whose characters follow a pattern.
// The pattern is about the characters of the text; the grammar is about the text as JSON
// writes it, with escapes where it needs them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

struct pattern {
    struct grammar_builder *b;
    const char *text, *at, *where;
    int depth;
    grammar_node *characters; // the nodes of one character, ascending
    uint64_t num_characters, room_characters;
};

static grammar_node schema_text_read_choice(struct pattern *p);

static grammar_node schema_text_fail(struct pattern *p, const char *expected)
{
    if (p->b->status == TN_OK)
        p->b->status = lm_fail(
            TN_ERR_UNSUPPORTED,
            "schema: %s: pattern '%s', at character %" PRIu64 ": got '%.1s', expected %s",
            p->where, p->text, (uint64_t)(p->at - p->text) + 1, p->at, expected);
    return -1;
}

// --- characters as JSON has them -------------------------------------------------------

// Characters that JSON escapes by a letter.
static const struct {
    uint8_t character;
    const char *text;
} escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"},
               {'\r', "\\r"}, {'\b', "\\b"},  {'\f', "\\f"}};

static bool schema_text_has(const struct grammar_range *ranges, uint64_t count,
                            uint32_t character)
{
    for (uint64_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

grammar_node schema_characters(struct grammar_builder *b, struct grammar_range *ranges,
                               uint64_t count, bool is_negated)
{
    struct grammar_range *tidy = lm_alloc(2 * count + 12, sizeof(*tidy));
    grammar_node choices[COUNT(escapes) + 1];
    uint64_t num = 0, kept = 0;
    if (!tidy) {
        b->status = TN_ERR_MEMORY;
        return -1;
    }
    uint64_t all = grammar_ranges_tidy(ranges, count, is_negated, tidy);
    for (size_t i = 0; i < COUNT(escapes); i++)
        if (schema_text_has(tidy, all, escapes[i].character))
            choices[num++] = grammar_text(b, escapes[i].text);
    // Characters that need no escape: all but controls, the quote and the backslash.
    static const struct grammar_range plain[] = {
        {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}};
    struct grammar_range *own = lm_alloc(3 * all + 1, sizeof(*own));
    for (uint64_t i = 0; own && i < all; i++)
        for (size_t k = 0; k < COUNT(plain); k++) {
            uint32_t first =
                tidy[i].first > plain[k].first ? tidy[i].first : plain[k].first;
            uint32_t last = tidy[i].last < plain[k].last ? tidy[i].last : plain[k].last;
            if (first <= last)
                own[kept++] = (struct grammar_range){first, last};
        }
    if (!own)
        b->status = TN_ERR_MEMORY;
    if (kept > 0)
        choices[num++] = grammar_class(b, own, kept);
    free(own);
    free(tidy);
    return grammar_choice(b, choices, num);
}

// --- patterns --------------------------------------------------------------------------

// Makes a node of one character, and keeps it for bounds of lengths.
static grammar_node one_of(struct pattern *p, struct grammar_range *ranges, uint64_t count,
                           bool is_negated)
{
    grammar_node node = schema_characters(p->b, ranges, count, is_negated);
    if (!grammar_grow(&p->b->status, &p->characters, p->num_characters, 1,
                      &p->room_characters, sizeof(node), 65536, "characters of a pattern"))
        return -1;
    p->characters[p->num_characters++] = node;
    return node;
}

static uint32_t next_character(struct pattern *p)
{
    const unsigned char *c = (const unsigned char *)p->at; // UTF-8, as jansson checks
    int size = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    uint32_t value = size == 1 ? c[0] : c[0] & (0x7fU >> size);
    for (int i = 1; i < size; i++)
        value = value << 6 | (c[i] & 0x3f);
    p->at += size;
    return value;
}

#define MOST_RANGES 64

struct ranges {
    struct grammar_range items[MOST_RANGES];
    uint64_t count;
};

static void schema_text_put(struct pattern *p, struct ranges *list, uint32_t first,
                            uint32_t last)
{
    if (list->count < MOST_RANGES)
        list->items[list->count++] = (struct grammar_range){first, last};
    else
        schema_text_fail(p, "fewer ranges in a class: at most 64");
}

// Reads an escape behind its backslash: \d and the like append ranges and give true; else
// gives the character.
static bool schema_text_read_escape(struct pattern *p, struct ranges *list, uint32_t *out)
{
    static const char names[] = "nrtfv0", values[] = "\n\r\t\f\v\0";
    static const struct grammar_range words[] = {
        {'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}};
    const char c = *p->at, *found = c ? strchr(names, c) : NULL;
    *out = found ? (uint32_t)(unsigned char)values[found - names] : (unsigned char)c;
    if (!c ||
        (!found &&
         ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) &&
         !strchr("dws", c))) {
        schema_text_fail(p, "d, w, s, n, r, t, f, v, 0 or a sign behind the backslash");
        return false;
    }
    if (found || !strchr("dws", c)) {
        next_character(p);
        return false;
    }
    p->at++;
    for (size_t i = c == 'd' ? 2 : 0; c != 's' && i < (c == 'd' ? 3 : COUNT(words)); i++)
        schema_text_put(p, list, words[i].first, words[i].last);
    if (c == 's') {
        schema_text_put(p, list, '\t', '\r');
        schema_text_put(p, list, ' ', ' ');
    }
    return true;
}

static grammar_node schema_text_read_class(struct pattern *p)
{
    struct ranges list = {.count = 0};
    p->at++;
    bool is_negated = *p->at == '^';
    p->at += is_negated;
    while (p->b->status == TN_OK && *p->at != ']') {
        uint32_t first, last;
        if (!*p->at)
            return schema_text_fail(p, "a ']' that ends the class");
        if (*p->at == '\\') {
            p->at++;
            if (schema_text_read_escape(p, &list, &first))
                continue;
        } else {
            first = next_character(p);
        }
        last = first;
        if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            if (*p->at == '\\') {
                p->at++;
                if (schema_text_read_escape(p, &list, &last))
                    return schema_text_fail(p, "a character behind '-'");
            } else {
                last = next_character(p);
            }
        }
        if (last < first)
            return schema_text_fail(p, "a range that ascends");
        schema_text_put(p, &list, first, last);
    }
    p->at++;
    return p->b->status == TN_OK ? one_of(p, list.items, list.count, is_negated) : -1;
}

static grammar_node schema_text_read_group(struct pattern *p)
{
    p->at++;
    if (++p->depth > GRAMMAR_DEPTH)
        return schema_text_fail(p, "fewer groups within groups: at most 128");
    if (p->at[0] == '?' && p->at[1] == ':')
        p->at += 2;
    else if (p->at[0] == '?')
        return schema_text_fail(p, "a group without conditions");
    grammar_node node = schema_text_read_choice(p);
    p->depth--;
    if (p->b->status == TN_OK && *p->at != ')')
        return schema_text_fail(p, "a ')' that ends the group");
    p->at++;
    return node;
}

static grammar_node read_atom(struct pattern *p)
{
    struct ranges list = {.count = 0};
    uint32_t character;
    switch (*p->at) {
    case '(':
        return schema_text_read_group(p);
    case '[':
        return schema_text_read_class(p);
    case '.':
        p->at++;
        schema_text_put(p, &list, '\n', '\n');
        schema_text_put(p, &list, '\r', '\r');
        return one_of(p, list.items, 2, true);
    case '^':
    case '$':
        return schema_text_fail(p, "'^' and '$' at the ends alone");
    case '*':
    case '+':
    case '?':
    case '{':
        return schema_text_fail(p, "what is repeated before it");
    case '\\':
        p->at++;
        if (!schema_text_read_escape(p, &list, &character))
            schema_text_put(p, &list, character, character);
        break;
    default:
        character = next_character(p);
        schema_text_put(p, &list, character, character);
    }
    return p->b->status == TN_OK ? one_of(p, list.items, list.count, false) : -1;
}

static bool schema_text_read_number(struct pattern *p, uint32_t *out)
{
    const char *from = p->at;
    uint32_t value = 0;
    for (; *p->at >= '0' && *p->at <= '9' && value < 100000; p->at++)
        value = value * 10 + (uint32_t)(*p->at - '0');
    *out = value;
    if (p->at == from || value > 100000)
        schema_text_fail(p, "a number of at most 100000");
    return p->b->status == TN_OK;
}

static bool schema_text_read_bounds(struct pattern *p, uint32_t *min, uint32_t *max)
{
    char c = *p->at++;
    *min = c == '+';
    *max = c == '?' ? 1 : GRAMMAR_MANY;
    if (c == '{') {
        if (!schema_text_read_number(p, min))
            return false;
        *max = *min;
        if (*p->at == ',') {
            p->at++;
            *max = GRAMMAR_MANY;
            if (*p->at != '}' && !schema_text_read_number(p, max))
                return false;
        }
        if (*p->at != '}' || *max < *min) {
            schema_text_fail(p, "'}' behind bounds that ascend");
            return false;
        }
        p->at++;
    }
    p->at += *p->at == '?'; // lazy repetition matches the same texts
    return true;
}

static grammar_node schema_text_read_sequence(struct pattern *p)
{
    grammar_node whole = grammar_text(p->b, "");
    while (p->b->status == TN_OK && *p->at && !strchr("|)", *p->at)) {
        if (*p->at == '$' && !p->at[1] && p->depth == 0)
            break;
        grammar_node node = read_atom(p);
        uint32_t min, max;
        if (p->b->status == TN_OK && *p->at && strchr("*+?{", *p->at)) {
            if (!schema_text_read_bounds(p, &min, &max))
                return -1;
            node = grammar_repeat(p->b, node, min, max);
        }
        whole = grammar_sequence(p->b, GRAMMAR_NODES(whole, node));
    }
    return whole;
}

static grammar_node schema_text_read_choice(struct pattern *p)
{
    grammar_node whole = schema_text_read_sequence(p);
    while (p->b->status == TN_OK && *p->at == '|') {
        p->at++;
        whole = grammar_choice(p->b, GRAMMAR_NODES(whole, schema_text_read_sequence(p)));
    }
    return whole;
}

// Any text.
static grammar_node any_text(struct pattern *p)
{
    return grammar_repeat(p->b, one_of(p, NULL, 0, true), 0, GRAMMAR_MANY);
}

static bool has_loose_choice(const char *pattern)
{
    for (int depth = 0; *pattern; pattern++) {
        bool is_escape = *pattern == '\\' && pattern[1];
        depth += (*pattern == '(') - (*pattern == ')');
        if (*pattern == '|' && depth == 0)
            return true;
        pattern += is_escape;
    }
    return false;
}

static grammar_node read_pattern(struct pattern *p)
{
    bool is_begin = p->text[0] == '^';
    if (strlen(p->text) > 1000)
        return schema_text_fail(p, "at most 1000 bytes");
    p->at += is_begin;
    grammar_node node = schema_text_read_choice(p);
    bool is_end = *p->at == '$';
    if (p->b->status == TN_OK && p->at[is_end])
        return schema_text_fail(p, "the end");
    if ((is_begin || is_end) && has_loose_choice(p->text)) // "^a|b$" anchors each way once
        return schema_text_fail(p, "'|' within a group where there is '^' or '$'");
    if (!is_begin)
        node = grammar_sequence(p->b, GRAMMAR_NODES(any_text(p), node));
    return is_end ? node : grammar_sequence(p->b, GRAMMAR_NODES(node, any_text(p)));
}

grammar_node grammar_read_pattern(struct grammar_builder *b, const char *pattern,
                                  uint32_t min, uint32_t max, const char *where)
{
    struct pattern p = {.b = b, .text = pattern, .at = pattern, .where = where};
    grammar_node node = read_pattern(&p);
    bool is_too_large = false;
    if (b->status == TN_OK && (min > 0 || max != GRAMMAR_MANY))
        node = schema_fit_length(b, node, p.characters, p.num_characters, min, max,
                                 &is_too_large);
    free(p.characters);
    if (is_too_large && b->status == TN_OK)
        b->status =
            lm_fail(TN_ERR_UNSUPPORTED,
                    "schema: %s: a pattern beside a length that is shared in too many "
                    "ways: '%s'",
                    where, pattern);
    return node;
}
