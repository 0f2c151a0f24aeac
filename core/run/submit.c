// SPDX-License-Identifier: MIT
// Submit: runs a plan. Buffers are bound to slots and segments are submitted in order, each
// to the calling thread's queue of its device. Transfers between devices are transfer.c's.
// Failures after submission are kept in outcomes; a segment's outcome depends on those of
// the memory that it uses.
#include <string.h>
#include <tenon/checked.h>
#include "../base/fail.h"
#include "../base/thread.h"
#include "../device/outcome.h"
#include "../plugin/host/host.h"
#include "effects.h"
#include "running.h"

// --- the pool of run records -----------------------------------------------------------

// Gives the next `count` elements of `size` bytes of a block, and advances *at behind them.
// Each total is a multiple of 8, so all stay aligned.
static void *submit_carve(char **at, uint64_t count, size_t size)
{
    char *memory = *at;
    *at += count * size;
    return memory;
}

static struct run_record *run_record_create(const struct plan *plan)
{
    uint64_t devices = plan->num_devices, queues = (devices + 1) / 2 * 2;
    // list_causes() gives one cause for each slot, and all entries of an open list.
    uint64_t causes = (uint64_t)plan->max_slots + plan->num_segments + plan->num_transfers;
    size_t size =
        sizeof(struct run_record) + plan->num_segments * sizeof(struct submitted) +
        plan->num_transfers * sizeof(struct submitted) +
        devices * (sizeof(struct open_list) + sizeof(struct storage *) + sizeof(uint64_t)) +
        plan->num_storages * sizeof(struct storage *) +
        plan->num_made * sizeof(struct value *) + plan->max_slots * sizeof(tn_binding) +
        plan->max_slots * sizeof(struct storage *) + causes * sizeof(struct outcome *) +
        queues * sizeof(uint32_t);
    char *at = mem_zalloc(size);
    struct run_record *record = at ? submit_carve(&at, 1, sizeof(*record)) : NULL;
    if (!record)
        return NULL;
    record->segments = submit_carve(&at, plan->num_segments, sizeof(*record->segments));
    record->transfers = submit_carve(&at, plan->num_transfers, sizeof(*record->transfers));
    record->open = submit_carve(&at, devices, sizeof(*record->open));
    record->arenas = submit_carve(&at, devices, sizeof(*record->arenas));
    record->storages = submit_carve(&at, plan->num_storages, sizeof(*record->storages));
    record->made = submit_carve(&at, plan->num_made, sizeof(*record->made));
    record->bindings = submit_carve(&at, plan->max_slots, sizeof(*record->bindings));
    record->bound = submit_carve(&at, plan->max_slots, sizeof(*record->bound));
    record->causes = submit_carve(&at, causes, sizeof(*record->causes));
    record->reads = submit_carve(&at, devices, sizeof(*record->reads));
    record->queues = submit_carve(&at, queues, sizeof(*record->queues));
    return record;
}

// The record is the calling thread's, whose number is `thread`.
static _Atomic(struct run_record *) *idle_place(struct plan *plan, unsigned thread)
{
    return &plan->idle[thread % MAX_IDLE_RUNS].record;
}

static struct run_record *run_record_take(struct plan *plan, unsigned thread)
{
    struct run_record *record = atomic_exchange(idle_place(plan, thread), NULL);
    return record ? record : run_record_create(plan);
}

// Releases all that the run left in the record and puts the record back.
static void run_record_give(struct plan *plan, unsigned thread, struct run_record *record)
{
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        outcome_release(record->segments[i].outcome);
        record->segments[i] = (struct submitted){0};
    }
    for (uint32_t i = 0; i < plan->num_transfers; i++) {
        outcome_release(record->transfers[i].outcome);
        record->transfers[i] = (struct submitted){0};
    }
    for (uint32_t i = 0; i < plan->num_storages; i++) {
        storage_release(record->storages[i]);
        record->storages[i] = NULL;
    }
    for (uint32_t i = 0; i < plan->num_made; i++) {
        value_release(record->made[i]);
        record->made[i] = NULL;
    }
    for (uint32_t i = 0; i < plan->num_devices; i++) {
        storage_release(record->arenas[i]);
        record->arenas[i] = NULL;
        record->open[i] = (struct open_list){0};
        record->reads[i] = 0;
    }
    mem_free(atomic_exchange(idle_place(plan, thread),
                             record)); // NULL, or that of another thread
}

// --- memory -----------------------------------------------------------------------------

static struct device *submit_device_of(const struct run *run,
                                       const struct plan_segment *segment)
{
    return run->plan->devices[segment->device];
}

