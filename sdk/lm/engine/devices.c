// SPDX-License-Identifier: MIT
// Devices that have layers: which one a layer is on, and the message when a device is lost.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "../base/fail.h"
#include "devices.h"

tn_status lm_devices_ask(const tn_lm *model, tn_selected_device *out, int64_t *count)
{
    uint64_t num = LM_MOST_DEVICES;
    out[0].struct_size = sizeof(out[0]);
    tn_status status = tn_selected_devices(model->runtime, out, &num);
    *count = num < LM_MOST_DEVICES ? (int64_t)num : LM_MOST_DEVICES;
    return lm_fail_core(status);
}

int64_t lm_part_of(const struct lm_division *division, int64_t layer)
{
    if (layer == TN_MODEL_EMBEDDING)
        return 0;
    for (int64_t i = 0; i < division->count; i++)
        if (layer >= division->parts[i].first && layer < division->parts[i].end)
            return i;
    return division->count - 1; // the part of the output
}

tn_status lm_scope_on(const struct lm_division *division, int64_t part, tn_scope *scope)
{
    return tn_scope_device(scope, division->parts[part].name);
}

// --- messages --------------------------------------------------------------------------

void lm_line_add(struct lm_line *line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t left = sizeof(line->data) - line->size;
    int size = vsnprintf(line->data + line->size, left, format, list);
    va_end(list);
    line->size += size < 0 ? 0 : (size_t)size < left ? (size_t)size : left - 1;
}

void lm_line_add_layers(struct lm_line *line, int64_t first, int64_t last)
{
    if (first == last)
        lm_line_add(line, "layer %" PRId64, first);
    else
        lm_line_add(line, "layers %" PRId64 " to %" PRId64, first, last);
}

// --- lost devices ----------------------------------------------------------------------

// The first part whose device is lost; -1: none.
static int64_t lost_part(const tn_lm *model, const tn_selected_device *devices)
{
    for (int64_t i = 0; i < model->division.count; i++)
        if (devices[model->division.parts[i].device].is_lost)
            return i;
    return -1;
}

bool lm_is_lost(const tn_lm *model)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    int64_t count = 0;
    return model->division.count > 0 && lm_devices_ask(model, devices, &count) == TN_OK &&
           lost_part(model, devices) >= 0;
}

tn_status lm_tell_lost(const tn_lm *model, tn_status status)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    struct lm_line left = {.size = 0}, layers = {.size = 0};
    char before[1024];
    int64_t count = 0;
    snprintf(before, sizeof(before), "%s", tn_lm_error());
    if (status != TN_ERR_DEVICE || lm_devices_ask(model, devices, &count) != TN_OK)
        return status == TN_OK ? status : lm_fail(status, "%s", before);
    int64_t lost = lost_part(model, devices);
    for (int64_t i = 0; i < count; i++)
        if (!devices[i].is_lost)
            lm_line_add(&left, "%s%s", left.size ? ", " : "", devices[i].device);
    if (lost < 0)
        return lm_fail(status, "%s", before);
    const struct lm_part *part = &model->division.parts[lost];
    lm_line_add_layers(&layers, part->first, part->end - 1);
    return lm_fail(
        status,
        "device %s was lost, with %s and the caches there: the sequences of this "
        "model have ended; %s%s",
        part->name, layers.data,
        left.size ? "close them, and tn_lm_ensure_shard places the layers on "
                  : "open a new runtime",
        left.data);
}
