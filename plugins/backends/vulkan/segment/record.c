// SPDX-License-Identifier: MIT
// Records a plan's dispatches into a command buffer, and points its descriptor sets to the
// buffers of a submission.
#include "executable.h"

#include <stdlib.h>

void vk_recording_destroy(tn_device *device, const tn_executable *executable,
                          struct vk_recording *recording)
{
    const struct vk_device_api *vk = device->vk;
    if (recording->queries)
        vk->DestroyQueryPool(device->handle, recording->queries, NULL);
    if (recording->commands)
        vk->FreeCommandBuffers(device->handle, executable->pool, 1, &recording->commands);
    if (recording->pool)
        vk->DestroyDescriptorPool(device->handle, recording->pool, NULL);
    vk_buffer_destroy(device, recording->counters);
    free(recording->sets);
    free(recording->bound);
    *recording = (struct vk_recording){0};
}

static tn_status create_sets(tn_device *device, const struct vk_plan *plan,
                             struct vk_recording *recording)
{
    const struct vk_device_api *vk = device->vk;
    VkResult result = vk->CreateDescriptorPool(
        device->handle,
        &(VkDescriptorPoolCreateInfo){
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .flags = device->facts.update_after_bind
                         ? VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT
                         : 0,
            .maxSets = plan->num_sets,
            .poolSizeCount = 1,
            .pPoolSizes = &(VkDescriptorPoolSize){VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  plan->num_bindings + 1},
        },
        NULL, &recording->pool);
    if (result != VK_SUCCESS) {
        recording->pool = VK_NULL_HANDLE;
        return vk_fail(device, result, "vkCreateDescriptorPool");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; result == VK_SUCCESS && i < plan->num_dispatches; i++) {
        if (plan->dispatches[i].set != count)
            continue; // an earlier dispatch's
        result = vk->AllocateDescriptorSets(
            device->handle,
            &(VkDescriptorSetAllocateInfo){
                .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                .descriptorPool = recording->pool,
                .descriptorSetCount = 1,
                .pSetLayouts = &plan->dispatches[i].pipeline->set_layout},
            &recording->sets[count++]);
    }
    return vk_check(device, result, "vkAllocateDescriptorSets");
}

// Runs of one recording follow each other, with a barrier between, so its counters are at 0
// when one begins.
static tn_status create_counters(tn_device *device, const struct vk_plan *plan,
                                 struct vk_recording *recording)
{
    uint64_t size = (uint64_t)plan->num_counters * 4;
    if (size == 0)
        return TN_OK;
    tn_status status = vk_buffer_create_visible(device, size, &recording->counters);
    if (status == TN_OK)
        memset(recording->counters->map, 0, size);
    return status;
}

static tn_status create_objects(tn_device *device, const tn_executable *executable,
                                struct vk_recording *recording)
{
    const struct vk_plan *plan = &executable->plan;
    tn_status status = vk_commands_create(device, executable->pool, &recording->commands);
    if (status == TN_OK && plan->num_dispatches > 0)
        status = create_sets(device, plan, recording);
    if (status == TN_OK)
        status = create_counters(device, plan, recording);
    if (status != TN_OK || !vk_is_traced(device, executable))
        return status;
    VkResult result = device->vk->CreateQueryPool(
        device->handle,
        &(VkQueryPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                 .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                 .queryCount = 2 * plan->num_dispatches},
        NULL, &recording->queries);
    if (result != VK_SUCCESS)
        recording->queries = VK_NULL_HANDLE;
    return vk_check(device, result, "vkCreateQueryPool");
}

tn_status vk_recording_create(tn_device *device, tn_executable *executable,
                              struct vk_recording *recording)
{
    const struct vk_plan *plan = &executable->plan;
    tn_status status = executable->pool ? TN_OK : vk_pool_create(device, &executable->pool);
    if (status != TN_OK)
        return status;
    *recording = (struct vk_recording){
        .plan = plan,
        .version = executable->version,
        .sets = calloc(plan->num_sets + 1, sizeof(VkDescriptorSet)),
        .bound = calloc(executable->num_slots + 1, sizeof(struct vk_bound))};
    if (!recording->sets || !recording->bound) {
        vk_recording_destroy(device, executable, recording);
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    }
    status = create_objects(device, executable, recording);
    if (status != TN_OK)
        vk_recording_destroy(device, executable, recording);
    return status;
}

