// SPDX-License-Identifier: MIT
// Kernels: code for one primitive in one family. A family is a contract by name between
// those who bring kernels (op packs) and those who run them (backends); neither links the
// other, and either may be written first.
//
//   cpu.c/1          a C function over strided memory           payload: tn_cpu_kernel
//   vulkan.glsl/1    GLSL compute source, compiled at run time   payload: tn_vulkan_kernel
//   vulkan.spirv/1   the same, compiled beforehand               payload: tn_vulkan_kernel
//   expr/1           see <tenon/expr.h>: made by the core, never brought
//
// A backend may define families of its own ("com.vendor.thing/1") with its own payload.
//
// Which kernel runs. Of those whose family the device's backend consumes: what
// TENON_KERNELS says; then those whose predicates hold; then the order of the backend's
// families; then priority, higher first; then the more specific predicates (fewer dtypes);
// then the plugin's id and the kernel's name in byte order. Directory and load order never
// matter.
//
// Threads. Records are static and constant until the plugin's deinit. `accepts` and
// `scratch_size` are pure and may be called from any thread.
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

// Families that the project's backends consume; see above for their payloads.
#define TN_FAMILY_CPU "cpu.c/1"
#define TN_FAMILY_VULKAN_GLSL "vulkan.glsl/1"
#define TN_FAMILY_VULKAN_SPIRV "vulkan.spirv/1"

// What a kernel asks of one operand.
enum {
    TN_NEEDS_ANY = 0,        // any strides
    TN_NEEDS_CONTIGUOUS = 1, // row-major without gaps
    TN_NEEDS_ROWS = 2,       // last axis has stride 1 (or extent 1); others any
};

// What a kernel takes as one operand.
typedef struct tn_operand_rule {
    uint32_t dtypes; // set of TN_DTYPE_BIT; 0: any
    uint32_t needs;  // TN_NEEDS_...
} tn_operand_rule;

// One application, as predicates see it. Outputs are contiguous unless said otherwise.
typedef struct tn_kernel_query {
    uint32_t struct_size;
    uint32_t flags;          // 0
    const tn_layout *inputs; // dtype NONE: not given
    const tn_layout *outputs;
    const void *attrs;
    uint32_t num_inputs;
    uint32_t num_outputs;
} tn_kernel_query;

enum {
    // An input that does not meet `needs` makes this kernel ineligible, instead of being
    // copied to a contiguous one first.
    TN_KERNEL_NO_COPIES = 1,
    // All operands (inputs and outputs) must have one dtype.
    TN_KERNEL_SAME_DTYPE = 2,
};

// Code for one primitive in one family, and when it may be chosen. Constant for as long as
// its plugin is loaded.
typedef struct tn_kernel {
    uint32_t struct_size;
    uint32_t flags;
    const char *primitive; // "base.matmul/1"
    const char *family;
    const char *name; // "cblas"; unique within plugin and primitive
    int32_t priority; // <100 reference, 100-499 generic, 500-899 tuned, >=900 user's own
    uint32_t num_operands;
    // Rules for inputs in order, then outputs; the last one holds for all that follow.
    // NULL: anything goes.
    const tn_operand_rule *operands;
    const char *features; // device features needed, by comma: "f64,subgroup"; may be NULL

    // Optional, after the rules above hold: 0 to refuse. Records no failure.
    int32_t (*accepts)(const tn_kernel_query *query);

    // Optional: bytes of working memory that a launch needs. More than INT64_MAX, such as
    // what does not fit (<tenon/checked.h>), is refused.
    uint64_t (*scratch_size)(const tn_kernel_query *query);

    const void *payload; // by family
} tn_kernel;

// --- cpu.c/1 ---------------------------------------------------------------------------

// Instruction sets that processor and operating system both offer.
enum {
    TN_CPU_AVX2 = 1,   // AVX2, FMA, F16C
    TN_CPU_AVX512 = 2, // AVX-512 F, BW, CD, DQ, VL
    TN_CPU_NEON = 4,
};

// What a cpu.c/1 kernel or a reference is called with. Borrowed for the call.
typedef struct tn_cpu_call tn_cpu_call;
struct tn_cpu_call {
    uint32_t struct_size;
    uint32_t flags;          // 0
    const tn_host *host;     // for fail; never alloc: ask for scratch
    const tn_tensor *inputs; // data NULL: not given
    const tn_tensor *outputs;
    const void *attrs;
    void *scratch; // scratch_size bytes, aligned to 64
    uint64_t scratch_size;
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t cpu_features; // TN_CPU_...
    uint32_t num_threads;  // that parallel_for may use, this one included

    // Calls body(context, begin, end) for pieces that cover [0, n), each at least `grain`
    // long but the last, on several threads at once, and returns when all have returned.
    // Not from within a body.
    void (*parallel_for)(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end),
                         void *context);
};

// The payload of cpu.c/1.
typedef struct tn_cpu_kernel {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Computes the outputs. Outputs overlap no input, unless the primitive declares the
    // pair in-place and then begin at the same byte with the same strides.
    tn_status (*launch)(const tn_cpu_call *call);
} tn_cpu_kernel;

// --- vulkan.glsl/1 and vulkan.spirv/1 --------------------------------------------------

// Bindings: set 0, binding i is operand i as a storage buffer (std430), inputs in order and
// then outputs. An operand's first element is element `offset` of its binding.
// The push-constant block is made of the 4-byte fields listed in `push`, in order.
enum {
    TN_PUSH_COUNT = 1,    // uint: elements of output 0
    TN_PUSH_OFFSET = 2,   // uint: first element of operand `index`
    TN_PUSH_EXTENT = 3,   // uint: extent of operand `index` along `axis`
    TN_PUSH_STRIDE = 4,   // int: stride of operand `index` along `axis`, in elements
    TN_PUSH_ATTR_F32 = 5, // float: attribute number `index` of the table (F64 kind)
    TN_PUSH_ATTR_I32 = 6, // int: attribute number `index` (BOOL, I64, CHOICE kinds)
    TN_PUSH_ELEMENTS = 7, // uint: elements of operand `index`
};

// `axis` counts from the last when negative. A stride or extent of an axis that the operand
// does not have is 0 or 1.
typedef struct tn_push_field {
    uint16_t kind;
    int16_t axis;
    uint32_t index;
} tn_push_field;

// The payload of vulkan.glsl/1 and of vulkan.spirv/1.
typedef struct tn_vulkan_kernel {
    uint32_t struct_size;
    uint32_t flags; // 0
    // vulkan.glsl/1: text, UTF-8, GLSL 4.60 from #version on. vulkan.spirv/1: words.
    const void *code;
    uint64_t code_size; // bytes
    const char *entry;  // NULL: "main"
    const tn_push_field *push;
    uint32_t num_push; // at most 32
    // Workgroups along x: elements of output 0 over this, rounded up. The kernel folds
    // more than 65535 of them itself: group number = x + y * 65535.
    uint32_t elements_per_group;
} tn_vulkan_kernel;

#endif // TENON_KERNEL_H
