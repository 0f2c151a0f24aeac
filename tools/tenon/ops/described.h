// SPDX-License-Identifier: MIT
// Operators as the ops.json of their plugins describes them: no plugin is loaded for it.
#ifndef TOOLS_TENON_OPS_DESCRIBED_H
#define TOOLS_TENON_OPS_DESCRIBED_H

#include "base/tool.h"

#define OPS_FILE "ops.json"
#define OPS_MOST (16u << 20) // bytes

// The operators of one file.
struct ops_file;

// Parses a text of `size` bytes; `path` is for messages. Free *out by ops_file_free().
int ops_file_parse(const char *text, size_t size, const char *path, struct ops_file **out);
void ops_file_free(struct ops_file *file);

uint32_t ops_file_count(const struct ops_file *file);
// The record of operator `i`: rules that the operator has are functions that do nothing.
// Borrowed from the file.
const tn_primitive *ops_file_at(const struct ops_file *file, uint32_t i);

// The files of a runtime's plugins, each read when it is first asked for.
struct described;
int described_create(tn_runtime *runtime, struct described **out);
void described_free(struct described *described);

// Gives the operator with this id. A plugin whose manifest lists no
// ops.json is loaded instead. Borrowed from `described`.
int described_find(struct described *described, const char *id,
                   const tn_primitive **out_primitive);

// The id that a name ("add", "base.add", "base.add/1") means, by manifests alone; NULL
// where the library has to say.
const char *described_id(const tn_runtime *runtime, const char *name);

#endif // TOOLS_TENON_OPS_DESCRIBED_H
