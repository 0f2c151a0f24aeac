// SPDX-License-Identifier: MIT
// Labels: short names of operations for traces and explanations; see work.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "work.h"

static const char gap[] = "\xc2\xb7"; // a middle dot
static const char ellipsis[] = "\xe2\x80\xa6";

// Bytes that names may take: room stays for a dot and an ellipsis.
#define MOST_TEXT (LABEL_SIZE - sizeof(gap) - sizeof(ellipsis))

// The size of the longest beginning, at most `most` bytes, that does not split a UTF-8
// character.
static size_t label_whole_characters(const char *text, size_t size, size_t most)
{
    if (size <= most)
        return size;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

static void work_label_set(char label[LABEL_SIZE], const char *text, size_t size)
{
    size_t kept = label_whole_characters(text, size, MOST_TEXT);
    memcpy(label, text, kept);
    strcpy(label + kept, kept < size ? ellipsis : "");
}

void label_set(char label[LABEL_SIZE], const char *text)
{
    work_label_set(label, text, strnlen(text, LABEL_SIZE));
}

// Gives "exp" for the id "base.exp/1", and a label that is not an id unchanged.
static size_t label_short_name(const struct plan_op *op, const char **out_name)
{
    const char *label = op->label ? op->label : "";
    size_t size = op->named ? strcspn(label, "/") : strlen(label);
    const char *dot = op->named ? memrchr(label, '.', size) : NULL;
    *out_name = dot ? dot + 1 : label;
    return size - (size_t)(*out_name - label);
}

bool label_add(char label[LABEL_SIZE], const struct plan_op *op)
{
    const char *name;
    size_t used = strlen(label), size = label_short_name(op, &name);
    if (used == 0) {
        work_label_set(label, name, size);
        return size <= MOST_TEXT;
    }
    memcpy(label + used, gap, sizeof(gap));
    used += sizeof(gap) - 1;
    bool fits = used + size <= MOST_TEXT;
    memcpy(label + used, fits ? name : ellipsis, fits ? size : sizeof(ellipsis));
    if (fits)
        label[used + size] = 0;
    return fits;
}

const char *label_text(const struct plan_work *work, const uint32_t *next, uint32_t first)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (uint32_t i = first; i != NONE; i = next[i])
        fprintf(out, "%s%s", i == first ? "" : gap,
                work->ops[i].text ? work->ops[i].text : work->ops[i].label);
    bool written = fclose(out) == 0;
    const char *copy = written ? arena_strdup(work->arena, text) : NULL;
    free(text);
    return copy;
}

const char *node_label(const struct plan_work *work, const struct node *node,
                       char label[LABEL_SIZE])
{
    const struct prim *prim = node->prim ? node->prim : work->decomposing;
    if (prim)
        return prim->record.id;
    label_set(label, node->expr->text);
    return label;
}
