// SPDX-License-Identifier: MIT
// Submit: runs a plan. Buffers are bound to slots, segments go to their queues in order,
// and the host waits only where elements travel from one device to another. What fails
// later than that is known by fates: a segment's depends on those of all that it uses.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../plugin/host.h"
#include "fate.h"
#include "plan.h"
#include "shadow.h"

struct run {
    struct plan *plan;
    struct value *const *leaves; // borrowed
    struct storage **storages;   // the plan's scratch: owned until given to outputs
    enum run_mode mode;
};

// --- memory -----------------------------------------------------------------------------

static tn_status prepare_arenas(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->num_devices; i++) {
        if (plan->arenas[i] || plan->arena_size[i] == 0)
            continue;
        tn_status status =
            storage_create(plan->devices[i], plan->arena_size[i], &plan->arenas[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// A leaf that was given away can be taken over only if nobody else shares its memory.
static bool is_sole_owner(const struct value *leaf, uint64_t size)
{
    return atomic_load_explicit(&leaf->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&leaf->storage->refs, memory_order_acquire) == 1 &&
           leaf->storage->size >= size && leaf->offset == 0;
}

static tn_status prepare_storages(struct run *run)
{
    struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_storages; i++) {
        const struct plan_storage *want = &plan->storages[i];
        const struct value *leaf =
            want->donated_leaf == NONE ? NULL : run->leaves[want->donated_leaf];
        if (leaf && is_sole_owner(leaf, want->size)) {
            run->storages[i] = leaf->storage;
            storage_retain(leaf->storage);
            continue;
        }
        tn_status status =
            storage_create(plan->devices[want->device], want->size, &run->storages[i]);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static struct storage *storage_of(const struct run *run, const struct plan_slot *slot,
                                  uint64_t *out_offset)
{
    *out_offset = 0;
    switch (slot->home) {
    case HOME_LEAF:
        *out_offset = run->leaves[slot->index]->offset;
        return run->leaves[slot->index]->storage;
    case HOME_ARENA:
        return run->plan->arenas[slot->index];
    default:
        return run->storages[slot->index];
    }
}

// --- transfers -------------------------------------------------------------------------

// The plan's own memory has no fate: what is there was written in this run.
static tn_status wait_for_arena(const struct run *run, uint32_t device,
                                const struct plan_segment *before)
{
    for (const struct plan_segment *s = run->plan->segments; s < before; s++) {
        if (s->device != device || !s->fate)
            continue;
        tn_status status = device_wait(run->plan->devices[device], s->last_point);
        if (status == TN_OK)
            status = fate_end(s->fate);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static void fill(void *bytes, const struct plan_transfer *t)
{
    size_t size = dtype_size(t->dtype);
    for (uint64_t at = 0; at < t->size; at += size)
        dtype_store_bits(t->dtype, (char *)bytes + at, t->number);
}

// The elements that travel, once they are there.
static tn_status fetch(const struct run *run, const struct plan_transfer *t,
                       const struct plan_segment *before, void *bytes)
{
    uint64_t offset;
    if (t->from.home == HOME_NONE) {
        fill(bytes, t);
        return TN_OK;
    }
    tn_status status =
        t->from.home == HOME_ARENA ? wait_for_arena(run, t->from_device, before) : TN_OK;
    struct storage *from = storage_of(run, &t->from, &offset);
    return status == TN_OK ? storage_read(from, offset + t->from_offset, bytes, t->size)
                           : status;
}

static tn_status move(struct run *run, const struct plan_transfer *t,
                      const struct plan_segment *before)
{
    uint64_t offset;
    struct storage *to = storage_of(run, &t->to, &offset);
    void *bytes = mem_alloc(t->size);
    if (!bytes)
        return TN_ERR_MEMORY;
    tn_status status = fetch(run, t, before, bytes);
    if (status == TN_OK) // an earlier submission may still use this memory
        status =
            device_wait(to->device, atomic_load_explicit(&to->point, memory_order_acquire));
    if (status == TN_OK)
        status = storage_write(to, offset + t->to_offset, bytes, t->size);
    mem_free(bytes);
    return status;
}

static tn_status transfer(struct run *run, const struct plan_transfer *t,
                          const struct plan_segment *before)
{
    const struct plan *plan = run->plan;
    bool upload = t->from.home == HOME_NONE;
    if (t->size == 0)
        return TN_OK;
    uint64_t begin = trace_begin(plan->runtime);
    tn_status status = move(run, t, before);
    trace_end(plan->runtime, begin, upload ? "upload" : "transfer",
              "\"bytes\":%llu,\"from\":\"%s\",\"to\":\"%s\"", (unsigned long long)t->size,
              upload ? "" : plan->devices[t->from_device]->name,
              plan->devices[t->to_device]->name);
    atomic_fetch_add_explicit(&sched_stats(plan->runtime)->transfers, 1,
                              memory_order_relaxed);
    return status;
}

// --- submission -------------------------------------------------------------------------

static void raise_point(struct storage *storage, uint64_t point)
{
    uint64_t seen = atomic_load_explicit(&storage->point, memory_order_relaxed);
    while (seen < point &&
           !atomic_compare_exchange_weak_explicit(
               &storage->point, &seen, point, memory_order_release, memory_order_relaxed))
        ;
}

static void bind_slots(struct run *run, const struct plan_segment *segment)
{
    for (uint32_t i = 0; i < segment->segment.num_slots; i++) {
        uint64_t offset;
        struct storage *storage = storage_of(run, &segment->slots[i], &offset);
        run->plan->bindings[i] = (tn_binding){storage->buffer, offset};
    }
}

// A cause of how the segment ends: of its slots in turn, and then of the segments before
// it, when it reads what these may have left in the plan's memory.
static struct fate *cause(const struct run *run, const struct plan_segment *segment,
                          uint32_t i)
{
    uint64_t offset;
    uint32_t num_slots = segment->segment.num_slots;
    if (i < num_slots)
        return segment->slots[i].home == HOME_ARENA
                   ? NULL
                   : storage_of(run, &segment->slots[i], &offset)->fate;
    const struct plan_segment *earlier = &run->plan->segments[i - num_slots];
    if (earlier->device != segment->device)
        return NULL;
    for (uint32_t k = 0; k < num_slots; k++)
        if (segment->slots[k].home == HOME_ARENA &&
            (segment->segment.slots[k].flags & TN_SLOT_READ))
            return earlier->fate;
    return NULL;
}

// Those whose end is not known; `causes` may be NULL. Fails when one failed.
static tn_status list_causes(const struct run *run, const struct plan_segment *segment,
                             struct fate **causes, uint32_t *out_count)
{
    uint32_t num_slots = segment->segment.num_slots;
    uint32_t all = num_slots + (uint32_t)(segment - run->plan->segments), count = 0;
    for (uint32_t i = 0; i < all; i++) {
        struct fate *fate = cause(run, segment, i);
        tn_status status = fate_known(fate);
        if (status != TN_OK)
            return status;
        if (fate_went_well(fate) || (causes && count == *out_count))
            continue;
        if (causes)
            causes[count] = fate;
        count++;
    }
    *out_count = count;
    return TN_OK;
}

// A fate for a segment that is not waited for at once, or depends on one that is not known.
static tn_status make_fate(const struct run *run, const struct plan_segment *segment,
                           struct fate **out)
{
    struct fate **causes = NULL;
    uint32_t count = 0;
    tn_status status = list_causes(run, segment, NULL, &count);
    if (status != TN_OK || (count == 0 && run->mode == RUN_WAIT))
        return status;
    if (count > 0 && !(causes = mem_alloc(count * sizeof(struct fate *))))
        return TN_ERR_MEMORY;
    if (count > 0)
        status = list_causes(run, segment, causes, &count);
    if (status == TN_OK)
        status = fate_create(run->plan->devices[segment->device], causes, count, out);
    mem_free(causes);
    return status;
}

static void note_use(const struct run *run, struct plan_segment *segment, uint64_t point)
{
    for (uint32_t i = 0; i < segment->segment.num_slots; i++) {
        uint64_t offset;
        struct storage *storage = storage_of(run, &segment->slots[i], &offset);
        raise_point(storage, point);
        if (!segment->fate || segment->slots[i].home == HOME_ARENA ||
            !(segment->segment.slots[i].flags & TN_SLOT_WRITE))
            continue;
        fate_retain(segment->fate);
        fate_release(storage->fate);
        storage->fate = segment->fate;
    }
}

static tn_status submit_whole(struct run *run, struct plan_segment *segment)
{
    struct plan *plan = run->plan;
    struct device *device = plan->devices[segment->device];
    uint64_t point = 0;
    tn_submission submission = {
        .struct_size = sizeof(submission),
        .flags = run->mode == RUN_ASYNC ? TN_SUBMIT_ASYNC : 0,
        .executable = segment->executable,
        .bindings = plan->bindings,
        .num_bindings = segment->segment.num_slots,
    };
    struct fate *fate = NULL;
    tn_status status = make_fate(run, segment, &fate);
    if (status != TN_OK)
        return status;
    fail_clear();
    pthread_mutex_lock(&device->lock);
    status = device->ops->submit(device->handle, &submission, &point);
    if (status == TN_OK && fate)
        fate_begin(fate, point);
    pthread_mutex_unlock(&device->lock);
    if (status != TN_OK) {
        fate_release(fate);
        return device_failed(device, "submit", status);
    }
    segment->last_point = point;
    segment->fate = fate;
    segment->is_submitted = true;
    note_use(run, segment, point);
    if (fate)
        device_settle(device, fates_backlog(device));
    return TN_OK;
}

// Runs the segment here and now, when TENON_CHECK draws launches of it, and checks those;
// else submits it.
static tn_status submit_drawn(struct run *run, struct plan_segment *segment)
{
    struct plan *plan = run->plan;
    struct shadow *shadow = plan->runtime->shadow;
    uint32_t num_slots = segment->segment.num_slots;
    struct storage **storages = mem_alloc((num_slots + 1) * sizeof(struct storage *));
    uint8_t *chosen = mem_zalloc(segment->num_steps + 1);
    tn_status status = storages && chosen ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK && shadow_draw(shadow, &segment->segment, chosen)) {
        status = wait_for_arena(run, segment->device, segment);
        for (uint32_t i = 0; i < num_slots && status == TN_OK; i++) {
            uint64_t offset;
            storages[i] = storage_of(run, &segment->slots[i], &offset);
            status = storage_wait(storages[i]);
        }
        if (status == TN_OK)
            status = shadow_segment(shadow, plan->devices[segment->device],
                                    &segment->segment, plan->bindings, storages, chosen);
    } else if (status == TN_OK) {
        status = submit_whole(run, segment);
    }
    mem_free(chosen);
    mem_free(storages);
    return status;
}

static tn_status submit_segment(struct run *run, struct plan_segment *segment)
{
    bind_slots(run, segment);
    tn_status status = run->plan->runtime->shadow ? submit_drawn(run, segment)
                                                  : submit_whole(run, segment);
    if (status != TN_OK)
        return status;
    struct sched_stats *stats = sched_stats(run->plan->runtime);
    atomic_fetch_add_explicit(&stats->submissions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats->steps, segment->num_steps, memory_order_relaxed);
    return TN_OK;
}

static tn_status submit_all(struct run *run)
{
    struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        struct plan_segment *segment = &plan->segments[i];
        tn_status status = TN_OK;
        for (uint32_t k = 0; k < segment->num_transfers && status == TN_OK; k++)
            status = transfer(run, &plan->transfers[segment->first_transfer + k], segment);
        if (status == TN_OK && segment->executable)
            status = submit_segment(run, segment);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status wait_all(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        const struct plan_segment *segment = &plan->segments[i];
        if (!segment->is_submitted)
            continue;
        tn_status status = device_ask(plan->devices[segment->device], segment->last_point);
        if (status == TN_OK)
            status = fate_end(segment->fate);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static void forget_submissions(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->num_segments; i++) {
        fate_release(plan->segments[i].fate);
        plan->segments[i].fate = NULL;
        plan->segments[i].is_submitted = false;
    }
}

// --- outputs ----------------------------------------------------------------------------

static tn_status give_outputs(struct run *run, struct value **outputs)
{
    struct plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->num_outputs; i++) {
        const struct plan_output *o = &plan->outputs[i];
        uint64_t offset;
        struct storage *storage = storage_of(run, &o->slot, &offset);
        storage_retain(storage);
        tn_status status =
            value_create(storage, offset + o->offset, &o->layout, &outputs[i]);
        if (status != TN_OK) {
            storage_release(storage);
            for (; i > 0; i--) {
                value_release(outputs[i - 1]);
                outputs[i - 1] = NULL;
            }
            return status;
        }
    }
    return TN_OK;
}

static void drop_storages(struct run *run)
{
    for (uint32_t i = 0; i < run->plan->num_storages; i++) {
        storage_release(run->storages[i]);
        run->storages[i] = NULL;
    }
}

tn_status plan_run(struct plan *plan, struct value *const *leaves, struct value **outputs,
                   enum run_mode mode)
{
    struct run run = {plan, leaves, plan->scratch_storages, mode};
    tn_status status = callback_check(plan->runtime);
    if (status != TN_OK)
        return status;
    life_add(&plan->runtime->life.runs);
    pthread_mutex_lock(
        &plan->lock); // the plan's arena and bindings serve one run at a time
    status = prepare_arenas(plan);
    if (status == TN_OK)
        status = prepare_storages(&run);
    if (status == TN_OK)
        status = submit_all(&run);
    if (status == TN_OK && mode == RUN_WAIT)
        status = wait_all(plan);
    if (status == TN_OK)
        status = give_outputs(&run, outputs);
    forget_submissions(plan);
    drop_storages(&run);
    pthread_mutex_unlock(&plan->lock);
    life_remove(&plan->runtime->life.runs);
    return status;
}
