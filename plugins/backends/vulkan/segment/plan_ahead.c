// SPDX-License-Identifier: MIT
#include "plan_ahead.h"

#include "../pipeline/ahead.h"

struct ahead_plans {
    const tn_segment *segment; // borrowed
    vk_plan_step *plan_step;
    struct vk_plan plans[VK_AHEAD_THREADS + 1]; // by thread; to be thrown away
};

static void plan_ahead(void *context, uint32_t thread, uint32_t step)
{
    struct ahead_plans *ahead = context;
    struct vk_plan *plan = &ahead->plans[thread];
    plan->step = step;
    (void)ahead->plan_step(plan, tn_segment_step(ahead->segment, step));
}

tn_status vk_ahead_plan(const tn_segment *segment, vk_plan_step *plan_step,
                        struct vk_plan *plan)
{
    struct ahead_plans plans = {.segment = segment, .plan_step = plan_step};
    struct vk_ahead ahead = {.host = plan->device->host,
                             .num_steps = segment->num_steps,
                             .plan = plan_ahead,
                             .context = &plans};
    for (uint32_t i = 0; i <= VK_AHEAD_THREADS; i++)
        plans.plans[i] = (struct vk_plan){.device = plan->device,
                                          .slots = plan->slots,
                                          .num_slots = plan->num_slots,
                                          .groups = plan->groups,
                                          .ahead = &ahead,
                                          .is_ahead = true};
    tn_status status = TN_OK;
    plan->ahead = &ahead;
    for (plan->step = 0; plan->step < segment->num_steps && status == TN_OK; plan->step++) {
        vk_ahead_reach(&ahead, plan->step);
        status = plan_step(plan, tn_segment_step(segment, plan->step));
    }
    vk_ahead_finish(&ahead);
    for (uint32_t i = 0; i <= VK_AHEAD_THREADS; i++)
        plan_finish(&plans.plans[i]);
    plan->ahead = NULL;
    return status;
}
