// SPDX-License-Identifier: MIT
// safetensors files: named arrays behind a JSON header.
#ifndef TOOLS_TENON_SAFETENSORS_H
#define TOOLS_TENON_SAFETENSORS_H

#include <jansson.h>
#include "tool.h"

struct safetensors_item {
    char *name; // owned
    struct host_array array;
};

struct safetensors {
    json_t *metadata; // object of strings; never NULL after a successful call
    struct safetensors_item *items;
    size_t count;
};

// Reads a whole file. On failure *out is unchanged.
int safetensors_read(const char *path, struct safetensors *out);

// The array of this name, or NULL.
const struct host_array *safetensors_find(const struct safetensors *file, const char *name);

// Adds a copy of the name; takes the array's data, also on failure.
int safetensors_add(struct safetensors *file, const char *name, struct host_array *array);
// Adds a line of metadata. printf's format.
int safetensors_note(struct safetensors *file, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Replaces `path` at once: a full disk leaves the old file as it was.
int safetensors_write(const char *path, const struct safetensors *file);

void safetensors_finish(struct safetensors *file);

#endif // TOOLS_TENON_SAFETENSORS_H
