// SPDX-License-Identifier: MIT
// Joins the world, beside a look at who fails meanwhile: MPI waits for all ranks in its
// first calls, and does not come back from them when one has ended.
#ifndef MPI_JOIN_H
#define MPI_JOIN_H

#include "watch.h"

enum { JOIN_REASON = 512 };

// Calls of MPI that wait for all ranks. Writes why it fails to `why`, of JOIN_REASON bytes.
typedef tn_status join_work(void *user, char *why);

// Runs `work` with `user`, which belongs to it, in a thread where somebody watches. Where a
// rank fails that others wait for, it tells so, and leaves the thread behind, which is in
// MPI for as long as the process lives.
tn_status join_run(const tn_host *host, struct watch *watch, const char *text,
                   join_work *work, void *user);

#endif // MPI_JOIN_H
