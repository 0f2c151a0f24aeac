// SPDX-License-Identifier: MIT
// Kernels: code for one primitive in one family. A family is a contract by name between op
// packs, which bring kernels, and backends, which run kernels; neither links the other, and
// either may be written first.
//
//   cpu.c/1          a C function over strided memory           payload: tn_cpu_kernel
//   vulkan.glsl/1    GLSL compute source, compiled at run time   payload: tn_vulkan_kernel
//   vulkan.spirv/1   the same, compiled beforehand               payload: tn_vulkan_kernel
//   expr/1           see <tenon/expr.h>: programs made by the core; no pack brings any
//
// A backend may define families of its own ("com.vendor.thing/1") with its own payload.
//
//   static tn_status launch(const tn_cpu_call *call) { ... return TN_OK; }
//   static const tn_cpu_kernel payload = {sizeof(payload), .launch = launch};
//   const tn_kernel fast = {.struct_size = sizeof(fast),
//                           .primitive = "acme.axpby/1",
//                           .family = TN_FAMILY_CPU,
//                           .name = "fast",
//                           .priority = 500,
//                           .payload = &payload};
//
// <tenon/pack.h> has macros that write such records.
//
// Choice. The candidates for a node are the kernels of its primitive in the families that
// the device's backend consumes, less those that TENON_KERNELS turns down and those whose
// predicates (operand rules, features, accepts) do not hold. They are ordered by the
// backend's list of families; then by priority, higher first; then by predicates, fewer
// dtypes first; then by the plugin's id and the kernel's name in byte order. The first one
// runs. The order of directories and of loading never matters.
//
// Prologues, epilogues. A kernel may take elementwise work in: where a rule has
// TN_OPERAND_FUSES, the core hands the expressions before that input, or behind that
// output, to the kernel's step (tn_fused of <tenon/backend.h>), when the backend takes
// such a step. The kernel says by its rules that it can; a kernel that says nothing
// never meets a fused operand. <tenon/vulkan.h> says what a GPU kernel has to keep to
// for that.
//
// Threads. Records are static and constant until the plugin's deinit. `accepts`,
// `scratch_size` and `plan` are pure, and are called from any thread, by several at once.
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

// Families that the backends of this project consume, with the payloads named above.
#define TN_FAMILY_CPU "cpu.c/1"
#define TN_FAMILY_VULKAN_GLSL "vulkan.glsl/1"
#define TN_FAMILY_VULKAN_SPIRV "vulkan.spirv/1"

// Layouts that a kernel takes for one operand. An input in another layout is copied to a
// contiguous one first, unless the kernel has TN_KERNEL_NO_COPIES.
enum {
    TN_NEEDS_ANY = 0,        // any strides
    TN_NEEDS_CONTIGUOUS = 1, // row-major without gaps
    TN_NEEDS_ROWS = 2,       // last axis has stride 1 (or extent 1); others any
};

// Flags of an operand rule.
enum {
    // The operand's elements may pass through an elementwise program: of an input while the
    // kernel loads them (a prologue), of an output while it stores them (an epilogue). Such
    // an operand has a layout, contiguous, and no memory. For inputs, set this only where
    // each element is loaded about once. Of outputs, only that of a kernel with one output.
    TN_OPERAND_FUSES = 1,
};

// Rule for one operand of a kernel: its dtype and its layout. Written by the kernel's
// author.
typedef struct tn_operand_rule {
    uint32_t dtypes;   // set of TN_DTYPE_BIT; 0: TN_FIRST_DTYPES
    uint32_t needs;    // TN_NEEDS_...
    uint32_t flags;    // TN_OPERAND_..., or 0
    uint32_t reserved; // 0
} tn_operand_rule;

