// SPDX-License-Identifier: MIT
// Compiles segments: plans the dispatches of each step, and uploads their constants.
#include "executable.h"

#include <stdlib.h>
#include "backend.h"
#include "groups.h"
#include "launches.h"
#include "measure.h"
#include "plan_ahead.h"
#include "../dispatch/plan_fused.h"
#include "../dispatch/plan_transpose.h"
#include "../program/program_rows.h"
#include "../dispatch/special.h"
#include "vulkan/attention/plan_attention.h"
#include "vulkan/matmul/plan_matmul.h"

uint32_t vk_fusion_limit(tn_device *device)
{
    return device->flavour->fusion_limit;
}

static const char *value_refused(const tn_device *device, const tn_value *value)
{
    tn_dtype dtype = value->layout.dtype;
    if (dtype == TN_DTYPE_NONE)
        return NULL;
    if ((dtype == TN_I64 || dtype == TN_U64) && !device->facts.i64)
        return "the device has no 64-bit integers in shaders";
    if (dtype == TN_F64 && !device->facts.f64)
        return "the device has no f64 in shaders: cast to f32";
    if (dtype == TN_COMPLEX128 && !device->facts.f64)
        return "the device has no f64 in shaders: cast to complex64";
    if (plan_operand(value, VK_READS).size > device->facts.limits.max_range)
        return "an operand is larger than the device's storage-buffer range";
    return NULL;
}

// Why the device refuses operands, those that pass through a program included: shaders
// count their elements in 32 bits. NULL: it takes them.
static const char *operands_refused(const tn_device *device, const tn_step *step)
{
    const char *reason = NULL;
    for (uint32_t i = 0; i < step->num_inputs && !reason; i++)
        reason = value_refused(device, tn_step_input(step, i));
    for (uint32_t i = 0; i < step->num_outputs && !reason; i++)
        reason = value_refused(device, tn_step_output(step, i));
    return reason;
}

// An invocation of a large product has up to 64 elements in registers, and the program is
// written out for each. With few elements in all a step saves its launch (128x128x128 on an
// H200: 19 us instead of 21); with many it is slower than two (4096x64x4096: 181 us, 134)
// but where terms are many.
#define MAX_PRODUCT 131072

static bool is_large_product(const tn_device *device, const tn_step *step)
{
    enum kernel_kind kind = plan_own_kind(device, step);
    bool is_matmul = kind == KERNEL_MATMUL;
    return (is_matmul || kind == KERNEL_PRODUCT) &&
           layout_count(&tn_step_output(step, 0)->layout) > MAX_PRODUCT &&
           !(is_matmul && product_hides_program(&device->facts.limits, step));
}

// Operands of a launch that binds one that passes through a program, at most.
static uint32_t fusing_operands(const tn_device *device, const tn_step *step)
{
    enum kernel_kind kind = plan_own_kind(device, step);
    return kind == KERNEL_ATTENTION || kind == KERNEL_CACHED_ATTENTION
               ? VK_ATTENTION_FEW_OPERANDS
               : TN_VULKAN_FUSED_OPERANDS;
}

// Why the device does not fuse the program into the step's kernel; NULL: it does.
static const char *vk_segment_fused_refused(tn_device *device, const tn_step *step,
                                            const tn_fused *fused)
{
    const char *reason = device->flavour->program_refused(device, fused->program);
    for (uint32_t i = 0; i < fused->num_inputs && !reason; i++)
        reason = value_refused(device, tn_fused_input(step, fused, i));
    for (uint32_t i = 0; i < fused->num_outputs && !reason; i++)
        reason = value_refused(device, tn_fused_output(step, fused, i));
    return reason;
}

