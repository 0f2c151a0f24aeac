// SPDX-License-Identifier: MIT
// The metadata of a GGUF file or of a text (fixtures/*.txt), and a tokenizer made of them,
// for tests: no plugin for the format is needed.
#ifndef TESTS_TOKENIZERS_VOCABULARY_FILE_H
#define TESTS_TOKENIZERS_VOCABULARY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/tenon.h>
#include <tenon/tokenizer.h>

// What a file of metadata holds. The pairs may be changed before it is opened.
struct vocabulary_file {
    tn_metadata_list list;
    tn_metadata *pairs; // list.entries
    char name[256];
};

// Reads a file. False, with a line on standard error, when it cannot be read.
bool vocabulary_file_read(const char *path, struct vocabulary_file *out);
void vocabulary_file_finish(struct vocabulary_file *file);

// Puts a text under a key, in place of what was there.
void vocabulary_file_set(struct vocabulary_file *file, const char *key, const char *text);

// A tokenizer with its table of functions, of the plugin that the metadata ask for.
struct open_tokenizer {
    const tn_tokenizer_ops *ops;
    const tn_host *host;
    tn_tokenizer *tokenizer;
};
tn_status open_tokenizer(tn_runtime *runtime, const tn_metadata_list *list,
                         struct open_tokenizer *out);

#endif // TESTS_TOKENIZERS_VOCABULARY_FILE_H
