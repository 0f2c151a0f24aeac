// SPDX-License-Identifier: MIT
// The plugin under test in this process: loaded by dlopen, or by a runtime.
#ifndef CONFORMANCE_KIT_SUBJECT_H
#define CONFORMANCE_KIT_SUBJECT_H

#include <tenon/tenon.h>
#include "fake_host.h"

struct subject {
    void *handle;
    const tn_plugin *entry;
    uint64_t entry_size; // bytes of the symbol; 0: unknown
    bool is_started;     // init succeeded
};

// Loads the file. False: it cannot be loaded or has no entry; *out_why is the reason.
bool subject_load(struct subject *subject, const char *file, const char **out_why);
// Calls deinit if init succeeded, and unloads the file.
void subject_unload(struct subject *subject, struct fake_host *host);

// Calls init, if there is one.
tn_status subject_start(struct subject *subject, struct fake_host *host);
void subject_stop(struct subject *subject, struct fake_host *host);

// Loads and starts the plugin with a host of its own, for groups that need a running
// plugin. False: the groups `file`, `entry` and `host` report why.
bool subject_open(struct subject *subject, struct fake_host *host, struct kit *k);

// The plugin's tables, or NULL.
const tn_ops *subject_ops(const struct subject *subject);
const tn_backend *subject_backend(const struct subject *subject);

// Gives a runtime that finds the plugin before all installed ones; `variable` is
// "NAME=value" or NULL. NULL: *out_why is the reason.
tn_runtime *subject_runtime(struct kit *k, const char *variable, const char **out_why);
// The same with the device ("vulkan:0") and behind it those of --with, to which the core
// may fall back in silence, and a rule of TENON_KERNELS or NULL.
tn_runtime *subject_runtime_on(struct kit *k, const char *device, const char *kernels,
                               const char **out_why);
// The same with several variables, ended by NULL.
tn_runtime *subject_runtime_with(struct kit *k, const char *const *variables,
                                 const char **out_why);

#endif // CONFORMANCE_KIT_SUBJECT_H
