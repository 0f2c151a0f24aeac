// SPDX-License-Identifier: MIT
// Opens a model of a file, and closes one with its tokenizer, encoder and caches.
#include "engine/source.h"
#include "grammar/grammar.h"
#include "image/vision.h"

tn_status tn_lm_open(tn_runtime *runtime, const char *path, const tn_lm_options *options,
                     tn_lm **out_model)
{
    tn_lm_source source;
    tn_status status = lm_source_open(runtime, path, &source);
    return status == TN_OK ? tn_lm_open_source(runtime, &source, options, out_model)
                           : status;
}

void tn_lm_close(tn_lm *model)
{
    if (!model)
        return;
    lm_vision_close(model);
    grammar_vocabulary_destroy(model->vocabulary);
    lm_model_close(model);
}