// One application of a primitive, for the predicates of a kernel. Filled by the core,
// borrowed for the call. Outputs are contiguous unless a slot says otherwise.
typedef struct tn_kernel_query {
    uint32_t struct_size;     // sizeof(tn_kernel_query) as the core was compiled
    uint32_t flags;           // 0
    const tn_layout *inputs;  // num_inputs; dtype NONE: not given
    const tn_layout *outputs; // num_outputs
    const void *attrs;        // the attribute struct
    uint32_t num_inputs;
    uint32_t num_outputs;
    // Bit i: operand i, inputs first, passes through a program (TN_OPERAND_FUSES).
    // `accepts` is asked with 0 when the kernel is chosen, and again with the operands that
    // would be fused: if it then refuses, the programs stay steps of their own.
    uint64_t fused;
    // The most threads of a launch (tn_cpu_call.num_threads is at most this), for scratch
    // memory that each thread has a part of. At least 1.
    uint32_t num_workers;
    uint32_t reserved; // 0
} tn_kernel_query;

// Flags of a kernel.
enum {
    // An input that does not meet `needs` makes this kernel ineligible, instead of being
    // copied to a contiguous one first.
    TN_KERNEL_NO_COPIES = 1,
    // All operands (inputs and outputs) must have one dtype. Not the scalars of runtime
    // attributes.
    TN_KERNEL_SAME_DTYPE = 2,
};

// Code for one primitive in one family, and the conditions on which the core may choose it.
// Written by the kernel's author, checked when its plugin is loaded, and constant for as
// long as the plugin is loaded.
typedef struct tn_kernel {
    uint32_t struct_size;  // sizeof(tn_kernel) as the plugin was compiled
    uint32_t flags;        // TN_KERNEL_..., or 0
    const char *primitive; // "base.matmul/1": of this pack or of another
    const char *family;    // TN_FAMILY_..., or a backend's own
    const char *name;      // "cblas"; unique within plugin and primitive
    int32_t priority; // <100 reference, 100-499 generic, 500-899 tuned, >=900 user's own
    uint32_t num_operands;

    // num_operands rules, for inputs in order, then outputs; the last rule holds
    // for all operands that follow. NULL: TN_FIRST_DTYPES in all layouts. The
    // scalars of runtime attributes (TN_ATTR_RUNTIME) are not counted: they have no
    // rule.
    const tn_operand_rule *operands;
    uint32_t operand_size; // sizeof(tn_operand_rule) as the plugin was compiled; 0 for NULL
    uint32_t reserved;     // 0
    const char *features;  // device features needed, by comma: "f64,subgroup"; may be NULL

    // Optional. Called when the rules above hold: returns 0 to refuse this application,
    // else 1. Records no failure. [any-thread]
    int32_t (*accepts)(const tn_kernel_query *query);

    // Optional. Returns the bytes of working memory that a launch needs; NULL means 0. The
    // core refuses more than INT64_MAX, which tn_saturated_add() of <tenon/checked.h> gives
    // on overflow. [any-thread]
    uint64_t (*scratch_size)(const tn_kernel_query *query);

    const void *payload; // the struct of the family
} tn_kernel;

// Initialisers of a tn_kernel for an array of tn_operand_rule: the array, the number of its
// rules and their size.
#define TN_OPERANDS(array)                                                                 \
    .operands = (array), .num_operands = sizeof(array) / sizeof((array)[0]),               \
    .operand_size = sizeof(tn_operand_rule)

// --- cpu.c/1 ---------------------------------------------------------------------------

// Instruction sets that both the processor and the operating system offer: bits of
// tn_cpu_call.cpu_features.
enum {
    TN_CPU_AVX2 = 1,   // AVX2, FMA, F16C
    TN_CPU_AVX512 = 2, // AVX-512 F, BW, CD, DQ, VL
    TN_CPU_NEON = 4,   // AArch64 Advanced SIMD
    TN_CPU_VNNI = 8,   // AVX-512 VNNI: sums of four products of bytes
    TN_CPU_AMX = 16,   // AMX-INT8 and AMX-BF16: products of matrices, in tiles
};

// Argument of a cpu.c/1 launch and of a reference: operands in the memory of the host.
// Filled by whoever calls (a backend, the core, a test), borrowed for the call.
typedef struct tn_cpu_call tn_cpu_call;
struct tn_cpu_call {
    uint32_t struct_size;
    uint32_t flags;      // 0
    const tn_host *host; // for fail; alloc in prepare only: a launch has scratch
    // num_inputs and num_outputs. `data` NULL: an input that was not given (dtype NONE), or
    // an operand that `load` or `store` stands for. Elements of outputs are not set.
    const tn_tensor *inputs;
    const tn_tensor *outputs;
    const void *attrs;     // the attribute struct
    void *scratch;         // scratch_size bytes, aligned to 64; not cleared
    uint64_t scratch_size; // at least what the record's function returned
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t cpu_features; // TN_CPU_...
    uint32_t num_threads;  // threads that parallel_for may use, this one included

