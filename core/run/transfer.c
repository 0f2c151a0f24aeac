// SPDX-License-Identifier: MIT
// Transfers between devices. A run that is not waited for gives them to the mover, so that
// the calling thread waits for no device: later submissions wait for the mover's points.
// Other runs, and devices without host points, are waited for here.
#include "../base/fail.h"
#include "../device/mover.h"
#include "running.h"

// --- on the calling thread -------------------------------------------------------------

// Waits for the writers of the arena. An arena's storage has no outcome of its own, since
// only this run uses it.
static tn_status wait_for_arena(const struct run *run, uint32_t device)
{
    struct open_list *open = &run->record->open[device];
    for (; open->first; open->first = open->first->next) {
        tn_point point = outcome_point(open->first->outcome);
        tn_status status = device_wait(run->plan->devices[device], point);
        if (status == TN_OK)
            status = outcome_end(open->first->outcome);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status run_transfer_fill(const struct run *run, const struct plan_transfer *t)
{
    uint64_t offset;
    struct storage *to = run_storage(run, &t->to, &offset);
    tn_status status = storage_drain(to); // work that is still queued may use this memory
    return status == TN_OK ? buffer_fill(to->device, to->buffer, offset + t->to_offset,
                                         t->size, t->dtype, t->number)
                           : status;
}

static tn_status run_transfer_copy(const struct run *run, const struct plan_transfer *t)
{
    uint64_t from_offset, to_offset;
    struct storage *from = run_storage(run, &t->from, &from_offset),
                   *to = run_storage(run, &t->to, &to_offset);
    tn_status status =
        t->from.home == HOME_ARENA ? wait_for_arena(run, t->from_device) : TN_OK;
    if (status == TN_OK)
        status = storage_wait_outside(from);
    if (status == TN_OK)
        status = storage_drain(to);
    return status == TN_OK
               ? buffers_copy(from->device, from->buffer, from_offset + t->from_offset,
                              to->device, to->buffer, to_offset + t->to_offset, t->size)
               : status;
}

static tn_status move_now(const struct run *run, const struct plan_transfer *t)
{
    const struct plan *plan = run->plan;
    bool upload = t->from.home == HOME_NONE;
    uint64_t begin = trace_begin(plan->runtime->trace);
    tn_status status = upload ? run_transfer_fill(run, t) : run_transfer_copy(run, t);
    trace_end(plan->runtime->trace, begin, upload ? "upload" : "transfer",
              "\"bytes\":%llu,\"from\":\"%s\",\"to\":\"%s\"", (unsigned long long)t->size,
              upload ? "" : plan->devices[t->from_device]->name,
              plan->devices[t->to_device]->name);
    return status;
}

// --- by the mover ----------------------------------------------------------------------

static bool mover_can(const struct run *run, const struct plan_transfer *t)
{
    return run->mode != RUN_WAIT &&
           device_has_host_points(run->plan->devices[t->to_device]) &&
           (t->from.home == HOME_NONE ||
            device_has_host_points(run->plan->devices[t->from_device]));
}

// Adds what the copy depends on. Fails when that is known to have failed.
static tn_status run_transfer_add_cause(struct move *move, struct outcome *outcome)
{
    tn_status status = outcome_known(outcome);
    if (status == TN_OK && !outcome_succeeded(outcome) &&
        move->num_causes < move->max_causes)
        move_add_cause(move, outcome);
    return status;
}

static tn_status read_from(const struct run *run, const struct plan_transfer *t,
                           struct move *move)
{
    uint64_t offset;
    const struct storage *from = run_storage(run, &t->from, &offset);
    move->from = from->device;
    move->from_buffer = from->buffer;
    move->from_offset = offset + t->from_offset;
    if (t->from.home != HOME_ARENA)
        return run_transfer_add_cause(move, from->outcome);
    tn_status status = TN_OK;
    const struct submitted *state = run->record->open[t->from_device].first;
    for (; state && status == TN_OK; state = state->next)
        status = run_transfer_add_cause(move, state->outcome);
    return status;
}

// The copy begins when no work uses the memory any more.
static void write_to(const struct run *run, const struct plan_transfer *t,
                     struct move *move)
{
    uint64_t offset;
    const struct storage *to = run_storage(run, &t->to, &offset);
    move->to = to->device;
    move->to_buffer = to->buffer;
    move->to_offset = offset + t->to_offset;
    for (uint32_t i = 0; i < to->device->num_timelines; i++)
        move->to_uses[i] = atomic_load_explicit(&to->last_use[i], memory_order_acquire);
}

static tn_status make_move(const struct run *run, const struct plan_transfer *t,
                           struct move **out)
{
    uint32_t count = 1;
    const struct submitted *state = run->record->open[t->from_device].first;
    for (; t->from.home == HOME_ARENA && state; state = state->next)
        count++;
    struct move *move = move_create(count);
    if (!move)
        return TN_ERR_MEMORY;
    move->size = t->size;
    move->number = t->number;
    move->dtype = t->dtype;
    write_to(run, t, move);
    tn_status status = t->from.home == HOME_NONE ? TN_OK : read_from(run, t, move);
    if (status == TN_OK)
        status = outcome_create(move->to, move->to->num_queues, NULL, 0, &move->outcome);
    if (status != TN_OK) {
        move_destroy(move);
        return status;
    }
    *out = move;
    return TN_OK;
}

// Records the copy as a use of both storages, and where its outcome is looked for: as
// note_use() of a submission.
static void note_move(struct run *run, const struct plan_transfer *t,
                      struct outcome *outcome, uint64_t to_value, uint64_t from_value)
{
    uint64_t offset;
    struct run_record *record = run->record;
    struct storage *to = run_storage(run, &t->to, &offset);
    struct submitted *state = &record->transfers[t - run->plan->transfers];
    *state = (struct submitted){.outcome = outcome, .value = to_value};
    storage_use(to, (tn_point){.queue = to->device->num_queues, .value = to_value});
    if (t->to.home == HOME_ARENA) {
        open_list_add(&record->open[t->to_device], state);
    } else {
        outcome_retain(outcome);
        outcome_release(to->outcome);
        to->outcome = outcome;
    }
    if (t->from.home == HOME_NONE)
        return;
    struct storage *from = run_storage(run, &t->from, &offset);
    storage_use(from, (tn_point){.queue = from->device->num_queues, .value = from_value});
    record->reads[t->from_device] = from_value;
}

static tn_status move_later(struct run *run, const struct plan_transfer *t)
{
    struct move *move = NULL;
    uint64_t to_value, from_value = 0;
    tn_status status = make_move(run, t, &move);
    if (status != TN_OK)
        return status;
    struct device *to = move->to;
    struct outcome *outcome = move->outcome; // ended by the mover's thread at any time
    outcome_retain(outcome);
    status = mover_add(run->plan->runtime, move, &to_value, &from_value);
    if (status != TN_OK) {
        outcome_release(outcome);
        return status;
    }
    note_move(run, t, outcome, to_value, from_value);
    run->has_moved = true;
    device_drain(to, outcomes_backlog(to, to->num_queues));
    return TN_OK;
}

tn_status run_transfer(struct run *run, const struct plan_transfer *t)
{
    if (t->size == 0)
        return TN_OK;
    tn_status status = mover_can(run, t) ? move_later(run, t) : move_now(run, t);
    stats_count(run->plan->runtime, STATS_TRANSFERS, 1);
    return status;
}

tn_status run_follow(struct run *run, uint32_t device, struct device *other, tn_point point)
{
    struct device *to = run->plan->devices[device];
    uint64_t to_value, from_value;
    if (device_has_reached(other, point))
        return TN_OK;
    if (run->mode == RUN_WAIT || !device_has_host_points(to)) {
        device_drain(other, point);
        return TN_OK;
    }
    struct move *move = move_create(0);
    if (!move)
        return TN_ERR_MEMORY;
    move->to = to;
    move->after = other;
    move->after_point = point;
    tn_status status = mover_add(run->plan->runtime, move, &to_value, &from_value);
    if (status != TN_OK)
        return status;
    run->record->reads[device] = to_value;
    run->has_moved = true;
    return TN_OK;
}
