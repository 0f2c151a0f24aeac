// SPDX-License-Identifier: MIT
// A dispatch is measured where it stands in its segment, on the values of that run. The
// memory that it writes is saved before and restored for each measured run. The same is
// done for all dispatches of the segment, which are timed together first.
#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include "launches.h"

#define ROUNDS 9           // of which the median counts
#define ROUND_NS 500000.0  // a round runs the dispatch so often that it takes this
#define WHOLE_NS 4000000.0 // the same for runs of all dispatches
#define MOST_RUNS 200      // in a round

struct vk_measured {
    struct vk_measured *next;
    uint64_t number;
    uint32_t dispatch;              // of the plan
    const struct vk_measured *same; // has the number, and is measured; NULL: this one is
    struct vk_pipeline *baked;      // NULL: `reason` says why
    uint64_t baked_size;
    bool is_told;
    char reason[VK_REASON];
};

// --- while it is planned ---------------------------------------------------------------

static tn_status segment_measure_bake(tn_device *device,
                                      const struct vk_pipeline_desc *desc,
                                      const struct spirv_words *lists, uint32_t num_lists,
                                      struct vk_measured *measured)
{
    struct vk_code code = {0}, baked;
    tn_status status = desc->code(device, desc->context, &code);
    if (status != TN_OK)
        return status;
    if (spirv_bake(&code, lists, num_lists, &baked, measured->reason)) {
        struct vk_pipeline_desc alone = *desc;
        alone.num_push = 0;
        measured->baked_size = baked.size;
        status = vk_pipeline_make(device, &alone, &baked, &measured->baked);
        baked.release(&baked);
    }
    if (code.release)
        code.release(&code);
    return status;
}

tn_status vk_measure_plan(struct vk_plan *plan, uint32_t dispatch,
                          const struct vk_pipeline_desc *desc,
                          const struct spirv_words *lists, uint32_t num_lists,
                          uint64_t number)
{
    struct vk_measured *measured = calloc(1, sizeof(*measured));
    if (!measured)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    measured->number = number;
    measured->dispatch = dispatch;
    for (measured->same = plan->measured; measured->same;
         measured->same = measured->same->next)
        if (measured->same->number == number && !measured->same->same)
            break;
    measured->next = plan->measured;
    plan->measured = measured;
    return measured->same
               ? TN_OK
               : segment_measure_bake(plan->device, desc, lists, num_lists, measured);
}

void vk_measure_finish(struct vk_plan *plan)
{
    while (plan->measured) {
        struct vk_measured *measured = plan->measured;
        plan->measured = measured->next;
        if (measured->baked)
            vk_pipeline_destroy(plan->device, measured->baked);
        free(measured);
    }
}

// --- running -----------------------------------------------------------------------------

struct measuring {
    tn_device *device;
    const tn_submission *submission;
    const struct vk_plan *plan;
    const struct vk_recording *recording;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkQueryPool queries; // VK_NULL_HANDLE: the device has no timestamps
    uint64_t point;      // of what was submitted last
};

static tn_status open_measuring(struct measuring *m)
{
    const struct vk_device_api *vk = m->device->vk;
    tn_status status = vk_pool_create(m->device, &m->pool);
    if (status == TN_OK)
        status = vk_commands_create(m->device, m->pool, &m->commands);
    if (status != TN_OK || !m->device->facts.timestamps)
        return status;
    VkResult result = vk->CreateQueryPool(
        m->device->handle,
        &(VkQueryPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                 .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                 .queryCount = 2},
        NULL, &m->queries);
    if (result != VK_SUCCESS)
        m->queries = VK_NULL_HANDLE;
    return vk_check(m->device, result, "vkCreateQueryPool");
}

static void close_measuring(struct measuring *m)
{
    const struct vk_device_api *vk = m->device->vk;
    if (m->queries)
        vk->DestroyQueryPool(m->device->handle, m->queries, NULL);
    if (m->pool)
        vk->DestroyCommandPool(m->device->handle, m->pool, NULL);
}

