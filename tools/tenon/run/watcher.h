// SPDX-License-Identifier: MIT
// The launching process's view of all ranks: who lives, who failed and why, and telling the
// others.
#ifndef TOOLS_TENON_RUN_WATCHER_H
#define TOOLS_TENON_RUN_WATCHER_H

#include <sys/types.h>
#include "wire.h"

struct watched_rank {
    struct wire wire;   // fd -1: not there yet, or gone
    char host[128];     // where it runs
    int64_t heard_at;   // when it last told something
    int64_t stopped_at; // since when its process is stopped; 0: it runs
    int stop_signal;    // signal that stopped it
    bool has_come, has_ended;
    char failure[200]; // how it failed, "was killed by ..."; "": it has not
    int status;        // its exit status; 128 + signal
};

struct watcher {
    int listener; // where ranks connect
    char port[16];
    char token[33]; // secret that ranks have to send
    struct watched_rank *ranks;
    int count;
    struct wire *strangers; // connections that have not said hello yet
    int num_strangers;
    int first;         // rank that failed first, or -1
    int64_t failed_at; // when that was
    int64_t grace_ms;  // how long the others may go on then; -1: for ever
    bool is_ending;    // all ranks were told to end
};

// Listens, on all addresses of the machine where `is_remote`. watcher_finish() undoes it.
int watcher_init(struct watcher *watcher, int count, bool is_remote, double grace);
void watcher_finish(struct watcher *watcher);

// Watches until all ranks have ended, or the launcher's process `pid` has. `stop` becomes
// true by a signal that asks the command to end. Gives the status of the first that failed,
// and -1 where the launcher ended before the ranks came.
int watcher_run(struct watcher *watcher, pid_t pid, const volatile bool *stop);

#endif // TOOLS_TENON_RUN_WATCHER_H