// --- descriptors -----------------------------------------------------------------------

static VkDescriptorBufferInfo buffer_info(const struct vk_recording *recording,
                                          const struct vk_operand *operand,
                                          const tn_submission *submission)
{
    const tn_executable *executable = submission->executable;
    if (operand->slot == VK_SLOT_CONSTANTS)
        return (VkDescriptorBufferInfo){
            executable->constants->handle, executable->constants->offset + operand->offset,
            operand->size ? operand->size : executable->plan.num_constants * 4};
    if (operand->slot == VK_SLOT_COUNTERS)
        return (VkDescriptorBufferInfo){recording->counters->handle,
                                        recording->counters->offset + operand->offset,
                                        operand->size};
    const tn_binding *binding = tn_submission_binding(submission, operand->slot);
    return (VkDescriptorBufferInfo){
        binding->buffer->handle,
        binding->buffer->offset + binding->offset + operand->offset, operand->size};
}

#define MAX_WRITES 256
struct writes {
    VkWriteDescriptorSet items[MAX_WRITES];
    VkDescriptorBufferInfo infos[MAX_WRITES];
    uint32_t count;
};

static void segment_record_flush(tn_device *device, struct writes *writes)
{
    if (writes->count > 0)
        device->vk->UpdateDescriptorSets(device->handle, writes->count, writes->items, 0,
                                         NULL);
    writes->count = 0;
}

bool vk_recording_is_bound(const tn_executable *executable,
                           const struct vk_recording *recording)
{
    return recording->written &&
           memcmp(recording->bound, executable->wanted,
                  executable->num_slots * sizeof(struct vk_bound)) == 0;
}

// Whether descriptors for `slot` already point to the wanted memory.
static bool segment_record_is_same(const tn_executable *executable,
                                   const struct vk_recording *recording, uint32_t slot)
{
    return slot == VK_SLOT_CONSTANTS || slot == VK_SLOT_COUNTERS ||
           memcmp(&recording->bound[slot], &executable->wanted[slot],
                  sizeof(struct vk_bound)) == 0;
}

static void write_sets(tn_device *device, struct vk_recording *recording,
                       const tn_submission *submission)
{
    const tn_executable *executable = submission->executable;
    const struct vk_plan *plan = &executable->plan;
    struct writes writes;
    uint32_t num_sets = 0;
    writes.count = 0;
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        const struct vk_dispatch *dispatch = &plan->dispatches[i];
        if (dispatch->set != num_sets)
            continue; // an earlier dispatch's
        num_sets++;
        for (uint32_t j = 0; j < dispatch->num_operands; j++) {
            const struct vk_operand *operand = &plan->operands[dispatch->first_operand + j];
            if (recording->written &&
                segment_record_is_same(executable, recording, operand->slot))
                continue;
            uint32_t at = writes.count++;
            writes.infos[at] = buffer_info(recording, operand, submission);
            writes.items[at] =
                (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = recording->sets[dispatch->set],
                                       .dstBinding = j,
                                       .descriptorCount = 1,
                                       .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                       .pBufferInfo = &writes.infos[at]};
            if (writes.count == MAX_WRITES)
                segment_record_flush(device, &writes);
        }
    }
    segment_record_flush(device, &writes);
}

// --- commands --------------------------------------------------------------------------

static void segment_record_barrier(tn_device *device, VkCommandBuffer commands,
                                   VkPipelineStageFlags from, VkAccessFlags from_access,
                                   VkPipelineStageFlags to, VkAccessFlags to_access)
{
    device->vk->CmdPipelineBarrier(
        commands, from, to, 0, 1,
        &(VkMemoryBarrier){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                           .srcAccessMask = from_access,
                           .dstAccessMask = to_access},
        0, NULL, 0, NULL);
}

