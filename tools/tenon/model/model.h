// SPDX-License-Identifier: MIT
// What is in a file of a model, as JSON, and as text for people.
#ifndef TOOLS_TENON_MODEL_MODEL_H
#define TOOLS_TENON_MODEL_MODEL_H

#include <tenon/file.h>

#include "base/args.h"
#include "base/table.h"

int cmd_model_show(const struct command *self, int argc, char **argv);
int cmd_model_convert(const struct command *self, int argc, char **argv);
int cmd_model_quantize(const struct command *self, int argc, char **argv);
int cmd_model_tokens(const struct command *self, int argc, char **argv);

// Describes a file in a new object:
//
//   "file", "architecture", "name", "parameters", "bytes" of all arrays
//   "dimensions"  {"layers": 30, ...}: those that the file has
//   "tokenizer"   {"model": "gpt2", "tokens": 49152, ...}; absent: the file has none
//   "formats"     [{"format", "arrays", "elements", "bytes"}]
//   "arrays"      [{"name", "format", "shape", "elements", "bytes"}]: the mathematical
//   shape "metadata"    {KEY: VALUE}; of a list: {"list": count, "first": [a few values]}
//
// "architecture" and "name" are "" where the file says none. Texts are shown and not
// obeyed: what is no UTF-8 is escaped.
int model_describe(const tn_file *file, const char *path, json_t **out_model);

// Entry of "dimensions", in order: a key behind the architecture's name in the metadata,
// and the name here.
struct dimension {
    const char *key, *name;
};
extern const struct dimension model_dimensions[];
extern const size_t num_model_dimensions;

#endif // TOOLS_TENON_MODEL_MODEL_H
