// SPDX-License-Identifier: MIT
// Shared by the launch plans, over <tenon/vulkan.h>: a launch by the name of its module,
// and what the kernels' records tell the backend that they are built into. Pure functions.
#ifndef KERNELS_VULKAN_LAUNCH_H
#define KERNELS_VULKAN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <tenon/vulkan.h>

// The suffix of a dtype's types in program/types.glsl, and in the names of variants: "f32".
const char *dtype_glsl(tn_dtype dtype);
uint32_t dtype_bytes(tn_dtype dtype);

static inline uint64_t layout_count(const tn_layout *layout)
{
    uint64_t n = 1;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        n *= (uint64_t)layout->extent[axis];
    return n;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

// Whether a value passes through a program: then its elements are those of its dtype, and
// are not moved in pairs.
static inline bool passes_program(const tn_value *value)
{
    return (value->flags & TN_VALUE_FUSED) != 0;
}

// Bytes of a variant's name, such as "reduce_sum_f32".
#define VARIANT_NAME 64

// The id of GRID_ROW in program/types.glsl: the length of a row of workgroups, where there
// are several.
#define SPEC_GRID_ROW 1000

// A launch under construction: by the name of its module in a family's variants.txt.
#define KERNEL_OPERANDS 11
#define KERNEL_PUSH 32
#define KERNEL_CONSTANTS 16
struct kernel_launch {
    const char *name;
    uint32_t num_operands, num_push, num_constants;
    tn_vulkan_operand operands[KERNEL_OPERANDS];
    uint32_t push[KERNEL_PUSH];
    uint32_t values; // bit i: push[i] is a value; others are extents, strides and offsets
    tn_vulkan_constant constants[KERNEL_CONSTANTS + 1]; // ids 0, 1, ... and GRID_ROW
    // Either so many workgroups, which find their number by workgroup() of types.glsl, or
    // with `fixed_grid` these along each axis.
    uint64_t groups;
    bool fixed_grid;
    uint32_t grid[3];
};

static inline void kernel_bind(struct kernel_launch *launch, tn_vulkan_operand operand)
{
    launch->operands[launch->num_operands++] = operand;
}
static inline void kernel_push(struct kernel_launch *launch, uint64_t word)
{
    launch->push[launch->num_push++] = (uint32_t)word;
}
static inline void kernel_push_value(struct kernel_launch *launch, uint32_t bits)
{
    launch->values |= UINT32_C(1) << launch->num_push;
    kernel_push(launch, bits);
}
static inline void kernel_push_float(struct kernel_launch *launch, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    kernel_push_value(launch, bits);
}
// The factor and the shifts of divide.glsl for a divisor below 2^32. Where there are no
// elements it may be 0, and nothing is divided.
void kernel_divisor(uint64_t divisor, uint32_t out[2]);
static inline void kernel_push_divisor(struct kernel_launch *launch, uint64_t divisor)
{
    kernel_divisor(divisor, launch->push + launch->num_push);
    launch->num_push += 2;
}
// 16 bytes of a value's elements, one behind the other, however many move at once.
void kernel_fill(tn_dtype dtype, double value, uint32_t out[4]);
static inline void kernel_spec(struct kernel_launch *launch, uint32_t value)
{
    uint32_t id = launch->num_constants++;
    launch->constants[id] = (tn_vulkan_constant){id, value};
}

// --- own kernels -----------------------------------------------------------------------

// Kinds of kernels that the backend treats otherwise than by running them, by their record.
// Large PRODUCTs run alone, as large MATMULs do; ATTENTION binds more operands.
enum kernel_kind {
    KERNEL_OTHER,
    KERNEL_REDUCTION,
    KERNEL_MATMUL,
    KERNEL_PRODUCT,
    KERNEL_ATTENTION,
    KERNEL_CACHED_ATTENTION,
    KERNEL_UPDATE, // in place, of a region that begins at indices
    KERNEL_CACHE_UPDATE,
};

// The payload of a kernel by OWN_KERNEL (record.h), and of no other: of those that have its
// modules.
struct own_kernel {
    tn_vulkan_kernel face; // first
    enum kernel_kind kind;
};

// tn_vulkan_plan.flags: the backend whose own the kernel is plans it, and no other program,
// such as `tenon check`.
#define KERNEL_PLAN_OWN UINT32_C(0x80000000)

// A launch of own kernels where KERNEL_PLAN_OWN: face.struct_size tells it from launches of
// others.
struct own_launch {
    tn_vulkan_launch face;
    uint64_t values; // as of a kernel_launch
};

// `count` words of memory that are 0 before and behind each launch: launches count with
// atomics, and the last one to count sets its word back. Runs that may be on a device at
// once have words of their own. Where KERNEL_PLAN_OWN alone.
#define VK_OPERAND_COUNTERS 255 // tn_vulkan_operand.kind
static inline tn_vulkan_operand kernel_counters(uint64_t count)
{
    tn_vulkan_operand operand = {.kind = VK_OPERAND_COUNTERS,
                                 .access = TN_VULKAN_READS | TN_VULKAN_WRITES,
                                 .size = 4 * count};
    return operand;
}

// The same memory for another use.
static inline tn_vulkan_operand operand_for(tn_vulkan_operand operand, uint16_t access)
{
    operand.access = access;
    return operand;
}

// A module of a table that is sorted by name; NULL: there is none of that name.
const tn_vulkan_module *module_find(const tn_vulkan_module *modules, uint32_t count,
                                    const char *name);
// Emits a launch.
tn_status kernel_launch(const tn_vulkan_plan *plan, struct kernel_launch *launch);

#endif // KERNELS_VULKAN_LAUNCH_H
