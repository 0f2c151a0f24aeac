// SPDX-License-Identifier: MIT
// A host for plugins that counts, refuses and remembers: what the checks call plugins with.
//
// Its table stands at the end of a page, and the next page cannot be touched: what reads
// further than struct_size crashes. fake_host_finish takes the page away, so that what
// uses the host after deinit crashes too.
//
// Threads. Slots may be called from any thread, as those of any host.
#ifndef CONFORMANCE_FAKE_HOST_H
#define CONFORMANCE_FAKE_HOST_H

#include <stdatomic.h>
#include "kit.h"

struct fake_host {
    const tn_host *table; // what plugins get

    // Set by the check, at any time.
    uint64_t fail_at;   // the number of the allocation that fails, from 1; 0: none
    bool no_services;   // query gives nothing
    const char *config; // the value of every variable; NULL: unset

    // Seen so far.
    _Atomic uint64_t allocations, live, live_bytes;
    _Atomic uint64_t failures; // recorded by the plugin, not by an allocation
    _Atomic uint64_t refusals; // allocations that failed, which record a failure too
    _Atomic uint64_t misuses;
    tn_status status; // of the last failure
    char text[400];   // of the last failure
    char misuse[200]; // the first
    void *pages;
    _Atomic(void *) dead; // blocks that were freed, kept so that a second free is seen
};

// `tail`: bytes behind the members known today, set to ones, as a newer host may have.
// False when out of memory.
bool fake_host_init(struct fake_host *host, uint32_t tail);
// Forgets what was seen and set.
void fake_host_reset(struct fake_host *host);
void fake_host_finish(struct fake_host *host);

#endif // CONFORMANCE_FAKE_HOST_H
