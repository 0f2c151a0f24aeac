// SPDX-License-Identifier: MIT
// The order of effects: for each domain (tn_primitive.effects) the point of the work that
// had the last effect. Work with effects is submitted by one thread at a time, after these
// points, so that effects of one domain happen one after the other, whatever devices and
// queues they are on.
//
// Threads. Any. Work without effects never takes the lock of effects.
#ifndef CORE_RUN_EFFECTS_H
#define CORE_RUN_EFFECTS_H

#include "../device/device.h"
#include "../primitive/prim_set.h"

// The timeline point of an effect's work; device NULL: the domain has had no effect.
struct effect_point {
    struct device *device;
    tn_point point;
};

tn_status effects_create(tn_runtime *runtime);
void effects_destroy(tn_runtime *runtime);

// Takes the lock of effects. Blocks while another thread submits effects.
void effects_enter(tn_runtime *runtime);
// Gives the lock back. `domains` (bits of prim.domain) have their last effect at `last`,
// unless last.device is NULL.
void effects_leave(tn_runtime *runtime, uint64_t domains, struct effect_point last);
// The last effect of domain number `domain`, 0 .. MAX_DOMAINS - 1; under the lock.
struct effect_point effects_last(const tn_runtime *runtime, uint32_t domain);

#endif // CORE_RUN_EFFECTS_H
