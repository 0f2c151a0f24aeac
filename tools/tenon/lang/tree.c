// SPDX-License-Identifier: MIT
// Makes the nodes of a program, and messages that point into its text.
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- messages --------------------------------------------------------------------------

static int oops_at(const char *source, uint32_t at, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    // Shows one line, at most 76 bytes around `at`.
    uint32_t begin = at, end = at;
    while (begin > 0 && source[begin - 1] != '\n' && at - begin < 50)
        begin--;
    while (source[end] && source[end] != '\n' && end - begin < 76)
        end++;
    int indent = 2;
    for (uint32_t i = begin; i < at; i++)
        indent += (source[i] & 0xc0) != 0x80;
    return oops("%s\n  %.*s\n%*s^", text, (int)(end - begin), source + begin, indent, "");
}

int lang_oops(const char *source, uint32_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int failed = oops_at(source, at, format, args);
    va_end(args);
    return failed;
}

uint32_t parse_oops(struct lang_parser *p, uint32_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    oops_at(p->source, at, format, args);
    va_end(args);
    p->failed = true;
    return NOTHING;
}

static uint32_t lang_tree_out_of_memory(struct lang_parser *p)
{
    p->failed = true;
    oops_memory();
    return NOTHING;
}

// --- making nodes ----------------------------------------------------------------------

// Makes room for `more` items behind `used`. The counts stay far below 32 bits: each comes
// from at least one byte of the source.
static void *lang_tree_grow(void *items, uint32_t used, uint32_t more, uint32_t *max,
                            size_t size)
{
    if (used + more <= *max)
        return items;
    uint32_t wanted = (used + more) * 2;
    void *moved = realloc(items, wanted * size);
    if (moved)
        *max = wanted;
    return moved;
}

uint32_t lang_add(struct lang_parser *p, enum lang_kind kind, uint32_t at)
{
    struct lang_tree *tree = p->tree;
    struct lang_node *nodes =
        lang_tree_grow(tree->nodes, tree->num_nodes, 1, &tree->max_nodes, sizeof(*nodes));
    if (!nodes)
        return lang_tree_out_of_memory(p);
    tree->nodes = nodes;
    nodes[tree->num_nodes] = (struct lang_node){.kind = (uint8_t)kind, .at = at};
    return tree->num_nodes++;
}

void lang_set_text(struct lang_parser *p, uint32_t node, const char *text, size_t length)
{
    struct lang_tree *tree = p->tree;
    if (node == NOTHING)
        return;
    char *texts = lang_tree_grow(tree->texts, tree->num_texts, (uint32_t)length + 1,
                                 &tree->max_texts, 1);
    if (!texts) {
        lang_tree_out_of_memory(p);
        return;
    }
    tree->texts = texts;
    memcpy(texts + tree->num_texts, text, length);
    texts[tree->num_texts + length] = '\0';
    tree->nodes[node].text = tree->num_texts;
    tree->nodes[node].length = (uint32_t)length;
    tree->num_texts += (uint32_t)length + 1;
}

void lang_set_children(struct lang_parser *p, uint32_t node, const uint32_t *items,
                       uint32_t count)
{
    struct lang_tree *tree = p->tree;
    if (node == NOTHING)
        return;
    uint32_t *children = lang_tree_grow(tree->children, tree->num_children, count,
                                        &tree->max_children, sizeof(*children));
    if (!children && count) {
        lang_tree_out_of_memory(p);
        return;
    }
    tree->children = children;
    if (count)
        memcpy(children + tree->num_children, items, count * sizeof(*items));
    tree->nodes[node].first = tree->num_children;
    tree->nodes[node].count = count;
    tree->num_children += count;
}

void lang_push(struct lang_parser *p, struct children *list, uint32_t child)
{
    uint32_t *items =
        lang_tree_grow(list->items, list->count, 1, &list->max, sizeof(*items));
    if (!items) {
        lang_tree_out_of_memory(p);
        return;
    }
    list->items = items;
    items[list->count++] = child;
}

uint32_t lang_add_parent(struct lang_parser *p, enum lang_kind kind, uint32_t at,
                         struct children *list)
{
    uint32_t node = p->failed ? NOTHING : lang_add(p, kind, at);
    lang_set_children(p, node, list->items, list->count);
    free(list->items);
    return p->failed ? NOTHING : node;
}

void lang_tree_finish(struct lang_tree *tree)
{
    free(tree->nodes);
    free(tree->children);
    free(tree->texts);
    *tree = (struct lang_tree){0};
}
