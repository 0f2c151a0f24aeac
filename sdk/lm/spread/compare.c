// SPDX-License-Identifier: MIT
// Checks that processes fit together: each sends its versions and options, and all compare
// the records of all.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "../engine/devices.h"
#include "../engine/hash.h"
#include "../engine/parts.h"
#include "spread.h"

static void write_devices(const tn_lm *model, char *out, size_t size)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    int64_t count = 0;
    size_t used = 0;
    *out = 0;
    if (lm_devices_ask(model, devices, &count) != TN_OK)
        return;
    for (int64_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s (%s)", i ? ", " : "",
                                 devices[i].device, devices[i].name);
}

static void write_plugin(const tn_lm *model, char *out, size_t size)
{
    tn_plugin_info info;
    snprintf(out, size, "%s", model->plugin);
    for (uint64_t i = 0; i < tn_plugin_count(model->runtime); i++) {
        info = (tn_plugin_info){.struct_size = sizeof(info)};
        if (tn_plugin_get(model->runtime, i, &info) == TN_OK &&
            info.state == TN_PLUGIN_LOADED && strcmp(info.id, model->plugin) == 0)
            snprintf(out, size, "%s %s", info.id, info.version);
    }
}

static tn_status spread_compare_introduce(const struct lm_spread *spread, const char *split,
                                          struct lm_introduction *out)
{
    const tn_lm *model = spread->model;
    struct lm_room room;
    *out = (struct lm_introduction){.speed = 0};
    snprintf(out->version, sizeof(out->version), "Tenon %s", TN_VERSION);
    snprintf(out->name, sizeof(out->name), "'%s'", model->name);
    snprintf(out->kind, sizeof(out->kind), "%s",
             spread->kind == TN_LM_PIPELINE ? "pipeline" : "tensor");
    snprintf(out->options, sizeof(out->options),
             "context %" PRId64 ", caches of %s, %" PRId64 " sequences, split %s",
             model->context, model->cache_name, model->slots, split ? split : "by itself");
    write_devices(model, out->devices, sizeof(out->devices));
    write_plugin(model, out->plugin, sizeof(out->plugin));
    tn_status status = lm_hash_whole(model, &out->model, &out->sample);
    if (status == TN_OK)
        status = lm_room_of_all(model, &room);
    if (status != TN_OK)
        return status;
    out->room_bytes = room.bytes;
    out->is_unbounded = room.is_unbounded;
    out->is_closed = room.is_closed;
    return TN_OK;
}

static const char *spread_compare_text_at(const struct lm_introduction *rank, size_t at)
{
    return (const char *)rank + at;
}

// Texts that have to be equal on all processes, and words for a difference.
static const struct {
    const char *what;
    size_t at;
} equal[] = {
    {"another version", offsetof(struct lm_introduction, version)},
    {"another plugin of the architecture", offsetof(struct lm_introduction, plugin)},
    {"another division", offsetof(struct lm_introduction, kind)},
    {"other options", offsetof(struct lm_introduction, options)},
};

static tn_status spread_compare(const struct lm_introduction *first,
                                const struct lm_introduction *other, int32_t rank)
{
    for (size_t i = 0; i < COUNT(equal); i++)
        if (strcmp(spread_compare_text_at(first, equal[i].at),
                   spread_compare_text_at(other, equal[i].at)) != 0)
            return lm_fail(TN_ERR_REFUSED, "rank %d has %s: %s, rank 0 has %s", rank,
                           equal[i].what, spread_compare_text_at(other, equal[i].at),
                           spread_compare_text_at(first, equal[i].at));
    bool are_sampled = first->sample && other->sample;
    if (first->model != other->model || (are_sampled && first->sample != other->sample))
        return lm_fail(TN_ERR_REFUSED,
                       "rank %d has another model: %s, rank 0 has %s; they differ in their "
                       "%s",
                       rank, other->name, first->name,
                       first->model != other->model
                           ? "metadata, or in names, shapes or formats of weights"
                           : "weights");
    return TN_OK;
}

tn_status lm_spread_gather(struct lm_spread *spread, const struct lm_introduction *mine)
{
    tn_status status = lm_mail_gather(&spread->mail, mine, sizeof(*mine), spread->ranks);
    if (status != TN_OK) { // the library may still write to this memory
        lm_mail_abandon(spread->ranks);
        spread->ranks = NULL;
    }
    return status;
}

tn_status lm_spread_compare(struct lm_spread *spread, const char *split)
{
    struct lm_introduction mine;
    tn_status status = spread_compare_introduce(spread, split, &mine);
    if (status == TN_OK)
        status = lm_spread_gather(spread, &mine);
    for (int32_t i = 1; i < spread->base.size && status == TN_OK; i++)
        status = spread_compare(&spread->ranks[0], &spread->ranks[i], i);
    return status;
}
