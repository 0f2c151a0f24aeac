// SPDX-License-Identifier: MIT
// Messages between the processes of a model.
#include "mail.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dist.h>
#include <time.h>

// A waiting thread polls LOOKS times, then sleeps between polls, the longer the longer it
// has waited: a user may be typing.
#define LOOKS 20000
#define LEAST_SLEEP_NS 20000
#define MOST_SLEEP_NS 1000000

// --- joining ---------------------------------------------------------------------------

// Joins the world. The pack stays in it for as long as the runtime is open: a process joins
// once.
static tn_status join_world(tn_runtime *runtime)
{
    const void *dist;
    const tn_host *host;
    tn_group_facts facts;
    tn_status status = tn_interface_find(runtime, TN_IFACE_DIST, &dist, &host);
    if (status == TN_OK)
        status = ((const tn_dist *)dist)->find(host, NULL, &facts, sizeof(facts));
    return status;
}

tn_status lm_mail_init(struct lm_mail *mail, tn_runtime *runtime)
{
    const void *table;
    *mail = (struct lm_mail){.table = NULL};
    tn_status status = join_world(runtime);
    if (status == TN_OK)
        status = tn_interface_find(runtime, TN_IFACE_COLLECTIVE, &table, &mail->host);
    if (status != TN_OK)
        return lm_fail_core(status);
    const tn_collective *c = table;
    if (!TN_HAS(c, abort))
        return lm_fail(TN_ERR_REFUSED, "the plugin's " TN_IFACE_COLLECTIVE " is cut off");
    status = lm_fail_core(c->open(mail->host, &mail->world));
    if (status != TN_OK)
        return status;
    int32_t rank = c->facts(mail->world)->rank;
    status = lm_fail_core(c->split(mail->host, mail->world, 0, rank, &mail->group));
    if (status != TN_OK) {
        c->close(mail->host, mail->world);
        return status;
    }
    mail->table = c;
    mail->facts = c->facts(mail->group);
    pthread_mutex_init(&mail->lock, NULL);
    return TN_OK;
}

// --- abandoned memory -------------------------------------------------------------------

static struct abandoned {
    struct abandoned *next;
    void *memory;
} * abandoned;
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER; // guards `abandoned`

void lm_mail_abandon(void *memory)
{
    struct abandoned *entry = malloc(sizeof(*entry));
    if (!entry)
        return; // leaked: the memory is kept anyway
    pthread_mutex_lock(&abandoned_lock);
    *entry = (struct abandoned){abandoned, memory};
    abandoned = entry;
    pthread_mutex_unlock(&abandoned_lock);
}

// --- calls -----------------------------------------------------------------------------

static tn_status mail_start(struct lm_mail *mail, const tn_collective_call *call,
                            tn_collective_work **out_work)
{
    return lm_fail_core(mail->table->start(mail->host, mail->group, call, out_work));
}

static tn_status mail_finish(struct lm_mail *mail, tn_collective_work *work)
{
    return lm_fail_core(mail->table->wait(mail->host, work));
}

// --- sending ---------------------------------------------------------------------------

// Waits for the oldest message in flight. The lock is held.
static tn_status end_oldest(struct lm_mail *mail)
{
    struct lm_sent oldest = mail->sent[0];
    memmove(mail->sent, mail->sent + 1, --mail->num_sent * sizeof(oldest));
    mail->bytes_sent -= oldest.bytes;
    tn_status status = mail_finish(mail, oldest.work);
    if (status == TN_OK)
        free(oldest.memory);
    else
        lm_mail_abandon(oldest.memory);
    return status;
}

// Frees messages that have arrived, and waits while too many, or too many bytes, are in
// flight.
static tn_status mail_make_room(struct lm_mail *mail, uint64_t bytes)
{
    tn_status status = TN_OK;
    int32_t is_done = 1;
    while (status == TN_OK && mail->num_sent > 0 && is_done) {
        status = lm_fail_core(mail->table->test(mail->host, mail->sent[0].work, &is_done));
        is_done |=
            mail->num_sent == LM_MOST_SENT || mail->bytes_sent + bytes > LM_MOST_SENT_BYTES;
        if (status == TN_OK && is_done)
            status = end_oldest(mail);
    }
    return status;
}

