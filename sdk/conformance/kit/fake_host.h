// SPDX-License-Identifier: MIT
// The host that checks pass to plugins: counts calls, fails allocations on request, and
// detects misuse.
//
// The table ends at the end of a page and the next page is inaccessible, so a plugin that
// reads beyond struct_size crashes. fake_host_finish unmaps the page, so a plugin that uses
// the host after deinit crashes too.
//
// Threads. Slots may be called from any thread, as the slots of any host.
#ifndef CONFORMANCE_KIT_FAKE_HOST_H
#define CONFORMANCE_KIT_FAKE_HOST_H

#include <stdatomic.h>
#include "kit.h"

struct fake_host {
    const tn_host *table; // passed to plugins

    // Set by the check, at any time.
    uint64_t fail_at;   // number of the allocation that fails, from 1; 0: none
    bool no_services;   // query returns NULL
    const char *config; // the value of every variable; NULL: unset

    // Observed.
    _Atomic uint64_t allocations, live, live_bytes;
    _Atomic uint64_t largest;  // bytes of the largest requested block
    _Atomic uint64_t failures; // calls of fail(); refusals are not included
    _Atomic uint64_t refusals; // failed allocations; a real host records a failure for each
    _Atomic uint64_t misuses;
    tn_status status;             // of the last failure
    char text[400];               // of the last failure
    char misuse[200];             // of the first misuse
    void *pages;                  // table, then guard page
    struct tn_runtime *providers; // runtime for interfaces_find; NULL until it is called
    const tn_plugin *own;         // its interfaces come first; NULL: not started
    _Atomic(void *) dead;         // list of freed blocks, kept to detect a second free
};

// `tail`: number of 0xff bytes after the members known today, as a newer host may have
// there. False when out of memory.
bool fake_host_init(struct fake_host *host, uint32_t tail);
// Fails the running check when blocks are left, or the host was misused; `what` names the
// calls before.
void fake_host_expect_freed(struct kit *k, const struct fake_host *host, const char *what);
// Clears counters, texts and settings; the table, freed blocks and plugins stay.
void fake_host_reset(struct fake_host *host);
void fake_host_finish(struct fake_host *host);

#endif // CONFORMANCE_KIT_FAKE_HOST_H
