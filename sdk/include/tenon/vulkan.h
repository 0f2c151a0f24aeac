// SPDX-License-Identifier: MIT
// Launches of a GPU kernel, planned by a function: the `plan` of a tn_vulkan_kernel
// (families vulkan.glsl/1 and vulkan.spirv/1 of <tenon/kernel.h>).
//
// A plan sees one step and the limits of the device, and emits the step's launches: which
// of the kernel's modules runs, on how many workgroups, with which push and specialisation
// constants, on which memory. One row of a norm for each workgroup is
//
//   static tn_status plan(const tn_vulkan_plan *plan)
//   {
//       const tn_layout *x = &tn_step_input(plan->step, 0)->layout;
//       const uint32_t push[] = {(uint32_t)x->extent[1], (uint32_t)x->offset};
//       const tn_vulkan_operand operands[] = {tn_vulkan_input(0), tn_vulkan_output(0)};
//       return plan->launch(plan, &(tn_vulkan_launch){
//           .struct_size = sizeof(tn_vulkan_launch), .module = 0,
//           TN_VULKAN_GROUPS((uint32_t)x->extent[0], 1, 1),
//           TN_VULKAN_OPERANDS(operands), TN_VULKAN_PUSH(push)});
//   }
//
// Order. Launches run as if one after the other, in the order in which they are emitted.
// The backend places memory barriers from the operands: a launch waits for an earlier one
// when both access the same bytes and one of the two writes them. Launches that do not
// depend on each other may run at the same time.
//
// Purity. A plan is called when a step is compiled, not for each run, and not for a step
// whose outputs have no elements. Equal steps (the same kernel, layouts, attributes and
// answers of `shares`) on devices of equal limits get equal launches. Of a step, a plan
// reads the layouts, attributes and kernel, and neither slots, offsets nor ids. It keeps
// nothing, allocates nothing, and calls the host for `fail` only.
//
// Devices. A kernel runs where the device has its `features` (tn_kernel), so its modules
// may rely on these: "f16", "f64", "i8", "i16", "i64", "f16-matrices", "bf16-matrices",
// "f16-group-matrices" and "bf16-group-matrices" as in TN_VULKAN_HAS_...; "subgroup" is
// TN_VULKAN_SUBGROUP_ARITHMETIC; "shuffle" is TN_VULKAN_SUBGROUP_SHUFFLE, where each
// subgroup has the size of tn_vulkan_limits, a power of two from 4 to 128.
//
// Working memory is what the kernel's `scratch_size` asks for, since the core assigns
// memory before a device sees the step: a plan uses at most that, in any way.
//
// Prologues, epilogues. Where a rule of the kernel has TN_OPERAND_FUSES (<tenon/kernel.h>),
// elementwise work before that input, or behind that output, may become part of the step.
// The plan does nothing for it: the operand has TN_VALUE_FUSED, a contiguous layout and no
// memory, it is bound as ever, and the backend puts the program into the launch's module,
// where each load from the binding then computes the element, and each store hands it on.
//
// For that, the binding's block is an array of elements and nothing else, "{ float x[]; }",
// of elements with the dtype's number of bits: a float or an integer, or vectors of numbers
// of 32 bits for a wider dtype. The module does nothing but load such an input, and nothing
// but store such an output, element by element: no atomics, no pointers as arguments. What
// it stores is the result, so over all launches of a step each element is stored once. A
// launch that binds such an operand, in whatever way, has TN_VULKAN_FUSED_OPERANDS operands
// at most: those of the programs are bound behind them.
//
// A module that does otherwise is refused, with what it does, once an operand is fused. A
// plan that moves several elements at once looks for TN_VALUE_FUSED, and then launches a
// module that moves one. `accepts` sees in tn_kernel_query.fused what would be fused, and
// may decline it.
//
// Errors. What a plan asks for is checked before a driver sees it, against the step, the
// device's limits and the module (its entry point, bindings, push-constant block,
// specialisation constants, workgroup and shared memory). Whatever does not hold fails the
// compilation of the step, with the kernel's name, what was got and what was expected;
// nothing of the step runs. A plan that cannot go on returns host->fail(...), also after it
// has emitted launches. `launch` that failed fails again, so its status may be passed on at
// the end.
//
// Threads. A plan is called from any thread, by several at once. [any-thread]
#ifndef TENON_VULKAN_H
#define TENON_VULKAN_H

#include <tenon/backend.h>

// Each operand begins at a multiple of so many bytes of device memory, and so must a part
// of the scratch memory.
#define TN_VULKAN_ALIGNMENT 256

// The most operands of a launch that binds an operand with TN_OPERAND_FUSES.
#define TN_VULKAN_FUSED_OPERANDS 8

