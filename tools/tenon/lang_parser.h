// SPDX-License-Identifier: MIT
// A parser at work: what reads the text (lang_parse.c) and what makes nodes (lang_tree.c)
// share.
#ifndef TOOLS_TENON_LANG_PARSER_H
#define TOOLS_TENON_LANG_PARSER_H

#include "lang.h"

#define NOTHING UINT32_MAX // a node that could not be made

struct parser {
    struct lang_tree *tree;
    const char *source;
    uint32_t at; // next byte
    int depth;
    bool failed;
};

// Children whose number is not known yet.
struct children {
    uint32_t *items, count, max;
};

// Records the message with the place, and that parsing failed. Returns NOTHING.
uint32_t parse_oops(struct parser *p, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds a node at byte `at` of the source. NOTHING when out of memory.
uint32_t lang_add(struct parser *p, enum lang_kind kind, uint32_t at);
// The text or the children of `node`, which may be NOTHING. Copies both.
void lang_set_text(struct parser *p, uint32_t node, const char *text, size_t length);
void lang_set_children(struct parser *p, uint32_t node, const uint32_t *items,
                       uint32_t count);

void lang_push(struct parser *p, struct children *list, uint32_t child);
// Adds a node with these children and frees the list, also on failure.
uint32_t lang_add_parent(struct parser *p, enum lang_kind kind, uint32_t at,
                         struct children *list);

#endif // TOOLS_TENON_LANG_PARSER_H
