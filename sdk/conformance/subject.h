// SPDX-License-Identifier: MIT
// The plugin that is checked, in this process: by dlopen alone, or by a runtime.
#ifndef CONFORMANCE_SUBJECT_H
#define CONFORMANCE_SUBJECT_H

#include <tenon/tenon.h>
#include "fake_host.h"

struct subject {
    void *handle;
    const tn_plugin *entry;
    uint64_t entry_size; // of the symbol; 0: unknown
    bool is_started;     // init succeeded
};

// Loads it. False, with a static text in *out_why, when that fails or it has no entry.
bool subject_load(struct subject *subject, const char *file, const char **out_why);
// deinit if need be, and dlclose.
void subject_unload(struct subject *subject, struct fake_host *host);

// Calls init, if there is one.
tn_status subject_start(struct subject *subject, struct fake_host *host);
void subject_stop(struct subject *subject, struct fake_host *host);

// Loaded and started with a host of its own: what most groups begin with. False: the
// groups `file`, `entry` and `host` say why.
bool subject_open(struct subject *subject, struct fake_host *host, struct kit *k);

// Its tables, or NULL.
const tn_ops *subject_ops(const struct subject *subject);
const tn_backend *subject_backend(const struct subject *subject);

// A runtime that finds the plugin before all installed ones; `variable` is a
// "NAME=value" or NULL. NULL: *out_why says why.
tn_runtime *subject_runtime(struct kit *k, const char *variable, const char **out_why);
// The same for several, ended by NULL.
tn_runtime *subject_runtime_with(struct kit *k, const char *const *variables,
                                 const char **out_why);

#endif // CONFORMANCE_SUBJECT_H
