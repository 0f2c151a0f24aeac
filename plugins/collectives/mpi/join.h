// SPDX-License-Identifier: MIT
// Calls of MPI that wait for other ranks, and do not come back when one of these has
// ended: they are made in a thread, beside a look at who fails meanwhile.
#ifndef MPI_JOIN_H
#define MPI_JOIN_H

#include "watch.h"

enum { JOIN_REASON = 512 };

struct join_call {
    // The calls. Writes why they fail to `why`, of JOIN_REASON bytes.
    tn_status (*run)(void *user, char *why);
    // Who failed of those that are waited for, or NULL. Not in the thread.
    const struct watch_failure *(*failure)(void *user);
    void *user; // belongs to `run`
    struct watch *watch;
    int32_t rank;     // this one, in the world
    const char *what; // it does: "in split"
};

// Makes the calls: in a thread where somebody watches. Where a rank fails that is waited
// for, *out_is_left is true, and the thread is left behind, which is in MPI for as long as
// the process lives. Writes why it fails to `why`, of JOIN_REASON bytes.
tn_status join_run(const struct join_call *call, char *why, bool *out_is_left);

#endif // MPI_JOIN_H