// Features of a device beyond Vulkan 1.2 with 8-bit and 16-bit storage buffers, which each
// has: bits of tn_vulkan_limits.features.
enum {
    TN_VULKAN_HAS_F16 = 1,      // shaders compute in 16-bit floats
    TN_VULKAN_HAS_F64 = 2,      // and in 64-bit floats
    TN_VULKAN_HAS_I8 = 4,       // 8-bit integers
    TN_VULKAN_HAS_I16 = 8,      // 16-bit integers
    TN_VULKAN_HAS_I64 = 16,     // 64-bit integers
    TN_VULKAN_IS_SOFTWARE = 32, // emulates a GPU on the processor
    // Cooperative matrices (VK_KHR_cooperative_matrix) of 16x16x16 f16, with sums in f32,
    // whose scope is a subgroup; the same of bfloat16 (VK_KHR_shader_bfloat16).
    TN_VULKAN_HAS_F16_MATRICES = 64,
    TN_VULKAN_HAS_BF16_MATRICES = 128,
    // Matrices of multiples of 32x32x16 f16, up to 128 along each axis, with sums in f32,
    // whose scope is a workgroup of 128 invocations; tensors' layouts and views, and
    // functions by element (VK_NV_cooperative_matrix2); the same of bfloat16.
    TN_VULKAN_HAS_F16_GROUP_MATRICES = 256,
    TN_VULKAN_HAS_BF16_GROUP_MATRICES = 512,
    // Sums of products of four signed bytes in a word (VK_KHR_shader_integer_dot_product)
    // by an instruction of the device, or on one that emulates a GPU anyway.
    TN_VULKAN_HAS_DOTS = 1024,
};

// Kinds of subgroup operations that compute shaders have: bits of
// tn_vulkan_limits.subgroup_operations, with the values of VkSubgroupFeatureFlagBits.
enum {
    TN_VULKAN_SUBGROUP_BASIC = 1,
    TN_VULKAN_SUBGROUP_VOTE = 2,
    TN_VULKAN_SUBGROUP_ARITHMETIC = 4,
    TN_VULKAN_SUBGROUP_BALLOT = 8,
    TN_VULKAN_SUBGROUP_SHUFFLE = 16,
    TN_VULKAN_SUBGROUP_SHUFFLE_RELATIVE = 32,
    TN_VULKAN_SUBGROUP_CLUSTERED = 64,
    TN_VULKAN_SUBGROUP_QUAD = 128,
};

// Limits and features of a device. Filled by the backend, constant while the device is
// open. A member that struct_size does not cover is read through TN_HAS.
typedef struct tn_vulkan_limits {
    uint32_t struct_size;         // sizeof(tn_vulkan_limits) as the backend was compiled
    uint32_t features;            // TN_VULKAN_HAS_...
    uint32_t max_groups[3];       // workgroups of a launch, along x, y and z
    uint32_t max_group_size[3];   // invocations of a workgroup, along x, y and z
    uint32_t max_invocations;     // of a workgroup, in all
    uint32_t max_shared;          // bytes of shared memory of a workgroup
    uint32_t max_push;            // bytes of push constants; at least 128
    uint32_t max_constants;       // specialisation constants of a launch; at least 16
    uint32_t max_operands;        // of a launch
    uint32_t subgroup_size;       // invocations
    uint32_t subgroup_operations; // TN_VULKAN_SUBGROUP_...
    uint32_t reserved;            // 0
    uint64_t max_range;           // bytes of an operand
} tn_vulkan_limits;

// --- a launch --------------------------------------------------------------------------

// How a launch uses an operand: at least one of the two.
enum {
    TN_VULKAN_READS = 1,
    TN_VULKAN_WRITES = 2,
};

// Kinds of operands.
enum {
    TN_VULKAN_INPUT = 1,   // input `index` of the step, which is not written
    TN_VULKAN_OUTPUT = 2,  // output `index`
    TN_VULKAN_SCRATCH = 3, // `size` bytes of the scratch memory, from `offset` on
    TN_VULKAN_DATA = 4,    // `size` bytes that `data` points to; only read
};

// The memory of one binding of a launch: operand i is binding i of set 0, a storage buffer.
// An input or output reaches from its value's first byte to its last element: an element
// lies where the layout says, its offset included. An optional input that was not given is
// memory of any contents.
typedef struct tn_vulkan_operand {
    uint16_t kind;   // TN_VULKAN_INPUT, ...
    uint16_t access; // TN_VULKAN_READS, TN_VULKAN_WRITES
    uint32_t index;  // of INPUT and OUTPUT
    // Bytes of SCRATCH and DATA; 0 for the others. `offset`, of SCRATCH only, is a multiple
    // of TN_VULKAN_ALIGNMENT; `size` is a multiple of 4.
    uint64_t offset, size;
    const void *data; // of DATA: copied before `launch` returns
} tn_vulkan_operand;

