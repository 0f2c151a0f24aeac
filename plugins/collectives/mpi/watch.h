// SPDX-License-Identifier: MIT
// Messages of `tenon run` to a rank about the others: which of them ended or was stopped,
// and why. They come through a socket, whose end `tenon run` leaves open in the rank:
//
//   "failed RANK WORDS"    rank RANK of the world WORDS: "2 was killed by signal 9
//   (SIGKILL)"
//
// TENON_RUN names the socket: "rank=1 size=4 watch=FD:INODE". Without it failures of other
// ranks are not watched.
#ifndef MPI_WATCH_H
#define MPI_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/host.h>

struct watch {
    int fd; // -1: no socket
    // Ranks that failed, in the order of the messages, and how.
    struct watch_failure {
        int32_t rank;
        bool is_end; // the program ended with status 0, a failure only for ranks that wait
                     // for it
        char words[200];
    } * failures;
    uint32_t num_failures;
    uint32_t num_told; // failures that the host was told
};

// Finds the socket that `text` (TENON_RUN, may be NULL) names. Cannot fail: with a wrong
// text nothing is watched, and a warning is logged.
void watch_init(struct watch *watch, const tn_host *host, const char *text);
void watch_finish(struct watch *watch);

// Reads the messages that have come, without waiting. Gives the first failure of `members`
// (`count` ranks of the world; NULL: all ranks), or NULL.
const struct watch_failure *watch_poll(struct watch *watch, const int32_t *members,
                                       int32_t count);

// The first failure, among the messages read so far, of a rank that did not end well; or
// NULL.
const struct watch_failure *watch_find_lost(const struct watch *watch);

#endif // MPI_WATCH_H
