// SPDX-License-Identifier: MIT
// Adapters as Hugging Face's library PEFT writes them: a folder of adapter_config.json and
// adapter_model.safetensors.
#ifndef LM_PEFT_H
#define LM_PEFT_H

#include <limits.h>
#include <tenon/file.h>
#include "../engine/model.h"

// Bytes of the name of an array of such a file, with the NUL.
#define PEFT_NAME 192

// Values of the folder's configuration.
struct peft_config {
    double alpha; // 0: absent
    bool is_root; // the factor is alpha / sqrt(rank)
};

// Whether the path is a folder that has an adapter, or could get one.
bool peft_is_folder(const char *path);
// The path of the folder's arrays.
const char *peft_arrays(const char *folder, char out[PATH_MAX]);

// Reads adapter_config.json. TN_ERR_UNSUPPORTED: it asks for a computation that only PEFT
// has, such as weights beside those of low rank.
tn_status peft_read_config(const char *folder, struct peft_config *out);
tn_status peft_write_config(tn_lm *model, const char *folder);

// The weight that an array belongs to, and whether the array is its B; 0: none.
bool peft_weight(const char *array, char out[TN_MODEL_NAME], bool *out_is_up);
// Whether an array is a copy of a weight of the model, which PEFT puts beside an adapter of
// the output.
bool peft_is_base(const char *array);
// The name of an array of a weight; false: PEFT has none for this weight.
bool peft_array(tn_lm *model, const char *weight, bool is_up, char out[PEFT_NAME]);

#endif // LM_PEFT_H
