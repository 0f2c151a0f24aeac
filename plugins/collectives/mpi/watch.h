// SPDX-License-Identifier: MIT
// What `tenon run` tells a rank of the others: which of them ended or was stopped, and why.
// Messages of one socket, the end of which `tenon run` leaves open in the rank:
//
//   "failed RANK WORDS"    rank RANK of the world WORDS: "2 was killed by signal 9
//   (SIGKILL)"
//
// TENON_RUN says where it is: "rank=1 size=4 watch=FD:INODE". Without it failures of other
// ranks are not watched.
#ifndef MPI_WATCH_H
#define MPI_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/host.h>

struct watch {
    int fd; // -1: nobody watches
    // Ranks that failed, in the order in which it was told, and how.
    struct watch_failure {
        int32_t rank;
        bool is_end; // the program ended with status 0, a failure only for ranks that wait
                     // for it
        char words[200];
    } * failures;
    uint32_t num_failures;
    uint32_t num_told; // of them, to the host
};

// Finds the socket that `text` (TENON_RUN, may be NULL) names. Cannot fail: a text that is
// wrong is no watch, with a warning.
void watch_init(struct watch *watch, const tn_host *host, const char *text);
void watch_finish(struct watch *watch);

// Reads what has come. The first failure of one of `members` (`count` ranks of the world;
// NULL: of all ranks), or NULL. Does not wait.
const struct watch_failure *watch_poll(struct watch *watch, const int32_t *members,
                                       int32_t count);

// The first of all ranks that failed in another way than by ending well, or NULL, of what
// was read.
const struct watch_failure *watch_find_lost(const struct watch *watch);

#endif // MPI_WATCH_H
