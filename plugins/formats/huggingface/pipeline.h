// SPDX-License-Identifier: MIT
// The steps from text to tokens, read from tokenizer.json.
#ifndef FORMATS_HUGGINGFACE_PIPELINE_H
#define FORMATS_HUGGINGFACE_PIPELINE_H

#include <stdbool.h>
#include <tenon/status.h>

struct hf;

struct hf_pipeline {
    char words[256];  // value of "tenon.tokenizer.pipeline"
    const char *name; // GGUF's name of the rule that cuts text; NULL: none
    const char *rule; // value of "tenon.tokenizer.rule"; NULL: the name suffices
    bool is_bytes;    // pieces are bytes as letters; else they have U+2581
    bool prepends, replaces, spaces;
    const char *begin, *end; // texts of tokens put around a text, or NULL
};

// Reads all steps; TN_ERR_UNSUPPORTED names an unknown one.
tn_status hf_read_pipeline(const struct hf *hf, struct hf_pipeline *out);

#endif // FORMATS_HUGGINGFACE_PIPELINE_H
