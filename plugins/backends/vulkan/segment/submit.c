// SPDX-License-Identifier: MIT
// Submits executables: chooses a recording for the submission's buffers.
#include "backend.h"

#include <string.h>
#include "measure.h"
#include "../dispatch/special.h"

// Bounds of a submission that may be held back while the queue is busy.
#define BRIEF_DISPATCHES 8
#define BRIEF_GROUPS 4096

static void list_bound(tn_executable *executable, const tn_submission *submission)
{
    for (uint32_t i = 0; i < executable->num_slots; i++) {
        const tn_binding *binding = tn_submission_binding(submission, i);
        const tn_buffer *buffer = binding->buffer;
        executable->wanted[i] =
            buffer ? (struct vk_bound){buffer->serial, buffer->offset + binding->offset}
                   : (struct vk_bound){0};
    }
}

static bool segment_submit_is_idle(tn_device *device, const struct vk_recording *recording)
{
    return vk_queue_has_reached(device, recording->queue, recording->point);
}

// A recording that is bound to the wanted buffers. A pending recording is reused on its own
// queue only, since a recording remembers one point, and only if it is of the plan as it is
// now.
static struct vk_recording *find_bound(tn_device *device, tn_executable *executable,
                                       uint32_t queue)
{
    for (uint32_t i = 0; i < executable->num_recordings; i++) {
        struct vk_recording *recording = &executable->recordings[i];
        if (vk_recording_is_bound(executable, recording) &&
            ((recording->queue == queue && recording->version == executable->version) ||
             segment_submit_is_idle(device, recording)))
            return recording;
    }
    return NULL;
}

static tn_status add_recording(tn_device *device, tn_executable *executable,
                               struct vk_recording **out)
{
    struct vk_recording *recording = &executable->recordings[executable->num_recordings];
    tn_status status = vk_recording_create(device, executable, recording);
    if (status != TN_OK)
        return status;
    executable->num_recordings++;
    *out = recording;
    return TN_OK;
}

// Chooses the recording that takes the least work: one that is bound to the wanted buffers;
// a new one, up to VK_KEPT_RECORDINGS; the least recently used one, if idle; a new one.
// *out NULL: all are pending, and *out_oldest is the one to wait for.
static tn_status segment_submit_pick(tn_device *device, tn_executable *executable,
                                     uint32_t queue, struct vk_recording **out,
                                     struct vk_recording **out_oldest)
{
    *out = find_bound(device, executable, queue);
    if (*out)
        return TN_OK;
    if (executable->num_recordings < VK_KEPT_RECORDINGS)
        return add_recording(device, executable, out);
    struct vk_recording *oldest = &executable->recordings[0];
    for (uint32_t i = 1; i < executable->num_recordings; i++)
        if (executable->recordings[i].used_at < oldest->used_at)
            oldest = &executable->recordings[i];
    *out_oldest = oldest;
    if (segment_submit_is_idle(device, oldest))
        *out = oldest;
    else if (executable->num_recordings < VK_MAX_RECORDINGS)
        return add_recording(device, executable, out);
    return TN_OK;
}

// Makes an idle recording anew where the plan has changed since.
static tn_status segment_submit_renew(tn_device *device, tn_executable *executable,
                                      struct vk_recording *recording)
{
    if (recording->version == executable->version)
        return TN_OK;
    vk_recording_destroy(device, executable, recording);
    return vk_recording_create(device, executable, recording);
}

// Gives a recording that is bound to the submission's buffers. The executable's lock is
// held before and after, but not while this waits for the device.
static tn_status take_recording(tn_device *device, const tn_submission *submission,
                                struct vk_recording **out)
{
    tn_executable *executable = submission->executable;
    for (;;) {
        struct vk_recording *oldest = NULL;
        list_bound(executable, submission);
        tn_status status =
            segment_submit_pick(device, executable, submission->queue, out, &oldest);
        if (status == TN_OK && *out)
            status = segment_submit_renew(device, executable, *out);
        if (status == TN_OK && *out)
            return vk_recording_update(device, *out, submission);
        if (status != TN_OK)
            return status;
        uint32_t queue = oldest->queue;
        uint64_t point = oldest->point;
        pthread_mutex_unlock(&executable->lock);
        status = vk_wait(device, queue, point);
        pthread_mutex_lock(&executable->lock);
        if (status != TN_OK)
            return status;
    }
}