static tn_status send_call(struct lm_mail *mail, const tn_collective_call *call,
                           void *memory, uint64_t bytes)
{
    struct lm_sent *sent = &mail->sent[mail->num_sent];
    tn_status status = mail_start(mail, call, &sent->work);
    if (status != TN_OK) {
        lm_mail_abandon(memory);
        return status;
    }
    sent->memory = memory;
    sent->bytes = bytes;
    mail->num_sent++;
    mail->bytes_sent += bytes;
    return TN_OK;
}

tn_status lm_mail_send(struct lm_mail *mail, int32_t to, int32_t tag, void *memory,
                       uint64_t bytes)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_SEND,
                                     .dtype = TN_U8,
                                     .peer = to,
                                     .tag = tag,
                                     .count = bytes,
                                     .input = memory};
    pthread_mutex_lock(&mail->lock);
    tn_status status = mail_make_room(mail, bytes);
    if (status == TN_OK)
        status = send_call(mail, &call, memory, bytes);
    else
        free(memory);
    pthread_mutex_unlock(&mail->lock);
    return status;
}

// --- receiving -------------------------------------------------------------------------

tn_status lm_mail_begin(struct lm_mail *mail, int32_t from, int32_t tag, void *memory,
                        uint64_t bytes, tn_collective_work **out_work)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_RECEIVE,
                                     .dtype = TN_U8,
                                     .peer = from,
                                     .tag = tag,
                                     .count = bytes,
                                     .output = memory};
    pthread_mutex_lock(&mail->lock);
    tn_status status = mail_start(mail, &call, out_work);
    pthread_mutex_unlock(&mail->lock);
    return status;
}

static void mail_rest(uint64_t looks)
{
    uint64_t ns = LEAST_SLEEP_NS + (looks > LOOKS ? (looks - LOOKS) * 10 : 0);
    if (looks < LOOKS)
        sched_yield();
    else
        nanosleep(
            &(struct timespec){.tv_nsec = (long)(ns < MOST_SLEEP_NS ? ns : MOST_SLEEP_NS)},
            NULL);
}

tn_status lm_mail_end(struct lm_mail *mail, tn_collective_work *work)
{
    tn_status status = TN_OK;
    int32_t is_done = 0;
    for (uint64_t looks = 0; status == TN_OK && !is_done; looks++) {
        pthread_mutex_lock(&mail->lock);
        status = lm_fail_core(mail->table->test(mail->host, work, &is_done));
        if (status == TN_OK && is_done)
            status = mail_finish(mail, work);
        pthread_mutex_unlock(&mail->lock);
        if (status == TN_OK && !is_done)
            mail_rest(looks);
    }
    return status;
}

tn_status lm_mail_receive(struct lm_mail *mail, int32_t from, int32_t tag, void *memory,
                          uint64_t bytes)
{
    tn_collective_work *work;
    tn_status status = lm_mail_begin(mail, from, tag, memory, bytes, &work);
    return status == TN_OK ? lm_mail_end(mail, work) : status;
}

tn_status lm_mail_gather(struct lm_mail *mail, const void *mine, uint64_t bytes, void *all)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_ALL_GATHER,
                                     .dtype = TN_U8,
                                     .count = bytes,
                                     .input = mine,
                                     .output = all};
    tn_collective_work *work;
    tn_status status = mail_start(mail, &call, &work);
    return status == TN_OK ? mail_finish(mail, work) : status;
}

// --- ending ----------------------------------------------------------------------------

void lm_mail_abort(struct lm_mail *mail, const char *reason)
{
    pthread_mutex_lock(&mail->lock);
    mail->table->abort(mail->host, mail->group, reason);
    mail->table->abort(mail->host, mail->world, reason);
    pthread_mutex_unlock(&mail->lock);
}

void lm_mail_finish(struct lm_mail *mail)
{
    tn_status status = TN_OK;
    if (!mail->table)
        return;
    while (mail->num_sent > 0 && status == TN_OK)
        status = end_oldest(mail);
    for (uint64_t i = 0; i < mail->num_sent; i++)
        lm_mail_abandon(mail->sent[i].memory);
    mail->table->close(mail->host, mail->group);
    mail->table->close(mail->host, mail->world);
    pthread_mutex_destroy(&mail->lock);
    mail->table = NULL;
}