void vk_record_barrier(tn_device *device, VkCommandBuffer commands)
{
    segment_record_barrier(device, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

// Compares the pushed words of dispatches with one pipeline, which push at least one.
static bool is_push_same(const struct vk_plan *plan, const struct vk_dispatch *a,
                         const struct vk_dispatch *b)
{
    return memcmp(plan->push + a->first_push, plan->push + b->first_push,
                  a->num_push * sizeof(*plan->push)) == 0;
}

// Pipeline, descriptor set and push constants of the dispatch that was recorded before are
// still set.
static void record_dispatch(tn_device *device, const struct vk_plan *plan,
                            const struct vk_recording *recording, VkCommandBuffer commands,
                            uint32_t index)
{
    const struct vk_device_api *vk = device->vk;
    const struct vk_dispatch *dispatch = &plan->dispatches[index];
    const struct vk_dispatch *before = index > 0 ? dispatch - 1 : NULL;
    bool same_pipeline = before && before->pipeline == dispatch->pipeline;
    if (dispatch->barrier)
        vk_record_barrier(device, commands);
    if (recording->queries)
        vk->CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                              recording->queries, 2 * index);
    if (!same_pipeline)
        vk->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                            dispatch->pipeline->handle);
    if (!same_pipeline || before->set != dispatch->set)
        vk->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                  dispatch->pipeline->layout, 0, 1,
                                  &recording->sets[dispatch->set], 0, NULL);
    if (dispatch->num_push > 0 && !(same_pipeline && is_push_same(plan, before, dispatch)))
        vk->CmdPushConstants(commands, dispatch->pipeline->layout,
                             VK_SHADER_STAGE_COMPUTE_BIT, 0, dispatch->num_push * 4,
                             plan->push + dispatch->first_push);
    vk->CmdDispatch(commands, dispatch->groups[0], dispatch->groups[1],
                    dispatch->groups[2]);
    if (recording->queries)
        vk->CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                              recording->queries, 2 * index + 1);
}

void vk_record_dispatches(tn_device *device, const struct vk_plan *plan,
                          const struct vk_recording *recording)
{
    for (uint32_t i = 0; i < plan->num_dispatches; i++)
        record_dispatch(device, plan, recording, recording->commands, i);
}

void vk_record_beside(tn_device *device, VkCommandBuffer commands, const void *context)
{
    const struct vk_recording *recording = context;
    vk_record_barrier(device, commands);
    for (uint32_t i = 0; i < recording->plan->num_dispatches; i++)
        record_dispatch(device, recording->plan, recording, commands, i);
}

static tn_status segment_record(tn_device *device, const struct vk_plan *plan,
                                struct vk_recording *recording)
{
    const struct vk_device_api *vk = device->vk;
    VkCommandBuffer commands = recording->commands;
    VkResult result = vk->BeginCommandBuffer(
        commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT});
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkBeginCommandBuffer");
    if (recording->queries)
        vk->CmdResetQueryPool(commands, recording->queries, 0, 2 * plan->num_dispatches);
    // Memory barrier after the queue's earlier work and the work that the submission waited
    // for: the results are visible, and their inputs may be overwritten. Copies on the
    // device have barriers of their own; the host's is submitted where it is waited for.
    vk_record_barrier(device, commands);
    vk_record_dispatches(device, plan, recording);
    // The host reads results through mapped memory, after waiting.
    if (vk_memory_is_mapped(device))
        segment_record_barrier(device, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                               VK_ACCESS_HOST_READ_BIT);
    return vk_check(device, vk->EndCommandBuffer(commands), "vkEndCommandBuffer");
}

tn_status vk_recording_update(tn_device *device, struct vk_recording *recording,
                              const tn_submission *submission)
{
    const tn_executable *executable = submission->executable;
    bool changed = !vk_recording_is_bound(executable, recording);
    if (changed) {
        write_sets(device, recording, submission);
        memcpy(recording->bound, executable->wanted,
               executable->num_slots * sizeof(recording->bound[0]));
        recording->written = true;
    }
    // Without update-after-bind, a change of a set invalidates the commands recorded with
    // it.
    if (recording->recorded && (!changed || device->facts.update_after_bind))
        return TN_OK;
    tn_status status = segment_record(device, &executable->plan, recording);
    recording->recorded = status == TN_OK;

    return status;
}
