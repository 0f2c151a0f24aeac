// SPDX-License-Identifier: MIT
// Files as sources of models.
#ifndef LM_SOURCE_H
#define LM_SOURCE_H

#include <tenon/lm.h>

// Gives back the pages of an array that a file gave and that nothing reads any more. The
// system's cache of the file stays.
void lm_source_forget(const tn_lm *model, tn_scope *scope, tn_array *read);

// Opens a file as a source.
tn_status lm_source_open(tn_runtime *runtime, const char *path, tn_lm_source *out_source);

#endif // LM_SOURCE_H
