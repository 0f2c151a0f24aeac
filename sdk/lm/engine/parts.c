// SPDX-License-Identifier: MIT
// Parts: which layers of a model are on which device, by the memory that the devices of
// TENON_BACKEND have left, or as the options say.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/backend.h>
#include "../base/fail.h"
#include "caches.h"
#include "devices.h"
#include "parts.h"
#include "weights.h"

// Memory that a device keeps for steps: 1 / RESERVED_SHARE of what is left, at most
// MOST_RESERVED bytes.
#define RESERVED_SHARE 8
#define MOST_RESERVED (UINT64_C(512) << 20)
#define SHORTEST_CONTEXT 64 // positions: the least context that a message proposes

// --- devices ---------------------------------------------------------------------------

// Number of the memory of device `index`: devices that share one memory have the same
// number.
static uint32_t model_shards_memory_of(const tn_selected_device *devices, int64_t index)
{
    static const uint8_t none[sizeof(devices[0].share_id)];
    const tn_selected_device *device = &devices[index];
    for (int64_t i = 0; i < index; i++) {
        bool is_host = device->flags & devices[i].flags & (uint32_t)TN_DEVICE_HOST_MEMORY;
        bool is_shared = memcmp(device->share_id, none, sizeof(none)) != 0 &&
                         memcmp(device->share_id, devices[i].share_id, sizeof(none)) == 0;
        if (is_host || is_shared)
            return (uint32_t)i;
    }
    return (uint32_t)index;
}

// Bytes of weights that the device has already: they are taken from its memory, and stay or
// are freed.
static uint64_t model_shards_loaded_bytes(const tn_lm *model, int64_t device)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < model->weights.count; i++)
        if (model->weights.items[i].device == device)
            bytes += model->weights.items[i].bytes;
    return bytes;
}

// Bytes of a device that the user grants to a model; 0: all.
static uint64_t lm_parts_granted(const tn_lm *model)
{
    const char *text = tn_config(model->runtime, "TENON_LM_MEMORY");
    return text ? strtoull(text, NULL, 10) : 0;
}

static void lm_room_limit(struct lm_room *room, uint64_t most)
{
    if (most > 0 && (room->is_unbounded || room->bytes > most)) {
        room->bytes = most;
        room->is_unbounded = false;
    }
}

// Finds the room of each device. The host's memory, if it is the last device, has no bound:
// the weights of a file are mapped, so that the system can do with less than their bytes.
static void find_rooms(const tn_lm *model, const tn_selected_device *devices, int64_t count,
                       struct lm_room *out)
{
    int64_t last = count - 1;
    while (last > 0 && devices[last].is_lost)
        last--;
    for (int64_t i = 0; i < count; i++) {
        const tn_selected_device *device = &devices[i];
        uint64_t bytes = device->available, kept = bytes / RESERVED_SHARE;
        bytes -= kept < MOST_RESERVED ? kept : MOST_RESERVED;
        out[i] = (struct lm_room){.bytes = bytes + model_shards_loaded_bytes(model, i),
                                  .is_unbounded =
                                      device->available == 0 ||
                                      (i == last && device->flags & TN_DEVICE_HOST_MEMORY),
                                  .is_closed = device->is_lost,
                                  .memory = model_shards_memory_of(devices, i)};
        lm_room_limit(&out[i], lm_parts_granted(model));
    }
}

tn_status lm_room_of_all(const tn_lm *model, struct lm_room *out)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    struct lm_room rooms[LM_MOST_DEVICES];
    int64_t count;
    tn_status status = lm_devices_ask(model, devices, &count);
    if (status != TN_OK)
        return status;
    find_rooms(model, devices, count, rooms);
    *out = (struct lm_room){.is_closed = true};
    for (int64_t i = 0; i < count; i++) {
        bool is_counted = false; // its memory was counted with an earlier device
        for (int64_t k = 0; k < i; k++)
            is_counted = is_counted || rooms[k].memory == rooms[i].memory;
        if (rooms[i].is_closed)
            continue;
        out->is_closed = false;
        out->is_unbounded = out->is_unbounded || rooms[i].is_unbounded;
        out->bytes += is_counted ? 0 : rooms[i].bytes;
    }
    return TN_OK;
}

// --- what layers need ------------------------------------------------------------------

void lm_sizes_finish(struct lm_sizes *sizes)
{
    free(sizes->weights);
}

static tn_status layer_sizes(const tn_lm *model, int64_t layer, uint64_t *out_weights,
                             uint64_t *out_caches)
{
    tn_type types[TN_MODEL_CACHES];
    tn_status status = lm_weights_bytes(model, layer, out_weights, NULL);
    if (status == TN_OK)
        status = lm_caches_types(model, layer, types);
    for (uint32_t i = 0; i < model->facts->num_caches && status == TN_OK; i++)
        *out_caches += lm_type_bytes(&types[i]);
    return status;
}

