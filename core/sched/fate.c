// SPDX-License-Identifier: MIT
// Fates are settled in the order of their points, so those that a fate depends on are
// settled before it, however long the chain is.
#include "fate.h"

#include <stdio.h>
#include "../base/fail.h"
#include "../base/memory.h"

enum { UNKNOWN = 1 }; // no status: those are 0 and below
enum { MOST_UNKNOWN = 1024 };

struct fate {
    atomic_uint refs;
    atomic_int status; // UNKNOWN, or how it ended
    struct device *device;
    uint64_t point;
    struct fate *next;     // on the device
    char *message;         // owned; fixed before the status is known; may be NULL
    uint32_t num_causes;   // 0 as soon as the status is known
    struct fate *causes[]; // owned
};

tn_status fate_create(struct device *device, struct fate *const *causes,
                      uint32_t num_causes, struct fate **out)
{
    struct fate *fate = mem_zalloc(sizeof(*fate) + num_causes * sizeof(causes[0]));
    if (!fate)
        return TN_ERR_MEMORY;
    fate->device = device;
    atomic_init(&fate->refs, 1);
    atomic_init(&fate->status, UNKNOWN);
    for (uint32_t i = 0; i < num_causes; i++) {
        if (fate_went_well(causes[i]))
            continue;
        fate_retain(causes[i]);
        fate->causes[fate->num_causes++] = causes[i];
    }
    *out = fate;
    return TN_OK;
}

void fate_retain(struct fate *fate)
{
    atomic_fetch_add_explicit(&fate->refs, 1, memory_order_relaxed);
}

// Causes are known before what depends on them, and have none then: this goes one deep.
void fate_release(struct fate *fate)
{
    if (!fate || atomic_fetch_sub_explicit(&fate->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < fate->num_causes; i++)
        fate_release(fate->causes[i]);
    mem_free(fate->message);
    mem_free(fate);
}

static int status_of(const struct fate *fate)
{
    return atomic_load_explicit(&fate->status, memory_order_acquire);
}

bool fate_went_well(const struct fate *fate)
{
    return !fate || status_of(fate) == TN_OK;
}

tn_status fate_known(const struct fate *fate)
{
    int status = fate ? status_of(fate) : TN_OK;
    if (status == UNKNOWN || status == TN_OK)
        return TN_OK;
    return fail(status, "%s",
                fate->message ? fate->message : "earlier work that this needs failed");
}

void fate_begin(struct fate *fate, uint64_t point)
{
    struct device *device = fate->device;
    fate->point = point;
    fate_retain(fate);
    pthread_mutex_lock(&device->late_lock);
    *(device->last_fate ? &device->last_fate->next : &device->fates) = fate;
    device->last_fate = fate;
    device->num_fates++;
    pthread_mutex_unlock(&device->late_lock);
}

uint64_t fates_backlog(struct device *device)
{
    pthread_mutex_lock(&device->late_lock);
    uint64_t point = device->num_fates > MOST_UNKNOWN ? device->fates->point : 0;
    pthread_mutex_unlock(&device->late_lock);
    return point;
}

// Of the first that failed. With the device's late_lock held, as causes go with it.
static tn_status failed_cause(const struct fate *fate, char **out_message)
{
    for (uint32_t i = 0; i < fate->num_causes; i++) {
        const struct fate *cause = fate->causes[i];
        int status = status_of(cause);
        if (status == TN_OK)
            continue;
        *out_message = cause->message ? mem_strdup(cause->message) : NULL;
        return status;
    }
    return TN_OK;
}

// Several threads may do this at once: the backend tells them the same.
static void settle(struct fate *fate)
{
    struct device *device = fate->device;
    char *message = NULL;
    fail_clear();
    tn_status status = device->ops->wait(device->handle, fate->point);
    if (status != TN_OK) {
        status = device_failed(device, "wait", status);
        message = mem_strdup(fail_text());
    }
    pthread_mutex_lock(&device->late_lock);
    uint32_t num_causes = fate->num_causes;
    bool first = status_of(fate) == UNKNOWN;
    if (first) {
        if (status == TN_OK)
            status = failed_cause(fate, &message);
        fate->message = message;
        fate->num_causes = 0;
        atomic_store_explicit(&fate->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&device->late_lock);
    if (!first)
        mem_free(message);
    for (uint32_t i = 0; first && i < num_causes; i++)
        fate_release(fate->causes[i]);
}

// The first that is not settled, up to the point; retained.
static struct fate *first_fate(struct device *device, uint64_t point)
{
    pthread_mutex_lock(&device->late_lock);
    struct fate *fate = device->fates;
    if (fate && fate->point > point)
        fate = NULL;
    if (fate)
        fate_retain(fate);
    pthread_mutex_unlock(&device->late_lock);
    return fate;
}

// Unless another thread was faster.
static void take_off(struct device *device, struct fate *fate)
{
    pthread_mutex_lock(&device->late_lock);
    bool is_mine = device->fates == fate;
    if (is_mine) {
        device->fates = fate->next;
        device->num_fates--;
        if (!fate->next)
            device->last_fate = NULL;
    }
    pthread_mutex_unlock(&device->late_lock);
    if (is_mine)
        fate_release(fate);
}

void fates_settle(struct device *device, uint64_t point)
{
    char message[2048]; // of what goes wrong at present, perhaps
    struct fate *fate = first_fate(device, point);
    if (!fate)
        return;
    snprintf(message, sizeof(message), "%s", fail_text());
    for (; fate; fate = first_fate(device, point)) {
        settle(fate);
        take_off(device, fate);
        fate_release(fate);
    }
    fail(TN_OK, "%s", message);
}

tn_status fate_end(struct fate *fate)
{
    if (fate && status_of(fate) == UNKNOWN)
        fates_settle(fate->device, fate->point);
    return fate_known(fate);
}
