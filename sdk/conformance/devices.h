// SPDX-License-Identifier: MIT
// The devices that are here, each with a runtime that computes on it alone.
#ifndef CONFORMANCE_DEVICES_H
#define CONFORMANCE_DEVICES_H

#include "pack.h"

enum { MAX_DEVICES = 16 };

struct device {
    char name[64];       // "vulkan:0"
    bool is_exact;       // computes functions as the C library does
    bool is_slow;        // a software driver, which takes long to compile shaders
    tn_runtime *runtime; // once asked for
};

struct devices {
    struct kit *kit;
    struct device items[MAX_DEVICES];
    uint32_t count;
};

// Finds the devices that compute and that --devices names.
void devices_find(struct devices *devices, struct kit *k);
void devices_close(struct devices *devices);

// Its runtime, opened when first asked for. NULL: *out_why says why.
tn_runtime *device_runtime(struct devices *devices, uint32_t index, const char **out_why);

// A runtime of its own, in which TENON_KERNELS is `kernels`. Gives it.
tn_runtime *device_runtime_with(struct devices *devices, uint32_t index,
                                const char *kernels, const char **out_why);

#endif // CONFORMANCE_DEVICES_H