    // Calls body(context, begin, end, worker) for ranges that cover [0, n), each of at
    // least `grain` items but the last, on several threads at once, and returns when all
    // calls have returned. Calls that run at the same time have different `worker` numbers,
    // below num_threads, so that memory of a worker needs no lock. Never called from within
    // a body.
    void (*parallel_for)(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end,
                                      uint32_t worker),
                         void *context);

    void *state; // what prepare gave; NULL without prepare, and for a reference

    // For an input without memory (TN_OPERAND_FUSES): computes its elements [first, first +
    // count), numbered row-major over its extents, and writes them to `values`, one behind
    // the other in the input's dtype. `worker` is that of the body which calls, or 0
    // outside of parallel_for. Any elements, in any order, any number of times.
    void (*load)(const tn_cpu_call *call, uint32_t input, int64_t first, int64_t count,
                 void *values, uint32_t worker);

    // For an output without memory: takes its elements [first, first + count), as `load`
    // gives them. Every element is stored exactly once. Long ranges are quicker; `values`
    // of a few ten KiB are still in the cache when the program reads them.
    void (*store)(const tn_cpu_call *call, uint32_t output, int64_t first, int64_t count,
                  const void *values, uint32_t worker);
};

// The value of a runtime attribute (TN_ATTR_RUNTIME of <tenon/attr.h>), of which input
// `input` of the call is the scalar: a double of an F64 attribute, an int64_t of an I64
// one. The scalars are the last inputs, so that of an application's only such attribute is
// input call->num_inputs - 1. Pure.
static inline double tn_runtime_f64(const tn_cpu_call *call, uint32_t input)
{
    const tn_tensor *scalar = &call->inputs[input];
    int64_t at = scalar->layout.offset;
    return scalar->layout.dtype == TN_F32 ? (double)((const float *)scalar->data)[at]
                                          : ((const double *)scalar->data)[at];
}
static inline int64_t tn_runtime_i64(const tn_cpu_call *call, uint32_t input)
{
    const tn_tensor *scalar = &call->inputs[input];
    return ((const int64_t *)scalar->data)[scalar->layout.offset];
}

// The payload of cpu.c/1.
typedef struct tn_cpu_kernel {
    uint32_t struct_size; // sizeof(tn_cpu_kernel)
    uint32_t flags;       // 0

    // Computes the outputs. An output overlaps no input, unless the primitive declares the
    // pair in-place: both then begin at the same byte and have the same strides. A failure
    // is recorded through call->host->fail and spreads to all that reads the outputs.
    // [any-thread]
    tn_status (*launch)(const tn_cpu_call *call);

    // Optional. Makes the state of one step, when the step is compiled: packed constants,
    // tables, plans. Every launch of this step gets it in call->state. `call` has what all
    // these launches have in common: attributes, layouts, the processor's flags,
    // num_threads; `data` of an input that is the same in each (a number of the graph, an
    // array that a function captured), else NULL; no scratch memory, load or store.
    // parallel_for runs its body on this thread. Memory comes from call->host->alloc. On
    // failure, recorded through call->host->fail, the step is not compiled; prepare then
    // leaves nothing behind. [any-thread]
    //
    // Launches of one step may run at the same time, on several queues, and share the
    // state: it is constant, or has a lock.
    tn_status (*prepare)(const tn_cpu_call *call, void **out_state);

    // Frees the state: called once for each prepare that succeeded, also when a later step
    // of the segment fails to compile, after the last launch has returned. `host` is that
    // of prepare. NULL: nothing needs freeing. [any-thread]
    void (*finish)(const tn_host *host, void *state);
} tn_cpu_kernel;

// --- vulkan.glsl/1 and vulkan.spirv/1 --------------------------------------------------