tn_status lm_sizes_make(const tn_lm *model, int64_t first, int64_t end,
                        struct lm_sizes *out)
{
    int64_t count = end - first;
    tn_status status = TN_OK;
    *out = (struct lm_sizes){.weights = lm_alloc(3 * (uint64_t)count, sizeof(uint64_t))};
    if (!out->weights)
        return TN_ERR_MEMORY;
    out->caches = out->weights + count;
    out->both = out->caches + count;
    out->needs = (struct lm_needs){.layers = count, .bytes = out->both};
    for (int64_t i = 0; i < count && status == TN_OK; i++) {
        status = layer_sizes(model, first + i, &out->weights[i], &out->caches[i]);
        out->both[i] = out->weights[i] + out->caches[i];
    }
    if (status == TN_OK && first == 0)
        status = lm_weights_bytes(model, TN_MODEL_EMBEDDING, &out->needs.embedding, NULL);
    if (status == TN_OK && end == model->facts->layers)
        status = lm_weights_bytes(model, TN_MODEL_OUTPUT, &out->needs.output,
                                  first == 0 ? &out->needs.again : NULL);
    return status;
}

// --- what does not fit -----------------------------------------------------------------

struct model_shards_problem {
    const tn_lm *model;
    const tn_selected_device *devices;
    const struct lm_room *rooms;
    int64_t num_devices, first, end;
    const int64_t *split; // division that the options ask for; NULL: none
    struct lm_sizes sizes;
    struct lm_shortage shortage;
};

static bool model_shards_fits(struct model_shards_problem *p, int64_t *out_ends)
{
    if (!p->split)
        return lm_shard_layers(&p->sizes.needs, p->rooms, p->num_devices, out_ends,
                               &p->shortage);
    memcpy(out_ends, p->split, (size_t)p->num_devices * sizeof(*out_ends));
    return lm_division_fits(&p->sizes.needs, p->rooms, p->num_devices, out_ends,
                            &p->shortage);
}

// Whether the model would fit if caches had `share` / `of` of their bytes.
static bool would_fit(const struct model_shards_problem *p, uint64_t share, uint64_t of)
{
    struct model_shards_problem trial = *p;
    int64_t ends[LM_MOST_DEVICES];
    for (int64_t i = 0; i < p->sizes.needs.layers; i++)
        p->sizes.both[i] = p->sizes.weights[i] + p->sizes.caches[i] / of * share;
    bool does = model_shards_fits(&trial, ends);
    for (int64_t i = 0; i < p->sizes.needs.layers; i++)
        p->sizes.both[i] = p->sizes.weights[i] + p->sizes.caches[i];
    return does;
}

// Appends options with which the model would fit, each followed by a comma.
static void model_shards_propose(const struct model_shards_problem *p, struct lm_line *out)
{
    const tn_lm *model = p->model;
    bool has_host = false;
    int64_t context = model->context / 2;
    while (context > SHORTEST_CONTEXT &&
           !would_fit(p, (uint64_t)context, (uint64_t)model->context))
        context /= 2;
    if (context >= SHORTEST_CONTEXT &&
        would_fit(p, (uint64_t)context, (uint64_t)model->context))
        lm_line_add(out, "a context of %" PRId64 ", ", context);
    if (model->cache_dtype == TN_F32 && would_fit(p, 1, 2))
        lm_line_add(out, "caches of f16, ");
    if (model->slots > 1 && would_fit(p, 1, (uint64_t)model->slots))
        lm_line_add(out, "one sequence in place of %" PRId64 ", ", model->slots);
    if (p->shortage.placed > 0 && !p->split) {
        lm_line_add_layers(out, p->first, p->first + p->shortage.placed - 1);
        lm_line_add(out, " alone, ");
    }
    for (int64_t i = 0; i < p->num_devices; i++)
        has_host = has_host || p->devices[i].flags & TN_DEVICE_HOST_MEMORY;
    lm_line_add(out, p->split ? "another split"
                     : has_host
                         ? "another device in TENON_BACKEND"
                         : "all of it with cpu-blas behind the others in TENON_BACKEND");
}

static tn_status model_shards_refuse(const struct model_shards_problem *p)
{
    const struct lm_shortage *s = &p->shortage;
    const tn_selected_device *device = &p->devices[s->device];
    struct lm_line layers = {.size = 0}, what = {.size = 0};
    int64_t last = p->split ? p->split[s->device] : p->end - p->first;
    lm_line_add_layers(&layers, p->first + s->placed, p->first + last - 1);
    if (p->rooms[s->device].is_closed)
        return lm_fail(TN_ERR_DEVICE,
                       "%s of %" PRId64 " cannot be on %s, which was lost: open a new "
                       "runtime%s",
                       layers.data, p->model->facts->layers, device->device,
                       p->split ? ", or divide the layers by memory" : "");
    model_shards_propose(p, &what);
    return lm_fail(TN_ERR_MEMORY,
                   "%s: does not fit: no room for %s of %" PRId64
                   " on %s, which has %.1f MB of memory for layers: %.1f MB are missing; "
                   "what fits: %s",
                   p->model->source.metadata->name, layers.data, p->model->facts->layers,
                   device->device, 1e-6 * (double)p->rooms[s->device].bytes,
                   1e-6 * (double)s->missing, what.data);
}

