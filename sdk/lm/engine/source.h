// SPDX-License-Identifier: MIT
// Sources of models: files, and a source in the form that plugins of models take.
#ifndef LM_SOURCE_H
#define LM_SOURCE_H

#include <stdbool.h>
#include <tenon/lm.h>
#include <tenon/model.h>

// Gives the pages of an array of a file back to the system, once nothing reads the array
// any more. The system's cache of the file stays.
void lm_source_forget(const tn_lm *model, tn_scope *scope, tn_array *read);

// Whether weights come from a file.
bool lm_source_is_file(const tn_lm *model);

// Opens a file as a source.
tn_status lm_source_open(tn_runtime *runtime, const char *path, tn_lm_source *out_source);

// A source in the form that the plugin of a model takes.
struct lm_model_source {
    tn_model_source base; // first
    const tn_lm_source *source;
};
void lm_model_source_init(const tn_lm_source *source, struct lm_model_source *out);

#endif // LM_SOURCE_H