// Interface of a shader in the plain form, without a `plan`. Set 0, binding i is operand i
// as a storage buffer (std430), inputs in order and then outputs. An operand's first
// element is element `offset` of its binding. The push-constant block consists of the
// 4-byte fields listed in `push`, in order; this is the kind of one field.
enum {
    TN_PUSH_COUNT = 1,  // uint: elements of output 0
    TN_PUSH_OFFSET = 2, // uint: first element of operand `index`
    TN_PUSH_EXTENT = 3, // uint: extent of operand `index` along `axis`
    TN_PUSH_STRIDE = 4, // int: stride of operand `index` along `axis`, in elements
    // An attribute that is data (TN_ATTR_RUNTIME) is an operand, and is not pushed.
    TN_PUSH_ATTR_F32 = 5, // float: attribute number `index` of the table (F64 kind)
    TN_PUSH_ATTR_I32 = 6, // int: attribute number `index` (BOOL, I64, CHOICE kinds)
    TN_PUSH_ELEMENTS = 7, // uint: elements of operand `index`
};

// One field of the push-constant block: {TN_PUSH_STRIDE, -1, 0} is the stride of operand 0
// along its last axis. An axis that the operand does not have has stride 0 and extent 1.
typedef struct tn_push_field {
    uint16_t kind;  // TN_PUSH_...
    int16_t axis;   // of EXTENT and STRIDE; counts from the end when negative
    uint32_t index; // of an operand or attribute, as the kind says
} tn_push_field;

// A shader of a kernel.
typedef struct tn_vulkan_module {
    const char *name; // "long_rows": in messages; NULL: the kernel's is enough
    // vulkan.glsl/1: text, UTF-8, GLSL 4.60 from #version on. vulkan.spirv/1: words. NULL:
    // it is packed; see tn_vulkan_kernel.unpack.
    const void *code;
    uint64_t code_size; // bytes, unpacked; of a text, without a NUL
    const char *entry;  // the entry point; NULL: "main"
    // vulkan.glsl/1: macros that are defined behind #version, by space: "IN=f16 WIDE"; at
    // most 16, of 255 bytes together. NULL: none. vulkan.spirv/1: not read.
    const char *defines;
} tn_vulkan_module;

typedef struct tn_vulkan_plan tn_vulkan_plan; // see <tenon/vulkan.h>

// The payload of vulkan.glsl/1 and of vulkan.spirv/1. A kernel has a function that plans
// its launches, or the plain form: one launch of module 0, whose operands are the step's
// inputs and then its outputs, described by `push` and `elements_per_group`.
typedef struct tn_vulkan_kernel {
    uint32_t struct_size;            // sizeof(tn_vulkan_kernel)
    uint32_t flags;                  // 0
    const tn_vulkan_module *modules; // num_modules, at least one
    uint32_t num_modules;
    uint32_t module_size; // sizeof(tn_vulkan_module) as the plugin was compiled

    // Fields of the plain form.
    const tn_push_field *push; // num_push fields
    uint32_t num_push;         // at most 32
    // Elements of output 0 that a workgroup computes. The number of workgroups is that of
    // elements divided by this, rounded up, laid out as tn_vulkan_rows() of
    // <tenon/vulkan.h> says: a shader computes its workgroup's number as
    // gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x, and leaves alone what lies
    // beyond the last element.
    uint32_t elements_per_group;

    // Plans the launches of a step: see <tenon/vulkan.h>. NULL: the plain form. Pure.
    // [any-thread]
    tn_status (*plan)(const tn_vulkan_plan *plan);

    // Optional. Writes the code of a module whose `code` is NULL: code_size bytes to
    // `out_code`, which the caller has, aligned to 4; the same at each call. `module` is
    // below num_modules. A backend asks for a module's code when it makes a pipeline of it,
    // not for each launch, so that a plugin may keep its shaders packed. Fails through
    // host->fail, TN_ERR_MEMORY for lack of memory. NULL: each module has its code.
    // [any-thread]
    tn_status (*unpack)(const tn_host *host, uint32_t module, void *out_code);
} tn_vulkan_kernel;

#endif // TENON_KERNEL_H