// --- dividing --------------------------------------------------------------------------

// Reads the division that the options ask for, within layers first .. end - 1.
static tn_status model_shards_read_split(const tn_lm *model, int64_t first, int64_t end,
                                         int64_t count, int64_t *out_ends)
{
    const char *wrong = lm_read_split(model->split, model->facts->layers, count, out_ends);
    for (int64_t i = 0; i < count && !wrong; i++) {
        int64_t at = out_ends[i] < first ? first : out_ends[i] < end ? out_ends[i] : end;
        out_ends[i] = at - first;
    }
    return !wrong ? TN_OK
                  : lm_fail(TN_ERR_ARGUMENT,
                            "a split of '%s' for %" PRId64 " layers on %" PRId64
                            " device%s: %s",
                            model->split, model->facts->layers, count,
                            count == 1 ? "" : "s", wrong);
}

static void model_shards_write_parts(const struct model_shards_problem *p,
                                     const int64_t *ends, struct lm_division *out)
{
    *out = (struct lm_division){.count = 0};
    for (int64_t i = 0, begin = 0; i < p->num_devices; begin = ends[i++]) {
        if (ends[i] == begin)
            continue;
        const tn_selected_device *device = &p->devices[i];
        struct lm_part *part = &out->parts[out->count++];
        part->device = i;
        part->first = p->first + begin;
        part->end = p->first + ends[i];
        for (int64_t k = begin; k < ends[i]; k++) {
            part->weight_bytes += p->sizes.weights[k];
            part->cache_bytes += p->sizes.caches[k] / (uint64_t)p->model->slots;
        }
        part->weight_bytes += begin == 0 ? p->sizes.needs.embedding : 0;
        if (ends[i] == p->sizes.needs.layers)
            part->weight_bytes +=
                p->sizes.needs.output + (begin > 0 ? p->sizes.needs.again : 0);
        snprintf(part->name, sizeof(part->name), "%s", device->device);
        snprintf(part->label, sizeof(part->label), "%s", device->name);
        part->flags = device->flags;
    }
}

tn_status lm_division_make(const tn_lm *model, int64_t first, int64_t end,
                           struct lm_division *out)
{
    tn_selected_device devices[LM_MOST_DEVICES];
    struct lm_room rooms[LM_MOST_DEVICES];
    int64_t ends[LM_MOST_DEVICES], split[LM_MOST_DEVICES];
    struct model_shards_problem p = {.model = model,
                                     .devices = devices,
                                     .rooms = rooms,
                                     .first = first,
                                     .end = end,
                                     .split = model->split ? split : NULL};
    tn_status status = lm_devices_ask(model, devices, &p.num_devices);
    if (status == TN_OK && model->split)
        status = model_shards_read_split(model, first, end, p.num_devices, split);
    if (status != TN_OK)
        return status;
    find_rooms(model, devices, p.num_devices, rooms);
    status = lm_sizes_make(model, first, end, &p.sizes);
    if (status == TN_OK && !model_shards_fits(&p, ends))
        status = model_shards_refuse(&p);
    if (status == TN_OK)
        model_shards_write_parts(&p, ends, out);
    lm_sizes_finish(&p.sizes);
    return status;
}

// --- for applications ------------------------------------------------------------------

tn_status tn_lm_parts(const tn_lm *model, tn_lm_part *out, uint64_t *count)
{
    struct lm_division made;
    const struct lm_division *division = &model->division;
    tn_status status = TN_OK;
    if (division->count == 0) {
        status = lm_division_make(model, 0, model->facts->layers, &made);
        division = &made;
    }
    if (status != TN_OK)
        return status;
    uint32_t size = out && out->struct_size ? out->struct_size : (uint32_t)sizeof(*out);
    for (uint64_t i = 0; out && i < *count && i < (uint64_t)division->count; i++) {
        const struct lm_part *part = &division->parts[i];
        tn_lm_part one = {.struct_size = size,
                          .first = part->first,
                          .end = part->end,
                          .weight_bytes = part->weight_bytes,
                          .cache_bytes = part->cache_bytes};
        memcpy(one.device, part->name, sizeof(one.device));
        memcpy(one.name, part->label, sizeof(one.name));
        memcpy((char *)out + i * size, &one, size < sizeof(one) ? size : sizeof(one));
    }
    *count = (uint64_t)division->count;
    return TN_OK;
}