static void segment_measure_barrier(const struct measuring *m)
{
    const VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    m->device->vk->CmdPipelineBarrier(
        m->commands, stages, stages, 0, 1,
        &(VkMemoryBarrier){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                           .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                           .dstAccessMask =
                               VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT},
        0, NULL, 0, NULL);
}

static tn_status segment_measure_begin(const struct measuring *m)
{
    VkResult result = m->device->vk->BeginCommandBuffer(
        m->commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT});
    if (result == VK_SUCCESS)
        segment_measure_barrier(m);
    return vk_check(m->device, result, "vkBeginCommandBuffer");
}

// Submits what was recorded, behind the points, and waits for it.
static tn_status segment_measure_finish(struct measuring *m, const tn_point *points,
                                        uint32_t num_points)
{
    tn_device *device = m->device;
    segment_measure_barrier(m);
    if (vk_memory_is_mapped(device))
        device->vk->CmdPipelineBarrier(
            m->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
            1,
            &(VkMemoryBarrier){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT},
            0, NULL, 0, NULL);
    tn_status status =
        vk_check(device, device->vk->EndCommandBuffer(m->commands), "vkEndCommandBuffer");
    if (status == TN_OK)
        status = vk_queue_submit(
            device, m->submission->queue,
            &(struct vk_work){{.commands = m->commands}, points, num_points}, &m->point);
    return status == TN_OK ? vk_wait(device, m->submission->queue, m->point) : status;
}

// A timed dispatch, or all of a plan.
struct segment_measure_timed {
    const struct vk_dispatch *dispatch; // NULL: all
    const struct vk_pipeline *baked;    // of the dispatch; NULL: its own
    const struct vk_plan *plan;         // of all
};

