// SPDX-License-Identifier: MIT
// safetensors files: named arrays behind a JSON header.
#ifndef TOOLS_TENON_FORMATS_SAFETENSORS_H
#define TOOLS_TENON_FORMATS_SAFETENSORS_H

#include "base/tool.h"

struct safetensors_item {
    char *name; // owned
    struct host_array array;
};

struct safetensors {
    struct safetensors_item *items;
    size_t count;
};

// Reads a whole file; metadata is checked and dropped. On failure *out is unchanged.
int safetensors_read(const char *path, struct safetensors *out);

// The array of this name, or NULL.
const struct host_array *safetensors_find(const struct safetensors *file, const char *name);

// Adds an array with a copy of the name; takes the array's data, also on failure.
int safetensors_add(struct safetensors *file, const char *name, struct host_array *array);

// Replaces `path` atomically: a full disk leaves the old file unchanged.
int safetensors_write(const char *path, const struct safetensors *file);

void safetensors_finish(struct safetensors *file);

#endif // TOOLS_TENON_FORMATS_SAFETENSORS_H
