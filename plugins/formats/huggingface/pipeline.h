// SPDX-License-Identifier: MIT
// A text's way to its tokens, read from tokenizer.json.
#ifndef FORMATS_HUGGINGFACE_PIPELINE_H
#define FORMATS_HUGGINGFACE_PIPELINE_H

#include <stdbool.h>
#include <tenon/status.h>

struct hf;

struct hf_pipeline {
    char words[256];  // for "tenon.tokenizer.pipeline"
    const char *name; // of the rule that cuts text, in GGUF; NULL: it has none
    const char *rule; // for "tenon.tokenizer.rule", or NULL: the name says it
    bool is_bytes;    // bytes as letters, not pieces with U+2581
    bool prepends, replaces, spaces;
    const char *begin, *end; // texts of tokens that are put around a text, or NULL
};

// Reads all parts; TN_ERR_UNSUPPORTED for a step that is not known.
tn_status hf_read_pipeline(const struct hf *hf, struct hf_pipeline *out);

#endif // FORMATS_HUGGINGFACE_PIPELINE_H
