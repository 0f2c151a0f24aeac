// SPDX-License-Identifier: MIT
// Dividing the layers of a model among devices: numbers in, numbers out.
#ifndef LM_SHARDING_H
#define LM_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

// The most devices that a model's layers are divided among.
#define LM_MOST_DEVICES 16

// Memory that the layers need, in bytes. A layer has its weights and its caches; the
// embedding goes with the first layer, the output with the last one.
struct lm_needs {
    int64_t layers;
    const uint64_t *bytes; // by layer
    uint64_t embedding, output;
    uint64_t again; // bytes more if the output is on another device than the embedding
};

// Memory of a device for layers.
struct lm_room {
    uint64_t bytes;
    bool is_unbounded; // any number of layers: `bytes` does not count
    bool is_closed;    // no layer at all
    uint32_t memory;   // number of the memory, below LM_MOST_DEVICES; see sharding.c
};

// Why layers did not fit.
struct lm_shortage {
    int64_t device;   // the device that is too small, or the last one
    int64_t placed;   // layers that were placed
    uint64_t missing; // bytes that the device lacks
};

// Bytes that layer `i` adds to a device whose first layer is `begin`.
uint64_t lm_bytes_of_layer(const struct lm_needs *needs, int64_t begin, int64_t i);

// Fills the devices in order: each takes layers while they fit. out_ends[i] is the layer
// behind the last one of device i. Returns false, and the shortage, when layers are left.
bool lm_shard_layers(const struct lm_needs *needs, const struct lm_room *rooms,
                     int64_t num_rooms, int64_t *out_ends,
                     struct lm_shortage *out_shortage);

// Whether each device has room for the layers that `ends` gives it; if not, gives the
// shortage of the first device without room.
bool lm_division_fits(const struct lm_needs *needs, const struct lm_room *rooms,
                      int64_t num_rooms, const int64_t *ends,
                      struct lm_shortage *out_shortage);

// Reads "16,14": layers of each device. Devices that `text` does not name get none. Returns
// NULL, or the fault of the text, a static sentence.
const char *lm_read_split(const char *text, int64_t layers, int64_t num_devices,
                          int64_t *out_ends);

#endif // LM_SHARDING_H
