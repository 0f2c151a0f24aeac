// SPDX-License-Identifier: MIT
// Emits launches of the kernels here, whose modules go by name.
#include "launch.h"

#include <tenon/ops/reference.h>

const char *dtype_glsl(tn_dtype dtype)
{
    return tn_dtype_name(dtype);
}

uint32_t dtype_bytes(tn_dtype dtype)
{
    return (uint32_t)tn_dtype_bytes(dtype);
}

void kernel_divisor(uint64_t divisor, uint32_t out[2])
{
    uint32_t bits = 0;
    divisor = divisor > 0 ? divisor : 1;
    while (UINT64_C(1) << bits < divisor)
        bits++;
    uint64_t above = (UINT64_C(1) << bits) - divisor;
    out[0] = (uint32_t)((above << 32) / divisor + 1);
    out[1] = (bits > 0 ? 1 : 0) | (bits > 1 ? bits - 1 : 0) << 1;
}

void kernel_fill(tn_dtype dtype, double value, uint32_t out[4])
{
    tn_tensor fill = {out, {.dtype = dtype, .rank = 1, .extent = {1}}};
    for (uint32_t i = 0; i < 16 / dtype_bytes(dtype); i++)
        tn_set_f64(&fill, i, value);
}

const tn_vulkan_module *module_find(const tn_vulkan_module *modules, uint32_t count,
                                    const char *name)
{
    uint32_t begin = 0, end = count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        int order = strcmp(name, modules[middle].name);
        if (order == 0)
            return &modules[middle];
        if (order < 0)
            end = middle;
        else
            begin = middle + 1;
    }
    return NULL;
}

static void kernel_launch_lay_out(const tn_vulkan_plan *plan, struct kernel_launch *launch)
{
    if (launch->fixed_grid)
        return;
    tn_vulkan_rows(plan->limits, launch->groups, launch->grid);
    if (launch->grid[1] > 1)
        launch->constants[launch->num_constants++] =
            (tn_vulkan_constant){SPEC_GRID_ROW, launch->grid[0]};
}

tn_status kernel_launch(const tn_vulkan_plan *plan, struct kernel_launch *launch)
{
    const tn_vulkan_kernel *kernel = plan->step->kernel->payload;
    const tn_vulkan_module *module =
        module_find(kernel->modules, kernel->num_modules, launch->name);
    if (!module)
        return plan->host->fail(plan->host, TN_ERR_INTERNAL, "no module named %s",
                                launch->name);
    kernel_launch_lay_out(plan, launch);
    bool is_own = plan->flags & KERNEL_PLAN_OWN;
    const struct own_launch own = {
        .face = {.struct_size = is_own ? sizeof(own) : sizeof(own.face),
                 .module = (uint32_t)(module - kernel->modules),
                 TN_VULKAN_GROUPS(launch->grid[0], launch->grid[1], launch->grid[2]),
                 .num_operands = launch->num_operands,
                 .num_push = launch->num_push,
                 .num_constants = launch->num_constants,
                 .operand_size = sizeof(launch->operands[0]),
                 .constant_size = sizeof(launch->constants[0]),
                 .operands = launch->operands,
                 .push = launch->push,
                 .constants = launch->constants},
        .values = launch->values};
    return plan->launch(plan, &own.face);
}
