// SPDX-License-Identifier: MIT
// The state of a parse, shared by reading text (parse.c) and making nodes (tree.c).
#ifndef TOOLS_TENON_LANG_PARSER_H
#define TOOLS_TENON_LANG_PARSER_H

#include "lang.h"

#define NOTHING UINT32_MAX // instead of a node that cannot be made

struct lang_parser {
    struct lang_tree *tree;
    const char *source;
    uint32_t at; // next byte
    int depth;
    bool failed;
};

// A list of children that grows.
struct children {
    uint32_t *items, count, max;
};

// Records the message with its position, and fails the parse. Returns NOTHING.
uint32_t parse_oops(struct lang_parser *p, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds a node at byte `at` of the source. NOTHING when out of memory.
uint32_t lang_add(struct lang_parser *p, enum lang_kind kind, uint32_t at);
// Set the text or the children of `node`, which may be NOTHING. Copy both.
void lang_set_text(struct lang_parser *p, uint32_t node, const char *text, size_t length);
void lang_set_children(struct lang_parser *p, uint32_t node, const uint32_t *items,
                       uint32_t count);

void lang_push(struct lang_parser *p, struct children *list, uint32_t child);
// Adds a node with these children and frees the list, also on failure.
uint32_t lang_add_parent(struct lang_parser *p, enum lang_kind kind, uint32_t at,
                         struct children *list);

#endif // TOOLS_TENON_LANG_PARSER_H
