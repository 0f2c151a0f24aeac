// SPDX-License-Identifier: MIT
// The devices of a model's parts: which one a layer is on, and the message when a device is
// lost.
#ifndef LM_DEVICES_H
#define LM_DEVICES_H

#include <tenon/selected.h>
#include "model.h"

// Lists the devices of TENON_BACKEND as they are now: at most LM_MOST_DEVICES, the first
// ones.
tn_status lm_devices_ask(const tn_lm *model, tn_selected_device *out, int64_t *count);

// The part that has a layer, the embedding or the output.
int64_t lm_part_of(const struct lm_division *division, int64_t layer);

// Places what is built in the scope from now on, and its data, on the part's device.
tn_status lm_scope_on(const struct lm_division *division, int64_t part, tn_scope *scope);

// Whether a device that has layers was lost.
bool lm_is_lost(const tn_lm *model);

// Passes `status` on; when a device with layers was lost, with a message for users of
// models.
tn_status lm_tell_lost(const tn_lm *model, tn_status status);

// A line of a message, built piece by piece and cut where it is full.
struct lm_line {
    char data[512];
    size_t size;
};
void lm_line_add(struct lm_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Appends "layer 3" or "layers 3 to 5".
void lm_line_add_layers(struct lm_line *line, int64_t first, int64_t last);

#endif // LM_DEVICES_H