int32_t vk_step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    const char *reason = operands_refused(device, step);
    if (!reason && step->program)
        reason = device->flavour->program_refused(device, step->program);
    if (!reason && step->program && (step->program->flags & TN_EXPR_ROWS))
        reason = program_rows_refused(step);
    if (!reason && !step->program && !step->kernel)
        reason = "there is no kernel for it, and references run on the CPU only";
    if (!reason && step->kernel &&
        strcmp(step->kernel->family, TN_FAMILY_VULKAN_GLSL) == 0 &&
        !device->flavour->compile)
        reason = "GLSL needs a compiler, which this backend has not";
    if (!reason && step->num_fused > 0 && !device->is_software &&
        is_large_product(device, step))
        reason = "on a GPU a large product is faster alone";
    if (!reason)
        reason = plan_fused_refused(device, step, fusing_operands(device, step));
    for (uint32_t i = 0; i < step->num_fused && !reason; i++)
        reason = vk_segment_fused_refused(device, step, tn_step_fused(step, i));
    if (reason && out_reason)
        *out_reason = reason;
    return reason == NULL;
}

static tn_status plan_step(struct vk_plan *plan, const tn_step *step)
{
    plan->planned = step;
    bool is_done;
    tn_status status = vk_groups_plan(plan, &is_done);
    if (is_done || (step->program && program_elements(step) == 0))
        return status;
    if (!plan->device->is_software && plan_is_transpose(step))
        return plan_transpose(plan, step);
    if (step->program)
        return plan->device->flavour->plan_program(plan, step);
    if (!step->kernel)
        return plan->device->host->fail(plan->device->host, TN_ERR_UNSUPPORTED,
                                        "%s: no kernel",
                                        step->label ? step->label : "step");
    return plan_kernel(plan, step);
}

static tn_status plan_steps(struct vk_plan *plan, const tn_segment *segment)
{
    struct vk_groups *groups = vk_groups_find(plan, segment);
    plan->groups = groups;
    tn_status status = vk_ahead_plan(segment, plan_step, plan);
    plan->groups = NULL;
    free(groups);
    return status;
}

static tn_status upload_constants(tn_device *device, tn_executable *executable)
{
    const struct vk_plan *plan = &executable->plan;
    if (plan->num_constants == 0)
        return TN_OK;
    uint64_t size = plan->num_constants * sizeof(uint32_t);
    tn_status status = vk_buffer_create_visible(device, size, &executable->constants);
    if (status == TN_OK)
        memcpy(executable->constants->map, plan->constants, size);
    return status;
}

tn_status vk_segment_compile(tn_device *device, const tn_segment *segment,
                             tn_executable **out_executable)
{
    if (vk_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    tn_executable *executable = calloc(1, sizeof(*executable));
    if (!executable)
        return device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    pthread_mutex_init(&executable->lock, NULL);
    pthread_mutex_init(&executable->trace_lock, NULL);
    executable->segment = *segment;
    executable->num_slots = segment->num_slots;
    executable->plan.device = device;
    executable->plan.slots = segment->slots;
    executable->plan.num_slots = segment->num_slots;
    executable->wanted = calloc(segment->num_slots + 1, sizeof(*executable->wanted));
    tn_status status = TN_OK;
    if (!executable->wanted)
        status = device->host->fail(device->host, TN_ERR_MEMORY, "out of memory");
    if (status == TN_OK)
        status = plan_steps(&executable->plan, segment);
    if (status == TN_OK)
        status = vk_special_plan(&executable->plan);
    if (status == TN_OK)
        status = upload_constants(device, executable);
    if (status == TN_OK && device->instance->hears_launches)
        status = vk_launches_tell(&executable->plan, segment);
    if (status != TN_OK) {
        vk_executable_destroy(device, executable);
        return status;
    }
    atomic_init(&executable->is_measured, executable->plan.measured != NULL);
    *out_executable = executable;
    return TN_OK;
}

void vk_executable_destroy(tn_device *device, tn_executable *executable)
{
    if (!executable)
        return;
    for (uint32_t i = 0; i < executable->num_recordings; i++)
        vk_recording_destroy(device, executable, &executable->recordings[i]);
    if (executable->pool)
        device->vk->DestroyCommandPool(device->handle, executable->pool, NULL);
    vk_buffer_destroy(device, executable->constants);
    vk_special_finish(&executable->plan);
    vk_measure_finish(&executable->plan);
    plan_finish(&executable->plan);
    pthread_mutex_destroy(&executable->lock);
    pthread_mutex_destroy(&executable->trace_lock);
    free(executable->wanted);
    free(executable);
}