// Initialised operands: input `i`, which is read, and output `i`, which is written.
static inline tn_vulkan_operand tn_vulkan_input(uint32_t i)
{
    tn_vulkan_operand operand = {TN_VULKAN_INPUT, TN_VULKAN_READS, i, 0, 0, 0};
    return operand;
}
static inline tn_vulkan_operand tn_vulkan_output(uint32_t i)
{
    tn_vulkan_operand operand = {TN_VULKAN_OUTPUT, TN_VULKAN_WRITES, i, 0, 0, 0};
    return operand;
}
// `size` bytes of scratch memory from `offset` on, and `size` bytes at `data`, which are
// read.
static inline tn_vulkan_operand tn_vulkan_scratch(uint64_t offset, uint64_t size,
                                                  uint16_t access)
{
    tn_vulkan_operand operand = {TN_VULKAN_SCRATCH, access, 0, offset, size, 0};
    return operand;
}
static inline tn_vulkan_operand tn_vulkan_data(const void *data, uint64_t size)
{
    tn_vulkan_operand operand = {TN_VULKAN_DATA, TN_VULKAN_READS, 0, 0, size, data};
    return operand;
}

// The value of a specialisation constant of 32 bits: a bool (0 or 1), an integer, or the
// bits of a float.
typedef struct tn_vulkan_constant {
    uint32_t id; // constant_id in GLSL, SpecId in SPIR-V
    uint32_t value;
} tn_vulkan_constant;

// One launch of a module. Written by the plan, borrowed for the call of `launch`. Modules
// with other specialisation constants are other pipelines, which a driver compiles: what
// changes from shape to shape is better pushed.
typedef struct tn_vulkan_launch {
    uint32_t struct_size; // sizeof(tn_vulkan_launch) as the plugin was compiled
    uint32_t flags;       // 0
    uint32_t module;      // index in the kernel's modules
    // Workgroups along x, y and z; a launch with a 0 among them is left out. The shader
    // finds its work by gl_WorkGroupID: tn_vulkan_rows() helps with many.
    uint32_t groups[3];
    uint32_t num_operands;
    uint32_t num_push;      // words of 4 bytes; as many as the module's block has
    uint32_t num_constants; // each with an id that the module declares
    uint16_t operand_size;  // sizeof(tn_vulkan_operand) as the plugin was compiled
    uint16_t constant_size; // sizeof(tn_vulkan_constant), likewise
    const tn_vulkan_operand *operands;
    const uint32_t *push; // the push-constant block, as it lies in memory
    const tn_vulkan_constant *constants;
} tn_vulkan_launch;

// Initialisers of a tn_vulkan_launch, from arrays whose length the compiler knows.
#define TN_VULKAN_GROUPS(x, y, z) .groups = {(x), (y), (z)}
#define TN_VULKAN_OPERANDS(array)                                                          \
    .operands = (array), .num_operands = sizeof(array) / sizeof((array)[0]),               \
    .operand_size = sizeof(tn_vulkan_operand)
#define TN_VULKAN_PUSH(array)                                                              \
    .push = (array), .num_push = sizeof(array) / sizeof((array)[0])
#define TN_VULKAN_CONSTANTS(array)                                                         \
    .constants = (array), .num_constants = sizeof(array) / sizeof((array)[0]),             \
    .constant_size = sizeof(tn_vulkan_constant)

// --- a plan ----------------------------------------------------------------------------

// Arguments of a plan function. Filled by the backend, borrowed for the call.
struct tn_vulkan_plan {
    uint32_t struct_size; // sizeof(tn_vulkan_plan) as the backend was compiled
    uint32_t flags;       // 0
    const tn_host *host;  // for fail
    const tn_step *step;  // with kernel, attributes, and the layouts of its values
    const tn_vulkan_limits *limits;

    // Emits a launch. Fails, with a message, when it is not what the contract allows, and
    // then each time; no launch of the step runs.
    tn_status (*launch)(const tn_vulkan_plan *plan, const tn_vulkan_launch *launch);

    // 1 if output `output` begins at the same byte as input `input`, so that what is to
    // stay as it is need not be copied; else 0.
    int32_t (*shares)(const tn_vulkan_plan *plan, uint32_t input, uint32_t output);
};

// Lays `count` workgroups out in groups[3]: along x, and along y where x takes no more. A
// shader computes its number as gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x,
// and leaves alone what lies beyond the last: the last row may be longer than needed. Few
// workgroups are empty, since an empty one takes time too; and rows have few different
// lengths, so that a length may be a specialisation constant.
//
// A count beyond the device's limits gives more rows than it takes, and `launch` refuses.
static inline void tn_vulkan_rows(const tn_vulkan_limits *limits, uint64_t count,
                                  uint32_t groups[3])
{
    uint64_t most = limits->max_groups[0], length = count;
    uint64_t rows = count / most + (count % most > 0);
    if (rows > 1) {
        uint64_t unit = most / 64 + 1;
        length = count / rows + (count % rows > 0);
        length = (length + unit - 1) / unit * unit;
        length = length < most ? length : most;
    }
    groups[0] = (uint32_t)length;
    groups[1] = (uint32_t)(rows < UINT32_MAX ? rows : UINT32_MAX);
    groups[2] = 1;
}

// Module `i` of a kernel, below num_modules: modules are module_size bytes apart.
static inline const tn_vulkan_module *tn_vulkan_module_at(const tn_vulkan_kernel *kernel,
                                                          uint64_t i)
{
    const void *at = (const char *)kernel->modules + i * kernel->module_size;
    return (const tn_vulkan_module *)at;
}

#endif // TENON_VULKAN_H
