// SPDX-License-Identifier: MIT
// Texts that an application keeps with its parameters: "note.KEY" in a checkpoint. The text
// "notes" lists the keys.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"

static struct train_note *train_find_note(const struct tn_params *params, const char *key)
{
    for (uint64_t i = 0; i < params->num_notes; i++)
        if (strcmp(params->notes[i].key, key) == 0)
            return (struct train_note *)&params->notes[i];
    return NULL;
}

const char *tn_params_note(const tn_params *params, const char *key)
{
    const struct train_note *note = train_find_note(params, key);
    return note ? note->text : NULL;
}

tn_status tn_params_set_note(tn_params *params, const char *key, const char *text)
{
    size_t length = strlen(key);
    struct train_note *note = train_find_note(params, key);
    if (length < 1 || length >= sizeof(note->key) || strchr(key, ' ') ||
        strlen(text) >= sizeof(note->text) || (!note && params->num_notes == MOST_NOTES))
        return train_fail(
            TN_ERR_ARGUMENT,
            "note '%.40s': a key of %zu bytes, a text of %zu, %llu notes "
            "before; expected keys without spaces, at most %zu and %zu bytes, "
            "and at most %d notes",
            key, length, strlen(text), (unsigned long long)params->num_notes,
            sizeof(note->key) - 1, sizeof(note->text) - 1, MOST_NOTES);
    if (!note)
        note = &params->notes[params->num_notes++];
    if (note->key != key)
        snprintf(note->key, sizeof(note->key), "%s", key);
    if (note->text != text)
        snprintf(note->text, sizeof(note->text), "%s", text);
    return TN_OK;
}

void list_notes(const struct tn_params *params, struct train_note_list *list)
{
    list->all[0] = '\0';
    for (uint64_t i = 0; i < params->num_notes; i++) {
        const struct train_note *note = &params->notes[i];
        size_t used = strlen(list->all);
        snprintf(list->all + used, sizeof(list->all) - used, "%s%s", i ? " " : "",
                 note->key);
        snprintf(list->keys[i], sizeof(list->keys[i]), NOTE "%s", note->key);
    }
}

tn_status read_notes(struct tn_params *params, const tn_file *file, const char *path)
{
    const char *at = tn_file_text(file, "notes");
    while (at && *at) {
        char key[sizeof(NOTE) + sizeof(params->notes[0].key)];
        int length = (int)strcspn(at, " ");
        snprintf(key, sizeof(key), NOTE "%.*s", length, at);
        const char *text = tn_file_text(file, key);
        if (!text)
            return train_fail(TN_ERR_REFUSED, "%s: its notes name '%.*s', which is absent",
                              path, length, at);
        tn_status status = tn_params_set_note(params, key + strlen(NOTE), text);
        if (status != TN_OK)
            return train_fail(status, "%s: %s", path, tn_train_error());
        at += length;
        at += strspn(at, " ");
    }
    return TN_OK;
}
