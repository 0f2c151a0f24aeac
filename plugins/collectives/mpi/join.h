// SPDX-License-Identifier: MIT
// Calls of MPI that wait for other ranks, and do not return when one of these has ended:
// they are made in a thread, while the caller looks for failures.
#ifndef MPI_JOIN_H
#define MPI_JOIN_H

#include "watch.h"

enum { JOIN_REASON = 512 };

struct join_call {
    // Makes the calls. Writes why they fail to `why`, of JOIN_REASON bytes.
    tn_status (*run)(void *user, char *why);
    // The failure of a rank that the calls wait for, or NULL. Not called in the thread.
    const struct watch_failure *(*failure)(void *user);
    void *user; // belongs to `run`
    struct watch *watch;
    int32_t rank;     // of this process, in the world
    const char *what; // for messages: "in split"
};

// Makes the calls, in a thread where somebody watches. When a rank that they wait for
// fails, *out_is_left is true and the thread stays in MPI for the life of the process.
// Writes the reason of a failure to `why`, of JOIN_REASON bytes.
tn_status join_run(const struct join_call *call, char *why, bool *out_is_left);

#endif // MPI_JOIN_H
