// SPDX-License-Identifier: MIT
// The devices of a model's parts: which one a layer is on, and the message when a device is
// lost.
#ifndef LM_DEVICES_H
#define LM_DEVICES_H

#include <tenon/selected.h>
#include "model.h"

// The devices of TENON_BACKEND as they are now. Of more than LM_MOST_DEVICES the first ones
// count.
tn_status lm_devices_ask(const tn_lm *model, tn_selected_device *out, int64_t *count);

// The part that has a layer, the embedding or the output.
int64_t lm_part_of(const struct lm_division *division, int64_t layer);

// From now on data of the scope and what is computed there are on the part's device.
tn_status lm_scope_on(const struct lm_division *division, int64_t part, tn_scope *scope);

// Whether a device that has layers was lost.
bool lm_is_lost(const tn_lm *model);

// Passes a failure on; when a device with layers was lost, in words for users of models.
tn_status lm_tell_lost(const tn_lm *model, tn_status status);

// A line of a message that is put together, cut where it is full.
struct lm_line {
    char data[512];
    size_t size;
};
void lm_line_add(struct lm_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// "layer 3", "layers 3 to 5".
void lm_line_add_layers(struct lm_line *line, int64_t first, int64_t last);

#endif // LM_DEVICES_H
