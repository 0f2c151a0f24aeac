// SPDX-License-Identifier: MIT
// Messages between the processes of a model, over tn.collective/1. The sender does not wait
// until a message has arrived.
#ifndef LM_MAIL_H
#define LM_MAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <tenon/collective.h>
#include "../base/fail.h"

// The most messages, and bytes, that a process has in flight.
#define LM_MOST_SENT 64
#define LM_MOST_SENT_BYTES (UINT64_C(64) << 20)

struct lm_sent {
    tn_collective_work *work;
    void *memory; // malloc's
    uint64_t bytes;
};

// A group of processes that share a model.
struct lm_mail {
    const tn_collective *table;
    const tn_host *host; // the host table of the collectives' plugin
    tn_group *world, *group;
    const tn_group_facts *facts;
    pthread_mutex_t lock;              // guards the group: one thread at a time
    struct lm_sent sent[LM_MOST_SENT]; // the oldest first
    uint64_t num_sent, bytes_sent;
};

// Joins the processes that were started together: all of them call it. lm_mail_finish
// follows a success.
tn_status lm_mail_init(struct lm_mail *mail, tn_runtime *runtime);
void lm_mail_finish(struct lm_mail *mail);

// Sends `bytes` at `memory`, which is malloc's; takes the memory, also on failure.
tn_status lm_mail_send(struct lm_mail *mail, int32_t to, int32_t tag, void *memory,
                       uint64_t bytes);

// Receives `bytes` to `memory`. After a failure the collectives' library may still write
// there.
tn_status lm_mail_receive(struct lm_mail *mail, int32_t from, int32_t tag, void *memory,
                          uint64_t bytes);

// lm_mail_receive in two parts, between which other threads may use the mail.
tn_status lm_mail_begin(struct lm_mail *mail, int32_t from, int32_t tag, void *memory,
                        uint64_t bytes, tn_collective_work **out_work);
tn_status lm_mail_end(struct lm_mail *mail, tn_collective_work *work);

// Gathers records of all processes, in the order of their ranks.
tn_status lm_mail_gather(struct lm_mail *mail, const void *mine, uint64_t bytes, void *all);

// Ends the group and the world for this reason, so that this process leaves without
// waiting: calls of other processes fail when it ends.
void lm_mail_abort(struct lm_mail *mail, const char *reason);

// Keeps memory until the process ends, because the library may still write to it.
void lm_mail_abandon(void *memory);

#endif // LM_MAIL_H