struct storage *run_storage(const struct run *run, const struct plan_slot *slot,
                            uint64_t *out_offset)
{
    *out_offset = 0;
    switch (slot->home) {
    case HOME_LEAF:
        *out_offset = run->leaves[slot->index]->offset;
        return run->leaves[slot->index]->storage;
    case HOME_ARENA:
        return run->record->arenas[slot->index];
    case HOME_MADE:
        *out_offset = run->record->made[slot->index]->offset;
        return run->record->made[slot->index]->storage;
    default:
        return run->record->storages[slot->index];
    }
}

static struct submitted *submit_state_of(const struct run *run,
                                         const struct plan_segment *segment)
{
    return &run->record->segments[segment - run->plan->segments];
}

static tn_status prepare_arenas(struct run *run)
{
    const struct plan *plan = run->plan;
    struct run_record *record = run->record;
    for (uint32_t i = 0; i < plan->num_devices; i++) {
        record->queues[i] = device_queue_of_thread(plan->devices[i]);
        if (plan->arena_size[i] == 0)
            continue;
        tn_status status = storage_create_arena(plan->devices[i], plan->arena_size[i],
                                                record->queues[i], &record->arenas[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status prepare_storages(struct run *run)
{
    const struct plan *plan = run->plan;
    struct storage **storages = run->record->storages;
    for (uint32_t i = 0; i < plan->num_storages; i++) {
        const struct plan_storage *want = &plan->storages[i];
        if (want->donated_leaf != NONE) {
            storages[i] = run->leaves[want->donated_leaf]->storage;
            storage_retain(storages[i]);
            continue;
        }
        tn_status status = storage_create(plan->devices[want->device], want->size,
                                          run->record->queues[want->device], &storages[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// --- host operations --------------------------------------------------------------------

// The operand as a value of its own.
static tn_status wrap_input(const struct run *run, const struct host_input *in,
                            struct value **out)
{
    uint64_t offset;
    if (in->slot.home == HOME_NONE)
        return TN_OK;
    struct storage *storage = run_storage(run, &in->slot, &offset);
    return value_share(storage, offset + in->offset, &in->layout, out);
}

static tn_status run_host(struct run *run, const struct plan_host *host)
{
    struct value **inputs = mem_zalloc((host->num_inputs + 1) * sizeof(*inputs));
    tn_status status = inputs ? TN_OK : TN_ERR_MEMORY;
    bool has_begun = false;
    uint64_t begin = trace_begin(run->plan->runtime->trace);
    for (uint32_t i = 0; i < host->num_inputs && status == TN_OK; i++)
        status = wrap_input(run, &host->inputs[i], &inputs[i]);
    if (status == TN_OK)
        status = host_run(run->plan, host, inputs, run->record->made + host->first_made,
                          run->mode, &has_begun);
    for (uint32_t i = 0; inputs && i < host->num_inputs; i++)
        value_release(inputs[i]);
    mem_free(inputs);
    run->has_begun |= has_begun;
    trace_end(run->plan->runtime->trace, begin, host->label, "\"kernel\":\"host\"");
    return status;
}

// --- submission -------------------------------------------------------------------------

static void submit_bind_slots(const struct run *run, const struct plan_segment *segment)
{
    for (uint32_t i = 0; i < segment->segment.num_slots; i++) {
        uint64_t offset;
        const struct plan_slot *slot = &segment->slots[i];
        struct storage *storage = run_storage(run, slot, &offset);
        run->record->bindings[i] = (tn_binding){storage->buffer, offset};
        run->record->bound[i] = slot->home == HOME_ARENA ? NULL : storage;
    }
}

static bool reads_arena(const struct plan_segment *segment)
{
    for (uint32_t i = 0; i < segment->segment.num_slots; i++)
        if (segment->slots[i].home == HOME_ARENA &&
            (segment->segment.slots[i].flags & TN_SLOT_READ))
            return true;
    return false;
}

// Outcomes that a segment's outcome depends on.
struct causes {
    struct outcome **list;
    uint32_t count;
};

// Adds the outcome unless it succeeded. Fails when it is known to have failed. Values that
// one submission wrote share an outcome, so the same one comes many times in a row.
static tn_status submit_add_cause(struct causes *causes, struct outcome *outcome)
{
    if (!outcome || (causes->count > 0 && causes->list[causes->count - 1] == outcome))
        return TN_OK;
    tn_status status = outcome_known(outcome);
    if (status == TN_OK && !outcome_succeeded(outcome))
        causes->list[causes->count++] = outcome;
    return status;
}

// The outcome of a segment depends on those of the memory bound to its slots and, when it
// reads the arena, on those of earlier segments that may have written there.
static tn_status list_causes(const struct run *run, const struct plan_segment *segment,
                             struct causes *causes)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < segment->segment.num_slots && status == TN_OK; i++)
        if (run->record->bound[i])
            status = submit_add_cause(causes, run->record->bound[i]->outcome);
    if (status != TN_OK || !reads_arena(segment))
        return status;
    const struct submitted *earlier = run->record->open[segment->device].first;
    for (; earlier && status == TN_OK; earlier = earlier->next)
        status = submit_add_cause(causes, earlier->outcome);
    return status;
}

// Gives an outcome for the segment, or NULL when none is needed: the run is waited for at
// once and all causes have succeeded.
static tn_status make_outcome(const struct run *run, const struct plan_segment *segment,
                              struct outcome **out)
{
    struct causes causes = {.list = run->record->causes};
    tn_status status = list_causes(run, segment, &causes);
    if (status != TN_OK || (causes.count == 0 && run->mode == RUN_WAIT))
        return status;
    return outcome_create(submit_device_of(run, segment),
                          run->record->queues[segment->device], causes.list, causes.count,
                          out);
}

// Adds the submission to the open list. One that reads the arena replaces the list, since
// all in it are causes of its outcome.
static void note_open(struct open_list *open, const struct plan_segment *segment,
                      struct submitted *state)
{
    if (reads_arena(segment))
        open->first = NULL;
    open_list_add(open, state);
}

// Points of other timelines that a submission waits for. `last`: the greatest value by
// timeline.
struct wait_list {
    uint64_t last[MAX_TIMELINES];
    tn_point points[MAX_TIMELINES];
    uint32_t count;
};

static void submit_wait_for(struct wait_list *waits, tn_point point)
{
    if (waits->last[point.queue] < point.value)
        waits->last[point.queue] = point.value;
}

// The memory of a donated leaf is written only after all submissions that read it.
static void wait_for_uses(struct wait_list *waits, const struct storage *storage)
{
    for (uint32_t i = 0; i < storage->device->num_timelines; i++)
        submit_wait_for(waits,
                        (tn_point){.queue = i,
                                   .value = atomic_load_explicit(&storage->last_use[i],
                                                                 memory_order_acquire)});
}

static bool takes_over(const struct plan *plan, const struct plan_slot *slot)
{
    return slot->home == HOME_STORAGE && plan->storages[slot->index].donated_leaf != NONE;
}

// The mover writes to the arena what this segment reads, and reads what it may write over.
static void wait_for_moves(const struct run *run, const struct plan_segment *segment,
                           struct wait_list *waits)
{
    const struct device *device = submit_device_of(run, segment);
    const struct submitted *state = run->record->open[segment->device].first;
    submit_wait_for(waits, (tn_point){.queue = device->num_queues,
                                      .value = run->record->reads[segment->device]});
    for (; state; state = state->next)
        submit_wait_for(waits, outcome_point(state->outcome));
}

// Waits for effects on this device; follow_effects() has seen to other devices.
static void wait_for_effects(const struct run *run, const struct plan_segment *segment,
                             struct wait_list *waits)
{
    for (uint32_t i = 0; i < MAX_DOMAINS; i++) {
        struct effect_point last = effects_last(run->plan->runtime, i);
        if ((segment->effects >> i & 1) && last.device == submit_device_of(run, segment))
            submit_wait_for(waits, last.point);
    }
}

static void list_waits(const struct run *run, const struct plan_segment *segment,
                       struct wait_list *waits)
{
    const struct device *device = submit_device_of(run, segment);
    uint32_t own = run->record->queues[segment->device];
    waits->count = 0;
    if (device->num_timelines == 1)
        return;
    memset(waits->last, 0, sizeof(waits->last));
    for (uint32_t i = 0; i < segment->segment.num_slots; i++) {
        const struct storage *storage = run->record->bound[i];
        if (!storage)
            continue;
        if (!outcome_succeeded(storage->outcome))
            submit_wait_for(waits, outcome_point(storage->outcome));
        if (takes_over(run->plan, &segment->slots[i]))
            wait_for_uses(waits, storage);
    }
    if (run->has_moved)
        wait_for_moves(run, segment, waits);
    if (segment->effects)
        wait_for_effects(run, segment, waits);
    for (uint32_t i = 0; i < device->num_timelines; i++) {
        tn_point point = {.queue = i, .value = waits->last[i]};
        if (i == own || device_has_reached(device, point))
            continue;
        if (device_is_host_timeline(device, i))
            point.queue = TN_QUEUE_HOST;
        waits->points[waits->count++] = point;
    }
}

// Records the submission in the plan and in the storages that it uses. Storages that it
// writes get its outcome.
static void note_use(const struct run *run, const struct plan_segment *segment,
                     const struct submitted *state)
{
    tn_point point = {.queue = run->record->queues[segment->device], .value = state->value};
    counter_raise(plan_last_use(run->plan, segment->device, point.queue), point.value);
    if (run->record->arenas[segment->device])
        storage_use(run->record->arenas[segment->device], point);
    for (uint32_t i = 0; i < segment->segment.num_slots; i++) {
        struct storage *storage = run->record->bound[i];
        if (!storage)
            continue;
        storage_use(storage, point);
        if (!state->outcome || storage->outcome == state->outcome ||
            !(segment->segment.slots[i].flags & TN_SLOT_WRITE))
            continue;
        outcome_retain(state->outcome);
        outcome_release(storage->outcome);
        storage->outcome = state->outcome;
    }
}

// Whether the segment may not be brief (MOST_BRIEF), or waits for other devices.
static bool takes_long(const struct run *run, const struct plan_segment *segment,
                       const struct wait_list *waits)
{
    uint64_t bytes = segment->bytes_written;
    if (waits->count > 0 || segment->effects || run->plan->num_hosts > 0)
        return true;
    for (uint32_t i = 0; bytes <= MOST_BRIEF && i < segment->segment.num_slots; i++)
        if (run->record->bound[i])
            bytes = tn_saturated_add(bytes, run->record->bound[i]->size);
    return bytes > MOST_BRIEF;
}

static tn_status call_submit(const struct run *run, const struct plan_segment *segment,
                             uint64_t *out_value)
{
    struct device *device = submit_device_of(run, segment);
    struct wait_list waits;
    list_waits(run, segment, &waits);
    const tn_submission submission = {
        .struct_size = sizeof(submission),
        .flags = run->mode == RUN_ASYNC || segment->effects ? TN_SUBMIT_ASYNC : 0,
        .executable = segment->executable,
        .bindings = run->record->bindings,
        .num_bindings = segment->segment.num_slots,
        .binding_size = sizeof(tn_binding),
        .waits = waits.points,
        .num_waits = waits.count,
        .queue = run->record->queues[segment->device],
    };
    fail_clear();
    tn_status status = device->ops->submit(device->handle, &submission, out_value);
    if (status != TN_OK)
        return device_failed(device, "submit", status);
    counter_raise(&device->queues[submission.queue].last_given, *out_value);
    if (takes_long(run, segment, &waits))
        device_note_long(device,
                         (tn_point){.queue = submission.queue, .value = *out_value});
    return TN_OK;
}

static tn_status submit_segment(struct run *run, const struct plan_segment *segment)
{
    struct device *device = submit_device_of(run, segment);
    struct submitted *state = submit_state_of(run, segment);
    tn_runtime *runtime = run->plan->runtime;
    struct outcome *outcome = NULL;
    uint64_t value = 0;
    submit_bind_slots(run, segment);
    tn_status status = make_outcome(run, segment, &outcome);
    if (status == TN_OK)
        status = call_submit(run, segment, &value);
    if (status != TN_OK) {
        outcome_release(outcome);
        return status;
    }
    tn_point backlog = outcome ? outcome_begin(outcome, value) : (tn_point){0};
    *state = (struct submitted){.outcome = outcome, .value = value};
    note_use(run, segment, state);
    if (outcome) {
        note_open(&run->record->open[segment->device], segment, state);
        device_drain(device, backlog);
    }
    struct counts *work = &device_stats(runtime)->work;
    counts_add_as(work, run->thread, STATS_SUBMISSIONS, 1);
    counts_add_as(work, run->thread, STATS_STEPS, segment->num_steps);
    counts_add_as(work, run->thread, STATS_WRITTEN, (int64_t)segment->bytes_written);
    run->has_begun = true;
    return TN_OK;
}

// Lets the segment begin after the last effects of its domains on other devices.
static tn_status follow_effects(struct run *run, const struct plan_segment *segment)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < MAX_DOMAINS && status == TN_OK; i++) {
        struct effect_point last = effects_last(run->plan->runtime, i);
        if ((segment->effects >> i & 1) && last.device &&
            last.device != submit_device_of(run, segment))
            status = run_follow(run, segment->device, last.device, last.point);
    }
    return status;
}

// Submits a segment with effects. It is submitted as if nobody waited soon, so that the
// lock of effects is free before the work ends.
static tn_status submit_effects(struct run *run, const struct plan_segment *segment)
{
    struct effect_point last = {.device = NULL};
    effects_enter(run->plan->runtime);
    tn_status status = follow_effects(run, segment);
    if (status == TN_OK)
        status = submit_segment(run, segment);
    if (status == TN_OK)
        last = (struct effect_point){submit_device_of(run, segment),
                                     {.queue = run->record->queues[segment->device],
                                      .value = submit_state_of(run, segment)->value}};
    effects_leave(run->plan->runtime, segment->effects, last);
    return status;
}

static tn_status submit_all(struct run *run)
{
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        tn_status status = TN_OK;
        for (uint32_t k = 0; k < segment->num_transfers && status == TN_OK; k++)
            status = run_transfer(run, &plan->transfers[segment->first_transfer + k]);
        for (uint32_t k = 0; k < segment->num_hosts && status == TN_OK; k++)
            status = run_host(run, &plan->hosts[segment->first_host + k]);
        if (status == TN_OK && segment->executable)
            status = segment->effects ? submit_effects(run, segment)
                                      : submit_segment(run, segment);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status wait_all(const struct run *run)
{
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        const struct submitted *state = &run->record->segments[i];
        if (state->value == 0)
            continue;
        tn_point point = {.queue = run->record->queues[segment->device],
                          .value = state->value};
        tn_status status = device_wait_status(plan->devices[segment->device], point);
        if (status == TN_OK)
            status = outcome_end(state->outcome);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// --- outputs ----------------------------------------------------------------------------

// Whether a value has this memory and this layout, and no copy of what was there before.
static bool stands_for(const struct value *value, const struct storage *storage,
                       uint64_t offset, const tn_layout *layout)
{
    return value->storage == storage && value->offset == offset &&
           !atomic_load_explicit(&value->host_copy, memory_order_relaxed) &&
           memcmp(&value->layout, layout, sizeof(*layout)) == 0;
}

// An output in the memory of a donated input, which has no other owner, is its value.
static tn_status give_output(const struct run *run, const struct plan_output *o,
                             struct value **out)
{
    uint64_t offset;
    struct storage *storage = run_storage(run, &o->slot, &offset);
    uint32_t leaf = o->slot.home == HOME_STORAGE
                        ? run->plan->storages[o->slot.index].donated_leaf
                        : NONE;
    if (leaf == NONE ||
        !stands_for(run->leaves[leaf], storage, offset + o->offset, &o->layout))
        return value_share(storage, offset + o->offset, &o->layout, out);
    *out = run->leaves[leaf];
    value_retain(*out);
    return TN_OK;
}

static tn_status submit_give_outputs(struct run *run, struct value **outputs)
{
    const struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_outputs; i++) {
        const struct plan_output *o = &plan->outputs[i];
        tn_status status = give_output(run, o, &outputs[i]);
        if (status != TN_OK) {
            for (; i > 0; i--) {
                value_release(outputs[i - 1]);
                outputs[i - 1] = NULL;
            }
            return status;
        }
    }
    return TN_OK;
}

tn_status plan_run(struct plan *plan, struct value *const *leaves, struct value **outputs,
                   enum run_mode mode, bool *out_has_begun)
{
    *out_has_begun = false;
    tn_status status = callback_check(plan->runtime);
    if (status != TN_OK)
        return status;
    // Host operations read what earlier segments write: their outcomes are needed.
    const unsigned thread = thread_number();
    struct run run = {.plan = plan,
                      .record = run_record_take(plan, thread),
                      .leaves = leaves,
                      .mode = mode == RUN_WAIT && plan->num_hosts ? RUN_START : mode,
                      .thread = thread};
    if (!run.record)
        return TN_ERR_MEMORY;
    counts_add_as(&plan->runtime->life.in_use, thread, LIFE_RUNS, 1);
    status = prepare_arenas(&run);
    if (status == TN_OK)
        status = prepare_storages(&run);
    if (status == TN_OK)
        status = submit_all(&run);
    if (status == TN_OK && mode == RUN_WAIT)
        status = wait_all(&run);
    if (status == TN_OK)
        status = submit_give_outputs(&run, outputs);
    *out_has_begun = run.has_begun;
    run_record_give(plan, thread, run.record);
    counts_add_as(&plan->runtime->life.in_use, thread, LIFE_RUNS, -1);
    return status;
}