// Records runs of a dispatch, each behind the one before it as in a chain of steps.
static void record_runs(const struct measuring *m, const struct vk_dispatch *dispatch,
                        const struct vk_pipeline *baked, uint32_t runs)
{
    const struct vk_device_api *vk = m->device->vk;
    const struct vk_pipeline *pipeline = baked ? baked : dispatch->pipeline;
    vk->CmdBindPipeline(m->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    vk->CmdBindDescriptorSets(m->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->layout,
                              0, 1, &m->recording->sets[dispatch->set], 0, NULL);
    for (uint32_t i = 0; i < runs; i++) {
        if (!baked && dispatch->num_push > 0)
            vk->CmdPushConstants(m->commands, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT,
                                 0, dispatch->num_push * 4,
                                 m->plan->push + dispatch->first_push);
        vk->CmdDispatch(m->commands, dispatch->groups[0], dispatch->groups[1],
                        dispatch->groups[2]);
        vk_record_barrier(m->device, m->commands);
    }
}

static void record_wholes(const struct measuring *m, const struct vk_plan *plan,
                          uint32_t runs)
{
    const struct vk_recording recording = {.sets = m->recording->sets,
                                           .commands = m->commands};
    for (uint32_t i = 0; i < runs; i++) {
        vk_record_dispatches(m->device, plan, &recording);
        vk_record_barrier(m->device, m->commands);
    }
}

static tn_status segment_measure_run(struct measuring *m,
                                     const struct vk_dispatch *dispatch,
                                     const struct vk_pipeline *baked)
{
    tn_status status = segment_measure_begin(m);
    if (status != TN_OK)
        return status;
    record_runs(m, dispatch, baked, 1);
    return segment_measure_finish(m, NULL, 0);
}

static tn_status read_ticks(const struct measuring *m, double *out_ns)
{
    uint64_t ticks[2];
    VkResult result = m->device->vk->GetQueryPoolResults(
        m->device->handle, m->queries, 0, 2, sizeof(ticks), ticks, sizeof(ticks[0]),
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    double period = m->device->facts.properties.limits.timestampPeriod;
    if (result == VK_SUCCESS)
        *out_ns = ticks[1] > ticks[0] ? (double)(ticks[1] - ticks[0]) * period : 0;
    return vk_check(m->device, result, "vkGetQueryPoolResults");
}

// The time of one of several runs.
static tn_status time_runs(struct measuring *m, const struct segment_measure_timed *timed,
                           uint32_t runs, double *out_ns)
{
    const struct vk_device_api *vk = m->device->vk;
    tn_status status = segment_measure_begin(m);
    if (status != TN_OK)
        return status;
    if (m->queries) {
        vk->CmdResetQueryPool(m->commands, m->queries, 0, 2);
        vk->CmdWriteTimestamp(m->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, m->queries,
                              0);
    }
    if (timed->dispatch)
        record_runs(m, timed->dispatch, timed->baked, runs);
    else
        record_wholes(m, timed->plan, runs);
    if (m->queries)
        vk->CmdWriteTimestamp(m->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, m->queries,
                              1);
    uint64_t begin_ns = vk_now_ns();
    status = segment_measure_finish(m, NULL, 0);
    *out_ns = (double)(vk_now_ns() - begin_ns);
    if (status == TN_OK && m->queries)
        status = read_ticks(m, out_ns);
    *out_ns /= runs;
    return status;
}

static int segment_measure_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Rounds of both kinds in turn, so that a change of the device's clock meets both. *baked
// NULL: of the first alone.
static tn_status time_both(struct measuring *m, const struct segment_measure_timed *folded,
                           const struct segment_measure_timed *baked, double round_ns,
                           tn_launch_cost *cost)
{
    double times[2][ROUNDS], once = 0;
    tn_status status = time_runs(m, folded, 1, &once);
    if (status == TN_OK && baked)
        status = time_runs(m, baked, 1, &once);
    double runs = once > 0 ? round_ns / once : MOST_RUNS;
    runs = runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : runs;
    for (uint32_t i = 0; i < 2 * ROUNDS && status == TN_OK; i++) {
        uint32_t kind = (i ^ i >> 1) & 1; // 0 1 1 0 0 1 ...
        if (kind == 0 || baked)
            status =
                time_runs(m, kind ? baked : folded, (uint32_t)runs, &times[kind][i / 2]);
    }
    if (status != TN_OK)
        return status;
    qsort(times[0], ROUNDS, sizeof(double), segment_measure_by_value);
    cost->folded_ns = times[0][ROUNDS / 2];
    if (baked) {
        qsort(times[1], ROUNDS, sizeof(double), segment_measure_by_value);
        cost->baked_ns = times[1][ROUNDS / 2];
    }
    return TN_OK;
}

// --- what dispatches write -------------------------------------------------------------

// The ranges, one behind the other in both copies.
struct segment_measure_written {
    struct vk_copy *ranges; // `from` is the operand's buffer; owned
    uint32_t count;
    uint64_t size;
    tn_buffer *before, *baked; // what was there, and what the baked code wrote
};

// `joins`: into the range of the same buffer.
static void add_written(const struct measuring *m, const struct vk_operand *operand,
                        bool joins, struct segment_measure_written *out)
{
    const tn_binding *binding = tn_submission_binding(m->submission, operand->slot);
    uint64_t begin = binding->offset + operand->offset, end = begin + operand->size;
    struct vk_copy *range = out->ranges;
    while (range < out->ranges + out->count && !(joins && range->from == binding->buffer))
        range++;
    if (range == out->ranges + out->count) {
        out->count++;
        *range = (struct vk_copy){.from = binding->buffer, .from_offset = begin};
    }
    uint64_t old_end = range->from_offset + range->size;
    range->from_offset = begin < range->from_offset ? begin : range->from_offset;
    range->size = (end > old_end ? end : old_end) - range->from_offset;
}

// Lists the buffers that `count` dispatches write.
static tn_status list_written(const struct measuring *m, const struct vk_dispatch *dispatch,
                              uint32_t count, struct segment_measure_written *out)
{
    const tn_host *host = m->device->host;
    const struct vk_dispatch *last = dispatch + count - 1;
    uint32_t end = last->first_operand + last->num_operands;
    out->ranges = calloc(end - dispatch->first_operand + 1, sizeof(*out->ranges));
    if (!out->ranges)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = dispatch->first_operand; i < end; i++) {
        const struct vk_operand *operand = &m->plan->operands[i];
        if (operand->slot < m->plan->num_slots && operand->access & VK_WRITES)
            add_written(m, operand, count > 1, out);
    }
    for (uint32_t i = 0; i < out->count; i++) {
        out->ranges[i].to_offset = out->size;
        out->size += out->ranges[i].size;
    }
    return TN_OK;
}

static void drop_written(const struct measuring *m, struct segment_measure_written *written)
{
    vk_buffer_destroy(m->device, written->before);
    vk_buffer_destroy(m->device, written->baked);
    free(written->ranges);
}

// Copies all ranges to `copy`, or back.
static tn_status copy_written(struct measuring *m,
                              const struct segment_measure_written *written,
                              const tn_buffer *copy, bool is_back)
{
    tn_status status = written->count > 0 ? segment_measure_begin(m) : TN_OK;
    if (written->count == 0 || status != TN_OK)
        return status;
    for (uint32_t i = 0; i < written->count; i++) {
        const struct vk_copy *range = &written->ranges[i];
        VkDeviceSize here = range->from->offset + range->from_offset;
        VkDeviceSize there = copy->offset + range->to_offset;
        m->device->vk->CmdCopyBuffer(m->commands,
                                     is_back ? copy->handle : range->from->handle,
                                     is_back ? range->from->handle : copy->handle, 1,
                                     &(VkBufferCopy){.srcOffset = is_back ? there : here,
                                                     .dstOffset = is_back ? here : there,
                                                     .size = range->size});
    }
    return segment_measure_finish(m, NULL, 0);
}

// Counts the bytes of a range in which the two kinds differ.
static tn_status compare_range(const struct measuring *m,
                               const struct segment_measure_written *written,
                               const struct vk_copy *range, uint64_t *differing)
{
    unsigned char *bytes = malloc(2 * range->size + 1);
    tn_device *device = m->device;
    if (!bytes)
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    tn_buffer *from = (tn_buffer *)(uintptr_t)range->from;
    tn_status status = vk_buffer_read(device, from, range->from_offset, bytes, range->size);
    if (status == TN_OK)
        status = vk_buffer_read(device, written->baked, range->to_offset,
                                bytes + range->size, range->size);
    for (uint64_t i = 0; status == TN_OK && i < range->size; i++)
        *differing += bytes[i] != bytes[range->size + i];
    free(bytes);
    return status;
}

// Runs both kinds on what the dispatch found; what its own code writes stays.
static tn_status segment_measure_compare(struct measuring *m,
                                         const struct vk_dispatch *dispatch,
                                         const struct vk_pipeline *baked,
                                         const struct segment_measure_written *written,
                                         tn_launch_cost *cost)
{
    tn_status status = TN_OK;
    if (baked) {
        status = copy_written(m, written, written->before, true);
        if (status == TN_OK)
            status = segment_measure_run(m, dispatch, baked);
        if (status == TN_OK)
            status = copy_written(m, written, written->baked, false);
    }
    if (status == TN_OK)
        status = copy_written(m, written, written->before, true);
    if (status == TN_OK)
        status = segment_measure_run(m, dispatch, NULL);
    for (uint32_t i = 0; baked && i < written->count && status == TN_OK; i++)
        status = compare_range(m, written, &written->ranges[i], &cost->differing);
    return status;
}

// --- a submission ----------------------------------------------------------------------

static tn_status keep_written(struct measuring *m, struct segment_measure_written *written)
{
    tn_status status = TN_OK;
    if (written->size > 0)
        status = vk_buffer_create(m->device, written->size, &written->before);
    return status == TN_OK ? copy_written(m, written, written->before, false) : status;
}

static void segment_measure_tell(const struct measuring *m, uint64_t number,
                                 const tn_launch_cost *cost)
{
    const struct vk_instance *instance = m->device->instance;
    if (instance->measured)
        instance->measured(instance->measure_context, number, cost);
}

static tn_status segment_measure(struct measuring *m, const struct vk_dispatch *dispatch,
                                 struct vk_measured *measured)
{
    const struct vk_pipeline *baked = measured->baked;
    const struct segment_measure_timed kinds[] = {{.dispatch = dispatch},
                                                  {.dispatch = dispatch, .baked = baked}};
    tn_launch_cost cost = {.struct_size = sizeof(cost),
                           .reason = baked ? NULL : measured->reason,
                           .baked_bytes = measured->baked_size};
    struct segment_measure_written written = {0};
    tn_status status = list_written(m, dispatch, 1, &written);
    if (status == TN_OK)
        status = keep_written(m, &written);
    if (status == TN_OK && written.size > 0)
        status = vk_buffer_create(m->device, written.size, &written.baked);
    if (status == TN_OK)
        status = time_both(m, &kinds[0], baked ? &kinds[1] : NULL, ROUND_NS, &cost);
    if (status == TN_OK)
        status = segment_measure_compare(m, dispatch, baked, &written, &cost);
    drop_written(m, &written);
    measured->is_told = status == TN_OK;
    if (status == TN_OK)
        segment_measure_tell(m, measured->number, &cost);
    return status;
}

// The dispatch that is measured for all that have equal numbers.
static struct vk_measured *segment_measure_find(const struct vk_plan *plan,
                                                uint32_t dispatch)
{
    struct vk_measured *measured = plan->measured;
    while (measured && (measured->dispatch != dispatch || measured->same))
        measured = measured->next;
    return measured && !measured->is_told ? measured : NULL;
}

// Puts the baked code in place of the dispatches' own.
static void bake_dispatches(const struct vk_plan *plan, struct vk_dispatch *dispatches)
{
    for (const struct vk_measured *i = plan->measured; i; i = i->next) {
        const struct vk_measured *measured = i->same ? i->same : i;
        if (!measured->baked)
            continue;
        dispatches[i->dispatch].pipeline = measured->baked;
        dispatches[i->dispatch].num_push = 0;
    }
}

// Times all dispatches as they are submitted together, and puts back what they write.
static tn_status measure_whole(struct measuring *m)
{
    const tn_host *host = m->device->host;
    const struct vk_plan *plan = m->plan;
    struct vk_plan baked = *plan;
    const struct segment_measure_timed kinds[] = {{.plan = plan}, {.plan = &baked}};
    tn_launch_cost cost = {.struct_size = sizeof(cost)};
    struct segment_measure_written written = {0};
    baked.dispatches = calloc(plan->num_dispatches, sizeof(*baked.dispatches));
    if (!baked.dispatches)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    memcpy(baked.dispatches, plan->dispatches,
           plan->num_dispatches * sizeof(*baked.dispatches));
    bake_dispatches(plan, baked.dispatches);
    tn_status status = list_written(m, plan->dispatches, plan->num_dispatches, &written);
    if (status == TN_OK)
        status = keep_written(m, &written);
    if (status == TN_OK)
        status = time_both(m, &kinds[0], &kinds[1], WHOLE_NS, &cost);
    if (status == TN_OK)
        status = copy_written(m, &written, written.before, true);
    drop_written(m, &written);
    free(baked.dispatches);
    if (status == TN_OK)
        segment_measure_tell(m, 0, &cost);
    return status;
}

tn_status vk_measure_run(tn_device *device, const tn_submission *submission,
                         const struct vk_recording *recording, uint64_t *out_point)
{
    const struct vk_plan *plan = &submission->executable->plan;
    struct measuring m = {
        .device = device, .submission = submission, .plan = plan, .recording = recording};
    tn_status status = open_measuring(&m);
    if (status == TN_OK)
        status = segment_measure_begin(&m);
    if (status == TN_OK)
        status = segment_measure_finish(&m, submission->waits, submission->num_waits);
    if (status == TN_OK)
        status = measure_whole(&m);
    for (uint32_t i = 0; i < plan->num_dispatches && status == TN_OK; i++) {
        struct vk_measured *measured = segment_measure_find(plan, i);
        status = measured ? segment_measure(&m, &plan->dispatches[i], measured)
                          : segment_measure_run(&m, &plan->dispatches[i], NULL);
    }
    close_measuring(&m);
    if (status == TN_OK)
        atomic_store(&submission->executable->is_measured, false);
    *out_point = m.point;
    return status;
}
