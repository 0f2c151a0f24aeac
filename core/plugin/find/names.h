// SPDX-License-Identifier: MIT
// The syntax of names in manifests: ids, versions, primitives, files.
#ifndef CORE_PLUGIN_FIND_NAMES_H
#define CORE_PLUGIN_FIND_NAMES_H

#include <stdbool.h>
#include <stddef.h>

bool id_valid(const char *id);           // "org.tenon.null"
bool version_valid(const char *version); // "1.2.3", "1.2.3-rc.1+build"

// Order of semantic versions: negative, 0 or positive. Both must be valid.
int version_compare(const char *a, const char *b);

// A path of plain names below a directory: no "..", no ".", nothing absolute or hidden.
bool file_name_valid(const char *name);

// Whether `name`, as a user writes it, means the primitive `id` ("acme.axpby/1"): the id,
// the id without its revision, or the last part of the id, with or without revision.
bool primitive_matches(const char *name, const char *id);

// A selector's kind is [a-z][a-z0-9-]*, its value not empty and printable; of kind "magic":
// bytes in hexadecimal, or "??".
bool selector_valid(const char *kind, const char *value);

// Whether the bytes begin as the value of a selector of kind "magic" says: the number of
// bytes that it compares, 0 for no.
size_t magic_matches(const char *value, const void *data, size_t size);

#endif // CORE_PLUGIN_FIND_NAMES_H
