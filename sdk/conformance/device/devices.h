// SPDX-License-Identifier: MIT
// The computing devices of this machine, each with a runtime that uses this device alone.
#ifndef CONFORMANCE_DEVICE_DEVICES_H
#define CONFORMANCE_DEVICE_DEVICES_H

#include "../pack/pack.h"

enum { MAX_DEVICES = 16 };

struct tried_device {
    char name[64];       // "vulkan:0"
    bool is_exact;       // math functions give the C library's results
    bool is_slow;        // a software driver, which takes long to compile shaders
    tn_runtime *runtime; // owned; NULL until first used
};

struct devices {
    struct kit *kit;
    struct tried_device items[MAX_DEVICES];
    uint32_t count;
};

// Finds the devices that compute and match --devices.
void devices_find(struct devices *devices, struct kit *k);
void devices_close(struct devices *devices);

// Runtime of device `index`, opened on first use and owned by `devices`. NULL: *out_why is
// the reason.
tn_runtime *device_runtime(struct devices *devices, uint32_t index, const char **out_why);

// Gives a new runtime of device `index` in which TENON_KERNELS is `kernels`. NULL: *out_why
// is the reason.
tn_runtime *device_runtime_with(struct devices *devices, uint32_t index,
                                const char *kernels, const char **out_why);

#endif // CONFORMANCE_DEVICE_DEVICES_H
