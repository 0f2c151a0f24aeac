// SPDX-License-Identifier: MIT
// Measures launches beside the same launches of code with constants written out, for a
// program that asks for it (<tenon/launches.h>).
#ifndef VULKAN_SEGMENT_MEASURE_H
#define VULKAN_SEGMENT_MEASURE_H

#include "executable.h"
#include "../spirv/spirv_bake.h"

// Compiles the code for the plan's last dispatch, which is measured at its first run. Its
// constants are in `lists`; `number` is told with the times.
tn_status vk_measure_plan(struct vk_plan *plan, uint32_t dispatch,
                          const struct vk_pipeline_desc *desc,
                          const struct spirv_words *lists, uint32_t num_lists,
                          uint64_t number);
void vk_measure_finish(struct vk_plan *plan);

// Runs the dispatches of a submission, whose recording has the descriptor sets, one after
// the other, and tells the times of those that are to be measured. All has run when it
// returns.
tn_status vk_measure_run(tn_device *device, const tn_submission *submission,
                         const struct vk_recording *recording, uint64_t *out_point);

#endif // VULKAN_SEGMENT_MEASURE_H