// Whether the submission has few and small dispatches of a plan that stays as it is: the
// host submits them hardly faster than the device runs them.
static bool is_brief(const tn_device *device, const tn_submission *submission,
                     const struct vk_recording *recording)
{
    const struct vk_plan *plan = &submission->executable->plan;
    uint64_t groups = 0;
    if (plan->num_dispatches > BRIEF_DISPATCHES || device->is_software ||
        recording->queries || (submission->flags & TN_SUBMIT_ASYNC) ||
        !vk_special_is_settled(plan))
        return false;
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        const uint32_t *each = plan->dispatches[i].groups;
        groups += (uint64_t)each[0] * each[1] * each[2];
    }
    return groups <= BRIEF_GROUPS;
}

static tn_status submit_recording(tn_device *device, const tn_submission *submission,
                                  struct vk_recording **out, uint64_t *out_point)
{
    tn_executable *executable = submission->executable;
    struct vk_recording *recording = NULL;
    pthread_mutex_lock(&executable->lock);
    if (executable->plan.special && vk_special_count_run(&executable->plan))
        executable->version++;
    tn_status status = take_recording(device, submission, &recording);
    uint64_t point = 0;
    if (status == TN_OK)
        status = vk_queue_submit(
            device, submission->queue,
            &(struct vk_work){
                {recording->commands,
                 is_brief(device, submission, recording) ? vk_record_beside : NULL,
                 recording},
                submission->waits,
                submission->num_waits},
            &point);
    if (status == TN_OK) {
        recording->queue = submission->queue;
        recording->point = point;
        recording->used_at = ++executable->num_uses;
        *out = recording;
        *out_point = point;
    }
    pthread_mutex_unlock(&executable->lock);
    return status;
}

// Waits and reads the timestamps. Runs of an executable do not overlap here, so that no
// recording is submitted again before its timestamps are read.
static tn_status submit_traced(tn_device *device, const tn_submission *submission,
                               uint64_t *out_point)
{
    tn_executable *executable = submission->executable;
    struct vk_recording *recording = NULL;
    pthread_mutex_lock(&executable->trace_lock);
    uint64_t point = 0;
    tn_status status = submit_recording(device, submission, &recording, &point);
    if (status == TN_OK)
        status = vk_wait(device, submission->queue, point);
    if (status == TN_OK) {
        vk_trace_recording(device, executable, recording);
        *out_point = point;
    }
    pthread_mutex_unlock(&executable->trace_lock);
    return status;
}

// Runs the dispatches one by one, and waits for each.
static tn_status submit_measured(tn_device *device, const tn_submission *submission,
                                 uint64_t *out_point)
{
    tn_executable *executable = submission->executable;
    struct vk_recording *recording = NULL;
    uint64_t point = 0;
    pthread_mutex_lock(&executable->trace_lock);
    pthread_mutex_lock(&executable->lock);
    tn_status status = take_recording(device, submission, &recording);
    pthread_mutex_unlock(&executable->lock);
    if (status == TN_OK)
        status = vk_measure_run(device, submission, recording, &point);
    pthread_mutex_lock(&executable->lock);
    if (status == TN_OK) {
        recording->queue = submission->queue;
        recording->point = point;
        recording->used_at = ++executable->num_uses;
        *out_point = point;
    }
    pthread_mutex_unlock(&executable->lock);
    pthread_mutex_unlock(&executable->trace_lock);
    return status;
}

static bool waits_for_host(const tn_submission *submission)
{
    for (uint32_t i = 0; i < submission->num_waits; i++)
        if (submission->waits[i].queue == TN_QUEUE_HOST)
            return true;
    return false;
}

tn_status vk_submit(tn_device *device, const tn_submission *submission, uint64_t *out_point)
{
    struct vk_recording *recording;
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    // A run that waits for the host may not be waited for here, so it has no times.
    if (atomic_load_explicit(&submission->executable->is_measured, memory_order_relaxed) &&
        !waits_for_host(submission))
        return submit_measured(device, submission, out_point);
    if (vk_is_traced(device, submission->executable) && !waits_for_host(submission))
        return submit_traced(device, submission, out_point);
    return submit_recording(device, submission, &recording, out_point);
}
