// SPDX-License-Identifier: MIT
// The devices of one runtime: state that opening (open.c) and listing (list.c) share.
#ifndef CORE_DEVICE_DEVICE_SET_H
#define CORE_DEVICE_DEVICE_SET_H

#include "device.h"

// `devices` is constant once `state` is OPENED. The thread that sets `listing` fills the
// summaries without the lock; other threads wait until `listing` is false.
struct device_set {
    pthread_mutex_t lock;   // guards `state`, `listing`, `failed`, `failure`
    pthread_cond_t changed; // signalled when OPENING or `listing` ends
    enum { CLOSED, OPENING, OPENED } state;
    bool listing;     // a thread is making the summaries
    tn_status failed; // status of opening; opening is not tried again
    char *failure;    // message of `failed`; NULL: out of memory
    struct device **devices;
    uint32_t count, capacity;
    struct device_stats stats;
    struct mover *mover;
    tn_device_summary *summaries; // for tn_devices; NULL until asked for
    uint64_t num_summaries;
};

// Whether the devices are open.
bool device_set_is_open(struct device_set *set);

// Calls of the backend's slots; a failure without a message gets one that names the plugin.
tn_status device_ask_count(const tn_backend *ops, const struct plugin *plugin,
                           uint32_t *out_count);
// Each text in *out ends with NUL.
tn_status device_ask_info(const tn_backend *ops, const struct plugin *plugin,
                          uint32_t index, tn_device_info *out);

// Frees the summaries: the next tn_devices() makes them again.
void summaries_forget(struct device_set *set);

#endif // CORE_DEVICE_DEVICE_SET_H
