// SPDX-License-Identifier: MIT
// Dividing the layers of a model among devices.
//
// Devices are filled in order, not evenly: the list says which device is preferred, one
// sequence runs on one device at a time anyway, and a slow device gets only the layers that
// the fast one cannot hold.
#include "sharding.h"
#include <stdlib.h>

uint64_t lm_bytes_of_layer(const struct lm_needs *needs, int64_t begin, int64_t i)
{
    uint64_t bytes = needs->bytes[i];
    if (i == 0)
        bytes += needs->embedding;
    if (i == needs->layers - 1)
        bytes += needs->output + (begin > 0 ? needs->again : 0);
    return bytes;
}

// Devices that share one memory get the least amount that any of them reports.
static void share_rooms(const struct lm_room *rooms, int64_t num_rooms, uint64_t *left)
{
    for (int64_t i = 0; i < LM_MOST_DEVICES; i++)
        left[i] = UINT64_MAX;
    for (int64_t i = 0; i < num_rooms; i++)
        if (!rooms[i].is_unbounded && rooms[i].bytes < left[rooms[i].memory])
            left[rooms[i].memory] = rooms[i].bytes;
}

static bool sharding_has_room(const struct lm_room *room, uint64_t left, uint64_t bytes)
{
    return !room->is_closed && (room->is_unbounded || bytes <= left);
}

static void sharding_take(uint64_t *left, uint64_t bytes)
{
    *left -= bytes < *left ? bytes : *left;
}

bool lm_shard_layers(const struct lm_needs *needs, const struct lm_room *rooms,
                     int64_t num_rooms, int64_t *out_ends, struct lm_shortage *out_shortage)
{
    uint64_t left[LM_MOST_DEVICES], rest = 0;
    int64_t next = 0, last = 0, last_begin = 0;
    share_rooms(rooms, num_rooms, left);
    for (int64_t device = 0; device < num_rooms; device++) {
        const struct lm_room *room = &rooms[device];
        const int64_t begin = next;
        for (; next < needs->layers; next++) {
            uint64_t bytes = lm_bytes_of_layer(needs, begin, next);
            if (!sharding_has_room(room, left[room->memory], bytes))
                break;
            sharding_take(&left[room->memory], bytes);
        }
        out_ends[device] = next;
        last = room->is_closed ? last : device;
        last_begin = room->is_closed ? last_begin : begin;
    }
    if (next == needs->layers)
        return true;
    for (int64_t i = next; i < needs->layers; i++)
        rest += lm_bytes_of_layer(needs, last_begin, i);
    uint64_t has = rooms[last].is_closed ? 0 : left[rooms[last].memory];
    *out_shortage = (struct lm_shortage){
        .device = last, .placed = next, .missing = rest > has ? rest - has : 0};
    return false;
}

bool lm_division_fits(const struct lm_needs *needs, const struct lm_room *rooms,
                      int64_t num_rooms, const int64_t *ends,
                      struct lm_shortage *out_shortage)
{
    uint64_t left[LM_MOST_DEVICES];
    share_rooms(rooms, num_rooms, left);
    for (int64_t device = 0, begin = 0; device < num_rooms; begin = ends[device++]) {
        const struct lm_room *room = &rooms[device];
        uint64_t bytes = 0;
        for (int64_t i = begin; i < ends[device]; i++)
            bytes += lm_bytes_of_layer(needs, begin, i);
        if (begin < ends[device] && !sharding_has_room(room, left[room->memory], bytes)) {
            uint64_t has = room->is_closed ? 0 : left[room->memory];
            *out_shortage = (struct lm_shortage){.device = device,
                                                 .placed = begin,
                                                 .missing = bytes > has ? bytes - has : 0};
            return false;
        }
        sharding_take(&left[room->memory], bytes);
    }
    return true;
}

const char *lm_read_split(const char *text, int64_t layers, int64_t num_devices,
                          int64_t *out_ends)
{
    int64_t device = 0, end = 0;
    for (const char *at = text;; at++) {
        char *behind;
        long long count = *at >= '0' && *at <= '9' ? strtoll(at, &behind, 10) : -1;
        if (count < 0 || (*behind && *behind != ','))
            return "expected numbers of layers, separated by commas";
        if (device == num_devices)
            return "it names more devices than there are";
        if (count > layers - end)
            return "it has more layers than the model";
        end += count;
        out_ends[device++] = end;
        at = behind;
        if (!*at)
            break;
    }
    if (end < layers)
        return "it has fewer layers than the model";
    for (; device < num_devices; device++)
        out_ends[device] = end;
    return NULL;
}
